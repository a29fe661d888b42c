"""The tables' content for one agent: its report-to, what it reads and writes, what it decides, when
it is done.

This module adds no rule of its own: each value comes from the tables and from the rules that the
guard applies, so that an agent is never told to do what is then refused.
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
from yolo_fs.checking.examples import enriched_plan, example_of, in_lane
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
"""The folder of a phase in a definition; `NN-MM` is a plan."""
_SOURCES = ("source code", "test files")
_STANDING = re.compile(r'"st":"[a-z]+"')
_BLANKS = re.compile(r"\n{3,}")
_TOOLS = tuple(dict.fromkeys(tool for row in ROSTER for tool in row.tools if tool != "All"))
"""Every tool that the roster names."""


class Family(StrEnum):
    """Roles with the same kind of work; each family has its own template."""

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
"""Inputs of steps, as printed, that are not named like a kind of artifact → what they mean."""


class Given:
    """Something that an agent reads."""

    def __init__(self, text: str, paths: tuple[str, ...] = (), work: str = ""):
        """`paths`: empty if no file is meant, as for the changes themselves."""
        self.text, self.paths, self.work = text, paths, work


class Written:
    """A file that an agent has to produce, itself or through another."""

    def __init__(self, artifact: Artifact, path: str, text: str, by: str = ""):
        """`by`: who writes it for an agent without a tool; empty if the agent does."""
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
        """The language of the example's code fence."""
        return "text" if self.path.endswith((".toon", ".md")) else "json"


class Definition:
    """One agent, in the same form for every host."""

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
        """The roster's tools, in its order; empty if they are not limited."""
        return () if "All" in self.agent.tools else self.agent.tools

    @property
    def denied_tools(self) -> tuple[str, ...]:
        """Every tool in the roster that this agent does not have."""
        return tuple(tool for tool in _TOOLS if self.tools and tool not in self.tools)

    @property
    def can_run(self) -> bool:
        """Whether it has a shell."""
        return not self.tools or has_tool(self.actor, "Bash")

    @property
    def can_write(self) -> bool:
        """Whether it has a tool to write any file."""
        return not self.tools or any(has_tool(self.actor, tool) for tool in ("Write", "Edit"))

    @property
    def budget(self) -> int:
        """Maximum tokens of its compiled context; 0 if the tables have no limit."""
        return budget_of(self.agent.name)

    # --- the chain ---

    @cached_property
    def above(self) -> tuple[str, str]:
        """Its report-to, with one active department and with several."""
        names = []
        for mode in (Mode.SINGLE, Mode.MULTI):
            actor = self.actor._replace(mode=mode)
            role = reports_to(actor)
            names.append(_full_name_of(actor.peer(role)) if role else "")
        single, several = names
        return (several, several) if self._is_second else (single, several)

    @property
    def _is_second(self) -> bool:
        """Whether it is active only with several departments."""
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
        """What it must escalate, as printed, with the role to ask where the table names one."""
        row = AUTHORITY_BY_ROLE.get(self.role)
        return tuple(map(str, row.escalates)) if row else ()

    # --- reading ---

    @cached_property
    def reads(self) -> tuple[Given, ...]:
        """Its inputs: from its rows of the isolation tables, else from its steps."""
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
        inputs = [own, *(scoped or self._list_step_inputs()), *bordered]
        seen: set[tuple[object, ...]] = set()
        kept = []
        for given in inputs:
            if (key := (given.paths or given.text, given.work)) not in seen:
                seen.add(key)
                kept.append(given)
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

    def _list_step_inputs(self) -> Iterator[Given]:
        """Yield the inputs of its own steps, as printed."""
        kinds = sorted((row.kind for row in ARTIFACTS), key=len, reverse=True)
        for step in STEPS:
            if self.role not in step.agents:
                continue
            for text in step.inputs:
                meant = (
                    _INPUTS.get(text)
                    or tuple(kind for kind in kinds if kind in text.lower().replace(" ", "-"))[:1]
                )
                paths = tuple(name if "/" in name else self._path(name) for name in meant)
                yield Given(text, paths)

    @cached_property
    def never(self) -> tuple[str, ...]:
        """What it never reads, as printed."""
        scopes = (row.never for row in SCOPES if row.role is self.role)
        borders = (row.never for row in BORDERS if row.department is self.department)
        texts = [item.text for never in (*scopes, *borders) for item in never]
        own = [row for row in BARRIERS if self.department in row.departments]
        hidden = {row.hidden for row in own} - {self.department}
        texts += [f"{DEPARTMENT_BY_NAME[name].label} artifacts" for name in sorted(hidden)]
        return tuple(dict.fromkeys(texts))

    @property
    def off_limits(self) -> tuple[str, ...]:
        """Source folders in which its department does not write."""
        return self._row.off_limits if self._row else ()

    # --- writing ---

    @cached_property
    def writes(self) -> tuple[Written, ...]:
        """The artifacts that it produces, the roster's own first."""
        return tuple(map(self._written, self._artifacts()))

    def _artifacts(self) -> Iterator[Artifact]:
        rows = [row for row in ARTIFACTS if self._is_work(row)]
        produced = " ".join(self.agent.produces)
        yield from sorted(rows, key=lambda row: row.file.rpartition("}")[2] not in produced)

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
        return row.kind == "api-contracts" and any(
            self.department in gate.requires for gate in gates
        )

    def _is_committed(self, row: Artifact) -> bool:
        """Return whether an artifact is part of its work: a step commits it, or it is sent."""
        if row.sent_by or row.updated_by or not row.step:
            return row.kind != "roadmap"
        return not {*row.subjects}.isdisjoint(STEP_BY_KEY[row.step].commits) or any(
            row.kind.replace("-", "_") in name for name in self.agent.produces
        )

    def _written(self, row: Artifact) -> Written:
        path = self._path(row.kind)
        return Written(row, path, self._example(row), self._writer_for(path))

    def _example(self, row: Artifact) -> str:
        """Return a valid file as this agent leaves it; empty if it only updates another's file."""
        if self.role in row.updated_by:
            return ""
        if row.kind == "plan" and self.role is Role.SENIOR:
            return in_lane(enriched_plan(), self._home)
        text = in_lane(example_of(row.kind), self._home).replace(
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
        able = next(
            (superior for superior in superiors(self.actor) if can_write(superior, name)), None
        )
        return _full_name_of(able) if able else ""

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
    def done_when(self) -> tuple[str, ...]:
        """Conditions under which its steps are complete, as printed in the document."""
        own = (step for step in STEPS if self.role in step.agents)
        return tuple(dict.fromkeys(str(gate) for step in own for gate in step.exit))

    @property
    def sources(self) -> tuple[str, ...]:
        """Files that it changes and that are not artifacts, in the roster's words."""
        return tuple(name for name in self.agent.produces if name in _SOURCES)

    @property
    def returned(self) -> bool:
        """Whether its answer is the content of a file that another agent writes."""
        return any(written.by for written in self.writes)

    def as_json(self) -> dict[str, Any]:
        """Return the definition as JSON-compatible data."""
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
            "reads": [path for given in self.reads for path in given.paths],
            "never": list(self.never),
            "writes": [
                {"kind": written.kind, "path": written.path, "by": written.by}
                for written in self.writes
            ],
            "decides": list(self.decides),
            "escalates": list(self.escalates),
        }


def _full_name_of(actor: Actor) -> str:
    if actor.role in (Role.USER, Role.GO):
        return "the session that talks to the user"
    return AGENT_BY_NAME[actor.name].full_name


def definitions() -> tuple[Definition, ...]:
    """Return the definition of every agent, in the roster's order."""
    return tuple(map(Definition, AGENT_BY_NAME.values()))


def text_of(definition: Definition) -> str:
    """Return the instructions of an agent, independent of the host."""
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
