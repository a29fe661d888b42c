"""State files that several hands write: how to tell our own last word from somebody else's.

What we derive carries a checksum of the whole file. As long as it fits, every value is ours and may
be replaced; once somebody edits the file it does not, and what they said that the evidence does not
bear out is kept under `declared`, beside what the evidence says.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

SEAL = "projected"
DECLARED = "declared"

Rank = Callable[[str, Any], float]
"""How far a value is on its way, by key: only what is at least as far as the evidence can differ
from it for good.
"""


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content with the checksum that says it is ours."""
    return {**_bare(content), SEAL: _checksum(content)}


def renewed(before: Mapping[str, Any] | None, fresh: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the fresh content, sealed; None when the file says the same already, whoever
    wrote it.
    """
    return None if before is not None and _bare(before) == _bare(fresh) else sealed(fresh)


def is_ours(content: Mapping[str, Any]) -> bool:
    """Return whether nobody changed the content since we wrote it."""
    return content.get(SEAL) == _checksum(content)


def declared_in(
    before: Mapping[str, Any],
    said: Iterable[tuple[str, Any]],
    derived: Mapping[str, Any],
    rank: Rank,
) -> dict[str, Any]:
    """Return what is declared and not borne out: key → value.

    What the evidence has overtaken was true, and is dropped.

    `said`: what the file says in places that the evidence decides, by key; it counts only where the
    file is not ours. `derived`: what the evidence says, under the same keys.
    """
    old = before.get(DECLARED)
    kept = dict(old) if isinstance(old, dict) else {}
    fresh = {} if is_ours(before) else dict(said)
    return {
        key: value
        for key, value in (kept | fresh).items()
        if key in derived and value != derived[key] and rank(key, value) >= rank(key, derived[key])
    }


def rank_of_status(_: str, status: object) -> int:
    """Return how far a status is; a verdict is as far as a completion."""
    return _RANKS.get(str(status), 2)


_RANKS = {"": 0, "pending": 0, "running": 1}


def _bare(content: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key != SEAL}


def _checksum(content: Mapping[str, Any]) -> str:
    text = json.dumps(_bare(content), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
