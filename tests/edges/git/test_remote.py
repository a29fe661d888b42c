"""Conversations with a remote while other processes of the same clone have them too."""

from __future__ import annotations

import threading

from tests.edges.git.conftest import Engines, User
from yolo_fs.edges.git.remote import Remote

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
            remote.fetch("refs/heads/main", INTO)
    finally:
        is_over.set()
        mover.join()
    assert moves > 5, "the other process did not move the ref"
