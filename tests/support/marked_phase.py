"""A phase in which every file that the isolation tables speak of says something that nobody else
says.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.teams import EXAMPLES, THREE, Team

PHASE = ".yolo-planning/phases/01-auth"
ROADMAP = (
    "# Roadmap\n\n## Phase 1: Login\n\n**Goal:** Sign in, @@\n**Reqs:** REQ-01, REQ-02\n"
    "**Success Criteria:**\n- a token works once, @@\n- sessions last 30 days, @@\n\n## Phase 2: Page\n\n**Goal:** Show it\n"
)
_PLAN = {
    "p": "01",
    "t": "Tokens",
    "w": 1,
    "d": [],
    "xd": [],
    "mh": {"tr": ["@@"], "ar": [], "kl": []},
    "obj": "@@",
}
_TASK = {
    "id": "T1",
    "tp": "auto",
    "a": "@@",
    "f": ["src/auth.ts"],
    "v": "@@",
    "done": "@@",
    "spec": "@@",
    "ts": "@@",
}
_TOON = (
    'phase: "01"\ntech_decisions[1]{decision,rationale}:\n  JWT,@@\ncomponents[1]{name,desc}:\n  Keys,@@\n'
    "integration_points: none\nrisks: none\ncritique_disposition[1]{id,st}:\n  C1,addressed\n"
)
_KEYS = {
    "critique": ("q", "ctx", "sug"), "research": ("q", "finding"), "reqs": ("t",), "gaps": ("desc", "exp", "act"),
    "code-review": ("issue",), "security-audit": ("desc", "issue"), "verification": ("ev",), "qa-code": ("issue",),
    "design-tokens": ("sem", "val"), "component-specs": ("desc",), "api-contracts": ("endpoint",),
    "decisions": ("dec", "reason"), "user-flows": ("name",), "docs": ("content",), "test-plan": ("desc",),
    "design-handoff": ("component",), "test-results": (), "escalation": ("reason",),
}  # fmt: skip
"""Kind → the keys of its records in which a canary sits where they are there."""


class Planted(Team):
    """A team whose files each carry canaries."""

    def __init__(self, root: Path):
        super().__init__(root)
        self.canaries: dict[str, str] = {}
        """Canary → path of the only file that has it."""

    def canary(self, path: str) -> str:
        name = f"canary{len(self.canaries):03}x"
        self.canaries[name] = path
        return name

    def plant(self, path: str, text: str) -> None:
        """Write a file in which every `@@` becomes a canary."""
        while "@@" in text:
            text = text.replace("@@", self.canary(path), 1)
        self.file(path, text)

    def lines(self, name: str, *records: dict[str, Any]) -> None:
        self.plant(f"{PHASE}/{name}", "".join(json.dumps(one) + "\n" for one in records))

    def example_of(self, kind: str, file: str, path: str = "") -> None:
        """Write a good example with a canary in each text of its records that people read."""
        records = [
            json.loads(line) for line in (EXAMPLES / kind / "ok" / file).read_text().splitlines()
        ]
        planted = [one | {key: "@@" for key in _KEYS[kind] if key in one} for one in records]
        self.plant(
            path or f"{PHASE}/{kind}.jsonl", "".join(json.dumps(one) + "\n" for one in planted)
        )

    def grow(self) -> None:
        """Write and commit everything."""
        self.config(THREE | {"po": {"enabled": True}})
        self._of_project()
        self._of_phase()
        self.git("add", "-A", "-f")
        self.git("commit", "-q", "-m", "feat: everything at once")

    def _of_project(self) -> None:
        root = ".yolo-planning"
        self.plant(f"{root}/ROADMAP.md", ROADMAP)
        self.plant(f"{root}/REQUIREMENTS.md", "# Requirements\n\n- [ ] **REQ-01**: @@\n")
        self.example_of("reqs", _first("reqs"), f"{root}/reqs.jsonl")
        conventions = [{"category": "naming", "rule": "@@"}, {"category": "style", "rule": "@@"}]
        self.plant(
            f"{root}/conventions.json", json.dumps({"conventions": conventions}, indent=2) + "\n"
        )
        for name in ("INDEX", "ARCHITECTURE", "PATTERNS", "CONCERNS"):
            self.plant(f"{root}/codebase/{name}.md", "# Map\n\n@@\n")
        for department in ("backend", "frontend", "uiux"):
            self.plant(f"{root}/departments/{department}.toon", "conventions[1]{rule}:\n  @@\n")
        for name in (
            "src/auth.ts",
            "lib/token.py",
            "tests/auth.test.ts",
            "src/__tests__/token.ts",
            "pkg/test_token.py",
        ):
            self.plant(name, "// @@\n")
        self.file("package.json", "{}\n")
        self.file("references/packages/dev.toon", "name: dev\n")

    def _of_phase(self) -> None:
        for department in ("backend", "frontend", "uiux"):
            self.plant(f"{PHASE}/01-CONTEXT-{department}.md", "# Context\n\n@@\n@@\n")
        for prefix in ("", "fe-", "ux-"):
            self.plant(f"{PHASE}/{prefix}architecture.toon", _TOON)
        for prefix, number in (("", "01"), ("", "02"), ("fe-", "03"), ("ux-", "02")):
            self.lines(
                f"{prefix}01-{number}.plan.jsonl",
                _PLAN | {"n": number},
                _TASK,
                _TASK | {"id": "T2"},
            )
        self.lines("01-01.summary.jsonl", {
            "p": "01", "n": "01", "t": "@@", "s": "partial", "dt": "2026-02-19", "tc": 1, "tt": 2, "ch": [],
            "fm": ["src/auth.ts"], "dv": ["@@"], "built": ["@@"], "tst": "red_green", "sg": ["@@"],
        })  # fmt: skip
        for kind in _KEYS.keys() - {"reqs"}:
            self.example_of(kind, _first(kind))
        self.file(
            f"{PHASE}/.qa-gate-results.jsonl",
            (EXAMPLES / "qa-gate-results/ok/three_levels.jsonl").read_text(),
        )


def _first(kind: str) -> str:
    """Return the example of a kind that has most lines, so that there is most to be planted in."""
    files = sorted((EXAMPLES / kind / "ok").iterdir())
    return max(files, key=lambda file: file.read_text().count("\n")).name
