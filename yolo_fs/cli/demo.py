"""`yolo-fs demo`: a run of the company in a temporary repository, with scripted agents."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence

import click

from yolo_fs.cli.go import RunDaemon, interrupted_by, screen_for, signs_of
from yolo_fs.cli.reply import Invocation, Reply, console_for, verb
from yolo_fs.company.hosts import hosts_for
from yolo_fs.company.phase_of import chosen_phase
from yolo_fs.company.runner import Runner, RunOutcome, RunResult
from yolo_fs.company.runs import RunOptions
from yolo_fs.core.reasons import Exit, Finding, Reason
from yolo_fs.demo.shop import AGENT, INTENT, DemoProof, commits, history, prove, temporary_shop
from yolo_fs.git.repository import Repository
from yolo_fs.git.runner import Git
from yolo_fs.workspace.settings import load

_PACE_S = 0.1
"""Seconds that each agent pauses at a speed of 1, for the viewer only."""
NEXT = (
    ("init", "make a repository of yours ready"),
    ("go", "run the company in it: docs/company.md"),
    ("status", "see the state of the team"),
)


@verb("demo", example="yolo-fs demo --keep")
@click.option("--keep", is_flag=True, help="Keep the temporary repository and print its path.")
@click.option(
    "--speed",
    type=click.FloatRange(0.1, 100),
    default=1.0,
    show_default=True,
    help="How fast the agents think.",
)
@click.option("--play", hidden=True, expose_value=False)  # one version long: there is one play
def demo(invocation: Invocation, *, keep: bool, speed: float) -> Reply:
    """Watch the company run: three departments, from an intent to the sign-off.

    It is 'yolo-fs go' with agents that follow a script; the runner, the daemon and the rules are
    real. It uses a temporary repository and removes it at the end. Exit 1 when the phase is not
    shipped.
    """
    Git(os.curdir).refuse_old()
    with temporary_shop(keep=keep, pace_s=_PACE_S / speed) as root:
        result = _run(invocation, root)
        proofs: tuple[DemoProof, ...] = ()
        if result.outcome is RunOutcome.SHIPPED:
            proofs = tuple(prove(root))
        data = {
            "run": result.run.id,
            "outcome": result.outcome.value,
            "acts": len(result.run.acts),
            "commits": list(commits(root)),
            "proofs": [{"claim": proof.claim, "holds": proof.holds} for proof in proofs],
            "history": history(root),
            "repository": root if keep else None,
        }
    findings = _findings(result, proofs)
    code = Exit.FINDINGS if findings else Exit.DONE
    if result.outcome is RunOutcome.INTERRUPTED:
        findings, code = (), Exit.INTERRUPTED
    elif not (invocation.as_json or invocation.quiet):
        _show_end(result, proofs, root if keep else None)
    return Reply(data, findings, code)


def _run(invocation: Invocation, root: str) -> RunResult:
    with Repository(root) as repository:
        settings = load(repository.root)
        hosts = hosts_for(repository, (), AGENT)
        chosen = chosen_phase(repository, settings, INTENT, "", make=True)
        screen = screen_for(invocation, lines=False)
        daemon = RunDaemon(repository, screen.emit)
        runner = Runner(repository, settings, chosen.phase, hosts, RunOptions(), screen.emit)
        with interrupted_by(runner), daemon, screen.watching(runner):
            return runner.run(INTENT, analyze=True)


def _findings(result: RunResult, proofs: Sequence[DemoProof]) -> tuple[Finding, ...]:
    broken = [
        Finding(
            Reason.INTERNAL_ERROR, message=proof.evidence or "it does not", expected=proof.claim
        )
        for proof in proofs
        if not proof.holds
    ]
    stopped = [Finding(Reason.STATE_CONFLICT, message=why) for why in result.given_up]
    if result.outcome is not RunOutcome.SHIPPED and not stopped:
        stopped = [Finding(Reason.STATE_CONFLICT, message=result.outcome.value)]
    return (*broken, *stopped)


def _find_program() -> str:
    """Return the command that runs this program: `yolo-fs` may not be on the PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "yolo-fs")
    if shutil.which("yolo-fs") or not os.access(beside, os.X_OK):
        return "yolo-fs"
    is_below = beside.startswith(f"{os.getcwd()}/")
    return shlex.quote(os.path.relpath(beside) if is_below else beside)


def _show_end(result: RunResult, proofs: Sequence[DemoProof], kept: str | None) -> None:
    console = console_for(sys.stdout)
    signs = signs_of(sys.stdout)
    agents = {act.agent for act in result.run.acts}
    summary = f"{len(result.run.acts)} acts by {len(agents)} agents"
    console.print(f"\n{result.outcome.value}: {summary}", style="bold")
    for proof in proofs:
        console.print(f"  {signs['done'] if proof.holds else signs['failed']} {proof.claim}")
    console.print("\nNext", style="bold")
    program = _find_program()
    width = len(program) + 9
    for command, does in NEXT:
        console.print(f"  {f'{program} {command}':{width}}{does}", soft_wrap=True)
    if kept:
        console.print(f"\nThe repository is {kept}.")
    else:
        console.print("'yolo-fs demo --keep' keeps the repository.")
