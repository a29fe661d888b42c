"""The shapes as JSON Schema 2020-12, one schema for each shape that a line may have. Pure.

Descriptions are the docstrings under the fields, read from the source on demand.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from yolo_fs.artifacts.catalogue import Kind, LineShape, all_kinds, artifact_of, in_words
from yolo_fs.artifacts.table import GRADES, Check
from yolo_fs.core.reasons import Reason
from yolo_fs.schemas.base import Shape
from yolo_fs.schemas.fields import shapes_in

DIALECT = "https://json-schema.org/draft/2020-12/schema"

BEYOND_JSON_SCHEMA: Mapping[Reason, str] = {
    Reason.STATE_CONFLICT: "compares two values of one object",
    Reason.TOTALS_DISAGREE: "adds numbers up",
    Reason.NAME_MISMATCH: "compares parts of two names",
    Reason.OUT_OF_RANGE: "compares two numbers of one object; a plain range is expressed",
    Reason.DUPLICATE_ID: "compares the members of a list by one key",
    Reason.UNKNOWN_REFERENCE: "looks a name up elsewhere in the object",
    Reason.SELF_REFERENCE: "compares a name with a reference",
    Reason.DEPENDENCY_CYCLE: "follows references",
    Reason.OUT_OF_LANE: "asks for the role of an agent by its name",
    Reason.PATH_ESCAPES: "takes a path apart",
    Reason.BAD_FORMAT: (
        "needs the calendar, or git's rules for branches; a plain pattern is expressed"
    ),
    Reason.EMPTY_VALUE: (
        "recognises a placeholder that was never filled in, or asks for one of several keys"
    ),
    Reason.MISSING_KEY: (
        "asks for a key because of another's value; a plain required key is expressed"
    ),
}
"""Reasons that a JSON Schema validator may miss, and why.

The schemas express every other fault of shape.
"""


def schemas_of(kind: Kind) -> dict[str, dict[str, Any]]:
    """Return the schemas of a kind: name such as `artifact/plan/header` → JSON Schema."""
    return {name: _schema(kind, line, name) for line in kind.lines if (name := _name(kind, line))}


def all_schemas() -> dict[str, dict[str, Any]]:
    """Return every schema of the catalogue by its name."""
    return {name: schema for kind in all_kinds() for name, schema in schemas_of(kind).items()}


def file_of(name: str) -> str:
    """Return the path of a schema's file, relative to the folder of all schemas."""
    return f"{name}.schema.json"


def written(schema: Mapping[str, Any]) -> str:
    """Return the text of a schema's file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _name(kind: Kind, line: LineShape) -> str:
    return f"{kind.name}/{line.name}" if line.name else kind.name


def _schema(kind: Kind, line: LineShape, name: str) -> dict[str, Any]:
    body = _described(line.shape)
    if kind.payload is not None:
        _carry(body, kind.payload)
    if kind.route is not None:
        body["allOf"] = [_build_route_schema(*kind.route)]
    if not kind.name.startswith("artifact/"):
        _leave_out_grades(body)  # nothing but an artifact is taken with warnings
    title = " ".join([kind.own_name.replace("_", " "), line.name.replace("-", " ")]).strip()
    body.pop("title", None)
    description = inspect.cleandoc(body.pop("description", ""))
    source = "" if "Source:" in description else f" Source: {kind.source}."
    return {
        "$schema": DIALECT,
        "$id": f"urn:yolo-fs:schema:{name.replace('/', ':')}:1",
        "title": title,
        "description": f"{description}{source}".strip(),
        **body,
        **_checks_of(kind),
    }


def _checks_of(kind: Kind) -> dict[str, Any]:
    """Return the checks across lines and files, each with its grade."""
    artifact = artifact_of(kind)
    if artifact is None or not artifact.checks:
        return {}
    meanings = field_docs(Check)
    rows = [
        {"check": check, "meaning": meanings[check.name], "grade": GRADES[check].value}
        for check in artifact.checks
    ]
    return {"x-yolo-checks": rows}


def _described(shape: type[Shape]) -> dict[str, Any]:
    """Return the schema of a shape with descriptions and old names, including nested shapes."""
    schema = shape.model_json_schema(by_alias=True, mode="validation")
    within = {inner.__name__: inner for inner in _shapes_within(shape)}
    for name, part in schema.get("$defs", {}).items():
        if inner := within.get(name):
            _describe(part, inner)
    _describe(schema, shape)
    _convert_ranges(schema)
    return schema


_RANGES = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}


def _convert_ranges(schema: Any) -> None:
    """Convert the range of a union of numbers to JSON Schema keywords; pydantic leaves its own."""
    if isinstance(schema, list):
        for part in schema:
            _convert_ranges(part)
    elif isinstance(schema, dict):
        for own, standard in _RANGES.items():
            if isinstance(schema.get(own), int | float):
                schema[standard] = schema.pop(own)
        for part in schema.values():
            _convert_ranges(part)


def _describe(schema: dict[str, Any], shape: type[Shape]) -> None:
    docs = field_docs(shape)
    properties = schema.get("properties", {})
    for name, field in shape.model_fields.items():
        property_ = properties[field.alias or name]
        property_.pop("title", None)
        form = property_.pop("description", "")
        described = " ".join(
            part for part in (docs.get(name, ""), f"Form: {form}." if form else "") if part
        )
        if described:
            property_["description"] = described
        if accepted := shape.accepts.get(name):
            property_["x-yolo-accepts"] = accepted.value
    for old, new in shape.renamed_keys.items():
        properties[old] = {
            "not": {},
            "deprecated": True,
            "description": f"Old name of `{new}`: refused.",
        }


def _shapes_within(shape: type[Shape]) -> Iterator[type[Shape]]:
    pending, seen = [shape], {shape}
    while pending:
        for field in pending.pop().model_fields.values():
            for inner in shapes_in(field.annotation):
                if inner not in seen:
                    seen.add(inner)
                    pending.append(inner)
                    yield inner


def _leave_out_grades(schema: Any) -> None:
    if isinstance(schema, list):
        for part in schema:
            _leave_out_grades(part)
    elif isinstance(schema, dict):
        for key in [key for key in schema if key.startswith("x-yolo-")]:
            del schema[key]
        for part in schema.values():
            _leave_out_grades(part)


def _carry(envelope: dict[str, Any], payload: type[Shape]) -> None:
    """Replace the free `payload` object of an envelope's schema with the payload's schema."""
    inner = _described(payload)
    name = "-".join(in_words(payload.__name__))
    definitions = envelope.setdefault("$defs", {})
    definitions.update(inner.pop("$defs", {}))
    inner["description"] = inspect.cleandoc(inner.get("description", ""))
    definitions[name] = inner
    envelope["properties"]["payload"] = {
        "$ref": f"#/$defs/{name}",
        "description": "What the route carries.",
    }


def _build_route_schema(source: str, target: str) -> dict[str, Any]:
    return {"properties": {"source_agent": _of_type(source), "target_agent": _of_type(target)}}


def _of_type(agent: str) -> dict[str, Any]:
    return {"properties": {"agent_type": {"const": agent}}}


@cache
def field_docs(owner: type) -> Mapping[str, str]:
    """Return the docstrings below the fields of a class and its bases."""
    docs: dict[str, str] = {}
    for base in reversed(owner.__mro__):
        if base.__module__.startswith("yolo_fs."):
            docs |= _docs_in(_class_bodies_of(base.__module__)[base.__name__])
    return docs


@cache
def _class_bodies_of(module: str) -> Mapping[str, Sequence[ast.stmt]]:
    """Return the body of each class of an imported module."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _docs_in(body: Sequence[ast.stmt]) -> dict[str, str]:
    """Return the docstring below each assignment of a class or module, joined to one line."""
    docs = {}
    for statement, after in pairwise(body):
        if (name := _assigned_name_of(statement)) and (text := _text(after)):
            docs[name] = " ".join(text.split())
    return docs


def _assigned_name_of(statement: ast.stmt) -> str:
    target = statement.target if isinstance(statement, ast.AnnAssign) else None
    if isinstance(statement, ast.Assign):
        target = statement.targets[0]  # type: ignore[assignment]
    return target.id if isinstance(target, ast.Name) else ""


def _text(statement: ast.stmt) -> str:
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    value = statement.value.value if is_text else ""  # type: ignore[attr-defined]
    return value if isinstance(value, str) else ""


def module_docs(source: str) -> Mapping[str, str]:
    """Return the docstrings below the assignments of a module's source."""
    return _docs_in(ast.parse(source).body)
