"""Reading an agent's handoff: where it came from and why, the log line that says so, and what many
lines amount to.

A read leaves one line that says why the file was or was not used, and, after a text fallback, a
second one that says how that ended; both in the form of the document. Pure. See
docs/dev/sources.md#document-004.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from yolo_fs.core.reasons import Fault, Finding, Reason


class HandoffSource(StrEnum):
    """What a handoff was taken from; `source` of the log line."""

    HANDOFF_JSON = "handoff_json"
    """The file.

    Its reason is the same word: strict mode fails on "any reason other than `handoff_json`".
    """
    TEXT_FALLBACK = "text_fallback"
    """The `---HANDOFF---` block of the agent's reply."""


CAUSES = (Reason.FILE_MISSING, Reason.JSON_PARSE_ERROR, Reason.SCHEMA_INVALID)
"""Why the file was not used."""
OUTCOMES = (Reason.TEXT_FALLBACK_OK, Reason.TEXT_FALLBACK_FAIL)
"""How the fallback ended."""

WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What an agent or a phase may be called here: nothing that could end a value, or a line."""


class Diagnosis(NamedTuple):
    """Where a handoff came from, and why."""

    cause: Reason | None
    """Why the file was not used; None when it was."""
    outcome: Reason | None = None
    """How the text fallback ended; None when there was no text to fall back to."""

    @property
    def source(self) -> HandoffSource:
        """What the handoff was taken from, or would have had to be."""
        return HandoffSource.TEXT_FALLBACK if self.cause else HandoffSource.HANDOFF_JSON

    @property
    def reasons(self) -> tuple[str, ...]:
        """The `reason` of each line that the read leaves."""
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
    """Return why a file that the strict reader refused is not used."""
    is_json = any(finding.reason is Reason.NOT_AN_OBJECT for finding in findings)
    return Reason.SCHEMA_INVALID if is_json else Reason.JSON_PARSE_ERROR


_ALIKE = re.compile(r"hand[-_ ]?off([-_ ]?json)?(\.(jsonl?|txt|md|bak|tmp))*", re.IGNORECASE)


def is_alike(name: str) -> bool:
    """Return whether a file name is `handoff.json` or a slip of it, such as `Handoff.json` or
    `handoff.json.txt`.

    `HANDOFF.md` is another document's file.
    """
    return "json" in name.lower() and _ALIKE.fullmatch(name) is not None


MARKER = "---HANDOFF---"
_FIELD = re.compile(
    r"[-*\s]*(?P<key>status|artifacts|next|summary)[*\s]*:[*]*(?P<value>.*)", re.IGNORECASE
)
_OTHER_FIELD = re.compile(r"[A-Z][A-Z_ ]*:.*")
_ITEM = re.compile(r"\s*[-*]\s+(?P<item>\S.*)")
_NOTHING = frozenset({"", "-", "none", "null", "n/a"})


def block_of(text: str) -> str | None:
    """Return what follows the last `---HANDOFF---` line, up to a line of dashes, the end of a fence
    or of the text.

    The last one, because agents quote the instruction that shows them the form.
    """
    body: list[str] | None = None
    is_open = False
    for line in text.splitlines():
        bare = line.strip(" \t*`>")
        if bare == MARKER:
            body, is_open = [], True
        elif is_open and body is not None:
            is_open = not (bare.startswith("---") or line.lstrip().startswith("```"))
            body += [line] if is_open else []
    return "\n".join(body) if body is not None else None


def fields_of(block: str) -> tuple[dict[str, Any], tuple[Fault, ...]]:
    """Return the handoff that the lines `STATUS:`, `ARTIFACTS:`, `NEXT:` and `SUMMARY:` spell, and
    what is wrong there.

    Artifacts stand on one line with commas, or below it one by one; a summary may go on over
    further lines.
    """
    found: dict[str, list[str]] = {}
    faults = []
    current = ""
    for line in block.splitlines():
        if field := _FIELD.fullmatch(line):
            current = field["key"].lower()
            if current in found:
                faults.append(
                    Fault(Reason.DUPLICATE_KEY, f"/{current}", f"{current.upper()} is given twice")
                )
            found[current] = [field["value"].strip()]
        elif _OTHER_FIELD.fullmatch(line.strip()):
            current = ""
        elif current and line.strip():
            found[current].append(line)
    return {key: _value(key, lines) for key, lines in found.items()}, tuple(faults)


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
        """Return the lines that it leaves in the log, each in the form of the document.

        Raises:
            ValueError: agent or phase is no single word, so that it could forge a line.
        """
        for word in (self.agent, self.phase):
            if not WORD.fullmatch(word):
                raise ValueError(f"{word!r} is no name of an agent or a phase")
        head = f"agent={self.agent} phase={self.phase} source={self.diagnosis.source.value}"
        moment = f"{self.at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        return "".join(
            f"{head} reason={reason} timestamp={moment}\n" for reason in self.diagnosis.reasons
        )


class Log(NamedTuple):
    """What a log says."""

    reads: tuple[Read, ...]
    """Oldest first."""
    unreadable: int
    """Lines in another form, torn ones included."""


def parse_log(text: str) -> Log:
    """Read a log: a line that tells an outcome right below its cause belongs to the same read."""
    reads: list[Read] = []
    unreadable = 0
    for line in filter(None, text.split("\n")):
        one = _read_of(line)
        if one is None:
            unreadable += 1
        elif joined := _joined(reads[-1] if reads else None, one):
            reads[-1] = joined
        else:
            reads.append(one)
    return Log(tuple(reads), unreadable)


def _read_of(line: str) -> Read | None:
    found = _LINE.fullmatch(line)
    diagnosis = _diagnosis(found["source"], found["reason"]) if found else None
    if found is None or diagnosis is None:
        return None
    try:
        return Read(found["agent"], found["phase"], diagnosis, datetime.fromisoformat(found["at"]))
    except ValueError:
        return None


def _diagnosis(source: str, reason: str) -> Diagnosis | None:
    if source == reason == HandoffSource.HANDOFF_JSON:
        return Diagnosis(None)
    known = next((one for one in (*CAUSES, *OUTCOMES) if one.value == reason), None)
    if known is None or source != HandoffSource.TEXT_FALLBACK:
        return None
    # Others may log the outcome alone; that there was a cause is then all that is known of it.
    return Diagnosis(known) if known in CAUSES else Diagnosis(known, known)


def _joined(before: Read | None, one: Read) -> Read | None:
    if (
        before is None
        or one.diagnosis.cause not in OUTCOMES
        or before.diagnosis.outcome
        or not before.diagnosis.cause
    ):
        return None
    if (before.agent, before.phase, before.at) != (one.agent, one.phase, one.at):
        return None
    return Read(
        before.agent,
        before.phase,
        Diagnosis(before.diagnosis.cause, one.diagnosis.outcome),
        before.at,
    )


class Compliance(NamedTuple):
    """How often handoffs came as the file that was asked for."""

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
        """Share of the reads that took the file, 0-100 with one decimal; None without any read."""
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
    agents = sorted({one.agent for one in known})
    phases = sorted({one.phase for one in known})
    pairs = sorted({(one.agent, one.phase) for one in known})
    return ComplianceReport(
        _count(known),
        tuple(_count(known, agent=agent) for agent in agents),
        tuple(_count(known, phase=phase) for phase in phases),
        tuple(_count(known, agent=agent, phase=phase) for agent, phase in pairs),
    )


def _count(reads: Iterable[Read], *, agent: str = "", phase: str = "") -> Compliance:
    chosen = [one for one in reads if agent in ("", one.agent) and phase in ("", one.phase)]
    given = Counter(reason for one in chosen for reason in _given(one.diagnosis))
    reasons = tuple(
        (reason.value, given[reason]) for reason in (*CAUSES, *OUTCOMES) if given[reason]
    )
    return Compliance(
        agent, phase, len(chosen), sum(not one.diagnosis.cause for one in chosen), reasons
    )


def _given(diagnosis: Diagnosis) -> Iterator[Reason]:
    yield from {reason for reason in (diagnosis.cause, diagnosis.outcome) if reason}
