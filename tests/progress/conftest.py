"""Asking our own commands, for the tests of a team's progress; each file has its own `team`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.cli.main import run

Ask = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def ask(team: Team, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run a command in the work tree of the team, or in `root`; return its exit code and envelope."""

    def asked(*words: str, root: Path = team.root) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = run([*words, "--json", "-C", str(root)])
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return code, answer

    return asked
