"""Path → place, by allow-list: a path without a row is not an artifact, and is never read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from yolo_fs.ids import PHASE_DIRECTORY, PLAN, PhaseId, PlanId
from yolo_fs.protocol.departments import WORKING, WORKING_NAMES
from yolo_fs.rules.artifacts.handoff_names import (
    CHOICES,
    GUID,
    HANDOFF_FOLDER,
    HANDOFF_ROW,
    read_name,
)
from yolo_fs.rules.artifacts.table import ARTIFACTS, Artifact, Check, Home, Naming
from yolo_fs.rules.artifacts.verdicts import Place
from yolo_fs.schemas.layout import Format
from yolo_fs.subject import Subject

PLANNING_ROOT = ".yolo-planning"
_REMEMBERED = 10_000
"""Paths whose place is remembered: each is asked for by the watcher, the scan and the look."""


# --- artifacts outside the planning tree: handoffs of the product, docs/sources.md#document-003 ---

_SUBJECT = (Subject("docs(handoffs): {artifact}"),)

ENVELOPE = Artifact(
    kind="envelope",
    file=HANDOFF_ROW.name,
    format=Format.JSON,
    subjects=_SUBJECT,
    source="document 003 (Master Handoff Envelope, File Storage Convention)",
    header="envelope.envelope.Envelope",
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
    header="envelope.envelope.Choices",
    naming=Naming.ROUTE,
    home=Home.DOCUMENTS,
)

DOCUMENTS = (ENVELOPE, CHOICE)

_ROLE_HANDOFF = next(row for row in ARTIFACTS if row.kind == "handoff")
_OF_SESSION = re.compile(rf"(?:.+/)?{GUID}/{re.escape(_ROLE_HANDOFF.file)}")
"""A role's handoff in the folder of its directive session, docs/sources.md#document-001."""


def _unnamed(pattern: re.Pattern[str]) -> str:
    """Return a pattern without the names of its groups, so that it can stand inside another."""
    return re.sub(r"\?P<\w+>", "", pattern.pattern)


_DEPARTMENT_OF_PREFIX = {row.prefix: str(row.name) for row in WORKING}
_SLUG = re.compile(r"[a-z0-9][a-z0-9-]*")
_MILESTONE = rf"(?:milestones/{_SLUG.pattern}/)?"
_HOMES = {
    Home.PHASE: rf"{_MILESTONE}phases/(?P<directory>{_unnamed(PHASE_DIRECTORY)})/",
    Home.ROOT: _MILESTONE,
    Home.ANYWHERE: rf"(?:{_MILESTONE}phases/(?P<directory>[^/]+)/)?(?:[^/]+/)*",
}
_GAPS = {
    "dept": f"(?P<prefix>{'|'.join(sorted(_DEPARTMENT_OF_PREFIX, reverse=True))})",
    "plan": f"(?P<plan>{_unnamed(PLAN)})",
    "NN": "(?P<number>[0-9]{2})",
    "department": f"(?P<department>{'|'.join(WORKING_NAMES)})",
}


class _Name(NamedTuple):
    artifact: Artifact
    ending: str
    """What every such name ends in: asked first, for most rows fail there."""
    pattern: re.Pattern[str]


def _parts(artifact: Artifact) -> list[str]:
    """Return the file name taken apart: text, gap, text, gap and so on, text."""
    return re.split(r"\{(\w+)\}", artifact.file)


def _pattern(artifact: Artifact) -> re.Pattern[str]:
    parts = _parts(artifact)
    name = "".join(
        _GAPS[part] if index % 2 else re.escape(part) for index, part in enumerate(parts)
    )
    return re.compile(_HOMES[artifact.home] + name)


@cache
def _names() -> tuple[_Name, ...]:
    return tuple(
        _Name(artifact, _parts(artifact)[-1], _pattern(artifact)) for artifact in ARTIFACTS
    )


def milestone_named(active: bytes) -> str:
    """Return the folder of the milestone that the content of `ACTIVE` names; empty for none."""
    slug = active.decode("utf-8", "replace").strip()
    return f"{PLANNING_ROOT}/milestones/{slug}" if _SLUG.fullmatch(slug) else ""


def in_force(files: Mapping[str, str], home: str) -> dict[str, str]:
    """Return the files that the phases in `home` are judged by: those of no other milestone, and
    of the planning root what the milestone does not have itself.
    """
    milestones, phases = f"{PLANNING_ROOT}/milestones/", f"{PLANNING_ROOT}/phases/"
    if home == PLANNING_ROOT:
        return {path: blob for path, blob in files.items() if not path.startswith(milestones)}
    own = {path: blob for path, blob in files.items() if path.startswith(f"{home}/")}
    replaced = {f"{PLANNING_ROOT}/{path[len(home) + 1 :]}" for path in own}
    shared = {
        path: blob
        for path, blob in files.items()
        if not path.startswith((milestones, phases)) and path not in replaced
    }
    return shared | own


@lru_cache(maxsize=_REMEMBERED)
def classify(path: str, root: str = PLANNING_ROOT) -> Place | None:
    """Return the place of a path (POSIX, relative to the repository), or None when it is not an
    artifact.
    """
    if not path.isascii():
        return None
    if not path.startswith(root + "/"):
        return _place_of_document(path)
    below = path[len(root) + 1 :]
    for name in _names():
        if below.endswith(name.ending) and (found := name.pattern.fullmatch(below)):
            return _place(path, name.artifact, found.groupdict())
    return None


def _place(path: str, artifact: Artifact, found: dict[str, str | None]) -> Place:
    department = found.get("department") or _DEPARTMENT_OF_PREFIX[found.get("prefix") or ""]
    return Place(
        path,
        artifact,
        PhaseId.parse(found.get("directory") or ""),
        PlanId.parse(found.get("plan") or ""),
        department,
    )


def _place_of_document(path: str) -> Place | None:
    """Return the place of a path outside the planning tree, or None when it is not a handoff."""
    if _OF_SESSION.fullmatch(path):
        return Place(path, _ROLE_HANDOFF)
    folder, _, name = path.rpartition("/")
    if folder != HANDOFF_FOLDER:
        return None
    if CHOICES.fullmatch(name):
        return Place(path, CHOICE)
    handoff = read_name(path)
    return Place(path, ENVELOPE) if handoff and handoff.row is HANDOFF_ROW else None
