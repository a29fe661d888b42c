"""Names of departments and gates are said in the tables; code asks the rows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from yolo_fs.artifacts.table import ARTIFACTS
from yolo_fs.protocol.departments import WORKING
from yolo_fs.protocol.gates import GATES, SENTINELS, WAVE_GATES
from yolo_fs.protocol.workflow import STEPS

PACKAGE = Path(__file__).parents[2] / "yolo_fs"
TABLES = {
    "artifacts/table.py": "the table of artifacts",
    "schemas/messages/departments.py": "the table of messages between departments",
    "artifacts/corrections.py": "the table of synonyms that real agents write",
}
"""Modules outside `protocol/` that are tables themselves."""

NAMES = (
    {row.name.value for row in WORKING}
    | {row.prefix for row in WORKING if row.prefix}
    | {row.name for row in GATES}
    | {row.name for row in WAVE_GATES}
    | {row.file for row in SENTINELS}
)
LOOKED_UP = {"of_kind", "lines_of"}
"""Methods whose first argument is a kind of artifact."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(("protocol/", "demo/", "schemas/envelope/")):
            yield name, ast.parse(path.read_text())


def test_no_department_and_no_gate_is_named_outside_the_tables() -> None:
    named = [
        f"{name}:{node.lineno}: {text}"
        for name, tree in modules()
        if name not in TABLES
        for node, text in literals(tree)
        if text in NAMES or text.startswith("Dept.")
    ]

    assert named == []


def literals(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """Yield texts, and members of the enum of departments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node, node.value
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node, f"{node.value.id}.{node.attr}"


def test_every_kind_that_is_looked_up_is_a_kind() -> None:
    kinds = {row.kind for row in ARTIFACTS}
    unknown = [
        f"{name}:{call.lineno}: {kind}"
        for name, tree in modules()
        for call, kind in looked_up(tree)
        if kind not in kinds
    ]

    assert unknown == []


def looked_up(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        first = node.args[0]
        if node.func.attr in LOOKED_UP and isinstance(first, ast.Constant):
            yield node, str(first.value)


def test_every_artifact_is_of_a_step_that_exists() -> None:
    assert {row.step for row in ARTIFACTS} - {""} <= {row.key for row in STEPS}
