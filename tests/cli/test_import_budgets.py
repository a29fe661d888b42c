"""What a command imports when it runs by itself: modules are counted, since milliseconds belong to the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.teams import Team

BUDGETS = {
    "hook pre-tool-use": (
        68,
        {"yolo_fs.cli.main", "click", "pydantic", "git", "yaml", "rich", "typing"},
    ),
    "--version": (112, {"pydantic", "git", "yaml", "rich.console"}),
    "may dev decide architecture": (
        382,
        {"rich", "yaml", "jsonlines", "toon_format", "watchdog", "yolo_fs.schemas.state"},
    ),
    "gate why all-depts --phase 1": (412, {"rich", "yaml", "toon_format", "watchdog"}),
    "resume": (510, {"yaml", "toon_format", "watchdog"}),
    "message route dev lead task_complete": (
        308,
        {"git", "yaml", "jsonlines", "toon_format", "watchdog"},
    ),
    "workflow show": (331, {"git", "yaml", "jsonlines", "toon_format", "watchdog"}),
    "status": (570, {"yaml", "toon_format", "watchdog"}),
}
"""Command → the most modules that it may import, and those that it may not. A number may only be lowered."""


@pytest.mark.proves("hosts:7")
@pytest.mark.parametrize("line", BUDGETS)
def test_a_command_imports_no_more_than_its_budget(line: str, tmp_path: Path) -> None:
    team = Team(tmp_path / "work")
    most, never = BUDGETS[line]
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "yolo_fs", *line.split()], cwd=team.root, input=b"{}",
        env={**os.environ, "HOME": str(tmp_path), "YOLO_FS_COLD": "1"}, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    rows = [row for row in done.stderr.decode().splitlines() if row.startswith("import time:")]
    modules = {row.rpartition("|")[2].strip() for row in rows[1:]}

    assert not modules & never
    assert len(modules) <= most, f"{len(modules)} modules"
    assert b"Traceback" not in done.stderr
