"""What git does over the network and when it merges is told by the user's own configuration, never by a repository's."""

from __future__ import annotations

import base64
import os
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.git.conftest import Engines, Make, User
from yolo_fs.core.reasons import YoloError
from yolo_fs.git.isolated import isolated_git
from yolo_fs.git.refs import Remote
from yolo_fs.git.repository import Setting


class Programs:
    """Programs that leave a file of their name when they run."""

    def __init__(self, folder: Path):
        self.ran_in = folder / "ran"
        self.ran_in.mkdir(parents=True)
        self._folder = folder

    def named(self, name: str, then: str = "exit 1") -> str:
        path = self._folder / name
        path.write_text(f"#!/bin/sh\ntouch {self.ran_in}/{name}\n{then}\n")
        path.chmod(0o755)
        return str(path)

    @property
    def ran(self) -> set[str]:
        return set(os.listdir(self.ran_in))


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path / "programs")


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own configuration."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    return tmp_path / ".gitconfig"


NETWORKED = {
    "remote.origin.uploadpack": "{bare}",
    "remote.origin.receivepack": "{bare}",
    "core.sshCommand": "ssh://nowhere.invalid/x",
    "core.gitProxy": "git://nowhere.invalid/x",
    "remote.origin.vcs": "{bare}",
    "core.askPass": "http://127.0.0.1:9/x",
    "credential.helper": "http://127.0.0.1:9/x",
    "url.ext::{program} .insteadOf": "{bare}",
    "core.alternateRefsCommand": "{bare}",
    "include.path": "ssh://nowhere.invalid/x",
}
"""A key of the repository's configuration that names a program, and an address by which git would run it."""


@pytest.mark.parametrize("key", NETWORKED)
def test_at_a_remote_no_program_of_the_repository_runs(
    user: User, engine: Engines, programs: Programs, tmp_path: Path, key: str
) -> None:
    user.git("clone", "--quiet", "--bare", ".", "../team.git")
    bare = str(user.root.parent / "team.git")
    user.git("config", "protocol.ext.allow", "always")
    user.git("remote", "add", "origin", NETWORKED[key].format(bare=bare))
    program = programs.named("program")
    value = bare if key.startswith("url.") else program
    if key == "include.path":
        value = str(tmp_path / "more")
        Path(value).write_text(f"[core]\n\tsshCommand = {program}\n")
    user.git("config", key.format(program=program), value)
    remote = Remote(engine(user).repository, "origin")
    for call in (
        lambda: remote.tips("refs/heads/main"),
        lambda: remote.fetch({"refs/heads/main": "refs/yolo-fs/x"}),
        lambda: remote.push({"refs/heads/new": user.tip()}),
    ):
        try:
            call()
        except YoloError as error:
            if not NETWORKED[key].startswith("{"):
                assert "are ignored" in error.hint
    assert programs.ran == set()
    if NETWORKED[key] == "{bare}":
        assert remote.tip("refs/heads/new") == user.tip()


def test_ssh_of_the_users_own_configuration_runs_although_the_repository_names_another(
    user: User, engine: Engines, programs: Programs, mine: Path
) -> None:
    mine.write_text(f"[core]\n\tsshCommand = {programs.named('mine')}\n[ssh]\n\tvariant = simple\n")
    user.git("config", "core.sshCommand", programs.named("theirs"))
    with pytest.raises(YoloError):
        Remote(engine(user).repository, "ssh://nowhere.invalid/x").tips("refs/heads/main")
    assert programs.ran == {"mine"}


def test_what_the_users_own_configuration_includes_for_a_folder_counts_in_it(
    user: User, engine: Engines, programs: Programs, mine: Path, tmp_path: Path
) -> None:
    (tmp_path / "work.inc").write_text(
        f"[core]\n\tsshCommand = {programs.named('mine')}\n[ssh]\n\tvariant = simple\n"
    )
    mine.write_text(f'[includeIf "gitdir:{user.root.parent}/"]\n\tpath = {tmp_path}/work.inc\n')
    with pytest.raises(YoloError):
        Remote(engine(user).repository, "ssh://nowhere.invalid/x").tips("refs/heads/main")
    assert programs.ran == {"mine"}


@pytest.fixture
def asking() -> Iterator[Asking]:
    """A server, or proxy, that asks who calls."""
    with Asking() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


class Asking(ThreadingHTTPServer):
    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Asking)
        self.server.seen.append((self.path, self.headers.get("Authorization", "")))
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


HELPER = '"!f() {{ touch {ran}; echo username=me; echo password={word}; }}; f"'


def test_the_users_own_credential_helper_answers_and_the_repositorys_is_not_asked(
    user: User, engine: Engines, mine: Path, tmp_path: Path, asking: Asking
) -> None:
    mine.write_text(
        f"[credential]\n\thelper = {HELPER.format(ran=tmp_path / 'mine', word='MINE')}\n"
    )
    user.git("config", "credential.helper", f"!touch {tmp_path / 'theirs'}")
    user.git("config", "http.extraHeader", "Authorization: Basic theirs")
    with pytest.raises(YoloError):
        Remote(engine(user).repository, f"{asking.address}/x").tips("refs/heads/main")
    assert (tmp_path / "mine").exists() and not (tmp_path / "theirs").exists()
    assert base64.b64decode(asking.seen[-1][1].removeprefix("Basic ")) == b"me:MINE"
    assert asking.seen[0][1] == ""


def test_a_proxy_of_the_repository_sees_nothing_and_one_of_the_users_own_everything(
    user: User, engine: Engines, mine: Path, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    where = "http://nowhere.invalid/x"
    remote = Remote(engine(user).repository, where)
    for key in ("http.proxy", f"http.{where}.proxy", "remote.origin.proxy"):
        user.git("config", key, asking.address)
    with pytest.raises(YoloError):
        remote.tips("refs/heads/main")
    assert asking.seen == []
    mine.write_text(f"[http]\n\tproxy = {asking.address}\n")
    with pytest.raises(YoloError):
        remote.tips("refs/heads/main")
    assert asking.seen[0][0].startswith(where)


def test_the_repository_keeps_nothing_of_it_and_what_a_killed_one_left_goes(
    user: User, engine: Engines
) -> None:
    repository = engine(user).repository
    with isolated_git(repository) as left:
        folder = Path(left.text("rev-parse", "--absolute-git-dir"))
        before = (folder / "config").read_text()
        for name in ("config", "HEAD"):
            assert (folder / name).is_file()
        (folder.parent / "isolated-of-a-killed-one").mkdir()
        os.symlink(
            repository.common_dir + "/objects", folder.parent / "isolated-of-a-killed-one/objects"
        )
    assert not folder.exists()
    assert "hooks" not in before
    long_ago = time.time() - 7_200
    os.utime(folder.parent / "isolated-of-a-killed-one", (long_ago, long_ago))
    with isolated_git(repository):
        pass
    assert not list(folder.parent.glob("isolated-*"))
    assert user.tip() and user.text("fsck", "--strict") == ""


def test_settings_with_odd_signs_are_written_as_they_are(user: User, engine: Engines) -> None:
    odd = 'a "b" \\ # ; c\nd'
    user.git("remote", "add", "team", odd)
    more = [Setting("local", 'merge.x "y" \\z.driver', odd)]
    with isolated_git(engine(user).repository, more) as git:
        assert git.text("config", "remote.team.url") == odd
        assert git.text("config", 'merge.x "y" \\z.driver') == odd


def test_a_repository_of_another_hash_is_isolated_as_well(make: Make, engine: Engines) -> None:
    user = make("hashed", "--object-format=sha256")
    with isolated_git(engine(user).repository) as git:
        assert git.text("rev-parse", "refs/heads/main") == user.tip()


def test_a_link_in_the_place_of_what_a_killed_one_left_leads_to_no_removal(
    user: User, make: Make, engine: Engines
) -> None:
    another = make("another")
    another.git("pack-refs", "--all")
    before = another.snapshot()
    repository = engine(user).repository
    repository.make_own_dir()
    link = Path(repository.own_dir, "isolated-planted")
    link.symlink_to(another.root / ".git")
    os.utime(link, (0, 0), follow_symlinks=False)
    with isolated_git(repository):
        pass
    assert another.snapshot() == before
    assert (another.root / ".git/packed-refs").exists() and another.tip()
