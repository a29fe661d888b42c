"""Who asks what: a question of an agent's host, with all that its answer may need."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from glob import iglob
from itertools import islice

from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.heartbeats import append
from yolo_fs.reasons import YoloError
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT
from yolo_fs.rules.authz.actors import Actor
from yolo_fs.rules.evidence import texts
from yolo_fs.rules.hooks.hosts import HookInput
from yolo_fs.rules.hooks.shell import UNKNOWN
from yolo_fs.rules.hooks.touches import Touch
from yolo_fs.services.agents.access import Access
from yolo_fs.services.agents.recording import AgentJournal
from yolo_fs.services.workspace import load

_MOST_MATCHES = 1_000
"""Files that one pattern is replaced by; the rest is like them."""


class HookRequest:
    """One question of a host, asked in one repository."""

    def __init__(self, repository: Repository, said: HookInput):
        self.repository = repository
        self.said = said
        self.settings = load(repository.root)
        self.access = Access(repository, self.settings, start=said.cwd)
        self.actor = self._find_actor()
        """None for somebody whom we do not know."""

    def _find_actor(self) -> Actor | None:
        """Return who asks, as the host says, else as the planning tree does; None for somebody whom
        we do not know.
        """
        name = self.said.agent.rpartition(":")[2] or _active_agent(self.repository.root)
        try:
            return self.access.actor(name) if name else None
        except YoloError:
            return None

    def paths(self, touch: Touch) -> Iterator[str]:
        """Yield the files that are meant, relative to the repository, patterns replaced by what
        matches them.
        """
        spelled = [touch.path]
        if (
            above := f"{UNKNOWN}/{PLANNING_ROOT}/"
        ) in touch.path:  # most likely that of this repository
            spelled = [self.full(f"{PLANNING_ROOT}/{touch.path.rpartition(above)[2]}")]
        if touch.is_pattern and touch.is_certain:
            below = (
                PLANNING_ROOT in touch.path
            )  # elsewhere `**` might walk through all that is installed
            matching = iglob(
                touch.path, root_dir=self.said.cwd, recursive=below, include_hidden=below
            )
            spelled = list(islice(matching, _MOST_MATCHES)) or spelled
        for path in spelled:
            relative = self.relative(path)
            if relative is not None and touch.name_in_folder and os.path.isdir(self.full(relative)):
                relative = self.relative(f"{path}/{touch.name_in_folder}")
            if relative is not None and not (
                touch.must_exist and not os.path.isfile(self.full(relative))
            ):
                yield relative

    def full(self, path: str) -> str:
        """Return the absolute path of one that is relative to the repository."""
        return os.path.join(self.repository.root, path)

    def relative(self, path: str) -> str | None:
        """Return where a path leads, relative to the repository; a planning tree elsewhere is one
        all the same.
        """
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


_WROTE = "wrote"


def note_written(asked: HookRequest, paths: Sequence[str]) -> None:
    """Record that this agent wrote some artifacts, so that nobody else is held up for them."""
    said = asked.said
    line = {"event": _WROTE, "agent": said.agent, "id": said.instance or said.agent, "session": "",
            "said": {"paths": list(paths)}}  # fmt: skip
    if line["id"]:
        append(asked.repository.own_dir, line)


def paths_written(asked: HookRequest, own_dir: str = "") -> frozenset[str]:
    """Return the artifacts that this agent wrote, as far as its host has told, in its work tree or
    in the one that keeps our files in `own_dir`.
    """
    whose = asked.said.instance or asked.said.agent
    journal = AgentJournal(own_dir or asked.repository.own_dir, asked.settings.limits)
    signs = journal.read(datetime.now(UTC))
    own = (one for one in signs.seen if one.event == _WROTE and one.id == whose)
    return frozenset(path for one in own for path in texts(one.said.get("paths")))


def _active_agent(root: str) -> str:
    path = os.path.join(root, PLANNING_ROOT, ".active-agent")
    if not os.path.isfile(path):  # to open a pipe would wait for its writer
        return ""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(200).strip()
    except OSError:
        return ""
