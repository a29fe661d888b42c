"""Reads an artifact for the validators, and says what the schemas say beyond the contract.

The contract's rules are errors and come first. Everything else that the coordinator would refuse
is a warning, so that no file becomes invalid by the change of validator.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from yolo_fs.compat.folder import Folder
from yolo_fs.edges.strict_json import read_lines
from yolo_fs.reasons import Fault, Finding, Level, Reason, safe
from yolo_fs.rules.artifacts.examine import shape_faults
from yolo_fs.rules.artifacts.table import ARTIFACTS
from yolo_fs.schemas.layout import Record, Strictness

ROWS = {row.kind: row for row in ARTIFACTS if row.kind in ("plan", "summary", "reqs")}


class Wrong(NamedTuple):
    """One thing that the contract refuses."""

    line: int
    key: str
    """Key that it is about; empty for the line itself."""
    text: str


class Lines(NamedTuple):
    """The lines of an artifact."""

    records: tuple[Record, ...] = ()
    torn: tuple[Wrong, ...] = ()
    """Lines that are not JSON objects, or what keeps the whole file from being read, as line 0."""
    warnings: tuple[str, ...] = ()

    @property
    def header(self) -> dict[str, Any] | None:
        """The first line; None when that is not a JSON object."""
        if not self.records or any(wrong.line < self.records[0].line for wrong in self.torn):
            return None
        return self.records[0].value

    @property
    def body(self) -> tuple[Record, ...]:
        return self.records if self.header is None else self.records[1:]


def read_artifact(path: str) -> Lines:
    """Return the lines of a file.

    Neither a missing last newline nor CRLF keeps them from being read.
    """
    folder, name = os.path.split(path)
    data = Folder(folder or ".").content(name)
    if isinstance(data, Finding):
        return Lines(
            torn=(Wrong(0, "", f"{data.reason.sentence.capitalize()}: {safe(path, 500)}"),)
        )
    warnings: tuple[str, ...] = ()
    if b"\r\n" in data:
        data = data.replace(b"\r\n", b"\n")
        warnings = (f"{safe(name)}: lines end in CRLF; the coordinator refuses that",)
    reading = read_lines(data if data.endswith(b"\n") or not data else data + b"\n", path)
    torn = tuple(_unreadable(found) for found in reading.findings if found.level is Level.ERROR)
    return Lines(reading.records, torn, warnings)


def _unreadable(finding: Finding) -> Wrong:
    if finding.reason is Reason.EMPTY_FILE:
        return Wrong(0, "", "Empty file")
    why = finding.message or finding.reason.sentence
    text = f"Line {finding.line}: invalid JSON ({finding.reason.value}: {why})"
    return Wrong(finding.line, "", safe(text, 300))


def beyond_the_contract(
    kind: str, name: str, lines: Lines, told: Collection[Wrong], *, is_turbo: bool = False
) -> Iterator[str]:
    """Yield what the schemas refuse and the contract does not, as warnings."""
    yield from lines.warnings
    if lines.header is None:
        return
    records = lines.records
    if is_turbo:
        records = (Record(records[0].line, {**lines.header, "eff": "turbo"}), *records[1:])
    known = {(wrong.line, wrong.key) for wrong in told}
    for line, fault in shape_faults(ROWS[kind], records, Strictness()):
        is_wrong = fault.level is Level.ERROR or fault.reason is Reason.WRONG_LINE_COUNT
        key = fault.at.split("/")[1] if fault.at else ""
        if is_wrong and (line, key) not in known:
            yield placed(name, line, fault)


def in_words(fault: Fault) -> str:
    """Return a fault as one sentence."""
    message = fault.message or fault.reason.sentence
    expected = f"; expected {fault.expected}" if fault.expected else ""
    return safe(f"{fault.reason.value}: {message}{expected}", 300)


def placed(name: str, line: int, fault: Fault) -> str:
    """Return a fault as one sentence with its place."""
    at = f" at {safe(fault.at)}" if fault.at else ""
    return f"{safe(name)}:{line}{at}: {in_words(fault)}"
