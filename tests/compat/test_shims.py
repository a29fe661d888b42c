"""The table of scripts, their shims, and what all of them do with wrong arguments."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.compat.shim import SCRIPTS as FOLDER
from tests.compat.shim import call
from yolo_fs.compat.scripts import SCRIPTS

ADVISORY = {"validate-summary", "validate-frontmatter", "validate-commit", "validate-send-message"}
"""Hooks: their input is on stdin, and they never fail."""
STRICT = sorted(SCRIPTS.keys() - ADVISORY - {"git-commit-serialized"})


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

    assert (done.returncode, "unknown flag: --bogus" in done.stderr) == (1, True)


def test_a_shim_is_found_on_the_path(tmp_path: Path) -> None:
    done = subprocess.run(
        ["dept-gate.sh", "--bogus"],
        cwd=tmp_path,
        env={"PATH": f"{FOLDER}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, "unknown flag: --bogus" in done.stderr) == (1, True)


@pytest.mark.parametrize("name", STRICT)
def test_an_unknown_flag_is_refused(name: str, tmp_path: Path) -> None:
    done = call(
        name, *(("--type", "gates") if name == "validate" else ()), "--bogus", "x", cwd=tmp_path
    )
    assert (done.code, done.out) == (1, "")
    assert "unknown flag: --bogus" in done.err


@pytest.mark.parametrize(
    "name", ["dept-status", "dept-gate", "integration-gate", "validate-gates", "resolve-task-deps"]
)
def test_a_flag_without_its_value_is_refused(name: str, tmp_path: Path) -> None:
    flag = "--plan" if name == "resolve-task-deps" else "--phase-dir"
    done = call(name, flag, cwd=tmp_path)
    assert (done.code, done.out, flag in done.err) == (1, "", True)


@pytest.mark.parametrize(
    "name", sorted(set(STRICT) - {"resolve-departments", "pre-integration-check", "phase-detect"})
)
def test_no_arguments_at_all_are_refused(name: str, tmp_path: Path) -> None:
    done = call(name, cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("ERROR: ")


def test_flags_are_not_written_with_an_equals_sign(tmp_path: Path) -> None:
    done = call("dept-gate", "--gate=all-depts", cwd=tmp_path)
    assert (done.code, "unknown flag: --gate=all-depts" in done.err) == (1, True)


def test_help_belongs_to_the_script_and_not_to_the_command(tmp_path: Path) -> None:
    assert "unknown flag: --help" in call("dept-gate", "--help", cwd=tmp_path).err


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
        [str(shim), "--gate", "nope"], env={"PATH": f"{installed}:{os.environ['PATH']}"}, capture_output=True,
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
