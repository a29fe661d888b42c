"""`setup claude --plugin DIR` makes a plugin; `scripts/hosts` has the host validate and load it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.teams import Team
from yolo_fs.cli.main import VERBS, run
from yolo_fs.core.reasons import Exit
from yolo_fs.definitions.plugin import plugin_files, write_own_plugin
from yolo_fs.protocol.hooks import HOST_BY_NAME
from yolo_fs.protocol.roster import AGENTS

pytestmark = pytest.mark.usefixtures("on_path")

SKILL = plugin_files()["skills/yolo-fs/SKILL.md"].decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "a plugin"


def make(folder: Path, *words: str, host: str = "claude") -> int:
    return run(["setup", host, "-q", "--plugin", str(folder), *words, "-C", str(folder.parent)])


def test_the_plugin_has_every_hook_the_server_and_the_skill(folder: Path) -> None:
    assert make(folder, "--check") == Exit.FINDINGS
    assert make(folder) == make(folder) == make(folder, "--check") == Exit.DONE
    hooks = json.loads((folder / "hooks/hooks.json").read_text())["hooks"]
    assert set(hooks) == set(HOST_BY_NAME["claude"].events.values())
    assert json.loads((folder / ".mcp.json").read_text())["mcpServers"]["yolo-fs"]["args"] == [
        "mcp"
    ]
    assert (folder / "skills/yolo-fs/SKILL.md").read_text() == SKILL
    assert "statusline" in (folder / "README.md").read_text()
    assert json.loads((folder / ".claude-plugin/plugin.json").read_text())["name"] == "yolo"
    agents = {path.stem for path in (folder / "agents").iterdir()}
    assert agents == {row.full_name for row in AGENTS}
    assert (folder / ".claude-plugin/icon.png").read_bytes().startswith(b"\x89PNG")
    assert "MIT" in (folder / "LICENSE").read_text()


def test_an_older_one_is_renewed_and_what_is_beside_it_stays(folder: Path) -> None:
    make(folder)
    (folder / "hooks/hooks.json").write_text("{}")
    former = json.dumps({"name": "yolo-fs"})  # as it was called before it had agents
    (folder / ".claude-plugin/plugin.json").write_text(former)
    (folder / "notes.txt").write_text("mine")
    assert make(folder) == Exit.DONE
    assert make(folder, "--check") == Exit.DONE
    assert (folder / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", [".claude-plugin/registration.json", "README.md"])
def test_a_folder_of_somebody_else_is_left_alone(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text('{"name": "another"}')
    assert make(folder) == Exit.BAD_CONFIG
    assert [path for path in folder.rglob("*") if path.is_file()] == [folder / name]


def test_only_one_host_has_such_plugins(folder: Path) -> None:
    assert make(folder, host="codex") == Exit.USAGE
    assert not folder.exists()


def test_the_skill_is_short_and_every_command_in_it_exists(tmp_path: Path) -> None:
    assert len(SKILL.splitlines()) <= 60
    verbs = {verb.name for verb in VERBS}
    named = set(re.findall(r"`yolo-fs ([a-z]+)", SKILL))
    assert named
    assert named <= verbs


def test_each_command_of_the_skill_takes_the_options_it_is_shown_with(team_root: Path) -> None:
    for command in ("resume", "status", "schema list", "schema show artifact/plan", "kept"):
        assert run([*command.split(), "-q", "-C", str(team_root)]) == Exit.DONE, command
    for command in ("workflow next --phase 01", "gate why all-depts --phase 01", "may dev write src/a.ts",
                    "task claim 01-01/T1 --as dev-1"):  # fmt: skip
        assert run([*command.split(), "-q", "-C", str(team_root)]) in (Exit.DONE, Exit.FINDINGS), (
            command
        )


@pytest.fixture
def team_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    team = Team(tmp_path / "work")
    team.plan_one()
    return team.root


@pytest.mark.parametrize("more", [".lsp.json", "commands/more.md", "skills/go/more.sh", "link"])
def test_the_plugin_of_the_runner_holds_nothing_that_came_with_the_repository(
    tmp_path: Path, more: str
) -> None:
    """Its host starts what a plugin names, in any file that it knows."""
    folder, beside = tmp_path / "plugin", tmp_path / "beside"
    beside.mkdir()
    (beside / "kept").touch()
    write_own_plugin(str(folder), str(tmp_path))
    (folder / more).parent.mkdir(exist_ok=True)
    if more == "link":
        (folder / more).symlink_to(beside)
    else:
        (folder / more).write_text("{}")
    write_own_plugin(str(folder), str(tmp_path))
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}
    assert found == plugin_files().keys()
    assert not (folder / more).exists() and (beside / "kept").exists()


def test_the_plugin_of_the_runner_is_a_folder_where_a_link_was(tmp_path: Path) -> None:
    (tmp_path / "beside").mkdir()
    (tmp_path / "plugin").symlink_to(tmp_path / "beside")
    write_own_plugin(str(tmp_path / "plugin"), str(tmp_path))
    assert not (tmp_path / "plugin").is_symlink()
    assert not list((tmp_path / "beside").iterdir())
