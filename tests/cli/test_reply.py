"""What is printed where nobody sees colour has the same bytes, with rich and without it."""

from __future__ import annotations

import io
import itertools
import random

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from yolo_fs.cli.reply import columns_that_fit, console_for, draw_columns

LETTERS = "ab  é→漢🙂'\"[]:{}%\n\t1\u0301\u200d·"


@pytest.mark.parametrize("seed", range(200))
def test_a_plain_line_is_the_line_that_rich_prints(seed: int) -> None:
    chance = random.Random(seed)
    lengths = (0, 1, 5, 79, 80, 81, 200)
    words = [
        "".join(chance.choices(LETTERS, k=chance.choice(lengths)))
        for _ in range(chance.choice((0, 1, 1, 2)))
    ]
    style = chance.choice((None, "dim", "bold red"))
    ours, theirs = io.StringIO(), io.StringIO()

    console_for(ours).print(*words, style=style)
    rich = Console(file=theirs, highlight=False, markup=False, emoji=False, soft_wrap=True)
    rich.print(*words, style=style)

    assert ours.getvalue() == theirs.getvalue()


@pytest.mark.parametrize("seed", range(100))
def test_a_table_is_the_table_that_rich_prints(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    monkeypatch.delenv("COLUMNS", raising=False)
    if seed % 4 == 0:
        monkeypatch.setenv("COLUMNS", "40")
    letters = chance.choice(("ab 1[]%", LETTERS))
    columns, most = chance.choice((1, 3, 8)), chance.choice((3, 9, 30))
    align = "".join(chance.choices("<^>", k=columns - 1)) or "<"
    cells = (
        "".join(chance.choices(letters, k=chance.randint(1, most))).rstrip() or "-"
        for _ in range(3 * columns)
    )
    rows = [[(cell, "dim") for cell in itertools.islice(cells, columns)] for _ in range(3)]
    ours, theirs = io.StringIO(), io.StringIO()

    draw_columns(console_for(ours), rows, align)
    rich = Console(file=theirs, highlight=False, markup=False, emoji=False, soft_wrap=True)
    parts = columns_that_fit(rows, rich.width)
    for part in parts:
        table = Table(box=None, pad_edge=False, show_header=False)
        for column in part:
            side = ("<", *align)[column]
            table.add_column(justify={"<": "left", "^": "center", ">": "right"}[side])
        for row in rows:
            table.add_row(*(Text(*row[column]) for column in part))
        rich.print(table)
    assert sorted({0, *itertools.chain(*parts)}) == [*range(columns)]
    assert all(part[0] == 0 for part in parts) and len(parts) < max(columns, 2)

    assert ours.getvalue() == theirs.getvalue()
