"""The product workflow: its agents, the handoffs between them, and where their files lie.

See docs/sources.md#document-003.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class AgentType(StrEnum):
    """Agents of the product workflow; value as in `agent_type`, `label` as in the headings."""

    label: str

    def __new__(cls, name: str, label: str) -> AgentType:
        member = str.__new__(cls, name)
        member._value_ = name
        member.label = label
        return member

    ORCHESTRATOR = "orchestrator", "Orchestrator"
    MARKET_RESEARCH = "market-research", "Market Research Agent"
    PRFAQ = "prfaq", "PRFAQ Agent"
    PRD = "prd", "PRD Agent"
    PROTOTYPE = "prototype", "Prototype Agent"
    AI_FRAMING = "ai-framing", "AI Framing Agent"


@dataclass(frozen=True, slots=True)
class Stored:
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


@dataclass(frozen=True, slots=True)
class Handoff:
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
    Handoff(
        1,
        None,
        AgentType.ORCHESTRATOR,
        ("product_concept", "customer_company", "context_files", "preferences"),
        note="Initial Input",
    ),
    Handoff(
        2,
        AgentType.ORCHESTRATOR,
        AgentType.MARKET_RESEARCH,
        ("research_request", "specific_questions"),
    ),
    Handoff(
        3,
        AgentType.MARKET_RESEARCH,
        AgentType.ORCHESTRATOR,
        ("market_research_summary", "full_research_path"),
        note="for routing to PRFAQ",
    ),
    Handoff(
        4,
        AgentType.ORCHESTRATOR,
        AgentType.AI_FRAMING,
        ("business_context", "market_context"),
        note="AI/ML Products Only",
    ),
    Handoff(
        5, AgentType.AI_FRAMING, AgentType.ORCHESTRATOR, ("ai_framing_summary", "full_framing_path")
    ),
    Handoff(
        6,
        AgentType.ORCHESTRATOR,
        AgentType.PRFAQ,
        ("product_context", "market_context", "ai_context"),
    ),
    Handoff(
        7,
        AgentType.PRFAQ,
        AgentType.ORCHESTRATOR,
        ("prfaq_summary", "working_backwards_answers", "full_prfaq_path"),
    ),
    Handoff(
        8,
        AgentType.ORCHESTRATOR,
        AgentType.PRD,
        ("prfaq_context", "market_context", "ai_context", "user_provided_context"),
    ),
    Handoff(9, AgentType.PRD, AgentType.ORCHESTRATOR, ("prd_summary", "full_prd_path")),
    Handoff(
        10,
        AgentType.ORCHESTRATOR,
        AgentType.PROTOTYPE,
        ("prd_context", "design_context", "data_context"),
    ),
    Handoff(
        11,
        AgentType.PROTOTYPE,
        AgentType.ORCHESTRATOR,
        ("prototype_summary", "testing_readiness"),
        note="Final",
    ),
)


@dataclass(frozen=True, slots=True)
class Recovery:
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
