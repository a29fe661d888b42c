"""What the tables say of one agent: whom it reports to, what it reads and writes, what it decides,
when it is done.

Nothing here is a rule of its own: each value is asked of the tables and of the rules that the guard
asks, so that an agent is never told what it is then refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Any

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.table import ARTIFACTS, STATE_KINDS, Artifact, Home, by_kind
from yolo_fs.authority.actors import Actor, find_actor, reports_to, superiors
from yolo_fs.authority.authority import has_tool
from yolo_fs.authority.writers import can_write, producers_of
from yolo_fs.checking.examples import enriched_plan, example_of
from yolo_fs.protocol.authority import AUTHORITY_BY_ROLE
from yolo_fs.protocol.contexts import budget_of
from yolo_fs.protocol.departments import (
    BARRIERS,
    DEFAULT_DEPARTMENT,
    DEPARTMENT_BY_NAME,
    SHARED_NAMES,
    Dept,
    Mode,
    Role,
)
from yolo_fs.protocol.escalation import ESCALATES_BY_ROLE, LEVELS
from yolo_fs.protocol.gates import GATES, Owed
from yolo_fs.protocol.isolation import BORDERS, SCOPES, Item, What, is_withheld
from yolo_fs.protocol.roster import AGENT_BY_NAME, ROSTER, Agent
from yolo_fs.protocol.workflow import STEP_BY_KEY, STEPS

PHASE_FOLDER = f"{PLANNING_ROOT}/phases/NN-slug"
"""How a definition spells the folder of a phase; `NN-MM` is a plan."""
_SOURCES = ("source code", "test files")
_STANDING = re.compile(r'"st":"[a-z]+"')
_BLANKS = re.compile(r"\n{3,}")
_TOOLS = tuple(dict.fromkeys(tool for row in ROSTER for tool in row.tools if tool != "All"))
"""Every tool that the roster names."""


class Family(StrEnum):
    """Roles whose work is of one kind; each has a template of its own."""

    PLANNER = "planner"
    LEAD = "lead"
    BUILDER = "builder"
    JUDGE = "judge"


FAMILIES: Mapping[Role, Family] = {
    **dict.fromkeys(
        (Role.ANALYZE, Role.PO, Role.QUESTIONARY, Role.ROADMAP, Role.CRITIC, Role.SCOUT,
         Role.ARCHITECT), Family.PLANNER,
    ),
    **dict.fromkeys((Role.LEAD, Role.OWNER), Family.LEAD),
    **dict.fromkeys(
        (Role.SENIOR, Role.TESTER, Role.DEV, Role.DOCUMENTER, Role.DEBUGGER), Family.BUILDER
    ),
    **dict.fromkeys(
        (Role.QA, Role.QA_CODE, Role.SECURITY, Role.INTEGRATION_GATE), Family.JUDGE
    ),
}  # fmt: skip

_KINDS_MEANT: Mapping[What, tuple[str, ...]] = {
    What.ARCHITECTURE: ("architecture",),
    What.CRITIQUE: ("critique",),
    What.RESEARCH: ("research",),
    What.PLAN: ("plan",),
    What.SUMMARY: ("summary",),
    What.TEST_PLAN: ("test-plan",),
    What.HANDOFF: ("design-handoff", "design-tokens", "component-specs", "user-flows"),
}
_PLACES_MEANT: Mapping[What, str] = {
    What.ROADMAP: f"{PLANNING_ROOT}/ROADMAP.md",
    What.REQUIREMENTS: f"{PLANNING_ROOT}/REQUIREMENTS.md",
    What.CODEBASE_MAP: f"{PLANNING_ROOT}/codebase/",
    What.CODEBASE_PATTERNS: f"{PLANNING_ROOT}/codebase/PATTERNS.md",
}
_INPUTS: Mapping[str, tuple[str, ...]] = {
    "reqs": (f"{PLANNING_ROOT}/REQUIREMENTS.md",),
    "PROJECT": (f"{PLANNING_ROOT}/PROJECT.md",),
    "API contracts": ("api-contracts",),
    "design sync": ("design-handoff",),
    "handoffs": ("dept-handoff",),
    "test results": ("test-results",),
    "commits": ("summary",),
}
"""Printed inputs of steps whose words are no kind of artifact."""


class Given:
    """Something that an agent reads."""

    def __init__(self, text: str, paths: tuple[str, ...] = (), work: str = ""):
        """`paths`: none where no file is meant, such as the changes themselves."""
        self.text, self.paths, self.work = text, paths, work


class Written:
    """A file that an agent is to leave, by its own hand or another's."""

    def __init__(self, artifact: Artifact, path: str, text: str, by: str = ""):
        """`by`: who writes it for an agent that has no tool; empty where it writes itself."""
        self.kind, self.path, self.example, self.by = artifact.kind, path, text, by

    @property
    def example_name(self) -> str:
        """The name under which the example is a valid file."""
        name = self.path.rpartition("/")[2]
        first = self.example.partition("\n")[0] if "NN-MM" in name else "{}"
        line = json.loads(first)
        return name.replace("NN-MM", f"{line.get('p')}-{line.get('n')}")

    @property
    def language(self) -> str:
        """What a fence around the example says of it."""
        return "text" if self.path.endswith((".toon", ".md")) else "json"


class Definition:
    """One agent, as every host is told of it."""

    def __init__(self, agent: Agent):
        self.agent, self.role = agent, agent.role
        own = agent.department if agent.department not in SHARED_NAMES else None
        self.department = own
        self.actor = find_actor(agent.full_name, None, Mode.MULTI)
        self._row = DEPARTMENT_BY_NAME[own] if own else None

    @property
    def family(self) -> Family:
        return FAMILIES[self.role]

    @property
    def department_name(self) -> str:
        return str(self.department or SHARED_NAMES[0])

    # --- tools and budget ---

    @property
    def tools(self) -> tuple[str, ...]:
        """The roster's, in its order; none where it limits none."""
        return () if "All" in self.agent.tools else self.agent.tools

    @property
    def denied_tools(self) -> tuple[str, ...]:
        """Every tool that the roster names and does not give this agent."""
        return tuple(tool for tool in _TOOLS if self.tools and tool not in self.tools)

    @property
    def can_run(self) -> bool:
        """Whether it has a shell."""
        return not self.tools or has_tool(self.actor, "Bash")

    @property
    def can_write(self) -> bool:
        """Whether it has a tool for any file."""
        return not self.tools or any(has_tool(self.actor, tool) for tool in ("Write", "Edit"))

    @property
    def budget(self) -> int:
        """Most tokens of its compiled context; 0 where the tables say nothing."""
        return budget_of(self.agent.name)

    # --- the chain ---

    @cached_property
    def above(self) -> tuple[str, str]:
        """Who it reports to, where one department works and where several do."""
        found = []
        for mode in (Mode.SINGLE, Mode.MULTI):
            actor = self.actor._replace(mode=mode)
            role = reports_to(actor)
            found.append(_called(actor.peer(role)) if role else "")
        single, several = found
        return (several, several) if self._is_second else (single, several)

    @property
    def _is_second(self) -> bool:
        """Whether it works only where several departments do."""
        return self.actor.mode is Mode.MULTI and (
            self.role is Role.OWNER or not (self._row is None or self._row.is_default)
        )

    @property
    def holds_escalations(self) -> bool:
        return self.role in LEVELS

    @property
    def occasions(self) -> tuple[str, ...]:
        """When it escalates, as printed."""
        row = ESCALATES_BY_ROLE.get(self.role)
        return row.triggers if row else ()

    @property
    def decides(self) -> tuple[str, ...]:
        row = AUTHORITY_BY_ROLE.get(self.role)
        return row.decides if row else ()

    @property
    def escalates(self) -> tuple[str, ...]:
        """What it must hand up, as printed, with whom to ask where the table names somebody."""
        row = AUTHORITY_BY_ROLE.get(self.role)
        return tuple(map(str, row.escalates)) if row else ()

    # --- reading ---

    @cached_property
    def reads(self) -> tuple[Given, ...]:
        """What it is given: of its rows of the isolation tables, else of its steps' inputs."""
        compiled = f"{PHASE_FOLDER}/.ctx-{self.agent.name}.toon"
        own = Given("your compiled context, where there is one", (compiled,))
        scoped = [
            Given(item.text, self._paths_of(item), row.mode)
            for row in SCOPES if row.role is self.role for item in row.receives
        ]  # fmt: skip
        bordered = [
            Given(item.text, self._paths_of(item))
            for row in BORDERS if row.department is self.department for item in row.receives
            if not is_withheld(self.role, item)
        ]  # fmt: skip
        found = [own, *(scoped or self._inputs()), *bordered]
        seen: set[tuple[object, ...]] = set()
        kept = []
        for one in found:
            if (key := (one.paths or one.text, one.work)) not in seen:
                seen.add(key)
                kept.append(one)
        return tuple(kept)

    def _paths_of(self, item: Item) -> tuple[str, ...]:
        if item.what is What.CONTEXT:
            department = item.department or self._home
            return (f"{PHASE_FOLDER}/NN-CONTEXT-{department}.md",)
        if item.what in (What.CTX_QA, What.CTX_QA_CODE):
            return (f"{PHASE_FOLDER}/.ctx-{self.agent.name}.toon",)
        if place := _PLACES_MEANT.get(item.what):
            return (place,)
        return tuple(self._path(kind) for kind in _KINDS_MEANT.get(item.what, ()))

    def _inputs(self) -> Iterator[Given]:
        """Yield the inputs of the steps that are its own, as printed."""
        kinds = sorted((row.kind for row in ARTIFACTS), key=len, reverse=True)
        for step in STEPS:
            if self.role not in step.agents:
                continue
            for text in step.inputs:
                meant = (
                    _INPUTS.get(text)
                    or tuple(kind for kind in kinds if kind in text.lower().replace(" ", "-"))[:1]
                )
                paths = tuple(one if "/" in one else self._path(one) for one in meant)
                yield Given(text, paths)

    @cached_property
    def never(self) -> tuple[str, ...]:
        """What it never reads, as printed."""
        scopes = (row.never for row in SCOPES if row.role is self.role)
        borders = (row.never for row in BORDERS if row.department is self.department)
        found = [item.text for never in (*scopes, *borders) for item in never]
        own = [row for row in BARRIERS if self.department in row.departments]
        hidden = {row.hidden for row in own} - {self.department}
        found += [f"{DEPARTMENT_BY_NAME[name].label} artifacts" for name in sorted(hidden)]
        return tuple(dict.fromkeys(found))

    @property
    def off_limits(self) -> tuple[str, ...]:
        """Folders of the source in which its department does not write."""
        return self._row.off_limits if self._row else ()

    # --- writing ---

    @cached_property
    def writes(self) -> tuple[Written, ...]:
        """The artifacts that are its work, the roster's own first."""
        return tuple(map(self._written, self._artifacts()))

    def _artifacts(self) -> Iterator[Artifact]:
        found = [row for row in ARTIFACTS if self._is_work(row)]
        produced = " ".join(self.agent.produces)
        yield from sorted(found, key=lambda row: row.file.rpartition("}")[2] not in produced)

    def _is_work(self, row: Artifact) -> bool:
        if row.made_by not in (None, self.department) or row.kind in STATE_KINDS:
            return False
        if row.file.removeprefix("{dept}") in self.agent.produces:
            return True
        if self.role is Role.LEAD and (row.made_by or self._is_contract(row)):
            return True  # what lies between departments is their Leads'
        return self.role in producers_of(row.kind) and self._is_committed(row)

    def _is_contract(self, row: Artifact) -> bool:
        gates = (gate for gate in GATES if gate.owed_by is Owed.UNANSWERED)
        return row.kind == "api-contracts" and any(self.department in one.requires for one in gates)

    def _is_committed(self, row: Artifact) -> bool:
        """Return whether it is more than what somebody may do: a step commits it, or it is sent."""
        if row.sent_by or row.updated_by or not row.step:
            return row.kind != "roadmap"
        return not {*row.subjects}.isdisjoint(STEP_BY_KEY[row.step].commits) or any(
            row.kind.replace("-", "_") in name for name in self.agent.produces
        )

    def _written(self, row: Artifact) -> Written:
        path = self._path(row.kind)
        return Written(row, path, self._example(row), self._writer_for(path))

    def _example(self, row: Artifact) -> str:
        """Return a valid file, as it is when this agent leaves it; none where another's is only
        brought up to date.
        """
        if self.role in row.updated_by:
            return ""
        if row.kind == "plan" and self.role is Role.SENIOR:
            return enriched_plan()
        text = example_of(row.kind).replace(
            f'"dept":"{DEFAULT_DEPARTMENT}"', f'"dept":"{self._home}"'
        )
        return _STANDING.sub('"st":"open"', text) if row.updated_by else text

    @property
    def _home(self) -> Dept:
        return self.department or DEFAULT_DEPARTMENT

    def _writer_for(self, path: str) -> str:
        name = path.rpartition("/")[2]
        if can_write(self.actor, name):
            return ""
        able = next((one for one in superiors(self.actor) if can_write(one, name)), None)
        return _called(able) if able else ""

    def _path(self, kind: str) -> str:
        row = by_kind(kind)
        assert row is not None, kind
        prefix = self._row.prefix if self._row else ""
        if row.kind in ("critique", "research"):
            prefix = ""
        name = row.named(prefix, "NN-MM", phase="NN", department=str(self._home))
        return f"{PHASE_FOLDER if row.home is Home.PHASE else PLANNING_ROOT}/{name}"

    # --- done ---

    @cached_property
    def steps(self) -> tuple[str, ...]:
        """Steps of the workflow that it does."""
        return tuple(step.key for step in STEPS if self.role in step.agents)

    @cached_property
    def done_when(self) -> tuple[str, ...]:
        """What its steps need to be complete, as printed."""
        own = (step for step in STEPS if self.role in step.agents)
        return tuple(dict.fromkeys(str(gate) for step in own for gate in step.exit))

    @property
    def sources(self) -> tuple[str, ...]:
        """What it changes that is no artifact, as the roster names it."""
        return tuple(name for name in self.agent.produces if name in _SOURCES)

    @property
    def returned(self) -> bool:
        """Whether its answer is the file, which somebody else writes."""
        return any(one.by for one in self.writes)

    def as_json(self) -> dict[str, Any]:
        """Return it as data."""
        return {
            "agent": self.agent.full_name,
            "role": self.role.value,
            "department": self.department_name,
            "title": self.agent.title,
            "model": self.agent.model.lower(),
            "tools": list(self.tools),
            "denied_tools": list(self.denied_tools),
            "budget": self.budget,
            "reports_to": list(dict.fromkeys(self.above)),
            "reads": [path for one in self.reads for path in one.paths],
            "never": list(self.never),
            "writes": [{"kind": one.kind, "path": one.path, "by": one.by} for one in self.writes],
            "decides": list(self.decides),
            "escalates": list(self.escalates),
        }


def _called(actor: Actor) -> str:
    if actor.role in (Role.USER, Role.GO):
        return "the session that talks to the user"
    return AGENT_BY_NAME[actor.name].full_name


def definitions() -> tuple[Definition, ...]:
    """Return the definition of every agent, in the roster's order."""
    return tuple(map(Definition, AGENT_BY_NAME.values()))


def text_of(definition: Definition) -> str:
    """Return what an agent is told, for any host."""
    from yolo_fs.definitions.texts import rendered

    names = ("agent", "above", "reads", "never", "budget", "can_run", "off_limits", "writes",
             "done_when", "decides", "escalates", "occasions", "holds_escalations", "sources",
             "returned")  # fmt: skip
    text = rendered(
        f"{definition.family}.md.j2",
        role=definition.role.value,
        department=definition.department_name,
        is_shared=definition.department is None,
        **{name: getattr(definition, name) for name in names},
    )
    return _BLANKS.sub("\n\n", text)
