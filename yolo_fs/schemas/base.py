"""The one door to pydantic: the base of every shape, the formats, and faults with place and
example.

A shape is a `Shape` class with a docstring under each field. `check` reports *all* faults of a
value.
"""

from __future__ import annotations

import functools
import json
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar, Union

from pydantic import AfterValidator as AfterValidator
from pydantic import BaseModel, ConfigDict, ValidationError, create_model, model_validator
from pydantic import Field as Field
from pydantic.fields import FieldInfo as FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from yolo_fs.core.ids import DEPARTMENT_MARKER, spells_git, stays_inside
from yolo_fs.core.reasons import Fault, Grade, Level, Reason, pointer_to
from yolo_fs.schemas.layout import Strictness, spelling_of


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
_MAY_LACK: Any = {"x-yolo-absent": Grade.SHOULD.value}


def may_lack() -> Any:
    """Return the field of a required key whose absence is a `should`."""
    return Field(json_schema_extra=_MAY_LACK)


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


def _require_pattern(pattern: str, example: str, meaning: str, grade: Any = None) -> Any:
    return Field(pattern=pattern, examples=[example], description=meaning, json_schema_extra=grade)


def _require_real_date(text: str) -> str:
    try:
        date.fromisoformat(text)
    except ValueError:
        message = f"{text!r} is not a valid date"
        raise fault(Reason.BAD_FORMAT, message, expected="2026-02-19", grade=Grade.SHOULD) from None
    return text


def real_instant(text: str) -> str:
    """Return the text of a moment that exists."""
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise fault(
            Reason.BAD_FORMAT, f"{text!r} is not a timestamp", expected="2026-02-19T08:00:00Z"
        ) from None
    return text


def _require_inside_path(text: str, *, grade: Grade = Grade.MUST) -> str:
    if not stays_inside(text):
        posix = text.replace("\\", "/")
        if posix != text and stays_inside(posix):
            message = f"{text!r} is not written with '/'"
            raise fault(Reason.PATH_ESCAPES, message, expected=posix, grade=grade)
        is_git = any(map(spells_git, text.split("/")))
        raise fault(
            Reason.PATH_ESCAPES,
            f"{text!r} is in a git directory" if is_git else f"{text!r} leaves the repository",
            expected="a relative POSIX path such as src/auth.ts",
            grade=grade,
        )
    return text


def _advise_inside_path(text: str) -> str:
    return _require_inside_path(text, grade=Grade.SHOULD)


def _advise_no_pattern(text: str) -> str:
    if "*" in text:
        folder = text.partition("*")[0].rpartition("/")[0]
        message = f"{text!r} is a pattern"
        expected = f"the files, or their folder{f' {folder}' if folder else ''}"
        raise fault(Reason.BAD_FORMAT, message, expected=expected, grade=Grade.SHOULD)
    return text


def _advise_no_more_than_path(text: str) -> str:
    path = text.strip(" `'\"")
    path = path.rpartition(" (")[0] if path.endswith(")") and " (" in path else path
    if path and path != text:
        message = f"{text!r} is more than a path"
        raise fault(Reason.BAD_FORMAT, message, expected=path, grade=Grade.SHOULD)
    if ", " in text:
        message, expected = f"{text!r} is more than one path", "each path as a separate member"
        raise fault(Reason.BAD_FORMAT, message, expected=expected, grade=Grade.SHOULD)
    return text


Text = Annotated[str, Field(min_length=1, examples=["a sentence"], json_schema_extra=SHOULD)]
"""A text that is not blank."""
Statement = Annotated[
    str, _require_pattern(r"\S", "Login has no rate limit", "a text that is not blank")
]
"""The text without which a record says nothing: what was found, asked or decided."""
Name = Annotated[str, _require_pattern(r"\S", "login-form", "a name")]
"""What its record is about."""
OneLine = Annotated[
    str,
    _require_pattern(
        r"^[^\r\n]*\S[^\r\n]*$", "one line of text", "one line that is not blank", SHOULD
    ),
]
Summary500 = Annotated[
    str, Field(min_length=1, max_length=499, examples=["two or three sentences"])
]
"""Fewer than 500 characters."""
ModelName = Annotated[
    str,
    _require_pattern(r"^[A-Za-z0-9][\w.:/@+\[\]-]{0,199}$", "claude-opus-4", "the name of a model"),
]
"""One word that no program takes for an option."""
Number = float
"""A whole number is a number too."""
Count = Annotated[int, Field(ge=0, examples=[3])]
Positive = Annotated[int, Field(ge=1, examples=[1])]
LineNumber = Annotated[int, Field(ge=0, examples=[12], json_schema_extra=SHOULD)]
"""Line of a file from 1; 0 for the whole file."""
Percent = Annotated[float, Field(ge=0, le=100, examples=[50])]
Fraction = Annotated[float, Field(ge=0, le=1, examples=[0.92])]
PhaseNumber = Annotated[str, _require_pattern(r"^[0-9]{2}$", "01", "phase number, two digits")]
PlanName = Annotated[str, _require_pattern(r"^[0-9]{2}-[0-9]{2}$", "01-02", "plan id NN-MM")]
TaskName = Annotated[
    str, _require_pattern(r"^T[1-9][0-9]*$", "T1", "task id within its plan", SHOULD)
]
TaskPath = Annotated[
    str,
    _require_pattern(r"^[0-9]{2}-[0-9]{2}/T[1-9][0-9]*$", "01-02/T3", "task reference NN-MM/Tk"),
]
FindingName = Annotated[str, _require_pattern(r"^C[1-9][0-9]*$", "C1", "finding id", SHOULD)]
EscalationName = Annotated[
    str,
    _require_pattern(
        rf"^ESC-{DEPARTMENT_MARKER}[0-9]{{2}}-[0-9]{{2}}-T[1-9][0-9]*$",
        "ESC-01-02-T3",
        "escalation id ESC-NN-MM-Tk",
    ),
]
Commit = Annotated[
    str, _require_pattern(r"^[0-9a-f]{7,64}$", "abc1234", "commit hash, 7 digits or more")
]
IsoDate = Annotated[
    str,
    _require_pattern(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "2026-02-19", "a day", SHOULD),
    AfterValidator(_require_real_date),
]
_INSTANT = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$"
)
IsoInstant = Annotated[
    str,
    _require_pattern(_INSTANT, "2026-02-19T08:00:00Z", "a timestamp with its time zone"),
    AfterValidator(real_instant),
]
"""A moment that is compared with others."""
NotedInstant = Annotated[
    str,
    _require_pattern(_INSTANT, "2026-02-19T08:00:00Z", "a timestamp with its time zone", SHOULD),
]
"""A moment that is only shown."""
_PATH: Any = Field(
    min_length=1, examples=["src/auth.ts"], description="relative path", json_schema_extra=SHOULD
)
RelativePath = Annotated[str, _PATH, AfterValidator(_require_inside_path)]
"""A path that is opened."""
OptionalPath = Annotated[
    str,
    Field(examples=["src/auth.ts"], description="relative path, or nothing"),
    AfterValidator(_require_inside_path),
]
NotedPath = Annotated[str, _PATH, AfterValidator(_advise_inside_path)]
"""A path that is shown, and compared with those that commits have."""
WorkPath = Annotated[
    NotedPath, AfterValidator(_advise_no_pattern), AfterValidator(_advise_no_more_than_path)
]
"""A file or folder that somebody works on: what commits change is compared with it."""

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


@functools.cache
def shape_of(kind: Any) -> type[Shape]:
    """Return a shape itself; of a class of plain values, the one with its fields and defaults."""
    if issubclass(kind, Shape):
        shape: type[Shape] = kind
        return shape
    names = {**globals(), **vars(sys.modules[kind.__module__])}
    hints = typing.get_type_hints(kind, names, include_extras=True)
    defaults = kind._field_defaults
    fields = {name: _field_of(hints[name], defaults[name]) for name in defaults}
    checks: dict[str, Any] = {}
    if contradiction := vars(kind).get("contradiction"):

        def contradict(shaped: Shape) -> object:
            return contradiction(shaped, shaped.model_fields_set)

        checks = {"contradict": invariant(contradict)}
    attributes = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__validators__": checks}
    made: type[Shape] = create_model(kind.__name__, __base__=Shape, **attributes, **fields)
    return made


_JSON_KINDS: Mapping[Any, Any] = {tuple: list, Mapping: dict}
"""Type of a plain value → type of the same in JSON."""


def _field_of(hint: Any, default: Any) -> Any:
    if hasattr(hint, "_fields"):
        return shape_of(hint), Field(default_factory=shape_of(hint))
    if kind := _JSON_KINDS.get(typing.get_origin(hint)):
        return _json_type_of(hint), Field(default_factory=functools.partial(kind, default))
    return hint, default


def _json_type_of(hint: Any) -> Any:
    kind = _JSON_KINDS.get(typing.get_origin(hint))
    parts = (_json_type_of(part) for part in typing.get_args(hint) if part is not ...)
    return types.GenericAlias(kind, tuple(parts)) if kind else hint


def check(
    shape: type[Shape], value: Mapping[str, Any], mode: Strictness = Strictness()
) -> tuple[Shape | None, tuple[Fault, ...]]:
    """Return the value as its shape, or None, with all of its faults in the order of keys."""
    keys = tuple(_find_unknown_keys(shape, value, mode))
    renames = tuple(fault for fault in keys if fault.reason is Reason.LEGACY_KEY)
    unknown = tuple(fault for fault in keys if fault.reason is not Reason.LEGACY_KEY)
    given = _renamed(shape, value) if mode.legacy else value
    try:
        shaped = shape.model_validate(given)
    except ValidationError as error:
        details = error.errors(include_url=False)
        faults = [_fault(shape, detail) for detail in details]
        faulty = [
            (detail["loc"], fault.grade is Grade.MUST)
            for detail, fault in zip(details, faults, strict=True)
        ]
        broken: list[ErrorDetails] = []
        _sound_part(shape, given, faulty, (), broken)
        faults += [_fault(shape, detail) for detail in broken]
        return None, (*renames, *_gravest(faults), *unknown)
    return shaped, renames + unknown


def _gravest(faults: Iterable[Fault]) -> Iterable[Fault]:
    """Return the faults, of those with one reason at one place the graver one."""
    found: dict[tuple[Reason, str], Fault] = {}
    for fault in faults:
        known = found.setdefault((fault.reason, fault.at), fault)
        if known.grade is Grade.SHOULD:
            found[fault.reason, fault.at] = fault
    return found.values()


_Location = tuple[str | int, ...]


def _sound_part(
    shape: type[Shape] | None,
    value: Any,
    faulty: Collection[tuple[_Location, bool]],
    at: _Location,
    broken: list[ErrorDetails],
) -> Any:
    """Return what is sound of an object, or a list of them, and add errors of its invariants.

    Pydantic looks at no invariant of an object with faults, and at none behind a broken one. Here,
    one that reads a field with a `must` fault says nothing, as the object has no such attribute.
    `faulty`: (location, whether it is a `must`).
    """
    inside: dict[str | int, list[tuple[_Location, bool]]] = {}
    for location, is_must in faulty:
        if location:
            inside.setdefault(location[0], []).append((location[1:], is_must))
    if shape and isinstance(value, list):
        return [
            _sound_part(shape, member, inside.get(index, ()), (*at, index), broken)
            for index, member in enumerate(value)
        ]
    if shape is None or not isinstance(value, Mapping):
        return value
    sound, kinds = shape.model_construct(), shapes_within(shape)
    for name, field in shape.model_fields.items():
        key = field.alias or name
        kind, below = kinds.get(key), inside.get(key, ())
        if any(is_must and (kind is None or len(rest) < 2) for rest, is_must in below):
            sound.__dict__.pop(name, None)
        elif key in value:
            sound.__dict__[name] = _sound_part(kind, value[key], below, (*at, key), broken)
    for decorator in shape.__pydantic_decorators__.model_validators.values() if faulty else ():
        try:
            decorator.func(sound)
        except PydanticCustomError as error:
            message, context = error.message(), error.context or {}
            detail = ErrorDetails(type=error.type, loc=at, msg=message, input=value, ctx=context)
            broken.append(detail)
        except AttributeError:
            continue
    return sound


_OWN_REASONS = {reason.value: reason for reason in Reason}
"""Types of the errors that `fault` raises."""

_REASON_OF_TYPE = {
    "missing": Reason.MISSING_KEY,
    "literal_error": Reason.UNKNOWN_VALUE,
    "enum": Reason.UNKNOWN_VALUE,
    "union_tag_invalid": Reason.UNKNOWN_VALUE,
    "union_tag_not_found": Reason.MISSING_KEY,
    "string_pattern_mismatch": Reason.BAD_FORMAT,
    "string_too_short": Reason.EMPTY_VALUE,
    "too_short": Reason.EMPTY_VALUE,
    "string_too_long": Reason.TOO_LONG,
    "too_long": Reason.TOO_LONG,
    "greater_than": Reason.OUT_OF_RANGE,
    "greater_than_equal": Reason.OUT_OF_RANGE,
    "less_than": Reason.OUT_OF_RANGE,
    "less_than_equal": Reason.OUT_OF_RANGE,
}


def _fault(shape: type[Shape], detail: ErrorDetails) -> Fault:
    context = detail.get("ctx", {})
    location, field, steps = _place(shape, detail["loc"])
    at = pointer_to(*location) + context.get("at", "")
    seen = detail["input"]
    if own := _OWN_REASONS.get(detail["type"]):
        grade = Grade(context["grade"])
        return Fault(own, at, context["message"], context["expected"], grade=grade)
    reason = _REASON_OF_TYPE.get(detail["type"], Reason.WRONG_TYPE)
    is_blank = isinstance(seen, str) and not seen.strip()
    if is_blank and reason in (Reason.BAD_FORMAT, Reason.UNKNOWN_VALUE):
        reason = Reason.EMPTY_VALUE
    if reason is Reason.MISSING_KEY:
        message = f"{location[-1]!r} is absent"
    elif reason is Reason.WRONG_TYPE and not isinstance(seen, (list, dict)):
        message = f"got {_JSON_NAMES.get(type(seen), 'a value')} {_shown(seen)}"
    elif detail["loc"][-1] == "[key]":
        message = f"got the key {_shown(seen)}"
    else:
        message = f"got {_shown(seen)}"
    return Fault(
        reason,
        at,
        message,
        _describe_expected(field, steps, detail),
        grade=_grade_fault(field, detail, reason),
    )


_GRADED = frozenset({Reason.EMPTY_VALUE, Reason.TOO_LONG, Reason.BAD_FORMAT, Reason.OUT_OF_RANGE})
"""Reasons of constraints beyond key, type and listed value; the field grades them."""


def _grade_fault(field: FieldInfo | None, detail: ErrorDetails, reason: Reason) -> Grade:
    """Return the grade that the field, or for a member of a list the member, gives to a fault."""
    if field is None or detail["type"] in ("literal_error", "enum"):
        return Grade.MUST
    if reason is Reason.MISSING_KEY:
        return Grade.SHOULD if may_be_absent(field) else Grade.MUST
    if reason not in _GRADED:
        return Grade.MUST
    parts = (info for part in typing.get_args(field.annotation) for info in _infos_in(part))
    own = () if isinstance(detail["loc"][-1], int) else (field,)
    return Grade.SHOULD if any(_has_extra(info, SHOULD) for info in (*own, *parts)) else Grade.MUST


def must_say_something(field: FieldInfo) -> bool:
    """Return whether an empty text is a `should` of the field."""
    return _has_extra(field, SHOULD) and field.annotation is str


def may_be_absent(field: FieldInfo) -> bool:
    """Return whether the absence of a required key is a `should`."""
    return _has_extra(field, _MAY_LACK)


def listed_values(field: FieldInfo) -> tuple[str, ...]:
    """Return the values that a field may have, where they are listed."""
    return _literals_in(field.annotation)


def is_whole(field: FieldInfo) -> bool:
    """Return whether a field takes a whole number, and no other."""
    kinds = [_unwrap_annotated(part) for part in typing.get_args(field.annotation)]
    return int in (_unwrap_annotated(field.annotation), *kinds) and float not in kinds


def _unwrap_annotated(annotation: Any) -> Any:
    is_marked = typing.get_origin(annotation) is Annotated
    return typing.get_args(annotation)[0] if is_marked else annotation


def _has_extra(info: FieldInfo, extra: Mapping[str, Any]) -> bool:
    written = info.json_schema_extra
    return isinstance(written, dict) and extra.items() <= written.items()


def _shown(value: Any) -> str:
    from yolo_fs.core.credentials import redact  # compiles patterns that few processes need

    shown = _JSON_WORDS[value] if value is None or isinstance(value, bool) else repr(value)
    text = redact(shown)  # before it is cut: a part of a credential is not recognised
    return text if len(text) <= 80 else text[:80] + "…"


_JSON_WORDS = {None: "null", True: "true", False: "false"}


def _place(
    shape: type[Shape], loc: tuple[str | int, ...]
) -> tuple[tuple[str | int, ...], FieldInfo | None, tuple[str | int, ...]]:
    """Return the real location (union branches left out), the last field on the way to it, and
    the steps below that field.
    """
    real: list[str | int] = []
    below: list[str | int] = []
    field: FieldInfo | None = None
    inside: tuple[type[Shape], ...] = (shape,)
    for part in loc:
        next_field = next((f for s in inside if (f := fields_of(s).get(str(part)))), None)
        if next_field is not None:
            field, inside = next_field, tuple(shapes_in(next_field.annotation))
            real.append(part)
            below = []
        elif not _names_a_branch(part):
            real.append(part)
            below.append(part)
    return tuple(real), field, tuple(below)


_BRANCHES = frozenset({"str", "int", "float", "bool", "constrained-str", "constrained-int"})


def _names_a_branch(part: str | int) -> bool:
    """Return whether pydantic put a union branch (a class or type name) into the location."""
    return isinstance(part, str) and (part[:1].isupper() or "[" in part or part in _BRANCHES)


def shapes_in(annotation: Any) -> Iterator[type[Shape]]:
    """Yield the shapes that an annotation names, at any depth of it."""
    if isinstance(annotation, type) and issubclass(annotation, Shape):
        yield annotation
    for part in typing.get_args(annotation):
        yield from shapes_in(part)


def _describe_expected(
    field: FieldInfo | None, steps: tuple[str | int, ...], detail: ErrorDetails
) -> str:
    """Return what a field expects, or what lies `steps` below it."""
    if field is None:
        return str(detail["msg"])
    if detail["loc"][-1] == "[key]" and detail["type"] == "literal_error":
        # of the key, not of what it maps to
        return f"one of the keys {str(detail['ctx']['expected']).replace(chr(39), '')}"
    if detail["type"] in _OF_A_WHOLE_LIST and (member := _member_type_of(field.annotation)):
        return _describe_expected_list(field, member)
    if values := _literals_in(field.annotation):
        if not isinstance(detail["input"], str) and str(detail["input"]) in values:
            return f'a text, such as "{detail["input"]}"'
        return " or ".join(", ".join(value or repr(value) for value in values).rsplit(", ", 1))
    described = _described(_member_at(field, steps))
    parts = [described.description or _kind(described.annotation)]
    if detail["type"] in _BOUNDS:
        parts.append(
            str(detail["msg"]).removeprefix("Input should be ").removeprefix("String should have ")
        )
    if described.examples:
        parts.append(f"such as {described.examples[0]}")
    elif example := _format_example(described.annotation):
        parts.append(f"such as {example}")
    return ", ".join(parts)


def _member_at(field: FieldInfo, steps: tuple[str | int, ...]) -> FieldInfo:
    """Return what a place below a field takes: of a list its member, of a map its value."""
    for step in steps:
        annotation = _strip_null(field.annotation)
        parts = typing.get_args(annotation)
        if typing.get_origin(annotation) is list and isinstance(step, int):
            field = FieldInfo.from_annotation(parts[0])
        elif typing.get_origin(annotation) in (dict, Mapping):
            field = FieldInfo.from_annotation(parts[1])
    return field


def _format_example(annotation: Any) -> str:
    """Return an object or a number that a field takes, as JSON; empty for other values."""
    example = _example_of(annotation)
    text = json.dumps(example, ensure_ascii=False)
    is_told = isinstance(example, dict | int) and not isinstance(example, bool)
    return text if is_told and len(text) <= _LONGEST_EXAMPLE else ""


_OF_A_WHOLE_LIST = frozenset({"list_type", "missing", "too_short", "too_long"})
"""Types of errors that are about a list, where the field is one, and not about a member of it."""


def _member_type_of(annotation: Any) -> Any:
    """Return the type of the members where a field is a list, or a list or null; else None."""
    parts = [part for part in typing.get_args(annotation) if part is not types.NoneType]
    if typing.get_origin(annotation) is list:
        return parts[0]
    is_optional = typing.get_origin(annotation) in (Union, types.UnionType) and len(parts) == 1
    return _member_type_of(parts[0]) if is_optional else None


def _describe_expected_list(field: FieldInfo, member: Any) -> str:
    """Return, for example, `a list of paths, such as ["src/auth.ts"]`."""
    is_needed = any(getattr(constraint, "min_length", 0) for constraint in field.metadata)
    lists = (each for each in field.examples or () if isinstance(each, list))
    example = json.dumps(next(lists, [_example_of(member)]), ensure_ascii=False)
    parts = [f"a list of {_name_in_plural(member)}", "at least one" if is_needed else ""]
    if len(example) <= _LONGEST_EXAMPLE:
        parts.append(f"such as {example}")
    return ", ".join(filter(None, parts))


_LONGEST_EXAMPLE = 320
_PLURALS = {
    "relative path": "paths",
    "commit hash, 7 digits or more": "commit hashes",
    "plan id NN-MM": "plan ids",
    "task id within its plan": "task ids",
}
"""Description of a member → what several of them are called."""


def _name_in_plural(member: Any) -> str:
    if values := _literals_in(member):
        return " or ".join(", ".join(values).rsplit(", ", 1))
    described = next((info.description for info in _infos_in(member) if info.description), "")
    if described in _PLURALS:
        return _PLURALS[described]
    plain = _unwrap_annotated(_strip_null(member))
    if isinstance(plain, type) and issubclass(plain, Shape):
        return _kind(plain).replace("an object", "objects")
    return _PLURAL_KINDS.get(plain, "values")


_PLURAL_KINDS = {str: "texts", int: "whole numbers", float: "numbers", dict: "objects"}


def _strip_null(annotation: Any) -> Any:
    parts = [part for part in typing.get_args(annotation) if part is not types.NoneType]
    is_choice = typing.get_origin(annotation) in (Union, types.UnionType)
    return parts[0] if is_choice else annotation


def _example_of(annotation: Any) -> Any:
    """Return a value that a field of this type takes."""
    annotation = _strip_null(annotation)
    if values := typing.get_args(annotation) if typing.get_origin(annotation) is Literal else ():
        return values[0]
    if examples := next((info.examples for info in _infos_in(annotation) if info.examples), None):
        return examples[0]
    plain = _unwrap_annotated(annotation)
    if isinstance(plain, type) and issubclass(plain, Shape):
        return {
            key: (field.examples or [_example_of(field.annotation)])[0]
            for key, field in fields_of(plain).items()
            if field.is_required()
        }
    kind = typing.get_origin(plain) or plain
    if kind is list:
        return [_example_of(typing.get_args(plain)[0])]
    return _PLAIN_EXAMPLES.get(kind, "a sentence")


_PLAIN_EXAMPLES: Mapping[Any, Any] = {int: 1, float: 1, bool: True, dict: {}}
_BOUNDS = frozenset(
    {"string_too_long", "greater_than_equal", "less_than_equal", "greater_than", "less_than"}
)


def _described(field: FieldInfo) -> FieldInfo:
    """Return the field itself, or what an alternative, as in `IsoDate | None`, or an item says."""
    if field.description or field.examples:
        return field
    inner = (info for part in typing.get_args(field.annotation) for info in _infos_in(part))
    return next(inner, field)


def _infos_in(annotation: Any) -> Iterator[FieldInfo]:
    if typing.get_origin(annotation) is Annotated:
        plain, *metadata = typing.get_args(annotation)
        for info in metadata:
            if isinstance(info, FieldInfo):
                info.annotation = plain
                yield info


def _literals_in(annotation: Any) -> tuple[str, ...]:
    if typing.get_origin(annotation) is Literal:
        return tuple(str(value) for value in typing.get_args(annotation))
    if typing.get_origin(annotation) in (Union, types.UnionType, list, Annotated):
        return tuple(value for part in typing.get_args(annotation) for value in _literals_in(part))
    return ()


_JSON_NAMES = {
    str: "the text",
    bool: "the value",
    int: "the number",
    float: "the number",
    types.NoneType: "the value",
}
"""Type of a value → what it is called before it is shown."""

_KIND_NAMES = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


def _kind(annotation: Any) -> str:
    origin = typing.get_origin(annotation) or annotation
    if origin in (Union, types.UnionType):
        return " or ".join(
            _kind(part) for part in typing.get_args(annotation) if part is not type(None)
        )
    if isinstance(origin, type) and issubclass(origin, Shape):
        keys = ", ".join(key for key, field in fields_of(origin).items() if field.is_required())
        return f"an object with {keys}" if keys else _KIND_NAMES[dict]
    return "any value" if origin is Any else _KIND_NAMES.get(origin, "a value of another type")


def _find_unknown_keys(
    shape: type[Shape], value: Mapping[str, Any], mode: Strictness, at: str = ""
) -> Iterator[Fault]:
    """Yield the keys that no field has, in nested objects as well."""
    keys = _keys_of(shape)
    for key, item in value.items():
        if key not in keys:
            if not shape.allows_extra or key in shape.renamed_keys:
                yield _fault_for_unknown_key(shape, key, value, at + pointer_to(key), mode)
        elif (nested := keys[key]).shape is not None:
            place = at + pointer_to(key)
            for step, object_ in _objects_in(item, keyed=nested.keyed):
                yield from _find_unknown_keys(nested.shape, object_, mode, place + step)


def shapes_within(shape: type[Shape]) -> Mapping[str, type[Shape]]:
    """Return the keys whose objects, or lists of objects, have one shape, with that shape."""
    return {
        key: nested.shape
        for key, nested in _keys_of(shape).items()
        if nested.shape is not None and not nested.keyed
    }


class _Nested(NamedTuple):
    shape: type[Shape] | None
    """The one shape that the key's objects have; None where there is none, or a choice."""
    keyed: bool
    """Whether the key maps free names to such objects."""


@functools.cache
def fields_of(shape: type[Shape]) -> Mapping[str, FieldInfo]:
    """Return key → field, as the keys are written: a field such as `from_` has another name."""
    shape.model_rebuild()  # before it, a type that is defined further down is only a name
    return {field.alias or name: field for name, field in shape.model_fields.items()}


@functools.cache
def _keys_of(shape: type[Shape]) -> dict[str, _Nested]:
    """Return the keys of a shape and what lies below each; asked for each line, made once."""
    keys = {}
    for key, field in fields_of(shape).items():
        nested = tuple(shapes_in(field.annotation))
        keys[key] = _Nested(nested[0] if len(nested) == 1 else None, _is_keyed(field.annotation))
    return keys


def _objects_in(item: Any, *, keyed: bool) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(item, list):
        yield from (
            (f"/{index}", part) for index, part in enumerate(item) if isinstance(part, dict)
        )
    elif isinstance(item, dict) and keyed:
        yield from ((pointer_to(key), part) for key, part in item.items() if isinstance(part, dict))
    elif isinstance(item, dict):
        yield "", item


def _is_keyed(annotation: Any) -> bool:
    """Return whether a field maps free names to objects."""
    parts = typing.get_args(annotation)
    return typing.get_origin(annotation) is dict or any(_is_keyed(part) for part in parts)


def _fault_for_unknown_key(
    shape: type[Shape], key: str, value: Mapping[str, Any], at: str, mode: Strictness
) -> Fault:
    if fresh := shape.renamed_keys.get(key):
        # Beside the present key, or where that may be absent, nobody misses the value.
        field = fields_of(shape)[fresh]
        is_there = fresh in value
        is_needed = field.is_required() and not may_be_absent(field) and not is_there
        return Fault(
            Reason.LEGACY_KEY,
            at,
            f"{key!r} is the old name"
            + (f" of {fresh!r}, which is there, too" if is_there else ""),
            "one of the two keys" if is_there else f"the key {fresh!r}",
            level=Level.WARNING if mode.legacy else Level.ERROR,
            grade=Grade.MUST if is_needed else Grade.SHOULD,
        )
    level = Level.ERROR if mode.strict else Level.WARNING
    meant = spellings_of(shape).get(spelling_of(key), "")
    meant = shape.renamed_keys.get(meant, meant)
    expected = f"the key {meant!r}" if meant and meant not in value else ""
    return Fault(Reason.UNKNOWN_KEY, at, f"{key!r} is not in the protocol", expected, level=level)


@functools.cache
def spellings_of(shape: type[Shape]) -> Mapping[str, str]:
    """Return the letters of each key of a shape, old ones included, with the key."""
    return {spelling_of(key): key for key in (*shape.renamed_keys, *_keys_of(shape))}


def _renamed(shape: type[Shape], value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the value with its old keys under their present names; a present key wins."""
    if shape.renamed_keys.keys().isdisjoint(value):
        return value
    fresh = {key: item for key, item in value.items() if key not in shape.renamed_keys}
    for old, new in shape.renamed_keys.items():
        if old in value:
            fresh.setdefault(new, value[old])
    return fresh
