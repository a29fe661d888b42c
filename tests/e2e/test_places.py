"""Wherever a repository lies and however it was made. See docs/dev/faults.md#f27, #f29, #f31, #f32 and
#f37.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.artifacts import PLANNING, Artifact, artifact, mixed
from tests.e2e.daemon import Daemon, until
from tests.e2e.history import History
from tests.e2e.repo import Repo

Start = Callable[..., Daemon]
NewRepo = Callable[..., Repo]


def commit_through_a_daemon(repo: Repo, start: Start, artifacts: list[Artifact]) -> None:
    history, before = History(repo), repo.of_the_user()
    daemon = start(repo)
    repo.write(*artifacts)
    daemon.wait_committed(artifacts)
    assert daemon.stop() == 0
    history.check(artifacts)
    assert repo.of_the_user() == before


def test_two_worktrees_have_two_daemons_and_one_object_store(repo: Repo, start: Start) -> None:
    repo.git("worktree", "add", "-q", "-b", "side", "../side")
    side = Repo(repo.root.parent / "side", repo.env)
    trees = [(repo, mixed(40)), (side, mixed(40, first=40))]
    histories = [History(tree) for tree, _ in trees]
    daemons = [start(tree) for tree, _ in trees]
    for at in range(0, 40, 10):
        for tree, artifacts in trees:
            tree.write(*artifacts[at : at + 10])
    for daemon, (_, artifacts) in zip(daemons, trees, strict=True):
        daemon.wait_committed(artifacts)
        assert daemon.stop() == 0
    for history, (_, artifacts) in zip(histories, trees, strict=True):
        history.check(artifacts)
    assert (
        repo.look("merge-base", "main", "side").strip()
        == repo.look("rev-list", "--max-parents=0", "main").strip()
    )


def test_worktrees_hold_by_themselves(repo: Repo, start: Start) -> None:
    repo.git("worktree", "add", "-q", "-b", "side", "../side")
    side = Repo(repo.root.parent / "side", repo.env)
    daemons = start(repo), start(side)
    side.git("checkout", "-q", "--detach")
    one = artifact("plan", 0)
    repo.write(one)
    side.write(one)
    daemons[0].wait_committed([one])
    daemons[1].wait_for("artifact.held", one.path, "detached_head")
    assert side.standing(one.path) == ("held", "detached_head")
    side.git("checkout", "-q", "side")
    daemons[1].wait_committed([one])


def test_an_unborn_branch_beside_others_waits_for_the_root_commit_that_a_person_is_making(
    new_repo: NewRepo, start: Start
) -> None:
    repo = new_repo("empty")
    repo.git("checkout", "-q", "--orphan", "fresh")
    repo.git("rm", "-rq", "--cached", ".")
    artifacts = mixed(12)
    daemon = start(repo)
    repo.write(artifacts[0])
    daemon.wait_for("artifact.held", artifacts[0].path, "unborn_branch")
    repo.git("commit", "-q", "--allow-empty", "-m", "chore: a new beginning")
    repo.write(*artifacts[1:])
    daemon.wait_committed(artifacts)
    assert daemon.stop() == 0
    told = sorted(["chore: a new beginning", *(one.subject for one in artifacts)])
    assert sorted(repo.subjects("fresh")) == told
    assert repo.look("diff", "--cached", "--", PLANNING) == ""


@pytest.mark.parametrize(
    "form", [["--object-format=sha256"], ["--separate-git-dir=../elsewhere.git"]], ids=str
)
def test_repositories_of_every_form(new_repo: NewRepo, start: Start, form: list[str]) -> None:
    commit_through_a_daemon(new_repo("formed", *form), start, mixed(20))


def _pack_refs(repo: Repo) -> None:
    repo.git("pack-refs", "--all", "--prune")
    assert not (repo.git_dir / "refs/heads/main").exists()


def _split_index(repo: Repo) -> None:
    repo.git("update-index", "--split-index")


def _index_version_4(repo: Repo) -> None:
    repo.git("update-index", "--index-version", "4")


def _untracked_cache(repo: Repo) -> None:
    repo.git("config", "core.untrackedCache", "true")
    repo.git("update-index", "--untracked-cache")


def _branch_with_slashes(repo: Repo) -> None:
    repo.git("checkout", "-q", "-b", "feature/team/login")


def _sparse_cone(repo: Repo) -> None:
    repo.git("sparse-checkout", "set", "--cone", PLANNING)
    assert not (repo.root / "src").exists()


def _sparse_patterns(repo: Repo) -> None:
    repo.git("sparse-checkout", "set", "--no-cone", f"/{PLANNING}/", "/README.md")
    assert not (repo.root / "src").exists()


def _sparse_without_planning(repo: Repo) -> None:
    repo.git("sparse-checkout", "set", "--cone", "src")
    (repo.root / PLANNING).mkdir(exist_ok=True)


def _no_identity(repo: Repo) -> None:
    Path(repo.env["HOME"], ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")


def _signing_and_templates(repo: Repo) -> None:
    repo.git("config", "commit.gpgSign", "true")
    repo.git("config", "gpg.program", "/bin/false")
    repo.git("config", "commit.template", "/nonexistent")


def _log_settings(repo: Repo) -> None:
    for name, value in (("log.showSignature", "true"), ("log.date", "relative"), ("color.ui", "always"),
                        ("status.short", "true"), ("diff.noprefix", "true"), ("i18n.logOutputEncoding", "UTF-16"),
                        ("core.quotePath", "true"), ("core.abbrev", "4")):  # fmt: skip
        repo.git("config", name, value)


STATES = (_pack_refs, _split_index, _index_version_4, _untracked_cache, _branch_with_slashes, _sparse_cone,
          _sparse_patterns, _sparse_without_planning, _no_identity, _signing_and_templates)  # fmt: skip


@pytest.mark.parametrize("prepare", STATES)
def test_repositories_in_every_state(
    repo: Repo, start: Start, prepare: Callable[[Repo], None]
) -> None:
    prepare(repo)
    commit_through_a_daemon(repo, start, mixed(20))


def test_settings_of_git_that_change_what_it_prints_change_nothing(
    repo: Repo, start: Start
) -> None:
    daemon, artifacts = start(repo), mixed(20)
    _log_settings(repo)
    daemon.stop()
    again = start(repo)
    repo.write(*artifacts)
    again.wait_committed(artifacts)
    assert {one["standing"] for one in repo.status()["candidates"]} == {"committed"}
    assert again.stop() == 0
    for setting in ("log.date", "color.ui", "i18n.logOutputEncoding", "log.showSignature"):
        repo.git("config", "--unset", setting)
    assert sorted(repo.subjects()[1:]) == sorted(one.subject for one in artifacts)


def _clone(repo: Repo, *options: str) -> Repo:
    repo.git("config", "uploadpack.allowFilter", "true")
    repo.git("clone", "-q", "--no-local", *options, f"file://{repo.root}", "../clone")
    return Repo(repo.root.parent / "clone", repo.env)


def test_a_shallow_clone(repo: Repo, start: Start) -> None:
    repo.commit_file("src/file1.py", "second = 1\n")
    clone = _clone(repo, "--depth=1")
    commit_through_a_daemon(clone, start, mixed(20))


def test_a_partial_clone_without_blobs_whose_remote_is_gone(repo: Repo, start: Start) -> None:
    clone = _clone(repo, "--filter=blob:none")
    shutil.rmtree(repo.root)
    daemon, artifacts = start(clone), mixed(20)
    clone.write(*artifacts)
    daemon.wait_committed(artifacts)
    assert daemon.stop() == 0
    assert sorted(clone.subjects()[1:]) == sorted(one.subject for one in artifacts)


def test_a_partial_clone_without_trees_whose_remote_is_gone_holds_and_does_not_hang(
    repo: Repo, start: Start
) -> None:
    one = artifact("plan", 0)
    clone = _clone(repo, "--filter=tree:0", "--no-checkout")
    shutil.rmtree(repo.root)
    (clone.root / PLANNING).mkdir()
    daemon = start(clone)
    clone.write(one)
    daemon.wait_for("artifact.held", one.path, "object_missing")
    assert clone.standing(one.path) == ("held", "object_missing")
    assert daemon.stop() == 0


def test_an_object_store_that_is_away_for_a_moment(repo: Repo, start: Start) -> None:
    history, daemon, (first, second) = History(repo), start(repo), mixed(2)
    repo.write(first)
    daemon.wait_committed([first])
    objects = repo.git_dir / "objects"
    objects.rename(objects.with_name("away"))
    repo.write(second)
    daemon.mailbox.wait(lambda events: events[-1]["event"] in ("artifact.held", "daemon.trouble"))
    objects.with_name("away").rename(objects)
    daemon.wait_committed([second])
    # What git is to hide of our state files is tried again after a pause.
    state = repo.root / ".yolo-planning/state.json"
    left = ("status", "--porcelain", "-uall", "--", ".yolo-planning")
    until(lambda: state.exists() and repo.look(*left) == "", "what is kept beside it is hidden")
    assert daemon.stop() == 0
    history.check([first, second])


@pytest.mark.parametrize("prune", ["2.weeks.ago", "now"])
def test_a_collection_of_garbage_beside_the_daemon(repo: Repo, start: Start, prune: str) -> None:
    history, daemon, artifacts = History(repo), start(repo), mixed(60)
    for at in range(0, 60, 6):
        repo.write(*artifacts[at : at + 6])
        repo.git("gc", "-q", f"--prune={prune}")
    daemon.wait_committed(artifacts)
    until(lambda: repo.look("diff", "--cached") == "", "the index follows")
    assert daemon.stop() == 0
    history.check(artifacts)
