"""The entry point: `yolo-fs` and `python -m yolo_fs`."""

from __future__ import annotations

import os
import sys

from yolo_fs.cli.entry import run_here
from yolo_fs.edges.warm_path import run_warm


def main() -> int:
    """Run the command line and return its exit code."""
    _open_closed_streams()
    arguments = sys.argv[1:]
    if arguments[:1] != ["hook"]:  # most of whose answers cost less than to ask for them
        code = run_warm(arguments)
        if code is not None:
            return code
    return run_here(arguments)


def _open_closed_streams() -> None:
    """Put nothing in the place of a stream that the caller closed: its number would go to a file of
    ours.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)  # open to the end, like the streams themselves
            setattr(sys, name, open(nothing, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


if __name__ == "__main__":
    sys.exit(main())
