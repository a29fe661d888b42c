"""Verifies committed history offline: every commit of a coordinator still is what the protocol
prescribes.

Each commit is checked on its own: one artifact, and what may accompany it; the content in strict
mode, the references in its own tree, the subject and the trailers that follow from path and
content. See docs/dev/faults.md#f55.

Also the valid commit subjects here and now: that of a staged artifact, and the one closest to an
invalid subject; and commits of people that break the rules although hooks are installed, made with
`--no-verify` or where no hook ran. The latter follow from history alone, so that they are found
even if nothing was watching at the time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from glob import glob
from typing import NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT, classify, touches_phase
from yolo_fs.artifacts.naming import (
    is_named_by_change,
    is_sound,
    names_task,
    nearest,
    spellings_of,
    subject_of,
    trailers_of,
)
from yolo_fs.artifacts.table import ARTIFACTS, comes_beside
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.checking.checker import Checked, Checker, previous_records
from yolo_fs.checking.snapshots import AtCommit, BlobReader
from yolo_fs.core.ids import SHORT
from yolo_fs.core.reasons import Finding, Reason, YoloError, errors, shortened
from yolo_fs.git.history import LoggedCommit, log
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.workflow import Trailer
from yolo_fs.workspace.own_files import HOOKS
from yolo_fs.workspace.planning_tree import phases_in
from yolo_fs.workspace.settings import Settings

HEAD = "HEAD"
_NOT_FETCHED = frozenset({Reason.OBJECT_MISSING})


class CommitFault(NamedTuple):
    """What is wrong with one commit."""

    commit: str
    finding: Finding
    """Names the file and the line."""

    @property
    def finding_with_commit(self) -> Finding:
        """The finding, with the commit before its path: `1a2b3c4:path`."""
        path = f"{self.commit[:SHORT]}:{self.finding.path}".rstrip(":")
        return replace(self.finding, path=path)


class VerifiedCommit(NamedTuple):
    """One verified commit of a coordinator."""

    commit: LoggedCommit
    faults: tuple[CommitFault, ...]
    number: int
    """From 1."""
    of: int
    """How many there are in all."""
    is_whole: bool = True
    """Whether all objects that it depends on are present; a shallow or partial clone lacks some."""


class Verifier:
    """Verifies commits of one repository."""

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
        cut_off, is_partial = self._repository.cut_off(), self._repository.is_partial
        for number, commit in enumerate(own, 1):
            is_cut = commit.oid in cut_off and bool(commit.parents)  # it seems to add all files
            is_cut = is_cut or not commit.is_known
            findings = () if is_cut else self._collect_findings(commit)
            known = [
                finding
                for finding in findings
                if not (is_partial and finding.reason in _NOT_FETCHED)
            ]
            is_whole = not is_cut and len(known) == len(findings)
            faults = tuple(CommitFault(commit.oid, finding) for finding in known)
            yield VerifiedCommit(commit, faults, number, len(own), is_whole)

    def standing(
        self, tip: str, standing: Iterable[tuple[ArtifactPath, str]]
    ) -> Iterator[CommitFault]:
        """Yield what is wrong with artifacts as `tip` has them, whoever committed them.

        `standing`: each with the commit that gave it its content.
        """
        snapshot = AtCommit(self._repository, tip, self._blobs)
        for place, commit in standing:
            data = snapshot.content(place.path)
            findings = (
                (data,)
                if isinstance(data, Finding)
                else errors(self._checker.check(place, data, snapshot).findings)
            )
            for finding in findings:
                if not (self._repository.is_partial and finding.reason in _NOT_FETCHED):
                    yield CommitFault(commit, finding)

    def _collect_findings(self, commit: LoggedCommit) -> tuple[Finding, ...]:
        try:
            return tuple(self._findings(commit))
        except YoloError as error:
            # Damaged or missing objects are a fault of this commit only; the others can still be
            # checked.
            return (
                replace(error.as_finding(), path=commit.changes[0][1] if commit.changes else ""),
            )

    def _findings(self, commit: LoggedCommit) -> Iterator[Finding]:
        if (changes := _order_changes(commit)) is None:
            yield _finding_for_several_paths(commit)
            return
        for number, (status, path) in enumerate(changes):
            place = classify(path)
            if place is None:
                yield Finding(Reason.NOT_AN_ARTIFACT, path, expected="a path of the protocol")
            elif status == "D":
                yield Finding(Reason.DELETED, path, message="the commit deletes it")
            elif status not in ("A", "M"):
                message = "the commit makes it something else than a file"
                yield Finding(Reason.NOT_REGULAR, path, message=message)
            else:
                yield from self._findings_at(commit, place, is_named=number == 0)

    def _findings_at(
        self, commit: LoggedCommit, place: ArtifactPath, *, is_named: bool
    ) -> Iterator[Finding]:
        """Yield what is wrong with a file; `is_named`: the commit's subject names it."""
        snapshot = AtCommit(self._repository, commit.oid, self._blobs)
        data = snapshot.content(place.path)
        if isinstance(data, Finding):
            yield data
            return
        checked = self._checker.check(place, data, snapshot)
        # A plan that existed uncommitted may have satisfied the daemon at that time.
        wrong = tuple(
            finding
            for finding in errors(checked.findings)
            if finding.reason is not Reason.WAITS_FOR
        )
        yield from wrong
        if not is_named:
            return
        # Invalid content prescribes no subject; the trailers follow from the path alone.
        if not wrong:
            yield from self._check_subject(commit, place, checked)
        yield from _check_trailers(commit, place)

    def _check_subject(
        self, commit: LoggedCommit, place: ArtifactPath, checked: Checked
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


def _order_changes(commit: LoggedCommit) -> tuple[tuple[str, str], ...] | None:
    """Return the changes of a commit, first the file that its subject names.

    None if it changes more than that file and one that may accompany it.
    """
    if len(commit.changes) == 1:
        return tuple(commit.changes)
    kind = dict(commit.trailers).get(Trailer.ARTIFACT)
    placed = [(classify(path), (status, path)) for status, path in commit.changes[:3]]
    named = [pair for pair in placed if pair[0] and pair[0].artifact.kind == kind]
    others = [pair for pair in placed if pair not in named]
    if (len(named), len(others)) != (1, 1):
        return None
    (main, first), (other, second) = named[0], others[0]
    is_sound = main and other and comes_beside(main.artifact, other.artifact)
    return (first, second) if is_sound else None


def _finding_for_several_paths(commit: LoggedCommit) -> Finding:
    paths = [path for _, path in commit.changes]
    message = "no path"
    if paths:
        shown_by = f"'git show --name-only {commit.oid[:SHORT]}'"
        message = f"{len(paths)} paths: {shortened(paths, 3, shown_by=shown_by)}"
    return Finding(
        Reason.SEVERAL_PATHS,
        paths[0] if paths else "",
        message=message,
        expected="one artifact, and at most the state that it moves",
    )


def _check_trailers(commit: LoggedCommit, place: ArtifactPath) -> Iterator[Finding]:
    prescribed = trailers_of(place)
    # The number of warnings depends on the neighbours and settings of that time, and the origin
    # identifies a copy, so neither can be recomputed.
    written = tuple(
        pair for pair in commit.trailers if pair[0] not in (Trailer.WARNINGS, Trailer.ORIGIN)
    )
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


def prescribed_for(path: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """Return subject and trailers of a staged artifact; None if it is not a valid one."""
    place = classify(path)
    if place is None:
        return None
    from yolo_fs.checking.validate import Validator

    validator = Validator(".")
    try:
        valid = [file for file in validator.staged([path]) if not errors(file.findings)]
    finally:
        validator.close()
    if not valid or not valid[0].records:
        return None
    with Repository(".") as repository:
        blob = repository.blob_at(repository.head().tip, path)
        before = previous_records(repository, place, blob)
    trailers = trailers_of(place, len(valid[0].findings))
    return subject_of(place, valid[0].records, before), trailers


def is_of_the_protocol(subject: str, paths: Iterable[str]) -> bool:
    """Return whether a commit belongs to the protocol: it names a task, or touches a phase."""
    return names_task(subject) or touches_phase(paths)


def subject_fault(subject: str, root: str = ".") -> Finding:
    """Return what is wrong with a subject, and a valid one for the work tree `root`."""
    right = nearest(subject, *_find_likely_subjects(root))
    hint = f"Closest valid subject: {right}"
    return Finding(
        Reason.SUBJECT_MISMATCH,
        "",
        0,
        "",
        f"the subject is {subject!r}",
        "{type}({scope}): {text}",
        hint,
    )


def _find_likely_subjects(root: str) -> tuple[list[str], str]:
    """Return the subjects that may be meant and the probable plan, from file names alone."""
    prescribed: list[str] = []
    names = sorted(glob(f"{root}/{PLANNING_ROOT}/phases/*/*.plan.jsonl"))
    places = [place for name in names if (place := classify(os.path.relpath(name, root)))]
    numbers = [phase.number for phase in phases_in(root)]
    for artifact in ARTIFACTS:
        for subject in artifact.subjects:
            gaps = [
                {"plan": str(place.plan), "phase": place.plan.phase}
                for place in places
                if place.plan
            ]
            gaps += [{"phase": number} for number in numbers]
            prescribed += [text for gap in gaps if (text := _fill_template(subject.template, gap))]
    scope = numbers[-1] if numbers else "repo"
    if places:
        scope = str(places[-1].plan)
    return list(dict.fromkeys(prescribed)), scope


def _fill_template(template: str, gaps: Mapping[str, str]) -> str:
    try:
        return template.format(**gaps)
    except KeyError:
        return ""


NOTE = "yolo-fs/hooks.json"
"""Below the common git directory: the record of `hooks install`."""

_MOST = 200
"""Maximum number of commits since the installation of hooks that `past_hooks` reads, newest first.
"""


def hooks_since(repository: Repository) -> str:
    """Return the commit at which hooks were installed; empty without hooks or commits."""
    note = HOOKS.read(repository)
    since = note["since"] if isinstance(note, dict) else ""
    return since if since and repository.commits_exist([since])[since] else ""


def past_hooks(repository: Repository, settings: Settings) -> Iterator[CommitFault]:
    """Yield what is wrong with people's commits since the installation of hooks."""
    is_guarded = isinstance(HOOKS.read(repository), dict)
    if not is_guarded or repository.head().tip is None:
        return
    since = hooks_since(repository)
    beyond = [f"^{since}"] if since else []
    yield from broken_rules(repository, settings, "HEAD", *beyond, limit=_MOST, ours=False)


def broken_rules(
    repository: Repository,
    settings: Settings,
    *revisions: str,
    limit: int | None = None,
    ours: bool = True,
    by_agent: bool = False,
) -> Iterator[CommitFault]:
    """Yield rule violations of commits, newest first.

    A coordinator's commit is checked as in `verify`, a person's for the rules that it breaks.
    `revisions`: commits, and `^commit` to exclude it with its ancestors. `ours`: include a
    coordinator's commits. `by_agent`: an agent made them. An agent's subject is a fault if the
    commit names a task or touches a phase; everyone's, if the team enforces subjects for people.
    """
    verifier = Verifier(repository, settings)
    blobs = BlobReader(repository, settings.policy.max_file_bytes)
    checker = Checker(settings)
    is_strict = settings.policy.hooks_hold_people
    for commit in log(repository, *revisions, limit=limit):
        if commit.is_ours:
            own = verifier.verify(f"{commit.oid}^!") if ours else ()
            yield from (fault for verified in own for fault in verified.faults)
        elif len(commit.parents) < 2:
            yield from (
                CommitFault(commit.oid, finding)
                for finding in _check_personal_commit(
                    repository, commit, checker, blobs, is_strict=is_strict, by_agent=by_agent
                )
            )


def _check_personal_commit(
    repository: Repository,
    commit: LoggedCommit,
    checker: Checker,
    blobs: BlobReader,
    *,
    is_strict: bool,
    by_agent: bool,
) -> Iterator[Finding]:
    by_agent = by_agent or any(key == "Executed-By" for key, _ in commit.trailers)
    paths = [path for _, path in commit.changes]
    is_judged = is_strict or (by_agent and is_of_the_protocol(commit.subject, paths))
    if is_judged and not is_sound(commit.subject):
        yield subject_fault(commit.subject, repository.root)
    snapshot = AtCommit(repository, commit.oid, blobs)
    for status, path in commit.changes:
        place = classify(path) if status in ("A", "M") else None
        if place is None:
            continue
        data = snapshot.content(path)
        yield from (
            [data]
            if isinstance(data, Finding)
            else errors(checker.check(place, data, snapshot).findings)
        )
