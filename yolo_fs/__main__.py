"""The entry point: `yolo-fs` and `python -m yolo_fs`."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"} & set(sys.argv):
        from yolo_fs.cli.hook_fast import main as answer_hook

        return answer_hook(sys.argv[2:])
    if sys.argv[1:2] == ["statusline"] and not {"-h", "--help"} & set(sys.argv):
        from yolo_fs.cli.statusline_fast import main as show_line

        return show_line(sys.argv[2:])
    if sys.argv[1:2] == ["compat"]:
        from yolo_fs.compat.scripts import SCRIPTS
        from yolo_fs.compat.scripts import main as run_script

        if sys.argv[2:3] and sys.argv[2] in SCRIPTS:
            return run_script(sys.argv[2:])
    from yolo_fs.cli.main import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
