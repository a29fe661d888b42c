"""A history in rows says what a plain list of its commits says, and stays small."""

from __future__ import annotations

import os
import random
import sys
import tracemalloc
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.edges.git import history
from yolo_fs.edges.git.history import LoggedCommit
from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import Reason, YoloError
from yolo_fs.services.history import index
from yolo_fs.services.history.index import (
    CommitTable,
    HistoryIndex,
    IndexedCommit,
    packed,
    unpacked,
)
from yolo_fs.services.history.team import Versions

SEED = 20_261_123
RECORDED = 3_000
OTHERS = ("ada", "bob")


def commits(
    count: int, width: int = 20, *, alike: bytes = b"", is_ours: bool | None = None
) -> Iterator[IndexedCommit]:
    """Yield commits; the names of most begin with a part of `alike`. `is_ours`: all, none, most."""
    rng = random.Random(SEED)
    for number in range(count):
        path = f".yolo-planning/phases/01-auth/01-{number % 7:02}.summary.jsonl"
        start = alike[: number % 50 // 9] if number % 5 else b""
        yield IndexedCommit(
            (start + rng.randbytes(width - len(start))).hex(),
            1_790_000_000 + number,
            number + 1,
            number % 5 > 0 if is_ours is None else is_ours,
            f"docs(01-{number % 7:02}): summary" + " s\udcfctz" * (number % 3 == 0),
            (("M", path),),
            number % 3,
        )


@pytest.fixture(params=[(20, 0), (32, 0), (20, 700), (32, 1_000)], ids=str)
def recorded(
    request: pytest.FixtureRequest, tmp_path: Path
) -> tuple[CommitTable, list[IndexedCommit]]:
    """Of SHA-1 and SHA-256, with names in memory, and with those that rest after each so many."""
    width, pause = request.param
    known = list(commits(RECORDED, width, alike=b"five!"))
    table = CommitTable()
    if pause:
        table.rest(str(tmp_path))  # before the first commit of a branch
    for row, each in enumerate(known):
        table.add(each)
        if pause and row % pause == pause - 1:
            table.rest(str(tmp_path))
    assert len(table._rest or ()) == (RECORDED // pause * pause if pause else 0)
    return table, known


def test_each_commit_comes_back_as_it_was(
    recorded: tuple[CommitTable, list[IndexedCommit]],
) -> None:
    table, known = recorded

    assert [table[row] for row in range(len(table))] == known
    assert [table.row(one.oid) for one in known] == list(range(RECORDED))
    assert table.row("0" * len(known[0].oid)) is None


def test_a_short_name_names_a_commit_where_it_names_one_alone(
    recorded: tuple[CommitTable, list[IndexedCommit]],
) -> None:
    table, known = recorded
    for row, one in enumerate(known[:500]):
        for length in (1, 3, 4, 7, 40):
            start = one.oid[:length]
            alike = [each for each in known if each.oid.startswith(start)]
            expected = row if len(alike) == 1 else None
            assert table.row_named(start) == expected, (start, SEED)
    assert table.row_named("HEAD") is None
    assert table.row_named(known[0].oid.upper()) is None
    assert table.row_named(known[0].oid + "00") is None


def test_names_are_found_between_additions() -> None:
    table = CommitTable()
    for row, one in enumerate(commits(2_000)):
        table.add(one)
        assert table.row(one.oid) == row
        if row % 17 == 0:
            assert table.row_named(one.oid[:20]) == row


def test_a_copy_goes_its_own_way(
    recorded: tuple[CommitTable, list[IndexedCommit]], tmp_path: Path
) -> None:
    table, known = recorded
    other = table.copy()
    fresh = known[0]._replace(oid="ab" * (len(known[0].oid) // 2), subject="feat: another word")

    row = other.add(fresh)

    assert other[row] == fresh
    assert len(table) == RECORDED
    assert table.row(fresh.oid) is None
    assert [table[each] for each in range(RECORDED)] == known

    another = known[1]._replace(oid="cd" * (len(known[1].oid) // 2))
    other.rest(str(tmp_path))
    table.add(another)
    table.rest(str(tmp_path))

    assert [other[each] for each in range(len(other))] == [*known, fresh]
    assert [table[each] for each in range(len(table))] == [*known, another]


@pytest.mark.parametrize("at_s", [0, 2**32 - 1, 2**32, 2**40], ids=str)
def test_what_is_kept_is_read_again_whatever_a_clock_said(
    recorded: tuple[CommitTable, list[IndexedCommit]], at_s: int
) -> None:
    table, known = recorded
    rng = random.Random(SEED)
    for _ in range(50):  # of parallel lines
        oid = rng.randbytes(len(known[0].oid) // 2).hex()
        known.append(known[0]._replace(oid=oid, at_s=at_s, height=rng.randrange(RECORDED)))
        table.add(known[-1])

    content, columns = unpacked(b"".join(packed(table.as_json())))
    assert content is not None
    again = CommitTable.from_json(content, columns)

    assert [again[row] for row in range(len(again))] == known
    assert again.row(known[7].oid) == 7
    assert again.add(known[7]._replace(oid="cd" * (len(known[7].oid) // 2))) == len(known)


def test_names_that_cannot_rest_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = list(commits(RECORDED))
    for name, wrong in {
        "O_TMPFILE": os.O_DIRECTORY,  # a file system that has no file without a name
        "pwrite": lambda *_: 7,  # a disk that is nearly full
    }.items():
        table = CommitTable()
        with monkeypatch.context() as patched:
            patched.setattr(os, name, wrong)
            for each in known[:2_000]:
                table.add(each)
            table.rest(str(tmp_path))
            assert not table._rest, name
        for each in known[2_000:]:
            table.add(each)
        assert [table[row] for row in range(len(table))] == known, name
        table.rest(str(tmp_path))
        assert [table[row] for row in range(len(table))] == known, name


def test_names_that_cannot_be_read_any_more_are_not_made_up(tmp_path: Path) -> None:
    table = CommitTable()
    for each in commits(10):
        table.add(each)
    table.rest(str(tmp_path))
    assert table._rest is not None
    os.ftruncate(table._rest._file._descriptor, 5 * 20)

    assert table.oid(4) == list(commits(10))[4].oid
    with pytest.raises(YoloError) as raised:
        table.oid(5)
    assert raised.value.reason is Reason.STORAGE_FAILED


def test_commits_that_all_say_something_else_come_back_as_they_were() -> None:
    table, known = CommitTable(), list(commits(70_000))
    for number, each in enumerate(known):
        table.add(each._replace(subject=f"{number}"))

    for row in (0, 65_535, 65_536, 69_999):
        assert table[row] == known[row]._replace(subject=f"{row}")


@pytest.mark.parametrize(
    ("is_ours", "rests", "most"),
    [(True, False, 36), (True, True, 18), (False, False, 36 + 90)],
    ids=["ours", "ours, names at rest", "somebody else's, with the 77 bytes that each says"],
)
def test_fifty_thousand_commits_more_take_few_bytes_each(
    is_ours: bool, rests: bool, most: int, tmp_path: Path
) -> None:
    table = CommitTable()
    for one in commits(1_000):
        table.add(one)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for one in commits(50_000, is_ours=is_ours):
            table.add(one)
            if rests and len(table) % 1_000 == 0:
                table.rest(str(tmp_path))
        fresh, _ = tracemalloc.get_traced_memory()
        table.row_named("abc")
        in_order, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (max(fresh, in_order) - before) / 50_000 < most


def logged(number: int, subject: str) -> LoggedCommit:
    """Return a commit of somebody in a line of them."""
    oid, parent = (f"{each:040x}" for each in (number + 1, number))
    parents = (parent,) if number else ()
    return LoggedCommit(oid, parents, 1_790_000_000 + number, subject, (), (("M", "src/a.c"),))


def test_the_last_source_commit_of_a_plan_that_says_the_words_of_a_task_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = ["feat(01-02): Add the  LOGIN page.", "fix(01-02): add the login page", "fix(01-02): it",
            "feat(01-02): T1 ", "feat(01-03): add the login page", "feat(01-02): s\udcfctz"]  # fmt: skip
    found = HistoryIndex(Repository("."))
    for number, subject in enumerate(said):
        found._take(logged(number, subject))

    for mark in (index._mark, lambda _: 7):  # also where all marks are alike
        monkeypatch.setattr(index, "_mark", mark)
        asked = ("Add the login page", "it", "", "more", "s\udcfctz")
        assert [found.of_words("01-02", words)[-1:] for words in asked] == ["2", "3", "", "", "6"]
        found._marks = {plan: array("I", [7] * len(rows)) for plan, rows in found.work.items()}
    assert found.of_words("02-01", "it") == ""


def test_to_keep_a_history_takes_less_memory_than_the_file_is_long(tmp_path: Path) -> None:
    team = Team(tmp_path / "work tree")
    with Repository(str(team.root)) as repository:
        found = HistoryIndex(repository)
        for number in range(6_000):
            path = f".yolo-planning/phases/01-a/01-{number % 2_000:02}.summary.jsonl"
            one = logged(number, f"docs(01-{number % 2_000:02}): summary")
            told = (("Yolo-Artifact", "summary"),)
            found._take(one._replace(trailers=told, changes=(("M", path),)))
        found._tip = "a" * 40
        found.commits.row_named("abc")
        tracemalloc.start()
        try:
            found.keep()
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        again = HistoryIndex(repository)
        again._remember()

        assert most < (Path(repository.own_dir) / index.FILE).stat().st_size
        assert (again._by_path, again.past) == (found._by_path, found.past)
        assert again.commits._sayings == found.commits._sayings


def test_a_commit_of_somebody_else_takes_little_beside_what_it_says() -> None:
    found = HistoryIndex(Repository("."))
    for number in range(3_000):
        found._take(logged(number, f"fix(01-02): edit {number}"))
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(3_000, 13_000):
            found._take(logged(number, f"fix(01-02): edit {number}"))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (after - before) / 10_000 < 38 + 90


def test_what_grows_with_a_history_is_not_there_twice_while_it_is_kept() -> None:
    table = CommitTable()
    for one in commits(50_000):
        table.add(one)
    table.row_named("abc")
    tracemalloc.start()
    try:
        for one in commits(100, 20):
            table.add(one._replace(oid=one.oid[::-1]))
        parts = packed(table.as_json())
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert sum(map(len, parts)) > 50_000 * 20
    assert most < 50_000 * 3


def test_two_who_go_on_from_the_same_versions_do_not_see_each_others() -> None:
    table = CommitTable()
    for one in commits(4):
        table.add(one)
    failed, done = ({"s": "failed"},), ({"s": "complete"},)
    every = array("I", range(4))
    none = Versions(table, array("I"), array("I"), [])
    both = none.and_then(table, [(0, failed), (1, failed)], every)

    mine = both.and_then(table, [(2, done)], every)
    theirs = both.and_then(table, [(3, failed)], every)

    assert [one.lines for one in both] == [failed, failed]
    assert [(one.lines, one.order) for one in mine] == [(failed, 1), (failed, 2), (done, 3)]
    assert [(one.lines, one.order) for one in theirs] == [(failed, 1), (failed, 2), (failed, 4)]
    assert mine != theirs
    assert both == tuple(both)


def test_versions_that_say_the_same_take_no_room_beside_their_commits() -> None:
    table, changes = CommitTable(), array("I")
    rows = [table.add(one) for one in commits(5_000)]
    versions = Versions(table, array("I"), array("I"), [])
    tracemalloc.start()
    try:
        for row in rows:
            changes.append(row)
            versions = versions.and_then(table, [(row, ({"s": "failed"},))], changes)
        taken = tracemalloc.get_traced_memory()[0] - sys.getsizeof(changes)
        tracemalloc.reset_peak()
        assert next(iter(versions)).order == 1
        while_told = tracemalloc.get_traced_memory()[1] - sys.getsizeof(changes)
    finally:
        tracemalloc.stop()

    assert max(taken, while_told) < len(rows)
    assert [(one.lines, one.order) for one in versions] == [
        (({"s": "failed"},), row + 1) for row in rows
    ]


def test_a_commit_of_a_parallel_line_changes_no_rows_that_somebody_has(tmp_path: Path) -> None:
    team, path = Team(tmp_path / "work tree"), ".yolo-planning/phases/01-auth/01-01.summary.jsonl"
    team.user_commits("chore: begin", str(team.file("a", "")))
    team.git("checkout", "-q", "-b", "side")
    team.user_commits("docs: of the side", str(team.file(path, "1")))
    team.git("checkout", "-q", "main")
    for number in range(3):
        team.user_commits(f"docs: {number}", str(team.file(path, f"{number}")))
    with Repository(str(team.root)) as repository:
        found = HistoryIndex(repository)
        found.read_up_to(team.head())
        before, told = found.past_of(path), [*found.past_of(path)]
        team.git("merge", "-q", "-s", "ours", "--no-edit", "side")

        found.read_up_to(team.head())

        assert [*before] == told
        oids = {found.commits.oid(row) for row in found.past_of(path)}
        assert oids == set(team.git("log", "--all", "--format=%H", "--", path).split())
        assert [*found.past_of(path)] == sorted(found.past_of(path), key=found.commits.rank)


def test_what_others_have_beyond_a_branch_is_read_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each step: all that is beyond, nothing that nobody has, and the old is not read again."""
    team, rng = Team(tmp_path / "work tree"), random.Random(SEED)
    team.git("commit", "-q", "--allow-empty", "-m", "chore: begin")
    for name in OTHERS:
        team.git("branch", name)
    told: list[int] = []

    def log(*asked: Any) -> list[LoggedCommit]:
        found = list(history.log_parents_first(*asked))
        told.append(len(found))
        return found

    monkeypatch.setattr(index, "log_parents_first", log)
    with Repository(str(team.root)) as repository:
        lines = HistoryIndex(repository)
        for step in range(40):
            branch = rng.choice(["main", *OTHERS])
            team.git("checkout", "-q", branch)
            was_rewritten = branch != "main" and rng.random() < 0.2
            if was_rewritten:
                team.git("reset", "-q", "--hard", "main")
            if branch == "main" and rng.random() < 0.5:
                team.git("merge", "-q", "--no-edit", rng.choice(OTHERS))
            for number in range(rng.randrange(1, 4)):
                team.file(f"of_{branch}", f"{step} {number}")
                team.user_commits(f"feat(01-01): T{step} of {branch}", f"of_{branch}")
            main, *tips = (team.git("rev-parse", each) for each in ("main", *OTHERS))
            told.clear()

            lines.read_beyond(main, sorted(tips), goes_on=step > 0)

            read = {lines.commits.oid(row) for row in range(len(lines.commits))}
            assert read >= set(team.git("rev-list", *tips, f"^{main}").split()), f"{SEED} {step}"
            assert read <= set(team.git("rev-list", *tips, main).split()), f"{SEED} {step}"
            assert was_rewritten or told[0] <= 3, f"{SEED} {step}"


def test_a_branch_that_was_rewritten_and_pruned_is_read_anew(tmp_path: Path) -> None:
    team = Team(tmp_path / "work tree")
    main = team.user_commits("chore: begin", str(team.file("a", "")))
    before = team.user_commits("feat(01-01): T1 before", str(team.file("a", "before")))
    with Repository(str(team.root)) as repository:
        lines = HistoryIndex(repository)
        lines.read_beyond(main, [before], goes_on=False)
        team.git("reset", "-q", "--hard", main)
        after = team.user_commits("feat(01-01): T1 after", str(team.file("a", "after")))
        team.git("reflog", "expire", "--expire=now", "--all")
        team.git("prune", "--expire=now")
        lines.read_beyond(main, [after], goes_on=True)

    assert lines.of_task("01-01/T1") == after


@pytest.mark.parametrize(
    "error", [YoloError(Reason.GIT_TIMEOUT), OSError("no descriptor")], ids=str
)
def test_a_history_that_git_told_in_part_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    team = Team(tmp_path / "work tree")
    made = [
        team.user_commits(f"feat(01-01): T{at}", str(team.file("a", f"{at}"))) for at in range(3)
    ]

    def fail_half_way(*asked: Any) -> Iterator[LoggedCommit]:
        yield next(history.log_parents_first(*asked))
        raise error

    with Repository(str(team.root)) as repository:
        found = HistoryIndex(repository)
        found.read_up_to(made[0])
        with monkeypatch.context() as patched:
            patched.setattr(index, "log_of_line", lambda *_: None)
            patched.setattr(index, "log_parents_first", fail_half_way)
            with pytest.raises(type(error)):
                found.read_up_to(made[2])
        found.read_up_to(made[2])

        assert [found.commits.oid(row) for row in range(len(found.commits))] == made


def test_a_history_is_left_to_the_next_process_once_and_again_when_it_has_grown(
    tmp_path: Path,
) -> None:
    team = Team(tmp_path / "work tree")
    team.user_commits("chore: begin", str(team.file("a", "")))
    with Repository(str(team.root)) as repository:
        found, kept = HistoryIndex(repository), Path(repository.own_dir) / index.FILE
        found.read_up_to(team.head())
        found.keep()
        kept.write_bytes(b"whoever wrote this did so later")
        found.keep()
        assert kept.read_bytes() == b"whoever wrote this did so later"

        team.user_commits("chore: more", str(team.file("a", "b")))
        found.read_up_to(team.head())
        found.keep()
        again = HistoryIndex(repository)
        again.read_up_to(team.head())
        assert len(again.commits) == again._cached == 2
