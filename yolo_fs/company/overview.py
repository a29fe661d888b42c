"""The agents at work and the cost of each run, for `company runs`, `status`, the page and the
report alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from yolo_fs.company.agents import found_in
from yolo_fs.company.runs import Run, RunAct, runs
from yolo_fs.core.reasons import YoloError, safe
from yolo_fs.core.timestamps import iso
from yolo_fs.git.repository import Repository
from yolo_fs.phase.report import Item, ReportSection, listed
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.system.lock import holder
from yolo_fs.workspace.own_files import company_lock_path

CompanyNow = Mapping[str, Sequence[Mapping[str, Any]]]
"""What goes on now: see `now_of`."""


def overview(repository: Repository, phase: str = "") -> list[dict[str, Any]]:
    """Return the stored runs, oldest first, each with its acts and its bill.

    `phase`: name of a phase directory to select; empty for all. An act has the `pid` of its agent
    while that is at work; a run `goes_on` while its runner or an agent of it is at work.

    Raises:
        YoloError: what keeps them is damaged.
    """
    known = runs(repository)
    is_run = bool(known) and holder(company_lock_path(repository)) is not None
    return [
        _as_json(repository, run, has_runner=is_run and run is known[-1])
        for run in known
        if phase in ("", run.phase)
    ]


def now_of(listed: Iterable[Mapping[str, Any]]) -> CompanyNow:
    """Return of an overview what goes on now: `runs`, each with its bill so far, and `at_work`,
    the acts whose agents are at work.
    """
    on = [run for run in listed if run["goes_on"]]
    return {
        "runs": [{key: run[key] for key in _HEAD} for run in on],
        "at_work": [{"run": run["id"], **act} for run in on for act in run["acts"] if act["pid"]],
    }


def at_work_section(repository: Repository) -> ReportSection | None:
    """Return who is at work now, as a part of a brief; None where nobody is, or nothing can be
    read.
    """
    with suppress(YoloError):
        acts = now_of(overview(repository))["at_work"]
        return listed("at_work", "Agents of the run at work now", map(_as_item, acts))
    return None


def _as_item(act: Mapping[str, Any]) -> Item:
    keys = ("agent", "department", "step", "task", "tool", "tokens", "cost_usd")
    data = {key: act[key] for key in keys} | {"since": iso(act["started"])}
    return safe(f"{act['agent']}: {act['task'] or act['step']}, since {data['since']}"), data


_HEAD = (
    "id", "phase", "intent", "host", "started", "tokens", "cost_usd", "by_role", "by_step",
)  # fmt: skip


def _as_json(repository: Repository, run: Run, *, has_runner: bool) -> dict[str, Any]:
    acts = []
    for act, value in zip(run.acts, run.as_json()["acts"], strict=True):
        process = None if act.ended else found_in(run.folder(repository, act))
        pid = process.pid if process and process.is_alive else None
        acts.append({**value, "pid": pid})
    bills = {"by_role": _bill(run, "agent"), "by_step": _bill(run, "step")}
    goes_on = run.ended is None and (has_runner or any(act["pid"] for act in acts))
    return {**run.as_json(), "goes_on": goes_on, "acts": acts, **bills}


def _bill(run: Run, key: str) -> dict[str, dict[str, Any]]:
    """Return starts, tokens and cost for each value of a key; of a role its budget as well."""
    bill: dict[str, dict[str, Any]] = {}
    for act in run.acts:
        row = bill.setdefault(getattr(act, key), _empty(act, key))
        row["starts"] += 1
        row["tokens"] += act.tokens
        row["cost_usd"] = round(row["cost_usd"] + act.cost_usd, 6)
    return bill


def _empty(act: RunAct, key: str) -> dict[str, Any]:
    row: dict[str, Any] = {"starts": 0, "tokens": 0, "cost_usd": 0.0}
    agent = AGENT_BY_NAME.get(act.agent) if key == "agent" else None
    return row | {"budget": agent.token_budget} if agent else row
