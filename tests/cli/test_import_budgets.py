"""What a command imports when it runs by itself: modules are counted, since milliseconds belong to the machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import yolo_fs
from tests.support.teams import Team

_FEW = frozenset(
    {
        "yolo_fs.schemas.messages.catalogue",
        "yolo_fs.schemas.envelope.envelope",
        "yolo_fs.schemas.state",
    }
)
"""Shapes that few files have: to make the classes of all of them takes a third of such a command."""
_LOOKS = frozenset({"importlib.metadata", "zipfile", "email"})
"""What pydantic looks for plugins with."""
_LIGHT = {*_LOOKS, "git", "rich", "yaml", "pydantic", "attr", "toon_format", "watchdog", *_FEW}
BUDGETS = {
    "hook pre-tool-use": (
        68,
        {"yolo_fs.cli.main", "click", "pydantic", "git", "yaml", "rich", "typing"},
    ),
    "hook pre-tool-use --host=claude": (215, _LIGHT),
    "--version": (112, {"pydantic", "git", "yaml", "rich.console"}),
    "may dev decide architecture": (175, _LIGHT),
    "gate why all-depts --phase 1": (225, _LIGHT),
    "resume": (260, _LIGHT),
    "message route dev lead task_complete": (
        276,
        {"git", "yaml", "jsonlines", "toon_format", "watchdog"},
    ),
    "workflow show": (225, _LIGHT),
    "status": (270, _LIGHT),
}
"""Command → the most modules that it may import, and those that it may not. A number may only be lowered."""
WRITES_PLAN = {
    "tool_name": "Write",
    "tool_input": {"file_path": ".yolo-planning/phases/01-auth/01-01.plan.jsonl"},
}
INPUTS = {"hook pre-tool-use --host=claude": json.dumps(WRITES_PLAN).encode()}


@pytest.mark.proves("hosts:7")
@pytest.mark.parametrize("line", BUDGETS)
def test_a_command_imports_no_more_than_its_budget(line: str, tmp_path: Path) -> None:
    team = Team(tmp_path / "work")
    team.config({"department_workflow": "backend_only"})
    team.user_commits("chore: the backend alone", ".yolo-planning")
    team.begin()
    most, never = BUDGETS[line]
    told = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    stamp = 0
    # The second finds what the first has kept, unless a test beside it changes the package.
    while stamp != (stamp := os.stat(yolo_fs.__file__).st_mtime_ns):
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-X", "importtime", "-m", "yolo_fs", *line.split()], cwd=team.root,
                input=INPUTS.get(line, b"{}"), env={**told, "HOME": str(tmp_path), "YOLO_FS_COLD": "1"},
                capture_output=True, timeout=60, check=False,
            )  # fmt: skip
    rows = [row for row in done.stderr.decode().splitlines() if row.startswith("import time:")]
    modules = {row.rpartition("|")[2].strip() for row in rows[1:]}

    assert modules & never == set()
    assert len(modules) <= most, f"{len(modules)} modules"
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("before", [None, "logfire"])
def test_no_installed_package_is_asked_for_plugins_of_shapes_and_no_child_is_told_so(
    before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pydantic.plugin import _loader

    from yolo_fs.schemas.state import ExecutionState

    def ask(**_: object) -> None:
        raise AssertionError("the installed packages were asked")

    monkeypatch.setattr(_loader, "_plugins", None)
    monkeypatch.setattr(_loader, "entry_points", ask)
    name = "PYDANTIC_DISABLE_PLUGINS"
    monkeypatch.setenv(name, before) if before else monkeypatch.delenv(name, raising=False)
    ExecutionState.model_rebuild(force=True)

    assert os.environ.get(name) == before


def test_whoever_else_uses_pydantic_in_our_process_has_its_plugins() -> None:
    asked = """
import sys
from yolo_fs.schemas.state import ExecutionState
ExecutionState.model_rebuild()
assert "importlib.metadata" not in sys.modules
from importlib.metadata import entry_points
from pydantic.plugin._loader import entry_points as of_pydantic
found = of_pydantic(group="console_scripts")
assert of_pydantic is not entry_points
assert found and found == entry_points(group="console_scripts")
"""
    subprocess.run([sys.executable, "-c", asked], timeout=60, check=True)
