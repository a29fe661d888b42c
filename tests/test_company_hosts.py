"""How the stream of each host is read: tokens, cost, the last tool, and a limit of the host."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.company.hosts import HOST_BY_NAME, StreamNote, hosts_for, notes_in
from yolo_fs.company.roles import chosen_model, model_of
from yolo_fs.core.reasons import Exit, Reason, YoloError
from yolo_fs.git.repository import Repository
from yolo_fs.schemas.config import Config

CLAUDE_TOOL = {
    "type": "assistant",
    "message": {
        "content": [{"type": "text", "text": "I look"}, {"type": "tool_use", "name": "Read"}]
    },
}
CLAUDE_END = {
    "type": "result",
    "total_cost_usd": 0.25,
    "usage": {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 85},
    "result": "done",
}
_MODEL = {"inputTokens": 4000, "outputTokens": 80, "cacheReadInputTokens": 7, "costUSD": 0.0176}
CLAUDE_WITH_SUBAGENT = {
    "type": "result",
    "total_cost_usd": 0.0176,
    "usage": {"input_tokens": 2000, "output_tokens": 40},
    "modelUsage": {"claude-opus-5-5": {**_MODEL, "cacheCreationInputTokens": 0, "contextWindow": 1000000}},
    "result": "done",
}  # fmt: skip
"""As Claude Code 2.1.330 printed it; `usage` is of its own requests alone."""
CLAUDE_SECOND = {
    **CLAUDE_WITH_SUBAGENT,
    "result_index": 1,
    "total_cost_usd": 0.0226,
    "model_usage_since_last_result": {"claude-opus-5-5": {**_MODEL, "inputTokens": 100, "costUSD": 0.005}},
}  # fmt: skip
CLAUDE_LIMIT = {"type": "system", "subtype": "api_retry", "error_status": 429}
CLAUDE_REFUSED = {
    "type": "system", "subtype": "api_retry", "attempt": 1, "error_status": 401,
    "error": "authentication_failed",
}  # fmt: skip
CLAUDE_NOT_LOGGED_IN = {
    "type": "assistant",
    "message": {"content": [{"type": "text", "text": "Not logged in · Please run /login"}]},
    "error": "authentication_failed",
}
CODEX_TOOL = {"type": "item.completed", "item": {"type": "command_execution", "command": "ls"}}
CODEX_SAYS = {"type": "item.completed", "item": {"type": "agent_message", "text": "done"}}
CODEX_END = {"type": "turn.completed", "usage": {"input_tokens": 7, "output_tokens": 3}}
CODEX_LIMIT = {"type": "turn.failed", "error": {"message": "exceeded retry limit: 429 Too Many"}}
CODEX_SAID = "unexpected status 401 Unauthorized: the key was withdrawn"
CODEX_REFUSED = {"type": "turn.failed", "error": {"message": CODEX_SAID}}
CODEX_HAS_NO_KEY = {"type": "error", "message": "Missing environment variable: `OPENAI_API_KEY`."}
"""As Codex 0.169.0 printed it."""
OF_ANOTHER_SERVICE = {"type": "log", "status": 401, "text": "GET /login 401 Unauthorized"}


@pytest.mark.parametrize(
    ("host", "line", "note"),
    [
        ("claude", CLAUDE_TOOL, StreamNote(tool="Read")),
        ("claude", CLAUDE_END, StreamNote(tokens=100, cost_usd=0.25, answer="done")),
        (
            "claude",
            CLAUDE_WITH_SUBAGENT,
            StreamNote(tokens=4087, cost_usd=0.0176, answer="done"),
        ),
        (
            "claude",
            CLAUDE_SECOND,
            StreamNote(tokens=187, cost_usd=0.005, answer="done"),
        ),
        ("claude", CLAUDE_LIMIT, StreamNote(is_limited=True)),
        ("claude", CLAUDE_REFUSED, StreamNote(refusal="401 authentication_failed")),
        (
            "claude",
            CLAUDE_NOT_LOGGED_IN,
            StreamNote(
                refusal="Not logged in · Please run /login",
            ),
        ),
        ("codex", CODEX_REFUSED, StreamNote(answer=CODEX_SAID, refusal=CODEX_SAID)),
        (
            "codex",
            CODEX_HAS_NO_KEY,
            StreamNote(
                answer="Missing environment variable: `OPENAI_API_KEY`.",
                refusal="Missing environment variable: `OPENAI_API_KEY`.",
            ),
        ),
        ("command", CODEX_HAS_NO_KEY, StreamNote()),
        ("command", OF_ANOTHER_SERVICE, StreamNote()),
        ("codex", CODEX_TOOL, StreamNote(tool="command_execution")),
        ("codex", CODEX_SAYS, StreamNote(answer="done")),
        ("codex", CODEX_END, StreamNote(tokens=10)),
        (
            "codex",
            CODEX_LIMIT,
            StreamNote(is_limited=True, answer="exceeded retry limit: 429 Too Many"),
        ),
        ("command", CLAUDE_END, StreamNote(tokens=100, cost_usd=0.25, answer="done")),
    ],
)
def test_a_line_says_what_was_used(host: str, line: dict[str, object], note: StreamNote) -> None:
    assert [*notes_in(HOST_BY_NAME[host], json.dumps(line).encode() + b"\n")] == [note]


@pytest.mark.parametrize("host", HOST_BY_NAME)
def test_the_page_of_the_company_says_how_each_host_starts_an_agent(host: str) -> None:
    page = (Path(__file__).parents[1] / "docs/company.md").read_text(encoding="utf-8")
    assert f"| `{host}` |" in page.partition("## How an agent is started in its role")[2]


@pytest.mark.parametrize(
    "line",
    [
        b"plain words",
        b"{",
        b"[1]",
        b"\xff\xfe",
        b'{"type":"result","usage":{"input_tokens":"many"},"total_cost_usd":"dear"}',
        b'{"type":"result","usage":{"input_tokens":true},"total_cost_usd":null}',
        b"[" * 5000,
        b'{"type":"result","usage":{"input_tokens":-5,"output_tokens":-1e9},"total_cost_usd":-9.5}',
        b'{"type":"result","usage":{"input_tokens":1e400},"total_cost_usd":true}',
        b'{"type":"result","total_cost_usd":NaN}',
        b'{"type":"result","modelUsage":{"a":7,"b":{"inputTokens":"x","costUSD":"y"}}}',
        b'{"type":"result","total_cost_usd":%s}' % (b"9" * 5000),
    ],
)
@pytest.mark.parametrize("host", HOST_BY_NAME)
def test_whatever_else_a_stream_holds_costs_nothing_and_stops_nobody(
    host: str, line: bytes
) -> None:
    notes = [*notes_in(HOST_BY_NAME[host], line + b"\n")]
    assert sum(note.tokens + note.cost_usd for note in notes) == 0
    assert not any(note.is_limited for note in notes)


def test_the_largest_bills_can_be_added_and_kept() -> None:
    line = {"type": "result", "total_cost_usd": 1e308, "usage": {"input_tokens": 10**19}}
    data = json.dumps(line).encode() + b"\n"
    notes = [note for _ in range(1_000) for note in notes_in(HOST_BY_NAME["claude"], data)]
    assert 0 < sum(note.cost_usd for note in notes) < 10**18
    assert 0 < sum(note.tokens for note in notes) < 10**18


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository of a user whose own configuration of git is `~/.gitconfig`."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    root = tmp_path / "work"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


def test_the_host_is_what_the_users_own_git_says_and_not_what_the_repository_does(
    tmp_path: Path, root: Path
) -> None:
    subprocess.run(["git", "config", "yolo-fs.host.default", "codex"], cwd=root, check=True)
    with Repository(str(root)) as repository:
        assert hosts_for(repository, (), "").everybody.name == "claude"
    (tmp_path / ".gitconfig").write_text('[yolo-fs "host"]\n\tdefault = codex\n')
    subprocess.run(["git", "config", "yolo-fs.host.default", "claude"], cwd=root, check=True)
    with Repository(str(root)) as repository:
        assert hosts_for(repository, (), "").everybody.name == "codex"


def played(root: Path, *words: str, program: str = "") -> dict[str, str]:
    """Return the hosts of some agents, as the command line and git's configuration say."""
    with Repository(str(root)) as repository:
        hosts = hosts_for(repository, words, program)
    return {agent: hosts.of(agent).name for agent in ("po", "dev", "fe-dev", "tester")}


def test_a_role_has_its_own_host_and_an_agent_of_one_department_another(root: Path) -> None:
    words = ("codex", "claude", "dev=codex", "fe-dev=claude", "yolo-PO=codex")
    assert played(root, *words) == {
        "po": "codex", "dev": "codex", "fe-dev": "claude", "tester": "claude",
    }  # fmt: skip


def test_the_users_own_git_names_hosts_of_roles_and_the_repository_does_not(
    tmp_path: Path, root: Path
) -> None:
    subprocess.run(["git", "config", "yolo-fs.host.of.tester", "codex"], cwd=root, check=True)
    (tmp_path / ".gitconfig").write_text(
        '[yolo-fs "host.of"]\n\tdev = codex\n\tfe-dev = claude\n\tpo =\n'
    )
    said = {"po": "claude", "dev": "codex", "fe-dev": "claude", "tester": "claude"}
    assert played(root) == said
    assert played(root, "po=codex") == said | {"po": "codex"}, "the rest is still git's to say"
    assert {*played(root, "claude").values()} == {"claude"}, "a host for everybody is everybody's"
    assert {*played(root, program="true").values()} == {"command"}


@pytest.mark.parametrize(
    ("words", "playing"),
    [
        ((), {"po": "command", "dev": "command"}),
        (("codex",), {"po": "codex", "dev": "codex"}),
        (("dev=codex",), {"po": "command"}),
        (("codex", "dev=command"), {"dev": "command"}),
        (("dev=command",), {"dev": "command"}),
    ],
)
def test_a_program_is_that_of_the_host_command_and_without_it_of_everybodys(
    root: Path, words: tuple[str, ...], playing: dict[str, str]
) -> None:
    with Repository(str(root)) as repository:
        hosts = hosts_for(repository, words, "./mine")
    by_it = {name: hosts.of(name) for name in ("po", "dev") if hosts.of(name).command == "./mine"}
    assert {name: host.name for name, host in by_it.items()} == playing


@pytest.mark.parametrize(
    ("words", "place", "meant"),
    [
        (("codx",), "--host codx", "codex"),
        (("dev=codx",), "--host dev=codx", "codex"),
        (("claude", "devv=codex"), "--host devv=codex", "dev"),
        (("fe_devs=codex",), "--host fe_devs=codex", "fe-dev"),
        (("=codex",), "--host =codex", ""),
        (("user=codex",), "--host user=codex", ""),
        (("dev=",), "--host dev=", ""),
    ],
)
def test_a_role_or_a_host_that_there_is_not_is_refused_with_the_one_that_was_meant(
    root: Path, words: tuple[str, ...], place: str, meant: str
) -> None:
    with pytest.raises(YoloError) as refused:
        played(root, *words)
    assert (refused.value.reason, refused.value.exit_code) == (Reason.UNKNOWN_NAME, Exit.USAGE)
    assert place in refused.value.message
    assert f"Did you mean {meant}?" in refused.value.hint if meant else refused.value.hint


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('[yolo-fs "host"]\n\tdefault = codx\n', "yolo-fs.host.default"),
        ('[yolo-fs "host.of"]\n\tdev = codx\n', "yolo-fs.host.of.dev"),
        ('[yolo-fs "host.of"]\n\tdevv = codex\n', "yolo-fs.host.of.devv"),
    ],
)
def test_what_nobody_is_named_in_ones_own_git_is_refused_by_its_key(
    tmp_path: Path, root: Path, line: str, key: str
) -> None:
    (tmp_path / ".gitconfig").write_text(line)
    with pytest.raises(YoloError, match=key):
        played(root)


def start(root: Path, config: dict[str, object], *words: str) -> dict[str, Any]:
    """Return what a run says before it starts anybody, under this configuration."""
    (root / ".yolo-planning").mkdir(exist_ok=True)
    (root / ".yolo-planning" / "config.json").write_text(json.dumps(config))
    command = [
        sys.executable,
        "-P",
        "-m",
        "yolo_fs",
        "go",
        "add a login",
        "--dry-run",
        "--json",
        *words,
    ]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    said: dict[str, Any] = json.loads(run.stdout)
    return said


@pytest.mark.parametrize(
    ("config", "words", "ends"),
    [
        ({"model_overrides": {"analyze": "small"}}, ("--host", "codex"), ["-", "--model", "small"]),
        ({"model_overrides": {"yolo-analyze": "small"}}, ("--host", "claude"), ["--model", "small"]),
        ({"model_overrides": {"dev": "small"}}, ("--host", "codex"), ["-"]),
        ({"complexity_routing": {"force_analyze_model": "large"}, "model_overrides": {"analyze": "small"}},
         ("--host", "codex"), ["--model", "large"]),
        ({"model_overrides": {"analyze": "small"}}, ("--with", "mine"), ["mine"]),
        ({"model_overrides": {"analyze": "small"}}, ("--with", "mine --at {model}"), ["--at", "small"]),
        ({}, ("--with", "mine --at {model}"), ["--at", "opus"]),
    ],
)  # fmt: skip
def test_an_agent_starts_with_the_configured_model_and_without_one_its_host_chooses(
    root: Path, config: dict[str, object], words: tuple[str, ...], ends: list[str]
) -> None:
    (act,) = start(root, config, *words)["data"]["acts"]
    assert act["command"][-len(ends) :] == ends


def test_the_users_own_command_line_of_a_host_gets_no_model_behind_its_words(
    tmp_path: Path, root: Path
) -> None:
    (tmp_path / ".gitconfig").write_text('[yolo-fs "host"]\n\tclaude = claude -p --model haiku\n')
    said = start(root, {"model_overrides": {"analyze": "small"}}, "--host", "claude")
    (act,) = said["data"]["acts"]
    assert act["command"] == ["claude", "-p", "--model", "haiku"]


def test_the_model_of_an_agent_of_one_department_is_more_precise_than_that_of_its_role() -> None:
    config = Config(model_overrides={"dev": "small", "fe-dev": "large"})
    assert [chosen_model(config, name) for name in ("dev", "fe-dev", "ux-dev", "lead")] == [
        "small", "large", "small", "",
    ]  # fmt: skip
    assert model_of(config, "lead") == "sonnet"


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        ({"devv": "small"}, "unknown_name"),
        ({"dev": "--yolo"}, "bad_config"),
        ({"dev": "a b"}, "bad_config"),
    ],
)
def test_a_model_that_nobody_could_start_with_ends_a_run_before_it_begins(
    root: Path, chosen: dict[str, str], reason: str
) -> None:
    said = start(root, {"model_overrides": chosen}, "--host", "codex")
    assert said["findings"][0]["reason"] == reason
    assert not (root / ".yolo-planning" / "phases").exists()
