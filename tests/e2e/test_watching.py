"""Right with every event dropped, one daemon per work tree, and never against the user. See
docs/dev/faults.md#f10 to #f13, #f28, #f36 and #f40 to #f44.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.artifacts import PLANNING, artifact, mixed
from tests.e2e.daemon import Daemon, until
from tests.e2e.history import History
from tests.e2e.repo import Repo
from tests.support import forked
from yolo_fs.system import IS_LINUX

Start = Callable[..., Daemon]
SWITCHES = 40 * max(1, int(os.environ.get("YOLO_TORTURE", "0")) // 2)
"""Of branches, with a write right after each."""
STARTS = int(os.environ.get("YOLO_STARTS", "1"))
"""How often all start at once: twenty of them, and fifty where it is more than once."""

# --- events that never come ------------------------------------------------------------------------------------------


def without_inotify(limit: str) -> tuple[str, ...]:
    """Return the start of a command that runs where the kernel's limit of file watches is reached.

    A user namespace has limits of its own, so that nobody else on the machine is touched.
    """
    name, value = limit.split("=")
    return (
        "unshare",
        "--user",
        "--map-root-user",
        "sh",
        "-c",
        f'echo {value} > /proc/sys/user/{name} && exec "$@"',
        "sh",
    )


def _may_unshare() -> bool:
    tried = subprocess.run(
        [*without_inotify("max_inotify_instances=0"), "true"], capture_output=True, check=False
    )
    return tried.returncode == 0


needs_inotify = pytest.mark.skipif(not IS_LINUX, reason="about the limits and the queue of inotify")


@needs_inotify
@pytest.mark.skipif(not _may_unshare(), reason="needs a user namespace of its own")
@pytest.mark.parametrize("limit", ["max_inotify_instances=0", "max_inotify_watches=3"])
def test_without_events_everything_is_committed_by_the_rescan(
    repo: Repo, start: Start, limit: str
) -> None:
    repo.configure(rescan_s=3600)  # a daemon that misses events scans more often than it is told
    history, artifacts = History(repo), mixed(40)
    daemon = start(repo, under=without_inotify(limit))
    repo.write(*artifacts[:20])
    daemon.wait_committed(artifacts[:20])
    until(
        lambda: (repo.status()["daemon"]["degraded"] or {}).get("reason") == "watch_limit",
        "status says so",
    )
    repo.write(*artifacts[20:])
    daemon.wait_committed(artifacts[20:])
    assert daemon.stop() == 0
    history.check(artifacts)


@needs_inotify
def test_an_overflow_of_the_kernels_queue_is_answered_with_a_scan(repo: Repo, start: Start) -> None:
    repo.configure(rescan_s=3600)
    history, daemon, artifacts = History(repo), start(repo), mixed(40)
    with daemon.paused():
        _overflow(repo)
        repo.write(*artifacts)
    assert daemon.wait_for("daemon.doubt")["data"]["why"] == "overflow"
    daemon.wait_committed(artifacts)
    assert daemon.stop() == 0
    for noise in (repo.root / PLANNING).glob("noise*"):
        noise.unlink()
    history.check(artifacts)


def _overflow(repo: Repo) -> None:
    """Queue more events than the kernel keeps: two files by turns, since equal neighbours count once."""
    folder = repo.root / PLANNING
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for turn in range(most + 100):
        os.close(os.open(folder / f"noise{turn % 2}", os.O_WRONLY | os.O_CREAT))


def test_a_planning_tree_that_is_deleted_and_made_again_is_watched_again(
    repo: Repo, start: Start
) -> None:
    repo.configure(rescan_s=3600)
    before, after, last = artifact("plan", 0), artifact("plan", 1), artifact("plan", 2)
    daemon = start(repo)
    repo.write(before)
    daemon.wait_committed([before])
    shutil.rmtree(repo.root / PLANNING)
    daemon.wait_for("artifact.missing", before.path)
    repo.write(after)
    daemon.wait_committed([after])
    repo.write(last)
    daemon.wait_committed([last])
    assert daemon.stop() == 0
    assert repo.look("ls-tree", "-r", "--name-only", "HEAD", "--", f"{PLANNING}/phases").split() == [
        before.path, after.path, last.path,
    ]  # fmt: skip


def test_phases_that_are_moved_in_whole_are_seen(repo: Repo, start: Start) -> None:
    repo.configure(rescan_s=3600)
    history, artifacts = History(repo), mixed(40)
    repo.write(*artifacts)
    elsewhere = repo.root / "elsewhere"
    os.rename(repo.root / PLANNING / "phases", elsewhere)
    daemon = start(repo)
    os.rename(elsewhere, repo.root / PLANNING / "phases")
    daemon.wait_committed(artifacts)
    assert daemon.stop() == 0
    history.check(artifacts)


# --- one daemon ------------------------------------------------------------------------------------------------------


def test_a_second_daemon_names_the_first_and_ends_with_success(repo: Repo, start: Start) -> None:
    daemon = start(repo)
    second = repo.yolo_fs("run", "--json")
    assert b'"already_running"' in second.stdout and str(daemon.pid).encode() in second.stdout
    assert str(daemon.pid).encode() in repo.yolo_fs("run").stderr
    assert daemon.is_running


@pytest.mark.parametrize("at_once", [50] * STARTS if STARTS > 1 else [20])
def test_of_many_starts_at_once_exactly_one_becomes_the_daemon(repo: Repo, at_once: int) -> None:
    with open(os.devnull, "r+b") as nothing:
        streams = [nothing.fileno()] * 3
        starts = [
            forked.begin(["run", "-q"], repo.root, repo.env, streams, session=True)
            for _ in range(at_once)
        ]
    try:
        until(lambda: sum(one.poll() is None for one in starts) == 1, "all but one have ended")
        winner = next(one for one in starts if one.poll() is None)
        until(
            lambda: repo.status()["daemon"]["pid"] == winner.pid,
            "the one that is left is the daemon",
        )
        winner.send(signal.SIGTERM)
        assert [one.wait() for one in starts] == [0] * at_once
    finally:
        for one in starts:
            one.send(signal.SIGKILL)
            one.wait()


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_daemon_that_lost_its_lock_ends(repo: Repo, start: Start, how: str) -> None:
    daemon = start(repo)
    lock = repo.git_dir / "yolo-fs/daemon.lock"
    lock.unlink()
    if how == "replaced":
        lock.touch()
    daemon.wait_for("daemon.lock_lost")
    assert daemon.ended() == 0


@pytest.mark.parametrize("how", ["moved", "deleted"])
def test_a_repository_that_goes_away_ends_its_daemon_and_is_not_made_again(
    repo: Repo, start: Start, how: str
) -> None:
    daemon = start(repo)
    if how == "moved":
        os.rename(repo.root, repo.root.with_name("elsewhere"))
    else:
        shutil.rmtree(repo.root)
    assert daemon.ended() == 0
    assert not repo.root.exists()


def test_a_repository_that_is_being_deleted_gets_nothing_new_from_its_daemon(
    repo: Repo, start: Start
) -> None:
    daemon, own = start(repo), repo.git_dir / "yolo-fs"
    shutil.rmtree(own)
    repo.write(*mixed(3))
    assert daemon.ended() == 0
    assert not own.exists()


def test_a_term_signal_finishes_the_work_in_hand(repo: Repo, start: Start) -> None:
    history, artifacts = History(repo), mixed(100)
    daemon = start(repo)
    repo.write(*artifacts)
    daemon.mailbox.wait(lambda events: bool(daemon.committed()))
    assert daemon.stop() == 0
    assert daemon.mailbox.events[-2]["event"] == "daemon.stopped"
    assert len(history.subjects()) == len(daemon.committed()) > 0
    assert repo.look("diff", "--cached") == ""
    again = start(repo)
    again.wait_committed([one for one in artifacts if one.path not in daemon.committed()])
    assert again.stop() == 0
    history.check(artifacts)


# --- what the user undoes stays undone -------------------------------------------------------------------------------


def test_a_hard_reset_is_never_undone(repo: Repo, start: Start) -> None:
    daemon, (first, second, third) = start(repo), mixed(3)
    for one in (first, second):
        repo.write(one)
        daemon.wait_committed([one])
    until(lambda: repo.look("status", "--porcelain") == "", "the index follows")
    repo.git("reset", "-q", "--hard", "HEAD~1")
    repo.write(third)
    daemon.wait_committed([third])
    assert repo.subjects() == ["chore: begin", first.subject, third.subject]
    assert not (repo.root / second.path).exists()


def test_a_hard_reset_before_the_index_followed_is_not_undone_either(
    repo: Repo, start: Start
) -> None:
    daemon, (first, second, third) = start(repo), mixed(3)
    for one in (first, second):
        repo.write(one)
        daemon.wait_committed([one])
    repo.git("reset", "-q", "--hard", "HEAD~1")
    repo.write(third)
    daemon.wait_committed([third])
    assert repo.subjects() == ["chore: begin", first.subject, third.subject]


PUSHES = {
    "push": ("push", "-q", "{here}", "HEAD:main"),
    "update-ref": ("push", "-q", "{here}", "HEAD:refs/heads/side"),
    "fetch": (),
}


@pytest.mark.parametrize("way", PUSHES)
@pytest.mark.parametrize("is_running", [True, False])
def test_what_is_pushed_into_the_branch_is_not_taken_back(
    repo: Repo, start: Start, way: str, is_running: bool
) -> None:
    one, other = artifact("summary", 1), artifact("summary", 1, version=1)
    repo.git("config", "receive.denyCurrentBranch", "ignore")
    daemon = start(repo)
    repo.write(one)
    daemon.wait_committed([one])
    if not is_running:
        daemon.stop()
    there = repo.root.parent / "there"
    repo.git("clone", "-q", str(repo.root), str(there))
    (there / other.path).write_bytes(other.data)
    repo.git("-C", str(there), "commit", "-qam", other.subject)
    time.sleep(1.1)  # a reflog counts in seconds: what is written in that of a move is new
    if words := PUSHES[way]:
        repo.git("-C", str(there), *(word.format(here=repo.root) for word in words))
    if way == "update-ref":
        repo.git("update-ref", "refs/heads/main", "refs/heads/side")
    elif way == "fetch":
        repo.git("fetch", "-q", "--update-head-ok", str(there), "main:main")
    if is_running:
        daemon.wait_for("artifact.held", one.path, "older_than_branch")
    else:
        repo.yolo_fs("run", "--once")
    assert repo.standing(one.path) == ("held", "older_than_branch")
    assert repo.look("show", f"HEAD:{one.path}").encode() == other.data
    (there / other.path).write_bytes(artifact("summary", 1, version=3).data)
    repo.git("-C", str(there), "commit", "-qam", other.subject)
    repo.git("fetch", "-q", "--update-head-ok", str(there), "main:main")
    repo.yolo_fs("status")
    assert repo.standing(one.path) == ("held", "older_than_branch")
    newest = artifact("summary", 1, version=2)
    repo.write(newest)
    if is_running:
        daemon.wait_committed([newest])
    else:
        repo.yolo_fs("run", "--once")
    assert repo.look("show", f"HEAD:{one.path}").encode() == newest.data


def test_a_soft_reset_holds_the_content_until_it_is_written_again(repo: Repo, start: Start) -> None:
    daemon, (first, second, third) = start(repo), mixed(3)
    for one in (first, second):
        repo.write(one)
        daemon.wait_committed([one])
    repo.git("reset", "-q", "--soft", "HEAD~1")
    daemon.wait_for("artifact.held", second.path)
    repo.write(third)
    daemon.wait_committed([third])
    assert repo.subjects() == ["chore: begin", first.subject, third.subject]
    assert repo.standing(second.path) == ("held", "undone_by_user")
    newer = artifact("summary", 1, version=1)
    repo.write(newer)
    daemon.wait_committed([newer])


def test_a_soft_reset_is_not_undone_by_a_restart_either(repo: Repo, start: Start) -> None:
    daemon, (first, second) = start(repo), mixed(2)
    for one in (first, second):
        repo.write(one)
        daemon.wait_committed([one])
    daemon.stop()
    repo.git("reset", "-q", "--soft", "HEAD~1")
    again = start(repo)
    again.wait_for("artifact.held", second.path)
    assert repo.subjects() == ["chore: begin", first.subject]


@pytest.mark.timeout(60 + SWITCHES)
def test_artifacts_of_a_branch_never_reach_the_branch_that_is_switched_to(
    repo: Repo, start: Start
) -> None:
    repo.git("branch", "other")
    daemon, artifacts = start(repo), mixed(SWITCHES)
    for turn, one in enumerate(artifacts):
        repo.insist("checkout", "-q", "other" if turn % 2 else "main")
        repo.write(one)
        daemon.wait_committed([one])
        until(lambda: repo.look("status", "--porcelain") == "", "the index follows")
    assert daemon.stop() == 0
    assert repo.subjects("main") == ["chore: begin", *(one.subject for one in artifacts[::2])]
    assert repo.subjects("other") == ["chore: begin", *(one.subject for one in artifacts[1::2])]


def test_a_stash_of_a_new_version_takes_it_away_and_brings_it_back(
    repo: Repo, start: Start
) -> None:
    daemon, before, after = start(repo), artifact("plan", 0), artifact("plan", 0, version=1)
    repo.write(before)
    daemon.wait_committed([before])
    until(lambda: repo.look("status", "--porcelain") == "", "the index follows")
    with daemon.paused():
        repo.write(after)
        repo.git("stash", "-q")
    last = artifact("plan", 1)
    repo.write(last)
    daemon.wait_committed([last])
    assert repo.subjects()[1:] == [before.subject, last.subject]
    until(lambda: repo.look("status", "--porcelain") == "", "the index follows")
    repo.git("stash", "pop", "-q")
    daemon.wait_committed([after])
    assert daemon.stop() == 0


def test_the_users_own_commit_of_an_artifact_is_left_as_it_is(repo: Repo, start: Start) -> None:
    one, last = mixed(2)
    daemon = start(repo)
    with daemon.paused():
        repo.write(one)
        repo.git("add", one.path)
        repo.git("commit", "-q", "-m", "docs: by hand")
    repo.write(last)
    daemon.wait_committed([last])
    assert daemon.stop() == 0
    assert repo.subjects() == ["chore: begin", "docs: by hand", last.subject]
