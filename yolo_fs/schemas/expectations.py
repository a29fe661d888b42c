"""What a field expects, in words and with an example, for whoever wrote something else."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, Union

from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from yolo_fs.schemas.base import Shape
from yolo_fs.schemas.fields import (
    described_of,
    fields_of,
    infos_in,
    literals_in,
    member_at,
    member_type_of,
    strip_null,
    unwrap_annotated,
)


def describe_expected(
    field: FieldInfo | None, steps: tuple[str | int, ...], detail: ErrorDetails
) -> str:
    """Return what a field expects, or what lies `steps` below it."""
    if field is None:
        return str(detail["msg"])
    if detail["loc"][-1] == "[key]" and detail["type"] == "literal_error":
        # of the key, not of what it maps to
        return f"one of the keys {str(detail['ctx']['expected']).replace(chr(39), '')}"
    if detail["type"] in _OF_A_WHOLE_LIST and (member := member_type_of(field.annotation)):
        return _describe_expected_list(field, member)
    if values := literals_in(field.annotation):
        if not isinstance(detail["input"], str) and str(detail["input"]) in values:
            return f'a text, such as "{detail["input"]}"'
        return " or ".join(", ".join(value or repr(value) for value in values).rsplit(", ", 1))
    described = described_of(member_at(field, steps))
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


def _format_example(annotation: Any) -> str:
    """Return an object or a number that a field takes, as JSON; empty for other values."""
    example = _example_of(annotation)
    text = json.dumps(example, ensure_ascii=False)
    is_told = isinstance(example, dict | int) and not isinstance(example, bool)
    return text if is_told and len(text) <= _LONGEST_EXAMPLE else ""


_OF_A_WHOLE_LIST = frozenset({"list_type", "missing", "too_short", "too_long"})
"""Types of errors that are about a list, where the field is one, and not about a member of it."""


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
    if values := literals_in(member):
        return " or ".join(", ".join(values).rsplit(", ", 1))
    described = next((info.description for info in infos_in(member) if info.description), "")
    if described in _PLURALS:
        return _PLURALS[described]
    plain = unwrap_annotated(strip_null(member))
    if isinstance(plain, type) and issubclass(plain, Shape):
        return _kind(plain).replace("an object", "objects")
    return _PLURAL_KINDS.get(plain, "values")


_PLURAL_KINDS = {str: "texts", int: "whole numbers", float: "numbers", dict: "objects"}


def _example_of(annotation: Any) -> Any:
    """Return a value that a field of this type takes."""
    annotation = strip_null(annotation)
    if values := typing.get_args(annotation) if typing.get_origin(annotation) is Literal else ():
        return values[0]
    if examples := next((info.examples for info in infos_in(annotation) if info.examples), None):
        return examples[0]
    plain = unwrap_annotated(annotation)
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
