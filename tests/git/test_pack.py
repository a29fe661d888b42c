"""Packs made of differences hold exactly the objects that went in."""

from __future__ import annotations

import os
import random

import pytest

from yolo_fs.git.object_format import (
    GitObject,
    ObjectFormat,
    pack_of,
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
