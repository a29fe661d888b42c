"""Reading an agent's handoff: its source and why, the log line, and statistics. Pure.

A read leaves one line that says why the file was or was not used and, after a text fallback, a
second one with its outcome; both in the form of the document. See docs/dev/sources.md#document-004.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from yolo_fs.core.reasons import Fault, Finding, Reason
from yolo_fs.core.timestamps import iso


class HandoffSource(StrEnum):
    """Source of a handoff; `source` of the log line."""

    HANDOFF_JSON = "handoff_json"
    """The file.

    Its reason is the same word: strict mode fails on "any reason other than `handoff_json`".
    """
    TEXT_FALLBACK = "text_fallback"
    """The `---HANDOFF---` block of the agent's reply."""


CAUSES = (Reason.FILE_MISSING, Reason.JSON_PARSE_ERROR, Reason.SCHEMA_INVALID)
"""Why the file was not used."""
OUTCOMES = (Reason.TEXT_FALLBACK_OK, Reason.TEXT_FALLBACK_FAIL)
"""Outcome of the fallback."""

WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""A valid agent or phase name here: nothing in it could end a value, or a line."""


class Diagnosis(NamedTuple):
    """Source of a handoff, and the reason."""

    cause: Reason | None
    """Why the file was not used; None when it was."""
    outcome: Reason | None = None
    """Outcome of the text fallback; None when there was no text to fall back to."""

    @property
    def source(self) -> HandoffSource:
        """What the handoff was taken from, or would have had to be."""
        return HandoffSource.TEXT_FALLBACK if self.cause else HandoffSource.HANDOFF_JSON

    @property
    def reasons(self) -> tuple[str, ...]:
        """The `reason` of each log line of the read."""
        if self.cause is None:
            return (HandoffSource.HANDOFF_JSON.value,)
        return tuple(reason.value for reason in (self.cause, self.outcome) if reason)

    @property
    def is_usable(self) -> bool:
        """Whether there is a handoff to route by."""
        return self.cause is None or self.outcome is Reason.TEXT_FALLBACK_OK

    def fails(self, *, strict: bool) -> bool:
        """Return whether the phase has to stop. Strict: on any reason other than `handoff_json`."""
        return self.cause is not None if strict else not self.is_usable


def cause_of(findings: Sequence[Finding]) -> Reason:
    """Return why a file that the strict parser rejected is not used."""
    is_json = any(finding.reason is Reason.NOT_AN_OBJECT for finding in findings)
    return Reason.SCHEMA_INVALID if is_json else Reason.JSON_PARSE_ERROR


_ALIKE = re.compile(r"hand[-_ ]?off([-_ ]?json)?(\.(jsonl?|txt|md|bak|tmp))*", re.IGNORECASE)


def is_alike(name: str) -> bool:
    """Return whether a file name is `handoff.json` or a misspelling of it.

    Examples are `Handoff.json` and `handoff.json.txt`. `HANDOFF.md` is another document's file.
    """
    return "json" in name.lower() and _ALIKE.fullmatch(name) is not None


MARKER = "---HANDOFF---"
_QUOTE = re.compile(r"^(?:[ \t]*>)+ ?")
_FIELD = re.compile(
    r"[-*\s]*(?P<key>status|artifacts|next|summary)[*\s]*:[*]*(?P<value>.*)", re.IGNORECASE
)
_OTHER_FIELD = re.compile(r"[A-Z][A-Z_ ]*:.*")
_ITEM = re.compile(r"\s*[-*]\s+(?P<item>\S.*)")
_NOTHING = frozenset({"", "-", "none", "null", "n/a"})


_PLACEHOLDER = re.compile(r"<[^<>]*>|\[?\s*[\w-]+(?:\s*\|\s*[\w-]+)+\s*\]?|\.{3}|…")
"""A value of a form: `<agent>`, the words to choose from, or dots."""


def block_of(text: str) -> str | None:
    """Return the text after the last `---HANDOFF---` line that a handoff follows.

    It may be quoted with `>`, or hold a fence of its own. It ends at a line of dashes, at the end
    of a fence or at the end of the text. The last one counts, and one in which nothing is filled in
    does not while there is another, because agents quote the instruction that shows them the form.
    """
    blocks: list[list[str]] = []
    is_open = is_quoted = is_fenced = False
    for line in text.splitlines():
        bare = line.strip(" \t*`>#\ufeff")
        inner = _QUOTE.sub("", line) if is_quoted else line
        is_fence = inner.lstrip(" \t>").startswith("```")
        if bare == MARKER:
            blocks.append([])
            is_open, is_quoted = True, line.lstrip().startswith(">")
        elif is_open and is_fence and not is_fenced and not any(blocks[-1]):
            is_fenced = True  # its own, which begins here
        elif is_open:
            is_open = not (is_fence or bare.startswith("---"))
            blocks[-1] += [inner] if is_open else []
        if is_fence and not is_open:
            is_fenced = not is_fenced
    filled = [block for block in blocks if not _is_form(block)]
    return "\n".join((filled or blocks)[-1]) if blocks else None


def _is_form(block: list[str]) -> bool:
    fields = [field["value"].strip() for line in block if (field := _FIELD.fullmatch(line))]
    return bool(fields) and all(map(_PLACEHOLDER.fullmatch, fields))


def fields_of(block: str) -> tuple[dict[str, Any], tuple[Fault, ...]]:
    """Parse the lines `STATUS:`, `ARTIFACTS:`, `NEXT:` and `SUMMARY:` into a handoff and faults.

    Artifacts are on one line with commas, or below it one by one; a summary may continue on further
    lines, up to an empty one.
    """
    fields: dict[str, list[str]] = {}
    faults = []
    current = ""
    for line in block.splitlines():
        if field := _FIELD.fullmatch(line):
            current = field["key"].lower()
            if current in fields:
                faults.append(
                    Fault(Reason.DUPLICATE_KEY, f"/{current}", f"{current.upper()} is given twice")
                )
            fields[current] = [field["value"].strip()]
        elif _OTHER_FIELD.fullmatch(line.strip()):
            current = ""
        elif current and line.strip():
            fields[current].append(line)
        elif current == "summary" and any(fields[current]):
            current = ""
    for key, lines in fields.items():
        if _PLACEHOLDER.fullmatch(lines[0]):
            what = f"the placeholder {lines[0]} was never filled in"
            faults.append(Fault(Reason.EMPTY_VALUE, f"/{key}", what, "the value itself"))
    return {key: _value(key, lines) for key, lines in fields.items()}, tuple(faults)


def _value(key: str, lines: list[str]) -> Any:
    first = lines[0]
    if key == "artifacts":
        below = [_plain(item["item"]) for line in lines[1:] if (item := _ITEM.fullmatch(line))]
        return [
            *(
                part
                for part in map(_plain, first.strip("[]").split(","))
                if part.lower() not in _NOTHING
            ),
            *below,
        ]
    if key == "next":
        return None if _plain(first).lower() in _NOTHING else _plain(first)
    return " ".join(line.strip() for line in lines).strip() if key == "summary" else _plain(first)


def _plain(text: str) -> str:
    return text.strip(" \t\"'`")


_LINE = re.compile(
    rf"agent=(?P<agent>{WORD.pattern}) phase=(?P<phase>{WORD.pattern})"
    rf" source=(?P<source>{'|'.join(HandoffSource)}) reason=(?P<reason>[a-z_]+)"
    r" timestamp=(?P<at>[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)",
    re.ASCII,
)


class Read(NamedTuple):
    """One read of an agent's handoff."""

    agent: str
    """The agent whose handoff it was."""
    phase: str
    diagnosis: Diagnosis
    at: datetime

    def lines(self) -> str:
        """Return its lines for the log, each in the form of the document.

        Raises:
            ValueError: agent or phase is no single word, so that it could forge a line.
        """
        for word in (self.agent, self.phase):
            if not WORD.fullmatch(word):
                raise ValueError(f"{word!r} is not a name of an agent or a phase")
        head = f"agent={self.agent} phase={self.phase} source={self.diagnosis.source.value}"
        return "".join(
            f"{head} reason={reason} timestamp={iso(self.at)}\n"
            for reason in self.diagnosis.reasons
        )


class Log(NamedTuple):
    """A parsed log."""

    reads: tuple[Read, ...]
    """Oldest first."""
    unreadable: int
    """Number of lines in another form, including torn ones."""


def parse_log(text: str) -> Log:
    """Parse a log: a line with an outcome right below its cause belongs to the same read."""
    reads: list[Read] = []
    unreadable = 0
    for line in filter(None, text.split("\n")):
        read = _read_of(line)
        if read is None:
            unreadable += 1
        elif joined := _joined(reads[-1] if reads else None, read):
            reads[-1] = joined
        else:
            reads.append(read)
    return Log(tuple(reads), unreadable)


def _read_of(line: str) -> Read | None:
    match = _LINE.fullmatch(line)
    diagnosis = _parse_diagnosis(match["source"], match["reason"]) if match else None
    if match is None or diagnosis is None:
        return None
    try:
        return Read(match["agent"], match["phase"], diagnosis, datetime.fromisoformat(match["at"]))
    except ValueError:
        return None


def _parse_diagnosis(source: str, reason: str) -> Diagnosis | None:
    if source == reason == HandoffSource.HANDOFF_JSON:
        return Diagnosis(None)
    known = next((cause for cause in (*CAUSES, *OUTCOMES) if cause.value == reason), None)
    if known is None or source != HandoffSource.TEXT_FALLBACK:
        return None
    # Others may log only the outcome; then the cause is unknown.
    return Diagnosis(known) if known in CAUSES else Diagnosis(known, known)


def _joined(before: Read | None, read: Read) -> Read | None:
    if (
        before is None
        or read.diagnosis.cause not in OUTCOMES
        or before.diagnosis.outcome
        or not before.diagnosis.cause
    ):
        return None
    if (before.agent, before.phase, before.at) != (read.agent, read.phase, read.at):
        return None
    return Read(
        before.agent,
        before.phase,
        Diagnosis(before.diagnosis.cause, read.diagnosis.outcome),
        before.at,
    )


class Compliance(NamedTuple):
    """How often handoffs came as the requested file."""

    agent: str
    """Empty for all agents."""
    phase: str
    """Empty for all phases."""
    reads: int
    compliant: int
    """Reads that took the file."""
    reasons: tuple[tuple[str, int], ...]
    """How often each of the five reasons was given, in the document's order, if ever."""

    @property
    def percent(self) -> float | None:
        """Share of the reads that used the file, 0-100 with one decimal; None without any read."""
        return round(100 * self.compliant / self.reads, 1) if self.reads else None


class ComplianceReport(NamedTuple):
    """Compliance of all reads, and of each agent, each phase, and each agent within each phase."""

    total: Compliance
    by_agent: tuple[Compliance, ...]
    by_phase: tuple[Compliance, ...]
    by_both: tuple[Compliance, ...]


def compliance(reads: Iterable[Read]) -> ComplianceReport:
    """Count reads; groups are sorted by name."""
    known = tuple(reads)
    agents = sorted({read.agent for read in known})
    phases = sorted({read.phase for read in known})
    pairs = sorted({(read.agent, read.phase) for read in known})
    return ComplianceReport(
        _count(known),
        tuple(_count(known, agent=agent) for agent in agents),
        tuple(_count(known, phase=phase) for phase in phases),
        tuple(_count(known, agent=agent, phase=phase) for agent, phase in pairs),
    )


def _count(reads: Iterable[Read], *, agent: str = "", phase: str = "") -> Compliance:
    chosen = [read for read in reads if agent in ("", read.agent) and phase in ("", read.phase)]
    given = Counter(reason for read in chosen for reason in _given(read.diagnosis))
    reasons = tuple(
        (reason.value, given[reason]) for reason in (*CAUSES, *OUTCOMES) if given[reason]
    )
    return Compliance(
        agent, phase, len(chosen), sum(not read.diagnosis.cause for read in chosen), reasons
    )


def _given(diagnosis: Diagnosis) -> Iterator[Reason]:
    yield from {reason for reason in (diagnosis.cause, diagnosis.outcome) if reason}
