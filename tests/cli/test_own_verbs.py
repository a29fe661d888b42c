"""What is known of our own verbs by one who watches over agents is held against the verbs that there are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.security.doors import VALUES
from yolo_fs.cli.main import VERBS, run
from yolo_fs.core.reasons import Exit, Reason
from yolo_fs.protocol.verbs import OWN_VERB_BY_NAME, OWN_VERBS, OwnVerb, Whose

PATHS = ("FILE", "PATH", "DIR")
"""How the value of an option that is a path is called in the help."""


def verbs(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for each in command.list_commands(context):
        found = command.get_command(context, each)
        assert found is not None
        yield from verbs(found, f"{name} {each}")


def all_verbs() -> dict[str, click.Command]:
    return dict(pair for row in VERBS for pair in verbs(row.load(), row.name))


def test_every_verb_has_a_row_that_says_whose_it_is() -> None:
    assert len(OWN_VERBS) == len(OWN_VERB_BY_NAME)
    assert all_verbs().keys() == OWN_VERB_BY_NAME.keys()


def test_every_option_that_is_a_path_is_said_to_be_read_or_written() -> None:
    unsaid = []
    for name, command in all_verbs().items():
        row = OWN_VERB_BY_NAME[name]
        for option in command.params:
            if not isinstance(option, click.Option) or option.name == "start":
                continue
            is_path = (option.metavar or "").partition(".")[0] in PATHS or isinstance(
                option.type, click.Path | click.File
            )
            is_path = is_path or {"-o", "--output", "--report", "--out"} & {*option.opts}
            if is_path and not {*option.opts} <= {*row.writes, *row.reads}:
                unsaid.append((name, option.opts))
    assert unsaid == []


def test_every_option_of_a_row_is_one_of_its_verb() -> None:
    for name, command in all_verbs().items():
        row = OWN_VERB_BY_NAME[name]
        known = {word for option in command.params for word in option.opts}
        named = {*row.writes, *row.reads, *row.only_with, *row.operands_written_with}
        assert named - {"always"} <= known, name
        if row.never_with:
            assert known & {*row.never_with}, name


def test_what_decides_for_a_person_is_a_persons() -> None:
    for name in OWN_VERB_BY_NAME:
        if name.rpartition(" ")[2] in (
            "uninstall",
            "restore",
            "prune",
            "stop",
            "skip",
            "leave",
            "join",
        ):
            assert OWN_VERB_BY_NAME[name].whose is Whose.PERSON, name


def shortest(row: OwnVerb, *more: str) -> list[str]:
    """Return the shortest line with which somebody types a verb."""
    words = [*row.name.split(), *more, "--json"]
    for each in all_verbs()[row.name].params:
        value = VALUES.get(each.name or "", "x")
        if isinstance(each.type, click.Choice):
            value = each.type.choices[0]
        is_given = each.required or not {*row.only_with}.isdisjoint(each.opts)
        if is_given and isinstance(each, click.Argument):
            words.append(value)
        elif is_given:
            words += each.opts[:1] if getattr(each, "is_flag", False) else [each.opts[0], value]
    return words


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("YOLO_FS_ROLE", "YOLO_FS_AGENT", "YOLO_FS_RUN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


OF_A_PERSON = [row for row in OWN_VERBS if row.whose is Whose.PERSON]


@pytest.mark.parametrize(
    "row", [row for row in OF_A_PERSON if not row.is_started_by_hosts], ids=lambda row: row.name
)
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("YOLO_FS_RUN", "R20260101000000ab12"),
        ("YOLO_FS_ROLE", "dev"),
        ("YOLO_FS_ROLE", "executor"),
        ("YOLO_FS_AGENT", "yolo-fe-lead"),
    ],
)
def test_what_is_for_a_person_no_agent_does_that_the_environment_names(
    nowhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    row: OwnVerb,
    variable: str,
    value: str,
) -> None:
    monkeypatch.setenv(variable, value)
    assert run(shortest(row)) == Exit.FINDINGS
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["reason"] == Reason.OUT_OF_LANE
    assert "Only a person may run" in finding["message"]
    assert finding["hint"].lower().startswith(row.instead.lower())
    assert not [*nowhere.iterdir()]


@pytest.mark.parametrize(
    ("variable", "value"), [("YOLO_FS_ROLE", ""), ("YOLO_FS_ROLE", "user"), ("HOME", "/nowhere")]
)
def test_a_person_is_refused_nothing_that_is_theirs(
    nowhere: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variable: str,
    value: str,
) -> None:
    monkeypatch.setenv(variable, value)
    assert run(["stop", "--json"]) == Exit.NOT_HERE
    assert json.loads(capsys.readouterr().out)["findings"][0]["reason"] == Reason.NOT_A_REPOSITORY


@pytest.mark.parametrize(
    "row", [row for row in OF_A_PERSON if row.only_with], ids=lambda row: row.name
)
def test_an_agent_may_type_a_verb_without_the_option_that_makes_it_a_persons(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], row: OwnVerb
) -> None:
    monkeypatch.setenv("YOLO_FS_ROLE", "dev")
    run(shortest(row._replace(only_with=())))
    assert "out_of_lane" not in capsys.readouterr().out
