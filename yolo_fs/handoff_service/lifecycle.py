"""Collects evidence about handoffs from files and commits: when each came, what followed."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.core import timestamps as moments
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Finding
from yolo_fs.evidence.facts import CommittedArtifact, PhaseFacts
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
"""First agents of a phase, which receive the previous phase's handoff."""


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
    for facts in [phase.facts for phase in phases]:
        deliveries += known.into_next(facts, complete)
    for facts in open_:
        deliveries += [
            *known.between_departments(facts),
            *known.designs(facts),
            *known.contracts(facts),
        ]
    receivers = {delivery.receiver for delivery in deliveries}
    signs: list[ReceiverSign] = []
    for facts in [phase.facts for phase in phases]:
        signs += known.of_next(facts, receivers)
    for facts in open_:
        signs += [*known.of_departments(facts, receivers), *known.answers(facts)]
    return lifecycles(deliveries, signs, deadline_s)


class _Known:
    """The data from which stages are derived."""

    def __init__(self, root: str, history_index: HistoryIndex, reads: tuple[Read, ...]):
        self._root = root
        self._reads = reads
        self._history_index = history_index
        self._listed: dict[str, frozenset[str]] = {}
        self._touched: dict[str, dict[str, list[PathChange]]] = {}

    def _commits_of(self, place: ArtifactPath) -> list[tuple[Moment, str]]:
        """Return (moment, commit) of each commit of ours that changed an artifact, oldest first."""
        if place.folder not in self._touched:
            self._touched[place.folder] = self._history_index.touches(place.folder)
        changes = self._touched[place.folder].get(place.path, ())
        return [(Moment(change.at_s, change.position), change.oid) for change in changes]

    def into_next(self, facts: PhaseFacts, complete: set[PhaseId]) -> Iterator[DeliveredHandoff]:
        for artifact in facts.of_kind("phase-handoff"):
            for line in artifact.lines[:1]:
                receiver = self._next(artifact, line)
                if artifact.place.phase == facts.phase and PhaseId.parse(receiver) not in complete:
                    yield self._delivery(artifact, 0, str(facts.phase), receiver, line.get("dt"))

    def between_departments(self, facts: PhaseFacts) -> Iterator[DeliveredHandoff]:
        for committed, number, line in _lines_of_kind(facts, "dept-handoff"):
            receiver = _name_department(facts, line["to_dept"])
            yield self._delivery(committed, number, line["from_dept"], receiver, line.get("dt"))

    def designs(self, facts: PhaseFacts) -> Iterator[DeliveredHandoff]:
        for artifact in facts.of_kind("design-handoff"):
            maker = artifact.place.artifact.made_by
            for dept in facts.options.departments:
                if maker and dept is not maker:
                    yield self._delivery(
                        artifact, 0, maker, _name_department(facts, dept.value), None
                    )

    def contracts(self, facts: PhaseFacts) -> Iterator[DeliveredHandoff]:
        for committed, number, line in _contracts_in_force(facts):
            sender, _, receiver = str(line.get("direction", "frontend_to_backend")).partition(
                "_to_"
            )
            first, *_ = self._commits_of(committed.place) or [(Moment(0, 0), committed.commit)]
            yield DeliveredHandoff(
                committed.place.path,
                number,
                sender,
                _name_department(facts, receiver),
                first[0],
                first[1],
                needs_answer=True,
            )

    def _delivery(
        self, artifact: CommittedArtifact, number: int, sender: str, receiver: str, written: object
    ) -> DeliveredHandoff:
        """Return the delivery, by the first commit of the file that can hold the handoff.

        That is the first one at or after the time in the handoff; if there is none, the last commit
        of the file.
        """
        touches = self._commits_of(artifact.place) or [(Moment(0, 0), artifact.commit)]
        since = _seconds(written)
        later = [touch for touch in touches if since is not None and touch[0].at_s >= since]
        moment, commit = later[0] if later else touches[-1]
        return DeliveredHandoff(artifact.place.path, number, sender, receiver, moment, commit)

    def _next(self, artifact: CommittedArtifact, line: Mapping[str, Any]) -> str:
        """Return the directory of the phase that a handoff leads to, or `phase N` while there is
        none.
        """
        number = str(line.get("to_phase"))
        names = [
            name
            for name in names_in(os.path.join(self._root, _phases(artifact.place)))
            if _has_phase_number(name, number)
        ]
        return names[0] if names else f"phase {number}"

    def of_next(self, facts: PhaseFacts, receivers: Collection[str]) -> Iterator[ReceiverSign]:
        """Yield the signs that a phase has received the handoff of the one before it."""
        receiver = str(facts.phase)
        if receiver not in receivers:
            return
        for place, moment, commit in self._artifacts(facts):
            kind = place.artifact.kind
            stage = HandoffStage.ACKNOWLEDGED if kind in _STATES else HandoffStage.ACTED_UPON
            if kind != "phase-handoff":
                yield ReceiverSign(receiver, stage, moment, commit)
        yield from self._signs_of_agents(facts, receiver, _FIRST_AGENTS)

    def of_departments(
        self, facts: PhaseFacts, receivers: Collection[str]
    ) -> Iterator[ReceiverSign]:
        for row in WORKING:
            receiver = _name_department(facts, row.name.value)
            if receiver not in receivers:
                continue
            for place, moment, commit in self._artifacts(facts):
                if "{dept}" in place.artifact.file and place.department == row.name.value:
                    yield ReceiverSign(receiver, HandoffStage.ACTED_UPON, moment, commit)
            yield from self._signs_of_agents(facts, receiver, row.agents)
            status = f".dept-status-{row.name.value}.json"
            if status not in self._names(_folder(facts)):
                continue
            status = f"{_folder(facts)}/{status}"
            content = read_json(os.path.join(self._root, status))
            began = _seconds(content.get("started_at")) if isinstance(content, dict) else None
            if began is not None:
                yield ReceiverSign(receiver, HandoffStage.ACKNOWLEDGED, Moment(began), status)

    def answers(self, facts: PhaseFacts) -> Iterator[ReceiverSign]:
        """Yield the answers stated in contracts."""
        stages = {"agreed": HandoffStage.ACKNOWLEDGED, "implemented": HandoffStage.ACTED_UPON}
        for committed, number, line in _contracts_in_force(facts):
            touches = self._commits_of(committed.place)
            if touches and (stage := stages.get(str(line.get("status")))):
                moment, commit = touches[-1]
                yield ReceiverSign(
                    "", stage, moment, commit, about=f"{committed.place.path}:{number}"
                )

    def _signs_of_agents(
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
        """Return the names in a folder of a phase: most of the possible files do not exist."""
        if folder not in self._listed:
            self._listed[folder] = frozenset(names_in(os.path.join(self._root, folder)))
        return self._listed[folder]

    def _artifacts(self, facts: PhaseFacts) -> Iterator[tuple[ArtifactPath, Moment, str]]:
        for artifact in facts.committed:
            if artifact.place.phase == facts.phase:
                for moment, commit in self._commits_of(artifact.place):
                    yield artifact.place, moment, commit


def _lines_of_kind(
    facts: PhaseFacts, kind: str
) -> Iterator[tuple[CommittedArtifact, int, Mapping[str, Any]]]:
    for artifact in facts.of_kind(kind):
        yield from ((artifact, number, line) for number, line in enumerate(artifact.lines, 1))


def _contracts_in_force(
    facts: PhaseFacts,
) -> Iterator[tuple[CommittedArtifact, int, Mapping[str, Any]]]:
    """Yield the contracts in force; a later line on the same subject replaces an earlier one."""
    latest = {
        frozenset(names_of(contract[2])): contract
        for contract in _lines_of_kind(facts, "api-contracts")
    }
    yield from latest.values()


def _name_department(facts: PhaseFacts, department: str) -> str:
    return f"{department} of {facts.phase}"


def _folder(facts: PhaseFacts) -> str:
    places = (artifact.place for artifact in facts.committed if artifact.place.phase == facts.phase)
    return next(f"{_phases(place)}/{facts.phase}" for place in places)


def _phases(place: ArtifactPath) -> str:
    """Return the directory of phases above a place."""
    return place.path.partition("/phases/")[0] + "/phases"


def _has_phase_number(name: str, number: str) -> bool:
    phase = PhaseId.parse(name)
    return phase is not None and phase.number == number


def _seconds(written: object) -> int | None:
    moment = moments.moment(written)
    return int(moment.timestamp()) if moment else None
