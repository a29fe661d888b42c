"""The judge itself: each thing that may be wrong is told, and a sound history is not accused of anything."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.artifacts import Artifact, artifact, mixed
from tests.e2e.repo import Repo, make_repo
from tests.torture.surroundings import VALIDATOR, Writelog

Spoil = Callable[[Repo, Writelog, list[Artifact]], object]


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return make_repo(tmp_path / "repo", tmp_path / "home")


def commit(repo: Repo, *artifacts: Artifact) -> str:
    """Commit artifacts in one commit, as somebody else would."""
    repo.write(*artifacts)
    repo.git("add", "--", *(one.path for one in artifacts))
    repo.git("commit", "-q", "--allow-empty", "-m", artifacts[0].subject)
    return repo.look("rev-parse", "HEAD").strip()


def found(repo: Repo, log: Writelog) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(VALIDATOR), str(repo.root), str(log.path)],
        capture_output=True,
        check=False,
    )
    said: dict[str, Any] = json.loads(done.stdout)
    wrong = {kind: what for kind, what in said.items() if what and kind != "commits"}
    assert done.returncode == bool(wrong)
    return wrong


def test_a_sound_history_is_accused_of_nothing(repo: Repo) -> None:
    log = Writelog(repo)
    log.subject("feat: by the user")
    with log.untouched():
        for one in (*mixed(5), artifact("plan", 0, version=1), artifact("plan", 0)):
            log.note(one)
            commit(repo, one)
    repo.commit_file("src/file1.py", "by_the_user = 1\n", "feat: by the user")
    assert found(repo, log) == {}


def _lose(repo: Repo, log: Writelog, artifacts: list[Artifact]) -> None:
    commit(repo, *artifacts[:1])


def _forget_what_was_acknowledged(repo: Repo, log: Writelog, artifacts: list[Artifact]) -> None:
    oid = commit(repo, artifacts[0])
    log.acknowledged([{"event": "artifact.committed", "path": artifacts[0].path,
                       "data": {"blob": artifacts[0].blob(), "commit": oid}}])  # fmt: skip
    repo.git("reset", "-q", "--hard", "HEAD~1")
    for one in artifacts:
        commit(repo, one._replace(subject=f"{one.subject}, again"))


def _repeat(repo: Repo, log: Writelog, artifacts: list[Artifact]) -> None:
    first, second = artifacts
    for one in (first, second):
        commit(repo, one)
    log.note(artifact("plan", 0, version=1))
    for one in (artifact("plan", 0, version=1), first):
        commit(repo, one)


def _swap(repo: Repo, log: Writelog, artifacts: list[Artifact]) -> None:
    later = artifact("plan", 0, version=1)
    log.note(later)
    for one in (later, *artifacts):
        commit(repo, one)


def _sweep(repo: Repo, log: Writelog, artifacts: list[Artifact]) -> None:
    repo.file("secret.env", "token\n")
    repo.git("add", "secret.env")
    for one in artifacts:
        commit(repo, one)


def _join(repo: Repo, log: Writelog, artifacts: list[Artifact]) -> None:
    commit(repo, *artifacts)


def _break(repo: Repo, log: Writelog, artifacts: list[Artifact]) -> None:
    for one in artifacts:
        commit(repo, one)
    garbage = repo.git_dir / "objects" / "00" / ("1" * 38)
    garbage.parent.mkdir(exist_ok=True)
    garbage.write_bytes(b"no object")


def test_a_blob_that_git_lacks_is_named(repo: Repo) -> None:
    log, one = Writelog(repo), artifact("plan", 0)
    log.note(one)
    commit(repo, one)
    (repo.git_dir / "objects" / one.blob()[:2] / one.blob()[2:]).unlink()
    (told,) = found(repo, log)["foreign"]
    assert told.endswith(f"git lacks blob {one.blob()[:12]} of {one.path}")


def _stage_something(repo: Repo, log: Writelog, artifacts: list[Artifact]) -> None:
    for one in artifacts:
        commit(repo, one)
    with log.untouched():
        repo.file("src/file1.py", "swept = 1\n")
        repo.git("add", "src/file1.py")


@pytest.mark.parametrize(
    ("spoil", "kinds"),
    [
        (_lose, {"lost"}), (_forget_what_was_acknowledged, {"lost"}), (_repeat, {"duplicated", "out_of_order"}),
        (_swap, {"out_of_order"}), (_sweep, {"foreign"}), (_join, {"foreign"}), (_break, {"fsck"}),
        (_stage_something, {"user"}),
    ],
)  # fmt: skip
def test_each_thing_that_is_wrong_is_told(repo: Repo, spoil: Spoil, kinds: set[str]) -> None:
    log, artifacts = Writelog(repo), mixed(2)
    for one in artifacts:
        log.note(one)
    spoil(repo, log, artifacts)
    assert found(repo, log).keys() == kinds
