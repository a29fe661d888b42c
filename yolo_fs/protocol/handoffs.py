"""Handoffs: between roles, who hands over to whom on which trigger; in the product workflow, its
agents, what they hand each other, and where their files lie.

See docs/dev/sources.md#document-001 and #document-003.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from yolo_fs.core.labelled import Labelled


class DirectiveRole(StrEnum):
    """The four roles of directive execution."""

    ARCHITECT = "architect"
    EXECUTOR = "executor"
    PAIR = "pair"
    AUDITOR = "auditor"


def directive_role(name: str) -> str:
    """Return the role of directive execution that a name says, with or without `yolo-` and a
    number, or nothing.
    """
    plain = name.strip().lower().removeprefix("yolo-").rstrip("0123456789").rstrip("-")
    return plain if plain in set(DirectiveRole) else ""


class Trigger(NamedTuple):
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


class PacketField(NamedTuple):
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
        # The document's own guide is there in one repository of the world.
        return self.packet.endswith("or n/a>") or self.rule is FieldRule.READING


_ROLES = "<architect|executor|pair|auditor>"
USUAL_READING = "apps/web/docs/guides/component-paradigm.md"
"""What a packet of document 001 names as required reading."""
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
    PacketField("required_reading", FieldRule.READING, USUAL_READING, USUAL_READING),
    PacketField(
        "objective",
        FieldRule.ONE_LINE,
        "<one line objective for receiving role>",
        "<one line objective>",
    ),
    PacketField("blocking_rule", FieldRule.ONE_LINE, _BLOCKING, _BLOCKING),
)
"""In the order of the packet."""


class AgentType(Labelled):
    """Agents of the product workflow; value as in `agent_type`, `label` as in the headings."""

    ORCHESTRATOR = "orchestrator", "Orchestrator"
    MARKET_RESEARCH = "market-research", "Market Research Agent"
    PRFAQ = "prfaq", "PRFAQ Agent"
    PRD = "prd", "PRD Agent"
    PROTOTYPE = "prototype", "Prototype Agent"
    AI_FRAMING = "ai-framing", "AI Framing Agent"


class Stored(NamedTuple):
    """One kind of file that the workflow leaves."""

    name: str
    """File name with gaps in brackets, as printed."""
    directory: str
    """Directory below the project root."""
    producer: AgentType | None
    """The agent that writes it; None when whoever hands over does."""


STORAGE = (
    Stored(
        "handoff_[session-id]_[source]_to_[target]_[timestamp].json", "documents/handoffs", None
    ),
    Stored(
        "MarketResearch_[ProductSlug]_[YYYY-MM-DD].json", "documents", AgentType.MARKET_RESEARCH
    ),
    Stored("AIFraming_[ProductSlug]_[YYYY-MM-DD].md", "documents", AgentType.AI_FRAMING),
    Stored("AIFraming_[ProductSlug]_[YYYY-MM-DD].html", "documents", AgentType.AI_FRAMING),
    Stored("PRFAQ_[ProductSlug]_[YYYY-MM-DD].md", "documents", AgentType.PRFAQ),
    Stored("PRFAQ_[ProductSlug]_[YYYY-MM-DD].html", "documents", AgentType.PRFAQ),
    Stored("PRD_[ProductSlug]_[YYYY-MM-DD].md", "documents", AgentType.PRD),
    Stored("PRD_[ProductSlug]_[YYYY-MM-DD].html", "documents", AgentType.PRD),
    Stored("DesignSystem_[ProductSlug]_[YYYY-MM-DD].html", "documents", AgentType.PROTOTYPE),
    Stored("Prototype_[ProductSlug]_[YYYY-MM-DD].md", "documents", AgentType.PROTOTYPE),
    Stored("Screen_[ScreenName]_[ProductSlug]_[YYYY-MM-DD].html", "documents", AgentType.PROTOTYPE),
    Stored("ClickablePrototype_[ProductSlug]_[YYYY-MM-DD].html", "documents", AgentType.PROTOTYPE),
    Stored("ProjectDashboard_[ProductSlug]_[YYYY-MM-DD].html", "documents", AgentType.ORCHESTRATOR),
)


class Handoff(NamedTuple):
    """One of the eleven handoffs; the section that prints its payload is its number."""

    number: int
    """Number of its section."""
    sender: AgentType | None
    """None for the user."""
    receiver: AgentType
    """Who goes on."""
    payload: tuple[str, ...]
    """Keys of `payload`, in order."""
    note: str = ""
    """What the heading adds in parentheses."""


HANDOFFS = (
    Handoff(1, None, AgentType.ORCHESTRATOR,
        ("product_concept", "customer_company", "context_files", "preferences"),
        note="Initial Input"),
    Handoff(2, AgentType.ORCHESTRATOR, AgentType.MARKET_RESEARCH,
        ("research_request", "specific_questions")),
    Handoff(3, AgentType.MARKET_RESEARCH, AgentType.ORCHESTRATOR,
        ("market_research_summary", "full_research_path"), note="for routing to PRFAQ"),
    Handoff(4, AgentType.ORCHESTRATOR, AgentType.AI_FRAMING, ("business_context", "market_context"),
        note="AI/ML Products Only"),
    Handoff(5, AgentType.AI_FRAMING, AgentType.ORCHESTRATOR,
        ("ai_framing_summary", "full_framing_path")),
    Handoff(6, AgentType.ORCHESTRATOR, AgentType.PRFAQ,
        ("product_context", "market_context", "ai_context")),
    Handoff(7, AgentType.PRFAQ, AgentType.ORCHESTRATOR,
        ("prfaq_summary", "working_backwards_answers", "full_prfaq_path")),
    Handoff(8, AgentType.ORCHESTRATOR, AgentType.PRD,
        ("prfaq_context", "market_context", "ai_context", "user_provided_context")),
    Handoff(9, AgentType.PRD, AgentType.ORCHESTRATOR, ("prd_summary", "full_prd_path")),
    Handoff(10, AgentType.ORCHESTRATOR, AgentType.PROTOTYPE,
        ("prd_context", "design_context", "data_context")),
    Handoff(11, AgentType.PROTOTYPE, AgentType.ORCHESTRATOR,
        ("prototype_summary", "testing_readiness"), note="Final"),
)  # fmt: skip


class Recovery(NamedTuple):
    """One of the four ways that the orchestrator has after an error handoff."""

    number: int
    """Number in the list."""
    text: str
    """As printed."""


RECOVERIES = (
    Recovery(1, "Retry the failed agent"),
    Recovery(2, "Request user intervention"),
    Recovery(3, "Skip to next phase with degraded input"),
    Recovery(4, "Abort workflow"),
)
