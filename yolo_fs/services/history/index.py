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
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from functools import lru_cache
from itertools import accumulate, chain, islice, pairwise, starmap
from typing import Any, NamedTuple

from yolo_fs import __version__
from yolo_fs.edges.files import Content, read
from yolo_fs.edges.git.history import LoggedCommit, log_of_line, log_parents_first
from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.store import UnnamedFile, write_atomic
from yolo_fs.foreign_json import parse
from yolo_fs.protocol.workflow import PHASE_COMPLETE
from yolo_fs.reasons import YoloError
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.rules.artifacts.naming import WARNINGS, Purpose, alike, purpose_of
from yolo_fs.rules.evidence import SourceCommit
from yolo_fs.rules.loops.facts import WITH_ROUNDS

FILE = "history.json"
"""Name of the cache below `.git/yolo-fs/`."""

_FORMAT = f"yolo-fs history 14 {sys.byteorder} {__version__}".encode()
"""First words of the cache. What a subject means is derived, so it may change with the version."""

_LARGEST_BYTES = 256 * 1024 * 1024
_SHARE = 256
"""The cache is written anew once the history has grown by this part: reading costs more."""

_UNSORTED = 512
"""Rows, and the part of all rows below, that are found one by one before all are put in order."""
_UNSORTED_SHARE = 64
_NUMBERS = "I"
"""Type code of rows and the like: four bytes each."""
_BYTES = "B"
_FEW, _MANY = "H", "q"
_WIDER = {_FEW: _NUMBERS, _NUMBERS: _MANY}
"""Type code of a column → of one that holds greater numbers."""


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
    warnings: int = 0
    """How many warnings its artifact had, as a coordinator found."""


_Said = tuple[str, tuple[tuple[str, str], ...], int]
"""What many commits of ours have in common: the fields of `IndexedCommit` from `subject` on."""


def _as_saying(one: IndexedCommit) -> str:
    """Return these fields as one text: a thousand of them are read and compared faster so."""
    head = f"{one.warnings} {len(one.changes)}"
    return "\0".join((head, *chain.from_iterable(one.changes), one.subject))


def _said_in(saying: str) -> _Said:
    head, _, rest = saying.partition("\0")
    warnings, count = map(int, head.split(" "))
    *changed, subject = rest.split("\0", 2 * count)
    return subject, tuple(zip(changed[::2], changed[1::2], strict=True)), warnings


class _RestingNames:
    """Names of the first commits of a table, on the disk; where they begin is known without it."""

    def __init__(self, file: UnnamedFile, width: int) -> None:
        self._file = file
        self._width = width
        self.starts = array(_NUMBERS)
        """First four bytes of each name."""

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, names: array[int]) -> bool:
        """Add names, and return whether the disk took them."""
        is_taken = self._file.append(memoryview(names))
        if is_taken:
            begins = range(0, len(names), self._width)
            self.starts.extend(_start(names[at : at + 4].tobytes()) for at in begins)
        return is_taken

    def names(self, begin: int, end: int) -> bytes:
        """Return the names of some rows, one behind the other."""
        return self._file.read(begin * self._width, (end - begin) * self._width)


class CommitTable:
    """Commits in rows of some thirty bytes: of 35,000 an hour most say what others have said."""

    def __init__(self) -> None:
        self.at_s = array(_NUMBERS)
        """Row → committer time, seconds since the epoch; eight bytes once a clock says 2106."""
        self._bends = array(_NUMBERS)
        """Rows whose height is not one more than that of the row before: few, in a line."""
        self._heights = array(_NUMBERS)
        """Heights of these rows."""
        self._names = array(_BYTES)
        """Names of the rows that do not rest."""
        self._width = 20
        """Bytes of a name."""
        self._rest: _RestingNames | None = None
        """Those of the rows before them."""
        self._said = array(_FEW)
        """Number of what a coordinator says, from 1 on; 0 where somebody else made the commit."""
        self._sayings: list[str] = []
        self._numbers: dict[str, int] = {}
        """Saying → its number; empty until a commit is added."""
        self._of_others = array(_NUMBERS)
        """Rows that somebody else made."""
        self._ends = array(_NUMBERS)
        """Where in `_told` ends what each of these says."""
        self._told = array(_BYTES)
        self._sorted = array(_NUMBERS)
        """Rows in the order of their names."""
        self._unsorted: dict[bytes, int] = {}
        """Name → row, of those that are not in that order yet."""

    def __len__(self) -> int:
        return len(self.at_s)

    def __getitem__(self, row: int) -> IndexedCommit:
        told = self.oid(row), self.at_s[row], self.height(row), self.is_ours(row)
        return IndexedCommit(*told, *_said_in(self._saying(row)))

    def copy(self) -> CommitTable:
        """Return another one with the same rows."""
        other = CommitTable()
        vars(other).update({name: copy(value) for name, value in vars(self).items()})
        other._names, other._rest = copy(self._all_names()), None
        return other

    def rest(self, directory: str) -> None:
        """Leave the names to a file without one in this directory: hardly anybody asks for them."""
        if self._names and self._rest is None and (file := UnnamedFile.below(directory)):
            self._rest = _RestingNames(file, self._width)
        if self._rest is not None and self._rest.take(self._names):
            self._names = array(_BYTES)

    def add(self, one: IndexedCommit) -> int:
        """Add a commit, and return its row."""
        row, name = len(self), bytes.fromhex(one.oid)
        self._width = len(name)
        self._names.frombytes(name)
        self.at_s = _and(self.at_s, one.at_s)
        if not row or self.height(row - 1) + 1 != one.height:
            self._bends.append(row)
            self._heights.append(one.height)
        self._said = _and(self._said, self._number(_as_saying(one)) if one.is_ours else 0)
        if not one.is_ours:
            self._of_others.append(row)
            self._told.frombytes(_as_saying(one).encode("utf-8", "surrogatepass"))
            self._ends = _and(self._ends, len(self._told))
        self._unsorted[name] = row
        if len(self._unsorted) > max(_UNSORTED, len(self) // _UNSORTED_SHARE):
            self._sort()
        return row

    def oid(self, row: int) -> str:
        """Return the name of a commit."""
        return self._name(row).hex()

    def height(self, row: int) -> int:
        """Return the length of the longest way from a commit to a root."""
        bend = bisect_right(self._bends, row) - 1
        return self._heights[bend] + row - self._bends[bend]

    def is_ours(self, row: int) -> bool:
        """Return whether a coordinator made a commit."""
        return self._said[row] > 0

    def says(self, row: int) -> int:
        """Return the number of what a coordinator says; 0 where somebody else made the commit."""
        return self._said[row]

    def sayings_of_ours(self, folder: str) -> dict[int, list[str]]:
        """Return what coordinators say of files in a folder: number of each saying → paths."""
        below = f"{folder}/"
        return {
            number: paths
            for number, saying in enumerate(self._sayings, 1)
            if below in saying
            and (paths := [path for _, path in _said_in(saying)[1] if path.startswith(below)])
        }

    def warnings(self, row: int) -> int:
        """Return how many warnings the artifact of a commit had."""
        number = self._said[row]
        return int(self._sayings[number - 1].partition(" ")[0]) if number else 0

    def rank(self, row: int) -> tuple[int, int, bytes]:
        """Return the position of a commit in the one order of a history, however that was read."""
        return self.height(row), self.at_s[row], self._name(row)

    def row(self, oid: str) -> int | None:
        """Return where a commit is; None for one that is not here."""
        name = bytes.fromhex(oid)
        if name in self._unsorted:
            return self._unsorted[name]
        at = self._place(name, len(self._sorted))
        found = self._sorted[at : at + 1]
        return found[0] if found and self._name(found[0]) == name else None

    def row_named(self, start: str) -> int | None:
        """Return the one commit whose name begins so; None where none does, or several."""
        if not set(start) <= set("0123456789abcdef"):
            return None
        self._sort()
        lowest = bytes.fromhex(start + "0" * (len(start) % 2))
        at = self._place(lowest, len(self._sorted))
        named = [row for row in self._sorted[at : at + 2] if self.oid(row).startswith(start)]
        return named[0] if len(named) == 1 else None

    def as_json(self) -> dict[str, Any]:
        """Return what `from_json` reads, as `packed` takes it."""
        self._sort()
        columns = vars(self) | {"_names": self._all_names()}
        return {
            "width": self._width,
            "columns": {
                name: (one.typecode, one) for name, one in columns.items() if isinstance(one, array)
            },
            "sayings": _joined(self._sayings),
        }

    @classmethod
    def from_json(cls, content: dict[str, Any], columns: memoryview) -> CommitTable:
        """Return the table that `as_json` has told, as `unpacked` gives it."""
        table = cls()
        table._width = content["width"]
        for name, (typecode, place) in content["columns"].items():
            setattr(table, name, _column(typecode, columns[slice(*place)]))
        table._sayings = _texts(content["sayings"], columns)
        return table

    def _number(self, saying: str) -> int:
        if not self._numbers:
            self._numbers = {known: number for number, known in enumerate(self._sayings, 1)}
        number = self._numbers.setdefault(saying, len(self._sayings) + 1)
        if number > len(self._sayings):
            self._sayings.append(saying)
        return number

    def _saying(self, row: int) -> str:
        number = self._said[row]
        if number:
            return self._sayings[number - 1]
        at = bisect_left(self._of_others, row)
        begin = self._ends[at - 1] if at else 0
        return self._told[begin : self._ends[at]].tobytes().decode("utf-8", "surrogatepass")

    def _name(self, row: int) -> bytes:
        rest = self._rest
        if rest and row < len(rest):
            return rest.names(row, row + 1)
        begin = (row - len(rest or ())) * self._width
        return self._names[begin : begin + self._width].tobytes()

    def _start(self, row: int) -> int:
        rest = self._rest
        return rest.starts[row] if rest and row < len(rest) else _start(self._name(row))

    def _all_names(self) -> array[int]:
        rest = self._rest
        return _column(_BYTES, rest.names(0, len(rest))) + self._names if rest else self._names

    def _place(self, name: bytes, end: int) -> int:
        """Return where a name belongs in the first `end` of the order."""
        start = _start(name)
        first = bisect_left(self._sorted, start, 0, end, key=self._start)
        last = bisect_right(self._sorted, start, first, end, key=self._start)
        return bisect_left(self._sorted, name, first, last, key=self._name)

    def _sort(self) -> None:
        """Put the others in order, too, and no list of all names or rows beside it: what grows
        with a history must not be there twice.
        """
        fresh = sorted(self._unsorted.items())
        end = len(self._sorted)
        self._sorted.extend(row for _, row in fresh)
        for before in reversed(range(len(fresh))):
            name, row = fresh[before]
            to = self._place(name, end)
            self._sorted[to + before + 1 : end + before + 1] = self._sorted[to:end]
            self._sorted[to + before] = row
            end = to
        self._unsorted = {}


def _and(column: array[int], number: int) -> array[int]:
    """Return a column with a number behind, a wider one where it needs more room."""
    try:
        column.append(number)
    except OverflowError:
        return _and(array(_WIDER[column.typecode], column), number)
    return column


def _start(name: bytes) -> int:
    return int.from_bytes(name[:4].ljust(4, b"\0"), "big")


def _column(typecode: str, data: bytes | memoryview) -> array[int]:
    column = array(typecode)
    column.frombytes(data)
    return column


def _mark(words: str) -> int:
    """Return four bytes that tell words from nearly all others."""
    return zlib.crc32(words.encode("utf-8", "surrogatepass"))


_DICTS = ("_by_path", "by_task", "_by_step", "_signed_off")
_ROWS = ("past", "work", "_marks")
"""Attributes of `HistoryIndex` in the cache, beside the commits: a row, or several, of each key."""


_Paused = Callable[[Iterable[LoggedCommit]], Iterator[LoggedCommit]]


class HistoryIndex:
    """What the commits up to one tip say."""

    def __init__(self, repository: Repository, paused: _Paused = iter):
        """`paused`: what the commits go through as they are read, and pauses now and then."""
        self._repository = repository
        self._paused = paused
        self._forget()

    def _forget(self) -> None:
        self.reading = object()
        """Another one whenever rows may stand for other commits."""
        self._is_shared = False
        """Whether another index has the same tables, so that nothing may be entered there."""
        self._tip = ""
        self._end = ""
        """Where the shallow clone ended that was read; empty for a whole one."""
        self._others: tuple[str, ...] = ()
        """The tips that `read_beyond` has read up to."""
        self.commits = CommitTable()
        """All that were read, in the order of reading."""
        self._cached = 0
        """How many of them the cache on disk has."""
        self._is_in_order = True
        """Whether the rows are in the order of ranks, as those of one line are."""
        self._by_path: dict[str, int] = {}
        """Path below the planning root → row of the last commit that changed it."""
        self.by_task: dict[str, int] = {}
        """`NN-MM/Tk` → row of the last commit whose subject names it."""
        self._by_step: dict[str, int] = {}
        """`NN step` → row of the last commit whose subject says that it records that step."""
        self._signed_off: dict[str, int] = {}
        """Number of a phase → row of the commit that recorded its sign-off."""
        self.past: dict[str, array[int]] = {}
        """Path of an artifact with rounds → rows of the commits that changed it, oldest first."""
        self.work: dict[str, array[int]] = {}
        """`NN-MM` → rows of the commits whose scope names that plan, oldest first."""
        self._marks: dict[str, array[int]] = {}
        """`NN-MM` → what tells the words of each of these commits from those of nearly all."""

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
        kept._is_shared = True
        vars(self).update(vars(kept), _repository=self._repository)
        return True

    def _part(self) -> None:
        if not self._is_shared:
            return
        for name in _ROWS:
            setattr(self, name, {key: rows[:] for key, rows in getattr(self, name).items()})
        for name in _DICTS:
            setattr(self, name, dict(getattr(self, name)))
        self.commits = self.commits.copy()
        self._is_shared = False

    def read_up_to(self, tip: str) -> None:
        """Take in what is new up to `tip`; start over when history was rewritten."""
        if not self._tip:
            self._remember()
        if tip == self._tip:
            return
        is_whole = not self._end and not self._cut_off()
        fresh: Iterable[LoggedCommit] | None
        fresh = log_of_line(self._repository, self._tip, tip) if is_whole else None
        if fresh is None and self._tip and self._repository.is_ancestor(self._tip, tip):
            fresh = log_parents_first(self._repository, f"{self._tip}..{tip}")
        elif fresh is None:
            self._forget()
            self._end = self._cut_off()
            fresh = log_parents_first(self._repository, tip)
        self._part()
        try:
            for commit in self._paused(fresh):
                self._take(commit)
        except Exception:
            self._forget()  # a part of it would be taken again
            raise
        self._tip = tip

    def read_beyond(self, tip: str, others: Sequence[str], *, goes_on: bool) -> None:
        """Take in what other tips have and `tip` has not.

        `goes_on`: `tip` has all that it had at the last call, so only what is new is read, unless
        one of the others was rewritten. What `tip` has got meanwhile stays.
        """
        known = self._others if goes_on else ()
        if not all(self._repository.commits_exist(known).values()):
            known = ()  # what was rewritten has been pruned as well
        hidden = [f"^{each}" for each in (tip, *known)]
        fresh = list(log_parents_first(self._repository, *others, *hidden)) if others else []
        followed = {parent for commit in fresh for parent in commit.parents}
        if not followed.union(others).issuperset(known):
            self.read_beyond(tip, others, goes_on=False)
            return
        if not known:
            self._forget()
        self._part()
        for commit in fresh:
            self._take(commit)
        self._others = tuple(others)

    def commit(self, name: str) -> SourceCommit | None:
        """Return the one commit of this history that an abbreviated hash names, or None."""
        row = self.commits.row_named(name)
        if row is None:
            return None
        one = self.commits[row]
        paths = frozenset(path for _, path in one.changes)
        return SourceCommit(one.oid, one.subject, paths, one.at_s)

    def at_s(self, oid: str) -> int:
        """Return when a commit of this history was made, seconds since the epoch; 0 for another."""
        row = self.commits.row(oid)
        return 0 if row is None else self.commits.at_s[row]

    def height(self, oid: str) -> int:
        """Return how far from a root a commit is: what came after it is higher; 0 for none."""
        row = self.commits.row(oid)
        return 0 if row is None else self.commits.height(row)

    def last_change(self, path: str) -> str:
        """Return the last commit that changed a path below the planning root; empty without any."""
        return self._oid(self._by_path.get(path))

    def row_of_change(self, path: str) -> int:
        """Return the row of that commit; -1 when there is none."""
        return self._by_path.get(path, -1)

    def of_task(self, task: str) -> str:
        """Return the last commit whose subject names a task, `NN-MM/Tk`; nothing when none does."""
        return self._oid(self.by_task.get(task))

    def of_words(self, plan: str, words: str) -> str:
        """Return the last source commit of a plan that says just these words; empty without one."""
        wanted = alike(words)
        mark, marks = _mark(wanted), self._marks.get(plan, array(_NUMBERS))
        for at in reversed(range(len(marks) if mark in marks else 0)):
            if marks[at] == mark:
                one = self.commits[self.work[plan][at]]
                said = purpose_of(one.subject)
                if said and not said.task and said.words == wanted:
                    return one.oid
        return ""

    def steps_said(self) -> dict[str, str]:
        """Return `NN step` → the last commit whose subject says that it records that step."""
        return {said: self.commits.oid(row) for said, row in self._by_step.items()}

    def sign_off_of(self, phase: int) -> str:
        """Return the commit that recorded the sign-off of a phase; nothing when there is none."""
        return self._oid(self._signed_off.get(str(phase)))

    def past_of(self, path: str) -> array[int]:
        """Return the rows of the commits that changed an artifact that has rounds, oldest first."""
        return self.past.get(path, array(_NUMBERS))

    def mark_of(self, path: str) -> tuple[object, int]:
        """Return what is another value whenever `past_of` may say something else."""
        return self.reading, len(self.past_of(path))

    def work_on(self, plan: str) -> tuple[IndexedCommit, ...]:
        """Return the commits whose scope names a plan, oldest first."""
        return tuple(map(self.commits.__getitem__, self.work.get(plan, ())))

    def mark_of_work(self, plan: str) -> object:
        """Return what is another value whenever `work_on` may say something else."""
        return self.reading, len(self.work.get(plan, ()))

    def last_of_ours(self, count: int) -> tuple[IndexedCommit, ...]:
        """Return the latest coordination commits, newest first; `count`: so many at most."""
        own = (row for row in reversed(self._ordered()) if self.commits.is_ours(row))
        return tuple(map(self.commits.__getitem__, islice(own, count)))

    def touches(self, folder: str) -> dict[str, list[tuple[int, IndexedCommit]]]:
        """Return path → (position in this history, commit) of each coordination commit that changed
        what lies in a folder, oldest first. A path whose last change somebody else committed has
        that commit as well.
        """
        found: dict[str, list[tuple[int, IndexedCommit]]] = {}
        wanted = self.commits.sayings_of_ours(folder)
        for position, row in enumerate(self._ordered()):
            for path in wanted.get(self.commits.says(row), ()):
                found.setdefault(path, []).append((position, self.commits[row]))
        for path, row in self._by_path.items():
            if path.startswith(f"{folder}/") and not self.commits.is_ours(row):
                found.setdefault(path, []).append((len(self.commits), self.commits[row]))
        return found

    def warnings(self) -> dict[str, int]:
        """Return the artifacts whose last version had warnings, and how many."""
        found = ((path, self.commits.warnings(row)) for path, row in self._by_path.items())
        return {path: count for path, count in found if count}

    def _ordered(self) -> Sequence[int]:
        """Return all rows, oldest first."""
        rows = range(len(self.commits))
        return rows if self._is_in_order else sorted(rows, key=self.commits.rank)

    def _oid(self, row: int | None) -> str:
        return "" if row is None else self.commits.oid(row)

    def _take(self, logged: LoggedCommit) -> None:
        height = 1 + max((self.height(parent) for parent in logged.parents), default=0)
        told = dict(logged.trailers).get(WARNINGS, "")
        warnings = int(told) if logged.is_ours and told.isdecimal() else 0
        said = logged.is_ours, logged.subject, logged.changes, warnings
        one = IndexedCommit(logged.oid, logged.at_s, height, *said)
        row = self.commits.add(one)
        if row and self.commits.rank(row - 1) > self.commits.rank(row):
            self._is_in_order = False
        for _, path in one.changes:
            if path.startswith(PLANNING_ROOT + "/"):
                self._put(self._by_path, path, row)
                if _has_rounds(path):
                    self._enter(self.past, path, row)
        if purpose := purpose_of(one.subject):
            self._note(purpose, one, row)
        gaps = PHASE_COMPLETE.match(one.subject)
        if gaps and any(path == f"{PLANNING_ROOT}/state.json" for _, path in one.changes):
            self._put(self._signed_off, str(int(gaps["N"])), row)

    def _note(self, purpose: Purpose, one: IndexedCommit, row: int) -> None:
        if purpose.plan and not purpose.step and not one.is_ours:
            plan = str(purpose.plan)
            at = self._enter(self.work, plan, row)
            self._marks.setdefault(plan, array(_NUMBERS)).insert(at, _mark(purpose.words))
        if purpose.task:
            self._put(self.by_task, str(purpose.task), row)
        elif purpose.step:
            self._put(self._by_step, f"{purpose.phase} {purpose.step}", row)

    def _put(self, index: dict[str, int], key: str, row: int) -> None:
        """Enter a commit unless a later one stands there: parallel lines come in any order."""
        before = index.setdefault(key, row)
        if self.commits.rank(before) < self.commits.rank(row):
            index[key] = row

    def _enter(self, index: dict[str, array[int]], key: str, row: int) -> int:
        """Enter a commit, and return its place; whoever has a key's rows sees them grow at the
        end.
        """
        rows, rank = index.get(key, array(_NUMBERS)), self.commits.rank
        if rows and rank(rows[-1]) > rank(row):
            at = bisect_left(rows, rank(row), key=rank)
            index[key] = rows[:at] + array(_NUMBERS, [row]) + rows[at:]
            return at
        index.setdefault(key, rows).append(row)
        return len(rows) - 1

    def keep(self) -> None:
        """Leave what was read to the next process, which needs longer where that cannot be done."""
        fresh = len(self.commits) - self._cached
        if not self._tip or fresh * _SHARE <= self._cached:
            return
        content = {
            "tip": self._tip,
            "cut_off": self._end,
            "is_in_order": self._is_in_order,
            "commits": self.commits.as_json(),
            **{name: _flattened(getattr(self, name)) for name in _ROWS},
        }
        for name in _DICTS:
            rows = getattr(self, name)
            content[name] = {"keys": _joined(rows), "rows": array(_NUMBERS, rows.values())}
        with contextlib.suppress(YoloError):
            self._repository.make_own_dir()
            path = f"{self._repository.own_dir}/{FILE}"
            write_atomic(path, *packed(content), durable=False)
            self._cached = len(self.commits)

    def rest(self) -> None:
        """Keep no more in memory than is asked for: for a process that lives long."""
        self._part()
        self.commits.rest(self._repository.own_dir)

    def _remember(self) -> None:
        found = read(self._repository.own_dir, FILE, _LARGEST_BYTES)
        content, columns = unpacked(found.data) if isinstance(found, Content) else _NOTHING
        # In a shallow clone that was deepened, commits come before those that were read.
        if content is None or content["cut_off"] != self._cut_off():
            return
        self._tip, self._end = content["tip"], content["cut_off"]
        self.commits = CommitTable.from_json(content["commits"], columns)
        self._is_in_order = content["is_in_order"]
        self._cached = len(self.commits)
        for name in (*_DICTS, *_ROWS):
            told = content[name]
            rows: Sequence[Any] = _column(_NUMBERS, columns[slice(*told["rows"])])
            if name in _ROWS:
                rows = [rows[each] for each in _spans(told["ends"], columns)]
            setattr(self, name, dict(zip(_texts(told["keys"], columns), rows, strict=True)))

    def _cut_off(self) -> str:
        """Return where a shallow clone ends; empty for a whole one."""
        found = read(self._repository.common_dir, "shallow", _LARGEST_BYTES)
        return found.data.decode("utf-8", "replace") if isinstance(found, Content) else ""


@lru_cache(maxsize=10_000)
def _has_rounds(path: str) -> bool:
    place = classify(path)
    return place is not None and place.artifact.kind in WITH_ROUNDS


def _joined(texts: Collection[str]) -> dict[str, Any]:
    """Return texts in two columns: to tell them, no object is made of each."""
    ends = array(_NUMBERS, accumulate(map(len, texts)))
    return {"text": "".join(texts).encode("utf-8", "surrogatepass"), "ends": ends}


def _flattened(rows: dict[str, array[int]]) -> dict[str, Any]:
    ends = array(_NUMBERS, accumulate(map(len, rows.values())))
    return {"keys": _joined(rows), "ends": ends, "rows": b"".join(rows.values())}


def _texts(told: dict[str, Any], columns: memoryview) -> list[str]:
    text = str(columns[slice(*told["text"])], "utf-8", "surrogatepass")
    return [text[each] for each in _spans(told["ends"], columns)]


def _spans(ends: Sequence[int], columns: memoryview) -> Iterator[slice]:
    return starmap(slice, pairwise(chain((0,), _column(_NUMBERS, columns[slice(*ends)]))))


def packed(content: dict[str, Any]) -> list[bytes | memoryview]:
    """Return a cache in parts: JSON in which each column is its place among the bytes behind."""
    columns: list[memoryview] = []
    size = 0

    def put(column: bytes | array[int]) -> tuple[int, int]:
        nonlocal size
        columns.append(memoryview(column).cast("B"))
        size += len(columns[-1])
        return size - len(columns[-1]), size

    told = json.dumps(content, separators=(",", ":"), default=put).encode()
    parts: list[bytes | memoryview] = [told, b"\n", *columns]
    crc = 0
    for part in parts:
        crc = zlib.crc32(part, crc)
    return [_head(crc), *parts]


def _head(crc: int) -> bytes:
    return b"%s %08x\n" % (_FORMAT, crc)


def unpacked(data: bytes) -> tuple[dict[str, Any] | None, memoryview]:
    """Return what a cache holds, and its columns; None if torn, changed, or of another version."""
    begin = data.find(b"\n") + 1
    if data[:begin] != _head(zlib.crc32(memoryview(data)[begin:])):
        return _NOTHING
    end = data.index(b"\n", begin)
    return parse(data[begin:end], len(data)), memoryview(data)[end + 1 :]


_NOTHING = None, memoryview(b"")
