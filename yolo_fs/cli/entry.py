"""Dispatches a command line: a few commands bypass click for speed, all others use it."""

from __future__ import annotations

import atexit
import sys

from yolo_fs.system.warm_path import ASKED_BY_GIT, HOOK_IN_FULL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def finish() -> None:
    """Run the exit handlers and flush the output, without the interpreter's teardown.

    The teardown would take a quarter of the time of most commands.

    Raises:
        OSError, ValueError: what is printed cannot be written; the interpreter has to say so.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()


def run_here(arguments: Sequence[str]) -> int:
    """Run a command in this process and return its exit code."""
    name, *rest = arguments or ("",)
    is_help = bool({"-h", "--help"} & set(arguments))
    if name == HOOK_IN_FULL:
        from yolo_fs.cli.hook_fast import main_in_full

        return main_in_full(rest)
    if name == ASKED_BY_GIT:
        from yolo_fs.cli.githook import answer as answer_git

        return answer_git(rest[0], rest[1:])
    if name == "hook" and not is_help:
        from yolo_fs.cli.hook_fast import main as answer_hook

        return answer_hook(rest)
    if name == "statusline" and not is_help:
        from yolo_fs.cli.statusline_fast import main as show_line

        return show_line(rest)
    if name == "compat":
        from yolo_fs.compat.scripts import SCRIPTS
        from yolo_fs.compat.scripts import main as run_script

        if rest and rest[0] in SCRIPTS:
            return run_script(rest)
    from yolo_fs.cli.main import run

    if not any(word.startswith("-C") for word in arguments):
        return run(arguments)
    from yolo_fs.cli.carried import carried

    with carried(arguments):
        return run(arguments)
