"""Gathers what a new session is told, from files and git alone, whether or not a daemon runs.

A part that cannot be read is reported and does not affect the rest: a session must begin even
beside half-written state, a rewritten history or no git at all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TypeVar

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.uncommitted import is_listed
from yolo_fs.artifacts.verdicts import Committed, Ignored, Verdict
from yolo_fs.contexts.store import ContextStore
from yolo_fs.core.reasons import Reason, YoloError, errors
from yolo_fs.daemon.health import health
from yolo_fs.evidence.facts import WorkflowOptions
from yolo_fs.git.repository import Head, Repository
from yolo_fs.handoff_service.accept import DirectiveHandoffs, is_handoff
from yolo_fs.handoffs.lifecycle import HandoffLifecycle
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.install.doctor import standing_troubles
from yolo_fs.phase.phase import Phases, not_begun
from yolo_fs.phase.report import Audience, Brief
from yolo_fs.progress.board import Board, board
from yolo_fs.progress.drift import FORGED, lives_at, notes_of_work_tree
from yolo_fs.reports.resume_report import LastHandoff, TeamState, resume_report
from yolo_fs.scanning.scanner import Scanner
from yolo_fs.schemas.config import Config, Policy
from yolo_fs.team.overview import TeamObserver
from yolo_fs.workspace.planning_tree import find_phase, folder_of, phases_in
from yolo_fs.workspace.settings import Settings, left_out, load

_Answer = TypeVar("_Answer")
_Seen = tuple[dict[str, Verdict], Head, Reason | None]


def resume(
    start: str, asker: Audience = Audience(), phase: str = "", *, keep: bool = True
) -> Brief:
    """Return the brief of the work tree that `start` lies in; empty where no protocol is in use.

    Where one was, and its planning tree is gone although HEAD has it, the brief says so.

    `phase`: one phase alone, by number, slug or directory name. `keep`: keep what was read of the
    log for the next process, and recompile the contexts that exist.

    Raises:
        YoloError: as `find_phase`.
    """
    try:
        repository = Repository(start)
    except YoloError as error:
        is_ours = error.reason is not Reason.BARE_REPOSITORY and _has_planning_tree_above(start)
        return _report_blind(error, asker) if is_ours else ()
    with repository:
        if not os.path.isdir(os.path.join(repository.root, PLANNING_ROOT)):
            gone = left_out(repository.root) if os.path.isdir(repository.own_dir) else None
            return _report_blind(gone, asker) if gone else ()
        chosen = find_phase(repository.root, phase) if phase else None
        asker = asker._replace(below=folder_of(start, repository.root))
        try:
            seen = _Look(repository).team_state(keep=keep)
        except YoloError as error:
            return _report_blind(error, asker)
        if chosen:
            of_it = tuple(each for each in seen.phases if each.id == chosen)
            seen = replace(seen, phases=of_it)
        return resume_report(seen, asker)


def _report_blind(error: YoloError, asker: Audience) -> Brief:
    """Return the brief where nothing can be read, which names no next act."""
    return resume_report(TeamState(trouble=(_describe(error),), is_blind=True), asker)


def _has_planning_tree_above(start: str) -> bool:
    folder = os.path.abspath(start)
    while not os.path.isdir(os.path.join(folder, PLANNING_ROOT)):
        if folder == os.path.dirname(folder):
            return False
        folder = os.path.dirname(folder)
    return True


def _describe(error: YoloError) -> str:
    hint = f" {error.hint}" if error.hint else ""
    return f"{error.reason.value}: {error.message}.{hint}"


@dataclass(slots=True)
class _Look:
    """One look at a work tree. It continues where a part cannot be read."""

    repository: Repository
    trouble: list[str] = field(default_factory=list)
    is_handed: bool = True
    """Whether there may be a HANDOFF.md."""

    def team_state(self, *, keep: bool) -> TeamState:
        settings = self._tried(lambda: load(self.repository.root), None)
        in_force = settings or Settings(Config(), Policy())
        unseen: _Seen = ({}, Head(None, None), None)
        verdicts, head, obstacle = self._tried(lambda: self._scan_verdicts(in_force), unseen)
        facts_reader = FactsReader(self.repository, in_force)
        team_board = self._tried(lambda: board(facts_reader, head.tip), None)
        seen = TeamState(
            branch=head.branch or "",
            commit=head.tip or "",
            obstacle=obstacle,
            verdicts=verdicts,
            is_cut_off=bool(self.repository.cut_off()),
            is_partial=self._tried(lambda: self.repository.is_partial, False),
            is_daemon_running=self._tried(lambda: health(self.repository).is_running, False),
        )
        if obstacle is Reason.BRANCH_BROKEN:
            self.trouble.append(f"{obstacle.with_sentence}. See 'yolo-fs doctor'.")
        elif team_board and (
            settings or team_board.config
        ):  # who works on it is not guessed: nobody is sent anywhere
            seen = self._add_team(seen, facts_reader, team_board)
            seen = replace(
                seen,
                contexts=self._contexts(
                    ContextStore(self.repository, in_force, facts_reader), seen, keep=keep
                ),
            )
        observer = TeamObserver(self.repository, in_force)
        seen = replace(seen, machines=self._tried(lambda: observer.look(obstacle), None))
        if keep:
            facts_reader.history_index.keep()
            facts_reader.keep()
        standing = standing_troubles(self.repository) if settings else ()
        self.trouble += [
            f"{str(finding).rstrip('.')}."
            for finding in standing
            if finding.reason is not obstacle and not is_listed(verdicts, finding.path)
        ]
        handoff = self._tried(lambda: self._handoff(in_force), None)
        nothing: tuple[str, ...] = ()
        due = self._tried(lambda: DirectiveHandoffs(self.repository, in_force).due(), nothing)
        return replace(seen, handoff=handoff, due=due, trouble=tuple(dict.fromkeys(self.trouble)))

    def _add_team(self, seen: TeamState, facts_reader: FactsReader, team_board: Board) -> TeamState:
        none: tuple[HandoffLifecycle, ...] = ()
        lives = none
        # Nobody looks through a linked tree, of which doctor's finding tells once.
        if not os.path.islink(os.path.join(self.repository.root, PLANNING_ROOT)):
            lives = self._tried(lambda: lives_at(team_board.phases, facts_reader), none)
        return replace(
            seen,
            phases=self._add_empty_phases(team_board.phases, facts_reader.settings),
            drift=self._tried(lambda: tuple(self._drift(team_board, facts_reader, lives)), ()),
            steps_said=facts_reader.steps_said(),
            lives=lives,
        )

    def _tried(self, look: Callable[[], _Answer], otherwise: _Answer) -> _Answer:
        try:
            return look()
        except YoloError as error:
            if error.reason is Reason.GIT_MISSING:  # without git, nothing at all is known
                raise
            self.trouble.append(_describe(error))
            return otherwise

    def _scan_verdicts(self, settings: Settings) -> _Seen:
        with Scanner(self.repository, settings.without_patience) as scanner:
            head, obstacle, seen, others = scanner.scan_all(is_handoff)
        self.is_handed = bool(others) or any(map(is_handoff, seen))
        verdicts: dict[str, Verdict] = {
            path: verdict
            for path, look in seen.items()
            if not isinstance(verdict := look.seen.verdict, (Committed, Ignored))
        }
        return verdicts, head, obstacle

    def _add_empty_phases(self, phases: Phases, settings: Settings) -> Phases:
        """Return the phases with those that are only a directory so far and still have to begin."""
        known = {phase.id for phase in phases}
        begun = phases[0].facts.options if phases else WorkflowOptions(settings.config)
        empty = (phase for phase in phases_in(self.repository.root) if phase not in known)
        fresh = (not_begun(phase, phases, begun) for phase in empty)
        return sorted((*phases, *fresh), key=lambda phase: phase.id)

    def _drift(
        self,
        team_board: Board,
        facts_reader: FactsReader,
        lives: tuple[HandoffLifecycle, ...],
    ) -> Iterator[str]:
        """Yield what the work tree declares, except how late a handoff is: that changes by
        itself.
        """
        for notes in notes_of_work_tree(team_board, facts_reader, lives):
            place = f"{notes.phase}: " if notes.phase else ""
            yield from (f"{place}{each}" for each in notes.drifts)
            commands = dict.fromkeys(drift.command for drift in notes.drifts)
            yield from (f"{place}run: {command}" for command in commands)
            yield from (f"{place}{name} {FORGED}" for name in notes.forged)
            yield from (f"{place}{missing}" for missing in notes.handoffs if place)
            yield from (
                f"{place}{department} reports that it is blocked by {blocker}"
                for department, blocker in notes.blockers
            )
        for phase in team_board.phases:
            yield from map(str, phase.false_claims)

    @staticmethod
    def _contexts(contexts: ContextStore, seen: TeamState, *, keep: bool) -> tuple[str, ...]:
        """Recompile the contexts that exist. A failure stops nobody."""
        try:
            return contexts.keep(seen.commit or None, seen.verdicts, writes=keep)
        except (OSError, YoloError):
            return ()

    def _handoff(self, settings: Settings) -> LastHandoff | None:
        handoffs = DirectiveHandoffs(self.repository, settings)
        path = handoffs.latest() if self.is_handed else ""
        if not path:
            return None
        handed = handoffs.check(handoffs.sessions.open(path), datetime.now(UTC))
        if handed.over:
            return None
        wrong = (
            () if handed.is_accepted else tuple(str(finding) for finding in errors(handed.findings))
        )
        packet = handed.packet
        orders = (
            (
                ("required_reading", packet.required_reading),
                ("task", handed.task_file),
                ("objective", packet.objective),
            )
            if packet and handed.role
            else ()
        )
        writer = packet.from_role if packet else ""
        return LastHandoff(path, handed.role, wrong, writer, orders, handed.mender)
