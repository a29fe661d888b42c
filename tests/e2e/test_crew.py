"""A crew under the real daemon: hosts ask the real hook, a Lead asks to stop, the daemon is killed
in between.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.e2e.daemon import Daemon
from tests.e2e.repo import Repo
from tests.support import forked

PHASE = ".yolo-planning/phases/01-auth"
HELD_UP = '{"id":"C1","cat":"gap","sev":"minor","q":"Which key?","ctx":"auth","sug":"Name it","st":"open","cf":90,"rd":1}\n'


def hosts(repo: Repo, event: str, agent: str, instance: str) -> None:
    """Ask the hook as a host does."""
    told = {"session_id": "s", "cwd": str(repo.root), "agent_type": agent, "agent_id": instance}
    ended = forked.call(["hook", event], repo.root, repo.env, json.dumps(told).encode())
    assert ended.code == 0, ended.err


def journal(repo: Repo) -> dict[str, list[dict[str, Any]]]:
    """Return what was told, by the kind of event."""
    told: dict[str, list[dict[str, Any]]] = {}
    for one in json.loads(repo.yolo_fs("events", "--json").stdout)["data"]:
        told.setdefault(one["type"].removeprefix("dev.yolo_fs."), []).append(one["data"])
    return told


def test_what_becomes_of_a_crew_is_told_once_by_daemons_that_are_killed(
    repo: Repo, start: Callable[..., Daemon]
) -> None:
    repo.file(f"{PHASE}/critique.jsonl", HELD_UP)
    repo.configure(agent_silent_s=600, stall_s=1)
    daemon = start(repo)
    hosts(repo, "subagent-start", "yolo-dev", "a1")
    daemon.wait_for("agent.health")
    repo.yolo_fs("agent", "shutdown", "--reason", "timeout", "--deadline", "1")
    daemon.wait_for("shutdown.late")
    daemon.wait_for("step.stalled")
    daemon.kill(with_helpers=True)
    again = start(repo)
    hosts(repo, "subagent-stop", "yolo-dev", "a1")
    again.wait_for("shutdown.over")
    told = journal(repo)
    assert [one["state"] for one in told["agent.health"]] == ["start", "stop"]
    (late,) = told["shutdown.late"]
    assert [(one["id"], one["answer"]) for one in late["asked"]] == [("a1", None)]
    assert [one["asked"][0]["answer"] for one in told["shutdown.over"]] == ["stopped"]
    assert [one["cause"] for one in told["step.stalled"]] == ["unknown"]
    assert [one["cause"] for one in repo.status()["crew"]["stalls"]] == ["unknown"]
