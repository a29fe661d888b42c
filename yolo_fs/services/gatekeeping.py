"""Asks gates: open or closed now, and waits for them to open, with or without a daemon.

Source: cli, `gate`; protocol 3.4; peers, pains 10 and "wait by event".
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

from yolo_fs.edges.files import names_in
from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.store import read_json
from yolo_fs.ids import PhaseId
from yolo_fs.reasons import Exit, Reason, YoloError, safe
from yolo_fs.rules.gates import GateProgress, GateView, gates_of, sentinels_of, sign_off
from yolo_fs.rules.phase import PhaseFacts
from yolo_fs.rules.progress import fold
from yolo_fs.services.places import phase_folder
from yolo_fs.services.settings import Settings
from yolo_fs.services.team import Team

LOOK_EVERY_S = 0.02
"""Between two looks at whether the branch moved: two reads of small files, nothing more."""


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates of one phase, and what the Owner is to decide."""

    phase: PhaseId
    gates: tuple[GateProgress, ...]
    decision: str
    why: str
    forged: tuple[str, ...]
    """Sentinel files on disk that the evidence does not bear out."""

    def named(self, name: str) -> GateProgress:
        """Return one gate.

        Raises:
            YoloError: UNKNOWN_NAME; the phase may lack a gate that others have.
        """
        for gate in self.gates:
            if gate.name == name:
                return gate
        hint = f"This phase has: {', '.join(gate.name for gate in self.gates)}."
        raise YoloError(Reason.UNKNOWN_NAME, f"no gate {safe(name)!r}", hint=hint, exit_code=Exit.USAGE)


def gates_at(repository: Repository, team: Team, phase: PhaseId, commit: str | None) -> Gates:
    """Return the gates of a phase as of a commit."""
    facts = next((facts for facts in team.facts(commit) if facts.phase == phase), None)
    if facts is None:
        raise YoloError(Reason.UNKNOWN_NAME, f"phase {phase} has no committed artifact", exit_code=Exit.FINDINGS)
    progress = fold(facts)
    decision, why = sign_off(GateView(facts, progress))
    return Gates(phase, gates_of(facts, progress), decision.value, why, forged_sentinels(repository.root, facts))


def forged_sentinels(root: str, facts: PhaseFacts) -> tuple[str, ...]:
    """Return the sentinel files that are links, stale, made by hand, or of another phase (F58)."""
    folder = phase_folder(root, facts.phase)
    borne_out = sentinels_of(facts, fold(facts))
    return tuple(
        name
        for name in names_in(folder)
        if name.startswith(".handoff-") and not _is_borne_out(os.path.join(folder, name), borne_out.get(name))
    )


def wait_for_gates(
    repository: Repository, settings: Settings, phase: PhaseId, names: Sequence[str], timeout_s: float
) -> Gates:
    """Wait until all the gates are open and return them; return them as they are when the time is over.

    The branch's tip is what is looked at, so waiting works without a daemon and needs no trust in any file.
    """
    team = Team(repository, settings)
    deadline = time.monotonic() + timeout_s
    seen: str | None = ""
    while True:
        tip = repository.head().tip
        if tip != seen:
            seen = tip
            found = gates_at(repository, team, phase, tip)
            if all(found.named(name).is_open for name in names):
                return found
        if time.monotonic() >= deadline:
            return found
        time.sleep(LOOK_EVERY_S)


def _is_borne_out(path: str, content: str | None) -> bool:
    return content is not None and not os.path.islink(path) and read_json(path) == json.loads(content)
