"""Handoffs between roles: who hands over to whom on which trigger, and the packet that carries it.

See docs/sources.md#document-001.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DirectiveRole(StrEnum):
    """The four roles of directive execution."""

    ARCHITECT = "architect"
    EXECUTOR = "executor"
    PAIR = "pair"
    AUDITOR = "auditor"


@dataclass(frozen=True, slots=True)
class Trigger:
    """One row of the trigger matrix."""

    number: int
    """Number in the matrix."""
    id: str
    """Deterministic id, as in the packet's `trigger`."""
    senders: tuple[DirectiveRole, ...]
    """Roles that may pull it."""
    receiver: DirectiveRole
    """Who takes over."""
    condition: str
    """When it is met, as printed."""


TRIGGERS = (
    Trigger(
        number=1,
        id="architect_ultra_detected",
        senders=(DirectiveRole.ARCHITECT,),
        receiver=DirectiveRole.EXECUTOR,
        condition="any non archived session with `meta.session_priority: ultra`",
    ),
    Trigger(
        number=2,
        id="auditor_ultra_open",
        senders=(DirectiveRole.AUDITOR,),
        receiver=DirectiveRole.EXECUTOR,
        condition="ultra priority enforcement task requires execution role",
    ),
    Trigger(
        number=3,
        id="executor_scope_or_contract_block",
        senders=(DirectiveRole.EXECUTOR,),
        receiver=DirectiveRole.ARCHITECT,
        condition="allowlist conflict, missing deterministic step detail, or unresolved "
        "deviation decision",
    ),
    Trigger(
        number=4,
        id="pair_out_of_scope",
        senders=(DirectiveRole.PAIR,),
        receiver=DirectiveRole.ARCHITECT,
        condition=(
            "requested change exceeds `apps/web` cleanup boundary or requires backend, "
            "route, or data model decisions"
        ),
    ),
    Trigger(
        number=5,
        id="role_policy_conflict",
        senders=tuple(DirectiveRole),
        receiver=DirectiveRole.ARCHITECT,
        condition="instruction conflict cannot be resolved inside active role constraints",
    ),
)

TRIGGER_BY_ID = {row.id: row for row in TRIGGERS}


class FieldRule(StrEnum):
    """What the value of a packet's field must be."""

    ROLE = "one of the four roles"
    TRIGGER = "a trigger of the matrix that leads from the sender to the receiver"
    SESSION = "the id of a directive session"
    TASK_FILE = "the path of a task file"
    BRANCH = "a non empty git branch name, the session's and the checked out one"
    READING = "the document that the receiver reads first"
    ONE_LINE = "one line of text"


@dataclass(frozen=True, slots=True)
class PacketField:
    """One field of a handoff packet."""

    name: str
    """Key of the field."""
    rule: FieldRule
    """What its value must be."""
    packet: str
    """What stands in a chat packet, as printed."""
    file: str
    """What stands in the front matter of `HANDOFF.md`, as printed."""

    @property
    def may_be_absent(self) -> bool:
        """Return whether a chat packet may say `n/a`."""
        return self.packet.endswith("or n/a>")


_ROLES = "<architect|executor|pair|auditor>"
_READING = "apps/web/docs/guides/component-paradigm.md"
_TRIGGER = "<short deterministic trigger id>"
_BRANCH = "<non empty git branch name>"
_BLOCKING = "<rule that prevents sender from continuing>"

PACKET_HEADING = "=== AUTO HANDOFF ==="

PACKET_FIELDS = (
    PacketField("from_role", FieldRule.ROLE, _ROLES, "architect"),
    PacketField("to_role", FieldRule.ROLE, _ROLES, "executor"),
    PacketField("trigger", FieldRule.TRIGGER, _TRIGGER, _TRIGGER),
    PacketField(
        "session_id",
        FieldRule.SESSION,
        "<directive session guid or n/a>",
        "<directive session guid>",
    ),
    PacketField("task_file", FieldRule.TASK_FILE, "<task path or n/a>", "<task path>"),
    PacketField("directive_branch", FieldRule.BRANCH, _BRANCH, _BRANCH),
    PacketField("required_reading", FieldRule.READING, _READING, _READING),
    PacketField(
        "objective",
        FieldRule.ONE_LINE,
        "<one line objective for receiving role>",
        "<one line objective>",
    ),
    PacketField("blocking_rule", FieldRule.ONE_LINE, _BLOCKING, _BLOCKING),
)
"""In the order of the packet."""
