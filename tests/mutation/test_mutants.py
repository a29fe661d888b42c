"""A planted bug that does not fit the tree is named, by file and by mutant. `tools/mutants` runs them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutation.mutants import ROOT, Edit, Mutant, StaleError
from tests.mutation.random_mutants import draw, files_of, mutants_of, rooms_there_are


@pytest.mark.parametrize(("text", "count"), [("nothing", 0), ("old old", 2)])
def test_an_edit_that_does_not_fit_once_names_its_file(text: str, count: int) -> None:
    with pytest.raises(StaleError, match=f"a.py: the old text stands there {count} times"):
        Edit("a.py", "old", "new").applied(text)


def test_a_mutant_that_is_stale_names_itself(tmp_path: Path) -> None:
    with pytest.raises(StaleError, match="mutant gone: "):
        Mutant("gone", "F1", "why", (Edit("a.py", "old", "new"),), ("tests/x.py",)).texts(tmp_path)


def test_each_random_mutant_is_python_that_differs_and_a_seed_draws_the_same_again() -> None:
    rooms = ["decisions", "kept", "observer"]
    drawn = draw(rooms, 9, 7)
    assert drawn == draw(rooms, 9, 7) != draw(rooms, 9, 8)
    for mutant in drawn:
        ((path, text),) = mutant.texts(ROOT).items()
        assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(path.read_bytes())), mutant


def test_every_room_has_mutants_of_every_kind_that_its_code_allows() -> None:
    kinds = {mutant.kind for mutant in mutants_of("git", "yolo_fs/git/refs.py")}
    assert {"comparison", "condition", "raise", "return", "call"} <= kinds
    assert all(files_of(room) for room in rooms_there_are())
