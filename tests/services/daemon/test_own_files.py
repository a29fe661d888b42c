"""Whatever stands in a file that we keep, commands answer and a scan goes on: never an internal error."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from yolo_fs.cli.main import run

PHASE = ".yolo-planning/phases/01-auth"
STATUS = {
    "dept": "backend", "status": "running", "step": "planning", "started_at": "", "updated_at": "",
    "plans_complete": 0, "plans_total": 0, "error": "", "percent_complete": 0, "blockers": [],
    "eta": "", "seq": 1, "declared": {"status": "complete"},
}  # fmt: skip
WRONG = ("x", 7, -1.5, None, True, [], [1], {}, {"a": [None]})
CONTENTS = (b"", b"\xff\xfe\x00", b"[]", b"7", b'"x"', b"null", b"{}", b"[[{}]]", b"{")
OWN = (
    "health.json", "crew-told.json", "clock.json", "crew-clock.json", "agents.jsonl", "boot.json",
    "index-pending", "gates.json", "history.json", "handoff-overrides.jsonl", "daemon.lock",
)  # fmt: skip
COMMANDS = (
    ["run", "--once"], ["status"], ["resume"], ["gate", "list"], ["doctor"], ["agent", "list"],
    ["dept", "update", "backend", "--phase", "01", "--status", "running"],
)  # fmt: skip
DEFECT = 70


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    root = tmp_path / "repo"
    (root / PHASE).mkdir(parents=True)
    config = {
        "departments": {"backend": True, "frontend": True},
        "yolo_fs": {"state_files": "always"},
    }
    (root / ".yolo-planning/config.json").write_text(json.dumps(config))
    line = {
        "id": "C1",
        "cat": "gap",
        "sev": "major",
        "q": "Q?",
        "ctx": "x",
        "sug": "y",
        "st": "open",
        "cf": 72,
    }
    (root / PHASE / "critique.jsonl").write_text(json.dumps(line) + "\n")
    for command in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "Ada"],
        ["config", "user.email", "ada@example.org"],
    ):
        subprocess.run(["git", "-C", str(root), *command], check=True)
    assert run(["run", "--once", "-C", str(root)]) == 0
    return root


def answers(root: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Return the commands that end with an internal error, and what they say."""
    ends: dict[str, str] = {}
    for command in COMMANDS:
        code = run([*command, "-C", str(root)])
        said = capsys.readouterr()
        if code == DEFECT or "daemon.defect" in said.err:
            ends[" ".join(command)] = said.err[-300:]
    return ends


@pytest.mark.parametrize("key", ["seq", "blockers"])
def test_a_department_status_with_a_wrong_type(
    root: Path, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    path = root / PHASE / ".dept-status-backend.json"
    for value in WRONG:
        path.write_text(json.dumps(STATUS | {key: value}))
        assert answers(root, capsys) == {}, value


@pytest.mark.parametrize("name", ["health.json"])
def test_a_file_of_ours_with_any_content(
    root: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    path = root / ".git/yolo-fs" / name
    for content in CONTENTS:
        path.write_bytes(content)
        assert answers(root, capsys) == {}, content
