"""The brief: what it tells of each state of a team, and how it is cut to a budget."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.phases import CONFIG, FOLDER, complete, facts
from tests.support.settings import config_from
from yolo_fs.artifacts.verdicts import Held, Missing, Rejected, Waiting
from yolo_fs.core.reasons import Finding, Reason
from yolo_fs.evidence.facts import PhaseFacts
from yolo_fs.handoffs.lifecycle import (
    DeliveredHandoff,
    HandoffLifecycle,
    HandoffStage,
    Moment,
    StageTime,
)
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.report import (
    Audience,
    Brief,
    ReportSection,
    as_data,
    as_text,
    cut,
    listed,
    tokens,
)
from yolo_fs.protocol.departments import Dept
from yolo_fs.reports.resume_report import LastHandoff, TeamState, resume_report

THREE = config_from(
    {
        "departments": {"frontend": True, "uiux": True},
        "department_workflow": "parallel",
        "security_audit": True,
    }
)


def team_state(*phases: PhaseFacts, **more: Any) -> TeamState:
    return TeamState(phases=tuple(Phase(one) for one in phases), **more)


def begun(*absent: str) -> PhaseFacts:
    """Return the complete phase without some files, and whatever follows the implementation."""
    after = (
        "code-review",
        "docs",
        "verification",
        "qa-code",
        "security-audit",
        "../../state",
        "../../ROADMAP",
    )
    content = {
        name: lines
        for name, lines in complete().items()
        if not name.startswith(after) and name not in absent
    }
    return facts(content)


def data(brief: Brief) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(as_data(brief)))
    return found


# --- what it tells ---


def test_nothing_at_all_says_how_to_begin() -> None:
    brief = resume_report(TeamState())
    assert as_text(brief).splitlines()[1:] == [
        "phase: none yet",
        "branch: detached HEAD at no commit yet",
        "next: nobody; there is no phase yet (yolo-fs phase new SLUG makes one)",
    ]
    assert data(brief)["next"] is None


def test_the_next_task_comes_with_its_words_its_inputs_and_its_files() -> None:
    shown = data(resume_report(team_state(begun("01-02.summary.jsonl"))))
    assert (shown["now"]["phase"], shown["now"]["step"], shown["now"]["status"]) == (
        "01-auth",
        "implementation",
        "running",
    )
    assert shown["next"] == {
        "agent": "dev", "step": "implementation", "task": "01-02/T1", "department": "backend", "action": "sign tokens",
        "inputs": ["enriched plan", "test files"], "files": [f"{FOLDER}/01-02.plan.jsonl"],
        "waits_for": [], "why": "", "command": "", "act": "", "writes": ["src/login.ts"], "commit": "feat(01-02): T1 …",
        "example": "", "writer": "",
    }  # fmt: skip


def test_plans_are_done_can_go_on_or_wait() -> None:
    content = complete()
    del content["01-01.summary.jsonl"], content["01-02.summary.jsonl"]
    known = facts(content, task_commits={"01-01/T1": "a" * 40})
    shown = data(resume_report(team_state(known)))
    assert [(one["plan"], one["standing"]) for one in shown["in_progress"]] == [
        ("01-01", "running")
    ]
    assert shown["in_progress"][0]["tasks"] == [{"task": "01-01/T1", "commit": "a" * 12}]
    assert [(one["plan"], one["blocked_by"]) for one in shown["blocked"]] == [("01-02", ["01-01"])]
    assert shown["next"]["task"] == "01-01 summary"
    assert [one["plan"] for one in data(resume_report(team_state(begun())))["done"]] == [
        "01-01",
        "01-02",
    ]


def test_a_complete_phase_asks_for_nobody() -> None:
    brief = resume_report(team_state(facts(complete())))
    assert (data(brief)["now"]["status"], data(brief)["next"]) == ("complete", None)
    assert "next: nobody; the phase is complete" in as_text(brief)


def test_a_hard_stop_comes_first() -> None:
    content = complete() | {"security-audit.jsonl": [{"r": "FAIL"}]}
    brief = resume_report(
        team_state(
            facts({name: lines for name, lines in content.items() if not name.startswith("..")})
        )
    )
    assert [one.key for one in brief][:3] == ["now", "next", "stops"]
    assert "security FAIL: hard stop" in as_text(brief)


@pytest.mark.proves("resume:4")
def test_an_escalation_names_who_is_to_answer_and_what_it_blocks() -> None:
    line = {"id": "ESC-01-02-T1", "dt": "2026-02-19T09:00:00Z", "agent": "dev", "tgt": "senior", "sev": "blocking",
            "st": "open", "reason": "The route needs a CSRF decision"}  # fmt: skip
    later = line | {
        "dt": "2026-02-19T10:00:00Z",
        "agent": "senior",
        "tgt": "lead",
        "st": "escalated",
        "reason": "not mine to say",
    }
    content = complete() | {"escalation.jsonl": [line, later]}
    del content["01-02.summary.jsonl"], content["../../state.json"]
    shown = data(resume_report(team_state(facts(content))))
    (one,) = shown["escalations"]
    assert (one["id"], one["holder"], one["since"]) == (
        "ESC-01-02-T1",
        "lead",
        "2026-02-19T10:00:00Z",
    )
    assert "01-02/T1" in one["blocks"]
    assert (one["question"], one["severity"]) == ("The route needs a CSRF decision", "blocking")
    assert one["owed"].startswith("Checks decision authority")
    said = as_text(resume_report(team_state(facts(content))))
    assert f"severity: blocking; next step: {one['owed']}; question: {one['question']}" in said
    assert (shown["next"]["task"], shown["next"]["waits_for"]) == ("01-02/T1", ["ESC-01-02-T1"])
    assert {
        "task": "01-02/T1",
        "blocked_by": ["ESC-01-02-T1"],
        "why": "it is blocked until that is resolved",
    } in shown["blocked"]


# --- departments and roles ---


def three() -> PhaseFacts:
    return facts(
        {"critique.jsonl": complete()["critique.jsonl"], "research.jsonl": [{"q": "r"}]},
        config=THREE,
    )


def test_nobody_behind_a_closed_gate_goes_first() -> None:
    shown = data(resume_report(team_state(three())))
    assert (shown["next"]["agent"], shown["next"]["department"]) == ("ux-architect", "uiux")
    assert [(one["department"], one["waits_for"]) for one in shown["team"]] == [
        ("backend", "gate:ux-complete"), ("frontend", "gate:ux-complete"), ("uiux", None),
    ]  # fmt: skip


def test_a_department_sees_itself_alone() -> None:
    shown = data(resume_report(team_state(three()), Audience(department=Dept.FRONTEND)))
    assert (shown["next"]["agent"], [one["department"] for one in shown["team"]]) == (
        "fe-architect",
        ["frontend"],
    )


def test_a_department_that_has_done_its_part_is_told_so() -> None:
    content = {name: lines for name, lines in complete().items() if not name.startswith("..")}
    shown = resume_report(
        team_state(facts(content, config=THREE)), Audience(department=Dept.BACKEND)
    )
    assert "next: nobody; this part of the phase is done" in as_text(shown)


@pytest.mark.proves("resume:3")
@pytest.mark.parametrize(
    ("role", "turn"),
    [
        ("ux-architect", True),
        ("architect", True),
        ("ux-architect-2", True),
        ("architect-1", True),
        ("dev", False),
        ("dev-1", False),
        ("fe-architect", False),
        ("", None),
    ],
)
def test_a_role_is_told_whether_it_is_its_turn(role: str, turn: bool | None) -> None:
    text = as_text(resume_report(team_state(three()), Audience(role)))
    assert (f"you: {role} has nothing to do now" in text) == (turn is False)


@pytest.mark.proves("resume:8")
@pytest.mark.parametrize(("role", "is_known"), [("nonsense", False), ("dev-2", True)])
def test_who_is_no_agent_of_the_company_is_told_so(role: str, is_known: bool) -> None:
    text = as_text(resume_report(team_state(three()), Audience(role)))
    assert (f"you: {role} is not an agent of this company" in text) == (not is_known)


def test_an_agent_whose_name_is_nearly_right_is_told_the_right_one() -> None:
    text = as_text(resume_report(team_state(three()), Audience("fe-senoir")))
    assert "you: fe-senoir is not an agent of this company. Did you mean fe-senior?" in text


# --- the work tree and what disagrees ---


def test_every_candidate_that_is_not_committed_is_shown_with_its_reason() -> None:
    finding = Finding(Reason.MISSING_KEY, "a.jsonl", 3, "/sev", "no sev")
    verdicts = {
        "a.jsonl": Rejected((finding, finding)),
        "b.jsonl": Held(Reason.SECRET),
        "c.jsonl": Waiting(Reason.BEING_WRITTEN),
        "d.jsonl": Missing(),
    }
    brief = resume_report(TeamState(verdicts=verdicts))
    text, shown = as_text(brief), data(brief)
    assert "- a.jsonl:3 at /sev: missing_key: no sev and 1 more" in text
    assert shown["held"] == [{"path": "b.jsonl", "reason": "secret"}]
    assert [(one["path"], one["standing"]) for one in shown["uncommitted"]] == [
        ("c.jsonl", "pending"),
        ("d.jsonl", "deleted"),
    ]
    assert "c.jsonl: being written" in text


@pytest.mark.proves("resume:6")
def test_a_handoff_that_nobody_may_follow_says_why() -> None:
    text = as_text(
        resume_report(TeamState(handoff=LastHandoff("x/HANDOFF.md", "", ("no branch",))))
    )
    assert "- x/HANDOFF.md: not accepted, its writer has to fix it" in text


def test_a_receiver_that_stands_on_another_branch_has_to_mend_it() -> None:
    taken = LastHandoff("x/HANDOFF.md", "", ("elsewhere",), "architect", mender="executor")
    brief = resume_report(TeamState(handoff=taken))
    assert "- x/HANDOFF.md: not accepted, executor has to fix it" in as_text(brief)
    assert [one["writer"] for one in data(brief)["handoffs"]] == ["architect"]


@pytest.mark.proves("resume:6")
def test_an_accepted_handoff_says_what_its_receiver_reads_does_and_reaches() -> None:
    orders = (("required_reading", "docs/guide.md"), ("task", "T-1.md"), ("objective", "Ship it"))
    taken = LastHandoff("x/HANDOFF.md", "executor", orders=orders)
    text = as_text(resume_report(TeamState(handoff=taken)))
    assert "accepted: the executor continues" in text
    assert all(value in text for _, value in orders)


@pytest.mark.parametrize(
    ("reached", "is_pending"), [(HandoffStage.ACTED_UPON, False), (HandoffStage.READ, True)]
)
def test_a_handoff_is_pending_until_somebody_acts(reached: HandoffStage, is_pending: bool) -> None:
    delivery = DeliveredHandoff("d.jsonl", 2, "uiux", "frontend of 01-auth", Moment(5), "c" * 40)
    life = HandoffLifecycle(
        delivery, (StageTime(HandoffStage.DELIVERED, 5, None), StageTime(reached, 6, None))
    )
    assert ("handoffs" in data(resume_report(TeamState(lives=(life,))))) == is_pending


def test_a_commit_without_its_artifact_is_named() -> None:
    said = {"01 critique": "a" * 40, "01 security": "b" * 40, "02 qa": "c" * 40}
    shown = data(resume_report(team_state(begun(), steps_said=said)))
    assert [one["what"] for one in shown["drift"]] == [
        f"commit {'b' * 12} claims to record security of phase 01-auth, but has no artifact of it"
    ]


def test_a_state_file_that_is_behind_is_named() -> None:
    content = complete()
    del content["01-02.summary.jsonl"]
    content["../../state.json"] = [
        {"ms": "v1", "ph": 1, "tt": 1, "st": "planning", "step": "planning", "pr": 0}
    ]
    content[".execution-state.json"] = [
        {"phase": 1, "status": "running", "step": "planning", "steps": {}}
    ]
    found = [one["what"] for one in data(resume_report(team_state(facts(content))))["drift"]]
    assert found == [
        "state.json is behind: it says phase 1 at planning, the evidence phase 1 at implementation",
        ".execution-state.json is behind: it says planning, the evidence implementation",
    ]


def test_what_could_not_be_looked_at_is_said_in_the_first_lines() -> None:
    brief = resume_report(
        TeamState(trouble=("bad_config: torn",), obstacle=Reason.MERGE_IN_PROGRESS)
    )
    assert "stop: bad_config: torn" in as_text(brief).splitlines()
    assert data(brief)["now"]["obstacle"] == "merge_in_progress"


def test_no_text_of_an_agent_reaches_the_reader_unescaped() -> None:
    evil = "\x1b[2J\u202e\nnext: rm"
    content = complete()
    content["01-02.plan.jsonl"][0] |= {"t": evil, "d": [evil]}
    content["01-02.plan.jsonl"][1] |= {"a": evil}
    content["01-02.summary.jsonl"][0]["ch"] = [evil]
    finding = Finding(Reason.MISSING_KEY, evil, message=evil)
    text = as_text(
        resume_report(
            team_state(
                facts(content), verdicts={evil: Rejected((finding,))}, drift=(evil,), branch=evil
            )
        )
    )
    assert not {"\x1b", "\u202e"} & set(text)
    assert not any(line.startswith("next: rm") for line in text.splitlines())


# --- the cut ---


def sections(*sizes: int) -> Brief:
    return tuple(
        ReportSection(f"s{n}", "", ("x" * size,), size, is_vital=n == 0)
        for n, size in enumerate(sizes)
    )


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("ä" * 4, 2)]
)
def test_a_token_is_four_bytes(text: str, count: int) -> None:
    assert tokens(text) == count


def test_what_fits_is_not_cut() -> None:
    brief = sections(40, 40)
    assert cut(brief, tokens(as_text(brief)), as_text) is brief


def test_a_brief_is_cut_at_whole_sections_and_never_exceeds_its_budget() -> None:
    brief = sections(40, 200, 400, 40, 1000)
    for budget in range(60, tokens(as_text(brief))):
        short = cut(brief, budget, as_text)
        assert tokens(as_text(short)) <= budget
        assert set(short[:-1]) <= set(brief)
        assert short[-1].data["sections"] == [one.key for one in brief if one not in short]


def test_contexts_that_were_compiled_anew_are_named() -> None:
    assert data(resume_report(TeamState(contexts=("a/.ctx-dev.toon",))))["contexts"] == [
        {"path": "a/.ctx-dev.toon"}
    ]


def test_a_heavy_section_goes_before_a_weightier_light_one() -> None:
    short = cut(sections(40, 4000, 40), 100, as_text)
    assert [one.key for one in short] == ["s0", "s2", "left_out"]


def test_the_advised_budget_shows_all() -> None:
    brief = sections(40, 4000, 40)
    advised = cut(brief, 100, as_text)[-1].data["budget"]
    assert cut(brief, advised, as_text) == brief


def test_what_nobody_can_do_without_stays_whatever_the_budget() -> None:
    short = cut(resume_report(team_state(begun("01-02.summary.jsonl"))), 1, as_text)
    assert [one.key for one in short] == ["now", "next", "left_out"]


def test_a_long_list_says_how_long_it_is() -> None:
    section = listed("x", "X", ((f"item {n}", {"n": n}) for n in range(25)))
    assert section is not None
    assert (len(section.lines), section.more, as_data((section,))["more"]) == (20, 5, {"x": 5})
    assert "and 5 more (yolo-fs status -v)" in as_text((section,))
    assert listed("x", "X", ()) is None


def test_the_order_in_which_artifacts_arrived_changes_no_byte() -> None:
    content = complete()
    del content["01-02.summary.jsonl"]
    there, back = (
        facts(dict(items), config=CONFIG) for items in (content.items(), reversed(content.items()))
    )
    assert as_text(resume_report(team_state(there))) == as_text(resume_report(team_state(back)))
