"""What became of a plan, in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from yolo_fs.reasons import Grade, Reason
from yolo_fs.schemas.base import (
    Commit,
    Count,
    Field,
    Form,
    IsoDate,
    PhaseNumber,
    RelativePath,
    Text,
    Wire,
    fault,
    invariant,
)
from yolo_fs.schemas.lines.planning import PlanNumber


class Summary(Wire):
    """The only line of a summary."""

    renamed_keys: ClassVar[Mapping[str, str]] = {
        "commits": "ch",
        "tasks": "tc",
        "dev": "dv",
        "sum": "built",
    }
    accepts: ClassVar[Mapping[str, Form]] = {
        "p": Form.OWN_PHASE,
        "n": Form.OWN_PLAN,
        "dt": Form.MOMENT_AS_DAY,
        "ch": Form.NAMED_COMMIT,
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
    fm: list[RelativePath]
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
        if self.tc <= self.tt:
            return None
        return fault(
            Reason.TOTALS_DISAGREE,
            f"{self.tc} tasks completed of {self.tt}",
            expected="tc no larger than tt",
            at="/tc",
            grade=Grade.SHOULD,
        )
