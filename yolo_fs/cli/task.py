"""`yolo-fs task`: who works on which task, who holds which files, and which task is next."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.agents.alerts import left_claims
from yolo_fs.agents.recording import claim_task, note_message
from yolo_fs.agents.snapshot import tally_of
from yolo_fs.agents.totals import DepartmentTotals, PlanTotals, completion_faults
from yolo_fs.authority.actors import check_agent
from yolo_fs.cli.message import hear_message
from yolo_fs.cli.reply import Invocation, Reply, as_agent, phase_option, verb
from yolo_fs.core.ids import PlanId, TaskRef
from yolo_fs.core.reasons import Exit, Reason, YoloError, errors, hint_for_unknown, safe
from yolo_fs.evidence.plan_status import plan_progress
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT
from yolo_fs.protocol.roster import department_said
from yolo_fs.tasks.service import Claims
from yolo_fs.workspace.planning_tree import find_phase
from yolo_fs.workspace.settings import load

if TYPE_CHECKING:
    from rich.console import Console


@click.group("task")
def task() -> None:
    """Claim tasks, so that no two Devs change one file at once; complete them, and see them."""


@verb("claim", example="yolo-fs task claim 01-02/T3 --as dev-1", parent=task)
@click.argument("wanted", metavar="TASK")
@as_agent("Agent instance, such as dev-1.", required=True)
@click.option(
    "--file", "files", multiple=True, help="File that the task changes; default: those of its plan."
)
def claim(invocation: Invocation, *, wanted: str, agent: str, files: tuple[str, ...]) -> Reply:
    """Claim a task and its files.

    Exit 1 with the holder and the file while another agent has one of them.

    Run it again to see whether the task is free: claims are met in the order in which they were
    made.
    """
    check_agent(agent)
    ref = TaskRef.named(wanted)
    with Repository(invocation.start) as repository:
        settings = load(repository.root)
        status = claim_task(repository, settings, agent, ref, files)
        left = left_claims(repository, settings, [status.behind] if status.behind else [])
    code = Exit.DONE if status.is_granted else Exit.FINDINGS
    return Reply(status, left, code, lambda console: console.print(safe(str(status), 500)))


@verb("claims", example="yolo-fs task claims", parent=task)
def claims_(invocation: Invocation) -> Reply:
    """List the open claims in the order in which they were made."""
    with _claims(invocation) as (repository, claims):
        claim_statuses = claims.claim_statuses()
        left = left_claims(
            repository, load(repository.root), [status.claim for status in claim_statuses]
        )
    return Reply(claim_statuses, left, show=lambda console: _show_lines(console, claim_statuses))


@verb("release", example="yolo-fs task release --as dev-1", parent=task)
@click.argument("wanted", metavar="[TASK]", required=False)
@as_agent("Agent instance whose claim it is.", required=True)
def release(invocation: Invocation, *, wanted: str | None, agent: str) -> Reply:
    """Release a task, or without TASK all that an agent has claimed.

    A committed task is released automatically.
    """
    check_agent(agent)
    with _claims(invocation) as (_, claims):
        claim_statuses = claims.release(agent, TaskRef.named(wanted) if wanted else None)
    return Reply(claim_statuses, show=lambda console: _show_lines(console, claim_statuses))


@contextmanager
def _claims(invocation: Invocation) -> Iterator[tuple[Repository, Claims]]:
    with Repository(invocation.start) as repository:
        facts_reader = FactsReader(repository, load(repository.root))
        yield repository, Claims(repository, facts_reader.tasks_done(repository.head().tip))


def _show_lines(console: Console, entries: Collection[object]) -> None:
    if not entries:
        console.print("no task is claimed")
    for entry in entries:
        console.print(safe(str(entry), 500))


@verb("complete", example="yolo-fs task complete - --as dev-1 < task_complete.json", parent=task)
@click.argument("file")
@as_agent("Agent instance, such as dev-1.", required=True)
def complete(invocation: Invocation, *, file: str, agent: str) -> Reply:
    """Record a finished task (a task_complete message) after checking its commit, and print the
    totals of its plan.

    Exit 1 when its commit is not on the branch, does not name the task, or changed other files.
    A committed task is no longer claimed.
    """
    check_agent(agent)
    with Repository(invocation.start) as repository:
        settings = load(repository.root)
        heard = hear_message(invocation.start, file, settings)
        if heard.type != "task_complete":
            message = f"{heard.type or 'plain text'} is not a task_complete"
            raise YoloError(Reason.UNKNOWN_TYPE, message, hint="'agent note' records the others.")
        facts_reader = FactsReader(repository, settings)
        facts = facts_reader.facts(repository.head().tip)
        own = department_said(agent) or DEFAULT_DEPARTMENT
        plans = sorted(
            (plan for phase_facts in facts for plan in plan_progress(phase_facts)),
            key=lambda plan: plan.department is not own,
        )
        commit = facts_reader.history_index.commit(str(heard.value["commit"]))
        findings = (*heard.findings, *completion_faults(heard.value, commit, plans, file))
        if errors(findings):
            return Reply({"noted": False}, findings, Exit.FINDINGS)
        noted = note_message(repository, settings, agent, heard.value)
        totals, *_ = sorted(
            (
                plan_totals
                for phase_facts in facts
                for department in tally_of(facts_reader, phase_facts)
                for plan_totals in department.plans
                if plan_totals.plan.id == PlanId.parse(str(heard.value.get("plan_id")))
            ),
            key=lambda plan_totals: plan_totals.plan.department is not own,
        )
    data = {"noted": True, "id": noted, "plan": totals.as_message()}
    return Reply(data, findings, show=lambda console: _show_plan(console, totals))


@verb("summary", example="yolo-fs task summary 01-02", parent=task)
@click.argument("plan", required=False)
@phase_option("all")
def summary(invocation: Invocation, *, plan: str | None, phase: str) -> Reply:
    """Sum up plans and departments from committed evidence: tasks, commits, files, deviations,
    tests.

    With --json: the summary_aggregation of each plan, the phase_progress of each department, and
    its department_result once the department is complete. If two departments have the number PLAN,
    the result is a list of both.
    """
    with Repository(invocation.start) as repository:
        facts_reader = FactsReader(repository, load(repository.root))
        wanted = find_phase(repository.root, phase) if phase else None
        facts = [
            phase_facts
            for phase_facts in facts_reader.facts(repository.head().tip)
            if wanted in (None, phase_facts.phase)
        ]
        departments = [
            each for phase_facts in facts for each in tally_of(facts_reader, phase_facts)
        ]
    if plan is not None:
        return _report_plan(
            plan, [plan_totals for each in departments for plan_totals in each.plans]
        )
    return Reply(
        [_department_as_json(department) for department in departments],
        show=lambda console: _show_tally(console, departments),
    )


def _report_plan(name: str, plans: Sequence[PlanTotals]) -> Reply:
    named = [each for each in plans if str(each.plan.id) == name]
    if not named:
        hint = hint_for_unknown(name, (str(each.plan.id) for each in plans))
        raise YoloError(Reason.UNKNOWN_NAME, f"no plan {safe(name)!r}", hint=hint)

    def show(console: Console) -> None:
        for plan_totals in named:
            _show_plan(console, plan_totals)

    data = [_plan_as_json(plan_totals) for plan_totals in named]
    return Reply(data if len(data) > 1 else data[0], show=show)


def _plan_as_json(plan_totals: PlanTotals) -> dict[str, Any]:
    return {
        **plan_totals.as_message(),
        "department": plan_totals.plan.department.value,
        "tests": dict(plan_totals.tests),
        "tdd_coverage": plan_totals.coverage or None,
    }


def _department_as_json(department: DepartmentTotals) -> dict[str, Any]:
    return {
        "phase_progress": department.as_progress(),
        "department_result": department.as_result(),
        "lacks": list(department.lacks),
        "plans": [_plan_as_json(plan) for plan in department.plans],
    }


def _show_tally(console: Console, departments: Collection[DepartmentTotals]) -> None:
    if not departments:
        console.print("no plan is committed yet")
    for department in departments:
        progress = department.as_progress()
        done = f"{progress['plans_complete']} of {progress['plans_total']} plans"
        console.print(
            f"phase {department.phase} {progress['department']}: {done}, at {progress['step']}, "
            f"{department.result}"
        )
        for lack in department.lacks:
            console.print(f"  lacks: {lack}")
        for plan in department.plans:
            _show_plan(console, plan)


def _show_plan(console: Console, plan_totals: PlanTotals) -> None:
    tests = (
        f", tests {plan_totals.tests.get('ps', 0)} passed {plan_totals.tests.get('fl', 0)} failed"
        if plan_totals.tests
        else ""
    )
    done = (
        f"{plan_totals.tasks_completed} of {len(plan_totals.plan.tasks)} tasks, "
        f"{len(plan_totals.commits)} commits, {len(plan_totals.files)} files"
    )
    console.print(
        f"  plan {plan_totals.plan.id} {plan_totals.plan.department} {plan_totals.status}: "
        f"{done}{tests}"
    )
    for deviation in plan_totals.deviations:
        console.print(f"    deviation: {safe(deviation, 500)}")
