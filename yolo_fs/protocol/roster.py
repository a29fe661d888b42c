"""The roster: every agent of the company, the department variants derived from the printed rows;
what is a sign of an agent's health, what counts for and against a department, when its breaker
turns.

See docs/dev/sources.md#document-000 and #document-002.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from yolo_fs.core.reasons import Reason, YoloError, hint_for_unknown, safe
from yolo_fs.protocol.departments import DEPARTMENTS, WORKING, Department, Dept, Role


class Agent(NamedTuple):
    """One agent of the company."""

    name: str
    """Short name, such as `fe-lead`; the documents prefix it with `yolo-`."""
    role: Role
    """What it does, whatever the department."""
    title: str
    """Column Role of the roster."""
    model: str
    """Class of model that the roster assigns; empty where it says nothing."""
    tools: tuple[str, ...]
    """Tools it may use; `All` for every tool."""
    produces: tuple[str, ...]
    """Artifacts it writes, as the roster names them."""
    token_budget: int
    """Size of its compiled context in tokens; 0 where the roster says nothing."""
    department: Dept | None = Dept.BACKEND
    """Its department; None for the layer before them (Analyze, PO, Questionary, Roadmap)."""
    read_only: bool = False
    """The roster says so beside the tools."""
    source: str = 'document 002 ("Agent Roster")'
    """Section that the row restates."""

    @property
    def full_name(self) -> str:
        """Name as the documents print it, such as `yolo-fe-lead`."""
        return f"yolo-{self.name}"


_READ = ("Read", "Glob", "Grep")
_FE_READ = ("Read", "Grep", "Glob")

ROSTER = (
    Agent(
        "analyze", Role.ANALYZE, "Complexity Classifier / Intent Detector", "Opus",
        _READ, ("analysis.json",), 1000, None,
    ),
    Agent(
        "po", Role.PO, "Product Owner / Vision & Scope", "Opus",
        (*_READ, "Write"), ("scope-document.json", "user_presentation"), 3000, None,
    ),
    Agent(
        "questionary", Role.QUESTIONARY, "Scope Clarification / Requirements Analyst", "Sonnet",
        _READ, ("scope_clarification JSON",), 2000, None,
    ),
    Agent(
        "roadmap", Role.ROADMAP, "Dependency & Roadmap Planner", "Sonnet",
        (*_READ, "Write"), ("roadmap_plan JSON",), 2000, None,
    ),
    Agent(
        "critic", Role.CRITIC, "Brainstorm / Gap Analyst", "Opus",
        (*_READ, "WebSearch", "WebFetch"), ("critique.jsonl",), 4000, Dept.SHARED,
    ),
    Agent(
        "architect", Role.ARCHITECT, "VP Eng / Solutions Architect", "Opus",
        (*_READ, "Write", "WebSearch", "WebFetch"), ("architecture.toon", "ROADMAP.md"), 5000,
    ),
    Agent(
        "lead", Role.LEAD, "Tech Lead", "Sonnet",
        (*_READ, "Write", "Bash", "WebFetch"), ("plan.jsonl", "orchestration"), 3000,
    ),
    Agent(
        "senior", Role.SENIOR, "Senior Engineer", "Opus",
        (*_READ, "Write", "Edit", "Bash"), ("enriched plan specs (spec+ts)", "code-review.jsonl"),
        4000,

    ),
    Agent(
        "tester", Role.TESTER, "TDD Test Author", "Sonnet",
        (*_READ, "Write", "Bash"), ("test files", "test-plan.jsonl"), 3000,
    ),
    Agent(
        "dev", Role.DEV, "Junior Developer", "Sonnet",
        ("All",), ("source code", "summary.jsonl"), 2000,
    ),
    Agent(
        "qa", Role.QA, "QA Lead", "Sonnet",
        _READ, ("verification.jsonl",), 2000, read_only=True,
    ),
    Agent(
        "qa-code", Role.QA_CODE, "QA Engineer", "Sonnet",
        (*_READ, "Bash"), ("qa-code.jsonl",), 3000,
    ),
    Agent(
        "security", Role.SECURITY, "Backend Security Engineer", "Sonnet",
        (*_READ, "Bash", "SendMessage"), ("security-audit.jsonl",), 3000,
    ),
    Agent(
        "fe-security", Role.SECURITY, "FE Security Reviewer", "Sonnet",
        (*_FE_READ, "Bash", "SendMessage"), ("security-audit.jsonl",), 3000, Dept.FRONTEND,
    ),
    Agent(
        "ux-security", Role.SECURITY, "UX Security Reviewer", "Sonnet",
        (*_FE_READ, "SendMessage"), ("security-audit.jsonl",), 2000, Dept.UIUX,
    ),
    Agent(
        "documenter", Role.DOCUMENTER, "Backend Documenter", "Haiku",
        (*_READ, "Write", "Bash"), ("docs.jsonl",), 2000,
    ),
    Agent(
        "fe-documenter", Role.DOCUMENTER, "FE Documenter", "Haiku",
        (*_READ, "Write"), ("docs.jsonl",), 2000, Dept.FRONTEND,
    ),
    Agent(
        "ux-documenter", Role.DOCUMENTER, "UX Documenter", "Haiku",
        (*_READ, "Write"), ("docs.jsonl",), 2000, Dept.UIUX,
    ),
    Agent(
        "scout", Role.SCOUT, "Research Analyst", "Haiku",
        (*_READ, "WebSearch", "WebFetch"), ("research.jsonl",), 1000, Dept.SHARED,
    ),
    Agent(
        "debugger", Role.DEBUGGER, "Incident Responder", "Sonnet",
        ("All",), ("debug-report.jsonl",), 3000, Dept.SHARED,
    ),
    Agent(
        "integration-gate", Role.INTEGRATION_GATE, "Integration Gate / Cross-Dept Validator",
        "Sonnet", _READ, ("integration-gate-result.jsonl",), 2000, Dept.SHARED,
    ),
)  # fmt: skip
"""The printed rows, in the order of the document."""

OWNER = Agent(
    name="owner",
    role=Role.OWNER,
    title="Owner",
    model="",
    tools=(),
    produces=(),
    token_budget=0,
    department=Dept.SHARED,
    source='document 002 ("Multi-Department Structure"); the roster has no row for it',
)


def _derive_agent(agent: Agent, row: Department) -> Agent:
    """Return the agent that does the work of a backend agent in another department."""
    return agent._replace(
        name=row.prefix + agent.name,
        title=f"{row.prefix[:2].upper()} {agent.title}",
        department=row.name,
        source='document 002 ("Multi-Department Structure"), derived from the backend row',
    )


def _agents() -> dict[str, Agent]:
    known = {row.name: row for row in (*ROSTER, OWNER)}
    for row in DEPARTMENTS:
        for role, name in zip(row.roles, row.agents, strict=True):
            if name not in known:
                known[name] = _derive_agent(known[role], row)
    return known


AGENT_BY_NAME = _agents()
"""Every agent by its short name; printed rows first."""

AGENTS = tuple(AGENT_BY_NAME.values())

_ROLE_BY_LABEL = {role.label.lower().replace(" ", "-"): role.value for role in Role}


def bare_name(spelled: str) -> str:
    """Return a name without what hosts put before it: `yolo:yolo-dev` of a plugin is `dev`."""
    return spelled.rpartition(":")[2].removeprefix("yolo-")


def plain_name(spelled: str) -> str:
    """Return a name as the roster has it: `yolo-fe-dev` is `fe-dev`, `QA Lead` is `qa`."""
    name = bare_name(spelled.strip().lower()).replace(" ", "-")
    return _ROLE_BY_LABEL.get(name, name)


def without_number(name: str) -> str:
    """Return the agent that an instance is one of: `dev-1` and `dev1` are `dev`."""
    return name.rstrip("0123456789").removesuffix("-")


def role_of(spelled: object) -> Role | None:
    """Return the role of a name in any spelling: `fe-dev`, `Dev`, `yolo-dev`, `dev-1` are Devs."""
    return _role_of(str(spelled))


@lru_cache(maxsize=1_000)
def _role_of(spelled: str) -> Role | None:
    name = plain_name(spelled)
    agent = AGENT_BY_NAME.get(name) or AGENT_BY_NAME.get(without_number(name))
    return agent.role if agent else _OUTSIDE.get(name)


_OUTSIDE = {"user": Role.USER, "go.md": Role.USER, "go": Role.USER}
"""go.md speaks for the user: it is the only one that talks to them."""


def meant_agent(spelled: str) -> str:
    """Return the agent that a name of one's own is for: `frontend-developer` is `fe-dev`.

    Empty where it is unclear.
    """
    name = bare_name(spelled.strip().lower())
    words = re.sub(r"[^a-z]", "", name)
    prefix = ""
    for row in WORKING:
        own = (row.name.value, *row.nicknames, row.prefix.rstrip("-"))
        spoken = (word for word in own if word and words.startswith(word))
        own_word = max(spoken, key=len, default="")
        if own_word:
            prefix, words = row.prefix, words.removeprefix(own_word)
            break
    titles = {
        re.sub(r"[^a-z]", "", title.lower()): row.role
        for row in ROSTER
        for title in (*row.title.split("/"), row.role.label)
        if row.department is not None or row.role is Role.PO
    }
    begun = [row.role for row in ROSTER if words.startswith(row.role.replace("-", ""))]
    role = titles.get(words) or max(begun, key=len, default="")
    return next((each for each in (f"{prefix}{role}", role) if each in AGENT_BY_NAME), "")


def hint_for_agent(name: str, others: Iterable[str] = ()) -> str:
    """Return a hint for a name that no agent has: the one that was meant, and all there are."""
    known = (*AGENT_BY_NAME, *others)
    if meant := meant_agent(name):
        return f"Did you mean {meant}? Known names: {', '.join(known)}."
    return hint_for_unknown(bare_name(name), known)


@lru_cache(maxsize=1_000)
def department_said(spelled: str) -> Dept | None:
    """Return the department that the prefix of a name says; None without one."""
    name = plain_name(spelled)
    return next((row.name for row in WORKING if row.prefix and name.startswith(row.prefix)), None)


def agent(name: str) -> Agent:
    """Return the agent of that name, with or without `yolo-`; raise `unknown_name` without one."""
    row = AGENT_BY_NAME.get(bare_name(name))
    if row is None:
        raise YoloError(
            Reason.UNKNOWN_NAME, f"no agent is named {name!r}", hint=hint_for_agent(name)
        )
    return row


def role_named_in(place: str, spelled: str) -> str:
    """Return the role or the agent that a setting or an option names.

    `place`: the option or the key. Raises `unknown_name` with the one that was meant.
    """
    name = plain_name(spelled)
    if name not in AGENT_BY_NAME:
        raise YoloError(
            Reason.UNKNOWN_NAME,
            f"{safe(place)} names an unknown role: {safe(spelled)!r}",
            hint=hint_for_agent(spelled),
        )
    return name


class Health(StrEnum):
    """How an agent is; value as people see it, `wire` as in `agent_health_event`."""

    wire: str

    def __new__(cls, name: str, wire: str) -> Health:
        member = str.__new__(cls, name)
        member._value_ = name
        member.wire = wire
        return member

    STARTED = "started", "start"
    """It is there, and has done nothing yet."""
    WORKING = "working", "start"
    """It does something: the wire has no word of its own for that."""
    IDLE = "idle", "idle"
    """Its turn is over; it waits to be asked."""
    STOPPED = "stopped", "stop"
    """It said goodbye."""
    DISAPPEARED = "disappeared", "disappeared"
    """It was at work, and has been silent for too long."""


class Sign(NamedTuple):
    """What an event of a host, or a message, says of an agent's health."""

    event: str
    """A hook as in `yolo-fs hook EVENT`, or a message's type; after `:` its status or state."""
    health: Health
    is_work: bool = False
    """It says nothing but that the agent works, and may be left out when it repeats another."""


_MESSAGE = 'document 000 ("{}")'

SIGNS = (
    Sign("session-start", Health.STARTED),
    Sign("user-prompt-submit", Health.WORKING, is_work=True),
    Sign("post-compact", Health.WORKING),
    Sign("pre-tool-use", Health.WORKING, is_work=True),
    Sign("post-tool-use", Health.WORKING, is_work=True),
    Sign("post-tool-use-failure", Health.WORKING, is_work=True),
    Sign("task-completed", Health.WORKING),
    Sign("stop", Health.IDLE),
    Sign("session-end", Health.STOPPED),
    Sign("subagent-start", Health.STARTED),
    Sign("subagent-stop", Health.STOPPED),
    Sign("task_claim", Health.WORKING),
    Sign("task_complete", Health.WORKING),
    Sign("dev_progress", Health.WORKING),
    Sign("dev_blocker", Health.IDLE),
    Sign("shutdown_response", Health.WORKING),
    Sign("shutdown_response:clean", Health.STOPPED),
    Sign("agent_health_event:start", Health.STARTED),
    Sign("agent_health_event:idle", Health.IDLE),
    Sign("agent_health_event:stop", Health.STOPPED),
    Sign("agent_health_event:disappeared", Health.DISAPPEARED),
)
"""A message that is not listed, and is noted all the same, says that its sender works."""

SIGN_BY_EVENT = {row.event: row for row in SIGNS}


class Circuit(StrEnum):
    """How a department's breaker stands, as in `circuit_breaker_state`."""

    CLOSED = "closed"
    """Work flows."""
    OPEN = "open"
    """Too much failed in a row: nothing new is given to the department."""
    HALF_OPEN = "half-open"
    """It may try once: the next outcome decides."""


class CircuitSignal(StrEnum):
    """What turns a breaker."""

    FAILURE = "failure"
    LAST_FAILURE = "last failure"
    """The failure that makes it too many in a row."""
    SUCCESS = "success"
    TIME = "time"
    """It has been open for long enough."""


class Turn(NamedTuple):
    """What an outcome makes of a breaker.

    A pair that is not listed changes nothing but the count.
    """

    state: Circuit
    outcome: CircuitSignal
    to: Circuit


TURNS = (
    Turn(Circuit.CLOSED, CircuitSignal.LAST_FAILURE, Circuit.OPEN),
    Turn(Circuit.OPEN, CircuitSignal.TIME, Circuit.HALF_OPEN),
    Turn(Circuit.HALF_OPEN, CircuitSignal.FAILURE, Circuit.OPEN),
    Turn(Circuit.HALF_OPEN, CircuitSignal.LAST_FAILURE, Circuit.OPEN),
    Turn(Circuit.HALF_OPEN, CircuitSignal.SUCCESS, Circuit.CLOSED),
)

NEXT_CIRCUIT = {(row.state, row.outcome): row.to for row in TURNS}


class Measure(NamedTuple):
    """Where an outcome of a department is read off."""

    of: str
    """Kind of artifact, or type of message."""
    key: str
    """Field of its first line, or of each line where `each` says so."""
    failing: tuple[str, ...]
    """Values that count against the department."""
    passing: tuple[str, ...]
    """Values that count for it."""
    each: bool = False


MEASURES = (
    Measure("summary", "s", ("failed",), ("complete",)),
    Measure("verification", "r", ("FAIL",), ("PASS",)),
    Measure("qa-code", "r", ("FAIL",), ("PASS",)),
    Measure("qa-gate-results", "r", ("FAIL",), ("PASS",), each=True),
)
"""Artifacts: each version that a commit gave them is one outcome."""

MESSAGE_MEASURES = (
    Measure("dev_progress", "status", ("failed",), ("complete",)),
    Measure("task_complete", "status", ("failed",), ("complete",)),
)


class Cause(StrEnum):
    """Causes of a stalled step, the most telling first."""

    GATE = "gate"
    """The department waits at a gate between departments."""
    ESCALATION = "escalation"
    """Somebody is asked, and has not answered."""
    DISAPPEARED = "disappeared"
    """The agent was at work, and is silent."""
    CIRCUIT = "circuit"
    """Too much failed in a row."""
    REJECTED = "rejected"
    """What was written last is not valid."""
    HELD = "held"
    """What was written last is valid, and may not be committed now."""
    UNKNOWN = "unknown"
    """Nothing is known."""
