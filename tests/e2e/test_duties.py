"""Whichever duty of the daemon or its observer fails, the daemon lives, says so, and goes on committing."""

from __future__ import annotations

import time
from collections.abc import Callable
from shutil import copytree

import pytest

from tests.e2e.artifacts import artifact
from tests.e2e.daemon import Daemon, until
from tests.e2e.failing_duty import DUTIES, NAME
from tests.e2e.repo import Repo
from yolo_fs.daemon.duties import LONGEST_SLEEP_S
from yolo_fs.git.packs import REST_MOST
from yolo_fs.system import IS_LINUX

ALONE = ("observer",) if IS_LINUX else ("observer", "retries")
"""The duties that no other makes up for: without leases a file settles by time, which is a retry; and
without an observer nobody says that the daemon is ready."""


@pytest.mark.parametrize("duty", [name for name in DUTIES if name not in ALONE])
def test_a_failing_duty_costs_no_other(repo: Repo, start: Callable[..., Daemon], duty: str) -> None:
    repo.configure(rescan_s=3600)  # no scan makes up for what the failing duty leaves undone
    daemon = start(repo, prepare="tests.e2e.failing_duty:prepare", **{NAME: duty})
    first, second = artifact("plan", 0), artifact("plan", 1)
    until(repo.index_is_quiet, "no git is held to be at work")  # else it is the retries that commit
    repo.write(first)
    daemon.wait_committed([first])
    defect = daemon.wait_for("daemon.defect")["data"]
    assert (defect["duty"], defect["what"]) == (duty, f"ZeroDivisionError('{duty}')")
    assert "failing_duty.py" in defect["trace"]
    repo.write(second)
    daemon.wait_committed([second])
    assert sum(event["event"] == "daemon.defect" for event in daemon.mailbox.events) == 1
    if duty != "health":
        until(lambda: bool(repo.status()["daemon"]["troubles"]), "status says so")
        (trouble,) = repo.status()["daemon"]["troubles"]
        assert (trouble["duty"], trouble["reason"]) == (duty, "internal_error")
        assert f"{duty} fails: ZeroDivisionError" in repo.yolo_fs("status").stdout.decode()
        assert f"{duty!r} fails".encode() in repo.yolo_fs("doctor", ok=(1,)).stderr
    assert daemon.stop() == 0


def test_a_daemon_leaves_the_history_that_it_has_read_to_the_next_process(
    repo: Repo, start: Callable[..., Daemon]
) -> None:
    daemon = start(repo)
    head = repo.git("rev-parse", "HEAD").strip()
    kept = repo.git_dir / "yolo-fs" / "index.db"
    assert head in kept.read_text(errors="replace")
    assert daemon.stop() == 0


def test_a_multi_pack_index_that_comes_late_gets_its_packs_back_from_a_daemon_at_rest(
    repo: Repo, start: Callable[..., Daemon]
) -> None:
    daemon, folder = start(repo), repo.root / ".git/objects/pack"
    for one in (artifact("plan", number) for number in range(REST_MOST + 1)):
        repo.write(one)
        daemon.wait_committed([one])
    single = set(folder.glob("*.pack"))
    other = repo.root / ".git/other"
    repo.git("init", "--quiet", "--bare", str(other))
    listed = copytree(folder, other / "objects/pack", dirs_exist_ok=True)
    repo.git(f"--git-dir={other}", "multi-pack-index", "write")
    until(lambda: not single & set(folder.glob("*.pack")), "what was merged goes")
    time.sleep(LONGEST_SLEEP_S)  # turns later, in which nothing was left to do
    (listed / "multi-pack-index").rename(folder / "multi-pack-index")
    until(lambda: single < set(folder.glob("*.pack")), "what is named comes back", within_s=10)
    repo.git("multi-pack-index", "verify")


def test_what_the_user_removes_from_history_can_be_collected_once_the_daemon_has_stopped(
    repo: Repo, start: Callable[..., Daemon]
) -> None:
    daemon = start(repo)
    some = [artifact("plan", number) for number in range(REST_MOST + 1)]
    for each in some:
        repo.write(each)
        daemon.wait_committed([each])
    before = repo.look("rev-parse", f"HEAD~{len(some)}").strip()
    removed = repo.look("rev-list", "--objects", "--no-object-names", f"{before}..HEAD").split()
    daemon.stop()
    repo.git("reset", "--hard", "--quiet", before)
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "--quiet", "--prune=now")
    stored = repo.look("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    assert len(removed) > 2 * len(some) and not set(removed) & set(stored)
