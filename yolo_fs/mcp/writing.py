"""Writes artifacts for an agent: by its rights, checked first, and whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from yolo_fs.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.artifacts.examine import find_secrets
from yolo_fs.artifacts.misnamed import misnamed, misplaced, with_phase
from yolo_fs.authority.words import KINDS_WITH_SPEAKERS, advise_to_ask, find_word_of_another
from yolo_fs.checking.fix import CorrectedLine, Fixed, corrected_lines, find_revealed, fix
from yolo_fs.checking.validate import CheckedFile, Validator
from yolo_fs.core.credentials import redact
from yolo_fs.core.reasons import Exit, Finding, Reason, YoloError, errors, safe, safe_lines
from yolo_fs.daemon.health import health
from yolo_fs.git.repository import Repository
from yolo_fs.hooks.effects import Effect, Touch
from yolo_fs.hooks.hosts import SERVED, HookInput
from yolo_fs.hooks.tool_use import Guard, HookRequest
from yolo_fs.hooks.touches import CommandReading
from yolo_fs.mcp.refusal import ToolRefusedError
from yolo_fs.system.files import read
from yolo_fs.system.in_place import appending
from yolo_fs.system.store import SHARED, write_atomic
from yolo_fs.workspace.planning_tree import phases_in

_FEW = 20
_LONGEST = 4_000


class Caller:
    """Whoever calls, and what they may touch: the hooks' own answer."""

    def __init__(self, start: str, agent: str):
        """Paths are relative to `start`; `agent`: whose rights hold, empty for who has not said."""
        self._start = start
        self._agent = agent

    def readable(self, path: str) -> str:
        """Return where a path leads, relative to the repository, if the caller may read it.

        What lies outside is refused alike, whether there is anything or not.

        Raises:
            ToolRefusedError: the rule, and whom to ask instead.
        """
        return self._place(path, Effect.READ)

    def writable(self, path: str) -> str:
        """Return where a path leads if the caller may write it. Raises as `readable`."""
        return self._place(path, Effect.WRITE)

    def _place(self, path: str, effect: Effect) -> str:
        with Repository(self._start) as repository:
            hook_input = HookInput("pre-tool-use", SERVED, self._start, self._agent)
            target = HookRequest(repository, hook_input).access.target(path)
            if target is None or path.startswith("~"):
                raise ToolRefusedError(
                    f"{Reason.PATH_ESCAPES.value}: {safe(path)} is outside of this repository"
                    "\nNext: name a file of it, relative to its root."
                )
            full = os.path.join(repository.root, target.path)
            call = CommandReading((Touch(full, effect),))
            request = HookRequest(repository, hook_input._replace(call=call))
            refusal = Guard(request).answer().refusal
        if refusal:
            raise ToolRefusedError(f"{Reason.OUT_OF_LANE.value}: {refusal}")
        return target.path

    def of_own(self, files: Iterable[CheckedFile]) -> Iterator[CheckedFile]:
        """Yield checked files; of what the caller may not read no value is told."""
        with Repository(self._start) as repository:
            request = HookRequest(repository, HookInput("", SERVED, self._start, self._agent))
            for file in files:
                if request.access.read(request.actor, file.path).allowed:
                    yield file
                else:
                    findings = tuple(map(_strip_values, file.findings))
                    yield file._replace(findings=findings, data=b"")


def _strip_values(finding: Finding) -> Finding:
    return replace(finding, at="", message="", expected="", hint="")


def _kind_of(root: str, full: str) -> str:
    """Return the kind of an artifact, however its path was spelled."""
    place = classify(os.path.relpath(full, root))
    return place.artifact.kind if place else ""


class ArtifactWriter(Caller):
    """Writes artifacts of one repository for one agent."""

    def __init__(self, start: str, agent: str):
        super().__init__(start, agent)
        self._validator = Validator(start)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._validator.close()

    def committed_by(self, findings: Iterable[Finding]) -> str:
        """Return who commits what was written, and when."""
        if errors(findings):
            return "it is committed once the whole file is valid"
        with Repository(self._start) as repository:
            if health(repository).is_running:
                return "the daemon commits it"
        return "no daemon runs: it is committed once a person runs 'yolo-fs start'"

    def append(self, path: str, record: dict[str, Any]) -> tuple[int, Sequence[Finding]]:
        """Add one record as one whole line; return its number, and what is still wrong with the
        file.

        Raises:
            YoloError: LOCK_TIMEOUT, UNTERMINATED, NO_SPACE, STORAGE_FAILED.
            ToolRefusedError: why the line was not written.
        """
        root, full = self._full(path)
        if not path.endswith(".jsonl"):
            raise ToolRefusedError(
                f"unknown_type: {safe(path)} is no JSONL\nNext: use the tool `write_artifact`."
            )
        line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
        self._refuse_secrets(path, line)
        self._refuse_anothers_word(_kind_of(root, full), (), (record,))
        if not os.path.lexists(full):  # opening it would make it
            self._judged(full, path, b"", line)
        with appending(full, root=root) as log:
            number, findings = self._judged(full, path, log.read(self._validator.max_bytes), line)
            log.add(line)
        return number, findings

    def _judged(
        self, full: str, path: str, before: bytes, line: bytes
    ) -> tuple[int, Sequence[Finding]]:
        """Return the number of a new line, and what is still wrong with the file then."""
        ended = before if before.endswith(b"\n") or not before else before + b"\n"
        number = ended.count(b"\n") + 1
        judged = self._checked(full, path, ended + line + b"\n")
        wrong = [each for each in errors(judged.findings) if _is_of_line(each, number)]
        if wrong:
            fixed = fix(self._validator, judged, full, write=False)
            corrected = (each for each in corrected_lines(judged, fixed) if each.line == number)
            raise _refused(path, wrong[0], _lines(wrong, corrected))
        return number, judged.findings

    def write(self, path: str, text: str) -> tuple[bool, Sequence[Finding]]:
        """Write a whole artifact; return whether that changed it, and what is to be known about it.

        Raises:
            YoloError: NO_SPACE, STORAGE_FAILED, NOT_REGULAR.
            ToolRefusedError: why it was not written.
        """
        data = text.encode()
        root, full = self._full(path, data)
        self._refuse_secrets(path, data)
        judged = self._checked(full, path, data)
        findings = judged.findings
        there = read(root, os.path.relpath(full, root), self._validator.max_bytes)
        before = b"" if isinstance(there, Finding) else there.data
        if (kind := _kind_of(root, full)) in KINDS_WITH_SPEAKERS:
            files = (self._checked(full, path, before), judged)
            self._refuse_anothers_word(
                kind, *([record.value for record in file.records] for file in files)
            )
        if errors(findings):
            raise _refused(path, errors(findings)[0], self._tell_faults(full, judged))
        write_atomic(full, data, root=root, mode=SHARED)
        return data != before, findings

    def _tell_faults(self, full: str, judged: CheckedFile) -> Iterator[str]:
        """Yield what is wrong with a text that was checked for a place, and how it is corrected."""
        fixed = fix(self._validator, judged, full, write=False)
        corrected = list(corrected_lines(judged, fixed))
        whole = () if corrected else _tell_whole(judged, fixed)
        yield from _lines(errors(judged.findings), corrected, whole)

    def _full(self, path: str, data: bytes = b"") -> tuple[str, str]:
        """Return the work tree, and where an artifact lies in it that this agent may write.

        `data`: what it is to contain, of which a refusal of the name tells the faults as well.
        """
        relative = self.writable(path)
        with Repository(self._start) as repository:
            root = os.path.realpath(repository.root)
        if near := misnamed(relative) or misplaced(relative):
            self._refuse_secrets(path, data)
            raise self._build_name_refusal(root, path, with_phase(near, phases_in(root)), data)
        if not relative.startswith(f"{PLANNING_ROOT}/"):
            raise ToolRefusedError(
                f"bad_name: {safe(path)} is not an artifact below {PLANNING_ROOT}/"
                "\nNext: write other files with your host's own tools."
            )
        if classify(relative) is None:
            raise ToolRefusedError(
                f"bad_name: {safe(path)} is none of the protocol's artifacts"
                "\nNext: read yolo-fs://protocol/artifacts for their names."
            )
        full = os.path.join(root, relative)
        folder = os.path.dirname(full)
        if os.path.realpath(folder) != folder or not os.path.isdir(folder):
            raise ToolRefusedError(
                f"file_missing: {safe(os.path.dirname(relative))} is not a folder of this "
                "repository\nNext: a person makes a phase with 'yolo-fs phase new SLUG'."
            )
        return root, full

    def _build_name_refusal(
        self, root: str, path: str, wrong: Finding, data: bytes
    ) -> ToolRefusedError:
        """Return the refusal of a wrong name, and the faults of `data` under the right one."""
        full = os.path.join(root, wrong.expected)
        faults = self._tell_faults(full, self._checked(full, wrong.expected, data)) if data else ()
        head = f"{wrong.reason.value}: {safe(path)}: {wrong.message}"
        following = f"Next: call again with the path {safe(wrong.expected)}"
        return ToolRefusedError("\n".join((head, *faults, following)))

    def _checked(self, full: str, path: str, data: bytes) -> CheckedFile:
        if len(data) > self._validator.max_bytes:
            message = f"{safe(path)} would be larger than {self._validator.max_bytes} bytes"
            raise YoloError(Reason.FILE_TOO_LARGE, message, exit_code=Exit.UNREADABLE)
        return self._validator.again(full, path, data)

    def _refuse_anothers_word(
        self, kind: str, before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]
    ) -> None:
        if other := find_word_of_another(kind, before, after, self._agent):
            raise ToolRefusedError(
                f"{Reason.OUT_OF_LANE.value}: that record speaks for {safe(other)}"
                f"\nNext: {advise_to_ask(other)}."
            )

    def _refuse_secrets(self, path: str, data: bytes) -> None:
        if find_secrets(data, path, frozenset()):
            raise ToolRefusedError(
                "secret: the text looks like it holds a credential"
                "\nNext: name where the credential is kept instead of the credential."
            )


def _is_of_line(finding: Finding, number: int) -> bool:
    """Return whether a fault is one of the new line itself, and no further line can mend it."""
    return finding.line == number and finding.reason is not Reason.WRONG_LINE_COUNT


def _tell_whole(judged: CheckedFile, fixed: Fixed) -> Iterator[str]:
    """Yield the text that the repair makes of a draft, and what it still lacks."""
    text = fixed.after.decode(errors="replace")
    if fixed.is_changed and len(text) <= _LONGEST and redact(text) == text:
        yield f"corrected text:\n{safe_lines(text).rstrip()}"
        yield from (f"- then: {each}" for each in find_revealed(judged, fixed.left))


def _refused(path: str, first: Finding, told: Iterable[str]) -> ToolRefusedError:
    head = f"{first.reason.value}: {safe(path)} was not written:"
    return ToolRefusedError("\n".join((head, *told, "Next: fix this and call again.")))


def _lines(
    wrong: Sequence[Finding], corrected: Iterable[CorrectedLine], whole: Iterable[str] = ()
) -> Iterator[str]:
    yield from (f"- {finding}" for finding in wrong[:_FEW])
    if len(wrong) > _FEW:
        yield f"- and {len(wrong) - _FEW} more, which the next call names"
    yield from (f"line {each.line} corrected: {safe(each.text, _LONGEST)}" for each in corrected)
    yield from whole
