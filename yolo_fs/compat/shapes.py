"""Reads an artifact for the validators, and lists what the schemas require beyond the contract; and
`validate-config F [DEFAULTS]`.

The contract's rules are errors and come first. Everything else that the coordinator would reject is
a warning, so that no file becomes invalid by the change of validator. In a configuration, faults in
the five sections of the reference are errors, and faults elsewhere warnings. `force_analyze_model`
may name any model, because the reference's list rejects its own defaults.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from yolo_fs.artifacts.examine import shape_faults
from yolo_fs.artifacts.table import ARTIFACTS
from yolo_fs.compat.script_io import Folder, UsageError, json_type, print_verdict, read_object
from yolo_fs.core.reasons import Fault, Finding, Level, Reason, YoloError, safe
from yolo_fs.schemas.check import check
from yolo_fs.schemas.config import Config
from yolo_fs.schemas.layout import Record, Strictness
from yolo_fs.schemas.plain_values import shape_of
from yolo_fs.system.readers import read_lines

ROWS = {row.kind: row for row in ARTIFACTS if row.kind in ("plan", "summary", "reqs")}


class Wrong(NamedTuple):
    """One violation of the contract."""

    line: int
    key: str
    """The key concerned; empty for the line itself."""
    text: str


class Lines(NamedTuple):
    """The lines of an artifact."""

    records: tuple[Record, ...] = ()
    torn: tuple[Wrong, ...] = ()
    """Lines that are not JSON objects; line 0 if the whole file is unreadable."""
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

    A missing last newline and CRLF are accepted.
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
    torn = tuple(
        _unreadable(finding) for finding in reading.findings if finding.level is Level.ERROR
    )
    return Lines(reading.records, torn, warnings)


def _unreadable(finding: Finding) -> Wrong:
    if finding.reason is Reason.EMPTY_FILE:
        return Wrong(0, "", "Empty file")
    why = finding.message or finding.reason.sentence
    text = f"Line {finding.line}: invalid JSON ({finding.reason.value}: {why})"
    return Wrong(finding.line, "", safe(text, 300))


def beyond_the_contract(
    kind: str, name: str, lines: Lines, wrongs: Collection[Wrong], *, is_turbo: bool = False
) -> Iterator[str]:
    """Yield what the schemas reject and the contract accepts, as warnings."""
    yield from lines.warnings
    if lines.header is None:
        return
    records = lines.records
    if is_turbo:
        records = (Record(records[0].line, {**lines.header, "eff": "turbo"}), *records[1:])
    known = {(wrong.line, wrong.key) for wrong in wrongs}
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


CONFIG_USAGE = "Usage: validate.sh --type config CONFIG_PATH [DEFAULTS_PATH]"


def validate_config(arguments: Sequence[str]) -> int:
    if not arguments:
        raise UsageError(CONFIG_USAGE)
    path, *defaults = arguments[:2]
    try:
        behind = (read_object(defaults[0]) if defaults else None) or {}
        config = read_object(path)
    except YoloError as error:
        return print_verdict([f"Config file is not valid JSON: {safe(error.message, 500)}"], [])
    if config is None:
        print(CONFIG_USAGE, file=sys.stderr)
        raise UsageError(f"Error: File not found: {path}")
    value = {**behind, **config}
    faults = dict(_faults(value))
    warnings = [
        f"{safe(fault.at.removeprefix('/').replace('/', '.'))}: {in_words(fault)}"
        for fault in check(shape_of(Config), value)[1]
        if not any(f"{fault.at}/".startswith(f"/{key.replace('.', '/')}/") for key in faults)
    ]
    return print_verdict([f"{key} {text}" for key, text in faults.items()], warnings)


Rule = Callable[[object], str]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_boolean(value: object) -> str:
    return "" if isinstance(value, bool) else f"must be boolean, got {json_type(value)}"


def _within(low: float, high: float, words: str) -> Rule:
    def rule(value: object) -> str:
        is_within = isinstance(value, int | float) and _is_number(value) and low <= value <= high
        return "" if is_within else f"must be {words}"

    return rule


def _check_positive(value: object) -> str:
    is_positive = isinstance(value, int | float) and _is_number(value) and value > 0
    return "" if is_positive else "must be a positive number"


def _check_positive_integer(value: object) -> str:
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return "" if is_whole and not _check_positive(value) else "must be a positive integer"


def _any_of(*choices: str) -> Rule:
    return lambda value: "" if value in choices else f"must be one of: {', '.join(choices)}"


def _check_booleans(value: object) -> str:
    if not isinstance(value, dict):
        return f"must be an object, got {json_type(value)}"
    return "values must all be booleans" if any(map(_check_boolean, value.values())) else ""


_FRACTION = _within(0, 1, "a number between 0.0 and 1.0")
_TRIVIAL, _MEDIUM = "trivial_confidence_threshold", "medium_confidence_threshold"
ALIASES = {_TRIVIAL: "trivial", _MEDIUM: "medium"}
"""Names of these keys in earlier versions of yolo_fs."""

RULES: Mapping[str, Mapping[str, Rule]] = {
    "qa_gates": {
        "post_task": _check_boolean,
        "post_plan": _check_boolean,
        "post_phase": _check_boolean,
        "timeout_seconds": _check_positive,
        "failure_threshold": _any_of("critical", "major", "minor"),
    },
    "integration_gate": {
        "enabled": _check_boolean,
        "timeout_seconds": _within(60, 3600, "a number between 60 and 3600"),
        "checks": _check_booleans,
        "retry_on_fail": _check_boolean,
    },
    "po": {"default_rejection": _any_of("patch", "major")},
    "delivery": {"mode": _any_of("auto", "manual"), "present_to_user": _check_boolean},
    "complexity_routing": {
        "enabled": _check_boolean,
        _TRIVIAL: _FRACTION,
        _MEDIUM: _FRACTION,
        **dict.fromkeys(ALIASES.values(), _FRACTION),
        "fallback_path": _any_of("trivial", "medium", "high"),
        "max_trivial_files": _check_positive_integer,
        "max_medium_tasks": _check_positive_integer,
    },
}
"""Section → key → rule for its value. A key that is absent or null takes its default."""


def _faults(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the keys with invalid values, as `section.key`, and what is wrong."""
    for name, rules in RULES.items():
        section = config.get(name)
        if section is None:
            continue
        if not isinstance(section, dict):
            yield name, f"must be an object, got {json_type(section)}"
            continue
        for key, rule in rules.items():
            value = section.get(key)
            text = rule(value) if value is not None else ""
            if text:
                yield f"{name}.{key}", text
    yield from _check_thresholds(config.get("complexity_routing"))


def _check_thresholds(routing: object) -> Iterator[tuple[str, str]]:
    if not isinstance(routing, dict):
        return
    trivial, medium = (routing.get(key, routing.get(ALIASES[key])) for key in (_TRIVIAL, _MEDIUM))
    if not isinstance(trivial, int | float) or not isinstance(medium, int | float):
        return
    if trivial <= medium:
        yield f"complexity_routing.{_TRIVIAL}", f"must be greater than {_MEDIUM}"
