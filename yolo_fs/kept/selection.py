"""Which contents that the branch does not have are kept, and which are dropped first. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from yolo_fs.core.foreign_json import parse
from yolo_fs.core.reasons import safe

VERSIONS = 20
"""Number of versions kept of one path: the newest."""
MOST_BYTES = 64 << 20
"""Total size of what is kept: the newest entries."""
_PATHS_NAMED = 100
_FACTS_BYTES = 8 << 20
_ENTRY_BYTES = 1024
"""What an entry costs besides its contents, bytes."""


class KeptCause(NamedTuple):
    """Why contents are kept."""

    reasons: tuple[str, ...]
    """Codes, such as `missing_key`."""
    command: str = ""
    """The command that would have destroyed them; empty for an artifact that was not committed."""
    agent: str = ""
    """Who ran that command."""


class KeptEntry(NamedTuple):
    """Contents kept at one moment: one content, or all that a command would have destroyed."""

    number: int
    """From 1, increasing."""
    at: str
    """Moment, such as `2026-02-19T08:00:00Z`."""
    paths: tuple[str, ...]
    """Its paths; only the first ones if there are many."""
    files: int
    """Number of contents; 0 when they look like credentials and are only named."""
    size_bytes: int
    cause: KeptCause
    tree: str
    """Id of the tree that holds the contents at their paths."""
    dropped: int = 0
    """Number of entries dropped for lack of room when this one was made."""

    @property
    def message(self) -> str:
        """The message of its commit; foreign text is reduced to one line of ASCII."""
        facts = {**self._asdict(), "cause": self.cause._asdict()}
        del facts["tree"]
        facts["paths"] = self.paths[:_PATHS_NAMED]
        named = safe(self.paths[0], 100) if self.paths else "nothing"
        subject = f"kept {self.number}: {named} ({', '.join(self.cause.reasons)})"
        return f"{subject}\n\n{json.dumps(facts)}\n"


def entry_of(tree: str, message: str) -> KeptEntry | None:
    """Parse a commit's tree and message into an entry; None when it is none of ours."""
    try:
        facts: dict[str, Any] = parse(message.rstrip("\n").rpartition("\n")[2], _FACTS_BYTES)
        cause = KeptCause(**facts.pop("cause") | {})
        reasons, paths = (
            tuple(map(str, named[:_PATHS_NAMED])) for named in (cause.reasons, facts.pop("paths"))
        )
        cause = KeptCause(reasons, str(cause.command), str(cause.agent))
        entry = KeptEntry(**facts, paths=paths, tree=tree, cause=cause)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    numbers = (entry.number, entry.files, entry.size_bytes, entry.dropped)
    is_sound = all(type(number) is int and number >= 0 for number in numbers) and bool(paths)
    return entry if is_sound and isinstance(entry.at, str) else None


@lru_cache(maxsize=4_096)
def draft_of(paths: tuple[str, ...], cause: KeptCause) -> KeptEntry:
    """Return a draft of an entry; thousands of equal ones share their data."""
    return KeptEntry(0, "", paths, 0, 0, cause, "")


def within_bounds(entries: Sequence[KeptEntry]) -> tuple[KeptEntry, ...]:
    """Return the entries that stay, oldest first: limited per path, and in total size."""
    versions: Counter[str] = Counter()
    room = MOST_BYTES
    stay: list[KeptEntry] = []
    for entry in reversed(entries):
        if not entry.cause.command:
            versions[entry.paths[0]] += 1
            if versions[entry.paths[0]] > VERSIONS:
                continue
        room -= entry.size_bytes + _ENTRY_BYTES
        if room < 0 and stay:
            break
        stay.append(entry)
    return tuple(reversed(stay))
