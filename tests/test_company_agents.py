"""What a runner that was killed left is ended, and nobody else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from yolo_fs.company import agents
from yolo_fs.system.system import boot_id, start_time


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
    )
    yield process
    process.kill()
    process.communicate()


@pytest.fixture(autouse=True)
def own_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def named(folder: Path, pid: int, start: int | None, boot: str) -> agents.Process | None:
    """Let a folder of ours name a process, as a runner before us did."""
    (folder / "pid").write_bytes(agents.note_of(str(folder), agents.Process(pid, start, boot)))
    return agents.found_in(str(folder))


def test_the_group_of_an_agent_is_ended(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    found = named(tmp_path, sleeper.pid, start_time(sleeper.pid), boot_id())
    assert found is not None and found.is_alive
    agents.end_group(found)
    assert sleeper.wait(10) < 0


@pytest.mark.parametrize("stranger", ["its number was given again", "another boot"])
def test_the_group_of_a_stranger_is_left_alone(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], stranger: str
) -> None:
    start, boot = start_time(sleeper.pid), boot_id()
    assert start is not None
    is_reused = stranger.startswith("its number")
    found = named(tmp_path, sleeper.pid, start - is_reused, boot if is_reused else "earlier")
    assert found is not None and not found.is_alive
    agents.end_group(found)
    agents.ask_to_stop(found, str(tmp_path), 1, "timeout")
    time.sleep(0.1)  # a signal would have arrived
    assert sleeper.poll() is None


@pytest.mark.parametrize("pid", [0, 1, -1, -2])
def test_a_number_that_names_a_group_of_others_names_no_agent(tmp_path: Path, pid: int) -> None:
    assert named(tmp_path, pid, None, boot_id()) is None


@pytest.mark.parametrize("proof", [None, "", "0" * 64, "of another folder", 1, []])
def test_whom_a_folder_names_without_our_proof_is_nobodys_agent(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], proof: object
) -> None:
    """Boot and start of a process are no secret: a folder that came along may name any."""
    process = agents.Process(sleeper.pid, start_time(sleeper.pid), boot_id())
    said = json.loads(agents.note_of(str(tmp_path), process))
    other = json.loads(agents.note_of(str(tmp_path / "other"), process))["proof"]
    said["proof"] = other if proof == "of another folder" else proof
    (tmp_path / "pid").write_text(json.dumps(said))
    assert agents.found_in(str(tmp_path)) is None


def test_where_no_key_can_be_kept_nobody_is_proved(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert named(tmp_path, sleeper.pid, start_time(sleeper.pid), boot_id()) is None


@pytest.mark.timeout(20)
@pytest.mark.parametrize("put", [os.mkfifo, os.mkdir, lambda path: os.symlink("secret", path)])
def test_what_stands_in_the_place_of_a_stream_is_neither_followed_nor_waited_for(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    (tmp_path / "secret").write_text("of the user")
    put(tmp_path / agents.STREAM)
    with pytest.raises(OSError):
        agents.printed(str(tmp_path), agents.STREAM)
