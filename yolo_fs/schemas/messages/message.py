"""What every message has in common, and the catalogue in which each message enters itself.

See docs/dev/sources.md#document-000.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from yolo_fs.core.reasons import Fault, Reason
from yolo_fs.protocol.departments import WORKING_NAMES
from yolo_fs.schemas.base import Field, Shape, fault, invariant
from yolo_fs.schemas.contradictions import contradicted
from yolo_fs.schemas.formats import Text
from yolo_fs.schemas.names import DepartmentName


class Direction(StrEnum):
    """Which way a message travels through the hierarchy of document 002."""

    UP = "up"
    """Towards the report-to, or to the orchestrator."""
    DOWN = "down"
    """Towards those who report to the sender."""
    ACROSS = "across"
    """Between the Leads of two departments; the only way over that border."""
    INTERNAL = "internal"
    """Never sent: the Lead's own record."""
    ENTRY = "entry"
    """From the user into the team."""
    FORWARD = "forward"
    """From one phase to the next."""


CATALOGUE: dict[str, type[Message]] = {}
"""Type → message, in the order in which the classes were written."""

ANY = ("any",)
"""Sender or receiver where the document says "Any agent": every role of the roster."""
TEAMMATE = ("teammate",)
"""The agents that a Lead has registered in team_mode=teammate."""


class Message(Shape):
    """One JSON object that an agent sends, told from the others by its `type`.

    Roles are those of the roster without department prefix; a message stays within one department
    unless its direction is `ACROSS`, or its sender or receiver is shared (owner, orchestrator, …).
    """

    sender: ClassVar[tuple[str, ...]] = ()
    """Roles that send it."""
    receiver: ClassVar[tuple[str, ...]] = ()
    """Roles that it is meant for."""
    via: ClassVar[tuple[str, ...]] = ()
    """Roles that pass it on, in order, between sender and receiver."""
    direction: ClassVar[Direction] = Direction.UP
    sender_departments: ClassVar[tuple[str, ...]] = WORKING_NAMES
    receiver_departments: ClassVar[tuple[str, ...]] = WORKING_NAMES
    team_mode: ClassVar[str] = ""
    """The only team mode in which it occurs; empty when it occurs in each."""
    replaced_by: ClassVar[str] = ""
    """The file that says it where several departments work; empty when it is sent there as well."""

    type: str
    """Discriminator: the name of the message."""

    @classmethod
    def matches(cls, value: Mapping[str, Any]) -> bool:
        """Tell a message from bare lines in its place (docs/dev/sources.md#c09 and #c10)."""
        return "type" in value

    @invariant
    def verdict_agrees_with_the_evidence(self) -> object:
        """A verdict agrees with the counts and results beside it."""
        for contradiction in contradicted(self.type, [self.model_dump()]):
            expected = "a verdict that agrees with the evidence"
            return fault(
                Reason.STATE_CONFLICT,
                contradiction.what,
                expected=expected,
                at=contradiction.at,
                grade=contradiction.grade,
            )
        return None

    @classmethod
    def rival(cls, value: Mapping[str, Any]) -> Fault | None:
        """Return the fault of an older, rival shape of this message; None if `value` is none."""
        return None

    def __init_subclass__(
        cls,
        *,
        sender: str | tuple[str, ...] = (),
        receiver: str | tuple[str, ...] = (),
        via: str | tuple[str, ...] = (),
        direction: Direction = Direction.UP,
        sender_departments: tuple[str, ...] = WORKING_NAMES,
        receiver_departments: tuple[str, ...] = WORKING_NAMES,
        team_mode: str = "",
        replaced_by: str = "",
    ) -> None:
        super().__init_subclass__()
        cls.sender = _as_tuple(sender)
        cls.receiver = _as_tuple(receiver)
        cls.via = _as_tuple(via)
        cls.direction = direction
        cls.sender_departments = sender_departments
        cls.receiver_departments = receiver_departments
        cls.team_mode = team_mode
        cls.replaced_by = replaced_by

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        # pydantic's own form of __init_subclass__: the plain one runs before the fields are known.
        super().__pydantic_init_subclass__()
        for name in typing.get_args(cls.model_fields["type"].annotation):
            if name in CATALOGUE:
                raise TypeError(f"two messages are called {name!r}")
            CATALOGUE[name] = cls


def _as_tuple(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


Level3 = Literal["high", "medium", "low"]
"""Confidence and priority."""
RequestType = Literal["blocking", "informational"]
"""blocking: the agent cannot proceed; informational: it continues with an assumption."""
Severity = Literal["blocking", "major", "minor"]
TaskStatus = Literal["complete", "partial", "failed"]
CheckResult = Literal["PASS", "FAIL", "PARTIAL"]
AuditResult = Literal["PASS", "FAIL", "WARN"]
RoleName = Annotated[
    str,
    Field(
        pattern=r"^[a-z][a-z0-9-]*$",
        examples=["dev"],
        description="a role of the roster in lower case",
    ),
]
Texts = list[Text]
Saying = Annotated[
    str, Field(pattern=r"\S", examples=["Checked git log"], description="text that is not blank")
]
"""A text that is not blank."""
SomeTexts = Annotated[list[Saying], Field(min_length=1, description="a list of at least one text")]
Departments = list[DepartmentName]
SomeDepartments = Annotated[
    Departments,
    Field(min_length=1, description="a list of at least one department", examples=['["backend"]']),
]
Cycle = Annotated[int, Field(ge=1, le=3, examples=[1])]
"""Review cycle, 1 to 3."""


def foreign_task(task: str, plan_id: str) -> Exception | None:
    """Return the fault of a task reference `NN-MM/Tk` whose plan is not `plan_id`."""
    if not task or task.startswith(f"{plan_id}/"):
        return None
    return fault(
        Reason.STATE_CONFLICT,
        f"task {task} is not a task of plan {plan_id or '(none)'}",
        expected=task.partition("/")[0],
        at="/plan_id",
    )
