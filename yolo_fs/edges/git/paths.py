"""What git's own rules say of a path: ignored, rewritten by a filter, or another repository's.

Nothing is ever run.

See docs/faults.md#f30, #f33 and #f62.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from yolo_fs.edges.files import Stamp, stamp_at
from yolo_fs.edges.git.conversation import Conversation
from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import Reason, YoloError

_REWRITING = ("filter", "ident", "working-tree-encoding")
_AT_ONCE = 200
"""Paths in one question: it has to fit into a pipe, or we and git would each wait for the other to
read.
"""
_NOT_SET = (b"unspecified", b"unset")


class PathRules:
    """Asks `check-ignore` and `check-attr`, which run as long as the files that they read stay the
    same.
    """

    def __init__(self, repository: Repository, *, commit_ignored: bool = False):
        self._repository = repository
        self._commit_ignored = commit_ignored
        self._sources: dict[str, Stamp | None] = {}
        """File that rules are read from → what it was when its rules were read."""
        self._known: dict[str, Reason | None] = {}
        self._learnt: set[str] = set()
        """Paths whose answer was learnt for the question that comes next, so that it need not be
        checked again.
        """
        self._ignore: Conversation | None = None
        self._attributes: Conversation | None = None
        self._everywhere: tuple[str, ...] | None = None

    def reason_to_hold(self, path: str, *, in_head: bool) -> Reason | None:
        """Return why this path is not ours to commit, or None. A path that HEAD has is not ignored.

        Raises:
            YoloError: git refuses to judge the path, or cannot be run.
        """
        if path in self._learnt:
            self._learnt.discard(path)
        else:
            self._forget_if_changed([path])
        if path not in self._known:
            self._known[path] = self._judge(path)
        reason = self._known[path]
        if reason is Reason.GITIGNORED and (in_head or self._commit_ignored):
            return None
        return reason

    def learn(self, paths: Iterable[str]) -> None:
        """Ask about many paths at once, so that each costs no round trip of its own."""
        asked = tuple(paths)
        self._forget_if_changed(asked)
        inner = {
            folder: self._is_inside_another_repository(folder)
            for folder in set(map(os.path.dirname, asked))
        }
        fresh = [
            path for path in asked if path not in self._known and not inner[os.path.dirname(path)]
        ]
        for at in range(0, len(fresh), _AT_ONCE):
            some = fresh[at : at + _AT_ONCE]
            filtered, ignored = self._filtered(some), self._ignored(some)
            self._known.update({path: filtered[path] or ignored[path] for path in some})
        self._learnt = set(asked)

    def close(self) -> None:
        """End the helper processes and forget what they said."""
        for helper in (self._ignore, self._attributes):
            if helper is not None:
                helper.close()
        self._ignore = self._attributes = self._everywhere = None
        self._known.clear()
        self._learnt.clear()
        self._sources.clear()

    def _judge(self, path: str) -> Reason | None:
        if self._is_inside_another_repository(os.path.dirname(path)):
            return Reason.FOREIGN_REPOSITORY
        try:
            return self._filtered([path])[path] or self._ignored([path])[path]
        except YoloError:
            self.close()  # a helper may have been killed; a fresh one is asked once
            self._forget_if_changed([path])
        try:
            return self._filtered([path])[path] or self._ignored([path])[path]
        except YoloError:
            self.close()
            raise

    def _is_inside_another_repository(self, folder: str) -> bool:
        return any(os.path.lexists(f"{each}/.git") for each in self._folders(folder)[1:])

    def _ignored(self, paths: Sequence[str]) -> dict[str, Reason | None]:
        if self._ignore is None:
            # check-ignore refuses literal pathspecs; our names come from an allow-list and hold no
            # magic.
            self._ignore = self._repository.git.converse(
                "check-ignore",
                "--no-index",
                "--stdin",
                "-z",
                "--verbose",
                "--non-matching",
                more={"GIT_LITERAL_PATHSPECS": "0"},
            )
        self._ignore.ask(_question(paths))
        found: dict[str, Reason | None] = {}
        for path in paths:
            _source, _line, pattern, _path = (self._ignore.until(b"\0") for _ in range(4))
            found[path] = Reason.GITIGNORED if pattern and not pattern.startswith(b"!") else None
        return found

    def _filtered(self, paths: Sequence[str]) -> dict[str, Reason | None]:
        if self._attributes is None:
            self._attributes = self._repository.git.converse(
                "check-attr", "--stdin", "-z", *_REWRITING
            )
        self._attributes.ask(_question(paths))
        found: dict[str, Reason | None] = {}
        for path in paths:
            values = [[self._attributes.until(b"\0") for _ in range(3)][2] for _ in _REWRITING]
            found[path] = (
                Reason.ATTR_FILTER if any(value not in _NOT_SET for value in values) else None
            )
        return found

    # --- when to ask anew ---

    def _forget_if_changed(self, paths: Iterable[str]) -> None:
        now = {name: stamp_at(name) for name in self._rule_files(set(map(os.path.dirname, paths)))}
        if any(self._sources.get(name, stamp) != stamp for name, stamp in now.items()):
            self.close()
        self._sources.update(now)

    def _rule_files(self, folders: Iterable[str]) -> list[str]:
        if self._everywhere is None:
            self._everywhere = self._files_for_every_path()
        above = {each for folder in folders for each in self._folders(folder)}
        own = [f"{folder}/{name}" for folder in above for name in (".gitignore", ".gitattributes")]
        return [*own, *self._everywhere]

    def _folders(self, folder: str) -> list[str]:
        """Return the folders from the root of the work tree down to this one."""
        folders = [self._repository.root]
        for part in filter(None, folder.split("/")):
            folders.append(f"{folders[-1]}/{part}")
        return folders

    def _files_for_every_path(self) -> tuple[str, ...]:
        home = os.path.expanduser("~")
        user = os.path.join(os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config", "git")
        named = [
            self._repository.config_path(key)
            for key in ("core.excludesFile", "core.attributesFile")
        ]
        common = self._repository.common_dir
        inside = [f"{common}/info/exclude", f"{common}/info/attributes", f"{common}/config"]
        outside = [f"{home}/.gitconfig", f"{user}/config", f"{user}/ignore", f"{user}/attributes"]
        return (*inside, *outside, *filter(None, named))


def _question(paths: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)
