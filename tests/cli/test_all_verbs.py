"""What holds for every verb, without an exception: options, phases, who speaks, exit codes."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import click
import pytest

import yolo_fs as yolo_fs_package
from tests.cli.test_own_verbs import all_verbs
from tests.support.teams import Team
from yolo_fs.cli.main import run, yolo_fs
from yolo_fs.core.reasons import Exit
from yolo_fs.system.journal import EVENT_TYPES, Journal

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
def test_an_option_that_no_verb_has_is_a_fault_of_usage(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*name.split(), "--no-such-option"]) == Exit.USAGE
    assert capsys.readouterr().out == ""
    assert run(["--json", *name.split(), "--no-such-option"]) == Exit.USAGE
    told = capsys.readouterr()
    answer = json.loads(told.out)
    (finding,) = answer["findings"]
    assert (answer["ok"], finding["reason"], told.err) == (False, "bad_usage", "")
    assert "--no-such-option" in finding["message"]


def test_a_new_artifact_may_be_named_by_its_file(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.begin()
    for name in ("01-07.plan.jsonl", "fe-01-08.summary.jsonl"):
        assert run(["new", name, "--phase", "1", "-C", str(team.root)]) == Exit.DONE
        assert capsys.readouterr().out.endswith(f"/{name}\n")
        assert (team.root / f".yolo-planning/phases/01-auth/{name}").is_file()


WITH_PHASE = [
    ("workflow", "next"), ("workflow", "show"), ("workflow", "check", "critique"),
    ("gate", "list"), ("gate", "check", "all-depts"), ("gate", "why", "all-depts"),
    ("gate", "wait", "all-depts", "--timeout", "0"), ("dept", "show"),
    ("dept", "update", "backend", "--status", "running"), ("task", "summary"),
    ("escalate", "list"), ("dept", "cleanup", "--reason", "complete"),
    ("report", "--format", "markdown"), ("status",), ("context", "compile", "dev"),
    ("go", "a login", "--dry-run"),
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


@pytest.mark.parametrize("name", [each for each in LEAVES if "--phase" in options_of(each)])
def test_help_says_the_same_of_the_phase_everywhere(name: str) -> None:
    option = options_of(name)["--phase"]
    is_same = option.metavar == "PHASE" and "umber, slug or directory name" in (option.help or "")
    assert is_same or name == OF_A_REPLY


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("events", "--type", "artifact.comitted"), "artifact.committed"),
        (("events", "--follow", "--type", "artifact.comitted"), "artifact.committed"),
        (("message", "route", "--as", "dev", "--to", "lead", "--type", "dev_progres"), "dev_progress"),
    ],
    ids=lambda words: "-".join(words) if isinstance(words, tuple) else words,
)  # fmt: skip
def test_a_type_that_nobody_knows_is_refused_with_the_one_that_was_meant(
    words: tuple[str, ...], meant: str, team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, "-C", str(team.root)]) != Exit.DONE
    assert f"Did you mean {meant}?" in capsys.readouterr().err


def test_every_event_that_the_code_names_has_a_known_type() -> None:
    sources = (Path(yolo_fs_package.__file__).parent).rglob("*.py")
    called = r"(?:emit|_emit|tell|_tell|Emit)\(\s*\"([a-z_]+(?:\.[a-z_]+)?)\""
    named = {name for path in sources for name in re.findall(called, path.read_text())}
    assert named <= {*EVENT_TYPES} and "artifact.committed" in named


def test_the_type_of_an_event_of_an_older_version_is_known_where_the_journal_has_it(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    own = team.root / ".git/yolo-fs"
    Journal(str(own), source=str(team.root)).append("claim.made", "01-01/T1", {})
    assert run(["events", "--type", "claim.made", "-C", str(team.root)]) == Exit.DONE
    assert "claim.made" in capsys.readouterr().out


EMPTY = [
    ("agent", "list"), ("agent", "answers"), ("task", "claims"),
    ("task", "summary"), ("dept", "show"), ("events", "--type", "artifact.held"), ("kept",),
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
