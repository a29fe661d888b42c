"""Parses stored commits; no other module does. Every commit can be read, whoever made it.

Malformed parts count as absent, and times are limited to what a calendar has. git itself accepts
nearly every commit that a clone or a fetch brings.
"""

from __future__ import annotations

import codecs
import os
import re
from itertools import dropwhile, takewhile
from typing import NamedTuple

LATEST_S = 253402300799
"""The last second of the year 9999, the latest that `datetime` supports."""

_OID = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}")
_TRAILER = re.compile(r"(?P<key>[A-Za-z0-9-]+): (?P<value>.*)")
_NAMED = r"([0-9a-f]{7,64})(?: \([^\n]*\))?"
_REVERTS = re.compile(
    rf"^This reverts commit {_NAMED}(?:,\s+reversing\s+changes made to {_NAMED})?\.", re.MULTILINE
)
"""What `git revert` writes, also with `--reference`."""
_SPACES = " \t\r"
_LONGEST_DATE = len(str(LATEST_S))
_LONGEST_ENCODING = 40
_SLOW = frozenset(("idna", "punycode"))
"""Codecs whose running time grows with the square of the text's length."""


class CommitObject(NamedTuple):
    """One commit as it is stored."""

    tree: str
    """Empty where it names none."""
    parents: tuple[str, ...]
    at_s: int
    """Committer time, seconds since the epoch, 0 to `LATEST_S`; 0 where it has none."""
    message: str
    """Up to its first NUL, as git reads it."""

    @property
    def subject(self) -> str:
        """The first paragraph in one line, as git takes it."""
        return " ".join(line.rstrip(_SPACES) for line in self._split_message()[0])

    @property
    def trailers(self) -> tuple[tuple[str, str], ...]:
        """The trailers, parsed by us: git's own parsing depends on the configuration."""
        body = "\n".join(self._split_message()[1])
        last = body.strip("\n").rpartition("\n\n")[2].split("\n")
        matches = [_TRAILER.fullmatch(line) for line in last]
        return (
            tuple((pair["key"], pair["value"]) for pair in matches if pair) if all(matches) else ()
        )

    @property
    def reverts(self) -> tuple[str, ...]:
        """The commit that a revert of git takes back, by its name or the start of it; of a merge
        also the parent up to which it does.
        """
        match = _REVERTS.search(self.message)
        return tuple(filter(None, match.groups())) if match else ()

    def _split_message(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the lines of the first paragraph, and all after it."""
        lines = tuple(dropwhile(_is_blank, self.message.split("\n")))
        first = tuple(takewhile(lambda line: not _is_blank(line), lines))
        return first, tuple(dropwhile(_is_blank, lines[len(first) :]))


def read_commit_object(body: bytes) -> CommitObject:
    """Parse the body of a commit. Raises nothing."""
    head, _, message = body.partition(b"\n\n")
    tree, *lines = head.split(b"\n")
    parents = [line[7:] for line in takewhile(lambda line: line.startswith(b"parent "), lines)]
    rest = lines[len(parents) :]
    encoding = _value(rest, b"encoding ").strip()
    _, _, date = _value(rest, b"committer ").rpartition(b">")
    oid = tree.removeprefix(b"tree ")
    return CommitObject(
        oid.decode() if _OID.fullmatch(oid) else "",
        tuple(parent.decode() for parent in parents if _OID.fullmatch(parent)),
        seconds_of(date),
        _decode(message.partition(b"\0")[0], encoding),
    )


def seconds_of(written: bytes) -> int:
    """Return the seconds of a date as git writes it, `1771488000 +0100`, from 0 to `LATEST_S`.

    Return 0 where it is malformed or before the epoch.
    """
    seconds = written.split(maxsplit=1)[:1]
    if not seconds or not seconds[0].isdigit():
        return 0
    digits = seconds[0].lstrip(b"0") or b"0"
    return min(int(digits), LATEST_S) if len(digits) <= _LONGEST_DATE else LATEST_S


def _value(lines: list[bytes], key: bytes) -> bytes:
    return next((line[len(key) :] for line in lines if line.startswith(key)), b"")


def _is_blank(line: str) -> bool:
    return not line.strip(_SPACES)


def _decode(text: bytes, encoding: bytes) -> str:
    if not encoding:
        return os.fsdecode(text)
    try:
        name = codecs.lookup(encoding[:_LONGEST_ENCODING].decode("ascii")).name
        decoded = text.decode("utf-8" if name in _SLOW else name)
    except (LookupError, ValueError):
        decoded = text.decode("utf-8", "replace")
    return decoded.partition("\0")[0]
