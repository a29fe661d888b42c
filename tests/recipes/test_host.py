"""A host that `go` starts is a row of `HOSTS` and a function that reads its stream."""

from __future__ import annotations

import pytest

from .scratch import Scratch, scratch

READER = '''\
def read_example(line: Mapping[str, Any]) -> StreamNote:
    """Parse a line of the example's stream."""
    return StreamNote(tokens=int(_amount(line.get("used"))), answer=_whole(line.get("said")))


'''
ROW = """\
    HostProgram("example", "example-agent --as {agent}", read_example, package="example-agent"),
"""
STREAM = '{"used": 70, "said": "I cannot do that"}\n'


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    made = scratch(tmp_path_factory.mktemp("host"))
    made.insert("company/hosts.py", "HOSTS = (", READER)
    made.insert("company/hosts.py", '    HostProgram(\n        "claude"', ROW)
    made.start("--no-hooks")
    return made


def test_its_agents_are_started_as_the_row_says(team: Scratch) -> None:
    shown = team.json("go", "let people log in", "--host", "example", "--team", "solo", "--dry-run")

    acts = shown["data"]["acts"]
    assert acts
    assert all(act["command"] == ["example-agent", "--as", act["agent"]] for act in acts)


def test_a_host_that_is_not_installed_is_told_with_the_way_to_get_it(team: Scratch) -> None:
    refused = team.run("go", "let people log in", "--host", "example")

    assert refused.returncode != 0
    assert "npm install -g example-agent" in refused.stderr


def test_what_its_agents_use_is_on_the_bill_of_the_run(team: Scratch) -> None:
    team.write("stream.jsonl", STREAM)
    words = ("go", "let people log in", "--host", "example", "--team", "solo")

    given_up = team.run(*words, "--with", "cat stream.jsonl")

    assert given_up.returncode == 1, given_up.stderr
    [run] = team.json("company", "runs")["data"]
    assert run["tokens"] == 70 * len(run["acts"]) > 0
