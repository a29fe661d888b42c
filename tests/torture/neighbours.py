"""Others at work in the same object store: git gc in a loop, and four work trees with a daemon
each. See docs/faults.md#f09 and #f29.
"""

from __future__ import annotations

import random
import threading

from tests.e2e.artifacts import mixed
from tests.e2e.repo import Repo
from tests.torture.surroundings import Ground, Writelog, many, settled

_AT_ONCE = 6
TREES = 4


def garbage(ground: Ground, count: int) -> None:
    """Collect garbage in a loop, pruning at once, while artifacts are committed; every object stays."""
    repo = ground.repo(rescan_s=1)
    log = Writelog(repo)
    daemon = ground.daemon(repo)
    daemon.start()
    artifacts, ended, rounds = many(count), threading.Event(), [0]
    collector = threading.Thread(
        target=_collect, args=(repo, ended, rounds, random.Random(ground.rng.random()))
    )
    collector.start()
    try:
        for at in range(0, count, _AT_ONCE):
            log.write(*artifacts[at : at + _AT_ONCE])
            daemon.wait_committed(artifacts[at : at + _AT_ONCE])
    finally:
        ended.set()
        collector.join()
    settled(daemon)
    ground.tally.count += len(daemon.committed())
    ground.tally.notes.append(f"{rounds[0]} collections")
    if rounds[0] < 1:
        ground.fault("no garbage was collected")
    log.acknowledged(daemon.mailbox.events)
    daemon.kill()
    ground.judge(repo, log, "git gc")


def _collect(repo: Repo, ended: threading.Event, rounds: list[int], rng: random.Random) -> None:
    """Collect, and rest for a random moment: while garbage is collected everything waits, as it should."""
    while True:
        repo.git("gc", "-q", "--prune=now")
        rounds[0] += 1
        if ended.wait(rng.uniform(0, 0.3)):
            return


def worktrees(ground: Ground, count: int) -> None:
    """Let four daemons commit in four work trees of one repository, each on its branch."""
    repo = ground.repo()
    trees = [repo]
    for number in range(1, TREES):
        place = repo.root.with_name(f"{repo.root.name}-tree{number}")
        repo.git("worktree", "add", "-q", "-b", f"side{number}", str(place))
        trees.append(Repo(place, repo.env))
    each = max(1, count // TREES)
    work = [mixed(each, first=each * number) for number in range(TREES)]
    logs = [Writelog(tree, branches=[f"side{n}" if n else "main"]) for n, tree in enumerate(trees)]
    daemons = [ground.daemon(tree) for tree in trees]
    for daemon in daemons:
        daemon.start()
    for at in range(0, each, 10):
        for log, artifacts in zip(logs, work, strict=True):
            log.write(*artifacts[at : at + 10])
        for daemon, artifacts in zip(daemons, work, strict=True):
            daemon.wait_committed(artifacts[at : at + 10])
    for tree, daemon, log in zip(trees, daemons, logs, strict=True):
        settled(daemon)
        ground.tally.count += len(daemon.committed())
        log.acknowledged(daemon.mailbox.events)
        daemon.kill()
        ground.judge(tree, log, "worktrees")
