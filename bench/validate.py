"""Reading and validating 50,000 lines, beside the bare parser and beside jsonlines with
jsonschema.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonlines
import jsonschema  # type: ignore[import-untyped]

from bench.aims import Aim
from bench.options import Options
from bench.rounds import Sample, Way, interleave, middle_half, ratios
from bench.table import Goal, Table, goal_table, rate, times
from yolo_fs.artifacts.examine import shape_faults
from yolo_fs.artifacts.table import ARTIFACTS, Artifact, shape_named
from yolo_fs.schemas.base import Wire
from yolo_fs.schemas.layout import Format, Strictness
from yolo_fs.system.readers import read_lines
from yolo_fs.system.text_checks import Limits

FLOOR = "json.loads"
MODEL = "json.loads, pydantic"
READER = "strict reader"
WHOLE = "strict reader and shapes"
PEER = "jsonlines, jsonschema"
PLAIN = "json.loads, jsonschema"

_EXAMPLES = Path(__file__).parent.parent / "fixtures" / "examples" / "artifacts"
_LIMITS = Limits(max_file_bytes=1 << 30)


@dataclass(frozen=True, slots=True)
class _File:
    """Lines of one kind."""

    artifact: Artifact
    shape: type[Wire]
    validator: Any
    lines: tuple[bytes, ...]

    @property
    def data(self) -> bytes:
        return b"".join(self.lines)


def run(options: Options) -> Iterator[Table]:
    """Measure files of the kinds whose every line has the same shape, an equal share of each."""
    files = _files(options.pick(50_000, 200))
    ways = (
        _way(FLOOR, _bare, files),
        _way(MODEL, _modelled, files),
        _way(READER, _read, files),
        _way(WHOLE, _examined, files),
    )
    part = [_File(file.artifact, file.shape, file.validator, file.lines[:200]) for file in files]
    slow = (_way(PEER, _by_peer, part), _way(PLAIN, _plainly, part))
    samples = interleave((*ways, *slow), options.pick(7, 1))
    counts = {**{way.name: files for way in ways}, **{way.name: part for way in slow}}
    yield _table(samples, counts)
    yield goal_table("Goals: validation", _goals(samples, counts))


def _way(name: str, look: Callable[[_File], None], files: list[_File]) -> Way:
    def all_files(_round: int) -> None:
        for file in files:
            look(file)

    return Way(name, all_files)


def _files(lines: int) -> list[_File]:
    kinds = [
        one
        for one in ARTIFACTS
        if one.format is Format.JSONL and not one.header and len(one.body) == 1 and _examples(one)
    ]
    share = -(-lines // len(kinds))
    return [_file(artifact, share) for artifact in kinds]


def _file(artifact: Artifact, count: int) -> _File:
    records = _examples(artifact)
    lines = tuple(_line(records[number % len(records)], number) for number in range(count))
    shape = shape_named(artifact.body[0])
    return _File(artifact, shape, jsonschema.Draft202012Validator(shape.model_json_schema()), lines)


def _examples(artifact: Artifact) -> list[dict[str, Any]]:
    paths = sorted((_EXAMPLES / artifact.kind / "ok").glob("*.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def _line(record: dict[str, Any], number: int) -> bytes:
    """Return a record as a line that differs from the others in its longest prose, if it has
    any.
    """
    prose = {key: value for key, value in record.items() if isinstance(value, str) and " " in value}
    longest = max(prose, key=lambda key: len(prose[key]), default=None)
    varied = {longest: f"{prose[longest]} {number}"} if longest else {}
    return json.dumps({**record, **varied}, ensure_ascii=False).encode() + b"\n"


def _bare(file: _File) -> None:
    for line in file.lines:
        json.loads(line)


def _modelled(file: _File) -> None:
    for line in file.lines:
        file.shape.model_validate(json.loads(line))


def _read(file: _File) -> None:
    reading = read_lines(file.data, "bench", _LIMITS)
    if reading.findings or len(reading.records) != len(file.lines):
        raise RuntimeError(f"{file.artifact.kind}: {reading.findings[:1]}")


def _examined(file: _File) -> None:
    reading = read_lines(file.data, "bench", _LIMITS)
    faults = list(shape_faults(file.artifact, reading.records, Strictness()))
    if reading.findings or faults:
        raise RuntimeError(f"{file.artifact.kind}: {[*reading.findings, *faults][:1]}")


def _by_peer(file: _File) -> None:
    with jsonlines.Reader(io.BytesIO(file.data)) as reader:
        for record in reader:
            file.validator.validate(record)


def _plainly(file: _File) -> None:
    for line in file.lines:
        file.validator.validate(json.loads(line))


def _rate(sample: Sample, files: list[_File]) -> float:
    return sum(len(file.lines) for file in files) / sample.p50


def _table(samples: dict[str, Sample], counts: dict[str, list[_File]]) -> Table:
    base = _rate(samples[FLOOR], counts[FLOOR])
    rows = []
    for name, sample in samples.items():
        lines = sum(len(file.lines) for file in counts[name])
        size_mb = sum(len(file.data) for file in counts[name]) / 1e6
        speed = _rate(sample, counts[name])
        rows.append(
            (
                name,
                f"{lines:,}",
                rate(speed / 1000),
                rate(size_mb / sample.p50),
                times(speed / base),
                sample.spread,
            )
        )
    notes = (
        f"{len(counts[FLOOR])} kinds of artifact; the strict reader refuses what "
        "json.loads lets pass: duplicate keys, "
        "NaN, lone surrogates, depth.",
    )
    columns = ("50,000 lines", "lines", "1,000 lines/s", "MB/s", "x json.loads", "spread")
    return Table("Validation", columns, tuple(rows), notes)


def _goals(samples: dict[str, Sample], counts: dict[str, list[_File]]) -> list[Goal]:
    return [
        _goal(samples, counts, MODEL, FLOOR, 2, Aim.TYPED),
        _goal(samples, counts, READER, FLOOR, 0.75, Aim.STRICT),
        _goal(samples, counts, WHOLE, PEER, 25, Aim.PIPELINE),
        _goal(samples, counts, WHOLE, PLAIN, 25, Aim.PIPELINE),
    ]


def _goal(
    samples: dict[str, Sample],
    counts: dict[str, list[_File]],
    ours: str,
    base: str,
    least: float,
    aim: Aim,
) -> Goal:
    speed, other = (_rate(samples[name], counts[name]) for name in (ours, base))
    share = speed * samples[ours].p50 / (other * samples[base].p50)
    rounds = [share * one for one in ratios(samples[base].times_s, samples[ours].times_s)]
    return Goal(
        f"{ours} / {base}",
        speed / other,
        least,
        at_least=True,
        aim=aim,
        spread=middle_half(rounds),
        beside=f"{rate(other / 1000)} klines/s",
    )
