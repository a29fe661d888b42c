"""`state.json` as the evidence has it: which phase, which step, how far. Pure.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yolo_fs.protocol.workflow import STEP_BY_KEY
from yolo_fs.rules.evidence.facts import PhaseFacts
from yolo_fs.rules.phase.progress import Folded, PhaseStatus
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


def project_state(phases: Folded, before: Mapping[str, Any] | None) -> dict[str, Any] | None:
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


def claims(phases: Folded, said: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return what a `state.json` declares beyond the evidence: key → what it says, what the evidence says."""
    derived = {key: value for key, value in _derived(phases).items() if key != "tt"}
    ahead = declared_in(said, ((key, said[key]) for key in derived if key in said), derived, _rank)
    return {key: (value, derived[key]) for key, value in ahead.items()}


def current(phases: Folded) -> tuple[PhaseFacts, PhaseStatus]:
    """Return the phase that the project is at: the first that is not complete, else the last."""
    return next((one for one in phases if not one[1].is_complete), phases[-1])


def _derived(phases: Folded) -> dict[str, Any]:
    facts, progress = current(phases)
    plans = [
        plan for _, one in phases for department in one.departments for plan in department.plans
    ]
    done = sum(plan.is_done for plan in plans)
    return {
        "ph": int(facts.phase.number),
        "tt": len(phases),
        "st": "complete" if progress.is_complete else _status(progress.step),
        "step": progress.step,
        "pr": 100 * done // len(plans) if plans else 0,
    }


def _status(step: str) -> str:
    return next(status for status, steps in _STATUS.items() if step in steps)


def _begin(phases: Folded) -> str:
    moments = [filed.at_s for facts, _ in phases for filed in facts.filed if filed.commit]
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
