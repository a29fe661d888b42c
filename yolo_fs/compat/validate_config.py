"""`validate-config F [DEFAULTS]`: faults in the five sections of the reference are errors.

Faults elsewhere are warnings. Any model may be named in `force_analyze_model`: the reference's list
rejects its own defaults.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from yolo_fs.compat.command_line import UsageError, json_type, print_verdict
from yolo_fs.compat.folder import read_object
from yolo_fs.compat.shapes import in_words
from yolo_fs.reasons import YoloError, safe
from yolo_fs.schemas.base import check
from yolo_fs.schemas.config import Config

USAGE = "Usage: validate.sh --type config CONFIG_PATH [DEFAULTS_PATH]"


def run(arguments: Sequence[str]) -> int:
    if not arguments:
        raise UsageError(USAGE)
    path, *defaults = arguments[:2]
    try:
        behind = (read_object(defaults[0]) if defaults else None) or {}
        config = read_object(path)
    except YoloError as error:
        return print_verdict([f"Config file is not valid JSON: {safe(error.message, 500)}"], [])
    if config is None:
        print(USAGE, file=sys.stderr)
        raise UsageError(f"Error: File not found: {path}")
    value = {**behind, **config}
    faults = dict(_faults(value))
    warnings = [
        f"{safe(fault.at.removeprefix('/').replace('/', '.'))}: {in_words(fault)}"
        for fault in check(Config, value)[1]
        if not any(f"{fault.at}/".startswith(f"/{key.replace('.', '/')}/") for key in faults)
    ]
    return print_verdict([f"{key} {text}" for key, text in faults.items()], warnings)


# --- what may stand under a key; each returns what is wrong ---

Rule = Callable[[object], str]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _boolean(value: object) -> str:
    return "" if isinstance(value, bool) else f"must be boolean, got {json_type(value)}"


def _within(low: float, high: float, words: str) -> Rule:
    def rule(value: object) -> str:
        is_within = isinstance(value, int | float) and _is_number(value) and low <= value <= high
        return "" if is_within else f"must be {words}"

    return rule


def _positive(value: object) -> str:
    is_positive = isinstance(value, int | float) and _is_number(value) and value > 0
    return "" if is_positive else "must be a positive number"


def _positive_integer(value: object) -> str:
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return "" if is_whole and not _positive(value) else "must be a positive integer"


def _any_of(*choices: str) -> Rule:
    return lambda value: "" if value in choices else f"must be one of: {', '.join(choices)}"


def _booleans(value: object) -> str:
    if not isinstance(value, dict):
        return f"must be an object, got {json_type(value)}"
    return "values must all be booleans" if any(map(_boolean, value.values())) else ""


_FRACTION = _within(0, 1, "a number between 0.0 and 1.0")
_TRIVIAL, _MEDIUM = "trivial_confidence_threshold", "medium_confidence_threshold"
ALIASES = {_TRIVIAL: "trivial", _MEDIUM: "medium"}
"""How earlier versions of yolo_fs called them."""

RULES: Mapping[str, Mapping[str, Rule]] = {
    "qa_gates": {
        "post_task": _boolean,
        "post_plan": _boolean,
        "post_phase": _boolean,
        "timeout_seconds": _positive,
        "failure_threshold": _any_of("critical", "major", "minor"),
    },
    "integration_gate": {
        "enabled": _boolean,
        "timeout_seconds": _within(60, 3600, "a number between 60 and 3600"),
        "checks": _booleans,
        "retry_on_fail": _boolean,
    },
    "po": {"default_rejection": _any_of("patch", "major")},
    "delivery": {"mode": _any_of("auto", "manual"), "present_to_user": _boolean},
    "complexity_routing": {
        "enabled": _boolean,
        _TRIVIAL: _FRACTION,
        _MEDIUM: _FRACTION,
        **dict.fromkeys(ALIASES.values(), _FRACTION),
        "fallback_path": _any_of("trivial", "medium", "high"),
        "max_trivial_files": _positive_integer,
        "max_medium_tasks": _positive_integer,
    },
}
"""Section → key → what may stand there. A key that is absent or null takes its default."""


def _faults(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the keys whose values are wrong, as `section.key`, and what is wrong."""
    for name, rules in RULES.items():
        section = config.get(name)
        if section is None:
            continue
        if not isinstance(section, dict):
            yield name, f"must be an object, got {json_type(section)}"
            continue
        for key, rule in rules.items():
            text = rule(section[key]) if section.get(key) is not None else ""
            if text:
                yield f"{name}.{key}", text
    yield from _thresholds(config.get("complexity_routing"))


def _thresholds(routing: object) -> Iterator[tuple[str, str]]:
    if not isinstance(routing, dict):
        return
    trivial, medium = (routing.get(key, routing.get(ALIASES[key])) for key in (_TRIVIAL, _MEDIUM))
    if not isinstance(trivial, int | float) or not isinstance(medium, int | float):
        return
    if trivial <= medium:
        yield f"complexity_routing.{_TRIVIAL}", f"must be greater than {_MEDIUM}"
