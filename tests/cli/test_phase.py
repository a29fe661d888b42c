"""`phase new` gives the next number, once per slug; `phase list` tells how far each phase is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import CLAIM, Team
from yolo_fs.cli.main import run
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Exit


@pytest.fixture
def root(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".yolo-planning").mkdir()
    return tmp_path.resolve()


def phase(
    root: Path, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, dict[str, Any]]:
    code = run(["phase", *arguments, "-C", str(root), "--json"])
    return code, json.loads(capsys.readouterr().out)


def new(root: Path, capsys: pytest.CaptureFixture[str], slug: str) -> str:
    code, answer = phase(root, capsys, "new", slug)
    assert code == Exit.DONE
    return str(answer["data"]["path"])


def write(root: Path, path: str, text: str = "{}\n") -> None:
    file = root / ".yolo-planning" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_phases_are_numbered_from_01(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = [new(root, capsys, slug) for slug in ("auth", "login-page", "x2")]
    assert made == [
        f".yolo-planning/phases/{name}" for name in ("01-auth", "02-login-page", "03-x2")
    ]
    assert all((root / path).is_dir() and PhaseId.parse(Path(path).name) for path in made)


def test_the_next_number_follows_the_highest(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("02-b", "09-a", "11-Odd Name"):
        (root / ".yolo-planning" / "phases" / name).mkdir(parents=True)
    assert new(root, capsys, "c").endswith("/12-c")


def test_the_same_slug_again_is_the_same_phase(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = new(root, capsys, "auth")
    new(root, capsys, "later")
    code, answer = phase(root, capsys, "new", "auth")
    assert (code, answer["data"]) == (Exit.DONE, {"state": "already_there", "path": first})


def test_a_fix_in_a_phase_that_is_there_is_told_to_change_nothing(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else whoever names another department takes the phase for that department's."""
    fresh = ("phase", "new", "hotfix", "--fix", "-C", str(root))
    assert run([*fresh]) == 0 and capsys.readouterr().err == ""
    assert run([*fresh]) == 0
    shown = capsys.readouterr()
    assert shown.out.strip().endswith("01-hotfix")
    assert "the phase is there already: --fix and --dept change nothing in it" in shown.err


@pytest.mark.parametrize(
    "slug", ["Auth", "a_b", "a--b", "-a", "a-", "", "../up", "a/b", "ä", "01-auth", "a" * 65]
)
def test_what_is_no_slug_is_a_usage_error(
    root: Path, slug: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["phase", "new", "-C", str(root), "--", slug]) == Exit.USAGE
    assert "holds a number" in (said := capsys.readouterr().err) or "at most 64 of them" in said
    assert not (root / ".yolo-planning" / "phases").exists()


def test_there_is_no_phase_100(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / ".yolo-planning" / "phases" / "99-last").mkdir(parents=True)
    code, answer = phase(root, capsys, "new", "more")
    assert (code, answer["findings"][0]["reason"]) == (Exit.FINDINGS, "out_of_range")


def test_the_active_milestone_has_its_own_phases(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new(root, capsys, "old")
    (root / ".yolo-planning" / "milestones" / "v2").mkdir(parents=True)
    write(root, "ACTIVE", "v2\n")
    assert new(root, capsys, "fresh") == ".yolo-planning/milestones/v2/phases/01-fresh"
    assert [row["phase"] for row in phase(root, capsys, "list")[1]["data"]] == ["01-fresh"]


@pytest.mark.parametrize("active", ["gone\n", "../../elsewhere\n", "", "v2/phases\n"])
def test_a_milestone_that_is_not_there_falls_back(
    root: Path, capsys: pytest.CaptureFixture[str], active: str
) -> None:
    (root / ".yolo-planning" / "milestones" / "v2" / "phases").mkdir(parents=True)
    write(root, "ACTIVE", active)
    assert new(root, capsys, "auth") == ".yolo-planning/phases/01-auth"


def test_phases_that_lie_elsewhere_are_refused(
    root: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (root / ".yolo-planning" / "phases").symlink_to(elsewhere)
    code, answer = phase(root, capsys, "new", "auth")
    assert (code, answer["findings"][0]["reason"]) == (Exit.NOT_HERE, "not_regular")
    assert not list(elsewhere.iterdir())


def test_agents_that_ask_at_once_get_different_numbers(root: Path) -> None:
    code = "import sys; from yolo_fs.cli.main import run; sys.exit(run(['phase', 'new', '-C', *sys.argv[1:]]))"
    asking = [
        subprocess.Popen([sys.executable, "-c", code, str(root), f"agent-{n}"]) for n in range(4)
    ]
    assert [process.wait(timeout=60) for process in asking] == [0, 0, 0, 0]
    numbers = sorted(path.name[:2] for path in (root / ".yolo-planning" / "phases").iterdir())
    assert numbers == ["01", "02", "03", "04"]


def test_the_list_tells_how_far_each_phase_is(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new(root, capsys, "empty")
    write(root, "phases/05-begun/critique.jsonl")
    write(root, "phases/05-begun/.execution-state.json")
    write(root, "phases/06-noted/.execution-state.json")
    write(root, "phases/02-planned/02-01.plan.jsonl")
    write(root, "phases/03-half/03-01.plan.jsonl")
    write(root, "phases/03-half/03-02.plan.jsonl")
    write(root, "phases/03-half/03-01.summary.jsonl")
    write(root, "phases/03-half/03-02.summary.jsonl", "")
    write(root, "phases/04-done/04-01.plan.jsonl")
    write(root, "phases/04-done/04-01.summary.jsonl")
    rows = phase(root, capsys, "list")[1]["data"]
    assert [(row["plans"], row["summaries"], row["status"]) for row in rows] == [
        (0, 0, "empty"), (1, 0, "planned"), (2, 1, "in progress"), (1, 1, "in progress"),
        (0, 0, "begun"), (0, 0, "empty"),
    ]  # fmt: skip


def test_the_list_calls_a_phase_complete_where_status_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    team = Team(tmp_path / "work")
    team.begin()
    team.plan_one()
    team.artifact("01-01.summary.jsonl", json.dumps(CLAIM | {"ch": [team.head()[:12]]}) + "\n")
    _, answer = phase(team.root, capsys, "list")
    (row,) = answer["data"]
    assert (row["plans"], row["summaries"], row["status"]) == (1, 1, "in progress")
    capsys.readouterr()
    run(["status", "-C", str(team.root)])
    assert f"phase 01-auth: at {row['step']} " in capsys.readouterr().out
    run(["phase", "list", "-C", str(team.root)])
    assert capsys.readouterr().out == f"01-auth  1/1 plans  in progress, at {row['step']}\n"


def test_a_directory_with_another_name_is_a_warning(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / ".yolo-planning" / "phases" / "5-auth").mkdir(parents=True)
    code, answer = phase(root, capsys, "list")
    assert (code, answer["data"]) == (Exit.DONE, [])
    assert [(f["reason"], f["path"]) for f in answer["findings"]] == [
        ("bad_name", ".yolo-planning/phases/5-auth")
    ]


def test_the_path_alone_goes_to_stdout(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["phase", "new", "auth", "-C", str(root)])
    assert capsys.readouterr().out == ".yolo-planning/phases/01-auth\n"


@pytest.mark.parametrize("arguments", [["new", "auth"], ["list"]])
def test_without_a_planning_tree_it_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    code, answer = phase(tmp_path, capsys, *arguments)
    assert (code, answer["findings"][0]["reason"]) == (Exit.NOT_HERE, "not_initialised")
