"""The gates of a phase: open or closed now, and why. See docs/dev/faults.md#f58."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Finding, Reason, YoloError, hint_for_unknown, safe
from yolo_fs.evidence.facts import WorkflowOptions
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.phase.gate_status import GateStatus
from yolo_fs.phase.phase import Phase, not_begun
from yolo_fs.progress.cut_off import find_unproved
from yolo_fs.progress.departments import shown
from yolo_fs.progress.drift import drift_of_phase
from yolo_fs.progress.state_files import forged_sentinels
from yolo_fs.states.project import Drift
from yolo_fs.system.store import Damaged, ListedFolder
from yolo_fs.workspace.planning_tree import phase_folder


class Gates(NamedTuple):
    """The gates of one phase, and the files that contradict them."""

    phase: Phase
    forged: tuple[str, ...]
    """Sentinel files that the evidence does not prove, and status files that cannot be read."""
    drift: tuple[Drift, ...]
    """What status files on disk say and the evidence does not."""
    unproved: tuple[Finding, ...] = ()
    """What this clone cannot prove, as warnings."""

    def named(self, name: str) -> GateStatus:
        """Return one gate.

        Raises:
            YoloError: UNKNOWN_NAME; the phase may lack a gate that others have.
        """
        for gate in self.phase.gates:
            if gate.name == name:
                return gate
        hint = hint_for_unknown(name, (gate.name for gate in self.phase.gates))
        raise YoloError(Reason.UNKNOWN_NAME, f"no gate {safe(name)!r}", hint=hint)


def gates_at(facts_reader: FactsReader, phase: PhaseId, commit: str | None) -> Gates:
    """Return the gates of a phase as of a commit; all closed while nothing is committed."""
    present = facts_reader.phases(commit)
    empty = not_begun(phase, present, WorkflowOptions(facts_reader.settings.config))
    known_phase = next((candidate for candidate in present if candidate.id == phase), empty)
    folder = ListedFolder.at(phase_folder(facts_reader.repository.root, phase))
    forged = (*forged_sentinels(folder, known_phase, facts_reader), *_damaged(folder, known_phase))
    drift = tuple(drift_of_phase(folder, known_phase, shown(folder)))
    return Gates(known_phase, forged, drift, find_unproved(facts_reader.repository, known_phase))


def _damaged(folder: ListedFolder, phase: Phase) -> Iterator[str]:
    """Yield the status files that hold no JSON object, or are links, pipes or directories."""
    for status in phase.progress.departments:
        name = f".dept-status-{status.department}.json"
        if isinstance(folder.read_json(name), Damaged):
            yield name
