"""Waiting is right whatever the daemon says or fails to say; when it speaks, nobody looks again.

Each look is a stand-in that says what it is told to; notices, locks and files are real.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from yolo_fs.core.reasons import Exit, Reason, YoloError
from yolo_fs.progress import gate_wait as waiting
from yolo_fs.progress.gate_wait import (
    GateLook,
    GateWaitResult,
    NoticeWriter,
    look_aside,
    read_notice,
    wait,
)
from yolo_fs.system.files import stamp_at
from yolo_fs.system.lock import hold

PHASE = "01-auth"
LONG_S = 60.0
"""Bounds a hang and measures nothing."""


class Scene:
    """A private directory, a file that stands for the branch, a daemon that lives or not, and looks that are counted."""

    def __init__(self, folder: Path):
        folder.mkdir(mode=0o700)
        self.notices, self.lock = str(folder / "gates.json"), str(folder / "lock")
        self.branch = folder / "branch"
        self.branch.write_text("first")
        self.is_open = False
        self.looks = 0
        self.during_look: Callable[[], object] = lambda: None
        self._stack = ExitStack()

    def look(self) -> GateLook:
        found = GateLook(
            phase=PHASE,
            gates=[{"gate": "ux-complete", "open": self.is_open, "missing": []}],
            departments=[],
            commit="c1",
            stamps={str(self.branch): stamp_at(str(self.branch))},
            notice=read_notice(self.notices).id,
            notices=self.notices,
            lock=self.lock,
            timeout_s=LONG_S,
        )
        self.looks += 1
        self.during_look()
        return found

    def daemon(self) -> NoticeWriter:
        """Let a daemon live from now on."""
        held = hold(self.lock)
        assert held is not None
        self._stack.enter_context(held)
        return NoticeWriter(self.notices)

    def daemon_ends(self) -> None:
        self._stack.close()

    def waits(self, timeout_s: float | None = None) -> Callable[[], GateWaitResult]:
        """Wait in a thread; the answer is to be asked for."""
        found: list[GateWaitResult] = []
        thread = threading.Thread(
            target=lambda: found.append(wait(self.look, timeout_s)), daemon=True
        )
        thread.start()

        def answer() -> GateWaitResult:
            thread.join(LONG_S)
            assert found, "it still waits"
            return found[0]

        return answer


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path / "own")
    yield made
    made.daemon_ends()


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG_S
    while not is_so():
        assert time.monotonic() < deadline
        threading.Event().wait(0.002)


# --- the daemon tells ---


def test_a_notice_ends_the_waiting_without_another_look(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "DAEMON_POLL_S", 2 * LONG_S)
    daemon = scene.daemon()
    answer = scene.waits()
    until(lambda: scene.looks == 1)
    daemon.write({PHASE: ["ux-complete"]}, "c2")
    waited = answer()
    assert (waited.is_open, waited.notice and waited.notice.commit, scene.looks) == (True, "c2", 1)


def test_what_is_told_between_the_look_and_the_sleep_is_not_missed(scene: Scene) -> None:
    daemon = scene.daemon()
    scene.during_look = lambda: daemon.write({PHASE: ["ux-complete"]}, "c2")
    assert scene.waits()().notice is not None


def test_what_was_told_before_the_look_is_no_news(scene: Scene) -> None:
    scene.daemon().write({PHASE: ["ux-complete"]}, "c0")
    waited = wait(scene.look, 0)
    assert (waited.is_open, scene.looks) == (False, 1)


@pytest.mark.parametrize(
    "open_", [{}, {PHASE: ["api-contract"]}, {"02-page": ["ux-complete"]}, {PHASE: []}]
)
def test_the_news_of_others_wake_nobody_for_good(scene: Scene, open_: dict[str, list[str]]) -> None:
    daemon = scene.daemon()
    answer = scene.waits()
    until(lambda: scene.looks == 1)
    daemon.write({"03-other": ["all-depts"]}, "c1")
    daemon.write(open_, "c2")
    until(lambda: scene.looks == 1)
    daemon.write({PHASE: ["api-contract", "ux-complete"]}, "c3")
    assert (answer().notice or pytest.fail("not told")).commit == "c3"


def test_all_of_several_gates_must_be_open(scene: Scene) -> None:
    daemon = scene.daemon()
    both = [
        {"gate": name, "open": False, "missing": []} for name in ("ux-complete", "api-contract")
    ]
    daemon.write({}, "c0")
    first = scene.look()._replace(gates=both)
    scene.look = lambda: first  # type: ignore[method-assign]
    answer = scene.waits()
    until(lambda: scene.looks == 1)
    daemon.write({PHASE: ["ux-complete"]}, "c1")
    until(lambda: scene.looks == 1)
    daemon.write({PHASE: ["api-contract", "ux-complete"]}, "c2")
    assert (answer().notice or pytest.fail("not told")).commit == "c2"


FORGED = {
    "a link": lambda path: os.symlink(path + ".other", path),
    "a pipe": os.mkfifo,
    "no JSON": lambda path: Path(path).write_text("{"),
    "another shape": lambda path: Path(path).write_text(json.dumps({"id": "x", "commit": "c", "open": {PHASE: 1}})),
    "no id": lambda path: Path(path).write_text(json.dumps({"id": "", "commit": "c", "open": {PHASE: ["ux-complete"]}})),
}  # fmt: skip


@pytest.mark.parametrize("case", FORGED)
def test_a_notice_of_another_kind_is_not_believed(scene: Scene, case: str) -> None:
    Path(scene.notices + ".other").write_text(
        json.dumps({"id": "x", "commit": "c", "open": {PHASE: ["ux-complete"]}})
    )
    scene.during_look = lambda: FORGED[case](scene.notices)
    assert not wait(scene.look, 0).is_open


def test_a_notice_in_a_directory_that_others_may_write_to_is_not_believed(scene: Scene) -> None:
    daemon = scene.daemon()
    folder = Path(scene.notices).parent
    scene.during_look = lambda: (daemon.write({PHASE: ["ux-complete"]}, "c2"), folder.chmod(0o770))
    assert not wait(scene.look, 0).is_open


# --- nobody tells ---


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DAEMON_POLL_S", "ALONE_POLL_S"):
        monkeypatch.setattr(waiting, name, 0.002)
    monkeypatch.setattr(waiting, "DOUBT_S", 2 * LONG_S)


def opens(scene: Scene) -> None:
    """Move the branch, so that the next look finds the gate open."""
    scene.is_open = True
    scene.branch.write_text("moved")


@pytest.mark.usefixtures("quick")
def test_without_a_daemon_a_look_follows_the_move_of_the_branch(scene: Scene) -> None:
    answer = scene.waits()
    until(lambda: scene.looks == 1)
    opens(scene)
    waited = answer()
    assert (waited.is_open, waited.notice, scene.looks) == (True, None, 2)


@pytest.mark.usefixtures("quick")
def test_a_branch_that_moves_during_the_look_is_looked_at_again(scene: Scene) -> None:
    scene.during_look = lambda: opens(scene)
    assert (scene.waits()().is_open, scene.looks) == (True, 2)


@pytest.mark.usefixtures("quick")
def test_when_the_daemon_ends_the_waiter_looks_itself(scene: Scene) -> None:
    scene.daemon()
    answer = scene.waits()
    until(lambda: scene.looks == 1)
    opens(scene)
    scene.daemon_ends()
    assert (answer().notice, scene.looks) == (None, 2)


@pytest.mark.usefixtures("quick")
def test_a_living_daemon_that_says_nothing_is_doubted_after_a_while(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "DOUBT_S", 0.02)
    scene.daemon()
    answer = scene.waits()
    until(lambda: scene.looks == 1)
    opens(scene)
    assert answer().notice is None


@pytest.mark.usefixtures("quick")
def test_a_move_that_the_daemon_has_judged_since_is_not_looked_at(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon, sleep = scene.daemon(), waiting._Sleep(scene.look())
    scene.branch.write_text("moved")
    assert not sleep._is_look_due(is_served=True)
    monkeypatch.setattr(waiting, "DOUBT_S", 0.0)
    until(lambda: sleep._is_look_due(is_served=True))
    until(lambda: daemon.write({}, "c2") or not sleep._is_look_due(is_served=True))
    until(lambda: scene.branch.write_text("again") and sleep._is_look_due(is_served=True))


def test_a_notice_that_cannot_be_written_is_written_later(scene: Scene) -> None:
    daemon = scene.daemon()
    os.mkdir(scene.notices)
    daemon.write({PHASE: ["ux-complete"]}, "c1")
    os.rmdir(scene.notices)
    daemon.write({PHASE: ["ux-complete"]}, "c1")
    assert read_notice(scene.notices).open == {PHASE: ["ux-complete"]}


# --- the end ---


def test_an_open_gate_is_not_waited_for(scene: Scene) -> None:
    scene.is_open = True
    waited = wait(scene.look)
    assert (waited.is_open, waited.notice, scene.looks) == (True, None, 1)


def test_when_the_time_is_over_nothing_is_looked_at_that_did_not_move(scene: Scene) -> None:
    assert (wait(scene.look, 0).is_open, scene.looks) == (False, 1)


def test_when_the_time_is_over_a_branch_that_moved_is_looked_at_once_more(scene: Scene) -> None:
    scene.during_look = lambda: scene.branch.write_text(str(scene.looks))
    assert (wait(scene.look, 0).is_open, scene.looks) == (False, 2)


def test_the_configured_time_counts_where_the_command_line_says_none(scene: Scene) -> None:
    first = scene.look()._replace(timeout_s=0.01)
    waited = wait(lambda: first)
    assert not waited.is_open and waited.waited_s >= 0.01


@pytest.mark.usefixtures("quick")
def test_a_look_that_fails_meanwhile_is_tried_again(scene: Scene) -> None:
    fails = iter([True, True, False])

    def fail() -> None:
        if scene.looks > 1 and next(fails):
            raise YoloError(Reason.BAD_CONFIG, exit_code=Exit.BAD_CONFIG)

    scene.during_look = fail
    answer = scene.waits()
    until(lambda: scene.looks == 1)
    opens(scene)
    assert (answer().is_open, scene.looks) == (True, 4)


def test_the_first_look_must_not_fail(scene: Scene) -> None:
    def fail() -> None:
        raise YoloError(Reason.UNKNOWN_NAME)

    scene.during_look = fail
    with pytest.raises(YoloError):
        wait(scene.look)


# --- the look in a process of its own ---


def test_what_the_look_raised_there_is_raised_here(tmp_path: Path) -> None:
    with pytest.raises(YoloError) as raised:
        look_aside(str(tmp_path), "1", ["ux-complete"])
    assert (raised.value.reason, raised.value.exit_code) == (Reason.NOT_A_REPOSITORY, Exit.NOT_HERE)
    assert raised.value.hint


def test_a_look_that_ends_without_an_answer_is_a_defect(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", "false")
    with pytest.raises(YoloError) as raised:
        look_aside(str(tmp_path), "1", ["ux-complete"])
    assert raised.value.reason is Reason.INTERNAL_ERROR
