"""What git's own rules say of a path: ignored, or rewritten by a filter. Nothing named there is ever run.

Source: reliability F33, F62; performance 1f ("clean filters / LFS").
"""

from __future__ import annotations

import os

from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.git.runner import Conversation
from yolo_fs.reasons import Reason

_REWRITING = ("filter", "ident", "working-tree-encoding")
_NOT_SET = (b"unspecified", b"unset")


class PathRules:
    """Asks `check-ignore` and `check-attr`, which run as long as the files they read stay the same."""

    def __init__(self, repository: Repository, *, commit_ignored: bool = False):
        self._repository = repository
        self._commit_ignored = commit_ignored
        self._sources: dict[str, tuple[object, ...]] = {}
        self._known: dict[str, Reason | None] = {}
        self._ignore: Conversation | None = None
        self._attributes: Conversation | None = None

    def reason_to_hold(self, path: str, *, in_head: bool) -> Reason | None:
        """Return why this path is not ours to commit, or None. A path that HEAD has is not ignored."""
        folder = os.path.dirname(path)
        sources = self._fingerprint(folder)
        if self._sources.setdefault(folder, sources) != sources:
            self.close()
            self._sources[folder] = sources
        if path not in self._known:
            self._known[path] = self._filtered(path) or self._ignored(path)
        reason = self._known[path]
        if reason is Reason.GITIGNORED and (in_head or self._commit_ignored):
            return None
        return reason

    def close(self) -> None:
        """End the helper processes and forget what they said."""
        for helper in (self._ignore, self._attributes):
            if helper is not None:
                helper.close()
        self._ignore = self._attributes = None
        self._known.clear()
        self._sources.clear()

    def _ignored(self, path: str) -> Reason | None:
        if self._ignore is None:
            # check-ignore refuses literal pathspecs; our names come from an allow-list and hold no magic.
            self._ignore = self._repository.git.converse(
                "check-ignore",
                "--no-index",
                "--stdin",
                "-z",
                "--verbose",
                "--non-matching",
                more={"GIT_LITERAL_PATHSPECS": "0"},
            )
        self._ignore.ask(os.fsencode(path) + b"\0")
        _source, _line, pattern, _path = (self._ignore.until(b"\0") for _ in range(4))
        return Reason.GITIGNORED if pattern and not pattern.startswith(b"!") else None

    def _filtered(self, path: str) -> Reason | None:
        if self._attributes is None:
            self._attributes = self._repository.git.converse("check-attr", "--stdin", "-z", *_REWRITING)
        self._attributes.ask(os.fsencode(path) + b"\0")
        values = [[self._attributes.until(b"\0") for _ in range(3)][2] for _ in _REWRITING]
        return Reason.ATTR_FILTER if any(value not in _NOT_SET for value in values) else None

    def _fingerprint(self, folder: str) -> tuple[object, ...]:
        """Return what changes when a file that these rules are read from changes."""
        folders = [self._repository.root]
        for part in folder.split("/"):
            folders.append(f"{folders[-1]}/{part}")
        names = [f"{folder}/{name}" for folder in folders for name in (".gitignore", ".gitattributes")]
        info = f"{self._repository.common_dir}/info"
        return tuple(
            _changed(name)
            for name in (*names, f"{info}/exclude", f"{info}/attributes", f"{self._repository.common_dir}/config")
        )


def _changed(path: str) -> tuple[str, int, int] | None:
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return (path, facts.st_mtime_ns, facts.st_size)
