"""The timeline of one phase: what each department did between two commits, and where its time went.

Each commit of the branch is evaluated once, oldest first, with the board that `status --at` shows.
No clock is read: the same history and journal give the same timeline.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import groupby, pairwise
from typing import Any, ClassVar, NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.artifacts.naming import purpose_of
from yolo_fs.evidence.facts import SourceCommit
from yolo_fs.evidence.plan_status import PlanStanding
from yolo_fs.git.history import has_trees, main_line
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.phase.progress import DepartmentStatus, StepStanding
from yolo_fs.progress.board import PhaseBoard, board
from yolo_fs.protocol.workflow import REVIEWS
from yolo_fs.system.journal import PREFIX
from yolo_fs.workspace.settings import Settings

MOST_MOMENTS = 400
"""Most commits of a phase to evaluate. A longer history is sampled in even steps."""
_SHARED = frozenset(
    f"{PLANNING_ROOT}/{name}" for name in ("config.json", "state.json", "ROADMAP.md")
)


class TimeUse(StrEnum):
    """What a stretch of time was used for."""

    WORKING = "working"
    REVIEW = "review"
    WAITING = "waiting"
    REFUSED = "refused"


class TimelinePoint(NamedTuple):
    """One commit that concerns the phase."""

    commit: str
    at_ms: int
    """Milliseconds since the epoch. Commits of the same second are spread over it, in order."""
    subject: str


class LaneState(NamedTuple):
    """What a department was doing, from one moment on."""

    step: str
    """Key of its step; empty once its part is done."""
    number: str
    use: TimeUse
    cause: str = ""
    """What it waits for."""


class LaneBar(NamedTuple):
    """A stretch of time of one department."""

    department: str
    state: LaneState
    from_ms: int
    to_ms: int


class BegunPlan(NamedTuple):
    """State of a plan that was begun."""

    department: str
    wave: float
    is_done: bool


class PlanBar(NamedTuple):
    """Time span of the work on a plan, from its first task to its last evidence."""

    plan: str
    department: str
    wave: float
    from_ms: int
    to_ms: int
    """Its end, or the last moment that was evaluated."""
    is_done: bool


class TimelineMark(NamedTuple):
    """Something that happened at one moment."""

    kind: str
    """`refused`, `held`, `escalation` or `gate`."""
    at_ms: int
    path: str
    text: str
    department: str


@dataclass(frozen=True, slots=True)
class TimelineSample:
    """How the phase stood at one moment."""

    lanes: Mapping[str, LaneState]
    plans_done: int
    plans: int
    percent: int
    begun: Mapping[str, BegunPlan] = field(default_factory=dict)
    """Id of a begun plan → its state."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """One phase over time."""

    phase: str
    moments: tuple[TimelinePoint, ...]
    bars: tuple[LaneBar, ...]
    marks: tuple[TimelineMark, ...]
    plans: tuple[tuple[int, int, int], ...]
    """(moment in ms, complete plans, all plans) at each change."""
    spent_ms: Mapping[str, Mapping[TimeUse, int]]
    """Step → use of time → milliseconds, summed over all departments."""
    latencies: tuple[tuple[int, int], ...]
    """(moment in ms, milliseconds from the last write of a file to its commit)."""
    left: int
    """Moments that are still to be evaluated."""
    plan_bars: tuple[PlanBar, ...] = ()
    """Begun plans, in the order in which they began."""

    @property
    def from_ms(self) -> int:
        """When it begins."""
        return self.moments[0].at_ms if self.moments else 0

    @property
    def to_ms(self) -> int:
        """When it ends."""
        last = [moment.at_ms for moment in self.moments[-1:]] + [
            mark.at_ms for mark in self.marks[-1:]
        ]
        return max(last, default=0)

    JSON_KEYS: ClassVar = {
        key: key for key in ("phase", "from_ms", "to_ms", "moments", "marks", "left")
    }


class Replay:
    """Evaluates the commits of a branch in order, and caches the results."""

    def __init__(self, repository: Repository):
        self._repository = repository
        self._facts_reader: FactsReader | None = None
        self._samples: dict[tuple[str, str], TimelineSample | None] = {}
        """(phase, commit) → state of the phase; None where it did not exist yet."""
        self._moments: tuple[object, tuple[TimelinePoint, ...]] = ((), ())

    def phase(
        self,
        settings: Settings,
        phase: str,
        tip: str,
        events: Iterable[Mapping[str, Any]],
        budget_s: float | None = None,
    ) -> Timeline:
        """Return the timeline of a phase up to a commit, as far as the budget allows.

        `phase`: name of its directory. `events`: the journal's events.
        """
        if self._facts_reader is None or settings != self._facts_reader.settings:
            self._facts_reader = FactsReader(self._repository, settings)
            self._samples.clear()
        until = None if budget_s is None else time.monotonic() + budget_s
        moments = self._choose_moments(self._facts_reader, phase, tip)
        left = 0
        for moment in moments:
            key = phase, moment.commit
            if key in self._samples:
                continue
            if until is not None and time.monotonic() > until:
                left += 1
                continue
            team_board = board(self._facts_reader, moment.commit)
            seen = next(
                (phase_board for phase_board in team_board.phases if str(phase_board.id) == phase),
                None,
            )
            self._samples[key] = sample_of(seen) if seen else None
        seen_at = [
            (moment, sample)
            for moment in moments
            if (sample := self._samples.get((phase, moment.commit)))
        ]
        journal = tuple(events)
        marks = tuple(marks_of(journal, phase, moments))
        bars = tuple(bars_of(seen_at, tuple(refusals_of(journal, phase))))
        return Timeline(
            phase, moments, bars, marks, _plans(seen_at), spent(bars),
            tuple(latencies_of(journal, phase)), left, tuple(plan_bars_of(seen_at)),
        )  # fmt: skip

    def _choose_moments(
        self, facts_reader: FactsReader, phase: str, tip: str
    ) -> tuple[TimelinePoint, ...]:
        index = facts_reader.history_index
        index.read_up_to(tip)
        asked = phase, tip, index.lacks_trees
        if self._moments[0] != asked:
            known = {moment.commit for moment in self._moments[1]}
            line = main_line(self._repository, tip)
            commits = (commit for oid in line if (commit := index.commit(oid)))
            of_phase = [commit for commit in commits if concerns(commit, phase)]
            if index.lacks_trees:
                of_phase = [each for each in of_phase if has_trees(self._repository, each.oid)]
            chosen = of_phase
            if len(of_phase) > MOST_MOMENTS:
                step = len(of_phase) / MOST_MOMENTS
                even = {int(number * step) for number in range(MOST_MOMENTS)} | {len(of_phase) - 1}
                chosen = [
                    commit
                    for at, commit in enumerate(of_phase)
                    if at in even or commit.oid in known
                ]
            self._moments = asked, tuple(spread(chosen))
        return self._moments[1]


def concerns(commit: SourceCommit, phase: str) -> bool:
    """Return whether a commit concerns a phase.

    It does by a path below the phase, by its subject, or by files that all phases share.
    """
    number = phase.partition("-")[0]
    if any(path.startswith(f"{PLANNING_ROOT}/phases/{phase}/") for path in commit.files):
        return True
    if commit.files & _SHARED:
        return True
    purpose = purpose_of(commit.subject)
    return purpose is not None and number in (purpose.phase, purpose.plan and purpose.plan.phase)


def spread(commits: Iterable[SourceCommit]) -> Iterator[TimelinePoint]:
    """Yield commits with their moments.

    Commits of one second are spread over it. None is earlier than a commit before it.
    """
    latest = 0
    for at_s, some in groupby(commits, key=lambda commit: commit.at_s):
        same = tuple(some)
        for number, commit in enumerate(same):
            latest = max(latest, at_s * 1_000 + number * 1_000 // len(same))
            yield TimelinePoint(commit.oid, latest, commit.subject)


def sample_of(phase: PhaseBoard) -> TimelineSample:
    """Return how a phase stands."""
    departments = phase.progress.departments
    causes = {wait.waiter: f"{wait.on}: {wait.why}" for wait in reversed(phase.waits)}
    return TimelineSample(
        {status.department.value: _lane_state(status, causes) for status in departments},
        sum(plan.is_done for status in departments for plan in status.plans),
        sum(len(status.plans) for status in departments),
        phase.progress.percent,
        dict(_begun_plans(departments)),
    )


def _begun_plans(departments: Iterable[DepartmentStatus]) -> Iterator[tuple[str, BegunPlan]]:
    for status in departments:
        for plan in status.plans:
            if plan.standing is not PlanStanding.PENDING:
                yield str(plan.id), BegunPlan(status.department.value, plan.wave, plan.is_done)


def plan_bars_of(seen: Sequence[tuple[TimelinePoint, TimelineSample]]) -> Iterator[PlanBar]:
    """Yield each begun plan with the time span of the work on it."""
    begun: dict[str, tuple[int, BegunPlan]] = {}
    done: dict[str, int] = {}
    for moment, sample in seen:
        for plan, state in sample.begun.items():
            begun.setdefault(plan, (moment.at_ms, state))
            if state.is_done:
                done.setdefault(plan, moment.at_ms)
            else:
                done.pop(plan, None)  # begun again
    for plan, (from_ms, state) in begun.items():
        to_ms = done.get(plan, seen[-1][0].at_ms)
        yield PlanBar(plan, state.department, state.wave, from_ms, to_ms, plan in done)


def _lane_state(status: DepartmentStatus, causes: Mapping[str, str]) -> LaneState:
    current = status.current
    if current is None:
        return LaneState("", "", TimeUse.WAITING)
    key, number = current.step.key, current.step.number
    waits = status.department.value in causes and current.standing is not StepStanding.RUNNING
    if status.next is None or waits:
        cause = causes.get(status.department.value) or next(iter(current.missing), "")
        return LaneState(key, number, TimeUse.WAITING, cause)
    return LaneState(key, number, TimeUse.REVIEW if key in REVIEWS else TimeUse.WORKING)


def bars_of(
    seen: Sequence[tuple[TimelinePoint, TimelineSample]], refusals: Sequence[tuple[str, int, int]]
) -> Iterator[LaneBar]:
    """Yield the time bars of each department in order. Refusals are cut out of its work."""
    departments = dict.fromkeys(name for _, sample in seen for name in sample.lanes)
    for name in departments:
        states = [(moment.at_ms, sample.lanes.get(name)) for moment, sample in seen]
        changes = [next(same) for _, same in groupby(states, key=lambda pair: pair[1])]
        ends = [at for at, _ in changes[1:]] + [seen[-1][0].at_ms]
        own = [(start, end) for department, start, end in refusals if department == name]
        for (start, state), end in zip(changes, ends, strict=True):
            if state and state.step:
                yield from _cut(LaneBar(name, state, start, end), own)


def _cut(bar: LaneBar, refused: Iterable[tuple[int, int]]) -> Iterator[LaneBar]:
    """Yield a bar in pieces. Those within a refusal are marked as such."""
    state = bar.state
    again = LaneState(state.step, state.number, TimeUse.REFUSED)
    at = bar.from_ms
    for start, end in sorted(refused):
        start, end = max(start, at), min(end, bar.to_ms)
        if start < end:
            if at < start:
                yield LaneBar(bar.department, state, at, start)
            yield LaneBar(bar.department, again, start, end)
            at = end
    if at < bar.to_ms or at == bar.from_ms:
        yield LaneBar(bar.department, state, at, bar.to_ms)


def spent(bars: Iterable[LaneBar]) -> dict[str, dict[TimeUse, int]]:
    """Return step → use of time → milliseconds."""
    times: dict[str, dict[TimeUse, int]] = {}
    for bar in bars:
        uses = times.setdefault(bar.state.step, dict.fromkeys(TimeUse, 0))
        uses[bar.state.use] += bar.to_ms - bar.from_ms
    return times


def _plans(
    seen: Iterable[tuple[TimelinePoint, TimelineSample]],
) -> tuple[tuple[int, int, int], ...]:
    rows = [(moment.at_ms, sample.plans_done, sample.plans) for moment, sample in seen]
    kept = rows[:1] + [now for before, now in pairwise(rows) if before[1:] != now[1:]] + rows[-1:]
    return tuple(dict.fromkeys(kept))


def event_ms(event: Mapping[str, Any]) -> int:
    """Return the time of an event in milliseconds since the epoch; 0 when it has none."""
    try:
        return int(datetime.fromisoformat(str(event.get("time"))).timestamp() * 1_000)
    except ValueError:
        return 0


def marks_of(
    events: Iterable[Mapping[str, Any]], phase: str, moments: Sequence[TimelinePoint]
) -> Iterator[TimelineMark]:
    """Yield the marks of a phase from the journal, also those after the last moment; none without
    moments.
    """
    if not moments:
        return
    for event in events:
        type_ = str(event.get("type")).removeprefix(PREFIX)
        kind = "escalation" if type_.startswith("escalation.") else _MARKS.get(type_)
        path, data = str(event.get("subject")), event.get("data") or {}
        if kind is None or not _is_of(path, phase):
            continue
        reason = str(data.get("reason") or data.get("id") or data.get("gate") or "")
        place = classify(path)
        yield TimelineMark(kind, event_ms(event), path, reason, place.department if place else "")


_MARKS = {"artifact.rejected": "refused", "artifact.held": "held", "gate.opened": "gate"}
"""Event type → mark."""


def refusals_of(events: Iterable[Mapping[str, Any]], phase: str) -> Iterator[tuple[str, int, int]]:
    """Yield (department, from, to) in milliseconds of each stretch with a rejected artifact."""
    since: dict[str, int] = {}
    for event in events:
        kind, path = str(event.get("type")).removeprefix(PREFIX), str(event.get("subject"))
        if kind == "artifact.rejected" and _is_of(path, phase):
            since.setdefault(path, event_ms(event))
        elif kind == "artifact.committed" and path in since:
            place = classify(path)
            if place:
                yield place.department, since.pop(path), event_ms(event)


def latencies_of(events: Iterable[Mapping[str, Any]], phase: str) -> Iterator[tuple[int, int]]:
    """Yield (moment, milliseconds from write to commit) of each commit whose event records it."""
    for event in events:
        took = (event.get("data") or {}).get("latency_ms")
        if isinstance(took, int) and _is_of(str(event.get("subject")), phase):
            yield event_ms(event), took


def _is_of(path: str, phase: str) -> bool:
    return path.startswith((f"{PLANNING_ROOT}/phases/{phase}/", phase))
