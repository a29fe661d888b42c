"""Commit subjects: one template renders our subjects and matches those in history.

A template is the sentence of the requirement document itself, such as `docs({phase}): plan {plan}`.
We write `{phase}` as the directory's number; when reading, every spelling found in real histories
is understood.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from yolo_fs.ids import PlanId
from yolo_fs.reasons import safe

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
    """Return the phase and plan that a scope names in any historical spelling (`phase-3`,
    `03-auth`, …).
    """
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
