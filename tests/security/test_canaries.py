"""Nothing that a repository names ever runs, whatever we do in it. See docs/dev/faults.md#f57."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.e2e.artifacts import PLANNING, artifact, mixed
from tests.e2e.daemon import Daemon, until
from tests.e2e.repo import DEADLINE_S, Repo
from tests.security.asking import ask
from tests.security.canaries import (
    CANARIES,
    KEYS,
    NO_PROGRAM,
    SILENT_HOOKS,
    Cage,
    by_worktree_config,
    plant,
)
from tests.security.verbs import questions
from yolo_fs.git.repository import Repository
from yolo_fs.git.work_trees import add_work_tree, fast_forward, remove_work_tree

Start = Callable[..., Daemon]
HOOKS_OF_A_WORK_TREE = ("pre-commit", "post-commit", "post-index-change", "reference-transaction")


_SOUNDS = re.compile(
    r"command|cmd|program|helper|editor|pager|hook|driver|clean|smudge|textconv|external|proxy|askpass"
    r"|uploadpack|receivepack|vcs|alias|browser|viewer|tool|template|fsmonitor|insteadof|url|include"
    r"|path|filter|tunnel|httpd|submodule.*update|sequence",
    re.IGNORECASE,
)
"""How the name of a key sounds that may name a program."""


def test_each_key_of_this_git_that_may_name_a_program_has_a_canary_or_a_reason() -> None:
    listed = subprocess.run(["git", "help", "--config"], capture_output=True, text=True, check=True)
    keys = [key for key in listed.stdout.split() if "." in key and _SOUNDS.search(key)]
    assert len(keys) > 80
    known = [re.compile(pattern) for pattern in (*KEYS, *NO_PROGRAM)]
    assert [key for key in keys if not any(each.match(key) for each in known)] == []
    names = {canary.name for canary in CANARIES} | {"(the configuration of one work tree names it)"}
    assert set(KEYS.values()) <= names


def test_each_hook_of_this_git_is_planted(repo: Repo) -> None:
    cage = plant(repo)
    made = set(os.listdir(cage.git_dir / "hooks"))
    report = repo.root.parent / "report"
    env = {**repo.env, "GIT_EDITOR": "true"}
    subprocess.run(["git", "bugreport", "-o", report, "-s", "x"], cwd=repo.root, env=env, check=False, capture_output=True)  # fmt: skip
    known = (report / "git-bugreport-x.txt").read_text().partition("[Enabled Hooks]")[2].split()
    assert len(known) > 20, "git knows their names"
    assert set(known) <= made
    assert set(SILENT_HOOKS) <= made


def test_no_canary_sings_for_us_and_each_does_for_stock_git(repo: Repo, start: Start) -> None:
    cage = plant(repo)
    work_in(repo, start)
    assert cage.heard() == {}
    mute = [canary.name for canary in CANARIES if not sings(cage, canary.name, canary.sing)]
    assert mute == []


def work_in(repo: Repo, start: Start) -> None:
    """Let a daemon commit, hold, and ask git for an object that is nowhere."""
    daemon, artifacts, held = start(repo), mixed(12), artifact("critique", 0)
    lost = artifact("summary", 15)
    repo.write(*artifacts[:4], held)
    daemon.wait_committed(artifacts[:4])
    daemon.wait_for("artifact.held", held.path, "attr_filter")
    repo.write(
        lost._replace(
            data=lost.data.replace(b'"ch": []', b"").replace(
                b'"ch":[]', b'"ch":["%s"]' % (b"12" * 20)
            )
        )
    )
    daemon.wait_for("artifact.rejected", lost.path, "unknown_commit")
    repo.write(*artifacts[4:])
    daemon.wait_committed(artifacts)
    assert daemon.stop() == 0


def sings(cage: Cage, name: str, command: str) -> bool:
    """Do what the user would do, and tell whether the canary ran; its name is free again afterwards."""
    done = subprocess.run(
        ["sh", "-c", command], cwd=cage.repo.root, env=cage.repo.env | {"GIT_MERGE_AUTOEDIT": "no"},
        stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    if name not in cage.sang():
        print(name, done.returncode, done.stdout, done.stderr)
    return name in cage.sang()


def test_a_filter_for_a_file_that_changed_as_the_index_did_does_not_run_either(
    repo: Repo, start: Start
) -> None:
    """git compares the content of such a file, through its filter, whenever it writes the index."""
    one, ahead_s = artifact("plan", 0), time.time() + 3_600
    for path in (repo.root / "README.md", *(repo.root / "src").iterdir()):
        os.utime(path, (ahead_s, ahead_s))
    repo.git("update-index", "--refresh", "-q")
    cage = plant(repo)
    daemon = start(repo)
    repo.write(one)
    daemon.wait_committed([one])
    until(lambda: not index_differs(repo), "the index follows")
    assert daemon.stop() == 0
    assert cage.heard() == {}


def index_differs(repo: Repo) -> bool:
    """Compare the index with HEAD through plumbing that runs no command of the repository."""
    return bool(
        repo.look(
            "-c", "core.fsmonitor=false", "diff-index", "--cached", "--raw", "HEAD", "--", PLANNING
        )
    )


def test_the_configuration_of_one_work_tree_names_hooks_in_vain(repo: Repo) -> None:
    cage, artifacts = by_worktree_config(repo, HOOKS_OF_A_WORK_TREE), mixed(4)
    repo.write(*artifacts)
    ask(
        repo,
        questions(("run --once", "status", "verify", "hooks doctor", "hooks install --dry-run")),
    )
    assert len(repo.subjects()) == 1 + len(artifacts)
    assert cage.heard() == {}
    repo.git("commit", "-q", "--allow-empty", "-m", "chore: these sing")
    repo.git("status")
    assert cage.sang() >= {*HOOKS_OF_A_WORK_TREE, "core.fsmonitor"}


def test_the_work_tree_of_a_dev_is_made_moved_on_and_removed_in_silence(
    repo: Repo, tmp_path: Path
) -> None:
    """git compares the files of a work tree before it removes it, through the filters that apply there."""
    repo.git("commit", "-q", "--allow-empty", "-m", "chore: next")
    repo.git("config", "extensions.worktreeConfig", "true")
    cage, branch = plant(repo), "yolo/dev/01-auth/01-01"
    with Repository(str(repo.root)) as repository:
        first, second = (str(repository.tip(name)) for name in ("HEAD~1", "HEAD"))
        tree = add_work_tree(repository, str(tmp_path / "tree"), branch, first)
        with open(cage.git_dir / "info/attributes", "a") as attributes:
            attributes.write("src/file5.py filter=alone\n")
        config = f'[filter "alone"]\n\tclean = {cage.script("alone")}\n'
        (Path(tree.git_dir) / "config.worktree").write_text(config)
        cage.silence()
        assert fast_forward(tree, second) is None
        for path in (tmp_path / "tree").rglob("*.*"):
            os.utime(path)
        tree.close()
        assert remove_work_tree(repository, tree.root, branch)
    assert cage.heard() == {}


def test_hooks_doctor_runs_no_script_that_only_stands_where_ours_would(repo: Repo) -> None:
    cage = Cage(repo)
    repo.yolo_fs("hooks", "install")
    cage.write(cage.git_dir / "yolo-fs/git-hook", "impostor")
    (said,) = ask(repo, questions(("hooks doctor",)))
    assert cage.heard() == {}
    assert (said.code, b"the script belongs to another version" in said.err) == (1, True)
