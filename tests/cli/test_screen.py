"""On a terminal, `status` fits the screen, says first what needs a person, and needs no colour."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from pathlib import Path

import pytest
from rich.console import Console

from tests.cli.test_inbox import NAME, WORDS, asks_the_user
from tests.support.teams import THREE, Team
from yolo_fs.artifacts.verdicts import CandidateState
from yolo_fs.cli.inbox import show as show_inbox
from yolo_fs.cli.main import run
from yolo_fs.cli.screen import draw_screen, draw_wanted
from yolo_fs.cli.status import show
from yolo_fs.core.reasons import Exit
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.workflow import STEPS
from yolo_fs.snapshots.snapshot import PresentSnapshot, StatusObserver

PATIENCE_S = 60.0
COMMAND = f"yolo-fs answer {NAME} CHOICE"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> PresentSnapshot:
    """A team with much that needs a person."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("no config")))
        team = Team(tmp_path_factory.mktemp("work") / "repo")
        team.config(THREE)
        team.user_commits("chore: three departments", ".yolo-planning/config.json")
        team.begin()
        team.plan()
        asks_the_user(team, "blue", "red")
        by_owner = ["escalate", "raise", NAME, "--reason", "a matter of taste", *WORDS]
        assert run([*by_owner, "-C", str(team.root)]) == Exit.DONE
        team.artifact(".handoff-ux-complete", "{}")
        for number in range(9):
            team.artifact(
                f"01-{number + 3:02}.plan.jsonl", '{"t":"\u202e\x1b[31m' + "long " * 60 + '"}\n'
            )
        for path in (team.root / ".yolo-planning/phases/01-auth").iterdir():
            os.utime(path, (1e9, 1e9))
        with (
            Repository(str(team.root)) as repository,
            contextlib.closing(StatusObserver(repository)) as observer,
        ):
            return observer.look()


def drawn(seen: PresentSnapshot, rows: int, width: int = 80) -> list[str]:
    console = Console(
        file=io.StringIO(),
        width=width,
        height=rows,
        force_terminal=True,
        highlight=False,
        markup=False,
    )
    draw_screen(console, seen, rows)
    assert isinstance(console.file, io.StringIO)
    return re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue()).splitlines()


@pytest.mark.parametrize("rows", [12, 24, 40])
@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_one_phase_fits_the_screen(seen: PresentSnapshot, rows: int, width: int) -> None:
    lines = drawn(seen, rows, width)
    assert sum(max(1, -(-len(line) // width)) for line in lines) < rows
    assert all(len(line) <= width or COMMAND in line for line in lines)
    assert any(line.endswith(COMMAND) for line in lines)
    assert not any(sign in line for line in lines for sign in "\u202e\x1b")


def test_what_needs_a_person_comes_first(seen: PresentSnapshot) -> None:
    lines = drawn(seen, 24)
    assert lines[0] == "Needs a person" and "Which colour?" in lines[1]
    head = next(at for at, line in enumerate(lines) if line.startswith("phase 01-auth"))
    wanted = "\n".join(lines[:head])
    assert "forged: 01-auth: .handoff-ux-complete" in wanted
    assert re.search(r"x 01-03\.plan\.jsonl line 1", wanted)
    assert "more (-v shows them)" in lines[head - 1]
    assert any(line.startswith("  frontend") for line in lines[head:])


def test_only_what_inbox_lists_needs_a_person(seen: PresentSnapshot) -> None:
    for lines in (drawn(seen, 40, 400), drawn(seen, 40)):
        wanted = lines[1 : lines.index("In the way")]
        assert len(wanted) == 2 and "Which colour?" in wanted[0]
        mended = lines[lines.index("Rejected: an agent has to fix these") + 1 :]
        assert re.search(r"x 01-03\.plan\.jsonl line 1", mended[0])


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_has_every_column_of_a_table(seen: PresentSnapshot, width: int) -> None:
    head = r"  department +(.+)"
    screen = "\n".join(drawn(seen, 60, width))
    steps = [number for row in re.findall(head, screen) for number in row.split()]
    assert steps == [step.number for step in STEPS]
    assert len(re.findall(r"(?m)^  frontend ", screen)) == len(re.findall(head, screen))
    pipe = Console(file=io.StringIO(), width=width, force_terminal=True, highlight=False)
    show(pipe, seen.report, verbose=True)
    assert isinstance(pipe.file, io.StringIO)
    text = re.sub(r"\x1b\[[0-9;]*m", "", pipe.file.getvalue())
    assert all(re.search(rf"(?m)^phase .*\b{each.value}\b", text) for each in CandidateState)


def test_a_narrow_terminal_breaks_no_command_and_no_path(seen: PresentSnapshot) -> None:
    narrow = Console(file=io.StringIO(), width=40, force_terminal=True, highlight=False)
    show_inbox(narrow, seen.inbox)
    draw_wanted(narrow, seen, verbose=True)
    show(narrow, seen.report, verbose=True)
    assert isinstance(narrow.file, io.StringIO)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", narrow.file.getvalue()).splitlines()
    for item in seen.inbox:
        assert f"  {item.command}" in lines
    [asked] = [item.command for item in seen.inbox if item.kind == "escalation"]
    assert f"    {asked}" in lines
    for candidate in seen.report.with_standing(CandidateState.REJECTED):
        assert any(line.startswith(f"  {candidate.path}: ") for line in lines)


def test_q_ends_a_watch_and_gives_the_terminal_back(tmp_path: Path) -> None:
    team = Team(tmp_path / "repo")
    team.begin()
    child, screen = pty.fork()
    if child == 0:
        os.execv(
            sys.executable,
            [sys.executable, "-m", "yolo_fs", "status", "--watch", "-C", str(team.root)],
        )
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    text, until, typed = "", time.monotonic() + PATIENCE_S, False
    while time.monotonic() < until:
        if select.select([screen], [], [], 0.1)[0]:
            try:
                text += os.read(screen, 65_536).decode("utf-8", "replace")
            except OSError:
                break
        if not typed and "phase 01-auth" in text:
            os.write(screen, b"xq")
            typed = True
    _, code = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(code) == 0
    assert text.rindex("\x1b[?1049l") > text.index("phase 01-auth")
