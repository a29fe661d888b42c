"""Every kind of file and message, artifacts included: its name, its shapes, and how it is read.

Shapes are slow to import, so only the requested ones are imported. See
docs/dev/sources.md#document-000.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from yolo_fs.artifacts.examine import shape_faults
from yolo_fs.artifacts.table import ARTIFACTS, Artifact, shape_named
from yolo_fs.artifacts.verdicts import Located
from yolo_fs.core.reasons import Fault, Reason, YoloError
from yolo_fs.schemas.layout import Format, Record, Strictness

if TYPE_CHECKING:
    from yolo_fs.schemas.base import Shape

Faults = Callable[[Sequence[Record], Strictness], Iterator[Located]]


class LineShape(NamedTuple):
    """One shape that a line of a kind may have."""

    name: str
    """Such as `header` or `task`; empty where the kind has one shape only."""
    shape: type[Shape]


class EnvelopeRoute(NamedTuple):
    """Sender and receiver of an envelope."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Kind:
    """One entry of the catalogue."""

    name: str
    """Such as `message/critique_result` or `artifact/plan`."""
    format: Format
    _lines: Callable[[], Iterable[LineShape]]
    source: str
    """Document and section, or section of the protocol."""
    faults: Faults
    """Validates its records."""
    how: str = ""
    """Details of reading that `format` does not cover."""
    file: str = ""
    """File name, where the protocol prescribes one."""
    payload: type[Shape] | None = None
    """Shape of an envelope's `payload`."""
    route: EnvelopeRoute | None = None
    """Route of an envelope."""

    @property
    def lines(self) -> tuple[LineShape, ...]:
        """Shapes that its lines, or its front matter, may have; none for a kind without shapes of
        its own, such as TOON.
        """
        return tuple(self._lines())

    @property
    def own_name(self) -> str:
        """The name without its family."""
        return self.name.rpartition("/")[2]


def in_words(class_name: str) -> tuple[str, ...]:
    """Return the words of a class name in lower case: `PlanTask` → `plan`, `task`."""
    return tuple(word.lower() for word in re.findall(r"[A-Z][a-z0-9]*", class_name))


def _first(read: Callable[[Mapping[str, Any], Strictness], tuple[Fault, ...]]) -> Faults:
    """Return the validator of a kind that is a single object."""

    def faults(records: Sequence[Record], mode: Strictness) -> Iterator[Located]:
        for line, value in records[:1]:
            yield from ((line, fault) for fault in read(value, mode))

    return faults


def _check_message(value: Mapping[str, Any], mode: Strictness) -> tuple[Fault, ...]:
    from yolo_fs.schemas.messages.catalogue import read_message

    return read_message(value, mode)[1]


def _check_envelope(value: Mapping[str, Any], mode: Strictness) -> tuple[Fault, ...]:
    from yolo_fs.schemas.envelope.envelope import read_envelope

    return read_envelope(value, mode)[1]


def _require_message_type(name: str) -> Faults:
    from yolo_fs.schemas.messages.catalogue import MESSAGES

    def read(value: Mapping[str, Any], mode: Strictness) -> tuple[Fault, ...]:
        faults = _check_message(value, mode)
        type_name = value.get("type")
        if type_name == name or not isinstance(type_name, str) or type_name not in MESSAGES:
            return faults
        return (Fault(Reason.UNKNOWN_VALUE, "/type", f"a {type_name}", name), *faults)

    return _first(read)


def _require_payload(payload: type[Shape], name: str) -> Faults:
    from yolo_fs.schemas.envelope.envelope import payload_shape

    def read(value: Mapping[str, Any], mode: Strictness) -> tuple[Fault, ...]:
        faults = _check_envelope(value, mode)
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


def payload_name(shape: type[Shape] | None) -> str:
    """Return the name below `envelope/` of an envelope with that payload."""
    from yolo_fs.schemas.envelope.reports import ErrorReport

    if shape is None or shape is ErrorReport:
        return "error"
    return "-".join(in_words(shape.__name__))


def _messages() -> Iterator[Kind]:
    from yolo_fs.schemas.messages.catalogue import MESSAGES

    for name, shape in MESSAGES.items():
        yield Kind(
            f"message/{name}",
            Format.JSON,
            _single_line_of(shape),
            f'document 000 ("{name}")',
            _require_message_type(name),
        )


def _build_envelope_kinds() -> Iterator[Kind]:
    from yolo_fs.schemas.envelope.envelope import PAYLOADS
    from yolo_fs.schemas.envelope.reports import ErrorReport

    for (source, target), payload in PAYLOADS.items():
        route = EnvelopeRoute(source, target)
        yield _build_envelope_kind(
            payload, "document 003, Phase-Specific Payloads", f"from {source} to {target}", route
        )
    yield _build_envelope_kind(
        ErrorReport, "document 003, Error Handoff", "on any route, when `payload` has `error`"
    )


def _build_envelope_kind(
    payload: type[Shape], source: str, how: str, route: EnvelopeRoute | None = None
) -> Kind:
    from yolo_fs.schemas.envelope.envelope import Envelope

    name = f"envelope/{payload_name(payload)}"
    return Kind(
        name,
        Format.JSON,
        _single_line_of(Envelope),
        source,
        _require_payload(payload, name),
        how,
        payload=payload,
        route=route,
    )


def _single_line_of(shape: type[Shape]) -> Callable[[], Iterable[LineShape]]:
    return lambda: [LineShape("", shape)]


def _one(name: str, shape: str, source: str, file: str, faults: Faults | None = None) -> Kind:
    """Return the kind of a single object; `shape`: its name below `yolo_fs.schemas`."""
    return Kind(
        name,
        Format.JSON,
        lambda: [LineShape("", shape_named(shape))],
        source,
        faults or _shaped(shape),
        file=file,
    )


def _shaped(shape: str) -> Faults:
    def faults_in(value: Mapping[str, Any], mode: Strictness) -> tuple[Fault, ...]:
        from yolo_fs.schemas.check import check

        return check(shape_named(shape), value, mode)[1]

    return _first(faults_in)


def _check_handoff_json(value: Mapping[str, Any], _: Strictness) -> tuple[Fault, ...]:
    from yolo_fs.schemas.packet import read_handoff_json

    return read_handoff_json(value)[1]


_SCRIPTS = "the reference scripts"
_STATES = (
    ("state/dept-status", "state.DeptStatus", ".dept-status-{department}.json"),
    ("state/execution-state", "state.ExecutionState", ".execution-state.json"),
    ("state/orchestration", "state.Orchestration", ".phase-orchestration.json"),
    ("state/state", "state.StateFile", "state.json"),
    ("state/escalation-state", "state.EscalationState", ".escalation-state.json"),
    ("config", "config.Config", "config.json"),
)
_FILES = (
    _one("handoff/packet", "packet.Packet", "document 001, Handoff contract", ""),
    Kind(
        "handoff/handoff-file",
        Format.FRONT_MATTER,
        lambda: [LineShape("", shape_named("packet.HandoffFile"))],
        "document 001, Directive-contained handoff",
        _shaped("packet.HandoffFile"),
        how="the schema is that of the front matter",
        file="HANDOFF.md",
    ),
    _one(
        "handoff/handoff-json",
        "packet.HandoffJson",
        "document 004, Add a handoff.json schema check after each agent invocation",
        "handoff.json",
        _first(_check_handoff_json),
    ),
    *(_one(name, shape, _SCRIPTS, file) for name, shape, file in _STATES),
)
"""Files of one shape, in the order of the documents."""

ANY_MESSAGE = Kind("message", Format.JSON, tuple, "document 000", _first(_check_message))
"""A message of the type that it names."""
ANY_ENVELOPE = Kind("envelope", Format.JSON, tuple, "document 003", _first(_check_envelope))
"""An envelope of the route that it names."""


def _artifacts() -> Iterator[Kind]:
    for artifact in ARTIFACTS:
        yield Kind(
            f"artifact/{artifact.kind}",
            artifact.format,
            partial(_line_shapes_of, artifact),
            artifact.source,
            _faults_of(artifact),
            _describe_reading(artifact),
            artifact.file,
        )


def _describe_reading(artifact: Artifact) -> str:
    """Return the details of reading an artifact that its format does not cover."""
    if artifact.format is Format.JSON:
        return "over any number of lines"
    if artifact.format is Format.FRONT_MATTER:
        return "the schema is that of the front matter"
    if artifact.format is not Format.JSONL:
        return ""
    if artifact.is_one_line:
        return "exactly one line"
    if artifact.repeats_header:
        return "each block begins with its header"
    return "line 1 is the header" if artifact.header else "each line is independent"


def _faults_of(artifact: Artifact) -> Faults:
    return lambda records, mode: shape_faults(artifact, records, mode)


def _line_shapes_of(artifact: Artifact) -> Iterator[LineShape]:
    """Yield the shapes of an artifact's lines, without those that only detect a foreign format."""
    header = artifact.shapes[: bool(artifact.header)]
    body = tuple(shape for shape in artifact.shapes[len(header) :] if not _is_detection_only(shape))
    if len(header) + len(body) == 1:
        yield LineShape("", (*header, *body)[0])
        return
    yield from (LineShape("header", shape) for shape in header)
    yield from (LineShape(_name_of_line(artifact.kind, shape), shape) for shape in body)
    if artifact.relaxed:
        relaxed_header, *relaxed_body = map(shape_named, artifact.relaxed)
        yield LineShape("turbo-header", relaxed_header)
        yield from (LineShape(_name_of_line(artifact.kind, shape), shape) for shape in relaxed_body)


def _is_detection_only(shape: type[Shape]) -> bool:
    """Return whether a shape only produces errors: such a shape takes any value."""
    return all(field.annotation is Any for field in shape.model_fields.values())


def _name_of_line(kind: str, shape: type[Shape]) -> str:
    """Return the shape's name without the words of its kind: `plan`, `PlanTask` → `task`."""
    kind_words, words = kind.split("-"), list(in_words(shape.__name__))
    while len(words) > 1 and words[0] in kind_words:
        del words[0]
    return "-".join(words)


_BY_NAME = {kind.name: kind for kind in (*_artifacts(), *_FILES, ANY_MESSAGE, ANY_ENVELOPE)}
"""Kinds that are known without importing their shapes."""
_ARTIFACT_BY_NAME = {f"artifact/{artifact.kind}": artifact for artifact in ARTIFACTS}
_FAMILIES: Mapping[str, Callable[[], Iterator[Kind]]] = {
    "message": _messages,
    "envelope": _build_envelope_kinds,
}


@cache
def _kinds_of_family(name: str) -> tuple[Kind, ...]:
    return tuple(_FAMILIES[name]())


def all_kinds() -> tuple[Kind, ...]:
    """Return every kind once.

    Artifacts come first, then families in the order of the documents; each family keeps the order
    of its document.
    """
    artifacts = (_BY_NAME[name] for name in _ARTIFACT_BY_NAME)
    return (*artifacts, *chain.from_iterable(map(_kinds_of_family, _FAMILIES)), *_FILES)


def find_kind(name: str) -> Kind | None:
    """Return the kind of that name, or None. The family may be omitted if the rest is
    unambiguous.
    """
    if name in _BY_NAME:
        return _BY_NAME[name]
    family, slash, _ = name.partition("/")
    if slash:
        members = _kinds_of_family(family) if family in _FAMILIES else ()
        return next((kind for kind in members if kind.name == name), None)
    kinds = [kind for kind in all_kinds() if kind.own_name == name]
    return kinds[0] if len(kinds) == 1 else None


def kind_named(name: str) -> Kind:
    """Return the kind of that name.

    Raises:
        YoloError: UNKNOWN_NAME, with the names that are spelled alike.

    """
    if kind := find_kind(name):
        return kind
    kinds = all_kinds()
    same = [kind.name for kind in kinds if kind.own_name == name]
    spelled = [kind.name for kind in (*kinds, ANY_MESSAGE, ANY_ENVELOPE)]
    alike = same or get_close_matches(name, [*spelled, *(kind.own_name for kind in kinds)], n=3)
    meant = f"Perhaps {' or '.join(alike)}. " if alike else ""
    hint = f"{meant}'yolo-fs schema list' shows them all."
    raise YoloError(Reason.UNKNOWN_NAME, f"no kind is named {name[:80]!r}", hint=hint)


def artifact_of(kind: Kind) -> Artifact | None:
    """Return the artifact of a kind, or None."""
    return _ARTIFACT_BY_NAME.get(kind.name)
