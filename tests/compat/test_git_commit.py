"""git-commit-serialized, with real git."""

from __future__ import annotations

import fcntl
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.compat.shim import Done, call

IDENTITY = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=root,
        env={**os.environ, **IDENTITY},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "a repo"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", "Dev")
    git(root, "config", "user.email", "dev@example.org")
    git(root, "commit", "-q", "--allow-empty", "-m", "chore(state): begin")
    return root


def stage(root: Path, name: str) -> None:
    (root / name).write_text(name)
    git(root, "add", name)


def commit(cwd: Path, *arguments: str, **env: str) -> Done:
    return call("git-commit-serialized", *arguments, cwd=cwd, env={**IDENTITY, **env})


def test_what_is_staged_is_committed_and_the_short_hash_printed(repo: Path) -> None:
    stage(repo, "a.txt")
    (repo / "unstaged.txt").write_text("mine")
    done = commit(repo, "-m", "feat(01-01): T1 a")
    assert done == (0, git(repo, "rev-parse", "--short", "HEAD") + "\n", "")
    assert git(repo, "show", "--format=%s|%an", "--name-only") == "feat(01-01): T1 a|Dev\n\na.txt"
    assert git(repo, "status", "--porcelain") == "?? unstaged.txt"


def test_it_works_in_a_linked_worktree_and_below_the_top(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", "-b", "other", str(tmp_path / "linked"))
    below = tmp_path / "linked" / "src"
    below.mkdir()
    stage(tmp_path / "linked", "src/a.txt")
    assert commit(below, "-m", "feat(01-01): a").code == 0
    assert git(repo, "log", "-1", "--format=%s", "other") == "feat(01-01): a"
    assert (repo / ".git" / "yolo-commit.lock").exists()


def test_paths_after_two_dashes_are_the_callers(repo: Path) -> None:
    below = repo / "src"
    below.mkdir()
    stage(repo, "src/-mine.txt")
    stage(repo, "theirs.txt")
    assert commit(below, "-m", "feat(01-01): mine", "--", "-mine.txt").code == 0
    assert git(repo, "show", "--format=", "--name-only") == "src/-mine.txt"
    assert git(repo, "status", "--porcelain") == "A  theirs.txt"


def test_the_users_hooks_run_and_may_refuse(repo: Path) -> None:
    hook = repo / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\necho "refused: $LC_ALL" >&2\nexit 1\n')
    hook.chmod(0o755)
    stage(repo, "a.txt")
    done = commit(repo, "-m", "feat(01-01): a", LC_ALL="C.UTF-8")
    assert (done.code, done.out, "refused: C.UTF-8" in done.err) == (1, "", True)
    assert git(repo, "status", "--porcelain") == "A  a.txt"


def test_the_callers_environment_counts(repo: Path) -> None:
    stage(repo, "a.txt")
    assert commit(repo, "-m", "feat(01-01): a", GIT_AUTHOR_NAME="Senior").code == 0
    assert git(repo, "log", "-1", "--format=%an|%cn") == "Senior|Dev"


@pytest.mark.parametrize(("arguments", "code"), [(("-m", "x(y): nothing"), 1), (("--bogus",), 129)])
def test_gits_own_exit_code_and_words_come_through(
    repo: Path, arguments: tuple[str, ...], code: int
) -> None:
    done = commit(repo, *arguments)
    assert (done.code, done.out, done.err.strip() != "") == (code, "", True)


def test_without_arguments_no_editor_opens(repo: Path) -> None:
    done = commit(repo)
    assert (done.code, "-m MESSAGE" in done.err) == (1, True)


def test_outside_a_repository_is_said(tmp_path: Path) -> None:
    done = commit(tmp_path, "-m", "feat(a): b", GIT_CEILING_DIRECTORIES=str(tmp_path.parent))
    assert (done.code, "no git repository" in done.err) == (1, True)


def test_a_lock_that_is_never_free_ends_in_1(repo: Path) -> None:
    stage(repo, "a.txt")
    with (repo / ".git" / "yolo-commit.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = commit(repo, "-m", "feat(01-01): a")
    assert (done.code, done.out, "Could not acquire commit lock" in done.err) == (1, "", True)
    assert git(repo, "log", "--format=%s") == "chore(state): begin"


def test_the_lock_of_a_reference_without_flock_is_respected(repo: Path) -> None:
    stage(repo, "a.txt")
    held = repo / ".git/yolo-commit.lock.d"
    held.mkdir()
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(commit, repo, "-m", "feat(01-01): a")
        with pytest.raises(TimeoutError):
            waiting.result(0.3)
        assert git(repo, "log", "--format=%s") == "chore(state): begin"
        held.rmdir()
        assert waiting.result().code == 0
    held.mkdir()
    stage(repo, "b.txt")
    done = commit(repo, "-m", "feat(01-01): b")
    assert (done.code, "yolo-commit.lock.d" in done.err, held.exists()) == (1, True, True)


def test_a_link_in_the_locks_place_is_refused(repo: Path, tmp_path: Path) -> None:
    (repo / ".git" / "yolo-commit.lock").symlink_to(tmp_path / "victim")
    stage(repo, "a.txt")
    assert commit(repo, "-m", "feat(01-01): a").code == 1
    assert not (tmp_path / "victim").exists()


def test_commits_at_once_come_one_after_the_other(repo: Path) -> None:
    names = [f"{number}.txt" for number in range(6)]
    for name in names:
        stage(repo, name)
    with ThreadPoolExecutor(6) as pool:
        codes = list(
            pool.map(
                lambda name: commit(repo, "-m", f"feat(01-01): {name}", "--", name).code, names
            )
        )
    assert codes == [0] * 6
    made = git(repo, "log", "--format=%s", "--name-only", "main", f"-{len(names)}").split("\n")
    assert sorted(filter(None, made)) == sorted(
        [*names, *(f"feat(01-01): {name}" for name in names)]
    )
