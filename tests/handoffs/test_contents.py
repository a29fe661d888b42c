"""What handoffs say, held against what is committed: each untruth is named with its place, and the truth is left alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.phases import FOLDER, Content, complete, facts
from tests.support.settings import config_from
from yolo_fs.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Finding, Level, Reason
from yolo_fs.evidence.facts import CommittedArtifact, PhaseFacts
from yolo_fs.handoffs.contents import faults_of_handoffs, handoff_into

CONFIG = config_from(
    {
        "departments": {"backend": True, "frontend": True, "uiux": True},
        "department_workflow": "parallel",
    }
)
ESCALATIONS = [
    {"id": "ESC-01-01-T1", "dt": "2026-02-19T07:00:00Z", "st": "open"},
    {"id": "ESC-01-01-T1", "dt": "2026-02-19T07:10:00Z", "st": "resolved"},
    {"id": "ESC-01-02-T1", "dt": "2026-02-19T07:20:00Z", "st": "escalated"},
]
PHASE_HANDOFF = {
    "type": "phase_handoff", "from_phase": "01", "to_phase": "02", "dt": "2026-02-19T08:00:00Z", "decisions": [],
    "open_items": [], "artifacts": ["architecture.toon", "01-01.summary.jsonl", "state.json"],
    "research_refs": ["research-archive.jsonl entries 1-2", "the RFC on JWT"], "escalations_resolved": 1,
    "escalations_pending": 1,
}  # fmt: skip
DEPT_HANDOFF = {
    "type": "dept_handoff", "from_dept": "uiux", "to_dept": "frontend", "dt": "2026-02-19T09:00:00Z",
    "artifacts": ["component-specs.jsonl"], "contracts": [{"name": "Button", "spec": "component-specs.jsonl#btn-01"},
    {"name": "Login", "spec": "api-contracts.jsonl#POST /login"}, {"name": "All", "spec": "component-specs.jsonl"}],
    "blockers": [], "notes": "",
}  # fmt: skip
DESIGN_HANDOFF = {
    "type": "design_handoff", "phase": "01", "department": "uiux",
    "artifacts": {"component_specs": "phases/01-auth/component-specs.jsonl"}, "ready_components": ["Button", "btn-01"],
    "deferred": ["Reset", "Never specified"], "acceptance_criteria": [], "status": "complete",
}  # fmt: skip


def content() -> Content:
    """Return a phase whose handoffs are all true."""
    return complete() | {
        "escalation.jsonl": list(ESCALATIONS),
        "../../research-archive.jsonl": [{"q": "a"}, {"q": "b"}],
        "component-specs.jsonl": [
            {"id": "btn-01", "name": "Button", "status": "ready"},
            {"name": "Reset", "status": "deferred"},
            {"id": "drafted", "name": "Draft", "status": "draft"},
        ],
        "api-contracts.jsonl": [
            {"endpoints": [{"method": "POST", "path": "/login"}], "status": "agreed"},
            {"endpoint": "GET /me", "status": "implemented"},
        ],
        "phase-handoff.jsonl": [dict(PHASE_HANDOFF)],
        "dept-handoff.jsonl": [dict(DEPT_HANDOFF)],
        "design-handoff.jsonl": [dict(DESIGN_HANDOFF), {"component": "Button", "status": "ready"}],
    }


def found(content_: Content, **more: Any) -> tuple[Finding, ...]:
    return faults_of_handoffs(facts(content_, config=CONFIG, **more))


def said(content_: Content, **more: Any) -> list[tuple[Reason, str, int, str]]:
    return [
        (one.reason, one.path.removeprefix(f"{FOLDER}/"), one.line, one.at)
        for one in found(content_, **more)
    ]


def with_line(name: str, **values: Any) -> Content:
    changed = content()
    changed[name][0] = changed[name][0] | values
    return changed


def test_what_is_true_is_left_alone() -> None:
    assert found(content()) == ()


UNKNOWN, CONFLICT, TOTALS = Reason.UNKNOWN_REFERENCE, Reason.STATE_CONFLICT, Reason.TOTALS_DISAGREE


@pytest.mark.proves("000:685")
@pytest.mark.parametrize(
    ("name", "values", "reason", "at"),
    [
        ("phase-handoff.jsonl", {"artifacts": ["architecture.toon", "gaps.jsonl"]}, UNKNOWN, "/artifacts/1"),
        ("phase-handoff.jsonl", {"artifacts": ["../02-x/architecture.toon"]}, UNKNOWN, "/artifacts/0"),
        ("phase-handoff.jsonl", {"artifacts": ["src/ghost.ts"]}, UNKNOWN, "/artifacts/0"),
        ("phase-handoff.jsonl", {"research_refs": ["research-archive.jsonl entries 1-3"]}, UNKNOWN, "/research_refs/0"),
        ("phase-handoff.jsonl", {"research_refs": ["gone.jsonl entry 1"]}, UNKNOWN, "/research_refs/0"),
        ("phase-handoff.jsonl", {"escalations_resolved": 2}, TOTALS, "/escalations_resolved"),
        ("phase-handoff.jsonl", {"escalations_pending": 0}, TOTALS, "/escalations_pending"),
        ("dept-handoff.jsonl", {"artifacts": ["user-flows.jsonl"]}, UNKNOWN, "/artifacts/0"),
        ("dept-handoff.jsonl", {"contracts": [{"name": "B", "spec": "component-specs.jsonl#btn-02"}]}, UNKNOWN,
         "/contracts/0/spec"),
        ("dept-handoff.jsonl", {"contracts": [{"name": "B", "spec": "design-tokens.jsonl#x"}]}, UNKNOWN,
         "/contracts/0/spec"),
        ("dept-handoff.jsonl", {"contracts": [{"name": "B", "spec": "component-specs.jsonl#drafted"}]}, CONFLICT,
         "/contracts/0/spec"),
        ("design-handoff.jsonl", {"artifacts": {"user_flows": "phases/01-auth/user-flows.jsonl"}}, UNKNOWN,
         "/artifacts/user_flows"),
        ("design-handoff.jsonl", {"ready_components": ["Button", "Ghost"]}, UNKNOWN, "/ready_components/1"),
        ("design-handoff.jsonl", {"ready_components": ["Draft"]}, CONFLICT, "/ready_components/0"),
        ("design-handoff.jsonl", {"deferred": ["Button"]}, CONFLICT, "/deferred/0"),
    ],
)  # fmt: skip
def test_an_untruth_is_named_with_its_place(
    name: str, values: dict[str, Any], reason: Reason, at: str
) -> None:
    assert said(with_line(name, **values)) == [(reason, name, 1, at)]


def test_a_later_line_is_named_by_its_number() -> None:
    changed = content()
    changed["dept-handoff.jsonl"].append(DEPT_HANDOFF | {"artifacts": ["user-flows.jsonl"]})
    changed["design-handoff.jsonl"].append({"component": "Ghost", "status": "ready"})
    assert said(changed) == [
        (UNKNOWN, "dept-handoff.jsonl", 2, "/artifacts/0"),
        (UNKNOWN, "design-handoff.jsonl", 3, "/component"),
    ]


def test_escalations_after_the_handoff_do_not_make_its_counts_untrue() -> None:
    changed = content()
    changed["escalation.jsonl"].append(
        {"id": "ESC-01-02-T1", "dt": "2026-02-19T10:00:00+01:00", "st": "resolved"}
    )
    assert said(changed) == []
    changed["escalation.jsonl"][-1]["dt"] = "2026-02-19T08:00:00+01:00"
    assert [at for *_, at in said(changed)] == ["/escalations_resolved", "/escalations_pending"]


def test_a_phase_is_not_handed_over_before_its_plans_are_done() -> None:
    changed = content()
    changed["01-02.summary.jsonl"][0]["s"] = "partial"
    (finding,) = found(changed)
    assert (finding.reason, finding.message) == (
        CONFLICT,
        "handed over while plan 01-02 is partial",
    )


def test_a_contract_is_not_implemented_before_any_plan_is_done() -> None:
    changed = content()
    del changed["phase-handoff.jsonl"]
    for name in ("01-01.summary.jsonl", "01-02.summary.jsonl"):
        changed[name][0]["s"] = "failed"
    assert said(changed) == [(CONFLICT, "api-contracts.jsonl", 2, "/status")]


def test_a_department_that_takes_no_part_is_a_warning() -> None:
    (finding,) = faults_of_handoffs(
        facts({"dept-handoff.jsonl": [DEPT_HANDOFF | {"contracts": [], "artifacts": []}]},
              config=config_from({"departments": {"uiux": True}, "department_workflow": "parallel"}))
    )  # fmt: skip
    assert (finding.at, finding.level) == ("/to_dept", Level.WARNING)


@pytest.mark.parametrize("folder", ["phases/01-former", f"{PLANNING_ROOT}/phases/01-former"])
def test_a_handoff_may_name_a_file_of_its_phase_by_the_folder_that_the_phase_had(
    folder: str,
) -> None:
    assert (
        said(with_line("dept-handoff.jsonl", artifacts=[f"{folder}/component-specs.jsonl"])) == []
    )
    other = folder.replace("01-", "02-")
    assert said(with_line("dept-handoff.jsonl", artifacts=[f"{other}/component-specs.jsonl"])) != []


def test_a_source_file_that_came_with_a_commit_is_there() -> None:
    assert said(with_line("phase-handoff.jsonl", artifacts=["src/auth.ts"])) == []


def test_an_artifact_that_does_not_pass_is_not_handed_over() -> None:
    changed = facts(content(), config=CONFIG)
    broken = spoil(changed, "component-specs.jsonl")
    said_ = {
        (one.reason, one.at) for one in faults_of_handoffs(broken) if "does not pass" in one.message
    }
    assert said_ == {(CONFLICT, "/artifacts/0"), (CONFLICT, "/contracts/0/spec"), (CONFLICT, "/contracts/2/spec"),
                     (CONFLICT, "/artifacts/component_specs")}  # fmt: skip


def test_a_handoff_that_does_not_pass_is_left_to_the_validator() -> None:
    changed = facts(with_line("phase-handoff.jsonl", artifacts=["gaps.jsonl"]), config=CONFIG)
    assert faults_of_handoffs(spoil(changed, "phase-handoff.jsonl")) == ()


def spoil(before: PhaseFacts, name: str) -> PhaseFacts:
    """Return the facts with one artifact that is committed and invalid, and whose lines may be anything."""
    anything = ({"id": ["x"], "status": {}, "endpoints": 7, "artifacts": 3},)
    committed = tuple(
        CommittedArtifact(one.place, anything, valid=False) if one.place.name == name else one
        for one in before.committed
    )
    return PhaseFacts(before.phase, committed, before.options, before.commits)


# --- into the next phase ---


def leading(path: str, to_phase: str, **more: Any) -> CommittedArtifact:
    place = classify(f".yolo-planning/phases/{path}/phase-handoff.jsonl")
    assert place is not None
    return CommittedArtifact(
        place, (PHASE_HANDOFF | {"to_phase": to_phase},), **({"valid": True} | more)
    )


@pytest.mark.parametrize(
    ("committed", "answer"),
    [
        ([], ""),
        ([leading("01-auth", "02")], "01-auth"),
        ([leading("01-auth", "03")], ""),
        ([leading("01-auth", "02", valid=False)], ""),
        ([leading("02-login", "02")], ""),
        ([leading("00-setup", "02"), leading("01-auth", "02")], "01-auth"),
    ],
)
def test_the_handoff_into_a_phase_is_the_one_that_names_it(
    committed: list[CommittedArtifact], answer: str
) -> None:
    expected = f".yolo-planning/phases/{answer}/phase-handoff.jsonl" if answer else ""
    assert handoff_into(PhaseId("02", "login"), committed) == expected


@pytest.mark.parametrize("change", [lambda lines: lines.clear(), lambda lines: lines.append({})])
def test_odd_numbers_of_lines_raise_nothing(
    change: Callable[[list[dict[str, Any]]], object],
) -> None:
    for name in (
        "phase-handoff.jsonl",
        "dept-handoff.jsonl",
        "design-handoff.jsonl",
        "api-contracts.jsonl",
    ):
        changed = content()
        change(changed[name])
        found(changed)
