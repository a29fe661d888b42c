"""The agents at work and the cost of each run, for `company runs`, `status`, the page and the
report alike.
"""

from __future__ import annotations

from typing import Any

from yolo_fs.company.agents import found_in
from yolo_fs.company.runs import Run, RunAct, runs
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.roster import AGENT_BY_NAME


def overview(repository: Repository, phase: str = "") -> list[dict[str, Any]]:
    """Return the stored runs, oldest first, each with its acts and its bill.

    `phase`: name of a phase directory to select; empty for all.

    Raises:
        YoloError: what keeps them is damaged.
    """
    wanted = (run for run in runs(repository) if phase in ("", run.phase))
    return [_as_json(repository, run) for run in wanted]


def _as_json(repository: Repository, run: Run) -> dict[str, Any]:
    acts = []
    for act, value in zip(run.acts, run.as_json()["acts"], strict=True):
        process = None if act.ended else found_in(run.folder(repository, act))
        pid = process.pid if process and process.is_alive else None
        acts.append({**value, "pid": pid})
    bills = {"by_role": _bill(run, "agent"), "by_step": _bill(run, "step")}
    return {**run.as_json(), "acts": acts, **bills}


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
