"""Plans that need one another are committed in whatever order they come, and whatever is restarted meanwhile."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pytest

from yolo_fs.artifacts.verdicts import Accepted
from yolo_fs.cli.main import run
from yolo_fs.git.repository import Repository
from yolo_fs.scanning.scanner import Scanner
from yolo_fs.workspace.settings import load

PHASE = ".yolo-planning/phases/01-auth"
NEEDS = {1: [], 2: [1], 3: [1, 2], 4: [3], 5: [2, 4]}


def plan(number: int) -> str:
    needs = [f"01-{needed:02}" for needed in NEEDS[number]]
    header = {
        "p": "01",
        "n": f"{number:02}",
        "t": f"Plan {number}",
        "w": number,
        "d": needs,
        "mh": {"tr": [], "ar": [], "kl": []},
        "obj": "It holds.",
    }
    task = {"id": "T1", "tp": "auto", "a": "do", "f": ["a.ts"], "v": "look", "done": "done"}
    return f"{json.dumps(header)}\n{json.dumps(task)}\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    (tmp_path / PHASE).mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("seed", range(3))
def test_each_plan_is_committed_as_soon_as_those_that_it_needs_are_there(
    root: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    order = random.Random(seed).sample(sorted(NEEDS), len(NEEDS))
    written: set[int] = set()
    # Each run is a daemon of its own: nothing is remembered from one to the next.
    for number in order:
        (root / PHASE / f"01-{number:02}.plan.jsonl").write_text(plan(number))
        written.add(number)
        run(["run", "--once", "-q", "-C", str(root)])
        ready = {plan for plan in written if _all_needed_by(plan) <= written}
        assert _committed(root) == ready, order
    capsys.readouterr()


def test_a_plan_waits_for_one_that_is_held_for_another_cause(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    credential = "ghp_" + "".join(
        random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=36)
    )
    held = plan(1).replace("It holds.", f"Use {credential}.")
    for number in NEEDS:
        (root / PHASE / f"01-{number:02}.plan.jsonl").write_text(
            held if number == 1 else plan(number)
        )
    run(["run", "--once", "-q", "-C", str(root)])
    assert _committed(root) == set()
    capsys.readouterr()
    run(["status", "-C", str(root)])
    shown = capsys.readouterr().out
    assert "waits for plan 01-01, which is not committed" in shown
    assert credential not in shown

    (root / PHASE / "01-01.plan.jsonl").write_text(plan(1))
    run(["run", "--once", "-q", "-C", str(root)])
    assert _committed(root) == set(NEEDS)
    capsys.readouterr()


def test_a_plan_does_not_wait_for_one_that_is_refused(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in NEEDS:
        text = plan(number).replace('"t": ', '"x": ') if number == 1 else plan(number)
        (root / PHASE / f"01-{number:02}.plan.jsonl").write_text(text)
    run(["run", "--once", "-q", "-C", str(root)])
    assert _committed(root) == set(NEEDS) - {1}
    capsys.readouterr()


def test_who_looks_at_one_plan_alone_knows_that_the_other_is_refused(root: Path) -> None:
    (root / PHASE / "01-01.plan.jsonl").write_text(plan(1).replace('"t": ', '"x": '))
    path = f"{PHASE}/01-02.plan.jsonl"
    (root / path).write_text(plan(2))
    with Repository(str(root)) as repository:
        settings = load(repository.root).without_patience
        with Scanner(repository, settings) as scanner:
            assert isinstance(scanner.scan([path]).seen[path].seen.verdict, Accepted)


def _all_needed_by(plan: int) -> set[int]:
    """Return the plans that a plan needs, directly or through others."""
    return set(NEEDS[plan]).union(*map(_all_needed_by, NEEDS[plan]))


def _committed(root: Path) -> set[int]:
    command = ["git", "log", "--format=%s"]
    log = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout
    return {int(line[-2:]) for line in log.splitlines() if "plan 01-" in line}
