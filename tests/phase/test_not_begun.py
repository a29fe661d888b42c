"""A phase of which the branch has nothing yet begins with what the phase before hands over."""

from __future__ import annotations

import pytest

from tests.support.phases import complete, facts
from yolo_fs.core.ids import PhaseId
from yolo_fs.evidence.facts import Switches
from yolo_fs.phase.phase import Phase, not_begun

HANDOFF = {"type": "phase_handoff", "from_phase": "01", "to_phase": "02"}
PATH = ".yolo-planning/phases/01-auth/phase-handoff.jsonl"


@pytest.mark.proves("000:715")
@pytest.mark.parametrize("to", ["02", "03"])
def test_its_critic_receives_the_handoff_of_the_phase_before(to: str) -> None:
    before = Phase(facts(complete() | {"phase-handoff.jsonl": [HANDOFF | {"to_phase": to}]}))
    found = not_begun(PhaseId("02", "login"), [before], before.facts.switches)
    asked = found.progress.next
    assert asked is not None and asked.agent == "critic"
    assert (PATH in asked.inputs) == (to == "02")


def test_the_first_phase_begins_with_nothing() -> None:
    switches = facts({}).switches
    assert not_begun(PhaseId("01", "auth"), (), switches).facts.filed == ()
    assert not_begun(PhaseId("01", "auth"), (), Switches(switches.config)).progress.next is not None
