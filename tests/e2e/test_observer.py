"""The observer answers what a command prints that starts from nothing: to the byte, and never late.

`YOLO_KILLS=1000` kills that often; `YOLO_ALL=1` runs every command of the table in every form.
"""

from __future__ import annotations

import contextlib
import os
import pty
import random
import re
import shlex
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Sequence
from fcntl import ioctl
from pathlib import Path

import pytest

import yolo_fs
from tests.e2e.artifacts import PLANNING, artifact
from tests.e2e.daemon import Daemon, descendants, until
from tests.e2e.repo import DEADLINE_S, Repo
from yolo_fs.cli import statusline_fast
from yolo_fs.observer.answers import ANSWERED
from yolo_fs.protocol.verbs import OWN_VERB_BY_NAME
from yolo_fs.system import IS_LINUX
from yolo_fs.system.ask import COLD, HELLO, INPUT_BYTES, SOCKET, answers

pytestmark = pytest.mark.skipif(not IS_LINUX, reason="an observer answers on Linux alone")
Start = Callable[..., Daemon]
Done = tuple[int, bytes, bytes]

KILLS = int(os.environ.get("YOLO_KILLS", "8"))
MISSED = 99
"""What the client below ends with when the observer did not answer."""
CLIENT = f"""
import sys
from yolo_fs.system.ask import run_by_observer
code = run_by_observer(sys.argv[1:])
sys.exit({MISSED} if code is None else code)
"""
PHASE = f"{PLANNING}/phases/01-auth"
COMMANDS = (
    "status", "status --json", "status -q", "resume", "resume --json", "may dev decide architecture",
    "may nobody decide x", "gate list", "gate why ui-ux-complete --phase 1", "gate why nothing",
    f"validate {PHASE}/critique.jsonl", f"validate {PHASE}/research.jsonl --json", "validate no/such/file",
    "workflow show", "workflow show --json", "task summary 01-01", "agent list", "escalate list", "events --json",
    "phase list", "message check -", "compat phase-detect", "compat validate-naming", "status --nonsense",
    "status -C deep", "may dev decide architecture -C no/where", "status --help",
)  # fmt: skip
REFUSED = (
    "--help", "--version", "nonsense", "compat nothing", "dept update backend", "phase new x", "-C deep status",
    "verify", "doctor", "resume --format claude-hook",
)  # fmt: skip
"""Nothing of these is answered: they write, wait, or are nobody's verb."""


@pytest.fixture
def observed(repo: Repo, start: Start) -> Repo:
    """Return a repository with two artifacts, a daemon, and its observer, which answers."""
    del repo.env[COLD]
    for folder in (PHASE, "deep"):
        (repo.root / folder).mkdir()
    repo.file(f"{PHASE}/critique.jsonl", '{"id":"C1"}\n')
    repo.file(f"{PHASE}/research.jsonl", '{"q":"Which?"}\n')
    start(repo)
    wait_for_answers(repo)
    return repo


def wait_for_answers(repo: Repo) -> None:
    """Wait until the observer takes a question, not only a connection."""
    until(lambda: ask(repo, ["status"])[0] != MISSED, "the observer answers")


def run(repo: Repo, arguments: Sequence[str], *, cold: bool = False, **more: str) -> Done:
    env = {**repo.env, **({COLD: "1"} if cold else {}), **more}
    return _run(["-m", "yolo_fs", *arguments], repo, env)


def ask(repo: Repo, arguments: Sequence[str], **more: str) -> Done:
    """Run a command by the observer alone."""
    return _run(["-c", CLIENT, *arguments], repo, {**repo.env, **more})


def _run(words: Sequence[str], repo: Repo, env: dict[str, str]) -> Done:
    done = subprocess.run(
        [sys.executable, "-P", *words], cwd=repo.root, env=env, input=b'{"type": "x"}\n',
        capture_output=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def answered(repo: Repo, arguments: Sequence[str], **more: str) -> Done:
    """Run a command by the observer for sure: again where a busy machine let it miss its time."""
    done: list[Done] = []

    def is_answered() -> bool:
        done[:] = [ask(repo, arguments, **more)]
        return done[0][0] != MISSED

    until(is_answered, f"it is answered: {arguments}")
    return done[0]


def observers_of(repo: Repo) -> list[int]:
    """Return the observers of a repository, without their workers."""
    found = processes_of(repo)
    return [pid for pid in found if _parent(pid) not in found]


def observer_of(repo: Repo) -> int:
    (pid,) = observers_of(repo)
    return pid


def processes_of(repo: Repo) -> list[int]:
    own = str(repo.git_dir / "yolo-fs").encode()
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if own in _words(pid)]


def _words(pid: int) -> list[bytes]:
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return words if b"yolo_fs.observer" in words else []
    return []


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def parts_of(observer: int) -> list[int]:
    """Return the follower and the workers of an observer."""
    listed = Path(f"/proc/{observer}/task/{observer}/children").read_text()
    return [int(pid) for pid in listed.split()]


def send(number: signal.Signals, *pids: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def without_clocks(done: Done) -> tuple[int, bytes, bytes]:
    """Return what a command did without ages and times of day, which go on between two runs."""
    clocks = rb"\d+(\.\d+)? ?(ms|s|min)\b|\d\d:\d\d:\d\d(\.\d+)?"
    code, out, err = done
    return code, re.sub(clocks, b"*", out), re.sub(clocks, b"*", err)


def test_every_command_gives_the_same_bytes_and_exit_code(observed: Repo) -> None:
    lines = COMMANDS if os.environ.get("YOLO_ALL") else COMMANDS[::4]
    forms: list[tuple[str, dict[str, str]]] = [(line, {}) for line in lines]
    forms += [("status", {"COLUMNS": "40", "TZ": "Asia/Tokyo", "GIT_DIR": "/nowhere"})]
    forms += [("may nobody decide ä", {"LC_ALL": "C", "PYTHONIOENCODING": "latin-1"})]
    forms += [("message check -", {}), ("gate list", {"FORCE_COLOR": "1"})]

    different = []
    for line, more in forms:
        words = line.split()
        cold, warm = run(observed, words, cold=True, **more), answered(observed, words, **more)
        if without_clocks(cold) != without_clocks(warm):
            different.append((line, more, cold, warm))

    assert not different


def test_a_terminal_without_utf_8_gets_the_same_from_an_observer(observed: Repo) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    cold, warm = (run(observed, ["gate", "list"], cold=each, **plain) for each in (True, False))
    assert cold == warm and b"-> yolo-fs " in warm[1]


def test_what_writes_waits_or_is_no_verb_is_not_answered(observed: Repo) -> None:
    assert {line: ask(observed, line.split())[0] for line in REFUSED} == dict.fromkeys(
        REFUSED, MISSED
    )


def test_each_verb_that_is_answered_is_one() -> None:
    verbs = {name for name in ANSWERED if not name.startswith(("compat ", "hook-", "asked-"))}
    assert verbs <= OWN_VERB_BY_NAME.keys()


def test_on_a_terminal_width_and_colour_are_those_of_the_terminal(observed: Repo) -> None:
    for columns in (50, 120):
        cold, warm = (
            on_terminal(observed, ["-P", "-m", "yolo_fs", "status"], columns, {COLD: "1"}),
            on_terminal(observed, ["-P", "-c", CLIENT, "status"], columns, {}),
        )
        assert b"\x1b[" in cold
        assert without_clocks((0, cold, b"")) == without_clocks((0, warm, b""))


def on_terminal(repo: Repo, words: Sequence[str], columns: int, more: dict[str, str]) -> bytes:
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    env = {**repo.env, "TERM": "xterm-256color", **more}
    with subprocess.Popen(
        [sys.executable, *words], cwd=repo.root, env=env, stdin=theirs, stdout=theirs, stderr=theirs
    ):
        os.close(theirs)
        parts = []
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(ours, 1 << 16):
                parts.append(part)
    os.close(ours)
    return b"".join(parts)


def test_streams_are_written_in_the_same_order_and_fail_alike(observed: Repo) -> None:
    program, client = (
        f"{shlex.quote(sys.executable)} -P {words}"
        for words in ("-m yolo_fs", f"-c {shlex.quote(CLIENT)}")
    )

    def shell(line: str, **more: str) -> Done:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line], cwd=observed.root, env={**observed.env, **more},
            capture_output=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    for rest in (f"validate {PHASE}/critique.jsonl 2>&1", "status --json | head -c 5"):
        assert shell(f"{client} {rest}") == shell(f"{program} {rest}", **{COLD: "1"})
    full = "status --json > /dev/full"
    assert shell(f"{client} {full}")[0] == MISSED
    assert shell(f"{program} {full}") == shell(f"{program} {full}", **{COLD: "1"})


def test_an_input_that_nobody_takes_is_read_by_the_command_itself(observed: Repo) -> None:
    """Also one that is longer than what is sent: what was read of it comes first."""
    words = [sys.executable, "-P", "-m", "yolo_fs", "validate", "-"]
    small, large = b'{"type": "x"}\n', b"{" * (INPUT_BYTES + 4096)
    for given in (small, large):
        wait_for_answers(observed)
        for is_stopped in (False, True):
            if is_stopped:
                send(signal.SIGSTOP, *observers_of(observed))
            warm, cold = (
                subprocess.run(
                    words, cwd=observed.root, env={**observed.env, **more}, input=given,
                    capture_output=True, check=False,
                )
                for more in ({}, {COLD: "1"})
            )  # fmt: skip
            assert (warm.returncode, warm.stdout, warm.stderr) == (
                cold.returncode, cold.stdout, cold.stderr
            )  # fmt: skip


def test_whatever_is_odd_runs_cold_and_says_nothing(observed: Repo) -> None:
    folder, sock = observed.git_dir / "yolo-fs", observed.git_dir / "yolo-fs" / SOCKET
    words = ["may", "dev", "decide", "architecture"]
    expected = run(observed, words, cold=True)

    folder.chmod(0o755)
    assert not answers(str(folder))
    assert run(observed, words) == expected
    folder.chmod(0o700)

    frozen = observer_of(observed)
    send(signal.SIGSTOP, frozen)
    assert run(observed, words) == expected
    send(signal.SIGKILL, frozen)
    assert run(observed, words) == expected
    until(lambda: observers_of(observed) not in ([], [frozen]), "another one is started")
    wait_for_answers(observed)

    os.rename(sock, folder / "aside")
    for foreign in (lambda: sock.write_bytes(b""), lambda: _silent(sock)):
        with contextlib.ExitStack() as open_:
            server = foreign()
            if isinstance(server, socket.socket):
                open_.enter_context(server)
            assert ask(observed, words)[0] == MISSED
            assert run(observed, words) == expected
            sock.unlink()
    assert run(observed, words) == expected


def _silent(path: Path) -> socket.socket:
    """Return a server that takes connections and never says anything."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(path))
    server.listen()
    return server


def test_newer_code_is_not_answered_by_older(observed: Repo) -> None:
    words = ["may", "dev", "decide", "architecture"]
    expected, before = run(observed, words, cold=True), observer_of(observed)
    os.utime(yolo_fs.__file__)
    until(lambda: run(observed, words) == expected and before not in observers_of(observed), "gone")
    wait_for_answers(observed)
    assert answered(observed, words) == expected


def test_a_path_longer_than_an_address_is_answered_too(
    new_repo: Callable[[str], Repo], start: Start, tmp_path: Path
) -> None:
    name = "/".join(["a-rather-long-name-of-a-folder"] * 5)
    (tmp_path / name).parent.mkdir(parents=True)
    repo = new_repo(name)
    del repo.env[COLD]
    start(repo)
    wait_for_answers(repo)


def test_an_observer_that_cannot_be_asked_follows_the_branch_until_it_can(
    repo: Repo, start: Start
) -> None:
    """Such as on a disk that was full at the start."""
    del repo.env[COLD]
    in_the_way = repo.git_dir / "yolo-fs" / SOCKET
    in_the_way.mkdir(mode=0o700, parents=True)
    in_the_way.parent.chmod(0o700)
    daemon = start(repo)
    before = observer_of(repo)
    until(lambda: [*in_the_way.parent.glob(f"{SOCKET}.*")] != [], "it has tried to be asked")
    written = artifact("plan", 0)
    repo.write(written)
    daemon.wait_committed([written])
    until(
        lambda: "critique" in statusline_fast.line(str(repo.root)),
        "what follows from the branch is told",
    )
    assert ask(repo, ["status"])[0] == MISSED
    in_the_way.rmdir()
    wait_for_answers(repo)
    assert observer_of(repo) == before


def test_a_worker_that_ends_or_hangs_holds_up_nobody_else(observed: Repo) -> None:
    words = ["may", "dev", "decide", "architecture"]
    expected = run(observed, words, cold=True)
    workers = parts_of(observer_of(observed))[1:]
    send(signal.SIGSTOP, workers[0])
    results: list[Done] = []
    asked = [
        threading.Thread(target=lambda: results.append(run(observed, words))) for _ in range(3)
    ]
    for thread in asked:
        thread.start()
    for thread in asked:
        thread.join(DEADLINE_S)
    assert results == [expected] * 3
    send(signal.SIGKILL, *workers)
    assert run(observed, words) == expected
    until(lambda: not set(workers) & set(processes_of(observed)), "others come")
    assert answered(observed, words) == expected


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("part", ["all", "observer", "follower"])
def test_no_artifact_waits_for_an_observer_that_is_gone_or_stopped_and_another_comes(
    repo: Repo, start: Start, number: signal.Signals, part: str
) -> None:
    del repo.env[COLD]
    daemon = start(repo)
    wait_for_answers(repo)
    before = processes_of(repo)
    observer = observer_of(repo)
    victims = {"all": before, "observer": [observer], "follower": parts_of(observer)[:1]}[part]
    send(number, *victims)
    one = artifact("plan", 0)
    repo.write(one)
    daemon.wait_committed([one])
    until(lambda: not set(before) & set(processes_of(repo)), "the old ones are gone")
    wait_for_answers(repo)
    started = [each for each in daemon.mailbox.events if each["event"] == "observer.started"]
    assert len(started) == 2
    words = ["status", "--json"]
    assert without_clocks(answered(repo, words)) == without_clocks(run(repo, words, cold=True))


@pytest.mark.timeout(120 + 5 * KILLS)
def test_killed_at_any_moment_nothing_is_left_and_the_next_command_is_right(
    repo: Repo, start: Start, rng: random.Random
) -> None:
    del repo.env[COLD]
    daemon = start(repo)
    wait_for_answers(repo)
    words = ["gate", "list", "--json"]
    expected = run(repo, words, cold=True)[:2]
    for turn in range(KILLS):
        client = subprocess.Popen(
            [sys.executable, "-P", "-m", "yolo_fs", *words], cwd=repo.root, env=repo.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        threading.Event().wait(rng.uniform(0.01, 0.3))
        victim = rng.choice(("client", "worker", "observer", "frozen", "daemon"))
        observers = observers_of(repo)
        if victim == "client":
            client.kill()
        elif victim == "worker":
            send(signal.SIGKILL, *[pid for one in observers for pid in descendants(one)][:1])
        elif victim == "observer":
            send(signal.SIGKILL, *observers)
        else:
            if victim == "frozen":
                wait_for_answers(repo)  # it asks the kernel for its end right after its start
                send(signal.SIGSTOP, *processes_of(repo))
            daemon.kill()
        out, _ = client.communicate(timeout=DEADLINE_S)
        if victim != "client":
            assert (client.returncode, out) == expected, (turn, victim)
        if victim in ("daemon", "frozen"):
            until(lambda: not processes_of(repo), f"turn {turn}: the observer ends with its daemon")
            daemon.start()
        assert run(repo, words)[:2] == expected, (turn, victim)
    daemon.stop()
    until(lambda: not processes_of(repo), "no process is left")


def test_an_observer_ends_without_a_word_while_a_client_is_connected(
    repo: Repo, start: Start
) -> None:
    del repo.env[COLD]
    daemon = start(repo)
    wait_for_answers(repo)
    with socket.socket(socket.AF_UNIX) as client, contextlib.chdir(repo.git_dir / "yolo-fs"):
        client.connect(SOCKET)
        assert client.recv(len(HELLO)) == HELLO
        daemon.stop()
        # At the end `start` finds out that nothing was said.
        until(lambda: not processes_of(repo), "the observer ends with its daemon")


def test_an_observer_whose_repository_is_gone_ends_with_one_line(tmp_path: Path) -> None:
    ours, its = socket.socketpair()
    with ours, its:
        done = subprocess.run(
            [sys.executable, "-m", "yolo_fs.observer", tmp_path, tmp_path, str(its.fileno())],
            env=os.environ | {COLD: "1"}, pass_fds=[its.fileno()], capture_output=True, text=True,
        )  # fmt: skip
    assert done.returncode == 3
    assert done.stderr.startswith("yolo-fs: observer: not_a_repository: ")
    assert len(done.stderr.splitlines()) == 1
