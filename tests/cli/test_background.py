"""The daemon in the background: started once, found by its lock, stopped for good; its log is kept small and private."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.cli.background import start_daemon
from yolo_fs.cli.go import RunDaemon
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit, Reason, YoloError
from yolo_fs.git.repository import Repository
from yolo_fs.install import background
from yolo_fs.system.lock import Holder, hold, holder

PATIENCE_S = 30.0


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository with a planning tree; whatever daemon a test leaves there is ended."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    work_tree = tmp_path / "work tree"
    subprocess.run(["git", "init", "-q", str(work_tree)], check=True)
    (work_tree / ".yolo-planning" / "phases").mkdir(parents=True)
    yield work_tree.resolve()
    while found := holder(lock(work_tree)):
        with suppress(ProcessLookupError):
            os.kill(found.pid, 9)
        until(lambda found=found: holder(lock(work_tree)) != found)


def lock(root: Path) -> str:
    return str(root / ".git" / "yolo-fs" / "daemon.lock")


def log(root: Path) -> Path:
    return root / ".git" / "yolo-fs" / "daemon.log"


def until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def cli(root: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Run a command as a process of its own, as people do, since a daemon outlives it."""
    command = [sys.executable, "-m", "yolo_fs", *arguments, "-C", str(root), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def state(answer: tuple[int, dict[str, Any]]) -> tuple[int, str]:
    return answer[0], answer[1]["data"]["state"]


def pid_of(root: Path) -> int:
    found = holder(lock(root))
    assert found is not None
    return found.pid


@pytest.fixture
def own(root: Path) -> Path:
    """The directory of our own files, as a daemon leaves it."""
    (root / ".git" / "yolo-fs").mkdir(mode=0o700)
    return root / ".git" / "yolo-fs"


# --- start and stop --------------------------------------------------------------------------------------------------


def test_start_waits_for_the_first_scan_and_stop_for_the_end(root: Path) -> None:
    (root / ".yolo-planning" / "ROADMAP.md").write_text("# Roadmap\n")
    code, answer = cli(root, "start", "--wait")
    assert (code, answer["data"]) == (Exit.DONE, {"state": "started", "pid": pid_of(root)})
    subject = subprocess.run(
        ["git", "-C", str(root), "log", "-1", "--format=%s"], capture_output=True, check=True
    )
    assert subject.stdout == b"chore(state): ROADMAP\n"
    assert state(cli(root, "stop")) == (Exit.DONE, "stopped")
    assert holder(lock(root)) is None


def test_a_start_is_found_by_the_stop_that_follows(root: Path) -> None:
    assert state(cli(root, "start")) == (Exit.DONE, "starting")
    assert state(cli(root, "stop")) == (Exit.DONE, "stopped")
    assert holder(lock(root)) is None


def test_a_second_start_finds_the_first(root: Path) -> None:
    _, first = cli(root, "start")
    code, second = cli(root, "start", "--wait")
    assert (code, second["data"]) == (
        Exit.DONE,
        {"state": "already_running", "pid": first["data"]["pid"]},
    )
    assert json.loads((root / ".git" / "yolo-fs" / "health.json").read_text())["running"] is True


def test_restart_gives_another_process(root: Path) -> None:
    assert state(cli(root, "restart", "--wait")) == (Exit.DONE, "started")
    before = pid_of(root)
    assert state(cli(root, "restart")) == (Exit.DONE, "starting")
    assert pid_of(root) != before


def test_the_daemon_is_detached_and_its_log_private(root: Path) -> None:
    cli(root, "start")
    pid = pid_of(root)
    assert os.getsid(pid) == pid
    assert os.readlink(f"/proc/{pid}/fd/0") == "/dev/null"
    assert {os.readlink(f"/proc/{pid}/fd/{number}") for number in (1, 2)} == {str(log(root))}
    assert stat.S_IMODE(log(root).stat().st_mode) == 0o600


def test_modules_of_the_users_repository_are_not_imported(root: Path) -> None:
    for name in ("yolo_fs.py", "click.py", "json.py"):
        (root / name).write_text("raise SystemExit('imported from the repository')\n")
    assert state(cli(root, "start", "--wait")) == (Exit.DONE, "started")


def test_stop_without_a_daemon_has_nothing_to_do_and_says_so(root: Path) -> None:
    cli(root, "start", "--wait")
    assert state(cli(root, "stop")) == (Exit.DONE, "stopped")
    assert state(cli(root, "stop")) == (Exit.DONE, "not_running")


def test_stop_where_nobody_works_by_the_protocol_is_no_success(root: Path) -> None:
    (root / ".yolo-planning").rename(root / "elsewhere")
    code, answer = cli(root, "stop")
    assert (code, answer["findings"][0]["reason"]) == (Exit.NOT_HERE, "not_initialised")


def test_a_lock_file_without_a_lock_is_no_daemon(root: Path, own: Path) -> None:
    dead = {"pid": os.getpid(), "started_at": "", "start_time": 1, "boot_id": "", "version": ""}
    (own / "daemon.lock").write_text(json.dumps(dead))
    assert state(cli(root, "stop")) == (Exit.DONE, "not_running")


def test_a_daemon_that_does_not_end_in_time_is_told(root: Path) -> None:
    cli(root, "start", "--wait")
    os.kill(pid_of(root), 19)
    code, answer = cli(root, "stop", "--timeout", "0")  # any longer, and it may have ended
    assert (code, answer["findings"][0]["reason"]) == (Exit.TRY_AGAIN, "deadline_passed")


def test_a_broken_configuration_is_told_at_once(root: Path) -> None:
    (root / ".yolo-planning" / "config.json").write_text("{")
    code, answer = cli(root, "start")
    assert (code, answer["findings"][0]["reason"]) == (Exit.BAD_CONFIG, "bad_config")
    assert not log(root).exists()


def test_a_daemon_that_dies_early_leaves_its_last_words(
    root: Path, own: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").touch()
    os.link(tmp_path / "other", own / "daemon.lock")  # no daemon takes a lock file with two names
    log(root).write_text("from an earlier run\n")
    code, answer = cli(root, "start")
    assert (code, answer["data"]["state"], answer["data"]["exit_code"]) == (
        Exit.NOT_HERE,
        "failed",
        Exit.NOT_HERE,
    )
    assert answer["findings"][0]["reason"] == "not_running"
    assert [
        line.split(":")[1] for line in answer["data"]["lines"] if line.startswith("yolo-fs:")
    ] == [" hard_linked"]
    assert "from an earlier run" not in answer["data"]["lines"]


def test_a_daemon_is_stopped_while_a_branch_without_a_planning_tree_is_checked_out(
    root: Path,
) -> None:
    assert state(cli(root, "start", "--wait")) == (Exit.DONE, "started")
    (root / ".yolo-planning").rename(root / "elsewhere")
    assert cli(root, "logs")[0] == Exit.DONE
    assert cli(root, "restart")[1]["findings"][0]["reason"] == "not_initialised"
    assert holder(lock(root)) is not None, "whoever cannot start it anew leaves it"
    assert state(cli(root, "stop")) == (Exit.DONE, "stopped")
    assert holder(lock(root)) is None


@pytest.mark.parametrize("verb", ["start", "stop", "restart", "logs"])
def test_without_a_planning_tree_it_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    code = run([verb, "-C", str(tmp_path), "--json"])
    assert code == Exit.NOT_HERE
    assert json.loads(capsys.readouterr().out)["findings"][0]["reason"] == "not_initialised"


# --- whom stop may signal --------------------------------------------------------------------------------------------


def _repository(root: Path) -> Any:
    from yolo_fs.git.repository import Repository

    return Repository(str(root))


def _held_by(own: Path, pid: int, start_time: int) -> int:
    """Lock the daemon's lock ourselves, signed by somebody else."""
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    signed = {
        "pid": pid,
        "started_at": "",
        "start_time": start_time,
        "boot_id": boot_id,
        "version": "",
    }
    (own / "daemon.lock").write_text(json.dumps(signed))
    descriptor = os.open(own / "daemon.lock", os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def test_a_process_that_inherited_the_number_is_not_signalled(root: Path, own: Path) -> None:
    bystander = subprocess.Popen(["sleep", "60"])
    descriptor = _held_by(own, bystander.pid, start_time=1)
    try:
        with pytest.raises(YoloError) as caught:
            background.stop(_repository(root), 0.1)
        assert caught.value.reason is Reason.DEADLINE_PASSED
        assert bystander.poll() is None
    finally:
        os.close(descriptor)
        bystander.kill()
        bystander.wait()


def test_a_holder_that_does_not_say_who_it_is_is_not_signalled(
    root: Path, own: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(background, "holder", lambda _: Holder(0, "", None, "", ""))
    with pytest.raises(YoloError) as caught:
        background.stop(_repository(root), 0.1)
    assert (caught.value.reason, caught.value.exit_code) == (Reason.NOT_RUNNING, Exit.NOT_HERE)


needs_spaces = pytest.mark.skipif(
    subprocess.run(["unshare", "-rpf", "--mount-proc", "true"], check=False).returncode != 0,
    reason="needs unshare(1) of process numbers",
)


@needs_spaces
def test_a_daemon_of_another_container_is_named_and_not_waited_for(root: Path) -> None:
    cli(root, "start", "--wait")
    pid = pid_of(root)
    container = ["unshare", "-rpf", "--mount-proc", sys.executable, "-m", "yolo_fs"]

    def inside(*arguments: str) -> dict[str, Any]:
        command = [*container, *arguments, "-C", str(root), "--json"]
        done = subprocess.run(command, capture_output=True, timeout=20, check=False)
        return dict(json.loads(done.stdout))

    refused = inside("stop", "--timeout", "300")
    assert refused["findings"][0]["reason"] == Reason.ALREADY_RUNNING
    assert f"process {pid} of another container" in refused["findings"][0]["message"]
    assert inside("start")["data"] == {"state": "already_running", "pid": pid}
    assert pid_of(root) == pid
    assert state(cli(root, "stop")) == (Exit.DONE, "stopped")


@pytest.mark.parametrize("blocked", [{signal.SIGTERM}, {signal.SIGTERM, signal.SIGINT}])
def test_a_daemon_whose_parent_blocks_its_signals_stops(
    root: Path, blocked: set[signal.Signals]
) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        assert state(cli(root, "start", "--wait")) == (Exit.DONE, "started")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert state(cli(root, "stop")) == (Exit.DONE, "stopped")


def test_a_daemon_that_stands_still_is_stopped_and_started_anew(root: Path) -> None:
    """As Ctrl-Z or a debugger that went away leave it: `doctor` names a restart as what helps."""
    for verb, done in (("restart", "starting"), ("stop", "stopped")):
        cli(root, "start", "--wait")
        os.kill(pid_of(root), signal.SIGSTOP)
        assert state(cli(root, verb)) == (Exit.DONE, done)


def test_a_daemon_begins_with_a_clean_environment(root: Path, tmp_path: Path) -> None:
    """What a shell, a service or another daemon hands on: none of it is meant for weeks of work."""
    start = """
import fcntl, os, resource, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.valid_signals()))
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
resource.setrlimit(resource.RLIMIT_CPU, (600, resource.getrlimit(resource.RLIMIT_CPU)[1]))
os.set_inheritable(os.open(sys.argv[1], os.O_RDONLY), True)
os.umask(0o777)
os.execv(sys.executable, [sys.executable, "-m", "yolo_fs", *sys.argv[2:]])
"""
    inherited = tmp_path / "inherited"
    inherited.write_text("")
    environment = os.environ | {
        "NOTIFY_SOCKET": str(tmp_path / "of a service"),
        "LC_ALL": "C",
        "PYTHONCOERCECLOCALE": "0",
        "GIT_DIR": str(tmp_path / "nowhere"),
    }
    environment.pop("GIT_INDEX_FILE", None)
    words = ["start", "--wait", "-C", str(root)]
    subprocess.run(
        [sys.executable, "-c", start, str(inherited), *words], env=environment, check=True
    )
    pid = pid_of(root)
    fields = dict(
        line.split(":\t") for line in Path(f"/proc/{pid}/status").read_text().split("\n") if line
    )
    limits = Path(f"/proc/{pid}/limits").read_text()
    ignored = int(fields["SigIgn"], 16)
    assert int(fields["SigBlk"], 16) == 0
    assert not ignored & 1 << signal.SIGCHLD - 1
    assert int(fields["Umask"], 8) == 0o077
    assert os.readlink(f"/proc/{pid}/cwd") == str(root)
    open_ = {os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()}
    assert str(inherited) not in open_
    for limit in ("Max open files", "Max cpu time"):
        (row,) = (line for line in limits.splitlines() if line.startswith(limit))
        soft, hard, *_ = row.removeprefix(limit).split()
        assert soft == hard, row
    left = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"NOTIFY_SOCKET" not in left
    assert b"GIT_DIR" not in left
    assert state(cli(root, "stop")) == (Exit.DONE, "stopped")


def test_git_that_fails_is_noticed_where_ended_children_are_ignored(root: Path) -> None:
    """Under `trap '' CHLD`, wait(2) has no answer, which Python takes for success."""
    (root / ".git/config").write_text("[core\n")
    done = subprocess.run(
        [sys.executable, "-m", "yolo_fs", "run", "--once", "-C", str(root)],
        capture_output=True,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
        check=False,
    )
    assert done.returncode != Exit.DONE


def test_a_daemon_goes_on_when_nobody_can_hear_it_any_more(root: Path) -> None:
    with open("/dev/full", "wb") as full:
        daemon = subprocess.Popen(
            [sys.executable, "-m", "yolo_fs", "run", "-C", str(root)],
            stderr=full,
            stdout=full,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # as under nohup
        )
    roadmap = root / ".yolo-planning" / "ROADMAP.md"
    roadmap.write_text("# Roadmap\n")
    until(lambda: (root / ".git/refs/heads").exists() and any((root / ".git/refs/heads").iterdir()))
    assert daemon.poll() is None
    daemon.send_signal(signal.SIGHUP)
    assert daemon.wait(PATIENCE_S) == Exit.DONE


def test_a_daemon_follows_its_work_tree_to_another_place(root: Path, tmp_path: Path) -> None:
    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", root, *words], capture_output=True, check=True)
        return done.stdout.decode()

    git("commit", "-q", "--allow-empty", "-m", "chore(repo): begin")
    old, new = tmp_path / "old", tmp_path / "new"
    git("worktree", "add", "-q", "-b", "side", str(old))
    (old / ".yolo-planning").mkdir()
    assert state(cli(old, "start", "--wait")) == (Exit.DONE, "started")
    git("worktree", "move", str(old), str(new))
    (new / ".yolo-planning/ROADMAP.md").write_text("# Roadmap\n")
    try:
        until(lambda: git("log", "--format=%s", "side").startswith("chore(state): ROADMAP"))
        assert cli(new, "status")[1]["data"]["daemon"]["running"]
    finally:
        assert state(cli(new, "stop")) == (Exit.DONE, "stopped")
    assert not old.exists()


def test_a_start_outwaits_what_a_killed_daemon_left(root: Path, own: Path) -> None:
    descriptor = _held_by(own, 2**22 + 1, start_time=1)
    starting = subprocess.Popen(
        [sys.executable, "-m", "yolo_fs", "start", "-C", str(root)], stdout=subprocess.PIPE
    )
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            starting.wait(timeout=1.5)
    finally:
        os.close(descriptor)
    out, _ = starting.communicate(timeout=PATIENCE_S)
    assert out.startswith(b"The daemon starts as process")


@pytest.fixture
def about_to_end(root: Path, own: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The first daemon that is started finds another one, which has ended a moment later."""
    really = background.launch
    launched: list[background.Launched] = []

    def launch(repository: Repository) -> background.Launched:
        other = None if launched else hold(lock(root))
        launched.append(really(repository))
        if other:
            code = launched[-1].process.wait(PATIENCE_S)
            assert code == Exit.DONE, "it has found the other one"
            other.release()
        return launched[-1]

    monkeypatch.setattr(background, "launch", launch)
    yield
    for each in launched:
        each.process.kill()
        each.process.wait()


@pytest.mark.usefixtures("about_to_end")
def test_a_start_that_found_a_daemon_about_to_end_leaves_one_that_watches(root: Path) -> None:
    with Repository(str(root)) as repository:
        reply = start_daemon(repository, PATIENCE_S)
    assert (reply.exit_code, reply.data["state"]) == (Exit.DONE, "started")
    assert pid_of(root) == reply.data["pid"]


@pytest.mark.usefixtures("about_to_end")
def test_a_run_that_follows_another_at_once_has_a_daemon_of_its_own(root: Path) -> None:
    with Repository(str(root)) as repository, RunDaemon(repository, lambda *_: None):
        assert pid_of(root)
    assert holder(lock(root)) is None, "it ends with its run"


def test_a_run_that_is_over_ends_no_daemon_but_its_own(root: Path) -> None:
    with Repository(str(root)) as repository, RunDaemon(repository, lambda *_: None):
        cli(root, "restart", "--wait")
        other = pid_of(root)
    assert pid_of(root) == other


# --- the log ---------------------------------------------------------------------------------------------------------


def test_logs_shows_the_last_lines(
    root: Path, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log(root).write_text("one\ntwo\nthree \x1b[31m\nhalf a li")
    run(["logs", "-n", "2", "-C", str(root)])
    assert capsys.readouterr().out == "two\nthree \\x1b[31m\n"


def test_logs_of_a_repository_without_a_log_are_empty(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["logs", "-C", str(root), "--json"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out)["data"]["lines"] == []


def test_follow_goes_on_across_a_rotation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "FOLLOW_S", 0.001)
    path = tmp_path / "daemon.log"
    path.write_text("old\nlast\nhalf")
    lines = background.follow(str(path), 1)
    assert next(lines) == "last"
    with path.open("a") as file:
        file.write(" and half\nnext\n")
    assert list(islice(lines, 2)) == ["half and half", "next"]
    path.rename(tmp_path / "daemon.log.1")
    path.write_text("fresh\n")
    assert next(lines) == "fresh"


def test_follow_as_one_envelope_is_a_usage_error(root: Path) -> None:
    assert run(["logs", "-f", "--json", "-C", str(root)]) == Exit.USAGE


def test_five_logs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "LOG_BYTES", 4)
    path = tmp_path / "daemon.log"
    for number in range(8):
        path.write_text(f"log {number}")
        background.rotate(str(path))
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {
        f"daemon.log.{age}": f"log {8 - age}" for age in (1, 2, 3, 4)
    }


def test_a_small_log_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    background.rotate(str(path))
    path.write_text("short")
    background.rotate(str(path))
    assert [file.name for file in tmp_path.iterdir()] == ["daemon.log"]


def test_a_terminal_that_can_only_print_is_shown_lines(root: Path) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "yolo_fs", "status", "--watch", "-C", str(root)]
    env = {**os.environ, "TERM": "dumb"}
    watching = subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    heard = b""
    try:
        while b"daemon" not in heard and select.select([ours], [], [], PATIENCE_S)[0]:
            heard += os.read(ours, 4096)
    finally:
        watching.terminate()
        watching.wait()
    assert b"daemon" in heard
    assert b"\x1b[?1049h" not in heard, "the other screen, which it does not have"
