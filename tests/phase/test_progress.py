"""The fold: where a phase stands, from its committed evidence."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cached_property
from typing import Any

import pytest

from tests.support.phases import COMMITS, FOLDER, Content, complete, facts
from tests.support.settings import config_from
from yolo_fs.evidence.facts import SourceCommit, Version, Work
from yolo_fs.evidence.plan_status import PlanStanding, layers
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.progress import PhaseStatus, StepStanding, StepStatus, fold
from yolo_fs.phase.stepgates import ENTRY, EXIT
from yolo_fs.phase.view import SKIPS
from yolo_fs.protocol.departments import Dept
from yolo_fs.protocol.gates import Outcome
from yolo_fs.protocol.workflow import STEPS, EntryGate, ExitGate, Skip
from yolo_fs.schemas.config import Config
from yolo_fs.states.project import orchestration


def step(progress: PhaseStatus, key: str) -> StepStatus:
    (department,) = progress.departments
    return next(one for one in (*department.steps, *progress.steps) if one.step.key == key)


def standing(content: Content, key: str, **more: Any) -> StepStanding:
    return step(fold(facts(content, **more)), key).standing


def without(*names: str) -> Content:
    return {name: lines for name, lines in complete().items() if name not in names}


def test_a_phase_with_all_its_evidence_is_complete() -> None:
    progress = fold(facts(complete()))
    assert progress.is_complete
    assert (progress.percent, progress.next) == (100, None)
    assert {one.standing for one in progress.departments[0].steps} == {StepStanding.COMPLETE}


def test_every_rule_of_the_tables_is_bound() -> None:
    assert (set(SKIPS), set(ENTRY), set(EXIT)) == (set(Skip), set(EntryGate), set(ExitGate))


@pytest.mark.proves("002:64")
def test_the_order_of_arrival_makes_no_difference() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    for _ in range(200):
        names = rng.sample(sorted(complete()), k=rng.randrange(1, len(complete()) + 1))
        ordered = fold(facts({name: complete()[name] for name in sorted(names)}))
        rng.shuffle(names)
        assert fold(facts({name: complete()[name] for name in names})) == ordered


@pytest.mark.proves("002:37")
def test_an_empty_phase_begins_with_the_critic() -> None:
    progress = fold(facts({}))
    assert progress.next is not None
    assert (progress.step, progress.next.step, progress.next.agent) == (
        "critique",
        "critique",
        "critic",
    )


@pytest.mark.proves("002:36", "002:42", "002:52", "002:64")
@pytest.mark.parametrize(
    ("absent", "agent", "key"),
    [
        (["critique.jsonl"], "critic", "critique"),
        (["research.jsonl"], "scout", "research"),
        (["architecture.toon"], "architect", "architecture"),
        (["01-01.plan.jsonl", "01-02.plan.jsonl"], "lead", "planning"),
        (["test-plan.jsonl"], "tester", "test_authoring"),
        (["01-01.summary.jsonl"], "dev", "implementation"),
        (["code-review.jsonl"], "senior", "code_review"),
        (["verification.jsonl"], "qa", "qa"),
        (["security-audit.jsonl"], "security", "security"),
        (["../../state.json"], "lead", "signoff"),
    ],
)
def test_the_first_gap_says_who_is_next(absent: list[str], agent: str, key: str) -> None:
    progress = fold(facts(without(*absent)))
    assert progress.next is not None
    assert (progress.next.agent, progress.next.step) == (agent, key)


@pytest.mark.proves("002:76")
@pytest.mark.parametrize(("documenter", "agent"), [("always", "documenter"), ("on_request", "qa")])
def test_a_documenter_on_request_hides_nobody(documenter: str, agent: str) -> None:
    config = config_from({"documenter": documenter, "security_audit": True})
    progress = fold(facts(without("docs.jsonl", "verification.jsonl"), config=config))
    assert progress.next is not None
    assert progress.next.agent == agent


@pytest.mark.proves("002:64")
def test_a_later_step_does_not_open_before_an_earlier_one() -> None:
    assert standing(without("critique.jsonl"), "architecture") is StepStanding.PENDING
    assert "research" in step(fold(facts(without("critique.jsonl"))), "architecture").missing[0]


SKIPPED_BY_EFFORT = {
    "thorough": set[str](),
    "balanced": set[str](),
    "fast": {"documentation"},
    "turbo": {"critique", "research", "test_authoring", "documentation", "qa"},
}


@pytest.mark.proves("002:68b", "002:73b", "002:77b")
@pytest.mark.parametrize("effort", SKIPPED_BY_EFFORT)
def test_each_effort_profile_skips_its_steps_and_no_other(effort: str) -> None:
    config = config_from({"effort": effort, "security_audit": True})
    progress = fold(facts(without(*EVIDENCE_OF_SKIPPABLE), config=config))
    skipped = {
        one.step.key
        for one in progress.departments[0].steps
        if one.standing is StepStanding.SKIPPED
    }
    assert skipped == SKIPPED_BY_EFFORT[effort]


EVIDENCE_OF_SKIPPABLE = (
    "critique.jsonl", "research.jsonl", "test-plan.jsonl", "docs.jsonl", "verification.jsonl", "qa-code.jsonl",
    "security-audit.jsonl",
)  # fmt: skip


@pytest.mark.proves("002:77b", "002:78")
@pytest.mark.parametrize(
    ("change", "key", "rule"),
    [
        (
            {"config": config_from({"critique": {"enabled": False}})},
            "critique",
            "critique.enabled=false",
        ),
        (
            {"config": config_from({"security_audit": False})},
            "security",
            "config security_audit≠true",
        ),
        (
            {"config": config_from({"documenter": "never"})},
            "documentation",
            "config-gated",
        ),
        ({"skip_qa": True}, "qa", "--skip-qa"),
        ({"skip_security": True}, "security", "--skip-security"),
        ({"complexity": "trivial"}, "planning", "complexity trivial"),
        ({"complexity": "medium"}, "critique", "complexity medium"),
    ],
)
def test_a_switch_skips_its_step_by_name(change: dict[str, Any], key: str, rule: str) -> None:
    found = step(fold(facts({}, **change)), key)
    assert (found.standing, found.by) == (StepStanding.SKIPPED, rule)


@pytest.mark.parametrize(
    ("effort", "complexity", "rule"),
    [
        ("fast", "high", "po.skip_on_effort fast"),
        ("balanced", "medium", "po.skip_on_complexity medium"),
        ("balanced", "high", ""),
        ("turbo", "high", ""),
    ],
)
def test_the_product_owner_is_left_out_where_the_configuration_says_so(
    effort: str, complexity: str, rule: str
) -> None:
    po = {"enabled": True, "skip_on_effort": ["fast"], "skip_on_complexity": ["medium"]}
    analysis = {"analysis.json": [{"complexity": complexity, "confidence": 0.9}]}
    progress = fold(facts(analysis, config=config_from({"effort": effort, "po": po})))
    steps = {step.step.key: step for step in progress.steps}
    for key in ("po", "delivery"):
        is_skipped = steps[key].standing is StepStanding.SKIPPED
        assert (is_skipped, steps[key].by) == (bool(rule), rule), key


def test_a_mandatory_step_is_never_skipped() -> None:
    config = config_from({"effort": "turbo", "documenter": "never"})
    progress = fold(facts({}, config=config, skip_qa=True, skip_security=True))
    for row in STEPS:
        if row.mandatory:
            assert step(progress, row.key).standing is not StepStanding.SKIPPED


@pytest.mark.proves("002:78")
def test_nobody_who_says_nothing_skips_the_security_audit() -> None:
    without = {name: lines for name, lines in complete().items() if name != "security-audit.jsonl"}

    found = fold(facts(without, config=Config()))

    assert step(found, "security").standing is StepStanding.READY
    assert not found.is_complete


@pytest.mark.proves("002:69b")
def test_research_ends_with_a_finding_and_not_with_a_question() -> None:
    asked = {"q": "which key store?", "src": "pending", "rt": "informational"}
    content = complete() | {"research.jsonl": [asked]}

    found = step(fold(facts(content)), "research")
    assert found.standing is StepStanding.RUNNING
    assert found.missing == ("research.jsonl has questions and no finding",)
    answered = content | {"research.jsonl": [asked, {"q": "rotation", "src": "web"}]}
    assert step(fold(facts(answered)), "research").is_passed


@pytest.mark.proves("002:73b")
def test_tests_are_skipped_when_no_task_asks_for_them() -> None:
    content = without("test-plan.jsonl")
    for name in ("01-01.plan.jsonl", "01-02.plan.jsonl"):
        header, task = content[name]
        content[name] = [header, {key: value for key, value in task.items() if key != "ts"}]
    assert step(fold(facts(content)), "test_authoring").by == "no ts"


@pytest.mark.proves("002:68b")
def test_a_critique_that_is_not_rated_is_complete_by_its_commit() -> None:
    content = complete() | {"critique.jsonl": [{"id": "C1", "st": "addressed"}]}
    assert step(fold(facts(content)), "critique").standing is StepStanding.COMPLETE


@pytest.mark.proves("002:68b")
def test_a_critique_of_which_a_part_is_not_rated_counts_as_existing() -> None:
    rated = {"id": "C1", "st": "addressed", "cf": 90, "rd": 1}
    content = complete() | {"critique.jsonl": [rated, {"id": "C2", "st": "addressed"}]}
    assert step(fold(facts(content)), "critique").by == "exists"


# --- evidence ---


def changed(name: str, **values: Any) -> Content:
    content = complete()
    content[name] = [content[name][0] | values, *content[name][1:]]
    return content


@pytest.mark.parametrize(
    ("content", "commits", "said"),
    [
        (changed("01-01.summary.jsonl", ch=[]), COMMITS, "names no commit"),
        (complete(), {"bbbbbbb": COMMITS["bbbbbbb"]}, "commit aaaaaaa is not on this branch"),
        (changed("01-01.summary.jsonl", tc=0), COMMITS, "counts 0 of 1 tasks"),
        (
            complete(),
            COMMITS | {"aaaaaaa": SourceCommit("a" * 40, "", frozenset({"README.md"}), 1)},
            "touches a file of plan 01-01",
        ),
        (changed("test-results.jsonl", fl=2), COMMITS, "2 failing"),
        (changed("test-results.jsonl", phase="red"), COMMITS, "no green run"),
    ],
)
def test_a_claim_without_proof_is_only_a_claim(
    content: Content, commits: dict[str, SourceCommit], said: str
) -> None:
    progress = fold(facts(content, commits=commits))
    plan = progress.departments[0].plans[0]
    assert plan.standing is PlanStanding.CLAIMED
    assert said in "; ".join(plan.missing)
    assert step(progress, "implementation").standing is not StepStanding.COMPLETE


def test_a_commit_below_a_planned_directory_counts() -> None:
    content = complete()
    content["01-01.plan.jsonl"][0]["fm"] = ["src/"]
    commits = COMMITS | {"aaaaaaa": SourceCommit("a" * 40, "", frozenset({"src/deep/x.ts"}), 1)}
    assert fold(facts(content, commits=commits)).departments[0].plans[0].is_done


def test_a_task_that_a_plan_gets_after_its_summary_is_still_to_be_done() -> None:
    content = complete()
    content["01-02.plan.jsonl"].append(content["01-02.plan.jsonl"][1] | {"id": "T2"})
    known = facts(content)

    def placed(plan_at: int, summary_at: int) -> PhaseStatus:
        at = {"01-02.plan.jsonl": plan_at, "01-02.summary.jsonl": summary_at}
        moved = (one for one in known.committed if one.place.name in at)
        return fold(
            known.with_committed(*(one._replace(position=at[one.place.name]) for one in moved))
        )

    late = placed(9, 8).departments[0]
    assert late.plans[1].missing == (
        "plan 01-02 has 2 tasks since commit of 01, the summary counts 1",
    )
    assert late.next is not None and late.next.agent == "dev"
    (plan,) = (each for each in placed(8, 8).plans if str(each.id) == "01-02")
    assert plan.missing == ("plan 01-02 has 2 tasks, the summary counts 1",)  # a squash: both


def test_a_summary_that_counts_fewer_tasks_than_its_plan_has_leaves_the_plan_open() -> None:
    content = complete()
    content["01-01.plan.jsonl"].append(content["01-01.plan.jsonl"][1] | {"id": "T2"})
    plan = fold(facts(content)).departments[0].plans[0]
    assert plan.standing is PlanStanding.CLAIMED
    assert plan.missing == ("plan 01-01 has 2 tasks, the summary counts 1",)
    signed = facts(content, signed_off="c" * 40, signed_off_at=9)
    placed = (one._replace(position=7) for one in signed.committed)
    assert fold(signed.with_committed(*placed)).departments[0].plans[0].is_done


def test_tests_of_a_task_that_is_not_there_are_none_of_the_one_that_is() -> None:
    content = complete()
    content["test-plan.jsonl"][0]["id"] = "T9"
    (missing,) = step(fold(facts(content)), "test_authoring").missing
    assert missing == "test-plan.jsonl has tests of 01-01/T9, which is no task, and none of T1"


@pytest.mark.parametrize(
    ("tasks", "subject", "is_done"),
    [
        (["T9"], "feat(01-02): T1 the store", False),  # another task in the place of the done one
        (["T1"], "feat(01-02): T1 the store", True),
        (["T9"], "feat(01-02): the store", True),  # whoever names no task has done no other one
    ],
)
def test_a_task_that_takes_the_place_of_a_done_one_is_still_to_be_done(
    tasks: list[str], subject: str, is_done: bool
) -> None:
    content = complete()
    header, task, *_ = content["01-02.plan.jsonl"]
    content["01-02.plan.jsonl"] = [header, *(task | {"id": each} for each in tasks)]
    commits = {name: each._replace(subject=subject) for name, each in COMMITS.items()}
    known = facts(content, commits=commits)
    at = {"01-02.plan.jsonl": 9, "01-02.summary.jsonl": 8}
    moved = (one for one in known.committed if one.place.name in at)
    status = fold(
        known.with_committed(*(one._replace(position=at[one.place.name]) for one in moved))
    )
    plan = status.departments[0].plans[1]
    assert plan.is_done is is_done
    if not is_done:
        assert plan.missing == ("task 01-02/T9 has no commit since commit of 01",)


@pytest.mark.parametrize("word", ["partial", "failed"])
def test_a_summary_that_does_not_say_complete_leaves_the_plan_open(word: str) -> None:
    plan = fold(facts(changed("01-01.summary.jsonl", s=word))).departments[0].plans[0]
    assert plan.standing.value == word


def test_every_verdict_line_of_the_review_has_to_approve() -> None:
    content = complete()
    content["code-review.jsonl"][1]["r"] = "changes_requested"
    found = step(fold(facts(content)), "code_review")
    assert found.standing is StepStanding.RUNNING
    assert found.missing == ("the review of plan 01-02 says changes_requested: major findings",)


def test_the_last_verdict_of_a_plan_is_the_one_in_force() -> None:
    content = complete()
    content["code-review.jsonl"] = [
        {"plan": "01-01", "r": "changes_requested"},
        *content["code-review.jsonl"],
    ]
    assert standing(content, "code_review") is StepStanding.COMPLETE


# --- the review ---

ASKS = {"plan": "01-01", "r": "changes_requested", "cycle": 1, "dt": "2026-02-19"}
MINOR, MAJOR = (
    {"f": "src/auth.ts", "ln": 1, "sev": sev, "issue": sev, "sug": "x"} for sev in ("nit", "major")
)
FIXED, ELSEWHERE = Work("01-01", 30, 3), Work("01-02", 30, 3)
REVIEW = f"{FOLDER}/code-review.jsonl"


def reviewed(
    *versions: tuple[int, list[dict[str, Any]]], work: tuple[Work, ...] = (), **more: Any
) -> tuple[str, ...]:
    """Return what the code review lacks: after these versions of its file (order, lines), and this work."""
    approved = {"plan": "01-02", "r": "approve", "cycle": 1, "dt": "2026-02-19"}
    known = {
        REVIEW: tuple(Version((approved, *lines), 10 * order, order) for order, lines in versions)
    }
    content = complete() | {"code-review.jsonl": list(known[REVIEW][-1].lines)} | more
    return step(fold(facts(content, versions=known, work=work)), "code_review").missing


@pytest.mark.proves("002:130")
def test_minor_findings_are_approved_once_the_fix_is_committed() -> None:
    lines = [ASKS, MINOR, {"plan": "01-02", "r": "approve", "cycle": 1, "dt": "2026-02-19"}]
    wanted = ("the review of plan 01-01 says changes_requested: minor findings",)
    assert reviewed((2, lines)) == wanted
    assert reviewed((2, lines), work=(ELSEWHERE,)) == wanted
    assert reviewed((4, lines), work=(FIXED,)) == wanted
    assert reviewed((2, lines), work=(FIXED,)) == ()


def test_a_fix_counts_although_another_review_came_into_the_file_after_it() -> None:
    other = {"plan": "01-02", "r": "approve", "cycle": 1, "dt": "2026-02-19"}
    assert reviewed((2, [ASKS, MINOR]), (4, [ASKS, MINOR, other]), work=(FIXED,)) == ()


@pytest.mark.proves("002:131", "002:132", "002:133")
def test_major_findings_are_reviewed_again_and_then_the_lead_decides() -> None:
    says = "the review of plan 01-01 says changes_requested"
    assert reviewed((2, [ASKS, MINOR, MAJOR])) == (f"{says}: major findings",)
    assert reviewed((2, [ASKS, MINOR, MAJOR]), work=(FIXED,)) == (f"{says}: to be reviewed again",)
    second = [ASKS | {"cycle": 2}, MAJOR]
    assert reviewed((2, second), work=(FIXED,)) == (f"{says}: escalated to the Lead",)
    accepted = [
        {
            "ts": "2026-02-19T08:00:00Z",
            "agent": "lead",
            "dec": "Ship 01-01 as it is",
            "reason": "x",
            "kind": "accept",
            "of": "01-01",
        }
    ]
    assert reviewed((2, second), work=(FIXED,), **{"decisions.jsonl": accepted}) == ()


# --- escalations ---

UP = {
    "id": "ESC-01-01-T1",
    "dt": "2026-02-19T08:00:00Z",
    "agent": "dev",
    "tgt": "senior",
    "st": "open",
}
DOWN = UP | {
    "dt": "2026-02-19T08:01:00Z",
    "agent": "senior",
    "tgt": "dev",
    "st": "escalated",
    "dec": "Path /",
}
CLAIMED = UP | {
    "dt": "2026-02-19T08:02:00Z",
    "agent": "senior",
    "tgt": "dev",
    "st": "resolved",
    "res": "Path /",
}
RESUMED = UP | {"dt": "2026-02-19T08:03:00Z", "st": "resolved", "res": "Path /", "ref": "abc1234"}
IN_STATE = {"id": "ESC-01-01-T1", "level": "senior", "last_escalated_at": "2026-02-19T08:00:00Z"}


def lacking(log: list[dict[str, Any]], *entries: dict[str, Any]) -> tuple[str, ...]:
    """Return what the implementation lacks with this log, and these entries in the state file."""
    content = complete() | {"escalation.jsonl": log}
    if entries:
        content[".execution-state.json"] = [{"phase": 1, "escalations": list(entries)}]
    return step(fold(facts(content)), "implementation").missing


def test_a_pending_escalation_keeps_the_implementation_open_until_the_task_goes_on() -> None:
    assert lacking([UP]) == ("escalation ESC-01-01-T1 is rising: senior has to act",)
    assert lacking([UP, DOWN]) == ("escalation ESC-01-01-T1 is descending: dev has to act",)
    assert lacking([UP, DOWN, RESUMED]) == ()


def test_that_an_escalation_is_resolved_has_to_be_shown_not_only_written() -> None:
    assert lacking([UP, CLAIMED]) == ("escalation ESC-01-01-T1 is descending: dev has to act",)
    assert lacking([UP], IN_STATE | {"status": "resolved"}) == (
        "escalation ESC-01-01-T1 is rising: senior has to act",
    )
    assert lacking([UP, DOWN, RESUMED], IN_STATE | {"status": "pending"}) == ()


def test_an_escalation_that_the_state_alone_knows_is_pending_too() -> None:
    assert lacking([], IN_STATE | {"status": "pending"}) == (
        "escalation ESC-01-01-T1 is rising: senior has to act",
    )


def test_a_security_fail_stops_the_phase() -> None:
    progress = fold(facts(changed("security-audit.jsonl", r="FAIL")))
    assert not progress.is_complete
    assert "security FAIL: hard stop, only the user decides" in progress.departments[0].blockers


@pytest.mark.proves("002:53")
@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        (lambda content: None, Outcome.GO),
        (lambda content: content["critique.jsonl"][0].update(st="open"), Outcome.RECYCLE),
        (lambda content: content["architecture.toon"][0].update(stage_gate="Kill"), Outcome.KILL),
    ],
)
def test_the_stage_gate_goes_recycles_or_kills(
    change: Callable[[Content], None], outcome: Outcome
) -> None:
    content = complete()
    change(content)
    progress = fold(facts(content))
    assert progress.departments[0].stage is outcome
    assert (step(progress, "planning").standing is StepStanding.COMPLETE) == (outcome is Outcome.GO)


# --- plans and tasks ---


def test_a_plan_of_a_later_wave_waits_for_the_earlier_one() -> None:
    progress = fold(facts(without("01-01.summary.jsonl", "01-02.summary.jsonl")))
    assert progress.departments[0].plans[1].blocked_by == ("01-01",)
    assert progress.next is not None
    assert progress.next.task == "01-01/T1"


def test_a_committed_task_is_done_and_the_next_one_is_asked_for() -> None:
    done = {"01-01/T1": "a" * 40}
    progress = fold(facts(without("01-01.summary.jsonl", "01-02.summary.jsonl"), task_commits=done))
    assert progress.next is not None
    assert progress.next.task == "01-01 summary"
    assert progress.departments[0].plans[0].standing is PlanStanding.RUNNING


def test_where_tests_are_skipped_a_test_plan_that_was_begun_holds_nobody() -> None:
    content = without("01-02.summary.jsonl", "code-review.jsonl")
    content["test-plan.jsonl"] = [{"id": "T1", "plan": "01-01", "red": False}]
    skipped = fold(facts(content, config=config_from({"effort": "turbo"})))
    assert step(skipped, "test_authoring").standing is StepStanding.SKIPPED
    assert skipped.next is not None
    assert (skipped.next.agent, skipped.next.task) == ("dev", "01-02/T1")
    asked = fold(facts(content))
    assert asked.next is not None and asked.next.agent == "tester"


def test_where_qa_is_skipped_nothing_is_audited_before_it_is_reviewed() -> None:
    begun = without("code-review.jsonl", "verification.jsonl", "qa-code.jsonl")
    audit = step(fold(facts(begun, skip_qa=True)), "security")
    assert audit.standing is StepStanding.PENDING
    assert "no valid code-review.jsonl" in audit.missing
    reviewed = without("verification.jsonl", "qa-code.jsonl", "security-audit.jsonl")
    assert step(fold(facts(reviewed, skip_qa=True)), "security").standing is StepStanding.READY


def test_a_plan_waits_for_a_plan_of_an_earlier_phase() -> None:
    content = without("01-01.summary.jsonl", "01-02.summary.jsonl")
    content["01-01.plan.jsonl"][0]["xd"] = [{"p": "00", "n": "01"}]
    waits = ("00-01",)
    of_backend, of_frontend = (Dept.BACKEND, "00-01"), (Dept.FRONTEND, "00-01")
    for plans_of_all, blocked_by in (
        ({}, waits),
        ({of_backend: False}, waits),
        ({of_backend: True}, ()),
        ({of_backend: True, of_frontend: False}, ()),
        ({of_backend: False, of_frontend: True}, waits),
        ({of_frontend: True}, ()),
    ):
        known = facts(content, plans_of_all=plans_of_all)
        assert fold(known).departments[0].plans[0].blocked_by == blocked_by, plans_of_all


@pytest.mark.parametrize(
    ("plans_of_all", "lacks"),
    [
        ({(Dept.BACKEND, "02-01"): False}, "which is not complete"),
        ({}, "and no phase has such a plan"),
    ],
)
def test_a_lead_whose_plan_waits_for_another_phase_is_told_so(
    plans_of_all: dict[tuple[Dept, str], bool], lacks: str
) -> None:
    content = without("01-01.summary.jsonl", "01-02.summary.jsonl")
    content["01-01.plan.jsonl"][0]["xd"] = [{"p": "02", "n": "01"}]
    turn = Phase(facts(content, plans_of_all=plans_of_all)).progress.next
    assert turn is not None
    assert (turn.agent, turn.step) == ("lead", "planning")
    assert turn.why == f"plan 01-01 needs plan 02-01 of another phase, {lacks}"


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ({}, ()),
        ({"T1": (), "T2": ("T1",), "T3": ()}, (("T1", "T3"), ("T2",))),
        ({"T2": ("T9",), "T1": ()}, (("T2", "T1"),)),
        ({"T1": ("T2",), "T2": ("T1",)}, ()),
    ],
)
def test_tasks_fall_into_layers(
    tasks: dict[str, tuple[str, ...]], expected: tuple[tuple[str, ...], ...]
) -> None:
    assert layers(tasks) == expected


# --- departments ---

PARALLEL = config_from(
    {
        "departments": {"frontend": True, "uiux": True},
        "department_workflow": "parallel",
        "security_audit": True,
    }
)


@pytest.mark.proves("002:282", "more:2")
def test_each_department_walks_the_steps_with_its_own_artifacts() -> None:
    content = complete() | {
        "fe-architecture.toon": [{}],
        "fe-01-03.plan.jsonl": [{"w": 1, "d": []}, {"id": "T1"}],
    }
    progress = fold(facts(content, config=PARALLEL))
    backend, frontend, uiux = progress.departments
    assert [one.department for one in progress.departments] == [
        Dept.BACKEND,
        Dept.FRONTEND,
        Dept.UIUX,
    ]
    assert backend.is_complete
    assert frontend.next is not None
    assert (frontend.next.agent, frontend.next.step) == ("fe-senior", "design_review")
    assert uiux.next is not None
    assert (uiux.next.agent, uiux.next.step) == ("ux-architect", "architecture")
    assert progress.step == "architecture"


def test_a_phase_is_not_signed_off_before_every_department_is_done() -> None:
    progress = fold(facts(complete(), config=PARALLEL))
    assert not progress.is_complete


@pytest.mark.proves("002:60")
def test_the_integration_gate_exists_where_several_departments_work() -> None:
    keys = {one.step.key: one.standing for one in fold(facts({}, config=PARALLEL)).steps}
    assert keys["integration_gate"] is StepStanding.PENDING


@pytest.mark.parametrize(
    "junk", [{"r": None}, {"s": 1}, {"ch": "x"}, {"w": "a"}, {"d": [1]}, {"xd": ["a"]}, {"st": []}]
)
def test_no_junk_in_an_artifact_makes_the_fold_raise(junk: dict[str, Any]) -> None:
    for name in complete():
        fold(facts(changed(name, **junk)))


@pytest.mark.proves("000:715")
@pytest.mark.parametrize(
    ("absent", "takes"), [("critique", True), ("architecture", True), ("research", False)]
)
def test_critic_and_architect_take_over_what_the_phase_before_handed_over(
    absent: str, takes: bool
) -> None:
    name = "architecture.toon" if absent == "architecture" else f"{absent}.jsonl"
    progress = fold(
        facts(without(name), handed_over=".yolo-planning/phases/00-setup/phase-handoff.jsonl")
    )
    assert progress.next is not None
    assert (progress.next.inputs[-1].endswith("phase-handoff.jsonl")) is takes


# --- departments ---


@pytest.mark.proves("002:271")
@pytest.mark.parametrize("workflow", ["backend_only", "parallel", "sequential", None])
def test_the_flags_say_which_departments_work_and_the_workflow_only_their_order(
    workflow: str | None,
) -> None:
    said = {"departments": {"frontend": True}} | (
        {"department_workflow": workflow} if workflow else {}
    )
    phase = Phase(facts({}, config=config_from(said)))
    assert [one.department for one in phase.progress.departments] == ["backend", "frontend"]
    assert not next(gate for gate in phase.gates if gate.name == "all-depts").is_open
    state = orchestration(phase, None)
    assert state and sum(len(wave["depts"]) for wave in state["waves"]) == 2


def test_what_is_worked_out_ahead_is_all_that_a_phase_keeps() -> None:
    phase, fresh = Phase(facts(complete())), Phase(facts(complete()))

    phase.work_out()

    kept = {name for name, member in vars(Phase).items() if isinstance(member, cached_property)}
    assert vars(phase).keys() == {"facts", *kept} > {"facts", "progress", "gates", "escalations"}
    assert {name: getattr(fresh, name) for name in kept} == {k: vars(phase)[k] for k in kept}


@pytest.mark.proves("more:2")
def test_a_refusal_names_the_file_as_the_department_calls_it() -> None:
    config = config_from({"departments": {"frontend": True}})
    phase = Phase(facts(complete(), config=config))
    frontend = next(one for one in phase.progress.departments if one.department == "frontend")
    lacks = {lack for step in frontend.steps for lack in step.missing}
    assert {"no valid fe-architecture.toon", "no valid fe-code-review.jsonl"} <= lacks


def test_a_phase_that_is_complete_without_a_document_shows_nobody_as_ready() -> None:
    phase = fold(facts(without("docs.jsonl")))
    assert phase.is_complete
    assert step(phase, "documentation").standing is StepStanding.READY
    assert step(phase.as_shown(), "documentation").standing is StepStanding.SKIPPED
    still_open = fold(facts(without("docs.jsonl", "code-review.jsonl")))
    assert not still_open.is_complete and still_open.as_shown() == still_open
