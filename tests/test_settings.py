"""The settings in force: what was checked once is not checked again, and what only the user may give is not kept."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import THREE, Team
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.schemas.config import Config, Policy
from yolo_fs.system.database import open_disposable
from yolo_fs.workspace import settings as settings_module
from yolo_fs.workspace.own_files import INDEX, INDEX_LAYOUT
from yolo_fs.workspace.settings import CONFIG, LOOSENING, load, load_in_force


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    found = Team(tmp_path / "work tree")
    (found.root / ".git" / "yolo-fs").mkdir(mode=0o700)
    found.config(THREE)
    return found


def say_as_user(team: Team, value: dict[str, Any]) -> None:
    path = team.root.parent / "home" / "yolo-fs" / "config.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def check_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("it was checked")

    monkeypatch.setattr(settings_module, "_checked", refuse)


def test_a_configuration_that_was_checked_once_is_not_checked_again(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = load(str(team.root))
    check_nothing(monkeypatch)
    assert load(str(team.root)) == before
    assert before.config.departments == THREE["departments"]
    say_as_user(team, {"sinks": []})
    assert load(str(team.root)) == before


def test_defaults_need_no_check(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    (team.root / ".yolo-planning" / "config.json").unlink()
    check_nothing(monkeypatch)
    assert load(str(team.root)) == (Config(), Policy(), ())


def test_an_edit_that_no_stamp_shows_is_seen_at_once(team: Team) -> None:
    path = team.file(".yolo-planning/config.json", '{"max_tasks_per_plan": 3}')
    assert load(str(team.root)).config.max_tasks_per_plan == 3
    before = path.stat()
    path.write_text('{"max_tasks_per_plan": 4}')
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert load(str(team.root)).config.max_tasks_per_plan == 4


def test_a_wrong_configuration_is_told_at_every_time(team: Team) -> None:
    team.config({"max_tasks_per_plan": "many"})
    for _ in range(2):
        with pytest.raises(YoloError) as told:
            load(str(team.root))
        assert told.value.reason is Reason.BAD_CONFIG


def test_what_is_kept_can_give_a_repository_nothing_that_only_the_user_may(team: Team) -> None:
    before = load(str(team.root))
    forged = Config()._replace(yolo_fs=Policy()._replace(**LOOSENING, secrets_allowed=("0" * 16,)))
    forge(team, forged)
    assert load(str(team.root)) == before  # by another program: it is not even looked at

    index = open_disposable(str(team.root / ".git/yolo-fs" / INDEX), INDEX_LAYOUT)
    assert index
    with index.writing():
        index.rows("update checked set told = ?", json.dumps(to_json(forged)))
    index.close()
    found = load(str(team.root))
    assert found.config == forged
    assert found.policy == Policy()


def forge(team: Team, config: Config) -> None:
    connection = sqlite3.connect(team.root / ".git/yolo-fs" / INDEX)
    with connection:
        assert connection.execute(
            "update checked set told = ?", (json.dumps(to_json(config)),)
        ).rowcount
    connection.close()


def test_a_policy_of_the_user_counts_and_is_kept_nowhere(team: Team) -> None:
    say_as_user(team, {"policy": {"legacy": True}})
    assert load(str(team.root)).policy.legacy
    say_as_user(team, {"policy": {"legacy": False}})
    assert not load(str(team.root)).policy.legacy
    for path in (team.root / ".git" / "yolo-fs").iterdir():
        assert path.name.startswith(INDEX) and b'"legacy":true' not in path.read_bytes()


def test_a_repository_in_which_we_have_no_folder_stays_as_it_is(team: Team) -> None:
    (team.root / ".git" / "yolo-fs").rmdir()
    before = sorted(team.root.rglob("*"))
    assert load(str(team.root)).config.departments == THREE["departments"]
    assert sorted(team.root.rglob("*")) == before


def test_outside_of_any_repository_nothing_is_kept(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    (team.root / ".git").rename(team.root / "elsewhere")
    monkeypatch.setattr(
        settings_module, "open_disposable", lambda *told: pytest.fail(f"kept: {told}")
    )
    assert load(str(team.root)).config.departments == THREE["departments"]


def test_a_link_in_the_place_of_the_configuration_is_told_and_not_followed(team: Team) -> None:
    own = team.root / CONFIG
    outside = team.root.parent / "outside.json"
    own.rename(outside)
    own.symlink_to(outside)
    with pytest.raises(YoloError, match="a symbolic link is where a file must be") as refused:
        load(str(team.root))
    assert refused.value.reason is Reason.BAD_CONFIG
    in_force = load_in_force(str(team.root))
    assert in_force.fault is not None
    assert not in_force.settings.config.departments["frontend"], "nothing was ever read through it"


def test_the_user_s_own_configuration_may_be_a_link(team: Team) -> None:
    say_as_user(team, {"policy": {"legacy": True}})
    path = team.root.parent / "home" / "yolo-fs" / "config.json"
    kept = path.rename(team.root.parent / "dotfiles.json")
    path.symlink_to(kept)
    assert load(str(team.root)).policy.legacy
