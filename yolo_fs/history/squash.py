"""Squashes a phase into one commit on a branch of its own, for a history that reviewers read.

The branch that the phase was made on stays as it is.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from yolo_fs.artifacts.naming import purpose_of
from yolo_fs.core.ids import GRAMMAR, PhaseId
from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.git.refs import RefUpdater
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.history.index import IndexedCommit

_MOST = 100_000
"""Commits of a branch that are searched at most."""
_MOST_LISTED = 1_000
"""Commits that the message names: a commit of more than 4 MiB would be read by nobody."""
_LONGEST_SUBJECT = 500


class Squash(NamedTuple):
    """A squash commit, planned or made."""

    branch: str
    """The new branch, without `refs/heads/`."""
    base: str
    """Its parent; empty where the phase began with the branch."""
    tip: str
    """The commit whose tree it takes."""
    message: str
    ours: int
    """Number of the phase's commits that yolo-fs made."""
    source: tuple[IndexedCommit, ...]
    """The other commits of the phase, oldest first."""
    others: tuple[IndexedCommit, ...]
    """Commits in between that do not belong to the phase; their work is included, too."""


def plan_squash(
    facts_reader: FactsReader, phase: PhaseId, folder: str, branch: str, subject: str
) -> Squash:
    """Return what squashing a phase would make. `folder`: of the phase, relative to the root.

    Raises:
        YoloError: UNKNOWN_NAME when the branch has nothing of the phase; BAD_FORMAT for a subject
            or a branch; OBJECT_MISSING where a shallow clone ends within the phase.
    """
    repository = facts_reader.repository
    if not repository.is_branch_name(branch):
        message, hint = f"{safe(branch)!r} is not a name of a branch", "Such as 'review/login'."
        raise YoloError(Reason.BAD_FORMAT, message, hint=hint)
    head, index = repository.head(), facts_reader.history_index
    tip = head.tip or ""
    walk = ("--first-parent", "--reverse", tip, "--", folder)
    oids = repository.git.text("rev-list", *walk).split() if tip else []
    if not oids:
        message = f"the branch has nothing of phase {phase}"
        hint = "'yolo-fs phase list' shows the phases."
        raise YoloError(Reason.UNKNOWN_NAME, message, hint=hint)
    base = next(iter(repository.parents(oids[0])), "")
    if base and not repository.commits_exist((base,))[base]:
        message = f"this clone ends within phase {phase}: the commit before it is not here"
        hint = "'git fetch --unshallow' brings it."
        raise YoloError(Reason.OBJECT_MISSING, message, hint=hint, exit_code=Exit.NOT_HERE)
    within = f"{base}..{tip}" if base else tip
    wanted = set(repository.git.text("rev-list", within).split())
    index.read_up_to(tip)
    commits = [commit for commit in reversed(index.last(_MOST)) if commit.oid in wanted]
    people = [commit for commit in commits if not commit.is_ours]
    source = tuple(commit for commit in people if _is_of(phase, commit, folder))
    others = tuple(commit for commit in people if commit not in source)
    text = subject or f"feat({phase.number}): {phase.slug.replace('-', ' ')}"
    if not GRAMMAR.fullmatch(text):
        message, hint = (
            f"{safe(text)!r} is not a subject",
            f"Such as 'feat({phase.number}): login'.",
        )
        raise YoloError(Reason.BAD_FORMAT, message, hint=hint)
    ours = len(commits) - len(people)
    return Squash(branch, base, tip, _message(text, source), ours, source, others)


def make_squash(repository: Repository, planned: Squash) -> str:
    """Create the commit and its branch; return the commit. No other ref is moved.

    Raises:
        YoloError: STATE_CONFLICT when there is a branch of that name; NO_SPACE, STORAGE_FAILED,
            GIT_FAILED.
    """
    ref = f"refs/heads/{planned.branch}"
    if repository.tip(ref):
        raise YoloError(
            Reason.STATE_CONFLICT,
            f"there is a branch {safe(planned.branch)}",
            hint="Name another one with --branch.",
        )
    now = datetime.fromtimestamp(time.time()).astimezone()
    moment = f"{int(now.timestamp())} {now:%z}"
    lines = [
        f"tree {repository.root_tree(planned.tip)}",
        *([f"parent {planned.base}"] if planned.base else []),
        f"author {repository.identity('AUTHOR')} {moment}",
        f"committer {repository.identity()} {moment}",
    ]
    body = "\n".join([*lines, "", planned.message]).encode("utf-8", "surrogateescape")
    commit = repository.object_format.hash_object("commit", body)
    with contextlib.closing(RefUpdater(repository)) as refs, repository.objects.hold_packs_back():
        repository.objects.write((commit,))
        refs.move(ref, commit.oid, None)
    return commit.oid


def _is_of(phase: PhaseId, commit: IndexedCommit, folder: str) -> bool:
    purpose = purpose_of(commit.subject)
    named = purpose.phase if purpose else ""
    return named == phase.number or any(path.startswith(f"{folder}/") for path in commit.paths)


def _message(subject: str, source: Sequence[IndexedCommit]) -> str:
    lines = [f"* {commit.subject[:_LONGEST_SUBJECT]}" for commit in source[:_MOST_LISTED]]
    if more := len(source) - len(lines):
        lines.append(f"* and {more} more")
    return "\n".join([subject, "", *lines, ""] if lines else [subject, ""])
