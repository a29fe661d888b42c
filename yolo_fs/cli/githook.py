"""`yolo-fs git-hook`: answers one of git's hooks. The hooks of `hooks install` run this file
directly.

Only the standard library is imported until the request is known. Any internal failure is reported
and lets git continue: a defect of ours must never block a commit.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from yolo_fs.core.reasons import safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

PROBE = "probe"


def answer(name: str, arguments: Sequence[str]) -> int:
    """Return the exit code of a hook: 1 refuses."""
    try:
        if name == PROBE:
            return _print_version(arguments)
        from yolo_fs.hooks.run import HOOKS, run_hook

        return int(not run_hook(name, arguments)) if name in HOOKS else 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        why = safe(f"{type(error).__name__}: {error}", 500)
        print(f"yolo-fs: {safe(name)} was not checked: {why}", file=sys.stderr)
        return 0


def _print_version(arguments: Sequence[str]) -> int:
    import yolo_fs.hooks.run
    from yolo_fs import __version__

    known = arguments and arguments[0] in yolo_fs.hooks.run.HOOKS
    print(f"yolo-fs {__version__} answers {arguments[0]}" if known else "yolo-fs has no such hook")
    return 0


def __getattr__(attribute: str) -> click.Command:
    """Create the command only for the command line: importing click costs more than most
    answers.
    """
    if attribute not in ("git-hook", "git_hook"):
        raise AttributeError(attribute)
    import click

    from yolo_fs.artifacts.classify import PLANNING_ROOT
    from yolo_fs.hooks.run import HOOKS
    from yolo_fs.hooks.script import PROBED

    @click.command("git-hook", epilog="Example:  yolo-fs git-hook commit-msg .git/COMMIT_EDITMSG")
    @click.argument("name", type=click.Choice(list(HOOKS)))
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def git_hook(name: str, arguments: tuple[str, ...]) -> int:
        """Run one of git's hooks: exit 1 refuses, with the reason and the remedy on stderr.

        Called by git; 'yolo-fs hooks install' installs it. For agent hosts see 'yolo-fs setup'.

        Hook managers may call it as well; 'yolo-fs hooks install' needs none. ARGUMENTS are those
        that git gives.
        """
        if os.environ.get("YOLO_FS_PROBE"):
            _print_version([name])
            return PROBED
        # A hook shared by all repositories of a user runs in each of them.
        return answer(name, arguments) if os.path.isdir(PLANNING_ROOT) else 0

    return git_hook


if __name__ == "__main__":
    from yolo_fs.system.ask import run_by_observer
    from yolo_fs.system.warm_path import ASKED_BY_GIT

    answered = run_by_observer([ASKED_BY_GIT, *sys.argv[1:]])
    refused = (answer(sys.argv[1], sys.argv[2:]) if answered is None else answered) == 1
    sys.exit(75 if refused else 0)  # REFUSED of the script, whose every import would cost time
