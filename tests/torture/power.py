"""The power fails: every state that the recorded writes may leave on the disk is recovered from.
See docs/dev/faults.md#f04.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.e2e.artifacts import Artifact, mixed
from tests.e2e.repo import Repo
from tests.e2e.test_kills import start_again
from tests.torture.recording import STRACE, Disk, Op, copied, operations
from tests.torture.surroundings import Ground, SkipError, Writelog, settled

PER_RECORDING = 100


class Recording(NamedTuple):
    """What a few runs did to a git directory."""

    repo: Repo
    """As it was when the recording began: nothing of the artifacts is there."""
    artifacts: tuple[Artifact, ...]
    ops: tuple[Op, ...]
    begin: Path
    """The git directory as it was before."""


def power_loss(ground: Ground, count: int) -> None:
    """Cut the power at a random moment of a recording, in a random legal way, that many times."""
    if shutil.which("strace") is None:
        raise SkipError("needs strace")
    for first in range(0, count, PER_RECORDING):
        recording = recorded(ground, rounds=1 if count < PER_RECORDING else 3)
        for _ in range(min(PER_RECORDING, count - first)):
            _cut(ground, recording, random.Random(ground.rng.random()))
        ground.forget(recording.repo)


def recorded(ground: Ground, rounds: int = 2) -> Recording:
    """Record a few runs of the program, one after the other, so that later ones find what earlier ones made."""
    repo = ground.repo(durability="fsync")
    begin = ground.place / f"{repo.root.name}.begin"
    shutil.copytree(repo.git_dir, begin)
    written = _written(ground.rng)[:rounds]
    ops: list[Op] = []
    for artifacts in written:
        repo.write(*artifacts)
        ops += _run(ground, repo)
    assert any(op.name == "sync" for op in ops), "nothing was synced: the recording shows nothing"
    return Recording(
        repo, tuple(one for artifacts in written for one in artifacts), tuple(ops), begin
    )


def _written(rng: random.Random) -> Sequence[Sequence[Artifact]]:
    """Return what is written before each run: a few artifacts, a pack of them, one; the first two in any order."""
    rounds = [mixed(3, first=1), mixed(12, first=20)]
    rng.shuffle(rounds)
    return [*rounds, mixed(1)]


def _run(ground: Ground, repo: Repo) -> list[Op]:
    """Run `yolo-fs run --once` under strace; what it says is one of its operations."""
    trace, said = ground.place / "trace", ground.place / "said"
    with open(said, "wb") as out:
        done = subprocess.run(
            [*STRACE, "-o", str(trace), sys.executable, "-m", "yolo_fs", "run", "--once", "--json"],
            cwd=repo.root, env=repo.env, stdout=out, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
    if done.returncode:
        raise SkipError(f"strace may not trace here: {done.stderr[-200:]!r}")
    concerned = (str(repo.git_dir), str(said))
    return [op for op in operations(trace) if op.path.startswith(concerned)]


def _cut(ground: Ground, recording: Recording, rng: random.Random) -> None:
    crash = rng.randint(1, len(recording.ops))
    of = f"power loss after {crash} of {len(recording.ops)}"
    root = ground.place / "restored"
    copied(recording.repo.root, root, left_out={".git": 0})
    disk = Disk(recording.begin)
    said = _replayed(disk, recording, crash)
    disk.crashed(root / ".git", rng)
    repo = Repo(root, recording.repo.env)
    keeps_files = rng.random() < 0.7
    log = _log_of(recording, repo, said, keeps_files=keeps_files)
    _reboot(repo)
    ground.tally.count += 1
    daemon = ground.daemon(repo)
    try:
        start_again(
            daemon, with_helpers=True
        )  # a lock of git that was left is the user's to remove
        if keeps_files:
            settled(daemon)
    except AssertionError as error:
        ground.fault(f"{of}: {str(error)[:200]}; {_standing(repo)}")
    daemon.kill()
    log.acknowledged(daemon.mailbox.events)
    ground.judge(repo, log, of)
    log.path.unlink()
    shutil.rmtree(root)


def _replayed(disk: Disk, recording: Recording, crash: int) -> str:
    """Carry out the operations before the crash, and return what the program had said by then."""
    git_dir, begin, said = str(recording.repo.git_dir), str(recording.begin), b""
    for op in recording.ops[:crash]:
        if op.path.startswith(git_dir):
            disk.do(
                op._replace(
                    path=op.path.replace(git_dir, begin, 1),
                    other=op.other.replace(git_dir, begin, 1),
                )
            )
        elif op.name == "write":
            said += op.data
    return said.decode()


def _log_of(recording: Recording, repo: Repo, said: str, *, keeps_files: bool) -> Writelog:
    """Return the log of a state: what was said before the crash counts, and the agents' files may be gone as well."""
    log = Writelog(repo, branches=())
    log.branch("main", recording.repo.look("rev-list", "--max-parents=0", "main").strip())
    for one in recording.artifacts:
        log.note(one, passing=not keeps_files)
        if not keeps_files:
            os.unlink(repo.root / one.path)
    log.acknowledged([json.loads(line) for line in said.splitlines() if line.endswith("}")])
    return log


def _reboot(repo: Repo) -> None:
    """The machine was off: another boot."""
    note = repo.root / ".git/yolo-fs/boot.json"
    if note.exists() and note.read_bytes().startswith(b"{"):
        note.write_text('{"boot": "the one before"}\n')


def _standing(repo: Repo) -> str:
    shown = repo.yolo_fs("status", "--json", ok=range(256)).stdout
    found = json.loads(shown).get("data") or {}
    behind = repo.git("status", "--porcelain", "-uall", ok=range(256), GIT_OPTIONAL_LOCKS="0")
    return (
        str([one for one in found.get("candidates", []) if one["standing"] != "committed"][:2])
        + behind[:300]
    )
