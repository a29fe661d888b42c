"""Objects made in process are git's own, stored whole, and young enough for a running prune. See
docs/dev/faults.md#f04 and #f09.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.git.conftest import Engines, Make, User
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git.object_format import GitObject, ObjectFormat, pack_of
from yolo_fs.git.objects import KEEP_NOTE, ObjectStore
from yolo_fs.git.runner import Git

FORMATS = ("sha1", "sha256")
SIZES = (0, 1, 15, 16, 17, 2047, 2048, 2049, 70_000)
"""Around the places where the length of a pack entry takes another byte."""
SEED = 20260102


def store_of(user: User, algorithm: str = "sha1", *, durable: bool = True) -> ObjectStore:
    return ObjectStore(
        Git(str(user.root)),
        str(user.root / ".git/objects"),
        ObjectFormat(algorithm),
        durable=durable,
    )


def packs(user: User) -> Path:
    return user.root / ".git/objects/pack"


def damage(path: Path, data: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(data)


def some_objects(object_format: ObjectFormat) -> list[GitObject]:
    rng = random.Random(SEED)
    blobs = [object_format.hash_object("blob", rng.randbytes(size)) for size in SIZES]
    tree = object_format.hash_object("tree", b"100644 x\0" + bytes.fromhex(blobs[3].oid))
    who = "A <a@b> 1700000000 +0000"
    commit = object_format.hash_object(
        "commit", f"tree {tree.oid}\nauthor {who}\ncommitter {who}\n\nsubject\n".encode()
    )
    return [*blobs, tree, commit]


@pytest.mark.parametrize("algorithm", FORMATS)
def test_an_object_has_the_name_that_git_gives_it(make: Make, algorithm: str) -> None:
    user = make("named", f"--object-format={algorithm}", born=False)
    store_of(user, algorithm).write(some_objects(ObjectFormat(algorithm))[:10])
    for object_ in some_objects(ObjectFormat(algorithm)):
        assert (
            user.text("hash-object", "-w", "-t", object_.kind, "--stdin", given=object_.body)
            == object_.oid
        )


@pytest.mark.parametrize("algorithm", FORMATS)
def test_stored_objects_pass_fsck_and_read_back(make: Make, algorithm: str) -> None:
    user = make("stored", f"--object-format={algorithm}", born=False)
    objects = some_objects(ObjectFormat(algorithm))
    store_of(user, algorithm).write(objects)
    user.git("update-ref", "refs/heads/main", objects[-1].oid)
    user.fsck()
    for object_ in objects:
        assert user.git("cat-file", object_.kind, object_.oid) == object_.body


@pytest.mark.parametrize("algorithm", FORMATS)
def test_a_pack_passes_the_strict_indexer_in_an_empty_repository(
    make: Make, algorithm: str
) -> None:
    user = make("empty", f"--object-format={algorithm}", born=False)
    object_format = ObjectFormat(algorithm)
    pack = pack_of(some_objects(object_format), object_format)
    answer = user.text("index-pack", "--strict", "--fsck-objects", "--stdin", given=pack.data)
    assert answer.split("\t")[1] == pack.name


def test_the_store_reads_what_it_wrote(user: User, engine: Engines) -> None:
    store = engine(user).repository.objects
    objects = some_objects(store.object_format)
    assert store.read(objects[0].oid) is None
    store.write(objects)
    assert [store.read(object_.oid) for object_ in objects] == objects


def test_the_same_object_twice_is_one_entry_of_the_pack(user: User) -> None:
    object_format = ObjectFormat("sha1")
    once, twice = (
        object_format.hash_object("blob", b"same"),
        object_format.hash_object("blob", b"same"),
    )
    store_of(user).write([once, twice, object_format.hash_object("blob", b"other")])
    (index,) = (user.root / ".git/objects/pack").glob("*.idx")
    assert len(user.git("verify-pack", "-v", str(index)).splitlines()) == 2 + 2


@pytest.mark.parametrize(
    "ruin",
    [
        lambda whole: b"",
        lambda whole: whole[: len(whole) // 2],
        lambda whole: bytes(len(whole)),
        lambda whole: b"\0",
    ],
    ids=["empty", "half", "zeros", "one zero"],
)
@pytest.mark.parametrize("ending", ["pack", "idx"])
def test_a_pack_that_power_loss_ruined_is_written_anew(user: User, ruin, ending: str) -> None:
    store, blob = store_of(user), ObjectFormat("sha1").hash_object("blob", b"precious\n" * 50)
    store.write([blob])
    (path,) = packs(user).glob(f"*.{ending}")
    damage(path, ruin(path.read_bytes()))
    store.write([blob])
    assert user.git("cat-file", "blob", blob.oid, ok=(0, 128)) == blob.body


def test_a_pack_is_read_only_noted_as_ours_and_leaves_no_temporary(user: User) -> None:
    blob = ObjectFormat("sha1").hash_object("blob", b"x\n")
    store_of(user).write([blob])
    files = list(packs(user).iterdir())
    assert sorted(path.suffix for path in files) == [".idx", ".keep", ".pack"]
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o222 == 0 for path in files)
    assert next(packs(user).glob("*.keep")).read_bytes() == KEEP_NOTE


@pytest.mark.parametrize(
    ("number", "reason"), [(errno.ENOSPC, Reason.NO_SPACE), (errno.EDQUOT, Reason.NO_SPACE), (errno.EIO, Reason.STORAGE_FAILED)]
)  # fmt: skip
@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_storage_fault_has_its_reason_and_leaves_nothing(
    user: User, monkeypatch: pytest.MonkeyPatch, number: int, reason: Reason, call: str
) -> None:
    def fail(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    blob = ObjectFormat("sha1").hash_object("blob", b"no room\n")
    monkeypatch.setattr(os, call, fail)
    with pytest.raises(YoloError) as raised:
        store_of(user).write([blob])
    monkeypatch.undo()
    assert raised.value.reason is reason
    assert list(packs(user).iterdir()) == []


def test_a_short_write_is_continued(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: whole(descriptor, bytes(data[:7])))
    blob = ObjectFormat("sha1").hash_object("blob", random.Random(SEED).randbytes(100))
    store_of(user).write([blob])
    monkeypatch.undo()
    assert user.git("cat-file", "blob", blob.oid) == blob.body


LEFT_OVER = """
import os, sys
from yolo_fs.git.object_format import ObjectFormat, pack_of
from yolo_fs.git.objects import ObjectStore
blob = ObjectFormat("sha1").hash_object("blob", b"x\\n")
folder = f"{sys.argv[1]}/pack"
os.mkdir(folder)
name = pack_of([blob], ObjectFormat("sha1")).name
for ending in ("pack", "idx", "keep"):
    os.close(os.open(f"{folder}/pack-{name}.{ending}", os.O_CREAT | os.O_WRONLY, 0o444))
ObjectStore(None, sys.argv[1], ObjectFormat("sha1")).write([blob])
"""


@pytest.mark.skipif(
    not shutil.which("setpriv"), reason="without setpriv the modes do not bind root"
)
def test_what_a_dead_process_left_of_the_same_pack_does_not_stand_in_the_way(
    tmp_path: Path,
) -> None:
    bound = (
        ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    )
    done = subprocess.run(
        [*bound, sys.executable, "-c", LEFT_OVER, str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_reader_that_died_is_started_anew(user: User, engine: Engines) -> None:
    objects = engine(user).repository.objects
    assert objects.read("HEAD") is not None
    os.kill(objects._reader.pid, signal.SIGKILL)
    found = objects.read("HEAD")
    assert found is not None and found.oid == user.tip()


def test_a_pack_that_was_collected_between_two_objects_is_looked_for_anew(user: User) -> None:
    store, blob = store_of(user), user.text("rev-parse", "HEAD^{tree}")
    user.git("repack", "-adq")
    assert store.read(user.tip()) is not None
    user.commit_file("more.txt", "more\n")
    user.git("gc", "-q", "--prune=now")
    assert store.read(blob) is not None
    assert store.read(user.tip()) is not None
    store.end()


def test_a_damaged_object_is_none(user: User) -> None:
    tip = user.tip()
    damage(user.root / f".git/objects/{tip[:2]}/{tip[2:]}", b"no longer what it was")
    store = store_of(user)
    assert store.read(tip) is None
    assert store._reader is not None
    store.end()


def test_an_object_is_found_after_the_user_packed_everything(user: User, engine: Engines) -> None:
    objects = engine(user).repository.objects
    assert objects.read(user.tip()) is not None
    new = user.commit_file("more.txt", "more\n")
    user.git("gc", "--quiet", "--prune=now")
    assert objects.read(new) is not None


@pytest.mark.parametrize(
    "name", ["0" * 40, "f" * 40, "nothing-like-it", "HEAD:no/such/path", "refs/heads/none^{commit}"]
)
def test_what_is_not_there_is_none_and_the_next_answer_is_right(
    user: User, engine: Engines, name: str
) -> None:
    objects = engine(user).repository.objects
    assert objects.read(name) is None
    assert objects.read(user.tip()).oid == user.tip()


def test_what_another_process_wrote_is_read_until_it_is_gone(user: User) -> None:
    mine, other = store_of(user), store_of(user)
    object_format = other.object_format
    assert mine.read(object_format.zero) is None
    mine.close()
    blobs = [object_format.hash_object("blob", b"%d" % number) for number in range(4)]
    other.write(blobs[:2])
    other.write(blobs[2:3])
    assert mine.read(blobs[1].oid) == blobs[1]
    assert list(mine.read_many([each.oid for each in blobs[:3]])) == blobs[:3]
    other.write(blobs[3:])
    for path in packs(user).glob("*"):
        path.unlink()
    assert mine.read(blobs[3].oid) is None
    mine.end()
    other.end()


def test_a_pack_that_cannot_be_read_is_none_and_a_difference_is_read(user: User) -> None:
    mine, other = store_of(user), store_of(user)
    object_format = other.object_format
    lines = [b"100644 %d\0%s" % (number, bytes(20)) for number in range(30)]
    first = object_format.hash_object("tree", b"".join(lines[:29]))
    second = object_format.hash_object("tree", b"".join(lines), first.oid)
    other.write([first, second])
    (packs(user) / "pack-torn.pack").write_bytes(b"PACK\0\0\0\2\0\0\0\7")
    (packs(user) / "pack-torn.idx").write_bytes(b"")
    assert mine.read(second.oid) == second._replace(base="")
    assert mine.read(first.oid) == first
    empty = object_format.hash_object("tree", b"")
    assert mine.read(empty.oid) == empty  # it lies nowhere: git knows it
    mine.end()
    other.end()


def test_an_ambiguous_abbreviation_names_nothing(user: User, engine: Engines) -> None:
    object_format, seen = ObjectFormat("sha1"), {}
    for number in range(100_000):
        blob = object_format.hash_object("blob", b"%d\n" % number)
        if blob.oid[:5] in seen:
            break
        seen[blob.oid[:5]] = blob
    objects = engine(user).repository.objects
    objects.write([blob, seen[blob.oid[:5]]])
    assert objects.read(blob.oid[:5]) is None
    assert objects.read(blob.oid) == blob


def test_many_objects_come_in_the_order_asked_for_whatever_is_missing_or_dies(user: User) -> None:
    store = store_of(user)
    objects = [store.object_format.hash_object("blob", b"%d\n" % number) for number in range(200)]
    store.write(objects)
    oids = [one.oid for one in objects]
    oids[7] = oids[70] = "1" * 40
    reader = store.read_many(oids)
    first = [next(reader) for _ in range(10)]
    assert store._reader is not None
    os.kill(store._reader.pid, signal.SIGKILL)
    found = [*first, *reader]
    assert found[7] is found[70] is None
    assert found == [None if at in (7, 70) else one for at, one in enumerate(objects)]
    store.end()
