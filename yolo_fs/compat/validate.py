"""The script validate, which calls one of seven validators, and the one for roadmaps; and
`resolve-task-deps`: groups of a plan's tasks that can be done at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from yolo_fs.compat.script_io import (
    Folder,
    UsageError,
    parse,
    print_json,
    print_verdict,
    read_object,
)
from yolo_fs.compat.scripts import load
from yolo_fs.core.reasons import Finding, Reason, YoloError, safe

TYPES = ("plan", "naming", "config", "gates", "deps", "summary", "frontmatter")
_FLAG = "--type"


def validate(arguments: Sequence[str]) -> int:
    """`validate --type T …`: the entry to all validators."""
    name, rest = _type(list(arguments))
    if name not in TYPES:
        raise UsageError(
            f"Unknown validation type: {name}", more=f"Valid types: {', '.join(TYPES)}"
        )
    if name == "deps":  # the only one without a script of its own
        return validate_deps(rest)
    return load(f"validate-{name}")(rest)


def _type(arguments: list[str]) -> tuple[str, list[str]]:
    """Return the first `--type` and the remaining arguments, among them any further `--type`."""
    for position, argument in enumerate(arguments):
        if argument.startswith(f"{_FLAG}="):
            return argument.partition("=")[2], arguments[:position] + arguments[position + 1 :]
        if argument == _FLAG and position + 1 < len(arguments):
            return arguments[position + 1], arguments[:position] + arguments[position + 2 :]
    raise UsageError(f"Usage: validate.sh {_FLAG} {'|'.join(TYPES)} [ARGUMENT]...")


def validate_deps(arguments: Sequence[str]) -> int:
    """`validate --type deps --roadmap-json F`: whether the phases have a possible order."""
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
    return print_verdict(list(_faults(phases)), list(_find_isolated_phases(phases)))


Phases = Sequence[Mapping[str, Any]]


def _name(phase: Mapping[str, Any]) -> str:
    return safe(str(phase.get("id", "")))


def _needs(phase: Mapping[str, Any]) -> Sequence[str]:
    """Return the dependencies of a phase; none if `depends_on` is absent, null or not a list."""
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


def _find_isolated_phases(phases: Phases) -> Iterator[str]:
    """Yield isolated phases, and critical phases without a link to another critical phase."""
    links = {(_name(phase), need) for phase in phases for need in _needs(phase)}
    joined = {name for link in links for name in link}
    critical = {_name(phase) for phase in phases if phase.get("critical") is True}
    on_path = {name for link in filter(critical.issuperset, links) for name in link}
    for name in map(_name, phases):
        if len(phases) > 1 and name not in joined:
            yield f"Phase '{name}' is orphaned (no dependencies and nothing depends on it)"
        elif len(critical) > 1 and name in critical - on_path:
            yield f"Critical phase '{name}' is not connected to other critical phases"


DEPS_USAGE = "resolve-task-deps.sh --plan PATH [--all-plans DIR]"


def resolve_task_deps(arguments: Sequence[str]) -> int:
    # The value of --all-plans is not needed: `td` never leaves a plan.
    given = parse(arguments, DEPS_USAGE, valued=("--plan", "--all-plans"), names_flag=False)
    groups, left = in_groups(_needs_by_task(given.need("--plan")))
    if left:
        listed = ", ".join(left)
        raise YoloError(
            Reason.DEPENDENCY_CYCLE, f"Circular dependency detected among tasks: {listed}"
        )
    print_json([{"group": number, "tasks": group} for number, group in enumerate(groups, 1)])
    return 0


def in_groups(needs: Mapping[str, Sequence[str]]) -> tuple[list[list[str]], list[str]]:
    """Return names in groups whose needs are met by earlier groups, and those without an order.

    Needs that are not among the names do not count.
    """
    left = dict(needs)
    groups: list[list[str]] = []
    while ready := [name for name, wanted in left.items() if left.keys().isdisjoint(wanted)]:
        groups.append(ready)
        for name in ready:
            del left[name]
    return groups, list(left)


def _needs_by_task(path: str) -> Mapping[str, Sequence[str]]:
    """Return the dependencies of each task, in the order of the file."""
    folder, name = os.path.split(path)
    files = Folder(folder or ".")
    data = files.content(name)
    if isinstance(data, Finding):
        raise UsageError(f"ERROR: Plan file not found: {path} ({data.reason.sentence})")
    tasks: dict[str, Sequence[str]] = {}
    for number, row in enumerate(files.rows(name), 1):
        if row is None:
            raise YoloError(Reason.JSON_PARSE_ERROR, f"{path}: record {number}: invalid JSON")
        if number == 1:
            continue
        task, needs = row.get("id"), row.get("td")
        if not isinstance(task, str) or not task:
            raise YoloError(Reason.MISSING_KEY, f"{path}: record {number}: a task without id")
        if task in tasks:
            raise YoloError(Reason.DUPLICATE_ID, f"{path}: record {number}: a second task {task}")
        if needs is not None and not isinstance(needs, list):
            raise YoloError(Reason.WRONG_TYPE, f"{path}: task {task}: td must be an array")
        tasks[task] = [str(need) for need in needs or ()]
    return tasks
