"""What cannot be committed is kept, durable, bounded and private, and comes back as it was."""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import subprocess
import sys
import threading
import tracemalloc
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest

from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git.repository import Repository
from yolo_fs.git.trees import EXECUTABLE, LINK
from yolo_fs.kept.selection import VERSIONS, KeptCause, KeptEntry, entry_of, within_bounds
from yolo_fs.kept.service import ContentToKeep, KeptStore, Leaf, restore

PHASE = ".yolo-planning/phases/01-auth"
PLAN = f"{PHASE}/01-01.plan.jsonl"
BAD = b'{"p":"01","n":"01"}\n'
CAUSE = KeptCause(("missing_key",))
TOKEN = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"


def git(root: Path, *arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    git(tmp_path, "init", "-q", "-b", "main", ".")
    git(tmp_path, "config", "user.name", "a")
    git(tmp_path, "config", "user.email", "a@b.invalid")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "begin")
    (tmp_path / PHASE).mkdir(parents=True)
    return tmp_path


def unkept(data: bytes, path: str = PLAN) -> ContentToKeep:
    return ContentToKeep(path, data, CAUSE)


def answer(capsys: pytest.CaptureFixture[str], root: Path, *command: str) -> Any:
    capsys.readouterr()
    run([*command, "--json", "-C", str(root)])
    return json.loads(capsys.readouterr().out)


def test_a_refused_artifact_is_kept_and_comes_back_as_it_was(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / PLAN).write_bytes(BAD)
    run(["run", "--once", "-C", str(root)])
    (root / PLAN).unlink()

    [entry] = answer(capsys, root, "kept")["data"]["entries"]
    assert entry["paths"] == [PLAN]
    assert "missing_key" in entry["cause"]["reasons"]
    shown = answer(capsys, root, "kept", "show", "1")["data"]
    assert shown["contents"] == {PLAN: BAD.decode()}
    assert answer(capsys, root, "kept", "restore", "1")["ok"]
    assert (root / PLAN).read_bytes() == BAD


def test_a_second_look_keeps_nothing_twice_and_what_is_valid_is_not_kept(root: Path) -> None:
    (root / PLAN).write_bytes(BAD)
    (root / ".yolo-planning/ROADMAP.md").write_text("# Roadmap\n")
    for _ in range(2):
        run(["run", "--once", "-C", str(root)])
    with Repository(str(root)) as repository:
        assert [entry.paths for entry in KeptStore(repository).entries()] == [(PLAN,)]


def test_nothing_refused_leaves_no_ref_and_no_file(root: Path) -> None:
    (root / ".yolo-planning/ROADMAP.md").write_text("# Roadmap\n")
    run(["run", "--once", "-C", str(root)])
    assert git(root, "for-each-ref", "refs/yolo-fs") == ""
    assert not (root / ".git/yolo-fs/kept.lock").exists()


def test_what_looks_like_a_credential_is_only_named(root: Path) -> None:
    with Repository(str(root)) as repository:
        kept_store = KeptStore(repository)
        [entry] = kept_store.keep([unkept(TOKEN.encode())])
        assert (entry.paths, entry.files) == ((PLAN,), 0)
        with pytest.raises(YoloError) as refused:
            restore(repository, kept_store, entry, None, str(root))
    assert refused.value.reason is Reason.SECRET
    everything = git(root, "cat-file", "--batch-all-objects", "--batch")
    assert TOKEN not in everything


def test_branch_reflog_and_index_take_no_part_and_git_finds_nothing_wrong(root: Path) -> None:
    before = git(root, "for-each-ref", "refs/heads"), git(root, "ls-files", "--stage")
    git(root, "config", "core.logAllRefUpdates", "always")
    with Repository(str(root)) as repository:
        KeptStore(repository).keep([unkept(b"%d" % number) for number in range(12)])
    assert (git(root, "for-each-ref", "refs/heads"), git(root, "ls-files", "--stage")) == before
    assert not (root / ".git/logs/refs/yolo-fs").exists()
    git(root, "fsck", "--strict", "--no-dangling")
    git(root, "gc", "-q", "--prune=now")
    with Repository(str(root)) as repository:
        kept_store = KeptStore(repository)
        assert [dict(kept_store.contents(entry))[PLAN].data for entry in kept_store.entries()] == [
            b"%d" % number for number in range(12)
        ]


def test_newest_versions_of_a_path_stay_and_the_chain_does_not_grow_on(root: Path) -> None:
    with Repository(str(root)) as repository:
        kept_store = KeptStore(repository)
        kept_store.keep([unkept(b"other", f"{PHASE}/critique.jsonl")])
        for number in range(200):
            kept_store.keep([unkept(b"version %d" % number)])
        kept = KeptStore(repository).entries()
    assert len(kept) == VERSIONS + 1
    assert kept[0].paths == (f"{PHASE}/critique.jsonl",)
    assert (kept[-1].number, kept[1].number) == (201, 182)
    assert kept[-1].dropped > 0
    assert int(git(root, "rev-list", "--count", "refs/yolo-fs/kept/main")) < 120


def test_a_thousand_contents_that_are_kept_take_little_memory(root: Path) -> None:
    paths = [f"{PHASE}/{number:02}.jsonl" for number in range(50)]
    with Repository(str(root)) as repository:
        kept_store = KeptStore(repository)

        def keep(version: int) -> None:
            fresh = KeptCause(("missing_key",))
            kept_store.keep(
                [ContentToKeep(path, b"%d %a" % (version, path), fresh) for path in paths]
            )

        keep(0)  # what is imported once is none of it
        tracemalloc.start()
        try:
            for version in range(1, VERSIONS):
                keep(version)
            gc.collect()
            taken, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(kept_store.entries()) == 1_000

    assert taken / 1_000 < 500


@pytest.mark.parametrize(("commits", "size"), [(1, 64 << 20), (24, 4 << 20)])
def test_words_of_a_chain_that_somebody_left_take_memory_within_a_bound(
    root: Path, commits: int, size: int
) -> None:
    with Repository(str(root)) as repository:
        kept_store = KeptStore(repository)
        kept_store.keep([unkept(b"a")])
        for number in range(commits):
            named = f"{number}" + "x" * (size - 1_000)
            entry = KeptEntry(number + 2, "2026-02-19T08:00:00Z", (named,), 1, 1, CAUSE, "")
            tree, parent = git(
                root, "rev-parse", f"{kept_store.ref}^{{tree}}", kept_store.ref
            ).split()
            command = ["git", "commit-tree", tree, "-p", parent]
            made = subprocess.run(command, cwd=root, check=True, capture_output=True, input=entry.message.encode())  # fmt: skip
            git(root, "update-ref", kept_store.ref, made.stdout.decode().strip())

    with Repository(str(root)) as repository:
        tracemalloc.start()
        try:
            kept = KeptStore(repository).entries()
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert most < 160 << 20
        numbers = [entry.number for entry in kept]
        assert numbers == sorted(numbers)
        assert numbers == [1] if commits == 1 else (numbers[-1], numbers[0] > 1) == (25, True)
        assert len(KeptStore(repository).keep([unkept(b"b")])) == 1


def test_all_of_it_has_a_bound() -> None:
    entries = [
        KeptEntry(number, "", (f"{number}",), 1, 1 << 20, CAUSE, "") for number in range(100)
    ]
    stay = within_bounds(entries)
    assert len(stay) == 63
    assert stay[-1].number == 99


def test_prune_drops_what_is_older_and_an_empty_chain_leaves_no_ref(root: Path) -> None:
    with Repository(str(root)) as repository:
        kept_store = KeptStore(repository)
        kept_store.keep([unkept(b"a"), unkept(b"b")])
        assert kept_store.prune(timedelta(days=1)) == 0
        assert kept_store.prune(timedelta(seconds=-5)) == 2
        assert kept_store.entries() == ()
        assert kept_store.keep([unkept(b"c")])[0].number == 1
        assert len(kept_store.entries()) == 1


def test_restoring_keeps_first_what_stands_there_and_writes_elsewhere_on_request(
    root: Path,
) -> None:
    (root / PLAN).write_bytes(b"later work\n")
    with Repository(str(root)) as repository:
        kept_store = KeptStore(repository)
        [entry] = kept_store.keep([unkept(BAD)])
        elsewhere = restore(repository, kept_store, entry, "copy.jsonl", str(root))
        assert ((root / "copy.jsonl").read_bytes(), elsewhere.kept_first) == (BAD, None)
        done = restore(repository, kept_store, entry, None, str(root))
        assert (root / PLAN).read_bytes() == BAD
        assert done.kept_first is not None
        assert dict(kept_store.contents(kept_store.entry(done.kept_first))) == {
            PLAN: Leaf(b"later work\n")
        }


def test_restoring_follows_no_link(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    with Repository(str(root)) as repository:
        kept_store = KeptStore(repository)
        [entry] = kept_store.keep([unkept(BAD)])
        (root / PHASE).rmdir()
        (root / PHASE).symlink_to(outside)
        done = restore(repository, kept_store, entry, None, str(root))
    assert (done.written, len(done.findings)) == ((), 1)
    assert list(outside.iterdir()) == []


def test_all_that_a_command_would_destroy_is_one_entry(root: Path) -> None:
    files = {
        "src/a.ts": Leaf(b"a"),
        "src/deep/b.ts": Leaf(b"b", EXECUTABLE),
        "src.ts": Leaf(b"a.ts", LINK),
        ".env": Leaf(TOKEN.encode()),
    }
    with Repository(str(root)) as repository:
        kept_store = KeptStore(repository)
        entry = kept_store.keep_files(files, KeptCause(("destroyed",), "git reset", "dev"))
        assert entry
        assert dict(kept_store.contents(entry)) == {
            path: data for path, data in files.items() if path != ".env"
        }
        assert kept_store.keep_files(files, KeptCause(("destroyed",), "git clean", "dev")) is None
    git(root, "fsck", "--strict", "--no-dangling")


def test_linked_work_trees_keep_apart(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    linked = tmp_path_factory.mktemp("trees") / "linked"
    git(root, "worktree", "add", "-q", str(linked))
    for place in (root, linked):
        with Repository(str(place)) as repository:
            KeptStore(repository).keep([unkept(str(place).encode())])
    refs = git(root, "for-each-ref", "--format=%(refname)", "refs/yolo-fs").splitlines()
    assert refs == ["refs/yolo-fs/kept/main", "refs/yolo-fs/kept/worktrees/linked"]


def test_several_processes_keep_at_the_same_time(root: Path) -> None:
    script = (
        "import sys\n"
        "from yolo_fs.git.repository import Repository\n"
        "from yolo_fs.kept.service import ContentToKeep, KeptStore, Leaf\n"
        "from yolo_fs.kept.selection import KeptCause\n"
        "with Repository(sys.argv[1]) as repository:\n"
        "    keeper = KeptStore(repository)\n"
        "    for number in range(5):\n"
        "        keeper.keep([ContentToKeep(f'{sys.argv[2]}-{number}', b'x', KeptCause(('a',)))])\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", script, str(root), name]) for name in "abc"]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    with Repository(str(root)) as repository:
        entries = KeptStore(repository).entries()
    assert sorted(entry.paths[0] for entry in entries) == [
        f"{name}-{number}" for name in "abc" for number in range(5)
    ]
    assert [entry.number for entry in entries] == list(range(1, 16))


def test_what_was_said_to_be_kept_survives_a_kill_at_any_moment(root: Path) -> None:
    seed = int(os.environ.get("YOLO_SEED", random.SystemRandom().randrange(2**32)))
    print(f"YOLO_SEED={seed}")
    rng = random.Random(seed)
    said: list[str] = []
    for turn in range(int(os.environ.get("YOLO_KILLS", "6"))):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            _keep_without_end(root, turn, writing)
        os.close(writing)
        with os.fdopen(reading) as told:
            said += [told.readline().strip() for _ in range(rng.randint(1, 8))]
            threading.Event().wait(rng.uniform(0, 0.02))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            said += [line.strip() for line in told if line.endswith("\n")]
        with Repository(str(root)) as repository:
            kept_store = KeptStore(repository)
            kept = {
                path: data
                for one in kept_store.entries()
                for path, data in kept_store.contents(one)
            }
        assert all(kept.get(path) == Leaf(path.encode()) for path in said)
    assert not git(root, "fsck", "--strict", "--no-dangling")


def _keep_without_end(root: Path, turn: int, telling: int) -> NoReturn:
    """Keep one content after the other, and say so of each when it is done; runs in a child."""
    try:
        with Repository(str(root)) as repository:
            kept_store = KeptStore(repository)
            for number in range(1000):
                path = f"{turn}-{number}"
                kept_store.keep([unkept(path.encode(), path)])
                os.write(telling, f"{path}\n".encode())
    finally:
        os._exit(1)


def test_a_chain_that_cannot_be_read_is_begun_anew(root: Path) -> None:
    with Repository(str(root)) as repository:
        KeptStore(repository).keep([unkept(b"a")])
        for part in (root / ".git/objects/pack").iterdir():
            part.unlink()
    with Repository(str(root)) as repository:
        KeptStore(repository).keep([unkept(b"b")])
    git(root, "fsck", "--no-dangling")


def test_foreign_messages_are_no_entries() -> None:
    entry = KeptEntry(7, "2026-02-19T08:00:00Z", ("a\nb",), 1, 3, CAUSE, "tree")
    assert entry_of("tree", entry.message) == entry
    assert len(entry.message.splitlines()) == 3
    for text in ("", "kept 1: x\n\n{}", "kept 1: x\n\n[]", entry.message[:-9]):
        assert entry_of("tree", text) is None
