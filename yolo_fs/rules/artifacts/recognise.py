"""What a file is, told from its path and, where the path says nothing, from its content. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from yolo_fs.ids import NAME
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.rules.artifacts.handoff_names import HANDOFF_FOLDER
from yolo_fs.rules.artifacts.table import Artifact, Check
from yolo_fs.rules.artifacts.verdicts import Place

if TYPE_CHECKING:
    from yolo_fs.rules.artifacts.catalogue import Kind

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
        root, found, below = path.partition(f"/{folder}/")
        if found:
            return InTree(root or "/", f"{folder}/{below}")
    return None


def place_of_name(path: str) -> Place | None:
    """Return the place that a file outside a planning tree would have, told by its name alone."""
    name = path.rpartition("/")[2]
    for stand_in in (f"{PLANNING_ROOT}/phases/00-none/{name}", f"{PLANNING_ROOT}/{name}"):
        if place := classify(stand_in):
            return replace(place, path=path, phase=None, artifact=_alone(place.artifact))
    return None


def plans_named(names: Iterable[str]) -> frozenset[str]:
    """Return the ids of the plans among the names of a folder's files."""
    places = (place_of_name(name) for name in names if name.endswith(PLAN_SUFFIX))
    return frozenset(str(place.plan) for place in places if place)


_AMONG_PLANS = (Check.WAVES, Check.WAVE_ORDER)


def _alone(artifact: Artifact) -> Artifact:
    """Return the artifact without the checks that need its neighbours."""
    return replace(
        artifact, checks=tuple(check for check in artifact.checks if check not in _AMONG_PLANS)
    )


def kind_of_name(name: str) -> Kind | None:
    """Return the kind of a file that is no artifact but has a name of its own."""
    named = "state/dept-status" if _STATUS_FILE.fullmatch(name) else _OTHER_NAMES.get(name)
    if named is None:
        return None
    from yolo_fs.rules.artifacts.catalogue import kind_named

    return kind_named(named)


def kind_of_content(value: Mapping[str, Any]) -> Kind | None:
    """Return the kind that an object names itself."""
    from yolo_fs.rules.artifacts.catalogue import ANY_ENVELOPE, ANY_MESSAGE, find_kind

    if "handoff_version" in value:
        return ANY_ENVELOPE
    named = value.get("type")
    return ANY_MESSAGE if isinstance(named, str) and find_kind(f"message/{named}") else None


def has_own_name(name: str) -> bool:
    """Return whether a name is ours outside a planning tree too; `config.json` or `ROADMAP.md` are
    not.
    """
    return name.endswith((".jsonl", ".toon")) or name.startswith(".") or name == "HANDOFF.md"
