"""What a roadmap says of one phase, line by line. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_LABEL = re.compile(r"\s*(?:[-*]\s+)?\*\*(?P<label>[^*:]+):?\*\*:?\s*(?P<text>.*)")
_ITEM = re.compile(r"\s*(?:[-*+]|[0-9]+[.)])\s+(?:\[[ xX]\]\s+)?(?P<text>.+)")

Numbered = tuple[int, str]
"""Number of a line, from 1, and what it says."""


def below(lines: Sequence[str], heading: str) -> Iterator[Numbered]:
    """Yield the lines below the first heading that matches a pattern, up to the next heading of its rank."""
    rank = 0
    for number, line in enumerate(lines, 1):
        if found := _HEADING.match(line):
            if rank and len(found[1]) <= rank:
                return
            if not rank and re.match(heading, found[2], re.IGNORECASE):
                rank = len(found[1])
                continue
        if rank:
            yield number, line


def of_phase(lines: Sequence[str], number: str) -> tuple[Numbered, ...]:
    """Return the block of a phase. `number`: two digits."""
    return tuple(below(lines, rf"phase\s+0*{int(number)}\b"))


def said(block: Sequence[Numbered], label: str) -> Iterator[Numbered]:
    """Yield what stands behind a label such as `**Goal:**`, and the list below it."""
    is_open = False
    for number, line in block:
        if found := _LABEL.match(line):
            is_open = found["label"].strip().lower().startswith(label.lower())
            if is_open and found["text"].strip():
                yield number, found["text"].strip()
        elif is_open and (item := _ITEM.match(line)):
            yield number, item["text"].strip()
        elif line.strip():
            is_open = False
