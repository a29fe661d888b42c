"""Payloads that go out: the user's concept, and what the orchestrator asks of each agent.

See docs/dev/sources.md#document-003.
"""

from __future__ import annotations

from typing import Literal

from yolo_fs.schemas.base import Field, Shape
from yolo_fs.schemas.formats import RelativePath, Summary500, Text

ExecutionMode = Literal["full-approval", "streamlined"]
ResearchDepth = Literal["quick", "standard", "comprehensive"]


class CustomerCompany(Shape):
    """Company that the product is built for, if any."""

    name: Text | None
    """Name, or null."""
    website: Text | None
    """Its site, for brand research, or null."""
    industry: Text | None
    """Its industry, or null."""


class ProductConcept(Shape):
    """What the user has in mind."""

    name: Text
    """Name of the product."""
    problem_statement: Summary500
    """Problem, in 1 to 3 sentences."""
    proposed_solution: Summary500
    """Solution, in 1 to 3 sentences."""
    target_audience: Text
    """For whom."""
    key_features: list[Text]
    """Features."""
    unique_value_proposition: Text
    """What sets it apart."""


class Preferences(Shape):
    """How the user wants it done."""

    execution_mode: ExecutionMode
    """Whether each phase is approved."""
    research_depth: ResearchDepth
    """How deep the research goes."""
    brand_guidelines: str = ""
    """Brand guidelines, optional."""


class InitialInput(Shape):
    """1. User → Orchestrator."""

    product_concept: ProductConcept
    """The concept."""
    customer_company: CustomerCompany
    """Company that it is for."""
    context_files: list[RelativePath]
    """CSV files, company documents and the like."""
    preferences: Preferences
    """How the user wants it done."""


class ResearchBrief(Shape):
    """What to research."""

    product_name: Text
    """Name of the product."""
    problem_statement: Text
    """Problem."""
    proposed_solution: Text
    """Solution."""
    target_audience: Text
    """For whom."""
    industry_vertical: Text
    """Industry."""
    geographic_focus: Text | None
    """Region, or null."""
    research_depth: ResearchDepth
    """How deep the research goes."""


class MarketResearchRequest(Shape):
    """2. Orchestrator → Market Research Agent."""

    research_request: ResearchBrief
    """What to research."""
    specific_questions: list[Text] = Field(default_factory=list)
    """Questions to answer, optional."""


class BusinessContext(Shape):
    """The business behind a learning system."""

    product_name: Text
    """Name of the product."""
    problem_statement: Text
    """Problem."""
    proposed_ml_capabilities: list[Text]
    """What shall be learned."""
    target_business_metrics: list[Text]
    """Figures that shall move."""
    data_sources_available: list[Text]
    """Data at hand."""
    technical_constraints: list[Text]
    """Limits."""


class LearningMarket(Shape):
    """The market for learning systems."""

    competitor_ml_approaches: list[Text]
    """What others do."""
    industry_ml_maturity: Literal["emerging", "growing", "mature"]
    """How far the industry is."""


class AiFramingRequest(Shape):
    """4. Orchestrator → AI Framing Agent, for AI/ML products only."""

    business_context: BusinessContext
    """The business."""
    market_context: LearningMarket
    """The market."""


class ProductContext(Shape):
    """The product, as the press release needs it."""

    name: Text
    """Name of the product."""
    problem_statement: Text
    """Problem."""
    proposed_solution: Text
    """Solution."""
    target_audience: Text
    """For whom."""
    key_features: list[Text]
    """Features."""
    unique_value_proposition: Text
    """What sets it apart."""


class PositionInMarket(Shape):
    """The market, as the press release needs it."""

    market_opportunity: Text
    """Opportunity."""
    competitive_gaps: list[Text]
    """What competitors lack."""
    customer_pain_points: list[Text]
    """What hurts."""
    differentiation_strategy: Text
    """How to be different."""


class LearningContext(Shape):
    """What is learned, as the press release needs it."""

    is_ai_ml_product: bool
    """Whether the product learns at all."""
    ml_capabilities_summary: Summary500 | None
    """What it learns, or null."""
    ml_success_metrics: list[Text]
    """Figures of success."""


class PrfaqRequest(Shape):
    """6. Orchestrator → PRFAQ Agent."""

    product_context: ProductContext
    """The product."""
    market_context: PositionInMarket
    """The market."""
    ai_context: LearningContext
    """What is learned."""


class PrfaqContext(Shape):
    """The press release, as the requirements need it."""

    customer_definition: Text
    """Customer."""
    problem_statement: Text
    """Problem."""
    solution_description: Text
    """Solution."""
    key_benefits: list[Text]
    """Benefits."""
    success_metrics: list[Text]
    """Figures of success."""


class Rival(Shape):
    """A competitor."""

    name: Text
    """Name."""
    positioning: Text
    """How it presents itself."""


class PricingContext(Shape):
    """The market, as the requirements need it."""

    competitors: list[Rival]
    """Competitors."""
    pricing_guidance: Text
    """What to charge."""
    market_size: Text
    """How large the market is."""


class LearningRequirements(Shape):
    """What is learned, as the requirements need it."""

    is_ai_ml_product: bool
    """Whether the product learns at all."""
    ml_requirements_summary: Summary500 | None
    """What it must learn, or null."""
    ml_metrics: list[Text]
    """Figures to reach."""


class TeamMember(Shape):
    """A member of the team."""

    name: Text
    """Name."""
    role: Text
    """Role."""


class UserProvidedContext(Shape):
    """What the user told."""

    team_members: list[TeamMember]
    """Team."""
    company_info: Text
    """Company."""
    technical_constraints: list[Text]
    """Limits."""


class PrdRequest(Shape):
    """8. Orchestrator → PRD Agent."""

    prfaq_context: PrfaqContext
    """The press release."""
    market_context: PricingContext
    """The market."""
    ai_context: LearningRequirements
    """What is learned."""
    user_provided_context: UserProvidedContext
    """What the user told."""


class PersonaAtWork(Shape):
    """A persona and what it does most."""

    name: Text
    """Name."""
    role: Text
    """Role."""
    primary_workflow: Text
    """What it does most."""


class UserFlow(Shape):
    """A way through the product."""

    flow_name: Text
    """Name."""
    steps: list[Text]
    """Steps."""


class PrdContext(Shape):
    """The requirements, as the prototype needs them."""

    product_name: Text
    """Name of the product."""
    product_overview: Text
    """What it is."""
    personas: list[PersonaAtWork]
    """Personas."""
    core_requirements: list[Text]
    """Requirements."""
    screens_to_build: list[Text]
    """Screens."""
    user_flows: list[UserFlow]
    """Ways through the product."""


class AestheticPreferences(Shape):
    """Taste."""

    direction: Text | None
    """Direction, or null."""
    mood: Text | None
    """Mood, or null."""
    avoid: list[Text | None]
    """What to avoid."""


class DesignContext(Shape):
    """The design, as the prototype needs it."""

    brand_guidelines: Text | None
    """Brand guidelines, or null."""
    existing_design_system_path: RelativePath | None
    """Design system to build upon, or null."""
    platform_targets: list[Literal["web", "mobile", "tablet"]]
    """Platforms."""
    customer_company: CustomerCompany
    """Company that it is for."""
    aesthetic_preferences: AestheticPreferences
    """Taste."""


class DataContext(Shape):
    """Data for the prototype."""

    sample_data_files: list[RelativePath]
    """Sample data."""
    realistic_data_requirements: list[Text]
    """What the data must look like."""


class PrototypeRequest(Shape):
    """10. Orchestrator → Prototype Agent."""

    prd_context: PrdContext
    """The requirements."""
    design_context: DesignContext
    """The design."""
    data_context: DataContext
    """The data."""
