"""What the torture found, each as the one case that showed it. See docs/dev/faults.md#f04, #f05, #f06
and #f07.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.test_escalate import BLOCKER
from tests.e2e.artifacts import artifact, mixed
from tests.e2e.daemon import descendants, until
from tests.e2e.history import locks
from tests.torture.disks import full, read_only, with_git_dir_on
from tests.torture.kills import after_a_reboot, comes_back, kill_recovery
from tests.torture.power import recorded
from tests.torture.recording import Op
from tests.torture.surroundings import FIRED, Ground, SkipError, Writelog, settled


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    with Ground("one case", tmp_path, seed=1) as made:
        yield made


@pytest.mark.parametrize("stage", ["recovery.aside", "recovery.restored"])
def test_a_start_that_is_killed_while_it_repairs_leaves_the_repair_to_the_next(
    ground: Ground, stage: str
) -> None:
    kill_recovery(ground, stage, 1)
    assert ground.tally.is_clean, ground.tally


def test_the_first_start_repairs_as_well_when_the_power_failed_before_it_could_note_the_boot(
    ground: Ground,
) -> None:
    repo = ground.repo()
    log, daemon = Writelog(repo), ground.daemon(repo)
    after_a_reboot(repo, log, daemon, artifact("summary", 1))
    (repo.git_dir / "yolo-fs/boot.json").unlink()
    comes_back(ground, daemon, log, "no note of a boot")
    ground.judge(repo, log, "no note of a boot")
    assert ground.tally.is_clean, ground.tally


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_whatever_becomes_the_index_or_the_branch_is_on_the_disk_before_it_does(
    ground: Ground,
) -> None:
    ops = recorded(ground).ops
    named = [
        at
        for at, op in enumerate(ops)
        if op.name == "rename" and op.other.endswith(("/index", "/heads/main"))
    ]
    assert len(named) >= 2
    assert [ops[at] for at in named if not _is_synced(ops[:at], ops[at].path)] == []


def _is_synced(ops: tuple[Op, ...], path: str) -> bool:
    """Return whether what has this name was synced after it was last written, by whatever name."""
    for at, op in reversed(list(enumerate(ops))):
        if op.name == "rename" and op.other == path:
            return _is_synced(ops[:at], op.path)
        if op.path == path and op.name in ("write", "sync", "truncate", "resize"):
            return op.name == "sync"
    return False


@pytest.mark.parametrize("refusal", [full, read_only])
def test_a_disk_that_stores_nothing_is_told_and_shown_by_status(
    ground: Ground, refusal: object
) -> None:
    try:
        mount = ground.mount(2048)
    except SkipError as reason:
        pytest.skip(str(reason))
    repo = with_git_dir_on(mount, ground.repo(rescan_s=1))
    log, daemon = Writelog(repo), ground.daemon(repo)
    daemon.start()
    one = artifact("plan", 0)
    with refusal(mount) as reasons:  # type: ignore[operator]
        log.write(one)
        assert daemon.wait_for("artifact.held", one.path)["data"]["reason"] in reasons
        # Where only time tells that nobody writes it, it has to be old enough for `status` as well.
        until(lambda: repo.standing(one.path)[0] == "held", "status shows it as held")
        assert repo.standing(one.path)[1] in reasons
    settled(daemon)


def test_an_artifact_that_could_not_be_stored_is_told_once_with_its_reason(ground: Ground) -> None:
    repo = ground.repo(rescan_s=1)
    log, daemon = Writelog(repo), ground.daemon(repo, "objects.written:raise=ENOSPC")
    daemon.start()
    (one,) = mixed(1)
    log.write(one)
    daemon.wait_for("artifact.held", one.path, "no_space")
    last = artifact("plan", 5)
    log.write(last)
    daemon.wait_for("artifact.held", last.path, "no_space")
    told = [event["data"]["reason"] for event in daemon.mailbox.events if event["path"] == one.path]
    assert told.count("no_space") == 1


def test_a_first_scan_that_the_system_refuses_is_told_and_made_again(ground: Ground) -> None:
    repo = ground.repo()
    log, daemon = Writelog(repo), ground.daemon(repo, "commit.built:raise=EIO:1")
    log.write(*mixed(1))
    daemon.start()
    settled(daemon)
    assert (
        daemon.wait_for("daemon.trouble")["data"]["what"]
        == "[Errno 5] Input/output error: 'commit.built'"
    )


APPENDS = ("append.begun", "append.written")


@pytest.mark.parametrize("stage", APPENDS)
def test_an_escalation_that_is_killed_at_its_line_is_whole_or_not_there(
    ground: Ground, stage: str
) -> None:
    repo = ground.repo()
    repo.file(".yolo-planning/phases/01-auth/note", "")
    blocker = repo.file("../blocker.json", json.dumps(BLOCKER))
    words = ("escalate", "open", "--json", "--message", str(blocker))
    repo.yolo_fs(*words, ok=(-signal.SIGKILL,), more={"YOLO_FP": f"{stage}:kill"})
    repo.yolo_fs(*words, ok=range(256))
    lines = (
        (repo.root / ".yolo-planning/phases/01-auth/escalation.jsonl")
        .read_bytes()
        .splitlines(keepends=True)
    )
    assert len(lines) == 1 and lines[0].endswith(b"}\n")


def test_the_lock_of_a_helper_that_is_killed_is_removed_while_the_daemon_lives(
    ground: Ground,
) -> None:
    repo = ground.repo(rescan_s=1)
    log, daemon = Writelog(repo), ground.daemon(repo, "refs.noted:sleep=500:1")
    daemon.start()
    log.write(artifact("plan", 0))
    until(lambda: f"{FIRED}refs.noted" in daemon.complaints(), "the branch is locked")
    for helper in descendants(daemon.pid):
        with suppress(ProcessLookupError):
            os.kill(helper, signal.SIGKILL)
    settled(daemon)
    assert locks(repo) == []
