"""Whom a verdict of the Product Owner sends the work to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.phases import complete, facts
from tests.support.settings import config_from
from yolo_fs.evidence.failures import owner_lacks
from yolo_fs.phase.acts import acts_of
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.progress import fold
from yolo_fs.protocol.gates import Decision

CONFIG = config_from({"security_audit": True, "po": {"enabled": True}})
SCOPE = {"analysis.json": [{}], "scope-document.json": [{"status": "PO-APPROVED"}]}


def verdict(said: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "po_qa_verdict",
        "verdict": said,
        "target_dept": "",
        "re_scope_items": [],
    } | more


PATCH = verdict("patch", target_dept="frontend")
MAJOR = verdict("major", re_scope_items=["login", "search"])


@pytest.mark.proves("000:603a", "000:607", "000:629", "000:677")
@pytest.mark.parametrize(
    ("verdicts", "agent", "last_input"),
    [
        ([], "po", "scope-document.json"),
        ([PATCH], "fe-senior", "patch_request: at most 2 tasks"),
        ([PATCH, PATCH | {"target_dept": "backend"}], "senior", "patch_request: at most 2 tasks"),
        ([PATCH, PATCH, PATCH], "po", "major_rejection: what the patches left"),
        ([MAJOR], "po", "major_rejection: login, search"),
        ([MAJOR, PATCH], "fe-senior", "patch_request: at most 2 tasks"),
        ([verdict("approve"), PATCH], "fe-senior", "patch_request: at most 2 tasks"),
        ([verdict("approve"), MAJOR], "po", "major_rejection: login, search"),
        ([MAJOR, MAJOR], "owner", "every cycle is used up: the user decides"),
    ],
)
def test_a_verdict_sends_the_work_where_the_document_says(
    verdicts: list[dict[str, Any]], agent: str, last_input: str
) -> None:
    content = complete() | SCOPE | ({"po-qa-verdict.jsonl": verdicts} if verdicts else {})
    asked = fold(facts(content, config=CONFIG)).next
    assert asked is not None
    assert (asked.step, asked.agent, asked.inputs[-1]) == ("delivery", agent, last_input)


@pytest.mark.proves("000:603a")
def test_an_approval_delivers() -> None:
    content = complete() | SCOPE | {"po-qa-verdict.jsonl": [PATCH, verdict("approve")]}
    found = fold(facts(content, config=CONFIG))
    assert found.next is None
    assert found.is_complete


def of_frontend() -> dict[str, Any]:
    """Return what the frontend has of a phase in which every step is done."""
    shared = ("research.jsonl",)
    return {
        f"fe-{name}": lines
        for name, lines in complete().items()
        if name not in shared and "/" not in name
    }


def signed(decision: str = "SHIP", *approved: str) -> dict[str, Any]:
    return {
        "type": "owner_signoff",
        "phase": "01",
        "decision": decision,
        "departments_approved": list(approved),
        "integration_qa": "PASS",
        "notes": "",
    }


TWO = {
    "security_audit": True,
    "departments": {"backend": True, "frontend": True},
    "department_workflow": "parallel",
}


@pytest.mark.proves("002:58")
@pytest.mark.parametrize(
    ("signoff", "says"),
    [
        ([], "no owner-signoff.jsonl"),
        ([signed("SHIP")], "owner-signoff.jsonl does not approve backend, frontend"),
        ([signed("SHIP", "backend")], "owner-signoff.jsonl does not approve frontend"),
        ([signed("SHIP", "frontend", "backend"), signed("HOLD")], "the Owner says HOLD"),
        ([signed("HOLD"), signed("SHIP", "frontend", "backend")], ""),
    ],
)
def test_several_departments_are_delivered_by_their_owner(
    signoff: list[dict[str, Any]], says: str
) -> None:
    content = complete() | of_frontend() | SCOPE
    content |= {
        "po-qa-verdict.jsonl": [verdict("approve")],
        "integration-gate-result.jsonl": [{"r": "PASS"}],
    }
    config = config_from(TWO | {"po": {"enabled": True}})
    content |= {"owner-signoff.jsonl": signoff} if signoff else {}
    found = fold(facts(content, config=config))
    delivery = next(one for one in found.steps if one.step.key == "delivery")
    assert [*delivery.missing] == ([says] if says else []), found.next
    if says and not says.endswith("HOLD"):  # what is held is asked of the Owner by its turn
        assert found.next is not None and found.next.agent == "owner"
    assert found.is_complete == (not says)


@pytest.mark.parametrize(
    ("verdict_at", "unseen", "is_older"),
    [(1, {}, False), (3, {}, True), (1, {2: {1}}, True), (1, {1: {0}}, False)],
)
def test_the_owner_signs_no_verdict_that_came_after_the_sign_off_or_beside_it(
    verdict_at: int, unseen: dict[int, set[int]], is_older: bool
) -> None:
    content = {
        "po-qa-verdict.jsonl": [verdict("approve")],
        "owner-signoff.jsonl": [signed("SHIP", "backend", "frontend")],
    }
    known = facts(content, config=config_from(TWO))
    places = {"po-qa-verdict.jsonl": verdict_at, "owner-signoff.jsonl": 2}
    committed = tuple(one._replace(position=places[one.place.name]) for one in known.committed)
    says = "owner-signoff.jsonl is older than po-qa-verdict.jsonl"
    lacks = owner_lacks(replace(known, committed=committed, unseen=unseen))
    assert lacks == (says if is_older else "")


@pytest.mark.proves("002:58")
@pytest.mark.parametrize(
    ("signoff", "says"),
    [
        ([signed("SHIP", "backend")], "owner-signoff.jsonl does not approve frontend"),
        ([signed("SHIP")], "owner-signoff.jsonl does not approve backend, frontend"),
        ([signed("SHIP", "backend"), signed("SHIP", "backend", "frontend")], ""),
        ([], ""),
    ],
)
def test_an_owner_who_leaves_a_department_out_holds_the_phase_without_a_product_owner(
    signoff: list[dict[str, Any]], says: str
) -> None:
    content = complete() | of_frontend() | {"integration-gate-result.jsonl": [{"r": "PASS"}]}
    content |= {"owner-signoff.jsonl": signoff} if signoff else {}
    phase = Phase(facts(content, config=config_from(TWO)))
    assert phase.is_complete == (not says)
    if says:
        assert [(act.agent, act.turn.why) for act in acts_of(phase)] == [("owner", says)]


@pytest.mark.parametrize("is_flagged", [True, False])
@pytest.mark.parametrize(
    ("name", "agent"), [("security-audit.jsonl", "user"), ("qa-code.jsonl", "fe-lead")]
)
def test_no_department_is_dropped_with_a_verdict_that_fails_it(
    name: str, agent: str, *, is_flagged: bool
) -> None:
    content = complete() | of_frontend() | {"integration-gate-result.jsonl": [{"r": "PASS"}]}
    content |= {"owner-review.jsonl": [{"departments_needed": ["backend"]}]}
    config = config_from(TWO | {"departments": {"frontend": is_flagged}})
    assert Phase(facts(content, config=config)).is_complete
    phase = Phase(facts(content | {f"fe-{name}": [{"r": "FAIL"}]}, config=config))
    assert [act.agent for act in acts_of(phase)] == [agent]
    assert phase.sign_off.decision != Decision.SHIP
