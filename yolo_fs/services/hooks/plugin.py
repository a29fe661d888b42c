"""Makes a plugin for Claude Code: our hooks, our MCP server, and one skill that teaches the
protocol.
"""

from __future__ import annotations

import json
import os

from yolo_fs import __version__
from yolo_fs.edges.files import Content, read
from yolo_fs.edges.store import SHARED, environment, write_atomic
from yolo_fs.protocol.hosts import HOST_BY_NAME
from yolo_fs.reasons import Exit, Reason, YoloError, safe
from yolo_fs.services.hooks.hostsettings import PROGRAM, entry_of
from yolo_fs.services.hooks.registration import SERVER

MANIFEST = ".claude-plugin/plugin.json"
_ABOUT = "Hands work over in a team of coding agents: every artifact is checked and committed."
_MOST_BYTES = 1 << 20

_TEXTS = os.path.join(os.path.dirname(__file__), "plugin_texts")


def plugin_files() -> dict[str, str]:
    """Return the files of the plugin: path → text."""
    host = HOST_BY_NAME["claude"]
    hooks = {event: [entry_of(host, event)] for event in host.events.values()}
    manifest = {
        "name": PROGRAM,
        "version": __version__,
        "description": _ABOUT,
        "author": {"name": "The yolo_fs authors"},
        "license": "MIT",
        "keywords": ["agents", "git", "handoff"],
    }
    return {
        MANIFEST: _json(manifest),
        "hooks/hooks.json": _json({"description": _ABOUT, "hooks": hooks}),
        ".mcp.json": _json({"mcpServers": {PROGRAM: SERVER}}),
        f"skills/{PROGRAM}/SKILL.md": _text(_TEXTS, "SKILL.md"),
        "README.md": _text(_TEXTS, "README.md"),
    }


def write_plugin(folder: str) -> bool:
    """Make or renew the plugin in a folder; tell whether it was there already, as it should be.

    Raises:
        YoloError: BAD_CONFIG when the folder holds anything else; nothing is written then.
    """
    stale = {path: text for path, text in plugin_files().items() if _text(folder, path) != text}
    if not stale:
        return True
    if not _is_ours(folder) and os.path.isdir(folder) and os.listdir(folder):
        message = f"{safe(folder)} is not empty, and holds no plugin of ours"
        raise YoloError(
            Reason.BAD_CONFIG,
            message,
            hint="Give a folder that is new or empty.",
            exit_code=Exit.BAD_CONFIG,
        )
    for path, text in stale.items():
        full = os.path.join(folder, path)
        with environment(full):
            os.makedirs(os.path.dirname(full), exist_ok=True)
        write_atomic(full, text.encode(), mode=SHARED)
    return False


def is_plugin_complete(folder: str) -> bool:
    """Return whether a folder holds the plugin as it should be."""
    return all(_text(folder, path) == text for path, text in plugin_files().items())


def _is_ours(folder: str) -> bool:
    try:
        return bool(json.loads(_text(folder, MANIFEST)).get("name") == PROGRAM)
    except (ValueError, AttributeError):
        return False


def _text(folder: str, path: str) -> str:
    found = read(folder, path, _MOST_BYTES)
    return found.data.decode("utf-8", "replace") if isinstance(found, Content) else ""


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
