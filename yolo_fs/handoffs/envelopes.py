"""Checks one envelope of document 003: route, time, arithmetic, names of its files. Pure.

Shapes, enumerations and sizes are checked by `schemas.envelope`, earlier handoffs by `consistency`.
See docs/dev/sources.md#document-003.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from yolo_fs.artifacts.handoff_names import (
    ENDINGS,
    SECTIONS,
    Wanted,
    handoff_name,
    instant,
    is_slug_of,
    names_of,
    right_names,
    screen_name_of,
    slug_of,
)
from yolo_fs.core.reasons import Fault, Level, Reason
from yolo_fs.protocol.handoffs import AgentType
from yolo_fs.schemas.envelope.envelope import Envelope, read_envelope, route_of
from yolo_fs.schemas.layout import Strictness

FREE = frozenset({"partial_output", "brand_guidelines"})
"""Keys whose content is free; it may also be empty."""

MAY_BE_EMPTY = frozenset(
    {
        "avoid", "context_files", "created", "known_limitations", "ml_metrics",
        "ml_success_metrics", "phases_completed", "phases_remaining", "referenced",
        "sample_data_files", "specific_questions", "team_members", "technical_constraints",
    }
)  # fmt: skip
"""Lists that, as the document says or implies, may be empty."""

CORE = frozenset(
    {
        "core_requirements", "differentiation_opportunities", "inputs", "key_customer_pain_points",
        "key_features", "mvp_scope", "outputs", "screens_identified", "screens_to_build",
        "selected_metrics", "top_faq_themes",
    }
)  # fmt: skip
"""Lists without which a handoff is useless; another one is `personas` of a PRD."""

_TWO_OR_THREE, _UP_TO_THREE = (2, 3), (1, 3)
SENTENCES: Mapping[tuple[str, str], tuple[int, int]] = {
    ("product_concept", "problem_statement"): _UP_TO_THREE,
    ("product_concept", "proposed_solution"): _UP_TO_THREE,
    ("market_research_summary", "market_opportunity"): _TWO_OR_THREE,
    ("market_research_summary", "competitive_position"): _TWO_OR_THREE,
    ("ai_framing_summary", "data_strategy"): _TWO_OR_THREE,
    ("prfaq_summary", "customer_definition"): _TWO_OR_THREE,
    ("prfaq_summary", "problem_statement"): _TWO_OR_THREE,
    ("prfaq_summary", "solution_description"): _TWO_OR_THREE,
    ("prd_summary", "product_overview"): _TWO_OR_THREE,
}
"""(object, key) → the least and the most sentences, as printed in the document."""

_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s++[\"'“‘(\[]*+[^\W\d_a-z]|\s*+$)")
"""End of a sentence: a mark before a capital letter or the end; not in `e.g. this` and `12.5`."""


_SAYS = re.compile(r"[^\W_]|[^\x00-\x7f\s\u200b-\u200f\u2010-\u2027\u2060-\u2064\ufeff]")
"""A letter or a figure of any script, or a sign such as an emoji."""
_PRINTED = re.compile(r"(?:string|paths?)(?: \| null)?(?: \([^()]{0,80}\))?|\s*<[^<>]*>\s*")
"""The values that the document prints for a text, and those of a form."""
_UNDECIDED = re.compile(
    r"\s*(?:tbd|tba|todo|to be (?:decided|defined|determined))\.?\s*", re.IGNORECASE
)


def faults_of_content(value: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield each blank text, each empty list, and each text with too many sentences."""
    yield from _object(value, "", "")


def sentences_in(text: str) -> int:
    """Return how many sentences a text has; text after the last mark counts as one."""
    ends = list(_END.finditer(text.strip()))
    rest = text.strip()[ends[-1].end() :] if ends else text
    return len(ends) + bool(rest.strip())


def _object(value: Mapping[str, Any], at: str, name: str) -> Iterator[Fault]:
    for key, item in value.items():
        here = f"{at}/{key}"
        if key in FREE:
            continue
        if isinstance(item, str):
            yield from _text(item, here, (name, key))
        elif isinstance(item, list):
            yield from _list(item, here, (name, key))
        elif isinstance(item, Mapping):
            yield from _object(item, here, key)


def _list(items: list[Any], at: str, key: tuple[str, str]) -> Iterator[Fault]:
    if not items and key[1] not in MAY_BE_EMPTY:
        is_core = key[1] in CORE or key == ("prd_summary", "personas")
        level = Level.ERROR if is_core else Level.WARNING
        yield Fault(Reason.EMPTY_VALUE, at, "the list is empty", "at least one entry", level=level)
    for index, item in enumerate(items):
        if isinstance(item, str):
            yield from _text(item, f"{at}/{index}", ("", ""))
        elif isinstance(item, Mapping):
            yield from _object(item, f"{at}/{index}", "")


def _text(text: str, at: str, key: tuple[str, str]) -> Iterator[Fault]:
    if text and not _SAYS.search(text):
        yield Fault(Reason.EMPTY_VALUE, at, "the text is blank", "text that is not blank")
    elif _PRINTED.fullmatch(text):
        message = f"the placeholder {text!r} was never filled in"
        yield Fault(Reason.EMPTY_VALUE, at, message, "text that is not blank")
    elif _UNDECIDED.fullmatch(text):
        message, expected = f"{text!r} is still marked as open", "text that is not blank"
        yield Fault(Reason.EMPTY_VALUE, at, message, expected, level=Level.WARNING)
    elif key in SENTENCES:
        yield from _sentences(sentences_in(text), at, *SENTENCES[key])


def _sentences(count: int, at: str, least: int, most: int) -> Iterator[Fault]:
    if least <= count <= most:
        return
    reason = Reason.TOO_LONG if count > most else Reason.OUT_OF_RANGE
    message = f"{count} sentence{'s' if count > 1 else ''}"
    yield Fault(reason, at, message, f"{least} to {most} sentences", level=Level.WARNING)


SKEW = timedelta(seconds=60)
"""Difference between the clocks of two machines that does not count as the future."""

_AGENTS = ("user", *(agent.value for agent in AgentType))


class Sent(NamedTuple):
    """An envelope of valid shape, and its path."""

    path: str
    """POSIX path relative to the project."""
    value: Mapping[str, Any]
    """As written."""
    envelope: Envelope

    @property
    def moment(self) -> datetime:
        """When it was sent."""
        return instant(self.envelope.timestamp)

    @property
    def source(self) -> str:
        """Kind of the agent that hands over."""
        return self.envelope.source_agent.agent_type

    @property
    def target(self) -> str:
        """Kind of the agent that receives."""
        return self.envelope.target_agent.agent_type

    @property
    def is_error(self) -> bool:
        """Whether the source could not complete its phase."""
        return "error" in self.envelope.payload

    @property
    def step(self) -> int:
        """The document's section on this route, which is its place in the workflow; 12 if none."""
        return SECTIONS.get((self.source, self.target), len(SECTIONS) + 1)

    @property
    def section(self) -> int:
        """Number of the section that prints the payload; 0 for an error."""
        return 0 if self.is_error else self.step


def read(
    value: Mapping[str, Any], path: str, now: datetime, mode: Strictness = Strictness()
) -> tuple[Sent | None, list[Fault]]:
    """Return the envelope, None for a wrong shape or route, and its faults."""
    shaped, faults = read_envelope(value, mode)
    all_faults = [*_drop_doubles(faults, route := list(_check_route(value))), *route]
    if shaped is None or any(fault.level is Level.ERROR for fault in all_faults):
        return None, all_faults
    if unreal := _check_timestamp(shaped.timestamp):
        return None, [*all_faults, unreal]
    sent = Sent(path, value, shaped)
    return sent, [
        *all_faults,
        *_check_moment(sent, now),
        *_check_state(sent),
        *_check_slug(sent),
        *_name_faults(sent),
        *_check_made_types(sent),
        *_check_content(sent, mode),
    ]


def _check_content(sent: Sent, mode: Strictness) -> Iterator[Fault]:
    for fault in faults_of_content(sent.value):
        yield fault._replace(level=Level.ERROR) if mode.strict else fault


def right_name(sent: Sent) -> str:
    """Return the path at which an envelope must be stored."""
    return handoff_name(sent.envelope.session_id, sent.source, sent.target, sent.envelope.timestamp)


def _check_route(value: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield faults beyond the payload table: an error may take any route, but to another agent."""
    source, target = route_of(value)
    at = "/target_agent/agent_type"
    if source == target and source in _AGENTS:
        yield Fault(Reason.SELF_REFERENCE, at, f"{source} hands over to itself", "another agent")
    elif target and target not in _AGENTS:
        yield Fault(Reason.UNKNOWN_VALUE, at, f"there is no agent {target!r}", " or ".join(_AGENTS))


def _drop_doubles(faults: Sequence[Fault], better: Sequence[Fault]) -> list[Fault]:
    places = {fault.at for fault in better}
    return [fault for fault in faults if fault.at not in places]


def _check_timestamp(timestamp: str) -> Fault | None:
    """Return the fault of a time that UTC cannot express: the first of year 1 in Tokyo."""
    try:
        instant(timestamp)
    except ValueError:
        return Fault(
            Reason.OUT_OF_RANGE,
            "/timestamp",
            f"{timestamp!r} is out of the calendar in UTC",
            "a moment of now",
        )
    return None


def _check_moment(sent: Sent, now: datetime) -> Iterator[Fault]:
    if sent.moment > now + SKEW:
        message = f"{sent.envelope.timestamp} is in the future"
        yield Fault(
            Reason.OUT_OF_RANGE,
            "/timestamp",
            message,
            f"a moment not later than {now:%Y-%m-%dT%H:%M:%SZ}",
        )


def percentage(completed: Sequence[str], remaining: Sequence[str]) -> float:
    """Return the completed share of the workflow, in percent with two decimals."""
    total = len(completed) + len(remaining)
    return round(100 * len(completed) / total, 2) if total else 0.0


def _check_state(sent: Sent) -> Iterator[Fault]:
    state = sent.envelope.workflow_state
    completed, remaining = state.phases_completed, state.phases_remaining
    yield from _repeated(completed, "/workflow_state/phases_completed")
    yield from _repeated(remaining, "/workflow_state/phases_remaining")
    for index, phase in enumerate(remaining):
        if phase in completed:
            message = f"{phase!r} is completed and remains as well"
            yield _conflict(
                f"/workflow_state/phases_remaining/{index}",
                message,
                "each phase in one of the two lists",
            )
    yield from _check_percentage(state.progress_percentage, completed, remaining)
    yield from _check_phases(sent)


def _repeated(phases: Sequence[str], at: str) -> Iterator[Fault]:
    for index, phase in enumerate(phases):
        if phase in phases[:index]:
            yield Fault(
                Reason.DUPLICATE_ID,
                f"{at}/{index}",
                f"{phase!r} is used more than once",
                "each phase once",
            )


def _check_percentage(
    percent: float, completed: Sequence[str], remaining: Sequence[str]
) -> Iterator[Fault]:
    right = percentage(completed, remaining)
    if abs(percent - right) >= 1:  # an agent may round up or down
        message = f"{percent:g} % for {len(completed)} of {len(completed) + len(remaining)} phases"
        yield Fault(
            Reason.TOTALS_DISAGREE, "/workflow_state/progress_percentage", message, f"{right:g}"
        )


def _check_phases(sent: Sent) -> Iterator[Fault]:
    """Yield contradictions between the agents' phases and the lists of phases."""
    state = sent.envelope.workflow_state
    ended, begun = (
        sent.envelope.source_agent.phase_completed,
        sent.envelope.target_agent.phase_to_execute,
    )
    at = "/source_agent/phase_completed"
    if sent.is_error and sent.source != AgentType.ORCHESTRATOR and ended in state.phases_completed:
        yield _conflict(
            at, f"{ended!r} failed, yet it is completed", "a failed phase among those that remain"
        )
    if not sent.is_error and ended in state.phases_remaining:
        yield _conflict(at, f"{ended!r} is over, yet it remains", "a phase of phases_completed")
    if not sent.is_error and begun in state.phases_completed:
        at = "/target_agent/phase_to_execute"
        yield _conflict(at, f"{begun!r} is completed already", "a phase of phases_remaining")
    if AgentType.AI_FRAMING in (sent.source, sent.target) and not state.is_ai_ml_product:
        at = "/workflow_state/is_ai_ml_product"
        yield _conflict(at, "the AI Framing Agent takes part in AI/ML products only", "true")


def _conflict(at: str, message: str, expected: str) -> Fault:
    return Fault(Reason.STATE_CONFLICT, at, message, expected)


_PATH_KEYS = frozenset({
    "path", "design_system_path", "clickable_prototype_path", "existing_design_system_path",
    "full_research_path", "full_framing_path", "full_prfaq_path", "full_prd_path",
})  # fmt: skip
_PATH_LISTS = frozenset({"referenced", "context_files", "sample_data_files"})


def mentioned_files(sent: Sent) -> dict[str, str]:
    """Return JSON pointer → path of every file that an envelope names."""
    parts = {"artifacts": sent.value["artifacts"]} | (
        {} if sent.is_error else {"payload": sent.value["payload"]}
    )
    return dict(_paths(parts, ""))


def _paths(value: Any, at: str, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _paths(item, f"{at}/{name}", name)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _paths(item, f"{at}/{index}", "path" if key in _PATH_LISTS else "")
    elif isinstance(value, str) and key in _PATH_KEYS:
        yield at, value


def _check_slug(sent: Sent) -> Iterator[Fault]:
    name, slug = sent.envelope.product_name, sent.envelope.product_name_slug
    if not is_slug_of(slug, name):
        yield Fault(
            Reason.NAME_MISMATCH,
            "/product_name_slug",
            f"{slug!r} does not spell {name!r}",
            slug_of(name),
        )


def _name_faults(sent: Sent) -> Iterator[Fault]:
    """Yield the files whose names break the convention, with the right names."""
    for at, (path, wanted) in _named_files(sent).items():
        # A payload may point at files that existed before: only files that the team made follow the
        # convention.
        is_made = at.startswith("/artifacts") or path.startswith("documents/")
        if is_made and (right := right_names(path, wanted)):
            hint = "Rename the file and correct the path."
            yield Fault(
                Reason.BAD_NAME,
                at,
                f"{path!r} is not named by the convention",
                " or ".join(right),
                hint,
            )


def _check_made_types(sent: Sent) -> Iterator[Fault]:
    """Yield the files of a type for which the convention has no name of their agent's."""
    names = names_of(next((agent for agent in AgentType if agent == sent.source), None))
    for index, made in enumerate(sent.envelope.artifacts.created):
        if names and not any(name.endswith(f".{ENDINGS[made.type]}") for name in names):
            message = f"the convention has no {made.type} of {sent.source}"
            at = f"/artifacts/created/{index}/type"
            yield Fault(Reason.BAD_NAME, at, message, " or ".join(names), level=Level.WARNING)


def _named_files(sent: Sent) -> dict[str, tuple[str, Wanted]]:
    """Return JSON pointer → path and required name, for files with prescribed names."""
    slug, day = sent.envelope.product_name_slug, sent.envelope.timestamp[:10]
    producer = next((agent for agent in AgentType if agent == sent.source), None)
    files: dict[str, tuple[str, Wanted]] = {}
    for index, made in enumerate(sent.envelope.artifacts.created):
        at = f"/artifacts/created/{index}/path"
        files[at] = made.path, Wanted(slug, day, ENDINGS[made.type], producer)
    for key, (word, ending) in _WORDS.items():
        if key in sent.envelope.payload:
            files[f"/payload/{key}"] = (
                sent.envelope.payload[key],
                Wanted(slug, day, ending, word=word),
            )
    return files | _list_prototype_files(sent, slug, day)


def _list_prototype_files(sent: Sent, slug: str, day: str) -> dict[str, tuple[str, Wanted]]:
    summary = sent.envelope.payload.get("prototype_summary")
    if not isinstance(summary, Mapping):
        return {}
    at = "/payload/prototype_summary"
    files = {
        f"{at}/{key}": (summary[key], Wanted(slug, day, "html", word=word))
        for key, word in _PROTOTYPE_WORDS.items()
    }
    for index, screen in enumerate(summary["screens_created"]):
        wanted = Wanted(
            slug, day, "html", word="Screen", screen=screen_name_of(screen["screen_name"])
        )
        files[f"{at}/screens_created/{index}/path"] = screen["path"], wanted
    return files


_WORDS = {
    "full_research_path": ("MarketResearch", "json"),
    "full_framing_path": ("AIFraming", "md"),
    "full_prfaq_path": ("PRFAQ", "md"),
    "full_prd_path": ("PRD", "md"),
}
"""Key of a payload → first word and extension of the file that it names."""
_PROTOTYPE_WORDS = {
    "design_system_path": "DesignSystem",
    "clickable_prototype_path": "ClickablePrototype",
}
