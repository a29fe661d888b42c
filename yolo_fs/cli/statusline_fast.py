"""The status line of an agent's host, from the standard library alone: the daemon's last report,
read from one file.

A host runs this every few hundred milliseconds and shows the first line. An error would blank it,
so any failure gives an empty line and exit 0.
"""

from __future__ import annotations

import os
import stat
import sys
import time

from yolo_fs.cli.hook_question import PLANNING, find_root
from yolo_fs.core.foreign_json import parse
from yolo_fs.system.warm_path import find_write_fault, own_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

LIMIT_BYTES = 1 << 20
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
LONGEST = 160
"""Maximum number of characters; a host does not wrap the line."""
SHORTEST_QUESTION = 20
"""Minimum number of characters of a question that is shown at all."""
MOST_REASONS = 3
"""Maximum number of reasons that are named."""


def main(arguments: Sequence[str]) -> int:
    """Print the line for the work tree that stdin or `-C` names. Always 0."""
    try:
        start = arguments[arguments.index("-C") + 1] if "-C" in arguments[:-1] else _read_folder()
        _print(line(start or os.curdir))
    except Exception:  # a session goes on without its status line
        return 0
    return 0


def _print(text: str) -> None:
    try:
        print(text, flush=True)
    except OSError:  # nobody reads it: the interpreter's last flush must not fail over it either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def line(start: str) -> str:
    """Return the state of the team of a work tree; empty where yolo_fs is not in use."""
    folder = os.path.realpath(start)
    root = _root(folder)
    place = root or find_root(folder)
    try:
        health = _health(place) if place else {}
    except OSError:  # the report is a folder, a link, or of somebody else
        return f"yolo-fs: {_in_the_way(['not_regular'])}"
    if not root:
        return _line_without_tree(health)
    if not _is_alive(health):
        headline = str(health.get("headline"))
        if headline != f"{_latest_phase(root)} complete":
            return "yolo-fs: no daemon (yolo-fs start)"
        return _printable(f"yolo-fs: {headline}, and no daemon has to run")
    troubles = [f"{health[key]} {key}" for key in ("held", "rejected") if health.get(key)]
    reasons = _reasons_in_the_way(health)
    if reasons:
        troubles.append(_in_the_way(reasons))
    if _stands_still(health):
        troubles.append(_why_nothing_is_told(own_folder(root)))
    after = [*troubles, *(["degraded"] if health.get("degraded") else [])]
    headline = str(health.get("headline") or _beginning(root))
    spare = 0 if reasons else _room_beside(*_parts_of_people(health), headline, *after)
    before = [*_parts_of_people(health, spare)]
    headline = _fitted(headline, _room_beside(*before, "", *after))
    return _printable(f"yolo-fs: {' | '.join((*before, headline, *after))}")


def _line_without_tree(health: dict[str, Any]) -> str:
    """Return what is in the way where a daemon runs and the planning tree is gone; else nothing."""
    reasons = _reasons_in_the_way(health) if _is_alive(health) else []
    return _printable(f"yolo-fs: {_in_the_way(reasons)}") if reasons else ""


def _in_the_way(reasons: Sequence[str]) -> str:
    more = f" +{len(reasons) - MOST_REASONS}" if len(reasons) > MOST_REASONS else ""
    return f"{len(reasons)} in the way: {', '.join(reasons[:MOST_REASONS])}{more} (yolo-fs doctor)"


def _room_beside(*parts: str) -> int:
    """Return how many characters are left beside these parts."""
    return LONGEST - len(f"yolo-fs: {' | '.join(parts)}")


def _fitted(headline: str, room: int) -> str:
    """Return the headline shortened, so that what follows it is shown: half a command is none."""
    if len(headline) > room:
        headline = headline.partition(" \u2192 ")[0]
    return headline if len(headline) <= room else f"{headline[: max(room - 1, 0)]}\u2026"


def _parts_of_people(health: dict[str, Any], room: int = 0) -> Iterator[str]:
    """Yield what waits for a person, and who is at work. `room`: characters for the first question,
    which is left out where it would be too short.
    """
    waiting = health.get("waiting")
    if not isinstance(waiting, dict):
        return
    count, at_work = (waiting.get(key) for key in ("count", "at_work"))
    if isinstance(count, int) and count > 0:
        waits = "1 waits" if count == 1 else f"{count} wait"
        first = f": {waiting.get('first')}"
        if len(first) > room:
            first = f"{first[: room - 1]}\u2026" if room > SHORTEST_QUESTION else ""
        yield f"{waits} for you{first} (yolo-fs inbox)"
    if isinstance(at_work, int) and at_work > 0:
        yield f"{at_work} at work"


def _reasons_in_the_way(health: dict[str, Any]) -> list[str]:
    """Return each reason once, first why files are not committed."""
    lists = {
        key: rows if isinstance(rows := health.get(key), list) else []
        for key in ("stuck", "troubles", "standing")  # an older daemon tells a number of the last
    }
    reasons = [
        row.get("reason") for row in lists["stuck"] + lists["troubles"] if isinstance(row, dict)
    ]
    return list(dict.fromkeys(map(str, reasons + lists["standing"])))


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)[:LONGEST]


def _beginning(root: str) -> str:
    """Return what is said where no phase has a committed artifact."""
    phase = _latest_phase(root)
    return f"{phase} waits for its first file" if phase else "no phase yet"


def _latest_phase(root: str) -> str:
    """Return the folder with the highest number, whether or not it is a phase."""
    try:
        names = os.listdir(os.path.join(root, PLANNING, "phases"))
    except OSError:
        return ""
    return max((name for name in names if name[:2].isdecimal()), default="")


def _read_folder() -> str:
    """Return the host's working directory from its input."""
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    payload = parse(sys.stdin.buffer.read(LIMIT_BYTES) or b"{}", LIMIT_BYTES)
    place = payload.get("workspace") if isinstance(payload.get("workspace"), dict) else {}
    return str(place.get("current_dir") or payload.get("cwd") or "")


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
        health = parse(file.read(LIMIT_BYTES), LIMIT_BYTES) if is_file else {}
    return health if isinstance(health, dict) else {}


def _stands_still(health: dict[str, Any]) -> bool:
    """Return whether the daemon's last scan is too old, without the time that the machine slept."""
    late_s, awake_s = health.get("late_s"), health.get("awake_s")
    if not (isinstance(late_s, int | float) and isinstance(awake_s, int | float)):
        return False
    return late_s > 0 and time.monotonic() - awake_s > late_s and _is_of_this_boot(health)


def _why_nothing_is_told(folder: str) -> str:
    """Return why the daemon's report is old: it may have nowhere to write the next one."""
    if fault := find_write_fault(folder):
        return f"1 in the way: {fault} (yolo-fs doctor)"
    return "the daemon has stalled (yolo-fs restart)"


def _is_of_this_boot(health: dict[str, Any]) -> bool:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip() == health.get("boot")
    except OSError:
        return False


def _is_alive(health: dict[str, Any]) -> bool:
    """Return whether the daemon that wrote this still runs, as far as its pid tells."""
    try:
        os.kill(int(health["pid"]), 0)
    except (KeyError, ValueError, TypeError, OverflowError, OSError):
        return False
    return health.get("running") is True
