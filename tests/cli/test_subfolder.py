"""Who stands in a folder of the repository is told paths that are right from there, and of a planning tree that was made there."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.support import forked
from tests.support.teams import Team
from yolo_fs.cli.carried import carried

CRITIQUE = ".yolo-planning/phases/01-auth/critique.jsonl"
BELOW = "packages/api"


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    made = Team(tmp_path / "repo")
    made.config({"department_workflow": "backend_only"})
    made.user_commits("chore: team", ".yolo-planning/config.json")
    for folder in (BELOW, ".yolo-planning/phases/01-auth"):
        (made.root / folder).mkdir(parents=True)
    return made


def asked(team: Team, *words: str, below: str = BELOW, given: str = "") -> forked.Ended:
    return forked.call(words, team.root / below, dict(os.environ), given.encode())


@pytest.mark.parametrize("words", [("resume",), ("workflow", "next")], ids=" ".join)
def test_the_file_that_is_written_next_is_named_as_it_is_from_where_one_stands(
    words: tuple[str, ...], team: Team
) -> None:
    for below in (BELOW, "packages", ".yolo-planning/phases", ""):
        said = asked(team, *words, below=below).out.decode()
        named = next(line for line in said.splitlines() if "write: " in line)
        path = named.partition("write: ")[2].partition(" (")[0]
        full = os.path.normpath(team.root / below / path)
        assert full == str(team.root / CRITIQUE), (below, path)


@pytest.mark.parametrize("words", [("new", "critique"), ("phase", "new", "login")], ids=" ".join)
def test_a_path_that_was_made_is_printed_as_it_is_from_where_one_stands(
    words: tuple[str, ...], team: Team
) -> None:
    printed = asked(team, *words).out.decode().strip()
    assert (team.root / BELOW / printed).exists()


def test_a_brief_says_where_the_planning_tree_is_from_there(team: Team) -> None:
    assert "you are in packages/api: .yolo-planning is ../../.yolo-planning" in said_by_resume(team)
    assert "you are in" not in said_by_resume(team, "")


def said_by_resume(team: Team, below: str = BELOW) -> str:
    return asked(team, "resume", below=below).out.decode()


def write_nested(team: Team) -> None:
    file = team.root / BELOW / CRITIQUE
    file.parent.mkdir(parents=True)
    shutil.copy(min((team.examples / "critique/ok").iterdir()), file)


def told_by_hook(team: Team, event: str, agent: str, path: str = CRITIQUE) -> str:
    given = {
        "cwd": str(team.root / BELOW), "hook_event_name": event, "tool_name": "Write",
        "agent_type": agent, "tool_input": {"file_path": path, "content": "x"},
    }  # fmt: skip
    name = {"PreToolUse": "pre-tool-use", "PostToolUse": "post-tool-use"}[event]
    return asked(team, "hook", name, given=json.dumps(given)).out.decode()


def test_an_agent_that_would_begin_a_planning_tree_there_is_told_the_right_path(
    team: Team,
) -> None:
    refusal = told_by_hook(team, "PreToolUse", "yolo-lead")
    assert '"deny"' in refusal
    assert str(team.root / CRITIQUE) in refusal


def test_a_person_and_what_is_there_already_are_left_alone(team: Team) -> None:
    assert '"deny"' not in told_by_hook(team, "PreToolUse", "")
    write_nested(team)
    assert '"deny"' not in told_by_hook(team, "PreToolUse", "yolo-dev")


def test_a_repository_in_the_repository_has_a_planning_tree_of_its_own(team: Team) -> None:
    team.git("init", "-q", str(team.root / BELOW))
    write_nested(team)
    assert "is not watched" not in told_by_hook(team, "PreToolUse", "yolo-lead")
    assert "is not watched" not in asked(team, "doctor", below="").err.decode()


def test_a_planning_tree_there_is_told_by_each_who_looks(team: Team) -> None:
    write_nested(team)
    assert "is not watched" in told_by_hook(team, "PostToolUse", "yolo-lead")
    for below, *words in (
        (BELOW, "validate"),
        ("", "validate", f"{BELOW}/{CRITIQUE}"),
        ("", "doctor"),
    ):
        done = asked(team, *words, below=below)
        told = (done.out + done.err).decode()
        assert told.count(f"a .yolo-planning in {BELOW} is not watched") == 1, (words, told)
        assert f"expected {CRITIQUE}" in told


def test_each_command_that_is_printed_after_a_folder_was_named_works_where_one_stands(
    team: Team,
) -> None:
    (team.root / CRITIQUE).write_text("{torn\n")
    os.utime(team.root / CRITIQUE, (1e9, 1e9))
    team.file(".gitignore", ".yolo-planning/decisions.jsonl\n")
    stand = team.root.parent
    told = ""
    for verb in ("status", "resume", "inbox", "doctor", "validate", "explain critique.jsonl"):
        ended = forked.call(["-C", "repo", *verb.split()], stand, dict(os.environ), b"")
        told += (ended.out + ended.err).decode()
    printed = set(re.findall(r"'((?:yolo-fs|git) [^']+)'|\(((?:yolo-fs|git) [^)]+)\)", told))
    commands = {"".join(each) for each in printed}
    assert len(commands) > 3
    for command in commands:
        words = shlex.split(command)
        assert words[1:3] == ["-C", "repo"], command
    assert "yolo-fs -C repo validate" in told


def test_a_command_of_git_that_is_to_be_run_has_the_folder_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with carried(["resume", "-C", str(tmp_path)]):
        print("run: git fetch --refetch")
    assert capsys.readouterr().out == f"run: git -C {tmp_path} fetch --refetch\n"


def test_who_stands_in_the_same_work_tree_or_reads_json_is_told_commands_as_they_are(
    team: Team,
) -> None:
    for start, words in (("../..", ["status"]), (str(team.root), ["inbox", "--json"])):
        below = BELOW if start == "../.." else ".."
        said = asked(team, *words, "-C", start, below=below).out.decode()
        assert "yolo-fs" in said and "-C" not in said
