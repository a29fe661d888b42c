"""A stranger's agent: it knows `YOLO_FS_*` and what its verdicts look like, and asks for an example of the rest."""

import json
import os
import pathlib
import subprocess
import time

DAY, PLAN = time.strftime("%Y-%m-%d", time.gmtime()), os.environ["YOLO_FS_PLAN"]
CHECKS = dict.fromkeys(("api", "design", "handoffs", "tests"), "pass")
VERDICTS = {
    "critique": {"id": "C1", "cat": "gap", "sev": "minor", "q": "Which?", "ctx": "c", "sug": "s", "st": "addressed", "cf": 90, "rd": 1},
    "code-review": {"plan": PLAN, "r": "approve", "cycle": 1, "dt": DAY, "tdd": "skip"},
    "qa-code": {"r": "PASS", "tests": {"ps": 1, "fl": 0, "sk": 0}, "lint": {"err": 0, "warn": 0}, "dt": DAY},
    "security-audit": {"r": "PASS", "findings": 0, "critical": 0, "dt": DAY},
    "integration-gate-result": {"r": "PASS", "checks": CHECKS, "failures": [], "dt": DAY},
}  # fmt: skip
for path in map(pathlib.Path, os.environ["YOLO_FS_WRITES"].splitlines()):
    kind = path.name.removeprefix("fe-").removeprefix("ux-").partition(".")[0]
    text = json.dumps(VERDICTS.get(kind, "done")) + "\n"
    if ".yolo-planning" in path.parts and kind not in VERDICTS:
        text = subprocess.check_output(["yolo-fs", "schema", "example", path], text=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
if task := os.environ["YOLO_FS_TASK"]:
    subprocess.run(
        ["yolo-fs", "commit", "--task", task, "--type", "feat", "-m", "done"], check=True
    )
