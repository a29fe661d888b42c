"""The four kinds of name that agents use for their work: phase, plan, task, escalation; and the
commit subjects that contain them.

One template renders our subjects and matches those in history. It is the sentence of the
requirement document itself, such as `docs({phase}): plan {plan}`. `{phase}` is written as the
directory's number; every spelling found in real histories is understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from yolo_fs.core.reasons import Reason, YoloError, safe

PHASE_DIRECTORY = re.compile(r"(?P<number>[0-9]{2})-(?P<slug>[a-z0-9]+(?:-[a-z0-9]+)*)")
PLAN = re.compile(r"(?P<phase>[0-9]{2})-(?P<number>[0-9]{2})")
TASK = re.compile(r"(?P<plan>[0-9]{2}-[0-9]{2})/T(?P<number>[1-9][0-9]*)")
DEPARTMENT_MARKER = "(?:be-|fe-|ux-)?"
"""Of a department, in an id; none where the plan says whose it is."""
ESCALATION = re.compile(
    rf"ESC-(?P<marker>{DEPARTMENT_MARKER})(?P<plan>[0-9]{{2}}-[0-9]{{2}})-T(?P<number>[1-9][0-9]*)"
)
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""Departments, gates and other names that become part of a path."""
SHORT = 12
"""Digits of a commit hash that is shown: enough for any history, and what a summary may quote."""

_IGNORED = dict.fromkeys(
    (*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF)
)
"""Characters that HFS+ ignores when it compares names."""
_GIT = re.compile(r"(?:\.git|git~1)[ .]*(?::.*)?", re.DOTALL | re.IGNORECASE | re.ASCII)


def spells_git(part: str) -> bool:
    """Return whether some file system takes a part of a path for `.git`.

    As in git's verify_path, it may differ in case, contain characters that HFS+ ignores, be the
    short name, end in dots and spaces, or have a stream of NTFS.
    """
    return any(map(_GIT.fullmatch, part.translate(_IGNORED).split("\\")))


def stays_inside(path: str) -> bool:
    """Return whether a path is relative, POSIX, and leads neither out of a folder that it is below
    nor into a git directory.
    """
    return not (
        path.startswith("/")
        or ".." in path.split("/")
        or "\\" in path
        or any(ord(char) < 32 for char in path)
        or any(map(spells_git, path.split("/")))
    )


def spelled_below(folder: str, path: str) -> str:
    """Return a path of the repository as somebody spells it who stands in a folder of it.

    `folder`: relative to the root; empty for the root itself.
    """
    if not folder or path.startswith(f"{folder}/"):
        return path[len(folder) + 1 :] if folder else path
    return "../" * (folder.count("/") + 1) + path


class PhaseId(NamedTuple):
    """A phase directory `{NN}-{slug}`."""

    number: str
    """Two digits, as in `01`."""
    slug: str

    @classmethod
    def parse(cls, text: str) -> PhaseId | None:
        """Return the phase of a directory name, or None."""
        match = PHASE_DIRECTORY.fullmatch(text)
        return cls(match["number"], match["slug"]) if match else None

    def __str__(self) -> str:
        return f"{self.number}-{self.slug}"


def twice_numbered(phases: Iterable[PhaseId]) -> dict[str, tuple[PhaseId, ...]]:
    """Return the numbers that several phases have, with those phases."""
    by_number: dict[str, tuple[PhaseId, ...]] = {}
    for phase in sorted(set(phases)):
        by_number[phase.number] = (*by_number.get(phase.number, ()), phase)
    return {number: group for number, group in by_number.items() if len(group) > 1}


class PlanId(NamedTuple):
    """A plan `NN-MM`: phase number, then plan number."""

    phase: str
    number: str

    @classmethod
    def parse(cls, text: str) -> PlanId | None:
        """Return the plan of an id `NN-MM`, or None."""
        match = PLAN.fullmatch(text)
        return cls(match["phase"], match["number"]) if match else None

    def __str__(self) -> str:
        return f"{self.phase}-{self.number}"


class TaskRef(NamedTuple):
    """A task `NN-MM/Tk`."""

    plan: PlanId
    number: int

    @classmethod
    def parse(cls, text: str) -> TaskRef | None:
        """Return the task of an id `NN-MM/Tk`, or None."""
        match = TASK.fullmatch(text)
        plan = PlanId.parse(match["plan"]) if match else None
        return cls(plan, int(match["number"])) if match and plan else None

    @classmethod
    def named(cls, text: str) -> TaskRef:
        """Return the task of an id that somebody typed.

        Raises:
            YoloError: BAD_NAME.
        """
        task = cls.parse(text)
        if task is None:
            message = f"{safe(text)!r} is not a task id"
            raise YoloError(Reason.BAD_NAME, message, hint="Spell it NN-MM/Tk, such as 01-02/T3.")
        return task

    def __str__(self) -> str:
        return f"{self.plan}/T{self.number}"


class EscalationId(NamedTuple):
    """An escalation `ESC-NN-MM-Tk`, named after the blocked task.

    Where two departments have a plan of one number, the second one's is `ESC-fe-NN-MM-Tk`, and the
    first one's `ESC-be-NN-MM-Tk` once the second has reported its task without a marker.
    """

    task: TaskRef
    marker: str = ""
    """Marker of the department whose task it is, such as `fe-`; empty where the plan says it."""

    @classmethod
    def parse(cls, text: str) -> EscalationId | None:
        """Return the escalation of an id such as `ESC-01-02-T3`, or None."""
        match = ESCALATION.fullmatch(text)
        task = TaskRef.parse(f"{match['plan']}/T{match['number']}") if match else None
        return cls(task, match["marker"]) if match and task else None

    def __str__(self) -> str:
        return f"ESC-{self.marker}{self.task.plan}-T{self.task.number}"


TYPES = ("feat", "fix", "test", "refactor", "perf", "docs", "style", "chore")
"""Types with which a subject may begin."""

GRAMMAR = re.compile(rf"(?P<type>{'|'.join(TYPES)})\((?P<scope>[^()\n]+)\): (?P<text>\S.*)")

_TOKENS = {
    "phase": r"[^()\n]+?",
    "plan": r"[0-9]{2}-[0-9]{2}",
    "type": "|".join(TYPES),
    "step": r"[a-z][a-z_]*",
    "N": r"[0-9]{1,2}",
    "R": r"[0-9]+",
    "artifact": r"[A-Za-z0-9][A-Za-z0-9_.-]*",
    "task": r"\S.*",
    "text": r"\S.*",
}


class SubjectScope(NamedTuple):
    """The parsed parenthesis of a subject, in any spelling."""

    phase: str
    """Two digits; empty if the scope names no phase."""
    plan: PlanId | None = None


_SPELLINGS = (
    re.compile(r"(?P<phase>[0-9]{2})-(?P<plan>[0-9]{2})"),
    re.compile(r"(?P<phase>[0-9]{2})-[a-z][a-z0-9-]*?-(?P<plan>[0-9]{2})"),
    re.compile(r"(?P<phase>[0-9]{1,2})(?:-[a-z0-9-]+)?"),
    re.compile(r"phase-?(?P<phase>[0-9]{1,2})"),
)


def read_scope(text: str) -> SubjectScope:
    """Return the phase and plan of a scope in any spelling (`phase-3`, `03-auth`, …)."""
    for spelling in _SPELLINGS:
        if match := spelling.fullmatch(text):
            phase = match["phase"].zfill(2)
            number = match.groupdict().get("plan")
            return SubjectScope(phase, PlanId(phase, number) if number else None)
    return SubjectScope("")


@dataclass(frozen=True)
class Subject:
    """A template for a commit subject with named gaps, for `render` and `match`."""

    template: str

    def render(self, **gaps: str) -> str:
        """Return the subject with its gaps filled.

        Raises:
            ValueError: a value does not have the form of its gap, or holds what cannot be shown.
                Free text
                never enters a subject that we write (F55).
        """
        for name, value in gaps.items():
            fits = re.fullmatch(_TOKENS[name], value) and safe(value, len(value)) == value
            if f"{{{name}}}" in self.template and not fits:
                raise ValueError(f"{name}={value!r} does not fit {self.template!r}")
        return self.template.format(**gaps)

    def match(self, subject: str) -> dict[str, str] | None:
        """Return the values of the gaps in `subject`, or None when it does not match."""
        match = self._pattern.fullmatch(subject)
        return match.groupdict() if match else None

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = re.split(r"\{(\w+)\}", self.template)
        return re.compile(
            "".join(
                f"(?P<{part}>{_TOKENS[part]})" if index % 2 else re.escape(part)
                for index, part in enumerate(parts)
            )
        )

    def __str__(self) -> str:
        return self.template
