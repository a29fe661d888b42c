"""What has to be true once a play is over: asked of git, not of the daemon."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from yolo_fs.demo.player import Player
from yolo_fs.demo.questions import difference
from yolo_fs.demo.stage import Stage
from yolo_fs.demo.story import Agrees, Keeps, Play, Scene
from yolo_fs.reasons import YoloError, safe


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
        yield Proof(
            "the pasted token is in no git object, no event and no journal",
            *_secret_is_nowhere(stage),
        )
    if stage.messages:
        yield from _said_and_kept(play, stage)
    yield _is_sound(stage)


def _said_and_kept(play: Play, stage: Stage) -> Iterator[Proof]:
    """Yield what a play with messages claims: all valid, each state committed, and history as it is prescribed."""
    yield _messages_are_valid(stage)
    yield _states_came_in_order(play, stage)
    code, data = stage.ask("verify")
    yield Proof(f"'yolo-fs verify' finds nothing wrong with {data['verified']} commits", code == 0)


def _messages_are_valid(stage: Stage) -> Proof:
    known = list(dict.fromkeys(json.dumps(message, sort_keys=True) for message in stage.messages))
    with ThreadPoolExecutor() as hands:
        codes = list(
            hands.map(
                lambda text: stage.ask("message", "check", "-", given=text.encode())[0], known
            )
        )
    wrong = [text for text, code in zip(known, codes, strict=True) if code]
    claim = f"all {len(known)} messages are valid and go where they may, as 'yolo-fs message check' says"
    return Proof(claim, not wrong, safe("; ".join(wrong), 500))


def _states_came_in_order(play: Play, stage: Stage) -> Proof:
    """Every state that was looked at is a version of its file on the branch, each after the one before it."""
    wanted = [keeps for scene in play.scenes for keeps in _kept_by(scene)]
    versions = {path: iter(stage.versions(path)) for path in {keeps.path for keeps in wanted}}
    # An iterator goes on where it stopped, so no version stands for two states.
    missing = [
        one.said
        for one in wanted
        if all(difference(one.data, version) for version in versions[one.path])
    ]
    claim = f"each of {len(wanted)} states is a commit of its own, one after the other"
    return Proof(claim, not missing, safe("; ".join(missing), 500))


def _kept_by(scene: Scene) -> tuple[Keeps, ...]:
    answers = scene.answer.answers if isinstance(scene.answer, Agrees) else (scene.answer,)
    return tuple(answer for answer in answers if isinstance(answer, Keeps))


def _each_alone(stage: Stage, player: Player) -> Proof:
    """Every commit that was told is on the branch and changes just the file that was told."""
    expected = "".join(f"{event.commit}\n{event.path}\n" for event in player.told)
    asked = "".join(f"{event.commit}\n" for event in player.told).encode()
    changed = os.fsdecode(
        stage.git.run("diff-tree", "--stdin", "-r", "--name-only", given=asked).out
    )
    missing = {event.commit for event in player.told} - set(
        stage.git.text("rev-list", "HEAD").split()
    )
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
