"""Judges a team from its bare remote and its clones alone, with git and nothing of yolo_fs.

`python team_judge.py TEAM BARE CLONE…` prints one line for each broken promise, and ends with their number, at most 99.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PLANNING = ".yolo-planning/phases/"
LEASES = ".yolo-team/leases/"
DEPARTMENTS = {"gaps.jsonl": "backend", "fe-gaps.jsonl": "frontend", "ux-gaps.jsonl": "uiux"}
"""File name → the department whose lease it needs; the judge knows the protocol by itself."""


class JudgedCommit(NamedTuple):
    """A commit of a first-parent line and what it changed."""

    oid: str
    parent: str
    trailers: dict[str, str]
    changes: dict[str, str]
    """Path → blob; empty for a file that was taken away."""

    @property
    def made_by(self) -> str:
        return self.trailers.get("Yolo-Origin", "").partition("/")[0]


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=True)
    return done.stdout.decode()


def line_of(root: Path, revision: str) -> list[JudgedCommit]:
    """Return a branch, oldest first."""
    told = git(
        root, "log", "--first-parent", "--reverse", "--root", "--raw", "--no-abbrev", "--no-renames",
        "--diff-merges=first-parent", "--format=%x01%H%x00%P%x00%(trailers:only,unfold)%x00", revision,
    )  # fmt: skip
    return [_commit(each) for each in told.split("\x01")[1:]]


def _commit(text: str) -> JudgedCommit:
    oid, parents, trailers, raw = text.split("\0")
    pairs = [line.partition(": ") for line in trailers.splitlines()]
    rows = [line.split(None, 5) for line in raw.splitlines() if line.startswith(":")]
    changes = {row[5]: row[3].strip("0") and row[3] for row in rows}
    return JudgedCommit(
        oid, parents.split(" ")[0], {key: value for key, _, value in pairs}, changes
    )


def faults(team: str, bare: Path, clones: list[Path]) -> Iterator[str]:
    """Yield what is wrong."""
    branch = f"refs/heads/yolo/team/{team}"
    shared = line_of(bare, branch)
    yield from _once(shared)
    yield from _fenced(bare, shared)
    tree = git(bare, "ls-tree", "-r", branch, "--", PLANNING)
    versions = {pair for commit in shared for pair in commit.changes.items()}
    place_of = {commit.trailers.get("Yolo-Origin"): at for at, commit in enumerate(shared)}
    for clone in clones:
        yield from (
            f"{clone.name}: {word} is not what the team has"
            for word in _differences(tree, git(clone, "ls-tree", "-r", "HEAD", "--", PLANNING))
        )
        own = [each for each in line_of(clone, "HEAD") if "Yolo-Artifact" in each.trailers]
        for commit in own:
            for path, blob in commit.changes.items():
                if path.startswith(PLANNING) and blob and (path, blob) not in versions:
                    yield f"{clone.name}: {path} {blob[:8]} of {commit.oid[:8]} is lost"
        name = json.loads((clone / ".git/yolo-fs/team.json").read_text())["clone"]
        yield from _disordered(name, own, place_of)


def _disordered(
    name: str, own: list[JudgedCommit], place_of: dict[str | None, int]
) -> Iterator[str]:
    """Yield the files whose versions are on the team's branch in another order than they were made.

    One department may wait for its lease while others go on: order is a matter of each file.
    """
    places: dict[str, list[int]] = {}
    for commit in own:
        place = place_of.get(f"{name}/{commit.oid}")
        for path in commit.changes if place is not None else ():
            places.setdefault(path, []).append(place or 0)
    yield from (
        f"{name}: {path} was published in another order than made"
        for path, found in places.items()
        if found != sorted(found)
    )


def _differences(team: str, clone: str) -> set[str]:
    pairs = set(team.splitlines()) ^ set(clone.splitlines())
    return {pair.partition("\t")[2] for pair in pairs}


def _once(shared: list[JudgedCommit]) -> Iterator[str]:
    origins = Counter(each.trailers.get("Yolo-Origin") for each in shared if each.made_by)
    for origin, count in origins.items():
        if count > 1:
            yield f"{origin} is there {count} times"
    for commit in shared:
        if len(commit.changes) != 1:
            yield f"{commit.oid[:8]} changes {len(commit.changes)} files"
        if not commit.made_by and "Yolo-Lease" not in commit.trailers:
            yield f"{commit.oid[:8]} has no origin"


def _fenced(bare: Path, shared: list[JudgedCommit]) -> Iterator[str]:
    """Replay the leases: who held what when each artifact was published."""
    holders: dict[str, tuple[str, int]] = {}
    for commit in shared:
        for path, blob in commit.changes.items():
            if path.startswith(LEASES):
                lease = json.loads(git(bare, "cat-file", "blob", blob))
                dept, epoch = lease["dept"], lease["epoch"]
                if epoch != holders.get(dept, ("", 0))[1] + 1:
                    yield f"the epoch of {dept} goes to {epoch} in {commit.oid[:8]}"
                holders[dept] = (lease["holder"], epoch)
                continue
            dept = DEPARTMENTS.get(path.rpartition("/")[2], "")
            holder, epoch = holders.get(dept, ("", 0))
            if holder and commit.made_by != holder:
                yield f"{commit.oid[:8]}: {path} of {commit.made_by}, under epoch {epoch} of {holder}"


if __name__ == "__main__":
    found = list(faults(sys.argv[1], Path(sys.argv[2]), [Path(each) for each in sys.argv[3:]]))
    for each in found:
        print(each)
    sys.exit(min(99, len(found)))
