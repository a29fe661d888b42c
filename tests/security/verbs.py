"""Every verb that somebody may run in a repository that they do not know, and what hosts of agents ask there."""

from __future__ import annotations

import json
import os
from typing import Any

from tests.e2e.artifacts import PLANNING
from tests.security.asking import Question

PHASE = f"{PLANNING}/phases/01-phase-1"
READERS = (
    "status", "status -v", "status --json", "status --at HEAD", "resume", "resume --json", "resume --format toon",
    "resume --format claude-hook", "resume --role dev", "validate", "validate --json", "validate --staged",
    "validate --format github", "validate --format sarif", "fix", "verify", "verify --json", "events",
    "events --json", "doctor", "doctor --json", "doctor --fix --dry-run", "hooks doctor", "hooks install --dry-run",
    "hooks uninstall --dry-run", "init --dry-run", "phase list", "phase list --json", "dept show", "dept show --json",
    "gate list", "gate list --json", "workflow show", "workflow next", "workflow next --json", "task claims",
    "may dev read README.md", "handoff check", "handoff report", "escalate list", "escalate list --json",
    "envelope show", "schema list", "kept", "forecast", "adopt", "team status", "agent list", "service print", "setup claude --check", "statusline", "logs",
    f"compat validate-plan {PHASE}/01-01.plan.jsonl", "compat phase-detect", "run --once",
)  # fmt: skip
ESSENTIAL = (
    "status", "resume --json", "validate --staged", "verify", "doctor --fix", "hooks doctor", "hooks install --dry-run",
    "handoff check", "compat phase-detect", "run --once",
)  # fmt: skip
"""Those that together run every git command of ours."""


def questions(lines: tuple[str, ...]) -> list[Question]:
    return [Question(tuple(line.split(" "))) for line in lines]


def of_hosts(root: str, path: str) -> list[Question]:
    """Return what a host asks of an agent that edits a file; the most telling questions, or all with YOLO_SECURITY."""
    edit = {"tool_name": "Write", "tool_input": {"file_path": path, "content": "x"}}
    shell = {"tool_name": "Bash", "tool_input": {"command": f"cat {PLANNING}/config.json > {path}"}}
    asked = [
        _of_host("session-start", root, {}),
        _of_host("pre-tool-use", root, edit),
        _of_host("pre-tool-use", root, {**edit, "agent_type": "yolo-dev"}),
        _of_host("pre-tool-use", root, shell),
        _of_host("post-tool-use", root, edit),
        _of_host("subagent-stop", root, {"agent_type": "yolo-dev"}),
        _of_host("stop", root, {}),
    ]
    return asked if os.environ.get("YOLO_SECURITY") else asked[0:7:3]


def _of_host(event: str, root: str, more: dict[str, Any]) -> Question:
    return Question(("hook", event), json.dumps({"cwd": root, "hook_event_name": event, **more}))
