"""The messages of document 000: the catalogue in the document's order, and its reader.

A new message is one class in one of the family modules. See docs/dev/sources.md#document-000.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, cast

from yolo_fs.core.reasons import Fault, Reason
from yolo_fs.schemas.check import check
from yolo_fs.schemas.fields import fields_of
from yolo_fs.schemas.layout import Strictness, spelling_of
from yolo_fs.schemas.messages import departments, team, work
from yolo_fs.schemas.messages.message import CATALOGUE, Direction, Message

__all__ = ["MESSAGES", "Direction", "Message", "read_message"]

_FAMILIES = (work, team, departments)
_RANK = {family.__name__: rank for rank, family in enumerate(_FAMILIES)}
MESSAGES: Mapping[str, type[Message]] = MappingProxyType(
    dict(sorted(CATALOGUE.items(), key=lambda entry: _RANK[entry[1].__module__]))
)
"""Type → message, in the order of document 000."""


def read_message(
    value: Mapping[str, Any], mode: Strictness = Strictness()
) -> tuple[Message | None, tuple[Fault, ...]]:
    """Return the object as the message that its `type` names, or None, with all of its faults."""
    named = value.get("type")
    shape = MESSAGES.get(named) if isinstance(named, str) else None
    for candidate in (shape,) if shape else MESSAGES.values():
        if rival := candidate.rival(value):
            return None, (rival,)
    if shape is None:
        fault, meant = _fault_for_message_type(value), type_meant_by(value)
        more = check(MESSAGES[meant], with_own_type(value), mode) if meant else ()
        return None, (fault, *(more[1] if more else ()))
    message, faults = check(shape, value, mode)
    return cast("Message | None", message), faults


def _fault_for_message_type(value: Mapping[str, Any]) -> Fault:
    expected = type_meant_by(value) or _nearest(value)
    if "type" not in value:
        other = next((key for key in value if key not in _without_type(value)), "")
        beside = f", but {other!r} is there" if other else ""
        return Fault(Reason.MISSING_KEY, "/type", f"'type' is absent{beside}", expected)
    named = value["type"]
    if not isinstance(named, str):
        return Fault(Reason.WRONG_TYPE, "/type", f"got {type(named).__name__}", expected)
    hint = (
        f"'yolo-fs schema example message/{expected}' prints a valid one"
        if expected in MESSAGES
        else ""
    )
    message = f"no message has the type {named[:80]!r}"
    return Fault(Reason.UNKNOWN_TYPE, "/type", message, expected, hint)


def _without_type(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message without the key that says its type, however that is spelled."""
    return {key: item for key, item in value.items() if spelling_of(key) not in _OF_THE_TYPE}


_OF_THE_TYPE = ("type", "messagetype", "msgtype")


def with_own_type(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message under its type as the catalogue spells it, if it names one at all."""
    meant = type_meant_by(value)
    return {"type": meant, **_without_type(value)} if meant else dict(value)


def type_meant_by(value: Mapping[str, Any]) -> str:
    """Return the type that a message names, in whatever spelling; empty for none."""
    kept = _without_type(value)
    named = [item for key, item in value.items() if key not in kept and isinstance(item, str)]
    letters = {spelling_of(name): name for name in MESSAGES}
    return next((letters[spelling_of(each)] for each in named if spelling_of(each) in letters), "")


def _nearest(value: Mapping[str, Any]) -> str:
    """Return the type that is meant: the one spelled alike, else the one that shares most keys."""
    named = value.get("type")
    if isinstance(named, str) and (alike := get_close_matches(named, MESSAGES, n=1)):
        return alike[0]
    shared = {
        name: len(fields_of(shape).keys() & value.keys() - {"type"})
        for name, shape in MESSAGES.items()
    }
    best = max(shared, key=lambda name: (shared[name], -len(fields_of(MESSAGES[name]))))
    return best if shared[best] else "one of " + ", ".join(MESSAGES)
