"""The crew as state machines: health, circuit, shutdown and stalls, from scenarios and from generated histories."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.phases import FOLDER, complete, facts
from tests.support.settings import config_from
from yolo_fs.agents.circuit import (
    Breaker,
    BreakerPolicy,
    OutcomeEvent,
    as_of,
    breakers_after,
)
from yolo_fs.agents.health import AgentSign, agents_in, instance_of, judged, seen_in, shutdowns
from yolo_fs.agents.stalls import CAUSES, StallInput, stalls, turns_of
from yolo_fs.artifacts.verdicts import Held, Rejected, Verdict
from yolo_fs.cli import hook_fast
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Finding, Reason
from yolo_fs.core.timestamps import Instant, Timers, iso
from yolo_fs.escalations.fold import escalations
from yolo_fs.escalations.log import logged
from yolo_fs.evidence.facts import PhaseFacts
from yolo_fs.phase.phase import Phase
from yolo_fs.protocol.departments import Dept
from yolo_fs.protocol.hooks import AGENT_HOOK_BY_NAME
from yolo_fs.protocol.roster import SIGNS, TURNS, Cause, Circuit, Health
from yolo_fs.schemas.layout import Record
from yolo_fs.schemas.messages.catalogue import MESSAGES, read_message
from yolo_fs.system import heartbeats

FIXTURES = Path(__file__).parents[2] / "fixtures/crew"
START = datetime(2026, 2, 17, 10, tzinfo=UTC)
HISTORIES = int(os.environ.get("YOLO_HISTORIES", "30"))
"""Sets the size of what is generated."""
WRITTEN = START - timedelta(hours=1)


def cases(kind: str) -> Any:
    found = sorted((FIXTURES / kind).glob("*.json"))
    assert found
    return pytest.mark.parametrize(
        "case", [json.loads(one.read_text()) for one in found], ids=[one.stem for one in found]
    )


def seen(case: Mapping[str, Any]) -> tuple[tuple[AgentSign, ...], tuple[Finding, ...]]:
    records = [Record(number, line) for number, line in enumerate(case.get("lines", ()), 1)]
    return seen_in(records, datetime.fromisoformat(case["now"]), WRITTEN)


def shown(at: datetime | None) -> str:
    return iso(at.timestamp()) if at else ""


# --- the tables ---


def test_every_hook_is_a_sign_and_every_message_of_the_table_exists() -> None:
    names = {row.event.partition(":")[0] for row in SIGNS}
    assert names >= set(AGENT_HOOK_BY_NAME) == set(hook_fast.NEEDS)
    assert names - set(AGENT_HOOK_BY_NAME) <= set(MESSAGES)
    assert {row.event for row in SIGNS if row.is_work} == set(heartbeats.WORK)
    assert list(CAUSES) == list(Cause)


# --- health ---


@cases("health")
def test_health_is_what_the_signs_say(case: dict[str, Any]) -> None:
    found, findings = seen(case)
    agents = judged(agents_in(found), datetime.fromisoformat(case["now"]), case["silent_s"])
    assert {one.id: [one.health.value, shown(one.since)] for one in agents} == case["agents"]
    assert [one.reason.value for one in findings] == case["findings"]


def test_every_change_is_an_event_that_document_000_knows() -> None:
    for path in (FIXTURES / "health").glob("*.json"):
        case = json.loads(path.read_text())
        for one in judged(
            agents_in(seen(case)[0]), datetime.fromisoformat(case["now"]), case["silent_s"]
        ):
            assert read_message(one.as_event())[1] == (), path.stem


def test_who_only_gives_its_name_is_the_one_agent_that_is_called_so() -> None:
    agents = agents_in([AgentSign(1, START, "subagent-start", "yolo-dev", "a1", "s"), AgentSign(2, START, "stop", "yolo-qa", "q1", "s"),
                   AgentSign(3, START, "stop", "yolo-fe-dev", "f1", "s"), AgentSign(4, START, "stop", "yolo-fe-dev", "f2", "s")])  # fmt: skip
    assert [instance_of(name, agents) for name in ("dev-1", "qa", "f2", "fe-dev", "senior", "anybody")] == [
        "a1", "q1", "f2", "fe-dev", "senior", "anybody",
    ]  # fmt: skip


# --- circuit ---


@pytest.mark.proves("000:367")
@cases("circuit")
def test_a_breaker_turns_as_the_scenario_says(case: dict[str, Any]) -> None:
    told = [outcome(*one) for one in case["outcomes"]]
    patience = BreakerPolicy(case["failures"], case["open_s"])
    (one,) = breakers(told, patience, datetime.fromisoformat(case["now"]))
    said = one.as_message()
    assert {key: said[key] for key in ("state", "failure_count", "opened_at", "last_probe_at")} == {
        key: case[key] for key in ("state", "failure_count", "opened_at", "last_probe_at")
    }
    assert read_message(said)[1] == ()
    assert bool(one.why) == (one.state is not Circuit.CLOSED or bool(case["failure_count"]))


def outcome(at: str, kind: str, once: str = "", department: str = "backend") -> OutcomeEvent:
    return OutcomeEvent(datetime.fromisoformat(at), Dept(department), kind == "failure", kind, once)


def test_breakers_of_generated_histories_are_those_of_a_plain_machine() -> None:
    seed = 20261121
    print(f"seed {seed}, {30 * HISTORIES} histories")
    dice = random.Random(seed)
    reached = set()
    for _ in range(30 * HISTORIES):
        patience = BreakerPolicy(dice.randint(1, 4), dice.choice((1, 60, 300)))
        at_s = sorted(dice.choices(range(2_000), k=dice.randint(0, 12)))
        history = [(second, dice.random() < 0.6) for second in at_s]
        now_s = dice.randint(0, 3_000) + (at_s[-1] if at_s else 0)
        told = [
            OutcomeEvent(START + timedelta(seconds=second), Dept.BACKEND, failed, "x")
            for second, failed in history
        ]
        dice.shuffle(told)
        (one,) = breakers(told, patience, START + timedelta(seconds=now_s))
        expected = plain_machine(history, patience, now_s)
        if len(set(at_s)) == len(at_s):
            assert (one.state.value, one.failures) == expected, (history, patience, now_s)
            reached.add(one.state)
    assert reached == set(Circuit)
    assert {row.state for row in TURNS} == set(Circuit)


def test_thousands_of_failures_are_counted_and_the_last_of_them_told() -> None:
    told = [
        OutcomeEvent(
            START + timedelta(seconds=second), Dept.BACKEND, True, f"task {second}", f"{second % 9}"
        )
        for second in range(9)
    ]
    told += [
        each._replace(once="", what=f"{each.what}.{turn}") for each in told for turn in range(1_000)
    ]
    told += told[:9]  # each of these is known, and counts once

    (one,) = breakers_after(told, [Dept.BACKEND], BreakerPolicy(3, 60))

    assert one.failures == 9_009
    assert (one.state, len(one.latest)) == (Circuit.OPEN, 3)
    assert one.why.startswith("9009 failures in a row: task ")


def test_outcomes_count_oldest_first_and_what_two_tell_alike_counts_once() -> None:
    told = [outcome(f"2026-02-17T10:00:{second:02}+00:00", "failure") for second in range(3)]
    patience = BreakerPolicy(9, 60)
    (one,) = breakers_after([*reversed(told), *told], [Dept.BACKEND], patience)
    assert (one.failures, one.latest) == (3, tuple(told))


def plain_machine(
    history: Iterable[tuple[int, bool]], patience: BreakerPolicy, now_s: int
) -> tuple[str, int]:
    """Run the machine second by second, as document 000 has it in words."""
    state, count, opened_s = "closed", 0, 0
    by_second = dict(history)
    for second in range(now_s + 1):
        if state == "open" and second - opened_s >= patience.open_s:
            state = "half-open"
        if second not in by_second:
            continue
        if by_second[second]:
            count += 1
            if state == "half-open" or (state == "closed" and count >= patience.failures):
                state, opened_s = "open", second
        elif state != "open":
            state, count = "closed", 0
    return state, count


# --- shutdown ---


@pytest.mark.proves("000:465")
@cases("shutdown")
def test_a_request_to_stop_goes_as_the_scenario_says(case: dict[str, Any]) -> None:
    found, _ = seen(case)
    requests, findings = shutdowns(found)
    one = requests[-1]
    assert {each.agent.id: each.answer for each in one.asked} == case["asked"]
    assert (one.is_over, one.is_late(datetime.fromisoformat(case["now"]))) == (
        case["over"],
        case["late"],
    )
    assert [finding.reason.value for finding in findings] == case["findings"]


# --- stalls ---


@cases("stall")
def test_a_step_stands_still_for_the_cause_that_the_scenario_has(case: dict[str, Any]) -> None:
    now = datetime.fromisoformat(case["now"])
    found = stalls(scene(case, now), now, 1800)
    own = [
        one for one in found if one.awaited.department in (None, Dept(case.get("of", "backend")))
    ]
    assert [one.cause.value for one in own] == [case["cause"]] * bool(case["cause"])
    for words in case["words"]:
        assert words in str(own[0])
    assert all(json.dumps(to_json(one)) for one in own)


def breakers(
    told: Iterable[OutcomeEvent], patience: BreakerPolicy, now: datetime
) -> tuple[Breaker, ...]:
    return as_of(now, breakers_after(told, [Dept.BACKEND], patience), patience, {})


def scene(case: Mapping[str, Any], now: datetime) -> StallInput:
    known = phase(case)
    agents = judged(agents_in(seen(case)[0]), now, 600)
    told = [
        OutcomeEvent(now - timedelta(seconds=9 - turn), Dept.BACKEND, failed=True, what=what)
        for turn, what in enumerate(case.get("failures", ()))
    ]
    circuits = breakers(told, BreakerPolicy(2, 300), now)
    asked = escalations(logged(known), now)
    turns = turns_of(Phase(known), {})
    return StallInput(Phase(known), turns, agents, circuits, asked, verdicts(case))


def phase(case: Mapping[str, Any]) -> PhaseFacts:
    content = complete()
    if not case.get("complete"):
        del content["01-02.summary.jsonl"], content["../../state.json"], content["../../ROADMAP.md"]
    if "escalation" in case:
        content["escalation.jsonl"] = case["escalation"]
    config = config_from({"security_audit": True})
    if "departments" in case:
        flags = dict.fromkeys(case["departments"], True)
        config = config_from({"departments": flags, "department_workflow": "parallel"})
        content["fe-architecture.toon"] = [{"tech_decisions": ["React"]}]
    found = facts(content, config=config, signed_off="c" * 40 if case.get("complete") else "")
    at_s = int(START.timestamp())
    return replace(found, committed=tuple(one._replace(at_s=at_s) for one in found.committed))


def verdicts(case: Mapping[str, Any]) -> dict[str, Verdict]:
    found: dict[str, Verdict] = {}
    if "rejected" in case:
        path = f"{FOLDER}/{case['rejected']}"
        found[path] = Rejected((Finding(Reason.MISSING_KEY, path, 1, "/s"),))
    if "held" in case:
        found[f"{FOLDER}/{case['held']}"] = Held(Reason.SECRET)
    return found


# --- time ---


def test_silence_is_told_once_whatever_the_clocks_do_and_however_often_it_is_asked_anew() -> None:
    seed = 977
    print(f"seed {seed}, {10 * HISTORIES} agents")
    dice = random.Random(seed)
    for _ in range(HISTORIES):
        agents, silent_s = 10, 600.0
        now = Instant(START, 1_000.0, "boot")
        timers = Timers()
        lines: dict[str, AgentSign] = {}
        beat_s: dict[str, float] = {}
        gone: dict[str, float] = {}
        for _ in range(120):
            step = dice.uniform(1, 40)
            now = now._replace(
                steady_s=now.steady_s + step, wall=now.wall + timedelta(seconds=step)
            )
            if dice.random() < 0.05:  # an administrator, or a time server
                now = now._replace(
                    wall=now.wall
                    + timedelta(seconds=dice.choice((-86_400, -3_600, 3_600, 86_400 * 365))),
                )
            if dice.random() < 0.1:
                timers = replace(timers, looked_s=None)  # as another run knows them
            for number in range(agents):
                name = f"a{number}"
                if name not in gone and dice.random() < 0.03:
                    lines[name] = AgentSign(len(lines), now.wall, "pre-tool-use", "yolo-dev", name)
                    beat_s[name] = now.steady_s
            by_signs = agents_in(lines.values())
            timers = timers.look({one.key: one.seen for one in by_signs}, now)
            began = {one.key: timers.began(one.key, now) for one in by_signs}
            for one in judged(by_signs, now.wall, silent_s, began):
                silence_s = now.steady_s - beat_s[one.id]
                assert (one.health is Health.DISAPPEARED) == (silence_s > silent_s + 1e-3) or abs(
                    silence_s - silent_s
                ) < 1
                if one.health is Health.DISAPPEARED:
                    gone.setdefault(one.id, now.steady_s)
