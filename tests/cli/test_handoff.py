"""`handoff check`, `emit` and `parse`: what a receiver and a sender see, and the exit code that a script goes by."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit

FIXTURES = Path(__file__).parents[2] / "fixtures"
GUID = "4f1d2c7a-93b8-4c0e-a6d5-2f8e7b1c9d30"
SESSION = f"apps/web/.local/directives/{GUID}"
READING = "apps/web/docs/guides/component-paradigm.md"
BRANCH = "directive/login"
SENDER = ("--from", "architect", "--to", "executor", "--trigger", "architect_ultra_detected", "--session", GUID,
          "--task", "tasks/02.md", "--objective", "Build the form", "--blocking-rule", "architects write no code")  # fmt: skip
CHAT = f"""=== AUTO HANDOFF ===
from_role: architect
to_role: executor
trigger: architect_ultra_detected
session_id: {GUID}
task_file: tasks/02.md
directive_branch: {BRANCH}
required_reading: {READING}
objective: Build the form
blocking_rule: architects write no code
"""
FILE = f"""---
handoff:
  from_role: architect
  to_role: executor
  trigger: architect_ultra_detected
  session_id: {GUID}
  task_file: tasks/02.md
  directive_branch: {BRANCH}
  required_reading: {READING}
  objective: Build the form
  blocking_rule: architects write no code
---
"""


def git(root: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one directive session, on its branch."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    tree = tmp_path / "work tree"
    files = {
        READING: "# Components\n",
        f"{SESSION}/README.md": f"---\nmeta:\n  session_priority: ultra\n  directive_branch: {BRANCH}\n---\n",
        f"{SESSION}/tasks/02.md": "# Form\n",
    }
    for path, text in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(text)
    git(tmp_path, "init", "-q", "-b", BRANCH, str(tree))
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "chore(repo): start")
    return tree


def handoff(
    root: Path, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = run(["handoff", words[0], "--json", "-C", str(root), *words[1:]])
    return code, json.loads(capsys.readouterr().out)


def reasons(answer: dict[str, Any]) -> list[tuple[str, int, str]]:
    return [
        (one["reason"], one["line"], one["at"])
        for one in answer["findings"]
        if one["level"] == "error"
    ]


def give(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


# --- emit ------------------------------------------------------------------------------------------------------------


@pytest.mark.proves("001:68")
def test_sender_prints_the_packet_and_writes_the_file(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["handoff", "emit", "-C", str(root), *SENDER]) == Exit.DONE
    said = capsys.readouterr()
    assert said.out == CHAT
    assert said.err == f"{SESSION}/HANDOFF.md: written; architect stops now\n"
    assert (root / SESSION / "HANDOFF.md").read_text() == FILE
    assert run(["handoff", "emit", "-C", str(root), *SENDER]) == Exit.DONE
    assert "already written" in capsys.readouterr().err


def test_incomplete_packet_is_not_emitted(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(["handoff", "emit", "-C", str(root), *SENDER, "--to", "pair", "--task", "n/a"])
        == Exit.FINDINGS
    )
    said = capsys.readouterr()
    assert (said.out, "/handoff/task_file: bad_format" in said.err) == ("", True)
    assert not (root / SESSION / "HANDOFF.md").exists()


def test_a_repository_without_the_documents_own_guide_emits_as_well(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / READING).unlink()
    words = ("--from", "pair", "--to", "architect", "--trigger", "pair_out_of_scope",
             "--objective", "decide the schema", "--blocking-rule", "scope")  # fmt: skip
    code, answer = handoff(root, capsys, "emit", *words)
    assert (code, answer["data"]["packet"]["required_reading"]) == (Exit.DONE, "n/a")
    (root / "GUIDE.md").write_text("# Guide\n")
    code, answer = handoff(root, capsys, "emit", *words, "--reading", "GUIDE.md")
    assert (code, answer["data"]["packet"]["required_reading"]) == (Exit.DONE, "GUIDE.md")
    code, answer = handoff(root, capsys, "emit", *words, "--reading", "gone.md")
    assert (code, reasons(answer)) == (Exit.FINDINGS, [("file_missing", 0, "/required_reading")])


def test_the_key_that_demands_another_reading_is_named(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / ".yolo-planning").mkdir()
    (root / ".yolo-planning/config.json").write_text(
        json.dumps({"yolo_fs": {"required_reading": "docs/first.md"}})
    )
    code, answer = handoff(root, capsys, "emit", *SENDER, "--reading", READING)
    (finding,) = answer["findings"]
    assert (code, finding["reason"], finding["expected"]) == (1, "unknown_value", "docs/first.md")
    assert "yolo_fs.required_reading" in finding["hint"]


def test_a_session_that_is_not_there_names_the_key_of_where_sessions_lie(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = GUID.replace("4", "5")
    code, answer = handoff(root, capsys, "emit", *SENDER, "--session", other)
    missing = next(one for one in answer["findings"] if one["reason"] == "file_missing")
    assert code == Exit.FINDINGS and "yolo_fs.directive_roots" in missing["hint"]


# --- check -----------------------------------------------------------------------------------------------------------


@pytest.mark.proves("001:75", "001:78")
def test_receiver_on_the_right_branch_goes_on_without_being_asked(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    handoff(root, capsys, "emit", *SENDER)
    code, answer = handoff(root, capsys, "check", "--as", "executor")
    assert (code, answer["ok"], answer["findings"]) == (Exit.DONE, True, [])
    assert {key: answer["data"][key] for key in ("accepted", "role", "required_reading", "session_file", "task_file")} == {
        "accepted": True, "role": "executor", "required_reading": READING,
        "session_file": f"{SESSION}/README.md", "task_file": "tasks/02.md",
    }  # fmt: skip


def test_receiver_on_the_wrong_branch_is_stopped_before_its_first_edit(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    handoff(root, capsys, "emit", *SENDER)
    git(root, "switch", "-q", "-c", "main")
    code, answer = handoff(root, capsys, "check")
    assert (code, answer["data"]["role"]) == (Exit.FINDINGS, "")
    assert reasons(answer) == [("branch_mismatch", 8, "/handoff/directive_branch")]
    git(root, "switch", "-q", BRANCH)
    assert handoff(root, capsys, "check")[0] == Exit.DONE


def test_role_that_the_packet_is_not_for_stops(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    handoff(root, capsys, "emit", *SENDER)
    code, answer = handoff(root, capsys, "check", "--as", "pair")
    assert (code, reasons(answer)) == (Exit.FINDINGS, [("state_conflict", 4, "/handoff/to_role")])


def test_people_are_told_what_to_do_next(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    handoff(root, capsys, "emit", *SENDER)
    assert run(["handoff", "check", "-C", str(root)]) == Exit.DONE
    assert capsys.readouterr().out.splitlines() == [
        "accepted: you are executor now; no confirmation is needed",
        f"read first: {READING}",
        f"session:    {SESSION}/README.md",
        "task:       tasks/02.md",
        f"branch:     {BRANCH}",
        "objective:  Build the form",
    ]
    git(root, "switch", "-q", "-c", "main")
    assert run(["handoff", "check", "-C", str(root)]) == Exit.FINDINGS
    said = capsys.readouterr()
    assert said.out == "stop: the handoff is not accepted; make no edit until it is corrected\n"
    assert (
        f"the branch checked out is 'main'; expected {BRANCH}. Run 'git switch {BRANCH}'"
        in said.err
    )


@pytest.mark.proves("001:61a")
def test_missing_handoff_stops_the_receiver(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = handoff(root, capsys, "check")
    assert (code, reasons(answer)) == (Exit.FINDINGS, [("file_missing", 0, "")])
    code, answer = handoff(root, capsys, "check", f"{SESSION}/HANDOFF.md")
    assert (code, reasons(answer)) == (Exit.FINDINGS, [("file_missing", 0, "")])


@pytest.mark.proves("001:59")
def test_packet_from_a_chat_is_worth_as_much_as_the_file(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, f"I stop.\n\n```text\n{CHAT}```\n")
    code, answer = handoff(root, capsys, "check", "-")
    assert (code, answer["data"]["role"]) == (Exit.DONE, "executor")
    give(monkeypatch, CHAT.replace("executor", "pair"))
    code, answer = handoff(root, capsys, "check", "-")
    assert (code, reasons(answer)) == (Exit.FINDINGS, [("state_conflict", 4, "/trigger")])


def test_file_is_found_from_any_folder(
    root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    handoff(root, capsys, "emit", *SENDER)
    assert handoff(root / SESSION, capsys, "check", "HANDOFF.md")[0] == Exit.DONE
    (tmp_path / "outside.txt").write_text(CHAT)
    assert handoff(root, capsys, "check", "../outside.txt")[0] == Exit.DONE


def test_an_agent_of_a_run_overrides_no_handoff(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YOLO_FS_RUN", "1")
    code, answer = handoff(root, capsys, "check", "--override", "it is mine")
    assert (code, reasons(answer)) == (Exit.FINDINGS, [("out_of_lane", 0, "")])
    assert handoff(root, capsys, "check")[0] == Exit.FINDINGS


def test_operator_overrides_on_record(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    handoff(root, capsys, "emit", *SENDER)
    git(root, "switch", "-q", "-c", "login-2")
    code, answer = handoff(root, capsys, "check", "--override", "the branch was renamed")
    assert (code, answer["data"]["override"]["because"]) == (Exit.DONE, "the branch was renamed")
    assert answer["data"]["override"]["faults"] == ["branch_mismatch at /handoff/directive_branch"]
    assert handoff(root, capsys, "check")[1]["data"]["override"] == answer["data"]["override"]
    assert run(["handoff", "check", "-C", str(root)]) == Exit.DONE
    assert "the branch was renamed" in capsys.readouterr().out


def test_hostile_packet_steers_no_terminal(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    give(
        monkeypatch,
        CHAT.replace("the form", "\x1b]0;owned\x07 \u202e").replace("trigger: ", "trigger: \x9b"),
    )
    assert run(["handoff", "check", "-", "-C", str(root)]) == Exit.FINDINGS
    said = capsys.readouterr()
    assert not set(said.out + said.err) & set("\x1b\x07\x9b\u202e")


# --- parse -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", sorted((FIXTURES / "packets").glob("*/*.txt")), ids=lambda case: case.stem
)
def test_parse_agrees_with_every_example(
    case: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = handoff(tmp_path, capsys, "parse", str(case))
    if case.parent.name == "ok":
        assert (code, next(iter(answer["data"])), len(answer["data"])) == (
            Exit.DONE,
            "from_role",
            9,
        )
    else:
        assert (code, reasons(answer)[0][0]) == (Exit.FINDINGS, case.name.partition("__")[0])


@pytest.mark.parametrize(
    "case", sorted((FIXTURES / "front_matter/bad").iterdir()), ids=lambda case: case.stem
)
def test_every_trick_of_yaml_stops_with_its_reason(
    case: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / SESSION / "HANDOFF.md").write_bytes(case.read_bytes())
    for answer in (
        handoff(root, capsys, "parse", f"{SESSION}/HANDOFF.md"),
        handoff(root, capsys, "check", f"{SESSION}/HANDOFF.md"),
    ):
        assert (answer[0], reasons(answer[1])[0][0]) == (
            Exit.FINDINGS,
            case.name.partition("__")[0],
        )


def test_parse_shows_the_nine_fields(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, FILE)
    assert run(["handoff", "parse", "-", "-C", str(tmp_path)]) == Exit.DONE
    assert capsys.readouterr().out == CHAT.split("\n", 1)[1]
    assert run(["handoff", "parse", "gone.txt", "-C", str(tmp_path)]) == Exit.FINDINGS
