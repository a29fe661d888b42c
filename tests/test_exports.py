"""What is generated is fresh, and the exported schemas judge as the program does wherever JSON Schema can."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator

from tests.examples import kind_of_example
from tests.fuzz import mutations
from yolo_fs.artifacts.catalogue import Kind, all_kinds, artifact_of, find_kind
from yolo_fs.artifacts.export import BEYOND_JSON_SCHEMA, field_docs, schemas_of
from yolo_fs.core.reasons import Fault, Finding, Level, Reason
from yolo_fs.schemas.check import check
from yolo_fs.schemas.layout import Format, Strictness
from yolo_fs.system.readers import read_lines, read_object

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "fixtures" / "examples"
SCHEMAS = dict(mutations.schemas())
"""As the files say, which the first test holds to the program."""
VALIDATORS = {name: Draft202012Validator(schema) for name, schema in SCHEMAS.items()}


@pytest.fixture(scope="module")
def docs() -> ModuleType:
    return importlib.import_module("tools.generate_docs")


# --- freshness -------------------------------------------------------------------------------------------------------


def test_generated_files_are_fresh(docs: ModuleType) -> None:
    assert docs.stale() == [], "run tools/docs"


def test_changed_missing_and_superfluous_files_are_stale(docs: ModuleType, tmp_path: Path) -> None:
    for path, text in docs.generated().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    assert docs.stale(tmp_path) == []
    (tmp_path / "docs/cli.md").write_text("old")
    (tmp_path / "schemas/config.schema.json").unlink()
    (tmp_path / "schemas/gone.schema.json").write_text("{}")
    assert sorted(docs.stale(tmp_path)) == [
        "docs/cli.md",
        "schemas/config.schema.json",
        "schemas/gone.schema.json",
    ]


def test_every_table_of_the_protocol_is_in_the_document(docs: ModuleType) -> None:
    text = docs.protocol()
    for module in (ROOT / "yolo_fs" / "protocol").glob("*.py"):
        assert module.stem in (*docs.CHAPTERS, "__init__")
    for anchor in (
        "roster-roster",
        "workflow-steps",
        "escalation-escalations",
        "isolation-scopes",
        "gates-gates",
        "handoffs-triggers",
        "workflow-commits",
        "handoffs-storage",
        "hooks-git-hooks",
    ):
        assert f'<a id="{anchor}"></a>' in text


def test_tables_of_markdown_have_as_many_cells_in_each_row(docs: ModuleType) -> None:
    for text in (docs.protocol(), docs.schema_tables()):
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1, (
                table
            )


# --- the schemas -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema_is_valid_and_names_itself(name: str) -> None:
    schema = SCHEMAS[name]
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:yolo-fs:schema:{name.replace('/', ':')}:1"
    assert schema["title"]
    assert "Source:" in schema["description"]


def _undescribed(schema: dict[str, Any], at: str) -> Iterator[str]:
    for key, value in schema.get("properties", {}).items():
        if "description" not in value:
            yield f"{at}/{key}"
    for name, part in schema.get("$defs", {}).items():
        yield from _undescribed(part, f"{at}/{name}")


def test_every_key_is_described() -> None:
    assert [key for name, schema in SCHEMAS.items() for key in _undescribed(schema, name)] == []


def test_every_kind_of_json_has_a_schema() -> None:
    without = {kind.name for kind in all_kinds() if not schemas_of(kind)}
    assert without == {
        kind.name for kind in all_kinds() if kind.format in (Format.TOON, Format.TEXT)
    }
    assert len(SCHEMAS) == sum(len(kind.lines) for kind in all_kinds())


def test_docstring_of_a_base_counts_unless_it_is_written_anew() -> None:
    kind = find_kind("artifact/plan")
    assert kind is not None
    header = kind.lines[0].shape
    assert field_docs(header)["mh"] == "Must-haves."
    assert field_docs(header)["t"] == "Title."


# --- parity ----------------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """One record of one example, and what the two say about it."""

    place: str
    faults: tuple[Fault, ...]
    is_valid: bool


def _cases(kind: Kind, path: Path) -> Iterator[Case]:
    read = read_object if kind.format is Format.JSON else read_lines
    records = read(path.read_bytes(), path.name).records
    for record in records:
        place = f"{path.relative_to(EXAMPLES)}:{record.line}"
        if artifact := artifact_of(kind):
            shape = artifact.shape_of(
                record.value, position=record.line - 1, first=records[0].value
            )
            names = [
                f"{kind.name}/{line.name}".rstrip("/") for line in kind.lines if line.shape is shape
            ]
            if shape is None or not names:  # a rival shape, which exists to be refused
                continue
            name, faults = names[0], check(shape, record.value)[1]
        else:
            name, faults = (
                kind.name,
                tuple(fault for _, fault in kind.faults([record], Strictness())),
            )
        errors = tuple(fault for fault in faults if fault.level is Level.ERROR)
        yield Case(place, errors, VALIDATORS[name].is_valid(record.value))


@cache
def all_cases() -> list[Case]:
    """Return every record of every example; only who asks pays for it."""
    found = []
    for path in sorted(EXAMPLES.glob("*/*/*/*")):
        kind = kind_of_example(path)
        if kind.format in (Format.JSON, Format.JSONL):
            found += _cases(kind, path)
    return found


def test_schema_accepts_whatever_the_program_accepts() -> None:
    assert len(all_cases()) > 900
    assert [case.place for case in all_cases() if not case.faults and not case.is_valid] == []


def test_schema_refuses_whatever_the_program_refuses_and_json_schema_can_say() -> None:
    missed = [case for case in all_cases() if case.faults and case.is_valid]
    assert [
        case.place
        for case in missed
        if {fault.reason for fault in case.faults} - BEYOND_JSON_SCHEMA.keys()
    ] == []
    assert {fault.reason for case in missed for fault in case.faults} == set(BEYOND_JSON_SCHEMA)


def test_schemas_refuse_most_bad_records() -> None:
    bad = [case for case in all_cases() if case.faults]
    assert sum(not case.is_valid for case in bad) / len(bad) > 0.8


def test_old_key_is_refused_by_the_schema_too() -> None:
    good = json.loads((EXAMPLES / "artifacts" / "summary" / "ok" / "complete.jsonl").read_text())
    assert VALIDATORS["artifact/summary"].is_valid(good)
    assert not VALIDATORS["artifact/summary"].is_valid(good | {"commits": []})


def test_envelope_of_another_route_is_refused() -> None:
    path = min((EXAMPLES / "envelopes" / "prd-report" / "ok").iterdir())
    value = json.loads(path.read_text())
    assert VALIDATORS["envelope/prd-report"].is_valid(value)
    assert not VALIDATORS["envelope/prd-request"].is_valid(value)


def test_reasons_are_shown_with_their_sentences(docs: ModuleType) -> None:
    text = docs.schema_tables()
    assert all(f"| `{reason.value}` |" in text for reason in Reason)
    assert str(Finding(Reason.UNKNOWN_VALUE)).endswith(Reason.UNKNOWN_VALUE.sentence)
