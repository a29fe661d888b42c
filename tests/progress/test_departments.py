"""Departments side by side: their gates open on committed evidence, and on nothing else."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.cli.main import run

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "fixtures/examples/artifacts"
CONFIG = {"departments": {"frontend": True, "uiux": True}, "department_workflow": "parallel"}


@pytest.fixture
def phase(tmp_path: Path) -> Path:
    """A repository with three departments and one phase; returns the phase's folder."""
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    folder = tmp_path / ".yolo-planning/phases/01-auth"
    folder.mkdir(parents=True)
    (tmp_path / ".yolo-planning/config.json").write_text(json.dumps(CONFIG))
    return folder


def place(phase: Path, kind: str, name: str = "") -> None:
    """Let an agent write a good example of an artifact."""
    example = min((EXAMPLES / kind / "ok").iterdir())
    (phase / (name or f"{kind}{example.suffix}")).write_bytes(example.read_bytes())


def once(phase: Path) -> None:
    assert run(["run", "--once", "-q", "-C", str(phase)]) == 0


def asked(capsys: pytest.CaptureFixture[str], phase: Path, *words: str) -> tuple[int, Any]:
    capsys.readouterr()
    code = run([*words, "--phase", "1", "--json", "-C", str(phase)])
    return code, json.loads(capsys.readouterr().out)["data"]


def ready_component(phase: Path) -> None:
    (phase / "design-handoff.jsonl").write_text('{"component":"LoginForm","status":"ready"}\n')
    place(phase, "design-tokens")
    line = {"name": "LoginForm", "desc": "signs a user in", "states": ["idle"], "props": ["onLogin"],
            "tokens": ["color-primary"], "a11y": {"role": "form"}, "status": "ready"}  # fmt: skip
    (phase / "component-specs.jsonl").write_text(json.dumps(line) + "\n")


def test_the_ux_gate_opens_with_the_last_of_its_evidence(
    phase: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ready_component(phase)
    tokens = (phase / "design-tokens.jsonl").read_bytes()
    (phase / "design-tokens.jsonl").unlink()
    once(phase)
    code, why = asked(capsys, phase, "gate", "why", "ux-complete")
    assert (code, [lack["file"] for lack in why["missing"]]) == (1, ["design-tokens.jsonl"])
    (phase / "design-tokens.jsonl").write_bytes(tokens)
    once(phase)
    assert asked(capsys, phase, "gate", "check", "ux-complete")[0] == 0
    assert json.loads((phase / ".handoff-ux-complete").read_text())["phase"] == "01-auth"
    assert (phase / ".handoff-uiux-complete").exists()


@pytest.mark.proves("002:286b")
@pytest.mark.parametrize("forge", ["touch", "copy", "link", "past"])
def test_a_sentinel_made_by_hand_opens_nothing_and_is_named(
    phase: Path, capsys: pytest.CaptureFixture[str], forge: str
) -> None:
    place(phase, "critique")
    sentinel = phase / ".handoff-ux-complete"
    if forge == "link":
        sentinel.symlink_to("/etc/hostname")
    else:
        genuine = {"sentinel": sentinel.name, "phase": "01-auth", "evidence": []}
        sentinel.write_text(json.dumps(genuine) + "\n" if forge == "copy" else "")
    if forge == "past":
        os.utime(sentinel, (1, 1))
    once(phase)
    code, _ = asked(capsys, phase, "gate", "check", "ux-complete")
    _, listed = asked(capsys, phase, "gate", "list")
    assert (code, listed["forged"]) == (1, [sentinel.name])


def test_a_file_that_is_not_committed_is_no_evidence(
    phase: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place(phase, "critique")
    once(phase)
    ready_component(phase)
    assert asked(capsys, phase, "gate", "check", "ux-complete")[0] == 1


@pytest.mark.proves("002:286a")
def test_every_active_department_gets_a_true_status(phase: Path) -> None:
    place(phase, "architecture", "fe-architecture.toon")
    once(phase)
    found = {
        name: json.loads((phase / f".dept-status-{name}.json").read_text())
        for name in ("backend", "frontend", "uiux")
    }
    assert [found[name]["status"] for name in ("backend", "frontend")] == ["pending", "pending"]
    assert list(found["backend"])[:8] == [
        "dept", "status", "step", "started_at", "updated_at", "plans_complete", "plans_total", "error",
    ]  # fmt: skip


def test_a_second_look_changes_no_status(phase: Path) -> None:
    place(phase, "critique")
    once(phase)
    before = (phase / ".dept-status-backend.json").read_bytes()
    once(phase)
    assert (phase / ".dept-status-backend.json").read_bytes() == before


def test_a_declaration_without_evidence_is_kept_aside_and_does_not_count(
    phase: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place(phase, "critique")
    once(phase)
    code, said = asked(capsys, phase, "dept", "update", "backend", "--status", "complete")
    assert (code, said["status"]) == (0, "complete")
    place(phase, "research")
    once(phase)
    status = json.loads((phase / ".dept-status-backend.json").read_text())
    assert (status["status"], status["declared"]) == ("running", {"status": "complete"})
    capsys.readouterr()
    assert run(["validate", "-C", str(phase)]) == 0
    assert "unknown_key" not in capsys.readouterr().err


def test_a_status_says_what_holds_the_department_up_until_it_does_not(phase: Path) -> None:
    def blockers() -> list[str]:
        once(phase)
        said = json.loads((phase / ".dept-status-backend.json").read_text())
        return [str(one) for one in said["blockers"]]

    place(phase, "critique")
    assert any("waits for gate:ux-complete" in one for one in blockers())
    ready_component(phase)
    assert blockers() == []
    place(phase, "plan", "01-01.plan.jsonl")
    once(phase)
    escalate = ("escalate", "open", "--task", "01-01/T1", "--from", "dev", "--reason", "Blue?")
    said = ("--evidence", "e", "--recommendation", "r", "--boundary", "b")
    assert run([*escalate, *said, "-q", "-C", str(phase)]) == 0
    assert any("ESC-01-01-T1 is rising: senior has to act" in one for one in blockers())


def test_what_a_lead_alone_knows_survives(phase: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place(phase, "critique")
    once(phase)
    asked(
        capsys,
        phase,
        "dept",
        "update",
        "backend",
        "--blocker",
        "no test database",
        "--eta",
        "tomorrow",
    )
    place(phase, "research")
    once(phase)
    status = json.loads((phase / ".dept-status-backend.json").read_text())
    assert (status["blockers"], status["eta"], status["seq"]) == (
        ["no test database", *status["held_up"]],
        "tomorrow",
        3,
    )


def backend_with(phase: Path, **damage: Any) -> Path:
    """Return the status file of the backend, with other values written into it."""
    file = phase / ".dept-status-backend.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | damage))
    return file


@pytest.mark.parametrize("seq", ["x", [[]], {"a": 1}, True])
def test_a_number_that_is_none_stops_neither_the_daemon_nor_a_declaration(
    phase: Path, capsys: pytest.CaptureFixture[str], seq: Any
) -> None:
    place(phase, "critique")
    once(phase)
    file = backend_with(phase, seq=seq)
    assert asked(capsys, phase, "dept", "update", "backend", "--eta", "tomorrow")[0] == 0
    assert json.loads(file.read_text())["seq"] == 1

    backend_with(phase, seq=seq)
    place(phase, "research")
    once(phase)
    assert json.loads(file.read_text())["seq"] == 1


@pytest.mark.parametrize("declared", ["x", ["status", "step"], 7, [["status"]]])
def test_declarations_that_are_none_are_written_anew(
    phase: Path, capsys: pytest.CaptureFixture[str], declared: Any
) -> None:
    place(phase, "critique")
    once(phase)
    file = backend_with(phase, declared=declared)
    assert asked(capsys, phase, "dept", "update", "backend", "--status", "running")[0] == 0
    assert json.loads(file.read_text())["declared"] == {"status": "running"}


def test_what_a_killed_writer_left_is_gone_after_the_next_declaration(
    phase: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place(phase, "critique")
    once(phase)
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = phase / f".{'.dept-status-backend.json'}.yolo-tmp.{dead.pid}.0f"
    left.write_text("torn {")
    assert asked(capsys, phase, "dept", "update", "backend", "--status", "running")[0] == 0
    assert not left.exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["backend", "--status", "banana"], 2),
        (["backend", "--step", "banana"], 2),
        (["../../evil", "--status", "running"], 2),
        (["backend", "--status", "running", "--expect-seq", "7"], 1),
    ],
)
def test_what_the_protocol_does_not_know_is_refused(
    phase: Path, words: list[str], code: int
) -> None:
    place(phase, "critique")
    once(phase)
    before = (phase / ".dept-status-backend.json").read_bytes()
    assert run(["dept", "update", *words, "--phase", "1", "-C", str(phase)]) == code
    assert (phase / ".dept-status-backend.json").read_bytes() == before


def test_waiting_for_a_gate_ends_with_what_is_missing(
    phase: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place(phase, "critique")
    once(phase)
    code, found = asked(capsys, phase, "gate", "wait", "ux-complete", "--timeout", "0")
    assert code == 1
    assert not found["gates"][0]["open"]


def test_the_owner_holds_while_a_department_is_behind(
    phase: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place(phase, "critique")
    once(phase)
    _, found = asked(capsys, phase, "gate", "list")
    assert found["sign_off"]["decision"] == "HOLD"
