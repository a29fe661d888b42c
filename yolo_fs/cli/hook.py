"""`yolo-fs hook`: answers agents' hosts; `hook_fast` decides whether anything here is needed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click

from yolo_fs.cli import hook_fast
from yolo_fs.cli.reply import Invocation, Reply, verb
from yolo_fs.protocol.hooks import HOST_BY_NAME
from yolo_fs.reasons import Exit, YoloError, safe
from yolo_fs.rules.hooks.hosts import HookAnswer, HookOutput, output_of, parse_input


@verb("hook", example="yolo-fs hook pre-tool-use < input.json")
@click.argument("event", default="")
@click.option(
    "--host",
    default="",
    metavar="HOST",
    help=f"{', '.join(HOST_BY_NAME)}; detected from the input by default.",
)
def hook(asked: Invocation, *, event: str, host: str) -> Reply:
    """Answer one EVENT of an agent host: its JSON on stdin, our JSON on stdout.

    Hosts call this; 'yolo-fs setup' installs it. For git's hooks see 'yolo-fs hooks'. The exit code
    is 0 except for a refusal that the host only understands as exit code 2.
    """
    arguments = [event, f"--host={host}", *(["-C", asked.start] if asked.start != "." else [])]
    code = hook_fast.main([word for word in arguments if word])
    return Reply(exit_code=Exit(code))


def fully(
    event: str, host: str, cwd: str, told: Mapping[str, Any]
) -> tuple[Mapping[str, Any], str, int]:
    """Return what goes to stdout and stderr and the exit code, where ours is touched."""
    given = _output(event, host, cwd, told)
    return given.said, given.complaint, given.exit_code


def _output(event: str, host: str, cwd: str, told: Mapping[str, Any]) -> HookOutput:
    if "-tool-use" in event:  # around each tool, and needs less than the others do
        from yolo_fs.services.hooks.tool_use import answer
    else:
        from yolo_fs.services.hooks.agenthooks import answer
    try:
        asked = parse_input(event, host, cwd, told, os.environ)
        return output_of(event, host, answer(asked._replace(root=_elsewhere(told, cwd))))
    except YoloError as error:
        note = (
            f"yolo-fs hook: {error.reason.value}: {safe(error.message, 500)}; nothing was checked"
        )
        return output_of(event, host, HookAnswer(note=note))


def _elsewhere(told: Mapping[str, Any], cwd: str) -> str:
    """Return the repository that is meant where the agent does not stand in it, or nowhere."""
    root = hook_fast.root_of(told, cwd)
    return "" if os.path.isdir(cwd) and f"{cwd}/".startswith(f"{root}/") else root
