"""How the daemon of a work tree is: what it says of itself in one file, and what its lock proves.

See docs/faults.md#f13 and #f41.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.lock import holder
from yolo_fs.edges.store import read_json, write_json
from yolo_fs.edges.watch import Degraded
from yolo_fs.reasons import YoloError
from yolo_fs.rules.artifacts.verdicts import Held, Rejected, Verdict
from yolo_fs.services.places import health_path, lock_path


@dataclass(frozen=True, slots=True)
class Health:
    """How the daemon of this work tree is."""

    pid: int | None
    """None when none runs."""
    scanned_s_ago: float | None
    degraded: dict[str, Any] | None

    @property
    def is_running(self) -> bool:
        """Whether a daemon runs."""
        return self.pid is not None

    JSON_KEYS: ClassVar = {"running": "is_running", "pid": "pid", "degraded": "degraded"}
    """Without what changes by itself."""


def write_health(
    repository: Repository,
    verdicts: Iterable[Verdict],
    degraded: Degraded | None,
    headline: str,
    *,
    running: bool,
) -> None:
    """Say how this daemon is. A full disk costs the report, never the work."""
    judged = tuple(verdicts)
    said: dict[str, Any] = {
        "pid": os.getpid(),
        "running": running,
        "headline": headline,
        "last_scan_at": time.time(),
        "degraded": {
            "reason": degraded.reason.value,
            "detail": degraded.detail,
            "hint": degraded.hint,
        }
        if degraded
        else None,
        "held": sum(isinstance(one, Held) for one in judged),
        "rejected": sum(isinstance(one, Rejected) for one in judged),
    }
    with contextlib.suppress(OSError, YoloError):
        write_json(health_path(repository), said, durable=False)


def health(repository: Repository) -> Health:
    """Return how the daemon of this work tree is; the lock is the truth, the file only adds to it (F41)."""
    held_by = holder(lock_path(repository))
    if held_by is None:
        return Health(None, None, None)
    said = read_json(health_path(repository))
    if not isinstance(said, dict) or said.get("pid") != held_by.pid:
        return Health(held_by.pid, None, None)
    return Health(
        held_by.pid, max(0.0, time.time() - float(said["last_scan_at"])), said.get("degraded")
    )
