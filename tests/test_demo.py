"""The demo plays what its story says before the real daemon, leaves nothing behind, and admits what differs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.round_trip import NAME, STATE, Move, moves_of
from tests.support import forked
from tests.support.shared import made_once
from yolo_fs.cli import demo as cli_demo
from yolo_fs.cli.main import run
from yolo_fs.demo import player
from yolo_fs.demo.play import PLAYS, Play, PlayScene
from yolo_fs.demo.player import EXPECTATIONS
from yolo_fs.demo.stage import ACTIONS, MANNERS, Stage, write
from yolo_fs.edges.readers import READERS
from yolo_fs.edges.text_checks import Limits
from yolo_fs.protocol.departments import Mode, Role
from yolo_fs.protocol.workflow import STEPS
from yolo_fs.reasons import errors
from yolo_fs.rules.artifacts.classify import classify
from yolo_fs.rules.artifacts.examine import examine
from yolo_fs.rules.artifacts.verdicts import PlanFacts, Surroundings
from yolo_fs.schemas.layout import Strictness

BY_NAME = {play.name: play for play in PLAYS}
PLAY = BY_NAME["login"]
ESCALATIONS = tuple(play for play in PLAYS if play.name == "escalation")
DEMO = [sys.executable, "-m", "yolo_fs", "demo", "--speed", "100"]
FAST = [*DEMO, "--play", "login"]
TASK = re.compile(r"@[0-9]{2}-[0-9]{2}/T[0-9]+@")


class Played(NamedTuple):
    exit_code: int
    envelope: dict[str, Any]
    """What it printed; `data` is that of the only play."""
    left: list[str]
    """What stayed in the folder for temporary files."""


def _environment(folder: Path) -> dict[str, str]:
    return os.environ | {"TMPDIR": str(folder), "PYTHONPATH": os.getcwd()}


def _play(folder: Path, name: str) -> Played:
    done = subprocess.run(
        [*DEMO, "--play", name, "--json"],
        env=_environment(folder),
        capture_output=True,
        check=False,
    )
    assert done.stderr == b""
    envelope = json.loads(done.stdout)
    (data,) = envelope["data"]["plays"]
    return Played(done.returncode, envelope | {"data": data}, os.listdir(folder))


@pytest.fixture
def asked_by_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands that a play asks be forked; those of the plays that are processes are not."""

    def ask(
        stage: Stage, verb: str, *others: str, stdin: bytes = b""
    ) -> tuple[int, Mapping[str, Any]]:
        words = [verb, *others, "--json"]
        ended = forked.call(words, Path(stage.root), stage._environment, stdin)
        return ended.code, json.loads(ended.out)["data"] or {}

    monkeypatch.setattr(Stage, "ask", ask)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    def play(folder: Path) -> None:
        (folder / "tmp").mkdir()
        (folder / "played.json").write_text(json.dumps(_play(folder / "tmp", "login")))

    return Played(
        *json.loads((made_once(tmp_path_factory, "demo", play) / "played.json").read_text())
    )


@pytest.mark.parametrize(
    "name", ["company", "hold"] if os.environ.get("YOLO_TORTURE") else ["hold"]
)  # tests/e2e/test_company.py plays both without the command
def test_the_company_plays_as_its_story_says(name: str, tmp_path: Path) -> None:
    found = _play(tmp_path, name)

    assert (found.exit_code, found.envelope["findings"], found.left) == (0, [], [])
    assert [
        proof["claim"] for proof in found.envelope["data"]["proofs"] if not proof["holds"]
    ] == []


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("asked_by_fork")
@pytest.mark.parametrize(
    "play",
    ESCALATIONS if os.environ.get("YOLO_TORTURE") else ESCALATIONS[:1],
    ids=lambda p: p.intro,
)
def test_a_blocker_goes_up_to_the_user_and_down_again_as_the_story_says(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli_demo, "DEFAULT", (play,))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    code = run(["demo", "--speed", "100", "--json"])

    envelope = json.loads(capsys.readouterr().out)
    (said,) = envelope["data"]["plays"]
    assert (code, envelope["findings"], os.listdir(tmp_path)) == (0, [], [])
    assert [proof["holds"] for proof in said["proofs"]] == [True] * 6
    told = [one["subject"] for one in said["commits"]]
    moves = len([scene for scene in play.scenes if any("tell" in action for action in scene.do)])
    assert told.count("docs(01): escalation") == moves + 1
    assert told.index("chore(state): escalation received phase 1") < told.index(
        "chore(state): escalation resolved phase 1"
    )


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("asked_by_fork")
def test_two_machines_agree_across_one_is_frozen_and_taken_over_and_both_ship(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    code = run(["demo", "--play", "machines", "--speed", "100", "--json"])

    envelope = json.loads(capsys.readouterr().out)
    (said,) = envelope["data"]["plays"]
    assert [f"{one['message']}: {one['expected']}" for one in envelope["findings"]] == []
    assert (code, os.listdir(tmp_path)) == (0, [])
    assert [proof["claim"] for proof in said["proofs"] if not proof["holds"]] == []
    made = Counter(commit["subject"] for commit in said["commits"])
    assert made["docs(01): api-contracts"] == 4  # proposed and agreed, on each of the machines


def test_both_plays_of_the_escalation_are_chosen_by_their_one_name() -> None:
    assert [play.name for play in ESCALATIONS] == ["escalation"] * 2
    assert cli_demo.chosen("escalation") == ESCALATIONS
    assert cli_demo.chosen(None) == cli_demo.DEFAULT


LEADS = next(move.message for move in moves_of(Mode.SINGLE) if move.role is Role.LEAD)
REFUSED = {
    "a level that has no say yet": (
        PlayScene(
            "Lead",
            "raises it",
            ({"tell": ("raise", NAME, "--message", "-"), "message": LEADS},),
            {"nothing": ""},
        ),
        "yolo-fs escalate raise exits with 1",
    ),
    "a state that is another": (
        PlayScene(
            "Dev",
            "asks",
            (),
            {
                "agrees": [{"keeps": STATE, "data": {"/escalations/0/status": "pending"}}],
                "said": "",
            },
        ),
        "expected /escalations/0/status 'pending', it is None",
    ),
}


@pytest.mark.usefixtures("asked_by_fork")
@pytest.mark.parametrize("case", REFUSED)
def test_an_escalation_that_differs_from_the_story_ends_with_exit_code_1(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scene, said = REFUSED[case]
    play, first = ESCALATIONS[0], ESCALATIONS[0].acts[0]
    acts = (first._replace(scenes=(first.scenes[0], replace(scene, deadline_s=0.5))),)
    monkeypatch.setattr(cli_demo, "DEFAULT", (replace(play, acts=acts),))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    assert run(["demo", "--speed", "100", "--json"]) == 1

    assert said in json.loads(capsys.readouterr().out)["findings"][0]["message"]
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(
    "YOLO_TORTURE" not in os.environ, reason="each of its plays is played alone as well"
)
def test_without_a_name_the_company_ships_is_held_and_one_department_has_every_mishap(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        DEMO, env=_environment(tmp_path), capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    said = [
        line.partition("SHIP: ")[1] or line.partition("HOLD: ")[1]
        for line in done.stdout.splitlines()
    ]
    assert list(filter(None, said)) == ["SHIP: ", "HOLD: ", "SHIP: "]
    company, login = done.stdout.split("Play login", 1)
    assert len(company.splitlines()) <= 60
    assert "unknown_value: got 'high'" in login
    assert "git log --oneline" in login


def test_all_goes_as_the_story_says(played: Played) -> None:
    assert (played.exit_code, played.envelope["ok"], played.envelope["findings"]) == (0, True, [])


def test_every_proof_holds(played: Played) -> None:
    proofs = played.envelope["data"]["proofs"]

    assert len(proofs) == 5
    assert [proof["claim"] for proof in proofs if not proof["holds"]] == []


def test_commits_and_their_subjects_are_those_of_the_story_in_its_order(played: Played) -> None:
    wanted = [pair for scene in PLAY.scenes for pair in _commits(scene).items()]

    assert [(one["path"], one["subject"]) for one in played.envelope["data"]["commits"]] == wanted


def test_each_refusal_says_where_what_and_what_was_expected(played: Played) -> None:
    said = [one["said"] for one in played.envelope["data"]["refusals"]]

    assert said == [
        'line 1 /w duplicate_key: the key "w" is used twice; expected each key once',
        "line 2 /sev unknown_value: got 'high'; expected critical, major, minor or nit",
    ]


def test_the_credential_is_held_and_never_shown(played: Played) -> None:
    (held,) = [
        one for one in played.envelope["data"]["held"] if one["path"].endswith("decisions.jsonl")
    ]

    assert "github_token" in held["said"]
    assert "ghp_" not in json.dumps(played.envelope)


def test_nothing_stays_behind(played: Played) -> None:
    assert played.left == []


def test_on_a_plain_stdout_everything_is_ascii_and_the_kept_repository_is_sound(
    tmp_path: Path,
) -> None:
    environment = _environment(tmp_path) | {"PYTHONIOENCODING": "ascii"}

    done = subprocess.run(
        [*FAST, "--keep"], env=environment, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert "ok all 21 commits" in done.stdout
    kept = done.stdout.rpartition("The repository is ")[2].strip(".\n")
    assert os.listdir(tmp_path) == [os.path.basename(kept)]
    subprocess.run(["git", "-C", kept, "fsck", "--strict"], check=True, capture_output=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_daemon_and_removes_everything(
    tmp_path: Path, number: signal.Signals
) -> None:
    # What a shell runs in the background ignores interrupts, and so would our child.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        FAST, env=_environment(tmp_path), stdout=subprocess.PIPE, text=True
    ) as process:
        signal.signal(signal.SIGINT, before)
        assert process.stdout is not None
        next(line for line in process.stdout if "docs(01): critique" in line)
        process.send_signal(number)
        process.stdout.read()

    assert process.returncode == 130
    assert os.listdir(tmp_path) == []
    assert list(_processes_in(tmp_path)) == []


def _processes_in(folder: Path) -> Iterator[int]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            where = os.readlink(process / "cwd")
        except OSError:
            continue
        if where.startswith(f"{folder}/"):
            yield int(process.name)


CRITIQUE = ".yolo-planning/phases/01-auth/critique.jsonl"
BROKEN: dict[str, dict[str, Any]] = {
    "another subject": {"commits": {CRITIQUE: "docs(01): something else"}},
    "a refusal": {"refuses": CRITIQUE, "reason": "missing_key", "line": 1, "at": "/id"},
    "a hold": {"holds": CRITIQUE, "reason": "secret"},
    "a source commit": {"source": "feat(01-01): T1 nothing of the kind"},
}


@pytest.mark.parametrize("wanted", BROKEN)
def test_a_story_that_expects_something_else_ends_with_exit_code_1(
    wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = PLAY.acts[0]
    scene = replace(first.scenes[0], expect=BROKEN[wanted])
    monkeypatch.setattr(
        cli_demo, "DEFAULT", (replace(PLAY, acts=(first._replace(scenes=(scene,)),)),)
    )
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    code = run(["demo", "--speed", "100", "--json"])

    envelope = json.loads(capsys.readouterr().out)
    assert (code, envelope["ok"]) == (1, False)
    assert envelope["findings"][0]["message"].startswith(
        "Critic writes critique.jsonl, via the Lead: expected "
    )
    assert os.listdir(tmp_path) == []


def test_an_answer_that_never_comes_is_awaited_until_the_deadline_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = PLAY.acts[0]
    scene = replace(
        first.scenes[0],
        do=({"write": "notes.md", "content": "0-opening/README.md"},),
        expect={"commits": {"notes.md": "docs(01): notes"}},
        deadline_s=0.2,
    )
    monkeypatch.setattr(
        cli_demo, "DEFAULT", (replace(PLAY, acts=(first._replace(scenes=(scene,)),)),)
    )
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    assert run(["demo", "--speed", "100", "--json"]) == 1

    assert json.loads(capsys.readouterr().out)["findings"][0]["reason"] == "deadline_passed"


def test_a_proof_that_does_not_hold_ends_with_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        cli_demo, "DEFAULT", (replace(PLAY, acts=PLAY.acts[:1], leaves=("?? nobody wrote this",)),)
    )
    monkeypatch.setattr(player, "QUIET_WITHIN_S", 1.0)  # it would be waited for in vain
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    assert run(["demo", "--speed", "100", "--json"]) == 1

    finding = json.loads(capsys.readouterr().out)["findings"][0]
    assert finding["expected"] == "the work tree holds no other open change"


def test_the_play_has_an_act_for_each_of_the_eleven_steps_in_their_order() -> None:
    keys = [step.key for step in STEPS]

    assert [act.step for act in PLAY.acts] == keys[
        keys.index("critique") : keys.index("signoff") + 1
    ]


@pytest.mark.parametrize("act", PLAY.acts, ids=lambda act: act.step)
def test_each_act_makes_the_commits_that_its_step_prescribes(act: Any) -> None:
    step = next(step for step in STEPS if step.key == act.step)
    made = [subject for scene in act.scenes for subject in _commits(scene).values()]
    made += [scene.expect["source"] for scene in act.scenes if "source" in scene.expect]
    first = (step.commits or step.state)[0]

    assert any(first.match(subject) for subject in made)


def _commits(scene: PlayScene) -> dict[str, str]:
    """Return path → subject of the commits that a scene expects."""
    commits: dict[str, str] = scene.expect.get("commits", {})
    return commits


def _written() -> list[tuple[Play, str, str]]:
    return [
        (play, action["write"], action["content"])
        for play in PLAYS
        for scene in play.scenes
        for action in scene.do
        if action.get("write") in _commits(scene)
    ]


@pytest.mark.parametrize(("play", "path", "content"), _written(), ids=lambda value: str(value)[:60])
def test_each_artifact_of_the_plays_is_valid(play: Play, path: str, content: str) -> None:
    place = classify(path)
    assert place is not None
    commit = "0123456789abcdef0123456789abcdef01234567"
    data = TASK.sub(commit, play.read(content)).encode()

    reading = READERS[place.artifact.format](data, path, Limits())
    around = Surroundings(
        {"01-01": PlanFacts(1, ())} if str(place.plan) != "01-01" else {}, {commit: True}
    )

    assert errors(reading.findings) == ()
    assert examine(place, reading.records, around, Strictness()).is_sound


def test_each_slip_stands_for_exactly_one_text_of_its_file() -> None:
    slips = [action for scene in PLAY.scenes for action in scene.do if "slip" in action]

    assert slips
    assert {PLAY.read(slip["content"]).count(slip["slip"][0]) for slip in slips} == {1}


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.intro[:20])
def test_every_action_and_expectation_of_a_play_is_known(play: Play) -> None:
    actions = [*play.opening, *(action for scene in play.scenes for action in scene.do)]

    assert {next(iter(action)) for action in actions} <= set(ACTIONS)
    assert all(len(set(scene.expect) & set(EXPECTATIONS)) == 1 for scene in play.scenes)


@pytest.mark.parametrize(
    ("play", "mode"),
    [(ESCALATIONS[0], Mode.SINGLE), (ESCALATIONS[1], Mode.MULTI)],
    ids=["single", "multi"],
)
def test_an_escalation_is_played_as_the_round_trip_of_the_protocol(play: Play, mode: Mode) -> None:
    told = [action for scene in play.scenes for action in scene.do if "tell" in action]
    moves: list[Move] = list(moves_of(mode))

    assert [tuple(action["tell"]) for action in told] == [move.words("-") for move in moves]
    assert [action["message"] for action in told] == [move.message for move in moves]


@pytest.mark.parametrize("manner", MANNERS)
def test_each_manner_leaves_the_whole_content_and_only_torn_leaves_a_part(
    manner: str, tmp_path: Path
) -> None:
    path, data = tmp_path / "a.jsonl", b'{"id":"1"}\n{"id":"2"}\n'
    if manner == "rewrite":
        path.write_bytes(b"something much longer than what replaces it\n")
    if manner == "rest":
        path.write_bytes(data[:15])

    write(str(path), data, manner, lambda: None)

    written = path.read_bytes()
    assert written == data[:16] if manner == "torn" else written == data
    assert os.listdir(tmp_path) == ["a.jsonl"]


# --- what a company's play would not let pass ---


def _first_scene(expect: dict[str, Any]) -> Play:
    """Return the company's play, of which only the first scene is played, and then one that expects this."""
    company = BY_NAME["company"]
    wave = company.acts[0]
    asked = PlayScene("Owner", "asks", (), expect, deadline_s=0.1)
    return replace(company, acts=(wave._replace(scenes=(wave.scenes[0], asked)),), leaves=())


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a gate that is closed": (
        {"says": ("gate", "check", "all-depts", "--phase", "1"), "data": {"/open": True}},
        "exits with 1",
    ),
    "another value": (
        {
            "says": ("gate", "list", "--phase", "1"),
            "data": {"/sign_off/decision": "SHIP"},
        },
        "it is HOLD",
    ),
    "a state nobody wrote": (
        {"keeps": ".yolo-planning/state.json", "data": {"/st": "complete"}},
        "expected /st 'complete'",
    ),
    "a sleeper where nobody waits": ({"wakes": True}, "expected to be woken"),
}


@pytest.mark.usefixtures("asked_by_fork")
@pytest.mark.parametrize("case", WRONG)
def test_an_answer_that_differs_from_the_story_ends_with_exit_code_1(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    expect, said = WRONG[case]
    monkeypatch.setattr(cli_demo, "DEFAULT", (_first_scene(expect),))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    code = run(["demo", "--speed", "100", "--json"])

    envelope = json.loads(capsys.readouterr().out)
    assert (code, os.listdir(tmp_path)) == (1, [])
    assert said in envelope["findings"][0]["message"]
