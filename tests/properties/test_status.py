"""Status files are linearizable: several processes declare at once, and their answers fit one order of all calls.

Each answer carries the number of the status after it, so the order is known and only has to be
checked: it is without gaps, it respects real time, each state follows from the one before, and who
was refused by compare-and-set met a number that was there while they asked.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.properties.declarer import PHASE
from tests.properties.profile import tried
from yolo_fs.core.ids import PhaseId
from yolo_fs.system.store import Damaged, read_json

ROOT = Path(__file__).parents[2]
PROCESSES = 3
VALUES = some.fixed_dictionaries(
    {},
    optional={
        "status": some.sampled_from(["pending", "running", "complete", "failed"]),
        "step": some.sampled_from(["critique", "planning", "qa"]),
        "plans_complete": some.integers(0, 9),
        "eta": some.sampled_from(["", "soon"]),
    },
)
OPERATIONS = some.fixed_dictionaries(
    {"values": VALUES, "expect": some.none() | some.integers(0, 8)}
)
HISTORIES = some.lists(some.lists(OPERATIONS, max_size=5), min_size=PROCESSES, max_size=PROCESSES)
Call = dict[str, Any]


class Declarer:
    """One process that declares what it is told."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.properties.declarer"], cwd=ROOT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.answer() == "ready\n"

    def ask(self, root: Path, operations: list[Call]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"root": str(root), "operations": operations}) + "\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def end(self) -> None:
        self.process.communicate()


@pytest.fixture(scope="module")
def declarers() -> Iterator[list[Declarer]]:
    started = [Declarer() for _ in range(PROCESSES)]
    yield started
    for one in started:
        one.end()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("status")


def work_tree(place: Path) -> Path:
    """Return a new work tree with a phase."""
    root = place / str(sum(1 for _ in place.iterdir()))
    (root / ".yolo-planning/phases" / str(PHASE)).mkdir(parents=True)
    return root


def file_of(root: Path) -> str:
    return str(root / ".yolo-planning/phases" / str(PHASE) / ".dept-status-backend.json")


class Reader(threading.Thread):
    """Reads the file again and again, without any lock."""

    def __init__(self, path: str):
        super().__init__(daemon=True)
        self.path = path
        self.seen: list[int] = []
        self.damaged: list[Damaged] = []
        self.is_over = threading.Event()

    def run(self) -> None:
        while not self.is_over.is_set():
            found = read_json(self.path)
            if isinstance(found, Damaged):
                self.damaged.append(found)
            elif found is not None:
                self.seen.append(int(found["seq"]))


def check_history(calls: list[Call], final: Any) -> None:
    """Assert that one order of all calls explains every answer and the file in the end."""
    done = sorted(
        (call for call in calls if "state" in call), key=lambda call: call["state"]["seq"]
    )
    assert [call["state"]["seq"] for call in done] == list(range(1, len(done) + 1)), (
        "no update is lost or doubled"
    )
    latest_began = 0
    for call in done:
        assert call["ended"] >= latest_began, "who began after another had ended comes after it"
        latest_began = max(latest_began, call["began"])
    before: Call = {}
    for number, call in enumerate(done):
        assert call["expect"] in (None, number), "compare-and-set met the number that it expected"
        kept = {
            key: value
            for key, value in before.items()
            if key not in (*call["values"], "seq", "updated_at", "declared")
        }
        assert call["state"].items() >= {**kept, **call["values"]}.items()
        before = call["state"]
    for call in (call for call in calls if "refused" in call):
        check_refusal(call, done)
    assert (final or {}) == before


def check_refusal(call: Call, done: list[Call]) -> None:
    assert call["refused"] == "state_conflict"
    met = int(call["message"].partition("number ")[2].partition(",")[0])
    assert met != call["expect"]
    assert met == 0 or done[met - 1]["began"] <= call["ended"], "the number was there already"
    assert met == len(done) or done[met]["ended"] >= call["began"], "the number was there still"


@tried(12)
@given(histories=HISTORIES)
def test_what_several_processes_declare_has_an_order_that_explains_every_answer(
    declarers: list[Declarer], place: Path, histories: list[list[Call]]
) -> None:
    root = work_tree(place)
    reader = Reader(file_of(root))
    reader.start()
    for one, operations in zip(declarers, histories, strict=True):
        one.ask(root, operations)
    calls = [call for one in declarers for call in json.loads(one.answer())]
    reader.is_over.set()
    reader.join()

    check_history(calls, read_json(file_of(root)))
    assert reader.damaged == []
    assert reader.seen == sorted(reader.seen)


@pytest.mark.proves("002:286d")
def test_writers_in_a_hurry_lose_nothing(declarers: list[Declarer], place: Path) -> None:
    root = work_tree(place)
    for number, one in enumerate(declarers):
        one.ask(root, [{"values": {"plans_complete": number}, "expect": None}] * 60)
    calls = [call for one in declarers for call in json.loads(one.answer())]

    check_history(calls, read_json(file_of(root)))
    assert len(calls) == 60 * PROCESSES
    writers = [
        call["values"]["plans_complete"]
        for call in sorted(calls, key=lambda call: call["state"]["seq"])
    ]
    assert writers != sorted(writers), "they never met, which proves nothing"


def test_of_several_who_expect_the_same_number_one_writes(
    declarers: list[Declarer], place: Path
) -> None:
    root = work_tree(place)
    for one in declarers:
        one.ask(
            root, [{"values": {"status": "complete"}, "expect": number} for number in range(20)]
        )
    calls = [call for one in declarers for call in json.loads(one.answer())]

    check_history(calls, read_json(file_of(root)))
    done = [call for call in calls if "state" in call]
    assert sorted(call["expect"] for call in done) == list(range(len(done)))


@pytest.mark.parametrize("spoil", ["lost", "twice", "stale", "late"])
def test_a_history_that_is_not_linearizable_is_found_out(spoil: str) -> None:
    def call(seq: int, began: int, **values: Any) -> Call:
        return {
            "values": values,
            "expect": None,
            "began": began,
            "ended": began + 1,
            "state": {**values, "seq": seq},
        }

    good = [call(1, 0, status="running"), call(2, 5, status="complete")]
    check_history(good, good[1]["state"])
    wrong = {
        "lost": ([good[0], call(1, 5, status="complete")], good[1]["state"]),
        "twice": ([*good, call(2, 9, status="failed")], good[1]["state"]),
        "stale": (good, good[0]["state"]),
        "late": (
            [call(2, 0, status="running"), call(1, 5, status="complete")],
            {"status": "running", "seq": 2},
        ),
    }
    with pytest.raises(AssertionError):
        check_history(*wrong[spoil])


def test_the_phase_of_the_histories_is_one() -> None:
    assert PhaseId.parse(str(PHASE)) == PHASE
