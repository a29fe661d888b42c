"""Directive sessions: folders with a HANDOFF.md, and a README that names the session's branch.

See docs/dev/faults.md#f50 and #f51.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.checking.checker import read_branch
from yolo_fs.core.reasons import Finding, Reason
from yolo_fs.handoffs.lifecycle import (
    ABSENT,
    HANDOFF,
    README,
    ULTRA,
    DirectiveSession,
    faults_of_place,
    is_archived,
    priority_said,
)
from yolo_fs.system.files import names_in, read
from yolo_fs.system.text_checks import FindingList, decode
from yolo_fs.workspace.settings import Settings

if TYPE_CHECKING:
    from yolo_fs.schemas.packet import Packet


@dataclass(frozen=True, slots=True)
class PacketSource:
    """Place and bytes of a packet."""

    path: str
    """Relative to the repository, for a file outside it as the caller spells it, or `-` for stdin.
    """
    data: bytes
    written_at_s: float | None = None
    """When the file was last written; None for a text that is no file of the repository."""


class DirectiveSessions:
    """The directive sessions of one work tree."""

    def __init__(self, root: str, settings: Settings):
        self._root = root
        self._settings = settings

    @property
    def roots(self) -> Sequence[str]:
        """The folders whose sub-folders are sessions."""
        return self._settings.policy.directive_roots

    def open(self, path: str) -> PacketSource | Finding:
        """Read a file of the work tree, or return a finding about what is in its place."""
        content = read(self._root, path, self._settings.policy.max_file_bytes)
        if isinstance(content, Finding):
            return content
        if content.being_written:
            message, hint = "somebody is writing it at this moment", "Look again."
            return Finding(
                Reason.BEING_WRITTEN, path, message=message, expected="a whole file", hint=hint
            )
        return PacketSource(path, content.data, content.stamp.mtime_ns / 1e9)

    def folders(self) -> Iterator[str]:
        """Yield the folders of all sessions."""
        for root in self.roots:
            for name in names_in(os.path.join(self._root, root)):
                if os.path.isdir(os.path.join(self._root, root, name)):
                    yield f"{root}/{name}"

    def find(self, session_id: str) -> DirectiveSession | None:
        """Return the session with a GUID, without reading its branch, or None."""
        for root in self.roots:
            for name in names_in(os.path.join(self._root, root)):
                if name.casefold() == session_id.casefold():
                    return DirectiveSession(f"{root}/{name}")
        return None

    def handoff_of(self, session_id: str) -> str:
        """Return where the HANDOFF.md of a session is or should be."""
        session = self.find(session_id)
        root = next(iter(self.roots), PLANNING_ROOT)
        return f"{session.folder if session else f'{root}/{session_id}'}/{HANDOFF}"

    def of_packet(
        self, packet: Packet, path: str
    ) -> tuple[DirectiveSession | None, tuple[Finding, ...]]:
        """Return the session of a packet, and what is wrong with its README."""
        if packet.session_id == ABSENT:
            return None, ()
        folder = path.rpartition("/")[0]
        lies_in_one = any(folder.startswith(f"{root}/") for root in self.roots)
        session = DirectiveSession(folder) if lies_in_one else self.find(packet.session_id)
        if session is None:
            return None, ()
        branch, findings = self.branch_of(session)
        priority = priority_said(self._read_readme(session.folder))
        misplaced = faults_of_place(path, self.roots, packet.session_id)
        findings = (*findings, *(fault.as_finding(path, 1) for fault in misplaced))
        return session._replace(branch=branch, priority=priority), findings

    def is_archived(self, folder: str) -> bool:
        """Return whether a folder is that of a session whose README says that it is archived."""
        is_session = any(folder.startswith(f"{root}/") for root in self.roots)
        return is_session and is_archived(self._read_readme(folder))

    def ultra(self) -> Iterator[str]:
        """Yield the folders of the ultra sessions that are not archived."""
        for folder in self.folders():
            if priority_said(self._read_readme(folder)) == ULTRA and not self.is_archived(folder):
                yield folder

    def _read_readme(self, folder: str) -> Sequence[str]:
        """Return the lines of a session's README; none if unreadable, which `branch_of` reports."""
        source = self.open(f"{folder}/{README}")
        report = FindingList(README)
        text = (
            None
            if isinstance(source, Finding)
            else decode(source.data, self._settings.limits, report)
        )
        return text.whole() if text else ()

    def branch_of(self, session: DirectiveSession) -> tuple[str, tuple[Finding, ...]]:
        """Return `meta.directive_branch` of a session's README, or what is wrong with it."""
        path = f"{session.folder}/{README}"
        source = self.open(path)
        if isinstance(source, Finding):
            roots = ", ".join(self.roots) or "none"
            hint = f"Sessions are below yolo_fs.directive_roots of the configuration: {roots}."
            return "", (replace(source, hint=hint),)
        return read_branch(source.data, path, self._settings.limits)
