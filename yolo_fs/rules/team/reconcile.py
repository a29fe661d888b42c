"""Three-way reconcile of the coordinated paths of a branch and of the team's ref. Pure.

Both histories are all there is to know: the last version of the team that the branch's history
contains is the base. So a lost notification, a crash between any two steps, a switched or rebased
branch and a clone restored from a backup need no rule of their own: the next look heals them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class PathChange(NamedTuple):
    """One commit that gave a path its content, in the branch or on the team's ref."""

    path: str
    blob: str | None
    """None: the commit took the file away."""
    commit: str


class Divergence(NamedTuple):
    """A path that both sides changed since they last agreed."""

    path: str
    base: str | None
    """Blob of the last version of the team that the branch has had; None when it had none."""
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class TeamPlan:
    """What has to happen so that a branch and the team's ref agree."""

    receive: tuple[PathChange, ...] = ()
    """Versions of the team to commit on the branch, in the team's order."""
    publish: tuple[PathChange, ...] = ()
    """Versions of the branch to commit on the team's ref, in the branch's order."""
    diverged: tuple[Divergence, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether both sides agree."""
        return not (self.receive or self.publish or self.diverged)


def plan_of(
    ours: Iterable[PathChange],
    theirs: Iterable[PathChange],
    *,
    taken: frozenset[tuple[str, str]] = frozenset(),
) -> TeamPlan:
    """Return what makes a branch and the team's ref agree, given their changes, oldest first.

    `taken`: (path, blob) of divergences whose last version here contains the team's, so that it
    may follow on top of it.
    """
    here, there = _by_path(ours), _by_path(theirs)
    receive: list[tuple[int, PathChange]] = []
    publish: list[tuple[int, PathChange]] = []
    diverged: list[Divergence] = []
    for path in here | there:
        meeting = _meet(here.get(path, []), there.get(path, []), path, taken)
        receive += meeting.receive
        publish += meeting.publish
        diverged += meeting.diverged
    return TeamPlan(
        tuple(change for _, change in sorted(receive)),
        tuple(change for _, change in sorted(publish)),
        tuple(diverged),
    )


_Numbered = tuple[int, PathChange]


class _Meeting(NamedTuple):
    receive: Sequence[_Numbered] = ()
    publish: Sequence[_Numbered] = ()
    diverged: Sequence[Divergence] = ()


def _meet(
    here: list[_Numbered], there: list[_Numbered], path: str, taken: frozenset[tuple[str, str]]
) -> _Meeting:
    ours, theirs = _last(here), _last(there)
    known_here, known_there = _last_agreed(here, there)
    new_here, new_there = here[known_here:], there[known_there:]
    if ours == theirs or not (new_here or new_there):
        return _Meeting()
    agreed = here[known_here - 1][1].blob if known_here else None
    if ours is None or not new_here or ours == agreed:
        # A file that people took away here comes back with the team's next version, not before.
        return _Meeting(receive=_contents(new_there) if theirs else ())
    if theirs in (None, agreed) or not new_there or (path, ours) in taken:
        return _Meeting(publish=_contents(new_here))
    return _Meeting(diverged=(Divergence(path, agreed, ours, theirs),))


def _last_agreed(here: Sequence[_Numbered], there: Sequence[_Numbered]) -> tuple[int, int]:
    """Return how many changes of each side lie up to the last version that both have had.

    The versions are matched in their order, each as early as it can be: content that comes back
    is a new version.
    """
    agreed, start = (0, 0), 0
    for at, (_, change) in enumerate(here):
        matches = (
            number
            for number in range(start, len(there))
            if change.blob is not None and there[number][1].blob == change.blob
        )
        if (match := next(matches, None)) is not None:
            start = match + 1
            agreed = (at + 1, start)
    return agreed


def _by_path(changes: Iterable[PathChange]) -> dict[str, list[_Numbered]]:
    found: dict[str, list[_Numbered]] = {}
    for number, change in enumerate(changes):
        of_path = found.setdefault(change.path, [])
        if not of_path or of_path[-1][1].blob != change.blob:
            of_path.append((number, change))
    return found


def _last(changes: Sequence[_Numbered]) -> str | None:
    return changes[-1][1].blob if changes else None


def _contents(changes: Sequence[_Numbered]) -> list[_Numbered]:
    return [numbered for numbered in changes if numbered[1].blob is not None]
