"""Subjects and trailers, from path and content."""

from __future__ import annotations

import re
from typing import Any

import pytest

from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.naming import spellings_of, subject_of, trailers_of
from yolo_fs.artifacts.table import ARTIFACTS
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.core.ids import GRAMMAR, Subject, read_scope
from yolo_fs.schemas.layout import Record

PHASE = ".yolo-planning/phases/01-auth/"
PLAN: dict[str, Any] = {"p": "01", "n": "01"}


def subject(name: str, *lines: dict[str, Any], home: str = PHASE) -> str:
    return subject_of(place_of(home + name), records(*lines), ())


def place_of(path: str) -> ArtifactPath:
    place = classify(path)
    assert place is not None
    return place


def records(*lines: dict[str, Any]) -> list[Record]:
    return [Record(number, line) for number, line in enumerate(lines, 1)]


@pytest.mark.proves("000:683", "000:719", "002:267", "002:255-262", "002:263-265")
@pytest.mark.parametrize(
    ("name", "lines", "expected"),
    [
        ("critique.jsonl", [{}], "docs(01): critique and gap analysis"),
        ("fe-critique.jsonl", [{}], "docs(01): critique and gap analysis"),
        ("research.jsonl", [{}], "docs(01): research findings"),
        ("architecture.toon", [{}], "docs(01): architecture design"),
        ("fe-architecture.toon", [{}], "docs(01): frontend architecture design"),
        ("ux-architecture.toon", [{}], "docs(01): UX architecture design"),
        ("01-01.plan.jsonl", [PLAN, {"id": "T1"}], "docs(01): plan 01-01"),
        ("01-01.plan.jsonl", [PLAN, {"id": "T1", "spec": ""}], "docs(01): plan 01-01"),
        ("01-01.plan.jsonl", [PLAN, {"spec": "do"}, {"id": "T2"}], "docs(01): plan 01-01"),
        (
            "01-01.plan.jsonl",
            [PLAN, {"spec": "do"}, {"spec": "it"}],
            "docs(01): enrich plan 01-01 specs",
        ),
        ("01-01.plan.jsonl", [PLAN], "docs(01): plan 01-01"),
        ("01-01.summary.jsonl", [{}], "docs(01): summary 01-01"),
        (
            "test-plan.jsonl",
            [{"plan": "01-01"}, {"plan": "01-01"}],
            "test(01): RED phase tests for plan 01-01",
        ),
        ("test-plan.jsonl", [{"plan": "01-01"}, {"plan": "01-02"}], "test(01): RED phase tests"),
        ("test-plan.jsonl", [{}], "test(01): RED phase tests"),
        ("code-review.jsonl", [{"plan": "01-01", "r": "approve"}], "docs(01): code review 01-01"),
        ("docs.jsonl", [{}], "docs(01): documentation"),
        ("verification.jsonl", [{}], "docs(01): verification results"),
        ("qa-code.jsonl", [{}], "docs(01): code quality review"),
        ("security-audit.jsonl", [{}], "docs(01): security audit"),
        ("integration-gate-result.jsonl", [{}], "docs(01): integration gate"),
        ("decisions.jsonl", [{}], "docs(01): decisions"),
        (".qa-gate-results.jsonl", [{}], "docs(01): qa-gate-results"),
    ],
)
def test_each_artifact_is_committed_under_its_prescribed_subject(
    name: str, lines: list[dict[str, Any]], expected: str
) -> None:
    assert subject(name, *lines) == expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (
            {"phase": 1, "step": "critique", "steps": {"critique": {"status": "complete"}}},
            "critique complete phase 1",
        ),
        (
            {"phase": 1, "step": "research", "steps": {"research": {"status": "skipped"}}},
            "research skipped phase 1",
        ),
        (
            {"phase": 1, "step": "planning", "steps": {"planning": {"status": "running"}}},
            "execution state phase 1",
        ),
        ({"phase": 12, "step": "planning"}, "execution state phase 12"),
        ({"phase": "x\ninjected", "step": "a b"}, "execution state phase 1"),
    ],
)
def test_a_state_file_is_called_after_the_transition_that_it_records(
    state: dict[str, Any], expected: str
) -> None:
    assert subject(".execution-state.json", state) == f"chore(state): {expected}"


def state(
    *entries: tuple[str, str], step: str = "planning", reached: str = "running"
) -> dict[str, Any]:
    """Return an execution state with escalations: id, status."""
    named = [{"id": f"ESC-01-02-{task}", "status": status} for task, status in entries]
    return {"phase": 1, "step": step, "steps": {step: {"status": reached}}, "escalations": named}


ESCALATIONS: dict[str, tuple[dict[str, Any] | None, dict[str, Any], str]] = {
    "taken in": (state(), state(("T1", "pending")), "escalation received phase 1"),
    "taken in by the first version": (None, state(("T1", "pending")), "escalation received phase 1"),
    "taken in beside another": (
        state(("T1", "resolved")), state(("T1", "resolved"), ("T2", "pending")), "escalation received phase 1"),
    "taken in again": (state(("T1", "resolved")), state(("T1", "pending")), "escalation received phase 1"),
    "closed": (state(("T1", "pending")), state(("T1", "resolved")), "escalation resolved phase 1"),
    "known only since it is closed": (state(), state(("T1", "resolved")), "escalation resolved phase 1"),
    "one level up": (state(("T1", "pending")), state(("T1", "pending")), "execution state phase 1"),
    "closed earlier": (
        state(("T1", "resolved")), state(("T1", "resolved"), step="qa", reached="complete"), "qa complete phase 1"),
    "closed with a step": (
        state(("T1", "pending")), state(("T1", "resolved"), step="qa", reached="complete"),
        "escalation resolved phase 1"),
    "no list": (state(), state() | {"escalations": "none"}, "execution state phase 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", ESCALATIONS)
def test_a_state_that_takes_an_escalation_in_or_closes_it_is_called_so(case: str) -> None:
    before, after, expected = ESCALATIONS[case]
    place, known = (
        place_of(PHASE + ".execution-state.json"),
        records(*(() if before is None else (before,))),
    )

    assert subject_of(place, records(after), known) == f"chore(state): {expected}"


def test_what_history_called_after_the_step_alone_is_still_understood() -> None:
    place = place_of(PHASE + ".execution-state.json")

    said = list(spellings_of(place, records(state(("T1", "pending"))), records(state())))

    assert said == [
        "chore(state): escalation received phase 1",
        "chore(state): execution state phase 1",
    ]
    assert list(spellings_of(place_of(PHASE + "critique.jsonl"), records({}), ())) == [
        "docs(01): critique and gap analysis"
    ]


def test_a_completed_phase_has_its_own_subject() -> None:
    assert (
        subject("state.json", {"ph": 3, "st": "complete"}, home=".yolo-planning/")
        == "chore(state): phase 3 complete"
    )


def test_every_subject_obeys_the_grammar() -> None:
    for row in ARTIFACTS:
        home = {"phase": PHASE, "root": ".yolo-planning/", "anywhere": PHASE}[row.home.value]
        name = row.file.format(dept="", plan="01-01", NN="01", department="backend")
        assert GRAMMAR.fullmatch(subject(name, {}, home=home)), row.kind


@pytest.mark.parametrize(
    "text", ["x\n\nSigned-off-by: a", "01-01\n", "Yolo-Artifact: plan", "#", "T1; rm"]
)
def test_free_text_never_enters_a_subject(text: str) -> None:
    assert subject("code-review.jsonl", {"plan": text}) == "docs(01): code review"
    with pytest.raises(ValueError, match="does not fit"):
        Subject("docs({phase}): plan {plan}").render(phase="01", plan=text)


def test_trailers_say_what_and_where_in_tokens() -> None:
    place = classify(PHASE + "ux-critique.jsonl")
    assert place is not None
    assert trailers_of(place) == (
        ("Yolo-Artifact", "critique"),
        ("Yolo-Phase", "01-auth"),
        ("Yolo-Dept", "uiux"),
        ("Yolo-Schema", "artifact/critique/1"),
    )


@pytest.mark.parametrize(
    ("scope", "phase", "plan"),
    [
        ("01", "01", None),
        ("1", "01", None),
        ("01-auth", "01", None),
        ("phase-3", "03", None),
        ("phase3", "03", None),
        ("01-02", "01", "01-02"),
        ("01-user-auth-02", "01", "01-02"),
        ("state", "", None),
        ("auth", "", None),
    ],
)
def test_every_historical_scope_is_understood(scope: str, phase: str, plan: str | None) -> None:
    read = read_scope(scope)
    assert (read.phase, str(read.plan) if read.plan else None) == (phase, plan)


def test_what_a_template_renders_it_matches() -> None:
    gaps = {"phase": "01", "plan": "01-02", "N": "1", "step": "planning", "artifact": "decisions", "type": "feat",
            "task": "T1 add", "R": "2", "text": "x"}  # fmt: skip
    for template in {subject.template for row in ARTIFACTS for subject in row.subjects}:
        names = re.findall(r"\{(\w+)\}", template)
        used = {name: gaps[name] for name in names}
        assert Subject(template).match(Subject(template).render(**used)) == used
