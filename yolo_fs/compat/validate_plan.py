"""`validate-plan F`: keys of the header and of the tasks, paths, waves, then the naming rules."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial

from yolo_fs.compat.arguments import UsageError, parse
from yolo_fs.compat.output import print_json
from yolo_fs.compat.shapes import in_words, is_asked, json_type, placed, read_records
from yolo_fs.compat.validate_naming import judge
from yolo_fs.ids import PlanId
from yolo_fs.reasons import Reason, safe
from yolo_fs.rules.artifacts.checks import CHECKS
from yolo_fs.rules.artifacts.table import ARTIFACTS, Check
from yolo_fs.rules.artifacts.verdicts import Place, Surroundings
from yolo_fs.schemas.base import Fault, Record, Wire, check
from yolo_fs.schemas.config import Config, Policy
from yolo_fs.schemas.lines.planning import PlanHeader, PlanTask, TurboPlanHeader, TurboTask
from yolo_fs.services.checking.checker import Checker
from yolo_fs.services.checking.snapshots import WorkTree
from yolo_fs.services.workspace.settings import Settings


def run(arguments: Sequence[str]) -> int:
    given = parse(arguments, most=1)
    if not given.rest:
        raise UsageError("it takes one plan: validate-plan FILE")
    errors, warnings = _judge(given.rest[0])
    print_json({"valid": not errors, "errors": errors, "warnings": warnings})
    return 1 if errors else 0


def _judge(path: str) -> tuple[list[str], list[str]]:
    records, unreadable = read_records(path)
    if not records:
        return ["Empty plan file" if said == "Empty file" else said for said in unreadable] or [
            "Empty plan file"
        ], []
    errors, warnings = list(unreadable), list[str]()
    for asked, said in (*_shape(records), *_references(path, records)):
        (errors if asked else warnings).append(said)
    naming = judge(path, "plan")
    return [
        *errors,
        *(f"Naming: {said}" for said in naming.errors if said not in unreadable),
    ], warnings


Judgement = Iterator[tuple[bool, str]]
"""Whether the contract asks for it, and the sentence."""


def _shape(records: Sequence[Record]) -> Judgement:
    """A plan that says `turbo` may leave out what turbo plans leave out; one that merely lacks `mh` is incomplete."""
    header, *tasks = records
    is_turbo = header.value.get("eff") == "turbo"
    yield from _faults(header, TurboPlanHeader if is_turbo else PlanHeader, is_header=True)
    for task in tasks:
        yield from _faults(task, TurboTask if is_turbo else PlanTask, is_header=False)


def _faults(record: Record, shape: type[Wire], *, is_header: bool) -> Judgement:
    name = "Header" if is_header else f"Task {_name(record)}"
    say = partial(_of_header, shape) if is_header else partial(_of_task, name)
    for fault in check(shape, record.value)[1]:
        if said := say(fault) if _is_asked(fault, shape, record, is_header=is_header) else "":
            yield True, said
        elif fault.reason is not Reason.LEGACY_KEY:  # the naming rules tell of those
            yield False, f"{name}: {safe(fault.at)}: {in_words(fault)}"


def _is_asked(fault: Fault, shape: type[Wire], record: Record, *, is_header: bool) -> bool:
    if not is_header and fault.reason is Reason.PATH_ESCAPES:
        return True
    return is_asked(fault, shape, record.value, is_header=is_header)


def _name(record: Record) -> str:
    name = record.value.get("id")
    return safe(name) if isinstance(name, str) and name else f"on line {record.line}"


def _of_header(shape: type[Wire], fault: Fault) -> str:
    key = safe(fault.at.removeprefix("/"))
    if fault.reason is Reason.MISSING_KEY:
        return f"Header missing required key: {key}"
    if fault.reason is Reason.WRONG_TYPE:
        return f"Header key {key}: expected {json_type(shape, key)}"
    return ""


def _of_task(name: str, fault: Fault) -> str:
    key = safe(fault.at.removeprefix("/"))
    if fault.reason is Reason.MISSING_KEY:
        return f"{name}: missing required key: {key}"
    if fault.reason is Reason.PATH_ESCAPES:
        return f"{name}: path is not relative: {in_words(fault)}"
    if fault.reason is Reason.BAD_FORMAT and key == "id":
        return f"{name}: id does not match ^T[0-9]+$"
    return ""


# --- references ------------------------------------------------------------------------------------------------------

_ROW = next(row for row in ARTIFACTS if row.kind == "plan")


def _references(path: str, records: Sequence[Record]) -> Judgement:
    """What the cross-references get wrong: other plans are looked for in the same directory only."""
    folder, name = os.path.split(path)
    header = records[0].value
    plan = PlanId.parse(f"{header.get('p')}-{header.get('n')}")
    place = Place(name, _ROW, plan=plan)
    settings = Settings(Config(), Policy())
    snapshot = WorkTree(folder or ".", settings.policy.max_file_bytes)
    around = Surroundings(Checker(settings).plans_beside(place, snapshot))
    for rule in (Check.WAVES, Check.TASK_IDS, Check.TASK_GRAPH):
        for line, fault in CHECKS[rule](place, records, around):
            message = _WORDS.get(fault.reason) if rule is Check.WAVES else None
            yield (
                message is not None,
                f"{message}: {fault.message}" if message else placed(name, line, fault),
            )


_WORDS = {
    Reason.WAVE_ORDER: "Plan depends on same-or-higher wave plan",
    Reason.SELF_REFERENCE: "Circular dependency",
    Reason.DEPENDENCY_CYCLE: "Circular dependency",
}
