"""What names a record among those of its file, and which of them a new version has lost. Pure.

Two writers that overwrite each other are the fault that a team gets a coordinator for: what one of
them committed is not taken back by a file that merely lacks it. See docs/operations.md.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from yolo_fs.artifacts.table import Artifact, Meeting

Value = Mapping[str, Any]

content_of = json.JSONEncoder(sort_keys=True).encode
"""All that a record says, however it is spelled."""
_SPEAKERS = ("agent", "by", "from_dept", "gl")
SUPERSEDE = "supersede"
"""Kind of the decision that lets a record go; its `of` is `FILE:RECORD`."""


class LostRecord(NamedTuple):
    """A record of the branch that a new version of its file lacks."""

    name: str
    """Its id, with the plan where only both name it; `line N` where it has none."""
    line: int
    """Where the branch has it, from 1."""
    speaker: str
    """Whose word it is, as it says itself; empty where it does not."""


def name_of(artifact: Artifact, value: Value) -> str:
    """Return the id of a record, or what stands for one in its kind; empty where nothing does."""
    if artifact.named_by:
        said = [value.get(field) for field in artifact.named_by]
        return "/".join(map(str, said)) if all(said) else ""
    return str(value.get("id") or value.get("name") or "")


def lost_records(
    artifact: Artifact, before: Iterable[Value], now: Iterable[Value]
) -> Iterator[LostRecord]:
    """Yield the records of the version before that the new one lacks.

    Of an append-only kind, each record counts as it was; of one whose records have names, each may
    say something else by now, but is there. Whatever else is written anew as a whole.
    """
    if not keeps_records(artifact):
        return
    there = Counter(key_of(artifact, value) for value in now)
    for number, value in enumerate(before, 1):
        key = key_of(artifact, value)
        if not key:
            continue
        if there[key] > 0:
            there[key] -= artifact.append_only
            continue
        name = "" if artifact.append_only else name_of(artifact, value)
        speaker = next((str(value[field]) for field in _SPEAKERS if value.get(field)), "")
        yield LostRecord(name or f"line {number}", number, speaker)


def keeps_records(artifact: Artifact) -> bool:
    """Return whether what the branch has of it may not go without a word."""
    return artifact.append_only or artifact.meets is not Meeting.WHOLE


def superseded_in(decisions: Iterable[Value], file: str) -> frozenset[str]:
    """Return the names of the records of a file that somebody decided to let go."""
    told = (str(one.get("of", "")) for one in decisions if one.get("kind") == SUPERSEDE)
    return frozenset(of.removeprefix(f"{file}:") for of in told if of.startswith(f"{file}:"))


def key_of(artifact: Artifact, value: Value) -> str:
    """Return by what a record is found in another version of its file; empty for by nothing: what
    has a name alone may be called otherwise by its author.
    """
    if artifact.append_only:
        return content_of(value)
    return name_of(artifact, value) if artifact.named_by or value.get("id") else ""
