"""Which files of the planning tree nobody writes by hand."""

from __future__ import annotations

import pytest

from yolo_fs.authority.guarded import GUARDED, Guarded, guarded, holds_guarded

PHASE = ".yolo-planning/phases/01-auth"


@pytest.mark.parametrize(
    ("path", "row"),
    [
        (f"{PHASE}/.dept-status-backend.json", 0),
        (f"{PHASE}/.dept-lock-backend", 0),
        (f"{PHASE}/.handoff-ux-complete", 1),
        (".yolo-planning/state.json", 2),
        (".yolo-planning/milestones/one/state.json", 2),
        (f"{PHASE}/.execution-state.json", 3),
        (f"{PHASE}/.phase-orchestration.json", 3),
        (".yolo-planning/.escalation-state.json", 4),
        (f"{PHASE}/.escalation-resolution-ESC-01-01-T1.json", 4),
    ],
)
def test_a_guarded_file_has_its_row(path: str, row: int) -> None:
    assert guarded(path) is GUARDED[row]


@pytest.mark.parametrize(
    "path",
    ["src/state.json", "state.json", f"{PHASE}/critique.jsonl", ".yolo-planning/config.json"],
)
def test_other_files_are_anybodys(path: str) -> None:
    assert guarded(path) is None


@pytest.mark.parametrize("row", GUARDED)
def test_the_way_around_a_guarded_file_names_nobody_who_may_not_be_there(row: Guarded) -> None:
    assert "--as " not in row.instead


@pytest.mark.parametrize(
    "folder", [".yolo-planning", ".yolo-planning/phases/", f"{PHASE}", f"{PHASE}/*"]
)
def test_a_folder_may_hold_such_files(folder: str) -> None:
    assert holds_guarded(folder)


@pytest.mark.parametrize("folder", ["src", "src/phases", f"{PHASE}/notes/old", ""])
def test_a_folder_elsewhere_holds_none(folder: str) -> None:
    assert not holds_guarded(folder)
