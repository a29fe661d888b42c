"""A stranger's agent: it knows `YOLO_FS_*` and the shapes of the files, and nothing else of yolo_fs."""

import json
import os
import pathlib
import subprocess
import time

WRITES, TASK = os.environ["YOLO_FS_WRITES"].splitlines(), os.environ["YOLO_FS_TASK"]
DAY, PLAN = time.strftime("%Y-%m-%d", time.gmtime()), os.environ["YOLO_FS_PLAN"]
FIXED = {
    "analysis.json": [{"complexity": "high", "departments": ["backend"], "intent": "execute", "confidence": 1}],
    "critique.jsonl": [{"id": "C1", "cat": "gap", "sev": "minor", "q": "?", "ctx": "c", "sug": "s", "st": "addressed", "cf": 90, "rd": 1}],
    "research.jsonl": [{"q": "?", "src": "codebase", "finding": "f", "conf": "high", "dt": DAY, "rel": "r"}],
    "verification.jsonl": [{"tier": "quick", "r": "PASS", "ps": 1, "fl": 0, "tt": 1, "dt": DAY}, {"c": "works", "r": "pass", "ev": "e", "cat": "must_have"}],
    "qa-code.jsonl": [{"r": "PASS", "tests": {"ps": 1, "fl": 0, "sk": 0}, "lint": {"err": 0, "warn": 0}, "dt": DAY}],
    "security-audit.jsonl": [{"r": "PASS", "findings": 0, "critical": 0, "dt": DAY}],
    "integration-gate-result.jsonl": [{"r": "PASS", "checks": dict.fromkeys(("api", "design", "handoffs", "tests"), "pass"), "failures": [], "dt": DAY}],
}  # fmt: skip
for path in map(pathlib.Path, WRITES):
    kind, path_plan = (
        path.name.removeprefix("fe-").removeprefix("ux-"),
        path.with_name(path.name.replace("summary", "plan")),
    )
    lines = FIXED.get(kind, [])
    if kind.endswith(".plan.jsonl") and path.exists():  # the Senior enriches what the Lead planned
        head, *tasks = map(json.loads, path.read_text().splitlines())
        lines = [head, *({**task, "spec": "write it"} for task in tasks)]
    elif kind.endswith(".plan.jsonl"):
        number, file = (
            kind[3:5],
            {"fe-": "src/web/", "ux-": "design/"}.get(path.name[:3], "src/api/")
            + f"{kind[:5]}.txt",
        )
        lines = [{"p": kind[:2], "n": number, "t": "Work", "w": 1, "d": [], "mh": {"tr": [], "ar": [], "kl": []}, "obj": "o", "fm": [file]},
                 {"id": "T1", "tp": "auto", "a": "write", "f": [file], "v": "look", "done": "there"}]  # fmt: skip
    elif kind.endswith(".summary.jsonl"):
        commit = subprocess.check_output(
            ["git", "log", "-1", "--format=%H", f"--grep=({PLAN}): T1 "], text=True
        ).strip()
        head = json.loads(path_plan.read_text().splitlines()[0])
        lines = [
            {
                "p": head["p"],
                "n": head["n"],
                "t": "Work",
                "s": "complete",
                "dt": DAY,
                "tc": 1,
                "tt": 1,
                "ch": [commit],
                "fm": head["fm"],
                "dv": [],
                "built": ["w"],
                "tst": "no_tests",
            }
        ]
    elif kind == "code-review.jsonl":
        lines = [{"plan": PLAN, "r": "approve", "cycle": 1, "dt": DAY, "tdd": "skip"}]
    path.parent.mkdir(parents=True, exist_ok=True)
    if not lines and path.suffix == ".jsonl":  # what it knows nothing of: as its brief says
        example = ["yolo-fs", "schema", "example", str(path)]
        lines = map(json.loads, subprocess.check_output(example, text=True).splitlines())
    text = (
        "".join(json.dumps(line) + "\n" for line in lines)
        or 'phase: "01"\ntech_decisions[1]: x\ncomponents[1]: x\nintegration_points[1]: x\nrisks[1]: x\ncritique_disposition: none\n'
    )
    path.write_text(text)
if TASK:
    subprocess.run(
        ["yolo-fs", "commit", "--task", TASK, "--type", "feat", "-m", "done"], check=True
    )
