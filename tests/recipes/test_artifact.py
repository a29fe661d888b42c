"""A new kind of artifact is a shape and a row of `ARTIFACTS`; the program takes the rest from them."""

from __future__ import annotations

import pytest

from .scratch import Scratch, scratch

SHAPE = '''\
"""Risks of a phase."""

from __future__ import annotations

from typing import Literal

from yolo_fs.schemas.base import Shape
from yolo_fs.schemas.formats import Text


class RecipeExample(Shape):
    """One risk."""

    id: Text
    """Id of the risk."""
    level: Literal["high", "medium", "low"]
    """How grave it is."""
'''
ROW = """\
    Artifact(
        kind="recipe-example",
        file="{dept}recipe-example.jsonl",
        source="document 002",
        body=("lines.recipe_example.RecipeExample",),
        checks=(Check.UNIQUE_IDS,),
    ),
"""
PHASE = ".yolo-planning/phases/01-login"


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    made = scratch(tmp_path_factory.mktemp("artifact"))
    (made.package / "yolo_fs/schemas/lines/recipe_example.py").write_text(SHAPE)
    made.insert("artifacts/table.py", '    Artifact(\n        kind="context",', ROW)
    made.start("--no-hooks")
    return made


def test_it_is_committed_under_its_own_name(team: Scratch) -> None:
    team.write(f"{PHASE}/fe-recipe-example.jsonl", '{"id": "R1", "level": "high"}\n')

    done = team.run("run", "--once")

    assert done.returncode == 0, done.stderr
    log = team.git("log", "-1", "--format=%B", "--", f"{PHASE}/fe-recipe-example.jsonl")
    assert log.startswith("docs(01): fe-recipe-example\n")
    assert "Yolo-Artifact: recipe-example" in log


def test_a_wrong_one_is_named_with_its_place(team: Scratch) -> None:
    team.write(f"{PHASE}/recipe-example.jsonl", '{"id": "R1", "level": "grave"}\n')

    done = team.run("validate", f"{PHASE}/recipe-example.jsonl")

    assert done.returncode == 1
    assert "/level: unknown_value" in done.stdout


def test_schemas_and_rights_know_it(team: Scratch) -> None:
    shown = team.json("schema", "show", "recipe-example")
    allowed = team.json("may", "fe-lead", "write", f"{PHASE}/fe-recipe-example.jsonl")
    refused = team.json("may", "ux-lead", "write", f"{PHASE}/fe-recipe-example.jsonl")

    assert "recipe-example" in str(shown["data"])
    assert allowed["data"]["allowed"], allowed
    assert not refused["data"]["allowed"], refused
