"""The user's index keeps all that is theirs and follows our path. See docs/dev/faults.md#f05, #f21,
#f22, #f23 and #f32.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.git.conftest import PHASE, PLAN, REF_LOCK, Engine, Engines, Make, User
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git.commit import CommitRequest, Committer
from yolo_fs.git.conversation import Conversation
from yolo_fs.git.index import IndexSync
from yolo_fs.system import failpoint
from yolo_fs.system.in_place import ScratchRecord
from yolo_fs.system.system import is_running

LINE = '{"p":"01"}\n'


def index_lock(user: User) -> Path:
    return user.root / ".git/index.lock"


def entry(user: User, data: str, flag: str = "H") -> str:
    return f"{flag} 100644 {user.text('hash-object', '--stdin', given=data.encode())} 0"


def fill(user: User) -> None:
    """Give the user work of every kind."""
    for name in ("tracked", "assumed", "skipped", "removed", "renamed", "chmod", "gone"):
        user.commit_file(f"src/{name}", f"{name}\n")
    user.add_half("src/half")
    user.add("src/staged", "staged\n")
    user.add("src/staged-then-changed", "one\n")
    user.write("src/staged-then-changed", "two\n")
    user.intend("src/intended", "later\n")
    user.write("src/tracked", "changed\n")
    user.write("secret.env", "untracked\n")
    user.git("update-index", "--assume-unchanged", "src/assumed")
    user.skip("src/skipped")
    user.write("src/skipped", "hidden change\n")
    user.git("rm", "--quiet", "--cached", "src/removed")
    user.git("mv", "src/renamed", "src/new-name")
    user.git("update-index", "--chmod=+x", "src/chmod")
    (user.root / "src/gone").unlink()


def test_two_hundred_artifacts_leave_all_work_of_the_user_as_it_was(
    user: User, engine: Engines
) -> None:
    fill(user)
    one, before, base = engine(user), user.snapshot(), user.tip()
    for number in range(200):
        one.put(f"{PHASE}/{number:03}.plan.jsonl", f'{{"n":{number}}}\n')
        if number % 20 == 19:
            assert one.follower.follow()
    after = user.snapshot()
    assert {name: after[name] for name in ("staged", "unstaged", "status")} == {
        name: before[name] for name in ("staged", "unstaged", "status")
    }
    assert [line for line in after["index"].split(b"\0") if PHASE.encode() not in line] == before[
        "index"
    ].split(b"\0")
    assert int(user.text("rev-list", "--count", f"{base}..HEAD")) == 200
    for commit in user.text("rev-list", f"{base}..HEAD").split():
        assert (
            len(user.git("diff-tree", "-r", "--name-only", "--no-commit-id", commit).splitlines())
            == 1
        )
    user.fsck()


MARKS = {
    "S": ("--skip-worktree",),
    "h": ("--assume-unchanged",),
    "s": ("--skip-worktree", "--assume-unchanged"),
}


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("is_late", [False, True])
def test_what_the_user_has_marked_stays_marked_with_the_content_that_is_committed(
    user: User, engine: Engines, request: pytest.FixtureRequest, mark: str, is_late: bool
) -> None:
    fill(user)
    one = engine(user)
    one.put_and_follow(PLAN, LINE)
    if is_late:
        request.getfixturevalue("no_second_names")
    for option in MARKS[mark]:
        user.git("update-index", option, "--", PLAN)
    before = user.snapshot()["index"].split(b"\0")
    for number in range(3):  # the third is drafted by a git that has read the index before
        line = f'{{"p":"{number}"}}\n'
        one.put_and_follow(PLAN, line)
        assert user.staged(PLAN) == entry(user, line, mark)
        others = [
            line for line in user.snapshot()["index"].split(b"\0") if PLAN.encode() not in line
        ]
        assert others == [line for line in before if PLAN.encode() not in line]
    user.git("update-index", "--no-skip-worktree", "--", PLAN)
    user.git("update-index", "--no-assume-unchanged", "--", PLAN)
    one.put_and_follow(PLAN, LINE)
    assert user.staged(PLAN) == entry(user, LINE), "a mark that is taken away stays away"


def test_a_mark_is_owed_while_another_git_holds_the_index(
    user: User, engine: Engines, no_second_names: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = engine(user)
    one.put_and_follow(PLAN, LINE)
    user.skip(PLAN)
    mark = IndexSync._mark

    def held(self: IndexSync, *given: Any) -> bool:
        index_lock(user).touch()
        return mark(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(IndexSync, "_mark", held)
        one.put(PLAN, '{"p":"02"}\n')
        assert not one.follower.follow()
    index_lock(user).unlink()
    assert one.follower.follow()
    assert user.staged(PLAN) == entry(user, '{"p":"02"}\n', "S")


def test_the_stash_the_configuration_and_the_work_tree_stay(user: User, engine: Engines) -> None:
    user.write("README.md", "changed\n")
    user.git("stash", "push", "--quiet")
    fill(user)
    kept = [
        *(user.root / ".git/hooks").iterdir(),
        user.root / ".git/config",
        *(user.root / "src").iterdir(),
    ]
    before = (
        user.text("stash", "list", "--format=%H"),
        [(path, path.read_bytes()) for path in kept],
    )
    engine(user).put_and_follow(PLAN, LINE)
    assert (
        user.text("stash", "list", "--format=%H"),
        [(path, path.read_bytes()) for path in kept],
    ) == before


@pytest.mark.usefixtures("no_second_names")
def test_without_following_the_artifact_would_be_staged_for_removal(
    user: User, engine: Engines
) -> None:
    """The harm that following prevents; if this stops being so, the other tests prove nothing."""
    one = engine(user)
    one.put(PLAN, LINE)
    assert user.git("diff", "--cached", "--name-status") == b"D\t" + PLAN.encode() + b"\n"
    assert one.follower.follow()
    assert user.git("status", "--porcelain") == b""


def test_a_new_version_follows_the_former(user: User, engine: Engines) -> None:
    one = engine(user)
    one.put_and_follow(PLAN, LINE)
    one.put(PLAN, LINE * 2)
    one.put_and_follow(PLAN, LINE * 3)
    assert user.staged(PLAN) == entry(user, LINE * 3)
    assert user.git("status", "--porcelain") == b""


# --- what the user staged at the artifact's own path ---


def test_other_content_that_the_user_staged_stays_and_is_told(user: User, engine: Engines) -> None:
    user.add(PLAN, "the user's own\n")
    one = engine(user)
    one.put_and_follow(PLAN, LINE)
    assert user.staged(PLAN) == entry(user, "the user's own\n")
    assert one.follower.diverged == {PLAN}
    assert user.show(PLAN) == LINE.encode()


def test_the_same_content_that_the_user_staged_is_no_divergence(
    user: User, engine: Engines
) -> None:
    user.add(PLAN, LINE)
    one = engine(user)
    one.put_and_follow(PLAN, LINE)
    assert user.staged(PLAN) == entry(user, LINE) and one.follower.diverged == set()


def test_an_intended_artifact_becomes_a_real_entry(user: User, engine: Engines) -> None:
    user.intend(PLAN, LINE)
    engine(user).put_and_follow(PLAN, LINE)
    assert user.staged(PLAN) == entry(user, LINE)
    assert user.git("status", "--porcelain") == b""


def test_an_empty_file_that_the_user_staged_is_no_mere_intention(
    user: User, engine: Engines
) -> None:
    user.add(PLAN, "")
    one = engine(user)
    one.put_and_follow(PLAN, LINE)
    assert user.staged(PLAN) == entry(user, "")
    assert one.follower.diverged == {PLAN}


def test_an_artifact_that_the_user_removed_from_the_index_stays_removed(
    user: User, engine: Engines
) -> None:
    one = engine(user)
    one.put_and_follow(PLAN, LINE)
    user.git("rm", "--quiet", "--cached", PLAN)
    one.put_and_follow(PLAN, LINE * 2)
    assert user.staged(PLAN) == "" and one.follower.diverged == {PLAN}


def test_an_unmerged_artifact_stays_unmerged(user: User, engine: Engines) -> None:
    blob = user.text("hash-object", "-w", "--stdin", given=b"side\n")
    stages = "".join(f"100644 {blob} {stage}\t{PLAN}\n" for stage in (1, 2, 3))
    user.git("update-index", "--index-info", given=stages.encode())
    before, one = user.git("ls-files", "--unmerged"), engine(user)
    one.put_and_follow(PLAN, LINE)
    assert user.git("ls-files", "--unmerged") == before and one.follower.diverged == {PLAN}


def test_a_link_that_became_a_file_is_followed(user: User, engine: Engines) -> None:
    link = user.root / PLAN
    link.parent.mkdir(parents=True)
    link.symlink_to("elsewhere")
    user.git("add", "--", PLAN)
    user.commit()
    link.unlink()
    engine(user).put_and_follow(PLAN, LINE)
    assert user.staged(PLAN) == entry(user, LINE)


def test_a_file_that_became_a_folder_is_followed(user: User, engine: Engines) -> None:
    user.commit_file(PHASE, "once a file\n")
    (user.root / PHASE).unlink()
    one = engine(user)
    one.put_and_follow(PLAN, LINE)
    assert user.staged(PLAN) == entry(user, LINE)
    assert user.git("status", "--porcelain") == b""


@pytest.mark.usefixtures("no_second_names")
def test_a_file_that_the_user_staged_where_the_folder_is_stays_and_the_other_paths_follow(
    user: User, engine: Engines
) -> None:
    one = engine(user)
    one.put(PLAN, LINE)
    one.put("other/x.jsonl", LINE)
    blob = user.text("hash-object", "-w", "--stdin", given=b"file\n")
    user.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{PHASE}")
    assert one.follower.follow()
    assert user.staged("other/x.jsonl") == entry(user, LINE)
    assert user.staged(PHASE) == entry(user, "file\n") and one.follower.diverged == {PLAN}


# --- together with the branch ---


def test_the_index_has_the_artifact_as_soon_as_the_branch_has_it(
    user: User, engine: Engines
) -> None:
    engine(user).put(PLAN, LINE)
    assert user.git("status", "--porcelain") == b""
    assert not index_lock(user).exists()


def test_while_another_git_holds_the_index_the_branch_does_not_move(
    user: User, engine: Engines
) -> None:
    one, tip = engine(user), user.tip()
    index_lock(user).touch()
    with pytest.raises(YoloError) as raised:
        one.put(PLAN, LINE)
    assert raised.value.reason is Reason.INDEX_LOCKED
    assert user.tip() == tip and index_lock(user).read_bytes() == b""
    index_lock(user).unlink()
    assert one.put(PLAN, LINE).commit == user.tip()
    assert user.git("status", "--porcelain") == b""


def test_a_draft_that_cannot_be_written_holds_the_commit_with_its_reason(
    user: User, engine: Engines
) -> None:
    one, tip = engine(user), user.tip()
    in_the_way = Path(one.repository.own_dir, "index-draft")
    in_the_way.mkdir(parents=True)
    with pytest.raises(YoloError) as raised:
        one.put(PLAN, LINE)
    assert raised.value.reason is Reason.STORAGE_FAILED
    assert user.tip() == tip and not index_lock(user).exists()
    in_the_way.rmdir()
    assert one.put(PLAN, LINE).commit == user.tip()


def test_a_path_is_told_as_diverged_only_as_long_as_it_is(user: User, engine: Engines) -> None:
    one = engine(user)
    user.add(PLAN, "theirs\n")
    one.put(PLAN, LINE)
    assert one.follower.diverged == {PLAN}
    user.git("reset", "--quiet", "--", PLAN)
    one.put(PLAN, LINE + LINE)
    assert one.follower.diverged == set()


@pytest.mark.parametrize("stage", ["index.locked", "index.placed", "refs.moved"])
@pytest.mark.parametrize("has_index", [True, False])
def test_whoever_uses_git_at_any_moment_never_sees_the_artifact_taken_out(
    user: User,
    engine: Engines,
    monkeypatch: pytest.MonkeyPatch,
    stage: str,
    has_index: bool,
) -> None:
    """The user's `git commit` is refused or carries nothing out; it is our artifact's tip that they build on."""
    user.commit_file("theirs", "x\n")
    if not has_index:
        (user.root / ".git/index").unlink()
    one = engine(user)

    def commit(reached: str) -> None:
        if reached == stage:
            user.git("commit", "--quiet", "--allow-empty", "-m", "theirs", ok=(0, 1, 128))
            assert b"D" not in user.git("diff", "--cached", "--name-status", "--", PLAN)

    monkeypatch.setattr(failpoint, "reach", commit)
    with contextlib.suppress(YoloError):
        one.put(PLAN, LINE)
    monkeypatch.undo()
    one.put_and_follow(PLAN, LINE)
    assert user.show(PLAN) == LINE.encode() and not index_lock(user).exists()
    assert len(user.text("log", "--format=%H", "--", PLAN).split()) == 1
    user.fsck()


def test_a_branch_that_does_not_move_leaves_the_index_as_it_was(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(user)
    one, before = engine(user), user.snapshot(beside=[PLAN])
    with monkeypatch.context() as patch:
        patch.setattr(failpoint, "reach", _raising_at("index.placed"))
        with pytest.raises(YoloError):
            one.put(PLAN, LINE)
    assert user.snapshot(beside=[PLAN]) == before and user.staged(PLAN) == ""
    assert not index_lock(user).exists()


def _raising_at(stage: str) -> Callable[[str], None]:
    def reach(reached: str) -> None:
        if reached == stage:
            raise YoloError(Reason.GIT_FAILED)

    return reach


class _DeathError(BaseException):
    """The process ends here: nothing of it is cleaned up."""


@pytest.mark.parametrize("stage", ["index.locked", "index.placed", "refs.moved"])
def test_the_lock_of_a_killed_run_is_proved_ours_and_removed(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    fill(user)
    one, before = engine(user), user.snapshot(beside=[PLAN])
    cleaning = itertools.count()

    def die(reached: str) -> None:
        if reached == stage:
            next(cleaning)
            monkeypatch.setattr(os, "unlink", _dead)
            monkeypatch.setattr(os, "rename", _dead)
            raise _DeathError

    with monkeypatch.context() as patch:
        patch.setattr(failpoint, "reach", die)
        with pytest.raises(_DeathError):
            one.put(PLAN, LINE)
    monkeypatch.undo()
    one.branches.close()
    assert index_lock(user).exists() and next(cleaning) == 1
    late = IndexSync(one.repository)
    assert late.clear_own_stale_lock() and not late.clear_own_stale_lock()
    assert late.follow()
    assert user.snapshot(beside=[PLAN]) == before
    two = engine(user)
    two.put_and_follow(PLAN, LINE * 2)
    assert user.staged(PLAN) == entry(user, LINE * 2)


def _dead(*_: object) -> None:
    raise _DeathError


def test_what_a_killed_git_left_of_a_draft_is_removed_at_the_next_start(
    user: User, engine: Engines
) -> None:
    one = engine(user)
    one.put(PLAN, LINE)
    own = Path(one.repository.own_dir)
    left = [own / f"index-draft{ending}" for ending in ("", ".lock", ".before")]
    for path in left:
        path.write_bytes(b"half")
    assert not one.follower.clear_own_stale_lock()
    assert not any(path.exists() for path in left)


def test_a_lock_of_somebody_else_stays(user: User, engine: Engines) -> None:
    one = engine(user)
    one.put(PLAN, LINE)
    index_lock(user).touch()
    assert not one.follower.clear_own_stale_lock()
    assert index_lock(user).exists()


# --- when the index cannot be written, and after a restart ---


@pytest.mark.usefixtures("no_second_names")
def test_a_held_index_is_left_alone_and_followed_later(user: User, engine: Engines) -> None:
    one = engine(user)
    one.put(PLAN, LINE)
    index_lock(user).touch()
    before = (user.root / ".git/index").read_bytes()
    assert not one.follower.follow()
    assert (user.root / ".git/index").read_bytes() == before and index_lock(user).exists()
    index_lock(user).unlink()
    assert one.follower.follow() and user.git("status", "--porcelain") == b""


@pytest.mark.usefixtures("no_second_names")
def test_a_held_index_is_told_however_long_its_path_is(make: Make, engine: Engines) -> None:
    user = make("/".join(["d" * 60] * 4))
    one = engine(user)
    one.put(PLAN, LINE)
    index_lock(user).touch()
    assert not one.follower.follow()


@pytest.mark.usefixtures("no_second_names")
def test_the_note_survives_a_restart(user: User, engine: Engines) -> None:
    engine(user).put(PLAN, LINE)
    restarted = IndexSync(engine(user).repository)
    assert set(restarted.pending) == {PLAN}
    assert restarted.follow() and user.git("status", "--porcelain") == b""
    assert IndexSync(engine(user).repository).pending == {}


@pytest.mark.usefixtures("no_second_names")
def test_versions_made_while_the_index_was_held_are_followed_after_a_restart(
    user: User, engine: Engines
) -> None:
    one = engine(user)
    one.put_and_follow(PLAN, LINE)
    index_lock(user).touch()
    for count in (2, 3):
        one.put(PLAN, LINE * count)
        assert not one.follower.follow()
    index_lock(user).unlink()
    assert IndexSync(engine(user).repository).follow()
    assert user.staged(PLAN) == entry(user, LINE * 3)


def test_what_never_came_to_be_committed_never_enters_the_index(
    user: User, engine: Engines
) -> None:
    one = engine(user)
    (user.root / f".git/{REF_LOCK}").touch()
    with pytest.raises(YoloError):
        one.put(PLAN, LINE)
    (user.root / f".git/{REF_LOCK}").unlink()
    assert one.follower.follow() and user.staged(PLAN) == "" and one.follower.diverged == set()


def test_a_failed_second_version_does_not_make_the_index_forget_the_first(
    user: User, engine: Engines
) -> None:
    """Else the first stays staged for removal, and the user's next commit carries that out."""
    one = engine(user)
    one.put(PLAN, LINE)
    (user.root / f".git/{REF_LOCK}").touch()
    with pytest.raises(YoloError) as raised:
        one.put(PLAN, LINE * 2)
    (user.root / f".git/{REF_LOCK}").unlink()
    assert raised.value.reason is Reason.REF_LOCKED
    assert one.follower.follow()
    assert user.staged(PLAN) == entry(user, LINE)


@pytest.mark.parametrize(
    "said", [{}, 3, None, [["a"]], [["a", "b", [1]]], {"a": 1}, [["a", "b", [[]]]], [[[], 1, []]]]
)
def test_a_note_that_says_something_else_is_no_note(
    user: User, engine: Engines, said: object
) -> None:
    repository = engine(user).repository
    ScratchRecord(f"{repository.own_dir}/index-pending").write(said)
    assert IndexSync(repository).follow()


@pytest.mark.usefixtures("no_second_names")
def test_a_user_commit_before_the_index_followed_is_seen(user: User, engine: Engines) -> None:
    """The user's commit took the artifact back; the index is right then, and nothing is put in."""
    one = engine(user)
    one.put(PLAN, LINE)
    user.commit("user")
    assert one.follower.follow()
    assert user.staged(PLAN) == "" and user.git("diff", "--cached") == b""


def at(stage: str, acts: list[Callable[[], object]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let somebody act whenever the engine comes by a stage, once each."""

    def reach(passed: str) -> None:
        if passed == stage and acts:
            acts.pop(0)()

    monkeypatch.setattr(failpoint, "reach", reach)


@pytest.mark.usefixtures("no_second_names")
def test_a_hard_reset_between_our_look_and_our_update_is_not_undone(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = engine(user)
    one.put(PLAN, LINE)
    acts = [lambda: user.git("reset", "--quiet", "--hard", "HEAD~1")]
    at("index.begun", acts, monkeypatch)
    assert one.follower.follow() and not acts
    assert user.git("diff", "--cached") == b"" and user.staged(PLAN) == ""


@pytest.mark.usefixtures("no_second_names")
def test_what_was_put_in_while_the_user_switched_branches_is_taken_out_again(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the artifact of one branch is staged on the other, and the user's next commit carries it there."""
    user.git("branch", "side")
    one = engine(user)
    one.put(PLAN, LINE)
    at("index.begun", [lambda: user.git("checkout", "--quiet", "--force", "side")], monkeypatch)
    assert one.follower.follow()
    assert user.git("diff", "--cached") == b"" and user.staged(PLAN) == ""
    user.git("checkout", "--quiet", "--force", "main")
    assert user.staged(PLAN) == entry(user, LINE)


@pytest.mark.usefixtures("no_second_names")
def test_it_is_taken_out_later_where_the_index_is_held_at_that_moment(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = engine(user)
    one.put(PLAN, LINE)
    acts = [
        lambda: user.git("reset", "--quiet", "--hard", "HEAD~1"),
        lambda: index_lock(user).touch(),
    ]
    at("index.begun", acts, monkeypatch)
    assert not one.follower.follow()
    index_lock(user).unlink()
    assert user.staged(PLAN) == entry(user, LINE)
    assert one.follower.follow() and user.git("diff", "--cached") == b""


@pytest.mark.usefixtures("no_second_names")
def test_a_version_that_another_branch_has_is_what_the_index_gets_there(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = engine(user)
    one.put_and_follow(PLAN, LINE)
    user.git("branch", "side")
    one.put(PLAN, LINE * 2)
    at("index.begun", [lambda: user.git("checkout", "--quiet", "side")], monkeypatch)
    assert one.follower.follow()
    assert user.staged(PLAN) == entry(user, LINE)


@pytest.mark.usefixtures("no_second_names")
def test_what_the_user_stages_on_the_branch_they_switched_to_stays(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.git("branch", "side")
    one = engine(user)
    one.put(PLAN, LINE)

    def switch_and_stage() -> None:
        user.git("checkout", "--quiet", "side")
        user.add(PLAN, "theirs\n")

    at("index.followed", [switch_and_stage], monkeypatch)
    assert one.follower.follow()
    assert user.staged(PLAN) == entry(user, "theirs\n")


# --- forms that an index can have ---


def prepare_sparse(user: User) -> None:
    for place in ("kept/a", "left-out/b", f"{PHASE}/old"):
        user.commit_file(place, "x\n")
    user.git("sparse-checkout", "set", "--cone", "--sparse-index", "kept")


def prepare_non_cone(user: User) -> None:
    for place in ("kept/a", "left-out/b", f"{PHASE}/old"):
        user.commit_file(place, "x\n")
    user.git("sparse-checkout", "set", "--no-cone", "/kept/*")


FORMS: dict[str, Callable[[User], object]] = {
    "split": lambda user: user.git("update-index", "--split-index"),
    "version 4": lambda user: user.git("update-index", "--index-version=4"),
    "untracked cache": lambda user: (
        user.git("update-index", "--force-untracked-cache"),
        user.git("status"),
    ),
    "sparse cone": prepare_sparse,
    "sparse patterns": prepare_non_cone,
    "missing": lambda user: (user.root / ".git/index").unlink(),
}


@pytest.mark.parametrize("form", FORMS)
def test_an_index_of_any_form_follows(user: User, engine: Engines, form: str) -> None:
    FORMS[form](user)
    before = user.snapshot(beside=[PLAN])
    one = engine(user)
    one.put_and_follow(PLAN, LINE)
    assert user.snapshot(beside=[PLAN]) == before
    assert user.staged(PLAN) == entry(user, LINE)
    user.fsck()


@pytest.mark.parametrize(
    ("form", "mark"),
    [("split", b"link"), ("version 4", b"DIRC\0\0\0\4"), ("untracked cache", b"UNTR")],
)
def test_the_index_keeps_its_form(user: User, engine: Engines, form: str, mark: bytes) -> None:
    FORMS[form](user)
    index = user.root / ".git/index"
    assert mark in index.read_bytes()
    engine(user).put_and_follow(PLAN, LINE)
    assert mark in index.read_bytes()


@pytest.mark.parametrize("form", [None, "version 4", "untracked cache", "sparse cone"])
def test_commands_that_do_not_look_again_find_the_work_tree_clean(
    user: User, engine: Engines, form: str | None
) -> None:
    if form:
        FORMS[form](user)
    one = engine(user)
    for path, text in ((PLAN, LINE), (PLAN, LINE * 2), (f"{PHASE}/critique.jsonl", LINE * 2)):
        one.put_and_follow(path, text)
        user.git("diff-files", "--exit-code")
        user.git("diff-index", "--exit-code", "HEAD")
    user.fsck()


def test_a_file_that_changed_after_its_check_is_never_taken_for_clean(
    user: User, engine: Engines
) -> None:
    one = engine(user)
    other = LINE.replace("01", "02")
    for written in (other, LINE):
        user.write(PLAN, written)
        one.commit(CommitRequest(PLAN, LINE.encode(), "docs(01): plan"))
        user.write(PLAN, other)
        user.git("diff-files", "--exit-code", ok=(1,))
        assert b"02" in user.git("diff", "--", PLAN)


# --- generated states of the user ---

FILES = [f"src/{name}" for name in "abcdef"] + [f"{PHASE}/notes.txt", "top level.txt", "ünï/x"]


ARTIFACTS = [PLAN, f"{PHASE}/critique.jsonl", "a.jsonl"]
CHANGES = (
    ("add", "--force"), ("add", "--force", "--intent-to-add"), ("rm", "--quiet", "--cached", "--force"), ("rm", "--quiet"),
    ("update-index", "--skip-worktree"), ("update-index", "--assume-unchanged"), ("update-index", "--chmod=+x"),
    ("checkout", "--quiet"), ("reset", "--quiet"),
)  # fmt: skip


def change(user: User, rng: random.Random) -> None:
    """Do one thing as a user does it; git refuses some, such as adding a file that it was told to skip."""
    path = rng.choice(FILES)
    if rng.random() < 0.6:
        user.write(path, f"{rng.random()}\n" * rng.randint(0, 5))
    if rng.random() < 0.2:
        path = rng.choice(ARTIFACTS)
        user.write(path, f"{rng.random()}\n")
        user.git("add", "--force", *rng.choice([["--intent-to-add"], []]), "--", path)
    elif rng.random() < 0.05:
        user.git("stash", "push", "--quiet", "--include-untracked", ok=(0, 1))
    else:
        user.git(*rng.choice(CHANGES), "--", path, ok=(0, 1, 128))


def expected_entry(user: User, path: str, data: str) -> str:
    """Return the entry that the artifact must have afterwards, from what the user has staged before."""
    before, in_head = user.staged(path), user.text("ls-tree", "HEAD", "--", path)
    if (
        not before
        or user.text("diff", "--cached", "--name-only", "--ita-invisible-in-index", "--", path)
        == ""
    ):
        untouched = bool(before) or not in_head
        return entry(user, data) if untouched else before
    return before


@pytest.mark.parametrize("seed", range(16 if os.environ.get("YOLO_TORTURE") else 5))
def test_generated_states_of_the_user_stay_as_they_were(
    make: Make, engine: Engines, seed: int
) -> None:
    """Ten states per seed, each on top of the last."""
    print(f"seed {seed}")
    rng, user = random.Random(seed), make()
    for path in FILES[:4]:
        user.commit_file(path, f"{path}\n" * 4)
    one = engine(user, durable=False)
    for _ in range(10):
        for _ in range(rng.randint(1, 5)):
            change(user, rng)
        check_one_state(user, one, rng)


def check_one_state(user: User, one: Engine, rng: random.Random) -> None:
    wanted = {
        path: f'{{"n":{rng.random()}}}\n' for path in rng.sample(ARTIFACTS, rng.randint(1, 3))
    }
    entries = {path: expected_entry(user, path, data) for path, data in wanted.items()}
    before, one.follower.diverged = user.snapshot(beside=list(wanted)), set()
    for path, data in wanted.items():
        one.put(path, data)
    assert one.follower.follow()
    assert user.snapshot(beside=list(wanted)) == before
    assert {path: user.staged(path) for path in wanted} == entries
    assert one.follower.diverged == {
        path for path, data in wanted.items() if entries[path] != entry(user, data)
    }


# --- the draft that git begins beforehand ---


@pytest.fixture
def long_lived(user: User, engine: Engines) -> Iterator[Engine]:
    one = following(engine(user))
    for number in range(2):
        one.put(PLAN, LINE * (number + 1))
    yield one
    one.follower.close()


def following(one: Engine) -> Engine:
    """Let the index follow as it does in a daemon."""
    one.follower = IndexSync(one.repository, lives_long=True)
    one.committer = Committer(one.repository, one.branches, one.follower, lambda: datetime.now(UTC))
    return one


def waiting(one: Engine) -> Conversation:
    """Return the git that waits with the next draft."""
    one.follower._drafter.submit(lambda: None).result()
    begun = one.follower._prefetched
    assert begun is not None
    return begun.writer


def test_a_draft_that_was_begun_beforehand_is_the_one_that_is_placed(
    user: User, long_lived: Engine
) -> None:
    for number in range(3, 7):
        pid = waiting(long_lived).pid
        long_lived.put(PLAN, LINE * number)
        assert waiting(long_lived).pid != pid and not is_running(pid)
        assert user.git("status", "--porcelain") == b""
    user.fsck()


@pytest.mark.parametrize("change", ["stages", "commits", "sets a filter", "kills git", "collects"])
def test_whatever_the_user_does_while_a_draft_waits_stays(
    user: User, long_lived: Engine, change: str
) -> None:
    writer = waiting(long_lived)
    if change == "stages":
        user.add("theirs", "x\n")
    elif change == "commits":
        user.commit_file("theirs", "x\n")
    elif change == "sets a filter":
        user.git("config", "filter.loud.clean", "touch ran; cat")
        user.write(".gitattributes", "theirs filter=loud\n")
        user.git("add", "-N", ".gitattributes")
    elif change == "kills git":
        os.kill(writer.pid, signal.SIGKILL)
    else:
        user.git("gc", "--quiet", "--prune=now")
    before = user.git("ls-files", "--stage", "--", ":!.yolo-planning")
    assert long_lived.put(PLAN, LINE * 9).commit == user.tip()
    assert user.show(PLAN) == user.git("show", f":{PLAN}") == (LINE * 9).encode()
    assert user.git("ls-files", "--stage", "--", ":!.yolo-planning") == before
    assert not (user.root / "ran").exists() and not index_lock(user).exists()
    assert not is_running(writer.pid)


def test_a_draft_that_git_has_not_read_yet_is_not_taken_from_under_it(
    user: User, long_lived: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = PLAN.replace("plan", "summary")
    user.add(other, "theirs\n")
    long_lived.put(PLAN, LINE * 8)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    converse = long_lived.repository.git.converse

    def hold(*arguments: str, more: Mapping[str, str], **others: Any) -> Conversation:
        # git opens its trace before it reads anything, and a pipe opens when somebody reads it
        return converse(*arguments, more={**more, "GIT_TRACE2": str(gate)}, **others)

    with monkeypatch.context() as patch:
        patch.setattr(long_lived.repository.git, "converse", hold)
        long_lived.put(PLAN, LINE * 9)
        waiting(long_lived)
    before = user.git("ls-files")
    long_lived.put(other, LINE)  # what the user has staged there stays: this draft changes nothing
    reader = os.open(gate, os.O_RDONLY | os.O_NONBLOCK)
    try:
        long_lived.put(PLAN, LINE * 10)
    finally:
        os.close(reader)
    assert user.git("ls-files") == before
    assert user.git("show", f":{other}") == b"theirs\n"


def test_nothing_waits_after_the_end_nor_beside_a_single_commit(
    user: User, engine: Engines, long_lived: Engine
) -> None:
    pid = waiting(long_lived).pid
    long_lived.follower.close()
    assert not is_running(pid)
    assert not list(Path(long_lived.repository.own_dir).glob("index-draft*"))
    single = following(engine(user))
    single.put(PLAN, LINE * 7)
    single.follower._drafter.submit(lambda: None).result()
    assert single.follower._prefetched is None
