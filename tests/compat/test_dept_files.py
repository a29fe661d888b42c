"""dept-status."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.compat.shim import Done, call
from yolo_fs.compat import dept_files
from yolo_fs.schemas.check import check
from yolo_fs.schemas.state import DeptStatus
from yolo_fs.states.project import DECLARABLE

KEYS = [
    "dept",
    "status",
    "step",
    "started_at",
    "updated_at",
    "plans_complete",
    "plans_total",
    "error",
]
OLD = {
    "dept": "backend", "status": "running", "step": "planning", "started_at": "2026-02-19T08:00:00Z",
    "updated_at": "2026-02-19T09:00:00Z", "plans_complete": 2, "plans_total": 3, "error": "one",
}  # fmt: skip


def write(
    phase: Path,
    *more: object,
    dept: str = "backend",
    status: str = "running",
    step: str = "planning",
) -> Done:
    return call(
        "dept-status", "--dept", dept, "--phase-dir", phase, "--action", "write", "--status", status, "--step", step,
        *more, cwd=phase,
    )  # fmt: skip


def read(phase: Path, dept: str = "backend") -> Done:
    return call("dept-status", "--dept", dept, "--phase-dir", phase, "--action", "read", cwd=phase)


def on_disk(phase: Path) -> Any:
    return json.loads((phase / ".dept-status-backend.json").read_text())


def plant(phase: Path, text: str) -> Path:
    path = phase / ".dept-status-backend.json"
    path.write_text(text)
    return path


# --- what is the same ------------------------------------------------------------------------------------------------


def test_a_write_is_silent_and_has_the_eight_keys_in_order(tmp_path: Path) -> None:
    done = write(tmp_path, "--plans-complete", 1, "--plans-total", 3, "--error", 'a "quoted" ü')
    value = on_disk(tmp_path)
    assert done == (0, "", "")
    assert list(value) == KEYS
    assert (value["plans_complete"], value["plans_total"], value["error"]) == (1, 3, 'a "quoted" ü')
    assert check(DeptStatus, value)[1] == ()


def test_a_write_leaves_only_the_file_and_its_lock(tmp_path: Path) -> None:
    write(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".dept-lock-backend", ".dept-status-backend.json"]


def test_a_read_prints_the_file_verbatim(tmp_path: Path) -> None:
    plant(tmp_path, '{"torn": ')
    assert read(tmp_path) == (0, '{"torn": ', "")


def test_a_read_of_nothing_says_not_found(tmp_path: Path) -> None:
    done = read(tmp_path)
    assert (done.code, done.out, "not found" in done.err) == (1, "", True)


def test_the_start_survives_and_what_is_omitted_is_reset(tmp_path: Path) -> None:
    plant(tmp_path, json.dumps(OLD))
    write(tmp_path, status="complete", step="signoff")
    value = on_disk(tmp_path)
    assert value["started_at"] == OLD["started_at"]
    assert value["updated_at"] > str(OLD["updated_at"])
    assert (value["plans_complete"], value["plans_total"], value["error"]) == (0, 0, "")


@pytest.mark.parametrize(
    "started", ["9999-01-01T00:00:00Z", "yesterday", "", 7, "2026-02-19T08:00:00"]
)
def test_a_start_that_cannot_be_true_is_replaced(tmp_path: Path, started: object) -> None:
    plant(tmp_path, json.dumps({**OLD, "started_at": started}))
    write(tmp_path)
    value = on_disk(tmp_path)
    assert value["started_at"] == value["updated_at"]


# --- what others added -----------------------------------------------------------------------------------------------


def test_what_others_added_survives_after_the_eight_keys(tmp_path: Path) -> None:
    plant(tmp_path, json.dumps({"eta": "noon", **OLD, "blockers": ["keys"]}))
    write(tmp_path)
    value = on_disk(tmp_path)
    assert list(value) == [*KEYS, "eta", "blockers"]
    assert (value["eta"], value["blockers"]) == ("noon", ["keys"])


def test_in_a_file_of_the_coordinator_the_write_is_a_declaration(tmp_path: Path) -> None:
    plant(tmp_path, json.dumps({**OLD, "seq": 4, "declared": {"status": "failed"}}))
    write(tmp_path, "--plans-complete", 3, "--plans-total", 3, status="complete", step="signoff")
    value = on_disk(tmp_path)
    assert value["seq"] == 5
    assert value["declared"] == {
        "status": "complete",
        "step": "signoff",
        "plans_complete": 3,
        "plans_total": 3,
    }
    assert check(DeptStatus, value)[0] is not None


def test_the_lists_that_are_kept_apart_for_speed_are_those_of_the_schema() -> None:
    assert get_args(DeptStatus.model_fields["status"].annotation) == dept_files.STATUSES
    assert dept_files.DECLARED == DECLARABLE


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"status": "banana"}, "banana"),
        ({"status": ""}, "ERROR: --status required for write action"),
        ({"step": ""}, "ERROR: --step required for write action"),
        ({"dept": "accounting"}, "accounting"),
        ({"dept": "x/../../evil"}, "x/../../evil"),
        ({"dept": "../backend"}, "../backend"),
        ({"dept": ""}, "Usage: dept-status.sh "),
    ],
)
def test_a_name_that_the_protocol_does_not_know_is_refused(
    tmp_path: Path, changed: dict[str, str], said: str
) -> None:
    phase = tmp_path / "a" / "01-auth"
    phase.mkdir(parents=True)
    done = write(phase, **changed)  # type: ignore[arg-type]
    assert (done.code, done.out, said in done.err) == (1, "", True)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_unknown_step_is_written_with_a_warning(tmp_path: Path) -> None:
    done = write(tmp_path, step="post_task_qa")
    assert (done.code, done.out, "post_task_qa" in done.err) == (0, "", True)
    assert on_disk(tmp_path)["step"] == "post_task_qa"


@pytest.mark.parametrize("count", ["three", "-1", "1.5", "", "٣", "9" * 30])
def test_a_counter_that_is_no_count_writes_nothing(tmp_path: Path, count: str) -> None:
    path = plant(tmp_path, json.dumps(OLD))
    done = write(tmp_path, "--plans-complete", count)
    assert (done.code, "--plans-complete" in done.err) == (1, True)
    assert json.loads(path.read_text()) == OLD


def test_an_unknown_phase_is_refused_and_not_made(tmp_path: Path) -> None:
    done = call(
        "dept-status",
        "--dept",
        "backend",
        "--phase-dir",
        "phases/09-nope",
        "--action",
        "read",
        cwd=tmp_path,
    )
    assert (done.code, "phases/09-nope" in done.err, os.listdir(tmp_path)) == (1, True, [])


def test_an_unknown_action_is_refused(tmp_path: Path) -> None:
    done = call(
        "dept-status",
        "--dept",
        "backend",
        "--phase-dir",
        tmp_path,
        "--action",
        "delete",
        cwd=tmp_path,
    )
    assert (done.code, "delete" in done.err) == (1, True)


@pytest.mark.parametrize(
    "text", ['{"dept": "backend", "sta', "[1]", "", "\x00", '{"a": NaN}', "[" * 100_000]
)
def test_a_torn_or_foreign_file_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = plant(tmp_path, text)
    done = write(tmp_path)
    assert (done.code, done.out) == (1, "")
    assert str(path) in done.err
    assert path.read_text() == text


def test_a_link_in_the_files_place_is_neither_followed_nor_replaced(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("{}")
    (tmp_path / ".dept-status-backend.json").symlink_to(target)
    assert [write(tmp_path).code, read(tmp_path).code] == [1, 1]
    assert target.read_text() == "{}"


def test_a_folder_that_cannot_be_written_is_said_and_the_old_file_stays(tmp_path: Path) -> None:
    prefix = ("setpriv", "--bounding-set=-all") if os.geteuid() == 0 else ()
    if prefix and not shutil.which("setpriv"):
        pytest.skip("root may write everywhere, and there is no setpriv to take that away")
    path = plant(tmp_path, json.dumps(OLD))
    tmp_path.chmod(0o555)
    done = call(
        "dept-status", "--dept", "backend", "--phase-dir", tmp_path, "--action", "write", "--status", "complete",
        "--step", "signoff", cwd=tmp_path, prefix=prefix,
    )  # fmt: skip
    tmp_path.chmod(0o755)
    assert (done.code, "Permission denied" in done.err) == (1, True)
    assert json.loads(path.read_text()) == OLD


# --- the lock --------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not shutil.which("flock"), reason="needs flock(1)")
def test_a_lock_held_by_a_stopped_process_ends_in_2_and_names_it(tmp_path: Path) -> None:
    path = plant(tmp_path, json.dumps(OLD))
    lock = tmp_path / ".dept-lock-backend"
    command = ["flock", str(lock), "sh", "-c", "echo held; exec sleep 60"]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    with holder:
        assert holder.stdout and holder.stdout.readline() == b"held\n"
        os.killpg(holder.pid, signal.SIGSTOP)
        done = write(tmp_path)
        os.killpg(holder.pid, signal.SIGKILL)
    assert (done.code, done.out) == (2, "")
    assert str(lock) in done.err
    assert json.loads(path.read_text()) == OLD


@pytest.mark.proves("002:286d")
def test_writers_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        codes = list(
            pool.map(lambda number: write(tmp_path, "--plans-complete", number).code, range(8))
        )
    assert codes == [0] * 8
    assert check(DeptStatus, on_disk(tmp_path))[1] == ()
    assert sorted(os.listdir(tmp_path)) == [".dept-lock-backend", ".dept-status-backend.json"]
