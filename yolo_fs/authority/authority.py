"""Who may decide what, and who may use which tool; and decisions outside of an agent's authority.
Pure.

Topics are matched to the matrix by their words. A topic that is not in the matrix is escalated,
never guessed. See docs/dev/sources.md#document-000 and #document-002.
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
_ALL = "All"


class _Fit(IntEnum):
    """How well a topic matches the question."""

    NONE = 0
    PART = 1
    """The words of the question are a part of the topic's."""
    EXACT = 2


def may_decide(actor: Actor, topic: str) -> AccessDecision:
    """Return whether a role decides a topic itself."""
    if actor.role is Role.USER:
        return AccessDecision(True, f"The user decides what nobody else may. {_MATRIX}")
    row = AUTHORITY_BY_ROLE.get(Role.OWNER if actor.role is Role.GO else actor.role)
    if row is None:
        return refusal(actor, f"The matrix gives {actor.role.label} no authority. {_MATRIX}")
    words = _words(topic)
    own, fit = _find_decided_topic(row, words)
    must, must_fit = _find_escalated_topic(row, words)
    if must and must_fit >= fit:
        return _refuse_topic(actor, must)
    if own:
        return AccessDecision(True, f"{actor.role.label} may decide: {own}. {_MATRIX}")
    others = _name_other_deciders(words, row)
    return refusal(actor, f"{actor.role.label} may not decide this.{others} {_MATRIX}")


def _find_decided_topic(row: Authority, words: frozenset[str]) -> tuple[str, _Fit]:
    fits = [(_fit_own(topic, words), topic) for topic in row.decides]
    fit, topic = max(fits, key=lambda pair: pair[0], default=(_Fit.NONE, ""))
    return (topic, fit) if fit else ("", fit)


def _find_escalated_topic(row: Authority, words: frozenset[str]) -> tuple[Topic | None, _Fit]:
    fits = [(_fit(topic.text, words), topic) for topic in row.escalates]
    fit, topic = max(fits, key=lambda pair: pair[0])
    return (topic if fit else None), fit


def _fit(text: str, words: frozenset[str]) -> _Fit:
    main, *examples = _names(text)
    if words in (main, *examples):
        return _Fit.EXACT
    return _Fit.PART if words and words <= main.union(*examples) else _Fit.NONE


def _fit_own(text: str, words: frozenset[str]) -> _Fit:
    """Rate a partial match stricter than for a refusal: sharing some words is not the same
    topic.
    """
    fit = _fit(text, words)
    return fit if fit is not _Fit.PART or 2 * len(words) >= len(_names(text)[0]) else _Fit.NONE


def _names(text: str) -> list[frozenset[str]]:
    """Return the words of a topic, and those of each of its examples in parentheses."""
    main, _, rest = text.partition("(")
    return [_words(main), *(_words(part) for part in re.split(r"[,/)]", rest) if _words(part))]


_FILLERS = frozenset({
    "a", "an", "the", "of", "to", "for", "in", "on", "with", "that", "which", "whether", "and",
    "or", "is",
})  # fmt: skip


def _words(text: str) -> frozenset[str]:
    tokens = re.findall(r"[a-z0-9<.-]+", text.lower())
    words = (word.strip(".-") for word in tokens)
    return frozenset(word.removesuffix("s") for word in words if word and word not in _FILLERS)


def _name_other_deciders(words: frozenset[str], own: Authority) -> str:
    others = [
        row.role.label for row in AUTHORITY if row is not own and _find_decided_topic(row, words)[0]
    ]
    return f" {' and '.join(others)} may decide it." if others else ""


def may_use(actor: Actor, tool: str) -> AccessDecision:
    """Return whether the roster gives a role a tool."""
    agent = actor.agent
    rule = rule_of(agent.source) if agent else "Rule: Agent Roster."
    if agent is None or not agent.tools:
        return AccessDecision(True, f"The roster limits no tools of {actor.role.label}. {rule}")
    if has_tool(actor, tool):
        return AccessDecision(True, f"{agent.full_name} has {', '.join(agent.tools)}. {rule}")
    above = tuple(superior.role for superior in superiors(actor))
    able = next((role for role in above if has_tool(actor.peer(role), tool)), None)
    writer = actor.peer(able or above[0]).name if above else Role.USER.value
    reason = (
        f"{agent.full_name} has {', '.join(agent.tools)} and no {safe(tool)} tool: it hands its "
        f"findings to {writer}, who writes the file, and yolo-fs commits it. {rule}"
    )
    return refusal(actor, reason, *((able,) if able else ()))


def has_tool(actor: Actor, tool: str) -> bool:
    """Return whether the roster lists the tool."""
    tools = actor.agent.tools if actor.agent else ()
    return _ALL in tools or tool.lower() in (name.lower() for name in tools)


def decisions_out_of_lane(facts: PhaseFacts) -> Iterator[Finding]:
    """Yield the decisions of a phase that their agents should have escalated."""
    for artifact in facts.of_kind("decisions"):
        yield from decision_findings(artifact.place.path, artifact.lines, facts)


def decision_findings(
    path: str, lines: Iterable[Mapping[str, Any]], facts: PhaseFacts
) -> Iterator[Finding]:
    """Yield the decisions in a log that are outside of their agent's authority.

    Free text is compared with the topics of the matrix; the optional key `topic` gives the topic
    directly.
    """
    mode = mode_of(facts.options)
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
    words = _words(str(line.get("dec", "")))
    must = next((topic for topic in row.escalates if _names(topic.text)[0] <= words), None)
    return _refuse_topic(actor, must) if must else None


def _refuse_topic(actor: Actor, must: Topic) -> AccessDecision:
    return refusal(actor, f"{actor.role.label} must escalate: {must}. {_MATRIX}", *must.ask)
