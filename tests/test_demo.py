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

from tests.support import forked
from tests.support.shared import made_once
from yolo_fs.cli import demo as cli_demo
from yolo_fs.cli.main import run
from yolo_fs.demo import player
from yolo_fs.demo.play import COMPANY, Play, PlayScene
from yolo_fs.demo.stage import MANNERS, Stage, write
from yolo_fs.edges.readers import READERS
from yolo_fs.edges.text_checks import Limits
from yolo_fs.reasons import errors
from yolo_fs.rules.artifacts.classify import classify
from yolo_fs.rules.artifacts.examine import examine
from yolo_fs.rules.artifacts.verdicts import PlanFacts, Surroundings
from yolo_fs.schemas.layout import Strictness

DEMO = [sys.executable, "-m", "yolo_fs", "demo", "--speed", "100"]
TASK = re.compile(r"@[0-9]{2}-[0-9]{2}/T[0-9]+@")


class Played(NamedTuple):
    exit_code: int
    envelope: dict[str, Any]
    """What it printed."""
    left: list[str]
    """What stayed in the folder for temporary files."""


def _environment(folder: Path) -> dict[str, str]:
    return os.environ | {"TMPDIR": str(folder), "PYTHONPATH": os.getcwd()}


def _play(folder: Path) -> Played:
    done = subprocess.run(
        [*DEMO, "--json"],
        env=_environment(folder),
        capture_output=True,
        check=False,
    )
    assert done.stderr == b""
    envelope = json.loads(done.stdout)
    return Played(done.returncode, envelope, os.listdir(folder))


@pytest.fixture
def asked_by_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands that a play asks be forked; those that are processes are not."""

    def ask(stage: Stage, verb: str, *others: str) -> tuple[int, Mapping[str, Any]]:
        words = [verb, *others, "--json"]
        ended = forked.call(words, Path(stage.root), stage._environment)
        return ended.code, json.loads(ended.out)["data"] or {}

    monkeypatch.setattr(Stage, "ask", ask)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    def play(folder: Path) -> None:
        (folder / "tmp").mkdir()
        (folder / "played.json").write_text(json.dumps(_play(folder / "tmp")))

    return Played(
        *json.loads((made_once(tmp_path_factory, "demo", play) / "played.json").read_text())
    )


def test_all_goes_as_the_story_says(played: Played) -> None:
    assert (played.exit_code, played.envelope["ok"], played.envelope["findings"]) == (0, True, [])


def test_every_proof_holds(played: Played) -> None:
    proofs = played.envelope["data"]["proofs"]

    assert len(proofs) == 3
    assert [proof["claim"] for proof in proofs if not proof["holds"]] == []


def test_every_commit_of_the_story_is_made(played: Played) -> None:
    wanted = Counter(pair for scene in COMPANY.scenes for pair in _commits(scene).items())

    made = Counter((one["path"], one["subject"]) for one in played.envelope["data"]["commits"])

    assert wanted <= made


def test_nothing_stays_behind(played: Played) -> None:
    assert played.left == []


def test_on_a_plain_stdout_everything_is_ascii_and_the_kept_repository_is_sound(
    tmp_path: Path,
) -> None:
    environment = _environment(tmp_path) | {"PYTHONIOENCODING": "ascii"}

    done = subprocess.run(
        [*DEMO, "--keep"], env=environment, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert "are on the branch, one file each" in done.stdout
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
        DEMO, env=_environment(tmp_path), stdout=subprocess.PIPE, text=True
    ) as process:
        signal.signal(signal.SIGINT, before)
        assert process.stdout is not None
        next(line for line in process.stdout if "docs(01): " in line)
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
    "a source commit": {"source": "feat(01-01): T1 nothing of the kind"},
}


@pytest.mark.parametrize("wanted", BROKEN)
def test_a_story_that_expects_something_else_ends_with_exit_code_1(
    wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = COMPANY.acts[0]
    scene = replace(first.scenes[0], expect=BROKEN[wanted])
    monkeypatch.setattr(
        cli_demo, "COMPANY", replace(COMPANY, acts=(first._replace(scenes=(scene,)),))
    )
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    code = run(["demo", "--speed", "100", "--json"])

    envelope = json.loads(capsys.readouterr().out)
    assert (code, envelope["ok"]) == (1, False)
    assert envelope["findings"][0]["message"].startswith(
        "Critic, Scout write for all departments: expected "
    )
    assert os.listdir(tmp_path) == []


def test_an_answer_that_never_comes_is_awaited_until_the_deadline_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = COMPANY.acts[0]
    scene = replace(
        first.scenes[0],
        do=({"write": "notes.md", "content": "0-opening/README.md"},),
        expect={"commits": {"notes.md": "docs(01): notes"}},
        deadline_s=0.2,
    )
    monkeypatch.setattr(
        cli_demo, "COMPANY", replace(COMPANY, acts=(first._replace(scenes=(scene,)),))
    )
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    assert run(["demo", "--speed", "100", "--json"]) == 1

    assert json.loads(capsys.readouterr().out)["findings"][0]["reason"] == "deadline_passed"


def test_a_proof_that_does_not_hold_ends_with_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        cli_demo,
        "COMPANY",
        replace(
            COMPANY,
            acts=(),
            leaves=("?? nobody wrote this",),
        ),
    )
    monkeypatch.setattr(player, "QUIET_WITHIN_S", 1.0)  # it would be waited for in vain
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    assert run(["demo", "--speed", "100", "--json"]) == 1

    finding = json.loads(capsys.readouterr().out)["findings"][0]
    assert finding["expected"] == "the work tree holds no other open change"


def _commits(scene: PlayScene) -> dict[str, str]:
    """Return path → subject of the commits that a scene expects."""
    commits: dict[str, str] = scene.expect.get("commits", {})
    return commits


def _written() -> list[tuple[str, str]]:
    return [
        (action["write"], action["content"])
        for scene in COMPANY.scenes
        for action in scene.do
        if action.get("write") in _commits(scene)
    ]


@pytest.mark.parametrize(("path", "content"), _written())
def test_each_artifact_of_the_play_is_valid(path: str, content: str) -> None:
    place = classify(path)
    assert place is not None
    commit = "0123456789abcdef0123456789abcdef01234567"
    data = TASK.sub(commit, COMPANY.read(content)).encode()

    reading = READERS[place.artifact.format](data, path, Limits())
    around = Surroundings(
        {"01-01": PlanFacts(1, ())} if str(place.plan) != "01-01" else {}, {commit: True}
    )

    assert errors(reading.findings) == ()
    assert examine(place, reading.records, around, Strictness()).is_sound


@pytest.mark.parametrize("manner", MANNERS)
def test_each_manner_leaves_the_whole_content(manner: str, tmp_path: Path) -> None:
    path, data = tmp_path / "a.jsonl", b'{"id":"1"}\n{"id":"2"}\n'
    if manner == "rewrite":
        path.write_bytes(b"something much longer than what replaces it\n")
    if manner == "rest":
        path.write_bytes(data[:15])

    write(str(path), data, manner, lambda: None)

    written = path.read_bytes()
    assert written == data
    assert os.listdir(tmp_path) == ["a.jsonl"]


# --- what a company's play would not let pass ---


def _first_scene(expect: dict[str, Any]) -> Play:
    """Return the company's play, of which only the first scene is played, and then one that expects this."""
    wave = COMPANY.acts[0]
    asked = PlayScene("Owner", "asks", (), expect, deadline_s=0.1)
    return replace(COMPANY, acts=(wave._replace(scenes=(wave.scenes[0], asked)),), leaves=())


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
    monkeypatch.setattr(cli_demo, "COMPANY", _first_scene(expect))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    code = run(["demo", "--speed", "100", "--json"])

    envelope = json.loads(capsys.readouterr().out)
    assert (code, os.listdir(tmp_path)) == (1, [])
    assert said in envelope["findings"][0]["message"]
