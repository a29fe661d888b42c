"""What `status` reports of one moment, present or past. The command and the page share it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from yolo_fs.agents.snapshot import AgentsObserver, AgentsSnapshot
from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.uncommitted import is_listed
from yolo_fs.checking.verify import past_hooks
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Finding, Level, Reason, YoloError, safe
from yolo_fs.daemon.health import health
from yolo_fs.escalation_service.moves import Escalations
from yolo_fs.git.repository import Repository
from yolo_fs.handoff_service.reading import total_compliance
from yolo_fs.handoffs.reading import Compliance
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.history.index import IndexedCommit
from yolo_fs.install.doctor import OF_A_PERSON, standing_troubles
from yolo_fs.progress.board import Board, board
from yolo_fs.progress.drift import WorkTreeNotes, as_json, notes_of_work_tree
from yolo_fs.reports.status import Report, Reporter, last_commits, listed
from yolo_fs.snapshots.inbox import InboxItem, inbox
from yolo_fs.system.files import walk
from yolo_fs.team.overview import TeamObserver
from yolo_fs.team.reconcile import TeamOverview
from yolo_fs.workspace.own_files import COMPANY_RUNS
from yolo_fs.workspace.settings import Settings, load

_Seen = TypeVar("_Seen")


@dataclass(frozen=True, slots=True)
class PresentSnapshot:
    """Where everything stands now."""

    report: Report
    team: Board | None
    """None when the history cannot be read."""
    beside: tuple[WorkTreeNotes, ...] = ()
    crew: AgentsSnapshot | None = None
    """None when the history cannot be read."""
    findings: tuple[Finding, ...] = ()
    machines: TeamOverview | None = None
    """None where this work tree is in no team of several."""
    compliance: Compliance | None = None
    """How many handoffs came as handoff.json; None where none was read."""
    inbox: tuple[InboxItem, ...] = ()
    """What waits for a person, the most urgent first."""
    health: tuple[Finding, ...] = ()
    """Problems of yolo_fs itself, and how to fix them."""

    def as_json(self, whole: str | None = None) -> dict[str, Any]:
        """Return the moment as the data of `status --json`.

        `whole`: the one phase shown with its committed artifacts, not only as a headline; see
        `Board.phase_named`.
        """
        if whole is not None and self.team:
            whole = self.team.phase_named(whole)
        team = {"team": self.team.as_json(whole) if self.team else None}
        crew = {"crew": self.crew.as_json() if self.crew else None}
        machines = {"machines": to_json(self.machines)}
        handoffs = {"handoff_json": to_json(self.compliance)}
        report = self.report.as_json(whole)
        waiting: dict[str, Any] = {"inbox": to_json(self.inbox)}
        waiting["health"] = [finding.as_json() for finding in self.health]
        return waiting | team | as_json(self.beside) | crew | machines | handoffs | report


@dataclass(frozen=True, slots=True)
class PastSnapshot:
    """Where the team stood at a commit, from history alone."""

    team: Board
    last: tuple[IndexedCommit, ...]

    def as_json(self, whole: str | None = None) -> dict[str, Any]:
        """Return the moment as the data of `status --at REV --json`. `whole`: as above."""
        return {"team": self.team.as_json(whole), "last_commits": listed(self.last)}


class StatusObserver:
    """Observes the present repeatedly, and caches what never changes."""

    def __init__(self, repository: Repository):
        self._repository = repository
        self._facts_reader: FactsReader | None = None
        self._machines: TeamObserver | None = None
        self._reporter: Reporter | None = None

    def look(self) -> PresentSnapshot:
        """Return where everything stands.

        Raises:
            YoloError: BAD_CONFIG, GIT_FAILED.
        """
        repository, settings = self._repository, load(self._repository.root)
        if (
            self._facts_reader is None
            or self._machines is None
            or self._reporter is None
            or settings != self._facts_reader.settings
        ):
            self.close()
            self._facts_reader = FactsReader(repository, settings)
            self._machines = TeamObserver(repository, settings)
            self._reporter = Reporter(repository, settings)
        repository.evict_caches()
        history, observer, report = self._facts_reader, self._machines, self._reporter.look()
        standing = tuple(standing_troubles(repository, OF_A_PERSON))
        escalations = Escalations(repository, settings)
        try:
            team = board(history, report.head.tip)
        except YoloError as error:  # a clone without its trees has artifacts on disk all the same
            wrong = replace(error.as_finding(), level=Level.WARNING)
            waiting = inbox(report, None, None, escalations, standing)
            wrong_too = (*standing, wrong)
            return PresentSnapshot(report, None, findings=wrong_too, inbox=waiting, health=standing)
        if report.head.tip:
            index = history.history_index
            warnings = history.derive_from(index.tip, "warnings", index.warnings)
            report = replace(report, last=last_commits(index), warnings=warnings)
        verdicts = {candidate.path: candidate.verdict for candidate in report.listing.unsettled}
        crew = AgentsObserver(repository, settings, history).look(verdicts, team.commit)
        unseen: list[Finding] = []
        obstacle, none, unwarned = (
            report.obstacle,
            tuple[WorkTreeNotes, ...](),
            tuple[Finding, ...](),
        )
        machines = _tried(lambda: observer.look(obstacle), None, unseen)
        beside = _tried(lambda: notes_of_work_tree(team, history), none, unseen)
        of_hooks = _tried(
            lambda: tuple(_warn_of_bypassed_hooks(repository, settings)), unwarned, unseen
        )
        read = _tried(lambda: total_compliance(repository.root, settings.limits), None, unseen)
        unread = (replace(finding, level=Level.WARNING) for finding in crew.findings)
        names = (replace(finding, level=Level.WARNING) for finding in report.misnamed)
        unlisted = (finding for finding in standing if not is_listed(verdicts, finding.path))
        findings = (*unlisted, *of_hooks, *unread, *names, *dict.fromkeys(unseen))
        runs = COMPANY_RUNS.read(repository)
        known = runs["runs"] if isinstance(runs, dict) else ()
        waiting = inbox(report, team, machines, escalations, standing, known)
        health_now = (*standing, *of_hooks)
        return PresentSnapshot(
            report, team, beside, crew, findings, machines, read, waiting, health_now
        )

    def close(self) -> None:
        """End the helper processes."""
        if self._facts_reader:
            self._facts_reader.keep()
        if self._reporter:
            self._reporter.close()


def _tried(look: Callable[[], _Seen], otherwise: _Seen, unseen: list[Finding]) -> _Seen:
    """Return what `look` returns. A failing look hides only its own part."""
    try:
        return look()
    except YoloError as error:
        unseen.append(replace(error.as_finding(), level=Level.WARNING))
        return otherwise


def snapshot_at(
    repository: Repository, commit: str, facts_reader: FactsReader | None = None
) -> PastSnapshot:
    """Return where the team stood at a commit. `facts_reader`: cache of earlier reads.

    Raises:
        YoloError: OBJECT_MISSING, GIT_FAILED when the history cannot be read.
    """
    gathered = facts_reader or FactsReader(repository, load(repository.root))
    return PastSnapshot(board(gathered, commit), last_commits(gathered.history_index))


def find_commit(repository: Repository, revision: str) -> str:
    """Return the one commit that a revision names.

    Raises:
        YoloError: UNKNOWN_COMMIT.
    """
    commit = repository.tip(f"{revision}^{{commit}}") if "\0" not in revision else None
    if commit is None or not commit.isalnum():  # git says yes to a range, too
        hint = "Give a commit, a branch, a tag, or a time such as 'main@{2 days ago}'."
        raise YoloError(Reason.UNKNOWN_COMMIT, f"no commit is called {safe(revision)!r}", hint=hint)
    return commit


def stamp(repository: Repository) -> object:
    """Return a value that differs once HEAD, the planning tree or the daemon has changed."""
    files = tuple(walk(repository.root, PLANNING_ROOT))
    return repository.head(), files, to_json(health(repository))


def _warn_of_bypassed_hooks(repository: Repository, settings: Settings) -> Iterator[Finding]:
    """Yield one warning for each commit that bypassed the git hooks."""
    first = {fault.commit: fault for fault in reversed(list(past_hooks(repository, settings)))}
    for fault in first.values():
        yield replace(fault.finding_with_commit, level=Level.WARNING)
