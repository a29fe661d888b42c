"""The script validate, which calls one of seven validators, and the one for roadmaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from yolo_fs.compat.arguments import UsageError, parse
from yolo_fs.compat.folder import read_object
from yolo_fs.compat.output import print_verdict
from yolo_fs.compat.resolve_task_deps import in_groups
from yolo_fs.compat.scripts import load
from yolo_fs.reasons import YoloError, safe

TYPES = ("plan", "naming", "config", "gates", "deps", "summary", "frontmatter")
_FLAG = "--type"


def run(arguments: Sequence[str]) -> int:
    """`validate --type T …`: one door to all validators."""
    name, rest = _type(list(arguments))
    if name not in TYPES:
        raise UsageError(
            f"Unknown validation type: {name}", more=f"Valid types: {', '.join(TYPES)}"
        )
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
    raise UsageError(f"Usage: validate.sh {_FLAG} {'|'.join(TYPES)} [ARGUMENT]...")


def validate_deps(arguments: Sequence[str]) -> int:
    """`validate --type deps --roadmap-json F`: whether the phases can be done in some order."""
    usage = "validate.sh --type deps --roadmap-json PATH"
    given = parse(arguments, usage, valued=("--roadmap-json",), names_flag=False)
    path = given.need("--roadmap-json", "Error: --roadmap-json is required")
    try:
        roadmap = read_object(path)
    except YoloError as error:
        return print_verdict([f"Roadmap file is not valid JSON: {safe(error.message, 500)}"], [])
    if roadmap is None:
        raise UsageError(f"Error: roadmap file not found: {path}")
    phases = roadmap.get("phases")
    if not isinstance(phases, list) or not all(isinstance(phase, dict) for phase in phases):
        return print_verdict(["Missing or invalid phases array"], [])
    if not phases:
        return print_verdict(["Phases array is empty"], [])
    return print_verdict(list(_faults(phases)), list(_oddities(phases)))


Phases = Sequence[Mapping[str, Any]]


def _name(phase: Mapping[str, Any]) -> str:
    return safe(str(phase.get("id", "")))


def _needs(phase: Mapping[str, Any]) -> Sequence[str]:
    """Return the phases that come first; none where `depends_on` is absent, null or not a list."""
    needs = phase.get("depends_on")
    return [safe(str(need)) for need in needs] if isinstance(needs, list) else ()


def _faults(phases: Phases) -> Iterator[str]:
    names = [_name(phase) for phase in phases]
    for number, (name, phase) in enumerate(zip(names, phases, strict=True)):
        if not name:
            yield f"Phase number {number + 1} has no id"
        elif name in names[:number]:
            yield f"Phase '{name}' is listed more than once"
        if not isinstance(phase.get("depends_on"), list | None):
            yield f"Phase '{name}' depends_on must be an array"
        for need in _needs(phase):
            if need not in names:
                yield f"Phase '{name}' depends on '{need}' which does not exist in phases array"
    left = in_groups({_name(phase): _needs(phase) for phase in phases})[1]
    if left:
        yield f"Circular dependency detected involving phases: {','.join(left)}"


def _oddities(phases: Phases) -> Iterator[str]:
    """Yield phases without any dependency, and critical phases without a dependency on a critical
    one.
    """
    links = {(_name(phase), need) for phase in phases for need in _needs(phase)}
    joined = {name for link in links for name in link}
    critical = {_name(phase) for phase in phases if phase.get("critical") is True}
    on_path = {name for link in filter(critical.issuperset, links) for name in link}
    for name in map(_name, phases):
        if len(phases) > 1 and name not in joined:
            yield f"Phase '{name}' is orphaned (no dependencies and nothing depends on it)"
        elif len(critical) > 1 and name in critical - on_path:
            yield f"Critical phase '{name}' is not connected to other critical phases"
