"""Every example of an artifact agrees with its name, line by line, and the artifact table is sound."""

from __future__ import annotations

import json
import re
import string
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.artifacts.table import ARTIFACTS, RUNTIME, Artifact, Naming, by_kind, shape_named
from yolo_fs.core.reasons import Fault, Grade, Level, Reason
from yolo_fs.protocol.departments import WORKING
from yolo_fs.schemas.base import Shape
from yolo_fs.schemas.check import check
from yolo_fs.schemas.layout import Format, Strictness
from yolo_fs.schemas.lines.escalation import EscalationMessageLine
from yolo_fs.schemas.lines.integration import GateOutput, RivalVerdict
from yolo_fs.schemas.lines.planning import (
    PlanHeader,
    PlanTask,
    Requirement,
    Summary,
    TurboPlanHeader,
    TurboTask,
)
from yolo_fs.schemas.lines.review import ReviewFinding, ReviewVerdict

EXAMPLES = Path(__file__).parents[2] / "fixtures" / "examples" / "artifacts"

READER_REASONS = frozenset({
    Reason.CARRIAGE_RETURN, Reason.CONFLICT_MARKER, Reason.DUPLICATE_KEY, Reason.EMPTY_FILE, Reason.FENCED_JSON,
    Reason.FRONT_MATTER_MISSING, Reason.FRONT_MATTER_UNCLOSED, Reason.JSON_PARSE_ERROR, Reason.LONE_SURROGATE,
    Reason.NOT_AN_OBJECT, Reason.NOT_FINITE, Reason.NOT_UTF8, Reason.TOON_INVALID, Reason.UNTERMINATED,
    Reason.WRONG_LINE_COUNT, Reason.YAML_TAB,
})  # fmt: skip
"""Reasons that no schema gives: the strict reader and the line count find them."""

CHECKED_LATER = frozenset({
    "escalation/out_of_range__time_goes_back",
    "plan/dependency_cycle__two_tasks", "plan/self_reference__task_waits_for_itself",
    "code-review/state_conflict__approved_although_tests_came_late",
    "code-review/state_conflict__approved_beside_critical",
    "verification/state_conflict__pass_with_failed_check", "verification/state_conflict__pass_with_failed_count",
    "qa-code/state_conflict__pass_with_critical_finding", "qa-code/state_conflict__pass_with_failed_tests",
    "qa-code/state_conflict__pass_with_lint_errors", "qa-code/state_conflict__pass_with_major_finding",
    "manual-qa/state_conflict__pass_with_failed_test", "qa-gate-results/state_conflict__pass_with_failed_must_have",
    "qa-gate-results/state_conflict__pass_with_failed_gate",
    "qa-gate-results/state_conflict__pass_with_failed_tests", "security-audit/state_conflict__pass_with_critical_count",
    "security-audit/state_conflict__pass_with_critical_finding",
    "security-audit/state_conflict__warn_with_critical_count",
    "security-audit/state_conflict__warn_with_critical_finding",
    "integration-gate-result/state_conflict__pass_with_failed_checks",
    "integration-gate-result/state_conflict__pass_with_failures",
})  # fmt: skip
"""Faults between lines: every line is good, `artifacts.examine` finds the fault."""

JSON_FORMATS = (Format.JSON, Format.JSONL)


def examples(kind: str, folder: str) -> list[Path]:
    return sorted((EXAMPLES / kind / folder).iterdir())


def cases(folder: str) -> list[Any]:
    return [
        pytest.param(artifact, file, id=f"{artifact.kind}/{file.stem}")
        for artifact in ARTIFACTS
        if artifact.format in JSON_FORMATS
        for file in examples(artifact.kind, folder)
    ]


def reason_in(file: Path) -> Reason:
    return Reason.of(file.stem.partition("__")[0])


def records(artifact: Artifact, file: Path) -> list[dict[str, Any]]:
    text = file.read_text(encoding="utf-8")
    return (
        [json.loads(text)]
        if artifact.format is Format.JSON
        else [json.loads(line) for line in text.splitlines()]
    )


def errors_in(artifact: Artifact, file: Path) -> list[Fault]:
    lines = records(artifact, file)
    shapes = [artifact.shape_of(line, position=i, first=lines[0]) for i, line in enumerate(lines)]
    faults = chain.from_iterable(
        check(shape, line)[1] for shape, line in zip(shapes, lines, strict=True) if shape
    )
    return [fault for fault in faults if fault.level is Level.ERROR]


def shapes_of(artifact: Artifact) -> tuple[type[Shape], ...]:
    return (*artifact.shapes, *map(shape_named, artifact.relaxed))


@pytest.mark.parametrize(("artifact", "file"), cases("ok"))
def test_good_example_has_no_fault(artifact: Artifact, file: Path) -> None:
    assert errors_in(artifact, file) == []


@pytest.mark.parametrize(("artifact", "file"), cases("bad"))
def test_bad_example_gives_the_reason_in_its_name(artifact: Artifact, file: Path) -> None:
    if reason_in(file) in READER_REASONS:
        pytest.skip("the strict reader gives this reason")
    later = f"{artifact.kind}/{file.stem}" in CHECKED_LATER
    assert [fault.reason for fault in errors_in(artifact, file)][:1] == (
        [] if later else [reason_in(file)]
    )


def test_every_fault_between_lines_has_its_example() -> None:
    there = {f"{file.parts[-3]}/{file.stem}" for file in EXAMPLES.glob("*/bad/*")}
    assert there >= CHECKED_LATER


@pytest.mark.parametrize("artifact", ARTIFACTS, ids=lambda artifact: artifact.kind)
def test_every_kind_has_good_and_bad_examples(artifact: Artifact) -> None:
    good, bad = examples(artifact.kind, "ok"), examples(artifact.kind, "bad")
    assert len(good) >= 2
    assert len(bad) >= 3
    assert {file.suffix for file in good + bad} == {Path(artifact.file).suffix}


def test_every_example_belongs_to_a_kind() -> None:
    assert {folder.name for folder in EXAMPLES.iterdir()} == {
        artifact.kind for artifact in ARTIFACTS
    }


# --- the table -------------------------------------------------------------------------------------------------------


def test_kinds_and_files_are_unique() -> None:
    assert len({artifact.kind for artifact in ARTIFACTS}) == len(ARTIFACTS)
    assert len({artifact.file for artifact in ARTIFACTS}) == len(ARTIFACTS)


@pytest.mark.parametrize("artifact", ARTIFACTS, ids=lambda artifact: artifact.kind)
def test_file_template_compiles(artifact: Artifact) -> None:
    gaps = {"dept": "fe-", "plan": "01-02", "NN": "01", "department": "frontend"}
    name = artifact.file.format_map(gaps)
    assert {gap for _, gap, _, _ in string.Formatter().parse(artifact.file) if gap} <= gaps.keys()
    assert re.fullmatch(r"\.?[A-Za-z0-9][A-Za-z0-9.-]*\.(jsonl|json|toon|md)", name)


@pytest.mark.parametrize("artifact", ARTIFACTS, ids=lambda artifact: artifact.kind)
def test_every_subject_can_be_rendered_and_read_back(artifact: Artifact) -> None:
    gaps = {"phase": "01", "plan": "01-02", "N": "1", "step": "planning", "artifact": "decisions"}
    for subject in artifact.subjects:
        assert subject.match(subject.render(**gaps)) is not None


@pytest.mark.parametrize(
    ("naming", "count"),
    [
        (Naming.PLACE, {1}),
        (Naming.ENRICHMENT, {2}),
        (Naming.ONE_PLAN, {2}),
        (Naming.DEPARTMENT, {len(WORKING)}),
        (Naming.COMPLETION, {2}),
        (Naming.TRANSITION, {5}),
    ],
)
def test_naming_has_as_many_subjects_as_its_rule_chooses_from(
    naming: Naming, count: set[int]
) -> None:
    chosen = [artifact for artifact in ARTIFACTS if artifact.naming is naming]
    assert chosen
    assert {len(artifact.subjects) for artifact in chosen} <= count


@pytest.mark.parametrize("artifact", ARTIFACTS, ids=lambda artifact: artifact.kind)
def test_row_has_the_shapes_that_its_layout_needs(artifact: Artifact) -> None:
    has_header, has_body = bool(artifact.header), bool(artifact.body)
    if artifact.format is Format.JSONL:
        assert has_header or has_body
        assert (has_header and has_body) or not (artifact.repeats_header or artifact.needs_body)
    else:
        is_shaped = artifact.format in (Format.JSON, Format.FRONT_MATTER)
        assert (has_header, has_body) == (is_shaped, False)


def test_no_artifact_is_a_runtime_file() -> None:
    assert [a.file for a in ARTIFACTS if any(fnmatch(a.file, pattern) for pattern in RUNTIME)] == []


def test_kind_is_found_by_its_name() -> None:
    found = by_kind("critique")
    assert found is not None
    assert found.file == "{dept}critique.jsonl"
    assert by_kind("criticism") is None


@pytest.mark.parametrize("artifact", ARTIFACTS, ids=lambda artifact: artifact.kind)
def test_old_keys_lead_to_present_ones(artifact: Artifact) -> None:
    for shape in shapes_of(artifact):
        assert set(shape.renamed_keys.values()) <= shape.model_fields.keys()
        assert not shape.renamed_keys.keys() & shape.model_fields.keys()


# --- which shape reads a line ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "shapes"),
    [
        ({"eff": "balanced", "mh": {}}, (PlanHeader, PlanTask)),
        ({"eff": "turbo", "mh": {}}, (TurboPlanHeader, TurboTask)),
        ({"eff": "balanced"}, (PlanHeader, PlanTask)),
        ({"must_haves": []}, (PlanHeader, PlanTask)),
    ],
)
def test_turbo_plan_is_read_with_relaxed_shapes(
    header: dict[str, Any], shapes: tuple[type[Shape], ...]
) -> None:
    plan = by_kind("plan")
    assert plan is not None
    assert (
        plan.shape_of(header, position=0, first=header),
        plan.shape_of({}, position=1, first=header),
    ) == shapes


def test_later_verdict_begins_another_review() -> None:
    review = by_kind("code-review")
    assert review is not None
    verdict = {"plan": "01-01", "r": "approve"}
    assert review.shape_of(verdict, position=3, first=verdict) is ReviewVerdict
    assert review.shape_of({"f": "src/auth.ts"}, position=4, first=verdict) is ReviewFinding


def test_only_line_has_no_second() -> None:
    summary = by_kind("summary")
    assert summary is not None
    assert summary.shape_of({}, position=1, first={}) is None


# --- legacy and rivals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "value", "key", "expected"),
    [
        (Requirement, {"id": "REQ-01", "t": "Log in", "p": "must"}, "pri", "must"),
        (
            TurboTask,
            {"id": "T1", "n": "Log in", "f": [], "ac": "It works", "done": "Done"},
            "v",
            "It works",
        ),
        (
            TurboTask,
            {"id": "T1", "title": "x", "action": "y", "files": [], "v": "v", "done": "z"},
            "a",
            "y",
        ),
    ],
)
def test_legacy_mode_reads_old_keys(
    shape: type[Shape], value: dict[str, Any], key: str, expected: str
) -> None:
    read, faults = check(shape, value, Strictness(legacy=True))
    assert read is not None
    assert getattr(read, key) == expected
    assert {fault.level for fault in faults} == {Level.WARNING}


def test_legacy_summary_still_needs_its_other_keys() -> None:
    _, faults = check(Summary, {"p": "01", "n": "02", "commits": []}, Strictness(legacy=True))
    assert {fault.at for fault in faults if fault.level is Level.ERROR} >= {"/s", "/dt"}


@pytest.mark.parametrize(
    ("shape", "value", "expected"),
    [
        (RivalVerdict, {"r": "accept", "scope_match": "full"}, "accept -> approve"),
        (RivalVerdict, {"r": "PATCH", "missing": []}, "PATCH -> patch"),
        (GateOutput, {"gate": "fail"}, "cross_checks"),
        (EscalationMessageLine, {"issue": "The gateway strips the path"}, "reason (issue)"),
    ],
)
def test_rival_shape_is_told_how_to_change(
    shape: type[Shape], value: dict[str, Any], expected: str
) -> None:
    assert shape.matches(value)
    (fault,) = check(shape, value)[1]
    assert fault.reason is Reason.RIVAL_SHAPE
    assert expected in fault.expected


def shapes() -> list[tuple[str, type[Shape], dict[str, Any]]]:
    """Return every shape of a good example's lines, with such a line."""
    found: dict[str, tuple[type[Shape], dict[str, Any]]] = {}
    for artifact, file in (case.values for case in cases("ok")):
        lines = records(artifact, file)
        for position, line in enumerate(lines):
            shape = artifact.shape_of(line, position=position, first=lines[0])
            if shape:
                found.setdefault(shape.__name__, (shape, line))
    return [(name, shape, line) for name, (shape, line) in found.items()]


SPEAKING = {
    "ArchivedFinding": ["finding", "q"], "CritiqueFinding": ["q"], "DebugReport": ["hypothesis"], "DocEntry": ["content"],
    "EscalationLine": ["dec", "reason"], "Gap": ["desc"], "LoggedDecision": ["dec"], "PlanHeader": ["t"], "PlanTask": ["a"],
    "PlannedTests": ["desc"], "QualityFinding": ["issue"], "Request": ["q"], "Requirement": ["id", "t"],
    "ResearchFinding": ["finding", "q"], "ReviewFinding": ["issue"], "SecurityFinding": ["issue"],
    "VerificationCheck": ["c"], "DesignToken": ["name", "val"], "ComponentSpec": ["name"], "UserFlowLine": ["name"],
    "ComponentHandoff": ["component"], "EndpointContract": ["endpoint"], "Analysis": ["intent"],
}  # fmt: skip
"""Shape → the keys without whose text its record says nothing."""


@pytest.mark.parametrize(
    "blank", ["", "  ", "\t\n", "\u00a0"], ids=["empty", "spaces", "lines", "no_break_space"]
)
def test_a_record_that_says_nothing_is_refused_and_the_place_is_named(blank: str) -> None:
    seen = {name: (shape, line) for name, shape, line in shapes()}
    for name, wanted in SPEAKING.items():
        shape, line = seen[name]
        for key in wanted:
            _, faults = check(shape, line | {key: blank})
            told = [f for f in faults if f.at == f"/{key}"]
            assert [f.reason for f in told] == [Reason.EMPTY_VALUE], (name, key, faults)
            assert told[0].grade is Grade.MUST and ", such as " in told[0].expected, (name, key)


def test_what_agents_leave_empty_beside_it_is_no_more_than_a_warning() -> None:
    seen = {name: (shape, line) for name, shape, line in shapes()}
    for name, key in (
        ("CritiqueFinding", "ctx"),
        ("ResearchFinding", "rel"),
        ("PlanHeader", "obj"),
        ("Gap", "act"),
    ):
        shape, line = seen[name]
        _, faults = check(shape, line | {key: ""})
        assert [(f.reason, f.grade) for f in faults] == [(Reason.EMPTY_VALUE, Grade.SHOULD)], (
            name,
            key,
        )
