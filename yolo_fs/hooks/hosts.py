"""A host's question to a hook in a common form, and the answer in each host's form. Pure.

The answer is one object on stdout, or exit 2 where a host knows no other refusal. Unknown fields of
a question are ignored; an answer only uses fields of the host's closed schema. See
docs/dev/sources.md#document-002.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from yolo_fs.core.tool_calls import ANNOUNCED, PATH_KEYS, agent_in, command_in, given_to, is_mcp
from yolo_fs.hooks.changes import Change, changes_of
from yolo_fs.hooks.effects import Effect, Touch, touch_chosen
from yolo_fs.hooks.mcp_calls import speaks_for, touches_of
from yolo_fs.hooks.shell import UNKNOWN
from yolo_fs.hooks.touches import CommandReading, read_command
from yolo_fs.protocol.hooks import (
    AGENT_HOOK_BY_NAME,
    CHOOSING_KEY,
    CONTENT_KEYS,
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
    """The agent's working directory: base of relative paths."""
    agent: str = ""
    """Kind of the agent, such as `yolo-dev`; empty for the session itself."""
    is_announced: bool = False
    """Whether the environment names the agent, and not the host."""
    call: CommandReading = CommandReading()
    """What the call of a tool does."""
    changes: tuple[Change, ...] = ()
    """The texts that it writes."""
    is_repeated: bool = False
    """Whether the agent was already sent on once: stopping it again would never end."""
    is_aborted: bool = False
    """Whether its user has stopped it: then no further work is demanded."""
    instance: str = ""
    """Which agent of that kind, or which session; empty where the host does not say."""
    task: str = ""
    """Name of the completed task."""
    recipient: str = ""
    """Addressee of the agent's message, as the host names it."""
    message: str = ""
    """The message: text, or the JSON of a message."""
    speaks_for: str = ""
    """The agent in whose name a tool should act; empty when it names none."""
    asks_us: bool = False
    """Whether that tool is one of our own server's."""
    root: str = ""
    """A folder of the repository that is meant, if the agent works outside of it."""

    @property
    def is_served(self) -> bool:
        """Whether our own server asks; it knows the caller only if it was told."""
        return self.host == SERVED


SERVED = "mcp"
"""The host name for questions that our own server asks."""


def parse_input(
    event: str,
    host: str,
    cwd: str,
    payload: Mapping[str, Any],
    environment: Mapping[str, str],
) -> HookInput:
    """Parse an object of a host. `environment`: further variables of its shell."""
    named, asks_us = speaks_for(_text(payload, "tool_name"), given_to(payload))
    call = _read_tool_call(payload, environment)
    is_writing = any(touch.effect is Effect.WRITE for touch in call.touches)
    return HookInput(
        event=event,
        host=host,
        cwd=cwd,
        agent=agent_in(payload),
        is_announced=ANNOUNCED in payload,
        call=call,
        changes=tuple(changes_of(given_to(payload))) if is_writing else (),
        is_repeated=payload.get("stop_hook_active") is True or _number(payload, "loop_count") > 0,
        is_aborted=_text(payload, "status") in _ABORTED,
        instance=next(filter(None, (_text(payload, key) for key in _INSTANCE)), ""),
        task=f"{_text(payload, 'task_subject')}\n{_text(payload, 'task_description')}".strip(),
        recipient=_find_recipient(payload),
        message=_message(payload),
        speaks_for=named,
        asks_us=asks_us,
    )


def _find_recipient(payload: Mapping[str, Any]) -> str:
    given = payload.get("tool_input")
    if _act(payload) is not ToolAct.TELL or not isinstance(given, Mapping):
        return ""
    return next(filter(None, (_text(given, key) for key in RECIPIENT_KEYS)), "")


def _message(payload: Mapping[str, Any]) -> str:
    if _act(payload) is not ToolAct.TELL:
        return ""
    contents = (given_to(payload).get(key) for key in CONTENT_KEYS)
    told_there = next((value for value in contents if value), "")
    return told_there if isinstance(told_there, str) else json.dumps(told_there)


_ABORTED = ("aborted", "cancelled", "interrupted")
_INSTANCE = ("agent_id", "session_id", "conversation_id")


def _read_tool_call(payload: Mapping[str, Any], environment: Mapping[str, str]) -> CommandReading:
    given, act, tool = given_to(payload), _act(payload), _text(payload, "tool_name")
    if is_mcp(tool):
        ran = _ran(command_in(given), environment)
        return ran._replace(touches=(*ran.touches, *touches_of(tool, given)))
    if act in (None, ToolAct.TELL):
        return CommandReading()
    if act is ToolAct.RUN:
        return _ran(command_in(given), environment)
    effect = Effect.WRITE if act is ToolAct.WRITE else Effect.READ
    named = list(filter(None, (_text(given, key) for key in PATH_KEYS)))
    chosen = _text(given, CHOOSING_KEY) if effect is Effect.READ else ""
    found = (touch for path in named or ["."] for touch in touch_chosen(path, chosen))
    return CommandReading((*(Touch(path, effect) for path in named), *found))


def _ran(command: str, environment: Mapping[str, str]) -> CommandReading:
    here = {"PWD": "", "OLDPWD": UNKNOWN}
    return read_command(command, {**environment, **here})


def _act(payload: Mapping[str, Any]) -> ToolAct | None:
    """Return what the tool does; one host's events for a single tool do not name it."""
    if name := _text(payload, "tool_name"):
        return TOOLS.get(name)
    match _text(payload, "hook_event_name"):
        case "beforeShellExecution":
            return ToolAct.RUN
        case "beforeReadFile":
            return ToolAct.READ
        case "afterFileEdit":
            return ToolAct.WRITE
    return None


def _text(payload: Mapping[str, Any], key: str) -> str:
    value = payload.get(key)
    return value if isinstance(value, str) else ""


def _number(payload: Mapping[str, Any], key: str) -> int:
    value = payload.get(key)
    return value if isinstance(value, int) else 0


LONGEST = 9_000
"""Characters; hosts move a text of more than 10,000 out of the context."""
REFUSED = 2
"""Exit code that a host takes as a refusal; never used by accident."""

_HEARD = frozenset({
    "session-start", "user-prompt-submit", "pre-tool-use", "post-tool-use", "post-tool-use-failure",
    "subagent-start",
})  # fmt: skip
"""Events at which a host adds text to the agent's context."""


class HookAnswer(NamedTuple):
    """Answer of a hook."""

    refusal: str = ""
    """Why the agent may not act, or not yet, and what it should do instead; empty when it may."""
    context: str = ""
    """Additional text for the agent."""
    note: str = ""
    """Information for its user; never reaches the agent."""


class HookOutput(NamedTuple):
    """Output for the host."""

    stdout: Mapping[str, Any]
    """The object on stdout."""
    complaint: str = ""
    """The text on stderr."""
    exit_code: int = 0


def output_of(event: str, host: str, answer: HookAnswer) -> HookOutput:
    """Return an answer in the form of a host."""
    refusal = _cut(answer.refusal) if AGENT_HOOK_BY_NAME[event].may_block else ""
    context = _cut(answer.context) if event in _HEARD else ""
    if host == "cursor":
        return HookOutput(_format_for_cursor(event, refusal, context), answer.note)
    if host == "codex" and event == "pre-tool-use":
        refusal = refusal.removesuffix(".")  # it adds ". Command: …"
    if event == "task-completed" and refusal:
        return HookOutput({}, refusal, REFUSED)
    return HookOutput(_format_for_claude(event, refusal, context), answer.note)


def _format_for_claude(event: str, refusal: str, context: str) -> dict[str, Any]:
    """Return the form that two hosts take: one's schema is the closed part of the other's."""
    if refusal and event != "pre-tool-use":
        return {"decision": "block", "reason": refusal}
    denied = {"permissionDecision": "deny", "permissionDecisionReason": refusal} if refusal else {}
    added = {"additionalContext": context} if context else {}
    if not denied and not added:
        return {}
    return {
        "hookSpecificOutput": {"hookEventName": AGENT_HOOK_BY_NAME[event].event, **denied, **added}
    }


def _format_for_cursor(event: str, refusal: str, context: str) -> dict[str, Any]:
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
