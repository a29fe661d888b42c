"""dept-gate and dept-cleanup."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.compat.shim import Done, call, fill, lines

UX = {
    ".handoff-ux-complete": "",
    "design-handoff.jsonl": lines({"component": "login", "status": "ready"}),
    "design-tokens.jsonl": lines({"name": "red"}),
    "component-specs.jsonl": lines({"name": "login"}),
}
DONE = '{"status": "complete"}'
DEPTS = {
    ".dept-status-backend.json": DONE,
    ".dept-status-uiux.json": DONE,
    "01-01.summary.jsonl": "{}\n",
}


def gate(name: str, phase: Path, *more: object) -> Done:
    return call(
        "dept-gate", "--gate", name, "--phase-dir", phase, *(more or ("--no-poll",)), cwd=phase
    )


def without(files: Mapping[str, str], name: str) -> Mapping[str, str]:
    return {key: text for key, text in files.items() if key != name}


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("ux-complete", UX),
        ("ux-complete", without(UX, ".handoff-ux-complete") | {".handoff-uiux-complete": ""}),
        ("ux-complete", UX | {"design-handoff.jsonl": '{\n  "status": "complete"\n}\n'}),
        (
            "api-contract",
            {"api-contracts.jsonl": "torn {\n" + lines({"endpoint": "/", "status": "agreed"})},
        ),
        ("all-depts", DEPTS),
    ],
)
def test_a_gate_that_is_met_is_silent(tmp_path: Path, name: str, files: Mapping[str, str]) -> None:
    assert gate(name, fill(tmp_path, files)) == (0, "", "")


@pytest.mark.parametrize(
    ("name", "files"),
    [
        *(("ux-complete", without(UX, missing)) for missing in UX),
        ("ux-complete", UX | {"component-specs.jsonl": '{"name": "lo'}),
        ("ux-complete", UX | {"design-tokens.jsonl": ""}),
        ("api-contract", {".handoff-api-contract": ""}),
        ("api-contract", {"api-contracts.jsonl": lines({"status": "proposed"})}),
        ("all-depts", without(DEPTS, "01-01.summary.jsonl")),
        ("all-depts", {"01-01.summary.jsonl": "{}\n"}),
        ("all-depts", DEPTS | {".dept-status-frontend.json": '{"status": "running"}'}),
        ("all-depts", DEPTS | {".dept-status-frontend.json": '{"status": "comp'}),
    ],
)
def test_a_gate_that_is_not_met_is_silent_as_well(
    tmp_path: Path, name: str, files: Mapping[str, str]
) -> None:
    assert gate(name, fill(tmp_path, files)) == (1, "", "")


def test_a_pipe_in_a_files_place_does_not_hang(tmp_path: Path) -> None:
    fill(tmp_path, without(UX, "design-tokens.jsonl"))
    os.mkfifo(tmp_path / "design-tokens.jsonl")
    assert gate("ux-complete", tmp_path).code == 1


def test_waiting_in_vain_ends_with_timeout_and_what_is_missing(tmp_path: Path) -> None:
    done = gate("api-contract", tmp_path, "--timeout", 0.1, "--poll-interval", 0.02)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("TIMEOUT:")
    assert "api-contracts.jsonl" in done.err


def test_waiting_ends_when_the_gate_is_met(tmp_path: Path) -> None:
    contract = tmp_path / "api-contracts.jsonl"
    agree = threading.Timer(0.3, contract.write_text, [lines({"status": "agreed"})])
    agree.start()
    assert gate("api-contract", tmp_path, "--timeout", 30, "--poll-interval", 0.02).code == 0
    agree.join()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--gate", "handoff-ux-complete", "--phase-dir", "."),
            "ERROR: Unknown gate: handoff-ux-complete",
        ),
        (("--gate", "../all-depts", "--phase-dir", "."), "ERROR: Unknown gate: ../all-depts"),
        (("--gate", "all-depts", "--phase-dir", "nowhere"), "nowhere"),
        (("--gate", "all-depts", "--phase-dir", ".", "--timeout", "soon"), "--timeout"),
        (("--gate", "all-depts", "--phase-dir", ".", "--timeout", "nan"), "--timeout"),
        (("--gate", "all-depts", "--phase-dir", ".", "--poll-interval", "-1"), "--poll-interval"),
    ],
)
def test_wrong_arguments_are_named(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = call("dept-gate", *arguments, cwd=tmp_path)
    assert (done.code, done.out, said in done.err) == (1, "", True)


# --- dept-cleanup ----------------------------------------------------------------------------------------------------

COORDINATION = (
    ".dept-lock-backend", ".dept-status-backend.json", ".handoff-ux-complete", ".phase-orchestration.json",
)  # fmt: skip
ARTIFACTS = (
    "01-01.plan.jsonl",
    "01-01.summary.jsonl",
    "architecture.toon",
    "notes.md",
    ".execution-state.json",
)
RESOLUTION = ".escalation-resolution-backend.json"


def clean(phase: Path, reason: str = "complete") -> Done:
    return call("dept-cleanup", "--phase-dir", phase, "--reason", reason, cwd=Path("/"))


def test_coordination_files_go_and_artifacts_stay(tmp_path: Path) -> None:
    fill(tmp_path, dict.fromkeys(COORDINATION + ARTIFACTS, "{}"))
    (tmp_path / ".dept-lock-uiux.d").mkdir()
    done = clean(tmp_path)
    assert (done.code, done.err) == (0, "")
    first, *removed = done.out.splitlines()
    assert first == "Cleaned up 5 coordination files (reason: complete):"
    order = (".dept-status-", ".handoff-", ".dept-lock-", ".phase-")
    names = sorted((*COORDINATION, ".dept-lock-uiux.d"))
    assert removed == [
        f"  removed: {name}" for start in order for name in names if name.startswith(start)
    ]
    assert sorted(os.listdir(tmp_path)) == sorted(ARTIFACTS)


def test_nothing_to_remove_is_said(tmp_path: Path) -> None:
    fill(tmp_path, dict.fromkeys(ARTIFACTS, "{}"))
    assert clean(tmp_path, "timeout") == (
        0,
        f"No coordination files to clean up in {tmp_path}\n",
        "",
    )


@pytest.mark.parametrize(
    ("reason", "is_left"), [("complete", False), ("failure", True), ("timeout", True)]
)
def test_resolutions_of_escalations_go_with_the_phase_only(
    tmp_path: Path, reason: str, is_left: bool
) -> None:
    fill(tmp_path, {RESOLUTION: "{}"})
    assert clean(tmp_path, reason).code == 0
    assert (tmp_path / RESOLUTION).exists() is is_left


def test_a_phase_that_is_gone_is_a_warning(tmp_path: Path) -> None:
    done = clean(tmp_path / "gone")
    assert (done.code, done.out, done.err.startswith("WARNING:")) == (0, "", True)


def test_a_lock_that_somebody_holds_stays(tmp_path: Path) -> None:
    lock = tmp_path / ".dept-lock-backend"
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = clean(tmp_path)
    assert (done.code, lock.exists(), "somebody holds this lock" in done.err) == (0, True, True)


def test_a_link_goes_and_its_target_stays(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    (tmp_path / ".handoff-ux-complete").symlink_to(target)
    assert clean(tmp_path).code == 0
    assert os.listdir(tmp_path) == ["target"]


def test_an_unknown_reason_removes_nothing(tmp_path: Path) -> None:
    fill(tmp_path, dict.fromkeys(COORDINATION, ""))
    assert clean(tmp_path, "bored").code == 1
    assert sorted(os.listdir(tmp_path)) == sorted(COORDINATION)
