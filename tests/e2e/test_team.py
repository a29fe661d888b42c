"""Several work trees of one repository, each with its own branch and its own real daemon."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.artifacts import artifact
from tests.e2e.daemon import Daemon
from tests.e2e.repo import Repo
from tests.torture.kills import OF_A_MEETING
from yolo_fs.system.failpoint import STAGES, VARIABLE

TEAM_REF = "refs/yolo/team/main"


@pytest.fixture
def repos(repo: Repo, tmp_path: Path) -> list[Repo]:
    """Three work trees of one repository, in one team."""
    for name in ("backend", "frontend"):
        repo.git("worktree", "add", "-q", "-b", name, str(tmp_path / name))
    trees = [repo, *(Repo(tmp_path / name, repo.env) for name in ("backend", "frontend"))]
    for tree in trees:
        tree.yolo_fs("team", "join")
    return trees


def committed(path: str) -> Callable[[list[dict[str, Any]]], bool]:
    return lambda events: any(
        event["event"] == "artifact.committed" and event["path"] == path for event in events
    )


def standing(repo: Repo) -> dict[str, Any]:
    said = repo.yolo_fs("team", "status", "--json", ok=(0, 1)).stdout
    return dict(json.loads(said)["data"])


def test_what_one_daemon_commits_all_others_commit_and_the_branches_merge_without_conflict(
    repos: list[Repo], start: Callable[..., Daemon]
) -> None:
    daemons = [start(repo) for repo in repos]
    written = [artifact(kind, n) for n, kind in enumerate(("plan", "critique", "decisions"))]

    for repo, one in zip(repos, written, strict=True):
        repo.write(one)
    for daemon in daemons:
        for one in written:
            daemon.mailbox.wait(committed(one.path))

    for daemon in daemons:
        daemon.stop()
    for repo in repos:
        assert standing(repo)["agreed"]
        assert repo.look("status", "--porcelain") == ""
        assert {one.subject for one in written} <= set(repo.subjects())
    for name in ("backend", "frontend"):
        repos[0].git("merge", "-q", "--no-edit", name)
    repos[0].yolo_fs("verify")


def test_what_is_written_over_a_file_right_after_it_was_received_goes_back_to_all(
    repos: list[Repo], start: Callable[..., Daemon]
) -> None:
    _, second = daemons = [start(repo) for repo in repos[:2]]
    one, two = artifact("plan", 0), artifact("plan", 0, version=1)
    repos[0].write(one)
    second.wait_committed([one])
    repos[1].write(two)
    for daemon in daemons:
        daemon.wait_committed([two])


def test_a_killed_daemon_brings_what_it_missed_when_it_comes_back(
    repos: list[Repo], start: Callable[..., Daemon]
) -> None:
    first, second, _ = repos
    one, two = artifact("plan", 0), artifact("critique", 1)
    daemon, other = start(first), start(second)
    daemon.kill()
    first.write(one)
    second.write(two)
    other.mailbox.wait(committed(two.path))

    daemon = start(first)
    daemon.mailbox.wait(committed(two.path))
    other.mailbox.wait(committed(one.path))


def test_a_daemon_killed_at_any_stage_of_a_meeting_loses_nothing_and_publishes_nothing_twice(
    repos: list[Repo],
) -> None:
    first, second, _ = repos
    stages = [stage for stage in STAGES if stage.startswith(OF_A_MEETING)]
    for n, stage in enumerate(stages):
        first.write(artifact("plan", n))
        first.yolo_fs("run", "--once")
        second.write(artifact("critique", n))
        killed = second.yolo_fs("run", "--once", ok=(-9,), more={VARIABLE: f"{stage}:kill"})
        assert stage in killed.stderr.decode()
    for repo in (second, first, second):
        repo.yolo_fs("run", "--once")

    origins = first.look("log", "--format=%(trailers:key=Yolo-Origin,valueonly)", TEAM_REF).split()
    assert len(origins) == len(set(origins)) == 2 * len(stages)
    assert planning(first, "HEAD") == planning(second, "HEAD") == planning(first, TEAM_REF)


def planning(repo: Repo, revision: str) -> str:
    return repo.look("ls-tree", "-r", revision, "--", ".yolo-planning/phases")


def test_clones_meet_over_their_remote_while_it_comes_and_goes(
    repo: Repo, start: Callable[..., Daemon], tmp_path: Path
) -> None:
    bare = tmp_path / "remote.git"
    repo.git("clone", "-q", "--bare", ".", str(bare))
    clones = [Repo(tmp_path / name, repo.env) for name in ("a", "b")]
    for clone in clones:
        repo.git("clone", "-q", f"file://{bare}", str(clone.root))
        clone.yolo_fs("team", "join", "origin", "--yes")
    daemons = [start(clone) for clone in clones]
    one, two = artifact("plan", 0), artifact("critique", 1)

    clones[0].write(one)
    daemons[1].mailbox.wait(committed(one.path))
    bare.rename(bare.with_suffix(".away"))
    clones[1].write(two)
    daemons[1].mailbox.wait(committed(two.path))
    daemons[1].mailbox.wait(
        lambda events: any(event["event"] == "team.remote_failed" for event in events)
    )
    assert standing(clones[1])["to_publish"] == [two.path]
    bare.with_suffix(".away").rename(bare)
    daemons[0].mailbox.wait(committed(two.path))


def test_nothing_is_shared_before_join_and_nothing_after_leave(repos: list[Repo]) -> None:
    first, second, third = repos
    third.yolo_fs("team", "leave")
    first.write(artifact("plan", 0))
    first.yolo_fs("run", "--once")
    second.yolo_fs("team", "sync")
    third.yolo_fs("run", "--once")

    assert standing(third) == {"team": None}
    assert artifact("plan", 0).subject in second.subjects()
    assert artifact("plan", 0).subject not in third.subjects()
    third.yolo_fs("team", "sync", ok=(3,))
