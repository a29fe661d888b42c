"""The two scripts: they set up once, say clearly what is missing, and install exactly what is locked."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
SCRIPTS = ["scripts/run", "scripts/test", ".ci/run"]


def call(script: str | Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON"} | more
    return subprocess.run(
        [str(script), *arguments], capture_output=True, text=True, cwd="/", stdin=subprocess.DEVNULL,
        env=environment, timeout=60, check=False,
    )  # fmt: skip


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout without an environment, at a path with a space."""
    copy = tmp_path / "a checkout"
    shutil.copytree(ROOT / "scripts", copy / "scripts")
    for name in ("pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, copy)
    return copy


@pytest.fixture
def ready(checkout: Path) -> Path:
    """A checkout that is set up already; its Python runs only the stamp, and says what else it is asked to run."""
    executable(
        checkout / ".venv/bin/python",
        f'case "$1" in -ISc) exec "{sys.executable}" "$@" ;; esac\necho "asked: $*"',
    )
    made = subprocess.run(
        ["bash", "-c", f'set +e; exec 9</dev/null; . "{checkout}/scripts/setup.sh"; stamp'],
        capture_output=True, text=True, env=os.environ | {"PYTHON": executable_that_only_locks(checkout)}, check=True,
    )  # fmt: skip
    (checkout / ".venv/.yolo-fs-stamp").write_text(made.stdout.splitlines()[-1])
    return checkout


def executable_that_only_locks(checkout: Path) -> str:
    return str(executable(checkout / "python", "exit 0"))


# --- the scripts as files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_are_executable_bash(script: str) -> None:
    assert (ROOT / script).stat().st_mode & stat.S_IXUSR
    assert (ROOT / script).read_text().startswith("#!/usr/bin/env bash\n")
    assert subprocess.run(["bash", "-n", str(ROOT / script)], check=False).returncode == 0


def test_help_needs_no_environment(checkout: Path) -> None:
    done = call(checkout / "scripts/run", "--help", PYTHON="/nowhere")
    assert (done.returncode, done.stdout.startswith("Usage: scripts/run")) == (0, True)
    assert not (checkout / ".venv").exists()


# --- what may be missing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", ["scripts/run", "scripts/test"])
@pytest.mark.parametrize(
    ("python", "said"),
    [
        ('case "$2" in *ensurepip*) exit 1 ;; esac', "has no venv module"),
        ('case "$2" in *version_info*) exit 1 ;; esac', "3.11 or newer is needed"),
        ("exit 127", "no Python was found"),
    ],
)
def test_what_is_missing_is_said_with_the_way_out(
    checkout: Path, script: str, python: str, said: str
) -> None:
    done = call(checkout / script, PYTHON=str(executable(checkout / "my python", python)))
    assert done.returncode == 1
    assert said in done.stderr
    assert "Hint: " in done.stderr
    assert not (checkout / ".venv").exists()


# --- what is set up already ------------------------------------------------------------------------------------------


def test_without_arguments_the_demo_runs(ready: Path) -> None:
    done = call(ready / "scripts/run", PYTHON="/nowhere")
    assert (done.returncode, done.stdout) == (0, "asked: -P -m yolo_fs demo\n")


def test_a_repository_is_watched(ready: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "a repo")], check=True)
    (tmp_path / "a repo" / ".yolo-planning").mkdir()
    done = call(ready / "scripts/run", str(tmp_path / "a repo"), "--once", PYTHON="/nowhere")
    assert done.stdout == f"asked: -P -m yolo_fs run -C {tmp_path}/a repo --once\n"


def test_without_a_planning_tree_and_a_terminal_the_command_is_told(
    ready: Path, tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "repo")], check=True)
    done = call(ready / "scripts/run", str(tmp_path / "repo"), PYTHON="/nowhere")
    assert done.returncode == 3
    assert f"yolo-fs init -C {tmp_path}/repo" in done.stderr
    assert not (tmp_path / "repo" / ".yolo-planning").exists()


@pytest.mark.parametrize("changed", ["pyproject.toml", "requirements.lock"])
def test_another_lock_sets_up_anew(ready: Path, changed: str) -> None:
    with (ready / changed).open("a") as file:
        file.write("\n")
    assert "no Python was found" in call(ready / "scripts/run", PYTHON="/nowhere").stderr


@pytest.mark.parametrize("failing", ["ruff", "mypy", "pytest", None])
def test_one_failing_check_fails_the_whole(ready: Path, failing: str | None) -> None:
    for tool in ("ruff", "mypy", "pytest"):
        executable(ready / ".venv/bin" / tool, f'echo "{tool} $*"\nexit {int(tool == failing)}')
    done = call(ready / "scripts/test", "tests/cli", "-k", "a b", PYTHON="/nowhere")
    assert done.returncode == (1 if failing else 0)
    *checks, tests = done.stdout.splitlines()
    assert checks == ["ruff check", "ruff format --check"]
    assert ("mypy " in done.stderr.splitlines()) == (failing == "mypy")
    assert re.fullmatch(r"pytest -n [0-9]+ --dist worksteal tests/cli -k a b", tests)
    assert ("failed: " in done.stderr) == (failing in ("ruff", "mypy"))


# --- the lock --------------------------------------------------------------------------------------------------------


def locked() -> dict[str, str]:
    pins = re.findall(
        r"^([A-Za-z0-9._-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE
    )
    return {canonicalize_name(name): version for name, version in pins}


def test_the_lock_satisfies_what_the_project_asks() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    asked = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *(line for name in ("dev", "mcp", "web") for line in extras[name]),
    ]
    asked = [line for line in asked if not line.startswith("yolo-fs[")]
    pins = locked()
    for requirement in map(Requirement, asked):
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), (
            requirement
        )


def test_every_locked_version_has_its_hashes() -> None:
    blocks = re.split(r"\n(?=[A-Za-z0-9])", (ROOT / "requirements.lock").read_text())[1:]
    assert len(blocks) == len(locked())
    assert all("--hash=sha256:" in block for block in blocks)
