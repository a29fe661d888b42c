"""Why something may not be committed: the state of the repository, or git's rules for a path.

The states are those in which it is the user's turn. A path may be ignored, rewritten by a filter,
or part of another repository. git's filters are never run. See docs/dev/faults.md#f06, #f07, #f23,
#f25, #f26, #f30, #f33, #f35, #f62 and #f63.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git.conversation import Conversation
from yolo_fs.git.environment import OWN_MARK
from yolo_fs.git.repository import Head, Repository
from yolo_fs.system import PROC
from yolo_fs.system.files import Stamp, content_of, is_endless, stamp_at
from yolo_fs.system.lock import holder
from yolo_fs.system.system import (
    command_of,
    commands,
    is_running,
    parent_of,
    sees_every_process,
    start_time,
    working_folder,
)
from yolo_fs.system.warm_path import find_storage_fault

IN_PROGRESS = {
    "MERGE_HEAD": Reason.MERGE_IN_PROGRESS,
    "rebase-merge": Reason.REBASE_IN_PROGRESS,
    "rebase-apply": Reason.REBASE_IN_PROGRESS,
    "CHERRY_PICK_HEAD": Reason.CHERRY_PICK_IN_PROGRESS,
    "REVERT_HEAD": Reason.REVERT_IN_PROGRESS,
    "sequencer": Reason.CHERRY_PICK_IN_PROGRESS,
    "BISECT_LOG": Reason.BISECT_IN_PROGRESS,
    "index.lock": Reason.INDEX_LOCKED,
}
"""File or folder in the git directory → what its presence means, the most telling first."""

OF_OTHER_TOOLS = ("gitbutler/*",)
"""Branches whose tip another program generates: a commit of ours there gets lost, or breaks it."""
_STALE_AFTER_S = 12 * 3600
"""Age at which the note of a running commit counts as stale, seconds."""
_MARK_BYTES = 100
COMMITTING = "committing"
"""File of ours that names the running `git commit`; our own hooks write it."""
SECTION = "YOLO-FS INTEGRATION v1"
"""What marks our part of a hook."""
_QUIET_NS = 100_000_000
"""Age from which a rewritten index no longer means that a git command is running."""
_BETWEEN_COMMANDS_NS = 40_000_000
"""Time within which a script or an editor starts its next git command.
A commit of ours in between makes git refuse that command.
"""


class Obstacles:
    """Finds what prevents a commit right now."""

    def __init__(
        self,
        repository: Repository,
        *,
        protected: Collection[str] = (),
        allow_detached: bool = False,
        committer_lock: str = "",
        folders: Sequence[str] = (),
    ):
        """Find the obstacles in this repository.

        `committer_lock`: held by a process that commits for us; `folders`: where we commit.
        """
        self._committer_lock = committer_lock
        self._folders = tuple(folders)
        self._repository = repository
        self._protected = (*OF_OTHER_TOOLS, *protected)
        self._allow_detached = allow_detached
        self._index_seen: Stamp | None = None
        self._left_alone: Stamp | None = None
        """An index whose writer has ended."""
        self._unmerged = False
        self._message_seen: int | None = None
        self._hook_seen: Stamp | None = None
        self._hook_is_silent = False
        self._pulls = _Pulls(repository.root)

    def find(self, head: Head, now_ns: int | None = None) -> Reason | None:
        """Return the reason to hold everything, or None when a commit may be made.

        `now_ns`: wall clock; with it, an index that was rewritten a moment ago counts as locked.
        """
        present = set(os.listdir(self._repository.git_dir))
        if not self._repository.has_plain_refs:  # where these are no files, unlike MERGE_HEAD
            present |= set(filter(self._repository.tip, ("CHERRY_PICK_HEAD", "REVERT_HEAD")))
        for name, reason in IN_PROGRESS.items():
            if name in present:
                return reason
        if refusal := self._find_storage_refusal(self._repository.common_dir):
            return refusal
        if head.ref is None and not self._allow_detached:
            return Reason.DETACHED_HEAD
        if head.ref is not None and not head.is_branch:
            return Reason.DETACHED_HEAD
        if any(fnmatchcase(head.branch, pattern) for pattern in self._protected):
            return Reason.PROTECTED_BRANCH
        if (
            head.ref
            and head.tip is None
            and self._has_a_past(head)
            and self._repository.tip(head.ref) is None
        ):
            return Reason.BRANCH_BROKEN
        if head.tip is None and self._repository.has_commits():
            return Reason.UNBORN_BRANCH
        index = stamp_at(f"{self._repository.git_dir}/index")
        if self._index_just_rewritten(index, head, now_ns):
            return Reason.INDEX_LOCKED
        if self._index_is_unmerged(index):
            return Reason.UNMERGED_INDEX
        if self._is_user_committing():
            return Reason.USER_COMMITTING
        if self._pulls.is_any_running():
            return Reason.PULL_IN_PROGRESS
        return None

    def changed_since(self, head: Head, now_ns: int) -> bool:
        """Return whether the user moved HEAD, or began an operation, since `head` was read.

        The files may then be another branch's. The compare-and-swap does not see this, for the
        branch that HEAD left has not moved (F28).
        """
        return self._repository.head() != head or self.find(head, now_ns) is not None

    def _has_a_past(self, head: Head) -> bool:
        """Return whether a branch without a tip was torn by power loss (F04), not just unborn.

        A torn branch has a file, or a reflog.
        """
        log = f"{self._repository.common_dir}/logs/{head.ref}"
        return os.path.isfile(f"{self._repository.common_dir}/{head.ref}") or (
            os.path.isfile(log) and os.path.getsize(log) > 0
        )

    def _index_just_rewritten(self, index: Stamp | None, head: Head, now_ns: int | None) -> bool:
        """Return whether a git command has just written the index and may yet move the branch.

        `git reset` and `git checkout` change the work tree and the index first, and only then HEAD
        (F28).
        """
        if index is None or now_ns is None or index == self._index_seen:
            return False
        rested_ns = now_ns - index.ctime_ns
        if not 0 <= rested_ns < _QUIET_NS:
            return False
        return rested_ns < _BETWEEN_COMMANDS_NS or not self._is_left_alone(index, head)

    def _is_left_alone(self, index: Stamp, head: Head) -> bool:
        """Return whether the index's writer has ended and left our files in it as HEAD has them.

        A program that is not called git is not seen. What it is about to do to HEAD does not matter
        where its index has our files as HEAD has them.
        """
        if index == self._left_alone:
            return True
        if not (self._folders and sees_every_process()):
            return False
        if _is_at_work(self._repository):
            return False
        entries = self._repository.staged(*self._folders)
        staged = {each.path: each.oid for each in entries if each.is_file}
        committed: dict[str, str] = {}
        for folder in self._folders:
            committed |= self._repository.files_at(head.tip, folder)
        if staged != committed:
            return False
        self._left_alone = index
        return True

    def _index_is_unmerged(self, index: Stamp | None) -> bool:
        """Return whether the index holds conflicts, as `git stash pop` leaves (no MERGE_HEAD)."""
        if index != self._index_seen:
            self._unmerged = index is not None and self._repository.has_conflicts()
            self._index_seen = index
        return self._unmerged

    def index_rewritten(self, left_at: Stamp | None) -> None:
        """Record the index that we left: it has no new conflicts, so it need not be read again."""
        self._index_seen = left_at or self._index_seen

    def _find_storage_refusal(self, folder: str) -> Reason | None:
        """Return why nothing can be stored; a refusal for this process alone does not count.

        The sandbox of an agent's host shows `.git` read-only; the daemon commits outside of it.
        """
        refusal = Reason.known(find_storage_fault(folder))
        if refusal is Reason.STORAGE_FAILED and self._committer_lock and os.path.isdir(PROC):
            by = holder(self._committer_lock)
            is_other = by is not None and by.pid != os.getpid()
            return _find_storage_fault_for(by.pid, folder) if by and is_other else refusal
        return refusal

    def _is_user_committing(self) -> bool:
        """Return whether the editor of a `git commit` of this work tree is open.

        git writes COMMIT_EDITMSG before it starts the editor, so while that file is unchanged no
        process needs to be searched for. Only a pre-commit hook runs before that. Our own hooks,
        where they are installed, record the process, even one that is not called `git commit`, such
        as an alias, and even without /proc.
        """
        if _is_marked(f"{self._repository.own_dir}/{COMMITTING}"):
            return True
        if self._has_silent_hook() and _is_committing(self._repository.root):
            return True
        stamp = stamp_at(f"{self._repository.git_dir}/COMMIT_EDITMSG")
        written = stamp.mtime_ns if stamp else None
        if written == self._message_seen:
            return False
        if written is not None and _is_committing(self._repository.root):
            return True
        self._message_seen = written
        return False

    def _has_silent_hook(self) -> bool:
        """Return whether there is a pre-commit hook without our section, which records its run."""
        path = f"{self._repository.hooks_dir}/pre-commit"
        if not os.access(path, os.X_OK):
            return False
        stamp = stamp_at(path)
        if stamp != self._hook_seen:
            self._hook_seen = stamp
            self._hook_is_silent = SECTION.encode() not in content_of(path)
        return self._hook_is_silent


class _Pulls:
    """Finds a `git pull` that runs in a work tree, without reading about each process each time.

    While it fetches it has written nothing that would tell. It has read the index and the branch
    before, gives up when the branch has moved, and advises `git reset --hard`.
    """

    def __init__(self, root: str):
        self._root = root
        self._since: dict[str, float] = {}
        """Process → when it was first seen."""
        self._others: set[str] = set()
        """Processes that are no pull, and old enough to be what they stay."""

    def is_any_running(self) -> bool:
        """Return whether one runs; where there is no /proc, nobody knows."""
        if not os.path.isdir(PROC):
            return False
        now, there = time.monotonic(), set(filter(str.isdigit, os.listdir(PROC)))
        self._others &= there
        new = there - self._others
        self._since = {pid: self._since.get(pid, now) for pid in new}
        return bool([pid for pid in new if self._is_pull(pid, now)])

    def _is_pull(self, pid: str, now: float) -> bool:
        words = command_of(pid) or [b""]
        if os.path.basename(words[0]) == b"git" and _verb_of(words) == b"pull":
            return f"{working_folder(pid)}/".startswith(f"{self._root}/")
        if now - self._since[pid] > _YOUNG_S:
            self._others.add(pid)
        return False


_YOUNG_S = 1.0
"""Time after which a process has become the program that it was started for."""


_WITH_VALUE = (b"-C", b"-c", b"--git-dir", b"--work-tree", b"--namespace", b"--config-env")
"""Options before git's verb whose value is the next word."""


def _verb_of(words: Sequence[bytes]) -> bytes:
    """Return the verb of a git command; empty where there is none."""
    rest = iter(words[1:])
    for word in rest:
        if word in _WITH_VALUE:
            next(rest, b"")
        elif not word.startswith(b"-"):
            return word
    return b""


def _is_committing(root: str) -> bool:
    """Return whether a `git commit` runs whose work tree is `root`."""
    return any(
        _verb_of(words) == b"commit"
        and f"{working_folder(pid)}/".startswith(f"{root}/")
        and not _is_tidying(int(pid))
        for pid, words in _find_git_processes()
    )


def _is_tidying(pid: int) -> bool:
    """Return whether a git has made its commit and only waits for its final housekeeping."""
    return any(
        words[1:2] in ([b"maintenance"], [b"gc"]) and parent_of(int(child)) == pid
        for child, words in _find_git_processes()
    )


def _is_at_work(repository: Repository) -> bool:
    """Return whether another git than ours runs in a work tree, or in an unknown place."""
    places = ("//", f"{repository.root}/", f"{repository.common_dir}/")
    return any(
        OWN_MARK not in words and f"{working_folder(pid) or '/'}/".startswith(places)
        for pid, words in _find_git_processes()
    )


def _find_git_processes() -> Iterator[tuple[str, list[bytes]]]:
    """Yield each running git: its process id, and its command line as words."""
    for pid, words in commands():
        if words and os.path.basename(words[0]) == b"git":
            yield pid, words


def _is_marked(path: str) -> bool:
    """Return whether the process that our prepare-commit-msg hook noted still runs (F63)."""
    stamp, words = stamp_at(path), content_of(path, _MARK_BYTES).decode("ascii", "replace").split()
    if stamp is None or len(words) != 2 or time.time() - stamp.mtime_ns / 1e9 > _STALE_AFTER_S:
        return False
    pid, started = words
    if not pid.isdecimal() or not is_running(int(pid)):
        return False
    began = start_time(int(pid))
    return (began is None or started in ("-", str(began))) and not _is_tidying(int(pid))


def _find_storage_fault_for(pid: int, folder: str) -> Reason | None:
    """Return why a file system stores nothing as another process sees it; None where it hides."""
    try:
        return Reason.known(find_storage_fault(f"{PROC}/{pid}/root{folder}"))
    except OSError:
        return None


_REWRITING = ("filter", "ident", "working-tree-encoding")
_OF_ONE_FOLDER = ("info/exclude", "/.gitignore")
"""Files in which a rule counts as ours: none of them is committed and holds for the whole tree."""
_AT_ONCE = 200
"""Paths in one request, which has to fit into a pipe: otherwise we and git would deadlock."""
_NOT_SET = (b"unspecified", b"unset")
_RULES = (".gitignore", ".gitattributes")
"""Files of a folder with git's rules for everything below it."""


class IgnoreRule(NamedTuple):
    """The last rule that matches a path."""

    source: str
    """The file that it stands in."""
    line: int
    pattern: str


class IgnoreRules:
    """Asks one git which rule ignores each path; it runs on until it is closed."""

    def __init__(self, repository: Repository, *, of_tracked: bool):
        """`of_tracked`: also the rules that hide a tracked file, which git then ignores."""
        self._repository = repository
        self._options = ("--no-index",) if of_tracked else ()
        self._git: Conversation | None = None

    def find(self, paths: Sequence[str]) -> list[IgnoreRule | None]:
        """Return the rule of each path, None where none ignores it.

        Raises:
            YoloError: git refuses to judge a path, or cannot be run.
        """
        if self._git is None:
            # check-ignore refuses literal pathspecs, which the runner asks of git everywhere else.
            literal = {"GIT_LITERAL_PATHSPECS": "0"}
            options = (*self._options, "--stdin", "-z", "--verbose", "--non-matching")
            self._git = self._repository.git.converse("check-ignore", *options, more=literal)
        self._git.ask(_question(paths))
        return [self._read_rule(self._git) for _ in paths]

    def close(self) -> None:
        """End the process."""
        if self._git is not None:
            self._git.close()
            self._git = None

    @staticmethod
    def _read_rule(git: Conversation) -> IgnoreRule | None:
        source, line, pattern, _path = (os.fsdecode(git.until(b"\0")) for _ in range(4))
        is_hit = pattern and not pattern.startswith("!")
        return IgnoreRule(source, int(line), pattern) if is_hit else None


class PathRules:
    """Queries `check-ignore` and `check-attr`, which run on until one of their files changes."""

    def __init__(
        self, repository: Repository, *, commit_ignored: bool = False, hidden: Collection[str] = ()
    ):
        """`hidden`: our own patterns, which only hide files and are no reason to hold any."""
        self._repository = repository
        self._commit_ignored = commit_ignored
        self._hidden = frozenset(hidden)
        self._sources: dict[str, Stamp | None] = {}
        """File with rules → its stamp when the rules were read."""
        self._known: dict[str, Reason | None] = {}
        self._learnt: set[str] = set()
        """Paths whose answer was fetched for the next question."""
        self._ignore = IgnoreRules(repository, of_tracked=True)
        self._attributes: Conversation | None = None
        self._everywhere: tuple[str, ...] | None = None

    def reason_to_hold(self, path: str, *, in_head: bool) -> Reason | None:
        """Return why this path is not ours to commit, or None. A path in HEAD is never ignored.

        Raises:
            YoloError: git refuses to judge the path, or cannot be run.
        """
        if path in self._learnt:
            self._learnt.discard(path)
        else:
            self._forget_if_changed([path])
        if path not in self._known:
            self._known[path] = self._judge(path)
        reason = self._known[path]
        if reason is Reason.GITIGNORED and (in_head or self._commit_ignored):
            return None
        return reason

    def learn(self, paths: Iterable[str]) -> None:
        """Query many paths at once, so that none costs a round trip of its own."""
        asked_paths = tuple(paths)
        self._forget_if_changed(asked_paths)
        odd = {
            folder: self._find_oddity(folder) for folder in set(map(os.path.dirname, asked_paths))
        }
        fresh = [
            path
            for path in asked_paths
            if path not in self._known and not odd[os.path.dirname(path)]
        ]
        for at in range(0, len(fresh), _AT_ONCE):
            some = fresh[at : at + _AT_ONCE]
            filtered, ignored = self._check_filters(some), self._ignored(some)
            self._known.update({path: filtered[path] or ignored[path] for path in some})
        self._learnt = set(asked_paths)

    def close(self) -> None:
        """End the helper processes and clear their answers."""
        self._ignore.close()
        if self._attributes is not None:
            self._attributes.close()
        self._attributes = self._everywhere = None
        self._known.clear()
        self._learnt.clear()
        self._sources.clear()

    def _judge(self, path: str) -> Reason | None:
        if odd := self._find_oddity(os.path.dirname(path)):
            return odd
        try:
            return self._check_filters([path])[path] or self._ignored([path])[path]
        except YoloError:
            self.close()  # a helper may have been killed; a fresh one is asked once
            self._forget_if_changed([path])
        try:
            return self._check_filters([path])[path] or self._ignored([path])[path]
        except YoloError:
            self.close()
            raise

    def _find_oddity(self, folder: str) -> Reason | None:
        """Return why git cannot be asked about what lies in a folder, or None."""
        folders = self._folders(folder)
        if any(os.path.lexists(f"{each}/.git") for each in folders[1:]):
            return Reason.FOREIGN_REPOSITORY
        rules = (f"{each}/{name}" for each in folders for name in _RULES)
        return Reason.NOT_REGULAR if any(map(is_endless, rules)) else None

    def _ignored(self, paths: Sequence[str]) -> dict[str, Reason | None]:
        return {
            path: Reason.GITIGNORED if rule and not self._is_ours(rule) else None
            for path, rule in zip(paths, self._ignore.find(paths), strict=True)
        }

    def _is_ours(self, rule: IgnoreRule) -> bool:
        return rule.pattern in self._hidden and rule.source.endswith(_OF_ONE_FOLDER)

    def _check_filters(self, paths: Sequence[str]) -> dict[str, Reason | None]:
        if self._attributes is None:
            self._attributes = self._repository.git.converse(
                "check-attr", "--stdin", "-z", *_REWRITING
            )
        self._attributes.ask(_question(paths))
        reasons: dict[str, Reason | None] = {}
        for path in paths:
            values = [[self._attributes.until(b"\0") for _ in range(3)][2] for _ in _REWRITING]
            is_set = any(value not in _NOT_SET for value in values)
            reasons[path] = Reason.ATTR_FILTER if is_set else None
        return reasons

    def _forget_if_changed(self, paths: Iterable[str]) -> None:
        now = {
            name: stamp_at(name) for name in self._list_rule_files(set(map(os.path.dirname, paths)))
        }
        if any(self._sources.get(name, stamp) != stamp for name, stamp in now.items()):
            self.close()
        self._sources.update(now)

    def _list_rule_files(self, folders: Iterable[str]) -> list[str]:
        if self._everywhere is None:
            self._everywhere = self._list_global_rule_files()
        above = {each for folder in folders for each in self._folders(folder)}
        own = [f"{folder}/{name}" for folder in above for name in _RULES]
        return [*own, *self._everywhere]

    def _folders(self, folder: str) -> list[str]:
        """Return the folders from the root of the work tree down to this one."""
        folders = [self._repository.root]
        for part in filter(None, folder.split("/")):
            folders.append(f"{folders[-1]}/{part}")
        return folders

    def _list_global_rule_files(self) -> tuple[str, ...]:
        home = os.path.expanduser("~")
        user = os.path.join(os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config", "git")
        named = [
            self._repository.config_path(key)
            for key in ("core.excludesFile", "core.attributesFile")
        ]
        common = self._repository.common_dir
        inside = [f"{common}/info/exclude", f"{common}/info/attributes", f"{common}/config"]
        outside = [f"{home}/.gitconfig", f"{user}/config", f"{user}/ignore", f"{user}/attributes"]
        return (*inside, *outside, *filter(None, named))


def _question(paths: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)
