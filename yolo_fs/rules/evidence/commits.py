"""What a commit was for, told by its subject alone: the templates that render subjects read them
again. Pure.

Every historical spelling of the scope is understood. A source commit names its task by id (`T3 …`)
or by the task's own words, which is what the document prescribes. See docs/sources.md#document-002.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from yolo_fs.ids import PlanId, TaskRef
from yolo_fs.protocol.workflow import STEPS
from yolo_fs.subject import GRAMMAR, Subject, read_scope

_TASK = re.compile(r"(?:(?P<plan>[0-9]{2}-[0-9]{2})/)?T(?P<number>[1-9][0-9]*)\b")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a commit was for."""

    phase: str
    """Two digits; empty when the subject names no phase."""
    plan: PlanId | None = None
    task: TaskRef | None = None
    step: str = ""
    """Key of the step whose artifact it says it records; empty for source and anything else."""
    words: str = ""
    """What it says after the scope where it names no task, to be compared with the words of a task.
    """


def purpose_of(subject: str) -> Purpose | None:
    """Return what a subject says it was for, or None when it is not one of the protocol's form."""
    found = GRAMMAR.fullmatch(subject)
    if found is None:
        return None
    scope = read_scope(found["scope"])
    for step, template in _BY_WORD.get(found["text"].partition(" ")[0], ()):
        if gaps := template.match(subject):
            return Purpose(
                scope.phase, PlanId.parse(gaps.get("plan", "")) or scope.plan, None, step
            )
    task = _TASK.match(found["text"])
    plan = PlanId.parse(task["plan"]) if task and task["plan"] else scope.plan
    ref = TaskRef(plan, int(task["number"])) if plan and task else None
    return Purpose(
        scope.phase or (plan.phase if plan else ""),
        plan,
        ref,
        "",
        "" if ref else alike(found["text"]),
    )


def alike(words: str) -> str:
    """Return words as they are compared: spaces, case and the final full stop make no
    difference.
    """
    return _SPACE.sub(" ", words).strip().rstrip(".").casefold()


def _by_word() -> Mapping[str, tuple[tuple[str, Subject], ...]]:
    """Return the templates of artifacts by the first word after the scope; most subjects then meet
    none of them.
    """
    found: dict[str, tuple[tuple[str, Subject], ...]] = {}
    for step in STEPS:
        for template in step.commits:
            word = template.template.partition("): ")[2].partition(" ")[0]
            if not word.startswith("{"):
                found[word] = (*found.get(word, ()), (step.key, template))
    return found


_BY_WORD = _by_word()
