"""What somebody committed is not taken back by a file that merely lacks it: it is held, the records are named, and
brought back or let go by a command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit

PHASE = ".yolo-planning/phases/01-auth"
ONES = {
    "gaps": [{"id": f"GAP-0{n}", "sev": "minor", "desc": "d", "exp": "e", "act": "a", "st": "open"}
             for n in (1, 2, 3)],
    "decisions": [{"ts": f"2026-02-18T09:1{n}:00Z", "agent": agent, "dec": f"d{n}", "reason": "r"}
                  for n, agent in enumerate(("architect", "lead", "dev"))],
    "research": [{"q": f"Question {n}?", "src": "web", "finding": "f", "conf": "high", "dt": "2026-02-18", "rel": "r"}
                 for n in (1, 2, 3)],
}  # fmt: skip


@pytest.fixture
def team(tmp_path: Path) -> Team:
    made = Team(tmp_path / "work")
    made.file(f"{PHASE}/.gitkeep", "")
    made.user_commits("chore(repo): begin", ".")
    return made


def put(team: Team, kind: str, records: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(one) + "\n" for one in records)
    team.file(f"{PHASE}/{kind}.jsonl", text)
    team.once()


def on_branch(team: Team, kind: str) -> list[dict[str, Any]]:
    text = team.git("show", f"HEAD:{PHASE}/{kind}.jsonl")
    return [json.loads(line) for line in text.splitlines()]


def typed(
    team: Team, *words: str, capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = run([*words, "--json", "-C", str(team.root)])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("kind", ONES)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_version_without_a_record_is_held_and_the_record_is_named(
    team: Team, kind: str, at: int, capsys: pytest.CaptureFixture[str]
) -> None:
    ones = ONES[kind]
    put(team, kind, ones)
    put(team, kind, [one for one in ones if one is not ones[at]])
    assert on_branch(team, kind) == ones
    code, told = typed(team, "validate", f"{PHASE}/{kind}.jsonl", capsys=capsys)
    assert code == Exit.FINDINGS
    (finding,) = told["findings"]
    assert finding["reason"] == "records_lost" and finding["line"] == at + 1
    name = ones[at].get("id") or ones[at].get("q") or f"line {at + 1}"
    assert name in finding["message"] and str(ones[at].get("agent", "")) in finding["message"]
    assert team.git("rev-parse", "HEAD").startswith(finding["message"].partition(" in ")[2][:8])


@pytest.mark.parametrize("kind", ONES)
def test_what_is_missing_is_brought_back_beside_what_is_new(
    team: Team, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, third = ONES[kind]
    put(team, kind, [first, second])
    put(team, kind, [first, third])
    assert on_branch(team, kind) == [first, second]
    assert typed(team, "fix", "--write", f"{PHASE}/{kind}.jsonl", capsys=capsys)[0] == Exit.DONE
    team.once()
    assert on_branch(team, kind) == [first, second, third]


@pytest.mark.parametrize("kind", ["gaps", "research"])
def test_a_record_that_says_something_else_by_now_is_no_loss(team: Team, kind: str) -> None:
    changed = [
        {**one, **({"st": "fixed"} if kind == "gaps" else {"finding": "g"})} for one in ONES[kind]
    ]
    put(team, kind, ONES[kind])
    put(team, kind, changed[::-1])
    assert on_branch(team, kind) == changed[::-1]


def test_a_line_of_a_log_that_says_something_else_is_a_loss(team: Team) -> None:
    put(team, "decisions", ONES["decisions"])
    put(team, "decisions", [{**ONES["decisions"][0], "dec": "other"}, *ONES["decisions"][1:]])
    assert on_branch(team, "decisions") == ONES["decisions"]


def test_an_id_is_no_part_of_the_command_that_is_named(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    put(team, "gaps", [{**ONES["gaps"][0], "id": "GAP-01; touch x"}, *ONES["gaps"][1:]])
    put(team, "gaps", ONES["gaps"][1:])
    _, told = typed(team, "validate", f"{PHASE}/gaps.jsonl", capsys=capsys)
    assert "gaps.jsonl 'GAP-01; touch x' --as" in told["findings"][0]["hint"]


def test_who_may_write_a_file_lets_a_record_of_it_go(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    put(team, "gaps", ONES["gaps"])
    put(team, "gaps", ONES["gaps"][1:])
    words = ("decide", "supersede", "gaps.jsonl", "GAP-01", "--reason", "same as GAP-02", "--as")
    assert typed(team, *words, "lead", capsys=capsys)[0] == Exit.FINDINGS
    code, told = typed(team, *words, "dev", capsys=capsys)
    assert code == Exit.DONE, json.dumps(told)
    team.once()
    team.once()
    assert on_branch(team, "gaps") == ONES["gaps"][1:]


def test_no_record_of_a_log_is_let_go(team: Team, capsys: pytest.CaptureFixture[str]) -> None:
    put(team, "decisions", ONES["decisions"])
    words = ("decide", "supersede", "decisions.jsonl", "line 1", "--reason", "r", "--as", "lead")
    code, told = typed(team, *words, capsys=capsys)
    assert code == Exit.USAGE
    assert "only grows" in told["findings"][0]["message"]
    assert "fix --write" in told["findings"][0]["hint"]


def test_what_is_written_as_a_whole_is_written_without_a_record(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("decide", "supersede", "01-01.plan.jsonl", "T2", "--reason", "r", "--as", "lead")
    put(team, "decisions", ONES["decisions"])
    code, told = typed(team, *words, capsys=capsys)
    assert (code, told["findings"][0]["hint"]) == (Exit.USAGE, "Write it without that record.")


def test_a_person_may_commit_what_lacks_a_record(team: Team) -> None:
    put(team, "gaps", ONES["gaps"])
    text = "".join(json.dumps(one) + "\n" for one in ONES["gaps"][1:])
    team.file(f"{PHASE}/gaps.jsonl", text)
    team.git("add", f"{PHASE}/gaps.jsonl")
    assert run(["validate", "--staged", "-C", str(team.root)]) == Exit.DONE
    team.user_commits("docs(01): gaps without the first", f"{PHASE}/gaps.jsonl")
    team.once()
    assert on_branch(team, "gaps") == ONES["gaps"][1:]


@pytest.mark.parametrize("torn", [b"\xff\x00", b'{"id":"GAP-01"}\n\xfe\n', b"\xff\n\xff\n\xff\n"])
def test_what_is_no_text_any_more_is_told_and_breaks_no_verb(
    team: Team, torn: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    put(team, "gaps", ONES["gaps"])
    (team.root / PHASE / "gaps.jsonl").write_bytes(torn)
    for verb in ("validate", "fix"):
        code, told = typed(team, verb, capsys=capsys)
        assert code == Exit.FINDINGS
        assert "not_utf8" in {finding["reason"] for finding in told["findings"]}


def test_a_record_comes_back_beside_one_whose_text_has_other_line_ends(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = ONES["gaps"][0] | {"desc": "one\u2028two"}
    text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in (odd, *ONES["gaps"][1:]))
    team.file(f"{PHASE}/gaps.jsonl", text)
    team.once()
    team.file(f"{PHASE}/gaps.jsonl", text.rsplit("\n", 2)[0] + "\n")
    assert run(["fix", "--write", "-C", str(team.root)]) == Exit.DONE
    assert (team.root / PHASE / "gaps.jsonl").read_text() == text
