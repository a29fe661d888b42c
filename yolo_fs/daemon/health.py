"""Health of the daemon of a work tree: its own report in one file, and the proof of its lock; and
how a process becomes that daemon.

See docs/dev/faults.md#f13, #f40, #f41 and #f46.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from yolo_fs import __version__
from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.verdicts import Held, Rejected, Verdict
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Exit, Finding, Level, Reason, YoloError
from yolo_fs.daemon.duties import Trouble
from yolo_fs.git.repository import Repository
from yolo_fs.schemas.config import Policy
from yolo_fs.system.lock import HeldLock, hold, holder
from yolo_fs.system.store import write_json
from yolo_fs.system.system import NETWORK_FILESYSTEMS, Degraded, boot_id, filesystem_type
from yolo_fs.workspace.own_files import HEALTH, lock_path, refuse_unsafe
from yolo_fs.workspace.settings import not_initialised

_SCAN_S = 10.0
"""Seconds that a scan may take before the daemon counts as stalled."""


def acquire(start: str, *, unsafe_fs: bool = False) -> tuple[Repository, HeldLock]:
    """Become the one daemon of the work tree that `start` lies in.

    Raises:
        YoloError: ALREADY_RUNNING with the holder's pid, NOT_INITIALISED, NOT_REGULAR,
            UNSAFE_REPOSITORY, NETWORK_FILESYSTEM unless `unsafe_fs`, and whatever finding the
            repository raises.
    """
    probe = Repository(start)
    refuse_unsafe(probe)
    if not unsafe_fs:
        _refuse_network(probe)
    if not os.path.isdir(os.path.join(probe.root, PLANNING_ROOT)):
        raise not_initialised(probe.root)
    if os.path.islink(os.path.join(probe.root, PLANNING_ROOT)):
        raise YoloError(
            Reason.NOT_REGULAR,
            f"{PLANNING_ROOT} is a symbolic link, which is not followed",
            hint="Replace it with a real folder.",
        )
    probe.make_own_dir()
    lock = hold(lock_path(probe))
    if lock is None:
        other = holder(lock_path(probe))
        raise YoloError(
            Reason.ALREADY_RUNNING,
            f"the daemon is process {other.pid if other else 'unknown'}",
            exit_code=Exit.DONE,
        )
    probe.close()
    held = Repository(start, keep_open=(lock.fd,))
    held.make_own_dir()
    return held, lock


def _refuse_network(repository: Repository) -> None:
    """Refuse a file system whose locks and leases are unreliable (F46)."""
    type_ = filesystem_type(repository.git_dir)
    if type_ in NETWORK_FILESYSTEMS:
        hint = "Work on a local clone, or accept the risk with --unsafe-fs."
        raise YoloError(Reason.NETWORK_FILESYSTEM, f"the repository is on {type_}", hint=hint)


@dataclass(frozen=True, slots=True)
class DaemonHealth:
    """Health of the daemon of this work tree."""

    pid: int | None
    """None if none is running."""
    scanned_s_ago: float | None = None
    degraded: Degraded | None = None
    troubles: tuple[Trouble, ...] = ()
    """What fails and is retried automatically."""
    stuck: tuple[Finding, ...] = ()
    """Why files are not committed that have waited for longer than a rescan."""
    is_outdated: bool = False
    """Whether another version of yolo_fs started it than the one that asks."""
    is_killed: bool = False
    """Whether none is running since the last one was killed: nobody has ended it."""

    @property
    def is_running(self) -> bool:
        """Whether a daemon runs."""
        return self.pid is not None

    JSON_KEYS: ClassVar = {
        "running": "is_running",
        "pid": "pid",
        "degraded": "degraded",
        "troubles": "troubles",
    }
    """Without the values that change all the time."""


def write_health(
    repository: Repository,
    verdicts: Iterable[Verdict],
    degraded: Degraded | None,
    troubles: Iterable[Trouble],
    summary: str,
    standing: Iterable[str] = (),
    stuck: Iterable[Finding] = (),
    waiting: Mapping[str, Any] = {},
    *,
    late_s: float = 0.0,
    running: bool,
) -> None:
    """Write this daemon's health. A full disk prevents only the report.

    `standing`: reasons of the lasting troubles that only somebody else can resolve. `stuck`: why
    files have not been committed for long. `waiting`: what waits for a person. `late_s`:
    seconds without a scan after which it counts as stalled.
    """
    judged = tuple(verdicts)
    report: dict[str, Any] = {
        "pid": os.getpid(),
        "running": running,
        "version": __version__,
        "headline": summary,
        "last_scan_at": time.time(),
        "awake_s": time.monotonic(),
        "boot": boot_id(),
        "late_s": late_s,
        "standing": list(standing),
        "stuck": [finding.as_json() for finding in stuck],
        "waiting": dict(waiting),
        "degraded": to_json(degraded),
        "troubles": to_json(list(troubles)),
        "held": sum(isinstance(verdict, Held) for verdict in judged),
        "rejected": sum(isinstance(verdict, Rejected) for verdict in judged),
    }
    with contextlib.suppress(OSError, YoloError):
        write_json(HEALTH.path(repository), report, durable=False)


def health(repository: Repository) -> DaemonHealth:
    """Return the health of the daemon of this work tree.

    The lock is authoritative and the file only adds details: malformed parts are ignored. See
    docs/dev/faults.md#f41.
    """
    held_by = holder(lock_path(repository))
    report = HEALTH.read(repository)
    if held_by is None:
        is_killed = isinstance(report, dict) and report.get("running") is True
        return DaemonHealth(None, is_killed=is_killed)
    if not isinstance(report, dict) or report.get("pid") != held_by.pid:
        return DaemonHealth(held_by.pid)
    return DaemonHealth(
        held_by.pid,
        _scan_age_of(report),
        _degraded(report),
        _troubles(report),
        tuple(_stuck(report)),
        is_outdated=report.get("version") != __version__,
    )


def late_s(policy: Policy) -> float:
    """Return the seconds without a scan after which a daemon counts as stalled."""
    return 2 * policy.rescan_s + _SCAN_S


def _scan_age_of(report: Mapping[str, Any]) -> float | None:
    """Return the seconds since the last scan, without the time that this machine slept."""
    at, awake_s = report.get("last_scan_at"), report.get("awake_s")
    if isinstance(awake_s, int | float) and report.get("boot") == boot_id() != "":
        return max(0.0, time.monotonic() - awake_s)
    return max(0.0, time.time() - at) if isinstance(at, int | float) else None


def _degraded(report: Mapping[str, Any]) -> Degraded | None:
    match report.get("degraded"):
        case {"reason": str(reason), "detail": str(detail), "hint": str(hint)} if (
            reason in _REASONS
        ):
            return Degraded(Reason.of(reason), detail, hint)
    return None


def _troubles(report: Mapping[str, Any]) -> tuple[Trouble, ...]:
    listed = report.get("troubles")
    return tuple(read_troubles(listed)) if isinstance(listed, list) else ()


def _stuck(report: Mapping[str, Any]) -> Iterable[Finding]:
    """Yield the findings in the report, without malformed ones."""
    listed = report.get("stuck")
    for each in listed if isinstance(listed, list) else ():
        match each:
            case {
                "reason": str(reason),
                "path": str(),
                "line": int(),
                "at": str(),
                "message": str(),
                "expected": str(),
                "hint": str(),
                "command": str(),
                "level": Level.WARNING.value,
            } if reason in _REASONS:
                yield Finding.from_json(each)


def read_troubles(listed: Iterable[Any]) -> Iterable[Trouble]:
    """Yield the troubles in a list, without malformed ones."""
    for each in listed:
        match each:
            case {"duty": str(duty), "reason": str(reason), "what": str(what)} if (
                reason in _REASONS
            ):
                yield Trouble(duty, Reason.of(reason), what)


_REASONS = frozenset(reason.value for reason in Reason)
