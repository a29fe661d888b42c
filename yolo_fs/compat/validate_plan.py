"""`validate-plan F`: keys of the header and of the tasks, paths, waves, then the naming rules."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from yolo_fs.compat.arguments import UsageError
from yolo_fs.compat.folder import Folder
from yolo_fs.compat.output import json_type, print_verdict
from yolo_fs.compat.shapes import ROWS, Lines, Wrong, beyond_the_contract, placed, read_artifact
from yolo_fs.compat.validate_naming import TASK_KEYS, paths_outside, plan_naming, task_label
from yolo_fs.ids import PlanId
from yolo_fs.reasons import Reason, safe
from yolo_fs.rules.artifacts.checks import CHECKS
from yolo_fs.rules.artifacts.table import Check
from yolo_fs.rules.artifacts.verdicts import Place, Surroundings
from yolo_fs.rules.phase.gate_sources import first
from yolo_fs.schemas.config import Config, Policy
from yolo_fs.services.checking.checker import Checker
from yolo_fs.services.checking.snapshots import WorkTree
from yolo_fs.services.workspace.settings import Settings

USAGE = "Usage: validate.sh --type plan PLAN_PATH"


def run(arguments: Sequence[str]) -> int:
    if not arguments:
        raise UsageError(USAGE)
    path = arguments[0]
    if not os.path.lexists(path):
        print(USAGE, file=sys.stderr)
        raise UsageError(f"Error: File not found: {path}")
    lines = read_artifact(path)
    if not lines.records and not any(wrong.line for wrong in lines.torn):
        empty = [wrong.text for wrong in lines.torn if wrong.text != "Empty file"]
        return print_verdict(empty or ["Empty plan file"], [])
    is_turbo = lines.header is not None and lines.header.get("eff") == "turbo"
    of_lines = [*lines.torn, *_header(lines, is_turbo), *_tasks(lines, is_turbo)]
    told = sorted(of_lines, key=lambda wrong: wrong.line)
    told += _dependencies(path, lines)
    name = os.path.basename(path)
    naming = list(plan_naming(name, lines, is_turbo=is_turbo))
    errors = [wrong.text for wrong in told] + [f"Naming: {wrong.text}" for wrong in naming]
    beyond = beyond_the_contract("plan", name, lines, [*told, *naming], is_turbo=is_turbo)
    return print_verdict(errors, [*beyond, *_references(path, lines, told)])


_HEADER = {
    "p": "string",
    "n": "string",
    "t": "string",
    "w": "number",
    "d": "array",
    "mh": "object",
    "obj": "string",
}
_OPTIONAL = {"xd": "array", "sk": "array", "fm": "array", "auto": "boolean"}


def _header(lines: Lines, is_turbo: bool) -> Iterator[Wrong]:
    """A plan that says `turbo` may leave out what turbo plans leave out."""
    header = lines.header
    if header is None:
        return
    line = lines.records[0].line
    for key, type_ in {**_HEADER, **_OPTIONAL}.items():
        if is_turbo and key == "mh":
            continue
        if key not in header:
            if key in _HEADER:
                yield Wrong(line, key, f"Header missing required key: {key}")
        elif json_type(header[key]) != type_:
            yield Wrong(line, key, f"Header key {key}: expected {type_}")


def _tasks(lines: Lines, is_turbo: bool) -> Iterator[Wrong]:
    for record in lines.body:
        task, label = record.value, task_label(record.value)
        for key in TASK_KEYS:
            if key not in task and not (is_turbo and key == "tp"):
                where = "" if "id" in task else f" (line {record.line})"
                yield Wrong(record.line, key, f"{label}: missing required key: {key}{where}")
        if "id" in task and not re.fullmatch("T[0-9]+", str(task["id"])):
            yield Wrong(record.line, "id", f"{label}: id must match ^T[0-9]+$ pattern")
        for path in paths_outside(task):
            yield Wrong(record.line, "f", f"{label}: absolute path in f: {safe(path)}")


# --- references ---


def _dependencies(path: str, lines: Lines) -> Iterator[Wrong]:
    """The plans that come first are looked up by their file names, beside the plan."""
    header = lines.header
    if header is None or not isinstance(header.get("d"), list):
        return
    folder, name = os.path.split(path)
    own = {name.removesuffix(".plan.jsonl"), f"{header.get('p')}-{header.get('n')}"}
    line, wave = lines.records[0].line, header.get("w")
    needs = [need for need in header["d"] if isinstance(need, str)]
    for need in needs:
        if "/" in need or need in own:
            continue
        other = first(Folder(folder or ".").rows(f"{need}.plan.jsonl")).get("w")
        if isinstance(wave, int | float) and isinstance(other, int | float) and other >= wave:
            waves = f"(wave {other} >= {wave})"
            text = f"Plan depends on same-or-higher wave plan: {safe(need)} {waves}"
            yield Wrong(line, "d", text)
    if own.intersection(needs):
        yield Wrong(line, "d", "Circular dependency: plan depends on itself")


def _references(path: str, lines: Lines, told: Collection[Wrong]) -> Iterator[str]:
    """What only the coordinator refuses: other plans are looked for in the same directory only."""
    header: Mapping[str, Any] | None = lines.header
    if header is None:
        return
    folder, name = os.path.split(path)
    place = Place(name, ROWS["plan"], plan=PlanId.parse(f"{header.get('p')}-{header.get('n')}"))
    settings = Settings(Config(), Policy())
    snapshot = WorkTree(folder or ".", settings.policy.max_file_bytes)
    around = Surroundings(Checker(settings).plans_beside(place, snapshot))
    is_order_told = any(wrong.key == "d" for wrong in told)
    for rule in (Check.WAVES, Check.WAVE_ORDER, Check.TASK_IDS, Check.TASK_GRAPH):
        for line, fault in CHECKS[rule](place, lines.records, around):
            is_order = fault.reason in (Reason.WAVE_ORDER, Reason.SELF_REFERENCE)
            if not (is_order and is_order_told):
                yield placed(name, line, fault)
