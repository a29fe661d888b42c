"""A new department is a member of `Dept` and a row of `DEPARTMENTS`; the program takes the rest from them."""

from __future__ import annotations

import json

import pytest

from yolo_fs.protocol.departments import WORKING_NAMES

from .scratch import ROOT, Scratch, scratch

ROW = """\
    Department(
        name=Dept.EXAMPLE,
        label="Example",
        prefix="rx-",
        roles=_NINE,
    ),
"""
PHASE = ".yolo-planning/phases/01-login"
EXAMPLES = ROOT / "fixtures/examples/artifacts"


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    made = scratch(tmp_path_factory.mktemp("department"))
    made.insert("protocol/departments.py", '    SHARED = "shared"\n', '    EXAMPLE = "example"\n')
    made.insert("protocol/departments.py", "    Department(\n        name=Dept.SHARED", ROW)
    made.start("--departments", "backend,example", "--no-hooks")
    example = min((EXAMPLES / "critique/ok").glob("*.jsonl")).read_text()
    made.write(f"{PHASE}/rx-critique.jsonl", example)
    done = made.run("run", "--once")
    assert done.returncode == 0, done.stderr
    return made


def test_init_turns_it_on(team: Scratch) -> None:
    config = json.loads((team.repository / ".yolo-planning/config.json").read_text())

    assert list(config["departments"]) == [*WORKING_NAMES, "example"]
    assert {name for name, is_on in config["departments"].items() if is_on} == {
        "backend",
        "example",
    }
    assert config["department_workflow"] == "parallel"


def test_its_artifacts_are_committed(team: Scratch) -> None:
    log = team.git("log", "-1", "--format=%B", "--", f"{PHASE}/rx-critique.jsonl")
    assert "docs(01): critique and gap analysis" in log
    assert "Yolo-Dept: example" in log


def test_its_agents_have_their_own_rights(team: Scratch) -> None:
    own = team.json("may", "rx-dev", "read", f"{PHASE}/rx-01-01.plan.jsonl")
    theirs = team.json("may", "rx-dev", "write", f"{PHASE}/fe-01-01.summary.jsonl")

    assert own["data"]["allowed"], own
    assert not theirs["data"]["allowed"], theirs
    assert "rx-dev" in json.dumps(theirs)


def test_its_context_file_is_an_artifact_of_its_own(team: Scratch) -> None:
    mine = team.json("may", "rx-lead", "read", f"{PHASE}/01-CONTEXT-example.md")
    other = team.json("may", "rx-lead", "read", f"{PHASE}/01-CONTEXT-backend.md")

    assert mine["data"]["allowed"], mine
    assert not other["data"]["allowed"], other


def test_status_shows_it(team: Scratch) -> None:
    assert "example" in team.run("status").stdout


def test_its_lead_is_spawned(team: Scratch) -> None:
    done = team.run("compat", "resolve-departments", ".yolo-planning/config.json")

    assert "leads_to_spawn=rx-lead,lead" in done.stdout
    assert "rx_active=true" in done.stdout


def test_an_unknown_department_is_an_error_that_names_those_there_are(team: Scratch) -> None:
    done = team.run("init", "--departments", "backend,nowhere")

    assert done.returncode == 2
    assert f"{', '.join(WORKING_NAMES)}, example" in done.stderr


def test_an_unknown_department_in_the_configuration_is_an_error(team: Scratch) -> None:
    path = team.repository / ".yolo-planning/config.json"
    before = path.read_text()
    path.write_text(before.replace('"example"', '"nowhere"'))

    done = team.run("status")
    path.write_text(before)

    assert done.returncode == 78
    assert "/departments/nowhere" in done.stderr
    assert "example" in done.stderr
