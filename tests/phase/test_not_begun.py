"""A phase of which the branch has nothing yet begins with what the phase before hands over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.phases import complete, facts
from yolo_fs.core.ids import PhaseId
from yolo_fs.evidence.facts import WorkflowOptions
from yolo_fs.phase.phase import Phase, not_begun
from yolo_fs.progress.drift import missing_handoffs

HANDOFF = {"type": "phase_handoff", "from_phase": "01", "to_phase": "02"}
PATH = ".yolo-planning/phases/01-auth/phase-handoff.jsonl"


@pytest.mark.proves("000:715")
@pytest.mark.parametrize("to", ["02", "03"])
def test_its_critic_receives_the_handoff_of_the_phase_before(to: str) -> None:
    before = Phase(facts(complete() | {"phase-handoff.jsonl": [HANDOFF | {"to_phase": to}]}))
    found = not_begun(PhaseId("02", "login"), [before], before.facts.options)
    asked = found.progress.next
    assert asked is not None and asked.agent == "critic"
    assert (PATH in asked.inputs) == (to == "02")


def test_the_first_phase_begins_with_nothing() -> None:
    options = facts({}).options
    assert not_begun(PhaseId("01", "auth"), (), options).facts.committed == ()
    assert (
        not_begun(PhaseId("01", "auth"), (), WorkflowOptions(options.config)).progress.next
        is not None
    )


@pytest.mark.proves("000:715")
def test_a_phase_that_follows_a_complete_one_misses_its_handoff_until_it_is_designed() -> None:
    after = PhaseId("02", "login")
    handed = complete() | {"phase-handoff.jsonl": [HANDOFF]}
    begun = complete() | {"critique.jsonl": [{"id": "C1", "st": "open", "cf": 10, "rd": 1}]}
    before = Phase(facts(complete()))
    (told,) = missing_handoffs([before], [before.id, after])[before.id]
    assert told.startswith("no phase-handoff.jsonl hands it over to 02-login")
    assert not missing_handoffs([before], [before.id]), "nothing follows it"
    assert not missing_handoffs([Phase(facts(handed))], [before.id, after])
    del begun["../../state.json"]
    assert not missing_handoffs([Phase(facts(begun))], [before.id, after]), "it is not complete"
    designed = Phase(replace(before.facts, phase=after))
    assert not missing_handoffs([before, designed], [])
