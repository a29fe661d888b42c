"""A look at gates notes what it depends on before it judges; what lies on disk beside the evidence is named."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import BACKEND, THREE, Team
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Exit, Reason, YoloError
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.progress.gate_wait import GateLook, GateReader
from yolo_fs.progress.gates import Gates, gates_at
from yolo_fs.progress.state_files import Projector, forged_sentinels
from yolo_fs.states.project import sealed
from yolo_fs.system.files import stamp_at
from yolo_fs.system.store import ListedFolder
from yolo_fs.workspace.settings import load

PHASE = PhaseId("01", "auth")
STATUS = ".yolo-planning/phases/01-auth/.dept-status-frontend.json"
CONTRACTS = ".yolo-planning/phases/01-auth/api-contracts.jsonl"
SPEC = {
    "name": "LoginForm", "desc": "signs a user in", "states": ["idle"], "props": ["onLogin"],
    "tokens": ["color-primary"], "a11y": {"role": "form"}, "status": "ready",
}  # fmt: skip


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team.of_three(tmp_path / "work")


def design(team: Team) -> None:
    """Let UI/UX hand over: the gate ux-complete opens."""
    team.artifact("design-handoff.jsonl", '{"component":"LoginForm","status":"ready"}\n')
    team.example("design-tokens/ok/form_feedback.jsonl", "design-tokens.jsonl")
    team.artifact("component-specs.jsonl", json.dumps(SPEC) + "\n")
    team.once()


def ask(team: Team, *names: str) -> GateLook:
    return look(team, "1", names or ("ux-complete",))


def look(team: Team, phase: str, names: Sequence[str]) -> GateLook:
    with GateReader(str(team.root), names) as reader:
        return reader.look(phase)


def gates(team: Team, phase: PhaseId = PHASE) -> Gates:
    with Repository(str(team.root)) as repository:
        facts_reader = FactsReader(repository, load(repository.root))
        return gates_at(facts_reader, phase, repository.head().tip)


def moved(found: GateLook) -> list[str]:
    return [
        os.path.basename(path) for path, before in found.stamps.items() if stamp_at(path) != before
    ]


# --- a look ---


def test_a_look_says_what_each_gate_and_each_department_lacks(team: Team) -> None:
    found = ask(team, "ux-complete", "all-depts")
    assert [(gate["gate"], gate["open"]) for gate in found.gates] == [
        ("ux-complete", False),
        ("all-depts", False),
    ]
    assert {"design-tokens.jsonl", "component-specs.jsonl"} <= {
        lack["file"] for lack in found.gates[0]["missing"]
    }
    assert [each["department"] for each in found.departments] == ["backend", "frontend", "uiux"]
    assert all(
        each["step"] and each["missing"] and not each["complete"] for each in found.departments
    )


def test_a_look_finds_a_gate_open_at_the_commit_it_names(team: Team) -> None:
    design(team)
    found = ask(team)
    assert (found.is_open, found.commit) == (True, team.head())


def test_a_contract_that_is_proposed_again_in_the_same_words_is_open_again(team: Team) -> None:
    contract = {
        "type": "api_contract",
        "direction": "backend_to_frontend",
        "endpoints": [
            {"method": "GET", "path": "/me", "request": {}, "response": {"id": "number"}}
        ],
        "status": "proposed",
    }
    agreed = contract | {"direction": "frontend_to_backend", "status": "agreed"}
    lines: list[str] = []
    for said, is_open in ((contract, False), (agreed, True), (contract, False), (agreed, True)):
        lines.append(json.dumps(said) + "\n")
        team.artifact("api-contracts.jsonl", "".join(lines))
        team.once()
        assert ask(team, "api-contract").is_open == is_open, len(lines)
    assert team.git("show", f"HEAD:{CONTRACTS}").count("\n") == len(lines) - 1


@pytest.mark.parametrize(
    "change",
    [
        lambda team: team.example("plan/ok/first_wave.jsonl", "01-01.plan.jsonl") or team.once(),
        lambda team: team.git("commit", "-q", "--allow-empty", "-m", "chore: nothing"),
        lambda team: team.git("checkout", "-q", "-b", "other"),
        lambda team: team.git("checkout", "-q", "--detach"),
        lambda team: team.git("pack-refs", "--all"),
        lambda team: team.config(BACKEND),
    ],
    ids=["artifact", "commit", "switch", "detach", "pack", "configure"],
)
def test_whatever_may_change_the_answer_moves_a_stamp(team: Team, change: Any) -> None:
    found = ask(team)
    assert not moved(found)
    change(team)
    assert moved(found)


def test_a_phase_without_a_commit_can_be_waited_for(team: Team) -> None:
    (team.root / ".yolo-planning/phases/02-page").mkdir()
    found = look(team, "2", ["ux-complete"])
    assert not found.is_open and found.gates[0]["missing"]


@pytest.mark.parametrize(
    ("phase", "gate"), [("1", "banana"), ("7", "ux-complete"), ("1", "../../etc")]
)
def test_what_is_not_there_cannot_be_waited_for(team: Team, phase: str, gate: str) -> None:
    with pytest.raises(YoloError) as raised:
        look(team, phase, [gate])
    assert (raised.value.reason, raised.value.exit_code) == (Reason.UNKNOWN_NAME, Exit.USAGE)


@pytest.mark.parametrize(
    ("orchestration", "gates", "expected"),
    [
        (None, ["ux-complete"], 1800.0),
        ('{"timeout_minutes": 45}', ["ux-complete"], 2700.0),
        ('{"timeout_minutes": true}', ["ux-complete"], 1800.0),
        ('{"timeout_minutes": -1}', ["ux-complete"], 1800.0),
        ('{"timeout_minutes": "5"}', ["ux-complete"], 1800.0),
        ("torn {", ["ux-complete"], 1800.0),
        (None, ["integration"], 90.0),
        ('{"timeout_minutes": 45}', ["integration"], 90.0),
        ('{"timeout_minutes": 1}', ["integration", "all-depts"], 90.0),
        ('{"timeout_minutes": 2}', ["integration", "all-depts"], 120.0),
    ],
)
def test_how_long_is_waited_is_configured(
    team: Team, orchestration: str | None, gates: list[str], expected: float
) -> None:
    team.config(THREE | {"integration_gate": {"timeout_seconds": 90}})
    if orchestration is not None:
        team.artifact(".phase-orchestration.json", orchestration)
    assert ask(team, *gates).timeout_s == expected


# --- the disk beside the evidence ---


def test_a_status_that_was_edited_is_named_and_opens_nothing(team: Team) -> None:
    status = json.loads((team.root / STATUS).read_text())
    assert not gates(team).drift
    (team.root / STATUS).write_text(json.dumps(status | {"status": "complete"}))
    found = gates(team)
    assert [(one.where, one.key, one.declared) for one in found.drift] == [
        ("frontend", "status", "complete")
    ]
    assert not any(one.is_open for one in found.phase.gates)


def test_a_declared_failure_is_a_judgement_and_no_drift(team: Team) -> None:
    status = json.loads((team.root / STATUS).read_text())
    (team.root / STATUS).write_text(json.dumps(status | {"status": "failed"}))
    assert not gates(team).drift


@pytest.mark.proves("002:286b")
def test_a_sentinel_that_the_daemon_takes_away_meanwhile_is_not_called_forged(team: Team) -> None:
    sentinel = team.root / ".yolo-planning/phases/01-auth/.handoff-ux-complete"
    sentinel.write_text("{}")
    with Repository(str(team.root)) as repository:
        known = FactsReader(repository, load(repository.root))
        (phase,) = known.phases(team.head())
        listed = ListedFolder.at(str(sentinel.parent))
        assert forged_sentinels(listed, phase, known) == (sentinel.name,)
        sentinel.unlink()
        assert forged_sentinels(listed, phase, known) == ()


def test_our_own_sentinels_are_never_called_forged_and_go_with_their_evidence(team: Team) -> None:
    design(team)
    sentinel = team.root / ".yolo-planning/phases/01-auth/.handoff-ux-complete"
    assert sentinel.exists() and not gates(team).forged
    was = sentinel.read_text()
    team.artifact("component-specs.jsonl", json.dumps(SPEC | {"status": "draft"}) + "\n")
    team.once()
    assert not sentinel.exists() and not gates(team).forged
    sentinel.write_text(was)
    assert not gates(team).forged
    assert not any(one.is_open for one in gates(team).phase.gates)


def test_a_squash_makes_no_sentinel_of_ours_a_forged_one(team: Team) -> None:
    first = team.git("rev-list", "--max-parents=0", "HEAD")
    design(team)
    sentinel = team.root / ".yolo-planning/phases/01-auth/.handoff-ux-complete"
    team.git("reset", "-q", "--soft", first)
    team.git("commit", "-q", "-m", "feat: the design (#12)")
    found = gates(team)
    assert sentinel.exists() and not found.forged
    assert next(one for one in found.phase.gates if one.name == "ux-complete").is_open


@pytest.mark.parametrize("spoil", ["", "{}", "ff" * 20])
def test_forged_sentinels_are_found_and_left_where_they_are(team: Team, spoil: str) -> None:
    design(team)
    sentinel = team.root / ".yolo-planning/phases/01-auth/.handoff-ux-complete"
    bound = json.loads(sentinel.read_text())
    bound["evidence"] = [["a", spoil]]
    text = json.dumps(bound) if len(spoil) > 2 else spoil
    team.artifact("component-specs.jsonl", json.dumps(SPEC | {"status": "draft"}) + "\n")
    team.once()
    sentinel.write_text(text)
    team.once()
    with Repository(str(team.root)) as repository:
        known = FactsReader(repository, load(repository.root))
        found = known.phases(repository.head().tip)
        assert forged_sentinels(ListedFolder.at(str(sentinel.parent)), found[0], known) == (
            sentinel.name,
        )
    assert sentinel.read_text() == text


@pytest.mark.proves("002:286c")
@pytest.mark.parametrize("name", ["01-CONTEXT-uiux.md", "analysis.json"])
def test_no_state_file_of_ours_is_ever_rejected(team: Team, name: str) -> None:
    """What is committed first of a phase decides when it began; a phase may begin with no evidence of any step."""
    if name == "analysis.json":
        example = min((team.examples / "analysis/ok").iterdir())
        team.artifact(name, example.read_text(), "02-page")
    else:
        team.artifact(name.replace("01", "02"), "# What the user said\n", "02-page")
    team.once()
    said = team.root / ".yolo-planning/phases/02-page/.phase-orchestration.json"
    assert json.loads(said.read_text())["started_at"]
    assert team.git("status", "--porcelain", "--", str(said)) == ""


def test_a_faulty_state_file_that_we_wrote_once_is_written_anew(team: Team) -> None:
    path = team.root / ".yolo-planning/phases/01-auth/.phase-orchestration.json"
    said = json.loads(path.read_text())
    path.write_text(json.dumps(sealed(said | {"started_at": ""})))
    team.once()
    assert json.loads(path.read_text())["started_at"] == said["started_at"]
    by_hand = json.dumps(said | {"started_at": ""})
    path.write_text(by_hand)
    team.once()
    assert path.read_text() == by_hand, "what somebody else wrote is not ours to mend"


# --- what the daemon tells ---


def test_gates_are_judged_where_no_state_file_is_written(team: Team) -> None:
    team.config(THREE | {"yolo_fs": {"state_files": "never"}})
    design(team)
    told: list[tuple[str, str]] = []
    with Repository(str(team.root)) as repository:
        settings = load(repository.root)
        facts = FactsReader(repository, settings)
        projector = Projector(repository, settings, facts, lambda *said: told.append(said[:2]))
        projector.bring_up_to_date(team.head(), {})
    assert told == [("gate.opened", "01-auth")]
