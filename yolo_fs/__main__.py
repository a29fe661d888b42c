"""The entry point: `yolo-fs` and `python -m yolo_fs`."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    from yolo_fs.cli.main import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
