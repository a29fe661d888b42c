"""Three departments through the real daemon: gates, state files, department status and the order of commits.

The play of `demo` is acted, and `plays/hold.toml`, in which a test fails at first; what is asserted here is asked of git and of yolo-fs, not of the
play.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.play.play import COMPANY, FOLDER, Play, PlayAct, PlayScene, load_play
from tests.play.player import Pace, Player, SceneResult
from tests.play.stage import Stage, stage_for
from tests.support import forked
from yolo_fs.artifacts.classify import classify
from yolo_fs.artifacts.examine import shape_faults
from yolo_fs.core.ids import PhaseId
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.progress.gates import Gates, gates_at
from yolo_fs.progress.state_files import STATE_FILES
from yolo_fs.protocol.workflow import STEPS
from yolo_fs.schemas.layout import Record, Strictness
from yolo_fs.workspace.settings import load

PLAYS = Path(__file__).parent / "plays"
PHASE = ".yolo-planning/phases/01-auth"
DEPARTMENTS = ("backend", "frontend", "uiux")


class Commit(NamedTuple):
    """One commit of the branch."""

    oid: str
    subject: str
    path: str
    """The only path that it changes; several for a commit of the user's."""


@dataclass
class Watching:
    """Notes what lies in the phase directory whenever a scene is over."""

    stage: Stage
    statuses: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Department → its status file before the clean-up."""
    sentinels: set[str] = field(default_factory=set)
    decisions: list[str] = field(default_factory=list)
    asleep: list[bool] = field(default_factory=list)
    """Whether the waiter slept whenever its gate was found closed."""

    def act(self, act: PlayAct) -> None: ...
    def scene(self, scene: PlayScene) -> None: ...

    def result(self, scene: PlayScene, result: SceneResult) -> None:
        folder = Path(self.stage.root, PHASE)
        for department in DEPARTMENTS:
            path = folder / f".dept-status-{department}.json"
            if path.exists():
                self.statuses[department] = json.loads(path.read_text())
        self.sentinels |= {path.name for path in folder.glob(".handoff-*")}
        if scene.does == "asks at gate ux-complete":
            self.asleep.append(self.stage.waiter is not None and self.stage.waiter.is_waiting)
        if scene.does.startswith("decides"):
            self.decisions.append(result.text)


class Played:
    """A play that was played, and its repository, which nobody works in any more."""

    def __init__(self, play: Play, stage: Stage) -> None:
        self.stage, self.root = stage, stage.root
        self.watching = Watching(stage)
        stage.open()
        self.differences = Player(stage, Pace.of(100), self.watching).play(play)
        self.commits = tuple(self._commits())

    def _commits(self) -> Iterator[Commit]:
        logged = self.stage.git.text("log", "--reverse", "--format=%x1e%H%n%s", "--name-only")
        for record in logged.split("\x1e")[1:]:
            oid, subject, *paths = [line for line in record.splitlines() if line]
            yield Commit(oid, subject, " ".join(paths))

    def at(self, name: str) -> list[int]:
        """Return the positions of the commits of an artifact of the phase."""
        return [number for number, one in enumerate(self.commits) if one.path == f"{PHASE}/{name}"]

    def versions(self, ending: str) -> list[tuple[str, dict[str, Any]]]:
        """Return every committed content of the files that end so: (path, content)."""
        found = [
            (one.oid, path)
            for one in self.commits
            for path in one.path.split()
            if path.endswith(ending)
        ]
        return [
            (path, json.loads(self.stage.git.text("show", f"{oid}:{path}"))) for oid, path in found
        ]

    @cached_property
    def gates(self) -> list[Gates]:
        """Return the gates as of each commit."""
        phase = PhaseId.parse("01-auth")
        assert phase is not None
        with Repository(self.root) as repository:
            facts_reader = FactsReader(repository, load(self.root))
            return [gates_at(facts_reader, phase, one.oid) for one in self.commits]

    def yolo_fs(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        code, out, err = forked.call(arguments, Path(self.root), os.environ)
        return subprocess.CompletedProcess(arguments, code, out.decode(), err.decode())


def _played(play: Play) -> Iterator[Played]:
    with stage_for(play, keep=False) as stage:
        found = Played(play, stage)
        assert found.differences == ()
        yield found


def _committing_all(play: Play) -> Play:
    """Return a play in a repository in which each transition of a state is a commit."""
    leaves = (f" D {PHASE}/.phase-orchestration.json",) if play is COMPANY else play.leaves
    return replace(play, policy={"state_files": "always"}, keeps_states=True, leaves=leaves)


@pytest.fixture(scope="module")
def company() -> Iterator[Played]:
    yield from _played(_committing_all(COMPANY))


@pytest.fixture(scope="module")
def hold(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    folder = tmp_path_factory.mktemp("hold")
    shutil.copytree(str(FOLDER / "company"), folder, dirs_exist_ok=True)
    shutil.copy(PLAYS / "test-results-failing.jsonl", folder / "3-frontend")
    yield from _played(_committing_all(load_play(PLAYS / "hold.toml", folder)))


@pytest.fixture(scope="module")
def quiet() -> Iterator[Played]:
    """Return the company as whoever configures nothing has it."""
    yield from _played(COMPANY)


@pytest.fixture(params=["company", "hold"])
def either(request: pytest.FixtureRequest) -> Played:
    found: Played = request.getfixturevalue(request.param)
    return found


# --- gates -----------------------------------------------------------------------------------------------------------


def test_the_gate_of_the_design_opens_with_its_last_piece_of_evidence_and_no_commit_earlier(
    company: Played,
) -> None:
    (last,) = company.at("design-handoff.jsonl")

    is_open = [gates.named("ux-complete").is_open for gates in company.gates]

    assert is_open == [False] * last + [True] * (len(is_open) - last)


def test_who_waits_at_the_gate_sleeps_while_it_is_closed(company: Played) -> None:
    assert company.watching.asleep == [True, True]


def test_the_gate_of_the_contract_opens_when_the_backend_agrees(company: Played) -> None:
    proposed, agreed = company.at("api-contracts.jsonl")

    is_open = [gates.named("api-contract").is_open for gates in company.gates]

    assert proposed < agreed
    assert is_open == [False] * agreed + [True] * (len(is_open) - agreed)


CLOSING = ("code-review", "verification", "qa-code", "security-audit")


def test_all_departments_are_through_only_after_the_last_of_their_evidence(company: Played) -> None:
    pieces = [
        company.at(f"{prefix}{kind}.jsonl")[-1] for prefix in ("", "fe-", "ux-") for kind in CLOSING
    ]

    is_open = [gates.named("all-depts").is_open for gates in company.gates]

    assert is_open.index(True) == max(pieces)


@pytest.mark.proves("002:59a")
def test_every_gate_says_what_is_missing_while_it_is_closed(company: Played) -> None:
    closed = [gate for gates in company.gates for gate in gates.phase.gates if not gate.is_open]

    assert closed
    assert all(lack.what and lack.file for gate in closed for lack in gate.missing)


# --- the order of commits --------------------------------------------------------------------------------------------


@pytest.mark.proves("002:284a")
def test_frontend_and_backend_begin_after_the_design_is_handed_over(company: Played) -> None:
    (handed_over,) = company.at("design-handoff.jsonl")
    ux = [number for number, one in enumerate(company.commits) if f"{PHASE}/ux-" in one.path]
    others = [
        number for number, one in enumerate(company.commits) if _is_of_the_second_wave(one.path)
    ]

    assert max(ux) < handed_over < min(others)


def _is_of_the_second_wave(path: str) -> bool:
    name = path.removeprefix(f"{PHASE}/")
    return name.startswith("fe-") or name in (
        "architecture.toon",
        "01-03.plan.jsonl",
        "api-contracts.jsonl",
    )


def test_frontend_and_backend_take_turns(company: Played) -> None:
    sides = [_side(one.path) for one in company.commits if _side(one.path)]

    turns = sum(one != other for one, other in pairwise(sides))

    assert turns > 4


def _side(path: str) -> str:
    place = classify(path)
    own = place is not None and place.artifact.kind in (
        "plan",
        "summary",
        "code-review",
        "architecture",
        "verification",
    )
    return str(place.department) if place and own and place.department != "uiux" else ""


def test_each_commit_of_the_coordinator_changes_one_file(either: Played) -> None:
    coordination = [one for one in either.commits[1:] if one.path.startswith(".yolo-planning/")]

    assert len(coordination) > 40
    assert [(one.subject, one.path) for one in coordination if " " in one.path] == [SIGNED_OFF]


SIGNED_OFF = (
    "chore(state): phase 1 complete",
    ".yolo-planning/ROADMAP.md .yolo-planning/state.json",
)


def test_by_default_history_has_artifacts_and_the_sign_off_alone(quiet: Played) -> None:
    ours = [one for one in quiet.commits[1:] if one.path.startswith(".yolo-planning/")]
    assert len(quiet.commits) <= 45
    assert [(one.subject, one.path) for one in ours if " " in one.path] == [SIGNED_OFF]
    kept = (".execution-state.json", ".phase-orchestration.json", ".dept-status-", ".handoff-")
    assert [one.path for one in ours if any(name in one.path for name in kept)] == []
    assert quiet.yolo_fs("verify").returncode == 0


def test_by_default_every_state_is_kept_beside_the_branch(quiet: Played) -> None:
    assert {one["status"] for one in quiet.watching.statuses.values()} == {"complete"}
    assert set(quiet.watching.statuses) == set(DEPARTMENTS)
    assert ".handoff-ux-complete" in quiet.watching.sentinels
    execution = json.loads(Path(quiet.root, PHASE, ".execution-state.json").read_text())
    assert (execution["status"], execution["steps"]["qa"]["status"]) == ("complete", "complete")
    assert quiet.stage.git.text("status", "--porcelain") == ""


def test_history_passes_the_offline_check(company: Played) -> None:
    done = company.yolo_fs("verify", "--json")

    assert (json.loads(done.stdout)["findings"], done.returncode) == ([], 0)


# --- the decision ----------------------------------------------------------------------------------------------------


def test_a_phase_in_which_all_pass_ships(company: Played) -> None:
    assert company.watching.decisions == [
        "SHIP: all departments, the integration gate and security pass"
    ]
    assert company.gates[-1].phase.sign_off[0] == "SHIP"


def test_one_failing_test_is_a_hold_with_its_reason_until_it_passes(hold: Played) -> None:
    failing, mended = hold.at("fe-test-results.jsonl")

    gates = hold.gates

    assert {one.phase.sign_off[0] for one in gates[failing:mended]} == {"HOLD"}
    assert (
        gates[failing].phase.sign_off[1] == "1 tests of plan 01-02 fail (fe-test-results.jsonl:1)"
    )
    # A recorded FAIL of the integration gate holds until the gate has said PASS.
    passed = hold.at("integration-gate-result.jsonl")[-1]
    assert {one.phase.sign_off[0] for one in gates[mended:passed]} <= {"HOLD"}
    assert {one.phase.sign_off[0] for one in gates[passed:]} == {"SHIP"}


@pytest.mark.proves("002:59a")
def test_the_integration_gate_writes_what_the_rules_work_out(hold: Played) -> None:
    oid = hold.stage.git.text("rev-parse", "HEAD")
    lines = hold.stage.git.text("show", f"{oid}:{PHASE}/integration-gate-result.jsonl").splitlines()

    failed, passed = (json.loads(line) for line in lines)

    assert failed["failures"] == [
        {"check": "tests", "detail": "1 tests of plan 01-02 fail", "file": "fe-test-results.jsonl"}
    ]
    assert (failed["r"], failed["checks"]["tests"]) == ("FAIL", "fail")
    assert (passed["r"], set(passed["checks"].values())) == ("PASS", {"pass"})


# --- state files and status ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STATE_FILES)
def test_every_committed_version_of_a_state_file_fits_its_schema(either: Played, name: str) -> None:
    versions = either.versions(f"/{name}")

    assert versions
    for path, content in versions:
        place = classify(path)
        assert place is not None
        faults = [
            fault for _, fault in shape_faults(place.artifact, [Record(1, content)], Strictness())
        ]
        assert faults == []


def test_each_step_becomes_complete_once_in_the_order_of_the_workflow(company: Played) -> None:
    subjects = [one.subject for one in company.commits]
    steps = [step.key for step in STEPS if f"chore(state): {step.key} complete phase 1" in subjects]

    complete = [subject.split()[1] for subject in subjects if subject.endswith(" complete phase 1")]

    assert len(complete) == len(set(complete)) >= 11
    assert [key for key in complete if key in steps[:9]] == steps[:9]


def test_a_step_that_a_rule_skips_is_recorded_with_the_rule(company: Played) -> None:
    _, last = company.versions(f"{PHASE}/.execution-state.json")[-1]

    skipped = {
        key: entry["reason"] for key, entry in last["steps"].items() if entry["status"] == "skipped"
    }

    assert set(skipped) == {"test_authoring"} | (set(skipped) & {"po", "documentation", "delivery"})
    assert all(reason.startswith("rule: ") for reason in skipped.values())


@pytest.mark.proves("002:286c")
def test_the_orchestration_tells_of_departments_gates_and_the_decision(company: Played) -> None:
    _, last = company.versions(".phase-orchestration.json")[-1]

    assert {name: one["status"] for name, one in last["departments"].items()} == dict.fromkeys(
        DEPARTMENTS, "complete"
    )
    assert {one["status"] for one in last["gates"].values()} == {"passed"}
    assert [wave["depts"] for wave in last["waves"]] == [["uiux"], ["frontend", "backend"]]
    stages = [last[stage]["status"] for stage in ("integration_qa", "security", "owner_signoff")]
    assert stages == ["PASS", "PASS", "SHIP"]


def test_the_orchestration_was_on_hold_while_the_test_failed(hold: Played) -> None:
    failing, mended = hold.at("fe-test-results.jsonl")
    written = [
        number for number in hold.at(".phase-orchestration.json") if failing < number < mended
    ]

    shown = hold.stage.git.text(
        "show", f"{hold.commits[mended - 1].oid}:{PHASE}/.phase-orchestration.json"
    )
    said = json.loads(shown)

    assert written
    assert said["departments"]["frontend"]["status"] == "running"
    assert said["gates"]["all-depts"] == {"status": "pending", "passed_at": ""}


def test_the_status_of_each_department_ends_as_complete(company: Played) -> None:
    statuses = company.watching.statuses

    assert {
        name: (one["status"], one["plans_complete"], one["error"]) for name, one in statuses.items()
    } == (dict.fromkeys(DEPARTMENTS, ("complete", 1, "")))


@pytest.mark.proves("002:286b")
def test_each_handoff_left_its_sentinel(company: Played) -> None:
    assert company.watching.sentinels == {
        ".handoff-api-contract", ".handoff-ux-complete", ".handoff-uiux-complete", ".handoff-frontend-complete",
        ".handoff-backend-complete",
    }  # fmt: skip


# --- after the clean-up ----------------------------------------------------------------------------------------------


def test_the_clean_up_leaves_no_coordination_and_every_artifact(company: Played) -> None:
    names = set(os.listdir(Path(company.root, PHASE)))
    artifacts = {
        one.path.rpartition("/")[2] for one in company.commits if one.path.startswith(f"{PHASE}/")
    }

    assert names == artifacts - {".phase-orchestration.json"}


def test_a_daemon_that_comes_later_commits_nothing_more(company: Played) -> None:
    before = company.stage.git.text("rev-parse", "HEAD")

    assert company.yolo_fs("run", "--once", "-q").returncode == 0

    assert company.stage.git.text("rev-parse", "HEAD") == before
    assert not Path(company.root, PHASE, ".phase-orchestration.json").exists()


def test_a_daemon_that_comes_later_writes_no_coordination_again(company: Played) -> None:
    assert company.yolo_fs("run", "--once", "-q").returncode == 0

    names = os.listdir(Path(company.root, PHASE))

    assert [name for name in names if name.startswith((".dept-", ".handoff-"))] == []
