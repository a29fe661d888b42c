"""`dept-cleanup`: the reference's door to `services.cleanup`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from yolo_fs.compat.arguments import parse
from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import YoloError, safe
from yolo_fs.services.install.cleanup import REASONS, Cleaned, clean, is_unique_in


def run(arguments: Sequence[str]) -> int:
    given = parse(arguments, valued=("--phase-dir", "--reason"))
    folder, reason = given.need("--phase-dir"), given.choose("--reason", REASONS)
    if not os.path.isdir(folder):
        print(f"WARNING: phase directory not found: {safe(folder, 500)}", file=sys.stderr)
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
    """Clean a phase; outside of a repository no branch could have an artifact, so the allow-list alone decides."""
    try:
        repository = Repository(folder)
    except YoloError:
        return clean(folder, reason, lambda _: False)
    with repository:
        return clean(folder, reason, is_unique_in(repository))
