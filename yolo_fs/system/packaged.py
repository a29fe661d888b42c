"""Finds files that the wheel carries beside the code, or the checkout of an editable install."""

from __future__ import annotations

from pathlib import Path

import yolo_fs
from yolo_fs.core.reasons import Exit, Reason, YoloError


def packaged(in_wheel: str, in_checkout: str) -> Path:
    """Return the path of a packaged file or folder.

    Raises:
        YoloError: FILE_MISSING where the installation is not whole.
    """
    package = Path(yolo_fs.__file__).parent
    for place in (package / in_wheel, package.parent / in_checkout):
        if place.exists():
            return place
    raise YoloError(
        Reason.FILE_MISSING,
        f"the installation lacks {in_wheel}",
        hint="Install yolo-fs again.",
        exit_code=Exit.DEFECT,
    )
