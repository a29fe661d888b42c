"""`commit --task` takes a task's files and nothing else, in the prescribed form, beside everybody else's work."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.teams import Team
from yolo_fs.cli.main import run
from yolo_fs.core.reasons import Exit
from yolo_fs.tasks.service import commit_lock

HEADER = {
    "p": "01", "n": "01", "t": "JWT", "w": 1, "d": [], "xd": [], "obj": "Log in",
    "mh": {"tr": ["It works"], "ar": [], "kl": []},
}  # fmt: skip


def task(name: str, *files: str) -> dict[str, Any]:
    return {"id": name, "tp": "auto", "a": "Do", "f": list(files), "v": "Look", "done": "Done"}


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    """A plan of two tasks, committed."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no config"))
    team = Team(tmp_path / "a repository")
    tasks = [task("T1", "src/a.py", "src/new"), task("T2", "src/b.py")]
    team.artifact("01-01.plan.jsonl", "".join(json.dumps(line) + "\n" for line in (HEADER, *tasks)))
    for name in ("src/a.py", "src/b.py", "other.py"):
        team.file(name, "old\n")
    team.user_commits("chore(x): begin", "src", "other.py", ".yolo-planning")
    return team


def commit(
    team: Team, capsys: pytest.CaptureFixture[str], *more: str, task: str = "01-01/T1"
) -> tuple[int, dict[str, Any]]:
    code = run(
        [
            "commit",
            "-C",
            str(team.root),
            "--json",
            "--task",
            task,
            "--type",
            "feat",
            "-m",
            "rotate tokens",
            *more,
        ]
    )
    return code, json.loads(capsys.readouterr().out)


def in_head(team: Team) -> list[str]:
    return team.git("show", "--format=%s", "--name-only", "HEAD").split("\n\n")


def reason(answer: dict[str, Any]) -> str:
    return str(answer["findings"][0]["reason"])


@pytest.mark.proves("002:74", "002:260")
def test_the_files_of_the_task_are_committed_in_the_prescribed_form(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.file("src/a.py", "new\n")
    team.file("src/new/c.py", "new\n")
    code, answer = commit(team, capsys)
    assert (code, answer["data"]["subject"]) == (Exit.DONE, "feat(01-01): T1 rotate tokens")
    assert in_head(team) == ["feat(01-01): T1 rotate tokens", "src/a.py\nsrc/new/c.py"]
    assert answer["data"]["commit"] == team.git("rev-parse", "HEAD")
    assert team.git("status", "--porcelain") == ""


@pytest.mark.proves("002:282")
def test_a_plan_number_of_two_departments_is_committed_and_claimed_by_each(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.config({"departments": {"frontend": True}})
    page = (HEADER, task("T1", "web/page.tsx"), task("T2", "web/b.tsx"))
    team.artifact("fe-01-01.plan.jsonl", "".join(json.dumps(line) + "\n" for line in page))
    team.user_commits("docs(01): plan 01-01", ".yolo-planning")
    team.file("src/a.py", "new\n")
    team.file("web/page.tsx", "new\n")
    code, answer = commit(team, capsys)
    assert (code, reason(answer)) == (Exit.USAGE, "state_conflict")
    assert commit(team, capsys, "--as", "fe-dev")[0] == Exit.DONE
    assert in_head(team)[1] == "web/page.tsx"
    for agent, may in (("fe-dev-1", Exit.FINDINGS), ("dev-1", Exit.DONE)):
        claim = ["task", "claim", "01-01/T1", "-C", str(team.root), "--as", agent]
        assert (run(claim) == Exit.DONE) == (may == Exit.DONE), agent
    for agent in ("dev-2", "fe-dev-2"):  # the same task of each
        assert run(["task", "claim", "01-01/T2", "-C", str(team.root), "--as", agent]) == Exit.DONE
    capsys.readouterr()
    assert commit(team, capsys)[0] == Exit.DONE, "only one of the two has changed"
    assert in_head(team)[1] == "src/a.py"
    _, again = commit(team, capsys)
    assert again["data"]["paths"] == []


def test_what_else_is_staged_or_changed_stays_as_it_was(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("src/a.py", "src/b.py", "other.py"):
        team.file(name, "new\n")
    team.git("add", "other.py", "src/b.py")
    team.file("other.py", "newer\n")
    staged = team.git("ls-files", "--stage", "other.py", "src/b.py")
    assert commit(team, capsys)[0] == Exit.DONE
    assert in_head(team)[1] == "src/a.py"
    assert team.git("ls-files", "--stage", "other.py", "src/b.py") == staged
    assert team.git("status", "--porcelain").split("\n") == ["MM other.py", "M  src/b.py"]


def test_a_file_that_the_task_removed_is_committed_as_removed(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    (team.root / "src/a.py").unlink()
    commit(team, capsys)
    assert team.git("ls-tree", "-r", "--name-only", "HEAD", "src") == "src/b.py"


def test_paths_narrow_down_what_is_committed(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.file("src/a.py", "new\n")
    team.file("src/new/c*.py", "new\n")
    team.file("src/new/cd.py", "new\n")
    assert commit(team, capsys, "--paths", "src/new/c*.py")[0] == Exit.DONE
    assert in_head(team)[1] == "src/new/c*.py"


@pytest.mark.parametrize(
    "path", ["src/b.py", "other.py", ".yolo-planning/PROJECT.md", "../elsewhere", "."]
)
def test_a_path_of_somebody_else_is_refused(
    team: Team, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    team.file("src/a.py", "new\n")
    before = team.head()
    code, answer = commit(team, capsys, "--paths", path)
    assert (code, reason(answer), team.head()) == (Exit.FINDINGS, "out_of_lane", before)


def test_a_tester_commits_the_tests_of_a_task_and_no_source_of_another(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("tests/a.test.py", "src/a.py", "src/b.py"):
        team.file(name, "new\n")
    tests = ("--type", "test", "--paths")
    code, answer = commit(team, capsys, *tests, "src/b.py")
    assert (code, reason(answer)) == (Exit.FINDINGS, "out_of_lane")
    code, answer = commit(team, capsys, *tests, "tests/a.test.py")
    assert code == 0, answer
    assert in_head(team) == ["test(01-01): RED tests of T1: rotate tokens", "tests/a.test.py"]
    team.file("tests/a.test.py", "newer\n")
    plan = {
        "id": "T1",
        "plan": "01-01",
        "tf": ["tests/a.test.py"],
        "tc": 1,
        "red": True,
        "desc": "x",
    }
    team.artifact("test-plan.jsonl", json.dumps(plan) + "\n")
    team.once()
    code, answer = commit(team, capsys, "--type", "test")
    assert code == 0, answer
    assert in_head(team)[1].split() == ["src/a.py", "tests/a.test.py"]
    code, answer = commit(team, capsys, "--paths", "tests/a.test.py")
    assert (code, reason(answer)) == (Exit.FINDINGS, "out_of_lane")


def test_a_task_that_is_done_is_not_committed_again(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.file("src/a.py", "new\n")
    commit(team, capsys)
    code, answer = commit(team, capsys)
    assert (code, answer["data"]["commit"], answer["data"]["paths"]) == (Exit.DONE, team.head(), [])


def test_without_any_change_there_is_nothing_to_commit(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = commit(team, capsys)
    assert (code, reason(answer)) == (Exit.FINDINGS, "unchanged")


@pytest.mark.parametrize(("wanted", "why"), [("01-01/T9", "unknown_name"), ("01-02/T1", "unknown_name"), ("T1", "bad_name")])  # fmt: skip
def test_a_task_that_no_plan_has_is_a_usage_error(
    team: Team, capsys: pytest.CaptureFixture[str], wanted: str, why: str
) -> None:
    code, answer = commit(team, capsys, task=wanted)
    assert (code, reason(answer)) == (Exit.USAGE, why)


@pytest.mark.parametrize(
    "text",
    ["", "  ", "two\nlines", "two\rlines", "T1 \x1b[2Jgone", "turned \u202e round", "a\u2028b"],
)
def test_a_text_that_is_no_subject_is_refused(
    team: Team, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    team.file("src/a.py", "new\n")
    code, answer = commit(team, capsys, "-m", text)
    assert (code, reason(answer)) == (Exit.USAGE, "bad_format")


def test_the_devs_hooks_run_and_a_refusal_leaves_no_trace(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    hook = team.file(
        ".git/hooks/pre-commit", "#!/bin/sh\ngit diff --cached --name-only >&2\nexit 1\n"
    )
    hook.chmod(0o755)
    team.file("src/new/c.py", "new\n")
    team.file("other.py", "new\n")
    team.git("add", "other.py")
    before = team.git("status", "--porcelain", "-uall")
    code, answer = commit(team, capsys)
    assert (code, "src/new/c.py" in answer["findings"][0]["message"]) == (Exit.GIT_FAILED, True)
    assert "other.py" not in answer["findings"][0]["message"]
    assert team.git("status", "--porcelain", "-uall") == before


def test_filters_of_the_users_own_configuration_run_as_where_they_type_git_commit(
    team: Team,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "own").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "own"))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    clean = '[filter "upper"]\n\tclean = tr a-z A-Z\n'
    (tmp_path / "own/.gitconfig").write_text(f"[user]\n\tname = D\n\temail = d@x.y\n{clean}")
    team.file(".gitattributes", "*.py filter=upper\n")
    team.file("src/a.py", "quiet\n")
    assert commit(team, capsys)[0] == 0
    assert team.git("show", "HEAD:src/a.py") == "QUIET"


def test_paths_are_spelled_from_where_the_dev_stands(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.file("src/a.py", "new\n")
    below = [
        "commit",
        "-C",
        str(team.root / "src"),
        "--json",
        "--task",
        "01-01/T1",
        "--type",
        "fix",
        "-m",
        "T1: rotate",
    ]
    assert run([*below, "--paths", "a.py"]) == Exit.DONE
    assert in_head(team) == ["fix(01-01): T1 rotate", "src/a.py"]


def test_devs_who_commit_at_once_come_one_after_the_other(team: Team) -> None:
    team.file("src/a.py", "new\n")
    team.file("src/b.py", "new\n")
    command = [
        sys.executable,
        "-m",
        "yolo_fs",
        "commit",
        "--type",
        "feat",
        "-m",
        "at once",
        "--task",
    ]
    running = [
        subprocess.Popen([*command, f"01-01/T{k}"], cwd=team.root, stdout=subprocess.DEVNULL)
        for k in (1, 2)
    ]
    assert [one.wait(60) for one in running] == [0, 0]
    assert sorted(team.git("log", "-2", "--format=%s").split("\n")) == [
        "feat(01-01): T1 at once",
        "feat(01-01): T2 at once",
    ]
    assert team.git("status", "--porcelain") == ""


def test_while_somebody_else_commits_nothing_is_done(
    team: Team, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yolo_fs.tasks.service.PATIENCE_S", (0.0,))
    team.file("src/a.py", "new\n")
    before = team.head()
    with commit_lock(str(team.root / ".git"), ()):
        code, answer = commit(team, capsys)
    assert (code, reason(answer), team.head()) == (Exit.LOCK_TIMEOUT, "lock_timeout", before)


def test_a_dev_waits_for_another_commit_though_the_references_script_gives_up(
    team: Team, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yolo_fs.tasks.service.WAITS_S", (0.0,))
    team.file("src/a.py", "new\n")
    held = commit_lock(str(team.root / ".git"), ())
    release = threading.Timer(0.4, held.release)
    release.start()
    try:
        code, answer = commit(team, capsys)
    finally:
        release.join()
    assert code == 0, answer


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_commit_that_is_interrupted_leaves_the_index_as_it_was(
    team: Team, number: signal.Signals
) -> None:
    team.file("src/new/c.py", "new\n")
    reached = team.root / ".git/reached"
    hook = team.root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\necho > '{reached}'\nexec sleep 60\n")
    hook.chmod(0o755)
    before = team.git("status", "--porcelain")
    words = ["commit", "--task", "01-01/T1", "--type", "feat", "-m", "rotate"]
    asked = subprocess.Popen(
        [sys.executable, "-P", "-m", "yolo_fs", *words],
        cwd=team.root,
        start_new_session=True,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # a background job ignores some
    )
    deadline = time.monotonic() + 30
    while not reached.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    asked.send_signal(number)

    assert asked.wait(30) == Exit.INTERRUPTED
    os.killpg(asked.pid, signal.SIGKILL)  # the hook, which git leaves behind
    assert team.git("status", "--porcelain") == before
    assert team.git("log", "--format=%s", "-1") == "chore(x): begin"


def test_a_hook_that_leaves_a_process_behind_keeps_nobody_waiting(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    team.file("src/a.py", "new\n")
    hook = team.root / ".git/hooks/post-commit"
    hook.parent.mkdir(exist_ok=True)
    left = team.root / ".git/left"
    hook.write_text(f"#!/bin/sh\necho spoken >&2\nsetsid sleep 300 &\necho $! > '{left}'\n")
    hook.chmod(0o755)

    code, _ = commit(team, capsys)

    os.kill(int(left.read_text()), signal.SIGKILL)  # it still held git's stderr
    assert code == Exit.DONE
