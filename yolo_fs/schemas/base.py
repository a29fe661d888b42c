"""The base of every shape, and the faults that its validators raise.

A shape is a `Shape` class with a docstring under each field; `check.check` reports *all* faults of
a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, ClassVar, TypeVar

from pydantic import AfterValidator as AfterValidator
from pydantic import BaseModel, ConfigDict, model_validator
from pydantic import Field as Field
from pydantic.fields import FieldInfo as FieldInfo
from pydantic_core import PydanticCustomError

from yolo_fs.core.reasons import Grade, Reason


class Form(Enum):
    """Another form of a value that says the same as the documented one; the value is what people
    read.

    `artifacts.forms` binds each to the function that reads it.
    """

    OBJECT_AS_TEXT = "an object, a number or a list of texts, in place of a text"
    OBJECT_AS_PATH = "an object whose `path`, or `file`, is meant"
    TEXT_AS_ARTIFACT = "a text in place of an object; it is kept as `pv`"
    TEXT_AS_LINK = "a text in place of an object; it is kept as `vi`"
    TEXT_AS_DEPENDENCY = "`NN-MM` in place of an object with `p` and `n`"
    SHORT_PLAN = "`01`, 1 or a file name in place of `NN-01`, for a plan of the same phase"
    PHASE = "`1`, `phase-1` or the directory's name in place of `01`"
    NAMED_COMMIT = "a hash with its subject behind it, or an object that has one"
    SEVERAL_PLANS = "`NN-*`, or several plan ids: the review is of each of these plans"
    OWN_PHASE = "another spelling of the phase, or the plan id, that agrees with the file's name"
    OWN_PLAN = "another spelling of the plan that agrees with the file's name, or its title"
    LONG_TASK = "`NN-MM/Tk` in place of `Tk`, for a task of the same plan"
    MOMENT_AS_DAY = "a moment, or another spelling, in place of a day"
    DAY_AS_MOMENT = "a day, or a moment without its zone: read as UTC"
    SHARE_AS_PERCENT = "a share below 1, or a fraction, in place of whole percent"


class Shape(BaseModel):
    """The base of every shape: strict types, frozen, unknown keys kept."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, defer_build=True)

    renamed_keys: ClassVar[Mapping[str, str]] = {}
    """Old key → present key, as found in real planning trees."""

    accepts: ClassVar[Mapping[str, Form]] = {}
    """Key → another form of its value, or of the members of its list, that artifacts may use."""

    allows_extra: ClassVar[bool] = False
    """Further keys are the writer's own: only those that the protocol names are checked."""

    @classmethod
    def matches(cls, value: Mapping[str, Any]) -> bool:
        """Return whether a record is meant to have this shape, of several that a line may have."""
        return True


def build_shapes(base: type[Shape] = Shape) -> None:
    """Build every shape that is imported; else each costs milliseconds at its first use."""
    for shape in base.__subclasses__():
        shape.model_rebuild()
        build_shapes(shape)


SHOULD: Any = {"x-yolo-grade": Grade.SHOULD.value}
"""Marks the constraints of a field beyond its type as `should`, here and in JSON Schema."""
MAY_LACK: Any = {"x-yolo-absent": Grade.SHOULD.value}


def may_lack() -> Any:
    """Return the field of a required key whose absence is a `should`."""
    return Field(json_schema_extra=MAY_LACK)


def fault(
    reason: Reason, message: str, *, expected: str = "", at: str = "", grade: Grade = Grade.MUST
) -> PydanticCustomError:
    """Return the error that a validator raises so that `check` reports `reason` at `at`.

    `at` is a JSON pointer relative to the validated value, for invariants of a whole object.
    """
    context = {"message": message, "expected": expected, "at": at, "grade": grade.value}
    return PydanticCustomError(reason.value, "{message}", context)


def exceeds(shape: Shape, part: str, whole: str, grade: Grade = Grade.MUST) -> Exception | None:
    """Return the fault of a count that is larger than the count it is a part of."""
    seen, limit = getattr(shape, part), getattr(shape, whole)
    if seen <= limit:
        return None
    message = f"{part} is {seen}, {whole} only {limit}"
    at, expected = f"/{part}", f"at most {whole}"
    return fault(Reason.TOTALS_DISAGREE, message, expected=expected, at=at, grade=grade)


_Checked = TypeVar("_Checked", bound=Shape)


def invariant(check_: Callable[[_Checked], object]) -> Any:
    """Mark a method as an invariant of the whole object: it returns a `fault(…)` or None."""

    def run(self: _Checked) -> _Checked:
        if isinstance(broken := check_(self), Exception):
            raise broken
        return self

    run.__name__ = check_.__name__
    run.__doc__ = check_.__doc__
    return model_validator(mode="after")(run)
