"""What somebody wants to read or write, and which paths a role may: context isolation, a
department's own area, the files of the active plan.

Paths are given resolved and relative to the repository, so that no link and no `..` leads around a
rule. What the tables never let a role receive is refused, and so is writing it; what they do not
mention is nobody's secret. See docs/sources.md#document-002.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NamedTuple

from yolo_fs.ids import PlanId
from yolo_fs.protocol.departments import (
    DEFAULT_DEPARTMENT,
    DEPARTMENT_BY_NAME,
    Dept,
    Mode,
    Role,
    barrier_between,
)
from yolo_fs.protocol.isolation import BORDERS, SCOPES, SEALED, Border, Item, Scope, Sealed, What
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT, ClassifiedPath
from yolo_fs.rules.authz.actors import BRING, AccessDecision, Actor, may_contact, refusal, rule_of
from yolo_fs.rules.authz.authority import has_tool, may_use

GIT_DIFF = "git diff"
"""Stands for the changes themselves, which no path is."""

_QA_KINDS = frozenset({"verification", "qa-code", "manual-qa", "gaps", "qa-gate-results"})
_CONTEXT = re.compile(r"(?:[0-9]{2}-)?CONTEXT(?:-(?P<department>[a-z]+))?\.md")
_TEST = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?)/|(?:^|/)test_[^/]*$|[._-](?:test|spec)s?\.[^/.]+$"
)
_PROSE = (".md", ".txt", ".rst")


@dataclass(frozen=True)
class Target(ClassifiedPath):
    """What somebody wants to read or write."""

    path: str
    """POSIX path relative to the repository, resolved; `git diff` for the changes themselves."""
    tests: frozenset[str] = field(default=frozenset())
    """Test files that the test plan names."""

    @property
    def name(self) -> str:
        """The file name."""
        return self.path.rpartition("/")[2]

    @property
    def is_planning(self) -> bool:
        """Whether it lies in the planning tree."""
        return self.path == PLANNING_ROOT or self.path.startswith(f"{PLANNING_ROOT}/")

    @property
    def is_test(self) -> bool:
        """Whether it is a test file."""
        return not self.is_planning and (
            self.path in self.tests or _TEST.search(self.path) is not None
        )

    @property
    def is_source(self) -> bool:
        """Whether it is code: outside of the planning tree, and no prose."""
        return (
            not self.is_planning
            and self.path != GIT_DIFF
            and not self.name.lower().endswith(_PROSE)
        )

    @property
    def department(self) -> Dept | None:
        """The department whose artifact it is; None for what several share."""
        if self.place is None:
            return None
        if self.place.artifact.made_by or "{dep" not in self.place.artifact.file:
            return self.place.artifact.made_by
        own = Dept(self.place.department)
        return None if own is DEFAULT_DEPARTMENT and self.kind in ("critique", "research") else own

    @property
    def context_of(self) -> str | None:
        """The department of a context file, empty if it names none; None if it is no such file."""
        found = _CONTEXT.fullmatch(self.name) if self.is_planning else None
        return (found["department"] or "") if found else None


_Is = Callable[[Target, Item, Actor], bool]


def _of(*kinds: str) -> _Is:
    return lambda target, item, _: (
        target.kind in kinds and item.department in (None, target.department)
    )


def _below(folder: str, *names: str) -> _Is:
    return lambda target, *_: (
        target.path.startswith(f"{PLANNING_ROOT}/{folder}") and (not names or target.name in names)
    )


def _is_context(target: Target, item: Item, actor: Actor) -> bool:
    if target.context_of is None:
        return False
    if item.department:
        return target.context_of == item.department
    return target.context_of in ("", actor.department or DEFAULT_DEPARTMENT)


def _is_other_context(target: Target, _: Item, actor: Actor) -> bool:
    return target.context_of not in (None, "", actor.department or DEFAULT_DEPARTMENT)


def _is_other_artifact(target: Target, _: Item, actor: Actor) -> bool:
    """What a department was handed is its own from then on."""
    own = actor.department or DEFAULT_DEPARTMENT
    rows = (row for row in BORDERS if row.department is own)
    handed = any(means(item, target, actor) for row in rows for item in row.receives)
    return target.department not in (None, own) and not handed


def _is_compiled_for(role: Role) -> _Is:
    def is_compiled(target: Target, _: Item, actor: Actor) -> bool:
        return target.name in (f".ctx-{role}.toon", f".ctx-{actor.peer(role).name}.toon")

    return is_compiled


def _is_handed_over(target: Target) -> bool:
    made_by = target.place.artifact.made_by if target.place else None
    return made_by is not None or target.kind == "dept-handoff"


def _is_pattern(target: Target, *_: object) -> bool:
    return target.path.startswith(f"{PLANNING_ROOT}/codebase/") and target.name == "PATTERNS.md"


MEANS: Mapping[What, _Is] = {
    What.CONTEXT: _is_context,
    What.OTHER_CONTEXTS: _is_other_context,
    What.ALL_CONTEXTS: lambda target, *_: target.context_of is not None,
    What.ROADMAP: _of("roadmap"),
    What.REQUIREMENTS: lambda target, *_: (
        target.kind == "reqs" or _below("", "REQUIREMENTS.md")(target, *_)
    ),
    What.CODEBASE_MAP: _below("codebase/"),
    What.CODEBASE_PATTERNS: _is_pattern,
    What.ARCHITECTURE: _of("architecture"),
    What.CRITIQUE: _of("critique"),
    What.RESEARCH: _of("research"),
    What.PLAN: _of("plan"),
    What.SUMMARY: _of("summary"),
    What.TEST_PLAN: _of("test-plan"),
    What.TEST_FILES: lambda target, *_: target.is_test,
    What.GIT_DIFF: lambda target, *_: target.path == GIT_DIFF,
    What.GAPS: _of("gaps"),
    What.CODE_REVIEW: _of("code-review"),
    What.SECURITY_AUDIT: _of("security-audit"),
    What.QA_ARTIFACTS: _of(*_QA_KINDS),
    What.SOURCE_CODE: lambda target, *_: target.is_source,
    What.SOURCE_EDITS: lambda target, *_: target.path == GIT_DIFF,
    What.OTHER_ARTIFACTS: _is_other_artifact,
    What.CTX_QA: _is_compiled_for(Role.QA),
    What.CTX_QA_CODE: _is_compiled_for(Role.QA_CODE),
    What.HANDOFF: lambda target, *_: _is_handed_over(target),
    What.DESIGN_TOKENS: _of("design-tokens"),
    What.COMPONENT_SPECS: _of("component-specs"),
    What.API_CONTRACTS: _of("api-contracts"),
    What.PLANS_AND_ARCHITECTURE: _of("plan", "architecture"),
}


def sealed(target: Target) -> Sealed | None:
    """Return the row that keeps a file from every agent; None for all other files."""
    *folders, name = target.path.casefold().split("/")
    for row in SEALED:
        if any(fnmatchcase(name, pattern) for pattern in row.names) or not {
            *row.folders
        }.isdisjoint(folders):
            return row
    return None


def means(item: Item, target: Target, actor: Actor) -> bool:
    """Return whether an entry of the tables speaks of a target."""
    return MEANS[item.what](target, item, actor)


NO_UX_FOR_BACKEND = (
    "Backend agents NEVER read UI/UX artifacts directly. Frontend relays relevant "
    "information via handoff artifacts "
    "only. Rule: Cross-Department Context Isolation."
)
_COMPILED = re.compile(r"\.ctx-(?P<agent>[a-z-]+)\.toon")
_ISOLATION = "Rule: Context Isolation."
_AREA = "Rule: department-guard."
_PLAN = "Rule: file-guard."
_UNNAMED = "Whoever does not say who they are may touch only what everybody may: name yourself."


def may_read(actor: Actor, target: Target, work: str = "") -> AccessDecision:
    """Return whether somebody may read a path.

    `work`: what he does, such as `Code Review`; empty for any of it.
    """
    if rule := _never(actor, target, work):
        return refusal(actor, rule)
    for item, source in _received(actor, work):
        if means(item, target, actor):
            only = f", of its lines {', '.join(item.fields)} alone" if item.fields else ""
            return AccessDecision(
                True, f"{actor.name} receives {item.text}{only}. {rule_of(source)}"
            )
    return AccessDecision(True, f"Nothing keeps {actor.name} from it. {_ISOLATION}")


def _never(actor: Actor, target: Target, work: str) -> str:
    """Return the rule that keeps a path from somebody; nothing when none does."""
    if row := sealed(target):
        return _sealed_rule(target, row)
    for item, source in _denied(actor, work):
        if means(item, target, actor):
            return f"{actor.name} never receives {item.text}. {rule_of(source)}"
    barrier = barrier_between(actor.department, target.department)
    if barrier and target.department is barrier.hidden:
        return NO_UX_FOR_BACKEND
    compiled = _COMPILED.fullmatch(target.name)
    if compiled and actor.agent and compiled["agent"] not in (actor.role, actor.name):
        return f"{target.name} is compiled for {compiled['agent']} alone. {_ISOLATION}"
    return ""


def _sealed_rule(target: Target, row: Sealed) -> str:
    return f"{target.name} is {row.what}, and no agent's to read or to write. {rule_of(row.source)}"


def _denied(actor: Actor, work: str) -> Iterator[tuple[Item, str]]:
    for row in _rows(actor, work):
        yield from ((item, row.source) for item in row.never)


def _received(actor: Actor, work: str) -> Iterator[tuple[Item, str]]:
    for row in _rows(actor, work):
        yield from ((item, row.source) for item in row.receives)


def _rows(actor: Actor, work: str) -> Iterator[Scope | Border]:
    """Yield the rows of a role: the one of what he does, else all of them, of which each may
    refuse; then borders.
    """
    own = [row for row in SCOPES if row.role is actor.role]
    yield from [row for row in own if row.mode == work] or own
    yield from (row for row in BORDERS if row.department is actor.department)


class ActivePlan(NamedTuple):
    """The plan that is being worked on."""

    id: PlanId
    files: frozenset[str]
    """Files, and directories, that it may touch; empty when it says nothing."""


def may_write(actor: Actor, target: Target, plan: ActivePlan | None = None) -> AccessDecision:
    """Return whether somebody may write a path.

    `plan`: the active one; None when nothing is being implemented.
    """
    for refuse in (_repository, _tool, _hidden, _status_file, _department_area):
        if answer := refuse(actor, target):
            return answer
    if target.is_planning:
        return AccessDecision(
            True, f"It lies in the planning tree, in no other department's part. {_AREA}"
        )
    return _plan_files(actor, target, plan)


def outside(actor: Actor | None, shown: str) -> AccessDecision:
    """Return the no to a path that leads out of the repository."""
    rule = f"{shown} lies outside of the repository. {_PLAN}"
    return refusal(actor, rule) if actor else AccessDecision(False, rule)


def may_anybody_read(target: Target, everybody: Iterable[Actor]) -> AccessDecision:
    """Return whether somebody may read a path who has not said who they are: what all may."""
    for actor in everybody:
        answer = may_read(actor, target)
        if not answer.allowed:
            return AccessDecision(False, f"{answer.rule} {_UNNAMED}")
    return AccessDecision(True, f"Nothing keeps anybody from it. {_ISOLATION}")


def may_anybody_write(target: Target, departments: Collection[Dept]) -> AccessDecision:
    """Return whether somebody may write a path who has not said who they are: what belongs to no
    department, or to the only one that works.

    `departments`: those that work.
    """
    if row := sealed(target):
        return AccessDecision(False, _sealed_rule(target, row))
    owner = target.department
    if owner is None or [*departments] == [owner]:
        return AccessDecision(True, f"It is in no department's part alone. {_AREA}")
    rule = f"{target.name} is an artifact of {owner}. {_AREA} {_UNNAMED}"
    return AccessDecision(False, rule, (Actor(Role.LEAD, owner, Mode.MULTI).name,))


def _repository(actor: Actor, target: Target) -> AccessDecision | None:
    if target.path.split("/")[0] == ".git" or target.path in ("", "."):
        return refusal(actor, f"{target.path or '.'} is git's own. Rule: security-filter.")
    return None


def _tool(actor: Actor, target: Target) -> AccessDecision | None:
    """A role without Write or Edit writes only what it produces, through Bash if at all."""
    if (
        actor.agent is None
        or not actor.agent.tools
        or any(has_tool(actor, tool) for tool in ("Write", "Edit"))
    ):
        return None
    own = any(target.name.endswith(product) for product in actor.agent.produces)
    return None if own and has_tool(actor, "Bash") else may_use(actor, "Write")


def _hidden(actor: Actor, target: Target) -> AccessDecision | None:
    rule = _never(actor, target, "")
    return refusal(actor, rule) if rule else None


def _status_file(actor: Actor, target: Target) -> AccessDecision | None:
    if not (target.is_planning and target.name.startswith(".dept-status-")):
        return None
    rule = "A department's status is written under its lock alone."
    return AccessDecision(False, rule, ("yolo-fs dept update",), ())


def _department_area(actor: Actor, target: Target) -> AccessDecision | None:
    own = actor.department
    if own is None:
        return None
    owner = target.department
    if owner and owner is not own:
        rule = (
            f"{target.name} is an artifact of {owner}; {actor.name} writes those of {own}. {_AREA}"
        )
        return _lead_of(actor, owner, rule)
    area = next(
        (area for area in DEPARTMENT_BY_NAME[own].off_limits if f"{target.path}/".startswith(area)),
        "",
    )
    if area and not target.is_planning:
        return refusal(actor, f"{area} is no area of {own}. {_AREA}")
    return None


def _lead_of(actor: Actor, owner: Dept, rule: str) -> AccessDecision:
    """Return a no that a Lead takes to the other Lead, where he may, others to their report-to."""
    other = Actor(Role.LEAD, owner, Mode.MULTI)
    is_open = (
        actor.role is Role.LEAD and may_contact(actor._replace(mode=Mode.MULTI), other).allowed
    )
    return AccessDecision(False, rule, (other.name,), BRING) if is_open else refusal(actor, rule)


def _plan_files(actor: Actor, target: Target, plan: ActivePlan | None) -> AccessDecision:
    if plan is None or not plan.files:
        return AccessDecision(True, f"No active plan limits the files. {_PLAN}")
    if actor.role is Role.TESTER and target.is_test:
        return AccessDecision(True, "The Tester writes test files. Rule: 11-Step Workflow, step 6.")
    if any(
        target.path == file or target.path.startswith(f"{file.rstrip('/')}/") for file in plan.files
    ):
        return AccessDecision(True, f"{target.path} is among the files of plan {plan.id}. {_PLAN}")
    listed = ", ".join(sorted(plan.files)[:10])
    return refusal(
        actor, f"{target.path} is none of the files of plan {plan.id} ({listed}). {_PLAN}"
    )
