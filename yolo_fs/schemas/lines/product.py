"""Documents of the product layer: analysis, discovery, scope, roadmap.

The documents name few of their keys; those are required and the rest is free. See
docs/sources.md#document-002.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import Literal

from yolo_fs.reasons import Reason
from yolo_fs.schemas.base import Field, Fraction, Text, Wire, fault, invariant
from yolo_fs.schemas.names import DepartmentName


class Analysis(Wire):
    """How the Analyze agent understands a request, in `analysis.json`."""

    complexity: Literal["trivial", "medium", "high"]
    """Complexity class."""
    departments: list[DepartmentName] = Field(min_length=1)
    """Departments that the request needs."""
    intent: Text
    """Intent class."""
    confidence: Fraction
    """Confidence from 0 to 1; below 0.6 the user is asked."""
    suggested_path: Text = ""
    """Suggested route through the workflow."""
    reasoning: Text = ""
    """Why."""


class Discovery(Wire):
    """What was learned before the scope was set, in `discovery.json`: no document names a key."""


class ScopeDocument(Wire):
    """The scope that the Product Owner approved, in `scope-document.json`."""

    status: Literal["PO-APPROVED"]
    """Approval: nothing but an approved scope leaves the step."""


class RoadmapPhase(Wire):
    """One phase of the roadmap."""

    id: Text
    """Phase id."""
    depends_on: list[Text] | None = None
    """Phases that come first; absent or null for none."""
    critical: bool = False
    """The phase lies on the critical path."""


class RoadmapPlan(Wire):
    """Phases and what they depend on, in `roadmap-plan.json`."""

    phases: list[RoadmapPhase] = Field(min_length=1)
    """Phases."""

    @invariant
    def ids_are_unique(self) -> object:
        """No two phases have the same id."""
        seen: set[str] = set()
        for index, phase in enumerate(self.phases):
            if phase.id in seen:
                message = f"phase {phase.id!r} is used more than once"
                return fault(Reason.DUPLICATE_ID, message, at=f"/phases/{index}/id")
            seen.add(phase.id)
        return None

    @invariant
    def dependencies_exist(self) -> object:
        """Phases depend on phases of this roadmap."""
        known = {phase.id for phase in self.phases}
        for index, phase in enumerate(self.phases):
            for position, needed in enumerate(phase.depends_on or ()):
                if needed not in known:
                    at = f"/phases/{index}/depends_on/{position}"
                    return fault(
                        Reason.UNKNOWN_REFERENCE,
                        f"no phase {needed!r}",
                        expected=", ".join(sorted(known)),
                        at=at,
                    )
        return None

    @invariant
    def dependencies_end(self) -> object:
        """The dependencies do not run in a circle."""
        try:
            TopologicalSorter({phase.id: phase.depends_on or () for phase in self.phases}).prepare()
        except CycleError as error:
            return fault(
                Reason.DEPENDENCY_CYCLE, " needs ".join(reversed(error.args[1])), at="/phases"
            )
        return None
