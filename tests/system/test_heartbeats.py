"""The record of the crew on the disk: whole lines from many writers, none lost to another, nothing waited for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.system import heartbeats
from yolo_fs.system.warm_path import own_folder


def lines(folder: Path, name: str = heartbeats.FILE) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_bytes().splitlines()]


def test_a_sign_is_one_line_with_its_moment(tmp_path: Path) -> None:
    assert heartbeats.append_heartbeat(
        str(tmp_path / "own"), "subagent-start", "yolo-dev", "a1", "s1"
    )
    (line,) = lines(tmp_path / "own")
    assert {key: line[key] for key in ("event", "agent", "id", "session")} == {
        "event": "subagent-start", "agent": "yolo-dev", "id": "a1", "session": "s1",
    }  # fmt: skip
    assert line["at"].endswith("Z") and len(line["at"]) == len("2026-02-17T10:00:00.000Z")
    assert (tmp_path / "own" / heartbeats.FILE).stat().st_mode & 0o777 == 0o600


def test_work_of_one_agent_is_noted_once_in_a_while_and_every_change_at_once(
    tmp_path: Path,
) -> None:
    said = (
        "session-start",
        "pre-tool-use",
        "post-tool-use",
        "pre-tool-use",
        "stop",
        "pre-tool-use",
        "stop",
    )
    for event in said:
        for agent in ("a1", "a2"):
            heartbeats.append_heartbeat(str(tmp_path), event, "yolo-dev", agent, "s1")
    kept = [line["event"] for line in lines(tmp_path) if line["id"] == "a1"]
    assert kept == ["session-start", "pre-tool-use", "stop", "pre-tool-use", "stop"]


def test_work_is_noted_again_after_its_time_also_when_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for now in (1_000.0, 1_000.0 + heartbeats.EVERY_S / 2, 1_001.0 + heartbeats.EVERY_S, 500.0):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        heartbeats.append_heartbeat(str(tmp_path), "pre-tool-use", "yolo-dev", "a1", "s1")
    assert [line["at"][17:19] for line in lines(tmp_path)] == ["40", "56", "20"]


@pytest.mark.parametrize("torn", [b'{"at": "2026-', b"\xff\xfe", b'{"id": "a1"}'])
def test_what_somebody_left_torn_spoils_no_other_line(tmp_path: Path, torn: bytes) -> None:
    (tmp_path / heartbeats.FILE).write_bytes(torn)
    assert heartbeats.append_heartbeat(str(tmp_path), "stop", "yolo-dev", "a1", "s1")
    before, line, rest = (tmp_path / heartbeats.FILE).read_bytes().split(b"\n")
    assert (before, json.loads(line)["event"], rest) == (torn, "stop", b"")


def test_a_long_record_is_put_aside_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeats, "MOST_BYTES", 1_000)
    for number in range(12):
        heartbeats.append_heartbeat(str(tmp_path), "stop", "yolo-dev", f"a{number}", "s1")
    kept = [
        line["id"] for name in (heartbeats.OLDER, heartbeats.FILE) for line in lines(tmp_path, name)
    ]
    assert kept == [f"a{number}" for number in range(12)]
    assert len(lines(tmp_path, heartbeats.FILE)) < 12


def test_eight_processes_at_once_lose_and_mix_nothing(tmp_path: Path) -> None:
    program = (
        "import sys; from yolo_fs.system import heartbeats\n"
        "for n in range(60): assert heartbeats.append_heartbeat(sys.argv[1], 'stop', 'yolo-dev', f'{sys.argv[2]}-{n}', 's')"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path), str(number)])
        for number in range(8)
    ]
    assert [one.wait(60) for one in running] == [0] * 8
    assert {line["id"] for line in lines(tmp_path)} == {
        f"{one}-{n}" for one in range(8) for n in range(60)
    }
    assert len(lines(tmp_path)) == 480


@pytest.mark.parametrize("stands_there", ["link", "pipe", "folder", "file"])
def test_whatever_stands_in_the_way_no_hook_fails(tmp_path: Path, stands_there: str) -> None:
    folder, path = tmp_path / "own", tmp_path / "own" / heartbeats.FILE
    match stands_there:
        case "file":
            folder.write_text("")
        case "link":
            folder.mkdir()
            path.symlink_to(tmp_path / "elsewhere")
        case "pipe":
            folder.mkdir()
            os.mkfifo(path)
        case "folder":
            path.mkdir(parents=True)
    assert not heartbeats.append_heartbeat(str(folder), "stop", "yolo-dev", "a1", "s1")
    assert not (tmp_path / "elsewhere").exists()


def test_our_folder_is_found_in_a_clone_in_a_linked_work_tree_and_nowhere_else(
    tmp_path: Path,
) -> None:
    main, linked = tmp_path / "main tree", tmp_path / "linked tree"
    for command in (
        ["init", "-q", "-b", "main", str(main)],
        [
            "-C",
            str(main),
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@b",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "x",
        ],
        ["-C", str(main), "worktree", "add", "-q", "-b", "side", str(linked)],
    ):
        subprocess.run(["git", *command], check=True)
    for tree in (main, linked):
        asked = [
            "git",
            "-C",
            str(tree),
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "yolo-fs",
        ]
        said = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
        assert os.path.realpath(own_folder(str(tree))) == os.path.realpath(said)
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    assert own_folder(str(tmp_path)) == own_folder("/nowhere") == ""
