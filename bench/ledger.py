"""What was written, when it was reported, and what git alone says became of it.

The judge reads `git log` and `git fsck`, and never a word of the daemon.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from bench.repositories import BRANCH, git
from bench.rounds import Sample

Content = tuple[str, str]
"""Path, and the id that git gives to what stands there."""


@dataclass(slots=True)
class Ledger:
    """The contents written into one work tree; threads write, one reads what the daemon says."""

    written: dict[Content, float] = field(default_factory=dict)
    """When each content was closed, on the machine's monotonic clock."""
    latencies: Sample = field(default_factory=Sample)
    """From the close to the report, of what the daemon reported before it was killed."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wrote(self, path: str, data: bytes) -> None:
        """Note a content whose file was closed just now."""
        with self._lock:
            self.written[path, blob_of(data)] = time.monotonic()

    def reported(self, path: str, blob: str) -> None:
        """Note that the daemon says it committed a content."""
        now = time.monotonic()
        with self._lock:
            if began := self.written.get((path, blob)):
                self.latencies.times_s.append(now - began)


def blob_of(data: bytes) -> str:
    """Return the name that git gives to a content."""
    return hashlib.sha1(b"blob %d\0%s" % (len(data), data), usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What git says of one work tree."""

    commits: int
    """Contents of artifacts that the branch has since."""
    lost: int
    """Contents that were written and are nowhere on the branch."""
    twice: int
    """Commits of a content that the branch had already."""
    foreign: int
    """Commits of contents that nobody wrote."""
    gone: int
    """Artifacts that the branch has and the work tree has no longer; the branch keeps them."""


def judge(root: str, ledger: Ledger) -> Verdict:
    """Compare the branch of a work tree with what was written there."""
    found = Counter(committed(root))
    lost = len(missing(found, ledger))
    twice = sum(count - 1 for count in found.values() if count > 1)
    foreign = sum(count for one, count in found.items() if one not in ledger.written)
    return Verdict(found.total(), lost, twice, foreign, len(gone_from(root)))


def missing(found: Collection[Content], ledger: Ledger) -> list[Content]:
    """Return the contents that were written and are not among those found, in the order of
    writing.
    """
    there = frozenset(found)
    return [content for content in ledger.written if content not in there]


def gone_from(root: str) -> list[str]:
    """Return the artifacts that the index has and the work tree has not."""
    return git(root, "ls-files", "--deleted", "--", ".yolo-planning/phases").splitlines()


def committed(root: str) -> list[Content]:
    """Return each content of an artifact that a commit since the start put on the branch, oldest
    first.
    """
    shown = git(root, "log", "--reverse", "--raw", "--no-abbrev", "--no-renames", "--format=", f"{START}..HEAD",
                "--", ".yolo-planning/phases")  # fmt: skip
    lines = (line.split("\t") for line in shown.splitlines())
    return [(path, facts.split(" ")[3]) for facts, path in lines]


START = f"{BRANCH}-at-the-start"
"""A tag on the commit at which the load began."""


def faults(root: str) -> list[str]:
    """Return what `git fsck` complains of, and locks that nobody holds any more."""
    said = git(root, "fsck", "--full", "--strict", "--no-dangling", "--no-progress")
    return [line for line in said.splitlines() if line]
