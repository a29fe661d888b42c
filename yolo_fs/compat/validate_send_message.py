"""`validate-send-message`: warns when an agent writes to an agent of another department. Always 0;
advice only.
"""

from __future__ import annotations

from collections.abc import Sequence

from yolo_fs.compat.hook import advise, content, read_input, tool_input
from yolo_fs.protocol.departments import WORKING
from yolo_fs.reasons import safe

ACTIVE_AGENT = ".yolo-planning/.active-agent"
_SHARED = ("critic", "scout", "debugger", "security")
_TALKS_TO_ALL = ("shared", "owner")


def run(_: Sequence[str]) -> int:
    said = read_input()
    recipient = tool_input(said, "recipient")
    sender = (content(ACTIVE_AGENT) or b"").decode("utf-8", "replace").strip()
    if (
        said.get("tool_name") == "SendMessage"
        and recipient
        and sender
        and not _may_write(sender, recipient)
    ):
        whose = f"{safe(sender)} ({_department(sender)}) to {safe(recipient)} ({_department(recipient)})"
        advise(
            f"WARNING: cross-department message from {whose}; departments hand over by files, or through the Owner"
        )
    return 0


def _may_write(sender: str, recipient: str) -> bool:
    ours, theirs = _department(sender), _department(recipient)
    return ours == theirs or ours in _TALKS_TO_ALL or theirs in _TALKS_TO_ALL


def _department(name: str) -> str:
    own = name.removeprefix("yolo-")
    if own == name:
        return "unknown"
    if own == "owner":
        return "owner"
    if own in _SHARED:
        return "shared"
    return next(
        (row.name.value for row in reversed(WORKING) if own.startswith(row.prefix)), "unknown"
    )
