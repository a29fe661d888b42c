"""Forty crash points and more in a phase of three departments: whoever comes next needs the brief and nothing else.

At each point everything is gone but the files and the repository: the daemon died after a write and before its commit.
`YOLO_TORTURE=1` asks at each point, and lets the agents finish the phase from each, not from some.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.company import BACKEND, CONFIG, PHASE, Agents, Label, Write, deeds
from tests.support.shared import made_once
from tests.support.teams import Team
from yolo_fs.cli.main import run

WRITES = [(label, write) for label, writes in deeds() for write in writes or (None,)]
"""Each write under what it is asked for as; None for a summary, which names commits."""
POINTS = range(len(WRITES))
ALL = bool(os.environ.get("YOLO_TORTURE"))
ASKED = POINTS if ALL else POINTS[::5]
FINISHED = POINTS if ALL else POINTS[::25]


def test_there_are_forty_crash_points() -> None:
    assert len(POINTS) >= 40


@pytest.fixture(autouse=True)
def nobodys_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")


@pytest.fixture(scope="module")
def crashes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return what lay there after each write of the phase, before anybody had committed it."""
    place = made_once(tmp_path_factory, "crashes", play)
    return sorted(place.glob("[0-9]*"))


def play(place: Path) -> None:
    company = begin(place / "company")
    agents = Agents(company.root)
    for number, (label, write) in enumerate(WRITES):
        agents.do(write or agents.writes(brief(company.root))[1][0])
        shutil.copytree(company.root, place / f"{number:03}-{label.step}", symlinks=True)
        company.once()


def begin(root: Path, **more: Any) -> Team:
    company = Team(root)
    company.config(CONFIG | more)
    company.user_commits("chore: three departments", ".yolo-planning/config.json")
    (root / PHASE).mkdir(parents=True)
    return company


@pytest.fixture
def crash(request: pytest.FixtureRequest, crashes: list[Path], tmp_path: Path) -> Path:
    root = tmp_path / "work"
    shutil.copytree(crashes[request.param], root, symlinks=True)
    return root


def brief(root: Path) -> dict[str, Any]:
    answer = json.loads(said(root, "--json"))
    assert answer["findings"] == [], answer["findings"]
    return dict(answer["data"])


def said(root: Path, *words: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert run(["resume", *words, "-C", str(root)]) == 0
    return out.getvalue()


def asked(root: Path) -> Label | None:
    found = brief(root)["next"]
    return Label(found["agent"], found["step"], found["task"]) if found else None


def once(root: Path) -> None:
    assert run(["run", "--once", "-q", "-C", str(root)]) == 0


def expected_after(number: int) -> Label | None:
    """Return what is to be asked for when a write is committed; the design's gate opens to the backend first."""
    _, write = WRITES[number]
    if write and write.path.endswith("design-handoff.jsonl"):
        return BACKEND.designs()[0]
    return WRITES[number + 1][0] if number + 1 < len(WRITES) else None


def is_source(write: Write | None) -> bool:
    return write is not None and bool(write.subject)


@pytest.mark.proves("002:303", "resume:1")
@pytest.mark.parametrize(("crash", "number"), [(n, n) for n in ASKED], indirect=["crash"])
def test_resume_names_the_exact_next_task(crash: Path, number: int) -> None:
    label, write = WRITES[number]
    if not is_source(write):
        expected_before = WRITES[0][0] if number == 0 else expected_after(number - 1)
        assert asked(crash) == expected_before
        assert [one["path"] for one in brief(crash)["uncommitted"]] == [
            write.path if write else summary_of(label)
        ]
    once(crash)
    assert asked(crash) == expected_after(number)


def summary_of(label: Label) -> str:
    prefix = label.agent.removesuffix("dev")
    return f"{PHASE}/{prefix}{label.task.partition(' ')[0]}.summary.jsonl"


@pytest.mark.parametrize("crash", POINTS[::8], indirect=True)
@pytest.mark.parametrize("form", ["text", "json"])
def test_resuming_twice_in_a_row_prints_the_same_bytes(crash: Path, form: str) -> None:
    ours = said(crash, "--format", form).encode()
    command = [sys.executable, "-m", "yolo_fs", "resume", "--format", form, "-C", str(crash)]
    again = subprocess.run(command, capture_output=True, check=True, cwd=Path(__file__).parents[2])
    assert (again.stdout, again.stderr) == (ours, b"")
    assert said(crash, "--format", form).encode() == ours


@pytest.mark.proves("002:303", "resume:5")
@pytest.mark.sampled(2)
@pytest.mark.parametrize("crash", FINISHED, indirect=True)
def test_an_agent_that_obeys_only_the_brief_finishes_the_phase(crash: Path) -> None:
    agents = Agents(crash)
    for _ in range(len(WRITES) + 5):
        found = brief(crash)
        if found["next"] is None:
            break
        _, writes = agents.writes(found)
        for write in writes:
            agents.do(write)
        once(crash)
    assert (found["now"]["status"], found["now"]["percent"]) == ("complete", 100)
    assert [one["step"] for one in found["team"]] == ["done"] * 3
    assert "uncommitted" not in found, found["uncommitted"]
    assert "drift" not in found, found["drift"]
