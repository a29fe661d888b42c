"""Registers our MCP server and the roles with an agent's host, and writes our plugin for it."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from yolo_fs import __version__
from yolo_fs.edges.files import Content, read
from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.store import SHARED, make_folders, write_atomic
from yolo_fs.foreign_json import parse
from yolo_fs.protocol.hooks import HOST_BY_NAME, Host
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.reasons import Exit, Reason, YoloError, safe
from yolo_fs.services.hooks.hostsettings import (
    PROGRAM,
    SettingsFile,
    entries_of,
    indent_of,
    indented_like,
)
from yolo_fs.services.workspace import output_place

_Toml = Mapping[str, Any]


def server_of(agent: str = "") -> dict[str, Any]:
    """Return how a host starts our MCP server, in the root of the repository.

    `agent`: whose rights hold for every call; by itself those of whom each call names.
    """
    return {"command": PROGRAM, "args": ["mcp", *(("--as", agent) if agent else ())]}


class ServerEntry:
    """Our MCP server in a JSON file that lists the servers of a host."""

    def __init__(self, repository: Repository, host: Host, agent: str = ""):
        """`agent`: whose rights hold."""
        self.file = SettingsFile(repository, host.servers, f"{host.name}-mcp")
        self._server = server_of(agent)

    def is_complete(self) -> bool:
        """Return whether the host starts our server.

        Raises:
            YoloError: BAD_CONFIG, here as in all that follows.
        """
        return self._servers(self._value(self.file.text())).get(PROGRAM) == self._server

    def install(self) -> bool:
        """Register our server; tell whether it was there already."""
        if self.is_complete():
            return True
        text = self.file.text()
        value = self._value(text)
        value["mcpServers"] = {**self._servers(value), PROGRAM: self._server}
        self._write(text, value)
        return False

    def remove(self) -> bool:
        """Take our server out, and tell whether it was there."""
        text = self.file.text()
        if text is None:
            return False
        if self.file.restore(text):
            return True
        value = self._value(text)
        servers = self._servers(value)
        if PROGRAM not in servers:
            return False
        value["mcpServers"] = {name: each for name, each in servers.items() if name != PROGRAM}
        self.file.write(indented_like(text, _dumped(text, value)))
        self.file.forget()
        return True

    def _write(self, before: str | None, value: dict[str, Any]) -> None:
        self.file.change(before, indented_like(before, _dumped(before, value)))

    def _value(self, text: str | None) -> dict[str, Any]:
        try:
            value = json.loads(text) if text and text.strip() else {}
        except (ValueError, RecursionError) as error:
            raise self.file.bad(f"it is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise self.file.bad("it is not a JSON object")
        return value

    def _servers(self, value: dict[str, Any]) -> dict[str, Any]:
        servers = value.get("mcpServers", {})
        if not isinstance(servers, dict):
            raise self.file.bad("its `mcpServers` is not an object")
        return servers


class TomlSection:
    """The end of a TOML file, between two comments of ours: nothing else in it is touched."""

    def __init__(
        self, repository: Repository, host: Host, name: str, content: Callable[[_Toml], str]
    ):
        """Take the section `name`; `content` is told what the rest of the file says."""
        self.file = SettingsFile(repository, host.servers, f"{host.name}-{name}")
        self._content = content
        self._begin = f"# yolo-fs {name}: begin; 'yolo-fs setup {host.name} --remove' takes it out"
        self._end = f"# yolo-fs {name}: end"
        self._section = re.compile(
            rf"(?:\r?\n)?{re.escape(self._begin)}\r?\n"
            rf"(?:(?!{re.escape(self._begin)}).)*?{re.escape(self._end)}(?:\r?\n|\Z)",
            re.DOTALL,
        )

    def is_complete(self) -> bool:
        """Return whether the section is there as it should be."""
        text = self.file.text() or ""
        found = self._section.search(text)
        return found is not None and self._text(self._section.sub("", text)) in found[0].replace(
            "\r\n", "\n"
        )

    def install(self) -> bool:
        """Write the section; tell whether it was there already.

        Raises:
            YoloError: BAD_CONFIG when the file is not TOML, or names the same tables itself.
        """
        before = self.file.text()
        if self.is_complete():
            return True
        rest = self._section.sub("", before or "")
        eol = "\r\n" if "\r\n" in rest else "\n"
        gap = eol if rest and not rest.endswith("\n") else ""
        lead = eol if rest else ""
        ours = self._text(rest)
        after = f"{rest}{gap}{lead}{ours}\n".replace("\r\n", "\n").replace("\n", eol)
        self._parsed(after)
        self.file.change(before, after)
        return False

    def remove(self) -> bool:
        """Take the section out, and tell whether it was there."""
        text = self.file.text()
        if text is None or not self._section.search(text):
            return False
        if not self.file.restore(text):
            self.file.write(self._section.sub("", text))
            self.file.forget()
        return True

    def _text(self, rest: str) -> str:
        return f"{self._begin}\n{self._content(self._parsed(rest))}{self._end}"

    def _parsed(self, text: str) -> _Toml:
        try:
            return tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise self.file.bad(f"it is not TOML, or has this already: {error}") from error


def server_table(_: _Toml, agent: str = "") -> str:
    """Return the table of our MCP server in TOML."""
    arguments = json.dumps(server_of(agent)["args"])
    return f'[mcp_servers.{PROGRAM}]\ncommand = "{PROGRAM}"\nargs = {arguments}\n'


def role_tables(rest: _Toml) -> str:
    """Return a table in TOML for each agent of the company that the rest of the file does not name:
    only a named role reaches our hooks.
    """
    named = rest.get("agents")
    return "\n".join(_role_tables(frozenset(named) if isinstance(named, dict) else frozenset()))


def _role_tables(named: frozenset[str]) -> Iterator[str]:
    for agent in AGENT_BY_NAME.values():
        if agent.full_name in named:
            continue
        writes = f"; writes {', '.join(agent.produces)}" if agent.produces else ""
        text = json.dumps(f"{agent.title}{writes}", ensure_ascii=False)
        yield f"[agents.{agent.full_name}]\ndescription = {text}\n"


def _dumped(before: str | None, value: dict[str, Any]) -> str:
    return json.dumps(value, indent=indent_of(before), ensure_ascii=False)


MANIFEST = ".claude-plugin/plugin.json"
_ABOUT = "Hands work over in a team of coding agents: every artifact is checked and committed."
_MOST_BYTES = 1 << 20

_TEXTS = os.path.join(os.path.dirname(__file__), "plugin_texts")


def plugin_files() -> dict[str, str]:
    """Return the files of the plugin: path → text."""
    host = HOST_BY_NAME["claude"]
    hooks = {event: list(entries_of(host, event)) for event in host.events.values()}
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
        ".mcp.json": _json({"mcpServers": {PROGRAM: server_of()}}),
        f"skills/{PROGRAM}/SKILL.md": _text(_TEXTS, "SKILL.md"),
        "README.md": _text(_TEXTS, "README.md"),
    }


def write_plugin(folder: str, start: str) -> bool:
    """Make or renew the plugin in a folder; tell whether it was there already, as it should be.

    `start`: where the person is who named the folder.

    Raises:
        YoloError: PATH_ESCAPES, NOT_REGULAR; BAD_CONFIG when the folder holds anything else;
            nothing is written then.
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
    top, inner = output_place(os.path.join(folder, "_"), start)
    for path, text in stale.items():
        full = os.path.join(os.path.dirname(inner), path)
        make_folders(os.path.dirname(full), root=top)
        write_atomic(full, text.encode(), root=top, mode=SHARED)
    return False


def is_plugin_complete(folder: str) -> bool:
    """Return whether a folder holds the plugin as it should be."""
    return all(_text(folder, path) == text for path, text in plugin_files().items())


def _is_ours(folder: str) -> bool:
    try:
        return bool(parse(_text(folder, MANIFEST), _MOST_BYTES).get("name") == PROGRAM)
    except (ValueError, AttributeError):
        return False


def _text(folder: str, path: str) -> str:
    found = read(folder, path, _MOST_BYTES)
    return found.data.decode("utf-8", "replace") if isinstance(found, Content) else ""


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
