"""The handoff packet between roles, the HANDOFF.md that holds one, and the handoff.json of an
agent.

See docs/dev/sources.md#document-001 and #document-004.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from yolo_fs.core.reasons import Fault, Reason
from yolo_fs.schemas.base import AfterValidator, Field, Shape, fault
from yolo_fs.schemas.check import check
from yolo_fs.schemas.formats import OneLine, RelativePath

__all__ = [
    "BranchName",
    "DirectivePacket",
    "Guid",
    "HandoffFile",
    "HandoffJson",
    "Packet",
    "Role",
    "read_handoff_json",
]

Role = Literal["architect", "executor", "pair", "auditor"]
"""The four roles."""

_NOT_IN_A_BRANCH = re.compile(
    # control characters, space and what revisions and globs are made of
    r"[\x00-\x20\x7f~^:?*\[\\]"
    r"|\.\.|@\{|//|^[/-]|[/.]$|^@$|^HEAD$"
    r"|(?:^|/)\.|\.lock(?:/|$)"
)
"""What no branch name holds. See git-check-ref-format(1)."""

_PLACEHOLDER = re.compile(r"\s*<[^<>]*>\s*")


def _names_a_branch(text: str) -> str:
    if text == "n/a" or _NOT_IN_A_BRANCH.search(text):
        raise fault(
            Reason.BAD_FORMAT,
            f"{text!r} is not a git branch name",
            expected="a branch name such as feature/login",
        )
    return text


def _require_filled_in(text: str) -> str:
    if _PLACEHOLDER.fullmatch(text):
        raise fault(
            Reason.EMPTY_VALUE,
            f"the placeholder {text!r} was never filled in",
            expected="the value itself",
        )
    return text


def _is_given(text: str) -> str:
    if text == "n/a":
        raise fault(
            Reason.BAD_FORMAT,
            "'n/a' is for packets outside a directive session",
            expected="the task's path, such as tasks/02-login-form.md",
        )
    return text


Guid = Annotated[
    str,
    Field(
        pattern=r"^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$",
        examples=["4f1d2c7a-93b8-4c0e-a6d5-2f8e7b1c9d30"],
        description="a GUID",
    ),
]
GuidOrNot = Annotated[
    str,
    Field(
        pattern=r"^(n/a|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$",
        examples=["4f1d2c7a-93b8-4c0e-a6d5-2f8e7b1c9d30"],
        description="a GUID or n/a",
    ),
]
TriggerName = Annotated[
    str,
    Field(
        pattern=r"^[a-z][a-z0-9_-]{0,63}$",
        examples=["architect_ultra_detected"],
        description="a short trigger id",
    ),
]
BranchName = Annotated[
    str,
    Field(min_length=1, examples=["feature/login"], description="a git branch name"),
    AfterValidator(_names_a_branch),
]
"""A branch that git would accept.

`n/a` would be one, yet here it only ever means that the branch is absent.
"""
FilledLine = Annotated[OneLine, AfterValidator(_require_filled_in)]
"""One line that is not a `<placeholder>` of the packet's template."""
FilledPath = Annotated[RelativePath, AfterValidator(_require_filled_in)]


class Packet(Shape):
    """`=== AUTO HANDOFF ===`: nine fields, in this order."""

    from_role: Role
    """Role that stops."""
    to_role: Role
    """Role that continues."""
    trigger: TriggerName
    """Short deterministic id of the trigger; which triggers exist is a rule, not a shape."""
    session_id: GuidOrNot
    """Directive session, or `n/a`."""
    task_file: FilledPath
    """Path of the task, or `n/a`."""
    directive_branch: BranchName
    """Branch that the receiver must be on before any edit."""
    required_reading: FilledPath
    """What is read first; the document's is `apps/web/docs/guides/component-paradigm.md`."""
    objective: FilledLine
    """What the receiving role is to reach, in one line."""
    blocking_rule: FilledLine
    """Rule that keeps the sender from going on, in one line."""


class DirectivePacket(Packet):
    """A packet inside a directive session, where the session and its task are always known."""

    session_id: Guid
    """Directive session."""
    task_file: Annotated[FilledPath, AfterValidator(_is_given)]
    """Path of the task."""


class HandoffFile(Shape):
    """Front matter of `HANDOFF.md`."""

    handoff: DirectivePacket
    """The packet."""


class HandoffJson(Shape):
    """The `handoff.json` that an agent leaves for the orchestrator when it ends.

    Its whole rule is the document's own filter:

        (.status | type == "string") and (.artifacts | type == "array") and (has("next")) and
        (.summary | type == "string")

    so an empty text passes, `next` may be any JSON value, null too, and further keys are free. See
    docs/dev/sources.md#document-004.
    """

    status: str
    """How the agent ended."""
    artifacts: list[Any]
    """What it made."""
    next: Any
    """Agent that continues; the key is required, its value may be null."""
    summary: str
    """What was done."""


def read_handoff_json(value: Mapping[str, Any]) -> tuple[HandoffJson | None, tuple[Fault, ...]]:
    """Return the handoff, or None, with its faults.

    Unknown keys are none in any mode: the filter ignores them.
    """
    shaped, faults = check(HandoffJson, value)
    kept = tuple(fault for fault in faults if fault.reason is not Reason.UNKNOWN_KEY)
    return shaped if isinstance(shaped, HandoffJson) else None, kept
