"""The user's own git with our hooks in it: what breaks the rules is refused with the way out, and what went past is shown.

See docs/dev/faults.md#f63.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.e2e.artifacts import PLANNING, artifact
from tests.e2e.daemon import Daemon, until
from tests.e2e.repo import DEADLINE_S, Repo
from tests.support.housekeeping import TIDIES_SOON, counted_by_gc
from yolo_fs.system import IS_LINUX

GOOD = artifact("critique", 0)
BAD = b'{"id": "C1"}\n'
SESSION = "apps/web/.local/directives/4f1d2c7a-93b8-4c0e-a6d5-2f8e7b1c9d30"
HANDOFF = f"""---
handoff:
  from_role: architect
  to_role: executor
  directive_branch: directive/login
  trigger: architect_ultra_detected
  session_id: {SESSION.rpartition("/")[2]}
  task_file: none
  objective: "Build the form"
  required_reading: apps/web/docs/guides/component-paradigm.md
  blocking_rule: "architects write no code"
---
"""


@pytest.fixture
def hooked(repo: Repo) -> Repo:
    repo.configure(hooks_hold_people=True)
    repo.yolo_fs("hooks", "install")
    return repo


def git(repo: Repo, *arguments: str, **more: str) -> tuple[int, str]:
    """Run the user's git; return its exit code and what it said on stderr."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=repo.root,
        env={**repo.env, **more},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    return done.returncode, done.stderr


def stage(repo: Repo, path: str, data: bytes) -> None:
    file = repo.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    repo.git("add", "-f", "--", path)


def doctor(repo: Repo) -> list[dict[str, Any]]:
    said = json.loads(repo.yolo_fs("hooks", "doctor", "--json", ok=(0, 1)).stdout)
    assert said["findings"] == []
    return list(said["data"]["past_hooks"])


# --- the message -----------------------------------------------------------------------------------------------------

WRONG = [
    ("fixed the login", "fix(02-01): fixed the login"),
    ("feature: rotate tokens", "feat(02-01): rotate tokens"),
    ("fix(): empty scope", "fix(02-01): empty scope"),
    ("feat!: rotate", "feat(02-01): rotate"),
    ("Fix(01-02) : capital", "fix(01-02): capital"),
    ("docs(2) critique and gap analysis", "docs(02): critique and gap analysis"),
    ("doc(02): plan 02-01", "docs(02): plan 02-01"),
]


@pytest.mark.parametrize(("wrong", "right"), WRONG)
def test_a_wrong_subject_is_refused_with_the_nearest_right_one(
    hooked: Repo, wrong: str, right: str
) -> None:
    hooked.write(artifact("plan", 1))
    code, said = git(hooked, "commit", "--allow-empty", "-m", wrong)
    assert (code, f"Closest valid subject: {right}" in said) == (1, True), said
    hooked.git("commit", "-q", "--allow-empty", "-m", right)
    assert hooked.subjects()[1:] == [right]


@pytest.mark.parametrize(
    "right", ["feat(01-02): T1 rotate", "chore(state): phase 1 complete", "docs(any words): x"]
)
def test_a_right_subject_passes_without_a_word(hooked: Repo, right: str) -> None:
    assert git(hooked, "commit", "-q", "--allow-empty", "-m", right) == (0, "")


def test_what_git_itself_writes_passes(hooked: Repo) -> None:
    hooked.git("switch", "-q", "-c", "side")
    hooked.git("commit", "-q", "--allow-empty", "-m", "feat(x): side")
    hooked.git("switch", "-q", "main")
    hooked.git("merge", "-q", "--no-ff", "--no-edit", "side")
    hooked.commit_file("a.txt", "a", "fix(x): a")
    hooked.git("revert", "--no-edit", "HEAD")
    hooked.git("commit", "-q", "--allow-empty", "--fixup", "HEAD")
    assert hooked.subjects()[-3:] == [
        "fix(x): a",
        'Revert "fix(x): a"',
        'fixup! Revert "fix(x): a"',
    ]


def test_for_one_staged_artifact_the_prescribed_message_is_proposed(hooked: Repo) -> None:
    stage(hooked, GOOD.path, GOOD.data)
    hooked.git("commit", "-q", GIT_EDITOR="true")
    assert hooked.subjects()[-1] == GOOD.subject
    assert "Yolo-Artifact: critique" in hooked.git("log", "-1", "--format=%b")
    assert json.loads(hooked.yolo_fs("verify", "--json").stdout)["data"] == {
        "verified": 1,
        "faults": [],
    }


@pytest.mark.proves("002:267")
def test_an_agent_that_commits_is_named(hooked: Repo) -> None:
    hooked.git("commit", "-q", "--allow-empty", "-m", "feat(01-01): T1 a", YOLO_FS_ROLE="dev")
    assert (
        hooked.git("log", "-1", "--format=%(trailers:key=Executed-By)").strip()
        == "Executed-By: dev"
    )


# --- what is staged --------------------------------------------------------------------------------------------------


def test_an_invalid_artifact_is_refused_and_stays_staged(hooked: Repo) -> None:
    stage(hooked, GOOD.path, BAD)
    code, said = git(hooked, "commit", "-m", GOOD.subject)
    assert (code, "missing_key" in said, GOOD.path in said) == (1, True, True)
    assert hooked.look("diff", "--cached", "--name-only").split() == [GOOD.path]


def test_the_staged_content_counts_and_not_the_work_tree(hooked: Repo) -> None:
    stage(hooked, GOOD.path, GOOD.data)
    (hooked.root / GOOD.path).write_bytes(BAD)
    assert git(hooked, "commit", "-q", "-m", GOOD.subject)[0] == 0
    hooked.git("add", GOOD.path)
    (hooked.root / GOOD.path).write_bytes(GOOD.data)
    assert git(hooked, "commit", "-q", "-m", GOOD.subject)[0] == 1


def test_a_commit_of_one_path_is_judged_by_the_index_that_git_makes_for_it(hooked: Repo) -> None:
    stage(hooked, GOOD.path, BAD)
    hooked.commit_file("src/file1.py", "x = 1\n", "feat(01-01): T1 x")
    assert git(hooked, "commit", "-q", "-m", GOOD.subject, "--", GOOD.path)[0] == 1


def test_it_works_in_a_linked_work_tree_and_from_a_folder_below(hooked: Repo) -> None:
    linked = hooked.root.parent / "linked"
    hooked.git("worktree", "add", "-q", "-b", "other", str(linked))
    other = Repo(linked, hooked.env)
    stage(other, GOOD.path, BAD)
    below = Repo(linked / "src", hooked.env)
    assert git(below, "commit", "-m", GOOD.subject)[0] == 1
    assert git(below, "commit", "--allow-empty", "--only", "-m", "wrong")[0] == 1


@pytest.mark.parametrize(
    ("who", "refused"),
    [
        ({"YOLO_FS_ROLE": "fe-dev"}, True),
        ({"YOLO_FS_AGENT": "yolo-fe-dev", "YOLO_FS_ROLE": "dev"}, True),
        ({"GIT_AUTHOR_NAME": "yolo-fe-dev"}, True),
        ({}, False),
    ],
)
def test_a_role_commits_only_what_it_may_write(
    hooked: Repo, who: dict[str, str], refused: bool
) -> None:
    stage(hooked, "scripts/deploy.sh", b"true\n")
    code, said = git(hooked, "commit", "-m", "feat(01-01): T1 deploy", **who)
    assert (code, "out_of_lane" in said and "fe-dev" in said) == (
        (1, True) if refused else (0, False)
    ), said


def test_an_agent_commits_no_version_without_the_records_of_others(hooked: Repo) -> None:
    first, second = (
        json.dumps({"ts": f"2026-05-04T08:0{n}:00Z", "agent": "lead", "dec": f"Use {n}", "reason": "it fits", "task": ""})
        for n in (1, 2)
    )  # fmt: skip
    path = ".yolo-planning/phases/01-auth/decisions.jsonl"
    stage(hooked, path, f"{first}\n".encode())
    hooked.git("commit", "-q", "-m", "docs(01): decisions")
    stage(hooked, path, f"{second}\n".encode())
    code, said = git(hooked, "commit", "-m", "docs(01): decisions", YOLO_FS_ROLE="lead")
    assert (code, "records_lost" in said) == (1, True), said
    stage(hooked, path, f"{first}\n{second}\n".encode())
    code, said = git(hooked, "commit", "-m", "docs(01): decisions", YOLO_FS_ROLE="lead")
    assert (code, "records_lost" in said) == (0, False), said
    stage(hooked, path, f"{second}\n".encode())
    code, said = git(hooked, "commit", "-m", "docs(01): decisions")
    assert (code, "records_lost" in said) == (0, False), "what a person commits is theirs"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("role", ["executor", "pair", "auditor", "yolo-executor", "emperor"])
def test_no_name_of_a_role_switches_the_check_of_a_commit_off(hooked: Repo, role: str) -> None:
    stage(hooked, GOOD.path, BAD)
    code, said = git(hooked, "commit", "-m", GOOD.subject, YOLO_FS_ROLE=role)
    assert (code, "missing_key" in said, "not checked" in said) == (1, True, False), said
    assert ("unknown_name" in said) is (role == "emperor")
    stage(hooked, GOOD.path, GOOD.data)
    code, said = git(hooked, "commit", "-q", "-m", GOOD.subject, YOLO_FS_ROLE=role)
    assert (code, "Known names: " in said) == ((1, True) if role == "emperor" else (0, False)), said


def test_a_role_that_nobody_has_is_told_so_where_it_commits_source_alone(hooked: Repo) -> None:
    stage(hooked, "src/a.py", b"a = 1\n")
    code, said = git(hooked, "commit", "-q", "-m", "feat(app): add a", YOLO_FS_ROLE="emperor")
    assert (code, "warning" in said, "Known names: " in said) == (0, True, True), said


def test_an_executor_whose_handoff_is_missing_commits_nothing(hooked: Repo) -> None:
    hooked.file(
        f"{SESSION}/README.md",
        "---\nmeta:\n  session_priority: ultra\n  directive_branch: directive/login\n---\n",
    )
    hooked.git("switch", "-q", "-c", "directive/login")
    stage(hooked, "src/a.py", b"a = 1\n")
    message = ("commit", "-q", "-m", "feat(01-01): T1 a")
    code, said = git(hooked, *message, YOLO_FS_ROLE="executor")
    assert (code, "file_missing" in said) == (1, True), said
    assert git(hooked, *message, YOLO_FS_ROLE="pair")[0] == 0


def test_a_commit_to_another_branch_than_the_directives_is_refused(hooked: Repo) -> None:
    hooked.file(
        f"{SESSION}/README.md",
        "---\nmeta:\n  session_priority: ultra\n  directive_branch: directive/login\n---\n",
    )
    hooked.file(f"{SESSION}/HANDOFF.md", HANDOFF)
    hooked.git("branch", "directive/login")
    code, said = git(hooked, "commit", "--allow-empty", "-m", "feat(01-01): T1 a")
    assert (code, "branch_mismatch" in said, "git switch directive/login" in said) == (
        1,
        True,
        True,
    ), said
    hooked.git("switch", "-q", "directive/login")
    assert git(hooked, "commit", "-q", "--allow-empty", "-m", "feat(01-01): T1 a") == (0, "")
    assert "branch_mismatch" in git(hooked, "switch", "main")[1]


# --- what went past --------------------------------------------------------------------------------------------------


def test_a_commit_that_skips_the_hooks_is_noticed_at_once_and_shown_ever_after(
    hooked: Repo,
) -> None:
    stage(hooked, GOOD.path, BAD)
    code, said = git(hooked, "commit", "-q", "--no-verify", "-m", "sneaked in")
    assert (code, "subject_mismatch" in said, "missing_key" in said) == (0, True, True)
    hooked.git("commit", "-q", "--allow-empty", "-m", "feat(01-01): T1 later")
    assert {one["reason"] for one in doctor(hooked)} == {"subject_mismatch", "missing_key"}


def test_status_and_verify_show_what_went_past_the_hooks(hooked: Repo) -> None:
    hooked.git("commit", "-q", "--no-verify", "--allow-empty", "-m", "sneaked in")
    verified = json.loads(hooked.yolo_fs("verify", "--json", ok=(1,)).stdout)
    shown = json.loads(hooked.yolo_fs("status", "--json").stdout)
    for answer in (verified, shown):
        assert [finding["reason"] for finding in answer["findings"]] == ["subject_mismatch"]
    assert b"1 of people's commits bypassed" in hooked.yolo_fs("verify", ok=(1,)).stdout


def test_history_from_before_the_hooks_is_nobodys_fault(hooked: Repo) -> None:
    assert hooked.subjects() == ["chore: begin"]
    assert doctor(hooked) == []


def test_nothing_invalid_leaves(hooked: Repo) -> None:
    hooked.git("init", "-q", "--bare", "../there.git")
    hooked.git("remote", "add", "there", "../there.git")
    hooked.git("push", "-q", "there", "main")
    hooked.git("commit", "-q", "--no-verify", "--allow-empty", "-m", "sneaked in")
    code, said = git(hooked, "push", "-q", "there", "main", "main:new")
    assert (code, "nothing has left" in said) == (1, True)
    hooked.git("commit", "-q", "--amend", "--allow-empty", "-m", "feat(01-01): T1 mended")
    hooked.git("push", "-q", "there", "main", "main:new")
    hooked.git("push", "-q", "there", ":new")
    assert hooked.look("ls-remote", "there").split() == [
        hooked.look("rev-parse", "main").strip(), "HEAD", hooked.look("rev-parse", "main").strip(), "refs/heads/main",
    ]  # fmt: skip


def test_an_invalid_artifact_does_not_leave_under_a_right_subject(hooked: Repo) -> None:
    hooked.git("init", "-q", "--bare", "../there.git")
    stage(hooked, GOOD.path, BAD)
    hooked.git("commit", "-q", "--no-verify", "-m", GOOD.subject)
    code, said = git(hooked, "push", "-q", "../there.git", "main")
    assert (code, "missing_key" in said) == (1, True)


def test_a_rewritten_commit_that_a_summary_names_is_told(hooked: Repo) -> None:
    hooked.commit_file("src/a.py", "a = 1\n", "feat(01-01): T1 a")
    old = hooked.look("rev-parse", "--short=7", "HEAD").strip()
    hooked.file(f"{PLANNING}/phases/01-auth/01-01.summary.jsonl", json.dumps({"ch": [old]}) + "\n")
    code, said = git(hooked, "commit", "-q", "--amend", "-m", "feat(01-01): T1 better")
    assert (code, f"commit {old}" in said) == (0, True)
    assert hooked.look("rev-parse", "--short=7", "HEAD").strip() in said


# --- beside the daemon -----------------------------------------------------------------------------------------------


@contextmanager
def waiting_editor(repo: Repo, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Let the user sit in the editor of a commit that a command begins."""
    pipe = repo.root.parent / "editor"
    os.mkfifo(pipe)
    editor = f'sh -c \'read line < {pipe}; echo "feat(x): by the user" > "$1"\' editor'
    process = subprocess.Popen(command, cwd=repo.root, env={**repo.env, "GIT_EDITOR": editor})
    try:
        yield process
    finally:
        if process.poll() is None:
            pipe.write_text("go on\n")
        process.wait(DEADLINE_S)


def test_a_commit_under_another_name_is_seen_while_its_message_is_written(hooked: Repo) -> None:
    program = f"{hooked.look('--exec-path').strip()}/git-commit"
    marker = hooked.git_dir / "yolo-fs/committing"
    with waiting_editor(hooked, program, "-q", "--allow-empty") as process:
        until(marker.exists, "the hook has named the commit")
        assert marker.read_text().split()[0] == str(process.pid)
        assert hooked.status()["obstacle"] == "user_committing"
    assert (process.returncode, marker.exists(), hooked.status()["obstacle"]) == (0, False, None)


@pytest.mark.skipif(not IS_LINUX, reason="without /proc nothing tells which process started which")
def test_a_commit_that_our_hook_has_named_holds_nothing_once_it_only_tidies_up(
    hooked: Repo,
) -> None:
    for setting in TIDIES_SOON:
        hooked.git("config", *setting)
    for content in counted_by_gc(hooked.look("rev-parse", "--show-object-format").strip()):
        hooked.git("hash-object", "-w", "--stdin", given=content.decode())
    began, go = hooked.root.parent / "began", hooked.root.parent / "go"
    os.mkfifo(go)
    hook = hooked.git_dir / "hooks/pre-auto-gc"
    hook.write_text(f"#!/bin/sh\necho begun >'{began}'\nread _ <'{go}'\nexit 1\n")
    hook.chmod(0o755)
    may_go = os.open(go, os.O_RDWR)
    process = subprocess.Popen(
        ["git", "commit", "-q", "--allow-empty", "-m", "chore(repo): mine"],
        cwd=hooked.root,
        env=hooked.env,
    )
    try:
        until(began.exists, "the commit tidies up")
        marker = hooked.git_dir / "yolo-fs/committing"
        assert marker.read_text().split()[0] == str(process.pid)
        until(lambda: hooked.status()["obstacle"] is None, "nothing holds artifacts up")
        assert process.poll() is None
    finally:
        os.write(may_go, b"go\n")
        assert process.wait(DEADLINE_S) == 0
        os.close(may_go)


def test_five_artifacts_follow_a_commit_that_only_our_hook_has_seen(
    hooked: Repo, start: Callable[..., Daemon]
) -> None:
    artifacts = [artifact("summary", n) for n in range(5)]
    daemon = start(hooked)
    with waiting_editor(
        hooked, f"{hooked.look('--exec-path').strip()}/git-commit", "-q", "--allow-empty"
    ) as process:
        until((hooked.git_dir / "yolo-fs/committing").exists, "the hook has named the commit")
        hooked.write(*artifacts)
        for one in artifacts:
            daemon.wait_for("artifact.held", one.path, "user_committing")
    assert process.returncode == 0
    daemon.wait_committed(artifacts)
    assert hooked.subjects()[1] == "feat(x): by the user"
    assert sorted(hooked.subjects()[2:]) == sorted(one.subject for one in artifacts)


def test_a_marker_of_a_commit_that_was_given_up_holds_nobody(hooked: Repo) -> None:
    code, _ = git(hooked, "commit", "--allow-empty", GIT_EDITOR="false")
    assert code == 1
    assert (hooked.git_dir / "yolo-fs/committing").exists()
    assert hooked.status()["obstacle"] is None


@pytest.mark.parametrize("name", ["pre-commit", "commit-msg", "post-rewrite", "pre-push"])
def test_a_defect_of_ours_lets_git_go_on_and_is_told(repo: Repo, name: str) -> None:
    repo.configure_repository()
    (repo.root / ".git/config").write_text("[")
    done = subprocess.run(
        [sys.executable, "-m", "yolo_fs", "git-hook", name, "none"], cwd=repo.root, text=True,
        env={**repo.env, "YOLO_FS_ROLE": "dev"}, capture_output=True,
        input=f"refs/heads/main {'1' * 40} refs/heads/main {'0' * 40}\n",
    )  # fmt: skip
    assert done.returncode == 0
    assert name == "post-rewrite" or f"{name} was not checked" in done.stderr


def test_without_a_planning_tree_the_hooks_say_nothing(hooked: Repo) -> None:
    hooked.git("rm", "-q", "-r", PLANNING)
    shutil.rmtree(hooked.root / PLANNING, ignore_errors=True)
    assert git(hooked, "commit", "-q", "-m", "anything at all") == (0, "")


# --- what is none of ours --------------------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("branch", ["main", "other"])
@pytest.mark.parametrize("subject", ["chore: add yolo", "unrelated work", "bump 2026-02-19"])
def test_an_agents_ordinary_commit_passes_with_a_hint_at_most(
    repo: Repo, branch: str, subject: str
) -> None:
    repo.yolo_fs("init", "-q")
    if branch != "main":
        repo.git("switch", "-q", "-c", branch)
    repo.git("add", "-A")
    code, said = git(repo, "commit", "-q", "-m", subject, CLAUDECODE="1")
    assert (code, "refused" in said) == (0, False), said
    assert said.count("tip, once a day") == 1
    code, said = git(repo, "commit", "-q", "--allow-empty", "-m", subject, CLAUDECODE="1")
    assert (code, said) == (0, "")
    repo.git("init", "-q", "--bare", "../there.git")
    assert git(repo, "push", "-q", "../there.git", branch, CLAUDECODE="1")[0] == 0
    assert doctor(repo) == []


def test_an_agents_commit_that_names_a_task_or_touches_a_phase_is_judged(repo: Repo) -> None:
    repo.yolo_fs("hooks", "install")
    code, said = git(repo, "commit", "--allow-empty", "-m", "01-01 T1 rotate", CLAUDECODE="1")
    assert (code, "subject_mismatch" in said) == (1, True), said
    stage(repo, GOOD.path, GOOD.data)
    code, said = git(repo, "commit", "-m", "more", CLAUDECODE="1")
    assert (code, "subject_mismatch" in said) == (1, True), said
    assert git(repo, "commit", "-q", "-m", GOOD.subject, CLAUDECODE="1")[0] == 0
