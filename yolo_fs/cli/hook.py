"""`yolo-fs hook`: answers agents' hosts; `hook_fast` decides whether this module is needed."""

from __future__ import annotations

import click

from yolo_fs.cli import hook_fast
from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.core.reasons import Exit
from yolo_fs.protocol.hooks import HOST_BY_NAME


@verb("hook", example="yolo-fs hook pre-tool-use < input.json")
@click.argument("event", default="")
@click.option(
    "--host",
    default="",
    metavar="HOST",
    help=f"{', '.join(HOST_BY_NAME)}; detected from the input by default.",
)
def hook(invocation: Invocation, *, event: str, host: str) -> Reply:
    """Answer one EVENT of an agent host: its JSON on stdin, our JSON on stdout.

    Called by hosts; 'yolo-fs setup' installs it. For git's hooks see 'yolo-fs hooks'. The exit code
    is 0, except for a refusal on a host that only understands exit code 2.
    """
    arguments = [
        event,
        f"--host={host}",
        *(["-C", invocation.start] if invocation.start != "." else []),
    ]
    code = hook_fast.main([word for word in arguments if word])
    return Reply(exit_code=Exit(code))
