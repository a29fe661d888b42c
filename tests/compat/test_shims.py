"""The table of scripts, their shims, and what all of them do with wrong arguments."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.compat.shim import SCRIPTS as FOLDER
from tests.compat.shim import call, fill
from yolo_fs.compat.scripts import SCRIPTS

ADVISORY = {"validate-summary", "validate-frontmatter", "validate-commit", "validate-send-message"}
"""Hooks: their input is on stdin, and they never fail."""


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_script_is_a_link_to_the_one_shim(name: str) -> None:
    path = FOLDER / f"{name}.sh"

    assert os.access(path, os.X_OK)
    assert path.readlink() == Path("compat.sh")


def test_each_link_stands_in_the_table() -> None:
    assert {path.stem for path in FOLDER.glob("*.sh") if path.is_symlink()} == set(SCRIPTS)


def test_a_shim_works_behind_a_link_of_another_name_and_with_spaces(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "my gate").symlink_to(FOLDER / "dept-gate.sh")
    (folder / "again").symlink_to("my gate")
    done = subprocess.run(
        [str(folder / "again"), "--bogus"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (1, "Unknown flag: --bogus\n")


def test_a_shim_is_found_on_the_path(tmp_path: Path) -> None:
    done = subprocess.run(
        ["dept-gate.sh", "--bogus"],
        cwd=tmp_path,
        env={"PATH": f"{FOLDER}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (1, "Unknown flag: --bogus\n")


USAGE: list[tuple[str, tuple[str, ...], str]] = [
    ("dept-status", (), "Usage: dept-status.sh "),
    ("dept-status", ("--dept", "backend", "--phase-dir", "."), "Usage: dept-status.sh "),
    ("dept-status", ("--bogus", "x"), "Unknown flag: --bogus"),
    (
        "dept-status",
        ("--dept", "backend", "--phase-dir", ".", "--action", "delete"),
        "ERROR: --action must be read or write",
    ),
    (
        "dept-status",
        ("--dept", "backend", "--phase-dir", ".", "--action", "write"),
        "ERROR: --status required for write action",
    ),
    (
        "dept-status",
        ("--dept", "backend", "--phase-dir", ".", "--action", "write", "--status", "running"),
        "ERROR: --step required for write action",
    ),
    (
        "dept-status",
        ("--dept", "backend", "--phase-dir", ".", "--action", "read"),
        "ERROR: Status file not found: ./.dept-status-backend.json",
    ),
    ("dept-gate", (), "Usage: dept-gate.sh "),
    ("dept-gate", ("--phase-dir",), "Usage: dept-gate.sh "),
    ("dept-gate", ("--gate=all-depts",), "Unknown flag: --gate=all-depts"),
    ("dept-gate", ("--help",), "Unknown flag: --help"),
    ("dept-gate", ("--gate", "nope", "--phase-dir", "."), "ERROR: Unknown gate: nope"),
    ("dept-cleanup", (), "Usage: dept-cleanup.sh "),
    ("dept-cleanup", ("--bogus",), "Unknown flag: --bogus"),
    (
        "dept-cleanup",
        ("--phase-dir", ".", "--reason", "bored"),
        "ERROR: --reason must be complete, failure, or timeout",
    ),
    ("dept-orchestrate", (), "Usage: dept-orchestrate.sh "),
    ("dept-orchestrate", ("config.json",), "Usage: dept-orchestrate.sh "),
    ("integration-gate", (), "Usage: integration-gate.sh "),
    ("integration-gate", ("--bogus",), "Usage: integration-gate.sh "),
    (
        "integration-gate",
        ("--phase-dir", "gone", "--config", "c"),
        '{"error": "Phase directory not found: gone"}',
    ),
    (
        "integration-gate",
        ("--phase-dir", ".", "--config", "gone"),
        '{"error": "Config file not found: gone"}',
    ),
    ("pre-integration-check", (), "Error: --phase-dir is required"),
    ("pre-integration-check", ("--bogus",), "Usage: pre-integration-check.sh "),
    (
        "pre-integration-check",
        ("--phase-dir", "gone"),
        "Error: phase directory does not exist: gone",
    ),
    ("generate-execution-state", (), "Usage: generate-execution-state.sh "),
    ("generate-execution-state", ("--bogus",), "Unknown flag: --bogus"),
    (
        "generate-execution-state",
        ("--phase-dir", "gone", "--phase", "01"),
        "Error: Phase directory does not exist: gone",
    ),
    ("resolve-task-deps", (), "Usage: resolve-task-deps.sh "),
    ("resolve-task-deps", ("--bogus",), "Usage: resolve-task-deps.sh "),
    ("resolve-task-deps", ("--plan", "gone"), "ERROR: Plan file not found: gone"),
    ("check-escalation-timeout", (), "Usage: check-escalation-timeout.sh "),
    ("check-escalation-timeout", ("--bogus",), "Unknown flag: --bogus"),
    ("validate-plan", (), "Usage: validate.sh --type plan "),
    ("validate-config", (), "Usage: validate.sh --type config "),
    ("validate-gates", (), "Usage: validate.sh --type gates "),
    ("validate-gates", ("--bogus",), "Unknown flag: --bogus"),
    ("validate-gates", ("--step", "lunch", "--phase-dir", "."), "ERROR: Unknown step: lunch"),
    ("validate", ("--type", "deps"), "Error: --roadmap-json is required"),
    ("validate", ("--type", "deps", "--bogus"), "Usage: validate.sh --type deps "),
    (
        "validate",
        ("--type", "deps", "--roadmap-json", "gone"),
        "Error: roadmap file not found: gone",
    ),
]
"""Script, arguments, and how stderr begins; other programs' tests pin these phrases."""


@pytest.mark.parametrize(("name", "arguments", "said"), USAGE)
def test_wrong_arguments_are_answered_in_the_words_of_the_reference(
    tmp_path: Path, name: str, arguments: tuple[str, ...], said: str
) -> None:
    done = call(name, *arguments, cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(said)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["resolve-departments", "phase-detect"])
def test_what_never_fails_ignores_arguments(name: str, tmp_path: Path) -> None:
    assert call(name, "--bogus", "x", cwd=tmp_path).code == 0


def test_without_an_installation_the_shim_says_so(tmp_path: Path) -> None:
    shim = Path(shutil.copy(FOLDER / "dept-gate.sh", tmp_path))
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "dirname").symlink_to(shutil.which("dirname") or "/usr/bin/dirname")
    done = subprocess.run(
        ["/bin/sh", str(shim)],
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (127, "dept-gate: yolo-fs is not installed\n")


def test_a_shim_elsewhere_finds_the_installation_on_the_path(tmp_path: Path) -> None:
    shim = Path(shutil.copy(FOLDER / "dept-gate.sh", tmp_path / "dept-gate.sh"))
    installed = FOLDER.parent / ".venv/bin"
    done = subprocess.run(
        [str(shim), "--gate", "nope", "--phase-dir", "."], env={"PATH": f"{installed}:{os.environ['PATH']}"}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, "Unknown gate: nope" in done.stderr) == (1, True)


def test_a_name_that_is_no_script_lists_them(tmp_path: Path) -> None:
    installed = FOLDER.parent / ".venv/bin/yolo-fs"
    done = subprocess.run(
        [installed, "compat", "nope"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert all(name in done.stderr for name in SCRIPTS)


@pytest.fixture
def broken_git(tmp_path: Path) -> dict[str, str]:
    """Return an environment whose git always fails."""
    git = tmp_path / "bin/git"
    git.parent.mkdir()
    git.write_text("#!/bin/sh\nexit 1\n")
    git.chmod(0o755)
    return {"PATH": f"{git.parent}:{os.environ['PATH']}"}


def test_where_git_does_not_work_the_coordination_files_are_removed_all_the_same(
    tmp_path: Path, broken_git: dict[str, str]
) -> None:
    names = (".dept-status-a.json", ".handoff-a", ".dept-lock-a", ".phase-orchestration.json")
    phase = fill(tmp_path / "01-a", dict.fromkeys(names, ""))
    arguments = ("--phase-dir", phase, "--reason", "complete")
    done = call("dept-cleanup", *arguments, cwd=tmp_path, env=broken_git)
    assert (done.code, os.listdir(phase)) == (0, [".phase-orchestration.json"])
    removed = [line.partition(": ")[2] for line in done.out.splitlines() if "  removed" in line]
    assert removed == list(names[:3])


def test_where_git_does_not_work_the_phase_is_detected_all_the_same(
    tmp_path: Path, broken_git: dict[str, str]
) -> None:
    done = call("phase-detect", cwd=tmp_path, env=broken_git)
    assert (done.code, "brownfield=false" in done.out, done.err) == (0, True, "")


def test_a_reader_who_goes_away_is_met_with_silence(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [str(FOLDER / "phase-detect.sh")],
        cwd=tmp_path,
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert done.stderr == b""


@pytest.mark.parametrize(
    "name", ["resolve-departments", "dept-status", "dept-gate", "phase-detect"]
)
def test_a_small_script_imports_little(name: str, tmp_path: Path) -> None:
    """Agents call these in loops; pydantic and click cost more than all the rest."""
    code = (
        "import sys; from yolo_fs.__main__ import main; main();"
        "print(*(set(sys.modules) & {'pydantic', 'click', 'rich', 'watchdog'}), file=sys.stderr)"
    )
    python = FOLDER.parent / ".venv/bin/python"
    done = subprocess.run(
        [python, "-c", code, "compat", name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.splitlines()[-1] == ""
