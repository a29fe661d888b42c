"""The table of families: what is broken, how often in the tests and how often at full size."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.torture import (
    careless,
    clocks,
    disks,
    elsewhere,
    flood,
    gitfaults,
    hostile,
    kills,
    machines,
    power,
    raises,
    rewrites,
    users,
    workflows,
)
from tests.torture import neighbours as beside
from tests.torture.surroundings import Ground, SkipError, Tally


class Family(NamedTuple):
    """One way to break things."""

    name: str
    run: Callable[[Ground, int], None]
    small: int
    """How often in the tests."""
    full: int
    """The target of the issue, or all there is."""

    def count(self, size: str) -> int:
        """Return how often for a size: small, full, or a number."""
        match size:
            case "small":
                return self.small
            case "full":
                return self.full
            case _:
                return min(int(size), self.full)


FAMILIES = {
    family.name: family
    for family in (
        Family("random-kills", kills.random_kills, 2, 2_000),
        Family("stage-kills", kills.stage_kills, 2, 3 * len(kills.STAGES_OF_A_COMMIT)),
        Family("recovery-kills", kills.recovery_kills, 1, 32),
        Family("merge-kills", kills.merge_kills, 1, 60),
        Family("team-kills", kills.team_kills, 1, 4 * len(kills.TEAM_STAGES)),
        Family("refusals", raises.refusals, 2, 12 * len(kills.STAGES_OF_A_COMMIT)),
        Family("disks", disks.disks, 1, 40),
        Family("inside-git", gitfaults.inside_git, 1, 300),
        Family("power-loss", power.power_loss, 3, 500),
        Family("overflow", flood.overflow, 300, 30_000),
        Family("watch-limits", flood.watch_limits, 1, 10),
        Family("clock-jumps", clocks.clock_jumps, 2, 200),
        Family("user-states", users.states, 4, 10_000),
        Family("user-surgery", users.surgery, 3, 2_000),
        Family("user-tools", users.tools, 7, 700),
        Family("workflows", workflows.workflows, 3, 100 * len(workflows.WORKFLOWS)),
        *(
            Family(name, partial(beside.collecting, commands), 2, 600)
            for name, commands in beside.COLLECTORS.items()
        ),
        Family("every-collector", partial(beside.collecting, beside.ALL), 2, 600),
        Family("careless", careless.careless, 24, 5_000),
        Family("rewrites", rewrites.rewrites, 20, 10_000),
        Family("worktrees", beside.worktrees, 8, 1_000),
        Family("acts", hostile.acts, 30, len(hostile.ACTS)),
        Family("verbs", hostile.verbs, 12, len(hostile.TRIALS)),
        Family("stopped-files", hostile.stopped_files, 3, len(hostile.DAMAGES)),
        Family("running-files", hostile.running_files, 2, len(hostile.UNLOCKED)),
        Family("credentials", hostile.credentials, 40, len(hostile.DISGUISED)),
        Family("file-systems", elsewhere.file_systems, 1, len(elsewhere.IMAGES)),
        Family("programs", elsewhere.programs, 1, 5),
        Family("machines", machines.machines, 3, 600),
    )
}


def tried(family: Family, count: int, place: Path, seed: int) -> Tally:
    """Run one family in a folder of its own and return what became of it."""
    began = time.monotonic()
    with Ground(family.name, place, seed) as ground:
        try:
            family.run(ground, count)
        except SkipError as reason:
            ground.tally.skipped = f"skipped: {reason}"
        except AssertionError as error:
            ground.fault(f"seed {seed}: {error}"[:1000])
        if not (ground.tally.count or ground.tally.skipped or ground.tally.faults):
            ground.fault("nothing was tried")
        ground.tally.seconds = time.monotonic() - began
        return ground.tally
