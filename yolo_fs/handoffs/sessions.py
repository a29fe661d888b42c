"""A session's handoffs in order: attempts, repeats, and contradictions with earlier ones. Pure.

See docs/dev/sources.md#document-003.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from yolo_fs.artifacts.handoff_names import instant
from yolo_fs.core.reasons import Fault, Level, Reason, shortened
from yolo_fs.handoffs.envelopes import Sent
from yolo_fs.handoffs.product_facts import FACTS, Fact, Field, How
from yolo_fs.schemas.envelope.envelope import Choice


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
    """Yield contradictions between a handoff and the earlier ones, or within itself."""
    for fact in FACTS:
        origin: list[_Mention] = []
        for field in fact.fields:
            origin = origin or _find_first_mentions(field, earlier)
            mentions = list(_find_mentions(field, own))
            if origin:
                yield from (
                    fault
                    for mention in mentions
                    if (fault := _JUDGES[fact.how](fact, mention, origin))
                )
            origin = origin or mentions


def _find_first_mentions(field: Field, earlier: Sequence[EarlierHandoff]) -> list[_Mention]:
    return next(
        (mentions for source in earlier if (mentions := list(_find_mentions(field, source)))), []
    )


def _find_mentions(field: Field, source: EarlierHandoff) -> Iterator[_Mention]:
    """Yield a handoff's values of a field; an empty text is no value, null says there is none."""
    if field.handoff not in (0, source.handoff):
        return
    for at, value in _values(source.value, field.at.split("/")[1:]):
        if value != "":
            yield _Mention(source.path, at, value)


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


def _judge_equal(fact: Fact, own: _Mention, origin: list[_Mention]) -> Fault | None:
    first = origin[0]
    return (
        None
        if _plain(own.value) == _plain(first.value)
        else _conflict(fact, own, first, fact.level)
    )


def _named(fact: Fact, own: _Mention, origin: list[_Mention]) -> Fault | None:
    if any(_is_same_name(_plain(own.value), _plain(mention.value)) for mention in origin):
        return None
    known = shortened((_shown(mention.value) for mention in origin), shown_by=origin[0].path)
    return _conflict(fact, own, _nearest(own, origin)[0], fact.level, f"one of {known}")


def _judge_retold(fact: Fact, own: _Mention, origin: list[_Mention]) -> Fault | None:
    texts = [mention for mention in origin if isinstance(mention.value, str)]
    if not isinstance(own.value, str) or not texts:
        return None
    nearest = _nearest(own, texts)
    if _is_strange(own.value, nearest[0].value):
        return _conflict(fact, own, nearest[0], fact.level)
    if all(_figures_differ(own.value, mention.value) for mention in nearest):
        return _conflict(fact, own, nearest[0], Level.ERROR)
    return None


_JUDGES = {How.EQUAL: _judge_equal, How.NAMED: _named, How.RETOLD: _judge_retold}


def _conflict(
    fact: Fact, own: _Mention, first: _Mention, level: Level | None, expected: str = ""
) -> Fault | None:
    if level is None:
        return None
    there = f"{first.at} of {first.path}"
    message = (
        f"{fact.name}: {_shown(own.value)} does not agree with {_shown(first.value)} at {there}"
    )
    hint = "Repeat the value of the earlier handoff, or write that handoff again."
    return Fault(
        Reason.STATE_CONFLICT, own.at, message, expected or _shown(first.value), hint, level
    )


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _plain(value: Any) -> Any:
    return " ".join(value.casefold().split()) if isinstance(value, str) else value


_WHAT_FOLLOWS_A_NAME = re.compile(r"[,:(;]|\s[-–—]\s")


def _is_same_name(name: Any, other: Any) -> bool:
    """Return whether two names are one; either may say more, such as `Mara, harbour master`."""
    if name == other or not (isinstance(name, str) and isinstance(other, str)):
        return bool(name == other)
    return name == _bare(other) or _bare(name) == other


def _bare(name: str) -> str:
    match = _WHAT_FOLLOWS_A_NAME.search(name)
    return name[: match.start()].rstrip() if match else name


_EVERYWHERE = (
    "also|been|each|from|have|into|more|most|only|over|such|than|that"
    "|their|them|then|there|they|this|when|which|will|with|your"
)
_WORD = re.compile(rf"\b(?!(?:{_EVERYWHERE})\b)[^\W\d_]{{4,}}")
_STEM = 4
_KINSHIP = 0.25
"""Share of common words up to which two texts count as unrelated."""


def _words(text: str) -> frozenset[str]:
    """Return the beginnings of the significant words; nothing for a script without spaces."""
    if " " not in text.strip() and not text.isascii():
        return frozenset()
    return frozenset(word[:_STEM] for word in _WORD.findall(text.casefold()))


def _nearest(own: _Mention, origin: list[_Mention]) -> list[_Mention]:
    """Return the earlier texts that share most words with this one."""
    words = _words(str(own.value))
    shared = [len(words & _words(str(mention.value))) for mention in origin]
    return [mention for mention, count in zip(origin, shared, strict=True) if count == max(shared)]


def _is_strange(text: str, earlier: str) -> bool:
    """Return whether a text is unrelated: hardly a word of the shorter one is in the other."""
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
    """Return whether a text has a figure that an earlier one, with figures of its kind, lacks."""
    own, others = _figures_in(text), _figures_in(earlier)
    return any(kind in others and not amounts <= others[kind] for kind, amounts in own.items())


def _figures_in(text: str) -> dict[str, set[tuple[str, float]]]:
    """Return the figures of a text by their kind: money, percent or plain."""
    figures: dict[str, set[tuple[str, float]]] = {}
    for figure in _FIGURE.finditer(text):
        sign = figure["sign"] or _CODES.get((figure["code"] or "").lower(), "")
        scale = (figure["scale"] or "").lower()
        kind = "plain"
        if sign:
            kind = "money"
        elif scale in ("%", "percent"):
            kind = "percent"
        amount = _amount(figure["amount"]) * _SCALES.get(scale, 1)
        figures.setdefault(kind, set()).add((sign, amount))
    return figures


def _amount(digits: str) -> float:
    """Parse a number: a comma before three digits groups them, any other is a decimal point."""
    whole = re.sub(r",(?=[0-9]{3}(?![0-9]))", "", digits).replace(",", ".")
    return float(whole) if whole.count(".") <= 1 else float(whole.replace(".", ""))


class ProductSession(NamedTuple):
    """The known data of a session."""

    sent: tuple[Sent, ...] = ()
    """Its envelopes of valid shape, oldest first."""
    choices: tuple[Choice, ...] = ()
    """What the orchestrator chose after errors, oldest first."""


def in_order(sent: Sequence[Sent]) -> tuple[Sent, ...]:
    """Return envelopes oldest first."""
    return tuple(sorted(sent, key=lambda envelope: (envelope.moment, envelope.step, envelope.path)))


class Attempt(NamedTuple):
    """The attempt on its route that an envelope belongs to."""

    number: int
    """From 1; errors count, repeats do not."""
    repeats: str = ""
    """Path of the envelope that it repeats; empty when it is new."""


def repeated_by(
    value: Mapping[str, Any], source: str, target: str, earlier: Sequence[Sent]
) -> Sent | None:
    """Return the earlier envelope with the same content, its time aside; None for a new attempt.

    Once the receiving agent has failed, or was asked again, the same words are a new attempt.
    """
    for envelope in earlier[::-1]:
        if (envelope.source, envelope.target) == (source, target) and _content(
            envelope.value
        ) == _content(value):
            return envelope
        is_answer = (envelope.source, envelope.target) == (target, source)
        if is_answer and (envelope.is_error or target == "orchestrator"):
            return None
    return None


def attempts(sent: Sequence[Sent]) -> dict[str, Attempt]:
    """Return path → attempt of every envelope; `sent` is in order."""
    by_path: dict[str, Attempt] = {}
    counts: dict[tuple[str, str], int] = {}
    for index, envelope in enumerate(sent):
        route = (envelope.source, envelope.target)
        same = repeated_by(envelope.value, *route, sent[:index])
        if same is None:
            counts[route] = counts.get(route, 0) + 1
        by_path[envelope.path] = Attempt(
            counts[route] if same is None else by_path[same.path].number, same.path if same else ""
        )
    return by_path


def _content(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key != "timestamp"}


def faults_among(own: Sent, session: ProductSession) -> Iterator[Fault]:
    """Yield contradictions between an envelope and those that were sent before it."""
    before = [
        envelope
        for envelope in session.sent
        if envelope.path != own.path and envelope.moment <= own.moment
    ]
    latest = {(envelope.source, envelope.target): envelope for envelope in before}
    known = [envelope for envelope in latest.values() if envelope.step < own.step]
    handoffs = [
        EarlierHandoff(envelope.path, envelope.section, envelope.value)
        for envelope in in_order(known)
    ]
    yield from contradictions(EarlierHandoff(own.path, own.section, own.value), handoffs)
    yield from _check_lost_phases(own, in_order(known))
    yield from _check_not_aborted(own, session)


def _check_lost_phases(own: Sent, earlier: Sequence[Sent]) -> Iterator[Fault]:
    """Yield phases that an earlier handoff lists as completed and this one does not."""
    completed = own.envelope.workflow_state.phases_completed
    at = "/workflow_state/phases_completed"
    for handoff in reversed(earlier):
        phases = handoff.envelope.workflow_state.phases_completed
        if lost := [phase for phase in phases if phase not in completed]:
            message = (
                f"{', '.join(lost)!r} was completed at {at} of {handoff.path}, and is not any more"
            )
            yield Fault(Reason.STATE_CONFLICT, at, message, f"at least {', '.join(phases)}")
            return


def _check_not_aborted(own: Sent, session: ProductSession) -> Iterator[Fault]:
    """Yield what comes after an error whose session was aborted, whatever its clock says of it."""
    last = session.choices[-1] if session.choices else None
    if last is None or last.way != "abort":
        return
    failed = [envelope.moment for envelope in session.sent if envelope.path == last.error]
    if own.moment > min([instant(last.chosen_at), *failed]):
        message = f"the workflow was aborted at {last.chosen_at} after {last.error}"
        hint = "Begin another session."
        yield Fault(
            Reason.STATE_CONFLICT, "/session_id", message, "no handoff after an abort", hint
        )
