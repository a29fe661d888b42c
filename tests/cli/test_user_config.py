"""The user's own configuration: each fault is told with its file and place, and what nobody reads is told, too."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own folder"))
    return Team(tmp_path / "work")


def say_as_user(team: Team, said: dict[str, Any] | str) -> str:
    path = team.root.parent / "own folder" / "yolo-fs" / "config.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(said if isinstance(said, str) else json.dumps(said) + "\n")
    return str(path)


def answered(
    team: Team, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = run([*words, "-C", str(team.root), "--json"])
    return code, json.loads(capsys.readouterr().out)


def told(answer: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(each["level"], each["reason"], each["at"]) for each in answer["findings"]}


def below(team: Team, key: str) -> str:
    root = str(team.root.resolve()).replace("/", "~1")
    return f"/repositories/{root}/{key}"


def test_a_fault_is_told_with_its_file_and_place_and_the_command_that_shows_it(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = {"commit_ignored": "yes"}
    root = str(team.root.resolve())
    for said, at in (
        ({"policy": wrong}, "/policy/commit_ignored"),
        ({"repositories": {root: wrong}}, below(team, "commit_ignored")),
        ({"repositories": {root: {"verify_command": "make"}}}, below(team, "verify_command")),
        ({"policy": []}, "/policy"),
    ):
        path = say_as_user(team, said)
        capsys.readouterr()
        assert run(["status", "-C", str(team.root)]) == Exit.BAD_CONFIG
        shown = capsys.readouterr().err
        assert path in shown and f"at {at}:" in shown
        command = f"yolo-fs validate {shlex.quote(path)}"
        assert command in shown
        code, answer = answered(team, capsys, *shlex.split(command)[1:])
        assert code == Exit.FINDINGS
        assert ("error", "wrong_type", at) in told(answer)


def test_all_that_is_wrong_in_it_is_told_at_once_and_what_is_good_is_not(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    path = say_as_user(team, {
        "polcy": {}, "policy": {"legacy": True, "rescan_s": "x", "autofx": "safe"},
        "repositories": {"/elsewhere": {"strict": 1, "verify_command": ["make"]}, "~/work": {}},
        "sinks": {"command": "notify", "webhook": "x"},
    })  # fmt: skip
    code, answer = answered(team, capsys, "validate", path)
    assert code == Exit.FINDINGS
    assert told(answer) == {
        ("error", "wrong_type", "/policy/rescan_s"),
        ("error", "wrong_type", "/repositories/~1elsewhere/strict"),
        ("warning", "unknown_key", "/polcy"),
        ("warning", "unknown_key", "/policy/autofx"),
        ("warning", "unknown_key", "/repositories/~0~1work"),
        ("warning", "unknown_key", "/sinks/webhook"),
        ("warning", "wrong_type", "/sinks/command"),
    }
    path = say_as_user(team, {
        "policy": {"legacy": True}, "repositories": {"/elsewhere": {"verify_command": ["make"]}},
        "sinks": {"command": ["notify-send", "yolo-fs"]},
    })  # fmt: skip
    assert answered(team, capsys, "validate", path)[0] == Exit.DONE
    assert not told(answered(team, capsys, "validate", path)[1])


def test_it_is_judged_so_through_a_link_and_as_another_file_when_it_is_one(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(say_as_user(team, {"policy": {"legacy": 1}}))
    kept = path.rename(team.root.parent / "dotfiles.json")
    path.symlink_to(kept)
    assert told(answered(team, capsys, "validate", str(path))[1]) == {
        ("error", "wrong_type", "/policy/legacy")
    }
    other = team.file("copy/config.json", '{"policy": {}}\n')
    assert told(answered(team, capsys, "validate", str(other))[1]) == {
        ("warning", "unknown_key", "/policy")
    }


@pytest.mark.parametrize("torn", ['{"policy": ', '{"policy": {}}\n{"sinks": {}}\n'])
def test_advice_for_a_file_that_is_one_object_says_nothing_of_lines(
    team: Team, capsys: pytest.CaptureFixture[str], torn: str
) -> None:
    path = say_as_user(team, torn)
    for words in (("doctor",), ("status",), ("validate", path)):
        capsys.readouterr()
        assert run([*words, "-C", str(team.root)])
        shown = "".join(capsys.readouterr())
        assert "json_parse_error" in shown
        assert "a line." not in shown and ".." not in shown.replace("../", "")


def test_a_key_that_nobody_reads_is_told_with_the_one_that_was_meant(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    say_as_user(team, {
        "polcy": {}, "policy": {"commit_ignord": True},
        "repositories": {str(team.root.resolve()): {"autofx": "safe"}},
    })  # fmt: skip
    _, answer = answered(team, capsys, "doctor")
    hints = {each["at"]: each["hint"] for each in answer["findings"]}
    assert "Did you mean policy?" in hints["/polcy"]
    all_of_it = "'yolo-fs schema show config' lists all."
    assert hints["/policy/commit_ignord"] == f"Did you mean commit_ignored? {all_of_it}"
    assert "Did you mean autofix?" in hints[below(team, "autofx")]


def test_a_fault_of_the_users_own_file_is_not_told_of_the_repositorys(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    path = say_as_user(team, {"policy": {"legacy": 1}})
    _, answer = answered(team, capsys, "doctor")
    (fault,) = [each for each in answer["findings"] if each["reason"] == "bad_config"]
    assert fault["path"] == "" and fault["message"].startswith(f"{path}:1 at /policy/legacy:")
