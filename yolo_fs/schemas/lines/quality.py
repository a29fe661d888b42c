"""Verification, code quality, security, and the results of the QA gates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from yolo_fs.core.reasons import Grade, Reason
from yolo_fs.schemas.base import Field, Form, Shape, exceeds, fault, invariant, may_lack
from yolo_fs.schemas.formats import (
    Count,
    IsoDate,
    IsoInstant,
    LineNumber,
    NotedPath,
    Number,
    PhaseNumber,
    PlanName,
    Statement,
    TaskName,
    Text,
)
from yolo_fs.schemas.layout import spelling_of


class Verification(Shape):
    """Line 1 of a verification: the counts of its checks."""

    accepts: ClassVar[Mapping[str, Form]] = {"dt": Form.MOMENT_AS_DAY}

    tier: Literal["quick", "standard", "deep"]
    """Depth of the verification."""
    r: Literal["PASS", "FAIL", "PARTIAL"]
    """Result."""
    ps: Count
    """Checks passed."""
    fl: Count
    """Checks failed."""
    tt: Count
    """Checks in total; a check that only warned is in neither of the two."""
    dt: IsoDate
    """Day of the verification."""

    @invariant
    def counts_within_total(self) -> object:
        """`ps` and `fl` together are at most `tt`."""
        if self.ps + self.fl <= self.tt:
            return None
        return fault(
            Reason.TOTALS_DISAGREE,
            f"{self.ps} passed + {self.fl} failed of {self.tt}",
            expected="ps + fl ≤ tt",
            at="/tt",
            grade=Grade.SHOULD,
        )


class VerificationCheck(Shape):
    """One check."""

    renamed_keys: ClassVar[Mapping[str, str]] = {"check": "c", "result": "r", "detail": "ev"}

    c: Statement
    """Check: what was looked at."""
    r: Literal["pass", "fail", "warn"]
    """Result."""
    ev: Text
    """Evidence."""
    cat: Literal["must_have", "artifact", "key_link", "anti_pattern", "convention"]
    """Category."""


class SuiteRun(Shape):
    """Result of a test run."""

    ps: Count = may_lack()
    """Passed."""
    fl: Count = may_lack()
    """Failed."""
    sk: Count = may_lack()
    """Skipped."""


class LintRun(Shape):
    """Result of a lint run."""

    err: Count = may_lack()
    """Errors."""
    warn: Count = may_lack()
    """Warnings."""


class TddCoverage(Shape):
    """How many tasks had their tests first."""

    covered: Count = may_lack()
    """Tasks with tests."""
    total: Count = may_lack()
    """Tasks in total."""
    missing: Any = None
    """The others: their number or their ids."""

    @invariant
    def covered_within_total(self) -> object:
        """`covered` is at most `total`."""
        return exceeds(self, "covered", "total", Grade.SHOULD)


class CodeQuality(Shape):
    """Line 1 of a code quality review."""

    accepts: ClassVar[Mapping[str, Form]] = {"dt": Form.MOMENT_AS_DAY}

    r: Literal["PASS", "FAIL", "PARTIAL"]
    """Result."""
    tests: SuiteRun
    """Test run."""
    lint: LintRun
    """Lint run."""
    dt: IsoDate
    """Day of the review."""
    tdd: TddCoverage | None = None
    """Test-first coverage."""


class QualityFinding(Shape):
    """One finding of a code quality review."""

    f: NotedPath
    """File."""
    ln: LineNumber
    """Line number from 1; 0 when the finding concerns the whole file."""
    sev: Literal["critical", "major", "minor"]
    """Severity."""
    issue: Statement
    """What is wrong."""
    sug: Text
    """Suggestion."""


class SecurityAuditLine(Shape):
    """Line 1 of a security audit."""

    accepts: ClassVar[Mapping[str, Form]] = {"dt": Form.MOMENT_AS_DAY}

    r: Literal["PASS", "FAIL", "WARN"]
    """Result; FAIL stops everything until the user decides."""
    findings: Count
    """Number of findings."""
    critical: Count
    """How many of them are critical."""
    dt: IsoDate
    """Day of the audit."""

    @invariant
    def critical_within_findings(self) -> object:
        """Critical findings are findings."""
        return exceeds(self, "critical", "findings")


class SecurityFinding(Shape):
    """One finding of a security audit."""

    cat: Literal["owasp", "secrets", "deps", "config"]
    """Category."""
    sev: Literal["critical", "high", "medium", "low"]
    """Severity."""
    f: NotedPath
    """File."""
    issue: Statement
    """What is wrong."""
    fix: Text
    """How to mend it."""


class PassFail(Shape):
    """Passed and failed."""

    ps: Count
    """Passed."""
    fl: Count
    """Failed."""


class PassFailTotal(PassFail):
    """Passed and failed of a total."""

    tt: Count
    """Total."""


def _is_level(value: Mapping[str, Any], level: str) -> bool:
    """Return whether a record is of a gate level, however that is spelled."""
    return spelling_of(str(value.get("gl"))) == spelling_of(level)


class GateRecord(Shape):
    """What every record of a gate says; reads the records whose level `gl` no gate has."""

    allows_extra: ClassVar[bool] = True
    accepts: ClassVar[Mapping[str, Form]] = {"dt": Form.DAY_AS_MOMENT, "plan": Form.SHORT_PLAN}

    gl: Literal["post-task", "post-plan", "post-phase"]
    """Gate level."""
    r: Literal["PASS", "FAIL", "WARN"]
    """Result."""
    dt: IsoInstant
    """Moment the gate was run."""


class PostTaskGate(GateRecord):
    """Gate after a task."""

    allows_extra: ClassVar[bool] = False

    gl: Literal["post-task"]
    """Gate level."""
    plan: PlanName
    """Plan."""
    task: TaskName
    """Task."""
    tst: PassFail
    """Tests."""
    dur: Number = Field(ge=0)
    """Duration of the gate."""
    f: list[NotedPath]
    """Files that the task touched."""

    @classmethod
    def matches(cls, value: Mapping[str, Any]) -> bool:
        return _is_level(value, "post-task")


class PostPlanGate(GateRecord):
    """Gate after a plan."""

    allows_extra: ClassVar[bool] = False

    gl: Literal["post-plan"]
    """Gate level."""
    plan: PlanName
    """Plan."""
    tc: Count
    """Tasks completed."""
    tt: Count
    """Tasks in total."""
    tst: PassFail
    """Tests."""
    dur: Number = Field(ge=0)
    """Duration of the gate."""
    mh: PassFailTotal
    """Must-haves."""

    @classmethod
    def matches(cls, value: Mapping[str, Any]) -> bool:
        return _is_level(value, "post-plan")

    @invariant
    def completed_within_total(self) -> object:
        """`tc` is at most `tt`."""
        return exceeds(self, "tc", "tt")


class PostPhaseGate(GateRecord):
    """Gate after a phase."""

    allows_extra: ClassVar[bool] = False

    gl: Literal["post-phase"]
    """Gate level."""
    ph: PhaseNumber
    """Phase."""
    plans: list[PlanName]
    """Plans of the phase."""
    tst: PassFail
    """Tests."""
    dur: Number = Field(ge=0)
    """Duration of the gate."""
    esc: Count
    """Escalations that are open."""
    gates: PassFailTotal
    """Gates before this one."""

    @classmethod
    def matches(cls, value: Mapping[str, Any]) -> bool:
        return _is_level(value, "post-phase")


class ScriptGate(Shape):
    """A record as the gate script itself writes it, told apart by its `gate`, `steps` or `tm`."""

    accepts: ClassVar[Mapping[str, Form]] = {"dt": Form.MOMENT_AS_DAY}

    gl: Literal["post-task", "post-plan", "post-phase"]
    """Gate level."""
    r: Literal["PASS", "FAIL", "WARN", "SKIPPED"]
    """Result."""
    dt: IsoDate
    """Day the gate was run."""
    gate: Any = None
    """Verdict of the gate."""
    tm: Any = None
    """Duration of the gate."""
    steps: Any = None
    """Workflow steps that were looked at."""
    plan: str = ""
    """Plan."""
    plans: dict[str, Any] | None = None
    """Plans complete and in total."""
    ph: str = ""
    """Phase."""
    task: str = ""
    """Task."""
    tst: dict[str, Any] | None = None
    """Tests."""
    mh: dict[str, Any] | None = None
    """Must-haves: truths, artifacts, key links."""

    @classmethod
    def matches(cls, value: Mapping[str, Any]) -> bool:
        return bool({"gate", "steps", "tm"} & value.keys())
