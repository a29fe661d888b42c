"""How a commit of artifacts changes a state file.

This is computed before the commit is made, so that the commit includes the file.
"""

from __future__ import annotations

from typing import NamedTuple

from yolo_fs.artifacts.classify import PROJECT_STATE
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.git.repository import Repository
from yolo_fs.workspace.settings import Settings


def tracked_state(repository: Repository, settings: Settings, tip: str | None) -> str | None:
    """Return the blob of the state file that commits may have to include.

    None where the branch has none, and where each of its transitions is a commit of its own anyway.
    """
    is_kept = settings.policy.state_files == "kept"
    return repository.blob_at(tip, PROJECT_STATE) if is_kept else None


class FreshArtifact(NamedTuple):
    """An artifact that is about to be committed."""

    place: ArtifactPath
    data: bytes
    blob: str


class StateMove(NamedTuple):
    """A state file that the commit of an artifact includes."""

    path: str
    before: bytes
    after: bytes
