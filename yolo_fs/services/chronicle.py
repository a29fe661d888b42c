"""The history of a branch, read once and then only continued: which commit gave a path its content, which did a task.

Source: document 002 ("Resume Protocol": correlate commits with tasks); performance 7.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Iterable

from yolo_fs.edges.git.history import LoggedCommit, log
from yolo_fs.edges.git.repository import Repository
from yolo_fs.ids import TaskRef
from yolo_fs.protocol.workflow import PHASE_COMPLETE
from yolo_fs.rules.classify import PLANNING_ROOT
from yolo_fs.rules.phase import SourceCommit
from yolo_fs.subject import GRAMMAR, read_scope

_TASK = re.compile(r"(T[1-9][0-9]*)\b")


class Chronicle:
    """What the commits up to one tip say."""

    def __init__(self, repository: Repository):
        self._repository = repository
        self._forget()

    def _forget(self) -> None:
        self._tip = ""
        self._oids: list[str] = []
        self._commits: dict[str, SourceCommit] = {}
        self.by_path: dict[str, str] = {}
        """Path below the planning root → the last commit that changed it."""
        self.by_task: dict[str, str] = {}
        """`NN-MM/Tk` → the last commit whose subject names it."""
        self.signed_off: dict[int, str] = {}
        """Number of a phase → the commit that recorded its sign-off."""
        self.ours: list[LoggedCommit] = []
        """Coordination commits, oldest first."""

    def read_up_to(self, tip: str) -> None:
        """Take in what is new up to `tip`; start over when history was rewritten."""
        if tip == self._tip:
            return
        if self._tip and self._repository.is_ancestor(self._tip, tip):
            fresh = log(self._repository, f"{self._tip}..{tip}")
        else:
            self._forget()
            fresh = log(self._repository, tip)
        for commit in reversed(list(fresh)):
            self._take(commit)
        self._tip = tip

    def commit(self, name: str) -> SourceCommit | None:
        """Return the commit of this history that an abbreviated hash names, or None when it names none or several."""
        at = bisect_left(self._oids, name)
        found = self._oids[at : at + 2]
        if not found or not found[0].startswith(name) or (len(found) == 2 and found[1].startswith(name)):
            return None
        return self._commits[found[0]]

    def at_s(self, oid: str) -> int:
        """Return when a commit of this history was made, seconds since the epoch; 0 for one that is not in it."""
        return self._commits[oid].at_s if oid in self._commits else 0

    def _take(self, commit: LoggedCommit) -> None:
        paths = frozenset(path for _, path in commit.changes)
        insort(self._oids, commit.oid)
        self._commits[commit.oid] = SourceCommit(commit.oid, commit.subject, paths, commit.at_s)
        for path in paths:
            if path.startswith(PLANNING_ROOT + "/"):
                self.by_path[path] = commit.oid
        for task in tasks_named(commit.subject):
            self.by_task[str(task)] = commit.oid
        if commit.is_ours:
            self.ours.append(commit)
        gaps = PHASE_COMPLETE.match(commit.subject)
        if gaps and f"{PLANNING_ROOT}/state.json" in paths:
            self.signed_off[int(gaps["N"])] = commit.oid


def tasks_named(subject: str) -> Iterable[TaskRef]:
    """Yield the tasks that a source commit's subject names: the plan from its scope, the task from its first word.

    Source: protocol 5.2 ("real Dev commits often start the description with the task id").
    """
    found = GRAMMAR.fullmatch(subject)
    plan = read_scope(found["scope"]).plan if found else None
    task = _TASK.match(found["text"]) if found else None
    if plan and task and (ref := TaskRef.parse(f"{plan}/{task[1]}")):
        yield ref
