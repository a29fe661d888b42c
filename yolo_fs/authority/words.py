"""Whose word a new record is: what counts as the decision of an agent, that agent writes. Pure.

See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from yolo_fs.core.reasons import safe
from yolo_fs.protocol.departments import Role
from yolo_fs.protocol.roster import plain_name

KINDS_WITH_SPEAKERS = frozenset({"decisions", "escalation"})
"""Kinds that everybody writes, and in which each record names whose word it is."""


def find_word_of_another(
    kind: str, before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]], agent: str
) -> str:
    """Return whose word an agent would write that is not its own; empty if there is none.

    A decision without a kind is a remark, of which nothing follows. No agent speaks for the user.
    `agent`: empty for a caller who has not said who they are.
    """
    if kind not in KINDS_WITH_SPEAKERS:
        return ""
    known, own = set(map(_spelled, before)), plain_name(agent)
    for record in after:
        by = plain_name(str(record.get("agent", "")))
        is_remark = kind == "decisions" and not record.get("kind")
        is_other = by == Role.USER or (own and by != own)
        if by and is_other and not is_remark and _spelled(record) not in known:
            return by
    return ""


def advise_to_ask(other: str) -> str:
    """Return what an agent does instead of writing the word of another."""
    if other == Role.USER:
        return "raise it to the user, who decides with 'yolo-fs answer'; write in your own name"
    return f"ask {safe(other)}; write in your own name"


def _spelled(record: Mapping[str, Any]) -> str:
    return json.dumps(record, sort_keys=True)
