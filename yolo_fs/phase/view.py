"""A phase as one department sees it: its own artifacts, the shared ones, and the steps that a rule
skips.

See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from yolo_fs.evidence.facts import CommittedArtifact, PhaseFacts, Plan, plans_of, section, texts
from yolo_fs.evidence.failures import failures_of, unreadable, withdrawn_from
from yolo_fs.evidence.plan_status import PlanStatus, plan_progress
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, Dept
from yolo_fs.protocol.workflow import COMPLEXITIES, TEAM_SIZE_BY_NAME, TEAM_SIZES, Skip, Step
from yolo_fs.schemas.config import Config

SHARED_KINDS = frozenset({"critique", "research"})
"""Kinds whose unprefixed file serves every department without its own: Critic and Scout are shared
agents."""

PHASE_STEPS = frozenset({"po", "signoff", "integration_gate", "delivery"})
"""Steps that a phase has once, whatever the number of departments."""


@dataclass(frozen=True)
class View:
    """Input of a step's rules."""

    facts: PhaseFacts
    department: Dept | None
    """None: the phase as a whole."""

    @property
    def config(self) -> Config:
        """The configuration in force."""
        return self.facts.options.config

    @cached_property
    def plan_files(self) -> tuple[Plan, ...]:
        """The plans, as their files say."""
        return plans_of(self.facts, self.department)

    @cached_property
    def plans(self) -> tuple[PlanStatus, ...]:
        """The plans, as the evidence says."""
        return plan_progress(self.facts, self.department)

    def of(self, kind: str) -> tuple[CommittedArtifact, ...]:
        """Return the valid artifacts of a kind that count for this view."""
        own = self.facts.of_kind(kind, self.department)
        if not own and kind in SHARED_KINDS:
            return self.facts.of_kind(kind, DEFAULT_DEPARTMENT)
        return own

    def lines(self, kind: str) -> tuple[Mapping[str, Any], ...]:
        """Return the records of a kind."""
        return tuple(line for artifact in self.of(kind) for line in artifact.lines)

    def of_step(self, step: Step) -> tuple[CommittedArtifact, ...]:
        """Return the artifacts that a step produces."""
        kinds = {
            artifact.place.artifact.kind
            for artifact in self.facts.committed
            if artifact.place.artifact.step == step.key
        }
        return tuple(artifact for kind in sorted(kinds) for artifact in self.of(kind))


DECLARED_SKIP = "declared: "
"""Prefix of a skip rule that is in no table, such as `--skip-qa` of one run: only the execution
state records it."""
BY_RULE = "rule: "
"""Prefix of the execution state's reason for a skip by the tables."""


def skip_rule(view: View, step: Step) -> str:
    """Return the rule that skips the step, as the tables print it; empty when none does."""
    if step.mandatory and not _is_outside_route(view, step):
        return ""
    if any(failures_of(view.facts, step.key, view.department)):
        return ""
    if any(unreadable(view.facts, step.key, view.department)):
        return ""
    if any(withdrawn_from(view.facts, step.key, view.department)):
        return ""
    by_row = next((skip for skip in step.skips if SKIPS[skip](view, step)), None)
    if by_row is not None:
        return by_row.value
    if not step.mandatory and (reason := _declared(view, step)) is not None:
        return DECLARED_SKIP + reason
    if _is_outside_route(view, step):
        return f"complexity {view.facts.options.complexity}"
    return _explain_product_owner_skip(view, step) or _explain_team_skip(view, step)


def _explain_product_owner_skip(view: View, step: Step) -> str:
    """Return which setting leaves the Product Owner's step out; empty when it runs."""
    rules = view.config.po
    if step.key not in ("po", "delivery"):
        return ""
    if view.config.effort in rules.skip_on_effort:
        return f"po.skip_on_effort {view.config.effort}"
    lines = view.facts.lines_of("analysis")
    complexity = str(lines[-1].get("complexity")) if lines else ""
    is_sure = complexity != "trivial" or is_trivial(view.facts)
    is_left_out = complexity in rules.skip_on_complexity and is_sure
    return f"po.skip_on_complexity {complexity}" if is_left_out else ""


def _explain_team_skip(view: View, step: Step) -> str:
    """Return which team leaves the step out; empty when it runs."""
    rules = view.config.company
    if step.mandatory or step.key in rules.steps:
        return ""
    if step.key not in TEAM_SIZE_BY_NAME[rules.team].runs:
        return f"team {rules.team}"
    is_left_out = step.key not in TEAM_SIZES[0].runs and is_trivial(view.facts)
    return "trivial work" if is_left_out else ""


def is_trivial(facts: PhaseFacts) -> bool:
    """Return whether the phase is trivial.

    Its analysis says so with enough confidence, and its plans touch no more files than trivial work
    may.
    """
    if not facts.options.is_trivial(facts.lines_of("analysis")):
        return False
    files = {file for plan in facts.plans for task in plan.tasks for file in texts(task.get("f"))}
    return len(files) <= facts.options.config.complexity_routing.max_trivial_files


def _is_outside_route(view: View, step: Step) -> bool:
    """Return whether the complexity routing of this phase leaves the step out."""
    complexity = view.facts.options.complexity
    route = next((row for row in COMPLEXITIES if row.name == complexity), None)
    return route is not None and step.key not in route.runs + route.inline


def _declared(view: View, step: Step) -> str | None:
    """Return why the committed execution state skips the step, where somebody decided so."""
    entry = section(section(view.facts.execution_state(), "steps"), step.key)
    if entry.get("status") != "skipped":
        return None
    reason = str(entry.get("reason", ""))
    return None if reason.startswith(BY_RULE) else reason


def _has_output(view: View, step: Step) -> bool:
    """Return whether the step's product exists, even if its exit gate is closed.

    An example is `critique.jsonl` without `cf`.
    """
    kinds = {name.partition(".")[0] for name in step.outputs}
    return any(artifact.place.artifact.kind in kinds for artifact in view.of_step(step))


def _lacks_test_specs(view: View, _: Step) -> bool:
    tasks = [task for plan in view.plan_files for task in plan.tasks]
    is_specified = bool(tasks) and all(task.get("spec") for task in tasks)
    return is_specified and not any(task.get("ts") for task in tasks)


SKIPS: Mapping[Skip, Callable[[View, Step], bool]] = {
    Skip.TURBO: lambda view, step: (
        view.config.effort == "turbo"
        and (step.key != "po" or "turbo" in view.config.po.skip_on_effort)
    ),
    Skip.FAST: lambda view, _: view.config.effort == "fast",
    Skip.EXISTS: _has_output,
    Skip.NO_TS: _lacks_test_specs,
    Skip.SKIP_QA: lambda view, _: view.facts.options.skip_qa,
    Skip.SKIP_SECURITY: lambda view, _: view.facts.options.skip_security,
    Skip.CONFIG: lambda view, _: view.config.documenter == "never",
    Skip.PO_OFF: lambda view, _: not view.config.po.enabled,
    Skip.CRITIQUE_OFF: lambda view, _: not view.config.critique.enabled,
    Skip.SECURITY_OFF: lambda view, _: not view.config.security_audit,
    Skip.INTEGRATION_OFF: lambda view, _: (
        not view.facts.options.several_departments and not view.config.integration_gate.enabled
    ),
}
