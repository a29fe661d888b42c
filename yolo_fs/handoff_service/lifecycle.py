"""Gathers what files and commits show of handoffs: when each came, and what was done since."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from yolo_fs.artifacts.verdicts import Place
from yolo_fs.core import timestamps as moments
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Finding
from yolo_fs.evidence.facts import Filed, PhaseFacts
from yolo_fs.handoffs.contents import names_of
from yolo_fs.handoffs.lifecycle import (
    DeliveredHandoff,
    HandoffLifecycle,
    HandoffStage,
    Moment,
    ReceiverSign,
    lifecycles,
)
from yolo_fs.handoffs.reading import Read
from yolo_fs.history.index import HistoryIndex, PathChange
from yolo_fs.phase.phase import Phases
from yolo_fs.protocol.departments import WORKING, Role, name_in
from yolo_fs.system.files import names_in, stamp_of
from yolo_fs.system.store import read_json

_DELIVERING = frozenset({"phase-handoff", "dept-handoff", "design-handoff", "api-contracts"})
"""Kinds that hand something over."""
_STATES = frozenset({"execution-state", "phase-orchestration"})
"""Kinds that say that a phase was begun, and nothing of its work."""
_FIRST_AGENTS = (Role.CRITIC, *(name_in(Role.ARCHITECT, row.name) for row in WORKING))
"""Agents of a phase that the previous one's handoff is for."""


def lifecycles_of(
    root: str, phases: Phases, history_index: HistoryIndex, reads: Iterable[Read], deadline_s: int
) -> tuple[HandoffLifecycle, ...]:
    """Return the lifecycles of the handoffs of open phases, and of those into them."""
    if not any(phase.facts.has_any(_DELIVERING) for phase in phases):
        return ()
    known = _Known(root, history_index, tuple(reads))
    complete = {phase.id for phase in phases if phase.is_complete}
    open_ = [phase.facts for phase in phases if not phase.is_complete]
    deliveries: list[DeliveredHandoff] = []
    for one in [phase.facts for phase in phases]:
        deliveries += known.into_next(one, complete)
    for one in open_:
        deliveries += [*known.between_departments(one), *known.designs(one), *known.contracts(one)]
    receivers = {one.receiver for one in deliveries}
    signs: list[ReceiverSign] = []
    for one in [phase.facts for phase in phases]:
        signs += known.of_next(one, receivers)
    for one in open_:
        signs += [*known.of_departments(one, receivers), *known.answers(one)]
    return lifecycles(deliveries, signs, deadline_s)


class _Known:
    """What there is to derive stages from."""

    def __init__(self, root: str, history_index: HistoryIndex, reads: tuple[Read, ...]):
        self._root = root
        self._reads = reads
        self._history_index = history_index
        self._listed: dict[str, frozenset[str]] = {}
        self._touched: dict[str, dict[str, list[PathChange]]] = {}

    def _touches(self, place: Place) -> list[tuple[Moment, str]]:
        """Return (moment, commit) of each commit of ours that changed an artifact, oldest first."""
        if place.folder not in self._touched:
            self._touched[place.folder] = self._history_index.touches(place.folder)
        found = self._touched[place.folder].get(place.path, ())
        return [(Moment(change.at_s, change.height), change.oid) for change in found]

    def into_next(self, facts: PhaseFacts, complete: set[PhaseId]) -> Iterator[DeliveredHandoff]:
        for filed in facts.of_kind("phase-handoff"):
            for line in filed.lines[:1]:
                receiver = self._next(filed, line)
                if filed.place.phase == facts.phase and PhaseId.parse(receiver) not in complete:
                    yield self._delivery(filed, 0, str(facts.phase), receiver, line.get("dt"))

    def between_departments(self, facts: PhaseFacts) -> Iterator[DeliveredHandoff]:
        for filed, number, line in _numbered(facts, "dept-handoff"):
            receiver = _in_phase(facts, line["to_dept"])
            yield self._delivery(filed, number, line["from_dept"], receiver, line.get("dt"))

    def designs(self, facts: PhaseFacts) -> Iterator[DeliveredHandoff]:
        for filed in facts.of_kind("design-handoff"):
            maker = filed.place.artifact.made_by
            for dept in facts.switches.departments:
                if maker and dept is not maker:
                    yield self._delivery(filed, 0, maker, _in_phase(facts, dept.value), None)

    def contracts(self, facts: PhaseFacts) -> Iterator[DeliveredHandoff]:
        for filed, number, line in _in_force(facts):
            sender, _, receiver = str(line.get("direction", "frontend_to_backend")).partition(
                "_to_"
            )
            first, *_ = self._touches(filed.place) or [(Moment(0, 0), filed.commit)]
            yield DeliveredHandoff(
                filed.place.path,
                number,
                sender,
                _in_phase(facts, receiver),
                first[0],
                first[1],
                needs_answer=True,
            )

    def _delivery(
        self, filed: Filed, number: int, sender: str, receiver: str, written: object
    ) -> DeliveredHandoff:
        """Return the delivery by the first commit that can hold what was written at that moment."""
        touches = self._touches(filed.place) or [(Moment(0, 0), filed.commit)]
        since = _seconds(written)
        later = [touch for touch in touches if since is not None and touch[0].at_s >= since]
        moment, commit = later[0] if later else touches[-1]
        return DeliveredHandoff(filed.place.path, number, sender, receiver, moment, commit)

    def _next(self, filed: Filed, line: Mapping[str, Any]) -> str:
        """Return the directory of the phase that a handoff leads to, or how it will begin."""
        number = str(line.get("to_phase"))
        found = [
            name
            for name in names_in(os.path.join(self._root, _phases(filed.place)))
            if _numbered_so(name, number)
        ]
        return found[0] if found else f"phase {number}"

    def of_next(self, facts: PhaseFacts, receivers: Collection[str]) -> Iterator[ReceiverSign]:
        """Yield what shows that a phase has taken in the handoff of the one before it."""
        receiver = str(facts.phase)
        if receiver not in receivers:
            return
        for place, moment, commit in self._artifacts(facts):
            kind = place.artifact.kind
            stage = HandoffStage.ACKNOWLEDGED if kind in _STATES else HandoffStage.ACTED_UPON
            if kind != "phase-handoff":
                yield ReceiverSign(receiver, stage, moment, commit)
        yield from self._of_agents(facts, receiver, _FIRST_AGENTS)

    def of_departments(
        self, facts: PhaseFacts, receivers: Collection[str]
    ) -> Iterator[ReceiverSign]:
        for row in WORKING:
            receiver = _in_phase(facts, row.name.value)
            if receiver not in receivers:
                continue
            for place, moment, commit in self._artifacts(facts):
                if "{dept}" in place.artifact.file and place.department == row.name.value:
                    yield ReceiverSign(receiver, HandoffStage.ACTED_UPON, moment, commit)
            yield from self._of_agents(facts, receiver, row.agents)
            status = f".dept-status-{row.name.value}.json"
            if status not in self._names(_folder(facts)):
                continue
            status = f"{_folder(facts)}/{status}"
            said = read_json(os.path.join(self._root, status))
            began = _seconds(said.get("started_at")) if isinstance(said, dict) else None
            if began is not None:
                yield ReceiverSign(receiver, HandoffStage.ACKNOWLEDGED, Moment(began), status)

    def answers(self, facts: PhaseFacts) -> Iterator[ReceiverSign]:
        """Yield what contracts say of themselves."""
        stages = {"agreed": HandoffStage.ACKNOWLEDGED, "implemented": HandoffStage.ACTED_UPON}
        for filed, number, line in _in_force(facts):
            touches = self._touches(filed.place)
            if touches and (stage := stages.get(str(line.get("status")))):
                moment, commit = touches[-1]
                yield ReceiverSign("", stage, moment, commit, about=f"{filed.place.path}:{number}")

    def _of_agents(
        self, facts: PhaseFacts, receiver: str, agents: Sequence[str]
    ) -> Iterator[ReceiverSign]:
        """Yield when an agent's context was compiled, and its own handoff read."""
        names = self._names(_folder(facts))
        for agent in agents:
            if f".ctx-{agent}.toon" not in names:
                continue
            context = f"{_folder(facts)}/.ctx-{agent}.toon"
            stamp = stamp_of(self._root, context)
            if not isinstance(stamp, Finding):
                yield ReceiverSign(
                    receiver, HandoffStage.READ, Moment(stamp.mtime_ns // 10**9), context
                )
        for read in self._reads:
            if read.agent.removeprefix("yolo-") in agents and read.phase in (
                str(facts.phase),
                facts.phase.number,
            ):
                yield ReceiverSign(
                    receiver,
                    HandoffStage.READ,
                    Moment(int(read.at.timestamp())),
                    "context_health.log",
                )

    def _names(self, folder: str) -> frozenset[str]:
        """Return what lies in a folder of a phase; most of what could be there is not."""
        if folder not in self._listed:
            self._listed[folder] = frozenset(names_in(os.path.join(self._root, folder)))
        return self._listed[folder]

    def _artifacts(self, facts: PhaseFacts) -> Iterator[tuple[Place, Moment, str]]:
        for filed in facts.filed:
            if filed.place.phase == facts.phase:
                for moment, commit in self._touches(filed.place):
                    yield filed.place, moment, commit


def _numbered(facts: PhaseFacts, kind: str) -> Iterator[tuple[Filed, int, Mapping[str, Any]]]:
    for filed in facts.of_kind(kind):
        yield from ((filed, number, line) for number, line in enumerate(filed.lines, 1))


def _in_force(facts: PhaseFacts) -> Iterator[tuple[Filed, int, Mapping[str, Any]]]:
    """Yield contracts; a later line about the same replaces an earlier one."""
    latest = {frozenset(names_of(one[2])): one for one in _numbered(facts, "api-contracts")}
    yield from latest.values()


def _in_phase(facts: PhaseFacts, department: str) -> str:
    return f"{department} of {facts.phase}"


def _folder(facts: PhaseFacts) -> str:
    places = (filed.place for filed in facts.filed if filed.place.phase == facts.phase)
    return next(f"{_phases(place)}/{facts.phase}" for place in places)


def _phases(place: Place) -> str:
    """Return the directory of phases that a place of a phase lies below."""
    return place.path.partition("/phases/")[0] + "/phases"


def _numbered_so(name: str, number: str) -> bool:
    phase = PhaseId.parse(name)
    return phase is not None and phase.number == number


def _seconds(written: object) -> int | None:
    found = moments.moment(written)
    return int(found.timestamp()) if found else None
