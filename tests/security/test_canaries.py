"""Nothing that a repository names ever runs, whatever we do in it. See docs/faults.md#f57."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable

from tests.e2e.artifacts import PLANNING, artifact, mixed
from tests.e2e.daemon import Daemon, until
from tests.e2e.repo import DEADLINE_S, Repo
from tests.security.asking import ask
from tests.security.canaries import CANARIES, Cage, by_worktree_config, plant
from tests.security.verbs import ESSENTIAL, PHASE, READERS, of_hosts, questions

Start = Callable[..., Daemon]
ALL = bool(os.environ.get("YOLO_SECURITY"))
HOOKS_OF_A_WORK_TREE = ("pre-commit", "post-commit", "post-index-change", "reference-transaction")


def test_at_least_the_canaries_of_the_plan_are_planted() -> None:
    names = [canary.name for canary in CANARIES]
    assert len(set(names)) == len(names) >= 23


def test_no_canary_sings_for_us_and_each_does_for_stock_git(repo: Repo, start: Start) -> None:
    cage = plant(repo)
    work_in(repo, start)
    ask(
        repo,
        questions(READERS if ALL else ESSENTIAL)
        + of_hosts(str(repo.root), f"{PHASE}/decisions.jsonl"),
    )
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


def test_hooks_doctor_runs_no_script_that_only_stands_where_ours_would(repo: Repo) -> None:
    cage = Cage(repo)
    repo.yolo_fs("hooks", "install")
    cage.write(cage.git_dir / "yolo-fs/git-hook", "impostor")
    (said,) = ask(repo, questions(("hooks doctor",)))
    assert cage.heard() == {}
    assert (said.code, b"it is not that of this version" in said.err) == (1, True)
