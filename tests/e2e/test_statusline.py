"""`statusline` says in one line what the daemon last said, reads nothing but one file, and never fails its host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.artifacts import artifact
from tests.e2e.daemon import Daemon, until
from tests.e2e.repo import Repo
from yolo_fs.cli.statusline_fast import LONGEST, line

Start = Callable[..., Daemon]


def asked(
    given: bytes, *, cwd: Path, flags: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, *flags, "-m", "yolo_fs", "statusline"]
    return subprocess.run(
        command, input=given, capture_output=True, timeout=60, cwd=cwd, check=True
    )


def health_of(repo: Repo) -> Path:
    return repo.git_dir / "yolo-fs/health.json"


def test_the_line_tells_phase_steps_done_and_what_is_rejected(
    repo: Repo, start: Start, tmp_path: Path
) -> None:
    daemon, plan = start(repo), artifact("plan", 1)
    repo.write(plan)
    daemon.wait_committed([plan])
    until(lambda: "steps" in line(str(repo.root)), "the daemon has told where the team stands")
    host = json.dumps({"session_id": "s", "workspace": {"current_dir": str(repo.root)}}).encode()
    said = asked(host, cwd=tmp_path).stdout.decode()
    assert said == line(str(repo.root)) + "\n"
    assert said.startswith("yolo-fs: ") and plan.path.split("/")[2] in said and "next" in said


@pytest.mark.proves("resume:7")
def test_without_a_daemon_it_says_how_to_start_one(repo: Repo, start: Start) -> None:
    assert line(str(repo.root)) == "yolo-fs: no daemon (yolo-fs start)"
    daemon = start(repo)
    assert "no daemon" not in line(str(repo.root))
    daemon.kill()
    assert line(str(repo.root)) == "yolo-fs: no daemon (yolo-fs start)"


def test_a_linked_work_tree_has_a_line_of_its_own(repo: Repo, start: Start) -> None:
    start(repo)
    repo.git("worktree", "add", "-q", "../linked", "-b", "other")
    linked = repo.root.parent / "linked"
    (linked / ".yolo-planning").mkdir(exist_ok=True)
    assert line(str(linked)) == "yolo-fs: no daemon (yolo-fs start)"
    assert "no daemon" not in line(str(repo.root))


@pytest.mark.parametrize(
    "given", [b"", b"{", b"[]", b'"x"', b'{"workspace": 3}', b"\xff" * 99, b'{"cwd": "/nowhere"}']
)
def test_whatever_the_host_says_the_exit_code_is_0_and_nothing_is_complained_of(
    tmp_path: Path, given: bytes
) -> None:
    done = asked(given, cwd=tmp_path)
    assert (done.stdout.strip(), done.stderr) == (b"", b"")


@pytest.mark.parametrize(
    "said", [b"", b"[1]", b"{}", b'{"pid": "x"}', b'{"pid": 1, "running": "yes"}', b"\x00"]
)
def test_a_damaged_health_file_is_no_daemon_or_an_empty_line(repo: Repo, said: bytes) -> None:
    health_of(repo).parent.mkdir(exist_ok=True)
    health_of(repo).write_bytes(said)
    shown = asked(json.dumps({"cwd": str(repo.root)}).encode(), cwd=repo.root).stdout
    assert shown in (b"", b"yolo-fs: no daemon (yolo-fs start)\n")


def test_no_control_character_reaches_the_host_and_the_line_stays_short(
    repo: Repo, start: Start
) -> None:
    daemon = start(repo)
    said = json.loads(health_of(repo).read_text()) | {"headline": "01-\x1b[31m\n\u202e" + "x" * 999}
    with daemon.paused():
        health_of(repo).write_text(json.dumps(said))
        shown = line(str(repo.root))
    assert len(shown) == LONGEST and shown.isprintable()


def test_a_long_question_cuts_no_command_and_hides_nothing_that_is_in_the_way(
    repo: Repo, start: Start
) -> None:
    daemon = start(repo)
    headline = f"01-auth implementation, next: user answers: {'why? ' * 14}\u2192 yolo-fs answer ESC-01-01-T1 1"
    said = json.loads(health_of(repo).read_text()) | {"headline": headline, "rejected": 3, "standing": ["waits_for"]}  # fmt: skip
    with daemon.paused():
        for first in ("Why?", "Why? " * 8):
            waiting = {"count": 1, "first": first, "at_work": 0}
            health_of(repo).write_text(json.dumps(said | {"waiting": waiting}))
            shown = line(str(repo.root))
            assert shown.endswith(" | 3 rejected | 1 in the way: waits_for (yolo-fs doctor)")
            assert "1 waits for you (yolo-fs inbox)" in shown and "answer ESC" not in shown


def test_nothing_but_the_standard_library_is_read(repo: Repo, start: Start) -> None:
    start(repo)
    done = asked(
        json.dumps({"cwd": str(repo.root)}).encode(), cwd=repo.root, flags=("-X", "importtime")
    )
    loaded = {part.rpartition(b"|")[2].strip().decode() for part in done.stderr.splitlines()}
    ours = {"yolo_fs", "yolo_fs.cli", "yolo_fs.cli.entry", "yolo_fs.cli.hook_question", "yolo_fs.cli.statusline_fast", "yolo_fs.core", "yolo_fs.system.ask",
            "yolo_fs.system", "yolo_fs.system.heartbeats", "yolo_fs.system.warm_path", "yolo_fs.core.foreign_json", "yolo_fs.core.tool_calls"}  # fmt: skip
    assert {name for name in loaded if name.startswith("yolo_fs")} <= ours
    assert not loaded & {"click", "pydantic", "git", "typing"}


@pytest.mark.parametrize("told", [3, "x", {}, [3, None]], ids=str)
def test_a_report_of_another_form_hides_only_its_own_part(
    repo: Repo, start: Start, told: object
) -> None:
    start(repo)
    health = repo.git_dir / "yolo-fs/health.json"
    report = json.loads(health.read_text())
    health.write_text(json.dumps(report | dict.fromkeys(("stuck", "troubles", "standing"), told)))
    assert line(str(repo.root)).startswith("yolo-fs: ")


def test_what_stands_in_the_way_is_named_in_the_line_until_it_is_mended(
    repo: Repo, start: Start
) -> None:
    repo.configure(rescan_s=1)
    start(repo)
    exclude = repo.git_dir / "info/exclude"
    lock = repo.git_dir / "HEAD.lock"
    rules = exclude.read_text() if exclude.exists() else ""
    old = time.time() - 4000
    for number in (1, 2):  # one that has gone away comes back
        exclude.write_text(f"{rules}\n/.yolo-planning/\n")
        until(
            lambda: "1 in the way: gitignored (yolo-fs doctor)" in line(str(repo.root)),
            "the rule is told",
        )
        lock.touch()
        os.utime(lock, (old, old))
        until(lambda: "2 in the way: " in line(str(repo.root)), "so is the lock")
        exclude.write_text(rules)
        lock.unlink()
        until(lambda: "in the way" not in line(str(repo.root)), f"both are gone, time {number}")


def test_a_phase_without_a_file_is_named(repo: Repo, start: Start) -> None:
    repo.yolo_fs("phase", "new", "auth")
    start(repo)
    told = "yolo-fs: 01-auth waits for its first file"
    until(lambda: line(str(repo.root)) == told, "the phase without a file")
