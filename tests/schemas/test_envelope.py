"""Envelopes of document 003: the examples, the routes and the error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.core.reasons import Level, Reason
from yolo_fs.schemas.envelope.envelope import PAYLOADS, payload_shape, read_envelope
from yolo_fs.schemas.layout import Strictness

EXAMPLES = Path(__file__).parents[2] / "fixtures" / "examples" / "envelopes"
KINDS = {
    "initial-input": ("user", "orchestrator"),
    "market-research-request": ("orchestrator", "market-research"),
    "market-research-report": ("market-research", "orchestrator"),
    "ai-framing-request": ("orchestrator", "ai-framing"),
    "ai-framing-report": ("ai-framing", "orchestrator"),
    "prfaq-request": ("orchestrator", "prfaq"),
    "prfaq-report": ("prfaq", "orchestrator"),
    "prd-request": ("orchestrator", "prd"),
    "prd-report": ("prd", "orchestrator"),
    "prototype-request": ("orchestrator", "prototype"),
    "prototype-report": ("prototype", "orchestrator"),
}


def named(path: Path) -> str:
    return f"{path.parent.parent.name}/{path.stem}"


def example(kind: str) -> dict[str, Any]:
    path = min((EXAMPLES / kind / "ok").glob("*.json"))
    return json.loads(path.read_text(encoding="utf-8"))


def errors_of(value: dict[str, Any]) -> list[tuple[Reason, str]]:
    return [
        (fault.reason, fault.at) for fault in read_envelope(value)[1] if fault.level is Level.ERROR
    ]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/ok/*.json")), ids=named)
def test_good_envelope_has_no_fault(path: Path) -> None:
    envelope, faults = read_envelope(
        json.loads(path.read_text(encoding="utf-8")), Strictness(strict=True)
    )
    assert envelope is not None
    assert faults == ()


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/bad/*.json")), ids=named)
def test_bad_envelope_fails_for_the_reason_in_its_name(path: Path) -> None:
    value = json.loads(path.read_text(encoding="utf-8"))
    envelope, _ = read_envelope(value)
    assert envelope is None
    assert errors_of(value)[0][0] == Reason.of(path.stem.partition("__")[0])


@pytest.mark.parametrize("kind", [*KINDS, "error"])
def test_every_payload_has_its_examples(kind: str) -> None:
    assert len(list((EXAMPLES / kind / "ok").glob("*.json"))) >= 2
    assert len(list((EXAMPLES / kind / "bad").glob("*.json"))) >= 3


def test_every_example_belongs_to_a_payload() -> None:
    assert {path.name for path in EXAMPLES.iterdir()} == {*KINDS, "error"}


@pytest.mark.proves("003:21")
def test_the_routes_are_the_eleven_of_the_document() -> None:
    assert list(PAYLOADS) == list(KINDS.values())
    assert len(set(PAYLOADS.values())) == 11


@pytest.mark.parametrize("kind", KINDS)
def test_route_alone_chooses_the_payload(kind: str) -> None:
    assert payload_shape(example(kind)) is PAYLOADS[KINDS[kind]]


@pytest.mark.proves("003:389")
@pytest.mark.parametrize("kind", KINDS)
def test_any_agent_may_report_an_error(kind: str) -> None:
    value = example(kind) | {"payload": example("error")["payload"]}
    envelope, faults = read_envelope(value)
    assert envelope is not None
    assert faults == ()


def test_route_between_two_agents_without_orchestrator_is_refused() -> None:
    value = example("prfaq-report")
    value["target_agent"]["agent_type"] = "prd"
    envelope, faults = read_envelope(value)
    assert envelope is None
    assert [(fault.reason, fault.at, fault.expected) for fault in faults] == [
        (Reason.UNKNOWN_VALUE, "/target_agent/agent_type", "orchestrator")
    ]


def test_unknown_source_is_reported_once() -> None:
    value = example("prd-report")
    value["source_agent"]["agent_type"] = "sales"
    assert errors_of(value) == [(Reason.UNKNOWN_VALUE, "/source_agent/agent_type")]


def test_faults_of_envelope_and_payload_come_together() -> None:
    value = example("prd-report")
    value["session_id"] = "42"
    value["payload"]["full_prd_path"] = "PRD.md"
    assert errors_of(value) == [
        (Reason.BAD_FORMAT, "/session_id"),
        (Reason.BAD_FORMAT, "/payload/full_prd_path"),
    ]


@pytest.mark.parametrize("agent", [None, "orchestrator", 7, [], {}])
def test_broken_agent_never_raises(agent: object) -> None:
    envelope, faults = read_envelope(example("prd-report") | {"source_agent": agent})
    assert envelope is None
    assert faults


@pytest.mark.parametrize(
    ("slug", "good"),
    [
        ("Harbor_Ledger", True),
        ("a1", True),
        ("Harbor Ledger", False),
        ("harbor-ledger", False),
        ("../x", False),
        ("_x", False),
    ],
)
def test_slug_has_underscores_and_no_spaces(slug: str, good: bool) -> None:
    envelope, _ = read_envelope(example("prd-report") | {"product_name_slug": slug})
    assert (envelope is not None) is good


def test_null_is_refused_where_the_document_does_not_allow_it() -> None:
    value = example("initial-input")
    value["payload"]["product_concept"]["target_audience"] = None
    assert errors_of(value) == [(Reason.WRONG_TYPE, "/payload/product_concept/target_audience")]


def test_unknown_key_in_a_payload_warns_and_rejects_when_strict() -> None:
    value = example("error")
    value["payload"]["retry_after_s"] = 30
    assert read_envelope(value)[0] is not None
    assert read_envelope(value, Strictness(strict=True))[0] is None
