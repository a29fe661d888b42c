"""What a file is, told from its path and, where the path says nothing, from its content. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from yolo_fs.ids import NAME
from yolo_fs.reasons import Reason
from yolo_fs.rules.artifacts.catalogue import FAMILIES, Kind, artifact_of, find_kind, kind_named
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.rules.artifacts.table import Artifact, Check
from yolo_fs.rules.artifacts.verdicts import Place
from yolo_fs.schemas.base import Format
from yolo_fs.schemas.catalogue import ANY_ENVELOPE, ANY_MESSAGE
from yolo_fs.schemas.messages import MESSAGES

_FAMILY_OF_READERS = "reader"
_READER_EXAMPLES: Mapping[tuple[str, str], Format] = {
    (_FAMILY_OF_READERS, "jsonl"): Format.JSONL,
    (_FAMILY_OF_READERS, "json"): Format.JSON,
    (_FAMILY_OF_READERS, "md"): Format.TEXT,
    ("front_matter", "md"): Format.FRONT_MATTER,
    ("toon", "toon"): Format.TOON,
}
"""(folder, ending) of the examples that only a reader looks at."""

_ENDINGS: Mapping[Format, str] = {
    Format.JSON: ".json",
    Format.JSONL: ".jsonl",
    Format.FRONT_MATTER: ".md",
    Format.TOON: ".toon",
    Format.TEXT: ".md",
}
_STATUS_FILE = re.compile(rf"\.dept-status-{NAME.pattern}\.json")
_OTHER_NAMES = {"config.json": "config", "handoff.json": "handoff/handoff-json"}


class Example(NamedTuple):
    """A file that shows how its kind is written, or how not."""

    kind: Kind
    expected: Reason | None
    """None for a good example."""
    is_small: bool
    """Read with the small limits that examples of the readers are made for."""


class InTree(NamedTuple):
    """A path within a planning tree."""

    root: str
    """The directory that holds the planning tree."""
    path: str
    """POSIX path from there."""


def in_tree(path: str) -> InTree | None:
    """Return where in a planning tree an absolute path lies, or None when it lies in none."""
    root, found, below = path.partition(f"/{PLANNING_ROOT}/")
    return InTree(root or "/", f"{PLANNING_ROOT}/{below}") if found else None


def example_of(path: str) -> Example | None:
    """Return which kind a file `<kind>/ok/…` or `<kind>/bad/<reason>__…` is an example of, or None."""
    *_, family, folder, verdict, name = ("", "", "", *path.split("/"))
    if verdict not in ("ok", "bad"):
        return None
    format_ = _READER_EXAMPLES.get((folder, name.rpartition(".")[2]))
    kind = _reader_kind(folder, format_) if format_ else _kind_of_examples(family, folder, name)
    expected = None if verdict == "ok" else _reason(name.partition("__")[0])
    if kind is None or (verdict == "bad" and expected is None):
        return None
    return Example(kind, expected, folder == _FAMILY_OF_READERS)


def _reader_kind(folder: str, format_: Format) -> Kind:
    return Kind(f"reader/{folder}", format_, (), "the reader", lambda _records, _mode: iter(()))


def _kind_of_examples(family: str, folder: str, name: str) -> Kind | None:
    kind = find_kind(FAMILIES[family] + folder) if family in FAMILIES else find_kind(folder)
    return kind if kind and name.endswith(_ENDINGS[kind.format]) else None


def _reason(code: str) -> Reason | None:
    return next((reason for reason in Reason if reason.value == code), None)


def place_of_name(path: str) -> Place | None:
    """Return the place that a file outside a planning tree would have, told by its name alone."""
    name = path.rpartition("/")[2]
    for stand_in in (f"{PLANNING_ROOT}/phases/00-none/{name}", f"{PLANNING_ROOT}/{name}"):
        if place := classify(stand_in):
            return replace(place, path=path, phase=None, artifact=_alone(place.artifact))
    return None


def _alone(artifact: Artifact) -> Artifact:
    """Return the artifact without the check that needs its neighbours."""
    return replace(
        artifact, checks=tuple(check for check in artifact.checks if check is not Check.WAVES)
    )


def kind_of_name(name: str) -> Kind | None:
    """Return the kind of a file that is no artifact but has a name of its own."""
    if _STATUS_FILE.fullmatch(name):
        return kind_named("state/dept-status")
    return kind_named(_OTHER_NAMES[name]) if name in _OTHER_NAMES else None


def kind_of_content(value: Mapping[str, Any]) -> Kind | None:
    """Return the kind that an object names itself."""
    if "handoff_version" in value:
        return ANY_ENVELOPE
    named = value.get("type")
    return ANY_MESSAGE if isinstance(named, str) and named in MESSAGES else None


def tells_itself(name: str) -> bool:
    """Tell whether a name outside a planning tree is ours: `config.json` or `ROADMAP.md` are everybody's."""
    return name.endswith((".jsonl", ".toon")) or name.startswith(".") or name == "HANDOFF.md"


def place_of_kind(kind: Kind, path: str) -> Place | None:
    """Return a place without surroundings for a file of a kind, or None when the kind is no artifact."""
    artifact = artifact_of(kind)
    return Place(path, artifact) if artifact else None
