"""SIGKILL at random moments loses nothing, repeats nothing and leaves nothing behind. See
docs/dev/faults.md#f01 to #f03, #f05 and #f24.

`YOLO_TORTURE=50` kills fifty times during two hundred writes; the seed is printed and may be given as `YOLO_SEED`.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.artifacts import Artifact, artifact, mixed
from tests.e2e.daemon import Daemon, descendants, until
from tests.e2e.history import History
from tests.e2e.repo import Repo
from tests.e2e.test_staging import stage_something_of_every_kind

Start = Callable[..., Daemon]

KILLS = int(os.environ.get("YOLO_TORTURE", "6"))
"""In each of the two ways of killing."""
PER_KILL = 4


@pytest.mark.timeout(60 + 20 * KILLS)
@pytest.mark.parametrize(
    "with_helpers", [False, True], ids=["daemon alone", "daemon and every git of it"]
)
def test_random_kills_lose_nothing_and_repeat_nothing(
    repo: Repo, start: Start, rng: random.Random, with_helpers: bool
) -> None:
    stage_something_of_every_kind(repo)
    history, before = History(repo), repo.of_the_user()
    artifacts = mixed(PER_KILL * KILLS)
    daemon = start(repo)
    hits = [
        _kill_while_writing(daemon, artifacts[at : at + PER_KILL], rng, with_helpers=with_helpers)
        for at in range(0, len(artifacts), PER_KILL)
    ]
    last = artifact("decisions", 0)
    repo.write(last)
    daemon.wait_committed([last])
    assert any(hits), "no kill hit the daemon at work: the test proves nothing"
    assert daemon.stop() == 0
    history.check([*artifacts, last])
    assert repo.of_the_user() == before


def _kill_while_writing(
    daemon: Daemon, artifacts: Sequence[Artifact], rng: random.Random, *, with_helpers: bool
) -> bool:
    """Write, kill a moment after a random one is written, start again; tell whether written work was undone then."""
    written = rng.randint(1, len(artifacts))
    daemon.repo.write(*artifacts[:written])
    writer = threading.Thread(target=daemon.repo.write, args=artifacts[written:])
    writer.start()
    threading.Event().wait(rng.choice([0, rng.uniform(0, 0.02)]))
    daemon.kill(with_helpers=with_helpers)
    undone = len(daemon.committed()) < written
    writer.join()
    start_again(daemon, with_helpers=with_helpers)
    return undone


def start_again(daemon: Daemon, *, with_helpers: bool) -> None:
    """Start after a kill. When git itself was killed, do what is left to the user then.

    A lock that cannot be proved ours is not the daemon's to remove (F24).
    """
    left = _marks(daemon.repo) if with_helpers else {}
    daemon.start()
    for path in left.items() & _marks(daemon.repo).items():
        path[0].unlink()
        print(f"a git that was killed left {path[0].name}")


def _marks(repo: Repo) -> dict[Path, tuple[int, int]]:
    """Return the locks that lie about, each with what tells it from the next of its name."""
    marks = {}
    for path in [*repo.git_dir.glob("*.lock"), *(repo.git_dir / "refs").rglob("*.lock")]:
        with suppress(FileNotFoundError):
            marks[path] = (path.stat().st_ino, path.stat().st_ctime_ns)
    return marks


@pytest.mark.timeout(60 + 20 * KILLS)
def test_kills_while_one_artifact_is_rewritten_keep_every_acknowledged_version(
    repo: Repo, start: Start, rng: random.Random
) -> None:
    history, daemon = History(repo), start(repo)
    for version in range(KILLS):
        one = artifact("plan", 7, version)
        repo.write(one)
        threading.Event().wait(rng.uniform(0, 0.4))
        both = rng.random() < 0.5
        daemon.kill(with_helpers=both)
        if any(event.get("data", {}).get("blob") == one.blob() for event in daemon.mailbox.events):
            assert repo.look("show", f"HEAD:{one.path}").encode() == one.data
        start_again(daemon, with_helpers=both)
        until(lambda: len(history.subjects()) > version, "committed")  # noqa: B023
    assert daemon.stop() == 0
    history.check([artifact("plan", 7, version) for version in range(KILLS)])
    history.check_order([artifact("plan", 7, version) for version in range(KILLS)])


def test_a_start_during_recovery_that_is_killed_too_converges(
    repo: Repo, start: Start, rng: random.Random
) -> None:
    history, artifacts = History(repo), mixed(60)
    daemon = start(repo)
    repo.write(*artifacts)
    for _ in range(3):
        threading.Event().wait(rng.uniform(0, 0.1))
        daemon.kill()
        until(daemon.launch, "it becomes the daemon")
    until(lambda: len(history.subjects()) >= 60, "sixty commits")
    assert daemon.stop() == 0
    history.check(artifacts)


def test_helpers_of_git_that_die_are_started_anew(repo: Repo, start: Start) -> None:
    history, daemon, artifacts = History(repo), start(repo), mixed(20)
    killed = 0
    for one in artifacts:
        repo.write(one)
        daemon.wait_committed([one])
        until(lambda: repo.look("status", "--porcelain") == "", "the index follows")
        for helper in descendants(daemon.pid):
            killed += 1
            with suppress(ProcessLookupError):
                os.kill(helper, signal.SIGKILL)
    assert killed >= len(artifacts)
    assert daemon.stop() == 0
    history.check(artifacts)


def test_a_reader_that_leaves_does_not_end_the_daemon(repo: Repo, start: Start) -> None:
    history, daemon, artifacts = (
        History(repo),
        start(repo, under=("sh", "-c", '"$@" | head -1', "sh")),
        mixed(20),
    )
    for one in artifacts:
        repo.write(one)
        until(lambda: one.subject in history.subjects(), "committed")  # noqa: B023
    os.kill(int(daemon.mailbox.events[0]["data"]["pid"]), signal.SIGTERM)
    assert daemon.ended() == 0
    history.check(artifacts)
