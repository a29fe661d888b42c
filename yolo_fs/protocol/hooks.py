"""Hooks: what yolo_fs does inside git, and inside the session of an agent; the hosts that agents
run in, where each keeps its hooks, how it names events, what its user must approve; and the tools
of every host that reach files.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from yolo_fs.core.tool_calls import MCP_PREFIXES, RESOURCE_READERS


class ToolAct(StrEnum):
    """What a tool does with what it is given."""

    READ = "read"
    WRITE = "write"
    RUN = "run"
    """Runs a command of a shell, or a patch, which tells itself what it touches."""
    TELL = "tell"
    """Writes to another agent."""


TOOLS: Mapping[str, ToolAct] = {
    "Read": ToolAct.READ,
    "NotebookRead": ToolAct.READ,
    "Grep": ToolAct.READ,
    "Glob": ToolAct.READ,
    "Write": ToolAct.WRITE,
    "Edit": ToolAct.WRITE,
    "MultiEdit": ToolAct.WRITE,
    "NotebookEdit": ToolAct.WRITE,
    "StrReplace": ToolAct.WRITE,
    "Delete": ToolAct.WRITE,
    "Bash": ToolAct.RUN,
    "Shell": ToolAct.RUN,
    "shell": ToolAct.RUN,
    "exec_command": ToolAct.RUN,
    "apply_patch": ToolAct.RUN,
    "SendMessage": ToolAct.TELL,
}
"""Tools of every host that reach files or other agents; the rest are none of our business."""

CHOOSING_KEY = "glob"
"""Key of `tool_input` by which a search chooses files by their names."""

RECIPIENT_KEYS = ("recipient", "to")
"""Keys of `tool_input` that name who is written to."""

CONTENT_KEYS = ("content", "message", "text")
"""Keys of `tool_input` that hold what is written to them."""

MCP_PATH_WORDS = frozenset([
    "path", "paths", "file", "files", "filename", "filepath", "uri", "uris", "source", "src",
    "destination", "dest", "dst", "directory", "folder", "dir",
])  # fmt: skip
"""A key of the input of a server's tool names a file if one of its words is among these."""

MCP_CONTENT_KEYS = frozenset([
    "text", "content", "contents", "record", "fields", "body", "message", "data", "patch", "diff",
    "old_string", "new_string",
])  # fmt: skip
"""Keys whose values are written or searched for, and name no file to touch."""

MCP_WRITING_WORDS = frozenset([
    "write", "append", "edit", "create", "update", "insert", "replace", "patch", "apply", "save",
    "set", "add", "put", "modify", "rename", "move", "copy", "touch", "truncate", "task",
    "download", "export", "screenshot",
])  # fmt: skip
"""A tool of a server writes what it names if one of its words is among these, ..."""

MCP_TARGET_WORDS = frozenset(["download", "output", "save", "destination", "dest", "dst"])
"""A file is written, whatever the tool does, if a word of its key is among these."""

MCP_REMOVING_WORDS = frozenset(["delete", "remove", "unlink", "rm"])
"""... removes it if one is among these, ..."""

MCP_FOLDER_WORDS = frozenset(["mkdir", "directory", "folder"])
"""... only makes folders if one is among these, and else reads it."""


class GitHook(NamedTuple):
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


class AgentHook(NamedTuple):
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
        matcher="|".join(name for name, act in TOOLS.items() if act is not ToolAct.TELL),
    ),
    AgentHook(
        "post-tool-use",
        "PostToolUse",
        may_block=True,
        matcher="|".join(
            name for name, act in TOOLS.items() if act in (ToolAct.WRITE, ToolAct.RUN)
        ),
    ),
    AgentHook(
        "post-tool-use-failure",
        "PostToolUseFailure",
        matcher="|".join(name for name, act in TOOLS.items() if act is ToolAct.RUN),
    ),
    AgentHook("subagent-start", "SubagentStart"),
    AgentHook("stop", "Stop", may_block=True),
    AgentHook("subagent-stop", "SubagentStop", may_block=True),
    AgentHook("task-completed", "TaskCompleted", may_block=True),
    AgentHook("session-end", "SessionEnd", timeout_s=1),
    AgentHook("post-compact", "PostCompact"),
)

MCP_MATCHER = "|".join((f"{MCP_PREFIXES[0]}.*", *RESOURCE_READERS))
"""Tools of servers for which a host calls `pre-tool-use`, besides its own."""

AGENT_HOOK_BY_NAME = {row.name: row for row in AGENT_HOOKS}


class Host(NamedTuple):
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
    """Environment variables that the host sets for the commands of its agents alone."""
    local_settings: str = ""
    """A file of the same form that the host also reads when it is started below the root."""
    servers: str = ""
    """The file of the project that names its MCP servers."""
    off_switch: str = ""
    """Key of its settings that turns every hook off, ours too, without a word."""
    home: tuple[str, str] = ("", "")
    """The variable that names the folder of the user's own settings, and where it is without."""
    teller: str = ""
    """Its tool by which one agent writes to another."""
    keeps_approved: bool = False
    """Its user approves each entry by its text and place, so that what is new stands apart."""
    has_groups: bool = True
    """An event holds groups of hooks, each with its matcher; otherwise the hooks themselves."""


def _hooks_except(*names: str) -> dict[str, str]:
    return {row.name: row.event for row in AGENT_HOOKS if row.name not in names}


HOSTS = (
    Host(
        "claude",
        ".claude/settings.json",
        _hooks_except("post-compact"),  # its SessionStart is called after a compaction
        (
            "Trust this folder when the host asks, and look at the hooks with /hooks.",
            "Start the host at the root of the repository: below it, it does not read this file, "
            "but .claude/settings.local.json, which 'yolo-fs setup claude --local' writes.",
        ),
        announced_by=("CLAUDECODE",),
        local_settings=".claude/settings.local.json",
        teller="SendMessage",
        servers=".mcp.json",
        off_switch="disableAllHooks",
        home=("CLAUDE_CONFIG_DIR", "~/.claude"),
    ),
    Host(
        "codex",
        ".codex/hooks.json",
        _hooks_except(
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
        keeps_approved=True,
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
