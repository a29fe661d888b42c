"""How a record is identified within its file, and which records a new version has lost. Pure.

Preventing two writers from overwriting each other is the reason to have a coordinator: a committed
record is not dropped because a later file lacks it. See docs/operations.md.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from yolo_fs.artifacts.table import Artifact, MergeStrategy
from yolo_fs.protocol.decisions import SUPERSEDE

Value = Mapping[str, Any]

content_of = json.JSONEncoder(sort_keys=True).encode
"""The full content of a record, independent of its spelling."""
_SPEAKERS = ("agent", "by", "from_dept", "gl")


class LostRecord(NamedTuple):
    """A record of the branch that a new version of its file lacks."""

    name: str
    """Its id, with the plan where only both identify it; `line N` where it has none."""
    line: int
    """Its line on the branch, from 1."""
    speaker: str
    """Its author, as it says itself; empty if it does not."""


def name_of(artifact: Artifact, value: Value) -> str:
    """Return the id of a record, or its equivalent in that kind; empty if there is none."""
    if artifact.named_by:
        parts = [value.get(field) for field in artifact.named_by]
        return "/".join(map(str, parts)) if all(parts) else ""
    return str(value.get("id") or value.get("name") or "")


def lost_records(
    artifact: Artifact, before: Iterable[Value], now: Iterable[Value]
) -> Iterator[LostRecord]:
    """Yield the records of the previous version that the new one lacks.

    In an append-only kind, each record must be unchanged. In a kind whose records have ids, a
    record may change but must be present. Any other kind is rewritten as a whole and loses nothing.
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
    """Return whether its records on the branch may only be removed by a decision."""
    return artifact.append_only or artifact.merge_strategy is not MergeStrategy.WHOLE


def superseded_in(decisions: Iterable[Value], file: str) -> frozenset[str]:
    """Return the names of a file's records whose removal was decided."""
    references = (
        str(decision.get("of", "")) for decision in decisions if decision.get("kind") == SUPERSEDE
    )
    return frozenset(of.removeprefix(f"{file}:") for of in references if of.startswith(f"{file}:"))


def key_of(artifact: Artifact, value: Value) -> str:
    """Return the key that finds a record in another version of its file; empty if there is none.

    A `name` alone is no key, because its author may change it.
    """
    if artifact.append_only:
        return content_of(value)
    return name_of(artifact, value) if artifact.named_by or value.get("id") else ""
