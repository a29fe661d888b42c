"""Reads the handoff of an agent: the file before the text, always logged, never through a link.

The log is in the planning tree, beside the other logs of a session: document 004 names the file but
no folder. See docs/dev/faults.md#f50, #f53 and #f56.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.decide import EventSink
from yolo_fs.core.foreign_json import parse
from yolo_fs.core.reasons import Exit, Fault, Finding, Level, Reason, YoloError, errors, safe
from yolo_fs.handoffs.reading import (
    MARKER,
    WORD,
    Compliance,
    Diagnosis,
    Log,
    Read,
    block_of,
    compliance,
    fields_of,
    is_alike,
    parse_log,
)
from yolo_fs.system.files import Content, names_in, read, stamp_of
from yolo_fs.system.readers import read_object
from yolo_fs.system.store import SHARED, RefusedError, open_regular
from yolo_fs.system.text_checks import Limits
from yolo_fs.workspace.settings import not_initialised

if TYPE_CHECKING:
    from yolo_fs.schemas.packet import HandoffJson

LOG = f"{PLANNING_ROOT}/context_health.log"
LOG_LIMIT_BYTES = 256 * 1024 * 1024
"""Enough for two million reads; a real log is never larger."""
EVENT = "handoff.read"

_NEIGHBOURS_MOST = 200
"""Folders that are searched for a misplaced file."""
_NAMED_MOST = 5


class ReadRequest(NamedTuple):
    """Whose handoff is read, and where it should be."""

    path: str
    """As the caller spells it, relative to its working directory."""
    agent: str
    phase: str
    text: bytes | None = None
    """The agent's reply as a fallback; None when there is none."""


class HandoffAnswer(NamedTuple):
    """Result of a read."""

    read: Read
    handoff: HandoffJson | None
    findings: tuple[Finding, ...]
    """What is wrong with the file, then with the text, then with the log."""
    elsewhere: tuple[str, ...]
    """Other places where a handoff.json was found, the latest first."""


class _Found(NamedTuple):
    """Content of one place: a handoff, or why there is none."""

    handoff: HandoffJson | None
    cause: Reason | None
    findings: tuple[Finding, ...]


def total_compliance(root: str, limits: Limits) -> Compliance | None:
    """Return how many handoffs came as the file; None without any, or without a readable log."""
    if not os.path.lexists(os.path.join(root, LOG)):
        return None
    try:
        reads = Reader(root, root, limits, lambda *_: None).log().reads
    except YoloError:
        return None
    return compliance(reads).total if reads else None


class Reader:
    """Reads handoffs of one repository and keeps its log."""

    def __init__(self, root: str, start: str, limits: Limits, emit: EventSink):
        """`root`: the work tree. `start`: base of paths. `emit`: receives the journal's event.

        Raises:
            YoloError: NOT_INITIALISED when there is no planning tree.
        """
        if not os.path.isdir(os.path.join(root, PLANNING_ROOT)):
            raise not_initialised(root)
        self._root = root
        self._start = os.path.realpath(start)
        self._limits = limits
        self._emit = emit

    def read(self, request: ReadRequest, now: datetime) -> HandoffAnswer:
        """Read the file, else the text, and record the reason in the log and in the journal.

        Raises:
            YoloError: BAD_NAME for an agent or a phase that is no single word.
        """
        _refuse_unless_word(request.agent)
        _refuse_unless_word(request.phase)
        file = self._file(request.path)
        elsewhere = (
            tuple(self._elsewhere(request.path)) if file.cause is Reason.FILE_MISSING else ()
        )
        text = (
            from_text(request.text, self._limits)
            if file.cause and request.text is not None
            else None
        )
        read = Read(
            request.agent, request.phase, Diagnosis(file.cause, text.cause if text else None), now
        )
        findings = (
            *(_point_elsewhere(finding, elsewhere) for finding in file.findings),
            *(text.findings if text else ()),
        )
        log = self._keep(request.path, read, elsewhere)
        return HandoffAnswer(
            read, text.handoff if text else file.handoff, findings + log, elsewhere
        )

    def log(self) -> Log:
        """Return what the log says; nothing when there is none yet.

        Raises:
            YoloError: something stands in its place that cannot be read.
        """
        content = read(self._root, LOG, LOG_LIMIT_BYTES)
        if isinstance(content, Content):
            return parse_log(content.data.decode("utf-8", "replace"))
        if content.reason is Reason.FILE_MISSING:
            return Log((), 0)
        raise content.as_error(LOG, Exit.UNREADABLE)

    def _file(self, path: str) -> _Found:
        content = read(*self._place(path), self._limits.max_file_bytes)
        if isinstance(content, Finding):
            missing = content.reason is Reason.FILE_MISSING
            return _Found(
                None,
                content.reason if missing else Reason.JSON_PARSE_ERROR,
                (replace(content, path=path),),
            )
        return _from_json(content.data, path, self._limits)

    def _place(self, path: str) -> tuple[str, str]:
        """Return the folder to start from, and the path below it on which no link is followed."""
        full = os.path.normpath(os.path.join(self._start, path))
        if full.startswith(self._root + os.sep):
            return self._root, full[len(self._root) + 1 :]
        return os.path.split(full)[0], os.path.basename(full)

    def _elsewhere(self, path: str) -> Iterator[str]:
        """Yield other places of a handoff.json, the latest first: it may have been misplaced."""
        expected = os.path.normpath(os.path.join(self._start, path))
        places: list[tuple[int, str]] = []
        for folder in list(dict.fromkeys(self._list_nearby_folders(os.path.dirname(expected))))[
            :_NEIGHBOURS_MOST
        ]:
            for name in filter(is_alike, names_in(folder)):
                stamp = stamp_of(folder, name)
                if not isinstance(stamp, Finding) and os.path.join(folder, name) != expected:
                    places.append((stamp.mtime_ns, os.path.join(folder, name)))
        for _, place in sorted(places, reverse=True)[:_NAMED_MOST]:
            yield os.path.relpath(place, self._start)

    def _list_nearby_folders(self, folder: str) -> Iterator[str]:
        """Yield the folder, those above it up to the root, those in it and those beside it."""
        yield folder
        above = folder
        while above.startswith(self._root + os.sep):
            above = os.path.dirname(above)
            yield above
        yield self._start
        yield from _folders_in(folder)
        if folder.startswith(self._root + os.sep):
            yield from _folders_in(os.path.dirname(folder))

    def _keep(self, path: str, read: Read, elsewhere: tuple[str, ...]) -> tuple[Finding, ...]:
        """Append the lines in one write and notify the journal; a failed log is only a warning."""
        data = {
            "agent": read.agent,
            "phase": read.phase,
            "source": read.diagnosis.source.value,
            "reason": read.diagnosis.reasons[0],
            "outcome": read.diagnosis.outcome.value if read.diagnosis.outcome else "",
            "elsewhere": list(elsewhere),
        }
        self._emit(EVENT, path, data)
        try:
            _append(self._root, read.lines().encode("ascii"))
        except (OSError, RefusedError) as error:
            why = error.strerror or error if isinstance(error, OSError) else error.detail
            message = f"the line was not written: {why}"
            hint = "look at what is there, and at the free space"
            return (
                Finding(
                    Reason.STORAGE_FAILED,
                    LOG,
                    0,
                    "",
                    message,
                    "a regular file",
                    hint,
                    Level.WARNING,
                ),
            )
        return ()


def from_text(data: bytes, limits: Limits) -> _Found:
    """Return the handoff of the text's block, which may hold the JSON, or what is wrong with it."""
    reading = _read_block(data, limits)
    return reading._replace(
        cause=Reason.TEXT_FALLBACK_FAIL if reading.cause else Reason.TEXT_FALLBACK_OK
    )


def _read_block(data: bytes, limits: Limits) -> _Found:
    block = block_of(data.decode("utf-8", "replace"))
    if block is None:
        return _shaped(
            None,
            (
                _make_text_finding(
                    Fault(Reason.TEXT_FALLBACK_FAIL, "", "there is no `---HANDOFF---` line")
                ),
            ),
        )
    if block.lstrip().startswith("{"):
        return _from_json(block.strip().encode(), MARKER, limits)
    from yolo_fs.schemas.packet import read_handoff_json

    value, faults = fields_of(block)
    handoff, wrong = read_handoff_json(value)
    return _shaped(handoff, tuple(_make_text_finding(fault) for fault in (*faults, *wrong)))


_MOST_DEPTH = 256
"""Of the nesting that jq parses."""


def _from_json(data: bytes, path: str, limits: Limits) -> _Found:
    """Return the handoff as jq reads it: document 004's filter is a jq program.

    So line endings, a byte order mark and a key that stands there twice are no faults. The strict
    reader only says what is wrong with what jq refuses as well.
    """
    is_within = data.count(b"{") + data.count(b"[") <= limits.max_brackets
    try:
        value = parse(data, limits.max_file_bytes if is_within else 0, _MOST_DEPTH)
    except ValueError:
        wrong = errors(read_object(data, path, limits).findings)
        return _Found(None, Reason.JSON_PARSE_ERROR, wrong)
    if not isinstance(value, dict):
        fault = Fault(Reason.NOT_AN_OBJECT, "", "the JSON is not an object", "one JSON object")
        return _shaped(None, (fault.as_finding(path, 1),))
    from yolo_fs.schemas.packet import read_handoff_json

    handoff, faults = read_handoff_json(value)
    return _shaped(handoff, tuple(fault.as_finding(path, 1) for fault in faults))


def _shaped(handoff: HandoffJson | None, findings: tuple[Finding, ...]) -> _Found:
    """Return what passed the schema, or the findings: any fault rejects the handoff."""
    return _Found(None, Reason.SCHEMA_INVALID, findings) if findings else _Found(handoff, None, ())


def _make_text_finding(fault: Fault) -> Finding:
    hint = "STATUS:, ARTIFACTS:, NEXT: and SUMMARY: each on a line of its own below ---HANDOFF---"
    return fault._replace(hint=hint).as_finding(MARKER)


def _point_elsewhere(finding: Finding, elsewhere: tuple[str, ...]) -> Finding:
    if not elsewhere:
        return finding
    places = ", ".join(elsewhere)
    return replace(
        finding,
        message=f"{finding.message}; there is {places}",
        hint="move it, and correct the agent",
    )


def _refuse_unless_word(word: str) -> None:
    if not WORD.fullmatch(word):
        hint = "Letters, digits, dots, hyphens and underscores, such as plan-reviewer or 01-auth."
        raise YoloError(
            Reason.BAD_NAME, f"{safe(word)!r} is not a name of an agent or a phase", hint=hint
        )


def _folders_in(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    yield from (os.path.join(folder, name) for name in names if name != ".git")


def _append(root: str, data: bytes) -> None:
    """Append to the log by one `write`, so that lines of several writers do not mix.

    A torn last line is ended first. No link is followed, and only a plain file with one name is
    written.
    """
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
    log = open_regular(os.path.join(root, LOG), flags, SHARED, root)
    try:
        status = os.fstat(log)
        if status.st_nlink != 1:
            raise RefusedError(Reason.HARD_LINKED, Reason.HARD_LINKED.sentence)
        is_torn = status.st_size > 0 and os.pread(log, 1, status.st_size - 1) != b"\n"
        line = b"\n" * is_torn + data
        if os.write(log, line) < len(line):
            raise OSError("there was room for a part of it only")
    finally:
        os.close(log)
