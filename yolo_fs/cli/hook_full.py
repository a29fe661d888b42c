"""The full answer to a hook that touches something of ours; `hook_fast` handles all others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from yolo_fs.cli.hook_question import root_of
from yolo_fs.core.reasons import YoloError, safe
from yolo_fs.hooks.hosts import HookAnswer, HookOutput, output_of, parse_input


def fully(event: str, host: str, cwd: str, payload: Mapping[str, Any]) -> HookOutput:
    """Return what goes to stdout and stderr and the exit code, for a hook that touches ours."""
    if "-tool-use" in event:  # around each tool, and needs less than the others do
        from yolo_fs.hooks.tool_use import answer
    else:
        from yolo_fs.agent_events import answer
    try:
        hook_input = parse_input(event, host, cwd, payload, os.environ)
        return output_of(event, host, answer(hook_input._replace(root=_elsewhere(payload, cwd))))
    except YoloError as error:
        note = (
            f"yolo-fs hook: {error.reason.value}: {safe(error.message, 500)}; nothing was checked"
        )
        return output_of(event, host, HookAnswer(note=note))


def _elsewhere(payload: Mapping[str, Any], cwd: str) -> str:
    """Return the repository that is meant if the agent's directory is outside of it or does not
    exist; else an empty string.
    """
    root = root_of(payload, cwd)
    return "" if os.path.isdir(cwd) and f"{cwd}/".startswith(f"{root}/") else root
