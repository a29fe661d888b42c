"""What shows that a blocked task goes on: a commit of the Dev, by its subject alone.

See docs/sources.md#document-002.
"""

from __future__ import annotations

import re

from yolo_fs.ids import EscalationId
from yolo_fs.rules.evidence.commits import purpose_of
from yolo_fs.subject import GRAMMAR

_RESOLVED = re.compile(r"resolve blocker\b")


def resumes(name: EscalationId, subject: str, *, is_only: bool) -> bool:
    """Tell whether a commit carries on the task that is blocked.

    `is_only`: no other escalation of the plan waits for its Dev, so that a resolved blocker can be no other.
    """
    if re.search(rf"\b{re.escape(str(name))}\b", subject):
        return True
    purpose = purpose_of(subject)
    if purpose is None or purpose.step:
        return False
    if purpose.task:
        return purpose.task == name.task
    found = GRAMMAR.fullmatch(subject)
    return (
        is_only
        and purpose.plan == name.task.plan
        and bool(found and _RESOLVED.match(found["text"]))
    )
