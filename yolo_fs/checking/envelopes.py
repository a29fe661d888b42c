"""The handoffs of document 003: reads the sessions of a project, checks envelopes in any snapshot
of it, and parses messages.

Files in `documents/handoffs/` are read in strict mode, and no link is followed. See
docs/dev/faults.md#f50, #f51 and #f53.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from yolo_fs.artifacts.examine import find_secrets
from yolo_fs.artifacts.handoff_names import (
    CHOICES,
    HANDOFF_FOLDER,
    instant,
    names_same_handoff,
    read_name,
)
from yolo_fs.authority.message_routes import message_findings
from yolo_fs.checking.snapshots import Snapshot
from yolo_fs.core.reasons import Fault, Finding, Reason, errors
from yolo_fs.evidence.facts import WorkflowOptions
from yolo_fs.handoffs import envelopes
from yolo_fs.handoffs.envelopes import Sent, mentioned_files, right_name
from yolo_fs.handoffs.reading import cause_of
from yolo_fs.handoffs.sessions import Attempt, ProductSession, attempts, faults_among, in_order
from yolo_fs.schemas.check import check
from yolo_fs.schemas.envelope.envelope import Choice, Choices
from yolo_fs.schemas.layout import Strictness
from yolo_fs.schemas.messages.catalogue import read_message
from yolo_fs.system.readers import read_object
from yolo_fs.system.text_checks import Limits, Reading
from yolo_fs.workspace.settings import Settings


class StoredSession(NamedTuple):
    """A session on disk."""

    session_id: str
    session: ProductSession
    findings: tuple[Finding, ...] = ()
    """What is wrong with its files."""

    @property
    def attempts(self) -> Mapping[str, Attempt]:
        """Path → its attempt."""
        return attempts(self.session.sent)


@dataclass(slots=True)
class ProductHandoffs:
    """The handoffs of one project."""

    snapshot: Snapshot
    settings: Settings
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    """A later timestamp is in the future."""

    def sessions(self) -> tuple[str, ...]:
        """Return the ids of all sessions, the most recently written one last."""
        latest: dict[str, datetime] = {}
        for path in self._paths():
            if name := read_name(path):
                session, moment = name.gaps["session-id"].lower(), instant(name.gaps["timestamp"])
                latest[session] = max(moment, latest.get(session, moment))
        return tuple(sorted(latest, key=lambda session: (latest[session], session)))

    def session(self, session_id: str) -> StoredSession:
        """Return all files of a session, including misnamed ones."""
        sent: list[Sent] = []
        findings: list[Finding] = []
        for path in self._paths(session_id):
            data = self.snapshot.content(path)
            handoff, own_findings = (
                (None, [data])
                if isinstance(data, Finding)
                else self._alone(self._read(data, path), path)
            )
            if handoff is not None and handoff.envelope.session_id.lower() == session_id.lower():
                sent.append(handoff)
                findings += own_findings
            elif handoff is None and read_name(path):
                findings += own_findings
        choices, wrong = self._choices(session_id)
        return StoredSession(
            session_id, ProductSession(in_order(sent), choices), (*findings, *wrong)
        )

    def examine(self, path: str, data: bytes) -> tuple[Finding, ...]:
        """Return all that is wrong with the bytes of an envelope, or of choices, at a path, and
        the credentials in them.
        """
        return (*self.check_reading(path, self._read(data, path)), *self.secrets_in(path, data))

    def secrets_in(self, path: str, data: bytes) -> tuple[Finding, ...]:
        """Return the credentials for which bytes are not committed."""
        return find_secrets(data, path, frozenset(self.settings.policy.secrets_allowed))

    def check_reading(self, path: str, reading: Reading) -> tuple[Finding, ...]:
        """Return everything that is wrong with parsed data of an envelope or of choices."""
        chosen = CHOICES.fullmatch(os.path.basename(path))
        if chosen:
            return self._read_choices(reading, path, chosen["session"])[1]
        sent, findings = self._alone(reading, path)
        if sent is None:
            return tuple(findings)
        return (
            *findings,
            *self._misnamed(sent),
            *self._around(sent, self.session(sent.envelope.session_id).session),
        )

    def examine_sent(self, sent: Sent, session: ProductSession) -> tuple[Finding, ...]:
        """Return everything that is wrong with an envelope that is about to join a session."""
        _, faults = envelopes.read(sent.value, sent.path, self.now, self.settings.mode)
        return (*located(faults, sent.path), *self._around(sent, session))

    def _around(self, sent: Sent, session: ProductSession) -> Iterator[Finding]:
        yield from self._absent(sent)
        yield from located(faults_among(sent, session), sent.path)

    def _paths(self, session_id: str = "") -> Iterator[str]:
        """Yield the handoffs of a session, or of all; also every misnamed file, since only its
        content tells its session.
        """
        for name in sorted(self.snapshot.names(HANDOFF_FOLDER)):
            path = f"{HANDOFF_FOLDER}/{name}"
            stored = read_name(path)
            is_other = (
                stored and session_id and stored.gaps["session-id"].lower() != session_id.lower()
            )
            if (
                name.endswith(".json")
                and not name.startswith(".")
                and not CHOICES.fullmatch(name)
                and not is_other
            ):
                yield path

    def _read(self, data: bytes, path: str) -> Reading:
        return read_object(data, path, self.settings.limits)

    def _alone(self, reading: Reading, path: str) -> tuple[Sent | None, list[Finding]]:
        if not reading.records:
            return None, list(reading.findings)
        sent, faults = envelopes.read(reading.records[0].value, path, self.now, self.settings.mode)
        return sent, [*reading.findings, *located(faults, path)]

    def _misnamed(self, sent: Sent) -> Iterator[Finding]:
        right = right_name(sent)
        if os.path.dirname(sent.path) == HANDOFF_FOLDER and not names_same_handoff(
            sent.path, right
        ):
            message = "the file name does not match the handoff"
            yield Finding(
                Reason.NAME_MISMATCH, sent.path, 0, "", message, right, "Rename the file."
            )

    def _absent(self, sent: Sent) -> Iterator[Finding]:
        """Yield a finding for each file that an envelope names and that does not exist."""
        for at, named in mentioned_files(sent).items():
            if why := self.snapshot.why_absent(named):
                message = f"{named}: {why.message or why.reason.sentence}"
                yield replace(why, path=sent.path, line=1, at=at, message=message)

    def _choices(self, session_id: str) -> tuple[tuple[Choice, ...], tuple[Finding, ...]]:
        path = choices_path(session_id)
        data = self.snapshot.content(path)
        if isinstance(data, bytes):
            return self._read_choices(self._read(data, path), path, session_id)
        return (), (() if data.reason is Reason.FILE_MISSING else (data,))

    def _read_choices(
        self, reading: Reading, path: str, session_id: str
    ) -> tuple[tuple[Choice, ...], tuple[Finding, ...]]:
        if not reading.records:
            return (), reading.findings
        shaped, faults = check(Choices, reading.records[0].value, self.settings.mode)
        own = tuple(_check_choices(shaped, session_id)) if isinstance(shaped, Choices) else ()
        findings = (*reading.findings, *located((*faults, *own), path))
        return (
            () if errors(findings) or not isinstance(shaped, Choices) else tuple(shaped.choices)
        ), findings


def choices_path(session_id: str) -> str:
    """Return the path at which the choices of a session are recorded."""
    return f"{HANDOFF_FOLDER}/choices_{session_id.lower()}.json"


def _check_choices(choices: Choices, session_id: str) -> Iterator[Fault]:
    if choices.session_id.lower() != session_id.lower():
        yield Fault(
            Reason.NAME_MISMATCH, "/session_id", f"the choices of {choices.session_id}", session_id
        )
    for index, choice in enumerate(choices.choices):
        with suppress(ValueError):
            instant(choice.chosen_at)
            continue
        yield Fault(
            Reason.OUT_OF_RANGE,
            f"/choices/{index}/chosen_at",
            f"{choice.chosen_at!r} is not a UTC timestamp",
        )


def located(faults: Iterable[Fault], path: str) -> Iterator[Finding]:
    """Yield faults of an envelope as findings in its file."""
    for fault in faults:
        yield fault.as_finding(path, 1)


class ParsedMessage(NamedTuple):
    """A received message, as its receiver treats it."""

    type: str
    """Type of the message; empty if it is treated as plain text."""
    value: dict[str, Any]
    """The message; empty for plain text."""
    text: str
    """The plain text; empty for a message."""
    reasons: tuple[Reason, ...]
    """Why it is plain text, and whether there was any; empty for a message."""
    findings: tuple[Finding, ...]
    """What is wrong with it as a message."""


def parse_message(
    data: bytes, path: str, limits: Limits, mode: Strictness, options: WorkflowOptions
) -> ParsedMessage:
    """Return what was sent as a message, or as plain text with the reasons of document 004."""
    reading = read_object(data, path, limits)
    wrong = errors(reading.findings)
    if wrong or not reading.records:
        return _as_text(data, cause_of(wrong), wrong)
    line, value = reading.records[0]
    message, faults = read_message(value, mode)
    findings = tuple(fault.as_finding(path, line) for fault in faults)
    if message is None:
        return _as_text(data, Reason.SCHEMA_INVALID, findings)
    return ParsedMessage(
        message.type, value, "", (), (*findings, *message_findings(value, path, options))
    )


def _as_text(data: bytes, cause: Reason, findings: tuple[Finding, ...]) -> ParsedMessage:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    outcome = Reason.TEXT_FALLBACK_OK if text.strip() else Reason.TEXT_FALLBACK_FAIL
    return ParsedMessage("", {}, text, (cause, outcome), findings)
