"""Totals of plans and departments: tasks, commits, files, deviations, tests, verdicts; and whether
a task that is reported complete really is. Pure.

Only what the fold has proved is counted: a task is complete when a commit names it. See
docs/dev/sources.md#document-000.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from yolo_fs.agents.health import AgentSign
from yolo_fs.artifacts.naming import purpose_of
from yolo_fs.core.ids import TaskRef
from yolo_fs.core.reasons import Finding, Reason, safe, shortened
from yolo_fs.evidence.facts import PhaseFacts, SourceCommit, plans_of, texts
from yolo_fs.evidence.plan_status import PlanStanding, PlanStatus, shares_number
from yolo_fs.phase.gates import verdict_of
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.progress import DepartmentStatus, StepStanding
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, Dept
from yolo_fs.protocol.roster import department_said


class PlanTotals(NamedTuple):
    """The totals of one plan."""

    plan: PlanStatus
    commits: tuple[str, ...]
    """Commits of its tasks, and those that its summary names and the branch has."""
    files: tuple[str, ...]
    """Files that they changed."""
    deviations: tuple[str, ...]
    """From its summary and the messages of its Devs."""
    tests: Mapping[str, int]
    """`ps` and `fl` of its last recorded run; empty without one."""
    coverage: str
    """`tst` of its summary; empty while there is none."""

    @property
    def tasks_completed(self) -> int:
        """Tasks that a commit names."""
        return sum(bool(task.commit) for task in self.plan.tasks)

    @property
    def status(self) -> str:
        """How far the plan came, in the words of a summary."""
        if self.plan.standing is PlanStanding.FAILED:
            return "failed"
        return "complete" if self.plan.is_done else "partial"

    def as_message(self) -> dict[str, Any]:
        """Return the `summary_aggregation` that a Lead writes the plan's summary from."""
        return {
            "type": "summary_aggregation",
            "plan_id": str(self.plan.id),
            "tasks_completed": self.tasks_completed,
            "tasks_total": len(self.plan.tasks),
            "commit_hashes": list(self.commits),
            "files_modified": list(self.files),
            "deviations": list(self.deviations),
            "status": self.status,
        }


class DepartmentTotals(NamedTuple):
    """The totals of one department in a phase."""

    phase: str
    """Number of the phase."""
    progress: DepartmentStatus
    plans: tuple[PlanTotals, ...]
    quality: str
    """`r` of its verification, or SKIPPED; empty while there is none."""
    security: str
    """`r` of its audit, or SKIPPED; empty while there is none."""
    blockers: tuple[str, ...]
    """What only others can resolve, as its status file says."""

    @property
    def coverage(self) -> str:
        """How its tests were written: the weakest value among its plans."""
        coverages = [plan_totals.coverage for plan_totals in self.plans]
        return next((word for word in _WEAKEST_FIRST if word in coverages), _WEAKEST_FIRST[0])

    @property
    def result(self) -> str:
        """PASS when all is done and nothing failed, FAIL when something failed, else PARTIAL."""
        failed = "FAIL" in (self.quality, self.security) or any(
            plan_totals.status == "failed" for plan_totals in self.plans
        )
        passed = self.progress.is_complete and all(
            plan_totals.plan.is_done for plan_totals in self.plans
        )
        if failed:
            return "FAIL"
        return "PASS" if passed and self.quality != "PARTIAL" else "PARTIAL"

    @property
    def lacks(self) -> tuple[str, ...]:
        """What still prevents the result from being reported."""
        missing = {"no verification yet": self.quality, "no security audit yet": self.security}
        return tuple(words for words, verdict in missing.items() if not verdict)

    def as_progress(self) -> dict[str, Any]:
        """Return the `phase_progress` that the Lead sends at each step."""
        current = self.progress.current or self.progress.steps[-1]
        return {
            "type": "phase_progress",
            "department": self.progress.department.value,
            "phase": self.phase,
            "step": current.step.key,
            "plans_complete": self.progress.plans_complete,
            "plans_total": len(self.progress.plans),
            "percent_complete": self.progress.percent,
            "blockers": list(self.blockers),
            "eta": "",
        }

    def as_result(self) -> dict[str, Any] | None:
        """Return the `department_result` for the Owner; None while anything in `lacks` is open."""
        if self.lacks:
            return None
        return {
            "type": "department_result",
            "department": self.progress.department.value,
            "phase": self.phase,
            "result": self.result,
            "plans_completed": self.progress.plans_complete,
            "plans_total": len(self.progress.plans),
            "qa_result": self.quality,
            "security_result": self.security,
            "tdd_coverage": self.coverage,
        }


_WEAKEST_FIRST = ("no_tests", "green_only", "red_green")


def tally(
    phase: Phase, done: Mapping[str, SourceCommit], seen: Iterable[AgentSign] = ()
) -> tuple[DepartmentTotals, ...]:
    """Return the totals of each department.

    `done`: the commits of the phase's tasks. `seen`: the agent journal, for what Devs reported
    besides.
    """
    signs = list(seen)
    return tuple(
        DepartmentTotals(
            phase.id.number,
            status,
            tuple(_plan(phase.facts, plan, done, signs) for plan in status.plans),
            _verdict_of_step(phase, status, "qa", "verification"),
            _verdict_of_step(phase, status, "security", "security-audit"),
            phase.held_up(status.department),
        )
        for status in phase.progress.departments
    )


def _verdict_of_step(phase: Phase, status: DepartmentStatus, step: str, kind: str) -> str:
    is_skipped = any(
        each.step.key == step and each.standing is StepStanding.SKIPPED for each in status.steps
    )
    return verdict_of(phase, kind, status) or ("SKIPPED" if is_skipped else "")


def _plan(
    facts: PhaseFacts, plan: PlanStatus, done: Mapping[str, SourceCommit], seen: Iterable[AgentSign]
) -> PlanTotals:
    summary = _summary(facts, plan)
    of_tasks = [done[task.commit] for task in plan.tasks if task.commit in done]
    commits = {commit.oid: commit for commit in (*of_tasks, *_named(facts, summary))}
    messages = [
        sign.message
        for sign in seen
        if sign.event == "task_complete"
        and sign.message.get("plan_id") == str(plan.id)
        and _is_of_department(facts, plan, sign.name)
    ]
    return PlanTotals(
        plan=plan,
        commits=tuple(commits),
        files=tuple(sorted({path for commit in commits.values() for path in commit.files})),
        deviations=tuple(dict.fromkeys(
            [*texts(summary.get("dv")),
             *(deviation for message in messages for deviation in texts(message.get("deviations")))]
        )),
        tests=_tests(facts, plan),
        coverage=str(summary.get("tst") or ""),
    )  # fmt: skip


def _is_of_department(facts: PhaseFacts, plan: PlanStatus, agent: str) -> bool:
    """Return whether an agent means this plan by its number, which another department may have."""
    named = department_said(agent) or DEFAULT_DEPARTMENT
    return named == plan.department or not shares_number(plans_of(facts), plan)


def _named(facts: PhaseFacts, summary: Mapping[str, Any]) -> Iterator[SourceCommit]:
    """Yield the commits that a summary names and the branch has."""
    yield from (facts.commits[name] for name in texts(summary.get("ch")) if name in facts.commits)


def _summary(facts: PhaseFacts, plan: PlanStatus) -> Mapping[str, Any]:
    committed = (
        file
        for file in facts.of_kind("summary", Dept(plan.department))
        if file.place.plan == plan.id
    )
    return next((file.lines[0] for file in committed if file.lines), {})


def _tests(facts: PhaseFacts, plan: PlanStatus) -> dict[str, int]:
    results = facts.lines_of("test-results", plan.department)
    runs = [line for line in results if line.get("plan") == str(plan.id)]
    last = runs[-1] if runs else {}
    return {key: last[key] for key in ("ps", "fl") if isinstance(last.get(key), int)}


def task_of(message: Mapping[str, Any]) -> TaskRef | None:
    """Return the task that a message of a Dev is about; None where it is about none."""
    return TaskRef.parse(f"{message.get('plan_id')}/{message.get('task_id')}") or TaskRef.parse(
        str(message.get("task"))
    )


def completion_faults(
    completion: Mapping[str, Any],
    commit: SourceCommit | None,
    plans: Iterable[PlanStatus],
    path: str,
) -> Iterator[Finding]:
    """Yield where a valid `task_complete` contradicts the branch.

    `commit`: what its `commit` names on the branch. `plans`: of every phase. `path`: the file with
    the message.
    """
    task, name = task_of(completion), safe(str(completion.get("commit")))
    tasks = (planned_task for plan in plans for planned_task in plan.tasks)
    ours = [planned_task for planned_task in tasks if planned_task.ref == task]
    if not ours:
        yield Finding(
            Reason.UNKNOWN_REFERENCE, path, 1, "/task_id", f"no committed plan has task {task}"
        )
    if commit is None:
        hint = "Commit the task first; 'yolo-fs commit' does it in the prescribed form."
        yield Finding(
            Reason.UNKNOWN_COMMIT,
            path,
            1,
            "/commit",
            f"commit {name} is not on this branch",
            hint=hint,
        )
        return
    purpose = purpose_of(commit.subject)
    if ours and commit.oid != ours[0].commit and (purpose is None or purpose.task != task):
        message = f"commit {name} does not name {task}: {safe(commit.subject, 80)}"
        yield Finding(
            Reason.SUBJECT_MISMATCH,
            path,
            1,
            "/commit",
            message,
            f"feat({task and task.plan}): T… …",
        )
    files = frozenset(texts(completion.get("files_modified")))
    for what, odd in (
        ("changed but not reported", commit.files - files),
        ("reported but not changed", files - commit.files),
    ):
        if odd:
            paths = shortened(map(safe, sorted(odd)), 5, shown_by=f"'git show --name-only {name}'")
            message = f"{what} by commit {name}: {paths}"
            yield Finding(Reason.TOTALS_DISAGREE, path, 1, "/files_modified", message)
