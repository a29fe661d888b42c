"""Who asks whether something is allowed, to whom that one reports, and the form of the answer.

Pure.

See docs/sources.md#document-002.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, WORKING_NAMES, name_in
from yolo_fs.protocol.escalation import CHAINS, ESCALATES_BY_ROLE
from yolo_fs.protocol.names import Dept, Mode, Role
from yolo_fs.protocol.roster import AGENT_BY_NAME, Agent
from yolo_fs.reasons import Exit, Reason, YoloError, safe
from yolo_fs.rules.artifacts.verdicts import Place
from yolo_fs.rules.evidence.facts import Switches

BRING = ("the question or blocker", "the relevant context of your work", "your recommendation")


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """Whether something is allowed, and why."""

    allowed: bool
    rule: str
    """The rule that decides, with its name."""
    ask: tuple[str, ...] = ()
    """Whom to ask instead, nearest first."""
    bring: tuple[str, ...] = ()
    """What to bring along."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody in the company, in the department that he works in."""

    role: Role
    department: Dept | None = None
    """Backend, frontend or uiux; None for those who belong to no single one of them."""
    mode: Mode = Mode.SINGLE

    @property
    def name(self) -> str:
        """Name of the agent, such as `fe-lead`; the role where there is no agent."""
        return name_in(self.role, self.department)

    @property
    def agent(self) -> Agent | None:
        """The agent's row of the roster; None for the user and their proxy."""
        return AGENT_BY_NAME.get(self.name)

    def answers_for(self, place: Place) -> bool:
        """Return whether an artifact is what this agent produces, in its own department."""
        produced = self.agent.produces if self.agent else ()
        return self.department in (None, place.department) and any(
            place.name.endswith(one) for one in produced
        )

    def peer(self, role: Role) -> Actor:
        """Return whoever has another role in the same department."""
        return replace(self, role=role)


_OUTSIDE_CHAIN: Mapping[Role, Role] = {
    Role.ANALYZE: Role.GO,  # "Ambiguous intent → go.md prompts user"
    Role.PO: Role.GO,  # `po_qa_verdict` (PO -> Orchestrator)
    Role.QUESTIONARY: Role.PO,  # "PO → Questionary → PO"
    Role.ROADMAP: Role.PO,  # "→ Roadmap (roadmap_plan) → PO"
    Role.INTEGRATION_GATE: Role.LEAD,  # "integration-gate-result.jsonl → Lead/Owner"
    Role.OWNER: Role.USER,
    Role.GO: Role.USER,
}
"""Report-tos of those whom the escalation table leaves out."""

_OTHER_NAMES = {
    "go": Role.GO,
    "orchestrator": Role.GO,
    **{role.label.lower().replace(" ", "-"): role for role in Role},
}
_INSTANCE = re.compile(r"-[0-9]+")


def mode_of(switches: Switches) -> Mode:
    """Return whether one department works or several."""
    return Mode.MULTI if switches.several_departments else Mode.SINGLE


def reports_to(actor: Actor) -> Role | None:
    """Return the direct report-to of a role; None above the user."""
    chain = next(row for row in CHAINS if row.mode is actor.mode)
    if above := chain.above(actor.role):
        return above
    row = ESCALATES_BY_ROLE.get(actor.role)
    if row is not None:
        return row.to
    if actor.role is Role.INTEGRATION_GATE and actor.mode is Mode.MULTI:
        return Role.OWNER
    return _OUTSIDE_CHAIN.get(actor.role)


def superiors(actor: Actor) -> Iterator[Actor]:
    """Yield whom an actor reports to, and so on up to the user."""
    above = reports_to(actor)
    while above is not None:
        actor = actor.peer(above)
        yield actor
        above = reports_to(actor)


def rule_of(source: str) -> str:
    """Return the sentence by which a message names the rule that a row restates."""
    return f"Rule: {section_of(source)}."


def section_of(source: str) -> str:
    """Return the section of a document that a row restates, or its whole source."""
    section = re.search(r'"([^"]+)"', source)
    return section[1] if section else source


def refusal(actor: Actor, rule: str, *ask: Role) -> AccessDecision:
    """Return a no: whom to ask is the direct report-to, unless somebody is named."""
    above = reports_to(actor)
    roles = ask or ((above,) if above else ())
    return AccessDecision(False, rule, tuple(actor.peer(role).name for role in roles), BRING)


def department_of(name: str) -> Dept | None:
    """Return the working department of a name, or None."""
    return next((dept for dept in WORKING_NAMES if dept == name), None)


def find_department(name: str) -> Dept:
    """Return the department of a name.

    Raises:
        YoloError: UNKNOWN_NAME.
    """
    found = department_of(name)
    if found is None:
        hint = f"The departments are {', '.join(WORKING_NAMES)}."
        raise YoloError(
            Reason.UNKNOWN_NAME, f"no department {safe(name)!r}", hint=hint, exit_code=Exit.USAGE
        )
    return found


def find_actor(name: str, department: Dept | None = None, mode: Mode = Mode.SINGLE) -> Actor:
    """Return who is called so: a role, its label, an agent with or without `yolo-`, or an instance
    such as `dev-1`.

    Raises:
        YoloError: UNKNOWN_NAME when there is nobody of that name in that department.
    """
    spelled = (
        _INSTANCE.sub("", name.strip().lower())
        .removeprefix("yolo-")
        .replace(" ", "-")
        .replace("_", "-")
    )
    agent = AGENT_BY_NAME.get(spelled)
    role = agent.role if agent else _OTHER_NAMES.get(spelled)
    if role is None:
        raise _nobody(name)
    own = agent.department if agent and agent.department in WORKING_NAMES else None
    if own is DEFAULT_DEPARTMENT and department is not None:
        own = department  # a bare role name means the one of the department that is asked about
    if own is not None and department not in (None, own):
        raise _nobody(name, f" in {department}")
    return Actor(role, own or department, _mode(role, own or department, mode))


def meant_by(actor: Actor, name: str) -> Actor:
    """Return whom an actor means by a name: `senior` is that of his own department, `yolo-senior`
    the backend's.

    A Lead who says `lead` does not mean himself.

    Raises:
        YoloError: UNKNOWN_NAME.
    """
    found = find_actor(name, None, actor.mode)
    if (
        actor.department is None
        or found.department not in (None, DEFAULT_DEPARTMENT)
        or name.startswith("yolo-")
    ):
        return found
    own = replace(found, department=actor.department, mode=actor.mode)
    return found if own == actor else own


def _mode(role: Role, department: Dept | None, otherwise: Mode) -> Mode:
    """Return the mode: a second department, or an Owner, is there only when several departments
    work.
    """
    return Mode.MULTI if role is Role.OWNER or _is_second(department) else otherwise


def _is_second(department: Dept | None) -> bool:
    return department in WORKING_NAMES and department is not DEFAULT_DEPARTMENT


def _nobody(name: str, where: str = "") -> YoloError:
    hint = f"There are {', '.join((*AGENT_BY_NAME, Role.GO, Role.USER))}."
    return YoloError(
        Reason.UNKNOWN_NAME, f"unknown agent {safe(name)!r}{where}", hint=hint, exit_code=Exit.USAGE
    )
