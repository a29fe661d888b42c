"""What stands in the way is one list: whoever asks is told the same, with what to do, until it is mended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.cli.main import run
from yolo_fs.mcp.tools import Tools

TREE = ".yolo-planning"
Trouble = Callable[[Team], Any]


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    made = Team(tmp_path / "work")
    made.plan_one()
    return made


@contextmanager
def linked(team: Team) -> Iterator[str]:
    tree, aside = team.root / TREE, team.root.parent / "elsewhere"
    tree.rename(aside)
    tree.symlink_to(aside)
    yield "symbolic link"
    tree.unlink()
    aside.rename(tree)


@contextmanager
def ignored(team: Team) -> Iterator[str]:
    excluded = team.root / ".git/info/exclude"
    before = excluded.read_text() if excluded.exists() else ""
    excluded.parent.mkdir(exist_ok=True)
    excluded.write_text(f"{before}\n/{TREE}/\n")
    yield "gitignored"
    excluded.write_text(before)


@contextmanager
def filtered(team: Team) -> Iterator[str]:
    attributes = team.root / ".gitattributes"
    attributes.write_text(f"{TREE}/** filter=lfs\n")
    yield "attr_filter"
    attributes.unlink()


@contextmanager
def without_driver(team: Team) -> Iterator[str]:
    team.git("config", "merge.yolo-jsonl.driver", "/gone/python3 -m yolo_fs merge-driver")
    yield "merge driver yolo-jsonl"
    team.git("config", "--unset", "merge.yolo-jsonl.driver")


@contextmanager
def standing_still(team: Team) -> Iterator[str]:
    """A daemon that is stopped as a debugger, a paused container or Ctrl-Z stops it."""
    command = [sys.executable, "-m", "yolo_fs", "{}", "-C", str(team.root)]
    subprocess.run([*command[:3], "start", "--wait", *command[4:]], check=True, capture_output=True)
    health = team.root / ".git/yolo-fs/health.json"
    report = json.loads(health.read_text())
    os.kill(report["pid"], signal.SIGSTOP)
    try:
        health.write_text(json.dumps(report | {"last_scan_at": report["last_scan_at"] - 3600}))
        yield "has not looked"
        health.write_text(json.dumps(report))
    finally:
        os.kill(report["pid"], signal.SIGCONT)
    subprocess.run([*command[:3], "stop", *command[4:]], check=True, capture_output=True)


TROUBLES = (linked, ignored, filtered, without_driver, standing_still)


def surfaces(team: Team, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Return what each place says, as one text."""

    def said(*words: str) -> str:
        capsys.readouterr()
        run([*words, "-C", str(team.root)])
        return capsys.readouterr().out

    return {
        "status": str(json.loads(said("status", "--json"))["findings"]),
        "doctor": str(json.loads(said("doctor", "--json"))["findings"]),
        "resume": said("resume", "--no-write"),
        "a session's start": said("resume", "--no-write", "--format", "claude-hook"),
        "MCP": Tools(str(team.root)).stand().text,
    }


@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_stands_in_the_way_is_told_everywhere_and_goes_when_it_is_mended(
    team: Team, capsys: pytest.CaptureFixture[str], trouble: Trouble
) -> None:
    with trouble(team) as words:
        told = surfaces(team, capsys)
    after = surfaces(team, capsys)
    assert {place: words in text for place, text in told.items()} == dict.fromkeys(told, True)
    assert {place: words in text for place, text in after.items()} == dict.fromkeys(after, False)


def test_a_daemon_does_not_begin_below_a_link(team: Team) -> None:
    with linked(team):
        asked = [sys.executable, "-m", "yolo_fs", "start", "--wait", "-C", str(team.root)]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "not_regular" in done.stderr
