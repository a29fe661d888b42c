"""A bell is heard by all who listen, rings when the ringer dies, and costs nobody anything else."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from yolo_fs.edges.bell import Bell, Ear

LISTENER = """
import sys
from yolo_fs.edges.bell import Ear
ear = Ear(sys.argv[1])
print(ear.listen(), flush=True)
print(ear.wait(60), flush=True)
"""
RINGER = """
import sys
from yolo_fs.edges.bell import Bell
bell = Bell(sys.argv[1])
print("hangs", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "bell")


@pytest.fixture
def bell(path: str) -> Iterator[Bell]:
    made = Bell(path)
    yield made
    made.close()


@pytest.fixture
def ear(path: str) -> Iterator[Ear]:
    with Ear(path) as made:
        yield made


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def python(processes: list[subprocess.Popen[str]], code: str, path: str) -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", code, path], text=True, **pipes)  # type: ignore[call-overload]
    processes.append(process)
    return process


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_one_ring_wakes_all_processes_that_listen(
    bell: Bell, path: str, processes: list[subprocess.Popen[str]]
) -> None:
    listeners = [python(processes, LISTENER, path) for _ in range(5)]
    assert [said(each) for each in listeners] == ["True"] * 5
    bell.ring()
    assert [said(each) for each in listeners] == ["True"] * 5


def test_who_listens_is_not_woken_before_it_rings(bell: Bell, ear: Ear) -> None:
    assert ear.listen()
    assert not ear.wait(0)
    bell.ring()
    assert ear.wait(0)


def test_what_rings_between_listening_and_sleeping_is_heard(bell: Bell, ear: Ear) -> None:
    ear.listen()
    bell.ring()
    bell.ring()
    assert ear.wait(60)


def test_after_a_ring_one_listens_anew(bell: Bell, ear: Ear) -> None:
    for _ in range(3):
        assert ear.listen() and not ear.wait(0)
        bell.ring()
        assert ear.wait(60)


def test_the_bell_knows_whether_anybody_listens(bell: Bell, ear: Ear) -> None:
    assert not bell.is_heard()
    ear.listen()
    assert bell.is_heard()
    ear.close()
    assert not bell.is_heard()


def test_a_killed_ringer_rings(path: str, ear: Ear, processes: list[subprocess.Popen[str]]) -> None:
    ringer = python(processes, RINGER, path)
    assert said(ringer) == "hangs" and ear.listen()
    os.kill(ringer.pid, signal.SIGKILL)
    assert ear.wait(60)


def test_a_child_of_the_ringer_does_not_hold_the_bell(bell: Bell, ear: Ear) -> None:
    ear.listen()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False) as child:
        bell.ring()
        assert ear.wait(60)
        child.kill()


def test_where_no_bell_hangs_there_is_nothing_to_listen_to(path: str, ear: Ear) -> None:
    assert not ear.listen()
    Path(path).write_text("no pipe")
    assert not ear.listen()
    os.unlink(path)
    os.mkfifo(path + ".elsewhere")
    os.symlink(path + ".elsewhere", path)
    assert not ear.listen()


def test_a_bell_whose_ringer_is_long_gone_is_silent(path: str, ear: Ear) -> None:
    os.mkfifo(path)
    assert ear.listen()
    assert not ear.wait(0)


def test_an_end_takes_the_bell_away_but_not_that_of_a_successor(path: str, tmp_path: Path) -> None:
    first = Bell(path)
    second = Bell(path)
    first.close()
    assert stat.S_ISFIFO(os.stat(path).st_mode)
    second.close()
    assert os.listdir(tmp_path) == []


def test_a_bell_that_cannot_hang_breaks_nothing(tmp_path: Path) -> None:
    bell = Bell(str(tmp_path / "gone" / "bell"))
    bell.ring()
    assert not bell.is_heard()
    bell.close()
    assert os.listdir(tmp_path) == []
