"""From verdicts to actions: commit what was accepted, report what is new. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from yolo_fs.artifacts.verdicts import (
    Accepted,
    Committed,
    Held,
    Ignored,
    Missing,
    Rejected,
    Verdict,
    Waiting,
)
from yolo_fs.core.reasons import Finding, Reason

EventSink = Callable[[str, str, Mapping[str, Any]], object]
"""Takes an event's type, the path it concerns, and its data."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit an accepted artifact in a commit of its own."""

    accepted: Accepted


@dataclass(frozen=True, slots=True)
class Emit:
    """Write an event to the journal, which agents and people follow."""

    event: str
    """Type of the event without the program's prefix, such as `artifact.rejected`."""
    path: str
    data: dict[str, Any] = field(default_factory=dict)


Action = Commit | Emit


def decide(before: Mapping[str, Verdict], seen: Mapping[str, Verdict]) -> tuple[Action, ...]:
    """Return the actions in the order seen, but plans after those that they depend on."""
    actions = [
        action
        for path, verdict in seen.items()
        for action in _decide_actions(path, before.get(path), verdict)
    ]
    slots = [at for at, action in enumerate(actions) if _has_order(action)]
    for at, action in zip(slots, _sort_by_dependencies([actions[at] for at in slots]), strict=True):
        actions[at] = action
    return tuple(actions)


def _has_order(action: Action) -> bool:
    if not isinstance(action, Commit):
        return False
    artifact = action.accepted.place.artifact
    return artifact.kind == "plan" or artifact.needs_plans


def _sort_by_dependencies(plans: Sequence[Action]) -> list[Action]:
    """Return plans in the order of their dependencies, as history needs them.

    Reviews, which may cover all plans, come after the plans of their phase.
    """
    if len(plans) < 2:  # nearly always; what follows leaves a cycle to the garbage collector
        return [*plans]
    accepted = [action.accepted for action in plans if isinstance(action, Commit)]
    by_name: dict[str, list[int]] = {}
    by_folder: dict[str, list[int]] = {}
    for index, plan in enumerate(accepted):
        by_name.setdefault(str(plan.place.plan), []).append(index)
        if plan.place.plan is not None:
            by_folder.setdefault(plan.place.folder, []).append(index)
    order: dict[int, None] = {}

    def put(index: int, asking: frozenset[int]) -> None:
        if index in order or index in asking:
            return
        for name in accepted[index].needs:
            for needed in by_name.get(name, ()):
                put(needed, asking | {index})
        if accepted[index].place.artifact.needs_plans:
            for needed in by_folder.get(accepted[index].place.folder, ()):
                put(needed, asking | {index})
        order[index] = None

    for index in range(len(accepted)):
        put(index, frozenset())
    return [plans[index] for index in order]


def _decide_actions(path: str, before: Verdict | None, now: Verdict) -> Iterator[Action]:
    if isinstance(now, Accepted):
        yield Commit(now)
    elif now != before and (event := _EVENTS.get(type(now))):
        yield Emit(event, path, describe(now))


_EVENTS: Mapping[type, str] = {
    Rejected: "artifact.rejected",
    Held: "artifact.held",
    Missing: "artifact.missing",
}


def describe(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as events and `status --json` show it."""
    reason, findings = reason_and_findings(verdict)
    return {"reason": reason.value, "findings": [finding.as_json() for finding in findings]}


def reason_and_findings(verdict: Verdict) -> tuple[Reason, Sequence[Finding]]:
    """Return why a file has the verdict, and each finding in it."""
    match verdict:
        case Rejected(findings):
            return findings[0].reason, findings
        case Held(reason, findings):
            return reason, findings
        case Waiting(reason) | Missing(reason) | Ignored(reason) | Committed(_, reason):
            return reason, ()
        case Accepted():
            return Reason.QUEUED, verdict.warnings
