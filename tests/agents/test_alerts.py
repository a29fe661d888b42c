"""The crew of a real repository: what becomes of it is told once, through restarts and whatever the clock does."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.clocks import Clock
from tests.support.teams import Team
from yolo_fs.agents.alerts import AgentAlerts, Alert
from yolo_fs.agents.recording import AgentJournal
from yolo_fs.agents.snapshot import AgentsObserver
from yolo_fs.artifacts.verdicts import Verdict
from yolo_fs.core.reasons import Reason
from yolo_fs.core.timestamps import Instant
from yolo_fs.git.repository import Repository
from yolo_fs.reports.status import report
from yolo_fs.schemas.messages.catalogue import read_message
from yolo_fs.system import heartbeats
from yolo_fs.workspace.own_files import CREW_TOLD, STATE, STATE_FILE
from yolo_fs.workspace.settings import load

REQUEST = {"type": "shutdown_request", "reason": "phase_complete", "deadline_seconds": 30}
CLEAN = {
    "type": "shutdown_response",
    "status": "clean",
    "pending_work": [],
    "artifacts_committed": True,
}


class Crew:
    """A team whose agents give signs by a clock that the test moves."""

    def __init__(self, team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
        self.team = team
        self.clock = Clock(datetime.now(UTC))
        self.told: list[tuple[str, Mapping[str, Any]]] = []
        self.heard: list[str] = []
        self.looks_at_files = False
        self.repository = Repository(str(team.root))
        monkeypatch.setattr(time, "time", lambda: self.clock.now.wall.timestamp())
        self.restart()

    def restart(self) -> None:
        settings = load(self.repository.root)
        observer = AgentsObserver(self.repository, settings, clock=self.clock)
        self.watch = AgentAlerts(
            self.repository,
            observer,
            lambda event, _, data: self.told.append((event, data)),
            lambda note: self.heard.append(note["title"]),
        )

    def sign(self, event: str, agent: str = "yolo-dev", instance: str = "a1") -> None:
        assert heartbeats.append_heartbeat(self.repository.own_dir, event, agent, instance, "s1")

    def says(self, agent: str, message: Mapping[str, Any], instance: str = "") -> None:
        assert read_message(message)[1] == ()
        AgentJournal(self.repository.own_dir).add(agent, instance or agent, message)

    def tick(self) -> tuple[Alert, ...]:
        return self.watch.tick(self.verdicts() if self.looks_at_files else {})

    def after(self, seconds: float) -> tuple[Alert, ...]:
        self.clock.passes(seconds)
        return self.tick()

    def verdicts(self) -> dict[str, Verdict]:
        return {
            one.path: one.verdict
            for one in report(self.repository, load(self.repository.root)).candidates
        }

    def events(self, name: str) -> list[Mapping[str, Any]]:
        return [data for event, data in self.told if event == name]

    @property
    def record(self) -> Path:
        return Path(self.repository.own_dir) / heartbeats.FILE


@pytest.fixture
def crew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Crew]]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    made: list[Crew] = []

    def make() -> Crew:
        team = Team(tmp_path / "work tree")
        team.begin()
        team.example("architecture/ok/backend.toon", "architecture.toon")
        made.append(Crew(team, monkeypatch))
        return made[-1]

    yield make
    for one in made:
        one.repository.close()


# --- agents ---


@pytest.mark.proves("000:351")
def test_each_change_of_an_agent_is_told_once_as_document_000_has_it(
    crew: Callable[[], Crew],
) -> None:
    place = crew()
    for event in ("subagent-start", "pre-tool-use", "stop", "subagent-stop"):
        place.sign(event)
        place.after(20)
        place.after(1)
    states = [
        (one["state"], one["prev_state"], one["timeout_triggered"])
        for one in place.events("agent.health")
    ]
    assert states == [
        ("start", "", False),
        ("start", "start", False),
        ("idle", "start", False),
        ("stop", "idle", False),
    ]
    for one in place.events("agent.health"):
        assert read_message({key: value for key, value in one.items() if key != "agent"})[1] == ()


def test_an_agent_disappears_once_through_restarts_and_clock_jumps(
    crew: Callable[[], Crew],
) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    dice = random.Random(seed)
    place = crew()
    place.sign("pre-tool-use")
    place.tick()
    for _ in range(58):  # 590 seconds at most
        place.clock.is_set(dice.choice((-86_400, 0, 0, 3_600, 86_400)))
        if dice.random() < 0.2:
            place.restart()
        place.after(10)
    assert place.heard == []
    place.after(25)
    for _ in range(20):
        place.clock.is_set(dice.choice((-86_400, 0, 3_600)))
        place.restart()
        place.after(30)
    assert [one["state"] for one in place.events("agent.health")] == ["start", "disappeared"]
    assert (
        place.heard[:1] == ["yolo-dev disappeared"]
        and place.heard.count("yolo-dev disappeared") == 1
    )


def test_who_comes_back_and_is_silent_again_disappears_again(crew: Callable[[], Crew]) -> None:
    place = crew()
    for _ in range(2):
        place.sign("pre-tool-use")
        place.tick()
        place.after(601)
    assert place.heard.count("yolo-dev disappeared") == 2


def test_torn_naive_and_future_lines_are_findings_once_and_end_nothing(
    crew: Callable[[], Crew],
) -> None:
    place = crew()
    place.sign("session-start")
    with place.record.open("ab") as file:
        file.write(b'{"at": "2026-02-17T10:00:00", "event": "stop", "id": "a2"}\n')
        file.write(b'{"at": "2099-02-17T10:00:00Z", "event": "stop", "id": "a3"}\n')
        file.write(b'{"at": "2026-02-1')
    place.tick()
    place.restart()
    place.tick()
    place.sign("stop")
    place.tick()
    reasons = [(one["reason"], one["line"]) for one in place.events("crew.finding")]
    assert sorted(reasons) == sorted([
        (Reason.BAD_FORMAT.value, 2), (Reason.OUT_OF_RANGE.value, 3), (Reason.UNTERMINATED.value, 4),
        (Reason.JSON_PARSE_ERROR.value, 4),
    ])  # fmt: skip
    assert [one["state"] for one in place.events("agent.health") if one["agent_id"] == "a1"] == [
        "start",
        "idle",
    ]


def test_a_record_that_was_put_aside_is_read_on(
    crew: Callable[[], Crew], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = crew()
    monkeypatch.setattr(heartbeats, "MOST_BYTES", 400)
    record = AgentJournal(place.repository.own_dir)
    for number in range(6):
        place.sign("stop", instance=f"a{number}")
        record.read(place.clock.now.wall)
    kept = [one.id for one in record.read(place.clock.now.wall).seen]
    fresh = [
        one.id for one in AgentJournal(place.repository.own_dir).read(place.clock.now.wall).seen
    ]
    assert kept == fresh and kept[-1] == "a5" and len(kept) >= 3


# --- a request to stop ---


def test_after_the_deadline_it_is_said_once_who_is_late_and_what_is_in_no_commit(
    crew: Callable[[], Crew],
) -> None:
    place = crew()
    place.looks_at_files = True
    place.sign("subagent-start", "yolo-architect", "a1")
    place.sign("subagent-start", "yolo-senior", "a2")
    place.says("lead", REQUEST, "SD-1")
    place.says("senior", CLEAN, "a2")
    assert "shutdown.late" not in [one.event for one in place.after(29)]
    place.clock.is_set(86_400)  # no deadline passes because somebody sets the clock
    assert "shutdown.late" not in [one.event for one in place.tick()]
    place.after(3)
    place.restart()
    for _ in range(3):
        place.after(30)
    (late,) = place.events("shutdown.late")
    assert [(one["id"], one["answer"]) for one in late["asked"]] == [("a1", None), ("a2", "clean")]
    assert late["uncommitted"] == {"a1": [".yolo-planning/phases/01-auth/architecture.toon"]}
    assert [one for one in place.heard if "deadline" in one] == [
        "The deadline to stop (30 s) has passed; no answer yet, or uncommitted work: yolo-architect"
    ]
    place.says("architect", CLEAN, "a1")
    place.tick()
    place.restart()
    place.tick()
    (over,) = place.events("shutdown.over")
    assert [one["answer"] for one in over["asked"]] == ["clean", "clean"]


# --- what stands still ---


def test_a_stall_is_told_once_with_its_cause_and_again_only_after_something_moved(
    crew: Callable[[], Crew],
) -> None:
    place = crew()
    place.tick()
    place.after(1_790)
    assert place.events("step.stalled") == []
    place.clock.is_set(86_400)
    place.tick()
    assert place.events("step.stalled") == []
    for _ in range(3):
        place.after(30)
        place.restart()
    (stall,) = place.events("step.stalled")
    assert (stall["step"], stall["agent"], stall["department"]) == (
        "architecture",
        "architect",
        "backend",
    )
    assert stall["cause"] == "unknown" and any(
        "architecture of the backend has stalled" in one for one in place.heard
    )
    place.sign("pre-tool-use", "yolo-architect", "a1")
    place.tick()
    place.after(2_000)
    assert [one["cause"] for one in place.events("step.stalled")] == ["unknown", "disappeared"]


def test_what_is_rejected_is_the_cause(crew: Callable[[], Crew]) -> None:
    place = crew()
    place.looks_at_files = True
    place.team.artifact("architecture.toon", "tech_decisions: \0\n")
    place.tick()
    place.after(1_900)
    (stall,) = place.events("step.stalled")
    assert stall["cause"] == "rejected" and "architecture.toon" in stall["said"]


# --- circuits ---


@pytest.mark.proves("000:367")
def test_a_circuit_opens_by_failures_and_half_opens_by_the_steady_clock(
    crew: Callable[[], Crew],
) -> None:
    place = crew()
    place.team.plan_one()
    failed = {
        "type": "dev_progress",
        "task": "01-01/T1",
        "plan_id": "01-01",
        "commit": "",
        "status": "failed",
        "concerns": [],
    }
    place.says("dev-1", failed)
    place.clock.passes(20)
    place.says("dev-1", failed)
    place.tick()
    place.clock.is_set(3_600)
    place.tick()
    place.restart()
    place.after(270)
    states = [one["state"] for one in place.events("circuit.changed")]
    assert states == ["open"] and "01-01/T1" in place.events("circuit.changed")[0]["why"]
    place.after(40)
    place.clock.is_set(-3_600)
    place.team.file("src/auth/tokens.ts", "1\n")
    place.clock.passes(400)
    place.says("dev-1", failed | {"status": "complete", "commit": "abc1234"})
    place.after(1)
    assert [one["state"] for one in place.events("circuit.changed")] == [
        "open",
        "half-open",
        "closed",
    ]


# --- trouble ---


def test_what_cannot_be_remembered_is_not_told_and_comes_later(crew: Callable[[], Crew]) -> None:
    place = crew()
    place.sign("pre-tool-use")
    folder = Path(place.repository.own_dir) / STATE
    folder.unlink(missing_ok=True)
    folder.mkdir()
    assert place.tick() == place.tick() == ()
    assert len(place.events("crew.trouble")) == 1 and place.events("agent.health") == []
    folder.rmdir()
    place.tick()
    place.tick()
    assert len(place.events("agent.health")) == 1


@pytest.mark.parametrize("spoilt", ["{", "[]", '{"told": 7}', '{"told": [7, null]}', ""])
@pytest.mark.parametrize("is_former", [True, False])
def test_a_spoilt_memory_holds_what_it_may_have_told_until_it_is_put_aside(
    crew: Callable[[], Crew], spoilt: str, is_former: bool
) -> None:
    place = crew()
    place.sign("pre-tool-use")
    place.tick()
    state = Path(place.repository.own_dir) / STATE
    if is_former:
        state.unlink()
        (state.parent / CREW_TOLD.former.name).write_text(spoilt)
    else:
        connection = sqlite3.connect(state)
        with connection:
            connection.execute("update notes set value = ? where name = 'crew-told'", [spoilt])
        connection.close()
    for _ in range(2):
        place.restart()
        assert place.tick() == ()
    assert len(place.events("agent.health")) == 1 and place.events("crew.trouble")
    for each in (CREW_TOLD.former, STATE_FILE):
        assert each.damage(place.repository) is None or not each.put_aside(place.repository)
    place.restart()
    place.tick()
    place.tick()
    assert len(place.events("agent.health")) == 2


def test_after_the_machine_started_anew_the_wall_clock_counts(crew: Callable[[], Crew]) -> None:
    place = crew()
    place.sign("pre-tool-use")
    place.tick()
    place.clock.passes(700)
    place.clock.now = Instant(place.clock.now.wall, 5.0, "another boot")
    place.restart()
    place.tick()
    assert place.heard.count("yolo-dev disappeared") == 1
