"""A new gate is a need, a row of `GATES` and the need's predicate; every command knows it."""

from __future__ import annotations

import pytest

from .scratch import ROOT, Scratch, scratch

NEED = '    SECURITY_PASSED = "security-audit.jsonl says PASS"\n'
ROW = """\
    Gate(name="security-clear", needs=(Need.SECURITY_PASSED,), requires=(Dept.FRONTEND,)),
"""
PREDICATE = """\
def _security_passed(source: GateSource) -> Iterator[MissingEvidence]:
    if not any(says(row, "r", "PASS") for row in source.rows("security-audit")):
        yield MissingEvidence("no audit says PASS", "security-audit.jsonl", 0, SHOW)


"""
PHASE = ".yolo-planning/phases/01-login"
AUDITS = ROOT / "fixtures/examples/artifacts/security-audit/ok"


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    made = scratch(tmp_path_factory.mktemp("gate"))
    made.insert("protocol/gates.py", "    SOME_STATUS =", NEED)
    made.insert("protocol/gates.py", '    Gate(\n        name="all-depts"', ROW)
    needs = "rules/phase/gate_needs.py"
    made.insert(needs, "NEEDS: Mapping[", PREDICATE)
    made.insert(needs, "    Need.SOME_STATUS:", "    Need.SECURITY_PASSED: _security_passed,\n")
    made.start("--departments", "backend,frontend", "--no-hooks")
    critiques = ROOT / "fixtures/examples/artifacts/critique/ok"
    made.write(f"{PHASE}/critique.jsonl", min(critiques.glob("*.jsonl")).read_text())
    assert made.run("run", "--once").returncode == 0
    return made


def gate(team: Scratch) -> str:
    """Return what `gate list` says of the new gate."""
    shown = team.run("gate", "list", "--phase", "1")
    assert shown.returncode in (0, 1), shown.stderr
    return next(line for line in shown.stdout.splitlines() if "security-clear" in line)


def test_it_is_closed_then_opens_on_evidence(team: Scratch) -> None:
    closed = team.run("gate", "check", "security-clear", "--phase", "1")
    why = team.run("gate", "why", "security-clear", "--phase", "1")
    script = team.run(
        "compat", "dept-gate", "--gate", "security-clear", "--phase-dir", PHASE, "--no-poll"
    )

    assert closed.returncode == 1, closed.stderr
    assert "no audit says PASS" in why.stdout
    assert script.returncode == 1, script.stderr
    assert gate(team)

    passing = next(path for path in sorted(AUDITS.iterdir()) if '"PASS"' in path.read_text())
    team.write(f"{PHASE}/fe-security-audit.jsonl", passing.read_text())
    assert team.run("run", "--once").returncode == 0

    assert team.run("gate", "check", "security-clear", "--phase", "1").returncode == 0


def test_who_waits_for_it_is_told(team: Scratch) -> None:
    assert team.run("status").returncode == 0
    assert team.run("resume").returncode == 0
