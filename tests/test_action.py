"""The steps of our GitHub Action, run as its runner runs them, in a clone that brings modules of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.teams import Team

ROOT = Path(__file__).parents[1]
STEPS: list[dict[str, Any]] = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
INSTALL, *CHECKS = STEPS
PHASE = ".yolo-planning/phases/01-auth"
MODULES = ("yolo_fs", "click", "json", "venv", "ensurepip", "pip", "sitecustomize", "usercustomize")


class Pull:
    """A clone of a team's repository whose pull request brings Python modules, without a branch."""

    def __init__(self, team: Team, runner: Path) -> None:
        self.root, self.runner = runner / "clone", runner
        self.marker = runner / "executed"
        for name in MODULES:
            team.file(f"{name}.py", f"open({str(self.marker)!r}, 'a').write(__name__)\n")
        team.user_commits("chore(repo): add modules", *(f"{name}.py" for name in MODULES))
        subprocess.run(["git", "clone", "-q", team.root, self.root], check=True)
        subprocess.run(["git", "-C", self.root, "checkout", "-q", "--detach"], check=True)
        self.base = team.git("rev-list", "--max-parents=0", "HEAD").strip()

    def run(self, step: dict[str, Any], **given: str) -> subprocess.CompletedProcess[str]:
        """Run a step; `given` stands for what GitHub fills in."""
        environ = dict.fromkeys(step.get("env", {}), "") | {"BASE": self.base} | given
        paths = {"RUNNER_TEMP": self.runner, "GITHUB_ACTION_PATH": ROOT,
                 "GITHUB_STEP_SUMMARY": self.runner / "summary.md"}  # fmt: skip
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.root,
            env=os.environ | {name: str(path) for name, path in paths.items()} | environ,
            capture_output=True,
            text=True,
            check=False,
        )

    def run_all(self, **given: str) -> dict[str, subprocess.CompletedProcess[str]]:
        return {step["name"]: self.run(step, **given) for step in CHECKS}


@pytest.fixture
def pull(tmp_path: Path) -> Pull:
    team = Team(tmp_path / "work")
    team.begin()
    team.plan_one()
    runner = tmp_path / "runner"
    program = shutil.which("yolo-fs", path=str(Path(sys.executable).parent))
    (runner / "yolo-fs/bin").mkdir(parents=True)
    (runner / "yolo-fs/bin/yolo-fs").symlink_to(str(program))
    return Pull(team, runner)


@pytest.mark.parametrize("base", [None, "0" * 40], ids=["a pull request", "a branch that is new"])
def test_a_valid_pull_request_passes_with_its_report_and_runs_no_code_of_the_repository(
    pull: Pull, base: str | None
) -> None:
    done = pull.run_all(**({"BASE": base} if base else {}))
    assert {name: each.returncode for name, each in done.items()} == dict.fromkeys(done, 0), done
    assert "verified: no faults" in done["Check the commits"].stdout
    assert not done["Check the commits"].stdout.startswith("0 commits")
    assert (pull.runner / "summary.md").read_text().startswith("# 01-auth")
    assert not pull.marker.exists()


def test_a_fault_is_an_annotation_of_its_line_and_a_closed_gate_says_what_it_lacks(
    pull: Pull,
) -> None:
    (pull.root / PHASE / "critique.jsonl").write_text('{"id": \n')
    done = pull.run_all(GATES="all-depts", PHASE="1")
    wrong, closed = done["Check the artifacts"], done["Check the gates"]
    assert wrong.returncode == 1
    assert f"::error file={PHASE}/critique.jsonl,line=1" in wrong.stdout
    assert closed.returncode == 1 and "all-depts      closed" in closed.stdout


def test_what_a_workflow_gives_is_data_and_never_part_of_a_script(pull: Pull) -> None:
    assert not any("${{" in step["run"] for step in STEPS)
    done = pull.run_all(GATES="$(touch executed) --help;x", PHASE="$(touch executed)")
    assert not (pull.root / "executed").exists()
    assert done["Check the gates"].returncode == 2


def test_the_installation_imports_nothing_from_the_pull_request(pull: Pull) -> None:
    shutil.rmtree(pull.runner / "yolo-fs")
    pull.run(INSTALL, PIP_NO_INDEX="1")  # what it would download is not asked for here
    assert (pull.runner / "yolo-fs/bin/pip").exists()
    assert not pull.marker.exists()
