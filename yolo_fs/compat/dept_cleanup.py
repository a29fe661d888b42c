"""`dept-cleanup`: removes the files that departments coordinate by, when a phase is over.

An allow-list decides, so that no plan, summary or other artifact can be touched. A lock that somebody holds is left,
for two holders would follow. Source: protocol 8.3, 3.5, 11 #11; reliability F44.
"""

from __future__ import annotations

import fcntl
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from yolo_fs.compat.arguments import parse
from yolo_fs.reasons import safe

REASONS = ("complete", "failure", "timeout")
REMOVED = (".dept-status-*.json", ".handoff-*", ".dept-lock-*", ".phase-orchestration.json")
WHEN_COMPLETE = (".escalation-resolution-*.json",)
"""The reference never removes these. Before the phase is complete, somebody may still have to read one."""
_LOCK = ".dept-lock-*"


def run(arguments: Sequence[str]) -> int:
    given = parse(arguments, valued=("--phase-dir", "--reason"))
    folder, reason = given.need("--phase-dir"), given.choose("--reason", REASONS)
    if not os.path.isdir(folder):
        print(f"WARNING: phase directory not found: {safe(folder, 500)}", file=sys.stderr)
        return 0
    removed = list(_removed(folder, REMOVED + (WHEN_COMPLETE if reason == "complete" else ())))
    if not removed:
        print(f"No coordination files to clean up in {safe(folder, 500)}")
        return 0
    print(f"Cleaned up {len(removed)} coordination files (reason: {reason}):")
    for name in removed:
        print(f"  removed: {safe(name)}")
    return 0


def _removed(folder: str, patterns: Sequence[str]) -> Iterator[str]:
    """Remove what the patterns name and yield each name."""
    for name in sorted(os.listdir(folder)):
        if not any(fnmatchcase(name, pattern) for pattern in patterns):
            continue
        try:
            if _remove(os.path.join(folder, name)):
                yield name
        except OSError as error:
            print(f"WARNING: not removed: {safe(name)}: {error.strerror}", file=sys.stderr)


def _remove(path: str) -> bool:
    """Remove a file, a link, or the empty directory that stands in for a lock."""
    name, kind = os.path.basename(path), os.lstat(path).st_mode
    if stat.S_ISDIR(kind):
        if fnmatchcase(name, _LOCK):
            os.rmdir(path)
        return fnmatchcase(name, _LOCK)
    if stat.S_ISREG(kind) and fnmatchcase(name, _LOCK) and _is_held(path):
        print(f"WARNING: not removed: {safe(name)}: somebody holds this lock", file=sys.stderr)
        return False
    os.unlink(path)
    return True


def _is_held(path: str) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
