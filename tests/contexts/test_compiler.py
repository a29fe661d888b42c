"""Contexts are cut in the documented order and to the byte; whatever stands in a source stays one valid line."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest

from yolo_fs.authority.actors import Actor, find_actor
from yolo_fs.contexts.compiler import (
    CompiledContext,
    compile_context,
    differences,
    unproved_lines,
)
from yolo_fs.contexts.selection import ContextSource, ContextSources, Origin
from yolo_fs.core.ids import PhaseId, PlanId
from yolo_fs.core.reasons import YoloError
from yolo_fs.phase.report import tokens
from yolo_fs.protocol.contexts import CONTEXT_BY_ROLE, Cut, Reach, budget_of
from yolo_fs.protocol.departments import Dept, Mode
from yolo_fs.schemas.layout import Record
from yolo_fs.system.toon import read_toon, write_value

ROOT = ".yolo-planning"
PHASE = f"{ROOT}/phases/01-auth"
LINES = tuple(f"line {number}" for number in range(200))


def source(path: str, *records: Mapping[str, Any], lines: tuple[str, ...] = ()) -> ContextSource:
    return ContextSource(
        path, tuple(Record(number, dict(one)) for number, one in enumerate(records, 1)), lines
    )


def gathered(
    who: str, *sources: ContextSource, department: Dept | None = None, **more: Any
) -> ContextSources:
    actor = find_actor(who, department, Mode.MULTI)
    return ContextSources(PhaseId("01", "auth"), actor, tuple(sources), **more)


def task(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": f"T{number}",
        "tp": "auto",
        "a": "Do",
        "f": ["src/a.ts"],
        "v": "test",
        "done": "Green",
        **more,
    }


HEADER = {
    "p": "01",
    "n": "02",
    "t": "Tokens",
    "w": 1,
    "d": [],
    "obj": "Sign",
    "mh": {"tr": ["It signs"]},
}


def plan(*tasks: Mapping[str, Any], name: str = "01-02") -> ContextSource:
    return source(f"{PHASE}/{name}.plan.jsonl", HEADER, *tasks)


def decoded(made: CompiledContext) -> dict[str, Any]:
    """Decode strictly, which finds wrong counts, wrong quotes, controls, and lines that are none."""
    reading = read_toon(made.text.encode(), "context")
    assert reading.findings == (), made.text
    return dict(reading.records[0].value)


def rich() -> tuple[ContextSource, ...]:
    """Return what makes every part of a Senior's context that a cut may take."""
    conventions = [{"category": f"tag{n % 7}", "rule": f"rule number {n}"} for n in range(20)]
    return (
        plan(task(1, spec="Write it", ts="It works"), task(2, spec="Test it", ts="It works")),
        source(
            f"{ROOT}/reqs.jsonl",
            *({"id": f"REQ-{n:02}", "t": f"title number {n}", "pri": "must"} for n in range(20)),
        ),
        source(
            f"{PHASE}/architecture.toon",
            lines=("phase: 01", "risks[9]{risk}:", *("  prose one",) * 9),
        ),
        source(
            f"{PHASE}/01-01.summary.jsonl",
            {"s": "complete", "t": "the plan before " * 9, "fm": ["src/b.ts"]},
        ),
        source(
            f"{ROOT}/conventions.json",
            {"conventions": conventions},
            lines=(json.dumps(conventions),),
        ),
    )


MARKS = {
    Cut.CONVENTIONS: "rule number",
    Cut.REQUIREMENTS: "title number",
    Cut.PROSE: "prose one",
    Cut.PRIOR: "plan before",
}


@pytest.fixture(scope="module")
def by_budget() -> dict[int, CompiledContext]:
    """Return one context at every budget, from the one that holds it whole down to the one that holds its header."""
    world = gathered("senior", *rich(), plan=PlanId("01", "02"))
    whole = compile_context(world, write_value)
    assert (whole.cut, whole.left_out) == (Cut.NOTHING, ())
    return {
        budget: compile_context(world, write_value, budget) for budget in range(whole.tokens, 7, -1)
    }


def at(by_budget: Mapping[int, CompiledContext], cut: Cut) -> dict[str, Any]:
    return decoded(next(one for one in by_budget.values() if one.cut is cut))


def test_a_budget_is_kept_whatever_it_is_and_the_documented_order_with_it(
    by_budget: dict[int, CompiledContext],
) -> None:
    for budget, made in by_budget.items():
        assert tokens(made.text) <= budget
        decoded(made)
        if made.cut is not Cut.LINES:
            gone = [cut for cut, mark in MARKS.items() if mark not in made.text]
            assert gone == [cut for cut in MARKS if cut <= made.cut]
            assert {one.cut for one in made.left_out} == set(gone)


def test_a_smaller_budget_cuts_further_step_by_step(by_budget: dict[int, CompiledContext]) -> None:
    cuts = [made.cut for made in by_budget.values()]
    assert cuts == sorted(cuts)
    assert set(cuts) == set(Cut)


def test_requirements_are_cut_to_ids_and_conventions_to_tags_each_said_once(
    by_budget: dict[int, CompiledContext],
) -> None:
    value = at(by_budget, Cut.REQUIREMENTS)
    assert value["reqs"][0] == {"id": "REQ-00"}
    assert [one["category"] for one in value["conventions"]] == [f"tag{n}" for n in range(7)]
    assert {"section": "reqs", "what": "title", "why": "requirements to ids only"} in value[
        "left_out"
    ]


def test_prose_is_cut_to_its_headings(by_budget: dict[int, CompiledContext]) -> None:
    assert at(by_budget, Cut.PROSE)["architecture"] == ["phase: 01", "risks[9]{risk}:"]


def test_vital_lines_go_last_and_what_is_missing_is_counted() -> None:
    tasks = [task(number, spec="x" * 40) for number in range(1, 100)]
    made = compile_context(gathered("dev", plan(*tasks)), write_value, 500)
    value = decoded(made)
    assert [one["id"] for one in value["tasks"]] == [
        f"T{n}" for n in range(1, len(value["tasks"]) + 1)
    ]
    left = next(one for one in value["left_out"] if one["section"] == "tasks")
    assert left["what"] == f"{99 - len(value['tasks'])} of 99 lines"
    assert 450 < made.tokens <= 500


def test_a_line_that_no_budget_holds_hides_none_of_the_others() -> None:
    made = compile_context(
        gathered("dev", plan(task(1, spec="x" * 10_000_000), task(2, spec="Write it"))), write_value
    )
    assert [one["id"] for one in decoded(made)["tasks"]] == ["T2"]
    assert made.left_out[0].what == "1 of 2 lines"


def test_random_worlds_keep_their_budgets() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(150):
        tasks = [
            task(n, spec=hostile(chance), ts=hostile(chance), a=hostile(chance))
            for n in range(1, chance.randrange(2, 30))
        ]
        critique = (
            {
                "id": f"C{n}",
                "sev": "major",
                "q": hostile(chance),
                "sug": hostile(chance),
                "st": "open",
            }
            for n in range(9)
        )
        names = [
            ("dev", None),
            ("senior", None),
            ("tester", None),
            ("scout", None),
            ("lead", Dept.FRONTEND),
        ]
        who, department = chance.choice(names)
        world = gathered(
            who,
            plan(*tasks),
            source(f"{PHASE}/critique.jsonl", *critique),
            *rich()[1:],
            department=department,
        )
        budget = chance.choice([10, 50, 150, 400, 1000, 5000])
        made = compile_context(world, write_value, budget)
        assert made.tokens <= budget
        decoded(made)


# --- hostile content --------------------------------------------------------------------------------------------------

ALPHABET = ["\n", "\r", "\t", '"', "\\", ",", ":", "#", "- ", "[1]", "{a}", "|", " ", "é", "\u2028", "\u202e", "\x1b[2J",
            "\x00", "\x7f", "\u200b", "\U000e0001", "true", "0", "-1", "word", "```", "tasks[9]{id}:", "\ufeff", "\xa0"]  # fmt: skip


def hostile(chance: random.Random) -> str:
    return "".join(chance.choice(ALPHABET) for _ in range(chance.randrange(12)))


@pytest.mark.parametrize(
    "text", [*ALPHABET, 'a,"b": [c]\n# d', "x" * 3000, "", " lead", "trail "], ids=repr
)
def test_whatever_a_specification_says_is_one_line_and_comes_back_as_it_was(text: str) -> None:
    made = compile_context(gathered("dev", plan(task(1, spec=text))), write_value)
    assert len(made.text.splitlines()) == len(made.lines)
    said = decoded(made)["tasks"][0]["spec"]
    assert said == (text if ord(max(text, default=" ")) < 0x10000 else "\\U000e0001")


def test_a_text_that_looks_like_a_number_stays_a_text() -> None:
    made = compile_context(
        gathered("dev", plan(task(1, spec="007"), task(2, spec="1e3"))), write_value
    )
    assert [one["spec"] for one in decoded(made)["tasks"]] == ["007", "1e3"]


# --- who is shown what ------------------------------------------------------------------------------------------------


def test_a_dev_is_shown_the_specification_and_what_names_the_task_alone() -> None:
    sources = plan(task(1, spec="Write it", ts="secret test", a="secret action"))
    made = compile_context(gathered("dev", sources), write_value)
    assert decoded(made)["tasks"] == [
        {"id": "T1", "files": "src/a.ts", "spec": "Write it", "plan": "01-02"}
    ]
    assert "secret" not in made.text
    (held,) = [one for one in made.withheld if one.section == "tasks"]
    assert held.what == "columns action, done"
    assert "`spec` field ONLY" in held.rule


def test_a_tester_gets_the_tasks_with_a_test_specification() -> None:
    made = compile_context(
        gathered("tester", plan(task(1, spec="a", ts="b"), task(2, spec="c"))), write_value
    )
    assert [one["id"] for one in decoded(made)["tasks"]] == ["T1"]


def test_a_senior_gets_sketched_and_enriched_tasks_apart() -> None:
    made = compile_context(
        gathered("senior", plan(task(1), task(2, spec="c", ts="d"))), write_value
    )
    value = decoded(made)
    assert [sorted(value[key][0]) for key in ("tasks", "enriched_tasks")] == [
        ["action", "done", "files", "id", "plan", "verify"],
        ["action", "done", "files", "id", "plan", "spec", "test_spec"],
    ]


def test_the_qa_engineer_sees_of_a_summary_its_files_alone() -> None:
    said = {
        "s": "complete",
        "t": "secret",
        "fm": ["src/a.ts"],
        "dv": ["secret"],
        "tst": "red_green",
    }
    made = compile_context(
        gathered("qa-code", source(f"{PHASE}/01-01.summary.jsonl", said)), write_value
    )
    assert decoded(made)["plan_summaries"] == [{"plan": "01-01", "fm": "src/a.ts"}]
    assert "secret" not in made.text


def test_the_plans_that_are_done_are_no_dev_s_any_more() -> None:
    plans = (plan(task(1, spec="a"), name="01-01"), plan(task(1, spec="b"), name="01-02"))
    made = compile_context(
        gathered("dev", *plans, done=frozenset({PlanId("01", "01")})), write_value
    )
    assert [one["plan"] for one in decoded(made)["tasks"]] == ["01-02"]
    named = compile_context(gathered("dev", *plans, plan=PlanId("01", "01")), write_value)
    assert [one["plan"] for one in decoded(named)["tasks"]] == ["01-01"]


@pytest.mark.proves("000:715")
@pytest.mark.parametrize("role", ["critic", "architect"])
def test_critic_and_architect_are_given_what_the_phase_before_hands_over_to_theirs(
    role: str,
) -> None:
    before = [
        source(
            f"{ROOT}/phases/00-base/phase-handoff.jsonl",
            {"from_phase": "00", "to_phase": to, "decisions": [f"for {to}"], "open_items": ["SSO"]},
        )
        for to in ("01", "02")
    ]
    made = decoded(compile_context(gathered(role, *before), write_value))
    assert [(one["decisions"], one["open_items"]) for one in made["phase_handoff"]] == [
        ("for 01", "SSO")
    ]


def test_each_department_works_from_its_own_artifacts() -> None:
    own = source(f"{PHASE}/fe-01-03.plan.jsonl", HEADER, task(1, spec="frontend"))
    other = plan(task(1, spec="backend"))
    for who, said in (("fe-dev", "frontend"), ("dev", "backend")):
        assert [
            one["spec"]
            for one in decoded(compile_context(gathered(who, own, other), write_value))["tasks"]
        ] == [said]


def test_the_roadmap_is_quoted_line_by_line_to_those_who_may_read_it() -> None:
    text = ("# Roadmap", "## Phase 1: Login", "**Goal:** Sign in: safely", "**Reqs:** REQ-01", "**Success Criteria:**",
            "- a token works once", "1. it expires", "", "## Phase 2: Page", "**Goal:** Another")  # fmt: skip
    reqs = source(
        f"{ROOT}/reqs.jsonl", {"id": "REQ-01", "t": "Login"}, {"id": "REQ-02", "t": "Page"}
    )
    sources = (source(f"{ROOT}/ROADMAP.md", lines=text), reqs)
    value = decoded(compile_context(gathered("lead", *sources), write_value))
    assert value["goal"] == "Sign in: safely"
    assert value["success_criteria"] == ["a token works once", "it expires"]
    assert [one["id"] for one in value["reqs"]] == ["REQ-01"]
    senior = compile_context(gathered("senior", *sources), write_value)
    assert "goal" not in decoded(senior)
    assert [one["id"] for one in decoded(senior)["reqs"]] == [
        "REQ-01",
        "REQ-02",
    ]  # the choice would tell of it as well


def test_nobody_is_given_a_context_that_the_protocol_does_not_name() -> None:
    with pytest.raises(YoloError, match=r"no context is compiled for go\.md"):
        compile_context(gathered("go"), write_value)


def test_every_row_names_something_that_exists() -> None:
    assert len(CONTEXT_BY_ROLE) == 18
    for row in CONTEXT_BY_ROLE.values():
        keys = [(one.key, one.departments) for one in row.sections]
        assert len(set(keys)) == len(keys), row.role
        assert all(one.reach in Reach for one in row.sections)


@pytest.mark.parametrize(
    ("name", "most"),
    [("architect", 5000), ("fe-lead", 3000), ("senior", 4000), ("dev", 2000), ("qa", 2000), ("qa-code", 3000),
     ("ux-security", 2000), ("security", 3000), ("analyze", 1000), ("integration-gate", 2000), ("owner", 3000),
     ("scout", 1000), ("roadmap", 2000), ("tester", 3000), ("critic", 4000), ("ux-documenter", 2000)],
)  # fmt: skip
def test_budgets_are_those_of_the_documents_and_the_smaller_one_where_they_differ(
    name: str, most: int
) -> None:
    assert budget_of(name) == most


# --- proofs -----------------------------------------------------------------------------------------------------------


def fetch_from(*sources: ContextSource) -> Any:
    texts = {one.path: [json.dumps(record.value) for record in one.records] for one in sources}
    return lambda origin: texts[origin.path][origin.line - 1] if origin.path in texts else None


def dev() -> Actor:
    return find_actor("dev", None, Mode.SINGLE)


def test_a_context_is_proved_by_its_sources() -> None:
    own = plan(task(1, spec='Write "it", now\n'))
    made = compile_context(gathered("dev", own), write_value)
    assert list(unproved_lines(made, dev(), fetch_from(own))) == []
    assert [str(origin) for line in made.lines for origin in line.origins] == [
        f"{PHASE}/01-02.plan.jsonl:2"
    ]


def test_a_source_that_says_something_else_by_now_proves_nothing() -> None:
    made = compile_context(gathered("dev", plan(task(1, spec="Write it"))), write_value)
    found = list(unproved_lines(made, dev(), fetch_from(plan(task(1, spec="Write that")))))
    assert [(one.reason.value, one.message) for one in found] == [
        ("context_unproved", f"{PHASE}/01-02.plan.jsonl:2 does not have 'Write it'")
    ]


def test_a_forbidden_source_is_found_whoever_let_it_in() -> None:
    architect = compile_context(
        gathered("architect", source(f"{PHASE}/critique.jsonl", {"id": "C1", "q": "Why?"})),
        write_value,
    )
    found = list(unproved_lines(architect, dev(), lambda _: '{"id":"C1","q":"Why?"}'))
    assert [one.reason.value for one in found] == ["out_of_lane"]
    assert "dev never receives critique.jsonl" in found[0].message


def test_a_line_that_somebody_added_to_the_file_is_found() -> None:
    made = compile_context(gathered("dev", plan(task(1, spec="Write it"))), write_value)
    said = made.text.split("\n")[:-1]
    (found,) = differences(made, [*said, "hint: look into architecture.toon"], "x")
    assert (found.reason.value, found.line, found.message) == (
        "context_stale",
        len(said) + 1,
        "no source gives this line",
    )
    assert list(differences(made, said, "x")) == []


def test_an_origin_tells_where_to_look() -> None:
    assert [str(one) for one in (Origin("a", 3), Origin("a"), Origin("a", 3, "0123456789abcdef"), Origin("", 0, "0123456789abcdef"))] == [
        "a:3", "a", "a:3@0123456789ab", "commit 0123456789ab"]  # fmt: skip
