"""Plans with their tasks, what became of each in one line, and the project's requirements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from yolo_fs.core.reasons import Grade
from yolo_fs.schemas.base import SHOULD, Field, Form, Shape, exceeds, invariant, may_lack
from yolo_fs.schemas.formats import (
    Commit,
    Count,
    IsoDate,
    Name,
    NotedPath,
    PhaseNumber,
    PlanName,
    Statement,
    TaskName,
    Text,
    WorkPath,
)

WaveNumber = Annotated[
    int, Field(ge=1, examples=[1], description="wave from 1", json_schema_extra=SHOULD)
]

PlanNumber = Annotated[
    str,
    Field(
        pattern=r"^[0-9]{2}$",
        examples=["02"],
        description="plan number within its phase, two digits",
    ),
]


class RequiredArtifact(Shape):
    """A file that must exist when the plan is done."""

    renamed_keys: ClassVar[Mapping[str, str]] = {
        "path": "p", "file": "p", "f": "p", "provides": "pv", "desc": "pv", "contains": "c",
    }  # fmt: skip

    p: NotedPath = may_lack()
    """Path."""
    pv: Text = may_lack()
    """What it provides."""
    c: str = may_lack()
    """What it contains; empty when its existence is enough."""


class KeyLink(Shape):
    """A connection that must hold between two parts."""

    renamed_keys: ClassVar[Mapping[str, str]] = {
        "from": "fr",
        "source": "fr",
        "src": "fr",
        "target": "to",
        "dst": "to",
        "via": "vi",
    }

    fr: Text = may_lack()
    """From: the part that refers."""
    to: Text = may_lack()
    """To: the part that is referred to."""
    vi: Text = may_lack()
    """Via: how it refers."""


class MustHaves(Shape):
    """What QA verifies when the plan is done."""

    renamed_keys: ClassVar[Mapping[str, str]] = {
        "truths": "tr",
        "artifacts": "ar",
        "key_links": "kl",
    }
    accepts: ClassVar[Mapping[str, Form]] = {
        "tr": Form.OBJECT_AS_TEXT,
        "ar": Form.TEXT_AS_ARTIFACT,
        "kl": Form.TEXT_AS_LINK,
    }

    tr: list[Text] = may_lack()
    """Truths: statements that must hold."""
    ar: list[RequiredArtifact] = may_lack()
    """Artifacts that must exist."""
    kl: list[KeyLink] = may_lack()
    """Key links that must be wired."""


class CrossDependency(Shape):
    """A dependency on the artifact of another phase."""

    renamed_keys: ClassVar[Mapping[str, str]] = {
        "phase": "p", "plan": "n", "artifact": "a", "reason": "r",
    }  # fmt: skip

    p: PhaseNumber
    """Phase."""
    n: PlanNumber
    """Plan number in that phase."""
    a: NotedPath = may_lack()
    """Artifact."""
    r: Text = may_lack()
    """Reason."""


class TurboPlanHeader(Shape):
    """Line 1 of a turbo plan, which `eff` marks. `mh` may be anything."""

    renamed_keys: ClassVar[Mapping[str, str]] = {
        "phase": "p", "plan": "n", "title": "t", "wave": "w", "depends_on": "d", "must_haves": "mh",
    }  # fmt: skip
    accepts: ClassVar[Mapping[str, Form]] = {
        "p": Form.OWN_PHASE,
        "n": Form.OWN_PLAN,
        "d": Form.SHORT_PLAN,
        "xd": Form.TEXT_AS_DEPENDENCY,
        "sk": Form.OBJECT_AS_TEXT,
        "fm": Form.OBJECT_AS_PATH,
    }

    p: PhaseNumber
    """Phase."""
    n: PlanNumber
    """Plan number: `p` and `n` together are the plan id."""
    t: Statement
    """Title."""
    w: WaveNumber
    """Wave in which the plan runs."""
    d: list[PlanName]
    """Depends on: plans that must be complete first."""
    mh: Any = None
    """Must-haves, not checked in a turbo plan."""
    obj: Text
    """Objective."""
    xd: list[CrossDependency] = Field(default_factory=list)
    """Cross-phase dependencies."""
    eff: Text = ""
    """Effort profile."""
    sk: list[Text] = Field(default_factory=list)
    """Skills that the tasks need."""
    fm: list[WorkPath] = Field(default_factory=list)
    """Files modified: those that the tasks may touch."""
    auto: bool = True
    """Autonomous: no checkpoint asks a person."""

    @classmethod
    def matches(cls, value: Mapping[str, Any]) -> bool:
        """Return whether the turbo relaxation applies: nobody verifies such a plan."""
        return value.get("eff") == "turbo"


class PlanHeader(TurboPlanHeader):
    """Line 1 of a plan."""

    mh: MustHaves
    """Must-haves."""

    @classmethod
    def matches(cls, value: Mapping[str, Any]) -> bool:
        """Return whether the turbo relaxation does not apply."""
        return not TurboPlanHeader.matches(value)


class TurboTask(Shape):
    """A task of a turbo plan, which may leave its type out."""

    renamed_keys: ClassVar[Mapping[str, str]] = {
        "action": "a", "n": "a", "title": "a", "desc": "a", "file": "f", "files": "f", "ac": "v",
        "tests": "ts",
    }  # fmt: skip
    accepts: ClassVar[Mapping[str, Form]] = {"td": Form.LONG_TASK, "f": Form.OBJECT_AS_PATH}

    id: TaskName
    """Task id within the plan."""
    tp: Text = ""
    """Type: `auto`, `checkpoint:…` or any other word."""
    a: Statement
    """Action: what to do."""
    f: list[WorkPath]
    """Files to touch."""
    v: Text
    """Verify: how to see that it works."""
    done: Text
    """What is true when the task is done."""
    spec: Text = ""
    """Specification, written by the Senior at design review: all that the Dev gets."""
    ts: Text = ""
    """Test specification, written by the Senior at design review: all that the Tester gets."""
    td: list[TaskName] = Field(default_factory=list)
    """Task dependencies: tasks of this plan that come first."""


class PlanTask(TurboTask):
    """A task of a plan."""

    tp: Text
    """Type: `auto`, `checkpoint:…` or any other word."""


class Requirement(Shape):
    """One requirement of the project, a line of `reqs.jsonl`."""

    renamed_keys: ClassVar[Mapping[str, str]] = {"p": "pri", "d": "ac"}

    id: Name
    """Requirement id."""
    t: Statement
    """Title."""
    pri: Literal["must", "should", "nice"]
    """Priority."""
    st: Literal["open", "done"] = "open"
    """Status."""
    ac: Text = ""
    """Acceptance criterion."""


class Summary(Shape):
    """The only line of a summary."""

    renamed_keys: ClassVar[Mapping[str, str]] = {
        "commits": "ch",
        "tasks": "tc",
        "dev": "dv",
        "sum": "built",
        "phase": "p",
        "plan": "n",
    }
    accepts: ClassVar[Mapping[str, Form]] = {
        "p": Form.OWN_PHASE,
        "n": Form.OWN_PLAN,
        "dt": Form.MOMENT_AS_DAY,
        "ch": Form.NAMED_COMMIT,
        "fm": Form.OBJECT_AS_PATH,
        "dv": Form.OBJECT_AS_TEXT,
        "built": Form.OBJECT_AS_TEXT,
        "sg": Form.OBJECT_AS_TEXT,
    }

    p: PhaseNumber
    """Phase."""
    n: PlanNumber
    """Plan number: `p` and `n` together are the plan id."""
    t: Text
    """Title of the plan."""
    s: Literal["complete", "partial", "failed"]
    """Status."""
    dt: IsoDate
    """Day of completion."""
    tc: Count
    """Tasks completed."""
    tt: Count
    """Tasks in total."""
    ch: list[Commit]
    """Commit hashes, one per task."""
    fm: list[NotedPath]
    """Files modified."""
    dv: list[Text]
    """Deviations from the plan."""
    built: list[Text]
    """What was built."""
    tst: Literal["red_green", "green_only", "no_tests"]
    """Test status: how the tests came about."""
    sg: list[Text] = Field(default_factory=list)
    """Suggestions of the Dev to the Senior."""

    @invariant
    def completed_within_total(self) -> object:
        """`tc` is at most `tt`."""
        return exceeds(self, "tc", "tt", Grade.SHOULD)
