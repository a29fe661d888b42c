"""Everything that waits for a person and for nobody else, as one list.

The terminal, the page and the agents' tools all show it from here.

What an agent can repair or decide is in it only once it has kept a file uncommitted for two
rescans: then nobody repairs it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.decide import reason_and_findings
from yolo_fs.artifacts.uncommitted import SETTLED_BY, command_for
from yolo_fs.artifacts.verdicts import CandidateState, Held
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Finding, Reason
from yolo_fs.core.timestamps import iso
from yolo_fs.escalation_service.moves import Escalations
from yolo_fs.escalations.log import LOG, EscalationProgress, act_of
from yolo_fs.progress.board import Board, PhaseBoard
from yolo_fs.protocol.departments import Role
from yolo_fs.protocol.workflow import TURN_COMMAND
from yolo_fs.reports.status import Candidate, Report
from yolo_fs.system.database import is_proved
from yolo_fs.system.files import stamp_at
from yolo_fs.team.reconcile import PendingMove, TeamOverview
from yolo_fs.workspace.planning_tree import phases_in

TOLD_ELSEWHERE = ("daemon", "health")
"""Kinds that `status` and the status line have lines of their own for."""
COMMAND_LENGTH = 5000
"""Most that is shown of a command: one that is cut off is another one."""


class InboxItem(NamedTuple):
    """One thing that only a person can settle."""

    id: str
    """Names it for `answer`, such as `ESC-01-02-T3`."""
    kind: str
    """`credential`, `daemon`, `conflict`, `escalation`, `decision`, `deadlock`, `agent` for what
    a run has given up, `held`, or `health` for what `doctor` names.
    """
    since: str
    """Moment in UTC; empty where nothing tells it."""
    question: str
    options: tuple[str, ...]
    """Proposed answers; empty for an open question."""
    command: str
    """Command that settles it, or shows what has to be done."""
    recommendation: str = ""
    """What the asking agent recommends; empty for none."""


_URGENCY = (
    "credential", "daemon", "conflict", "escalation", "decision", "deadlock", "agent", "held",
    "health",
)  # fmt: skip


def inbox(
    report: Report,
    team: Board | None,
    machines: TeamOverview | None,
    escalations: Escalations,
    health: Iterable[Finding] = (),
    runs: Sequence[Mapping[str, Any]] = (),
) -> tuple[InboxItem, ...]:
    """Return what waits for a person, the most urgent first, the oldest of a kind first.

    `health`: what stands in the way of yolo_fs itself; `runs`: those of the company, oldest first,
    as they are kept.
    """
    phases = [phase for phase in team.phases if not phase.is_complete] if team else []
    open_ = tuple(_open_escalations(report.root, team, escalations))
    goes_up = any(each.holder is not Role.USER for each in open_)  # when its time is over
    is_left = bool(phases) and (report.health.is_killed or machines is not None)
    items = [
        *_daemon(report, is_wanted=_waits_for_commit(report) or goes_up or is_left),
        *_items_for_obstacle(report),
        *(
            item
            for candidate in report.listing.unsettled
            for item in (*_credentials(report, candidate), *_held(report, candidate))
        ),
        *(_item_for_escalation(each) for each in open_ if each.holder is Role.USER),
        *(item for phase in phases for item in _acts(phase)),
        *_left_by_runs(report.root, team, runs),
        *_conflicts(machines),
    ]
    item_ids = {item.id for item in items}
    items += [_item_for_health(finding) for finding in health if not _is_told(finding, item_ids)]
    items.sort(key=lambda item: (_URGENCY.index(item.kind), item.since or "~", item.id))
    return tuple(items)


def _waits_for_commit(report: Report) -> bool:
    """Return whether there is a file that a daemon commits, now or once git is free for it."""
    uncommitted = report.with_standing(CandidateState.PENDING, CandidateState.HELD)
    reasons = {reason_and_findings(each.verdict)[0] for each in uncommitted}
    return not reasons <= {Reason.SECRET, *SETTLED_BY}


def _daemon(report: Report, *, is_wanted: bool) -> Iterator[InboxItem]:
    health = report.health
    if health.pid is None:
        question = "No daemon runs: nothing that agents write is committed."
        if is_wanted:
            yield InboxItem("daemon", "daemon", "", question, (), "yolo-fs start")
    elif health.degraded or health.troubles:
        what = health.degraded.reason.sentence if health.degraded else health.troubles[0].what
        yield InboxItem("daemon", "daemon", "", f"The daemon fails: {what}.", (), "yolo-fs doctor")


def _is_told(finding: Finding, item_ids: set[str]) -> bool:
    """Return whether an item names the file already, or the obstacle that holds it."""
    return finding.path in item_ids or (
        finding.reason.value in item_ids and classify(finding.path) is not None
    )


def _item_for_health(finding: Finding) -> InboxItem:
    command = finding.command or "yolo-fs doctor"
    where = f"{finding.path}: " if finding.path else ""
    expected = f"; expected {finding.expected}" if finding.expected else ""
    what = f"{finding.message or finding.reason.sentence}{expected}"
    question = f"{where}{what}. {finding.hint}".strip()
    return InboxItem(f"{finding.reason.value}:{finding.path}", "health", "", question, (), command)


def _items_for_obstacle(report: Report) -> Iterator[InboxItem]:
    if report.obstacle not in (None, *_END_BY_THEMSELVES):
        question = f"Nothing is committed: {report.obstacle.sentence}."
        command = command_for(report.obstacle)
        yield InboxItem(report.obstacle.value, "held", "", question, (), command)


_END_BY_THEMSELVES = (Reason.INDEX_LOCKED, Reason.USER_COMMITTING, Reason.PULL_IN_PROGRESS)


def _credentials(report: Report, candidate: Candidate) -> Iterator[InboxItem]:
    """Yield the credential in a file, whatever else is wrong with it."""
    _, findings = reason_and_findings(candidate.verdict)
    secrets = [each for each in findings if each.reason is Reason.SECRET]
    if secrets:
        line = f" line {secrets[0].line}" if secrets[0].line else ""
        question = (
            f"{candidate.path}{line} looks like a credential: take it out of "
            "the file and revoke it."
        )
        since, path = _since(report, candidate), shlex.quote(candidate.path)
        command = f"yolo-fs validate {path}"
        yield InboxItem(candidate.path, "credential", since, question, (), command)


def _held(report: Report, candidate: Candidate) -> Iterator[InboxItem]:
    reason = candidate.verdict.reason if isinstance(candidate.verdict, Held) else None
    if reason in SETTLED_BY and reason is not report.obstacle:
        question = f"{candidate.path} is not committed: {reason.sentence}."
        command = command_for(reason, candidate.path)
        yield InboxItem(candidate.path, "held", _since(report, candidate), question, (), command)


def _since(report: Report, candidate: Candidate) -> str:
    stamp = stamp_at(f"{report.root}/{candidate.path}", by_link=True)
    return iso(stamp.mtime_ns // 1_000_000_000) if stamp else ""


def _open_escalations(
    root: str, team: Board | None, escalations: Escalations
) -> Iterator[EscalationProgress]:
    """Yield the questions of the work tree's logs, committed or not: an answer counts at once."""
    over = (
        {phase_board.id for phase_board in team.phases if phase_board.is_complete}
        if team
        else set()
    )
    for phase in phases_in(root):
        known, _ = escalations.list(phase) if phase not in over else ((), ())
        yield from (each for each in known if each.is_open)


def _item_for_escalation(escalation: EscalationProgress) -> InboxItem:
    severity = escalation.severity
    harm = "blocks" if severity == "blocking" else f"{severity}, of"
    question = f"{escalation.question} ({harm} {escalation.id.task})"
    since = iso(escalation.since.timestamp())
    command, best = act_of(escalation)[1], escalation.recommendation
    return InboxItem(
        str(escalation.id), "escalation", since, question, escalation.options, command, best
    )


def _acts(phase: PhaseBoard) -> Iterator[InboxItem]:
    own = TURN_COMMAND.format(phase=phase.facts.spelled)
    for act in phase.acts:
        turn = act.turn
        if act.is_of_person and turn.inputs != (LOG,):
            name = f"{phase.id}:{act.department or 'phase'}:{turn.step}"
            command = turn.command or own
            why = f": {turn.why}" if turn.why else ""
            yield InboxItem(name, "decision", "", f"{turn.sentence}{why}", (), command)
    for place, alarm in enumerate(phase.alarms, 1):
        name = f"{phase.id}:deadlock:{place}"
        yield InboxItem(name, "deadlock", "", str(alarm), (), own)


def _left_by_runs(
    root: str, team: Board | None, runs: Sequence[Mapping[str, Any]]
) -> Iterator[InboxItem]:
    """Yield what the last run of each phase has given up or asks; the next one takes it up."""
    over = {phase.id for phase in team.phases if phase.is_complete} if team else set()
    last = {run["phase"]: run for run in runs}
    for phase in phases_in(root):  # it may have nothing on the branch yet
        run = last.get(str(phase)) if phase not in over else None
        if run and run["ended"] is not None:
            yield from _left_by(run, phase)


def _left_by(run: Mapping[str, Any], phase: PhaseId) -> Iterator[InboxItem]:
    since, own = iso(run["ended"]), f"yolo-fs go --phase {int(phase.number)}"
    is_ours = is_proved(run)  # its commands name a program of this user's
    for place, why in enumerate(run.get("given_up") or (), 1):
        command = str(run.get("again") or own) if is_ours else own
        yield InboxItem(
            f"{phase}:given-up:{place}", "agent", since, f"given up: {why}", (), command
        )
    for place, (question, command) in enumerate(run.get("asks") or (), 1):
        asks = f"question of the run: {question}"
        name = f"{phase}:asks:{place}"
        yield InboxItem(name, "decision", since, asks, (), command if is_ours else own)


def _conflicts(machines: TeamOverview | None) -> Iterator[InboxItem]:
    for each in machines.waiting if machines else ():
        if each.waits_for is PendingMove.CHOICE:
            question = f"{each.path} was changed here and in the team: which version counts?"
            command = f"yolo-fs team resolve {shlex.quote(each.path)}"
            sides = ("--ours", "--theirs")
            yield InboxItem(each.path, "conflict", iso(each.since_s), question, sides, command)
