"""One trial: the product and the second opinion judge the same bytes, and every difference is told.

Whether an object has the right shape is judged by the exported JSON Schema on one side and by the product on the
other; what a schema cannot say (`BEYOND_JSON_SCHEMA`, and a float that is whole) is no difference.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from tests.fuzz.handoff import read_handoff
from tests.fuzz.mutations import VERSIONS_END, Specimen, schemas
from tests.fuzz.reference import Rules, is_object, read_lines
from yolo_fs.artifacts.catalogue import Kind, artifact_of, find_kind
from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.examine import examine
from yolo_fs.artifacts.export import BEYOND_JSON_SCHEMA
from yolo_fs.artifacts.table import ARTIFACTS, MergeStrategy, by_kind
from yolo_fs.artifacts.verdicts import ArtifactPath, PlanFacts, Surroundings
from yolo_fs.cli import hook_fast
from yolo_fs.core.reasons import Level, Reason, errors
from yolo_fs.schemas.check import check
from yolo_fs.schemas.layout import Record, Strictness
from yolo_fs.system import front_matter, readers, text_checks, toon
from yolo_fs.team.reconcile import merge_texts


class Sort(StrEnum):
    """What went wrong."""

    CRASH = "crash"
    WRONG_ACCEPT = "wrong accept"
    WRONG_REJECT = "wrong reject"
    WRONG_VALUE = "wrong value"


@dataclass(frozen=True, slots=True)
class Difference:
    """A trial that came out otherwise than the second opinion says."""

    sort: Sort
    where: str
    data: bytes
    detail: str


SMALL = Rules(line_bytes=300, file_bytes=2000, depth=5, digits=4, lines=12, brackets=40)
"""Limits that small input reaches."""


def limits_of(rules: Rules) -> text_checks.Limits:
    """Return the same rules in the product's words."""
    return text_checks.Limits(
        rules.line_bytes, rules.file_bytes, rules.depth, rules.digits, rules.lines, rules.brackets
    )


Count = Callable[[str], None]
"""Is told what was accepted, so that a campaign in which nothing ever is shows."""


def _uncounted(_: str) -> None:
    """Count nothing."""


def try_lines(
    specimen: Specimen, rules: Rules = Rules(), count: Count = _uncounted
) -> Iterator[Difference]:
    """Yield what the two say differently of a JSONL file and of every object in it."""
    data = specimen.data
    try:
        reading = readers.read_lines(data, "x.jsonl", limits_of(rules))
    except BaseException as error:
        yield Difference(Sort.CRASH, "lines", data, repr(error))
        return
    opinion = read_lines(data, rules)
    ours = {record.line: record.value for record in reading.records}
    yield from _sorted_out("lines", data, set(ours), set(opinion.objects))
    is_sound = not errors(reading.findings)
    if is_sound != opinion.is_sound:
        yield Difference(
            Sort.WRONG_ACCEPT if is_sound else Sort.WRONG_REJECT,
            "file",
            data,
            str(reading.findings),
        )
    if any(
        repr(ours[number]) != repr(opinion.objects[number])
        for number in ours.keys() & opinion.objects
    ):
        yield Difference(Sort.WRONG_VALUE, "lines", data, "")
    for _ in ours:
        count("lines read")
    if specimen.kind:
        yield from _try_shapes(specimen, reading.records, count)


def try_others(data: bytes, rules: Rules = Rules()) -> Iterator[Difference]:
    """Yield what the two say differently of a JSON file, and where the readers of prose and TOON fail."""
    try:
        reading = readers.read_object(data, "x.json", limits_of(rules))
        text_checks.read_text(data, "x.md", limits_of(rules))
        toon.read_toon(data, "x.toon", limits_of(rules))
    except BaseException as error:
        yield Difference(Sort.CRASH, "object", data, repr(error))
        return
    is_sound = not errors(reading.findings)
    if is_sound != is_object(data, rules):
        yield Difference(
            Sort.WRONG_ACCEPT if is_sound else Sort.WRONG_REJECT,
            "object",
            data,
            str(reading.findings),
        )


def _sorted_out(where: str, data: bytes, ours: set[int], theirs: set[int]) -> Iterator[Difference]:
    for number in sorted(ours - theirs):
        yield Difference(Sort.WRONG_ACCEPT, where, data, f"line {number}")
    for number in sorted(theirs - ours):
        yield Difference(Sort.WRONG_REJECT, where, data, f"line {number}")


# --- shapes ----------------------------------------------------------------------------------------------------------


@cache
def _validators() -> Mapping[str, Draft202012Validator]:
    return {name: Draft202012Validator(schema) for name, schema in schemas()}


def _try_shapes(
    specimen: Specimen, records: Sequence[Record], count: Count
) -> Iterator[Difference]:
    kind = find_kind(specimen.kind) or find_kind(specimen.kind.rpartition("/")[0])
    if kind is None or not records:
        return
    try:
        _examine(kind, records)
    except BaseException as error:
        yield Difference(Sort.CRASH, f"examine {kind.name}", specimen.data, repr(error))
    for record in records:
        try:
            verdict = judge(kind, record, records[0].value)
        except BaseException as error:
            yield Difference(Sort.CRASH, kind.name, specimen.data, repr(error))
            continue
        if verdict:
            count("shapes refused" if verdict[1] else "shapes accepted")
            yield from compare(*verdict, record.value, specimen.data)


_GAPS = {"dept": "fe-", "plan": "01-02", "NN": "01", "department": "frontend"}
_AROUND = Surroundings({"01-01": PlanFacts(1, ())}, {"abc1234": True})


def _examine(kind: Kind, records: Sequence[Record]) -> None:
    """Let the product look at the references of an artifact, which nothing may end."""
    if place := _place_of(kind):
        examine(place, records, _AROUND, Strictness())


@cache
def _place_of(kind: Kind) -> ArtifactPath | None:
    artifact = artifact_of(kind)
    return (
        classify(f".yolo-planning/phases/01-auth/{artifact.file.format_map(_GAPS)}")
        if artifact
        else None
    )


def judge(
    kind: Kind, record: Record, first: Mapping[str, Any]
) -> tuple[str, frozenset[Reason]] | None:
    """Return the schema of a record, if any, and the reasons for which the product refuses it."""
    if artifact := artifact_of(kind):
        shape = artifact.shape_of(record.value, position=record.line - 1, first=first)
        names = [
            f"{kind.name}/{line.name}".rstrip("/") for line in kind.lines if line.shape is shape
        ]
        if shape is None or not names:  # a rival shape, which exists to be refused
            return None
        name, faults = names[0], check(shape, record.value)[1]
    else:
        name, faults = kind.name, tuple(fault for _, fault in kind.faults([record], Strictness()))
    return name, frozenset(fault.reason for fault in faults if fault.level is Level.ERROR)


def compare(
    name: str, reasons: frozenset[Reason], value: Any, data: bytes = b""
) -> Iterator[Difference]:
    """Yield a difference between the product's reasons and the verdict of the exported schema."""
    validator = _validators()[name]
    is_valid = validator.is_valid(value)
    if not reasons and not is_valid:
        yield Difference(Sort.WRONG_ACCEPT, name, data, next(validator.iter_errors(value)).message)
    elif reasons - BEYOND_JSON_SCHEMA.keys() and is_valid and not _has_whole_float(value):
        yield Difference(Sort.WRONG_REJECT, name, data, str(sorted(reasons)))


def _has_whole_float(value: Any) -> bool:
    """Return whether a value holds a number such as 1.0, an integer to JSON Schema and none to the protocol."""
    if isinstance(value, dict | list):
        return any(
            _has_whole_float(part)
            for part in (value.values() if isinstance(value, dict) else value)
        )
    return isinstance(value, float) and value.is_integer()


# --- front matter ----------------------------------------------------------------------------------------------------


def try_handoff(
    data: bytes, rules: Rules = Rules(), count: Count = _uncounted
) -> Iterator[Difference]:
    """Yield what the two say differently of a HANDOFF.md."""
    try:
        reading = front_matter.read_front_matter(data, "HANDOFF.md", limits_of(rules))
    except BaseException as error:
        yield Difference(Sort.CRASH, "front matter", data, repr(error))
        return
    packet = read_handoff(data, rules)
    ours = (
        reading.records[0].value["handoff"]
        if reading.records and not errors(reading.findings)
        else None
    )
    if (ours is None) != (packet is None):
        sort = Sort.WRONG_REJECT if ours is None else Sort.WRONG_ACCEPT
        yield Difference(sort, "front matter", data, str(reading.findings or ours))
    elif ours is not None:
        count("front matters accepted")
    if ours and packet and ours != packet:
        yield Difference(Sort.WRONG_VALUE, "front matter", data, f"{ours} != {packet}")


# --- TOON, envelopes, merges, questions of a host ------------------------------------------------


def try_toon(data: bytes, rules: Rules = Rules()) -> Iterator[Difference]:
    """Yield where a document that is read says something else once it is written again."""
    try:
        reading = toon.read_toon(data, "x.toon", limits_of(rules))
        if not reading.records or errors(reading.findings):
            return
        value = reading.records[0].value
        again = toon.read_toon(toon.write_toon(value).encode(), "x.toon", limits_of(rules))
    except BaseException as error:
        yield Difference(Sort.CRASH, "TOON", data, repr(error))
        return
    if value and [record.value for record in again.records] != [value]:
        yield Difference(Sort.WRONG_VALUE, "TOON", data, f"{value} != {again}")


def try_envelope(data: bytes) -> Iterator[Difference]:
    """Yield what the two say differently of an envelope; its kind is on the line before it."""
    name, _, envelope = data.partition(b"\n")
    kind = f"envelope/{name.decode(errors='replace')}"
    yield from try_lines(Specimen(kind if kind in _validators() else "", envelope))


def try_merge(data: bytes) -> Iterator[Difference]:
    """Yield where a merge loses or makes up a record, or depends on who merges, or on how often."""
    base, ours, theirs = (*data.split(VERSIONS_END), b"", b"")[:3]
    for kind in MERGED_KINDS:
        artifact = by_kind(kind)
        assert artifact is not None
        try:
            here = merge_texts(artifact, base, ours, theirs)
            there = merge_texts(artifact, base, theirs, ours)
            again = None if here is None else merge_texts(artifact, base, here, theirs)
        except BaseException as error:
            yield Difference(Sort.CRASH, kind, data, repr(error))
            continue
        if (here is None) != (there is None) or here != again:
            yield Difference(Sort.WRONG_VALUE, kind, data, f"{here!r}, {there!r}, {again!r}")
        elif here is not None and there is not None and len({base, ours, theirs}) == 3:
            sides = _meanings(ours), _meanings(theirs)
            added = (sides[0] | sides[1]) - _meanings(base)
            lost = added - _meanings(here)
            made_up = _meanings(here) - sides[0] - sides[1]
            if lost or made_up or _meanings(here) != _meanings(there):
                yield Difference(Sort.WRONG_VALUE, kind, data, f"lost {lost}, made up {made_up}")


MERGED_KINDS = tuple(
    next(row.kind for row in ARTIFACTS if row.merge_strategy is strategy)
    for strategy in (MergeStrategy.BY_ID, MergeStrategy.APPEND)
)
"""A kind of file for each way in which records meet."""


def _meanings(data: bytes) -> set[str]:
    return {
        json.dumps(json.loads(line), sort_keys=True) for line in data.split(b"\n") if line.strip()
    }


def make_hooked(folder: str) -> str:
    """Make a folder a repository in which hooks have something to guard, and return it."""
    subprocess.run(["git", "init", "-q", folder], check=True)
    os.makedirs(os.path.join(folder, ".yolo-planning", "phases", "01-auth"))
    return folder


def try_hook(data: bytes, start: str) -> Iterator[Difference]:
    """Yield where the hook raises, or answers what no host could read. `start`: see `make_hooked`."""
    try:
        said, complaint, code = hook_fast.answer(data, start=start)
        json.dumps(said)
        complaint.encode("utf-8", "backslashreplace")
    except BaseException as error:
        yield Difference(Sort.CRASH, "hook", data, repr(error))
        return
    if code not in (0, 2):
        yield Difference(Sort.WRONG_VALUE, "hook", data, f"exit code {code}")
