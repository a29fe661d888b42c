"""`yolo-fs decide`: decisions that serve as evidence, as records with a kind."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import click

from yolo_fs.agents.access import Access
from yolo_fs.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.authority.actors import check_agent
from yolo_fs.authority.writers import producers_of
from yolo_fs.cli.reply import PHASE, Invocation, Reply, as_agent, verb
from yolo_fs.core.ids import PlanId
from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.decisions import (
    DecisionMade,
    accept_plan,
    accept_risk,
    approve,
    assign,
    record_decision,
    supersede,
)
from yolo_fs.evidence.facts import PhaseFacts
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.progress.workflow import phase_named
from yolo_fs.protocol.departments import Role
from yolo_fs.protocol.gates import APPROVAL_GATES
from yolo_fs.protocol.roster import plain_name
from yolo_fs.workspace.planning_tree import phases_in
from yolo_fs.workspace.settings import load


@click.group("decide")
def decide() -> None:
    """Record a decision that counts as evidence.

    A sentence in `decisions.jsonl` is only a remark; these commands append decisions with fields,
    which count.
    """


_REASON = click.option("--reason", required=True, help="Why, in a sentence.")
_AS = as_agent("Who decides, such as lead.", required=True)


@verb("accept", example="yolo-fs decide accept 01-02 --as lead --reason 'rare'", parent=decide)
@click.argument("plan")
@_AS
@_REASON
@PHASE
def accept(invocation: Invocation, *, plan: str, agent: str, reason: str, phase: str) -> Reply:
    """Let a plan pass its code review with known issues. Only the Lead of its department may,
    after the last cycle.
    """
    by = _known(agent)
    spelled = phase or _phase_of(plan)
    return _decide(invocation, spelled, reason, lambda facts: accept_plan(facts, plan, by))


@verb(
    "accept-risk",
    example="yolo-fs decide accept-risk backend --reason 'behind a VPN'",
    parent=decide,
)
@click.argument("department")
@_REASON
@PHASE
def accept_risk_(invocation: Invocation, *, department: str, reason: str, phase: str) -> Reply:
    """Accept what the security audit of a department has found. Only the user may; Security then
    audits again.
    """
    return _decide(
        invocation, phase, reason, lambda facts: accept_risk(facts, department, Role.USER)
    )


@verb(
    "approve",
    example="yolo-fs decide approve code_review backend --reason 'read it'",
    parent=decide,
)
@click.argument("gate", type=click.Choice([row.key for row in APPROVAL_GATES]))
@click.argument("department")
@_REASON
@PHASE
def approve_(
    invocation: Invocation, *, gate: str, department: str, reason: str, phase: str
) -> Reply:
    """Approve a department's work where `approval_gates` of the configuration requires a person:
    after its code review, at a FAIL of QA, or at a WARN of Security.
    """
    return _decide(
        invocation, phase, reason, lambda facts: approve(facts, gate, department, Role.USER)
    )


@verb("assign", example="yolo-fs decide assign 01-02/T1 --as lead --reason 'QA'", parent=decide)
@click.argument("task")
@_AS
@_REASON
@PHASE
def assign_(invocation: Invocation, *, task: str, agent: str, reason: str, phase: str) -> Reply:
    """Have a task done again after a FAIL of QA. Only the Lead of its department may; the Senior
    then specifies it again.
    """
    by = _known(agent)
    spelled = phase or _phase_of(task)
    return _decide(invocation, spelled, reason, lambda facts: assign(facts, task, by))


@verb(
    "supersede",
    example="yolo-fs decide supersede critique.jsonl C3 --as critic --reason 'same as C1'",
    parent=decide,
)
@click.argument("file")
@click.argument("record")
@_AS
@_REASON
@PHASE
def supersede_(
    invocation: Invocation, *, file: str, record: str, agent: str, reason: str, phase: str
) -> Reply:
    """Mark a RECORD of a FILE, named by its id, as no longer needed. Only a writer of the file may.
    A version without the record is then no longer held as records_lost.
    """
    by = _known(agent)

    def fields(facts: PhaseFacts) -> dict[str, str]:
        folder, _, name = file.rpartition("/")
        place = classify(f"{facts.folder}/{name}") or classify(f"{PLANNING_ROOT}/{name}")
        if place is None or not f"/{place.path}".endswith(f"/{file.removeprefix('./')}"):
            which = f"no artifact of {facts.folder}" if folder else "no artifact of a phase"
            raise YoloError(
                Reason.UNKNOWN_NAME,
                f"{safe(file)!r} is {which}",
                hint="'yolo-fs status' lists the files that are held; --phase names the phase.",
            )
        made = supersede(facts, place, record, by)
        with Repository(invocation.start) as repository:
            settings = load(repository.root)
            access = Access(repository, settings, FactsReader(repository, settings))
            actor = access.actor(agent)
            may_write = access.write(actor, place.path)
        if actor.role not in producers_of(place.artifact.kind) and not may_write.allowed:
            hint = f"Ask {', '.join(may_write.ask)}." if may_write.ask else ""
            raise YoloError(Reason.OUT_OF_LANE, may_write.rule, hint=hint)
        return made

    place = classify(file.removeprefix("./"))
    with Repository(invocation.start) as repository:
        is_there = place is not None and place.phase in phases_in(repository.root)
    spelled = str(place.phase) if place and is_there else ""
    return _decide(invocation, phase or spelled, reason, fields)


def _phase_of(named: str) -> str:
    """Return the phase that the name of a plan or a task begins with; empty for any other text."""
    plan = PlanId.parse(named.partition("/")[0])
    return plan.phase if plan else ""


def _known(agent: str) -> str:
    check_agent(agent)
    return plain_name(agent)


def _decide(
    invocation: Invocation,
    spelled: str,
    reason: str,
    decide: Callable[[PhaseFacts], dict[str, str]],
) -> Reply:
    with Repository(invocation.start) as repository:
        phase = phase_named(FactsReader(repository, load(repository.root)), spelled)
        fields = decide(phase.facts)
        made = record_decision(
            repository.root, phase.facts.folder, fields, reason, datetime.now(UTC)
        )
    return Reply(made, show=lambda console: console.print(_sentence(made)))


def _sentence(made: DecisionMade) -> str:
    state = "is recorded already" if made.already else "is written; the daemon commits it"
    return safe(f"{made.record['agent']}: {made.record['dec']} ({made.path}:{made.line}) {state}")
