"""Where a version of the team was made: proved, or not claimed."""

from __future__ import annotations

import re

from yolo_fs.core.reasons import YoloError
from yolo_fs.git.repository import Repository

_ORIGIN = re.compile(r"(?P<clone>[a-z0-9][a-z0-9-]{0,80})/(?P<commit>[0-9a-f]{40}|[0-9a-f]{64})")


def clone_in(named: str) -> str:
    """Return the clone that an origin names; empty where it is none."""
    match = _ORIGIN.fullmatch(named)
    return match["clone"] if match else ""


def is_proved(repository: Repository, named: str, path: str, blob: str | None) -> bool:
    """Return whether an origin, `CLONE/COMMIT`, names a commit that is here and has that version.

    Whoever pushes writes the name, so it counts only where the commit confirms it.
    """
    match = _ORIGIN.fullmatch(named)
    if match is None or blob is None:
        return False
    try:
        return repository.blob_at(match["commit"], path) == blob
    except YoloError:
        return False
