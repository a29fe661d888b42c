"""Packs made of differences hold exactly the objects that went in."""

from __future__ import annotations

import contextlib
import os
import random
import struct
import zlib

import pytest

from yolo_fs.edges.git.object_format import (
    Entry,
    GitObject,
    ObjectFormat,
    PackIndex,
    entry_at,
    pack_of,
    with_difference,
)

from .conftest import Make

FORMATS = ["sha1", "sha256"]
SEED = int(os.environ.get("YOLO_SEED", random.randrange(2**32)))


def versions(object_format: ObjectFormat, first: bytes, count: int, change) -> list[GitObject]:
    made = [object_format.hash_object("blob", first)]
    while len(made) < count:
        made.append(object_format.hash_object("blob", change(made[-1].body), made[-1].oid))
    return made


def indexed(make: Make, algorithm: str, objects: list[GitObject]) -> dict[str, list[str]]:
    """Let git index the pack, prove that every body is there, and return what it says of each object."""
    user = make("pack", f"--object-format={algorithm}", born=False)
    pack = pack_of(objects, ObjectFormat(algorithm))
    user.text("index-pack", "--stdin", "--strict", given=pack.data)
    for object_ in objects:
        assert user.git("cat-file", object_.kind, object_.oid) == object_.body
    (index,) = (user.root / ".git/objects/pack").glob("*.idx")
    assert index.read_bytes() == pack.idx and index.stem == f"pack-{pack.name}"
    lines = [line.split() for line in user.text("verify-pack", "-v", str(index)).splitlines()]
    return {words[0]: words for words in lines if len(words[0]) == len(objects[0].oid)}


@pytest.mark.parametrize("algorithm", FORMATS)
@pytest.mark.parametrize("size", [0, 1, 20, 127, 128, 5_000, 70_000, 200_000])
def test_random_changes_of_a_body_survive(make: Make, algorithm: str, size: int) -> None:
    print(f"seed {SEED}")
    chance = random.Random(f"{SEED} {size}")

    def change(body: bytes) -> bytes:
        at, end = sorted(chance.choices(range(len(body) + 1), k=2))
        return (
            body[:at]
            + chance.randbytes(chance.choice([0, 1, 47, 127, 128, 300]))
            + body[min(end, at + 60) :]
        )

    objects = versions(ObjectFormat(algorithm), chance.randbytes(size), 8, change)
    indexed(make, algorithm, list({object_.oid: object_ for object_ in objects}.values()))


def test_a_difference_costs_what_changed_and_not_what_stayed() -> None:
    object_format = ObjectFormat("sha1")
    first, second = versions(
        object_format, os.urandom(50_000), 2, lambda body: body[:40_000] + b"new" + body[40_000:]
    )
    assert len(pack_of([first, second], object_format).data) < 60 + len(
        pack_of([first], object_format).data
    )


def test_differences_upon_differences_stop_where_git_stops(make: Make) -> None:
    objects = versions(ObjectFormat("sha1"), os.urandom(300), 200, lambda body: body + b"x")
    said = indexed(make, "sha1", objects)
    depths = [int(words[5]) if len(words) > 5 else 0 for words in said.values()]
    assert max(depths) == 50


def test_an_object_that_became_empty_is_whole(make: Make) -> None:
    objects = versions(
        ObjectFormat("sha1"), b"x", 2, lambda body: body + b"x" if body == b"" else b""
    )
    indexed(make, "sha1", objects)


def test_an_object_whose_base_is_not_in_the_pack_is_whole(make: Make) -> None:
    object_format = ObjectFormat("sha1")
    stranger = object_format.hash_object("blob", b"elsewhere")
    said = indexed(make, "sha1", [object_format.hash_object("blob", b"here", stranger.oid)])
    assert all(len(words) == 5 for words in said.values())


@pytest.mark.parametrize("algorithm", FORMATS)
def test_what_a_pack_holds_is_read_back_and_never_half_wherever_it_is_cut_off(
    algorithm: str,
) -> None:
    print(f"seed {SEED}")
    chance, object_format = random.Random(SEED), ObjectFormat(algorithm)
    bodies = [chance.randbytes(size) for size in (0, 3, 128, 129, 5_000)]
    whole = [object_format.hash_object("blob", body) for body in bodies]
    changed = object_format.hash_object("blob", bodies[-1] + b"more", whole[-1].oid)
    last = object_format.hash_object("commit", b"tree\n")
    pack = pack_of([*whole, changed, last], object_format)

    def index_of(data: bytes) -> PackIndex:
        return PackIndex(lambda at, size: data[at : at + size], object_format.size)

    def entry_of(object_: GitObject, size: int) -> Entry:
        at = index_of(pack.idx).offset_of(bytes.fromhex(object_.oid))
        assert at is not None
        data = pack.data[:size]
        return entry_at(lambda at, size: data[at : at + size], at, object_format.size)

    for each in (*whole, last):
        assert entry_of(each, len(pack.data)) == Entry(each.kind, b"", each.body)
    difference = entry_of(changed, len(pack.data))
    assert isinstance(difference.base, int)
    assert with_difference(whole[-1].body, difference.body) == changed.body
    end = len(pack.data) - object_format.size
    for size in (*range(20), end - 1, *chance.sample(range(end), 50)):
        with pytest.raises((ValueError, IndexError, zlib.error)):
            entry_of(last, size)
    for size in (0, 8, 1031, 1040, len(pack.idx) // 2):
        with contextlib.suppress(struct.error):
            assert not index_of(pack.idx[:size]).offset_of(bytes.fromhex(last.oid))


def test_a_difference_that_makes_more_than_it_says_is_refused() -> None:
    copy_all = b"\xb3" + struct.pack("<HH", 0, 100)
    with pytest.raises(ValueError, match="more than"):
        with_difference(bytes(100), bytes([100, 100]) + copy_all * 2)
    with pytest.raises(ValueError, match="134217727"):
        with_difference(bytes(100), bytes([100]) + b"\xff\xff\xff\x3f" + copy_all)
