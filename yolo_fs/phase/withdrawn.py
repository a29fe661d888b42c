"""What an artifact says against its phase; that it is removed does not unsay it. Pure.

See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterator

from yolo_fs.escalations.fold import open_of
from yolo_fs.evidence.facts import STEP_OF_VERDICT, CommittedArtifact, PhaseFacts, Withdrawn
from yolo_fs.evidence.failures import OWNERS_DECISION, POST_PHASE, failing_tests
from yolo_fs.phase.stepgates import post_phase_failure
from yolo_fs.phase.view import View
from yolo_fs.protocol.departments import Dept
from yolo_fs.protocol.gates import Decision

MAY_SPEAK_AGAINST = frozenset({
    *STEP_OF_VERDICT, "test-results", "qa-gate-results", "escalation", "owner-signoff",
})  # fmt: skip
"""Kinds of which no rule misses the file: their steps may be skipped, or do not ask for it."""


def said_against(facts: PhaseFacts, artifact: CommittedArtifact) -> Iterator[Withdrawn]:
    """Yield what an artifact that the branch has no more said against its phase."""
    place, kind = artifact.place, artifact.place.artifact.kind
    there = facts.with_committed(artifact)
    department = Dept(place.department)

    def withdrawn(step: str, sentence: str) -> Withdrawn:
        return Withdrawn(step, department, place.path, sentence)

    last = artifact.lines[-1] if artifact.lines else {}
    if kind in STEP_OF_VERDICT and any(line.get("r") == "FAIL" for line in artifact.lines):
        yield withdrawn(STEP_OF_VERDICT[kind], "FAIL")
    elif kind == "owner-signoff" and last.get("decision") == Decision.HOLD:
        yield withdrawn(OWNERS_DECISION, Decision.HOLD)
    elif kind == "qa-gate-results" and any(post_phase_failure(View(there, None))):
        yield withdrawn(POST_PHASE, "FAIL")
    elif kind == "test-results":
        own = (each for each in failing_tests(there) if each.file == place.name)
        yield from (withdrawn("implementation", f"that {each.what}") for each in own)
    elif kind == "escalation":
        for each in open_of(there, None):
            yield Withdrawn("", each.department, place.path, f"that {each.id} is open")
