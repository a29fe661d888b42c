"""What has to be true once a play is over: asked of git, not of the daemon.

Source: design 1 ("Inert when in doubt"); reliability F59.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from yolo_fs.demo.player import Player
from yolo_fs.demo.stage import Stage
from yolo_fs.demo.story import Play
from yolo_fs.reasons import YoloError


@dataclass(frozen=True, slots=True)
class Proof:
    """One claim, and whether it holds."""

    claim: str
    holds: bool
    seen: str = ""
    """What was found when it does not hold."""


def prove(play: Play, stage: Stage, player: Player) -> tuple[Proof, ...]:
    """Return every claim that a play makes, examined."""
    return tuple(_proofs(play, stage, player))


def _proofs(play: Play, stage: Stage, player: Player) -> Iterator[Proof]:
    yield _each_alone(stage, player)
    if player.kept is not None:
        holds = stage.open_changes() == player.kept
        yield Proof("what the user staged and left unstaged is the same, byte for byte", holds)
    left = tuple(stage.git.text("status", "--porcelain").splitlines())
    yield Proof("the work tree holds no other open change", left == play.leaves, ", ".join(left))
    if any(stage.pastes_secret(deed) for scene in play.scenes for deed in scene.deeds):
        yield Proof("the pasted token is in no git object, no event and no journal", *_secret_is_nowhere(stage))
    yield _is_sound(stage)


def _each_alone(stage: Stage, player: Player) -> Proof:
    """Every commit that was told is on the branch and changes just the file that was told."""
    expected = "".join(f"{event.commit}\n{event.path}\n" for event in player.told)
    asked = "".join(f"{event.commit}\n" for event in player.told).encode()
    changed = os.fsdecode(stage.git.run("diff-tree", "--stdin", "-r", "--name-only", given=asked).out)
    missing = {event.commit for event in player.told} - set(stage.git.text("rev-list", "HEAD").split())
    claim = f"all {len(player.told)} commits of the daemon are on the branch, one file each"
    return Proof(claim, changed == expected and not missing, ", ".join(missing))


def _secret_is_nowhere(stage: Stage) -> tuple[bool, str]:
    secret = stage.secret
    if secret in stage.daemon.heard:
        return False, "an event tells it"
    if secret in stage.git.run("cat-file", "--batch-all-objects", "--batch").out:
        return False, "a git object holds it"
    for folder, _, names in os.walk(f"{stage.root}/.git/yolo-fs"):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                if secret in file.read():
                    return False, f"{name} holds it"
    return True, ""


def _is_sound(stage: Stage) -> Proof:
    try:
        stage.git.run("fsck", "--full", "--strict", "--no-progress")
    except YoloError as error:
        return Proof("git fsck is clean", holds=False, seen=error.message)
    return Proof("git fsck is clean", holds=True)
