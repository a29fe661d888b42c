"""`setup` and `--remove` restore every state in which a host's files may be, and `doctor` sees what keeps hooks away."""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit
from yolo_fs.git.repository import Repository
from yolo_fs.hooks.doctor import approved_digest, examine_hosts
from yolo_fs.hooks.hostsettings import HostSettings
from yolo_fs.protocol.hooks import HOST_BY_NAME
from yolo_fs.protocol.roster import AGENT_BY_NAME

pytestmark = pytest.mark.usefixtures("on_path")

OLD = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "yolo-fs hook stop --old"}]}]}}
PARTS = [
    ("claude",),
    ("claude", "--local"),
    ("claude", "--mcp"),
    ("codex",),
    ("codex", "--roles"),
    ("codex", "--mcp"),
    ("cursor",),
    ("cursor", "--mcp"),
]
STATES = ("none", "foreign", "older", "broken", "read-only", "link", "crlf", "comments")


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / ".codex-home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    return Team(tmp_path / "work")


def setup(team: Team, *words: str) -> int:
    return run(["setup", *words, "-q", "-C", str(team.root)])


def file_of(team: Team, part: tuple[str, ...]) -> Path:
    row = HOST_BY_NAME[part[0]]
    names = {"--local": row.local_settings, "--mcp": row.servers, "--roles": row.servers}
    return team.root / (names[part[1]] if len(part) > 1 else row.settings)


def older(part: tuple[str, ...], path: Path) -> str:
    """Return our own part as another version might have written it."""
    entry = {"command": "yolo-fs", "args": ["mcp", "--old"]}
    if path.suffix != ".toml":
        return json.dumps({"mcpServers": {"yolo-fs": entry}} if "--mcp" in part else OLD)
    name = part[1].removeprefix("--")
    lines = {
        "mcp": '[mcp_servers.yolo-fs]\ncommand = "yolo-fs"\nargs = ["mcp", "--old"]\n',
        "roles": '[agents.yolo-critic]\ndescription = "older"\n',
    }
    begin = f"# yolo-fs {name}: begin; 'yolo-fs setup codex --remove' takes it out\n"
    return f"x = 1\n\n{begin}{lines[name]}# yolo-fs {name}: end\n"


def content(state: str, part: tuple[str, ...], path: Path) -> str:
    is_toml = path.suffix == ".toml"
    foreign = (
        '[features]\nx = true\n\n[mcp_servers.other]\ncommand = "é"'
        if is_toml
        else '{\n\t"other": ["é"]\n}'
    )
    texts = {
        "foreign": foreign,
        "older": older(part, path),
        "broken": "[features\n" if is_toml else '{"hooks": ',
        "crlf": f"{foreign}\n".replace("\n", "\r\n"),
        "comments": '# mine\nx = 1 # "\n' if is_toml else '// mine\n{"x": 1}\n',
    }
    return texts.get(state, f"{foreign}\n")


@pytest.mark.proves("hosts:15")
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("part", PARTS, ids=" ".join)
def test_whatever_a_file_was_it_is_again_to_the_byte(
    team: Team, part: tuple[str, ...], state: str
) -> None:
    path = file_of(team, part)
    real = path
    if state != "none":
        path.parent.mkdir(exist_ok=True)
        if state == "link":
            real = team.file("dotfiles/settings", "")
            path.symlink_to(real)
        real.write_bytes(content(state, part, path).encode())
        if state == "read-only":
            real.chmod(0o444)
    before = real.read_bytes() if state != "none" else None
    mode = real.stat().st_mode if state != "none" else 0
    refuses = state in ("broken", "link") or (state == "comments" and path.suffix == ".json")
    assert setup(team, *part) == (Exit.BAD_CONFIG if refuses else Exit.DONE)
    if not refuses:
        assert real.read_bytes() != before
        (tomllib if path.suffix == ".toml" else json).loads(real.read_text())  # type: ignore[attr-defined]
        assert "old" not in real.read_text()
        once = real.read_bytes()
        assert (setup(team, *part), real.read_bytes()) == (Exit.DONE, once)
        assert setup(team, *part, "--check") == Exit.DONE
        assert setup(team, part[0], "--remove") == Exit.DONE
    if before is None:
        assert not path.exists()
    else:
        assert (real.read_bytes(), real.stat().st_mode, path.is_symlink()) == (
            before,
            mode,
            state == "link",
        )


def test_all_parts_of_one_host_go_together(team: Team) -> None:
    path = file_of(team, ("codex", "--mcp"))
    path.parent.mkdir()
    path.write_text("x = 1\n")
    for part in PARTS:
        assert setup(team, *part) == Exit.DONE
    value = tomllib.loads(path.read_text())
    assert value["mcp_servers"]["yolo-fs"] == {"command": "yolo-fs", "args": ["mcp"]}
    assert set(value["agents"]) == {agent.full_name for agent in AGENT_BY_NAME.values()}
    for host in HOST_BY_NAME:
        assert setup(team, host, "--remove") == Exit.DONE
    assert path.read_text() == "x = 1\n"
    left = {str(each.relative_to(team.root)) for each in team.root.rglob("*") if each.is_file()}
    assert {name for name in left if not name.startswith(".git/")} == {".codex/config.toml"}


def test_a_role_that_the_user_has_named_is_not_named_again(team: Team) -> None:
    path = file_of(team, ("codex", "--roles"))
    path.parent.mkdir()
    mine = '[agents.yolo-critic]\ndescription = "mine"\n'
    path.write_text(mine)
    for _ in range(2):
        assert setup(team, "codex", "--roles") == Exit.DONE
    assert setup(team, "codex", "--roles", "--check") == Exit.DONE
    named = tomllib.loads(path.read_text())["agents"]
    assert set(named) == {agent.full_name for agent in AGENT_BY_NAME.values()}
    assert named["yolo-critic"] == {"description": "mine"}
    assert setup(team, "codex", "--remove") == Exit.DONE
    assert path.read_text() == mine


# --- entries that stay as they are ---

APPROVED = {
    "PreToolUse": "sha256:755b3a4308c2b2322bcc5be9bae394ed7f24a38fecfe36e986bc9e7bb9e36f1a",
    "PostToolUse": "sha256:6a5d1da9e7419f8f6e0c6340c699b9ca5bc0f633dec957f471d7005ac6a95ceb",
    "PostCompact": "sha256:df39d98edc7eeb068ba3e3f50059b5388641fab00deee24550d5c06c0531d4ef",
}
"""What Codex 0.169.0 itself said of our entries. Who has to change one of these, or its place, switches the guard
off at everybody who has approved it, until they approve it again: find another way first."""


def digests(team: Team) -> dict[tuple[str, int, int], str]:
    """Return what the host's user approves: event, place of the group, place in it → digest."""
    with Repository(str(team.root)) as repository:
        found = HostSettings(repository, HOST_BY_NAME["codex"]).positions()
        return {
            (event, group, number): approved_digest(event, entry.get("matcher"), own)
            for event, group, number, entry, own in found
        }


def test_an_upgrade_leaves_what_was_approved_as_it_is(team: Team) -> None:
    setup(team, "codex")
    first = {event: digest for (event, group, _), digest in digests(team).items() if group == 0}
    assert {event: first[event] for event in APPROVED} == APPROVED


def test_what_an_upgrade_adds_moves_nothing_that_was_approved(team: Team) -> None:
    """The tools of servers are asked about by an entry of its own, behind those of others."""
    setup(team, "codex")
    path = file_of(team, ("codex",))
    written = json.loads(path.read_text())
    guard, servers = written["hooks"]["PreToolUse"]
    theirs = {"matcher": "Bash", "hooks": [{"type": "command", "command": "lint"}]}
    written["hooks"]["PreToolUse"] = [guard, theirs]
    path.write_text(json.dumps(written))
    assert setup(team, "codex", "--check") == Exit.FINDINGS
    assert setup(team, "codex") == Exit.DONE
    assert json.loads(path.read_text())["hooks"]["PreToolUse"] == [guard, theirs, servers]
    for tool in ("mcp__yolo-fs__write", "mcp__fs__read_file", "read_mcp_resource"):
        assert re.match(servers["matcher"], tool)


def test_an_older_entry_is_replaced_where_it_stands(team: Team) -> None:
    theirs = {"hooks": [{"type": "command", "command": "say done"}]}
    path = file_of(team, ("codex",))
    path.parent.mkdir()
    path.write_text(json.dumps({"hooks": {"Stop": [*OLD["hooks"]["Stop"], theirs]}}))
    setup(team, "codex")
    stop = json.loads(path.read_text())["hooks"]["Stop"]
    assert [entry["hooks"][0]["command"] for entry in stop] == [
        "yolo-fs hook stop --host codex",
        "say done",
    ]


# --- what doctor sees ---


def seen(team: Team, start: str = "") -> list[str]:
    with Repository(str(team.root)) as repository:
        found = examine_hosts(repository, str(team.root / start))
        return [f"{one.path}: {one.message}" for one in found]


def test_nothing_is_said_of_a_host_that_was_not_set_up(team: Team) -> None:
    assert seen(team) == []


def test_the_doctor_says_where_a_host_looks_for_us_in_vain(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which("yolo-fs", path="/usr/local/bin:/usr/bin:/bin"):
        pytest.skip("yolo-fs is where every host looks")

    def told() -> list[str]:
        run(["doctor", "--json", "-C", str(team.root)])
        findings = json.loads(capsys.readouterr().out)["findings"]
        return [one["message"] for one in findings if one["reason"] == "file_missing"]

    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert told() == []
    setup(team, "claude")
    capsys.readouterr()
    (message,) = told()
    assert "is not on the PATH" in message
    (tmp_path / "yolo-fs").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (message,) = told()
    assert str(tmp_path) in message and "desktop" in message


def test_a_host_that_is_started_below_the_root_is_told_about(team: Team) -> None:
    setup(team, "claude")
    (team.root / "src").mkdir()
    assert (len(seen(team)), len(seen(team, "src"))) == (0, 1)
    setup(team, "claude", "--local")
    assert seen(team, "src") == []


def test_an_entry_that_somebody_changed_is_told(team: Team) -> None:
    setup(team, "claude")
    path = file_of(team, ("claude",))
    path.write_text(path.read_text().replace("yolo-fs hook stop ", "yolo-fs hook stop -q "))
    assert seen(team) == [".claude/settings.json: no hook of ours, or an older one, for Stop"]


@pytest.mark.proves("hosts:11")
def test_both_kinds_of_trust_are_told(team: Team) -> None:
    setup(team, "codex")
    assert seen(team) == []  # nobody here uses that host
    home = Path(os.environ["CODEX_HOME"])
    home.mkdir()
    trust: dict[str, Any] = {}

    def written() -> list[str]:
        lines = (
            [f'[projects."{team.root}"]', 'trust_level = "trusted"'] if "project" in trust else [""]
        )
        for key, digest in trust.get("hooks", {}).items():
            lines += [
                f'[hooks.state."{team.root}/.codex/hooks.json:{key}"]',
                f'trusted_hash = "{digest}"',
            ]
        (home / "config.toml").write_text("\n".join(lines))
        return seen(team)

    assert [message.split(",")[0] for message in written()] == [
        ".codex/hooks.json: the project is not trusted",
        ".codex/hooks.json: not approved as it is now",
    ]
    trust["project"] = True
    snake = {
        event: "".join(f"_{c.lower()}" if c.isupper() else c for c in event)[1:]
        for event, _, _ in digests(team)
    }
    trust["hooks"] = {
        f"{snake[event]}:{group}:{number}": digest
        for (event, group, number), digest in digests(team).items()
    }
    assert written() == []
    trust["hooks"]["stop:0:0"] = "sha256:0"
    assert written() == [".codex/hooks.json: not approved as it is now, and skipped silently: Stop"]
