"""Every measured figure in a page is found in the kept output of a command, at the place that the page names.

A block of a page, which is a table or a paragraph, is followed by a comment that readers of the page do not see:

    <!-- figures
    5.1 = commit: Commit, small repository | engine, durable | p50 ms
    80,000 = departments: updates there {} of
    50,000 = given
    -->

One line for each number of the block, in reading order; of a table the head and the first column do
not count. `commit:` is the file docs/measurements/commit.txt, which `scripts/bench commit --keep
docs/measurements` writes. Then come title, row and column of a table in it, and a word of the cell
where it has several numbers; or a piece of its text with {} for the number. `given` is a size or a
target, which nobody measures. `; not kept` at the end says that the output of that run was not
kept: such a figure can only be measured again. A table that is the whole of one that was printed,
words and all, says so in one line, `= faults: Faults`. `tools/figures --write` puts what the kept
outputs say into the pages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "measurements"
PAGES = ("README.md", "docs/guarantees.md", "docs/performance.md")
GIVEN = "given"
MIRROR = "= "
"""Begins the source of a table that is the whole of a printed one."""
NOT_KEPT = "; not kept"

_COMMENT = re.compile(
    r"(?P<block>[^\n](?:[^\n]|\n(?!\n))*)\n\n?<!-- figures\n(?P<lines>.*?)-->", re.DOTALL
)
_NUMBER = re.compile(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?(?!\w)")
_PASSED_OVER = re.compile(
    r"`[^`]*`|\]\([^)]*\)|\d{4}-\d\d-\d\d(?: \d\d:\d\d)?|\b[GF]\d+\b|document \d+"
)
"""Code, links, moments, and names that hold digits: no figures."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a page, and where it comes from."""

    page: str
    shown: str
    source: str
    start: int
    """Where it stands in the page."""

    @property
    def is_kept(self) -> bool:
        """Whether it was measured, and the output of that run is there."""
        return self.source != GIVEN and not self.source.endswith(NOT_KEPT)


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong with a page."""

    page: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.what}"


def figures(page: str, text: str) -> tuple[list[Figure], list[Mistake]]:
    """Return the figures of all blocks that are followed by a comment."""
    found: list[Figure] = []
    mistakes: list[Mistake] = []
    for match in _COMMENT.finditer(text):
        if match["lines"].startswith(MIRROR):
            source = match["lines"].strip()
            numbers = numbers_of(match["block"])
            found += [
                Figure(page, number, source, match.start("block") + at) for at, number in numbers
            ]
            continue
        stated = [_stated(line) for line in match["lines"].splitlines() if line.strip()]
        counted = list(numbers_of(match["block"]))
        shown = [number for _, number in counted]
        if [one for one, _ in stated] != shown:
            line = text.count("\n", 0, match.start()) + 1
            mistakes.append(
                Mistake(
                    page, line, f"the block shows {shown}, its comment {[one for one, _ in stated]}"
                )
            )
            continue
        for (at, number), (_, source) in zip(counted, stated, strict=True):
            found.append(Figure(page, number, source, match.start("block") + at))
    return found, mistakes


def numbers_of(block: str) -> Iterator[tuple[int, str]]:
    """Yield place and text of each number of a table or a paragraph, in reading order."""
    is_table = block.startswith("|")
    start = 0
    for number, line in enumerate(block.splitlines(keepends=True)):
        counts = not is_table or number > 1
        skipped = line.index("|", 1) if is_table else 0
        blank = _PASSED_OVER.sub(lambda match: " " * len(match[0]), line)
        for match in _NUMBER.finditer(blank, skipped) if counts else ():
            yield start + match.start(), match[0].rstrip(",")
        start += len(line)


def mistakes_of(page: str, text: str, kept: Path = KEPT) -> list[Mistake]:
    """Return each figure of a page that the output it names does not bear out."""
    found, mistakes = figures(page, text)
    for match in _mirrors(text):
        if _plain(match["block"]) != _plain(_printed(match["lines"], kept)):
            line = text.count("\n", 0, match.start()) + 1
            mistakes.append(
                Mistake(page, line, f"the table is not the one at {match['lines'].strip()!r}")
            )
    for figure in found:
        line = text.count("\n", 0, figure.start) + 1
        if figure.is_kept and (wrong := _wrong(figure, kept)):
            mistakes.append(Mistake(page, line, wrong))
    return mistakes


def rewritten(page: str, text: str, kept: Path = KEPT) -> str:
    """Return a page with its figures as the kept outputs have them now."""
    for match in reversed(list(_mirrors(text))):
        block = _printed(match["lines"], kept) or match["block"]
        text = text[: match.start("block")] + block + text[match.end("block") :]
    for figure in sorted(figures(page, text)[0], key=lambda one: one.start, reverse=True):
        source = figure.source.removesuffix(NOT_KEPT)
        value = None if source == GIVEN or source.startswith(MIRROR) else measured(source, kept)
        if value is not None:
            new = _as(value, figure.shown)
            end = figure.start + len(figure.shown)
            comment = text.index("<!-- figures", end)
            text = (
                text[: figure.start]
                + new
                + text[end:comment]
                + _restated(text[comment:], figure, new)
            )
    return text


def measured(source: str, kept: Path = KEPT) -> str | None:
    """Return the number at the place that a source names; none when it is not there."""
    name, _, place = source.partition(": ")
    path = kept / f"{name}.txt"
    if not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    if "{}" in place:
        before, after = (re.escape(part) for part in place.split("{}"))
        match = re.search(before + f"({_NUMBER.pattern})" + after, re.sub(r"[\s|]+", " ", text))
        return match[1] if match else None
    title, row, column, *word = (part.strip() for part in place.split(" | "))
    return _cell(text, title, row, column, *word)


def _mirrors(text: str) -> Iterator[re.Match[str]]:
    return (match for match in _COMMENT.finditer(text) if match["lines"].startswith(MIRROR))


def _printed(source: str, kept: Path) -> str:
    """Return the table that a mirror names, as a page shows it; nothing when it is not there."""
    name, _, title = source.removeprefix(MIRROR).strip().partition(": ")
    path = kept / f"{name}.txt"
    lines = _table(path.read_text(encoding="utf-8"), title) if path.is_file() else []
    return "\n".join(re.sub(r" +", " ", re.sub(r"-{3,}", "---", line)) for line in lines)


def _plain(table: str) -> list[list[str]]:
    return [
        [cell.strip(" *`-") for cell in line.strip("|").split("|")] for line in table.splitlines()
    ]


def _wrong(figure: Figure, kept: Path) -> str:
    if figure.source.startswith(MIRROR):
        return ""  # it was compared as a whole
    value = measured(figure.source, kept)
    if value is None:
        return f"{figure.shown}: nothing is kept at {figure.source!r}"
    right = _as(value, figure.shown)
    return (
        ""
        if right == figure.shown
        else f"{figure.shown}: {figure.source!r} says {value}, which is {right}"
    )


def _stated(line: str) -> tuple[str, str]:
    shown, _, source = line.strip().partition(" = ")
    return shown, source


def _restated(text: str, figure: Figure, new: str) -> str:
    old = f"{figure.shown} = {figure.source}\n"
    return text.replace(old, f"{new} = {figure.source.removesuffix(NOT_KEPT)}\n", 1)


def _cell(text: str, title: str, row: str, column: str, word: str = "") -> str | None:
    """Return the number of one cell of a table as `bench.table.render` prints it; with a word, the one after it."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in _table(text, title)]
    if not cells or column not in cells[0]:
        return None
    at = cells[0].index(column)
    cell = next((one[at] for one in cells[2:] if one[0] == row), "")
    match = _NUMBER.search(cell.partition(word)[2] if word else cell)
    return match[0] if match else None


def _table(text: str, title: str) -> list[str]:
    """Return the lines of a table of an output."""
    _, _, rest = text.partition(f"### {title}\n")
    return [line for line in rest.partition("\n### ")[0].splitlines() if line.startswith("|")]


def _as(value: str, like: str) -> str:
    """Return a number rounded as another one is."""
    _, _, decimals = like.partition(".")
    rounded = Decimal(value.replace(",", "")).quantize(
        Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP
    )
    return f"{rounded:,}"


def main() -> int:
    """Check all pages, or write what was measured into them."""
    mistakes: list[Mistake] = []
    for page in PAGES:
        path = ROOT / page
        text = path.read_text(encoding="utf-8")
        if "--write" in sys.argv[1:]:
            text = rewritten(page, text)
            path.write_text(text, encoding="utf-8")
        found, _ = figures(page, text)
        mistakes += mistakes_of(page, text)
        given = sum(one.source == GIVEN for one in found)
        kept = sum(one.is_kept for one in found)
        print(
            f"{page}: {kept} figures with their output, {given} given, {len(found) - kept - given} not kept"
        )
    print(*mistakes, sep="\n", end="\n" if mistakes else "")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
