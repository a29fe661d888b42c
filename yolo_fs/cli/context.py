"""`yolo-fs context`: the compiled context of an agent, and the proof of each of its lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.cli.reply import PHASE, Invocation, Reply, verb
from yolo_fs.contexts.compiler import CompiledContext
from yolo_fs.contexts.store import ContextAudit, ContextStore, StoredContext
from yolo_fs.core.ids import PhaseId, PlanId, spelled_below
from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.protocol.contexts import Cut
from yolo_fs.workspace.planning_tree import find_phase, folder_of
from yolo_fs.workspace.settings import load

if TYPE_CHECKING:
    from rich.console import Console


@click.group(epilog="Example:  yolo-fs context compile fe-dev --phase 1")
def context() -> None:
    """Compile the context of an agent: only what its role may see, within its budget.

    `.ctx-{role}.toon` is in the directory of the phase and is never committed. The daemon and
    `resume` update existing contexts.
    """


@verb("compile", example="yolo-fs context compile dev --plan 01-02", parent=context)
@click.argument("role", required=False)
@PHASE
@click.option(
    "--plan", metavar="NN-MM", help="Plan that it is for; default: all that are worked on."
)
@click.option("--all", "for_all", is_flag=True, help="For every agent of the active departments.")
def compile_(
    invocation: Invocation, *, role: str | None, phase: str, plan: str | None, for_all: bool
) -> Reply:
    """Write the context of ROLE, such as dev; print what was cut and what is withheld."""
    if (role is None) is not for_all:
        raise click.UsageError("name one ROLE, or use --all")
    with _contexts(invocation, phase) as (contexts, wanted, below):
        names = contexts.agents() if role is None else (role,)
        made = contexts.compile(names, wanted, _plan(plan))
    data = [
        {**_as_json(stored_context.path, stored_context.compiled), "written": stored_context.is_new}
        for stored_context in made
    ]
    return Reply(
        data if for_all else data[0], show=lambda console: _show_kept(console, made, below)
    )


@verb("prove", example="yolo-fs context prove dev --phase 1", parent=context)
@click.argument("role")
@PHASE
def prove(invocation: Invocation, *, role: str, phase: str) -> Reply:
    """Show the source of every line of a context, and check that the file on disk is exactly that.

    Exit 1 when the file is missing or older than its sources, when a line does not match its
    source, or when a source is one that the role may not read.
    """
    with _contexts(invocation, phase) as (contexts, wanted, below):
        (proof,) = contexts.prove((role,), wanted)
    code = Exit.FINDINGS if proof.findings else Exit.DONE
    return Reply(
        _proof_as_json(proof),
        proof.findings,
        code,
        lambda console: _show_proof(console, proof, below),
    )


@contextmanager
def _contexts(
    invocation: Invocation, phase: str
) -> Iterator[tuple[ContextStore, PhaseId | None, str]]:
    """Give the contexts, the phase that is named, and the folder that the asker stands in."""
    with Repository(invocation.start) as repository:
        settings = load(repository.root)
        wanted = find_phase(repository.root, phase) if phase else None
        contexts = ContextStore(repository, settings, FactsReader(repository, settings))
        yield contexts, wanted, folder_of(invocation.start, repository.root)


def _plan(spelled: str | None) -> PlanId | None:
    plan = PlanId.parse(spelled) if spelled else None
    if spelled and plan is None:
        raise YoloError(
            Reason.UNKNOWN_NAME, f"{safe(spelled)!r} is not a plan id", hint="A plan is NN-MM."
        )
    return plan


def _as_json(path: str, made: CompiledContext) -> dict[str, Any]:
    return {
        "agent": made.agent,
        "path": path,
        "tokens": made.tokens,
        "budget": made.budget,
        "cut": made.cut.label,
        "left_out": made.left_out,
        "withheld": made.withheld,
    }


def _proof_as_json(proof: ContextAudit) -> dict[str, Any]:
    lines = [
        {
            "line": number,
            "text": line.text,
            "from": [str(each) for each in line.origins],
            "rule": line.rule or None,
        }
        for number, line in enumerate(proof.compiled.lines, 1)
    ]
    return {**_as_json(proof.path, proof.compiled), "proved": not proof.findings, "lines": lines}


def _show_kept(console: Console, made: Sequence[StoredContext], below: str) -> None:
    for stored_context in made:
        _show_head(console, spelled_below(below, stored_context.path), stored_context.compiled)


def _show_head(console: Console, path: str, made: CompiledContext) -> None:
    cut = f", cut: {made.cut.label}" if made.cut is not Cut.NOTHING else ""
    console.print(safe(f"{path}  {made.tokens} of {made.budget} tokens{cut}", 400))
    for omission in made.left_out:
        console.print(safe(f"  left out of {omission.section}: {omission.what} ({omission.why})"))
    for each in made.withheld:
        console.print(safe(f"  withheld from {each.section}: {each.what}. {each.rule}", 400))


def _show_proof(console: Console, proof: ContextAudit, below: str) -> None:
    _show_head(console, spelled_below(below, proof.path), proof.compiled)
    for number, line in enumerate(proof.compiled.lines, 1):
        console.print(safe(f"{number:>4}  {line.text}", 160))
        console.print(safe(f"      from {', '.join(map(str, line.origins)) or line.rule}", 400))
