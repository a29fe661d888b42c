"""Work trees of one repository share their artifacts: what is received, published, merged and held, and why."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest

from tests.team.work_trees import (
    GAPS,
    PHASE,
    PLAN,
    SUMMARY,
    TEAM_REF,
    TeamTree,
    commits_named,
    gap,
    plan,
    summary,
)
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git import history
from yolo_fs.git.repository import Repository
from yolo_fs.system import failpoint
from yolo_fs.team import synchronizer
from yolo_fs.team.membership import leave
from yolo_fs.team.synchronizer import SyncStatus

Trees = tuple[TeamTree, TeamTree]


@pytest.fixture
def trees(new_tree: Callable[[str], TeamTree]) -> Trees:
    return new_tree("a").join(), new_tree("b").join()


def settle(*trees: TeamTree) -> None:
    """Let everybody look until all have the same."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        looks = [tree.look() for tree in trees]
        if all(look.is_agreed and not look.done for look in looks):
            return
        time.sleep(0.02)  # an index that the user's git has just written is held
    raise AssertionError(looks)


def test_an_artifact_of_one_is_committed_in_the_other_and_says_where_it_is_from(
    trees: Trees,
) -> None:
    a, b = trees
    a.write(GAPS, gap(1))

    assert a.look().done == 1
    assert b.look().done == 1

    assert b.committed(GAPS) == (b.root / GAPS).read_text() == gap(1) + "\n"
    origin = b.git("log", "-1", "--format=%(trailers:key=Yolo-Origin,valueonly)").strip()
    assert origin == f"{a.synchronizer.membership.clone}/{a.git('rev-parse', 'HEAD').strip()}"
    assert b.git("status", "--porcelain") == ""
    assert a.subjects() == b.subjects() == a.subjects(TEAM_REF)


def test_every_version_is_on_the_team_once_and_in_order(trees: Trees) -> None:
    a, b = trees
    for text in ("Tokens", "Tokens that rotate", "Tokens that expire"):
        a.write(PLAN, plan(text))
    b.write(GAPS, gap(1))
    settle(*trees)
    settle(*trees)

    origins = a.git("log", "--format=%(trailers:key=Yolo-Origin,valueonly)", TEAM_REF).split()
    assert len(origins) == len(set(origins)) == 4
    assert a.git("log", "--format=%s", TEAM_REF, "--", PLAN).count("plan 01-01") == 3
    assert b.git("log", "--format=%s", "HEAD", "--", PLAN).count("plan 01-01") == 3


def test_what_two_add_to_one_file_is_merged_by_records(trees: Trees) -> None:
    a, b = trees
    a.write(GAPS, gap(1), gap(2))
    settle(*trees)
    a.write(GAPS, gap(1, "fixed"), gap(2))
    b.write(GAPS, gap(1), gap(2, "accepted"), gap(3))
    settle(*trees)

    assert a.committed(GAPS).split("\n")[:-1] == [gap(1, "fixed"), gap(2, "accepted"), gap(3)]
    assert a.planning() == b.planning() == a.planning(TEAM_REF)


def test_what_only_a_person_can_choose_is_kept_in_both_versions_until_they_do(trees: Trees) -> None:
    a, b = trees
    a.write(PLAN, plan("Tokens"))
    settle(*trees)
    a.write(PLAN, plan("Tokens that rotate"))
    b.write(PLAN, plan("Tokens that expire"))
    b.write(GAPS, gap(1))
    a.look()

    standing = b.look()

    assert [each.path for each in standing.conflicts] == [PLAN]
    assert Reason.REMOTE_CONFLICT.value in b.told(PLAN)
    assert ("team.conflict", PLAN) in b.events
    assert "expire" in b.committed(PLAN)
    assert "rotate" in b.committed(PLAN, TEAM_REF)
    assert b.committed(GAPS, TEAM_REF)  # the others do not wait for it

    b.synchronizer.resolve(PLAN, keep_ours=True)
    settle(*trees)

    assert "expire" in a.committed(PLAN)
    assert a.planning() == b.planning() == a.planning(TEAM_REF)


def test_the_version_of_the_team_can_be_chosen_as_well(trees: Trees) -> None:
    a, b = trees
    a.write(PLAN, plan("Tokens that rotate"))
    b.write(PLAN, plan("Tokens that expire"))
    a.look()

    b.synchronizer.resolve(PLAN, keep_ours=False)
    settle(*trees)

    assert "rotate" in a.committed(PLAN)
    assert a.planning() == b.planning() == a.planning(TEAM_REF)
    with pytest.raises(YoloError, match="do not conflict"):
        b.synchronizer.resolve(PLAN, keep_ours=True)


def test_a_file_that_somebody_is_writing_is_not_replaced(trees: Trees) -> None:
    a, b = trees
    a.write(GAPS, gap(1))
    settle(*trees)
    a.write(GAPS, gap(1), gap(2))
    a.look()
    b.place(GAPS, gap(1) + "\n" + '{"id": "G-9')

    standing = b.look()

    assert [(one.path, one.reason) for one in standing.held] == [(GAPS, Reason.SETTLING)]
    assert (b.root / GAPS).read_text().endswith('{"id": "G-9')

    b.write(GAPS, gap(1), gap(9))
    settle(*trees)
    assert a.committed(GAPS).split("\n")[:-1] == [gap(1), gap(2), gap(9)]


def test_a_branch_that_has_not_seen_a_version_never_takes_the_team_back_to_it(trees: Trees) -> None:
    a, b = trees
    a.write(PLAN, plan("Tokens"))
    settle(*trees)
    b.git("branch", "old")
    a.write(PLAN, plan("Tokens that rotate"))
    settle(*trees)

    b.git("checkout", "-q", "old")
    settle(*trees)

    assert "rotate" in b.committed(PLAN)
    assert a.git("rev-list", "--count", TEAM_REF).strip() == "2"


def test_a_rebased_branch_publishes_nothing_again(trees: Trees) -> None:
    a, b = trees
    a.write(PLAN, plan("Tokens"))
    a.write(GAPS, gap(1))
    settle(*trees)
    before = a.git("rev-parse", TEAM_REF)
    a.git("rebase", "-q", "--force-rebase", "--root")
    a.restart()
    b.git("merge", "-q", "--no-edit", "--allow-unrelated-histories", "main")
    b.restart()
    settle(*trees)

    assert a.git("rev-parse", TEAM_REF) == before


def test_a_team_ref_that_somebody_took_back_or_away_is_made_whole_again(trees: Trees) -> None:
    a, b = trees
    a.write(PLAN, plan("Tokens"))
    a.write(GAPS, gap(1))
    settle(*trees)
    for command in (("update-ref", TEAM_REF, f"{TEAM_REF}~1"), ("update-ref", "-d", TEAM_REF)):
        a.git(*command)
        settle(*trees)

        assert a.planning() == b.planning() == a.planning(TEAM_REF)


def test_what_is_foreign_or_invalid_on_the_team_ref_is_not_spread(trees: Trees) -> None:
    a, b = trees
    a.write(GAPS, gap(1))
    settle(*trees)
    a.git("checkout", "-q", "--detach", TEAM_REF)
    a.place(GAPS, '{"id": "G-1"}\n')
    a.place("evil.sh", "true\n")
    a.git("add", "-f", "--", GAPS, "evil.sh")
    a.git("commit", "-q", "-m", "feat: of somebody else")
    a.git("update-ref", TEAM_REF, "HEAD")
    a.git("checkout", "-q", "main")

    standing = b.look()

    assert [one.path for one in standing.held] == [GAPS]
    assert b.committed(GAPS) == gap(1) + "\n"
    assert not (b.root / "evil.sh").exists()


def test_what_people_commit_by_hand_is_published_under_the_prescribed_subject(trees: Trees) -> None:
    a, b = trees
    a.place(GAPS, gap(1) + "\n")
    a.git("add", "--", GAPS)
    a.git("commit", "-q", "-m", "fix: whatever")
    settle(*trees)

    assert b.subjects() == ["docs(01): gaps"]


def test_a_deleted_file_is_not_brought_back_before_the_team_has_a_new_version(trees: Trees) -> None:
    a, b = trees
    a.write(GAPS, gap(1))
    settle(*trees)
    b.git("rm", "-q", "--", GAPS)
    b.git("commit", "-q", "-m", "chore: tidy up")

    settle(*trees)
    assert b.planning() == ""
    assert a.committed(GAPS, TEAM_REF)

    a.write(GAPS, gap(1), gap(2))
    settle(*trees)
    assert a.planning() == b.planning()


def test_the_commits_that_a_summary_names_count_beside_it_before_any_merge(trees: Trees) -> None:
    a, b = trees
    a.write(PLAN, plan("Tokens"))
    settle(*trees)
    a.place("src/a.ts", "export {}\n")
    a.git("add", "src")
    a.git("commit", "-q", "-m", "feat(01-01): T1 store tokens")
    source = a.git("rev-parse", "HEAD").strip()
    a.write(GAPS, gap(1))  # which comes between the two and is shown with them
    a.write(SUMMARY, summary(source))
    settle(*trees)
    assert commits_named(b) == {source}

    leave(a.repository)
    assert commits_named(b) == set()


@pytest.mark.parametrize(
    "stage", ["team.placed", "team.publishing", "team.published", "refs.durable"]
)
def test_a_look_that_is_interrupted_is_finished_by_the_next(
    trees: Trees, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = trees
    a.write(PLAN, plan("Tokens"))
    a.look()
    b.write(GAPS, gap(1))
    with monkeypatch.context() as broken:
        broken.setattr(failpoint, "reach", failpoint.armed(f"{stage}:raise=EIO:1"))
        with pytest.raises((OSError, YoloError)):
            b.look()
    b.restart()
    list(b.coordinator.scan())
    settle(*trees)

    assert a.planning() == b.planning() == a.planning(TEAM_REF)
    assert a.git("rev-list", "--count", TEAM_REF).strip() == "2"
    assert len(b.subjects()) == 2


def test_merging_all_branches_meets_no_conflict(new_tree: Callable[[str], TeamTree]) -> None:
    trees = [new_tree(name).join() for name in ("a", "b", "c", "d")]
    for number, tree in enumerate(trees):
        tree.write(f"{PHASE}/{('', 'fe-', 'ux-', 'fe-')[number]}gaps.jsonl", gap(number))
        tree.write(f"{PHASE}/decisions.jsonl", *decisions(number))
    settle(*trees)

    for name in ("b", "c", "d"):
        trees[0].git("merge", "-q", "--no-edit", name)

    assert trees[0].planning() == trees[0].planning(TEAM_REF)


def test_what_one_of_eight_work_trees_writes_all_others_have_after_one_look_each(
    new_tree: Callable[[str], TeamTree],
) -> None:
    names = [f"tree-{number}" for number in range(8)]
    trees = [new_tree(name).join() for name in names]
    for writer, name in ((trees[0], "gaps"), (trees[5], "fe-gaps")):
        path = f"{PHASE}/{name}.jsonl"
        writer.write(path, gap(1))
        writer.look()
        looks = [tree.look() for tree in trees if tree is not writer]
        assert [look.received for look in looks] == [(path,)] * 7
        assert all(look.is_agreed for look in looks)

    for name in names[1:]:
        trees[0].git("merge", "-q", "--no-edit", name)
    assert trees[0].planning() == trees[0].planning(TEAM_REF)


def test_a_look_reads_on_where_the_last_one_ended_and_finds_what_a_first_look_finds(
    trees: Trees, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = trees
    other = f"{PHASE}/fe-gaps.jsonl"
    a.write(GAPS, gap(1))
    b.write(other, gap(1))
    b.look()
    looks = a.synchronizer
    whole: list[str | None] = []

    def counted(repository: Repository, tip: str | None, paths: Sequence[str]) -> object:
        whole.append(tip)
        return history.changes_of(repository, tip, paths)

    def look(*, reads: int) -> SyncStatus:
        whole.clear()
        seen = looks.sync_status()
        assert len(whole) == reads
        assert seen == a.synchronizer.sync_status()
        return seen

    monkeypatch.setattr(synchronizer, "changes_of", counted)
    look(reads=2)
    for number in (2, 3):  # they never agree, so nothing is forgotten
        gaps = [gap(each) for each in range(1, number + 1)]
        a.write(GAPS, *gaps)
        b.write(other, *gaps)
        b.look()
        seen = look(reads=0)
        assert len(seen.publish) == len(seen.receive) == number

    a.git("reset", "-q", "--hard", "HEAD~1")
    assert len(look(reads=1).publish) == 2
    settle(*trees)
    assert look(reads=0).is_agreed
    a.write(GAPS, gap(1), gap(2), gap(4))
    assert len(look(reads=0).publish) == 1
    a.git("checkout", "-q", "-b", "aside", "main~3")
    assert look(reads=2).receive


def decisions(number: int) -> list[str]:
    line = '{"ts":"2026-01-0%dT10:00:00Z","agent":"lead","dec":"Use RS256 %d","reason":"Rotation","alts":[]}'
    return [line % (number + 1, number)]
