"""`state.json` as the evidence has it: which phase, which step, how far. Pure.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yolo_fs.protocol.workflow import STEP_BY_KEY
from yolo_fs.rules.phase.phase import Phase, Phases
from yolo_fs.rules.states.checksum import declared_in, renewed
from yolo_fs.rules.timestamps import day

NO_MILESTONE = "default"
_STATUS = {
    "planning": ("po", "critique", "research", "architecture", "planning"),
    "executing": ("design_review", "test_authoring", "implementation"),
    "verifying": (
        "code_review",
        "documentation",
        "qa",
        "security",
        "signoff",
        "integration_gate",
        "delivery",
    ),
}
"""What the project does while a phase is at a step."""


def project_state(phases: Phases, before: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the content of `state.json`; None when it says already what the evidence says, or there is no phase.

    A file in which somebody declares more than the evidence bears out is left as it is, and shown as drift: a Lead
    who signs off writes it moments before the rest of the evidence is there.
    """
    old = dict(before or {})
    if not phases or claims(phases, old):
        return None
    derived = _derived(phases)
    derived["tt"] = max(
        derived["tt"], int(_rank("tt", old.get("tt")))
    )  # a roadmap knows of phases yet to begin
    first = {
        "ms": old.get("ms") or NO_MILESTONE,
        **derived,
        "started": old.get("started") or _begin(phases),
    }
    return renewed(before, first | {key: value for key, value in old.items() if key not in first})


def claims(phases: Phases, said: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return what a `state.json` declares beyond the evidence: key → what it says, what the evidence says."""
    derived = {key: value for key, value in _derived(phases).items() if key != "tt"}
    ahead = declared_in(said, ((key, said[key]) for key in derived if key in said), derived, _rank)
    return {key: (value, derived[key]) for key, value in ahead.items()}


def current(phases: Phases) -> Phase:
    """Return the phase that the project is at: the first that is not complete, else the last."""
    return next((one for one in phases if not one.is_complete), phases[-1])


def summary_line(phases: Phases) -> str:
    """Return the phase, its step and percentage, and who is next, for a status line; empty without a phase."""
    if not phases:
        return ""
    progress = current(phases).progress
    if progress.is_complete:
        return f"{progress.phase} complete"
    turn = f", next {progress.next.agent}" if progress.next else ""
    return f"{progress.phase} {progress.step} {progress.percent}%{turn}"


def _derived(phases: Phases) -> dict[str, Any]:
    phase = current(phases)
    plans = [
        plan
        for one in phases
        for department in one.progress.departments
        for plan in department.plans
    ]
    done = sum(plan.is_done for plan in plans)
    return {
        "ph": int(phase.id.number),
        "tt": len(phases),
        "st": "complete" if phase.is_complete else _status(phase.progress.step),
        "step": phase.progress.step,
        "pr": 100 * done // len(plans) if plans else 0,
    }


def _status(step: str) -> str:
    return next(status for status, steps in _STATUS.items() if step in steps)


def _begin(phases: Phases) -> str:
    moments = [filed.at_s for phase in phases for filed in phase.facts.filed if filed.commit]
    return day(min(moments, default=0))


def _rank(key: str, value: object) -> float:
    """Return how far a value is: numbers by themselves, words by their order in the protocol; -1 for anything else."""
    order = _ORDER.get(key)
    if order is not None:
        return order.index(value) if value in order else -1
    return value if isinstance(value, int | float) else -1


_ORDER: Mapping[str, tuple[object, ...]] = {
    "st": (*_STATUS, "complete"),
    "step": tuple(STEP_BY_KEY),
}
