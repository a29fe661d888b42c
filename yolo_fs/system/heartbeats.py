"""Records agents' heartbeats, one line each, in `.git/yolo-fs/agents.jsonl`, and compactions.

Hooks append before and after each tool call of each agent. Only the standard library and the lookup
of the observer are therefore imported here, and no typing either. Appending never waits and never
syncs: a full disk costs heartbeats, never work. See docs/dev/faults.md#f06 and #f53.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import time

from yolo_fs.core.foreign_json import parse
from yolo_fs.system.warm_path import make_folder, open_or_create, open_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FILE = "agents.jsonl"
OLDER = "agents.1.jsonl"
"""The file before this one; both are read, nothing older is needed."""
MOST_BYTES = 512 * 1024
"""A larger file is rotated; ten busy agents fill it in an hour and a half."""
EVERY_S = 15.0
"""At most one heartbeat per agent and interval."""
_TAIL_BYTES = 8 * 1024
"""How much of the file is searched for a recent heartbeat."""
_LOOKS, _LOOK_S = 3, 0.001
"""Attempts, and the pause between them, before an unterminated line counts as torn."""
_LONGEST = 200
"""Most characters of a name given by a host."""
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def active_agent(root: str) -> str:
    """Return the agent that the planning tree names as active; empty for none."""
    path = os.path.join(root, ".yolo-planning", ".active-agent")
    if not os.path.isfile(path):  # to open a pipe would wait for its writer
        return ""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_LONGEST).strip()
    except OSError:
        return ""


def append_heartbeat(folder: str, event: str, agent: str, instance: str, session: str) -> bool:
    """Append that a host ran a hook, unless the agent has a recent heartbeat of the same kind."""
    line = {
        "event": event,
        "agent": agent[:_LONGEST],
        "id": instance[:_LONGEST],
        "session": session[:_LONGEST],
    }
    return append(folder, line, is_beat=True)


def append(folder: str, line: Mapping[str, Any], *, is_beat: bool = False) -> bool:
    """Append one line with the current time; False when that fails, which is never an error."""
    now = time.time()
    try:
        place = _own(folder)
        try:
            out = _open(place)
        finally:
            os.close(place)
        try:
            tail = _tail(out)
            if is_beat and _has_beat(tail, line, now):
                return True
            data = (json.dumps({"at": _iso(now), **line}) + "\n").encode("ascii")
            return os.write(out, data if tail[-1:] in (b"\n", b"") else b"\n" + data) > 0
        finally:
            os.close(out)
    except (OSError, ValueError):
        return False


def _own(folder: str) -> int:
    """Open our folder; create it if it is missing."""
    with contextlib.suppress(FileExistsError):
        make_folder(folder, 0o700)
    return open_own(folder)


def _open(place: int) -> int:
    out = open_or_create(place, FILE, _FLAGS, 0o600)
    status = os.fstat(out)
    if not stat.S_ISREG(status.st_mode):
        os.close(out)
        raise OSError(f"{FILE} is not a regular file")
    if status.st_size >= MOST_BYTES and _put_aside(place, out):
        os.close(out)
        return os.open(FILE, _FLAGS, 0o600, dir_fd=place)
    return out


def _put_aside(place: int, out: int) -> bool:
    """Rename the file unless another process just does; a file too long is better than none."""
    try:
        fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
        named = os.stat(FILE, dir_fd=place, follow_symlinks=False)
        if os.path.samestat(os.fstat(out), named):
            os.replace(FILE, OLDER, src_dir_fd=place, dst_dir_fd=place)
    except OSError:
        return False
    return True


def _tail(out: int) -> bytes:
    """Return the end of the file. Retry while another process may be in the middle of a write."""
    for _ in range(_LOOKS):
        size_bytes = os.fstat(out).st_size
        start = max(0, size_bytes - _TAIL_BYTES)
        tail = os.pread(out, _TAIL_BYTES, start) if size_bytes else b""
        if tail[-1:] in (b"\n", b""):
            break
        time.sleep(_LOOK_S)
    return tail


def _has_beat(tail: bytes, line: Mapping[str, Any], now: float) -> bool:
    """Return whether the agent's last line is a heartbeat of the same kind within the interval."""
    since, until, mark = _iso(now - EVERY_S), _iso(now), json.dumps(line["id"]).encode()
    for text in reversed(tail.split(b"\n")):
        try:
            seen = parse(text, _TAIL_BYTES) if mark in text else None
        except ValueError:
            continue
        if isinstance(seen, dict) and seen.get("id") == line["id"]:
            alike = all(seen.get(key) == line[key] for key in ("agent", "session"))
            works = line["event"] in WORK and seen.get("event") in WORK
            return alike and works and since < str(seen.get("at")) <= until
    return False


WORK = ("user-prompt-submit", "pre-tool-use", "post-tool-use", "post-tool-use-failure")
"""Events that only show that the agent works; a test keeps them equal to the protocol table."""


def _iso(at_s: float) -> str:
    whole, rest = divmod(at_s, 1)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{int(rest * 1000):03}Z"


def mark_compacted(folder: str, session: str) -> None:
    """Leave a mark for the session's next prompt: some hosts run no hook at a compaction.

    A full disk costs the reminder, never the session.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        place = _own(folder)
        try:
            os.close(os.open(_mark(session), flags, 0o600, dir_fd=place))
        finally:
            os.close(place)
    except OSError:
        pass


def take_compacted(folder: str, session: str) -> bool:
    """Return whether the session was compacted since the last call, and remove the mark."""
    try:
        place = open_own(folder)
        try:
            os.unlink(_mark(session), dir_fd=place)
        finally:
            os.close(place)
    except OSError:
        return False
    return True


def _mark(session: str) -> str:
    """Return the mark of a session; its name comes from the host and is not trusted in a path."""
    import hashlib

    digest = hashlib.sha256(session.encode(errors="replace")).hexdigest()[:16]
    return f"compacted-{digest}"
