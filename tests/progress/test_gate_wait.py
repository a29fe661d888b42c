"""Waiting ends soon after the branch has moved, whoever else runs or does not."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.teams import Team
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.progress.gate_wait import GateLook, GateReader, GateWaitResult, wait
from yolo_fs.system.pausing import RESUMED, Pause, PausedError

GATE = "api-contract"
LOOK = GateReader.look
LONG_S = 60.0
"""Bounds a hang and measures nothing."""


class Watched:
    """Looks at a real repository, counted, with something done during one of them."""

    def __init__(self) -> None:
        self.count = 0
        self.during: dict[int, Callable[[], object]] = {}
        self.slept = threading.Event()

    def look(self, reader: GateReader, spelled: str) -> GateLook:
        self.count += 1
        found = LOOK(reader, spelled)
        self.during.get(self.count, lambda: None)()
        self.slept.set()
        return found


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team.of_three(tmp_path / "work")


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    made = Watched()
    monkeypatch.setattr(GateReader, "look", lambda *arguments: made.look(*arguments))
    return made


def waits(team: Team, timeout_s: float | None = LONG_S) -> Callable[[], GateWaitResult]:
    """Wait in a thread; the answer is to be asked for."""
    found: list[GateWaitResult] = []
    thread = threading.Thread(
        target=lambda: found.append(wait(str(team.root), "1", [GATE], timeout_s)), daemon=True
    )
    thread.start()

    def answer() -> GateWaitResult:
        thread.join(LONG_S)
        assert found, "it still waits"
        return found[0]

    return answer


def agree(team: Team) -> None:
    """Open the gate, by a commit of the user's."""
    team.artifact("api-contracts.jsonl", '{"endpoint":"POST /auth/login","status":"agreed"}\n')
    team.user_commits("docs(01): contract", ".yolo-planning/phases/01-auth/api-contracts.jsonl")


def touch(team: Team) -> None:
    team.git("commit", "-q", "--allow-empty", "-m", "chore: nothing")


def test_a_commit_ends_the_waiting(team: Team, watched: Watched) -> None:
    answer = waits(team)
    assert watched.slept.wait(LONG_S)
    agree(team)
    waited = answer()
    assert (waited.look.is_open, waited.look.commit, watched.count) == (True, team.head(), 2)


def test_a_branch_that_moves_during_the_look_is_looked_at_again(
    team: Team, watched: Watched
) -> None:
    watched.during[1] = lambda: agree(team)
    assert (waits(team)().look.is_open, watched.count) == (True, 2)


def test_a_waiter_follows_to_another_branch_and_back(team: Team, watched: Watched) -> None:
    team.git("branch", "other")
    watched.during[1] = lambda: team.git("checkout", "-q", "other")
    watched.during[2] = lambda: agree(team)
    assert (waits(team)().look.is_open, watched.count) == (True, 3)


def test_an_open_gate_is_not_waited_for(team: Team, watched: Watched) -> None:
    agree(team)
    assert (wait(str(team.root), "1", [GATE]).look.is_open, watched.count) == (True, 1)


def test_when_the_time_is_over_nothing_is_looked_at_that_did_not_move(
    team: Team, watched: Watched
) -> None:
    assert (waits(team, 0)().look.is_open, watched.count) == (False, 1)


def test_when_the_time_is_over_a_branch_that_moved_is_looked_at_once_more(
    team: Team, watched: Watched
) -> None:
    watched.during = {1: lambda: touch(team), 2: lambda: touch(team)}
    assert (waits(team, 0)().look.is_open, watched.count) == (False, 2)


def test_the_configured_time_counts_where_the_command_line_says_none(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        GateReader, "look", lambda *arguments: LOOK(*arguments)._replace(timeout_s=0.01)
    )
    waited = wait(str(team.root), "1", [GATE])
    assert not waited.look.is_open and waited.waited_s >= 0.01


def test_a_look_that_fails_meanwhile_is_tried_again(team: Team, watched: Watched) -> None:
    config = team.root / ".yolo-planning/config.json"
    before = config.read_text()
    answer = waits(team)
    assert watched.slept.wait(LONG_S)
    config.write_text("{")
    deadline = time.monotonic() + LONG_S
    while watched.count < 3:
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)
    config.write_text(before)
    agree(team)
    assert answer().look.is_open


def test_a_configuration_that_is_changed_meanwhile_counts(team: Team) -> None:
    with GateReader(str(team.root), [GATE]) as reader:
        assert not reader.look("1").is_open
        team.config({})
        with pytest.raises(YoloError) as raised:
            reader.look("1")
    assert raised.value.reason is Reason.UNKNOWN_NAME  # one department has nobody to agree with


def test_the_first_look_must_not_fail(team: Team, tmp_path: Path) -> None:
    with pytest.raises(YoloError) as raised:
        wait(str(team.root), "1", ["banana"])
    assert raised.value.reason is Reason.UNKNOWN_NAME
    with pytest.raises(YoloError) as raised:
        wait(str(tmp_path), "1", [GATE])
    assert raised.value.reason is Reason.NOT_A_REPOSITORY


@pytest.mark.parametrize("is_over", [False, True])
def test_the_last_look_must_not_fail(team: Team, watched: Watched, is_over: bool) -> None:
    config = team.root / ".yolo-planning/config.json"
    watched.during[1] = lambda: config.write_text("{")
    with pytest.raises(YoloError) as raised:
        wait(str(team.root), "1", [GATE], 0 if is_over else 0.7)
    assert raised.value.reason is Reason.BAD_CONFIG


def test_whoever_waits_keeps_nobody_from_the_index_and_no_git_beside_itself(team: Team) -> None:
    with GateReader(str(team.root), [GATE]) as reader:
        touch(team)
        reader.look("1")
        reader.rest()
        index = sqlite3.connect(team.root / ".git/yolo-fs/index.db", timeout=0)
        with contextlib.closing(index):
            (is_busy, _, _) = index.execute("pragma wal_checkpoint(truncate)").fetchone()
        children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
        beside = [Path(f"/proc/{pid}/cmdline").read_text() for pid in children]
    assert not is_busy
    own = [command for command in beside if str(team.root) in command]  # others are of other tests
    assert not [command for command in own if "cat-file" in command]


def test_in_an_observer_a_wait_goes_on_as_it_began(team: Team, watched: Watched) -> None:
    """Whoever asks again for the same waiting gets the same time, and the phase of the first look."""
    with pytest.raises(PausedError) as first:
        resumed(team, Pause(None, {}, 0.0), "")
    with pytest.raises(PausedError) as second:
        resumed(team, first.value.pause, "9")
    assert second.value.pause == first.value.pause
    assert not first.value.pause.is_over
    agree(team)
    assert first.value.pause.is_over
    found = resumed(team, Pause.parse(first.value.pause.to_bytes()), "9")
    assert (found.look.is_open, found.look.phase, watched.count) == (True, "01-auth", 3)


def test_in_an_observer_a_look_that_fails_meanwhile_is_tried_again_until_the_time_is_over(
    team: Team,
) -> None:
    with pytest.raises(PausedError) as paused:
        resumed(team, Pause(None, {}, 0.0), "1")
    team.root.joinpath(".yolo-planning/config.json").write_text("{")
    with pytest.raises(PausedError) as again:
        resumed(team, paused.value.pause, "1")
    began_s, phase, deadline_s = again.value.pause.state
    assert again.value.pause.state == paused.value.pause.state
    assert again.value.pause.ends_s < deadline_s
    late = [began_s, phase, time.monotonic()]
    with pytest.raises(YoloError) as raised:
        resumed(team, Pause(late, {}, 0.0), "1")
    assert raised.value.reason is Reason.BAD_CONFIG


def resumed(team: Team, pause: Pause, phase: str) -> GateWaitResult:
    """Wait as a command that an observer runs."""
    token = RESUMED.set(pause)
    try:
        return wait(str(team.root), phase, [GATE], LONG_S)
    finally:
        RESUMED.reset(token)
