"""The process that the daemon starts: `python -m yolo_fs.observer FOLDER ROOT LINE`.

It follows the branch while the daemon holds the other end of the line, and answers requests
meanwhile.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pkgutil
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

import yolo_fs
from yolo_fs.system import IS_LINUX
from yolo_fs.system.ask import COLD, FAILPOINTS
from yolo_fs.system.system import end_with_parent

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator


def main() -> int:
    """Observe a work tree."""
    end_with_parent()  # before the imports, which take a second
    folder, root, line = sys.argv[1:]
    return observe(folder, root, int(line))


def observe(folder: str, root: str, line: int) -> int:
    """Follow the branch of the work tree `root`, and answer requests below our `folder` there."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if not IS_LINUX or any(map(os.environ.get, (COLD, FAILPOINTS))):
        return _follow(root, line)
    follower = os.fork()
    if follower == 0:
        end_with_parent()
        os._exit(_follow(root, line))
    os.close(line)
    with _ended_with(follower):
        _import_all()
    gc.collect()
    gc.freeze()
    from yolo_fs.observer.switchboard import Switchboard

    switchboard = Switchboard(folder, follower, lambda connection: _work(root, connection))
    try:
        switchboard.run()
    finally:
        switchboard.close()
    return 0


@contextlib.contextmanager
def _ended_with(child: int) -> Iterator[None]:
    """Exit when the child does: the daemon waits for this process, which is not listening yet."""

    def end(*_: object) -> None:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            os._exit(0)

    before = signal.signal(signal.SIGCHLD, end)
    end()
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, before)


def _follow(root: str, line: int) -> int:
    from yolo_fs.core.reasons import YoloError, safe
    from yolo_fs.observer.following import follow

    try:
        follow(root, line)
    except YoloError as error:  # such as a repository that is gone: the daemon tells what follows
        print(f"yolo-fs: observer: {error.reason.value}: {safe(error.message)}", file=sys.stderr)
        return int(error.exit_code)
    return 0


def _import_all() -> None:
    """Import every verb, and build the shapes."""
    from yolo_fs.core.reasons import YoloError
    from yolo_fs.git.runner import load_git_python
    from yolo_fs.schemas.base import build_shapes
    from yolo_fs.schemas.config import Config
    from yolo_fs.schemas.plain_values import shape_of

    for module in pkgutil.walk_packages(yolo_fs.__path__, "yolo_fs.", lambda _: None):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module.name)
    for name in ("rich.table", "rich.progress", "pydantic.json_schema"):
        importlib.import_module(name)
    with contextlib.suppress(YoloError):
        load_git_python()
    shape_of(Config)
    build_shapes()


def _work(root: str, connection: socket.socket) -> NoReturn:
    """Run as a worker: answer requests from the connection until it closes."""
    from yolo_fs.observer.answers import Answerer
    from yolo_fs.observer.switchboard import AGAIN, FOLLOW, parse_task

    answerer = Answerer(root)
    while not answerer.is_used_up:
        length = int.from_bytes(_read_exactly(connection, 4), "big")
        task = _read_exactly(connection, length)
        if task == FOLLOW:
            answer = b"" if answerer.follow() else AGAIN
        else:
            answer = answerer.answer(*parse_task(task))
        connection.sendall(len(answer).to_bytes(4, "big") + answer)
    os._exit(0)


def _read_exactly(connection: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        part = connection.recv(count)
        if not part:
            os._exit(0)
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


if __name__ == "__main__":
    sys.exit(main())
