"""`config.json` of the planning tree: every section may be absent. The section `yolo_fs` says what
the coordinator itself may do here.

These are plain values, which every command has; `shape_of` makes the shapes of them that check.

A repository's own configuration is as trustworthy as its last pull, so there it may only tighten.
Each field says which way that is; a value that loosens counts only when it comes from the user's
own configuration.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

from yolo_fs.core.reasons import Reason
from yolo_fs.protocol.departments import BACKEND_ONLY, WORKING
from yolo_fs.schemas.names import DepartmentName, Workflow

if TYPE_CHECKING:  # `shape_of` knows these by their names
    from yolo_fs.schemas.base import Field
    from yolo_fs.schemas.formats import (
        Count,
        Fraction,
        ModelName,
        OptionalPath,
        Percent,
        Positive,
        RelativePath,
        Text,
    )

_FINGERPRINT = r"^[0-9a-f]{8,64}$"
_NOTHING: Mapping[str, Any] = {}


class Policy(NamedTuple):
    """What the coordinator may do in this repository, and how patient it is."""

    strict: bool = False
    """Unknown keys reject instead of warn. Tightens: true."""
    legacy: bool = False
    """Known old spellings warn instead of reject. Loosens: true."""
    commit_ignored: bool = False
    """Commit artifacts that git ignores instead of holding them. Loosens: true."""
    allow_detached: bool = False
    """Commit on a detached HEAD instead of holding. Loosens: true."""
    protected: tuple[Text, ...] = ()
    """Branch names or globs on which nothing is committed. Tightens: every entry."""
    durability: Literal["fsync", "none"] = "fsync"
    """Whether a commit is on the disk before it is acknowledged. Loosens: none."""
    settle_ms: Count = 300
    """Quiet time before a file that is not provably complete is read. Tightens: longer."""
    grace_s: Count = 30
    """Time after which a last line without newline becomes a finding. Neither stricter nor looser:
    only the time of the report changes.
    """
    rescan_s: Positive = 30
    """Interval of scans of the whole tree. Neither stricter nor looser: the watcher reports sooner.
    """
    max_file_bytes: Positive = 8 * 1024 * 1024
    """Largest artifact. Tightens: smaller."""
    max_line_bytes: Positive = 1024 * 1024
    """Longest line of an artifact. Tightens: smaller."""
    max_depth: Positive = 64
    """Deepest nesting of JSON. Tightens: smaller."""
    directive_roots: tuple[RelativePath, ...] = ("apps/web/.local/directives",)
    """Folders whose sessions may hold a `HANDOFF.md`, never outside the repository. Loosens: every
    entry.
    """
    required_reading: OptionalPath = ""
    """What every packet must name as required reading; empty: whatever its sender names. Neither
    stricter nor looser.
    """
    strict_handoffs: bool = False
    """A handoff that was not read from its `handoff.json` fails the phase, even when the agent's
text has it. Tightens: true."""
    handoff_deadline_s: Positive = 1800
    """Time for each stage of a handoff: from delivered to read, to acknowledged, to acted upon.
    Default: the timeout of a gate. Neither stricter nor looser.
    """
    safety_net: bool = True
    """Keep uncommitted files before a command of an agent that may destroy them, such as `git reset
    --hard`. Loosens: false.
    """
    agent_silent_s: Positive = 600
    """Time without a heartbeat after which an agent at work counts as disappeared. Default: twice
    the timeout of an escalation level. Neither stricter nor looser.
    """
    stall_s: Positive = 1800
    """Time without a new artifact or a heartbeat of its agent after which a step is stalled.
    Default: the timeout of a gate. Neither stricter nor looser.
    """
    circuit_failures: Positive = 2
    """Failures in a row that open a department's circuit. Neither stricter nor looser."""
    circuit_open_s: Positive = 300
    """Time after which an open circuit is half-open. Neither stricter nor looser."""
    secrets_allowed: tuple[
        Annotated[str, Field(pattern=_FINGERPRINT, examples=["9f86d081884c7d65"])], ...
    ] = ()
    """Fingerprints of lines that look like a credential and are not. Loosens: every entry."""
    product_handoffs: bool = False
    """Watch, check and commit the handoffs of the product workflow, outside the planning tree in
    `documents/handoffs`. Loosens: true.
    """
    state_files: Literal["kept", "existing", "always", "never"] = "kept"
    """Which state files the daemon keeps up to date. `kept`: those of every phase, only in the work
    tree; a file that the branch already has is committed. The others commit each transition:
    `existing`, of files that exist, and of all files with several departments; `always`, of every
    phase. `never`: no state files. Neither stricter nor looser.
    """
    contexts: Literal["existing", "always", "never"] = "existing"
    """Which compiled contexts the daemon keeps up to date. `existing`: those that exist; `always`:
    also those of every agent of the phase at work; `never`: none, as with `context_compiler:
    false`. Neither stricter nor looser.
    """
    hooks_hold_people: bool = False
    """Git's hooks refuse a person's commit or push as they do an agent's, instead of only warning.
    Tightens: true."""
    aliases: Mapping[str, Mapping[str, str]] = _NOTHING
    """Kind of artifact → what this team writes → what it means: `mission` → `obj` for a key,
    `tst=by hand` → `no_tests` for a value. `fix` and `adopt` replace the one by the other; the
    checks accept nothing more. Neither stricter nor looser.
    """
    autofix: Literal["off", "safe"] = "off"
    """Whether the daemon repairs a refused artifact automatically. `safe`: as `fix --write` does,
    once nobody writes to the file, and only if the repair leaves nothing to decide. Loosens: safe.
    """
    commits_per_minute: Count = 0
    """Maximum number of commits per minute; 0: no limit. Tightens: any other number."""


__all__ = ["Config", "Policy"]


_DEPARTMENTS: Mapping[str, bool] = {row.name.value: row.is_default for row in WORKING}


class ApprovalGates(NamedTuple):
    """Points at which a person decides before the work continues."""

    qa_fail: bool = False
    """After a failed verification, before the repair."""
    security_warn: bool = False
    """After a security audit that warns."""
    code_review: bool = False
    """After the code review, before anything is verified."""
    manual_qa: bool = False
    """Whether a test by hand is required: `manual-qa.jsonl` with PASS, after the verification."""


class QaGates(NamedTuple):
    """Automatic quality gates."""

    post_task: bool = True
    """After each task; yolo_fs only passes it on."""
    post_plan: bool = True
    """After each plan; yolo_fs only passes it on."""
    post_phase: bool = True
    """After the phase; yolo_fs only passes it on."""
    timeout_seconds: Positive = 300
    """Time for one gate."""
    failure_threshold: Literal["critical", "major", "minor"] = "critical"
    """Least severity that fails a gate; yolo_fs only passes it on."""


class EscalationRules(NamedTuple):
    """Escalation."""

    timeout_seconds: Positive = 300
    """Time at one level before the escalation moves up."""
    auto_owner_on_timeout: bool = True
    """Whether an escalation moves to the Owner when the Architect does not answer in time."""
    max_round_trips: Positive = 2
    """Times that one escalation may go up and come back."""
    scope_boundary_required: bool = True
    """Whether an escalation must state its scope boundary; in yolo_fs each must."""


class ReviewLoop(NamedTuple):
    """Code review."""

    max_cycles: Positive = 2
    """Reviews of one plan before it is escalated."""


class ResearchRequests(NamedTuple):
    """Research on demand."""

    enabled: bool = True
    """Whether agents may request research."""
    blocking_timeout_seconds: Positive = 120
    """Time that a blocking request waits."""
    max_concurrent_scouts: Positive = 4
    """Requests worked on at once."""


class ProductOwner(NamedTuple):
    """The optional Product Owner."""

    enabled: bool = False
    """Whether steps `po` and `delivery` exist."""
    max_questionary_rounds: Positive = 3
    """Rounds of questions."""
    confidence_threshold: Fraction = 0.85
    """Confidence that ends the questions."""
    skip_on_effort: tuple[Text, ...] = ("turbo",)
    """Effort profiles without a Product Owner."""
    skip_on_complexity: tuple[Text, ...] = ("trivial",)
    """Complexities without a Product Owner."""
    default_rejection: Literal["patch", "major"] = "patch"
    """What a rejection without a verdict means; yolo_fs only passes it on."""


class Critique(NamedTuple):
    """Critique."""

    enabled: bool = True
    """Whether step `critique` exists."""
    max_rounds: Positive = 3
    """Rounds of critique."""
    confidence_threshold: Percent = 85
    """Confidence that ends the rounds early."""


class IntegrationCheckSettings(NamedTuple):
    """Checks of the integration gate."""

    api_contracts: bool = True
    """Every contract is agreed."""
    design_sync: bool = True
    """Frontend and UI/UX agree."""
    handoffs: bool = True
    """Every department has handed over."""
    tests: bool = True
    """Every department's tests pass."""


class IntegrationGate(NamedTuple):
    """The integration gate; with several departments it always runs."""

    enabled: bool = False
    """Whether it runs with one department as well."""
    timeout_seconds: Annotated[int, Field(ge=60, le=3600, examples=[600])] = 600
    """Time to wait for the departments."""
    checks: IntegrationCheckSettings = IntegrationCheckSettings()
    """What is checked."""
    retry_on_fail: bool = False
    """Whether a failed gate is tried once more; yolo_fs only passes it on."""


class Delivery(NamedTuple):
    """Delivery."""

    mode: Literal["auto", "manual"] = "auto"
    """Whether delivery waits for a person; yolo_fs only passes it on. `yolo-fs go --approve ship`
    asks a person.
    """
    present_to_user: bool = True
    """Whether the result is shown; yolo_fs only passes it on."""


class ComplexityRouting(NamedTuple):
    """Shorter paths for small work."""

    enabled: bool = True
    """Whether small work takes a shorter path."""
    trivial_confidence_threshold: Fraction = 0.85
    """Confidence from which work counts as trivial."""
    medium_confidence_threshold: Fraction = 0.7
    """Confidence from which work counts as medium; yolo_fs only passes it on."""
    fallback_path: Literal["trivial", "medium", "high"] = "high"
    """Path when the confidence is too low; yolo_fs only passes it on."""
    force_analyze_model: ModelName | None = None
    """Model for the analysis, whatever `model_overrides` has; null forces none."""
    max_trivial_files: Positive = 3
    """Most files of trivial work."""
    max_medium_tasks: Positive = 3
    """Most tasks of medium work; yolo_fs only passes it on."""

    def contradiction(self, written: Collection[str]) -> object:
        """Return the fault, or None: calling work trivial needs more confidence than calling it
        medium. `written`: the keys that are not left to their defaults.
        """
        from yolo_fs.schemas.base import fault

        keys = {"trivial_confidence_threshold", "medium_confidence_threshold"}
        trivial, medium = self.trivial_confidence_threshold, self.medium_confidence_threshold
        if trivial > medium or not keys <= set(written):
            return None
        return fault(
            Reason.OUT_OF_RANGE,
            f"{trivial} is not above medium_confidence_threshold {medium}",
            expected=f"a number above {medium}",
            at="/trivial_confidence_threshold",
        )


class Company(NamedTuple):
    """The agents that `yolo-fs go` starts."""

    team: Literal["solo", "pair", "company"] = "company"
    """Size of the team: which steps run by default."""
    steps: tuple[
        Literal[
            "critique",
            "research",
            "architecture",
            "test_authoring",
            "documentation",
            "qa",
            "security",
        ],
        ...,
    ] = ()
    """Steps that run even if the team is too small for them, or the work is trivial."""
    silent_s: Positive = 600
    """Time without output or a written file after which an agent is asked to stop."""
    deadline_s: Positive = 30
    """Time that an agent has to stop once it is asked."""


class Config(NamedTuple):
    """The whole configuration: every key has a default."""

    effort: Literal["thorough", "balanced", "fast", "turbo"] = "balanced"
    """Effort profile: which steps are skipped."""
    autonomy: Text = "standard"
    """How much agents do without asking; yolo_fs only passes it on."""
    auto_commit: bool = True
    """Whether artifacts are committed."""
    verification_tier: Literal["quick", "standard", "deep"] = "standard"
    """Depth of the verification; yolo_fs only passes it on."""
    context_compiler: bool = True
    """Whether `.ctx-{role}.toon` is compiled."""
    max_tasks_per_plan: Positive = 5
    """Most tasks of a plan; yolo_fs only passes it on."""
    agent_teams: bool = True
    """Whether several agents work at once; yolo_fs only passes it on."""
    team_mode: Literal["auto", "task", "teammate"] = "auto"
    """How agents are started."""
    model_profile: Text = "quality"
    """Profile that chooses models; yolo_fs only passes it on."""
    model_overrides: Mapping[str, ModelName] = _NOTHING
    """Role, or agent of one department → the model that `yolo-fs go` names to its host."""
    security_audit: bool = True
    """Whether step `security` exists."""
    approval_gates: ApprovalGates = ApprovalGates()
    """Points at which a person decides."""
    departments: Mapping[DepartmentName, bool] = _DEPARTMENTS
    """Active departments; a department that is not listed is active only if it is the default."""
    department_workflow: Workflow = BACKEND_ONLY
    """How departments are dispatched."""
    cross_team_handoff: bool = True
    """Whether departments hand over by files; in yolo_fs they always do."""
    qa_gates: QaGates = QaGates()
    """Automatic quality gates."""
    escalation: EscalationRules = EscalationRules()
    """Escalation."""
    review_loop: ReviewLoop = ReviewLoop()
    """Code review."""
    research_requests: ResearchRequests = ResearchRequests()
    """Research on demand."""
    po: ProductOwner = ProductOwner()
    """The Product Owner."""
    critique: Critique = Critique()
    """Critique."""
    integration_gate: IntegrationGate = IntegrationGate()
    """The integration gate."""
    documenter: Literal["never", "on_request", "always"] = "on_request"
    """When step `documentation` runs."""
    delivery: Delivery = Delivery()
    """Delivery."""
    complexity_routing: ComplexityRouting = ComplexityRouting()
    """Shorter paths for small work."""
    company: Company = Company()
    """The agents that `yolo-fs go` starts."""
    yolo_fs: Policy = Policy()
    """Settings of yolo_fs itself."""


_Values = TypeVar("_Values", Config, Policy)


def values_of(kind: type[_Values], checked: Mapping[str, Any]) -> _Values:
    """Return JSON that was checked by the shape of a class of values as such values."""
    defaults = kind._field_defaults.items()
    return kind(**{name: _fit_to_default(default, checked[name]) for name, default in defaults})


def _fit_to_default(default: Any, checked: Any) -> Any:
    if hasattr(default, "_fields"):
        return values_of(type(default), checked)
    return tuple(checked) if isinstance(default, tuple) else checked
