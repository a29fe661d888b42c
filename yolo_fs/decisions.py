"""Decisions that serve as evidence: records with fields, appended to `decisions.jsonl` by an agent
with that authority. Free text is never interpreted as a decision.

See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any, NamedTuple

from yolo_fs.artifacts.records import keeps_records, name_of
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.core.reasons import Exit, Reason, YoloError, safe, shortened
from yolo_fs.core.timestamps import iso
from yolo_fs.evidence.facts import PhaseFacts, plans_of
from yolo_fs.phase.approvals import approved_thing
from yolo_fs.protocol.decisions import ACCEPT, ACCEPT_RISK, APPROVE, ASSIGN, SUPERSEDE
from yolo_fs.protocol.departments import Role, name_in
from yolo_fs.protocol.gates import APPROVAL_GATE_BY_KEY
from yolo_fs.system.in_place import appending
from yolo_fs.system.readers import read_lines
from yolo_fs.system.store import make_folders
from yolo_fs.system.text_checks import Limits

LOG = "decisions.jsonl"


class DecisionMade(NamedTuple):
    """A decision and its place."""

    path: str
    """Relative to the repository."""
    line: int
    record: dict[str, Any]
    already: bool
    """Whether it was already there, identical except for its time."""


def accept_plan(facts: PhaseFacts, plan: str, agent: str) -> dict[str, str]:
    """Return the fields with which the Lead of a plan's department accepts the plan with known
    issues.

    Raises:
        YoloError: UNKNOWN_NAME when the phase has no such plan; OUT_OF_LANE when somebody else
            decides.
    """
    plans = [phase_plan for phase_plan in plans_of(facts) if str(phase_plan.id) == plan]
    leads = {name_in(Role.LEAD, phase_plan.department) for phase_plan in plans}
    if not plans:
        known = ", ".join(str(phase_plan.id) for phase_plan in plans_of(facts)) or "none"
        raise YoloError(
            Reason.UNKNOWN_NAME,
            f"phase {facts.phase} has no plan {safe(plan)!r}",
            hint=f"Its committed plans: {known}.",
        )
    if agent not in leads:
        raise _out_of_lane(agent, f"plan {plan}", " or ".join(sorted(leads)))
    return {"agent": agent, "dec": f"accept {plan} with known issues", "kind": ACCEPT, "of": plan}


def accept_risk(facts: PhaseFacts, department: str, agent: str) -> dict[str, str]:
    """Return the fields with which the user accepts the findings of a department's security audit.

    Raises:
        YoloError: UNKNOWN_NAME, OUT_OF_LANE.
    """
    _check_department(facts, department)
    if agent != Role.USER:
        raise _out_of_lane(agent, "a security FAIL", "the user")
    dec = f"accept the risks that security found in {department}"
    return {"agent": agent, "dec": dec, "kind": ACCEPT_RISK, "of": department}


def approve(facts: PhaseFacts, gate: str, department: str, agent: str) -> dict[str, str]:
    """Return the fields with which the user lets a department's work go on at an approval gate.

    Raises:
        YoloError: UNKNOWN_NAME, OUT_OF_LANE.
    """
    _check_department(facts, department)
    row = APPROVAL_GATE_BY_KEY[gate]
    if agent != Role.USER:
        raise _out_of_lane(agent, f"approval_gates.{gate}", "the user")
    dec = f"{row.asks} ({department})"
    return {"agent": agent, "dec": dec, "kind": APPROVE, "of": approved_thing(department, row)}


def assign(facts: PhaseFacts, task: str, agent: str) -> dict[str, str]:
    """Return the fields with which the Lead of a task's department orders it again, after a FAIL.

    Raises:
        YoloError: UNKNOWN_NAME when the phase has no such task; OUT_OF_LANE.
    """
    tasks: dict[str, list[str]] = {}
    for plan in plans_of(facts):  # two departments may have a task of one name
        for line in plan.tasks:
            leads = tasks.setdefault(f"{plan.id}/{line.get('id')}", [])
            leads.append(name_in(Role.LEAD, plan.department))
    if task not in tasks:
        raise YoloError(
            Reason.UNKNOWN_NAME,
            f"phase {facts.phase} has no task {safe(task)!r}",
            hint=f"Its committed tasks: {', '.join(sorted(tasks)) or 'none'}.",
        )
    if agent not in tasks[task]:
        raise _out_of_lane(agent, f"task {task}", " or ".join(tasks[task]))
    return {
        "agent": agent,
        "dec": f"{task} is done again",
        "kind": ASSIGN,
        "of": task,
        "task": task,
    }


def supersede(facts: PhaseFacts, place: ArtifactPath, record: str, agent: str) -> dict[str, str]:
    """Return the fields with which a writer of an artifact permits the removal of a record.

    Raises:
        YoloError: STATE_CONFLICT for a kind whose records never go, UNKNOWN_NAME for a record that
            the branch does not have.
    """
    if place.artifact.append_only or not keeps_records(place.artifact):
        why = "is written as a whole each time: nobody has to give a record up"
        hint = "Write it without that record."
        if place.artifact.append_only:
            why = "only grows: none of its records can be withdrawn"
            hint = f"'yolo-fs fix --write {place.path}' brings back what is missing."
        raise YoloError(
            Reason.STATE_CONFLICT,
            f"{place.name} {why}",
            hint=hint,
            exit_code=Exit.USAGE,
        )
    here = [artifact for artifact in facts.committed if artifact.place.path == place.path]
    lines = (line for artifact in here for line in artifact.lines)
    names = [name for line in lines if (name := name_of(place.artifact, line))]
    if record not in names and all(artifact.valid for artifact in here):
        check = f"'yolo-fs validate {place.path}'"
        raise YoloError(
            Reason.UNKNOWN_NAME,
            f"{place.name} of the branch has no record {safe(record)!r}",
            hint=f"Its records: {shortened(map(safe, names), 8, shown_by=check) or 'none'}.",
        )
    dec = f"{record} of {place.name} is no longer needed"
    return {"agent": agent, "dec": dec, "kind": SUPERSEDE, "of": f"{place.name}:{record}"}


def _check_department(facts: PhaseFacts, department: str) -> None:
    departments = [dept.value for dept in facts.options.departments]
    if department not in departments:
        raise YoloError(
            Reason.UNKNOWN_NAME,
            f"no department {safe(department)!r} works here",
            hint=f"Those that do: {', '.join(departments)}.",
        )


def _out_of_lane(agent: str, of: str, whose: str) -> YoloError:
    message = f"{safe(agent)} does not decide on {of}: {whose} does"
    return YoloError(Reason.OUT_OF_LANE, message, hint=f"Ask {whose}.", exit_code=Exit.USAGE)


def record_decision(
    root: str, folder: str, fields: dict[str, str], reason: str, now: datetime
) -> DecisionMade:
    """Append a decision to the phase's log, once; the daemon commits it.

    `folder`: the phase's, relative to the repository.

    Raises:
        YoloError: LOCK_TIMEOUT, UNTERMINATED, NO_SPACE, STORAGE_FAILED, NOT_REGULAR, PATH_ESCAPES.
    """
    path = f"{folder}/{LOG}"
    full, limits = os.path.join(root, path), Limits()
    make_folders(os.path.dirname(full), root=root)
    with appending(full, root=root) as log:
        before = log.read(limits.max_file_bytes)
        records = [entry.value for entry in read_lines(before, path, limits).records]
        same = [
            number
            for number, entry in enumerate(records, 1)
            if {key: entry.get(key) for key in (*fields, "reason")} == {**fields, "reason": reason}
        ]
        if same and same[-1] == len(records):
            return DecisionMade(path, same[-1], dict(records[same[-1] - 1]), already=True)
        record = {"ts": iso(now.timestamp()), **fields, "reason": reason}
        log.add_record(record)
    return DecisionMade(path, len(records) + 1, record, already=False)
