"""While the user is at work on the repository nothing is committed, and it is said why. See
docs/dev/faults.md#f04, #f23 to #f28, #f35 and #f63.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.git.conftest import LATER_NS, NEEDS_REF_FILES, PHASE, PLAN, Engines, Make, User
from tests.support.housekeeping import TIDIES_SOON, counted_by_gc
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git import conversation
from yolo_fs.git.obstacles import Obstacles
from yolo_fs.git.repository import Repository
from yolo_fs.system import IS_LINUX
from yolo_fs.system.system import sees_every_process

LINE = '{"p":"01"}\n'
TELLS_OF_COMMITS = pytest.mark.skipif(
    not (IS_LINUX or shutil.which("lsof")),
    reason="without /proc and lsof only our own hooks tell that a commit is being made",
)


@pytest.fixture
def torn(user: User) -> User:
    """A repository with a branch `side` that conflicts with `main`, and one `calm` that does not."""
    for branch, path in (("side", "x"), ("calm", "y")):
        user.git("checkout", "--quiet", "-b", branch, "main")
        user.commit_file(path, f"{branch}\n", f"{branch} 1")
        user.commit_file("z" + branch, f"{branch}\n", f"{branch} 2")
    user.git("checkout", "--quiet", "main")
    user.commit_file("x", "main\n", "main 1")
    return user


def begin_am(user: User) -> None:
    patch = user.git("format-patch", "-1", "--stdout", "side~1")
    user.git("am", "--quiet", given=patch, ok=(128,))


def begin_stash_pop(user: User) -> None:
    user.write("x", "stashed\n")
    user.git("stash", "push", "--quiet")
    user.commit_file("x", "other\n", "main 2")
    user.git("stash", "pop", "--quiet", ok=(1,))
    assert not (user.root / ".git/MERGE_HEAD").exists()


def begin_sequence(user: User) -> None:
    """Stop between two picks, when the user has committed the first and only `sequencer` is left."""
    user.git("cherry-pick", "main..side", ok=(1,))
    user.add("x", "resolved\n")
    user.git("commit", "--quiet", "--no-edit")
    assert not (user.root / ".git/CHERRY_PICK_HEAD").exists()


STATES: dict[str, tuple[Callable[[User], object], Callable[[User], object], Reason]] = {
    "merge": (
        lambda user: user.git("merge", "--quiet", "side", ok=(1,)),
        lambda user: user.git("merge", "--abort"),
        Reason.MERGE_IN_PROGRESS,
    ),
    "merge without conflict": (
        lambda user: user.git("merge", "--quiet", "--no-commit", "--no-ff", "calm"),
        lambda user: user.git("merge", "--abort"),
        Reason.MERGE_IN_PROGRESS,
    ),
    "squash with conflict": (
        lambda user: user.git("merge", "--quiet", "--squash", "side", ok=(1,)),
        lambda user: user.git("reset", "--quiet", "--hard"),
        Reason.UNMERGED_INDEX,
    ),
    "rebase with conflict": (
        lambda user: user.git("rebase", "--quiet", "side", ok=(1,)),
        lambda user: user.git("rebase", "--abort"),
        Reason.REBASE_IN_PROGRESS,
    ),
    "rebase by patches": (
        lambda user: user.git("rebase", "--quiet", "--apply", "side", ok=(1,)),
        lambda user: user.git("rebase", "--abort"),
        Reason.REBASE_IN_PROGRESS,
    ),
    "rebase that stops to edit": (
        lambda user: user.git(
            "rebase", "--quiet", "-i", "HEAD~1", GIT_SEQUENCE_EDITOR="sed -i s/^pick/edit/"
        ),
        lambda user: user.git("rebase", "--continue", GIT_EDITOR="true"),
        Reason.REBASE_IN_PROGRESS,
    ),
    "am": (begin_am, lambda user: user.git("am", "--abort"), Reason.REBASE_IN_PROGRESS),
    "cherry-pick": (
        lambda user: user.git("cherry-pick", "side~1", ok=(1,)),
        lambda user: user.git("cherry-pick", "--abort"),
        Reason.CHERRY_PICK_IN_PROGRESS,
    ),
    "between two picks": (
        begin_sequence,
        lambda user: user.git("cherry-pick", "--quit"),
        Reason.CHERRY_PICK_IN_PROGRESS,
    ),
    "revert": (
        lambda user: user.git("revert", "--no-commit", "HEAD"),
        lambda user: user.git("revert", "--abort"),
        Reason.REVERT_IN_PROGRESS,
    ),
    "bisect": (
        lambda user: user.git("bisect", "start"),
        lambda user: user.git("bisect", "reset"),
        Reason.BISECT_IN_PROGRESS,
    ),
    "stash pop with conflict": (
        begin_stash_pop,
        lambda user: user.git("reset", "--quiet", "--hard"),
        Reason.UNMERGED_INDEX,
    ),
    "detached head": (
        lambda user: user.git("checkout", "--quiet", "--detach"),
        lambda user: user.git("checkout", "--quiet", "main"),
        Reason.DETACHED_HEAD,
    ),
    "index.lock": (
        lambda user: (user.root / ".git/index.lock").touch(),
        lambda user: (user.root / ".git/index.lock").unlink(),
        Reason.INDEX_LOCKED,
    ),
}


@pytest.mark.parametrize("state", STATES)
def test_surgery_is_seen_while_it_lasts_and_no_longer(
    torn: User, engine: Engines, state: str
) -> None:
    begin, end, reason = STATES[state]
    one = engine(torn)
    assert one.obstacle() is None
    begin(torn)
    assert one.obstacle() is reason
    assert engine(torn).obstacle() is reason
    end(torn)
    assert one.obstacle() is None


@pytest.mark.parametrize(
    "state", ["merge", "rebase with conflict", "cherry-pick", "stash pop with conflict", "bisect"]
)
def test_surgery_in_a_linked_worktree_concerns_only_that_one(
    torn: User, engine: Engines, state: str
) -> None:
    torn.git("worktree", "add", "--quiet", "../linked", "-b", "linked")
    linked = User(torn.root.parent / "linked")
    STATES[state][0](linked)
    assert engine(linked).obstacle() is STATES[state][2]
    assert engine(torn).obstacle() is None


@pytest.mark.parametrize(
    ("branch", "pattern", "held"),
    [
        ("main", "main", True),
        ("release/1.0", "release/*", True),
        ("release/1/2", "release/*", True),
        ("mainline", "main", False),
        ("Main", "main", False),
        ("feature/main", "main", False),
        ("main", "[mx]ain", True),
    ],
)
def test_a_protected_branch_is_held(
    user: User, engine: Engines, branch: str, pattern: str, held: bool
) -> None:
    user.git("branch", "-m", branch)
    found = engine(user, protected=("never", pattern)).obstacle()
    assert found is (Reason.PROTECTED_BRANCH if held else None)


def test_a_protected_branch_is_held_under_another_name_too(user: User, engine: Engines) -> None:
    user.git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    user.git("symbolic-ref", "HEAD", "refs/heads/alias")
    assert engine(user, protected=("main",)).obstacle() is Reason.PROTECTED_BRANCH


def test_a_detached_head_may_be_allowed(user: User, engine: Engines) -> None:
    user.git("checkout", "--quiet", "--detach")
    one = engine(user, allow_detached=True)
    assert one.obstacle() is None
    made = one.put_and_follow(PLAN, LINE)
    assert user.tip() == made.commit and user.tip("main") != made.commit


def test_a_branch_that_the_user_went_back_to_does_not_get_the_commit_of_a_detached_head(
    user: User, engine: Engines
) -> None:
    user.git("checkout", "--quiet", "--detach")
    one = engine(user, allow_detached=True, protected=("main",))
    head = one.repository.head()
    user.git("checkout", "--quiet", "main")
    tip = user.tip("main")
    with pytest.raises(YoloError) as raised:
        one.committer.commit([entry_of(PLAN)], head)
    assert raised.value.reason is Reason.BRANCH_MOVED and user.tip("main") == tip


def entry_of(path: str):
    from yolo_fs.git.commit import CommitRequest

    return CommitRequest(path, LINE.encode(), "docs(01): plan")


# --- the index ---


def test_an_index_that_was_rewritten_a_moment_ago_is_left_in_peace(
    user: User, engine: Engines
) -> None:
    """`git reset` writes the index before it moves the branch."""
    one = engine(user)
    changed_ns = os.stat(user.root / ".git/index").st_ctime_ns
    assert one.obstacle(changed_ns + 1_000_000) is Reason.INDEX_LOCKED
    assert one.obstacle(changed_ns + 200_000_000) is None
    assert one.obstacle(changed_ns + 1_000_000) is None


def test_our_own_rewriting_of_the_index_holds_nothing(user: User, engine: Engines) -> None:
    one = engine(user)
    assert one.obstacle() is None
    one.put(PLAN, LINE)
    one.obstacles.index_rewritten(one.committer.index_left_at)
    assert one.obstacle(os.stat(user.root / ".git/index").st_ctime_ns + 1_000_000) is None


def test_an_index_that_the_user_rewrote_right_after_us_is_not_taken_for_ours(
    user: User, engine: Engines
) -> None:
    one = engine(user)
    assert one.obstacle() is None
    one.put(PLAN, LINE)
    user.add("theirs", "x\n")
    one.obstacles.index_rewritten(one.committer.index_left_at)
    changed_ns = os.stat(user.root / ".git/index").st_ctime_ns
    assert one.obstacle(changed_ns + 1_000_000) is Reason.INDEX_LOCKED


SEES_ALL = pytest.mark.skipif(
    not sees_every_process(), reason="other processes are hidden here, so the index has to rest"
)
OURS = (".yolo-planning",)


def just_rewritten(user: User) -> int:
    """Return a moment at which a script would have started its next command."""
    return os.stat(user.root / ".git/index").st_ctime_ns + 60_000_000


@contextmanager
def git_at_work(folder: Path) -> Iterator[None]:
    """Keep a git running there; it has answered once, for before that it may have no name yet."""
    with subprocess.Popen(
        ["git", "cat-file", "--batch"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as git:
        assert git.stdin and git.stdout
        git.stdin.write(b"nothing\n")
        git.stdin.flush()
        assert git.stdout.readline()
        yield
        git.communicate()


@pytest.fixture
def begun(user: User) -> User:
    """A repository with an artifact, and a branch `other` where it has another content."""
    user.commit_file(PLAN, LINE)
    user.git("branch", "other")
    user.git("checkout", "--quiet", "other")
    user.commit_file(PLAN, LINE * 2)
    user.git("checkout", "--quiet", "main")
    return user


@SEES_ALL
def test_an_index_whose_writer_has_ended_does_not_have_to_rest(
    begun: User, engine: Engines
) -> None:
    one = engine(begun, folders=OURS)
    begun.add("theirs", "x\n")
    assert one.obstacle(just_rewritten(begun) - 30_000_000) is Reason.INDEX_LOCKED
    assert one.obstacle(just_rewritten(begun)) is None


@SEES_ALL
def test_an_index_has_to_rest_while_any_git_of_the_user_is_at_work(
    begun: User, engine: Engines
) -> None:
    one = engine(begun, folders=OURS)
    begun.add("theirs", "x\n")
    with git_at_work(begun.root / ".yolo-planning"):
        assert one.obstacle(just_rewritten(begun)) is Reason.INDEX_LOCKED
    assert one.obstacle(just_rewritten(begun)) is None


@SEES_ALL
def test_a_git_of_another_repository_and_those_of_ours_are_nobody_at_work_here(
    begun: User, engine: Engines, tmp_path: Path
) -> None:
    one = engine(begun, folders=OURS)
    assert one.repository.objects.read("HEAD")  # a helper of ours runs
    begun.add("theirs", "x\n")
    elsewhere = tmp_path / "elsewhere"
    subprocess.run(["git", "init", "-q", elsewhere], check=True)
    with git_at_work(elsewhere):
        assert one.obstacle(just_rewritten(begun)) is None


def test_an_index_with_other_artifacts_than_head_has_to_rest(begun: User, engine: Engines) -> None:
    """So `git checkout` leaves it for a moment, before it moves HEAD."""
    one = engine(begun, folders=OURS)
    begun.git("read-tree", "other")
    assert one.obstacle(just_rewritten(begun)) is Reason.INDEX_LOCKED


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="needs a space of processes of its own"
)
def test_where_processes_are_hidden_an_index_has_to_rest(begun: User) -> None:
    begun.add("theirs", "x\n")
    program = (
        "from yolo_fs.git.obstacles import Obstacles\n"
        "from yolo_fs.git.repository import Repository\n"
        "repository = Repository('.')\n"
        f"found = Obstacles(repository, folders={OURS})\n"
        f"print(found.find(repository.head(), {just_rewritten(begun)}))\n"
    )
    inside = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", program],
        cwd=begun.root, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert inside.stdout.strip() == str(Reason.INDEX_LOCKED)


def test_a_repository_without_index_has_no_obstacle(make: Make, engine: Engines) -> None:
    assert engine(make("unborn", born=False)).obstacle() is None


# --- a branch that power loss tore ---


def truncate(data: bytes) -> Callable[[User], object]:
    return lambda user: (user.root / ".git/refs/heads/main").write_bytes(data)


def lose_packed_refs(user: User) -> None:
    user.git("pack-refs", "--all")
    (user.root / ".git/packed-refs").write_bytes(b"")


def lose_without_reflog(user: User) -> None:
    shutil.rmtree(user.root / ".git/logs")
    truncate(b"")(user)


BREAKS: dict[str, Callable[[User], object]] = {
    "empty": truncate(b""),
    "40 zero bytes": truncate(b"\0" * 40),
    "41 zero bytes": truncate(b"\0" * 41),
    "half": truncate(b"0123456789abcdef"),
    "the zero id": truncate(b"0" * 40 + b"\n"),
    "gone": lambda user: (user.root / ".git/refs/heads/main").unlink(),
    "packed-refs emptied": lose_packed_refs,
    "empty and no reflog": lose_without_reflog,
}


@NEEDS_REF_FILES
@pytest.mark.parametrize("broken", BREAKS)
def test_a_broken_branch_is_held(user: User, engine: Engines, broken: str) -> None:
    BREAKS[broken](user)
    assert engine(user).obstacle() is Reason.BRANCH_BROKEN


@NEEDS_REF_FILES
@pytest.mark.parametrize(
    "broken", [name for name in BREAKS if name not in ("gone", "packed-refs emptied")]
)
def test_a_broken_branch_never_becomes_a_new_root_even_if_it_is_tried(
    user: User, engine: Engines, broken: str
) -> None:
    BREAKS[broken](user)
    before = (user.root / ".git/refs/heads/main").read_bytes()
    with pytest.raises(YoloError):
        engine(user).put(PLAN, LINE)
    assert (user.root / ".git/refs/heads/main").read_bytes() == before


def test_a_branch_that_was_born_since_it_was_looked_at_is_not_broken(
    make: Make, engine: Engines
) -> None:
    user = make("unborn", born=False)
    one = engine(user)
    head = one.repository.head()
    user.commit()
    assert one.obstacles.find(head, LATER_NS) is not Reason.BRANCH_BROKEN


def test_the_first_commit_of_an_orphan_branch_is_a_persons(user: User, engine: Engines) -> None:
    user.git("checkout", "--quiet", "--orphan", "fresh")
    assert engine(user).obstacle() is Reason.UNBORN_BRANCH
    user.commit()
    assert engine(user).obstacle() is None


def test_a_ref_that_is_no_branch_belongs_to_nobody(user: User, engine: Engines) -> None:
    user.git("symbolic-ref", "HEAD", "refs/jj/root")
    assert engine(user, allow_detached=True).obstacle() is Reason.DETACHED_HEAD


@pytest.mark.parametrize("branch", ["gitbutler/workspace", "gitbutler/integration"])
def test_a_branch_of_another_tool_is_protected_unasked(
    user: User, engine: Engines, branch: str
) -> None:
    user.git("checkout", "--quiet", "-b", branch)
    assert engine(user).obstacle() is Reason.PROTECTED_BRANCH


@NEEDS_REF_FILES
def test_empty_folders_that_a_deleted_branch_left_are_no_past(user: User, engine: Engines) -> None:
    for place in (".git/refs/heads/a/b", ".git/logs/refs/heads/a/b"):
        (user.root / place).mkdir(parents=True)
    user.git("symbolic-ref", "HEAD", "refs/heads/a")
    assert engine(user).obstacle() is Reason.UNBORN_BRANCH


# --- the user's own commit ---


@contextmanager
def waiting(
    user: User, tmp_path: Path, *arguments: str, hook: str = "", code: int = 0
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a git command whose editor, or whose hook, says that it began and then waits to be let go."""
    began, go = tmp_path / "began", tmp_path / "go"
    os.mkfifo(began)
    os.mkfifo(go)
    script = f'#!/bin/sh\necho begun >"{began}"\nread _ <"{go}"\ntest -n "$1" && echo message >"$1"\nexit {code}\n'
    place = user.write(f".git/hooks/{hook}" if hook else "../editor", script)
    place.chmod(0o755)
    process = user.start(*arguments, GIT_EDITOR="true" if hook else str(place))
    try:
        assert began.read_bytes() == b"begun\n"
        yield process
    finally:
        with_go = os.open(go, os.O_RDWR)
        os.write(with_go, b"go\n")
        process.communicate(timeout=20)
        os.close(with_go)


def end_of(process: subprocess.Popen[bytes]) -> int:
    return process.wait(timeout=20)


@TELLS_OF_COMMITS
@pytest.mark.parametrize(
    "arguments",
    [
        ("commit",),
        ("-c", "core.quotePath=false", "commit", "--allow-empty"),
        ("ci",),
        ("commit", "--amend"),
        ("commit", "-a"),
    ],
    ids=" ".join,
)
def test_while_the_user_is_in_the_editor_of_a_commit_nothing_moves(
    user: User, engine: Engines, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    user.git("config", "alias.ci", "commit")
    user.add("mine", "mine\n")
    one = engine(user)
    assert one.obstacle() is None
    with waiting(user, tmp_path, *arguments) as process:
        assert one.obstacle() in (Reason.USER_COMMITTING, Reason.INDEX_LOCKED)
        assert one.obstacle() in (Reason.USER_COMMITTING, Reason.INDEX_LOCKED)
    assert process.returncode == 0
    assert one.obstacle() is None
    assert one.put_and_follow(PLAN, LINE).commit == user.tip()


@TELLS_OF_COMMITS
@pytest.mark.parametrize("arguments", [("commit", "-m", "mine"), ("commit",)], ids=" ".join)
@pytest.mark.parametrize("hook", ["pre-commit", "prepare-commit-msg", "commit-msg"])
def test_while_a_hook_of_the_users_commit_runs_nothing_moves(
    user: User, engine: Engines, tmp_path: Path, hook: str, arguments: tuple[str, ...]
) -> None:
    """`pre-commit` runs before git writes COMMIT_EDITMSG, and often takes longest; the tip was read before it."""
    user.commit_file("before", "x\n")
    user.add("mine", "mine\n")
    one = engine(user)
    assert one.obstacle() is None
    with waiting(user, tmp_path, *arguments, hook=hook):
        assert one.obstacle() is Reason.USER_COMMITTING


@pytest.mark.skipif(not IS_LINUX, reason="without /proc nothing tells which process started which")
def test_while_a_users_commit_that_is_made_waits_for_its_housekeeping_nothing_is_held(
    user: User, engine: Engines, tmp_path: Path
) -> None:
    for setting in TIDIES_SOON:
        user.git("config", *setting)
    for content in counted_by_gc(user.text("rev-parse", "--show-object-format")):
        user.git("hash-object", "-w", "--stdin", given=content)
    user.add("mine", "mine\n")
    before, one = user.tip(), engine(user)
    with waiting(
        user, tmp_path, "commit", "-q", "-m", "mine", hook="pre-auto-gc", code=1
    ) as process:
        assert user.tip() != before and process.poll() is None
        assert one.obstacle() is None
        assert one.put_and_follow(PLAN, LINE).commit == user.tip()
        assert process.poll() is None
    assert process.returncode == 0


def test_a_commit_in_another_repository_holds_nothing(
    user: User, make: Make, engine: Engines, tmp_path: Path
) -> None:
    other = make("work-2")
    user.commit_file("x", "x\n")
    with waiting(other, tmp_path, "commit", "--allow-empty"):
        assert engine(user).obstacle() is None


def test_a_git_to_which_commit_is_an_argument_holds_nothing(user: User, engine: Engines) -> None:
    """Such as `git log --grep commit`, whose pager may stay open for hours."""
    user.commit_file("x", "x\n")
    one = engine(user)
    command = ["git", "-c", "commit.gpgSign=false", "hash-object", "--stdin", "--path", "commit"]
    with subprocess.Popen(
        command, cwd=user.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as waiting:
        assert one.obstacle() is None
        waiting.communicate(b"")


def test_the_users_commit_would_die_if_the_branch_moved(
    user: User, engine: Engines, tmp_path: Path
) -> None:
    """The harm that holding prevents; if this stops being so, the tests above prove nothing."""
    user.add("mine", "mine\n")
    with waiting(user, tmp_path, "commit", "-m", "mine", hook="pre-commit") as process:
        engine(user).put(PLAN, LINE)
    assert process.returncode == 128


@pytest.mark.skipif(
    not IS_LINUX, reason="only /proc shows what another process may write; the sandboxed one holds"
)
@pytest.mark.parametrize(
    ("somebody_commits", "expected"), [(False, Reason.STORAGE_FAILED), (True, None)]
)
def test_what_only_a_sandbox_forbids_is_no_obstacle_to_the_daemon_outside(
    user: User, monkeypatch: pytest.MonkeyPatch, somebody_commits: bool, expected: Reason | None
) -> None:
    lock = user.root / "daemon.lock"
    held = subprocess.Popen(
        ["flock", "-x", lock, "sh", "-c", "echo held; read end"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert held.stdin and held.stdout and held.stdout.readline()
    if not somebody_commits:
        held.communicate(b"\n")
    truth = os.statvfs
    facts = truth(user.root)
    read_only = os.statvfs_result((*facts[:8], facts.f_flag | os.ST_RDONLY, *facts[9:]))
    monkeypatch.setattr(  # only as this process sees it
        os, "statvfs", lambda path: truth(path) if path.startswith("/proc/") else read_only
    )
    with Repository(str(user.root)) as repository:
        found = Obstacles(repository, committer_lock=str(lock)).find(repository.head())
        alone = Obstacles(repository).find(repository.head())
    held.communicate(b"\n") if somebody_commits else None
    assert (found, alone) == (expected, Reason.STORAGE_FAILED)


# --- what git's own rules say of a path, and that a change of the rules is noticed ---


IGNORED, FILTERED = Reason.GITIGNORED, Reason.ATTR_FILTER


@pytest.mark.parametrize(
    ("file", "lines", "reason"),
    [
        (".gitignore", ".yolo-planning/\n", IGNORED),
        (".gitignore", "*.jsonl\n", IGNORED),
        (".gitignore", "*.json\n", None),
        (".gitignore", f"/{PLAN}\n", IGNORED),
        (".gitignore", "*.jsonl\n!*.plan.jsonl\n", None),
        (".gitignore", "!*.plan.jsonl\n*.jsonl\n", IGNORED),
        (".gitignore", ".yolo-planning/\n!*.plan.jsonl\n", IGNORED),
        (".gitignore", "\\!x\n# *.jsonl\n", None),
        (".yolo-planning/.gitignore", "phases/*/01-01*\n", IGNORED),
        (f"{PHASE}/.gitignore", "*\n", IGNORED),
        (f"{PHASE}/.gitignore", "*\n!*.plan.jsonl\n", None),
        (".git/info/exclude", "*.plan.jsonl\n", IGNORED),
        (".gitattributes", "*.jsonl text=auto eol=lf\n", None),
        (
            ".gitattributes",
            "* text=auto\n*.jsonl text eol=crlf diff=json merge=union -whitespace\n",
            None,
        ),
        (".gitattributes", "*.jsonl filter=lfs diff=lfs merge=lfs -text\n", FILTERED),
        (".gitattributes", "*.jsonl filter=lfs\n*.plan.jsonl -filter\n", None),
        (".gitattributes", "*.jsonl filter=lfs\n*.plan.jsonl !filter\n", None),
        (".gitattributes", "*.jsonl ident\n", FILTERED),
        (".gitattributes", "*.jsonl -ident\n", None),
        (".gitattributes", "*.jsonl working-tree-encoding=UTF-16\n", FILTERED),
        (".gitattributes", "[attr]big filter=lfs\n*.jsonl big\n", FILTERED),
        (f"{PHASE}/.gitattributes", "*.plan.jsonl filter=x\n", FILTERED),
        (".git/info/attributes", "*.jsonl filter=x\n", FILTERED),
        ("../home/.config/git/ignore", "*.jsonl\n", IGNORED),
        ("../home/.config/git/attributes", "*.jsonl filter=x\n", FILTERED),
    ],
)
def test_the_rules_of_git_hold_a_path(
    user: User, engine: Engines, file: str, lines: str, reason: Reason | None
) -> None:
    user.write(file, lines)
    assert engine(user).rules.reason_to_hold(PLAN, in_head=False) is reason


def test_the_configured_excludes_file_counts(user: User, engine: Engines) -> None:
    user.write("../excludes", "*.plan.jsonl\n")
    user.git("config", "core.excludesFile", str(user.root.parent / "excludes"))
    assert engine(user).rules.reason_to_hold(PLAN, in_head=False) is IGNORED


def test_a_tracked_path_is_not_ignored_but_still_filtered(user: User, engine: Engines) -> None:
    user.write(".gitignore", "*.jsonl\n")
    rules = engine(user).rules
    assert rules.reason_to_hold(PLAN, in_head=True) is None
    assert rules.reason_to_hold(PLAN, in_head=False) is IGNORED
    user.write(".gitattributes", "*.jsonl filter=lfs\n")
    assert rules.reason_to_hold(PLAN, in_head=True) is FILTERED


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", [".gitattributes", ".gitignore"])
def test_where_git_would_wait_for_the_rules_of_a_folder_it_is_not_asked(
    user: User, engine: Engines, name: str
) -> None:
    one = engine(user)
    (user.root / PLAN).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo((user.root / PLAN).parent / name)
    assert one.rules.reason_to_hold(PLAN, in_head=False) is Reason.NOT_REGULAR
    one.rules.learn([PLAN])
    assert one.rules.reason_to_hold(PLAN, in_head=True) is Reason.NOT_REGULAR


def test_a_path_that_is_only_staged_is_still_ignored(user: User, engine: Engines) -> None:
    user.write(".gitignore", "*.jsonl\n")
    user.add(PLAN, "x\n")
    assert engine(user).rules.reason_to_hold(PLAN, in_head=False) is IGNORED


def test_ignored_paths_may_be_allowed_but_not_filtered_ones(user: User, engine: Engines) -> None:
    user.write(".gitignore", "*.jsonl\n")
    user.write(".gitattributes", "a.jsonl ident\n")
    rules = engine(user, commit_ignored=True).rules
    assert rules.reason_to_hold(PLAN, in_head=False) is None
    assert rules.reason_to_hold("a.jsonl", in_head=False) is FILTERED


def test_each_folder_has_its_own_rules(user: User, engine: Engines) -> None:
    user.write("a/.gitignore", "*.jsonl\n")
    rules = engine(user).rules
    asked = ["a/x.jsonl", "b/x.jsonl", "x.jsonl", "a/b/x.jsonl", "a/x.md"]
    assert [rules.reason_to_hold(path, in_head=False) for path in asked] == [
        IGNORED,
        None,
        None,
        IGNORED,
        None,
    ]


@pytest.mark.parametrize(
    ("file", "lines", "reason"),
    [
        (".gitignore", "*.jsonl\n", IGNORED),
        (f"{PHASE}/.gitignore", "*.jsonl\n", IGNORED),
        (".gitattributes", "*.jsonl ident\n", FILTERED),
        (".git/info/exclude", "*.jsonl\n", IGNORED),
        (".git/info/attributes", "*.jsonl ident\n", FILTERED),
        ("../home/.config/git/ignore", "*.jsonl\n", IGNORED),
        ("../home/.gitconfig", "[core]\n\texcludesFile = ~/mine\n", IGNORED),
        ("../home/excludes", "*.jsonl\n", IGNORED),
    ],
)
def test_a_changed_rule_is_noticed_both_ways(
    user: User, engine: Engines, file: str, lines: str, reason: Reason
) -> None:
    user.git("config", "core.excludesFile", "~/excludes") if file.endswith("/excludes") else None
    user.write("../home/mine", "*.jsonl\n")
    rules = engine(user).rules
    assert rules.reason_to_hold(PLAN, in_head=False) is None
    user.write(file, lines)
    assert rules.reason_to_hold(PLAN, in_head=False) is reason
    (user.root / file).unlink()
    assert rules.reason_to_hold(PLAN, in_head=False) is None


def test_a_rule_of_the_same_size_and_time_is_noticed(user: User, engine: Engines) -> None:
    place = user.write(".gitignore", "*.xsonl\n")
    rules, then = engine(user).rules, place.stat()
    assert rules.reason_to_hold(PLAN, in_head=False) is None
    user.write(".gitignore", "*.jsonl\n\n"[:8])
    os.utime(place, ns=(then.st_atime_ns, then.st_mtime_ns))
    assert rules.reason_to_hold(PLAN, in_head=False) is IGNORED


def test_a_helper_that_died_is_started_anew(user: User, engine: Engines) -> None:
    rules = engine(user).rules
    assert rules.reason_to_hold("a.jsonl", in_head=False) is None
    for helper in (rules._ignore._git, rules._attributes):
        os.kill(helper.pid, signal.SIGKILL)
    try:
        assert rules.reason_to_hold("b.jsonl", in_head=False) is None
    except YoloError:
        assert rules.reason_to_hold("b.jsonl", in_head=False) is None


def test_a_path_that_git_refuses_to_judge_does_not_stop_the_others(
    user: User, engine: Engines
) -> None:
    (user.root / "link").symlink_to("elsewhere")
    rules = engine(user).rules
    with pytest.raises(YoloError):
        rules.reason_to_hold("link/x.jsonl", in_head=False)
    assert rules.reason_to_hold(PLAN, in_head=False) is None


@pytest.mark.parametrize("kind", ["submodule", "nested repository", "linked worktree"])
def test_a_path_inside_another_repository_is_not_ours(
    user: User, make: Make, engine: Engines, kind: str
) -> None:
    inner = make("work/inner" if kind == "nested repository" else "elsewhere")
    if kind == "submodule":
        user.git(
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            str(inner.root),
            "inner",
        )
    elif kind == "linked worktree":
        user.git("worktree", "add", "--quiet", "inner", "-b", "inner")
    rules = engine(user).rules
    assert rules.reason_to_hold("inner/deep/x.jsonl", in_head=False) is Reason.FOREIGN_REPOSITORY
    assert rules.reason_to_hold("beside/x.jsonl", in_head=False) is None


def test_a_changed_rule_counts_for_a_folder_that_is_asked_for_the_first_time(
    user: User, engine: Engines
) -> None:
    rules = engine(user).rules
    assert rules.reason_to_hold("a/x.jsonl", in_head=False) is None
    user.write(".gitignore", "*.jsonl\n")
    assert rules.reason_to_hold("b/x.jsonl", in_head=False) is IGNORED


def test_a_repository_that_makes_git_complain_at_length_does_not_freeze_us(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these lines gives a warning; together they fill a pipe that nobody reads."""
    user.write(".gitattributes", "!negative text\n" * 5_000)
    monkeypatch.setattr(conversation, "TIMEOUT_S", 1.0)
    assert engine(user).rules.reason_to_hold(PLAN, in_head=False) is None


@pytest.mark.parametrize("seed", range(4))
def test_random_rules_are_judged_as_git_judges_them(user: User, engine: Engines, seed: int) -> None:
    print(f"seed {seed}")
    rng, rules = random.Random(seed), engine(user).rules
    folders = ("", "a/", "a/b/", "c/")
    for _ in range(12):
        patterns = rng.choices(
            [
                "*",
                "*.jsonl",
                "x*",
                "!*",
                "!x.jsonl",
                "/a",
                "a/",
                "b/",
                "!a/",
                "**/b",
                "!b/**",
                "y.md",
            ],
            k=3,
        )
        user.write(f"{rng.choice(folders)}.gitignore", "\n".join(patterns) + "\n")
        asked = [folder + name for folder in folders for name in ("x.jsonl", "y.md")]
        said = user.git("check-ignore", "--no-index", "--", *asked, ok=(0, 1)).decode().split()
        assert [path for path in asked if rules.reason_to_hold(path, in_head=False)] == said


@pytest.mark.skipif(not IS_LINUX, reason="without /proc nothing tells that a pull runs")
@pytest.mark.parametrize("how", ["--no-rebase", "--rebase", "--ff-only"])
def test_while_a_pull_of_the_user_fetches_nothing_moves_and_it_goes_on(
    user: User, engine: Engines, tmp_path: Path, how: str
) -> None:
    """git gives up when the branch has moved, and advises `git reset --hard`."""
    user.commit_file("mine", "1\n")
    user.git("clone", "-q", str(user.root), str(tmp_path / "theirs"))
    theirs = User(tmp_path / "theirs")
    theirs.commit_file("theirs", "1\n")
    pipe, slow = tmp_path / "pipe", tmp_path / "slow"
    os.mkfifo(pipe)
    slow.write_text(f'#!/bin/sh\nread line < {pipe}\nexec git-upload-pack "$@"\n')
    slow.chmod(0o755)
    one = engine(user)
    assert one.obstacle() is None
    branch = user.text("symbolic-ref", "--short", "HEAD")
    command = ["git", "pull", "-q", how, f"--upload-pack={slow}", str(theirs.root), branch]
    pull = subprocess.Popen(command, cwd=user.root, stderr=subprocess.PIPE, text=True)
    with open(pipe, "w") as end:  # opened once the other side reads
        assert one.obstacle() is Reason.PULL_IN_PROGRESS
        assert one.obstacle() is Reason.PULL_IN_PROGRESS
        end.write("\n")
    assert (pull.communicate()[1], pull.returncode) == ("", 0)
    assert one.obstacle() is None
    assert one.put_and_follow(PLAN, LINE).commit == user.tip()


@pytest.mark.skipif(not IS_LINUX, reason="without /proc nothing tells that a pull runs")
def test_a_git_to_which_pull_is_an_argument_holds_nothing(user: User, engine: Engines) -> None:
    """Such as `git log pull`, whose pager may stay open for hours."""
    user.commit_file("mine", "1\n")
    one = engine(user)
    command = ["git", "-c", "core.pager=cat", "hash-object", "--stdin", "--path", "pull"]
    with subprocess.Popen(
        command, cwd=user.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as waiting:
        assert one.obstacle() is None
        waiting.communicate(b"")
