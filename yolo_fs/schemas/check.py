"""Whether a value has a shape: every fault with its reason, place and what was expected."""

from __future__ import annotations

import types
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from yolo_fs.core.reasons import Fault, Grade, Level, Reason, pointer_to
from yolo_fs.schemas.base import SHOULD, Shape
from yolo_fs.schemas.expectations import describe_expected
from yolo_fs.schemas.fields import (
    fields_of,
    has_extra,
    infos_in,
    keys_of,
    may_be_absent,
    shapes_in,
    shapes_within,
    spellings_of,
)
from yolo_fs.schemas.layout import Strictness, spelling_of


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
        describe_expected(field, steps, detail),
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
    parts = (info for part in typing.get_args(field.annotation) for info in infos_in(part))
    own = () if isinstance(detail["loc"][-1], int) else (field,)
    return Grade.SHOULD if any(has_extra(info, SHOULD) for info in (*own, *parts)) else Grade.MUST


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


_JSON_NAMES = {
    str: "the text",
    bool: "the value",
    int: "the number",
    float: "the number",
    types.NoneType: "the value",
}
"""Type of a value → what it is called before it is shown."""


def _find_unknown_keys(
    shape: type[Shape], value: Mapping[str, Any], mode: Strictness, at: str = ""
) -> Iterator[Fault]:
    """Yield the keys that no field has, in nested objects as well."""
    keys = keys_of(shape)
    for key, item in value.items():
        if key not in keys:
            if not shape.allows_extra or key in shape.renamed_keys:
                yield _fault_for_unknown_key(shape, key, value, at + pointer_to(key), mode)
        elif (nested := keys[key]).shape is not None:
            place = at + pointer_to(key)
            for step, object_ in _objects_in(item, keyed=nested.keyed):
                yield from _find_unknown_keys(nested.shape, object_, mode, place + step)


def _objects_in(item: Any, *, keyed: bool) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(item, list):
        yield from (
            (f"/{index}", part) for index, part in enumerate(item) if isinstance(part, dict)
        )
    elif isinstance(item, dict) and keyed:
        yield from ((pointer_to(key), part) for key, part in item.items() if isinstance(part, dict))
    elif isinstance(item, dict):
        yield "", item


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


def _renamed(shape: type[Shape], value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the value with its old keys under their present names; a present key wins."""
    if shape.renamed_keys.keys().isdisjoint(value):
        return value
    fresh = {key: item for key, item in value.items() if key not in shape.renamed_keys}
    for old, new in shape.renamed_keys.items():
        if old in value:
            fresh.setdefault(new, value[old])
    return fresh
