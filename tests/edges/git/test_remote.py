"""Conversations with a remote while other processes of the same clone have them too."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tests.edges.git.conftest import NEEDS_REF_FILES, Engines, User
from yolo_fs.edges.git.remote import Remote
from yolo_fs.edges.git.runner import Git
from yolo_fs.edges.lock import hold, holder
from yolo_fs.reasons import YoloError

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
