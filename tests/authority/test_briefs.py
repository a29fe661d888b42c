"""The brief of an act is a door like the others: whatever it tells its agent to read or to write,
the agent may.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.properties.histories import DEPARTMENTS, Ground, known_of
from tests.properties.tales import MISMATCHES, Tale
from tests.support.teams import THREE, Team
from yolo_fs.agents.access import Access
from yolo_fs.company.answers import spoken_by
from yolo_fs.company.brief import brief_of
from yolo_fs.git.repository import Repository
from yolo_fs.phase.acts import Act, acts_of
from yolo_fs.phase.phase import Phase

WHOLE = Ground(DEPARTMENTS, is_one_number=False)


def acts_told() -> Iterator[tuple[Phase, Act]]:
    """Yield the acts of every moment of a phase, and those that mend what does not fit."""
    events = WHOLE.whole(Random(1))
    phases = [Phase(known_of(WHOLE, events[:count])) for count in range(len(events))]
    phases += [Tale(number).phase for number in range(2 * len(MISMATCHES))]
    for phase in phases:
        yield from ((phase, act) for act in acts_of(phase) if not act.is_of_person)


def paths_in(brief: str, title: str) -> Iterator[str]:
    said = ""
    for line in brief.splitlines():
        if not line.startswith("- "):
            said = line
        elif said == f"{title}:" and "/" in line:  # what has no path names a kind of thing
            yield line.removeprefix("- ").partition(" (")[0]


def test_whatever_a_brief_tells_its_agent_to_read_or_to_write_it_may(tmp_path: Path) -> None:
    team, refused, asked = Team(tmp_path / "work"), [], set()
    team.config(THREE)
    with Repository(str(team.root)) as repository:
        access = Access(repository, start=str(team.root))
        for phase, act in acts_told():
            actor = access.actor(act.agent)
            spoken = spoken_by(actor, act.writes, act.turn.command)
            brief = brief_of(phase, act, "a login", (), spoken)
            for title, ask in (("Read", access.read), ("Write", access.write)):
                for path in paths_in(brief, title):
                    asked.add((act.agent, title, path))
                    if not (verdict := ask(actor, path)).allowed:
                        refused.append((act.agent, title, path, verdict))
    assert refused == []
    agents = {agent for agent, _, _ in asked}
    assert len(agents) > 20 and {title for _, title, _ in asked} == {"Read", "Write"}
