"""A person's commit succeeds in a repository with our hooks, whatever its message; agents are held to the rules."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess

import pytest

from tests.e2e.artifacts import artifact
from tests.e2e.repo import DEADLINE_S, Repo

GOOD = artifact("critique", 0)
BAD = b'{"id": "C1"}\n'
MESSAGES = [
    "wip",
    "Fixed the login page!!",
    "feat: without a scope",
    "feat(01-02) : malformed",
    "v1.2.3",
    "ä ö ü \N{PARTY POPPER}",
    "-- dashes",
    "a" * 300,
    "'quotes\" $(and) `more`",
]
ALL = bool(os.environ.get("YOLO_SECURITY"))
"""Every command in every surrounding; otherwise every one in a shell, and some in the others."""
AGENTS = [{"CLAUDECODE": "1"}, {"CODEX_SANDBOX": "seatbelt"}, {"CURSOR_AGENT": "1"}]


@pytest.fixture
def hooked(repo: Repo) -> Repo:
    repo.yolo_fs("init")
    return repo


def git(repo: Repo, *arguments: str, **more: str) -> tuple[int, str]:
    done = subprocess.run(
        ["git", *arguments],
        cwd=repo.root,
        env={**repo.env, **more},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    return done.returncode, done.stderr


def commits(repo: Repo) -> int:
    return int(repo.look("rev-list", "--count", "HEAD"))


def stage(repo: Repo, path: str, data: bytes) -> None:
    file = repo.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    repo.git("add", "-f", "--", path)


@pytest.mark.proves("hosts:22")
@pytest.mark.parametrize("message", MESSAGES)
def test_any_message_of_a_person_is_committed(hooked: Repo, message: str) -> None:
    code, told = git(hooked, "commit", "-q", "--allow-empty", "-m", message)
    assert (code, hooked.subjects()[-1]) == (0, message), told


def test_the_hint_comes_once_a_day(hooked: Repo) -> None:
    told = [git(hooked, "commit", "-q", "--allow-empty", "-m", f"wip {n}")[1] for n in range(3)]
    assert ["once a day" in one for one in told] == [True, False, False]
    assert told[1:] == ["", ""]
    hint = hooked.git_dir / "yolo-fs/hinted"
    os.utime(hint, (1, 1))
    assert "once a day" in git(hooked, "commit", "-q", "--allow-empty", "-m", "wip")[1]
    hooked.yolo_fs("hooks", "uninstall")
    assert not hint.exists()


EDITOR = "/bin/sh -c 'echo typed by hand > \"$1\"' editor"
WAYS = (
    "commit -q --allow-empty -m 'any words'", "commit -q --allow-empty -F ../message", "commit -q --allow-empty -t ../message",
    "commit -q --allow-empty -C HEAD", "commit -q --allow-empty --fixup HEAD", "commit -q --allow-empty --squash HEAD -m more",
    "commit -q --amend --allow-empty --no-edit", "commit -q --amend --allow-empty -F ../message", "commit -q --amend --allow-empty",
    "commit -q --allow-empty", "-c core.editor='EDITOR' commit -q --allow-empty", "-c core.editor=: commit -q --amend --allow-empty",
    "commit -q --allow-empty -s -v", "commit -q --allow-empty --no-verify -m 'any words'", "commit -q -o README.md -m 'any words'",
    "revert --no-edit HEAD", "rebase -q -i --autosquash HEAD~3", "rebase -q --force-rebase HEAD~2", "cherry-pick --allow-empty --keep-redundant-commits HEAD",
    "merge -q --no-ff side", "pull -q --no-rebase --no-ff --no-edit . side", "am -q ../0001.patch",
)  # fmt: skip


@pytest.mark.proves("hosts:22")
@pytest.mark.parametrize("beside", ["shell", "graphical client", "husky"])
def test_whatever_command_makes_it_a_commit_of_a_person_succeeds(hooked: Repo, beside: str) -> None:
    """Shells, clients that bring their own editor and no PATH, and hooks in a folder of the tree."""
    if beside == "husky":
        hooked.yolo_fs("hooks", "uninstall")
        hooked.file(".husky/commit-msg", "#!/bin/sh\nexit 0\n").chmod(0o755)
        hooked.git("config", "core.hooksPath", ".husky")
        hooked.yolo_fs("hooks", "install")
    hooked.file("../message", "written in a file, without a type\n")
    for number in range(3):  # what is rebased
        hooked.git("commit", "-q", "--allow-empty", "-m", f"before, {number}")
    hooked.git("branch", "side")
    more = {"GIT_EDITOR": EDITOR, "GIT_SEQUENCE_EDITOR": ":"}
    git = "git"
    if beside == "graphical client":
        git = shutil.which("git") or git
        more |= {"PATH": ""}
    for number, way in enumerate(WAYS if beside == "shell" or ALL else WAYS[::8]):
        for line in _prepared(hooked, way, number):
            hooked.git(*shlex.split(line))
        line = way.replace("EDITOR", EDITOR.replace("'", "'\\''"))
        done = subprocess.run(
            [git, *shlex.split(line)], cwd=hooked.root, env={**hooked.env, **more},
            capture_output=True, text=True, timeout=DEADLINE_S,
        )  # fmt: skip
        assert done.returncode == 0, (way, done.stdout, done.stderr)


def _prepared(repo: Repo, way: str, number: int) -> list[str]:
    """Return what comes before such a commit: a changed file, a branch that goes ahead, a patch."""
    if "README" in way:
        repo.file("README.md", f"A project, change {number}.\n")
    repo.file("../0001.patch", PATCH)
    ahead = ["switch -q side", "commit -q --allow-empty -m ahead", "switch -q main"]
    return ahead if "side" in way else []


PATCH = """\
From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: Ada <ada@example.org>
Date: Thu, 19 Feb 2026 08:00:00 +0000
Subject: [PATCH] a patch by mail

---
 mailed.txt | 1 +
 1 file changed, 1 insertion(+)

diff --git a/mailed.txt b/mailed.txt
new file mode 100644
--- /dev/null
+++ b/mailed.txt
@@ -0,0 +1 @@
+mailed
--
2.39.5
"""


@pytest.mark.parametrize(
    "given", [{}, {"PATH": ""}, {"HOME": "/nowhere", "PYTHONHOME": "/nowhere"}]
)
def test_an_editor_without_a_path_or_a_home_commits(hooked: Repo, given: dict[str, str]) -> None:
    program = subprocess.run(
        ["sh", "-c", "command -v git"], capture_output=True, text=True, check=True
    ).stdout.strip()
    identity = {
        f"GIT_{who}_{what}": "ada@x"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    done = subprocess.run(
        [program, "commit", "-q", "--allow-empty", "-m", "from the editor"],
        cwd=hooked.root, env={**identity, **given}, capture_output=True, text=True, timeout=DEADLINE_S,
    )  # fmt: skip
    assert (done.returncode, hooked.subjects()[-1]) == (0, "from the editor"), done.stderr
    assert "not found" not in done.stderr


def test_an_interpreter_that_is_gone_or_broken_holds_nobody(hooked: Repo) -> None:
    script = hooked.git_dir / "yolo-fs/git-hook"
    text = script.read_text()
    for broken in ("/nowhere/python", "/bin/false"):
        lines = [
            f"python={broken}" if line.startswith("python=") else line for line in text.splitlines()
        ]
        script.write_text("\n".join(lines) + "\n")
        assert git(hooked, "commit", "-q", "--allow-empty", "-m", "wip")[0] == 0


def test_a_persons_invalid_artifact_is_a_warning(hooked: Repo) -> None:
    stage(hooked, GOOD.path, BAD)
    code, told = git(hooked, "commit", "-q", "-m", "try it")
    assert (code, "warning" in told, "missing_key" in told) == (0, True, True)
    hooked.git("init", "-q", "--bare", "../there.git")
    code, told = git(hooked, "push", "-q", "../there.git", "main")
    assert (code, "missing_key" in told) == (0, True)


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_is_held_to_the_rules(hooked: Repo, agent: dict[str, str]) -> None:
    before = commits(hooked)
    code, told = git(hooked, "commit", "--allow-empty", "-m", "wip of 01-01", **agent)
    assert (code, "Closest valid subject" in told) == (1, True)
    stage(hooked, GOOD.path, BAD)
    code, told = git(hooked, "commit", "-m", GOOD.subject, **agent)
    assert (code, "missing_key" in told, commits(hooked)) == (1, True, before)


def test_a_team_may_have_people_held_as_well(hooked: Repo) -> None:
    hooked.configure_repository(hooks_hold_people=True)
    assert git(hooked, "commit", "--allow-empty", "-m", "wip")[0] == 1
    stage(hooked, GOOD.path, BAD)
    assert git(hooked, "commit", "-m", GOOD.subject)[0] == 1


def test_ordinary_commits_of_people_are_nobodys_fault(hooked: Repo) -> None:
    hooked.git("commit", "-q", "--allow-empty", "-m", "wip")
    hooked.yolo_fs("verify")
    assert b"wip" not in hooked.yolo_fs("status").stdout


FOREIGN = "#!/usr/bin/env python3\nimport os, sys\nopen('ran', 'a').write(os.path.basename(sys.argv[0]) + ' '.join(sys.argv[1:]))\n"


def test_a_hook_in_another_language_is_chained_and_given_back(repo: Repo) -> None:
    hook = repo.git_dir / "hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(FOREIGN)
    hook.chmod(0o755)
    for _ in range(2):
        repo.yolo_fs("hooks", "install")
    repo.yolo_fs("hooks", "doctor")
    assert git(repo, "commit", "-q", "--allow-empty", "-m", "wip")[0] == 0
    assert (repo.root / "ran").read_text() == "pre-commit"
    stage(repo, GOOD.path, BAD)
    assert git(repo, "commit", "-q", "-m", GOOD.subject, CLAUDECODE="1")[0] == 1
    repo.yolo_fs("hooks", "uninstall")
    assert (hook.read_text(), hook.stat().st_mode & 0o777) == (FOREIGN, 0o755)
    assert not (hook.parent / "yolo-fs-chained").exists()


@pytest.mark.proves("hosts:17")
@pytest.mark.parametrize("size", [64, 2 << 20])
def test_a_compiled_hook_of_any_size_is_chained(repo: Repo, size: int) -> None:
    program = b"\x7fELF" + b"\0" * size
    hook = repo.git_dir / "hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_bytes(program)
    hook.chmod(0o755)
    repo.yolo_fs("hooks", "install")
    assert hook.read_bytes().startswith(b"#!/bin/sh\n")
    assert (hook.parent / "yolo-fs-chained" / hook.name).read_bytes() == program
    repo.yolo_fs("hooks", "uninstall")
    assert hook.read_bytes() == program


def test_a_chained_hook_still_refuses(repo: Repo) -> None:
    hook = repo.git_dir / "hooks/commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/usr/bin/env python3\nraise SystemExit(3)\n")
    hook.chmod(0o755)
    repo.yolo_fs("hooks", "install")
    assert git(repo, "commit", "-q", "--allow-empty", "-m", "feat(x): y")[0] == 1
