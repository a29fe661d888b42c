"""What has to be true once a play is over, checked with git and not with the daemon."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from yolo_fs.demo.play import Play, PlayScene
from yolo_fs.demo.player import Player, artifacts_of, difference
from yolo_fs.demo.stage import SECRET, Stage
from yolo_fs.reasons import YoloError, safe

TEAM = "refs/yolo-fs/remote/main"
"""What a clone last saw of the team's branch."""


class DemoProof(NamedTuple):
    """One claim, and whether it holds."""

    claim: str
    holds: bool
    evidence: str = ""
    """What shows that it does not hold."""


def prove(play: Play, stage: Stage, player: Player) -> Iterator[DemoProof]:
    """Yield every claim that a play makes, checked."""
    stages = stage.machines.values() or (stage,)
    for each in stages:
        yield _one_file_each(each)
    if stage.machines:
        yield _is_the_same_everywhere(stage)
    if player.open_changes is not None:
        holds = stage.open_changes() == player.open_changes
        yield DemoProof("what the user staged and left unstaged is the same, byte for byte", holds)
    left = player.left_open()
    claim = "the work tree holds no other open change"
    yield DemoProof(claim, left == play.leaves, ", ".join(left))
    if any(_pastes_secret(scene) for scene in play.scenes):
        leak = _leak_of_secret(stage)
        claim = "the pasted token is in no git object, no event and no journal"
        yield DemoProof(claim, not leak, leak)
    if stage.messages:
        yield _messages_are_valid(stage)
        yield _states_came_in_order(play, stage)
        code, data = stage.ask("verify")
        claim = f"'yolo-fs verify' finds nothing wrong with {data['verified']} commits"
        yield DemoProof(claim, code == 0)
    yield _is_sound(stage)


def _is_the_same_everywhere(stage: Stage) -> DemoProof:
    """Every machine has the same artifacts, and the team's branch each version once."""
    trees = set(map(artifacts_of, stage.machines.values()))
    origins = stage.git.text("log", "--format=%(trailers:key=Yolo-Origin,valueonly)", TEAM).split()
    claim = f"the artifacts of {len(stage.machines)} machines are the same; "
    claim += f"the team's branch has each of {len(origins)} versions once"
    return DemoProof(claim, len(trees) == 1 and len(origins) == len(set(origins)))


def _one_file_each(stage: Stage) -> DemoProof:
    """Every reported commit is on the branch and changes just the reported file."""
    expected = "".join(f"{event.commit}\n{event.path}\n" for event in stage.commits)
    commits = [event.commit for event in stage.commits]
    stdin = "".join(f"{commit}\n" for commit in commits).encode()
    changed = stage.git.run("diff-tree", "--stdin", "-r", "--name-only", given=stdin).out
    missing = set(commits) - set(stage.git.text("rev-list", "HEAD").split())
    name = f" of the {os.path.basename(stage.root)}" if stage.machines else ""
    claim = f"all {len(commits)} commits of the daemon{name} are on the branch, one file each"
    holds = os.fsdecode(changed) == expected and not missing
    return DemoProof(claim, holds, ", ".join(missing))


def _pastes_secret(scene: PlayScene) -> bool:
    return any(SECRET in text for action in scene.do for text in action.get("slip", ()))


def _leak_of_secret(stage: Stage) -> str:
    if stage.secret in stage.daemon.output:
        return "an event contains it"
    if stage.secret in stage.git.run("cat-file", "--batch-all-objects", "--batch").out:
        return "a git object contains it"
    for folder, _, names in os.walk(f"{stage.root}/.git/yolo-fs"):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                if stage.secret in file.read():
                    return f"{name} contains it"
    return ""


def _messages_are_valid(stage: Stage) -> DemoProof:
    texts = list(dict.fromkeys(json.dumps(each, sort_keys=True) for each in stage.messages))

    def exit_code(text: str) -> int:
        return stage.ask("message", "check", "-", stdin=text.encode())[0]

    with ThreadPoolExecutor() as pool:
        codes = list(pool.map(exit_code, texts))
    invalid = [text for text, code in zip(texts, codes, strict=True) if code]
    claim = f"all {len(texts)} messages are valid and allowed, as 'yolo-fs message check' says"
    return DemoProof(claim, not invalid, safe("; ".join(invalid), 500))


def _states_came_in_order(play: Play, stage: Stage) -> DemoProof:
    """Every state that a scene saw is a committed version, each after the one before it."""
    states = [state for scene in play.scenes for state in _states_seen(scene)]
    versions = {path: stage.versions(path) for path in {state["keeps"] for state in states}}
    # An iterator goes on where it stopped, so no version counts for two states.
    missing = [
        str(state["data"])
        for state in states
        if all(difference(state["data"], version) for version in versions[state["keeps"]])
    ]
    claim = f"each of {len(states)} states is a commit of its own, one after the other"
    return DemoProof(claim, not missing, safe("; ".join(missing), 500))


def _states_seen(scene: PlayScene) -> list[Mapping[str, Any]]:
    expected = scene.expect.get("agrees", [scene.expect])
    return [each for each in expected if "keeps" in each]


def _is_sound(stage: Stage) -> DemoProof:
    claim = "git fsck is clean"
    try:
        stage.git.run("fsck", "--full", "--strict", "--no-progress")
    except YoloError as error:
        return DemoProof(claim, holds=False, evidence=error.message)
    return DemoProof(claim, holds=True)
