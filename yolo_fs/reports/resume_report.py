"""What a new session is told: where the team stands, who does what next, and what of the work tree
needs a hand. Pure.

See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from yolo_fs.artifacts.verdicts import Accepted, Held, Missing, Rejected, Verdict, Waiting
from yolo_fs.core.reasons import Reason, safe
from yolo_fs.handoffs.lifecycle import HandoffLifecycle, HandoffStage
from yolo_fs.phase.phase import Phases
from yolo_fs.phase.progress import PhaseStatus
from yolo_fs.phase.report import (
    SHORT,
    Asker,
    Brief,
    Item,
    PhaseReport,
    ReportSection,
    listed,
    listed_as,
)
from yolo_fs.states.execution import next_execution_state
from yolo_fs.states.project import claims, current, project_state
from yolo_fs.team.reconcile import TeamOverview, headline, holdings, obstructions, others


class LastHandoff(NamedTuple):
    """The handoff between roles that was written last, and what became of it."""

    path: str
    role: str
    """What the receiver is; empty when the handoff is not accepted."""
    wrong: tuple[str, ...] = ()
    """Why it is not."""
    writer: str = ""
    """Who wrote it, and has to mend it; empty when it does not say."""
    orders: tuple[tuple[str, str], ...] = ()
    """What its receiver reads, does and reaches: name and value."""


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that a brief is made of."""

    branch: str = ""
    """Empty when HEAD is detached."""
    commit: str = ""
    """Empty on a branch without commits."""
    obstacle: Reason | None = None
    """Why nothing may be committed now."""
    is_cut_off: bool = False
    """Whether the clone is shallow: older commits may have done what seems to be undone."""
    is_partial: bool = False
    """Whether the clone leaves contents or trees of former commits out."""
    trouble: tuple[str, ...] = ()
    """What could not be looked at, and why."""
    is_daemon_running: bool = True
    phases: Phases = ()
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    """Path → verdict of each candidate of the work tree."""
    drift: tuple[str, ...] = ()
    """What the work tree declares otherwise than history."""
    steps_said: Mapping[str, str] = field(default_factory=dict)
    """`NN step` → the last commit whose subject says that it records the step."""
    handoff: LastHandoff | None = None
    lives: tuple[HandoffLifecycle, ...] = ()
    """Handoffs between departments and phases, and how far each is."""
    contexts: tuple[str, ...] = ()
    """Compiled contexts that are true: what they are made of was compiled anew."""
    machines: TeamOverview | None = None
    """The other work trees and clones; None where none was joined."""


def resume_report(situation: Situation, asker: Asker = Asker()) -> Brief:
    """Return the whole brief, the weightiest section first."""
    report = PhaseReport(current(situation.phases), asker) if situation.phases else None
    found = {one.key: one for one in _sections(situation, report) if one}
    return tuple(found[key] for key in _WEIGHTS if key in found)


_WEIGHTS = (
    "now", "next", "stops", "rejected", "held", "escalations", "uncommitted", "machines",
    "handoffs", "team", "in_progress", "blocked", "gates", "drift", "contexts", "phases", "done",
)  # fmt: skip
"""Sections by their weight: what keeps somebody from going on comes first, what is over and done
last."""


def _sections(situation: Situation, report: PhaseReport | None) -> Iterator[ReportSection | None]:
    yield _now(situation, report)
    yield from report.sections() if report else _without_phase(situation)
    yield from _of_work_tree(situation)


def _now(situation: Situation, report: PhaseReport | None) -> ReportSection:
    where = {"branch": situation.branch, "commit": situation.commit[:SHORT]}
    branch = (
        f"branch: {safe(situation.branch) or 'detached HEAD'} at "
        f"{situation.commit[:SHORT] or 'no commit yet'}"
    )
    lines = ["# yolo-fs resume", *_phase_line(report), branch]
    if situation.obstacle:
        lines.append(
            f"nothing is committed now: {situation.obstacle.value}: {situation.obstacle.sentence}"
        )
    if not situation.is_daemon_running:
        lines.append("no daemon runs: nothing is committed until 'yolo-fs start' (or run --once)")
    if situation.is_cut_off:
        lines.append("this clone is shallow: what is older is not known ('git fetch --unshallow')")
    if situation.is_partial:
        lines.append(
            "this clone is partial: what it lacks is not known ('git fetch --refetch --no-filter')"
        )
    lines += [f"stop: {safe(one, 500)}" for one in situation.trouble]
    trouble = {
        "obstacle": situation.obstacle.value if situation.obstacle else None,
        "trouble": [*situation.trouble],
        "daemon_runs": situation.is_daemon_running,
    }
    return ReportSection(
        "now", "", tuple(lines), {**_phase_data(report), **where, **trouble}, is_vital=True
    )


def _phase_data(report: PhaseReport | None) -> dict[str, Any]:
    if report is None:
        return {"phase": None, "step": None, "status": "empty", "percent": 0}
    progress = report.phase.progress
    return {
        "phase": str(progress.phase),
        "step": progress.step,
        "status": report.status,
        "percent": progress.percent,
    }


def _phase_line(report: PhaseReport | None) -> tuple[str, ...]:
    said = _phase_data(report)
    if report is None:
        return ("phase: none yet",)
    return (
        (
            f"phase: {said['phase']}  step: {said['step']}  status: {said['status']}  plans: "
            f"{said['percent']} %"
        ),
    )


def _without_phase(situation: Situation) -> tuple[ReportSection, ...]:
    why = "there is no phase yet (yolo-fs phase new SLUG makes one)"
    if situation.trouble:
        why = "first mend what stops"
    return (ReportSection("next", "", (f"next: nobody; {why}",), None, is_vital=True),)


def _of_work_tree(situation: Situation) -> Iterator[ReportSection | None]:
    yield listed("rejected", "Rejected: mend these", _rejected(situation))
    yield listed("held", "Held: valid, and waiting for something else", _held(situation))
    yield listed("uncommitted", "Not committed yet", _uncommitted(situation))
    yield listed("machines", "Other work trees and clones", _machines(situation.machines))
    yield listed("handoffs", "Pending handoffs", _handoffs(situation))
    yield _drift(situation)
    yield listed(
        "contexts",
        "Contexts that were compiled anew",
        ((safe(one), {"path": one}) for one in situation.contexts),
    )
    yield _phases(situation.phases)


def _rejected(situation: Situation) -> Iterator[Item]:
    for path, verdict in situation.verdicts.items():
        if isinstance(verdict, Rejected):
            first = verdict.findings[0]
            more = len(verdict.findings) - 1
            others = f" and {more} more (yolo-fs validate {safe(path)})" if more else ""
            yield (
                f"{safe(str(first), 400)}{others}",
                {"path": path, "reason": first.reason.value, "line": first.line},
            )


def _held(situation: Situation) -> Iterator[Item]:
    for path, verdict in situation.verdicts.items():
        if isinstance(verdict, Held):
            reason = verdict.reason
            yield (
                f"{safe(path)}: {reason.value}: {reason.sentence}",
                {"path": path, "reason": reason.value},
            )


def _uncommitted(situation: Situation) -> Iterator[Item]:
    for path, verdict in situation.verdicts.items():
        if isinstance(verdict, Accepted | Waiting):
            written = isinstance(verdict, Waiting) and verdict.reason is Reason.BEING_WRITTEN
            yield (
                f"{safe(path)}{': being written' if written else ''}",
                {"path": path, "standing": "pending"},
            )
        elif isinstance(verdict, Missing):
            yield f"{safe(path)}: deleted from the work tree", {"path": path, "standing": "deleted"}


def _machines(seen: TeamOverview | None) -> Iterator[Item]:
    if seen is None:
        return
    yield safe(headline(seen)), {"team": seen.team, "clone": seen.clone}
    for kind, sentences in (
        ("waits", obstructions(seen)),
        ("lease", holdings(seen)),
        ("clone", others(seen)),
    ):
        yield from ((safe(said, 400), {kind: said}) for said in sentences)


def _handoffs(situation: Situation) -> Iterator[Item]:
    if taken := situation.handoff:
        yield (
            f"{safe(taken.path)}: {_said_of(taken)}",
            {
                "path": taken.path,
                "role": taken.role or None,
                "wrong": [*taken.wrong],
                "writer": taken.writer,
                **dict(taken.orders),
            },
        )
    for life in situation.lives:
        one = life.delivery
        if life.stage is not HandoffStage.ACTED_UPON:
            yield (
                f"{safe(one.place)}: {safe(one.sender)} → {safe(one.receiver)}, {life.stage.value}",
                {
                    "path": one.place,
                    "from": one.sender,
                    "to": one.receiver,
                    "stage": life.stage.value,
                },
            )


def _said_of(taken: LastHandoff) -> str:
    if taken.role:
        orders = "".join(
            f"; {name.replace('_', ' ')}: {safe(value, 200)}"
            for name, value in taken.orders
            if value
        )
        return f"accepted: whoever is {safe(taken.role)} goes on{orders}"
    writer = safe(taken.writer) or "its writer"
    wrong = safe("; ".join(taken.wrong), 400)
    return f"not accepted, {writer} has to mend it, and nothing else may be edited before: {wrong}"


def _phases(phases: Phases) -> ReportSection | None:
    found = [phase.progress for phase in phases] if len(phases) > 1 else []

    def as_item(one: PhaseStatus) -> Item:
        step = "complete" if one.is_complete else one.step
        return (
            f"{one.phase}: {step}, {one.percent} %",
            {"phase": str(one.phase), "step": step, "percent": one.percent},
        )

    return listed_as("phases", "All phases", found, as_item)


def _drift(situation: Situation) -> ReportSection | None:
    found = (*_states(situation.phases), *_said_only(situation), *situation.drift)

    def as_item(one: str) -> Item:
        return safe(one, 300), {"what": one}

    return listed_as("drift", "What disagrees with the evidence", found, as_item)


def _states(phases: Phases) -> Iterator[str]:
    """Yield which committed state files are behind: each mends itself as soon as a daemon runs."""
    if not phases:
        return
    phase = current(phases)
    for said in phase.facts.lines_of("state"):
        if not claims(phases, said) and (fresh := project_state(phases, said)):
            was, is_ = (f"phase {one.get('ph')} at {one.get('step')}" for one in (said, fresh))
            keys = ", ".join(key for key in fresh if fresh[key] != said.get(key))
            told = f"it says {was}, the evidence {is_}" if was != is_ else f"its {keys}"
            yield f"state.json is behind: {told}"
    execution = phase.facts.execution_state()
    if execution and next_execution_state(phase, execution) is not None:
        yield (
            f".execution-state.json is behind: it says {execution.get('step')}, the "
            f"evidence {phase.progress.step}"
        )


def _said_only(situation: Situation) -> Iterator[str]:
    """Yield commits that say they record a step of which the branch has no artifact."""
    for facts in [phase.facts for phase in situation.phases]:
        there = {one.place.artifact.step for one in facts.filed if one.place.phase}
        for said, commit in sorted(situation.steps_said.items()):
            number, _, step = said.partition(" ")
            if number == facts.phase.number and _MADE_IN.get(step, step) not in there:
                what = f"{step} of phase {facts.phase}"
                yield (
                    f"commit {commit[:SHORT]} says that it records {what}, but no artifact "
                    "of it is there"
                )


_MADE_IN = {"design_review": "planning"}
"""The design review changes the artifacts of the planning."""
