"""A spliced tree is the tree that git writes for the same change. See docs/dev/faults.md#f32."""

from __future__ import annotations

import os
import random

import pytest

from tests.git.conftest import Engine, Engines, Make, User
from yolo_fs.git.object_format import ObjectFormat
from yolo_fs.git.trees import Tree

NAMES = (
    "a",
    "a-b",
    "a.b",
    "a0",
    "ab",
    "A",
    "a b",
    "a+",
    "z",
    "é",
    "a\x01",
    "日",
    ".yolo-planning",
    "-x",
    "0",
    "a\xff",
)
"""`a/` sorts between `a.b` and `a0`: names that a naive sort puts in the wrong place."""
SEEDS = range(24 if os.environ.get("YOLO_TORTURE") else 8)


def paths_below(rng: random.Random, count: int) -> list[str]:
    """Return paths of which none is a folder of another."""
    found: set[str] = set()
    while len(found) < count:
        path = "/".join(rng.choices(NAMES, k=rng.randint(1, 4)))
        if not any(path.startswith(other + "/") or other.startswith(path + "/") for other in found):
            found.add(path)
    return sorted(found)


def write_tree(user: User, entries: dict[str, tuple[str, str]]) -> str:
    """Return the tree that git itself makes of path → (mode, oid)."""
    index = {"GIT_INDEX_FILE": str(user.root / ".git/scratch-index")}
    lines = b"".join(f"{mode} {oid}\t{path}\0".encode() for path, (mode, oid) in entries.items())
    user.git("read-tree", "--empty", **index)
    user.git("update-index", "-z", "--index-info", given=lines, **index)
    return user.text("write-tree", **index)


def splice(engine: Engine, root: str | None, path: str, data: bytes) -> str:
    objects = engine.repository.objects
    blob = objects.object_format.hash_object("blob", data)
    spliced = engine.repository.trees.splice(root, path, blob.oid)
    objects.write([blob, *spliced.made])
    return spliced.root


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_trees_are_the_trees_that_git_writes(
    make: Make, engine: Engines, seed: int, algorithm: str
) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    user = make("trees", f"--object-format={algorithm}", born=False)
    one, blob = engine(user, durable=False), user.text("hash-object", "-w", "--stdin", given=b"old")
    paths = paths_below(rng, 24)
    entries = {path: (rng.choice(["100644", "100755", "120000"]), blob) for path in paths[::2]}
    root: str | None = write_tree(user, entries) if rng.random() < 0.8 else None
    entries = entries if root else {}
    for path in rng.sample(paths, 12):
        data = rng.randbytes(8)
        root = splice(one, root, path, data)
        before = entries.get(path, ("100644", ""))[0]
        entries[path] = (
            "100755" if before == "100755" else "100644",  # as git keeps it
            one.repository.objects.object_format.hash_object("blob", data).oid,
        )
    assert root == write_tree(user, entries)
    assert user.text("ls-tree", "-r", "-d", "--name-only", root) is not None


@pytest.mark.parametrize("seed", SEEDS[:8:3])
def test_every_made_tree_is_one_that_mktree_would_make(
    user: User, engine: Engines, seed: int
) -> None:
    print(f"seed {seed}")
    rng, one = random.Random(seed), engine(user, durable=False)
    root: str | None = None
    for path in paths_below(rng, 8):
        root = splice(one, root, path, path.encode())
    for line in [
        f"040000 tree {root}",
        *user.git("ls-tree", "-r", "-t", root).decode().splitlines(),
    ]:
        oid = line.split()[2]
        if line.startswith("040000"):
            assert user.text("mktree", "-z", given=user.git("ls-tree", "-z", oid)) == oid
    user.git("update-ref", "refs/heads/trees", user.text("commit-tree", "-m", "x", root))
    user.fsck()


@pytest.mark.parametrize("neighbour", ["100755", "120000", "160000"])
def test_what_lies_beside_the_path_stays_as_it_was(
    user: User, engine: Engines, neighbour: str
) -> None:
    oid = (
        user.tip()
        if neighbour == "160000"
        else user.text("hash-object", "-w", "--stdin", given=b"target")
    )
    entries = {"d/beside": (neighbour, oid), "other/x": (neighbour, oid)}
    root = splice(engine(user), write_tree(user, entries), "d/new", b"new\n")
    blob = ObjectFormat("sha1").hash_object("blob", b"new\n").oid
    assert root == write_tree(user, {**entries, "d/new": ("100644", blob)})


@pytest.mark.parametrize(
    ("before", "path", "gone"),
    [
        ({"p": 1, "q": 1}, "p/x", "p"),
        ({"p/x": 1, "p/y/z": 1, "q": 1}, "p", "p/"),
        ({"a/p": 1, "a-p": 1, "a.p": 1}, "a/p/q/r", "a/p"),
        ({"a/b/c": 1, "a-b": 1, "a.b": 1, "a0": 1}, "a/b", "a/b/"),
    ],
    ids=["file to folder", "folder to file", "deep file to folder", "deep folder to file"],
)
def test_a_file_takes_the_place_of_a_folder_and_a_folder_of_a_file(
    user: User, engine: Engines, before: dict[str, int], path: str, gone: str
) -> None:
    old = user.text("hash-object", "-w", "--stdin", given=b"old")
    entries = dict.fromkeys(before, ("100644", old))
    root = splice(engine(user), write_tree(user, entries), path, b"new")
    left = {
        name: entry
        for name, entry in entries.items()
        if name != gone and not (gone[-1] == "/" and name.startswith(gone))
    }
    assert root == write_tree(
        user, {**left, path: ("100644", ObjectFormat("sha1").hash_object("blob", b"new").oid)}
    )


def test_the_same_content_again_gives_the_same_tree(user: User, engine: Engines) -> None:
    one = engine(user)
    root = splice(one, None, "d/x", b"x")
    assert splice(one, root, "d/x", b"x") == root


def test_find_and_files_below_say_what_ls_tree_says(user: User, engine: Engines) -> None:
    oid = user.text("hash-object", "-w", "--stdin", given=b"x")
    entries = {
        "d/a": ("100644", oid),
        "d/run": ("100755", oid),
        "d/link": ("120000", oid),
        "d/e/f": ("100644", oid),
        "x": ("100644", oid),
    }
    root = write_tree(user, entries)
    trees = engine(user).repository.trees
    assert trees.files_below(root, "d") == {"d/a": oid, "d/run": oid, "d/e/f": oid}
    assert trees.find(root, "d/link") == ("120000", oid)
    assert trees.find(root, "d/e").mode == "40000"
    assert trees.find(root, "d/a/b") is None and trees.find(root, "no/where") is None
    assert trees.files_below(root, "x") == {} == trees.files_below(root, "none")


@pytest.mark.parametrize("seed", SEEDS)
def test_lists_that_are_kept_say_what_git_says_of_each_version(
    user: User, engine: Engines, seed: int
) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    one = engine(user, durable=False)
    paths = [f"d/{path}" for path in paths_below(rng, 12)]
    blob = user.text("hash-object", "-w", "--stdin", given=b"old")
    roots = [write_tree(user, dict.fromkeys((paths[0], *paths[6:]), ("100644", blob)))]
    for _ in range(12):
        roots.append(splice(one, rng.choice(roots), rng.choice(paths), rng.randbytes(4)))
        root = rng.choice(roots)
        listed = user.git("ls-tree", "-r", "-z", root, "--", "d/").split(b"\0")[:-1]
        told = (os.fsdecode(line).split("\t") for line in listed)
        assert one.repository.trees.files_below(root, "d") == {
            path: head.split()[2] for head, path in told
        }


def read_from_store(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each object that is read from here on is added."""
    read, store = [], engine.repository.objects
    ask = store.read
    monkeypatch.setattr(store, "read", lambda name: read.append(name) or ask(name))
    return read


def test_only_folders_that_changed_are_listed_again(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = engine(user)
    root: str | None = None
    for name in ("d/a/1", "d/b/1", "d/b/c/1"):
        root = splice(one, root, name, b"x")
    one.repository.trees.files_below(root or "", "d")
    root = splice(one, root, "d/b/2", b"y")
    later = engine(user)
    read = read_from_store(later, monkeypatch)
    assert len(later.repository.trees.files_below(root, "d")) == 4
    trees = (user.text("rev-parse", f"{root}{place}") for place in ("", ":d", ":d/b"))
    assert read == list(trees)


def test_the_youngest_trees_stay_and_others_go(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yolo_fs.git.trees._ENTRIES_KEPT", 100)
    one = engine(user, durable=False)
    trees, root, first = one.repository.trees, None, None
    for number in range(200):
        root = splice(one, root, f"d/{number % 20}", b"%d" % number)
        first = first or root
        trees.evict_caches()
    read = read_from_store(one, monkeypatch)
    splice(one, root, "d/1", b"again")
    assert read == []
    trees.get(first or "")
    assert read == [first]


def test_who_only_reads_holds_no_more_trees_and_commits_the_more_there_are(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = [user.commit_file(f"d/{number % 3}", b"%d" % number) for number in range(30)]
    monkeypatch.setattr("yolo_fs.git.trees._ENTRIES_KEPT", 10)
    monkeypatch.setattr("yolo_fs.git.trees._TREES_KEPT", 2)
    monkeypatch.setattr("yolo_fs.git.repository._COMMITS_KEPT", 5)
    one = engine(user)
    for commit in commits:
        assert one.repository.blob_at(commit, "d/0")
    read = read_from_store(one, monkeypatch)
    one.repository.blob_at(commits[-1], "d/0")
    assert read == []
    one.repository.blob_at(commits[0], "d/0")
    assert len(read) == 3, "a commit and its two trees"


def test_a_folder_with_an_old_zero_padded_mode_keeps_its_content(
    user: User, engine: Engines
) -> None:
    """Old tools wrote `040000`; git reads it, warns, and keeps the folder."""
    below = splice(engine(user), None, "kept", b"kept\n")
    body = b"040000 d\0" + bytes.fromhex(below)
    padded = user.text("hash-object", "-w", "-t", "tree", "--literally", "--stdin", given=body)
    root = splice(engine(user), padded, "d/new", b"new\n")
    assert user.text("ls-tree", "-r", "--name-only", root).split() == ["d/kept", "d/new"]


def test_a_parsed_tree_is_put_together_to_the_same_bytes(user: User) -> None:
    oid = user.text("hash-object", "-w", "--stdin", given=b"x")
    root = write_tree(user, dict.fromkeys(paths_below(random.Random(1), 30), ("100644", oid)))
    body = user.git("cat-file", "tree", root)
    assert b"".join(Tree.parse(body, 20).raws) == body
