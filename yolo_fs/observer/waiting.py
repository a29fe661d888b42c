"""What waits for a person, as the daemon tells it: to the status line, and once to the user's own
command. `moments/inbox.py` makes the list.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from yolo_fs.company.overview import now_of, overview
from yolo_fs.core.reasons import Finding, Reason, YoloError, safe
from yolo_fs.daemon.follower import Follower
from yolo_fs.daemon.health import health
from yolo_fs.escalation_service.moves import Escalations
from yolo_fs.git.repository import Repository
from yolo_fs.install.doctor import OF_A_PERSON, standing_troubles
from yolo_fs.progress.board import Board, board
from yolo_fs.reports.status import Candidate, CandidateList, Report
from yolo_fs.scanning.pipeline import obstacles_of
from yolo_fs.snapshots.inbox import COMMAND_LENGTH, TOLD_ELSEWHERE, InboxItem, inbox
from yolo_fs.system.files import stamp_at
from yolo_fs.team.overview import TeamObserver
from yolo_fs.team.reconcile import TeamOverview
from yolo_fs.workspace.own_files import COMPANY_RUNS, STATE

EVERY_S = 3.0
"""Interval of the looks: nobody is asked sooner."""
FIRST_LENGTH = 70
"""Characters of the first question that the status line has room for."""


class InboxWatcher:
    """Looks at what waits for a person in one work tree, and tells of each item once."""

    def __init__(self, repository: Repository, follower: Follower):
        self._repository = repository
        self._follower = follower
        self._settings = follower.settings
        self._machines: TeamObserver | None = None
        self._standing: tuple[Finding, ...] = ()
        self._told_by_daemon: tuple[Finding, ...] = ()
        """Those of them that are in the daemon's own report, and end with it."""
        self._before: frozenset[tuple[str, str]] = frozenset()
        """Kind and id of the items of the last look."""
        self._basis: object = None
        """What the last look was based on."""
        self._again_at = 0.0
        """When to look again although that is the same, on the monotonic clock."""
        self.told: Mapping[str, Any] = {}
        """What the status line says: `count` and `first` of the items, `at_work` of the agents."""

    @property
    def standing(self) -> list[str]:
        """Reasons of the lasting troubles that only somebody else can resolve, and that the daemon
        does not tell itself.
        """
        told = self._told_by_daemon
        return [finding.reason.value for finding in self._standing if finding not in told]

    def look_at_health(self) -> float:
        """Look for lasting troubles, and return the seconds until the next look."""
        self._standing = tuple(standing_troubles(self._repository, OF_A_PERSON))
        self._told_by_daemon = health(self._repository).stuck
        return self._follower.settings.policy.rescan_s

    def look(self) -> float:
        """Look at the inbox where it may be another one, tell of what is new, and return the
        seconds until the next look.
        """
        obstacle = self._find_obstacle()
        basis = self._describe_basis(obstacle)
        if basis == self._basis and time.monotonic() < self._again_at:
            return EVERY_S
        self._basis, self._again_at = (
            basis,
            time.monotonic() + self._follower.settings.policy.rescan_s,
        )
        items = self._items(obstacle)
        shown = [item for item in items if item.kind not in TOLD_ELSEWHERE]
        first = safe(shown[0].question, FIRST_LENGTH) if shown else ""
        self.told = {"count": len(shown), "first": first, "at_work": self._count_at_work()}
        self._follower.notify_once(self._notes(items))
        self._before = frozenset((item.kind, item.id) for item in items)
        return EVERY_S

    def _notes(self, items: Iterable[InboxItem]) -> Iterable[tuple[Mapping[str, Any], bool]]:
        """Yield the note for each item, and whether it is news; escalations are told with more."""
        for item in items:
            if item.kind != "escalation":
                is_news = (item.kind, item.id) not in self._before
                yield _note_of(item, self._repository.root), is_news

    def _find_obstacle(self) -> Reason | None:
        rules = obstacles_of(self._repository, self._follower.settings)
        return rules.find(self._repository.head())

    def _describe_basis(self, obstacle: Reason | None) -> object:
        """Return what the inbox follows from, but for what time alone changes."""
        own = self._repository.own_dir
        runs = [stamp_at(f"{own}/{STATE}{ending}") for ending in ("", "-wal")]
        verdicts = dict(self._follower.verdicts)
        standing, settings = self._standing, self._follower.settings
        return self._repository.head(), obstacle, verdicts, runs, standing, settings

    def _items(self, obstacle: Reason | None) -> Sequence[InboxItem]:
        repository, settings = self._repository, self._follower.settings
        head = repository.head()
        uncommitted = (Candidate(*each) for each in self._follower.verdicts.items())
        listing = CandidateList.of(tuple(uncommitted))
        report = Report(repository.root, head, obstacle, health(repository), listing)
        team: Board | None = None
        machines: TeamOverview | None = None
        with suppress(YoloError):  # as `status`: what cannot be read hides its own items alone
            team = board(self._follower.team, head.tip)
        if self._machines is None or settings != self._settings:
            self._machines, self._settings = TeamObserver(repository, settings), settings
        with suppress(YoloError):
            machines = self._machines.look(obstacle)
        escalations = Escalations(repository, settings)
        kept = COMPANY_RUNS.read(repository)
        runs = kept["runs"] if isinstance(kept, dict) else ()
        return inbox(report, team, machines, escalations, self._standing, runs)

    def _count_at_work(self) -> int:
        with suppress(YoloError):
            return len(now_of(overview(self._repository))["at_work"])
        return 0


def _note_of(item: InboxItem, root: str) -> Mapping[str, Any]:
    """Return the notification for an item; agents' text is escaped, as it may reach a terminal."""
    return {
        "title": safe(f"{item.kind}: {item.question}", 500),
        "event": "inbox",
        "root": root,
        "kind": item.kind,
        "id": safe(item.id, 500),
        "since": item.since,
        "options": [safe(option, 500) for option in item.options],
        "recommendation": safe(item.recommendation, 500),
        "answer_with": safe(item.command, COMMAND_LENGTH),
    }
