"""Which settings hold, and whose word each is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.cli.main import run
from yolo_fs.workspace.settings import load


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    team = Team(tmp_path / "work")
    team.file(".yolo-planning/config.json", json.dumps({
        "departments": {"frontend": True},
        "yolo_fs": {"strict": True, "commit_ignored": True, "rescan_s": 9},
    }))  # fmt: skip
    own = tmp_path / "own" / "yolo-fs" / "config.json"
    own.parent.mkdir(parents=True)
    root = str(team.root.resolve())
    own.write_text(json.dumps({
        "policy": {"allow_detached": True, "rescan_s": 5}, "repositories": {root: {"rescan_s": 3}},
    }))  # fmt: skip
    return team


def shown(team: Team, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, dict[str, Any]]:
    assert run(["config", "show", "--json", *words, "-C", str(team.root)]) == 0
    data = json.loads(capsys.readouterr().out)["data"]
    return {each["key"]: each for each in data}


def test_each_key_has_its_value_its_default_and_the_file_whose_word_counts(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    found = shown(team, capsys)
    told = {
        key: (each["value"], each["default"], each["origin"].rpartition("/")[2])
        for key, each in found.items()
    }
    assert told["departments.frontend"] == (True, False, "config.json")
    assert told["yolo_fs.strict"] == (True, False, "config.json")
    assert told["yolo_fs.allow_detached"] == (True, False, "config.json, policy")
    assert told["yolo_fs.rescan_s"] == (3, 30, "config.json, repositories")
    assert told["yolo_fs.settle_ms"] == (300, 300, "default")
    policy = load(str(team.root.resolve())).policy._asdict()
    assert {key.removeprefix("yolo_fs.") for key in found if key.startswith("yolo_fs.")} == {
        *policy
    }


def test_what_a_repository_may_not_loosen_is_shown_as_ignored(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    ignored = shown(team, capsys, "--changed")["yolo_fs.commit_ignored"]
    assert (ignored["value"], ignored["origin"], ignored["refused"]) == (False, "default", True)
    run(["config", "show", "--origin", "--changed", "-C", str(team.root)])
    out = capsys.readouterr().out
    assert "yolo_fs.commit_ignored = false  [default]  (ignored: true" in out
    assert "settle_ms" not in out


def test_whatever_the_user_sets_is_listed_with_its_origin(
    team: Team, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own/yolo-fs/config.json"
    user = json.loads(own.read_text())
    user["sinks"] = {"command": ["notify", "ghp_" + "a1B2" * 9]}
    user["repositories"]["/other/tree"] = {"strict": True}
    own.write_text(json.dumps(user))
    git = tmp_path / "own/git/config"
    git.parent.mkdir()
    git.write_text('[yolo-fs "host"]\n\tclaude = my-claude -p\n\tdefault = codex\n')
    team.git("config", "yolo-fs.host.claude", "./of-the-repository")
    found = shown(team, capsys, "--changed")
    assert found["sinks.command"]["value"][0] == "notify"
    told = {key: (each["value"], each["origin"]) for key, each in found.items()}
    assert told["repositories./other/tree.strict"] == (True, str(own))
    assert told["policy.rescan_s"] == (5, str(own))
    assert told["yolo-fs.host.default"] == ("codex", "git config, global")
    assert told["yolo-fs.host.claude"] == ("my-claude -p", "git config, global")
    assert found["yolo-fs.host.claude"]["refused"] == "./of-the-repository"
    assert run(["config", "show", "--origin", "-C", str(team.root)]) == 0
    out = capsys.readouterr().out
    assert 'sinks.command = ["notify", ' in out and f"[{own}]" in out
    assert "a1B2" not in out and "default: null" not in out
