"""Where a file may be written that a person names."""

from __future__ import annotations

from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.git.discovery import discover
from yolo_fs.system.typed_path import resolve_typed_path


def output_place(typed: str, start: str, ending: str = "") -> tuple[str, str]:
    """Return (folder, path) of an output file that a person named, as `resolve_typed_path` does.

    `ending`: required ending of such files inside a work tree.

    Raises:
        YoloError: PATH_ESCAPES; BAD_NAME for a file in the work tree that ends otherwise, which
            might be an artifact, a setting or code.
    """
    try:
        root = discover(start).root
    except YoloError:
        root = None
    top, path = resolve_typed_path(typed, start, root)
    if top == root and not path.endswith(ending):
        message = f"{safe(typed, 300)}: expected a name that ends in {ending}"
        hint = "Give another name, or a place outside of the repository."
        raise YoloError(Reason.BAD_NAME, message, hint=hint)
    return top, path
