"""What a runner that was killed left is ended, and nobody else."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.phases import complete, facts
from tests.support.teams import Team
from yolo_fs.company import agents, workers
from yolo_fs.company.branch import Branch
from yolo_fs.company.brief import variables_of
from yolo_fs.company.runs import RunAct
from yolo_fs.company.workers import Worker, Workers
from yolo_fs.core.ids import PhaseId
from yolo_fs.git.repository import Repository
from yolo_fs.phase.acts import Act, acts_of
from yolo_fs.phase.phase import Phase
from yolo_fs.system.system import boot_id, start_time, wait_for_end
from yolo_fs.workspace.settings import load


@pytest.fixture(autouse=True)
def own_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def named(folder: Path, pid: int, start: int | None, boot: str) -> agents.Process | None:
    """Let a folder of ours name a process, as a runner before us did."""
    (folder / "pid").write_bytes(agents.note_of(str(folder), agents.Process(pid, start, boot)))
    return agents.found_in(str(folder))


def test_the_group_of_an_agent_is_ended(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    found = named(tmp_path, sleeper.pid, start_time(sleeper.pid), boot_id())
    assert found is not None and found.is_alive
    agents.end_group(found)
    assert sleeper.wait(10) < 0


@pytest.mark.parametrize("stranger", ["its number was given again", "another boot"])
def test_the_group_of_a_stranger_is_left_alone(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], stranger: str
) -> None:
    start, boot = start_time(sleeper.pid), boot_id()
    assert start is not None
    is_reused = stranger.startswith("its number")
    found = named(tmp_path, sleeper.pid, start - is_reused, boot if is_reused else "earlier")
    assert found is not None and not found.is_alive
    agents.end_group(found)
    agents.ask_to_stop(found, str(tmp_path), 1, "timeout")
    time.sleep(0.1)  # a signal would have arrived
    assert sleeper.poll() is None


def test_an_agent_that_removed_its_folder_is_asked_to_stop_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    child, process = agents.start(["sleep", "3600"], str(tmp_path), str(folder), "", os.environ)
    shutil.rmtree(folder)
    agents.ask_to_stop(process, str(folder), 1, "timeout")
    assert child.wait(10) == -signal.SIGTERM
    assert not folder.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_who_may_not_signal_an_agent_asks_it_by_the_file_alone(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    """As where the program of an agent is sudo, which runs as root."""
    process = agents.Process(sleeper.pid, start_time(sleeper.pid), boot_id())
    child = os.fork()
    if child == 0:
        try:
            os.setuid(65534)
            agents.ask_to_stop(process, str(tmp_path), 1, "timeout")
            agents.end_group(process)
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sleeper.poll() is None


@pytest.mark.parametrize("pid", [0, 1, -1, -2])
def test_a_number_that_names_a_group_of_others_names_no_agent(tmp_path: Path, pid: int) -> None:
    assert named(tmp_path, pid, None, boot_id()) is None


@pytest.mark.parametrize("proof", [None, "", "0" * 64, "of another folder", 1, []])
def test_whom_a_folder_names_without_our_proof_is_nobodys_agent(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], proof: object
) -> None:
    """Boot and start of a process are no secret: a folder that came along may name any."""
    process = agents.Process(sleeper.pid, start_time(sleeper.pid), boot_id())
    said = json.loads(agents.note_of(str(tmp_path), process))
    other = json.loads(agents.note_of(str(tmp_path / "other"), process))["proof"]
    said["proof"] = other if proof == "of another folder" else proof
    (tmp_path / "pid").write_text(json.dumps(said))
    assert agents.found_in(str(tmp_path)) is None


def test_where_no_key_can_be_kept_nobody_is_proved(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert named(tmp_path, sleeper.pid, start_time(sleeper.pid), boot_id()) is None


@pytest.mark.timeout(20)
@pytest.mark.parametrize("put", [os.mkfifo, os.mkdir, lambda path: os.symlink("secret", path)])
def test_what_stands_in_the_place_of_a_stream_is_neither_followed_nor_waited_for(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    (tmp_path / "secret").write_text("of the user")
    put(tmp_path / agents.STREAM)
    with pytest.raises(OSError):
        agents.printed(str(tmp_path), agents.STREAM)


def act_of_a_dev(files: list[str]) -> tuple[Phase, Act]:
    """Return the act of a Dev whose review asks for changes of a task with these files."""
    asks = {"plan": "01-01", "r": "changes_requested", "cycle": 1, "dt": "2026-02-19"}
    major = {"f": "src/auth.ts", "ln": 1, "sev": "major", "issue": "x", "sug": "y"}
    plan = complete()["01-01.plan.jsonl"]
    changed = {"01-01.plan.jsonl": [plan[0], plan[1] | {"f": files}]}
    phase = Phase(facts(complete() | {"code-review.jsonl": [asks, major]} | changed))
    return phase, next(act for act in acts_of(phase) if act.role == "dev")


def test_a_path_that_leaves_the_repository_is_in_no_act() -> None:
    odd = ["../x", "a/../../x", "/etc/x", "a\0b", "a\nb", "a\\b"]
    assert act_of_a_dev(["src/auth.ts", *odd])[1].writes == ("src/auth.ts",)


def test_an_agent_with_more_files_than_a_variable_has_room_for_is_started(tmp_path: Path) -> None:
    files = [f"src/{'é' * 30}/{number:04}.py" for number in range(4000)]
    phase, act = act_of_a_dev(files)
    given = variables_of(phase, act, "R1", "brief.md", 1)
    process, _ = agents.start(["true"], str(tmp_path), str(tmp_path / "own"), "", given)
    assert process.wait(10) == 0
    named = given["YOLO_FS_WRITES"].split("\n")
    assert named == files[: len(named)] and len(named) > 500


@pytest.mark.parametrize("stream", [1, 2])
def test_an_agent_that_prints_too_much_is_ended_whichever_stream_it_fills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: int
) -> None:
    monkeypatch.setattr(workers, "_MOST_PRINTED_BYTES", 1000)
    words = ["sh", "-c", f"head -c 2000 /dev/zero >&{stream}; exec sleep 3600"]
    _, act = act_of_a_dev(["src/auth.ts"])
    team, folder = Team(tmp_path / "shop"), str(tmp_path / "own")
    with Repository(str(team.root)) as repository:
        branch = Branch(repository, load(repository.root), PhaseId("01", "auth"))
        at_work = Workers(branch, lambda _name, _data: None)
        child, process = agents.start(words, str(team.root), folder, "", os.environ)
        record = RunAct(1, "dev", "backend", "x", "", 1, time.time(), host="command")
        worker = Worker(act, record, folder, process, child)
        at_work.add(worker)
        while not at_work.has_just_ended(worker):
            at_work.wait(0.05)
    assert (worker.why, child.returncode) == ("it printed too much", -signal.SIGKILL)


def test_who_waits_for_agents_is_woken_by_the_first_that_ends(
    sleeper: subprocess.Popen[bytes],
) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    wait_for_end([sleeper.pid, ended.pid], 3600)
    assert ended.wait() == 0
    wait_for_end([2**22 + 1, os.getpid()], 0)  # nobody has that number


def test_the_wait_for_a_limited_host_grows_until_it_serves_again(tmp_path: Path) -> None:
    """Each agent is a real process that prints what Claude Code prints."""
    limited = {"type": "system", "subtype": "api_retry", "error_status": 429}
    served = {"type": "result", "usage": {"input_tokens": 5}, "total_cost_usd": 0.1, "result": "x"}
    _, act = act_of_a_dev(["src/auth.ts"])
    waits: list[tuple[str, float]] = []
    team = Team(tmp_path / "shop")
    with Repository(str(team.root)) as repository:
        branch = Branch(repository, load(repository.root), PhaseId("01", "auth"))
        workers = Workers(branch, lambda _, event: waits.append((event["host"], event["wait_s"])))
        for number, (host, line) in enumerate(
            (
                ("claude", limited),
                ("claude", limited),
                ("command", limited),
                ("command", served),
                ("claude", limited),
                ("claude", served),
                ("claude", limited),
            )
        ):
            folder = str(tmp_path / str(number))
            child, process = agents.start(
                ["echo", json.dumps(line)], str(team.root), folder, "", os.environ
            )
            record = RunAct(
                number, "dev", "backend", "implementation", "", 1, time.time(), host=host
            )
            worker = Worker(act, record, folder, process, child)
            workers.add(worker)
            child.wait()
            assert workers.has_just_ended(worker)
            workers.remove(worker)
    assert waits == [
        ("claude", 30.0), ("claude", 60.0), ("command", 30.0), ("claude", 120.0), ("claude", 30.0),
    ]  # fmt: skip
