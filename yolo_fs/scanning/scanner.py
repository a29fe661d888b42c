"""From a path to its verdict: classify, read, compare, validate, and apply git's rules.

The last look at every candidate is cached.

Changes nothing. The daemon, `status` and `resume` all look at candidates this way.
"""

from __future__ import annotations

import contextlib
import os
import time
import traceback
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple, Self

from yolo_fs.artifacts.classify import (
    PLANNING_ROOT,
    classify,
    is_beside_its_artifact,
    is_document,
    misnamed,
    place_meant_by,
    plans_named,
    with_phase,
)
from yolo_fs.artifacts.decide import EventSink
from yolo_fs.artifacts.examine import needs_of
from yolo_fs.artifacts.handoff_names import HANDOFF_FOLDER
from yolo_fs.artifacts.naming import subject_of, trailers_of
from yolo_fs.artifacts.table import HIDDEN, IGNORED_STATES, STATE_KINDS
from yolo_fs.artifacts.verdicts import (
    Accepted,
    ArtifactPath,
    Committed,
    Held,
    Ignored,
    Missing,
    Rejected,
    Verdict,
    Waiting,
)
from yolo_fs.checking.checker import Checker, previous_records
from yolo_fs.checking.lost_records import lost_from
from yolo_fs.checking.snapshots import WorkTree
from yolo_fs.core.reasons import Finding, Reason, YoloError, errors
from yolo_fs.git.obstacles import Obstacles, PathRules
from yolo_fs.git.repository import Head, Repository
from yolo_fs.scanning.unwritten import Unwritten
from yolo_fs.states.project import says_ours
from yolo_fs.system import failpoint
from yolo_fs.system.files import (
    Content,
    FileEntry,
    FolderReader,
    ScanCache,
    Stamp,
    Wanted,
    Writer,
    names_in,
    never,
    read,
)
from yolo_fs.workspace.own_files import lock_path
from yolo_fs.workspace.planning_tree import phases_in
from yolo_fs.workspace.settings import Settings


def obstacles_of(repository: Repository, settings: Settings) -> Obstacles:
    """Return how to find what stands in the way of any commit of ours."""
    policy = settings.policy
    return Obstacles(
        repository,
        protected=policy.protected,
        allow_detached=policy.allow_detached,
        committer_lock=lock_path(repository),
        folders=settings.roots,
    )


class Refusal(NamedTuple):
    """A settled content that cannot be committed, or cannot be committed now."""

    path: str
    data: bytes
    verdict: Rejected | Held


RefusalSink = Callable[[Refusal], object]


class Pipeline:
    """Judges paths of one work tree."""

    def __init__(
        self,
        repository: Repository,
        settings: Settings,
        refused: RefusalSink = lambda _refusal: None,
    ):
        """Judge by these settings. `refused` receives every content that is rejected or held."""
        self._repository = repository
        self._settings = settings
        self._refused = refused
        self._keeps_beside = settings.policy.state_files == "kept"
        hidden = HIDDEN if self._keeps_beside else (*HIDDEN, *IGNORED_STATES)
        self._rules = PathRules(
            repository, commit_ignored=settings.policy.commit_ignored, hidden=hidden
        )
        self._quiet_timer = QuietTimer()
        self._asked: tuple[str, ...] = ()
        """Paths of this round, until git's rules on them are needed."""
        self._checker = Checker(settings)
        self._work_tree = WorkTree(
            repository.root, settings.policy.max_file_bytes, repository.commits_may_exist
        )

    def look(self, path: str, head: Head, obstacle: Reason | None) -> Observation:
        """Return the verdict on a path.

        `obstacle`: why nothing may be committed now, if so. The file is examined all the same, so
        that its writer learns of faults at once.
        """
        place = classify(path)
        if place is None:
            return Observation(Ignored())
        in_head = self._repository.blob_at(head.tip, path)
        content = read(self._repository.root, path, self._settings.policy.max_file_bytes)
        if isinstance(content, Finding):
            if content.reason is Reason.FILE_MISSING:
                self._quiet_timer.forget(path)
            return Observation(_verdict_on_unread(content, in_head))
        verdict = self._judge(place, content, head, in_head, obstacle)
        if isinstance(verdict, Rejected | Held):
            self._refused(Refusal(path, content.data, verdict))
        return Observation(verdict, content.stamp)

    def look_misnamed(self, wrong: Finding) -> Observation:
        """Return the verdict on a file with nearly an artifact's name, as `wrong` says.

        It has what would be wrong under that name as well: one turn mends both. A document is not
        what its artifact would have.
        """
        path = wrong.path
        meant = place_meant_by(wrong)
        content = read(self._repository.root, path, self._settings.policy.max_file_bytes)
        if isinstance(content, Finding):
            is_gone = content.reason is Reason.FILE_MISSING
            return Observation(Ignored() if is_gone else Rejected((wrong, content)))
        faults = self._checker.find_secrets(path, content.data)
        if meant and not content.being_written:
            checked = self._checker.check(meant, content.data, self._work_tree)
            errors_and_secrets = (*errors(checked.faults), *checked.secrets)
            faults = tuple(replace(each, path=path) for each in errors_and_secrets)
        return Observation(Rejected((wrong, *faults)), content.stamp)

    def prepare(self, paths: Iterable[str]) -> None:
        """Name the paths of a round. Git is asked about all of them at once, when one is needed."""
        self._asked = tuple(paths)

    def close(self) -> None:
        """End the helper processes."""
        self._rules.close()

    def _judge(
        self,
        place: ArtifactPath,
        content: Content,
        head: Head,
        in_head: str | None,
        obstacle: Reason | None,
    ) -> Verdict:
        blob = self._repository.objects.object_format.hash_object("blob", content.data).oid
        if blob == in_head:
            return Committed(blob)
        if in_head is None and self._is_kept_beside(place, content.data):
            return Ignored()
        quiet_s = self._quiet_timer.quiet_s(place.path, content.stamp)
        if content.being_written:
            return Waiting(Reason.BEING_WRITTEN)
        checked = self._checker.check(place, content.data, self._work_tree)
        if checked.torn and quiet_s < self._settings.policy.grace_s:
            return Waiting(Reason.UNTERMINATED)
        wrong = errors(checked.faults)
        provably_complete = content.writer is Writer.NONE and not wrong
        if not provably_complete and quiet_s * 1000 < self._settings.policy.settle_ms:
            return Waiting(Reason.SETTLING)
        if wrong and all(finding.reason is Reason.WAITS_FOR for finding in wrong):
            return Held(Reason.WAITS_FOR, checked.findings)
        if wrong:
            return Rejected(checked.findings)
        if checked.secrets:
            return Held(Reason.SECRET, checked.secrets)
        if reason := self._find_reason_to_hold(place.path, head, in_head, obstacle):
            is_local = reason is Reason.GITIGNORED and not place.path.startswith(PLANNING_ROOT)
            return Ignored() if is_local else Held(reason)
        if lost := lost_from(self._repository, place, content.data, in_head, head.tip):
            is_lost = lost[0].reason is Reason.RECORDS_LOST
            return Held(Reason.RECORDS_LOST, lost) if is_lost else Rejected(lost)
        before = previous_records(self._repository, place, in_head)
        subject = subject_of(place, checked.records, before)
        failpoint.reach("intake.judged")
        trailers = trailers_of(place, len(checked.faults))
        needs = needs_of(place, checked.records)
        return Accepted(place, content.data, blob, subject, trailers, checked.faults, needs)

    def _is_kept_beside(self, place: ArtifactPath, data: bytes) -> bool:
        """Return whether a file is ours, and follows from the branch without being on it. What
        others wrote is their work, unless git ignores it.
        """
        is_state = place.artifact.kind in STATE_KINDS
        if not is_state or not self._keeps_beside:
            return False
        return says_ours(data) or self._rules.reason_to_hold(place.path, in_head=False) is (
            Reason.GITIGNORED
        )

    def _find_reason_to_hold(
        self, path: str, head: Head, in_head: str | None, obstacle: Reason | None
    ) -> Reason | None:
        if not self._settings.config.auto_commit:
            return Reason.AUTO_COMMIT_OFF
        if obstacle:
            return obstacle
        if in_head is None and self._repository.submodule_above(head.tip, path):
            return Reason.FOREIGN_REPOSITORY
        paths, self._asked = self._asked, ()
        if paths:
            with contextlib.suppress(YoloError):  # what it refuses is asked again one by one
                self._rules.learn([path for path in paths if classify(path)])
        return self._rules.reason_to_hold(path, in_head=in_head is not None)


def _verdict_on_unread(why: Finding, in_head: str | None) -> Verdict:
    """Return the verdict on a file whose content could not be read."""
    if why.reason is Reason.FILE_MISSING:
        return Missing() if in_head else Ignored()
    return Waiting(why.reason) if why.reason is Reason.BEING_WRITTEN else Rejected((why,))


def _is_name_of_file(path: str) -> bool:
    return classify(path) is not None or misnamed(path) is not None


def misnamed_files(repository: Repository, settings: Settings) -> tuple[Finding, ...]:
    """Return a finding for each file whose name almost matches an artifact's."""
    with Scanner(repository, settings) as scanner:
        scan = scanner.scan_all(misnamed)
    return misnamed_in(repository.root, settings, scan)


def misnamed_in(root: str, settings: Settings, scan: Scan) -> tuple[Finding, ...]:
    """Return the same of a scan, which was asked for `misnamed` files beside the candidates."""
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
            entry for root in self._roots for entry in self._scan_cache.walk(root, _is_name_of_file)
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


class Observation(NamedTuple):
    """One look at one path."""

    verdict: Verdict
    stamp: Stamp | None = None
    """Stamp of the file when it was read; None when it was not read."""


class CachedVerdict(NamedTuple):
    """What the last check of a path found."""

    seen: Observation
    read_at_ns: int
    """Wall clock time, for comparison with file times."""

    def still_holds(self, stamp: Stamp | None) -> bool:
        """Return whether the file is certainly unchanged since."""
        return stamp is not None and self.seen.stamp == stamp and not stamp.is_racy(self.read_at_ns)


class Candidates(NamedTuple):
    """Every path that may be an artifact."""

    stamps: Mapping[str, Stamp | None]
    """Path → stamp of the file on disk; None where only the branch has it."""
    blobs: Mapping[str, str]
    """Path → blob on the branch, of candidates and of other files."""
    others: Sequence[FileEntry]
    """Files that were requested beside the candidates."""

    def still_hold(self, path: str, look: CachedVerdict) -> bool:
        """Return whether the file, and the branch of a committed one, are unchanged since a look.

        A user may move the branch alone.
        """
        verdict = look.seen.verdict
        is_there = not isinstance(verdict, Committed) or self.blobs.get(path) == verdict.blob
        return is_there and look.still_holds(self.stamps.get(path))


class VerdictStore:
    """The last verdict of each candidate.

    What is not committed is kept separately. Each turn needs only that, so that thousands of
    committed artifacts cost a turn nothing.
    """

    def __init__(self) -> None:
        self.cached: dict[str, CachedVerdict] = {}
        """Path → the last look."""
        self.unsettled: dict[str, Verdict] = {}
        """Path → verdict of the last look, for what is not committed."""

    def remember(self, path: str, cached: CachedVerdict) -> None:
        """Remember a look; a path that is not a candidate is forgotten."""
        verdict = cached.seen.verdict
        if isinstance(verdict, Ignored):
            self.forget(path)
            return
        self.cached[path] = cached
        if isinstance(verdict, Committed):
            self.unsettled.pop(path, None)
        else:
            self.unsettled[path] = verdict

    def forget(self, path: str) -> None:
        """Forget a path that is no longer a candidate."""
        self.cached.pop(path, None)
        self.unsettled.pop(path, None)

    def verdict(self, path: str) -> Verdict | None:
        """Return the verdict of the last look; None if there was none."""
        cached = self.cached.get(path)
        return cached.seen.verdict if cached else None

    def changed(self, candidates: Candidates) -> tuple[str, ...]:
        """Return the paths that have to be checked again."""
        return tuple(
            path
            for path in candidates.stamps
            if path not in self.cached or not candidates.still_hold(path, self.cached[path])
        )


class QuietTimer:
    """Tracks how long each path has had its present content.

    Measured per path, never globally, so that no stream of writes delays another file. See
    docs/dev/faults.md#f14, #f15 and #f19.
    """

    def __init__(self) -> None:
        self._since: dict[str, tuple[Stamp, float]] = {}
        """Path → (its content, monotonic time in seconds at which that was first there)."""

    def quiet_s(self, path: str, stamp: Stamp) -> float:
        """Return for how many seconds the content has not changed."""
        now = time.monotonic()
        known, since = self._since.get(path, (None, now))
        if known is None:
            # The best estimate for a new file is its own age. A time in the future counts as now.
            since = now - max(0.0, time.time() - stamp.mtime_ns / 1e9)
        elif known != stamp:
            since = now
        self._since[path] = (stamp, since)
        return now - since

    def forget(self, path: str) -> None:
        """Forget a path that is gone."""
        self._since.pop(path, None)
