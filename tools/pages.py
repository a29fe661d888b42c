"""Measured figures in the pages come from kept outputs: `docs/dev/measurements/NAME.txt`.

A table is written by `tools/docs` below a comment that names where it was printed:

    <!-- table: commit "Commit, small repository" rows="engine; git commit --only" cols="p50 ms" -->

NAME is followed by the titles of one or more tables of that output, which stand side by side.
`rows` and `cols` pick rows and columns, all of them by default; `rows` may rename one (`engine =
yolo_fs`), `heads` renames the columns.

A paragraph with measured figures is followed by the outputs that have them, and the figures that
are only set:

    <!-- from: idle, soak; given: 1,000 -->
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "docs/dev/measurements"
PAGES = (
    "README.md",
    "docs/guarantees.md",
    "docs/hosts.md",
    "docs/machines.md",
    "docs/dev/performance.md",
    "docs/dev/systems.md",
)

_TABLE = re.compile(
    r"(?P<order><!-- table: (?P<name>\w+)(?P<titles>(?:\s+\"[^\"]+\")+)(?P<options>[^>]*?)\s*-->\n)"
    r"\n?(?P<body>(?:\|.*\n)*)"
)
_FROM = re.compile(r"((?:.+\n)+)\n?<!-- from: ([\w, ]+?)(?:; given: ([\d., ]+))? -->\n")
_NUMBER = re.compile(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?(?!\w)")
_NO_FIGURES = re.compile(
    r"`[^`]*`|\]\([^)]*\)|\d{4}-\d\d-\d\d(?: \d\d:\d\d)?|\b[GF]\d+\b|document \d+"
)
"""Code, links, moments, and names that hold digits."""


def filled(text: str, kept: Path = KEPT) -> str:
    """Return a page with each table as its output has it."""
    return _TABLE.sub(lambda match: f"{match['order']}\n{_written(match, kept)}\n", text)


def unproved(text: str, kept: Path = KEPT) -> list[str]:
    """Return the figures of paragraphs that none of the outputs which they name has."""
    return [
        f"{figure}: {block[:60].strip()}"
        for block, names, given in _FROM.findall(text)
        for figure in _unknown(block, names.split(", "), given.split(", "), kept)
    ]


def _unknown(block: str, names: list[str], given: list[str], kept: Path) -> Iterator[str]:
    outputs = " ".join(_output(name.strip(), kept) for name in names)
    measured = set(_NUMBER.findall(outputs))
    for figure in figures(block):
        if figure not in given and not any(_rounds_to(number, figure) for number in measured):
            yield figure


def unsourced(text: str) -> list[str]:
    """Return the tables and the paragraphs that say what was measured and not where."""
    proved = {block for block, _, _ in _FROM.findall(text)}
    tables = {match["body"] for match in _TABLE.finditer(text)}
    return [
        block
        for block in re.findall(r"(?:.+\n)+", text)
        if _says_figures(block) and block not in proved and block not in tables
    ]


def _says_figures(block: str) -> bool:
    is_measured = block.startswith("**Measured.**") and "not measured" not in " ".join(
        block.split()
    )
    return bool(figures(block)) and (is_measured or block.startswith("|"))


def figures(block: str) -> list[str]:
    """Return the numbers of a paragraph or a table."""
    return [number.rstrip(",") for number in _NUMBER.findall(_NO_FIGURES.sub(" ", block))]


def _written(match: re.Match[str], kept: Path) -> str:
    output = _output(match["name"], kept)
    titles = re.findall(r'"([^"]+)"', match["titles"])
    tables = [_table(output, title) for title in titles]
    options = dict(re.findall(r'(\w+)="([^"]*)"', match["options"]))
    first = tables[0]
    names = [name.partition(" = ") for name in _split(options.get("rows", ""))]
    if not names:
        names = [(row[0], "", "") for row in first[1:]]
    columns = _split(options.get("cols", "")) or first[0][1:]
    heads = _split(options.get("heads", "")) or [first[0][0], *(columns * len(tables))]
    rows = [
        [label or name, *(_cell(table, name, column) for table in tables for column in columns)]
        for name, _, label in names
    ]
    ruler = "|" + "---|" * len(heads)
    return "\n".join((_line(heads), ruler, *map(_line, rows)))


def _line(cells: Sequence[str]) -> str:
    return "| " + "".join(f"{cell} | " if cell else "| " for cell in cells).rstrip()


def _split(text: str) -> list[str]:
    return [part.strip() for part in re.split(r";\s*", text) if part.strip()]


def _cell(table: list[list[str]], row: str, column: str) -> str:
    at = table[0].index(column)
    return next(line[at] for line in table[1:] if line[0] == row)


def _table(output: str, title: str) -> list[list[str]]:
    """Return head and rows of a table of an output.

    Raises:
        LookupError: There is none of that title.
    """
    _, _, rest = output.partition(f"### {title}\n")
    lines = [line for line in rest.partition("\n### ")[0].splitlines() if line.startswith("|")]
    if not lines:
        raise LookupError(f"no output has a table {title!r}")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [cells[0], *cells[2:]]


def _output(name: str, kept: Path) -> str:
    return (kept / f"{name}.txt").read_text(encoding="utf-8")


def _rounds_to(number: str, figure: str) -> bool:
    places = len(figure.partition(".")[2])
    exact = Decimal(number.rstrip(",").replace(",", ""))
    rounded = exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    return rounded == Decimal(figure.replace(",", ""))


def pages() -> Iterator[tuple[str, str]]:
    """Yield each page with figures: its path from the root, and its text as it should be."""
    for page in PAGES:
        yield page, filled((ROOT / page).read_text(encoding="utf-8"))
