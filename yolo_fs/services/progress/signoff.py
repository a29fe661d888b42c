"""Signs a phase off: `state.json` and `ROADMAP.md` in one commit, if the evidence allows it.

Both files are put in place while branch and index are locked, so a daemon sees neither of them
uncommitted, and the commit is one whether a daemon runs or not.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from yolo_fs.edges.files import Content, read
from yolo_fs.edges.git.commit import CommitRequest, Committer
from yolo_fs.edges.git.index import IndexSync
from yolo_fs.edges.git.obstacles import Obstacles, PathRules
from yolo_fs.edges.git.refs import RefUpdater
from yolo_fs.edges.git.repository import Head, Repository
from yolo_fs.edges.store import json_text, place_file, remove, sync_file
from yolo_fs.foreign_json import parse
from yolo_fs.protocol.workflow import SIGN_OFF_COMMAND
from yolo_fs.reasons import Exit, Finding, Reason, YoloError, errors, safe
from yolo_fs.rules.artifacts.classify import classify
from yolo_fs.rules.artifacts.naming import subject_of, trailers_of
from yolo_fs.rules.authz.actors import Actor
from yolo_fs.rules.phase.phase import Phase, Phases
from yolo_fs.rules.states.signoff import (
    SIGN_OFF,
    STATE,
    is_signed_off,
    lacks_of_sign_off,
    marked,
    may_sign_off,
    roadmap_of,
    signed_state,
)
from yolo_fs.services.checking.checker import Checker
from yolo_fs.services.checking.snapshots import WorkTree
from yolo_fs.services.history.team import Team
from yolo_fs.services.workspace import Settings, lock_path

_TRIES = 20
_TRY_EVERY_S = 0.1
"""A daemon may move the branch, or hold the index, in the same moment."""
_PASSING = (Reason.BRANCH_MOVED, Reason.INDEX_LOCKED, Reason.REF_LOCKED, Reason.BEING_WRITTEN)


class SignedOff(NamedTuple):
    """What became of the wish to sign a phase off."""

    phase: str
    state: str
    """`signed_off`, `already`, `lacking`, or `would_sign_off` where nothing is to be changed."""
    commit: str = ""
    subject: str = ""
    paths: tuple[str, ...] = ()
    """What the commit changes."""
    missing: tuple[str, ...] = ()
    """What the evidence lacks."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is missing, and the command that helps."""
        hint = f"'yolo-fs workflow next --phase {self.phase[:2]}' says who writes what."
        return tuple(
            Finding(Reason.STATE_CONFLICT, message=safe(lack, 400), hint=hint)
            for lack in self.missing
        )


class SignOff:
    """Signs off the phases of one repository."""

    def __init__(self, repository: Repository, settings: Settings, team: Team):
        self._repository = repository
        self._settings = settings
        self._team = team
        self._obstacles = Obstacles(
            repository,
            protected=settings.policy.protected,
            allow_detached=settings.policy.allow_detached,
            committer_lock=lock_path(repository),
            folders=settings.roots,
        )

    def sign(self, named: Phase, by: Actor | None, *, dry_run: bool = False) -> SignedOff:
        """Sign a phase off, or return what it lacks. `by`: None for a person at a terminal.

        Raises:
            YoloError: OUT_OF_LANE for an agent whose act it is not; what stands in the way of any
                commit; what is wrong with a file that is there.
        """
        if by is not None and not may_sign_off(by.role):
            message = f"{by.name} does not sign a phase off: that is the Lead's step"
            command = SIGN_OFF_COMMAND.format(number=int(named.id.number))
            hint = f"Tell the Lead: {command} --as lead"
            raise YoloError(Reason.OUT_OF_LANE, message, hint=hint, exit_code=Exit.FINDINGS)
        for _ in range(_TRIES):
            try:
                return self._sign(named, dry_run=dry_run)
            except YoloError as error:
                if error.reason not in _PASSING:
                    raise
                last = error
            time.sleep(_TRY_EVERY_S)
        raise last

    def _sign(self, named: Phase, *, dry_run: bool) -> SignedOff:
        head = self._repository.head()
        phases = self._team.phases(head.tip)
        phase = next((one for one in phases if one.id == named.id), named)
        name = str(phase.id)
        if is_signed_off(phase):
            commit = phase.facts.signed_off or next(
                one.by for one in phase.progress.steps if one.step.key == SIGN_OFF
            )
            return SignedOff(name, "already", commit)
        if missing := lacks_of_sign_off(phase):
            return SignedOff(name, "lacking", missing=missing)
        before = {path: self._content(path) for path in (STATE, roadmap_of(phase))}
        after = self._after(phases, phase, before)
        request = self._request(after, head)
        paths = (request.path, *(path for path, _ in request.beside))
        if dry_run:
            return SignedOff(name, "would_sign_off", subject=request.subject, paths=paths)
        if obstacle := self._obstacles.find(head):
            hint = "'yolo-fs status' says what stands in the way."
            raise YoloError(obstacle, obstacle.sentence, hint=hint, exit_code=Exit.TRY_AGAIN)
        commit = self._commit(request, head, before)
        return SignedOff(name, "signed_off", commit, request.subject, paths)

    def _after(
        self, phases: Phases, phase: Phase, before: Mapping[str, bytes | None]
    ) -> dict[str, bytes]:
        """Return what both files say once the phase is signed off."""
        state, roadmap = before[STATE], before[roadmap_of(phase)]
        said = _object(state) if state else None
        text = roadmap.decode("utf-8") if roadmap else "# Roadmap\n\n"
        today = datetime.now(UTC).date().isoformat()
        return {
            STATE: json_text(signed_state(phases, phase, said)),
            roadmap_of(phase): marked(text, phase, today).encode(),
        }

    def _content(self, path: str) -> bytes | None:
        found = read(self._repository.root, path, self._settings.policy.max_file_bytes)
        if isinstance(found, Content):
            self._checked(path, found.data)
            return found.data
        if found.reason is Reason.FILE_MISSING:
            return None
        raise YoloError(found.reason, f"{path}: {found.message}", exit_code=Exit.UNREADABLE)

    def _checked(self, path: str, data: bytes) -> CommitRequest:
        """Return the commit of one of the files, alone."""
        place = classify(path)
        assert place is not None
        limit, exist = self._settings.policy.max_file_bytes, self._repository.commits_exist
        around = WorkTree(self._repository.root, limit, exist)
        checked = Checker(self._settings).check(place, data, around)
        if wrong := (*errors(checked.faults), *checked.secrets):
            hint = f"'yolo-fs validate {path}' shows all its faults."
            raise YoloError(wrong[0].reason, str(wrong[0]), hint=hint, exit_code=Exit.UNREADABLE)
        trailers = trailers_of(place, len(checked.faults))
        return CommitRequest(path, data, subject_of(place, checked.records, ()), trailers)

    def _request(self, after: Mapping[str, bytes], head: Head) -> CommitRequest:
        rules = PathRules(self._repository, commit_ignored=self._settings.policy.commit_ignored)
        changed: list[CommitRequest] = []
        try:
            for path, data in after.items():
                there = self._repository.blob_at(head.tip, path)
                if reason := rules.reason_to_hold(path, in_head=there is not None):
                    raise YoloError(reason, f"{path}: {reason.sentence}", exit_code=Exit.FINDINGS)
                if there != self._repository.object_format.hash_object("blob", data).oid:
                    changed.append(self._checked(path, data))
        finally:
            rules.close()
        first, *others = changed
        return replace(first, beside=tuple((one.path, one.data) for one in others))

    def _commit(
        self, request: CommitRequest, head: Head, before: Mapping[str, bytes | None]
    ) -> str:
        repository = self._repository
        repository.make_own_dir()
        durable = self._settings.policy.durability == "fsync"
        repository.objects.is_durable = durable
        branches, index = RefUpdater(repository, durable=durable), IndexSync(repository)
        committer = Committer(repository, branches, index, lambda: datetime.now(UTC))
        files = ((request.path, request.data), *request.beside)
        try:
            made = committer.commit([request], head, within=self._placed(files, before))
        finally:
            index.close()
            branches.close()
        for path, _ in files:
            sync_file(repository.root, path)
        return str(made[0].commit)

    @contextlib.contextmanager
    def _placed(
        self, files: Sequence[tuple[str, bytes]], before: Mapping[str, bytes | None]
    ) -> Iterator[None]:
        """Put the files in place; where the branch does not move, they are as they were."""
        with contextlib.ExitStack() as placed:
            for path, data in files:
                self._place(path, data, before[path])
                placed.callback(self._take_back, path, data, before[path])
            yield
            placed.pop_all()

    def _place(self, path: str, data: bytes, former: bytes | None) -> None:
        if reason := place_file(self._repository.root, path, data, former):
            raise YoloError(reason, f"{path}: {reason.sentence}", exit_code=Exit.TRY_AGAIN)

    def _take_back(self, path: str, data: bytes, former: bytes | None) -> None:
        with contextlib.suppress(OSError, YoloError):
            if former is not None:
                place_file(self._repository.root, path, former, data)
            else:
                remove(os.path.join(self._repository.root, path), root=self._repository.root)


def _object(data: bytes) -> Mapping[str, object]:
    said = parse(data, len(data))
    return said if isinstance(said, dict) else {}
