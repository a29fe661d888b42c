"""A model of clones that meet at one team ref: branches, crashes, stale looks, lost acknowledgements."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from yolo_fs.artifacts.table import by_kind
from yolo_fs.team.reconcile import Divergence, PathVersion, TeamPlan, merge_texts, plan_of

ROWS = {"gaps.jsonl": "gaps", "decisions.jsonl": "decisions", "plan.jsonl": "plan"}
"""Path → kind of the artifact: one for each way in which versions meet."""


@dataclass
class ModelClone:
    """One clone: the branches of its user, and which one they stand on."""

    name: str
    branches: dict[str, list[PathVersion]] = field(default_factory=lambda: {"main": []})
    current: str = "main"
    origins: dict[str, str] = field(default_factory=dict)
    """Commit of the branch → the version of the team that it is a copy of."""

    @property
    def branch(self) -> list[PathVersion]:
        return self.branches[self.current]

    def tree(self) -> dict[str, str]:
        return {change.path: change.blob for change in self.branch if change.blob is not None}


class ModelTeam:
    """The team ref, the clones, and what happens to them; every step may be the last before a crash."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.numbers: Iterator[int] = count(1)
        self.ref: list[PathVersion] = []
        """What the team has; `commit` is the local commit of which each entry is the copy."""
        self.clones = [ModelClone(f"c{n}") for n in range(self.random.randint(2, 5))]
        self.dropped: set[str] = set()
        """Local commits that need not arrive: reset away, not chosen in a conflict, or a merge of two versions that
        somebody else's merge contains."""

    # --- one step ---

    def step(self) -> None:
        clone = self.random.choice(self.clones)
        what = self.random.choices(
            (self.write, self.look, self.switch, self.rebase, self.reset), (8, 8, 1, 1, 1)
        )[0]
        what(clone)

    def write(self, clone: ModelClone) -> None:
        """An agent writes a new version of a file, on the one that it sees."""
        path = self.random.choice([*ROWS])
        lines = clone.tree().get(path, "").splitlines()
        number = next(self.numbers)
        fresh = json.dumps({"id": f"G-{number}", "dt": f"2026-01-01T00:00:{number:09}Z"})
        if path == "plan.jsonl":
            lines = [fresh]
        elif path == "gaps.jsonl" and lines and self.random.random() < 0.4:
            at = self.random.randrange(len(lines))
            lines[at] = json.dumps(json.loads(lines[at]) | {"st": number})
        else:
            lines.append(fresh)
        self.commit(clone, path, "".join(f"{line}\n" for line in lines))

    def look(self, clone: ModelClone) -> None:
        """One look of a clone, at the ref as it is or as it was: notifications are late, lost and repeated."""
        seen = len(self.ref)
        if self.random.random() < 0.3:
            seen = self.random.randint(self.known(clone), seen)
        snapshot = self.ref[:seen]
        plan, divergences = self.plan(clone, snapshot)
        steps = self.random.randint(0, 3)  # a crash after so many of them
        if steps > 0:
            some = self.random.randint(0, len(plan.receive))
            self.receive(clone, plan.receive[:some] if steps == 1 else plan.receive)
        if steps > 1:
            self.merge(clone, divergences)
        if steps > 2 and not divergences and len(self.ref) == seen:
            self.publish(plan)

    def switch(self, clone: ModelClone) -> None:
        """The user stands on another branch: one that is there, or a new one from an earlier commit."""
        if self.random.random() < 0.5:
            clone.current = self.random.choice([*clone.branches])
            return
        name = f"b{next(self.numbers)}"
        clone.branches[name] = clone.branch[: self.random.randint(0, len(clone.branch))]
        clone.current = name

    def rebase(self, clone: ModelClone) -> None:
        """The user's rebase makes every commit anew; copies keep their trailer, own commits get another id."""
        clone.branches[clone.current] = [
            replace_commit(change, f"{change.commit}'") for change in clone.branch
        ]

    def reset(self, clone: ModelClone) -> None:
        """The user takes their last commits back."""
        keep = self.random.randint(max(0, len(clone.branch) - 3), len(clone.branch))
        self.dropped |= {change.commit for change in clone.branch[keep:]}
        del clone.branch[keep:]

    # --- what the service does with a plan ---

    def plan(
        self, clone: ModelClone, snapshot: list[PathVersion]
    ) -> tuple[TeamPlan, list[Divergence]]:
        """Return the plan, and the divergences that can be merged and are not yet."""
        plan = plan_of(clone.branch, snapshot)
        merged = {each: merge(each) for each in plan.diverged}
        taken = frozenset(
            (each.path, each.ours) for each, text in merged.items() if text == each.ours
        )
        open_ = [each for each, text in merged.items() if text not in (None, each.ours)]
        return plan_of(clone.branch, snapshot, taken=taken), open_

    def receive(self, clone: ModelClone, changes: tuple[PathVersion, ...]) -> None:
        for change in changes:
            name = f"{clone.name}-copy{next(self.numbers)}"
            clone.branch.append(replace_commit(change, name))
            clone.origins[name] = change.commit

    def merge(self, clone: ModelClone, divergences: list[Divergence]) -> None:
        for each in divergences:
            text = merge(each)
            assert text is not None
            self.commit(clone, each.path, text)
            self.dropped.add(clone.branch[-1].commit)

    def publish(self, plan: TeamPlan) -> None:
        self.ref += plan.publish

    def commit(self, clone: ModelClone, path: str, text: str) -> None:
        number = next(self.numbers)
        clone.branch.append(PathVersion(path, text, f"{clone.name}-{number}"))

    def known(self, clone: ModelClone) -> int:
        """Return how much of the ref a clone's fetches have brought so far; a ref is never seen to go back."""
        commits = {clone.origins.get(change.commit, change.commit) for change in clone.branch}
        seen = [at for at, change in enumerate(self.ref, 1) if change.commit in commits]
        return max(seen, default=0)

    # --- the end ---

    def settle(self, rounds: int = 60) -> bool:
        """Let everybody look in turn, and a person decide what cannot be merged, until nothing is left."""
        for _ in range(rounds):
            plans = [self.settle_clone(clone) for clone in self.clones]
            if all(plan == TeamPlan() for plan in plans):
                return True
        return False

    def settle_clone(self, clone: ModelClone) -> TeamPlan:
        plan, divergences = self.plan(clone, self.ref)
        self.receive(clone, plan.receive)
        self.merge(clone, divergences)
        if not divergences:
            self.publish(plan)
            for each in plan.diverged:
                self.choose(clone, each)
        return plan

    def choose(self, clone: ModelClone, each: Divergence) -> None:
        """A person takes their version, or publishes ours on top of it: `team resolve`."""
        if self.random.random() < 0.5:
            self.dropped |= {change.commit for change in clone.branch if change.path == each.path}
            theirs = [change for change in self.ref if change.path == each.path]
            self.receive(clone, (theirs[-1],))
        else:
            plan = plan_of(clone.branch, self.ref, taken=frozenset({(each.path, each.ours)}))
            self.publish(
                plan._replace(publish=tuple(c for c in plan.publish if c.path == each.path))
            )


def merge(divergence: Divergence) -> str | None:
    """Return what a divergence comes to, or None on a conflict."""
    row = by_kind(ROWS[divergence.path])
    assert row is not None
    texts = (divergence.base or "", divergence.ours, divergence.theirs)
    merged = merge_texts(row, *(text.encode() for text in texts))
    return None if merged is None else merged.decode()


def replace_commit(change: PathVersion, commit: str) -> PathVersion:
    return change._replace(commit=commit)
