"""The artifacts: which file is which, what its lines are, and under which subject it is committed.

One row per kind. Everything else (watching, validation, commit, schema export, docs, tests) follows
from the row. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from yolo_fs.core.ids import Subject
from yolo_fs.core.reasons import Grade
from yolo_fs.protocol.departments import WORKING, Dept, Role
from yolo_fs.protocol.workflow import (
    ESCALATION_RECEIVED,
    ESCALATION_RESOLVED,
    EXECUTION_STATE,
    PHASE_COMPLETE,
    RED_TESTS,
    STEP_COMPLETE,
    STEP_SKIPPED,
)
from yolo_fs.schemas.layout import Format, Record

if TYPE_CHECKING:
    from yolo_fs.schemas.base import Shape


class Home(StrEnum):
    """The directory that an artifact lives in."""

    PHASE = "phase"
    """`phases/{NN}-{slug}/`"""
    ROOT = "root"
    """The planning root, or the root of a milestone."""
    ANYWHERE = "anywhere"
    """Any directory of the planning tree."""
    DOCUMENTS = "documents"
    """The folder of handoffs outside the planning tree (see `artifacts.classify`)."""


class Naming(StrEnum):
    """The rule that selects a subject of a row and fills its gaps."""

    PLACE = "place"
    """From the path alone: phase of the directory, plan of the file name, stem of the file without
    its leading dot."""
    ENRICHMENT = "enrichment"
    """First subject while a task lacks its `spec`, second once every task has one."""
    ONE_PLAN = "one plan"
    """First subject when the content speaks of exactly one plan, second otherwise."""
    DEPARTMENT = "department"
    """One subject per department, in the order of `WORKING`."""
    ROUTE = "route"
    """From the path alone: who hands over to whom."""
    COMPLETION = "completion"
    """First subject when the content says that the phase is complete, second otherwise."""
    TRANSITION = "transition"
    """What changed since the version before: a step was completed or skipped, an escalation was
    received or resolved, or something else; in this order of subjects."""


class MergeStrategy(StrEnum):
    """How two versions of an artifact merge, when both changed since their common version."""

    BY_ID = "by id"
    """Record by record, matched by `id`, else by `name`, else by content."""
    APPEND = "append"
    """The records of both, in order of time."""
    WHOLE = "whole"
    """Not at all: a person chooses."""


class Check(StrEnum):
    """Cross-references of an artifact; `artifacts.examine` has the predicate of each."""

    PLAN_NAME = "plan name"
    """`p` and `n` of the content spell the plan id of the file name."""
    PHASE = "phase"
    """The content's phase is the directory's."""
    TASK_IDS = "task ids"
    """Ids of the body are unique."""
    TASK_GRAPH = "task graph"
    """`td` names tasks of this plan, without a circle."""
    WAVES = "waves"
    """`d` names other plans of this phase, without a circle."""
    WAVE_ORDER = "wave order"
    """The plans that `d` names are of an earlier wave."""
    COMMITS = "commits"
    """Every hash in `ch` is a commit of this repository."""
    UNIQUE_IDS = "unique ids"
    """No two records carry the same `id`."""
    RISING_TIME = "rising time"
    """Records of one id carry increasing `dt`."""
    REFERENCES = "references"
    """The plans and tasks that its records and its own name name are of this phase."""
    DISPOSITIONS = "dispositions"
    """The findings that it disposes of are those of a critique beside it."""
    PAYLOAD = "payload"
    """The payload of an envelope has the shape of its route."""
    SECTIONS = "sections"
    """The TOON document has the five sections of an architecture."""
    SOME_SECTION = "some section"
    """One of them at least says something."""


GRADES: Mapping[Check, Grade] = {
    **dict.fromkeys(Check, Grade.MUST),
    Check.TASK_IDS: Grade.SHOULD,
    Check.UNIQUE_IDS: Grade.SHOULD,
    Check.WAVE_ORDER: Grade.SHOULD,
    Check.SECTIONS: Grade.SHOULD,
    Check.REFERENCES: Grade.SHOULD,
    Check.DISPOSITIONS: Grade.SHOULD,
}
"""Whether a failed check rejects the artifact or is only a warning. A `must` check may grade single
faults lower."""

ARCHITECTURE_SECTIONS = (
    "tech_decisions", "components", "integration_points", "risks", "critique_disposition",
)  # fmt: skip


@cache
def shape_named(name: str) -> type[Shape]:
    """Return a shape by its name below `yolo_fs.schemas`; to import one is slow."""
    from yolo_fs.schemas.plain_values import shape_of

    module, _, own_name = name.rpartition(".")
    return shape_of(getattr(import_module(f"yolo_fs.schemas.{module}"), own_name))


class Artifact(NamedTuple):
    """One kind of file that agents exchange."""

    kind: str
    """Name of the kind, as in `yolo-fs schema show KIND`."""
    file: str
    """File name, with gaps: `{dept}` for the prefix of a department, `{plan}` for `NN-MM`, `{NN}`
    for the phase's number, `{department}` for the name of one."""
    source: str
    """Section of the requirement document, or of the protocol, that defines this row."""
    subjects: tuple[Subject, ...] = (Subject("docs({phase}): {artifact}"),)
    """Possible commit subjects; `naming` selects one."""
    format: Format = Format.JSONL
    header: str = ""
    """Shape of the object, or of line 1, named below `yolo_fs.schemas`; a JSONL artifact with a
    header and no body has one line only."""
    body: tuple[str, ...] = ()
    """Shapes of the other lines; the first that matches a record validates it, else the last of
    them.
    """
    relaxed: tuple[str, ...] = ()
    """Header and body shapes to use instead if the first of them matches line 1."""
    naming: Naming = Naming.PLACE
    checks: tuple[Check, ...] = ()
    home: Home = Home.PHASE
    step: str = ""
    """Key of the workflow step that produces it; empty when any step may."""
    made_by: Dept | None = None
    """The only department that makes it; None if the file name gives it, or any may."""
    append_only: bool = False
    """Lines are only ever added."""
    is_shared: bool = False
    """Everyone who works on the phase adds to it; an append-only artifact is always shared."""
    updated_by: tuple[Role, ...] = ()
    """Roles that update records which others produced."""
    sent_by: tuple[Role, ...] = ()
    """Senders of the message in it, where only that tells the author."""
    merge_strategy: MergeStrategy = MergeStrategy.WHOLE
    """How two versions of it merge."""
    named_by: tuple[str, ...] = ()
    """Fields that together identify a record within its file; where there are none: `id`, else
    `name`."""
    needs_body: bool = False
    """A header without a body line is incomplete."""
    repeats_header: bool = False
    """The file may hold several blocks, each of a header and its body."""
    last_line_counts: bool = False
    """A later line about the same replaces an earlier one, whether or not it was said before."""
    needs_plans: bool = False
    """The meaning of a header with several plans depends on which plans exist beside it."""

    def named(
        self, prefix: str = "", plan: str = "", *, phase: str = "", department: str = ""
    ) -> str:
        """Return its file name with the gaps filled; `prefix`: the department's, such as `fe-`."""
        gaps = {"{dept}": prefix, "{plan}": plan, "{NN}": phase, "{department}": department}
        name = self.file
        for gap, text in gaps.items():
            name = name.replace(gap, text)
        return name

    @property
    def may_repeat_lines(self) -> bool:
        """Whether a line that is the same as an earlier one means something."""
        return self.append_only or self.repeats_header or self.last_line_counts

    @property
    def is_one_line(self) -> bool:
        """Whether it is a JSONL file of exactly one line."""
        return self.format is Format.JSONL and not self.body

    @property
    def shapes(self) -> tuple[type[Shape], ...]:
        """The shape of the header, if it has one, and those of the other lines."""
        return tuple(shape_named(name) for name in (self.header, *self.body) if name)

    def load(self) -> None:
        """Make its shapes ready now; else the first file of the kind waits for it."""
        from yolo_fs.schemas.check import check

        for shape in self.shapes:
            check(shape, {})

    def shape_of(
        self, record: Mapping[str, Any], *, position: int, first: Mapping[str, Any]
    ) -> type[Shape] | None:
        """Return the shape for the record at `position` (from 0) in a file with `first` as line 1.

        None: the artifact has no such line.
        """
        header, body = self.header, self.body
        if self.relaxed and shape_named(self.relaxed[0]).matches(first):
            header, *others = self.relaxed
            body = tuple(others)
        if header:
            shape = shape_named(header)
            if position == 0 or (self.repeats_header and shape.matches(record)):
                return shape
        for name in body:
            if shape_named(name).matches(record):
                return shape_named(name)
        return shape_named(body[-1]) if body else None

    def shapes_of(self, records: Sequence[Record]) -> Iterator[tuple[Record, type[Shape] | None]]:
        """Yield each record of a file with its shape.

        Blank lines may precede the header. If line 1 is unreadable, the records start below it.
        """
        first = records[0] if records and self._begins(records[0]) else Record(1, {})
        for record in records:
            position = record.line - first.line
            yield record, self.shape_of(record.value, position=position, first=first.value)

    def _begins(self, record: Record) -> bool:
        """Return whether a record is the first of its file."""
        if record.line == 1 or not (self.header and self.body):
            return True
        return self.looks_like_header(record.value)

    def looks_like_header(self, value: Mapping[str, Any]) -> bool:
        """Return whether an object has more keys of the header than of a line below it."""
        from yolo_fs.schemas.fields import fields_of

        own = [
            fields_of(shape_named(name)).keys() & value.keys()
            for name in (self.header, self.body[-1])
        ]
        return len(own[0]) > len(own[1])

    def is_headless(self, first: Mapping[str, Any]) -> bool:
        """Return whether a file that begins with this object lacks its header: it is a whole line
        of those below, without any key that only the header needs.
        """
        if not (self.header and self.body):
            return False
        header, *body = map(required_keys, self.shapes)
        return any(
            own and own <= first.keys() and not (header - own) & first.keys() for own in body
        )


def required_keys(shape: type[Shape]) -> frozenset[str]:
    """Return the keys that a shape needs."""
    from yolo_fs.schemas.fields import fields_of

    return frozenset(key for key, field in fields_of(shape).items() if field.is_required())


_OF_PROJECT = (Subject("chore(state): {artifact}"),)
"""Files of the planning root belong to no phase; their commits have the scope `state`."""

ARTIFACTS: tuple[Artifact, ...] = (
    # The product layer.
    Artifact(
        kind="analysis",
        file="analysis.json",
        format=Format.JSON,
        source="document 002, Agent Roster",
        header="lines.product.Analysis",
    ),
    Artifact(
        kind="discovery",
        file="discovery.json",
        format=Format.JSON,
        source="the reference scripts",
        header="lines.product.Discovery",
    ),
    Artifact(
        kind="roadmap-plan",
        file="roadmap-plan.json",
        format=Format.JSON,
        source="document 002, Agent Roster",
        header="lines.product.RoadmapPlan",
        step="po",
    ),
    Artifact(
        kind="scope-document",
        file="scope-document.json",
        format=Format.JSON,
        subjects=(Subject("chore(state): po complete phase {N}"),),
        source="document 002, Agent Roster",
        header="lines.product.ScopeDocument",
        step="po",
    ),
    Artifact(
        kind="reqs",
        file="reqs.jsonl",
        subjects=_OF_PROJECT,
        source="the reference scripts",
        body=("lines.planning.Requirement",),
        checks=(Check.UNIQUE_IDS,),
        home=Home.ROOT,
        merge_strategy=MergeStrategy.BY_ID,
    ),
    Artifact(
        kind="roadmap",
        file="ROADMAP.md",
        format=Format.TEXT,
        subjects=_OF_PROJECT,
        source="document 002, 11-Step Workflow (step 11)",
        home=Home.ROOT,
        step="signoff",
    ),
    Artifact(
        kind="context",
        file="{NN}-CONTEXT-{department}.md",
        format=Format.TEXT,
        source="document 002, Cross-Department Context Isolation",
    ),
    # Steps 1 to 3.
    Artifact(
        kind="critique",
        file="{dept}critique.jsonl",
        subjects=(Subject("docs({phase}): critique and gap analysis"),),
        source="document 002, 11-Step Workflow (step 1)",
        body=("lines.findings.CritiqueFinding",),
        checks=(Check.UNIQUE_IDS,),
        step="critique",
        updated_by=(Role.ARCHITECT,),
        merge_strategy=MergeStrategy.BY_ID,
    ),
    Artifact(
        kind="research",
        file="{dept}research.jsonl",
        subjects=(Subject("docs({phase}): research findings"),),
        source="document 002, 11-Step Workflow (step 2)",
        body=("lines.findings.Request", "lines.findings.ResearchFinding"),
        step="research",
        is_shared=True,
        merge_strategy=MergeStrategy.APPEND,
        named_by=("q",),
    ),
    Artifact(
        kind="research-archive",
        file="research-archive.jsonl",
        subjects=_OF_PROJECT,
        source="the reference scripts",
        body=("lines.findings.ArchivedFinding",),
        home=Home.ROOT,
        merge_strategy=MergeStrategy.APPEND,
    ),
    Artifact(
        kind="architecture",
        file="{dept}architecture.toon",
        format=Format.TOON,
        subjects=tuple(
            Subject(f"docs({{phase}}): {row.in_subjects}architecture design") for row in WORKING
        ),
        source="document 002, 11-Step Workflow (step 3)",
        naming=Naming.DEPARTMENT,
        checks=(Check.SOME_SECTION, Check.SECTIONS, Check.DISPOSITIONS),
        step="architecture",
    ),
    # Steps 4 to 7.
    Artifact(
        kind="plan",
        file="{dept}{plan}.plan.jsonl",
        subjects=(
            Subject("docs({phase}): plan {plan}"),
            Subject("docs({phase}): enrich plan {plan} specs"),
        ),
        source="document 002, 11-Step Workflow (steps 4 and 5)",
        header="lines.planning.PlanHeader",
        body=("lines.planning.PlanTask",),
        relaxed=("lines.planning.TurboPlanHeader", "lines.planning.TurboTask"),
        naming=Naming.ENRICHMENT,
        checks=(
            Check.PLAN_NAME,
            Check.PHASE,
            Check.TASK_IDS,
            Check.TASK_GRAPH,
            Check.WAVES,
            Check.WAVE_ORDER,
        ),
        step="planning",
        needs_body=True,
    ),
    Artifact(
        kind="test-plan",
        file="{dept}test-plan.jsonl",
        subjects=(
            Subject("test({phase}): RED phase tests for plan {plan}"),
            RED_TESTS,
        ),
        source="document 002, 11-Step Workflow (step 6)",
        body=("lines.integration.PlannedTests",),
        checks=(Check.UNIQUE_IDS, Check.REFERENCES),
        naming=Naming.ONE_PLAN,
        step="test_authoring",
        merge_strategy=MergeStrategy.BY_ID,
        named_by=("plan", "id"),
    ),
    Artifact(
        kind="summary",
        file="{dept}{plan}.summary.jsonl",
        subjects=(Subject("docs({phase}): summary {plan}"),),
        source="document 002, Commit-Every-Artifact Protocol",
        header="lines.planning.Summary",
        checks=(Check.PLAN_NAME, Check.PHASE, Check.COMMITS, Check.REFERENCES),
        step="implementation",
    ),
    Artifact(
        kind="test-results",
        file="{dept}test-results.jsonl",
        last_line_counts=True,
        subjects=(
            Subject("docs({phase}): test results {plan}"),
            Subject("docs({phase}): test results"),
        ),
        source="the reference scripts",
        body=("lines.integration.PlanTests",),
        checks=(Check.REFERENCES,),
        naming=Naming.ONE_PLAN,
        step="implementation",
        merge_strategy=MergeStrategy.BY_ID,
    ),
    # Steps 8 to 10.
    Artifact(
        kind="code-review",
        file="{dept}code-review.jsonl",
        repeats_header=True,
        needs_plans=True,
        subjects=(
            Subject("docs({phase}): code review {plan}"),
            Subject("docs({phase}): code review"),
        ),
        source="document 002, 11-Step Workflow (step 8)",
        header="lines.review.ReviewVerdict",
        body=("lines.review.ReviewFinding",),
        checks=(Check.REFERENCES,),
        naming=Naming.ONE_PLAN,
        step="code_review",
    ),
    Artifact(
        kind="docs",
        file="{dept}docs.jsonl",
        subjects=(Subject("docs({phase}): documentation"),),
        source="document 002, 11-Step Workflow (step 8.5)",
        body=("lines.review.DocEntry",),
        step="documentation",
        merge_strategy=MergeStrategy.BY_ID,
    ),
    Artifact(
        kind="verification",
        file="{dept}verification.jsonl",
        subjects=(Subject("docs({phase}): verification results"),),
        source="document 002, 11-Step Workflow (step 9)",
        header="lines.quality.Verification",
        body=("lines.quality.VerificationCheck",),
        step="qa",
        needs_body=True,
    ),
    Artifact(
        kind="qa-code",
        file="{dept}qa-code.jsonl",
        subjects=(Subject("docs({phase}): code quality review"),),
        source="the reference scripts",
        header="lines.quality.CodeQuality",
        body=("lines.quality.QualityFinding",),
        step="qa",
    ),
    Artifact(
        kind="manual-qa",
        file="{dept}manual-qa.jsonl",
        subjects=(Subject("docs({phase}): manual QA results"),),
        source="the reference scripts",
        header="lines.review.ManualQa",
        step="qa",
    ),
    Artifact(
        kind="gaps",
        file="{dept}gaps.jsonl",
        source="the reference scripts",
        body=("lines.review.Gap",),
        checks=(Check.UNIQUE_IDS,),
        step="qa",
        is_shared=True,
        merge_strategy=MergeStrategy.BY_ID,
    ),
    Artifact(
        kind="qa-gate-results",
        file=".qa-gate-results.jsonl",
        source="the reference scripts",
        body=(
            "lines.quality.ScriptGate",
            "lines.quality.PostTaskGate",
            "lines.quality.PostPlanGate",
            "lines.quality.PostPhaseGate",
            "lines.quality.GateRecord",
        ),
        checks=(Check.REFERENCES,),
        append_only=True,
        merge_strategy=MergeStrategy.APPEND,
    ),
    Artifact(
        kind="security-audit",
        file="{dept}security-audit.jsonl",
        subjects=(Subject("docs({phase}): security audit"),),
        source="document 002, 11-Step Workflow (step 10)",
        header="lines.quality.SecurityAuditLine",
        body=("lines.quality.SecurityFinding",),
        step="security",
    ),
    # Steps 11.5 and 12.
    Artifact(
        kind="integration-gate-result",
        file="integration-gate-result.jsonl",
        last_line_counts=True,
        subjects=(Subject("docs({phase}): integration gate"),),
        source="document 002, Integration Pipeline",
        body=("lines.integration.GateOutput", "lines.integration.IntegrationResult"),
        step="integration_gate",
    ),
    Artifact(
        kind="po-qa-verdict",
        file="po-qa-verdict.jsonl",
        last_line_counts=True,
        subjects=(Subject("docs({phase}): PO QA verdict"),),
        sent_by=(Role.PO,),
        source="document 000, po_qa_verdict",
        body=("lines.integration.RivalVerdict", "messages.departments.PoQaVerdict"),
        step="delivery",
    ),
    # What the Owner decides.
    Artifact(
        kind="owner-review",
        file="owner-review.jsonl",
        last_line_counts=True,
        subjects=(Subject("docs({phase}): owner review"),),
        sent_by=(Role.OWNER,),
        source="document 000, owner_review",
        body=("messages.departments.OwnerReview",),
        checks=(Check.PHASE,),
    ),
    Artifact(
        kind="owner-signoff",
        file="owner-signoff.jsonl",
        last_line_counts=True,
        subjects=(Subject("docs({phase}): owner sign-off"),),
        sent_by=(Role.OWNER,),
        source="document 000, owner_signoff",
        body=("messages.departments.OwnerSignoff",),
        checks=(Check.PHASE,),
        step="delivery",
    ),
    # From one phase, or department, to another.
    Artifact(
        kind="phase-handoff",
        file="phase-handoff.jsonl",
        source="document 000, phase-handoff.jsonl",
        header="messages.departments.PhaseHandoff",
        checks=(Check.PHASE,),
    ),
    Artifact(
        kind="dept-handoff",
        file="dept-handoff.jsonl",
        last_line_counts=True,
        sent_by=(Role.LEAD,),
        source="document 000, dept-handoff.jsonl",
        body=("messages.departments.DeptHandoff",),
        merge_strategy=MergeStrategy.BY_ID,
    ),
    Artifact(
        kind="design-handoff",
        made_by=Dept.UIUX,
        file="design-handoff.jsonl",
        sent_by=(Role.LEAD,),
        source="document 000, design_handoff",
        body=("messages.departments.DesignHandoff", "lines.product.ComponentHandoff"),
        merge_strategy=MergeStrategy.BY_ID,
    ),
    Artifact(
        kind="design-tokens",
        made_by=Dept.UIUX,
        file="design-tokens.jsonl",
        source="document 000, design_handoff",
        body=("lines.product.DesignToken",),
        merge_strategy=MergeStrategy.BY_ID,
    ),
    Artifact(
        kind="component-specs",
        made_by=Dept.UIUX,
        file="component-specs.jsonl",
        source="document 000, design_handoff",
        body=("lines.product.ComponentSpec",),
        merge_strategy=MergeStrategy.BY_ID,
    ),
    Artifact(
        kind="user-flows",
        made_by=Dept.UIUX,
        file="user-flows.jsonl",
        source="document 000, design_handoff",
        body=("lines.product.UserFlowLine",),
        checks=(Check.UNIQUE_IDS,),
        merge_strategy=MergeStrategy.BY_ID,
    ),
    Artifact(
        kind="api-contracts",
        file="api-contracts.jsonl",
        last_line_counts=True,
        source="document 000, api_contract",
        body=("messages.departments.ApiContract", "lines.product.EndpointContract"),
        merge_strategy=MergeStrategy.BY_ID,
    ),
    Artifact(
        kind="handoff",
        file="HANDOFF.md",
        format=Format.FRONT_MATTER,
        subjects=_OF_PROJECT,
        source="document 001, Directive-contained handoff",
        header="packet.HandoffFile",
        home=Home.ANYWHERE,
    ),
    # At any time.
    Artifact(
        kind="decisions",
        file="decisions.jsonl",
        source="the reference scripts",
        body=("lines.findings.LoggedDecision",),
        checks=(Check.REFERENCES,),
        append_only=True,
        merge_strategy=MergeStrategy.APPEND,
    ),
    Artifact(
        kind="escalation",
        file="escalation.jsonl",
        source="the reference scripts",
        body=("lines.escalation.EscalationMessageLine", "lines.escalation.EscalationLine"),
        checks=(Check.RISING_TIME,),
        append_only=True,
        merge_strategy=MergeStrategy.APPEND,
    ),
    Artifact(
        kind="debug-report",
        file="debug-report.jsonl",
        source="document 002, Agent Roster; document 000, debugger_report",
        body=("messages.team.DebuggerReport", "lines.findings.DebugReport"),
        merge_strategy=MergeStrategy.BY_ID,
    ),
    # State.
    Artifact(
        kind="state",
        file="state.json",
        format=Format.JSON,
        subjects=(PHASE_COMPLETE, Subject("chore(state): {step} state phase {N}")),
        source="document 002, 11-Step Workflow (step 11)",
        header="state.StateFile",
        naming=Naming.COMPLETION,
        home=Home.ROOT,
        step="signoff",
    ),
    Artifact(
        kind="execution-state",
        file=".execution-state.json",
        format=Format.JSON,
        subjects=(
            STEP_COMPLETE,
            STEP_SKIPPED,
            ESCALATION_RECEIVED,
            ESCALATION_RESOLVED,
            EXECUTION_STATE,
        ),
        source="document 002, Resume Protocol",
        header="state.ExecutionState",
        naming=Naming.TRANSITION,
        home=Home.ANYWHERE,
    ),
    Artifact(
        kind="phase-orchestration",
        file=".phase-orchestration.json",
        format=Format.JSON,
        subjects=(Subject("chore(state): orchestration state phase {N}"),),
        source="document 002, Multi-Department Structure",
        header="state.Orchestration",
        checks=(Check.PHASE,),
    ),
    Artifact(
        kind="escalation-state",
        file=".escalation-state.json",
        format=Format.JSON,
        subjects=_OF_PROJECT,
        source="the reference scripts",
        header="state.EscalationState",
        home=Home.ROOT,
    ),
)

# Coordination files that disappear with their phase, and session files: never committed.
RUNTIME: tuple[str, ...] = (
    ".dept-status-*", ".handoff-*", ".dept-lock-*", ".ctx-*", ".escalation-resolution-*",
    "config.json", "context_health.log", ".active-agent", ".active-plan-cache", ".yolo-session",
    ".gsd-isolation", ".compaction-marker", ".session-log.jsonl", ".hook-errors.log",
    ".cost-ledger.json", ".config-migrated-*",
)  # fmt: skip


STATE_KINDS = frozenset({"state", "execution-state", "phase-orchestration"})
"""Kinds that are maintained outside of the branch until it has them."""
IGNORED_STATES = (".execution-state.json", ".phase-orchestration.json")
"""Those of these kinds that `init` makes git ignore: no step ends with them."""
HIDDEN: tuple[str, ...] = (
    "/.yolo-planning/state.json",
    "/.yolo-planning/**/.execution-state.json",
    "/.yolo-planning/**/.phase-orchestration.json",
    "/.yolo-planning/phases/*/.dept-status-*",
    "/.yolo-planning/phases/*/.dept-lock-*",
    "/.yolo-planning/phases/*/.handoff-*",
)
"""Patterns, in git's syntax, of the files that are maintained outside of the branch."""


def comes_beside(main: Artifact, other: Artifact) -> bool:
    """Return whether the commit of one artifact may include another.

    It may include the state that it advances, and at the sign-off the roadmap.
    """
    return main.kind != other.kind and (
        other.kind == "state" or (main.kind, other.kind) == ("state", "roadmap")
    )


def by_kind(kind: str) -> Artifact | None:
    """Return the artifact of that kind, or None."""
    return _BY_KIND.get(kind)


_BY_KIND = {artifact.kind: artifact for artifact in ARTIFACTS}
