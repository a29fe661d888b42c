"""A session's handoffs in order: which is an attempt, which a repeat, and which contradicts an earlier one. Pure.

See docs/sources.md#document-003.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from yolo_fs.reasons import Reason
from yolo_fs.rules.artifacts.handoff_names import instant
from yolo_fs.rules.handoffs.consistency import EarlierHandoff, contradictions
from yolo_fs.rules.handoffs.envelopes import Sent
from yolo_fs.schemas.base import Fault
from yolo_fs.schemas.envelope.choice import Choice


@dataclass(frozen=True, slots=True)
class ProductSession:
    """What is known of a session."""

    sent: tuple[Sent, ...] = ()
    """Its envelopes of right shape, oldest first."""
    choices: tuple[Choice, ...] = ()
    """What the orchestrator chose after errors, oldest first."""


def in_order(sent: Sequence[Sent]) -> tuple[Sent, ...]:
    """Return envelopes oldest first."""
    return tuple(sorted(sent, key=lambda one: (one.moment, one.step, one.path)))


# --- idempotency and attempts ----------------------------------------------------------------------------------------


class Attempt(NamedTuple):
    """Which try of its route an envelope is."""

    number: int
    """From 1; errors count, repeats do not."""
    repeats: str = ""
    """Path of the envelope that it says once more; empty when it says something new."""


def repeated_by(
    value: Mapping[str, Any], source: str, target: str, earlier: Sequence[Sent]
) -> Sent | None:
    """Return the earlier envelope that says the same, its moment aside, or None when this is another attempt.

    Once the agent that was asked has failed, or was asked anew, the same words are an attempt of their own.
    """
    for one in reversed(earlier):
        if (one.source, one.target) == (source, target) and _content(one.value) == _content(value):
            return one
        is_answer = (one.source, one.target) == (target, source)
        if is_answer and (one.is_error or target == "orchestrator"):
            return None
    return None


def attempts(sent: Sequence[Sent]) -> dict[str, Attempt]:
    """Return path → attempt of every envelope; `sent` is in order."""
    found: dict[str, Attempt] = {}
    counts: dict[tuple[str, str], int] = {}
    for index, one in enumerate(sent):
        route = (one.source, one.target)
        same = repeated_by(one.value, *route, sent[:index])
        if same is None:
            counts[route] = counts.get(route, 0) + 1
        found[one.path] = Attempt(
            counts[route] if same is None else found[same.path].number, same.path if same else ""
        )
    return found


def _content(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key != "timestamp"}


# --- one envelope among the others -----------------------------------------------------------------------------------


def faults_among(own: Sent, session: ProductSession) -> Iterator[Fault]:
    """Yield where an envelope contradicts those that were sent before it."""
    before = [one for one in session.sent if one.path != own.path and one.moment <= own.moment]
    latest = {(one.source, one.target): one for one in before}
    known = [one for one in latest.values() if one.step < own.step]
    told = [EarlierHandoff(one.path, one.section, one.value) for one in in_order(known)]
    yield from contradictions(EarlierHandoff(own.path, own.section, own.value), told)
    yield from _lost_phases(own, in_order(known))
    yield from _after_the_end(own, session.choices)


def _lost_phases(own: Sent, earlier: Sequence[Sent]) -> Iterator[Fault]:
    """Yield a phase that an earlier handoff has completed and this one has not."""
    completed = own.envelope.workflow_state.phases_completed
    at = "/workflow_state/phases_completed"
    for one in reversed(earlier):
        said = one.envelope.workflow_state.phases_completed
        if lost := [phase for phase in said if phase not in completed]:
            message = (
                f"{', '.join(lost)!r} was completed at {at} of {one.path}, and is not any more"
            )
            yield Fault(Reason.STATE_CONFLICT, at, message, f"at least {', '.join(said)}")
            return


def _after_the_end(own: Sent, choices: Sequence[Choice]) -> Iterator[Fault]:
    if choices and choices[-1].way == "abort" and own.moment > instant(choices[-1].chosen_at):
        message = f"the workflow was aborted at {choices[-1].chosen_at} after {choices[-1].error}"
        hint = "Begin a session of its own."
        yield Fault(
            Reason.STATE_CONFLICT, "/session_id", message, "no handoff after an abort", hint
        )
