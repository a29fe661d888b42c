"""What the board is given is what the commands say, now and at every moment; events are missed by nobody."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from tests.web.served import Client, served
from yolo_fs.cli.main import run
from yolo_fs.company.overview import now_of
from yolo_fs.snapshots.record import LONGEST_LINE, harmless_lines
from yolo_fs.system.journal import Journal

PHASE = ".yolo-planning/phases/01-auth"


def printed(team: Team, *words: str) -> Any:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert run(["status", "--json", *words, "-C", str(team.root)]) == 0
    return json.loads(out.getvalue())


def test_the_board_is_what_status_says(client: Client, team: Team) -> None:
    told = printed(team)
    assert told["data"].pop("company") == now_of(client.api("company").data)
    assert json.loads(client.api("board").body) == told


def test_every_moment_is_what_status_says_of_it(client: Client, team: Team) -> None:
    commits = team.git("rev-list", "HEAD").split()
    assert len(commits) > 5
    for commit in (*commits[::3], commits[1]):
        assert json.loads(client.api("board", at=commit).body) == printed(team, "--at", commit)


@pytest.mark.parametrize("at", ["", "HEAD"])
def test_a_page_is_given_one_phase_whole_and_the_others_by_their_headline(
    tmp_path: Path, at: str
) -> None:
    team = Team(tmp_path / "repo")
    team.begin()
    for phase in ("02-page", "03-mail"):
        path = f".yolo-planning/phases/{phase}/research.jsonl"
        team.file(path, '{"q":"Which?","src":"web","finding":"This one","conf":"high"}\n')
        team.user_commits(f"docs: {phase}", path)
    with served(team.root) as client:
        full = client.api("board", at=at).data
        by_name = {one["phase"]: one for one in full["team"]["phases"]}
        assert list(by_name) == ["01-auth", "02-page", "03-mail"]
        for asked, whole in (("02-page", "02-page"), ("", "01-auth"), ("77-none", "01-auth")):
            told = client.api("board", at=at, phase=asked).data
            brief = {one["phase"]: one for one in told["team"]["phases"]}
            assert brief.pop(whole) == by_name[whole]
            assert all(one.items() <= by_name[name].items() for name, one in brief.items())
            assert all("departments" not in one for one in brief.values())
            listed = [one for one in told.get("candidates", ()) if one["standing"] == "committed"]
            assert {one["path"].split("/")[2] for one in listed if "/phases/" in one["path"]} <= {
                whole
            }
            assert {key: told[key] for key in full if key not in ("team", "candidates")} == {
                key: full[key] for key in full if key not in ("team", "candidates")
            }


def test_an_answer_that_did_not_change_is_not_sent_again(client: Client) -> None:
    first = client.api("board", at="HEAD")
    again = client.ask(
        "/api/board?at=HEAD", cookie=client.cookie, If_None_Match=first.headers["etag"]
    )
    assert (again.status, again.body) == (304, b"")


def test_an_artifact_comes_with_its_findings_and_versions(client: Client, team: Team) -> None:
    refused = client.api("artifact", path=f"{PHASE}/gaps.jsonl").data
    assert refused["lines"] == ['{"id":"G1"}']
    assert {finding["line"] for finding in refused["findings"]} == {1}
    assert all(finding["expected"] or finding["hint"] for finding in refused["findings"])
    listed = client.api("artifacts", at="HEAD").data
    for one in listed:
        shown = client.api("artifact", path=one["path"], at="HEAD").data
        versions = [version["commit"] for version in shown["versions"]]
        assert versions == team.git("log", "--format=%H", "--", one["path"]).split()
        text = team.git("show", f"HEAD:{one['path']}")
        assert "\n".join(shown["lines"]) == text.rstrip("\n")


def test_lines_show_no_control_no_secret_and_no_end_of_memory() -> None:
    token = "ghp_" + "aB3d" * 9
    text = f"<img src=x onerror=alert(1)>\n\x1b[31mred\u202e\n{token}\n" + "x" * 3_000_000
    lines = harmless_lines(text.encode())
    assert lines[0] == "<img src=x onerror=alert(1)>"
    assert lines[1] == r"\x1b[31mred\u202e"
    assert token not in lines[2]
    assert len(lines[3]) == LONGEST_LINE + 1


def test_handoffs_are_those_of_the_moment_that_is_asked_for(client: Client, team: Team) -> None:
    path, seen = f"{PHASE}/design-handoff.jsonl", set()
    for commit in team.git("rev-list", "HEAD").split():
        lives = client.api("handoffs", at=commit).data["lives"]
        is_there = path in team.git("ls-tree", "-r", "--name-only", commit).split()
        assert any(one["place"] == path for one in lives) == is_there
        at_s = int(team.git("show", "-s", "--format=%ct", commit))
        reached = [each["at_s"] for one in lives for each in one["stations"] if each["at_s"]]
        assert max(reached, default=0) <= at_s
        seen.add(is_there)
    assert seen == {True, False}
    assert client.api("handoffs").data == client.api("handoffs", at="HEAD").data
    assert client.api("handoffs", at="nowhere").status == 404


def test_a_line_of_eight_mebibytes_makes_no_long_answer_and_no_long_report(
    tmp_path: Path,
) -> None:
    team = Team(tmp_path / "repo")
    team.begin()
    path, line = f"{PHASE}/gaps.jsonl", "<script>alert(1)</script>" * (1 << 19)
    assert len(line) >= 8 << 20
    team.artifact("gaps.jsonl", f"{line}\n")
    team.user_commits("docs(01): one long line", path)
    team.artifact("gaps.jsonl", f"{line}\n\n")
    team.artifact("decisions.jsonl", f'{{"dec":"{line[:1_000_000]}"}}\n')
    asks: dict[str, dict[str, str]] = {
        "board": {},
        "artifacts": {},
        "artifact": {"path": path},
        "handoffs": {},
    }
    with served(team.root) as client:
        for at in ("", "HEAD"):
            for name, more in asks.items():
                answer = client.api(name, **more, **({"at": at} if at else {}))
                assert answer.status == 200
                assert len(answer.body) < 100_000
        shown = client.api("artifact", path=f"{PHASE}/decisions.jsonl").data
        assert [len(one) for one in shown["lines"]] == [LONGEST_LINE + 1]
    report = tmp_path / "report.html"
    assert run(["report", "-q", "-C", str(team.root), "-o", str(report)]) == 0
    assert report.stat().st_size < 200_000
    assert b"<script" not in report.read_bytes()


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    team = Team(tmp_path / "repo")
    team.config({})
    team.user_commits("chore: begin", ".yolo-planning/config.json")
    return Journal(
        str(team.root / ".git/yolo-fs"), source=str(team.root), now=lambda: datetime.now(UTC)
    )


def told(events: Iterator[tuple[str, str, Any]]) -> Iterator[tuple[str, str, Any]]:
    """Leave out what says only that the work tree looks different; it may come at any moment."""
    return (one for one in events if one[1] != "changed")


def test_a_page_that_comes_back_misses_no_event_and_reads_none_twice(
    journal: Journal, tmp_path: Path
) -> None:
    for number in range(5):
        journal.append("artifact.held", f"path {number}", {"text": "a\nid: 99\n\ndata: forged"})
    with served(tmp_path / "repo") as client:
        with client.events(last=2) as every:
            events = told(every)
            assert next(events)[1] == "hello"
            seen = [next(events) for _ in range(3)]
            journal.append("artifact.held", "path 5")
            seen.append(next(events))
        journal.append("artifact.held", "path 6")
        with client.events(last=int(seen[-1][0])) as every:
            events = told(every)
            assert next(events)[1] == "hello"
            seen.append(next(events))
    assert [int(number) for number, _, _ in seen] == [3, 4, 5, 6, 7]
    assert [data["seq"] for _, _, data in seen] == [3, 4, 5, 6, 7]
    assert seen[0][2]["data"]["text"] == "a\nid: 99\n\ndata: forged"


def test_without_a_number_only_what_comes_is_told(journal: Journal, tmp_path: Path) -> None:
    journal.append("artifact.held", "before")
    with served(tmp_path / "repo") as client, client.events() as every:
        events = told(every)
        assert next(events)[1:] == ("hello", {"seq": 1, "newest": 1})
        journal.append("artifact.held", "after")
        assert next(events)[2]["subject"] == "after"


def test_what_no_daemon_tells_is_seen_all_the_same(tmp_path: Path) -> None:
    team = Team(tmp_path / "repo")
    team.config({})
    team.user_commits("chore: begin", ".yolo-planning/config.json")
    with served(team.root) as client, client.events() as events:
        assert next(events)[1] == "hello"
        assert next(events)[1] == "changed"
        team.artifact("gaps.jsonl", "{}\n")
        assert next(events)[1] == "changed"


def test_a_page_is_told_the_board_whenever_something_has_changed(tmp_path: Path) -> None:
    team = Team(tmp_path / "repo")
    team.begin()
    journal = Journal(str(team.root / ".git/yolo-fs"), source="x", now=lambda: datetime.now(UTC))
    address = "/api/events?phase=01-auth"
    with served(team.root) as client, client.events(target=address) as events:
        boards = (data for _, name, data in events if name == "board")
        team_told = next(boards)["board"]["team"]
        assert team_told == client.api("board", phase="01-auth").data["team"]
        team.example("architecture/ok/backend.toon", "architecture.toon")
        tip = team.user_commits("docs: by hand", f"{PHASE}/architecture.toon")
        assert any(told["board"]["team"]["commit"] == tip for told in boards)
        journal.append("artifact.held", "after")
        number = list(journal.read())[-1]["seq"]
        assert any(told["seq"] == number for told in boards)


def test_who_cannot_be_told_the_board_is_told_to_ask(tmp_path: Path) -> None:
    team = Team(tmp_path / "repo")
    team.begin()
    with served(team.root) as client, client.events(target="/api/events?phase=") as events:
        assert any(name == "board" for _, name, _ in events)
        (team.root / ".yolo-planning/config.json").write_text("{")
        assert any(name == "changed" for _, name, _ in events)
        assert client.api("board").status != 200


def test_several_repositories_share_a_board(team: Team, tmp_path: Path) -> None:
    other = Team(tmp_path / "other")
    other.config({})
    other.user_commits("chore: begin", ".yolo-planning/config.json")
    with served(team.root, other.root) as client:
        assert client.api("repositories").data == ["repo", "other"]
        roots = [client.api("board", repo=number).data["root"] for number in ("0", "1")]
        assert roots == [str(team.root), str(other.root)]
        assert client.api("board", repo="../7").data["root"] == str(team.root)
