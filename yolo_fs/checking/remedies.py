"""What to do about each reason: the tables of docs/operations.md, which the wheel carries."""

from __future__ import annotations

from yolo_fs.core.reasons import Reason
from yolo_fs.system.packaged import packaged


def remedy_of(reason: Reason) -> str:
    """Return what to do about a reason; empty where the page has no row of it.

    Raises:
        YoloError: FILE_MISSING where the installation is not whole.
    """
    page = packaged("_operations.md", "docs/operations.md").read_text(encoding="utf-8")
    head = f"| `{reason.value}` | "
    row = next((line for line in page.splitlines() if line.startswith(head)), "")
    return row.removeprefix(head).partition(" | ")[2].removesuffix(" |")
