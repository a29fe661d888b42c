"""What the operator has overridden: one handoff, on one branch, in spite of faults that were known.

Other bytes, another branch or a further fault is not covered. Kept in `.git/yolo-fs/`, never in the
work tree.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.store import Damaged, private_directory, read_json, update
from yolo_fs.json_form import to_json
from yolo_fs.reasons import Finding
from yolo_fs.rules.timestamps import iso

MOST = 1_000
"""Overrides that are remembered; the oldest go first."""


@dataclass(frozen=True, slots=True)
class Override:
    """One decision of the operator."""

    path: str
    """The packet's file, or `-`."""
    digest: str
    """SHA-256 of its bytes."""
    branch: str
    """Branch that was checked out."""
    faults: tuple[str, ...]
    """`reason at pointer` of each error that was overridden."""
    because: str
    """The operator's words."""
    by: str
    """Their name and mail, as git knows them."""
    at: str
    """When, in UTC."""

    def covers(self, digest: str, branch: str, wrong: Sequence[Finding]) -> bool:
        """Tell whether the operator has seen all of this."""
        return (self.digest, self.branch) == (digest, branch) and set(_faults(wrong)) <= set(
            self.faults
        )


def find_override(
    repository: Repository, data: bytes, branch: str, wrong: Sequence[Finding]
) -> Override | None:
    """Return the youngest override of exactly these bytes that covers everything that is wrong with them."""
    kept = _kept(read_json(_path(repository)))
    digest = _digest(data)
    return next((one for one in reversed(kept) if one.covers(digest, branch, wrong)), None)


def record_override(
    repository: Repository,
    path: str,
    data: bytes,
    branch: str,
    wrong: Sequence[Finding],
    because: str,
    now: datetime,
) -> Override:
    """Remember what the operator decided, and return it.

    Raises:
        YoloError: LOCK_TIMEOUT; NO_SPACE or STORAGE_FAILED.
    """
    at = iso(now.timestamp())
    made = Override(path, _digest(data), branch, _faults(wrong), because, repository.identity(), at)
    private_directory(repository.own_dir)
    place = _path(repository)
    update(place, f"{place}.lock", lambda before: _with(before, made))
    return made


def _path(repository: Repository) -> str:
    return os.path.join(repository.own_dir, "handoff-overrides.json")


def _with(before: dict[str, Any] | Damaged | None, made: Override) -> dict[str, Any]:
    return {"overrides": [to_json(one) for one in (*_kept(before), made)][-MOST:]}


def _kept(value: dict[str, Any] | Damaged | None) -> list[Override]:
    """Return the records that can be read; a damaged file overrides nothing."""
    listed = value.get("overrides") if isinstance(value, dict) else None
    return [one for each in listed if (one := _read(each))] if isinstance(listed, list) else []


def _read(value: object) -> Override | None:
    if not isinstance(value, dict) or not isinstance(value.get("faults"), list):
        return None
    try:
        return Override(**{**value, "faults": tuple(value["faults"])})
    except TypeError:
        return None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _faults(wrong: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(f"{finding.reason.value} at {finding.at or '/'}" for finding in wrong)
    )
