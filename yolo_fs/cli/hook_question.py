"""What an agent's host asks a hook, read and understood with the standard library alone."""

from __future__ import annotations

import json
import os
import re
import sys

from yolo_fs.core.foreign_json import parse

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself would cost a third of what an answer may cost
    from collections.abc import Mapping, Sequence
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
AGENT = "YOLO_FS_AGENT"
ROLE = "YOLO_FS_ROLE"
"""Variable by which a session says who it is, where its host does not."""
PLANNING = ".yolo-planning"
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
_MAY_DESTROY = (
    r"(?m)^(?>.*?\bgit\b).*?\b(?:reset|clean|checkout|switch|restore|stash)\b"
    r"|\b(?:rm|rimraf|trash)\b"
)
RESOURCE_READERS = ("ReadMcpResourceTool", "read_mcp_resource", "FetchMcpResource")
MCP_PREFIXES = ("mcp__", "MCP:")
"""How the names of servers' tools begin."""
_MOST_TEXTS = 1_000
"""Arguments of a server's tool that are looked at here; more than that are left to the rest."""


_NO_NAME = (b"\\ud", b"\\uD", b"\\u0000", b"\xed", b"\0")


def as_names(told: Any, data: bytes) -> Any:
    """Drop NULs, as a shell does, and replace halves of surrogate pairs, as a host does for one."""
    if not any(sign in data for sign in _NO_NAME):
        return told
    text = json.dumps(told, ensure_ascii=False)
    text = re.sub(r"(\\\\)|\\u0000", r"\1", text)
    # The others stand for the bytes of a name that is no UTF-8: see os.fsdecode.
    text = re.sub("[\ud800-\udc7f\udd00-\udfff]", "\ufffd", text)
    return json.loads(text)


def options_of(arguments: Sequence[str]) -> tuple[str, str, str]:
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


def read_input() -> bytes:
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


def event_named(name: object) -> str:
    """Return `pre-tool-use` for that name as well as for PreToolUse and preToolUse."""
    if not isinstance(name, str):
        return ""
    kebab = "".join(f"-{char.lower()}" if char.isupper() else char for char in name).strip("-")
    return ALIASES.get(kebab, kebab)


def host_of(told: Question) -> str:
    return "cursor" if "cursor_version" in told or "conversation_id" in told else "claude"


def folder_of(told: Question, start: str) -> str:
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
    if root and has_tree(told, cwd, root):
        return root
    given = read_given(told)
    named = [value for key in PATHS if isinstance(value := given.get(key), str)]
    named += re.findall(_WORD, read_command_of(given)[:_LONGEST_SEARCHED])
    for word in dict.fromkeys(named[:_MOST_WORDS]):
        path = os.path.abspath(os.path.join(cwd, os.path.expanduser(word)))
        other = find_root(path) if "\0" not in path and path.count("/") < _DEEPEST_PATH else ""
        if other and has_tree(told, cwd, other):
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


def is_hosts_own(told: Question) -> bool:
    """Return whether a fork of the host's own asks, such as that of its compaction."""
    return bool(told.get("agent_id")) and told.get("agent_type") == ""


def with_role(told: Question) -> Question:
    """Return an input that names the session's role, where its environment does and no host."""
    role = os.environ.get(AGENT) or os.environ.get(ROLE, "")
    return told if not role or agent_in(told) else {**told, "agent_type": role}


def agent_in(told: Question) -> str:
    return first_text(told, "agent_type", "subagent_type", "teammate_name")


def first_text(told: Question, *keys: str) -> str:
    return next((value for key in keys if isinstance(value := told.get(key), str) and value), "")


def has_tree(_told: Question, folder_of: str, root: str) -> bool:
    return os.path.isdir(os.path.join(root, PLANNING))


def read_given(told: Question) -> Question:
    given = told.get("tool_input")
    return given if isinstance(given, dict) else told


def is_mcp(told: Question) -> bool:
    name = told.get("tool_name")
    return isinstance(name, str) and (name.startswith(MCP_PREFIXES) or name in RESOURCE_READERS)


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
