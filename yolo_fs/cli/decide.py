"""`yolo-fs decide`: decisions that evidence rests on, as records that say what they decide."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import click

from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.edges.git.repository import Repository
from yolo_fs.protocol.departments import Role
from yolo_fs.protocol.roster import plain_name
from yolo_fs.reasons import safe
from yolo_fs.rules.evidence import PhaseFacts
from yolo_fs.services.decisions import DecisionMade, accept_plan, accept_risk, record_decision
from yolo_fs.services.history.team import Team
from yolo_fs.services.progress.workflow import phase_named
from yolo_fs.services.workspace import load


@click.group("decide", short_help="decisions that open a step: accept a plan, accept a risk")
def decide() -> None:
    """Record a decision on which the evidence rests.

    A sentence in `decisions.jsonl` is a remark; what these commands append has fields, and only
    those count.
    """


_PHASE = click.option(
    "--phase", default="", help="Number or directory name; the one that is worked on by default."
)
_REASON = click.option("--reason", required=True, help="Why, in a sentence.")
_AS = click.option("--as", "agent", required=True, help="Who decides, such as lead.")


@verb("accept", example="yolo-fs decide accept 01-02 --as lead --reason 'rare'", parent=decide)
@click.argument("plan")
@_AS
@_REASON
@_PHASE
def accept(asked: Invocation, *, plan: str, agent: str, reason: str, phase: str) -> Reply:
    """Let a plan pass its code review with known issues, as the Lead of its department may after
    the last cycle.
    """
    return _decide(asked, phase, reason, lambda facts: accept_plan(facts, plan, plain_name(agent)))


@verb(
    "accept-risk",
    example="yolo-fs decide accept-risk backend --reason 'behind a VPN'",
    parent=decide,
)
@click.argument("department")
@_REASON
@_PHASE
def accept_risk_(asked: Invocation, *, department: str, reason: str, phase: str) -> Reply:
    """Accept what the security audit of a department has found, as the user may; Security then
    audits again.
    """
    return _decide(asked, phase, reason, lambda facts: accept_risk(facts, department, Role.USER))


def _decide(
    asked: Invocation, spelled: str, reason: str, decide: Callable[[PhaseFacts], dict[str, str]]
) -> Reply:
    with Repository(asked.start) as repository:
        settings = load(repository.root)
        phase = phase_named(repository, settings, Team(repository, settings), spelled)
        fields = decide(phase.facts)
        made = record_decision(
            repository.root, phase.facts.folder, fields, reason, datetime.now(UTC)
        )
    return Reply(made, show=lambda console: console.print(_sentence(made)))


def _sentence(made: DecisionMade) -> str:
    said = "stands already" if made.already else "is written; the daemon commits it"
    return safe(f"{made.record['agent']}: {made.record['dec']} ({made.path}:{made.line}) {said}")
