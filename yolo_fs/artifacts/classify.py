"""Path → place, by allow-list: a path without a row is not an artifact, and is never read. Also the
kind of any file, from its content where the path does not tell. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from yolo_fs.artifacts.handoff_names import CHOICES, GUID, HANDOFF_FOLDER, HANDOFF_ROW, read_name
from yolo_fs.artifacts.table import ARTIFACTS, Artifact, Check, Home, Naming
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.core.ids import NAME, PHASE_DIRECTORY, PLAN, PhaseId, PlanId, Subject
from yolo_fs.protocol.departments import DEPARTMENT_BY_PREFIX, WORKING_NAMES
from yolo_fs.schemas.layout import Format

if TYPE_CHECKING:
    from yolo_fs.artifacts.catalogue import Kind


PLANNING_ROOT = ".yolo-planning"
PROJECT_STATE = f"{PLANNING_ROOT}/state.json"
_REMEMBERED = 10_000
"""Size of the caches of places: the watcher, the scan and the check all ask for each path, and each
plan for all beside it."""


# Artifacts outside the planning tree: handoffs of the product, docs/dev/sources.md#document-003.
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

ROLE_HANDOFF = next(row for row in ARTIFACTS if row.kind == "handoff")
_OF_SESSION = re.compile(rf"(?:.+/)?{GUID}/{re.escape(ROLE_HANDOFF.file)}")
"""A role's handoff in the folder of its directive session, docs/dev/sources.md#document-001."""


def _unname_groups(pattern: re.Pattern[str]) -> str:
    """Return a pattern with its groups unnamed, so that it can be part of another pattern."""
    return re.sub(r"\?P<\w+>", "", pattern.pattern)


_SLUG = re.compile(r"[a-z0-9][a-z0-9-]*")
_MILESTONE = rf"(?:milestones/{_SLUG.pattern}/)?"
_HOMES = {
    Home.PHASE: rf"{_MILESTONE}phases/(?P<directory>{_unname_groups(PHASE_DIRECTORY)})/",
    Home.ROOT: _MILESTONE,
    Home.ANYWHERE: rf"(?:{_MILESTONE}phases/(?P<directory>[^/]+)/)?(?:[^/]+/)*",
}
_GAPS = {
    "dept": f"(?P<prefix>{'|'.join(sorted(DEPARTMENT_BY_PREFIX, reverse=True))})",
    "plan": f"(?P<plan>{_unname_groups(PLAN)})",
    "NN": "(?P<number>[0-9]{2})",
    "department": f"(?P<department>{'|'.join(WORKING_NAMES)})",
}


class _Name(NamedTuple):
    artifact: Artifact
    ending: str
    """Common suffix of these names, tested first: most rows fail here."""
    pattern: str
    """Compiled on the first path with the suffix: most commands see few kinds."""


def _parts(artifact: Artifact) -> list[str]:
    """Return the file name taken apart: text, gap, text, gap and so on, text."""
    return re.split(r"\{(\w+)\}", artifact.file)


def _pattern(artifact: Artifact) -> str:
    parts = _parts(artifact)
    name = "".join(
        _GAPS[part] if index % 2 else re.escape(part) for index, part in enumerate(parts)
    )
    return _HOMES[artifact.home] + name


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
    """Return the files by which the phases in `home` are judged.

    They are those of its own milestone, and those of the planning root that it does not override.
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


def touches_phase(paths: Iterable[str]) -> bool:
    """Return whether one of these paths is an artifact of a phase."""
    return any(place.phase is not None for place in map(classify, paths) if place)


def phase_folder_of(path: str) -> str:
    """Return the name of the phase directory that a path lies in; empty outside of one."""
    match = re.match(f"{re.escape(PLANNING_ROOT)}/{_HOMES[Home.PHASE]}", path)
    return match["directory"] if match else ""


@lru_cache(maxsize=_REMEMBERED)
def classify(path: str) -> ArtifactPath | None:
    """Return the place of a path (POSIX, relative to the repository); None if it is no artifact."""
    if not path.isascii():
        return None
    if not path.startswith(f"{PLANNING_ROOT}/"):
        return _place_of_document(path)
    below = path.removeprefix(f"{PLANNING_ROOT}/")
    for name in _names():
        if below.endswith(name.ending) and (match := re.fullmatch(name.pattern, below)):
            return _place(path, name.artifact, match.groupdict())
    return None


@dataclass(frozen=True)
class ClassifiedPath:
    """A path with its classification."""

    path: str
    """POSIX path relative to the repository."""

    @cached_property
    def place(self) -> ArtifactPath | None:
        """The artifact that it is, if any."""
        return classify(self.path)

    @property
    def kind(self) -> str:
        """Kind of the artifact; empty when it is none."""
        return self.place.artifact.kind if self.place else ""


def _place(path: str, artifact: Artifact, groups: dict[str, str | None]) -> ArtifactPath:
    department = groups.get("department") or str(DEPARTMENT_BY_PREFIX[groups.get("prefix") or ""])
    return ArtifactPath(
        path,
        artifact,
        PhaseId.parse(groups.get("directory") or ""),
        PlanId.parse(groups.get("plan") or ""),
        department,
    )


def _place_of_document(path: str) -> ArtifactPath | None:
    """Return the place of a path outside the planning tree, or None when it is not a handoff."""
    if _OF_SESSION.fullmatch(path):
        return ArtifactPath(path, ROLE_HANDOFF)
    folder, _, name = path.rpartition("/")
    if folder != HANDOFF_FOLDER:
        return None
    if CHOICES.fullmatch(name):
        return ArtifactPath(path, CHOICE)
    handoff = read_name(path)
    return ArtifactPath(path, ENVELOPE) if handoff and handoff.row is HANDOFF_ROW else None


PLAN_SUFFIX = ".plan.jsonl"
SUMMARY_SUFFIX = ".summary.jsonl"
_STATUS_FILE = re.compile(rf"\.dept-status-{NAME.pattern}\.json")
_OTHER_NAMES = {"config.json": "config", "handoff.json": "handoff/handoff-json"}


class InTree(NamedTuple):
    """A path within a planning tree or a folder of handoffs."""

    root: str
    """The directory that holds that tree or folder."""
    path: str
    """POSIX path from there."""


def in_tree(path: str) -> InTree | None:
    """Return where in a planning tree, or in a folder of handoffs, an absolute path lies."""
    for folder in (PLANNING_ROOT, HANDOFF_FOLDER):
        root, separator, below = path.partition(f"/{folder}/")
        if separator:
            return InTree(root or "/", f"{folder}/{below}")
    return None


@lru_cache(maxsize=_REMEMBERED)
def place_of_name(path: str) -> ArtifactPath | None:
    """Return the place of a file outside of a planning tree, by its name alone."""
    name = path.rpartition("/")[2]
    for stand_in in (f"{PLANNING_ROOT}/phases/00-none/{name}", f"{PLANNING_ROOT}/{name}"):
        if place := classify(stand_in):
            return place._replace(path=path, phase=None, artifact=_alone(place.artifact))
    return None


def plans_named(names: Iterable[str]) -> frozenset[str]:
    """Return the ids of the plans among the file names of a folder."""
    places = (place_of_name(name) for name in names if name.endswith(PLAN_SUFFIX))
    return frozenset(str(place.plan) for place in places if place)


_AMONG_PLANS = (Check.WAVES, Check.WAVE_ORDER, Check.REFERENCES, Check.DISPOSITIONS)


def _alone(artifact: Artifact) -> Artifact:
    """Return the artifact without the checks that need other plans."""
    checks = tuple(check for check in artifact.checks if check not in _AMONG_PLANS)
    return artifact._replace(checks=checks)


def kind_of_name(name: str) -> Kind | None:
    """Return the kind of a file that is not an artifact but has a reserved name."""
    named = name_of_kind(name)
    if named is None:
        return None
    from yolo_fs.artifacts.catalogue import kind_named

    return kind_named(named)


def name_of_kind(name: str) -> str | None:
    """Return the name of the kind of a file that is not an artifact but has a reserved name."""
    return "state/dept-status" if _STATUS_FILE.fullmatch(name) else _OTHER_NAMES.get(name)


def kind_of_content(value: Mapping[str, Any]) -> Kind | None:
    """Return the kind that an object names."""
    from yolo_fs.artifacts.catalogue import ANY_ENVELOPE, ANY_MESSAGE, find_kind

    if "handoff_version" in value:
        return ANY_ENVELOPE
    named = value.get("type")
    return ANY_MESSAGE if isinstance(named, str) and find_kind(f"message/{named}") else None


def has_own_name(name: str) -> bool:
    """Return whether a name is distinctive outside of a planning tree; `config.json` is not."""
    return name.endswith((".jsonl", ".toon")) or name.startswith(".") or name == "HANDOFF.md"
