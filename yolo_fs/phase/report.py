"""A brief, and the team's current phase as its reader sees it. Pure.

It tells who continues, what can be done, and what waits for what. The sections of a brief are
ordered by weight and cut to a budget as wholes. What does not fit is left out and named. A brief
has no ages or clock times, so the same state gives the same bytes. See
docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from yolo_fs.core.ids import SHORT, TaskRef, spelled_below
from yolo_fs.core.reasons import hint_for_unknown, safe
from yolo_fs.core.timestamps import iso
from yolo_fs.escalations.log import EscalationProgress
from yolo_fs.evidence.facts import PhaseFacts
from yolo_fs.evidence.plan_status import PlanStanding, PlanStatus, TaskProgress
from yolo_fs.phase.acts import Act, act_for, describe_files
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.progress import DepartmentStatus, Next
from yolo_fs.phase.view import View
from yolo_fs.phase.waits import Wait, name_task
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, Dept
from yolo_fs.protocol.roster import AGENT_BY_NAME, role_of, without_number

BUDGET = 2000
"""Default budget of a brief, in tokens."""

_MOST = 20
"""Most lines of one section. A phase has up to 99 plans; a session needs the first of them."""
_BYTES_PER_TOKEN = 4
_STEP = 500
"""The recommended budget is a multiple of this."""


class ReportSection(NamedTuple):
    """One part of the brief, kept or left out as a whole."""

    key: str
    """Name for machines, and in the list of omitted sections."""
    title: str
    """Heading for people; empty for the first lines, which need none."""
    lines: tuple[str, ...]
    data: Any
    more: int = 0
    """Entries beyond the longest list that is shown."""
    is_vital: bool = False
    """Kept at any budget: without it nobody can continue."""


Brief = tuple[ReportSection, ...]
_Found = TypeVar("_Found")
Item = tuple[str, Mapping[str, Any]]
"""One entry of a list: its line, and the same as data."""


def tokens(text: str) -> int:
    """Return the estimated tokens of a text: one for every four bytes of UTF-8, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)


def cut(brief: Brief, budget: int, render: Callable[[Brief], str]) -> Brief:
    """Return the brief without the least important sections that exceed the budget when rendered.

    Vital sections stay, even where they do not fit.
    """
    size = tokens(render(brief))
    if size <= budget or not brief:
        return brief
    needed = -(-size // _STEP) * _STEP
    kept = tuple(section for section in brief if section.is_vital)
    for section in brief:
        trial = tuple(each for each in brief if each in kept or each is section)
        if tokens(render((*trial, _list_left_out(brief, trial, needed)))) <= budget:
            kept = trial
    return (*kept, _list_left_out(brief, kept, needed))


def _list_left_out(brief: Brief, kept: Sequence[ReportSection], needed: int) -> ReportSection:
    names = [section.key for section in brief if section not in kept]
    line = f"left out: {', '.join(names)} (yolo-fs resume --budget {needed} shows all)"
    return ReportSection("left_out", "", (line,), {"sections": names, "budget": needed})


def as_text(brief: Brief) -> str:
    """Return the brief for people and for a model's context."""
    return "".join(f"{line}\n" for section in brief for line in _lines(section))


def _lines(section: ReportSection) -> Iterator[str]:
    if section.title:
        yield f"## {section.title}"
    yield from section.lines
    if section.more:
        yield f"and {section.more} more (yolo-fs status -v)"


def as_data(brief: Brief) -> dict[str, Any]:
    """Return the brief for machines: one key for each section."""
    more = {section.key: section.more for section in brief if section.more}
    return {section.key: section.data for section in brief} | ({"more": more} if more else {})


def listed(key: str, title: str, items: Iterable[Item]) -> ReportSection | None:
    """Return the section of a list, or None when it is empty."""
    return listed_as(key, title, tuple(items), lambda item: item)


def listed_as(
    key: str, title: str, sources: Sequence[_Found], as_item: Callable[[_Found], Item]
) -> ReportSection | None:
    """Return the same, but convert only the entries that are shown."""
    items = [as_item(source) for source in sources[:_MOST]]
    lines = tuple(f"- {line}" for line, _ in items)
    data, more = [dict(data) for _, data in items], len(sources) - len(items)
    return ReportSection(key, title, lines, data, more) if sources else None


_FEW = 5


class Audience(NamedTuple):
    """The reader of a brief."""

    role: str = ""
    """A role such as `dev`, or an agent such as `fe-dev`; empty for the agent that leads the
    session."""
    department: Dept | None = None
    """The only department that is shown."""
    below: str = ""
    """Folder of the repository that it stands in; empty for the root."""


class PhaseReport(NamedTuple):
    """The team's current phase, as the asker sees it."""

    phase: Phase
    asker: Audience

    @property
    def departments(self) -> tuple[DepartmentStatus, ...]:
        """The departments that the asker is shown."""
        return tuple(
            status
            for status in self.phase.progress.departments
            if self.asker.department in (None, status.department)
        )

    @property
    def plans(self) -> tuple[PlanStatus, ...]:
        return tuple(plan for status in self.departments for plan in status.plans)

    def waits_at(self, department: Dept) -> Wait | None:
        """Return the gate that a department's wave waits behind; None once it is open."""
        waits = (each for each in self.phase.waits if each.waiter == department)
        return next((wait for wait in waits if wait.is_at_gate), None)

    def next(self) -> tuple[Next | None, DepartmentStatus | None]:
        """Return who acts next, and in which department; nobody behind a closed gate."""
        turn, departments = self.phase.progress.next, self.phase.progress.departments
        own = (
            status
            for status in self.departments
            if status.next and _is_of(status.next.agent, self.asker.role)
        )
        mine = next((status for status in own if not self.waits_at(status.department)), None)
        if mine:
            return mine.next, mine
        if self.asker.department and any(status.next for status in departments):
            chosen = next((status for status in self.departments if status.next), None)
            return (chosen.next, chosen) if chosen else (None, None)
        return turn, next(
            (status for status in departments if status.next and status.next == turn), None
        )

    @property
    def status(self) -> str:
        """Whether anybody can go on: `complete`, `running` or `waiting`."""
        if self.phase.progress.is_complete:
            return "complete"
        return "running" if self.phase.progress.next else "waiting"

    def sections(self) -> Iterator[ReportSection | None]:
        """Yield the sections about the phase."""
        yield _next(self)
        yield listed("stops", "What stops the team", _stops(self))
        yield listed("escalations", "Open escalations", _escalations(self))
        yield listed("team", "The team", _team(self))
        yield listed("in_progress", "Plans that can be worked on", _plans(self, _can_go_on))
        yield listed("blocked", "Plans and tasks that wait", _blocked(self))
        yield listed("gates", "Gates", _gates(self))
        yield listed("done", "Plans that are done", _plans(self, lambda plan: plan.is_done))


def _is_of(agent: str, role: str) -> bool:
    row = AGENT_BY_NAME.get(agent)
    plain = without_number(role)
    return bool(plain) and (plain == agent or (row is not None and plain == row.role))


def _next(report: PhaseReport) -> ReportSection:
    following, department = report.next()
    if following is None:
        nobody = (f"next: nobody; {_explain_nobody(report)}",)
        return ReportSection("next", "", nobody, None, is_vital=True)
    files = input_files(report.phase.facts, following, department)
    own = department.plans if department else report.plans
    tasks = (task for plan in own for task in plan.tasks)
    task = next((task for task in tasks if str(task.ref) == following.task), None)
    waits = _waits_of_task(report.phase, following, department)
    act = act_for(report.phase, following, department.department if department else None)
    data = {
        **{key: each for key, each in act.as_json().items() if key != "sentence"},
        "department": department.department.value if department else None,
        "action": safe(task.action) if task else "",
        "why": safe(following.why, 300),
        "files": files,
        "waits_for": [wait.on for wait in waits],
    }
    lines = tuple(_format_next_lines(report, act, task, waits, files))
    return ReportSection("next", "", lines, data, is_vital=True)


def _waits_of_task(
    phase: Phase, following: Next, department: DepartmentStatus | None
) -> list[Wait]:
    """Return what the task of a turn waits for."""
    task = TaskRef.parse(following.task)
    if task is None:
        return []
    owner = department.department if department else DEFAULT_DEPARTMENT
    name = name_task(phase.facts, task, owner)
    return [wait for wait in phase.waits if wait.waiter == name]


def _format_next_lines(
    report: PhaseReport,
    act: Act,
    task: TaskProgress | None,
    waits: Sequence[Wait],
    files: Sequence[str],
) -> Iterator[str]:
    following = act.turn

    def spelled(path: str) -> str:
        return safe(spelled_below(report.asker.below, path))

    yield f"next: {following.sentence}"
    if following.why:
        yield f"because: {safe(following.why, 300)}"
    if following.command:
        yield f"run: {following.command}"
    if task:
        yield f"task: {safe(task.action)} (plan {following.task[:5]})"
    # What this turn settles itself is no reason to wait with it.
    yield from (f"but first: {wait}" for wait in waits if wait.on not in following.act)
    yield f"inputs: {', '.join(map(safe, following.inputs))}"
    if files:
        yield f"read: {', '.join(map(spelled, files))}"
    if files_written := describe_files(act.as_json(), spelled):
        yield files_written
    if act.commit:
        yield f"commit: {act.commit}"
    role = report.asker.role
    if role and role_of(role) is None:
        hint = hint_for_unknown(role, AGENT_BY_NAME).partition(" Known names")[0]
        meant = f". {hint}" if hint.startswith("Did you mean") else ""
        yield f"you: {safe(role)} is not an agent of this company{meant}"
    elif role and not _is_of(following.agent, role):
        yield f"you: {safe(role)} has nothing to do now"


def _explain_nobody(report: PhaseReport) -> str:
    if report.phase.progress.is_complete:
        return "the phase is complete"
    if not report.departments:
        return f"department {report.asker.department} takes no part in this phase"
    if all(status.is_complete for status in report.departments):
        return "this part of the phase is done"
    return "everything left waits, see below"


def input_files(facts: PhaseFacts, turn: Next, department: DepartmentStatus | None) -> list[str]:
    """Return the committed files behind the printed inputs; for a task, only its own plan."""
    view = View(facts, department.department if department else None)
    words = [word.lower().replace(" ", "-") for word in turn.inputs]
    kinds = sorted({artifact.place.artifact.kind for artifact in facts.committed} - {"handoff"})
    meant = (kind for kind in kinds if any(kind in word for word in words))
    files = [artifact for kind in meant for artifact in view.of(kind)]
    plan = turn.task[:5]
    paths = [
        artifact.place.path
        for artifact in files
        if not (plan and artifact.place.plan and str(artifact.place.plan) != plan)
    ]
    handed = [word for word in turn.inputs if word == facts.handed_over and word]
    return [*paths[:_FEW], *handed]


def _stops(report: PhaseReport) -> Iterator[Item]:
    for status in report.departments:
        for blocker in status.blockers:
            if not blocker.startswith("plan "):
                yield (
                    f"{status.department}: {safe(blocker)}",
                    {"department": status.department.value, "why": blocker},
                )
    for alarm in report.phase.alarms:
        yield safe(str(alarm), 500), {"department": None, "why": str(alarm)}


def _team(report: PhaseReport) -> Iterator[Item]:
    if len(report.phase.progress.departments) < 2:
        return
    for status in report.departments:
        gate = report.waits_at(status.department)
        step = status.current.step.key if status.current else "done"
        plans = f"{status.plans_complete} of {len(status.plans)} plans"
        yield (
            f"{status.department}: {step}, {plans}, {_turn(status, gate)}",
            {
                "department": status.department.value,
                "step": step,
                "plans_done": status.plans_complete,
                "plans": len(status.plans),
                "next": {
                    "agent": status.next.agent,
                    "step": status.next.step,
                    "task": status.next.task,
                }
                if status.next
                else None,
                "waits_for": gate.on if gate else None,
            },
        )


def _turn(status: DepartmentStatus, gate: Wait | None) -> str:
    behind = f" behind {safe(gate.need)}" if gate else ""
    if status.next is None:
        return f"waits{behind}" if status.current else "complete"
    return (
        "next: "
        f"{status.next.agent}{f' {safe(status.next.task)}' if status.next.task else ''}{behind}"
    )


def _escalations(report: PhaseReport) -> Iterator[Item]:
    known = {str(escalation.id): escalation for escalation in report.phase.escalations}
    for wait in report.phase.waits:
        if escalation := known.get(wait.waiter):
            blocks = sorted(
                other_wait.waiter
                for other_wait in report.phase.waits
                if other_wait.on == wait.waiter
            )
            begun = iso(escalation.since.timestamp())
            yield (
                f"{wait.waiter}: {safe(wait.on)} has to act, since {begun}"
                f" ({safe(wait.where)}); blocks {safe(', '.join(blocks)) or 'nothing'}"
                f"{_question(escalation)}",
                {
                    "id": wait.waiter,
                    "holder": wait.on,
                    "since": begun,
                    "where": wait.where,
                    "severity": escalation.severity,
                    "owed": safe(escalation.owed, 300),
                    "question": safe(escalation.question, 300),
                    "options": [safe(option, 300) for option in escalation.options],
                    "blocks": blocks,
                },
            )


def _question(escalation: EscalationProgress) -> str:
    """Return how grave an escalation is, what is owed, and the question of whoever is blocked."""
    options = "; ".join(safe(option, 200) for option in escalation.options)
    parts = (
        ("severity", safe(escalation.severity)),
        ("next step", safe(escalation.owed, 300)),
        ("question", safe(escalation.question, 300)),
        ("options", options),
        ("recommended", safe(escalation.recommendation, 300)),
        ("decided", safe(escalation.decision, 300)),
    )
    return "".join(f"; {name}: {text}" for name, text in parts if text)


def _gates(report: PhaseReport) -> Iterator[Item]:
    for gate in report.phase.gates:
        lacks = [str(lack) for lack in gate.missing]
        more = f" and {len(lacks) - 2} more" if len(lacks) > 2 else ""
        why = f"closed: {safe('; '.join(lacks[:2]), 300)}{more}"
        yield (
            f"{gate.name}: {'open' if gate.is_open else why}",
            {"gate": gate.name, "open": gate.is_open, "lacks": lacks[:_FEW]},
        )


def _can_go_on(plan: PlanStatus) -> bool:
    return not plan.is_done and not (plan.blocked_by and plan.standing is PlanStanding.PENDING)


def _plans(report: PhaseReport, is_wanted: Callable[[PlanStatus], bool]) -> Iterator[Item]:
    for plan in report.plans:
        if is_wanted(plan):
            without = "done" if plan.is_done else "open"
            done = (f"T{task.ref.number} {task.commit[:SHORT] or without}" for task in plan.tasks)
            lacks = f"; lacks {safe('; '.join(plan.missing), 300)}" if plan.missing else ""
            head = f"{plan.id} {plan.department} {plan.standing}"
            yield f"{head}: {', '.join(done)}{lacks}", _plan_data(plan)


def _plan_data(plan: PlanStatus) -> dict[str, Any]:
    return {
        "plan": str(plan.id),
        "department": plan.department.value,
        "title": safe(plan.title),
        "standing": plan.standing.value,
        "commit": plan.commit[:SHORT],
        "tasks": [
            {"task": str(task.ref), "commit": task.commit[:SHORT] or None} for task in plan.tasks
        ],
        "lacks": list(plan.missing),
        "blocked_by": list(plan.blocked_by),
    }


def _blocked(report: PhaseReport) -> Iterator[Item]:
    for plan in report.plans:
        if not plan.is_done and plan.blocked_by:
            yield f"{plan.id} waits for {safe(', '.join(plan.blocked_by))}", _plan_data(plan)
    facts = report.phase.facts
    shown = {
        name_task(facts, task.ref, plan.department) for plan in report.plans for task in plan.tasks
    }
    for wait in report.phase.waits:
        if wait.waiter in shown:
            yield str(wait), {"task": wait.waiter, "blocked_by": [wait.on], "why": wait.why}
