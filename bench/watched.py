"""One watcher in a process of its own: `python -m bench.watched raw|watcher DIRECTORY`.

Says `ready`, then for each file the clock's reading and the path. The clock is the machine's, not
the process's.
"""

from __future__ import annotations

import os
import select
import sys
import time

from bench.inotify import Inotify


def say(path: str) -> None:
    """Report a file at once."""
    os.write(1, b"%d %s\n" % (time.perf_counter_ns(), os.fsencode(path)))


def by_inotify(root: str) -> None:
    """Report what the kernel tells."""
    watch = Inotify()
    watch.add_below(root)
    os.write(1, b"ready\n")
    while True:
        select.select([watch.fd], [], [])
        for path in watch.read():
            say(path)


def by_watcher(root: str) -> None:
    """Report what the watcher of yolo_fs tells."""
    from yolo_fs.system.watch import Hint, Watcher

    def on_path(path: str, hint: Hint) -> None:
        if hint is Hint.CLOSED:
            say(f"{root}/{path}")

    Watcher(root, on_path, lambda _why: None).start()
    os.write(1, b"ready\n")
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    {"raw": by_inotify, "watcher": by_watcher}[sys.argv[1]](sys.argv[2])
