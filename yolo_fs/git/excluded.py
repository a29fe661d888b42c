"""Hides our files from git in one repository through `info/exclude`.

git has that file for rules that no other clone should get. A `.gitignore` would be either another
file of the user's that we change, or another file that git shows. Only our own lines are ever added
or removed. See docs/dev/faults.md#f33.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from yolo_fs.git.repository import Repository
from yolo_fs.system.files import content_of
from yolo_fs.system.store import SHARED, environment, make_folders, open_regular, write_atomic

_HEAD = "# Kept by yolo-fs beside the branch."
_NO_END = "# (The line above had no end.)"


def hide(repository: Repository, patterns: Sequence[str]) -> None:
    """Hide untracked files that match a pattern from git.

    Raises:
        YoloError: as `write_atomic`; NOT_REGULAR where a link is in its place.
    """
    path = os.path.join(repository.common_dir, "info", "exclude")
    before = content_of(path)
    present = {line.strip() for line in before.splitlines()}
    missing = [line for line in patterns if line.encode() not in present]
    if not missing:
        return
    is_ended = not before or before.endswith(b"\n")
    start = b"" if is_ended else b"\n"
    head = []
    if _HEAD.encode() not in present:
        head = [_HEAD] if is_ended else [_HEAD, _NO_END]
    make_folders(os.path.dirname(path), root=repository.common_dir)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    with (
        environment(path),
        os.fdopen(open_regular(path, flags, SHARED, repository.common_dir), "wb") as file,
    ):
        file.write(start + "".join(f"{line}\n" for line in (*head, *missing)).encode())


def show(repository: Repository, patterns: Sequence[str]) -> bool:
    """Remove the lines of `hide`; return whether there were any.

    Raises:
        YoloError: as `write_atomic`.
    """
    path = os.path.join(repository.common_dir, "info", "exclude")
    before = content_of(path)
    start, mark, ours = before.partition(f"{_HEAD}\n".encode())
    known = {pattern.encode() for pattern in (*patterns, _NO_END)}
    if ours.startswith(_NO_END.encode()):
        start = start.removesuffix(b"\n")
    rest = b"".join(line for line in ours.splitlines(True) if line.strip() not in known)
    if mark:
        write_atomic(path, start + rest, root=repository.common_dir, mode=SHARED)
    return bool(mark)


def is_hiding(repository: Repository) -> bool:
    """Return whether there are lines of `hide`."""
    path = os.path.join(repository.common_dir, "info", "exclude")
    return f"{_HEAD}\n".encode() in content_of(path)
