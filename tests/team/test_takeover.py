"""A lease whose holder disappears passes on by itself, once and fenced, and a holder that wakes steps back."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.team.test_leases import assert_same, backend, published
from tests.team.test_remote_sync import BRANCH, at_remote, settle
from tests.team.work_trees import GAPS, Clones, CloneTree, gap
from yolo_fs.cli.main import run
from yolo_fs.team import background_sync
from yolo_fs.team.background_sync import RemoteSyncThread
from yolo_fs.team.reconcile import TeamLease
from yolo_fs.team.remote_sync import RemoteSync
from yolo_fs.workspace.settings import load

TTL_S = 1
PATIENCE_S = 30.0


def take_short(clone: CloneTree, ttl_s: int = TTL_S) -> TeamLease:
    """Take the lease of the backend for a time that a test can wait for."""
    name = clone.synchronizer.membership.clone
    return clone.remote_sync.pass_lease("backend", name, backend(clone), ttl_s=ttl_s)


def watch(sync: RemoteSync) -> bool:
    """Do what the thread does at each turn, without its rests."""
    return sync.follow_silent(sync.exchange())


def watch_until_taken(sync: RemoteSync) -> float:
    """Return after how many seconds the lease was taken over."""
    began = time.monotonic()
    while not watch(sync):
        assert time.monotonic() - began < PATIENCE_S
        time.sleep(0.05)
    return time.monotonic() - began


def test_a_holder_that_is_frozen_is_followed_and_steps_back_when_it_wakes(
    clones: Clones, bare: Path
) -> None:
    a, b = clones
    frozen = a.remote_sync
    lease = take_short(a)
    frozen.renew_leases()
    a.write(GAPS, gap(1))
    frozen.exchange()
    b.meet()
    a.write(GAPS, gap(1), gap(2))  # frozen before it could be published
    b.write(GAPS, gap(1), gap(3))
    sync = b.remote_sync

    assert watch_until_taken(sync) >= TTL_S
    sync.exchange()
    sync.renew_leases()

    held = frozen.exchange().held  # it wakes
    frozen.renew_leases()
    assert [each.path for each in held] == [GAPS] or a.synchronizer.sync_status().merges
    assert ("team.lease_lost", "") in a.events
    assert ("team.lease_taken", "") in b.events
    assert (backend(a).holder, backend(a).epoch) == (
        b.synchronizer.membership.clone,
        lease.epoch + 1,
    )
    assert gap(2) not in at_remote(bare, "show", f"{BRANCH}:{GAPS}")
    assert gap(2) in a.committed(GAPS)

    b.remote_sync.pass_lease("backend", "", backend(b))
    settle(*clones)
    assert gap(2) in b.committed(GAPS)
    assert_same(bare, a, b)


def test_a_lease_that_was_followed_goes_back_when_it_is_no_longer_needed(
    clones: Clones, bare: Path
) -> None:
    a, b = clones
    take_short(a)
    b.write(GAPS, gap(1))
    sync = b.remote_sync
    watch_until_taken(sync)
    assert backend(b).lent_by == a.synchronizer.membership.clone
    sync.exchange()
    deadline = time.monotonic() + PATIENCE_S
    while ("team.lease_returned", "") not in b.events and time.monotonic() < deadline:
        sync.give_back()
        time.sleep(0.05)

    assert (backend(a).holder, backend(a).lent_by) == (a.synchronizer.membership.clone, "")
    assert published(bare)[:2] == ["chore(team): lease of backend, epoch 3", "docs(01): gaps"]
    b.write(GAPS, gap(1), gap(2))
    assert [each.path for each in sync.exchange().held] == [GAPS]


def test_a_holder_that_gives_signs_of_life_keeps_its_lease(clones: Clones) -> None:
    a, b = clones
    holder, sync = a.remote_sync, b.remote_sync
    began = time.monotonic()
    holder.renew_leases()
    watch(sync)
    ttl_s = TTL_S + round(10 * (time.monotonic() - began))  # a turn of a slow machine is no silence
    take_short(a, ttl_s)
    b.write(GAPS, gap(1))
    until = time.monotonic() + 3 * ttl_s
    while time.monotonic() < until:
        holder.renew_leases()
        assert not watch(sync)
    assert [each.path for each in sync.exchange().held] == [GAPS]
    assert backend(b).holder == a.synchronizer.membership.clone


def test_a_holder_that_has_nothing_to_do_gives_its_signs_however_long_it_would_rest(
    clones: Clones, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rest in ("BUSY_S", "QUIET_S"):
        monkeypatch.setattr(background_sync, rest, 3600.0)
    a, b = clones
    take_short(a)
    thread = RemoteSyncThread(str(a.root), load(str(a.root)), a.synchronizer.membership)
    thread.start(lambda: None)
    signs: set[str] = set()
    deadline = time.monotonic() + PATIENCE_S
    while len(signs) < 3 and time.monotonic() < deadline:
        signs |= set(b.remote_sync._signs("backend").values())
    thread.stop()

    assert len(signs) == 3


def test_nobody_follows_a_silent_holder_who_has_nothing_to_publish_for_it(clones: Clones) -> None:
    a, b = clones
    take_short(a)
    sync = b.remote_sync
    until = time.monotonic() + 1.5 * TTL_S
    while time.monotonic() < until:
        assert not watch(sync)
        time.sleep(0.1)
    assert backend(b).holder == a.synchronizer.membership.clone


def test_of_two_that_follow_a_silent_holder_one_has_the_lease(
    clones: Clones, new_clone: Callable[[str], CloneTree], bare: Path
) -> None:
    a, b = clones
    c = new_clone("c").join_remote()
    take_short(a)
    syncs = []
    for number, clone in enumerate((b, c), 2):
        clone.write(GAPS, gap(number))
        syncs.append(clone.remote_sync)
        watch(syncs[-1])
    time.sleep(TTL_S)
    taken = [watch(sync) for sync in syncs]

    assert taken.count(True) == 1
    assert backend(a).epoch == 2
    assert published(bare).count("chore(team): lease of backend, epoch 2") == 1


def test_where_the_remote_takes_no_refs_but_branches_a_branch_bears_the_sign(
    clones: Clones, bare: Path
) -> None:
    a, b = clones
    hook = bare / "hooks/update"
    hook.write_text(
        '#!/bin/sh\ncase "$1" in refs/heads/*) ;; *) echo branches only >&2; exit 1;; esac\n'
    )
    hook.chmod(0o755)
    lease = take_short(a)
    sync = a.remote_sync
    sync.renew_leases()

    assert ("team.signs_in_branches", "") in a.events
    refs = at_remote(bare, "for-each-ref", "--format=%(refname)").split()
    assert "refs/heads/yolo/leases/backend" in refs

    def sign(_s: float) -> None:
        sync._renew_at.clear()
        sync.renew_leases()

    assert not b.remote_sync.is_silent(lease._replace(ttl_s=30), rest=sign)


def test_a_command_takes_the_lease_of_a_holder_that_is_silent_while_it_watches(
    clones: Clones,
) -> None:
    a, b = clones
    take_short(a)

    assert run(["team", "lease", "take", "backend", "-q", "-C", str(b.root)]) == 0
    lease = backend(a)
    assert (lease.holder, lease.epoch, lease.lent_by) == (b.synchronizer.membership.clone, 2, "")
