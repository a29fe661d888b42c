"""A planted bug that does not fit the tree is named, by file and by mutant. `tools/mutants` runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutation.mutants import Edit, Mutant, StaleError


@pytest.mark.parametrize(("text", "count"), [("nothing", 0), ("old old", 2)])
def test_an_edit_that_does_not_fit_once_names_its_file(text: str, count: int) -> None:
    with pytest.raises(StaleError, match=f"a.py: the old text stands there {count} times"):
        Edit("a.py", "old", "new").applied(text)


def test_a_mutant_that_is_stale_names_itself(tmp_path: Path) -> None:
    with pytest.raises(StaleError, match="mutant gone: "):
        Mutant("gone", "F1", "why", (Edit("a.py", "old", "new"),), ("tests/x.py",)).texts(tmp_path)
