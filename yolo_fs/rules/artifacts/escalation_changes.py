"""What one version of an execution state says of escalations that the version before did not: taken
in, or closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

Entry = Mapping[str, Any]
"""One escalation of an execution state."""


class Change(Enum):
    """What became of an escalation."""

    RECEIVED = "received"
    """It was not there, or was closed, and is open."""
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Changed:
    """One escalation that a version of the state takes in or closes."""

    id: str
    change: Change


def entries_in(state: Mapping[str, Any]) -> tuple[Entry, ...]:
    """Return the escalations of an execution state that are objects."""
    found = state.get("escalations")
    return tuple(one for one in found if isinstance(one, dict)) if isinstance(found, list) else ()


def changes(before: Iterable[Entry], after: Iterable[Entry]) -> Iterator[Changed]:
    """Yield which escalations were taken in or closed between two versions, in the order of the later one."""
    was_open = {str(one.get("id")): _is_open(one) for one in before}
    for one in after:
        name = str(one.get("id"))
        if _is_open(one) is not was_open.get(name):
            yield Changed(name, Change.RECEIVED if _is_open(one) else Change.RESOLVED)


def without(
    after: Iterable[Entry], before: Iterable[Entry], late: Sequence[Changed]
) -> list[Entry]:
    """Return the later version as if some of its changes had not come yet."""
    known = {str(one.get("id")): one for one in before}
    kept = {one.id: known.get(one.id) for one in late}
    found = (kept.get(str(one.get("id")), one) for one in after)
    return [one for one in found if one is not None]


def _is_open(entry: Entry) -> bool:
    return entry.get("status") != "resolved"
