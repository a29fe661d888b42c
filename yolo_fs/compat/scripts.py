"""The table of drop-in scripts, and the boundary where what goes wrong is said once.

A script's module has `run(arguments) -> int`, prints what its contract says and returns the
contract's exit code. It is imported only when it is called.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from yolo_fs.reasons import Reason, YoloError, safe

SCRIPTS: Mapping[str, str] = {
    "dept-status": "dept_status",
    "dept-gate": "dept_gate",
    "dept-cleanup": "dept_cleanup",
    "dept-orchestrate": "dept_orchestrate",
    "resolve-departments": "resolve_departments",
    "validate": "validate",
    "validate-plan": "validate_plan",
    "validate-naming": "validate_naming",
    "validate-config": "validate_config",
    "validate-gates": "validate_gates",
    "validate-summary": "validate_summary",
    "validate-frontmatter": "validate_frontmatter",
    "validate-commit": "validate_commit",
    "validate-send-message": "validate_send_message",
    "check-escalation-timeout": "check_escalation_timeout",
    "generate-execution-state": "generate_execution_state",
    "resolve-task-deps": "resolve_task_deps",
    "integration-gate": "integration_gate",
    "pre-integration-check": "pre_integration_check",
    "git-commit-serialized": "git_commit_serialized",
    "phase-detect": "phase_detect",
}
"""Name of the script → its module in this room."""


class Script(Protocol):
    """What a module of this room is."""

    def run(self, arguments: Sequence[str]) -> int:
        """Do what the script does and return its exit code."""


def load(name: str) -> Script:
    """Import the module of a script."""
    return cast("Script", importlib.import_module(f"yolo_fs.compat.{SCRIPTS[name]}"))


def run(name: str, arguments: Sequence[str]) -> int:
    """Run one script. What is wrong with its arguments or its surroundings goes to stderr and gives 1."""
    try:
        return load(name).run(arguments)
    except YoloError as error:
        complain(error)
    except OSError as error:
        complain(YoloError(Reason.UNREADABLE, f"{error.filename}: {error.strerror}"))
    return 1


def complain(error: YoloError) -> None:
    """Say what went wrong, in the reference's form."""
    hint = f"\nHint: {safe(error.hint, 500)}" if error.hint else ""
    print(f"ERROR: {safe(error.message, 500)}{hint}", file=sys.stderr)
