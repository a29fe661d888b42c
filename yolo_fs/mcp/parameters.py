"""What each parameter of a tool means, and what its answer is called: a model that sees tools alone
reads it beside the name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_AGENT = "Your role, or your name as an instance, such as fe-dev or dev-1."
_PHASE = "Number of the phase, such as 1; empty for the one that is worked on."
_PATH = "An artifact below .yolo-planning/, such as .yolo-planning/phases/01-auth/critique.jsonl."

PARAMETERS: Mapping[str, Mapping[str, str]] = {
    "team_status": {"agent": _AGENT},
    "inbox": {},
    "whose_turn": {"phase": _PHASE},
    "validate_artifact": {
        "path": f"{_PATH} Empty with `text` for a message; empty alone for all artifacts.",
        "text": "The text to check in place of what the file has.",
        "kind": "What the text is, such as artifact/plan/task; empty if the path shows it.",
        "agent": _AGENT,
    },
    "append_record": {
        "path": _PATH,
        "record": "The object of the new line, with the short keys of its kind.",
        "agent": _AGENT,
    },
    "write_artifact": {"path": _PATH, "text": "The whole text of the file.", "agent": _AGENT},
    "check_permission": {
        "action": "What you want to do.",
        "subject": "Path for read and write, topic for decide, tool for use, role for contact and "
        "escalate.",
        "agent": _AGENT,
    },
    "gate_status": {
        "name": "A gate such as ux-complete; empty for all gates of the phase.",
        "phase": _PHASE,
        "wait_s": "Seconds to wait for the gate to open, at most 300; 0 answers at once.",
    },
    "handoff": {
        "action": "check: may the packet be accepted. emit: write one.",
        "path": "For check: the HANDOFF.md; empty for the one that was written last.",
        "fields": "For emit: from_role, to_role, trigger, objective, blocking_rule; optional: "
        "session_id, task_file, directive_branch, required_reading.",
        "agent": _AGENT,
    },
    "escalate": {
        "action": "list; open needs task, reason, evidence, recommendation; raise needs id, "
        "reason, evidence, recommendation; resolve needs id and decision.",
        "id": "For raise and resolve: the escalation, such as ESC-01-02-T3.",
        "task": "For open: the blocked task, such as 01-02/T3.",
        "reason": "The question, or what blocks the work; for resolve: why it is decided so.",
        "evidence": "For open and raise: what was seen or tried, one sentence each.",
        "recommendation": "For open and raise: what you would do.",
        "options": "For raise: the choices; the Architect gives 2 or 3.",
        "decision": "For resolve: the choice; passed on unchanged further down.",
        "instructions": "For resolve: what is to be done, one sentence each.",
        "agent": _AGENT,
    },
    "task": {
        "action": "claim, release, assign and sign-off need agent; claim and assign need task too; "
        "assign and sign-off are the Lead's; claims and summary need nothing.",
        "task": "The task, such as 01-02/T3; for release: empty for all of yours.",
        "files": "For claim: the files that the task changes; empty for those of its plan.",
        "reason": "For assign: why the task is done again.",
        "phase": f"For sign-off. {_PHASE}",
        "agent": _AGENT,
    },
}  # fmt: skip

ANSWERS: Mapping[str, str] = {
    "inbox": "empty",
    "validate_artifact": "valid",
    "append_record": "written",
    "write_artifact": "written",
    "check_permission": "allowed",
    "gate_status": "open",
    "handoff": "done",
    "escalate": "done",
    "task": "done",
}
"""Tool → the key that says yes or no; a tool that only tells something has none."""

FORMER_NAMES: Mapping[str, str] = {
    "stand": "team_status",
    "next": "whose_turn",
    "check": "validate_artifact",
    "append": "append_record",
    "write": "write_artifact",
    "may": "check_permission",
    "gate": "gate_status",
}
"""What tools were called in 0.1; calls may name them until 0.3."""


def described(tool: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's parameters with what each means in place of a title that only
    repeats its name.

    Raises:
        KeyError: a parameter that nothing is said of.
    """
    texts = PARAMETERS[tool]
    properties = {
        name: {key: value for key, value in each.items() if key != "title"}
        | {"description": texts[name]}
        for name, each in schema["properties"].items()
    }
    return {key: value for key, value in schema.items() if key != "title"} | {
        "properties": properties
    }
