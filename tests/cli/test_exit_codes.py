"""Each verb ends with a code that its row names, whatever is wrong with the repository, and with no other."""

from __future__ import annotations

import contextlib
import io
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.cli.test_own_verbs import all_verbs
from tests.security.doors import Door, rows_of
from tests.security.place import ArtifactPath
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit
from yolo_fs.protocol.verbs import (
    MEANING_OF_1,
    OTHER_MEANINGS,
    OWN_VERB_BY_NAME,
    WITHOUT_REPOSITORY,
    exits_of,
)

APART = frozenset((
    "compat", "demo", "git-hook", "board", "hook", "mcp", "start", "restart", "service install", "team lease take",
))  # fmt: skip
"""Verbs that serve until somebody ends them, leave a process, or have doors of their own."""
LAST = ("setup", "hooks uninstall", "team leave", "uninstall")
"""Verbs that take away what the others look at."""


def of_place(place: ArtifactPath) -> Path:
    return place.root


def hide_repository(place: ArtifactPath) -> None:
    shutil.move(place.root / ".git", place.outside / "git")


def remove_tree(place: ArtifactPath) -> None:
    shutil.rmtree(place.root / ".yolo-planning")


def break_branch(place: ArtifactPath) -> None:
    (place.root / ".git/refs/heads/main").write_text("0" * 39 + "\n")


def empty_head(place: ArtifactPath) -> None:
    (place.root / ".git/HEAD").write_text("")


def empty_index(place: ArtifactPath) -> None:
    (place.root / ".git/index").write_text("")


def lose_objects(place: ArtifactPath) -> None:
    for path in (place.root / ".git/objects").rglob("*"):
        if path.is_file():
            path.unlink()


def lock_index(place: ArtifactPath) -> None:
    (place.root / ".git/index.lock").write_text("")


def link_own_folder(place: ArtifactPath) -> None:
    shutil.rmtree(place.root / ".git/yolo-fs")
    (place.root / ".git/yolo-fs").symlink_to(place.outside)


def break_configuration(place: ArtifactPath) -> None:
    (place.root / ".yolo-planning/config.json").write_text("{")


def break_users_configuration(place: ArtifactPath) -> None:
    (place.home / ".config/yolo-fs/config.json").write_text("{")


def damage_artifacts(place: ArtifactPath) -> None:
    for path in (place.root / ".yolo-planning").rglob("*.json*"):
        path.write_bytes(b"\xff\x00")


def damage_databases(place: ArtifactPath) -> None:
    for path in (place.root / ".git/yolo-fs").rglob("*.db"):
        path.write_bytes(b"x" * 5000)


TROUBLES: Mapping[str, Callable[[ArtifactPath], object]] = {
    "peace": of_place,
    **{
        each.__name__: each
        for each in (
            hide_repository, remove_tree, break_branch, empty_head, empty_index, lose_objects, lock_index, link_own_folder,
            break_configuration, break_users_configuration, damage_artifacts, damage_databases,
        )
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArtifactPath]:
    made = ArtifactPath(tmp_path_factory.mktemp("exits") / "place")
    made.make()
    made.keep("peace")
    yield made
    made.end_leftovers()


def tried() -> list[str]:
    names = [name for name in all_verbs() if name not in APART]
    return [*(name for name in names if name not in LAST), *LAST]


@pytest.mark.sampled(6)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_verb_ends_with_a_code_of_its_row_whatever_is_wrong(
    trouble: str, place: ArtifactPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.put_back("peace")
    TROUBLES[trouble](place)
    for name, value in place.repo.env.items():
        if name != "PYTHONWARNINGS":
            monkeypatch.setenv(name, value)
    monkeypatch.chdir(place.root)
    ended, others = {}, []
    for name in tried():
        row = rows_of(Door("verb", name))[0]
        words = [*name.split(), *shlex.split(row.words)]
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(row.given.encode())))
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            ended[name] = run(words)
        if ended[name] not in exits_of(name):
            others.append((name, ended[name], out.getvalue()[:200]))
    assert others == []
    assert Exit.DEFECT not in ended.values(), ended
    assert len({*ended.values()}) > 1, "each verb ended alike: the trouble is none"


def test_the_table_is_of_the_verbs_that_there_are() -> None:
    assert {*WITHOUT_REPOSITORY, *MEANING_OF_1, *OTHER_MEANINGS} <= OWN_VERB_BY_NAME.keys()
    for name in OWN_VERB_BY_NAME:
        assert {Exit.DONE, Exit.USAGE} <= exits_of(name).keys()


OF_A_PHASE = (
    "phase list", "phase new x", "phase sign-off", "gate list", "gate check all-depts", "gate why all-depts",
    "gate wait all-depts --timeout 1", "workflow next", "workflow show", "workflow check critique",
    "workflow skip research --reason x", "dept show", "dept update backend --status running", "squash 1",
    "report -o x.html", "context compile dev", "new critique", "new reqs", "status --phase 1", "escalate list --phase 1",
    "answer ESC-01-01-T1 a", "decide accept-risk backend --reason x", "run --once", "validate", "fix", "adopt", "logs",
)  # fmt: skip


def test_what_needs_a_phase_says_alike_that_there_is_no_planning_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    root = tmp_path / "project"
    for words in (
        ["init", "-q", str(root)],
        ["-C", str(root), "commit", "-q", "--allow-empty", "-m", "chore(x): y"],
    ):
        subprocess.run(["git", "-c", "user.name=Ada", "-c", "user.email=a@x", *words], check=True)
    monkeypatch.chdir(root)
    told = {}
    for line in OF_A_PHASE:
        err = io.StringIO()
        with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
            code = run(line.split())
        told[line] = (code, err.getvalue().partition("\n")[0])
    says = "yolo-fs: not_initialised: there is no planning tree here"
    assert {*told.values()} == {(Exit.NOT_HERE, says)}, told
    assert not (root / ".yolo-planning").exists(), "nothing was made on the way"
