"""What a host says when it asks a hook, in the words of all hosts alike. Pure; fields that nobody
knows do no harm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from yolo_fs.protocol.tools import PATH_KEYS, TOOLS, Act
from yolo_fs.rules.hooks.shell_touches import Touch, touches_of


@dataclass(frozen=True, slots=True)
class Said:
    """One question of a host."""

    event: str
    """As in `yolo-fs hook EVENT`."""
    host: str
    cwd: str
    """Where the agent stands: what relative paths are spelled from."""
    agent: str = ""
    """Kind of the agent, such as `yolo-dev`; empty for the session itself."""
    touches: tuple[Touch, ...] = ()
    is_repeated: bool = False
    """It has been sent on once already: whoever is stopped twice is stopped for ever."""
    task: str = ""
    """What the task that is done was called."""


def said_of(event: str, host: str, cwd: str, told: Mapping[str, Any]) -> Said:
    """Return what an object of a host says."""
    return Said(
        event=event,
        host=host,
        cwd=cwd,
        agent=_text(told, "agent_type") or _text(told, "subagent_type"),
        touches=tuple(_touches(told)),
        is_repeated=told.get("stop_hook_active") is True or _number(told, "loop_count") > 0,
        task=f"{_text(told, 'task_subject')}\n{_text(told, 'task_description')}".strip(),
    )


def _touches(told: Mapping[str, Any]) -> Iterator[Touch]:
    given = told.get("tool_input")
    given = given if isinstance(given, Mapping) else told
    act = _act(told)
    if act is Act.RUN:
        command = given.get("command", given.get("cmd"))
        words = command if isinstance(command, list) else [command]
        text = (
            " ".join(word for word in words if isinstance(word, str))
            if len(words) == 1
            else _joined(words)
        )
        yield from touches_of(text)
    elif act is not None:
        named = (_text(given, key) for key in PATH_KEYS)
        yield from (Touch(path, writes=act is Act.WRITE) for path in named if path)


def _joined(words: list[Any]) -> str:
    """Return the command of a list such as `["bash", "-lc", "…"]`."""
    return (
        str(words[-1])
        if len(words) == 3 and str(words[1]).startswith("-")
        else " ".join(map(str, words))
    )


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
