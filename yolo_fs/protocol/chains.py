"""The chains of the other commands of the routing table: the Lead first, then whom the Lead sends.

What a stage leaves is an artifact like any other, and the next stage begins once the branch has it.
See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from yolo_fs.protocol.departments import Role


class Stage(NamedTuple):
    """One act of a chain."""

    role: Role
    kind: str
    """Of the artifact that it writes."""
    step: str
    """The step of the workflow that it belongs to."""
    does: str


_ASSIGNS = "takes it on, and writes down who is to do what"

CHAINS: Mapping[str, tuple[Stage, ...]] = {
    "debug": (
        Stage(Role.LEAD, "decisions", "implementation", _ASSIGNS),
        Stage(Role.DEBUGGER, "debug-report", "implementation", "investigates, and recommends"),
        Stage(Role.LEAD, "decisions", "code_review", "decides on what the Debugger recommends"),
    ),
    "fix-it": (Stage(Role.LEAD, "plan", "planning", "plans the fix"),),
    "research": (
        Stage(Role.LEAD, "research", "planning", "asks the Scout, as a request"),
        Stage(Role.SCOUT, "research", "research", "answers the Lead's request"),
    ),
    "qa": (
        Stage(Role.LEAD, "decisions", "qa", _ASSIGNS),
        Stage(Role.QA, "verification", "qa", "verifies"),
        Stage(Role.QA_CODE, "qa-code", "qa", "checks the code"),
    ),
}
"""Command → its acts, in order."""

GOES_ON = frozenset({"fix-it"})
"""Commands after whose chain the acts of the phase follow: a plan is carried out like any other."""
