"""The status line of an agent's host, with the standard library alone: what the daemon last said,
read from one file.

A host runs this every few hundred milliseconds and shows the first line; an error would blank it,
so that whatever goes wrong is an empty line and exit 0.
"""

from __future__ import annotations

import os
import stat
import sys
import time

from yolo_fs.cli.hook_question import PLANNING
from yolo_fs.core.foreign_json import parse
from yolo_fs.system.warm_path import own_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

LIMIT_BYTES = 1 << 20
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
LONGEST = 160
"""Characters; a line of a host is not wrapped."""


def main(arguments: Sequence[str]) -> int:
    """Print the line for the work tree that stdin or `-C` names. Always 0."""
    try:
        start = arguments[arguments.index("-C") + 1] if "-C" in arguments[:-1] else _told()
        print(line(start or os.curdir), flush=True)
    except Exception:  # a session goes on without its status line
        return 0
    return 0


def line(start: str) -> str:
    """Return where the team of a work tree stands; nothing where yolo_fs is not at work."""
    root = _root(os.path.abspath(start))
    if not root:
        return ""
    said = _health(root)
    if not _is_alive(said):
        return "yolo-fs: no daemon (yolo-fs start)"
    troubles = [f"{said[key]} {key}" for key in ("held", "rejected") if said.get(key)]
    if failing := len(said.get("troubles") or ()) + int(said.get("standing") or 0):
        troubles.append(f"{failing} in the way (yolo-fs doctor)")
    if _stands_still(said):
        troubles.append("the daemon stands still (yolo-fs restart)")
    parts = [
        str(said.get("headline") or "no phase yet"),
        *troubles,
        *(["degraded"] if said.get("degraded") else []),
    ]
    text = f"yolo-fs: {' | '.join(parts)}"
    return "".join(char if char.isprintable() else "?" for char in text)[:LONGEST]


def _told() -> str:
    """Return the directory that the host works in."""
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    told = parse(sys.stdin.buffer.read(LIMIT_BYTES) or b"{}", LIMIT_BYTES)
    place = told.get("workspace") if isinstance(told.get("workspace"), dict) else {}
    return str(place.get("current_dir") or told.get("cwd") or "")


def _root(folder: str) -> str:
    while not os.path.isdir(os.path.join(folder, PLANNING)):
        if folder == os.path.dirname(folder):
            return ""
        folder = os.path.dirname(folder)
    return folder


def _health(root: str) -> dict[str, Any]:
    folder = own_folder(root)
    if not folder:
        return {}
    try:
        descriptor = os.open(os.path.join(folder, "health.json"), _FLAGS)
    except FileNotFoundError:
        return {}
    with open(descriptor, "rb") as file:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        said = parse(file.read(LIMIT_BYTES), LIMIT_BYTES) if is_file else {}
    return said if isinstance(said, dict) else {}


def _stands_still(said: dict[str, Any]) -> bool:
    """Return whether the daemon has not looked for long, but for what this machine slept."""
    late_s, awake_s = said.get("late_s"), said.get("awake_s")
    if not (isinstance(late_s, int | float) and isinstance(awake_s, int | float)):
        return False
    return late_s > 0 and time.monotonic() - awake_s > late_s and _is_of_this_boot(said)


def _is_of_this_boot(said: dict[str, Any]) -> bool:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip() == said.get("boot")
    except OSError:
        return False


def _is_alive(said: dict[str, Any]) -> bool:
    """Return whether the daemon that wrote this still runs, as far as a process number tells."""
    try:
        os.kill(int(said["pid"]), 0)
    except (KeyError, ValueError, TypeError, OverflowError, OSError):
        return False
    return said.get("running") is True
