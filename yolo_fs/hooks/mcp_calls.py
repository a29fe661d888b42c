"""Files that a call of an MCP tool touches, judged like the host's own tools. Pure.

The arguments are examined for file names. A server works where its host was started, which is
mostly the root, and not where the agent works.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.authority.access import Target, sealed
from yolo_fs.core.tool_calls import MCP_PREFIXES, RESOURCE_READERS
from yolo_fs.handoffs.lifecycle import HANDOFF
from yolo_fs.hooks.effects import Effect, Touch
from yolo_fs.protocol.hooks import (
    MCP_CONTENT_KEYS,
    MCP_FOLDER_WORDS,
    MCP_PATH_WORDS,
    MCP_REMOVING_WORDS,
    MCP_TARGET_WORDS,
    MCP_WRITING_WORDS,
)

ARTIFACTS = "yolo-fs://artifacts/"
"""Address of the artifacts on our own server, followed by a path from the root."""
_OURS = re.compile(r"yolo[-_]fs")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_REMOTE = re.compile(r"(?:https?|wss?|ssh|git|data|mailto):", re.IGNORECASE)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_LONGEST_PATH = 4_096
_BEGINS = ("/", "~", "./", "../", "file:")
_SOURCES = ("source", "src", "from")


def touches_of(tool: str, given: Mapping[str, Any]) -> Iterator[Touch]:
    """Yield each file that a call may touch, once for each interpretation of its spelling."""
    words = _words_of(re.split("__|:", tool)[-1])
    effect = Effect.READ if tool in RESOURCE_READERS else _effect_of(words)
    seen = (
        (path, _effect_on(key, words, effect))
        for key, named in _named(given)
        for path in _paths(named)
    )
    for path, each in dict.fromkeys(seen):
        yield Touch(path, each, or_below_root=True)


def speaks_for(tool: str, given: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the agent that a call names, and whether our own server is asked."""
    agent = given.get("agent") if tool.startswith(MCP_PREFIXES) else None
    server = tool.rpartition("__")[0]
    return agent.strip() if isinstance(agent, str) else "", _OURS.search(server) is not None


def _effect_on(key: str, words: set[str], effect: Effect) -> Effect:
    """Return the effect on a file that a key names, of a tool that mostly has another."""
    if "copy" in words and key in _SOURCES:
        return Effect.READ
    is_target = not MCP_TARGET_WORDS.isdisjoint(_words_of(key))
    return Effect.WRITE if is_target and effect is Effect.READ else effect


def _words_of(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}


def _effect_of(words: set[str]) -> Effect:
    if words & MCP_REMOVING_WORDS:
        return Effect.REMOVE
    if not words & MCP_WRITING_WORDS:
        return Effect.ALTER if "mkdir" in words else Effect.READ
    return Effect.ALTER if words & MCP_FOLDER_WORDS else Effect.WRITE


def _named(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield key and value of what names a file, or looks like one of ours or a credential."""
    left: list[tuple[str, Any]] = list(given.items())
    while left:
        key, value = left.pop()
        if key in MCP_CONTENT_KEYS:
            continue
        if isinstance(value, Mapping):
            left.extend((str(name), each) for name, each in value.items())
        elif isinstance(value, list):
            left.extend((key, each) for each in value)
        elif isinstance(value, str) and value and _may_be_file(key, value):
            yield key, value


def _may_be_file(key: str, value: str) -> bool:
    return not MCP_PATH_WORDS.isdisjoint(_words_of(key)) or _is_telling(value)


def _is_telling(value: str) -> bool:
    """Return whether a text can only be a path, whatever its key is."""
    is_sentence = re.search(r"\s", value) is not None and not value.startswith(_BEGINS)
    if is_sentence or len(value) > _LONGEST_PATH or _REMOTE.match(value):
        return False
    row = sealed(Target(unquote(value)))
    is_credential = row is not None and bool(row.names)
    return is_credential or any(
        name in unquote(value) for name in (PLANNING_ROOT, HANDOFF, ".git/", "file:/")
    )


def _paths(named: str) -> Iterator[str]:
    """Yield the possible paths of a path or an address."""
    if _REMOTE.match(named):
        return
    scheme = _SCHEME.match(named)
    if scheme is None:
        spelled = [named, named.removeprefix("file:")]
    elif named.lower().startswith(ARTIFACTS):
        spelled = [named[len(ARTIFACTS) :]]
    else:
        rest = named[scheme.end() :]
        spelled = [f"/{rest.lstrip('/')}", rest.lstrip("/"), rest.lstrip("/").partition("/")[2]]
    for path in spelled:
        for each in (path, unquote(path)):
            if each:  # a server may shorten what is longer than the system takes
                yield each if len(each) <= _LONGEST_PATH else posixpath.normpath(each)
