"""Reads and parses a hook's request from an agent's host with the standard library alone."""

from __future__ import annotations

import json
import os
import re
import sys

from yolo_fs.core.foreign_json import parse
from yolo_fs.core.tool_calls import ANNOUNCED, PATH_KEYS, agent_in, command_in, given_to

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
"""Time limit of a guard: the host's own limit less startup and exit on a loaded machine. A test
keeps it close to the table of hooks."""
LIMIT_BYTES = 64 << 20
"""Maximum size of an agent host's input."""
QUIET_S = 0.05
"""Seconds of silence after a complete object that end the input."""
DEEPEST = 500
"""Maximum nesting of the input; the input of tools may be unusual."""
AGENT = "YOLO_FS_AGENT"
ROLE = "YOLO_FS_ROLE"
"""Environment variable with the role of a session, for hosts that do not send it."""
PLANNING = ".yolo-planning"
ALIASES = {
    "before-submit-prompt": "user-prompt-submit",
    "before-shell-execution": "pre-tool-use",
    "before-read-file": "pre-tool-use",
    "after-file-edit": "post-tool-use",
}
"""Event names of one host → the equivalent event."""
AGENTS = frozenset(
    (
        "analyze", "architect", "critic", "debugger", "dev", "documenter", "integration-gate",
        "lead", "owner", "po", "qa", "qa-code", "questionary", "roadmap", "scout", "security",
        "senior", "tester",
    )
)  # fmt: skip
"""Names of the roster without department prefixes; a test keeps them equal, since importing the
roster costs 25 ms."""
_MAY_DESTROY = (
    r"(?m)^(?>.*?\bgit\b).*?\b(?:reset|clean|checkout|switch|restore|stash)\b"
    r"|\b(?:rm|rimraf|trash)\b"
)
_MOST_TEXTS = 1_000
"""Arguments of an MCP tool that are checked here; with more, the full check is needed."""


_NO_NAME = (b"\\ud", b"\\uD", b"\\u0000", b"\xed", b"\0")


def as_names(parsed: Any, data: bytes) -> Any:
    """Drop NULs, as a shell does, and replace lone surrogates, as a host does."""
    if not any(sign in data for sign in _NO_NAME):
        return parsed
    text = json.dumps(parsed, ensure_ascii=False)
    text = re.sub(r"(\\\\)|\\u0000", r"\1", text)
    # The other surrogates stand for the bytes of a name that is not UTF-8: see os.fsdecode.
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
    """Return the host's input, up to its end or up to a complete object followed by silence.

    Some hosts keep the stream open while they wait for the answer.
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
    """Return whether nothing arrives for a moment, not even the end of the stream."""
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


def host_of(payload: Question) -> str:
    return "cursor" if "cursor_version" in payload or "conversation_id" in payload else "claude"


def folder_of(payload: Question, start: str) -> str:
    roots = payload.get("workspace_roots")
    named = payload.get("cwd") or (roots[0] if isinstance(roots, list) and roots else "")
    folder = _real(named if isinstance(named, str) and named and not start else start or os.curdir)
    given = given_to(payload)
    own = given.get("workdir") if command_in(given) else ""
    return _real(os.path.join(folder, own)) if isinstance(own, str) and own else folder


def _real(folder: str) -> str:
    """Return where the kernel is in a folder: a host may name it by a link that leads into it."""
    try:
        return os.path.realpath(folder)
    except ValueError:  # no folder has such a name
        return os.path.abspath(folder)


def root_of(payload: Question, cwd: str) -> str:
    """Return the folder whose rules apply: that of the agent's directory.

    If no team works there, it is the first other one with a team that the tool names a path in.
    """
    root = find_root(cwd)
    if root and has_tree(root):
        return root
    given = given_to(payload)
    named = [value for key in PATH_KEYS if isinstance(value := given.get(key), str)]
    named += re.findall(_WORD, command_in(given)[:_LONGEST_SEARCHED])
    for word in dict.fromkeys(named[:_MOST_WORDS]):
        path = os.path.abspath(os.path.join(cwd, os.path.expanduser(word)))
        other = find_root(path) if "\0" not in path and path.count("/") < _DEEPEST_PATH else ""
        if other and has_tree(other):
            return other
    return root


_WORD = r"[^\s'\"=;|&<>()`]+"
_MOST_WORDS, _LONGEST_SEARCHED, _DEEPEST_PATH = 200, 1 << 16, 100
"""Limits for the search of a command for a team's folder."""


def find_root(folder: str) -> str:
    """Return the nearest folder that is a repository or holds a planning tree."""
    while True:
        if any(os.path.exists(os.path.join(folder, name)) for name in (".git", PLANNING)):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above


def is_hosts_own(payload: Question) -> bool:
    """Return whether the request comes from an internal fork of the host, such as its
    compaction.
    """
    return bool(payload.get("agent_id")) and payload.get("agent_type") == ""


def with_role(payload: Question) -> Question:
    """Return the input with the role from the environment, if the input has none."""
    role = os.environ.get(AGENT) or os.environ.get(ROLE, "")
    if not role or agent_in(payload):
        return payload
    return {**payload, "agent_type": role, ANNOUNCED: True}


def first_text(payload: Question, *keys: str) -> str:
    return next((value for key in keys if isinstance(value := payload.get(key), str) and value), "")


def has_tree(root: str) -> bool:
    return os.path.isdir(os.path.join(root, PLANNING))


def texts_of(given: Question) -> list[str] | None:
    """Return all texts in the arguments of an MCP tool, at any depth; None if there are too
    many.
    """
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
    """Return whether a command has words that may destroy uncommitted work."""
    command = command_in(given)
    return bool(command) and re.search(_MAY_DESTROY, command) is not None


def short_name(agent: str) -> str:
    """Return an agent's name without plugin, `yolo-` and number: `dev` for `yolo-fs:yolo-dev-2`."""
    plain = agent.rpartition(":")[2].strip().lower().removeprefix("yolo-")
    return plain.rstrip("0123456789").rstrip("-")


def is_one_of_ours(payload: Question, root: str) -> bool:
    """Return whether the request is from an agent of the company, for whom rules hold
    everywhere.
    """
    if not has_tree(root):
        return False
    name = payload.get("agent_type") or payload.get("subagent_type")
    if not isinstance(name, str) or not name:
        return os.path.exists(os.path.join(root, PLANNING, ".active-agent"))
    short = short_name(name)
    return short in AGENTS or short.partition("-")[2] in AGENTS or " " in name or "_" in name
