"""`setup HOST --roles` writes the agents of the company beside whatever is there, and takes back what is its own."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import yaml

from tests.support.teams import Team
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit
from yolo_fs.definitions.definition import Definition, text_of
from yolo_fs.protocol.roster import AGENTS

pytestmark = pytest.mark.usefixtures("on_path")

HOSTS = {"codex": (".codex/agents", ".toml"), "cursor": (".cursor/agents", ".md")}
SKILLS = {"codex": ".agents/skills", "cursor": ".cursor/skills"}
STARTS_AGENTS = {"go", "debug", "fix", "research", "qa"}
each_host = pytest.mark.parametrize("host", HOSTS)


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    return Team(tmp_path / "work")


def setup(team: Team, host: str, *words: str) -> int:
    return run(["setup", host, *words, "-q", "-C", str(team.root)])


def files(team: Team, host: str) -> dict[str, str]:
    folder, ending = HOSTS[host]
    return {path.stem: path.read_text() for path in (team.root / folder).glob(f"*{ending}")}


@each_host
def test_each_agent_has_a_file_that_its_host_can_read(team: Team, host: str) -> None:
    assert setup(team, host, "--roles", "--check") == Exit.FINDINGS
    assert setup(team, host, "--roles") == setup(team, host, "--roles", "--check") == Exit.DONE
    found = files(team, host)
    assert found.keys() == {row.full_name for row in AGENTS}
    for row in AGENTS:
        text = found[row.full_name]
        if host == "codex":
            told = tomllib.loads(text)
            assert told["developer_instructions"].strip() == text_of(Definition(row)).strip()
        else:
            told = yaml.safe_load(text.split("---\n")[1])
        assert told["name"] == row.full_name


def test_codex_is_told_where_each_file_is(team: Team) -> None:
    setup(team, "codex", "--roles")
    settings = team.root / ".codex/config.toml"
    tables = tomllib.loads(settings.read_text())["agents"]
    for row in AGENTS:
        assert (settings.parent / tables[row.full_name]["config_file"]).is_file()


@each_host
def test_each_command_is_a_skill_and_the_model_starts_no_company_unasked(
    team: Team, host: str
) -> None:
    assert setup(team, host, "--roles") == Exit.DONE
    folder = team.root / SKILLS[host]
    found = {path.name.removeprefix("yolo-"): path for path in folder.iterdir()}
    assert found.keys() == STARTS_AGENTS | {"status", "resume", "inbox"}
    for name, path in found.items():
        _, head, text = (path / "SKILL.md").read_text().split("---\n", 2)
        told = yaml.safe_load(head)
        assert told["name"] == path.name
        assert told["description"]
        assert "yolo-fs" in text
        for spelled in ("/yolo:", "AskUserQuestion", "$ARGUMENTS", "!`"):
            assert spelled not in text, "only the plugin is spelled that way"
        policy = path / "agents/openai.yaml"
        barred = {
            "codex": policy.exists()
            and yaml.safe_load(policy.read_text())["policy"]
            == {"allow_implicit_invocation": False},
            "cursor": told.get("disable-model-invocation", False),
        }
        assert barred[host] == (name in STARTS_AGENTS)
    mine = folder / "yolo-qa/SKILL.md"
    mine.write_text("mine\n")
    assert setup(team, host, "--remove") == Exit.DONE
    left = [path for path in folder.parent.rglob("*") if path.is_file()]
    assert left == [mine]


@each_host
def test_what_is_not_ours_is_neither_replaced_nor_removed(team: Team, host: str) -> None:
    folder, ending = HOSTS[host]
    mine = team.root / folder / f"yolo-critic{ending}"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine\n")
    assert setup(team, host, "--roles") == Exit.DONE
    assert mine.read_text() == "mine\n"
    changed = team.root / folder / f"yolo-dev{ending}"
    changed.write_text(changed.read_text() + "# and mind the lint\n")
    text = changed.read_text()
    assert setup(team, host, "--roles") == Exit.DONE
    assert setup(team, host, "--roles", "--check") == Exit.DONE
    assert changed.read_text() == text
    assert setup(team, host, "--remove") == Exit.DONE
    assert files(team, host) == {"yolo-critic": "mine\n", "yolo-dev": text}


@each_host
def test_an_older_one_of_ours_is_renewed_and_goes_with_the_others(team: Team, host: str) -> None:
    from yolo_fs.definitions.role_files import _marked

    folder, ending = HOSTS[host]
    setup(team, host, "--roles")
    for name in ("yolo-critic", "yolo-of-the-past"):
        (team.root / folder / f"{name}{ending}").write_text(_marked("older\n", host))
    assert setup(team, host, "--roles", "--check") == Exit.FINDINGS
    assert setup(team, host, "--roles") == Exit.DONE
    assert "yolo-lead" in files(team, host)["yolo-critic"]
    assert setup(team, host, "--remove") == Exit.DONE
    assert not (team.root / folder).parent.exists()


@each_host
def test_no_link_is_followed(team: Team, host: str, tmp_path: Path) -> None:
    folder, _ = HOSTS[host]
    outside = tmp_path / "outside"
    outside.mkdir()
    (team.root / folder).parent.mkdir()
    (team.root / folder).symlink_to(outside)
    assert setup(team, host, "--roles") not in (Exit.DONE, Exit.FINDINGS)
    assert not list(outside.iterdir())


def test_claude_has_a_plugin_for_them(team: Team) -> None:
    assert setup(team, "claude", "--roles") == Exit.USAGE
