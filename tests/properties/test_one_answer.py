"""Who has to act is one answer everywhere, and who follows it gets on, or meets a person. Over random histories.

`YOLO_HISTORIES=10000 .venv/bin/pytest -s tests/properties/test_one_answer.py` is the long tier. A failure prints what
begins with its history: the two tiers make different ones of one seed.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.properties.team_at_work import Agents, Branch, random_config
from yolo_fs.phase.progress import Next
from yolo_fs.phase.report import Audience, PhaseReport
from yolo_fs.progress.board import PhaseBoard
from yolo_fs.reports.resume_report import TeamState, resume_report
from yolo_fs.states.project import summary_line

HISTORIES = int(os.environ.get("YOLO_HISTORIES", "150"))
FIRST = int(os.environ.get("YOLO_SEED", "0"))
IS_LONG = "YOLO_HISTORIES" in os.environ
MOST_MOVES = 150
"""To the end; in the short tier most histories are followed for a few moves only."""
FEW = 5


def the_answer(phase: PhaseBoard) -> Next | None:
    """Return who has to act, once every place that shows it has given the same answer."""
    asked = phase.progress.next
    assert PhaseReport(phase, Audience()).next()[0] == asked
    shown = phase.as_json()["next"]
    assert (shown and (shown["agent"], shown["step"], shown["task"], shown["why"])) == (
        asked and (asked.agent, asked.step, asked.task, asked.why)
    )
    line, brief = summary_line((phase,)), resume_report(TeamState(phases=(phase,)))
    told = next(one.lines[0] for one in brief if one.key == "next")
    if asked is None:
        assert "next: nobody" in told and ", next" not in line
        assert line.endswith("complete") == phase.is_complete
    else:
        assert told.startswith(f"next: {asked.sentence}")
        assert f", next: {asked.sentence}" in line
        own = next(
            one
            for one in resume_report(TeamState(phases=(phase,)), Audience(asked.agent))
            if one.key == "next"
        )
        assert not any("nothing to do" in text for text in own.lines)
    return asked


def history(chance: Random, *, is_long: bool) -> tuple[Branch, Agents]:
    """Return a branch as a team leaves it that did what it liked for a while, or what it was asked for, badly."""
    branch = Branch(random_config(chance))
    agents = Agents(branch, chance, slips=chance.randrange(12))
    if branch.config.po.enabled and chance.random() < 0.8:
        branch.write("analysis.json", [{"confidence": 0.9}])
    if not is_long:
        agents.work_ahead(chance.randrange(4, 22))
        return branch, agents
    for _ in range(chance.randrange(70)):
        asked = branch.phase.progress.next
        if asked is None or not agents.act(asked):
            break
        if chance.random() < 0.08:
            agents.disturb()
    return branch, agents


def follow(branch: Branch, agents: Agents, moves: int) -> list[str]:
    """Do what is asked until the phase is complete or a person is asked; return what was asked."""
    asked_before: list[str] = []
    agents.slips = 0
    while asked := the_answer(branch.phase):
        answer = f"{asked.agent} {asked.step} {asked.task} {asked.inputs} {asked.why}"
        last = "\n".join(asked_before[-8:])
        assert answer not in asked_before[-1:], f"the same again, though it was done:\n{last}"
        asked_before.append(answer)
        assert len(asked_before) < MOST_MOVES, f"no end:\n{last}"
        if len(asked_before) > moves or not agents.act(asked):
            return asked_before
    assert branch.phase.is_complete, "nobody is asked, and it is not complete"
    return asked_before


def play(seed: int) -> tuple[int, bool]:
    """Follow one history, of the short tier one in fifteen to its end; return the moves and whether it is complete."""
    chance = Random(seed)
    is_long = IS_LONG or seed % 15 == 0
    try:
        branch, agents = history(chance, is_long=is_long and seed % 2 == 0)
        asked = follow(branch, agents, MOST_MOVES if is_long else FEW)
        return len(asked), branch.phase.is_complete
    except AssertionError as wrong:
        tier = " YOLO_HISTORIES=1" if IS_LONG else ""
        raise AssertionError(f"YOLO_SEED={seed}{tier} repeats it: {wrong}") from wrong


@pytest.mark.timeout(7200 if IS_LONG else 120)
@pytest.mark.proves("more:1", "002:303", "resume:5")
def test_every_place_names_the_same_agent_and_who_follows_gets_on_or_meets_a_person() -> None:
    ends = [play(seed) for seed in range(FIRST, FIRST + HISTORIES)]
    complete = sum(is_complete for _, is_complete in ends)
    moves = sum(moves for moves, _ in ends)
    print(
        f"{len(ends)} histories, {moves} moves: {complete} complete, the others stand at a person"
    )
