"""Progress of a session: the line of the dashboard, and the options after an error. Pure.

See docs/dev/sources.md#document-003.
"""

from __future__ import annotations

from typing import NamedTuple, get_args

from yolo_fs.handoffs.envelopes import Sent, percentage
from yolo_fs.handoffs.sessions import ProductSession, attempts
from yolo_fs.protocol.handoffs import RECOVERIES
from yolo_fs.schemas.envelope.envelope import Choice, NextState, WayName


class Way(NamedTuple):
    """One of the orchestrator's four options after an error."""

    name: WayName
    text: str
    """As the document prints it."""
    leads_to: NextState


_WAYS: tuple[WayName, ...] = get_args(WayName)


def open_error(session: ProductSession) -> Sent | None:
    """Return the error that has not been acted upon: the last envelope, if it is one."""
    last = session.sent[-1] if session.sent else None
    return last if last and last.is_error else None


def choice_after(error: Sent, session: ProductSession) -> Choice | None:
    """Return the last choice after an error, or None."""
    return next(
        (choice for choice in reversed(session.choices) if choice.error == error.path), None
    )


def ways_after(error: Sent, session: ProductSession) -> tuple[Way, ...]:
    """Return the four options after an error, each with the state that it leads to."""
    rows = zip(_WAYS, RECOVERIES, strict=True)
    return tuple(Way(name, row.text, _STATES[name](error, session)) for name, row in rows)


def _find_failed_phase(error: Sent) -> str:
    """Return the failed phase: the one named, else that of the error's source, else the next."""
    remaining = error.envelope.workflow_state.phases_remaining
    named = error.envelope.source_agent.phase_completed
    return next(
        (phase for phase in (named, error.source) if phase in remaining),
        remaining[0] if remaining else named,
    )


def _retried(error: Sent, session: ProductSession) -> NextState:
    numbers = attempts(session.sent)
    tries = (
        numbers[envelope.path].number
        for envelope in session.sent
        if envelope.target == error.source
    )
    return _next(
        error, "running", error.source, _find_failed_phase(error), attempt=max(tries, default=1) + 1
    )


def _await_user(error: Sent, _: ProductSession) -> NextState:
    return _next(error, "waiting", "user", _find_failed_phase(error))


def _skipped(error: Sent, _: ProductSession) -> NextState:
    failed = _find_failed_phase(error)
    rest = [phase for phase in error.envelope.workflow_state.phases_remaining if phase != failed]
    if not rest:
        return _next(error, "complete", None, None, skipped=failed)
    return _next(error, "running", "orchestrator", rest[0], skipped=failed)


def _aborted(error: Sent, _: ProductSession) -> NextState:
    return _next(error, "aborted", None, None)


_STATES = {"retry": _retried, "ask": _await_user, "skip": _skipped, "abort": _aborted}


def _next(
    error: Sent,
    status: str,
    agent: str | None,
    phase: str | None,
    *,
    attempt: int = 1,
    skipped: str = "",
) -> NextState:
    state = error.envelope.workflow_state
    remaining = [phase for phase in state.phases_remaining if phase != skipped]
    return NextState.model_validate(
        {
            "status": status,
            "agent_type": agent,
            "phase_to_execute": phase,
            "attempt": attempt,
            "degraded": [skipped] if skipped else [],
            "phases_completed": list(state.phases_completed),
            "phases_remaining": remaining,
            "progress_percentage": percentage(state.phases_completed, remaining)
            if remaining or not skipped
            else 100.0,
        }
    )


class SessionStatus(NamedTuple):
    """Progress of a session."""

    product: str = ""
    status: str = "empty"
    """`empty`, `running`, `waiting`, `failed` (a choice is due), `complete` or `aborted`."""
    agent: str = ""
    """The agent whose turn it is; empty when there is none."""
    phase: str = ""
    attempt: int = 1
    completed: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()
    """Phases that were skipped."""
    error: str = ""
    """Code of the open error."""

    @property
    def percentage(self) -> float:
        """How much of the workflow is done."""
        return 100.0 if self.status == "complete" else percentage(self.completed, self.remaining)


def standing(session: ProductSession) -> SessionStatus:
    """Return a session's progress, by its last envelope and the choice after an error."""
    if not session.sent:
        return SessionStatus()
    last = session.sent[-1]
    state = last.envelope.workflow_state
    latest = {choice.error: choice for choice in session.choices}
    skipped = dict.fromkeys(
        phase for choice in latest.values() for phase in choice.leads_to.degraded
    )
    degraded = tuple(phase for phase in skipped if phase not in state.phases_completed)
    if last.is_error:
        return _status_after_error(last, session, degraded)
    is_over = (
        not state.phases_remaining
        and last.target == "orchestrator"
        and bool(state.phases_completed)
    )
    return SessionStatus(
        product=last.envelope.product_name,
        status="complete" if is_over else "running",
        agent="" if is_over else last.target,
        phase="" if is_over else last.envelope.target_agent.phase_to_execute,
        attempt=attempts(session.sent)[last.path].number,
        completed=tuple(state.phases_completed),
        remaining=tuple(state.phases_remaining),
        degraded=degraded,
    )


def _status_after_error(
    error: Sent, session: ProductSession, degraded: tuple[str, ...]
) -> SessionStatus:
    state = error.envelope.workflow_state
    code = error.envelope.payload["error"]["code"]
    product = error.envelope.product_name
    if choice := choice_after(error, session):
        then = choice.leads_to
        completed, remaining = tuple(then.phases_completed), tuple(then.phases_remaining)
        agent, phase = then.agent_type or "", then.phase_to_execute or ""
        return SessionStatus(
            product, then.status, agent, phase, then.attempt, completed, remaining, degraded, code
        )
    completed, remaining = tuple(state.phases_completed), tuple(state.phases_remaining)
    number = attempts(session.sent)[error.path].number
    phase = _find_failed_phase(error)
    return SessionStatus(
        product, "failed", "orchestrator", phase, number, completed, remaining, degraded, code
    )


_BAR_WIDTH = 20


def progress_line(now: SessionStatus) -> str:
    """Return the dashboard's line of progress."""
    filled = int(now.percentage * _BAR_WIDTH / 100)
    total = len(now.completed) + len(now.remaining)
    parts = [
        f"{now.product} [{'#' * filled}{'-' * (_BAR_WIDTH - filled)}] {now.percentage:g} %",
        f"{len(now.completed)} of {total} phases",
        _describe_activity(now),
        f"skipped: {', '.join(now.degraded)}" if now.degraded else "",
    ]
    return ", ".join(part for part in parts if part)


def _describe_activity(now: SessionStatus) -> str:
    again = f", attempt {now.attempt}" if now.attempt > 1 else ""
    return {
        "empty": "no handoff yet",
        "running": f"{now.agent} does {now.phase}{again}",
        "waiting": f"waits for the {now.agent}: {now.error}",
        "failed": f"{now.phase} failed{again}: {now.error}",
        "complete": "complete",
        "aborted": f"aborted: {now.error}",
    }[now.status]
