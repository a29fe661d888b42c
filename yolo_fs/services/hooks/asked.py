"""Who asks what: a question of an agent's host, with all that its answer may need."""

from __future__ import annotations

import os

from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import YoloError
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT
from yolo_fs.rules.hooks.input import Said
from yolo_fs.rules.permits.actors import Actor
from yolo_fs.services.access import Access
from yolo_fs.services.settings import load


class Asked:
    """One question of a host, asked in one repository."""

    def __init__(self, repository: Repository, said: Said):
        self.repository = repository
        self.said = said
        self.settings = load(repository.root)
        self.access = Access(repository, self.settings, start=said.cwd)
        self.actor = self._find_actor()
        """None for somebody whom we do not know."""

    def _find_actor(self) -> Actor | None:
        """Return who asks, as the host says, else as the planning tree does; None for somebody whom we do not know."""
        name = self.said.agent.rpartition(":")[2] or _active_agent(self.repository.root)
        try:
            return self.access.actor(name) if name else None
        except YoloError:
            return None

    def relative(self, path: str) -> str | None:
        """Return where a path leads, relative to the repository; a planning tree elsewhere is one all the same."""
        root = os.path.realpath(self.repository.root)
        try:
            full = os.path.realpath(os.path.join(self.said.cwd, os.path.expanduser(path)))
        except (
            ValueError,
            OSError,
        ):  # a NUL in the name, or links in a circle: the tool itself will fail
            return None
        if full == root or full.startswith(root + os.sep):
            return os.path.relpath(full, root).replace(os.sep, "/")
        _, mark, below = full.rpartition(f"/{PLANNING_ROOT}/")
        return f"{PLANNING_ROOT}/{below}" if mark else f"../{full}"


def _active_agent(root: str) -> str:
    path = os.path.join(root, PLANNING_ROOT, ".active-agent")
    if not os.path.isfile(path):  # to open a pipe would wait for its writer
        return ""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(200).strip()
    except OSError:
        return ""
