"""Puts files into the work tree at the moment when the branch gets them.

The commits of our own verbs are made this way.

Branch and index are locked meanwhile. Other processes see both without the files, or both with
them, so that no daemon commits a file on its own, and none has to run.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.naming import subject_of, trailers_of
from yolo_fs.artifacts.table import HIDDEN, IGNORED_STATES
from yolo_fs.checking.checker import Checker, previous_records
from yolo_fs.checking.snapshots import WorkTree
from yolo_fs.core.reasons import Exit, Reason, YoloError, errors, safe
from yolo_fs.git.commit import CommitRequest, Committer
from yolo_fs.git.index import IndexSync
from yolo_fs.git.obstacles import PathRules
from yolo_fs.git.refs import RefUpdater
from yolo_fs.git.repository import Head, Repository
from yolo_fs.scanning.pipeline import obstacles_of
from yolo_fs.system.file_locks import locked
from yolo_fs.system.files import Content, read
from yolo_fs.system.store import place_file, remove, sync_file
from yolo_fs.workspace.own_files import states_lock
from yolo_fs.workspace.settings import Settings

TRIES = 20
TRY_EVERY_S = 0.1
"""Retry interval: a daemon may be moving the branch, or holding the index."""
_PATIENCE_S = 10.0
_PASSING = (Reason.BRANCH_MOVED, Reason.INDEX_LOCKED, Reason.REF_LOCKED, Reason.BEING_WRITTEN)
_Result = TypeVar("_Result")

Files = Sequence[tuple[str, bytes]]
"""Path and content of each."""


@contextlib.contextmanager
def placed(root: str, files: Files, before: Mapping[str, bytes | None]) -> Iterator[None]:
    """Give files their content; restore them if the branch does not move.

    `before`: path → content that it must have now; None where there must be no file.

    Raises:
        YoloError: BEING_WRITTEN, or why one cannot be replaced; NO_SPACE, STORAGE_FAILED.
    """
    with contextlib.ExitStack() as undo:
        for path, data in files:
            if reason := place_file(root, path, data, before[path]):
                message = f"{safe(path)}: {reason.sentence}"
                raise YoloError(reason, message, exit_code=Exit.TRY_AGAIN)
            undo.callback(_take_back, root, path, data, before[path])
        yield
        undo.pop_all()


def _take_back(root: str, path: str, data: bytes, former: bytes | None) -> None:
    with contextlib.suppress(OSError, YoloError):
        if former is not None:
            place_file(root, path, former, data)
        else:
            remove(os.path.join(root, path), root=root)


def tried(act: Callable[[], _Result]) -> _Result:
    """Return what an act returns. Retry while another process is about to end.

    Raises:
        YoloError: as the act.
    """
    for _ in range(TRIES - 1):
        try:
            return act()
        except YoloError as error:
            if error.reason not in _PASSING:
                raise
        time.sleep(TRY_EVERY_S)
    return act()


class FileCommitter:
    """Makes the commits of our own verbs in one repository."""

    def __init__(self, repository: Repository, settings: Settings):
        self._repository = repository
        self._settings = settings

    def content(self, path: str) -> bytes | None:
        """Return the content of a valid artifact of the work tree; None where there is none.

        Raises:
            YoloError: what is wrong with it.
        """
        outcome = read(self._repository.root, path, self._settings.policy.max_file_bytes)
        if isinstance(outcome, Content):
            self._request(path, outcome.data, None)
            return outcome.data
        if outcome.reason is Reason.FILE_MISSING:
            return None
        raise YoloError(outcome.reason, f"{path}: {outcome.message}", exit_code=Exit.UNREADABLE)

    def requests(self, files: Mapping[str, bytes], head: Head) -> tuple[CommitRequest, ...]:
        """Return a commit request for each file that the branch lacks in this version.

        Raises:
            YoloError: what is wrong with one, or which rule of git's keeps it from being committed.
        """
        policy, repository = self._settings.policy, self._repository
        hidden = (*HIDDEN, *IGNORED_STATES)
        rules = PathRules(repository, commit_ignored=policy.commit_ignored, hidden=hidden)
        requests = []
        with contextlib.closing(rules):
            for path, data in files.items():
                there = repository.blob_at(head.tip, path)
                if reason := rules.reason_to_hold(path, in_head=there is not None):
                    raise YoloError(reason, f"{path}: {reason.sentence}", exit_code=Exit.FINDINGS)
                if there != repository.object_format.hash_object("blob", data).oid:
                    requests.append(self._request(path, data, there))
        return tuple(requests)

    def refuse_obstacle(self, head: Head) -> None:
        """Refuse to commit as long as nobody may.

        Raises:
            YoloError: what stands in the way of any commit.
        """
        if obstacle := obstacles_of(self._repository, self._settings).find(head):
            hint = "'yolo-fs status' shows the obstacle."
            raise YoloError(obstacle, obstacle.sentence, hint=hint, exit_code=Exit.TRY_AGAIN)

    def commit(self, request: CommitRequest, head: Head, before: Mapping[str, bytes | None]) -> str:
        """Commit the files of a request, put them into the work tree, and return the commit.

        `before`: as `placed` takes it.

        Raises:
            YoloError: as `refuse_obstacle`, and what stands in the way of this one.
        """
        self.refuse_obstacle(head)
        repository, policy = self._repository, self._settings.policy
        repository.make_own_dir()
        durable = policy.durability == "fsync"
        repository.objects.is_durable = durable
        branches, index = RefUpdater(repository, durable=durable), IndexSync(repository)
        committer = Committer(repository, branches, index, lambda: datetime.now(UTC))
        files = ((request.path, request.data), *request.beside)
        within = placed(repository.root, files, before)
        try:
            with locked(states_lock(repository), _PATIENCE_S):
                made = committer.commit([request], head, within=within)
            with contextlib.suppress(YoloError):  # where it could not move with the branch
                index.follow()
        finally:
            index.close()
            branches.close()
        for path, _ in files:
            sync_file(repository.root, path)
        return str(made[0].commit)

    def _request(self, path: str, data: bytes, there: str | None) -> CommitRequest:
        place = classify(path)
        assert place is not None, path
        limit, exist = self._settings.policy.max_file_bytes, self._repository.commits_may_exist
        around = WorkTree(self._repository.root, limit, exist)
        checked = Checker(self._settings).check(place, data, around)
        if wrong := (*errors(checked.faults), *checked.secrets):
            hint = f"'yolo-fs validate {path}' shows all its faults."
            raise YoloError(wrong[0].reason, str(wrong[0]), hint=hint, exit_code=Exit.UNREADABLE)
        before = previous_records(self._repository, place, there)
        trailers = trailers_of(place, len(checked.faults))
        return CommitRequest(path, data, subject_of(place, checked.records, before), trailers)
