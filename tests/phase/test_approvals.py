"""Where the configuration asks a person, no step goes on without that person's decision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.phases import FOLDER, Content, complete, facts
from tests.support.settings import config_from
from yolo_fs.decisions import approve
from yolo_fs.evidence.facts import Version
from yolo_fs.phase.phase import Phase

REVIEWED: Content = {name: lines for name, lines in complete().items() if "ROADMAP" not in name}
for _name in ("verification.jsonl", "qa-code.jsonl", "security-audit.jsonl", "../../state.json"):
    del REVIEWED[_name]
VERIFIED = REVIEWED | {"verification.jsonl": [{"r": "PASS"}], "qa-code.jsonl": [{"r": "PASS"}]}
FAILED = REVIEWED | {"verification.jsonl": [{"r": "FAIL"}], "qa-code.jsonl": [{"r": "PASS"}]}
WARNED = VERIFIED | {"security-audit.jsonl": [{"r": "WARN"}]}
GATES: dict[str, tuple[Content, str, str, str]] = {
    "code_review": (REVIEWED, "code-review.jsonl", "user approves the code review", "qa"),
    "qa_fail": (
        FAILED,
        "verification.jsonl",
        "user lets what QA found be repaired",
        "lead",
    ),
    "security_warn": (
        WARNED,
        "security-audit.jsonl",
        "user accepts what security warns of",
        "lead",
    ),
}


def phase_at(
    gate: str, content: Content, *, verdict: int = 2, decided: int = 0, by: str = "user"
) -> Phase:
    """Return a phase whose last verdict, and a person's decision, have a place in its history."""
    name = GATES[gate][1]
    versions = {f"{FOLDER}/{name}": (Version(tuple(content[name]), 10 * verdict, verdict),)}
    if decided:
        fields = approve(facts(content), gate, "backend", "user") | {"agent": by}
        content = content | {"decisions.jsonl": [fields]}
        versions[f"{FOLDER}/decisions.jsonl"] = (Version((fields,), 10 * decided, decided),)
    config = config_from({"security_audit": True, "approval_gates": {gate: True}})
    return Phase(facts(content, config=config, versions=versions))


def turn(phase: Phase) -> Any:
    assert phase.progress.next is not None
    return phase.progress.next


@pytest.mark.parametrize("gate", GATES)
def test_a_gate_asks_the_user_and_names_the_command(gate: str) -> None:
    content, name, sentence, _ = GATES[gate]
    asked = turn(phase_at(gate, content))
    assert (asked.agent, asked.sentence) == ("user", sentence)
    assert asked.command == f"yolo-fs decide approve {gate} backend --phase 1 --reason …"
    assert name in asked.inputs


@pytest.mark.parametrize("gate", GATES)
def test_once_the_user_has_approved_the_next_one_acts(gate: str) -> None:
    assert turn(phase_at(gate, GATES[gate][0], decided=3)).agent == GATES[gate][3]


@pytest.mark.parametrize("gate", GATES)
def test_a_gate_that_is_off_asks_nobody(gate: str) -> None:
    config = config_from({"security_audit": True})
    assert turn(Phase(facts(GATES[gate][0], config=config))).agent == GATES[gate][3]


@pytest.mark.parametrize("gate", GATES)
def test_an_approval_counts_for_what_was_there_and_only_from_a_person(gate: str) -> None:
    content = GATES[gate][0]
    assert turn(phase_at(gate, content, verdict=4, decided=3)).agent == "user"
    assert turn(phase_at(gate, content, decided=3, by="lead")).agent == "user"


def test_a_warning_without_approval_keeps_the_phase_from_being_signed_off() -> None:
    content = complete() | {"security-audit.jsonl": [{"r": "WARN"}]}
    phase = phase_at("security_warn", content)
    assert not phase.is_complete
    (status,) = phase.progress.departments
    assert status.blockers == (
        "a person accepts what security warns of first (approval_gates.security_warn)",
    )
    assert phase_at("security_warn", content, decided=3).is_complete


def test_what_was_signed_off_before_the_gate_was_switched_on_stays_so() -> None:
    config = config_from({"security_audit": True, "approval_gates": {"security_warn": True}})
    content = complete() | {"security-audit.jsonl": [{"r": "WARN"}]}
    found = facts(content, config=config, signed_off="c" * 40, signed_off_at=99)
    placed = tuple(one._replace(position=7) for one in found.committed)
    assert Phase(replace(found, committed=placed)).is_complete


MANUAL = config_from({"security_audit": True, "approval_gates": {"manual_qa": True}})


@pytest.mark.parametrize(
    ("lines", "why", "command"),
    [
        (
            [],
            "nobody has tested backend by hand (approval_gates.manual_qa)",
            "yolo-fs new manual-qa.jsonl --phase 1",
        ),
        (
            [{"r": "FAIL"}],
            "manual-qa.jsonl says FAIL",
            f"yolo-fs validate {FOLDER}/manual-qa.jsonl",
        ),
    ],
)
def test_a_test_by_hand_is_the_users_and_security_waits_for_it(
    lines: list[dict[str, Any]], why: str, command: str
) -> None:
    content = VERIFIED | ({"manual-qa.jsonl": lines} if lines else {})
    asked = turn(Phase(facts(content, config=MANUAL)))
    assert (asked.agent, asked.step, asked.why) == ("user", "qa", why)
    assert asked.sentence == "user tests by hand, and writes manual-qa.jsonl"
    assert asked.command == command
    passed = content | {"manual-qa.jsonl": [{"r": "PASS"}]}
    assert turn(Phase(facts(passed, config=MANUAL))).agent == "security"


@pytest.mark.parametrize(
    ("tested_at", "agent", "sentence"),
    [
        (9, "qa", "qa verifies what manual-qa.jsonl has found"),
        (5, "user", "user tests by hand, and writes manual-qa.jsonl"),
    ],
)
def test_what_a_test_by_hand_has_found_is_taken_up_by_qa_and_then_tested_again(
    tested_at: int, agent: str, sentence: str
) -> None:
    positions = {"manual-qa.jsonl": tested_at}
    found = facts(VERIFIED | {"manual-qa.jsonl": [{"r": "FAIL"}]}, config=MANUAL)
    placed = tuple(
        one._replace(position=positions.get(one.place.name, 7)) for one in found.committed
    )
    asked = turn(Phase(replace(found, committed=placed)))
    assert (asked.agent, asked.sentence) == (agent, sentence)


def test_an_approval_on_a_branch_beside_the_verdict_has_not_seen_it() -> None:
    """The merge gave the verdict the lower place, and the approval knew nothing of it."""
    phase = phase_at("code_review", REVIEWED, verdict=2, decided=3)
    assert turn(phase).agent == "qa"
    path = f"{FOLDER}/decisions.jsonl"
    (decided,) = phase.facts.versions[path]
    placed = tuple(
        one._replace(position=2) if one.place.name == "code-review.jsonl" else one
        for one in phase.facts.committed
    )
    versions = {**phase.facts.versions, path: (decided._replace(position=3),)}
    on_one_line = replace(phase.facts, committed=placed, versions=versions)
    assert turn(Phase(on_one_line)).agent == "qa"
    assert turn(Phase(replace(on_one_line, unseen={3: frozenset({2})}))).agent == "user"
