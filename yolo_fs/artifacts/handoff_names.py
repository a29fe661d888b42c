"""Names of the product workflow's files: the rows of one table produce, parse and correct them.
Pure.

The documents leave the form of `[timestamp]` open. UTC is written in ISO 8601's basic form, since a
colon is not portable in a file name; the extended form is read too. See
docs/dev/sources.md#document-003.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple

from yolo_fs.protocol.handoffs import HANDOFFS, STORAGE, AgentType, Stored

HANDOFF_ROW = STORAGE[0]
HANDOFF_FOLDER = HANDOFF_ROW.directory
GUID = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_DAY = r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}"
_TIME = r"[0-9]{2}[:-]?[0-9]{2}[:-]?[0-9]{2}(?:\.[0-9]+)?"
_AGENTS = "|".join(("user", *AgentType))
_FORMS: Mapping[str, str] = {
    "session-id": GUID,
    "source": _AGENTS,
    "target": _AGENTS,
    "timestamp": rf"{_DAY}T{_TIME}(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})",
    "ScreenName": r"[A-Za-z0-9]+",
    "ProductSlug": r"[A-Za-z0-9][A-Za-z0-9_]*",
    "YYYY-MM-DD": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
}
"""Gap of a printed name → regular expression for its value.

The name of a screen has no underscore, so that each name can be parsed in only one way.
"""

CHOICES = re.compile(rf"choices_(?P<session>{GUID})\.json")
"""Choices of the orchestrator after an error; stored beside the handoffs, not part of the
documents."""

_GAP = re.compile(r"\[([A-Za-z-]+)\]")
_DATE = re.compile(_FORMS["YYYY-MM-DD"])
_INSTANT = re.compile(
    r"(\d{4})-?(\d{2})-?(\d{2})T(\d{2})[:-]?(\d{2})[:-]?(\d{2})(\.\d+)?(Z|[+-]\d{2}:?\d{2})",
    re.ASCII,
)
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9]+")

ENDINGS: Mapping[str, str] = {"markdown": "md", "html": "html", "json": "json"}
"""`artifacts.created[].type` → ending of the file."""


class StoredName(NamedTuple):
    """A path that matches a row of the table."""

    row: Stored
    gaps: Mapping[str, str]
    """The values of the gaps of the row's name."""


def read_name(path: str) -> StoredName | None:
    """Return a path (POSIX, relative to the project) parsed by its row; None if no row matches."""
    folder, _, name = path.rpartition("/")
    for row in STORAGE:
        if row.directory == folder and (match := _pattern(row).fullmatch(name)):
            gaps = (gap for gap in _GAP.findall(row.name))
            gap_texts = dict(zip(gaps, match.groups(), strict=True))
            return StoredName(row, gap_texts) if _is_real(gap_texts) else None
    return None


def write_name(row: Stored, gaps: Mapping[str, str]) -> str:
    """Return the path of a row with its gaps filled.

    Raises:
        ValueError: a value does not have the form of its gap.
    """
    for gap in _GAP.findall(row.name):
        if not re.fullmatch(_FORMS[gap], gaps[gap]):
            raise ValueError(f"{gaps[gap]!r} is not a {gap}")
    return f"{row.directory}/{_GAP.sub(lambda gap: gaps[gap[1]], row.name)}"


def handoff_name(session: str, source: str, target: str, timestamp: str) -> str:
    """Return the path at which a handoff is stored."""
    gaps = {
        "session-id": session,
        "source": source,
        "target": target,
        "timestamp": compact(timestamp),
    }
    return write_name(HANDOFF_ROW, gaps)


def names_same_handoff(path: str, right: str) -> bool:
    """Return whether two handoff names differ at most in the spelling of time or session."""
    stored, other = read_name(path), read_name(right)
    return stored is not None and other is not None and _meaning(stored) == _meaning(other)


def compact(timestamp: str) -> str:
    """Return a time as file names spell it: `2026-02-19T08:00:00+01:00` → `20260219T070000Z`."""
    moment = instant(timestamp)
    whole, _, fraction = moment.replace(tzinfo=None).isoformat().partition(".")
    seconds = whole.replace("-", "").replace(":", "")
    return f"{seconds}{f'.{fraction}'.rstrip('.0') if fraction else ''}Z"


def instant(timestamp: str) -> datetime:
    """Return the time, in UTC, that a name or an envelope spells.

    Raises:
        ValueError: it is none, or it has no zone.
    """
    match = _INSTANT.fullmatch(timestamp)
    if not match:
        raise ValueError(f"{timestamp!r} is not a timestamp with a time zone")
    year, month, day, hour, minute, second, fraction, zone = match.groups("")
    spelled = datetime.fromisoformat(
        f"{year}-{month}-{day}T{hour}:{minute}:{second}{fraction[:7]}{zone}"
    )
    try:
        return spelled.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{timestamp!r} is out of the calendar in UTC") from None


def slug_of(product_name: str) -> str:
    """Return a product's name in a form for file names: ASCII letters, digits, underscores; empty
    if no letter or digit is left.
    """
    return _NOT_PLAIN.sub("_", _plain(product_name)).strip("_")


def is_slug_of(slug: str, product_name: str) -> bool:
    """Return whether a slug spells the name.

    Names beyond ASCII may be transliterated in more than one way.
    """
    return (
        not product_name.isascii()
        or _letters_of(slug) == _letters_of(product_name)
        or not _letters_of(product_name)
    )


def screen_name_of(title: str) -> str:
    """Return a screen's title fit for a file name: `Day plan` → `DayPlan`."""
    words = (word for word in _NOT_PLAIN.split(_plain(title)) if word)
    return "".join(word[0].upper() + word[1:] for word in words)


def _plain(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def _letters_of(text: str) -> str:
    return _NOT_PLAIN.sub("", text).casefold()


class Wanted(NamedTuple):
    """Requirements for the name of a file."""

    slug: str
    day: str
    ending: str
    """Extension of the file, without its dot; empty if any is allowed."""
    producer: AgentType | None = None
    """Agent that writes it; None if unknown."""
    word: str = ""
    """First word of the name; empty if unknown."""
    screen: str = ""
    """Name of the screen; empty if unknown."""


def right_names(path: str, wanted: Wanted) -> tuple[str, ...]:
    """Return the names that a file should have: none if its name is valid, several if ambiguous."""
    stored = read_name(path)
    rows = tuple(_rows(path, wanted))
    if stored and _is_wanted(stored, wanted, rows):
        return ()
    return tuple(_renamed(path, row, stored, wanted) for row in rows)


def names_of(producer: str | None) -> tuple[str, ...]:
    """Return the names that the convention has for the files of an agent; for all with None."""
    rows = (row for row in STORAGE if row is not HANDOFF_ROW)
    return tuple(row.name for row in rows if producer in (None, row.producer))


def first_word(row: Stored) -> str:
    """Return the word that a row's names begin with."""
    return row.name.partition("_")[0]


def _rows(path: str, wanted: Wanted) -> Iterator[Stored]:
    """Yield the rows that a path may be meant for: those named in it, or those of its writer."""
    rows = [row for row in STORAGE if row is not HANDOFF_ROW and _may_be(row, wanted)]
    letters = _letters_of(path.rpartition("/")[2])
    named = [row for row in rows if first_word(row).casefold() in letters]
    longest = max((len(first_word(row)) for row in named), default=0)
    # `ClickablePrototype` contains `Prototype`: the longest word is the right one.
    yield from [row for row in named if len(first_word(row)) == longest] or rows


def _may_be(row: Stored, wanted: Wanted) -> bool:
    by_word = wanted.word in ("", first_word(row))
    by_ending = wanted.ending in ("", row.name.rpartition(".")[2])
    return by_word and by_ending and wanted.producer in (None, row.producer)


def _is_wanted(stored: StoredName, wanted: Wanted, rows: tuple[Stored, ...]) -> bool:
    screen = stored.gaps.get("ScreenName", "")
    right_screen = not wanted.screen or not screen or screen.casefold() == wanted.screen.casefold()
    return stored.row in rows and stored.gaps.get("ProductSlug") == wanted.slug and right_screen


def _renamed(path: str, row: Stored, stored: StoredName | None, wanted: Wanted) -> str:
    name = path.rpartition("/")[2]
    dated = _DATE.search(name)
    day = dated[0] if dated and _is_real({"YYYY-MM-DD": dated[0]}) else wanted.day
    screen = (
        wanted.screen
        or (stored.gaps.get("ScreenName", "") if stored else "")
        or _screen_name_in(name, row, wanted.slug)
    )
    gaps = {"ProductSlug": wanted.slug, "YYYY-MM-DD": day, "ScreenName": screen or "Main"}
    return write_name(row, gaps)


def _screen_name_in(name: str, row: Stored, slug: str) -> str:
    """Return what is left of a name without the row's word, the product and the day."""
    known = {first_word(row).casefold(), *slug.casefold().split("_")}
    stem = _DATE.sub(" ", name.rpartition(".")[0])
    return screen_name_of(
        " ".join(word for word in _NOT_PLAIN.split(stem) if word.casefold() not in known)
    )


@cache
def _pattern(row: Stored) -> re.Pattern[str]:
    parts = _GAP.split(row.name)
    return re.compile(
        "".join(
            f"({_FORMS[part]})" if index % 2 else re.escape(part)
            for index, part in enumerate(parts)
        )
    )


def _is_real(gaps: Mapping[str, str]) -> bool:
    """Return whether the date and the time of a name exist in the calendar."""
    try:
        if "YYYY-MM-DD" in gaps:
            datetime.fromisoformat(gaps["YYYY-MM-DD"])
        if "timestamp" in gaps:
            instant(gaps["timestamp"])
    except ValueError:
        return False
    return True


def _meaning(name: StoredName) -> tuple[object, ...]:
    gaps = name.gaps
    return gaps["session-id"].casefold(), gaps["source"], gaps["target"], instant(gaps["timestamp"])


SECTIONS: Mapping[tuple[str, str], int] = {
    (row.sender or "user", row.receiver.value): row.number for row in HANDOFFS
}
"""(source, target) → number of the section that prints the payload."""
