"""Two users and a group on one machine: what each can read, write, stop or learn of a third one's work.

The table is made by trying, and compared with what `docs/threats.md` says.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.daemon import until
from tests.security.place import ArtifactPath
from tests.support import forked
from tests.support.forked import ROOT
from tests.support.person import PERSON
from tests.support.sample import sample_of

OWNER, NEIGHBOUR, MEMBER, GROUP = 4242, 4243, 4244, 4300
PATIENCE_S = 60.0


PATHS = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{Path(pytest.__file__).parents[1]}"}
"""Environment in which any interpreter of the same version finds the program."""


def interpreter_of_all() -> str:
    """Return an interpreter that another user can run this program with; empty where there is none."""
    names = (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}", "/usr/bin/python3")
    for name in names if os.geteuid() == 0 else ():
        with contextlib.suppress(OSError):
            command = [name, "-P", "-c", "import yolo_fs.web.server"]
            tried = subprocess.run(command, env=PATHS, cwd="/", user=OWNER, group=OWNER, extra_groups=[], capture_output=True, check=False)  # fmt: skip
            if tried.returncode == 0:
                return name
    return ""


PYTHON = interpreter_of_all()
WHY_NOT = "" if PYTHON else "it takes root, and an interpreter that every user can read"
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "-")


class Person(NamedTuple):
    """Somebody with an account."""

    name: str
    uid: int
    groups: tuple[int, ...] = ()


PEOPLE = (
    Person("another user", NEIGHBOUR),
    Person("a member of the group", MEMBER, (GROUP,)),
)


class Work:
    """What the owner has at work: a daemon with its observer, a board, and an agent's server."""

    def __init__(self, place: ArtifactPath) -> None:
        self.place = place
        self.lay_before = {f"/tmp/{name}" for name in os.listdir("/tmp")}
        self.env = {name: value for name, value in place.repo.env.items() if name != "YOLO_FS_COLD"}
        self.env.update(PATHS)
        self.env.pop("PYTHONWARNINGS")
        self.started: list[subprocess.Popen[bytes]] = []
        self.daemon = self.begin("run", "--json")
        until(
            lambda: (place.own / "observer.sock").exists(),
            "the daemon and its observer are there",
            PATIENCE_S,
        )
        self.board = self.begin("board", "--no-open", stdout=subprocess.PIPE)
        assert self.board.stdout is not None
        found = re.search(rb":(\d+)/\S*token=([\w-]+)", self.board.stdout.readline())
        assert found is not None
        self.port, self.token = int(found[1]), found[2].decode()

    def begin(self, *words: str, **more: Any) -> subprocess.Popen[bytes]:
        """Begin a verb as the owner."""
        streams = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
        }
        process = subprocess.Popen(
            [PYTHON, "-P", "-m", "yolo_fs", *words], cwd=self.place.root, env=self.env,
            user=OWNER, group=OWNER, extra_groups=[GROUP], **{**streams, **more},
        )  # fmt: skip
        self.started.append(process)
        return process

    def end(self) -> None:
        for process in reversed(self.started):
            process.terminate()
        for process in self.started:
            process.wait(PATIENCE_S)
            if process.stdout:
                process.stdout.close()
        self.place.end_leftovers()


@pytest.fixture(scope="module")
def work() -> Iterator[Work]:
    # Every folder above those of pytest is for its user alone.
    base = Path(tempfile.mkdtemp(prefix="neighbours-", dir="/tmp"))
    base.chmod(0o755)
    before = os.umask(0o022)
    made = ArtifactPath(base / "place")
    made.make()
    for folder, _, names in os.walk(made.base):
        for path in (folder, *(os.path.join(folder, name) for name in names)):
            os.chown(path, OWNER, GROUP, follow_symlinks=False)
    work = Work(made)
    yield work
    work.end()
    os.umask(before)
    shutil.rmtree(base)


def as_person(person: Person, act: Try) -> str:
    """Do something as somebody else; return what came of it: `yes …`, or the name of the error."""
    if isinstance(act, Verb):
        return act.answers(person)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = "?"
        try:
            os.close(reading)
            os.setgroups(list(person.groups))
            os.setgid(person.uid)
            os.setuid(person.uid)
            got = act()
            said = "no" if got is False else f"yes {got}" if isinstance(got, str) else "yes"
        except PermissionError:
            said = "no"
        except BaseException as error:
            said = f"no: {type(error).__name__}"
        finally:
            os.write(writing, said.encode()[:4000])
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


# --- what is tried ---


def reads(path: Path) -> Callable[[], object]:
    return lambda: bool(path.read_bytes() is not None)


def lists(path: Path) -> Callable[[], object]:
    return lambda: bool(os.listdir(path) is not None)


def writes(path: Path) -> Callable[[], object]:
    def act() -> object:
        with open(path, "ab"):
            return True

    return act


def makes(folder: Path) -> Callable[[], object]:
    def act() -> object:
        made = folder / "made-by-another"
        made.write_text("x")
        made.unlink()
        return True

    return act


def connects(path: Path) -> Callable[[], object]:
    def act() -> object:
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(5)
            one.connect(str(path))
            return True

    return act


def signals(process: subprocess.Popen[bytes]) -> Callable[[], object]:
    def act() -> object:
        os.kill(process.pid, 0)  # asks whether it may, and does nothing
        return True

    return act


def shows(process: subprocess.Popen[bytes], name: str, secret: str) -> Callable[[], object]:
    """Look whether a file of a process holds something."""
    return lambda: secret.encode() in Path(f"/proc/{process.pid}/{name}").read_bytes()


def locks(path: Path) -> Callable[[], object]:
    import fcntl

    def act() -> object:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return True

    return act


def asks(
    work: Work, family: socket.AddressFamily, host: str, *, with_token: bool
) -> Callable[[], object]:
    """Ask the board for the names of its repositories, and say whether it tells."""

    def act() -> object:
        cookie = f"Cookie: yolo_fs_board_{work.port}={work.token}\r\n" if with_token else ""
        with socket.socket(family, socket.SOCK_STREAM) as one:
            one.settimeout(20)
            one.connect((host, work.port))
            one.sendall(
                f"GET /api/repositories HTTP/1.1\r\nHost: 127.0.0.1:{work.port}\r\nConnection: close\r\n{cookie}\r\n".encode()
            )
            answer = b""
            while more := one.recv(65536):
                answer += more
        return b" 200 " in answer.split(b"\r\n")[0]

    return act


class Verb(NamedTuple):
    """A verb, run in the repository, or below the work of the owner."""

    work: Work
    words: tuple[str, ...]

    def run(self, person: Person, given: str = "", cwd: Path | None = None) -> forked.Ended:
        """Run it as somebody to its end."""
        env = {
            **self.work.env,
            PERSON: ":".join(map(str, (person.uid, person.uid, *person.groups))),
        }
        if person.uid == OWNER:
            return self._call(env, given, cwd)
        with tempfile.TemporaryDirectory(prefix="home-of-another-") as home:
            os.chown(home, person.uid, person.uid)
            return self._call(
                {**env, "HOME": home, "XDG_CONFIG_HOME": f"{home}/.config"}, given, cwd
            )

    def _call(self, env: Mapping[str, str], given: str, cwd: Path | None) -> forked.Ended:
        become = "tests.support.person:become"
        return forked.call(
            self.words, cwd or self.work.place.root, env, given.encode(), prepare=become
        )

    def answers(self, person: Person) -> str:
        """Say whether it answers somebody."""
        done = self.run(person)
        # Its owner is told of it by a warning, after the answer.
        refused = re.search(rb"(?m)^(?!warning: ).*\bunsafe_repository\b", done.out + done.err)
        return "yes" if not refused and done.code in (0, 1) else "no"


Try = Callable[[], object] | Verb


def runs(work: Work, *words: str) -> Verb:
    return Verb(work, words)


def key_of(work: Work) -> Path:
    state = work.env.get("XDG_STATE_HOME") or f"{work.env['HOME']}/.local/state"
    return Path(state, "yolo-fs/key")


def tries(work: Work) -> Mapping[str, Try]:
    """Return everything that is tried."""
    place, four, six = work.place, socket.AF_INET, socket.AF_INET6
    own = place.own
    beside = place.root / ".yolo-planning/phases/01-auth"
    found = {
        f"read .git/yolo-fs/{name}": reads(own / name)
        for name in sorted(os.listdir(own))
        if (own / name).is_file()
    }
    return {
        **found,
        "list .git/yolo-fs": lists(own),
        "write .git/yolo-fs": makes(own),
        "read the key that proves what is the owner's": reads(key_of(work)),
        "replace that key": makes(key_of(work).parent),
        "write the owner's configuration": makes(Path(work.env["XDG_CONFIG_HOME"])),
        "write the journal": writes(own / "events.jsonl"),
        "write the membership": writes(own / "team.json"),
        "hold the daemon's lock": locks(own / "daemon.lock"),
        "connect to observer.sock": connects(own / "observer.sock"),
        "write the planning tree": makes(beside),
        "write an artifact": writes(beside / "critique.jsonl"),
        "write a lease": makes(place.base / "remote.git/refs/heads"),
        "write .git": makes(place.root / ".git"),
        "write .git/config": writes(place.root / ".git/config"),
        "write the hooks": makes(place.root / ".git/hooks"),
        "signal the daemon": signals(work.daemon),
        "signal the board": signals(work.board),
        "read the environment of the daemon": reads(Path(f"/proc/{work.daemon.pid}/environ")),
        "list the descriptors of the daemon": lists(Path(f"/proc/{work.daemon.pid}/fd")),
        "see where the daemon works": lambda: bool(os.readlink(f"/proc/{work.daemon.pid}/cwd")),
        "see that there is a daemon": reads(Path(f"/proc/{work.daemon.pid}/cmdline")),
        "see the token of the board in the process list": shows(work.board, "cmdline", work.token),
        "ask the board": asks(work, four, "127.0.0.1", with_token=False),
        "ask the board with a stolen token": asks(work, four, "127.0.0.1", with_token=True),
        "ask the board with a stolen token at 127.0.0.2": asks(work, four, "127.0.0.2", with_token=True),
        "ask the board with a stolen token over IPv6": asks(work, six, "::ffff:127.0.0.1", with_token=True),
        "run status": runs(work, "status"),
        "run resume": runs(work, "resume"),
        "run validate": runs(work, "validate"),
        "run run --once": runs(work, "run", "--once"),
        "run start": runs(work, "start"),
        "run stop": runs(work, "stop"),
        "run team sync": runs(work, "team", "sync"),
        "run kept": runs(work, "kept"),
        "run doctor": runs(work, "doctor"),
        "run hooks install": runs(work, "hooks", "install"),
        "read the planning tree": reads(beside / "critique.jsonl"),
        "read the status of a department": reads(beside / ".dept-status-backend.json"),
        "read .git/config": reads(place.root / ".git/config"),
    }  # fmt: skip


ALLOWED = {
    "see that there is a daemon", "read the planning tree", "read the status of a department", "read .git/config",
}  # fmt: skip
"""What others may: see that processes run, and read what the user's own modes (022) let everybody read."""


def test_nobody_else_can_do_more_than_the_page_of_threats_says(
    work: Work, rng: random.Random
) -> None:
    all_ = tries(work)
    verbs = sample_of([what for what in all_ if what.startswith("run ")], 4, rng)
    chosen = [what for what in all_ if what in verbs or not what.startswith("run ")]
    table = {
        what: {person.name: as_person(person, all_[what]) for person in PEOPLE} for what in chosen
    }
    width = max(map(len, table))
    print("\n" + " " * width, *(person.name for person in PEOPLE), sep=" | ")
    for what, answers in table.items():
        print(f"{what:{width}}", *answers.values(), sep=" | ")
    can = {
        (what, who)
        for what, row in table.items()
        for who, said in row.items()
        if said.startswith("yes")
    }
    assert {what for what, _ in can} <= ALLOWED, sorted(one for one in can if one[0] not in ALLOWED)
    assert {what for what, _ in can} == ALLOWED, "what is allowed was tried, and works"


def test_the_owner_can_do_all_of_it(work: Work) -> None:
    """Each try is one that succeeds for whoever may."""
    harmless = {
        what: act for what, act in tries(work).items()
        if not what.startswith("run ") and "127.0.0.2" not in what and "IPv6" not in what
    }  # fmt: skip
    owner = Person("the owner", OWNER, (GROUP,))
    said = {what: as_person(owner, act) for what, act in harmless.items()}
    expected = {
        "see the token of the board in the process list",
        "ask the board",
        "hold the daemon's lock",
    }
    assert {what for what, each in said.items() if not each.startswith("yes")} == expected, said


def test_nothing_of_ours_lies_in_the_common_folder_for_temporary_files(work: Work) -> None:
    place = str(work.place.base)
    names = {f"/tmp/{name}" for name in os.listdir("/tmp")} - work.lay_before
    ours = [each for each in names if owner_of(each) == OWNER and not place.startswith(each)]
    assert ours == []


def owner_of(path: str) -> int:
    with contextlib.suppress(OSError):
        return os.lstat(path).st_uid
    return -1


@pytest.mark.parametrize("place", [".", ".yolo-planning", ".yolo-planning/phases"])
def test_where_the_group_may_write_nothing_is_started(work: Work, place: str) -> None:
    """Its owner may still look: what a member of the group planted there runs nowhere."""
    folder = work.place.root / place
    before = folder.stat().st_mode & 0o7777
    folder.chmod(0o770)
    owner = Person("the owner", OWNER, (GROUP,))
    try:
        for words in (("start",), ("run", "--once")):
            assert as_person(owner, runs(work, *words)) == "no", words
        assert as_person(owner, runs(work, "status")) == "yes"
        assert as_person(PEOPLE[1], makes(folder)) == "yes", "a member may, by the modes"
        for person in PEOPLE if place == "." else ():
            for words in (("status",), ("resume",), ("hooks", "install"), ("team", "sync")):
                assert as_person(person, runs(work, *words)) == "no", (person, words)
    finally:
        folder.chmod(before)


def test_a_member_who_puts_a_folder_of_their_own_in_the_place_of_ours_stops_us_and_no_more(
    work: Work,
) -> None:
    """In a repository that is shared by the group, who may write to .git may rename what is in it."""
    git_dir, own = work.place.root / ".git", work.place.own
    owner, member = Person("the owner", OWNER, (GROUP,)), PEOPLE[1]
    work.place.repo.git("config", "-f", str(git_dir / "config"), "core.sharedRepository", "group")
    os.chown(git_dir / "config", OWNER, GROUP)
    git_dir.chmod(0o2775)
    aside = git_dir / "aside"

    def swap() -> object:
        own.rename(aside)
        own.mkdir(0o700)
        (own / "team.json").write_text('{"team":"main","clone":"x","remote":"origin","place":"x"}')
        return True

    try:
        assert as_person(member, reads(own / "events.jsonl")) == "no"
        assert as_person(member, swap) == "yes"
        for words in (
            ("start",),
            ("run", "--once"),
            ("team", "sync"),
            ("status",),
            ("agent", "list"),
        ):
            done = as_owner(work, words)
            assert done.code not in (70, -9), done
            assert b"Traceback" not in done.err
        assert sorted(os.listdir(own)) == ["team.json"], (
            "nothing of ours goes into a folder of another"
        )
    finally:
        shutil.rmtree(own)
        aside.rename(own)
        git_dir.chmod(0o755)
        work.place.repo.git(
            "config", "-f", str(git_dir / "config"), "--unset", "core.sharedRepository"
        )
        os.chown(git_dir / "config", OWNER, GROUP)
    assert as_person(owner, reads(own / "events.jsonl")) == "yes"


def as_owner(
    work: Work, words: tuple[str, ...], given: str = "", cwd: Path | None = None
) -> forked.Ended:
    """Run a verb as the owner, to its end."""
    return Verb(work, words).run(Person("the owner", OWNER, (GROUP,)), given, cwd)


def test_a_repository_of_another_is_refused_to_root_too(work: Work) -> None:
    """Root may do anything, so it must not do it by mistake."""
    for words in (("status",), ("run", "--once"), ("team", "sync"), ("hooks", "install")):
        assert runs(work, *words).answers(Person("root", 0)) == "no", words


def test_a_repository_of_another_above_is_not_worked_in(work: Work) -> None:
    """Whoever owns a folder in /tmp puts a repository above the folders of everybody."""
    above = Path(tempfile.mkdtemp(prefix="above-", dir="/tmp"))
    above.chmod(0o777)
    try:
        shutil.copytree(
            work.place.root / ".git",
            above / ".git",
            symlinks=True,
            ignore=shutil.ignore_patterns("*.sock"),
        )
        shutil.copytree(work.place.root / ".yolo-planning", above / ".yolo-planning")
        for folder, _, names in os.walk(above):
            for path in (folder, *(os.path.join(folder, name) for name in names)):
                os.chown(path, NEIGHBOUR, NEIGHBOUR, follow_symlinks=False)
        below = above / "mine"
        below.mkdir()
        os.chown(below, OWNER, OWNER)
        for words in (("status",), ("resume",), ("kept",), ("forecast",), ("events",), ("team", "lease", "list"), ("validate",)):  # fmt: skip
            done = as_owner(work, words, cwd=below)
            assert b"unsafe_repository" in done.out + done.err, (words, done)
            assert b"01-auth" not in done.out, (words, done)
        given = json.dumps({"hook_event_name": "SessionStart", "cwd": str(below)})
        done = as_owner(work, ("hook", "session-start"), given, below)
        assert b"01-auth" not in done.out, "the brief of another's repository reaches no agent"
    finally:
        shutil.rmtree(above)


def test_the_browser_is_told_the_address_in_no_command_line(work: Work) -> None:
    """What a program is started with, every user of the machine can read."""
    folder = Path(tempfile.mkdtemp(prefix="browser-", dir="/tmp"))
    os.chown(folder, OWNER, OWNER)
    browser, seen = folder / "browser", folder / "seen"
    browser.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >{seen}.part && mv {seen}.part {seen}\n")
    browser.chmod(0o755)
    work.env["BROWSER"] = str(browser)
    process = work.begin("board", stdout=subprocess.PIPE)
    try:
        until(seen.exists, "the browser was started", PATIENCE_S)
        assert process.stdout is not None
        token = re.search(rb"token=([\w-]+)", process.stdout.readline())
        told = seen.read_text()
        assert "token" not in told
        assert token is None or token[1].decode() not in told
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        shutil.rmtree(folder)
