"""Generated histories that one piece of evidence does not fit, and whoever does as they are told."""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

from tests.properties.histories import (
    DEPARTMENTS,
    SHIP,
    Event,
    Ground,
    known_of,
    prefix,
)
from yolo_fs.artifacts.classify import classify
from yolo_fs.phase.acts import Act, acts_of
from yolo_fs.phase.phase import Phase
from yolo_fs.protocol.departments import Dept

SEED = int(os.environ.get("YOLO_SEED", "20261127"))
EXAMPLES = int(os.environ.get("YOLO_EXAMPLES", "0"))
MOST_ACTS = 40
JUDGES = ("code-review.jsonl", "verification.jsonl", "qa-code.jsonl", "security-audit.jsonl")
Spoil = Callable[[list[Event], Ground, Dept, Random], str]
"""Makes one piece of evidence not fit, and returns what it was."""


def place_of(events: list[Event], event: Event) -> int:
    return next(at for at, one in enumerate(events) if one.name == event.name)


def verdict_before_work(events: list[Event], ground: Ground, own: Dept, chance: Random) -> str:
    judge = ground.event(chance.choice(JUDGES), own)
    events.pop(place_of(events, judge))
    events.insert(place_of(events, ground.work(own)), judge)
    return judge.name


def work_after_verdict(events: list[Event], ground: Ground, own: Dept, chance: Random) -> str:
    judge = ground.event(chance.choice(JUDGES), own)
    last = place_of(events, next(one for one in events if one.name == "state.json"))
    events.insert(chance.randint(place_of(events, judge) + 1, last), ground.work(own))
    return judge.name


def disguised_work_after_verdict(
    events: list[Event], ground: Ground, own: Dept, chance: Random
) -> str:
    judge = ground.event(chance.choice(JUDGES), own)
    last = place_of(events, next(one for one in events if one.name == "state.json"))
    events.insert(chance.randint(place_of(events, judge) + 1, last), ground.disguised(own))
    return judge.name


def design_after_verdict(events: list[Event], ground: Ground, own: Dept, chance: Random) -> str:
    design = ground.event("architecture.toon", own)
    verdicts = [ground.event(kind, own) for kind in ("verification.jsonl", "qa-code.jsonl")]
    first = min(place_of(events, verdict) for verdict in verdicts)
    last = place_of(events, next(one for one in events if one.name == "state.json"))
    events.insert(chance.randint(first + 1, last), design)
    return design.name


def audit_that_passes_what_it_failed(
    events: list[Event], ground: Ground, own: Dept, _: Random
) -> str:
    audit = ground.event("security-audit.jsonl", own)
    failed = ({"r": "FAIL", "findings": 1, "critical": 1, "dt": "2026-02-19"},)
    events.insert(place_of(events, audit), audit._replace(lines=failed))
    events[:] = [event for event in events if event.name not in SHIP]  # nobody asked the user yet
    return audit.name


def sign_off_before_work(events: list[Event], ground: Ground, own: Dept, chance: Random) -> str:
    signed = [events.pop(place_of(events, Event(name))) for name in SHIP]
    at = chance.randint(0, place_of(events, ground.event("security-audit.jsonl", own)))
    events[at:at] = signed
    return "state.json"


def verdict_of_another_department(
    events: list[Event], ground: Ground, own: Dept, chance: Random
) -> str:
    others = [each for each in DEPARTMENTS if each is not own]
    judge = ground.event(chance.choice(JUDGES), own)
    name = judge.name.removeprefix(prefix(own))
    said = tuple({**line, "dt": "2026-02-18"} for line in judge.lines)  # not what theirs says
    other = chance.choice(others)  # who judges it works where its code is
    events[place_of(events, judge)] = judge._replace(
        name=prefix(other) + name, lines=said, department=other
    )
    return judge.name


def work_of_another_department(events: list[Event], ground: Ground, own: Dept, _: Random) -> str:
    work = ground.work(own)
    events[place_of(events, work)] = work._replace(name="elsewhere/a.ts")
    return work.name


def review_of_another_plan(events: list[Event], ground: Ground, own: Dept, _: Random) -> str:
    review = ground.event("code-review.jsonl", own)
    events[place_of(events, review)] = review._replace(
        lines=({**review.lines[0], "plan": "01-09"},)
    )
    return review.name


def red_tests_of_another_plan(events: list[Event], ground: Ground, own: Dept, _: Random) -> str:
    tests = ground.event("test-plan.jsonl", own)
    events[place_of(events, tests)] = tests._replace(lines=({**tests.lines[0], "plan": "01-09"},))
    return tests.name


def summary_that_names_no_commit(events: list[Event], ground: Ground, own: Dept, _: Random) -> str:
    summary = ground.event("summary.jsonl", own)
    other = ({**summary.lines[0], "ch": ["fffffff"]},)
    events[place_of(events, summary)] = summary._replace(lines=other)
    return summary.name


def verdict_that_fails(events: list[Event], ground: Ground, own: Dept, chance: Random) -> str:
    kind = chance.choice(("verification.jsonl", "qa-code.jsonl"))
    judge = ground.event(kind, own)
    at = place_of(events, judge)
    events[at] = judge._replace(lines=({"r": "FAIL", "ps": 1, "fl": 1, "dt": "2026-02-19"},))
    others = [each for each in ground.departments if each is not own]
    for other in others[:1]:  # which mends nothing of this department
        events.insert(at + 1, ground.work(other))
    return judge.name


MISMATCHES: tuple[Spoil, ...] = (
    verdict_before_work,
    work_after_verdict,
    sign_off_before_work,
    verdict_of_another_department,
    work_of_another_department,
    review_of_another_plan,
    red_tests_of_another_plan,
    summary_that_names_no_commit,
    verdict_that_fails,
    disguised_work_after_verdict,
    design_after_verdict,
    audit_that_passes_what_it_failed,
)


class Tale:
    """One generated history, told by its number."""

    def __init__(self, number: int):
        chance = Random(f"{SEED}-{number}")
        count = chance.randint(1, 3)
        self.ground = Ground(DEPARTMENTS[:count], chance.random() < 0.3)
        self.own = chance.choice(self.ground.departments)
        self.spoil = MISMATCHES[number % len(MISMATCHES)]
        self.events = self.ground.whole(chance)
        whole = Phase(known_of(self.ground, self.events))
        assert whole.is_complete, (SEED, number, whole.progress.next)
        self.what = self.spoil(self.events, self.ground, self.own, chance)
        self.label = (SEED, number, self.spoil.__name__, self.own, self.what)

    @property
    def phase(self) -> Phase:
        return Phase(known_of(self.ground, self.events))

    def obey(self, act: Act) -> None:
        """Do what an act says, well."""
        words = act.turn.command.split()
        if words[1:3] == ["decide", "assign"]:
            line = {
                "agent": act.agent,
                "dec": f"assign {words[3]}",
                "kind": "assign",
                "of": words[3],
                "task": words[3],
            }
            before = [each.lines for each in self.events if each.name == "decisions.jsonl"]
            lines = (*(before[-1] if before else ()), line)
            self.events.append(Event("decisions.jsonl", lines))
        if act.turn.step == "signoff":
            self.events += [event for event in self.ground.whole(Random(0)) if event.name in SHIP]
        for path in act.writes:
            self.events.append(self.made(path))

    def made(self, path: str) -> Event:
        place = classify(path)
        if place is None:
            owner = next(each for each in self.ground.departments if path.startswith(each))
            return self.ground.work(owner)
        name = path.rpartition("/")[2]
        own = next((one for one in self.ground.whole(Random(0)) if one.name == name), None)
        assert own is not None, (self.label, path)
        if name.endswith("code-review.jsonl"):
            count = sum(one.name == name for one in self.events)
            return own._replace(lines=({**own.lines[0], "cycle": count + 1},))
        return own

    def finish(self) -> None:
        """Do as told until all is done, or a person is asked."""
        for _ in range(MOST_ACTS):
            phase = self.phase
            acts = acts_of(phase)
            if phase.is_complete or acts[0].is_of_person:
                return
            self.obey(acts[0])
