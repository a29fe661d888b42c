"""`log` tells source from coordination by who made the commit, whatever the subjects say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    return Team(tmp_path / "work")


def listed(team: Team, capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert run(["log", "-C", str(team.root), "--json", *words]) == Exit.DONE
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["data"]
    return found


def test_source_and_team_together_are_the_whole_branch_newest_first(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.begin()
    team.file("src/a.py", "a = 1\n")
    mine = team.user_commits("docs(01): critique and gap analysis", "src/a.py")
    team.plan_one()
    every = team.git("log", "--format=%H").splitlines()
    both = listed(team, capsys)
    source, ours = listed(team, capsys, "--source"), listed(team, capsys, "--team")
    assert [one["commit"] for one in both] == every
    assert [one["commit"] for one in source] == [mine], "the subject is like one of ours"
    assert [one["commit"] for one in ours] == [one for one in every if one != mine]
    assert {one["by"] for one in ours} == {"team"} and source[0]["by"] == "source"
    assert [one["commit"] for one in listed(team, capsys, "--team", "-n", "1")] == every[:1]


def test_a_branch_without_commits_has_an_empty_log_that_says_so(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    assert listed(team, capsys, "--source") == []
    assert run(["log", "-C", str(team.root)]) == Exit.DONE
    assert capsys.readouterr().out == "no such commit on this branch\n"


def test_what_the_log_leaves_out_is_said_with_the_option_that_shows_it(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.begin()
    capsys.readouterr()
    for words, is_cut in (["-n", "1"], True), (["-n", "2"], False), ([], False):
        assert run(["log", "-C", str(team.root), *words]) == Exit.DONE
        assert ("-n 2 shows more" in capsys.readouterr().out) is is_cut
