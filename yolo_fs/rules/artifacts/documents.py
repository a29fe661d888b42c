"""Artifacts outside the planning tree: the handoffs of the product workflow, watched where the user wants it.

See docs/sources.md#document-003.
"""

from __future__ import annotations

from yolo_fs.rules.artifacts.handoff_names import CHOICES, HANDOFF_FOLDER, HANDOFF_ROW, read_name
from yolo_fs.rules.artifacts.table import Artifact, Check, Home, Naming
from yolo_fs.rules.artifacts.verdicts import Place
from yolo_fs.schemas.base import Format
from yolo_fs.schemas.envelope.choice import Choices
from yolo_fs.schemas.envelope.envelope import Envelope
from yolo_fs.subject import Subject

FOLDER = HANDOFF_FOLDER
_SUBJECT = (Subject("docs(handoffs): {artifact}"),)

ENVELOPE = Artifact(
    kind="envelope",
    file=HANDOFF_ROW.name,
    format=Format.JSON,
    subjects=_SUBJECT,
    source="document 003 (Master Handoff Envelope, File Storage Convention)",
    header=Envelope,
    naming=Naming.ROUTE,
    checks=(Check.PAYLOAD,),
    home=Home.DOCUMENTS,
)
CHOICE = Artifact(
    kind="envelope-choices",
    file="choices_[session-id].json",
    format=Format.JSON,
    subjects=_SUBJECT,
    source="document 003 (Error Handling)",
    header=Choices,
    naming=Naming.ROUTE,
    home=Home.DOCUMENTS,
)

DOCUMENTS = (ENVELOPE, CHOICE)


def place_of(path: str) -> Place | None:
    """Return the place of a path of the handoff folder, or None when it is no handoff."""
    folder, _, name = path.rpartition("/")
    if folder != FOLDER:
        return None
    if CHOICES.fullmatch(name):
        return Place(path, CHOICE)
    found = read_name(path)
    return Place(path, ENVELOPE) if found and found.row is HANDOFF_ROW else None
