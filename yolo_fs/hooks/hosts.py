"""What a host says when it asks a hook, in the words of all hosts alike, and how the answer is told
to each: one object on stdout, or exit 2 where a host knows no other refusal. Pure.

Fields that nobody knows do no harm; only fields that the host's closed schema has are ever used in
an answer. See docs/dev/sources.md#document-002.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from yolo_fs.hooks.mcp_calls import is_mcp, speaks_for, touches_of
from yolo_fs.hooks.shell import UNKNOWN
from yolo_fs.hooks.touches import (
    CommandReading,
    Destruction,
    Effect,
    OwnUse,
    Touch,
    read_command,
)
from yolo_fs.protocol.hooks import (
    AGENT_HOOK_BY_NAME,
    CONTENT_KEYS,
    PATH_KEYS,
    RECIPIENT_KEYS,
    TOOLS,
    ToolAct,
)


class HookInput(NamedTuple):
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
    own: tuple[OwnUse, ...] = ()
    """Commands of ours that are not for every agent."""
    excess: str = ""
    """Why a command is more than can be judged in time."""
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
    message: str = ""
    """What it writes there: text, or the JSON of a message."""
    speaks_for: str = ""
    """The agent in whose name a tool is asked to act; empty where it names none."""
    asks_us: bool = False
    """Whether that tool is one of our own server's."""
    root: str = ""
    """A folder of the repository that is meant, where the agent stands outside of it."""

    @property
    def is_served(self) -> bool:
        """Whether our own server asks, which does not know who calls unless it was told."""
        return self.host == SERVED


SERVED = "mcp"
"""The host of a question that our own server asks."""


def parse_input(
    event: str,
    host: str,
    cwd: str,
    told: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
) -> HookInput:
    """Return what an object of a host says. `environment`: variables that its shell has, too."""
    reading = _reading(told, environment or {})
    named, asks_us = speaks_for(_text(told, "tool_name"), _given(told))
    return HookInput(
        event=event,
        host=host,
        cwd=cwd,
        agent=_text(told, "agent_type") or _text(told, "subagent_type"),
        touches=reading.touches,
        undecided=reading.undecided,
        unchecked=reading.unchecked,
        destructions=reading.destructions,
        own=reading.own,
        excess=reading.excess,
        is_repeated=told.get("stop_hook_active") is True or _number(told, "loop_count") > 0,
        is_aborted=_text(told, "status") in _ABORTED,
        instance=next(filter(None, (_text(told, key) for key in _INSTANCE)), ""),
        task=f"{_text(told, 'task_subject')}\n{_text(told, 'task_description')}".strip(),
        recipient=_recipient(told),
        message=_message(told),
        speaks_for=named,
        asks_us=asks_us,
    )


def _given(told: Mapping[str, Any]) -> Mapping[str, Any]:
    given = told.get("tool_input")
    return given if isinstance(given, Mapping) else told


def _recipient(told: Mapping[str, Any]) -> str:
    given = told.get("tool_input")
    if _act(told) is not ToolAct.TELL or not isinstance(given, Mapping):
        return ""
    return next(filter(None, (_text(given, key) for key in RECIPIENT_KEYS)), "")


def _message(told: Mapping[str, Any]) -> str:
    if _act(told) is not ToolAct.TELL:
        return ""
    found = (_given(told).get(key) for key in CONTENT_KEYS)
    told_there = next((value for value in found if value), "")
    return told_there if isinstance(told_there, str) else json.dumps(told_there)


_ABORTED = ("aborted", "cancelled", "interrupted")
_INSTANCE = ("agent_id", "session_id", "conversation_id")


def _reading(told: Mapping[str, Any], environment: Mapping[str, str]) -> CommandReading:
    given, act, tool = _given(told), _act(told), _text(told, "tool_name")
    if is_mcp(tool):
        ran = _ran(_command(given), environment)
        return ran._replace(touches=(*ran.touches, *touches_of(tool, given)))
    if act in (None, ToolAct.TELL):
        return CommandReading()
    if act is ToolAct.RUN:
        return _ran(_command(given), environment)
    effect = Effect.WRITE if act is ToolAct.WRITE else Effect.READ
    named = (_text(given, key) for key in PATH_KEYS)
    return CommandReading(tuple(Touch(path, effect) for path in named if path))


def _ran(command: str, environment: Mapping[str, str]) -> CommandReading:
    here = {"PWD": "", "OLDPWD": UNKNOWN}
    return read_command(command, {**environment, **here})


def _command(given: Mapping[str, Any]) -> str:
    """Return a command, which may be a list such as `["bash", "-lc", "…"]`."""
    command = given.get("command", given.get("cmd"))
    if not isinstance(command, list):
        return command if isinstance(command, str) else ""
    words = [str(word) for word in command]
    return words[0] if len(words) == 1 else shlex.join(words)


def _act(told: Mapping[str, Any]) -> ToolAct | None:
    """Return what the tool does; events of one host that are bound to one tool do not name it."""
    if name := _text(told, "tool_name"):
        return TOOLS.get(name)
    match _text(told, "hook_event_name"):
        case "beforeShellExecution":
            return ToolAct.RUN
        case "beforeReadFile":
            return ToolAct.READ
        case "afterFileEdit":
            return ToolAct.WRITE
    return None


def _text(told: Mapping[str, Any], key: str) -> str:
    value = told.get(key)
    return value if isinstance(value, str) else ""


def _number(told: Mapping[str, Any], key: str) -> int:
    value = told.get(key)
    return value if isinstance(value, int) else 0


LONGEST = 9_000
"""Hosts move a text of more than 10,000 characters out of the context."""
REFUSED = 2
"""Exit code by which a host takes a refusal; never given but on purpose."""

_HEARD = frozenset(
    {
        "session-start",
        "user-prompt-submit",
        "pre-tool-use",
        "post-tool-use",
        "post-tool-use-failure",
        "subagent-start",
    }
)
"""Events at which a host takes something into the agent's context."""


class HookAnswer(NamedTuple):
    """What a hook answers."""

    refusal: str = ""
    """Why the agent may not, or not yet, and what it should do instead; empty when it may."""
    context: str = ""
    """What the agent is told besides."""
    note: str = ""
    """What its user may like to know; never reaches the agent."""


@dataclass(frozen=True, slots=True)
class HookOutput:
    """What the host is given."""

    said: Mapping[str, Any] = field(default_factory=dict)
    """The object on stdout."""
    complaint: str = ""
    """The text on stderr."""
    exit_code: int = 0


def output_of(event: str, host: str, told: HookAnswer) -> HookOutput:
    """Return an answer in the form of a host."""
    refusal = _cut(told.refusal) if AGENT_HOOK_BY_NAME[event].may_block else ""
    context = _cut(told.context) if event in _HEARD else ""
    if host == "cursor":
        return HookOutput(_for_cursor(event, refusal, context), told.note)
    if host == "codex" and event == "pre-tool-use":
        refusal = refusal.removesuffix(".")  # it adds ". Command: …"
    if event == "task-completed" and refusal:
        return HookOutput({}, refusal, REFUSED)
    return HookOutput(_for_claude(event, refusal, context), told.note)


def _for_claude(event: str, refusal: str, context: str) -> dict[str, Any]:
    """Return what two of the hosts take: the schema of one is the closed part of the other's."""
    if refusal and event != "pre-tool-use":
        return {"decision": "block", "reason": refusal}
    denied = {"permissionDecision": "deny", "permissionDecisionReason": refusal} if refusal else {}
    added = {"additionalContext": context} if context else {}
    if not denied and not added:
        return {}
    return {
        "hookSpecificOutput": {"hookEventName": AGENT_HOOK_BY_NAME[event].event, **denied, **added}
    }


def _for_cursor(event: str, refusal: str, context: str) -> dict[str, Any]:
    if refusal and event == "pre-tool-use":
        first = refusal.partition("\n")[0]
        return {"permission": "deny", "user_message": first, "agent_message": refusal}
    if refusal and event in ("stop", "subagent-stop"):
        return {"followup_message": refusal}
    if event in ("session-start", "post-tool-use") and (refusal or context):
        return {"additional_context": refusal or context}
    return {}


def _cut(text: str) -> str:
    return (
        text
        if len(text) <= LONGEST
        else f"{text[:LONGEST]}…\n(cut; 'yolo-fs validate' shows everything)"
    )
