"""`validate-naming TARGET`: keys of plans, summaries and requirements, old spellings among them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from yolo_fs.compat.arguments import Given, UsageError, parse
from yolo_fs.compat.output import print_json
from yolo_fs.compat.shapes import is_asked, placed, read_records
from yolo_fs.reasons import Level, Reason, safe
from yolo_fs.rules.artifacts.examine import shape_faults
from yolo_fs.rules.artifacts.table import ARTIFACTS, Artifact
from yolo_fs.schemas.base import Record, Strictness

KINDS = ("plan", "summary", "reqs")
SCOPES = ("active", "all")
DEPTH = 2
"""Levels of directories that are looked at below the target."""
_MILESTONE_DEPTH = 4
_ROWS = {row.kind: row for row in ARTIFACTS if row.kind in KINDS}


@dataclass(frozen=True, slots=True)
class NamingVerdict:
    """What is wrong with the names in one file."""

    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def run(arguments: Sequence[str]) -> int:
    given = parse(
        arguments,
        valued=("--scope", "--type"),
        joined=("--scope", "--type"),
        switches=("--turbo",),
        most=1,
    )
    if not given.rest or not os.path.exists(given.rest[0]):
        raise UsageError(f"no such file or directory: {(given.rest or ('TARGET',))[0]}")
    target = given.rest[0]
    kind = given.choose("--type", KINDS) if "--type" in given.values else ""
    scope = given.choose("--scope", SCOPES) if "--scope" in given.values else "active"
    verdict = _everything(target, kind, scope, given)
    print_json(
        {"valid": not verdict.errors, "errors": verdict.errors, "warnings": verdict.warnings}
    )
    return 1 if verdict.errors else 0


def judge(path: str, kind: str, *, is_turbo: bool = False) -> NamingVerdict:
    """Return what the naming rules say of one file of a kind."""
    row, name = _ROWS[kind], os.path.basename(path)
    records, unreadable = read_records(path)
    verdict = NamingVerdict(list(unreadable))
    if is_turbo and records:
        records = (Record(records[0].line, {**records[0].value, "eff": "turbo"}), *records[1:])
    first = records[0].value if records else {}
    values = {record.line: record.value for record in records}
    for line, fault in shape_faults(row, records, Strictness()):
        is_header = row.header is not None and line == records[0].line
        shape = row.shape_of(values[line], position=line - 1, first=first)
        asked = shape is not None and is_asked(fault, shape, values[line], is_header=is_header)
        told = verdict.errors if asked else verdict.warnings
        if asked or fault.level is Level.ERROR or fault.reason is Reason.WRONG_LINE_COUNT:
            told.append(placed(name, line, fault))
    return verdict


def _everything(target: str, kind: str, scope: str, given: Given) -> NamingVerdict:
    is_turbo = "--turbo" in given.switches
    verdict = NamingVerdict()
    for path, found in _files(target, kind):
        if not found:
            verdict.warnings.append(f"Unknown artifact type: {safe(os.path.basename(path))}")
            continue
        one = judge(path, found, is_turbo=is_turbo)
        verdict.errors.extend(one.errors)
        verdict.warnings.extend(one.warnings)
    for path, found in _milestones(target, kind) if scope == "all" else ():
        one = judge(path, found, is_turbo=is_turbo)
        verdict.warnings.extend(f"milestone: {said}" for said in (*one.errors, *one.warnings))
    return verdict


def _files(target: str, kind: str) -> Iterator[tuple[str, str]]:
    """Yield files with their kinds; of a directory those of a known kind, and a single file whatever it is."""
    if os.path.isdir(target):
        yield from _below(target, kind, DEPTH)
    else:
        yield target, kind or _kind_of(os.path.basename(target))


def _milestones(target: str, kind: str) -> Iterator[tuple[str, str]]:
    """Yield files of milestones, which stand beside `phases` or below the planning root."""
    beside = os.path.join(os.path.dirname(os.path.abspath(target)), "milestones")
    below = os.path.join(target, "milestones")
    for root in (below, beside):
        if os.path.isdir(root):
            yield from _below(root, kind, _MILESTONE_DEPTH)
            return


def _below(root: str, kind: str, depth: int) -> Iterator[tuple[str, str]]:
    with os.scandir(root) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    for entry in listed:
        found = _kind_of(entry.name)
        if entry.is_dir(follow_symlinks=False):
            if depth > 1 and entry.name != "milestones":
                yield from _below(entry.path, kind, depth - 1)
        elif found and kind in ("", found):
            yield entry.path, found


def _kind_of(name: str) -> str:
    return next((row.kind for row in _ROWS.values() if name.endswith(_ending(row))), "")


def _ending(row: Artifact) -> str:
    return row.file.rpartition("}")[2]
