"""Each artifact its own commit, durable, on top of what was seen, in every kind of repository.

See docs/dev/faults.md#f04, #f08 and #f27 to #f32.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.git.conftest import (
    NEEDS_REF_FILES,
    PHASE,
    PLAN,
    REF_LOCK,
    REFTABLE,
    Engine,
    Engines,
    Make,
    User,
)
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git.commit import CommitRequest, CommitResult
from yolo_fs.git.index import IndexSync
from yolo_fs.git.object_format import GitObject

LINE = '{"p":"01"}\n'
SUBJECT = "docs(01): plan 01-01"
TRAILERS = (
    ("Yolo-Artifact", "plan"),
    ("Yolo-Phase", "01-auth"),
    ("Yolo-Dept", "backend"),
    ("Yolo-Schema", "artifact/plan/1"),
)


def entry(path: str = PLAN, data: str = LINE, subject: str = SUBJECT) -> CommitRequest:
    return CommitRequest(path, data.encode(), subject, TRAILERS)


def changes(user: User, commit: str) -> list[str]:
    """Return status and path of each path that a commit changes."""
    return user.text(
        "diff-tree", "-r", "--root", "--no-commit-id", "--name-status", "--no-renames", commit
    ).splitlines()


def check_one_commit(user: User, one: Engine, path: str = PLAN) -> None:
    """Commit an artifact and let an outsider look at the result."""
    before = user.git("rev-parse", "--verify", "--quiet", "HEAD", ok=(0, 1)).decode().split()
    made = one.put_and_follow(path, LINE)
    assert made.commit == user.tip() and user.show(path) == LINE.encode()
    assert user.text("log", "-1", "--format=%P").split() == before
    assert changes(user, made.commit) == [f"A\t{path}"]
    assert (
        user.git("status", "--porcelain", "--", path)
        == b""
        == user.git("diff", "--cached", "--", path)
    )
    user.fsck()


# --- kinds of repositories ---


def linked(make: Make) -> User:
    user = make()
    user.git("worktree", "add", "--quiet", "../linked", "-b", "side")
    return User(user.root.parent / "linked")


def slashes(make: Make) -> User:
    user = make()
    user.git("checkout", "--quiet", "-b", "feature/deep/name")
    return user


def packed(make: Make) -> User:
    user = slashes(make)
    user.git("pack-refs", "--all")
    user.git("gc", "--quiet")
    return user


def cloned(*options: str):
    def clone(make: Make) -> User:
        origin = make("origin")
        for place in ("kept/a", "left/b", f"{PHASE}/old"):
            origin.commit_file(place, "x\n")
        origin.git("config", "uploadpack.allowFilter", "true")
        origin.git("clone", "--quiet", *options, f"file://{origin.root}", "../clone")
        return User(origin.root.parent / "clone")

    return clone


def sparse(*options: str):
    def narrow(make: Make) -> User:
        user = cloned()(make)
        user.git("sparse-checkout", "set", *options)
        return user

    return narrow


def configured(*settings: str):
    def configure(make: Make) -> User:
        user = make()
        for setting in settings:
            user.git("config", *setting.split("=", 1))
        return user

    return configure


def split(make: Make) -> User:
    user = configured("core.splitIndex=true")(make)
    user.git("update-index", "--split-index")
    return user


KINDS = {
    "normal": lambda make: make(),
    "unborn": lambda make: make(born=False),
    "unborn in folders": lambda make: make("x", "--initial-branch=a/b/c", born=False),
    "sha256": lambda make: make("x", "--object-format=sha256"),
    "unborn sha256": lambda make: make("x", "--object-format=sha256", born=False),
    "linked worktree": linked,
    "branch with slashes": slashes,
    "everything packed": packed,
    "shallow": cloned("--depth=1"),
    "without blobs": cloned("--filter=blob:none"),
    "borrowed objects": cloned("--shared"),
    "cone": sparse("--cone", "kept"),
    "cone and sparse index": sparse("--cone", "--sparse-index", "kept"),
    "sparse patterns": sparse("--no-cone", "/kept/*"),
    "split index": split,
    "signing asked": configured("commit.gpgSign=true", "gpg.program=/bin/false"),
    "eol": configured("core.autocrlf=input", "core.eol=crlf", "core.safecrlf=warn"),
    "shared": configured("core.sharedRepository=group"),
    "no reflogs": configured("core.logAllRefUpdates=false"),
    "strict transfer": configured("transfer.fsckObjects=true", "receive.denyCurrentBranch=refuse"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_in_every_kind_of_repository(make: Make, engine: Engines, kind: str) -> None:
    user = KINDS[kind](make)
    one = engine(user)
    check_one_commit(user, one)
    check_one_commit(user, one, "second.jsonl")


@pytest.mark.parametrize(
    "kind",
    ["normal", "unborn", "sha256", "linked worktree", "everything packed", "cone and sparse index"],
)
def test_a_chain(make: Make, engine: Engines, kind: str) -> None:
    user = KINDS[kind](make)
    one = engine(user)
    made = one.commit(*(entry(f"{PHASE}/{number:02}.plan.jsonl") for number in range(10)))
    commits = [each.commit for each in made]
    assert (
        user.text(
            "rev-list", "--first-parent", "--reverse", f"--max-count={len(made)}", "HEAD"
        ).split()
        == commits
    )
    assert [changes(user, commit) for commit in commits] == [[f"A\t{each.path}"] for each in made]
    assert one.follower.follow()
    user.fsck()


def test_a_partial_clone_that_lacks_trees_says_so_and_fetches_nothing(
    make: Make, engine: Engines
) -> None:
    user = cloned("--filter=tree:0", "--no-checkout")(make)
    user.git("config", "remote.origin.url", "file:///does/not/exist")
    with pytest.raises(YoloError) as raised:
        engine(user).put(PLAN, LINE)
    assert raised.value.reason is Reason.OBJECT_MISSING


def test_the_main_work_tree_is_untouched_by_a_commit_in_a_linked_one(
    make: Make, engine: Engines
) -> None:
    side = linked(make)
    main = User(side.root.parent / "work")
    before = (main.snapshot(), main.tip(), (main.root / ".git/index").read_bytes())
    engine(side).put_and_follow(PLAN, LINE)
    assert (main.snapshot(), main.tip(), (main.root / ".git/index").read_bytes()) == before


@pytest.mark.parametrize(
    ("before", "path"),
    [(f"{PHASE}", PLAN), (f"{PLAN}/inner", PLAN)],
    ids=["file to folder", "folder to file"],
)
def test_a_path_that_changed_its_kind(user: User, engine: Engines, before: str, path: str) -> None:
    user.commit_file(before, "old\n")
    user.commit_file("beside", "x\n")
    shutil.rmtree(user.root / ".yolo-planning")
    made = engine(user).put_and_follow(path, LINE)
    assert changes(user, made.commit) == sorted(
        [f"D\t{before}", f"A\t{path}"], key=lambda line: line[2:]
    )
    assert user.text("ls-files", "--", ".yolo-planning") == path
    assert user.git("status", "--porcelain") == b""


def test_a_submodule_never_gives_way_to_a_folder(user: User, engine: Engines) -> None:
    user.git("update-index", "--add", "--cacheinfo", f"160000,{user.tip()},.yolo-planning")
    tip = user.commit()
    with pytest.raises(YoloError):
        engine(user).put(PLAN, LINE)
    assert user.tip() == tip


def test_in_a_shared_repository_the_group_may_read_our_objects(make: Make, engine: Engines) -> None:
    user, before = make("shared", "--shared=group"), os.umask(0o077)
    try:
        engine(user).put(PLAN, LINE)
    finally:
        os.umask(before)
    kept = (user.root / ".git/objects/pack").iterdir()
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o440}


# --- what is committed ---


def test_the_message_is_exactly_subject_and_trailers(user: User, engine: Engines) -> None:
    commit = engine(user).commit(entry())[0].commit
    raw = user.git("cat-file", "commit", commit)
    message = raw.partition(b"\n\n")[2]
    assert (
        message
        == f"{SUBJECT}\n\n{''.join(f'{key}: {value}' + chr(10) for key, value in TRAILERS)}".encode()
    )
    parsed = user.text("interpret-trailers", "--parse", given=message)
    assert parsed.splitlines() == [f"{key}: {value}" for key, value in TRAILERS]


def test_a_message_without_trailers_ends_with_its_subject(user: User, engine: Engines) -> None:
    commit = engine(user).commit(CommitRequest(PLAN, b"x\n", SUBJECT))[0].commit
    assert user.git("cat-file", "commit", commit).partition(b"\n\n")[2] == f"{SUBJECT}\n".encode()


def test_the_commit_is_the_one_that_git_would_make(user: User, engine: Engines) -> None:
    base, one = user.tip(), engine(user)
    commit = one.commit(entry())[0].commit
    who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in
           (("NAME", "Engine"), ("EMAIL", "engine@example.org"), ("DATE", "2026-01-02T03:04:05+0000"))}  # fmt: skip
    same = user.text(
        "commit-tree", f"{commit}^{{tree}}", "-p", base, given=entry().message.encode(), **who
    )
    assert same == commit


@pytest.mark.parametrize(
    "data", [b"", b"x", b"\r\n\r\n", bytes(range(256)), b"<<<<<<< HEAD\n", "ü\n".encode() * 9_999]
)
def test_the_bytes_that_were_given_are_the_bytes_that_are_committed(
    user: User, engine: Engines, data: bytes
) -> None:
    user.write(".gitattributes", "* text=auto eol=crlf ident filter=x\n")
    user.git("config", "filter.x.clean", "rev")
    user.write(PLAN, "other bytes on disk\n")
    engine(user).commit(CommitRequest(PLAN, data, SUBJECT))
    assert user.show(PLAN) == data


PATHS = [
    "x",
    "a/b/c/d/e/f/g",
    "ünï/ç.jsonl",
    "a b/c d.jsonl",
    "-x",
    "a\udcff.jsonl",
    'quo"te',
    "a\nb",
    "a\tb",
    ":(top)x",
]


@pytest.mark.parametrize("path", PATHS)
def test_any_path_can_be_committed_and_followed(user: User, engine: Engines, path: str) -> None:
    made = engine(user).put_and_follow(path, LINE)
    listed = os.fsdecode(
        user.git("diff-tree", "-r", "-z", "--name-only", "--no-commit-id", made.commit)
    )
    assert listed == path + "\0"
    assert user.git("status", "--porcelain") == b""


@pytest.mark.parametrize("version", ["2", "4"])  # git alone reads the fourth
@pytest.mark.parametrize("path", PATHS)
def test_a_second_version_of_any_path_is_followed_too(
    user: User, engine: Engines, path: str, version: str
) -> None:
    user.git("update-index", "--index-version", version)
    engine(user).put_and_follow(path, LINE)
    one = engine(user)  # which knows nothing of the index yet
    one.put_and_follow(path, LINE * 2)
    assert one.follower.diverged == set()
    assert user.git("status", "--porcelain") == b""


def test_the_same_content_again_makes_no_commit(user: User, engine: Engines) -> None:
    one = engine(user)
    first = one.commit(entry())[0]
    tip = user.tip()
    assert one.commit(entry())[0] == type(first)(PLAN, first.blob, None)
    assert user.tip() == tip and int(user.text("rev-list", "--count", "HEAD")) == 2


def test_an_executable_with_the_same_content_makes_no_commit(user: User, engine: Engines) -> None:
    user.add(PLAN, LINE)
    user.git("update-index", "--chmod=+x", PLAN)
    user.commit()
    assert engine(user).commit(entry())[0].commit is None


def test_versions_of_one_path_in_one_chain_are_each_a_commit(user: User, engine: Engines) -> None:
    made = engine(user).commit(
        entry(data="1\n"), entry(data="2\n"), entry(data="2\n"), entry(data="1\n")
    )
    assert [each.commit is not None for each in made] == [True, True, False, True]
    assert [user.show(PLAN, each.commit) for each in made if each.commit] == [
        b"1\n",
        b"2\n",
        b"1\n",
    ]


def test_nothing_to_commit_moves_nothing(user: User, engine: Engines) -> None:
    before = user.text("reflog", "main")
    assert engine(user).commit() == ()
    assert user.text("reflog", "main") == before


# --- races ---


def test_a_tip_that_moved_meanwhile_leaves_all_as_it_is(user: User, engine: Engines) -> None:
    one = engine(user)
    head = one.repository.head()
    moved = user.commit_file("theirs", "x\n")
    before = user.snapshot()
    with pytest.raises(YoloError) as raised:
        one.committer.commit([entry()], head)
    assert raised.value.reason is Reason.BRANCH_MOVED and raised.value.exit_code == 75
    assert one.follower.follow()
    assert user.tip() == moved and user.snapshot() == before
    assert one.commit(entry())[0].commit == user.tip()


def test_a_head_that_went_to_another_branch_meanwhile_leaves_all_as_it_is(
    user: User, engine: Engines
) -> None:
    """The tip is the same, so that comparing it alone proves nothing. See docs/dev/faults.md#f28."""
    one = engine(user)
    head = one.repository.head()
    user.git("checkout", "--quiet", "-b", "other")
    before = user.text("for-each-ref")
    with pytest.raises(YoloError) as raised:
        one.committer.commit([entry()], head)
    assert raised.value.reason is Reason.BRANCH_MOVED and user.text("for-each-ref") == before


def test_a_planted_lock_leaves_all_as_it_is(user: User, engine: Engines) -> None:
    one, before, tip = engine(user), user.snapshot(), user.tip()
    (user.root / f".git/{REF_LOCK}").touch()
    with pytest.raises(YoloError) as raised:
        one.commit(entry())
    assert raised.value.reason is Reason.REF_LOCKED
    assert one.follower.follow()
    assert user.tip() == tip and user.snapshot() == before


def test_of_two_first_commits_one_is_the_root(make: Make, engine: Engines) -> None:
    user = make(born=False)
    first, second = engine(user), engine(user)
    heads = first.repository.head(), second.repository.head()
    made = first.committer.commit([entry("a.jsonl")], heads[0])[0]
    with pytest.raises(YoloError) as raised:
        second.committer.commit([entry("b.jsonl")], heads[1])
    assert raised.value.reason is Reason.BRANCH_MOVED
    assert user.text("rev-list", "--all") == made.commit
    second.commit(entry("b.jsonl"))
    assert user.text("rev-list", "--max-parents=0", "--all") == made.commit


WORKER = """
import random, sys, time
from datetime import UTC, datetime
from yolo_fs.git.commit import Committer, CommitRequest
from yolo_fs.git.index import IndexSync
from yolo_fs.git.refs import RefUpdater
from yolo_fs.git.repository import Repository
from yolo_fs.core.reasons import Reason, YoloError
root, name = sys.argv[1:]
repository = Repository(root, durable=False)
branches = RefUpdater(repository, durable=False)
committer = Committer(repository, branches, IndexSync(repository), lambda: datetime.now(UTC))
print("ready", flush=True)
sys.stdin.readline()
for number in range(25):
    while True:
        try:
            head = repository.head()
            made = committer.extend([CommitRequest(f"{name}/{number}.jsonl", b"x\\n", "docs(01): plan")], *head)
            break
        except YoloError as error:
            assert error.reason in (Reason.BRANCH_MOVED, Reason.REF_LOCKED), error
            time.sleep(random.uniform(0, 0.005))
    print(made[0].commit, flush=True)
"""


@pytest.mark.parametrize("born", [True, False], ids=["born", "unborn"])
def test_four_processes_lose_none_of_a_hundred_commits(make: Make, born: bool) -> None:
    """Without the index: only who holds the daemon's lock commits where a work tree stands."""
    user = make(born=born)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(user.root), f"w{number}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=os.getcwd(),
        )
        for number in range(4)
    ]  # fmt: skip
    assert [worker.stdout.readline() for worker in workers] == ["ready\n"] * 4
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    said = [worker.communicate(timeout=90) for worker in workers]
    assert [err for _, err in said] == [""] * 4
    acknowledged = [commit for out, _ in said for commit in out.split()]
    assert len(set(acknowledged)) == 100
    assert set(acknowledged) == set(user.text("rev-list", "--first-parent", "HEAD").split()[:100])
    assert len(user.text("rev-list", "--max-parents=0", "HEAD").split()) == 1
    assert all(len(changes(user, commit)) == 1 for commit in acknowledged)
    user.fsck()


def test_a_prune_between_two_tries_loses_no_object(user: User, engine: Engines) -> None:
    one = engine(user)
    head = one.repository.head()
    user.commit_file("theirs", "x\n")
    with pytest.raises(YoloError):
        one.committer.commit([entry()], head)
    user.git("prune", "--expire=now")
    one.commit(entry())
    user.fsck()


COLLECTIONS = (
    ("gc", "--quiet", "--prune=now"),
    ("gc", "--quiet", "--prune=now", "--aggressive"),
    ("repack", "-adfq"),
    ("prune", "--expire=now"),
    ("maintenance", "run", "--quiet"),
    ("maintenance", "run", "--quiet", "--task=loose-objects", "--task=incremental-repack"),
)


@pytest.mark.parametrize("collection", COLLECTIONS, ids=" ".join)
@pytest.mark.parametrize("count", [1, 8])
def test_what_is_collected_before_the_branch_moves_takes_none_of_ours(
    user: User,
    engine: Engines,
    monkeypatch: pytest.MonkeyPatch,
    collection: Sequence[str],
    count: int,
) -> None:
    """Else the branch would name a commit that is not there, and with it all of its past be lost to git."""
    one = engine(user)
    whole = one.repository.objects.write

    def write_then_collect(objects: Sequence[GitObject]) -> None:
        whole(objects)
        user.git(*collection)

    monkeypatch.setattr(one.repository.objects, "write", write_then_collect)
    one.commit(*(entry(f"{number}.jsonl") for number in range(count)))
    user.fsck()
    assert user.git("prune", "--expire=now") == user.git("repack", "-adq") == b""
    user.fsck()


def test_a_collection_that_is_under_way_holds_nothing(user: User, engine: Engines) -> None:
    user.write(".git/gc.pid", f"{os.getpid()} {socket.gethostname()}")
    one = engine(user)
    assert one.obstacle() is None
    assert one.put(PLAN, LINE).commit == user.tip()


# --- durability ---


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was made durable, in order, by the name that the descriptor had then."""
    names: list[str] = []
    whole = os.fsync

    def note(descriptor: int) -> None:
        names.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        whole(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    return names


def test_the_pack_its_index_their_folder_and_the_folder_of_the_branch_are_synced_in_this_order(
    user: User, engine: Engines, synced: list[str]
) -> None:
    engine(user).put(PLAN, LINE)
    packs = f"{user.root}/.git/objects/pack"
    (name,) = (path.stem for path in Path(packs).glob("*.pack"))
    synced.remove(f"{user.root}/.git/yolo-fs/index-draft")  # by a thread of its own
    drafts = [name.partition(".yolo-tmp")[0] for name in synced[:2]]
    assert sorted(drafts) == [f"{packs}/.{name}.idx", f"{packs}/.{name}.pack"]
    assert synced[2:] == [packs, os.path.dirname(f"{user.root}/.git/{REF_LOCK}")]


def test_a_commit_is_told_once_it_is_durable_whatever_clearing_up_comes_to(
    user: User, engine: Engines, synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise YoloError(Reason.NO_SPACE)

    def hear(made: Sequence[CommitResult]) -> None:
        told.append((made[0].commit, one.repository.head().tip, synced[-1]))

    one, told = engine(user), list[tuple[str | None, str | None, str]]()
    monkeypatch.setattr(IndexSync, "_settle", fail)
    with pytest.raises(YoloError):
        one.committer.commit(
            [CommitRequest(PLAN, LINE.encode(), "docs(01): plan")], one.repository.head(), hear
        )
    tip = user.tip("main")
    assert told == [(tip, tip, os.path.dirname(f"{user.root}/.git/{REF_LOCK}"))]


def test_git_locks_the_branch_while_the_names_of_the_objects_are_synced(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    packs, lock, whole = f"{user.root}/.git/objects/pack", f"{user.root}/.git/{REF_LOCK}", os.fsync
    met: list[bool] = []

    def wait(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}") == packs:
            deadline = time.monotonic() + 10
            while not (is_there := os.path.lexists(lock)) and time.monotonic() < deadline:
                time.sleep(0.001)
            met.append(is_there)
        whole(descriptor)

    monkeypatch.setattr(os, "fsync", wait)
    engine(user).put(PLAN, LINE)
    assert met == [True]


def test_objects_whose_folder_could_not_be_synced_are_synced_when_it_is_tried_again(
    user: User, engine: Engines, synced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, noting = engine(user), os.fsync

    def fail_for_folders(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(5, "Input/output error")
        noting(descriptor)

    monkeypatch.setattr(os, "fsync", fail_for_folders)
    with pytest.raises(YoloError) as raised:
        one.put(PLAN, LINE)
    assert raised.value.reason is Reason.STORAGE_FAILED
    monkeypatch.setattr(os, "fsync", noting)
    synced.clear()
    one.put(PLAN, LINE)
    assert f"{user.root}/.git/objects/pack" in synced


@NEEDS_REF_FILES
def test_all_new_folders_of_a_branch_are_synced(
    make: Make, engine: Engines, synced: list[str]
) -> None:
    user = make("x", "--initial-branch=a/b/c", born=False)
    engine(user).put(PLAN, LINE)
    heads = f"{user.root}/.git/refs/heads"
    assert {heads, f"{heads}/a", f"{heads}/a/b"} <= set(synced)


def test_without_durability_nothing_is_synced_in_process(
    user: User, engine: Engines, synced: list[str]
) -> None:
    engine(user, durable=False).put_and_follow(PLAN, LINE)
    assert synced == []


TRACED = """
import os, sys
from datetime import UTC, datetime
from yolo_fs.git.commit import Committer, CommitRequest
from yolo_fs.git.index import IndexSync
from yolo_fs.git.refs import RefUpdater
from yolo_fs.git.repository import Repository
repository = Repository(sys.argv[1])
branches = RefUpdater(repository)
committer = Committer(repository, branches, IndexSync(repository), lambda: datetime.now(UTC))
entries = [CommitRequest(f"{number}.jsonl", b"x\\n", "docs(01): plan") for number in range(int(sys.argv[2]))]
committer.commit(entries, repository.head())
os.path.exists("/acknowledged")
"""


def synced_before_the_acknowledgement(user: User, tmp_path: Path, count: int) -> list[str]:
    """Return what was synced, by us or by git, before `commit` returned."""
    log = tmp_path / "trace"
    subprocess.run(
        ["strace", "-f", "-y", "-e", "trace=fsync,fdatasync,stat,newfstatat", "-o", str(log),
         sys.executable, "-c", TRACED, str(user.root), str(count)],
        check=True, capture_output=True,
    )  # fmt: skip
    before, acknowledged, _ = log.read_text().partition('"/acknowledged"')
    assert acknowledged
    return re.findall(r"(?:fsync|fdatasync)\(\d+<([^>]*)>", before)


def can_trace() -> bool:
    return (
        bool(shutil.which("strace"))
        and subprocess.run(["strace", "true"], capture_output=True).returncode == 0
    )


@pytest.mark.skipif(not can_trace(), reason="strace is not installed, or may not trace")
@pytest.mark.parametrize("count", [1, 8])
def test_git_itself_syncs_the_pack_and_the_branch_before_we_acknowledge(
    user: User, tmp_path: Path, count: int
) -> None:
    user.git("config", "core.fsync", "none")
    names = [
        name.removeprefix(f"{user.root}/.git/")
        for name in synced_before_the_acknowledgement(user, tmp_path, count)
    ]
    assert REF_LOCK in names and names[-1] == os.path.dirname(REF_LOCK)
    assert not REFTABLE or any(name.startswith("reftable/0x") for name in names)
    assert "objects/pack" in names
    assert sum(name.startswith("objects/pack/.pack-") for name in names) == 2, names
