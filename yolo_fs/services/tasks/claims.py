"""Keeps the claims of tasks: one file, changed under its lock, so that two Devs at once get one
order.

What a commit proves to be done, or its Dev gives back, is no claim any more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.store import Damaged, private_directory, update
from yolo_fs.ids import TaskRef
from yolo_fs.json_form import to_json
from yolo_fs.reasons import Exit, Reason, YoloError, safe
from yolo_fs.rules.claims import Claim, Standing, standings
from yolo_fs.rules.evidence.facts import PhaseFacts, plans_of, texts
from yolo_fs.rules.timestamps import iso
from yolo_fs.services.workspace.own_files import CLAIMS

_LOCK = "claims.lock"


class Claims:
    """The claims of one repository's tasks."""

    def __init__(self, repository: Repository, done: Collection[str] = ()):
        """`done`: `NN-MM/Tk` of the tasks that a commit names."""
        private_directory(repository.own_dir)
        self._repository = repository
        self._path = CLAIMS.path(repository)
        self._lock = os.path.join(repository.own_dir, _LOCK)
        self._done = frozenset(done)

    def standings(self) -> tuple[Standing, ...]:
        """Return what became of each open claim, in the order in which they came.

        Raises:
            YoloError: the file cannot be read; that is not the same as no claims.
        """
        return standings(self._open(CLAIMS.read(self._repository)))

    def claim(self, agent: str, task: TaskRef, files: Iterable[str], now_s: float) -> Standing:
        """Claim a task, or ask again how an earlier claim of it stands.

        A task that is done cannot be claimed.

        Raises:
            YoloError: STATE_CONFLICT, LOCK_TIMEOUT, and whatever `standings` raises.
        """
        if str(task) in self._done:
            raise YoloError(Reason.STATE_CONFLICT, f"task {task} is done: a commit names it")
        wish = Claim(agent, task, tuple(files), iso(now_s))
        self._change(
            lambda open_: open_ if any(_is_same(one, wish) for one in open_) else [*open_, wish]
        )
        return next(one for one in self.standings() if _is_same(one.claim, wish))

    def release(self, agent: str, task: TaskRef | None = None) -> tuple[Standing, ...]:
        """Give back one task, or all of an agent that is gone; return how the others stand."""
        self._change(
            lambda open_: [
                one for one in open_ if one.agent != agent or task not in (None, one.task)
            ]
        )
        return self.standings()

    def _change(self, change: Callable[[list[Claim]], list[Claim]]) -> None:
        def changed(before: dict[str, Any] | Damaged | None) -> dict[str, Any]:
            open_ = self._open(CLAIMS.checked(before))
            return {"claims": [to_json(claim) for claim in change(open_)]}

        update(self._path, self._lock, changed)

    def _open(self, content: Mapping[str, Any] | Damaged | None) -> list[Claim]:
        if isinstance(content, Damaged):
            raise CLAIMS.refusal(self._repository, content)
        listed = content["claims"] if isinstance(content, Mapping) else ()
        found = (_from_json(one) for one in listed)
        return [claim for claim in found if claim and str(claim.task) not in self._done]


def files_of(facts: Iterable[PhaseFacts], task: TaskRef) -> tuple[str, ...]:
    """Return the files that a task's plan names for it.

    Raises:
        YoloError: UNKNOWN_NAME when no committed plan has that task.
    """
    for one in facts:
        for plan in plans_of(one):
            for line in plan.tasks:
                if plan.id == task.plan and line.get("id") == f"T{task.number}":
                    return texts(line.get("f"))
    message = f"no committed plan has task {safe(str(task))}"
    raise YoloError(Reason.UNKNOWN_NAME, message, exit_code=Exit.USAGE)


def _is_same(one: Claim, other: Claim) -> bool:
    return (one.agent, one.task) == (other.agent, other.task)


def _from_json(value: Any) -> Claim | None:
    if not isinstance(value, dict):
        return None
    task = TaskRef.parse(str(value.get("task")))
    return (
        Claim(
            str(value.get("agent")), task, texts(value.get("files")), str(value.get("claimed_at"))
        )
        if task
        else None
    )
