"""`yolo-fs task`: who works on which task, who has which files, and whose turn comes next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.agents.alerts import left_claims
from yolo_fs.agents.recording import claim_task, note_message
from yolo_fs.agents.snapshot import tally_of
from yolo_fs.agents.totals import DepartmentTotals, PlanTotals, completion_faults
from yolo_fs.cli.message import hear_message
from yolo_fs.cli.reply import AS_ENV, Invocation, Reply, verb
from yolo_fs.core.ids import PlanId, TaskRef
from yolo_fs.core.reasons import Exit, Reason, YoloError, errors, safe
from yolo_fs.evidence.facts import PhaseFacts, plan_progress
from yolo_fs.git.repository import Repository
from yolo_fs.history.team import Team
from yolo_fs.tasks.service import Claims
from yolo_fs.workspace import Settings, find_phase, load

if TYPE_CHECKING:
    from rich.console import Console


@click.group("task", short_help="tasks: claimed files, the next task, the totals of a plan")
def task() -> None:
    """Claim tasks, so that no two Devs change one file at once; complete them, and see them."""


@verb("claim", example="yolo-fs task claim 01-02/T3 --as dev-1", parent=task)
@click.argument("wanted", metavar="TASK")
@click.option("--as", "agent", required=True, envvar=AS_ENV, help="Agent instance, such as dev-1.")
@click.option(
    "--file", "files", multiple=True, help="File that the task changes; default: those of its plan."
)
def claim(asked: Invocation, *, wanted: str, agent: str, files: tuple[str, ...]) -> Reply:
    """Claim a task and its files.

    Exit 1 with the holder and the file while another agent has one of them.

    Ask again to learn that the turn has come: claims are met in the order in which they were made.
    """
    ref = _task(wanted)
    with Repository(asked.start) as repository:
        settings = load(repository.root)
        found = claim_task(repository, settings, agent, ref, files)
        left = left_claims(repository, settings, [found.behind] if found.behind else [])
    code = Exit.DONE if found.is_granted else Exit.FINDINGS
    return Reply(found, left, code, lambda console: console.print(safe(str(found), 500)))


@verb("claims", example="yolo-fs task claims", parent=task)
def claims_(asked: Invocation) -> Reply:
    """List the open claims in the order in which they were made."""
    with _claims(asked) as (repository, claims):
        found = claims.standings()
        left = left_claims(repository, load(repository.root), [one.claim for one in found])
    return Reply(found, left, show=lambda console: _show_lines(console, found))


@verb("release", example="yolo-fs task release --as dev-1", parent=task)
@click.argument("wanted", metavar="[TASK]", required=False)
@click.option(
    "--as", "agent", required=True, envvar=AS_ENV, help="Agent instance whose claim it is."
)
def release(asked: Invocation, *, wanted: str | None, agent: str) -> Reply:
    """Give a task back, or without TASK all that an agent has claimed.

    A committed task is released automatically.
    """
    with _claims(asked) as (_, claims):
        found = claims.release(agent, _task(wanted) if wanted else None)
    return Reply(found, show=lambda console: _show_lines(console, found))


@contextmanager
def _claims(asked: Invocation) -> Iterator[tuple[Repository, Claims]]:
    with Repository(asked.start) as repository:
        team = Team(repository, load(repository.root))
        yield repository, Claims(repository, team.tasks_done(repository.head().tip))


def _task(spelled: str) -> TaskRef:
    found = TaskRef.parse(spelled)
    if found is None:
        message = f"{safe(spelled)!r} is not a task id"
        raise YoloError(
            Reason.BAD_NAME,
            message,
            hint="Spell it NN-MM/Tk, such as 01-02/T3.",
            exit_code=Exit.USAGE,
        )
    return found


def _show_lines(console: Console, found: Collection[object]) -> None:
    if not found:
        console.print("no task is claimed")
    for one in found:
        console.print(safe(str(one), 500))


@verb("complete", example="yolo-fs task complete - --as dev-1 < task_complete.json", parent=task)
@click.argument("file")
@click.option("--as", "agent", required=True, envvar=AS_ENV, help="Agent instance, such as dev-1.")
def complete(asked: Invocation, *, file: str, agent: str) -> Reply:
    """Record a finished task (a task_complete message) after checking its commit, and print the
    totals of its plan.

    Exit 1 when its commit is not on the branch, does not name the task, or changed other files.
    A committed task is no longer claimed.
    """
    with Repository(asked.start) as repository:
        settings = load(repository.root)
        heard = hear_message(asked.start, file, settings)
        if heard.type != "task_complete":
            message = f"{heard.type or 'plain text'} is not a task_complete"
            raise YoloError(
                Reason.UNKNOWN_TYPE,
                message,
                hint="'agent note' takes others.",
                exit_code=Exit.USAGE,
            )
        team = Team(repository, settings)
        facts = team.facts(repository.head().tip)
        plans = [plan for one in facts for plan in plan_progress(one)]
        commit = team.history_index.commit(str(heard.value["commit"]))
        findings = (*heard.findings, *completion_faults(heard.value, commit, plans, file))
        if errors(findings):
            return Reply({"noted": False}, findings, Exit.FINDINGS)
        noted = note_message(repository, settings, agent, heard.value)
        (found,) = [
            one
            for one in _plans_of(repository, settings, team, facts)
            if one.plan.id == PlanId.parse(str(heard.value.get("plan_id")))
        ]
    data = {"noted": True, "id": noted, "plan": found.as_message()}
    return Reply(data, findings, show=lambda console: _show_plan(console, found))


@verb("summary", example="yolo-fs task summary 01-02", parent=task)
@click.argument("plan", required=False)
@click.option("--phase", help="Number or directory name of the phase; all without it.")
def summary(asked: Invocation, *, plan: str | None, phase: str | None) -> Reply:
    """Sum up plans and departments: tasks, commits, files, deviations, tests; from what the fold
    has proved.

    With --json: the summary_aggregation of each plan, the phase_progress of each department, and
    its department_result once the department is complete.
    """
    with Repository(asked.start) as repository:
        settings = load(repository.root)
        team = Team(repository, settings)
        wanted = find_phase(repository.root, phase) if phase else None
        facts = [one for one in team.facts(repository.head().tip) if wanted in (None, one.phase)]
        found = [each for one in facts for each in tally_of(repository, settings, team, one)]
    if plan is not None:
        return _of_plan(plan, [one for each in found for one in each.plans])
    return Reply(
        [_department_as_json(one) for one in found],
        show=lambda console: _show_tally(console, found),
    )


def _of_plan(name: str, plans: Sequence[PlanTotals]) -> Reply:
    one = next((each for each in plans if str(each.plan.id) == name), None)
    if one is None:
        hint = f"There are {', '.join(str(each.plan.id) for each in plans) or 'none'}."
        raise YoloError(
            Reason.UNKNOWN_NAME, f"no plan {safe(name)!r}", hint=hint, exit_code=Exit.USAGE
        )
    return Reply(_plan_as_json(one), show=lambda console: _show_plan(console, one))


def _plans_of(
    repository: Repository, settings: Settings, team: Team, facts: Iterable[PhaseFacts]
) -> Iterator[PlanTotals]:
    for one in facts:
        for department in tally_of(repository, settings, team, one):
            yield from department.plans


def _plan_as_json(one: PlanTotals) -> dict[str, Any]:
    return {**one.as_message(), "tests": dict(one.tests), "tdd_coverage": one.coverage or None}


def _department_as_json(one: DepartmentTotals) -> dict[str, Any]:
    return {
        "phase_progress": one.as_progress(),
        "department_result": one.as_result(),
        "lacks": list(one.lacks),
        "plans": [_plan_as_json(plan) for plan in one.plans],
    }


def _show_tally(console: Console, found: Collection[DepartmentTotals]) -> None:
    if not found:
        console.print("no plan is committed yet")
    for one in found:
        progress = one.as_progress()
        done = f"{progress['plans_complete']} of {progress['plans_total']} plans"
        console.print(
            f"phase {one.phase} {progress['department']}: {done}, at {progress['step']}, "
            f"{one.result}"
        )
        for lack in one.lacks:
            console.print(f"  lacks: {lack}")
        for plan in one.plans:
            _show_plan(console, plan)


def _show_plan(console: Console, one: PlanTotals) -> None:
    tests = (
        f", tests {one.tests.get('ps', 0)} passed {one.tests.get('fl', 0)} failed"
        if one.tests
        else ""
    )
    done = (
        f"{one.tasks_completed} of {len(one.plan.tasks)} tasks, {len(one.commits)} "
        f"commits, {len(one.files)} files"
    )
    console.print(f"  plan {one.plan.id} {one.status}: {done}{tests}")
    for said in one.deviations:
        console.print(f"    deviation: {safe(said, 500)}")
