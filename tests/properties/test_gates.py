"""Gates over random histories: an open gate always rests on committed evidence, and nothing keeps it open without.

See docs/dev/faults.md#f58.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from tests.properties.profile import tried
from tests.properties.random_phases import OF_GATES, THREE, TURNS, phases, whole, with_file
from tests.support.phases import facts
from yolo_fs.evidence.facts import PhaseFacts
from yolo_fs.phase.gate_needs import AGREED
from yolo_fs.phase.gate_status import GateStatus
from yolo_fs.phase.phase import Phase
from yolo_fs.protocol.gates import GATES, Need

COMPANY = phases(company=True)
RESTS_ON = {
    "ux-complete": {"design-handoff", "design-tokens", "component-specs"},
    "api-contract": {"api-contracts"},
}
"""What each gate of the table cannot be open without."""


def gates(found: PhaseFacts) -> dict[str, GateStatus]:
    return {gate.name: gate for gate in Phase(found).gates}


@tried(20)
@given(COMPANY)
def test_an_open_gate_has_evidence_and_each_piece_is_committed_and_valid(found: PhaseFacts) -> None:
    committed = {one.place.path: one for one in found.committed if one.valid}
    for gate in gates(found).values():
        for path, commit in gate.evidence:
            assert committed[path].commit == commit != ""
        if gate.is_open and gate.name in RESTS_ON:
            kinds = {committed[path].place.artifact.kind for path, _ in gate.evidence}
            assert kinds >= RESTS_ON[gate.name]


@tried(20)
@given(COMPANY, some.data())
def test_a_gate_closes_when_a_piece_of_its_evidence_goes(
    found: PhaseFacts, data: some.DataObject
) -> None:
    found = with_all(found)
    name = data.draw(some.sampled_from(sorted(RESTS_ON)))
    gate = gates(found)[name]
    assert gate.is_open, gate.missing
    path, _ = data.draw(
        some.sampled_from(
            [pair for pair in gate.evidence if any(kind in pair[0] for kind in RESTS_ON[name])]
        )
    )
    gone = replace(found, committed=tuple(one for one in found.committed if one.place.path != path))
    spoilt = replace(
        found,
        committed=tuple(one._replace(valid=one.place.path != path) for one in found.committed),
    )

    assert not gates(gone)[name].is_open
    assert not gates(spoilt)[name].is_open
    assert all(lack.what and lack.file for lack in gates(gone)[name].missing)


def with_all(found: PhaseFacts) -> PhaseFacts:
    for name in ("design-handoff", "design-tokens", "component-specs", "api-contracts"):
        found = with_file(found, f"{name}.jsonl", OF_GATES[f"{name}.jsonl"])
    return found


CONTRACTS = some.lists(
    some.fixed_dictionaries(
        {
            "endpoint": some.sampled_from(["GET /a", "POST /b"]),
            "status": some.sampled_from(TURNS["status"]),
        }
    ),
    max_size=6,
)


@tried(30)
@given(CONTRACTS)
def test_the_contract_gate_says_what_the_last_word_on_each_contract_says(
    lines: list[dict[str, Any]],
) -> None:
    last = {line["endpoint"]: line["status"] for line in lines}
    gate = gates(with_file(facts({}, config=THREE), "api-contracts.jsonl", lines))["api-contract"]

    assert gate.is_open == (bool(last) and all(status in AGREED for status in last.values()))


@tried(15)
@given(COMPANY)
def test_a_sentinel_stands_for_an_open_gate_alone_and_names_its_evidence(found: PhaseFacts) -> None:
    open_ = {gate.name: gate for gate in Phase(found).gates if gate.is_open}
    for file, content in Phase(found).sentinels.items():
        bound = json.loads(content)
        assert (bound["sentinel"], bound["phase"]) == (file, str(found.phase))
        assert bound["evidence"], file
    assert ("ux-complete" in open_) == any("ux" in file for file in Phase(found).sentinels)


@tried(15)
@given(some.lists(some.tuples(some.sampled_from(sorted(OF_GATES)), some.booleans()), max_size=12))
def test_a_gate_is_what_its_files_say_now_whatever_they_said_before(
    history: list[tuple[str, bool]],
) -> None:
    """Files come, go and come again; only what is there in the end counts."""
    there: dict[str, bool] = {}
    found = facts(whole(company=False), config=THREE)
    for name, is_valid in history:
        there[name] = is_valid
        found = with_file(found, name, OF_GATES[name], valid=is_valid)
    fresh = facts(whole(company=False), config=THREE)
    for name, is_valid in sorted(there.items()):
        fresh = with_file(fresh, name, OF_GATES[name], valid=is_valid)

    assert gates(found) == gates(fresh)


def test_every_gate_that_needs_files_is_among_those_tried() -> None:
    of_files = {gate.name for gate in GATES if Need.ALL_COMPLETE not in gate.needs}
    assert set(RESTS_ON) <= of_files
