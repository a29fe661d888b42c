"""What to do about each reason: the tables of docs/operations.md, which the wheel carries."""

from __future__ import annotations

import re

from yolo_fs.core.reasons import Reason
from yolo_fs.system.packaged import packaged

_ROW = re.compile(r"^\| `([a-z0-9_]+)` \| .+? \| (.+) \|$", re.MULTILINE)


def remedy_of(reason: Reason) -> str:
    """Return what to do about a reason; empty where the page has no row of it.

    Raises:
        YoloError: FILE_MISSING where the installation is not whole.
    """
    page = packaged("_operations.md", "docs/operations.md").read_text(encoding="utf-8")
    return next((remedy for code, remedy in _ROW.findall(page) if code == reason.value), "")
