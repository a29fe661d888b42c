"""Whether an envelope says anything where the document asks for content, and at the length it asks
for. Pure.

See docs/sources.md#document-003.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from yolo_fs.reasons import Fault, Level, Reason

FREE = frozenset({"partial_output", "brand_guidelines"})
"""Keys below which anything may stand, nothing too."""

MAY_BE_EMPTY = frozenset(
    {
        "avoid", "context_files", "created", "known_limitations", "ml_metrics",
        "ml_success_metrics", "phases_completed", "phases_remaining", "referenced",
        "sample_data_files", "specific_questions", "team_members", "technical_constraints",
    }
)  # fmt: skip
"""Lists of which the document says or implies that there may be nothing to tell."""

CORE = frozenset(
    {
        "core_requirements", "differentiation_opportunities", "inputs", "key_customer_pain_points",
        "key_features", "mvp_scope", "outputs", "screens_identified", "screens_to_build",
        "selected_metrics", "top_faq_themes",
    }
)  # fmt: skip
"""Lists without which a handoff hands nothing over; so are `personas` of a PRD."""

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
"""(object, key) → the least and the most sentences, as printed."""

_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s+[\"'“‘(\[]*[^\W\d_a-z]|\s*$)")
"""Ends a sentence: a mark, and then a capital letter or nothing; `e.g. this` and `12.5` do not."""


def faults_of_content(value: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield each text that is blank, each list that is empty, and each text with too many
    sentences.
    """
    yield from _object(value, "", "")


def sentences_in(text: str) -> int:
    """Return how many sentences a text has; what follows the last mark is one more."""
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
    if text and not text.strip():
        yield Fault(Reason.EMPTY_VALUE, at, "the text is blank", "text that says something")
    elif key in SENTENCES and (found := sentences_in(text)) > SENTENCES[key][1]:
        least, most = SENTENCES[key]
        message, expected = f"{found} sentences", f"{least} to {most} sentences"
        yield Fault(Reason.TOO_LONG, at, message, expected, level=Level.WARNING)
