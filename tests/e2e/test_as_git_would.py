"""What we commit has the mode, the name and the permissions that git would give it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.artifacts import artifact
from tests.e2e.daemon import Daemon
from tests.e2e.repo import Repo
from yolo_fs.cli.main import run

Start = Callable[..., Daemon]

CRITIQUE = ".yolo-planning/phases/01-login/critique.jsonl"
LINE = (
    '{{"id":"C1","cat":"gap","sev":"minor","q":"{}","ctx":"c","sug":"s","st":"addressed",'
    '"cf":90,"rd":1}}\n'
)


class ArtifactPath:
    """A repository with one phase, and a home of its own."""

    def __init__(self, root: Path):
        self.root = root

    def git(self, *words: str) -> bytes:
        done = subprocess.run(["git", "-C", self.root, *words], capture_output=True, check=True)
        return done.stdout.strip()

    def write(self, question: str) -> Path:
        file = self.root / CRITIQUE
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(LINE.format(question))
        return file

    def commit(self) -> None:
        assert run(["run", "--once", "-q", "-C", str(self.root)]) == 0


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArtifactPath:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    for name in ("GIT_CONFIG_GLOBAL", "GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"):
        monkeypatch.delenv(name, raising=False)
    (home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
    made = ArtifactPath(tmp_path / "r")
    subprocess.run(["git", "init", "-q", "-b", "main", str(made.root)], check=True)
    (made.root / ".yolo-planning/phases/01-login").mkdir(parents=True)
    (made.root / "README").write_text("words\n")
    made.git("add", "README")
    made.git("commit", "-q", "-m", "chore(repo): begin")
    return made


def test_an_artifact_that_is_executable_on_the_branch_stays_so(place: ArtifactPath) -> None:
    place.write("one").chmod(0o755)
    place.git("add", CRITIQUE)
    place.git("commit", "-q", "-m", "docs(01): critique and gap analysis")
    for question in ("two", "three"):
        place.write(question)
        place.commit()

        assert place.git("ls-tree", "HEAD", CRITIQUE).startswith(b"100755 ")
        assert place.git("status", "--porcelain", "--", CRITIQUE) == b""
    assert place.git("rev-list", "--count", "HEAD", "--", CRITIQUE) == b"3"


@pytest.mark.parametrize(("is_looked_at", "mode"), [("true", b"100755 "), ("false", b"100644 ")])
def test_a_new_artifact_has_the_mode_that_git_add_would_give_it(
    place: ArtifactPath, is_looked_at: str, mode: bytes
) -> None:
    place.git("config", "core.fileMode", is_looked_at)
    place.write("one").chmod(0o755)
    place.commit()

    assert place.git("ls-tree", "HEAD", CRITIQUE).startswith(mode)
    assert place.git("ls-files", "--stage", CRITIQUE).startswith(mode)
    assert place.git("status", "--porcelain", "--", CRITIQUE) == b""


def test_an_artifact_that_is_no_longer_executable_is_committed_so(place: ArtifactPath) -> None:
    file = place.write("one")
    for mode, expected in ((0o755, b"100755 "), (0o644, b"100644 "), (0o755, b"100755 ")):
        file.write_text(LINE.format(oct(mode)))
        file.chmod(mode)
        file.write_text(LINE.format(f"{expected!r}"))
        place.commit()
        assert place.git("ls-tree", "HEAD", CRITIQUE).startswith(expected)
        assert place.git("status", "--porcelain", "--", CRITIQUE) == b""


def test_author_and_committer_of_the_environment_are_those_of_the_commit(
    place: ArtifactPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "GIT_AUTHOR_NAME": "Alice",
        "GIT_AUTHOR_EMAIL": "alice@example.org",
        "GIT_COMMITTER_NAME": "Robot",
        "GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z",
    }.items():
        monkeypatch.setenv(name, value)
    place.write("one")
    command = [sys.executable, "-m", "yolo_fs", "run", "--once", "-q", "-C", str(place.root)]
    subprocess.run(command, check=True)
    who = place.git("log", "-1", "--format=%an <%ae> %cn <%ce>", "--", CRITIQUE)
    assert who == b"Alice <alice@example.org> Robot <ada@example.org>"
    assert not place.git("log", "-1", "--format=%ad", "--date=short").startswith(b"2001")
    place.write("two")
    hook = os.environ | {"GIT_DIR": str(place.root / ".git"), "GIT_INDEX_FILE": "elsewhere"}
    subprocess.run(command, check=True, env=hook)
    assert place.git("log", "-1", "--format=%an", "--", CRITIQUE) == b"Ada"


def test_the_author_that_the_configuration_names_is_the_author(place: ArtifactPath) -> None:
    place.git("config", "author.name", "Alice")
    place.write("one")
    place.commit()
    assert place.git("log", "-1", "--format=%an %cn", "--", CRITIQUE) == b"Alice Ada"


def test_a_name_that_is_set_while_the_daemon_runs_counts_from_the_next_commit(
    repo: Repo, start: Start
) -> None:
    def committed_by(number: int) -> str:
        one = artifact("plan", number)
        repo.write(one)
        daemon.wait_committed([one])
        return repo.look("log", "-1", "--format=%ae %ce", "--", one.path).strip()

    daemon = start(repo)
    before = committed_by(0)
    repo.git("config", "user.email", "countess@example.org")
    assert committed_by(1) == "countess@example.org countess@example.org" != before
    (repo.root.parent / "of-branch").write_text("[author]\n\temail = branch@example.org\n")
    repo.git("config", "includeIf.onbranch:feat/.path", str(repo.root.parent / "of-branch"))
    assert committed_by(2) == "countess@example.org countess@example.org"
    repo.git("checkout", "-q", "-b", "feat/login")
    assert committed_by(3) == "branch@example.org countess@example.org"


def test_a_name_in_another_encoding_is_that_of_git_byte_for_byte(place: ArtifactPath) -> None:
    config = (
        "[user]\n\tname = Jörg\n\temail = j@example.org\n[i18n]\n\tcommitEncoding = ISO-8859-1\n"
    )
    (Path(os.environ["HOME"]) / ".gitconfig").write_bytes(config.encode("latin-1"))
    place.git("commit", "-q", "--allow-empty", "-m", "chore(repo): by git")
    by_git = place.git("cat-file", "commit", "HEAD").split(b"\n")
    place.write("one")
    place.commit()

    tip = place.git("log", "-1", "--format=%H", "--", CRITIQUE).decode()
    ours = place.git("cat-file", "commit", tip).split(b"\n")
    for begins in (b"author ", b"committer ", b"encoding "):
        of_git, of_us = (
            [line.partition(b">")[0] for line in lines if line.startswith(begins)]
            for lines in (by_git, ours)
        )
        assert of_us == of_git != []
    assert place.git("log", "-1", "--format=%an", "--encoding=UTF-8", tip).decode() == "Jörg"


@pytest.mark.parametrize(("shared", "mode"), [("0660", 0o440), ("0640", 0o440), ("0664", 0o444)])
def test_packs_have_the_permissions_that_the_repository_shares(
    place: ArtifactPath, shared: str, mode: int
) -> None:
    place.git("config", "core.sharedRepository", shared)
    place.write("one")
    before = os.umask(0o077)
    try:
        place.commit()
    finally:
        os.umask(before)

    packs = [*(place.root / ".git/objects/pack").glob("*.pack")]
    assert packs
    assert {stat.S_IMODE(pack.stat().st_mode) for pack in packs} == {mode}


def _can_be_another() -> bool:
    command = ["unshare", "-r", "true"]
    is_there = shutil.which("unshare") is not None
    return os.geteuid() == 0 and is_there and subprocess.run(command, check=False).returncode == 0


@pytest.mark.skipif(not _can_be_another(), reason="needs root, and unshare(1)")
def test_an_index_that_belongs_to_somebody_else_holds_nothing_up(place: ArtifactPath) -> None:
    os.chown(place.root / ".git/index", 5001, 5001)
    place.write("one")
    command = [sys.executable, "-m", "yolo_fs", "run", "--once", "-C", str(place.root)]
    subprocess.run(["unshare", "-r", *command], check=True, capture_output=True, timeout=120)

    assert place.git("rev-list", "--count", "HEAD", "--", CRITIQUE) == b"1"
    assert place.git("status", "--porcelain", "--", CRITIQUE) == b""
