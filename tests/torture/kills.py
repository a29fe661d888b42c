"""SIGKILL of the process group, and of every git below it, at random moments and at every named
one. See docs/dev/faults.md#f01 to #f03 and #f05.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from tests.e2e.artifacts import PLANNING, Artifact, artifact, mixed, team
from tests.e2e.company import CONFIG, Write, deeds
from tests.e2e.daemon import DEADLINE_S, Daemon, until
from tests.e2e.repo import Repo
from tests.e2e.test_kills import start_again
from tests.e2e.test_staging import stage_something_of_every_kind
from tests.e2e.test_states import TIMES
from tests.support.objects import unpack
from tests.torture.forked_daemons import ForkedDaemon
from tests.torture.surroundings import FIRED, Ground, Writelog, behind, settled
from yolo_fs.git.packs import REST_MOST
from yolo_fs.progress.state_files import STATE_FILES
from yolo_fs.system.failpoint import STAGES

PER_KILL = 3
PER_REPOSITORY = 40
"""Kills before a repository is judged and a fresh one begun."""


def random_kills(ground: Ground, count: int) -> None:
    """Kill while three artifacts are written, start again, go on; each second time git is killed too."""
    for first in range(0, count, PER_REPOSITORY):
        _one_repository(ground, min(PER_REPOSITORY, count - first))


def _one_repository(ground: Ground, kills: int) -> None:
    repo = ground.repo()
    stage_something_of_every_kind(repo)
    log = Writelog(repo)
    daemon = ground.daemon(repo)
    daemon.start()
    artifacts = mixed(PER_KILL * kills)
    with log.untouched():
        for kill in range(kills):
            _kill_once(
                ground,
                daemon,
                log,
                artifacts[PER_KILL * kill :][:PER_KILL],
                with_helpers=bool(kill % 2),
            )
        settled(daemon)
        log.acknowledged(daemon.mailbox.events)
        daemon.kill()
    ground.judge(repo, log, "random kills")
    ground.forget(repo)


def _kill_once(
    ground: Ground,
    daemon: Daemon,
    log: Writelog,
    artifacts: Sequence[Artifact],
    *,
    with_helpers: bool,
) -> None:
    written = ground.rng.randint(1, len(artifacts))
    log.write(*artifacts[:written])
    threading.Event().wait(ground.rng.choice([0, ground.rng.uniform(0, 0.03)]))
    daemon.kill(with_helpers=with_helpers)
    ground.tally.count += 1
    log.acknowledged(daemon.mailbox.events)
    log.write(*artifacts[written:])
    start_again(daemon, with_helpers=with_helpers)


# --- at every named moment -------------------------------------------------------------------------------------------


def one_new(repo: Repo) -> list[Artifact]:
    return [artifact("plan", 0)]


def one_changed(repo: Repo) -> list[Artifact]:
    one = artifact("plan", 0)
    repo.write(one)
    repo.git("add", "--", one.path)
    repo.git("commit", "-q", "-m", "docs: an earlier plan", "--", one.path)
    return [artifact("plan", 0, version=1)]


def ten_at_once(repo: Repo) -> list[Artifact]:
    return mixed(10)


Situation = Callable[[Repo], list[Artifact]]
"""Prepares a repository and returns what is to be written then."""
SITUATIONS: Sequence[Situation] = (one_new, one_changed, ten_at_once)
OF_A_TEAM = ("states.", "projections.", "sentinels.", "append.")
OF_A_START = ("recovery.", "daemon.", "index.begun", "index.followed", "index.cleared")
"""Where the index follows late, as after a crash."""
MERGE_STAGES = [stage for stage in STAGES if stage.startswith("packs.")]
OF_A_MEETING = ("team.",)
"""Where work trees meet; killed at by tests/e2e/test_team.py."""
STAGES_OF_A_COMMIT = [
    stage
    for stage in STAGES
    if not stage.startswith(("packs.", *OF_A_TEAM, *OF_A_START, *OF_A_MEETING))
]
"""What every commit passes."""


def stage_kills(ground: Ground, count: int) -> None:
    """Kill at every stage that a commit passes: a new artifact, a changed one, ten at once."""
    cases = [(situation, stage) for situation in SITUATIONS for stage in STAGES_OF_A_COMMIT]
    ground.rng.shuffle(cases)
    for situation, stage in itertools.islice(itertools.cycle(cases), count):
        _kill_at(ground, situation, stage)


def _kill_at(ground: Ground, situation: Situation, stage: str) -> None:
    of = f"kill at {stage}, {situation.__name__}"
    repo = ground.repo()
    artifacts = situation(repo)
    stage_something_of_every_kind(repo)
    log = Writelog(repo)
    daemon = ground.daemon(repo)
    with log.untouched():
        # Below the first scan of a run: what is there at the start is committed by the scan, in one chain.
        log.write(*artifacts)
        dies(ground, daemon, log, stage, of)
        comes_back(ground, daemon, log, of)
    ground.judge(repo, log, of)
    ground.forget(repo)


def merge_kills(ground: Ground, count: int) -> None:
    """Kill at every stage of a merge of packs: a start merges those that the last run left."""
    for stage in itertools.islice(itertools.cycle(MERGE_STAGES), count):
        of = f"kill at {stage}"
        repo = ground.repo()
        log, daemon = Writelog(repo), ground.daemon(repo)
        daemon.start()
        for n in range(REST_MOST + 1):
            log.write(artifact("plan", n))
            daemon.wait_committed([artifact("plan", n)])
        daemon.kill()
        log.acknowledged(daemon.mailbox.events)
        dies(ground, daemon, log, stage, of)
        comes_back(ground, daemon, log, of)
        ground.judge(repo, log, of)
        ground.forget(repo)


def dies(ground: Ground, daemon: ForkedDaemon, log: Writelog, stage: str, of: str) -> None:
    """Start a daemon that is to die at a stage; what follows from commits is the observer's work,
    which dies alone, and the daemon right after it.
    """
    daemon.rearmed(f"{stage}:kill")
    daemon.begin()
    if stage.startswith(OF_A_TEAM):
        with contextlib.suppress(AssertionError):  # which is told below
            until(lambda: f"{FIRED}{stage}\n" in daemon.complaints(), "it fires", DEADLINE_S)
        daemon.kill()
    elif (code := daemon.ended()) != -signal.SIGKILL:
        ground.fault(f"{of}: ended with {code}")
    ground.fired(daemon, stage, of)
    log.acknowledged(daemon.mailbox.events)


def comes_back(
    ground: Ground,
    daemon: ForkedDaemon,
    log: Writelog,
    of: str,
    end: Callable[[Daemon], object] = Daemon.kill,
) -> None:
    """Start again without faults, until everything is committed; then kill once more, which is quicker than asking."""
    daemon.rearmed("")
    daemon.start()
    settles(ground, daemon, of)
    end(daemon)
    log.acknowledged(daemon.mailbox.events)


def settles(ground: Ground, daemon: Daemon, of: str) -> None:
    """Wait until everything is committed; say it when it does not come to that."""
    try:
        settled(daemon)
    except AssertionError:
        ground.fault(f"{daemon.repo.root.name}: {of}: not settled: {behind(daemon.repo)[:3]}")


# --- during recovery -------------------------------------------------------------------------------------------------


def after_a_reboot(repo: Repo, log: Writelog, daemon: ForkedDaemon, one: Artifact) -> None:
    """Leave what a power loss leaves: an empty object that the branch names, an index that did not follow, no note."""
    log.write(one)
    daemon.rearmed("refs.moved:kill")
    daemon.begin()
    daemon.ended()
    own = repo.git_dir / "yolo-fs"
    (own / "boot.json").write_text('{"boot": "another"}\n')
    (own / "index-pending").unlink()
    unpack(repo.root)
    blob = repo.git_dir / "objects" / one.blob()[:2] / one.blob()[2:]
    blob.chmod(0o600)
    blob.write_bytes(b"")


def _after_a_kill(repo: Repo, log: Writelog, daemon: ForkedDaemon, one: Artifact) -> None:
    log.write(one)
    daemon.rearmed("refs.noted:kill")
    daemon.begin()
    daemon.ended()


_REBOOT = (
    "recovery.booted",
    "recovery.aside",
    "recovery.restored",
    "recovery.expected",
    "recovery.followed",
    "index.begun",
    "index.followed",
    "index.cleared",
)


def recovery_kills(ground: Ground, count: int) -> None:
    """Kill at each stage of a start that repairs, once and three times in a row."""
    stages = [stage for stage in STAGES if stage.startswith(OF_A_START)]
    ground.rng.shuffle(stages)
    for turn, stage in enumerate(itertools.islice(itertools.cycle(stages), count)):
        kill_recovery(ground, stage, 3 if turn % 2 else 1)


def kill_recovery(ground: Ground, stage: str, times: int) -> None:
    of = f"kill at {stage}, {times} times"
    repo = ground.repo()
    log = Writelog(repo)
    daemon = ground.daemon(repo)
    one = ground.rng.choice(team())
    (after_a_reboot if stage in _REBOOT else _after_a_kill)(repo, log, daemon, one)
    log.write(*mixed(4, first=100))
    daemon.rearmed(f"{stage}:kill")
    for _ in range(times):
        daemon.begin()
        until(
            lambda: daemon.is_ready() or not daemon.is_running,
            "it is dead, or has nothing left to die over",
        )
        daemon.kill()
        log.acknowledged(daemon.mailbox.events)
    ground.fired(daemon, stage, of)
    comes_back(ground, daemon, log, of)
    ground.judge(repo, log, of)
    ground.forget(repo)


# --- between a commit and what is computed from it -------------------------------------------------------------------


def as_a_team(repo: Repo, state_files: str = "always") -> None:
    """Configure three departments, whose status and state files are computed from commits."""
    config = CONFIG | {"yolo_fs": CONFIG["yolo_fs"] | {"state_files": state_files}}
    repo.file(f"{PLANNING}/config.json", json.dumps(config))
    repo.git("add", "-f", "--", f"{PLANNING}/config.json")
    repo.git("commit", "-q", "-m", "chore: a team", "--", f"{PLANNING}/config.json")


def until_the_design_is_done() -> list[Write]:
    """Return the artifacts of a phase up to the gate that the design opens."""
    writes = [write for _, of in deeds() for write in of if not write.subject]
    last = next(
        at for at, write in enumerate(writes) if write.path.endswith("design-handoff.jsonl")
    )
    return writes[: last + 1]


TEAM_STAGES = [
    stage for stage in STAGES if stage.startswith(OF_A_TEAM) and not stage.startswith("append.")
]


def team_kills(ground: Ground, count: int) -> None:
    """Kill at each stage between a commit and what is computed from it; afterwards it says what an undisturbed run says."""
    stages = list(TEAM_STAGES)
    ground.rng.shuffle(stages)
    undisturbed = cache(lambda mode: _computed(ground, "", mode))
    for stage in itertools.islice(itertools.cycle(stages), count):
        mode = "kept" if stage.startswith("states.ke") else "always"
        if (computed := _computed(ground, stage, mode)) != undisturbed(mode):
            ground.fault(f"kill at {stage}: {_differences(computed, undisturbed(mode))}")


def _differences(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    names = [name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name)]
    return "; ".join(f"{name}: {found.get(name)} instead of {wanted.get(name)}" for name in names)[
        :1500
    ]


def _computed(ground: Ground, stage: str, state_files: str) -> dict[str, Any]:
    """Let a team's artifacts be committed, killed at a stage if one is named, and return what is computed from them."""
    of = f"kill at {stage}, a team"
    repo = ground.repo()
    as_a_team(repo, state_files)
    log, daemon = Writelog(repo), ground.daemon(repo)
    log.write(
        *(Artifact(write.path, write.text.encode(), "") for write in until_the_design_is_done())
    )
    if stage:
        dies(ground, daemon, log, stage, of)
    comes_back(ground, daemon, log, of, end=Daemon.stop)
    repo.yolo_fs(
        "run", "--once", "-q"
    )  # it may have ended between a commit and what follows from it
    found = {
        str(path.relative_to(repo.root)): _timeless(json.loads(path.read_text()))
        for path in sorted((repo.root / PLANNING).rglob(".*")) if path.is_file() and path.suffix == ".json"
    }  # fmt: skip
    if not any("dept-status" in name for name in found):
        ground.fault(f"{of}: nothing was computed")
    if stage:
        _judge_what_we_wrote(ground, repo, log, of)
    ground.forget(repo)
    return found


def _timeless(value: Any) -> Any:
    """Return a state without what tells when, or how often, it was written, and after which commit."""
    if not isinstance(value, dict):
        return value
    own = (*TIMES, "completed_at", "started", "checksum", "projected", "commit", "last_updated")
    return {key: _timeless(what) for key, what in value.items() if key not in own}


def _judge_what_we_wrote(ground: Ground, repo: Repo, log: Writelog, of: str) -> None:
    """Judge; the state files, which the daemon writes itself, count as written by the time they are committed."""
    shown = repo.look(
        "log",
        "--reverse",
        "--format=",
        "--raw",
        "--no-abbrev",
        "--no-renames",
        "HEAD",
        "--",
        PLANNING,
    )
    for line in filter(None, shown.splitlines()):
        facts, _, path = line.partition("\t")
        if path.endswith(STATE_FILES):
            blob = facts.split(" ")[3]
            log.note(Artifact(path, repo.look("cat-file", "blob", blob).encode(), ""))
    ground.judge(repo, log, of)
