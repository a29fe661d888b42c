"""Runs `yolo-fs` so that it dies at a chosen moment between a commit and its projection. See
docs/dev/faults.md#f01.

A process of its own that has everything imported forks a child for each order, a line of JSON on stdin, and answers
with the child's exit code. The child notes every moment it comes to in a file; at the one it is to die at, it ends as
SIGKILL ends it: nothing is closed, flushed or put in order.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.support.forked import import_all
from yolo_fs.cli.main import run
from yolo_fs.daemon import coordinator
from yolo_fs.daemon.coordinator import Coordinator
from yolo_fs.git.commit import Committer
from yolo_fs.progress import state_files as projector
from yolo_fs.progress import state_files as states

KILLED = 137
BEGIN_S = 1_771_500_000
"""The clock: this, and ten seconds more for each commit of the branch, so that a restart does not change the times."""


class Fate:
    """Counts moments, and dies at one of them."""

    def __init__(self, dies_at: int, notes: str) -> None:
        self._numbers = itertools.count(1)
        self._dies_at = dies_at
        self._notes = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)

    def moment(self, name: str) -> None:
        os.write(self._notes, f"{name}\n".encode())
        if next(self._numbers) == self._dies_at:
            os._exit(KILLED)

    def around(
        self, owner: Any, name: str, concerns: Callable[..., bool] = lambda *_, **__: True
    ) -> None:
        """Make a moment before and after each call of a function that the call concerns."""
        self._wrap(owner, name, concerns, self.moment)

    def after(self, owner: Any, name: str) -> None:
        """Make a moment after each call of a function; before it, nothing has happened since the last moment."""
        self._wrap(owner, name, lambda *_, **__: True, lambda _: None)

    def _wrap(
        self, owner: Any, name: str, concerns: Callable[..., bool], before: Callable[[str], None]
    ) -> None:
        original = getattr(owner, name)

        def wrapped(*arguments: Any, **named: Any) -> Any:
            if not concerns(*arguments, **named):
                return original(*arguments, **named)
            before(f"before {name}")
            found = original(*arguments, **named)
            self.moment(f"after {name}")
            return found

        setattr(owner, name, wrapped)


def _is_round_of_a_state_file(_: Coordinator, paths: Any) -> bool:
    return (
        isinstance(paths, tuple) and len(paths) == 1 and str(paths[0]).endswith(states.STATE_FILES)
    )


def _child(order: dict[str, Any]) -> None:
    os.chdir(order["root"])
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    coordinator._now = lambda: datetime.fromtimestamp(BEGIN_S + 10 * _commits(), UTC)  # type: ignore[assignment]
    fate = Fate(order["dies_at"], order["notes"])
    fate.after(Committer, "commit")
    fate.around(states, "write_json")
    fate.around(Coordinator, "process", _is_round_of_a_state_file)
    fate.after(projector, "update")
    fate.after(projector, "write_json")
    os._exit(run(["run", "--once", "--json"]))


def _commits() -> int:
    return int(
        subprocess.run(
            ["git", "rev-list", "--count", "HEAD"], capture_output=True, check=True
        ).stdout
    )


def main() -> None:
    import_all()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _child(json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
