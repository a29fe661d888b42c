"""Where an output file that somebody typed may be written: in no git directory."""

from __future__ import annotations

import os

from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.system.files import parts_to_write
from yolo_fs.system.store import environment


def resolve_typed_path(typed: str, start: str, root: str | None) -> tuple[str, str]:
    """Return the folder below which a file named by a person lies, and its absolute path.

    `typed`: relative to `start`. `root`: the work tree, resolved. Inside it no link may lead to the
    file; elsewhere the person's own links may. The folder is the work tree, or else the last folder
    that exists.

    Raises:
        YoloError: PATH_ESCAPES for a place in a git directory, or that some system takes for one.
    """
    *folders, name = os.path.abspath(os.path.join(start, typed)).split("/")[1:]
    place, is_inside = "/", root == "/"
    for part in folders:
        is_inside = is_inside or place == root
        place = os.path.join(place, part) if is_inside else os.path.realpath(f"{place}/{part}")
    path = os.path.join(place, name)
    top = root if root is not None and path.startswith(f"{root.rstrip('/')}/") else "/"
    if parts_to_write(path.removeprefix(top).lstrip("/")) is None or _is_of_git(place):
        raise YoloError(
            Reason.PATH_ESCAPES,
            f"{safe(typed, 300)}: expected a file outside of any git directory",
            hint="Give another place.",
            exit_code=Exit.USAGE,
        )
    if top == "/":
        top = place
        while not os.path.lexists(top):
            top = os.path.dirname(top)
        with environment(path):
            os.close(os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    return top, path


def _is_of_git(folder: str) -> bool:
    """Return whether a folder is a git directory, by whatever name, or lies in one."""
    while True:
        parts = ("objects", "refs")
        if os.path.lexists(f"{folder}/HEAD") and all(os.path.isdir(f"{folder}/{p}") for p in parts):
            return True
        if folder == os.path.dirname(folder):
            return False
        folder = os.path.dirname(folder)
