"""Shapes made of classes of plain values, such as the sections of a configuration."""

from __future__ import annotations

import functools
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any

from pydantic import Field, create_model

from yolo_fs.schemas import formats
from yolo_fs.schemas.base import Shape, invariant


@functools.cache
def shape_of(kind: Any) -> type[Shape]:
    """Return a shape itself; of a class of plain values, the one with its fields and defaults."""
    if issubclass(kind, Shape):
        shape: type[Shape] = kind
        return shape
    names = {**vars(formats), **vars(sys.modules[kind.__module__])}
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
