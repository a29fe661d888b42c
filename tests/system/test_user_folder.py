"""The user's own folders are absolute: what lies in a repository is never taken for what its user has configured."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.teams import Team
from yolo_fs.escalation_service.command_hook import load_command
from yolo_fs.system.warm_path import user_folder

RELATIVE = {"XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state", "HOME": "home"}


@pytest.mark.parametrize("variable", ["XDG_CONFIG_HOME", "HOME"])
def test_a_repository_cannot_configure_the_command_of_a_user_whose_folders_are_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv(variable, "planted")
    for folder in ("planted/yolo-fs", "planted/.config/yolo-fs"):
        (tmp_path / folder).mkdir(parents=True)
        config = {"sinks": {"command": ["touch", "run"]}}
        (tmp_path / folder / "config.json").write_text(json.dumps(config))
    assert load_command().words == ()


def test_relative_folders_put_nothing_into_the_work_tree(tmp_path: Path) -> None:
    team = Team(tmp_path / "work")
    team.plan_one()
    before = team.git("status", "--porcelain", "--ignored")
    command = [sys.executable, "-m", "yolo_fs", "status"]
    subprocess.run(command, cwd=team.root, env={**os.environ, **RELATIVE}, check=True)
    assert team.git("status", "--porcelain", "--ignored") == before


def test_an_absolute_folder_counts_and_else_the_home_of_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/own/config")
    assert user_folder("XDG_CONFIG_HOME", ".config") == "/own/config"
    monkeypatch.setenv("XDG_CONFIG_HOME", "")
    monkeypatch.setenv("HOME", "/own")
    assert user_folder("XDG_CONFIG_HOME", ".config") == "/own/.config"
    monkeypatch.delenv("HOME")
    assert os.path.isabs(user_folder("XDG_CONFIG_HOME", ".config"))


def test_doctor_does_not_wait_for_a_pipe_in_the_place_of_the_users_configuration(
    tmp_path: Path,
) -> None:
    team = Team(tmp_path / "work")
    team.plan_one()
    (tmp_path / "config/yolo-fs").mkdir(parents=True)
    os.mkfifo(tmp_path / "config/yolo-fs/config.json")
    asked = subprocess.run(
        [sys.executable, "-m", "yolo_fs", "doctor"],
        cwd=team.root,
        env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert f"{tmp_path}/config/yolo-fs/config.json: not_regular" in asked.stderr


@pytest.mark.parametrize("kind", ["a link to nowhere", "not to be read"])
def test_a_configuration_that_is_there_and_cannot_be_read_is_none_that_allows_everything(
    tmp_path: Path, kind: str
) -> None:
    """As a link into dotfiles that are not checked out, or a file that 'sudo' has written."""
    team = Team(tmp_path / "work")
    team.plan_one()
    config = tmp_path / "config/yolo-fs/config.json"
    config.parent.mkdir(parents=True)
    if kind == "a link to nowhere":
        config.symlink_to(tmp_path / "dotfiles/config.json")
    elif shutil.which("setpriv"):
        config.write_text('{"policy":{"auto_commit":false}}\n')
        config.chmod(0)
    else:
        pytest.skip("without setpriv the modes do not bind root")
    is_bound = os.geteuid() == 0 and not config.is_symlink()
    bound = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if is_bound else ()
    asked = subprocess.run(
        [*bound, sys.executable, "-m", "yolo_fs", "run", "--once"],
        cwd=team.root,
        env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 78, asked.stdout
    assert f"bad_config: {config}" in asked.stderr
