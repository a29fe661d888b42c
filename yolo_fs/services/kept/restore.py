"""Writes what was kept back into the work tree, without losing what stands there now."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from yolo_fs.edges.files import Content, read
from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.store import environment, write_atomic
from yolo_fs.reasons import Finding, Reason, YoloError
from yolo_fs.rules.kept import MOST_BYTES, KeptCause, KeptEntry
from yolo_fs.services.kept.keeper import Keeper

_MODE = 0o644


class Restored(NamedTuple):
    """What became of a wish to restore."""

    written: tuple[str, ...]
    kept_first: int | None
    """Number of the entry that has what stood there before; None where nothing had to be kept."""
    findings: tuple[Finding, ...]
    """What could not be written, and why."""


def restore(
    repository: Repository, keeper: Keeper, entry: KeptEntry, target: str | None, start: str
) -> Restored:
    """Write the contents of an entry to where they were, or to `target`, relative to `start`.

    A target of several contents is a folder. Raises as `Keeper.keep`.
    """
    contents = dict(keeper.contents(entry))
    if not contents:
        message = "it looked like a credential, so only its name was kept"
        raise YoloError(Reason.SECRET, message)
    if target is None:
        return _restore_below(repository, keeper, repository.root, contents)
    full = os.path.abspath(os.path.join(start, target))
    if len(contents) == 1 and not os.path.isdir(full):
        contents = {os.path.basename(full): next(iter(contents.values()))}
        full = os.path.dirname(full)
    return _restore_below(repository, keeper, full, contents)


def _restore_below(
    repository: Repository, keeper: Keeper, root: str, contents: Mapping[str, bytes]
) -> Restored:
    findings, endangered, wanted = [], {}, {}
    for path, data in contents.items():
        now = read(root, path, MOST_BYTES)
        if isinstance(now, Finding) and now.reason is not Reason.FILE_MISSING:
            findings.append(now)
            continue
        if isinstance(now, Content) and now.data != data:
            endangered[path] = now.data
        wanted[path] = data
    kept = _keep_first(repository, keeper, root, endangered)
    for path, data in wanted.items():
        full = os.path.join(root, path)
        with environment(full):
            os.makedirs(os.path.dirname(full), exist_ok=True)
        write_atomic(full, data, mode=_MODE)
    return Restored(tuple(wanted), kept, tuple(findings))


def _keep_first(
    repository: Repository, keeper: Keeper, root: str, endangered: Mapping[str, bytes]
) -> int | None:
    """Keep what is about to be replaced and is on no branch; refuse when it cannot be kept."""
    tip = repository.head().tip if root == repository.root else None
    hash_object = repository.object_format.hash_object
    alone = {
        path: data
        for path, data in endangered.items()
        if tip is None or repository.blob_at(tip, path) != hash_object("blob", data).oid
    }
    if not alone:
        return None
    entry = keeper.keep_files(alone, KeptCause(("replaced",), "kept restore"))
    if entry is not None and entry.files < len(alone):
        message = "what stands there now looks like a credential and cannot be kept"
        raise YoloError(Reason.SECRET, message, hint="Give another place with --to.")
    return entry.number if entry else None
