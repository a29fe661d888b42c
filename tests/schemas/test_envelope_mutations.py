"""Every field of document 003, broken in every way: the oracle is the document's own text, not our shapes.

`fixtures/envelopes/document_003.json` holds the document's JSON blocks as printed. From the words of a field (`string`,
`string | null`, `a | b`, …) follow a good value, the ways to break it, and the reason and place that each must give.
"""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from yolo_fs.core.reasons import Level, Reason
from yolo_fs.schemas.envelope.envelope import PAYLOADS, read_envelope
from yolo_fs.schemas.layout import Strictness

DOCUMENT = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "envelopes" / "document_003.json").read_text(
        encoding="utf-8"
    )
)
ROUTES = dict(zip(DOCUMENT["payloads"], PAYLOADS, strict=True))

OPTIONAL = {
    ("initial-input", "brand_guidelines"),
    ("market-research-request", "specific_questions"),
}
"""The two fields that the document calls optional."""

GOOD_BY_KEY: dict[str, Any] = {
    "handoff_version": "1.0",
    "timestamp": "2026-02-19T08:00:00Z",
    "session_id": "7c0a4d52-1b9e-4f63-9a27-0d6b6f7e1c35",
    "product_name_slug": "Harbor_Ledger",
    "full_research_path": "documents/MarketResearch_Harbor_Ledger_2026-02-19.json",
    "full_framing_path": "documents/AIFraming_Harbor_Ledger_2026-02-19.md",
    "full_prfaq_path": "documents/PRFAQ_Harbor_Ledger_2026-02-19.md",
    "full_prd_path": "documents/PRD_Harbor_Ledger_2026-02-19.md",
}
WRONG_TYPES: dict[str, Any] = {
    "null": None,
    "number": 7,
    "true": True,
    "list": [],
    "object": {},
    "string": "a text",
}
ENUM = re.compile(r"[\w-]+( \| [\w-]+)+")
PATH_KEYS = {
    "path",
    "design_system_path",
    "clickable_prototype_path",
    "existing_design_system_path",
}
PATH_LISTS = {"referenced", "context_files", "sample_data_files"}
FORMATTED = {
    "timestamp",
    "session_id",
    "product_name_slug",
    *(key for key in GOOD_BY_KEY if key.startswith("full_")),
}


class Field(NamedTuple):
    """One place of the document: a key, or the item of a list."""

    at: str
    words: Any
    """What the document prints there."""
    key: str
    """The nearest key."""
    is_item: bool


class Case(NamedTuple):
    name: str
    value: dict[str, Any]
    expected: tuple[Reason, str] | None
    """Reason and place; None when the document allows it."""


# --- reading the document --------------------------------------------------------------------------------------------


def fields(words: Any, at: str = "", key: str = "", *, is_item: bool = False) -> Iterator[Field]:
    if at:
        yield Field(at, words, key, is_item)
    if isinstance(words, dict):
        for name, inner in words.items():
            yield from fields(inner, f"{at}/{name}", name)
    elif isinstance(words, list):
        yield from fields(words[0], f"{at}/0", key, is_item=True)


def choices(field: Field) -> tuple[str, ...]:
    if field.key == "platform_targets" and field.is_item:
        return ("web", "mobile", "tablet")
    if field.key == "agent_type" and "/source_agent" in field.at:
        return tuple(field.words.split(" | "))
    if isinstance(field.words, str) and ENUM.fullmatch(field.words) and "string" not in field.words:
        return tuple(field.words.split(" | "))
    return ("1.0",) if field.key == "handoff_version" else ()


def type_of(field: Field) -> str:
    if isinstance(field.words, dict):
        return "object"
    if isinstance(field.words, list):
        return "list"
    return {"boolean": "true", "number": "number"}.get(field.words, "string")


def is_nullable(field: Field) -> bool:
    return isinstance(field.words, str) and "| null" in field.words


def good(words: Any, key: str = "") -> Any:
    if isinstance(words, dict):
        return {name: good(inner, name) for name, inner in words.items()}
    if isinstance(words, list):
        return [good(words[0], key)]
    if key in GOOD_BY_KEY:
        return GOOD_BY_KEY[key]
    if key in PATH_KEYS | PATH_LISTS:
        return "documents/notes.md"
    if ENUM.fullmatch(words) and "string" not in words:
        return words.split(" | ")[0]
    return {"boolean": True, "number": 50, "web": "web"}.get(words, "a sentence")


def envelope(kind: str, payload: Any) -> dict[str, Any]:
    source, target = ROUTES.get(kind, ("prd", "orchestrator"))
    value: dict[str, Any] = good(DOCUMENT["envelope"])
    value["source_agent"]["agent_type"], value["target_agent"]["agent_type"] = source, target
    return value | {"payload": good(payload)}


def all_fields() -> Iterator[tuple[str, dict[str, Any], Field]]:
    whole = envelope("prd-report", DOCUMENT["payloads"]["prd-report"])
    for field in fields(DOCUMENT["envelope"]):
        yield "envelope", whole, field
    for kind, payload in {**DOCUMENT["payloads"], "error": DOCUMENT["error"]}.items():
        for field in fields(payload, "/payload"):
            if field.at != "/payload":
                yield kind, envelope(kind, payload), field


# --- breaking it -----------------------------------------------------------------------------------------------------


def broken(
    whole: dict[str, Any], at: str, new: Any = None, *, remove: bool = False
) -> dict[str, Any]:
    value = copy.deepcopy(whole)
    inside: Any = value
    *way, last = at.split("/")[1:]
    for step in way:
        inside = inside[int(step) if isinstance(inside, list) else step]
    where = int(last) if isinstance(inside, list) else last
    if remove:
        del inside[where]
    else:
        inside[where] = new
    return value


def cases(kind: str, whole: dict[str, Any], field: Field) -> Iterator[Case]:
    yield from removed(kind, whole, field)
    yield from emptied(kind, whole, field)
    yield from mistyped(kind, whole, field)
    yield from unknown(kind, whole, field)


def removed(kind: str, whole: dict[str, Any], field: Field) -> Iterator[Case]:
    is_free = field.is_item or (kind, field.key) in OPTIONAL
    # Without `error` the payload is no error any more, but that of its route.
    expected = (
        None if is_free else (Reason.MISSING_KEY, "" if field.at == "/payload/error" else field.at)
    )
    yield Case(f"{kind} {field.at} removed", broken(whole, field.at, remove=True), expected)


def emptied(kind: str, whole: dict[str, Any], field: Field) -> Iterator[Case]:
    name = f"{kind} {field.at} emptied"
    match type_of(field):
        case "string":
            is_free = field.key == "brand_guidelines" and kind == "initial-input"
            expected = None if is_free else (Reason.EMPTY_VALUE, field.at)
            yield Case(name, broken(whole, field.at, ""), expected)
        case "list":
            # Nothing to tell is told by an empty list; an empty item tells nothing.
            yield Case(name, broken(whole, field.at, []), None)
        case "object" if field.at in ("/payload", "/payload/error/partial_output"):
            yield Case(
                name,
                broken(whole, field.at, {}),
                first_missing(field) if field.at == "/payload" else None,
            )
        case "object":
            yield Case(name, broken(whole, field.at, {}), first_missing(field))


def first_missing(field: Field) -> tuple[Reason, str]:
    key = next(iter(field.words), "prd_summary")
    return Reason.MISSING_KEY, f"{field.at}/{key}"


def mistyped(kind: str, whole: dict[str, Any], field: Field) -> Iterator[Case]:
    for name, new in WRONG_TYPES.items():
        if name == type_of(field) or (name == "null" and is_nullable(field)):
            continue
        yield Case(
            f"{kind} {field.at} is a {name}",
            broken(whole, field.at, new),
            (mistype_reason(field), field.at),
        )


def mistype_reason(field: Field) -> Reason:
    return Reason.UNKNOWN_VALUE if choices(field) else Reason.WRONG_TYPE


def unknown(kind: str, whole: dict[str, Any], field: Field) -> Iterator[Case]:
    known = choices(field)
    for value in (
        "none_of_them",
        *(value.upper() for value in known),
        *(f" {value}" for value in known),
    ):
        if known and value not in known:
            yield Case(
                f"{kind} {field.at} is {value!r}",
                broken(whole, field.at, value),
                (Reason.UNKNOWN_VALUE, field.at),
            )
    if field.key == "agent_type" and "target_agent" in field.at:
        yield Case(
            f"{kind} {field.at} is nobody",
            broken(whole, field.at, "sales"),
            (Reason.UNKNOWN_VALUE, field.at),
        )
    yield from misformed(kind, whole, field)


def misformed(kind: str, whole: dict[str, Any], field: Field) -> Iterator[Case]:
    if field.key in FORMATTED:
        for value in ("a text", GOOD_BY_KEY[field.key] + " ", f"x{GOOD_BY_KEY[field.key]}/"):
            yield Case(
                f"{kind} {field.at} is {value!r}",
                broken(whole, field.at, value),
                (Reason.BAD_FORMAT, field.at),
            )
    if field.key in PATH_KEYS or (field.key in PATH_LISTS and field.is_item):
        for value in (
            "/etc/passwd", "../secret.md", "documents/../../x", "documents\\x", "a\x00b",
            ".git/config", "part/.Git/HEAD",
        ):  # fmt: skip
            yield Case(
                f"{kind} {field.at} is {value!r}",
                broken(whole, field.at, value),
                (Reason.PATH_ESCAPES, field.at),
            )


CASES = tuple(case for kind, whole, field in all_fields() for case in cases(kind, whole, field))


def errors_of(value: dict[str, Any]) -> list[tuple[Reason, str]]:
    return [
        (fault.reason, fault.at) for fault in read_envelope(value)[1] if fault.level is Level.ERROR
    ]


@pytest.mark.proves(
    "003:54",
    "003:79",
    "003:98",
    "003:129a",
    "003:129b",
    "003:148",
    "003:172",
    "003:199",
    "003:224",
    "003:254",
    "003:290",
    "003:332",
)
@pytest.mark.parametrize("kind", [*DOCUMENT["payloads"], "error"])
def test_what_the_document_prints_is_accepted(kind: str) -> None:
    payload = DOCUMENT["error"] if kind == "error" else DOCUMENT["payloads"][kind]
    shaped, faults = read_envelope(envelope(kind, payload), Strictness(strict=True))
    assert faults == ()
    assert shaped is not None


@pytest.mark.proves(
    "003:14",
    "003:17",
    "003:54",
    "003:79",
    "003:98",
    "003:148",
    "003:172",
    "003:199",
    "003:224",
    "003:254",
    "003:290",
    "003:332",
    "003:384",
    "003:389",
)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_broken_field_gives_its_reason_and_place(case: Case) -> None:
    found = errors_of(case.value)
    if case.expected is None:
        assert found == []
    elif case.expected == (Reason.MISSING_KEY, ""):
        assert {reason for reason, _ in found} == {Reason.MISSING_KEY}
    else:
        assert case.expected in found
        assert {at.startswith(case.expected[1].rpartition("/")[0]) for _, at in found} == {True}


def test_there_are_more_than_1500_cases(capsys: pytest.CaptureFixture[str]) -> None:
    counts = Counter(case.expected[0].value if case.expected else "allowed" for case in CASES)
    with capsys.disabled():
        print(
            f"\nenvelope mutations: {len(CASES)} cases over {len(list(all_fields()))} fields: {dict(counts)}"
        )
    assert len(CASES) > 1500
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.proves("003:383")
@pytest.mark.parametrize("character", ["a", "é", "漢", "😀"])
@pytest.mark.parametrize(("length", "good"), [(499, True), (500, False)])
def test_a_summary_is_measured_in_characters(character: str, length: int, good: bool) -> None:
    whole = envelope("prd-report", DOCUMENT["payloads"]["prd-report"])
    at = "/payload/prd_summary/product_overview"
    assert errors_of(broken(whole, at, character * length)) == (
        [] if good else [(Reason.TOO_LONG, at)]
    )


SUMMARIES = [
    (kind, whole, field)
    for kind, whole, field in all_fields()
    if "_summary/" in field.at and type_of(field) == "string" and not choices(field) and field.key != "path"
    and not field.key.endswith("_path")
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "whole", "field"),
    SUMMARIES,
    ids=[f"{kind} {field.at}" for kind, _, field in SUMMARIES],
)
def test_every_text_of_a_summary_has_fewer_than_500_characters(
    kind: str, whole: dict[str, Any], field: Field
) -> None:
    assert errors_of(broken(whole, field.at, "x" * 499)) == []
    assert errors_of(broken(whole, field.at, "x" * 500)) == [(Reason.TOO_LONG, field.at)]


@pytest.mark.proves("003:384")
def test_enumerations_are_those_of_the_document() -> None:
    for kind, whole, field in all_fields():
        for value in choices(field):
            if field.key != "agent_type":
                assert errors_of(broken(whole, field.at, value)) == [], (kind, field.at, value)
