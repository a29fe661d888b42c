"""A journal event as a sentence: who did what to what, and the artifact to open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.authority.writers import producers_of
from yolo_fs.protocol.departments import Dept, name_in
from yolo_fs.system.journal import PREFIX


class Happening(NamedTuple):
    """One line of what happened."""

    actor: str
    """Agent, such as `fe-lead`; `yolo-fs` for automatic actions."""
    verb: str
    object: str
    why: str
    """Reason code, or what is missing; empty where the verb says all."""
    path: str
    """Path of the artifact concerned; empty for none."""
    commit: str


_VERBS = {
    "artifact.committed": "committed",
    "artifact.rejected": "was refused",
    "artifact.held": "waits with",
    "artifact.autofixed": "repaired",
    "artifact.pending": "began",
    "gate.opened": "opened gate",
    "gate.closed": "closed gate",
    "escalation.open": "asked",
    "escalation.escalated": "escalated",
    "escalation.resolved": "resolved",
    "agent.started": "started",
    "agent.done": "completed",
    "agent.failed": "failed at",
    "agent.ended": "was stopped at",
    "daemon.started": "started",
    "daemon.stopped": "stopped",
}
"""Event type → verb. Other types are shown by their own name."""
_AGENTS_OWN = ("agent.", "shutdown.")


def happening(event: Mapping[str, Any]) -> Happening:
    """Return a journal event in words. Its texts are as untrusted as the event's."""
    kind = str(event.get("type", "")).removeprefix(PREFIX)
    subject, data = str(event.get("subject") or ""), event.get("data")
    known: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
    place = classify(subject)
    verb = _VERBS.get(kind) or kind.replace(".", " ").replace("_", " ")
    thing = known.get("gate") or known.get("id") or known.get("does") or known.get("task")
    if place and not known.get("gate"):
        thing = place.name
    return Happening(
        _actor(kind, known, place),
        verb,
        str(thing or known.get("what") or known.get("subject") or ""),
        str(known.get("reason") or known.get("why") or ""),
        subject if place else "",
        str(known.get("commit") or ""),
    )


def _actor(kind: str, data: Mapping[str, Any], place: ArtifactPath | None) -> str:
    if kind.startswith(_AGENTS_OWN):
        return str(data.get("agent") or data.get("by") or "yolo-fs")
    if kind.startswith("escalation."):
        return str(data.get("holder") or data.get("agent") or "yolo-fs")
    if place is None or kind.startswith(("gate.", "artifact.autofixed")):
        return "yolo-fs"
    if str(data.get("subject", "")).startswith("chore("):  # what follows from others' files
        return "yolo-fs"
    roles = sorted(producers_of(place.artifact.kind))
    return name_in(roles[0], Dept(place.department)) if len(roles) == 1 else place.department
