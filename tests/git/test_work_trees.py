"""Merges are made in the object store, and a branch follows by a fast-forward that overwrites nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.git.conftest import User
from yolo_fs.core.reasons import Reason
from yolo_fs.git.repository import Repository
from yolo_fs.git.work_trees import add_work_tree, fast_forward, merge, remove_work_tree
from yolo_fs.team.merge_driver import driver_settings

FILE = "src/a.ts"
LOG = ".yolo-planning/phases/01-auth/decisions.jsonl"


def branch_with(user: User, name: str, **files: str) -> str:
    """Return a commit on a branch of its own with these files; the work tree is on main again."""
    user.git("checkout", "-q", "-b", name)
    for path, text in files.items():
        user.commit_file(path, text)
    made = user.tip()
    user.git("checkout", "-q", "main")
    return made


def state_of(user: User) -> tuple[object, ...]:
    return user.snapshot(), user.text("for-each-ref"), user.text("stash", "list")


def test_two_lines_of_work_are_merged_without_touching_branch_or_files(user: User) -> None:
    theirs = branch_with(user, "theirs", theirs="1\n")
    user.commit_file("ours", "2\n")
    before = state_of(user)
    with Repository(str(user.root)) as repository:
        made = merge(repository, str(repository.head().tip), theirs, "Merge branch 'theirs'")
    assert user.text("ls-tree", "--name-only", made.commit).split()[-2:] == ["ours", "theirs"]
    assert user.text("log", "-1", "--format=%s %an", made.commit).startswith(
        "Merge branch 'theirs'"
    )
    assert state_of(user) == before


def test_a_conflict_names_its_files_and_makes_no_commit(user: User) -> None:
    user.commit_file("shared", "0\n")
    theirs = branch_with(user, "theirs", shared="1\n", theirs="1\n")
    user.commit_file("shared", "2\n")
    with Repository(str(user.root)) as repository:
        made = merge(repository, str(repository.head().tip), theirs, "Merge branch 'theirs'")
    assert made == ("", ("shared",))


def test_artifacts_are_merged_by_records_where_the_driver_is_not_installed(user: User) -> None:
    def line(number: int) -> str:
        decided = {
            "ts": f"2026-02-19T10:00:0{number}Z",
            "agent": "dev",
            "dec": str(number),
            "reason": "r",
        }
        return json.dumps(decided, separators=(",", ":")) + "\n"

    user.commit_file(LOG, line(0))
    theirs = branch_with(user, "theirs", **{LOG: line(0) + line(2)})
    user.commit_file(LOG, line(0) + line(1))
    with Repository(str(user.root)) as repository:
        settings = driver_settings(str(user.root.parent / "attributes"))
        made = merge(
            repository, str(repository.head().tip), theirs, "Merge branch 'theirs'", settings
        )
    assert user.show(LOG, made.commit).decode() == line(0) + line(1) + line(2)


def dirty(user: User) -> None:
    user.write("src/a.ts", "not done\n")


def untracked(user: User) -> None:
    user.write("new", "not done\n")


def staged(user: User) -> None:
    user.write("src/a.ts", "not done\n")
    user.git("add", "src/a.ts")


def locked(user: User) -> None:
    (user.root / ".git/index.lock").touch()


@pytest.mark.parametrize(
    ("get_in_the_way", "reason"),
    [(dirty, Reason.CHANGES_IN_THE_WAY), (untracked, Reason.CHANGES_IN_THE_WAY),
     (staged, Reason.CHANGES_IN_THE_WAY), (locked, Reason.INDEX_LOCKED)],
)  # fmt: skip
@pytest.mark.parametrize("autostash", ["false", "true"])
def test_what_a_person_is_doing_is_never_overwritten_or_stashed(
    user: User, get_in_the_way: Callable[[User], None], reason: Reason, autostash: str
) -> None:
    user.git("config", "merge.autoStash", autostash)
    user.commit_file(FILE, "0\n")
    theirs = branch_with(user, "theirs", **{FILE: "1\n", "new": "1\n"})
    get_in_the_way(user)
    before = state_of(user)
    with Repository(str(user.root)) as repository:
        assert fast_forward(repository, theirs) is reason
    assert state_of(user) == before


def test_a_branch_that_has_moved_elsewhere_is_not_moved(user: User) -> None:
    theirs = branch_with(user, "theirs", theirs="1\n")
    user.commit_file("ours", "2\n")
    with Repository(str(user.root)) as repository:
        assert fast_forward(repository, theirs) is Reason.BRANCH_MOVED


def test_a_work_tree_with_anything_that_is_in_no_commit_is_not_removed(
    user: User, tmp_path: Path
) -> None:
    with Repository(str(user.root)) as repository:
        path = str(tmp_path / "tree")
        made = add_work_tree(repository, path, "yolo/dev/x/01-01", str(repository.head().tip))
        assert made.root == path and user.text("-C", path, "status", "--porcelain") == ""
        (tmp_path / "tree/new").write_text("not done\n")
        assert not remove_work_tree(repository, path, "yolo/dev/x/01-01")
        assert (tmp_path / "tree/new").exists()
        (tmp_path / "tree/new").unlink()
        assert remove_work_tree(repository, path, "yolo/dev/x/01-01")
    assert "yolo/dev" not in user.text("for-each-ref")
