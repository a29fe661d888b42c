"""`yolo-fs statusline`: one line for the host of an agent; `__main__` answers it before anything
else is imported.
"""

from __future__ import annotations

from yolo_fs.cli import statusline_fast
from yolo_fs.cli.reply import Invocation, Reply, verb


@verb("statusline", example="yolo-fs statusline -C ~/shop")
def statusline(asked: Invocation) -> Reply:
    """Show in one line where the team stands: phase, step, percentage, who is next, what is held or
    rejected.

    Reads one file that the daemon keeps, so that a host may ask as often as it likes; always ends
    with 0. In Claude Code's settings: "statusLine": {"type": "command", "command": "yolo-fs
    statusline", "refreshInterval": 5}.
    """
    found = statusline_fast.line(asked.start)
    return Reply({"line": found}, show=lambda console: console.print(found, markup=False))
