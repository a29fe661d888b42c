"""Does in an agent's name what its host gave it no tool for: writing its files, deciding,
committing.
"""

from __future__ import annotations

from yolo_fs.company.answers import (
    NOTHING_SPOKEN,
    OPTION,
    Spoken,
    contents_in,
    decision_in,
    put,
    spoken_by,
)
from yolo_fs.company.branch import Branch, escalation_of
from yolo_fs.company.hosts import HostProgram
from yolo_fs.company.source import source_of
from yolo_fs.company.workers import Worker
from yolo_fs.core.ids import EscalationId
from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.escalation_service.moves import Escalations
from yolo_fs.escalations.lines import EscalationRequest
from yolo_fs.phase.acts import Act
from yolo_fs.tasks.service import commit_task

_LONGEST_TEXT = 60
_DONE = "as specified"
"""What the subject of a commit says, where its agent says nothing that fits."""


def spoken_of(branch: Branch, host: HostProgram, act: Act) -> Spoken:
    """Return what an agent says in its answer because it has no tool for it."""
    if not host.keeps_to_roster:
        return NOTHING_SPOKEN
    return spoken_by(branch.access.actor(act.agent), act.writes, act.turn.command)


def put_answer(branch: Branch, worker: Worker) -> None:
    """Carry out what an agent's answer contains for lack of a tool.

    Files that the agent has changed itself stay.
    """
    spoken = spoken_of(branch, worker.host, worker.act)
    if worker.why or not worker.answer or branch.stamps(worker.act, worker.root) != worker.stamps:
        return
    try:
        if contents := contents_in(worker.answer, spoken.files):
            put(branch.repository.root, contents)
        if spoken.decides and (escalation := escalation_of(worker.act)):
            _record(branch, escalation, worker.act.agent, *decision_in(worker.answer))
    except YoloError as error:
        worker.why = error.message


def commit_source(branch: Branch, worker: Worker) -> None:
    """Commit what an agent has made whose host lets it commit nothing."""
    repository = worker.tree.repository if worker.tree else branch.repository
    for task, type_, paths in source_of(branch.phase, worker.act):
        try:
            words = worker.answer.strip().partition("\n")[0]
            text = words if safe(words) == words and 0 < len(words) < _LONGEST_TEXT else _DONE
            agent = worker.act.agent
            commit_task(repository, branch.team, task, type_, text, paths, agent)
        except YoloError as error:
            if error.reason is not Reason.UNCHANGED:
                worker.why = error.message


def _record(branch: Branch, name: EscalationId, agent: str, move: str, text: str) -> None:
    """Record a decision or an escalation to the next level."""
    service = Escalations(branch.repository, branch.settings)
    why, *options = (safe(part.strip(), 1000) for part in text.split(OPTION))
    request = EscalationRequest(agent=agent, reason=why)
    if move == "Decision":
        # Who passes a decision on says it in words of its own; what was decided stands.
        own, decided = safe(text, 1000), service.decision_going_down(name)
        instructions = (own,) if decided not in ("", own) else ()
        service.resolve(name, request._replace(decision=decided or own, instructions=instructions))
    elif move:
        best = options[0] if options else why
        full_request = request._replace(
            evidence=(why,), options=tuple(options), recommendation=best
        )
        service.raise_(name, full_request)
