"""The agents and commands of the company as files of the project, for hosts that look for them
there.

Our files carry a comment with a digest of the rest. Any other file, including one of ours that was
edited, belongs to the user: it is neither replaced nor removed.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from yolo_fs.core.reasons import Exit, Reason
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.hooks import Host
from yolo_fs.system.files import Content, read
from yolo_fs.system.store import SHARED, make_folders, remove, remove_empty_folders, write_text


class _Places(NamedTuple):
    """Names of files, relative to the work tree, each with `{}` for the agent or command."""

    agents: str
    skills: str
    policies: str = ""
    """Files that keep the model from starting a company unasked, where a skill cannot say so."""


ROLE_FILES: Mapping[str, _Places] = {
    "codex": _Places(
        ".codex/agents/{}.toml",
        ".agents/skills/{}/SKILL.md",
        ".agents/skills/{}/agents/openai.yaml",
    ),
    "cursor": _Places(".cursor/agents/{}.md", ".cursor/skills/{}/SKILL.md"),
}
"""Host that looks for agents and commands in files of the project → where."""
_POLICY = "policy:\n  allow_implicit_invocation: false\n"
_MARK = re.compile(r"(?m)^# yolo-fs ([0-9a-f]{12}): made by 'yolo-fs setup \w+ --roles'[^\n]*\n")
_MOST_BYTES = 1 << 20


class RoleFiles:
    """The files of one host in one work tree."""

    def __init__(self, repository: Repository, host: Host):
        self._root, self._host = repository.root, host.name
        self._places = ROLE_FILES[host.name]
        self.name = os.path.dirname(self._places.agents)
        """The folder of the agents, relative to the work tree."""
        self.path = os.path.join(repository.root, self.name)

    def is_complete(self) -> bool:
        """Return whether each agent and command has its file: a current one of ours, or the user's
        own.
        """
        return not any(self._find_stale_files())

    def install(self) -> bool:
        """Write missing files and replace outdated ones of ours; return whether all were complete.

        Raises:
            YoloError: as `store.write_atomic`, and as what is read: no link is followed.
        """
        stale = dict(self._find_stale_files())
        for name, text in stale.items():
            full = os.path.join(self._root, name)
            make_folders(os.path.dirname(full), root=self._root)
            write_text(full, text, root=self._root, mode=SHARED)
        return not stale

    def remove(self) -> bool:
        """Remove our files; return whether there were any."""
        ours = self._ours()
        for name in ours:
            remove(os.path.join(self._root, name), root=self._root)
        for name in ours:
            top = os.path.join(self._root, name.split("/")[0])
            remove_empty_folders(os.path.dirname(os.path.join(self._root, name)), top)
        return bool(ours)

    def is_there(self) -> bool:
        """Return whether any of our files exists."""
        return bool(self._ours())

    def _ours(self) -> list[str]:
        return [name for name in self._names() if _is_ours(self._text(name))]

    def _find_stale_files(self) -> Iterator[tuple[str, str]]:
        for name, text in self._files():
            there = self._text(name)
            if there is None or (there != text and _is_ours(there)):
                yield name, text

    def _files(self) -> Iterator[tuple[str, str]]:
        from yolo_fs.definitions.definition import definitions
        from yolo_fs.definitions.host_files import host_file
        from yolo_fs.definitions.skills import SKILLS, project_skill

        places = self._places
        for definition in definitions():
            name = places.agents.format(definition.agent.full_name)
            yield name, _marked(host_file(definition, self._host), self._host)
        for skill in SKILLS:
            name = f"yolo-{skill.name}"
            yield places.skills.format(name), _marked(project_skill(skill, self._host), self._host)
            if places.policies and skill.starts_agents:
                yield places.policies.format(name), _marked(_POLICY, self._host)

    def _names(self) -> Iterator[str]:
        """Yield existing files with names like ours, including those of former agents."""
        for pattern in filter(None, self._places):
            folder, _, ending = pattern.partition("/{}")
            path = os.path.join(self._root, folder)
            if not os.path.isdir(path) or os.path.islink(path):
                continue
            for entry in sorted(os.listdir(path)):
                name = f"{folder}/{entry.removesuffix(ending)}{ending}"
                is_there = os.path.lexists(os.path.join(self._root, name))
                if entry.startswith("yolo-") and is_there:
                    yield name

    def _text(self, name: str) -> str | None:
        """Return the content of a file; None if it does not exist.

        Raises:
            YoloError: NOT_REGULAR and whatever else `files.read` finds in its place.
        """
        content = read(self._root, name, _MOST_BYTES)
        if isinstance(content, Content):
            return content.data.decode("utf-8", "replace")
        if content.reason is Reason.FILE_MISSING:
            return None
        raise content.as_error(name, Exit.BAD_CONFIG)


def _marked(text: str, host: str) -> str:
    """Return a text with our ownership comment, placed where the host's format allows a comment."""
    line = f"# yolo-fs {_digest(text)}: made by 'yolo-fs setup {host} --roles'; change it freely\n"
    head = "---\n" if text.startswith("---\n") else ""
    return f"{head}{line}{text.removeprefix(head)}"


def _is_ours(text: str | None) -> bool:
    match = _MARK.search(text or "")
    return match is not None and match[1] == _digest(_MARK.sub("", text or "", count=1))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
