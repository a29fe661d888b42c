"""What a new session is told. Pure.

It tells where the team stands, who does what next, and what in the work tree needs attention. See
docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.verdicts import Accepted, Held, Missing, Rejected, Verdict, Waiting
from yolo_fs.core.ids import SHORT, spelled_below
from yolo_fs.core.reasons import FETCH_LACKING, Reason, safe
from yolo_fs.core.timestamps import iso
from yolo_fs.handoffs.lifecycle import HandoffLifecycle, HandoffStage
from yolo_fs.phase.phase import Phases
from yolo_fs.phase.progress import PhaseStatus
from yolo_fs.phase.report import (
    Audience,
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
    """The last handoff between roles, and what became of it."""

    path: str
    role: str
    """Role of the receiver; empty when the handoff is not accepted."""
    wrong: tuple[str, ...] = ()
    """Why it is not accepted."""
    writer: str = ""
    """Who wrote it; empty when it does not say."""
    orders: tuple[tuple[str, str], ...] = ()
    """(name, value) of what its receiver reads, does and achieves."""
    mender: str = ""
    """Role that has to mend what is wrong; empty when it does not say."""


SHALLOW = "this clone is shallow: what is older is not known ('git fetch --unshallow')"
PARTIAL = f"this clone is partial: what it lacks is not known ('{FETCH_LACKING}')"


@dataclass(frozen=True, slots=True)
class TeamState:
    """The input of a brief."""

    branch: str = ""
    """Empty when HEAD is detached."""
    commit: str = ""
    """Empty on a branch without commits."""
    obstacle: Reason | None = None
    """Why nothing may be committed now."""
    is_cut_off: bool = False
    """Whether the clone is shallow: older commits may contain what seems to be missing."""
    is_partial: bool = False
    """Whether the clone leaves contents or trees of former commits out."""
    trouble: tuple[str, ...] = ()
    """What could not be looked at, and why."""
    is_blind: bool = False
    """Whether nothing could be looked at, not even the branch."""
    is_daemon_running: bool = True
    phases: Phases = ()
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    """Path → verdict of each candidate of the work tree."""
    drift: tuple[str, ...] = ()
    """Declarations of the work tree that differ from history."""
    steps_said: Mapping[str, str] = field(default_factory=dict)
    """`NN step` → the last commit whose subject claims to record the step."""
    handoff: LastHandoff | None = None
    due: tuple[str, ...] = ()
    """HANDOFF.md files that ultra sessions lack."""
    lives: tuple[HandoffLifecycle, ...] = ()
    """Handoffs between departments and phases, and how far each is."""
    contexts: tuple[str, ...] = ()
    """Compiled contexts that are up to date, because they were recompiled."""
    machines: TeamOverview | None = None
    """The other work trees and clones; None where none was joined."""


def resume_report(team_state: TeamState, asker: Audience = Audience()) -> Brief:
    """Return the whole brief, the weightiest section first."""
    report = PhaseReport(current(team_state.phases), asker) if team_state.phases else None
    shown = _sections(team_state, report, asker)
    sections = {section.key: section for section in shown if section}
    return tuple(sections[key] for key in _WEIGHTS if key in sections)


_WEIGHTS = (
    "now", "next", "stops", "rejected", "held", "escalations", "uncommitted", "machines",
    "handoffs", "team", "in_progress", "blocked", "gates", "drift", "contexts", "phases", "done",
)  # fmt: skip
"""Sections by weight: what blocks somebody comes first, finished work last."""


def _sections(
    team_state: TeamState, report: PhaseReport | None, asker: Audience
) -> Iterator[ReportSection | None]:
    yield _now(team_state, report, asker)
    yield from report.sections() if report else _explain_no_phase(team_state)
    yield from _sections_of_work_tree(team_state)


def _now(team_state: TeamState, report: PhaseReport | None, asker: Audience) -> ReportSection:
    where = {"branch": team_state.branch, "commit": team_state.commit[:SHORT]}
    branch = (
        f"branch: {safe(team_state.branch) or 'detached HEAD'} at "
        f"{team_state.commit[:SHORT] or 'no commit yet'}"
    )
    lines = ["# yolo-fs resume"]
    if not team_state.is_blind:
        lines += [*_format_phase_line(report), branch]
    if asker.below:
        root = safe(spelled_below(asker.below, PLANNING_ROOT))
        lines.append(f"you are in {safe(asker.below)}: {PLANNING_ROOT} is {root} from here")
    if team_state.obstacle:
        lines.append(f"nothing is committed now: {team_state.obstacle.with_sentence}")
    is_over = report is not None and report.phase.progress.is_complete
    if not team_state.is_daemon_running:
        lines.append(
            "no daemon runs, and none has to: 'yolo-fs start' when the next phase begins"
            if is_over
            else "no daemon runs: nothing is committed until 'yolo-fs start' (or run --once)"
        )
    if team_state.is_cut_off:
        lines.append(SHALLOW)
    if team_state.is_partial:
        lines.append(PARTIAL)
    if report and report.phase.unknown_order:
        lines.append(report.phase.unknown_order)
    lines += [f"stop: {safe(sentence, 500)}" for sentence in team_state.trouble]
    trouble = {
        "obstacle": team_state.obstacle.value if team_state.obstacle else None,
        "trouble": [*team_state.trouble],
        "daemon_runs": team_state.is_daemon_running,
    }
    return ReportSection(
        "now", "", tuple(lines), {**_phase_as_json(report), **where, **trouble}, is_vital=True
    )


def _phase_as_json(report: PhaseReport | None) -> dict[str, Any]:
    if report is None:
        return {"phase": None, "step": None, "status": "empty", "percent": 0}
    progress = report.phase.progress
    return {
        "phase": str(progress.phase),
        "step": progress.step,
        "status": report.status,
        "percent": progress.percent,
    }


def _format_phase_line(report: PhaseReport | None) -> tuple[str, ...]:
    summary = _phase_as_json(report)
    if report is None:
        return ("phase: none yet",)
    return (
        (
            f"phase: {summary['phase']}  step: {summary['step']}  status: "
            f"{summary['status']}  plans: {summary['percent']} %"
        ),
    )


def _explain_no_phase(team_state: TeamState) -> tuple[ReportSection, ...]:
    why = "there is no phase yet (yolo-fs phase new SLUG makes one)"
    if team_state.trouble:
        why = "first fix what stops"
    return (ReportSection("next", "", (f"next: nobody; {why}",), None, is_vital=True),)


def _sections_of_work_tree(team_state: TeamState) -> Iterator[ReportSection | None]:
    yield listed("rejected", "Rejected: fix these", _rejected(team_state))
    yield listed("held", "Held: not committed until the reason is gone", _held(team_state))
    yield listed("uncommitted", "Not committed yet", _uncommitted(team_state))
    yield listed("machines", "Other work trees and clones", _machines(team_state.machines))
    yield listed("handoffs", "Pending handoffs", _handoffs(team_state))
    yield _drift(team_state)
    yield listed(
        "contexts",
        "Contexts that were compiled again",
        ((safe(context), {"path": context}) for context in team_state.contexts),
    )
    yield _phases(team_state.phases)


def _rejected(team_state: TeamState) -> Iterator[Item]:
    for path, verdict in team_state.verdicts.items():
        if isinstance(verdict, Rejected):
            first = verdict.findings[0]
            more = len(verdict.findings) - 1
            others = f" and {more} more (yolo-fs validate {safe(path)})" if more else ""
            yield (
                f"{safe(str(first), 400)}{others}",
                {"path": path, "reason": first.reason.value, "line": first.line},
            )


def _held(team_state: TeamState) -> Iterator[Item]:
    for path, verdict in team_state.verdicts.items():
        if isinstance(verdict, Held):
            reason = verdict.reason
            yield (f"{safe(path)}: {reason.with_sentence}", {"path": path, "reason": reason.value})


def _uncommitted(team_state: TeamState) -> Iterator[Item]:
    for path, verdict in team_state.verdicts.items():
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
        ("waits", obstructions(seen, iso)),
        ("lease", holdings(seen, iso)),
        ("clone", others(seen, iso)),
    ):
        yield from ((safe(sentence, 400), {kind: sentence}) for sentence in sentences)


def _handoffs(team_state: TeamState) -> Iterator[Item]:
    if taken := team_state.handoff:
        yield (
            f"{safe(taken.path)}: {_said_of(taken)}",
            {
                "path": taken.path,
                "role": taken.role or None,
                "wrong": [*taken.wrong],
                "writer": taken.writer,
                "mender": taken.mender,
                **dict(taken.orders),
            },
        )
    for path in team_state.due:
        session = path.split("/")[-2]
        yield (
            f"{safe(path)}: missing; its session is ultra, so the architect stops and hands "
            f"over: 'yolo-fs handoff emit --session {safe(session)} --from architect --to executor "
            "--trigger architect_ultra_detected …'",
            {"path": path, "writer": "architect"},
        )
    for life in team_state.lives:
        delivery = life.delivery
        if life.stage is not HandoffStage.ACTED_UPON:
            yield (
                f"{safe(delivery.place)}: {safe(delivery.sender)} → "
                f"{safe(delivery.receiver)}, {life.stage.value}",
                {
                    "path": delivery.place,
                    "from": delivery.sender,
                    "to": delivery.receiver,
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
        return f"accepted: the {safe(taken.role)} continues{orders}"
    mender = safe(taken.mender) or "its writer"
    wrong = safe("; ".join(taken.wrong), 400)
    return f"not accepted, {mender} has to fix it, and nothing else may be edited before: {wrong}"


def _phases(phases: Phases) -> ReportSection | None:
    statuses = [phase.progress for phase in phases] if len(phases) > 1 else []

    def as_item(status: PhaseStatus) -> Item:
        step = "complete" if status.is_complete else status.step
        data = {"phase": str(status.phase), "step": step, "percent": status.percent}
        return status.summary, data

    return listed_as("phases", "All phases", statuses, as_item)


def _drift(team_state: TeamState) -> ReportSection | None:
    disagreements = (
        *_states(team_state.phases),
        *_find_unproved_claims(team_state),
        *team_state.drift,
    )

    def as_item(disagreement: str) -> Item:
        return safe(disagreement, 300), {"what": disagreement}

    return listed_as("drift", "What disagrees with the evidence", disagreements, as_item)


def _states(phases: Phases) -> Iterator[str]:
    """Yield which committed state files are behind. A running daemon repairs them."""
    if not phases:
        return
    phase = current(phases)
    for state in phase.facts.lines_of("state"):
        if not claims(phases, state) and (fresh := project_state(phases, state)):
            was, is_ = (
                f"phase {content.get('ph')} at {content.get('step')}" for content in (state, fresh)
            )
            keys = ", ".join(key for key in fresh if fresh[key] != state.get(key))
            difference = f"it says {was}, the evidence {is_}" if was != is_ else f"its {keys}"
            yield f"state.json is behind: {difference}"
    execution = phase.facts.execution_state()
    if execution and next_execution_state(phase, execution) is not None:
        yield (
            f".execution-state.json is behind: it says {execution.get('step')}, the "
            f"evidence {phase.progress.step}"
        )


def _find_unproved_claims(team_state: TeamState) -> Iterator[str]:
    """Yield commits that claim to record a step of which the branch has no artifact."""
    for facts in [phase.facts for phase in team_state.phases]:
        there = {
            artifact.place.artifact.step for artifact in facts.committed if artifact.place.phase
        }
        for claim, commit in sorted(team_state.steps_said.items()):
            number, _, step = claim.partition(" ")
            if number == facts.phase.number and _MADE_IN.get(step, step) not in there:
                what = f"{step} of phase {facts.phase}"
                yield (
                    f"commit {commit[:SHORT]} claims to record {what}, but has no artifact of it"
                )


_MADE_IN = {"design_review": "planning"}
"""The design review changes the artifacts of the planning."""
