"""A new command is a file and a row of `VERBS`; help and `--json` come with it."""

from __future__ import annotations

import pytest

from .scratch import Scratch, scratch

VERB = '''\
"""`yolo-fs example`: where things are."""

from __future__ import annotations

from yolo_fs.cli.reply import Invocation, Reply, verb


@verb("example", example="yolo-fs example")
def example(asked: Invocation) -> Reply:
    """Show the folder that commands start from."""
    return Reply({"start": asked.start}, show=lambda console: console.print(asked.start))
'''


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    made = scratch(tmp_path_factory.mktemp("verb"))
    (made.package / "yolo_fs/cli/example.py").write_text(VERB)
    made.insert(
        "cli/main.py", '    Verb("doctor",', '    Verb("example", "where commands start from"),\n'
    )
    return made


def test_it_runs(program: Scratch) -> None:
    assert program.run("example").stdout.strip() == "."


def test_it_answers_in_json(program: Scratch) -> None:
    answer = program.json("example")

    assert answer["ok"]
    assert answer["data"] == {"start": "."}
    assert answer["schema"] == "yolo-fs/example/1"


def test_help_lists_it(program: Scratch) -> None:
    assert "where commands start from" in program.run("help", "--all").stdout
    assert "yolo-fs example" in program.run("example", "--help").stdout
