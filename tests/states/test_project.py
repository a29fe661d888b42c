"""State files as functions of history: one write for each transition, claims kept beside what is proved."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from tests.support.phases import Content, committed, complete, facts
from tests.support.settings import config_from
from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.naming import subject_of
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Level
from yolo_fs.core.timestamps import iso
from yolo_fs.evidence.facts import PhaseFacts
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.progress import StepStanding, fold
from yolo_fs.protocol.workflow import Skip
from yolo_fs.schemas.check import check
from yolo_fs.schemas.layout import Record
from yolo_fs.schemas.state import ExecutionState, Orchestration, StateFile
from yolo_fs.states.execution import next_execution_state
from yolo_fs.states.project import (
    claims,
    is_ours,
    orchestration,
    project_state,
    renewed,
    sealed,
)

ORDER = list(complete())
THREE = config_from(
    {
        "departments": {"frontend": True, "uiux": True},
        "department_workflow": "parallel",
        "security_audit": True,
    }
)
State = dict[str, Any]


def known(names: int, **more: Any) -> PhaseFacts:
    """Return the facts after so many artifacts, one a minute from midnight on."""
    content: Content = {name: lines for name, lines in complete().items() if name in ORDER[:names]}
    found = facts(content, **more)
    timed = tuple(
        one._replace(at_s=60 * (ORDER.index(_name(one.commit)) + 1)) for one in found.committed
    )
    return replace(found, committed=timed)


def minute_of(name: str) -> str:
    """Return when `known` has an artifact committed."""
    return iso(60 * (ORDER.index(name) + 1))


def _name(commit: str) -> str:
    return commit.removeprefix("commit of ")


def written(content: PhaseFacts, before: State | None = None) -> list[State]:
    """Return every content that is written one after the other, each committed before the next."""
    found: list[State] = []
    while (fresh := next_execution_state(Phase(content), before)) is not None:
        assert all(fault.level is Level.WARNING for fault in check(ExecutionState, fresh)[1]), fresh
        found.append(before := fresh)
        assert len(found) < 30
    return found


def statuses(state: State) -> dict[str, str]:
    return {key: entry["status"] for key, entry in state["steps"].items()}


def test_each_step_that_is_passed_is_a_write_of_its_own_and_in_order() -> None:
    reached = [
        (state["step"], state["steps"][state["step"]]["status"])
        for state in written(known(len(ORDER)))
    ]
    assert reached[:4] == [
        ("po", "skipped"),
        ("critique", "complete"),
        ("research", "complete"),
        ("architecture", "complete"),
    ]
    assert [step for step, _ in reached][-4:] == [
        "security",
        "signoff",
        "integration_gate",
        "delivery",
    ]


def test_the_last_write_says_what_the_fold_says() -> None:
    content = known(len(ORDER))
    last = written(content)[-1]
    assert last["status"] == "complete"
    assert set(statuses(last).values()) == {"complete", "skipped"}
    assert [plan["status"] for plan in last["plans"]] == ["complete", "complete"]
    assert next_execution_state(Phase(content), last) is None


def test_the_times_are_those_of_the_commits() -> None:
    last = written(known(len(ORDER)))[-1]
    planning = last["steps"]["planning"]
    assert last["started_at"] == minute_of("critique.jsonl")
    assert planning["started_at"] == minute_of("01-01.plan.jsonl")
    assert planning["completed_at"] == minute_of("01-02.plan.jsonl")


@pytest.mark.parametrize("names", range(1, len(ORDER) + 1))
def test_however_the_work_was_cut_into_looks_the_end_is_the_same(names: int) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    state: State | None = None
    for looked in sorted({*chance.sample(range(1, names + 1), chance.randint(0, names)), names}):
        state = (written(known(looked), state) or [state])[-1]
    assert state is not None
    expected = written(known(names))[-1]
    assert {**state, "step": "", "projected": ""} == {**expected, "step": "", "projected": ""}


def test_a_step_that_is_passed_no_more_is_taken_back() -> None:
    state = written(known(len(ORDER)))[-1]
    content = complete()
    content["code-review.jsonl"] = [{"plan": "01-01", "r": "changes_requested"}]
    after = written(facts(content), state)[-1]
    assert statuses(after)["code_review"] == "running"
    assert after["status"] == "running"
    assert "completed_at" not in after["steps"]["code_review"]
    assert "declared" not in after


# --- escalations ---


def escalated(names: int, *moves: str) -> PhaseFacts:
    """Return the facts with the log of escalations so far: `T1 open` and `T1 resolved` are moves."""
    lines = []
    for minute, move in enumerate(moves):
        task, standing = move.split()
        line = {"id": f"ESC-01-02-{task}", "dt": f"2026-02-19T08:{minute:02}:00Z", "agent": "dev", "tgt": "senior",
                "reason": "no path", "sb": "spec", "sev": "blocking", "st": "open"}  # fmt: skip
        down = {"agent": "senior", "tgt": "dev", "st": "escalated", "dec": "Path /"}
        on = {"st": "resolved", "res": "Path /", "ref": "abc1234"}
        lines += [line] if standing == "open" else [line | down, line | on]
    found = known(names)
    return replace(found, committed=(*found.committed, committed("escalation.jsonl", lines)))


def subjects(states: list[State], before: State | None = None) -> list[str]:
    """Return the subject of each content after the one before it."""
    place = classify(".yolo-planning/phases/01-auth/.execution-state.json")
    assert place is not None
    versions = [[Record(1, state)] if state else [] for state in (before, *states)]
    told = [subject_of(place, after, was) for was, after in pairwise(versions)]
    return [subject.removeprefix("chore(state): ").removesuffix(" phase 1") for subject in told]


def test_each_escalation_that_comes_or_goes_is_a_write_of_its_own_and_is_called_so() -> None:
    first = written(known(5))
    come = written(escalated(5, "T1 open", "T2 open"), first[-1])
    gone = written(escalated(5, "T1 open", "T2 open", "T2 resolved", "T1 resolved"), come[-1])

    assert subjects(come, first[-1]) == ["escalation received"] * 2
    assert subjects(gone, come[-1]) == ["escalation resolved"] * 2


def test_what_an_escalation_does_and_what_a_step_does_are_never_one_write() -> None:
    states = written(escalated(5, "T1 open"), written(known(3))[-1])
    told = subjects(states, written(known(3))[-1])

    assert told[0] == "escalation received"
    assert told[1:] == subjects(written(known(5), written(known(3))[-1]), written(known(3))[-1])


def test_the_first_write_of_all_takes_no_escalation_in() -> None:
    told = subjects(written(escalated(1, "T1 open")))

    assert told.count("escalation received") == 1
    assert told[0] == "po skipped"


# --- what others write ---


def edited(state: State, **steps: State) -> State:
    return state | {"steps": state["steps"] | steps}


def test_a_claim_is_kept_beside_what_is_proved_and_dropped_once_it_is_proved() -> None:
    state = edited(
        written(known(5))[-1], qa={"status": "complete", "completed_at": "2026-02-19T08:00:00Z"}
    )
    after = written(known(5), state)[-1]
    assert statuses(after)["qa"] == "pending"
    assert after["declared"] == {"steps.qa": "complete"}
    assert "declared" not in written(known(len(ORDER)), after)[-1]


def test_what_the_evidence_has_overtaken_is_no_claim() -> None:
    state = edited(written(known(5))[-1], design_review={"status": "running"})
    assert "declared" not in written(known(len(ORDER)), state)[-1]


def test_a_step_that_somebody_began_keeps_running() -> None:
    state = written(known(1))[-1]
    assert statuses(state)["research"] == "pending"
    state = edited(state, research={"status": "running", "started_at": "2026-02-19T08:00:00Z"})
    content = known(1)
    assert next_execution_state(Phase(content), state) is None


def test_what_nobody_can_derive_survives() -> None:
    own = {"current_task": "01-01/T1", "correlation_id": "abc", "phase_name": "auth", "x_mine": [1]}
    state = written(known(8), written(known(5))[-1] | own)[-1]
    assert {key: state[key] for key in own} == own


def test_a_declared_skip_holds_and_keeps_its_reason() -> None:
    state = edited(
        written(known(12))[-1],
        qa={"status": "skipped", "reason": "--skip-qa", "skipped_at": iso(5)},
    )
    content = facts(complete() | {".execution-state.json": [state]})
    content = replace(
        content,
        committed=tuple(one for one in content.committed if one.place.artifact.step != "qa"),
    )
    qa = next(one for one in fold(content).departments[0].steps if one.step.key == "qa")
    assert (qa.standing, qa.by) == (StepStanding.SKIPPED, "declared: --skip-qa")
    assert written(content, state)[-1]["steps"]["qa"] == state["steps"]["qa"]


def test_a_mandatory_step_cannot_be_declared_skipped() -> None:
    state = edited(written(known(5))[-1], code_review={"status": "skipped", "reason": "in a hurry"})
    content = facts(
        {".execution-state.json": [state], "critique.jsonl": complete()["critique.jsonl"]}
    )
    review = next(
        one for one in fold(content).departments[0].steps if one.step.key == "code_review"
    )
    assert review.standing is StepStanding.PENDING


def test_a_skip_by_a_rule_ends_with_the_rule() -> None:
    content = complete()
    del content["verification.jsonl"], content["qa-code.jsonl"]
    state = written(facts(content, config=config_from({"effort": "turbo"})))[-1]
    assert state["steps"]["qa"] == {"status": "skipped", "reason": f"rule: {Skip.TURBO.value}"}
    after = written(facts(content | {".execution-state.json": [state]}), state)[-1]
    assert statuses(after)["qa"] == "pending"


# --- the seal ---


def test_a_seal_fits_until_somebody_changes_a_byte_that_counts() -> None:
    state = sealed({"a": 1, "b": [2]})
    assert is_ours(state)
    assert not is_ours(state | {"b": [3]})
    assert not is_ours({"a": 1})


def test_what_says_the_same_already_is_not_written_again_whoever_wrote_it() -> None:
    assert renewed({"a": 1}, {"a": 1}) is None
    assert renewed(sealed({"a": 1}), {"a": 1}) is None
    assert renewed(None, {"a": 1}) == sealed({"a": 1})


# --- state.json ---


def project(content: PhaseFacts, before: State | None) -> State | None:
    fresh = project_state([Phase(content)], before)
    assert fresh is None or check(StateFile, fresh)[1] == ()
    return fresh


@pytest.mark.proves("002:299")
@pytest.mark.parametrize(
    ("names", "st", "step", "pr"),
    [
        (1, "planning", "research", 0),
        (5, "executing", "test_authoring", 0),
        (9, "verifying", "code_review", 100),
    ],
)
def test_the_project_is_at_the_step_of_its_phase(names: int, st: str, step: str, pr: int) -> None:
    found = project(known(names), {"ms": "v1", "started": "2026-01-01"})
    assert found is not None
    assert {key: found[key] for key in ("ms", "ph", "tt", "st", "step", "pr", "started")} == {
        "ms": "v1", "ph": 1, "tt": 1, "st": st, "step": step, "pr": pr, "started": "2026-01-01",
    }  # fmt: skip


def test_a_lead_who_signs_off_before_the_roadmap_is_there_is_left_alone_and_shown() -> None:
    said = {
        "ms": "v1",
        "ph": 1,
        "tt": 1,
        "st": "complete",
        "step": "signoff",
        "pr": 100,
        "started": "2026-01-01",
    }
    content = known(len(ORDER) - 2)
    assert project(content, said) is None
    assert claims([Phase(content)], said)["st"] == ("complete", "verifying")


def test_what_a_project_state_says_is_taken_over_once_the_evidence_is_further() -> None:
    said = {
        "ms": "v1",
        "ph": 1,
        "tt": 4,
        "st": "planning",
        "step": "plan",
        "pr": 0,
        "started": "2026-01-01",
    }
    found = project(known(9), said)
    assert found is not None
    assert (found["st"], found["tt"]) == ("verifying", 4)


def test_the_next_phase_is_current_once_this_one_is_signed_off() -> None:
    done, fresh = facts(complete()), replace(facts({}), phase=PhaseId("02", "page"))
    found = project_state([Phase(done), Phase(fresh)], None)
    assert found is not None
    assert (found["ph"], found["tt"], found["st"]) == (2, 2, "planning")


@pytest.mark.parametrize(
    ("switch", "more", "st", "step"),
    [
        ("integration_gate", {}, "complete", "integration_gate"),
        (
            "integration_gate",
            {"integration-gate-result.jsonl": [{"r": "FAIL"}]},
            "verifying",
            "signoff",
        ),
        ("po", {}, "complete", "delivery"),
        ("po", {"po-qa-verdict.jsonl": [{"verdict": "patch"}]}, "verifying", "delivery"),
    ],
)
def test_a_phase_is_complete_from_its_sign_off_until_a_result_is_not_enough(
    switch: str, more: Content, st: str, step: str
) -> None:
    config = config_from({switch: {"enabled": True}})
    scope = {"analysis.json": [{}], "scope-document.json": [{"status": "PO-APPROVED"}]}
    found = project(
        facts(complete() | scope | more, config=config), {"ms": "v1", "started": "2026-01-01"}
    )
    assert found is not None
    assert (found["st"], found["step"]) == (st, step)


def test_a_phase_stays_signed_off_when_the_project_has_gone_on() -> None:
    content = complete()
    content["../../state.json"] = [{"st": "planning", "ph": 2}]
    assert not fold(facts(content)).is_complete
    assert fold(facts(content, signed_off="c" * 40)).is_complete


# --- orchestration ---


def test_departments_gates_and_waves_are_as_the_evidence_has_them() -> None:
    content = known(len(ORDER), config=THREE)
    found = orchestration(Phase(content), None)
    assert found is not None
    assert check(Orchestration, found)[1] == ()
    assert list(found["departments"]) == ["uiux", "frontend", "backend"]
    assert {name: gate["status"] for name, gate in found["gates"].items()} == {
        "ux-complete": "pending", "api-contract": "pending", "all-depts": "pending",
    }  # fmt: skip
    assert [wave["depts"] for wave in found["waves"]] == [["uiux"], ["frontend", "backend"]]
    assert orchestration(Phase(content), found) is None


def test_a_department_that_has_nothing_yet_is_pending_and_a_design_gate_has_its_time() -> None:
    named = {"status": "ready", "name": "LoginForm", "component": "LoginForm"}
    kinds = ("design-handoff", "design-tokens", "component-specs")
    content = facts({f"{kind}.jsonl": [named] for kind in kinds}, config=THREE)
    dated = replace(content, committed=tuple(one._replace(at_s=60) for one in content.committed))
    found = orchestration(Phase(dated), None)
    assert found is not None
    assert found["departments"]["frontend"] == {
        "status": "pending", "step": "", "started": "", "completed": "",
    }  # fmt: skip
    assert found["gates"]["ux-complete"] == {"status": "passed", "passed_at": iso(60)}


def test_a_phase_of_which_nothing_is_dated_began_with_its_commit() -> None:
    found = orchestration(Phase(replace(facts({}, config=THREE), at_s=60)), None)
    assert found is not None
    assert found["started_at"] == iso(60)
    assert check(Orchestration, found)[1] == ()


def test_a_gate_that_is_claimed_to_be_passed_stays_closed() -> None:
    content = facts(complete(), config=THREE)
    found = orchestration(Phase(content), None)
    assert found is not None
    forged = found | {
        "gates": found["gates"] | {"all-depts": {"status": "passed", "passed_at": iso(1)}}
    }
    after = orchestration(Phase(content), forged)
    assert after is not None
    assert after["gates"]["all-depts"]["status"] == "pending"
    assert after["declared"] == {"gates.all-depts": "passed"}
