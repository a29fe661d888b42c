"""Cross-references of an artifact."""

from __future__ import annotations

from typing import Any

import pytest

from yolo_fs.artifacts.classify import DOCUMENTS, classify
from yolo_fs.artifacts.examine import (
    CHECKS,
    commits_mentioned,
    examine,
    plan_facts,
    run_checks,
)
from yolo_fs.artifacts.export import all_schemas
from yolo_fs.artifacts.table import ARCHITECTURE_SECTIONS, ARTIFACTS, GRADES, Check
from yolo_fs.artifacts.verdicts import ArtifactPath, PlanFacts, Surroundings
from yolo_fs.core.reasons import Grade, Reason
from yolo_fs.schemas.layout import Record, Strictness

HEADER: dict[str, Any] = {
    "p": "01", "n": "02", "t": "Tokens", "w": 2, "d": ["01-01"], "obj": "Issue tokens",
    "mh": {"tr": [], "ar": [], "kl": []},
}  # fmt: skip
TASK: dict[str, Any] = {
    "id": "T1",
    "tp": "auto",
    "a": "add",
    "f": ["src/a.ts"],
    "v": "npm test",
    "done": "it passes",
}
FIRST_WAVE = {"01-01": PlanFacts(1, ())}


def place(name: str, phase: str = "01-auth") -> ArtifactPath:
    found = classify(f".yolo-planning/phases/{phase}/{name}")
    assert found is not None
    return found


def reasons(
    where: ArtifactPath, *lines: dict[str, Any], **around: Any
) -> list[tuple[Reason, int, str]]:
    records = [Record(number, line) for number, line in enumerate(lines, 1)]
    return [
        (fault.reason, line, fault.at)
        for line, fault in examine(where, records, Surroundings(**around), Strictness()).faults
    ]


def plan(
    *tasks: dict[str, Any], plans: dict[str, PlanFacts] = FIRST_WAVE, **header: Any
) -> list[tuple[Reason, int, str]]:
    return reasons(place("01-02.plan.jsonl"), HEADER | header, *(tasks or (TASK,)), plans=plans)


def test_a_sound_plan_has_no_finding() -> None:
    assert plan() == []


def test_each_check_of_the_table_is_bound_to_a_predicate() -> None:
    assert set(CHECKS) == set(Check)
    assert {check for row in (*ARTIFACTS, *DOCUMENTS) for check in row.checks} == set(Check)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ({"n": "03"}, (Reason.NAME_MISMATCH, 1, "/n")),
        ({"d": ["01-02"]}, (Reason.SELF_REFERENCE, 1, "/d/0")),
        ({"d": ["02"]}, (Reason.SELF_REFERENCE, 1, "/d/0")),
        ({"d": ["01-09"]}, (Reason.WAITS_FOR, 1, "/d/0")),
        ({"w": 1}, (Reason.WAVE_ORDER, 1, "/d/0")),
    ],
)
def test_a_plan_that_contradicts_its_place_is_told_where(
    header: dict[str, Any], expected: tuple[Reason, int, str]
) -> None:
    assert expected in plan(**header)


def test_a_circle_of_plans_is_named() -> None:
    around = {"01-01": PlanFacts(1, ("01-02",))}
    assert (Reason.DEPENDENCY_CYCLE, 1, "/d") in plan(plans=around)


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([TASK, TASK | {"a": "mend"}], (Reason.DUPLICATE_ID, 3, "/id")),
        ([TASK | {"td": ["T1"]}], (Reason.SELF_REFERENCE, 2, "/td/0")),
        ([TASK | {"td": ["T9"]}], (Reason.UNKNOWN_REFERENCE, 2, "/td/0")),
        (
            [TASK | {"td": ["T2"]}, TASK | {"id": "T2", "td": ["T1"]}],
            (Reason.DEPENDENCY_CYCLE, 2, "/td"),
        ),
        ([], (Reason.WRONG_LINE_COUNT, 1, "")),
    ],
)
def test_tasks_that_cannot_be_done_in_order_are_told(
    tasks: list[dict[str, Any]], expected: tuple[Reason, int, str]
) -> None:
    found = reasons(place("01-02.plan.jsonl"), HEADER, *tasks, plans=FIRST_WAVE)
    assert expected in found


def test_a_plan_of_another_phase_stands_in_the_wrong_directory() -> None:
    found = reasons(place("02-01.plan.jsonl"), HEADER | {"p": "02", "n": "01", "d": []}, TASK)
    assert (Reason.PHASE_MISMATCH, 0, "") in found


@pytest.mark.parametrize("said", ["²", "٠١", "9" * 5000, "", "one"])
def test_a_phase_that_is_spelled_oddly_ends_nobody(said: str) -> None:
    found = reasons(place("01-02.plan.jsonl"), HEADER | {"p": said}, TASK, plans=FIRST_WAVE)
    assert (Reason.BAD_FORMAT if said else Reason.EMPTY_VALUE, 1, "/p") in found


def test_a_number_of_any_length_is_compared_with_the_phase_of_the_directory() -> None:
    found = reasons(place("01-02.plan.jsonl"), HEADER | {"p": "9" * 5000}, TASK, plans=FIRST_WAVE)
    assert (Reason.PHASE_MISMATCH, 1, "/p") in found


def test_a_summary_may_only_name_commits_that_exist() -> None:
    line = {"p": "01", "n": "02", "ch": ["abc1234", "def5678"]}
    where = place("01-02.summary.jsonl")
    assert commits_mentioned(where, [Record(1, line)]) == ("abc1234", "def5678")
    found = reasons(where, line, commits={"abc1234": True, "def5678": False})
    assert (Reason.UNKNOWN_COMMIT, 1, "/ch/1") in found
    assert (Reason.UNKNOWN_COMMIT, 1, "/ch/0") not in found


def test_an_escalation_without_a_moment_is_a_finding() -> None:
    found = reasons(
        place("escalation.jsonl"),
        {"id": "ESC-01-02-T3", "dt": ""},
        {"id": "ESC-01-02-T3", "dt": ""},
    )
    assert {(Reason.EMPTY_VALUE, line, "/dt") for line in (1, 2)} <= set(found)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("2026-02-19T08:00:00Z", "2026-02-19T08:00:00.5Z"),
        ("2026-02-19T09:30:00+02:00", "2026-02-19T08:00:00Z"),
        ("2026-02-19T08:00:00Z", "2026-02-19T07:00:00-02:00"),
    ],
)
def test_moments_are_compared_and_not_their_spelling(earlier: str, later: str) -> None:
    first, second = ({"id": "ESC-01-02-T3", "dt": dt} for dt in (earlier, later))
    found, backwards = (
        reasons(place("escalation.jsonl"), *pair) for pair in ((first, second), (second, first))
    )
    assert [one for one in found if one[2] == "/dt"] == []
    assert (Reason.OUT_OF_RANGE, 2, "/dt") in backwards


def test_records_of_one_escalation_move_forward_in_time() -> None:
    line = {
        "id": "ESC-01-02-T1",
        "agent": "dev",
        "reason": "r",
        "sb": "a",
        "tgt": "senior",
        "sev": "major",
        "st": "open",
    }
    first, second = line | {"dt": "2026-02-19T08:00:00Z"}, line | {"dt": "2026-02-19T07:59:59Z"}
    assert (Reason.OUT_OF_RANGE, 2, "/dt") in reasons(place("escalation.jsonl"), first, second)
    assert reasons(place("escalation.jsonl"), second, first) == []


def test_an_architecture_without_its_sections_is_warned_not_rejected() -> None:
    records = [Record(1, {"tech_decisions": ["JWT"]})]
    found = examine(place("architecture.toon"), records, Surroundings(), Strictness())
    told = {(fault.reason, fault.level.value) for _, fault in found.faults}
    assert told == {(Reason.SECTION_MISSING, "warning")}
    assert len(found.faults) == 4


@pytest.mark.parametrize("header", [{}, {"w": "1"}, {"w": True}, {"w": None}])
def test_a_plan_without_a_usable_wave_tells_others_nothing(header: dict[str, Any]) -> None:
    assert plan_facts(header) is None


@pytest.mark.parametrize("junk", [{"d": "01-01"}, {"d": [1, None]}, {"w": []}, {"p": 1, "n": []}])
def test_no_junk_in_a_header_makes_the_checks_raise(junk: dict[str, Any]) -> None:
    assert plan(**junk)


def test_what_a_mild_check_finds_is_a_warning_and_the_schemas_say_so() -> None:
    said = {
        each["check"]: each["grade"]
        for schema in all_schemas().values()
        for each in schema.get("x-yolo-checks", ())
    }
    assert said == {check: grade for check, grade in GRADES.items() if check in said}
    assert said["wave order"] == "should" and said["waves"] == "must"
    same_wave = Record(1, HEADER | {"w": 1})
    around = Surroundings(plans=FIRST_WAVE)
    [(_, found)] = run_checks(place("01-02.plan.jsonl"), [same_wave], around)
    assert (found.reason, found.grade) == (Reason.WAVE_ORDER, Grade.SHOULD)
    some = run_checks(place("architecture.toon"), [Record(1, {"risks": ["none"]})], around)
    assert [(fault.at, fault.grade) for _, fault in some] == [
        (f"/{section}", Grade.SHOULD) for section in ARCHITECTURE_SECTIONS if section != "risks"
    ]
    [(_, none)] = run_checks(place("architecture.toon"), [Record(1, {"title": "x"})], around)
    assert (none.reason, none.grade) == (Reason.SECTION_MISSING, Grade.MUST)
