"""From a path to its verdict: classify, read, compare, validate, and apply git's rules.

Changes nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.artifacts.examine import needs_of
from yolo_fs.artifacts.misnamed import (
    misnamed,
    place_meant_by,
)
from yolo_fs.artifacts.naming import subject_of, trailers_of
from yolo_fs.artifacts.table import HIDDEN, IGNORED_STATES, STATE_KINDS
from yolo_fs.artifacts.verdicts import (
    Accepted,
    ArtifactPath,
    Committed,
    Held,
    Ignored,
    Missing,
    Rejected,
    Verdict,
    Waiting,
)
from yolo_fs.checking.checker import Checker, previous_records
from yolo_fs.checking.lost_records import lost_from
from yolo_fs.checking.snapshots import WorkTree
from yolo_fs.core.reasons import Finding, Reason, YoloError, errors
from yolo_fs.git.obstacles import Obstacles, PathRules
from yolo_fs.git.repository import Head, Repository
from yolo_fs.scanning.cached_verdicts import Observation, QuietTimer
from yolo_fs.states.project import says_ours
from yolo_fs.system import failpoint
from yolo_fs.system.files import (
    Content,
    Writer,
    read,
)
from yolo_fs.workspace.own_files import lock_path
from yolo_fs.workspace.settings import Settings


def obstacles_of(repository: Repository, settings: Settings) -> Obstacles:
    """Return how to find what stands in the way of any commit of ours."""
    policy = settings.policy
    return Obstacles(
        repository,
        protected=policy.protected,
        allow_detached=policy.allow_detached,
        committer_lock=lock_path(repository),
        folders=settings.roots,
    )


class Refusal(NamedTuple):
    """A settled content that cannot be committed, or cannot be committed now."""

    path: str
    data: bytes
    verdict: Rejected | Held


RefusalSink = Callable[[Refusal], object]


class Pipeline:
    """Judges paths of one work tree."""

    def __init__(
        self,
        repository: Repository,
        settings: Settings,
        refused: RefusalSink = lambda _refusal: None,
    ):
        """Judge by these settings. `refused` receives every content that is rejected or held."""
        self._repository = repository
        self._settings = settings
        self._refused = refused
        self._keeps_beside = settings.policy.state_files == "kept"
        hidden = HIDDEN if self._keeps_beside else (*HIDDEN, *IGNORED_STATES)
        self._rules = PathRules(
            repository, commit_ignored=settings.policy.commit_ignored, hidden=hidden
        )
        self._quiet_timer = QuietTimer()
        self._asked: tuple[str, ...] = ()
        """Paths of this round, until git's rules on them are needed."""
        self._checker = Checker(settings)
        self._work_tree = WorkTree(
            repository.root, settings.policy.max_file_bytes, repository.commits_may_exist
        )

    def look(self, path: str, head: Head, obstacle: Reason | None) -> Observation:
        """Return the verdict on a path.

        `obstacle`: why nothing may be committed now, if so. The file is examined all the same, so
        that its writer learns of faults at once.
        """
        place = classify(path)
        if place is None:
            return Observation(Ignored())
        in_head = self._repository.blob_at(head.tip, path)
        content = read(self._repository.root, path, self._settings.policy.max_file_bytes)
        if isinstance(content, Finding):
            if content.reason is Reason.FILE_MISSING:
                self._quiet_timer.forget(path)
            return Observation(_verdict_on_unread(content, in_head))
        verdict = self._judge(place, content, head, in_head, obstacle)
        if isinstance(verdict, Rejected | Held):
            self._refused(Refusal(path, content.data, verdict))
        return Observation(verdict, content.stamp)

    def look_misnamed(self, wrong: Finding) -> Observation:
        """Return the verdict on a file with nearly an artifact's name, as `wrong` says.

        It has what would be wrong under that name as well: one turn mends both. A document is not
        what its artifact would have.
        """
        path = wrong.path
        meant = place_meant_by(wrong)
        content = read(self._repository.root, path, self._settings.policy.max_file_bytes)
        if isinstance(content, Finding):
            is_gone = content.reason is Reason.FILE_MISSING
            return Observation(Ignored() if is_gone else Rejected((wrong, content)))
        faults = self._checker.find_secrets(path, content.data)
        if meant and not content.being_written:
            checked = self._checker.check(meant, content.data, self._work_tree)
            errors_and_secrets = (*errors(checked.faults), *checked.secrets)
            faults = tuple(replace(each, path=path) for each in errors_and_secrets)
        return Observation(Rejected((wrong, *faults)), content.stamp)

    def prepare(self, paths: Iterable[str]) -> None:
        """Name the paths of a round. Git is asked about all of them at once, when one is needed."""
        self._asked = tuple(paths)

    def close(self) -> None:
        """End the helper processes."""
        self._rules.close()

    def _judge(
        self,
        place: ArtifactPath,
        content: Content,
        head: Head,
        in_head: str | None,
        obstacle: Reason | None,
    ) -> Verdict:
        blob = self._repository.objects.object_format.hash_object("blob", content.data).oid
        if blob == in_head:
            return Committed(blob)
        if in_head is None and self._is_kept_beside(place, content.data):
            return Ignored()
        quiet_s = self._quiet_timer.quiet_s(place.path, content.stamp)
        if content.being_written:
            return Waiting(Reason.BEING_WRITTEN)
        checked = self._checker.check(place, content.data, self._work_tree)
        if checked.torn and quiet_s < self._settings.policy.grace_s:
            return Waiting(Reason.UNTERMINATED)
        wrong = errors(checked.faults)
        provably_complete = content.writer is Writer.NONE and not wrong
        if not provably_complete and quiet_s * 1000 < self._settings.policy.settle_ms:
            return Waiting(Reason.SETTLING)
        if wrong and all(finding.reason is Reason.WAITS_FOR for finding in wrong):
            return Held(Reason.WAITS_FOR, checked.findings)
        if wrong:
            return Rejected(checked.findings)
        if checked.secrets:
            return Held(Reason.SECRET, checked.secrets)
        if reason := self._find_reason_to_hold(place.path, head, in_head, obstacle):
            is_local = reason is Reason.GITIGNORED and not place.path.startswith(PLANNING_ROOT)
            return Ignored() if is_local else Held(reason)
        if lost := lost_from(self._repository, place, content.data, in_head, head.tip):
            is_lost = lost[0].reason is Reason.RECORDS_LOST
            return Held(Reason.RECORDS_LOST, lost) if is_lost else Rejected(lost)
        before = previous_records(self._repository, place, in_head)
        subject = subject_of(place, checked.records, before)
        failpoint.reach("intake.judged")
        trailers = trailers_of(place, len(checked.faults))
        needs = needs_of(place, checked.records)
        return Accepted(place, content.data, blob, subject, trailers, checked.faults, needs)

    def _is_kept_beside(self, place: ArtifactPath, data: bytes) -> bool:
        """Return whether a file is ours, and follows from the branch without being on it. What
        others wrote is their work, unless git ignores it.
        """
        is_state = place.artifact.kind in STATE_KINDS
        if not is_state or not self._keeps_beside:
            return False
        return says_ours(data) or self._rules.reason_to_hold(place.path, in_head=False) is (
            Reason.GITIGNORED
        )

    def _find_reason_to_hold(
        self, path: str, head: Head, in_head: str | None, obstacle: Reason | None
    ) -> Reason | None:
        if not self._settings.config.auto_commit:
            return Reason.AUTO_COMMIT_OFF
        if obstacle:
            return obstacle
        if in_head is None and self._repository.submodule_above(head.tip, path):
            return Reason.FOREIGN_REPOSITORY
        paths, self._asked = self._asked, ()
        if paths:
            with contextlib.suppress(YoloError):  # what it refuses is asked again one by one
                self._rules.learn([path for path in paths if classify(path)])
        return self._rules.reason_to_hold(path, in_head=in_head is not None)


def _verdict_on_unread(why: Finding, in_head: str | None) -> Verdict:
    """Return the verdict on a file whose content could not be read."""
    if why.reason is Reason.FILE_MISSING:
        return Missing() if in_head else Ignored()
    return Waiting(why.reason) if why.reason is Reason.BEING_WRITTEN else Rejected((why,))


def is_name_of_file(path: str) -> bool:
    return classify(path) is not None or misnamed(path) is not None
