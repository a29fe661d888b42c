"""While it is the user's turn nothing is committed; afterwards it is, by itself. See
docs/dev/faults.md#f23, #f25, #f26, #f33, #f35, #f62 and #f63.

Each case: the user begins something, an artifact is written meanwhile and waits with its reason, the user
ends what they began, and it succeeds; then the artifact is committed.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest

from tests.e2e.artifacts import PLANNING, artifact, lines
from tests.e2e.daemon import Daemon, until
from tests.e2e.history import locks
from tests.e2e.repo import DEADLINE_S, Repo

Start = Callable[..., Daemon]
FILE = "src/file1.py"


def _two_sides(repo: Repo) -> None:
    """Make a branch `side` and the current branch change the same line."""
    repo.git("checkout", "-q", "-b", "side")
    repo.commit_file(FILE, "side = 1\n", "feat: side")
    repo.git("checkout", "-q", "main")
    repo.commit_file(FILE, "main = 1\n", "feat: main")


def _resolve(repo: Repo) -> None:
    repo.file(FILE, "both = 1\n")
    repo.git("add", FILE)


@contextmanager
def rebase(repo: Repo) -> Iterator[str]:
    _two_sides(repo)
    repo.git("rebase", "side", ok=(1,))
    yield "rebase_in_progress"
    _resolve(repo)
    repo.git("rebase", "--continue", GIT_EDITOR="true")
    assert repo.subjects()[:3] == ["chore: begin", "feat: side", "feat: main"]


@contextmanager
def rebase_that_is_aborted(repo: Repo) -> Iterator[str]:
    _two_sides(repo)
    repo.git("rebase", "side", ok=(1,))
    yield "rebase_in_progress"
    repo.git("rebase", "--abort")
    assert repo.subjects()[:2] == ["chore: begin", "feat: main"]


@contextmanager
def merge(repo: Repo) -> Iterator[str]:
    _two_sides(repo)
    repo.git("merge", "side", ok=(1,))
    yield "merge_in_progress"
    _resolve(repo)
    repo.git("commit", "-q", "--no-edit")


@contextmanager
def cherry_pick(repo: Repo) -> Iterator[str]:
    _two_sides(repo)
    repo.git("cherry-pick", "side", ok=(1,))
    yield "cherry_pick_in_progress"
    _resolve(repo)
    repo.git("cherry-pick", "--continue", GIT_EDITOR="true")


@contextmanager
def revert(repo: Repo) -> Iterator[str]:
    repo.commit_file(FILE, "first = 1\n", "feat: first")
    repo.commit_file(FILE, "second = 1\n", "feat: second")
    repo.git("revert", "HEAD~1", ok=(1,))
    yield "revert_in_progress"
    _resolve(repo)
    repo.git("revert", "--continue", GIT_EDITOR="true")


@contextmanager
def bisect(repo: Repo) -> Iterator[str]:
    for number in range(4):
        repo.commit_file(FILE, f"step = {number}\n")
    repo.git("bisect", "start", "HEAD", "HEAD~3")
    yield "bisect_in_progress"
    repo.git("bisect", "reset")
    assert repo.look("symbolic-ref", "HEAD").strip() == "refs/heads/main"


@contextmanager
def mail(repo: Repo) -> Iterator[str]:
    _two_sides(repo)
    patch = repo.look("format-patch", "--stdout", "-1", "side")
    repo.git("am", "-q", given=patch, ok=(128,))
    yield "rebase_in_progress"
    repo.git("am", "--abort")


@contextmanager
def detached(repo: Repo) -> Iterator[str]:
    repo.git("checkout", "-q", "--detach")
    yield "detached_head"
    assert repo.look("rev-parse", "HEAD") == repo.look("rev-parse", "main")
    repo.git("checkout", "-q", "main")


@contextmanager
def stash_pop_with_conflict(repo: Repo) -> Iterator[str]:
    repo.file(FILE, "stashed = 1\n")
    repo.git("stash", "-q")
    repo.commit_file(FILE, "main = 1\n")
    repo.git("stash", "pop", ok=(1,))
    yield "unmerged_index"
    _resolve(repo)


@contextmanager
def held_index_lock(repo: Repo) -> Iterator[str]:
    lock = repo.git_dir / "index.lock"
    until(
        lambda: _taken(lock),
        "index.lock, which git itself holds while the index follows our last commit",
    )
    yield "index_locked"
    lock.unlink()


def _taken(lock: Path) -> bool:
    try:
        lock.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


@contextmanager
def open_commit_editor(repo: Repo) -> Iterator[str]:
    repo.file(FILE, "by_the_user = 1\n")
    repo.git("add", FILE)
    pipe = repo.root.parent / "editor"
    os.mkfifo(pipe)
    editor = f'sh -c \'read line < {pipe}; echo "feat: by the user" > "$1"\' editor'
    committing = subprocess.Popen(
        ["git", "commit", "-q"],
        cwd=repo.root,
        env={**repo.env, "GIT_EDITOR": editor},
        start_new_session=True,
    )
    try:
        until(lambda: (repo.git_dir / "COMMIT_EDITMSG").exists(), "the editor is open")
        yield "user_committing"
        with open(pipe, "w") as end:
            end.write("done\n")
        assert committing.wait(DEADLINE_S) == 0
    finally:
        with suppress(ProcessLookupError):
            os.killpg(committing.pid, signal.SIGKILL)
        committing.wait()
    assert repo.look("diff", "--cached", "--", FILE) == ""


@contextmanager
def gitignored(repo: Repo) -> Iterator[str]:
    repo.file(".gitignore", f"/{PLANNING}/\n")
    yield "gitignored"
    repo.file(".gitignore", "*.pyc\n")


@contextmanager
def submodule_that_is_not_checked_out(repo: Repo) -> Iterator[str]:
    tip = repo.look("rev-parse", "HEAD").strip()
    phases = f"{PLANNING}/phases"
    repo.git("rm", "-rq", "--cached", "--ignore-unmatch", phases)
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{tip},{phases}")
    repo.git("commit", "-q", "-m", "chore: the phases are elsewhere")
    yield "foreign_repository"
    repo.git("rm", "-q", "--cached", phases)
    repo.git("commit", "-q", "-m", "chore: the phases are here")


@contextmanager
def attribute_filter(repo: Repo) -> Iterator[str]:
    repo.file(".gitattributes", "*.jsonl filter=lfs diff=lfs merge=lfs -text\n")
    yield "attr_filter"
    repo.file(".gitattributes", "*.bin filter=lfs\n")


SITUATIONS = (
    rebase, rebase_that_is_aborted, merge, cherry_pick, revert, bisect, mail, detached, stash_pop_with_conflict,
    held_index_lock, open_commit_editor, gitignored, submodule_that_is_not_checked_out, attribute_filter,
)  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS)
def test_an_artifact_waits_with_its_reason_and_is_committed_afterwards(
    repo: Repo, start: Start, situation: Callable[[Repo], AbstractContextManager[str]]
) -> None:
    repo.configure(rescan_s=1)  # what no event of the planning tree tells of is found by the rescan
    one = artifact("plan", 0)
    daemon = start(repo)
    with situation(repo) as reason:
        tip = repo.look("rev-parse", "HEAD")
        repo.write(one)
        daemon.wait_for("artifact.held", one.path, reason)
        assert repo.standing(one.path) == ("held", reason)
        assert repo.look("rev-parse", "HEAD") == tip
        assert daemon.committed() == []
    daemon.wait_committed([one])
    assert daemon.stop() == 0
    assert repo.subjects()[-1] == one.subject
    assert repo.standing(one.path) == ("committed", "unchanged")
    assert locks(repo) == []


def test_a_branch_that_is_protected_meanwhile_holds_until_the_user_leaves_it(
    repo: Repo, start: Start
) -> None:
    one = artifact("plan", 0)
    daemon = start(repo)
    repo.configure_repository(protected=["main", "release/*"])
    daemon.wait_for("config.loaded")
    repo.write(one)
    daemon.wait_for("artifact.held", one.path)
    assert repo.standing(one.path) == ("held", "protected_branch")
    repo.git("checkout", "-q", "-b", "feature/login")
    daemon.wait_committed([one])
    assert repo.subjects("main") == ["chore: begin"]


def test_five_artifacts_follow_the_commit_that_the_user_was_writing(
    repo: Repo, start: Start
) -> None:
    artifacts = [artifact("summary", n) for n in range(5)]
    daemon = start(repo)
    with open_commit_editor(repo):
        repo.write(*artifacts)
        for one in artifacts:
            daemon.wait_for("artifact.held", one.path, "user_committing")
    daemon.wait_committed(artifacts)
    assert repo.subjects()[1] == "feat: by the user"
    assert sorted(repo.subjects()[2:]) == sorted(one.subject for one in artifacts)


def test_a_held_index_lock_of_the_user_only_delays_the_index(repo: Repo, start: Start) -> None:
    one, other = artifact("plan", 0), artifact("plan", 1)
    daemon = start(repo)
    repo.write(one)
    daemon.wait_committed([one])
    with held_index_lock(repo):
        repo.write(other)
        daemon.wait_for("artifact.held", other.path)
    daemon.wait_committed([other])
    until(lambda: repo.look("status", "--porcelain", "--", PLANNING) == "", "the index follows")


def test_a_secret_waits_until_it_is_taken_out_and_is_never_shown(repo: Repo, start: Start) -> None:
    token = "ghp_" + "a1B2" * 9
    clean = artifact("decisions", 0)
    dirty = clean._replace(data=clean.data.replace(b"Opaque tokens", token.encode()))
    daemon = start(repo)
    repo.write(dirty)
    daemon.wait_for("artifact.held", dirty.path)
    assert repo.standing(dirty.path) == ("held", "secret")
    assert token.encode() not in b"".join(
        (_everything_said(repo, daemon), *_everything_stored(repo))
    )
    repo.write(clean)
    daemon.wait_committed([clean])


def _everything_said(repo: Repo, daemon: Daemon) -> bytes:
    said = [
        repo.yolo_fs(*words, ok=(0, 1)).stdout
        for words in (["status"], ["status", "--json"], ["events"])
    ]
    return b"".join(said) + repr(daemon.mailbox.events).encode()


def _everything_stored(repo: Repo) -> Iterator[bytes]:
    return (path.read_bytes() for path in Path(repo.git_dir).rglob("*") if path.is_file())


def test_conflict_markers_are_never_committed(repo: Repo, start: Start) -> None:
    one = artifact("summary", 0)
    ours, theirs = one.data, artifact("summary", 0, version=1).data
    torn = one._replace(data=b"<<<<<<< HEAD\n" + ours + b"=======\n" + theirs + b">>>>>>> side\n")
    daemon = start(repo)
    repo.write(torn)
    assert daemon.wait_for("artifact.rejected", one.path)["data"]["reason"] == "conflict_marker"
    repo.write(one)
    daemon.wait_committed([one])
    assert repo.subjects() == ["chore: begin", one.subject]


def test_a_fault_is_told_even_while_a_merge_is_in_progress(repo: Repo, start: Start) -> None:
    one = artifact("decisions", 0)
    daemon = start(repo)
    with merge(repo):
        repo.write(one._replace(data=lines({"agent": "dev"})))
        daemon.wait_for("artifact.rejected", one.path)
    assert daemon.committed() == []
