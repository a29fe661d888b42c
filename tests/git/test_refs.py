"""A branch moves only from where it was seen, and only locks that are provably ours are removed.

See docs/dev/faults.md#f02, #f08, #f24 and #f27.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.git.conftest import NEEDS_REF_FILES, REFTABLE, Engine, Engines, Make, User
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git import conversation, refs
from yolo_fs.git.object_format import ObjectFormat
from yolo_fs.git.refs import REFLOG_MESSAGE, Remote
from yolo_fs.git.runner import Git
from yolo_fs.system import IS_LINUX
from yolo_fs.system.in_place import ScratchRecord
from yolo_fs.system.lock import hold, holder

MAIN = "refs/heads/main"


def commits(user: User, count: int) -> list[str]:
    """Return new commits that no branch has."""
    tree = user.tip("HEAD^{tree}")
    return [
        user.text("commit-tree", "-m", f"c{number}", "-p", "HEAD", tree) for number in range(count)
    ]


def reason_of(move: Callable[[], object]) -> Reason:
    with pytest.raises(YoloError) as raised:
        move()
    return raised.value.reason


def lock_of(user: User, ref: str = MAIN) -> Path:
    return user.root / (".git/reftable/tables.list.lock" if REFTABLE else f".git/{ref}.lock")


def test_a_branch_moves_and_its_reflog_says_who(user: User, engine: Engines) -> None:
    old, (new,) = user.tip(), commits(user, 1)
    engine(user).branches.move(MAIN, new, old)
    assert user.tip() == new
    assert (
        user.text("reflog", "-1", "--format=%gs", MAIN)
        == REFLOG_MESSAGE
        == user.text("reflog", "-1", "--format=%gs", "HEAD")
    )


def test_a_git_that_keeps_its_answers_is_told_by_its_age(
    user: User, engine: Engines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git before 2.34 answers `update-ref --stdin` only when it ends."""
    real, old, (new,) = shutil.which("git"), user.tip(), commits(user, 1)
    branches = engine(user).branches
    program = tmp_path / "old/git"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\ncase " $* " in\n*" update-ref "*) exec sleep 60;;\n'
        f'*" version "*) echo git version 2.33.8;;\n*) exec {real} "$@";;\nesac\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(conversation, "TIMEOUT_S", 0.5)
    assert reason_of(lambda: branches.move(MAIN, new, old)) is Reason.GIT_MISSING
    assert user.tip() == old


def test_one_helper_moves_many_times(user: User, engine: Engines) -> None:
    branches, tip = engine(user).branches, user.tip()
    for new in commits(user, 5):
        branches.move(MAIN, new, tip)
        tip = new
    assert user.tip() == tip


def test_a_branch_that_moved_stays_where_the_other_put_it(user: User, engine: Engines) -> None:
    seen, (new,) = user.tip(), commits(user, 1)
    moved = user.commit("meanwhile")
    branches = engine(user).branches
    assert reason_of(lambda: branches.move(MAIN, new, seen)) is Reason.BRANCH_MOVED
    assert user.tip() == moved and not lock_of(user).exists()
    branches.move(MAIN, new, moved)
    assert user.tip() == new


def test_a_branch_that_was_born_meanwhile_is_not_born_again(user: User, engine: Engines) -> None:
    (new,) = commits(user, 1)
    assert reason_of(lambda: engine(user).branches.move(MAIN, new, None)) is Reason.BRANCH_MOVED


def test_a_branch_that_is_born_under_our_eyes_is_not_taken_for_a_broken_one(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, (new,), ref = engine(user), commits(user, 1), "refs/heads/young"
    whole, base = one.repository.tip, user.tip()

    def look_then_be_born(name: str) -> str | None:
        seen = whole(name)
        monkeypatch.undo()
        user.git("update-ref", ref, base)
        return seen

    monkeypatch.setattr(one.repository, "tip", look_then_be_born)
    try:
        one.branches.move(ref, new, None)
    except YoloError as error:
        assert error.reason is Reason.BRANCH_MOVED


def test_a_branch_that_vanished_counts_as_moved(user: User, engine: Engines) -> None:
    seen, (new,) = user.tip(), commits(user, 1)
    user.git("checkout", "--quiet", "--detach")
    user.git("branch", "-D", "main")
    assert reason_of(lambda: engine(user).branches.move(MAIN, new, seen)) is Reason.BRANCH_MOVED
    assert user.text("for-each-ref") == ""


@pytest.mark.parametrize("depth", [0, 180], ids=["short path", "long path"])
def test_a_lock_of_another_git_is_respected(make: Make, engine: Engines, depth: int) -> None:
    user = make("/".join(["repo", *["d" * 60] * (depth // 60)]))
    seen, (new,) = user.tip(), commits(user, 1)
    lock_of(user).touch()
    branches = engine(user).branches
    assert reason_of(lambda: branches.move(MAIN, new, seen)) is Reason.REF_LOCKED
    assert lock_of(user).exists() and user.tip() == seen
    lock_of(user).unlink()
    branches.move(MAIN, new, seen)
    assert user.tip() == new


@pytest.mark.parametrize("name", ["short", "long-" + "x" * 150])
def test_a_moved_branch_is_told_however_long_its_name_is(
    make: Make, engine: Engines, name: str
) -> None:
    user = make("sha256", "--object-format=sha256")
    ref = f"refs/heads/{name}"
    seen, (one, two) = user.tip(), commits(user, 2)
    user.git("update-ref", ref, one)
    assert reason_of(lambda: engine(user).branches.move(ref, two, seen)) is Reason.BRANCH_MOVED


OURS = "refs/yolo-fs/remote/main"


@NEEDS_REF_FILES
@pytest.mark.parametrize(
    "link",
    ["refs/yolo-fs", "refs/yolo-fs/remote", OURS, "logs/refs/yolo-fs", "symbolic"],
)
def test_a_ref_of_ours_that_leads_elsewhere_is_not_written(
    user: User, engine: Engines, tmp_path: Path, link: str
) -> None:
    (new,) = commits(user, 1)
    outside = tmp_path / "outside"
    outside.mkdir()
    if link == "symbolic":
        user.git("symbolic-ref", OURS, MAIN)
    else:
        (user.root / ".git" / link).parent.mkdir(parents=True, exist_ok=True)
        (user.root / ".git" / link).symlink_to(outside)
    one, tip = engine(user), user.tip()
    user.git("update-ref", "refs/heads/new", new)

    old = one.repository.tip(OURS)
    for private in (False, True):
        updater = refs.RefUpdater(one.repository, is_private=private)
        assert reason_of(lambda each=updater: each.move(OURS, new, old)) is Reason.NOT_REGULAR
        updater.close()
    remote = Remote(one.repository, str(user.root))
    assert reason_of(lambda: remote.fetch({"refs/heads/new": OURS})) is Reason.NOT_REGULAR
    assert list(outside.rglob("*")) == []
    assert user.tip() == tip


@pytest.mark.skipif(REFTABLE, reason="in a reftable one lock is for all refs, HEAD among them")
def test_a_locked_head_stops_the_move(user: User, engine: Engines) -> None:
    seen, (new,) = user.tip(), commits(user, 1)
    (user.root / ".git/HEAD.lock").touch()
    assert reason_of(lambda: engine(user).branches.move(MAIN, new, seen)) is Reason.REF_LOCKED
    assert user.tip() == seen and not lock_of(user).exists()


@NEEDS_REF_FILES
@pytest.mark.parametrize("content", [b"", b"\0" * 41], ids=["empty", "zeros"])
def test_a_broken_branch_is_called_broken_and_never_born_again(
    user: User, engine: Engines, content: bytes
) -> None:
    (new,) = commits(user, 1)
    (user.root / ".git" / MAIN).write_bytes(content)
    assert reason_of(lambda: engine(user).branches.move(MAIN, new, None)) is Reason.BRANCH_BROKEN
    assert (user.root / ".git" / MAIN).read_bytes() == content


@NEEDS_REF_FILES
def test_a_link_where_a_new_branch_would_be_makes_no_branch_of_another_name(
    user: User, engine: Engines
) -> None:
    (new,) = commits(user, 1)
    (user.root / ".git/refs/heads/mine").symlink_to("refs/heads/another")
    move = lambda: engine(user).branches.move("refs/heads/mine", new, None)  # noqa: E731
    assert reason_of(move) is Reason.BRANCH_BROKEN
    assert user.text("for-each-ref", "--format=%(refname)") == MAIN


@pytest.mark.parametrize("name", ["x {tip}\nupdate refs/heads/y", "x {tip}"])
def test_the_name_of_a_branch_is_no_command_to_the_helper(
    user: User, engine: Engines, name: str
) -> None:
    (new,), ref = commits(user, 1), f"refs/heads/{name.format(tip=user.tip())}"
    before = user.text("for-each-ref")
    assert reason_of(lambda: engine(user).branches.move(ref, new, None)) is Reason.GIT_FAILED
    assert user.text("for-each-ref") == before


def test_a_missing_commit_moves_nothing(user: User, engine: Engines) -> None:
    seen = user.tip()
    assert reason_of(lambda: engine(user).branches.move(MAIN, "f" * 40, seen)) is Reason.GIT_FAILED
    assert user.tip() == seen


def test_a_move_that_was_made_and_then_reported_as_failed_counts_as_made(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = refs._expect

    def fail_at_the_end(helper, said: bytes) -> None:
        whole(helper, said)
        if said == b"commit: ok":
            raise YoloError(Reason.GIT_FAILED, "fatal: rename: Input/output error")

    monkeypatch.setattr(refs, "_expect", fail_at_the_end)
    seen, (new,) = user.tip(), commits(user, 1)
    engine(user).branches.move(MAIN, new, seen)
    assert user.tip() == new


def test_a_helper_that_died_while_idle_is_replaced(user: User, engine: Engines) -> None:
    branches, seen, (one, two) = engine(user).branches, user.tip(), commits(user, 2)
    branches.move(MAIN, one, seen)
    os.kill(branches._helper.pid, signal.SIGKILL)
    try:
        branches.move(MAIN, two, one)
    except YoloError:
        branches.move(MAIN, two, one)
    assert user.tip() == two


# --- locks that a dead helper left ---


class KilledError(Exception):
    """Raised in the test in place of the death of the whole daemon."""


def die_holding_locks(
    user: User, one: Engine, monkeypatch: pytest.MonkeyPatch, *, kill: bool = True
) -> None:
    """Let the helper be killed after it took its locks and we noted them."""
    (new,), branches = commits(user, 1), one.branches
    whole = branches._notes.write

    def write_then_die(locks: tuple[str, ...]) -> None:
        whole(locks)
        if kill:
            os.kill(branches._notes._note.read()["pid"], signal.SIGKILL)
        raise KilledError

    monkeypatch.setattr(branches._notes, "write", write_then_die)
    with pytest.raises(KilledError):
        branches.move(MAIN, new, user.tip())
    if kill:
        branches.close()
    assert lock_of(user).exists()


def test_the_lock_of_our_dead_helper_is_removed(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_holding_locks(user, engine(user), monkeypatch)
    restarted = engine(user).branches
    assert str(lock_of(user)) in restarted.clear_own_stale_locks()
    assert not lock_of(user).exists() and not (user.root / ".git/HEAD.lock").exists()
    restarted.move(MAIN, commits(user, 1)[0], user.tip())
    assert restarted.clear_own_stale_locks() == ()


def test_the_lock_of_our_living_helper_stays(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_holding_locks(user, engine(user), monkeypatch, kill=False)
    assert engine(user).branches.clear_own_stale_locks() == ()
    assert lock_of(user).exists()


def recreate(lock: Path) -> None:
    lock.unlink()
    lock.touch()


def copy_back(lock: Path) -> None:
    shutil.copy2(lock, lock.with_suffix(".copy"))
    os.rename(lock.with_suffix(".copy"), lock)


@pytest.mark.parametrize(
    "change",
    [recreate, copy_back, os.utime],
    ids=["made anew", "copied", "same inode, other ctime"],
)
def test_a_lock_that_is_not_the_one_we_noted_stays(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object]
) -> None:
    die_holding_locks(user, engine(user), monkeypatch)
    change(lock_of(user))
    assert str(lock_of(user)) not in engine(user).branches.clear_own_stale_locks()
    assert lock_of(user).exists()


@pytest.mark.skipif(not IS_LINUX, reason="only /proc tells when a process began")
def test_a_reused_process_number_does_not_make_a_dead_helper_alive(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = engine(user)
    die_holding_locks(user, one, monkeypatch)
    note = ScratchRecord(f"{one.repository.own_dir}/ref-locks")
    note.write(note.read() | {"pid": os.getpid()})
    assert str(lock_of(user)) in engine(user).branches.clear_own_stale_locks()


@pytest.mark.parametrize(
    "said", [None, {}, [1], {"pid": 1, "started": 0, "boot": "x", "locks": [["a"]]}, {"pid": "x"}]
)
def test_a_foreign_lock_stays_whatever_our_note_says(
    user: User, engine: Engines, said: object
) -> None:
    one = engine(user)
    lock_of(user).touch()
    ScratchRecord(f"{one.repository.own_dir}/ref-locks").write(said)
    assert one.branches.clear_own_stale_locks() == ()
    assert lock_of(user).exists()


def test_only_the_branch_and_head_change(user: User, engine: Engines) -> None:
    user.git("branch", "other")
    user.git("tag", "v1")
    before, (new,) = user.text("for-each-ref"), commits(user, 1)
    engine(user).branches.move(MAIN, new, user.tip())
    assert user.text("for-each-ref").replace(new, user.tip("HEAD^")) == before


def test_a_first_branch_in_a_new_folder_is_born(make: Make, engine: Engines) -> None:
    user, object_format = make("unborn", born=False), ObjectFormat("sha1")
    tree = user.text("mktree", given=b"")
    new = user.text("commit-tree", "-m", "root", tree)
    engine(user).branches.move("refs/heads/a/b/c", new, None)
    assert user.tip("refs/heads/a/b/c") == new != object_format.zero


# --- conversations with a remote while other processes of the same clone have them too ---


INTO = "refs/yolo-fs/remote/main"


def test_two_processes_that_fetch_into_one_ref_do_not_take_the_remote_for_away(
    user: User, engine: Engines
) -> None:
    user.git("clone", "--quiet", "--bare", ".", "../team.git")
    user.git("remote", "add", "team", str(user.root.parent / "team.git"))
    tree = user.git("write-tree").decode().strip()
    sides = [
        user.git("commit-tree", "-m", side, "-p", user.tip(), tree).decode().strip()
        for side in ("left", "right")
    ]
    is_over = threading.Event()
    moves = 0

    def move() -> None:
        nonlocal moves
        while not is_over.wait(0.002):
            user.git("update-ref", INTO, sides[moves % 2], ok=(0, 128))
            moves += 1

    mover = threading.Thread(target=move)
    mover.start()
    try:
        remote = Remote(engine(user).repository, "team")
        for _ in range(20):
            remote.fetch({"refs/heads/main": INTO})
    finally:
        is_over.set()
        mover.join()
    assert moves > 5, "the other process did not move the ref"


@NEEDS_REF_FILES
def test_a_lock_that_a_killed_fetch_left_keeps_no_later_one_out(
    user: User, engine: Engines
) -> None:
    user.git("clone", "--quiet", "--bare", ".", "../team.git")
    user.git("remote", "add", "team", str(user.root.parent / "team.git"))
    repository = engine(user).repository
    lock = Path(repository.common_dir) / f"{INTO}.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    with pytest.raises(YoloError):  # somebody may be at it this very moment
        Remote(repository, "team").fetch({"refs/heads/main": INTO})
    os.utime(lock, (1e9, 1e9))
    Remote(repository, "team").fetch({"refs/heads/main": INTO})
    assert repository.tip(INTO) == user.tip()
    assert not lock.exists()


@pytest.mark.parametrize("more", [{}, {"refs/heads/line": "HEAD"}])
def test_somebody_who_is_faster_on_the_server_is_no_refusal(
    user: User, engine: Engines, more: dict[str, str]
) -> None:
    user.git("clone", "--quiet", "--bare", ".", "../team.git")
    bare = user.root.parent / "team.git"
    user.git("remote", "add", "team", str(bare))
    tree = user.git("write-tree").decode().strip()
    tip = user.tip()
    fast, slow = (
        user.git("commit-tree", "-m", name, "-p", tip, tree).decode().strip()
        for name in ("fast", "slow")
    )
    user.git("push", "--quiet", "team", f"{tip}:refs/heads/board", f"{fast}:refs/heads/aside")
    hook = bare / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        f"#!/bin/sh\nunset GIT_QUARANTINE_PATH\ngit update-ref refs/heads/board {fast}\n"
    )
    hook.chmod(0o755)

    oids = {"refs/heads/board": slow} | dict.fromkeys(more, slow)
    assert not Remote(engine(user).repository, "team").push(oids)

    found = user.git("ls-remote", "team", "refs/heads/board", *more).decode().split()
    assert found == [fast, "refs/heads/board"]


def test_a_remote_that_hangs_does_not_keep_the_lock_of_a_daemon_that_is_gone(
    user: User, tmp_path: Path
) -> None:
    hangs, began = tmp_path / "hangs", tmp_path / "began"
    hangs.touch()
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\ntouch {began}\nwhile [ -e {hangs} ]; do sleep 0.02; done\nexit 1\n")
    ssh.chmod(0o755)
    user.git("config", "core.sshCommand", str(ssh))
    user.git("config", "ssh.variant", "simple")
    lock = hold(str(tmp_path / "daemon.lock"))
    assert lock is not None
    asked = threading.Thread(
        target=lambda: Git(str(user.root), keep_open=(lock.fd,)).run(
            "ls-remote", "somewhere:team.git", ok=(0, 128), networked=True
        )
    )
    asked.start()
    try:
        while not began.exists():
            assert asked.is_alive(), "git did not call the remote"
        lock.release()  # as the death of the daemon does
        assert holder(lock.path) is None
        assert hangs.exists() and asked.is_alive()
    finally:
        hangs.unlink()
        asked.join()


def test_ssh_is_told_never_to_ask(
    engine: Engines, user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, ssh = tmp_path / "said", tmp_path / "bin/ssh"
    ssh.parent.mkdir()
    ssh.write_text(f'#!/bin/sh\necho "$@" > {said}\nexit 1\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")

    with pytest.raises(YoloError):
        Remote(engine(user).repository, "somewhere:team.git").tips("refs/heads/main")

    assert "BatchMode=yes" in said.read_text()
