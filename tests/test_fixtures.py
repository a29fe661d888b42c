"""`yolo-fs validate fixtures/` agrees with the name of every example, so that the command is its own oracle."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from yolo_fs.cli.main import run
from yolo_fs.reasons import Exit, Reason
from yolo_fs.rules.artifacts.catalogue import FAMILIES, KINDS, find_kind
from yolo_fs.rules.artifacts.recognise import example_of

FIXTURES = Path(__file__).parents[1] / "fixtures"
FOLDERS = ("examples", "reader", "front_matter", "toon")
FILES = sorted(
    path for folder in FOLDERS for path in (FIXTURES / folder).rglob("*") if path.is_file()
)


def test_validate_agrees_with_every_example(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(
        ["validate", "-C", str(tmp_path), "--json", *(str(FIXTURES / folder) for folder in FOLDERS)]
    )
    answer = json.loads(capsys.readouterr().out)
    errors = [
        f"{one['path']}: {one['message']}" for one in answer["findings"] if one["level"] == "error"
    ]
    assert (code, errors) == (Exit.DONE, [])
    counts = Counter(path.parent.name for path in FILES)
    assert answer["data"]["examples"] == {"ok": counts["ok"], "bad": counts["bad"], "disagree": 0}
    assert answer["data"]["checked"] == len(FILES)


def test_whole_folder_has_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", "--format", "github", str(FIXTURES)]) == Exit.DONE
    assert "::error" not in capsys.readouterr().out


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FIXTURES)))
def test_every_file_is_an_example(path: Path) -> None:
    example = example_of(str(path))
    assert example is not None
    assert example.expected == (
        Reason(path.name.partition("__")[0]) if path.parent.name == "bad" else None
    )


def test_every_kind_has_a_folder_of_examples() -> None:
    folders = {
        folder for family in FAMILIES for folder in (FIXTURES / "examples" / family).iterdir()
    }
    shown = {
        kind
        for folder in folders
        if (kind := find_kind(FAMILIES[folder.parent.name] + folder.name))
    }
    assert {kind.name for kind in KINDS} == {kind.name for kind in shown}
