"""What holds for every verb, without an exception: options, phases, who speaks, exit codes."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest

from tests.cli.test_own_verbs import all_verbs
from tests.support.teams import Team
from yolo_fs.cli.main import run, yolo_fs
from yolo_fs.core.reasons import Exit

LEAVES = all_verbs()
COMMON = {"-C", "--json", "-q", "-v", "--help"}
PASSED_ON = ("git-hook", "compat")
"""What stands behind these is for git, or for a script of the reference, to understand."""
OF_A_REPLY = "handoff read"
"""Document 004 calls the part of a quest that an agent ended a phase: it is none of ours."""


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return Team(tmp_path / "repo")


def options_of(name: str) -> dict[str, click.Option]:
    found = (each for each in LEAVES[name].params if isinstance(each, click.Option))
    return {spelled: each for each in found for spelled in each.opts}


@pytest.mark.parametrize("name", sorted(LEAVES.keys() - {*PASSED_ON}))
def test_every_verb_takes_the_common_options(name: str) -> None:
    command = LEAVES[name]
    helped = command.get_help_option(click.Context(command, **yolo_fs.context_settings))
    assert helped is not None
    assert {*options_of(name), *helped.opts} >= COMMON


@pytest.mark.parametrize("name", LEAVES)
def test_no_verb_asks_for_the_phase_or_for_who_speaks_where_both_can_be_known(
    name: str,
) -> None:
    options = options_of(name)
    if "--phase" in options and name != OF_A_REPLY:
        assert not options["--phase"].required
    if "--as" in options and options["--as"].required and name != OF_A_REPLY:
        assert options["--as"].envvar or {"--from"} & {*options["--as"].opts}
    for older in ("--role", "--by", "--agent"):
        assert older not in options or "--as" in options[older].opts


@pytest.mark.parametrize("name", LEAVES)
def test_an_option_that_no_verb_has_is_a_fault_of_usage(name: str, tmp_path: Path) -> None:
    assert run([*name.split(), "--no-such-option"]) == Exit.USAGE


WITH_PHASE = [
    ("workflow", "next"), ("workflow", "show"), ("workflow", "check", "critique"),
    ("gate", "list"), ("gate", "check", "all-depts"), ("gate", "why", "all-depts"),
    ("gate", "wait", "all-depts", "--timeout", "0"), ("dept", "show"),
    ("dept", "update", "backend", "--status", "running"), ("task", "summary"),
    ("escalate", "list"), ("dept", "cleanup", "--reason", "complete"),
]  # fmt: skip


@pytest.mark.parametrize("words", WITH_PHASE, ids=" ".join)
def test_a_phase_is_a_number_a_slug_a_folder_or_the_one_at_work(
    words: tuple[str, ...], team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.begin()
    answers = []
    for spelled in ((), *(("--phase", each) for each in ("1", "01", "auth", "01-auth"))):
        code = run([*words, *spelled, "-C", str(team.root)])
        out = capsys.readouterr()
        assert code in (Exit.DONE, Exit.FINDINGS), out.err
        answers.append(code)
        assert out.out.strip() or out.err.strip()
    assert len(set(answers)) == 1
    assert run([*words, "--phase", "billing", "-C", str(team.root)]) == Exit.USAGE


EMPTY = [
    ("agent", "list"), ("agent", "answers"), ("task", "claims"),
    ("task", "summary"), ("dept", "show"), ("events", "--type", "none"), ("kept",),
    ("escalate", "list"), ("company", "runs"), ("handoff", "report"),
]  # fmt: skip


@pytest.mark.parametrize("words", EMPTY, ids=" ".join)
def test_an_answer_that_is_empty_says_so(
    words: tuple[str, ...], team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    os.makedirs(team.root / ".yolo-planning/phases/01-auth")
    capsys.readouterr()
    assert run([*words, "-C", str(team.root)]) == Exit.DONE
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize(
    "words",
    [
        ("status", "--at", "nowhere"), ("verify", "nowhere"), ("kept", "show", "77"),
        ("report", "--phase", "77", "--format", "markdown"), ("gate", "why", "nothing"),
        ("workflow", "check", "nothing"), ("explain", "nothing"), ("answer", "ESC-77"),
        ("schema", "show", "nothing"), ("new", "nothing"), ("may", "nobody", "write", "x"),
        ("squash", "77"), ("company", "show", "nobody"), ("context", "compile", "nobody"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_name_that_does_not_exist_is_a_fault_of_usage_in_every_verb(
    words: tuple[str, ...], begun: Team
) -> None:
    assert run([*words, "-C", str(begun.root)]) == Exit.USAGE


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Team:
    made = Team(tmp_path_factory.mktemp("begun") / "repo")
    made.begin()
    return made
