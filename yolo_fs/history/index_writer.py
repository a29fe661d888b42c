"""Inserts commits into the index of a branch, and gives each its position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set

from yolo_fs.artifacts.classify import PLANNING_ROOT, PROJECT_STATE, classify
from yolo_fs.artifacts.naming import purpose_of, undone_by, without_ticket
from yolo_fs.evidence.facts import NOWHERE
from yolo_fs.git.history import LoggedCommit
from yolo_fs.history.stored import (
    Spans,
    intersect,
    read_changes,
    read_spans,
    span,
    to_bytes,
    write_changes,
    write_spans,
)
from yolo_fs.protocol.workflow import PHASE_COMPLETE, Trailer
from yolo_fs.system.database import Database

UNDONE = "undone"
"""Kind of what a revert names."""
_ABSENT = 0
"""Row of a commit that is not in the tables."""
_TABLES = ("meta", "commits", "paths", "changes", "named")


class IndexWriter:
    """Inserts commits, parents first."""

    def __init__(self, database: Database, after: int | None):
        """`after`: position of the commit before them; None for commits without a position."""
        self._database = database
        self._after = after
        ((most,),) = database.rows("select coalesce(max(row), 0) from commits")
        self._first = self._row = int(most) + 1
        self._before = "", _ABSENT
        """Id and row of the commit that was inserted last."""
        self._odd: dict[int, tuple[int, ...]] = {}
        """Row → rows of its parents, unless the only one is the commit inserted before; `_ABSENT`
        for one that a shallow clone lacks.
        """
        self._seen: dict[int, tuple[int, Spans]] = {}
        """Row → its position, and those before it that are not among its ancestors."""
        self.lacks = ""
        """The first commit whose changes this clone cannot tell."""

    def cut(self, at: int) -> None:
        """Delete the commits beyond a position: the branch has left them."""
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
        """Insert commits. Existing ones stay as they are."""
        for commit in commits:
            self._take(commit)

    def place(self, tip: str) -> None:
        """Compute the position of each commit, unless the inserted ones form one line."""
        if not self._odd or self._after is None:
            return
        last = row = self._row_of(tip)
        line = set()
        while row >= self._first:
            line.add(row)
            row = next(iter(self._parents(row)), 0)
        brought: list[int] = []
        moved = []
        for position, row in enumerate(self._order(last) if line else (), self._after + 1):
            brought.append(row)
            self._seen[row] = position, () if row in line else self._find_unseen(row, position)
            if row in line:
                moved += [
                    (at, position, write_spans(self._seen[each][1]) or None, each)
                    for at, each in enumerate(brought, position + 1 - len(brought))
                ]
                if len(self._parents(row)) > 1:
                    self._add_own(row, brought[:-1])
                brought = []
        update = "update commits set position = ?, joined = ?, unseen = ? where row = ?"
        self._database.many(update, moved)

    def _find_unseen(self, row: int, position: int) -> Spans:
        """Return the positions before a commit that are not among its ancestors; none where a
        shallow clone ends: nobody knows there.
        """
        unseen = span(0, position - 1)
        for parent in self._parents(row):
            if parent == _ABSENT:
                return ()
            at, spans = self._read_place(parent)
            unseen = intersect(unseen, (*spans, *span(at + 1, position - 1)))
        return unseen

    def _read_place(self, row: int) -> tuple[int, Spans]:
        """Return the position of a commit, and what it has not seen."""
        if row not in self._seen:
            query = "select position, unseen from commits where row = ?"
            ((position, unseen),) = self._database.rows(query, row)
            self._seen[row] = position, read_spans(unseen or "")
        return self._seen[row]

    def _order(self, tip: int) -> list[int]:
        """Return the inserted rows up to one, each after its parents: what the first of them has
        comes before what the others have.
        """
        order: list[int] = []
        seen, waiting = {tip}, [(tip, iter(self._parents(tip)))]
        while waiting:
            row, parents = waiting[-1]
            for parent in parents:
                if parent >= self._first and parent not in seen:
                    seen.add(parent)
                    waiting.append((parent, iter(self._parents(parent))))
                    break
            else:
                order.append(row)
                waiting.pop()
        return order

    def _add_own(self, merge: int, brought: Sequence[int]) -> None:
        """Count as made by a merge what it takes from elsewhere than from what it brings: such as
        an older content.
        """
        ask = self._database.rows
        query = "select changes, own from commits where row = ?"
        ((changes, own),) = ask(query, merge)
        paths = {path for _, path in read_changes(own)}
        for row in brought:
            ((some,),) = ask("select coalesce(own, changes) from commits where row = ?", row)
            paths.update(path for _, path in read_changes(some))
        if more := [(letter, path) for letter, path in read_changes(changes) if path not in paths]:
            whole = write_changes((*read_changes(own), *more))
            ask("update commits set own = ? where row = ?", whole, merge)
            self._add_changes(merge, more)

    def position_of(self, oid: str) -> int:
        """Return the position of an inserted commit."""
        ((position,),) = self._database.rows("select position from commits where oid = ?", oid)
        return int(position)

    def _parents(self, row: int) -> tuple[int, ...]:
        return self._odd.get(row, (row - 1,) if row > 1 else ())

    def _row_of(self, oid: str) -> int:
        """Return the row of a commit; `_ABSENT` if there is none."""
        if oid == self._before[0]:
            return self._before[1]
        rows = self._database.rows("select row from commits where oid = ?", oid)
        return int(rows[0][0]) if rows else _ABSENT

    def _take(self, commit: LoggedCommit) -> None:
        ask, row = self._database.rows, self._row
        if not commit.is_known:
            self.lacks = self.lacks or commit.oid
        if self._after is None and self._row_of(commit.oid):
            return
        parents = [self._row_of(parent) for parent in commit.parents]
        if parents != ([row - 1] if row > 1 else []):
            self._odd[row] = tuple(parents)
        position = NOWHERE if self._after is None else self._after + 1 + row - self._first
        # An amend keeps the trailers of a commit of ours, whatever it adds.
        is_ours = commit.is_ours and all(classify(path) for _, path in commit.changes)
        trailer = dict(commit.trailers).get(Trailer.WARNINGS, "")
        warnings = int(trailer) if is_ours and trailer.isdecimal() and len(trailer) < 10 else 0
        is_merge = len(parents) > 1
        own = write_changes(commit.own_changes) if is_merge else None
        ask(
            "insert into commits values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, null)",
            row, commit.oid, commit.at_s, position, position, is_ours, warnings,
            to_bytes(commit.subject), write_changes(commit.changes), own,
        )  # fmt: skip
        made = commit.own_changes if is_merge else commit.changes
        self._add_changes(row, made)
        changed = {path for _, path in commit.changes} if commit.is_known else None
        for kind, key, words in names_in(commit.subject, is_ours=is_ours, paths=changed):
            values = kind, key, to_bytes(words), row
            ask("insert or ignore into named values (?, ?, ?, ?)", *values)
        self._before = commit.oid, row
        self._row += 1

    def _add_changes(self, row: int, changes: Iterable[tuple[str, str]]) -> None:
        for _, path in changes:
            if path.startswith(f"{PLANNING_ROOT}/"):
                self._database.rows("insert into changes values (?, ?)", self._path(path), row)

    def _path(self, path: str) -> int:
        ((number,),) = self._database.rows(
            "insert into paths(path, count) values (?, 1)"
            " on conflict(path) do update set count = count + 1 returning id",
            to_bytes(path),
        )
        return int(number)


def names_in(
    subject: str, *, is_ours: bool, paths: Set[str] | None = None
) -> Iterator[tuple[str, str, str]]:
    """Yield kind, key and words of each thing that the subject of a commit names. What a revert
    names is undone by it. `paths`: what the commit changes; None where that is unknown. Whoever
    changes nothing has done nothing, whatever the subject says.
    """
    if paths is not None and not paths:
        return
    done, is_undone = undone_by(subject)
    if purpose := purpose_of(done):
        words = "" if purpose.task else purpose.words
        if purpose.plan and not purpose.step and not is_ours:
            yield "work", str(purpose.plan), "" if is_undone else words
        if purpose.task:
            yield UNDONE if is_undone else "task", str(purpose.task), ""
        elif purpose.plan and words and is_undone:
            yield UNDONE, str(purpose.plan), words
        elif purpose.step and not is_undone:
            yield "step", f"{purpose.phase} {purpose.step}", ""
    gaps = PHASE_COMPLETE.match(without_ticket(done))
    if gaps and (paths is None or PROJECT_STATE in paths):
        yield UNDONE if is_undone else "signoff", str(int(gaps["N"])), ""
