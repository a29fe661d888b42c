"""`setup` adds our hooks to a host's settings beside those of others, and takes them out to the byte."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit
from yolo_fs.git.repository import Repository
from yolo_fs.hooks.doctor import examine_hosts
from yolo_fs.protocol.hooks import HOST_BY_NAME, HOSTS

pytestmark = pytest.mark.usefixtures("on_path")

HOST_NAMES = sorted(HOST_BY_NAME)
FOREIGN: dict[str, str] = {
    "claude": '{\n\t"model": "large",\n\t"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": '
    '[{"type": "command", "command": "lint"}]}]},\n\t"permissions": {"deny": ["é"]}\n}',
    "codex": '{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"say done"}]}]}}\n',
    "cursor": '{\r\n    "version": 1,\r\n    "hooks": {"stop": [{"command": "./done.sh"}]}\r\n}\r\n',
}


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    return Team(tmp_path / "work")


def setup(team: Team, host: str, *words: str) -> int:
    return run(["setup", host, "-q", *words, "-C", str(team.root)])


def settings(team: Team, host: str) -> Path:
    return team.root / HOST_BY_NAME[host].settings


def given(team: Team, host: str, text: str) -> Path:
    path = settings(team, host)
    path.parent.mkdir()
    path.write_bytes(text.encode())
    return path


def commands(value: Any) -> list[str]:
    """Return every command in settings, in their order."""
    if isinstance(value, dict):
        own = [value["command"]] if isinstance(value.get("command"), str) else []
        return own + [found for each in value.values() for found in commands(each)]
    return [found for each in value for found in commands(each)] if isinstance(value, list) else []


@pytest.mark.parametrize("host", HOST_NAMES)
def test_settings_with_half_of_an_escape_pair_keep_it(team: Team, host: str) -> None:
    path = given(team, host, '{"note": ["\\ud800", "\\udcff\\ud83d", "é\\ud83d\\ude00"]}\n')
    assert setup(team, host) == 0
    text = path.read_text()
    assert commands(json.loads(text)) and "\\ud800" in text and "é" in text
    assert json.loads(text)["note"] == ["\ud800", "\udcff\ud83d", "é\U0001f600"]


@pytest.mark.proves("hosts:1", "hosts:9")
@pytest.mark.parametrize("host", HOST_NAMES)
def test_every_event_of_the_host_asks_us(team: Team, host: str) -> None:
    assert setup(team, host) == Exit.DONE
    written = json.loads(settings(team, host).read_text())
    assert set(written["hooks"]) == set(HOST_BY_NAME[host].events.values())
    assert list(dict.fromkeys(commands(written))) == [
        f"yolo-fs hook {name} --host {host}" for name in HOST_BY_NAME[host].events
    ]


@pytest.mark.parametrize("host", HOST_NAMES)
def test_the_guard_is_asked_about_the_tools_of_servers(team: Team, host: str) -> None:
    assert setup(team, host) == Exit.DONE
    row = HOST_BY_NAME[host]
    entries = json.loads(settings(team, host).read_text())["hooks"][row.events["pre-tool-use"]]
    for tool in ("mcp__yolo-fs__write", "mcp__fs__read_file", "Read"):
        asked = [entry for entry in entries if re.fullmatch(entry.get("matcher", ".*"), tool)]
        assert len(asked) == 1, tool
    if host == "claude":
        assert any(re.fullmatch(entry["matcher"], "ReadMcpResourceTool") for entry in entries)


@pytest.mark.parametrize("host", HOST_NAMES)
def test_a_server_is_registered_with_whose_rights_hold(
    team: Team, host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = team.root / HOST_BY_NAME[host].servers
    assert setup(team, host, "--mcp", "--as", "yolo-dev") == Exit.DONE
    assert '"--as", "yolo-dev"' in " ".join(path.read_text().split()).replace("[ ", "[")
    assert setup(team, host, "--mcp", "--as", "yolo-dev", "--check") == Exit.DONE
    assert setup(team, host, "--mcp", "--check") == Exit.FINDINGS
    capsys.readouterr()
    assert run(["setup", host, "--mcp", "-C", str(team.root)]) == Exit.DONE
    told = " ".join(capsys.readouterr().out.split())
    assert "cannot know which agent calls it" in told
    assert f"'yolo-fs setup {host}'" in told
    assert "--as" not in path.read_text()
    for wrong in (("--mcp", "--as", "emperor"), ("--as", "yolo-dev")):
        assert setup(team, host, *wrong) == Exit.USAGE
    assert setup(team, host, "--remove") == Exit.DONE
    assert not path.exists()


@pytest.mark.proves("hosts:8")
def test_a_host_that_cannot_find_us_is_told(
    team: Team, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for words, code in (((), Exit.DONE), (("--check",), Exit.FINDINGS)):
        assert run(["setup", "claude", "--json", *words, "-C", str(team.root)]) == code
        (finding,) = json.loads(capsys.readouterr().out)["findings"]
        assert "yolo-fs is not on the PATH" in finding["message"]
        assert "PATH" in finding["hint"]


@pytest.mark.proves("hosts:4")
def test_a_session_of_every_source_begins_with_our_brief(team: Team) -> None:
    assert setup(team, "claude") == Exit.DONE
    written = json.loads(settings(team, "claude").read_text())

    (entry,) = written["hooks"]["SessionStart"]
    assert set(entry["matcher"].split("|")) == {"startup", "resume", "clear", "compact", "fork"}


@pytest.mark.parametrize("host", HOST_NAMES)
def test_what_others_have_there_stays_and_comes_first(team: Team, host: str) -> None:
    before = json.loads(FOREIGN[host])
    path = given(team, host, FOREIGN[host])
    assert setup(team, host) == Exit.DONE
    after = json.loads(path.read_bytes())
    assert {key: after[key] for key in before if key != "hooks"} == {
        k: v for k, v in before.items() if k != "hooks"
    }
    assert all(
        after["hooks"][event][: len(entries)] == entries
        for event, entries in before["hooks"].items()
    )


@pytest.mark.proves("hosts:15")
@pytest.mark.parametrize("host", HOST_NAMES)
@pytest.mark.parametrize("times", [1, 2])
def test_removing_restores_the_file_to_the_byte(team: Team, host: str, times: int) -> None:
    path = given(team, host, FOREIGN[host])
    for _ in range(times):
        setup(team, host)
    assert path.read_bytes() != FOREIGN[host].encode()
    assert setup(team, host, "--remove") == Exit.DONE
    assert path.read_bytes() == FOREIGN[host].encode()


@pytest.mark.parametrize("host", HOST_NAMES)
def test_a_file_that_setup_made_goes_with_its_folder(team: Team, host: str) -> None:
    setup(team, host)
    setup(team, host, "--remove")
    assert not settings(team, host).parent.exists()
    assert setup(team, host, "--remove") == Exit.DONE


@pytest.mark.parametrize("host", HOST_NAMES)
def test_what_somebody_added_since_survives_removing(team: Team, host: str) -> None:
    path = given(team, host, FOREIGN[host])
    setup(team, host)
    changed = json.loads(path.read_bytes())
    path.write_text(json.dumps({**changed, "later": True}))
    setup(team, host, "--remove")
    assert json.loads(path.read_bytes()) == {**json.loads(FOREIGN[host]), "later": True}


@pytest.mark.parametrize("host", HOST_NAMES)
def test_a_second_setup_changes_nothing(team: Team, host: str) -> None:
    setup(team, host)
    first = settings(team, host).read_bytes()
    setup(team, host)
    assert settings(team, host).read_bytes() == first


def test_an_older_hook_of_ours_is_replaced_not_doubled(team: Team) -> None:
    old = {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "yolo-fs hook stop --old"}]}]}
    }
    path = given(team, "claude", json.dumps(old))
    assert setup(team, "claude", "--check") == Exit.FINDINGS
    setup(team, "claude")
    assert [one for one in commands(json.loads(path.read_text())) if "hook stop" in one] == [
        "yolo-fs hook stop --host claude"
    ]


@pytest.mark.parametrize("host", HOST_NAMES)
def test_check_changes_nothing_and_tells_whether_all_is_there(team: Team, host: str) -> None:
    assert setup(team, host, "--check") == Exit.FINDINGS
    assert not settings(team, host).exists()
    setup(team, host)
    assert setup(team, host, "--check") == Exit.DONE


@pytest.mark.parametrize(
    "place",
    [
        "work/.claude/settings.json",
        "work/.claude/settings.local.json",
        ".claude/settings.json",
        ".claude/settings.local.json",
    ],
)
def test_a_switch_that_turns_off_every_hook_is_named_with_its_file(
    team: Team, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"disableAllHooks": true}')
    for words in ((), ("--check",)):
        run(["setup", "claude", *words, "-C", str(team.root)])
        told = "".join(capsys.readouterr())
        assert "disableAllHooks" in told and path.name in told
    assert setup(team, "claude", "--check") == Exit.FINDINGS
    with Repository(str(team.root)) as repository:
        assert any("disableAllHooks" in one.message for one in examine_hosts(repository, "."))
    path.write_text(path.read_text().replace("true", "false"))
    assert setup(team, "claude", "--check") == Exit.DONE


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"hooks": []}', '{"hooks": {"Stop": {}}}', "// a comment\n{}", "\ud800"]
)
def test_settings_that_we_cannot_read_are_left_alone(team: Team, text: str) -> None:
    path = given(team, "claude", "")
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    before = path.read_bytes()
    assert setup(team, "claude") == Exit.BAD_CONFIG
    assert setup(team, "claude", "--remove") == Exit.BAD_CONFIG
    assert path.read_bytes() == before


def test_a_file_keeps_its_mode(team: Team) -> None:
    path = team.file(".claude/settings.json", "{}\n")
    path.chmod(0o600)
    assert setup(team, "claude") == Exit.DONE
    assert (path.stat().st_mode & 0o777, "yolo-fs hook" in path.read_text()) == (0o600, True)


@pytest.mark.proves("hosts:12")
@pytest.mark.parametrize("row", HOSTS, ids=lambda row: row.name)
def test_the_user_is_told_what_to_approve(
    team: Team, capsys: pytest.CaptureFixture[str], row: Any
) -> None:
    assert run(["setup", row.name, "-C", str(team.root)]) == Exit.DONE
    out = capsys.readouterr().out
    assert all(" ".join(one.split()) in " ".join(out.split()) for one in row.approve)
