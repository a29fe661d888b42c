"""The user's answer to an escalation, and its way down to whoever is blocked, in one go."""

from __future__ import annotations

from collections.abc import Iterator

from yolo_fs.core.ids import EscalationId
from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.escalation_service.moves import Escalations, MoveResult
from yolo_fs.escalations.lines import EscalationRequest
from yolo_fs.escalations.log import EscalationProgress, EscalationStage
from yolo_fs.protocol.departments import Role
from yolo_fs.workspace import find_phase


def answer(
    service: Escalations, root: str, name: EscalationId, choice: str, text: str
) -> Iterator[MoveResult]:
    """Log the user's decision, then each level's receipt of it, and yield what became of each.

    `choice`: one of the options, or its number from 1; anything where nobody named options.
    `text`: the reason for the choice, or a decision of its own without one. Where the same decision
    is on its way already, only what is left of the way is gone. Ends with the first refusal.

    Raises:
        YoloError: UNKNOWN_NAME for the phase, the escalation or the choice; MISSING_KEY where
            nothing is decided; LOCK_TIMEOUT; UNTERMINATED.
    """
    one = _known(service, root, name)
    decision = _decided(one, choice, text)
    speaker, reason = Role.USER.value, text or "the user decides"
    if one.standing is EscalationStage.DESCENDING and one.decision == decision:
        speaker, reason = one.agent, _RECEIPT
        if one.is_told:
            yield MoveResult(one, already=True)
            return
    while True:
        said = EscalationRequest(agent=speaker, reason=reason, decision=decision)
        done = service.resolve(name, said)
        yield done
        after = done.progress
        if done.is_refused or after is None or after.is_told or not after.is_open:
            return
        speaker, reason = after.agent, _RECEIPT


_RECEIPT = "passed on by the user's answer"


def _known(service: Escalations, root: str, name: EscalationId) -> EscalationProgress:
    wanted = find_phase(root, name.task.plan.phase)
    known, _ = service.list(wanted)
    found = next((one for one in known if one.id == name), None)
    if found is None:
        message = f"there is no {name}"
        hint = "'yolo-fs inbox' lists what waits for a person."
        raise YoloError(Reason.UNKNOWN_NAME, message, hint=hint, exit_code=Exit.USAGE)
    return found


def _decided(one: EscalationProgress, choice: str, text: str) -> str:
    options = one.options
    if choice.isdecimal() and 0 < int(choice) <= len(options) and choice not in options:
        return options[int(choice) - 1]
    listed = "; ".join(f"{at} {safe(each)}" for at, each in enumerate(options, 1))
    if choice and options and choice not in options:
        message = f"{safe(choice)!r} is none of the options: {listed}"
        hint = "--text decides something else."
        raise YoloError(Reason.UNKNOWN_NAME, message, hint=hint, exit_code=Exit.USAGE)
    if decision := choice or text:
        return decision
    message = f"{one.id} asks: {safe(one.question, 300)}"
    hint = f"Choose {listed}; --text decides something else." if options else "--text decides."
    raise YoloError(Reason.MISSING_KEY, message, hint=hint, exit_code=Exit.USAGE)
