"""From a path to its verdict: classify, read, compare, examine, and ask git's rules. Changes
nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass

from yolo_fs.edges import failpoint
from yolo_fs.edges.files import Content, Stamp, Writer, names_in, read
from yolo_fs.edges.git.paths import PathRules
from yolo_fs.edges.git.repository import Head, Repository
from yolo_fs.edges.lines import Limits, Reading, read_lines
from yolo_fs.edges.readers import READERS
from yolo_fs.reasons import Finding, Reason, YoloError, errors
from yolo_fs.rules.artifacts.checks import commits_mentioned, plan_facts
from yolo_fs.rules.artifacts.classify import classify
from yolo_fs.rules.artifacts.examine import examine
from yolo_fs.rules.artifacts.naming import is_named_by_change, subject_of, trailers_of
from yolo_fs.rules.artifacts.secrets import find_secrets
from yolo_fs.rules.artifacts.table import Check, Home
from yolo_fs.rules.artifacts.verdicts import (
    Accepted,
    Committed,
    Held,
    Ignored,
    Missing,
    Place,
    PlanFacts,
    Rejected,
    Surroundings,
    Verdict,
    Waiting,
)
from yolo_fs.schemas.base import Record
from yolo_fs.services.checking.envelopes import ProductHandoffs
from yolo_fs.services.patience import Patience
from yolo_fs.services.settings import Settings


def records_before(repository: Repository, place: Place, blob: str | None) -> tuple[Record, ...]:
    """Return what the version before says of an artifact whose subject tells what changed; nothing of any other.

    `blob`: the version before; None where there is none.
    """
    found = repository.objects.read(blob) if blob and is_named_by_change(place) else None
    return READERS[place.artifact.format](found.body, place.path, Limits()).records if found else ()


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at one path."""

    path: str
    verdict: Verdict
    stamp: Stamp | None = None
    """What the file was when it was read; None when it was not."""


class Intake:
    """Judges paths of one work tree."""

    def __init__(self, repository: Repository, settings: Settings):
        self._repository = repository
        self._settings = settings
        self._rules = PathRules(repository, commit_ignored=settings.policy.commit_ignored)
        self._patience = Patience()
        self._headers: dict[str, tuple[Stamp, PlanFacts | None]] = {}

    def look(self, path: str, head: Head, obstacle: Reason | None) -> Seen:
        """Return the verdict on a path.

        `obstacle`: why nothing may be committed now, if so; the file is examined all the same, so that
        its writer hears of faults at once.
        """
        place = classify(path)
        if place is None:
            return Seen(path, Ignored())
        in_head = self._repository.blob_at(head.tip, path)
        content = read(self._repository.root, path, self._settings.policy.max_file_bytes)
        if isinstance(content, Finding):
            return Seen(path, _unread(content, in_head))
        return Seen(path, self._judge(place, content, in_head, obstacle), content.stamp)

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
        quiet_s = self._patience.quiet_s(place.path, content.stamp)
        if content.being_written or content.writer is Writer.SOME:
            return Waiting(Reason.BEING_WRITTEN)
        reading = READERS[place.artifact.format](content.data, place.path, self._settings.limits)
        if reading.torn and quiet_s < self._settings.policy.grace_s:
            return Waiting(Reason.UNTERMINATED)
        findings = self._findings(place, content.data, reading)
        provably_complete = content.writer is Writer.NONE and not errors(findings)
        if not provably_complete and quiet_s * 1000 < self._settings.policy.settle_ms:
            return Waiting(Reason.SETTLING)
        if errors(findings):
            return Rejected(findings)
        if held := self._held(place, content.data, in_head, obstacle):
            return held
        before = records_before(self._repository, place, in_head)
        subject = subject_of(place, reading.records, before)
        failpoint.reach("intake.judged")
        return Accepted(place, content.data, blob, subject, trailers_of(place), findings)

    def _held(
        self, place: Place, data: bytes, in_head: str | None, obstacle: Reason | None
    ) -> Held | None:
        secrets = find_secrets(data, place.path, frozenset(self._settings.policy.secrets_allowed))
        if secrets:
            return Held(Reason.SECRET, secrets)
        if not self._settings.config.auto_commit:
            return Held(Reason.AUTO_COMMIT_OFF)
        if obstacle:
            return Held(obstacle)
        if reason := self._rules.reason_to_hold(place.path, in_head=in_head is not None):
            return Held(reason)
        return None

    def _findings(self, place: Place, data: bytes, reading: Reading) -> tuple[Finding, ...]:
        if (
            place.artifact.home is Home.DOCUMENTS
        ):  # a handoff of the product is judged beside those of its session
            return ProductHandoffs(self._repository.root, self._settings).examine(place.path, data)
        return (*reading.findings, *self._examine(place, reading.records))

    def _examine(self, place: Place, records: tuple[Record, ...]) -> tuple[Finding, ...]:
        if not records:
            return ()
        plans = self._plans_beside(place) if Check.WAVES in place.artifact.checks else {}
        commits = self._repository.commits_exist(commits_mentioned(place, records))
        return examine(place, records, Surroundings(plans, commits), self._settings.mode)

    def _plans_beside(self, place: Place) -> dict[str, PlanFacts]:
        """Return the facts of the other plans of the same phase, read from their headers."""
        names = names_in(os.path.join(self._repository.root, place.folder))
        others = [
            other
            for name in names
            if (other := classify(f"{place.folder}/{name}")) and other.name != place.name
        ]
        found = {
            str(other.plan): self._plan_facts(other.path)
            for other in others
            if other.artifact is place.artifact
        }
        return {name: facts for name, facts in found.items() if facts}

    def _plan_facts(self, path: str) -> PlanFacts | None:
        content = read(self._repository.root, path, self._settings.policy.max_file_bytes)
        if isinstance(content, Finding):
            return None
        known = self._headers.get(path)
        if known is None or known[0] != content.stamp:
            first = content.data[: content.data.find(b"\n") + 1]
            records = read_lines(first, path, self._settings.limits).records
            self._headers[path] = (content.stamp, plan_facts(records[0].value) if records else None)
        return self._headers[path][1]


def _unread(why: Finding, in_head: str | None) -> Verdict:
    """Return what a file that gave no content comes to."""
    if why.reason is Reason.FILE_MISSING:
        return Missing() if in_head else Ignored()
    return Waiting(why.reason) if why.reason is Reason.BEING_WRITTEN else Rejected((why,))
