"""Every kind of file and message, artifacts included: its name, its shapes, and how it is read.

See docs/sources.md#document-000.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple

from yolo_fs.reasons import Exit, Fault, Reason, YoloError
from yolo_fs.rules.artifacts.examine import shape_faults
from yolo_fs.rules.artifacts.table import ARTIFACTS, Artifact, shape_named
from yolo_fs.schemas import state
from yolo_fs.schemas.base import Wire, check
from yolo_fs.schemas.config import Config
from yolo_fs.schemas.envelope.envelope import PAYLOADS, Envelope, payload_shape, read_envelope
from yolo_fs.schemas.envelope.reports import ErrorReport
from yolo_fs.schemas.layout import Format, Record, Strictness
from yolo_fs.schemas.messages.catalogue import MESSAGES, read_message
from yolo_fs.schemas.packet import HandoffFile, HandoffJson, Packet, read_handoff_json

Located = tuple[int, Fault]
"""A line number (0: the whole file) and what is wrong there."""
Faults = Callable[[Sequence[Record], Strictness], Iterator[Located]]


class LineShape(NamedTuple):
    """One shape that a line of a kind may have."""

    name: str
    """Such as `header` or `task`; empty where the kind has one shape only."""
    shape: type[Wire]


class EnvelopeRoute(NamedTuple):
    """Who hands an envelope to whom."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Kind:
    """One entry of the catalogue."""

    name: str
    """Such as `message/critique_result` or `artifact/plan`."""
    format: Format
    lines: tuple[LineShape, ...]
    """Shapes that its lines have; none where no JSON is read."""
    source: str
    """Document and section, or section of the protocol."""
    faults: Faults
    """Reads its records."""
    how: str = ""
    """What `format` does not say about how it is read."""
    file: str = ""
    """File name, where the protocol prescribes one."""
    payload: type[Wire] | None = None
    """Shape of an envelope's `payload`."""
    route: EnvelopeRoute | None = None
    """Route of an envelope."""

    @property
    def own_name(self) -> str:
        """The name without its family."""
        return self.name.rpartition("/")[2]


def in_words(class_name: str) -> tuple[str, ...]:
    """Return the words of a class name in small letters: `PlanTask` → `plan`, `task`."""
    return tuple(word.lower() for word in re.findall(r"[A-Z][a-z0-9]*", class_name))


# --- readers ---


def _first(read: Callable[[Mapping[str, Any], Strictness], tuple[Fault, ...]]) -> Faults:
    """Return the reader of a kind that is one object."""

    def faults(records: Sequence[Record], mode: Strictness) -> Iterator[Located]:
        for line, value in records[:1]:
            yield from ((line, fault) for fault in read(value, mode))

    return faults


def _shaped(shape: type[Wire]) -> Faults:
    return _first(lambda value, mode: check(shape, value, mode)[1])


def _message_named(name: str) -> Faults:
    def read(value: Mapping[str, Any], mode: Strictness) -> tuple[Fault, ...]:
        faults = read_message(value, mode)[1]
        said = value.get("type")
        if said == name or not isinstance(said, str) or said not in MESSAGES:
            return faults
        return (Fault(Reason.UNKNOWN_VALUE, "/type", f"a {said}", name), *faults)

    return _first(read)


def _envelope_with(payload: type[Wire], name: str) -> Faults:
    def read(value: Mapping[str, Any], mode: Strictness) -> tuple[Fault, ...]:
        faults = read_envelope(value, mode)[1]
        carried = payload_shape(value)
        if carried in (payload, None):
            return faults
        other = Fault(
            Reason.UNKNOWN_VALUE,
            "/payload",
            f"the payload of envelope/{payload_name(carried)}",
            name,
        )
        return (*faults, other)

    return _first(read)


def payload_name(shape: type[Wire] | None) -> str:
    """Return what an envelope with that payload is called below `envelope/`."""
    if shape is None or shape is ErrorReport:
        return "error"
    return "-".join(in_words(shape.__name__))


# --- the catalogue ---


def _messages() -> Iterator[Kind]:
    for name, shape in MESSAGES.items():
        yield Kind(
            f"message/{name}",
            Format.JSON,
            (LineShape("", shape),),
            f'document 000 ("{name}")',
            _message_named(name),
        )


def _envelopes() -> Iterator[Kind]:
    for (source, target), payload in PAYLOADS.items():
        route = EnvelopeRoute(source, target)
        yield _envelope(
            payload, "document 003, Phase-Specific Payloads", f"from {source} to {target}", route
        )
    yield _envelope(
        ErrorReport, "document 003, Error Handoff", "on any route, when `payload` has `error`"
    )


def _envelope(
    payload: type[Wire], source: str, how: str, route: EnvelopeRoute | None = None
) -> Kind:
    name = f"envelope/{payload_name(payload)}"
    lines = (LineShape("", Envelope),)
    return Kind(
        name,
        Format.JSON,
        lines,
        source,
        _envelope_with(payload, name),
        how,
        payload=payload,
        route=route,
    )


def _one(
    name: str, shape: type[Wire], source: str, file: str, faults: Faults | None = None
) -> Kind:
    return Kind(
        name, Format.JSON, (LineShape("", shape),), source, faults or _shaped(shape), file=file
    )


_STATES: tuple[tuple[str, type[Wire], str], ...] = (
    ("dept-status", state.DeptStatus, ".dept-status-{department}.json"),
    ("execution-state", state.ExecutionState, ".execution-state.json"),
    ("orchestration", state.Orchestration, ".phase-orchestration.json"),
    ("state", state.StateFile, "state.json"),
    ("escalation-state", state.EscalationState, ".escalation-state.json"),
)
_OTHERS: tuple[Kind, ...] = (
    *_messages(),
    *_envelopes(),
    _one("handoff/packet", Packet, "document 001, Handoff contract", ""),
    Kind(
        "handoff/handoff-file",
        Format.FRONT_MATTER,
        (LineShape("", HandoffFile),),
        "document 001, Directive-contained handoff",
        _shaped(HandoffFile),
        how="the schema is that of the front matter",
        file="HANDOFF.md",
    ),
    _one(
        "handoff/handoff-json",
        HandoffJson,
        "document 004, Add a handoff.json schema check after each agent invocation",
        "handoff.json",
        _first(lambda value, _: read_handoff_json(value)[1]),
    ),
    *(_one(f"state/{name}", shape, "the reference scripts", file) for name, shape, file in _STATES),
    _one("config", Config, "the reference scripts", "config.json"),
)
"""Families in the order of the documents; within a family the document's own order."""

ANY_MESSAGE = Kind(
    "message",
    Format.JSON,
    (),
    "document 000",
    _first(lambda value, mode: read_message(value, mode)[1]),
)
"""A message of whichever type it names."""
ANY_ENVELOPE = Kind(
    "envelope",
    Format.JSON,
    (),
    "document 003",
    _first(lambda value, mode: read_envelope(value, mode)[1]),
)
"""An envelope of whichever route it names."""


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
    header = artifact.shapes[: bool(artifact.header)]
    body = tuple(shape for shape in artifact.shapes[len(header) :] if not _only_recognises(shape))
    if len(header) + len(body) == 1:
        yield LineShape("", (*header, *body)[0])
        return
    yield from (LineShape("header", shape) for shape in header)
    yield from (LineShape(_name_of_line(artifact.kind, shape), shape) for shape in body)
    if artifact.relaxed:
        relaxed_header, *relaxed_body = map(shape_named, artifact.relaxed)
        yield LineShape("turbo-header", relaxed_header)
        yield from (LineShape(_name_of_line(artifact.kind, shape), shape) for shape in relaxed_body)


def _only_recognises(shape: type[Wire]) -> bool:
    """Return whether a shape accepts nothing: such a one lets every value be anything, to explain
    how it should be.
    """
    return all(field.annotation is Any for field in shape.model_fields.values())


def _name_of_line(kind: str, shape: type[Wire]) -> str:
    """Return the shape's name without the words that its kind says already: `plan`, `PlanTask` →
    `task`.
    """
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
