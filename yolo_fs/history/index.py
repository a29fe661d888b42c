"""Index of a branch's history: which commit gave a path its content, which one did a task.

The index is stored in `.git/yolo-fs/index.db`. Every process that reads further extends it, and it
is cut back where the branch was rewritten. Each commit has a *position*, after all its ancestors:
what a merge brings lies between the line of the branch before it and the merge, each line of it in
its own order. A commit of the first-parent line of the branch contains exactly the commits whose
position is not beyond its own, so one index serves all of them. *Joined* is the position of the
commit of that line with which a commit came to the branch. *Unseen* are the positions before its
own that are not among its ancestors: what the branch got meanwhile.
For a tip that is not on the branch, and wherever the file cannot be used, the same tables are
filled in memory. Every answer is a function of the history alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from yolo_fs.artifacts.classify import PROJECT_STATE, classify
from yolo_fs.artifacts.naming import alike, purpose_of, undone_by, without_ticket
from yolo_fs.evidence.facts import NOWHERE, SourceCommit, touches
from yolo_fs.git.history import LoggedCommit, has_trees, log_of_line, log_parents_first, main_line
from yolo_fs.git.repository import Repository
from yolo_fs.history.index_writer import UNDONE, IndexWriter, names_in
from yolo_fs.history.stored import Spans, read_changes, read_spans, to_bytes, to_text
from yolo_fs.system.database import Database, DatabaseError, in_memory, is_damage
from yolo_fs.system.files import Content, read
from yolo_fs.workspace.own_files import INDEX_LAYOUT, open_index

_NEAR = 300
"""First parents that are followed one by one to the fork, before git is asked."""
_FILE_AGAIN_S = 5.0
"""Time before a file that could not be used is tried again, seconds."""
_SHALLOW_BYTES = 64 * 1024 * 1024
_WHOLE = 1 << 62
"""A position beyond every commit's.
Queries compare `+position`, so that no index is used for this condition.
"""
_Answer = TypeVar("_Answer")
_PATH_CHANGE = (
    "c.oid, c.at_s, c.position, c.subject, c.changes from changes h"
    " join paths p on p.id = h.path join commits c on c.row = h.row"
)
_LACKING = "select value from meta where key = 'lacks'"
_OLDEST_FIRST = "c.position, c.row"
"""Without positions, the order of insertion: parents first."""
_NEWEST_FIRST = "c.position desc, c.row desc"
_COMMIT = "c.oid, c.at_s, c.ours, c.subject, c.changes, c.position, c.own from commits c"
_SAID = "coalesce(n.said, c.subject)"
_NAMING = f"c.oid, {_SAID}, c.row, n.taken"
_NAMING_COMMIT = (
    f"c.oid, c.at_s, c.ours, {_SAID}, c.changes, c.position, c.own"
    " from commits c join named n on n.row = c.row"
)
"""With the subject as which it counts: a revert of a merge is one of each that it brought."""
_IN_ORDER = f"{_OLDEST_FIRST}, n.nth"
_NAMINGS = (
    f"select {_NAMING} from named n join commits c on c.row = n.row"
    " where n.kind in (?, ?) and n.key = ? and n.words = ? and +c.position <= ?"
    f" order by {_IN_ORDER}"
)


class IndexedCommit(NamedTuple):
    """One commit as stored in the index."""

    oid: str
    at_s: int
    """Committer time, seconds since the epoch."""
    is_ours: bool
    """Whether a coordinator made it."""
    subject: str
    changes: tuple[tuple[str, str], ...]
    """(status letter, path) of each path that differs from the first parent."""
    position: int = NOWHERE
    """Its place in the order of the branch."""
    own_changes: tuple[tuple[str, str], ...] | None = None
    """Those that a merge made, and did not bring; None for other commits."""

    @property
    def paths(self) -> frozenset[str]:
        """The paths that it changed."""
        return frozenset(path for _, path in self.changes)

    @property
    def own_paths(self) -> frozenset[str]:
        """The paths that it changed, and no commit that it merged."""
        own = self.changes if self.own_changes is None else self.own_changes
        return frozenset(path for _, path in own)


class PathChange(NamedTuple):
    """A commit that changed a path, and when."""

    oid: str
    at_s: int
    position: int
    subject: bytes = b""
    path: str = ""
    former: str = ""
    """The path of the same artifact that the commit removed; empty if it moved none."""

    @property
    def is_restoring(self) -> bool:
        """Whether git made it to take a commit back, or to do it again."""
        subject = without_ticket(to_text(self.subject))
        return undone_by(subject)[0] != subject


NO_CHANGE = PathChange("", 0, NOWHERE)


class HistoryIndex:
    """Answers questions about the commits up to one tip."""

    def __init__(self, repository: Repository):
        self._repository = repository
        self._file: Database | None = None
        self._memory: Database | None = None
        self._answering: Database | None = None
        """The one of the two that contains the tip."""
        self._is_in_file = False
        """Whether the file contains the tip, or did when this index was closed."""
        self._file_again_s = 0.0
        self.reading = object()
        """Replaced whenever history was rewritten."""
        self.lacks_trees = False
        """Whether this clone cannot tell what some commit changed."""
        self.tip = ""
        """The commit up to which it was read; empty before the first."""
        self._at = _WHOLE
        """Position of the tip."""
        self._is_last = True
        """Whether nothing beyond the tip is known."""
        self._others: tuple[str, ...] = ()
        """The tips that `read_beyond` has read up to."""
        self._last: dict[str, PathChange] = {}
        """Path → its last change up to the tip, as far as it was queried."""
        self._placed: dict[int, IndexedCommit] = {}
        """Position → the commit that has it, as far as it was queried."""
        self._joined: dict[int, int] = {}
        """Position of what a merge brought → that of the commit of the branch's own line with which
        it came, for those up to `_joined_to`.
        """
        self._joined_to = NOWHERE
        self._unseen: dict[int, Spans] = {}
        """Position of what a merge brought → the positions before it that it did not contain."""
        self._by_name: dict[str, dict[object, Any]] = {}
        """Task or plan → question → answer that rests on the commits that name it."""
        repository.ends_with_it(self)

    def take_over(self, kept: HistoryIndex) -> bool:
        """Start with what another index of this repository has read; return whether it worked."""
        if not kept._is_in_file:
            return False
        self.reading, self.tip, self._at = kept.reading, kept.tip, kept._at
        self._is_last, self._last = kept._is_last, dict(kept._last)
        self._by_name = dict(kept._by_name)
        return True

    # --- reading ---

    def read_up_to(self, tip: str) -> None:
        """Index the commits up to `tip`, and answer for that tip from now on.

        Raises:
            YoloError: git cannot tell the history.
        """
        if tip == self.tip and self._answering is not None and self._answering.is_current:
            return
        self._retried(lambda: self._read_up_to(tip))

    def _read_up_to(self, tip: str) -> None:
        before, at = self.tip, self._at
        self.tip, self._answering, self._is_in_file = "", None, False
        for database in filter(None, (self._open_file(), self._memory)):
            database.end()
            database.begin()
            place = self._place_of(database, tip)
            if place is not None:
                break
            database.end()
        else:
            database, place = self._extend_to(tip)
            database.begin()
        goes_on = bool(before) and place >= at and self._place_of(database, before) == at
        self._answering, self.tip, self._at = database, tip, place
        self._is_in_file = database is self._file
        self.lacks_trees = bool(database.rows(_LACKING))
        beyond = database.rows("select 1 from commits where position > ? limit 1", place)
        self._is_last = not beyond
        if not goes_on:
            self._last, self._by_name, self._placed = {}, {}, {}
            self._joined, self._joined_to, self._unseen = {}, NOWHERE, {}
            self.reading = object() if before else self.reading
            return
        query = "select subject, ours, changes from commits where position > ?"
        for subject, is_ours, changes in database.rows(query, at):
            for _, path in read_changes(changes):
                self._last.pop(path, None)
            for _, key, _ in names_in(to_text(subject), is_ours=is_ours):
                self._by_name.pop(key, None)
        query = (
            "select n.key from named n join commits c on c.row = n.row"
            " where n.said is not null and c.position > ?"
        )
        for (key,) in database.rows(query, at):
            self._by_name.pop(key, None)

    def read_beyond(self, tip: str, others: Sequence[str], *, goes_on: bool) -> None:
        """Index the commits of other tips that `tip` lacks; their positions have no meaning.

        `goes_on`: `tip` has all that it had at the last call, so only new commits are read, unless
        one of the others was rewritten. Commits that `tip` has got meanwhile stay.
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
                IndexWriter(self._memory, None).take(fresh)
        self._last, self._by_name, self._others = {}, {}, tuple(others)

    def keep(self) -> None:
        """End the read transaction, so that others may write; what was read is stored already."""
        for database in filter(None, (self._file, self._memory)):
            database.end()

    def rest(self) -> None:
        """Tidy the index up for the next process; used by a process that lives long."""
        self.keep()
        if self._file is not None:
            self._file.tidy()

    def close(self) -> None:
        """Close the databases."""
        for database in filter(None, (self._file, self._memory)):
            database.close()
        self._file = self._memory = self._answering = None

    # --- questions ---

    def position_of(self, commit: str) -> int:
        """Return the position of a commit; later ones have a greater one. -1 if the branch lacks
        it.
        """
        rows = self._rows("select position from commits where oid = ? and +position <= ?", commit)
        return int(rows[0][0]) if rows else NOWHERE

    def has_brought(self, position: int, paths: Set[str]) -> bool:
        """Return whether the branch changed in one of the paths where what has a position came to
        it. A merge brings nothing that the branch had before, such as by a squash, or that it does
        not take.
        """
        if self.joined_at(position) == position:
            return True
        brought_by = self.brought_by(position)
        return brought_by is None or not brought_by.paths.isdisjoint(paths)

    def brought_by(self, position: int) -> IndexedCommit | None:
        """Return the commit of the branch's own line with which what has a position came to it;
        None where history was rewritten meanwhile.
        """
        return self.commit_at(self.joined_at(position))

    def commit_at(self, position: int) -> IndexedCommit | None:
        """Return the commit that has a position; None where history was rewritten meanwhile."""
        if position not in self._placed:
            query = f"select {_COMMIT} where c.position = ? and c.position <= ?"
            for commit in self._commits(query, position):
                self._placed[position] = commit
        return self._placed.get(position)

    def joined_at(self, position: int) -> int:
        """Return the position with which what has a position came to the branch: that of a merge
        for what it brought, else its own.
        """
        return self._read_joined().get(position, position)

    def unseen_by(self, position: int) -> Spans:
        """Return the positions before one that it does not have among its ancestors; none for the
        line of the branch.
        """
        self._read_joined()
        return self._unseen.get(position, ())

    def is_later(self, position: int, than: int) -> bool:
        """Return whether what has a position came after what has another, or beside it."""
        return position > than or self.is_beside(position, than)

    def is_beside(self, position: int, than: int) -> bool:
        """Return whether what has a position has one before another's, and is no ancestor of it."""
        return any(first <= position <= last for first, last in self.unseen_by(than))

    def _read_joined(self) -> dict[int, int]:
        query = (
            "select position, joined, unseen from commits"
            " where joined > position and position > ? and position <= ?"
        )
        while self._joined_to < self._at:
            since = self._joined_to
            rows = self._rows(query, since)
            if since == self._joined_to:  # else history was rewritten meanwhile
                for position, joined, unseen in rows:
                    self._joined[position] = joined
                    if unseen:
                        self._unseen[position] = read_spans(unseen)
                self._joined_to = self._at
        return self._joined

    def commit(self, name: str) -> SourceCommit | None:
        """Return the commit of this history with an abbreviated hash; None unless it is unique."""
        if not name or not set(name) <= set("0123456789abcdef"):
            return None
        query = f"select {_COMMIT} where c.oid >= ? and c.oid < ? and +c.position <= ? limit 2"
        named = self._commits(query, name, name + "g")
        if len(named) != 1:
            return None
        (only,) = named
        is_empty = not only.paths and not self.lacks_trees
        return SourceCommit(only.oid, only.subject, only.paths, only.at_s, is_empty)

    def at_s(self, oid: str) -> int:
        """Return when a commit of this history was made, seconds since the epoch; 0 for another."""
        rows = self._rows("select at_s from commits where oid = ? and +position <= ?", oid)
        return int(rows[0][0]) if rows else 0

    def last_change(self, path: str) -> PathChange:
        """Return the last commit that changed a path below the planning root; empty if none did."""
        if path not in self._last:
            # Without any merge, the order of insertion is that of the branch: nothing is sorted.
            first = "c.position desc, " if self._read_joined() else ""
            query = (
                f"select {_PATH_CHANGE} where p.path = ? and +c.position <= ?"
                f" order by {first}h.row desc limit 1"
            )
            rows = self._rows(query, to_bytes(path))
            self._last[path] = _path_change(path, rows[0]) if rows else NO_CHANGE
        return self._last[path]

    def of_task(self, task: str) -> str:
        """Return the last commit whose subject names a task, `NN-MM/Tk`; empty if there is none."""
        return self._find_last_named("task", task)

    def has_undone(self) -> bool:
        """Return whether anything was reverted at all."""
        query = (
            "select 1 from named n join commits c on c.row = n.row"
            " where n.kind = 'undone' and +c.position <= ? limit 1"
        )
        return bool(self._rows(query))

    def undoing(self, plan: str, task: str, words: str) -> tuple[str, int]:
        """Return the commit that reverted what did a task, and its place; nothing where the task
        was never done, or was done again. `words`: what the plan says of it.
        """
        names = (("task", f"{plan}/{task}", ""), ("work", plan, alike(words)))
        last = [self._last_of(kind, *key) for kind, *key in names if kind == "task" or key[1]]
        namings = [naming for naming in last if naming]
        if not namings or any(not naming.is_undoing for naming in namings):
            return "", NOWHERE
        return namings[0].oid, self.position_of(namings[0].oid)

    def of_task_touching(self, task: str, files: Set[str]) -> str:
        """Return the last commit that names a task and touches a file, or what lies below one."""
        return self._cached(task, frozenset(files), lambda: self._find_touching(task, files))

    def _find_touching(self, task: str, files: Set[str]) -> str:
        query = (
            f"select {_NAMING}, c.changes from named n join commits c on c.row = n.row"
            " where n.kind in ('task', 'undone') and n.key = ? and +c.position <= ?"
            f" order by {_IN_ORDER}"
        )
        rows = self._rows(query, task)
        last = _find_last(
            naming
            for *naming, changes in rows
            if touches(files, {path for _, path in read_changes(changes)})
        )
        return last.oid if last and not last.is_undoing else ""

    def tasks_done(self) -> frozenset[str]:
        """Return the tasks, `NN-MM/Tk`, that a subject names."""
        query = (
            f"select {_NAMING}, n.key from named n join commits c on c.row = n.row"
            " where n.kind in ('task', 'undone') and +c.position <= ?"
            f" order by n.key, {_IN_ORDER}"
        )
        by_task = groupby(self._rows(query), key=itemgetter(-1))
        last = {key: _find_last(naming for *naming, _ in rows) for key, rows in by_task}
        return frozenset(key for key, naming in last.items() if naming and not naming.is_undoing)

    def of_words(self, plan: str, words: str) -> str:
        """Return the last source commit of a plan with exactly these words; empty without one."""
        wanted = alike(words)
        return self._find_last_named("work", plan, wanted) if wanted else ""

    def steps_said(self) -> dict[str, str]:
        """Return `NN step` → the last commit whose subject records that step."""
        query = (
            "select n.key, c.oid from named n join commits c on c.row = n.row"
            f" where n.kind = 'step' and +c.position <= ? order by {_OLDEST_FIRST}"
        )
        return dict(self._rows(query))

    def sign_off_of(self, phase: int) -> str:
        """Return the commit that recorded the sign-off of a phase; nothing when there is none."""
        return self._find_last_named("signoff", str(phase))

    def repeated_by(self, sign_off: str, phase: int) -> tuple[str, str]:
        """Return the sign-off before one that only takes a revert back, and that revert; nothing
        for any other.
        """
        rows = self._rows(_NAMINGS, "signoff", UNDONE, str(phase), b"")
        subjects = {oid: without_ticket(to_text(subject)) for oid, subject, *_ in rows}
        own = subjects.get(sign_off, "")
        others = [(oid, undone_by(said)[1]) for oid, said in subjects.items() if oid != sign_off]
        before = next((oid for oid, is_undone in reversed(others) if not is_undone), "")
        revert = next((oid for oid, is_undone in reversed(others) if is_undone), "")
        return (before, revert) if revert and undone_by(own)[0] != own else ("", "")

    def past_of(self, path: str, after: PathChange = NO_CHANGE) -> list[PathChange]:
        """Return the commits that changed a path below the planning root, oldest first.

        `after`: only later ones than this.
        """
        query = (
            f"select {_PATH_CHANGE}"
            f" where p.path = ? and c.position > ? and +c.position <= ? order by {_OLDEST_FIRST}"
        )
        changes = self._rows(query, to_bytes(path), after.position)
        return [_path_change(path, row) for row in changes]

    def mark_of(self, path: str) -> tuple[str, int, object]:
        """Return a value that changes whenever `past_of` may: the last change, the count, and the
        reading that has their positions.
        """
        last = self.last_change(path)
        if self._is_last:
            rows = self._rows("select count from paths where path = ? and ? >= 0", to_bytes(path))
        else:
            query = (
                "select count(*) from changes h join paths p on p.id = h.path"
                " join commits c on c.row = h.row where p.path = ? and +c.position <= ?"
            )
            rows = self._rows(query, to_bytes(path))
        return last.oid, rows[0][0] if rows else 0, self.reading

    def work_on(self, plan: str, after: int = NOWHERE) -> tuple[IndexedCommit, ...]:
        """Return the commits beyond a position whose scope names a plan, oldest first; a revert of
        a merge once for each that it takes back, with its subject.
        """
        query = (
            f"select {_NAMING_COMMIT} where n.kind = 'work' and n.key = ?"
            f" and c.position > ? and +c.position <= ? order by {_IN_ORDER}"
        )
        return tuple(self._commits(query, plan, after))

    def plans_worked_on(self, phase: str) -> list[str]:
        """Return the plans of a phase, `NN-MM`, that the scope of some commit names."""
        query = (
            "select distinct key from named where kind = 'work' and key > ? and key < ? and ? >= 0"
        )
        return [plan for (plan,) in self._rows(query, f"{phase}-", f"{phase}.")]

    def is_worked_on(self, plan: str, files: Set[str]) -> bool:
        """Return whether the branch has work on a plan that no revert took back. `files`: only
        where it touches one of them; empty for any.
        """
        left: Counter[str] = Counter()
        for commit in self.work_on(plan):
            is_meant = commit.paths and (not files or touches(files, commit.paths))
            if is_meant or self.lacks_trees:
                about, is_undoing = undone_by(without_ticket(commit.subject))
                left[without_ticket(about)] += -1 if is_undoing else 1
        return any(count > 0 for count in left.values())

    def reverts_by(self, after: int) -> dict[str, list[str]]:
        """Return the commits beyond a position that take others back by name → the subjects as
        which each counts, newest first.
        """
        query = (
            "select distinct c.oid, n.nth, n.said from named n join commits c on c.row = n.row"
            " where n.said is not null and c.position > ? and +c.position <= ?"
            " order by c.row, n.nth"
        )
        reverts: dict[str, list[str]] = {}
        for oid, _, said in self._rows(query, after):
            reverts.setdefault(oid, []).append(to_text(said))
        return reverts

    def last_work(self, plan: str) -> int:
        """Return the position of the last commit whose scope names a plan; NOWHERE without one."""
        query = (
            "select max(c.position) from named n join commits c on c.row = n.row"
            " where n.kind = 'work' and n.key = ? and +c.position <= ?"
        )
        rows = self._cached(plan, "last", lambda: self._rows(query, plan))
        last = rows[0][0] if rows else None
        return NOWHERE if last is None else int(last)

    def made_by_others(self, after: int) -> list[IndexedCommit]:
        """Return the commits beyond a position that no coordinator made, oldest first."""
        query = (
            f"select {_COMMIT} where c.position > ? and not c.ours and +c.position <= ?"
            f" order by {_OLDEST_FIRST}"
        )
        return list(self._commits(query, after))

    def mark_of_work(self, plan: str) -> tuple[object, int]:
        """Return a value that changes whenever `work_on` may: the reading, and the position of the
        last commit. While the reading is the same, all that is new comes after that.
        """
        return self.reading, self.last_work(plan)

    def last_of_ours(self, count: int) -> tuple[IndexedCommit, ...]:
        """Return the latest `count` coordination commits at most, newest first."""
        return self._newest("c.ours", count)

    def last_of_source(self, count: int) -> tuple[IndexedCommit, ...]:
        """Return the latest commits that no coordinator made, newest first."""
        return self._newest("not c.ours", count)

    def last(self, count: int) -> tuple[IndexedCommit, ...]:
        """Return the latest commits of all, newest first."""
        return self._newest("1", count)

    def _newest(self, condition: str, count: int) -> tuple[IndexedCommit, ...]:
        query = (
            f"select {_COMMIT} where {condition} and +c.position <= ?"
            f" order by {_NEWEST_FIRST} limit {count:d}"
        )
        return tuple(self._commits(query))

    def touches(self, folder: str) -> dict[str, list[PathChange]]:
        """Return path → each coordination commit that changed it in a folder, oldest first.

        If somebody else made the last change of a path, that commit is included.
        """
        query = (
            "select p.path, c.ours, c.oid, c.at_s, c.position"
            " from paths p join changes h on h.path = p.id join commits c on c.row = h.row"
            " where p.path >= ? and p.path < ? and +c.position <= ?"
            f" order by p.path, {_OLDEST_FIRST}"
        )
        by_path: dict[str, list[PathChange]] = {}
        below = to_bytes(f"{folder}/"), to_bytes(f"{folder}0")
        for name, changes in groupby(self._rows(query, *below), key=itemgetter(0)):
            every = list(changes)
            counted = [row for row in every[:-1] if row[1]] + every[-1:]
            by_path[to_text(name)] = [PathChange(*row[2:]) for row in counted]
        return by_path

    def of_others_in(self, folder: str) -> tuple[IndexedCommit, ...]:
        """Return the commits that no coordinator made and that changed what lies in a folder below
        the planning root, newest first.
        """
        query = (
            f"select distinct {_COMMIT} join changes h on h.row = c.row"
            " join paths p on p.id = h.path"
            " where p.path >= ? and p.path < ? and not c.ours and +c.position <= ?"
            f" order by {_NEWEST_FIRST}"
        )
        return tuple(self._commits(query, to_bytes(f"{folder}/"), to_bytes(f"{folder}0")))

    def warnings(self) -> dict[str, int]:
        """Return the artifacts whose last version had warnings, each with their number."""
        changed = self._rows("select changes from commits where warnings > 0 and +position <= ?")
        # state.json moves along with an artifact, and has none of its warnings.
        own = ([path for _, path in read_changes(changes)] for (changes,) in changed)
        paths = {path for each in own for path in each if each == [path] or path != PROJECT_STATE}
        query = "select warnings from commits where oid = ? and +position <= ?"
        counts = {path: self._rows(query, self.last_change(path).oid) for path in sorted(paths)}
        return {path: rows[0][0] for path, rows in counts.items() if rows and rows[0][0]}

    def _find_last_named(self, kind: str, key: str, words: str = "") -> str:
        last = self._last_of(kind, key, words)
        return last.oid if last and not last.is_undoing else ""

    def _cached(self, name: str, question: object, ask: Callable[[], _Answer]) -> _Answer:
        """Return `ask()`, cached until another commit names this task or plan."""
        answers = self._by_name.setdefault(name, {})
        if question not in answers:
            answers[question] = ask()
        answer: _Answer = answers[question]
        return answer

    def _last_of(self, kind: str, key: str, words: str) -> _Naming | None:
        """Return the last commit that names a key in this way and is still done."""

        def ask() -> _Naming | None:
            return _find_last(self._rows(_NAMINGS, kind, UNDONE, key, to_bytes(words)))

        return self._cached(key, (kind, words), ask)

    def _commits(self, query: str, *values: object) -> list[IndexedCommit]:
        return [
            IndexedCommit(
                oid,
                at_s,
                bool(ours),
                to_text(subject),
                read_changes(changes),
                position,
                None if own is None else read_changes(own),
            )
            for oid, at_s, ours, subject, changes, position, own in self._rows(query, *values)
        ]

    def _rows(self, query: str, *values: object) -> list[Any]:
        """Return the rows of a query whose last parameter is the position of the tip."""
        if not self.tip and not self._others:
            return []

        def found() -> list[Any]:
            if not self._others:
                self._resume()
            database = self._answering
            return database.rows(query, *values, self._at) if database else []

        answer: list[Any] = self._retried(found)
        return answer

    def _resume(self) -> None:
        """Return to the state as of the tip, whatever others have written meanwhile."""
        database = self._answering
        if database is not None and database.is_reading and database is not self._file:
            return
        if database is not None and (database.was_just_current or database.is_current):
            if database.is_reading:
                return
            database.begin()
            if self._place_of(database, self.tip) == self._at:
                return
        self._read_up_to(self.tip)

    def _retried(self, ask: Callable[[], Any]) -> Any:
        """Return an answer; if the file fails, from the same tables in memory."""
        try:
            return ask()
        except DatabaseError as error:
            if self._file is None:
                raise
            self._leave_file(error)
            if self.tip:
                self._read_up_to(self.tip)
            return ask()

    # --- what artifacts say ---

    def kept_artifacts(self) -> list[tuple[bytes, str, int, str]]:
        """Return rows stored by an earlier process: path, basis, validity, lines."""
        try:
            return self._file.rows("select * from artifacts") if self._file else []
        except DatabaseError as error:
            self._leave_file(error)
            return []

    def keep_artifacts(
        self, rows: list[tuple[bytes, str, bool, str]], present: Iterable[bytes]
    ) -> bool:
        """Store such rows for the next process; return whether that worked.

        `present`: the paths of all known artifacts; rows of others are deleted.
        """
        if self._file is None or not self._file.is_current:
            return False
        try:
            with self._file.writing():
                known = {path for (path,) in self._file.rows("select path from artifacts")}
                gone = [(path,) for path in known.difference(present)]
                self._file.many("delete from artifacts where path = ?", gone)
                self._file.many("insert or replace into artifacts values (?, ?, ?, ?)", rows)
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

    def _open_file(self) -> Database | None:
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
        rows = database.rows(
            "select position from commits where oid = ? and joined = position", oid
        )
        if not rows or database.rows("select value from meta where key = 'end'") != [
            (self._cut_off(),)
        ]:
            return None
        lacking = database.rows(_LACKING)
        if lacking and has_trees(self._repository, lacking[0][0]):
            return None  # what a partial clone lacked has come
        return int(rows[0][0])

    def _extend_to(self, tip: str) -> tuple[Database, int]:
        """Return the tables that contain a tip, after indexing what is new, and its position."""
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
            fork, at = self._find_fork(database, tip)
            end = self._cut_off()
            writer = IndexWriter(database, at)
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

    def _find_fork(self, database: Database, tip: str) -> tuple[str, int]:
        """Return commit and position where the first-parent line of a tip leaves the tables.

        They are an empty string and `NOWHERE` if no commit is shared.
        """
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
        """Return where a shallow clone ends; empty for a full one."""
        content = read(self._repository.common_dir, "shallow", _SHALLOW_BYTES)
        return content.data.decode("utf-8", "replace") if isinstance(content, Content) else ""


def plan_in(subject: str) -> tuple[str, bool]:
    """Return the plan that a subject names, empty for none, and whether the commit is work on it
    and not an artifact of it.
    """
    purpose = purpose_of(undone_by(subject)[0])
    named = str(purpose.plan) if purpose and purpose.plan else ""
    return named, bool(purpose and named and not purpose.step)


class _Naming(NamedTuple):
    """A commit that names something, or takes back what named it."""

    oid: str
    about: str
    """The subject that it repeats, or its own."""
    is_undoing: bool
    row: int


def _find_last(named: Iterable[Sequence[Any]]) -> _Naming | None:
    """Return the last commit that no revert took back, or the last revert if it left none.

    A revert takes back the commit that it says, else those whose subject it repeats, and what was
    built upon them; it takes back all if no subject is the same. `named`: rows of `_NAMING`, oldest
    first.
    """
    left: list[_Naming] = []
    last = None
    for oid, said, row, taken in named:
        about, is_undoing = undone_by(without_ticket(to_text(said)))
        last = _Naming(oid, without_ticket(about), is_undoing, row)
        if is_undoing:
            same = (at for at, naming in enumerate(left) if naming.about == last.about)
            if taken:
                same = (at for at in same if left[at].row == taken)
            del left[next(same, len(left) if taken else 0) :]
        else:
            left.append(last)
    return left[-1] if left else last


def _path_change(path: str, row: Any) -> PathChange:
    oid, at_s, position, subject, changes = row
    former = _find_former(path, changes)
    return PathChange(oid, at_s, position, subject, path, former)


def _find_former(path: str, changes: bytes) -> str:
    """Return the path of the same artifact of a phase that a commit removed as it added one."""
    if not changes.startswith(b"D") and b"\0D" not in changes:
        return ""
    place, name = classify(path), path.rpartition("/")[2]
    every = read_changes(changes)
    if place is None or place.phase is None or ("A", path) not in every:
        return ""
    removed = (former for letter, former in every if letter == "D" and former.endswith(f"/{name}"))
    places = filter(None, map(classify, removed))
    numbered = (
        other.path for other in places if other.phase and other.phase.number == place.phase.number
    )
    return next(numbered, "")
