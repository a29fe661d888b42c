"""From the records of an artifact to its findings: shape of every line, then cross-references.
Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from yolo_fs.reasons import Fault, Grade, Level, Reason
from yolo_fs.rules.artifacts.checks import Located, run_checks
from yolo_fs.rules.artifacts.forms import normalise
from yolo_fs.rules.artifacts.table import Artifact
from yolo_fs.rules.artifacts.verdicts import Place, Surroundings
from yolo_fs.schemas.base import check
from yolo_fs.schemas.layout import Record, Strictness

MAX_FINDINGS = 100


class Understood(NamedTuple):
    """What an artifact says, in the documented form, and what is wrong with its lines."""

    records: tuple[Record, ...]
    faults: tuple[Located, ...]
    """In the order of the lines."""

    @property
    def is_sound(self) -> bool:
        """Whether no fault rejects the artifact."""
        return all(fault.level is not Level.ERROR for _, fault in self.faults)


def understand(
    place: Place, records: Sequence[Record], mode: Strictness, plans: Collection[str] = ()
) -> Understood:
    """Return what the lines say, each by itself; `plans`: ids of those in the same folder."""
    normal, told = normalise(place, records, plans)
    places = {(line, fault.at) for line, fault in told}
    faults = (
        (line, fault)
        for line, fault in shape_faults(place.artifact, normal, mode)
        if not any((line, at) in places for at in _around(fault.at))
    )
    return Understood(normal, _graded(_bounded(chain(told, faults), mode), mode))


def _bounded(faults: Iterable[Located], mode: Strictness) -> Iterator[Located]:
    """Yield the first faults, and one for all the rest: a large wrong file costs the others
    nothing.
    """
    warnings = errors = 0
    for line, fault in faults:
        is_error = fault.level is Level.ERROR and (fault.grade is not Grade.SHOULD or mode.strict)
        warnings, errors = warnings + (not is_error), errors + is_error
        told = errors if is_error else warnings
        if told <= MAX_FINDINGS:
            yield line, fault
        elif told == MAX_FINDINGS + 1:
            message = f"more than {MAX_FINDINGS} findings; the others are not listed"
            hint = "correct what is listed, then look again"
            yield line, replace(fault, at="", message=message, expected="", hint=hint)
        if errors > MAX_FINDINGS:
            return


def examine(
    place: Place, records: Sequence[Record], around: Surroundings, mode: Strictness
) -> Understood:
    """Return what the artifact says among its neighbours, with every fault in the order of its
    lines.
    """
    understood = understand(place, records, mode, around.present | around.plans.keys())
    references = tuple(run_checks(place, understood.records, around))
    return Understood(understood.records, _graded([*understood.faults, *references], mode))


def _graded(faults: Iterable[Located], mode: Strictness) -> tuple[Located, ...]:
    """Return the faults in the order of the lines; a `should` only warns, unless the mode is
    strict.
    """
    graded = [
        (line, replace(fault, level=Level.WARNING))
        if fault.grade is Grade.SHOULD and not mode.strict
        else (line, fault)
        for line, fault in dict.fromkeys(faults)
    ]
    return tuple(sorted(graded, key=lambda located: located[0]))


def _around(at: str) -> Iterator[str]:
    """Yield a place within a line and those that it lies in."""
    while at:
        yield at
        at = at.rpartition("/")[0]


def shape_faults(
    artifact: Artifact, records: Sequence[Record], mode: Strictness
) -> Iterator[Located]:
    """Yield what is wrong with the number of lines and the shape of each."""
    yield from _count_faults(artifact, records)
    for record, shape in artifact.shapes_of(records):
        if artifact.is_one_line and record is not records[0]:
            continue
        if shape:
            yield from ((record.line, fault) for fault in check(shape, record.value, mode)[1])


def _count_faults(artifact: Artifact, records: Sequence[Record]) -> Iterator[Located]:
    if artifact.is_one_line and len(records) > 1:
        # Real summaries often grow a line per task; the protocol calls that a warning (1.3, end).
        fault = Fault(Reason.WRONG_LINE_COUNT, "", f"{len(records)} lines", "exactly one line")
        yield records[1].line, replace(fault, level=Level.WARNING, grade=Grade.SHOULD)
    if artifact.needs_body and len(records) == 1:
        message, expected = "a header without any line below it", "at least one line more"
        yield records[0].line, Fault(Reason.WRONG_LINE_COUNT, "", message, expected)
