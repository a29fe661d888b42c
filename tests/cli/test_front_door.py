"""What a stranger types first: help, a slip of the pen, an option in git's place, an example."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from tests.cli.test_own_verbs import all_verbs
from tests.support.teams import Team
from yolo_fs import __version__
from yolo_fs.artifacts.meanings import meanings_of
from yolo_fs.artifacts.table import ARTIFACTS, Home
from yolo_fs.checking.examples import example_of, skeleton_of
from yolo_fs.checking.remedies import remedy_of
from yolo_fs.cli.main import VERBS, run
from yolo_fs.cli.reply import AS_ENV
from yolo_fs.core.reasons import Exit, Reason
from yolo_fs.protocol.departments import DEPARTMENTS
from yolo_fs.protocol.gates import GATES
from yolo_fs.protocol.roster import ROSTER
from yolo_fs.protocol.workflow import STEPS
from yolo_fs.schemas.messages.catalogue import MESSAGES

KINDS = [row.kind for row in ARTIFACTS]
PHASE = ".yolo-planning/phases/01-auth"


@pytest.fixture
def team(tmp_path: Path) -> Team:
    made = Team(tmp_path / "work")
    made.file(f"{PHASE}/.gitkeep", "")
    return made


def typed(*words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    code = run(words)
    return code, "".join(capsys.readouterr())


def test_the_first_screen_of_help_has_twenty_verbs_or_fewer_and_the_second_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, first = typed("--help", capsys=capsys)
    _, second = typed("help", "--all", capsys=capsys)
    lines = [
        line.split()[0] for line in first.partition("Start:\n")[2].splitlines() if line.strip()
    ]
    shown = {row.name for row in VERBS} & set(lines)
    assert {"init", "go", "status", "inbox"} <= shown and len(shown) <= 20, shown
    assert all(f"  {row.name} " in second for row in VERBS)


def test_a_shell_that_completes_a_verb_says_of_it_what_the_help_says() -> None:
    for row in VERBS:
        assert row.load().get_short_help_str(limit=200) == row.summary


@pytest.mark.parametrize("words", [("help",), ("-h",), ("--help",), ()])
def test_help_is_a_verb_and_an_option(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert "help --all" in typed(*words, capsys=capsys)[1]


def test_help_of_a_verb_is_that_verb_s(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = typed("help", "gate", "why", capsys=capsys)
    assert (code, "yolo-fs gate why" in text) == (Exit.DONE, True)


@pytest.mark.parametrize("word", ["version", "-V", "--version"])
def test_the_version_is_told_however_it_is_asked(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "version" in typed(word, capsys=capsys)[1]
    code, told = typed(word, "--json", capsys=capsys)
    assert (code, json.loads(told)["data"]) == (Exit.DONE, {"version": __version__})


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        (["statsu"], "status"),
        (["vaildate"], "validate"),
        (["gate", "wy"], "why"),
        (["next"], "workflow next"),
        (["sign-off", "1"], "phase sign-off"),
    ],
)
def test_a_slip_of_the_pen_is_answered_by_what_was_meant(
    slip: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = typed(*slip, capsys=capsys)
    assert (code, f"Did you mean '{meant}'?" in text) == (Exit.USAGE, True)


@pytest.mark.parametrize("words", [("critique",), ("help", "critique"), ("help", "fe-dev")])
def test_a_name_that_is_no_command_is_led_to_its_explanation(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = typed(*words, capsys=capsys)
    assert (code, f"'yolo-fs explain {words[-1]}'" in text) == (Exit.USAGE, True)
    assert "explain" not in typed("help", "nothing-of-ours", capsys=capsys)[1]


@pytest.mark.parametrize("words", [("may",), ("phase", "new"), ("gate", "why"), ("explain",)])
def test_a_verb_that_is_typed_wrongly_ends_with_its_example(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    example = next(
        line for line in typed(*words, "-h", capsys=capsys)[1].split("\n") if "Example:" in line
    )
    code, text = typed(*words, capsys=capsys)
    assert (code, text.rstrip().split("\n")[-1]) == (Exit.USAGE, example.strip())


def test_what_one_starts_with_is_on_the_first_screen(capsys: pytest.CaptureFixture[str]) -> None:
    """A first screen that says 'run' and lists 'start' alone sends its reader to look for both."""
    _, text = typed("help", capsys=capsys)
    start, _, groups = text.partition("Start here:\n")[2].partition("Options:")
    for line in start.strip().splitlines():
        assert f"\n  {line.split()[1]} " in groups, line


def test_options_of_every_verb_may_stand_before_it(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    behind = typed("phase", "list", "--json", "-C", str(team.root), capsys=capsys)
    before = typed("-C", str(team.root), "--json", "phase", "list", capsys=capsys)
    assert before == behind and json.loads(before[1])["ok"]


# --- examples, skeletons, explanations ---


@pytest.mark.parametrize("kind", KINDS)
def test_every_example_is_valid(team: Team, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = typed("schema", "example", kind, capsys=capsys)
    assert code == Exit.DONE
    path = team.file("example", text)
    code, told = typed(
        "validate", "--type", f"artifact/{kind}", str(path), "-C", str(team.root), capsys=capsys
    )
    assert code == Exit.DONE, told


@pytest.mark.parametrize("kind", [row.kind for row in ARTIFACTS if row.home is Home.PHASE])
def test_a_skeleton_stands_where_it_is_read_and_is_refused_until_it_is_filled_in(
    team: Team, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, path = typed(
        "new", kind, "--plan", "01-01", "-C", str(team.root), "--json", capsys=capsys
    )
    assert code == Exit.DONE, path
    path = json.loads(path)["data"]["path"]
    code, told = typed("validate", path, "-C", str(team.root), capsys=capsys)
    assert code == Exit.FINDINGS and "a skeleton that is not filled in yet" in told
    assert "nearly the name" not in told and "no artifact" not in told
    skeleton = (team.root / path).read_text()
    code, told = typed("fix", path, "--write", "-C", str(team.root), capsys=capsys)
    assert code == Exit.FINDINGS and (team.root / path).read_text() == skeleton
    again = typed("new", kind, "--plan", "01-01", "-C", str(team.root), capsys=capsys)
    assert again[0] == Exit.FINDINGS and "exists already" in again[1]


@pytest.mark.parametrize("kind", [row.kind for row in ARTIFACTS if row.home is Home.PHASE])
def test_nothing_in_a_skeleton_is_a_value_but_what_it_was_told(kind: str) -> None:
    for line in skeleton_of(kind, None, "01-01").splitlines()[:-1]:
        values = json.loads(line) if line.startswith("{") else {}
        told = {values.pop(key, "") for key in ("p", "n", "plan")}
        assert told <= {"", "01", "01-01"}, line
        assert not any(scalars(values)), line


def scalars(value: Any) -> list[Any]:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return [each for one in inner for each in scalars(one)]
    return [value]


@pytest.mark.parametrize("name", [f"{PHASE}/critique.jsonl", f"../{PHASE}/critique.jsonl"])
def test_a_path_is_found_from_a_folder_below_as_it_is_spelled_there_or_at_the_root(
    team: Team, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    team.file(f"{PHASE}/critique.jsonl", "\ufeff" + example_of("critique"))
    team.file("src/a.py", "")
    below = ("-C", str(team.root / "src"))
    assert typed("validate", name, *below, capsys=capsys)[0] == Exit.FINDINGS
    told = typed("explain", name, *below, capsys=capsys)[1]
    assert told.startswith(f"{PHASE}/critique.jsonl: "), told
    assert typed("fix", name, "--write", *below, capsys=capsys)[0] == Exit.DONE
    assert typed("validate", name, *below, capsys=capsys) == (
        Exit.DONE, "1 file checked, 0 errors, 0 warnings\n",
    )  # fmt: skip


@pytest.mark.parametrize("plan", ["", "x", "../../../out", "01-01/../../../out"])
def test_a_skeleton_of_a_plan_that_is_none_is_written_nowhere(
    team: Team, plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(team.root.parent.rglob("*"))
    code, told = typed("new", "summary", "--plan", plan, "-C", str(team.root), capsys=capsys)
    assert code == Exit.USAGE and "yolo-fs new summary --plan 01-01" in told
    assert sorted(team.root.parent.rglob("*")) == before


@pytest.mark.parametrize("kind", [row.kind for row in ARTIFACTS])
def test_the_daemon_commits_no_skeleton(
    team: Team, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    typed("new", kind, "--plan", "01-01", "-C", str(team.root), capsys=capsys)
    team.once()
    assert "Yolo-Artifact" not in team.git("log", "--format=%B", "--branches")


def test_a_skeleton_that_an_older_version_committed_is_verified_as_it_was(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    text = skeleton_of("context", None, "")
    team.file(f"{PHASE}/01-CONTEXT-backend.md", text.removesuffix("\n").rpartition("\n")[0] + "\n")
    team.once()
    path = team.file(f"{PHASE}/01-CONTEXT-backend.md", text)
    team.git("add", str(path))
    team.git("commit", "-q", "--amend", "--no-edit", "--no-verify")
    assert typed("verify", "-C", str(team.root), capsys=capsys)[0] == Exit.DONE


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("developer", "dev"), ("backend-dev", "dev"), ("front-end-dev", "fe-dev"),
        ("frontend_developer", "fe-dev"), ("UI/UX Lead", "ux-lead"), ("tech-lead", "lead"),
        ("Junior Developer", "dev"), ("yolo-be-tester", "tester"), ("product-owner", "po"),
        ("archtect", "architect"),
    ],
)  # fmt: skip
def test_a_name_that_no_agent_has_is_answered_with_the_one_that_was_meant(
    name: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = typed("may", name, "write", "src/a.py", capsys=capsys)
    assert code == Exit.USAGE and f"Did you mean {meant}? Known names: " in told


WHO_ACTS = {
    name: command
    for name, command in all_verbs().items()
    if any(isinstance(each, click.Option) and each.envvar == AS_ENV for each in command.params)
}


@pytest.mark.parametrize("name", WHO_ACTS)
def test_every_verb_refuses_a_role_that_is_not_there_and_names_the_one_that_was_meant(
    team: Team, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = name.split()
    for each in WHO_ACTS[name].params:
        if isinstance(each, click.Argument):
            words += ["01-01/T1"]
        elif each.required and isinstance(each, click.Option) and each.envvar is None:
            values = each.type.choices if isinstance(each.type, click.Choice) else ["x"]
            words += [each.opts[0], values[0]]
    if name == "phase sign-off":
        words[-1] = "01"
    if name == "may":
        words[-1:] = ["write", "src/a.ts"]
    monkeypatch.setenv("YOLO_FS_ROLE", "developer")
    code, told = typed(*words, "-C", str(team.root), capsys=capsys)
    assert code == Exit.USAGE and "Did you mean dev? Known names: " in told, told


def test_a_session_of_a_role_that_is_not_there_begins_and_is_warned(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told = typed("resume", "--as", "developer", "-C", str(team.root), capsys=capsys)
    assert code == Exit.DONE and "Did you mean dev? Known names: " in told


def test_every_name_of_the_protocol_is_explained_even_without_a_repository(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sorts: dict[str, list[str]] = {
        "reason": [reason.value for reason in Reason],
        "file": [*KINDS, "critique.jsonl", "fe-critique.jsonl", "01-02.plan.jsonl"],
        "step": [name for step in STEPS for name in (step.key, step.number)],
        "agent": [name for row in ROSTER for name in (row.name, row.full_name)],
        "department": [row.name for row in DEPARTMENTS],
        "message": list(MESSAGES),
        "gate": [gate.name for gate in GATES],
        "state": ["committed", "pending", "held", "rejected"],
    }
    for sort, names in sorts.items():
        for name in names:
            assert sort in [meaning.what for meaning in meanings_of(name)], (sort, name)
    assert {meaning.what for meaning in meanings_of("critique")} == {"file", "step"}
    for name in ("critique.jsonl", "detached-head", "8.5", "yolo-fe-dev", "all-depts"):
        code, text = typed("explain", name, "-C", str(tmp_path), capsys=capsys)
        assert code == Exit.DONE and "yolo-fs " in text, (name, text)
    text = typed("explain", "detached_head", capsys=capsys)[1]
    assert Reason.DETACHED_HEAD.sentence in text and "What to do: Switch to a branch." in text
    assert [reason for reason in Reason if not remedy_of(reason)] == []


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("explain detachd_head", "detached_head"), ("explain critc", "critic"),
        ("explain all-dept", "all-depts"), ("may critc write x", "critic"),
        ("gate why al-depts", "all-depts"), ("workflow check critiqe", "critique"),
        ("new critiqe", "critique"), ("company show yolo-critc", "critic"),
        ("gate list --phase 01-uth", "01-auth"),
    ],
)  # fmt: skip
def test_a_misspelled_name_is_answered_by_the_nearest(
    words: str, meant: str, team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = typed(*words.split(), "-C", str(team.root), capsys=capsys)
    assert code == Exit.USAGE and f"Did you mean {meant}" in text, text


def test_choices_are_listed_without_an_escaped_character(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, text = typed("setup", capsys=capsys)
    assert code == Exit.USAGE and "\n  claude,\n  codex,\n  cursor" in text


def test_a_gate_and_a_file_are_explained(
    team: Team, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = typed("explain", "all-depts", "-C", str(team.root), capsys=capsys)
    assert code in (Exit.DONE, Exit.FINDINGS) and "all-depts" in text, text
    team.file(f"{PHASE}/critique.jsonl", "no JSON\n")
    code, text = typed("explain", f"{PHASE}/critique.jsonl", "-C", str(team.root), capsys=capsys)
    assert code == Exit.FINDINGS and "critique.jsonl: " in text and "json_parse_error" in text
    monkeypatch.chdir(team.root / PHASE)
    assert "json_parse_error" in typed("explain", "critique.jsonl", capsys=capsys)[1]
    assert typed("explain", "nothing", "-C", str(team.root), capsys=capsys)[0] == Exit.USAGE
