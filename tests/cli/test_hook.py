"""`hook` answers each host in its own form, survives whatever it is told, and costs nothing where nothing is ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support import forked
from tests.support.teams import EXAMPLES, Team
from yolo_fs import agent_events
from yolo_fs.cli import hook_fast, hook_question
from yolo_fs.cli.statusline_fast import line
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.hooks.hosts import LONGEST, HookAnswer, output_of
from yolo_fs.protocol.hooks import AGENT_HOOK_BY_NAME, HOSTS, TOOLS, ToolAct
from yolo_fs.protocol.roster import AGENT_BY_NAME

PACKAGE = Path(__file__).parents[2]
FIXTURES = Path(__file__).parents[2] / "fixtures/hooks"
RECORDED = sorted(path for path in FIXTURES.glob("*/*.json") if path.parent.name != "schemas")
REAL = sorted(FIXTURES.parent.glob("hosts/*.json"))
SCHEMAS = sorted(FIXTURES.glob("schemas/*/*.json"))
PHASE = ".yolo-planning/phases/01-auth"
SPEAKS = {
    "claude/pre-tool-use", "claude/pre-tool-use__shell", "claude/post-tool-use", "claude/stop", "claude/subagent-stop",
    "claude/session-start", "claude/session-start__compact", "claude/session-start__resume",
    "claude/session-start__clear", "claude/subagent-start",
    "codex/pre-tool-use", "codex/pre-tool-use__shell", "codex/post-tool-use", "codex/stop", "codex/subagent-stop",
    "codex/session-start", "codex/session-start__compact", "codex/subagent-start",
    "cursor/pre-tool-use", "cursor/pre-tool-use__shell", "cursor/post-tool-use", "cursor/post-tool-use__edit",
    "cursor/stop", "cursor/subagent-stop", "cursor/session-start",
}  # fmt: skip
"""Recorded inputs to which something is to be said: a status is written, a critique is invalid."""


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    """Return a repository with a plan in a commit, and a critique on disk that is invalid."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    team = Team(tmp_path / "work")
    team.plan_one()
    team.artifact("critique.jsonl", '{"id":"C1"}\n')
    return team


def asked(
    team: Team, told: dict[str, Any], event: str = "", host: str = ""
) -> tuple[dict[str, Any], str, int]:
    data = json.dumps(told).replace("/home/ada/shop", str(team.root)).encode()
    said, complaint, code = hook_fast.answer(data, event, host)
    return dict(said), complaint, code


def writes(team: Team, told: dict[str, Any], name: str = "critique.jsonl") -> None:
    """Let the agent of an input have written an artifact."""
    given = {"tool_input": {"file_path": f"{PHASE}/{name}"}, "tool_name": "Write"}
    asked(team, {**told, **given, "hook_event_name": "PostToolUse", "cwd": str(team.root)})


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def schema_of(host: str, event: str) -> dict[str, Any]:
    return dict(json.loads((FIXTURES / "schemas" / host / f"{event}.json").read_text()))


# --- recorded inputs ---


@pytest.mark.proves("hosts:2", "hosts:10", "hosts:13")
@pytest.mark.parametrize("path", RECORDED, ids=name_of)
def test_a_recorded_input_gets_an_answer_of_its_hosts_schema(team: Team, path: Path) -> None:
    host, event = path.parent.name, path.stem.partition("__")[0]
    if event.endswith("stop"):
        writes(team, json.loads(path.read_text()))
    answer, _, code = asked(team, json.loads(path.read_text()))
    jsonschema.validate(answer, schema_of(host, event))
    refused_by_exit = name_of(path) == "claude/task-completed"
    assert code == (2 if refused_by_exit else 0)
    assert (answer != {}) is (name_of(path) in SPEAKS)


@pytest.mark.parametrize("path", RECORDED, ids=name_of)
def test_the_event_may_be_named_and_the_host_too(team: Team, path: Path) -> None:
    told = json.loads(path.read_text())
    event = path.stem.partition("__")[0]
    named = asked(team, told, event, path.parent.name)
    assert named[0].keys() == asked(team, told)[0].keys()


@pytest.mark.proves("hosts:2", "hosts:10", "hosts:13")
@pytest.mark.parametrize("row", HOSTS, ids=lambda row: row.name)
def test_every_event_that_a_host_asks_has_a_recorded_input_and_a_schema(row: Any) -> None:
    recorded = {path.stem.partition("__")[0] for path in RECORDED if path.parent.name == row.name}
    recorded |= {path.stem.split("__")[1] for path in REAL if path.stem.startswith(row.name)}
    schemas = {path.stem for path in SCHEMAS if path.parent.name == row.name}
    assert schemas == set(row.events) <= recorded


@pytest.mark.parametrize("path", SCHEMAS, ids=name_of)
def test_no_answer_of_any_kind_leaves_its_schema(path: Path) -> None:
    event, host = path.stem, path.parent.name
    for told in (
        HookAnswer(),
        HookAnswer("no\nInstead: yes"),
        HookAnswer(context="look"),
        HookAnswer("x" * 20_000, "y" * 20_000, "z"),
    ):
        jsonschema.validate(output_of(event, host, told).stdout, schema_of(host, event))


def test_a_long_answer_is_cut_below_what_hosts_take() -> None:
    said = output_of("stop", "claude", HookAnswer("x" * 20_000)).stdout
    assert LONGEST < len(said["reason"]) < 10_000


# --- what is said ---


def test_a_write_is_answered_with_every_fault_and_its_repair(team: Team) -> None:
    team.artifact("critique.jsonl", '{"id":"C1",}\n')
    told = {"hook_event_name": "PostToolUse", "cwd": str(team.root), "tool_name": "Write"}
    answer, _, _ = asked(team, told | {"tool_input": {"file_path": f"{PHASE}/critique.jsonl"}})
    assert answer["decision"] == "block"
    assert "json_parse_error" in answer["reason"]
    assert '+{"id":"C1"}' in answer["reason"]


def test_a_valid_write_and_a_write_elsewhere_are_let_be(team: Team) -> None:
    team.example("research/ok/findings.jsonl", "research.jsonl")
    told = {"hook_event_name": "PostToolUse", "cwd": str(team.root), "tool_name": "Write"}
    for path in (f"{PHASE}/research.jsonl", f"{PHASE}/notes.md", "src/a.ts"):
        assert asked(team, told | {"tool_input": {"file_path": path}}) == ({}, "", 0)


def test_what_a_shell_wrote_is_judged_as_well(team: Team) -> None:
    given = {"command": f"echo '{{}}' > {PHASE}/critique.jsonl"}
    told = {
        "hook_event_name": "PostToolUse",
        "cwd": str(team.root),
        "tool_name": "Bash",
        "tool_input": given,
    }
    assert asked(team, told)[0]["decision"] == "block"


@pytest.mark.proves("hosts:5")
def test_a_stop_is_blocked_once_while_a_valid_artifact_is_in_no_commit(team: Team) -> None:
    (team.root / PHASE / "critique.jsonl").unlink()
    team.example("research/ok/findings.jsonl", "research.jsonl")
    told = {"hook_event_name": "Stop", "cwd": str(team.root), "stop_hook_active": False}
    told["session_id"] = "s1"
    writes(team, told, "research.jsonl")
    first = asked(team, told)[0]
    assert "research.jsonl: valid, but in no commit; run 'yolo-fs run --once'" in first["reason"]
    assert asked(team, told | {"stop_hook_active": True})[0] == {}
    team.once()
    assert asked(team, told)[0] == {}


def test_a_session_that_moved_to_another_work_tree_answers_for_what_it_left_in_the_first(
    team: Team,
) -> None:
    told = {"hook_event_name": "Stop", "stop_hook_active": False, "session_id": "s1"}
    team.artifact("gaps.jsonl", '{"id":"G1"}\n')
    writes(team, told | {"cwd": str(team.root)}, "gaps.jsonl")
    team.git("worktree", "add", "-q", "-b", "feature", "../elsewhere")
    there = {"cwd": str(team.root.parent / "elsewhere")}

    assert f"../{team.root.name}/{PHASE}/gaps.jsonl" in asked(team, told | there)[0]["reason"]
    assert asked(team, told | there | {"session_id": "s2"})[0] == {}


@pytest.mark.proves("hosts:5")
def test_a_subagent_answers_for_its_own_artifacts_alone(team: Team) -> None:
    told = {"hook_event_name": "SubagentStop", "cwd": str(team.root)}
    assert asked(team, told | {"agent_type": "yolo-critic"})[0]["decision"] == "block"
    team.artifact("01-01.summary.jsonl", "{}\n")
    assert asked(team, told | {"agent_type": "yolo-dev"})[0]["decision"] == "block"
    assert asked(team, told | {"agent_type": "yolo-fe-dev"})[0] == {}


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        ("yolo-criitc", "criitc is not an agent of this company. Did you mean critic?"),
        ("Explore", ""),
    ],
)
def test_an_agent_that_there_is_not_is_told_so_as_it_starts(
    team: Team, agent: str, told: str
) -> None:
    starts = {"hook_event_name": "SubagentStart", "agent_type": agent, "cwd": str(team.root)}
    said = str(asked(team, starts)[0])
    assert (told in said) if told else said == "{}"


@pytest.mark.proves("hosts:5", "hosts:14")
@pytest.mark.parametrize(
    ("told", "is_held"),
    [
        ({"session_id": "s1", "hook_event_name": "Stop"}, True),
        ({"session_id": "s2", "hook_event_name": "Stop"}, False),
        ({"hook_event_name": "Stop"}, False),
        ({"session_id": "s1", "agent_id": "a1", "agent_type": "general-purpose"}, False),
        ({"session_id": "s1", "agent_id": "a2", "agent_type": "yolo-critic"}, True),
        ({"session_id": "s1", "agent_id": "a3", "agent_type": "yolo-dev"}, False),
        ({"conversation_id": "s1", "hook_event_name": "stop", "status": "completed"}, True),
        ({"conversation_id": "s1", "hook_event_name": "stop", "status": "aborted"}, False),
    ],
)
def test_only_who_wrote_a_fault_or_whose_step_it_is_is_held_back(
    team: Team, told: dict[str, Any], is_held: bool
) -> None:
    writes(team, {"session_id": "s1"})
    asks = {"hook_event_name": "SubagentStop", **told, "cwd": str(team.root)}
    assert bool(asked(team, asks)[0]) is is_held


@pytest.mark.proves("hosts:6")
@pytest.mark.parametrize(
    ("subject", "code"),
    [
        ("01-01 T1 load the keys", 0),
        ("01-01/T2: sign", 2),
        ("feat(01-01): T2 sign", 2),
        ("Tidy up", 0),
        ("99-01 T1", 0),
    ],
)
def test_a_task_is_done_when_a_commit_names_it(team: Team, subject: str, code: int) -> None:
    team.file("src/auth/keys.ts", "export {}\n")
    team.user_commits("feat(01-01): T1 load the keys", "src/auth/keys.ts")
    told = {
        "hook_event_name": "TaskCompleted",
        "cwd": str(team.root),
        "task_id": "1",
        "task_subject": subject,
    }
    answer, complaint, found = asked(team, told)
    assert (answer, found, "No commit names 01-01/T2" in complaint) == ({}, code, code == 2)


def test_a_subagent_is_told_its_own_work_and_what_it_never_receives(team: Team) -> None:
    told = {"hook_event_name": "SubagentStart", "cwd": str(team.root), "agent_type": "yolo-dev"}
    context = asked(team, told)[0]["hookSpecificOutput"]["additionalContext"]
    assert "# yolo-fs resume" in context
    assert "dev never receives: architecture.toon" in context
    assert asked(team, told | {"agent_type": "Explore"})[0] == {}


@pytest.mark.parametrize("agent", ["dev", "tester", "qa", "qa-code", "senior", "architect", "lead"])
def test_what_a_subagent_is_told_that_it_receives_it_may_read(team: Team, agent: str) -> None:
    told = {
        "hook_event_name": "SubagentStart",
        "cwd": str(team.root),
        "agent_type": f"yolo-{agent}",
    }
    context = asked(team, told)[0]["hookSpecificOutput"]["additionalContext"]
    line = next((one for one in context.splitlines() if one.startswith(f"{agent} receives:")), "")
    named = "01-CONTEXT-backend.md" in line
    assert "{phase}" not in context
    path = f"{team.root}/.yolo-planning/phases/01-auth/01-CONTEXT-backend.md"
    read = {"hook_event_name": "PreToolUse", "cwd": str(team.root), "tool_name": "Read"}
    answer = asked(team, read | {"tool_input": {"file_path": path}, "agent_type": f"yolo-{agent}"})
    refused = "never receives" in json.dumps(answer)
    assert not (named and refused), line
    assert named == (agent in ("architect", "lead")), line


@pytest.mark.parametrize(
    ("policy", "exists", "refused"),
    [
        ("existing", True, True),
        ("existing", False, False),
        ("kept", False, True),
        ("always", False, True),
        ("never", True, False),
    ],
)
def test_a_state_file_is_refused_where_the_daemon_keeps_it(
    team: Team, policy: str, exists: bool, refused: bool
) -> None:
    team.config({"yolo_fs": {"state_files": policy}})
    (team.root / ".yolo-planning/state.json").unlink(missing_ok=True)
    if exists:
        team.file(".yolo-planning/state.json", "{}\n")
    told = {"hook_event_name": "PreToolUse", "cwd": str(team.root), "tool_name": "Write"}
    answer = asked(team, told | {"tool_input": {"file_path": ".yolo-planning/state.json"}})[0]
    assert (answer != {}) is refused


def test_the_files_of_each_plan_that_is_open_may_be_written(team: Team) -> None:
    plan = (EXAMPLES / "plan/ok/first_wave.jsonl").read_text()
    team.artifact("01-02.plan.jsonl", plan.replace('"n":"01"', '"n":"02"').replace("src/", "lib/"))
    team.once()
    told = {
        "hook_event_name": "PreToolUse",
        "cwd": str(team.root),
        "tool_name": "Write",
        "agent_type": "yolo-dev",
    }
    answers = [
        asked(team, told | {"tool_input": {"file_path": f"{name}/auth/keys.ts"}})[0]
        for name in ("src", "lib", "etc")
    ]
    assert [answer == {} for answer in answers] == [True, True, False]


def test_a_link_into_the_planning_tree_leads_around_nothing(team: Team) -> None:
    (team.root / "link").symlink_to(team.root / PHASE)
    told = {"hook_event_name": "PreToolUse", "cwd": str(team.root), "tool_name": "Write"}
    assert (
        asked(team, told | {"tool_input": {"file_path": "link/.dept-status-backend.json"}})[0] != {}
    )


def test_the_agent_may_be_named_by_the_planning_tree(team: Team) -> None:
    told = {"hook_event_name": "PreToolUse", "cwd": str(team.root), "tool_name": "Read"}
    told["tool_input"] = {"file_path": f"{PHASE}/critique.jsonl"}  # type: ignore[assignment]
    assert asked(team, told)[0] == {}
    team.file(".yolo-planning/.active-agent", "yolo-dev\n")
    assert (
        "never receives" in asked(team, told)[0]["hookSpecificOutput"]["permissionDecisionReason"]
    )


# --- whatever it is told ---

ODD = {
    "nothing": b"",
    "blank": b" \n",
    "no JSON": b"{not json",
    "a list": b"[]",
    "a text": b'"x"',
    "no UTF-8": b"\xff\xfe{}",
    "deep": b"[" * 200_000,
    "unknown event": b'{"hook_event_name":"MoonRise"}',
    "event of another type": b'{"hook_event_name":{"a":1}}',
    "fields of other types": b'{"hook_event_name":"PreToolUse","cwd":7,"tool_name":[],"tool_input":"x","agent_type":3}',
    "NUL in a path": b'{"hook_event_name":"PreToolUse","tool_name":"Write","tool_input":{"file_path":"a\\u0000/.yolo-planning/b"}}',
    "NUL in a command": b'{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm -rf .yolo-planning/a\\\\u0000\\u0000b"}}',
    "pattern of a thousand folders": b'{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm .yolo-planning/*/%sx"}}'
    % (b"a/" * 1000),
    "no such folder": b'{"hook_event_name":"PreToolUse","cwd":"/no/such","tool_name":"Write","tool_input":{"file_path":".yolo-planning/x"}}',
    "unknown fields": b'{"hook_event_name":"Stop","stop_hook_active":"maybe","new":{"field":1}}',
    "command of odd things": b'{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":[1,null,".yolo-planning/x"]}}',
    "surrogate": b'{"hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{"file_path":".yolo-planning/\\ud800"}}',
}


def hook(cwd: Path, given: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
    ended = forked.call(["hook", *words], cwd, os.environ, given)
    return subprocess.CompletedProcess(words, *ended)


@pytest.mark.parametrize("given", ODD.values(), ids=ODD.keys())
def test_odd_input_is_survived_without_traceback_or_block(team: Team, given: bytes) -> None:
    (team.root / PHASE / "critique.jsonl").unlink()
    done = hook(team.root, given)
    assert (done.returncode, json.loads(done.stdout)) == (0, {})
    assert b"Traceback" not in done.stderr


@pytest.mark.proves("hosts:7")
def test_a_hook_for_what_is_not_ours_needs_nothing_but_the_standard_library(tmp_path: Path) -> None:
    given = {"tool_name": "Write", "tool_input": {"file_path": "src/app.py"}, "cwd": str(tmp_path)}
    alone = f"import sys; sys.path.insert(0, {str(PACKAGE)!r}); from yolo_fs.__main__ import start; start()"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", alone, "hook", "pre-tool-use"], cwd=tmp_path,
        input=json.dumps(given).encode(), capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, b"{}\n", b"")


@pytest.mark.parametrize("sign", ["\0", "\0\0"])
def test_a_sign_that_a_shell_drops_hides_no_file(team: Team, sign: str) -> None:
    status = f"{PHASE}/.dept-status-backend.json"
    for place in (f"{PHASE}/.dept-", ".yolo-", ""):
        spelled = status.replace(place, f"{place}{sign}") if place else f"{sign}{status}"
        told = {"hook_event_name": "PreToolUse", "cwd": str(team.root), "tool_name": "Bash"}
        said, _, _ = asked(team, told | {"tool_input": {"command": f"echo {{}} > {spelled}"}})
        assert "under its lock" in said["hookSpecificOutput"]["permissionDecisionReason"]


@pytest.mark.parametrize(
    "words", [["moon-rise"], [], ["--no-such"], ["stop", "extra", "--host"], ["-C"]]
)
def test_odd_arguments_never_block_a_session(tmp_path: Path, words: list[str]) -> None:
    done = hook(tmp_path, b"{}", *words)
    assert (done.returncode, done.stdout) == (0, b"{}\n")


def test_ten_megabytes_are_answered(team: Team) -> None:
    given = {"file_path": f"{PHASE}/.dept-status-backend.json", "content": "x" * 10_000_000}
    told = {
        "hook_event_name": "PreToolUse",
        "cwd": str(team.root),
        "tool_name": "Write",
        "tool_input": given,
    }
    done = hook(team.root, json.dumps(told).encode())
    assert json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"


@pytest.mark.parametrize("half", [b"\\ude00", b"\xed\xb8\x80"], ids=["escaped", "bytes"])
def test_half_a_character_in_a_command_hides_nothing_else_of_it(team: Team, half: bytes) -> None:
    command = f"rm .yolo-planning/0HALF/* {PHASE}/.dept-status-backend.json".encode()
    given = b'{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"%s"}}'
    done = hook(team.root, given % command.replace(b"HALF", half))
    assert json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"


@pytest.mark.parametrize("event", sorted(AGENT_HOOK_BY_NAME))
def test_a_work_tree_without_git_gets_an_answer(tmp_path: Path, event: str) -> None:
    (tmp_path / PHASE).mkdir(parents=True)
    given = {
        "tool_name": "Write",
        "tool_input": {"file_path": f"{PHASE}/critique.jsonl"},
        "agent_type": "yolo-dev",
    }
    done = hook(tmp_path, json.dumps(given).encode(), event)
    assert done.returncode == 0
    assert isinstance(json.loads(done.stdout), dict)
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "error", [YoloError(Reason.GIT_TIMEOUT), RuntimeError("a defect"), RecursionError()]
)
def test_a_failure_of_ours_breaks_no_session(
    team: Team,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
) -> None:
    def fail(_: object) -> HookAnswer:
        raise error

    monkeypatch.setattr(agent_events, "answer", fail)
    monkeypatch.setattr(hook_question, "read_input", lambda: b"{}")
    assert hook_fast.main(["stop", "-C", str(team.root)]) == 0
    out, err = capsys.readouterr()
    assert (out, "hook" in err) == ("{}\n", True)


@pytest.mark.parametrize("broken", ["{", "[]", '{"yolo_fs":{"strict":7}}', "\0"])
def test_a_broken_configuration_opens_no_guard(team: Team, broken: str) -> None:
    team.file(".yolo-planning/config.json", broken)
    told = {"hook_event_name": "PreToolUse", "cwd": str(team.root), "tool_name": "Write"}
    answer, note, code = asked(
        team, told | {"tool_input": {"file_path": f"{PHASE}/.handoff-ux-complete"}}
    )
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert (code, "bad_config" in note) == (0, True)


def test_while_the_configuration_is_broken_the_last_good_one_holds(team: Team) -> None:
    told = {"hook_event_name": "PreToolUse", "cwd": str(team.root), "tool_name": "Write"}
    told |= {"tool_input": {"file_path": ".yolo-planning/state.json"}}
    (team.root / ".yolo-planning/state.json").unlink(missing_ok=True)
    assert asked(team, told)[0] != {}
    team.file(".yolo-planning/config.json", '{"yolo_fs":{"state_files":"never"}}')
    assert asked(team, told)[0] == {}
    team.file(".yolo-planning/config.json", '{"yolo_fs":{"state_files":"always"')
    assert asked(team, told)[0] == {}


# --- the fast path ---


def test_the_fast_path_knows_every_event_and_the_same_names() -> None:
    assert set(hook_fast.NEEDS) == set(AGENT_HOOK_BY_NAME)
    assert {row.role for row in AGENT_BY_NAME.values()} == hook_question.AGENTS
    assert set(hook_fast._READERS) == {name for name, act in TOOLS.items() if act is ToolAct.READ}


FREE: list[dict[str, Any]] = [
    {
        "hook_event_name": "PreToolUse",
        "tool_name": "Write",
        "tool_input": {"file_path": "src/a.ts"},
    },
    {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "npm test"}},
    {
        "hook_event_name": "PreToolUse",
        "tool_name": "Read",
        "tool_input": {"file_path": "README.md"},
    },
    {
        "hook_event_name": "PreToolUse",
        "tool_name": "Edit",
        "tool_input": {"file_path": "a"},
        "agent_type": "Explore",
    },
    {
        "hook_event_name": "PostToolUse",
        "tool_name": "Write",
        "tool_input": {"file_path": "src/a.ts"},
    },
    {"hook_event_name": "UserPromptSubmit", "prompt": "go"},
    {"hook_event_name": "SessionEnd"},
    {"hook_event_name": "Stop", "stop_hook_active": True},
]


@pytest.mark.parametrize("told", FREE, ids=lambda told: told["hook_event_name"])
def test_nothing_but_the_standard_library_is_read_when_nothing_of_ours_is_touched(
    team: Team, told: dict[str, Any]
) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "yolo_fs", "hook"]
    given = json.dumps(told | {"cwd": str(team.root)}).encode()
    done = subprocess.run(command, input=given, capture_output=True, timeout=60, check=True)
    loaded = {line.rpartition(b"|")[2].strip().decode() for line in done.stderr.splitlines()}
    assert {name for name in loaded if name.startswith("yolo_fs")} <= {
        "yolo_fs",
        "yolo_fs.cli",
        "yolo_fs.cli.entry",
        "yolo_fs.cli.hook_fast",
        "yolo_fs.cli.hook_question",
        "yolo_fs.core",
        "yolo_fs.core.tool_calls",
        "yolo_fs.system",
        "yolo_fs.system.heartbeats",
        "yolo_fs.core.foreign_json",
        "yolo_fs.system.ask",
        "yolo_fs.system.warm_path",
    }
    assert not loaded & {"click", "pydantic", "git", "typing"}


# --- after a compaction ---


def test_the_prompt_after_a_compaction_brings_the_brief_back_once(team: Team) -> None:
    compacted, prompt = (
        json.loads((FIXTURES / f"codex/{name}.json").read_text())
        for name in ("post-compact", "user-prompt-submit")
    )
    assert asked(team, prompt) == ({}, "", 0)
    assert asked(team, compacted) == ({}, "", 0)
    other, _, _ = asked(team, prompt | {"session_id": "another"})
    first, _, _ = asked(team, prompt)
    again, _, _ = asked(team, prompt)
    assert "01-auth" in first["hookSpecificOutput"]["additionalContext"]
    assert (other, again) == ({}, {})
    jsonschema.validate(first, schema_of("codex", "user-prompt-submit"))


def test_no_name_of_a_session_leads_a_mark_elsewhere(team: Team, tmp_path: Path) -> None:
    told = json.loads((FIXTURES / "codex/post-compact.json").read_text())
    before = {path for path in tmp_path.rglob("*") if ".git" not in path.parts}
    for name in ("../../x", "/etc/x", "a\0b", "", "\udc80"):
        assert asked(team, told | {"session_id": name})[2] == 0
    assert {path for path in tmp_path.rglob("*") if ".git" not in path.parts} == before


@pytest.mark.parametrize("event", ["stop", "pre-tool-use"])
@pytest.mark.parametrize("is_cold", [False, True])
def test_a_host_that_keeps_the_stream_open_is_answered(
    team: Team, event: str, is_cold: bool
) -> None:
    told = {"session_id": "s", "cwd": str(team.root), "tool_name": "Write"}
    told |= {"tool_input": {"file_path": f"{team.root}/x"}}
    with subprocess.Popen(
        [sys.executable, "-m", "yolo_fs", "hook", event, "--host", "claude"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "YOLO_FS_COLD": "1" if is_cold else ""},
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        text = json.dumps(told).encode()
        for part in (text[:20], text[20:] + b"\n"):
            process.stdin.write(part)
            process.stdin.flush()
        answer = process.stdout.readline()  # while the stream is open
    assert json.loads(answer) == {}


def test_the_guard_waits_for_a_question_that_comes_late_through_a_pipe_that_does_not_wait(
    team: Team,
) -> None:
    told = {"session_id": "s", "cwd": str(team.root), "tool_name": "Bash"}
    told |= {"tool_input": {"command": "rm -rf .yolo-planning"}}
    given, asking = os.pipe()
    os.set_blocking(given, False)
    with subprocess.Popen(
        [sys.executable, "-m", "yolo_fs", "hook", "pre-tool-use", "--host", "claude"],
        stdin=given,
        stdout=subprocess.PIPE,
    ) as process:
        while not os.get_blocking(given) and process.poll() is None:
            time.sleep(0.01)  # until it has taken the pipe, or has given up
        os.close(given)
        with open(asking, "wb") as question:
            question.write(json.dumps(told).encode())
        answer = json.loads(process.communicate()[0])
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_a_host_in_a_link_to_a_folder_of_the_repository_is_guarded_and_told_where_the_team_stands(
    team: Team, tmp_path: Path
) -> None:
    (team.root / "web").mkdir()
    (tmp_path / "link").symlink_to(team.root / "web")
    told = {"session_id": "s", "cwd": str(tmp_path / "link"), "hook_event_name": "PreToolUse"}
    told |= {"tool_name": "Bash", "tool_input": {"command": "rm -rf ../.yolo-planning"}}
    denied = asked(team, told)[0]
    assert denied["hookSpecificOutput"]["permissionDecision"] == "deny"
    begun = asked(team, {**told, "hook_event_name": "SessionStart"})[0]
    assert "01-auth" in begun["hookSpecificOutput"]["additionalContext"]
    assert line(str(tmp_path / "link")) == line(str(team.root)) != ""
    status = [sys.executable, "-m", "yolo_fs", "status", "-C", str(tmp_path / "link")]
    assert b"01-auth" in subprocess.run(status, capture_output=True, check=True).stdout


def test_the_prefix_of_a_plugin_is_no_part_of_the_role(team: Team) -> None:
    told = {"session_id": "s", "cwd": str(team.root), "hook_event_name": "SessionStart"}
    plain, prefixed = (
        asked(team, told | {"agent_type": name})[0] for name in ("yolo-dev", "yolo:yolo-dev")
    )
    assert prefixed == plain and plain


@pytest.mark.parametrize("event", [*AGENT_HOOK_BY_NAME, "no-event"])
def test_the_inner_question_of_a_hook_may_be_about_any_event(team: Team, event: str) -> None:
    told = json.dumps({"cwd": str(team.root), "session_id": "s", "tool_input": {}}).encode()
    asked = ["hook-in-full", event, "claude", str(team.root)]
    done = forked.call(asked, team.root, os.environ, told)
    assert done.code == 0, done.err
    assert isinstance(json.loads(done.out)[0], dict)


@pytest.mark.parametrize("given", [b"[" * 1_000_000, b'{"a":' * 1_000_000, b"", b"\xff"])
def test_the_inner_question_of_a_hook_may_be_anything(tmp_path: Path, given: bytes) -> None:
    done = forked.call(["hook-in-full", "stop", "claude", "."], tmp_path, os.environ, given)
    assert (done.code, json.loads(done.out)[0]) == (0, {})
    assert "nothing was checked" in json.loads(done.out)[1]


@pytest.mark.parametrize("link", ["apps/web/.local/directives", "apps", ".yolo-planning"])
def test_handoffs_are_looked_for_in_the_repository_and_nowhere_that_a_link_leads(
    team: Team, tmp_path: Path, link: str
) -> None:
    written = {"tool_name": "Write", "tool_input": {"file_path": str(team.root / "src/x.py")}}
    question = ("pre-tool-use", "claude", str(team.root), written)
    folder = team.root / (hook_fast.DIRECTIVES if link.startswith("apps") else PHASE) / "one"
    folder.mkdir(parents=True)
    (folder / "HANDOFF.md").write_text("x\n")
    assert hook_fast.is_needed(question)
    (team.root / link).rename(tmp_path / "outside")
    (team.root / link).symlink_to(tmp_path / "outside")
    assert not hook_fast.is_needed(question)
