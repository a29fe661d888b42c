"""Which commit subjects fit here and now: that of a staged artifact, and the right one nearest to a
wrong one; and which commits break the rules although hooks stand guard, made with `--no-verify` or
where no hook ran.

The latter is told from history alone, so that it does not matter who was not looking.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from glob import glob

from yolo_fs.edges.files import names_in
from yolo_fs.edges.git.history import LoggedCommit, log
from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import Finding, Reason, errors
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.rules.artifacts.naming import is_sound, nearest, subject_of, trailers_of
from yolo_fs.rules.artifacts.table import ARTIFACTS
from yolo_fs.services.checking.checker import Checker, previous_records
from yolo_fs.services.checking.snapshots import AtCommit, BlobReader
from yolo_fs.services.checking.validate import Validator
from yolo_fs.services.checking.verify import CommitFault, Verifier
from yolo_fs.services.workspace import HOOKS, Settings


def prescribed_for(path: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """Return subject and trailers of an artifact as it is staged; None when it is none, or not
    valid.
    """
    place = classify(path)
    if place is None:
        return None
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


def subject_fault(subject: str, root: str = ".") -> Finding:
    """Return what is wrong with a subject, and what would be right in the work tree `root`."""
    right = nearest(subject, *_what_is_there(root))
    hint = f"Nearest right subject: {right}"
    return Finding(
        Reason.SUBJECT_MISMATCH,
        "",
        0,
        "",
        f"the subject is {subject!r}",
        "{type}({scope}): {text}",
        hint,
    )


def _what_is_there(root: str) -> tuple[list[str], str]:
    """Return the subjects that could be meant here, and the plan that is probably worked on; from
    names alone.
    """
    prescribed: list[str] = []
    names = sorted(glob(f"{root}/{PLANNING_ROOT}/phases/*/*.plan.jsonl"))
    places = [place for name in names if (place := classify(os.path.relpath(name, root)))]
    numbers = sorted(folder[:2] for folder in _phases(root))
    for artifact in ARTIFACTS:
        for subject in artifact.subjects:
            gaps = [
                {"plan": str(place.plan), "phase": place.plan.phase}
                for place in places
                if place.plan
            ]
            gaps += [{"phase": number} for number in numbers]
            prescribed += [text for gap in gaps if (text := _rendered(subject.template, gap))]
    scope = numbers[-1] if numbers else "repo"
    if places:
        scope = str(places[-1].plan)
    return list(dict.fromkeys(prescribed)), scope


def _phases(root: str) -> list[str]:
    return [name for name in names_in(f"{root}/{PLANNING_ROOT}/phases") if name[:2].isdigit()]


def _rendered(template: str, gaps: Mapping[str, str]) -> str:
    try:
        return template.format(**gaps)
    except KeyError:
        return ""


NOTE = "yolo-fs/hooks.json"
"""Below the common git directory: what `hooks install` remembers."""

_MOST = 200
"""Commits since the hooks were installed that `past_hooks` looks at, youngest first."""


def hooks_since(repository: Repository) -> str:
    """Return the commit at which the hooks were installed; nothing when they are not, or there was
    none yet.
    """
    note = HOOKS.read(repository)
    since = note["since"] if isinstance(note, dict) else ""
    return since if since and repository.commits_exist([since])[since] else ""


def past_hooks(repository: Repository, settings: Settings) -> Iterator[CommitFault]:
    """Yield what is wrong with people's commits on this branch since the hooks stand guard;
    `verify` reads ours.
    """
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
    """Yield what is wrong with commits, newest first: a coordinator's as `verify` does, a person's
    by what they break.

    `revisions`: commits, and those before them that are left out as `^commit`. `ours`: a
    coordinator's as well. `by_agent`: an agent made them. A person's subject is a fault only where
    the team wants people held.
    """
    verifier = Verifier(repository, settings)
    blobs = BlobReader(repository, settings.policy.max_file_bytes)
    checker = Checker(settings)
    is_held = by_agent or settings.policy.hooks_hold_people
    try:
        for commit in log(repository, *revisions, limit=limit):
            if commit.is_ours:
                own = verifier.verify(f"{commit.oid}^!") if ours else ()
                yield from (fault for one in own for fault in one.faults)
            elif len(commit.parents) < 2:
                yield from (
                    CommitFault(commit.oid, one)
                    for one in _of_person(repository, commit, checker, blobs, is_held=is_held)
                )
    finally:
        blobs.close()
        verifier.close()


def _of_person(
    repository: Repository,
    commit: LoggedCommit,
    checker: Checker,
    blobs: BlobReader,
    *,
    is_held: bool,
) -> Iterator[Finding]:
    is_held = is_held or any(key == "Executed-By" for key, _ in commit.trailers)
    if is_held and not is_sound(commit.subject):
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
