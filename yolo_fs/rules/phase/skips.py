"""Which rule skips a step: each member of `Skip` bound to its predicate.

See docs/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from yolo_fs.protocol.workflow import COMPLEXITIES, Skip, Step
from yolo_fs.rules.phase.failures import failures_of
from yolo_fs.rules.phase.view import View

DECLARED_SKIP = "declared: "
"""Begins the rule of a skip that no table decides, such as `--skip-qa` of one run: only the execution state tells."""
BY_RULE = "rule: "
"""Begins the reason that the execution state gives for a skip by the tables."""


def skip_rule(view: View, step: Step) -> str:
    """Return the rule that skips the step, as the tables print it; empty when none does."""
    if step.mandatory and not _outside_route(view, step):
        return ""
    if any(failures_of(view.facts, step.key, view.department)):
        return ""
    by_row = next((skip for skip in step.skips if SKIPS[skip](view, step)), None)
    if by_row is not None:
        return by_row.value
    if not step.mandatory and (reason := _declared(view, step)) is not None:
        return DECLARED_SKIP + reason
    return f"complexity {view.facts.switches.complexity}" if _outside_route(view, step) else ""


def _outside_route(view: View, step: Step) -> bool:
    """Tell whether the complexity routing of this phase leaves the step out."""
    complexity = view.facts.switches.complexity
    route = next((row for row in COMPLEXITIES if row.name == complexity), None)
    return route is not None and step.key not in route.runs + route.inline


def _declared(view: View, step: Step) -> str | None:
    """Return the reason why the committed execution state skips the step, where a person or an agent decided so."""
    steps = view.facts.execution_state().get("steps")
    entry = steps.get(step.key) if isinstance(steps, dict) else None
    if not isinstance(entry, dict) or entry.get("status") != "skipped":
        return None
    reason = str(entry.get("reason", ""))
    return None if reason.startswith(BY_RULE) else reason


def _output_exists(view: View, step: Step) -> bool:
    """The artifact is there, though it does not meet the step's exit gate (`critique.jsonl` without `cf`)."""
    return any(view.of_step(step))


def _no_task_has_ts(view: View, _: Step) -> bool:
    tasks = [task for plan in view.plan_files for task in plan.tasks]
    return bool(tasks) and not any(task.get("ts") for task in tasks)


SKIPS: Mapping[Skip, Callable[[View, Step], bool]] = {
    Skip.TURBO: lambda view, _: view.config.effort == "turbo",
    Skip.FAST: lambda view, _: view.config.effort == "fast",
    Skip.EXISTS: _output_exists,
    Skip.NO_TS: _no_task_has_ts,
    Skip.SKIP_QA: lambda view, _: view.facts.switches.skip_qa,
    Skip.SKIP_SECURITY: lambda view, _: view.facts.switches.skip_security,
    Skip.CONFIG: lambda view, _: view.config.documenter == "never",
    Skip.PO_OFF: lambda view, _: not view.config.po.enabled,
    Skip.CRITIQUE_OFF: lambda view, _: not view.config.critique.enabled,
    Skip.SECURITY_OFF: lambda view, _: not view.config.security_audit,
    Skip.INTEGRATION_OFF: lambda view, _: (
        not view.facts.switches.several_departments and not view.config.integration_gate.enabled
    ),
}
