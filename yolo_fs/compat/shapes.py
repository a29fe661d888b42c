"""What the schemas say of a line, sorted into what the reference's validators ask and what only the coordinator asks.

The contract checks the keys of a header and their types, the keys of body lines, old spellings and
ids. Everything else that the coordinator would refuse is a warning here, so that no file becomes
invalid by the change of validator.
"""

from __future__ import annotations

import os
import re
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from yolo_fs.compat.folder import Folder
from yolo_fs.edges.lines import read_lines
from yolo_fs.reasons import Finding, Level, Reason, safe
from yolo_fs.schemas.base import Fault, Record, Wire

_OF_HEADER = frozenset(
    {
        Reason.MISSING_KEY,
        Reason.WRONG_TYPE,
        Reason.LEGACY_KEY,
        Reason.BAD_FORMAT,
        Reason.UNKNOWN_VALUE,
    }
)
_OF_BODY = frozenset({Reason.MISSING_KEY, Reason.LEGACY_KEY, Reason.BAD_FORMAT})
_TASK_ID = re.compile(r"T[0-9]+")
"""Wider than ours, which begins with T1."""


def read_records(path: str) -> tuple[tuple[Record, ...], tuple[str, ...]]:
    """Return the lines of a file and what keeps others from being read. A missing last newline does not matter."""
    folder, name = os.path.split(path)
    data = Folder(folder or ".").content(name)
    if isinstance(data, Finding):
        said = (
            "File not found"
            if data.reason is Reason.FILE_MISSING
            else data.reason.sentence.capitalize()
        )
        return (), (f"{said}: {safe(path, 500)}",)
    reading = read_lines(data if data.endswith(b"\n") or not data else data + b"\n", path)
    errors = [finding for finding in reading.findings if finding.level is Level.ERROR]
    return reading.records, tuple(_unreadable(finding) for finding in errors)


def _unreadable(finding: Finding) -> str:
    if finding.reason is Reason.EMPTY_FILE:
        return "Empty file"
    said = finding.message or finding.reason.sentence
    return safe(f"Line {finding.line}: invalid JSON ({finding.reason.value}: {said})", 300)


def is_asked(fault: Fault, shape: type[Wire], value: Mapping[str, Any], *, is_header: bool) -> bool:
    """Return whether the reference's validators ask what this fault is about."""
    key = fault.at.removeprefix("/")
    if (
        fault.level is not Level.ERROR
        or "/" in key
        or fault.reason not in (_OF_HEADER if is_header else _OF_BODY)
    ):
        return False
    if key == "id" and _TASK_ID.fullmatch(str(value.get(key))):
        return False
    return fault.reason is not Reason.WRONG_TYPE or json_type(shape, key) != type_of(value.get(key))


def json_type(shape: type[Wire], key: str) -> str:
    """Return the JSON type that a key asks for, as jq names it."""
    field = next(
        (field for name, field in shape.model_fields.items() if key in (name, field.alias)), None
    )
    return _named(field.annotation) if field else "value"


def type_of(value: object) -> str:
    """Return the JSON type of a value, as jq names it."""
    return _named(type(value))


_NAMES: Sequence[tuple[type, str]] = (
    (bool, "boolean"),
    (int, "number"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
    (Wire, "object"),
    (types.NoneType, "null"),
)


def _named(annotation: Any) -> str:
    origin = typing.get_origin(annotation)
    if origin is typing.Literal:
        return "string"
    if origin is typing.Annotated:
        return _named(typing.get_args(annotation)[0])
    found = origin or annotation
    return next(
        (name for type_, name in _NAMES if isinstance(found, type) and issubclass(found, type_)),
        "value",
    )


def in_words(fault: Fault) -> str:
    """Return a fault as one sentence."""
    said = fault.message or fault.reason.sentence
    expected = f"; expected {fault.expected}" if fault.expected else ""
    return safe(f"{fault.reason.value}: {said}{expected}", 300)


def placed(name: str, line: int, fault: Fault) -> str:
    """Return a fault as one sentence with its place."""
    at = f" at {safe(fault.at)}" if fault.at else ""
    return f"{safe(name)}:{line}{at}: {in_words(fault)}"
