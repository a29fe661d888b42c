"""Decides access: resolves names and paths, and finds the active plan.

A path is resolved on disk before any rule is applied, so that links, `..` and absolute spellings
cannot bypass a rule.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from yolo_fs.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.authority.access import (
    GIT_DIFF,
    ActivePlan,
    Target,
    may_anybody_read,
    may_anybody_write,
    may_read,
    may_write,
    outside,
)
from yolo_fs.authority.actors import (
    AccessDecision,
    Actor,
    among_those_at_work,
    find_actor,
    may_contact,
    may_escalate,
    meant_by,
    mode_of,
)
from yolo_fs.authority.authority import decisions_out_of_lane, may_decide, may_use
from yolo_fs.authority.guarded import Guarded, guarded
from yolo_fs.authority.own_verbs import refuse_verb
from yolo_fs.core.credentials import redact
from yolo_fs.core.ids import PlanId
from yolo_fs.core.reasons import Finding, Reason, YoloError, errors, safe, shortened
from yolo_fs.evidence.facts import PhaseFacts, Plan, WorkflowOptions, paths_in, plans_of
from yolo_fs.evidence.plan_status import PlanStanding, plan_progress
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.departments import Dept, Mode
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.protocol.verbs import OWN_VERB_BY_NAME
from yolo_fs.schemas.config import Config, Policy
from yolo_fs.system.readers import read_object
from yolo_fs.workspace.planning_tree import RUNNING
from yolo_fs.workspace.settings import Settings, load_in_force

if TYPE_CHECKING:
    from yolo_fs.checking.envelopes import ParsedMessage
    from yolo_fs.history.facts_reader import FactsReader

_MOST_FAULTS = 20
"""Faults of one message that are named."""


class Access:
    """The access rules of one repository; without a repository, for one department and defaults."""

    def __init__(
        self,
        repository: Repository | None,
        settings: Settings | None = None,
        facts_reader: FactsReader | None = None,
        *,
        start: str = "",
    ):
        """`start`: the directory that relative paths start from; empty for the root."""
        self._repository = repository
        self._start = start
        self._settings = settings or (
            load_in_force(repository.root).settings if repository else None
        )
        self._facts_reader = facts_reader

    @property
    def config(self) -> Config:
        """The configuration in force."""
        return self._settings.config if self._settings else Config()

    def actor(self, name: str, department: Dept | None = None) -> Actor:
        """Return the actor of that name.

        Raises:
            YoloError: UNKNOWN_NAME.
        """
        return find_actor(name, department, mode_of(self._options))

    @staticmethod
    def pair(sender: Actor, receiver: Actor) -> tuple[Actor, Actor]:
        """Return both actors in one mode: multi-department if either of them requires it."""
        mode = Mode.MULTI if Mode.MULTI in (sender.mode, receiver.mode) else Mode.SINGLE
        return sender._replace(mode=mode), receiver._replace(mode=mode)

    def contact(self, actor: Actor, name: str, message: str = "") -> AccessDecision:
        """Return whether an actor may write to the one they call `name`: at all, or this message.

        `message`: its JSON, or any text.

        Raises:
            YoloError: UNKNOWN_NAME.
        """
        sender, receiver = self.pair(actor, meant_by(actor, name))
        answer = may_contact(sender, receiver)
        if answer.allowed or not message.lstrip().startswith("{"):
            return self._at_work(actor, answer)
        kind = self._parse(message.encode("utf-8", "replace")).type
        return self.send(sender, receiver, kind) if kind else self._at_work(actor, answer)

    def advise_on_message(self, actor: Actor, name: str, message: str) -> str:
        """Return how a refused message has to be so that it may go to `name`: its corrected JSON,
        else what is wrong with it. Empty where another form would not help.

        Raises:
            YoloError: UNKNOWN_NAME.
        """
        from yolo_fs.artifacts.catalogue import ANY_MESSAGE
        from yolo_fs.artifacts.repair import mended
        from yolo_fs.schemas.messages.catalogue import type_meant_by

        data = message.encode("utf-8", "replace")
        data = mended(data, ANY_MESSAGE) or data
        records = read_object(data, "", self._settings_in_force.limits).records
        kind = type_meant_by(records[0].value) if records else ""
        if not kind or not self.send(actor, meant_by(actor, name), kind).allowed:
            return ""
        if wrong := errors(self._parse(data).findings):
            faults = shortened([str(finding) for finding in wrong], _MOST_FAULTS, between="\n- ")
            return f"mend the {kind}, then send it:\n- {faults}"
        text = json.dumps(records[0].value, ensure_ascii=False)
        return f"send {text}" if redact(text) == text else ""

    def _parse(self, data: bytes) -> ParsedMessage:
        from yolo_fs.checking.envelopes import parse_message

        settings = self._settings_in_force
        return parse_message(data, "", settings.limits, settings.mode, self._options)

    @property
    def _settings_in_force(self) -> Settings:
        return self._settings or Settings(Config(), Policy())

    def send(self, sender: Actor, receiver: Actor, kind: str) -> AccessDecision:
        """Return whether a message of a known type may go from one to the other."""
        from yolo_fs.authority.message_routes import may_send

        low, high = self.pair(sender, receiver)
        return self._at_work(sender, may_send(low, high, kind, self._options))

    def escalate(self, actor: Actor, receiver: Actor) -> AccessDecision:
        """Return whether an actor may escalate to another."""
        return self._at_work(actor, may_escalate(*self.pair(actor, receiver)))

    def decide(self, actor: Actor, topic: str) -> AccessDecision:
        """Return whether an actor may decide on a topic."""
        return self._at_work(actor, may_decide(actor, topic))

    def use(self, actor: Actor, tool: str) -> AccessDecision:
        """Return whether an actor may use a tool of its host."""
        return self._at_work(actor, may_use(actor, tool))

    @property
    def _options(self) -> WorkflowOptions:
        return WorkflowOptions(self.config)

    def _at_work(self, actor: Actor | None, answer: AccessDecision) -> AccessDecision:
        return among_those_at_work(answer, actor, self._options)

    def check_verb(self, name: str, agent: str, department: str = "") -> None:
        """Refuse a verb of ours to an agent that may not run it, as the hooks of hosts do.

        `name`: as it is typed, such as `dept update`; `agent`: empty for a person. `department`:
        the one that it names.

        Raises:
            YoloError: OUT_OF_LANE; UNKNOWN_NAME for who is no agent.
        """
        if not agent:
            return
        row = OWN_VERB_BY_NAME[name]
        if no := refuse_verb(self.actor(agent), name, row, department):
            raise YoloError(Reason.OUT_OF_LANE, no.rule, hint=no.instead)

    def everybody(self) -> Iterator[Actor]:
        """Yield every agent of the active departments."""
        options = self._options
        for name in AGENT_BY_NAME:
            actor = find_actor(name, None, mode_of(options))
            if actor.department is None or actor.department in options.departments:
                yield actor

    def read(self, actor: Actor | None, path: str, work: str = "") -> AccessDecision:
        """Return whether an actor may read a path, absolute or relative to the caller's directory.

        `actor`: None for a caller that has not identified itself.
        """
        target = self.target(path, by_name=True)
        if target is None:
            return outside(actor, safe(path))
        if actor is None:
            return self._at_work(None, may_anybody_read(target, self.everybody()))
        return self._at_work(actor, may_read(actor, target, work))

    def write(self, actor: Actor | None, path: str, plan: str = "") -> AccessDecision:
        """Return whether an actor may write a path.

        `actor`: None for a caller that has not identified itself. `plan`: the plan they work on;
        empty for the department's active plan and every other open one, since the plans of a wave
        run at once.

        Raises:
            YoloError: UNKNOWN_NAME when there is no such plan.
        """
        target = self.target(path)
        if target is None:
            return outside(actor, safe(path))
        if row := self.guarded(target.path):
            rule = f"{safe(target.path)} is {row.what}. Instead: {row.instead}."
            return AccessDecision(False, rule)
        if actor is None:
            return self._at_work(None, may_anybody_write(target, self._options.departments))
        return self._at_work(actor, self._write(actor, target, plan))

    def _write(self, actor: Actor, target: Target, plan: str) -> AccessDecision:
        if target.is_planning:
            return may_write(actor, target)
        first = may_write(actor, target, self.active_plan(actor.department, plan))
        if first.allowed or plan:
            return first
        others = (
            may_write(actor, target, open_plan) for open_plan in self._open_plans(actor, target)
        )
        return next((decision for decision in others if decision.allowed), first)

    def guarded(self, path: str) -> Guarded | None:
        """Return the row of a file that only a command writes, else None.

        A state file has a row only where the daemon derives it from history.
        """
        row = guarded(path)
        return None if row and row.is_state and not self._is_kept(path) else row

    def _is_kept(self, path: str) -> bool:
        """Return whether the daemon maintains a state file; otherwise the team creates it."""
        wanted = self._settings.policy.state_files if self._settings else "never"
        if wanted == "never":
            return False
        if os.path.lexists(os.path.join(self._own.root, path)):
            return True
        several = self._options.several_departments
        return (wanted in ("kept", "always") or several) and path != RUNNING

    def _open_plans(self, actor: Actor, target: Target) -> Iterator[ActivePlan]:
        """Yield the open, unblocked plans that list the target or a folder that holds it."""
        for facts in self.facts:
            progress = {status.id: status for status in plan_progress(facts, actor.department)}
            for plan in plans_of(facts, actor.department):
                is_open = (
                    progress[plan.id].standing is not PlanStanding.COMPLETE
                    and not progress[plan.id].blocked_by
                )
                if is_open and any(
                    f"{target.path}/".startswith(f"{file.rstrip('/')}/") for file in plan.files
                ):
                    yield ActivePlan(plan.id, plan.files)

    def target(self, path: str, *, by_name: bool = False) -> Target | None:
        """Return the target that a path resolves to; None if it is outside of the repository.

        `by_name`: a bare name of the protocol, such as `architecture.toon`, stands for every file
        of that name.
        """
        if path == GIT_DIFF:
            return Target(GIT_DIFF)
        root = os.path.realpath(self._own.root)
        full = os.path.realpath(os.path.join(self._start or root, path))
        if full != root and not full.startswith(root + os.sep):
            return None
        relative = os.path.relpath(full, root).replace(os.sep, "/")
        if by_name and not os.path.lexists(full):
            relative = _resolve_artifact_name(relative)
        return Target(
            relative, frozenset() if relative.startswith(f"{PLANNING_ROOT}/") else self._tests
        )

    def active_plan(self, department: Dept | None, plan: str = "") -> ActivePlan | None:
        """Return the named plan, else the department's first that is neither done nor blocked."""
        from yolo_fs.phase.phase import Phase

        if plan:
            return self._plan_named(plan, department)
        for facts in self.facts:
            if Phase(facts).is_complete:
                continue
            progress = {status.id: status for status in plan_progress(facts, department)}
            for own_plan in plans_of(facts, department):
                if progress[own_plan.id].standing in _OPEN and not progress[own_plan.id].blocked_by:
                    return ActivePlan(own_plan.id, own_plan.files)
        return None

    def _plan_named(self, name: str, department: Dept | None) -> ActivePlan:
        """Return the plan of a number; where several departments have it, that of `department`."""
        wanted = PlanId.parse(name)
        named = [plan for plan in self._plans() if plan.id == wanted]
        for plan in sorted(named, key=lambda plan: plan.department != department):
            return ActivePlan(plan.id, plan.files)
        known = ", ".join(str(known_plan.id) for known_plan in self._plans())
        hint = f"Known plans: {known or 'none'}."
        raise YoloError(Reason.UNKNOWN_NAME, f"no plan {safe(name)!r}", hint=hint)

    def _plans(self) -> Iterator[Plan]:
        for facts in self.facts:
            yield from plans_of(facts)

    @cached_property
    def facts(self) -> tuple[PhaseFacts, ...]:
        """The facts of every phase at the current tip of the branch."""
        from yolo_fs.history.facts_reader import FactsReader

        assert self._settings is not None
        facts_reader = self._facts_reader or FactsReader(self._own, self._settings)
        return facts_reader.facts(self._own.head().tip)

    @cached_property
    def _tests(self) -> frozenset[str]:
        lines = (line for facts in self.facts for line in facts.lines_of("test-plan"))
        return frozenset(path for line in lines for path in paths_in(line.get("tf")))

    @property
    def _own(self) -> Repository:
        if self._repository is None:
            raise YoloError(Reason.NOT_A_REPOSITORY)
        return self._repository


_OPEN = (
    PlanStanding.PENDING,
    PlanStanding.RUNNING,
    PlanStanding.CLAIMED,
    PlanStanding.PARTIAL,
    PlanStanding.FAILED,
)


def _resolve_artifact_name(name: str) -> str:
    """Return a path where an artifact of that name would lie, or the name itself if there is
    none.
    """
    places = (f"{PLANNING_ROOT}/{name}", f"{PLANNING_ROOT}/phases/00-any/{name}")
    return next((path for path in places if "/" not in name and classify(path)), name)


def out_of_lane(facts: PhaseFacts) -> tuple[Finding, ...]:
    """Return the decisions and handoffs of a phase that its agents were not allowed to make."""
    decided = tuple(decisions_out_of_lane(facts))
    if not facts.of_kind("dept-handoff"):
        return decided
    from yolo_fs.authority.message_routes import routes_broken

    return (*decided, *routes_broken(facts))
