"""The tables of contexts say what the protocol says, against a copy made by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from yolo_fs.protocol.contexts import BUDGETS, CONTEXT_BY_ROLE, FILTERS, Cut, Section, budget_of
from yolo_fs.protocol.roster import AGENT_BY_NAME

SPEC = json.loads((Path(__file__).parents[2] / "fixtures/spec/contexts.json").read_text())
OURS = {"must_have", "key_decisions"}
"""Parts of printed sections that stand on lines of their own: `mh.tr` of the plan, and what takes decisions' place."""


def sections(role: str) -> tuple[Section, ...]:
    return CONTEXT_BY_ROLE[role].sections


@pytest.mark.parametrize("role", SPEC["sections"])
def test_each_role_has_its_sections_in_the_printed_order(role: str) -> None:
    printed = SPEC["sections"][role].split(", ")
    assert [one.key for one in sections(role) if one.key in printed] == printed


def test_what_is_not_printed_there_is_received_by_document_002_or_000() -> None:
    for role, printed in SPEC["sections"].items():
        for one in sections(role):
            if one.key not in (*printed.split(", "), *OURS, *SPEC["sections"]["po"].split(", ")):
                handed = "document 000 (phase-handoff.jsonl)"  # it names its two receivers
                assert "document 002" in one.source or one.source == handed, (role, one.key)


def test_the_eighteen_roles_are_those_of_the_protocol() -> None:
    assert {role.value for role in CONTEXT_BY_ROLE} == set(SPEC["sections"])


@pytest.mark.parametrize("name", SPEC["columns"])
def test_tables_begin_with_the_printed_columns(name: str) -> None:
    role, key = name.split(" ")
    columns = next(one.columns for one in sections(role) if one.key == key)
    printed = SPEC["columns"][name].split(",")
    assert [one.name for one in columns][: len(printed)] == printed


def test_the_filters_are_the_printed_ones() -> None:
    assert {f"{row.role} {row.kind}" for row in FILTERS} == set(SPEC["filters"])
    for row in FILTERS:
        printed = SPEC["filters"][f"{row.role} {row.kind}"]
        words = set(
            re.findall(r"[a-z_]+", re.sub(r"header line|header|design|review", "", printed))
        )
        assert (set(row.keys), row.header) == (words, "header" in printed)


def test_the_cuts_come_in_the_documented_order_and_one_more_after_them() -> None:
    assert [cut.label for cut in Cut][1:-1] == SPEC["order"]
    assert list(Cut) == sorted(Cut)


def test_every_agent_with_a_context_has_a_budget_and_none_above_the_roster_s() -> None:
    for name, row in AGENT_BY_NAME.items():
        if row.role in CONTEXT_BY_ROLE:
            assert 1000 <= budget_of(name) <= (row.token_budget or 3000)
    assert all(row.tokens <= row.manifest for row in BUDGETS)


@pytest.mark.proves("000:747c")
def test_leads_of_frontend_and_backend_and_the_integration_gate_are_given_what_departments_hand_over() -> (
    None
):
    given = {
        role: one.departments
        for role in ("lead", "integration-gate")
        for one in sections(role)
        if one.of == ("dept-handoff",)
    }
    assert given == {"lead": ("frontend", "backend"), "integration-gate": ()}
