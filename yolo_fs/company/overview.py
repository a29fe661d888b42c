"""The agents at work and the cost of each run, for `company runs`, `status`, the page and the
report alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from yolo_fs.company.agents import found_in
from yolo_fs.company.runs import Run, RunAct, runs
from yolo_fs.core.reasons import YoloError, counted, safe
from yolo_fs.core.timestamps import iso
from yolo_fs.git.repository import Repository
from yolo_fs.phase.report import Item, ReportSection, listed
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.system.lock import holder
from yolo_fs.workspace.own_files import company_lock_path

_BILLS = {"by_role": "agent", "by_step": "step", "by_host": "host"}
"""Name of a bill → the key of an act by which it adds up."""


def lines_of_costs(listed: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what each run of an overview has cost, their sum, and the bill of all of them."""
    for run in listed:
        hosts = dict.fromkeys(act["host"] for act in run["acts"]) or (run["host"],)
        yield f"{run['id']} ({', '.join(hosts)}): {_spelled(run, len(run['acts']))}"
    if listed:
        bill = {name: _sum([run[name] for run in listed]) for name in _BILLS}
        total = _added(bill["by_step"].values())
        yield f"all runs: {_spelled(total, total['starts'])}"
        yield from lines_of_bill(bill)


def lines_of_bill(run: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each role and step of a bill, and for each host where there are several; a
    role has the budget of its context beside it, in tokens, as the roster gives it to each start.
    """
    for name, key in _BILLS.items():
        if key == "host" and len(run[name]) < 2:
            continue
        for value, row in run[name].items():
            budget = f" (context budget {row['budget']})" if "budget" in row else ""
            yield f"{name.removeprefix('by_')} {value}: {_spelled(row, row['starts'])}{budget}"


def _spelled(row: Mapping[str, Any], starts: int) -> str:
    return f"{counted(starts, 'start')}, {row['tokens']} tokens, {row['cost_usd']:.2f} USD"


def _sum(bills: Iterable[Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Return the sum of bills by the same key."""
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for bill in bills:
        for name, row in bill.items():
            rows.setdefault(name, []).append(row)
    return {name: {**same[0], **_added(same)} for name, same in rows.items()}


def _added(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums of rows of a bill."""
    known = [*rows]
    return {key: sum(row[key] for row in known) for key in ("starts", "tokens", "cost_usd")}


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


_HEAD = ("id", "phase", "intent", "host", "started", "tokens", "cost_usd", *_BILLS)


def _as_json(repository: Repository, run: Run, *, has_runner: bool) -> dict[str, Any]:
    acts = []
    for act, value in zip(run.acts, run.as_json()["acts"], strict=True):
        process = None if act.ended else found_in(run.folder(repository, act))
        pid = process.pid if process and process.is_alive else None
        acts.append({**value, "pid": pid})
    bills = {name: _bill(run, key) for name, key in _BILLS.items()}
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
