"""A new gate is a need, a row of `GATES` and the need's predicate; every command knows it."""

from __future__ import annotations

import pytest

from .scratch import ROOT, Scratch, scratch

NEED = '    RECIPE_EXAMPLE = "security-audit.jsonl says PASS"\n'
ROW = """\
    Gate(name="recipe-example", needs=(Need.RECIPE_EXAMPLE,), requires=(Dept.FRONTEND,)),
"""
PREDICATE = """\
def _recipe_example(phase: Phase) -> Iterator[MissingEvidence]:
    if not any(line.get("r") == "PASS" for line in phase.facts.lines_of("security-audit")):
        yield MissingEvidence("no audit says PASS", "security-audit.jsonl", 0, SHOW)


"""
PHASE = ".yolo-planning/phases/01-login"
AUDITS = ROOT / "fixtures/examples/artifacts/security-audit/ok"


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    made = scratch(tmp_path_factory.mktemp("gate"))
    made.insert("protocol/gates.py", "    SOME_STATUS =", NEED)
    made.insert("protocol/gates.py", '    Gate(\n        name="all-depts"', ROW)
    needs = "phase/gate_needs.py"
    made.insert(needs, "NEEDS: Mapping[", PREDICATE)
    made.insert(
        needs, "    Need.SOME_STATUS: _status", "    Need.RECIPE_EXAMPLE: _recipe_example,\n"
    )
    made.insert(
        needs, "    Need.SOME_STATUS: ()", '    Need.RECIPE_EXAMPLE: ("security-audit",),\n'
    )
    made.start("--departments", "backend,frontend", "--no-hooks")
    critiques = ROOT / "fixtures/examples/artifacts/critique/ok"
    made.write(f"{PHASE}/critique.jsonl", min(critiques.glob("*.jsonl")).read_text())
    assert made.run("run", "--once").returncode == 0
    return made


def gate(team: Scratch) -> str:
    """Return what `gate list` says of the new gate."""
    shown = team.run("gate", "list", "--phase", "1")
    assert shown.returncode in (0, 1), shown.stderr
    return next(line for line in shown.stdout.splitlines() if "recipe-example" in line)


def script(team: Scratch) -> int:
    """Return the exit code of the drop-in script that is asked for the new gate."""
    words = ("--gate", "recipe-example", "--phase-dir", PHASE, "--no-poll")
    return team.run("compat", "dept-gate", *words).returncode


def test_it_is_closed_then_opens_on_evidence(team: Scratch) -> None:
    closed = team.run("gate", "check", "recipe-example", "--phase", "1")
    why = team.run("gate", "why", "recipe-example", "--phase", "1")

    assert closed.returncode == 1, closed.stderr
    assert "no audit says PASS" in why.stdout
    assert script(team) == 1
    assert gate(team)

    passing = next(path for path in sorted(AUDITS.iterdir()) if '"PASS"' in path.read_text())
    team.write(f"{PHASE}/fe-security-audit.jsonl", passing.read_text())
    assert team.run("run", "--once").returncode == 0

    opened = team.json("gate", "check", "recipe-example", "--phase", "1")
    assert opened["data"]["open"], opened
    assert "fe-security-audit.jsonl" in str(opened["data"]), "the row of KINDS names the evidence"
    assert script(team) == 0


def test_who_waits_for_it_is_told(team: Scratch) -> None:
    assert team.run("status").returncode == 0
    assert team.run("resume").returncode == 0
