"""Payloads that come back: what each agent reports to the orchestrator, and the error of any of
them.

Every text of a `…_summary` is a summary, so fewer than 500 characters long. See
docs/dev/sources.md#document-003.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from yolo_fs.schemas.base import Field, Shape
from yolo_fs.schemas.formats import RelativePath, Summary500, Text


def _path_of(word: str, ending: str, product: str, meaning: str) -> Any:
    """Return the field of a path that the document's "File Storage Convention" gives."""
    return Field(
        pattern=rf"^documents/{word}_[^/\\\s]+_[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}\.{ending}$",
        examples=[f"documents/{word}_{product}_2026-02-19.{ending}"],
        description=f"path of the {meaning}",
    )


ResearchPath = Annotated[str, _path_of("MarketResearch", "json", "Harbor_Ledger", "research")]
FramingPath = Annotated[str, _path_of("AIFraming", "md", "Field_Lens", "framing")]
PrfaqPath = Annotated[str, _path_of("PRFAQ", "md", "Harbor_Ledger", "press release")]
PrdPath = Annotated[str, _path_of("PRD", "md", "Harbor_Ledger", "requirements")]


# --- 3. Market Research → Orchestrator ------------------------------------------------------------


class Competitor(Shape):
    """A competitor and its price."""

    name: Summary500
    """Name."""
    positioning: Summary500
    """How it presents itself."""
    pricing_range: Summary500
    """What it charges."""


class PainPoint(Shape):
    """What hurts the customer."""

    pain_point: Summary500
    """What hurts."""
    severity: Literal["critical", "high", "medium"]
    """How much."""


class MarketResearchSummary(Shape):
    """Findings about the market."""

    market_opportunity: Summary500
    """Opportunity, in 2 or 3 sentences."""
    tam: Summary500
    """Total addressable market, such as $50B."""
    growth_rate: Summary500
    """Growth, such as 12% CAGR."""
    competitive_position: Summary500
    """Position, in 2 or 3 sentences."""
    top_competitors: list[Competitor]
    """Competitors."""
    key_customer_pain_points: list[PainPoint]
    """What hurts."""
    differentiation_opportunities: list[Summary500]
    """How to be different."""
    recommended_pricing_position: Literal["premium", "mid-market", "value", "freemium"]
    """Recommended price position."""
    key_risks: list[Summary500]
    """Risks."""


class MarketResearchReport(Shape):
    """3. Market Research Agent → Orchestrator."""

    market_research_summary: MarketResearchSummary
    """Findings about the market."""
    full_research_path: ResearchPath
    """Whole research."""


# --- 5. AI Framing → Orchestrator -----------------------------------------------------------------


class InputsAndOutputs(Shape):
    """What a learning system takes and gives."""

    inputs: list[Summary500]
    """What it takes."""
    outputs: list[Summary500]
    """What it gives."""


class SelectedMetric(Shape):
    """A figure to reach."""

    metric: Summary500
    """Figure."""
    threshold: Summary500
    """Value to reach."""
    business_mapping: Summary500
    """What it means for the business."""


class AiFramingSummary(Shape):
    """The problem, put as one of learning."""

    ml_problem_statement: Summary500
    """Problem."""
    input_output_definition: InputsAndOutputs
    """What goes in and out."""
    selected_metrics: list[SelectedMetric]
    """Figures to reach."""
    data_strategy: Summary500
    """Data, in 2 or 3 sentences."""
    feasibility_assessment: Literal["high", "medium", "low"]
    """How feasible it is."""
    key_technical_risks: list[Summary500]
    """Risks."""


class AiFramingReport(Shape):
    """5. AI Framing Agent → Orchestrator."""

    ai_framing_summary: AiFramingSummary
    """The problem, put as one of learning."""
    full_framing_path: FramingPath
    """Whole framing."""


# --- 7. PRFAQ → Orchestrator ----------------------------------------------------------------------


class PrfaqSummary(Shape):
    """The press release in short."""

    headline: Summary500
    """Headline."""
    customer_definition: Summary500
    """Customer, in 2 or 3 sentences."""
    problem_statement: Summary500
    """Problem, in 2 or 3 sentences."""
    solution_description: Summary500
    """Solution, in 2 or 3 sentences."""
    key_customer_benefit: Summary500
    """Benefit."""
    success_metrics: list[Summary500]
    """Figures of success."""
    launch_approach: Summary500
    """How to launch."""
    top_faq_themes: list[Summary500]
    """What people will ask."""


class WorkingBackwards(Shape):
    """The five questions."""

    who_is_customer: Text
    """Who is the customer?"""
    what_is_problem: Text
    """What is the problem?"""
    what_is_solution: Text
    """What is the solution?"""
    customer_experience: Text
    """What will the customer live through?"""
    success_definition: Text
    """What is success?"""


class PrfaqReport(Shape):
    """7. PRFAQ Agent → Orchestrator."""

    prfaq_summary: PrfaqSummary
    """The press release in short."""
    working_backwards_answers: WorkingBackwards
    """The five questions."""
    full_prfaq_path: PrfaqPath
    """Whole press release."""


# --- 9. PRD → Orchestrator ------------------------------------------------------------------------


class PersonaInNeed(Shape):
    """A persona and what it needs most."""

    name: Summary500
    """Name."""
    role: Summary500
    """Role."""
    primary_need: Summary500
    """What it needs most."""


class CoreRequirement(Shape):
    """A requirement."""

    requirement: Summary500
    """What is required."""
    priority: Literal["P0", "P1", "P2"]
    """How urgent."""
    persona: Summary500
    """For whom."""


class Kpi(Shape):
    """A figure and its target."""

    metric: Summary500
    """Figure."""
    target: Summary500
    """Target."""


class BusinessModel(Shape):
    """How money is made."""

    pricing_tiers: list[Summary500]
    """Tiers."""
    revenue_model: Summary500
    """Who pays for what."""


class PrdSummary(Shape):
    """The requirements in short."""

    product_overview: Summary500
    """Overview, in 2 or 3 sentences."""
    personas: list[PersonaInNeed]
    """Personas."""
    core_requirements: list[CoreRequirement]
    """Requirements."""
    mvp_scope: list[Summary500]
    """What comes first."""
    success_kpis: list[Kpi]
    """Figures of success."""
    business_model: BusinessModel
    """How money is made."""
    screens_identified: list[Summary500]
    """Screens."""


class PrdReport(Shape):
    """9. PRD Agent → Orchestrator."""

    prd_summary: PrdSummary
    """The requirements in short."""
    full_prd_path: PrdPath
    """Whole requirements."""


# --- 11. Prototype → Orchestrator -----------------------------------------------------------------


class Screen(Shape):
    """A screen that exists."""

    screen_name: Summary500
    """Name."""
    path: RelativePath
    """File."""
    primary_persona: Summary500
    """For whom."""


class PrototypeSummary(Shape):
    """The prototype in short."""

    screens_created: list[Screen]
    """Screens."""
    user_flows_implemented: list[Summary500]
    """Ways through the product."""
    interactive_features: list[Summary500]
    """What reacts."""
    design_system_path: RelativePath
    """Design system."""
    clickable_prototype_path: RelativePath
    """Clickable prototype."""


class TestingReadiness(Shape):
    """Whether people can try it."""

    ready_for_user_testing: bool
    """Whether they can."""
    test_scenarios: list[Text]
    """What they try."""
    known_limitations: list[Text]
    """What does not work."""


class PrototypeReport(Shape):
    """11. Prototype Agent → Orchestrator, the last."""

    prototype_summary: PrototypeSummary
    """The prototype in short."""
    testing_readiness: TestingReadiness
    """Whether people can try it."""


# --- Error Handoff --------------------------------------------------------------------------------


class AgentError(Shape):
    """Why an agent could not complete its phase."""

    code: Literal["RESEARCH_FAILED", "GENERATION_FAILED", "VALIDATION_FAILED", "USER_CANCELLED"]
    """Kind of failure."""
    message: Text
    """What happened."""
    partial_output: dict[str, Any]
    """Whatever was completed."""
    recovery_suggestions: list[Text]
    """What could help."""


class ErrorReport(Shape):
    """Error handoff of any agent."""

    error: AgentError
    """What happened."""
