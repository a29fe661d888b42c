"""The round trip of document 002 from a blocked Dev to the user and back: every line and message valid, every state committed."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from tests.e2e.artifacts import PLANNING
from tests.e2e.daemon import Daemon, until
from tests.e2e.history import History
from tests.e2e.repo import Repo
from tests.e2e.round_trip import (
    DECISION,
    LOG,
    NAME,
    PHASE,
    PLAN,
    RESUMES,
    STATE,
    Move,
    moves_of,
    path_of,
)
from yolo_fs.cli.main import run
from yolo_fs.protocol.departments import Mode
from yolo_fs.schemas.check import check
from yolo_fs.schemas.lines.escalation import EscalationLine
from yolo_fs.schemas.messages.catalogue import read_message
from yolo_fs.schemas.state import ExecutionState

COMPANY = {"departments": {"frontend": True}, "department_workflow": "parallel"}
PLANNED = """\
{"p":"01","n":"02","t":"Login page","w":1,"d":[],"xd":[],"mh":{"tr":["Whoever logged in stays logged in"],"ar":[],"kl":[]},"obj":"Users can log in"}
{"id":"T1","tp":"auto","a":"Set the cookie","f":["src/a.ts"],"v":"npm test","done":"It is set"}
"""
BOTH = pytest.mark.parametrize(
    "mode", [Mode.SINGLE, Mode.MULTI], ids=["single-department", "multi-department"]
)


class Company:
    """A team of which each member speaks by message to the one above or below."""

    def __init__(self, repo: Repo, mode: Mode) -> None:
        self.repo = repo
        self.mode = mode
        self.path = path_of(mode)
        self.messages: list[dict[str, Any]] = []
        several = COMPANY if mode is Mode.MULTI else {}
        repo.file(f"{PLANNING}/config.json", json.dumps(several))
        repo.configure(state_files="always")  # each transition is a commit
        repo.file(f"{PHASE}/{'fe-' if several else ''}{PLAN}.plan.jsonl", PLANNED)

    def run(self, *words: str) -> dict[str, Any]:
        """Run a command in this process, which saves the start of another, and return its envelope."""
        out = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
            for key in ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_NOSYSTEM"):
                patch.setenv(key, self.repo.env[key])
            assert run([*words, "--json", "-C", str(self.repo.root)]) == 0, out.getvalue()
        return dict(json.loads(out.getvalue().splitlines()[-1]))

    def moves(self) -> Iterator[Move]:
        """Make each move of the round trip, and yield it."""
        for move in moves_of(self.mode):
            self._say(move)
            yield move

    def _say(self, move: Move) -> None:
        assert read_message(move.message)[1] == ()
        path = str(self.repo.file("message.json", json.dumps(move.message)))
        said = self.run("escalate", *move.words(path))["data"]
        if said["message"]:
            shape, faults = read_message(said["message"])
            assert shape is not None and all(fault.at == "/options" for fault in faults)
            self.messages.append(said["message"])

    def progress(self) -> dict[str, Any]:
        """Return how the escalation stands, as `escalate list` shows it."""
        said = self.run("escalate", "list")
        assert said["findings"] == []
        (one,) = said["data"]["01-auth"]
        return dict(one)

    def carry_on(self) -> str:
        """Let the Dev commit once the daemon has no more to say of it, and return the commit."""
        until(
            lambda: '"round_trips": 1' in self._state(),
            "the execution state says that the Dev was told",
        )
        self.repo.commit_file("src/a.ts", "cookie\n", RESUMES)
        return self.repo.look("rev-parse", "HEAD").strip()

    def _state(self) -> str:
        return self.repo.git("show", f"HEAD:{STATE}", ok=(0, 128), GIT_OPTIONAL_LOCKS="0")

    def entry(self, revision: str = "HEAD") -> dict[str, Any]:
        """Return the entry of the execution state as committed."""
        state = json.loads(self.repo.look("show", f"{revision}:{STATE}"))
        assert not [fault for fault in check(ExecutionState, state)[1] if fault.level == "error"]
        return dict(state["escalations"][0])

    def check_committed(self, count: int) -> None:
        """Assert that the log was committed line by line, that each line is valid, and that history passes."""
        commits = self.repo.look("log", "--reverse", "--format=%H", "--", LOG).split()
        versions = [self.repo.look("show", f"{commit}:{LOG}").splitlines() for commit in commits]
        assert [len(version) for version in versions] == list(range(1, count + 1))
        assert all(later[:-1] == earlier for earlier, later in pairwise(versions))
        assert not any(check(EscalationLine, json.loads(line))[1] for line in versions[-1])
        self.repo.yolo_fs("verify")


@pytest.mark.proves("000:319", "002:178")
@BOTH
def test_round_trip_is_committed_level_by_level(repo: Repo, mode: Mode) -> None:
    company, seen = Company(repo, mode), []
    company.run("run", "--once")
    for move in company.moves():
        company.run("run", "--once")
        one = company.progress()
        assert (one["holder"], one["history"][-1]["agent"]) == (move.holder, move.agent)
        assert company.entry()["status"] == "pending"
        seen.append(company.entry()["level"])
    assert seen == [
        role.removeprefix("fe-")
        for role in (*company.path[1:], *company.path[-2:0:-1], company.path[1])
    ]
    commit = company.carry_on()
    (fired,) = company.run("escalate", "tick")["data"]
    assert commit.startswith(fired["line"]["ref"])
    company.run("run", "--once")
    one, entry = company.progress(), company.entry()
    assert (one["standing"], entry["status"], entry["resolution"]) == (
        "resolved",
        "resolved",
        DECISION,
    )
    assert entry["round_trips"] == 1 and entry["resolved_at"] == fired["line"]["dt"]
    company.check_committed(2 * len(company.path) - 1)
    said = repo.look("log", "--reverse", "--format=%s", "--", STATE).splitlines()
    told = [one for one in said if "escalation" in one]
    assert told == [f"chore(state): escalation {what} phase 1" for what in ("received", "resolved")]
    wanted = {"dev_blocker", "escalation", "escalation_resolution", "code_review_changes"}
    assert {message["type"] for message in company.messages} == wanted


@BOTH
def test_running_daemon_commits_each_move_and_survives_a_kill(
    repo: Repo, start: Callable[..., Daemon], mode: Mode
) -> None:
    company, history = Company(repo, mode), History(repo)
    daemon, half = start(repo), len(company.path) - 1
    for count, move in enumerate(company.moves(), 1):
        until(lambda count=count: _lines_at(repo) == count, f"line {count} is committed")  # type: ignore[misc]
        assert company.progress()["holder"] == move.holder
        if count == half:
            daemon.kill()
            daemon.start()
    company.carry_on()
    company.run("escalate", "tick")
    until(lambda: _status(repo) == "resolved", "the execution state says so")
    assert daemon.stop() == 0
    company.check_committed(2 * len(company.path) - 1)
    assert len(history.commits()) > 2 * len(company.path)


def test_silence_hands_it_up_to_the_user_and_is_committed(
    repo: Repo, start: Callable[..., Daemon]
) -> None:
    company = Company(repo, Mode.SINGLE)
    repo.file(f"{PLANNING}/config.json", json.dumps({"escalation": {"timeout_seconds": 1}}))
    next(company.moves())
    start(repo)

    def is_with_the_user() -> bool:
        company.run("escalate", "tick")
        return company.progress()["holder"] == "user" and _lines_at(repo) == 4

    until(is_with_the_user, "every level was silent")
    moves = [
        line["mv"] for line in map(json.loads, repo.look("show", f"HEAD:{LOG}").splitlines()[1:])
    ]
    assert moves == ["timeout"] * 3 and company.progress()["decision"] == ""


def test_daemon_warns_hands_up_and_closes_by_itself(
    repo: Repo, start: Callable[..., Daemon]
) -> None:
    company = Company(repo, Mode.SINGLE)
    repo.file(f"{PLANNING}/config.json", json.dumps({"escalation": {"timeout_seconds": 1}}))
    daemon = start(repo)
    next(company.moves())
    until(lambda: _lines_at(repo) == 4, "every level was silent")

    def warned() -> list[str]:
        told = (one for one in daemon.mailbox.events if one["event"] == "escalation.timeout")
        return [one["data"]["warning"]["current_level"] for one in told]

    # The commit of a line is seen before the event that follows it.
    until(lambda: len(warned()) >= 3, "each level was warned of")
    assert warned() == ["senior", "lead", "architect"]
    for agent in ("user", "architect", "lead", "senior"):
        company.run("escalate", "resolve", NAME, "--by", agent, "--decision", DECISION)
    company.carry_on()
    until(lambda: _status(repo) == "resolved", "the task continues")


def _lines_at(repo: Repo) -> int:
    listed = repo.git("show", f"HEAD:{LOG}", ok=(0, 128), GIT_OPTIONAL_LOCKS="0")
    return len(listed.splitlines())


def _status(repo: Repo) -> str:
    state = json.loads(repo.look("show", f"HEAD:{STATE}"))
    return str(state["escalations"][0]["status"])
