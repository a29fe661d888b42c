"""A member who pushes what no coordinator makes: it is held with its reason, and holds up nobody else."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.team.work_trees import GAPS, PHASE, PLAN, Clones, CloneTree, gap, plan
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.team import synchronizer
from yolo_fs.team.overview import TeamObserver
from yolo_fs.team.reconcile import read_lease
from yolo_fs.workspace.settings import load

BRANCH = "refs/heads/yolo/team/main"
LEASE = ".yolo-team/leases/backend.json"
LARGE = b"x" * (9 << 20)
TRAILERS = "Yolo-Artifact: gaps\nYolo-Phase: 01-auth\nYolo-Schema: artifact/gaps/1"


def git(bare: Path, *arguments: str, given: bytes = b"", **more: str) -> str:
    who = {
        f"GIT_{part}_{key}": "e" for part in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")
    }
    done = subprocess.run(
        ["git", "-C", str(bare), *arguments],
        input=given,
        capture_output=True,
        check=True,
        env={**who, **more},
    )
    return done.stdout.decode().strip()


def pushes(
    bare: Path, files: dict[str, bytes], message: str = "docs(01): gaps", **more: str
) -> str:
    """Let the team's branch have these files, by plain git, as its newest commit."""
    tip = git(bare, "for-each-ref", "--format=%(objectname)", BRANCH)
    index = {"GIT_INDEX_FILE": str(bare / "forged-index")}
    if tip:
        git(bare, "read-tree", tip, **index)
    for path, data in files.items():
        blob = git(bare, "hash-object", "-w", "--stdin", given=data)
        git(bare, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", **index)
    parents = ("-p", tip) if tip else ()
    tree = git(bare, "write-tree", **index)
    commit = git(bare, "commit-tree", tree, *parents, given=message.encode(), **more)
    git(bare, "update-ref", BRANCH, commit)
    return commit


def answer(clone: CloneTree, capsys: pytest.CaptureFixture[str], *words: str) -> None:
    code = run([*words, "-C", str(clone.root)])
    told = "".join(capsys.readouterr())
    assert code in (0, 1) and "internal_error" not in told, told


LEASES = {
    "deep": b"[" * 200_000, "deep_objects": b'{"a":' * 100_000, "long": b" " * 5_000 + b"{}", "numbers": b"9" * 5_000,
    "nan": b'{"holder":"x","epoch":NaN,"ttl_s":60}', "endless": b'{"holder":"x","epoch":1,"ttl_s":1e999}',
    "huge_epoch": b'{"holder":"x","epoch":' + b"9" * 4_000 + b',"ttl_s":60}', "bytes": b"\xff\xfe{", "list": b"[1]",
    "large": LARGE, "text": b"holder", "empty": b"", "no_ttl": b'{"holder":"x","epoch":1}',
}  # fmt: skip


@pytest.mark.parametrize("name", LEASES)
def test_what_is_no_lease_is_held_by_nobody_known_and_breaks_nothing(
    clones: Clones, bare: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    a, b = clones
    pushes(bare, {LEASE: LEASES[name]})
    a.write(GAPS, gap(1))

    held = a.remote_sync.exchange().held
    b.meet()

    lease = a.synchronizer.lease_at(a.synchronizer.team_tip(), "backend")
    assert (lease.holder[0], lease.epoch) == ("?", 0)
    assert [(each.path, each.reason, each.what[:10]) for each in held] == [
        (GAPS, Reason.LEASE_HELD, "backend: ?")
    ]
    assert ("file_too_large" in held[0].what) == (len(LEASES[name]) > 4096)
    answer(b, capsys, "status"), answer(b, capsys, "team", "status")
    answer(b, capsys, "team", "lease", "list")

    a.remote_sync.pass_lease("backend", "", lease)  # whoever finds it sets it right
    a.meet()
    b.meet()
    assert b.committed(GAPS) == gap(1) + "\n"


def test_a_tag_with_the_name_of_the_teams_branch_is_told_with_its_place(
    clones: Clones, bare: Path
) -> None:
    a, _ = clones
    a.write(GAPS, gap(1))
    assert a.meet()
    git(bare, "update-ref", f"refs/tags/{BRANCH}", BRANCH)
    a.write(GAPS, gap(1), gap(2))
    with pytest.raises(YoloError) as raised:
        a.remote_sync.exchange()
    assert raised.value.reason is Reason.REMOTE_REFUSED
    assert f"refs/tags/{BRANCH}" in raised.value.hint


def test_no_lease_raises_at_any_depth() -> None:
    for depth in (1, 64, 65, 900, 1_100, 100_000):
        assert read_lease("backend", b"[" * depth + b"]" * depth).holder == "?"


@pytest.mark.parametrize("size", [9 << 20, 80 << 20])
def test_a_version_beyond_the_limit_is_held_with_its_size_and_the_others_arrive(
    clones: Clones, bare: Path, size: int
) -> None:
    a, _ = clones
    pushes(bare, {GAPS: b"x" * size, PLAN: (plan("Tokens") + "\n").encode()})

    a.remote_sync.exchange()
    standing = a.look()

    assert [(each.path, each.reason) for each in standing.held] == [(GAPS, Reason.FILE_TOO_LARGE)]
    assert str(size) in standing.held[0].what
    assert "Tokens" in a.committed(PLAN) and not (a.root / GAPS).exists()
    seen = TeamObserver(a.repository, load(str(a.root))).look()
    assert seen and [(one.path, one.reason) for one in seen.waiting] == [
        (GAPS, Reason.FILE_TOO_LARGE)
    ]


def test_what_both_changed_and_nobody_can_read_is_for_a_person_to_decide(
    clones: Clones, bare: Path
) -> None:
    a, _ = clones
    a.write(GAPS, gap(1))
    a.meet()
    a.write(GAPS, gap(1), gap(2))
    pushes(bare, {GAPS: LARGE})

    a.remote_sync.exchange()
    standing = a.look()

    assert [each.path for each in standing.conflicts] == [GAPS]
    assert a.committed(GAPS) == f"{gap(1)}\n{gap(2)}\n"


def test_of_many_versions_few_stand_in_memory_and_wrong_ones_keep_no_other_waiting(
    clones: Clones, bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, _ = clones
    monkeypatch.setattr(synchronizer, "_AT_ONCE_BYTES", 1_000)
    wrong = {f"{PHASE}/01-{number:02}.summary.jsonl": b'{"x":1}\n' * 200 for number in range(1, 6)}
    pushes(bare, {**wrong, GAPS: (gap(1) + "\n").encode()})
    pushes(bare, {PLAN: (plan("Tokens") + "\n").encode()})

    a.remote_sync.exchange()
    standing = a.look()

    assert a.committed(GAPS) and a.committed(PLAN)
    assert {each.path for each in standing.held} >= set(wrong)


def test_a_commit_with_an_odd_date_is_received_and_has_one_of_the_calendar(
    clones: Clones, bare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, _ = clones
    pushes(bare, {GAPS: (gap(1) + "\n").encode()}, GIT_COMMITTER_DATE="@253402300800 +0000")
    a.remote_sync.exchange()
    assert a.look().done == 1 and a.committed(GAPS) == gap(1) + "\n"
    for words in (["status"], ["team", "status"], ["agent", "list"], ["verify"]):
        answer(a, capsys, *words)


# --- where a version was made ---


def origin_of(clone: CloneTree) -> str:
    return clone.git("log", "-1", "--format=%(trailers:key=Yolo-Origin,valueonly)").strip()


def counted(clone: CloneTree) -> dict[str, int]:
    seen = TeamObserver(clone.repository, load(str(clone.root))).look()
    assert seen
    return {each.name: each.published for each in seen.clones}


@pytest.fixture
def shown(new_clone: Callable[[str], CloneTree]) -> Clones:
    """Two clones that show each other their branches."""
    return new_clone("a").join_remote(with_source=True), new_clone("b").join_remote(
        with_source=True
    )


@pytest.mark.parametrize("commit", ["a" * 40, "without it", "not a hash"])
def test_an_origin_that_its_commit_does_not_bear_out_is_not_copied(
    shown: Clones, bare: Path, commit: str
) -> None:
    a, _ = shown
    a.write(PLAN, plan("Tokens"))
    a.meet()
    victim = a.synchronizer.membership.clone
    known = a.git("rev-parse", "HEAD").strip()
    named = known if commit == "without it" else commit
    message = f"docs(01): gaps\n\n{TRAILERS}\nYolo-Origin: {victim}/{named}\n"
    forged = pushes(bare, {GAPS: (gap(1) + "\n").encode()}, message)

    a.remote_sync.exchange()
    assert a.look().done == 1

    assert origin_of(a) == f"main/{forged}"
    assert counted(a)[victim] == 1  # the plan alone


def test_an_origin_that_is_true_is_copied_and_counted(shown: Clones) -> None:
    a, b = shown
    a.write(GAPS, gap(1))
    a.meet()
    b.meet()
    assert origin_of(b) == f"{a.synchronizer.membership.clone}/{a.git('rev-parse', 'HEAD').strip()}"
    assert counted(b)[a.synchronizer.membership.clone] == 1


def test_a_clone_that_shows_nobody_its_branch_is_counted_by_its_word_and_not_copied(
    clones: Clones,
) -> None:
    a, b = clones
    a.write(GAPS, gap(1))
    a.meet()
    b.meet()
    assert counted(b)[a.synchronizer.membership.clone] == 1
    assert origin_of(b) == f"main/{b.synchronizer.team_tip()}"


def test_time_and_leases_do_not_grow_with_what_is_pushed(clones: Clones, bare: Path) -> None:
    a, _ = clones
    pushes(bare, {LEASE: json.dumps({"holder": "x", "epoch": 1, "ttl_s": 60}).encode()})
    a.remote_sync.exchange()

    def needed() -> float:
        tip, began = a.synchronizer.team_tip(), time.perf_counter()
        a.synchronizer.lease_at(tip, "backend")
        return time.perf_counter() - began

    needed()
    small = max(min(needed() for _ in range(3)), 0.005)
    pushes(bare, {LEASE: b"[" * (64 << 20)})
    a.remote_sync.exchange()
    needed()
    assert min(needed() for _ in range(3)) < 20 * small
