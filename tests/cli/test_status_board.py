"""`status` draws the team; `--at` draws it as it was, byte for byte; `--watch` draws it again when it changes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.support.objects import unpack
from tests.support.phases import CONFIG, complete, facts
from tests.support.teams import THREE, Team
from yolo_fs.cli.board import SIGNS, draw_board
from yolo_fs.cli.main import run
from yolo_fs.cli.reply import console_for
from yolo_fs.cli.screen import draw_screen, draw_wanted
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Exit
from yolo_fs.evidence.facts import PhaseFacts
from yolo_fs.git.repository import Repository
from yolo_fs.phase.gates import DueDecision
from yolo_fs.phase.progress import StepStanding
from yolo_fs.phase.waits import Deadlock, Orphan, Wait
from yolo_fs.progress.board import Board, PhaseBoard
from yolo_fs.progress.drift import WorkTreeNotes
from yolo_fs.protocol.gates import Decision
from yolo_fs.snapshots.snapshot import PresentSnapshot, StatusObserver
from yolo_fs.states.project import Drift

PATIENCE_S = 30.0


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    return Team(tmp_path / "work")


def said(team: Team, *words: str, code: int = Exit.DONE) -> str:
    """Return what `status` prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert run(["status", *words, "-C", str(team.root)]) == code
    return out.getvalue()


def data(team: Team, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said(team, "--json", *words))["data"]
    return found


def team_part(text: str) -> str:
    return text.split("\n\n")[0]


def last_part(text: str) -> str:
    return text[text.index("Last commits") :]


# --- at any moment of the past ---


@pytest.mark.parametrize("words", [[], ["-v"]])
def test_status_at_five_old_commits_is_what_status_printed_then(
    team: Team, words: list[str]
) -> None:
    then = [(commit, said(team, *words)) for commit in team.moments()]
    assert len({team_part(text) for _, text in then}) == len(then) == 5
    for commit, text in then:
        now = said(team, *words, "--at", commit)
        assert (team_part(now), last_part(now)) == (team_part(text), last_part(text))


def test_json_at_five_old_commits_is_what_json_said_then(team: Team) -> None:
    then = [(commit, data(team)) for commit in team.moments()]
    for commit, shown in then:
        now = data(team, "--at", commit)
        assert now == {key: shown[key] for key in ("team", "last_commits")}
        assert now["team"]["commit"] == commit


def test_a_committed_file_that_a_person_deleted_is_told_and_is_no_error(team: Team) -> None:
    team.begin()
    path = ".yolo-planning/phases/01-auth/critique.jsonl"
    (team.root / path).unlink()
    text = said(team, "-v")
    assert f"\nDeleted from the work tree; the branch has them still\n  {path}\n" in text
    assert "\nRejected" not in text and "Needs a person" not in text
    [one] = [each for each in data(team)["candidates"] if each["path"] == path]
    assert (one["standing"], one["reason"]) == ("committed", "deleted")
    with (
        Repository(str(team.root)) as repository,
        contextlib.closing(StatusObserver(repository)) as observer,
    ):
        screen = Console(file=io.StringIO(), width=200, force_terminal=True, highlight=False)
        draw_screen(screen, observer.look(), 40)
    assert isinstance(screen.file, io.StringIO)
    assert ", 1 deleted from the work tree" in screen.file.getvalue()


def test_a_pipe_gets_the_first_of_many_refused_files_twice_and_the_others_counted(
    team: Team,
) -> None:
    team.begin()
    for number in range(1, 99):
        team.artifact(f"01-{number:02}.plan.jsonl", "{}\n")
        os.utime(team.root / f".yolo-planning/phases/01-auth/01-{number:02}.plan.jsonl", (1e9, 1e9))
    text = said(team)
    head, _, below = text.partition("\nphase 01-auth")
    assert len(re.findall(r"(?m)^  x 01-", head)) == 20
    assert "  … 78 more, which are counted below\n" in head
    listed = r"(?m)^  \S+/01-\d\d\.plan\.jsonl: "
    assert len(re.findall(listed, below)) == 20
    assert "\n  … 78 more (-v shows each): 78 wrong_line_count\n" in below
    whole = said(team, "-v")
    assert len(re.findall(r"(?m)^  x 01-", whole)) == len(re.findall(listed, whole)) == 98
    assert "more (-v" not in whole


def test_a_phase_that_is_made_and_has_no_file_yet_is_told_beside_the_others(team: Team) -> None:
    team.begin()
    assert "waits for its first file" not in said(team)
    assert run(["phase", "new", "next", "-q", "-C", str(team.root)]) == Exit.DONE
    waits = (
        "02-next waits for its first file: 'yolo-fs workflow next --phase 02-next' shows whose turn"
    )
    assert waits in said(team)
    with (
        Repository(str(team.root)) as repository,
        contextlib.closing(StatusObserver(repository)) as observer,
    ):
        screen = Console(file=io.StringIO(), width=200, force_terminal=True, highlight=False)
        draw_screen(screen, observer.look(), 40)
    assert isinstance(screen.file, io.StringIO)
    assert waits in screen.file.getvalue()


def test_a_file_whose_name_nearly_is_an_artifacts_is_warned_of(team: Team) -> None:
    team.begin()
    near = ".yolo-planning/phases/01-auth/Critique.jsonl"
    team.file(near, "{}\n")
    team.file(".yolo-planning/phases/01-auth/notes.txt", "of nobody's concern\n")
    warned = json.loads(said(team, "--json"))["findings"]
    assert [(one["level"], one["reason"], one["path"]) for one in warned] == [
        ("warning", "unknown_name", near)
    ]


def test_the_same_state_is_the_same_bytes(team: Team) -> None:
    *_, _ = team.moments()
    assert said(team, "--json") == said(team, "--json")
    assert said(team) == said(team)


@pytest.mark.parametrize("revision", ["HEAD~1", "side", "v1", "refs/tags/v1", "main@{1}"])
def test_a_commit_may_be_called_by_any_of_its_names(team: Team, revision: str) -> None:
    team.begin()
    before = team.git("rev-parse", "HEAD")
    team.git("branch", "side")
    team.git("tag", "-a", "-m", "first", "v1")
    team.plan_one()
    assert data(team, "--at", revision)["team"]["commit"] == before


@pytest.mark.parametrize(
    "revision",
    ["nonsense", "HEAD~99", "", "-h", "HEAD:.yolo-planning", "HEAD..HEAD", "^HEAD", "\x1b[31m"],
)
def test_an_unknown_revision_is_refused(team: Team, revision: str) -> None:
    team.begin()
    answer = json.loads(said(team, "--json", f"--at={revision}", code=Exit.USAGE))
    assert answer["findings"][0]["reason"] == "unknown_commit"
    assert "\x1b" not in answer["findings"][0]["message"]


def test_the_past_needs_no_work_tree_and_shows_none(team: Team) -> None:
    team.begin()
    forge(team)
    assert "forged" in said(team)
    assert "forged" not in said(team, "--at", "HEAD")
    assert team_part(said(team, "--at", "HEAD")) in said(team)


def forge(team: Team) -> None:
    team.file(".yolo-planning/phases/01-auth/.handoff-ux-complete", "")


def test_a_branch_without_commits_has_a_status(team: Team) -> None:
    assert team_part(said(team)) == "not set up yet: 'yolo-fs init' makes the planning tree."
    said(team, "--at", "HEAD", code=Exit.USAGE)


def test_what_comes_first_follows_from_what_is_there(team: Team) -> None:
    team.file(".yolo-planning/phases/.gitkeep", "")
    assert team_part(said(team)) == "no phase yet: 'yolo-fs phase new SLUG' makes one"
    team.file(".yolo-planning/phases/01-auth/.gitkeep", "")
    assert team_part(said(team)).startswith("01-auth waits for its first file: 'yolo-fs workflow ")


def test_a_phase_that_is_asked_about_and_has_nothing_is_not_taken_for_another(
    tmp_path: Path,
) -> None:
    team = Team(tmp_path / "repo")
    team.begin()
    (team.root / ".yolo-planning/phases/02-two").mkdir()
    shown = said(team, "--phase", "2")
    assert team_part(shown).startswith("02-two waits for its first file")
    assert "'yolo-fs workflow next --phase 02-two'" in shown


def test_a_history_that_cannot_be_read_leaves_the_artifacts(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.begin()
    tree = team.git("rev-parse", "HEAD:.yolo-planning/phases")
    unpack(team.root)
    (team.root / ".git/objects" / tree[:2] / tree[2:]).unlink()
    answer = json.loads(said(team, "--json"))
    assert (answer["data"]["team"], answer["findings"][0]["level"]) == (None, "warning")
    names = {each["path"].rpartition("/")[2] for each in answer["data"]["candidates"]}
    assert {"critique.jsonl", "research.jsonl"} <= names
    assert str(team.root) in said(team)


# --- the drawing ---


def drawn(*phases: PhaseBoard, verbose: bool = False, **more: Any) -> str:
    out = io.StringIO()
    draw_board(console_for(out), Board("c" * 40, CONFIG, False, phases, **more), verbose=verbose)
    return out.getvalue()


def phase(content: PhaseFacts, **more: Any) -> PhaseBoard:
    """Return the board of a phase; `more` gives some of its answers by hand."""
    board = PhaseBoard(content, more.pop("loops", ()))
    board.__dict__.update({"sign_off": DueDecision(Decision.HOLD, "so"), "alarms": ()} | more)
    return board


def unfinished(name: str = "fffffff", **changes: Any) -> PhaseFacts:
    """Return a phase whose second plan is claimed with the name of a commit that nobody knows."""
    content = complete()
    content["01-02.summary.jsonl"][0]["ch"] = [name]
    content["01-02.plan.jsonl"][0] |= changes
    return facts(content)


def test_each_standing_has_a_sign_of_its_own_without_colour() -> None:
    assert set(SIGNS) == set(StepStanding)
    assert len({sign for sign, _ in SIGNS.values()}) == len(SIGNS)
    text = drawn(phase(facts({})))
    assert "# complete  ~ running  o ready  w waiting  . pending  - skipped" in text


def test_the_signs_stand_under_their_steps() -> None:
    lines = drawn(phase(unfinished())).splitlines()
    head, backend, whole = lines[1:4]
    assert backend.split() == ["backend", *"######~...."]
    assert [head[at : at + 4].split()[0] for at in (backend.index("~"), whole.index("-"))] == [
        "7",
        "0",
    ]


def test_a_finished_phase_is_one_line_unless_all_is_asked_for() -> None:
    done = phase(facts(complete()))
    assert drawn(done) == "phase 01-auth: complete (2 of 2 plans complete, 100 %)\n"
    assert "7 implementation: complete by commit" in drawn(done, verbose=True)
    assert "0 po: skipped: po.enabled=false" in drawn(done, verbose=True)


def test_a_phase_that_is_signed_off_over_a_claim_is_not_complete() -> None:
    found = phase(unfinished())
    assert not found.progress.is_complete
    assert drawn(found).startswith(
        "phase 01-auth: at implementation (1 of 2 plans complete, 50 %)\n  department"
    )


def test_a_department_that_waits_at_a_gate_is_not_called_next(tmp_path: Path) -> None:
    text = said(Team.of_three(tmp_path / "three"))
    assert "stage gate Go, waits, then: architect does architecture" in text
    assert "stage gate Go, waits, then: fe-architect does architecture" in text
    assert "stage gate Go, next: ux-architect does architecture" in text


def test_an_unfinished_phase_says_who_is_next_and_why_not() -> None:
    text = drawn(phase(unfinished()))
    assert "next: dev does implementation 01-02/T1 from enriched plan, test files" in text
    assert (
        "plan 01-02 backend claimed, 0 of 1 tasks: Login\n    lacks: commit fffffff is not on this branch"
        in text
    )
    assert "plan 01-01" not in text
    assert (
        "gate all-depts: closed\n    lacks: backend is at implementation: plan 01-02 is claimed"
        in text
    )
    assert "sign-off: HOLD (so)" in text


def test_alarms_are_drawn_and_told_to_machines() -> None:
    wait = Wait("01-01", "01-02", "needs it", "01-01.plan.jsonl:1")
    alarms = (Deadlock((wait, replace(wait, waiter="01-02", on="01-01"))), Orphan(wait))
    found = phase(unfinished(), alarms=alarms)
    assert drawn(found).count("\n  alarm: ") == 2
    assert [one["kind"] for one in found.as_json()["alarms"]] == ["deadlock", "orphan"]
    assert found.as_json()["alarms"][1]["waits"][0]["on"] == "01-02"


def test_no_text_of_an_agent_reaches_the_terminal_unescaped() -> None:
    evil = "\x1b[2J\u202egnp.exe\n\x9b31m"
    text = drawn(
        phase(unfinished(evil, t=evil, d=[evil]), sign_off=DueDecision(Decision.HOLD, evil)),
        verbose=True,
    )
    out = io.StringIO()
    notes = WorkTreeNotes(
        "01-auth",
        (Drift("backend", "step", evil, "qa", "yolo-fs status"),),
        (evil,),
        (("backend", evil),),
    )
    draw_wanted(console_for(out), beside(notes), verbose=False)
    assert not {"\x1b", "\u202e", "\x9b"} & set(text + out.getvalue())
    assert len(out.getvalue().splitlines()) == 6, (
        "a title, a line for each, a command, and an empty one"
    )
    assert "\\x1b[2J" in text and "\\x1b[2J" in out.getvalue()


def test_long_lists_are_cut_unless_all_is_asked_for() -> None:
    content = complete()
    content["test-plan.jsonl"] = [{"id": f"T{n}", "red": False} for n in range(12)]
    text = drawn(phase(facts(content)))
    assert (
        text.count("    test_authoring lacks: the tests of T") == 5
        and "7 more (-v shows them)" in text
    )
    assert "the tests of T11 are not red" in drawn(phase(facts(content)), verbose=True)


def test_every_department_has_a_row(team: Team) -> None:
    team.config(THREE)
    team.user_commits("chore: three departments", ".yolo-planning/config.json")
    team.begin()
    rows = [line.split()[0] for line in said(team).splitlines()[2:6]]
    assert rows == ["backend", "frontend", "uiux", "(phase)"]
    assert max(len(line) for line in said(team).splitlines()[1:6]) < 80


# --- watching ---


def start_watch(team: Team, out: int, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "yolo_fs", "status", "--watch", *words, "-C", str(team.root)]
    environment = {
        **os.environ,
        "COLUMNS": "200",
        "LINES": "60",
        "TERM": "xterm",
        "PYTHONUNBUFFERED": "",
    }
    # A shell lets what it starts in the background ignore interrupts, and everything below inherits that.
    return subprocess.Popen(
        command, stdout=out, stderr=subprocess.PIPE, env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip


@contextlib.contextmanager
def watched(
    team: Team, *words: str, terminal: bool = False
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run `status --watch` and lend it and the end that it is read from; it is ended as a person does, with Ctrl-C."""
    ours, theirs = pty.openpty() if terminal else os.pipe()
    child = start_watch(team, theirs, *words)
    os.close(theirs)
    try:
        yield child, ours
    finally:
        child.kill()
        child.communicate()
        os.close(ours)


def read_until(source: int, wanted: str) -> str:
    """Read until a text has been seen, and return all that was read."""
    text = ""
    while wanted not in text:
        ready, _, _ = select.select([source], [], [], PATIENCE_S)
        assert ready, f"never saw {wanted!r} in {text!r}"
        chunk = os.read(source, 1 << 16)
        assert chunk, f"ended before {wanted!r} in {text!r}"
        text += chunk.decode()
    return text


def interrupt(child: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    child.send_signal(signal.SIGINT)
    code = child.wait(PATIENCE_S)
    assert child.stderr is not None
    return code, child.stderr.read()


def test_a_watch_shows_each_change_and_ends_cleanly(team: Team) -> None:
    team.begin()
    with watched(team) as (child, out):
        read_until(out, "at architecture")
        team.artifact(
            "architecture.toon", (team.examples / "architecture/ok/backend.toon").read_text()
        )
        read_until(out, "queued")
        team.once()
        read_until(out, "at planning")
        forge(team)
        read_until(out, "forged: 01-auth: .handoff-ux-complete was made by hand and is ignored")
        assert interrupt(child) == (Exit.INTERRUPTED, b"\n")


def test_a_watch_of_machines_is_one_envelope_per_change(team: Team) -> None:
    team.begin()
    with watched(team, "--json") as (child, out):
        first = read_until(out, "\n")
        forge(team)
        second = read_until(out, "\n")
        assert [json.loads(line)["data"]["forged"] != [] for line in (first, second)] == [
            False,
            True,
        ]
        assert interrupt(child) == (Exit.INTERRUPTED, b"\n")


def test_a_watch_on_a_terminal_gives_the_screen_back(team: Team) -> None:
    team.begin()
    with watched(team, terminal=True) as (child, screen):
        assert "\x1b[?1049h" in read_until(screen, "at architecture")
        forge(team)
        read_until(screen, "forged")
        child.send_signal(signal.SIGINT)
        assert "\x1b[?1049l" in read_until(screen, "\x1b[?25h")
        assert child.wait(PATIENCE_S) == Exit.INTERRUPTED


def test_a_configuration_that_breaks_for_a_moment_ends_no_watch(team: Team) -> None:
    team.begin()
    with watched(team) as (_, out):
        read_until(out, "at architecture")
        team.file(".yolo-planning/config.json", "{")
        read_until(out, "bad_config")
        team.config(THREE)
        read_until(out, "frontend")


def test_the_past_is_not_watched(team: Team) -> None:
    said(team, "--watch", "--at", "HEAD", code=Exit.USAGE)


def test_of_many_open_phases_only_the_first_are_drawn_large() -> None:
    few = Board("a" * 40, CONFIG, stands_in=False, phases=tuple(map(opened, range(1, 6))))
    many = few._replace(phases=tuple(map(opened, range(1, 10))))
    lines = drawn_of(many).splitlines()

    assert "4 more phases are open: -v shows all of each" in lines
    assert [line for line in lines if line.startswith("phase ")] == [
        line for each in many.phases for line in drawn_of(few._replace(phases=(each,))).splitlines()
        if line.startswith("phase ")
    ]  # fmt: skip
    assert drawn_of(few).splitlines()[:-3] == lines[: len(drawn_of(few).splitlines()) - 3]
    assert "more phases are open" not in drawn_of(many, verbose=True)


def test_of_many_phases_those_whose_artifacts_are_all_committed_are_one_row(team: Team) -> None:
    for number in range(1, 8):
        team.example("research/ok/findings.jsonl", "research.jsonl", f"{number:02}-part")
        team.example(
            "critique/ok/addressed_by_the_architect.jsonl", "critique.jsonl", f"{number:02}-part"
        )
    team.once()
    team.artifact("research.jsonl", "{", "04-part")
    row = dict(
        cells(line)
        for line in said(team).splitlines()
        if "-part " in line or "-v shows each" in line
    )
    whole = dict(cells(line) for line in said(team, "-v").splitlines() if "-part " in line)

    assert row["6 phases (-v shows each)"] == ["12", "-", "-", "-"]
    assert row["04-part"].count("1") == whole["04-part"].count("1") == 2
    assert "01-part" not in row and whole["01-part"] == ["2", "-", "-", "-"]


def test_one_phase_is_shown_alone_by_status_and_resume(team: Team) -> None:
    team.example("research/ok/findings.jsonl", "research.jsonl", "02-part")
    team.example("research/ok/findings.jsonl", "research.jsonl", "03-rest")
    team.once()
    for spelled in ("3", "rest", "03-rest"):
        shown = json.loads(said(team, "--phase", spelled, "--json"))["data"]["team"]["phases"]
        assert [each["phase"] for each in shown] == ["03-rest"]
        past = said(team, "--phase", spelled, "--at", "HEAD")
        assert "phase 03-rest" in past and "phase 02-part" not in past
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert run(["resume", "--phase", "rest", "-C", str(team.root)]) == Exit.DONE
    assert "03-rest" in out.getvalue() and "02-part" not in out.getvalue()
    said(team, "--phase", "no", code=Exit.USAGE)


def test_one_phase_is_shown_with_its_own_refused_files_alone(team: Team) -> None:
    team.example("research/ok/findings.jsonl", "research.jsonl", "02-part")
    team.example("research/ok/findings.jsonl", "research.jsonl", "03-rest")
    team.once()
    team.artifact("critique.jsonl", "{", "02-part")
    team.artifact("architecture.toon", "", "03-rest")
    team.file(".yolo-planning/phases/02-part/Research.jsonl", "{}\n")
    shown = json.loads(said(team, "--phase", "3", "--json"))
    listed = {each["path"].split("/")[-2] for each in shown["data"]["candidates"]}
    assert listed == {"03-rest"} and "02-part" not in json.dumps(shown["findings"])
    assert sum(shown["data"]["counts"].values()) == len(shown["data"]["candidates"]) == 2
    text = said(team, "--phase", "3")
    assert "architecture.toon" in text and "02-part" not in text
    assert "02-part/critique.jsonl" in said(team) and "02-part/Research.jsonl" in said(team)


def cells(line: str) -> tuple[str, list[str]]:
    first, *others = re.split(" {2,}", line.strip())
    return first, others


def test_of_many_drifts_the_first_are_shown_unless_everything_is_asked_for() -> None:
    all_notes = [
        WorkTreeNotes(f"{n:02}-part", (Drift("backend", "step", "a", "b", "yolo-fs status"),))
        for n in range(1, 31)
    ]
    short, long = io.StringIO(), io.StringIO()
    draw_wanted(
        console_for(short), beside(*all_notes, WorkTreeNotes("", forged=("x",))), verbose=False
    )
    draw_wanted(console_for(long), beside(*all_notes), verbose=True)

    assert short.getvalue().count("drift: ") == 20 and long.getvalue().count("drift: ") == 30
    assert "forged: x was made by hand and is ignored" in short.getvalue()
    assert short.getvalue().count("    yolo-fs status\n") == 1
    assert short.getvalue().endswith("10 more drifts: -v shows them\n\n")


def beside(*all_notes: WorkTreeNotes) -> PresentSnapshot:
    """Return what `status` sees of a work tree without artifacts, but with these disagreements."""
    with tempfile.TemporaryDirectory() as folder:
        team = Team(Path(folder) / "repo")
        with (
            Repository(str(team.root)) as repository,
            contextlib.closing(StatusObserver(repository)) as observer,
        ):
            return replace(observer.look(), beside=all_notes)


def opened(number: int) -> PhaseBoard:
    begun = facts({"architecture.toon": [{"tech_decisions": ["JWT"]}]})
    return PhaseBoard(replace(begun, phase=PhaseId(f"{number:02}", "auth")))


def test_an_untrue_handoff_of_a_complete_phase_is_shown() -> None:
    handoff = {"type": "phase_handoff", "from_phase": "01", "to_phase": "02", "artifacts": []}
    counts = {"escalations_resolved": 0, "escalations_pending": 3}
    done = PhaseBoard(facts(complete() | {"phase-handoff.jsonl": [handoff | counts]}))
    assert done.progress.is_finished
    text = " ".join(
        drawn_of(Board("a" * 40, CONFIG, stands_in=False, phases=(done, opened(2)))).split()
    )
    assert "the handoff counts 3, escalation.jsonl 0" in text


def drawn_of(found: Board, *, verbose: bool = False) -> str:
    out = io.StringIO()
    draw_board(console_for(out), found, verbose=verbose)
    return out.getvalue()


def test_why_a_file_is_refused_is_what_refuses_it_and_no_remark_of_an_earlier_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    team = Team(tmp_path / "work")
    good = {"id": "C1", "cat": "gap", "sev": "major", "q": "Rate limit?", "ctx": "x", "sug": "5",
            "st": "open", "cf": 90, "rd": 1}  # fmt: skip
    lines = (good | {"mood": "bad"}, good | {"id": "C2", "sev": "loud"})
    team.artifact("critique.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    os.utime(team.root / ".yolo-planning/phases/01-auth/critique.jsonl", (1e9, 1e9))
    capsys.readouterr()
    assert run(["status", "--json", "-C", str(team.root)]) == Exit.DONE
    (refused,) = json.loads(capsys.readouterr().out)["data"]["candidates"]
    assert refused["reason"] == "unknown_value"
    assert [each["level"] for each in refused["findings"]] == ["error", "warning"]
    run(["resume", "-C", str(team.root)])
    assert "critique.jsonl:2 at /sev: unknown_value" in capsys.readouterr().out
