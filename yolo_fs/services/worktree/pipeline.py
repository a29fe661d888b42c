"""From a path to its verdict: classify, read, compare, examine, and ask git's rules. Changes
nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from yolo_fs.edges import failpoint
from yolo_fs.edges.files import Content, Writer, read
from yolo_fs.edges.git.paths import PathRules
from yolo_fs.edges.git.repository import Head, Repository
from yolo_fs.reasons import Finding, Reason, YoloError, errors
from yolo_fs.rules.artifacts.checks import needs_of
from yolo_fs.rules.artifacts.classify import classify
from yolo_fs.rules.artifacts.naming import subject_of, trailers_of
from yolo_fs.rules.artifacts.verdicts import (
    Accepted,
    Committed,
    Held,
    Ignored,
    Missing,
    Place,
    Rejected,
    Verdict,
    Waiting,
)
from yolo_fs.services.checking.checker import Checker, previous_records
from yolo_fs.services.checking.snapshots import WorkTree
from yolo_fs.services.workspace.settings import Settings
from yolo_fs.services.worktree.verdict_store import Observation, QuietTimer


class Pipeline:
    """Judges paths of one work tree."""

    def __init__(self, repository: Repository, settings: Settings):
        self._repository = repository
        self._settings = settings
        self._rules = PathRules(repository, commit_ignored=settings.policy.commit_ignored)
        self._quiet_timer = QuietTimer()
        self._checker = Checker(settings)
        self._work_tree = WorkTree(
            repository.root, settings.policy.max_file_bytes, repository.commits_exist
        )

    def look(self, path: str, head: Head, obstacle: Reason | None) -> Observation:
        """Return the verdict on a path.

        `obstacle`: why nothing may be committed now, if so; the file is examined all the same, so that
        its writer hears of faults at once.
        """
        place = classify(path)
        if place is None:
            return Observation(path, Ignored())
        in_head = self._repository.blob_at(head.tip, path)
        content = read(self._repository.root, path, self._settings.policy.max_file_bytes)
        if isinstance(content, Finding):
            return Observation(path, _unread(content, in_head))
        return Observation(path, self._judge(place, content, in_head, obstacle), content.stamp)

    def prepare(self, paths: Iterable[str]) -> None:
        """Ask git about all the paths of a round at once; what it refuses to answer is asked again one by one."""
        with contextlib.suppress(YoloError):
            self._rules.learn([path for path in paths if classify(path)])

    def close(self) -> None:
        """End the helper processes."""
        self._rules.close()

    def _judge(
        self, place: Place, content: Content, in_head: str | None, obstacle: Reason | None
    ) -> Verdict:
        blob = self._repository.objects.object_format.hash_object("blob", content.data).oid
        if blob == in_head:
            return Committed(blob)
        quiet_s = self._quiet_timer.quiet_s(place.path, content.stamp)
        if content.being_written or content.writer is Writer.SOME:
            return Waiting(Reason.BEING_WRITTEN)
        checked = self._checker.check(place, content.data, self._work_tree)
        if checked.torn and quiet_s < self._settings.policy.grace_s:
            return Waiting(Reason.UNTERMINATED)
        wrong = errors(checked.faults)
        provably_complete = content.writer is Writer.NONE and not wrong
        if not provably_complete and quiet_s * 1000 < self._settings.policy.settle_ms:
            return Waiting(Reason.SETTLING)
        if wrong and all(finding.reason is Reason.WAITS_FOR for finding in wrong):
            return Held(Reason.WAITS_FOR, checked.faults)
        if wrong:
            return Rejected(checked.faults)
        if checked.secrets:
            return Held(Reason.SECRET, checked.secrets)
        if reason := self._reason_to_hold(place.path, in_head, obstacle):
            return Held(reason)
        before = previous_records(self._repository, place, in_head)
        subject = subject_of(place, checked.records, before)
        failpoint.reach("intake.judged")
        trailers = trailers_of(place, len(checked.faults))
        needs = needs_of(place, checked.records)
        return Accepted(place, content.data, blob, subject, trailers, checked.faults, needs)

    def _reason_to_hold(
        self, path: str, in_head: str | None, obstacle: Reason | None
    ) -> Reason | None:
        if not self._settings.config.auto_commit:
            return Reason.AUTO_COMMIT_OFF
        return obstacle or self._rules.reason_to_hold(path, in_head=in_head is not None)


def _unread(why: Finding, in_head: str | None) -> Verdict:
    """Return what a file that gave no content comes to."""
    if why.reason is Reason.FILE_MISSING:
        return Missing() if in_head else Ignored()
    return Waiting(why.reason) if why.reason is Reason.BEING_WRITTEN else Rejected((why,))
