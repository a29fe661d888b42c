"""The four kinds of name that agents use for their work: phase, plan, task, escalation; and commit
subjects, which hold them.

One template renders our subjects and matches those in history. It is the sentence of the
requirement document itself, such as `docs({phase}): plan {plan}`. We write `{phase}` as the
directory's number; when reading, every spelling found in real histories is understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from yolo_fs.core.reasons import safe

PHASE_DIRECTORY = re.compile(r"(?P<number>[0-9]{2})-(?P<slug>[a-z0-9]+(?:-[a-z0-9]+)*)")
PLAN = re.compile(r"(?P<phase>[0-9]{2})-(?P<number>[0-9]{2})")
TASK = re.compile(r"(?P<plan>[0-9]{2}-[0-9]{2})/T(?P<number>[1-9][0-9]*)")
ESCALATION = re.compile(r"ESC-(?P<plan>[0-9]{2}-[0-9]{2})-T(?P<number>[1-9][0-9]*)")
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
"""Departments, gates and other names that reach a path."""

_IGNORED = dict.fromkeys(
    (*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF)
)
"""What HFS+ leaves out when it compares names."""
_GIT = re.compile(r"(?:\.git|git~1)[ .]*(?::.*)?", re.DOTALL | re.IGNORECASE | re.ASCII)


def spells_git(part: str) -> bool:
    """Return whether some file system takes a part of a path for `.git`, as git's verify_path does:
    in other case, with characters that HFS+ ignores, by its short name, with dots and spaces behind
    it, or with a stream of NTFS.
    """
    return any(map(_GIT.fullmatch, part.translate(_IGNORED).split("\\")))


def stays_inside(path: str) -> bool:
    """Return whether a path is relative, POSIX, and leads out of no folder that it is below."""
    return not (
        path.startswith("/")
        or ".." in path.split("/")
        or "\\" in path
        or any(ord(char) < 32 for char in path)
    )


class PhaseId(NamedTuple):
    """A phase directory `{NN}-{slug}`."""

    number: str
    """Two digits, as in `01`."""
    slug: str

    @classmethod
    def parse(cls, text: str) -> PhaseId | None:
        """Return the phase that a directory name spells, or None."""
        found = PHASE_DIRECTORY.fullmatch(text)
        return cls(found["number"], found["slug"]) if found else None

    def __str__(self) -> str:
        return f"{self.number}-{self.slug}"


def twice_numbered(phases: Iterable[PhaseId]) -> dict[str, tuple[PhaseId, ...]]:
    """Return the numbers that several phases have, with those phases."""
    by_number: dict[str, tuple[PhaseId, ...]] = {}
    for phase in sorted(set(phases)):
        by_number[phase.number] = (*by_number.get(phase.number, ()), phase)
    return {number: found for number, found in by_number.items() if len(found) > 1}


class PlanId(NamedTuple):
    """A plan `NN-MM`: phase number, then plan number."""

    phase: str
    number: str

    @classmethod
    def parse(cls, text: str) -> PlanId | None:
        """Return the plan that `NN-MM` names, or None."""
        found = PLAN.fullmatch(text)
        return cls(found["phase"], found["number"]) if found else None

    def __str__(self) -> str:
        return f"{self.phase}-{self.number}"


class TaskRef(NamedTuple):
    """A task `NN-MM/Tk`."""

    plan: PlanId
    number: int

    @classmethod
    def parse(cls, text: str) -> TaskRef | None:
        """Return the task that `NN-MM/Tk` names, or None."""
        found = TASK.fullmatch(text)
        plan = PlanId.parse(found["plan"]) if found else None
        return cls(plan, int(found["number"])) if found and plan else None

    def __str__(self) -> str:
        return f"{self.plan}/T{self.number}"


class EscalationId(NamedTuple):
    """An escalation `ESC-NN-MM-Tk`, named after the task that is blocked."""

    task: TaskRef

    @classmethod
    def parse(cls, text: str) -> EscalationId | None:
        """Return the escalation that `ESC-NN-MM-Tk` names, or None."""
        found = ESCALATION.fullmatch(text)
        task = TaskRef.parse(f"{found['plan']}/T{found['number']}") if found else None
        return cls(task) if task else None

    def __str__(self) -> str:
        return f"ESC-{self.task.plan}-T{self.task.number}"


TYPES = ("feat", "fix", "test", "refactor", "perf", "docs", "style", "chore")
"""Types that a subject may begin with."""

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
    """What the parenthesis of a subject says, whatever its spelling."""

    phase: str
    """Two digits, or empty when the scope names none."""
    plan: PlanId | None = None


_SPELLINGS = (
    re.compile(r"(?P<phase>[0-9]{2})-(?P<plan>[0-9]{2})"),
    re.compile(r"(?P<phase>[0-9]{2})-[a-z][a-z0-9-]*?-(?P<plan>[0-9]{2})"),
    re.compile(r"(?P<phase>[0-9]{1,2})(?:-[a-z0-9-]+)?"),
    re.compile(r"phase-?(?P<phase>[0-9]{1,2})"),
)


def read_scope(text: str) -> SubjectScope:
    """Return the phase and plan that a scope names in any spelling (`phase-3`, `03-auth`, …)."""
    for spelling in _SPELLINGS:
        if found := spelling.fullmatch(text):
            phase = found["phase"].zfill(2)
            number = found.groupdict().get("plan")
            return SubjectScope(phase, PlanId(phase, number) if number else None)
    return SubjectScope("")


@dataclass(frozen=True)
class Subject:
    """A commit subject with named gaps; renders with `render`, recognises with `match`."""

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
        found = self._pattern.fullmatch(subject)
        return found.groupdict() if found else None

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
