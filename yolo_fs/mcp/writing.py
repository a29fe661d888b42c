"""Writes artifacts for an agent: by its rights, checked first, and whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, Self

from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.in_place import appending
from yolo_fs.edges.store import SHARED, environment, write_atomic
from yolo_fs.mcp.tools import ToolRefusedError
from yolo_fs.reasons import Exit, Finding, Reason, YoloError, errors, safe
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.rules.artifacts.examine import find_secrets
from yolo_fs.rules.hooks.hosts import HookAnswer, HookInput
from yolo_fs.rules.hooks.touches import Effect, Touch
from yolo_fs.services.checking.validate import Validator
from yolo_fs.services.hooks.tool_use import HookRequest, answer

_FEW = 20


def allowed(start: str, agent: str, path: str, effect: Effect) -> None:
    """Do nothing where an agent may touch a path: the hooks' own answer.

    Raises:
        ToolRefusedError: the rule, and whom to ask instead.
    """
    asked: HookAnswer = answer(_question(start, agent, path, effect))
    if asked.refusal:
        raise ToolRefusedError(f"out_of_lane: {asked.refusal}")


def may_read(start: str, agent: str, path: str) -> None:
    """Do nothing where an agent may read a path. Raises as `allowed`."""
    allowed(start, agent, path, Effect.READ)


def _question(start: str, agent: str, path: str, effect: Effect) -> HookInput:
    return HookInput("pre-tool-use", "mcp", start, agent, touches=(Touch(path, effect),))


class ArtifactWriter:
    """Writes artifacts of one repository for one agent."""

    def __init__(self, start: str, agent: str):
        """Paths are relative to `start`; `agent`: whose rights hold, empty: the session's own."""
        self._start = start
        self._agent = agent
        self._validator = Validator(start)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._validator.close()

    def append(self, path: str, record: dict[str, Any]) -> tuple[int, Sequence[Finding]]:
        """Add one record as one whole line; return its number, and what is still wrong with the
        file.

        Raises:
            YoloError: LOCK_TIMEOUT, UNTERMINATED, NO_SPACE, STORAGE_FAILED.
            ToolRefusedError: why the line was not written.
        """
        full = self._full(path)
        if not path.endswith(".jsonl"):
            raise ToolRefusedError(
                f"unknown_type: {safe(path)} is no JSONL\nNext: use the tool `write`."
            )
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
        self._refuse_secrets(path, line)
        if not os.path.lexists(full):  # opening it would make it
            self._judged(full, path, b"", line)
        with appending(full) as log:
            number, found = self._judged(full, path, log.read(self._validator.max_bytes), line)
            log.add(line)
        return number, found

    def _judged(
        self, full: str, path: str, before: bytes, line: bytes
    ) -> tuple[int, Sequence[Finding]]:
        """Return the number of a new line, and what is still wrong with the file then."""
        ended = before if before.endswith(b"\n") or not before else before + b"\n"
        number = ended.count(b"\n") + 1
        found = self._findings(full, path, ended + line + b"\n")
        wrong = [each for each in errors(found) if _is_of_line(each, number)]
        if wrong:
            raise ToolRefusedError(_refused(path, wrong))
        return number, found

    def write(self, path: str, text: str) -> Sequence[Finding]:
        """Write a whole artifact; return what is to be known about it.

        Raises:
            YoloError: NO_SPACE, STORAGE_FAILED, NOT_REGULAR.
            ToolRefusedError: why it was not written.
        """
        full, data = self._full(path), text.encode()
        self._refuse_secrets(path, data)
        found = self._findings(full, path, data)
        if errors(found):
            raise ToolRefusedError(_refused(path, errors(found)))
        with environment(full):
            write_atomic(full, data, mode=SHARED)
        return found

    def _full(self, path: str) -> str:
        """Return where an artifact lies that this agent may write."""
        with Repository(self._start) as repository:
            asked = HookRequest(repository, _question(self._start, self._agent, path, Effect.WRITE))
            relative = asked.relative(path)
            root = os.path.realpath(repository.root)
        if relative is None or not relative.startswith(f"{PLANNING_ROOT}/"):
            raise ToolRefusedError(
                f"bad_name: {safe(path)} is no artifact below {PLANNING_ROOT}/"
                "\nNext: write other files with your host's own tools."
            )
        allowed(self._start, self._agent, path, Effect.WRITE)
        if classify(relative) is None:
            raise ToolRefusedError(
                f"bad_name: {safe(path)} is none of the protocol's artifacts"
                "\nNext: read yolo-fs://protocol/artifacts for their names."
            )
        full = os.path.join(root, relative)
        folder = os.path.dirname(full)
        if os.path.realpath(folder) != folder or not os.path.isdir(folder):
            raise ToolRefusedError(
                f"file_missing: {safe(os.path.dirname(relative))} is no folder of this repository"
                "\nNext: a person makes a phase with 'yolo-fs phase new SLUG'."
            )
        return full

    def _findings(self, full: str, path: str, data: bytes) -> tuple[Finding, ...]:
        if len(data) > self._validator.max_bytes:
            message = f"{safe(path)} would be larger than {self._validator.max_bytes} bytes"
            raise YoloError(Reason.FILE_TOO_LARGE, message, exit_code=Exit.UNREADABLE)
        return self._validator.again(full, path, data).findings

    def _refuse_secrets(self, path: str, data: bytes) -> None:
        if find_secrets(data, path, frozenset()):
            raise ToolRefusedError(
                "secret: the text looks like it holds a credential"
                "\nNext: name where the credential is kept instead of the credential."
            )


def _is_of_line(finding: Finding, number: int) -> bool:
    """Return whether a fault is one of the new line itself, and no further line can mend it."""
    return finding.line == number and finding.reason is not Reason.WRONG_LINE_COUNT


def _refused(path: str, wrong: Sequence[Finding]) -> str:
    return "\n".join(_lines(path, wrong))


def _lines(path: str, wrong: Sequence[Finding]) -> Iterator[str]:
    yield f"{wrong[0].reason.value}: {safe(path)} was not written:"
    yield from (f"- {finding}" for finding in wrong[:_FEW])
    if len(wrong) > _FEW:
        yield f"- and {len(wrong) - _FEW} more"
    yield "Next: mend this and call again."
