"""Whichever duty of the daemon fails, the daemon lives, says so, and goes on committing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.e2e.artifacts import artifact
from tests.e2e.daemon import Daemon, until
from tests.e2e.failing_duty import NAME
from tests.e2e.long_look import LOOKED, LOOKING
from tests.e2e.repo import Repo
from yolo_fs.edges import IS_LINUX
from yolo_fs.services.daemon.daemon import DUTIES

ALONE = () if IS_LINUX else ("retries",)
"""The duties that no other makes up for: without leases a file settles by time, which is a retry."""


@pytest.mark.parametrize("duty", [duty.name for duty in DUTIES if duty.name not in ALONE])
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


def test_what_is_written_during_a_long_look_is_committed_before_it_ends(
    repo: Repo, start: Callable[..., Daemon]
) -> None:
    repo.configure(rescan_s=3600)
    daemon = start(repo, prepare="tests.e2e.long_look:prepare")
    written = artifact("plan", 0)
    daemon.wait_for(LOOKING)
    repo.write(written)
    daemon.wait_committed([written])
    daemon.wait_for(LOOKED)
    events = [one["event"] for one in daemon.mailbox.events if "event" in one]
    assert events.index(LOOKING) < events.index("artifact.committed") < events.index(LOOKED)
    assert daemon.stop() == 0


def test_a_daemon_leaves_the_history_that_it_has_read_to_the_next_process(
    repo: Repo, start: Callable[..., Daemon]
) -> None:
    daemon = start(repo)
    head = repo.git("rev-parse", "HEAD").strip()
    kept = repo.git_dir / "yolo-fs" / "history.json"
    assert head in kept.read_text(errors="replace")
    assert daemon.stop() == 0
