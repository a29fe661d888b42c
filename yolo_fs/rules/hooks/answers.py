"""How a hook's answer is told to each host: one object on stdout, or exit 2 where a host knows no
other refusal; and what to do instead of writing a guarded file by hand. Pure.

Only fields that the host's closed schema has are ever used. See docs/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from yolo_fs.protocol.hooks import AGENT_HOOK_BY_NAME
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT, classify

LONGEST = 9_000
"""Hosts move a text of more than 10,000 characters out of the context."""
REFUSED = 2
"""Exit code by which a host takes a refusal; never given but on purpose."""

_HEARD = frozenset(
    {
        "session-start",
        "user-prompt-submit",
        "pre-tool-use",
        "post-tool-use",
        "post-tool-use-failure",
        "subagent-start",
    }
)
"""Events at which a host takes something into the agent's context."""


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """What a hook answers."""

    refusal: str = ""
    """Why the agent may not, or not yet, and what it should do instead; empty when it may."""
    context: str = ""
    """What the agent is told besides."""
    note: str = ""
    """What its user may like to know; never reaches the agent."""


@dataclass(frozen=True, slots=True)
class HookOutput:
    """What the host is given."""

    said: Mapping[str, Any] = field(default_factory=dict)
    """The object on stdout."""
    complaint: str = ""
    """The text on stderr."""
    exit_code: int = 0


def output_of(event: str, host: str, told: HookAnswer) -> HookOutput:
    """Return an answer in the form of a host."""
    refusal = _cut(told.refusal) if AGENT_HOOK_BY_NAME[event].may_block else ""
    context = _cut(told.context) if event in _HEARD else ""
    if host == "cursor":
        return HookOutput(_for_cursor(event, refusal, context), told.note)
    if host == "codex" and event == "pre-tool-use":
        refusal = refusal.removesuffix(".")  # it adds ". Command: …"
    if event == "task-completed" and refusal:
        return HookOutput({}, refusal, REFUSED)
    return HookOutput(_for_claude(event, refusal, context), told.note)


def _for_claude(event: str, refusal: str, context: str) -> dict[str, Any]:
    """Return what two of the hosts take: the schema of one is the closed part of the other's."""
    if refusal and event != "pre-tool-use":
        return {"decision": "block", "reason": refusal}
    denied = {"permissionDecision": "deny", "permissionDecisionReason": refusal} if refusal else {}
    added = {"additionalContext": context} if context else {}
    if not denied and not added:
        return {}
    return {
        "hookSpecificOutput": {"hookEventName": AGENT_HOOK_BY_NAME[event].event, **denied, **added}
    }


def _for_cursor(event: str, refusal: str, context: str) -> dict[str, Any]:
    if refusal and event == "pre-tool-use":
        first = refusal.partition("\n")[0]
        return {"permission": "deny", "user_message": first, "agent_message": refusal}
    if refusal and event in ("stop", "subagent-stop"):
        return {"followup_message": refusal}
    if event in ("session-start", "post-tool-use") and (refusal or context):
        return {"additional_context": refusal or context}
    return {}


def _cut(text: str) -> str:
    return (
        text
        if len(text) <= LONGEST
        else f"{text[:LONGEST]}…\n(cut; 'yolo-fs validate' shows everything)"
    )


@dataclass(frozen=True, slots=True)
class Guarded:
    """Files of one sort that only a command writes."""

    what: str
    names: tuple[str, ...]
    """Patterns of file names."""
    instead: str
    """What brings about what the writer wants."""
    is_state: bool = False
    """A committed function of history, which teams without our state files write themselves."""
    source: str = "the documentation of the hosts"
    """Section that the row restates."""


GUARDED = (
    Guarded(
        "the status of a department, which is written under its lock alone",
        (".dept-status-*", ".dept-lock-*"),
        "declare it with 'yolo-fs dept update DEPARTMENT --phase N --status … --step …'",
        source="the reference scripts",
    ),
    Guarded(
        "a sentinel, which follows from committed evidence and opens nothing when it is "
        "made by hand",
        (".handoff-*",),
        "write the artifacts that the gate asks for; 'yolo-fs gate why NAME --phase N' "
        "names each that is missing",
        source="the reference scripts",
    ),
    Guarded(
        "a state file, which follows from committed artifacts",
        ("state.json", ".execution-state.json", ".phase-orchestration.json"),
        "write the artifact of the step, and the state follows; "
        "'yolo-fs workflow complete STEP --phase N' names each piece that is missing",
        is_state=True,
        source="document 002 (Resume Protocol)",
    ),
    Guarded(
        "the state of an escalation, which its log decides",
        (".escalation-state.json", ".escalation-resolution-*"),
        "use 'yolo-fs escalate open', 'raise' or 'resolve'",
        source="the reference scripts",
    ),
)


def guarded(path: str) -> Guarded | None:
    """Return the row of a path relative to the repository; None when anybody may write it."""
    if not path.startswith(f"{PLANNING_ROOT}/"):
        return None
    name = path.rpartition("/")[2]
    return next(
        (row for row in GUARDED if any(fnmatchcase(name, pattern) for pattern in row.names)), None
    )


def holds_guarded(folder: str) -> bool:
    """Return whether a folder of the planning tree is one that such files lie in: the tree,
    `phases/`, a phase.
    """
    parts = folder.rstrip("/*").split("/")
    return parts[0] == PLANNING_ROOT and len(parts) <= 3 and classify(folder) is None
