"""Answers a hook with the standard library alone where nothing of ours is touched, and never fails
its host.

A host runs this before and after each tool of each agent, so that most answers must cost no more
than an interpreter. Whatever goes wrong is told on stderr and is exit 0: hosts take 2 for a
refusal.
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
    PATHS,
    PLANNING,
    RESOURCE_READERS,
    agent_in,
    as_names,
    event_named,
    find_root,
    first_text,
    folder_of,
    has_tree,
    host_of,
    is_hosts_own,
    is_mcp,
    is_one_of_ours,
    may_destroy,
    options_of,
    read_command_of,
    read_given,
    root_of,
    texts_of,
    with_role,
)
from yolo_fs.core.foreign_json import parse
from yolo_fs.system.heartbeats import active_agent, append_heartbeat
from yolo_fs.system.warm_path import HOOK_IN_FULL, own_folder, quick_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself would cost a third of what an answer may cost
    from collections.abc import Callable, Mapping, Sequence

    from yolo_fs.cli.hook_question import Answer, Asked, Question

GUARD = "pre-tool-use"
"""The event whose answer may keep a tool from running."""
HANDOFF = "HANDOFF.md"
DIRECTIVES = "apps/web/.local/directives"
_MAY_REACH_THE_TREE = (
    r"(?m)\.(?:dept|handoff|escalation)-|state\.json|-delete\b|-exec"
    r"|^(?>.*?\b(?:rm|rimraf|mv)\b).*?\s[\"']?(?:\.|/|~|\*|\$|`)"
    r"|^(?>.*?\bgit\b).*?(?:--no-veri|(?i:core\.hookspath))"
    r"|^(?>.*?\bgit\b)(?>.*?\bcommit\b).*?\s-[a-z]*n"
)
"""Words by which a command may reach files of the planning tree without its name, or skip our git
hooks."""
_READERS = ("Read", "NotebookRead", "Grep", "Glob")


class OutOfTimeError(BaseException):
    """Passes by whoever catches what is an error: there is no time to mend anything."""


def main(arguments: Sequence[str]) -> int:
    """Answer one hook: print one object, and return the exit code."""
    said: Question
    try:
        event, host, start = options_of(arguments)
        data = hook_question.read_input()
        asked, note = understand(data, event, host, start)
        if asked is None and _is_unread(data, event, start):
            from yolo_fs.cli.hook_late import answer_unread

            said, complaint, code = answer_unread(host, note)
        else:
            said, complaint, code = in_time(asked) if asked else ({}, note, 0)
    except Exception as defect:  # whatever it is, it is ours and not the session's
        said, complaint, code = {}, f"yolo-fs hook: {type(defect).__name__}: {defect!s:.300}", 0
    try:
        if complaint and sys.stderr is not None:
            sys.stderr.buffer.write(f"{complaint}\n".encode("utf-8", "backslashreplace"))
            sys.stderr.flush()
        print(json.dumps(said), flush=True)
    except OSError:  # the daemon is not listening
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return code


def main_in_full(arguments: Sequence[str]) -> int:
    """In the observer: print the answer to a question on stdin, a list of three parts."""
    from yolo_fs.cli.hook_full import fully

    event, host, cwd = arguments
    said: Answer
    try:  # six times as much: what is no ASCII is written out
        told = parse(sys.stdin.buffer.read(), 6 * LIMIT_BYTES, DEEPEST)
        said = fully(event, host, cwd, told) if event in NEEDS else ({}, _unknown(event), 0)
    except (ValueError, RecursionError) as error:
        said = {}, f"yolo-fs hook: nothing was checked: {error!s:.100}", 0
    print(json.dumps(said))
    return 0


def answer(data: bytes, event: str = "", host: str = "", start: str = "") -> Answer:
    """Return the object for stdout, the text for stderr and the exit code."""
    asked, note = understand(data, event, host, start)
    return _fully(asked) if asked and is_needed(asked) else ({}, note, 0)


def is_needed(asked: Asked) -> bool:
    """Return whether anything of ours is touched."""
    event, _, cwd, told = asked
    root = root_of(told, cwd)
    return bool(root) and NEEDS[event](told, cwd, root)


def understand(data: bytes, event: str, host: str, start: str) -> tuple[Asked | None, str]:
    """Return event, host, directory and input; None and a complaint where there is no question.

    What the input says is not looked at.
    """
    try:
        said = parse(data, LIMIT_BYTES, DEEPEST) if data.strip() else {}
        told, why = as_names(said, data), "stdin is not a JSON object"
    except (ValueError, RecursionError) as error:
        told, why = None, f"stdin is not a JSON object that can be read, {error!s:.100}"
    if not isinstance(told, dict):
        return None, f"yolo-fs hook: {why}; nothing was checked"
    named = event_named(event) or event_named(told.get("hook_event_name"))
    if named not in NEEDS:
        return None, _unknown(event or str(told.get("hook_event_name", "")))
    if is_hosts_own(told):
        return None, ""
    told = with_role(told)
    cwd = folder_of(told, start)
    root = root_of(told, cwd)
    if root and has_tree(told, cwd, root):
        _note_life(told, named, root)
    return (named, host or host_of(told), cwd, told), ""


def _unknown(event: str) -> str:
    return f"yolo-fs hook: no event {event[:80]!r}; nothing done"


_NAMED = r'"%s"\s{0,9}:\s{0,9}"([^"\\]{0,200})"'


def _is_unread(data: bytes, event: str, start: str) -> bool:
    """Return whether a guard is asked, where there is a planning tree, about a tool that may write
    or run, or that cannot be told: the agent decides how large and how deep it asks.
    """
    if not data.strip() or not has_tree({}, "", find_root(os.path.abspath(start or os.curdir))):
        return False
    text = data[:LIMIT_BYTES].decode("utf-8", "replace")
    named = re.search(_NAMED % "hook_event_name", text)
    tools = set(re.findall(_NAMED % "tool_name", text))
    is_reader = bool(tools) and tools.issubset(_READERS) and len(data) <= LIMIT_BYTES
    return (event_named(event) or event_named(named[1] if named else "")) == GUARD and not is_reader


def in_time(asked: Asked) -> Answer:
    """Answer in full, by the observer if any; a guard, before the host goes on without it."""
    if asked[0] != GUARD:
        return _where_needed(asked)

    def end(_number: int, _frame: object) -> None:
        raise OutOfTimeError

    before = _signal.signal(_signal.SIGALRM, end)
    try:
        _signal.setitimer(_signal.ITIMER_REAL, hook_question.LIMIT_S)
        try:
            return _where_needed(asked)
        finally:
            _signal.setitimer(_signal.ITIMER_REAL, 0)
            _signal.signal(_signal.SIGALRM, before)
    except (OutOfTimeError, MemoryError, RecursionError):
        return _answer_late(asked)
    except Exception as defect:
        return _answer_late(
            asked, f"the whole check failed, {type(defect).__name__}: {defect!s:.300}"
        )


def _where_needed(asked: Asked) -> Answer:
    return (_by_observer(asked) or _fully(asked)) if is_needed(asked) else ({}, "", 0)


def _answer_late(asked: Asked, failure: str = "") -> Answer:
    from yolo_fs.cli.hook_late import answer_late

    return answer_late(asked, failure)


def _by_observer(asked: Asked) -> Answer | None:
    """Return what the observer answers, None without one."""
    from yolo_fs.system.ask import ask

    event, host, cwd, told = asked
    given = json.dumps(told).encode()
    answer = ask((HOOK_IN_FULL, event, host, cwd), cwd, lambda: given)
    if answer is None or answer.code != 0:
        return None
    said, complaint, code = json.loads(answer.of(1))
    return said, complaint, code


def _fully(asked: Asked) -> Answer:
    from yolo_fs.cli.hook_full import fully  # the rest costs ten times as much

    return fully(*asked)


def _note_life(told: Question, named: str, root: str) -> None:
    """Record a heartbeat of this agent; one without any for long counts as disappeared."""
    session = first_text(told, "session_id", "conversation_id")
    agent = agent_in(told) or active_agent(root)
    instance = first_text(told, "agent_id") or session or agent
    if instance and (folder := own_folder(root)):
        append_heartbeat(folder, named, agent, instance, session)


def _stops(told: Question, cwd: str, root: str) -> bool:
    return has_tree(told, cwd, root) and told.get("stop_hook_active") is not True


def _before(told: Question, cwd: str, root: str) -> bool:
    given = read_given(told)
    if may_destroy(given) and has_tree(told, cwd, root):
        return True
    if is_mcp(told) and has_tree(told, cwd, root) and _is_argument(given, cwd, root):
        return True
    if _is_named(given, cwd) or is_one_of_ours(told, root):
        return True
    if told.get("tool_name") in (*_READERS, *RESOURCE_READERS):
        return False
    found = _handed_over(root)
    return (bool(found) and not _is_accepted(told, root, found)) or _has_own_roots(root)


def _after(told: Question, cwd: str, _root: str) -> bool:
    return _is_named(read_given(told), cwd)


def _is_named(given: Question, cwd: str) -> bool:
    """Return whether a path leads into the planning tree, or a command speaks of it."""
    for key in PATHS:
        path = given.get(key)
        if isinstance(path, str) and path:
            full = os.path.realpath(os.path.join(cwd, os.path.expanduser(path)))
            if f"/{PLANNING}" in full or full.endswith(f"/{HANDOFF}"):
                return True
    text = read_command_of(given).replace("\\\n", " ")
    return bool(text) and (
        PLANNING in text
        or HANDOFF in text
        or f"/{PLANNING}" in cwd
        or re.search(_MAY_REACH_THE_TREE, text) is not None
    )


def _is_argument(given: Question, cwd: str, root: str) -> bool:
    """Return whether an argument of a server's tool, however deep, may name a file of ours."""
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


def _handed_over(root: str) -> list[str]:
    """Return the handoffs that lie about, and where a session lacks its own."""
    sessions = os.path.join(root, DIRECTIVES)
    below = (step for start in (os.path.join(root, PLANNING), sessions) for step in os.walk(start))
    return [
        os.path.join(folder, HANDOFF)
        for folder, _, names in below
        if HANDOFF in names or os.path.dirname(folder) == sessions
    ]


def _is_accepted(told: Question, root: str, found: list[str]) -> bool:
    """Return whether the last verdict holds: editing was allowed, and all it saw is the same."""
    own = own_folder(root)
    note = os.path.join(own, "handoff-accepted.json")
    if not own or not os.path.isfile(note):
        return False
    try:
        with open(note, "rb") as file:
            kept = parse(file.read(1 << 20), 1 << 20)
        stamps, roles = kept["stamps"], kept["roles"]
        agent = agent_in(told) or active_agent(root)
        is_same = all(quick_stamp(path) == stamp for path, stamp in stamps.items())
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return False
    return is_same and agent not in roles and set(found) <= stamps.keys()


def _has_own_roots(root: str) -> bool:
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
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


def _begins(told: Question, cwd: str, root: str) -> bool:
    """Return whether a session gets its brief; the one that a compaction owed it is this."""
    _was_compacted(told, cwd, root)
    return has_tree(told, cwd, root)


def _is_compacted(told: Question, folder_of: str, root: str) -> bool:
    from yolo_fs.system.heartbeats import mark_compacted

    if has_tree(told, "", root) and (folder := own_folder(root)):
        mark_compacted(folder, first_text(told, "session_id", "conversation_id"))
    return False


def _was_compacted(told: Question, folder_of: str, root: str) -> bool:
    from yolo_fs.system.heartbeats import take_compacted

    return bool(folder := own_folder(root)) and take_compacted(
        folder, first_text(told, "session_id", "conversation_id")
    )


def _never(_told: Question, folder_of: str, _root: str) -> bool:
    """Say nothing: such an event is a sign of life and no more."""
    return False


NEEDS: Mapping[str, Callable[[Question, str, str], bool]] = {
    "post-compact": _is_compacted,
    "user-prompt-submit": _was_compacted,
    "session-end": _never,
    "session-start": _begins,
    "subagent-start": has_tree,
    "pre-tool-use": _before,
    "post-tool-use": _after,
    "post-tool-use-failure": _after,
    "stop": _stops,
    "subagent-stop": _stops,
    "task-completed": has_tree,
}
