"""The process that the daemon starts: `python -m yolo_fs.observer FOLDER ROOT`.

It ends with its stdin, a pipe that only the daemon holds open.
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
from yolo_fs.edges.system import end_with_parent

if TYPE_CHECKING:
    import socket


def main() -> int:
    """Serve below the given folder, for its work tree."""
    end_with_parent()  # before the imports, which take a second
    from yolo_fs.observer.switchboard import Switchboard

    folder, root = sys.argv[1:]
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    lifeline = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.close(nothing)
    _import_all()
    gc.collect()
    gc.freeze()
    switchboard = Switchboard(folder, lifeline, lambda connection: _work(root, connection))
    try:
        switchboard.run()
    finally:
        switchboard.close()
    return 0


def _import_all() -> None:
    """Import every verb, and build the shapes."""
    from yolo_fs.edges.git.runner import load_git_python
    from yolo_fs.reasons import YoloError
    from yolo_fs.schemas.base import build_shapes, shape_of
    from yolo_fs.schemas.config import Config

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
    """Be a worker: answer what comes along the line until it ends."""
    from yolo_fs.observer.answers import Answerer
    from yolo_fs.observer.switchboard import FOLLOW

    answerer = Answerer(root)
    while not answerer.is_used_up:
        length = int.from_bytes(_exactly(connection, 4), "big")
        question = _exactly(connection, length)
        answer = b""
        if question == FOLLOW:
            answerer.follow()
        else:
            answer = answerer.answer(question)
        connection.sendall(len(answer).to_bytes(4, "big") + answer)
    os._exit(0)


def _exactly(connection: socket.socket, count: int) -> bytes:
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
