"""What a call of a server's tool touches is told by its arguments, however deep and however spelled."""

from __future__ import annotations

import time
from typing import Any

import pytest

from yolo_fs.core.tool_calls import is_mcp
from yolo_fs.hooks.mcp_calls import speaks_for, touches_of

FILE = ".yolo-planning/phases/01-auth/critique.jsonl"


def told(tool: str, given: dict[str, Any]) -> set[tuple[str, str]]:
    return {(str(touch.effect), touch.path) for touch in touches_of(tool, given)}


@pytest.mark.parametrize(
    ("tool", "given", "expected"),
    [
        ("mcp__fs__read_file", {"path": "a/b.txt"}, ("read", "a/b.txt")),
        ("mcp__fs__readTextFile", {"filePath": "a"}, ("read", "a")),
        ("mcp__fs__read_multiple_files", {"paths": ["x", "y"]}, ("read", "y")),
        ("mcp__fs__write_file", {"path": "a", "content": "b"}, ("write", "a")),
        ("mcp__fs__edit_file", {"edits": [{"file": {"path": "a"}}]}, ("write", "a")),
        ("mcp__fs__move_file", {"source": "a", "destination": "b"}, ("write", "a")),
        ("mcp__fs__copy_file", {"source": "a", "destination": "b"}, ("read", "a")),
        ("mcp__fs__copy_file", {"source": "a", "destination": "b"}, ("write", "b")),
        ("mcp__fs__delete_file", {"path": "a"}, ("remove", "a")),
        ("mcp__fs__create_directory", {"path": "a"}, ("alter", "a")),
        ("mcp__x__do", {"thing": ".env"}, ("read", ".env")),
        ("mcp__x__do", {"thing": {"of": ["./certs/a.pem"]}}, ("read", "./certs/a.pem")),
        ("mcp__x__store", {"where": FILE}, ("read", FILE)),
        ("mcp__x__save", {"where": f"/my place/{FILE}"}, ("write", f"/my place/{FILE}")),
        ("mcp__x__open", {"uri": "file:///a%20b/.env"}, ("read", "/a b/.env")),
        ("mcp__yolo-fs__check", {"path": FILE}, ("read", FILE)),
        ("mcp__yolo-fs__append", {"path": FILE, "record": {"file": "a"}}, ("write", FILE)),
        ("mcp__plugin_yolo-fs_yolo-fs__write", {"path": FILE, "text": "x"}, ("write", FILE)),
        ("mcp__yolo-fs__task", {"action": "claim", "files": ["src/a.py"]}, ("write", "src/a.py")),
        ("MCP:write", {"path": FILE}, ("write", FILE)),
        ("ReadMcpResourceTool", {"uri": f"yolo-fs://artifacts/{FILE}"}, ("read", FILE)),
        ("read_mcp_resource", {"uri": "YOLO-FS://artifacts/%2eenv"}, ("read", ".env")),
        ("ReadMcpResourceTool", {"uri": "repo://here/.env"}, ("read", ".env")),
    ],
)  # fmt: skip
def test_a_touch_is_seen(tool: str, given: dict[str, Any], expected: tuple[str, str]) -> None:
    assert is_mcp(tool)
    assert expected in told(tool, given)


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("mcp__slack__send_message", {"to": "dev", "text": "see .env"}),
        ("mcp__github__create_issue", {"title": "rotate server.pem", "body": f"in {FILE}"}),
        ("mcp__web__fetch", {"url": "https://example.com/.env"}),
        ("mcp__yolo-fs__append", {"record": {"file": "src/other.ts", "path": ".env"}}),
        ("mcp__yolo-fs__escalate", {"action": "open", "task": "01-01/T1", "reason": "x"}),
        ("mcp__npm__run", {"script": "build"}),
        ("mcp__x__y", {"anything": 1, "at": None, "all": [True, 2.5, {"a": []}]}),
    ],
)
def test_what_is_only_spoken_of_is_no_touch(tool: str, given: dict[str, Any]) -> None:
    assert told(tool, given) == set()


def test_whose_name_a_call_acts_in() -> None:
    assert speaks_for("mcp__yolo-fs__write", {"agent": " yolo-dev "}) == ("yolo-dev", True)
    assert speaks_for("mcp__yolo_fs__write", {"agent": "dev"}) == ("dev", True)
    assert speaks_for("mcp__other__run", {"agent": "gpt"}) == ("gpt", False)
    assert speaks_for("Task", {"agent": "dev"}) == ("", False)
    assert speaks_for("MCP:write", {"agent": 7}) == ("", False)


@pytest.mark.parametrize(
    "value",
    ["./" * 500_000 + ".env", "a/../" * 200_000 + ".env", "%2e" * 300_000, " " * 1_000_000, "://" * 300_000],
    ids=["dots", "up", "escapes", "blanks", "schemes"],
)  # fmt: skip
def test_a_long_argument_is_read_once(value: str) -> None:
    began = time.process_time()
    seen = told("mcp__fs__read_file", {"path": value, "other": value})
    assert time.process_time() - began < 5
    if value.endswith(".env"):
        assert ("read", ".env") in seen, "as a server would shorten it"


def test_a_flood_of_arguments_is_told_once_each() -> None:
    given = {"paths": ["a", "b"] * 50_000, "deep": [[[[{"path": "c"}]]]]}
    assert told("mcp__fs__read_file", given) == {("read", "a"), ("read", "b"), ("read", "c")}
