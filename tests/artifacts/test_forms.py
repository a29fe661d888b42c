"""Other forms with the same meaning are read as the documented one, in one place."""

from __future__ import annotations

from typing import Any

import pytest

from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.forms import FORMS, normalise
from yolo_fs.artifacts.table import ARTIFACTS, shape_named
from yolo_fs.core.reasons import Grade, Reason
from yolo_fs.schemas.base import Form
from yolo_fs.schemas.layout import Record

PHASE = ".yolo-planning/phases/03-search"
HEADER = {"p": "03", "n": "05", "t": "Index", "w": 1, "d": [], "obj": "Search answers."}
MUST_HAVES = {"tr": [], "ar": [], "kl": []}


def read(name: str, *lines: dict[str, Any], plans: tuple[str, ...] = ()) -> tuple[Any, Any]:
    place = classify(f"{PHASE}/{name}")
    assert place
    records = [Record(number, line) for number, line in enumerate(lines, 1)]
    normal = normalise(place, records, plans)
    told = [(fault.reason, fault.at) for _, fault in normal.faults]
    return [record.value for record in normal.records], told


def test_every_form_is_bound_to_its_reader() -> None:
    assert FORMS.keys() == set(Form)


@pytest.mark.parametrize(
    ("written", "normal", "at"),
    [
        ({"n": "03-05"}, {"n": "05"}, "/n"),
        ({"n": "5"}, {"n": "05"}, "/n"),
        ({"p": "03-05"}, {"p": "03"}, "/p"),
        ({"p": "03-search"}, {"p": "03"}, "/p"),
        ({"p": "phase 3"}, {"p": "03"}, "/p"),
        ({"d": ["01"]}, {"d": ["03-01"]}, "/d/0"),
        ({"d": ["03-01 "]}, {"d": ["03-01"]}, "/d/0"),
        ({"mh": MUST_HAVES | {"tr": [["x", "y"]]}}, {"mh": MUST_HAVES | {"tr": ["x, y"]}}, "/mh/tr/0"),
        ({"mh": MUST_HAVES | {"tr": [{"a": "x", "b": 2}]}}, {"mh": MUST_HAVES | {"tr": ["x: 2"]}}, "/mh/tr/0"),
        (
            {"mh": MUST_HAVES | {"ar": ["src/a.ts serves"]}},
            {"mh": MUST_HAVES | {"ar": [{"p": "", "pv": "src/a.ts serves", "c": ""}]}},
            "/mh/ar/0",
        ),
        (
            {"mh": MUST_HAVES | {"kl": ["a calls b"]}},
            {"mh": MUST_HAVES | {"kl": [{"fr": "", "to": "", "vi": "a calls b"}]}},
            "/mh/kl/0",
        ),
        ({"xd": ["01-02"]}, {"xd": [{"p": "01", "n": "02", "a": "", "r": ""}]}, "/xd/0"),
    ],
)  # fmt: skip
def test_a_plan_header_is_read_in_its_documented_form(
    written: dict[str, Any], normal: dict[str, Any], at: str
) -> None:
    (header,), told = read("03-05.plan.jsonl", {"mh": MUST_HAVES} | HEADER | written)
    assert header == {"mh": MUST_HAVES} | HEADER | normal
    assert told == [(Reason.UNTIDY_FORM, at)]


@pytest.mark.parametrize(
    "written", [{"n": "03-06"}, {"n": "6"}, {"p": "04-05"}, {"p": "03-06"}, {"p": "3 or 4"}]
)
def test_what_disagrees_with_the_name_of_the_file_stays_as_it_is(written: dict[str, Any]) -> None:
    (header,), told = read("03-05.plan.jsonl", {"mh": MUST_HAVES} | HEADER | written)
    assert header == {"mh": MUST_HAVES} | HEADER | written
    assert told == []


def test_a_plan_of_another_phase_is_read_as_a_cross_dependency() -> None:
    (header,), _ = read("03-05.plan.jsonl", HEADER | {"d": ["01-02", "03-04"]})
    assert header["d"] == ["03-04"]
    assert header["xd"] == [{"p": "01", "n": "02", "a": "", "r": ""}]


def test_a_plan_of_this_phase_is_read_as_a_dependency_within_it() -> None:
    own, foreign = {"p": "03", "n": "04"}, {"p": "01", "n": "02"}
    (header,), told = read("03-05.plan.jsonl", HEADER | {"d": ["03-01"], "xd": [own, foreign]})
    assert (header["d"], header["xd"]) == (["03-01", "03-04"], [foreign])
    assert (Reason.UNTIDY_FORM, "/xd/0") in told


def test_an_empty_optional_text_is_no_text() -> None:
    (_, task), told = read("03-05.plan.jsonl", HEADER, {"id": "T1", "spec": "", "v": ""})
    assert task == {"id": "T1", "v": ""}
    assert told == [(Reason.EMPTY_VALUE, "/spec")]


def test_null_says_nothing_where_nothing_may_be_said() -> None:
    said = {"mh": {"tr": ["a", None], "ar": None, "kl": []}, "sk": [None], "t": None, "d": None}
    (header,), told = read("03-05.plan.jsonl", HEADER | said)
    assert header == HEADER | {"mh": {"tr": ["a"], "kl": []}, "sk": [], "t": None, "d": None}
    assert set(told) == {(Reason.EMPTY_VALUE, at) for at in ("/sk", "/mh/tr", "/mh/ar")}


@pytest.mark.parametrize(
    ("plan", "plans"),
    [
        ("03-*", ["03-01", "03-02"]),
        ("03-01, 03-02", ["03-01", "03-02"]),
        ("01", ["03-01"]),
    ],
)
def test_a_review_of_several_plans_is_one_of_each(plan: str, plans: list[str]) -> None:
    verdict = {"plan": plan, "r": "approve", "cycle": 1, "dt": "2026-02-19"}
    lines, _ = read("code-review.jsonl", verdict, plans=("03-01", "03-02"))
    assert [line["plan"] for line in lines] == plans


def test_a_review_of_plans_that_are_not_there_waits_for_them() -> None:
    verdict = {"plan": "03-01, 03-09", "r": "approve", "cycle": 1, "dt": "2026-02-19"}
    lines, told = read("code-review.jsonl", verdict, plans=("03-01",))
    assert (lines, told) == ([verdict], [(Reason.WAITS_FOR, "/plan")])


def test_what_is_read_in_another_form_is_a_should() -> None:
    place = classify(f"{PHASE}/decisions.jsonl")
    assert place
    normal = normalise(place, [Record(1, {"ts": "2026-02-19 08:30"})])
    assert normal.records[0].value == {"ts": "2026-02-19T08:30:00Z"}
    assert [fault.grade for _, fault in normal.faults] == [Grade.SHOULD]


@pytest.mark.parametrize(
    ("name", "key", "written", "normal"),
    [
        ("03-05.summary.jsonl", "dv", [{"t": "T2", "files": ["a", "b"], "ok": True, "by": None}], ["T2: a, b: ok true"]),
        ("03-05.summary.jsonl", "fm", [{"path": "src/a.py", "change": "new"}], ["src/a.py"]),
        ("03-05.summary.jsonl", "ch", ["T1: abc1234", "none"], ["abc1234"]),
        ("critique.jsonl", "cf", 0.85, 85),
        ("critique.jsonl", "cf", 87.4, 87),
        ("critique.jsonl", "cf", 1.0, 1),
        ("escalation.jsonl", "dt", "2026-02-18T10:00", "2026-02-18T10:00:00Z"),
        ("escalation.jsonl", "dt", "2026-02-18", "2026-02-18T00:00:00Z"),
    ],
)  # fmt: skip
def test_a_value_is_read_in_its_documented_form(
    name: str, key: str, written: Any, normal: Any
) -> None:
    (line,), _ = read(name, {key: written})
    assert line[key] == normal


@pytest.mark.parametrize(
    "plan", ["all", "03-01 to 03-02", "03-01..03-02", "plan 03-01 and 03-02", "03-01/03-02"]
)
def test_the_plans_of_a_review_may_be_said_in_words(plan: str) -> None:
    line = {"plan": plan, "r": "approve", "cycle": 1, "dt": "2026-02-18"}
    lines, _ = read("code-review.jsonl", line, plans=("03-01", "03-02"))
    assert [one["plan"] for one in lines] == ["03-01", "03-02"]


def test_a_must_have_with_an_old_name_is_read_under_its_present_one() -> None:
    must_haves = MUST_HAVES | {"ar": [{"file": "src/a.ts", "provides": "search"}]}
    (header,), _ = read("03-05.plan.jsonl", HEADER | {"mh": must_haves})
    assert header["mh"]["ar"][0] | {"p": "src/a.ts", "pv": "search"} == header["mh"]["ar"][0]


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("integration-gate-result.jsonl", 3),
        ("po-qa-verdict.jsonl", 3),
        ("owner-review.jsonl", 3),
        ("owner-signoff.jsonl", 3),
        ("test-results.jsonl", 3),
        ("api-contracts.jsonl", 3),
        ("dept-handoff.jsonl", 3),
        ("critique.jsonl", 2),
        ("test-plan.jsonl", 2),
        ("component-specs.jsonl", 2),
    ],
)
def test_what_is_said_again_counts_where_the_last_line_does(name: str, counts: int) -> None:
    lines, faults = read(name, {"id": "A"}, {"id": "B"}, {"id": "A"})
    assert [line["id"] for line in lines] == ["A", "B", "A"][:counts]
    assert ((Reason.DUPLICATE_ID, "") in faults) == (counts == 2)


def test_the_table_says_of_which_artifacts_the_header_speaks_of_several_plans() -> None:
    said = {row.kind for row in ARTIFACTS if row.needs_plans}
    several = {
        row.kind
        for row in ARTIFACTS
        if row.header and Form.SEVERAL_PLANS in shape_named(row.header).accepts.values()
    }
    assert said == several == {"code-review"}
