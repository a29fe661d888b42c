"""Every row of the contradictions is shown by an example: one that is refused, or, where a row only warns, one that
real agents wrote. None contradicts a good one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.core.reasons import Grade
from yolo_fs.schemas import contradictions
from yolo_fs.schemas.contradictions import CONTRADICTIONS, Contradiction, contradicted

FIXTURES = Path(__file__).parents[2] / "fixtures"
EXAMPLES = FIXTURES / "examples"


def examples(of: str, folder: str) -> list[list[dict[str, Any]]]:
    """Return the lines of each example of an artifact or a message; `good`: of those of real agents."""
    within = FIXTURES / "real" if folder == "good" else EXAMPLES
    files = sorted(within.glob(f"**/{of}/{folder}/*"))
    return [
        [json.loads(file.read_text())]
        if file.suffix == ".json"
        else [json.loads(line) for line in file.read_text().splitlines()]
        for file in files
        if folder != "bad" or file.name.startswith("state_conflict__")
    ]


@pytest.mark.proves("002:126", "000:128", "000:145", "000:168", "000:185", "000:472", "000:567")
@pytest.mark.parametrize("row", CONTRADICTIONS, ids=str)
def test_each_row_has_its_bad_example(row: Contradiction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contradictions, "CONTRADICTIONS", (row,))

    shown_by = examples(row.of, "bad" if row.grade is Grade.MUST else "good")
    assert any(any(contradicted(row.of, lines)) for lines in shown_by)


@pytest.mark.parametrize("of", sorted({row.of for row in CONTRADICTIONS}))
def test_no_good_example_contradicts_itself(of: str) -> None:
    assert not [found for lines in examples(of, "ok") for found in contradicted(of, lines)]


@pytest.mark.proves("002:126")
def test_a_finding_of_another_plan_does_not_contradict_an_approval() -> None:
    lines = [
        {"plan": "01-01", "r": "approve"},
        {"plan": "01-02", "sev": "critical"},
        {"plan": "01-02", "r": "changes_requested"},
        {"sev": "critical"},
    ]
    assert not list(contradicted("code-review", lines))


def test_both_sides_are_named() -> None:
    (found,) = contradicted("qa-code", [{"r": "PASS", "tests": {"fl": 3}}])
    assert (found.at, found.what) == ("/tests/fl", "PASS contradicts tests.fl 3")
