"""A new department is a member of `Dept` and a row of `DEPARTMENTS`; the program takes the rest from them."""

from __future__ import annotations

import json

import pytest

from .scratch import ROOT, Scratch, scratch

ROW = """\
    Department(
        name=Dept.MOBILE,
        label="Mobile",
        prefix="mb-",
        roles=_NINE,
    ),
"""
PHASE = ".yolo-planning/phases/01-login"
EXAMPLES = ROOT / "fixtures/examples/artifacts"


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    made = scratch(tmp_path_factory.mktemp("department"))
    made.insert("protocol/names.py", '    SHARED = "shared"\n', '    MOBILE = "mobile"\n')
    made.insert("protocol/departments.py", "    Department(\n        name=Dept.SHARED", ROW)
    made.start("--departments", "backend,mobile", "--no-hooks")
    return made


def test_init_turns_it_on(team: Scratch) -> None:
    config = json.loads((team.repository / ".yolo-planning/config.json").read_text())

    assert config["departments"] == {
        "backend": True,
        "frontend": False,
        "uiux": False,
        "mobile": True,
    }
    assert config["department_workflow"] == "parallel"


def test_its_artifacts_are_committed(team: Scratch) -> None:
    example = min((EXAMPLES / "critique/ok").glob("*.jsonl")).read_text()
    team.write(f"{PHASE}/mb-critique.jsonl", example)

    done = team.run("run", "--once")

    assert done.returncode == 0, done.stderr
    log = team.git("log", "-1", "--format=%B", "--", f"{PHASE}/mb-critique.jsonl")
    assert "docs(01): critique and gap analysis" in log
    assert "Yolo-Dept: mobile" in log


def test_its_agents_have_their_own_rights(team: Scratch) -> None:
    own = team.json("may", "mb-dev", "read", f"{PHASE}/mb-01-01.plan.jsonl")
    theirs = team.json("may", "mb-dev", "write", f"{PHASE}/fe-01-01.summary.jsonl")

    assert own["data"]["allowed"], own
    assert not theirs["data"]["allowed"], theirs
    assert "mb-dev" in json.dumps(theirs)


def test_its_context_file_is_an_artifact_of_its_own(team: Scratch) -> None:
    mine = team.json("may", "mb-lead", "read", f"{PHASE}/01-CONTEXT-mobile.md")
    other = team.json("may", "mb-lead", "read", f"{PHASE}/01-CONTEXT-backend.md")

    assert mine["data"]["allowed"], mine
    assert not other["data"]["allowed"], other


def test_status_shows_it(team: Scratch) -> None:
    assert "mobile" in team.run("status").stdout


def test_its_lead_is_spawned(team: Scratch) -> None:
    done = team.run("compat", "resolve-departments", ".yolo-planning/config.json")

    assert "leads_to_spawn=mb-lead,lead" in done.stdout
    assert "mb_active=true" in done.stdout


def test_an_unknown_department_is_an_error_that_names_those_there_are(team: Scratch) -> None:
    done = team.run("init", "--departments", "backend,data")

    assert done.returncode == 2
    assert "backend, frontend, uiux, mobile" in done.stderr


def test_an_unknown_department_in_the_configuration_is_an_error(team: Scratch) -> None:
    path = team.repository / ".yolo-planning/config.json"
    before = path.read_text()
    path.write_text(before.replace('"mobile"', '"data"'))

    done = team.run("status")
    path.write_text(before)

    assert done.returncode == 78
    assert "/departments/data" in done.stderr
    assert "mobile" in done.stderr
