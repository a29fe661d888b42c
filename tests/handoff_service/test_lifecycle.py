"""The life of handoffs in a real repository: commits deliver them, files and commits show what became of them."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.phases import complete, facts
from yolo_fs.core.reasons import Reason
from yolo_fs.core.timestamps import iso
from yolo_fs.git.repository import Repository
from yolo_fs.handoff_service.lifecycle import lifecycles_of
from yolo_fs.handoffs.lifecycle import HandoffLifecycle, HandoffStage, overdue
from yolo_fs.handoffs.reading import Diagnosis, Read
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.history.index import HistoryIndex, PathChange
from yolo_fs.phase.phase import Phase
from yolo_fs.workspace.settings import load

EXAMPLES = Path(__file__).parents[2] / "fixtures/examples/artifacts"
CONFIG = {"departments": {"frontend": True, "uiux": True}, "department_workflow": "parallel"}
START_S = int(datetime(2026, 2, 19, 9, 0, 0, tzinfo=UTC).timestamp())
PHASE = ".yolo-planning/phases/01-auth"
DEPT_HANDOFF = {"type": "dept_handoff", "from_dept": "uiux", "to_dept": "frontend", "dt": "2026-02-19T09:00:00Z",
                "artifacts": [], "contracts": [], "blockers": [], "notes": ""}  # fmt: skip
PHASE_HANDOFF = {"type": "phase_handoff", "from_phase": "01", "to_phase": "02", "dt": "2026-02-19T09:00:00Z",
                 "decisions": [], "open_items": [], "artifacts": [], "research_refs": [],
                 "escalations_resolved": 0, "escalations_pending": 0}  # fmt: skip


class Tree:
    """A repository whose commits are as old as a test says."""

    def __init__(self, root: Path):
        self.root = root
        self.git("init", "-q", "-b", "main")
        self.write(".yolo-planning/config.json", CONFIG)
        self.commit(-100, ".yolo-planning/config.json")

    def git(self, *arguments: str, at_s: int = START_S) -> None:
        who = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "a@b.c", "GIT_COMMITTER_NAME": "Ada",
               "GIT_COMMITTER_EMAIL": "a@b.c", "GIT_COMMITTER_DATE": f"{at_s} +0000"}  # fmt: skip
        subprocess.run(
            ["git", *arguments],
            cwd=self.root,
            env=os.environ | who,
            check=True,
            capture_output=True,
        )

    def write(self, path: str, *records: object) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text("".join(json.dumps(record) + "\n" for record in records))

    def commit(
        self, after_s: int, path: str, *records: object, kind: str = "", by_hand: bool = False
    ) -> None:
        """Commit a file so many seconds after the start; `kind`: a good example of that kind."""
        if kind:
            self.write(path)
            (self.root / path).write_bytes(min((EXAMPLES / kind / "ok").iterdir()).read_bytes())
        elif records:
            self.write(path, *records)
        self.git("add", "-f", path)
        trailer = "" if by_hand else f"\n\nYolo-Artifact: {path}"
        message = f"docs(01): {Path(path).name}{trailer}\n"
        self.git(
            "commit", "-q", "--no-verify", "--allow-empty", "-m", message, at_s=START_S + after_s
        )

    def lives(self, *reads: Read) -> list[HandoffLifecycle]:
        with Repository(str(self.root)) as repository:
            facts_reader = FactsReader(repository, load(repository.root))
            phases = facts_reader.phases(repository.head().tip)
            return list(
                lifecycles_of(repository.root, phases, facts_reader.history_index, reads, 60)
            )


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    (tmp_path / "work").mkdir()
    return Tree((tmp_path / "work").resolve())


def told(life: HandoffLifecycle) -> tuple[Any, ...]:
    return (
        life.delivery.sender,
        life.delivery.receiver,
        [_after(station.at_s) for station in life.stations],
    )


def _after(at_s: int | None) -> int | None:
    return None if at_s is None else at_s - START_S


def touch(path: Path, after_s: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (START_S + after_s, START_S + after_s))


# --- from department to department ---


def test_a_department_handoff_lives_from_its_commit_to_the_first_artifact_of_its_receiver(
    tree: Tree,
) -> None:
    tree.commit(-50, f"{PHASE}/fe-critique.jsonl", kind="critique")
    tree.commit(10, f"{PHASE}/dept-handoff.jsonl", DEPT_HANDOFF)
    assert [told(life) for life in tree.lives()] == [
        ("uiux", "frontend of 01-auth", [10, None, None, None])
    ]
    touch(tree.root / PHASE / ".ctx-fe-lead.toon", 20)
    tree.write(f"{PHASE}/.dept-status-frontend.json", {"started_at": "2026-02-19T09:00:30Z"})
    tree.commit(35, f"{PHASE}/research.jsonl", kind="research")
    tree.commit(40, f"{PHASE}/fe-architecture.toon", kind="architecture")
    (life,) = tree.lives()
    assert told(life) == ("uiux", "frontend of 01-auth", [10, 20, 30, 40])
    assert [station.by for station in life.stations[1:3]] == [
        f"{PHASE}/.ctx-fe-lead.toon", f"{PHASE}/.dept-status-frontend.json",
    ]  # fmt: skip


def test_each_line_is_delivered_by_the_commit_that_brought_it(tree: Tree) -> None:
    second = DEPT_HANDOFF | {"to_dept": "backend", "dt": "2026-02-19T09:05:00Z"}
    tree.commit(10, f"{PHASE}/dept-handoff.jsonl", DEPT_HANDOFF)
    tree.commit(310, f"{PHASE}/dept-handoff.jsonl", DEPT_HANDOFF, second)
    assert [(life.delivery.line, told(life)[2][0]) for life in tree.lives()] == [(1, 10), (2, 310)]


def test_the_log_of_reads_shows_that_the_receiver_has_read(tree: Tree) -> None:
    tree.commit(10, f"{PHASE}/dept-handoff.jsonl", DEPT_HANDOFF)
    at = datetime.fromtimestamp(START_S + 25, UTC)
    mine = Read("fe-senior", "01-auth", Diagnosis(Reason.FILE_MISSING), at)
    others = [
        Read("ux-lead", "01-auth", Diagnosis(None), at),
        Read("fe-senior", "02", Diagnosis(None), at),
    ]
    assert told(tree.lives(mine)[0])[2] == [10, 25, None, None]
    assert told(tree.lives(*others)[0])[2] == [10, None, None, None]


def test_a_design_is_for_every_department_that_builds(tree: Tree) -> None:
    tree.commit(10, f"{PHASE}/design-handoff.jsonl", {"component": "Button", "status": "ready"})
    tree.commit(20, f"{PHASE}/architecture.toon", kind="architecture")
    assert [told(life) for life in tree.lives()] == [
        ("uiux", "backend of 01-auth", [10, 20, 20, 20]),
        ("uiux", "frontend of 01-auth", [10, None, None, None]),
    ]


def test_what_a_person_commits_counts_as_well(tree: Tree) -> None:
    tree.commit(10, f"{PHASE}/dept-handoff.jsonl", DEPT_HANDOFF, by_hand=True)
    tree.commit(40, f"{PHASE}/fe-architecture.toon", kind="architecture", by_hand=True)
    assert told(tree.lives()[0])[2] == [10, 40, 40, 40]


def test_files_of_all_departments_are_no_work_of_the_backend(tree: Tree) -> None:
    tree.commit(10, f"{PHASE}/dept-handoff.jsonl", DEPT_HANDOFF | {"to_dept": "backend"})
    tree.commit(20, f"{PHASE}/design-tokens.jsonl", kind="design-tokens")
    assert told(tree.lives()[0])[2] == [10, None, None, None]


@pytest.mark.parametrize(("absent", "count"), [((), 0), (("security-audit.jsonl",), 1)])
def test_the_handoffs_of_a_complete_phase_are_history(
    tmp_path: Path, absent: tuple[str, ...], count: int
) -> None:
    content = complete() | {"dept-handoff.jsonl": [DEPT_HANDOFF]}
    known = facts({name: lines for name, lines in content.items() if name not in absent})
    assert (
        len(lifecycles_of(str(tmp_path), [Phase(known)], cast("HistoryIndex", NoHistory()), (), 60))
        == count
    )


class NoHistory:
    def touches(self, folder: str) -> dict[str, list[PathChange]]:
        return {}


# --- contracts ---


def test_a_contract_is_acknowledged_when_agreed_and_acted_upon_when_implemented(tree: Tree) -> None:
    path = f"{PHASE}/api-contracts.jsonl"
    contract = {"type": "api_contract", "direction": "frontend_to_backend", "status": "proposed",
                "endpoints": [{"method": "POST", "path": "/login", "request": {}, "response": {}}]}  # fmt: skip
    tree.commit(10, path, contract)
    tree.commit(15, f"{PHASE}/architecture.toon", kind="architecture")
    assert [told(life) for life in tree.lives()] == [
        ("frontend", "backend of 01-auth", [10, None, None, None])
    ]
    tree.commit(20, path, contract, contract | {"status": "agreed"})
    assert told(tree.lives()[0])[2] == [10, 20, 20, None]
    tree.commit(30, path, contract | {"status": "implemented"})
    assert tree.lives()[0].stage is HandoffStage.ACTED_UPON


# --- from phase to phase ---


def test_a_phase_handoff_is_acted_upon_in_the_next_phase(tree: Tree) -> None:
    tree.commit(10, f"{PHASE}/phase-handoff.jsonl", PHASE_HANDOFF)
    assert told(tree.lives()[0]) == ("01-auth", "phase 02", [10, None, None, None])
    following = PHASE.replace("01-auth", "02-login")
    touch(tree.root / following / ".ctx-critic.toon", 20)
    tree.commit(30, f"{following}/.phase-orchestration.json", kind="phase-orchestration")
    tree.commit(40, f"{following}/critique.jsonl", kind="critique")
    assert told(tree.lives()[0]) == ("01-auth", "02-login", [10, 20, 30, 40])


def test_what_is_late_is_overdue(tree: Tree) -> None:
    tree.commit(10, f"{PHASE}/phase-handoff.jsonl", PHASE_HANDOFF)
    assert overdue(tree.lives(), START_S + 70) == ()
    (late,) = overdue(tree.lives(), START_S + 100)
    said = f"01-auth → phase 02: not read, which was due {iso(START_S + 70)} ({PHASE}/phase-handoff.jsonl)"
    assert str(late) == said
