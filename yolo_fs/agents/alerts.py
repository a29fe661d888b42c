"""Reports agents that disappear, circuits that open and departments that stall, each once, with the
uncommitted work that is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from yolo_fs.agents.circuit import Breaker
from yolo_fs.agents.health import RECORD, AgentHealth, Shutdown
from yolo_fs.agents.snapshot import (
    AgentsObserver,
    AgentsSnapshot,
    circuit_as_json,
    shutdown_as_json,
)
from yolo_fs.agents.stalls import Stall
from yolo_fs.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.artifacts.decide import EventSink
from yolo_fs.artifacts.verdicts import Accepted, Held, Rejected, Verdict, Waiting
from yolo_fs.authority.actors import Actor
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Finding, Level, Reason, YoloError, safe
from yolo_fs.core.timestamps import iso
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.roster import Circuit, Health
from yolo_fs.tasks.claims import Claim
from yolo_fs.tasks.service import Claims, changed_files
from yolo_fs.workspace.own_files import CREW_TOLD
from yolo_fs.workspace.settings import Settings

UNCOMMITTED = (Accepted, Waiting, Held, Rejected)


def left_by(
    root: str, agent: AgentHealth, verdicts: Mapping[str, Verdict], claims: Iterable[Claim]
) -> tuple[str, ...]:
    """Return the uncommitted paths that an agent is responsible for, sorted."""
    artifacts = {
        path
        for path, verdict in verdicts.items()
        if isinstance(verdict, UNCOMMITTED) and _is_of(agent, path)
    }
    return tuple(sorted(artifacts | set(_find_changed_claims(root, agent, claims))))


def _is_of(agent: AgentHealth, path: str) -> bool:
    place = classify(path)
    return bool(place and agent.role and Actor(agent.role, agent.department).answers_for(place))


def _find_changed_claims(root: str, agent: AgentHealth, claims: Iterable[Claim]) -> list[str]:
    own = (claim for claim in claims if claim.agent in (agent.id, agent.name))
    wanted = [path for claim in own for path in claim.files]
    try:
        return changed_files(root, wanted) if wanted else []
    except YoloError:
        return []  # a path that git will not look at is not known to be changed


def left_claims(
    repository: Repository, settings: Settings, claims: Sequence[Claim]
) -> tuple[Finding, ...]:
    """Return a finding for each claim whose agent has stopped or disappeared.

    Other agents wait for such a claim until it is released.
    """
    if not claims:
        return ()
    return tuple(_left(claims, AgentsObserver(repository, settings).look({}).agents))


def _left(claims: Iterable[Claim], agents: Sequence[AgentHealth]) -> Iterator[Finding]:
    present = {agent.name for agent in agents if agent.is_there}
    gone = {
        name: agent for agent in agents if not agent.is_there for name in (agent.id, agent.name)
    }
    gone = {name: agent for name, agent in gone.items() if name not in present}
    for claim in claims:
        if agent := gone.get(claim.agent):
            yield Finding(
                Reason.WAITS_FOR,
                message=f"{claim.agent} claimed {claim.task} at {claim.claimed_at} and "
                f"{agent.health.value} at {iso(agent.since.timestamp())}",
                hint=f"'yolo-fs task release {claim.task} --as {claim.agent}' releases the task.",
                level=Level.WARNING,
            )


_MOST = 1_000
"""Reported keys that are remembered; the oldest are long obsolete."""

Notify = Callable[[Mapping[str, Any]], object]


class Alert(NamedTuple):
    """One thing to report."""

    key: str
    """Permanent key, so that the alert is reported once."""
    event: str
    subject: str
    data: Mapping[str, Any]
    title: str = ""
    """Title of the notification to people; empty if they need none."""


@dataclass
class AgentAlerts:
    """Monitors the agents of one work tree."""

    repository: Repository
    observer: AgentsObserver
    emit: EventSink
    notify: Notify = lambda note: None
    """Notifies people."""
    _reported: dict[str, None] = field(default_factory=dict)
    _trouble: str = ""
    _stamp: object = None
    _is_asked: bool = False

    def __post_init__(self) -> None:
        kept = CREW_TOLD.read(self.repository)
        self._reported = dict.fromkeys(kept["told"]) if isinstance(kept, dict) else {}

    @property
    def is_pressing(self) -> bool:
        """Whether an agent gave a sign since the last look, or a short deadline is running."""
        return self._is_asked or self.observer.record.stamp() != self._stamp

    def tick(self, verdicts: Mapping[str, Verdict]) -> tuple[Alert, ...]:
        """Check the agents, report new alerts, and return those reported."""
        self._stamp = self.observer.record.stamp()
        try:
            snapshot = self.observer.look(verdicts, keep=True)
            self._is_asked = any(
                not shutdown.is_over and shutdown not in snapshot.late
                for shutdown in snapshot.shutdowns
            )
            fresh = [
                alert for alert in self._news(snapshot, verdicts) if alert.key not in self._reported
            ]
            if fresh:
                self._remember(fresh)
        except (OSError, YoloError) as error:
            self._report_trouble(error)
            return ()
        for alert in fresh:
            self.emit(alert.event, alert.subject, alert.data)
            if alert.title:
                self.notify({"title": safe(alert.title, 500), "event": alert.event, **alert.data})
        return tuple(fresh)

    def _remember(self, fresh: list[Alert]) -> None:
        known = [*self._reported, *(alert.key for alert in fresh)][-_MOST:]
        CREW_TOLD.update(self.repository, lambda _: {"told": known})
        self._reported = dict.fromkeys(known)

    def _report_trouble(self, error: OSError | YoloError) -> None:
        if str(error) != self._trouble:
            self._trouble = str(error)
            self.emit("crew.trouble", "", {"what": self._trouble})

    def _news(self, snapshot: AgentsSnapshot, verdicts: Mapping[str, Verdict]) -> Iterator[Alert]:
        for finding in snapshot.findings:
            yield Alert(f"finding {finding}", "crew.finding", RECORD, finding.as_json())
        yield from (_alert_for_agent(agent) for agent in snapshot.agents)
        yield from (
            _alert_for_circuit(breaker) for breaker in snapshot.breakers if breaker.opened_at
        )
        for shutdown in snapshot.shutdowns:
            yield from self._alerts_for_shutdown(
                shutdown, verdicts, is_late=shutdown in snapshot.late
            )
        fresh = (stall for stall in snapshot.stalls if _key_of(stall) not in self._reported)
        yield from map(_alert_for_stall, fresh)  # there may be a hundred, told long since

    def _alerts_for_shutdown(
        self, shutdown: Shutdown, verdicts: Mapping[str, Verdict], *, is_late: bool
    ) -> Iterator[Alert]:
        key = f"{shutdown.key} {'late' if is_late else 'over'}"
        if key in self._reported or not (is_late or shutdown.is_over):
            return
        data = shutdown_as_json(shutdown, is_late=is_late) | {
            "uncommitted": uncommitted(self.repository, shutdown, verdicts)
        }
        owing = ", ".join(
            each.agent.name or each.agent.id for each in (*shutdown.silent, *shutdown.unclean)
        )
        title = (
            f"The deadline to stop ({shutdown.deadline_s:g} s) has passed; no answer yet, or "
            f"uncommitted work: {owing}"
        )
        yield Alert(
            key, "shutdown.late" if is_late else "shutdown.over", "", data, title if is_late else ""
        )


def uncommitted(
    repository: Repository, shutdown: Shutdown, verdicts: Mapping[str, Verdict]
) -> dict[str, list[str]]:
    """Return what each agent that was asked to stop leaves uncommitted: agent → paths."""
    claims = [status.claim for status in Claims(repository).claim_statuses()]
    left = {
        each.agent.id: left_by(repository.root, each.agent, verdicts, claims)
        for each in shutdown.asked
    }
    return {agent: list(paths) for agent, paths in left.items() if paths}


def _alert_for_agent(agent: AgentHealth) -> Alert:
    key = (
        f"{agent.key} {agent.health}"
        if agent.timed_out
        else f"agent {agent.id} {agent.health} {agent.since.isoformat()}"
    )
    gone = f"{agent.name or agent.id} disappeared" if agent.health is Health.DISAPPEARED else ""
    return Alert(key, "agent.health", agent.id, {**agent.as_event(), "agent": agent.name}, gone)


def _alert_for_circuit(breaker: Breaker) -> Alert:
    is_open = breaker.state is Circuit.OPEN
    title = f"The circuit of the {breaker.department} is open: {breaker.why}" if is_open else ""
    return Alert(
        f"{breaker.key} {breaker.state}",
        "circuit.changed",
        breaker.department.value,
        circuit_as_json(breaker),
        title,
    )


def _key_of(stall: Stall) -> str:
    return f"{stall.awaited.key} stalled"


def _alert_for_stall(stall: Stall) -> Alert:
    subject = f"{PLANNING_ROOT}/phases/{stall.awaited.phase}"
    return Alert(_key_of(stall), "step.stalled", subject, to_json(stall), str(stall))
