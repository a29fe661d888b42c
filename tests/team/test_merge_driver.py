"""The user's own git merges planning files by records, once it is told to."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.team.work_trees import GAPS, PHASE, PLAN, TeamTree, gap, plan
from yolo_fs.cli.main import run
from yolo_fs.git.repository import Repository
from yolo_fs.team.merge_driver import DRIVER, examine, install, uninstall
from yolo_fs.team.overview import forecast, lines_of


@pytest.fixture
def tree(new_tree: Callable[[str], TeamTree], monkeypatch: pytest.MonkeyPatch) -> TeamTree:
    """A work tree with two branches, `main` and `side`, that have both changed one file."""
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    tree = new_tree("a")
    commit(tree, gap(1), gap(2))
    tree.git("checkout", "-q", "-b", "side")
    commit(tree, gap(1), gap(2, "accepted"), gap(3))
    tree.git("checkout", "-q", "main")
    commit(tree, gap(1, "fixed"), gap(2), gap(4))
    return tree


def commit(tree: TeamTree, *lines: str) -> None:
    tree.place(GAPS, "".join(f"{line}\n" for line in lines))
    tree.git("add", "-f", "--", GAPS)
    tree.git("commit", "-q", "-m", "docs(01): gaps")


MEETINGS = {
    "merge": [("merge", "-q", "--no-edit", "side")],
    "rebase": [("rebase", "-q", "side")],
    "cherry-pick": [("cherry-pick", "side")],
    "stash pop": [
        ("checkout", "-q", "side~1"),
        ("checkout", "-q", "side", "--", GAPS),
        ("stash", "-q"),
        ("checkout", "-q", "main"),
        ("stash", "pop", "-q"),
    ],
}


@pytest.mark.parametrize("commands", MEETINGS.values(), ids=MEETINGS)
def test_two_versions_of_a_planning_file_meet_without_a_false_conflict(
    tree: TeamTree, commands: list[tuple[str, ...]]
) -> None:
    with Repository(str(tree.root)) as repository:
        install(repository)

    for command in commands:
        tree.git(*command)

    met = (tree.root / GAPS).read_text().splitlines()
    assert sorted(met) == [gap(1, "fixed"), gap(2, "accepted"), gap(3), gap(4)]


def test_without_the_driver_git_stops_there(tree: TeamTree) -> None:
    tree.git("merge", "-q", "--no-edit", "side", ok=(1,))


def breaks_off(tree: TeamTree, said: str) -> str:
    """A program of that name in place of the interpreter that the driver begins with."""
    program = tree.root.parent / "broken"
    program.write_text(f"#!/bin/sh\n{said}\n")
    program.chmod(0o755)
    return str(program)


GONE = {
    "gone": lambda _tree: "/gone/venv/bin/python3",
    "without our module": lambda tree: breaks_off(tree, "exit 1"),
    "killed": lambda tree: breaks_off(tree, "kill -9 $$"),
    "a defect": lambda tree: breaks_off(tree, "exit 70"),
}


@pytest.mark.parametrize("interpreter", GONE.values(), ids=GONE)
def test_where_the_driver_cannot_run_git_merges_by_lines_and_marks_what_meets(
    tree: TeamTree, interpreter: Callable[[TeamTree], str]
) -> None:
    with Repository(str(tree.root)) as repository:
        install(repository)
    whole = tree.git("config", "merge.yolo-jsonl.driver")
    broken = whole.replace(sys.executable, interpreter(tree))
    tree.git("config", "merge.yolo-jsonl.driver", broken)

    tree.git("merge", "-q", "--no-edit", "side", ok=(1,))

    met = (tree.root / GAPS).read_text()
    assert "<<<<<<<" in met
    assert gap(3) in met
    assert gap(4) in met
    assert run(["doctor", "-C", str(tree.root)]) == 1


def test_where_the_driver_cannot_run_lines_far_apart_still_merge(tree: TeamTree) -> None:
    commit(tree, *map(gap, range(9)))
    tree.git("checkout", "-q", "-B", "side")
    commit(tree, gap(0, "fixed"), *map(gap, range(1, 9)))
    tree.git("checkout", "-q", "main")
    commit(tree, *map(gap, range(9)), gap(9))
    with Repository(str(tree.root)) as repository:
        install(repository)
    whole = tree.git("config", "merge.yolo-jsonl.driver")
    tree.git("config", "merge.yolo-jsonl.driver", whole.replace(sys.executable, "/gone/python3"))

    tree.git("merge", "-q", "--no-edit", "side")

    met = (tree.root / GAPS).read_text().splitlines()
    assert met == [gap(0, "fixed"), *map(gap, range(1, 10))]


def test_one_record_changed_twice_is_a_conflict_with_gits_own_markers(tree: TeamTree) -> None:
    with Repository(str(tree.root)) as repository:
        install(repository)
    commit(tree, gap(1, "fixed"), gap(2, "fixed"), gap(4))

    tree.git("merge", "-q", "--no-edit", "side", ok=(1,))

    assert "<<<<<<<" in (tree.root / GAPS).read_text()
    assert GAPS in tree.git("diff", "--name-only", "--diff-filter=U")


def test_a_plan_is_merged_as_git_does(tree: TeamTree) -> None:
    versions = {"base": plan("Tokens"), "ours": plan("Rotation"), "theirs": plan("Tokens")}
    for name, text in versions.items():
        tree.place(name, f"{text}\n")
    names = [str(tree.root / name) for name in versions]

    assert run(["merge-driver", *names, PLAN, "-C", str(tree.root)]) == 0
    assert (tree.root / "ours").read_text() == versions["ours"] + "\n"
    tree.place("theirs", plan("Expiry") + "\n")
    assert run(["merge-driver", *names, PLAN, "-C", str(tree.root)]) == 1


def test_what_was_installed_is_found_and_removed_and_nothing_else(
    tree: TeamTree, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree.root / ".gitattributes").write_text("*.png binary\n")
    before = tree.git("config", "--local", "--list")
    with Repository(str(tree.root)) as repository:
        assert len(list(examine(repository))) == 2
        assert len(install(repository)) == 3
        assert install(repository) == ()
        assert list(examine(repository)) == []
        assert len(uninstall(repository)) == 3

    assert (tree.root / ".gitattributes").read_text() == "*.png binary\n"
    assert tree.git("config", "--local", "--list") == before
    assert run(["merge", "doctor", "--json", "-C", str(tree.root)]) == 1
    assert len(json.loads(capsys.readouterr().out)["findings"]) == 2


def test_the_forecast_names_what_will_conflict_and_touches_nothing(
    new_tree: Callable[[str], TeamTree],
) -> None:
    a, b = new_tree("a"), new_tree("b")
    for tree, text in ((a, "one"), (b, "two")):
        tree.place("src/login.ts", text)
        tree.place(f"src/{text}.ts", text)
        tree.git("add", "-A")
        tree.git("commit", "-q", "-m", f"feat(01-01): {text}")
    refs = a.git("for-each-ref")

    found = list(forecast(a.repository, lines_of(a.repository)))

    assert [(each.one, each.other, each.paths) for each in found] == [
        ("main", "b", ("src/login.ts",))
    ]
    assert a.git("for-each-ref") == refs
    assert run(["forecast", "-q", "-C", str(a.root)]) == 1
    assert PHASE not in a.git("status", "--porcelain")


def test_the_forecast_runs_no_driver_of_the_repository_but_the_users_own_and_ours(
    new_tree: Callable[[str], TeamTree], tmp_path: Path
) -> None:
    a, b = new_tree("a"), new_tree("b")
    a.git("config", "merge.theirs.driver", f"touch {tmp_path}/ran")
    with (tmp_path / ".gitconfig").open("a") as mine:
        mine.write('[merge "mine"]\n\tdriver = true\n')
    install(a.repository)
    a.git("config", f"merge.{DRIVER}.driver", f"touch {tmp_path}/ran")
    a.place(
        ".gitattributes",
        "*.ts merge=theirs\n*.lock merge=mine\n" + Path(a.root, ".gitattributes").read_text(),
    )
    a.git("add", ".gitattributes")
    a.git("commit", "-q", "-m", "chore: attributes")
    for tree, number in ((a, 1), (b, 2)):
        tree.place("src/login.ts", f"{number}")
        tree.place("src/x.lock", f"{number}")
        tree.place(GAPS, gap(number) + "\n")
        tree.git("add", "-A")
        tree.git("commit", "-q", "-m", f"feat(01-01): {number}")

    found = list(forecast(a.repository, lines_of(a.repository)))

    assert [each.paths for each in found] == [("src/login.ts",)]
    assert not (tmp_path / "ran").exists()
    assert a.git("status", "--porcelain") == ""
