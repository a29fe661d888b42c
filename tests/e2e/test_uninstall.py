"""Whatever was there before, `uninstall` leaves it byte for byte, and nothing of ours."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.artifacts import PLANNING, artifact
from tests.e2e.daemon import descendants, until
from tests.e2e.repo import Repo, make_repo
from yolo_fs.core.reasons import Exit
from yolo_fs.system.lock import hold

PASSING = (".git/index", ".git/objects", ".git/logs", ".git/COMMIT_EDITMSG", ".git/ORIG_HEAD")
"""What git changes with any commit, and what its history is."""


def nothing(repo: Repo) -> None:
    """A repository as git makes it."""


def own_hooks(repo: Repo) -> None:
    for name, text in (("pre-commit", "#!/bin/sh\nexit 0\n"), ("pre-push", "#!/bin/sh\ncat\n")):
        path = repo.root / ".git/hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)


def hooks_in_a_folder_of_the_project(repo: Repo) -> None:
    repo.file(".githooks/pre-commit", "#!/bin/sh\nexit 0\n")
    (repo.root / ".githooks/pre-commit").chmod(0o755)
    repo.git("add", ".githooks")
    repo.git("commit", "-qm", "chore: hooks")
    repo.git("config", "core.hooksPath", ".githooks")


def settings_of_hosts(repo: Repo) -> None:
    hook = {"hooks": [{"type": "command", "command": "lint"}]}
    repo.file(".claude/settings.json", json.dumps({"hooks": {"Stop": [hook]}}, indent=4) + "\n")
    repo.file(".mcp.json", '{"mcpServers": {"mine": {"command": "x"}}}')


def attributes(repo: Repo) -> None:
    repo.file(".gitattributes", "*.png binary\n")
    repo.git("add", ".gitattributes")
    repo.git("commit", "-qm", "chore: attributes")


def exclusions(repo: Repo) -> None:
    path = repo.root / ".git/info/exclude"
    path.parent.mkdir(exist_ok=True)
    path.write_text("*.swp")


def a_linked_work_tree(repo: Repo) -> None:
    repo.git("worktree", "add", "-q", "-b", "two", str(repo.root / "../two"))


def a_remote(repo: Repo) -> None:
    repo.git("init", "-q", "--bare", str(repo.root / "../remote.git"))
    repo.git("remote", "add", "origin", str(repo.root / "../remote.git"))


STATES = (
    nothing, own_hooks, hooks_in_a_folder_of_the_project, settings_of_hosts, attributes, exclusions,
    a_linked_work_tree, a_remote,
)  # fmt: skip


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return make_repo(tmp_path / "repo", tmp_path / "home")


def snapshot(repo: Repo) -> dict[str, bytes | str]:
    """Return every file, with its mode, and every ref but the branch."""
    found: dict[str, bytes | str] = {}
    for root in (repo.root, repo.root / "../two"):
        for folder, _, names in os.walk(root):
            for name in names:
                path = Path(folder, name)
                place = os.path.relpath(path, repo.root)
                is_worktrees = place.startswith(".git/worktrees/") and "yolo-fs" not in place
                if (
                    not place.startswith((*PASSING, PLANNING, f"../two/{PLANNING}"))
                    and not is_worktrees
                ):
                    found[place] = f"{path.stat().st_mode:o} ".encode() + path.read_bytes()
    refs = repo.look("for-each-ref", "--format=%(refname)").split()
    found["refs"] = " ".join(ref for ref in refs if ref.startswith("refs/yolo"))
    return {path: text for path, text in found.items() if not path.startswith(".git/refs/heads")}


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_nothing_of_ours_is_left_but_history(repo: Repo, state: Callable[[Repo], None]) -> None:
    state(repo)
    before = snapshot(repo)
    repo.yolo_fs("init")
    repo.yolo_fs("hooks", "install")
    repo.git("add", "-A", PLANNING)
    repo.git("commit", "-qm", "chore(repo): begin")
    for host in ("claude", "codex", "cursor"):
        repo.yolo_fs("setup", host)
        repo.yolo_fs("setup", host, "--mcp", ok=(0, 1))
        repo.yolo_fs("setup", host, "--roles", ok=(0, 2))  # one host has a plugin for them
    repo.yolo_fs("merge", "install")
    if state is a_remote:
        repo.yolo_fs("team", "join", "origin", "--yes", ok=(0, 1))
    repo.yolo_fs("start", "--wait")
    pid = int(json.loads(repo.yolo_fs("status", "--json").stdout)["data"]["daemon"]["pid"])
    processes = [pid, *descendants(pid)]
    one = artifact("plan", 1)
    repo.write(one)
    repo.yolo_fs("run", "--once", "-q", ok=(0, 1, 3, 4, 75))
    until(lambda: (repo.root / PLANNING / "state.json").exists(), "its state is told")
    declared = f"{os.path.dirname(one.path)}/.execution-state.json"
    repo.file(declared, "{}")

    listed = repo.yolo_fs("uninstall", "--dry-run").stdout
    assert b"hooks" in listed and b"daemon" in listed
    assert (repo.root / ".git/yolo-fs").exists()
    repo.yolo_fs("uninstall")

    assert snapshot(repo) == before
    assert repo.look("status", "--porcelain", "--", PLANNING) == ""
    assert (repo.root / declared).read_text() == "{}"
    until(lambda: not any(map(is_alive, processes)), "its processes have ended")
    assert (repo.root / PLANNING).is_dir()
    assert repo.yolo_fs("uninstall").stdout == b"nothing of ours is here\n"
    repo.yolo_fs("uninstall", "--purge")
    assert not (repo.root / PLANNING).exists()


LAST_WRITER = """
import signal, sys, time
from yolo_fs.system.lock import hold
lock, path, text = sys.argv[1:]
def end(*_):
    open(path, "w").write(text)
    sys.exit()
signal.signal(signal.SIGTERM, end)
held = hold(lock)
print(flush=True)
time.sleep(60)
"""


def test_what_a_daemon_writes_while_it_ends_goes_too(repo: Repo) -> None:
    repo.yolo_fs("init", "--no-hooks")
    repo.write(artifact("plan", 1))
    repo.yolo_fs("run", "--once", "-q")
    state = repo.root / PLANNING / "state.json"
    text = state.read_text()
    state.unlink()
    lock = repo.root / ".git/yolo-fs/daemon.lock"
    daemon = subprocess.Popen(
        [sys.executable, "-c", LAST_WRITER, lock, state, text], stdout=subprocess.PIPE
    )
    assert daemon.stdout and daemon.stdout.readline()
    repo.yolo_fs("uninstall")
    daemon.communicate()
    assert daemon.returncode == 0
    assert not state.exists()


def test_while_the_company_runs_nobody_leaves(repo: Repo) -> None:
    repo.yolo_fs("init")
    lock = repo.root / ".git/yolo-fs/company.lock"
    lock.parent.mkdir(exist_ok=True)
    held = hold(str(lock))
    assert held is not None
    with held:
        done = repo.yolo_fs("uninstall", ok=(Exit.LOCK_TIMEOUT,))
    assert b"the company runs" in done.stderr and b"company runs" in done.stderr
    assert lock.exists()


def test_what_is_kept_and_nowhere_else_is_not_taken_away_unasked(repo: Repo) -> None:
    repo.yolo_fs("init")
    repo.git("add", "-A", PLANNING)
    repo.git("commit", "-qm", "chore(repo): begin")
    repo.file(f"{PLANNING}/phases/01-auth/critique.jsonl", "no JSON\n")
    repo.yolo_fs("run", "--once", "-q", ok=(0, 1))
    (repo.root / PLANNING / "phases/01-auth/critique.jsonl").unlink()
    assert json.loads(repo.yolo_fs("kept", "--json").stdout)["data"]["entries"]
    done = repo.yolo_fs("uninstall", ok=(1,))
    assert b"yolo-fs kept" in done.stderr
    listed = repo.yolo_fs("uninstall", "--dry-run", ok=(1,))
    assert b"would go" in listed.stdout and b"yolo-fs kept" in listed.stderr
    assert (repo.root / ".git/yolo-fs").exists()
    repo.yolo_fs("uninstall", "--purge")
    assert not (repo.root / ".git/yolo-fs").exists()
    assert "yolo" not in repo.look("for-each-ref")
    subprocess.run(["git", "-C", repo.root, "fsck", "--strict"], check=True, env=repo.env)


def two_in_a_team(repo: Repo) -> Path:
    """Make a second work tree, and have both in a team; only the second one has a critique."""
    repo.yolo_fs("init", "--commit")
    two = (repo.root / "../two").resolve()
    repo.git("worktree", "add", "-q", "-b", "two", str(two))
    for root in (repo.root, two):
        repo.yolo_fs("-C", str(root), "team", "join")
    path = two / PLANNING / "phases/01-auth/critique.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(artifact("critique", 1).data)
    repo.yolo_fs("-C", str(two), "run", "--once", "-q")
    assert team_refs(repo) == ["refs/yolo/team/main"]
    return two


def team_refs(repo: Repo) -> list[str]:
    return [
        ref for ref in repo.look("for-each-ref", "--format=%(refname)").split() if "team" in ref
    ]


def test_the_ref_of_a_team_goes_with_the_last_work_tree_in_it(repo: Repo) -> None:
    two = two_in_a_team(repo)
    away = two.rename(two.with_name("away"))
    repo.yolo_fs("uninstall")
    assert team_refs(repo) == ["refs/yolo/team/main"], "a work tree that is away is in the team"
    away.rename(two)
    assert b"refs/yolo/team/main" in repo.yolo_fs("uninstall", "--dry-run").stdout
    assert b"stays" not in repo.yolo_fs("uninstall").stderr
    assert repo.look("for-each-ref", "refs/yolo", "refs/yolo-fs") == ""


@pytest.mark.parametrize("was_seen", [True, False])
def test_what_only_the_ref_of_a_team_has_is_named_and_stays_unless_all_is_to_go(
    repo: Repo, was_seen: bool
) -> None:
    two = two_in_a_team(repo)
    repo.git("worktree", "remove", "--force", str(two))
    if was_seen:  # a branch had it, in a commit that is no longer its last
        repo.git("merge", "-q", "--no-edit", "two")
        repo.git("rm", "-rq", f"{PLANNING}/phases")
        repo.git("commit", "-qm", "chore: gone again")
    repo.git("branch", "-D", "two")
    for options in (("--dry-run",), ()):
        done = repo.yolo_fs("uninstall", *options)
        assert (b"critique.jsonl" in done.stderr) is not was_seen
        assert (b"git branch NAME refs/yolo/team/main" in done.stderr) is not was_seen
    assert bool(team_refs(repo)) is not was_seen
    assert repo.yolo_fs(
        "uninstall",
    ).stdout.endswith(b"of ours is here\n")
    repo.yolo_fs("uninstall", "--purge")
    assert team_refs(repo) == []


def test_a_skeleton_that_nobody_has_filled_in_keeps_nobody_from_leaving(repo: Repo) -> None:
    repo.yolo_fs("init")
    repo.git("add", "-A", PLANNING)
    repo.git("commit", "-qm", "chore(repo): begin")
    repo.yolo_fs("phase", "new", "auth")
    for kind in ("critique", "plan", "architecture"):
        repo.yolo_fs("new", kind, "--plan", "01-01")
    (repo.root / PLANNING / "phases/01-auth/critique.jsonl").touch()
    repo.yolo_fs("run", "--once", "-q", ok=(0, 1))
    assert json.loads(repo.yolo_fs("kept", "--json").stdout)["data"]["entries"] == []
    repo.yolo_fs("uninstall")
    assert not (repo.root / ".git/yolo-fs").exists()


def test_a_work_tree_that_no_service_file_could_name_is_left_like_any_other(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "a\ttab", tmp_path / "home")
    repo.yolo_fs("init")
    repo.yolo_fs("uninstall")
    assert not (repo.root / ".git/yolo-fs").exists()


def test_the_work_tree_of_a_dev_stays_and_is_named(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", "-b", "yolo/dev/01-auth/01-01", str(tmp_path / "tree"))
    done = repo.yolo_fs("uninstall", "--json")
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["path"] == str(tmp_path / "tree") and "stays" in finding["message"]
    assert (tmp_path / "tree/.git").exists()


def test_another_repository_that_the_git_directory_calls_a_work_tree_of_it_stays_as_it_is(
    repo: Repo, tmp_path: Path
) -> None:
    another = make_repo(tmp_path / "another", tmp_path / "home")
    for each in (repo, another):
        each.yolo_fs("init")
    place = repo.root / ".git/worktrees/another"
    place.mkdir(parents=True)
    for name, line in (("gitdir", another.git_dir), ("HEAD", "ref: refs/heads/x"), ("commondir", "../..")):  # fmt: skip
        (place / name).write_text(f"{line}\n")
    assert str(another.root) in repo.look("worktree", "list"), "git takes it for one"
    repo.yolo_fs("uninstall", "--purge")
    assert not (repo.root / ".git/yolo-fs").exists()
    assert (another.root / PLANNING / "config.json").exists()
    assert (another.git_dir / "yolo-fs").exists()


def test_after_a_purge_the_command_that_is_told_takes_the_tree_from_the_branch(repo: Repo) -> None:
    repo.yolo_fs("init", "--commit")
    told = repo.yolo_fs("uninstall", "--purge").stdout.decode().splitlines()[-1]
    command = told.partition("from there, too: ")[2]
    assert repo.git("status", "--short") != ""
    subprocess.run(shlex.split(command), cwd=repo.root, env=repo.env, check=True)
    assert repo.git("status", "--short") == "" and repo.git("ls-files", PLANNING) == ""
    assert "branch" not in repo.yolo_fs("uninstall", "--purge").stdout.decode()
