"""What an agent's command would destroy is kept first, and comes back to the byte by what its answer names."""

from __future__ import annotations

import fcntl
import json
import os
import random
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.cli import hook_fast
from yolo_fs.cli.main import run
from yolo_fs.hooks import tool_use
from yolo_fs.hooks.touches import read_command

FILES = 2_000 if os.environ.get("YOLO_TORTURE") else 60
RESTORES = (
    "git reset --hard",
    "git reset --hard HEAD",
    "git checkout -- .",
    "git checkout .",
    "git checkout -f",
    "git restore .",
    "git restore src",
    "git stash",
    "cd src && git checkout -- .",
    "git -C src checkout -- .",
    "bash -c 'git reset --hard'",
    "sudo git switch -f main",
    "git rm -rqf src",
)
REMOVES = (
    "git clean -fd",
    "git clean -fdx src",
    "git stash -u",
    "rm -rf src",
    "rm -r src/*",
    "cd src && rm -rf *",
    "find . -name x | xargs rm -rf",
    "find . -name 'new*' | xargs rm -rf",
    "ls src | xargs -I{} rm -r src/{}",
)
HARMLESS = (
    "git reset", "git reset HEAD~1 --soft", "git clean -n", "git stash list", "git stash pop", "git checkout -b x",
    "git switch main", "git restore --staged .", "rm one.txt", "git status", "git log --stat", "npm run clean",
    "git rm -r --cached src", "git rm src/a.ts",
)  # fmt: skip


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    team = Team(tmp_path / "work")
    team.plan_one()
    for number in range(FILES // 2):
        team.file(f"src/d{number % 7}/tracked{number}.ts", f"export const n = {number}\n")
    team.user_commits("feat(01-01): T1 load the keys", "src")
    return team


def edit(team: Team) -> dict[Path, bytes]:
    """Change every tracked file and add as many untracked ones; return what they hold."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    held = {}
    for number in range(FILES // 2):
        folder = team.root / f"src/d{number % 7}"
        for name in (f"tracked{number}.ts", f"new {number}.bin"):
            held[folder / name] = rng.randbytes(rng.randrange(200)) + b"\r\n"
            (folder / name).write_bytes(held[folder / name])
    return held


def ask(team: Team, command: str) -> str:
    """Return what an agent is told before its command."""
    told: dict[str, Any] = {
        "hook_event_name": "PreToolUse", "cwd": str(team.root), "tool_name": "Bash",
        "tool_input": {"command": command}, "session_id": "s",
    }  # fmt: skip
    said, _, code = hook_fast.answer(json.dumps(told).encode(), "", "claude")
    own = said.get("hookSpecificOutput", {})
    assert (code, own.get("permissionDecision")) == (0, None)
    return str(own.get("additionalContext", ""))


def bring_back(team: Team, answer: str) -> None:
    """Run the command that an answer names."""
    named = re.search(r"'yolo-fs (kept restore \d+)'", answer)
    assert named, answer
    assert run([*named[1].split(), "-q", "-C", str(team.root)]) == 0


def test_a_reset_and_a_clean_of_everybodys_work_are_undone_to_the_byte(team: Team) -> None:
    held = edit(team)
    answers = []
    for command in ("git reset --hard", "git clean -fd"):
        answers.append(ask(team, command))
        subprocess.run(command, shell=True, cwd=team.root, check=True, capture_output=True)
    assert {path: path.read_bytes() for path in held if path.exists()} != held
    for answer in answers:
        bring_back(team, answer)
    assert {path: path.read_bytes() for path in held} == held


def looks(root: Path) -> dict[str, tuple[str, bytes]]:
    """Return what lies in `src`: where each link leads; of each file whether it runs, and what it holds."""
    found = {}
    for path in sorted((root / "src").rglob("*")):
        if path.is_symlink():
            found[str(path)] = ("link", os.fsencode(os.readlink(path)))
        elif path.is_file():
            found[str(path)] = ("runs" if path.stat().st_mode & 0o100 else "", path.read_bytes())
    return found


@pytest.mark.parametrize(
    "line", ["git reset --hard && git clean -fd", "git stash -u", "rm -rf src", "rm -rf src/*"]
)
def test_links_and_what_can_be_run_come_back_as_they_were(
    team: Team, tmp_path: Path, line: str
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("none of ours\n")
    src = team.root / "src"
    team.file("src/run.sh", "#!/bin/sh\n").chmod(0o755)
    team.file("src/becomes-a-link", "text\n")
    for name in ("leads", "becomes-a-file"):
        (src / name).symlink_to("run.sh")
    team.user_commits("feat(01-01): T2 links", "src")
    (src / "d0/tracked0.ts").chmod(0o755)  # the bit alone
    (src / "run.sh").chmod(0o644)
    team.file("src/new.sh", "echo new\n").chmod(0o755)
    (src / "plain").write_bytes(b"\0\xff\r\n")
    for name in ("leads", "becomes-a-link", "becomes-a-file"):
        (src / name).unlink()
    (src / "leads").symlink_to("d1")
    (src / "becomes-a-link").symlink_to(outside)
    (src / "becomes-a-file").write_text("a file now\n")
    (src / "out").symlink_to(outside)
    os.symlink(b"\xff/not there", os.fsencode(src / "nowhere"))
    before = looks(team.root)
    answer = ask(team, line)
    subprocess.run(line, shell=True, cwd=team.root, check=True, capture_output=True)
    assert looks(team.root) != before
    bring_back(team, answer)
    gone = [os.path.relpath(path, team.root) for path in before if not os.path.lexists(path)]
    if gone:  # what a commit has comes back from there
        team.git("checkout", "HEAD", "--", *gone)
    assert looks(team.root) == before
    assert outside.read_text() == "none of ours\n"


def test_a_link_that_is_removed_is_not_what_it_leads_to(team: Team, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    leads = {"away": str(other), "near": "src"}
    for name, target in leads.items():
        (team.root / name).symlink_to(target)
    team.file("src/new.ts", "x\n")
    answer = ask(team, "rm -rf away near")
    assert "2 uncommitted files" in answer
    for name in leads:
        (team.root / name).unlink()
    bring_back(team, answer)
    assert {name: os.readlink(team.root / name) for name in leads} == leads


def test_what_comes_back_is_no_more_open_than_a_fresh_file(team: Team) -> None:
    fresh = team.file("src/mine.txt", "mine\n")
    answer = ask(team, "git clean -fd")
    fresh.unlink()
    before = os.umask(0o077)
    try:
        bring_back(team, answer)
    finally:
        os.umask(before)
    assert fresh.stat().st_mode & 0o777 == 0o600


def test_several_commands_of_one_line_are_undone_by_one_command(team: Team) -> None:
    held = edit(team)
    line = "git reset --hard && git clean -fd"
    answer = ask(team, line)
    subprocess.run(line, shell=True, cwd=team.root, check=True, capture_output=True)
    assert "Kept before `git reset --hard and git clean -fd`" in answer
    bring_back(team, answer)
    assert {path: path.read_bytes() for path in held} == held


@pytest.mark.parametrize("command", (*RESTORES, *REMOVES))
def test_each_such_command_is_seen(team: Team, command: str) -> None:
    held = edit(team)
    lost = {path: data for path, data in held.items() if _is_endangered(path, command)}
    answer = ask(team, command)
    for path in lost:
        path.unlink()
    bring_back(team, answer)
    assert {path: path.read_bytes() for path in lost} == lost


def _is_endangered(path: Path, command: str) -> bool:
    is_tracked = path.name.startswith("tracked")
    if "stash -u" in command or (" rm " in f" {command}" and "git rm" not in command):
        return True
    return not is_tracked if "clean" in command else is_tracked


@pytest.mark.parametrize("command", HARMLESS)
def test_nothing_is_kept_before_what_destroys_nothing(team: Team, command: str) -> None:
    assert read_command(command).destructions == ()


def test_a_credential_is_named_and_not_kept(team: Team) -> None:
    team.file(".env", "AWS_SECRET=" + "x" * 40)
    team.file("notes.txt", "token: " + "ghp_" + "a1B2" * 9 + "\n")
    team.file("plain.txt", "plain\n")
    answer = ask(team, "git clean -fd")
    assert "1 uncommitted file." in answer
    assert "Not kept, since it looks like a credential: .env, notes.txt." in answer
    refs = team.git("for-each-ref", "--format=%(refname)", "refs/yolo-fs/kept")
    stored = team.git("log", "-p", "--format=", *refs.split())
    assert ("plain" in stored, "xxxx" in stored, "ghp_" in stored) == (True, False, False)


def test_a_repository_of_its_own_is_named_and_not_kept(team: Team) -> None:
    team.file("vendor/other/README.md", "theirs")
    subprocess.run(["git", "init", "-q", "vendor/other"], cwd=team.root, check=True)
    team.file("vendor/note.md", "ours")
    answer = ask(team, "rm -rf vendor")
    assert "Kept before `rm -rf vendor`: 1 uncommitted file." in answer
    assert "a nested repository: vendor/other/." in answer


def test_what_git_ignores_and_what_is_committed_is_left_alone(team: Team) -> None:
    team.file(".gitignore", "node_modules/\n")
    team.user_commits("chore: ignore", ".gitignore")
    team.file("node_modules/a/index.js", "x\n")
    assert ask(team, "git clean -fdx") == ""
    assert ask(team, "rm -rf src") == ""


def test_where_it_cannot_keep_it_says_so_and_stops_nothing(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(team)
    monkeypatch.setattr(tool_use, "PATIENCE_S", 0.2)
    with open(team.root / ".git/yolo-fs/kept.turn", "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # somebody keeps, and is stopped meanwhile
        assert "could not be kept" in ask(team, "git reset --hard")


def test_one_switch_turns_it_off(team: Team, tmp_path: Path) -> None:
    edit(team)
    own = tmp_path / "no config/yolo-fs/config.json"
    own.parent.mkdir(parents=True)
    own.write_text('{"policy": {"safety_net": false}}')
    assert ask(team, "git reset --hard") == ""
    own.unlink()
    team.config({"yolo_fs": {"safety_net": False}})
    assert "Kept before" in ask(team, "git reset --hard")  # a repository may only tighten


def make_young(team: Team, *paths: Path) -> None:
    """Let files look as young as the index: git then compares their content, through its filter."""
    for path in paths:
        os.utime(path, (time.time() + 3_600, time.time() + 3_600))
    team.git("update-index", "-q", "--refresh")


@pytest.mark.parametrize("kind", ["clean", "process"])
@pytest.mark.parametrize(
    "command", ["git reset --hard", "git checkout .", "git stash", "rm -rf src"]
)
def test_the_net_runs_no_filter_that_the_repository_names(
    team: Team, tmp_path: Path, kind: str, command: str
) -> None:
    ran = tmp_path / "ran"
    make_young(team, *(team.root / "src").rglob("*.ts"))
    team.git("config", f"filter.x.{kind}", f"sh -c 'touch {ran}; cat'")
    team.file(".gitattributes", "* filter=x\n")
    ask(team, command)
    assert not ran.exists()
    subprocess.run(["git", "diff-index", "HEAD"], cwd=team.root, check=False, capture_output=True)
    assert ran.exists()


def test_what_only_the_users_own_filter_changes_needs_no_net(team: Team, tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text('[filter "up"]\n\tclean = tr a-z A-Z\n\tsmudge = cat\n')
    team.file(".gitattributes", "*.up filter=up\n")
    path = team.file("src/loud.up", "hello\n")
    team.user_commits("feat(01-01): T1 loud", ".gitattributes", "src")
    assert team.git("show", "HEAD:src/loud.up") == "HELLO"
    make_young(team, path)
    assert ask(team, "git reset --hard") == ""
