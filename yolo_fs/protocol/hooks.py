"""Hooks: what yolo_fs does inside git, and inside the session of an agent."""

from __future__ import annotations

from dataclasses import dataclass

from yolo_fs.protocol.tools import TOOLS, Act


@dataclass(frozen=True, slots=True)
class GitHook:
    """A hook of git."""

    name: str
    """As git calls it."""
    may_block: bool = False
    """It may refuse the user's command."""
    installed: bool = True
    """`yolo-fs hooks install` installs it."""


GIT_HOOKS = (
    GitHook("pre-commit", may_block=True),
    GitHook("prepare-commit-msg"),
    GitHook("commit-msg", may_block=True),
    GitHook("post-commit"),
    GitHook("post-checkout"),
    GitHook("post-merge"),
    GitHook("post-rewrite"),
    GitHook("pre-push", may_block=True),
    GitHook("reference-transaction", installed=False),
)


@dataclass(frozen=True, slots=True)
class AgentHook:
    """An event in an agent's session that yolo_fs answers."""

    name: str
    """As in `yolo-fs hook EVENT`."""
    event: str
    """Name of the event at the host, as in `hook_event_name`."""
    may_block: bool = False
    """Its answer may be a refusal with a reason."""
    matcher: str = ""
    """Sources or tools for which the host calls it; empty for all."""
    timeout_s: int = 60
    """After so many seconds the host goes on without an answer, also where it would have been no:
    a loaded machine has to reach one before."""


AGENT_HOOKS = (
    AgentHook("session-start", "SessionStart", matcher="startup|resume|clear|compact|fork"),
    AgentHook("user-prompt-submit", "UserPromptSubmit"),
    AgentHook(
        "pre-tool-use",
        "PreToolUse",
        may_block=True,
        matcher="|".join(name for name, act in TOOLS.items() if act is not Act.TELL),
    ),
    AgentHook(
        "post-tool-use",
        "PostToolUse",
        may_block=True,
        matcher="|".join(name for name, act in TOOLS.items() if act in (Act.WRITE, Act.RUN)),
    ),
    AgentHook(
        "post-tool-use-failure",
        "PostToolUseFailure",
        matcher="|".join(name for name, act in TOOLS.items() if act is Act.RUN),
    ),
    AgentHook("subagent-start", "SubagentStart"),
    AgentHook("stop", "Stop", may_block=True),
    AgentHook("subagent-stop", "SubagentStop", may_block=True),
    AgentHook("task-completed", "TaskCompleted", may_block=True),
    AgentHook("session-end", "SessionEnd", timeout_s=1),
    AgentHook("post-compact", "PostCompact"),
)

AGENT_HOOK_BY_NAME = {row.name: row for row in AGENT_HOOKS}
