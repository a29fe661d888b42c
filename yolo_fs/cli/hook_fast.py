"""Answers a hook with the standard library alone if it touches nothing of ours, and never fails its
host.

A host runs this before and after each tool of each agent, so most answers must cost no more than an
interpreter. Any internal failure is reported on stderr with exit 0: hosts take 2 for a refusal.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import json
import os
import re
import sys

from yolo_fs.cli import hook_question
from yolo_fs.cli.hook_question import (
    DEEPEST,
    LIMIT_BYTES,
    PLANNING,
    as_names,
    event_named,
    find_root,
    first_text,
    folder_of,
    has_tree,
    host_of,
    is_hosts_own,
    is_one_of_ours,
    may_destroy,
    options_of,
    root_of,
    short_name,
    texts_of,
    with_role,
)
from yolo_fs.core.foreign_json import parse
from yolo_fs.core.tool_calls import (
    PATH_KEYS,
    RESOURCE_READERS,
    agent_in,
    command_in,
    given_to,
    is_mcp,
)
from yolo_fs.system.heartbeats import active_agent, append_heartbeat
from yolo_fs.system.warm_path import HOOK_IN_FULL, own_folder, quick_stamp, user_folder

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself would cost a third of what an answer may cost
    from collections.abc import Callable, Mapping, Sequence

    from yolo_fs.cli.hook_question import Answer, Asked, Question

GUARD = "pre-tool-use"
"""The event whose answer may block a tool."""
HANDOFF = "HANDOFF.md"
DIRECTIVES = "apps/web/.local/directives"
_MAY_REACH_THE_TREE = (
    r"(?m)\.(?:dept|handoff|escalation)-|state\.json|-delete\b|-exec"
    r"|^(?>.*?\b(?:rm|rimraf|mv)\b).*?\s[\"']?(?:\.|/|~|\*|\$|`)"
    r"|^(?>.*?\bgit\b).*?(?:--no-veri|(?i:core\.hookspath))"
    r"|^(?>.*?\bgit\b)(?>.*?\bcommit\b).*?\s-[a-z]*n"
)
"""Patterns of commands that may reach files of the planning tree without naming it, or bypass our
git hooks."""
_OF_PLAN = r"\b[0-9]{2}-[0-9]{2}\.[a-z]+\.jsonl\b"
_READERS = ("Read", "NotebookRead", "Grep", "Glob")


class OutOfTimeError(BaseException):
    """Not an Exception, so that no handler of errors catches it: there is no time left to
    recover.
    """


def main(arguments: Sequence[str]) -> int:
    """Answer one hook: print one object, and return the exit code."""
    output: Question
    try:
        event, host, start = options_of(arguments)
        data = hook_question.read_input()
        request, note = understand(data, event, host, start)
        if request is None and _is_unread(data, event, start):
            from yolo_fs.cli.hook_late import answer_unread

            output, complaint, code = answer_unread(host, note)
        else:
            output, complaint, code = in_time(request) if request else ({}, note, 0)
    except Exception as defect:  # whatever it is, it is ours and not the session's
        output, complaint, code = {}, f"yolo-fs hook: {type(defect).__name__}: {defect!s:.300}", 0
    try:
        if complaint and sys.stderr is not None:
            sys.stderr.buffer.write(f"{complaint}\n".encode("utf-8", "backslashreplace"))
            sys.stderr.flush()
        print(json.dumps(output), flush=True)
    except OSError:  # the daemon is not listening
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return code


def main_in_full(arguments: Sequence[str]) -> int:
    """In the observer process: print the answer to a question on stdin, a list of three parts."""
    from yolo_fs.cli.hook_full import fully

    event, host, cwd = arguments
    output: Answer
    try:  # six times as much: what is no ASCII is written out
        payload = parse(sys.stdin.buffer.read(), 6 * LIMIT_BYTES, DEEPEST)
        output = fully(event, host, cwd, payload) if event in NEEDS else ({}, _unknown(event), 0)
    except (ValueError, RecursionError) as error:
        output = {}, f"yolo-fs hook: nothing was checked: {error!s:.100}", 0
    print(json.dumps(output))
    return 0


def answer(data: bytes, event: str = "", host: str = "", start: str = "") -> Answer:
    """Return the object for stdout, the text for stderr and the exit code."""
    request, note = understand(data, event, host, start)
    return _fully(request) if request and is_needed(request) else ({}, note, 0)


def is_needed(request: Asked) -> bool:
    """Return whether anything of ours is touched."""
    event, _, cwd, payload = request
    root = root_of(payload, cwd)
    return bool(root) and NEEDS[event](payload, cwd, root)


def understand(data: bytes, event: str, host: str, start: str) -> tuple[Asked | None, str]:
    """Return event, host, directory and input; None and an error text if there is no question.

    The content of the input is not checked.
    """
    try:
        parsed = parse(data, LIMIT_BYTES, DEEPEST) if data.strip() else {}
        payload, why = as_names(parsed, data), "stdin is not a JSON object"
    except (ValueError, RecursionError) as error:
        payload, why = None, f"stdin is not a JSON object that can be read, {error!s:.100}"
    if not isinstance(payload, dict):
        return None, f"yolo-fs hook: {why}; nothing was checked"
    named = event_named(event) or event_named(payload.get("hook_event_name"))
    if named not in NEEDS:
        return None, _unknown(event or str(payload.get("hook_event_name", "")))
    if is_hosts_own(payload):
        return None, ""
    payload = with_role(payload)
    cwd = folder_of(payload, start)
    root = root_of(payload, cwd)
    if root and has_tree(root):
        _note_life(payload, named, root)
    return (named, host or host_of(payload), cwd, payload), ""


def _unknown(event: str) -> str:
    return f"yolo-fs hook: no event {event[:80]!r}; nothing done"


_NAMED = r'"%s"\s{0,9}:\s{0,9}"([^"\\]{0,200})"'


def _is_unread(data: bytes, event: str, start: str) -> bool:
    """Return whether a guard is asked about a tool that may write or run, or is unknown.

    This applies only where there is a planning tree. The agent controls how large and how deep the
    input is.
    """
    if not data.strip() or not has_tree(find_root(os.path.abspath(start or os.curdir))):
        return False
    text = data[:LIMIT_BYTES].decode("utf-8", "replace")
    named = re.search(_NAMED % "hook_event_name", text)
    tools = set(re.findall(_NAMED % "tool_name", text))
    is_reader = bool(tools) and tools.issubset(_READERS) and len(data) <= LIMIT_BYTES
    return (event_named(event) or event_named(named[1] if named else "")) == GUARD and not is_reader


def in_time(request: Asked) -> Answer:
    """Answer in full, through the observer if it runs; a guard answers before the host's
    timeout.
    """
    if request[0] != GUARD:
        return _answer_if_needed(request)

    def end(_number: int, _frame: object) -> None:
        raise OutOfTimeError

    before = _signal.signal(_signal.SIGALRM, end)
    try:
        _signal.setitimer(_signal.ITIMER_REAL, hook_question.LIMIT_S)
        try:
            return _answer_if_needed(request)
        finally:
            _signal.setitimer(_signal.ITIMER_REAL, 0)
            _signal.signal(_signal.SIGALRM, before)
    except (OutOfTimeError, MemoryError, RecursionError):
        return _answer_late(request)
    except Exception as defect:
        return _answer_late(
            request, f"the whole check failed, {type(defect).__name__}: {defect!s:.300}"
        )


def _answer_if_needed(request: Asked) -> Answer:
    return (_ask_observer(request) or _fully(request)) if is_needed(request) else ({}, "", 0)


def _answer_late(request: Asked, failure: str = "") -> Answer:
    from yolo_fs.cli.hook_late import answer_late

    return answer_late(request, failure)


def _ask_observer(request: Asked) -> Answer | None:
    """Return the observer's answer; None without an observer."""
    from yolo_fs.system.ask import ask

    event, host, cwd, payload = request
    given = json.dumps(payload).encode()
    answer = ask((HOOK_IN_FULL, event, host, cwd), cwd, lambda: given)
    if answer is None or answer.code != 0:
        return None
    output, complaint, code = json.loads(answer.of(1))
    return output, complaint, code


def _fully(request: Asked) -> Answer:
    from yolo_fs.cli.hook_full import fully  # the rest costs ten times as much

    return fully(*request)


def _note_life(payload: Question, named: str, root: str) -> None:
    """Record a heartbeat of this agent; an agent without one for too long counts as disappeared."""
    session = first_text(payload, "session_id", "conversation_id")
    agent = agent_in(payload) or active_agent(root)
    instance = first_text(payload, "agent_id") or session or agent
    if instance and (folder := own_folder(root)):
        append_heartbeat(folder, named, agent, instance, session)


def _is_in_team(_payload: Question, _cwd: str, root: str) -> bool:
    return has_tree(root)


def _stops(payload: Question, _cwd: str, root: str) -> bool:
    return has_tree(root) and payload.get("stop_hook_active") is not True


def _before(payload: Question, cwd: str, root: str) -> bool:
    given = given_to(payload)
    if may_destroy(given) and has_tree(root):
        return True
    if is_mcp(payload.get("tool_name")) and has_tree(root) and _is_argument(given, cwd, root):
        return True
    if _is_named(given, cwd) or is_one_of_ours(payload, root):
        return True
    if payload.get("tool_name") in (*_READERS, *RESOURCE_READERS):
        return False
    handoffs = _find_handoffs(root)
    return (bool(handoffs) and not _is_accepted(payload, root, handoffs)) or _has_own_roots(root)


def _after(payload: Question, cwd: str, root: str) -> bool:
    given = given_to(payload)
    return _is_named(given, cwd) or (_may_be_plan(given) and has_tree(root))


def _may_be_plan(given: Question) -> bool:
    """Return whether a path or a command names a file as an artifact of one plan is named."""
    texts = (*map(given.get, PATH_KEYS), command_in(given))
    return any(isinstance(text, str) and re.search(_OF_PLAN, text) for text in texts)


def _is_named(given: Question, cwd: str) -> bool:
    """Return whether a path leads into the planning tree, or a command mentions it."""
    for key in PATH_KEYS:
        path = given.get(key)
        if isinstance(path, str) and path:
            full = os.path.realpath(os.path.join(cwd, os.path.expanduser(path)))
            if f"/{PLANNING}" in full or full.endswith(f"/{HANDOFF}"):
                return True
    text = command_in(given).replace("\\\n", " ")
    return bool(text) and (
        PLANNING in text
        or HANDOFF in text
        or f"/{PLANNING}" in cwd
        or re.search(_MAY_REACH_THE_TREE, text) is not None
    )


def _is_argument(given: Question, cwd: str, root: str) -> bool:
    """Return whether an argument of an MCP tool, at any depth, may name a file of ours."""
    texts = texts_of(given)
    for value in texts or ():
        if PLANNING in value or HANDOFF in value or "%" in value:
            return True
        if len(value) <= 4_096:
            path = os.path.expanduser(value)
            places = (os.path.realpath(os.path.join(base, path)) for base in (cwd, root))
            if any(f"/{PLANNING}" in place for place in places):
                return True
    return texts is None


def _find_handoffs(root: str) -> list[str]:
    """Return the paths of all handoffs, and of those that a session lacks."""
    sessions = os.path.join(root, DIRECTIVES)
    top = os.path.realpath(root)
    starts = (  # a link could lead to all that is on the disk, and nobody reads through it
        start
        for start in (os.path.join(root, PLANNING), sessions)
        if os.path.realpath(start) == top + start[len(root) :]
    )
    below = (step for start in starts for step in os.walk(start))
    return [
        os.path.join(folder, HANDOFF)
        for folder, _, names in below
        if HANDOFF in names or os.path.dirname(folder) == sessions
    ]


def _is_accepted(payload: Question, root: str, handoffs: list[str]) -> bool:
    """Return whether the last verdict holds: it allowed the edit, and its inputs are unchanged."""
    own = own_folder(root)
    note = os.path.join(own, "handoff-accepted.json")
    if not own or not os.path.isfile(note):
        return False
    try:
        with open(note, "rb") as file:
            kept = parse(file.read(1 << 20), 1 << 20)
        stamps, roles = kept["stamps"], kept["roles"]
        agent = short_name(agent_in(payload) or active_agent(root))
        is_same = all(quick_stamp(path) == stamp for path, stamp in stamps.items())
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return False
    return is_same and agent not in roles and set(handoffs) <= stamps.keys()


def _has_own_roots(root: str) -> bool:
    home = user_folder("XDG_CONFIG_HOME", ".config")
    for path in (
        os.path.join(root, PLANNING, "config.json"),
        os.path.join(home, "yolo-fs", "config.json"),
    ):
        if not os.path.isfile(path):  # to open a pipe would wait for its writer
            continue
        try:
            with open(path, "rb") as file:
                if b"directive_roots" in file.read(1 << 20):
                    return True
        except OSError:
            continue
    return False


def _begins(payload: Question, cwd: str, root: str) -> bool:
    """Return whether a session gets its brief; this also settles one due after a compaction.

    Where yolo_fs was at work and the planning tree is gone, the brief says so.
    """
    _was_compacted(payload, cwd, root)
    return has_tree(root) or os.path.isdir(own_folder(root))


def _is_compacted(payload: Question, _cwd: str, root: str) -> bool:
    from yolo_fs.system.heartbeats import mark_compacted

    if has_tree(root) and (folder := own_folder(root)):
        mark_compacted(folder, first_text(payload, "session_id", "conversation_id"))
    return False


def _was_compacted(payload: Question, _cwd: str, root: str) -> bool:
    from yolo_fs.system.heartbeats import take_compacted

    return bool(folder := own_folder(root)) and take_compacted(
        folder, first_text(payload, "session_id", "conversation_id")
    )


def _never(_payload: Question, _cwd: str, _root: str) -> bool:
    """Return False: such an event is only a heartbeat."""
    return False


NEEDS: Mapping[str, Callable[[Question, str, str], bool]] = {
    "post-compact": _is_compacted,
    "user-prompt-submit": _was_compacted,
    "session-end": _never,
    "session-start": _begins,
    "subagent-start": _is_in_team,
    "pre-tool-use": _before,
    "post-tool-use": _after,
    "post-tool-use-failure": _after,
    "stop": _stops,
    "subagent-stop": _stops,
    "task-completed": _is_in_team,
}
