"""Which fields of the eleven payloads carry the same fact.

A handoff is condensed, so prose may be rephrased and lists shortened. It must not be contradicted:
names, choices and figures are the same everywhere, and nothing appears that was not said before.
See docs/dev/sources.md#document-003.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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
    """One fact of document 003 ("Phase-Specific Payloads") and the fields that carry it."""

    name: str
    how: How
    level: Level | None
    """Severity of a different value; for `RETOLD`, of a text that shares hardly a word.

    None: it may be new.
    """
    fields: tuple[Field, ...]
    """In the order in which the fact travels: the first one in a session is its source."""


_TABLE = """
# Names and choices.
product name: equal, error
    0 /product_name
    1 /product_concept/name
    2 /research_request/product_name
    4 /business_context/product_name
    6 /product_context/name
    10 /prd_context/product_name
product slug: equal, error
    0 /product_name_slug
AI/ML product: equal, error
    0 /workflow_state/is_ai_ml_product
    6 /ai_context/is_ai_ml_product
    8 /ai_context/is_ai_ml_product
execution mode: equal, error
    0 /workflow_state/execution_mode
    1 /preferences/execution_mode
# A retry may ask for less depth.
research depth: equal, warning
    1 /preferences/research_depth
    2 /research_request/research_depth
customer company: equal, error
    1 /customer_company/name
    10 /design_context/customer_company/name
site of the customer company: equal, error
    1 /customer_company/website
    10 /design_context/customer_company/website
industry of the customer company: equal, error
    1 /customer_company/industry
    10 /design_context/customer_company/industry
# What the user has in mind.
problem: retold, warning
    1 /product_concept/problem_statement
    2 /research_request/problem_statement
    4 /business_context/problem_statement
    6 /product_context/problem_statement
solution: retold, warning
    1 /product_concept/proposed_solution
    2 /research_request/proposed_solution
    6 /product_context/proposed_solution
target audience: retold, error
    1 /product_concept/target_audience
    2 /research_request/target_audience
    6 /product_context/target_audience
key features: retold, error
    1 /product_concept/key_features/*
    6 /product_context/key_features/*
unique value proposition: retold, warning
    1 /product_concept/unique_value_proposition
    6 /product_context/unique_value_proposition
brand guidelines: retold, warning
    1 /preferences/brand_guidelines
    10 /design_context/brand_guidelines
# What the market says.
market opportunity: retold, warning
    3 /market_research_summary/market_opportunity
    6 /market_context/market_opportunity
market size: retold, error
    3 /market_research_summary/tam
    8 /market_context/market_size
competitors: named, error
    3 /market_research_summary/top_competitors/*/name
    8 /market_context/competitors/*/name
customer pain points: retold, error
    3 /market_research_summary/key_customer_pain_points/*/pain_point
    6 /market_context/customer_pain_points/*
differentiation: retold, warning
    3 /market_research_summary/differentiation_opportunities/*
    6 /market_context/differentiation_strategy
# What is learned.
ML capabilities: retold, warning
    4 /business_context/proposed_ml_capabilities/*
    6 /ai_context/ml_capabilities_summary
ML metrics: retold, error
    5 /ai_framing_summary/selected_metrics/*/metric+threshold
    6 /ai_context/ml_success_metrics/*
    8 /ai_context/ml_metrics/*
technical constraints: retold, free
    4 /business_context/technical_constraints/*
    8 /user_provided_context/technical_constraints/*
# What the press release says.
customer definition: retold, error
    7 /prfaq_summary/customer_definition
    8 /prfaq_context/customer_definition
problem of the press release: retold, warning
    7 /prfaq_summary/problem_statement
    8 /prfaq_context/problem_statement
solution of the press release: retold, warning
    7 /prfaq_summary/solution_description
    8 /prfaq_context/solution_description
# The five questions are answered in words of their own.
customer of the five questions: retold, free
    7 /prfaq_summary/customer_definition
    7 /working_backwards_answers/who_is_customer
problem of the five questions: retold, free
    7 /prfaq_summary/problem_statement
    7 /working_backwards_answers/what_is_problem
solution of the five questions: retold, free
    7 /prfaq_summary/solution_description
    7 /working_backwards_answers/what_is_solution
customer benefit: retold, free
    7 /prfaq_summary/key_customer_benefit
    8 /prfaq_context/key_benefits/*
success metrics: retold, error
    7 /prfaq_summary/success_metrics/*
    8 /prfaq_context/success_metrics/*
success metrics as KPIs: retold, free
    7 /prfaq_summary/success_metrics/*
    9 /prd_summary/success_kpis/*/metric+target
# What the requirements say.
product overview: retold, warning
    9 /prd_summary/product_overview
    10 /prd_context/product_overview
personas: named, error
    9 /prd_summary/personas/*/name
    9 /prd_summary/core_requirements/*/persona
    11 /prototype_summary/screens_created/*/primary_persona
personas and their roles: named, error
    9 /prd_summary/personas/*/name+role
    10 /prd_context/personas/*/name+role
core requirements: retold, error
    9 /prd_summary/core_requirements/*/requirement
    10 /prd_context/core_requirements/*
screens: named, error
    9 /prd_summary/screens_identified/*
    10 /prd_context/screens_to_build/*
    11 /prototype_summary/screens_created/*/screen_name
user flows: named, error
    10 /prd_context/user_flows/*/flow_name
    11 /prototype_summary/user_flows_implemented/*
"""
"""Each fact with how its fields have to agree and how grave it is if they do not (free: it may be
new); below it, each field as `number pointer`, that of a numbered handoff in its `/payload`."""


def _read_table(table: str) -> Iterator[Fact]:
    for row in re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", table.strip(), flags=re.MULTILINE)):
        head, *places = row.splitlines()
        name, how, level = re.split("[:,] ", head)
        fields = tuple(_read_field(*place.split()) for place in places)
        yield Fact(name, How(how), None if level == "free" else Level(level), fields)


def _read_field(number: str, at: str) -> Field:
    return Field(int(number), at if number == "0" else f"/payload{at}")


FACTS = tuple(_read_table(_TABLE))
