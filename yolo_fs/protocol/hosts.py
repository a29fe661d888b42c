"""The hosts that agents run in: where each keeps its hooks, how it names events, what its user must
approve.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from yolo_fs.protocol.hooks import AGENT_HOOKS


@dataclass(frozen=True, slots=True)
class Host:
    """One program that agents run in."""

    name: str
    """As in `yolo-fs setup NAME`."""
    settings: str
    """The file of the project that names its hooks, relative to the repository."""
    events: Mapping[str, str]
    """Our hook → the host's event, for those that it asks."""
    approve: tuple[str, ...]
    """What the user must still do before the host runs the hooks."""
    announced_by: tuple[str, ...] = ()
    """Environment variables that the host sets for the commands of its agents, and only for
    those."""
    local_settings: str = ""
    """A file of the same form that the host also reads when it is started below the root."""
    servers: str = ""
    """The file of the project that names its MCP servers."""
    teller: str = ""
    """Its tool by which one agent writes to another."""
    has_groups: bool = True
    """An event holds groups of hooks, each with its matcher; otherwise the hooks themselves."""


def _all_but(*names: str) -> dict[str, str]:
    return {row.name: row.event for row in AGENT_HOOKS if row.name not in names}


HOSTS = (
    Host(
        "claude",
        ".claude/settings.json",
        _all_but("post-compact"),  # its SessionStart is called after a compaction
        (
            "Trust this folder when the host asks, and look at the hooks with /hooks.",
            "Start the host at the root of the repository: below it, it does not read this file, "
            "but .claude/settings.local.json, which 'yolo-fs setup claude --local' writes.",
        ),
        announced_by=("CLAUDECODE",),
        local_settings=".claude/settings.local.json",
        teller="SendMessage",
        servers=".mcp.json",
    ),
    Host(
        "codex",
        ".codex/hooks.json",
        _all_but(
            "task-completed", "post-tool-use-failure"
        ),  # a failing command is told as any other
        (
            "Trust this project, since .codex/ of any other is not read: an interactive session "
            "asks at its start, and `codex exec --trust` notes it too.",
            "Approve the hooks when an interactive session shows them for review, or with /hooks: "
            "one that is not approved, or has changed since, is skipped silently, "
            "and `codex exec` never asks.",
            "Run 'yolo-fs doctor': it says which of both is missing.",
        ),
        servers=".codex/config.toml",
        announced_by=("CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID"),
    ),
    Host(
        "cursor",
        ".cursor/hooks.json",
        {
            "session-start": "sessionStart",
            "user-prompt-submit": "beforeSubmitPrompt",
            "pre-tool-use": "preToolUse",
            "post-tool-use": "postToolUse",
            "stop": "stop",
            "subagent-stop": "subagentStop",
            "session-end": "sessionEnd",
        },
        ("Trust this workspace: in one that is not trusted no hook runs.",),
        announced_by=("CURSOR_AGENT",),
        servers=".cursor/mcp.json",
        has_groups=False,
    ),
)

ANNOUNCED_BY = tuple(name for row in HOSTS for name in row.announced_by)
"""Environment variables by which a command knows that an agent runs it."""

HOST_BY_NAME = {row.name: row for row in HOSTS}
