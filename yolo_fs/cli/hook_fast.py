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

from yolo_fs.cli.entry import HOOK_IN_FULL
from yolo_fs.edges.heartbeats import active_agent, append_heartbeat
from yolo_fs.edges.warm_path import own_folder, quick_stamp
from yolo_fs.foreign_json import parse

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself would cost a third of what an answer may cost
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Question = Mapping[str, Any]
    Asked = tuple[str, str, str, Question]
    """Event, host, directory and input."""
    Answer = tuple[Question, str, int]
    """What goes to stdout and stderr, and the exit code."""

LIMIT_S = 45.0
"""How long a guard may take: the host's own limit less what it takes to start and to end on a
loaded machine; a test keeps it near the table of hooks."""
LIMIT_BYTES = 64 << 20
"""Longest input that an agent host may send."""
QUIET_S = 0.05
"""How long nothing more comes after an object that is whole."""
DEEPEST = 500
"""Objects and arrays within each other in such an input: what tools are given may be odd."""
GUARD = "pre-tool-use"
"""The event whose answer may keep a tool from running."""
AGENT = "YOLO_FS_AGENT"
ROLE = "YOLO_FS_ROLE"
"""Variable by which a session says who it is, where its host does not."""
PLANNING = ".yolo-planning"
HANDOFF = "HANDOFF.md"
DIRECTIVES = "apps/web/.local/directives"
ALIASES = {
    "before-submit-prompt": "user-prompt-submit",
    "before-shell-execution": "pre-tool-use",
    "before-read-file": "pre-tool-use",
    "after-file-edit": "post-tool-use",
}
"""Events of one host that ask what another event asks."""
AGENTS = frozenset(
    (
        "analyze", "architect", "critic", "debugger", "dev", "documenter", "integration-gate",
        "lead", "owner", "po", "qa", "qa-code", "questionary", "roadmap", "scout", "security",
        "senior", "tester",
    )
)  # fmt: skip
"""Names of the roster without the prefixes of departments; a test keeps them equal, since the
roster costs 25 ms."""
PATHS = ("file_path", "path", "notebook_path", "target_file")
_MAY_REACH_THE_TREE = (
    r"(?m)\.(?:dept|handoff|escalation)-|state\.json|-delete\b|-exec"
    r"|^(?>.*?\b(?:rm|rimraf|mv)\b).*?\s[\"']?(?:\.|/|~|\*|\$|`)"
    r"|^(?>.*?\bgit\b).*?(?:--no-veri|(?i:core\.hookspath))"
    r"|^(?>.*?\bgit\b)(?>.*?\bcommit\b).*?\s-[a-z]*n"
)
"""Words by which a command may reach files of the planning tree without its name, or skip our git
hooks."""
_MAY_DESTROY = (
    r"(?m)^(?>.*?\bgit\b).*?\b(?:reset|clean|checkout|switch|restore|stash)\b"
    r"|\b(?:rm|rimraf|trash)\b"
)
_RESOURCE_READERS = ("ReadMcpResourceTool", "read_mcp_resource", "FetchMcpResource")
_READERS = ("Read", "NotebookRead", "Grep", "Glob")
_MCP = ("mcp__", "MCP:")
"""How the names of servers' tools begin."""
_MOST_TEXTS = 1_000
"""Arguments of a server's tool that are looked at here; more than that are left to the rest."""


class OutOfTimeError(BaseException):
    """Passes by whoever catches what is an error: there is no time to mend anything."""


def main(arguments: Sequence[str]) -> int:
    """Answer one hook: print one object, and return the exit code."""
    said: Question
    try:
        event, host, start = _options(arguments)
        data = _input()
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
    from yolo_fs.cli.hook import fully

    event, host, cwd = arguments
    said: Answer
    try:  # six times as much: what is no ASCII is written out
        told = parse(sys.stdin.buffer.read(), 6 * LIMIT_BYTES, DEEPEST)
        said = fully(event, host, cwd, told)
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
        told, why = _as_names(said, data), "stdin is not a JSON object"
    except (ValueError, RecursionError) as error:
        told, why = None, f"stdin is not a JSON object that can be read, {error!s:.100}"
    if not isinstance(told, dict):
        return None, f"yolo-fs hook: {why}; nothing was checked"
    named = _event(event) or _event(told.get("hook_event_name"))
    if named not in NEEDS:
        name = (event or str(told.get("hook_event_name", "")))[:80]
        return None, f"yolo-fs hook: no event {name!r}; nothing done"
    if _is_hosts_own(told):
        return None, ""
    told = _with_role(told)
    cwd = _cwd(told, start)
    root = root_of(told, cwd)
    if root and _has_tree(told, cwd, root):
        _note_life(told, named, root)
    return (named, host or _host(told), cwd, told), ""


_NAMED = r'"%s"\s{0,9}:\s{0,9}"([^"\\]{0,200})"'


def _is_unread(data: bytes, event: str, start: str) -> bool:
    """Return whether a guard is asked, where there is a planning tree, about a tool that may write
    or run, or that cannot be told: the agent decides how large and how deep it asks.
    """
    if not data.strip() or not _has_tree({}, "", find_root(os.path.abspath(start or os.curdir))):
        return False
    text = data[:LIMIT_BYTES].decode("utf-8", "replace")
    named = re.search(_NAMED % "hook_event_name", text)
    tools = set(re.findall(_NAMED % "tool_name", text))
    is_reader = bool(tools) and tools.issubset(_READERS) and len(data) <= LIMIT_BYTES
    return (_event(event) or _event(named[1] if named else "")) == GUARD and not is_reader


_NO_NAME = (b"\\ud", b"\\uD", b"\\u0000", b"\xed", b"\0")


def _as_names(told: Any, data: bytes) -> Any:
    """Drop NULs, as a shell does, and replace halves of surrogate pairs, as a host does for one."""
    if not any(sign in data for sign in _NO_NAME):
        return told
    text = json.dumps(told, ensure_ascii=False)
    text = re.sub(r"(\\\\)|\\u0000", r"\1", text)
    # The others stand for the bytes of a name that is no UTF-8: see os.fsdecode.
    text = re.sub("[\ud800-\udc7f\udd00-\udfff]", "\ufffd", text)
    return json.loads(text)


def in_time(asked: Asked) -> Answer:
    """Answer in full, by the observer if any; a guard, before the host goes on without it."""
    if asked[0] != GUARD:
        return _where_needed(asked)

    def end(_number: int, _frame: object) -> None:
        raise OutOfTimeError

    before = _signal.signal(_signal.SIGALRM, end)
    try:
        _signal.setitimer(_signal.ITIMER_REAL, LIMIT_S)
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
    from yolo_fs.edges.ask import ask

    event, host, cwd, told = asked
    given = json.dumps(told).encode()
    answer = ask((HOOK_IN_FULL, event, host, cwd), cwd, lambda: given)
    if answer is None or answer.code != 0:
        return None
    said, complaint, code = json.loads(answer.of(1))
    return said, complaint, code


def _fully(asked: Asked) -> Answer:
    from yolo_fs.cli.hook import fully  # the rest costs ten times as much

    return fully(*asked)


def _options(arguments: Sequence[str]) -> tuple[str, str, str]:
    event, host, start = "", "", ""
    words = iter(arguments)
    for word in words:
        name, _, value = word.partition("=")
        if name == "--host":
            host = value or next(words, "")
        elif name == "-C":
            start = next(words, "")
        elif not word.startswith("-"):
            event = event or word
    return event, host, start


def _input() -> bytes:
    """Return what the host sends, to its end, or until an object is whole and nothing more comes:
    some hosts keep the stream open while they wait for the answer.
    """
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    try:
        stream = sys.stdin.fileno()
    except (OSError, ValueError):  # what a client of the observer sends is there as a whole
        return sys.stdin.buffer.read(LIMIT_BYTES + 1)
    data = bytearray()
    while len(data) <= LIMIT_BYTES and (more := os.read(stream, 1 << 20)):
        data += more
        if more.rstrip().endswith(b"}") and _is_quiet(stream) and _is_whole(data):
            break
    return bytes(data)  # what is larger is understood by nobody


def _is_quiet(stream: int) -> bool:
    """Return whether nothing comes for a moment, not even the end."""
    import select

    return not select.select([stream], (), (), QUIET_S)[0] if stream < 1024 else False


def _is_whole(data: bytearray) -> bool:
    try:
        return isinstance(parse(bytes(data), LIMIT_BYTES, DEEPEST), dict)
    except (ValueError, RecursionError):
        return False


def _event(name: object) -> str:
    """Return `pre-tool-use` for that name as well as for PreToolUse and preToolUse."""
    if not isinstance(name, str):
        return ""
    kebab = "".join(f"-{char.lower()}" if char.isupper() else char for char in name).strip("-")
    return ALIASES.get(kebab, kebab)


def _host(told: Question) -> str:
    return "cursor" if "cursor_version" in told or "conversation_id" in told else "claude"


def _cwd(told: Question, start: str) -> str:
    roots = told.get("workspace_roots")
    named = told.get("cwd") or (roots[0] if isinstance(roots, list) and roots else "")
    folder = os.path.abspath(
        named if isinstance(named, str) and named and not start else start or os.curdir
    )
    given = read_given(told)
    own = given.get("workdir") if read_command_of(given) else ""
    return os.path.abspath(os.path.join(folder, own)) if isinstance(own, str) and own else folder


def root_of(told: Question, cwd: str) -> str:
    """Return the folder whose rules hold: that of where the agent stands, else, where no team works
    there, the first of a file that a tool names.
    """
    root = find_root(cwd)
    if root and _has_tree(told, cwd, root):
        return root
    given = read_given(told)
    named = [value for key in PATHS if isinstance(value := given.get(key), str)]
    named += re.findall(_WORD, read_command_of(given)[:_LONGEST_SEARCHED])
    for word in dict.fromkeys(named[:_MOST_WORDS]):
        path = os.path.abspath(os.path.join(cwd, os.path.expanduser(word)))
        other = find_root(path) if "\0" not in path and path.count("/") < _DEEPEST_PATH else ""
        if other and _has_tree(told, cwd, other):
            return other
    return root


_WORD = r"[^\s'\"=;|&<>()`]+"
_MOST_WORDS, _LONGEST_SEARCHED, _DEEPEST_PATH = 200, 1 << 16, 100
"""Limits within which a command is searched for the folder of a team."""


def find_root(folder: str) -> str:
    """Return the nearest folder that is a repository or holds a planning tree."""
    while True:
        if any(os.path.exists(os.path.join(folder, name)) for name in (".git", PLANNING)):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above


def _is_hosts_own(told: Question) -> bool:
    """Return whether a fork of the host's own asks, such as that of its compaction."""
    return bool(told.get("agent_id")) and told.get("agent_type") == ""


def _with_role(told: Question) -> Question:
    """Return an input that names the session's role, where its environment does and no host."""
    role = os.environ.get(AGENT) or os.environ.get(ROLE, "")
    return told if not role or _agent_in(told) else {**told, "agent_type": role}


def _agent_in(told: Question) -> str:
    return _first(told, "agent_type", "subagent_type", "teammate_name")


def _note_life(told: Question, named: str, root: str) -> None:
    """Record a heartbeat of this agent; one without any for long counts as disappeared."""
    session = _first(told, "session_id", "conversation_id")
    agent = _agent_in(told) or active_agent(root)
    instance = _first(told, "agent_id") or session or agent
    if instance and (folder := own_folder(root)):
        append_heartbeat(folder, named, agent, instance, session)


def _first(told: Question, *keys: str) -> str:
    return next((value for key in keys if isinstance(value := told.get(key), str) and value), "")


def _has_tree(_told: Question, _cwd: str, root: str) -> bool:
    return os.path.isdir(os.path.join(root, PLANNING))


def _stops(told: Question, cwd: str, root: str) -> bool:
    return _has_tree(told, cwd, root) and told.get("stop_hook_active") is not True


def _before(told: Question, cwd: str, root: str) -> bool:
    given = read_given(told)
    if may_destroy(given) and _has_tree(told, cwd, root):
        return True
    if is_mcp(told) and _has_tree(told, cwd, root) and _is_argument(given, cwd, root):
        return True
    if _is_named(given, cwd) or is_one_of_ours(told, root):
        return True
    if told.get("tool_name") in (*_READERS, *_RESOURCE_READERS):
        return False
    found = _handed_over(root)
    return (bool(found) and not _is_accepted(told, root, found)) or _has_own_roots(root)


def _after(told: Question, cwd: str, _root: str) -> bool:
    return _is_named(read_given(told), cwd)


def read_given(told: Question) -> Question:
    given = told.get("tool_input")
    return given if isinstance(given, dict) else told


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


def is_mcp(told: Question) -> bool:
    name = told.get("tool_name")
    return isinstance(name, str) and (name.startswith(_MCP) or name in _RESOURCE_READERS)


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


def texts_of(given: Question) -> list[str] | None:
    """Return the texts among the arguments of a server's tool, however deep; None of very many."""
    left, seen, texts = list(given.values()), 0, []
    while left:
        value = left.pop()
        seen += 1
        if seen > _MOST_TEXTS:
            return None
        if isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list):
            left += value
        elif isinstance(value, str):
            texts.append(value)
    return texts


def may_destroy(given: Question) -> bool:
    """Return whether a command has words by which one may destroy what no commit has."""
    command = read_command_of(given)
    return bool(command) and re.search(_MAY_DESTROY, command) is not None


def read_command_of(given: Question) -> str:
    command = given.get("command", given.get("cmd"))
    if isinstance(command, list):
        return " ".join(map(str, command))
    return command if isinstance(command, str) else ""


def is_one_of_ours(told: Question, root: str) -> bool:
    """Return whether an agent of the company asks, for whom rules hold everywhere."""
    if not os.path.isdir(os.path.join(root, PLANNING)):
        return False
    name = told.get("agent_type") or told.get("subagent_type")
    if not isinstance(name, str) or not name:
        return os.path.exists(os.path.join(root, PLANNING, ".active-agent"))
    short = name.rpartition(":")[2].lower().removeprefix("yolo-").rstrip("0123456789").rstrip("-")
    return short in AGENTS or short.partition("-")[2] in AGENTS or " " in name or "_" in name


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
        agent = _agent_in(told) or active_agent(root)
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
    return _has_tree(told, cwd, root)


def _is_compacted(told: Question, _cwd: str, root: str) -> bool:
    from yolo_fs.edges.heartbeats import mark_compacted

    if _has_tree(told, "", root) and (folder := own_folder(root)):
        mark_compacted(folder, _first(told, "session_id", "conversation_id"))
    return False


def _was_compacted(told: Question, _cwd: str, root: str) -> bool:
    from yolo_fs.edges.heartbeats import take_compacted

    return bool(folder := own_folder(root)) and take_compacted(
        folder, _first(told, "session_id", "conversation_id")
    )


def _never(_told: Question, _cwd: str, _root: str) -> bool:
    """Say nothing: such an event is a sign of life and no more."""
    return False


NEEDS: Mapping[str, Callable[[Question, str, str], bool]] = {
    "post-compact": _is_compacted,
    "user-prompt-submit": _was_compacted,
    "session-end": _never,
    "session-start": _begins,
    "subagent-start": _has_tree,
    "pre-tool-use": _before,
    "post-tool-use": _after,
    "post-tool-use-failure": _after,
    "stop": _stops,
    "subagent-stop": _stops,
    "task-completed": _has_tree,
}
