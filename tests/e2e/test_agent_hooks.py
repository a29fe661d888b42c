"""An agent's session, asked through the hooks as its host does: what is forbidden is refused, and
nothing else is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.artifacts import artifact
from tests.e2e.daemon import Daemon
from tests.e2e.repo import Repo
from tests.support import forked
from tests.support.teams import THREE, Team
from yolo_fs.cli import hook_fast

GUID = "4f1d2c7a-93b8-4c0e-a6d5-2f8e7b1c9d30"
SESSION = f"apps/web/.local/directives/{GUID}"
BRANCH = "directive/login"
PHASE = ".yolo-planning/phases/01-auth"


# --- a receiver takes over ---


@pytest.fixture
def handed(repo: Repo) -> Repo:
    """Return a repository in which the architect has handed over to the executor on its branch."""
    repo.git("checkout", "-q", "-b", BRANCH)
    repo.file("apps/web/docs/guides/component-paradigm.md", "# Components\n")
    repo.file(
        f"{SESSION}/README.md",
        f"---\nmeta:\n  session_priority: ultra\n  directive_branch: {BRANCH}\n---\n",
    )
    repo.file(f"{SESSION}/tasks/02.md", "# Form\n")
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "chore: directive")
    repo.yolo_fs(
        "handoff", "emit", "--from", "architect", "--to", "executor", "--trigger", "architect_ultra_detected",
        "--session", GUID, "--task", "tasks/02.md", "--objective", "Build the form",
        "--blocking-rule", "architects write no code",
    )  # fmt: skip
    return repo


def let_all_files_be_old(repo: Repo) -> None:
    for path in (repo.root, *repo.root.parent.rglob("*")):
        os.utime(path, (path.stat().st_mtime - 60,) * 2)


@pytest.mark.proves("001:38", "001:60")
def test_the_daemon_judges_and_commits_a_handoff_in_the_folder_of_its_session(handed: Repo) -> None:
    handoff = f"{SESSION}/HANDOFF.md"
    handed.yolo_fs("run", "--once")
    assert handed.git("log", "--format=%s", "--", handoff).splitlines() == ["chore(state): HANDOFF"]

    written = (handed.root / handoff).read_text()
    handed.file(handoff, written.replace(BRANCH, "directive/other"))
    handed.yolo_fs("run", "--once", ok=(0, 1))
    assert f"{handoff}: branch_mismatch" in handed.yolo_fs("status").stdout.decode()
    assert handed.git("log", "--format=%s", "--", handoff).count("HANDOFF") == 1


@pytest.mark.proves("001:38")
def test_a_handoff_of_a_folder_that_git_ignores_stays_local(handed: Repo) -> None:
    handed.file(".gitignore", ".local/\n")
    handed.yolo_fs("run", "--once")
    assert not handed.git("log", "--format=%s", "--", f"{SESSION}/HANDOFF.md")
    assert "HANDOFF.md" not in handed.yolo_fs("status").stdout.decode()


def asked(repo: Repo, event: str, **said: Any) -> dict[str, Any]:
    """Ask the installed command as a host does, and return what it answers."""
    given = json.dumps({"session_id": "s", "cwd": str(repo.root), "hook_event_name": "", **said})
    done = forked.call(["hook", event], repo.root, repo.env, given.encode())
    assert (done.code, done.err) == (0, b"")
    return dict(json.loads(done.out))


def edit(repo: Repo, **said: Any) -> dict[str, Any]:
    """Edit a file unless the hook refuses; return its answer."""
    path = str(repo.root / "src/file1.py")
    answer = asked(repo, "pre-tool-use", tool_name="Edit", tool_input={"file_path": path}, **said)
    if "hookSpecificOutput" not in answer:
        repo.file("src/file1.py", "edited = True\n")
    return answer


@pytest.mark.proves("001:79")
def test_a_receiver_on_the_wrong_branch_is_stopped_before_its_first_edit_by_the_command_and_by_the_hook(
    handed: Repo,
) -> None:
    handed.git("checkout", "-q", "main")
    refused = edit(handed, agent_type="executor")["hookSpecificOutput"]
    assert handed.yolo_fs("handoff", "check", "--as", "executor", ok=(1,)).returncode == 1
    assert refused["permissionDecision"] == "deny"
    assert "branch_mismatch" in refused["permissionDecisionReason"]
    assert BRANCH in refused["permissionDecisionReason"]
    assert handed.git("status", "--porcelain", "src") == ""


@pytest.mark.proves("001:61a")
def test_without_its_handoff_the_executor_stops_and_with_it_taken_away_everybody(
    handed: Repo,
) -> None:
    handoff = handed.root / SESSION / "HANDOFF.md"
    written = handoff.read_text()
    handoff.unlink()
    refused = edit(handed, agent_type="executor")["hookSpecificOutput"]
    assert refused["permissionDecision"] == "deny"
    assert "file_missing: the directive of this branch" in refused["permissionDecisionReason"]
    let_all_files_be_old(handed)  # so that the hook remembers its answer
    assert edit(handed) == {}, "nobody has said that this session executes it"
    assert (handed.root / ".git/yolo-fs/handoff-accepted.json").exists()

    handoff.write_text(written)
    handed.yolo_fs("run", "--once")
    handoff.unlink()
    assert edit(handed)["hookSpecificOutput"]["permissionDecision"] == "deny"
    mending = {"file_path": str(handoff)}
    assert asked(handed, "pre-tool-use", tool_name="Write", tool_input=mending) == {}
    readme = f"---\nmeta:\n  session_priority: ultra\n  directive_branch: {BRANCH}\n  status: archived\n---\n"
    handed.file(f"{SESSION}/README.md", readme)
    assert edit(handed) == {}


@pytest.mark.parametrize("told", ["YOLO_FS_ROLE", "yolo-executor", ".active-agent", "agent_type"])
def test_whoever_says_that_a_session_executes_the_directive_is_heard(
    handed: Repo, told: str
) -> None:
    (handed.root / SESSION / "HANDOFF.md").unlink()
    repo, said = handed, {}
    if told == "YOLO_FS_ROLE":
        repo = Repo(handed.root, {**handed.env, told: "executor"})
    elif told == ".active-agent":
        handed.file(".yolo-planning/.active-agent", "yolo-executor\n")
    else:
        said = {"agent_type": "executor" if told == "agent_type" else told}
    assert edit(repo, **said)["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_a_fault_of_the_sessions_readme_is_mended_by_whoever_is_told_to(handed: Repo) -> None:
    readme = str(handed.root / SESSION / "README.md")
    handed.file(f"{SESSION}/README.md", "---\nmeta:\n  owner: ada\n---\n")
    refused = edit(handed, agent_type="executor")["hookSpecificOutput"]
    assert "Correct the session's README" in refused["permissionDecisionReason"]
    mending = {"tool_name": "Edit", "tool_input": {"file_path": readme}}
    shell = {"tool_name": "Bash", "tool_input": {"command": f"sed -i s/owner/x/ {readme}"}}
    for asking in (mending, shell):
        assert asked(handed, "pre-tool-use", agent_type="executor", **asking) == {}
    handed.file(
        f"{SESSION}/README.md",
        f"---\nmeta:\n  session_priority: ultra\n  directive_branch: {BRANCH}\n---\n",
    )
    assert edit(handed, agent_type="executor") == {}


@pytest.mark.parametrize("value", ["", ' ""', " ''", '  "  "'])
def test_a_readme_that_names_no_branch_is_that_of_none(handed: Repo, value: str) -> None:
    handed.file(f"{SESSION}/README.md", f"---\nmeta:\n  directive_branch:{value}\n---\n")
    said = handed.yolo_fs("handoff", "check", "--as", "executor", ok=(1,)).stderr.decode()
    assert "/meta/directive_branch" in said
    assert edit(handed, agent_type="executor")["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_of_two_sessions_on_a_branch_the_one_that_has_handed_over_counts(handed: Repo) -> None:
    other = f"{SESSION[:-1]}1"
    handed.file(
        f"{other}/README.md",
        f"---\nmeta:\n  session_priority: ultra\n  directive_branch: {BRANCH}\n---\n",
    )
    assert handed.yolo_fs("handoff", "check", "--as", "executor").returncode == 0
    assert edit(handed, agent_type="executor") == {}
    (handed.root / SESSION / "HANDOFF.md").unlink()
    assert edit(handed, agent_type="executor") != {}


def test_on_the_right_branch_it_goes_on(handed: Repo) -> None:
    assert handed.yolo_fs("handoff", "check", "--as", "executor").returncode == 0
    assert edit(handed, agent_type="executor") == {}
    assert "src/file1.py" in handed.git("status", "--porcelain", "src")


@pytest.mark.parametrize(
    "command", ["echo edited > src/file1.py", "sed -i s/1/2/ src/file1.py", "rm src/file1.py"]
)
def test_a_shell_is_no_way_around_an_untaken_handoff(handed: Repo, command: str) -> None:
    handed.git("checkout", "-q", "main")
    answer = asked(handed, "pre-tool-use", tool_name="Bash", tool_input={"command": command})
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"


@pytest.mark.parametrize(
    "command", ["git checkout directive/login", "cat src/file1.py", "ls src/ 2>/dev/null"]
)
def test_reading_and_going_to_the_right_branch_stay_possible(handed: Repo, command: str) -> None:
    handed.git("checkout", "-q", "main")
    assert asked(handed, "pre-tool-use", tool_name="Bash", tool_input={"command": command}) == {}


@pytest.mark.proves("001:61b")
def test_a_handoff_that_is_invalid_stops_every_edit_but_its_own_repair(handed: Repo) -> None:
    handed.file(f"{SESSION}/HANDOFF.md", "---\nhandoff:\n  from_role: architect\n---\n")
    mended = {"file_path": str(handed.root / SESSION / "HANDOFF.md")}
    assert "hookSpecificOutput" in edit(handed)
    assert asked(handed, "pre-tool-use", tool_name="Write", tool_input=mended) == {}


def test_another_role_than_the_receiver_is_stopped(handed: Repo) -> None:
    assert (
        "pair" in edit(handed, agent_type="pair")["hookSpecificOutput"]["permissionDecisionReason"]
    )


@pytest.mark.proves("001:87")
def test_an_override_is_advised_only_where_there_is_a_packet_to_accept(handed: Repo) -> None:
    handoff = handed.root / SESSION / "HANDOFF.md"
    handed.git("checkout", "-q", "main")
    assert "--override" in str(edit(handed))
    handoff.write_text("no front matter\n")
    assert "--override" not in str(edit(handed))
    handed.yolo_fs("handoff", "check", "--override", "go on", ok=(1,))
    handoff.unlink()
    handed.git("checkout", "-q", BRANCH)
    assert "--override" not in str(edit(handed, agent_type="executor"))


@pytest.mark.proves("001:87")
def test_the_operator_may_accept_it_and_the_hook_lets_go(handed: Repo) -> None:
    handed.git("checkout", "-q", "main")
    handed.yolo_fs("handoff", "check", "--override", "the branch was merged")
    assert edit(handed) == {}


# --- it stops beside a daemon ---


def test_an_agent_that_stops_beside_a_daemon_is_not_held_up_for_what_the_daemon_is_about_to_commit(
    repo: Repo, start: Callable[..., Daemon]
) -> None:
    start(repo)
    one = artifact("critique", 0)
    repo.write(one)
    asked(
        repo,
        "post-tool-use",
        tool_name="Write",
        tool_input={"file_path": str(repo.root / one.path)},
    )
    assert asked(repo, "stop") == {}
    assert one.subject in repo.subjects()


# --- thirty forbidden acts, a hundred allowed ones ---


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    """Return a team of three departments with two plans, of which the first is open."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    team = Team(tmp_path / "work")
    for name in (
        "src/auth/tokens.ts",
        "src/auth/keys.ts",
        "src/config.ts",
        "src/other.ts",
        "frontend/a.ts",
    ):
        team.file(name, "export {}\n")
    for name in (
        "README.md",
        "tests/auth.test.ts",
        ".yolo-planning/ROADMAP.md",
        ".yolo-planning/REQUIREMENTS.md",
    ):
        team.file(name, "# Text\n")
    team.config(THREE)
    for name in (
        "01-CONTEXT-backend.md",
        "01-CONTEXT-uiux.md",
        "01-CONTEXT-frontend.md",
        ".ctx-qa.toon",
    ):
        team.artifact(name, "# Context\n")
    team.git("add", "-A", "-f")
    team.git("commit", "-q", "-m", "chore: begin")
    team.begin()
    team.plan()
    return team


Act = tuple[str, str, dict[str, str]]
"""Who, which tool, with what."""


def write(who: str, path: str, tool: str = "Write") -> Act:
    return who, tool, {"file_path": path}


def run(who: str, command: str, tool: str = "Bash") -> Act:
    return who, tool, {"command": command}


def ask(team: Team, act: Act) -> dict[str, Any]:
    who, tool, given = act
    said = {
        "hook_event_name": "PreToolUse",
        "cwd": str(team.root),
        "tool_name": tool,
        "tool_input": given,
    }
    answer, note, code = hook_fast.answer(
        json.dumps(said | ({"agent_type": who} if who else {})).encode()
    )
    assert (note, code) == ("", 0)
    return dict(answer)


STATUS = f"{PHASE}/.dept-status-backend.json"
FORBIDDEN: list[Act] = [
    # Status, state and sentinels: nobody's to write.
    write("", STATUS),
    write("yolo-lead", STATUS, "Edit"),
    write("yolo-fe-lead", f"{PHASE}/.dept-status-frontend.json"),
    write("", f"{PHASE}/.handoff-ux-complete"),
    write("yolo-ux-lead", f"{PHASE}/.handoff-backend-complete"),
    write("", ".yolo-planning/state.json"),
    write("", f"{PHASE}/.execution-state.json"),
    write("", f"{PHASE}/.phase-orchestration.json", "MultiEdit"),
    write("", ".yolo-planning/.escalation-state.json"),
    write("", f"./src/../{STATUS}"),
    run("", f"echo '{{}}' > {STATUS}"),
    run("", f"touch {PHASE}/.handoff-ux-complete"),
    run("", f"cd {PHASE} && rm -f .dept-status-backend.json"),
    run("", f"jq .x a.json | tee {PHASE}/.execution-state.json"),
    run("", f"bash -lc 'cp /tmp/x {STATUS}'"),
    run("", f"cat <<'EOF' > {STATUS}\n{{}}\nEOF"),
    run("", f"python3 -c \"open('{STATUS}', 'w').write('x')\""),
    run(
        "", f"*** Begin Patch\n*** Update File: {STATUS}\n@@\n-a\n+b\n*** End Patch", "apply_patch"
    ),
    # Another department's.
    write("yolo-fe-dev", f"{PHASE}/01-03.summary.jsonl"),
    write("yolo-dev", f"{PHASE}/fe-architecture.toon"),
    write("yolo-dev", "frontend/a.ts"),
    write("yolo-ux-dev", "src/config.ts"),
    run("yolo-dev", "sed -i s/a/b/ frontend/a.ts"),
    # Another plan's.
    write("yolo-dev", "src/other.ts"),
    # What a role never receives.
    write("yolo-dev", ".yolo-planning/ROADMAP.md", "Read"),
    write("yolo-dev", f"{PHASE}/architecture.toon", "Read"),
    write("yolo-tester", f"{PHASE}/critique.jsonl", "Read"),
    write("yolo-dev", f"{PHASE}/01-CONTEXT-uiux.md", "Read"),
    run("yolo-dev", "cat .yolo-planning/REQUIREMENTS.md"),
    # A role without the tool.
    write("yolo-critic", "src/config.ts"),
]
ALLOWED: list[Act] = [
    *(write("", path, tool) for path in ("src/config.ts", "README.md", "src/new.ts", "tests/auth.test.ts")
      for tool in ("Write", "Edit", "Read", "MultiEdit")),
    *(write("", f"{PHASE}/{name}") for name in (
        "critique.jsonl", "01-01.plan.jsonl", "decisions.jsonl", "architecture.toon", "research.jsonl", "notes.md",
        "01-01.summary.jsonl", "escalation.jsonl", "fe-architecture.toon", "code-review.jsonl")),
    *(write("", f"{PHASE}/{name}", "Read") for name in (
        ".dept-status-backend.json", ".execution-state.json", ".handoff-ux-complete", "critique.jsonl")),
    *(write(who, path) for who in ("yolo-dev", "dev", "yolo:yolo-dev")
      for path in ("src/auth/tokens.ts", "src/auth/keys.ts", "src/config.ts", f"{PHASE}/01-01.summary.jsonl")),
    *(write("yolo-dev", path, "Read") for path in ("src/auth/tokens.ts", "src/other.ts", f"{PHASE}/01-01.plan.jsonl")),
    *(write("yolo-lead", path) for path in (f"{PHASE}/01-03.plan.jsonl", f"{PHASE}/critique.jsonl")),
    *(write("yolo-lead", f".yolo-planning/{name}", "Read") for name in ("ROADMAP.md", "REQUIREMENTS.md")),
    *(write("yolo-architect", f"{PHASE}/{name}") for name in ("architecture.toon", "decisions.jsonl")),
    *(write("yolo-tester", path) for path in (f"{PHASE}/test-plan.jsonl", "tests/auth.test.ts")),
    *(write("yolo-ux-lead", f"{PHASE}/{name}") for name in ("design-tokens.jsonl", "ux-01-04.plan.jsonl")),
    *(write("general-purpose", path) for path in ("src/other.ts", "frontend/a.ts", "README.md", "docs/new.md")),
    *(write("Explore", path, "Read") for path in ("src/other.ts", ".yolo-planning/ROADMAP.md", f"{PHASE}/critique.jsonl")),
    *(run("", command) for command in (
        "ls", "git status", "git diff --stat", "npm test", "make", "cat README.md", "rm -rf dist", "echo hi > /tmp/x",
        "python -m pytest", "grep -rn x src", "mkdir -p src/new", "cp a b", "true && false || true", "echo 'a;b' | wc",
        f"cat {STATUS}", f"ls -la {PHASE}", f"git log -- {PHASE}", f"jq . {STATUS} 2>/dev/null", f"cat < {STATUS}",
        f"mkdir -p {PHASE}", f"grep -c status {STATUS} > /tmp/count", f"cp {STATUS} /tmp/copy", "git checkout main",
        f"echo '{{}}' >> {PHASE}/decisions.jsonl", f"rm {PHASE}/notes.md", f"echo 'see {STATUS}' > src/note.txt",
        "yolo-fs dept update backend --phase 1 --status running", f"cat <<'EOF' > src/a\nrm {STATUS}\nEOF",
        f"python3 -c \"print(open('{STATUS}').read())\"", "echo \"unbalanced", "")),
    *(run("yolo-dev", command) for command in ("npm test", "git add -A", "cat src/auth/tokens.ts", "ls")),
    *(("", tool, {"anything": "at all"}) for tool in ("WebFetch", "Task", "mcp__x__y", "TodoWrite")),
    ("", "Glob", {"pattern": "**/*.jsonl"}),
    ("", "Grep", {"pattern": "x", "path": "src"}),
    ("yolo-dev", "Grep", {"pattern": "x"}),
]  # fmt: skip


@pytest.mark.proves("002:216")
def test_thirty_forbidden_acts_are_each_denied_with_a_reason_and_an_alternative(team: Team) -> None:
    assert len(FORBIDDEN) == 30
    for act in FORBIDDEN:
        denied = ask(team, act).get("hookSpecificOutput", {})
        assert denied.get("permissionDecision") == "deny", act
        reason, _, instead = denied["permissionDecisionReason"].partition("\nInstead: ")
        assert reason, act
        assert instead, act


def test_a_hundred_allowed_acts_pass(team: Team) -> None:
    assert len(ALLOWED) >= 100
    assert [act for act in ALLOWED if ask(team, act) != {}] == []
