"""A team in a real repository: artifacts committed by `run --once`, source and configuration by the user's own git."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from yolo_fs.cli.main import run

EXAMPLES = Path(__file__).parents[2] / "fixtures/examples/artifacts"
THREE = {"departments": {"frontend": True, "uiux": True}, "department_workflow": "parallel"}
BACKEND = {"department_workflow": "backend_only"}
CLAIM: dict[str, Any] = {
    "p": "01", "n": "01", "t": "JWT signing", "s": "complete", "dt": "2026-02-19", "tc": 2, "tt": 2, "dv": [],
    "built": ["RS256"], "fm": ["src/auth/tokens.ts"], "tst": "red_green",
}  # fmt: skip


class Team:
    """One repository that a team works in, as its user sees it."""

    examples = EXAMPLES

    def __init__(self, root: Path):
        self.root = root
        root.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main", str(root))
        for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
            self.git("config", key, value)

    @classmethod
    def of_three(cls, root: Path) -> Self:
        """Return a team of three departments that has begun."""
        team = cls(root)
        team.config(THREE)
        team.user_commits("chore: three departments", ".yolo-planning/config.json")
        team.begin()
        return team

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", self.root, *arguments], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def file(self, path: str, text: str) -> Path:
        """Write a file below the root."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def artifact(self, name: str, text: str, phase: str = "01-auth") -> None:
        self.file(f".yolo-planning/phases/{phase}/{name}", text)

    def example(self, example: str, name: str, phase: str = "01-auth") -> None:
        """Write a good example, such as `plan/ok/planned.jsonl`, as an artifact."""
        self.artifact(name, (EXAMPLES / example).read_text(), phase)

    def config(self, value: dict[str, Any]) -> None:
        self.file(".yolo-planning/config.json", json.dumps(value))

    def user_commits(self, subject: str, *paths: str) -> str:
        """Commit paths as the user does, and return the commit."""
        self.git("add", "-f", "--", *paths)
        self.git("commit", "-q", "-m", subject, "--", *paths)
        return self.head()

    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def once(self) -> None:
        assert run(["run", "--once", "-q", "-C", str(self.root)]) == 0

    def moments(self) -> Iterator[str]:
        """Let the team work, and yield the commit of each of five moments."""
        self.begin()
        yield self.head()
        self.config(THREE)
        self.user_commits("chore: three departments", ".yolo-planning/config.json")
        self.example("architecture/ok/frontend.toon", "fe-architecture.toon")
        self.once()
        yield self.head()
        self.plan()
        self.example("design-handoff/ok/component_by_component.jsonl", "design-handoff.jsonl")
        self.once()
        yield self.head()
        self.claim()
        yield self.head()
        self.config(BACKEND)
        self.user_commits("chore: the backend alone", ".yolo-planning/config.json")
        self.example("research/ok/findings.jsonl", "research.jsonl", "02-page")
        self.once()
        yield self.head()

    def begin(self) -> None:
        critique = min((EXAMPLES / "critique/ok").iterdir())
        self.artifact("critique.jsonl", critique.read_text())
        self.example("research/ok/findings.jsonl", "research.jsonl")
        self.once()

    def plan_one(self) -> None:
        self.example("plan/ok/first_wave.jsonl", "01-01.plan.jsonl")
        self.once()

    def plan(self) -> None:
        self.example("plan/ok/first_wave.jsonl", "01-01.plan.jsonl")
        self.example("plan/ok/planned.jsonl", "01-02.plan.jsonl")
        self.once()

    def claim(self) -> None:
        """Do the first task elsewhere than the plan says, and claim that the plan is complete."""
        self.file("src/other.ts", "export {}\n")
        done = self.user_commits("feat(01-01): T1 load the keys", "src/other.ts")
        self.artifact("01-01.summary.jsonl", json.dumps(CLAIM | {"ch": [done[:12]]}) + "\n")
        self.once()


def planned_team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    """Return a team with one plan, whose user has no configuration."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    made = Team(tmp_path / "work tree")
    made.begin()
    made.plan_one()
    return made
