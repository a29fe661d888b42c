"""Where a verdict of the Product Owner sends the work: approve delivers, patch goes to a Senior, major to a new scope.

See docs/sources.md#document-000.
"""

from __future__ import annotations

from dataclasses import dataclass

from yolo_fs.protocol.departments import name_in
from yolo_fs.protocol.names import Role
from yolo_fs.protocol.workflow import LIMIT_BY_KEY
from yolo_fs.rules.evidence.facts import PhaseFacts, texts

PATCH_TASKS = 2
"""Tasks that a patch may take."""


@dataclass(frozen=True, slots=True)
class Routed:
    """Who takes up a verdict, and with what."""

    agent: str
    inputs: tuple[str, ...]


def route_of_verdict(facts: PhaseFacts) -> Routed | None:
    """Return who takes up the last verdict; None while there is none, or when it approves."""
    verdicts = facts.lines_of("po-qa-verdict")
    said = [str(line.get("verdict")) for line in verdicts]
    if not said or said[-1] == "approve":
        return None
    if said[-1] == "patch" and said.count("patch") <= _limit("delivery.max_patch_cycles"):
        task = f"patch_request: at most {PATCH_TASKS} tasks"
        return Routed(
            name_in(Role.SENIOR, str(verdicts[-1].get("target_dept"))),
            ("po-qa-verdict.jsonl", task),
        )
    if said.count("major") <= _limit("delivery.max_major_cycles"):
        items = texts(verdicts[-1].get("re_scope_items"))
        return Routed(
            "po",
            (
                "po-qa-verdict.jsonl",
                f"major_rejection: {', '.join(items) or 'what the patches left'}",
            ),
        )
    return Routed("owner", ("po-qa-verdict.jsonl", "every cycle is used up: the user decides"))


def _limit(name: str) -> int:
    return int(LIMIT_BY_KEY[name].value)
