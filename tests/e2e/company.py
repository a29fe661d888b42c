"""A phase of three departments as a list of deeds, and an agent that does what a brief asks for and knows nothing else.

The order is written out here by hand from the documents: the design goes first, behind its gate the
backend and the frontend.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

PHASE = ".yolo-planning/phases/01-auth"
CONFIG = {
    "departments": {"frontend": True, "uiux": True},
    "documenter": "always",
    "department_workflow": "parallel",
    "security_audit": True,
    "yolo_fs": {"settle_ms": 0, "state_files": "always"},
}
_DAY = "2026-02-20"


class Label(NamedTuple):
    """What the brief asks for."""

    agent: str
    step: str
    task: str = ""


class Write(NamedTuple):
    """One write: of an artifact, or of a source file that its Dev commits with git under a subject."""

    path: str
    text: str
    subject: str = ""


Deed = tuple[Label, tuple[Write, ...]]


def _lines(*records: Mapping[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def _artifact(name: str, *records: Mapping[str, Any]) -> Write:
    return Write(f"{PHASE}/{name}", _lines(*records))


class Department(NamedTuple):
    """A department and its one plan."""

    name: str
    prefix: str
    number: str
    title: str
    files: tuple[str, str]

    @property
    def plan(self) -> str:
        return f"01-{self.number}"

    def agent(self, role: str) -> str:
        return self.prefix + role

    def planned(self, *, enriched: bool) -> Write:
        header = {
            "p": "01", "n": self.number, "t": self.title, "w": 1, "d": [], "xd": [],
            "mh": {"tr": [f"{self.title} works"], "ar": [], "kl": []}, "obj": self.title,
        }  # fmt: skip
        spec = (
            {"spec": f"Write {self.title} as the architecture says", "ts": "It answers"}
            if enriched
            else {}
        )
        tasks = [
            {
                "id": f"T{n}",
                "tp": "auto",
                "a": f"{self.title}, part {n}",
                "f": [file],
                "v": "npm test",
                "done": "Green",
            }
            | spec
            for n, file in enumerate(self.files, 1)
        ]
        return _artifact(f"{self.prefix}{self.plan}.plan.jsonl", header, *tasks)

    def summary(self, commits: list[str]) -> Write:
        return _artifact(f"{self.prefix}{self.plan}.summary.jsonl", {
            "p": "01", "n": self.number, "t": self.title, "s": "complete", "dt": _DAY, "tc": 2, "tt": 2, "ch": commits,
            "fm": list(self.files), "dv": [], "built": [self.title], "tst": "red_green",
        })  # fmt: skip

    def source(self, task: int) -> Write:
        text = f"export const part = {task}\n"
        return Write(
            self.files[task - 1], text, f"feat({self.plan}): T{task} {self.title}, part {task}"
        )

    def _test(self, task: int) -> Write:
        path = f"tests/{self.number}-{task}.test.ts"
        return Write(
            path, "test('answers')\n", f"test({self.plan}): {self.title} answers, part {task}"
        )

    def task(self, number: int) -> Label:
        return Label(self.agent("dev"), "implementation", f"{self.plan}/T{number}")

    def designs(self) -> Deed:
        return Label(self.agent("architect"), "architecture"), (self._architecture(),)

    def plans(self) -> Iterator[Deed]:
        yield Label(self.agent("lead"), "planning"), (self.planned(enriched=False),)
        yield Label(self.agent("senior"), "design_review"), (self.planned(enriched=True),)
        tests = [{"id": f"T{n}", "plan": self.plan, "tf": [f"tests/{self.number}-{n}.test.ts"], "tc": 2, "red": True,
                  "desc": "It answers"} for n in (1, 2)]  # fmt: skip
        yield (
            Label(self.agent("tester"), "test_authoring"),
            (*map(self._test, (1, 2)), _artifact(f"{self.prefix}test-plan.jsonl", *tests)),
        )

    def implements(self) -> Iterator[Deed]:
        yield self.task(1), (self.source(1),)
        yield self.task(2), (self.source(2),)
        yield Label(self.agent("dev"), "implementation", f"{self.plan} summary"), ()

    def tests(self) -> Deed:
        """Return how its tests ended, which the integration gate asks each department for."""
        name = f"{self.prefix}test-results.jsonl"
        green = {"plan": self.plan, "dept": self.name, "phase": "green", "tc": 4, "ps": 4, "fl": 0, "dt": _DAY,
                 "tasks": [{"id": f"T{n}", "ps": 2, "fl": 0, "tf": [f"tests/{self.number}-{n}.test.ts"]} for n in (1, 2)]}  # fmt: skip
        return Label(self.agent("dev"), "implementation"), (_artifact(name, green),)

    def reviews(self) -> Iterator[Deed]:
        verdict = {"plan": self.plan, "r": "approve", "cycle": 1, "dt": _DAY, "tdd": "pass"}
        yield (
            Label(self.agent("senior"), "code_review"),
            (_artifact(f"{self.prefix}code-review.jsonl", verdict),),
        )
        docs = {"type": "api", "path": "docs/api.md", "content": self.title, "section": "Login"}
        yield (
            Label(self.agent("documenter"), "documentation"),
            (_artifact(f"{self.prefix}docs.jsonl", docs),),
        )
        check = {"c": f"{self.title} works", "r": "pass", "ev": "npm test", "cat": "must_have"}
        verified = {"tier": "standard", "r": "PASS", "ps": 1, "fl": 0, "tt": 1, "dt": _DAY}
        quality = {"r": "PASS", "tests": {"ps": 4, "fl": 0, "sk": 0}, "lint": {"err": 0, "warn": 0}, "dt": _DAY,
                   "tdd": {"covered": 2, "total": 2, "missing": []}}  # fmt: skip
        yield (
            Label(self.agent("qa"), "qa"),
            (_artifact(f"{self.prefix}verification.jsonl", verified, check),),
        )
        yield (
            Label(self.agent("qa-code"), "qa"),
            (_artifact(f"{self.prefix}qa-code.jsonl", quality),),
        )
        audit = {"r": "PASS", "findings": 0, "critical": 0, "dt": _DAY}
        yield (
            Label(self.agent("security"), "security"),
            (_artifact(f"{self.prefix}security-audit.jsonl", audit),),
        )

    def _architecture(self) -> Write:
        text = (
            'phase: "01"\ntech_decisions[1]{decision,rationale}:\n  JWT,Services verify alone\n'
            f"components[1]{{name,desc}}:\n  Part,{self.title}\nintegration_points: none\nrisks: none\n"
            "critique_disposition[1]{id,disposition,detail}:\n  C1,addressed,Keys are named by kid\n"
        )
        return Write(f"{PHASE}/{self.prefix}architecture.toon", text)


BACKEND = Department("backend", "", "01", "Tokens", ("src/auth/keys.ts", "src/auth/tokens.ts"))
FRONTEND = Department("frontend", "fe-", "02", "Login page", ("web/login.tsx", "web/session.ts"))
UIUX = Department("uiux", "ux-", "03", "Login design", ("design/login.md", "design/states.md"))
DEPARTMENTS = {one.plan: one for one in (BACKEND, FRONTEND, UIUX)}


def _design() -> tuple[Write, ...]:
    """Return what opens the gate behind which the other departments begin."""
    token = {"cat": "spacing", "name": "space.4", "val": "16px", "sem": "Gap between form fields"}
    spec = {"name": "LoginForm", "desc": "signs in", "states": ["idle"], "props": ["onLogin"], "tokens": ["space.4"],
            "a11y": {"role": "form"}, "status": "ready"}  # fmt: skip
    return (
        _artifact("design-tokens.jsonl", token),
        _artifact("component-specs.jsonl", spec),
        _artifact("design-handoff.jsonl", {"component": "LoginForm", "status": "ready"}),
        UIUX.source(1),
    )


def deeds() -> tuple[Deed, ...]:
    """Return all deeds in the order in which the brief has to ask for them."""
    critique = {"id": "C1", "cat": "gap", "sev": "major", "q": "What if a key leaks?", "ctx": "Keys live a year",
                "sug": "Name keys by kid", "st": "addressed", "cf": 90, "rd": 1}  # fmt: skip
    research = {"q": "How are keys rotated?", "src": "web", "finding": "Publish both", "conf": "high",
                "dt": "2026-02-18", "rel": "Plan 01-01"}  # fmt: skip
    _, *rest = UIUX.implements()
    return (
        (Label("critic", "critique"), (_artifact("critique.jsonl", critique),)),
        (Label("scout", "research"), (_artifact("research.jsonl", research),)),
        UIUX.designs(),
        *UIUX.plans(),
        (UIUX.task(1), _design()),
        *(deed for one in (BACKEND, FRONTEND) for deed in _whole(one)),
        *rest,
        *UIUX.reviews(),
        (Label("lead", "signoff"), _sign_off()),
        *(one.tests() for one in (BACKEND, FRONTEND, UIUX)),
        (Label("integration-gate", "integration_gate"), (_integrated(),)),
    )


def _whole(one: Department) -> Iterator[Deed]:
    yield one.designs()
    yield from one.plans()
    yield from one.implements()
    yield from one.reviews()


def _sign_off() -> tuple[Write, ...]:
    state = {
        "ms": "v1",
        "ph": 1,
        "tt": 1,
        "st": "complete",
        "step": "signoff",
        "pr": 100,
        "started": "2026-02-18",
    }
    return (
        Write(".yolo-planning/ROADMAP.md", "# Roadmap\n\n1. Login: done\n"),
        Write(".yolo-planning/state.json", json.dumps(state) + "\n"),
    )


def _integrated() -> Write:
    checks = {"api": "skip", "design": "pass", "handoffs": "skip", "tests": "pass"}
    return _artifact(
        "integration-gate-result.jsonl", {"r": "PASS", "checks": checks, "failures": [], "dt": _DAY}
    )


class Agents:
    """Does what a brief asks for, from its JSON alone."""

    def __init__(self, root: Path):
        self._root = root
        self._deeds = dict(deeds())

    def writes(self, brief: Mapping[str, Any]) -> tuple[Label, tuple[Write, ...]]:
        """Return what the brief asks for."""
        asked = brief["next"]
        label = Label(asked["agent"], asked["step"], asked["task"])
        if label.task.endswith(" summary"):
            return label, (self._summary(brief, label.task.partition(" ")[0]),)
        return label, self._deeds[label]

    def do(self, write: Write) -> None:
        """Write a file; a Dev commits its source, unless that is done."""
        path = self._root / write.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(write.text)
        if write.subject and self._git("status", "--porcelain", "--", write.path):
            self._git("add", "--", write.path)
            self._git("commit", "-q", "-m", write.subject, "--", write.path)

    def _summary(self, brief: Mapping[str, Any], plan: str) -> Write:
        found = next(one for one in brief["in_progress"] if one["plan"] == plan)
        return DEPARTMENTS[plan].summary([task["commit"] for task in found["tasks"]])

    def _git(self, *arguments: str) -> bytes:
        return subprocess.run(
            ["git", "-C", self._root, *arguments], check=True, capture_output=True
        ).stdout
