"""People read times in their own zone, with its offset; programs read UTC."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.teams import Team, planned_team
from yolo_fs.cli.main import run
from yolo_fs.core.timestamps import iso, local

WORDS = ("--reason", "Which colour?", "--evidence", "seen", "--recommendation", "blue")
UTC = re.compile(r"\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")
HERE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0545")


@pytest.fixture
def team(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Team]:
    """A team in Nepal, with a question to the user and a file that was refused."""
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    made = planned_team(tmp_path, monkeypatch)
    asked = ["--task", "01-01/T1", *WORDS]
    assert run(["escalate", "open", "-C", str(made.root), *asked]) == 0
    for _ in range(3):
        more = [*WORDS, "--option", "blue", "--option", "red"]
        assert run(["escalate", "raise", "ESC-01-01-T1", "-C", str(made.root), *more]) == 0
    capsys.readouterr()
    yield made
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("verb", ["log", "events", "inbox", "status", "escalate list"])
def test_text_has_the_time_of_whoever_reads_it_and_json_that_of_utc(
    team: Team, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["run", "--once", "-C", str(team.root)])  # its journal has events then
    capsys.readouterr()
    run([*verb.split(), "-C", str(team.root)])
    text = capsys.readouterr().out
    assert HERE.search(text), text
    assert not UTC.search(text), text
    run([*verb.split(), "--json", "-C", str(team.root)])
    told = capsys.readouterr().out
    assert json.loads(told) and UTC.search(told) and not HERE.search(told)


def test_a_time_is_the_same_moment_in_each_form(team: Team) -> None:
    assert local("2026-02-19T08:00:00Z") == local(1771488000) == "2026-02-19 13:45:00 +0545"
    assert iso("2026-02-19T13:45:00+05:45") == iso(1771488000) == "2026-02-19T08:00:00Z"
    for told in (iso, local):
        assert (told(0), told("")) == ("", "")
        for written in ("yesterday", "0001-01-01T00:00:00+09:00"):
            assert told(written) == written
