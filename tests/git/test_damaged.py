"""What git says of its own damaged files comes with the step that helps, and the step helps."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.teams import Team
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit


@pytest.fixture
def team(tmp_path: Path) -> Team:
    made = Team(tmp_path / "repo")
    made.config({"department_workflow": "backend_only"})
    made.user_commits("chore: team", ".yolo-planning/config.json")
    return made


def ended(team: Team, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    capsys.readouterr()
    code = run([*words, "-C", str(team.root)])
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("damaged", "content"),
    [("index", b""), ("index", b"x" * 64), ("HEAD", b""), ("HEAD", b"\xff\n")],
)
def test_a_damaged_file_of_git_is_told_with_a_step_that_helps(
    team: Team, damaged: str, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (team.root / ".git" / damaged).write_bytes(content)
    code, told = ended(team, capsys, "status")
    assert code == Exit.GIT_FAILED
    if damaged == "HEAD":
        path, line = re.search(
            r"there, (\S+) is empty.* '(ref: .*)BRANCH'", told, re.DOTALL
        ).groups()  # type: ignore[union-attr]
        (team.root / path).write_text(f"{line}main\n")
    else:
        path, step = re.search(r"Move (\S+) away, then '(git .*?)'", told).groups()  # type: ignore[union-attr]
        (team.root / path).rename(tmp_path / "damaged")
        subprocess.run(step.split(), cwd=team.root, check=True, capture_output=True)
    assert ended(team, capsys, "status") == (Exit.DONE, "")


def test_doctor_names_a_damage_once(team: Team, capsys: pytest.CaptureFixture[str]) -> None:
    (team.root / ".git/index").write_bytes(b"")
    _, told = ended(team, capsys, "doctor")
    lines = [line for line in told.splitlines() if "index file" in line]
    assert len(lines) == len({*lines}), told


def test_doctor_names_a_bad_configuration_once(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    (team.root / ".yolo-planning/config.json").write_text('{"x": [')
    _, told = ended(team, capsys, "doctor")
    assert len([line for line in told.splitlines() if "bad_config" in line]) == 1, told
