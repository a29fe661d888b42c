"""The list of planted bugs cannot rot: each still fits the tree, and names tests that are there. `tools/mutants`
runs them.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.mutation.mutants import ROOT, Edit, Mutant, StaleError, load
from tools.references import broken_citations

ALL = load()
_CITATION = re.compile(r"F\d\d|docs/[\w-]+\.md#[\w-]+|document 00\d( \(\"[^\"]+\"\))?")


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_a_mutant_fits_the_tree_exactly_once_and_is_still_a_program(mutant: Mutant) -> None:
    assert mutant.edits and mutant.red and mutant.why and mutant.of
    for path, text in mutant.texts(ROOT).items():
        assert text != path.read_text(encoding="utf-8")
        ast.parse(text)


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_what_a_mutant_breaks_is_in_this_repository(mutant: Mutant) -> None:
    guarantees = re.findall(
        r"^## (G\d+) ", (ROOT / "docs/guarantees.md").read_text("utf-8"), re.MULTILINE
    )

    assert mutant.of in ("classic", *guarantees) or _CITATION.fullmatch(mutant.of)
    assert not broken_citations(mutant.of)


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.name)
def test_the_tests_that_a_mutant_names_are_there(mutant: Mutant) -> None:
    for named in mutant.red:
        path, _, test = named.partition("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert not test or re.search(
            rf"^def {re.escape(test.partition('[')[0])}\(", text, re.MULTILINE
        )


def test_the_ten_classic_bugs_of_a_committing_daemon_and_more_are_planted() -> None:
    assert sum(mutant.of == "classic" for mutant in ALL) == 10
    assert len(ALL) >= 70


@pytest.mark.parametrize(("text", "count"), [("nothing", 0), ("old old", 2)])
def test_an_edit_that_does_not_fit_once_names_its_file(text: str, count: int) -> None:
    with pytest.raises(StaleError, match=f"a.py: the old text stands there {count} times"):
        Edit("a.py", "old", "new").applied(text)


def test_a_mutant_that_is_stale_names_itself(tmp_path: Path) -> None:
    with pytest.raises(StaleError, match="mutant gone: "):
        Mutant("gone", "F1", "why", (Edit("a.py", "old", "new"),), ("tests/x.py",)).texts(tmp_path)
