"""The whole catalogue: every kind that people and machines write, the artifacts among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from yolo_fs.reasons import Exit, Reason, YoloError
from yolo_fs.rules.artifacts.examine import shape_faults
from yolo_fs.rules.artifacts.table import ARTIFACTS, Artifact
from yolo_fs.schemas.base import Format, Wire
from yolo_fs.schemas.catalogue import (
    ANY_ENVELOPE,
    ANY_MESSAGE,
    Faults,
    Kind,
    LineShape,
    in_words,
)
from yolo_fs.schemas.catalogue import KINDS as _OTHERS

__all__ = ["KINDS", "Kind", "artifact_of", "find_kind", "kind_named"]


def _artifacts() -> Iterator[Kind]:
    for artifact in ARTIFACTS:
        yield Kind(
            f"artifact/{artifact.kind}",
            artifact.format,
            tuple(_line_shapes(artifact)),
            artifact.source,
            _faults_of(artifact),
            _how(artifact),
            artifact.file,
        )


def _how(artifact: Artifact) -> str:
    """Return what the format of an artifact does not say about how it is read."""
    if artifact.format is Format.JSON:
        return "on as many lines as it likes"
    if artifact.format is Format.FRONT_MATTER:
        return "the schema is that of the front matter"
    if artifact.format is not Format.JSONL:
        return ""
    if artifact.is_one_line:
        return "exactly one line"
    if artifact.repeats_header:
        return "each block begins with its header"
    return "line 1 is the header" if artifact.header else "each line stands alone"


def _faults_of(artifact: Artifact) -> Faults:
    return lambda records, mode: shape_faults(artifact, records, mode)


def _line_shapes(artifact: Artifact) -> Iterator[LineShape]:
    """Yield the shapes of an artifact's lines; those that only recognise a rival are left out."""
    header = (artifact.header,) if artifact.header else ()
    body = tuple(shape for shape in artifact.body if not _only_recognises(shape))
    if len(header) + len(body) == 1:
        yield LineShape("", (*header, *body)[0])
        return
    yield from (LineShape("header", shape) for shape in header)
    yield from (LineShape(_line_name(artifact.kind, shape), shape) for shape in body)
    if artifact.relaxed:
        relaxed_header, *relaxed_body = artifact.relaxed
        yield LineShape("turbo-header", relaxed_header)
        yield from (LineShape(_line_name(artifact.kind, shape), shape) for shape in relaxed_body)


def _only_recognises(shape: type[Wire]) -> bool:
    """Return whether a shape accepts nothing: such a one lets every value be anything, to explain how it should be."""
    return all(field.annotation is Any for field in shape.model_fields.values())


def _line_name(kind: str, shape: type[Wire]) -> str:
    """Return the shape's name without the words that its kind says already: `plan`, `PlanTask` → `task`."""
    said, words = kind.split("-"), list(in_words(shape.__name__))
    while len(words) > 1 and words[0] in said:
        del words[0]
    return "-".join(words)


KINDS: tuple[Kind, ...] = (*_artifacts(), *_OTHERS)
"""Every kind once, artifacts first."""

_BY_NAME: Mapping[str, Kind] = {kind.name: kind for kind in (*KINDS, ANY_MESSAGE, ANY_ENVELOPE)}
_ARTIFACT_BY_NAME = {f"artifact/{artifact.kind}": artifact for artifact in ARTIFACTS}


def find_kind(name: str) -> Kind | None:
    """Return the kind of that name, or None. The family may be left out where the rest is clear."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    found = [kind for kind in KINDS if kind.own_name == name]
    return found[0] if len(found) == 1 else None


def kind_named(name: str) -> Kind:
    """Return the kind of that name.

    Raises:
        YoloError: UNKNOWN_NAME, with the names that are spelled alike.

    """
    if kind := find_kind(name):
        return kind
    same = [kind.name for kind in KINDS if kind.own_name == name]
    alike = same or get_close_matches(name, [*_BY_NAME, *(kind.own_name for kind in KINDS)], n=3)
    meant = f"Perhaps {' or '.join(alike)}. " if alike else ""
    hint = f"{meant}'yolo-fs schema list' shows them all."
    raise YoloError(
        Reason.UNKNOWN_NAME, f"no kind is named {name[:80]!r}", hint=hint, exit_code=Exit.USAGE
    )


def artifact_of(kind: Kind) -> Artifact | None:
    """Return the artifact that a kind is, or None."""
    return _ARTIFACT_BY_NAME.get(kind.name)
