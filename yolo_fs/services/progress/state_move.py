"""What a commit of artifacts does to a state file: asked before it is made, so that it brings the
file along.
"""

from __future__ import annotations

from typing import NamedTuple

from yolo_fs.rules.artifacts.verdicts import Place


class FreshArtifact(NamedTuple):
    """An artifact that is about to be committed."""

    place: Place
    data: bytes
    blob: str


class StateMove(NamedTuple):
    """A state file that the commit of an artifact brings with it."""

    path: str
    before: bytes
    after: bytes
