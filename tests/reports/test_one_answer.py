"""Who has to act is one answer, whoever is asked: in a real repository, at each moment of a team's work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import BACKEND, THREE, Team
from tests.web.served import served
from yolo_fs.cli.main import run
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.mcp.tools import Tools
from yolo_fs.progress.board import phases_now
from yolo_fs.states.project import summary_line
from yolo_fs.workspace.settings import load


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    return Team(tmp_path / "work")


ACT = (
    "agent", "step", "task", "act", "why", "command", "inputs", "writes", "writer", "commit", "example",
)  # fmt: skip


def said(team: Team, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    assert run([*words, "-C", str(team.root)]) == 0
    return json.loads(capsys.readouterr().out)


def check(team: Team, capsys: pytest.CaptureFixture[str]) -> str:
    """Return who has to act, once each place has said the same."""
    brief = said(team, capsys, "resume", "--json")["data"]
    asked = brief["next"]
    expected = {key: asked[key] for key in ACT}
    phase = brief["now"]["phase"]
    flow = said(team, capsys, "workflow", "next", "--phase", phase, "--json")["data"]["next"]
    board = said(team, capsys, "status", "--json")["data"]["team"]
    (shown,) = (one["next"] for one in board["phases"] if one["phase"] == phase)
    tools = Tools(str(team.root))
    asked_by_tool, stand = tools.whose_turn(phase), tools.team_status()
    with served(team.root) as client:
        page = client.api("board", phase=phase).data["team"]
    (on_page,) = (one["next"] for one in page["phases"] if one["phase"] == phase)
    for other in (flow, shown, on_page, asked_by_tool.data["next"], stand.data["next"]):
        assert {key: other[key] for key in ACT} == expected
    sentence = shown["sentence"]
    assert f"next: {sentence}" in stand.text and sentence in asked_by_tool.text
    hook = said(team, capsys, "resume", "--format", "claude-hook")
    told = hook["hookSpecificOutput"]["additionalContext"]
    assert f"next: {sentence}" in told
    assert all(path in told for path in asked["writes"])
    with Repository(str(team.root)) as repository:
        history = FactsReader(repository, load(repository.root))
        phases = phases_now(history, repository.head().tip)
    run_it = f" → {asked['command']}" if asked["command"] else ""
    assert summary_line(phases).endswith(f", next: {sentence}{run_it}")
    return str(asked["agent"])


@pytest.mark.proves("more:1")
def test_at_each_moment_every_place_names_the_same_agent(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    agents = [check(team, capsys) for _ in team.moments()]
    assert len(set(agents)) > 1


def test_a_configuration_that_is_not_committed_changes_the_answer_nowhere(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.begin()
    team.config(BACKEND)
    team.user_commits("chore: the backend alone", ".yolo-planning/config.json")
    before = check(team, capsys)
    team.config(THREE)
    assert check(team, capsys) == before


def test_a_tool_that_is_told_no_phase_means_the_one_that_its_command_means(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.begin()
    (team.root / ".yolo-planning/phases/00-spike").mkdir()
    answer = Tools(str(team.root)).whose_turn()
    assert answer.data["phase"] == said(team, capsys, "workflow", "next", "--json")["data"]["phase"]
