"""Reports agents that disappear, circuits that open and departments that stall, each once, with the
work that is in no commit.
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
from yolo_fs.workspace import CREW_TOLD, Settings

UNCOMMITTED = (Accepted, Waiting, Held, Rejected)


def left_by(
    root: str, one: AgentHealth, verdicts: Mapping[str, Verdict], claims: Iterable[Claim]
) -> tuple[str, ...]:
    """Return the paths that an agent answers for and no commit has, sorted."""
    artifacts = {
        path
        for path, verdict in verdicts.items()
        if isinstance(verdict, UNCOMMITTED) and _is_of(one, path)
    }
    return tuple(sorted(artifacts | set(_claimed(root, one, claims))))


def _is_of(one: AgentHealth, path: str) -> bool:
    place = classify(path)
    return bool(place and one.role and Actor(one.role, one.department).answers_for(place))


def _claimed(root: str, one: AgentHealth, claims: Iterable[Claim]) -> list[str]:
    own = (claim for claim in claims if claim.agent in (one.id, one.name))
    wanted = [path for claim in own for path in claim.files]
    try:
        return changed_files(root, wanted) if wanted else []
    except YoloError:
        return []  # a path that git will not look at is not known to be changed


def left_claims(
    repository: Repository, settings: Settings, claims: Sequence[Claim]
) -> tuple[Finding, ...]:
    """Return each claim whose agent has stopped or disappeared: others wait for it until somebody
    gives it back.
    """
    if not claims:
        return ()
    return tuple(_left(claims, AgentsObserver(repository, settings).look({}).agents))


def _left(claims: Iterable[Claim], agents: Sequence[AgentHealth]) -> Iterator[Finding]:
    present = {one.name for one in agents if one.is_there}
    gone = {name: one for one in agents if not one.is_there for name in (one.id, one.name)}
    gone = {name: one for name, one in gone.items() if name not in present}
    for claim in claims:
        if one := gone.get(claim.agent):
            yield Finding(
                Reason.WAITS_FOR,
                message=f"{claim.agent} has {claim.task} since {claim.claimed_at}, and "
                f"{one.health.value} at {iso(one.since.timestamp())}",
                hint=f"'yolo-fs task release {claim.task} --as {claim.agent}' gives it back.",
                level=Level.WARNING,
            )


_MOST = 1_000
"""Things that are remembered as told; the oldest are long over."""

Notify = Callable[[Mapping[str, Any]], object]


class Alert(NamedTuple):
    """One thing to tell."""

    key: str
    """Names it for good, so that it is told once."""
    event: str
    subject: str
    data: Mapping[str, Any]
    title: str = ""
    """What people are told, where it concerns them."""


@dataclass
class AgentAlerts:
    """Watches over the crew of one work tree."""

    repository: Repository
    observer: AgentsObserver
    tell: EventSink
    notify: Notify = lambda note: None
    """Lets people know."""
    _told: dict[str, None] = field(default_factory=dict)
    _trouble: str = ""
    _stamp: object = None
    _is_asked: bool = False

    def __post_init__(self) -> None:
        kept = CREW_TOLD.read(self.repository)
        self._told = dict.fromkeys(kept["told"]) if isinstance(kept, dict) else {}

    @property
    def is_pressing(self) -> bool:
        """Whether somebody gave a sign since the last look, or a deadline of seconds is running."""
        return self._is_asked or self.observer.record.stamp() != self._stamp

    def tick(self, verdicts: Mapping[str, Verdict]) -> tuple[Alert, ...]:
        """Look at the crew and tell what is new; return what was told."""
        self._stamp = self.observer.record.stamp()
        try:
            found = self.observer.look(verdicts, keep=True)
            self._is_asked = any(
                not one.is_over and one not in found.late for one in found.shutdowns
            )
            fresh = [one for one in self._news(found, verdicts) if one.key not in self._told]
            if fresh:
                self._remember(fresh)
        except (OSError, YoloError) as error:
            self._say_trouble(error)
            return ()
        for one in fresh:
            self.tell(one.event, one.subject, one.data)
            if one.title:
                self.notify({"title": safe(one.title, 500), "event": one.event, **one.data})
        return tuple(fresh)

    def _remember(self, fresh: list[Alert]) -> None:
        known = [*self._told, *(one.key for one in fresh)][-_MOST:]
        CREW_TOLD.update(self.repository, lambda _: {"told": known})
        self._told = dict.fromkeys(known)

    def _say_trouble(self, error: OSError | YoloError) -> None:
        if str(error) != self._trouble:
            self._trouble = str(error)
            self.tell("crew.trouble", "", {"what": self._trouble})

    def _news(self, found: AgentsSnapshot, verdicts: Mapping[str, Verdict]) -> Iterator[Alert]:
        for finding in found.findings:
            yield Alert(f"finding {finding}", "crew.finding", RECORD, finding.as_json())
        yield from (_of_agent(one) for one in found.agents)
        yield from (_of_circuit(one) for one in found.breakers if one.opened_at)
        for one in found.shutdowns:
            yield from self._of_shutdown(one, verdicts, is_late=one in found.late)
        fresh = (one for one in found.stalls if _key_of(one) not in self._told)
        yield from map(_of_stall, fresh)  # there may be a hundred, told long since

    def _of_shutdown(
        self, one: Shutdown, verdicts: Mapping[str, Verdict], *, is_late: bool
    ) -> Iterator[Alert]:
        key = f"{one.key} {'late' if is_late else 'over'}"
        if key in self._told or not (is_late or one.is_over):
            return
        data = shutdown_as_json(one, is_late=is_late) | {
            "uncommitted": uncommitted(self.repository, one, verdicts)
        }
        owing = ", ".join(each.agent.name or each.agent.id for each in (*one.silent, *one.unclean))
        title = (
            f"The deadline of {one.deadline_s:g} s to stop has passed: {owing} still owe "
            "an answer or their work"
        )
        yield Alert(
            key, "shutdown.late" if is_late else "shutdown.over", "", data, title if is_late else ""
        )


def uncommitted(
    repository: Repository, one: Shutdown, verdicts: Mapping[str, Verdict]
) -> dict[str, list[str]]:
    """Return what each agent that was asked to stop leaves in no commit: agent → paths."""
    claims = [standing.claim for standing in Claims(repository).standings()]
    left = {
        each.agent.id: left_by(repository.root, each.agent, verdicts, claims) for each in one.asked
    }
    return {agent: list(paths) for agent, paths in left.items() if paths}


def _of_agent(one: AgentHealth) -> Alert:
    key = (
        f"{one.key} {one.health}"
        if one.timed_out
        else f"agent {one.id} {one.health} {one.since.isoformat()}"
    )
    gone = f"{one.name or one.id} disappeared" if one.health is Health.DISAPPEARED else ""
    return Alert(key, "agent.health", one.id, {**one.as_event(), "agent": one.name}, gone)


def _of_circuit(one: Breaker) -> Alert:
    is_open = one.state is Circuit.OPEN
    title = f"The circuit of the {one.department} is open: {one.why}" if is_open else ""
    return Alert(
        f"{one.key} {one.state}",
        "circuit.changed",
        one.department.value,
        circuit_as_json(one),
        title,
    )


def _key_of(one: Stall) -> str:
    return f"{one.awaited.key} stalled"


def _of_stall(one: Stall) -> Alert:
    subject = f"{PLANNING_ROOT}/phases/{one.awaited.phase}"
    return Alert(_key_of(one), "step.stalled", subject, to_json(one), str(one))
