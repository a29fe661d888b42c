"""Who has to act is one answer: in each loop and state, and the same wherever it is shown."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from typing import Any

import pytest

from tests.examples import FIXTURES
from tests.loops.test_delivery import of_frontend
from tests.support.phases import COMMITS, FOLDER, committed, complete, facts
from tests.support.settings import config_from
from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.examine import examine
from yolo_fs.artifacts.verdicts import Surroundings
from yolo_fs.company.source import source_of
from yolo_fs.evidence.facts import Version, Withdrawn, Work
from yolo_fs.phase.acts import acts_of, plans_laid_aside
from yolo_fs.phase.gate_status import GateStatus, MissingEvidence
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.progress import _NEW_BYTES, Next
from yolo_fs.phase.report import Audience, PhaseReport
from yolo_fs.phase.turns import asked_by_gate
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, Dept
from yolo_fs.schemas.layout import Record, Strictness
from yolo_fs.states.project import summary_line

PO = config_from(
    {"po": {"enabled": True}, "security_audit": True, "integration_gate": {"enabled": True}}
)
ASKS = {"plan": "01-01", "r": "changes_requested", "cycle": 1, "dt": "2026-02-19"}
MAJOR = {"f": "src/auth.ts", "ln": 1, "sev": "major", "issue": "x", "sug": "y"}
DELIVERED = {
    "scope-document.json": [{"status": "PO-APPROVED"}],
    "analysis.json": [{"confidence": 0.9}],
    "integration-gate-result.jsonl": [{"r": "PASS"}],
}


def turn(changed: dict[str, list[dict[str, Any]]], **more: Any) -> Next:
    """Return who has to act, after every place that shows it has given the same answer."""
    phase = Phase(facts(complete() | changed, **more))
    found = phase.progress.next
    assert found is not None
    assert PhaseReport(phase, Audience()).next()[0] == found
    run = f" → {found.command}" if found.command else ""
    assert summary_line((phase,)).endswith(f", next: {found.sentence}{run}")
    return found


def versions(name: str, *contents: tuple[int, list[dict[str, Any]]]) -> dict[str, Any]:
    return {
        f"{FOLDER}/{name}": tuple(
            Version(tuple(lines), 10 * order, order) for order, lines in contents
        )
    }


@pytest.mark.proves("002:133")
def test_a_lead_is_told_of_both_ways_before_and_after_the_escalation_is_open() -> None:
    lines = [ASKS | {"cycle": 2}, MAJOR]
    known = versions("code-review.jsonl", (2, [ASKS, MAJOR]), (4, lines))
    work = (Work("01-01", 30, 3, frozenset({"src/auth.ts"})),)
    accept = "yolo-fs decide accept 01-01 --as lead --reason …"
    before = turn({"code-review.jsonl": lines}, versions=known, work=work)
    both = "lead accepts 01-01 with known issues, or escalates it to the Architect"
    assert (before.sentence, before.command) == (both, accept)
    assert "yolo-fs escalate raise" in before.why
    asked = {
        "id": "ESC-01-01-T1", "dt": "2026-02-19T11:00:00Z", "agent": "senior", "tgt": "lead",
        "reason": "code review 01-01: escalated to the Lead, no round is left", "sev": "blocking",
        "st": "open",
    }  # fmt: skip
    changed = {"code-review.jsonl": lines, "escalation.jsonl": [asked]}
    after = turn(changed, versions=known, work=work)
    assert after.command.startswith("yolo-fs escalate resolve ESC-01-01-T1 --by lead")
    assert accept in after.why
    assert "yolo-fs escalate raise ESC-01-01-T1 --by lead --reason …" in after.why


@pytest.mark.proves("002:131", "resume:3")
def test_after_a_review_with_major_findings_the_dev_fixes_and_the_senior_looks_again() -> None:
    lines = [ASKS, MAJOR]
    known = versions("code-review.jsonl", (2, lines))
    changed = {"code-review.jsonl": lines}
    fix = turn(changed, versions=known)
    assert (fix.agent, fix.step) == ("dev", "code_review")
    assert "major findings" in fix.why
    assert turn(changed, versions=known, work=(Work("01-01", 30, 3),)).agent == "senior"
    second = [ASKS | {"cycle": 2}, MAJOR]
    known = versions("code-review.jsonl", (2, second))
    assert turn({"code-review.jsonl": second}, versions=known).agent == "lead"


@pytest.mark.proves("002:121", "resume:3")
def test_a_failed_verification_goes_to_the_lead_and_after_the_fix_to_qa() -> None:
    failed = [{"r": "FAIL", "fl": 1}]
    known = versions("verification.jsonl", (2, failed))
    first = turn({"verification.jsonl": failed}, versions=known)
    assert (first.agent, first.step) == ("lead", "qa")
    fixed = turn({"verification.jsonl": failed}, versions=known, work=(Work("01-01", 30, 3),))
    assert (fixed.agent, fixed.sentence) == ("qa", "qa verifies again")


@pytest.mark.proves("002:121", "002:222", "resume:5")
def test_what_the_lead_assigns_after_a_fail_is_named_with_its_task_and_given_to_whoever_does_it() -> (
    None
):
    changed = {"verification.jsonl": [{"r": "FAIL", "fl": 1}]}
    failed = versions("verification.jsonl", (2, changed["verification.jsonl"]))
    assert turn(changed, versions=failed).sentence == "lead assigns what QA has failed"
    assigned = {"agent": "lead", "kind": "assign", "of": "01-01/T1", "task": "01-01/T1"}
    changed |= {"decisions.jsonl": [assigned]}
    known = failed | versions("decisions.jsonl", (3, [assigned]))
    senior = turn(changed, versions=known)
    assert (senior.sentence, senior.task) == ("senior specifies 01-01/T1 again", "01-01/T1")
    assert "decisions.jsonl" in senior.inputs
    plan = complete()["01-01.plan.jsonl"]
    known |= versions("01-01.plan.jsonl", (1, plan), (4, plan))
    phase = Phase(facts(complete() | changed, versions=known))
    (dev,) = acts_of(phase)
    assert (dev.turn.sentence, dev.writes) == ("dev fixes 01-01/T1", ("src/auth.ts",))
    assert "decisions.jsonl" not in dev.turn.inputs, "a Dev is given its specification alone"
    assert [(one.task.number, one.type) for one in source_of(phase, dev)] == [(1, "fix")]


@pytest.mark.proves("002:282")
def test_a_loop_is_of_the_department_whose_work_it_is_where_both_have_a_plan_of_the_number() -> (
    None
):
    reviewed = [ASKS, MAJOR]
    failed = {"gl": "post-task", "r": "FAIL", "plan": "01-01", "task": "T1", "f": ["web/in.ts"]}
    plan, task = complete()["01-01.plan.jsonl"]
    content = (
        complete() | of_frontend() | {"fe-01-01.plan.jsonl": [plan, task | {"f": ["web/in.ts"]}]}
    )
    config = config_from({"departments": {"frontend": True}})
    for name, lines, lacks, own in (
        ("fe-code-review.jsonl", reviewed, "code-review.jsonl", "senior"),
        (".qa-gate-results.jsonl", [failed], "01-01.summary.jsonl", "dev"),
    ):
        present = {key: value for key, value in content.items() if key != lacks} | {name: lines}
        found = Phase(facts(present, config=config, versions=versions(name, (2, lines))))
        turns = {one.department: one.next.agent for one in found.progress.departments if one.next}
        assert turns == {Dept.BACKEND: own, Dept.FRONTEND: "fe-dev"}


@pytest.mark.parametrize(
    ("kind", "finding", "task"),
    [
        ("qa-code", {"f": "src/login.ts", "ln": 3, "sev": "major", "issue": "x"}, "01-02/T1"),
        ("qa-code", {"f": "src/login.ts", "ln": 3, "sev": "minor", "issue": "x"}, "01-01/T1"),
        ("verification", {"c": "01-02/T1 logs in", "r": "fail", "ev": "no"}, "01-02/T1"),
        ("verification", {"c": "it logs in", "r": "fail", "ev": "see src/login.ts."}, "01-02/T1"),
        ("verification", {"c": "01-02/T1 logs in", "r": "pass", "ev": "yes"}, "01-01/T1"),
    ],
)
def test_the_lead_is_told_to_assign_the_task_that_the_verdict_names(
    kind: str, finding: dict[str, Any], task: str
) -> None:
    lines = [{"r": "FAIL", "fl": 1}, finding]
    found = turn({f"{kind}.jsonl": lines}, versions=versions(f"{kind}.jsonl", (2, lines)))
    assert found.command.startswith(f"yolo-fs decide assign {task} --as lead")


def test_a_lead_who_was_answered_after_the_last_fail_is_told_how_to_assign_the_work() -> None:
    failed = [{"r": "FAIL", "fl": 1}]
    known = versions(
        "verification.jsonl",
        *((order, [{"r": "FAIL", "fl": order}]) for order in (2, 3)),
        (4, failed),
    )
    asked = {
        "id": "ESC-01-01-T1", "dt": "2026-02-19T11:00:00Z", "agent": "lead", "tgt": "architect",
        "reason": "QA remediation backend: 3rd QA FAIL, no round is left", "sev": "blocking",
        "st": "open",
    }  # fmt: skip
    told = asked | {"dt": "2026-02-19T12:00:00Z", "agent": "architect", "tgt": "lead"}
    told |= {"st": "escalated", "dec": "a new design", "reason": "a new design"}
    changed = {"verification.jsonl": failed, "escalation.jsonl": [asked, told]}
    assigns = turn(changed, versions=known)
    assert assigns.sentence == "lead assigns what QA has failed"
    assert assigns.command.startswith("yolo-fs decide assign 01-01/T1 --as lead")
    assert "verification.jsonl" in assigns.inputs


@pytest.mark.parametrize(
    ("decision", "agent"),
    [
        ({"kind": "assign", "of": "01-01/T1"}, "senior"),
        ({"kind": "assign", "of": "01-01/T9", "task": "01-01/T1"}, "lead"),
        ({"task": "01-01/T1"}, "senior"),
        ({"kind": "accept", "of": "01-01", "task": "01-01/T1"}, "lead"),
    ],
    ids=["what it is of", "a task that there is not", "the reference's", "another"],
)
def test_a_lead_assigns_the_task_that_its_decision_is_of(
    decision: dict[str, str], agent: str
) -> None:
    changed = {"verification.jsonl": [{"r": "FAIL", "fl": 1}]}
    failed = versions("verification.jsonl", (2, changed["verification.jsonl"]))
    changed |= {"decisions.jsonl": [decision | {"agent": "lead"}]}
    known = failed | versions("decisions.jsonl", (3, changed["decisions.jsonl"]))
    assert turn(changed, versions=known).agent == agent


def test_who_is_sent_back_to_a_plan_that_is_done_is_given_it_again() -> None:
    whole = Phase(facts(complete()))
    assert {str(plan) for plan in plans_laid_aside(whole)} == {"01-01", "01-02"}
    asked = complete() | {"code-review.jsonl": [ASKS, MAJOR, {"plan": "01-02", "r": "approve"}]}
    assert {str(plan) for plan in plans_laid_aside(Phase(facts(asked)))} == {"01-02"}
    failed = complete() | {"verification.jsonl": [{"r": "FAIL", "fl": 1}]}
    assert {str(plan) for plan in plans_laid_aside(Phase(facts(failed)))} == {"01-01", "01-02"}


@pytest.mark.proves("resume:3", "more:1")
def test_whoever_holds_an_escalation_has_to_answer_it() -> None:
    log = {"id": "ESC-01-01-T1", "dt": "2026-02-19T08:00:00Z", "agent": "dev", "tgt": "senior", "st": "open"}  # fmt: skip
    assert turn({"escalation.jsonl": [log]}).agent == "senior"


@pytest.mark.proves("000:240a")
def test_a_blocking_question_goes_to_the_scout_first() -> None:
    pending = {"q": "which key store?", "src": "pending", "rt": "blocking", "ra": "dev"}
    content = {"research.jsonl": [{"q": "rotation"}, pending], "01-01.summary.jsonl": []}
    assert turn(content).agent == "scout"
    pending["rt"] = "informational"
    assert turn(content).agent == "dev"


@pytest.mark.proves("002:53")
def test_a_design_that_is_sent_back_goes_to_the_architect() -> None:
    recycled = turn({"critique.jsonl": [{"id": "C1", "st": "open", "cf": 90, "rd": 1}]})
    assert (recycled.agent, recycled.step) == ("architect", "architecture")
    assert "Recycle" in recycled.why
    open_ = {"critique.jsonl": [{"id": "C1", "st": "open", "cf": 90, "rd": 1}]}
    assert writes(open_) == ("architect", ["critique.jsonl", "architecture.toon"])
    assert turn({"architecture.toon": [{"stage_gate": "Kill"}]}).agent == "user"


def test_an_unsure_critique_goes_back_to_the_critic_until_a_design_is_built_on_it() -> None:
    entry = {"id": "C1", "st": "addressed", "cf": 40, "rd": 1}

    def asked(critique: dict[str, Any], *missing: str) -> Next | None:
        content = {name: lines for name, lines in complete().items() if name not in missing}
        return Phase(facts(content | {"critique.jsonl": [critique]})).progress.next

    for missing in (["architecture.toon"], ["architecture.toon", "research.jsonl"]):
        again = asked(entry, *missing)
        assert again and (again.agent, again.step) == ("critic", "critique")
        assert "another round: 40 % sure, 85 % are required" in again.why
    designing = asked(entry | {"rd": 3}, "architecture.toon")
    assert designing and designing.agent == "architect"
    reviewing = asked(entry, "code-review.jsonl")
    assert reviewing and reviewing.agent == "senior"


def test_a_complete_phase_asks_nobody_for_its_documentation() -> None:
    config = config_from({"security_audit": True, "documenter": "always"})
    content = {name: lines for name, lines in complete().items() if name != "docs.jsonl"}
    phase = Phase(facts(content, config=config))
    assert phase.is_complete
    assert phase.progress.next is None
    assert summary_line((phase,)).endswith("complete")


def test_after_a_security_fail_the_user_is_told_what_to_decide_and_how() -> None:
    asked = turn({"security-audit.jsonl": [{"r": "FAIL"}]})
    assert (
        asked.sentence == "user decides whether what security found is accepted, or is fixed first"
    )
    assert asked.command == "yolo-fs decide accept-risk backend --phase 1 --reason …"


@pytest.mark.proves("000:603a")
@pytest.mark.parametrize(
    ("verdict", "agent"),
    [
        ({"verdict": "patch", "target_dept": "backend"}, "senior"),
        ({"verdict": "major", "re_scope_items": ["SSO"]}, "questionary"),
    ],
)
def test_a_verdict_of_the_product_owner_is_taken_up(verdict: dict[str, Any], agent: str) -> None:
    content = DELIVERED | {"po-qa-verdict.jsonl": [verdict]}
    asked = turn(content, config=PO)
    assert (asked.agent, asked.step) == (agent, "delivery")


def of_frontend_alone(changed: dict[str, list[dict[str, Any]]], **more: Any) -> Phase:
    """Return a phase in which backend is off, and what the frontend makes is done."""
    shared = ("critique.jsonl", "research.jsonl")
    own = {n if "/" in n or n in shared else f"fe-{n}": each for n, each in complete().items()}
    config = config_from(
        {"departments": {"backend": False, "frontend": True}, "security_audit": True}
        | more.pop("config", {})
    )
    return Phase(facts(own | changed, config=config, **more))


@pytest.mark.parametrize(
    ("verdict", "scoped", "agent"),
    [
        ({"verdict": "major", "re_scope_items": ["SSO"]}, 3, "fe-lead"),
        ({"verdict": "patch", "target_dept": "frontend"}, 1, "fe-senior"),
        ({"verdict": "patch", "target_dept": "backend"}, 1, "fe-senior"),
    ],
)
def test_where_the_frontend_works_alone_a_verdict_is_taken_up_by_its_own_agents(
    verdict: dict[str, Any], scoped: int, agent: str
) -> None:
    """A phase in which backend is off would else wait for an agent that it does not have."""
    name, scope = "po-qa-verdict.jsonl", "scope-document.json"
    known = versions(name, (2, [verdict])) | versions(scope, (scoped, DELIVERED[scope]))
    changed = DELIVERED | {name: [verdict]}
    phase = of_frontend_alone(changed, config={"po": {"enabled": True}}, versions=known)
    (act,) = acts_of(phase)
    assert act.agent == agent
    assert all("/fe-01-" in path for path in act.writes)
    assert f"next {agent}: " in act.turn.why


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (
            "dept-handoff.jsonl",
            {"from_dept": "backend", "to_dept": "frontend", "blockers": ["no API"]},
        ),
        (
            "api-contracts.jsonl",
            {"endpoint": "/a", "status": "proposed", "direction": "frontend_to_backend"},
        ),
        (
            "integration-gate-result.jsonl",
            {"r": "FAIL", "failures": [{"file": "api-contracts.jsonl", "detail": "not kept"}]},
        ),
    ],
)
def test_where_the_frontend_works_alone_its_lead_settles_what_keeps_the_gate_closed(
    name: str, line: dict[str, Any]
) -> None:
    (act, *others) = acts_of(of_frontend_alone({name: [line]}))
    assert (act.agent, others) == ("fe-lead", [])
    assert not any("/01-01" in path for path in act.writes)


def writes(changed: dict[str, list[dict[str, Any]]], **more: Any) -> tuple[str, list[str]]:
    """Return who acts first, and the names of what it is to write."""
    (act, *_) = acts_of(Phase(facts(complete() | changed, **more)))
    return act.agent, [path.rpartition("/")[2] for path in act.writes]


def test_what_a_verdict_asks_for_is_written_into_its_own_file() -> None:
    major = [{"verdict": "major", "re_scope_items": ["SSO"]}]
    content = DELIVERED | {"po-qa-verdict.jsonl": major, "discovery.json": [{"round": 2}]}
    known = versions("po-qa-verdict.jsonl", (2, major)) | versions("discovery.json", (3, [{}]))
    assert writes(content, config=PO, versions=known) == ("po", ["scope-document.json"])
    patch = [{"verdict": "patch", "target_dept": "backend"}]
    content = DELIVERED | {"po-qa-verdict.jsonl": patch}
    known = versions("po-qa-verdict.jsonl", (2, patch))
    done = writes(content, config=PO, versions=known, work=(Work("01-01", 30, 3),))
    assert done == ("integration-gate", ["integration-gate-result.jsonl"])


def test_what_security_has_found_is_mended_by_the_dev_once_the_user_has_decided() -> None:
    names = ("security", "user"), ("user", "architect"), ("architect", "lead"), ("lead", "security")
    log = [
        {"id": "ESC-01-01-T1", "dt": f"2026-02-19T08:0{at}:00Z", "agent": agent, "tgt": target,
         "sev": "blocking", "reason": "a leak", "st": "escalated" if at else "open"}
        | ({"dec": "rotate the key"} if at else {})
        for at, (agent, target) in enumerate(names)
    ]  # fmt: skip
    asked = turn({"security-audit.jsonl": [{"r": "FAIL"}], "escalation.jsonl": log})
    assert asked.sentence == "dev fixes what Security found in 01-01/T1: rotate the key"


def test_behind_a_closed_gate_whoever_owes_its_evidence_acts() -> None:
    blocked = {"from_dept": "frontend", "to_dept": "backend", "blockers": ["no login page"]}
    found = turn({"dept-handoff.jsonl": [blocked]})
    assert (found.agent, found.inputs) == ("lead", ("dept-handoff.jsonl",))
    assert "gate integration is closed: frontend → backend: no login page" in found.why


@pytest.mark.parametrize(
    ("name", "line", "agent"),
    [
        (
            "api-contracts.jsonl",
            {"direction": "backend_to_frontend", "endpoint": "GET /me", "status": "proposed"},
            "fe-lead",
        ),
        (
            "api-contracts.jsonl",
            {"direction": "frontend_to_backend", "endpoint": "GET /me", "status": "proposed"},
            "lead",
        ),
        (
            "dept-handoff.jsonl",
            {"from_dept": "frontend", "to_dept": "backend", "blockers": ["no login page"]},
            "fe-lead",
        ),
        (
            "dept-handoff.jsonl",
            {"from_dept": "backend", "to_dept": "frontend", "blockers": ["no token"]},
            "lead",
        ),
    ],
)
def test_what_stands_between_departments_is_settled_by_the_one_that_its_line_names(
    name: str, line: dict[str, Any], agent: str
) -> None:
    """Whoever proposes a contract cannot agree on it, and only the giver ends a blocker."""
    content = {f"fe-{each}": lines for each, lines in complete().items() if "/" not in each}
    config = config_from({"departments": {"frontend": True}, "security_audit": True})
    phase = Phase(facts(complete() | content | {name: [line]}, config=config))
    (gate,) = (each for each in phase.gates if each.name == "integration")
    assert asked_by_gate(gate, phase.facts.options).agent == agent, gate.missing


def failed_by(file: str, *, worked_at: int) -> Phase:
    """Return a phase of two departments that the integration gate has failed at the fifth commit
    for a file. The clock of who worked at a place of history is an hour ahead.
    """
    task = complete()["01-01.plan.jsonl"][1] | {"f": ["web/page.tsx"]}
    result = {"r": "FAIL", "failures": [{"check": "api", "detail": "wrong path", "file": file}]}
    frontend = {
        f"fe-{name}": [line for line in lines if line.get("plan", "01-01") == "01-01"]
        for name, lines in complete().items()
        if "/" not in name and "01-02" not in name and name != "research.jsonl"
    }
    frontend["fe-01-01.plan.jsonl"] = [{"p": "01", "n": "01", "t": "Page", "w": 1, "d": []}, task]
    paths = frozenset({"src/auth.ts", "web/page.tsx"})
    path = f"{FOLDER}/integration-gate-result.jsonl"
    known = facts(
        complete() | frontend | {"integration-gate-result.jsonl": [result]},
        config=config_from({"security_audit": True, "departments": {"frontend": True}}),
        commits=COMMITS | {"aaaaaaa": COMMITS["aaaaaaa"]._replace(files=paths)},
        work=(Work("01-02", 3600, worked_at, frozenset({"src/login.ts"})),),
        versions={path: (Version((result,), 50, 5, 5),)},
    )
    committed = (
        one._replace(position=5, at_s=50)
        if one.place.name.startswith("integration")
        else one._replace(position=2, at_s=20)
        for one in known.committed
    )
    return Phase(replace(known, committed=tuple(committed)))


@pytest.mark.parametrize(
    ("file", "agent"),
    [("web/page.tsx", "fe-lead"), ("src/login.ts", "lead"), ("nobody.ts", "owner")],
)
def test_what_the_integration_gate_failed_is_mended_where_its_file_is_planned_and_reviewed_again(
    file: str, agent: str
) -> None:
    asked = failed_by(file, worked_at=1).progress.next
    assert asked and (asked.step, asked.agent) == ("integration_gate", agent)
    again = failed_by(file, worked_at=7).progress.next
    assert again and (again.step, again.agent) == ("code_review", "senior")


def test_nobody_is_asked_for_a_sign_off_that_what_is_open_would_refuse() -> None:
    unsigned = {"../../state.json": [{"ph": 1, "st": "active"}]}
    blocked = {"from_dept": "frontend", "to_dept": "backend", "blockers": ["no login page"]}
    assert turn(unsigned).command == "yolo-fs phase sign-off 1"
    found = turn({**unsigned, "dept-handoff.jsonl": [blocked]})
    assert (found.agent, found.command) == ("lead", "")
    assert "frontend → backend: no login page" in found.why
    assert found.sentence == "lead settles what is open"


@pytest.mark.parametrize(
    ("file", "agent"),
    [
        ("design-handoff.jsonl", "ux-lead"),
        ("component-specs.jsonl", "ux-lead"),
        ("dept-handoff.jsonl", "lead"),
        ("fe-test-results.jsonl", "fe-dev"),
    ],
)
def test_what_a_gate_lacks_is_asked_of_the_department_that_makes_it(file: str, agent: str) -> None:
    gate = GateStatus("integration", (MissingEvidence("no such thing", file),), ())
    assert asked_by_gate(gate, facts(complete()).options).agent == agent


ANALYSIS = [{"confidence": 0.9}]
CLEAR = [{"confidence": 0.9}]
ROADMAP = [{"phases": [{"id": "01"}]}]
SCOPE = [{"status": "PO-APPROVED"}]


@pytest.mark.proves("002:33")
@pytest.mark.parametrize(
    ("content", "agent"),
    [
        ({}, "analyze"),
        ({"roadmap-plan.json": ROADMAP}, "analyze"),
        ({"critique.jsonl": [{"id": "C1", "cf": 90, "rd": 1}]}, "analyze"),
        ({"analysis.json": ANALYSIS}, "questionary"),
        ({"analysis.json": ANALYSIS, "roadmap-plan.json": ROADMAP}, "questionary"),
        ({"analysis.json": ANALYSIS, "discovery.json": CLEAR}, "roadmap"),
        (
            {"analysis.json": ANALYSIS, "discovery.json": CLEAR, "roadmap-plan.json": ROADMAP},
            "po",
        ),
        ({"analysis.json": ANALYSIS, "scope-document.json": SCOPE}, "critic"),
    ],
)
def test_planning_goes_through_the_product_owner_before_the_critic(
    content: dict[str, Any], agent: str
) -> None:
    progress = Phase(facts(content, config=PO)).progress

    assert progress.next is not None
    assert progress.next.agent == agent
    asked = [one.next.agent for one in progress.departments if one.next]
    assert asked == (["critic"] if agent == "critic" else [])
    skipped = [one.by for one in progress.steps if one.standing == "skipped"]
    assert "exists" not in skipped


@pytest.mark.proves("002:311b")
def test_an_analysis_in_doubt_asks_the_user_until_somebody_builds_on_it() -> None:
    doubtful = {"analysis.json": [{"confidence": 0.59}]}

    asked = Phase(facts(doubtful)).progress.next
    assert asked is not None
    assert (asked.agent, asked.inputs) == ("user", ("analysis.json",))
    assert "0.59 sure" in asked.why
    assert turn({"analysis.json": [{"confidence": 0.1}], "01-01.summary.jsonl": []}).agent == "dev"
    sure = Phase(facts({"analysis.json": [{"confidence": 0.6}]})).progress.next
    assert sure is not None
    assert sure.agent == "critic"


@pytest.mark.proves("000:550")
def test_what_the_owner_holds_is_held_whatever_else_passes() -> None:
    hold = {"decision": "HOLD", "notes": "the login page is slow"}

    held = Phase(facts(complete() | {"owner-signoff.jsonl": [hold]}))
    assert not held.is_complete
    assert held.sign_off == ("HOLD", "the Owner says HOLD: the login page is slow")
    asked = turn({"owner-signoff.jsonl": [hold]})
    assert (asked.agent, asked.step) == ("owner", "signoff")
    assert Phase(
        facts(complete() | {"owner-signoff.jsonl": [hold, {"decision": "SHIP"}]})
    ).is_complete


def test_a_ship_of_the_owner_opens_nothing_that_the_evidence_closes() -> None:
    content = {"owner-signoff.jsonl": [{"decision": "SHIP"}], "qa-code.jsonl": [{"r": "FAIL"}]}

    assert not Phase(facts(complete() | content)).is_complete


@pytest.mark.proves("000:550")
def test_departments_are_dispatched_in_the_order_of_the_owner() -> None:
    config = config_from({"departments": {"frontend": True}, "department_workflow": "parallel"})
    content: dict[str, list[dict[str, Any]]] = {"critique.jsonl": [{"id": "C1", "cf": 90, "rd": 1}]}
    content["research.jsonl"] = [{"q": "rotation"}]

    def asked(*reviews: dict[str, Any]) -> str:
        phase = Phase(facts(content | {"owner-review.jsonl": list(reviews)}, config=config))
        assert phase.progress.next is not None
        assert PhaseReport(phase, Audience()).next()[0] == phase.progress.next
        return phase.progress.next.agent

    assert asked() == "architect"
    assert asked({"dispatch_order": ["frontend", "backend"]}) == "fe-architect"


def test_qa_code_follows_qa() -> None:
    content = complete()
    del content["qa-code.jsonl"]
    after = Phase(facts(content)).progress.next
    del content["verification.jsonl"]
    before = Phase(facts(content)).progress.next
    assert before and after and (before.agent, after.agent) == ("qa", "qa-code")


@pytest.mark.proves("resume:5")
def test_a_plan_that_waits_for_what_nobody_makes_is_the_lead_s_to_mend() -> None:
    header = {"p": "01", "n": "01", "t": "Tokens", "w": 1, "d": ["01-09"]}
    task = {"id": "T1", "a": "sign", "f": ["src/auth.ts"], "spec": "RS256", "ts": "x"}
    found = turn({"01-01.plan.jsonl": [header, task], "01-01.summary.jsonl": [{"s": "partial"}]})
    assert (found.agent, found.inputs) == ("lead", ("01-01.plan.jsonl",))
    assert "01-09" in found.why


def test_the_lead_of_each_department_is_given_its_own_plans_of_an_endless_wait() -> None:
    task = {"id": "T1", "a": "sign", "f": ["src/auth.ts"], "spec": "RS256"}
    content: dict[str, list[dict[str, Any]]] = {
        "fe-architecture.toon": [{"tech_decisions": ["JWT"]}]
    }
    for number, need in (("01", "02"), ("02", "01")):
        header = {"p": "01", "n": number, "t": "Tokens", "w": 1, "d": [f"01-{need}"]}
        for prefix in ("", "fe-"):
            content[f"{prefix}01-{number}.plan.jsonl"] = [header, task]
            content[f"{prefix}01-{number}.summary.jsonl"] = [{"s": "partial"}]
    both = config_from({"departments": {"frontend": True}, "department_workflow": "parallel"})
    phase = Phase(facts(complete() | content, config=both))
    asked = {act.agent: [path.rpartition("/")[2] for path in act.writes] for act in acts_of(phase)}
    assert asked == {
        "lead": ["01-01.plan.jsonl", "01-02.plan.jsonl"],
        "fe-lead": ["fe-01-01.plan.jsonl", "fe-01-02.plan.jsonl"],
    }


def test_a_lead_changes_the_plan_that_holds_the_planning_and_not_the_first_one() -> None:
    header = {"p": "01", "n": "02", "t": "Login", "w": 2, "d": ["01-01"]}
    task = {"id": "T1", "a": "log in", "f": ["src/login.ts"], "spec": "x", "ts": "x"}
    elsewhere = {"xd": [{"p": "02", "n": "01", "a": "", "r": ""}]}
    waiting = {"01-02.plan.jsonl": [header | elsewhere, task]}
    assert writes(waiting) == ("lead", ["01-02.plan.jsonl"])
    circle: dict[str, Any] = {
        "plans_of_all": {(Dept.BACKEND, "02-01"): False},
        "needs_of_all": {(Dept.BACKEND, "02-01"): ("01-02",)},
    }
    waiting |= {"01-02.summary.jsonl": [{"s": "partial"}]}
    assert writes(waiting, **circle) == ("lead", ["01-02.plan.jsonl"])
    ends = turn(waiting, **circle)
    assert ends.deed == "ends the wait that nobody else can end"
    assert ends.why.startswith("deadlock: 01-02 waits for 02-01")
    torn = committed("01-02.plan.jsonl", [])._replace(valid=False)
    (act, *_) = acts_of(Phase(facts(complete()).with_committed(torn)))
    assert (act.agent, [path[-16:] for path in act.writes]) == ("lead", ["01-02.plan.jsonl"])


@pytest.mark.parametrize("name", ["02-01.plan.jsonl", "02-01.summary.jsonl"])
def test_a_file_that_is_named_after_another_phase_is_taken_away_by_a_person(name: str) -> None:
    content = complete()
    del content["../../state.json"]
    torn = committed(name, [])._replace(valid=False)
    (act, *_) = acts_of(Phase(facts(content).with_committed(torn)))
    assert act.is_of_person and not act.writes
    assert act.turn.deed == f"moves {name} to its phase, or takes it off the branch"
    assert act.turn.command == f"yolo-fs validate {FOLDER}/{name}"


def test_what_a_false_summary_lacks_is_told_to_its_dev() -> None:
    found = turn({"01-01.summary.jsonl": [{"s": "complete", "tc": 1, "tt": 1, "ch": ["fffffff"]}]})
    assert (found.agent, found.task) == ("dev", "01-01/T1")
    assert "commit fffffff is not on this branch" in found.why


def test_whoever_judges_after_a_fail_that_was_taken_back_is_told_of_it() -> None:
    content = complete()
    del content["verification.jsonl"]
    gone = Withdrawn("qa", DEFAULT_DEPARTMENT, "phases/01-auth/verification.jsonl", "FAIL")
    found = Phase(facts(content, withdrawn=(gone,))).progress.next
    assert found and found.step == "qa"
    assert found.why == "verification.jsonl said FAIL and was withdrawn: it is judged again"


def test_nobody_is_sent_past_a_closed_gate() -> None:
    three = config_from(
        {"departments": {"frontend": True, "uiux": True}, "department_workflow": "parallel"}
    )
    design = {
        f"ux-{name}": lines
        for name, lines in complete().items()
        if not name.startswith((".", "01"))
    }
    header = {"p": "01", "n": "04", "t": "Design", "w": 1, "d": []}
    own = {"ux-01-04.plan.jsonl": [header, {"id": "T1", "f": ["src/auth.ts"], "spec": "x", "ts": "y"}],
           "ux-01-04.summary.jsonl": [{"s": "complete", "tc": 1, "tt": 1, "ch": ["aaaaaaa"]}],
           "ux-test-plan.jsonl": [{"id": "T1", "plan": "01-04", "red": True}],
           "ux-code-review.jsonl": [{"plan": "01-04", "r": "approve"}],
           "ux-test-results.jsonl": [{"plan": "01-04", "phase": "green", "fl": 0}]}  # fmt: skip
    start = {name: complete()[name] for name in ("critique.jsonl", "research.jsonl")}
    phase = Phase(facts({**start, **design, **own}, config=three))
    asked = phase.progress.next
    assert asked and (asked.agent, asked.inputs) == ("ux-lead", ("design-handoff.jsonl",))
    assert "gate ux-complete is closed" in asked.why


def test_a_turn_at_an_escalation_is_said_as_an_act() -> None:
    log = {"id": "ESC-01-01-T1", "dt": "2026-02-19T08:00:00Z", "agent": "dev", "reason": "red or blue",
           "sev": "blocking", "st": "open"}  # fmt: skip
    asked = turn({"escalation.jsonl": [log]})
    assert asked.sentence == "senior answers ESC-01-01-T1: red or blue"
    assert asked.command.startswith("yolo-fs escalate resolve ESC-01-01-T1 --by senior")


def test_who_passes_a_decision_on_is_given_its_own_words() -> None:
    common = {"id": "ESC-01-01-T1", "reason": "red or blue", "sev": "blocking"}
    pairs = (("dev", "senior"), ("senior", "lead"))
    log = [{**common, "dt": f"2026-02-19T08:0{at}:00Z", "agent": agent, "tgt": target,
            "st": "escalated" if at else "open"} for at, (agent, target) in enumerate(pairs)]  # fmt: skip
    decision = "Red, as the logo's"
    log.append({**log[-1], "dt": "2026-02-19T08:05:00Z", "agent": "lead", "tgt": "senior",
                "dec": decision})  # fmt: skip
    asked = turn({"escalation.jsonl": log})
    assert shlex.split(asked.command)[-2:] == ["--decision", decision]


TURNED_DOWN = {"verdict": "patch", "target_dept": "backend", "findings": []}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"verification.jsonl": []}, "qa verifies the work"),
        ({"qa-code.jsonl": []}, "qa-code verifies the code"),
        ({"security-audit.jsonl": []}, "security audits the work"),
        ({"../../state.json": []}, "lead signs the phase off"),
        (DELIVERED, "po gives its verdict on the result"),
        (
            DELIVERED | {"po-qa-verdict.jsonl": [TURNED_DOWN]},
            "senior specifies the fix of the patch",
        ),
        (
            DELIVERED | {"po-qa-verdict.jsonl": [TURNED_DOWN | {"verdict": "major"}]},
            "questionary asks about what is re-scoped",
        ),
        (
            {"analysis.json": [{"confidence": 0.9}], "discovery.json": [{"confidence": 0.1}]},
            "questionary asks in round 2",
        ),
        (
            {"analysis.json": [{"confidence": 0.2}], "critique.jsonl": []},
            "user clarifies the intent",
        ),
        (
            DELIVERED | {"integration-gate-result.jsonl": [{"r": "FAIL"}]},
            "lead assigns what the integration gate has failed",
        ),
    ],
)
def test_a_turn_says_what_is_done_and_not_the_name_of_the_step(
    changed: dict[str, list[dict[str, Any]]], sentence: str
) -> None:
    content = complete() | changed
    found = Phase(
        facts({name: lines for name, lines in content.items() if lines}, config=PO)
        if "analysis.json" in changed
        else facts({name: lines for name, lines in content.items() if lines})
    ).progress.next
    assert found is not None and found.sentence == sentence, found


@pytest.mark.parametrize("kind", ["verification", "qa-code", "security-audit"])
def test_what_a_verdict_is_told_to_change_so_that_it_counts_anew_is_valid(kind: str) -> None:
    name, (said,) = f"{kind}.jsonl", re.findall(r'"dt":"([^"]+)"', _NEW_BYTES)
    place = classify(f"{FOLDER}/{name}")
    assert place is not None
    example = next((FIXTURES / f"examples/artifacts/{kind}/ok").glob("*.jsonl")).read_text()
    lines = [json.loads(line) for line in example.splitlines()]
    assert len(lines[0]["dt"]) == len("2026-02-19")
    lines[0]["dt"] = said
    records = [Record(number, line) for number, line in enumerate(lines, 1)]
    assert examine(place, records, Surroundings(), Strictness()).is_sound
