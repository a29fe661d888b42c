"""Commits that break the rules although hooks stand guard: made with `--no-verify`, or where no
hook ran.

CheckedFile from history alone, so that it does not matter who was not looking.
"""

from __future__ import annotations

from collections.abc import Iterator

from yolo_fs.edges.git.history import LoggedCommit, log
from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import Finding, errors
from yolo_fs.rules.artifacts.classify import classify
from yolo_fs.rules.hooks.spelling import is_sound
from yolo_fs.services.checking.checker import Checker
from yolo_fs.services.checking.snapshots import AtCommit, BlobReader
from yolo_fs.services.checking.verify import CommitFault, Verifier
from yolo_fs.services.hooks.subjects import subject_fault
from yolo_fs.services.workspace.own_files import HOOKS
from yolo_fs.services.workspace.settings import Settings

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
