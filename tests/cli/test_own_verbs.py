"""What is known of our own verbs by one who watches over agents is held against the verbs that there are."""

from __future__ import annotations

from collections.abc import Iterator

import click

from yolo_fs.cli.main import VERBS
from yolo_fs.protocol.verbs import OWN_VERB_BY_NAME, OWN_VERBS, Whose

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
