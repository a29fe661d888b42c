"""Reads the log and the reflog. See docs/dev/faults.md#f04, #f05 and #f28."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import suppress
from itertools import islice, pairwise
from typing import NamedTuple

from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.git.commit_object import read_commit_object, seconds_of
from yolo_fs.git.failures import GitError
from yolo_fs.git.object_format import GitObject
from yolo_fs.git.objects import missing_error
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.workflow import Trailer
from yolo_fs.system.files import content_of

LONG_S = 300.0
"""Time limit of a walk over the whole history, seconds."""

_LETTERS = re.compile("[AMDT]+")
_REFLOG_DEPTH = 100
_OURS = b"yolo-fs"
"""Message of our own moves in the reflog."""
_SWITCH = re.compile(rb"checkout: moving from (\S+) to (\S+)")
_ABANDONED_MOST = 1_000
_PATHS_MOST = 500
"""Paths that are passed to git individually; with more, all changes are listed and filtered."""
_AT_ONCE = 1_000
"""Commits of a long history that are read in one batch."""
_NAMES_BYTES = 32 << 20
"""Bytes that are read at most of the paths that such commits changed."""
_LINEAR_MOST = 300
"""Commits that are followed one by one before git is asked."""
_WHOLE_MOST = 80
_CHANGES_MOST = 500
"""Up to so many commits of a history, or changes of a line, a git process would cost more."""


class LoggedCommit(NamedTuple):
    """One commit of the log."""

    oid: str
    parents: tuple[str, ...]
    at_s: int
    """Committer time, seconds since the epoch."""
    subject: str
    trailers: tuple[tuple[str, str], ...]
    changes: tuple[tuple[str, str], ...] = ()
    """(status letter, path) of each path that differs from the first parent."""
    own_changes: tuple[tuple[str, str], ...] = ()
    """Those of a merge that differ from each parent; told by `log_parents_first` alone."""
    is_known: bool = True
    """Whether this clone has what tells the changes."""
    reverts: tuple[str, ...] = ()
    """As in `CommitObject`."""

    @property
    def is_ours(self) -> bool:
        """Whether a coordinator made it."""
        return any(key == Trailer.ARTIFACT for key, _ in self.trailers)


def log(
    repository: Repository,
    *selection: str,
    limit: int | None = None,
    path: str = "",
    with_changes: bool = True,
) -> Iterator[LoggedCommit]:
    """Yield commits with their changed paths, newest first. `selection`: revisions and ranges.

    `path`: only commits that changed it, read as it is spelled; of a clone without trees, those of
    which it is known. `with_changes`: say which paths each commit changed, for which git compares
    trees.
    """
    count = [f"--max-count={limit}"] if limit is not None else []
    paths = [path] if path else []
    selected = ("--end-of-options", *selection, "--")
    try:
        yield from _read_log(
            repository, (*count, *selected, *paths), paths if with_changes else None
        )
    except YoloError as error:
        if not path or error.reason is not Reason.OBJECT_MISSING or not repository.is_partial:
            raise
        known = _read_log(repository, selected, paths)
        yield from islice((commit for commit in known if commit.changes), limit)


def log_parents_first(repository: Repository, *selection: str) -> Iterator[LoggedCommit]:
    """Yield what `log` does, each commit after its parents, whatever the commit times say; and of
    merges also what they made themselves.

    A long history is never held in memory as a whole.
    """
    which = ("--topo-order", "--reverse", "--end-of-options", *selection, "--")
    return _read_log(repository, which, (), of_merges=True)


def _read_log(
    repository: Repository,
    which: Sequence[str],
    paths: Sequence[str] | None,
    *,
    of_merges: bool = False,
) -> Iterator[LoggedCommit]:
    """Yield the commits that git lists, without unreadable ones.

    `paths`: which of their changes are reported, empty for all; None for no changes. `of_merges`:
    also what merges made themselves.
    """
    listed = _list_commits(repository, *which)
    for at in range(0, len(listed), _AT_ONCE):
        oids = listed[at : at + _AT_ONCE]
        objects = [each for each in repository.objects.read_many(oids) if each]
        commits = [_parse_commit(each) for each in objects if each.kind == "commit"]
        changes, lacking = ({}, set()) if paths is None else _changes(repository, oids, paths)
        merges = [each.oid for each in commits if of_merges and len(each.parents) > 1]
        own = _changes(repository, merges, (), _FROM_EACH_PARENT) if merges else ({}, set())
        for commit in commits:
            yield commit._replace(
                changes=changes.get(commit.oid, ()),
                own_changes=own[0].get(commit.oid, ()),
                is_known=commit.oid not in {*lacking, *own[1]},
            )


def refuse_torn(repository: Repository, tip: str) -> None:
    """Refuse a history of which a commit cannot be read, however old it is.

    Raises:
        YoloError: OBJECT_MISSING.
    """
    _list_commits(repository, "--count", "--end-of-options", tip, "--")


def _list_commits(repository: Repository, *which: str) -> list[str]:
    try:
        # git checks no commit-graph against the commits: it could give them other parents.
        answer = repository.git.run(
            "rev-list", *which, timeout_s=LONG_S, settings={"core.commitGraph": "false"}
        )
    except GitError as error:
        raise _error_for_selection(error) from error
    return answer.out.decode().split()


def _error_for_selection(error: GitError) -> YoloError:
    if unread := re.search("Could not read ([0-9a-f]{40,})", error.said):
        return missing_error(f"commit {unread[1]}")
    unknown = re.search("bad revision '([^']*)'", error.said)
    if unknown is None:
        return error
    hint = "Give a commit, a branch, a tag, or a range such as 'main..HEAD'."
    message = f"no commit is called {safe(unknown[1])!r}"
    return YoloError(Reason.UNKNOWN_COMMIT, message, hint=hint)


_Changes = dict[str, tuple[tuple[str, str], ...]]


_FROM_FIRST_PARENT = "--diff-merges=first-parent"
_FROM_EACH_PARENT = "-c"


def _changes(
    repository: Repository,
    oids: Sequence[str],
    paths: Sequence[str],
    of_merges: str = _FROM_FIRST_PARENT,
) -> tuple[_Changes, Set[str]]:
    """Return what each commit changed, and of which ones a clone without trees cannot tell it."""
    try:
        return _read_changes(repository, oids, paths, of_merges), frozenset()
    except YoloError:
        if not repository.is_partial:
            raise
    whole = [oid for oid in oids if has_trees(repository, oid)]
    changes: _Changes = {}
    with suppress(YoloError):
        changes = _read_changes(repository, whole, paths, of_merges) if whole else {}
    return changes, set(oids) - changes.keys()


def has_trees(repository: Repository, oid: str) -> bool:
    """Return whether the clone has the trees of a commit and its parents: a partial one lacks them
    until somebody checks them out.
    """
    commit = read_commit(repository, oid)
    commits = (oid, *commit.parents) if commit else ()
    return bool(commits) and all(
        repository.objects.read(f"{each}^{{tree}}") is not None for each in commits
    )


def _read_changes(
    repository: Repository, oids: Sequence[str], paths: Sequence[str], of_merges: str
) -> _Changes:
    """Return the changes of each commit; none for a commit with too many changes to read."""
    conversation = repository.git.converse(
        "log", "-z", "-O/dev/null", "--format=%H", "--name-status", "--no-renames", "--root",
        "--ignore-submodules=none", of_merges, "--no-walk=unsorted",
        "--end-of-options", *oids, "--", *paths,
    )  # fmt: skip
    output = conversation.rest(_NAMES_BYTES, LONG_S)
    if output is not None:
        return dict(_changes_in(os.fsdecode(output).split("\0")))
    middle = len(oids) // 2
    halves = (oids[:middle], oids[middle:]) if middle else ()
    return {
        oid: changes
        for half in halves
        for oid, changes in _read_changes(repository, half, paths, of_merges).items()
    }


def _changes_in(fields: Sequence[str]) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """Parse the fields: a commit, then alternating status and path until the next commit. Where all
    parents are compared, git writes an empty field first, and a letter for each of them.
    """
    position = 0
    while position < len(fields) and (oid := fields[position].strip()):
        position += 1
        position += fields[position : position + 1] == [""]
        changes = []
        while position + 1 < len(fields) and _LETTERS.fullmatch(fields[position].strip()):
            changes.append((fields[position].strip()[0], fields[position + 1]))
            position += 2
        yield oid, tuple(changes)


def read_commit(repository: Repository, oid: str) -> LoggedCommit | None:
    """Return one commit without its changes, or None when there is no such commit."""
    git_object = repository.objects.read(oid)
    return _parse_commit(git_object) if git_object and git_object.kind == "commit" else None


def _parse_commit(git_object: GitObject) -> LoggedCommit:
    commit_object = read_commit_object(git_object.body)
    return LoggedCommit(
        git_object.oid,
        commit_object.parents,
        commit_object.at_s,
        commit_object.subject,
        commit_object.trailers,
        reverts=commit_object.reverts,
    )


def log_of_line(repository: Repository, since: str, tip: str) -> list[LoggedCommit] | None:
    """Return what `log` says of the commits after `since` (empty: all) up to `tip`, oldest first.

    Only for a short linear history, read from the objects alone; None where git has to be asked.
    """
    chain = line_between(repository, since, tip)
    made, left = [], _CHANGES_MOST
    for before, oid in pairwise(chain or ()):
        commit = read_commit(repository, oid)
        if commit is None:
            return None
        try:
            trees = before and repository.root_tree(before), repository.root_tree(oid)
            changes = tuple(islice(repository.trees.changes(*trees), left + 1))
        except YoloError:
            return None  # git tells what is missing
        left -= len(changes)
        if left < 0:
            return None
        made.append(commit._replace(changes=changes))
    return made if chain else None


def main_line(repository: Repository, tip: str) -> tuple[str, ...]:
    """Return the commits that a branch pointed at, oldest first: first parents only."""
    answer = repository.git.text(
        "rev-list", "--first-parent", "--reverse", "--end-of-options", tip, "--"
    )
    return tuple(answer.split())


class Abandoned(NamedTuple):
    """Commits that the user moved the branch away from, or HEAD."""

    commits: tuple[str, ...]
    moved_at_s: int
    """When another process than ours last moved it."""


class BranchMove(NamedTuple):
    """One move of a branch, or of HEAD, as its reflog has it."""

    old: str
    """The tip before; zeros where there was none."""
    new: str
    at_s: int
    message: bytes

    @property
    def is_ours(self) -> bool:
        """Whether we made it."""
        return self.message == _OURS


def left_behind(repository: Repository, ref: str) -> Abandoned:
    """Return our commits to the branch that HEAD left for `ref`, beyond where it was left (F28).

    `git switch -c` reads the tip, makes the branch, and then moves HEAD: what is committed between
    these steps is on the branch that was left alone. None without a reflog.
    """
    switches = ((_SWITCH.fullmatch(each.message), each) for each in moves_of(repository, "HEAD"))
    named, last = next(((named, move) for named, move in switches if named), (None, None))
    if named and last and f"refs/heads/{os.fsdecode(named[2])}" == ref:
        moves = moves_of(repository, f"refs/heads/{os.fsdecode(named[1])}")
        stood = [move.new for move in moves]
        if last.new in stood:
            beyond = moves[: stood.index(last.new)]
            return Abandoned(tuple(move.new for move in beyond if move.is_ours), last.at_s)
    return Abandoned((), 0)


def moves_of(repository: Repository, ref: str) -> tuple[BranchMove, ...]:
    """Return the latest moves of a branch, or of HEAD, latest first; none without a reflog."""
    if repository.has_plain_refs:
        home = repository.git_dir if ref == "HEAD" else repository.common_dir
        reflog = content_of(f"{home}/logs/{ref}").splitlines()
        lines = [line.partition(b"\t") for line in reflog[-_REFLOG_DEPTH:]]
        parts = [(facts.split(b" "), words) for facts, _, words in lines]
        return tuple(
            BranchMove(os.fsdecode(facts[0]), os.fsdecode(facts[1]), seconds_of(facts[-2]), words)
            for facts, words in reversed(parts)
            if len(facts) > 3
        )
    answer = repository.git.run(
        "log", "-g", f"--max-count={_REFLOG_DEPTH}", "--date=unix", "--format=%H %gd %gs",
        "--end-of-options", ref, "--", ok=(0, 128),
    )  # fmt: skip
    entries = [line.split(b" ", 2) for line in answer.out.splitlines() if line.count(b" ") > 1]
    return tuple(
        BranchMove(
            os.fsdecode(before[0]),
            os.fsdecode(new),
            seconds_of(when.rpartition(b"@{")[2].rstrip(b"}")),
            words,
        )
        for (new, when, words), before in pairwise(
            [*entries, [repository.object_format.zero.encode()]]
        )
    )


def abandoned(repository: Repository, tip: str, moves: Sequence[BranchMove]) -> Abandoned:
    """Return recent commits of a branch that its tip no longer contains (F28).

    `moves`: as `moves_of` returns them.
    """
    stood = [move.new for move in moves]
    at = stood.index(tip) if tip in stood else 0  # the branch has gone on since it was looked at
    pasts = set(stood[at:])
    if not pasts - {tip} or _has_passed(repository, tip, pasts):
        return Abandoned((), 0)
    given = "\n".join([*sorted(pasts), f"^{tip}", ""]).encode()
    lost = repository.git.run(  # some of them may have been pruned
        "rev-list", "--ignore-missing", f"--max-count={_ABANDONED_MOST}", "--stdin",
        given=given, ok=(0, 128),
    )  # fmt: skip
    moved = (move.at_s for move in moves[at:] if not move.is_ours)
    return Abandoned(tuple(lost.out.decode().split()), max(moved, default=0))


def _has_passed(repository: Repository, tip: str, commits: Iterable[str]) -> bool:
    """Return whether a short line of commits up to `tip` has all of these."""
    left, at = set(commits), tip
    for _ in range(_LINEAR_MOST):
        left.discard(at)
        parents = repository.parents(at) if left else ()
        if len(parents) != 1:
            break
        at = parents[0]
    return not left


def last_good_tip(repository: Repository, ref: str) -> str | None:
    """Return the latest readable commit that the reflog file of a broken branch names (F04)."""
    lines = content_of(os.path.join(repository.common_dir, "logs", ref)).splitlines()
    tips = (os.fsdecode(line.split(b" ")[1]) for line in reversed(lines) if line.count(b" ") > 1)
    return next(
        (
            tip
            for tip in tips
            if (git_object := repository.objects.read(tip)) and git_object.kind == "commit"
        ),
        None,
    )


class LoggedChange(NamedTuple):
    """One commit that changed one path."""

    path: str
    blob: str | None
    """None: the commit removed the file, or put something other than a file there."""
    commit: str


def changes_of(repository: Repository, tip: str | None, paths: Sequence[str]) -> list[LoggedChange]:
    """Return the changes of the paths in the history of `tip`, oldest first."""
    if not tip or not paths:
        return []
    walked = ("--topo-order", "--reverse", "--end-of-options", tip)
    return list(_logged(repository, paths, *walked))


def changed_after(repository: Repository, tip: str, path: str, since_s: int) -> bool:
    """Return whether a commit in the history of `tip` after `since_s` changed a path.

    Only commits after that time are walked.
    """
    younger = repository.git.run(
        "rev-list", "--max-count=1", f"--since={since_s + 1}", "--end-of-options", tip, "--", path,
        timeout_s=LONG_S,
    )  # fmt: skip
    return bool(younger.out)


def changes_in(
    repository: Repository, commits: Iterable[str], paths: Sequence[str]
) -> Iterator[LoggedChange]:
    """Yield the changes of the paths in each of these commits."""
    given = "".join(f"{commit}\n" for commit in commits).encode()
    return _logged(repository, paths, "--no-walk=unsorted", "--stdin", given=given)


def line_between(repository: Repository, since: str, tip: str | None) -> list[str] | None:
    """Return the commits from `since` (empty: nothing) to `tip`; None if they are no short line."""
    if tip is None:
        return None
    most = _LINEAR_MOST if since else _WHOLE_MOST
    chain = [tip]
    while chain[-1] != since:
        parents = repository.parents(chain[-1]) or ("",)
        if len(parents) != 1 or len(chain) > most or not chain[-1]:
            return None
        chain += parents
    return chain[::-1]


def changes_along(
    repository: Repository, chain: Sequence[str], paths: Sequence[str]
) -> Iterator[LoggedChange]:
    """Yield what the first commit of a chain has at the paths, then what each other one changed."""
    before: dict[str, str | None] = {}
    for commit in chain:
        for path in paths:
            blob = repository.blob_at(commit, path)
            if blob != before.get(path):
                yield LoggedChange(path, blob, commit)
            before[path] = blob


def _logged(
    repository: Repository, paths: Sequence[str], *which: str, given: bytes | None = None
) -> Iterator[LoggedChange]:
    named = paths if len(paths) <= _PATHS_MOST else ()
    answer = repository.git.run(
        "log", "-z", "--raw", "--no-abbrev", "--format=%H", "--no-renames", "--root", "-O/dev/null",
        "--diff-merges=first-parent", *which, "--", *named, given=given, timeout_s=LONG_S,
    )  # fmt: skip
    wanted = frozenset(paths)
    commit, fields = "", iter(os.fsdecode(answer.out).split("\0"))
    for field in fields:
        text = field.strip("\n")
        if not text.startswith(":"):
            commit = text or commit
            continue
        mode, blob = text.split(" ")[1], text.split(" ")[3]
        path = next(fields)
        if path in wanted:
            yield LoggedChange(path, blob if mode.startswith("100") else None, commit)
