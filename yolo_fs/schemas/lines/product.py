"""What the product layer and the UI/UX department hand over: analysis, discovery, scope, roadmap;
tokens, components, flows; and the contracts between departments.

The documents name few of the product layer's keys; those are required and the rest is free. See
docs/dev/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, ClassVar, Literal

from yolo_fs.core.reasons import Reason
from yolo_fs.schemas.base import SHOULD, Field, Form, Shape, fault, invariant
from yolo_fs.schemas.formats import Fraction, Name, Text
from yolo_fs.schemas.names import DepartmentName

FlowName = Annotated[
    str,
    Field(
        pattern=r"^UF-[0-9]{2,}$",
        examples=["UF-01"],
        description="user flow id UF-NN",
        json_schema_extra=SHOULD,
    ),
]


class DesignToken(Shape):
    """One design token."""

    cat: Literal["color", "typography", "spacing", "elevation", "motion"]
    """Category."""
    name: Name
    """Name."""
    val: Name
    """Value."""
    sem: Text
    """Semantics: what the token is for."""
    dk: str = ""
    """Value in dark mode; empty when it is the same."""


class ComponentSpec(Shape):
    """One component."""

    accepts: ClassVar[Mapping[str, Form]] = {"tokens": Form.OBJECT_AS_TEXT}

    id: Text = ""
    """Id, by which a contract may point at the component."""
    name: Name
    """Name."""
    desc: Text
    """What it does."""
    states: list[Any]
    """States that it can be in."""
    props: list[Any]
    """Properties that it takes."""
    tokens: list[Text]
    """Design tokens that it uses."""
    a11y: dict[str, Any]
    """Accessibility: roles, labels, keyboard."""
    status: Literal["ready", "draft", "deferred"]
    """Whether it may be built."""


class UserFlowLine(Shape):
    """One way of a user through the product."""

    id: FlowName
    """Flow id."""
    name: Name
    """Name."""
    steps: list[Any] = Field(min_length=1, json_schema_extra=SHOULD)
    """Steps."""
    err: list[Any]
    """What can go wrong, and where it leads."""
    entry: Text
    """Where it begins."""
    exit: Text
    """Where it ends."""


class ComponentHandoff(Shape):
    """The handoff of one component."""

    component: Name
    """Component."""
    status: Literal["ready", "delivered"]
    """Status."""


class EndpointContract(Shape):
    """A contract about one endpoint."""

    endpoint: Name
    """Method and path."""
    status: Literal["proposed", "agreed", "implemented", "disputed"]
    """Status; only agreed and implemented let the gate pass."""


class Analysis(Shape):
    """How the Analyze agent understands a request, in `analysis.json`."""

    complexity: Literal["trivial", "medium", "high"]
    """Complexity class."""
    departments: list[DepartmentName] = Field(min_length=1)
    """Departments that the request needs."""
    intent: Name
    """Intent class."""
    confidence: Fraction
    """Confidence from 0 to 1; below 0.6 the user is asked."""
    suggested_path: Text = ""
    """Suggested route through the workflow."""
    reasoning: Text = ""
    """Why."""


class Discovery(Shape):
    """What was learned before the scope was set, in `discovery.json`: no document names a key."""

    allows_extra: ClassVar[bool] = True


class ScopeDocument(Shape):
    """The scope that the Product Owner approved, in `scope-document.json`."""

    allows_extra: ClassVar[bool] = True

    status: Literal["PO-APPROVED"]
    """Approval: nothing but an approved scope leaves the step."""


class RoadmapPhase(Shape):
    """One phase of the roadmap."""

    allows_extra: ClassVar[bool] = True

    id: Name
    """Phase id."""
    depends_on: list[Text] | None = None
    """Phases that come first; absent or null for none."""
    critical: bool = False
    """Whether the phase is on the critical path."""


class RoadmapPlan(Shape):
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
