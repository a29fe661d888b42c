"""A git directory can come from anywhere: what it says of a team counts only where this user has agreed to it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.team.test_remote_sync import at_remote
from tests.team.work_trees import GAPS, Clones, CloneTree, gap
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit, Reason, YoloError
from yolo_fs.system import system
from yolo_fs.team import membership as module
from yolo_fs.team.membership import membership_of
from yolo_fs.workspace.settings import user_config_path

NewClone = Callable[[str], CloneTree]
PLANTED = {"team": "main", "clone": "x-1", "remote": "origin", "with_source": True, "lane": ""}


def refs(bare: Path) -> str:
    return at_remote(bare, "for-each-ref", "--format=%(refname) %(objectname)")


def refusal(tree: CloneTree) -> YoloError:
    with pytest.raises(YoloError) as refused:
        membership_of(tree.repository)
    assert refused.value.reason is Reason.TEAM_NOT_AGREED
    return refused.value


def test_a_membership_that_came_with_the_git_directory_publishes_nothing(
    new_clone: NewClone, bare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = new_clone("a")
    a.repository.make_own_dir()
    Path(a.repository.own_dir, "team.json").write_text(json.dumps(PLANTED))
    a.write(GAPS, gap(1))
    before = refs(bare)
    a.close()
    for verb in ("run --once", "team sync", "team status", "team lease list", "status", "resume"):
        assert run([*verb.split(), "-C", str(a.root)]) in (Exit.DONE, Exit.NOT_HERE)
    assert refs(bare) == before
    shown = capsys.readouterr()
    assert "nobody has joined here" in shown.err and "yolo-fs team join origin" in shown.err
    a.open()


def test_status_names_a_team_that_nobody_has_joined(
    new_clone: NewClone, capsys: pytest.CaptureFixture[str]
) -> None:
    a = new_clone("a")
    a.repository.make_own_dir()
    Path(a.repository.own_dir, "team.json").write_text(json.dumps(PLANTED))
    run(["status", "-C", str(a.root)])
    assert "nobody has joined" in " ".join(capsys.readouterr().err.split())


def test_whoever_agreed_elsewhere_is_asked_again(clones: Clones, tmp_path: Path) -> None:
    a, _ = clones
    name = a.synchronizer.membership.clone
    a.close()
    shutil.copytree(a.root, tmp_path / "copy")
    shutil.move(a.root, tmp_path / "moved")
    for place in ("copy", "moved"):
        tree = CloneTree(tmp_path / place)
        assert "yolo-fs team join origin" in refusal(tree).hint
        assert tree.join_remote().synchronizer.membership.clone != name
        tree.close()


@pytest.mark.parametrize("key", ["remote.origin.url", "remote.origin.pushurl"])
def test_another_address_of_the_remote_was_not_agreed_to(
    clones: Clones, tmp_path: Path, key: str
) -> None:
    a, _ = clones
    a.git("config", key, str(tmp_path / "other.git"))
    assert str(tmp_path / "other.git") in refusal(a).message
    assert a.join_remote().synchronizer.membership.remote == "origin"


def test_another_machine_and_another_user_have_agreed_to_nothing(
    clones: Clones, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    a, _ = clones
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(module, "machine_id", lambda: f"not {system.machine_id()}")
        refusal(a)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "of another user"))
    refusal(a)


def test_what_was_agreed_to_is_for_its_user_alone(clones: Clones) -> None:
    kept = [*Path(user_config_path()).parent.glob("teams/*.json")]
    assert len(kept) == len(clones)
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
    assert kept[0].parent.stat().st_mode & 0o777 == 0o700


def test_who_never_joined_can_leave(new_clone: NewClone) -> None:
    a = new_clone("a")
    a.repository.make_own_dir()
    Path(a.repository.own_dir, "team.json").write_text(json.dumps(PLANTED))
    assert run(["team", "leave", "--delete-mine", "-C", str(a.root)]) == Exit.NOT_HERE
    assert run(["team", "leave", "-C", str(a.root)]) == Exit.DONE
    assert membership_of(a.repository) is None
