"""Sentinel files of a phase beside the evidence: those made by hand, and our own that are true no
more. See docs/faults.md#f58.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from yolo_fs.edges.files import is_plain_file, names_in
from yolo_fs.edges.store import read_json
from yolo_fs.rules.phase.gates import was_proved
from yolo_fs.rules.phase.phase import Phase
from yolo_fs.services.history.team import Team
from yolo_fs.services.workspace.places import phase_folder


def forged_sentinels(root: str, phase: Phase, team: Team) -> tuple[str, ...]:
    """Return the sentinel files that are links, made by hand, or of another phase (F58)."""
    stale = stale_sentinels(root, phase, team)
    return tuple(name for name in _not_borne_out(root, phase) if name not in stale)


def stale_sentinels(root: str, phase: Phase, team: Team) -> tuple[str, ...]:
    """Return our own sentinel files of which the evidence is no more in force: the daemon takes
    them away.
    """
    folder = phase_folder(root, phase.id)

    def changed_by(name: str) -> frozenset[str]:
        commit = team.history_index.commit(name)
        return commit.files if commit and commit.oid == name else frozenset()

    return tuple(
        name
        for name in _not_borne_out(root, phase)
        if is_plain_file(path := os.path.join(folder, name))
        and was_proved(name, phase.id, read_json(path), changed_by)
    )


def _not_borne_out(root: str, phase: Phase) -> Iterator[str]:
    folder, borne_out = phase_folder(root, phase.id), phase.sentinels
    for name in names_in(folder):
        path, content = os.path.join(folder, name), borne_out.get(name)
        is_true = content is not None and read_json(path) == json.loads(content)
        if name.startswith(".handoff-") and (os.path.islink(path) or not is_true):
            yield name
