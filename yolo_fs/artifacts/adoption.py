"""How ready an existing planning tree is, and the page that shows it. Pure."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from yolo_fs.core.reasons import Finding

MOST_CAUSES = 10
_BAR = 30


class Readiness(StrEnum):
    """What has to be done with a file before it can be committed."""

    VALID = "valid"
    UNTIDY = "valid with warnings"
    REPAIRABLE = "repairable"
    AUTHOR = "needs its author"
    MISNAMED = "misnamed"


class TeamWord(NamedTuple):
    """A word that a team uses instead of the protocol's."""

    kind: str
    word: str
    """A key, or `key=value`."""
    meaning: str
    """The key that it stands for; empty where the team has to choose."""
    listed: tuple[str, ...] = ()
    """The values to choose from."""


class AdoptedFile(NamedTuple):
    """One file of the tree."""

    path: str
    kind: str
    """Kind of the artifact; empty when its name says none."""
    readiness: Readiness
    findings: tuple[Finding, ...]
    """What is or was wrong with it; each point that its author has to decide has its question."""
    words: tuple[TeamWord, ...] = ()
    """Likely meanings of its team's own words, in a file that needs its author."""


def count_by_kind(files: Iterable[AdoptedFile]) -> dict[str, Counter[Readiness]]:
    """Return for each kind the number of files in each state of readiness."""
    counts: dict[str, Counter[Readiness]] = {}
    for file in files:
        counts.setdefault(file.kind or "?", Counter())[file.readiness] += 1
    return dict(sorted(counts.items()))


def causes(files: Iterable[AdoptedFile]) -> list[tuple[str, int]]:
    """Return the commonest findings, each as reason and key, with the number of files that have
    it.
    """
    counted: Counter[str] = Counter()
    for file in files:
        counted.update(
            {
                f"{finding.reason.value} {re.sub('/[0-9]+', '', finding.at)}".strip()
                for finding in file.findings
            }
        )
    return sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))


def learnt(files: Iterable[AdoptedFile]) -> list[tuple[TeamWord, int]]:
    """Return a team's own words, each with the number of files that use it, the commonest first."""
    counted = Counter(word for file in files for word in set(file.words))
    return sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))


def aliases_of(words: Iterable[tuple[TeamWord, int]]) -> dict[str, dict[str, str]]:
    """Return the words with a clear meaning in the form of `Policy.aliases`."""
    aliases: dict[str, dict[str, str]] = {}
    for word, _ in words:
        if word.meaning:
            aliases.setdefault(word.kind, {}).setdefault(word.word, word.meaning)
    return aliases


def bar(count: int, most: int) -> str:
    """Return a bar of at most 30 characters."""
    return "█" * max(1, round(_BAR * count / most)) if count else ""


def as_page(root: str, files: Sequence[AdoptedFile]) -> str:
    """Return the report as one self-contained page of HTML; foreign text is escaped."""
    kinds = [
        [kind, *(str(counts[readiness] or "") for readiness in Readiness)]
        for kind, counts in count_by_kind(files).items()
    ]
    common = causes(files)
    most = common[0][1] if common else 1
    reasons = [[cause, str(count), bar(count, most)] for cause, count in common]
    waiting = [file for file in files if file.readiness is not Readiness.VALID]
    open_files = [
        [file.path, file.readiness.value, str(finding)]
        for file in waiting
        for finding in file.findings
    ]
    return "\n".join(
        (
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>Adoption report</title>',
            "<style>body{font:14px "
            "sans-serif;margin:2em}table{border-collapse:collapse;margin:1em 0}"
            "td,th{border:1px solid #ccc;padding:.2em .6em;text-align:left}</style>",
            f"<h1>{html.escape(root)}</h1>",
            _table(["kind", *(readiness.value for readiness in Readiness)], kinds),
            "<h2>Commonest causes</h2>",
            _table(["cause", "files", ""], reasons),
            "<h2>Files</h2>",
            _table(["file", "stands", "finding"], open_files),
            "</html>\n",
        )
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        inner = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
        return f"<tr>{inner}</tr>"

    return f"<table>{row(heads, 'th')}{''.join(row(cells, 'td') for cells in rows)}</table>"
