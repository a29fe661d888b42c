"""The demo is a run of the company in a temporary repository: it ships, leaves nothing behind, and ends when it is asked to."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.shared import made_once

DEMO = [sys.executable, "-m", "yolo_fs", "demo", "--speed", "100"]


class Played(NamedTuple):
    exit_code: int
    envelope: dict[str, Any]
    """What it printed."""
    left: list[str]
    """What stayed in the folder for temporary files."""


def _environment(folder: Path) -> dict[str, str]:
    return os.environ | {"TMPDIR": str(folder), "PYTHONPATH": os.getcwd()}


def _play(folder: Path) -> Played:
    done = subprocess.run(
        [*DEMO, "--json"], env=_environment(folder), capture_output=True, check=False
    )
    assert done.stderr == b"", done
    return Played(done.returncode, json.loads(done.stdout), os.listdir(folder))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    def play(folder: Path) -> None:
        (folder / "tmp").mkdir()
        (folder / "played.json").write_text(json.dumps(_play(folder / "tmp")))

    return Played(
        *json.loads((made_once(tmp_path_factory, "demo", play) / "played.json").read_text())
    )


def test_three_departments_ship(played: Played) -> None:
    assert (played.exit_code, played.envelope["ok"], played.envelope["findings"]) == (0, True, [])
    assert played.envelope["data"]["outcome"] == "shipped"
    names = {commit["path"].rpartition("/")[2] for commit in played.envelope["data"]["commits"]}
    assert {"security-audit.jsonl", "fe-security-audit.jsonl", "ux-security-audit.jsonl"} <= names
    assert any(
        "chore(state): phase 1 complete" in line for line in played.envelope["data"]["history"]
    )


def test_the_history_is_short_enough_to_be_read(played: Played) -> None:
    subjects = [line.partition(" ")[2] for line in played.envelope["data"]["history"]]
    kinds = Counter(subject.partition("(")[0] for subject in subjects)
    states = [subject for subject in subjects if subject.startswith("chore(state)")]

    assert len(subjects) <= 45
    assert kinds["feat"] == 3, "one task in each department"
    assert len(states) <= 2, states


def test_every_proof_holds(played: Played) -> None:
    proofs = played.envelope["data"]["proofs"]

    assert len(proofs) == 3
    assert [proof for proof in proofs if not proof["holds"]] == []


def test_nothing_stays_behind(played: Played) -> None:
    assert played.left == []


def test_on_a_plain_stdout_everything_is_ascii_and_the_kept_repository_is_sound(
    tmp_path: Path,
) -> None:
    environment = _environment(tmp_path) | {"PYTHONIOENCODING": "ascii"}

    done = subprocess.run(
        [*DEMO, "--keep"], env=environment, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert "> critic does critique" in done.stdout
    begin = done.stdout.partition("\nNext\n")[2].split()[0]
    assert shutil.which(begin, path=environment["PATH"]), "what it names next can be run"
    kept = done.stdout.rpartition("The repository is ")[2].strip().rstrip(".")
    assert os.listdir(tmp_path) == [os.path.basename(kept)]
    subprocess.run(["git", "-C", kept, "fsck", "--strict"], check=True, capture_output=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_run_and_removes_everything(
    tmp_path: Path, number: signal.Signals
) -> None:
    # What a shell runs in the background ignores interrupts, and so would our child.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        DEMO, env=_environment(tmp_path), stdout=subprocess.PIPE, text=True
    ) as process:
        signal.signal(signal.SIGINT, before)
        assert process.stdout is not None
        next(line for line in process.stdout if "critic does critique" in line)
        process.send_signal(number)
        process.stdout.read()

    assert process.returncode == 130
    assert os.listdir(tmp_path) == []
    assert list(_processes_in(tmp_path)) == []


def _processes_in(folder: Path) -> Iterator[int]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            where = os.readlink(process / "cwd")
        except OSError:
            continue
        if where.startswith(f"{folder}/"):
            yield int(process.name)


def test_an_agent_tries_again_while_another_git_has_the_index(tmp_path: Path) -> None:
    root, programs, lock = tmp_path / "shop", tmp_path / "bin", tmp_path / "shop/.git/index.lock"
    subprocess.run(["git", "init", "-q", root], check=True)
    programs.mkdir()
    # The lock is gone once the first git has failed at it.
    (programs / "git").write_text(
        f'#!/bin/sh\n"{shutil.which("git")}" "$@"; code=$?; rm -f "{lock}"; exit $code\n'
    )
    (programs / "git").chmod(0o755)
    (tmp_path / "brief.md").write_text("Mend it.")
    lock.touch()
    environment = _environment(tmp_path) | {
        "PATH": f"{programs}:{os.environ['PATH']}", "YOLO_FS_AGENT": "yolo-dev", "YOLO_FS_TASK": "",
        "YOLO_FS_WRITES": "src/a.ts", "YOLO_FS_PLAN": "01-01", "YOLO_FS_BRIEF": str(tmp_path / "brief.md"),
        "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b",
    }  # fmt: skip

    command = [sys.executable, "-P", "-m", "yolo_fs.demo.agent"]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, check=True)

    assert done.stderr == b""
    listed = ["git", "-C", str(root), "show", "--format=", "--name-only", "HEAD"]
    assert subprocess.check_output(listed, text=True).split() == ["src/a.ts"]
