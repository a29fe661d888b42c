"""`gate wait` ends soon after the commit with any number of waiters, whoever else runs, hangs or ends.

See docs/dev/faults.md#f58. `scripts/bench gates` measures how soon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.e2e.daemon import Daemon, until
from tests.e2e.gates import UX, Waiter, commit, evidence, make_company
from tests.e2e.repo import Repo

Start = Callable[..., Daemon]
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


@pytest.fixture
def company(repo: Repo) -> Repo:
    make_company(repo)
    repo.write(*(evidence(kind) for kind in UX[:-1]))
    return repo


def all_asleep(*waiters: Waiter) -> None:
    until(lambda: all(each.is_asleep() for each in waiters), "all of them sleep")


def by_hand(repo: Repo, *kinds: str) -> None:
    """Commit evidence as somebody does who runs no daemon."""
    for kind in kinds:
        one = evidence(kind)
        repo.write(one)
        repo.git("add", "-f", "--", one.path)
        repo.git("commit", "-q", "-m", f"docs(01): {kind}", "--", one.path)


def test_ten_waiters_wake_by_one_commit(company: Repo, start: Start, waiter: WaitFor) -> None:
    daemon = start(company)
    waiters = [waiter(GATE) for _ in range(10)]
    all_asleep(*waiters)
    commit(daemon, evidence(UX[-1]))
    answers = [each.answer() for each in waiters]
    assert [each["open"] for each in answers] == [True] * 10
    assert [each.process.returncode for each in waiters] == [0] * 10


def test_a_waiter_sleeps_on_while_other_gates_open(
    company: Repo, start: Start, waiter: WaitFor
) -> None:
    daemon = start(company)
    design, both = waiter(GATE), waiter(GATE, "api-contract")
    all_asleep(design, both)
    commit(daemon, evidence("api-contracts"))
    all_asleep(design, both)
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
    company: Repo, start: Start, waiter: WaitFor
) -> None:
    one = waiter(GATE)
    all_asleep(one)
    company.write(evidence(UX[-1]))
    start(company)
    assert one.answer()["open"]


def test_a_daemon_killed_while_somebody_waits_is_not_waited_for(
    company: Repo, start: Start, waiter: WaitFor
) -> None:
    daemon = start(company)
    one = waiter(GATE)
    all_asleep(one)
    daemon.kill(with_helpers=True)
    by_hand(company, UX[-1])
    answer = one.answer()
    assert (answer["open"], answer["by"]) == (True, "look")


def test_a_daemon_that_hangs_is_not_waited_for(
    company: Repo, start: Start, waiter: WaitFor
) -> None:
    daemon = start(company)
    one = waiter(GATE)
    all_asleep(one)
    with daemon.paused():
        by_hand(company, UX[-1])
        assert one.answer()["open"]


def test_who_waited_beside_one_daemon_waits_on_beside_the_next(
    company: Repo, start: Start, waiter: WaitFor
) -> None:
    daemon = start(company)
    one = waiter(GATE)
    all_asleep(one)
    daemon.kill()
    daemon.start()
    commit(daemon, evidence(UX[-1]))
    assert one.answer()["open"]


def test_a_waiter_in_a_linked_work_tree_waits_for_its_own_branch(
    company: Repo, start: Start, waiter: WaitFor
) -> None:
    daemon = start(company)
    other = Repo(company.root.parent / "linked", company.env)
    company.git("worktree", "add", "-q", "-b", "other", str(other.root))
    other.write(*(evidence(kind) for kind in UX[:-1]))
    there, here = Waiter(other, GATE), waiter(GATE)
    all_asleep(there, here)
    commit(daemon, evidence(UX[-1]))
    assert here.answer()["open"]
    assert not Waiter(other, GATE, timeout_s=0).answer()["open"]
    until(there.is_asleep, "whoever was woken to look sleeps again")
    there.end()


def test_a_reset_closes_the_gate_for_those_who_come_after(
    company: Repo, start: Start, waiter: WaitFor
) -> None:
    daemon = start(company)
    base = company.look("rev-parse", "HEAD").strip()
    commit(daemon, evidence(UX[-1]))
    assert daemon.stop() == 0
    company.git("reset", "-q", "--hard", base)
    late = waiter(GATE, timeout_s="0")
    assert not late.answer()["open"]
    assert late.process.returncode == 1
