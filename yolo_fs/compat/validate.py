"""The scripts validate, which calls one of seven validators, and validate-config."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from yolo_fs.compat.arguments import UsageError, parse
from yolo_fs.compat.folder import read_object
from yolo_fs.compat.output import print_json
from yolo_fs.compat.scripts import load
from yolo_fs.compat.shapes import in_words
from yolo_fs.reasons import Level, YoloError, safe
from yolo_fs.schemas.base import Fault, check
from yolo_fs.schemas.config import Config
from yolo_fs.schemas.lines.product import RoadmapPhase, RoadmapPlan

TYPES = ("plan", "naming", "config", "gates", "deps", "summary", "frontmatter")
_FLAG = "--type"


def run(arguments: Sequence[str]) -> int:
    """`validate --type T …`: one door to all validators."""
    name, rest = _type(list(arguments))
    if name not in TYPES:
        raise UsageError(f"{_FLAG}: unknown type: {name}", hint=f"it is one of {', '.join(TYPES)}")
    if name == "deps":  # the only one without a script of its own
        return validate_deps(rest)
    return load(f"validate-{name}")(rest)


def _type(arguments: list[str]) -> tuple[str, list[str]]:
    """Return the first `--type` and what is left; a further one belongs to the validator."""
    for position, argument in enumerate(arguments):
        if argument.startswith(f"{_FLAG}="):
            return argument.partition("=")[2], arguments[:position] + arguments[position + 1 :]
        if argument == _FLAG and position + 1 < len(arguments):
            return arguments[position + 1], arguments[:position] + arguments[position + 2 :]
    raise UsageError(
        f"{_FLAG} is required, with its value", hint=f"it is one of {', '.join(TYPES)}"
    )


def validate_deps(arguments: Sequence[str]) -> int:
    """`validate --type deps --roadmap-json F`: whether the phases can be done in some order."""
    errors, warnings = _check_roadmap(
        parse(arguments, valued=("--roadmap-json",)).need("--roadmap-json")
    )
    print_json({"valid": not errors, "errors": errors, "warnings": warnings})
    return 1 if errors else 0


def _check_roadmap(path: str) -> tuple[list[str], list[str]]:
    try:
        value = read_object(path)
        if value is None:
            raise UsageError(f"File not found: {path}")
    except YoloError as error:
        return [safe(error.message, 500)], []
    roadmap, faults = check(RoadmapPlan, value)
    errors = [
        f"{safe(fault.at)}: {in_words(fault)}" for fault in faults if fault.level is Level.ERROR
    ]
    if not isinstance(roadmap, RoadmapPlan):
        return errors, []
    return errors, [safe(text) for text in _oddities(roadmap.phases)]


SECTIONS = (
    "/qa_gates",
    "/integration_gate",
    "/po/default_rejection",
    "/delivery",
    "/complexity_routing",
)


def validate_config(arguments: Sequence[str]) -> int:
    """`validate-config F [DEFAULTS]`: faults in the five sections of the reference are errors.

    Faults elsewhere are warnings. Any model may be named in `force_analyze_model`: the
    reference's list rejects its own defaults.
    """
    given = parse(arguments, most=2)
    if not given.rest:
        raise UsageError("it takes one configuration: validate-config FILE [DEFAULTS]")
    path, *defaults = given.rest
    try:
        value = {**_object(defaults[0] if defaults else ""), **_object(path)}
    except YoloError as error:
        return _answer([safe(error.message, 500)], [])
    faults = check(Config, value)[1]
    asked = [fault for fault in faults if _is_asked(fault)]
    return _answer(
        [_said(fault) for fault in asked], [_said(fault) for fault in faults if fault not in asked]
    )


def _object(path: str) -> dict[str, Any]:
    if not path:
        return {}
    found = read_object(path)
    if found is None:
        raise UsageError(f"File not found: {path}")
    return found


def _is_asked(fault: Fault) -> bool:
    return fault.level is Level.ERROR and any(
        f"{fault.at}/".startswith(f"{section}/") for section in SECTIONS
    )


def _said(fault: Fault) -> str:
    return f"{safe(fault.at.removeprefix('/').replace('/', '.'))}: {in_words(fault)}"


def _answer(errors: Sequence[str], warnings: Sequence[str]) -> int:
    print_json({"valid": not errors, "errors": errors, "warnings": warnings})
    return 1 if errors else 0


def _oddities(phases: Sequence[RoadmapPhase]) -> Iterator[str]:
    """Yield phases without any dependency, and critical phases without a dependency on a critical one."""
    links = {(phase.id, needed) for phase in phases for needed in phase.depends_on}
    joined = {name for link in links for name in link}
    critical = {phase.id for phase in phases if phase.critical}
    on_path = {name for link in links if critical.issuperset(link) for name in link}
    for phase in phases:
        if len(phases) > 1 and phase.id not in joined:
            yield f"Orphan phase: {phase.id} depends on no phase and no phase depends on it"
        elif len(critical) > 1 and phase.id in critical - on_path:
            yield f"Critical phase is not connected to another critical phase: {phase.id}"
