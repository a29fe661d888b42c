"""`yolo-fs run`: the daemon in the foreground; `yolo-fs start`, `stop`, `restart` and `logs`: in
the background; and `yolo-fs service`: as a service of the user's session.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import datetime
from typing import Any

import click

from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.core.ids import SHORT
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Exit, Finding, Reason, YoloError, safe
from yolo_fs.git.repository import Repository
from yolo_fs.install.background import (
    Launched,
    System,
    Unit,
    follow,
    said_since,
    tail,
    unit_for,
    wait_ready,
    watch,
)
from yolo_fs.install.background import install as write
from yolo_fs.install.background import stop as end
from yolo_fs.install.background import uninstall as remove
from yolo_fs.progress.phases import planning_root
from yolo_fs.system.journal import Journal
from yolo_fs.system.lock import HeldLock, Holder
from yolo_fs.workspace.own_files import log_path, refuse_unsafe

_LINE_LENGTH = 4000

_wait_option = click.option("--wait", is_flag=True, help="Return when the first scan is done.")


def _timeout_option(default_s: float, what: str) -> Callable[[Any], Any]:
    return click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0),
        default=default_s,
        show_default=True,
        metavar="SECONDS",
        help=what,
    )


@verb("start", example="yolo-fs start --wait")
@_wait_option
@_timeout_option(60.0, "How long --wait waits.")
def start(invocation: Invocation, *, wait: bool, timeout_s: float) -> Reply:
    """Start the daemon in the background; one that runs already is fine.

    It writes to .git/yolo-fs/daemon.log, which 'yolo-fs logs' shows.
    """
    return start_daemon(closed_repository(invocation), timeout_s if wait else None)


@verb("stop", example="yolo-fs stop")
@_timeout_option(30.0, "How long to wait for it to finish the work in hand.")
def stop(invocation: Invocation, *, timeout_s: float) -> Reply:
    """Stop the daemon and wait until it is gone. If none runs, there is nothing to do."""
    repository = _repository_of(invocation)
    pid = end(repository, timeout_s)
    if pid is None:
        planning_root(repository.root)
        return _reply("not_running", None, "No daemon is running.")
    return _reply("stopped", pid, f"The daemon (process {pid}) has stopped.")


@verb("restart", example="yolo-fs restart --wait")
@_wait_option
@_timeout_option(60.0, "How long to wait for the old one to end, and with --wait for the new one.")
def restart(invocation: Invocation, *, wait: bool, timeout_s: float) -> Reply:
    """Stop the daemon, if one runs, and start it again."""
    repository = closed_repository(invocation)
    _refuse_start(repository)
    end(repository, timeout_s)
    return start_daemon(repository, timeout_s if wait else None)


@verb("logs", example="yolo-fs logs -f")
@click.option("-f", "--follow", "is_followed", is_flag=True, help="Follow new output.")
@click.option(
    "-n",
    "--lines",
    "count",
    type=click.IntRange(min=0),
    default=50,
    show_default=True,
    help="Last lines.",
)
def logs(invocation: Invocation, *, is_followed: bool, count: int) -> Reply:
    """Show the output of the daemon in the background.

    A daemon in the foreground, or one that is a service, writes elsewhere. 'yolo-fs events' shows
    the journal of every daemon.
    """
    if is_followed and invocation.as_json:
        raise click.UsageError(
            "--follow never ends, --json prints one object; 'yolo-fs events --follow --json' "
            "has both."
        )
    repository = _repository_of(invocation)
    path = log_path(repository)
    if not os.path.lexists(path):
        planning_root(repository.root)
    if is_followed:
        for line in follow(path, count):
            print(safe(line, _LINE_LENGTH), flush=True)
    lines = tail(path, count)
    return Reply({"path": path, "lines": lines}, show=lambda _: _print(lines, path))


def closed_repository(invocation: Invocation) -> Repository:
    """Return the current repository with its git processes ended.

    Raises:
        YoloError: NOT_INITIALISED, NOT_REGULAR where it has no planning tree.
    """
    repository = _repository_of(invocation)
    planning_root(repository.root)
    return repository


def _repository_of(invocation: Invocation) -> Repository:
    """Return the current repository, which need not have a planning tree any more: a daemon that
    runs goes on while a branch without one is checked out.
    """
    repository = Repository(invocation.start)
    repository.close()
    return repository


def start_daemon(repository: Repository, wait_s: float | None) -> Reply:
    """Start the daemon unless one is running, and return the result; `wait_s`: for its first scan.

    Raises:
        YoloError: UNSAFE_REPOSITORY, BAD_CONFIG, GIT_MISSING.
    """
    _refuse_start(repository)
    launched = watch(repository)
    if isinstance(launched, Holder):
        if launched.pid and wait_s is not None:
            wait_ready(repository, launched.pid, wait_s)
        sentence = f"The daemon runs already: {launched}."
        return _reply("already_running", launched.pid or None, sentence)
    pid = launched.process.pid
    if launched.process.poll() is None:
        if wait_s is None:
            return _reply("starting", pid, f"The daemon starts as process {pid}.")
        if wait_ready(repository, pid, wait_s):
            return _reply("started", pid, f"The daemon runs as process {pid}.")
    return _report_death(repository, launched)


def _refuse_start(repository: Repository) -> None:
    """Refuse what a daemon would end of before its first scan, and nobody would see."""
    refuse_unsafe(repository)
    repository.git.refuse_old()


def _report_death(repository: Repository, launched: Launched) -> Reply:
    code = launched.process.wait()
    lines = said_since(repository, launched)
    finding = Finding(
        Reason.NOT_RUNNING,
        log_path(repository),
        message=f"the daemon ended with exit code {code} before its first scan was done",
        hint="Its last output is above; 'yolo-fs run' shows it live.",
    )
    if code == 0:
        exit_code = Exit.NOT_HERE
    elif code in Exit._value2member_map_:
        exit_code = Exit(code)
    else:
        exit_code = Exit.DEFECT
    return Reply(
        {"state": "failed", "exit_code": code, "lines": lines},
        [finding],
        exit_code,
        lambda _: _print(lines, "", stream=sys.stderr),
    )


def _reply(state: str, pid: int | None, sentence: str) -> Reply:
    return Reply({"state": state, "pid": pid}, show=lambda _: print(sentence))


def _print(lines: list[str], path: str, *, stream: Any = None) -> None:
    for line in lines:
        print(safe(line, _LINE_LENGTH), file=stream)
    if not lines and path:
        print(f"Nothing is written yet to {safe(path)}", file=sys.stderr)


@click.group("service")
def service() -> None:
    """Let systemd or launchd run the daemon of this repository at each login.

    Nothing is ever enabled for you: the command that does is printed.
    """


def _system_options(function: Callable[..., Any]) -> Callable[..., Any]:
    launchd = click.option(
        "--launchd", "system", flag_value=System.LAUNCHD.value, help="A launchd job (macOS)."
    )
    systemd = click.option(
        "--systemd", "system", flag_value=System.SYSTEMD.value, help="A systemd user unit (Linux)."
    )
    return systemd(launchd(function))


@verb("print", example="yolo-fs service print --systemd > yolo-fs.service", parent=service)
@_system_options
def print_(invocation: Invocation, *, system: str | None) -> Reply:
    """Print the service file."""
    unit = _choose_unit(closed_repository(invocation), system)
    return Reply({**to_json(unit), "text": unit.text}, show=lambda _: print(unit.text, end=""))


@verb("install", example="yolo-fs service install", parent=service)
@_system_options
def install(invocation: Invocation, *, system: str | None) -> Reply:
    """Write the service file, and print how to enable it."""
    repository = closed_repository(invocation)
    unit = _choose_unit(repository, system)
    repository.make_own_dir()  # launchd opens the log in it before we run
    state = write(unit)
    return _report_unit(unit, state, f"Enable it with:  {unit.enable}")


@verb("uninstall", example="yolo-fs service uninstall", parent=service)
@_system_options
def uninstall(invocation: Invocation, *, system: str | None) -> Reply:
    """Remove the service file, once it is no longer enabled."""
    unit = _choose_unit(_repository_of(invocation), system)
    state = remove(unit)
    return _report_unit(
        unit, state, f"If it still runs:  {unit.disable}" if state == "uninstalled" else ""
    )


def _choose_unit(repository: Repository, system: str | None) -> Unit:
    chosen = System(system) if system else System.of_this_machine()
    return unit_for(repository.root, log_path(repository), chosen)


def _report_unit(unit: Unit, state: str, advice: str) -> Reply:
    text = "\n".join(filter(None, (f"{state.replace('_', ' ')}: {unit.path}", advice)))
    return Reply({"state": state, **to_json(unit)}, show=lambda _: print(text))


@verb("run", example="yolo-fs run --once")
@click.option("--once", is_flag=True, help="One full reconcile, then end.")
@click.option(
    "--unsafe-fs", is_flag=True, help="Run although locks are not reliable on this file system."
)
def run(invocation: Invocation, *, once: bool, unsafe_fs: bool) -> Reply:
    """Watch the planning tree; commit each valid artifact at once and alone.

    Runs until interrupted. With --json every event is one line on stdout.
    """
    # Imported here: the other verbs start and stop the daemon without it.
    from yolo_fs.daemon.health import acquire

    start: str | None = invocation.start
    while start is not None:
        try:
            repository, lock = acquire(start, unsafe_fs=unsafe_fs)
        except YoloError as error:
            if error.reason is not Reason.ALREADY_RUNNING:
                raise
            return Reply({"state": "already_running"}, [error.as_finding()], Exit.DONE)
        start = _watch(invocation, repository, lock, once=once)
    return Reply({"state": "done"}) if once and not invocation.as_json else Reply()


def _watch(
    invocation: Invocation, repository: Repository, lock: HeldLock, *, once: bool
) -> str | None:
    """Run a daemon to its end; return the new path of its work tree, if that was moved."""
    from yolo_fs.daemon.daemon import Daemon, stop_on_signals
    from yolo_fs.system.system import begin_clean

    journal = Journal(repository.own_dir, source=repository.root)

    def emit(event: str, path: str, data: Mapping[str, Any]) -> None:
        journal.append(event, path, data)
        _show(invocation, event, path, data)

    # git inherits the lock: its helper processes must end before the lock is released.
    with closing(journal), lock, repository:
        daemon = Daemon(repository, lock, emit)
        if once:
            daemon.run_once()
            return None
        if threading.current_thread() is threading.main_thread():
            stop_on_signals(daemon)
            begin_clean(repository.root)
        daemon.run(_notify_ready)
        return daemon.moved_to


def _show(invocation: Invocation, event: str, path: str, data: Mapping[str, Any]) -> None:
    stream = sys.stdout if invocation.as_json else sys.stderr
    line = f"{datetime.now():%H:%M:%S} {event:20} {safe(path)} {_gist(event, data)}".rstrip()
    try:
        if invocation.as_json:
            line = json.dumps({"event": event, "path": path, "data": data})
        if invocation.as_json or not invocation.quiet:
            print(line, file=stream, flush=True)
    except OSError:  # the reader left, its terminal closed, its disk is full; the work goes on
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _gist(event: str, data: Mapping[str, Any]) -> str:
    if event == "artifact.committed":
        return f"{data['commit'][:SHORT]} {safe(data['subject'])}"
    findings = data.get("findings") or []
    if findings:
        first = findings[0]
        place = f"line {first['line']} {first['at']}".rstrip() if first["line"] else ""
        return f"{first['reason']} {safe(place)}: {safe(first['message'])}"
    return safe(
        str(data.get("reason") or data.get("what") or data.get("why") or data.get("pid") or "")
    )


def _notify_ready() -> None:
    """Notify a service manager that the first scan is done."""
    import socket

    gc.freeze()  # a full collection took 0.1 s, most of it for what lives as long as the daemon
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.connect("\0" + address[1:] if address.startswith("@") else address)
        channel.sendall(b"READY=1")
