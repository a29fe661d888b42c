"""The files in `fixtures/`: `<kind>/ok/…` is valid, `<kind>/bad/<reason>__<what>` has that first error, and
`<kind>/should/<reason>__<what>` that first warning and no error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from yolo_fs.artifacts.catalogue import Kind, find_kind
from yolo_fs.core.reasons import Reason
from yolo_fs.schemas.layout import Format

FIXTURES = Path(__file__).parents[1] / "fixtures"

FAMILIES: Mapping[str, str] = {
    "artifacts": "artifact/",
    "messages": "message/",
    "envelopes": "envelope/",
    "handoffs": "handoff/",
    "states": "state/",
    "configs": "",
}
"""Folder of examples → what the names of its kinds begin with."""

READER_FORMATS: Mapping[tuple[str, str], Format] = {
    ("reader", "jsonl"): Format.JSONL,
    ("reader", "json"): Format.JSON,
    ("reader", "md"): Format.TEXT,
    ("front_matter", "md"): Format.FRONT_MATTER,
    ("toon", "toon"): Format.TOON,
}
"""(folder, suffix) of the examples that are for a reader alone → its format."""


@dataclass(frozen=True, slots=True)
class Example:
    """One file that shows how its kind is written, or how not."""

    path: Path
    kind: Kind
    expected: Reason | None
    """The first error, or warning; None for a valid file."""

    @property
    def is_untidy(self) -> bool:
        """Whether it is accepted with warnings."""
        return self.path.parent.name == "should"

    @property
    def name(self) -> str:
        """The path below `fixtures/`."""
        return str(self.path.relative_to(FIXTURES))


def expected_reason(path: Path) -> Reason | None:
    """Return the first error that the name of an example asks for."""
    is_good = path.parent.name == "ok"
    return None if is_good else Reason.of(path.name.partition("__")[0])


def kind_of_example(path: Path) -> Kind:
    """Return the kind that the folder of an example names."""
    kind = find_kind(FAMILIES[path.parts[-4]] + path.parts[-3])
    assert kind, path
    return kind


def examples(family: str = "*") -> Iterator[Example]:
    """Yield the examples of a family, or of all."""
    for path in sorted((FIXTURES / "examples").glob(f"{family}/*/*/*")):
        yield Example(path, kind_of_example(path), expected_reason(path))
