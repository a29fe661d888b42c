"""The wall clock jumps while artifacts are written: by hours and by years, forth and back. See
docs/dev/faults.md#f19.
"""

from __future__ import annotations

from datetime import datetime

from tests.e2e.artifacts import artifact
from tests.torture.forked_daemons import CLOCK
from tests.torture.surroundings import Ground, Writelog, settled

JUMPS_S = (3600, -3600, 86_400, -86_400, 10 * 31_557_600, -10 * 31_557_600, 0, 1, -1)
PER_REPOSITORY = 20


def clock_jumps(ground: Ground, count: int) -> None:
    """Let the daemon's wall clock jump before each version of a plan; each version is one commit, in order."""
    for first in range(0, count, PER_REPOSITORY):
        _one_repository(ground, min(PER_REPOSITORY, count - first))


def _one_repository(ground: Ground, jumps: int) -> None:
    repo = ground.repo(rescan_s=1)
    log = Writelog(repo)
    clock = ground.place / f"{repo.root.name}.clock"
    clock.write_text("0")
    daemon = ground.daemon(repo, **{CLOCK: str(clock)})
    daemon.start()
    wrong: set[str] = set()
    farthest_s = 0
    for version in range(jumps):
        jump = ground.rng.choice(JUMPS_S)
        farthest_s = max(farthest_s, abs(jump))
        clock.with_suffix(".new").write_text(str(jump))
        clock.with_suffix(".new").rename(clock)
        one = artifact("plan", 3, version)
        log.write(one)
        daemon.wait_committed([one])
        ground.tally.count += 1
        wrong.add(repo.look("log", "-1", "--format=%cd", "--date=format:%Y"))
        if ground.rng.random() < 0.2:
            daemon.kill()
            log.acknowledged(daemon.mailbox.events)
            daemon.start()
    settled(daemon)
    log.acknowledged(daemon.mailbox.events)
    daemon.kill()
    ground.judge(repo, log, "clock jumps")
    if jumps > 1 and farthest_s == max(JUMPS_S) and wrong == {str(datetime.now().year)}:
        ground.fault("the clock never jumped: every commit is of the same year")
    ground.forget(repo)
