"""What goes through all levels of an escalation in one run: a question up, an answer down."""

from __future__ import annotations

from collections.abc import Iterator

from yolo_fs.core.ids import EscalationId
from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.escalation_service.moves import Escalations, MoveResult
from yolo_fs.escalations.lines import EscalationRequest
from yolo_fs.escalations.log import EscalationProgress, EscalationStage
from yolo_fs.protocol.departments import Role, name_in
from yolo_fs.workspace.planning_tree import find_phase


def answer(
    service: Escalations, root: str, name: EscalationId, choice: str, text: str
) -> Iterator[MoveResult]:
    """Log the user's decision and each level's receipt of it; yield the result of each move.

    `choice`: one of the options, or its number from 1; any text if no options were named.
    `text`: the reason for the choice, or the decision itself if there is no choice.
    If the same decision is already on its way down, only the remaining levels are logged. Stops
    after the first refusal.

    Raises:
        YoloError: UNKNOWN_NAME for the phase, the escalation or the choice; MISSING_KEY where
            nothing is decided; LOCK_TIMEOUT; UNTERMINATED.
    """
    escalation = _known(service, root, name)
    # Whoever holds it is told before the options: the user may choose none of them.
    decision = (
        choice or text if _is_with_another(escalation) else _decided(escalation, choice, text)
    )
    speaker, reason = Role.USER.value, text or "the user decides"
    if escalation.standing is EscalationStage.DESCENDING and escalation.decision == decision:
        speaker, reason = escalation.agent, _RECEIPT
        if escalation.is_told:
            yield MoveResult(escalation, already=True)
            return
    while True:
        request = EscalationRequest(agent=speaker, reason=reason, decision=decision)
        done = service.resolve(name, request)
        yield done
        after = done.progress
        if done.is_refused or after is None or after.is_told or not after.is_open:
            return
        speaker, reason = after.agent, _RECEIPT


_RECEIPT = "passed on by the user's answer"


def hand_up(
    service: Escalations, root: str, name: EscalationId, request: EscalationRequest, to: str
) -> Iterator[MoveResult]:
    """Log that an escalation is handed up, level by level until `to` has it; yield the result of
    each move.

    No level is skipped: each line is that of its holder, with the same evidence, for a session
    without a name, which plays them all. `to`: a level above the holder; the next one if empty.
    Stops after the first refusal.

    Raises:
        YoloError: UNKNOWN_NAME for the phase; LOCK_TIMEOUT; UNTERMINATED.
    """
    hops = _count_hops(_find(service, root, name), to)
    for _ in range(max(hops, 1)):
        done = service.raise_(name, request, "" if hops else to)
        yield done
        if done.is_refused:
            return


def _count_hops(escalation: EscalationProgress | None, to: str) -> int:
    """Return how many levels above its holder somebody is; 0 for who is none of them."""
    hops, level = 0, escalation.above(escalation.holder) if escalation else None
    while escalation and level:
        hops += 1
        if to in (level.value, name_in(level, escalation.department)):
            return hops
        level = escalation.above(level)
    return 0


def _known(service: Escalations, root: str, name: EscalationId) -> EscalationProgress:
    escalation = _find(service, root, name)
    if escalation is None:
        message = f"there is no {name}"
        hint = "'yolo-fs inbox' lists what waits for a person."
        raise YoloError(Reason.UNKNOWN_NAME, message, hint=hint)
    return escalation


def _find(service: Escalations, root: str, name: EscalationId) -> EscalationProgress | None:
    known, _ = service.list(find_phase(root, name.task.plan.phase))
    return next((escalation for escalation in known if escalation.id == name), None)


def _is_with_another(escalation: EscalationProgress) -> bool:
    """Return whether somebody else than the user has to decide."""
    is_rising = escalation.is_open and escalation.standing is not EscalationStage.DESCENDING
    return is_rising and escalation.holder is not Role.USER


def _decided(escalation: EscalationProgress, choice: str, text: str) -> str:
    options = escalation.options
    if choice.isdecimal() and 0 < int(choice) <= len(options) and choice not in options:
        return options[int(choice) - 1]
    alike = [each for each in options if each.casefold() == choice.casefold()]
    if len(alike) == 1:
        return alike[0]
    listed = "; ".join(f"{at} {safe(each)}" for at, each in enumerate(options, 1))
    if choice and options and choice not in options:
        message = f"{safe(choice)!r} is none of the options: {listed}"
        hint = "--text decides something else."
        raise YoloError(Reason.UNKNOWN_NAME, message, hint=hint)
    if decision := choice or text:
        return decision
    message = f"{escalation.id} asks: {safe(escalation.question, 300)}"
    hint = f"Choose {listed}; --text decides something else." if options else "--text decides."
    raise YoloError(Reason.MISSING_KEY, message, hint=hint, exit_code=Exit.USAGE)
