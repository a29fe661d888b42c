"""Registers our MCP server and the roles with an agent's host."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from yolo_fs.git.repository import Repository
from yolo_fs.hooks.hostsettings import PROGRAM, SettingsFile, json_like
from yolo_fs.protocol.hooks import Host
from yolo_fs.protocol.roster import AGENT_BY_NAME

_Toml = Mapping[str, Any]


def server_of(agent: str = "") -> dict[str, Any]:
    """Return the entry by which a host starts our MCP server, in the root of the repository.

    `agent`: whose rights apply to every call; without it, those of the agent that each call names.
    """
    return {"command": PROGRAM, "args": ["mcp", *(("--as", agent) if agent else ())]}


class ServerEntry:
    """Our MCP server in a JSON file that lists the servers of a host."""

    def __init__(self, repository: Repository, host: Host, agent: str = ""):
        """`agent`: whose rights apply."""
        self.file = SettingsFile(repository, host.servers, f"{host.name}-mcp")
        self._server = server_of(agent)

    def is_complete(self) -> bool:
        """Return whether the host starts our server.

        Raises:
            YoloError: BAD_CONFIG, here as in all that follows.
        """
        return self._servers(self.file.json_of(self.file.text())).get(PROGRAM) == self._server

    def install(self) -> bool:
        """Register our server; return whether it was already registered."""
        if self.is_complete():
            return True
        text = self.file.text()
        value = self.file.json_of(text)
        value["mcpServers"] = {**self._servers(value), PROGRAM: self._server}
        self.file.change(text, json_like(text, value))
        return False

    def remove(self) -> bool:
        """Remove our server; return whether it was there."""
        return self.file.take_out(self._text_without_ours)

    def _text_without_ours(self, text: str) -> str | None:
        value = self.file.json_of(text)
        servers = self._servers(value)
        if PROGRAM not in servers:
            return None
        rest = {name: each for name, each in servers.items() if name != PROGRAM}
        return json_like(text, {**value, "mcpServers": rest})

    def _servers(self, value: dict[str, Any]) -> dict[str, Any]:
        servers = value.get("mcpServers", {})
        if not isinstance(servers, dict):
            raise self.file.bad("its `mcpServers` is not an object")
        return servers


class TomlSection:
    """Our section at the end of a TOML file, between two comments; nothing else is touched."""

    def __init__(
        self, repository: Repository, host: Host, name: str, content: Callable[[_Toml], str]
    ):
        """Manage the section `name`; `content`: makes its text from the rest of the file."""
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
        """Return whether the section is present and current."""
        text = self.file.text() or ""
        match = self._section.search(text)
        return match is not None and self._text(self._section.sub("", text)) in match[0].replace(
            "\r\n", "\n"
        )

    def install(self) -> bool:
        """Write the section; return whether it was already there.

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
        """Remove the section; return whether it was there."""
        return self.file.take_out(
            lambda text: self._section.sub("", text) if self._section.search(text) else None
        )

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
    """Return a TOML table for each agent of the company that the rest of the file does not name.

    Only a named role reaches our hooks.
    """
    named = rest.get("agents")
    return "\n".join(_format_roles(frozenset(named) if isinstance(named, dict) else frozenset()))


def _format_roles(named: frozenset[str]) -> Iterator[str]:
    for agent in AGENT_BY_NAME.values():
        if agent.full_name in named:
            continue
        writes = f"; writes {', '.join(agent.produces)}" if agent.produces else ""
        text = json.dumps(f"{agent.title}{writes}", ensure_ascii=False)
        file = f"agents/{agent.full_name}.toml"
        yield f'[agents.{agent.full_name}]\ndescription = {text}\nconfig_file = "{file}"\n'
