"""Below findings stands how many of them 'yolo-fs fix' mends, and that is how many it mends."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.teams import Team
from tests.test_real import FILES
from yolo_fs.cli.board import MANY
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit
from yolo_fs.hooks.run import pre_commit

PHASE = ".yolo-planning/phases/01-auth"
GOOD = {
    "id": "C1", "cat": "gap", "sev": "major", "q": "Why?", "ctx": "Login", "sug": "Ask", "st": "open",
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path)], check=True)
    run(["init", "-q", "--no-hooks", "-C", str(tmp_path)])
    (tmp_path / PHASE).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(root: Path, *lines: str, end: str = "\n") -> Path:
    path = root / PHASE / "critique.jsonl"
    path.write_bytes("".join(line + end for line in lines).encode())
    os.utime(path, (1_000_000_000, 1_000_000_000))
    return path


def test_the_last_line_counts_what_fix_mends_and_its_command_mends_that_many(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, json.dumps(GOOD | {"sev": "high"}), '{"id":"C2"}', end="\r\n")
    run(["validate"])
    last = capsys.readouterr().out.splitlines()[-1]
    said = re.fullmatch(r"(\d+) of (\d+) fixable: yolo-fs (fix .*--write)", last)
    assert said, last
    fixable, found = int(said[1]), int(said[2])
    run(["status"])
    assert f"  {last}" in capsys.readouterr().out.splitlines()
    run(said[3].split())
    capsys.readouterr()
    run(["validate", "--json"])
    assert len(json.loads(capsys.readouterr().out)["findings"]) == found - fixable


def test_a_wrong_line_is_shown_corrected_only_where_nothing_is_left_to_decide(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(root, json.dumps(GOOD | {"sev": "high"}), json.dumps({"id": "C2", "sev": "high"}))
    run(["validate"])
    shown = [
        line.removeprefix("  corrected: ")
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("  corrected: ")
    ]
    assert [json.loads(line)["id"] for line in shown] == ["C1"]
    path.write_text(shown[0] + "\n")
    assert run(["validate"]) == 0


def test_nothing_is_said_where_nothing_can_be_mended(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, '{"id":"C2"}')
    run(["validate"])
    assert "fixable" not in capsys.readouterr().out


def test_the_hook_of_a_commit_says_it_of_what_is_staged(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, json.dumps(GOOD | {"sev": "high"}))
    subprocess.run(["git", "add", "-A"], check=True)
    pre_commit(())
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"1 of 1 fixable: yolo-fs fix {PHASE}/critique.jsonl --write, then 'git add' it"


@pytest.mark.parametrize(
    "source", [one for one in FILES if one.parts[-2] == "repairable"][::7], ids=lambda one: one.name
)
def test_what_fix_repairs_wholly_is_said_to_be_wholly_fixable(
    root: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of files of real agents: where all errors go, the line said so."""
    name = source.name.partition("__")[2]
    path = root / PHASE / (name if "." in name else f"{source.parts[-3]}.jsonl")
    path.write_bytes(source.read_bytes())
    run(["validate", "--json", str(path.relative_to(root))])
    before = json.loads(capsys.readouterr().out)
    run(["fix", "--write", str(path.relative_to(root))])
    capsys.readouterr()
    run(["validate", "--json", str(path.relative_to(root))])
    after = json.loads(capsys.readouterr().out)
    gone = len(before["findings"]) - len(after["findings"])
    assert before["data"]["fixable"] >= gone
    if before["data"]["errors"] and not after["data"]["errors"]:
        assert before["data"]["fixable"] >= before["data"]["errors"]


def test_half_a_line_is_not_called_fixable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    team = Team(tmp_path / "half")
    path = ".yolo-planning/phases/01-auth/critique.jsonl"
    team.file(
        path, '{"id":"C1","cat":"gap","sev":"minor","q":"Q","ctx":"c","sug":"s"}\n{"id":"C2","ca'
    )
    before = (team.root / path).read_bytes()
    assert run(["validate", path, "-C", str(team.root)]) == Exit.FINDINGS
    assert "fixable" not in "".join(capsys.readouterr())
    run(["fix", "--write", path, "-C", str(team.root)])
    assert (team.root / path).read_bytes() == before


def test_half_of_an_escape_pair_is_left_to_its_writer_by_every_verb(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(root, json.dumps(GOOD | {"sev": "high", "q": "\ud800"}), end="\r\n")
    before = path.read_bytes()
    codes = [
        run([*words.split(), "-C", str(root)]) for words in ("status", "validate", "fix --write")
    ]
    assert codes == [0, Exit.FINDINGS, Exit.FINDINGS] and path.read_bytes() == before
    assert "lone_surrogate" in capsys.readouterr().out


def test_fix_says_so_where_there_is_nothing_to_repair(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, json.dumps(GOOD))
    assert run(["fix"]) == 0
    assert capsys.readouterr().out == "nothing to repair\n"


def test_what_only_shows_once_a_file_is_repaired_is_told_with_the_repair(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(root, *json.dumps({"id": "C1", "cat": "gap"}, indent=2).splitlines())
    for words in (["validate"], ["status"]):
        run(words)
        told = capsys.readouterr().out
        assert "1 of 1 fixable" in told
        _, found, then = told.partition("Then fix by hand:")
        assert found and "/sug: missing_key" in then, words
    run(["validate", "--json"])
    told = json.loads(capsys.readouterr().out)["data"]["revealed"]
    run(["fix", f"{PHASE}/critique.jsonl", "--write"])
    capsys.readouterr()
    run(["validate", "--json"])
    left = json.loads(capsys.readouterr().out)["findings"]
    assert len(told) == len([each for each in left if each["level"] == "error"]) > 0


def write_many(root: Path, count: int, name: str) -> None:
    """Write one file that `fix` mends into each of so many phases."""
    for number in range(1, count + 1):
        path = root / f".yolo-planning/phases/{number:02}-part" / name
        path.parent.mkdir()
        path.write_text(json.dumps(GOOD | {"sev": "high"}) + "\n")
        os.utime(path, (1_000_000_000, 1_000_000_000))


def test_status_asks_the_repair_about_those_files_alone_that_it_shows(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_many(root, MANY + 5, "critique.jsonl")
    for words, told in (
        (["status"], f"  of the first {MANY} files, {MANY} of {MANY} fixable: yolo-fs fix --write"),
        (["status", "-v"], f"  {MANY + 5} of {MANY + 5} fixable: yolo-fs fix --write"),
    ):
        run(words)
        assert told in capsys.readouterr().out.splitlines(), words


def test_the_names_of_many_misnamed_files_have_an_end(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_many(root, 25, "critiques.jsonl")
    run(["validate"])
    told = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("Then rename ") for line in told) == 20
    assert told[-1] == "and rename 5 more: 'yolo-fs validate' names each"
