"""Clones meet over every kind of git server. `YOLO_TEAM_SERVER=http` (or git, ssh) runs all tests of the synchronization, the leases
and their takeover over one of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.git_servers import SERVERS
from tests.team.test_leases import take
from tests.team.test_remote_sync import BRANCH, assert_agreed, at_remote, settle
from tests.team.work_trees import GAPS, PLAN, Clones, CloneTree, gap, plan
from yolo_fs.core.reasons import Reason, YoloError

LONG = "YOLO_TEAM_SERVER" in os.environ


@pytest.fixture(params=[*SERVERS] if LONG else ["http", "ssh"])
def clones(
    request: pytest.FixtureRequest, new_clone: Callable[[str], CloneTree], bare: Path
) -> Iterator[Clones]:
    made = new_clone("a").join_remote(), new_clone("b").join_remote()
    with SERVERS[request.param](bare) as address:
        for clone in made:
            clone.move_remote(address)
        yield made


def test_what_two_publish_at_once_is_merged_and_the_lease_holds(clones: Clones, bare: Path) -> None:
    a, b = clones
    a.write(GAPS, gap(1))
    b.write(GAPS, gap(2))
    b.write(PLAN, plan("Tokens"))
    settle(*clones)
    assert_agreed(bare, a, b)

    take(a)
    a.remote_sync.renew_leases()
    b.write(GAPS, gap(1), gap(2), gap(3))
    assert [each.reason for each in b.remote_sync.exchange().held] == [Reason.LEASE_HELD]
    assert "refs/yolo/leases/backend" in at_remote(bare, "for-each-ref", "--format=%(refname)")


def test_a_proxy_and_a_password_of_the_users_own_lead_there_whatever_the_repository_names(
    new_clone: Callable[[str], CloneTree],
    bare: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with SERVERS["proxy"](bare) as address:
        clone = new_clone("a").join_remote().move_remote(address)
        clone.git("config", "http.proxy", "http://127.0.0.1:9")
        clone.git("config", "credential.helper", f"!touch {tmp_path}/ran")
        clone.write(GAPS, gap(1))
        settle(clone)
    assert GAPS in at_remote(bare, "ls-tree", "-r", "--name-only", BRANCH)
    assert not (tmp_path / "ran").exists()


def test_a_branch_that_has_the_name_of_our_folder_is_no_race(clones: Clones, bare: Path) -> None:
    a, _ = clones
    for ref in at_remote(bare, "for-each-ref", "--format=%(refname)", "refs/heads/yolo/").split():
        at_remote(bare, "update-ref", "-d", ref)
    a.git("push", "-q", str(bare), "HEAD:refs/heads/yolo")
    a.write(GAPS, gap(1))
    with pytest.raises(YoloError, match="refs/heads/yolo' exists") as refused:
        a.remote_sync.exchange()
    assert refused.value.reason is Reason.REMOTE_REFUSED


def test_a_hook_is_told_in_its_words_and_a_server_that_is_gone_is_away(
    clones: Clones, bare: Path
) -> None:
    a, _ = clones
    hook = bare / "hooks/pre-receive"
    hook.write_text("#!/bin/sh\necho no bots here >&2\nexit 1\n")
    hook.chmod(0o755)
    a.write(GAPS, gap(1))
    with pytest.raises(YoloError, match="no bots here") as refused:
        a.remote_sync.exchange()
    assert refused.value.reason is Reason.REMOTE_REFUSED

    bare.rename(bare.with_suffix(".away"))
    with pytest.raises(YoloError) as away:
        a.remote_sync.exchange()
    assert away.value.reason is Reason.REMOTE_AWAY
