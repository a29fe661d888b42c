"""What the input of a tool names is read in one way, whichever door reads it."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from yolo_fs.cli.hook_question import may_destroy
from yolo_fs.core.tool_calls import AGENT_KEYS, agent_in, command_in
from yolo_fs.hooks.hosts import parse_input

WORDS = ["git", "-C", "a folder", "checkout", "--", "it's"]


@pytest.mark.parametrize("key", ["command", "cmd"])
def test_a_command_in_words_is_the_text_that_a_shell_reads_as_them(key: str) -> None:
    assert shlex.split(command_in({key: WORDS})) == WORDS
    assert command_in({key: ["rm -rf a"]}) == command_in({key: "rm -rf a"}) == "rm -rf a"


@pytest.mark.parametrize("given", [{}, {"command": 7}, {"command": None}, {"path": "a"}])
def test_what_has_no_command_has_an_empty_one(given: dict[str, Any]) -> None:
    assert command_in(given) == ""


def test_the_quick_and_the_whole_check_see_the_same_command() -> None:
    payload = {"tool_name": "shell", "tool_input": {"command": WORDS}}
    whole = parse_input("pre-tool-use", "codex", "/", payload, {})
    assert may_destroy({"command": WORDS}) is bool(whole.call.destructions) is True


@pytest.mark.parametrize("key", AGENT_KEYS)
def test_the_quick_reader_of_a_hook_and_the_full_one_are_told_the_same_agent(key: str) -> None:
    payload = {"hook_event_name": "TaskCompleted", key: "dev-1"}
    assert (
        parse_input("task-completed", "claude", ".", payload, {}).agent
        == agent_in(payload)
        == "dev-1"
    )
