"""What the fields of a shape are: their keys, the shapes, values and members that they take."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple, Union

from pydantic.fields import FieldInfo

from yolo_fs.schemas.base import MAY_LACK, SHOULD, Shape
from yolo_fs.schemas.layout import spelling_of


@functools.cache
def fields_of(shape: type[Shape]) -> Mapping[str, FieldInfo]:
    """Return key → field, as the keys are written: a field such as `from_` has another name."""
    shape.model_rebuild()  # before it, a type that is defined further down is only a name
    return {field.alias or name: field for name, field in shape.model_fields.items()}


class NestedShape(NamedTuple):
    """What lies below a key."""

    shape: type[Shape] | None
    """The one shape that the key's objects have; None where there is none, or a choice."""
    keyed: bool
    """Whether the key maps free names to such objects."""


@functools.cache
def keys_of(shape: type[Shape]) -> dict[str, NestedShape]:
    """Return the keys of a shape and what lies below each; asked for each line, made once."""
    keys = {}
    for key, field in fields_of(shape).items():
        nested = tuple(shapes_in(field.annotation))
        keys[key] = NestedShape(
            nested[0] if len(nested) == 1 else None, _is_keyed(field.annotation)
        )
    return keys


@functools.cache
def spellings_of(shape: type[Shape]) -> Mapping[str, str]:
    """Return the letters of each key of a shape, old ones included, with the key."""
    return {spelling_of(key): key for key in (*shape.renamed_keys, *keys_of(shape))}


def shapes_within(shape: type[Shape]) -> Mapping[str, type[Shape]]:
    """Return the keys whose objects, or lists of objects, have one shape, with that shape."""
    return {
        key: nested.shape
        for key, nested in keys_of(shape).items()
        if nested.shape is not None and not nested.keyed
    }


def must_say_something(field: FieldInfo) -> bool:
    """Return whether an empty text is a `should` of the field."""
    return has_extra(field, SHOULD) and field.annotation is str


def may_be_absent(field: FieldInfo) -> bool:
    """Return whether the absence of a required key is a `should`."""
    return has_extra(field, MAY_LACK)


def listed_values(field: FieldInfo) -> tuple[str, ...]:
    """Return the values that a field may have, where they are listed."""
    return literals_in(field.annotation)


def is_whole(field: FieldInfo) -> bool:
    """Return whether a field takes a whole number, and no other."""
    kinds = [unwrap_annotated(part) for part in typing.get_args(field.annotation)]
    return int in (unwrap_annotated(field.annotation), *kinds) and float not in kinds


def has_extra(info: FieldInfo, extra: Mapping[str, Any]) -> bool:
    """Return whether a field is marked so in its JSON Schema."""
    written = info.json_schema_extra
    return isinstance(written, dict) and extra.items() <= written.items()


def described_of(field: FieldInfo) -> FieldInfo:
    """Return the field itself, or what an alternative, as in `IsoDate | None`, or an item says."""
    if field.description or field.examples:
        return field
    inner = (info for part in typing.get_args(field.annotation) for info in infos_in(part))
    return next(inner, field)


def member_at(field: FieldInfo, steps: tuple[str | int, ...]) -> FieldInfo:
    """Return what a place below a field takes: of a list its member, of a map its value."""
    for step in steps:
        annotation = strip_null(field.annotation)
        parts = typing.get_args(annotation)
        if typing.get_origin(annotation) is list and isinstance(step, int):
            field = FieldInfo.from_annotation(parts[0])
        elif typing.get_origin(annotation) in (dict, Mapping):
            field = FieldInfo.from_annotation(parts[1])
    return field


def member_type_of(annotation: Any) -> Any:
    """Return the type of the members where a field is a list, or a list or null; else None."""
    parts = [part for part in typing.get_args(annotation) if part is not types.NoneType]
    if typing.get_origin(annotation) is list:
        return parts[0]
    is_optional = typing.get_origin(annotation) in (Union, types.UnionType) and len(parts) == 1
    return member_type_of(parts[0]) if is_optional else None


def shapes_in(annotation: Any) -> Iterator[type[Shape]]:
    """Yield the shapes that an annotation names, at any depth of it."""
    if isinstance(annotation, type) and issubclass(annotation, Shape):
        yield annotation
    for part in typing.get_args(annotation):
        yield from shapes_in(part)


def infos_in(annotation: Any) -> Iterator[FieldInfo]:
    """Yield what an `Annotated` says of its type: description, examples, constraints."""
    if typing.get_origin(annotation) is Annotated:
        plain, *metadata = typing.get_args(annotation)
        for info in metadata:
            if isinstance(info, FieldInfo):
                info.annotation = plain
                yield info


def literals_in(annotation: Any) -> tuple[str, ...]:
    """Return the values that a type lists, at any depth of it."""
    if typing.get_origin(annotation) is Literal:
        return tuple(str(value) for value in typing.get_args(annotation))
    if typing.get_origin(annotation) in (Union, types.UnionType, list, Annotated):
        return tuple(value for part in typing.get_args(annotation) for value in literals_in(part))
    return ()


def strip_null(annotation: Any) -> Any:
    """Return the type beside null, or the first of several, or the type itself."""
    parts = [part for part in typing.get_args(annotation) if part is not types.NoneType]
    is_choice = typing.get_origin(annotation) in (Union, types.UnionType)
    return parts[0] if is_choice else annotation


def unwrap_annotated(annotation: Any) -> Any:
    """Return the type that an `Annotated` is about, or the type itself."""
    is_marked = typing.get_origin(annotation) is Annotated
    return typing.get_args(annotation)[0] if is_marked else annotation


def _is_keyed(annotation: Any) -> bool:
    """Return whether a field maps free names to objects."""
    parts = typing.get_args(annotation)
    return typing.get_origin(annotation) is dict or any(_is_keyed(part) for part in parts)
