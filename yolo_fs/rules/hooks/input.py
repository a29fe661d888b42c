"""What a host says when it asks a hook, in the words of all hosts alike. Pure; fields that nobody
knows do no harm.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from yolo_fs.protocol.tools import PATH_KEYS, RECIPIENT_KEYS, TOOLS, Act
from yolo_fs.rules.hooks.shell import UNKNOWN
from yolo_fs.rules.hooks.touches import CommandReading, Destruction, Effect, Touch, read_command


@dataclass(frozen=True, slots=True)
class HookInput:
    """One question of a host."""

    event: str
    """As in `yolo-fs hook EVENT`."""
    host: str
    cwd: str
    """Where the agent stands: what relative paths are spelled from."""
    agent: str = ""
    """Kind of the agent, such as `yolo-dev`; empty for the session itself."""
    touches: tuple[Touch, ...] = ()
    undecided: tuple[str, ...] = ()
    """Parts of a command whose effect its text does not tell."""
    unchecked: tuple[str, ...] = ()
    """Commands of git that tell it to skip the hooks of the repository."""
    destructions: tuple[Destruction, ...] = ()
    """Commands that may destroy what no commit has."""
    is_repeated: bool = False
    """It has been sent on once already: whoever is stopped twice is stopped for ever."""
    is_aborted: bool = False
    """Its user has stopped it: that is not answered by work."""
    instance: str = ""
    """Which of several agents of that kind, or which session; empty where the host does not say."""
    task: str = ""
    """What the task that is done was called."""
    recipient: str = ""
    """Whom the agent writes to, as the host calls it."""


def parse_input(
    event: str,
    host: str,
    cwd: str,
    told: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
) -> HookInput:
    """Return what an object of a host says. `environment`: variables that its shell has, too."""
    reading = _reading(told, environment or {})
    return HookInput(
        event=event,
        host=host,
        cwd=cwd,
        agent=_text(told, "agent_type") or _text(told, "subagent_type"),
        touches=reading.touches,
        undecided=reading.undecided,
        unchecked=reading.unchecked,
        destructions=reading.destructions,
        is_repeated=told.get("stop_hook_active") is True or _number(told, "loop_count") > 0,
        is_aborted=_text(told, "status") in _ABORTED,
        instance=next(filter(None, (_text(told, key) for key in _INSTANCE)), ""),
        task=f"{_text(told, 'task_subject')}\n{_text(told, 'task_description')}".strip(),
        recipient=_recipient(told),
    )


def _recipient(told: Mapping[str, Any]) -> str:
    given = told.get("tool_input")
    if _act(told) is not Act.TELL or not isinstance(given, Mapping):
        return ""
    return next(filter(None, (_text(given, key) for key in RECIPIENT_KEYS)), "")


_ABORTED = ("aborted", "cancelled", "interrupted")
_INSTANCE = ("agent_id", "session_id", "conversation_id")


def _reading(told: Mapping[str, Any], environment: Mapping[str, str]) -> CommandReading:
    given = told.get("tool_input")
    given = given if isinstance(given, Mapping) else told
    act = _act(told)
    if act in (None, Act.TELL):
        return CommandReading()
    if act is Act.RUN:
        here = {"PWD": "", "OLDPWD": UNKNOWN}
        return read_command(_command(given), {**environment, **here})
    effect = Effect.WRITE if act is Act.WRITE else Effect.READ
    named = (_text(given, key) for key in PATH_KEYS)
    return CommandReading(tuple(Touch(path, effect) for path in named if path))


def _command(given: Mapping[str, Any]) -> str:
    """Return a command, which may be a list such as `["bash", "-lc", "…"]`."""
    command = given.get("command", given.get("cmd"))
    if not isinstance(command, list):
        return command if isinstance(command, str) else ""
    words = [str(word) for word in command]
    return words[0] if len(words) == 1 else shlex.join(words)


def _act(told: Mapping[str, Any]) -> Act | None:
    """Return what the tool does; events of one host that are bound to one tool do not name it."""
    if name := _text(told, "tool_name"):
        return TOOLS.get(name)
    match _text(told, "hook_event_name"):
        case "beforeShellExecution":
            return Act.RUN
        case "beforeReadFile":
            return Act.READ
        case "afterFileEdit":
            return Act.WRITE
    return None


def _text(told: Mapping[str, Any], key: str) -> str:
    value = told.get(key)
    return value if isinstance(value, str) else ""


def _number(told: Mapping[str, Any], key: str) -> int:
    value = told.get(key)
    return value if isinstance(value, int) else 0
