"""Which fields of the eleven payloads carry the same fact.

A handoff is condensed, so prose may be rephrased and lists shortened. It must not be contradicted:
names, choices and figures are the same everywhere, and nothing appears that was not said before.
See docs/dev/sources.md#document-003.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from yolo_fs.core.reasons import Level


class How(StrEnum):
    """How two fields have to agree."""

    EQUAL = "equal"
    """The same value, ignoring case and spacing."""
    NAMED = "named"
    """Every name of the later list is one of the earlier list."""
    RETOLD = "retold"
    """The later text may be shorter or rephrased; its figures are those of the earlier one."""


class Field(NamedTuple):
    """A field of one of the eleven handoffs."""

    handoff: int
    """Number of the section that prints the payload; 0: every envelope."""
    at: str
    """JSON pointer; `*` stands for each item of a list, `a+b` for two keys read together."""


class Fact(NamedTuple):
    """One fact and the fields that carry it."""

    name: str
    how: How
    level: Level | None
    """Severity of a different value; for `RETOLD`, of a text that shares hardly a word.

    None: it may be new.
    """
    fields: tuple[Field, ...]
    """In the order in which the fact travels: the first one in a session is its source."""
    source: str = 'document 003 ("Phase-Specific Payloads")'
    """Section on which the row is based."""


def _in(*places: str) -> tuple[Field, ...]:
    """Return fields written as `number pointer`; that of a numbered handoff is in `/payload`."""
    split = (place.split(" ") for place in places)
    return tuple(
        Field(int(number), at if number == "0" else f"/payload{at}") for number, at in split
    )


_EQUAL, _NAMED, _RETOLD = How
_MUST, _SHOULD = Level.ERROR, Level.WARNING

FACTS = (
    # Names and choices.
    Fact(
        "product name",
        _EQUAL,
        _MUST,
        _in(
            "0 /product_name",
            "1 /product_concept/name",
            "2 /research_request/product_name",
            "4 /business_context/product_name",
            "6 /product_context/name",
            "10 /prd_context/product_name",
        ),
    ),
    Fact("product slug", _EQUAL, _MUST, _in("0 /product_name_slug")),
    Fact(
        "AI/ML product",
        _EQUAL,
        _MUST,
        _in(
            "0 /workflow_state/is_ai_ml_product",
            "6 /ai_context/is_ai_ml_product",
            "8 /ai_context/is_ai_ml_product",
        ),
    ),
    Fact(
        "execution mode",
        _EQUAL,
        _MUST,
        _in("0 /workflow_state/execution_mode", "1 /preferences/execution_mode"),
    ),
    # A retry may ask for less depth.
    Fact(
        "research depth",
        _EQUAL,
        _SHOULD,
        _in("1 /preferences/research_depth", "2 /research_request/research_depth"),
    ),
    Fact(
        "customer company",
        _EQUAL,
        _MUST,
        _in("1 /customer_company/name", "10 /design_context/customer_company/name"),
    ),
    Fact(
        "site of the customer company",
        _EQUAL,
        _MUST,
        _in("1 /customer_company/website", "10 /design_context/customer_company/website"),
    ),
    Fact(
        "industry of the customer company",
        _EQUAL,
        _MUST,
        _in("1 /customer_company/industry", "10 /design_context/customer_company/industry"),
    ),
    # What the user has in mind.
    Fact(
        "problem",
        _RETOLD,
        _SHOULD,
        _in(
            "1 /product_concept/problem_statement",
            "2 /research_request/problem_statement",
            "4 /business_context/problem_statement",
            "6 /product_context/problem_statement",
        ),
    ),
    Fact(
        "solution",
        _RETOLD,
        _SHOULD,
        _in(
            "1 /product_concept/proposed_solution",
            "2 /research_request/proposed_solution",
            "6 /product_context/proposed_solution",
        ),
    ),
    Fact(
        "target audience",
        _RETOLD,
        _MUST,
        _in(
            "1 /product_concept/target_audience",
            "2 /research_request/target_audience",
            "6 /product_context/target_audience",
        ),
    ),
    Fact(
        "key features",
        _RETOLD,
        _MUST,
        _in("1 /product_concept/key_features/*", "6 /product_context/key_features/*"),
    ),
    Fact(
        "unique value proposition",
        _RETOLD,
        _SHOULD,
        _in(
            "1 /product_concept/unique_value_proposition",
            "6 /product_context/unique_value_proposition",
        ),
    ),
    Fact(
        "brand guidelines",
        _RETOLD,
        _SHOULD,
        _in("1 /preferences/brand_guidelines", "10 /design_context/brand_guidelines"),
    ),
    # What the market says.
    Fact(
        "market opportunity",
        _RETOLD,
        _SHOULD,
        _in(
            "3 /market_research_summary/market_opportunity", "6 /market_context/market_opportunity"
        ),
    ),
    Fact(
        "market size",
        _RETOLD,
        _MUST,
        _in("3 /market_research_summary/tam", "8 /market_context/market_size"),
    ),
    Fact(
        "competitors",
        _NAMED,
        _MUST,
        _in(
            "3 /market_research_summary/top_competitors/*/name",
            "8 /market_context/competitors/*/name",
        ),
    ),
    Fact(
        "customer pain points",
        _RETOLD,
        _MUST,
        _in(
            "3 /market_research_summary/key_customer_pain_points/*/pain_point",
            "6 /market_context/customer_pain_points/*",
        ),
    ),
    Fact(
        "differentiation",
        _RETOLD,
        _SHOULD,
        _in(
            "3 /market_research_summary/differentiation_opportunities/*",
            "6 /market_context/differentiation_strategy",
        ),
    ),
    # What is learned.
    Fact(
        "ML capabilities",
        _RETOLD,
        _SHOULD,
        _in(
            "4 /business_context/proposed_ml_capabilities/*",
            "6 /ai_context/ml_capabilities_summary",
        ),
    ),
    Fact(
        "ML metrics",
        _RETOLD,
        _MUST,
        _in(
            "5 /ai_framing_summary/selected_metrics/*/metric+threshold",
            "6 /ai_context/ml_success_metrics/*",
            "8 /ai_context/ml_metrics/*",
        ),
    ),
    Fact(
        "technical constraints",
        _RETOLD,
        None,
        _in(
            "4 /business_context/technical_constraints/*",
            "8 /user_provided_context/technical_constraints/*",
        ),
    ),
    # What the press release says.
    Fact(
        "customer definition",
        _RETOLD,
        _MUST,
        _in("7 /prfaq_summary/customer_definition", "8 /prfaq_context/customer_definition"),
    ),
    Fact(
        "problem of the press release",
        _RETOLD,
        _SHOULD,
        _in("7 /prfaq_summary/problem_statement", "8 /prfaq_context/problem_statement"),
    ),
    Fact(
        "solution of the press release",
        _RETOLD,
        _SHOULD,
        _in("7 /prfaq_summary/solution_description", "8 /prfaq_context/solution_description"),
    ),
    # The five questions are answered in words of their own.
    Fact(
        "customer of the five questions",
        _RETOLD,
        None,
        _in("7 /prfaq_summary/customer_definition", "7 /working_backwards_answers/who_is_customer"),
    ),
    Fact(
        "problem of the five questions",
        _RETOLD,
        None,
        _in("7 /prfaq_summary/problem_statement", "7 /working_backwards_answers/what_is_problem"),
    ),
    Fact(
        "solution of the five questions",
        _RETOLD,
        None,
        _in(
            "7 /prfaq_summary/solution_description", "7 /working_backwards_answers/what_is_solution"
        ),
    ),
    Fact(
        "customer benefit",
        _RETOLD,
        None,
        _in("7 /prfaq_summary/key_customer_benefit", "8 /prfaq_context/key_benefits/*"),
    ),
    Fact(
        "success metrics",
        _RETOLD,
        _MUST,
        _in("7 /prfaq_summary/success_metrics/*", "8 /prfaq_context/success_metrics/*"),
    ),
    Fact(
        "success metrics as KPIs",
        _RETOLD,
        None,
        _in("7 /prfaq_summary/success_metrics/*", "9 /prd_summary/success_kpis/*/metric+target"),
    ),
    # What the requirements say.
    Fact(
        "product overview",
        _RETOLD,
        _SHOULD,
        _in("9 /prd_summary/product_overview", "10 /prd_context/product_overview"),
    ),
    Fact(
        "personas",
        _NAMED,
        _MUST,
        _in(
            "9 /prd_summary/personas/*/name",
            "9 /prd_summary/core_requirements/*/persona",
            "11 /prototype_summary/screens_created/*/primary_persona",
        ),
    ),
    Fact(
        "personas and their roles",
        _NAMED,
        _MUST,
        _in("9 /prd_summary/personas/*/name+role", "10 /prd_context/personas/*/name+role"),
    ),
    Fact(
        "core requirements",
        _RETOLD,
        _MUST,
        _in(
            "9 /prd_summary/core_requirements/*/requirement", "10 /prd_context/core_requirements/*"
        ),
    ),
    Fact(
        "screens",
        _NAMED,
        _MUST,
        _in(
            "9 /prd_summary/screens_identified/*",
            "10 /prd_context/screens_to_build/*",
            "11 /prototype_summary/screens_created/*/screen_name",
        ),
    ),
    Fact(
        "user flows",
        _NAMED,
        _MUST,
        _in(
            "10 /prd_context/user_flows/*/flow_name",
            "11 /prototype_summary/user_flows_implemented/*",
        ),
    ),
)
