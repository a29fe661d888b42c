"""What speaks against a phase: each FAIL in its evidence, and what nobody can read. Pure.

A FAIL outweighs every claim that a step or a phase is done: no skip and no sign-off overrides it.
See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.core.reasons import safe
from yolo_fs.evidence.facts import NOWHERE, STEP_OF_VERDICT, CommittedArtifact, PhaseFacts, texts
from yolo_fs.protocol.departments import Dept
from yolo_fs.protocol.gates import Decision
from yolo_fs.schemas.contradictions import Contradicted, contradicted


@dataclass(frozen=True, slots=True)
class Failure:
    """One line of the evidence that says FAIL."""

    step: str
    """Key of the step that it is evidence of."""
    what: str
    file: str
    line: int
    is_contradiction: bool = False
    """It says something else, which the evidence in the same file contradicts."""

    def __str__(self) -> str:
        return self.what


OWNERS_DECISION = "owner"
"""Pseudo-step for the Owner's decision on the phase as a whole."""
POST_PHASE = "post-phase"
"""Pseudo-step for the QA gate after the phase's plans."""


def withdrawn_from(facts: PhaseFacts, step: str, department: Dept | None = None) -> Iterator[str]:
    """Yield what spoke against a step and was taken off the branch, with nothing in its place."""
    for artifact in facts.withdrawn:
        if artifact.step == step and department in (None, artifact.department):
            again = "judged" if step in STEP_OF_VERDICT.values() else "written"
            yield f"{artifact.name} said {artifact.said} and was withdrawn: it is {again} again"


def failures_of(
    facts: PhaseFacts, step: str = "", department: Dept | None = None
) -> Iterator[Failure]:
    """Yield the failures of one step or of the whole phase, of one department or of all."""
    for kind, key in STEP_OF_VERDICT.items():
        what = "security says FAIL: the user decides" if key == "security" else f"{kind} says FAIL"
        for artifact in facts.of_kind(kind, department) if step in ("", key) else ():
            for number, line in enumerate(artifact.lines, 1):
                if line.get("r") == "FAIL":
                    yield Failure(key, what, artifact.place.name, number)
            for contradiction in contradictions_in(facts, artifact):
                sentence, at = f"{kind}: {contradiction.what}", contradiction.position + 1
                yield Failure(key, sentence, artifact.place.name, at, is_contradiction=True)
    if step in ("", "integration_gate"):
        yield from _integration(facts)
    if not step:
        yield from failing_tests(facts)
        yield from _find_owner_hold(facts)


def contradictions_in(facts: PhaseFacts, artifact: CommittedArtifact) -> Iterator[Contradicted]:
    """Yield what a verdict says against itself, unless it was signed off."""
    if not facts.is_signed(artifact.position):
        yield from contradicted(artifact.place.artifact.kind, artifact.lines)


_RESTED_ON = frozenset({
    "critique", "research", "plan", "test-plan", "summary", "test-results", "code-review",
    "verification", "qa-code", "qa-gate-results", "security-audit", "integration-gate-result",
    "po-qa-verdict", "owner-signoff", "dept-handoff", "decisions", "escalation",
})  # fmt: skip
"""Kinds that may say what holds a phase: one that cannot be read may say so as well."""


def find_unreadable(
    facts: PhaseFacts, step: str | None = None, department: Dept | None = None
) -> Iterator[ArtifactPath]:
    """Yield what the branch has and nobody can read, of one step (empty: of none) or of all.

    `department`: whose; None for all. What such a file says is not known, so it holds what rests
    on it, as a file that is not there does not. What was there at the sign-off is signed.
    """
    for artifact in sorted(facts.ask(_find_invalid), key=lambda each: each.place.path):
        place = artifact.place
        if place.phase is None or place.artifact.kind not in _RESTED_ON:
            continue
        if facts.is_signed(artifact.position):
            continue
        if step in (None, place.artifact.step) and department in (None, place.department):
            yield place


def _find_invalid(facts: PhaseFacts) -> tuple[CommittedArtifact, ...]:
    return tuple(artifact for artifact in facts.committed if not artifact.valid)


def find_holding(facts: PhaseFacts) -> Iterator[CommittedArtifact]:
    """Yield the artifacts that hold what rests on them, as they cannot be read or contradict
    themselves.
    """
    paths = {place.path for place in find_unreadable(facts)}
    for artifact in facts.committed:
        if artifact.place.path in paths or (
            artifact.valid and any(contradictions_in(facts, artifact))
        ):
            yield artifact


def unreadable(
    facts: PhaseFacts, step: str | None = None, department: Dept | None = None
) -> Iterator[str]:
    """Yield the same in words."""
    for place in find_unreadable(facts, step, department):
        yield (
            f"{place.name} is on the branch and cannot be read: 'yolo-fs validate {place.path}' "
            "says why"
        )


def _integration(facts: PhaseFacts) -> Iterator[Failure]:
    """Yield the failure of the last result, which replaces the earlier ones."""
    for artifact in facts.of_kind("integration-gate-result"):
        last = artifact._replace(lines=artifact.lines[-1:])
        says = [f": {contradiction.what}" for contradiction in contradictions_in(facts, last)]
        if any(line.get("r") == "FAIL" for line in last.lines):
            says.append(" says FAIL")
        for sentence in says:
            what = f"the integration gate{sentence}"
            yield Failure("integration_gate", what, artifact.place.name, len(artifact.lines))


def _find_owner_hold(facts: PhaseFacts) -> Iterator[Failure]:
    """The Owner's last word holds the phase, and a SHIP those departments that it leaves out; it
    opens nothing that the evidence closes. Where a Product Owner is asked, the delivery tells of
    whom it leaves out.
    """
    for artifact in facts.of_kind("owner-signoff"):
        last = artifact.lines[-1] if artifact.lines else {}
        if last.get("decision") == Decision.HOLD:
            notes = safe(str(last.get("notes") or "without a reason"))
            what = f"the Owner says HOLD: {notes}"
            yield Failure(OWNERS_DECISION, what, artifact.place.name, len(artifact.lines))
        elif last and not facts.options.config.po.enabled and (what := _leaves_out(facts, last)):
            yield Failure(OWNERS_DECISION, what, artifact.place.name, len(artifact.lines))
    for sentence in withdrawn_from(facts, OWNERS_DECISION):
        yield Failure(OWNERS_DECISION, sentence, SIGN_OFF, 0)


def _leaves_out(facts: PhaseFacts, signoff: Mapping[str, Any]) -> str:
    """Return whom the Owner does not approve, in words; empty where nobody is left out."""
    if not facts.options.several_departments:
        return ""
    approved = texts(signoff.get("departments_approved"))
    missing = [
        department.value for department in facts.options.departments if department not in approved
    ]
    return f"{SIGN_OFF} does not approve {', '.join(missing)}" if missing else ""


SIGN_OFF = "owner-signoff.jsonl"


def owner_lacks(facts: PhaseFacts) -> str:
    """Return what the Owner's delivery lacks after the Product Owner's approval; empty if nothing.

    Only a phase of several departments needs it: with one department, the Owner is go.md.
    """
    if not facts.options.several_departments:
        return ""
    signed = next(reversed(facts.of_kind("owner-signoff")), None)
    if signed is None or not signed.lines:
        return f"no {SIGN_OFF}"
    last = signed.lines[-1]
    if last.get("decision") != Decision.SHIP:
        return f"the Owner says {last.get('decision')}"
    if left_out := _leaves_out(facts, last):
        return left_out
    if signed.position != NOWHERE and any(
        facts.is_later(verdict.position, signed.position)
        for verdict in facts.of_kind("po-qa-verdict")
    ):
        return f"{SIGN_OFF} is older than po-qa-verdict.jsonl"
    return ""


def failing_tests(facts: PhaseFacts) -> Iterator[Failure]:
    """Yield each plan whose last run of tests failed."""
    last_run = {
        (artifact.place.department, line.get("plan")): (artifact.place.name, number, line)
        for artifact in facts.of_kind("test-results")
        for number, line in enumerate(artifact.lines, 1)
    }
    for (_, plan), (name, number, line) in last_run.items():
        if line.get("fl"):
            what = f"{line['fl']} tests of plan {plan} fail"
            yield Failure("implementation", what, name, number)
