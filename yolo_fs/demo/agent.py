"""A scripted agent that plays any role of the company, driven by `YOLO_FS_*` alone.

Run as `python -m yolo_fs.demo.agent`. It is the host `command` of the demo, and an example of such
a host: its input is the environment and the brief, its output is files and `yolo-fs` calls.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Line = Mapping[str, Any]

DEPARTMENTS = {"fe-": "frontend", "ux-": "uiux"}
"""Prefix of a department's files → its name; files without one are the backend's."""
_TASK_FILES = {"backend": "src/api", "frontend": "src/web", "uiux": "design"}
_UNTESTED = "uiux"
"""The department whose tasks are designs: it writes no tests, so that their step is skipped."""
_TESTS = "tests/"
_GIT_TRIES = 100
_GIT_AGAIN_S = 0.1


class ScriptedAgent:
    """One act of one role."""

    def __init__(self, environment: Mapping[str, str]):
        """Read the act from the environment. The working directory is the repository."""
        self.agent = environment["YOLO_FS_AGENT"]
        self.task = environment["YOLO_FS_TASK"]
        self.writes = environment["YOLO_FS_WRITES"].splitlines()
        self.brief = Path(environment["YOLO_FS_BRIEF"]).read_text(encoding="utf-8")
        self.now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.day = self.now[:10]
        self.is_short = bool(environment.get("YOLO_FS_DEMO_IS_SHORT"))
        """Whether somebody watches: a plan has one task, whose tests come with its source."""

    def act(self) -> None:
        """Write the required files, commit source files, run the given command."""
        sources = [path for path in self.writes if not path.startswith(".yolo-planning/")]
        # A test that a task names was written by the Tester.
        own = [path for path in self.writes if not path.startswith(_TESTS)]
        for path in (*own, *self.further_plans()):
            self.write(path, self.content(path))
        if sources and self.task:
            self.commit()
        elif sources:
            self.git("add", "--", *sources)
            plan = os.environ["YOLO_FS_PLAN"]
            self.git("commit", "-q", "-m", f"fix({plan}): as reviewed", "--", *sources)
        if not self.writes and (match := re.search(r"^Run: (.*)$", self.brief, re.MULTILINE)):
            self.run(*shlex.split(match[1].replace("…", "'Go on as the plan says'")))

    def further_plans(self) -> Iterator[str]:
        """Yield the plans that a Lead writes besides the one that it is asked for, by
        `YOLO_FS_DEMO_PLANS`; the numbers between belong to other departments.
        """
        count = int(os.environ.get("YOLO_FS_DEMO_PLANS", "1"))
        first = next((path for path in self.writes if path.endswith(".plan.jsonl")), "")
        if count > 1 and first and not os.path.exists(first):
            number = int(plan_of(first)[3:])
            for more in range(1, count):
                ours = number + more * (1 + len(DEPARTMENTS))
                yield re.sub(r"-[0-9]{2}\.plan", f"-{ours:02}.plan", first)

    def write(self, path: str, text: str) -> None:
        """Write a file atomically: a temporary file is renamed into place."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(f"{path}.part")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)

    def commit(self) -> None:
        """Commit the files of the task in the prescribed form."""
        self.run("yolo-fs", "commit", "--task", self.task, "--type", "feat", "-m", "as specified")

    def run(self, *words: str) -> None:
        """Run a program with inherited output; for `yolo-fs`, use this interpreter's package."""
        program = [sys.executable, "-P", "-m", "yolo_fs"] if words[0] == "yolo-fs" else [words[0]]
        subprocess.run([*program, *words[1:]], check=False, stdin=subprocess.DEVNULL)

    def git(self, *words: str) -> None:
        """Run git, and again while another one holds the index: agents work at the same time."""
        for _ in range(_GIT_TRIES):
            done = subprocess.run(
                ["git", *words],
                check=False,
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
            )
            if not done.returncode or "index.lock" not in done.stderr:
                break
            time.sleep(_GIT_AGAIN_S)
        sys.stderr.write(done.stderr)

    def content(self, path: str) -> str:
        """Return the content for a file, chosen by its name."""
        name = path.rpartition("/")[2]
        prefix = next(
            (known_prefix for known_prefix in DEPARTMENTS if name.startswith(known_prefix)), ""
        )
        kind = re.sub(r"^\d\d-\d\d\.", "", name.removeprefix(prefix))
        make = CONTENTS.get(kind)
        if make is None:
            return self.source(path)
        lines = make(self, path, DEPARTMENTS.get(prefix, "backend"))
        if isinstance(lines, str):
            return lines
        if name.endswith(".json"):
            return json.dumps(lines, indent=2) + "\n"
        return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)

    def source(self, path: str) -> str:
        """Return a source file that grows by one line each time."""
        before = Path(path).read_text(encoding="utf-8") if os.path.exists(path) else ""
        return f"{before}// {self.task or 'mended'} by {self.agent}\n"

    # What each kind of artifact holds. Each is given the path and the department.

    def plan(self, path: str, department: str) -> list[dict[str, Any]]:
        """The Lead plans the tasks; the Senior adds to each what its Dev and Tester get."""
        if before := lines_of(path):
            header, *tasks = before
            tests = {} if department == _UNTESTED else {"ts": "It does what it says"}
            specs = [
                {**task, "spec": f"Do {task['a']!r} in {task['f'][0]}.", **tests} for task in tasks
            ]
            return [dict(header), *specs]
        number = plan_of(path)
        folder = _TASK_FILES[department]
        parts = ("core",) if self.is_short else ("core", "edge")
        files = [f"{folder}/plan{number[3:]}_{part}.ts" for part in parts]
        header = {
            "p": number[:2], "n": number[3:], "t": f"Work of {department}", "w": 1, "d": [],
            "mh": {"tr": ["It works"], "ar": [], "kl": []}, "obj": "It works", "fm": files,
        }  # fmt: skip
        tasks = [
            {"id": f"T{at}", "tp": "auto", "a": f"Write {file}", "f": [file], "v": "npm test",
             "done": f"{file} is there"}
            for at, file in enumerate(files, 1)
        ]  # fmt: skip
        if self.is_short and department != _UNTESTED:
            header["fm"] = tasks[0]["f"] = [*files, test_of(department, number, "T1")]
        return [header, *tasks]

    def summary(self, path: str, department: str) -> list[dict[str, Any]]:
        """The Dev names the commit of each task."""
        number = plan_of(path)
        header, *tasks = lines_of(path.replace(".summary.", ".plan."))
        commits = [commit_of(number, task["id"]) for task in tasks]
        return [
            {"p": number[:2], "n": number[3:], "t": header["t"], "s": "complete", "dt": self.day,
             "tc": len(tasks), "tt": len(tasks), "ch": commits, "fm": header["fm"], "dv": [],
             "built": [task["done"] for task in tasks],
             "tst": "no_tests" if department == _UNTESTED else "red_green"}
        ]  # fmt: skip

    def test_plan(self, path: str, department: str) -> list[dict[str, Any]]:
        """The Tester writes one test for each task that has a test specification."""
        tests = []
        for plan in plans_beside(path, department):
            for task in lines_of(plan)[1:]:
                file = test_of(department, plan_of(plan), task["id"])
                self.write(file, f"// {task['ts']}\n")
                tests.append(
                    {"id": task["id"], "plan": plan_of(plan), "tf": [file], "tc": 1, "red": True,
                     "desc": task["ts"]}
                )  # fmt: skip
        if not self.is_short:
            files = [file for line in tests for file in line["tf"]]
            self.git("add", "--", *files)
            subject = f"test({Path(path).parent.name[:2]}): the tests of {department}"
            self.git("commit", "-q", "-m", subject, "--", *files)
        return tests

    def test_results(self, path: str, department: str) -> list[dict[str, Any]]:
        """Every test passes."""
        lines = []
        for plan in plans_beside(path, department):
            tasks = [
                {"id": task["id"], "ps": 1, "fl": 0,
                 "tf": [test_of(department, plan_of(plan), task["id"])]}
                for task in lines_of(plan)[1:]
            ]  # fmt: skip
            lines.append(
                {"plan": plan_of(plan), "dept": department, "phase": "green", "tc": len(tasks),
                 "ps": len(tasks), "fl": 0, "dt": self.day, "tasks": tasks}
            )  # fmt: skip
        return lines

    def code_review(self, path: str, department: str) -> list[dict[str, Any]]:
        """The Senior approves every plan."""
        before = lines_of(path)
        reviewed = [line["plan"] for line in before if "r" in line]
        return [
            {"plan": plan_of(plan), "r": "approve", "cycle": reviewed.count(plan_of(plan)) + 1,
             "dt": self.day, "tdd": "skip" if department == _UNTESTED else "pass"}
            for plan in plans_beside(path, department)
        ]  # fmt: skip

    def handoffs(self, path: str, department: str) -> list[dict[str, Any]]:
        """A Lead hands over to the frontend what its department made."""
        before = lines_of(path)
        giver = {"ux-lead": "uiux", "fe-lead": "frontend"}.get(
            self.agent.removeprefix("yolo-"), "backend"
        )
        line = {
            "type": "dept_handoff", "from_dept": giver, "to_dept": "frontend",
            "dt": self.now, "artifacts": [],
            "contracts": [], "blockers": [], "notes": "",
        }  # fmt: skip
        return [*map(dict, before), line]

    def contracts(self, path: str, _department: str) -> list[dict[str, Any]]:
        """The first of two Leads proposes, the other one agrees."""
        before = lines_of(path)
        is_frontend = self.agent.removeprefix("yolo-").startswith("fe-")
        endpoint = {
            "method": "POST", "path": "/login", "request": {"email": "string"},
            "response": {"token": "string"},
        }  # fmt: skip
        line = {
            "type": "api_contract",
            "direction": "frontend_to_backend" if is_frontend else "backend_to_frontend",
            "endpoints": [endpoint],
            "status": "agreed" if before else "proposed",
        }
        return [*before, line]

    def research(self, path: str, _department: str) -> list[dict[str, Any]]:
        """The Lead asks; the Scout answers the open questions, or else one of its own."""
        before = lines_of(path)
        question = {"src": "pending", "finding": "", "conf": "", "dt": self.day, "rel": ""}
        if self.agent.endswith("lead"):
            query = {"q": f"Question {len(before) + 1}", "ra": "lead", "rt": "informational"}
            return [*before, {**query, **question}]
        answer = {"src": "codebase", "finding": "None", "conf": "high", "dt": self.day, "rel": "r"}
        open_ = [line["q"] for line in before if line["src"] == "pending"]
        return [*before, *({"q": q, **answer} for q in open_ or ["Is there such a thing?"])]


def _make_fixed_content(*lines: Line) -> Callable[[ScriptedAgent, str, str], list[Line]]:
    def content(agent: ScriptedAgent, path: str, _department: str) -> list[Line]:
        dated = [{**line, "dt": agent.day} if "dt" in line else line for line in lines]
        # A verdict that is given again has to differ, or there is nothing to commit.
        is_again = dated == lines_of(path)
        return [{**line, "dt": agent.now} if is_again and "dt" in line else line for line in dated]

    return content


def _object(value: Line) -> Callable[[ScriptedAgent, str, str], Line]:
    return lambda _agent, _path, _department: value


def _architecture(_agent: ScriptedAgent, path: str, department: str) -> str:
    folder = _TASK_FILES[department]
    return f'''phase: "{Path(path).parent.name[:2]}"
tech_decisions[1]{{decision,rationale,alternatives}}:
  Plain files,Nothing to run,a store
components[1]{{name,desc,files}}:
  Core,Does the work,{folder}/core.ts
integration_points[1]: none
risks[1]: none
critique_disposition: C1 addressed
'''


CONTENTS: Mapping[str, Callable[[ScriptedAgent, str, str], Any]] = {
    "analysis.json": lambda _agent, _path, _department: {
        "complexity": os.environ.get("YOLO_FS_DEMO_COMPLEXITY", "high"),
        "departments": ["backend"], "intent": "execute", "confidence": 0.95,
    },
    "discovery.json": _object({"questions": [{"q": "Who?", "a": "All"}], "open": []}),
    "roadmap-plan.json": _object({"phases": [{"id": "01", "depends_on": []}]}),
    "scope-document.json": _object({"status": "PO-APPROVED"}),
    "critique.jsonl": _make_fixed_content(
        {"id": "C1", "cat": "gap", "sev": "major", "q": "What is shown while nothing answers?",
         "ctx": "No waiting state", "sug": "A message", "st": "addressed", "cf": 91, "rd": 1}
    ),
    "research.jsonl": ScriptedAgent.research,
    "architecture.toon": _architecture,
    "plan.jsonl": ScriptedAgent.plan,
    "test-plan.jsonl": ScriptedAgent.test_plan,
    "summary.jsonl": ScriptedAgent.summary,
    "test-results.jsonl": ScriptedAgent.test_results,
    "code-review.jsonl": ScriptedAgent.code_review,
    "docs.jsonl": _make_fixed_content(
        {"type": "api", "path": "docs/api.md", "content": "How to", "section": "Use"}
    ),
    "verification.jsonl": _make_fixed_content(
        {"tier": "standard", "r": "PASS", "ps": 1, "fl": 0, "tt": 1, "dt": ""},
        {"c": "It works", "r": "pass", "ev": "the tests", "cat": "must_have"},
    ),
    "qa-code.jsonl": _make_fixed_content(
        {"r": "PASS", "tests": {"ps": 2, "fl": 0, "sk": 0}, "lint": {"err": 0, "warn": 0}, "dt": ""}
    ),
    "security-audit.jsonl": _make_fixed_content(
        {"r": "PASS", "findings": 0, "critical": 0, "dt": ""}
    ),
    "integration-gate-result.jsonl": _make_fixed_content(
        {"r": "PASS", "checks": dict.fromkeys(("api", "design", "handoffs", "tests"), "pass"),
         "failures": [], "dt": ""}
    ),
    "po-qa-verdict.jsonl": _make_fixed_content(
        {"type": "po_qa_verdict", "verdict": "approve", "findings": [], "target_dept": "",
         "re_scope_items": [], "scope_confidence": 1, "dt": ""}
    ),
    "owner-signoff.jsonl": lambda _agent, path, _department: [
        {"type": "owner_signoff", "phase": Path(path).parent.name[:2], "decision": "SHIP",
         "departments_approved": ["backend", "frontend", "uiux"], "integration_qa": "PASS",
         "notes": ""}
    ],
    "design-tokens.jsonl": _make_fixed_content(
        {"cat": "color", "name": "color.error", "val": "#B3261E", "sem": "Errors", "dk": "#F2B8B5"}
    ),
    "component-specs.jsonl": _make_fixed_content(
        {"id": "form", "name": "Form", "desc": "A form", "states": ["idle", "error"], "props": [],
         "tokens": ["color.error"], "a11y": {"role": "form"}, "status": "ready"}
    ),
    "user-flows.jsonl": _make_fixed_content(
        {"id": "UF-01", "name": "Use it", "steps": ["Open", "Submit"], "err": ["Show why"],
         "entry": "/", "exit": "/done"}
    ),
    "design-handoff.jsonl": lambda _agent, path, _department: [
        {"type": "design_handoff", "phase": Path(path).parent.name[:2], "department": "uiux",
         "artifacts": {name: f"phases/{Path(path).parent.name}/{name.replace('_', '-')}.jsonl"
                       for name in ("design_tokens", "component_specs", "user_flows")},
         "ready_components": ["Form"], "deferred": [], "acceptance_criteria": ["It is announced"],
         "status": "complete"}
    ],
    "dept-handoff.jsonl": ScriptedAgent.handoffs,
    "api-contracts.jsonl": ScriptedAgent.contracts,
    "decisions.jsonl": lambda agent, path, _department: [
        *lines_of(path),
        {"ts": agent.now, "agent": agent.agent.removeprefix("yolo-"),
         "dec": agent.brief.splitlines()[0][2:300], "reason": "It is next"},
    ],
    "debug-report.jsonl": _make_fixed_content(
        {"hypothesis": "The clock is late", "evidence_for": ["The log"], "evidence_against": [],
         "confidence": "high", "recommended_fix": "Set it"}
    ),
}  # fmt: skip
"""File name without department and plan → function that returns its content."""


def lines_of(path: str) -> list[dict[str, Any]]:
    """Return the records of a JSONL file; after a try that was not enough, those of the branch."""
    if os.environ.get("YOLO_FS_ATTEMPT", "1") != "1":
        words = ["git", "show", f"HEAD:{path}"]
        text = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    else:
        text = Path(path).read_text("utf-8") if os.path.exists(path) else ""
    return [json.loads(line) for line in text.splitlines() if line]


def plan_of(path: str) -> str:
    """Return the plan `NN-MM` that a file name holds."""
    match = re.search(r"(\d\d-\d\d)\.", path)
    assert match, path
    return match[1]


def test_of(department: str, plan: str, task: str) -> str:
    """Return the file with the test of a task."""
    return f"{_TESTS}{department}/plan{plan[3:]}_{task}.test.ts"


def plans_beside(path: str, department: str) -> Iterator[str]:
    """Yield the plans of a department in the folder of an artifact."""
    prefix = next((key for key, name in DEPARTMENTS.items() if name == department), "")
    for plan in sorted(Path(path).parent.glob(f"{prefix}[0-9][0-9]-[0-9][0-9].plan.jsonl")):
        yield str(plan)


def commit_of(plan: str, task: str) -> str:
    """Return the commit whose subject names a task."""
    words = ["git", "log", "--format=%H", "--fixed-strings", f"--grep=({plan}): {task} ", "-1"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    """Act once."""
    time.sleep(float(os.environ.get("YOLO_FS_DEMO_PACE_S", "0")))
    ScriptedAgent(os.environ).act()
    return 0


if __name__ == "__main__":
    sys.exit(main())
