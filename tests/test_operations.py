"""docs/operations.md knows every reason, says what the code says, and every command that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from yolo_fs.cli.main import VERBS
from yolo_fs.core.reasons import Reason

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "operations.md").read_text()
ROWS = re.findall(r"^\| `([a-z0-9_]+)` \| (.*?) \| (.+) \|$", PAGE, re.MULTILINE)


def test_every_reason_has_one_row_with_its_sentence_and_something_to_do() -> None:
    assert {code: sentence for code, sentence, _ in ROWS} == {
        reason.value: reason.sentence for reason in Reason
    }
    assert len(ROWS) == len(Reason)
    assert all(advice.endswith(".") for _, _, advice in ROWS)


@pytest.mark.parametrize("page", ["operations.md", "threats.md"])
def test_every_command_that_a_page_names_exists(page: str) -> None:
    named = set(re.findall(r"`yolo-fs ([a-z-]+)", (DOCS / page).read_text()))
    assert named
    assert named <= {verb.name for verb in VERBS}


def test_threats_name_tests_that_are_there() -> None:
    paths = re.findall(r"`(tests/[^`]+|scripts/[^` ]+)", (DOCS / "threats.md").read_text())
    assert len(paths) > 5
    assert [path for path in paths if not (DOCS.parent / path).exists()] == []
