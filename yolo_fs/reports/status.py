"""Where everything stands, computed afresh from files and git; a running daemon is only asked for
its health.

Every candidate is in exactly one of committed, pending, held, rejected.
"""

from __future__ import annotations

import contextlib
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from yolo_fs.artifacts.classify import phase_folder_of
from yolo_fs.artifacts.decide import describe, reason_and_findings
from yolo_fs.artifacts.misnamed import misnamed
from yolo_fs.artifacts.uncommitted import command_for
from yolo_fs.artifacts.verdicts import (
    Accepted,
    CandidateState,
    Committed,
    Held,
    Ignored,
    Missing,
    Rejected,
    Verdict,
    Waiting,
)
from yolo_fs.checking.autofix import AutofixedFile, autofixed
from yolo_fs.checking.verify_command import VerifyRun, verification_of
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Finding, Reason
from yolo_fs.daemon.health import DaemonHealth, health
from yolo_fs.evidence.facts import PhaseFacts
from yolo_fs.evidence.judged import paths_of_verdicts
from yolo_fs.git.repository import Head, Repository, StagedEntry
from yolo_fs.history.index import HistoryIndex, IndexedCommit
from yolo_fs.kept.selection import KeptEntry
from yolo_fs.kept.service import KeptStore
from yolo_fs.scanning.cached_verdicts import CachedVerdict
from yolo_fs.scanning.scanner import Scanner, misnamed_in
from yolo_fs.system.files import Content, read
from yolo_fs.workspace.settings import Settings

LAST_COMMITS = 10


_STANDING_OF = {
    Committed: CandidateState.COMMITTED,
    Missing: CandidateState.COMMITTED,
    Accepted: CandidateState.PENDING,
    Waiting: CandidateState.PENDING,
    Held: CandidateState.HELD,
    Rejected: CandidateState.REJECTED,
}


class Candidate(NamedTuple):
    """One artifact on disk or on the branch."""

    path: str
    verdict: Verdict

    @property
    def standing(self) -> CandidateState:
        """Where it stands."""
        return _STANDING_OF[type(self.verdict)]

    @property
    def is_committed(self) -> bool:
        """Whether nothing is to be done about it."""
        return self.standing is CandidateState.COMMITTED

    @property
    def phase(self) -> str:
        """The phase directory that it lies in; empty outside of one."""
        return phase_folder_of(self.path)

    def as_json(self) -> dict[str, Any]:
        """Return the candidate as `status --json` shows it."""
        return {"path": self.path, "standing": self.standing.value, **describe(self.verdict)}


class CandidateList(NamedTuple):
    """Every candidate, and the derived values that each look needs."""

    all: tuple[Candidate, ...]
    unsettled: tuple[Candidate, ...]
    """Those that are not committed."""
    by_phase: Mapping[str, Counter[CandidateState]]

    @classmethod
    def of(cls, candidates: tuple[Candidate, ...]) -> CandidateList:
        """Return the list of some candidates, computed in one pass."""
        by_phase: dict[str, Counter[CandidateState]] = {}
        for candidate in candidates:
            by_phase.setdefault(candidate.phase, Counter())[candidate.standing] += 1
        unsettled = tuple(candidate for candidate in candidates if not candidate.is_committed)
        return cls(candidates, unsettled, by_phase)


@dataclass(frozen=True, slots=True)
class Report:
    """The state of one work tree at one moment."""

    root: str
    head: Head
    obstacle: Reason | None
    health: DaemonHealth
    listing: CandidateList
    kept: tuple[KeptEntry, ...] = ()
    """Contents that the branch does not have."""
    autofixed: tuple[AutofixedFile, ...] = ()
    """Files that still are as the daemon repaired them."""
    verification: VerifyRun | None = None
    """How the user's own check of the sources of HEAD ended; None where there is none."""
    misnamed: tuple[Finding, ...] = ()
    """Files whose names almost match an artifact's."""
    last: tuple[IndexedCommit, ...] = ()
    """The latest coordination commits, newest first; empty when the history was not read."""
    warnings: Mapping[str, int] = field(default_factory=dict)
    """Committed artifact → number of its warnings; empty when the history was not read."""
    is_cut_off: bool = False
    """Whether the clone is shallow: what is older than it is not known, nor its order."""
    is_partial: bool = False
    """Whether the clone leaves contents or trees of former commits out."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Every candidate."""
        return self.listing.all

    @property
    def counts(self) -> Counter[CandidateState]:
        """Number of candidates in each state."""
        return sum(self.listing.by_phase.values(), Counter())

    @property
    def deleted(self) -> tuple[str, ...]:
        """Paths of artifacts that the branch has and a person took out of the work tree."""
        return tuple(each.path for each in self.candidates if isinstance(each.verdict, Missing))

    def with_standing(self, *standings: CandidateState) -> tuple[Candidate, ...]:
        """Return the uncommitted candidates in these states."""
        return tuple(
            candidate for candidate in self.listing.unsettled if candidate.standing in standings
        )

    def only(self, phase: str) -> Report:
        """Return the report about one phase directory and what lies in none."""

        def is_wanted(path: str) -> bool:
            return phase_folder_of(path) in ("", phase)

        return replace(
            self,
            listing=CandidateList.of(
                tuple(each for each in self.candidates if is_wanted(each.path))
            ),
            autofixed=tuple(each for each in self.autofixed if is_wanted(each.path)),
            misnamed=tuple(each for each in self.misnamed if is_wanted(each.path)),
            warnings={path: count for path, count in self.warnings.items() if is_wanted(path)},
        )

    def as_json(self, whole: str | None = None) -> dict[str, Any]:
        """Return the report as the data of `status --json`.

        `whole`: name of the one phase whose committed artifacts are listed, beside those of the
        planning root.
        """
        listed_here, counts = self.candidates, self.counts
        if whole is not None:
            wanted = ("", whole)
            listed_here = tuple(
                candidate
                for candidate in listed_here
                if candidate.phase in wanted or not candidate.is_committed
            )
        return {
            "root": self.root,
            "branch": self.head.branch,
            "head": self.head.tip,
            "obstacle": self.obstacle.value if self.obstacle else None,
            "shallow": self.is_cut_off,
            "partial": self.is_partial,
            "daemon": to_json(self.health),
            "counts": {standing.value: counts[standing] for standing in CandidateState},
            "candidates": [candidate.as_json() for candidate in listed_here],
            "last_commits": listed(self.last),
            "warnings": {"artifacts": len(self.warnings), "findings": sum(self.warnings.values())},
            "kept": {
                "entries": len(self.kept),
                "bytes": sum(entry.size_bytes for entry in self.kept),
                "dropped": self.kept[-1].dropped if self.kept else 0,
            },
            "autofixed": to_json(self.autofixed),
            "verification": self.verification._asdict() if self.verification else None,
        }


def report(repository: Repository, settings: Settings) -> Report:
    """Look at everything once and return what was found. Changes nothing."""
    with contextlib.closing(Reporter(repository, settings)) as reporter:
        return reporter.look()


class Reporter:
    """Looks at everything repeatedly, and reads only what may have changed."""

    def __init__(self, repository: Repository, settings: Settings):
        self._repository = repository
        self._settings = settings
        self._scanner = Scanner(repository, settings)
        self._keeper = KeptStore(repository)

    def look(self) -> Report:
        """Return what is found. Changes nothing."""
        scan = self._scanner.scan_all(misnamed)
        head, obstacle, looks, _ = scan
        entries = tuple(self._repository.staged(*self._settings.roots))
        nothing = (None, None, CandidateList.of(()))
        before, staged_before, listing = _SHOWN[-1] if _SHOWN else nothing
        if looks is not before or entries != staged_before:
            listing = CandidateList.of(tuple(_list_candidates(looks, entries)))
            _SHOWN[:] = [(looks, entries, listing)]
        health_now, kept = health(self._repository), self._keeper.entries()
        root = self._repository.root
        near = misnamed_in(root, self._settings, scan)
        repaired: tuple[AutofixedFile, ...] = ()
        if self._settings.policy.autofix == "safe":
            verdicts = {candidate.path: candidate.verdict for candidate in listing.all}
            repaired = autofixed(self._repository, verdicts)
        verification = verification_of(self._repository, self._settings, head.tip)
        is_cut_off, is_partial = bool(self._repository.cut_off()), self._repository.is_partial
        return Report(
            root, head, obstacle, health_now, listing, kept, repaired, verification, near,
            is_cut_off=is_cut_off, is_partial=is_partial,
        )  # fmt: skip

    def close(self) -> None:
        """End the helper processes."""
        self._scanner.close()


_SHOWN: list[tuple[object, object, CandidateList]] = []
"""At most one entry: the looks and the index that were shown last, with the result. A process that
is forked from here mostly finds both unchanged."""


def unsettled_among(
    repository: Repository, settings: Settings, paths: Collection[str]
) -> Sequence[Candidate]:
    """Return those of some artifacts that differ from the branch. Only where a file does is the
    whole tree looked at.
    """
    most_bytes, tip = settings.policy.max_file_bytes, repository.head().tip
    hash_object = repository.object_format.hash_object

    def is_there_and_differs(path: str) -> bool:
        content = read(repository.root, path, most_bytes)
        if isinstance(content, Content):
            return hash_object("blob", content.data).oid != repository.blob_at(tip, path)
        return content.reason is not Reason.FILE_MISSING

    if not any(map(is_there_and_differs, paths)):
        return ()
    return [each for each in report(repository, settings).listing.unsettled if each.path in paths]


def verdicts_not_committed(
    repository: Repository, settings: Settings, facts: PhaseFacts
) -> tuple[str, ...]:
    """Return the verdicts on a phase that were written and are not on the branch, each with why and
    the command that shows it. What the branch has moved past says nothing new.
    """
    found = unsettled_among(repository, settings, paths_of_verdicts(facts))
    told = ((each, reason_and_findings(each.verdict)[0]) for each in found)
    return tuple(
        f"{each.path} is not on the branch, whatever it says ({each.standing}: {reason.value}): "
        f"'{_command_about(each, reason)}' shows why"
        for each, reason in told
        if reason is not Reason.OLDER_THAN_BRANCH
    )


def _command_about(candidate: Candidate, reason: Reason) -> str:
    if candidate.standing is CandidateState.HELD:
        return command_for(reason, candidate.path)
    return f"yolo-fs validate {shlex.quote(candidate.path)}"


def _list_candidates(
    looks: Mapping[str, CachedVerdict], entries: Iterable[StagedEntry]
) -> Iterator[Candidate]:
    staged = {entry.path: entry.oid for entry in entries if not entry.is_conflicted}
    for path, look in looks.items():
        if not isinstance(look.seen.verdict, Ignored):
            yield Candidate(path, _note_staged_version(look.seen.verdict, staged.get(path)))


def _note_staged_version(verdict: Verdict, staged: str | None) -> Verdict:
    """Return the verdict, with a note where the user has staged another version (F22)."""
    if isinstance(verdict, Committed) and staged not in (None, verdict.blob):
        return Committed(verdict.blob, Reason.INDEX_DIVERGED)
    return verdict


def listed(commits: Iterable[IndexedCommit]) -> list[dict[str, Any]]:
    """Return commits as `status --json` shows them."""
    return [{"commit": commit.oid, "subject": commit.subject} for commit in commits]


def last_commits(history_index: HistoryIndex) -> tuple[IndexedCommit, ...]:
    """Return the latest coordination commits of a history, newest first."""
    return history_index.last_of_ours(LAST_COMMITS)
