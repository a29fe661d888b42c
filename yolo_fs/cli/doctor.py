"""`yolo-fs doctor`: what is wrong, and how to mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import Exit, errors, safe
from yolo_fs.services.daemon.warm_keeper import WarmState, warm_state
from yolo_fs.services.hooks.doctor import examine_hosts
from yolo_fs.services.install.doctor import Symptom, examine_repository

if TYPE_CHECKING:
    from rich.console import Console


@verb("doctor", example="yolo-fs doctor --fix --dry-run")
@click.option("--fix", is_flag=True, help="Mend what can be mended without losing anything.")
@click.option("--dry-run", is_flag=True, help="With --fix: only say what would be done.")
def doctor(asked: Invocation, *, fix: bool, dry_run: bool) -> Reply:
    """Look at git, the planning tree, the locks, the index and the daemon, and say what is wrong.

    Nothing is ever deleted that is not provably ours, and no branch is ever moved.
    """
    with Repository(asked.start) as repository:
        hosts = map(Symptom, examine_hosts(repository, asked.start))
        symptoms = (*examine_repository(repository), *hosts)
        mended = [symptom for symptom in symptoms if fix and symptom.mend is not None]
        for symptom in mended:
            if symptom.mend is not None and not dry_run:
                symptom.mend()
        warm = warm_state(repository)
    left = symptoms if dry_run else tuple(symptom for symptom in symptoms if symptom not in mended)
    findings = [symptom.finding for symptom in left]
    data = {
        "symptoms": len(symptoms),
        "mended": [symptom.mending for symptom in mended],
        "dry_run": dry_run,
        "warm": warm,
    }
    code = Exit.FINDINGS if errors(findings) else Exit.DONE
    return Reply(
        data,
        findings,
        code,
        lambda console: _show(console, symptoms, mended, warm, dry_run=dry_run),
    )


def _show(
    console: Console,
    symptoms: tuple[Symptom, ...],
    mended: list[Symptom],
    warm: WarmState,
    *,
    dry_run: bool,
) -> None:
    if not symptoms:
        console.print("all is well", style="green")
    for symptom in mended:
        console.print(f"{'would ' if dry_run else ''}{safe(symptom.mending)}")
    if not mended and any(symptom.mend for symptom in symptoms):
        console.print("some of this can be mended: yolo-fs doctor --fix --dry-run")
    state = "answers" if warm.answers else "does not answer, so that each command starts by itself"
    console.print(f"the warm process {state}", soft_wrap=True)
    if warm.why:
        console.print(
            f"its last refusal, {safe(warm.refused_at)}: {safe(warm.why)}", soft_wrap=True
        )
