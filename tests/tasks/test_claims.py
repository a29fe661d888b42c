"""Claims in a real repository: one order for all, whoever asks at the same time."""

from __future__ import annotations

import json
import multiprocessing
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.cli.main import run
from yolo_fs.core.ids import PlanId, TaskRef
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.system.store import write_json
from yolo_fs.tasks.claims import ClaimStatus
from yolo_fs.tasks.service import Claims, planned
from yolo_fs.workspace.own_files import CLAIMS
from yolo_fs.workspace.settings import load

from tests.support.teams import Team  # isort: skip

T1, T2, T3 = (TaskRef(PlanId("01", "02"), number) for number in (1, 2, 3))
DEVS = 8


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    return Team(tmp_path / "work tree")


def claim(
    root: str, agent: str, task: TaskRef, *files: str, done: tuple[str, ...] = ()
) -> ClaimStatus:
    with Repository(root) as repository:
        return Claims(repository, done).claim(agent, task, files, 1_000_000.0)


def claim_message(team: Team, task: str, plan: str) -> str:
    """Write the message by which a Dev claims a task and a file; return its path."""
    said = {
        "type": "task_claim", "task_id": task, "plan_id": plan, "files": ["src/a.ts"],
        "claimed_at": "2026-02-17T10:30:00Z",
    }  # fmt: skip
    return str(team.file("claim.json", json.dumps(said)))


@pytest.mark.proves("000:394a")
def test_the_second_dev_is_refused_in_order_and_gets_its_turn(team: Team) -> None:
    root = str(team.root)
    assert claim(root, "dev-1", T1, "src/a.ts").is_granted
    refused = claim(root, "dev-2", T2, "src/a.ts")
    assert refused.behind is not None
    assert (refused.behind.agent, refused.file) == ("dev-1", "src/a.ts")
    assert not claim(root, "dev-2", T2, "src/a.ts").is_granted
    assert claim(root, "dev-2", T2, "src/a.ts", done=("01-02/T1",)).is_granted


def test_asking_again_keeps_the_place_in_the_queue(team: Team) -> None:
    root = str(team.root)
    for agent, task in (("dev-1", T1), ("dev-2", T2), ("dev-3", T3), ("dev-2", T2)):
        claim(root, agent, task, "src/a.ts")
    with Repository(root) as repository:
        found = Claims(repository).release("dev-1")
    assert [(one.claim.agent, one.is_granted) for one in found] == [
        ("dev-2", True),
        ("dev-3", False),
    ]


def test_one_task_of_several_is_given_back(team: Team) -> None:
    root = str(team.root)
    claim(root, "dev-1", T1, "a")
    claim(root, "dev-1", T2, "b")
    with Repository(root) as repository:
        assert [one.claim.task for one in Claims(repository).release("dev-1", T1)] == [T2]


def test_a_task_that_is_done_cannot_be_claimed(team: Team) -> None:
    with pytest.raises(YoloError) as raised:
        claim(str(team.root), "dev-1", T1, done=("01-02/T1",))
    assert raised.value.reason is Reason.STATE_CONFLICT


@pytest.mark.parametrize(
    "content",
    [
        {"claims": 1},
        {"claims": ["x", {"task": "T1"}, {"task": "01-02/T1", "agent": "dev-9"}]},
    ],
)
def test_claims_that_cannot_be_read_are_not_taken_for_none(team: Team, content: Any) -> None:
    with Repository(str(team.root)) as repository:
        claims = Claims(repository)
        write_json(CLAIMS.former.path(repository), content)
        for ask in (claims.claim_statuses, lambda: claims.claim("dev-1", T2, ("a",), 0.0)):
            with pytest.raises(YoloError) as refused:
                ask()
            assert refused.value.reason is Reason.WRONG_TYPE
        CLAIMS.former.put_aside(repository)
        assert claims.claim("dev-1", T2, ("a",), 0.0).is_granted


def _claim_at_once(
    root: str,
    number: int,
    start: multiprocessing.synchronize.Barrier,
    told: multiprocessing.Queue[bool],
) -> None:
    task = TaskRef.parse(f"01-02/T{number}")
    assert task is not None
    start.wait(30)
    told.put(claim(root, f"dev-{number}", task, "src/a.ts").is_granted)


def test_of_many_devs_at_once_exactly_one_has_the_file(team: Team) -> None:
    fork = multiprocessing.get_context("spawn")
    start, told = fork.Barrier(DEVS), fork.Queue()
    devs = [
        fork.Process(target=_claim_at_once, args=(str(team.root), n, start, told))
        for n in range(1, DEVS + 1)
    ]
    for dev in devs:
        dev.start()
    answers = [told.get(timeout=60) for _ in devs]
    for dev in devs:
        dev.join(30)
    assert sum(answers) == 1
    with Repository(str(team.root)) as repository:
        found = Claims(repository).claim_statuses()
    assert [one.is_granted for one in found] == [True] + [False] * (DEVS - 1)


def test_the_files_of_a_task_are_those_of_its_plan(team: Team) -> None:
    team.begin()
    team.plan()
    with Repository(str(team.root)) as repository:
        facts = FactsReader(repository, load(repository.root)).facts(team.head())
        (task,) = planned(facts, T2)
        assert (task.files, task.commit) == (("src/auth/refresh.ts",), "")
        with pytest.raises(YoloError) as raised:
            planned(facts, T1._replace(number=99))
    assert raised.value.reason is Reason.UNKNOWN_NAME


@pytest.mark.proves("000:394a")
def test_the_message_of_a_dev_claims_its_files_and_makes_it_a_teammate(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    def typed(*words: str) -> tuple[int, Any]:
        capsys.readouterr()
        code = run([*words, "--json", "-C", str(team.root)])
        return code, json.loads(capsys.readouterr().out)["data"]

    team.config({"team_mode": "teammate"})
    team.user_commits("chore(repo): begin", ".")
    message = claim_message(team, "T1", "01-02")
    assert typed("agent", "note", message, "--as", "dev-1")[0] == 0
    code, refused = typed("task", "claim", "01-02/T2", "--as", "dev-2", "--file", "src/a.ts")
    assert code == 1 and "dev-1" in json.dumps(refused)
    _, asked = typed("agent", "shutdown", "--reason", "phase_complete")
    assert {"dev-1", "dev-2"} <= set(re.findall(r"dev-\d", json.dumps(asked)))


@pytest.mark.proves("000:394b")
def test_a_claim_in_task_mode_is_refused_wherever_it_is_heard(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.config({"team_mode": "task"})
    team.user_commits("chore(repo): begin", ".")
    message = claim_message(team, "T1", "01-02")
    for words in (
        ("message", "route", "--from", "dev", "--to", "lead", "--type", "task_claim"),
        ("message", "check", message),
        ("agent", "note", message, "--as", "dev-1"),
        ("agent", "shutdown", "--reason", "phase_complete"),
    ):
        capsys.readouterr()
        assert run([*words, "-C", str(team.root)]) == 1, words
        told_of = capsys.readouterr()
        assert "team_mode=teammate only" in told_of.out + told_of.err, words
    assert run(["task", "claims", "--json", "-C", str(team.root)]) == 0
    assert json.loads(capsys.readouterr().out)["data"] == []


def test_a_message_claims_no_task_that_no_plan_has(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.begin()
    team.plan_one()
    message = claim_message(team, "T9", "01-01")
    for words in (
        ("agent", "note", message, "--as", "dev-1"),
        ("task", "claim", "01-01/T9", "--as", "dev-1", "--file", "src/a.ts"),
    ):
        capsys.readouterr()
        assert run([*words, "--json", "-C", str(team.root)]) == 2
        (finding,) = json.loads(capsys.readouterr().out)["findings"]
        assert "no committed plan has task 01-01/T9" in finding["message"]
    with Repository(team.root) as repository:
        assert Claims(repository).claim_statuses() == ()


def test_a_claim_of_somebody_else_is_not_given_back(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    root = str(team.root)
    claim(root, "dev-1", T1, "a")
    claim(root, "fe-dev-1", T2, "b")
    for agent, task, code in (("dev-2", T1, 1), ("dev-2", T2, 0), ("dev-2", T3, 0)):
        words = ["task", "release", str(task), "--as", agent, "--json", "-C", root]
        assert run(words) == code
    assert "dev-1 has 01-02/T1" in capsys.readouterr().out
    with Repository(root) as repository:
        assert len(Claims(repository).claim_statuses()) == 2
    assert run(["task", "release", str(T1), "--as", "dev-1", "-C", root]) == 0


def test_a_claim_of_an_agent_that_stopped_says_so_and_how_it_is_given_back(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    def typed(*words: str) -> list[dict[str, Any]]:
        capsys.readouterr()
        run([*words, "--json", "-C", str(team.root)])
        return list(json.loads(capsys.readouterr().out)["findings"])

    def host(event: str, agent: str) -> None:
        said = {"hook_event_name": "x", "session_id": "s", "cwd": str(team.root)}
        said |= {"agent_id": agent, "agent_type": "yolo-dev"}
        command = [sys.executable, "-m", "yolo_fs", "hook", event, "--host", "claude"]
        told = json.dumps(said).encode()
        subprocess.run(command, cwd=team.root, input=told, check=True, capture_output=True)

    team.config({})
    team.user_commits("chore(repo): begin", ".")
    for agent in ("dev-1", "dev-2"):
        host("subagent-start", agent)
    claim(str(team.root), "dev-1", T1, "src/a.ts")
    assert typed("task", "claims") == []
    host("subagent-stop", "dev-1")

    for asked in (("claim", "01-02/T2", "--as", "dev-2", "--file", "src/a.ts"), ("claims",)):
        (finding,) = typed("task", *asked)
        assert re.search("dev-1 claimed 01-02/T1 at .* and stopped at ", finding["message"])
        assert finding["hint"] == "'yolo-fs task release 01-02/T1 --as dev-1' releases the task."
    assert finding in typed("doctor")
    assert finding in typed("status")
    run(["task", "release", "01-02/T1", "--as", "dev-1", "-C", str(team.root)])
    assert typed("task", "claims") == []
