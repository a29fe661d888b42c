"""A peer of the daemon: the loop of watchdog and git that people write.

`python -m bench.watchdog_loop ROOT`.

Commits each file below the planning tree when it is closed or renamed into place; says `ready` once
it watches.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from watchdog.events import FileSystemEventHandler
from watchdog.observers import Observer


class Commit(FileSystemEventHandler):
    """Adds and commits what an event names."""

    def __init__(self, root: str) -> None:
        self._root = root

    def on_closed(self, event: Any) -> None:
        """Commit a file whose writer has closed it."""
        self._commit(event.src_path)

    def on_moved(self, event: Any) -> None:
        """Commit a file under its new name."""
        self._commit(event.dest_path)

    def _commit(self, path: str) -> None:
        self._git("add", "--", path)
        self._git("commit", "-q", "-m", "docs(01): summary")

    def _git(self, *arguments: str) -> None:
        quiet = subprocess.DEVNULL
        subprocess.run(
            ["git", "-C", self._root, *arguments], check=False, stdout=quiet, stderr=quiet
        )


def main(root: str) -> None:
    """Watch until killed."""
    observer = Observer()
    observer.schedule(Commit(root), f"{root}/.yolo-planning", recursive=True)
    observer.start()
    print("ready", flush=True)
    observer.join()


if __name__ == "__main__":
    main(sys.argv[1])
