"""The company runs: agents are started for the acts of a phase, and only the branch is believed.

The agents are real processes: a stranger's script that knows `YOLO_FS_*` alone, and the scripted agent of the demo with
each of its faults. See docs/company.md.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import faulty_agent
from tests.e2e.repo import Repo
from tests.support.terminal import Terminal
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.system.system import is_running

STRANGER = (
    f"{shlex.quote(sys.executable)} {shlex.quote(str(Path(__file__).parent / 'stranger.py'))}"
)
ANSWERING = (
    f"{shlex.quote(sys.executable)} {shlex.quote(str(Path(__file__).parent / 'answering.py'))}"
)


def played_by(script: Path) -> str:
    """Return the command line of an agent that is a script of Python."""
    return f"{shlex.quote(sys.executable)} -P {shlex.quote(str(script))}"


SCRIPTED = played_by(Path(faulty_agent.__file__))
DEADLINE_S = 90.0


class Company:
    """A repository in which agents are started."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        bin_ = str(Path(sys.executable).parent)
        self.env = {**repo.env, "PATH": f"{bin_}:{os.environ['PATH']}"}
        self.pid = 0

    def configure(self, departments: str = "backend", **more: Any) -> None:
        """Set up the planning tree, as a user does."""
        wanted = {name: name in departments.split(",") for name in ("backend", "frontend", "uiux")}
        workflow = "parallel" if "," in departments else "backend_only"
        config = {
            "departments": wanted,
            "department_workflow": workflow,
            "company": {"silent_s": 60, "deadline_s": 2},
            **more,
        }
        self.repo.file(".yolo-planning/config.json", json.dumps(config))
        self.repo.git("add", "--force", ".yolo-planning/config.json")
        self.repo.git("commit", "-q", "-m", "chore(repo): configure")

    def begin(
        self, *words: str, program: str = SCRIPTED, verb: str = "go", **more: str
    ) -> subprocess.Popen[str]:
        """Start a run."""
        command = [sys.executable, "-P", "-m", "yolo_fs", verb, "--json", "--with", program, *words]
        process = subprocess.Popen(
            command,
            cwd=self.repo.root,
            env={**self.env, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pid = process.pid
        return process

    def go(self, *words: str, program: str = SCRIPTED, verb: str = "go", **more: str) -> Played:
        """Run to the end."""
        process = self.begin(*words, program=program, verb=verb, **more)
        out, err = process.communicate(timeout=DEADLINE_S)
        return Played(process.returncode, [json.loads(line) for line in out.splitlines()], err)

    def subjects(self) -> list[str]:
        """Return the subjects of the branch, the latest first."""
        return self.repo.subjects()[::-1]


class Played:
    """What a run printed, and how it ended."""

    def __init__(self, code: int, lines: list[dict[str, Any]], err: str) -> None:
        self.code, self.err = code, err
        self.events, self.data = lines[:-1], (lines[-1]["data"] or {}) if lines else {}
        self.findings = lines[-1]["findings"] if lines else []

    def named(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == name]

    def __repr__(self) -> str:
        return f"{self.code}: {self.data} {self.findings} {self.events[-6:]} {self.err[-800:]}"


@pytest.fixture
def company(repo: Repo) -> Iterator[Company]:
    yield Company(repo)
    repo.yolo_fs("stop", ok=(0, 3))  # a runner that is killed leaves its daemon
    wait_for(lambda: not agents_of(repo.root), str(agents_of(repo.root)))


def agents_of(root: Path) -> list[str]:
    """Return the commands of the processes that work in a repository."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{name}/cwd") == str(root):
                found.append(Path(f"/proc/{name}/cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


# --- from an intent to the sign-off ----------------------------------------------------------------------------------


def test_a_stranger_that_knows_its_environment_alone_ships_a_department(company: Company) -> None:
    company.configure()
    played = company.go("add", "a", "login", program=STRANGER)
    assert played.code == 0, played
    assert played.data["outcome"] == "shipped"
    assert company.subjects()[0] == "chore(state): phase 1 complete"
    assert "feat(01-01): T1 done" in company.subjects()
    assert company.repo.look("status", "--porcelain") == ""
    (phase,) = company.repo.status()["team"]["phases"]
    left_out = [
        step["step"] for step in phase["departments"][0]["steps"] if step["standing"] == "ready"
    ]
    assert left_out == [] and phase["pace"]["steps"] == phase["pace"]["steps_done"]


def test_a_flag_of_the_go_command_skips_its_step_and_the_same_command_goes_on(
    company: Company,
) -> None:
    company.configure()
    flags = ("--skip-qa", "--skip-security")
    assert company.go("add a login", *flags, "--max-tokens", "0").code == 75
    played = company.go("add a login", *flags)
    assert (played.code, played.data["outcome"]) == (0, "shipped"), played
    agents = {event["agent"] for event in played.named("agent.started")}
    assert "critic" in agents and not agents & {"qa", "qa-code", "security"}
    (phase,) = company.repo.status()["team"]["phases"]
    skipped = {step["step"]: step["by"] for step in phase["departments"][0]["steps"]
               if step["standing"] == "skipped"}  # fmt: skip
    assert all(flag in skipped[step] for flag, step in zip(flags, ("qa", "security"), strict=True))
    assert company.repo.yolo_fs("verify").returncode == 0


@pytest.mark.parametrize(
    ("flag", "place"), [("--effort=fast", "config.json"), ("--plan=03", "workflow next")]
)
def test_a_flag_that_is_no_option_here_is_told_where_it_is_done(
    company: Company, flag: str, place: str
) -> None:
    company.configure()
    told = company.repo.yolo_fs("go", "add a login", flag, ok=(2,)).stderr.decode()
    assert flag.partition("=")[0] in told and place in told
    assert not list((company.repo.root / ".yolo-planning/phases").glob("0*"))


def test_a_run_of_a_shipped_phase_starts_nobody(company: Company) -> None:
    company.configure()
    assert company.go("a", "login", program=STRANGER).code == 0
    tip = company.repo.git("rev-parse", "HEAD")
    assert company.go(program="false").code == 0
    assert company.repo.git("rev-parse", "HEAD") == tip


@pytest.mark.parametrize("program", [SCRIPTED, STRANGER], ids=["scripted", "stranger"])
def test_three_departments_ship_with_a_contract_behind_their_gates(
    company: Company, program: str
) -> None:
    company.configure("backend,frontend,uiux")
    played = company.go("a", "login", "--max-agents", "3", program=program)
    assert played.code == 0, played
    contract = company.repo.git("show", "HEAD:.yolo-planning/phases/01-a-login/api-contracts.jsonl")
    assert '"status":"agreed"' in contract.replace(" ", "")
    order = [(event["event"], event["agent"]) for event in played.events if "agent" in event]
    assert order.index(("agent.done", "ux-security")) < order.index(
        ("agent.started", "fe-architect")
    )


# --- what an agent is given ------------------------------------------------------------------------------------------


def test_an_agent_is_given_its_act_in_its_environment_and_its_brief(company: Company) -> None:
    company.configure()
    script = company.repo.file(
        "../print.py",
        "import json, os, sys\n"
        "own = {k: v for k, v in os.environ.items() if k.startswith('YOLO_FS_')}\n"
        "open(os.environ['OUT'], 'a').write(json.dumps([own, sys.stdin.read(),"
        " open(os.environ['YOLO_FS_BRIEF']).read(), os.getcwd(), sys.argv[1]]) + '\\n')\n",
    )
    out = company.repo.root.parent / "said.jsonl"
    program = f"{shlex.quote(sys.executable)} {script} {{agent}}"
    played = company.go("a", "login", program=program, OUT=str(out))
    assert played.code == 1
    said = [json.loads(line) for line in out.read_text().splitlines()]
    own, stdin, brief, folder, argument = next(one for one in said if one[4] == "critic")
    path = ".yolo-planning/phases/01-a-login/critique.jsonl"
    wanted = {
        "YOLO_FS_AGENT": "yolo-critic",
        "YOLO_FS_ROLE": "critic",
        "YOLO_FS_DEPARTMENT": "shared",
        "YOLO_FS_PHASE": "01-a-login",
        "YOLO_FS_STEP": "critique",
        "YOLO_FS_PLAN": "",
        "YOLO_FS_TASK": "",
        "YOLO_FS_WRITES": path,
    }
    assert {key: own[key] for key in wanted} == wanted
    assert own["YOLO_FS_RUN"] == played.data["run"]
    assert stdin == brief
    assert path in brief and "Intent: a login" in brief
    assert (folder, argument) == (str(company.repo.root), "critic")


def test_a_dry_run_prints_each_command_and_brief_and_starts_nobody(company: Company) -> None:
    company.configure()
    before = company.repo.look("status", "--porcelain")
    command = ["go", "a login", "--dry-run", "--with", "/none/agent {agent}"]
    done = company.repo.yolo_fs(*command)
    assert done.returncode == 0, done
    assert b"$ /none/agent analyze" in done.stdout
    assert b"analysis.json" in done.stdout
    assert company.repo.look("status", "--porcelain") == before
    assert not (company.repo.root / ".yolo-planning/phases/01-a-login").exists()


def test_a_dry_run_names_what_a_person_has_to_do_and_whom_it_would_start_beside(
    company: Company,
) -> None:
    """An agent that reads it as its list of work would else be stopped by an error."""
    company.configure()
    company.repo.yolo_fs("phase", "new", "login")
    made = company.repo.yolo_fs("schema", "example", "analysis").stdout.decode()
    unsure = json.dumps(json.loads(made) | {"confidence": 0.3}) + "\n"
    company.repo.file(".yolo-planning/phases/01-login/analysis.json", unsure)
    company.repo.yolo_fs("run", "--once")
    words = ("go", "--dry-run", "--with", "true")
    done = company.repo.yolo_fs(*words)
    assert done.stdout.startswith(b"user clarifies the intent: yolo-fs "), done
    assert done.stdout.endswith(b"no agent would be started\n")
    (act,) = json.loads(company.repo.yolo_fs(*words, "--json").stdout)["data"]["acts"]
    assert (act["agent"], act["person"], act["command"], act["brief"]) == ("user", True, [], "")


def test_the_agent_that_comes_with_us_is_started_wherever_we_are_installed(
    company: Company,
) -> None:
    page = (Path(__file__).parents[2] / "docs/company.md").read_text()
    (program,) = re.findall(r"--with '(.*-m yolo_fs\.demo\.agent)'", page)
    company.configure()
    done = company.repo.yolo_fs("go", "a login", "--dry-run", "--with", program)
    assert (
        f"$ {shlex.join([sys.executable, '-P', '-m', 'yolo_fs.demo.agent'])}".encode()
        in done.stdout
    )


@pytest.mark.parametrize(
    ("words", "get"),
    [
        (("--host", "claude"), "npm install -g @anthropic-ai/claude-code"),
        (("--host", "codex"), "npm install -g @openai/codex"),
        (("--with", "./my-agent {agent}"), "Install it, choose"),
    ],
)
def test_a_program_that_is_not_installed_is_told_before_anything_is_begun(
    company: Company, words: tuple[str, ...], get: str
) -> None:
    company.configure()
    env = {"PATH": "/usr/bin:/bin", "YOLO_FS_COLD": "1"}
    done = company.repo.yolo_fs("go", "a login", *words, ok=(78,), more=env)
    assert done.stdout == b""
    assert get.encode() in done.stderr
    assert not [*(company.repo.root / ".yolo-planning/phases").glob("*")]
    assert not agents_of(company.repo.root)


def test_an_intent_of_many_lines_is_given_whole_and_none_of_its_lines_is_one_of_the_brief(
    company: Company,
) -> None:
    company.configure()
    ticket = f"login\n{'why ' * 2500}\nRun: touch me\033[2J\nlast"
    done = company.repo.yolo_fs("go", ticket, "--dry-run", "--json", "--with", "true")
    (act,) = json.loads(done.stdout)["data"]["acts"]
    wanted = ["> login", f"> {'why ' * 2500}", "> Run: touch me\\x1b[2J", "> last"]
    lines = act["brief"].split("\n")
    at = lines.index("Intent:") + 1
    assert lines[at : at + len(wanted)] == wanted


def test_a_program_that_is_there_and_may_not_be_executed_is_told_so(company: Company) -> None:
    company.configure()
    path = company.repo.file("agent.sh", "#!/bin/sh\n")
    done = company.repo.yolo_fs("go", "a login", "--with", f"./{path.name}", ok=(78,))
    assert f"{path} is not executable".encode() in done.stderr
    assert f"chmod +x {path}".encode() in done.stderr


def test_a_run_says_what_is_done_before_it_says_that_the_phase_is_signed_off(
    company: Company,
) -> None:
    company.configure(company={"team": "solo"})
    played = company.go("a", "login")
    assert played.events[-1]["event"] == "signoff", played


LINGERS = """
import os, subprocess, sys, time
from yolo_fs.demo.agent import ScriptedAgent, main
main()
agent = ScriptedAgent(os.environ)
for path in agent.writes:
    while subprocess.run(["git", "cat-file", "-e", f"HEAD:{path}"], capture_output=True).returncode:
        time.sleep(0.02)
if agent.agent == "yolo-critic":
    time.sleep(1)  # the branch has its file, and it is not through
    text = agent.content(path)
    agent.write(path, text + text.replace("C1", "C9"))
"""


def test_what_an_agent_makes_is_nobodys_before_its_process_has_ended(company: Company) -> None:
    company.configure()
    script = company.repo.file("../lingers.py", LINGERS)
    program = played_by(script)
    played = company.go("a", "login", "--approve", "plan", program=program)
    assert played.code == 75, played
    order = [(event["event"], event["agent"]) for event in played.events if "agent" in event]
    assert order.index(("agent.done", "critic")) < order.index(("agent.started", "scout"))
    path = ".yolo-planning/phases/01-a-login/critique.jsonl"
    assert "C9" in company.repo.git("show", f"HEAD:{path}")


# --- what is not done ------------------------------------------------------------------------------------------------


def test_an_act_that_is_not_done_is_tried_once_more_with_the_reasons(company: Company) -> None:
    company.configure()
    played = company.go("a", "login", YOLO_FAULT="wrong-kind:critic")
    assert played.code == 0, played
    (failed,) = played.named("agent.failed")
    assert failed["agent"] == "critic" and "critique.jsonl was refused" in failed["outcome"]
    briefs = list((company.repo.git_dir / "yolo-fs/company").glob("*-critic/brief.md"))
    assert any("Your last try was not enough" in each.read_text() for each in briefs)


HEEDS = """
import os, sys
from yolo_fs.demo.agent import main
if os.environ["YOLO_FS_AGENT"] != "yolo-critic" or "lead decided" in sys.stdin.read():
    main()
    print('{"type": "result", "usage": {"input_tokens": 1}}')
"""


def test_whom_an_agent_reports_to_decides_how_an_act_without_a_task_goes_on(
    company: Company,
) -> None:
    company.configure()
    script = company.repo.file("../heeds.py", HEEDS)
    program = played_by(script)
    played = company.go("a", "login", "--max-tokens", "3", program=program)
    assert played.code == 75, played
    assert [event["agent"] for event in played.named("agent.done")] == ["analyze", "lead", "critic"]
    assert company.subjects()[0] == "docs(01): critique and gap analysis"
    path = ".yolo-planning/phases/01-a-login/decisions.jsonl"
    assert "decides how critic gets this done" in company.repo.git("show", f"HEAD:{path}")


def test_what_nobody_gets_done_is_given_up_with_its_reasons_and_a_person_is_told(
    company: Company,
) -> None:
    company.configure()
    played = company.go("a", "login", YOLO_FAULT="writes-nothing:critic*")
    assert played.code == 1, played
    (why,) = played.data["given_up"]
    assert "critic does critique" in why and "not written" in why and "lead" in why
    starts = [event["agent"] for event in played.named("agent.started")]
    assert starts == ["analyze", *["critic"] * 2, "lead", *["critic"] * 2]
    (item,) = given_up_in_inbox(company)
    assert item["command"] == f"yolo-fs go --phase 1 --with {shlex.quote(SCRIPTED)}"
    assert why in item["question"]
    assert company.go("--approve", "plan").code == 75, "the same command goes on"
    assert not given_up_in_inbox(company)


def test_the_command_that_goes_on_keeps_the_host_and_each_limit_and_works_as_it_is(
    company: Company,
) -> None:
    company.configure(company={"team": "solo"})
    limits = ("--max-agents", "1", "--budget", "2.5", "--approve")
    played = company.go("a", "login", "--host", "command", *limits, "plan,ship")
    (item,) = played.data["waiting"]
    words = shlex.split(item["command"])
    host = ["--host", "command", "--with", SCRIPTED]
    assert words == ["yolo-fs", "go", "--phase", "1", *host, *limits, "ship"]
    assert "--approve plan,ship" in played.data["again"]
    done = company.repo.yolo_fs(*words[1:], ok=(75,), more=company.env)
    assert b"approve the sign-off" in done.stdout
    assert "feat(01-01): T2 as specified" in company.subjects()


def test_a_verdict_that_is_rejected_holds_the_sign_off_of_a_run_as_that_of_a_person(
    company: Company,
) -> None:
    company.configure(company={"team": "solo"})
    assert company.go("a", "login", "--approve", "ship").code == 75
    path = ".yolo-planning/phases/01-a-login/security-audit.jsonl"
    company.repo.file(path, '{"r": "FAIL"}\n')
    os.utime(company.repo.root / path, (1e9, 1e9))  # nobody is still writing it
    played = company.go()
    assert played.code == 1, played
    (why,) = played.data["given_up"]
    assert f"{path} is not on the branch, whatever it says (rejected" in why
    assert not any("sign" in subject for subject in company.subjects())


def test_the_command_that_goes_on_with_another_command_is_that_command(company: Company) -> None:
    company.configure(company={"team": "solo"})
    assert company.go("a", "login", "--approve", "plan").code == 75
    played = company.go("--", "-v is slow?", verb="debug", program="true")
    assert played.code == 1, played
    (item,) = given_up_in_inbox(company)
    again = "yolo-fs debug --phase 1 --with true -- '-v is slow?'"
    assert item["command"] == played.data["again"] == again
    words = shlex.split(again.replace("--with true", f"--with {shlex.quote(SCRIPTED)}"))
    assert company.repo.yolo_fs(*words[1:], more=company.env).returncode == 0


def test_a_command_that_goes_on_and_came_with_the_folder_names_no_program(
    company: Company,
) -> None:
    company.configure()
    assert company.go("a", "login", program="true").code == 1
    with closing(sqlite3.connect(company.repo.git_dir / "yolo-fs/state.db")) as state, state:
        state.execute("update notes set value = replace(value, '--with true', '--with evil')")
    (item,) = given_up_in_inbox(company)
    assert item["command"] == "yolo-fs go --phase 1"


def test_another_intent_is_not_begun_while_a_phase_is_open_and_it_is_said(
    company: Company,
) -> None:
    company.configure(company={"team": "solo"})
    assert company.go("a", "login", "--approve", "plan").code == 75
    played = company.go("rewrite", "billing", "--approve", "plan")
    (waits,) = played.named("intent.waits")
    assert (waits["phase"], waits["goal"]) == ("01-a-login", "a login")
    assert waits["intent"] == played.data["not_begun"] == "rewrite billing"
    words = ("go", "rewrite billing", "--with", SCRIPTED)
    shown = company.repo.yolo_fs(*words, more=company.env).stdout.decode()
    assert "phase 01-a-login is open, and continues: a login; not begun: rewrite billing" in shown
    briefs = (company.repo.git_dir / "yolo-fs/company").glob("*/brief.md")
    assert not any("billing" in each.read_text() for each in briefs)
    again = shlex.split(shown.rpartition("to begin it: ")[2])
    company.repo.yolo_fs(*again[1:], more=company.env)
    assert (company.repo.root / ".yolo-planning/phases/02-rewrite-billing").is_dir()


def test_an_intent_for_a_phase_that_is_named_is_the_intent_of_it(company: Company) -> None:
    company.configure(company={"team": "solo"})
    assert company.go("a", "login", "--approve", "plan").code == 75
    assert company.go("a login by mail", "--phase", "1", "--approve", "ship").code == 75
    briefs = [*(company.repo.git_dir / "yolo-fs/company").glob("*-senior/brief.md")]
    assert briefs and all("Intent: a login by mail\n" in each.read_text() for each in briefs)


def test_a_fix_in_an_open_phase_is_no_intent_of_it(company: Company) -> None:
    company.configure(company={"team": "solo"})
    assert company.go("a", "login", "--approve", "plan").code == 75
    assert company.go("a typo", "--approve", "plan", verb="fix-it").code == 75
    assert company.go("--approve", "ship").code == 75
    briefs = [*(company.repo.git_dir / "yolo-fs/company").glob("*-senior/brief.md")]
    assert briefs and all("Intent: a login\n" in each.read_text() for each in briefs)


def given_up_in_inbox(company: Company) -> list[dict[str, Any]]:
    items = json.loads(company.repo.yolo_fs("inbox", "--json", ok=(0, 1)).stdout)["data"]
    return [one for one in items if one["kind"] == "agent"]


def test_a_task_that_is_not_done_goes_up_the_chain_and_comes_back(company: Company) -> None:
    company.configure()
    played = company.go("a", "login", YOLO_FAULT="asks-once:dev")
    assert played.code == 0, played
    starts = [event["task"] for event in played.named("agent.started") if event["agent"] == "dev"]
    assert starts[:4] == ["01-01/T1"] * 2 + ["01-01/T2"] * 2, "asks, and then goes on once"
    log = company.repo.git("show", "HEAD:.yolo-planning/phases/01-a-login/escalation.jsonl")
    assert "Blue or red?" in log


def halting_daemon(company: Company, role: str, *, seconds: int) -> Path:
    """Return an agent that halts the daemon for a while when a role is at work first."""
    return company.repo.file(
        "../halting_daemon.py",
        "import json, os, pathlib, runpy, subprocess\n"
        "stopped = pathlib.Path('../stopped')\n"
        f"if os.environ['YOLO_FS_AGENT'].endswith({role!r}) and not stopped.exists():\n"
        "    (health,) = pathlib.Path('.git/yolo-fs').rglob('health.json')\n"
        "    pid = json.loads(health.read_text())['pid']\n"
        "    os.kill(pid, 19)\n"
        "    stopped.touch()\n"
        f"    halt = f'sleep {seconds}; kill -CONT {{pid}}'\n"
        "    subprocess.Popen(['sh', '-c', halt], start_new_session=True)\n"
        f"runpy.run_path({faulty_agent.__file__!r}, run_name='__main__')\n",
    )


def test_who_asks_is_started_again_once_the_branch_has_the_answer(company: Company) -> None:
    company.configure()
    script = halting_daemon(company, "dev", seconds=3)
    played = company.go("a", "login", program=played_by(script), YOLO_FAULT="asks-once:dev")
    assert played.code == 0, played
    assert (company.repo.root.parent / "stopped").exists()
    starts = [(event["agent"], event["task"]) for event in played.named("agent.started")]
    first = starts.index(("dev", "01-01/T1"))
    assert [agent for agent, _ in starts[first : first + 3]] == ["dev", "senior", "dev"], starts


def test_a_question_that_goes_up_to_the_user_ends_the_run_and_the_answer_goes_down(
    company: Company,
) -> None:
    company.configure()
    fault = {"YOLO_FAULT": "asks-the-user:dev*"}
    played = company.go("a", "login", **fault)
    assert played.code == 75, played
    (item,) = played.data["waiting"]
    assert "Blue or red?" in item["question"]
    assert item["kind"] == "escalation"
    answer = shlex.split(item["command"].replace("TEXT", "Blue").replace("CHOICE", "1"))
    assert company.repo.yolo_fs(*answer[1:]).returncode == 0
    assert company.go(**fault).code == 0
    assert (
        "resolved"
        in company.repo.git(
            "show", "HEAD:.yolo-planning/phases/01-a-login/.execution-state.json", ok=(0, 128)
        )
        + (company.repo.root / ".yolo-planning/phases/01-a-login/escalation.jsonl").read_text()
    )


def test_a_person_who_is_asked_about_a_task_is_told_what_was_wrong_with_it(
    company: Company,
) -> None:
    company.configure(company={"team": "solo"})
    played = company.go("a", "login", YOLO_FAULT="writes-nothing:dev*")
    assert played.code == 75, played
    (item,) = played.data["waiting"]
    assert "not done after 2 tries: " in item["question"]
    assert "src/api/plan01_core.ts" in item["question"] or "no commit of" in item["question"]


def test_what_was_given_up_is_asked_for_again_by_the_same_command_with_the_same_intent(
    company: Company,
) -> None:
    company.configure()
    fails = played_by(company.repo.file("../fails.py", "raise SystemExit('no model here')\n"))
    words = ("add", "a", "login")
    for typed in (words, words, ()):
        played = company.go(*typed, program=fails)
        assert played.code == 1, played
        assert [event["agent"] for event in played.named("agent.started")][:2] == ["analyze"] * 2
        assert "its last error: no model here" in played.data["given_up"][0]
    assert company.go("--approve", "plan").code == 75
    assert "docs(01): analysis" in company.subjects()
    assert [*(company.repo.root / ".yolo-planning/phases").glob("02*")] == [], "one phase"
    briefs = (company.repo.git_dir / "yolo-fs/company").glob("*-lead/brief.md")
    assert all("Intent: add a login\n" in each.read_text() for each in briefs)


def test_whom_a_fix_starts_for_the_phase_is_told_what_the_phase_is_about(company: Company) -> None:
    company.configure(company={"team": "solo"})
    assert company.go("a", "login", "--approve", "plan").code == 75
    played = company.go("a typo", "--approve", "ship", verb="fix-it")
    assert played.code == 75, played
    told = {
        each.parent.name.rpartition("-")[2]: each.read_text()
        for each in (company.repo.git_dir / "yolo-fs/company").glob(
            f"{played.data['run']}-*/brief.md"
        )
    }
    assert "Intent: a typo\n" in told["lead"]
    assert "Intent: a login\n" in told["senior"] and "a typo" not in told["senior"]


def test_a_phase_that_was_made_by_hand_is_begun_by_what_its_name_says(company: Company) -> None:
    company.configure(company={"team": "solo"})
    company.repo.yolo_fs("phase", "new", "login")
    company.repo.yolo_fs("new", "critique")
    made = company.repo.yolo_fs("schema", "example", "critique").stdout.decode()
    company.repo.file(".yolo-planning/phases/01-login/critique.jsonl", made)
    company.repo.yolo_fs("run", "--once")
    said = {}
    for intent in ("add a login with sessions", "rewrite billing"):
        words = ("go", intent, "--with", "true", "--dry-run")
        said[intent] = company.repo.yolo_fs(*words, more=company.env).stdout.decode()
    assert "not begun" not in said["add a login with sessions"]
    assert "phase 01-login is open, and continues: login; not begun" in said["rewrite billing"]


@pytest.mark.parametrize("checkpoint", ["plan", "ship"])
def test_what_a_run_ended_at_waits_in_the_inbox_until_it_goes_on(
    company: Company, checkpoint: str
) -> None:
    company.configure(company={"team": "solo"})
    played = company.go("a", "login", "--approve", checkpoint)
    assert played.code == 75, played
    (asked,) = played.data["waiting"]
    (item,) = json.loads(company.repo.yolo_fs("inbox", "--json", ok=(1,)).stdout)["data"]
    assert (item["kind"], item["command"]) == ("decision", asked["command"])
    assert item["question"] == f"question of the run: {asked['question']}"
    company.repo.yolo_fs(*shlex.split(item["command"])[1:], more=company.env)
    assert json.loads(company.repo.yolo_fs("inbox", "--json").stdout)["data"] == []


def test_why_an_act_was_given_up_is_told_once_with_the_command_that_tries_again(
    company: Company,
) -> None:
    company.configure(company={"team": "solo"})
    words = ("go", "a login", "--with", "false")
    done = company.repo.yolo_fs(*words, ok=(1,), more=company.env)
    said = (done.stdout + done.stderr).decode()
    (why,) = json.loads(company.repo.yolo_fs("company", "runs", "--json").stdout)["data"][-1][
        "given_up"
    ]
    assert said.count(why) == 1
    assert f"{why}: try it again?\n    run: yolo-fs go --phase 1 --with false\n" in said


def test_what_another_command_was_about_is_no_intent_of_the_phase(company: Company) -> None:
    company.configure()
    assert company.go("add a login", "--approve", "plan").code == 75
    assert company.go("why is it slow?", verb="debug").code == 0
    assert company.go("--approve", "ship").code == 75
    briefs = [*(company.repo.git_dir / "yolo-fs/company").glob("*-senior/brief.md")]
    assert briefs and all("Intent: add a login\n" in each.read_text() for each in briefs)


@pytest.mark.parametrize("verb", ["go", "debug"])
def test_what_a_killed_run_of_another_command_was_about_is_no_intent_of_the_phase(
    company: Company, verb: str
) -> None:
    company.configure()
    if verb == "debug":
        assert company.go("add a login", "--approve", "plan").code == 75
    who = {"go": "critic", "debug": "lead"}[verb]
    words = {"go": ["add a login"], "debug": ["why is it slow?"]}[verb]
    script = company.repo.file("../slow.py", SLOW_ONE.format(who=who))
    runner = company.begin(*words, program=played_by(script), verb=verb)
    folder = company.repo.git_dir / "yolo-fs/company"
    wait_for(lambda: [*folder.glob("*/pid")] and script.with_name("at").exists(), "nobody waits")
    runner.kill()
    runner.communicate(timeout=DEADLINE_S)
    if verb == "go":
        assert company.go("why is it slow?", verb="debug").code == 0
    assert company.go("--approve", "ship").code == 75
    briefs = [*(company.repo.git_dir / "yolo-fs/company").glob("*-senior/brief.md")]
    assert briefs and all("Intent: add a login\n" in each.read_text() for each in briefs)
    runs = json.loads(company.repo.yolo_fs("company", "runs", "--json").stdout)["data"]
    assert all(run["ended"] for run in runs)
    intents = {(run["chain"], run["intent"]) for run in runs}
    assert intents == {("", "add a login"), ("debug", "why is it slow?")}


SLOW_ONE = """
import os, pathlib, time
from yolo_fs.demo.agent import main
if os.environ["YOLO_FS_AGENT"] == "yolo-{who}":
    pathlib.Path(__file__).with_name("at").touch()
    time.sleep(3600)
main()
"""


@pytest.mark.parametrize("verb", ["go", "debug"])
def test_a_first_act_that_was_left_unfinished_by_a_killed_runner_is_finished_once(
    company: Company, verb: str
) -> None:
    company.configure()
    who = {"go": "analyze", "debug": "lead"}[verb]
    script = company.repo.file("../slow.py", SLOW)
    runner = company.begin("a", "login", program=played_by(script), verb=verb)
    folder = company.repo.git_dir / "yolo-fs/company"
    wait_for(lambda: numbers(folder, who), "nobody was started")
    runner.kill()
    runner.communicate(timeout=DEADLINE_S)
    words = ("a", "login", "--approve", "plan")
    again = company.begin(*words, program=played_by(script), verb=verb)
    assert again.stdout
    assert json.loads(next(again.stdout))["event"] == "agent.found"
    script.with_name("go").touch()
    out, _ = again.communicate(timeout=DEADLINE_S)
    assert again.returncode == (75 if verb == "go" else 0), out
    (run,) = json.loads(company.repo.yolo_fs("company", "runs", "--json").stdout)["data"]
    acts = [tuple(act["key"]) for act in run["acts"]]
    assert len(acts) == len({*acts}), acts
    assert {act["outcome"] for act in run["acts"]} == {"done"}
    done = {"go": "docs(01): analysis", "debug": "docs(01): debug-report"}[verb]
    assert done in company.subjects()


SLOW = """
import pathlib, time
from yolo_fs.demo.agent import main
while not pathlib.Path(__file__).with_name("go").exists():
    time.sleep(0.02)
main()
"""


def test_an_agent_that_has_ended_meanwhile_is_not_found_at_work(company: Company) -> None:
    company.configure(company={"team": "solo"})
    script = company.repo.file("../slow.py", SLOW)
    runner = company.begin("a", "login", program=played_by(script))
    folder = company.repo.git_dir / "yolo-fs/company"
    wait_for(lambda: numbers(folder, "analyze"), "nobody was started")
    runner.kill()
    runner.communicate(timeout=DEADLINE_S)
    script.with_name("go").touch()
    wait_for(lambda: not any(map(is_running, numbers(folder, "analyze"))), "it has not ended")
    played = company.go("a", "login", "--approve", "plan")
    assert played.code == 75, played
    assert not played.named("agent.found")
    assert [one["agent"] for one in played.named("agent.done")].count("analyze") == 1


# --- in a host that keeps to the roster --------------------------------------------------------------------------------


def test_what_a_role_has_no_tool_for_it_says_and_the_branch_has_it(company: Company) -> None:
    company.configure()
    played = company.go("a", "login", "--host", "claude", program=ANSWERING)
    assert played.code == 0, played
    started = {event["agent"] for event in played.named("agent.started")}
    assert {"analyze", "critic", "scout", "qa"} <= started
    assert not played.named("agent.failed"), played
    assert_bill_is_the_hosts_own(company, played)
    names = company.repo.git("ls-files", ".yolo-planning/phases")
    for name in ("analysis.json", "critique.jsonl", "research.jsonl", "verification.jsonl"):
        assert f"01-a-login/{name}" in names
    assert company.repo.yolo_fs("verify").returncode == 0


def assert_bill_is_the_hosts_own(company: Company, played: Played) -> None:
    """Compare the bill of a run with what the last line of each stream says of the whole."""
    tokens, cost_usd = 0, 0.0
    for stream in (company.repo.git_dir / "yolo-fs/company").glob("*/stream.log"):
        last = json.loads(stream.read_text().splitlines()[-1])
        used = last["modelUsage"]["large"]
        tokens += sum(number for name, number in used.items() if name.endswith("Tokens"))
        cost_usd += last["total_cost_usd"]
    assert tokens > 0
    (run,) = json.loads(company.repo.yolo_fs("company", "runs", "--json").stdout)["data"]
    parts = [run[name].values() for name in ("by_role", "by_step", "by_host")]
    for bill in (played.data, run, *map(added, parts)):
        assert (bill["tokens"], bill["cost_usd"]) == (tokens, pytest.approx(cost_usd, abs=1e-4))


def added(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {name: sum(row[name] for row in rows) for name in ("tokens", "cost_usd")}


def test_an_architect_without_a_shell_hands_a_question_up_and_the_answer_down(
    company: Company,
) -> None:
    company.configure()
    fault = {"YOLO_FAULT": "asks-the-user:dev*"}
    played = company.go("a", "login", "--host", "claude", program=ANSWERING, **fault)
    assert played.code == 75, played
    (item,) = played.data["waiting"]
    assert item["options"] == ["Blue", "Red"], item
    assert company.repo.yolo_fs("answer", item["id"], "1").returncode == 0
    assert company.go("--host", "claude", program=ANSWERING, **fault).code == 0


def processes_left(company: Company) -> list[str]:
    return [one for one in agents_of(company.repo.root) if "time.sleep" in one]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fault", sorted({*faulty_agent.FAULTS} - {"asks-once", "asks-the-user"}))
def test_whatever_an_agent_does_wrong_once_the_run_goes_on_without_it(
    company: Company, fault: str
) -> None:
    company.configure(company={"silent_s": 2, "deadline_s": 1})
    fault_of_critic = {"YOLO_FAULT": f"{fault}:critic"}
    played = company.go("a", "login", "--approve", "plan", **fault_of_critic)
    assert played.code == 75, played
    assert [item["kind"] for item in played.data["waiting"]] == ["approval"]
    assert processes_left(company) == []
    assert company.repo.yolo_fs("verify").returncode == 0
    assert "docs(01): plan 01-01" in company.subjects()
    is_ended = fault in ("hangs", "ignores-the-deadline")
    assert bool(played.named("agent.asked_to_stop")) is is_ended
    assert bool(played.named("agent.ended")) is (fault == "ignores-the-deadline")


def test_a_budget_stops_starting_and_whoever_is_at_work_finishes(company: Company) -> None:
    company.configure()
    fault = {"YOLO_FAULT": "over-budget:critic"}
    played = company.go("a", "login", "--budget", "1", **fault)
    assert played.code == 75, played
    assert [item["kind"] for item in played.data["waiting"]] == ["budget"]
    assert (played.data["cost_usd"], played.data["tokens"]) == (5.0, 100_000)
    assert "docs(01): critique and gap analysis" in company.subjects()
    (run,) = json.loads(company.repo.yolo_fs("company", "runs", "--json").stdout)["data"]
    bill = run["by_role"]["critic"]
    assert (bill["starts"], bill["tokens"], bill["cost_usd"]) == (1, 100_000, 5.0)
    assert bill["budget"] == AGENT_BY_NAME["critic"].token_budget
    assert run["outcome"] == "budget used up"


def test_what_an_agent_prints_is_shown_with_its_control_characters_escaped(
    company: Company,
) -> None:
    company.configure()
    program = "printf '\\033[2Jgone {agent}'"
    assert company.go("a", "login", program=program).code == 1
    shown = company.repo.yolo_fs("company", "log", "critic").stdout
    assert b"gone critic" in shown
    assert b"\033" not in shown


# --- the other commands ----------------------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("command", "agents", "left"),
    [
        ("debug", ["lead", "debugger", "lead"], "docs(01): debug-report"),
        ("research", ["lead", "scout"], "docs(01): research findings"),
        ("qa", ["lead", "qa", "qa-code"], "docs(01): code quality review"),
    ],
)
def test_a_command_sends_the_lead_first_and_then_whom_the_lead_sends(
    company: Company, command: str, agents: list[str], left: str
) -> None:
    company.configure()
    played = company.go("why is it slow?", verb=command)
    assert played.code == 0, played
    assert played.data["outcome"] == "done"
    assert [event["agent"] for event in played.named("agent.started")] == agents
    assert left in company.subjects()


def test_a_fix_is_planned_by_the_lead_and_carried_out_to_the_sign_off(company: Company) -> None:
    company.configure(effort="turbo")
    played = company.go("the message has a typo", verb="fix-it")
    assert played.code == 0, played
    assert played.named("agent.started")[0]["agent"] == "lead"
    assert company.subjects()[0] == "chore(state): phase 1 complete"


@pytest.mark.parametrize("dept", ["backend", "frontend"])
def test_a_fix_of_a_company_is_the_matter_of_three_agents_of_one_department(
    company: Company, dept: str
) -> None:
    company.configure("backend,frontend,uiux")
    words = ("the message has a typo", "--dept", dept)
    played = company.go(*words, verb="fix-it")
    assert played.code == 0, played
    own = "" if dept == "backend" else "fe-"
    started = [event["agent"] for event in played.named("agent.started")]
    gate = set[str]() if dept == "backend" else {"integration-gate"}  # it is the frontend's, too
    assert {*started} == {f"{own}{role}" for role in ("lead", "senior", "dev")} | gate, played
    assert started[0] == f"{own}lead"
    briefs = (company.repo.git_dir / "yolo-fs/company").glob("*/brief.md")
    told = {line for each in briefs for line in each.read_text().splitlines() if "Intent:" in line}
    assert told == {"Intent: the message has a typo"}


def test_a_fix_that_touches_more_than_trivial_work_may_has_every_step(company: Company) -> None:
    company.configure(complexity_routing={"max_trivial_files": 1})
    played = company.go("the message has a typo", "--approve", "ship", verb="fix-it")
    assert played.code == 75, played
    assert {"critic", "qa", "security"} <= {
        event["agent"] for event in played.named("agent.started")
    }


def test_a_fix_of_a_department_that_is_off_begins_nothing(company: Company) -> None:
    company.configure()
    played = company.go("a typo", "--dept", "frontend", verb="fix-it")
    assert played.code == 2, played
    assert [finding["reason"] for finding in played.findings] == ["unknown_name"]
    assert not [*(company.repo.root / ".yolo-planning/phases").glob("*")]


# --- trust -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["--local", "--global"])
def test_only_the_users_own_configuration_names_a_program(
    company: Company, tmp_path: Path, scope: str
) -> None:
    company.configure(host="command", hosts={"command": f"touch {tmp_path}/ran"})
    company.repo.git("config", scope, "yolo-fs.host.command", f"touch {tmp_path}/ran")
    command = ["go", "a login", "--host", "command"]
    done = company.repo.yolo_fs(*command, ok=(1, 2), more=company.env)
    assert (tmp_path / "ran").exists() is (scope == "--global"), done
    assert done.returncode == (1 if scope == "--global" else 2), done


def test_a_program_of_the_users_configuration_is_the_same_in_each_repository(
    company: Company, tmp_path: Path
) -> None:
    company.configure()
    company.repo.file("agent", f"#!/bin/sh\ntouch {tmp_path}/ran\n").chmod(0o755)
    company.repo.git("config", "--global", "yolo-fs.host.command", "./agent {agent}")
    done = company.repo.yolo_fs("go", "a login", "--host", "command", ok=(2,), more=company.env)
    assert b"PATH knows" in done.stdout + done.stderr
    assert not (tmp_path / "ran").exists()


def test_a_program_of_one_agent_that_is_not_there_is_named_and_the_run_is_over(
    company: Company,
) -> None:
    company.configure()
    played = company.go("a", "login", program="/none/{agent}")
    assert played.code == 78, played
    assert played.findings[0]["reason"] == "file_missing"
    (run,) = json.loads(company.repo.yolo_fs("company", "runs", "--json").stdout)["data"]
    assert (run["outcome"], run["acts"][0]["outcome"]) == ("failed", "could not be started")


def test_no_shell_reads_the_command(company: Company, tmp_path: Path) -> None:
    company.configure()
    played = company.go("a", "login", program=f"echo {{agent}}; touch {tmp_path}/ran")
    assert played.code == 1
    assert not (tmp_path / "ran").exists()


# --- one runner ------------------------------------------------------------------------------------------------------


def wait_for(is_so: Callable[[], object], what: str) -> None:
    until = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < until, what
        time.sleep(0.02)


def numbers(folder: Path, agent: str) -> list[int]:
    """Return the processes of an agent that were started, as each has written its number."""
    texts = [each.read_text() for each in folder.glob(f"*-{agent}/pid")]
    return [json.loads(text)["pid"] for text in texts if text]


def test_a_second_runner_refuses_while_one_runs(company: Company) -> None:
    company.configure()
    first = company.begin("a", "login", YOLO_FAULT="hangs:critic*")
    folder = company.repo.git_dir / "yolo-fs/company"
    wait_for(lambda: numbers(folder, "critic"), "nobody was started")
    second = company.go("a", "login")
    assert second.code == 4, second
    assert second.findings[0]["reason"] == "lock_timeout"
    first.send_signal(signal.SIGINT)
    time.sleep(0.5)  # two of them at once are one
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=DEADLINE_S)
    assert first.returncode == 130


STEPS = (
    "po", "critique", "research", "architecture", "planning", "design_review", "test_authoring",
    "implementation", "code_review", "documentation", "qa", "security",
)  # fmt: skip
HELD = """
import os, pathlib, time
from yolo_fs.demo.agent import main
while pathlib.Path(__file__).with_name(os.environ["YOLO_FS_STEP"]).exists():
    time.sleep(0.02)
main()
"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize("steps", [STEPS[at::4] for at in range(4)], ids=",".join)
def test_a_runner_that_is_killed_at_a_step_has_every_act_done_once(
    company: Company, steps: tuple[str, ...]
) -> None:
    company.configure(documenter="always")
    for step in steps:
        script = company.repo.file(f"../steps/{step}", "").with_name("held.py")
    script.write_text(HELD)
    program = played_by(script)
    killed, found, words = set[str](), set[str](), ["a", "login"]
    code = -signal.SIGKILL
    while code == -signal.SIGKILL:
        process = company.begin(*words, program=program)
        words = []
        assert process.stdout
        for event in map(json.loads, process.stdout):
            step, name = event.get("step", ""), event.get("event")
            if name == "agent.found":
                found.add(step)
                script.with_name(step).unlink()
            begins = name == "agent.started" and step in steps and step not in killed
            signs = name == "agent.done" and step == "security" == steps[-1]
            if begins or signs:
                killed.add(step)
                process.kill()
                break
        process.communicate(timeout=DEADLINE_S)
        code = process.returncode
    assert code == 0
    assert killed == found == {*steps}
    (run,) = json.loads(company.repo.yolo_fs("company", "runs", "--json").stdout)["data"]
    acts = [tuple(act["key"]) for act in run["acts"]]
    assert len(acts) == len({*acts}), acts
    subjects = company.subjects()
    assert len(subjects) == len({*subjects}), subjects
    assert company.repo.yolo_fs("verify").returncode == 0


def test_what_an_agent_said_that_ended_while_nobody_watched_is_heard(company: Company) -> None:
    company.configure()
    says = ANSWERING.rpartition(" ")[2]
    text = HELD.replace("from yolo_fs.demo.agent import main", "import runpy")
    script = company.repo.file(
        "../held.py", text.replace("main()", f"runpy.run_path({says!r}, run_name='__main__')")
    )
    held = company.repo.file("../critique", "")
    words = ("--host", "claude", "--approve", "plan")
    runner = company.begin("a", "login", *words, program=played_by(script))
    folder = company.repo.git_dir / "yolo-fs/company"
    wait_for(lambda: numbers(folder, "critic"), "nobody was started")
    runner.kill()
    runner.communicate(timeout=DEADLINE_S)
    held.unlink()
    (pid,) = numbers(folder, "critic")
    wait_for(lambda: not is_running(pid), "it lives")
    played = company.go(*words, program=played_by(script))
    assert played.code == 75, played
    assert "docs(01): critique and gap analysis" in company.subjects()
    assert len(numbers(folder, "critic")) == 1, played
    assert_bill_is_the_hosts_own(company, played)


# --- small companies -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "complexity", "wanted"),
    [
        (["--team", "solo"], "high", {"analyze", "lead", "senior", "dev"}),
        (
            ["--team", "pair"],
            "high",
            {"analyze", "lead", "senior", "tester", "dev", "qa", "qa-code"},
        ),
        ([], "trivial", {"analyze", "lead", "senior", "dev"}),
    ],
)
def test_a_small_team_ships_with_the_roles_of_its_steps_alone(
    company: Company, words: list[str], complexity: str, wanted: set[str]
) -> None:
    company.configure()
    played = company.go("a", "login", *words, YOLO_FS_DEMO_COMPLEXITY=complexity)
    assert played.code == 0, played
    assert {event["agent"] for event in played.named("agent.started")} == wanted
    assert company.repo.yolo_fs("verify").returncode == 0
    config = json.loads(company.repo.git("show", "HEAD:.yolo-planning/config.json"))
    assert config["company"].get("team", "") == (words[1] if words else "")
    assert config["company"]["silent_s"] == 60, "whatever else it says stays"


def test_a_step_that_is_switched_on_runs_in_a_small_team(company: Company) -> None:
    company.configure(company={"team": "solo", "steps": ["security"]})
    played = company.go("a", "login")
    assert played.code == 0, played
    assert "security" in {event["agent"] for event in played.named("agent.started")}


# --- on a terminal ---------------------------------------------------------------------------------------------------


def on_terminal(company: Company, *words: str, program: str = SCRIPTED, **more: str) -> Terminal:
    command = [sys.executable, "-P", "-m", "yolo_fs", "go", *words, "--with", program]
    return Terminal(command, company.repo.root, company.env | more)


ASKS = {"YOLO_FAULT": "asks-the-user:dev*"}


def test_a_run_on_a_terminal_asks_there_and_goes_on_with_the_answer(company: Company) -> None:
    company.configure(company={"team": "solo"})
    terminal = on_terminal(company, "a", "login", **ASKS)
    terminal.until("Enter for later: ")
    assert b"Blue or red?" in terminal.shown
    assert b"recommended: Blue" in terminal.shown
    terminal.type("Blue, as in the logo\n")
    assert terminal.end() == 0, terminal.shown
    log = company.repo.git("show", "HEAD:.yolo-planning/phases/01-a-login/escalation.jsonl")
    assert "Blue, as in the logo" in log


def test_an_approval_is_given_on_the_terminal_with_a_reason(company: Company) -> None:
    company.configure(company={"team": "solo"}, approval_gates={"code_review": True})
    terminal = on_terminal(company, "a", "login")
    terminal.until("user approves the code review")
    terminal.until("your reason, Enter for later: ")
    terminal.type("I read it\n")
    assert terminal.end() == 0, terminal.shown
    decided = company.repo.git("show", "HEAD:.yolo-planning/phases/01-a-login/decisions.jsonl")
    (line,) = decided.splitlines()
    record = json.loads(line)
    assert (record["agent"], record["kind"], record["reason"]) == ("user", "approve", "I read it")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("typed", "code"), [("\n", 75), ("\x04", 75), ("\x03", 130)])
def test_a_question_may_wait_and_an_interrupt_at_it_ends_the_run(
    company: Company, typed: str, code: int
) -> None:
    company.configure(company={"team": "solo"})
    terminal = on_terminal(company, "a", "login", **ASKS)
    terminal.until("Enter for later: ")
    if typed == "\x03":  # the terminal is nobody's, so that its key reaches nobody
        terminal.process.send_signal(signal.SIGINT)
    else:
        terminal.type(typed)
    assert terminal.end() == code, terminal.shown
    assert (b"yolo-fs answer ESC-01-01-T1" in terminal.shown) is (code == 75)
    assert json.loads(company.repo.yolo_fs("inbox", "--json", ok=(1,)).stdout)["data"]


def test_what_was_given_up_is_tried_again_where_a_person_wants_it(company: Company) -> None:
    company.configure(company={"team": "solo"})
    script = company.repo.file(
        "../learns.py",
        "import os, pathlib\n"
        "from yolo_fs.demo.agent import main\n"
        "if os.environ['YOLO_FS_AGENT'] in ('yolo-senior', 'yolo-lead') and not"
        " pathlib.Path(__file__).with_name('ready').exists() and"
        " os.environ['YOLO_FS_STEP'] == 'design_review':\n    raise SystemExit\n"
        "main()\n",
    )
    program = played_by(script)
    terminal = on_terminal(company, "a", "login", program=program)
    terminal.until("try it again?")
    assert b"lead decided nothing" in b" ".join(terminal.shown.split())
    script.with_name("ready").touch()
    terminal.type("y\n")
    assert terminal.end() == 0, terminal.shown


def test_an_answer_that_comes_twice_or_too_late_changes_nothing(company: Company) -> None:
    company.configure(company={"team": "solo"})
    terminal = on_terminal(company, "a", "login", **ASKS)
    terminal.until("Enter for later: ")
    assert company.repo.yolo_fs("answer", "ESC-01-01-T1", "--text", "Green").returncode == 0
    terminal.type("Red\n")
    assert terminal.end() == 0, terminal.shown
    log = company.repo.git("show", "HEAD:.yolo-planning/phases/01-a-login/escalation.jsonl")
    assert "Green" in log and '"dec":"Red"' not in log


def test_a_team_is_asked_for_once_and_an_approval_and_a_budget_are_given_where_it_runs(
    company: Company,
) -> None:
    company.configure()
    words = ("a", "login", "--approve", "plan", "--budget", "4")
    terminal = on_terminal(company, *words, YOLO_FAULT="over-budget:lead")
    terminal.until("[company]: ")
    terminal.type("solo\n")
    terminal.until("5.00 USD")
    terminal.until("y to continue, Enter for later: ")
    terminal.type("y\n")
    terminal.until("approve the plan")
    terminal.type("y\n")
    assert terminal.end() == 0, terminal.shown
    config = json.loads(company.repo.git("show", "HEAD:.yolo-planning/config.json"))
    assert config["company"]["team"] == "solo"


def test_what_an_agent_used_that_ended_while_nobody_watched_is_on_the_bill(
    company: Company,
) -> None:
    company.configure(company={"team": "solo"})
    script = company.repo.file(
        "../dear.py",
        "import json, time\n"
        "print(json.dumps({'type': 'result', 'usage': {'input_tokens': 70, 'output_tokens': 30},"
        " 'total_cost_usd': 1.25}), flush=True)\n"
        "time.sleep(3600)\n",
    )
    first = company.begin("a", "login", program=f"{shlex.quote(sys.executable)} {script}")
    folder = company.repo.git_dir / "yolo-fs/company"
    wait_for(lambda: any(each.stat().st_size for each in folder.glob("*/stream.log")), "silent")
    first.kill()
    first.communicate(timeout=DEADLINE_S)
    (pid,) = numbers(folder, "analyze")
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not is_running(pid), "it lives")
    played = company.go()
    assert played.code == 0, played
    assert (played.data["tokens"], played.data["cost_usd"]) == (100, 1.25)


NAMES_ANOTHER_PLAN = """
import os, pathlib, subprocess
from yolo_fs.demo.agent import main
if os.environ["YOLO_FS_STEP"] == "code_review" and os.environ["YOLO_FS_ATTEMPT"] == "1":
    path = pathlib.Path(os.environ["YOLO_FS_WRITES"].strip())
    example = subprocess.check_output(["yolo-fs", "schema", "example", "code-review"])
    path.write_bytes(example)  # of a plan that is not there
else:
    main()
"""


def test_why_a_file_that_was_accepted_does_not_count_is_told_to_the_next_try(
    company: Company,
) -> None:
    company.configure(company={"team": "solo"})
    script = company.repo.file("../names.py", NAMES_ANOTHER_PLAN)
    played = company.go("add", "a", "login", program=played_by(script))
    assert played.code == 0, played
    (failed,) = played.named("agent.failed")
    assert failed["step"] == "code_review"
    briefs = (company.repo.git_dir / "yolo-fs/company").glob("*-senior/brief.md")
    told = [brief for brief in map(Path.read_text, briefs) if "last try" in brief]
    assert len(told) == 1
    assert "code-review.jsonl: no plan 01-02 in this phase; expected 01-01" in told[0]


# --- bad days --------------------------------------------------------------------------------------------------------


def held_at(
    company: Company, step: str, *words: str, agent: str = "critic"
) -> tuple[subprocess.Popen[str], Path]:
    """Start a run whose agent of a step waits; return it and the file to remove so that it goes on."""
    held = company.repo.file(f"../{step}", "")
    script = company.repo.file("../held.py", HELD)
    runner = company.begin("a", "login", *words, program=played_by(script))
    folder = company.repo.git_dir / "yolo-fs/company"
    wait_for(lambda: [*folder.glob("*/brief.md")] and numbers(folder, agent), "nobody was started")
    return runner, held


def ended(runner: subprocess.Popen[str]) -> Played:
    out, err = runner.communicate(timeout=DEADLINE_S)
    return Played(runner.returncode, [json.loads(line) for line in out.splitlines()], err)


@pytest.mark.parametrize("start", ["HEAD", "HEAD~1"], ids=["with all of it", "with less of it"])
def test_a_person_who_switches_branches_takes_the_run_along_and_the_other_branch_stays(
    company: Company, start: str
) -> None:
    company.configure()
    runner, held = held_at(company, "critique", "--approve", "plan")
    before = company.repo.git("rev-parse", "HEAD")
    company.repo.git("switch", "-q", "-c", "other", start)
    held.unlink()
    played = ended(runner)
    assert played.code == 75, played
    assert [item["kind"] for item in played.data["waiting"]] == ["approval"]
    assert "docs(01): plan 01-01" in company.subjects()
    assert company.repo.git("rev-parse", "main") == before
    assert company.repo.yolo_fs("verify").returncode == 0
    company.repo.git("switch", "-q", "main")
    assert company.go("--approve", "plan").code == 75
    assert "docs(01): plan 01-01" in company.subjects()


DETACHES = """
import os, subprocess
from yolo_fs.demo.agent import main
if os.environ["YOLO_FS_AGENT"] == "yolo-critic":
    subprocess.run(["git", "checkout", "-q", "--detach"], check=True)
main()
"""


def test_what_lets_nobody_commit_costs_no_try_and_a_person_ends_it(company: Company) -> None:
    company.configure()
    program = played_by(company.repo.file("../detaches.py", DETACHES))
    words = ("--approve", "plan")
    for typed, started in ((("a", "login"), ["analyze", "critic"]), ((), [])):
        played = company.go(*typed, *words, program=program)
        assert played.code == 75, played
        assert [event["agent"] for event in played.named("agent.started")] == started
        (item,) = played.data["waiting"]
        assert "HEAD is detached" in item["question"]
    company.repo.git("switch", "-q", "main")
    played = company.go(*words, program=program)
    waiting = played.data["waiting"]
    assert [item["kind"] for item in waiting] == ["approval"], waiting
    assert "critic" not in {event["agent"] for event in played.named("agent.started")}
    assert "docs(01): critique and gap analysis" in company.subjects()


def test_an_approval_gate_ends_the_run_at_a_person_and_the_next_run_ships(company: Company) -> None:
    company.configure(company={"team": "solo"}, approval_gates={"code_review": True})
    played = company.go("a", "login")
    assert played.code == 75, played
    (item,) = played.data["waiting"]
    command = "yolo-fs decide approve code_review backend --phase 1 --reason …"
    assert item["command"] == command, item
    assert company.go().code == 75, "nobody has decided"
    words = ("decide", "approve", "code_review", "backend", "--reason", "I read it")
    assert company.repo.yolo_fs(*words).returncode == 0
    played = company.go()
    assert (played.code, played.data["outcome"]) == (0, "shipped"), played
    assert company.repo.yolo_fs("verify").returncode == 0


@pytest.mark.parametrize("halted_s", [0, 18])
def test_what_is_in_the_way_for_moments_only_ends_no_run(company: Company, halted_s: int) -> None:
    """Such as the lock that git takes for each commit of our own daemon, which may get no processor
    for longer than a file may be held.
    """
    company.configure(company={"team": "solo"})
    lock = company.repo.git_dir / "index.lock"
    program = played_by(halting_daemon(company, "dev", seconds=halted_s)) if halted_s else SCRIPTED
    runner = company.begin("a", "login", program=program)
    while runner.poll() is None:
        with suppress(FileExistsError):
            lock.touch(exist_ok=False)
            time.sleep(0.003)
            lock.unlink()
        time.sleep(0.01)
    played = ended(runner)
    assert (played.code, played.data["outcome"]) == (0, "shipped"), played
    assert (company.repo.root.parent / "stopped").exists() is bool(halted_s)


def test_a_hold_that_a_person_ends_on_the_terminal_lets_the_run_go_on(company: Company) -> None:
    company.configure(company={"team": "solo"})
    text = DETACHES.replace("yolo-critic", "yolo-lead").replace(
        '"checkout", "-q", "--detach"', '"merge", "-q", "other"'
    )
    company.repo.commit_file("f", "a\n", "chore(repo): f")
    company.repo.git("switch", "-q", "-c", "other", "HEAD~1")
    company.repo.commit_file("f", "b\n", "chore(repo): f")
    company.repo.git("switch", "-q", "main")
    script = company.repo.file("../merges.py", text.replace(", check=True", ""))
    terminal = on_terminal(company, "a", "login", program=played_by(script))
    terminal.until("a merge is in progress")
    terminal.until("y to continue, Enter for later: ")
    company.repo.git("merge", "--abort")
    terminal.type("y\n")
    assert terminal.end() == 0, terminal.shown
    subjects = company.subjects()
    assert len(subjects) == len({*subjects}), subjects


def test_a_daemon_that_an_agent_starts_in_a_session_of_its_own_holds_nobody_up(
    company: Company,
) -> None:
    company.configure()
    note = company.repo.root.parent / "daemon"
    script = company.repo.file(
        "../daemon.py",
        "import os, pathlib, subprocess, sys\n"
        "from yolo_fs.demo.agent import main\n"
        "if os.environ['YOLO_FS_AGENT'] == 'yolo-critic':\n"
        "    words = [sys.executable, '-c', 'import time; time.sleep(3600)']\n"
        "    daemon = subprocess.Popen(words, start_new_session=True, cwd='/')\n"
        f"    pathlib.Path({str(note)!r}).write_text(str(daemon.pid))\n"
        "main()\n",
    )
    played = company.go("a", "login", "--approve", "plan", program=played_by(script))
    pid = int(note.read_text())
    try:
        assert played.code == 75, played
        assert not played.named("agent.failed"), played
        assert is_running(pid), "it is in no group of ours"
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_stream_that_is_cut_in_the_middle_of_a_line_costs_what_it_said_before(
    company: Company,
) -> None:
    company.configure()
    script = company.repo.file(
        "../cut.py",
        "import json, os\n"
        "from yolo_fs.demo.agent import main\n"
        "main()\n"
        "line = json.dumps({'type': 'result', 'usage': {'input_tokens': 3}, 'total_cost_usd': 0.5})\n"
        "print(line, line[:40], sep='\\n', end='', flush=True)\n"
        "os.kill(os.getpid(), 9)\n",
    )
    played = company.go("a", "login", "--approve", "plan", program=played_by(script))
    assert played.code == 75, played
    starts = len(played.named("agent.started"))
    assert (played.data["tokens"], played.data["cost_usd"]) == (3 * starts, 0.5 * starts)
    assert not played.named("agent.failed"), "what counts is on the branch"


REMOVES = """
import os, pathlib, shutil
from yolo_fs.demo.agent import main
main()
if os.environ["YOLO_FS_AGENT"] == "yolo-critic":
    shutil.rmtree(pathlib.Path(os.environ["YOLO_FS_BRIEF"]).parent)
"""


def test_an_agent_that_removes_what_it_printed_ends_no_run(company: Company) -> None:
    company.configure()
    program = played_by(company.repo.file("../removes.py", REMOVES))
    played = company.go("a", "login", "--approve", "plan", program=program)
    waiting = played.data["waiting"]
    assert [item["kind"] for item in waiting] == ["approval"], waiting
    assert not played.named("agent.failed"), played


def test_a_pipe_that_nobody_reads_any_more_starts_nobody_new_and_is_no_success(
    company: Company,
) -> None:
    company.configure()
    runner, held = held_at(company, "po", agent="analyze")
    assert runner.stdout and runner.stderr
    runner.stdout.close()
    held.unlink()
    assert runner.wait(DEADLINE_S) == 130
    assert runner.stderr.read() == ""
    runner.stderr.close()
    assert "docs(01): analysis" in company.subjects()
    (run,) = json.loads(company.repo.yolo_fs("company", "runs", "--json").stdout)["data"]
    assert run["outcome"] == "interrupted"
    assert {act["outcome"] for act in run["acts"]} == {"done"}
    assert len(run["acts"]) <= 2, "who is started before the line is written, finishes"


def test_a_terminal_that_is_closed_ends_nobody_at_work(company: Company) -> None:
    company.configure(company={"team": "solo"})
    held = company.repo.file("../planning", "")
    terminal = on_terminal(
        company, "a", "login", program=played_by(company.repo.file("../held.py", HELD))
    )
    terminal.until("lead does planning")
    terminal.close()
    terminal.process.send_signal(signal.SIGHUP)  # the kernel sends it to whom the terminal is
    held.unlink()
    assert terminal.process.wait(DEADLINE_S) == 130
    assert company.subjects()[0] == "docs(01): plan 01-01"
    (run,) = json.loads(company.repo.yolo_fs("company", "runs", "--json").stdout)["data"]
    assert [act["outcome"] for act in run["acts"]] == ["done", "done"]


NOBODY_IS_LET_IN = """
import json, os, pathlib, sys, time
if pathlib.Path(__file__).with_name("key").exists():
    from yolo_fs.demo.agent import main
    main()
else:
    line = {"type": "system", "subtype": "api_retry", "error_status": 401}
    for _ in range(2):
        print(json.dumps(line | {"error": "authentication_failed"}), flush=True)
    time.sleep(3600)  # it asks again for minutes
"""


def test_a_refused_key_ends_the_run_at_a_person_after_one_start_and_the_same_command_goes_on(
    company: Company,
) -> None:
    company.configure()
    script = company.repo.file("../refused.py", NOBODY_IS_LET_IN)
    program = played_by(script)
    played = company.go("a", "login", program=program)
    assert played.code == 75, played
    assert len(played.named("agent.started")) == 1, "each start would be refused"
    (item,) = played.data["waiting"]
    assert "command refuses the login: 401 authentication_failed" in item["question"]
    (shown,) = given_up_in_inbox(company)
    again = f"yolo-fs go --phase 1 --with {shlex.quote(program)}"
    assert shown["command"] == item["command"] == again
    script.with_name("key").touch()
    assert company.go("--approve", "plan", program=program).code == 75
    assert "docs(01): plan 01-01" in company.subjects()
    assert not given_up_in_inbox(company)


def test_a_refused_key_that_is_set_right_on_the_terminal_lets_the_run_go_on(
    company: Company,
) -> None:
    company.configure(company={"team": "solo"})
    script = company.repo.file("../refused.py", NOBODY_IS_LET_IN)
    terminal = on_terminal(company, "a", "login", program=played_by(script))
    terminal.until("refuses the login")
    terminal.until("y to continue, Enter for later: ")
    script.with_name("key").touch()
    terminal.type("y\n")
    assert terminal.end() == 0, terminal.shown


RENEWS = """
import json
line = {"type": "system", "subtype": "api_retry", "error_status": 401}
for name in ("Read", "Write", "Bash"):  # its key has run out three times, and was renewed
    print(json.dumps(line | {"error": "authentication_failed"}), flush=True)
    part = {"type": "tool_use", "name": name}
    print(json.dumps({"type": "assistant", "message": {"content": [part]}}), flush=True)
from yolo_fs.demo.agent import main
main()
"""


def test_a_key_that_its_host_renews_stops_nobody(company: Company) -> None:
    company.configure()
    script = company.repo.file("../renews.py", RENEWS)
    played = company.go("a", "login", "--approve", "plan", program=played_by(script))
    waiting = played.data["waiting"]
    assert [item["kind"] for item in waiting] == ["approval"], waiting
    assert not played.named("agent.failed")


def send_all(root: Path, number: int) -> None:
    """Send a signal to every process that works in a repository: runner, daemon and agents."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{name}/cwd") == str(root):
                os.kill(int(name), number)
        except OSError:
            continue


def test_a_machine_that_sleeps_counts_as_nobodys_silence(company: Company) -> None:
    company.configure(company={"silent_s": 4, "deadline_s": 1})
    runner, held = held_at(company, "critique", "--approve", "plan")
    send_all(company.repo.root, signal.SIGSTOP)
    time.sleep(6)  # what it sleeps is longer than an agent may be silent
    held.unlink()
    send_all(company.repo.root, signal.SIGCONT)
    played = ended(runner)
    waiting = played.data["waiting"]
    assert [item["kind"] for item in waiting] == ["approval"], waiting
    assert not played.named("agent.asked_to_stop"), played
    assert not played.named("agent.failed"), played
    assert company.repo.yolo_fs("verify").returncode == 0


def test_a_machine_that_sleeps_within_a_deadline_gives_the_agent_the_rest_of_it(
    company: Company,
) -> None:
    company.configure(company={"silent_s": 1, "deadline_s": 4})
    script = company.repo.file(
        "../obeys.py",
        "import os, pathlib, signal, time\n"
        "from yolo_fs.demo.agent import main\n"
        "here = pathlib.Path(__file__)\n"
        "def stop(number, frame):\n"
        "    here.with_name('asked').touch()\n"
        "    while not here.with_name('awake').exists():\n"
        "        time.sleep(0.02)\n"
        "    main()\n"
        "    raise SystemExit\n"
        "if os.environ['YOLO_FS_AGENT'] == 'yolo-critic':\n"
        "    signal.signal(signal.SIGTERM, stop)\n"
        "    while True:\n"
        "        time.sleep(3600)\n"
        "main()\n",
    )
    runner = company.begin("a", "login", "--approve", "plan", program=played_by(script))
    wait_for(script.with_name("asked").exists, "nobody was asked to stop")
    send_all(company.repo.root, signal.SIGSTOP)
    time.sleep(6)
    script.with_name("awake").touch()
    send_all(company.repo.root, signal.SIGCONT)
    played = ended(runner)
    waiting = played.data["waiting"]
    assert [item["kind"] for item in waiting] == ["approval"], waiting
    assert played.named("agent.asked_to_stop") and not played.named("agent.ended"), played


FORMS = """
import json, os
from yolo_fs.demo.agent import main
for line in (
    {"type": "result", "usage": [1, 2], "modelUsage": "none", "total_cost_usd": {"usd": 1}},
    {"type": ["result"], "error": [{"status": 429}], "message": {"content": {"type": "text"}}},
    {"event": "done", "tokens": 9, "message": {"content": [7, None, {"type": 3, "text": []}]}},
    {"type": "result", "result": {"text": "done"}, "api_error_status": [401], "error": {"type": 5}},
    [1], None, "text", 3.5,
):
    print(json.dumps(line))
print('{"type": "result", "usage": {"input_tokens": 5')
os.write(1, b"\\xff\\x00\\n")
main()
"""


@pytest.mark.parametrize("host", ["claude", "codex", "command"])
def test_a_host_whose_stream_has_another_form_works_and_costs_nothing(
    company: Company, host: str
) -> None:
    company.configure()
    script = company.repo.file("../forms.py", FORMS)
    words = ("--approve", "plan", "--host", host, "--max-tokens", "1")
    played = company.go("a", "login", *words, program=played_by(script))
    waiting = played.data["waiting"]
    assert [item["kind"] for item in waiting] == ["approval"], waiting
    assert (played.data["tokens"], played.data["cost_usd"]) == (0, 0.0)
    assert not played.named("host.limited") and not played.named("agent.failed"), played


LONG = """
import json, sys
from yolo_fs.demo.agent import main
main()
word = "x" * 200_000
part = {"type": "text", "text": word}
print(json.dumps({"type": "assistant", "message": {"content": [part]}}))
print(json.dumps({"type": "result", "result": word, "usage": {"input_tokens": 3}}))
print(word * 20)
print(json.dumps({"type": "result", "usage": {"input_tokens": 4}}))
print(word * 20, end="")
print(word * 20, end="", file=sys.stderr)
"""


def test_lines_of_megabytes_hide_nothing_of_the_bill_and_are_shown_shortened(
    company: Company,
) -> None:
    company.configure()
    script = company.repo.file("../long.py", LONG)
    played = company.go("a", "login", "--approve", "plan", program=played_by(script))
    assert played.code == 75, played
    assert played.data["tokens"] == 7 * len(played.named("agent.started"))
    assert len(company.repo.yolo_fs("company", "log", "critic").stdout) < 100_000


def test_what_a_person_writes_into_a_file_of_a_task_is_kept_with_what_its_agent_writes(
    company: Company,
) -> None:
    company.configure(company={"team": "solo"})
    runner, held = held_at(company, "implementation", agent="dev")
    company.repo.file("src/api/plan01_core.ts", "// a person was here\n")
    company.repo.file("notes.txt", "mine\n")
    held.unlink()
    played = ended(runner)
    assert played.code == 0, played
    both = "// a person was here\n// 01-01/T1 by yolo-dev"
    assert company.repo.git("show", "HEAD:src/api/plan01_core.ts").strip() == both
    assert company.repo.look("status", "--porcelain").strip() == "?? notes.txt"


def test_a_person_who_is_faster_than_the_agent_with_its_file_loses_nothing(
    company: Company,
) -> None:
    company.configure()
    runner, held = held_at(company, "critique", "--approve", "plan")
    path = ".yolo-planning/phases/01-a-login/critique.jsonl"
    mine = {"id": "C7", "cat": "gap", "sev": "minor", "q": "Mine?", "ctx": "c", "sug": "s"}
    file = company.repo.file(path, json.dumps({**mine, "st": "addressed"}) + "\n")
    wait_for(lambda: "docs(01): critique and gap analysis" in company.subjects(), "no commit")
    held.unlink()
    played = ended(runner)
    assert played.code == 75, played
    assert '"C7"' in company.repo.git("show", f"HEAD:{path}")
    assert '"C1"' in file.read_text(), "what the agent wrote over it stands in the work tree"
    items = json.loads(company.repo.yolo_fs("inbox", "--json", ok=(0, 1)).stdout)["data"]
    (item,) = [one for one in items if one["id"] == path]
    assert item["command"] == f"yolo-fs fix --write {path}"


def test_an_answer_that_comes_twice_or_after_the_sign_off_is_refused_with_what_was_decided(
    company: Company,
) -> None:
    company.configure(company={"team": "solo"})
    fault = {"YOLO_FAULT": "asks-the-user:dev*"}
    assert company.go("a", "login", **fault).code == 75
    words = ("answer", "ESC-01-01-T1", "--text")
    assert company.repo.yolo_fs(*words, "Blue").returncode == 0
    again = company.repo.yolo_fs(*words, "Red", ok=(1,))
    assert b"is decided already: Blue" in again.stderr
    assert company.go(**fault).code == 0
    tip = company.repo.git("rev-parse", "HEAD")
    late = company.repo.yolo_fs(*words, "Green", ok=(1,))
    assert b"is resolved already; expected its decision: Blue" in late.stderr
    assert company.repo.git("rev-parse", "HEAD") == tip
    assert company.repo.look("status", "--porcelain") == ""


SPENDS = """
import json, os, time
from yolo_fs.company.runs import runs
from yolo_fs.demo.agent import main
from yolo_fs.git.repository import Repository
def is_paid():
    with Repository(".") as repository:
        acts = [act for run in runs(repository) for act in run.acts]
    return any((act.agent, act.outcome) == ("architect", "done") for act in acts)
agent = os.environ["YOLO_FS_AGENT"]
if agent == "yolo-architect":
    print(json.dumps({"type": "result", "total_cost_usd": 5}), flush=True)
if agent == "yolo-fe-architect":
    while not is_paid():
        time.sleep(0.02)
main()
"""


def test_a_budget_that_ends_while_another_department_is_at_work_lets_it_finish(
    company: Company,
) -> None:
    company.configure("backend,frontend")
    script = company.repo.file("../spends.py", SPENDS)
    played = company.go("a", "login", "--budget", "4", program=played_by(script))
    assert [item["kind"] for item in played.data["waiting"]] == ["budget"], played
    assert "5.00 USD" in played.data["waiting"][0]["question"]
    order = [(event["event"], event["agent"]) for event in played.events if "agent" in event]
    assert order[-1] == ("agent.done", "fe-architect"), order
    assert not company.repo.look("status", "--porcelain")


STOPS = """
import os, pathlib, subprocess, sys
from yolo_fs.demo.agent import main
if os.environ["YOLO_FS_AGENT"] == "yolo-critic":
    of_nobody = {name: value for name, value in os.environ.items() if "YOLO_FS_" not in name}
    for whose, env in (("own", os.environ), ("no", of_nobody)):
        for words in (["start"], ["go", "--with", sys.executable], ["stop"]):
            done = subprocess.run(["yolo-fs", *words], capture_output=True, stdin=subprocess.DEVNULL, env=env)
            with open(pathlib.Path(__file__).with_name("codes"), "a") as codes:
                codes.write(f"{whose} {words[0]} {done.returncode} ")
main()
"""


def test_an_agent_that_stops_our_daemon_and_starts_a_run_of_its_own_holds_nobody_up(
    company: Company,
) -> None:
    company.configure()
    script = company.repo.file("../stops.py", STOPS)
    played = company.go("a", "login", "--approve", "plan", program=played_by(script))
    waiting = played.data["waiting"]
    assert [item["kind"] for item in waiting] == ["approval"], waiting
    own, without = "own start 0 own go 1 own stop 1 ", "no start 0 no go 4 no stop 0 "
    assert script.with_name("codes").read_text() == own + without, "who hides its name is let in"
    assert len(played.named("daemon.started")) == 1
    assert not played.named("agent.failed"), played
    stopped = company.repo.yolo_fs("stop").stdout
    assert b"No daemon is running" in stopped, "the new one ends with the run"
