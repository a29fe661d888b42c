"""Keeps a daemon running in a work tree, kills it when told, and hears all that it says."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import IO, cast

from bench.ledger import Ledger

START_S = 60
COMMITTED = "artifact.committed"


class Keeper:
    """The daemon of one work tree, as a service manager would keep it."""

    def __init__(self, root: str, ledger: Ledger, config_home: str):
        self.root = root
        self.kills = 0
        self.ledger = ledger
        self._config_home = config_home
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None

    @property
    def pid(self) -> int:
        """The daemon's process; 0 while there is none."""
        return (
            self._process.pid if self._process is not None and self._process.poll() is None else 0
        )

    def start(self) -> None:
        """Start the daemon and wait until its first scan is done; a git child of a killed one may
        delay that.

        Raises:
            TimeoutError: it is not ready in time.
        """
        deadline = time.monotonic() + START_S
        while not self._launch():
            if time.monotonic() > deadline:
                raise TimeoutError(f"no daemon in {self.root}")

    def kill(self) -> None:
        """End the daemon and its process group as the kernel does, and start another."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._wait()
        self.kills += 1
        self.start()

    def stop(self) -> int:
        """Ask the daemon to end and return its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._wait()

    def _launch(self) -> bool:
        """Start once and tell whether it became ready."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            ready.bind("")  # the kernel gives it an abstract address
            ready.settimeout(0.1)
            address = "@" + ready.getsockname()[1:].decode()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "yolo_fs", "run", "--json", "-C", self.root],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True,
                env={**os.environ, "NOTIFY_SOCKET": address, "XDG_CONFIG_HOME": self._config_home},
            )  # fmt: skip
            self._reader = threading.Thread(target=self._hear, args=(self._process.stdout,))
            self._reader.start()
            while self._process.poll() is None:
                try:
                    return bool(ready.recv(64))
                except TimeoutError:
                    continue
        self._wait()
        return False

    def _wait(self) -> int:
        assert self._process is not None and self._reader is not None
        code = self._process.wait(START_S)
        self._reader.join(START_S)
        cast("IO[bytes]", self._process.stdout).close()
        return code

    def _hear(self, out: IO[bytes]) -> None:
        for line in out:
            event = json.loads(line)
            if event.get("event") == COMMITTED:
                self.ledger.reported(event["path"], event["data"]["blob"])
