"""What has to be true once a play is over, checked with git and not with the daemon."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from yolo_fs.demo.play import Play
from yolo_fs.demo.stage import Stage
from yolo_fs.reasons import YoloError


class DemoProof(NamedTuple):
    """One claim, and whether it holds."""

    claim: str
    holds: bool
    evidence: str = ""
    """What shows that it does not hold."""


def prove(play: Play, stage: Stage) -> Iterator[DemoProof]:
    """Yield every claim that a play makes, checked."""
    yield _one_file_each(stage)
    left = stage.open_changes()
    claim = "the work tree holds no other open change"
    yield DemoProof(claim, left == play.leaves, ", ".join(left))
    yield _is_sound(stage)


def _one_file_each(stage: Stage) -> DemoProof:
    """Every reported commit is on the branch and changes just the reported file."""
    expected = "".join(f"{event.commit}\n{event.path}\n" for event in stage.commits)
    commits = [event.commit for event in stage.commits]
    stdin = "".join(f"{commit}\n" for commit in commits).encode()
    changed = stage.git.run("diff-tree", "--stdin", "-r", "--name-only", given=stdin).out
    missing = set(commits) - set(stage.git.text("rev-list", "HEAD").split())
    claim = f"all {len(commits)} commits of the daemon are on the branch, one file each"
    holds = os.fsdecode(changed) == expected and not missing
    return DemoProof(claim, holds, ", ".join(missing))


def _is_sound(stage: Stage) -> DemoProof:
    claim = "git fsck is clean"
    try:
        stage.git.run("fsck", "--full", "--strict", "--no-progress")
    except YoloError as error:
        return DemoProof(claim, holds=False, evidence=error.message)
    return DemoProof(claim, holds=True)
