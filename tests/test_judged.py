"""A verdict counts for what came before it: what comes later opens its step again, by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support import phases
from tests.support.settings import config_from
from yolo_fs.evidence.facts import PhaseFacts, Version, Work, WorkflowOptions, plans_of
from yolo_fs.evidence.judged import came_later
from yolo_fs.loops.facts import loop_facts
from yolo_fs.loops.repairs import ACCEPTED, reviews_of, stage_of
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.progress import fold
from yolo_fs.protocol.departments import Dept

PLANS = {"src/auth.ts": "01-01", "src/login.ts": "01-02"}
ORDER = [
    "critique.jsonl", "research.jsonl", "architecture.toon", "01-01.plan.jsonl", "01-02.plan.jsonl", "test-plan.jsonl",
    "src/auth.ts", "01-01.summary.jsonl", "src/login.ts", "01-02.summary.jsonl", "code-review.jsonl",
    "verification.jsonl", "qa-code.jsonl", "security-audit.jsonl",
]  # fmt: skip
"""A phase as it should go: artifacts, and source of the plans."""


def history(*order: str | tuple[str, list[dict[str, Any]]]) -> PhaseFacts:
    """Return the facts of a phase whose files were committed in this order, each with its lines."""
    content = phases.complete()
    content.pop("../../state.json", None)
    versions: dict[str, list[Version]] = {}
    committed, work = {}, []
    for position, event in enumerate(order):
        name, lines = (event, content.get(event, [])) if isinstance(event, str) else event
        if name in PLANS:
            work.append(
                Work(
                    PLANS[name],
                    10 * position,
                    position,
                    frozenset([name]),
                    f"{position:040}",
                )
            )
            continue
        one = phases.committed(name, lines)
        versions.setdefault(one.place.path, []).append(
            Version(one.lines, 10 * position, position, position)
        )
        committed[name] = one._replace(position=position, commit=f"{position:040}")
    known = phases.facts({})
    return replace(known, committed=tuple(committed.values()), versions=versions, work=tuple(work))


def open_step(known: PhaseFacts) -> tuple[str, str]:
    """Return the step that the phase is at, and who is to act in it."""
    asked = Phase(known).progress.next
    assert asked is not None
    return asked.step, asked.agent


def why(known: PhaseFacts, step: str) -> tuple[str, ...]:
    (department,) = fold(known).departments
    return next(one.missing for one in department.steps if one.step.key == step)


def test_a_phase_that_went_in_its_order_waits_for_its_sign_off_alone() -> None:
    assert open_step(history(*ORDER)) == ("signoff", "lead")


@pytest.mark.parametrize("judge", ["verification.jsonl", "qa-code.jsonl", "security-audit.jsonl"])
def test_a_verdict_that_was_written_first_judges_nothing(judge: str) -> None:
    known = history(judge, *(name for name in ORDER if name != judge))
    step = "security" if judge.startswith("security") else "qa"
    assert open_step(known)[0] == step
    assert why(known, step)[0].startswith(f"{judge} is older than source of 01-01 (000000000000)")


AGAIN = ("code-review.jsonl", [{"plan": "01-01", "r": "approve", "cycle": 2, "dt": "2026-02-20"},
                               {"plan": "01-02", "r": "approve", "dt": "2026-02-18"}])  # fmt: skip


def test_source_after_its_review_is_reviewed_again_and_then_verified_and_audited() -> None:
    known = history(*ORDER, "src/auth.ts")
    assert open_step(known) == ("code_review", "senior")
    known = history(*ORDER, "src/auth.ts", AGAIN)
    assert open_step(known) == ("qa", "qa")
    known = history(*ORDER, "src/auth.ts", AGAIN, "verification.jsonl")
    assert open_step(known) == ("qa", "qa-code")
    known = history(*ORDER, "src/auth.ts", AGAIN, "verification.jsonl", "qa-code.jsonl")
    assert open_step(known) == ("security", "security")


def test_a_plan_that_comes_after_the_verification_opens_it() -> None:
    known = history(*(name for name in ORDER if name != "01-02.plan.jsonl"), "01-02.plan.jsonl")
    assert "verification.jsonl is older than plan 01-02 (000000000000)" in why(known, "qa")


def test_a_design_that_comes_after_the_verification_opens_it() -> None:
    known = history(*(name for name in ORDER if name != "architecture.toon"), "architecture.toon")
    assert (
        "verification.jsonl is older than architecture.toon (000000000000)" in why(known, "qa")[0]
    )


def test_source_that_names_the_plan_of_two_departments_and_touches_neither_is_judged_by_both() -> (
    None
):
    plan = [{"p": "01", "n": "01", "t": "Page", "w": 1}, {"id": "T1", "f": ["web/page.tsx"]}]
    approved = [{"plan": "01-01", "r": "approve"}]
    known = history(*ORDER, ("fe-01-01.plan.jsonl", plan), ("fe-code-review.jsonl", approved))
    config = config_from({"security_audit": True, "departments": {"frontend": True}})
    known = replace(known, options=WorkflowOptions(config))

    def judged_after(*files: str) -> list[Dept]:
        later = Work("01-01", 900, 90, frozenset(files), "c" * 40)
        after = replace(known, work=(*known.work, later))
        departments = (Dept.BACKEND, Dept.FRONTEND)
        return [each for each in departments if any(came_later(after, "code-review", each))]

    assert judged_after("lib/shared.ts") == [Dept.BACKEND, Dept.FRONTEND]
    assert judged_after("lib/shared.ts", "web/page.tsx") == [Dept.FRONTEND]
    assert judged_after("src/auth.ts") == [Dept.BACKEND]


FAILED = [{"r": "FAIL", "ps": 1, "fl": 1, "dt": "2026-02-20"}]
AUDITED = ORDER[:-1]
STOPPED = ("security-audit.jsonl", FAILED)


def test_an_audit_that_only_changes_its_mind_asks_the_user() -> None:
    known = history(*AUDITED, STOPPED, "security-audit.jsonl")
    assert open_step(known) == ("security", "user")
    said = "security says PASS after a FAIL, and nothing was changed in between: the user decides"
    assert why(known, "security") == (said,)
    again = history(*AUDITED, STOPPED, "security-audit.jsonl", "security-audit.jsonl")
    assert open_step(again) == ("security", "user")


def test_an_audit_after_one_that_this_clone_lacks_waits_for_it() -> None:
    assert open_step(lacking_first_of("security-audit.jsonl")) == ("security", "user")
    known = lacking_first_of("security-audit.jsonl")
    assert "that this clone lacks" in why(known, "security")[0]
    turn = Phase(known).progress.next
    assert turn is not None and turn.command == "git fetch --refetch --no-filter"
    mended = lacking_first_of("security-audit.jsonl", "src/auth.ts")
    assert open_step(mended) == ("signoff", "lead")


def lacking_first_of(name: str, *between: str) -> PhaseFacts:
    """Return the facts of a clone without the contents of an artifact that was written twice."""
    known = history(*AUDITED, (name, []), *between, name)
    path = phases.committed(name, []).place.path
    lacking, *there = known.versions[path]
    return replace(known, versions={**known.versions, path: there}, unread={path: [lacking]})


@pytest.mark.parametrize(
    "agent, turn", [("user", ("signoff", "lead")), ("lead", ("security", "user"))]
)
@pytest.mark.parametrize("is_before", [True, False])
def test_the_user_alone_accepts_what_an_audit_failed(
    agent: str, turn: tuple[str, str], is_before: bool
) -> None:
    accepted = ("decisions.jsonl", [{"agent": agent, "kind": "accept_risk", "of": "backend"}])
    after: list[Any] = ["security-audit.jsonl"]
    after.insert(0 if is_before else 1, accepted)
    assert open_step(history(*AUDITED, STOPPED, *after)) == turn


@pytest.mark.parametrize("last", ["FAIL", "PASS"])
def test_a_risk_accepted_on_a_branch_beside_the_audit_that_failed_is_not_accepted(
    last: str,
) -> None:
    """The merge gave the audit the lower place, and whoever accepted knew nothing of it."""
    accepted = ("decisions.jsonl", [{"agent": "user", "kind": "accept_risk", "of": "backend"}])
    audits: list[Any] = [STOPPED, accepted, *(["security-audit.jsonl"] if last == "PASS" else [])]
    known = history(*AUDITED, *audits)
    at = len(AUDITED)
    beside = replace(known, unseen={at + 1: frozenset({at})})
    assert known.is_later(at + 1, at) and beside.is_later(at, at + 1)
    assert open_step(beside) == ("security", "user")


def test_a_plan_accepted_on_a_branch_beside_its_last_review_is_not_accepted() -> None:
    refused = [
        {"plan": "01-01", "r": "changes_requested", "cycle": 2, "dt": "2026-11-29"},
        {"f": "src/auth.ts", "ln": 1, "sev": "major", "issue": "a secret is logged"},
    ]
    accepted = [{"agent": "lead", "kind": "accept", "of": "01-01"}]
    known = history(*ORDER[:-4], ("code-review.jsonl", refused), ("decisions.jsonl", accepted))
    at = len(ORDER) - 4
    (plan, _) = plans_of(known, Dept.BACKEND)
    for beside, is_accepted in (
        (known, True),
        (replace(known, unseen={at + 1: frozenset({at})}), False),
    ):
        loops = loop_facts(beside)
        (review,) = reviews_of(loops, plan)
        assert (stage_of(loops, plan, [review]).state == ACCEPTED) is is_accepted


def test_an_audit_passes_what_was_mended_since_it_failed() -> None:
    known = history(*AUDITED, STOPPED, "src/auth.ts", "security-audit.jsonl")
    assert open_step(known) == ("signoff", "lead")


def test_an_artifact_that_is_the_work_of_a_plan_is_judged_like_source() -> None:
    token = ("design-tokens.jsonl", [{"name": "space.4"}])
    path = phases.committed(*token).place.path
    plan = [dict(line) for line in phases.complete()["01-01.plan.jsonl"]]
    plan[1]["f"] = [*plan[1]["f"], path]
    made = [("01-01.plan.jsonl", plan) if each == "01-01.plan.jsonl" else each for each in ORDER]
    known = history(*made, token)
    assert "older than design-tokens.jsonl" in why(known, "code_review")[0]


def test_what_mends_a_failed_verification_is_verified_again_and_not_reviewed_again() -> None:
    before = ORDER[: ORDER.index("verification.jsonl")]
    failed = (*before, ("verification.jsonl", FAILED), "qa-code.jsonl")
    assert open_step(history(*failed))[0] == "qa"
    fixed = (*failed, "src/auth.ts")
    assert open_step(history(*fixed)) == ("qa", "qa")
    passed = (*fixed, "verification.jsonl", "qa-code.jsonl", "security-audit.jsonl")
    assert open_step(history(*passed)) == ("signoff", "lead")


def test_what_mends_a_failed_audit_is_audited_again_and_verified_no_more() -> None:
    audit = (
        "security-audit.jsonl",
        [{"r": "FAIL", "findings": 1, "critical": 1, "dt": "2026-02-20"}],
    )
    passed = (*ORDER[:-1], audit, "src/auth.ts", "security-audit.jsonl")
    assert open_step(history(*passed)) == ("signoff", "lead")


@pytest.mark.proves("000:653")
@pytest.mark.parametrize(
    ("said", "step"), [("patch", ("signoff", "lead")), ("major", ("code_review", "senior"))]
)
def test_a_patch_meets_the_gate_alone_and_what_is_scoped_anew_walks_the_steps_again(
    said: str, step: tuple[str, str]
) -> None:
    verdict = ("po-qa-verdict.jsonl", [{"verdict": said, "target_dept": "backend"}])
    made = (*ORDER, verdict, "01-01.plan.jsonl", "src/auth.ts", "01-01.summary.jsonl")
    assert open_step(history(*made)) == step
    verified = (*made, AGAIN, "verification.jsonl", "qa-code.jsonl")
    if said == "major":
        assert open_step(history(*made, AGAIN)) == ("qa", "qa")
        assert open_step(history(*verified)) == ("security", "security")
    assert open_step(history(*verified, "security-audit.jsonl")) == ("signoff", "lead")


def test_a_patch_that_is_asked_of_another_department_is_no_repair_by_this_one() -> None:
    verdict = ("po-qa-verdict.jsonl", [{"verdict": "patch", "target_dept": "frontend"}])
    known = history(*ORDER, verdict, "src/auth.ts")
    assert any(came_later(known, "code-review", Dept.BACKEND))


GATE = ("integration-gate-result.jsonl", [{"r": "FAIL", "dt": "2026-02-20"}])
REWORK = ("01-01.plan.jsonl", "src/auth.ts", "01-01.summary.jsonl")


def test_what_is_scoped_anew_after_a_failed_patch_is_no_repair_of_the_gate() -> None:
    said = ("patch", "major")
    patch, major = (
        ("po-qa-verdict.jsonl", [{"verdict": each, "target_dept": "backend"}]) for each in said
    )
    made = (*ORDER, patch, "src/auth.ts", GATE, major, *REWORK)
    assert open_step(history(*made)) == ("code_review", "senior")


def test_a_sign_off_that_a_plan_has_opened_is_not_closed_by_the_repair_of_the_gate() -> None:
    signed = {"signed_off": "f" * 40, "signed_off_at": len(ORDER) - 1}
    made = (*ORDER, *REWORK, GATE)
    assert open_step(replace(history(*made), **signed)) == ("code_review", "senior")
    assert open_step(replace(history(*made, *REWORK), **signed)) == ("code_review", "senior")


def test_what_is_signed_off_stays_so_whatever_is_changed_later() -> None:
    known = replace(history(*ORDER, "../../ROADMAP.md", "src/auth.ts"), signed_off="f" * 40)
    assert Phase(known).is_complete


def test_a_verdict_whose_place_in_history_is_not_known_is_older_than_nothing() -> None:
    known = history(*ORDER, "src/auth.ts")
    committed = tuple(one._replace(position=-1) for one in known.committed)
    work = tuple(one._replace(position=-1) for one in known.work)
    versions = {
        path: [one._replace(position=-1) for one in every] for path, every in known.versions.items()
    }
    known = replace(known, committed=committed, work=work, versions=versions)
    assert open_step(known) == ("signoff", "lead")
