"""The entry point: `yolo-fs` and `python -m yolo_fs`."""

from __future__ import annotations

import sys

from yolo_fs.cli.entry import run_here
from yolo_fs.edges.warm_path import run_warm


def main() -> int:
    """Run the command line and return its exit code."""
    arguments = sys.argv[1:]
    if arguments[:1] != ["hook"]:  # most of whose answers cost less than to ask for them
        code = run_warm(arguments)
        if code is not None:
            return code
    return run_here(arguments)


if __name__ == "__main__":
    sys.exit(main())
