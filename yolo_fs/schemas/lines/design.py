"""What the UI/UX department hands over: tokens, components, flows; and the contracts between
departments.

See docs/sources.md#document-000.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from yolo_fs.schemas.base import SHOULD, Field, Form, Text, Wire

FlowName = Annotated[
    str,
    Field(
        pattern=r"^UF-[0-9]{2,}$",
        examples=["UF-01"],
        description="user flow id UF-NN",
        json_schema_extra=SHOULD,
    ),
]


class DesignToken(Wire):
    """One design token."""

    cat: Literal["color", "typography", "spacing", "elevation", "motion"]
    """Category."""
    name: Text
    """Name."""
    val: Text
    """Value."""
    sem: Text
    """Semantics: what the token is for."""
    dk: str = ""
    """Value in dark mode; empty when it is the same."""


class ComponentSpec(Wire):
    """One component."""

    accepts: ClassVar[Mapping[str, Form]] = {"tokens": Form.OBJECT_AS_TEXT}

    id: Text = ""
    """Id, by which a contract may point at the component."""
    name: Text
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


class UserFlowLine(Wire):
    """One way of a user through the product."""

    id: FlowName
    """Flow id."""
    name: Text
    """Name."""
    steps: list[Any] = Field(min_length=1, json_schema_extra=SHOULD)
    """Steps."""
    err: list[Any]
    """What can go wrong, and where it leads."""
    entry: Text
    """Where it begins."""
    exit: Text
    """Where it ends."""


class ComponentHandoff(Wire):
    """The handoff of one component."""

    component: Text
    """Component."""
    status: Literal["ready", "delivered"]
    """Status."""


class EndpointContract(Wire):
    """A contract about one endpoint."""

    endpoint: Text
    """Method and path."""
    status: Literal["proposed", "agreed", "implemented", "disputed"]
    """Status; only agreed and implemented let the gate pass."""
