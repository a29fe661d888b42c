"""The most pessimistic committed evidence wins: nothing is signed off, skipped or complete beside a FAIL."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.phases import CONFIG, complete, facts
from tests.support.settings import config_from
from yolo_fs.evidence.failures import find_unreadable
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.view import View, skip_rule
from yolo_fs.protocol.gates import Decision
from yolo_fs.protocol.workflow import STEP_BY_KEY
from yolo_fs.schemas.config import Config
from yolo_fs.states.project import claims

FAILED: dict[str, list[dict[str, Any]]] = {
    "verification.jsonl": [{"r": "FAIL", "fl": 1}],
    "qa-code.jsonl": [{"r": "FAIL"}],
    "security-audit.jsonl": [{"r": "FAIL"}],
    "test-results.jsonl": [{"plan": "01-01", "phase": "green", "fl": 2}],
    "integration-gate-result.jsonl": [{"r": "PASS"}, {"r": "FAIL"}],
}
STATE = {"st": "complete", "ph": 1, "step": "signoff"}


@pytest.mark.proves("002:79b")
@pytest.mark.parametrize("name", FAILED)
def test_a_phase_is_not_complete_beside_a_failure(name: str) -> None:
    phase = Phase(facts(complete() | {name: FAILED[name]}))

    assert not phase.is_complete
    assert phase.progress.next is not None
    assert phase.sign_off[0] in (Decision.HOLD, Decision.HARD_STOP)
    assert "st" in claims((phase,), STATE)


APPROVED = [{"plan": plan, "r": "approve", "cycle": 1} for plan in ("01-01", "01-02")]
GRAVE = {"f": "src/auth.ts", "sev": "critical", "issue": "Tokens are logged"}


@pytest.mark.proves("002:126", "002:131")
@pytest.mark.parametrize(
    ("name", "lines", "agent", "said"),
    [
        ("code-review.jsonl", [*APPROVED, GRAVE], "dev", "approve contradicts sev critical"),
        ("code-review.jsonl", [*APPROVED, GRAVE | {"sev": "major"}], "dev", "approve contradicts sev major"),
        ("code-review.jsonl", [APPROVED[0] | {"tdd": "fail"}, APPROVED[1]], "dev", "approve contradicts tdd fail"),
        ("verification.jsonl", [{"r": "PASS", "fl": 1}], "qa", "PASS contradicts fl 1"),
        ("verification.jsonl", [{"r": "PASS"}, {"c": "It signs", "r": "fail"}], "qa", "PASS contradicts r fail"),
        ("qa-code.jsonl", [{"r": "PASS", "lint": {"err": 2}}], "qa-code", "PASS contradicts lint.err 2"),
        ("qa-code.jsonl", [{"r": "PASS"}, GRAVE | {"sev": "major"}], "qa-code", "PASS contradicts sev major"),
        ("security-audit.jsonl", [{"r": "WARN", "critical": 1}], "security", "WARN contradicts critical 1"),
        (
            "integration-gate-result.jsonl",
            [{"r": "FAIL"}, {"r": "PASS", "checks": {"api": "fail"}}],
            "integration-gate",
            "PASS contradicts checks.api fail",
        ),
        (
            ".qa-gate-results.jsonl",
            [{"gl": "post-phase", "r": "PASS", "gates": {"fl": 1}}],
            "lead",
            "PASS contradicts gates.fl 1",
        ),
    ],
)  # fmt: skip
def test_a_verdict_that_its_own_evidence_contradicts_opens_nothing_and_says_so(
    name: str, lines: list[dict[str, Any]], agent: str, said: str
) -> None:
    phase = Phase(facts(complete() | {name: lines}))
    asked, lacks = (
        phase.progress.next,
        [one for step in phase.progress.every_step for one in step.missing],
    )

    assert not phase.is_complete
    assert asked is not None and asked.agent == agent
    assert any(said in lack for lack in lacks)
    assert phase.sign_off[0] is Decision.HOLD and said in phase.sign_off[1]


@pytest.mark.parametrize("name", ["code-review.jsonl", "qa-code.jsonl"])
def test_what_contradicted_itself_at_the_sign_off_is_signed_with_it(name: str) -> None:
    lines = [*APPROVED, GRAVE] if name.startswith("code") else [{"r": "PASS", "lint": {"err": 2}}]
    known = facts(complete() | {name: lines}, signed_off="0" * 40, signed_off_at=7)
    verdict = next(one for one in known.committed if one.place.name == name)

    assert Phase(known.with_committed(verdict._replace(position=7))).is_complete
    assert not Phase(known.with_committed(verdict._replace(position=8))).is_complete


def test_a_failed_gate_of_the_phase_is_the_leads_before_qa_begins() -> None:
    content = complete() | {".qa-gate-results.jsonl": [{"gl": "post-phase", "r": "FAIL"}]}
    asked = Phase(facts(content)).progress.next
    assert asked and (asked.agent, asked.why) == ("lead", "the post-phase QA gate failed")


@pytest.mark.parametrize(
    "name", ["verification.jsonl", "qa-code.jsonl", "integration-gate-result.jsonl"]
)
def test_a_partial_result_is_reviewed_and_not_shipped(name: str) -> None:
    decision, why = Phase(facts(complete() | {name: [{"r": "PARTIAL"}]})).sign_off
    assert decision is Decision.REVIEW and why.endswith("says PARTIAL")


def test_neither_is_a_phase_whose_sign_off_a_commit_records() -> None:
    content = complete() | {"verification.jsonl": FAILED["verification.jsonl"]}

    assert not Phase(facts(content, signed_off="a" * 40)).is_complete


@pytest.mark.proves("002:101b")
@pytest.mark.parametrize(
    ("key", "name", "rule"),
    [
        ("qa", "verification.jsonl", "turbo"),
        ("security", "security-audit.jsonl", "config security_audit≠true"),
    ],
)
def test_no_rule_skips_a_step_that_has_failed(key: str, name: str, rule: str) -> None:
    config = config_from({"effort": "turbo", "security_audit": False})
    without = {one: lines for one, lines in complete().items() if one != name}
    step = STEP_BY_KEY[key]

    assert skip_rule(View(facts(without, config=config), None), step) == rule
    failed = facts(without | {name: FAILED[name]}, config=config)
    assert skip_rule(View(failed, None), step) == ""


@pytest.mark.proves("002:79b")
def test_a_sign_off_waits_for_the_verification_though_the_audit_is_off() -> None:
    content = complete()
    del content["verification.jsonl"]
    config = config_from({"security_audit": False})

    assert not Phase(facts(content, config=config)).is_complete


def with_(name: str, line: dict[str, Any]) -> Phase:
    return Phase(facts(complete() | {name: [line]}))


@pytest.mark.proves("002:59b")
def test_a_failed_result_closes_the_integration_gate_and_holds_the_sign_off() -> None:
    phase = with_("integration-gate-result.jsonl", {"r": "FAIL"})
    gate = next(one for one in phase.gates if one.name == "integration")

    assert [str(lack) for lack in gate.missing] == [
        "the integration gate says FAIL (integration-gate-result.jsonl:1)"
    ]
    assert phase.sign_off == (Decision.HOLD, "the integration gate says FAIL")


@pytest.mark.proves("000:747d")
def test_a_closed_gate_keeps_the_sign_off_open_and_is_named() -> None:
    blocked = {"from_dept": "uiux", "to_dept": "frontend", "blockers": ["tokens not final"]}
    phase = with_("dept-handoff.jsonl", blocked)

    assert not phase.is_complete
    signoff = next(one for one in phase.progress.steps if one.step.key == "signoff")
    assert any("tokens not final" in lack for lack in signoff.missing)


def torn(name: str, **more: Any) -> Phase:
    """Return a phase in which a file was torn after everything else was done."""
    known = facts(complete() | {name: []}, **more)
    spoilt = next(one for one in known.committed if one.place.name == name)
    return Phase(known.with_committed(spoilt._replace(valid=False, lines=())))


TURBO = config_from({"effort": "turbo", "security_audit": False})


@pytest.mark.parametrize("config", [CONFIG, TURBO], ids=["as shipped", "turbo"])
@pytest.mark.parametrize(
    ("name", "agent"),
    [
        ("critique.jsonl", "critic"), ("research.jsonl", "scout"), ("code-review.jsonl", "senior"),
        ("verification.jsonl", "qa"), ("security-audit.jsonl", "security"),
        ("01-01.summary.jsonl", "dev"), ("escalation.jsonl", "user"), ("decisions.jsonl", "user"),
    ],
)  # fmt: skip
def test_what_nobody_can_read_holds_the_step_that_rests_on_it_also_where_a_rule_skips_that(
    name: str, agent: str, config: Config
) -> None:
    phase = torn(name, config=config)
    asked = phase.progress.next
    assert not phase.is_complete
    assert asked is not None and asked.agent == agent
    assert phase.sign_off[0] is Decision.HOLD
    lacks = [one for step in phase.progress.every_step for one in step.missing]
    assert any(one.startswith(f"{name} is on the branch and cannot be read") for one in lacks)


def test_what_could_not_be_read_at_the_sign_off_is_signed_with_it() -> None:
    before = torn("decisions.jsonl", signed_off="0" * 40, signed_off_at=7).facts
    (log,) = find_unreadable(before)
    spoilt = next(one for one in before.committed if one.place == log)
    assert not list(find_unreadable(before.with_committed(spoilt._replace(position=7))))
    assert list(find_unreadable(before.with_committed(spoilt._replace(position=8))))


def test_an_audit_that_was_skipped_is_not_said_to_have_passed() -> None:
    content = complete()
    assert "security pass" in Phase(facts(content)).sign_off.why
    del content["security-audit.jsonl"]
    due = Phase(facts(content, skip_security=True)).sign_off
    assert due.decision == Decision.SHIP
    assert due.why.endswith("security was skipped in backend")
