"""Looks at all candidates, and keeps the last look at each.

Changes nothing. The daemon, `status` and `resume` all look at candidates this way.
"""

from __future__ import annotations

import contextlib
import os
import time
import traceback
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple, Self

from yolo_fs.artifacts.classify import classify, plans_named
from yolo_fs.artifacts.decide import EventSink
from yolo_fs.artifacts.handoff_names import HANDOFF_FOLDER
from yolo_fs.artifacts.misnamed import (
    is_beside_its_artifact,
    is_document,
    misnamed,
    with_phase,
)
from yolo_fs.artifacts.verdicts import (
    Accepted,
    Committed,
    Held,
    Rejected,
)
from yolo_fs.core.reasons import Finding, Reason, YoloError
from yolo_fs.git.repository import Head, Repository
from yolo_fs.scanning.cached_verdicts import CachedVerdict, Candidates, Observation
from yolo_fs.scanning.pipeline import Pipeline, RefusalSink, is_name_of_file, obstacles_of
from yolo_fs.scanning.unwritten import Unwritten
from yolo_fs.system.files import (
    FileEntry,
    FolderReader,
    ScanCache,
    Stamp,
    Wanted,
    names_in,
    never,
)
from yolo_fs.workspace.planning_tree import phases_in
from yolo_fs.workspace.settings import Settings


def misnamed_in(root: str, settings: Settings, scan: Scan) -> tuple[Finding, ...]:
    """Return a finding for each file whose name almost matches an artifact's.

    `scan`: was asked for `misnamed` files beside the candidates.
    """
    verdicts = (look.seen.verdict for look in scan.seen.values())
    findings = (each.findings[0] for each in verdicts if isinstance(each, Rejected))
    refused = (each for each in findings if each.reason is Reason.UNKNOWN_NAME)
    return (*refused, *_misnamed_among(root, settings.roots, scan.others))


def _misnamed_among(
    root: str, folders: Collection[str], entries: Iterable[FileEntry]
) -> Iterator[Finding]:
    """Yield the findings about misnamed and misplaced entries of some folders.

    They are about names that almost match an artifact's, and documents of the product workflow,
    which lie beside its handoffs.
    """
    beside: Sequence[FileEntry] = ()
    if HANDOFF_FOLDER in folders:
        with FolderReader(root) as reader:
            beside, _ = reader.read(os.path.dirname(HANDOFF_FOLDER), misnamed)
    for entry in (*beside, *entries):
        if finding := misnamed(entry.path):
            yield finding


class Scan(NamedTuple):
    """Result of one look at some paths."""

    head: Head
    obstacle: Reason | None
    """Why nothing may be committed now."""
    seen: dict[str, CachedVerdict]
    others: Sequence[FileEntry] = ()
    """Files that were requested beside the candidates."""


_HELD: dict[tuple[str, int], tuple[dict[str, CachedVerdict], Candidates | None]] = {}
"""Cache of an observer's worker for its next commands, at most one entry: (work tree, size limit) →
(looks at committed files, all candidates if everything was scanned)."""


class Scanner:
    """Checks paths of one work tree."""

    def __init__(
        self,
        repository: Repository,
        settings: Settings,
        emit: EventSink = lambda *_: None,
        refused: RefusalSink = lambda _refusal: None,
    ):
        """Check paths by these settings. `emit` receives defects, `refused` what is held."""
        self._repository = repository
        self._emit = emit
        self._roots = settings.roots
        self._place = (repository.root, settings.policy.max_file_bytes)
        self._held, self._whole = _HELD.get(self._place, ({}, None))
        """Looks at committed files from the last scan of everything. They are sorted where they
        cover everything."""
        self._pipeline = Pipeline(repository, settings, refused)
        self._scan_cache = ScanCache(repository.root)
        self.unwritten = Unwritten(repository)
        self.obstacles = obstacles_of(repository, settings)
        self.head = repository.head()
        """The branch as it was last seen or left."""

    def candidates(self, beside: Wanted = never) -> Candidates:
        """Return every path that may be an artifact, on disk or on the branch.

        `beside`: selects further files.
        """
        steps = self.find_candidates(beside)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                candidates: Candidates = end.value
                return candidates

    def find_candidates(self, beside: Wanted = never) -> Generator[None, None, Candidates]:
        """Find the same, and yield after each thing found."""
        walked = (
            entry for root in self._roots for entry in self._scan_cache.walk(root, is_name_of_file)
        )
        stamps: dict[str, Stamp | None] = {}
        others, near = [], []
        known = self._whole.stamps if self._whole else {}
        for entry in walked:
            yield
            if entry.path in known or classify(entry.path):
                stamps[entry.path] = entry.stamp
            elif misnamed(entry.path):
                near.append(entry)
            elif beside(entry.path):
                others.append(entry)
        head = self._refresh_head()
        blobs = {}
        for path, blob in self._committed(head.tip):
            blobs[path] = blob
            yield
        near = [each for each in near if not is_beside_its_artifact(each.path, stamps, blobs)]
        # What a person has committed under such a name stays as it is.
        stamps |= {each.path: each.stamp for each in near if each.path not in blobs}
        committed = [each for each in near if each.path in blobs and not is_document(each.path)]
        others += [each for each in committed if beside(each.path)]
        missing = (path for path in blobs if path not in stamps and classify(path))
        return Candidates(stamps | dict.fromkeys(missing), blobs, others)

    def _committed(self, tip: str | None) -> Iterator[tuple[str, str]]:
        """Yield (path, blob) of what a commit has below the artifact folders."""
        # If the branch cannot be read, every path is held individually, with its reason.
        with contextlib.suppress(YoloError):
            for root in self._roots:
                yield from self._repository.files_at(tip, root).items()

    def scan(self, paths: Sequence[str], now_ns: int | None = None) -> Scan:
        """Look at paths; `now_ns` as `Obstacles.find` takes it."""
        head = self._refresh_head()
        obstacle = self.obstacles.find(head, now_ns)
        self._pipeline.prepare(paths)

        @cache
        def look(path: str) -> CachedVerdict:
            return self._hold_unwritten(path, self._look(path, head, obstacle), head)

        seen = {path: look(path) for path in paths}
        while early := self._ahead_of_its_needs(seen, head, look):
            seen |= early
        return Scan(head, obstacle, seen)

    def scan_all(self, beside: Wanted = never) -> Scan:
        """Look at every candidate. Those known to be committed and unchanged are not read again.

        `beside`: selects further files.
        """
        return self._scan_all(self.candidates(beside=beside))

    def _scan_all(self, candidates: Candidates) -> Scan:
        stamps, whole = candidates.stamps, self._whole
        if whole and stamps == whole.stamps and candidates.blobs == whole.blobs:
            return self.scan(())._replace(seen=self._held, others=candidates.others)
        kept = {
            path: look for path, look in self._held.items() if candidates.still_hold(path, look)
        }
        fresh = self.scan(sorted(stamps.keys() - kept.keys()))
        seen = fresh.seen | kept
        self._held = kept | {
            path: look
            for path, look in fresh.seen.items()
            if isinstance(look.seen.verdict, Committed)
            and look.seen.verdict.reason is Reason.UNCHANGED
        }
        in_order = {path: seen[path] for path in sorted(stamps)}
        self._whole = None
        return fresh._replace(seen=in_order, others=candidates.others)

    def hold(self) -> bool:
        """Let later surveys, also of forks, begin with what is committed now.

        Return False while a file is so new that later surveys read it again.
        """
        now = time.time_ns()
        candidates = self.candidates()
        seen, held = self._scan_all(candidates).seen, self._held
        is_all = all(
            path in held and candidates.still_hold(path, held[path]) for path in candidates.stamps
        )
        _HELD.clear()
        _HELD[self._place] = (seen, candidates) if is_all else (held, None)
        return not any(stamp and stamp.is_racy(now) for stamp in candidates.stamps.values())

    def close(self) -> None:
        """End the helper processes that were started here."""
        self._pipeline.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _look(self, path: str, head: Head, obstacle: Reason | None) -> CachedVerdict:
        read_at_ns = time.time_ns()
        try:
            seen = self._misnamed(path, head) or self._pipeline.look(path, head, obstacle)
        except YoloError as error:
            seen = Observation(Held(error.reason, (error.as_finding(),)))
        except Exception as defect:  # a defect of ours must cost one path, not the daemon
            data = {"what": repr(defect), "trace": traceback.format_exc()}
            self._emit("daemon.defect", path, data)
            finding = Finding(Reason.INTERNAL_ERROR, path, message=repr(defect))
            seen = Observation(Held(Reason.INTERNAL_ERROR, (finding,)))
        return CachedVerdict(seen, read_at_ns)

    def _misnamed(self, path: str, head: Head) -> Observation | None:
        """Return the observation of a file whose name almost matches an artifact's."""
        finding = None if classify(path) else misnamed(path)
        if finding is None or self._repository.blob_at(head.tip, path):
            return None
        folder = os.path.dirname(path)
        here = {f"{folder}/{name}" for name in names_in(f"{self._repository.root}/{folder}")}
        if is_beside_its_artifact(path, here, self._repository.files_at(head.tip, folder)):
            return None
        phases = phases_in(self._repository.root)
        return self._pipeline.look_misnamed(with_phase(finding, phases))

    def _refresh_head(self) -> Head:
        head = self._repository.head()
        if head != self.head:
            self.unwritten.forget_branch()
            self.head = head
        return head

    def _ahead_of_its_needs(
        self, seen: Mapping[str, CachedVerdict], head: Head, look: Callable[[str], CachedVerdict]
    ) -> dict[str, CachedVerdict]:
        """Return the plans whose dependency is neither committed nor about to be; they are held.

        The reason why the dependency is held does not matter. A rejected dependency does not block:
        it exists, and its author is told.
        """
        accepted = {
            path: look.seen.verdict
            for path, look in seen.items()
            if isinstance(look.seen.verdict, Accepted)
        }
        plans = (each.place for each in accepted.values() if each.place.artifact.kind == "plan")
        going = {(place.folder, str(place.plan)) for place in plans}
        held: dict[str, CachedVerdict] = {}
        for path, plan in accepted.items():
            folder = plan.place.folder
            missing = [name for name in plan.needs if (folder, name) not in going]
            if missing:
                committed = self._repository.files_at(head.tip, folder)
                there = plans_named(name.rpartition("/")[2] for name in committed)
                there |= self._find_refused_plans(folder, missing, look)
                missing = [name for name in missing if name not in there]
            if missing:
                message = f"waits for plan {missing[0]}, which is not committed"
                hint = "'yolo-fs status' shows why that plan is held."
                why = Finding(
                    Reason.WAITS_FOR, path, 1, "/d", message, "a plan that is committed", hint
                )
                before = seen[path]
                observed = Observation(Held(Reason.WAITS_FOR, (why,)), before.seen.stamp)
                held[path] = CachedVerdict(observed, before.read_at_ns)
        return held

    def _find_refused_plans(
        self, folder: str, among: Sequence[str], look: Callable[[str], CachedVerdict]
    ) -> set[str]:
        names = names_in(os.path.join(self._repository.root, folder))
        places = filter(None, (classify(f"{folder}/{name}") for name in names))
        plans = ((str(place.plan), place.path) for place in places if place.artifact.kind == "plan")
        wanted = ((name, path) for name, path in plans if name in among)
        return {name for name, path in wanted if isinstance(look(path).seen.verdict, Rejected)}

    def _hold_unwritten(self, path: str, look: CachedVerdict, head: Head) -> CachedVerdict:
        """Hold content that is not new: nobody has written it since the branch was moved."""
        verdict, stamp = look.seen
        if stamp is None:
            return look
        if isinstance(verdict, Committed):
            self.unwritten.agrees(path, verdict.blob, stamp)
        if not isinstance(verdict, Accepted):
            return look
        reason = self.unwritten.reason_to_hold(path, verdict.blob, stamp, head)
        if reason is None:
            return look
        return CachedVerdict(Observation(Held(reason), stamp), look.read_at_ns)
