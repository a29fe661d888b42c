"""Who may decide what, and who may use which tool; and decisions that somebody took outside of his
authority. Pure.

A topic is that of the matrix when its words are. What the matrix does not name is nobody's to
guess: it goes up. See docs/dev/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any

from yolo_fs.authority.actors import (
    AccessDecision,
    Actor,
    find_actor,
    mode_of,
    refusal,
    rule_of,
    superiors,
)
from yolo_fs.core.reasons import Finding, Level, Reason, YoloError, safe
from yolo_fs.evidence.facts import PhaseFacts
from yolo_fs.protocol.authority import AUTHORITY, AUTHORITY_BY_ROLE, Authority, Topic
from yolo_fs.protocol.departments import Role

_MATRIX = "Rule: Decision Authority Matrix."
LANE = (
    'If a question doesn\'t fit your "CAN Decide" column, escalate immediately. '
    "Never guess or make out-of-scope decisions."
)
"""As printed below the matrix."""
ADVISORY = "returns findings to whoever has the tool, who writes and commits them"
_ALL = "All"


class _Fit(IntEnum):
    """How well a topic is the one that is asked about."""

    NONE = 0
    PART = 1
    """The words of the question are some of the topic's."""
    EXACT = 2


def may_decide(actor: Actor, topic: str) -> AccessDecision:
    """Return whether a role decides a topic itself."""
    if actor.role is Role.USER:
        return AccessDecision(True, f"The user decides what nobody else may. {_MATRIX}")
    row = AUTHORITY_BY_ROLE.get(Role.OWNER if actor.role is Role.GO else actor.role)
    if row is None:
        return refusal(actor, f"The matrix gives {actor.role.label} no authority. {_MATRIX}")
    asked = _words(topic)
    own, fit = _best_own(row, asked)
    must, must_fit = _best_other(row, asked)
    if must and must_fit >= fit:
        return refusal(actor, f"MUST escalate: {must}. {_MATRIX}", *must.ask)
    if own:
        return AccessDecision(True, f"CAN decide: {own}. {_MATRIX}")
    return refusal(actor, f"{LANE}{_whose(asked, row)} {_MATRIX}")


def _best_own(row: Authority, asked: frozenset[str]) -> tuple[str, _Fit]:
    fits = [(_fit_own(topic, asked), topic) for topic in row.decides]
    fit, topic = max(fits, key=lambda one: one[0], default=(_Fit.NONE, ""))
    return (topic, fit) if fit else ("", fit)


def _best_other(row: Authority, asked: frozenset[str]) -> tuple[Topic | None, _Fit]:
    fits = [(_fit(topic.text, asked), topic) for topic in row.escalates]
    fit, topic = max(fits, key=lambda one: one[0])
    return (topic if fit else None), fit


def _fit(text: str, asked: frozenset[str]) -> _Fit:
    main, *examples = _names(text)
    if asked in (main, *examples):
        return _Fit.EXACT
    return _Fit.PART if asked and asked <= main.union(*examples) else _Fit.NONE


def _fit_own(text: str, asked: frozenset[str]) -> _Fit:
    """Say yes to less than no: a question that shares some words with a topic is not that topic."""
    fit = _fit(text, asked)
    return fit if fit is not _Fit.PART or 2 * len(asked) >= len(_names(text)[0]) else _Fit.NONE


def _names(text: str) -> list[frozenset[str]]:
    """Return the words of a topic, and those of each example that it gives in parentheses."""
    main, _, rest = text.partition("(")
    return [_words(main), *(_words(part) for part in re.split(r"[,/)]", rest) if _words(part))]


_FILLERS = frozenset(
    {
        "a",
        "an",
        "the",
        "of",
        "to",
        "for",
        "in",
        "on",
        "with",
        "that",
        "which",
        "whether",
        "and",
        "or",
        "is",
    }
)


def _words(text: str) -> frozenset[str]:
    found = re.findall(r"[a-z0-9<.-]+", text.lower())
    words = (word.strip(".-") for word in found)
    return frozenset(word.removesuffix("s") for word in words if word and word not in _FILLERS)


def _whose(asked: frozenset[str], own: Authority) -> str:
    others = [row.role.label for row in AUTHORITY if row is not own and _best_own(row, asked)[0]]
    return f" {' and '.join(others)} may decide it." if others else ""


def may_use(actor: Actor, tool: str) -> AccessDecision:
    """Return whether the roster gives a role a tool."""
    agent = actor.agent
    rule = rule_of(agent.source) if agent else "Rule: Agent Roster."
    if agent is None or not agent.tools:
        return AccessDecision(True, f"The roster limits no tools of {actor.role.label}. {rule}")
    if has_tool(actor, tool):
        return AccessDecision(True, f"{agent.full_name} has {', '.join(agent.tools)}. {rule}")
    reason = (
        f"{agent.full_name} has {', '.join(agent.tools)} and no {safe(tool)} tool: it "
        f"{ADVISORY}. {rule}"
    )
    able = next((one.role for one in superiors(actor) if has_tool(one, tool)), None)
    return refusal(actor, reason, *((able,) if able else ()))


def has_tool(actor: Actor, tool: str) -> bool:
    """Return whether the roster lists the tool."""
    tools = actor.agent.tools if actor.agent else ()
    return _ALL in tools or tool.lower() in (one.lower() for one in tools)


def decisions_out_of_lane(facts: PhaseFacts) -> Iterator[Finding]:
    """Yield the decisions of a phase that their agents had to escalate."""
    for filed in facts.of_kind("decisions"):
        yield from decision_findings(filed.place.path, filed.lines, facts)


def decision_findings(
    path: str, lines: Iterable[Mapping[str, Any]], facts: PhaseFacts
) -> Iterator[Finding]:
    """Yield what of a log of decisions is outside of its agent's authority.

    Free text is held against the topics of the matrix; a key `topic`, which nobody has to write,
    says it outright.
    """
    mode = mode_of(facts.switches)
    for number, line in enumerate(lines, 1):
        try:
            actor = find_actor(str(line.get("agent", "")), None, mode)
        except YoloError as error:
            yield Finding(error.reason, path, number, "/agent", error.message, level=Level.WARNING)
            continue
        if wrong := _out_of_lane(actor, line):
            ask = ", ".join(wrong.ask)
            message = f"{actor.name} decided {safe(str(line.get('dec')), 80)!r}: {wrong.rule}"
            yield Finding(
                Reason.OUT_OF_LANE,
                path,
                number,
                "/dec",
                message,
                f"a decision of {ask}",
                f"ask {ask}",
            )


def _out_of_lane(actor: Actor, line: Mapping[str, Any]) -> AccessDecision | None:
    row = AUTHORITY_BY_ROLE.get(actor.role)
    if row is None:
        return None
    if isinstance(topic := line.get("topic"), str):
        answer = may_decide(actor, topic)
        return None if answer.allowed else answer
    said = _words(str(line.get("dec", "")))
    must = next((topic for topic in row.escalates if _names(topic.text)[0] <= said), None)
    return refusal(actor, f"MUST escalate: {must}. {_MATRIX}", *must.ask) if must else None
