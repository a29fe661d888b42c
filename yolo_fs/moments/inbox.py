"""What waits for a person, and for nobody else, in one list: terminal, page and agents' tools show
it from here.

What an agent can mend or decide is not in it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from yolo_fs.artifacts.verdicts import Held
from yolo_fs.core.reasons import Finding, Reason
from yolo_fs.core.timestamps import iso
from yolo_fs.escalation_service.moves import Escalations
from yolo_fs.escalations.log import LOG, EscalationProgress
from yolo_fs.phase.acts import acts_of
from yolo_fs.phase.phase import act_of
from yolo_fs.progress.board import Board, PhaseBoard
from yolo_fs.protocol.departments import Role
from yolo_fs.reports.status import Candidate, CandidateState, Report
from yolo_fs.system.files import stamp_at
from yolo_fs.team.reconcile import PendingMove, TeamOverview
from yolo_fs.workspace import phases_in


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
    """The answers that whoever asks has thought of; empty for an open question."""
    command: str
    """What settles it, or shows what has to be done."""
    recommendation: str = ""
    """What whoever asks would do; empty where nobody says."""

    def as_json(self) -> dict[str, Any]:
        """Return the item as `inbox --json` shows it."""
        return {**self._asdict(), "options": list(self.options)}


_URGENCY = (
    "credential",
    "daemon",
    "conflict",
    "escalation",
    "decision",
    "deadlock",
    "agent",
    "held",
    "health",
)

_SETTLED_BY = {
    Reason.GITIGNORED: "git check-ignore -v {path}",
    Reason.ATTR_FILTER: "git check-attr -a {path}",
    Reason.FOREIGN_REPOSITORY: "git rev-parse --show-toplevel",
    Reason.UNDONE_BY_USER: "git log -3 -- {path}",
    Reason.OLDER_THAN_BRANCH: "git diff HEAD -- {path}",
    Reason.RECORDS_LOST: "yolo-fs fix --write {path}",
    Reason.AUTO_COMMIT_OFF: "git diff HEAD -- {path}",
    Reason.NO_SPACE: "df -h .",
    Reason.STORAGE_FAILED: "yolo-fs doctor",
    Reason.OBJECT_MISSING: "git fsck",
    Reason.INTERNAL_ERROR: "yolo-fs doctor",
}
"""What holds a file until a person acts, and the command that shows it. Whatever else holds one
passes, or is an obstacle, which is one item however many files it holds."""


def inbox(
    found: Report,
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
    phases = [one for one in team.phases if not one.is_complete] if team else []
    items = [
        *_daemon(found),
        *_obstacle(found),
        *(item for one in found.with_standing(CandidateState.HELD) for item in _held(found, one)),
        *_escalations(found.root, team, escalations),
        *(item for phase in phases for item in _acts(phase)),
        *_given_up(found.root, team, runs),
        *_conflicts(machines),
        *map(_unhealthy, health),
    ]
    items.sort(key=lambda one: (_URGENCY.index(one.kind), one.since or "~", one.id))
    return tuple(items)


def _daemon(found: Report) -> Iterator[InboxItem]:
    health = found.health
    if health.pid is None:
        said = "No daemon runs: nothing that agents write is committed."
        yield InboxItem("daemon", "daemon", "", said, (), "yolo-fs start")
    elif health.degraded or health.troubles:
        what = health.degraded.reason.sentence if health.degraded else health.troubles[0].what
        yield InboxItem("daemon", "daemon", "", f"The daemon fails: {what}.", (), "yolo-fs doctor")


def _unhealthy(one: Finding) -> InboxItem:
    command = next(iter(_COMMAND.findall(one.hint)), "yolo-fs doctor")
    where = f"{one.path}: " if one.path else ""
    said = f"{where}{one.message or one.reason.sentence}. {one.hint}".strip()
    return InboxItem(f"{one.reason.value}:{one.path}", "health", "", said, (), command)


_COMMAND = re.compile(r"'(yolo-fs [^']{1,200})'")
"""A command that a hint names."""


def _obstacle(found: Report) -> Iterator[InboxItem]:
    if found.obstacle not in (None, Reason.INDEX_LOCKED, Reason.USER_COMMITTING):
        said = f"Nothing is committed: {found.obstacle.sentence}."
        yield InboxItem(found.obstacle.value, "held", "", said, (), "git status")


def _held(found: Report, one: Candidate) -> Iterator[InboxItem]:
    if not isinstance(one.verdict, Held):
        return
    reason, path = one.verdict.reason, shlex.quote(one.path)
    stamp = stamp_at(f"{found.root}/{one.path}", by_link=True)
    since = iso(stamp.mtime_ns // 1_000_000_000) if stamp else ""
    if reason is Reason.SECRET:
        line = next((f" line {each.line}" for each in one.verdict.findings if each.line), "")
        said = f"{one.path}{line} looks like a credential: take it out of the file and revoke it."
        yield InboxItem(one.path, "credential", since, said, (), f"yolo-fs validate {path}")
    elif reason in _SETTLED_BY and reason is not found.obstacle:
        said = f"{one.path} is not committed: {reason.sentence}."
        yield InboxItem(one.path, "held", since, said, (), _SETTLED_BY[reason].format(path=path))


def _escalations(root: str, team: Board | None, escalations: Escalations) -> Iterator[InboxItem]:
    """Yield the questions of the work tree's logs, committed or not: an answer counts at once."""
    over = {one.id for one in team.phases if one.is_complete} if team else set()
    for phase in phases_in(root):
        known, _ = escalations.list(phase) if phase not in over else ((), ())
        for one in known:
            if one.is_open and one.holder is Role.USER:
                yield _asked(one)


def _asked(one: EscalationProgress) -> InboxItem:
    said = f"{one.question} (blocks {one.id.task}, {one.severity})"
    since = iso(one.since.timestamp())
    command, best = act_of(one)[1], one.recommendation
    return InboxItem(str(one.id), "escalation", since, said, one.options, command, best)


def _acts(phase: PhaseBoard) -> Iterator[InboxItem]:
    number = int(phase.id.number)
    for act in acts_of(phase):
        turn = act.turn
        if act.is_of_person and turn.inputs != (LOG,):
            name = f"{phase.id}:{act.department or 'phase'}:{turn.step}"
            command = turn.command or f"yolo-fs workflow next --phase {number}"
            why = f": {turn.why}" if turn.why else ""
            yield InboxItem(name, "decision", "", f"{turn.sentence}{why}", (), command)
    for place, alarm in enumerate(phase.alarms, 1):
        name = f"{phase.id}:deadlock:{place}"
        command = f"yolo-fs workflow next --phase {number}"
        yield InboxItem(name, "deadlock", "", str(alarm), (), command)


def _given_up(
    root: str, team: Board | None, runs: Sequence[Mapping[str, Any]]
) -> Iterator[InboxItem]:
    """Yield what the last run of each phase has given up; the next one tries it again."""
    over = {one.id for one in team.phases if one.is_complete} if team else set()
    last = {run["phase"]: run for run in runs}
    for phase in phases_in(root):  # it may have nothing on the branch yet
        run = last.get(str(phase)) if phase not in over else None
        for place, why in enumerate((run or {}).get("given_up") or (), 1):
            since = iso(run["ended"] or 0) if run else ""
            command = f"yolo-fs go --phase {int(phase.number)}"
            name = f"{phase}:given-up:{place}"
            yield InboxItem(name, "agent", since, f"given up: {why}", (), command)


def _conflicts(machines: TeamOverview | None) -> Iterator[InboxItem]:
    for each in machines.waiting if machines else ():
        if each.waits_for is PendingMove.CHOICE:
            said = f"{each.path} was changed here and in the team: which version counts?"
            command = f"yolo-fs team resolve {shlex.quote(each.path)}"
            sides = ("--ours", "--theirs")
            yield InboxItem(each.path, "conflict", iso(each.since_s), said, sides, command)
