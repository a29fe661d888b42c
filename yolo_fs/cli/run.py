"""`yolo-fs run`: the daemon in the foreground."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click

from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.edges.journal import Journal
from yolo_fs.reasons import Exit, Reason, YoloError, safe
from yolo_fs.services.daemon.daemon import Daemon, stop_on_signals
from yolo_fs.services.daemon.health import acquire


@verb("run", example="yolo-fs run --once")
@click.option("--once", is_flag=True, help="One full reconcile, then end.")
@click.option(
    "--unsafe-fs", is_flag=True, help="Run although locks are not reliable on this file system."
)
def run(asked: Invocation, *, once: bool, unsafe_fs: bool) -> Reply:
    """Watch the planning tree; commit each valid artifact at once and alone.

    Runs until it is interrupted. With --json every event is one line on stdout.
    """
    try:
        repository, lock = acquire(asked.start, unsafe_fs=unsafe_fs)
    except YoloError as error:
        if error.reason is not Reason.ALREADY_RUNNING:
            raise
        return Reply({"state": "already_running"}, [error.as_finding()], Exit.DONE)
    journal = Journal(repository.own_dir, source=repository.root, now=lambda: datetime.now(UTC))

    def tell(event: str, path: str, data: Mapping[str, Any]) -> None:
        journal.append(event, path, data)
        _show(asked, event, path, data)

    with lock, repository:  # git inherits the lock: its helpers end before the lock is released
        daemon = Daemon(repository, lock, tell)
        if once:
            daemon.run_once()
        else:
            if threading.current_thread() is threading.main_thread():
                stop_on_signals(daemon)
            daemon.run(_notify_ready)
    return Reply({"state": "done"}) if once and not asked.as_json else Reply()


def _show(asked: Invocation, event: str, path: str, data: Mapping[str, Any]) -> None:
    stream = sys.stdout if asked.as_json else sys.stderr
    line = f"{datetime.now():%H:%M:%S} {event:20} {safe(path)} {_gist(event, data)}".rstrip()
    try:
        if asked.as_json:
            line = json.dumps({"event": event, "path": path, "data": data})
        if asked.as_json or not asked.quiet:
            print(line, file=stream, flush=True)
    except BrokenPipeError:  # the reader left; the work goes on
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _gist(event: str, data: Mapping[str, Any]) -> str:
    if event == "artifact.committed":
        return f"{data['commit'][:7]} {safe(data['subject'])}"
    findings = data.get("findings") or []
    if findings:
        first = findings[0]
        place = f"line {first['line']} {first['at']}".rstrip() if first["line"] else ""
        return f"{first['reason']} {safe(place)}: {safe(first['message'])}"
    return safe(
        str(data.get("reason") or data.get("what") or data.get("why") or data.get("pid") or "")
    )


def _notify_ready() -> None:
    """Tell a service manager that the first scan is done."""
    import socket

    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.connect("\0" + address[1:] if address.startswith("@") else address)
        channel.sendall(b"READY=1")
