"""One permission, five doors: `may`, the hook, MCP and git's pre-commit say the same of every role,
kind and act, and of every message.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.support.kinds import paths_of_kinds
from tests.support.sample import turn_of
from tests.support.teams import THREE, Team
from yolo_fs.agents.access import Access
from yolo_fs.authority.actors import may_contact
from yolo_fs.git.repository import Repository
from yolo_fs.handoffs.lifecycle import HANDOFF
from yolo_fs.hooks import run as git_hooks
from yolo_fs.hooks.effects import Effect, Touch
from yolo_fs.hooks.hosts import HookInput
from yolo_fs.hooks.tool_use import Guard, HookRequest
from yolo_fs.hooks.touches import CommandReading, read_command
from yolo_fs.mcp.refusal import ToolRefusedError
from yolo_fs.mcp.writing import Caller
from yolo_fs.protocol.isolation import PERSONAL
from yolo_fs.protocol.roster import AGENT_BY_NAME
from yolo_fs.protocol.verbs import OWN_VERBS, Whose
from yolo_fs.workspace.settings import load_in_force

PHASE = ".yolo-planning/phases/01-auth"
ROLES = tuple(AGENT_BY_NAME)
PATHS = (
    *dict.fromkeys(path for _, path in paths_of_kinds(PHASE)),
    *(f".yolo-planning/{row.name}" for row in PERSONAL),
    f"{PHASE}/.dept-status-backend.json",
    f"{PHASE}/.handoff-ux-complete",
    f"{PHASE}/.ctx-fe-dev.toon",
    ".yolo-planning/REQUIREMENTS.md",
    "src/auth/keys.ts",
    "frontend/a.ts",
    ".env",
)


class Doors(NamedTuple):
    """All that judges in one repository."""

    team: Team
    repository: Repository
    access: Access

    def may(self, role: str, path: str, effect: Effect) -> bool:
        ask = self.access.read if effect is Effect.READ else self.access.write
        return ask(self.access.actor(role), path).allowed

    def request(self, role: str) -> HookRequest:
        said = HookInput("pre-tool-use", "claude", str(self.team.root), f"yolo-{role}")
        return HookRequest(self.repository, said)

    def hook(self, request: HookRequest, path: str, effect: Effect) -> bool:
        touch = Touch(str(self.team.root / path), effect)
        request.input = request.input._replace(call=CommandReading((touch,)))
        return not Guard(request).answer().refusal

    def served(self, role: str, path: str, effect: Effect) -> bool:
        caller = Caller(str(self.team.root), role)
        try:
            (caller.readable if effect is Effect.READ else caller.writable)(path)
        except ToolRefusedError:
            return False
        return True

    def committed(self, role: str, monkeypatch: pytest.MonkeyPatch) -> set[str]:
        """Return the paths that the role may commit."""
        monkeypatch.setenv(git_hooks.WHO[-1], role)
        settings = load_in_force(self.repository.root).settings
        found = git_hooks.of_role(self.repository, settings, PATHS)
        return {*PATHS} - {finding.path for finding in found}


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_CONFIG_HOME", str(home / "no config"))
        team = Team(home / "work tree")
        team.config(THREE)
        for path in PATHS:
            if not os.path.lexists(team.root / path) and not path.endswith(HANDOFF):
                team.file(path, "{}\n")
        with Repository(str(team.root)) as repository:
            repository.make_own_dir()
            yield Doors(team, repository, Access(repository, start=str(team.root)))


def test_every_door_says_the_same_of_every_role_kind_and_act(
    doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    differing, said = [], []
    for number, role in enumerate(turn_of(ROLES, 3)):
        committed, request = doors.committed(role, monkeypatch), doors.request(role)
        for place, path in enumerate(PATHS):
            for effect in (Effect.READ, Effect.WRITE):
                answers = {"may": doors.may(role, path, effect)}
                answers["hook"] = doors.hook(request, path, effect)
                if effect is Effect.WRITE:
                    answers["commit"] = path in committed
                if (number + place) % 9 == 0:  # it asks the hook's own guard, and opens git anew
                    answers["served"] = doors.served(role, path, effect)
                said.append(answers["may"])
                if len(set(answers.values())) != 1:
                    differing.append((role, path, str(effect), answers))
    assert differing == []
    assert len(said) / 5 < said.count(True) < len(said) * 4 / 5


def test_every_message_goes_where_may_says(doors: Doors) -> None:
    differing, said = [], []
    for role in turn_of(ROLES, 3):
        request = doors.request(role)
        for other in ROLES:
            told = request.input._replace(recipient=f"yolo-{other}", message="look")
            request.input = told
            sent = not Guard(request).answer().refusal
            pair = doors.access.pair(doors.access.actor(role), doors.access.actor(other))
            said.append(may_contact(*pair).allowed)
            if sent != said[-1]:
                differing.append((role, other, sent))
    assert differing == []
    assert len(said) / 50 < said.count(True) < len(said) / 2


@pytest.mark.parametrize("name", ["executor", "yolo-pair", "auditor-2"])
def test_a_role_of_a_directive_writes_no_file_of_a_person_at_any_door(
    doors: Doors, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(git_hooks.WHO[-1], name)
    settings = load_in_force(doors.repository.root).settings
    own = [f".yolo-planning/{row.name}" for row in PERSONAL]
    found = git_hooks.of_role(doors.repository, settings, own)
    assert [finding.path for finding in found] == own
    request = doors.request(name.removeprefix("yolo-"))
    for path in own:
        assert not doors.hook(request, path, Effect.WRITE)
        assert doors.hook(request, path, Effect.READ)
        assert not doors.served(name, path, Effect.WRITE)
        assert not doors.served("", path, Effect.WRITE), "nobody has said that it is a person"


@pytest.mark.parametrize("name", ["executor", "pair-2"])
def test_what_a_person_decides_no_role_of_a_directive_decides(doors: Doors, name: str) -> None:
    request = doors.request(name)
    for row in OWN_VERBS:
        typed = " ".join(("yolo-fs", row.name, *row.only_with[:1]))
        request.input = request.input._replace(call=read_command(typed))
        assert bool(Guard(request).answer().refusal) == (row.whose is Whose.PERSON), typed


def test_an_agent_names_the_files_that_it_takes_back(doors: Doors) -> None:
    request = doors.request("dev")
    for typed in ("git restore .", "git checkout -- ."):
        request.input = request.input._replace(call=read_command(typed))
        assert "Instead: name the files" in Guard(request).answer().refusal
