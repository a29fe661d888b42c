"""`scripts/hosts [WORD…]`: plays our claims inside the real Claude Code and Codex, and prints what became of them.

Nothing leaves this machine: the model is a script on loopback, and the environment is clean. With words, only the
plays whose name has one of them; `latency` measures how long our hooks take there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bench.table import Table, load, machine, render
from tests.hosts.install import Programs, find, install, versions
from tests.hosts.latency import measure
from tests.hosts.plays import PLAYS, Claim, Play
from tests.hosts.stage import Stage

LATENCY = "latency"
"""The word for what is no play: the hooks' times, with nothing else beside them."""
CONTROL = "a session"
"""The play that is also played without our hooks, where its first claim must not hold."""


class Outcome(NamedTuple):
    """What became of one play in one host."""

    play: str
    host: str
    claims: tuple[Claim, ...]
    seconds: float
    notes: tuple[str, ...]
    defect: str = ""
    """Why it could not be played to its end."""

    @property
    def is_sound(self) -> bool:
        """Whether it was played to its end and every claim holds."""
        return not self.defect and all(claim.holds for claim in self.claims)


def main() -> int:
    given = _arguments()
    programs = install() if given.install else find()
    if programs is None:
        print("hosts: not installed; leave --no-install out", file=sys.stderr)
        return 1
    began = time.monotonic()
    wanted = [
        (play, host, True)
        for name, play in PLAYS.items()
        for host in play.hosts
        if not given.words or any(word in name for word in given.words)
    ]
    controls = [(PLAYS[CONTROL], host, False) for host in PLAYS[CONTROL].hosts if not given.words]
    with ThreadPoolExecutor(given.at_once) as pool:
        outcomes = list(pool.map(lambda each: _told(perform(programs, *each)), wanted + controls))
    played, silent = outcomes[: len(wanted)], outcomes[len(wanted) :]
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    words = "".join(f" {word}" for word in (*given.words, "--rounds", given.rounds))
    printed = [f"scripts/hosts{words}\n{now}\n{machine(str(Path.cwd()))}\n"]
    print(printed[0])
    if outcomes:
        printed.append(render(_table(played, silent, time.monotonic() - began)))
        print(printed[-1], flush=True)
    if not given.words or LATENCY in given.words:
        for table in measure(programs, given.rounds):
            printed.append(render(table))
            print(printed[-1], flush=True)
    for outcome in played:
        for text in _faults(outcome):
            print(text)
    if given.keep:
        text = "\n".join((*printed, f"load at the end {load()}\n"))
        Path(given.keep, "hosts.txt").write_text(text)
    return int(not all(each.is_sound for each in played) or any(each.is_sound for each in silent))


def perform(programs: Programs, play: Play, host: str, has_hooks: bool = True) -> Outcome:
    """Play one play in one host, in a home and a repository of its own."""
    began = time.monotonic()
    claims: list[Claim] = []
    defect = ""
    with tempfile.TemporaryDirectory(prefix="hosts-", ignore_cleanup_errors=True) as place:
        first = host.split()[0]
        stage = Stage(Path(place), programs, first, has_hooks=has_hooks, has_plan=play.has_plan)
        try:
            claims.extend(play.run(stage))
        except Exception as error:  # whatever it is, the other plays go on
            defect = f"{type(error).__name__}: {error!s:.1500}"
        finally:
            stage.close()
    return Outcome(
        play.name, host, tuple(claims), time.monotonic() - began, tuple(stage.notes), defect
    )


def _told(outcome: Outcome) -> Outcome:
    state = "well" if outcome.is_sound else "NOT WELL"
    print(
        f"{outcome.host}: {outcome.play}: {state}, {outcome.seconds:.0f} s",
        file=sys.stderr,
        flush=True,
    )
    return outcome


def _faults(outcome: Outcome) -> Iterator[str]:
    for claim in outcome.claims:
        if not claim.holds:
            yield f"{outcome.host}: {outcome.play}: not so: {claim.text}\n{claim.seen!s:.1500}"
    if outcome.defect:
        yield f"{outcome.host}: {outcome.play}: {outcome.defect}"


def _table(played: list[Outcome], silent: list[Outcome], seconds: float) -> Table:
    rows = [
        (outcome.host, outcome.play, claim.text, "yes" if claim.holds else "NO", "")
        for outcome in played
        for claim in outcome.claims
    ]
    rows += [
        (each.host, each.play, f"all {len(each.claims)} claims", "yes" if each.is_sound else "NO", f"{each.seconds:.0f} s")
        for each in played
    ]  # fmt: skip
    rows += [
        (each.host, f"{each.play}, without our hooks", "the control fails", "NO" if each.is_sound else "yes", "")
        for each in silent
    ]  # fmt: skip
    total = sum(len(each.claims) for each in played)
    held = sum(claim.holds for each in played for claim in each.claims)
    named = ", ".join(f"{host} {version}" for host, version in versions().items())
    measured = (text for each in played for text in each.notes)
    notes = (
        *measured,
        f"{held} of {total} claims hold, in {named}",
        f"{seconds:.0f} s by the clock",
    )
    return Table(
        "Inside the real hosts", ("host", "play", "claim", "holds", "time"), tuple(rows), notes
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("scripts/hosts", description=__doc__)
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help=f"of {', '.join((*PLAYS, LATENCY))}"
    )
    parser.add_argument(
        "--no-install", dest="install", action="store_false", help="use what is installed"
    )
    parser.add_argument(
        "--at-once", type=int, default=2, metavar="N", help="plays side by side (default: 2)"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, metavar="N", help="of the latency (default: 3)"
    )
    parser.add_argument("--keep", metavar="DIR", help="write what is printed to DIR/hosts.txt")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
