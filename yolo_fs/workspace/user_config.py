"""What is wrong with the user's own configuration, and what in it has no effect.

Every key of the file is looked at: whoever misspells one believes that it holds.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from yolo_fs.core.reasons import (
    Finding,
    Level,
    Reason,
    errors,
    hint_for_unknown,
    pointer_to,
    safe,
)
from yolo_fs.schemas.config import Policy
from yolo_fs.system.readers import read_object
from yolo_fs.system.text_checks import Limits
from yolo_fs.workspace.own_files import fits

VERIFY = "verify_command"
"""Key of the user's own configuration. It is no part of the policy, of which a repository has its
say."""

_SECTIONS = ("policy", "repositories", "sinks")
_WORDS = 'a command, such as {"sinks": {"command": ["notify-send", "yolo-fs"]}}'


def examine(data: bytes, path: str) -> tuple[Finding, ...]:
    """Return every finding on the content of the user's own configuration."""
    reading = read_object(data, path, Limits())
    if not reading.records:
        return reading.findings
    user = reading.records[0].value
    roots = user.get("repositories")
    faults = [*faults_of_sections(user, path, roots if isinstance(roots, dict) else ())]
    for at, section in _policies(user):
        faults += _faults_of_policy(section, path, at)
    return (*reading.findings, *faults, *without_effect(user, path))


def faults_of_sections(
    user: Mapping[str, Any], path: str, roots: Iterable[str]
) -> Iterator[Finding]:
    """Yield each section that is no object, and each command to verify that cannot count.

    `roots`: the work trees whose sections are looked at.
    """
    policy, repositories = user.get("policy", {}), user.get("repositories", {})
    sections = {"/policy": policy, "/repositories": repositories}
    if isinstance(repositories, dict):
        for root in roots:
            sections[pointer_to("repositories", root)] = repositories.get(root, {})
    for at, section in sections.items():
        if not isinstance(section, dict):
            yield _wrong(path, at, f"got {safe(str(section), 80)!r}", "an object")
        elif at == "/repositories" or VERIFY not in section:
            continue
        elif at == "/policy":
            message = "it would run what any repository contains"
            yield _wrong(path, f"{at}/{VERIFY}", message, _example("/path/to/work/tree"))
        elif not _is_command(section[VERIFY]):
            message = "no list of a program and its arguments"
            root = next(each for each in repositories if pointer_to("repositories", each) == at)
            yield _wrong(path, f"{at}/{VERIFY}", message, _example(root))


def without_effect(user: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Yield, as warnings, what nobody reads in the user's own configuration."""
    yield from _unknown(user, path, (), _SECTIONS)
    for at, section in _policies(user):
        yield from _unknown(section, path, at, (*Policy._fields, VERIFY))
    repositories = user.get("repositories")
    for root in repositories if isinstance(repositories, dict) else ():
        if (real := os.path.realpath(os.path.expanduser(root))) != root:
            at = ("repositories", root)
            yield _unread(path, at, expected=f"the path of the work tree, such as {real}")
    yield from _unread_sinks(user.get("sinks", {}), path)


def sink_command(user: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the program and the arguments that tell a person; empty where none can be run."""
    sinks = user.get("sinks")
    command = sinks.get("command", ()) if isinstance(sinks, dict) else ()
    return tuple(command) if _is_command(command) else ()


def _unread_sinks(sinks: object, path: str) -> Iterator[Finding]:
    if not isinstance(sinks, dict):
        yield replace(_unread(path, ("sinks",), expected=_WORDS), reason=Reason.WRONG_TYPE)
        return
    for key, value in sinks.items():
        at = ("sinks", key)
        if key != "command":
            hint = "Remove it; a command can send what it reads to any address."
            yield _unread(path, at, expected=_WORDS, hint=hint)
        elif not _is_command(value):
            yield replace(_unread(path, at, expected=_WORDS), reason=Reason.WRONG_TYPE)


def _policies(user: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Yield each section of policy that is an object, with its place."""
    repositories = user.get("repositories")
    sections: dict[tuple[str, ...], Any] = {("policy",): user.get("policy")}
    if isinstance(repositories, dict):
        sections |= {("repositories", root): each for root, each in repositories.items()}
    for at, section in sections.items():
        if isinstance(section, dict):
            yield at, section


def _faults_of_policy(
    section: Mapping[str, Any], path: str, at: tuple[str, ...]
) -> Iterator[Finding]:
    from yolo_fs.schemas.check import check
    from yolo_fs.schemas.plain_values import shape_of

    known = {key: value for key, value in section.items() if key in Policy._fields}
    _, faults = check(shape_of(Policy), known)
    for finding in errors(fault.as_finding(path, 1) for fault in faults):
        yield replace(finding, at=pointer_to(*at) + finding.at)


def _unknown(
    section: Mapping[str, Any], path: str, at: tuple[str, ...], names: tuple[str, ...]
) -> Iterator[Finding]:
    for key in section:
        if key not in names:
            shown_by = "yolo-fs schema show config" if at else ""
            hint = hint_for_unknown(safe(key), names, shown_by)
            yield _unread(path, (*at, key), hint=hint)


def _unread(path: str, place: tuple[str, ...], *, expected: str = "", hint: str = "") -> Finding:
    return Finding(
        Reason.UNKNOWN_KEY,
        path,
        at=pointer_to(*place),
        message=f"{'.'.join(place)} has no effect",
        expected=expected,
        hint=hint,
        level=Level.WARNING,
        command=f"grep -n {shlex.quote(place[-1])} {shlex.quote(path)}",
    )


def _wrong(path: str, at: str, message: str, expected: str) -> Finding:
    return Finding(Reason.WRONG_TYPE, path, at=at, message=message, expected=expected)


def _example(root: str) -> str:
    return f'"repositories": {{"{root}": {{"{VERIFY}": ["make", "test"]}}}}'


def _is_command(value: object) -> bool:
    return fits(value, [_is_word])


def _is_word(value: object) -> bool:
    return isinstance(value, str) and bool(value) and "\0" not in value
