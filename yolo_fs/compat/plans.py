"""`validate-plan F`: keys of the header and of the tasks, paths, waves, then the naming rules; and
`validate-naming TARGET`: keys of plans, summaries and requirements, old spellings among them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from yolo_fs.artifacts.examine import CHECKS
from yolo_fs.artifacts.table import Check
from yolo_fs.artifacts.verdicts import ArtifactPath, Surroundings
from yolo_fs.checking.checker import Checker
from yolo_fs.checking.snapshots import WorkTree
from yolo_fs.compat.script_io import Folder, UsageError, first, json_type, parse, print_verdict
from yolo_fs.compat.shapes import ROWS, Lines, Wrong, beyond_the_contract, placed, read_artifact
from yolo_fs.core.ids import PlanId
from yolo_fs.core.reasons import Reason, safe
from yolo_fs.schemas.config import Config, Policy
from yolo_fs.schemas.lines.planning import Requirement, Summary, TurboPlanHeader, TurboTask
from yolo_fs.workspace.settings import Settings

PLAN_USAGE = "Usage: validate.sh --type plan PLAN_PATH"


def validate_plan(arguments: Sequence[str]) -> int:
    if not arguments:
        raise UsageError(PLAN_USAGE)
    path = arguments[0]
    if not os.path.lexists(path):
        print(PLAN_USAGE, file=sys.stderr)
        raise UsageError(f"Error: File not found: {path}")
    lines = read_artifact(path)
    if not lines.records and not any(wrong.line for wrong in lines.torn):
        empty = [wrong.text for wrong in lines.torn if wrong.text != "Empty file"]
        return print_verdict(empty or ["Empty plan file"], [])
    is_turbo = lines.header is not None and lines.header.get("eff") == "turbo"
    of_lines = [*lines.torn, *_check_header(lines, is_turbo), *_tasks(lines, is_turbo)]
    wrongs = sorted(of_lines, key=lambda wrong: wrong.line)
    wrongs += _dependencies(path, lines)
    name = os.path.basename(path)
    naming = list(plan_naming(name, lines, is_turbo=is_turbo))
    errors = [wrong.text for wrong in wrongs] + [f"Naming: {wrong.text}" for wrong in naming]
    beyond = beyond_the_contract("plan", name, lines, [*wrongs, *naming], is_turbo=is_turbo)
    return print_verdict(errors, [*beyond, *_check_references(path, lines, wrongs)])


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


def _check_header(lines: Lines, is_turbo: bool) -> Iterator[Wrong]:
    """Check the header; a plan with `turbo` may omit what turbo plans omit."""
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


def _dependencies(path: str, lines: Lines) -> Iterator[Wrong]:
    """Check the dependencies, by the file names of plans in the same folder."""
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


def _check_references(path: str, lines: Lines, wrongs: Collection[Wrong]) -> Iterator[str]:
    """Yield what only the coordinator rejects; other plans are only found in the same folder."""
    header: Mapping[str, Any] | None = lines.header
    if header is None:
        return
    folder, name = os.path.split(path)
    place = ArtifactPath(
        name, ROWS["plan"], plan=PlanId.parse(f"{header.get('p')}-{header.get('n')}")
    )
    settings = Settings(Config(), Policy())
    snapshot = WorkTree(folder or ".", settings.policy.max_file_bytes)
    around = Surroundings(Checker(settings).plans_beside(place, snapshot))
    is_order_told = any(wrong.key == "d" for wrong in wrongs)
    for rule in (Check.WAVES, Check.WAVE_ORDER, Check.TASK_IDS, Check.TASK_GRAPH):
        for line, fault in CHECKS[rule](place, lines.records, around):
            is_order = fault.reason in (Reason.WAVE_ORDER, Reason.SELF_REFERENCE)
            if not (is_order and is_order_told):
                yield placed(name, line, fault)


NAMING_USAGE = (
    "validate.sh --type naming FILE_OR_DIR [--scope=active|all] [--type=plan|summary|reqs] "
    "[--turbo]"
)
DEPTH = 2
"""Levels of directories below the target that are searched."""
_MILESTONES = ("../../../milestones", "../../milestones", "milestones", "../milestones")
_ANY_DEPTH = 64


def validate_naming(arguments: Sequence[str]) -> int:
    flags = ("--scope", "--type")
    given = parse(
        arguments,
        NAMING_USAGE,
        valued=flags,
        joined=flags,
        switches=("--turbo",),
        most=1,
        names_flag=False,
    )
    if not given.rest:
        raise UsageError(f"Usage: {NAMING_USAGE}")
    target, kind = given.rest[0], given.values.get("--type", "")
    if not os.path.isfile(target) and not os.path.isdir(target):
        raise UsageError(f"Error: {target} is not a file or directory")
    is_turbo = "--turbo" in given.switches
    errors, warnings = [], []
    for path, file_kind in _files(target, kind):
        wrong, odd = judge(path, file_kind, is_turbo=is_turbo)
        errors += [fault.text for fault in wrong]
        warnings += odd
    if given.values.get("--scope") == "all" and os.path.isdir(target):
        for path, file_kind in _find_milestone_files(target, kind):
            wrong, odd = judge(path, file_kind, is_turbo=is_turbo)
            warnings += [f"Milestone: {text}" for text in (*(fault.text for fault in wrong), *odd)]
    return print_verdict(errors, warnings)


def judge(path: str, kind: str, *, is_turbo: bool = False) -> tuple[list[Wrong], list[str]]:
    """Return the violations of the naming rules in one file, and those of the coordinator only."""
    if kind not in _RULES:
        return [], [f"Unknown artifact type for {safe(path, 500)}"]
    name, lines = os.path.basename(path), read_artifact(path)
    if kind == "plan":
        wrong = [*lines.torn, *plan_naming(name, lines, is_turbo=is_turbo)]
    else:
        wrong = [*lines.torn, *_RULES[kind](name, lines)]
    return wrong, list(beyond_the_contract(kind, name, lines, wrong, is_turbo=is_turbo))


def plan_naming(name: str, lines: Lines, *, is_turbo: bool = False) -> Iterator[Wrong]:
    """Yield the violations of the naming rules in a plan."""
    header = lines.header
    is_turbo = is_turbo or TurboPlanHeader.matches(header or {})
    if header is not None:
        yield from _numbers("Header", header, lines.records[0].line)
        title = header.get("t")
        if re.fullmatch("[0-9]+", str(title)):
            text = f"Header t field is a number '{title}' -- must be title string"
            yield Wrong(lines.records[0].line, "t", text)
        yield from _check_file_name("File name", name, header, lines.records[0].line)
    for record in lines.body:
        label = task_label(record.value)
        for key in TURBO_TASK_KEYS if is_turbo else TASK_KEYS:
            if key not in record.value:
                yield Wrong(record.line, key, f"{label}: missing required key: {key}")
        for old, new in _find_old_keys(TurboTask.renamed_keys, record.value):
            yield Wrong(record.line, old, f"{label}: uses legacy key '{old}' instead of '{new}'")
        for path in paths_outside(record.value):
            yield Wrong(record.line, "f", f"{label}: absolute path in f: {safe(path)}")


TASK_KEYS = ("id", "tp", "a", "f", "v", "done")
TURBO_TASK_KEYS = ("id", "a")


def task_label(task: Mapping[str, Any]) -> str:
    """Return the label of a task in messages."""
    return f"Task {safe(str(task.get('id') or 'unknown'))}"


def paths_outside(task: Mapping[str, Any]) -> Sequence[str]:
    """Return the paths of a task that are absolute or lead out of the repository."""
    files = task.get("f")
    if not isinstance(files, list):
        return ()
    return [
        file
        for file in files
        if isinstance(file, str) and (file.startswith("/") or ".." in file.split("/"))
    ]


_MEANINGS = {"ch": "commit hashes", "tc": "tasks completed", "dv": "deviations"}


def _check_summary(name: str, lines: Lines) -> Iterator[Wrong]:
    header = lines.header
    if header is None:
        return
    line = lines.records[0].line
    for key, field in Summary.model_fields.items():
        if field.is_required() and key not in header:
            yield Wrong(line, key, f"Summary {safe(name)}: missing required key: {key}")
    for old, new in _find_old_keys(Summary.renamed_keys, header):
        meaning = f" ({_MEANINGS[new]})" if new in _MEANINGS else " (not canonical)"
        yield Wrong(line, old, f"Summary uses legacy key '{old}' -- use '{new}'{meaning}")
    yield from _numbers("Summary", header, line)
    yield from _choice("Summary", header, "tst", ("red_green", "green_only", "no_tests"), line)
    yield from _choice("Summary", header, "s", ("complete", "partial", "failed"), line)
    yield from _check_file_name("Summary file name", name, header, line)


def _check_requirements(_: str, lines: Lines) -> Iterator[Wrong]:
    for line, value in lines.records:
        label = f"Reqs {safe(str(value.get('id') or 'unknown'))}"
        for key, field in Requirement.model_fields.items():
            if field.is_required() and key not in value:
                yield Wrong(line, key, f"{label}: missing required key: {key}")
        for old, new in _find_old_keys(Requirement.renamed_keys, value):
            yield Wrong(line, old, f"{label}: uses legacy key '{old}' -- use '{new}'")
        yield from _choice(f"{label}:", value, "pri", ("must", "should", "nice"), line)
        yield from _choice(f"{label}:", value, "st", ("open", "done"), line)


_RULES = {"plan": plan_naming, "summary": _check_summary, "reqs": _check_requirements}


def _numbers(what: str, header: Mapping[str, Any], line: int) -> Iterator[Wrong]:
    """Yield what is wrong with the number of the phase and of the plan."""
    phase, plan = header.get("p"), header.get("n")
    shown = safe(str(phase))
    if isinstance(phase, str) and "-" in phase:
        text = f"{what} p field is compound '{shown}' -- must be phase-only (e.g. '01')"
        yield Wrong(line, "p", text)
    elif phase is not None and not _is_number(phase):
        text = f"{what} p field '{shown}' is not valid -- must be zero-padded number (e.g. '01')"
        yield Wrong(line, "p", text)
    if plan is not None and not _is_number(plan):
        shown = safe(str(plan))
        text = f"{what} n field '{shown}' is not a plan number -- must be zero-padded (e.g. '01')"
        yield Wrong(line, "n", text)


def _is_number(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9]{2}", value) is not None


def _check_file_name(what: str, name: str, header: Mapping[str, Any], line: int) -> Iterator[Wrong]:
    """Yield a mismatch of the file name `NN-MM.plan.jsonl` and its header; other names are free."""
    phase, plan = header.get("p"), header.get("n")
    match = re.fullmatch(r"([0-9]{2})-([0-9]{2})\.(?:plan|summary)\.jsonl", name)
    if match and None not in (phase, plan) and match.groups() != (phase, plan):
        numbers = f"p='{safe(str(phase))}' n='{safe(str(plan))}'"
        yield Wrong(line, "", f"{what} {name} does not match header {numbers}")


def _choice(
    what: str, value: Mapping[str, Any], key: str, choices: Sequence[str], line: int
) -> Iterator[Wrong]:
    if key in value and value[key] not in choices:
        text = f"{what} {key} field '{safe(str(value[key]))}' not valid"
        yield Wrong(line, key, f"{text} -- must be {'|'.join(choices)}")


def _find_old_keys(
    renamed: Mapping[str, str], value: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield the old keys whose new key is missing."""
    for old, new in renamed.items():
        if old in value and new not in value:
            yield old, new


def _files(target: str, kind: str) -> Iterator[tuple[str, str]]:
    """Yield files with their kinds: a given file, or those of a known kind in a directory."""
    if os.path.isdir(target) and kind in ("", *ROWS):
        yield from _below(target, kind, DEPTH)
    else:
        yield target, kind or _kind_of(os.path.basename(target))


def _find_milestone_files(target: str, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the files of the milestones, from the first of the possible places that exists."""
    places = [os.path.join(os.path.abspath(target), place) for place in _MILESTONES]
    root = next((place for place in places if os.path.isdir(place)), None)
    if root is not None:
        yield from _below(os.path.normpath(root), kind, _ANY_DEPTH)


def _below(root: str, kind: str, depth: int) -> Iterator[tuple[str, str]]:
    with os.scandir(root) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    for entry in listed:
        file_kind = _kind_of(entry.name)
        if entry.is_dir(follow_symlinks=False):
            if depth > 1 and entry.name != "milestones":
                yield from _below(entry.path, kind, depth - 1)
        elif file_kind and kind in ("", file_kind):
            yield entry.path, file_kind


def _kind_of(name: str) -> str:
    endings = ((kind, row.file.rpartition("}")[2]) for kind, row in ROWS.items())
    return next((kind for kind, ending in endings if name.endswith(ending)), "")
