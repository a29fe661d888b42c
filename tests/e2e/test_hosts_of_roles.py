"""One run with several hosts: each agent is started, heard, billed and waited for by its own."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.repo import Repo
from tests.e2e.test_go import DEADLINE_S, SCRIPTED, Company, numbers, played_by, wait_for
from yolo_fs.system.system import is_running

CODEX_BILL = {"type": "turn.completed", "usage": {"input_tokens": 7}}
CLAUDE_BILL = {"type": "result", "usage": {"input_tokens": 90}, "total_cost_usd": 1.5}


@pytest.fixture
def company(repo: Repo) -> Iterator[Company]:
    yield Company(repo)
    repo.yolo_fs("stop", ok=(0, 3))


def program_of(company: Company, host: str, script: str) -> Path:
    """Make a script of Python the program of a host, in the user's own configuration of git."""
    path = company.repo.file(f"../{host}.py", script)
    company.repo.git("config", "--global", f"yolo-fs.host.{host}", played_by(path))
    return path


def printing(*lines: dict[str, Any], then: str = "main()") -> str:
    """Return a script that prints lines of a host's stream, and then acts."""
    printed = f"print({chr(10).join(map(json.dumps, lines))!r}, flush=True)"
    return f"import json, pathlib, time\nfrom yolo_fs.demo.agent import main\n{printed}\n{then}\n"


def acts_of(company: Company) -> list[dict[str, Any]]:
    runs = json.loads(company.repo.yolo_fs("company", "runs", "--json").stdout)["data"]
    return [act for run in runs for act in run["acts"]]


def test_a_run_whose_dev_another_host_plays_ships_with_one_bill(company: Company) -> None:
    company.configure()
    program_of(company, "codex", printing(CODEX_BILL))
    words = ("--host", "dev=codex", "--host", "tester=codex")
    played = company.go("a", "login", *words)
    assert played.code == 0, played
    hosts = {act["agent"]: act["host"] for act in acts_of(company)}
    assert {agent for agent, host in hosts.items() if host == "codex"} == {"dev", "tester"}
    assert {*hosts.values()} == {"command", "codex"}
    in_codex = [act for act in acts_of(company) if act["host"] == "codex"]
    assert played.data["tokens"] == 7 * len(in_codex)
    assert not played.named("agent.failed"), played
    assert "feat(01-01): T1 as specified" in company.subjects()
    company.repo.yolo_fs("report", "--phase", "1", "-o", "../report.md")
    assert "(command, codex)" in (company.repo.root / "../report.md").read_text()
    shown = company.repo.yolo_fs("company", "runs").stdout.decode()
    assert any("dev " in line and " codex " in line for line in shown.splitlines())
    assert company.repo.yolo_fs("verify").returncode == 0


def test_the_command_that_goes_on_names_each_host_again(company: Company) -> None:
    company.configure(company={"team": "solo"})
    program_of(company, "codex", printing())
    words = ["--host", "claude", "--host", "command", "--host", "yolo-dev=codex"]
    played = company.go("a", "login", *words, "--approve", "plan")
    assert played.code == 75, played
    program = ["--with", SCRIPTED]
    assert shlex.split(played.data["again"])[4:-2] == [*words, *program]
    (item,) = played.data["waiting"]
    done = company.repo.yolo_fs(*shlex.split(item["command"])[1:], more=company.env)
    assert b"shipped" in done.stdout
    assert {act["agent"] for act in acts_of(company) if act["host"] == "codex"} == {"dev"}


@pytest.mark.parametrize("verb", ["go", "debug", "fix-it", "research", "qa"])
@pytest.mark.parametrize(
    ("word", "hint"),
    [("devv=codex", "Did you mean dev?"), ("dev=codx", "Did you mean codex?")],
)
def test_a_host_of_nobody_is_refused_before_anything_is_begun(
    company: Company, verb: str, word: str, hint: str
) -> None:
    company.configure()
    done = company.repo.yolo_fs(verb, "a login", "--json", "--host", word, ok=(2,))
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["reason"] == "unknown_name"
    assert f"--host {word}" in finding["message"] and hint in finding["hint"]
    assert not [*(company.repo.root / ".yolo-planning/phases").glob("*")]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("go", "a login", "--host", "dev=codex"), 78),
        (("go", "a login", "--host", "fe-dev=codex"), 75),
        (("fix-it", "a login", "--host", "dev=codex"), 78),
        (("research", "a login", "--host", "scout=codex"), 78),
        (("research", "a login", "--host", "tester=codex"), 75),
    ],
)
def test_a_host_is_looked_for_where_somebody_of_the_run_may_need_it(
    company: Company, words: tuple[str, ...], code: int
) -> None:
    company.configure()
    env = {"PATH": f"{os.path.dirname(sys.executable)}:/usr/bin:/bin"}
    limits = ("--max-tokens", "0", "--with", SCRIPTED)
    done = company.repo.yolo_fs(*words, *limits, ok=(code,), more=env)
    assert (b"npm install -g @openai/codex" in done.stderr) is (code == 78)
    assert acts_of(company) == []


def test_a_dry_run_says_by_which_host_each_act_is_done(company: Company) -> None:
    company.configure()
    words = ("go", "a login", "--dry-run", "--host", "claude", "--host", "analyze=codex")
    shown = company.repo.yolo_fs(*words).stdout.decode()
    assert "analyze by codex:\n$ codex exec" in shown
    data = json.loads(company.repo.yolo_fs(*words, "--json").stdout)["data"]
    assert (data["host"], [act["host"] for act in data["acts"]]) == ("claude", ["codex"])


def test_the_users_own_git_says_who_plays_a_role_and_the_repository_does_not(
    company: Company,
) -> None:
    company.configure(host={"of": {"analyze": "codex"}})
    words = ("go", "a login", "--dry-run", "--json")
    for scope, host in (("--local", "claude"), ("--global", "codex")):
        company.repo.git("config", scope, "yolo-fs.host.of.analyze", "codex")
        (act,) = json.loads(company.repo.yolo_fs(*words).stdout)["data"]["acts"]
        assert act["host"] == host
    shown = company.repo.yolo_fs("config", "show", "--origin").stdout.decode()
    assert 'yolo-fs.host.of.analyze = "codex"  [git config, global]  (ignored: "codex"' in shown


@pytest.mark.parametrize(
    ("typed", "offered"), [("co", "command codex"), ("dev=cl", "dev=claude"), ("dev=x", "")]
)
def test_a_shell_completes_the_hosts(company: Company, typed: str, offered: str) -> None:
    more = {"_YOLO_FS_COMPLETE": "zsh_complete", "COMP_WORDS": f"yolo-fs go --host {typed}",
            "COMP_CWORD": "3"}  # fmt: skip
    program = Path(sys.executable).with_name("yolo-fs")
    env = {**company.env, **more}
    shown = subprocess.run([program], env=env, capture_output=True, text=True).stdout
    assert shown.splitlines()[1::3] == offered.split()


HELD = """
held = pathlib.Path(__file__).with_name("held")
while held.exists():
    time.sleep(0.02)
main()
"""


def test_what_a_killed_runner_left_in_two_hosts_is_read_as_each_of_them_prints(
    company: Company,
) -> None:
    company.configure("backend,frontend")
    held = company.repo.file("../held", "")
    program_of(company, "codex", printing(CODEX_BILL, then=HELD))
    program_of(company, "claude", printing(CLAUDE_BILL, then=HELD))
    words = ("--host", "architect=claude", "--host", "fe-architect=codex", "--approve", "plan")
    runner = company.begin("a", "login", *words)
    folder = company.repo.git_dir / "yolo-fs/company"
    agents = ("architect", "fe-architect")
    folders = [f"00?-{agent}" for agent in agents]
    wait_for(lambda: all(numbers(folder, name) for name in folders), "both are at work")
    streams = [next(folder.glob(f"*-{name}")) / "stream.log" for name in folders]
    wait_for(lambda: all(each.stat().st_size for each in streams), "both have printed their bill")
    runner.kill()
    runner.communicate(timeout=DEADLINE_S)
    (ended,), (goes_on,) = (numbers(folder, name) for name in folders)
    os.kill(ended, signal.SIGKILL)
    wait_for(lambda: not is_running(ended), "one has ended meanwhile")
    second = company.begin("--approve", "plan")
    found = None
    for event in map(json.loads, second.stdout or ()):
        if event.get("event") == "agent.found":
            found = event
            held.unlink()
    second.communicate(timeout=DEADLINE_S)
    assert found and (found["agent"], found["pid"], found["host"]) == (
        "fe-architect", goes_on, "codex",
    )  # fmt: skip
    assert second.returncode == 75
    bills = [(act["agent"], act["host"], act["tokens"], act["cost_usd"])
             for act in acts_of(company) if act["agent"] in agents]  # fmt: skip
    assert sorted(bills) == [
        ("architect", "claude", 90, 1.5), ("architect", "command", 0, 0),
        ("fe-architect", "codex", 7, 0),
    ]  # fmt: skip


REFUSES = """
import json, pathlib, time
if pathlib.Path(__file__).with_name("key").exists():
    from yolo_fs.demo.agent import main
    main()
else:
    print(json.dumps({"type": "error", "message": "401 Unauthorized: withdrawn"}), flush=True)
    print(json.dumps({"type": "error", "message": "401 Unauthorized: withdrawn"}), flush=True)
    time.sleep(3600)
"""


def test_while_one_host_lets_nobody_in_the_other_goes_on_as_far_as_it_can(
    company: Company,
) -> None:
    company.configure("backend,frontend")
    script = program_of(company, "codex", REFUSES)
    words = ("--host", "fe-architect=codex", "--approve", "ship")
    played = company.go("a", "login", *words)
    assert played.code == 75, played
    (item,) = played.data["waiting"]
    assert "codex refuses the login: 401 Unauthorized: withdrawn. Fix" in item["question"]
    started = [(event["agent"], event["host"]) for event in played.named("agent.started")]
    assert started.count(("fe-architect", "codex")) == 1, "each start would be refused"
    refused = played.events.index(played.named("agent.failed")[0])
    after = [event["agent"] for event in played.events[refused:] if event["event"] == "agent.done"]
    assert {"lead", "dev"} <= {*after}, "whom the other host plays has gone on"
    script.with_name("key").touch()
    assert company.go(*words).code == 75
    assert [item["kind"] for item in company.go(*words).data["waiting"]] == ["approval"]


def test_while_one_host_is_limited_the_other_goes_on(company: Company) -> None:
    company.configure("backend,frontend")
    limit = {"type": "turn.failed", "error": {"message": "429 Too Many Requests"}}
    program_of(company, "codex", printing(limit))
    runner = company.begin("a", "login", "--host", "fe-architect=codex", "--host", "fe-lead=codex")
    limited, started = None, list[str]()
    for event in map(json.loads, runner.stdout or ()):
        if event.get("event") == "host.limited":
            limited = event
        elif limited and event.get("event") == "agent.started":
            started.append(event["agent"])
            if event["agent"] == "dev":
                runner.send_signal(signal.SIGINT)
    runner.communicate(timeout=DEADLINE_S)
    assert runner.returncode == 130
    assert limited and (limited["host"], limited["wait_s"]) == ("codex", 30.0)
    assert {"senior", "dev"} <= {*started} and "fe-lead" not in started, started
