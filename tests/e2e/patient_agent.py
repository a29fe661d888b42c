"""The scripted agent of the demo, whose Devs say that they have begun, and wait until a test lets them go on.

`PATIENT_GATE` is a folder: a Dev makes a file there named after its task, and waits for the file `open`.
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

from yolo_fs.demo.agent import ScriptedAgent

_DEADLINE_S = 60.0


class PatientAgent(ScriptedAgent):
    """One act of one role. With `PATIENT_SHARES` every plan of its Lead names the files of the first one."""

    def content(self, path: str) -> str:
        text = super().content(path)
        shares = path.endswith(".plan.jsonl") and "PATIENT_SHARES" in os.environ
        return re.sub("plan[0-9]{2}_", "plan01_", text) if shares else text


def main() -> int:
    """Act once."""
    gate, task = Path(os.environ["PATIENT_GATE"]), os.environ["YOLO_FS_TASK"]
    if task:
        (gate / task.replace("/", "-")).write_text(os.getcwd())
        until = time.monotonic() + _DEADLINE_S
        while not (gate / "open").exists() and time.monotonic() < until:
            time.sleep(0.02)
    PatientAgent(os.environ).act()
    return 0


if __name__ == "__main__":
    sys.exit(main())
