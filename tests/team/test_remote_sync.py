"""Clones meet at a branch of their git remote: once each, in order, whatever the remote does."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.team.work_trees import (
    GAPS,
    PLAN,
    SUMMARY,
    Clones,
    CloneTree,
    TeamTree,
    commits_named,
    gap,
    plan,
    summary,
)
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git import refs as remote_module
from yolo_fs.team import remote_sync
from yolo_fs.team.background_sync import TeamLink
from yolo_fs.team.membership import leave
from yolo_fs.workspace.settings import load

BRANCH = "refs/heads/yolo/team/main"


def settle(*clones: CloneTree) -> None:
    for _ in range(8):
        moved = [clone.meet() for clone in clones]
        if not any(moved):
            return
    raise AssertionError([clone.synchronizer.sync_status() for clone in clones])


def at_remote(bare: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", f"--git-dir={bare}", *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


def assert_agreed(bare: Path, *clones: CloneTree) -> None:
    there = at_remote(bare, "ls-tree", "-r", BRANCH)
    assert all(clone.planning() == there for clone in clones)
    origins = at_remote(bare, "log", "--format=%(trailers:key=Yolo-Origin,valueonly)", BRANCH)
    assert len(origins.split()) == len(set(origins.split()))
    assert len(origins.split()) == int(at_remote(bare, "rev-list", "--count", BRANCH))


def test_an_artifact_travels_over_the_remote_and_nothing_else_does(
    clones: Clones, bare: Path
) -> None:
    a, b = clones
    before = at_remote(bare, "for-each-ref")
    a.place("src/secret.py", "x = 1\n")
    a.git("add", "-A")
    a.git("commit", "-q", "-m", "feat(01-01): not for the team")
    a.write(GAPS, gap(1))
    a.write(GAPS, gap(1), gap(2))
    settle(*clones)

    assert_agreed(bare, a, b)
    assert b.committed(GAPS).count("\n") == 2
    after = at_remote(bare, "for-each-ref").splitlines()
    assert [line.split("\t")[1] for line in after if line not in before] == [BRANCH]
    assert at_remote(bare, "rev-list", "--count", BRANCH).strip() == "2"
    assert b.git("for-each-ref", "refs/remotes").count("yolo") == 0


def test_nothing_is_pushed_before_the_user_has_joined_and_agreed(
    new_clone: Callable[[str], CloneTree], bare: Path
) -> None:
    clone = new_clone("a")
    clone.write(GAPS, gap(1))
    before = at_remote(bare, "for-each-ref")

    assert run(["team", "join", "origin", "-C", str(clone.root)]) == 2
    assert run(["team", "sync", "-C", str(clone.root)]) == 3
    assert at_remote(bare, "for-each-ref") == before

    assert run(["team", "join", "origin", "--yes", "-q", "-C", str(clone.root)]) == 0
    assert run(["team", "sync", "-q", "-C", str(clone.root)]) == 0
    assert_agreed(bare, clone)


@pytest.mark.parametrize("with_source", [True, False])
def test_the_commits_that_a_summary_names_count_elsewhere_where_the_branch_came_along(
    new_clone: Callable[[str], CloneTree], bare: Path, *, with_source: bool
) -> None:
    a = new_clone("a").join_remote(with_source=with_source)
    b = new_clone("b").join_remote()
    a.write(PLAN, plan("Tokens"))
    a.place("src/a.ts", "export {}\n")
    a.git("add", "src")
    a.git("commit", "-q", "-m", "feat(01-01): T1 store tokens")
    source = a.git("rev-parse", "HEAD").strip()
    a.write(SUMMARY, summary(source))
    settle(a, b)

    assert b.committed(SUMMARY) == a.committed(SUMMARY)
    assert commits_named(b) == ({source} if with_source else set())
    line = f"refs/yolo/lines/{a.synchronizer.membership.clone}"
    assert (line in at_remote(bare, "for-each-ref", "--format=%(refname)")) is with_source

    a.git("commit", "-q", "--amend", "--no-edit")  # the line is the clone's own: it may go back
    a.write(GAPS, gap(1))
    settle(a, b)
    assert_agreed(bare, a, b)
    leave(b.repository)
    assert commits_named(b) == set()


def test_who_leaves_may_take_away_what_is_there_for_it_alone(
    new_clone: Callable[[str], CloneTree], bare: Path
) -> None:
    a, b = (new_clone(name).join_remote(with_source=True) for name in "ab")
    a.write(GAPS, gap(1))
    sync = a.remote_sync
    lease = next(lease for lease in sync.leases() if lease.dept == "backend")
    sync.pass_lease("backend", a.synchronizer.membership.clone, lease)
    sync.renew_leases()
    settle(a, b)
    b.write(GAPS, gap(1), gap(2))
    others = f"refs/yolo/lines/{b.synchronizer.membership.clone}"
    b.write(PLAN, plan("Tokens"))
    assert "refs/yolo/leases/backend" in at_remote(bare, "for-each-ref")

    assert run(["team", "leave", "--delete-mine", "-q", "-C", str(a.root)]) == 0
    settle(b)

    names = at_remote(bare, "for-each-ref", "--format=%(refname)", "refs/yolo", "refs/heads/yolo")
    assert names.split() == [BRANCH, others]
    assert [lease.holder for lease in b.remote_sync.leases() if lease.dept == "backend"] == [""]
    assert gap(1) in at_remote(bare, "show", f"{BRANCH}:{GAPS}")


def test_where_the_remote_takes_no_branch_of_ours_the_artifacts_go_alone(
    new_clone: Callable[[str], CloneTree], bare: Path
) -> None:
    a = new_clone("a").join_remote(with_source=True)
    hook = bare / "hooks/update"
    hook.write_text('#!/bin/sh\ncase "$1" in */yolo/lines/*) echo no lines >&2; exit 1;; esac\n')
    hook.chmod(0o755)
    a.write(GAPS, gap(1))
    settle(a)

    assert ("team.source_refused", "") in a.events
    assert_agreed(bare, a)
    assert "lines" not in at_remote(bare, "for-each-ref", "--format=%(refname)")


def test_two_that_publish_at_once_are_merged_and_both_arrive(clones: Clones, bare: Path) -> None:
    a, b = clones
    a.write(GAPS, gap(1))
    b.write(GAPS, gap(2))
    b.write(PLAN, plan("Tokens"))
    settle(*clones)

    assert_agreed(bare, a, b)
    assert a.committed(GAPS).count("\n") == 2
    assert at_remote(bare, "rev-list", "--count", BRANCH).strip() == "4"


def test_a_push_whose_acknowledgement_was_lost_is_not_repeated(clones: Clones, bare: Path) -> None:
    a, b = clones
    a.write(GAPS, gap(1))
    a.remote_sync.exchange()
    a.git("update-ref", "-d", a.synchronizer.membership.ref)
    a.write(GAPS, gap(1), gap(2))
    settle(*clones)

    assert_agreed(bare, a, b)
    assert at_remote(bare, "rev-list", "--count", BRANCH).strip() == "2"


def test_what_was_written_while_the_remote_was_away_goes_out_in_order_when_it_is_back(
    clones: Clones, bare: Path
) -> None:
    a, b = clones
    bare.rename(bare.with_suffix(".away"))
    for number in (1, 2, 3):
        a.write(GAPS, *map(gap, range(1, number + 1)))
    with pytest.raises(YoloError) as away:
        a.remote_sync.exchange()
    assert away.value.reason is Reason.REMOTE_AWAY

    bare.with_suffix(".away").rename(bare)
    settle(*clones)
    assert_agreed(bare, a, b)
    assert at_remote(bare, "rev-list", "--count", BRANCH).strip() == "3"


def test_a_hook_that_refuses_is_told_in_its_words_and_not_asked_in_a_loop(
    clones: Clones, bare: Path
) -> None:
    a, _ = clones
    hook = bare / "hooks/pre-receive"
    hook.write_text(f"#!/bin/sh\necho no bots here >&2\necho x >> {bare}/asked\nexit 1\n")
    hook.chmod(0o755)
    a.write(GAPS, gap(1))
    sync = a.remote_sync
    with pytest.raises(YoloError, match="no bots here") as refused:
        sync.exchange()
    assert refused.value.reason is Reason.REMOTE_REFUSED

    assert sync.exchange().waiting == 1
    assert (bare / "asked").read_text() == "x\n"


@pytest.mark.parametrize(
    "command", [("update-ref", BRANCH, f"{BRANCH}~1"), ("update-ref", "-d", BRANCH)]
)
def test_a_team_branch_that_somebody_moved_back_or_deleted_is_made_whole_again(
    clones: Clones, bare: Path, command: tuple[str, ...]
) -> None:
    a, b = clones
    a.write(PLAN, plan("Tokens"))
    b.write(GAPS, gap(1))
    settle(*clones)
    at_remote(bare, *command)
    settle(*clones)

    assert_agreed(bare, a, b)


def test_a_clone_that_is_a_copy_of_another_one_publishes_nothing_twice(
    clones: Clones, bare: Path, tmp_path: Path
) -> None:
    a, b = clones
    a.write(PLAN, plan("Tokens"))
    settle(*clones)
    shutil.copytree(a.root, tmp_path / "copy")
    copy = CloneTree(tmp_path / "copy").join_remote()
    a.write(GAPS, gap(1))
    copy.write(GAPS, gap(2))
    settle(a, b, copy)

    assert_agreed(bare, a, b, copy)
    copy.close()


def test_a_remote_that_hangs_is_given_up(clones: Clones, monkeypatch: pytest.MonkeyPatch) -> None:
    a, _ = clones
    monkeypatch.setattr(remote_module, "CALL_S", 0.5)
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        a.move_remote(f"git://127.0.0.1:{server.getsockname()[1]}/x")
        began = time.monotonic()
        with pytest.raises(YoloError) as away:
            a.remote_sync.exchange()

    assert away.value.reason is Reason.REMOTE_AWAY
    assert time.monotonic() - began < 20


def test_a_remote_that_runs_a_program_is_not_asked(clones: Clones, tmp_path: Path) -> None:
    a, _ = clones
    a.move_remote(f"ext::sh -c touch% {tmp_path}/run")

    with pytest.raises(YoloError):
        a.remote_sync.exchange()
    assert not (tmp_path / "run").exists()


def test_a_long_queue_goes_out_in_pushes_that_nobody_overtakes_for_their_length(
    clones: Clones, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_sync, "_OFFERED_MOST", 2)
    a, b = clones
    for number in range(1, 8):
        a.write(GAPS, *(gap(each) for each in range(1, number + 1)))

    assert a.remote_sync.exchange().waiting == 0
    b.meet()

    assert a.count_of("team.published") == [2, 4, 1]
    assert_agreed(bare, a, b)
    assert b.subjects() == a.subjects() and len(b.subjects()) == 7


def test_who_knows_the_remote_offers_before_it_looks_and_one_merge_holds_up_no_other_file(
    clones: Clones, bare: Path
) -> None:
    a, b = clones
    for clone in clones:
        clone.write(GAPS, gap(1))
        clone.meet()
    sync = a.remote_sync
    sync.exchange()
    b.write(GAPS, gap(1), gap(2))
    b.remote_sync.exchange()
    a.write(GAPS, gap(1), gap(3))
    a.write(PLAN, plan("Tokens"))

    left = sync.exchange()  # its first offer comes too late for the list

    assert a.synchronizer.sync_status().merges and not left.waiting
    assert "Tokens" in at_remote(bare, "show", f"{BRANCH}:{PLAN}")
    settle(a, b)
    assert_agreed(bare, a, b)


def test_a_commit_of_ours_is_no_reason_to_look_at_a_remote_at_once_and_one_of_the_team_is(
    new_tree: Callable[[str], TeamTree], clones: Clones, bare: Path
) -> None:
    bare.rename(bare.with_suffix(".away"))
    told = threading.Semaphore(0)
    for tree, at_once in ((clones[0], False), (new_tree("alone").join(), True)):
        link = TeamLink(tree.repository, tree.hear, told.release)

        def look(tree: TeamTree = tree, link: TeamLink = link) -> None:
            ours = tree.coordinator
            link.look(load(str(tree.root)), ours.committer, ours.obstacles)

        look()
        if not at_once:
            while not link.is_due():  # it tells once that the remote is away
                assert told.acquire(timeout=60)
        look()
        tree.write(GAPS, gap(1))

        assert link.is_due() is at_once
        look()
        assert not link.is_due()
        tree.git("update-ref", tree.synchronizer.membership.ref, "HEAD")
        assert link.is_due()
        look()
        link.close()  # as when the configuration has changed
        assert link.is_due()
