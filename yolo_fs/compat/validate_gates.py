"""`validate-gates --step S --phase-dir P`: whether a step may begin, as the reference sees it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from yolo_fs.compat.arguments import UsageError, parse
from yolo_fs.compat.folder import Folder
from yolo_fs.compat.output import print_json
from yolo_fs.reasons import safe
from yolo_fs.rules.phase.scriptgates import SCRIPT_GATES


def run(arguments: Sequence[str]) -> int:
    given = parse(arguments, valued=("--step", "--phase-dir"))
    step, path = given.need("--step"), given.need("--phase-dir")
    if step not in SCRIPT_GATES:
        raise UsageError(f"Unknown step: {step}", hint=f"it is one of {', '.join(SCRIPT_GATES)}")
    missing = _missing(step, path)
    print_json({"gate": "fail" if missing else "pass", "step": step, "missing": missing})
    return 1 if missing else 0


def _missing(step: str, path: str) -> Sequence[str]:
    if not os.path.isdir(path):
        return [f"phase directory {safe(path, 500)}"]
    return [safe(lack) for lack in SCRIPT_GATES[step](Folder(path))]
