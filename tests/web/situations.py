"""Six situations that a board is looked at in, each as a team in a real repository."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from tests.support.teams import BACKEND, THREE, Team
from yolo_fs.cli.main import run

PROJECT = Path(__file__).parents[2]
QUESTION = "Which brand colour?"
LADDER = ("dev", "senior", "lead", "architect", "user")


def fresh(team: Team) -> None:
    """Nothing but a configuration: the first agent has not written yet."""
    team.config(BACKEND)
    team.user_commits("chore: begin", ".yolo-planning/config.json")


def at_work(team: Team) -> None:
    """A plan is written, one task of it is done."""
    fresh(team)
    team.begin()
    team.example("architecture/ok/backend.toon", "architecture.toon")
    team.plan()
    team.file("src/auth/tokens.ts", "export {}\n")
    team.user_commits("feat(01-01): T1 load the keys", "src/auth/tokens.ts")


def question_open(team: Team) -> None:
    """A question of a Dev has come up to the user."""
    at_work(team)
    team.artifact("escalation.jsonl", "".join(f"{json.dumps(line)}\n" for line in _ladder()))
    team.once()


def _ladder() -> list[dict[str, object]]:
    now = datetime.now(UTC) - timedelta(minutes=4)
    lines = []
    for place, (agent, to) in enumerate(pairwise(LADDER)):
        moment = (now + timedelta(seconds=20 * place)).strftime("%Y-%m-%dT%H:%M:%SZ")
        line = {"id": "ESC-01-01-T1", "dt": moment, "agent": agent, "reason": QUESTION, "sb": "No design says it",
                "tgt": to, "sev": "blocking", "st": "escalated" if place else "open", "att": 1,
                "ev": ["Two drafts differ"], "rec": "Blue"}  # fmt: skip
        lines.append(line | ({"opts": ["Blue", "Red"]} if agent == "architect" else {}))
    return lines


def secret_held(team: Team) -> None:
    """An artifact holds what looks like a credential, and another is refused."""
    at_work(team)
    key = "AKIA" + "Q3EGRT7YHN2WXK5P"
    finding = {
        "q": "where are the keys?",
        "src": "docs",
        "finding": f"the key is {key}",
        "conf": "high",
        "dt": "2026-02-19",
        "rel": key,
    }
    team.artifact("research.jsonl", json.dumps(finding) + "\n")
    team.artifact("gaps.jsonl", '{"id":"G1"}\n')
    team.once()


def gate_closed(team: Team) -> None:
    """Two departments wait for a third, which has not specified its components yet."""
    team.config(THREE)
    team.user_commits("chore: three departments", ".yolo-planning/config.json")
    team.begin()
    team.plan()


SITUATIONS: Mapping[str, Callable[[Team], None]] = {
    "fresh": fresh,
    "at-work": at_work,
    "question": question_open,
    "secret": secret_held,
    "gate": gate_closed,
}
"""All but `shipped`, which is what the demo's play ends with."""


def team_in(situation: str, folder: Path) -> Team:
    """Return a team that is in a situation."""
    folder.mkdir(parents=True, exist_ok=True)
    team = Team(folder / "shop")
    assert run(["init", "-q", "--no-hooks", "-C", str(team.root)]) == 0
    SITUATIONS[situation](team)
    return team


def shipped() -> Path:
    """Return a repository of its own in which the demo has ended."""
    command = [sys.executable, "-m", "yolo_fs", "demo", "--speed", "50", "--keep", "--json"]
    environment = os.environ | {"PYTHONPATH": str(PROJECT), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, capture_output=True, check=True, env=environment)
    return Path(json.loads(done.stdout)["data"]["repository"])
