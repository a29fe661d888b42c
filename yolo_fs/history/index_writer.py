"""Inserts commits into the index of a branch, and gives each its position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set

from yolo_fs.artifacts.classify import PLANNING_ROOT, PROJECT_STATE, classify
from yolo_fs.artifacts.naming import drop_reverted, purpose_of, undone_by, without_ticket
from yolo_fs.evidence.facts import NOWHERE
from yolo_fs.git.history import LoggedCommit
from yolo_fs.history.stored import (
    Spans,
    intersect,
    read_changes,
    read_spans,
    span,
    to_bytes,
    to_text,
    write_changes,
    write_spans,
)
from yolo_fs.protocol.workflow import PHASE_COMPLETE, Trailer
from yolo_fs.system.database import Database

UNDONE = "undone"
"""Kind of what a revert names."""
_UNNAMED = "unnamed"
"""Kind of a commit that a revert takes back, and that names nothing."""
_ABSENT = 0
"""Row of a commit that is not in the tables."""
_TAKEN_MOST = 2_000
"""Commits that a merge may have brought for its revert to be read: anybody can write one that names
a merge of half the history, and thousands of them.
"""
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
        self._reverts: list[tuple[int, LoggedCommit]] = []
        """Rows of the inserted commits that say which commit they take back, with these commits."""
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
        if self._after is None:
            self._name_reverted()

    def place(self, tip: str) -> None:
        """Compute the position of each commit, and with it what reverts take back."""
        if self._odd and self._after is not None:
            self._place(tip, self._after + 1)
        self._name_reverted()

    def _place(self, tip: str, first: int) -> None:
        last = row = self._row_of(tip)
        line = set()
        while row >= self._first:
            line.add(row)
            row = next(iter(self._parents(row)), 0)
        brought: list[int] = []
        moved = []
        for position, row in enumerate(self._order(last) if line else (), first):
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
        if commit.reverts:
            self._reverts.append((row, commit))
        else:
            self._add_names(row, commit, commit.subject, is_ours=is_ours)
        self._before = commit.oid, row
        self._row += 1

    def _add_names(
        self,
        row: int,
        commit: LoggedCommit,
        subject: str,
        as_revert: tuple[int, int] = (0, _ABSENT),
        *,
        is_ours: bool = False,
    ) -> None:
        """Insert what a subject names. `as_revert`: the place of a commit among those that a revert
        takes back, newest first, and its row.
        """
        nth, taken = as_revert
        paths = {path for _, path in commit.changes} if commit.is_known else None
        names = list(names_in(subject, is_ours=is_ours, paths=paths))
        said = to_bytes(subject) if nth else None
        for kind, key, words in names or ([(_UNNAMED, "", "")] if nth and not is_ours else []):
            values = kind, key, to_bytes(words), row, nth, said, taken
            self._database.rows("insert or ignore into named values (?, ?, ?, ?, ?, ?, ?)", *values)

    def _name_reverted(self) -> None:
        """Insert what the reverts name: a revert of a merge is one of each commit that the merge
        brought. Whoever names something else has done that, whatever git wrote below the subject.
        """
        for row, commit in self._reverts:
            subject = without_ticket(commit.subject)
            is_own_work = purpose_of(subject) and undone_by(subject)[0] == subject
            taken_back = self._find_taken_back(row, commit)
            if is_own_work or not taken_back:
                self._add_names(row, commit, commit.subject)
                continue
            left = reversed(drop_reverted(taken_back, lambda each: each[0]))
            for nth, ((_, is_ours, taken), about, is_undone) in enumerate(left, 1):
                subject = f'{"Reapply" if is_undone else "Revert"} "{about}"'
                self._add_names(row, commit, subject, (nth, taken), is_ours=is_ours)
        self._reverts = []

    def _find_taken_back(self, row: int, revert: LoggedCommit) -> list[tuple[str, bool, int]]:
        """Return the subjects of the commits that a revert takes back, oldest first, whether a
        coordinator made them, and their rows; none where they are not in its history. Of what a
        merge brought, it takes back what changed a path that it changes, too.
        """
        ((own, unseen),) = self._database.rows(
            "select position, unseen from commits where row = ?", row
        )
        found = [self._find_before(own, read_spans(unseen or ""), name) for name in revert.reverts]
        if not found or None in found:
            return []
        (last, position, beside), *onto = filter(None, found)
        query = (
            "select distinct c.position, c.row, coalesce(n.nth, 0), coalesce(n.said, c.subject),"
            " c.ours, coalesce(c.own, c.changes)"
            " from commits c left join named n on n.row = c.row and n.said is not null"
            " where {} order by 1, 2, 3"
        )
        rows = self._database.rows(query.format("c.row = ?"), last)
        paths = {path for _, path in revert.changes}
        for _, first, others in onto:
            brought = (*others, *span(first + 1, position - 1))
            if sum(end - begin + 1 for begin, end in brought) > _TAKEN_MOST:
                return []
            for begin, end in brought:
                between = self._database.rows(
                    query.format("c.position between ? and ?"), begin, end
                )
                rows += [
                    each
                    for each in between
                    if not _is_within(each[0], beside)
                    and (not revert.is_known or _does_touch(paths, each[-1]))
                ]
        # The latest of those that one commit counts as comes first.
        rows.sort(key=lambda each: (each[0], each[1], -each[2]))
        return [(to_text(subject), bool(ours), row) for _, row, _, subject, ours, _ in rows]

    def _find_before(self, own: int, unseen: Spans, name: str) -> tuple[int, int, Spans] | None:
        """Return row, position, and what it has not seen, of the commit whose name begins so, if it
        is an ancestor of one with the given position.
        """
        query = "select row, position, unseen from commits where oid >= ? and oid < ?"
        before = [
            (row, position, read_spans(beside or ""))
            for row, position, beside in self._database.rows(query, name, f"{name}g")
            if own == NOWHERE or (position < own and not _is_within(position, unseen))
        ]
        return before[0] if len(before) == 1 else None

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


def _does_touch(paths: Set[str], changes: bytes) -> bool:
    return any(path in paths for _, path in read_changes(changes))


def _is_within(position: int, spans: Spans) -> bool:
    return any(first <= position <= last for first, last in spans)


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
