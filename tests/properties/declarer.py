"""A process that declares: reads one history per line from stdin, carries it out, and says when each call began, ended,
and what came of it. Times are of the monotonic clock, which all processes of a machine share.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import YoloError
from yolo_fs.progress.departments import Declaration, declare
from yolo_fs.protocol.departments import Dept

PHASE = PhaseId("01", "auth")


def carry_out(root: str, operation: dict[str, Any]) -> dict[str, Any]:
    """Declare once and return the call as the history has it."""
    said = Declaration(operation["values"], None, operation["expect"])
    began = time.monotonic_ns()
    try:
        answer = {"state": declare(root, Dept.BACKEND, PHASE, said)}
    except YoloError as error:
        answer = {"refused": error.reason.value, "message": error.message}
    return {**operation, "began": began, "ended": time.monotonic_ns(), **answer}


def main() -> None:
    """Carry out histories until stdin ends."""
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(
            json.dumps([carry_out(asked["root"], operation) for operation in asked["operations"]]),
            flush=True,
        )


if __name__ == "__main__":
    main()
