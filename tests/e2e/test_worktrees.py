"""With `--worktrees` each plan of a wave has a Dev in a work tree of its own, whose work is merged task by task.

Real agents, real work trees, the user's real git. See docs/company.md.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import patient_agent
from tests.e2e.repo import Repo
from tests.e2e.test_go import SCRIPTED, STRANGER, Company, Played, agents_of, played_by, wait_for
from tests.e2e.test_verify_command import say_as_user
from yolo_fs.core.reasons import Reason

PATIENT = played_by(Path(patient_agent.__file__))
TASKS = ("01-01-T1", "01-04-T1", "01-07-T1")
"""The first task of each of three plans; the numbers between belong to other departments."""
SOURCE = "src/api/plan01_core.ts"


class Apart(Company):
    """A company of one department, with three plans in its wave."""

    def __init__(self, repo: Repo, gate: Path) -> None:
        super().__init__(repo)
        self.gate = gate
        gate.mkdir()
        self.env |= {"YOLO_FS_DEMO_PLANS": "3", "PATIENT_GATE": str(gate)}

    def begin_apart(self, **more: str) -> subprocess.Popen[str]:
        words = ("a", "login", "--worktrees", "--max-agents", "3")
        return self.begin(*words, program=PATIENT, **more)

    def wait_until_all_have_begun(self) -> None:
        wait_for(lambda: all((self.gate / task).exists() for task in TASKS), "three Devs at work")

    def let_go_on(self) -> None:
        (self.gate / "open").touch()

    def trees(self) -> list[str]:
        listed = self.repo.git("worktree", "list", "--porcelain").splitlines()
        return [line.partition(" ")[2] for line in listed if line.startswith("worktree ")][1:]

    def branches(self) -> list[str]:
        return self.repo.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split()

    def commits_by_task(self) -> Counter[str]:
        subjects = (one for one in self.subjects() if one.startswith("feat("))
        return Counter(one.partition(" as specified")[0] for one in subjects)


ONCE = Counter(
    {f"feat({plan}): {task}": 1 for plan in ("01-01", "01-04", "01-07") for task in ("T1", "T2")}
)


@pytest.fixture
def apart(repo: Repo, tmp_path: Path) -> Iterator[Apart]:
    company = Apart(repo, tmp_path / "gate")
    company.configure()
    yield company
    company.let_go_on()
    repo.yolo_fs("stop", ok=(0, 3))
    wait_for(
        lambda: not any(agents_of(Path(tree)) for tree in company.trees()), "agents that are left"
    )


def end_of(process: subprocess.Popen[str]) -> Played:
    out, err = process.communicate(timeout=90)
    return Played(process.returncode, [json.loads(line) for line in out.splitlines()], err)


def test_the_plans_of_a_wave_are_done_at_once_and_each_task_is_merged_once(apart: Apart) -> None:
    process = apart.begin_apart()
    apart.wait_until_all_have_begun()  # none goes on before all three are at work
    places = {(apart.gate / task).read_text() for task in TASKS}
    assert len(places) == 3 and str(apart.repo.root) not in places
    apart.let_go_on()
    played = end_of(process)
    assert played.code == 0, played
    assert apart.commits_by_task() == ONCE
    assert len(played.named("task.merged")) == 6
    assert apart.repo.look("status", "--porcelain") == ""
    assert apart.repo.yolo_fs("verify").returncode == 0


def test_nothing_of_the_work_trees_is_left_once_all_is_merged(apart: Apart) -> None:
    apart.let_go_on()
    assert end_of(apart.begin_apart()).code == 0
    assert apart.trees() == []
    assert not [name for name in apart.branches() if name.startswith("yolo/")]


def test_work_that_does_not_fit_the_branch_goes_back_to_its_dev_with_both_sides(
    apart: Apart,
) -> None:
    process = apart.begin_apart()
    apart.wait_until_all_have_begun()
    apart.repo.commit_file(SOURCE, "// by a person, meanwhile\n")
    apart.let_go_on()
    played = end_of(process)
    assert played.code == 0, played
    (failed,) = played.named("agent.failed")
    assert failed["task"] == "01-01/T1" and SOURCE in failed["outcome"], failed
    lines = apart.repo.git("show", f"HEAD:{SOURCE}").splitlines()
    assert lines[0] == "// by a person, meanwhile" and "01-01/T1" in lines[1]
    lost = [name for name in apart.branches() if name.startswith("yolo/")]
    assert lost == ["yolo/dev/01-a-login/01-01"], "what did not fit keeps the branch that it is on"


def test_a_file_that_a_person_is_changing_is_not_overwritten(apart: Apart) -> None:
    process = apart.begin_apart()
    apart.wait_until_all_have_begun()
    apart.repo.file(SOURCE, "// not done yet\n")
    apart.let_go_on()
    played = end_of(process)
    assert played.code == 75, played
    assert "uncommitted changes in the work tree" in played.data["waiting"][0]["question"]
    assert (apart.repo.root / SOURCE).read_text() == "// not done yet\n"
    (apart.repo.root / SOURCE).unlink()
    again = apart.go("--worktrees", program=PATIENT)
    assert again.code == 0, again
    assert apart.commits_by_task() == ONCE


def test_another_branch_that_a_person_switches_to_gets_nothing_of_it(apart: Apart) -> None:
    process = apart.begin_apart()
    apart.wait_until_all_have_begun()
    apart.repo.git("checkout", "-q", "-b", "another", "HEAD~1")
    apart.let_go_on()
    played = end_of(process)
    assert played.code == 75, played
    assert Reason.OTHER_BRANCH.sentence in played.data["waiting"][0]["question"]
    assert not any(subject.startswith("feat(") for subject in apart.subjects())
    apart.repo.git("checkout", "-q", "main")
    again = apart.go("--worktrees", program=PATIENT)
    assert again.code == 0, again
    assert apart.commits_by_task() == ONCE


def test_a_branch_of_the_user_that_a_dev_switches_to_is_not_moved_merged_or_removed(
    apart: Apart,
) -> None:
    apart.repo.git("branch", "mine")
    process = apart.begin_apart()
    apart.wait_until_all_have_begun()
    place = (apart.gate / "01-01-T1").read_text()
    apart.repo.git("-C", place, "checkout", "-q", "mine")
    apart.repo.git("-C", place, "commit", "-q", "--allow-empty", "-m", "chore: mine")
    before = apart.repo.git("rev-parse", "mine")
    (Path(place) / SOURCE).mkdir(parents=True)  # so that its Dev commits nothing there
    apart.let_go_on()
    played = end_of(process)
    assert played.code == 0, played
    (failed,) = played.named("agent.failed")
    assert "is on the branch mine" in failed["outcome"]
    assert apart.repo.git("rev-parse", "mine") == before
    assert "chore: mine" not in apart.subjects()
    assert [one["path"] for one in played.named("tree.kept")] == [place]
    assert apart.commits_by_task() == ONCE


def test_a_work_tree_whose_folder_a_person_removed_is_made_elsewhere(apart: Apart) -> None:
    process = apart.begin_apart()
    apart.wait_until_all_have_begun()
    shutil.rmtree((apart.gate / "01-04-T1").read_text())
    os.kill(process.pid, signal.SIGINT)
    apart.let_go_on()
    end_of(process)
    played = apart.go("--worktrees", program=PATIENT)
    assert played.code == 0, played
    assert apart.commits_by_task() == ONCE


def test_a_runner_that_is_killed_leaves_devs_whose_work_the_next_one_merges_once(
    apart: Apart,
) -> None:
    process = apart.begin_apart()
    apart.wait_until_all_have_begun()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    apart.let_go_on()
    played = apart.go("--worktrees", program=PATIENT)
    assert played.code == 0, played
    assert apart.commits_by_task() == ONCE
    assert apart.trees() == []


def test_a_killed_runner_whose_work_trees_a_person_removed_is_gone_on_with(apart: Apart) -> None:
    process = apart.begin_apart()
    apart.wait_until_all_have_begun()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    for tree in apart.trees():
        shutil.rmtree(tree)
    apart.let_go_on()
    played = apart.go("--worktrees", program=PATIENT)
    assert played.code == 0, played
    assert apart.commits_by_task() == ONCE


def test_a_work_tree_that_cannot_be_read_is_kept_and_ends_no_run(apart: Apart) -> None:
    process = apart.begin_apart()
    apart.wait_until_all_have_begun()
    broken = Path((apart.gate / "01-04-T1").read_text())
    apart.repo.git("worktree", "add", "-q", "--detach", f"{broken}+9")
    (Path(f"{broken}+9") / ".git").write_text("gitdir: /nowhere\n")
    apart.let_go_on()
    played = end_of(process)
    assert played.code == 0, played
    assert [one["path"] for one in played.named("tree.kept")] == [f"{broken}+9"]


def test_a_question_of_a_dev_reaches_the_user_and_the_answer_reaches_the_dev(apart: Apart) -> None:
    words, answered = ("a", "login", "--worktrees"), 0
    asks = "asks-the-user:dev*"
    played = apart.go(*words, YOLO_FAULT=asks)
    while played.code == 75:
        for one in played.data["waiting"]:
            assert one["kind"] == "escalation" and one["question"].startswith("Blue or red?"), (
                played
            )
            apart.repo.yolo_fs("answer", one["id"], "--text", "Blue")
            answered += 1
        played = apart.go("--worktrees", YOLO_FAULT=asks)
    assert played.code == 0, played
    assert answered
    assert set(apart.commits_by_task()) == set(ONCE)


def test_what_the_users_own_check_refuses_once_merged_goes_back_to_its_dev(apart: Apart) -> None:
    check = f"import pathlib, sys; sys.exit(len(pathlib.Path({SOURCE!r}).read_text().splitlines()) == 1)"
    command = [sys.executable, "-c", check]
    say_as_user(apart.repo, {"repositories": {str(apart.repo.root): {"verify_command": command}}})
    apart.env["YOLO_FS_DEMO_PLANS"] = "1"
    apart.let_go_on()
    played = end_of(apart.begin_apart())
    assert played.code == 0, played
    failed = [one["outcome"] for one in played.named("agent.failed")]
    assert len(failed) == 1 and "verify_command failed (exit code 1)" in failed[0]
    assert len(apart.repo.git("show", f"HEAD:{SOURCE}").splitlines()) == 2


def test_what_passes_only_with_files_that_are_in_no_commit_is_not_merged(apart: Apart) -> None:
    command = [sys.executable, "-c", "open('needed.txt')"]
    say_as_user(apart.repo, {"repositories": {str(apart.repo.root): {"verify_command": command}}})
    apart.env["YOLO_FS_DEMO_PLANS"] = "1"
    process = apart.begin_apart()
    wait_for(lambda: (apart.gate / TASKS[0]).exists(), "a Dev at work")
    place = Path((apart.gate / TASKS[0]).read_text())
    (place / "needed.txt").write_text("in no commit\n")
    apart.let_go_on()
    wait_for(lambda: (place / SOURCE).exists(), "its source")
    played = end_of(process)
    assert not played.named("task.merged"), played
    failed = [one["outcome"] for one in played.named("agent.failed")]
    assert "with changes that are in no commit" in failed[0], failed


HOSTILE: dict[str, Callable[[Repo, str], Any]] = {
    "hook": lambda repo, run: repo.git("config", "core.hooksPath", str(repo.root / "hooks")),
    "filter": lambda repo, run: repo.git("config", "filter.bad.smudge", run),
    "merge driver": lambda repo, run: repo.git("config", "merge.bad.driver", run),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_program_that_the_repository_names_is_run(
    apart: Apart, name: str, tmp_path: Path
) -> None:
    mark = tmp_path / "was-run"
    run = f"touch {mark}"
    apart.repo.file("hooks/post-checkout", f"#!/bin/sh\n{run}\n")
    apart.repo.file("hooks/post-merge", f"#!/bin/sh\n{run}\n")
    for hook in ("post-checkout", "post-merge"):
        (apart.repo.root / "hooks" / hook).chmod(0o755)
    apart.repo.commit_file(".gitattributes", "*.ts filter=bad merge=bad\n")
    HOSTILE[name](apart.repo, run)
    process = apart.begin_apart()
    apart.wait_until_all_have_begun()
    assert not mark.exists()
    apart.repo.git("commit", "-q", "--allow-empty", "-m", "chore: beside it")
    trees = apart.trees()
    assert len(trees) == 3
    process.send_signal(signal.SIGINT)
    apart.let_go_on()
    end_of(process)
    assert not mark.exists()


def test_a_work_tree_with_something_in_no_commit_is_kept_and_named(apart: Apart) -> None:
    process = apart.begin_apart()
    apart.wait_until_all_have_begun()
    (place,) = [Path((apart.gate / "01-04-T1").read_text())]
    (place / "notes.txt").write_text("not to be lost\n")
    apart.let_go_on()
    played = end_of(process)
    assert played.code == 0, played
    assert [one["path"] for one in played.named("tree.kept")] == [str(place)]
    assert (place / "notes.txt").read_text() == "not to be lost\n"
    assert apart.trees() == [str(place)]


def test_files_that_two_plans_name_are_changed_by_one_dev_at_a_time(apart: Apart) -> None:
    """A claim comes before a file: nobody is started on files that a Dev at work has."""
    apart.let_go_on()
    process = apart.begin_apart(PATIENT_SHARES="yes")
    played = end_of(process)
    assert played.code == 0, played
    at_work: set[str] = set()
    for event in played.events:
        file = str(event.get("task", ""))[-2:]  # T1 of each plan has one file, and T2 another one
        if event["event"] == "agent.started" and file:
            assert file not in at_work, f"{event['task']} was begun beside another one on its file"
            at_work.add(file)
        elif event["event"] in ("agent.done", "agent.failed"):
            at_work.discard(file)
    assert set(apart.commits_by_task()) == set(ONCE)


def test_a_stranger_that_knows_its_environment_alone_ships_in_work_trees(apart: Apart) -> None:
    played = apart.go("a", "login", "--worktrees", program=STRANGER)
    assert played.code == 0, played
    assert played.named("task.merged")
    assert apart.trees() == []


def test_three_departments_ship_in_work_trees_behind_their_gates(company_of_three: Company) -> None:
    played = company_of_three.go(
        "a", "login", "--worktrees", "--max-agents", "8", program=SCRIPTED, YOLO_FS_DEMO_PLANS="2"
    )
    assert played.code == 0, played
    assert len(played.named("task.merged")) == 12


@pytest.fixture
def company_of_three(repo: Repo) -> Iterator[Company]:
    company = Company(repo)
    company.configure("backend,frontend,uiux")
    yield company
    repo.yolo_fs("stop", ok=(0, 3))


def test_what_a_run_would_start_in_work_trees_is_shown_without_making_any(apart: Apart) -> None:
    played = apart.go("a", "login", "--worktrees", "--dry-run", program=SCRIPTED)
    assert played.code == 0 and apart.trees() == []


IDLE_DEV = """
import os, time
from pathlib import Path
from yolo_fs.demo.agent import main
if os.environ["YOLO_FS_AGENT"] != "yolo-dev":
    main()
else:
    gate, until = Path(os.environ["PATIENT_GATE"]), time.monotonic() + 60
    (gate / os.environ["YOLO_FS_TASK"].replace("/", "-")).touch()
    while len([*gate.iterdir()]) < 3 and time.monotonic() < until:
        time.sleep(0.02)
"""


def test_a_department_in_which_nothing_succeeds_has_one_agent_at_work_at_a_time(
    apart: Apart,
) -> None:
    """Its circuit is open, and whoever is started next is the probe."""
    program = played_by(apart.repo.file("../idle.py", IDLE_DEV))
    played = apart.go("a", "login", "--worktrees", "--max-agents", "3", program=program)
    at_work, together, failed = 0, [], 0
    for event in played.events:
        ended = event["event"] in ("agent.failed", "agent.done")
        at_work += (event["event"] == "agent.started") - ended
        failed = (
            0 if event["event"] == "agent.done" else failed + (event["event"] == "agent.failed")
        )
        if event["event"] == "agent.started":
            together.append((failed >= 2, at_work))
    assert max(count for is_open, count in together if not is_open) == 3, played
    assert {count for is_open, count in together if is_open} == {1}, together
    assert played.code == 75, played
