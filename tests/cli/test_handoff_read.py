"""`handoff read` answers with a handoff or with why there is none; `handoff report` counts what reads have left."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit
from yolo_fs.system.journal import Journal

EXAMPLES = Path(__file__).parents[2] / "fixtures/examples/handoffs/handoff-json"
TEXT = "---HANDOFF---\nSTATUS: complete\nARTIFACTS: plan.md\nNEXT: reviewer\nSUMMARY: Four steps\n"
LOG = ".yolo-planning/context_health.log"
WHO = ("--agent", "planner", "--phase", "plan")


@pytest.fixture(autouse=True)
def no_user_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    work_tree = tmp_path / "work tree"
    subprocess.run(["git", "init", "-q", "-b", "main", str(work_tree)], check=True)
    (work_tree / ".yolo-planning").mkdir()
    return work_tree.resolve()


def handoff(
    root: Path, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = run(["handoff", *words, "-C", str(root), "--json"])
    return code, json.loads(capsys.readouterr().out)


def strict(root: Path) -> None:
    (root / ".yolo-planning/config.json").write_text('{"yolo_fs": {"strict_handoffs": true}}')


@pytest.mark.parametrize("example", sorted((EXAMPLES / "ok").iterdir()), ids=lambda path: path.stem)
def test_a_good_example_is_routed_by(
    root: Path, capsys: pytest.CaptureFixture[str], example: Path
) -> None:
    strict(root)
    code, answer = handoff(root, capsys, "read", str(example), *WHO)
    assert (code, answer["data"]["reason"], answer["findings"]) == (Exit.DONE, "handoff_json", [])
    assert answer["data"]["handoff"] == json.loads(example.read_text())


@pytest.mark.proves("004:67", "004:77")
@pytest.mark.parametrize(
    "example", sorted((EXAMPLES / "bad").iterdir()), ids=lambda path: path.stem
)
def test_a_bad_example_is_no_handoff_and_says_why(
    root: Path, capsys: pytest.CaptureFixture[str], example: Path
) -> None:
    code, answer = handoff(root, capsys, "read", str(example), *WHO)
    assert (code, answer["ok"], answer["data"]["handoff"]) == (Exit.FINDINGS, False, None)
    assert answer["data"]["reason"] == "schema_invalid"
    assert answer["findings"][0]["reason"] == example.name.partition("__")[0]
    assert (root / LOG).read_text().splitlines() == answer["data"]["lines"]


@pytest.mark.proves("004:82")
@pytest.mark.parametrize(
    ("is_strict", "code", "level"), [(False, Exit.DONE, "warning"), (True, Exit.FINDINGS, "error")]
)
def test_the_text_will_do_unless_the_policy_is_strict(
    root: Path, capsys: pytest.CaptureFixture[str], is_strict: bool, code: Exit, level: str
) -> None:
    if is_strict:
        strict(root)
    (root / "reply.txt").write_text(TEXT)
    answered, answer = handoff(root, capsys, "read", "handoff.json", *WHO, "--text", "reply.txt")
    assert (answered, answer["data"]["outcome"], answer["data"]["fails"]) == (
        code,
        "text_fallback_ok",
        is_strict,
    )
    assert answer["data"]["handoff"]["next"] == "reviewer"
    assert [one["level"] for one in answer["findings"]] == [level]


def test_the_text_may_come_by_a_pipe(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert handoff(root, capsys, "read", "handoff.json", *WHO, "--text", "-")[0] == Exit.DONE


@pytest.mark.parametrize("words", [("--text", "absent.txt"), ("--agent", "a\nagent=b")])
def test_a_wrong_question_leaves_no_line(
    root: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, str]
) -> None:
    assert handoff(root, capsys, "read", "handoff.json", *WHO, *words)[0] == Exit.USAGE
    assert not (root / LOG).exists()


def test_a_text_beyond_the_limit_is_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (root / "reply.txt").open("wb") as file:
        file.truncate(9 << 20)
    code, answer = handoff(
        root, capsys, "read", "handoff.json", *WHO, "--text", str(root / "reply.txt")
    )
    assert (code, answer["findings"][0]["reason"]) == (Exit.USAGE, "file_too_large")


def test_what_the_agent_wrote_cannot_steer_the_terminal(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = {"status": "a\u001b[2J", "artifacts": [], "next": "\u202ex", "summary": "b\rc"}
    (root / "handoff.json").write_text(json.dumps(evil))
    assert run(["handoff", "read", "handoff.json", *WHO, "-C", str(root)]) == Exit.DONE
    out = capsys.readouterr().out
    assert "status: a\\x1b[2J" in out
    assert not {"\x1b", "\r", "\u202e"} & set(out)


@pytest.mark.proves("004:62b")
def test_a_wrong_place_is_named_to_people(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "handoff.json").write_text("{}")
    assert run(["handoff", "read", "plan/handoff.json", *WHO, "-C", str(root)]) == Exit.FINDINGS
    assert "there is handoff.json" in capsys.readouterr().err


def test_each_read_is_an_event(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    handoff(root, capsys, "read", "handoff.json", *WHO)
    handoff(root, capsys, "read", "handoff.json", *WHO)
    run(["events", "--json", "-C", str(root), "--type", "handoff.read"])
    events = json.loads(capsys.readouterr().out)["data"]
    assert [(one["seq"], one["subject"], one["data"]["reason"]) for one in events] == [
        (1, "handoff.json", "file_missing"),
        (2, "handoff.json", "file_missing"),
    ]


def test_outside_of_a_planning_tree_nothing_is_made(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / ".yolo-planning").rmdir()
    for words in (("read", "handoff.json", *WHO), ("report",)):
        code, answer = handoff(root, capsys, *words)
        assert (code, answer["findings"][0]["reason"]) == (Exit.NOT_HERE, "not_initialised")
    assert os.listdir(root) == [".git"]


# --- the report ---


@pytest.mark.proves("004:86a")
def test_the_report_counts_by_agent_and_phase(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "handoff.json").write_text(
        json.dumps({"status": "", "artifacts": [], "next": None, "summary": ""})
    )
    handoff(root, capsys, "read", "handoff.json", *WHO)
    handoff(root, capsys, "read", "absent.json", *WHO)
    handoff(root, capsys, "read", "absent.json", "--agent", "builder", "--phase", "build")
    code, answer = handoff(root, capsys, "report")
    data = answer["data"]
    assert (code, data["total"]["reads"], data["total"]["percent"]) == (Exit.DONE, 3, 33.3)
    assert [(one["agent"], one["percent"], one["reasons"]) for one in data["by_agent"]] == [
        ("builder", 0.0, {"file_missing": 1}),
        ("planner", 50.0, {"file_missing": 1}),
    ]
    assert [(one["phase"], one["reads"]) for one in data["by_phase"]] == [("build", 1), ("plan", 2)]


def test_the_report_is_a_table_for_people(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    handoff(root, capsys, "read", "absent.json", *WHO)
    with (root / LOG).open("a") as log:
        log.write("something else\n")
    assert run(["handoff", "report", "-C", str(root)]) == Exit.DONE
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["agent", "phase", "reads", "handoff.json", "reasons"]
    assert lines[1].split() == ["planner", "plan", "1", "0.0", "%", "1", "file_missing"]
    assert lines[-1] == "1 lines of the log are in another form"


def test_before_the_first_read_the_report_says_so(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["handoff", "report", "-C", str(root)]) == Exit.DONE
    assert "no handoff was read yet" in capsys.readouterr().out


def test_the_report_gives_the_same_bytes_again(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    handoff(root, capsys, "read", "absent.json", *WHO)
    assert handoff(root, capsys, "report") == handoff(root, capsys, "report")


def test_a_read_beside_a_daemon_takes_no_number_twice(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon = Journal(str(root / ".git/yolo-fs"), source=str(root), now=lambda: datetime.now(UTC))
    daemon.append("daemon.started", "")
    handoff(root, capsys, "read", "handoff.json", *WHO)
    daemon.append("artifact.committed", "x")
    assert [event["seq"] for event in daemon.read()] == [1, 2, 3]


@pytest.mark.proves("004:86b")
def test_status_says_how_many_came_as_the_file_and_why_not(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = next((EXAMPLES / "ok").iterdir())
    handoff(root, capsys, "read", str(good), *WHO)
    handoff(root, capsys, "read", str(root / "nowhere.json"), *WHO)
    run(["status", "-C", str(root)])
    shown = capsys.readouterr().out
    assert "handoffs: 50.0 % of 2 came as handoff.json; 1 file_missing: " in shown
    run(["status", "-C", str(root), "--json"])
    counted = json.loads(capsys.readouterr().out)["data"]["handoff_json"]
    assert (counted["reads"], counted["compliant"]) == (2, 1)
