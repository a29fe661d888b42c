"""Parses what was sent: a message of the protocol, or plain text with the reason why it is
not one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from yolo_fs.edges.lines import Limits, read_object
from yolo_fs.protocol.names import Mode
from yolo_fs.reasons import Finding, Reason, errors
from yolo_fs.rules.authz.message_routes import message_findings
from yolo_fs.rules.handoffs.reading import cause_of
from yolo_fs.schemas.base import Strictness
from yolo_fs.schemas.messages import read_message


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """What was sent, as its receiver takes it."""

    type: str
    """Type of the message; empty when it is taken as plain text."""
    value: dict[str, Any]
    """The message; empty for plain text."""
    text: str
    """The plain text; empty for a message."""
    reasons: tuple[Reason, ...]
    """Why it is plain text, and whether there was any; nothing for a message."""
    findings: tuple[Finding, ...]
    """What is wrong with it as a message."""


def parse_message(
    data: bytes, path: str, limits: Limits, mode: Strictness, departments: Mode
) -> ParsedMessage:
    """Return what was sent as a message, or as plain text with the reasons of document 004."""
    reading = read_object(data, path, limits)
    wrong = errors(reading.findings)
    if wrong or not reading.records:
        return _as_text(data, cause_of(wrong), wrong)
    line, value = reading.records[0]
    message, faults = read_message(value, mode)
    found = tuple(fault.as_finding(path, line) for fault in faults)
    if message is None:
        return _as_text(data, Reason.SCHEMA_INVALID, found)
    return ParsedMessage(
        message.type, value, "", (), (*found, *message_findings(value, path, departments))
    )


def _as_text(data: bytes, cause: Reason, findings: tuple[Finding, ...]) -> ParsedMessage:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    outcome = Reason.TEXT_FALLBACK_OK if text.strip() else Reason.TEXT_FALLBACK_FAIL
    return ParsedMessage("", {}, text, (cause, outcome), findings)
