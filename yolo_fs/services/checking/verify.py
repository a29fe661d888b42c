"""Verifies committed history offline: every commit of a coordinator still is what the protocol
prescribes.

Each commit is checked on its own: one path, the content in the strict reader, the references
in its own tree, the subject and the trailers that path and content give. See docs/faults.md#f55.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from yolo_fs.edges.git.history import LoggedCommit, log
from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import Finding, Reason, YoloError, errors
from yolo_fs.rules.artifacts.classify import classify
from yolo_fs.rules.artifacts.naming import (
    ORIGIN,
    WARNINGS,
    is_named_by_change,
    spellings_of,
    trailers_of,
)
from yolo_fs.rules.artifacts.verdicts import Place
from yolo_fs.services.checking.checker import Checked, Checker, previous_records
from yolo_fs.services.checking.snapshots import AtCommit, BlobReader
from yolo_fs.services.workspace import Settings

HEAD = "HEAD"


class CommitFault(NamedTuple):
    """What is wrong with one commit."""

    commit: str
    finding: Finding
    """Names the file and the line."""


class VerifiedCommit(NamedTuple):
    """One commit of a coordinator that was looked at."""

    commit: LoggedCommit
    faults: tuple[CommitFault, ...]
    number: int
    """From 1."""
    of: int
    """How many there are in all."""


class Verifier:
    """Judges commits of one repository."""

    def __init__(self, repository: Repository, settings: Settings):
        self._repository = repository
        self._blobs = BlobReader(repository, settings.policy.max_file_bytes)
        self._checker = Checker(settings)

    def verify(self, *revisions: str) -> Iterator[VerifiedCommit]:
        """Judge the coordinator's commits among `revisions`, newest first.

        Raises:
            YoloError: GIT_FAILED when git does not know the revisions.

        """
        if revisions == (HEAD,) and self._repository.head().tip is None:
            return
        own = [commit for commit in log(self._repository, *revisions) if commit.is_ours]
        for number, commit in enumerate(own, 1):
            faults = tuple(CommitFault(commit.oid, finding) for finding in self._found_in(commit))
            yield VerifiedCommit(commit, faults, number, len(own))

    def close(self) -> None:
        """End the helper processes."""
        self._blobs.close()

    def _found_in(self, commit: LoggedCommit) -> tuple[Finding, ...]:
        try:
            return tuple(self._findings(commit))
        except YoloError as error:
            # Damaged or lacking objects are a fault of this commit; the others can still be
            # checked.
            return (
                replace(error.as_finding(), path=commit.changes[0][1] if commit.changes else ""),
            )

    def _findings(self, commit: LoggedCommit) -> Iterator[Finding]:
        if len(commit.changes) != 1:
            yield _several(commit)
            return
        [(status, path)] = commit.changes
        place = classify(path)
        if place is None:
            yield Finding(Reason.NOT_AN_ARTIFACT, path, expected="a path of the protocol")
        elif status not in ("A", "M"):
            message = (
                "the commit deletes it"
                if status == "D"
                else "the commit makes it something else than a file"
            )
            yield Finding(
                Reason.DELETED if status == "D" else Reason.NOT_REGULAR, path, message=message
            )
        else:
            yield from self._findings_at(commit, place)

    def _findings_at(self, commit: LoggedCommit, place: Place) -> Iterator[Finding]:
        snapshot = AtCommit(self._repository, commit.oid, self._blobs)
        data = snapshot.content(place.path)
        if isinstance(data, Finding):
            yield data
            return
        checked = self._checker.check(place, data, snapshot)
        # A plan that was there, and is not committed yet, may have been enough for the daemon.
        wrong = tuple(
            finding
            for finding in errors(checked.findings)
            if finding.reason is not Reason.WAITS_FOR
        )
        yield from wrong
        # What is not valid prescribes no subject; the trailers come from the path alone.
        if not wrong:
            yield from self._subject_fault(commit, place, checked)
        yield from _trailer_faults(commit, place)

    def _subject_fault(
        self, commit: LoggedCommit, place: Place, checked: Checked
    ) -> Iterator[Finding]:
        blob = None
        if is_named_by_change(place) and commit.parents:
            blob = self._repository.blob_at(commit.parents[0], place.path)
        allowed = tuple(
            spellings_of(place, checked.records, previous_records(self._repository, place, blob))
        )
        if commit.subject not in allowed:
            message = f"the subject is {commit.subject!r}"
            yield Finding(Reason.SUBJECT_MISMATCH, place.path, 0, "", message, allowed[0])


def _several(commit: LoggedCommit) -> Finding:
    paths = [path for _, path in commit.changes]
    message = "no path"
    if paths:
        more = " …" if len(paths) > 3 else ""
        message = f"{len(paths)} paths: {', '.join(paths[:3])}{more}"
    return Finding(
        Reason.SEVERAL_PATHS,
        paths[0] if paths else "",
        message=message,
        expected="exactly one artifact",
    )


def _trailer_faults(commit: LoggedCommit, place: Place) -> Iterator[Finding]:
    prescribed = trailers_of(place)
    # How much was warned of depends on the neighbours and the settings of that moment, and a copy
    # says whose it is.
    written = tuple(pair for pair in commit.trailers if pair[0] not in (WARNINGS, ORIGIN))
    if written != prescribed:
        yield Finding(
            Reason.TRAILER_MISMATCH,
            place.path,
            0,
            "",
            f"the trailers are {_joined(commit.trailers)}",
            _joined(prescribed),
        )


def _joined(trailers: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{key}: {value}" for key, value in trailers) or "absent"
