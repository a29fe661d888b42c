"""Hooks: what yolo_fs does inside git, and inside the session of an agent."""

from __future__ import annotations

from dataclasses import dataclass

from yolo_fs.protocol.tools import TOOLS, Act


@dataclass(frozen=True, slots=True)
class GitHook:
    """A hook of git."""

    name: str
    """As git calls it."""
    job: str
    """What it is for."""
    may_block: bool = False
    """It may refuse the user's command."""
    installed: bool = True
    """`yolo-fs hooks install` installs it."""
    source: str = "the documentation of the hosts"
    """Section that the row restates."""


_REREAD = "re-read state, rebuild `.ctx`, re-map hashes after rebase (stdin old→new), warn on branch ≠ directive_branch"

GIT_HOOKS = (
    GitHook(
        "pre-commit",
        "validate staged `.yolo-planning/**` (index content, not work tree), HANDOFF.md, branch = directive_branch",
        may_block=True,
    ),
    GitHook(
        "prepare-commit-msg",
        "propose the prescribed message when only one artifact is staged; "
        "add trailers (`Yolo-Phase:`, `Yolo-Dept:`, `Executed-By:`)",
    ),
    GitHook(
        "commit-msg",
        "enforce `docs(NN): …`, `test(NN): RED…`, `{type}(NN-MM): …`, `chore(state): …`",
        may_block=True,
    ),
    GitHook("post-commit", "append event, nudge daemon; never commits"),
    GitHook("post-checkout", _REREAD),
    GitHook("post-merge", _REREAD),
    GitHook("post-rewrite", _REREAD),
    GitHook(
        "pre-push",
        "refuse pushing uncommitted/invalid artifacts or without the lease (scale-out)",
        may_block=True,
    ),
    GitHook(
        "reference-transaction",
        "(nice) exact ref events; very hot, stdlib only",
        installed=False,
    ),
)

GIT_HOOK_BY_NAME = {row.name: row for row in GIT_HOOKS}


@dataclass(frozen=True, slots=True)
class AgentHook:
    """An event in an agent's session that yolo_fs answers."""

    name: str
    """As in `yolo-fs hook EVENT`."""
    event: str
    """Name of the event at the host, as in `hook_event_name`."""
    job: str
    """What it is for; empty when the name says it."""
    may_block: bool = False
    """Its answer may be a refusal with a reason."""
    matcher: str = ""
    """Sources or tools for which the host calls it; empty for all."""
    timeout_s: int = 10
    """After so many seconds the host goes on without an answer."""
    source: str = "the documentation of the hosts"
    """Section that the row restates."""


AGENT_HOOKS = (
    AgentHook("session-start", "SessionStart", "", matcher="startup|resume|clear|compact"),
    AgentHook("user-prompt-submit", "UserPromptSubmit", "refresh after compaction"),
    AgentHook(
        "pre-tool-use",
        "PreToolUse",
        "deny direct writes to .dept-status-*.json and to other departments' artifacts; "
        "deny edits while HANDOFF.md is invalid",
        may_block=True,
        matcher="|".join(TOOLS),
        timeout_s=5,
    ),
    AgentHook(
        "post-tool-use",
        "PostToolUse",
        "validate the artifact just written and return reason",
        may_block=True,
        matcher="|".join(name for name, act in TOOLS.items() if act is not Act.READ),
    ),
    AgentHook("subagent-start", "SubagentStart", "role-scoped context"),
    AgentHook(
        "stop",
        "Stop",
        "block once if an artifact is uncommitted; honour stop_hook_active",
        may_block=True,
    ),
    AgentHook(
        "subagent-stop",
        "SubagentStop",
        "block once if an artifact is uncommitted; honour stop_hook_active",
        may_block=True,
    ),
    AgentHook("task-completed", "TaskCompleted", "", may_block=True),
    AgentHook("session-end", "SessionEnd", "", timeout_s=1),
    AgentHook(
        "post-compact",
        "PostCompact",
        "sets a marker; inject at next UserPromptSubmit",
        timeout_s=5,
        source="the documentation of the hosts",
    ),
)

AGENT_HOOK_BY_NAME = {row.name: row for row in AGENT_HOOKS}
