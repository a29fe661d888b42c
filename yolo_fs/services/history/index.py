"""The history of a branch, indexed: which commit gave a path its content, which one did a task.

What one process has read, the next one finds in `.git/yolo-fs/history.json`. The cache is only
extended, and only while its tip is an ancestor of the branch; after a rebase, an amend or a switch
of branches the log is read anew. Every answer is a function of the history alone.
"""

from __future__ import annotations

import contextlib
import json
import sys
import zlib
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from yolo_fs import __version__
from yolo_fs.edges.files import Content, read
from yolo_fs.edges.git.history import LoggedCommit, log, log_of_line
from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.store import private_directory, write_atomic
from yolo_fs.protocol.workflow import PHASE_COMPLETE
from yolo_fs.reasons import YoloError
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.rules.artifacts.naming import WARNINGS, Purpose, alike, purpose_of
from yolo_fs.rules.evidence import SourceCommit
from yolo_fs.rules.loops.facts import WITH_ROUNDS

_Key = TypeVar("_Key")

FILE = "history.json"
"""Name of the cache below `.git/yolo-fs/`."""

_FORMAT = f"yolo-fs history 5 {__version__}".encode()
"""First words of the cache. What a subject means is derived, so it may change with the version."""

_LARGEST_BYTES = 256 * 1024 * 1024
_SHARE = 256
"""The cache is written anew once the history has grown by this part, so that writing costs less
than reading.
"""

_DICTS = ("by_path", "by_task", "by_step", "by_plan", "by_words", "signed_off", "warned")
_LISTS = ("past", "work")
_INDEXES = (*_DICTS, *_LISTS)
"""Attributes of `HistoryIndex` that the cache holds, beside the commits."""


class IndexedCommit(NamedTuple):
    """One commit, as far as anybody asks for it."""

    oid: str
    at_s: int
    """Committer time, seconds since the epoch."""
    height: int
    """Length of the longest way to a root: a descendant's is greater, whatever the clocks said."""
    is_ours: bool
    """Whether a coordinator made it."""
    subject: str
    changes: tuple[tuple[str, str], ...]
    """(status letter, path) of each path that differs from the first parent."""

    @property
    def rank(self) -> tuple[int, int, str]:
        """Its position in the one order of a history, however that was read."""
        return (self.height, self.at_s, self.oid)


class HistoryIndex:
    """What the commits up to one tip say."""

    def __init__(self, repository: Repository):
        self._repository = repository
        self._readings = 0
        self._forget()

    def _forget(self) -> None:
        self._readings += 1
        self._tip = ""
        self._end = ""
        """Where the shallow clone ended that was read; empty for a whole one."""
        self._commits: dict[str, IndexedCommit] = {}
        self._pairs: dict[tuple[str, str], tuple[str, str]] = {}
        """Each change once: a path is changed by many commits."""
        self._cached = 0
        """How many of them the cache on disk has."""
        self._oids: list[str] | None = None
        """Their names, sorted; None until somebody asks."""
        self._ours: tuple[IndexedCommit, ...] | None = None
        """None until somebody asks."""
        self.by_path: dict[str, str] = {}
        """Path below the planning root → the last commit that changed it."""
        self.by_task: dict[str, str] = {}
        """`NN-MM/Tk` → the last commit whose subject names it."""
        self.by_step: dict[str, str] = {}
        """`NN step` → the last commit whose subject says that it records that step."""
        self.by_plan: dict[str, str] = {}
        """`NN-MM` → the last source commit whose subject names that plan."""
        self.by_words: dict[str, str] = {}
        """`NN-MM words` → the last source commit that says so of a plan."""
        self.past: dict[str, list[str]] = {}
        """Path of an artifact whose past tells of rounds → the commits that changed it, in the
        order of reading.
        """
        self.work: dict[str, list[str]] = {}
        """`NN-MM` → the commits whose scope names that plan, in the order of reading."""
        self.signed_off: dict[int, str] = {}
        """Number of a phase → the commit that recorded its sign-off."""
        self.warned: dict[str, int] = {}
        """Coordination commit → how many warnings its artifact had."""

    @property
    def tip(self) -> str:
        """The commit up to which it was read; empty before the first."""
        return self._tip

    def take_over(self, kept: HistoryIndex) -> bool:
        """Begin with what another index of the same repository has read, and return whether that
        is the same history still.
        """
        if kept._end != self._cut_off():
            return False
        lists = {name: {key: list(of) for key, of in vars(kept)[name].items()} for name in _LISTS}
        dicts = {name: dict(vars(kept)[name]) for name in (*_DICTS, "_commits", "_pairs")}
        vars(self).update(vars(kept), **dicts, **lists, _oids=None, _repository=self._repository)
        return True

    def read_up_to(self, tip: str) -> None:
        """Take in what is new up to `tip`; start over when history was rewritten."""
        if tip == self._tip:
            return
        if not self._tip:
            self._remember()
        if tip == self._tip:
            return
        is_whole = self._tip and not self._end and not self._cut_off()
        fresh = log_of_line(self._repository, self._tip, tip) if is_whole else None
        if fresh is None and self._tip and self._repository.is_ancestor(self._tip, tip):
            fresh = list(log(self._repository, f"{self._tip}..{tip}"))
        elif fresh is None:
            self._forget()
            self._end = self._cut_off()
            fresh = list(log(self._repository, tip))
        for commit in _parents_first(fresh):
            self._take(commit)
        self._tip, self._ours = tip, None

    def read_beyond(self, tip: str, others: Sequence[str]) -> None:
        """Take in nothing but what other tips have and `tip` has not."""
        self._forget()
        if others:
            fresh = log(self._repository, *others, f"^{tip}")
            for commit in _parents_first(list(fresh)):
                self._take(commit)

    def commit(self, name: str) -> SourceCommit | None:
        """Return the commit of this history that an abbreviated hash names, or None when it names
        none or several.
        """
        if self._oids is None:
            self._oids = sorted(self._commits)
        at = bisect_left(self._oids, name)
        named = [oid for oid in self._oids[at : at + 2] if oid.startswith(name)]
        if len(named) != 1:
            return None
        one = self._commits[named[0]]
        paths = frozenset(path for _, path in one.changes)
        return SourceCommit(one.oid, one.subject, paths, one.at_s)

    def at_s(self, oid: str) -> int:
        """Return when a commit of this history was made, seconds since the epoch; 0 for one that is
        not in it.
        """
        found = self._commits.get(oid)
        return found.at_s if found else 0

    def height(self, oid: str) -> int:
        """Return how far from a root a commit of this history is: what came after it is higher; 0
        for none.
        """
        found = self._commits.get(oid)
        return found.height if found else 0

    def of_words(self, plan: str, words: str) -> str:
        """Return the last source commit of a plan that says nothing but these words; nothing when
        there is none.
        """
        return self.by_words.get(f"{plan} {alike(words)}", "")

    def past_of(self, path: str) -> tuple[IndexedCommit, ...]:
        """Return the commits that changed an artifact of a kind that has rounds, oldest first."""
        return self._in_order(self.past.get(path, ()))

    def mark_of(self, path: str) -> object:
        """Return what is another value whenever `past_of` may say something else."""
        return self._readings, len(self.past.get(path, ()))

    def work_on(self, plan: str) -> tuple[IndexedCommit, ...]:
        """Return the commits whose scope names a plan, oldest first."""
        return self._in_order(self.work.get(plan, ()))

    def mark_of_work(self, plan: str) -> object:
        """Return what is another value whenever `work_on` may say something else."""
        return self._readings, len(self.work.get(plan, ()))

    def _in_order(self, oids: Iterable[str]) -> tuple[IndexedCommit, ...]:
        return tuple(
            sorted(
                (one for oid in oids if (one := self._commits.get(oid))), key=lambda one: one.rank
            )
        )

    @property
    def ours(self) -> tuple[IndexedCommit, ...]:
        """Coordination commits, oldest first."""
        if self._ours is None:
            own = (one for one in self._commits.values() if one.is_ours)
            self._ours = tuple(sorted(own, key=lambda one: one.rank))
        return self._ours

    def warnings(self) -> dict[str, int]:
        """Return the artifacts whose last version had warnings, and how many."""
        paths = self.by_path.items()
        return {path: self.warned[oid] for path, oid in paths if oid in self.warned}

    # --- taking in ---

    def _take(self, logged: LoggedCommit) -> None:
        height = 1 + max((self.height(parent) for parent in logged.parents), default=0)
        changes = tuple(self._pairs.setdefault(pair, pair) for pair in logged.changes)
        subject = sys.intern(logged.subject)
        one = IndexedCommit(logged.oid, logged.at_s, height, logged.is_ours, subject, changes)
        self._commits[one.oid] = one
        told = dict(logged.trailers).get(WARNINGS, "")
        if one.is_ours and told.isdecimal():
            self.warned[one.oid] = int(told)
        if self._oids is not None:
            insort(self._oids, one.oid)
        for _, path in one.changes:
            if path.startswith(PLANNING_ROOT + "/"):
                self._put(self.by_path, path, one)
                if _has_rounds(path):
                    self.past.setdefault(path, []).append(one.oid)
        if purpose := purpose_of(one.subject):
            self._note(purpose, one)
        gaps = PHASE_COMPLETE.match(one.subject)
        if gaps and any(path == f"{PLANNING_ROOT}/state.json" for _, path in one.changes):
            self._put(self.signed_off, int(gaps["N"]), one)

    def _note(self, purpose: Purpose, one: IndexedCommit) -> None:
        if purpose.plan and not purpose.step and not one.is_ours:
            self._put(self.by_plan, str(purpose.plan), one)
            self.work.setdefault(str(purpose.plan), []).append(one.oid)
        if purpose.task:
            self._put(self.by_task, str(purpose.task), one)
        elif purpose.step:
            self._put(self.by_step, f"{purpose.phase} {purpose.step}", one)
        elif purpose.plan:
            self._put(self.by_words, f"{purpose.plan} {purpose.words}", one)

    def _put(self, index: dict[_Key, str], key: _Key, one: IndexedCommit) -> None:
        """Enter a commit unless a later one stands there: parallel lines of history come in any
        order.
        """
        before = self._commits[index[key]] if key in index else None
        if before is None or before.rank < one.rank:
            index[key] = one.oid

    # --- from one process to the next ---

    def keep(self) -> None:
        """Leave what was read to the next process; where that cannot be done, the next one only
        needs longer.
        """
        fresh = len(self._commits) - self._cached
        if not self._tip or fresh * _SHARE <= self._cached:
            return
        content = {
            "tip": self._tip,
            "cut_off": self._end,
            "commits": list(self._commits.values()),
            **{name: getattr(self, name) for name in _INDEXES},
        }
        body = json.dumps(content, separators=(",", ":")).encode()
        with contextlib.suppress(YoloError):
            private_directory(self._repository.own_dir)
            path = f"{self._repository.own_dir}/{FILE}"
            write_atomic(path, _head(body) + body, durable=False)

    def _remember(self) -> None:
        found = read(self._repository.own_dir, FILE, _LARGEST_BYTES)
        content = _unpacked(found.data) if isinstance(found, Content) else None
        # In a shallow clone that was deepened, commits come before those that were read.
        if content is None or content["cut_off"] != self._cut_off():
            return
        self._tip, self._end = content["tip"], content["cut_off"]
        for oid, at_s, height, is_ours, subject, changes in content["commits"]:
            given = ((letter, path) for letter, path in changes)
            pairs = tuple(self._pairs.setdefault(pair, pair) for pair in given)
            self._commits[oid] = IndexedCommit(oid, at_s, height, is_ours, subject, pairs)
        self._cached = len(self._commits)
        for name in _INDEXES:
            setattr(self, name, content[name])
        self.signed_off = {int(number): oid for number, oid in self.signed_off.items()}

    def _cut_off(self) -> str:
        """Return where a shallow clone ends; empty for a whole one."""
        found = read(self._repository.common_dir, "shallow", _LARGEST_BYTES)
        return found.data.decode("utf-8", "replace") if isinstance(found, Content) else ""


@lru_cache(maxsize=10_000)
def _has_rounds(path: str) -> bool:
    place = classify(path)
    return place is not None and place.artifact.kind in WITH_ROUNDS


def _head(body: bytes) -> bytes:
    return b"%s %08x\n" % (_FORMAT, zlib.crc32(body))


def _unpacked(data: bytes) -> dict[str, Any] | None:
    """Return what a cache holds; None when it is torn, changed, or of another version."""
    head, _, body = data.partition(b"\n")
    if head + b"\n" != _head(body):
        return None
    content: dict[str, Any] = json.loads(body)
    return content


def _parents_first(commits: Iterable[LoggedCommit]) -> Iterator[LoggedCommit]:
    """Yield the commits of a log, newest first, so that each comes after its parents, whatever the
    clocks said.
    """
    waiting = {one.oid: one for one in commits}
    for commit in reversed(list(waiting.values())):
        path = [commit] if commit.oid in waiting else []
        while path:
            before = next((waiting[oid] for oid in path[-1].parents if oid in waiting), None)
            if before is None:
                yield waiting.pop(path.pop().oid)
            else:
                path.append(before)
