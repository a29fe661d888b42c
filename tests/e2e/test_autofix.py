"""`autofix: safe`: the daemon repairs what leaves its author nothing to decide, and nothing else."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from tests.e2e.artifacts import PLANNING
from tests.e2e.daemon import Daemon, until
from tests.e2e.repo import Repo

Start = Callable[..., Daemon]
GOOD = {"id": "C1", "cat": "gap", "sev": "major", "q": "Q", "ctx": "c", "sug": "s", "st": "open"}
FOLDER = f"{PLANNING}/phases/01-auth"
REPAIRABLE, ASKS, TORN = (f"{FOLDER}/{name}" for name in (
    "critique.jsonl", "research.jsonl", "decisions.jsonl",
))  # fmt: skip
WRONG = b"\xef\xbb\xbf```json\r\n" + json.dumps(GOOD | {"sev": "high"}).encode() + b"\r\n```\r\n"
ONE_VERSION = json.dumps({"ts": "2026-02-19T08:00:00Z", "agent": "lead", "dec": "d", "reason": "r"})
CONFLICT = f"<<<<<<< HEAD\n{ONE_VERSION}\n=======\n{ONE_VERSION}\n>>>>>>> other\n".encode()
"""Two versions side by side: that both hold is a decision."""


def put(repo: Repo, path: str, data: bytes) -> Path:
    file = repo.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def autofixed(daemon: Daemon) -> dict[str, int]:
    return {
        event["path"]: event["data"]["mended"]
        for event in daemon.mailbox.events
        if event.get("event") == "artifact.autofixed"
    }


def test_a_mechanical_fault_is_mended_and_said_and_what_asks_its_author_stays(
    repo: Repo, start: Start
) -> None:
    repo.configure(autofix="safe")
    daemon = start(repo)
    asks, torn = put(repo, ASKS, b'{"sev":"high"}\r\n'), put(repo, TORN, CONFLICT)
    put(repo, REPAIRABLE, WRONG)
    until(lambda: repo.standing(REPAIRABLE)[0] == "committed", "it is repaired and committed")
    until(lambda: autofixed(daemon).keys() == {REPAIRABLE}, "it is said")
    assert json.loads(repo.look("show", f"HEAD:{REPAIRABLE}")) == GOOD
    assert (
        repo.look("log", "-1", "--format=%an <%ae>").strip()
        == repo.look("log", "--reverse", "--format=%an <%ae>").split("\n")[0]
    )
    assert (asks.read_bytes(), torn.read_bytes()) == (b'{"sev":"high"}\r\n', CONFLICT)
    assert [one["path"] for one in repo.status()["autofixed"]] == [REPAIRABLE]
    assert f"{REPAIRABLE}: " in repo.yolo_fs("status").stdout.decode()
    kept = json.loads(repo.yolo_fs("kept", "--json").stdout)["data"]["entries"]
    [number] = [one["number"] for one in kept if one["paths"] == [REPAIRABLE]]
    repo.yolo_fs("kept", "restore", str(number), "--to", "before")
    assert (repo.root / "before").read_bytes() == WRONG
    put(repo, REPAIRABLE, json.dumps(GOOD | {"q": "another"}).encode() + b"\n")
    until(lambda: not repo.status()["autofixed"], "the author has written since")
    assert daemon.stop() == 0


def test_a_repository_that_asks_for_it_itself_is_not_repaired(repo: Repo) -> None:
    repo.configure_repository(autofix="safe")
    file = put(repo, REPAIRABLE, WRONG)
    repo.yolo_fs("run", "--once", ok=(0, 1))
    assert file.read_bytes() == WRONG
    repo.configure(autofix="safe")
    with file.open("ab"):
        repo.yolo_fs("run", "--once", ok=(0, 1))
        assert file.read_bytes() == WRONG, "somebody has it open for writing"
    time.sleep(0.31)  # quiet for as long as `settle_ms` asks
    repo.yolo_fs("run", "--once", ok=(0, 1))
    assert repo.standing(REPAIRABLE)[0] == "committed"
