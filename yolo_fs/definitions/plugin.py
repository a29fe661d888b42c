"""The Claude Code plugin: all agents and commands of the company, hooks, MCP server and skill.

Its text is generated from the tables; to update the plugin, generate it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from yolo_fs import __version__
from yolo_fs.core.foreign_json import parse
from yolo_fs.core.json_form import readable_json
from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.definitions.definition import definitions
from yolo_fs.definitions.host_files import host_file
from yolo_fs.definitions.skills import NAME, PLUGIN, SKILLS, skill_file
from yolo_fs.definitions.texts import rendered
from yolo_fs.hooks.hostsettings import PROGRAM, entries_of
from yolo_fs.hooks.registration import server_of
from yolo_fs.protocol.hooks import HOST_BY_NAME
from yolo_fs.protocol.roster import AGENTS
from yolo_fs.system.files import Content, read
from yolo_fs.system.store import SHARED, make_folders, remove_folder, write_atomic
from yolo_fs.workspace.output_places import output_place

MANIFEST = ".claude-plugin/plugin.json"
_ICON = ".claude-plugin/icon.png"
_FORMER = PROGRAM
"""The plugin's name before it had agents."""
_ABOUT = (
    "A company of agents that takes an intent to the sign-off; every artifact is checked and "
    "committed."
)
_MOST_BYTES = 1 << 20
_HERE = os.path.dirname(__file__)


def plugin_files() -> dict[str, bytes]:
    """Return the files of the plugin: path → content."""
    return {path: text if isinstance(text, bytes) else text.encode() for path, text in _files()}


def _files() -> Iterator[tuple[str, str | bytes]]:
    host = HOST_BY_NAME["claude"]
    hooks = {event: list(entries_of(host, event)) for event in host.events.values()}
    manifest = {
        "name": NAME,
        "version": __version__,
        "description": _ABOUT,
        "author": {"name": "The yolo_fs authors"},
        "license": "MIT",
        "keywords": ["agents", "git", "handoff"],
    }
    yield MANIFEST, _json(manifest)
    yield "hooks/hooks.json", _json({"description": _ABOUT, "hooks": hooks})
    yield ".mcp.json", _json({"mcpServers": {PROGRAM: server_of()}})
    for definition in definitions():
        yield f"agents/{definition.agent.full_name}.md", host_file(definition, "claude")
    for skill in SKILLS:
        yield f"skills/{skill.name}/SKILL.md", skill_file(skill, PLUGIN)
    yield f"skills/{PROGRAM}/SKILL.md", rendered("skill-yolo-fs.md.j2")
    yield "README.md", rendered("README.md.j2", agents=AGENTS, skills=SKILLS)
    yield "LICENSE", rendered("LICENSE.j2")
    with open(os.path.join(_HERE, "icon.png"), "rb") as file:
        yield _ICON, file.read()


def write_plugin(folder: str, start: str) -> bool:
    """Create or update the plugin in a folder; return whether it was already complete.

    `start`: directory that a relative `folder` is resolved against.

    Raises:
        YoloError: PATH_ESCAPES, NOT_REGULAR; BAD_CONFIG when the folder holds anything else;
            nothing is written then.
    """
    stale = _find_stale_files(folder)
    if not stale:
        return True
    if not _is_ours(folder) and os.path.isdir(folder) and os.listdir(folder):
        message = f"{safe(folder)} is not empty, and holds no plugin of ours"
        raise YoloError(Reason.BAD_CONFIG, message, hint="Choose a new or empty folder.")
    top, inner = output_place(os.path.join(folder, "_"), start)
    _write(stale, os.path.dirname(inner), top)
    return False


def write_own_plugin(folder: str, top: str) -> None:
    """Create or update the plugin in a folder of ours below `top`.

    A host obeys everything in a plugin, so a folder that holds any other file is rebuilt.
    """
    if os.path.lexists(folder) and not _paths_in(folder) <= plugin_files().keys():
        remove_folder(folder)
    _write(_find_stale_files(folder), folder, top)


def _paths_in(folder: str) -> set[str]:
    """Return the paths of the files and links in a folder; links are not followed."""
    if os.path.islink(folder):
        return {""}
    paths = set()
    for place, folders, names in os.walk(folder):
        links = (name for name in folders if os.path.islink(os.path.join(place, name)))
        paths |= {os.path.relpath(os.path.join(place, name), folder) for name in (*names, *links)}
    return paths


def _write(files: Mapping[str, bytes], folder: str, top: str) -> None:
    for path, data in files.items():
        full = os.path.join(folder, path)
        make_folders(os.path.dirname(full), root=top)
        write_atomic(full, data, root=top, mode=SHARED)


def is_plugin_complete(folder: str) -> bool:
    """Return whether a folder holds the plugin as it should be."""
    return not _find_stale_files(folder)


def _find_stale_files(folder: str) -> dict[str, bytes]:
    """Return the files of the plugin that a folder lacks in this version."""
    return {path: data for path, data in plugin_files().items() if _data(folder, path) != data}


def _is_ours(folder: str) -> bool:
    try:
        return parse(_data(folder, MANIFEST).decode(), _MOST_BYTES).get("name") in (NAME, _FORMER)
    except (ValueError, AttributeError):
        return False


def _data(folder: str, path: str) -> bytes:
    content = read(folder, path, _MOST_BYTES)
    return content.data if isinstance(content, Content) else b""


def _json(value: object) -> str:
    return readable_json(value, indent=2) + "\n"
