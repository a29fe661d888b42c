"""The agents of the company as project files, one each, for hosts that look for them there.

Our files carry a comment with a digest of the rest. Any other file, including one of ours that was
edited, belongs to the user: it is neither replaced nor removed.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping

from yolo_fs.core.reasons import Exit, Reason, YoloError
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.hooks import Host
from yolo_fs.system.files import Content, read
from yolo_fs.system.store import SHARED, make_folders, remove, remove_empty_folders, write_text

ROLE_FILES: Mapping[str, str] = {
    "codex": ".codex/agents/{}.toml",
    "cursor": ".cursor/agents/{}.md",
}
"""Host that looks for agents in files of the project → their names, relative to the work tree."""
_MARK = re.compile(r"(?m)^# yolo-fs ([0-9a-f]{12}): made by 'yolo-fs setup \w+ --roles'[^\n]*\n")
_MOST_BYTES = 1 << 20


class RoleFiles:
    """The files of one host in one work tree."""

    def __init__(self, repository: Repository, host: Host):
        self._root, self._host = repository.root, host.name
        self.name = os.path.dirname(ROLE_FILES[host.name])
        """Their folder, relative to the work tree."""
        self.path = os.path.join(repository.root, self.name)

    def is_complete(self) -> bool:
        """Return whether each agent has a file: a current one of ours, or the user's own."""
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
        if ours:
            remove_empty_folders(self.path, os.path.dirname(self.path))
        return bool(ours)

    def is_there(self) -> bool:
        """Return whether any of our files exists."""
        return bool(self._ours())

    def _ours(self) -> list[str]:
        return [name for name in self._names() if _is_ours(self._text(name))]

    def _find_stale_files(self) -> Iterator[tuple[str, str]]:
        for name, text in self._files().items():
            there = self._text(name)
            if there is None or (there != text and _is_ours(there)):
                yield name, text

    def _files(self) -> Mapping[str, str]:
        from yolo_fs.definitions.definition import definitions
        from yolo_fs.definitions.host_files import host_file

        return {
            ROLE_FILES[self._host].format(definition.agent.full_name): _marked(
                host_file(definition, self._host), self._host
            )
            for definition in definitions()
        }

    def _names(self) -> Iterator[str]:
        """Yield existing files with names like ours, including those of former agents."""
        pattern = ROLE_FILES[self._host].format("yolo-*")
        ending = os.path.splitext(pattern)[1]
        if not os.path.isdir(self.path) or os.path.islink(self.path):
            return
        for name in sorted(os.listdir(self.path)):
            if name.startswith("yolo-") and name.endswith(ending):
                yield f"{self.name}/{name}"

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
        message = f"{name}: {content.message}"
        raise YoloError(content.reason, message, hint=content.hint, exit_code=Exit.BAD_CONFIG)


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
