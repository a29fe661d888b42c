"""Where the input of a tool of a host names files and commands. Pure, and without an import: a hook
reads it before anything else.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PATH_KEYS = ("file_path", "path", "notebook_path", "target_file")
"""Keys of `tool_input` that name a file."""
MCP_PREFIXES = ("mcp__", "MCP:")
"""How the names of tools begin that the servers of a host offer: `mcp__SERVER__TOOL` and
`MCP:TOOL`."""
AGENT_KEYS = ("agent_type", "subagent_type", "teammate_name")
"""Keys of a request that name the asking agent, the most exact one first."""
RESOURCE_READERS = ("ReadMcpResourceTool", "read_mcp_resource", "FetchMcpResource")
"""Tools by which hosts read the resources of servers."""


def is_mcp(tool: object) -> bool:
    """Return whether a tool belongs to an MCP server, or reads a server's resources."""
    return isinstance(tool, str) and (tool.startswith(MCP_PREFIXES) or tool in RESOURCE_READERS)


ANNOUNCED = "yolo_fs_announced"
"""Key of a payload whose agent is not named by the host, but by its environment."""


def agent_in(payload: Mapping[str, Any]) -> str:
    """Return the agent that a request names; empty if it names none."""
    named = (payload.get(key) for key in AGENT_KEYS)
    return next((name for name in named if isinstance(name, str) and name), "")


def given_to(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the input of the tool; the whole request where it has none."""
    given = payload.get("tool_input")
    return given if isinstance(given, dict) else payload


def command_in(given: Mapping[str, Any]) -> str:
    """Return the command as text; it may be a list such as `["bash", "-lc", "…"]`."""
    command = given.get("command", given.get("cmd"))
    if not isinstance(command, list):
        return command if isinstance(command, str) else ""
    words = [str(word) for word in command]
    if len(words) == 1:
        return words[0]
    import shlex  # most commands are texts

    return shlex.join(words)
