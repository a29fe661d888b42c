"""The workflow: every step with its gates, artifacts, commits and skips; effort, complexity and
limits. Every artifact is committed immediately after it was made.

See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from yolo_fs.core.ids import Subject
from yolo_fs.core.labelled import Labelled
from yolo_fs.protocol.departments import Role


class Skip(StrEnum):
    """A rule that skips a step."""

    sentence: str

    def __new__(cls, word: str, sentence: str = "") -> Skip:
        member = str.__new__(cls, word)
        member._value_ = word
        member.sentence = sentence or word
        return member

    TURBO = "turbo"
    """Effort is turbo."""
    FAST = "fast"
    """Effort is fast."""
    EXISTS = "exists", "file exists"
    """The artifact of the step is there already."""
    NO_TS = "no ts", "no task has `ts`"
    SKIP_QA = "--skip-qa"
    SKIP_SECURITY = "--skip-security"
    CONFIG = "config-gated", "documenter=never (or gate says no)"
    """The configuration turns documentation off."""
    PO_OFF = "po.enabled=false"
    CRITIQUE_OFF = "critique.enabled=false"
    SECURITY_OFF = "config security_audit≠true"
    INTEGRATION_OFF = "multi_dept=false AND integration_gate.enabled=false"


class EntryGate(StrEnum):
    """A condition that must hold before a step begins."""

    ANALYSIS = "analysis.json or active milestone"
    PHASE_DIRECTORY = "phase dir exists"
    SCOPE = "scope approved, or po skipped"
    CRITIQUE = "critique.jsonl, or critique skipped"
    RESEARCH = "research.jsonl, or research skipped"
    ARCHITECTURE = "architecture.toon, or architecture skipped"
    STAGE_GATE = "stage gate: all critique `st` ≠ open"
    PLANS = "≥1 plan file"
    SPECS = "plans have spec"
    RED_TESTS = "if step 6 complete then test-plan.jsonl present with red:true"
    SUMMARIES = "a valid summary for each plan"
    REVIEW_APPROVED = "code-review approved"
    POST_PHASE_QA = "post-phase QA gate passes"
    QA_DONE = "verification.jsonl or qa skipped"
    SECURITY_DONE = "security-audit.jsonl or security skipped"
    SIGNED_OFF = "steps.signoff complete"
    """Document 002 lets the integration gate follow security at once; both states open it
    (docs/dev/sources.md#c06)."""
    INTEGRATION_DONE = "integration_gate complete or skipped"


class ExitGate(StrEnum):
    """A condition that must hold before a step is complete."""

    SCOPE_APPROVED = "`scope-document.json`, status PO-APPROVED"
    CRITIQUE = "critique.jsonl valid, entries with cf+rd"
    RESEARCH = "research.jsonl valid"
    ARCHITECTURE = "architecture.toon non-empty + completeness list of 1.3"
    EXECUTION_RUNNING = "`.execution-state.json` status running listing the plans + ≥1 plan file"
    DEPENDENCIES = (
        "`xd` cross-phase deps satisfied (referenced summary has s=complete, artifact file exists)"
    )
    SPECS = "every task of every plan has non-empty `spec`"
    RED_TESTS = "test-plan.jsonl, all `red:true`"
    SUMMARIES = "one valid summary per plan"
    NO_PENDING_ESCALATION = "zero pending escalations"
    REVIEW_APPROVED = "code-review.jsonl line 1 r=approve"
    DOCS = "docs.jsonl if produced (non-blocking)"
    QA = "verification.jsonl and qa-code.jsonl valid"
    SECURITY_AUDIT = "security-audit.jsonl"
    SECURITY_FAIL_STOPS = "FAIL = hard stop → user, only `--force` overrides"
    SECURITY_WARN_PAUSES = "WARN may pause"
    STATE_COMPLETE = "`.execution-state.json` status complete, step signoff"
    ROADMAP_UPDATED = "ROADMAP updated"
    INTEGRATION_RESULT = "gate result"
    DELIVERY_VERDICT = "verdict approve/patch/major, feedback_rounds 0..2"


STEP_COMPLETE = Subject("chore(state): {step} complete phase {N}")
STEP_SKIPPED = Subject("chore(state): {step} skipped phase {N}")
EXECUTION_STATE = Subject("chore(state): execution state phase {N}")
PHASE_COMPLETE = Subject("chore(state): phase {N} complete")
RED_TESTS = Subject("test({phase}): RED phase tests")
SIGN_OFF_COMMAND = "yolo-fs phase sign-off {phase}"
"""What carries step 11 out: no file of it is written by hand."""
TURN_COMMAND = "yolo-fs workflow next --phase {phase}"
"""What names the next agent of a phase, and what each step lacks."""
ESCALATION_RECEIVED = Subject("chore(state): escalation received phase {N}")
ESCALATION_RESOLVED = Subject("chore(state): escalation resolved phase {N}")


class Step(NamedTuple):
    """One step of a phase."""

    number: str
    """As printed; `8.5` and `11.5` stand between others."""
    key: str
    """Key in `.execution-state.json` and value of `step` in `state.json`."""
    agents: tuple[Role, ...]
    """Who does it."""
    inputs: tuple[str, ...]
    """What it starts from, as printed."""
    outputs: tuple[str, ...]
    """What it produces, as printed."""
    commits: tuple[Subject, ...]
    """Subjects of its artifact commits: the one of document 002 first, then those of the reference
    scripts."""
    entry: tuple[EntryGate, ...]
    """Conditions that must all hold before it begins."""
    exit: tuple[ExitGate, ...]
    """Conditions that must all hold before it is complete."""
    skips: tuple[Skip, ...] = ()
    """Rules of which any one skips the step: those of document 002 first, then those of the
    reference scripts."""
    state: tuple[Subject, ...] = (STEP_COMPLETE,)
    """Subjects of the commits that record its completion."""
    mandatory: bool = False
    """Its failure stops the phase; nobody may force it."""
    blocking: bool = True
    """Later steps wait for it."""


STEPS = (
    Step(
        number="0",
        key="po",
        agents=(Role.PO,),
        inputs=("analysis.json",),
        outputs=("scope-document.json",),
        commits=(),
        entry=(EntryGate.ANALYSIS,),
        exit=(ExitGate.SCOPE_APPROVED,),
        skips=(Skip.PO_OFF, Skip.TURBO, Skip.EXISTS),
    ),
    Step(
        number="1",
        key="critique",
        agents=(Role.CRITIC,),
        inputs=("reqs", "PROJECT", "codebase"),
        outputs=("critique.jsonl",),
        commits=(Subject("docs({phase}): critique and gap analysis"),),
        entry=(EntryGate.PHASE_DIRECTORY, EntryGate.SCOPE),
        exit=(ExitGate.CRITIQUE,),
        skips=(Skip.TURBO, Skip.EXISTS, Skip.CRITIQUE_OFF),
    ),
    Step(
        number="2",
        key="research",
        agents=(Role.SCOUT,),
        inputs=("critique (critical/major)", "reqs", "codebase"),
        outputs=("research.jsonl",),
        commits=(Subject("docs({phase}): research findings"),),
        entry=(EntryGate.CRITIQUE,),
        exit=(ExitGate.RESEARCH,),
        skips=(Skip.TURBO,),
    ),
    Step(
        number="3",
        key="architecture",
        agents=(Role.ARCHITECT,),
        inputs=("reqs", "codebase", "critique"),
        outputs=("architecture.toon",),
        commits=(Subject("docs({phase}): architecture design"),),
        entry=(EntryGate.RESEARCH,),
        exit=(ExitGate.ARCHITECTURE,),
        skips=(Skip.EXISTS,),
    ),
    Step(
        number="4",
        key="planning",
        agents=(Role.LEAD,),
        inputs=("architecture.toon", "reqs"),
        outputs=("plan.jsonl",),
        commits=(Subject("docs({phase}): plan {plan}"),),
        entry=(EntryGate.ARCHITECTURE, EntryGate.STAGE_GATE),
        exit=(ExitGate.EXECUTION_RUNNING, ExitGate.DEPENDENCIES),
        state=(EXECUTION_STATE, STEP_COMPLETE),
        mandatory=True,
    ),
    Step(
        number="5",
        key="design_review",
        agents=(Role.SENIOR,),
        inputs=("plan", "architecture", "codebase"),
        outputs=("enriched plan (spec+ts)",),
        commits=(Subject("docs({phase}): enrich plan {plan} specs"),),
        entry=(EntryGate.PLANS,),
        exit=(ExitGate.SPECS,),
        mandatory=True,
    ),
    Step(
        number="6",
        key="test_authoring",
        agents=(Role.TESTER,),
        inputs=("enriched plan (ts fields)",),
        outputs=("test files", "test-plan.jsonl"),
        commits=(
            RED_TESTS,
            Subject("test({phase}): RED phase tests for plan {plan}"),
        ),
        entry=(EntryGate.SPECS,),
        exit=(ExitGate.RED_TESTS,),
        skips=(Skip.TURBO, Skip.NO_TS),
    ),
    Step(
        number="7",
        key="implementation",
        agents=(Role.DEV,),
        inputs=("enriched plan", "test files"),
        outputs=("code", "summary.jsonl"),
        commits=(
            # The document's `{phase}-{plan}` is what our gap `{plan}` spells: NN-MM.
            Subject("{type}({plan}): {task}"),
            Subject("docs({phase}): summary {plan}"),
            Subject("docs({phase}): test results {plan}"),
        ),
        entry=(EntryGate.SPECS, EntryGate.RED_TESTS),
        exit=(ExitGate.SUMMARIES, ExitGate.NO_PENDING_ESCALATION),
        mandatory=True,
    ),
    Step(
        number="8",
        key="code_review",
        agents=(Role.SENIOR,),
        inputs=("git diff", "plan", "tests"),
        outputs=("code-review.jsonl",),
        commits=(Subject("docs({phase}): code review {plan}"),),
        entry=(EntryGate.SUMMARIES,),
        exit=(ExitGate.REVIEW_APPROVED,),
        mandatory=True,
    ),
    Step(
        number="8.5",
        key="documentation",
        agents=(Role.DOCUMENTER,),
        inputs=("code", "plan", "architecture"),
        outputs=("docs.jsonl",),
        commits=(Subject("docs({phase}): documentation"),),
        entry=(EntryGate.REVIEW_APPROVED,),
        exit=(ExitGate.DOCS,),
        skips=(Skip.CONFIG, Skip.TURBO, Skip.FAST),
        blocking=False,
    ),
    Step(
        number="9",
        key="qa",
        agents=(Role.QA, Role.QA_CODE),
        inputs=("plan", "summary", "artifacts"),
        outputs=("verification", "qa-code.jsonl"),
        commits=(
            Subject("docs({phase}): verification results"),
            Subject("docs({phase}): code quality review"),
        ),
        entry=(EntryGate.REVIEW_APPROVED, EntryGate.POST_PHASE_QA),
        exit=(ExitGate.QA,),
        skips=(Skip.SKIP_QA, Skip.TURBO),
    ),
    Step(
        number="10",
        key="security",
        agents=(Role.SECURITY,),
        inputs=("commits", "deps"),
        outputs=("security-audit.jsonl",),
        commits=(Subject("docs({phase}): security audit"),),
        entry=(EntryGate.QA_DONE,),
        exit=(ExitGate.SECURITY_AUDIT, ExitGate.SECURITY_FAIL_STOPS, ExitGate.SECURITY_WARN_PAUSES),
        skips=(Skip.SKIP_SECURITY, Skip.SECURITY_OFF),
    ),
    Step(
        number="11",
        key="signoff",
        agents=(Role.LEAD,),
        inputs=("all artifacts",),
        outputs=("state.json", "ROADMAP.md"),
        commits=(PHASE_COMPLETE,),
        entry=(EntryGate.SECURITY_DONE, EntryGate.REVIEW_APPROVED),
        exit=(ExitGate.STATE_COMPLETE, ExitGate.ROADMAP_UPDATED),
        state=(PHASE_COMPLETE,),
        mandatory=True,
    ),
    Step(
        number="11.5",
        key="integration_gate",
        agents=(Role.INTEGRATION_GATE,),
        inputs=("API contracts", "design sync", "handoffs", "test results"),
        outputs=("integration-gate-result.jsonl",),
        commits=(Subject("docs({phase}): integration gate"),),
        entry=(EntryGate.SIGNED_OFF,),
        exit=(ExitGate.INTEGRATION_RESULT,),
        skips=(Skip.INTEGRATION_OFF,),
    ),
    Step(
        number="12",
        key="delivery",
        agents=(Role.PO, Role.OWNER),
        inputs=("integration-gate-result.jsonl", "scope-document.json"),
        outputs=("po-qa-verdict.jsonl",),
        commits=(Subject("docs({phase}): PO QA verdict"),),
        entry=(EntryGate.INTEGRATION_DONE,),
        exit=(ExitGate.DELIVERY_VERDICT,),
        skips=(Skip.PO_OFF,),
    ),
)

STEP_BY_KEY = {row.key: row for row in STEPS}

SKIP_FLAGS = {skip.value: step for step in STEPS for skip in step.skips if skip.startswith("--")}
"""Flag of the go command → the step that the user skips by it."""
REVIEWS = frozenset({"design_review", "code_review", "qa", "security"})
"""Steps in which somebody judges what another one has made."""


class Complexity(NamedTuple):
    """A class of complexity and the steps that it runs, when complexity routing is enabled."""

    name: str
    """As the analysis says it."""
    runs: tuple[str, ...]
    """Keys of the steps that run."""
    inline: tuple[str, ...] = ()
    """Keys of the steps that the running agent does itself, without a spawn."""


COMPLEXITIES = (
    Complexity("trivial", ("design_review", "implementation"), inline=("signoff",)),
    Complexity("medium", ("planning", "design_review", "implementation", "code_review", "signoff")),
    Complexity("high", tuple(STEP_BY_KEY)),
)


class TeamSize(NamedTuple):
    """How much of the company works by default. Who makes something never judges it: whichever
    steps run, their roles stay apart.
    """

    name: str
    """As `company.team` says it."""
    does: str
    """In words, for who chooses."""
    runs: tuple[str, ...]
    """Keys of the steps that run, as long as no rule of their own skips them."""


_BY_THEIR_OWN_RULE = ("po", "integration_gate", "delivery")
_SOLO = (
    *_BY_THEIR_OWN_RULE, "planning", "design_review", "implementation", "code_review", "signoff",
)  # fmt: skip

TEAM_SIZES = (
    TeamSize("solo", "plan, implement, review", _SOLO),
    TeamSize("pair", "plan, tests first, implement, review, QA", (*_SOLO, "test_authoring", "qa")),
    TeamSize("company", "all eleven steps", tuple(STEP_BY_KEY)),
)
"""The smallest first. Trivial work is a solo's, whatever the team."""

TEAM_SIZE_BY_NAME = {row.name: row for row in TEAM_SIZES}


class Limit(NamedTuple):
    """How often something may be repeated, or from which value on it ends."""

    key: str
    """Name of the limit, or its key in `config.json` when `configurable`."""
    value: int | float
    """The number, in the unit of the rule."""
    text: str
    """The rule as printed."""
    configurable: bool = False
    """`config.json` may change it."""


LIMITS = (
    Limit("review_loop.max_cycles", 2, "code review max 2 cycles", configurable=True),
    Limit("qa.max_cycles", 2, "QA remediation max 2 cycles, third failure → Architect"),
    Limit("post_task.max_remediations", 2, "post-task gate max 2 remediations"),
    Limit("post_plan.max_remediations", 1, "post-plan 1"),
    Limit("critique.max_rounds", 3, "critique ≤3 rounds", configurable=True),
    Limit("critique.confidence_threshold", 85, "early exit at cf ≥ 85", configurable=True),
    Limit("po.max_questionary_rounds", 3, "PO questionary ≤3 rounds", configurable=True),
    Limit("po.confidence_threshold", 0.85, "at 0.85", configurable=True),
    Limit("delivery.max_feedback_rounds", 2, "delivery feedback ≤2 rounds"),
    Limit("delivery.max_patch_cycles", 2, "patch ≤2 cycles"),
    Limit("delivery.max_major_cycles", 1, "major ≤1"),
    Limit("escalation.timeout_seconds", 300, "`escalation.timeout_seconds` 300", configurable=True),
    Limit("escalation.max_round_trips", 2, "`max_round_trips` 2", configurable=True),
)

LIMIT_BY_KEY = {row.key: row for row in LIMITS}


SOURCE_FORMAT = Subject("{type}({plan}): {task}")
"""Format of a Dev's source commits; the document's `{phase}-{plan}` is our `{plan}`: NN-MM."""


class Trailer(Labelled):
    """A line below the message of an artifact's commit, by which programs find it again."""

    ARTIFACT = "Yolo-Artifact", "kind of the artifact, such as `plan`; every commit of ours has it"
    PHASE = "Yolo-Phase", "phase of the artifact, `NN-slug`; absent above the phases"
    PLAN = "Yolo-Plan", "its plan, `NN-MM`; absent where it belongs to none"
    DEPT = "Yolo-Dept", "its department"
    SCHEMA = "Yolo-Schema", "the format that it was judged by, `artifact/KIND/1`"
    WARNINGS = "Yolo-Warnings", "how many warnings it had when committed; absent without any"
    ORIGIN = (
        "Yolo-Origin",
        "of a copy: the clone that made it and its commit there, `CLONE/COMMIT`; absent in the "
        "original",
    )


class StepCommit(NamedTuple):
    """What one step commits."""

    name: str
    """The step as printed."""
    step: str
    """Its key in the workflow."""
    agents: tuple[Role, ...]
    """Who makes the commit's content."""
    commits: tuple[str, ...]
    """What is committed, as printed."""
    note: str = ""
    """What the agent column adds in parentheses."""
    via: Role | None = None
    """Who writes the file for an agent that cannot."""


COMMITS = (
    StepCommit("Critique", "critique", (Role.CRITIC,), ("critique.jsonl",), "via Lead",
        via=Role.LEAD),
    StepCommit("Architecture", "architecture", (Role.ARCHITECT,), ("architecture.toon",)),
    StepCommit("Planning", "planning", (Role.LEAD,), ("{plan}.plan.jsonl",)),
    StepCommit("Design Review", "design_review", (Role.SENIOR,),
        ("enriched plan.jsonl (spec + ts)",)),
    StepCommit("Test Authoring", "test_authoring", (Role.TESTER,),
        ("test files", "test-plan.jsonl")),
    StepCommit("Implementation", "implementation", (Role.DEV,),
        ("source code per task", "summary.jsonl")),
    StepCommit("Code Review", "code_review", (Role.SENIOR,), ("code-review.jsonl",)),
    StepCommit("Documentation", "documentation", (Role.DOCUMENTER,), ("docs.jsonl",),
        "config-gated"),
    StepCommit("QA", "qa", (Role.QA, Role.QA_CODE), ("verification.jsonl", "qa-code.jsonl")),
    StepCommit("Security", "security", (Role.SECURITY,), ("security-audit.jsonl",)),
    StepCommit("Sign-off", "signoff", (Role.LEAD,), ("state.json", "ROADMAP.md")),
)  # fmt: skip
