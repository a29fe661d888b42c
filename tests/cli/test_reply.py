"""What is printed where nobody sees colour has the same bytes, with rich and without it."""

from __future__ import annotations

import io
import random

import pytest
from rich.console import Console

from yolo_fs.cli.reply import console_for

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
