"""What follows from the branch: state files, projections, contexts, escalations, and the health of
agents. It runs beside the daemon, which only commits; no artifact waits for it.

It reads the branch itself. The daemon sends it the verdicts on uncommitted files; it reports its
own writes to the daemon, which commits them like any others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from yolo_fs.agents.alerts import AgentAlerts
from yolo_fs.agents.snapshot import AgentsObserver
from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.decide import EventSink
from yolo_fs.artifacts.verdicts import Verdict
from yolo_fs.checking.verify_command import SourceVerifier
from yolo_fs.contexts.store import ContextStore
from yolo_fs.core.reasons import YoloError
from yolo_fs.daemon.duties import Duty
from yolo_fs.escalation_service.command_hook import CommandHook, Note, load_command
from yolo_fs.escalation_service.ticking import LoopEscalator, Ticker
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.progress.board import phases_now
from yolo_fs.progress.state_files import Projector, States
from yolo_fs.progress.state_move import FreshArtifact, StateMove
from yolo_fs.states.project import summary_line
from yolo_fs.system.system import return_free_memory
from yolo_fs.workspace.settings import load, stamps_of

ESCALATIONS_EVERY_S = 1.0
HOOK_EVERY_S = 1.0
LOOK_REST = 50
"""A check of the whole team is followed by a pause of this multiple of its duration."""
TIDY_EVERY_S = 60.0
"""Interval of storing the history index for the next process, and of returning free memory, which
takes a tenth of a millisecond."""
AGENTS_EVERY_S = 5.0
"""Interval of checks of the agents while none sends a heartbeat: silence takes minutes."""

Wrote = Callable[[Sequence[str]], object]
"""Receives the artifacts that were written."""


class Follower:
    """Keeps what follows from the branch of one work tree up to date."""

    def __init__(self, repository: Repository, emit: EventSink, wrote: Wrote):
        self._repository = repository
        self._emit = emit
        self._wrote = wrote
        self._hook = CommandHook(load_command(), emit)
        self._verifier = SourceVerifier(repository, emit)
        self.verdicts: Mapping[str, Verdict] = {}
        """Path → the daemon's last verdict, for everything that is not committed."""
        self.headline = ""
        """The state of the team in one line."""
        self._build()

    def _build(self) -> None:
        """Create the parts by the settings in force."""
        repository, emit = self._repository, self._emit
        self._stamps = stamps_of(repository.root)
        self.settings = settings = load(repository.root)
        self.team = team = FactsReader(repository, settings)
        """The history of the team, as far as it was read."""
        self._projector = Projector(repository, settings, team, emit)
        self._contexts = ContextStore(repository, settings, team)
        self._states = States(repository, settings, team)
        self._ticker = Ticker(repository, settings, emit, notify=self._hook.notify)
        self._escalator = LoopEscalator(repository, settings, team, emit)
        observer = AgentsObserver(repository, settings, team)
        self._alerts = AgentAlerts(repository, observer, emit, self._hook.put)

    def close(self) -> None:
        """Send the pending notifications, and end."""
        self._states.close()
        self._verifier.close()
        self._hook.close()

    @property
    def tip(self) -> str | None:
        """The commit from which everything follows."""
        return self._repository.head().tip

    def reload(self) -> None:
        """Apply a changed configuration; the daemon reports an invalid one."""
        if stamps_of(self._repository.root) != self._stamps:
            former = self._states
            try:
                self._build()
            except YoloError:
                return
            former.close()

    def project(self) -> None:
        """Write the status of departments and sentinels, and tell which gates opened and closed."""
        self._projector.bring_up_to_date(self.tip, self.verdicts)

    def write_state(self) -> str | None:
        """Write the next state file that is behind the branch, and return its path."""
        tip = self.tip
        committed = self._repository.files_at(tip, PLANNING_ROOT) if tip else {}
        path = self._states.write_next(tip, (*committed, *self.verdicts))
        if path:
            self._wrote((path,))
        return path

    def state_moved(self, tip: str | None, fresh: Sequence[FreshArtifact]) -> StateMove | None:
        """Return the change of `state.json` by commits on a tip; None if it does not change."""
        return self._states.moved_by(tip, fresh)

    def write_states(self) -> None:
        """Write the next state file; the one after it is due when this one is committed."""
        self.write_state()

    def write_contexts(self) -> None:
        """Recompile the contexts whose sources have changed."""
        self._contexts.keep(self.tip, self.verdicts)

    def hand_up_escalations(self) -> float:
        """Escalate what a level does not answer in time."""
        added = dict.fromkeys(each.path for each in self._ticker.tick())
        if paths := added | dict.fromkeys(self._escalator.open_due(self.tip)):
            self._wrote(tuple(paths))
        return ESCALATIONS_EVERY_S

    def watch_agents(self) -> float:
        """Report new alerts on agents, circuits and stalls."""
        self._alerts.tick(self.verdicts)
        return AGENTS_EVERY_S

    def run_hook(self) -> float:
        """Run the user's command for events that came while it was running."""
        self._hook.look()
        return HOOK_EVERY_S

    def notify_once(self, notes: Iterable[tuple[Note, bool]]) -> None:
        """Tell the user what nobody has told them yet. Each note: whether it is news; else it is
        remembered alone.
        """
        self._hook.notify_once(notes)

    def verify_sources(self) -> float | None:
        """Run the user's check of the sources where they have changed, and record how it ends."""
        return self._verifier.look(self.settings, self.tip)

    def sum_up(self) -> None:
        """Compute the headline."""
        try:
            phases = phases_now(self.team, self.tip)
            self.headline = summary_line(phases)
        except YoloError:
            self.headline = ""  # what is damaged is reported by what needs more of it

    def keep_history(self) -> float:
        """Store the history index for the next process."""
        self.team.history_index.keep()
        self.team.history_index.rest()
        return TIDY_EVERY_S

    def tidy(self) -> float:
        """Return free memory to the system, and close packs that have been merged."""
        self._repository.objects.close()
        return_free_memory()
        return TIDY_EVERY_S


FOLLOWING: tuple[Duty[Follower], ...] = (
    Duty("reload", Follower.reload, is_wanted=lambda _follower: True),
    Duty("projections", Follower.project),
    Duty("states", Follower.write_states),
    Duty("contexts", Follower.write_contexts),
    Duty(
        "escalations",
        Follower.hand_up_escalations,
        is_wanted=lambda follower: follower._ticker.is_pressing,
        rest=LOOK_REST,
    ),
    Duty(
        "crew",
        Follower.watch_agents,
        is_wanted=lambda follower: follower._alerts.is_pressing,
        rest=LOOK_REST,
    ),
    Duty("hook", Follower.run_hook),
    Duty("verification", Follower.verify_sources),
    Duty("headline", Follower.sum_up),
    Duty("history", Follower.keep_history, rest=LOOK_REST),
    Duty("upkeep", Follower.tidy),
)
"""The duties, in the order of a turn: first those that whole teams wait for."""
ON_MOVE = ("projections", "states", "contexts", "verification", "headline")
"""Duties that are due when the branch has moved, or a verdict has changed."""
