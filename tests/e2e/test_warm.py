"""The warm process answers as a command that starts from nothing: to the byte, in whatever it is started from.

`YOLO_WARM=1000` kills that often; `YOLO_WARM_SUITE=1` runs every command of the table in every form.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import yolo_fs
from tests.e2e.artifacts import PLANNING
from tests.e2e.daemon import Daemon, descendants, until
from tests.e2e.repo import DEADLINE_S, Repo
from yolo_fs.cli import warm_server
from yolo_fs.edges import IS_LINUX
from yolo_fs.edges.warm_path import COLD, SOCKET, answers

pytestmark = pytest.mark.skipif(not IS_LINUX, reason="only Linux has a warm process")
Start = Callable[..., Daemon]
Done = tuple[int, bytes, bytes]

KILLS = int(os.environ.get("YOLO_WARM", "8"))
MISSED = 99
"""What the client below ends with when the warm process did not take its command."""
CLIENT = f"""
import sys
import yolo_fs
from yolo_fs.edges.warm_path import run_warm
code = run_warm(sys.argv[1:])
if code is None:
    print("missed", file=sys.stderr)
sys.exit({MISSED} if code is None else code)
"""
HEARS_LATE = f"""
import signal, threading
def send():
    open("fifo").close()
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
threading.Thread(target=send, daemon=True).start()
{CLIENT}"""
"""A client whose signal wakes nobody, like one that comes just before it blocks."""
PHASE = f"{PLANNING}/phases/01-auth"
COMMANDS = (
    "--help", "--version", "", "nonsense", "status", "status --json", "status -q", "resume", "resume --json",
    "may dev decide architecture", "may nobody decide x", "gate list", "gate why ui-ux-complete --phase 1",
    "gate why nothing", f"validate {PHASE}/critique.jsonl", f"validate {PHASE}/research.jsonl --json",
    "validate no/such/file", "workflow show", "workflow show --json", "task list", "agent list", "context list",
    "schema", "escalate list", "events --json", "verify", "dept list", "phase list", "message kinds",
    "compat phase-detect", "compat validate-naming", "compat nothing", "hook -h", "-C deep status", "status -C deep",
    "may dev decide architecture -C no/where",
)  # fmt: skip


@pytest.fixture
def warm(repo: Repo, start: Start) -> Repo:
    """Return a repository with two artifacts, a daemon, and its warm process, which answers."""
    del repo.env[COLD]
    (repo.root / PHASE).mkdir()
    repo.file(f"{PHASE}/critique.jsonl", '{"id":"C1"}\n')
    repo.file(f"{PHASE}/research.jsonl", '{"q":"Which?"}\n')
    start(repo)
    wait_for_warm(repo)
    return repo


def wait_for_warm(repo: Repo) -> None:
    folder = str(repo.git_dir / "yolo-fs")
    until(lambda: answers(folder), "the warm process answers")


def run(repo: Repo, arguments: Sequence[str], *, cold: bool = False, **more: str) -> Done:
    env = {**repo.env, **({COLD: "1"} if cold else {}), **more}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "yolo_fs", *arguments], cwd=repo.root, env=env,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def run_in_warm(repo: Repo, arguments: Sequence[str], given: bytes = b"", **more: str) -> Done:
    """Run a command in the warm process for sure: again where a busy machine let it miss its 50 ms."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        done = subprocess.run(
            [sys.executable, "-P", "-c", CLIENT, *arguments], cwd=repo.root, env={**repo.env, **more},
            input=given, capture_output=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        if done.returncode != MISSED:
            return done.returncode, done.stdout, done.stderr
    raise AssertionError(f"never taken: {arguments}")


def refusal(repo: Repo) -> str:
    note = repo.git_dir / "yolo-fs" / "warm.json"
    return note.read_text() if note.exists() else ""


def server_of(repo: Repo) -> int:
    """Return the process that listens."""
    (pid,) = servers_of(repo)
    return pid


def servers_of(repo: Repo) -> list[int]:
    """Return the warm processes of a repository, without the commands that they have become."""
    found = processes_of(repo)
    return [pid for pid in found if _parent(pid) not in found]


def processes_of(repo: Repo) -> list[int]:
    own = str(repo.git_dir / "yolo-fs").encode()
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if own in _words(pid)]


def _words(pid: int) -> list[bytes]:
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return words if b"yolo_fs.cli.warm_server" in words else []
    return []


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def children(repo: Repo) -> list[int]:
    """Return the processes that became commands."""
    return [pid for pid in processes_of(repo) if pid not in servers_of(repo)]


def test_every_command_gives_the_same_bytes_and_exit_code(warm: Repo) -> None:
    (warm.root / "deep").mkdir()
    lines = COMMANDS if os.environ.get("YOLO_WARM_SUITE") else COMMANDS[::6]
    forms: list[tuple[str, dict[str, str]]] = [(line, {}) for line in lines]
    forms += [("status", {"COLUMNS": "40", "TZ": "Asia/Tokyo", "GIT_DIR": "/nowhere"})]
    forms += [("may nobody decide ä", {"LC_ALL": "C", "HOME": "/nowhere"})]

    different = []
    for line, more in forms:
        cold, hot = (
            run(warm, line.split(), cold=True, **more),
            run_in_warm(warm, line.split(), **more),
        )
        if _without_clocks(cold) != _without_clocks(hot):
            different.append((line, more, cold, hot))

    assert not different


def _without_clocks(done: Done) -> tuple[int, bytes, bytes]:
    """Return what a command did without ages and times of day, which go on between two runs."""
    return (
        done[0],
        *(
            re.sub(rb"\d+(\.\d+)? ?(ms|s|min)\b|\d\d:\d\d:\d\d(\.\d+)?", b"*", part)
            for part in done[1:]
        ),
    )


def test_it_is_the_process_that_it_stands_in_for(warm: Repo) -> None:
    (warm.root / "deep").mkdir()
    in_shell = f"{shlex.quote(sys.executable)} -P -c {shlex.quote(CLIENT)} "

    def shell(line: str) -> Done:
        """Run a line of a shell in which `yolo-fs` is the client of the warm process, until that has taken it."""
        script = f'yolo_fs() {{ {in_shell} "$@"; }}; {line}'
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            done = subprocess.run(
                ["bash", "-c", script],
                cwd=warm.root,
                env=warm.env,
                capture_output=True,
                check=False,
            )
            if b"missed" not in done.stderr:
                return done.returncode, done.stdout, done.stderr
        raise AssertionError(line)

    assert shell("umask 027; yolo_fs schema export x -q; stat -c %a x")[1].strip() == b"750"
    assert shell("cd deep; yolo_fs schema export x -q; ls -d x")[1].strip() == b"x"
    assert shell("yolo_fs status > /dev/full")[0] == run_to_full(warm)
    assert shell("yolo_fs schema list | head -1")[2] == b""
    assert shell("echo '{}' | yolo_fs hook pre-tool-use")[:2] == (0, b"{}\n")
    code, _, complaint = shell("ulimit -f 0; yolo_fs schema export y")
    assert code != 0 and complaint
    words = ["validate", *[f"missing-{number}/{'x/' * 1900}y" for number in range(300)]]
    assert sum(map(len, words)) > 1 << 20
    assert run_in_warm(warm, words)[1:] == run(warm, words, cold=True)[1:]


def run_to_full(repo: Repo) -> int:
    env = {**repo.env, COLD: "1"}
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-P", "-m", "yolo_fs", "status"]
        return subprocess.run(
            command, cwd=repo.root, env=env, stdout=full, stderr=subprocess.DEVNULL, check=False
        ).returncode


def test_whatever_is_odd_runs_cold_and_says_nothing(warm: Repo, start: Start) -> None:
    folder, sock = warm.git_dir / "yolo-fs", warm.git_dir / "yolo-fs" / SOCKET
    expected = run(warm, ["--version"], cold=True)

    closed = subprocess.run(
        ["bash", "-c", f"{shlex.quote(sys.executable)} -P -m yolo_fs --version <&-"], cwd=warm.root, env=warm.env,
        capture_output=True, check=False,
    )  # fmt: skip
    assert (closed.returncode, closed.stdout, closed.stderr) == expected
    assert run(warm, ["--version"], PYTHONHASHSEED="1") == expected
    until(
        lambda: (
            run(warm, ["--version"], PYTHONHASHSEED="1") == expected and "PYTHON" in refusal(warm)
        ),
        "it is kept",
    )
    assert b"PYTHON" in run(warm, ["doctor"])[1]

    folder.chmod(0o755)
    assert not answers(str(folder))
    assert run(warm, ["--version"]) == expected
    folder.chmod(0o700)

    before = server_of(warm)
    os.kill(before, signal.SIGSTOP)
    assert run(warm, ["--version"]) == expected
    os.kill(before, signal.SIGKILL)
    assert run(warm, ["--version"]) == expected
    until(lambda: servers_of(warm) not in ([], [before]), "another one is started")
    wait_for_warm(warm)

    before = server_of(warm)
    os.utime(yolo_fs.__file__)
    until(
        lambda: run(warm, ["--version"]) == expected and before not in servers_of(warm),
        "the package is changed",
    )
    sock.unlink(missing_ok=True)
    assert run(warm, ["--version"]) == expected


@pytest.mark.timeout(120 + 5 * KILLS)
def test_killed_at_any_moment_nothing_is_left_and_the_next_command_is_right(
    repo: Repo, start: Start, rng: random.Random
) -> None:
    del repo.env[COLD]
    daemon = start(repo)
    wait_for_warm(repo)
    expected = run(repo, ["gate", "list", "--json"], cold=True)[:2]
    for turn in range(KILLS):
        client = subprocess.Popen(
            [sys.executable, "-P", "-m", "yolo_fs", "gate", "list", "--json"], cwd=repo.root, env=repo.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        time.sleep(rng.uniform(0.01, 0.3))
        victim = rng.choice(("client", "child", "server", "daemon"))
        servers = servers_of(repo)
        if victim == "client":
            client.kill()
        elif victim == "child":
            for child in [pid for server in servers for pid in descendants(server)][:1]:
                kill(child)
        elif victim == "server":
            for server in servers:
                kill(server)
        else:
            daemon.kill()
        client.communicate(timeout=DEADLINE_S)
        if victim == "daemon":
            until(lambda: not servers_of(repo), f"turn {turn}: the server ends with its daemon")
            daemon.start()
        assert run(repo, ["gate", "list", "--json"])[:2] == expected, (turn, victim)
    daemon.stop()
    until(lambda: not processes_of(repo), "no process is left")


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_a_command_ends_with_its_client_and_by_its_signals(warm: Repo) -> None:
    # An interrupt before the command itself listens ends it as it ends an interpreter.
    expected = {
        signal.SIGTERM: {-15},
        signal.SIGHUP: {-1},
        signal.SIGINT: {130, -2},
        signal.SIGKILL: {-9},
    }
    for number, codes in expected.items():
        waiting = begun(warm, ["message", "check", "-"])
        time.sleep(0.2)  # it is mostly in the middle of reading then
        assert ended_by(number, waiting) in codes
        until(lambda: not children(warm), "no process is left of it")
        waiting.communicate()


def ended_by(number: int, client: subprocess.Popen[bytes]) -> int:
    """Send a signal until the client ends, as people do.

    Python hears one that comes just before it blocks no sooner than the next one.
    """
    for _ in range(int(DEADLINE_S)):
        client.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return client.wait(1)
    raise AssertionError(f"signal {number} does not end it")


def test_a_signal_that_wakes_nobody_is_passed_on_soon(warm: Repo) -> None:
    os.mkfifo(warm.root / "fifo")
    waiting = begun(warm, ["message", "check", "-"], client=HEARS_LATE)
    (warm.root / "fifo").write_bytes(b"")
    assert waiting.wait(DEADLINE_S) == -signal.SIGTERM
    waiting.communicate()


def hear_all() -> None:
    """Ignore no signal that `nohup`, or a shell that runs the tests behind it, has us ignore."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def begun(repo: Repo, arguments: Sequence[str], client: str = CLIENT) -> subprocess.Popen[bytes]:
    """Return a client whose command has begun in the warm process, and waits for its stdin."""
    while True:
        started = subprocess.Popen(
            [sys.executable, "-P", "-c", client, *arguments], cwd=repo.root, env=repo.env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=hear_all,
        )  # fmt: skip
        until(
            lambda process=started: bool(children(repo)) or process.poll() is not None,
            "it has begun",
        )
        if started.poll() is None:
            return started
        started.communicate()


def test_the_branch_is_read_on_though_nobody_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lifeline, end = os.pipe()
    known: list[object] = []

    def hold(_root: str, head: object) -> str:
        known.append(head)
        if len(known) == 3:
            os.close(end)
        return f"head {len(known)}"

    monkeypatch.setattr(warm_server, "READ_ON_MS", 1)
    monkeypatch.setattr(warm_server, "hold_team", hold)
    before = signal.getsignal(signal.SIGCHLD)
    try:
        assert warm_server._Server(str(tmp_path), "", lifeline, (), None).serve() == 0
    finally:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, before)
    assert known == [None, "head 1", "head 2"]
