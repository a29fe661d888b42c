"""The guard that runs out of time: what is certainly forbidden is refused all the same, everything else is not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.authority.guarded import GUARDED
from yolo_fs.cli import hook_fast, hook_late, hook_question
from yolo_fs.protocol.hooks import AGENT_HOOK_BY_NAME, TOOLS, ToolAct

PHASE = ".yolo-planning/phases/01-auth"


def late(root: Path, tool: str, host: str = "claude", **given: str) -> dict[str, Any]:
    told = {"tool_name": tool, "tool_input": given}
    return hook_late.answer_late(("pre-tool-use", host, str(root), told))[0]


def is_refused(answer: dict[str, Any]) -> bool:
    return "deny" in json.dumps(answer)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / PHASE).mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize(
    "name", [".dept-status-backend.json", ".handoff-ux-complete", ".escalation-state.json"]
)
def test_what_only_a_command_writes_is_refused_in_each_way_to_write_it(
    root: Path, name: str
) -> None:
    path = f"{PHASE}/{name}"
    assert is_refused(late(root, "Write", file_path=path))
    assert is_refused(late(root, "Edit", host="cursor", file_path=str(root / path)))
    assert is_refused(late(root, "Bash", command=f"echo done > {path}"))
    assert is_refused(late(root, "apply_patch", command=f"*** Update File: {path}\n+x"))


@pytest.mark.parametrize(
    "given",
    [
        {"path": f"{PHASE}/.dept-status-backend.json", "content": "x"},
        {"uri": f"file:///etc/../{PHASE}/.handoff-ux-complete".replace("/etc/../", "ROOT/")},
        {"edits": [{"deep": {"file": f"{PHASE}/%2Edept-status-backend.json"}}]},
        {"many": [["x"] * 2_000, f"{PHASE}/.dept-status-backend.json"]},
    ],
)
def test_a_servers_tool_is_refused_what_only_a_command_writes(
    root: Path, given: dict[str, Any]
) -> None:
    named = json.loads(json.dumps(given).replace("//ROOT", f"//{root}"))
    for tool in ("mcp__fs__write_file", "MCP:write_file"):
        told = {"tool_name": tool, "tool_input": named}
        assert is_refused(hook_late.answer_late(("pre-tool-use", "claude", str(root), told))[0])
        text = f"see {PHASE}/critique.jsonl and .dept-status-backend.json"
        told = {"tool_name": tool, "tool_input": {"path": f"{PHASE}/critique.jsonl", "text": text}}
        assert not is_refused(hook_late.answer_late(("pre-tool-use", "claude", str(root), told))[0])


DEEP = "[" * 600 + "]" * 600


@pytest.mark.parametrize("host", ["claude", "cursor"])
@pytest.mark.parametrize(
    ("event", "told", "is_denied"),
    [
        ("pre-tool-use", '{"tool_name": "Write", "tool_input": DEEP}', True),
        ("pre-tool-use", '{"tool_input": DEEP, "tool_name":"mcp__fs__write_file"}', True),
        ("pre-tool-use", '{"tool_input": {"tool_name": "Read", "x": DEEP}, "tool_name": "Bash"}', True),
        ("pre-tool-use", '{"tool_input": DEEP}', True),
        ("pre-tool-use", '{"tool_name": "Bash", "tool_input": {"x": "HUGE"}}', True),
        ("pre-tool-use", '{"tool_name": "Read", "tool_input": {"x": "HUGE"}}', True),
        ("", '{"hook_event_name": "PreToolUse", "tool_name": "Write", "tool_input": DEEP}', True),
        ("before-shell-execution", '{"command": "x", "y": DEEP}', True),
        ("pre-tool-use", '{"tool_name": "Read", "tool_input": DEEP}', False),
        ("post-tool-use", '{"tool_name": "Write", "tool_input": DEEP}', False),
        ("pre-tool-use", "", False),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_where_it_may_write_or_run(
    root: Path, event: str, told: str, host: str, *, is_denied: bool
) -> None:
    data = told.replace("DEEP", DEEP).replace("HUGE", "x" * hook_question.LIMIT_BYTES)
    words = [sys.executable, "-m", "yolo_fs", "hook", *([event] if event else []), "--host", host]
    env = {**os.environ, "YOLO_FS_COLD": "1"}
    for start, expected in ((root, is_denied), (root.parent, False)):
        done = subprocess.run(words, cwd=start, env=env, input=data.encode(), capture_output=True)
        assert done.returncode == 0
        assert is_refused(json.loads(done.stdout)) is expected
        assert not data or b"nothing was checked" in done.stderr


@pytest.mark.parametrize(
    "command", ["rm -rf .git", "rm -r -f ./.yolo-planning/", "rm -rf '.yolo-planning'"]
)
def test_the_tree_and_the_repository_are_not_removed(root: Path, command: str) -> None:
    assert is_refused(late(root, "Bash", command=command))


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Read", {"file_path": f"{PHASE}/.dept-status-backend.json"}),
        ("Write", {"file_path": f"{PHASE}/critique.jsonl"}),
        ("Write", {"file_path": f"{PHASE}/state.json"}),
        ("Write", {"file_path": "src/.dept-status-backend.json"}),
        ("Bash", {"command": f"cat {PHASE}/.dept-status-backend.json > out.txt"}),
        ("Bash", {"command": "cd /tmp/other && rm -rf .git"}),
        ("Bash", {"command": "rm -rf .github"}),
    ],
)
def test_what_may_be_right_is_let_through_with_a_word_to_the_user(
    root: Path, tool: str, given: dict[str, str]
) -> None:
    told = {"tool_name": tool, "tool_input": given}
    answer, note, code = hook_late.answer_late(("pre-tool-use", "claude", str(root), told))
    assert (is_refused(answer), code) == (False, 0)
    assert "not checked" in note


@pytest.mark.parametrize("tool", ["Bash", "Write"])
@pytest.mark.parametrize("host", ["claude", "cursor"])
def test_an_agent_of_ours_is_refused_what_was_not_judged_in_time(
    root: Path, tool: str, host: str
) -> None:
    given = {"command": "cat .env", "file_path": "src/a.ts"}
    told = {"tool_name": tool, "tool_input": given, "agent_type": "yolo-dev"}
    said, _, code = hook_late.answer_late(("pre-tool-use", host, str(root), told))
    assert is_refused(said) and code == 0
    assert "did not end within" in json.dumps(said) and "split it" in json.dumps(said)


@pytest.mark.parametrize(("agent", "is_denied"), [("yolo-dev", True), ("", False)])
def test_the_time_is_limited_before_anything_is_read(
    tmp_path: Path, agent: str, is_denied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = Team(tmp_path / "work")
    (team.root / PHASE).mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(hook_question, "LIMIT_S", 1e-6)
    told = {"tool_name": "Bash", "tool_input": {"command": "rm x; " * 10_000}, "agent_type": agent}
    said, _, code = hook_fast.in_time(("pre-tool-use", "claude", str(team.root), told))
    assert (is_refused(said), code) == (is_denied, 0)


def test_its_table_is_that_of_the_whole_check() -> None:
    guarded = [name.replace("*", "x") for row in GUARDED if not row.is_state for name in row.names]
    assert guarded and all(hook_late.GUARDED_NAME.match(name) for name in guarded)
    states = [name for row in GUARDED if row.is_state for name in row.names]
    assert not any(hook_late.GUARDED_NAME.match(name) for name in states)
    assert set(hook_late.WRITERS) == {name for name, act in TOOLS.items() if act is ToolAct.WRITE}
    assert 5 <= AGENT_HOOK_BY_NAME["pre-tool-use"].timeout_s - hook_question.LIMIT_S <= 15


def test_an_agent_is_told_what_was_not_kept_for_lack_of_time(tmp_path: Path) -> None:
    told = {"tool_name": "Bash", "tool_input": {"command": "git reset --hard"}}
    said = hook_late.answer_late(("pre-tool-use", "claude", str(tmp_path), told))[0]
    assert said["hookSpecificOutput"]["additionalContext"] == hook_late.UNKEPT
    told = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
    assert hook_late.answer_late(("pre-tool-use", "claude", str(tmp_path), told))[0] == {}


@pytest.mark.parametrize("path", [f"{PHASE}/.dept-status-backend.json", f"{PHASE}/critique.jsonl"])
def test_a_check_that_fails_by_a_defect_of_ours_still_refuses_what_is_certainly_forbidden(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise UnicodeEncodeError("utf-8", "x", 0, 1, "a defect")

    team = Team(tmp_path / "work")
    monkeypatch.setattr(hook_fast, "_fully", fail)
    told = {"tool_name": "Write", "tool_input": {"file_path": path}, "cwd": str(team.root)}
    said, note, code = hook_fast.in_time(("pre-tool-use", "", str(team.root), told))
    if path.endswith("critique.jsonl"):
        assert (said, code, "UnicodeEncodeError" in note) == ({}, 0, True)
    else:
        assert is_refused(said)


def test_a_check_that_hangs_is_answered_before_the_host_gives_up(tmp_path: Path) -> None:
    team = Team(tmp_path / "work")
    team.git("config", "extensions.worktreeConfig", "true")  # with extensions, git has to be asked
    slow = tmp_path / "bin"
    slow.mkdir()
    (slow / "git").write_text(
        f'#!/bin/sh\n[ "$1" = version ] && exec {shutil.which("git")} version\nexec sleep 30\n'
    )
    (slow / "git").chmod(0o755)
    told = {
        "hook_event_name": "PreToolUse",
        "tool_name": "Write",
        "tool_input": {"file_path": str(team.root / PHASE / ".dept-status-backend.json")},
        "cwd": str(team.root),
    }
    began = time.monotonic()
    soon = (
        "import sys, yolo_fs.cli.hook_question as question; question.LIMIT_S = 4.0; "
        "from yolo_fs.cli.hook_fast import main; sys.exit(main([]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", soon], input=json.dumps(told).encode(), capture_output=True, check=True,
        env={**os.environ, "PATH": f"{slow}:{os.environ['PATH']}"}, timeout=60,
    )  # fmt: skip
    assert is_refused(json.loads(done.stdout))
    assert b"did not end within 4 s" in done.stdout
    assert time.monotonic() - began < 20
