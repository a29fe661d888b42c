"""How large an object is, is known before it is read: a few kilobytes that somebody pushed may unpack to
gigabytes.
"""

from __future__ import annotations

import hashlib
import struct
import zlib

import pytest

from tests.git.conftest import Engines, User
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git import history
from yolo_fs.git import objects as object_store
from yolo_fs.git import trees as tree_rules
from yolo_fs.git.history import log
from yolo_fs.git.objects import MOST_BYTES

LARGE = 12 << 20


def blob(user: User, data: bytes) -> str:
    return user.text("hash-object", "-w", "--stdin", given=data)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("size", [100, LARGE])
def test_a_blob_beyond_the_limit_is_not_read_and_its_size_is_told(
    user: User, engine: Engines, size: int, *, packed: bool
) -> None:
    large = blob(user, b"x" * size)
    if packed:
        user.git("pack-objects", "-q", ".git/objects/pack/pack", given=f"{large}\n".encode())
        user.git("prune-packed", "-q")
    store = engine(user).repository.objects

    assert store.read(large, size - 1) is None
    error = store.unread("it", large)
    assert (error.reason, str(size) in error.message) == (Reason.FILE_TOO_LARGE, True)

    assert (
        store.read(large, size) is not None
    )  # who can take more gets it, and it is too large for nobody
    assert store.unread("it", large).reason is Reason.OBJECT_MISSING
    assert store.size_of(large) == size and store.size_of("0" * 40) is None


def test_those_around_a_large_one_are_read_as_ever(user: User, engine: Engines) -> None:
    names = [
        blob(user, str(number).encode() * (LARGE if number % 5 == 0 else 1)) for number in range(20)
    ]
    store = engine(user).repository.objects
    for _ in range(2):
        told = list(store.read_many([*names, "0" * 40], 1_000))
        bodies = [one and one.body for one in told]
        expected = [None if number % 5 == 0 else str(number).encode() for number in range(20)]
        assert bodies == [*expected, None]


def test_of_many_large_ones_few_stand_in_memory_at_once(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "_AHEAD_BYTES", 1_000)
    names = [blob(user, str(number).encode() * 700) for number in range(10, 40)]
    store = engine(user).repository.objects
    some = store._read_some(names, LARGE)
    assert 0 < len(some) <= 2
    assert [one and one.oid for one in store.read_many(names)] == names


@pytest.mark.parametrize("kind", ["blob", "tree", "tag"])
def test_each_kind_has_its_limit(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(object_store, "MOST_BYTES", {**MOST_BYTES, kind: 10})
    stored = ("hash-object", "-w", "-t", kind, "--literally", "--stdin")
    made = user.text(*stored, given=b"x" * 11)
    store = engine(user).repository.objects
    assert store.read(made, 10) is None
    assert store.unread("it", made).reason is Reason.FILE_TOO_LARGE


def test_of_a_commit_so_much_is_read_as_may_be_and_others_around_it_whole(
    user: User, engine: Engines
) -> None:
    base = user.tip()
    large = user.text("commit-tree", "HEAD^{tree}", "-p", base, given=b"x\n\n" + b"m" * LARGE)
    repository = engine(user).repository
    for names in ([base, large, base], [large, base]):
        told = {one.oid: one for one in repository.objects.read_many(names) if one}
        assert len(told[large].body) == MOST_BYTES["commit"] and len(told) == 2
    assert repository.root_tree(large) == repository.root_tree(base)
    assert repository.parents(large) == (base,)


def _entry(kind: int, body: bytes, between: bytes = b"") -> bytes:
    size, head, byte = len(body) >> 4, bytearray(), (kind << 4) | (len(body) & 15)
    while size:
        head.append(byte | 0x80)
        byte, size = size & 127, size >> 7
    return bytes(head) + bytes([byte]) + between + zlib.compress(body)


def test_trees_within_trees_that_hold_more_files_than_any_disk_end(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_rules, "_WALKED_MOST", 10_000)
    oid = blob(user, b"x")
    tree = user.text("mktree", given=f"100644 blob {oid}\tf\n".encode())
    for _ in range(12):
        lines = "".join(f"040000 tree {tree}\t{name}\n" for name in "abcdefghij")
        tree = user.text("mktree", given=lines.encode())
    trees = engine(user).repository.trees
    for walk in (
        lambda: trees.files_below(tree, "a"),
        lambda: list(trees.entries(tree)),
        lambda: list(trees.changes(None, tree)),
    ):
        with pytest.raises(YoloError, match="more than 10000 names"):
            walk()


def test_a_tree_deeper_than_any_path_is_refused_and_no_recursion(
    user: User, engine: Engines
) -> None:
    tree = user.text("mktree", given=f"100644 blob {blob(user, b'x')}\tf\n".encode())
    size = bytes.fromhex(tree)
    names = []
    for _ in range(3_000):
        stored = b"40000 a\0" + size
        size = hashlib.sha1(b"tree %d\0" % len(stored) + stored).digest()
        names.append(stored)
    stream = [_entry(2, each) for each in names]
    pack = b"PACK" + struct.pack(">II", 2, len(stream)) + b"".join(stream)
    user.git("index-pack", "--stdin", given=pack + hashlib.sha1(pack).digest())
    trees = engine(user).repository.trees
    with pytest.raises(YoloError, match="deeper than any path"):
        list(trees.changes(None, size.hex()))


@pytest.mark.parametrize(
    "body", [b"100644 f", b"100644\0" + b"x" * 20, b"x f\0" + b"x" * 20, b"\0", b"100644 f\0x"]
)
def test_a_malformed_tree_is_one_that_cannot_be_read(
    user: User, engine: Engines, body: bytes
) -> None:
    odd = user.text("hash-object", "-w", "-t", "tree", "--literally", "--stdin", given=body)
    with pytest.raises(YoloError, match="cannot be read"):
        engine(user).repository.trees.get(odd)


def test_a_commit_of_more_changes_than_anybody_reads_costs_no_other_its_changes(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.commit_file("one", "x\n", "before")
    for number in range(300):
        user.add(f"many-{number:03}", "x\n")
    user.commit("many")
    user.commit_file("last", "x\n", "last")
    monkeypatch.setattr(history, "_NAMES_BYTES", 1_000)
    told = {each.subject: each.changes for each in log(engine(user).repository, "HEAD")}
    assert (told["before"], told["many"], told["last"]) == ((("A", "one"),), (), (("A", "last"),))
