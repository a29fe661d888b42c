"""`python -m tests.e2e.older_version COMMIT NAME`: lets an older version of yolo_fs work in a repository, and keeps
what it leaves as `fixtures/upgrade/NAME.tar.xz`, for `test_upgrade.py`.

It works in places that are always the same, which must not be there, and removes them again.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

from tests.e2e.artifacts import PLANNING
from tests.e2e.daemon import until
from tests.e2e.repo import Repo, environment

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "fixtures/examples/artifacts"
PROGRAM, WORK, HOME = Path("/opt/yolo-fs"), Path("/srv/app"), Path("/home/ada")
PHASE = f"{PLANNING}/phases/01-auth"
USERS_HOOK = "#!/bin/sh\n# a hook of the user\nexit 0\n"
USERS_SETTINGS = '{"permissions": {"allow": ["Bash(ls:*)"]}}\n'


def main(commit: str, name: str) -> None:
    for place in (PROGRAM, WORK, HOME):
        place.mkdir(parents=True)
    try:
        install(commit)
        work()
        with tarfile.open(ROOT / f"fixtures/upgrade/{name}.tar.xz", "w:xz") as archive:
            archive.add(WORK, "app")
            archive.add(HOME, "home")
    finally:
        for place in (PROGRAM, WORK, HOME):
            shutil.rmtree(place)


def install(commit: str) -> None:
    """Put the older version beside the libraries of this environment."""
    packed = subprocess.run(["git", "archive", commit, "yolo_fs", ".yolo-planning-template"], cwd=ROOT, check=True, capture_output=True)  # fmt: skip
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(PROGRAM, filter="data")
    venv.create(PROGRAM, symlinks=True)
    packages = next((PROGRAM / "lib").glob("python*/site-packages"))
    ours = sysconfig.get_paths()["purelib"]
    (packages / "old.pth").write_text(f"{PROGRAM}\nimport site; site.addsitedir({ours!r})\n")
    (PROGRAM / "bin/yolo-fs").write_text(
        f"#!{PROGRAM}/bin/python\nfrom yolo_fs.__main__ import main\nmain()\n"
    )
    (PROGRAM / "bin/yolo-fs").chmod(0o755)


def work() -> None:
    env = environment(HOME) | {"PATH": f"{PROGRAM}/bin:{os.environ['PATH']}"}
    (HOME / ".gitconfig").write_text(
        "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
    )
    repo = Repo(WORK, env)

    def old(*words: str, ok: tuple[int, ...] = (0,)) -> None:
        done = subprocess.run(["yolo-fs", *words], cwd=WORK, env=env, capture_output=True)
        assert done.returncode in ok, (words, done)

    def write(example: str, name: str) -> None:
        repo.file(f"{PHASE}/{name}", (EXAMPLES / example).read_text())

    repo.git("init", "-q")
    repo.commit_file("README.md", "A project.\n", "chore: begin")
    hook = repo.file(".git/hooks/pre-commit", USERS_HOOK)
    hook.chmod(0o755)
    repo.file(".claude/settings.json", USERS_SETTINGS)
    old("init")
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "chore(init): planning tree")
    old("hooks", "install")
    old("setup", "claude")
    old("setup", "codex")
    old("phase", "new", "auth")
    daemon = subprocess.Popen(
        ["yolo-fs", "run", "--json"], cwd=WORK, env=env, stdout=subprocess.DEVNULL, start_new_session=True
    )  # fmt: skip
    try:
        for example, name in (
            ("critique/ok/two_rounds.jsonl", "critique.jsonl"),
            ("research/ok/findings.jsonl", "research.jsonl"),
            ("plan/ok/first_wave.jsonl", "01-01.plan.jsonl"),
        ):
            write(example, name)
            wait_for(repo, name)
        plan = WORK / PHASE / "01-01.plan.jsonl"
        plan.write_text(plan.read_text().replace("Issue access tokens", "Issue tokens"))
        wait_for(repo, "01-01.plan.jsonl", 2)
        old("task", "claim", "01-01/T1", "--as", "dev-1")
        old(
            "escalate", "open", "--task", "01-01/T1", "--from", "dev", "--reason", "Which one?",
            "--evidence", "Both are named.", "--recommendation", "RS256",
        )  # fmt: skip
        wait_for(repo, "escalation.jsonl")
    finally:
        os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait()
    write("plan/ok/turbo.jsonl", "01-03.plan.jsonl")
    repo.file(f"{PHASE}/decisions.jsonl", '{"ts": "never"}\n')
    repo.file(f"{PHASE}/gaps.jsonl", '{"id": "G1", "sev": "cri')


def wait_for(repo: Repo, name: str, versions: int = 1) -> None:
    """Wait until so many versions of an artifact are committed."""
    log = ("log", "--format=%h", "--", f"{PHASE}/{name}")
    until(lambda: len(repo.look(*log).split()) >= versions, f"{name} is committed: {repo.root}")


if __name__ == "__main__":
    main(*sys.argv[1:])
