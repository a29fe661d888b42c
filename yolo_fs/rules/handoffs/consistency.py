"""What of a handoff contradicts an earlier one of its session, or itself: both places are named. Pure.

See docs/sources.md#document-003.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from yolo_fs.reasons import Level, Reason
from yolo_fs.rules.handoffs.product_facts import FACTS, Fact, Field, How
from yolo_fs.schemas.base import Fault


class EarlierHandoff(NamedTuple):
    """A handoff, as far as facts are concerned."""

    path: str
    handoff: int
    """Number of its section; 0 for an error."""
    value: Mapping[str, Any]


class _Mention(NamedTuple):
    path: str
    at: str
    value: Any


def contradictions(own: EarlierHandoff, earlier: Sequence[EarlierHandoff]) -> Iterator[Fault]:
    """Yield what a handoff says otherwise than the earlier ones, or than itself."""
    for fact in FACTS:
        origin: list[_Mention] = []
        for field in fact.fields:
            origin = origin or _first_mentions(field, earlier)
            mentions = list(_mentions(field, own))
            if origin:
                yield from (
                    fault for one in mentions if (fault := _JUDGES[fact.how](fact, one, origin))
                )
            origin = origin or mentions


def _first_mentions(field: Field, earlier: Sequence[EarlierHandoff]) -> list[_Mention]:
    return next((found for told in earlier if (found := list(_mentions(field, told)))), [])


def _mentions(field: Field, told: EarlierHandoff) -> Iterator[_Mention]:
    """Yield what a handoff says in a field; what is empty says nothing, null says that there is none."""
    if field.handoff not in (0, told.handoff):
        return
    for at, value in _values(told.value, field.at.split("/")[1:]):
        if value != "":
            yield _Mention(told.path, at, value)


def _values(value: Any, steps: Sequence[str], at: str = "") -> Iterator[tuple[str, Any]]:
    if not steps:
        yield at, value
    elif steps[0] == "*":
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from _values(item, steps[1:], f"{at}/{index}")
    elif "+" in steps[0] and isinstance(value, Mapping):
        yield at, " ".join(str(value.get(key, "")) for key in steps[0].split("+"))
    elif isinstance(value, Mapping) and steps[0] in value:
        yield from _values(value[steps[0]], steps[1:], f"{at}/{steps[0]}")


# --- what counts as the same -----------------------------------------------------------------------------------------


def _equal(fact: Fact, own: _Mention, origin: list[_Mention]) -> Fault | None:
    first = origin[0]
    return (
        None
        if _plain(own.value) == _plain(first.value)
        else _conflict(fact, own, first, fact.level)
    )


def _named(fact: Fact, own: _Mention, origin: list[_Mention]) -> Fault | None:
    if _plain(own.value) in {_plain(one.value) for one in origin}:
        return None
    known = ", ".join(_shown(one.value) for one in origin[:10])
    return _conflict(fact, own, _nearest(own, origin)[0], fact.level, f"one of {known}")


def _retold(fact: Fact, own: _Mention, origin: list[_Mention]) -> Fault | None:
    told = [one for one in origin if isinstance(one.value, str)]
    if not isinstance(own.value, str) or not told:
        return None
    nearest = _nearest(own, told)
    if _is_strange(own.value, nearest[0].value):
        return _conflict(fact, own, nearest[0], fact.level)
    if all(_figures_differ(own.value, one.value) for one in nearest):
        return _conflict(fact, own, nearest[0], Level.ERROR)
    return None


_JUDGES = {How.EQUAL: _equal, How.NAMED: _named, How.RETOLD: _retold}


def _conflict(
    fact: Fact, own: _Mention, first: _Mention, level: Level | None, expected: str = ""
) -> Fault | None:
    if level is None:
        return None
    there = f"{first.at} of {first.path}"
    message = (
        f"{fact.name}: {_shown(own.value)} does not agree with {_shown(first.value)} at {there}"
    )
    hint = "Say what the earlier handoff says, or hand that one over anew."
    return Fault(
        Reason.STATE_CONFLICT, own.at, message, expected or _shown(first.value), hint, level
    )


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _plain(value: Any) -> Any:
    return " ".join(value.casefold().split()) if isinstance(value, str) else value


# --- prose -----------------------------------------------------------------------------------------------------------

_EVERYWHERE = (
    "also|been|each|from|have|into|more|most|only|over|such|than|that"
    "|their|them|then|there|they|this|when|which|will|with|your"
)
_WORD = re.compile(rf"\b(?!(?:{_EVERYWHERE})\b)[^\W\d_]{{4,}}")
_STEM = 4
_KINSHIP = 0.25
"""Share of common words up to which two texts have nothing to do with each other."""


def _words(text: str) -> frozenset[str]:
    """Return the beginnings of the words that carry meaning; of a script that sets no spaces nothing can be told."""
    if " " not in text.strip() and not text.isascii():
        return frozenset()
    return frozenset(word[:_STEM] for word in _WORD.findall(text.casefold()))


def _nearest(own: _Mention, origin: list[_Mention]) -> list[_Mention]:
    """Return the earlier texts that share most words with this one."""
    words = _words(str(own.value))
    shared = [len(words & _words(str(one.value))) for one in origin]
    return [one for one, count in zip(origin, shared, strict=True) if count == max(shared)]


def _is_strange(text: str, earlier: str) -> bool:
    """Tell whether a text speaks of something else: hardly a word of the shorter one stands in the other."""
    own, others = _words(text), _words(earlier)
    return bool(own and others) and len(own & others) <= min(len(own), len(others)) * _KINSHIP


_FIGURE = re.compile(
    r"(?<![\w.])(?P<sign>[$€£])?\s?(?P<amount>[0-9]+(?:[.,][0-9]+)*)"
    r"(?:\s?(?P<scale>%|percent\b|[kmbt]\b|bn\b|thousand\b|million\b|billion\b|trillion\b))?"
    r"(?:\s?(?P<code>usd|eur|gbp)\b)?",
    re.IGNORECASE,
)
_SCALES = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "b": 1e9, "bn": 1e9, "billion": 1e9}
_SCALES |= {"t": 1e12, "trillion": 1e12}
_CODES = {"usd": "$", "eur": "€", "gbp": "£"}


def _figures_differ(text: str, earlier: str) -> bool:
    """Tell whether a text has a figure that an earlier text, which has figures of this kind, has not."""
    own, others = _figures(text), _figures(earlier)
    return any(kind in others and not amounts <= others[kind] for kind, amounts in own.items())


def _figures(text: str) -> dict[str, set[tuple[str, float]]]:
    """Return the figures of a text by their kind: money, percent or plain."""
    found: dict[str, set[tuple[str, float]]] = {}
    for figure in _FIGURE.finditer(text):
        sign = figure["sign"] or _CODES.get((figure["code"] or "").lower(), "")
        scale = (figure["scale"] or "").lower()
        kind = "money" if sign else "percent" if scale in ("%", "percent") else "plain"
        amount = _amount(figure["amount"]) * _SCALES.get(scale, 1)
        found.setdefault(kind, set()).add((sign, amount))
    return found


def _amount(digits: str) -> float:
    """Return the number that digits spell; a comma before three digits groups them, any other is a point."""
    whole = re.sub(r",(?=[0-9]{3}(?![0-9]))", "", digits).replace(",", ".")
    return float(whole) if whole.count(".") <= 1 else float(whole.replace(".", ""))
