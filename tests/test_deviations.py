"""Invented deviations, one to three at a time, on every kind of artifact: untidy ones pass, and no value is lost.

`YOLO_DEVIATIONS=20000` sets how many are tried, `YOLO_SEED` repeats a run.
"""

from __future__ import annotations

import json
import os
import random
import time
import typing
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

from yolo_fs.artifacts.catalogue import artifact_of, find_kind
from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.corrections import KEY_SYNONYMS, Correction
from yolo_fs.artifacts.repair import mended
from yolo_fs.artifacts.table import ARTIFACTS, Artifact, required_keys
from yolo_fs.artifacts.verdicts import ArtifactPath
from yolo_fs.checking.checker import Checker
from yolo_fs.checking.snapshots import NoTree
from yolo_fs.core.reasons import Finding, Reason, errors
from yolo_fs.handoffs.repair import mended_packet
from yolo_fs.schemas.base import Form, Shape
from yolo_fs.schemas.config import Config, Policy
from yolo_fs.schemas.fields import fields_of, is_whole, must_say_something, shapes_within
from yolo_fs.schemas.layout import Format
from yolo_fs.system.front_matter import read_front_matter
from yolo_fs.workspace.settings import Settings

EXAMPLES = Path(__file__).parents[1] / "fixtures" / "examples" / "artifacts"
ROOT = "/srv/team/repository"
CHECKER = Checker(Settings(Config(), Policy()))
PLANS = frozenset(f"01-{number:02}" for number in range(1, 10))
Lines = list[dict[str, Any]]


class Sample(NamedTuple):
    """One good file."""

    artifact: Artifact
    name: str
    lines: Lines

    @property
    def place(self) -> ArtifactPath:
        plan = f"{self.lines[0].get('p')}-{self.lines[0].get('n')}"
        name = self.artifact.file.format(dept="", plan=plan)
        folder = (
            f".yolo-planning/phases/{plan[:2] if '{plan}' in self.artifact.file else '01'}-auth"
        )
        place = classify(f"{folder}/{name}") or classify(f".yolo-planning/{name}")
        assert place
        return place


def samples() -> Iterator[Sample]:
    for artifact in ARTIFACTS:
        if artifact.format not in (Format.JSONL, Format.JSON):
            continue
        for path in sorted((EXAMPLES / artifact.kind / "ok").glob("*")):
            text = path.read_text()
            whole = [text] if artifact.format is Format.JSON else text.splitlines()
            sample = Sample(artifact, path.name, [json.loads(line) for line in whole])
            if not faults(sample.place, written(sample, sample.lines)):
                yield sample


def written(sample: Sample, lines: Lines) -> bytes:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()


def faults(place: ArtifactPath, data: bytes) -> tuple[Finding, ...]:
    """Return the errors but those about neighbours, of whom there are none here."""
    elsewhere = (Reason.WAITS_FOR, Reason.UNKNOWN_COMMIT, Reason.PHASE_MISMATCH)
    return tuple(
        finding
        for finding in errors(CHECKER.check(place, data, NoTree()).findings)
        if finding.reason not in elsewhere
    )


def shape(sample: Sample, position: int) -> type[Shape]:
    line = sample.lines[position]
    found = sample.artifact.shape_of(line, position=position, first=sample.lines[0])
    assert found
    return found


def keys(sample: Sample, position: int, wanted: Callable[[str, Any, Any], bool]) -> list[str]:
    """Return the keys of a line that are of the kind that is wanted: of key, field and value."""
    fields = shape(sample, position).model_fields
    line = sample.lines[position]
    return [key for key in line if key in fields and wanted(key, fields[key], line[key])]


def origin(annotation: Any) -> Any:
    while typing.get_origin(annotation) is typing.Annotated:
        annotation = typing.get_args(annotation)[0]
    return typing.get_origin(annotation) or annotation


# --- deviations of a record: each changes one line, or says that it does not apply -----------------------------------


def unknown_key(_sample: Sample, _at: int, line: dict[str, Any], _rng: random.Random) -> bool:
    line["x_note"] = "kept"
    return True


def null_optional(sample: Sample, at: int, line: dict[str, Any], rng: random.Random) -> bool:
    fields = shape(sample, at).model_fields
    absent = [key for key in fields if not fields[key].is_required() and key not in (*line, "mh")]
    if absent:
        line[rng.choice(absent)] = None
    return bool(absent)


def empty_optional(sample: Sample, at: int, line: dict[str, Any], rng: random.Random) -> bool:
    fields = shape(sample, at).model_fields
    absent = [
        key
        for key, field in fields.items()
        if not field.is_required() and key not in line and must_say_something(field)
    ]
    if absent:
        line[rng.choice(absent)] = ""
    return bool(absent)


def whole_float(sample: Sample, at: int, line: dict[str, Any], rng: random.Random) -> bool:
    found = keys(sample, at, lambda _, field, value: is_whole(field) and type(value) is int)
    if found:
        key = rng.choice(found)
        line[key] = float(line[key])
    return bool(found)


def other_day(sample: Sample, at: int, line: dict[str, Any], rng: random.Random) -> bool:
    accepts = shape(sample, at).accepts
    found = keys(sample, at, lambda key, _, value: accepts.get(key) is Form.MOMENT_AS_DAY and value)
    if found:
        day = line[found[0]]
        spellings = (
            f"{day}T10:20:30Z",
            f"{day} 10:20",
            day.replace("-", "/"),
            f"{day}T10:20+02:00",
        )
        line[found[0]] = rng.choice(spellings)
    return bool(found)


def object_as_text(sample: Sample, at: int, line: dict[str, Any], rng: random.Random) -> bool:
    accepts = shape(sample, at).accepts
    found = keys(
        sample,
        at,
        lambda key, _, value: (
            accepts.get(key) is Form.OBJECT_AS_TEXT and isinstance(value, list) and key != "opts"
        ),
    )
    if found:
        line[rng.choice(found)].append({"t": "another", "d": "way"})
    return bool(found)


def loose_must_have(_sample: Sample, _at: int, line: dict[str, Any], rng: random.Random) -> bool:
    must_haves = line.get("mh")
    if not isinstance(must_haves, dict) or not isinstance(must_haves.get("ar"), list):
        return False
    key = rng.choice(("ar", "kl"))
    must_haves[key].append(rng.choice(("it holds", {"x": "it holds"})))
    return True


def compound_name(sample: Sample, _at: int, line: dict[str, Any], rng: random.Random) -> bool:
    if "{plan}" not in sample.artifact.file or "p" not in line:
        return False
    both = f"{line['p']}-{line['n']}"
    line[rng.choice(("p", "n"))] = both
    return True


def old_name(sample: Sample, at: int, line: dict[str, Any], rng: random.Random) -> bool:
    renames = [
        (old, new)
        for old, new in shape(sample, at).renamed_keys.items()
        if new in line and old not in line and old not in shape(sample, at).model_fields
    ]
    if renames:
        old, new = rng.choice(renames)
        line[old] = line.pop(new)
    return bool(renames)


def long_name(sample: Sample, at: int, line: dict[str, Any], rng: random.Random) -> bool:
    fields = shape(sample, at).model_fields
    found = [
        key for key in KEY_SYNONYMS if key in line and fields.get(key) and fields[key].is_required()
    ]
    if not found:
        return False
    key = rng.choice(found)
    word = rng.choice(KEY_SYNONYMS[key])
    if word in line or word in fields:
        return False
    line[word] = line.pop(key)
    return True


def number_as_text(sample: Sample, at: int, line: dict[str, Any], rng: random.Random) -> bool:
    found = keys(sample, at, lambda _, field, value: is_whole(field) and type(value) is int)
    if found:
        key = rng.choice(found)
        line[key] = str(line[key])
    return bool(found)


def number_of_one_digit(sample: Sample, at: int, line: dict[str, Any], rng: random.Random) -> bool:
    found = keys(
        sample,
        at,
        lambda _, field, value: isinstance(value, str) and value[:1] == "0" and len(value) == 2,
    )
    if found:
        key = rng.choice(found)
        line[key] = rng.choice((int(line[key]), str(int(line[key]))))
    return bool(found)


def empty_list_for_none(sample: Sample, at: int, line: dict[str, Any], rng: random.Random) -> bool:
    found = keys(
        sample, at, lambda _, field, value: is_whole(field) and type(value) is int and value == 0
    )
    if found:
        line[rng.choice(found)] = []
    return bool(found)


def text_for_list(sample: Sample, at: int, line: dict[str, Any], rng: random.Random) -> bool:
    def wanted(_key: str, field: Any, value: Any) -> bool:
        is_texts = isinstance(value, list) and len(value) == 1 and isinstance(value[0], str)
        return is_texts and origin(field.annotation) is list

    found = keys(sample, at, wanted)
    if found:
        key = rng.choice(found)
        line[key] = line[key][0]
    return bool(found)


def listed_value_in_other_case(
    sample: Sample, at: int, line: dict[str, Any], rng: random.Random
) -> bool:
    found = keys(
        sample,
        at,
        lambda key, field, value: (
            origin(field.annotation) is Literal
            and isinstance(value, str)
            and value
            and key not in ("type", "gl", "src")
        ),
    )
    if found:
        key = rng.choice(found)
        line[key] = line[key].swapcase()
    return bool(found)


def absolute_path(_sample: Sample, _at: int, line: dict[str, Any], _rng: random.Random) -> bool:
    for key in ("f", "fm", "tf"):
        if line.get(key):
            value = line[key]
            is_list = isinstance(value, list)
            line[key] = [f"{ROOT}/{part}" for part in value] if is_list else f"{ROOT}/{value}"
            return True
    return False


def must_haves_as_list(_sample: Sample, _at: int, line: dict[str, Any], _: random.Random) -> bool:
    must_haves = line.get("mh")
    is_plan = isinstance(must_haves, dict) and "tr" in must_haves
    if not is_plan or must_haves.get("ar") or must_haves.get("kl"):
        return False
    line["mh"] = must_haves["tr"]
    return True


def keys_in_a_group(sample: Sample, at: int, line: dict[str, Any], rng: random.Random) -> bool:
    found = keys(sample, at, lambda key, *_: key not in _TELLING)
    if len(found) < 2 or "data" in (*line, *fields_of(shape(sample, at))):
        return False
    before = shape(sample, at)
    line["data"] = {key: line.pop(key) for key in rng.sample(found, 2)}
    lines = [*sample.lines[:at], line, *sample.lines[at + 1 :]]
    return (
        shape(sample._replace(lines=lines), at) is before
    )  # else nobody knows whose keys they are


def object_beside_itself(
    sample: Sample, at: int, line: dict[str, Any], _rng: random.Random
) -> bool:
    own = fields_of(shape(sample, at))
    for key, inner in shapes_within(shape(sample, at)).items():
        value = line.get(key)
        is_whole_object = isinstance(value, dict) and required_keys(inner) <= value.keys()
        if own[key].is_required() and is_whole_object and not value.keys() & {*own, *line}:
            line |= line.pop(key)
            return True
    return False


def required_key_gone(sample: Sample, at: int, line: dict[str, Any], rng: random.Random) -> bool:
    told = _TOLD.get(sample.artifact.kind, set())

    def wanted(key: str, field: Any, _value: Any) -> bool:
        return field.is_required() and key not in _DERIVED | _TELLING | told

    found = keys(sample, at, wanted)
    if found:
        del line[rng.choice(found)]
    return bool(found)


def object_for_number(sample: Sample, at: int, line: dict[str, Any], rng: random.Random) -> bool:
    found = keys(sample, at, lambda _, field, value: is_whole(field) and type(value) is int)
    if found:
        line[rng.choice(found)] = {"about": "three"}
    return bool(found)


def nonsense_value(sample: Sample, at: int, line: dict[str, Any], rng: random.Random) -> bool:
    found = keys(
        sample,
        at,
        lambda key, field, _: origin(field.annotation) is Literal and key not in _TELLING,
    )
    if found:
        line[rng.choice(found)] = "perhaps"
    return bool(found)


_DERIVED = {"p", "n", "w", "tp", "tt", "v", "done"}
"""Keys whose absence may be mended from what else is there."""
_TOLD = {"verification": {"ps", "fl"}, "plan": {"d"}}
"""The same for one kind alone: checks can be counted, and the first wave waits for nothing."""
_TELLING = {"type", "gl", "src", "r", "cycle", "issue", "reason", "a", "endpoint", "component"}
"""Keys that tell which shape a line has."""

Deviation = Callable[[Sample, int, dict[str, Any], random.Random], bool]
UNTIDY: tuple[Deviation, ...] = (
    unknown_key, null_optional, empty_optional, whole_float, other_day, object_as_text, loose_must_have, compound_name,
)  # fmt: skip
REPAIRABLE: tuple[Deviation, ...] = (
    old_name, long_name, number_as_text, text_for_list, listed_value_in_other_case, absolute_path, must_haves_as_list,
    keys_in_a_group, object_beside_itself, number_of_one_digit, empty_list_for_none,
)  # fmt: skip
HOPELESS: tuple[Deviation, ...] = (required_key_gone, object_for_number, nonsense_value)

# --- deviations of the text ------------------------------------------------------------------------------------------


def blank_line(data: bytes) -> bytes:
    return data.replace(b"\n", b"\n\n", 1)


def no_newline(data: bytes) -> bytes:
    return data.rstrip(b"\n")


def carriage_returns(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


def byte_order_mark(data: bytes) -> bytes:
    return b"\xef\xbb\xbf" + data


def fenced(data: bytes) -> bytes:
    return b"```json\n" + data + b"```\n"


def trailing_commas(data: bytes) -> bytes:
    return data.replace(b"}\n", b",}\n")


def spread(data: bytes) -> bytes:
    records = map(json.loads, data.splitlines())
    return "\n".join(
        json.dumps(record, indent=2, ensure_ascii=False) for record in records
    ).encode()


def array(data: bytes) -> bytes:
    return json.dumps(list(map(json.loads, data.splitlines())), indent=1).encode()


def on_one_line(data: bytes) -> bytes:
    return data.replace(b"}\n", b"} ")


def wrapped(data: bytes) -> bytes:
    records = map(json.loads, data.splitlines())
    return b"".join(json.dumps({"record": record}).encode() + b"\n" for record in records)


UNTIDY_TEXT = (blank_line, no_newline)
REPAIRABLE_TEXT = (carriage_returns, byte_order_mark, fenced, trailing_commas,
                   spread, array, on_one_line, wrapped)  # fmt: skip


class Case(NamedTuple):
    """One deviating file."""

    group: str
    place: ArtifactPath
    data: bytes
    what: tuple[str, ...]


def invent(every: list[Sample], rng: random.Random) -> Case:
    sample = rng.choice(every)
    lines = json.loads(json.dumps(sample.lines))
    group = rng.choice(("untidy", "repairable", "hopeless"))
    what = []
    wanted: list[Deviation] = rng.sample(UNTIDY, rng.randint(0, 2))
    if group != "untidy":
        wanted.append(rng.choice(REPAIRABLE if group == "repairable" else HOPELESS))
    for deviation in wanted:
        at = rng.randrange(len(lines))
        fresh = json.loads(json.dumps(lines[at]))
        if deviation(sample._replace(lines=lines), at, fresh, rng):
            lines[at] = fresh
            what.append(f"{deviation.__name__} {at + 1}")
    data = written(sample, lines)
    texts = UNTIDY_TEXT if group == "untidy" else (*UNTIDY_TEXT, *REPAIRABLE_TEXT)
    if rng.random() < 0.3:
        changed = rng.choice(texts)
        if changed is spread and sample.artifact.format is Format.JSON:
            changed = no_newline  # nobody minds
        what.append(changed.__name__)
        data = changed(data)
    if group == "hopeless" and not any(
        part.split()[0] in {each.__name__ for each in HOPELESS} for part in what
    ):
        group = "repairable"
    return Case(group, sample.place, data, (sample.artifact.kind, sample.name, *what))


def is_right(case: Case) -> bool:
    """Judge by the rule: untidy passes, repairable passes once it is repaired, hopeless never does."""
    kind = find_kind(f"artifact/{case.place.artifact.kind}") or find_kind(case.place.artifact.kind)
    assert kind and artifact_of(kind)
    before = faults(case.place, case.data)
    if case.group == "untidy":
        return not before
    by = Correction(case.place, ROOT, PLANS)
    fixed = mended(case.data, kind, by) or case.data
    assert mended(fixed, kind, by) is None, ("a second repair changes more", case)
    after = faults(case.place, fixed)
    return not after if case.group == "repairable" else bool(before and after)


def table(right: Mapping[tuple[str, str], int], every: Mapping[tuple[str, str], int]) -> str:
    groups = ("untidy", "repairable", "hopeless")
    rows = [f"{'kind':26}" + "".join(f"{group:>14}" for group in groups)]
    for kind in sorted({kind for kind, _ in every}):
        cells = (f"{right[kind, group]}/{every[kind, group]}" for group in groups)
        rows.append(f"{kind:26}" + "".join(f"{cell:>14}" for cell in cells))
    return "\n".join(rows)


@pytest.fixture(scope="module")
def every_sample() -> list[Sample]:
    return list(samples())


def test_untidy_files_pass_repairable_ones_after_repair_and_hopeless_ones_never(
    every_sample: list[Sample], capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("YOLO_SEED", "14"))
    rng = random.Random(seed)
    right: Counter[tuple[str, str]] = Counter()
    every: Counter[tuple[str, str]] = Counter()
    wrong = []
    for _ in range(int(os.environ.get("YOLO_DEVIATIONS", "800"))):
        case = invent(every_sample, rng)
        cell = (case.place.artifact.kind, case.group)
        every[cell] += 1
        if is_right(case):
            right[cell] += 1
        else:
            wrong.append((case.group, *case.what))
    with capsys.disabled():
        print(f"\nYOLO_SEED={seed}\n{table(right, every)}")
    assert wrong == []


# --- deviations of a packet ------------------------------------------------------------------------------------------

PACKET = (EXAMPLES / "handoff" / "ok" / "executor_to_architect_with_notes.md").read_text()
_PACKET_KIND = find_kind("artifact/handoff")


def fields_in(text: str) -> dict[str, str]:
    """Return what the strict reader has; nothing where it refuses the form."""
    records = read_front_matter(text.encode(), "HANDOFF.md").records
    return dict(records[0].value["handoff"]) if records else {}


def comment_behind(line: str) -> str:
    return f"{line}  # so it is"


def comment_above(line: str) -> str:
    return f"  # so it is\n{line}"


def tab_for_blanks(line: str) -> str:
    return f"\t{line.strip()}"


def more_blanks(line: str) -> str:
    return f"  {line}"


def no_blanks(line: str) -> str:
    return line.strip()


def no_blank_behind_colon(line: str) -> str:
    return line.replace(": ", ":", 1)


def bold_key(line: str) -> str:
    key, text = line.strip().split(": ", 1)
    return f"- **{key}**: {text}"


def camel_key(line: str) -> str:
    key, text = line.strip().split(": ", 1)
    first, *others = key.split("_")
    return f"  {first}{''.join(map(str.title, others))}: {text}"


def quoted_value(line: str) -> str:
    key, text = line.strip().split(": ", 1)
    return f'  {key}: "{text}"'


def capitals(line: str) -> str:
    key, text = line.strip().split(": ", 1)
    is_word = key in ("from_role", "to_role", "trigger")
    return f"  {key}: {text.upper() if is_word else text}"


def twice(line: str) -> str:
    return f"{line}\n{line}"


OF_A_FIELD = (
    comment_behind, comment_above, tab_for_blanks, more_blanks, no_blanks, no_blank_behind_colon, bold_key, camel_key,
    quoted_value, capitals, twice,
)  # fmt: skip
OF_A_PACKET: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: text.replace("handoff:", "Handoff:", 1),
    lambda text: text.replace("handoff:\n", "", 1),
    lambda text: text.replace("---\n", "", 1),
    lambda text: text.replace("---\n", "=== AUTO HANDOFF ===\n", 1),
    lambda text: text.replace("---\n", "----\n"),
    lambda text: f"# Handoff\n\n{text}",
    lambda text: f"```markdown\n{text}```\n",
    lambda text: text.replace("\n", "\r\n"),
    lambda text: f"\ufeff{text}",
    lambda text: text.rstrip("\n"),
)


def test_a_packet_that_deviates_is_repaired_to_the_packet_that_it_was() -> None:
    rng = random.Random(int(os.environ.get("YOLO_SEED", "14")))
    right, body = fields_in(PACKET), PACKET.split("---\n", 2)[2].strip()
    assert _PACKET_KIND and len(right) == 9
    for _ in range(int(os.environ.get("YOLO_DEVIATIONS", "800"))):
        lines = PACKET.split("\n")
        for at in rng.sample(range(2, 11), rng.randint(1, 3)):
            lines[at] = rng.choice(OF_A_FIELD)(lines[at])
        spoilt = rng.choice(OF_A_PACKET)("\n".join(lines))
        plain = (mended(spoilt.encode(), _PACKET_KIND) or spoilt.encode()).decode()
        fixed = mended_packet(plain, fields_in(plain), ROOT)
        assert fields_in(fixed) == right, (spoilt, fixed)
        assert body in fixed and ("so it is" in fixed) is ("so it is" in spoilt), (spoilt, fixed)
        assert mended_packet(fixed, fields_in(fixed), ROOT) == fixed, ("a second repair", fixed)


@pytest.mark.parametrize(
    "text",
    [
        "---\n" * 40_000 + "from_role: pair\n" + "a: b\n" * 40_000,
        "from_role: pair\n" + "\n" * 80_000 + "---\n",
        "from_role:" + " " * 400_000 + "#",
        "*" * 400_000 + ":",
        json.dumps({"a\nb": "c", **dict.fromkeys(fields_in(PACKET), "x")}),
    ],
    ids=["fences", "blank lines", "blanks", "signs", "a key of two lines"],
)
def test_a_hostile_packet_is_left_as_it_is_and_at_once(text: str) -> None:
    begun = time.process_time()
    assert mended_packet(f"{text}\n", {}, ROOT) == f"{text}\n"
    assert time.process_time() - begun < 2
