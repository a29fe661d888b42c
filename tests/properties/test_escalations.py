"""Escalations over random histories: none is ever lost, none fires twice, and a decision only goes down.

See docs/dev/faults.md#f19.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.properties.profile import profile, tried
from yolo_fs.escalations.fold import Timeout, due, escalations
from yolo_fs.escalations.log import (
    EscalationLog,
    EscalationProgress,
    EscalationStage,
    by_id,
    station,
    stations,
)
from yolo_fs.escalations.machine import advance
from yolo_fs.protocol.departments import Mode, Role
from yolo_fs.schemas.config import EscalationRules

START = datetime(2026, 2, 19, 11, tzinfo=UTC)
LATER = START + timedelta(days=1)
RULES = EscalationRules(timeout_seconds=300)
NAMES = some.sampled_from(["ESC-01-02-T1", "ESC-01-02-T3", "ESC-01-04-T1"])
CHAIN = [Role.DEV, Role.SENIOR, Role.LEAD, Role.ARCHITECT, Role.OWNER, Role.USER]
AGENTS = some.sampled_from(CHAIN) | some.sampled_from(
    [*Role, "fe-dev", "ux-lead", "nobody", "", "go.md", "dev-2"]
)
LINES = some.lists(
    some.fixed_dictionaries(
        {
            "id": NAMES, "agent": AGENTS, "tgt": AGENTS, "reason": some.just("r"), "sb": some.just("s"), "sev": some.just("major"),
            "st": some.sampled_from(["open", "escalated", "resolved", "odd"]),
        },
        optional={
            "dec": some.just("x"), "res": some.just("y"), "ref": some.sampled_from(["abc1234", ""]),
            "mv": some.sampled_from(["timeout", "remind", "stop", "fail"]), "att": some.sampled_from([1, 2]),
        },
    ),
    max_size=12,
)  # fmt: skip
MODES = some.sampled_from(list(Mode))


def known(lines: list[dict[str, Any]], mode: Mode) -> EscalationLog:
    dated = [line | {"dt": moment(minute)} for minute, line in enumerate(lines)]
    return EscalationLog(mode, RULES, dated)


def moment(minute: float) -> str:
    return (START + timedelta(minutes=minute)).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- any log ---


@tried(40)
@given(LINES, MODES)
def test_an_escalation_that_anybody_mentioned_is_never_lost(
    lines: list[dict[str, Any]], mode: Mode
) -> None:
    found = {str(one.id): one for one in escalations(known(lines, mode), LATER)}

    assert set(found) == {line["id"] for line in lines}
    for name, one in found.items():
        is_shown = any(line["id"] == name and line.get("ref") for line in lines)
        assert one.is_open or is_shown
        assert one.holder in one.path


@tried(40)
@given(LINES, MODES)
def test_each_line_that_counts_moves_it_one_level_and_a_decision_only_down(
    lines: list[dict[str, Any]], mode: Mode
) -> None:
    for count in range(1, len(lines)):
        before, after = (
            {str(one.id): one for one in escalations(known(lines[:n], mode), LATER)}
            for n in (count, count + 1)
        )
        name = lines[count]["id"]
        if name in before:
            check_move(before[name], after[name])
        for other in before.keys() - {name}:
            assert before[other] == after[other]


def check_move(before: EscalationProgress, after: EscalationProgress) -> None:
    if (
        before.standing is EscalationStage.DESCENDING
        and after.standing is not EscalationStage.RISING
    ):
        assert after.path == before.path
        assert after.path.index(after.holder) in (
            step := before.path.index(before.holder),
            step - 1,
        )
    if after.standing is EscalationStage.DESCENDING and before.standing in (
        EscalationStage.RISING,
        EscalationStage.STOPPED,
    ):
        assert after.path.index(after.holder) == before.path.index(before.holder) - 1
        assert after.decision or not before.decision
    if (
        before.standing is after.standing is EscalationStage.RISING
        and after.attempt == before.attempt
    ):
        assert after.path.index(after.holder) - before.path.index(before.holder) in (0, 1)
    assert after.attempt in (before.attempt, before.attempt + 1)
    assert after.round_trips in (before.round_trips, before.round_trips + 1)


@tried(25)
@given(LINES, MODES)
def test_a_log_that_grows_only_adds_to_what_has_happened(
    lines: list[dict[str, Any]], mode: Mode
) -> None:
    stands = [
        {str(one.id): one for one in escalations(known(lines[:n], mode), LATER)}
        for n in range(len(lines) + 1)
    ]

    for before, after in pairwise(stands):
        for name, one in before.items():
            assert after[name].history[: len(one.history)] == one.history
            assert after[name].findings[: len(one.findings)] == one.findings


@tried(25)
@given(LINES, MODES)
def test_a_line_that_is_refused_says_why_and_changes_nothing(
    lines: list[dict[str, Any]], mode: Mode
) -> None:
    log = known(lines, mode)
    for found in by_id(stations(log)).values():
        (one,) = escalations(EscalationLog(mode, RULES, [log.lines[found[0].number - 1]]), LATER)
        for line in found[1:]:
            moved, wrong = advance(one, line, log)
            assert moved is not one or wrong
            one = moved


@pytest.mark.proves("000:302")
def test_a_decision_sent_upward_is_refused_at_every_level() -> None:
    up = [Role.DEV, Role.SENIOR, Role.LEAD, Role.ARCHITECT, Role.USER]
    base = {"id": "ESC-01-02-T3", "reason": "r", "sb": "s", "sev": "major"}
    rising = [
        base | {"agent": a, "tgt": b, "st": "escalated" if n else "open"}
        for n, (a, b) in enumerate(pairwise(up))
    ]
    falling = [
        base | {"agent": a, "tgt": b, "st": "escalated", "dec": "x"} for a, b in pairwise(up[::-1])
    ]
    for count in range(len(falling) - 1):
        lines = [*rising, *falling[: count + 1]]
        holder, above = up[::-1][count + 1], up[::-1][count]
        wrong = base | {"agent": holder, "tgt": above, "st": "escalated", "dec": "x"}
        (before,) = escalations(known(lines, Mode.SINGLE), LATER)
        (after,) = escalations(known([*lines, wrong], Mode.SINGLE), LATER)
        assert (
            (after.holder, after.standing)
            == (before.holder, before.standing)
            == (holder, EscalationStage.DESCENDING)
        )
        assert len(after.findings) == len(before.findings) + 1


# --- silence ---


class Silence(RuleBasedStateMachine):
    """People who may act or stay silent, a clock that goes on, and a coordinator that hands up what is due."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[dict[str, Any]] = []
        self.now = START
        self.fired: set[str] = set()
        self.mode = Mode.SINGLE

    @initialize(mode=MODES)
    def begin(self, mode: Mode) -> None:
        self.mode = mode

    def look(self) -> tuple[EscalationProgress, ...]:
        return escalations(EscalationLog(self.mode, RULES, self.lines), self.now)

    def write(self, name: str, agent: str, target: str, state: str, **more: Any) -> None:
        self.now += timedelta(seconds=1)
        dt = self.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        self.lines.append({"id": name, "dt": dt, "agent": agent, "tgt": target, "st": state, "reason": "r", "sb": "s",
                           "sev": "major", **more})  # fmt: skip

    @rule(name=NAMES)
    def report(self, name: str) -> None:
        self.write(name, "dev", "senior", "open")

    @precondition(lambda self: self.lines)
    @rule(data=some.data())
    def act(self, data: some.DataObject) -> None:
        one = data.draw(some.sampled_from(self.look()))
        above, below = one.above(one.holder), one.below(one.holder)
        if one.standing is EscalationStage.RISING and above and data.draw(some.booleans()):
            self.write(str(one.id), one.holder, above, "escalated")
        elif one.standing is EscalationStage.DESCENDING and one.holder is one.origin:
            self.write(str(one.id), one.origin, one.path[1], "resolved", res="x", ref="abc1234")
        elif one.is_open:
            self.write(str(one.id), one.holder, below, "escalated", dec="x")

    @rule(
        name=NAMES,
        agent=AGENTS,
        to=AGENTS,
        state=some.sampled_from(["open", "escalated", "resolved"]),
    )
    def talk(self, name: str, agent: str, to: str, state: str) -> None:
        self.write(name, agent, to, state)

    @rule(seconds=some.sampled_from([1, 200, 301, 4000]))
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule()
    def tick(self) -> None:
        before = {str(one.id): one for one in self.look()}
        for late in due(before.values(), self.now):
            self.hand_up(before[str(late.id)], late)
        after = {str(one.id): one for one in self.look()}
        assert after.keys() == before.keys()
        assert not due([after[name] for name in after], self.now)

    def hand_up(self, one: EscalationProgress, late: Timeout) -> None:
        assert one.key not in self.fired, f"{one.key} fired twice"
        assert self.now - one.since > timedelta(seconds=RULES.timeout_seconds), "fired early"
        self.fired.add(one.key)
        move = "remind" if late.to is late.level else "timeout"
        self.write(str(late.id), late.level, late.to, "escalated", mv=move, att=late.attempt)

    @invariant()
    def nothing_is_lost(self) -> None:
        found = {str(one.id) for one in self.look()}
        assert found == {line["id"] for line in self.lines}


def test_whoever_is_silent_is_passed_once_and_in_time() -> None:
    run_state_machine_as_test(Silence, settings=profile(12, stateful_step_count=25))


def test_a_station_of_any_line_can_be_taken_apart() -> None:
    for name in by_id(
        stations(known([{"id": "ESC-01-02-T1", "agent": "", "tgt": "", "st": ""}], Mode.SINGLE))
    ):
        assert station(1, name, {}).role is None
