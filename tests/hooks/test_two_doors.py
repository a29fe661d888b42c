"""Hooks and MCP give the same answer: whoever asks, by whatever tool, for whatever file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hooks.test_pre_tool_use import PHASE, made_team
from tests.support.teams import Team
from yolo_fs.cli import hook_fast
from yolo_fs.hooks.effects import Effect
from yolo_fs.mcp.refusal import ToolRefusedError
from yolo_fs.mcp.tools import Tools
from yolo_fs.mcp.writing import ArtifactWriter, Caller

ROLES = ("yolo-dev", "yolo-lead", "yolo-critic", "yolo-fe-dev", "yolo-ux-lead")
SPECS = f"{PHASE}/component-specs.jsonl"
SEALED = (".env", ".git/config", "credentials.json", "certs/server.PEM", ".git/yolo-fs/note.json")
PATHS = (
    *SEALED[:2],
    "node_modules/x/index.js",
    "src/auth/tokens.ts",
    "src/other.ts",
    ".yolo-planning/ROADMAP.md",
    f"{PHASE}/critique.jsonl",
    f"{PHASE}/architecture.toon",
    f"{PHASE}/01-01.plan.jsonl",
    f"{PHASE}/01-CONTEXT-uiux.md",
    f"{PHASE}/.dept-status-backend.json",
    SPECS,
)
READERS = {
    "Read": "file_path",
    "mcp__yolo-fs__check": "path",
    "mcp__fs__read_multiple_files": "paths",
    "ReadMcpResourceTool": "uri",
}
WRITERS = {"Write": "file_path", "mcp__yolo-fs__write": "path", "mcp__fs__edit_file": "path"}


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_CONFIG_HOME", str(home / "no config"))
        team = made_team(home)
        for path in {*PATHS, *SEALED}:
            if not (team.root / path).exists():
                team.file(path, "{}\n")
        yield team


def hook(team: Team, agent: str, tool: str, given: dict[str, Any], below: str = "") -> str:
    """Return why a tool is refused; nothing when it may run."""
    told = {
        "hook_event_name": "PreToolUse", "cwd": str(team.root / below), "tool_name": tool,
        "tool_input": given, **({"agent_type": agent} if agent else {}),
    }  # fmt: skip
    answer, _, code = hook_fast.answer(json.dumps(told).encode())
    assert code == 0
    return str(answer.get("hookSpecificOutput", {}).get("permissionDecisionReason", ""))


def served(team: Team, agent: str, path: str, effect: Effect) -> bool:
    try:
        caller = Caller(str(team.root), agent)
        (caller.readable if effect is Effect.READ else caller.writable)(path)
    except ToolRefusedError:
        return False
    return True


def spelled(tool: str, key: str, path: str) -> dict[str, Any]:
    if key == "uri":
        return {"server": "yolo-fs", "uri": f"yolo-fs://artifacts/{path}"}
    return {key: [path] if key == "paths" else path}


@pytest.mark.parametrize("role", ROLES)
def test_every_door_says_the_same_of_every_file(team: Team, role: str) -> None:
    differing = []
    for effect, tools in ((Effect.READ, READERS), (Effect.WRITE, WRITERS)):
        for path in PATHS:
            answers = {"server": served(team, role, path, effect)}
            answers |= {
                tool: not hook(team, role, tool, spelled(tool, key, path))
                for tool, key in tools.items()
            }
            if len(set(answers.values())) != 1:
                differing.append((str(effect), path, answers))
    assert not differing


def test_the_table_has_both_answers(team: Team) -> None:
    given = [served(team, role, path, Effect.READ) for role in ROLES for path in PATHS]
    assert 10 < given.count(True) < len(given) - 10


@pytest.mark.parametrize("role", ["", "emperor", "general-purpose", *ROLES])
@pytest.mark.parametrize("path", SEALED)
def test_what_is_sealed_is_nobodys(team: Team, role: str, path: str) -> None:
    for effect in (Effect.READ, Effect.WRITE):
        assert not served(team, role, path, effect)
        assert not served(team, role, f"src/../{path}", effect)
        assert not served(team, role, str(team.root / path), effect)


@pytest.mark.parametrize("who", ["", "emperor"])
def test_whoever_does_not_say_who_they_are_touches_only_what_everybody_may(
    team: Team, who: str
) -> None:
    read = {path for path in PATHS if served(team, who, path, Effect.READ)}
    for path in PATHS:
        everybody = all(served(team, role, path, Effect.READ) for role in ROLES)
        assert path not in read or everybody, path
    written = {path for path in PATHS if served(team, who, path, Effect.WRITE)}
    assert not written & {SPECS, f"{PHASE}/01-01.plan.jsonl", f"{PHASE}/architecture.toon"}
    assert f"{PHASE}/critique.jsonl" in written, "several share it"


# --- spellings and places ---


@pytest.mark.parametrize("below", ["", "src", ".yolo-planning/phases"])
@pytest.mark.parametrize(
    "given",
    [
        {"path": SPECS},
        {"path": f"./{SPECS}"},
        {"path": f"src/../{SPECS}"},
        {"path": SPECS.replace("/", "//")},
        {"uri": f"yolo-fs://artifacts/{SPECS}"},
        {"uri": f"yolo-fs://artifacts/{SPECS.replace('.', '%2e')}"},
        {"options": {"files": [{"name": "x", "path": SPECS}]}},
        {"target": SPECS},
        {"command": f"cat {SPECS}"},
        {"cmd": ["cat", f"@ROOT@/{SPECS}"]},
        {"uri": f"file://@ROOT@/{SPECS}"},
        {"path": "@ROOT@/alias.txt"},
        {"path": "alias.txt"},
    ],
)
def test_no_spelling_leads_around_the_hook(team: Team, below: str, given: dict[str, Any]) -> None:
    alias = team.root / "alias.txt"
    if not alias.is_symlink():
        alias.symlink_to(SPECS)
    if below and "command" in given:
        return  # a shell's own paths are relative to where it stands
    asked = json.loads(json.dumps(given).replace("@ROOT@", str(team.root)))
    assert hook(team, "yolo-dev", "mcp__x__get", asked, below)
    assert not hook(team, "yolo-ux-lead", "mcp__x__get", asked, below)


@pytest.mark.parametrize(
    ("session", "named", "tool", "is_denied"),
    [
        ("yolo-dev", "ux-lead", "mcp__yolo-fs__write", True),
        ("yolo-dev", "yolo-owner", "mcp__yolo-fs__escalate", True),
        ("yolo-dev", "user", "mcp__yolo-fs__escalate", True),
        ("yolo-dev", "emperor", "mcp__yolo-fs__stand", True),
        ("yolo-dev", "lead", "mcp__renamed__escalate", True),
        ("yolo-dev", "lead", "MCP:stand", True),
        ("yolo-dev", "dev", "mcp__yolo-fs__stand", False),
        ("yolo-dev", "dev-1", "mcp__yolo-fs__task", False),
        ("yolo:yolo-dev", "yolo-dev", "mcp__yolo-fs__stand", False),
        ("yolo-fe-dev", "dev", "mcp__yolo-fs__stand", True),
        ("yolo-dev", "gpt-4", "mcp__other__run", False),
        ("yolo-dev", "", "mcp__yolo-fs__stand", False),
        ("", "ux-lead", "mcp__yolo-fs__stand", False),
    ],
)
def test_a_session_speaks_for_its_own_agent_alone(
    team: Team, session: str, named: str, tool: str, *, is_denied: bool
) -> None:
    refusal = hook(team, session, tool, {"action": "list", "agent": named})
    assert bool(refusal) is is_denied, refusal
    assert not is_denied or "cannot act for" in refusal


@pytest.mark.parametrize(
    ("session", "command", "is_denied"),
    [
        ("yolo-dev", "yolo-fs decide supersede critique.jsonl C1 --as critic --reason x", True),
        ("yolo-dev", "yolo-fs decide assign 01-01/T1 --as=lead --reason x", True),
        ("yolo-lead", "yolo-fs decide assign 01-01/T1 --as lead --reason x", False),
        ("yolo-lead", "yolo-fs decide accept 01-01 --as yolo-lead --reason x", False),
        ("yolo-dev", "cd src && yolo-fs escalate resolve E --by user --decision x", True),
        ("yolo-dev", "yolo-fs escalate raise E --by senior --reason x", True),
        ("yolo-dev", "yolo-fs escalate resolve E --as user --decision x", True),
        ("yolo-dev", "python -m yolo_fs escalate open --task 01-01/T1 --from lead", True),
        ("yolo-senior", "yolo-fs escalate raise E --by senior --reason x", False),
        ("yolo-dev", "yolo-fs task claim 01-01/T1 --as dev-1", False),
        ("yolo-dev", "yolo-fs task complete - --as fe-dev", True),
        ("yolo-dev", "yolo-fs task release --as emperor", True),
        ("yolo-dev", 'yolo-fs task release --as "$NAME"', False),
        ("yolo-dev", "YOLO_FS_AGENT=lead yolo-fs decide assign 01-01/T1 --reason x", True),
        ("yolo-dev", "export YOLO_FS_ROLE='lead'; yolo-fs decide assign 01-01/T1", True),
        ("yolo-dev", "env YOLO_FS_AGENT=yolo-critic git commit -m 'docs(01): critique'", True),
        ("yolo-dev", "YOLO_FS_AGENT=yolo-dev yolo-fs task release", False),
        ("yolo-dev", "echo $YOLO_FS_AGENT", False),
        ("", "yolo-fs escalate resolve E --by user --decision x", False),
    ],
)
def test_a_verb_of_ours_speaks_for_the_agent_of_the_session_alone(
    team: Team, session: str, command: str, *, is_denied: bool
) -> None:
    refusal = hook(team, session, "Bash", {"command": command})
    assert bool(refusal) is is_denied, refusal
    assert not is_denied or "cannot act for" in refusal


@pytest.mark.parametrize("session", ["yolo-dev", "yolo-lead"])
def test_a_branch_of_a_whole_phase_is_the_users_to_make(team: Team, session: str) -> None:
    refusal = hook(team, session, "Bash", {"command": "yolo-fs squash 1 --write"})
    assert "person" in refusal or "user" in refusal, refusal
    assert not hook(team, session, "Bash", {"command": "yolo-fs squash 1"})


@pytest.mark.parametrize(
    "command", ["chmod -x", "chmod 644", "chmod --reference=a", "chattr +i", "chown x", "mkdir -p"]
)
def test_the_mode_of_what_is_gits_own_is_no_agents_to_change(team: Team, command: str) -> None:
    """Its mode alone decides whether a hook runs."""
    for path in (".git/hooks/pre-commit", "./.GIT/hooks/commit-msg"):
        assert "git's own" in hook(team, "yolo-dev", "Bash", {"command": f"{command} {path}"})
    assert not hook(team, "yolo-dev", "Bash", {"command": f"{command} src/auth/run.sh"})


def test_a_guarded_file_is_nobodys_to_write_by_a_server(team: Team) -> None:
    path = f"{PHASE}/.dept-status-backend.json"
    for tool, given in (
        ("mcp__fs__write_file", {"path": path}),
        ("mcp__fs__delete_file", {"path": path}),
        ("mcp__fs__move_file", {"source": "a", "destination": path}),
        ("mcp__fs__write_file", {"x": {"y": [{"z": path.replace(".", "%2e")}]}}),
        ("mcp__fs__delete_directory", {"path": ".yolo-planning"}),
        ("mcp__shell__run", {"command": f"echo x > {path}"}),
    ):
        assert hook(team, "", tool, given), given
    assert not hook(team, "", "mcp__fs__read_file", {"path": path})


@pytest.mark.parametrize("given", [{}, {"path": "@ROOT@"}, {"path": "."}])
@pytest.mark.parametrize(
    "chosen",
    [".env", "**/.env*", "{.env,x}", "*.py,.env", "component-specs.jsonl", f"**/{SPECS}", "component-*.jsonl"],
)  # fmt: skip
def test_a_search_that_chooses_a_file_by_its_name_reads_it(
    team: Team, given: dict[str, Any], chosen: str
) -> None:
    folder = {key: value.replace("@ROOT@", str(team.root)) for key, value in given.items()}
    assert hook(team, "yolo-dev", "Grep", {"pattern": ".", "glob": chosen, **folder})
    where = folder.get("path", ".")
    assert hook(team, "yolo-dev", "Bash", {"command": f"grep -r --include='{chosen}' . {where}"})
    assert hook(team, "yolo-dev", "Bash", {"command": f"rg --hidden -g '{chosen}' . {where}"})


@pytest.mark.parametrize(
    "chosen", ["*.jsonl", "*.ts", "*", "tokens.ts", "!.env", "absent.jsonl", "src/**"]
)
def test_a_search_that_names_nobody_elses_file_goes_on(team: Team, chosen: str) -> None:
    assert not hook(team, "yolo-dev", "Grep", {"pattern": ".", "glob": chosen})
    for command in (
        f"rg -g '{chosen}' todo src",
        f"rg --glob='{chosen}' todo",
        "rg '-g!.env' todo",
    ):
        assert not hook(team, "yolo-dev", "Bash", {"command": command})
    for option in ("--exclude=.env", "--exclude .env", "--exclude-dir=.git"):
        assert not hook(team, "yolo-dev", "Bash", {"command": f"grep -r {option} todo src"})


@pytest.mark.parametrize(
    "path", [SPECS, f"{PHASE}/.dept-status-backend.json", f"{PHASE}/architecture.toon"]
)
def test_what_a_server_gives_is_written_where_a_call_says(team: Team, path: str) -> None:
    """Some hosts save a resource in the work tree, and servers their pictures and pages."""
    asked = {"server": "x", "uri": "x://page"}
    assert hook(team, "yolo-dev", "FetchMcpResource", {**asked, "downloadPath": path})
    assert not hook(
        team, "yolo-dev", "FetchMcpResource", {**asked, "downloadPath": "src/auth/tokens.ts"}
    )
    for tool, key in (
        ("mcp__browser__browser_take_screenshot", "filename"), ("mcp__web__download", "target"),
        ("mcp__web__print", "outputPath"), ("mcp__web__export_page", "file"),
    ):  # fmt: skip
        assert hook(team, "yolo-dev", tool, {key: path}), tool


# --- what `check` tells ---


def test_nothing_outside_is_told_apart(team: Team, tmp_path: Path) -> None:
    there, absent = tmp_path / "there.jsonl", tmp_path / "absent.jsonl"
    there.write_text('{"password":"hunter2"}\n')
    (team.root / "link").symlink_to(tmp_path)
    up = "../" * 20 + str(tmp_path).lstrip("/")
    for who in ("", "yolo-dev"):
        tools = Tools(str(team.root), who)
        for place in (str(tmp_path), up, "link", f"src/../{up}", f"~/../..{tmp_path}"):
            told = set()
            for file in (there, absent):
                for kind in ("", "artifact/gaps"):
                    for text in ("", "{}\n"):
                        with pytest.raises(ToolRefusedError) as refused:
                            tools.validate_artifact(f"{place}/{file.name}", text, kind)
                        told.add(str(refused.value).replace(file.name, ""))
                with pytest.raises(ToolRefusedError) as refused:
                    tools.handoff("check", f"{place}/{file.name}")
                told.add(str(refused.value).replace(file.name, ""))
            assert len(told) == 1, told
            assert "path_escapes" in told.pop()
    (team.root / "link").unlink()


def test_no_value_is_told_of_a_file_that_is_not_the_callers_to_read(team: Team) -> None:
    hidden = '{"id":"hunter2-HIDDEN","nonsense":"hunter2-HIDDEN"}\n'
    team.file(SPECS, hidden)
    whole = [
        Tools(str(team.root), "yolo-dev").validate_artifact(),
        Tools(str(team.root)).validate_artifact(),
    ]
    whole += [Tools(str(team.root), "yolo-dev").validate_artifact(path=".yolo-planning")]
    for answer in whole:
        assert any(fault.path == SPECS for fault in answer.faults), "that it is wrong is no secret"
        assert "HIDDEN" not in json.dumps(answer.data) + answer.text + str(answer.faults)
        assert not any("nonsense" in str(fault) for fault in answer.faults)
    own = Tools(str(team.root), "yolo-ux-lead").validate_artifact(path=SPECS)
    assert "nonsense" in str(own.faults)


# --- whose word a record is ---

DECISIONS, ESCALATIONS = f"{PHASE}/decisions.jsonl", f"{PHASE}/escalation.jsonl"
REMARK = {"ts": "2026-02-21T08:00:00Z", "agent": "lead", "dec": "accept 01-01", "reason": "small"}
ACCEPTED = REMARK | {"kind": "accept", "of": "01-01"}
STATION = {
    "id": "ESC-01-01-T1", "dt": "2026-02-21T08:00:00Z", "agent": "dev", "reason": "The route needs a decision",
    "sb": "not mine", "tgt": "senior", "sev": "major", "st": "open",
}  # fmt: skip
ANSWERED = STATION | {"agent": "architect", "dt": "2026-02-21T09:00:00Z", "tgt": "lead", "st": "escalated"}  # fmt: skip


def written_by_hand(path: str, record: dict[str, Any], there: str) -> dict[str, tuple[str, Any]]:
    """Return each way in which a host's tool writes a record behind what is there."""
    line = json.dumps(record)
    last = there.splitlines()[-1]
    patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n {last}\n+{line}\n*** End Patch\n"
    whole, edit = f"{there}{line}\n", {"old_string": last, "new_string": f"{last}\n{line}"}
    foreign = {"path": path, "edits": [{"oldText": last, "newText": f"{last}\n{line}"}]}
    return {
        "a whole file": ("Write", {"file_path": path, "content": whole}),
        "a whole file of Cursor": ("Write", {"file_path": path, "contents": whole}),
        "an edit": ("Edit", {"file_path": path, **edit}),
        "several edits": ("MultiEdit", {"file_path": path, "edits": [{"old_string": "x", "new_string": "x"}, edit]}),
        "an edit of Cursor": ("StrReplace", {"path": path, **edit}),
        "a patch": ("apply_patch", {"command": patch}),
        "a patch as a command": ("Bash", {"command": f"apply_patch <<'EOF'\n{patch}EOF"}),
        "a server's write": ("mcp__fs__write_file", {"path": path, "content": whole}),
        "a server's edit": ("mcp__fs__edit_file", foreign),
    }  # fmt: skip


def by_server(team: Team, role: str, path: str, record: dict[str, Any]) -> str:
    """Return why our server refuses to append a record, or to write it with what is there."""
    there = (team.root / path).read_text()
    said = []
    with ArtifactWriter(str(team.root), role) as writer:
        for write in (
            lambda: writer.append(path, record),
            lambda: writer.write(path, f"{there}{json.dumps(record)}\n"),
        ):
            try:
                write()
                said.append("")
            except ToolRefusedError as refused:
                said.append(str(refused))
            (team.root / path).write_text(there)
    assert bool(said[0]) is bool(said[1]), said
    return said[0]


@pytest.mark.parametrize(
    ("role", "path", "record", "whose"),
    [
        ("yolo-dev", DECISIONS, ACCEPTED, "lead"),
        ("yolo-fe-lead", DECISIONS, ACCEPTED, "lead"),
        ("yolo-dev", DECISIONS, ACCEPTED | {"agent": "YOLO-Lead"}, "lead"),
        ("yolo-lead", DECISIONS, ACCEPTED | {"agent": "user", "kind": "accept_risk", "of": "backend"}, "user"),
        ("", DECISIONS, ACCEPTED | {"agent": "user", "kind": "accept_risk", "of": "backend"}, "user"),
        ("yolo-lead", DECISIONS, ACCEPTED, ""),
        ("yolo-dev", DECISIONS, REMARK, ""),
        ("", DECISIONS, ACCEPTED, ""),
        ("yolo-dev", ESCALATIONS, ANSWERED, "architect"),
        ("yolo-dev", ESCALATIONS, STATION | {"dt": "2026-02-21T09:00:00Z", "st": "escalated"}, ""),
    ],
)  # fmt: skip
def test_nobody_writes_the_word_of_another_by_any_tool(
    team: Team, role: str, path: str, record: dict[str, Any], whose: str
) -> None:
    first = (
        STATION
        if path == ESCALATIONS
        else REMARK | {"agent": "senior", "kind": "supersede", "of": "critique.jsonl:C1"}
    )
    team.file(path, json.dumps(first) + "\n")
    answers = {"our server": by_server(team, role, path, record)}
    for way, (tool, given) in written_by_hand(path, record, (team.root / path).read_text()).items():
        answers[way] = hook(team, role, tool, given)
    for way, said in answers.items():
        assert bool(said) is bool(whose), (way, said)
        assert f"record speaks for {whose}" in said if whose else True, (way, said)
        assert ("yolo-fs answer" in said) is (whose == "user"), (way, said)
    (team.root / path).unlink()


def test_an_edit_does_not_put_a_name_of_another_under_a_record(team: Team) -> None:
    team.file(DECISIONS, json.dumps(ACCEPTED | {"agent": "dev"}) + "\n")
    edit = {"file_path": DECISIONS, "old_string": '"agent": "dev"', "new_string": '"agent": "lead"'}
    assert "record speaks for lead" in hook(team, "yolo-dev", "Edit", edit)
    assert not hook(team, "yolo-dev", "Edit", edit | {"new_string": '"agent":  "dev"'})
    (team.root / DECISIONS).unlink()


def test_a_patch_is_judged_by_the_lines_of_the_file_that_they_go_to(team: Team) -> None:
    patch = (
        "*** Begin Patch\n*** Add File: notes.md\n+{line}\n"
        "*** Add File: {path}\n+{own}\n*** End Patch\n"
    )
    own = json.dumps(ACCEPTED | {"agent": "dev"})
    given = patch.format(line=json.dumps(ACCEPTED), path=DECISIONS, own=own)
    assert "record speaks for" not in hook(team, "yolo-dev", "apply_patch", {"command": given})
