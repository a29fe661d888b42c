"""The peer of the daemon: what a shell loop around inotify does, `git add` and `git commit --only`
per file.

Run as `python -m bench.peer ROOT`; says `ready` once it watches. Unlike a shell it starts nothing
but git.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys

from bench.inotify import Inotify


def main(root: str) -> None:
    """Commit each file below the planning tree when it is closed, until killed."""
    watch = Inotify()
    watch.add_below(os.path.join(root, ".yolo-planning"))
    print("ready", flush=True)
    while True:
        select.select([watch.fd], [], [])
        for path in dict.fromkeys(watch.read()):
            _git(root, "add", "--", path)
            _git(root, "commit", "-q", "--only", "-m", "docs(01): summary", "--", path)


def _git(root: str, *arguments: str) -> None:
    subprocess.run(["git", "-C", root, *arguments], check=False, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main(sys.argv[1])
