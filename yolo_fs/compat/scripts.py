"""The table of drop-in scripts, and the only place where their errors are printed.

A script is a function `(arguments) -> exit code` that prints what its contract requires. Its module
is imported on demand.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from yolo_fs.compat.script_io import UsageError, say_warnings
from yolo_fs.core.reasons import Exit, Reason, YoloError, safe

SCRIPTS: Mapping[str, str] = {
    "dept-status": "dept_files.dept_status",
    "dept-gate": "gates.dept_gate",
    "dept-cleanup": "dept_files.dept_cleanup",
    "dept-orchestrate": "gates.dept_orchestrate",
    "resolve-departments": "gates.resolve_departments",
    "validate": "validate.validate",
    "validate-plan": "plans.validate_plan",
    "validate-naming": "plans.validate_naming",
    "validate-config": "shapes.validate_config",
    "validate-gates": "validate_gates.run",
    "validate-summary": "advisories.validate_summary",
    "validate-frontmatter": "advisories.validate_frontmatter",
    "validate-commit": "advisories.validate_commit",
    "validate-send-message": "advisories.validate_send_message",
    "check-escalation-timeout": "execution_state.check_escalation_timeout",
    "generate-execution-state": "execution_state.generate_execution_state",
    "resolve-task-deps": "validate.resolve_task_deps",
    "integration-gate": "gates.integration_gate",
    "pre-integration-check": "gates.pre_integration_check",
    "git-commit-serialized": "git_commit_serialized.run",
    "phase-detect": "phase_detect.run",
}
"""Name of the script → its function, `module.function` in this package."""

_LONGEST_USAGE = 5_000
"""The usage may be JSON, which is useless when cut."""

Script = Callable[[Sequence[str]], int]


def load(name: str) -> Script:
    """Import the function of a script."""
    module, _, function = SCRIPTS[name].partition(".")
    return cast("Script", getattr(importlib.import_module(f"yolo_fs.compat.{module}"), function))


def run(name: str, arguments: Sequence[str]) -> int:
    """Run one script; errors of its arguments or the environment go to stderr and give 1."""
    try:
        try:
            code = load(name)(arguments)
        finally:
            say_warnings()
        sys.stdout.flush()
    except YoloError as error:
        complain(error)
    except BrokenPipeError:  # nobody reads on, as in `phase-detect.sh | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        complain(YoloError(Reason.UNREADABLE, f"{error.filename}: {error.strerror}"))
    else:
        return code
    return 1


def main(arguments: Sequence[str]) -> int:
    """Run a script from the shell, without click: agents call these in loops."""
    name, *rest = arguments
    try:
        return run(name, rest)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as defect:
        complain(YoloError(Reason.INTERNAL_ERROR, f"{type(defect).__name__}: {defect}"))
        return Exit.DEFECT


def complain(error: YoloError) -> None:
    """Print an error in the reference's form."""
    is_usage = isinstance(error, UsageError)
    limit = _LONGEST_USAGE if is_usage else 500
    print(f"{'' if is_usage else 'ERROR: '}{safe(error.message, limit)}", file=sys.stderr)
    if error.hint:
        print(f"{'' if is_usage else 'Hint: '}{safe(error.hint, 500)}", file=sys.stderr)
