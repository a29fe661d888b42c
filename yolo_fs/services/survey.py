"""Every candidate of a work tree: what lies on disk and what the branch has, each with one verdict.

See docs/faults.md#f61.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from yolo_fs.edges.files import Stamp
from yolo_fs.edges.git.repository import Head, Repository
from yolo_fs.edges.scan_cache import ScanCache
from yolo_fs.reasons import YoloError
from yolo_fs.rules.artifacts.classify import classify
from yolo_fs.services.intake import Seen


def candidates(
    tree: ScanCache, repository: Repository, head: Head, roots: Sequence[str]
) -> dict[str, Stamp | None]:
    """Return every path that may be an artifact, with its stamp on disk (None: only the branch has it)."""
    entries = (entry for root in roots for entry in tree.walk(root))
    on_disk: dict[str, Stamp | None] = {
        entry.path: entry.stamp for entry in entries if classify(entry.path)
    }
    with contextlib.suppress(
        YoloError
    ):  # a branch that cannot be read holds every path, one by one, with its reason
        for path in (path for root in roots for path in repository.files_at(head.tip, root)):
            if path not in on_disk and classify(path):
                on_disk[path] = None
    return on_disk


@dataclass(frozen=True, slots=True)
class Glance:
    """What was known of a path when it was last judged."""

    seen: Seen
    read_at_ns: int
    """Wall clock, to be compared with the times of the file."""

    def still_holds(self, stamp: Stamp | None) -> bool:
        """Tell whether the file cannot have changed since."""
        return stamp is not None and self.seen.stamp == stamp and not stamp.is_racy(self.read_at_ns)


def changed(now: Mapping[str, Stamp | None], known: Mapping[str, Glance]) -> tuple[str, ...]:
    """Return the paths that have to be judged anew."""
    return tuple(
        path
        for path, stamp in now.items()
        if path not in known or not known[path].still_holds(stamp)
    )
