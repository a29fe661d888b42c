"""Committed evidence that says FAIL: it outweighs whatever else says that a step or a phase is
done. Pure.

The most pessimistic evidence wins: no skip and no sign-off goes past it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from yolo_fs.protocol.gates import Decision
from yolo_fs.protocol.names import Dept
from yolo_fs.reasons import safe
from yolo_fs.rules.evidence.facts import PhaseFacts
from yolo_fs.schemas.contradictions import contradicted


@dataclass(frozen=True, slots=True)
class Failure:
    """One line of the evidence that says FAIL."""

    step: str
    """Key of the step that it is evidence of."""
    what: str
    file: str
    line: int

    def __str__(self) -> str:
        return self.what


OWNERS_DECISION = "owner"
"""In place of a step: what the Owner decided of the phase as a whole."""

_VERDICTS = (
    ("qa", "verification", "verification says FAIL"),
    ("qa", "qa-code", "qa-code says FAIL"),
    ("security", "security-audit", "security says FAIL: the user decides"),
)
"""Key of the step, kind of its verdict, and how its failure is told."""


def failures_of(
    facts: PhaseFacts, step: str = "", department: Dept | None = None
) -> Iterator[Failure]:
    """Yield what fails: of one step, or of the whole phase; of one department, or of all."""
    for key, kind, what in _VERDICTS:
        for filed in facts.of_kind(kind, department) if step in ("", key) else ():
            for number, line in enumerate(filed.lines, 1):
                if line.get("r") == "FAIL":
                    yield Failure(key, what, filed.place.name, number)
            for one in contradicted(kind, filed.lines):
                yield Failure(key, f"{kind}: {one.what}", filed.place.name, one.position + 1)
    if step in ("", "integration_gate"):
        yield from _integration(facts)
    if not step:
        yield from failing_tests(facts)
        yield from _held_by_owner(facts)


def _integration(facts: PhaseFacts) -> Iterator[Failure]:
    """The last result is the one in force."""
    for filed in facts.of_kind("integration-gate-result"):
        if filed.lines and filed.lines[-1].get("r") == "FAIL":
            what = "the integration gate says FAIL"
            yield Failure("integration_gate", what, filed.place.name, len(filed.lines))


def _held_by_owner(facts: PhaseFacts) -> Iterator[Failure]:
    """The Owner's last word holds the phase; a SHIP opens nothing that the evidence closes."""
    for filed in facts.of_kind("owner-signoff"):
        if filed.lines and filed.lines[-1].get("decision") == Decision.HOLD:
            notes = safe(str(filed.lines[-1].get("notes") or "without a reason"))
            what = f"the Owner says HOLD: {notes}"
            yield Failure(OWNERS_DECISION, what, filed.place.name, len(filed.lines))


def failing_tests(facts: PhaseFacts) -> Iterator[Failure]:
    """Yield each plan whose last run of tests failed."""
    last_run = {
        line.get("plan"): (filed.place.name, number, line)
        for filed in facts.of_kind("test-results")
        for number, line in enumerate(filed.lines, 1)
    }
    for plan, (name, number, line) in last_run.items():
        if line.get("fl"):
            what = f"{line['fl']} tests of plan {plan} fail"
            yield Failure("implementation", what, name, number)
