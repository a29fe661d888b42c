"""A play as data: `plays/company.toml`, read into acts and scenes.

A scene says who does what (`do`, a list of actions, see `stage.ACTIONS`) and what must come of it
(`expect`, see `player.EXPECTATIONS`). The path and subject of a commit that an action leads to
stand with the action, as `commits`. `{name}` in any string is replaced by an entry of `[names]`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

FOLDER = files("tests.play") / "plays"


@dataclass(frozen=True, slots=True)
class PlayScene:
    """One actor does something, with an expected result."""

    who: str
    """Role as it is shown, such as `FE Dev`."""
    does: str
    """One plain sentence without its subject."""
    do: tuple[Mapping[str, Any], ...] = ()
    """Actions, each named by its first key."""
    expect: Mapping[str, Any] = field(default_factory=dict)
    """What must come of it."""
    deadline_s: float = 20.0
    """Longest wait for what is expected."""
    at_once: bool = False
    """Whether the actions are those of several agents who work at the same time."""


class PlayAct(NamedTuple):
    """The scenes of one step of the workflow, or of several."""

    step: str
    """Key of the step in `protocol.workflow`; another name for several of them."""
    title: str
    scenes: tuple[PlayScene, ...]


@dataclass(frozen=True, slots=True)
class Play:
    """A whole story, from an ordinary repository to the sign-off."""

    intro: str
    acts: tuple[PlayAct, ...]
    folder: Traversable
    """Where the files are that its agents write."""
    opening: tuple[Mapping[str, Any], ...] = ()
    """Actions that make the repository before the daemon starts."""
    leaves: tuple[str, ...] = ()
    """What `git status --porcelain` shows at the end: what the user left open, nothing else."""
    policy: Mapping[str, Any] = field(default_factory=dict)
    """What the user of the story has configured."""
    keeps_states: bool = False
    """Whether the daemon writes and commits state files of its own in between."""

    @property
    def scenes(self) -> Iterator[PlayScene]:
        """Every scene in order."""
        return (scene for act in self.acts for scene in act.scenes)

    def read(self, content: str) -> str:
        """Return a file of the play. `content`: its path relative to the play's folder."""
        return self.folder.joinpath(*content.split("/")).read_text(encoding="utf-8")


def load_play(story: Traversable, folder: Traversable) -> Play:
    """Return the play of a TOML file, whose agents write the files of `folder`."""
    raw = tomllib.loads(story.read_text(encoding="utf-8"))
    value = _filled(raw, raw.pop("names", {}))
    value["opening"] = tuple(value["opening"])
    value["leaves"] = tuple(value.get("leaves", ()))
    value["acts"] = tuple(
        PlayAct(act["step"], act["title"], tuple(_scene(scene) for scene in act["scenes"]))
        for act in value["acts"]
    )
    return Play(folder=folder, **value)


def _scene(value: dict[str, Any]) -> PlayScene:
    actions = tuple(value.pop("do", ()))
    commits = {
        action.get("write") or action["judge"]: action.pop("commits")
        for action in actions
        if "commits" in action
    }
    expect = value.pop("expect", {})
    if commits:
        expect = {"commits": {**commits, **expect.get("commits", {})}}
    return PlayScene(do=actions, expect=expect, **value)


def _filled(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value in which `{name}` is replaced in every string and key."""
    if isinstance(value, dict):
        return {_filled(key, names): _filled(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, names) for each in value]
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(f"{{{name}}}", text)
    return value


COMPANY = load_play(FOLDER / "company.toml", FOLDER / "company")
