"""A team has one runner at a time, whether it is one of work trees or of clones: two would pay two agents for each act."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import patient_agent
from tests.e2e.repo import Repo
from tests.e2e.test_go import SCRIPTED, Company, Played, played_by, wait_for
from tests.e2e.test_worktrees import end_of

PATIENT = played_by(Path(patient_agent.__file__))
TTL_S = 3


class Pair:
    """Two members of a team, the first of which runs the company and has a Dev at work."""

    def __init__(self, first: Repo, second: Repo, gate: Path) -> None:
        self.first, self.second, self._gate = Company(first), Company(second), gate
        self.first.env["PATIENT_GATE"] = str(gate)
        self.running = self._begin()

    def _begin(self) -> subprocess.Popen[str]:
        running = self.first.begin("a", "login", program=PATIENT)
        wait_for(lambda: (self._gate / "01-01-T1").exists(), "a Dev at work")
        return running

    def end_first(self) -> Played:
        (self._gate / "open").touch()
        return end_of(self.running)

    def stop(self) -> None:
        (self._gate / "open").touch()
        self.running.kill()
        self.running.communicate()
        for company in (self.first, self.second):
            company.repo.yolo_fs("stop", ok=(0, 3))


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    folder = tmp_path / "gate"
    folder.mkdir()
    return folder


@pytest.fixture
def work_trees(repo: Repo, gate: Path, tmp_path: Path) -> Iterator[Pair]:
    Company(repo).configure()
    repo.git("worktree", "add", "-q", "-b", "beside", str(tmp_path / "beside"))
    beside = Repo(tmp_path / "beside", repo.env)
    for one in (repo, beside):
        one.yolo_fs("team", "join")
    pair = Pair(repo, beside, gate)
    yield pair
    pair.stop()


@pytest.fixture
def clones(repo: Repo, gate: Path, tmp_path: Path) -> Iterator[Pair]:
    Company(repo).configure()
    bare = tmp_path / "remote.git"
    repo.git("clone", "-q", "--bare", ".", str(bare))
    pair = []
    for name in ("a", "b"):
        pair.append(Repo(tmp_path / name, repo.env))
        repo.git("clone", "-q", f"file://{bare}", str(pair[-1].root))
        pair[-1].yolo_fs("team", "join", "origin", "--yes")
    pair[0].yolo_fs("team", "lease", "take", "company", "--ttl", str(TTL_S))
    pair[0].yolo_fs("team", "lease", "release", "company")
    both = Pair(pair[0], pair[1], gate)
    yield both
    both.stop()


def test_in_another_work_tree_of_the_team_nobody_is_started(work_trees: Pair) -> None:
    refused = work_trees.second.go("a", "login")
    assert refused.code == 4 and not refused.named("agent.started"), refused
    assert "in another work tree of the team" in refused.findings[0]["message"]
    assert work_trees.end_first().code == 0


def test_in_another_clone_nobody_is_started_while_the_first_one_runs(clones: Pair) -> None:
    refused = clones.second.go("a", "login")
    assert refused.code == 75 and not refused.named("agent.started"), refused
    assert "runs the company of this team" in refused.findings[0]["message"]
    assert clones.end_first().code == 0
    leases = clones.second.repo.yolo_fs("team", "lease", "list").stdout.decode()
    assert "company   free" in leases


def test_a_runner_that_was_killed_makes_room_once_it_is_silent(clones: Pair) -> None:
    os.kill(clones.running.pid, signal.SIGKILL)
    clones.running.communicate()
    played = clones.second.go("a", "login", program=SCRIPTED)
    assert played.named("run.waits") and played.named("agent.started"), played


def test_a_remote_that_is_away_is_told_before_anybody_is_started(
    clones: Pair, tmp_path: Path
) -> None:
    bare = tmp_path / "remote.git"
    bare.rename(tmp_path / "away.git")
    refused = clones.second.go("a", "login")
    assert refused.code == 75 and refused.findings[0]["reason"] == "remote_away", refused
    assert not refused.named("agent.started")
