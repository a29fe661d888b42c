"""`resume` answers in the form that each host takes, never fails a session, and never waits for one that says nothing."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.cli import resume as module
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit
from yolo_fs.phase.report import tokens
from yolo_fs.system.toon import read_toon

FORMS = ["text", "json", "toon", "claude-hook", "codex-hook", "cursor-hook"]
HOOKS = FORMS[3:]
EMPTY = {"text": "", "toon": "", "claude-hook": "{}\n", "codex-hook": "{}\n", "cursor-hook": "{}\n"}
SCRIPT = Path(__file__).parents[2] / "scripts/session-start.sh"


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    found = Team(tmp_path / "work")
    found.begin()
    return found


def said(root: Path, *words: str, code: int = Exit.DONE) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert run(["resume", *words, "-C", str(root)]) == code
    return out.getvalue()


def test_a_session_whose_folder_is_gone_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run(["resume"]) == Exit.DONE
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("not_a_repository: the current folder no longer exists"), (
        err
    )


# --- forms ---


def test_each_form_tells_the_same(team: Team) -> None:
    text = said(team.root)
    data = json.loads(said(team.root, "--format", "json"))["data"]
    toon = read_toon(said(team.root, "--format", "toon").encode(), "brief").records[0].value
    assert "next: architect does architecture\n" in text
    assert data["next"]["agent"] == toon["next"]["agent"] == "architect"
    assert data == toon


def test_hooks_get_one_object_on_one_line_that_holds_the_text(team: Team) -> None:
    text = said(team.root)
    claude, codex, cursor = (said(team.root, "--format", form) for form in HOOKS)
    assert claude == codex
    assert [one.count("\n") for one in (claude, cursor)] == [1, 1]
    inner = {"hookEventName": "SessionStart", "additionalContext": text}
    assert json.loads(claude) == {"hookSpecificOutput": inner}
    assert json.loads(cursor) == {"additional_context": text}


def test_json_is_the_envelope_of_every_command(team: Team) -> None:
    envelope = json.loads(said(team.root, "--json"))
    assert (envelope["ok"], envelope["findings"], envelope["schema"]) == (
        True,
        [],
        "yolo-fs/resume/1",
    )
    assert (
        said(team.root, "--json")
        == said(team.root, "--format", "json")
        == said(team.root, "--json", "--format", "toon")
    )


@pytest.mark.parametrize("form", FORMS)
def test_twice_in_a_row_prints_the_same_bytes(team: Team, form: str) -> None:
    assert said(team.root, "--format", form) == said(team.root, "--format", form, "--no-write")


@pytest.mark.parametrize("form", FORMS)
def test_no_control_character_leaves_in_any_form(team: Team, form: str) -> None:
    team.file(
        ".yolo-planning/phases/01-auth/.dept-status-backend.json",
        json.dumps({"blockers": ["\x1b[31m\u202e"]}),
    )
    assert not {"\x1b", "\u202e"} & set(said(team.root, "--format", form))
    shown = said(team.root, "--format", form)
    assert "blockers" in shown or "blocked by" in shown


# --- the budget ---


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("budget", [160, 250])
def test_the_budget_holds_for_what_is_printed(team: Team, form: str, budget: int) -> None:
    for number in range(30):
        team.artifact(f"01-{number:02}.plan.jsonl", "{\n")
    text = said(
        team.root, "--format", form, "--budget", str(budget + 60 * (form not in ("text", "toon")))
    )
    assert tokens(text) <= budget + 60 * (form not in ("text", "toon"))
    assert "left" in text and "architect" in text


def test_a_hook_never_exceeds_what_its_host_takes(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        team.file(f".yolo-planning/phases/{number + 2:02}-{'x' * 150}/critique.jsonl", "{\n")
    assert len(said(team.root, "--budget", "100000")) > 10_000
    text = json.loads(said(team.root, "--format", "claude-hook", "--budget", "100000"))
    assert len(text["hookSpecificOutput"]["additionalContext"]) <= 10_000


# --- whom it is for ---


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--role", "architect"], "next: architect does architecture"),
        (["--role", "dev"], "you: dev has nothing to do now"),
        (["--dept", "backend"], "next: architect does architecture"),
        (["--role", "fe-dev"], "next: nobody; department frontend takes no part in this phase"),
    ],
)
def test_a_role_or_a_department_asks(team: Team, words: list[str], line: str) -> None:
    assert line in said(team.root, *words).splitlines()


# --- nothing to tell, and nothing that works ---


@pytest.mark.parametrize("form", EMPTY)
def test_outside_of_a_yolo_fs_repository_the_answer_is_empty(tmp_path: Path, form: str) -> None:
    assert said(tmp_path, "--format", form) == EMPTY[form]
    assert json.loads(said(tmp_path, "--json"))["data"] == {}


def test_whoever_types_it_without_a_planning_tree_is_told_why_the_answer_is_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ("-C", str(tmp_path))
    run(["resume", *at])
    assert capsys.readouterr().err.startswith("warning: not_a_repository: ")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    run(["resume", *at])
    assert capsys.readouterr().err.startswith("warning: not_initialised: ")
    run(["resume", "--format", "claude-hook", *at])
    assert capsys.readouterr() == ("{}\n", "")


@pytest.mark.parametrize("form", FORMS)
def test_a_defect_of_ours_stops_no_session(
    team: Team, form: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(module, "resume_from", fail)
    text = said(team.root, "--format", form)
    assert text == EMPTY.get(form, text)
    assert "Traceback" not in text
    assert form == "json" or "internal_error" in capsys.readouterr().err


def test_a_wrong_option_is_said_to_whoever_typed_it(team: Team) -> None:
    said(team.root, "--format", "yaml", code=Exit.USAGE)
    said(team.root, "--budget", "0", code=Exit.USAGE)


# --- what the host says ---


def hook(given: bytes | None, *words: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "yolo_fs", "resume", "--format", "claude-hook", *words]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    source = {"input": given} if given is not None else {"stdin": subprocess.DEVNULL}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, timeout=60, check=False, **source
    )  # type: ignore[call-overload, no-any-return]


def test_the_host_says_where_and_who(team: Team, tmp_path: Path) -> None:
    given = {"cwd": str(team.root), "agent_type": "yolo-dev", "source": "resume", "unknown": 1}
    done = hook(json.dumps(given).encode(), cwd=tmp_path)
    context = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
    assert (done.returncode, done.stderr, "you: dev has nothing to do now" in context) == (
        0,
        b"",
        True,
    )


@pytest.mark.parametrize(
    "given", [b"", b"{", b"[]", b"\xff\xfe", b'{"cwd": 7, "agent_type": []}', b"[" * 100_000, None]
)
def test_whatever_the_host_says_there_is_one_object(tmp_path: Path, given: bytes | None) -> None:
    done = hook(given, cwd=tmp_path)
    assert (done.returncode, done.stdout, b"Traceback" in done.stderr) == (0, b"{}\n", False)


def test_a_host_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.pipe()
    with os.fdopen(ours) as silent:
        monkeypatch.setattr(sys, "stdin", silent)
        monkeypatch.setattr(module, "_INPUT_WAIT_S", 0.05)
        began = time.monotonic()
        assert module._said_by_host() == {}
        assert time.monotonic() - began < 30
    os.close(theirs)


# --- the shim ---


def shim(
    cwd: Path, *words: str, path: str | None = None, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, **({"PATH": path} if path else {})}
    return subprocess.run(
        [SCRIPT, *words], cwd=cwd, env=environment, input=given, capture_output=True, check=False
    )


def test_the_shim_is_the_session_start_hook(team: Team) -> None:
    done = shim(team.root, given=json.dumps({"cwd": str(team.root)}).encode())
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == said(team.root, "--format", "claude-hook")
    assert SCRIPT.read_text().startswith("#!/bin/sh\n")


def test_the_shim_never_blocks_a_session(tmp_path: Path) -> None:
    done = shim(tmp_path, "--bogus")
    assert (done.returncode, done.stdout, b"--bogus" in done.stderr) == (0, b"{}\n", True)


def test_without_yolo_fs_the_shim_says_so_and_ends_well(tmp_path: Path) -> None:
    (tmp_path / "session-start.sh").write_bytes(SCRIPT.read_bytes())
    done = subprocess.run(
        ["/bin/sh", str(tmp_path / "session-start.sh")], cwd=tmp_path, env={"PATH": "/bin:/usr/bin"},
        capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, b"{}\n")
    assert b"yolo-fs is not installed" in done.stderr
