"""What a runner that was killed left is ended, and nobody else."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from yolo_fs.edges.system import boot_id, start_time
from yolo_fs.services.company import agents


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
    )
    yield process
    process.kill()
    process.communicate()


def named(folder: Path, pid: int, start: int | None, boot: str) -> agents.Process | None:
    (folder / "pid").write_text(json.dumps({"pid": pid, "start": start, "boot": boot}))
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
