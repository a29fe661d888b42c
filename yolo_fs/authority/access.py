"""What an actor wants to read or write, and which paths a role may: context isolation, a
department's own area, the files of the active plan.

Paths are given resolved and relative to the repository, so that links and `..` cannot bypass a
rule. What the tables never let a role receive may be neither read nor written; what they do not
mention is not secret. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT, ClassifiedPath
from yolo_fs.authority.actors import (
    BRING,
    AccessDecision,
    Actor,
    is_second,
    may_contact,
    refusal,
    rule_of,
)
from yolo_fs.authority.authority import may_use
from yolo_fs.authority.writers import can_write, everybody, next_towards, producers_of, writers_of
from yolo_fs.core.ids import PlanId
from yolo_fs.core.reasons import shortened
from yolo_fs.protocol.departments import (
    DEFAULT_DEPARTMENT,
    DEPARTMENT_BY_NAME,
    Dept,
    Mode,
    Role,
    barrier_between,
)
from yolo_fs.protocol.isolation import (
    BELOW_SENIOR,
    BORDERS,
    CREATIVE,
    PERSONAL,
    SCOPES,
    SEALED,
    Border,
    Item,
    Personal,
    Scope,
    Sealed,
    What,
)

GIT_DIFF = "git diff"
"""Stands for the changes themselves, which have no path."""

_QA_KINDS = frozenset({"verification", "qa-code", "manual-qa", "gaps", "qa-gate-results"})
_CONTEXT = re.compile(r"(?:[0-9]{2}-)?CONTEXT(?:-(?P<department>[a-z]+))?\.md")
_TEST = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?)/|(?:^|/)test_[^/]*$|[._-](?:test|spec)s?\.[^/.]+$"
)
_PROSE = (".md", ".txt", ".rst")


@dataclass(frozen=True)
class Target(ClassifiedPath):
    """What an actor wants to read or write."""

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
        """The department whose artifact it is; None if several share it."""
        if self.place is None:
            return None
        if self.place.artifact.made_by or "{dep" not in self.place.artifact.file:
            return self.place.artifact.made_by
        own = Dept(self.place.department)
        return None if own is DEFAULT_DEPARTMENT and self.kind in ("critique", "research") else own

    @property
    def context_of(self) -> str | None:
        """The department of a context file, empty if it names none; None if it is not such a
        file.
        """
        match = _CONTEXT.fullmatch(self.name) if self.is_planning else None
        return (match["department"] or "") if match else None


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
    """Return whether an artifact belongs to another department.

    Once it is handed over, it belongs to its receiver.
    """
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
    """Return the row that denies a file to every agent; None for all other files."""
    *folders, name = target.path.casefold().split("/")
    for row in SEALED:
        if any(fnmatchcase(name, pattern) for pattern in row.names) or not {
            *row.folders
        }.isdisjoint(folders):
            return row
    return None


def means(item: Item, target: Target, actor: Actor) -> bool:
    """Return whether an entry of the tables covers a target."""
    return MEANS[item.what](target, item, actor)


NO_UX_FOR_BACKEND = (
    "Backend agents NEVER read UI/UX artifacts directly. Frontend relays relevant "
    "information via handoff artifacts only. Rule: Cross-Department Context Isolation."
)
_COMPILED = re.compile(r"\.ctx-(?P<agent>[a-z-]+)\.toon")
_ISOLATION = "Rule: Context Isolation."
_AREA = "Rule: department-guard."
_PLAN = "Rule: file-guard."
_WRITERS = "Rule: 11-Step Workflow."
_PERSON = "It is a person's repository."
_UNNAMED = "An agent without a name may touch only what every agent may: name yourself."


def may_read(actor: Actor, target: Target, work: str = "") -> AccessDecision:
    """Return whether an actor may read a path.

    `work`: what they do, such as `Code Review`; empty for any of it.
    """
    if actor.role is Role.USER:
        return AccessDecision(True, _PERSON)
    if rule := _never(actor, target, work):
        return refusal(actor, rule)
    for item, source in _received(actor, work):
        if means(item, target, actor):
            only = f", of its lines only {', '.join(item.fields)}" if item.fields else ""
            return AccessDecision(
                True, f"{actor.name} receives {item.text}{only}. {rule_of(source)}"
            )
    return AccessDecision(True, f"No rule forbids it to {actor.name}. {_ISOLATION}")


_OTHERS = Item("other dept artifacts", What.OTHER_ARTIFACTS)


def _never(actor: Actor, target: Target, work: str) -> str:
    """Return the rule that denies a path to an actor; empty if there is none."""
    if row := sealed(target):
        return _explain_sealed(target, row)
    for item, source in _denied_items_of(actor, work):
        if means(item, target, actor):
            return f"{actor.name} never receives {item.text}. {rule_of(source)}"
    is_creative = target.kind in CREATIVE or target.path == f"{PLANNING_ROOT}/PROJECT.md"
    if actor.role is Role.DEV and is_creative:
        return f"{actor.name} never receives creative context: its spec is complete. {_ISOLATION}"
    if actor.role in BELOW_SENIOR and MEANS[What.OTHER_ARTIFACTS](target, _OTHERS, actor):
        return f"{actor.name} never receives {_OTHERS.text}, as its Senior never does. {_ISOLATION}"
    barrier = barrier_between(actor.department, target.department)
    if barrier and target.department is barrier.hidden:
        return NO_UX_FOR_BACKEND
    compiled = _COMPILED.fullmatch(target.name)
    if compiled and actor.agent and compiled["agent"] not in (actor.role, actor.name):
        return f"{target.name} is compiled for {compiled['agent']} only. {_ISOLATION}"
    return ""


def _explain_sealed(target: Target, row: Sealed) -> str:
    return f"{target.name} is {row.what}, which no agent may read or write. {rule_of(row.source)}"


def _denied_items_of(actor: Actor, work: str) -> Iterator[tuple[Item, str]]:
    for row in _rows(actor, work):
        yield from ((item, row.source) for item in row.never)


def _received(actor: Actor, work: str) -> Iterator[tuple[Item, str]]:
    for row in _rows(actor, work):
        yield from ((item, row.source) for item in row.receives)


def _rows(actor: Actor, work: str) -> Iterator[Scope | Border]:
    """Yield the rows of a role: the one of its current work, else all; then the borders.

    Any single row may refuse.
    """
    own = [row for row in SCOPES if row.role is actor.role]
    yield from [row for row in own if row.mode == work] or own
    yield from (row for row in BORDERS if row.department is actor.department)


class ActivePlan(NamedTuple):
    """The plan that is being implemented."""

    id: PlanId
    files: frozenset[str]
    """Files and directories that it may change; empty if it names none."""


def may_write(actor: Actor, target: Target, plan: ActivePlan | None = None) -> AccessDecision:
    """Return whether an actor may write a path.

    `plan`: the active one; None when nothing is being implemented.
    """
    if answer := _refused(actor, target):
        return answer
    if actor.role is Role.USER:
        return AccessDecision(True, _PERSON)
    if target.is_planning:
        return AccessDecision(
            True, f"It is in the planning tree and belongs to no other department. {_AREA}"
        )
    return _plan_files(actor, target, plan)


def outside(actor: Actor | None, shown: str) -> AccessDecision:
    """Return the refusal for a path outside of the repository."""
    rule = f"{shown} is outside the repository. {_PLAN}"
    return refusal(actor, rule) if actor else AccessDecision(False, rule)


def may_anybody_read(target: Target, everybody: Iterable[Actor]) -> AccessDecision:
    """Return whether an unidentified caller may read a path: only what every agent may."""
    for actor in everybody:
        answer = may_read(actor, target)
        if not answer.allowed:
            return AccessDecision(False, f"{answer.rule} {_UNNAMED}")
    return AccessDecision(True, f"No rule forbids it. {_ISOLATION}")


def may_anybody_write(target: Target, departments: Collection[Dept]) -> AccessDecision:
    """Return whether an unidentified caller may write a path.

    It may if the path belongs to no department, or to the only active one, and is not a person's.
    `departments`: the active ones.
    """
    if row := sealed(target):
        return AccessDecision(False, _explain_sealed(target, row))
    if own := personal(target.path):
        return AccessDecision(False, _explain_personal(target, own), (Role.USER,))
    owner = target.department
    if owner is None or [*departments] == [owner]:
        return AccessDecision(True, f"It belongs to no other department. {_AREA}")
    rule = f"{target.name} is an artifact of {owner}. {_AREA} {_UNNAMED}"
    return AccessDecision(False, rule, (Actor(Role.LEAD, owner, Mode.MULTI).name,))


def personal(path: str) -> Personal | None:
    """Return the row of a file that only a person writes; None for all others."""
    return next((row for row in PERSONAL if path == f"{PLANNING_ROOT}/{row.name}"), None)


def _refused(actor: Actor, target: Target) -> AccessDecision | None:
    """Return the refusal of a write that holds for any plan, with the next agent to ask."""
    answer = _forbidden(actor, target)
    if answer is None or not (personal(target.path) or target.place):
        return answer
    is_multi = actor.mode is Mode.MULTI or is_second(target.department)
    mode = Mode.MULTI if is_multi else Mode.SINGLE
    onward = next_towards(actor, _writers(target, mode), mode)
    return answer._replace(ask=(onward.name,), bring=BRING) if onward else answer


@lru_cache(maxsize=256)
def _writers(target: Target, mode: Mode) -> frozenset[Actor]:
    """Return the agents that may write it; the user if no agent may."""
    writers = frozenset(actor for actor in everybody(mode) if _forbidden(actor, target) is None)
    return frozenset(actor for actor in writers if actor.role is not Role.USER) or writers


def _forbidden(actor: Actor, target: Target) -> AccessDecision | None:
    if answer := _refuse_status_file(actor, target):
        return answer
    if actor.role is Role.USER:
        return None
    rules = (
        _repository,
        _refuse_personal,
        _tool,
        _hidden,
        _refuse_other_department,
        _refuse_others_work,
    )
    return next(filter(None, (refuse(actor, target) for refuse in rules)), None)


def _repository(actor: Actor, target: Target) -> AccessDecision | None:
    if target.path.split("/")[0] == ".git":
        return refusal(actor, f"{target.path} is git's own. Rule: security-filter.")
    if target.path in ("", "."):
        return refusal(actor, f". is the repository itself, not a file in it. {_PLAN}")
    return None


def _refuse_personal(actor: Actor, target: Target) -> AccessDecision | None:
    row = personal(target.path)
    return refusal(actor, _explain_personal(target, row)) if row else None


def _explain_personal(target: Target, row: Personal) -> str:
    return f"{target.path} {row.what}: a person writes it, no agent. {rule_of(row.source)}"


def _tool(actor: Actor, target: Target) -> AccessDecision | None:
    """Refuse a role without Write or Edit, except for what it produces and can write through
    Bash.
    """
    return None if can_write(actor, target.name) else may_use(actor, "Write")


def _refuse_others_work(actor: Actor, target: Target) -> AccessDecision | None:
    """Refuse an artifact unless the actor produces it, or acts for a producer without a tool."""
    producers = producers_of(target.kind)
    if not producers or _writes_for_others(actor, target):
        return None
    own, _ = writers_of(target.kind, target.name, _home_of(actor, target), actor.mode)
    if not own.isdisjoint(_roles(actor)):
        return None
    whose = " and ".join(sorted(role.label for role in producers))
    return refusal(actor, f"{target.name} is written by {whose}. {_WRITERS}")


def _writes_for_others(actor: Actor, target: Target) -> bool:
    """Return whether an actor writes an artifact on behalf of producers without a tool."""
    _, for_others = writers_of(target.kind, target.name, _home_of(actor, target), actor.mode)
    return not for_others.isdisjoint(_roles(actor))


def _home_of(actor: Actor, target: Target) -> Dept | None:
    return target.department or actor.department


def _roles(actor: Actor) -> frozenset[Role]:
    """Return the roles that an actor acts in: go.md is the Owner's proxy."""
    return frozenset({actor.role, Role.OWNER} if actor.role is Role.GO else {actor.role})


def _hidden(actor: Actor, target: Target) -> AccessDecision | None:
    if _writes_for_others(actor, target):  # what somebody else has seen is handed to them
        return None
    rule = _never(actor, target, "")
    return refusal(actor, rule) if rule else None


def _refuse_status_file(actor: Actor, target: Target) -> AccessDecision | None:
    if not (target.is_planning and target.name.startswith(".dept-status-")):
        return None
    rule = "A department's status is written under its lock alone."
    return AccessDecision(False, rule, ("yolo-fs dept update",), ())


def _refuse_other_department(actor: Actor, target: Target) -> AccessDecision | None:
    own = actor.department
    if own is None:
        return None
    owner = target.department
    if owner and owner is not own:
        rule = (
            f"{target.name} is an artifact of {owner}; {actor.name} writes those of {own}. {_AREA}"
        )
        return _refer_to_lead(actor, owner, rule)
    area = next(
        (area for area in DEPARTMENT_BY_NAME[own].off_limits if f"{target.path}/".startswith(area)),
        "",
    )
    if area and not target.is_planning:
        return refusal(actor, f"{own} may not write below {area}. {_AREA}")
    return None


def _refer_to_lead(actor: Actor, owner: Dept, rule: str) -> AccessDecision:
    """Return a refusal: a Lead asks the other Lead where that is allowed, others their
    report-to.
    """
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
    listed = shortened(sorted(plan.files), shown_by=f"{plan.id}.plan.jsonl")
    return refusal(actor, f"{target.path} is not a file of plan {plan.id} ({listed}). {_PLAN}")
