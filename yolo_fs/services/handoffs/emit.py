"""Hands work over: one complete packet, in the session's HANDOFF.md and as text for the chat, or
nothing at all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.store import write_text
from yolo_fs.reasons import Finding, Reason, errors
from yolo_fs.rules.artifacts.secrets import find_secrets
from yolo_fs.rules.handoffs.acceptance import ABSENT, faults_around
from yolo_fs.rules.handoffs.packets import TOP, ParsedPacket, as_chat, as_file, packet_of
from yolo_fs.schemas.packet import Packet
from yolo_fs.services.handoffs.accept import DirectiveHandoffs, written_in
from yolo_fs.services.handoffs.sessions import DirectiveSessions, PacketSource
from yolo_fs.services.workspace.settings import Settings


@dataclass(frozen=True, slots=True)
class EmittedHandoff:
    """What became of a packet that was to be emitted."""

    packet: Packet | None = None
    """None when nothing was emitted."""
    text: str = ""
    """The packet for the chat."""
    path: str = ""
    """HANDOFF.md that holds it; empty outside a directive session."""
    is_new: bool = False
    """False when the file said so already."""
    findings: tuple[Finding, ...] = ()
    """Why nothing was emitted."""


def emit(repository: Repository, settings: Settings, given: Mapping[str, str]) -> EmittedHandoff:
    """Write a complete packet or nothing. `given`: field → text; what the surroundings tell may be left out.

    Raises:
        YoloError: NO_SPACE or STORAGE_FAILED.
    """
    handoffs = DirectiveHandoffs(repository, settings)
    session_id = given.get("session_id", ABSENT)
    path = handoffs.sessions.handoff_of(session_id) if session_id != ABSENT else ""
    known = {
        "session_id": ABSENT,
        "task_file": ABSENT,
        "directive_branch": _branch(repository, handoffs.sessions, session_id),
        "required_reading": settings.policy.required_reading,
    }
    packet, findings = packet_of(
        ParsedPacket(path, {**known, **given}, top=TOP if path else ""), settings.mode
    )
    if packet is not None:
        findings = (
            *findings,
            *_faults_around(handoffs, packet, path),
            *_faults_of_text(settings, packet, path),
        )
    if packet is None or errors(findings):
        return EmittedHandoff(findings=findings)
    is_new = bool(path) and _replaced(
        handoffs, os.path.join(repository.root, path), path, as_file(packet)
    )
    return EmittedHandoff(packet, as_chat(packet), path, is_new, findings)


def _branch(repository: Repository, sessions: DirectiveSessions, session_id: str) -> str:
    """Return the branch on which a session is executed, as its README says, else the one checked out."""
    session = sessions.find(session_id)
    return (sessions.branch_of(session)[0] if session else "") or repository.head().branch


def _faults_around(handoffs: DirectiveHandoffs, packet: Packet, path: str) -> tuple[Finding, ...]:
    """Return what any receiver would have to stop for; which branch the sender is on does not matter."""
    session, findings = handoffs.sessions.of_packet(packet, path)
    written = ParsedPacket(path, top=TOP if path else "")
    faults = faults_around(packet, handoffs.around(packet, session))
    return (*findings, *(written.place(fault) for fault in faults))


def _faults_of_text(settings: Settings, packet: Packet, path: str) -> tuple[Finding, ...]:
    """Read what would be written: it must say the same again, and hold no credential."""
    text = as_file(packet) if path else as_chat(packet)
    data = text.encode()
    written = written_in(PacketSource(path, data), settings.limits)
    wrong = errors(written.findings)
    if not wrong and packet_of(written, settings.mode)[0] != packet:
        wrong = (
            Finding(
                Reason.INTERNAL_ERROR, path, message="the packet would not be read as it was given"
            ),
        )
    return wrong + find_secrets(data, path, frozenset(settings.policy.secrets_allowed))


def _replaced(handoffs: DirectiveHandoffs, full: str, path: str, text: str) -> bool:
    """Write HANDOFF.md unless it says so already; the folder was reached without following a link before."""
    before = handoffs.sessions.open(path)
    if isinstance(before, PacketSource) and before.data == text.encode():
        return False
    write_text(full, text)
    return True
