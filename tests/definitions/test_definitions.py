"""What each agent is told is true: it may do it, it exists, it is valid, and it is what the roster says."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import jinja2
import pytest
import yaml

from tests.cli.test_own_verbs import all_verbs
from tests.support.teams import Team
from yolo_fs.agents.access import Access
from yolo_fs.artifacts.classify import classify
from yolo_fs.authority.actors import find_actor
from yolo_fs.checking.checker import Checker
from yolo_fs.checking.snapshots import NoTree
from yolo_fs.cli.main import yolo_fs
from yolo_fs.core.reasons import Reason, errors
from yolo_fs.definitions.definition import Definition, definitions, text_of
from yolo_fs.definitions.host_files import host_file
from yolo_fs.definitions.plugin import plugin_files
from yolo_fs.definitions.texts import rendered
from yolo_fs.git.repository import Repository
from yolo_fs.protocol.departments import Dept, Mode, Role
from yolo_fs.protocol.roster import AGENTS, ROSTER
from yolo_fs.schemas.config import Config, Policy
from yolo_fs.workspace.settings import Settings

ALL = definitions()
each_agent = pytest.mark.parametrize("definition", ALL, ids=lambda one: one.agent.name)

_FENCED = re.compile(r"A valid `([^`]+)`:\n```[a-z]+\n(.*?)\n```", re.DOTALL)
_QUOTED = re.compile(r"`(yolo-fs [^`]+)`|^    (yolo-fs .+)$", re.MULTILINE)
_ANYWHERE = re.compile(r"yolo-fs [a-z]")


def real(path: str) -> str:
    """Return a path of a definition as it is in the first phase."""
    return path.replace("NN-slug", "01-auth").replace("NN-MM", "01-02").replace("NN", "01")


def commands_in(text: str) -> Iterator[str]:
    found = [one or other for one, other in _QUOTED.findall(text)]
    assert (
        len(found) >= len(_ANYWHERE.findall(re.sub(r"(?m)^(#|description|name) .*$", "", text))) - 1
    )
    yield from found


def parsed(command: str) -> None:
    """Parse a command of ours by the real tree of verbs, with its options.

    One that is only named, or that ends in `…` instead of what follows, may lack what it needs.
    """
    words = shlex.split(re.sub(r"\bN\b", "1", command.replace("SLUG", "login")))[1:]
    is_elided = words[-1] == "…" and not words[-2].startswith("-")
    words = words[:-1] if is_elided else words
    verbs = all_verbs()
    groups = {name.split()[0] for name in verbs if " " in name}
    name = next((name for name in (" ".join(words[:2]), words[0]) if name in verbs), "")
    assert name or (words[0] in groups and len(words) == 1), command
    rest = words[len(name.split()) :]
    if not name:
        return
    above = yolo_fs.make_context("yolo-fs", words[:1])  # it has how the help of all is called
    try:
        verbs[name].make_context(name, [word.replace("…", "x") for word in rest], parent=above)
    except click.MissingParameter:
        assert is_elided or not rest, command


@pytest.fixture(scope="module")
def accesses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Mode, Access]]:
    """The guard's own answers, where one department works and where all do."""
    found, repositories = {}, []
    for mode in Mode:
        team = Team(tmp_path_factory.mktemp("team") / "work")
        several = mode is Mode.MULTI
        team.config({"departments": {"backend": True, "frontend": several, "uiux": several}})
        repositories.append(Repository(str(team.root)))
        found[mode] = Access(repositories[-1])
    yield found
    for one in repositories:
        one.close()


def ways(definition: Definition) -> Iterator[Mode]:
    """Yield how many departments work where there is this agent."""
    if definition.department in (None, Dept.BACKEND) and definition.role != "owner":
        yield Mode.SINGLE
    yield Mode.MULTI


def test_there_is_a_definition_for_every_agent_of_the_tables() -> None:
    assert [one.agent for one in ALL] == list(AGENTS)
    assert len(ALL) == 36
    assert {row.name for row in ROSTER} <= {one.agent.name for one in ALL}


@each_agent
def test_every_file_it_is_told_to_read_it_may_read(
    definition: Definition, accesses: dict[Mode, Access]
) -> None:
    for mode in ways(definition):
        actor = accesses[mode].actor(definition.agent.name)
        for given in definition.reads:
            for path in given.paths:
                answer = accesses[mode].read(actor, real(path), given.work)
                assert answer.allowed, (mode, path, answer.rule)
                assert f"`{path}`" in text_of(definition)


@each_agent
def test_every_file_it_is_told_to_write_it_or_its_writer_may_write(
    definition: Definition, accesses: dict[Mode, Access]
) -> None:
    for mode in ways(definition):
        access = accesses[mode]
        for one in definition.writes:
            writer = one.by.removeprefix("yolo-") or definition.agent.name
            name = "go" if " " in writer else writer
            answer = access.write(access.actor(name), real(one.path))
            assert answer.allowed, (mode, one.path, name, answer.rule)
            own = access.write(access.actor(definition.agent.name), real(one.path))
            assert own.allowed is not bool(one.by), (one.path, own.rule)


@each_agent
def test_every_example_in_its_text_is_a_valid_file_of_that_name(definition: Definition) -> None:
    checker, text = Checker(Settings(Config(), Policy())), text_of(definition)
    shown = _FENCED.findall(text)
    assert (
        len(shown) == text.count("```") // 2 == sum(bool(one.example) for one in definition.writes)
    )
    for name, example in shown:
        place = classify(f".yolo-planning/phases/01-auth/{name}") or classify(
            f".yolo-planning/{name}"
        )
        assert place, name
        found = checker.check(place, f"{example}\n".encode(), NoTree()).findings
        wrong = [one for one in errors(found) if one.reason is not Reason.WAITS_FOR]
        assert not wrong, (name, wrong)
        if "{dept}" in place.artifact.file:
            assert place.department == (definition.department or Dept.BACKEND)


@each_agent
def test_no_example_has_a_file_that_its_department_may_not_write(definition: Definition) -> None:
    shown = "".join(example for _, example in _FENCED.findall(text_of(definition)))
    assert not [area for area in definition.off_limits if f'"{area}' in shown]


def test_a_dev_is_shown_a_summary_that_completes_its_plan() -> None:
    shown = [text_of(each) for each in ALL if each.role is Role.DEV]
    assert shown and all('"s":"complete"' in text for text in shown)


def test_a_lead_is_told_where_its_devs_may_not_write() -> None:
    leads = [each for each in ALL if each.role is Role.LEAD and each.department]
    assert all(
        "where several departments work with no file below" in text_of(each) for each in leads
    )
    assert any(each.department is Dept.UIUX for each in leads)


@each_agent
def test_every_command_it_is_told_exists_with_its_options(definition: Definition) -> None:
    text = text_of(definition)
    told = list(commands_in(text))
    for command in told:
        parsed(command)
    assert bool(told) is definition.can_run, told


@each_agent
def test_a_text_is_short_and_names_its_chain(definition: Definition) -> None:
    text = host_file(definition, "claude")
    assert len(text.splitlines()) <= 100
    assert f"You report to {definition.above[0]}" in text
    for topic in (*definition.decides, *definition.escalates, *definition.never):
        assert topic in text


@each_agent
def test_its_fields_for_claude_equal_the_roster(definition: Definition) -> None:
    text = host_file(definition, "claude")
    head = yaml.safe_load(text.split("---\n")[1])
    row = definition.agent
    tools = head.get("tools", "").split(", ") if "tools" in head else []
    assert tools == ([] if "All" in row.tools else [*row.tools])
    denied = head["disallowedTools"].split(", ") if "disallowedTools" in head else []
    named = {tool for each in ROSTER for tool in each.tools} - {"All"}
    assert set(denied) == (named - set(tools) if tools else set())
    assert head.get("model", "") == row.model.lower()
    assert head["name"] == row.full_name
    budget = definition.budget
    assert (f"at most {budget} tokens" in text) is bool(budget)


@each_agent
def test_its_fields_for_the_other_hosts_say_whether_it_writes(definition: Definition) -> None:
    told = tomllib.loads(host_file(definition, "codex"))
    head = yaml.safe_load(host_file(definition, "cursor").split("---\n")[1])
    is_reader = not (definition.can_write or definition.can_run)
    assert told["sandbox_mode"] == ("read-only" if is_reader else "workspace-write")
    assert head["readonly"] is is_reader
    assert told["name"] == head["name"] == definition.agent.full_name
    assert told["developer_instructions"].strip() == text_of(definition).strip()


def test_nobody_who_has_no_tool_to_write_is_told_to_write(accesses: dict[Mode, Access]) -> None:
    readers = {one.agent.name for one in ALL if one.returned}
    assert readers == {"analyze", "critic", "scout", "integration-gate", "ux-security",
                       "qa", "fe-qa", "ux-qa"}  # fmt: skip


def test_a_name_that_a_template_is_not_given_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        rendered("skill-look.md.j2", name="status")


def test_the_tools_of_a_variant_are_those_of_the_guard(accesses: dict[Mode, Access]) -> None:
    for one in ALL:
        actor = find_actor(one.agent.full_name, None, Mode.MULTI)
        assert actor.agent == one.agent


SKILLS = {
    path: data.decode() for path, data in plugin_files().items() if path.startswith("skills/")
}


@pytest.mark.parametrize("path", SKILLS)
def test_every_command_of_a_skill_exists_with_its_options(path: str) -> None:
    for command in commands_in(SKILLS[path]):
        parsed(command)


def test_the_skills_are_the_commands_of_the_routing_table_and_those_that_look() -> None:
    names = {path.split("/")[1] for path in SKILLS} - {"yolo-fs"}
    assert names == {"go", "debug", "fix", "research", "qa", "status", "resume", "inbox"}
    for path, text in SKILLS.items():
        head = yaml.safe_load(text.split("---\n")[1])
        assert head["name"] == path.split("/")[1]
        assert head["description"]
        starts = head["name"] in ("go", "debug", "fix", "research", "qa")
        assert head.get("disable-model-invocation", False) is starts


def test_no_definition_is_made_where_nobody_asks_for_one(tmp_path: Path) -> None:
    """Its templates are a library that no other command pays for."""
    import subprocess
    import sys

    code = (
        "import sys; from yolo_fs.cli.main import run; "
        "run(['status', '-q', '-C', sys.argv[1]]); run(['company', 'runs', '-q', '-C', sys.argv[1]]); "
        "assert 'jinja2' not in sys.modules"
    )
    Team(tmp_path / "work")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "work")], check=False)
    assert done.returncode == 0
