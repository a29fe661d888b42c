"""Packs of ours are merged, whoever else works in the store, and nothing else is touched.

See docs/dev/faults.md#f09.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.git.conftest import Engine, Engines, Make, User
from yolo_fs.git import objects
from yolo_fs.git import packs as packs_module
from yolo_fs.git.objects import KEEP_NOTE
from yolo_fs.git.packs import (
    HANDED_OVER_AFTER_S,
    MERGE_FROM,
    REST_MOST,
    OwnPack,
    PackMerger,
    names_of_packs,
    packs_to_merge,
)
from yolo_fs.system import failpoint


def packs(user: User) -> Path:
    return user.root / ".git/objects/pack"


def names(user: User, ending: str = "pack") -> set[str]:
    return {path.stem for path in packs(user).glob(f"*.{ending}")}


def put(one: Engine, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        one.put(f"{number}.jsonl", f"{number}\n" * 20)


def merge(one: Engine, most: int = 1) -> PackMerger:
    """Merge and remove what was merged."""
    merger = PackMerger(one.repository)
    merger.merge_now(most=most)
    merger.close()
    return merger


def history(user: User) -> bytes:
    return user.git("log", "--format=%H %T %s", "--raw", "--no-abbrev")


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_many_packs_become_one_that_holds_the_same(
    make: Make, engine: Engines, algorithm: str
) -> None:
    user = make("many", f"--object-format={algorithm}")
    one = engine(user)
    put(one, 20)
    before = history(user)
    assert len(names(user)) == 20
    merge(one)
    assert len(names(user)) == 1 == len(names(user, "keep")) and history(user) == before
    user.fsck()
    put(one, 1, first=20)
    user.fsck()


def test_merged_packs_stay_for_who_has_just_listed_them(user: User, engine: Engines) -> None:
    one = engine(user)
    put(one, 3)
    merger, before = PackMerger(one.repository), names(user)
    merger.merge_now(most=1)
    assert before < names(user)
    merger.begin(most=1)
    assert not merger.is_merging, "what is merged is not merged again"
    merger.close()
    assert not before & names(user)


def test_few_packs_stay_as_they_are(user: User, engine: Engines) -> None:
    one = engine(user)
    put(one, 3)
    before = names(user)
    merge(one, most=3)
    assert names(user) == before


def test_the_users_packs_are_not_touched(user: User, engine: Engines) -> None:
    user.git("repack", "-adq")
    user.commit_file("kept.txt", "x\n")
    user.git("repack", "-dq")
    theirs = names(user)
    kept = packs(user) / f"{min(theirs)}.keep"
    kept.write_text("mine\n")
    one = engine(user)
    put(one, 5)
    merge(one)
    assert theirs < names(user) and kept.read_text() == "mine\n"
    user.fsck()


def test_packs_that_a_multi_pack_index_names_are_left_to_it(user: User, engine: Engines) -> None:
    one = engine(user)
    put(one, 5)
    user.git("multi-pack-index", "write")
    indexed = names(user)
    put(one, 5, first=5)
    merge(one)
    assert indexed < names(user) and len(names(user)) == 6
    user.git("multi-pack-index", "verify")
    user.fsck()


def test_a_merged_pack_that_a_multi_pack_index_names_meanwhile_stays(
    user: User, engine: Engines
) -> None:
    one = engine(user)
    put(one, 5)
    merger = PackMerger(one.repository)
    merger.merge_now(most=1)
    user.git("multi-pack-index", "write")
    merger.close()
    user.git("multi-pack-index", "verify")
    user.fsck()


class Late(NamedTuple):
    """A multi-pack index that was begun before merged packs went, and comes after."""

    draft: Path
    named: set[str]

    def come(self, user: User, place: str = "multi-pack-index") -> None:
        (packs(user) / place).parent.mkdir(exist_ok=True)
        self.draft.rename(packs(user) / place)


def begin_late_index(user: User, merger: PackMerger) -> Late:
    """Write an index of packs that are merged, let them go, and hold it back."""
    for pack in packs(user).glob("*.pack"):
        os.utime(pack, (pack.stat().st_mtime + 60,) * 2)  # within the same second, or the clock
    merger.merge_now(most=1)
    user.git("multi-pack-index", "write")
    draft = (packs(user) / "multi-pack-index").rename(user.root / "late")
    late = Late(draft, names(user))
    merger.close()
    assert len(names(user)) == 1, "the merged packs are still there: nothing was tried"
    return late


def test_a_multi_pack_index_that_was_begun_before_the_merged_packs_went_gets_them_back(
    user: User, engine: Engines
) -> None:
    one = engine(user)
    put(one, 12)
    before = history(user)
    merger = PackMerger(one.repository)
    late = begin_late_index(user, merger)
    assert not merger.step() and merger.keeps_any_aside
    late.come(user)
    assert history(user) == before, "each object is taken from the newest pack"
    merger.step()
    assert names(user) == names(user, "idx") == names(user, "keep") == late.named
    assert not merger.keeps_any_aside
    user.git("multi-pack-index", "verify")
    user.fsck()


def test_the_next_run_puts_back_what_a_late_multi_pack_index_names(
    user: User, engine: Engines
) -> None:
    one = engine(user)
    put(one, 5)
    late = begin_late_index(user, PackMerger(one.repository))
    late.come(user)
    PackMerger(one.repository).step()
    user.git("multi-pack-index", "verify")
    user.fsck()


def test_a_late_index_of_a_chain_of_them_gets_its_packs_back(user: User, engine: Engines) -> None:
    one = engine(user)
    put(one, 5)
    merger = PackMerger(one.repository)
    late = begin_late_index(user, merger)
    merger.step()
    late.come(user, "multi-pack-index.d/multi-pack-index-0.midx")
    merger.step()
    assert names(user) == late.named


def test_what_no_index_names_for_a_while_goes_for_good(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = engine(user)
    put(one, 5)
    merger = merge(one)
    aside = Path(one.repository.own_dir, "merged")
    assert len(list(aside.glob("*.pack"))) == 5
    monkeypatch.setattr(packs_module, "ASIDE_S", -1.0)
    merger.step()
    assert not list(aside.iterdir()) and not merger.keeps_any_aside
    user.fsck()


def test_where_nothing_can_be_kept_aside_merged_packs_stay(user: User, engine: Engines) -> None:
    one = engine(user)
    put(one, 3)
    before = names(user)
    Path(one.repository.own_dir, "merged").touch()
    merge(one)
    assert before < names(user)
    user.fsck()


def test_many_packs_go_a_few_at_a_time(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs_module, "LINGER_S", 0.0)
    monkeypatch.setattr(packs_module, "ASIDE_S", 0.0)
    monkeypatch.setattr(packs_module, "_AT_ONCE", 2)
    one = engine(user)
    put(one, 9)
    merger, counts = PackMerger(one.repository), []
    merger.merge_now(most=1)
    aside = Path(one.repository.own_dir, "merged")
    while merger.step() or merger.keeps_any_aside:
        counts.append(len(names(user)) + len(list(aside.glob("*.pack"))))
    assert counts == sorted(counts, reverse=True) and len(names(user)) == 1
    assert max(before - after for before, after in itertools.pairwise(counts)) == 2


def test_only_the_names_in_a_multi_pack_index_are_read_and_all_of_a_broken_one(
    user: User, engine: Engines, tmp_path: Path
) -> None:
    put(engine(user), 3)
    user.git("multi-pack-index", "write")
    index = packs(user) / "multi-pack-index"
    named = names_of_packs(str(index))
    assert set(named.rstrip(b"\0").split(b"\0")) == {f"{one}.idx".encode() for one in names(user)}
    broken = tmp_path / "broken"
    for size in (0, 5, 20, 40):
        broken.write_bytes(index.read_bytes()[:size])
        assert names_of_packs(str(broken)) == broken.read_bytes()
    assert names_of_packs(str(tmp_path / "none")) == b""


def test_where_another_daemon_merges_or_writes_nothing_is_changed(
    user: User, engine: Engines
) -> None:
    one = engine(user)
    put(one, 5)
    before = names(user)
    for place in (packs(user).parent, packs(user)):
        theirs = os.open(place, os.O_RDONLY)
        fcntl.flock(theirs, fcntl.LOCK_SH)
        merge(one)
        os.close(theirs)
        assert names(user) == before
    merge(one)
    assert len(names(user)) == 1


def test_a_pack_that_was_taken_meanwhile_ends_the_merge_and_nothing_else(
    user: User, engine: Engines
) -> None:
    one = engine(user)
    put(one, 5)
    merger = PackMerger(one.repository)
    merger.begin(most=1)
    for note in packs(user).glob("*.keep"):
        note.unlink()
    user.git("repack", "-adq")
    merger.merge_now(most=1)
    merger.close()
    user.fsck()


# --- a gc that takes what was named while it listed the folder for litter ---


def collecting(user: User) -> Path:
    """Let a `git gc` be at work, as far as its lock tells."""
    lock = user.root / ".git/gc.pid"
    lock.write_text("1 elsewhere")
    return lock


def take_for_litter(user: User, stem: str) -> None:
    """Do what a gc does that has listed an index, and not its pack."""
    for ending in ("idx", "keep"):
        (packs(user) / f"{stem}.{ending}").unlink()


def test_a_pack_that_a_gc_takes_for_litter_is_written_again(user: User, engine: Engines) -> None:
    one = engine(user)
    put(one, 2)
    lock, before = collecting(user), names(user)
    put(one, 1, first=2)
    (fresh,) = names(user) - before
    assert one.repository.objects.restore()

    take_for_litter(user, fresh)
    assert one.repository.objects.restore()
    user.git("repack", "-adq")  # which had listed it without its note
    user.fsck()
    assert fresh not in names(user)

    lock.unlink()
    assert not one.repository.objects.restore()
    user.fsck()


def test_what_is_taken_at_the_very_end_is_written_before_the_repository_is_closed(
    user: User, engine: Engines
) -> None:
    one = engine(user)
    before = names(user)
    lock = collecting(user)
    put(one, 1)
    (fresh,) = names(user) - before
    take_for_litter(user, fresh)
    lock.unlink()
    one.repository.close()
    user.fsck()


def test_the_lock_of_a_killed_gc_holds_nothing_up_for_ever(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs_module, "LINGER_S", 0.0)
    monkeypatch.setattr(objects, "COLLECTED_WITHIN_S", -1.0)
    one = engine(user)
    collecting(user)
    put(one, 5)
    merger, before = PackMerger(one.repository), names(user)
    assert not one.repository.objects.restore()
    merger.merge_now(most=1)
    while merger.step():
        pass
    assert len(before) == 5 and len(names(user)) == 1
    user.fsck()


def test_merged_packs_stay_while_a_gc_may_take_the_merged_one_for_litter(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packs_module, "LINGER_S", 0.0)
    one = engine(user)
    put(one, 5)
    merger, before = PackMerger(one.repository), names(user)
    lock = collecting(user)
    merger.merge_now(most=1)
    merger.step()
    (merged,) = names(user) - before
    take_for_litter(user, merged)

    lock.unlink()
    merger.step()
    merger.close()
    assert before <= names(user)
    user.git("repack", "-adq")
    user.fsck()


class _DeathError(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("stage", ["packs.merged", "packs.placed", "packs.removing"])
def test_whoever_dies_in_the_midst_leaves_what_the_next_start_mends(
    user: User, engine: Engines, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    one = engine(user)
    for nth in range(1, 6):
        put(one, 4, first=10 * nth)
        before, passes = history(user), itertools.count(1)

        def die(reached: str, passes=passes, nth=nth) -> None:
            if reached == stage and next(passes) == nth:
                raise _DeathError

        merger = PackMerger(one.repository)
        with monkeypatch.context() as patch:
            patch.setattr(failpoint, "reach", die)
            try:
                merger.merge_now(most=1)
                merger.close()
            except _DeathError:
                if merger.is_merging:  # the death of the process ends its child and its lock
                    merger.abandon()
        PackMerger(one.repository).repair()
        user.fsck()
        assert history(user) == before
    merge(one)
    user.fsck()
    assert len(names(user)) == len(names(user, "idx")) == len(names(user, "keep")) == 1


def test_what_a_writer_that_died_left_is_mended(user: User, engine: Engines) -> None:
    one = engine(user)
    put(one, 3)
    first, second = sorted(names(user))[:2]
    (packs(user) / f"{first}.idx").unlink()
    for ending in ("idx", "pack"):
        (packs(user) / f"{second}.{ending}").rename(user.root.parent / f"aside.{ending}")
    (packs(user) / ".pack-1.pack.yolo-tmp.999999999.ab").write_bytes(b"half")
    PackMerger(one.repository).repair()
    assert (packs(user) / f"{first}.idx").exists()
    assert not (packs(user) / f"{second}.keep").exists()
    assert not list(packs(user).glob(".*"))
    for ending in ("pack", "idx"):
        (user.root.parent / f"aside.{ending}").rename(packs(user) / f"{second}.{ending}")
    user.fsck()


def test_our_packs_never_make_git_tidy_up(user: User, engine: Engines) -> None:
    """`gc --auto` counts loose objects and packs without a note; ours are neither."""
    user.git("config", "gc.auto", "5")
    user.git("config", "gc.autoPackLimit", "2")
    user.git("gc", "--quiet")
    one = engine(user)
    put(one, 40)
    before = names(user)
    user.git("gc", "--auto", "--quiet")
    assert names(user) == before
    assert user.text("count-objects") == "0 objects, 0 kilobytes"


def test_after_35_000_commits_few_packs_are_left_and_each_object_was_rewritten_a_few_times() -> (
    None
):
    store: list[OwnPack] = []
    rewritten = 0
    for number in range(35_000):
        store.append(OwnPack(2_000 + number % 997, str(number)))
        if len(store) > MERGE_FROM and not number % MERGE_FROM:
            store, size = _merged(store)
            rewritten += size
    store, size = _merged(store)
    total = sum(pack.size for pack in store)
    assert len(store) <= REST_MOST
    assert rewritten / total < 15


def _merged(store: list[OwnPack]) -> tuple[list[OwnPack], int]:
    merged = packs_to_merge(sorted(store))
    size = sum(pack.size for pack in merged)
    return [*(pack for pack in store if pack not in merged), OwnPack(size, "merged")], size


def test_a_note_is_what_git_takes_for_a_keep(user: User, engine: Engines) -> None:
    put(engine(user), 1)
    (note,) = packs(user).glob("*.keep")
    assert note.read_bytes() == KEEP_NOTE
    before = names(user)
    user.git("reset", "--hard", "--quiet", "HEAD~1")
    user.git("reflog", "expire", "--expire=now", "--all")
    user.git("gc", "--quiet", "--prune=now")
    assert before <= names(user)


def remove_for_good(user: User) -> set[str]:
    """Remove the last commit as git's manual says, and return what was stored by it alone."""
    removed = {line.split(" ")[0] for line in user.text("rev-list", "--objects", "HEAD~1..HEAD").splitlines()}  # fmt: skip
    user.git("reset", "--hard", "--quiet", "HEAD~1")
    user.git("reflog", "expire", "--expire=now", "--all")
    user.git("gc", "--quiet", "--prune=now")
    return removed


def are_stored(user: User, oids: set[str]) -> set[bool]:
    question = "".join(f"{oid}\n" for oid in oids).encode()
    answers = user.text("cat-file", "--batch-check", given=question).splitlines()
    assert len(answers) == len(oids) > 0
    return {not answer.endswith(" missing") for answer in answers}


def test_what_the_user_removed_is_gone_once_the_daemon_has_ended(
    user: User, engine: Engines
) -> None:
    one = engine(user)
    put(one, MERGE_FROM + 2)
    merger = PackMerger(one.repository)
    merger.merge_now(most=REST_MOST)
    put(one, 3, first=100)
    merger.end()
    assert not names(user, "keep")
    assert not list(Path(one.repository.own_dir).rglob("*.pack")), "nor does a copy lie aside"
    assert are_stored(user, remove_for_good(user)) == {False}
    user.fsck()


def test_each_run_goes_on_with_the_packs_of_the_one_before(user: User, engine: Engines) -> None:
    """Fifty packs that nobody keeps make the user's next commit tidy up everything."""
    one = engine(user)
    for number in range(20):
        PackMerger(one.repository).take_back()
        put(one, 1, first=10 * number)
        merger = PackMerger(one.repository)
        merger.merge_now(most=1)
        merger.end()
        assert not names(user, "keep")
    assert len(names(user)) <= REST_MOST
    user.fsck()


def test_beside_a_running_daemon_a_pack_is_handed_over_after_a_while(
    user: User, engine: Engines
) -> None:
    one = engine(user)
    put(one, 3)
    merger = PackMerger(one.repository)
    old, *fresh = sorted(packs(user).glob("*.keep"))
    os.utime(old, (time.time() - HANDED_OVER_AFTER_S - 1,) * 2)
    assert merger.hand_over()
    assert names(user, "keep") == {pack.stem for pack in fresh}


def test_what_is_merged_again_and_again_is_handed_over_as_early_as_if_it_had_not_been(
    user: User, engine: Engines
) -> None:
    """A busy daemon merges its packs all the time, and the user waits for what is in them."""
    one = engine(user)
    put(one, 3)
    for note in packs(user).glob("*.keep"):
        os.utime(note, (time.time() - HANDED_OVER_AFTER_S - 1,) * 2)
    for first in (10, 20):
        put(one, 3, first=first)
        assert merge(one).merges == 1
    assert len(names(user)) == 1
    assert PackMerger(one.repository).hand_over()
    assert not names(user, "keep")
    assert are_stored(user, remove_for_good(user)) == {False}


def test_what_is_handed_over_during_a_merge_is_the_users_and_stays(
    user: User, engine: Engines
) -> None:
    one = engine(user)
    put(one, 5)
    before = names(user)
    merger = PackMerger(one.repository)
    merger.begin(most=1)
    assert merger.hand_over(older_than_s=-1)
    merger.merge_now(most=1)
    merger.close()
    assert merger.merges == 0 and names(user) == before and not names(user, "keep")


def test_no_pack_is_handed_over_while_somebody_writes_or_a_gc_is_at_work(
    user: User, engine: Engines
) -> None:
    one = engine(user)
    put(one, 2)
    merger = PackMerger(one.repository)
    with one.repository.objects.hold_packs_back():
        assert not merger.hand_over(older_than_s=0)
    lock = collecting(user)
    assert not merger.hand_over(older_than_s=0)
    one.repository.objects.settle()
    assert len(names(user, "keep")) == 2
    lock.unlink()
    assert merger.hand_over(older_than_s=-1)
    assert not names(user, "keep")


@pytest.mark.parametrize("cut_to", [0, 8, 500, 1_032, 1_062, 1_092])
def test_where_an_index_is_cut_short_every_pack_stays(
    user: User, engine: Engines, cut_to: int
) -> None:
    """git merges nothing of which it cannot read everything, so nothing is removed."""
    one = engine(user)
    put(one, 5)
    index = min(packs(user).glob("*.idx"))
    whole, before = index.read_bytes(), names(user)
    index.chmod(0o644)
    index.write_bytes(whole[:cut_to])
    assert merge(one).merges == 0 and names(user) == before == names(user, "keep")
    index.write_bytes(whole)
    user.fsck()


def test_where_an_object_is_damaged_every_pack_stays(user: User, engine: Engines) -> None:
    one = engine(user)
    put(one, 5)
    pack = min(packs(user).glob("*.pack"))
    before = names(user)
    pack.chmod(0o644)
    with pack.open("r+b") as file:
        file.seek(20)
        file.write(bytes(20))
    assert merge(one).merges == 0 and names(user) == before == names(user, "keep")
