"""The history of a branch, indexed: which commit gave a path its content, which one did a task.

The index lies in `.git/yolo-fs/index.db`, extended by whoever reads further, and cut back where
the branch was rewritten. Each commit has a *position*: its place on the first-parent line of the
branch, or that of the merge that brought it. What a commit of that line contains are the commits
whose position is not beyond its own, so one index answers for each of them. For a tip that is not
the branch's, and wherever the file cannot be used, the same tables are filled in memory. Every
answer is a function of the history alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.naming import WARNINGS, alike, purpose_of, undone_by, without_ticket
from yolo_fs.evidence.facts import NOWHERE, SourceCommit, touches
from yolo_fs.git.history import (
    LoggedCommit,
    has_trees,
    log_of_line,
    log_parents_first,
    main_line,
)
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.workflow import PHASE_COMPLETE
from yolo_fs.system.database import Database, DatabaseError, in_memory, is_damage
from yolo_fs.system.files import Content, read
from yolo_fs.workspace import INDEX_LAYOUT, open_index

_NEAR = 300
"""First parents that are followed one by one to where the branch forked, before git is asked."""
_FILE_AGAIN_S = 5.0
"""How long a process does without a file that could not be used."""
_SHALLOW_BYTES = 64 * 1024 * 1024
_WHOLE = 1 << 62
"""A position that no commit is beyond. Queries compare `+position`: as a mere condition, for which
no index is used.
"""
UNDONE = "undone"
"""Kind of what a revert names."""
_TABLES = ("meta", "commits", "paths", "changes", "named")
_COMMIT = (
    "c.oid, c.at_s, c.height, c.ours, c.subject, c.changes, c.warnings, c.position from commits c"
)


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
    position: int = NOWHERE
    """Its place on the first-parent line of the branch, or that of the merge that brought it."""

    @property
    def paths(self) -> frozenset[str]:
        """What it changed."""
        return frozenset(path for _, path in self.changes)


class PathChange(NamedTuple):
    """A commit that changed a path, and when."""

    oid: str
    at_s: int
    height: int
    position: int


NO_CHANGE = PathChange("", 0, 0, NOWHERE)


class HistoryIndex:
    """What the commits up to one tip say."""

    def __init__(self, repository: Repository):
        self._repository = repository
        self._file: Database | None = None
        self._memory: Database | None = None
        self._answering: Database | None = None
        """That of the two which knows the tip."""
        self._file_again_s = 0.0
        self.reading = object()
        """Another one whenever history was rewritten."""
        self._tip = ""
        self._at = _WHOLE
        """Position of the tip."""
        self._is_last = True
        """Whether nothing beyond the tip is known."""
        self._others: tuple[str, ...] = ()
        """The tips that `read_beyond` has read up to."""
        self._last: dict[str, PathChange] = {}
        """Path → its last change up to the tip, where somebody has asked."""
        repository.ends_with_it(self)

    @property
    def tip(self) -> str:
        """The commit up to which it was read; empty before the first."""
        return self._tip

    def take_over(self, kept: HistoryIndex) -> bool:
        """Begin with what another index of the same repository has read, and return whether that
        can be done.
        """
        if kept._answering is None or kept._answering is not kept._file:
            return False
        self.reading, self._tip, self._at = kept.reading, kept._tip, kept._at
        self._is_last, self._last = kept._is_last, dict(kept._last)
        return True

    # --- reading ---

    def read_up_to(self, tip: str) -> None:
        """Take in what is new up to `tip`, and answer for it from now on.

        Raises:
            YoloError: git cannot tell the history.
        """
        if tip == self._tip and self._answering is not None and self._answering.is_current:
            return
        self._retried(lambda: self._read_up_to(tip))

    def _read_up_to(self, tip: str) -> None:
        before, at = self._tip, self._at
        self._tip, self._answering = "", None
        for database in filter(None, (self._opened_file(), self._memory)):
            database.end()
            database.begin()
            place = self._place_of(database, tip)
            if place is not None:
                break
            database.end()
        else:
            database, place = self._extended(tip)
            database.begin()
        goes_on = bool(before) and place >= at and self._place_of(database, before) == at
        self._answering, self._tip, self._at = database, tip, place
        beyond = database.rows("select 1 from commits where position > ? limit 1", place)
        self._is_last = not beyond
        if not goes_on:
            self._last = {}
            self.reading = object() if before else self.reading
            return
        changed = database.rows("select changes from commits where position > ?", at)
        for path in (path for told in changed for _, path in _changes_in(told[0])):
            self._last.pop(path, None)

    def read_beyond(self, tip: str, others: Sequence[str], *, goes_on: bool) -> None:
        """Take in what other tips have and `tip` has not; positions tell nothing of it.

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
            self._memory = self._answering = in_memory(INDEX_LAYOUT) if others else None
            self._last, self.reading = {}, object()
        if self._memory is not None:
            self._answering = self._memory
            with self._memory.writing():
                _Writer(self._memory, None).take(fresh)
        self._last, self._others = {}, tuple(others)

    def keep(self) -> None:
        """Let others change what this process no longer asks for: what was read is kept already."""
        for database in filter(None, (self._file, self._memory)):
            database.end()

    def rest(self) -> None:
        """Leave the index as the next process wants to find it: for one that lives long."""
        self.keep()
        if self._file is not None:
            self._file.tidy()

    def close(self) -> None:
        """End what is open."""
        for database in filter(None, (self._file, self._memory)):
            database.close()
        self._file = self._memory = self._answering = None

    # --- questions ---

    def position_of(self, commit: str) -> int:
        """Return the place of a commit on the first-parent line of the branch, or that of the merge
        that brought it: what came later has a greater one. -1 for what the branch does not have.
        """
        found = self._rows("select position from commits where oid = ? and +position <= ?", commit)
        return int(found[0][0]) if found else NOWHERE

    def commit(self, name: str) -> SourceCommit | None:
        """Return the one commit of this history that an abbreviated hash names, or None."""
        if not name or not set(name) <= set("0123456789abcdef"):
            return None
        asked = f"select {_COMMIT} where c.oid >= ? and c.oid < ? and +c.position <= ? limit 2"
        named = self._commits(asked, name, name + "g")
        if len(named) != 1:
            return None
        (only,) = named
        paths = only.paths
        return SourceCommit(only.oid, only.subject, paths, only.at_s, only.position)

    def at_s(self, oid: str) -> int:
        """Return when a commit of this history was made, seconds since the epoch; 0 for another."""
        found = self._rows("select at_s from commits where oid = ? and +position <= ?", oid)
        return int(found[0][0]) if found else 0

    def height(self, oid: str) -> int:
        """Return how far from a root a commit is: what came after it is higher; 0 for none."""
        found = self._rows("select height from commits where oid = ? and +position <= ?", oid)
        return int(found[0][0]) if found else 0

    def last_change(self, path: str) -> PathChange:
        """Return the last commit that changed a path below the planning root; an empty one without
        any.
        """
        if path not in self._last:
            asked = (
                "select c.oid, c.at_s, c.height, c.position from changes h"
                " join paths p on p.id = h.path join commits c on c.row = h.row"
                " where p.path = ? and +c.position <= ?"
                " order by h.height desc, h.at_s desc, c.oid desc limit 1"
            )
            found = self._rows(asked, _bytes(path))
            self._last[path] = PathChange(*found[0]) if found else NO_CHANGE
        return self._last[path]

    def of_task(self, task: str) -> str:
        """Return the last commit whose subject names a task, `NN-MM/Tk`; nothing when none does."""
        return self._last_named("task", task)

    def has_undone(self) -> bool:
        """Return whether anything was reverted at all."""
        return bool(self._rows("select 1 from named where kind = 'undone' and ? >= 0 limit 1"))

    def undoing(self, plan: str, task: str, words: str) -> tuple[str, int]:
        """Return the commit that reverted what did a task, and its place; nothing where the task
        was never done, or was done again. `words`: what the plan says of it.
        """
        names = (("task", f"{plan}/{task}", ""), ("work", plan, alike(words)))
        last = [
            self._last_of((kind, UNDONE), *key) for kind, *key in names if kind == "task" or key[1]
        ]
        found = [one for one in last if one]
        if not found or any(kind != UNDONE for kind, _ in found):
            return "", NOWHERE
        return found[0][1], self.position_of(found[0][1])

    def of_task_touching(self, task: str, files: Set[str]) -> str:
        """Return the last commit that names a task and touches a file, or what lies below one."""
        asked = (
            f"select {_COMMIT} join named n on n.row = c.row"
            " where n.kind in ('task', 'undone') and n.key = ? and +c.position <= ?"
            " order by n.height desc, n.at_s desc, c.oid desc"
        )
        named = self._commits(asked, task)
        last = next((one for one in named if touches(files, one.paths)), None)
        return last.oid if last and not undone_by(last.subject)[1] else ""

    def tasks_done(self) -> frozenset[str]:
        """Return the tasks, `NN-MM/Tk`, that a subject names."""
        asked = (
            "select n.key, n.kind from named n join commits c on c.row = n.row"
            " where n.kind in ('task', 'undone') and +c.position <= ?"
            " order by n.height, n.at_s, c.oid"
        )
        return frozenset(key for key, kind in dict(self._rows(asked)).items() if kind == "task")

    def of_words(self, plan: str, words: str) -> str:
        """Return the last source commit of a plan that says just these words; empty without one."""
        wanted = alike(words)
        return self._last_named("work", plan, wanted) if wanted else ""

    def steps_said(self) -> dict[str, str]:
        """Return `NN step` → the last commit whose subject says that it records that step."""
        asked = (
            "select n.key, c.oid from named n join commits c on c.row = n.row"
            " where n.kind = 'step' and +c.position <= ? order by n.height, n.at_s, c.oid"
        )
        return dict(self._rows(asked))

    def sign_off_of(self, phase: int) -> str:
        """Return the commit that recorded the sign-off of a phase; nothing when there is none."""
        return self._last_named("signoff", str(phase))

    def past_of(self, path: str, after: PathChange = NO_CHANGE) -> list[PathChange]:
        """Return the commits that changed a path below the planning root, oldest first. `after`:
        only later ones than this.
        """
        asked = (
            "select c.oid, c.at_s, c.height, c.position from changes h"
            " join paths p on p.id = h.path join commits c on c.row = h.row"
            " where p.path = ? and (h.height, h.at_s, c.oid) > (?, ?, ?) and +c.position <= ?"
            " order by h.height, h.at_s, c.oid"
        )
        values = _bytes(path), after.height, after.at_s, after.oid
        return [PathChange(*row) for row in self._rows(asked, *values)]

    def mark_of(self, path: str) -> tuple[str, int]:
        """Return what is another value whenever `past_of` may say something else: the last change,
        and how many there are.
        """
        last = self.last_change(path)
        if self._is_last:
            found = self._rows("select count from paths where path = ? and ? >= 0", _bytes(path))
        else:
            asked = (
                "select count(*) from changes h join paths p on p.id = h.path"
                " join commits c on c.row = h.row where p.path = ? and +c.position <= ?"
            )
            found = self._rows(asked, _bytes(path))
        return last.oid, found[0][0] if found else 0

    def work_on(self, plan: str) -> tuple[IndexedCommit, ...]:
        """Return the commits whose scope names a plan, oldest first."""
        asked = (
            f"select {_COMMIT} join named n on n.row = c.row"
            " where n.kind = 'work' and n.key = ? and +c.position <= ?"
            " order by c.height, c.at_s, c.oid"
        )
        return tuple(self._commits(asked, plan))

    def mark_of_work(self, plan: str) -> object:
        """Return what is another value whenever `work_on` may say something else."""
        asked = (
            "select count(*), max(c.position), max(c.height) from named n"
            " join commits c on c.row = n.row"
            " where n.kind = 'work' and n.key = ? and +c.position <= ?"
        )
        return self.reading, tuple(self._rows(asked, plan))

    def last_of_ours(self, count: int) -> tuple[IndexedCommit, ...]:
        """Return the latest coordination commits, newest first; `count`: so many at most."""
        return self._newest("c.ours", count)

    def last_of_source(self, count: int) -> tuple[IndexedCommit, ...]:
        """Return the latest commits that no coordinator made, newest first."""
        return self._newest("not c.ours", count)

    def last(self, count: int) -> tuple[IndexedCommit, ...]:
        """Return the latest commits of all, newest first."""
        return self._newest("1", count)

    def _newest(self, condition: str, count: int) -> tuple[IndexedCommit, ...]:
        asked = (
            f"select {_COMMIT} where {condition} and +c.position <= ?"
            f" order by c.height desc, c.at_s desc, c.oid desc limit {count:d}"
        )
        return tuple(self._commits(asked))

    def touches(self, folder: str) -> dict[str, list[PathChange]]:
        """Return path → each coordination commit that changed what lies in a folder, oldest first.
        A path whose last change somebody else committed has that commit as well.
        """
        asked = (
            "select p.path, c.ours, c.oid, c.at_s, c.height, c.position"
            " from paths p join changes h on h.path = p.id join commits c on c.row = h.row"
            " where p.path >= ? and p.path < ? and +c.position <= ?"
            " order by p.path, h.height, h.at_s, c.oid"
        )
        found: dict[str, list[PathChange]] = {}
        below = _bytes(f"{folder}/"), _bytes(f"{folder}0")
        for name, changes in groupby(self._rows(asked, *below), key=itemgetter(0)):
            every = list(changes)
            counted = [row for row in every[:-1] if row[1]] + every[-1:]
            found[_text(name)] = [PathChange(*row[2:]) for row in counted]
        return found

    def of_others_in(self, folder: str) -> tuple[IndexedCommit, ...]:
        """Return the commits that no coordinator made and that changed what lies in a folder below
        the planning root, newest first.
        """
        asked = (
            f"select distinct {_COMMIT} join changes h on h.row = c.row"
            " join paths p on p.id = h.path"
            " where p.path >= ? and p.path < ? and not c.ours and +c.position <= ?"
            " order by c.height desc, c.at_s desc, c.oid desc"
        )
        return tuple(self._commits(asked, _bytes(f"{folder}/"), _bytes(f"{folder}0")))

    def warnings(self) -> dict[str, int]:
        """Return the artifacts whose last version had warnings, and how many."""
        told = self._rows("select changes from commits where warnings > 0 and +position <= ?")
        paths = {path for (changes,) in told for _, path in _changes_in(changes)}
        asked = "select warnings from commits where oid = ? and +position <= ?"
        found = {path: self._rows(asked, self.last_change(path).oid) for path in sorted(paths)}
        return {path: rows[0][0] for path, rows in found.items() if rows and rows[0][0]}

    def _last_named(self, kind: str, key: str, words: str = "") -> str:
        found = self._last_of((kind, UNDONE), key, words)
        return found[1] if found and found[0] == kind else ""

    def _last_of(self, kinds: tuple[str, str], key: str, words: str) -> tuple[str, str] | None:
        asked = (
            "select n.kind, c.oid from named n join commits c on c.row = n.row"
            " where n.kind in (?, ?) and n.key = ? and n.words = ? and +c.position <= ?"
            " order by n.height desc, n.at_s desc, c.oid desc limit 1"
        )
        return next(iter(self._rows(asked, *kinds, key, _bytes(words))), None)

    def _commits(self, query: str, *values: object) -> list[IndexedCommit]:
        return [
            IndexedCommit(
                oid, at_s, height, bool(ours), _text(subject), _changes_in(told), warnings, position
            )
            for oid, at_s, height, ours, subject, told, warnings, position in self._rows(
                query, *values
            )
        ]

    def _rows(self, query: str, *values: object) -> list[Any]:
        """Return what a query finds whose last value is the position of the tip."""
        if not self._tip and not self._others:
            return []

        def found() -> list[Any]:
            if not self._others:
                self._resume()
            database = self._answering
            return database.rows(query, *values, self._at) if database else []

        answer: list[Any] = self._retried(found)
        return answer

    def _resume(self) -> None:
        """Answer from the moment of the tip again, whatever others have written meanwhile."""
        database = self._answering
        if database is not None and database.is_reading and database is not self._file:
            return
        if database is not None and database.is_current:
            if database.is_reading:
                return
            database.begin()
            if self._place_of(database, self._tip) == self._at:
                return
        self._read_up_to(self._tip)

    def _retried(self, ask: Callable[[], Any]) -> Any:
        """Return an answer; where the file fails, that of the same tables in memory."""
        try:
            return ask()
        except DatabaseError as error:
            if self._file is None:
                raise
            self._leave_file(error)
            if self._tip:
                self._read_up_to(self._tip)
            return ask()

    # --- what artifacts say ---

    def kept_artifacts(self) -> list[tuple[bytes, str, int, str]]:
        """Return what an earlier process has left: path, basis, whether it is valid, its lines."""
        try:
            return self._file.rows("select * from artifacts") if self._file else []
        except DatabaseError as error:
            self._leave_file(error)
            return []

    def keep_artifacts(
        self, told: list[tuple[bytes, str, bool, str]], present: Iterable[bytes]
    ) -> bool:
        """Leave such rows to the next process, and return whether that could be done. `present`:
        the paths of all that is known; what is kept of others goes.
        """
        if self._file is None or not self._file.is_current:
            return False
        try:
            with self._file.writing():
                known = {path for (path,) in self._file.rows("select path from artifacts")}
                gone = [(path,) for path in known.difference(present)]
                self._file.many("delete from artifacts where path = ?", gone)
                self._file.many("insert or replace into artifacts values (?, ?, ?, ?)", told)
        except DatabaseError as error:
            self._leave_file(error)
            return False
        return True

    # --- the tables ---

    def _leave_file(self, error: DatabaseError | None = None) -> None:
        if self._file is not None:
            if error is not None and is_damage(error):
                self._file.discard()
            self._file.close()
        if self._answering is self._file:
            self._answering = None
        self._file = None
        self._file_again_s = time.monotonic() + _FILE_AGAIN_S if error is not None else 0.0

    def _opened_file(self) -> Database | None:
        if self._file is not None and not self._file.is_current:
            self._leave_file()
        if self._file is None and time.monotonic() >= self._file_again_s:
            self._file = open_index(self._repository)
            if self._file is None:
                self._file_again_s = time.monotonic() + _FILE_AGAIN_S
        return self._file

    def _place_of(self, database: Database, oid: str) -> int | None:
        """Return the position of a commit of the first-parent line; None for any other, and where
        a shallow or partial clone has got more.
        """
        asked = (
            "select position from commits c where oid = ? and height ="
            " (select max(height) from commits d where d.position = c.position)"
        )
        found = database.rows(asked, oid)
        if not found or database.rows("select value from meta where key = 'end'") != [
            (self._cut_off(),)
        ]:
            return None
        lacking = database.rows("select value from meta where key = 'lacks'")
        if lacking and has_trees(self._repository, lacking[0][0]):
            return None  # what a partial clone lacked has come
        return int(found[0][0])

    def _extended(self, tip: str) -> tuple[Database, int]:
        """Return the tables that know a tip, once what is new was entered, and its position."""
        if self._file is not None and tip == self._repository.head().tip:
            return self._file, self._extend(self._file, tip)
        if self._memory is None:
            made = self._file.copy if self._file is not None else in_memory
            self._memory = made(INDEX_LAYOUT)
        return self._memory, self._extend(self._memory, tip)

    def _extend(self, database: Database, tip: str) -> int:
        with database.writing():
            place = self._place_of(database, tip)
            if place is not None:  # another process was quicker
                return place
            fork, at = self._fork(database, tip)
            end = self._cut_off()
            writer = _Writer(database, at)
            writer.cut(at)
            fresh: Iterable[LoggedCommit] | None
            fresh = None if end else log_of_line(self._repository, fork, tip)
            if fresh is None:
                selection = f"{fork}..{tip}" if fork else tip
                fresh = log_parents_first(self._repository, selection)
            writer.take(fresh)
            writer.place(tip)
            database.rows("insert or replace into meta values ('end', ?)", end)
            if writer.lacks:
                database.rows("insert or ignore into meta values ('lacks', ?)", writer.lacks)
            return writer.position_of(tip)

    def _fork(self, database: Database, tip: str) -> tuple[str, int]:
        """Return where the first-parent line of a tip leaves that of the tables; none for all."""
        if not database.rows("select 1 from commits limit 1"):
            return "", NOWHERE
        oid = tip
        for _ in range(_NEAR):
            parents = self._repository.parents(oid)
            if not parents:
                return "", NOWHERE
            oid = parents[0]
            if (place := self._place_of(database, oid)) is not None:
                return oid, place
        for oid in reversed(main_line(self._repository, tip)):
            if (place := self._place_of(database, oid)) is not None:
                return oid, place
        return "", NOWHERE

    def _cut_off(self) -> str:
        """Return where a shallow clone ends; empty for a whole one."""
        found = read(self._repository.common_dir, "shallow", _SHALLOW_BYTES)
        return found.data.decode("utf-8", "replace") if isinstance(found, Content) else ""


class _Writer:
    """Enters commits, parents first."""

    def __init__(self, database: Database, after: int | None):
        """`after`: position of the commit that they come after; None for what has no position."""
        self._database = database
        self._after = after
        ((most,),) = database.rows("select coalesce(max(row), 0) from commits")
        self._first = self._row = int(most) + 1
        self._before: tuple[str, int, int] = ("", 0, 0)
        """Name, row and height of the commit that was entered last."""
        self._odd: dict[int, tuple[int, ...]] = {}
        """Row → rows of its parents, unless the only one is the commit entered before."""
        self._paths: dict[str, int] = {}
        self.lacks = ""
        """The first commit whose changes this clone cannot tell."""

    def cut(self, at: int) -> None:
        """Take out the commits beyond a position: the branch has left them."""
        ask = self._database.rows
        if not ask("select 1 from commits where position > ? limit 1", at):
            return
        if at < 0:
            for table in _TABLES:
                ask(f"delete from {table}")
        else:
            beyond = "(select row from commits where position > ?)"
            for table in ("changes", "named"):
                ask(f"delete from {table} where row in {beyond}", at)
            ask("delete from commits where position > ?", at)
            ask("update paths set count = (select count(*) from changes c where c.path = paths.id)")
        ((most,),) = ask("select coalesce(max(row), 0) from commits")
        self._first = self._row = int(most) + 1

    def take(self, commits: Iterable[LoggedCommit]) -> None:
        """Enter commits. One that is there already is left as it is."""
        for commit in commits:
            self._take(commit)

    def place(self, tip: str) -> None:
        """Give each commit its position, where it was not one line that was entered."""
        if not self._odd or self._after is None:
            return
        line, row = [], self._entered(tip)[0]
        while row >= self._first:
            line.append(row)
            row = next(iter(self._parents(row)), 0)
        places: dict[int, int] = {}
        for position, first in enumerate(reversed(line), self._after + 1):
            waiting = [first]
            while waiting:
                row = waiting.pop()
                if row >= self._first and row not in places:
                    places[row] = position
                    waiting += self._parents(row)
        moved = [(position, row) for row, position in places.items()]
        self._database.many("update commits set position = ? where row = ?", moved)

    def position_of(self, oid: str) -> int:
        """Return the position of a commit that was entered."""
        ((position,),) = self._database.rows("select position from commits where oid = ?", oid)
        return int(position)

    def _parents(self, row: int) -> tuple[int, ...]:
        return self._odd.get(row, (row - 1,))

    def _entered(self, oid: str) -> tuple[int, int]:
        """Return row and height of a commit; zeros for one that is not there."""
        if oid == self._before[0]:
            return self._before[1:]
        found = self._database.rows("select row, height from commits where oid = ?", oid)
        return found[0] if found else (0, 0)

    def _take(self, commit: LoggedCommit) -> None:
        ask, row = self._database.rows, self._row
        if not commit.is_known:
            self.lacks = self.lacks or commit.oid
        if self._after is None and self._entered(commit.oid)[0]:
            return
        parents = [self._entered(parent) for parent in commit.parents]
        if [parent for parent, _ in parents] != ([row - 1] if row > 1 else []):
            self._odd[row] = tuple(parent for parent, _ in parents)
        height = 1 + max((height for _, height in parents), default=0)
        position = NOWHERE if self._after is None else self._after + 1 + row - self._first
        told = dict(commit.trailers).get(WARNINGS, "")
        warnings = int(told) if commit.is_ours and told.isdecimal() and len(told) < 10 else 0
        changes = b"\0".join(_bytes(letter + path) for letter, path in commit.changes)
        ask(
            "insert into commits values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            row, commit.oid, commit.at_s, height, position, commit.is_ours, warnings,
            _bytes(commit.subject), changes,
        )  # fmt: skip
        for _, path in commit.changes:
            if path.startswith(f"{PLANNING_ROOT}/"):
                number = self._path(path)
                ask("insert into changes values (?, ?, ?, ?)", number, height, commit.at_s, row)
        for kind, key, words in _names_in(commit):
            values = kind, key, _bytes(words), height, commit.at_s, row
            ask("insert or ignore into named values (?, ?, ?, ?, ?, ?)", *values)
        self._before = commit.oid, row, height
        self._row += 1

    def _path(self, path: str) -> int:
        ((number,),) = self._database.rows(
            "insert into paths(path, count) values (?, 1)"
            " on conflict(path) do update set count = count + 1 returning id",
            _bytes(path),
        )
        return int(number)


def _names_in(commit: LoggedCommit) -> Iterator[tuple[str, str, str]]:
    """Yield kind, key and words of each thing that the subject of a commit names. What a revert
    names is undone by it.
    """
    subject, is_undone = undone_by(commit.subject)
    if purpose := purpose_of(subject):
        words = "" if purpose.task else purpose.words
        if purpose.plan and not purpose.step and not commit.is_ours:
            yield "work", str(purpose.plan), "" if is_undone else words
        if purpose.task:
            yield UNDONE if is_undone else "task", str(purpose.task), ""
        elif purpose.plan and words and is_undone:
            yield UNDONE, str(purpose.plan), words
        elif purpose.step and not is_undone:
            yield "step", f"{purpose.phase} {purpose.step}", ""
    gaps = PHASE_COMPLETE.match(without_ticket(subject))
    state = f"{PLANNING_ROOT}/state.json"
    if gaps and (not commit.is_known or any(path == state for _, path in commit.changes)):
        yield UNDONE if is_undone else "signoff", str(int(gaps["N"])), ""


@lru_cache(maxsize=4096)
def _changes_in(told: bytes) -> tuple[tuple[str, str], ...]:
    return tuple((each[:1], each[1:]) for each in _text(told).split("\0")) if told else ()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
