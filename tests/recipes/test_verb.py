"""A new command is a file and a row of `VERBS`; help and `--json` come with it."""

from __future__ import annotations

import pytest

from .scratch import Scratch, scratch

VERB = '''\
"""`yolo-fs roots`: where things are."""

from __future__ import annotations

from yolo_fs.cli.reply import Invocation, Reply, verb


@verb("roots", example="yolo-fs roots")
def roots(asked: Invocation) -> Reply:
    """Show the folder that commands start from."""
    return Reply({"start": asked.start}, show=lambda console: console.print(asked.start))
'''


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    made = scratch(tmp_path_factory.mktemp("verb"))
    (made.package / "yolo_fs/cli/roots.py").write_text(VERB)
    made.insert(
        "cli/main.py", '    Verb("doctor",', '    Verb("roots", "where commands start from"),\n'
    )
    return made


def test_it_runs(program: Scratch) -> None:
    assert program.run("roots").stdout.strip() == "."


def test_it_answers_in_json(program: Scratch) -> None:
    answer = program.json("roots")

    assert answer["ok"]
    assert answer["data"] == {"start": "."}
    assert answer["schema"] == "yolo-fs/roots/1"


def test_help_lists_it(program: Scratch) -> None:
    assert "where commands start from" in program.run("--help").stdout
    assert "yolo-fs roots" in program.run("roots", "--help").stdout
