"""How two versions of a JSONL artifact meet: by records, never by the lines around them. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from yolo_fs.rules.artifacts.table import Artifact, Meeting

_TIMES = ("dt", "ts", "at", "started")
"""Keys that say when a record was made, the first that is there counts."""


class MergedLines(NamedTuple):
    """What three versions of a file come to."""

    lines: tuple[str, ...]
    conflicts: tuple[str, ...] = ()
    """Names of the records that both sides changed differently; the lines are then empty."""


class _Record(NamedTuple):
    name: str
    """What tells it from the other records of its file."""
    meaning: str
    """Its content, whatever the order of its keys."""
    line: str
    time: str


def merge_texts(artifact: Artifact, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Return the file that two versions come to, given the one both began with; None on a conflict.

    Where both sides say the same, or only one changed anything, there is none, whatever the kind.
    """
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    versions = [_lines_of(each) for each in (base, ours, theirs)]
    if artifact.meets is Meeting.WHOLE or any(each is None for each in versions):
        return None
    merged = merge_lines(artifact.meets, *(each or () for each in versions))
    return None if merged.conflicts else "".join(f"{line}\n" for line in merged.lines).encode()


def merge_lines(
    meets: Meeting, base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]
) -> MergedLines:
    """Return the lines that two versions come to; each line is one JSON object."""
    read: Callable[[str], _Record] = _by_id if meets is Meeting.BY_ID else _by_content
    versions = [[read(line) for line in lines] for lines in (base, ours, theirs)]
    if meets is Meeting.APPEND:
        return MergedLines(_joined_in_time(versions[1], versions[2]))
    for records in versions:
        if doubled := _doubled(records):
            return MergedLines((), doubled)
    return _by_records(*({one.name: one for one in records} for records in versions))


def _by_records(
    base: dict[str, _Record], ours: dict[str, _Record], theirs: dict[str, _Record]
) -> MergedLines:
    """Apply what we changed to their version: theirs stays in place, what we added comes last."""
    lines: list[str] = []
    conflicts: list[str] = []
    for name in [*theirs, *(name for name in ours if name not in theirs)]:
        versions = base.get(name), ours.get(name), theirs.get(name)
        before, here, there = (one.meaning if one else None for one in versions)
        if here in (there, before):
            chosen = versions[2]
        elif there == before:
            chosen = versions[1]
        else:
            conflicts.append(name)
            continue
        if chosen:
            lines.append(chosen.line)
    return MergedLines(() if conflicts else tuple(lines), tuple(conflicts))


def _joined_in_time(ours: Sequence[_Record], theirs: Sequence[_Record]) -> tuple[str, ...]:
    """Return their lines and those that only we have, each before the first of theirs later."""
    known = {one.meaning for one in theirs}
    added = [one for one in {one.meaning: one for one in ours}.values() if one.meaning not in known]
    lines: list[str] = []
    latest = ""
    for one in theirs:
        latest = max(latest, one.time)
        while added and added[0].time < latest and added[0].time:
            lines.append(added.pop(0).line)
        lines.append(one.line)
    return (*lines, *(one.line for one in added))


def _doubled(records: Sequence[_Record]) -> tuple[str, ...]:
    names = [one.name for one in records]
    return tuple(sorted({name for name in names if names.count(name) > 1}))


def _by_id(line: str) -> _Record:
    record = _by_content(line)
    value = json.loads(line)
    name = str(value.get("id") or value.get("name") or "") if isinstance(value, dict) else ""
    return record._replace(name=name or record.name)


def _by_content(line: str) -> _Record:
    value = json.loads(line)
    meaning = json.dumps(value, sort_keys=True)
    return _Record(meaning, meaning, line, _time_of(value))


def _time_of(value: Any) -> str:
    times = (value.get(key) for key in _TIMES) if isinstance(value, dict) else ()
    return next((time for time in times if isinstance(time, str)), "")


def _lines_of(data: bytes) -> tuple[str, ...] | None:
    """Return the lines of a file, or None when one of them is no JSON object."""
    try:
        lines = tuple(data.decode().split("\n"))
        values = [json.loads(line) for line in lines if line]
    except ValueError:
        return None
    is_sound = all(isinstance(value, dict) for value in values) and "" not in lines[:-1]
    return tuple(line for line in lines if line) if is_sound else None
