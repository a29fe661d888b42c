"""From the records of an artifact to its findings: shape of every line, then cross-references.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from yolo_fs.reasons import Finding, Level, Reason
from yolo_fs.rules.artifacts.checks import Located, run_checks
from yolo_fs.rules.artifacts.table import Artifact
from yolo_fs.rules.artifacts.verdicts import Place, Surroundings
from yolo_fs.schemas.base import Fault, Record, Strictness, check


def examine(
    place: Place, records: Sequence[Record], around: Surroundings, mode: Strictness
) -> tuple[Finding, ...]:
    """Return every fault of the artifact, in the order of its lines."""
    located = [*shape_faults(place.artifact, records, mode), *run_checks(place, records, around)]
    located.sort(key=lambda pair: pair[0])
    return tuple(fault.as_finding(place.path, line) for line, fault in located)


def shape_faults(
    artifact: Artifact, records: Sequence[Record], mode: Strictness
) -> Iterator[Located]:
    """Yield what is wrong with the number of lines and the shape of each."""
    yield from _count_faults(artifact, records)
    first = next((record.value for record in records if record.line == 1), {})
    for record in records:
        if artifact.is_one_line and record.line > 1:
            continue
        if shape := artifact.shape_of(record.value, position=record.line - 1, first=first):
            yield from ((record.line, fault) for fault in check(shape, record.value, mode)[1])


def _count_faults(artifact: Artifact, records: Sequence[Record]) -> Iterator[Located]:
    if artifact.is_one_line and len(records) > 1:
        # Real summaries often grow a line per task; the protocol calls that a warning (1.3, end).
        yield (
            records[1].line,
            Fault(
                Reason.WRONG_LINE_COUNT,
                "",
                f"{len(records)} lines",
                "exactly one line",
                level=Level.WARNING,
            ),
        )
    if artifact.needs_body and len(records) == 1:
        yield (
            records[0].line,
            Fault(
                Reason.WRONG_LINE_COUNT,
                "",
                "a header without any line below it",
                "at least one line more",
            ),
        )
