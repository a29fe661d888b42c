"""`dept-cleanup`: the reference's door to `services.progress.departments`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from yolo_fs.compat.command_line import parse
from yolo_fs.reasons import Reason, YoloError, safe
from yolo_fs.services.progress.departments import REASONS, Cleaned, clean, is_unique_in

ORCHESTRATION = ".phase-orchestration.json"
USAGE = "dept-cleanup.sh --phase-dir PATH --reason complete|failure|timeout"


def run(arguments: Sequence[str]) -> int:
    given = parse(arguments, USAGE, valued=("--phase-dir", "--reason"))
    folder, reason = given.need("--phase-dir"), given.choose("--reason", REASONS)
    if not os.path.isdir(folder):
        print(f"WARNING: Phase dir does not exist: {safe(folder, 500)}", file=sys.stderr)
        return 0
    cleaned = _cleaned(os.path.realpath(folder), reason)
    for name, why in cleaned.left:
        print(f"WARNING: not removed: {safe(name)}: {safe(why)}", file=sys.stderr)
    if not cleaned.removed:
        print(f"No coordination files to clean up in {safe(folder, 500)}")
        return 0
    print(f"Cleaned up {len(cleaned.removed)} coordination files (reason: {reason}):")
    for name in cleaned.removed:
        print(f"  removed: {safe(name)}")
    return 0


def _cleaned(folder: str, reason: str) -> Cleaned:
    """Clean a phase; outside of a repository no branch could have an artifact, so the allow-list
    alone decides.

    Where git does not work, the one artifact of the list stays.
    """
    try:
        from yolo_fs.edges.git.repository import Repository  # fails where git does not work

        with Repository(folder) as repository:
            is_unique = is_unique_in(repository)
            return clean(folder, reason, is_unique)
    except YoloError as error:
        is_outside = error.reason is Reason.NOT_A_REPOSITORY
    return clean(folder, reason, lambda path: not is_outside and path.endswith(ORCHESTRATION))
