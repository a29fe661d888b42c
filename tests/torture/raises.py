"""What the operating system refuses, at every named moment, once and for as long as the process
lives. See docs/dev/faults.md#f06 to #f08.
"""

from __future__ import annotations

import itertools
import threading

from tests.e2e.artifacts import artifact
from tests.e2e.daemon import until
from tests.torture.forked_daemons import ForkedDaemon
from tests.torture.kills import SITUATIONS, STAGES_OF_A_COMMIT, Situation, comes_back, settles
from tests.torture.surroundings import FIRED, Ground, Writelog

ERRORS = ("ENOSPC", "EIO")
_REFUSED_S = 0.3
"""How long everything is refused while another artifact is written."""


def refusals(ground: Ground, count: int) -> None:
    """Refuse at every stage that a commit passes: at its first pass alone, or at every one until the next start."""
    cases = [
        (situation, stage, error, nth)
        for situation in SITUATIONS for stage in STAGES_OF_A_COMMIT for error in ERRORS for nth in (":1", "")
    ]  # fmt: skip
    ground.rng.shuffle(cases)
    for situation, stage, error, nth in itertools.islice(itertools.cycle(cases), count):
        _refuse(ground, situation, stage, f"raise={error}{nth}")


def _refuse(ground: Ground, situation: Situation, stage: str, action: str) -> None:
    of = f"{stage}:{action}, {situation.__name__}"
    repo = ground.repo(rescan_s=1)
    artifacts = situation(repo)
    log = Writelog(repo)
    daemon = ground.daemon(repo, f"{stage}:{action}")
    with log.untouched():
        log.write(*artifacts)
        daemon.begin()
        until(
            lambda: daemon.is_ready() or not daemon.is_running or _refusals(daemon) > 1,
            "it has looked",
        )
        log.write(artifact("critique", 7))
        if action.endswith(":1"):
            settles(ground, daemon, of)
        else:
            threading.Event().wait(_REFUSED_S)
        # Git is done with the index a moment before the program knows it and comes to the next stage.
        until(lambda: _refusals(daemon) > 0 or not daemon.is_running, f"{of} fires")
        if not daemon.is_running:
            ground.fault(f"{of}: the daemon ended: {daemon.complaints()[-400:]}")
        daemon.kill()
        log.acknowledged(daemon.mailbox.events)
        ground.fired(daemon, stage, of)
        comes_back(ground, daemon, log, of)
    ground.judge(repo, log, of)
    ground.forget(repo)


def _refusals(daemon: ForkedDaemon) -> int:
    return daemon.complaints().count(FIRED)
