"""`inbox` lists what waits for a person, each with what settles it; `answer` settles an escalation in one command."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team, planned_team
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit

NAME = "ESC-01-01-T1"
WORDS = ("--evidence", "seen", "--recommendation", "decide")
LOG = ".yolo-planning/phases/01-auth/escalation.jsonl"
KEYS = {"id", "kind", "since", "question", "options", "command", "recommendation"}


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    return planned_team(tmp_path, monkeypatch)


def said(team: Team, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    capsys.readouterr()
    code = run([words[0], "-C", str(team.root), "--json", *words[1:]])
    return code, json.loads(capsys.readouterr().out)


def asks_the_user(team: Team, *options: str) -> None:
    """Dev asks, and each level hands it up with a reason of its own."""
    at = ("-C", str(team.root), "-q")
    opened = ("escalate", "open", *at, "--task", "01-01/T1", "--reason", "Which colour?", *WORDS)
    assert run([*opened]) == Exit.DONE
    named = [word for option in options for word in ("--option", option)]
    for _ in range(3):
        raised = ("escalate", "raise", *at, NAME, "--reason", "the user decides", *WORDS)
        assert run([*raised, *named]) == Exit.DONE


def items(team: Team, capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    code, reply = said(team, capsys, "inbox")
    assert code == (Exit.FINDINGS if reply["data"] else Exit.DONE)
    assert all(item.keys() == KEYS for item in reply["data"])
    return {item["kind"]: item for item in reply["data"]}


def test_a_question_that_agents_still_hold_does_not_wait_for_a_person(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ("-C", str(team.root), "-q")
    run(["escalate", "open", *at, "--task", "01-01/T1", "--reason", "Which colour?", *WORDS])
    assert items(team, capsys).keys() == {"daemon"}


def test_the_question_comes_with_its_options_and_the_answer_goes_down_the_whole_chain(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    asks_the_user(team, "blue", "red")
    item = items(team, capsys)["escalation"]
    assert item["id"] == NAME and item["options"] == ["blue", "red"] and item["since"]
    assert "Which colour?" in item["question"] and "01-01/T1" in item["question"]
    assert item["command"].startswith(f"yolo-fs answer {NAME}")

    code, reply = said(team, capsys, "answer", NAME, "2", "--text", "as the logo")
    assert code == Exit.DONE
    hops = [(line["agent"], line["tgt"], line["dec"]) for line in reply["data"]["lines"]]
    assert hops == [
        ("user", "architect", "red"), ("architect", "lead", "red"), ("lead", "senior", "red"),
        ("senior", "dev", "red"),
    ]  # fmt: skip
    assert reply["data"]["lines"][0]["reason"] == "as the logo"
    assert "escalation" not in items(team, capsys), "before anything was committed"
    team.once()
    assert team.git("status", "--porcelain", "--", LOG) == ""
    team.file("src/auth/tokens.ts", "export {}\n")
    team.user_commits("feat(01-01): T1 load the keys", "src/auth/tokens.ts")
    team.once()
    assert run(["escalate", "tick", "-C", str(team.root), "-q"]) == Exit.DONE
    capsys.readouterr()
    assert run(["escalate", "list", "-C", str(team.root), "--json"]) == Exit.DONE
    ((one,),) = json.loads(capsys.readouterr().out)["data"].values()
    assert one["standing"] == "resolved" and one["decision"] == "red"


def test_an_answer_to_nothing_is_told_which_questions_wait(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    asks_the_user(team, "blue", "red")
    capsys.readouterr()
    assert run(["answer", "-C", str(team.root)]) == Exit.USAGE
    shown = capsys.readouterr().err
    assert "[1 blue] [2 red]\n  yolo-fs answer " + NAME in shown
    run(["answer", NAME, "2", "-C", str(team.root)])
    team.once()
    capsys.readouterr()
    assert run(["answer", "-C", str(team.root)]) == Exit.USAGE
    assert "no question waits" in capsys.readouterr().err


def test_the_same_answer_twice_is_one_answer_and_another_one_is_refused(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    asks_the_user(team, "blue", "red")
    said(team, capsys, "answer", NAME, "blue")
    before = (team.root / LOG).read_text()
    code, reply = said(team, capsys, "answer", NAME, "blue")
    assert (
        code == Exit.DONE and reply["data"]["already"] and (team.root / LOG).read_text() == before
    )
    code, reply = said(team, capsys, "answer", NAME, "red")
    assert code == Exit.FINDINGS and "blue" in reply["findings"][0]["message"]


def test_an_answer_that_stopped_half_way_goes_on(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    asks_the_user(team, "blue", "red")
    at = ("-C", str(team.root), "-q")
    run(["escalate", "resolve", *at, NAME, "--by", "user", "--decision", "blue"])
    code, reply = said(team, capsys, "answer", NAME, "blue")
    assert code == Exit.DONE and reply["data"]["lines"][-1]["tgt"] == "dev"
    assert reply["data"]["lines"][0]["agent"] == "architect"


def test_a_choice_that_nobody_offered_is_refused_and_words_decide_all_the_same(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    asks_the_user(team, "blue", "red")
    before = (team.root / LOG).read_text()
    for words in (("green",), ("3",), ()):
        code, reply = said(team, capsys, "answer", NAME, *words)
        assert code == Exit.USAGE and "blue" in json.dumps(reply["findings"])
    assert (team.root / LOG).read_text() == before
    code, reply = said(team, capsys, "answer", NAME, "--text", "green")
    assert code == Exit.DONE and reply["data"]["escalation"]["decision"] == "green"


def test_an_option_in_other_letters_is_that_option(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    asks_the_user(team, "blue", "red")
    code, reply = said(team, capsys, "answer", NAME, "RED")
    assert code == Exit.DONE and reply["data"]["escalation"]["decision"] == "red"


def test_whoever_holds_a_question_is_told_before_its_options(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else a person chooses one of them, only to be told then that it is not theirs to decide."""
    at = ("-C", str(team.root), "-q")
    run(["escalate", "open", *at, "--task", "01-01/T1", "--reason", "Which colour?", *WORDS])
    run(["escalate", "raise", *at, NAME, "--reason", "not mine", *WORDS])
    options = ("--option", "blue", "--option", "red")
    run(["escalate", "raise", *at, NAME, "--reason", "not mine", *WORDS, *options])
    before = (team.root / LOG).read_text()
    for words in (("green",), ("red",), ("--text", "green")):
        code, reply = said(team, capsys, "answer", NAME, *words)
        [finding] = reply["findings"]
        assert code == Exit.FINDINGS and "architect holds it" in finding["message"]
        assert finding["command"].startswith(f"yolo-fs escalate resolve {NAME} --by architect")
    assert (team.root / LOG).read_text() == before


def test_a_credential_stands_above_everything_else(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    asks_the_user(team, "blue", "red")
    key = "AKIA" + "Q4WZ7T2NRB6XKVEH"
    line = {
        "q": "which key?",
        "src": "codebase",
        "finding": key,
        "conf": "high",
        "dt": "2026-02-19",
        "rel": "T1",
    }
    text = (Team.examples / "research/ok/findings.jsonl").read_text()
    team.artifact("research.jsonl", text + json.dumps(line) + "\n")
    code, reply = said(team, capsys, "inbox")
    first = reply["data"][0]
    assert code == Exit.FINDINGS and first["kind"] == "credential"
    assert first["id"].endswith("research.jsonl") and key not in json.dumps(reply)


def test_a_daemon_is_a_persons_task_where_something_waits_for_it_or_it_was_killed(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    health = team.root / ".git/yolo-fs/health.json"
    ended = json.loads(health.read_text())
    assert not ended["running"] and not items(team, capsys), "the run has ended its daemon"
    health.write_text(json.dumps(ended | {"running": True}))
    assert items(team, capsys).keys() == {"daemon"}
    health.write_text(json.dumps(ended))
    team.artifact("research.jsonl", "")
    assert items(team, capsys).keys() == {"daemon"}, "it is looked at in a moment"


def test_what_an_answer_cannot_settle_names_the_command_that_does(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    asks_the_user(team, "blue", "red")
    code, reply = said(team, capsys, "answer", "daemon")
    assert code == Exit.FINDINGS and "yolo-fs start" in reply["findings"][0]["hint"]
    assert said(team, capsys, "answer", "nothing")[0] == Exit.USAGE
    assert said(team, capsys, "answer", NAME, "x")[0] == Exit.USAGE


def test_the_data_of_status_has_the_same_list(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    asks_the_user(team, "blue", "red")
    _, reply = said(team, capsys, "status")
    assert [item["kind"] for item in reply["data"]["inbox"]] == ["daemon", "escalation"]


def test_whoever_reads_a_pipe_reads_the_question_and_its_command_first(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    asks_the_user(team, "blue", "red")
    capsys.readouterr()
    assert run(["status", "-C", str(team.root)]) == Exit.DONE
    head = capsys.readouterr().out.split("phase 01-auth")[0]
    assert head.startswith("Needs a person\n") and "Which colour?" in head
    assert "[1 blue] [2 red]" in head and f"yolo-fs answer {NAME} CHOICE" in head


def test_status_shows_every_finding_of_a_refused_file(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.artifact("01-02.summary.jsonl", "{}\n")
    os.utime(team.root / ".yolo-planning/phases/01-auth/01-02.summary.jsonl", (1e9, 1e9))
    _, reply = said(team, capsys, "status")
    (refused,) = (one for one in reply["data"]["candidates"] if one["standing"] == "rejected")
    assert len(refused["findings"]) > 10
    assert run(["status", "-C", str(team.root)]) == Exit.DONE
    text = capsys.readouterr().out
    assert all(finding["message"] in text for finding in refused["findings"])


def test_a_detached_head_comes_with_the_way_back_to_a_branch(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.git("checkout", "-q", "--detach")
    assert items(team, capsys)["held"]["command"] == "git switch BRANCH"


def test_a_branch_without_a_commit_waits_for_the_first_one(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.git("checkout", "-q", "--orphan", "fresh")
    item = items(team, capsys)["held"]
    assert "the branch has no commit yet" in item["question"]
    team.git("commit", "-q", "-m", "chore: fresh")
    assert "held" not in items(team, capsys)


def test_what_stands_in_the_way_says_what_was_expected(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    planning = team.root / ".yolo-planning"
    planning.rename(team.root / "aside")
    planning.symlink_to("aside")
    assert "expected a real folder" in items(team, capsys)["health"]["question"]
