"""The runs of the company in one work tree: who ran, since when, the cost and the outcome.

They are one value in `state.db`. An unfinished run belongs to a runner that was killed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from yolo_fs.core.ids import PhaseId
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.chains import GOES_ON
from yolo_fs.protocol.departments import Dept
from yolo_fs.system.database import prove
from yolo_fs.system.store import Damaged
from yolo_fs.workspace.own_files import COMPANY_RUNS

MOST_RUNS = 20
"""Number of runs that are stored."""
FOLDER = "company"

Listener = Callable[[str, Mapping[str, Any]], None]
"""Receives each event of a run: its name and its data."""


@dataclass
class RunAct:
    """One start of one agent."""

    number: int
    agent: str
    department: str
    step: str
    task: str
    attempt: int
    started: float
    """Seconds since the epoch."""
    ended: float | None = None
    outcome: str = ""
    """`done`, or why it is not done; empty while it runs."""
    tokens: int = 0
    cost_usd: float = 0.0
    tool: str = ""
    """The last tool that its stream named."""
    key: list[str] = field(default_factory=list)
    """Key of the act."""
    before: str = ""
    """What the branch had of its files at its start."""
    tree: str = ""
    """Root of the work tree of its own; empty for that of the run."""
    host: str = ""
    """Name of the host that plays its agent."""

    @property
    def named(self) -> dict[str, Any]:
        """Who is at what, as events of a run name it."""
        return {
            "agent": self.agent, "department": self.department, "step": self.step,
            "task": self.task, "attempt": self.attempt, "host": self.host,
        }  # fmt: skip


@dataclass
class Run:
    """One run, from an intent to its end."""

    id: str
    phase: str
    intent: str
    host: str
    """The host of everybody for whom no other is named."""
    started: float
    chain: str = ""
    """The command of the routing table, if it is not go."""
    begins: bool = True
    """Whether the branch had nothing of the phase when it began."""
    ended: float | None = None
    outcome: str = ""
    given_up: list[str] = field(default_factory=list)
    """Why acts were given up."""
    asks: list[list[str]] = field(default_factory=list)
    """What it ended at and only a person decides: question, command."""
    again: str = ""
    """Command that goes on with it; it names a program, so that it counts with a proof alone."""
    acts: list[RunAct] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        return sum(act.tokens for act in self.acts)

    @property
    def cost_usd(self) -> float:
        return sum(act.cost_usd for act in self.acts)

    def folder(self, repository: Repository, act: RunAct) -> str:
        """Return the folder with the brief and the stream of an act."""
        name = f"{self.id}-{act.number:03}-{act.agent}"
        return os.path.join(repository.own_dir, FOLDER, name)

    def as_json(self) -> dict[str, Any]:
        """Return the run as it is stored and shown."""
        acts = [vars(act).copy() for act in self.acts]
        bill = {"tokens": self.tokens, "cost_usd": round(self.cost_usd, 6)}
        return {**vars(self), "acts": acts, **bill}


class RunOptions(NamedTuple):
    """Options of a run."""

    max_agents: int = 3
    budget_usd: float | None = None
    max_tokens: int | None = None
    approve: frozenset[str] = frozenset()
    """`plan` and `ship`: points where a person is asked although no decision is required."""
    chain: str = ""
    """The command of the routing table, if it is not go."""
    team: str = ""
    """The size of the team; empty for the configured one."""
    department: Dept | None = None
    """Whose Lead takes on a chain; None for the first department at work."""
    begins: bool = False
    """Whether the phase was made for this run."""
    worktrees: bool = False
    """Whether each plan has a Dev, in a work tree of its own."""
    host_words: tuple[str, ...] = ()
    """How the command line named the hosts: whatever goes on with the run names them again."""


def runs(repository: Repository) -> list[Run]:
    """Return the stored runs, oldest first.

    Raises:
        YoloError: what keeps them is damaged.
    """
    return [_run(kept) for kept in _kept(repository, COMPANY_RUNS.read(repository))]


def intent_of(known: Sequence[Run], phase: PhaseId) -> str:
    """Return what a phase is about, as its runs say; empty where none does.

    A fix says it of a phase that it has begun itself; another command says what it does there.
    """
    of_phase = [run for run in known if run.phase == str(phase) and run.intent]
    fixes = [run.intent for run in of_phase if run.chain in GOES_ON and run.begins]
    own = [run.intent for run in of_phase if not run.chain]
    return next(reversed([*fixes[-1:], *own]), "")


def save(repository: Repository, run: Run) -> None:
    """Store a run in its current state."""

    def with_run(before: dict[str, Any] | Damaged | None) -> dict[str, Any]:
        others = [kept for kept in _kept(repository, before) if kept.get("id") != run.id]
        return {"runs": [*others, prove(run.as_json())][-MOST_RUNS:]}

    COMPANY_RUNS.update(repository, with_run)


def new_run(phase: str, intent: str, host: str, chain: str = "") -> Run:
    """Return a run that starts now."""
    stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime())
    return Run(f"R{stamp}{os.urandom(2).hex()}", phase, intent, host, time.time(), chain)


def _kept(repository: Repository, content: dict[str, Any] | Damaged | None) -> list[dict[str, Any]]:
    if isinstance(content, Damaged):
        raise COMPANY_RUNS.refusal(repository, content)
    return content["runs"] if content else []


def _run(value: dict[str, Any]) -> Run:
    acts = [RunAct(**_known(RunAct, act)) for act in value.get("acts", ())]
    for act in acts:
        act.host = act.host or value["host"]  # one host had all agents of the runs before
    return Run(**{**_known(Run, value), "acts": acts})


def _known(kind: Any, value: dict[str, Any]) -> dict[str, Any]:
    """Return what a record says of the fields of a class; the others have their default."""
    said = {name: each for name, each in value.items() if each is not None}
    return {name: each for name, each in said.items() if name in kind.__dataclass_fields__}
