"""A department with a lease has one publisher, whoever is frozen, silent or late."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.team.test_remote_sync import BRANCH, at_remote, settle
from tests.team.work_trees import GAPS, PHASE, Clones, CloneTree, gap
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git.failures import GitOutput
from yolo_fs.git.refs import Remote
from yolo_fs.team.reconcile import TeamLease, path_of, read_lease
from yolo_fs.team.remote_sync import ExchangeResult

DECISIONS = f"{PHASE}/decisions.jsonl"
DECISION = (
    '{"ts":"2026-01-01T10:00:00Z","agent":"lead","dec":"RS256","reason":"Rotation","alts":[]}'
)


def backend(clone: CloneTree) -> TeamLease:
    return next(lease for lease in clone.remote_sync.leases() if lease.dept == "backend")


def take(clone: CloneTree) -> TeamLease:
    return clone.remote_sync.pass_lease(
        "backend", clone.synchronizer.membership.clone, backend(clone)
    )


def published(bare: Path) -> list[str]:
    return at_remote(bare, "log", "--format=%s", BRANCH).splitlines()


def test_only_the_holder_publishes_and_the_others_wait_until_it_is_free(
    clones: Clones, bare: Path
) -> None:
    a, b = clones
    lease = take(a)
    b.write(GAPS, gap(1))
    b.write(DECISIONS, DECISION)

    exchange = b.remote_sync.exchange()

    assert [(one.path, one.reason) for one in exchange.held] == [(GAPS, Reason.LEASE_HELD)]
    assert published(bare) == ["docs(01): decisions", "chore(team): lease of backend, epoch 1"]
    a.remote_sync.pass_lease("backend", "", lease)
    settle(*clones)
    assert "docs(01): gaps" in published(bare)
    assert a.planning() == b.planning()


def test_a_lease_that_is_taken_between_the_look_and_the_push_stops_the_push(
    clones: Clones, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = clones
    b.write(GAPS, gap(1))
    push, late = Remote.push, [a]

    def push_late(self: Remote, oids: Mapping[str, str], *more: str) -> bool:
        while late:
            take(late.pop())
        return push(self, oids, *more)

    monkeypatch.setattr(Remote, "push", push_late)

    assert [one.reason for one in b.remote_sync.exchange().held] == [Reason.LEASE_HELD]
    assert published(bare) == ["chore(team): lease of backend, epoch 1"]


def test_a_silent_holder_is_followed_and_what_it_writes_when_it_wakes_waits(
    clones: Clones, bare: Path
) -> None:
    a, b = clones
    lease = take(a)
    a.write(GAPS, gap(1))
    a.remote_sync.exchange()
    b.meet()
    a.write(GAPS, gap(1), gap(2))  # frozen before it could be published
    assert b.remote_sync.is_silent(lease._replace(ttl_s=1))

    taken = b.remote_sync.pass_lease("backend", b.synchronizer.membership.clone, lease)
    b.write(GAPS, gap(1), gap(3))
    b.remote_sync.exchange()

    assert taken.epoch == lease.epoch + 1
    a.meet()
    assert a.remote_sync.exchange().held
    assert backend(a) == taken
    assert published(bare)[0] == "docs(01): gaps"
    assert gap(2) not in at_remote(bare, "show", f"{BRANCH}:{GAPS}")
    assert gap(2) in a.committed(GAPS)

    b.remote_sync.pass_lease("backend", a.synchronizer.membership.clone, taken)
    settle(*clones)
    assert gap(2) in b.committed(GAPS)
    assert_same(bare, a, b)


def assert_same(bare: Path, *clones: CloneTree) -> None:
    there = at_remote(bare, "ls-tree", "-r", BRANCH, "--", ".yolo-planning")
    assert all(clone.planning() == there for clone in clones)


def test_a_holder_that_gives_signs_of_life_is_not_silent(clones: Clones) -> None:
    a, b = clones
    lease = take(a)
    sync = a.remote_sync

    assert not b.remote_sync.is_silent(
        lease._replace(ttl_s=30), rest=lambda _s: sync.renew_leases()
    )


def test_of_two_that_take_a_free_lease_at_once_one_has_it(clones: Clones) -> None:
    a, b = clones
    free = backend(a)
    take(a)

    with pytest.raises(YoloError) as held:
        b.remote_sync.pass_lease("backend", b.synchronizer.membership.clone, free)

    assert held.value.reason is Reason.LEASE_HELD
    assert backend(b).holder == a.synchronizer.membership.clone


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b'{"holder": "a"}', b'{"holder": "a", "epoch": "9", "ttl_s": 60}',
     b'{"holder": "a", "epoch": 1, "ttl_s": 999999999}'],
)  # fmt: skip
def test_a_lease_that_is_torn_or_strange_is_held_by_nobody_known(data: bytes) -> None:
    lease = read_lease("backend", data)

    assert not lease.may_publish("a")
    assert lease.passed_to("a").may_publish("a")


def test_a_lease_reads_as_it_was_written() -> None:
    lease = TeamLease("backend", "a", 3)

    assert read_lease("backend", lease.as_bytes) == lease
    assert read_lease("backend", None) == TeamLease("backend", "", 0)
    assert path_of("backend") == ".yolo-team/leases/backend.json"


def test_leases_are_taken_shown_and_given_back_by_command(
    clones: Clones, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = clones
    where = ("-C", str(a.root))
    assert run(["team", "lease", "take", "backend", "-q", *where]) == 0
    assert run(["team", "lease", "release", "backend", "-q", "-C", str(b.root)]) == 1
    capsys.readouterr()
    assert run(["team", "lease", "list", "--json", *where]) == 0
    held = json.loads(capsys.readouterr().out)["data"]
    assert [one["holder"] for one in held if one["dept"] == "backend"] == [
        a.synchronizer.membership.clone
    ]
    assert run(["team", "lease", "release", "backend", "-q", *where]) == 0
    assert backend(b).holder == ""


def test_a_known_remote_is_offered_to_before_it_is_looked_at_and_decides_all_the_same(
    clones: Clones, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = clones
    sync, asked, call = b.remote_sync, [], Remote._call

    def count(self: Remote, command: str, *arguments: str, **more: Any) -> GitOutput:
        asked.append(command)
        return call(self, command, *arguments, **more)

    def exchange() -> tuple[ExchangeResult, list[str]]:
        asked.clear()
        return sync.exchange(), [command for command in asked if command != "fetch"]

    sync.exchange()
    monkeypatch.setattr(Remote, "_call", count)
    b.write(GAPS, gap(1))
    assert exchange() == (ExchangeResult(moved=True, waiting=0), ["push"])
    b.write(GAPS, gap(1, "fixed"))
    assert exchange() == (
        ExchangeResult(moved=True, waiting=0),
        ["ls-remote", "push"],
    )  # others, too

    a.write(DECISIONS, DECISION)
    sync.exchange()
    a.meet()
    b.write(GAPS, gap(1), gap(2))
    assert exchange()[1] == ["push", "ls-remote", "push"]
    sync.exchange()

    lease = take(a)
    b.write(GAPS, gap(1), gap(2), gap(3))
    found, commands = exchange()
    assert [one.reason for one in found.held] == [Reason.LEASE_HELD]
    assert commands == ["push", "ls-remote"]
    sync.exchange()
    a.remote_sync.pass_lease("backend", "", lease)
    found, commands = exchange()
    assert (found.waiting, commands) == (0, ["ls-remote", "push"])
    settle(*clones)
    assert a.planning() == b.planning()
    assert published(bare).count("docs(01): gaps") == 4
