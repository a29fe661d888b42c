"""What the gates of the table need: each member of `Need` bound to its predicate.

A sentinel file never opens anything here; it is a cache for others, bound to the evidence it rests
on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from yolo_fs.protocol.gates import (
    Need,
)
from yolo_fs.rules.phase.gateview import GateView, MissingEvidence

AGREED = frozenset({"agreed", "implemented"})
READY = frozenset({"complete", "ready", "delivered", "deferred"})
"""What a design handoff, or one of its components, says when nobody has to wait for it
(docs/sources.md#c09)."""


def ux_said_complete(view: GateView) -> Iterator[MissingEvidence]:
    """The sentinel stands for this: every handed-over component is ready, and the handoff says so."""
    for number, line in enumerate(view.facts.lines_of("design-handoff"), 1):
        if line.get("status") not in READY:
            name = line.get("component", "the design handoff")
            yield MissingEvidence(
                f"{name} is {line.get('status')}", "design-handoff.jsonl", number, SHOW
            )


def _design_handoff(view: GateView) -> Iterator[MissingEvidence]:
    yield from _committed(view, "design-handoff")


def _design_tokens(view: GateView) -> Iterator[MissingEvidence]:
    yield from _committed(view, "design-tokens")


def component_specs(view: GateView) -> Iterator[MissingEvidence]:
    yield from _committed(view, "component-specs")
    for number, line in enumerate(view.facts.lines_of("component-specs"), 1):
        if line.get("status") not in READY:
            yield MissingEvidence(
                f"{line.get('name')} is {line.get('status')}", "component-specs.jsonl", number, SHOW
            )


def contract_agreed(view: GateView) -> Iterator[MissingEvidence]:
    lines = view.facts.lines_of("api-contracts")
    if not any(line.get("status") in AGREED for line in lines):
        yield MissingEvidence(
            "no contract is agreed",
            "api-contracts.jsonl",
            0,
            VALIDATE.format("api-contracts.jsonl"),
        )
    in_force = {_contract(line): (number, line) for number, line in enumerate(lines, 1)}
    for name, (number, line) in in_force.items():
        if line.get("status") not in AGREED:
            yield MissingEvidence(
                f"{name} is {line.get('status')}", "api-contracts.jsonl", number, SHOW
            )


def _contract(line: Mapping[str, Any]) -> str:
    """Return what a contract line is about, so that a later line about the same replaces it."""
    if endpoint := line.get("endpoint"):
        return str(endpoint)
    endpoints = [
        f"{item.get('method')} {item.get('path')}"
        for item in line.get("endpoints") or ()
        if isinstance(item, dict)
    ]
    return ", ".join(sorted(endpoints)) or "the contract"


def all_departments(view: GateView) -> Iterator[MissingEvidence]:
    for department in view.progress.departments:
        current = department.current
        if current is not None:
            why = "; ".join(current.missing[:3]) or "nothing of it is there"
            what = f"{department.department} is at {current.step.key}: {why}"
            yield MissingEvidence(what, ", ".join(current.step.outputs), 0, "yolo-fs status")


def _each_has_a_summary(view: GateView) -> Iterator[MissingEvidence]:
    for department in view.progress.departments:
        if not view.facts.of_kind("summary", department.department):
            yield MissingEvidence(
                f"{department.department} has no summary",
                "NN-MM.summary.jsonl",
                0,
                "yolo-fs status",
            )


def _committed(view: GateView, kind: str) -> Iterator[MissingEvidence]:
    if not view.facts.of_kind(kind):
        yield MissingEvidence(
            f"no valid {kind}.jsonl is committed",
            f"{kind}.jsonl",
            0,
            VALIDATE.format(f"{kind}.jsonl"),
        )


SHOW = "yolo-fs status"
VALIDATE = "yolo-fs validate {}"

NEEDS: Mapping[Need, Callable[[GateView], Iterator[MissingEvidence]]] = {
    Need.UX_SENTINEL: ux_said_complete,
    Need.DESIGN_HANDOFF: _design_handoff,
    Need.DESIGN_TOKENS: _design_tokens,
    Need.COMPONENT_SPECS: component_specs,
    Need.CONTRACT_AGREED: contract_agreed,
    Need.SOME_STATUS: lambda _: iter(()),
    Need.ALL_COMPLETE: all_departments,
    Need.SOME_SUMMARY: _each_has_a_summary,
}
"""`SOME_STATUS` asks for a file that is a projection of what `ALL_COMPLETE` looks at directly."""

KINDS: Mapping[Need, tuple[str, ...]] = {
    Need.DESIGN_HANDOFF: ("design-handoff",),
    Need.DESIGN_TOKENS: ("design-tokens",),
    Need.COMPONENT_SPECS: ("component-specs",),
    Need.CONTRACT_AGREED: ("api-contracts",),
    Need.ALL_COMPLETE: ("code-review", "security-audit", "verification"),
    Need.SOME_SUMMARY: ("summary",),
}
