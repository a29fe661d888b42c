"""The gates of a phase: open or closed now, and why. `gate_wait` runs this as a process of its own.

See docs/dev/faults.md#f58.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from yolo_fs.core.ids import PhaseId
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Reason, YoloError, hint_for_unknown, safe
from yolo_fs.evidence.facts import Switches
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.phase.gate_status import GateStatus
from yolo_fs.phase.phase import Phase, not_begun
from yolo_fs.phase.progress import DepartmentStatus
from yolo_fs.progress.departments import shown
from yolo_fs.progress.drift import drift_of_phase
from yolo_fs.progress.gate_wait import GateLook, read_notice
from yolo_fs.progress.state_files import forged_sentinels
from yolo_fs.progress.workflow import spelled_or_at_work
from yolo_fs.protocol.gates import GATE_TIMEOUT_MINUTES, INTEGRATION
from yolo_fs.states.project import Drift
from yolo_fs.system.files import stamp_at
from yolo_fs.system.store import Damaged, ListedFolder, read_json
from yolo_fs.workspace.own_files import lock_path, notice_path
from yolo_fs.workspace.planning_tree import phase_folder
from yolo_fs.workspace.settings import CONFIG, Settings, load, user_config_path


class Gates(NamedTuple):
    """The gates of one phase, and the files that contradict them."""

    phase: Phase
    forged: tuple[str, ...]
    """Sentinel files that the evidence does not prove, and status files that cannot be read."""
    drift: tuple[Drift, ...]
    """What status files on disk say and the evidence does not."""

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


def gates_at(
    repository: Repository, facts_reader: FactsReader, phase: PhaseId, commit: str | None
) -> Gates:
    """Return the gates of a phase as of a commit; all closed while nothing is committed."""
    present = facts_reader.phases(commit)
    empty = not_begun(phase, present, Switches(load(repository.root).config))
    known_phase = next((candidate for candidate in present if candidate.id == phase), empty)
    folder = ListedFolder.at(phase_folder(repository.root, phase))
    forged = (*forged_sentinels(folder, known_phase, facts_reader), *_damaged(folder, known_phase))
    return Gates(known_phase, forged, tuple(drift_of_phase(folder, known_phase, shown(folder))))


def _damaged(folder: ListedFolder, phase: Phase) -> Iterator[str]:
    """Yield the status files that hold no JSON object, or are links, pipes or directories."""
    for status in phase.progress.departments:
        name = f".dept-status-{status.department}.json"
        if isinstance(folder.read_json(name), Damaged):
            yield name


def look(start: str, spelled: str, names: Sequence[str]) -> GateLook:
    """Look at gates for a waiter. The files that may change the answer are noted first."""
    with Repository(start) as repository:
        stamps = {path: stamp_at(path) for path in _sources(repository)}
        notice = read_notice(notice_path(repository))
        settings = load(repository.root)
        facts_reader, commit = FactsReader(repository, settings), repository.head().tip
        phase = spelled_or_at_work(repository, settings, facts_reader, spelled)
        gates = gates_at(repository, facts_reader, phase, commit)
        return GateLook(
            phase=str(phase),
            gates=[to_json(gates.named(name)) for name in names],
            departments=[_department(status) for status in gates.phase.progress.departments],
            commit=commit or "",
            stamps=stamps,
            notice=notice.id,
            notices=notice_path(repository),
            lock=lock_path(repository),
            timeout_s=_choose_timeout_s(repository.root, settings, phase, names),
        )


def _sources(repository: Repository) -> Iterator[str]:
    """Yield the files of which one changes whenever gates may: branch and configuration."""
    yield f"{repository.git_dir}/HEAD"
    if ref := repository.head().ref:
        yield f"{repository.common_dir}/{ref}"
    yield f"{repository.common_dir}/packed-refs"
    yield f"{repository.common_dir}/reftable/tables.list"
    yield os.path.join(repository.root, CONFIG)
    yield user_config_path()


def _department(progress: DepartmentStatus) -> dict[str, Any]:
    current = progress.current
    return {
        "department": progress.department.value,
        "complete": progress.is_complete,
        "step": current.step.key if current else "",
        "missing": list(current.missing) if current else [],
        "blockers": list(progress.blockers),
    }


def _choose_timeout_s(root: str, settings: Settings, phase: PhaseId, names: Sequence[str]) -> float:
    """Return the default timeout of these gates in seconds: the longest one counts."""
    orchestration = read_json(os.path.join(phase_folder(root, phase), ".phase-orchestration.json"))
    minutes = orchestration.get("timeout_minutes") if isinstance(orchestration, dict) else None
    others_s = 60.0 * (minutes if type(minutes) is int and minutes > 0 else GATE_TIMEOUT_MINUTES)
    integration_s = float(settings.config.integration_gate.timeout_seconds)
    return max(integration_s if name == INTEGRATION else others_s for name in names)


def _main(start: str, phase: str, *names: str) -> int:
    """Print a look, or why it failed, for the waiting process."""
    try:
        print(json.dumps(look(start, phase, names)._asdict()))
    except YoloError as error:
        failure = {
            "reason": error.reason,
            "message": error.message,
            "hint": error.hint,
            "exit": error.exit_code,
        }
        print(json.dumps(failure))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
