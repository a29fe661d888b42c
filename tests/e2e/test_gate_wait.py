"""`gate wait` ends soon after the commit with any number of waiters, whoever else runs, hangs or ends.

Each test runs twice: whoever waits looks itself, and an observer looks for all who wait.

See docs/dev/faults.md#f58. `scripts/bench gates` measures how soon.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.daemon import Daemon, until
from tests.e2e.gates import UX, Waiter, commit, evidence, make_company
from tests.e2e.repo import DEADLINE_S, Repo
from tests.e2e.test_observer import (
    answered,
    observers_of,
    run,
    send,
    wait_for_answers,
    without_clocks,
)
from yolo_fs.system import IS_LINUX, ask
from yolo_fs.system.ask import COLD

Start = Callable[[Repo], Daemon]
WaitFor = Callable[..., Waiter]
GATE = "ux-complete"


@pytest.fixture
def waiter(repo: Repo) -> Iterator[WaitFor]:
    """Let a process wait; each is ended."""
    started: list[Waiter] = []

    def wait_for(*names: str, **more: str) -> Waiter:
        started.append(Waiter(repo, *names, **more))  # type: ignore[arg-type]
        return started[-1]

    yield wait_for
    for each in started:
        each.end()


@pytest.fixture(params=["looks itself", "observer looks"][: 1 + IS_LINUX])
def company(repo: Repo, request: pytest.FixtureRequest) -> Repo:
    if request.param == "observer looks":
        del repo.env[COLD]
    make_company(repo)
    repo.write(*(evidence(kind) for kind in UX[:-1]))
    return repo


@pytest.fixture
def begin(start: Start) -> Start:
    """Start a daemon, and wait for its observer where there is one."""

    def begin(repo: Repo) -> Daemon:
        daemon = start(repo)
        if COLD not in repo.env:
            wait_for_answers(repo)
        return daemon

    return begin


def all_asleep(*waiters: Waiter) -> None:
    until(lambda: all(each.is_asleep() for each in waiters), "all of them sleep")


def all_asleep_beside(daemon: Daemon, *waiters: Waiter) -> None:
    all_asleep(*waiters)
    if COLD not in daemon.repo.env:
        assert all(each.is_connected() for each in waiters), "the observer looks for them"


def by_hand(repo: Repo, *kinds: str) -> None:
    """Commit evidence as somebody does who runs no daemon."""
    for kind in kinds:
        one = evidence(kind)
        repo.write(one)
        repo.git("add", "-f", "--", one.path)
        repo.git("commit", "-q", "-m", f"docs(01): {kind}", "--", one.path)


def test_ten_waiters_wake_by_one_commit(company: Repo, begin: Start, waiter: WaitFor) -> None:
    daemon = begin(company)
    waiters = [waiter(GATE) for _ in range(10)]
    all_asleep_beside(daemon, *waiters)
    commit(daemon, evidence(UX[-1]))
    answers = [each.answer() for each in waiters]
    assert [each["open"] for each in answers] == [True] * 10
    assert [each.process.returncode for each in waiters] == [0] * 10


def test_a_waiter_sleeps_on_while_other_gates_open(
    company: Repo, begin: Start, waiter: WaitFor
) -> None:
    daemon = begin(company)
    design, both = waiter(GATE), waiter(GATE, "api-contract")
    all_asleep_beside(daemon, design, both)
    commit(daemon, evidence("api-contracts"))
    all_asleep_beside(daemon, design, both)
    commit(daemon, evidence(UX[-1]))
    assert (design.answer()["open"], both.answer()["open"]) == (True, True)


def test_with_no_daemon_the_commit_itself_wakes(company: Repo, waiter: WaitFor) -> None:
    by_hand(company, *UX[:-1])
    one = waiter(GATE)
    all_asleep(one)
    by_hand(company, UX[-1])
    answer = one.answer()
    assert (answer["open"], answer["by"]) == (True, "look")


def test_a_daemon_that_starts_later_wakes_as_well(
    company: Repo, begin: Start, waiter: WaitFor
) -> None:
    one = waiter(GATE)
    all_asleep(one)
    company.write(evidence(UX[-1]))
    begin(company)
    assert one.answer()["open"]


def test_a_daemon_killed_while_somebody_waits_is_not_waited_for(
    company: Repo, begin: Start, waiter: WaitFor
) -> None:
    daemon = begin(company)
    one = waiter(GATE)
    all_asleep_beside(daemon, one)
    daemon.kill(with_helpers=True)
    by_hand(company, UX[-1])
    answer = one.answer()
    assert (answer["open"], answer["by"]) == (True, "look")


def test_a_daemon_that_hangs_is_not_waited_for(
    company: Repo, begin: Start, waiter: WaitFor
) -> None:
    daemon = begin(company)
    one = waiter(GATE)
    all_asleep_beside(daemon, one)
    with daemon.paused():
        by_hand(company, UX[-1])
        assert one.answer()["open"]


def test_who_waited_beside_one_daemon_waits_on_beside_the_next(
    company: Repo, begin: Start, waiter: WaitFor
) -> None:
    daemon = begin(company)
    one = waiter(GATE)
    all_asleep_beside(daemon, one)
    daemon.kill()
    daemon.start()
    commit(daemon, evidence(UX[-1]))
    assert one.answer()["open"]


def test_a_waiter_in_a_linked_work_tree_waits_for_its_own_branch(
    company: Repo, begin: Start, waiter: WaitFor
) -> None:
    daemon = begin(company)
    other = Repo(company.root.parent / "linked", company.env)
    company.git("worktree", "add", "-q", "-b", "other", str(other.root))
    other.write(*(evidence(kind) for kind in UX[:-1]))
    there, here = Waiter(other, GATE), waiter(GATE)
    all_asleep(there)
    all_asleep_beside(daemon, here)
    commit(daemon, evidence(UX[-1]))
    assert here.answer()["open"]
    assert not Waiter(other, GATE, timeout_s=0).answer()["open"]
    until(there.is_asleep, "whoever was woken to look sleeps again")
    there.end()


def test_a_reset_closes_the_gate_for_those_who_come_after(
    company: Repo, begin: Start, waiter: WaitFor
) -> None:
    daemon = begin(company)
    base = company.look("rev-parse", "HEAD").strip()
    commit(daemon, evidence(UX[-1]))
    assert daemon.stop() == 0
    company.git("reset", "-q", "--hard", base)
    late = waiter(GATE, timeout_s="0")
    assert not late.answer()["open"]
    assert late.process.returncode == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_an_observer_that_ends_or_hangs_leaves_the_waiting_to_the_waiter(
    repo: Repo, start: Start, waiter: WaitFor, number: signal.Signals
) -> None:
    daemon = _observed(repo, start)
    one = waiter(GATE)
    all_asleep_beside(daemon, one)
    asleep_at = time.monotonic()
    send(number, *observers_of(repo))
    until(lambda: not one.is_connected(), "it looks itself")
    alone_at = time.monotonic()
    commit(daemon, evidence(UX[-1]))
    answer = one.answer()
    assert answer["open"] and answer["waited_s"] >= alone_at - asleep_at


def test_whoever_waits_is_told_that_it_is_not_forgotten(
    repo: Repo, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = _observed(repo, start)
    monkeypatch.setattr(sys, "stdin", sys.__stdin__)  # the one of pytest is no stream
    words = ["gate", "wait", GATE, "--phase", "1", "-C", str(repo.root)]
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(DEADLINE_S)
        with contextlib.chdir(repo.git_dir / "yolo-fs"):
            client.connect(ask.SOCKET)
        assert client.recv(len(ask.HELLO)) == ask.HELLO
        client.sendall(ask._request(words, None))
        frames = ask._read_frames(client)  # type: ignore[arg-type]
        assert [next(frames) for _ in range(2)] == [("W", 0)] * 2
        commit(daemon, evidence(UX[-1]))
        assert next(frame for frame in frames if frame[0] != "W") == ("C", 0)


def test_an_observer_forgets_a_waiter_that_is_gone(
    repo: Repo, start: Start, waiter: WaitFor
) -> None:
    daemon = _observed(repo, start)
    (observer,) = observers_of(repo)
    before = _open_files(observer)
    one = waiter(GATE)
    all_asleep_beside(daemon, one)
    assert _open_files(observer) > before
    one.end()
    until(lambda: _open_files(observer) == before, "its connection is closed")


def test_what_a_waiter_prints_is_the_same_whoever_looks(repo: Repo, start: Start) -> None:
    _observed(repo, start)
    for words in (["--timeout", "0.3"], ["--timeout", "0", "api-contract"], ["nothing"]):
        command = ["gate", "wait", GATE, "--phase", "1", *words]
        asked, alone = answered(repo, command), run(repo, command, cold=True)
        assert without_clocks(asked) == without_clocks(alone) and asked[0] != 0


def _open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def _observed(repo: Repo, start: Start) -> Daemon:
    del repo.env[COLD]
    make_company(repo)
    first = [evidence(kind) for kind in UX[:-1]]
    repo.write(*first)
    daemon = start(repo)
    daemon.wait_committed(first)
    wait_for_answers(repo)
    return daemon
