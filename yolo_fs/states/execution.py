"""`.execution-state.json` as the evidence has it.

Each transition is one write, so that it can be a commit.

Times are those of the commits that prove a step, so the same history gives the same file. What
cannot be derived (the current task, a step that is declared as begun, unknown keys) is kept as it
is. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from yolo_fs.core.timestamps import iso
from yolo_fs.escalations.fold import NextEntries, claims_of, confirmed_statuses, next_entries
from yolo_fs.evidence.facts import CommittedArtifact, PhaseFacts, section
from yolo_fs.phase.phase import Phase
from yolo_fs.phase.progress import PhaseStatus, StepStanding, StepStatus
from yolo_fs.phase.view import BY_RULE, DECLARED_SKIP
from yolo_fs.protocol.workflow import STEPS, Step
from yolo_fs.states.project import DECLARED, declared_in, derived_status, rank_of_status, renewed

LAZY = frozenset({"po", "documentation", "integration_gate", "delivery"})
"""Steps that are written only once something happened to them."""
PASSED = ("complete", "skipped")


class _Target(NamedTuple):
    """One step as the evidence has it."""

    step: Step
    status: str
    entry: Mapping[str, Any]


def next_execution_state(phase: Phase, before: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the next content of a phase's execution state; None when it matches the evidence.

    `before`: the committed content. Called again after each commit, it records one transition at a
    time.
    """
    facts, progress, old = phase.facts, phase.progress, dict(before or {})
    targets = {target.step.key: target for target in _derive_targets(phase, old)}
    written = section(old, "steps")
    escalated = next_entries(facts, before)
    due = [
        key
        for key, target in targets.items()
        if target.status in PASSED and _status(written, key) not in PASSED
    ]
    now, later = (due[:1], due[1:]) if escalated.change is None else ([], due)
    steps = {
        key: _joined(section(written, key), target)
        if key not in later
        else section(written, key) or _PENDING
        for key, target in targets.items()
        if key not in LAZY or key in written or (target.status != "pending" and key not in later)
    }
    reached = now[0] if now else str(old.get("step") or progress.step)
    fresh = _content(phase, old, targets, steps, reached, escalated)
    if now or escalated.change or renewed(before, fresh) is None:
        return renewed(before, fresh)
    return renewed(before, fresh | {"step": _running(targets) or progress.step})


def _content(
    phase: Phase,
    old: Mapping[str, Any],
    targets: Mapping[str, _Target],
    shown: Mapping[str, Any],
    reached: str,
    escalated: NextEntries,
) -> dict[str, Any]:
    facts, progress = phase.facts, phase.progress
    plans = _plans(progress)
    waves = [plan["wave"] for plan in plans if plan["status"] != "complete"]
    every = [plan["wave"] for plan in plans]
    is_over = _status(shown, "signoff") in PASSED
    first = {
        "phase": int(facts.phase.number),
        "phase_name": old.get("phase_name") or str(facts.phase),
        "status": "complete" if is_over else "running",
        "started_at": old.get("started_at") or iso(_begin(facts)),
        **({"completed_at": section(shown, "signoff").get("completed_at", "")} if is_over else {}),
        "step": reached,
        "wave": int(min(waves or every or [1])),
        "total_waves": int(max(every or [1])),
        "plans": plans,
        "steps": dict(shown),
        "escalations": [dict(entry) for entry in escalated.entries],
        **({"departments": _departments(progress)} if facts.options.several_departments else {}),
    }
    others = {
        key: value
        for key, value in old.items()
        if key not in first and key not in (DECLARED, "completed_at")
    }
    declared = declared_in(old, _claims_in(old), _derived(facts, targets, plans), rank_of_status)
    return first | others | ({DECLARED: declared} if declared else {})


def _running(targets: Mapping[str, _Target]) -> str:
    return next((key for key, target in targets.items() if target.status == "running"), "")


def _joined(before: Mapping[str, Any], target: _Target) -> dict[str, Any]:
    """Return a step's entry with what others wrote in it, while its state is unchanged."""
    if before.get("status") == target.status:
        return {**before, **target.entry}
    return {key: value for key, value in before.items() if key not in _OUTCOME} | dict(target.entry)


_PENDING = {"status": "pending"}
_OUTCOME = frozenset({"completed_at", "skipped_at", "artifact", "reason"})


def _derive_targets(phase: Phase, old: Mapping[str, Any]) -> Iterator[_Target]:
    reached = True
    for step in STEPS:
        statuses = _statuses_of(phase.progress, step)
        status = _standing(statuses, recorded_status=_status(section(old, "steps"), step.key))
        if status == "skipped" and not reached and not statuses[0].by.startswith(DECLARED_SKIP):
            status = "pending"  # a rule skips a step when its turn comes, not before
        reached = reached and (status in PASSED or not step.blocking)
        yield _Target(step, status, _entry(phase.facts, step, status, statuses))


def _statuses_of(progress: PhaseStatus, step: Step) -> list[StepStatus]:
    own = [status for status in progress.steps if status.step.key == step.key]
    steps = (status for department in progress.departments for status in department.steps)
    return own or [status for status in steps if status.step.key == step.key]


def _standing(statuses: list[StepStatus], recorded_status: str) -> str:
    standings = {status.standing for status in statuses}
    if standings <= {StepStanding.SKIPPED}:
        return "skipped"
    if standings <= {StepStanding.SKIPPED, StepStanding.COMPLETE}:
        return "complete"
    begun = standings & {StepStanding.RUNNING, StepStanding.COMPLETE}
    may_have_begun = StepStanding.READY in standings and recorded_status == "running"
    return "running" if begun or may_have_begun else "pending"


def _entry(
    facts: PhaseFacts, step: Step, status: str, statuses: list[StepStatus]
) -> dict[str, Any]:
    committed = _artifacts_of(facts, step)
    if status == "complete":
        proofs = [
            artifact for artifact in committed if artifact.commit in {each.by for each in statuses}
        ] or committed
        last = max(proofs, key=lambda artifact: artifact.at_s, default=None)
        begun = (
            {"started_at": iso(min(artifact.at_s for artifact in committed))} if committed else {}
        )
        done = {"completed_at": iso(last.at_s), "artifact": _path_in_planning(last)} if last else {}
        return {"status": status, **begun, **done}
    if status == "skipped":
        reason = statuses[0].by
        own_words = reason.removeprefix(DECLARED_SKIP)
        return {"status": status, "reason": own_words if own_words != reason else BY_RULE + reason}
    if status == "running" and committed:
        return {"status": status, "started_at": iso(min(artifact.at_s for artifact in committed))}
    return {"status": status}


def _artifacts_of(facts: PhaseFacts, step: Step) -> list[CommittedArtifact]:
    """Return the artifacts of a step; the design review changes those of the planning."""
    made_in = "planning" if step.key == "design_review" else step.key
    own = [
        artifact
        for artifact in facts.committed
        if artifact.valid and artifact.commit and artifact.place.phase
    ]
    return [artifact for artifact in own if artifact.place.artifact.step == made_in]


def _path_in_planning(artifact: CommittedArtifact) -> str:
    return artifact.place.path.partition("/")[2]


def _plans(progress: PhaseStatus) -> list[dict[str, Any]]:
    several = len(progress.departments) > 1
    return [
        {
            "id": str(plan.id),
            "title": plan.title,
            "wave": plan.wave,
            "status": "complete" if plan.is_done else "pending",
            **({"dept": department.department.value} if several else {}),
        }
        for department in progress.departments
        for plan in department.plans
    ]


def _departments(progress: PhaseStatus) -> dict[str, dict[str, str]]:
    entries = {status.department.value: derived_status(status) for status in progress.departments}
    return {
        name: {"status": entry["status"], "step": entry["step"]} for name, entry in entries.items()
    }


def _begin(facts: PhaseFacts) -> int:
    return min(
        (artifact.at_s for artifact in facts.committed if artifact.commit and artifact.place.phase),
        default=0,
    )


def _claims_in(old: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what the file claims to be done: only a claim can be ahead of the evidence."""
    if old.get("status") == "complete":
        yield "status", "complete"
    for key in section(old, "steps"):
        if (status := _status(section(old, "steps"), key)) != "pending":
            yield f"steps.{key}", status
    for plan in old.get("plans") or ():
        if isinstance(plan, dict) and plan.get("status") == "complete":
            yield f"plans.{plan.get('id')}", "complete"
    yield from claims_of(old)


def _derived(
    facts: PhaseFacts, targets: Mapping[str, _Target], plans: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    return {
        "status": "complete" if targets["signoff"].status in PASSED else "running",
        **{f"steps.{key}": target.status for key, target in targets.items()},
        **{f"plans.{plan['id']}": plan["status"] for plan in plans},
        **confirmed_statuses(facts),
    }


def _status(steps: Mapping[str, Any], key: str) -> str:
    return str(section(steps, key).get("status", "pending"))
