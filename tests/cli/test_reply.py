"""What is printed where nobody sees colour has the same bytes, with rich and without it."""

from __future__ import annotations

import io
import itertools
import random

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from yolo_fs.cli.reply import build_rich_console, columns_that_fit, console_for, draw_columns

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


def printed(text: str, width: int) -> list[str]:
    out = io.StringIO()
    build_rich_console(out, force_terminal=True, width=width).print(text)
    return out.getvalue().splitlines()


COMMAND = "yolo-fs gate why ux-complete --phase 01-a-phase-with-a-long-name"
PATH = ".yolo-planning/phases/01-a-phase-with-a-long-name/critique.jsonl"


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
@pytest.mark.parametrize(
    "line",
    [
        f"  no plan of the phase  → {COMMAND}",
        f"{PATH}: say '{COMMAND}' or so",
        f"all ({COMMAND}) of",
    ],
)
def test_a_terminal_of_any_width_gets_commands_and_paths_whole(line: str, width: int) -> None:
    lines = printed(line, width)
    assert " ".join(map(str.strip, lines)).split() == line.split()
    for whole in (COMMAND, PATH):
        assert line.count(whole) == sum(each.count(whole) for each in lines)
    words = [each for each in lines if COMMAND not in each and PATH not in each]
    assert all(len(each) <= width for each in words)
