"""Killed at every point between commit and projection, the daemon ends with the state files of an undisturbed run.

The phase is played in four parts. For each part, and each moment that the coordinator comes to in
it, the repository as it was before the part is restored, the coordinator is killed at that moment
and started again; then history has to be the very same. As each part ends where the next begins,
that covers the phase. Every moment with `YOLO_TORTURE=1`; else every seventh one. See
docs/dev/faults.md#f01.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.crash_before_projection import KILLED
from tests.e2e.repo import Repo, make_repo
from yolo_fs.system import IS_LINUX

PHASE = ".yolo-planning/phases/01-auth"
EXAMPLES = Path(__file__).parents[2] / "fixtures/examples/artifacts"
CONFIG = {
    "departments": {"uiux": True},
    "department_workflow": "parallel",
    "effort": "turbo",
    "documenter": "never",
    "security_audit": False,
    "yolo_fs": {"state_files": "always"},
}
STRIDE = 1 if os.environ.get("YOLO_TORTURE") else 7
TRIES = 5
"""Times that a part is played again that went another way, and a kill tried again that came elsewhere."""
TIMES = ("started_at", "updated_at", "seq")
"""Keys of a department's status that tell when it was written, or how often."""
DAY = {"GIT_AUTHOR_DATE": "2026-02-19T08:00:00Z", "GIT_COMMITTER_DATE": "2026-02-19T08:00:00Z"}


class Part(NamedTuple):
    """A part of the phase that was played without disturbance."""

    before: Path
    """The repository, with the artifacts written and nothing done yet."""
    after: Path
    moments: tuple[str, ...]
    """Every moment at which the coordinator can be killed."""


class Coordinator:
    """The process that runs yolo-fs and lets it die."""

    def __init__(self, home: Path, env: dict[str, str]) -> None:
        self._notes = home / "moments"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.crash_before_projection"], env={**env, "PYTHONPATH": os.getcwd()},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, root: Path, dies_at: int = 0) -> int:
        """Run `yolo-fs run --once` and return its exit code; it dies at a moment, counted from 1."""
        assert self._process.stdin is not None and self._process.stdout is not None
        order = {"root": str(root), "dies_at": dies_at, "notes": str(self._notes)}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def moments(self) -> tuple[str, ...]:
        """Return the moments of the last run."""
        return tuple(self._notes.read_text().splitlines())

    def end(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    repo = make_repo(home / "unused", home)
    if not IS_LINUX:
        repo.configure(settle_ms=0)  # when a file has settled is no moment that comes twice
    return repo.env


@pytest.fixture(scope="module")
def coordinator(
    tmp_path_factory: pytest.TempPathFactory, env: dict[str, str]
) -> Iterator[Coordinator]:
    process = Coordinator(tmp_path_factory.mktemp("dying"), env)
    yield process
    process.end()


@pytest.fixture(scope="module")
def parts(
    tmp_path_factory: pytest.TempPathFactory, env: dict[str, str], coordinator: Coordinator
) -> list[Part]:
    """Play the phase undisturbed."""
    folder = tmp_path_factory.mktemp("parts")
    repo = Repo(folder / "begin", env)
    _begin(repo)
    found = []
    for number, write in enumerate((_design, _plan, _build, _sign_off)):
        write(repo)
        found.append(_played(repo.root, folder / f"after{number}", coordinator))
        repo = Repo(folder / f"before{number + 1}", env)
        shutil.copytree(found[-1].after, repo.root, symlinks=True)
    return found


def _played(before: Path, after: Path, coordinator: Coordinator) -> Part:
    """Play a part until it has gone one way twice: a file that is held for a moment adds some."""
    ways: list[tuple[str, ...]] = []
    for _ in range(TRIES):
        shutil.copytree(before, after, symlinks=True)
        assert coordinator.run(after) == 0
        ways.append(coordinator.moments())
        if ways[-1] in ways[:-1]:
            break
        shutil.rmtree(after)
    assert after.exists(), "it goes another way each time"
    return Part(before, after, ways[-1])


# --- the phase -------------------------------------------------------------------------------------------------------


def _begin(repo: Repo) -> None:
    repo.root.mkdir()
    repo.git("init", "-q", "--template=")
    repo.file(".yolo-planning/config.json", json.dumps(CONFIG))
    repo.file(".yolo-planning/.gitignore", ".dept-*\n.handoff-*\n")
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "chore: begin", **DAY)


def _artifact(repo: Repo, name: str, *records: dict[str, Any]) -> None:
    repo.file(f"{PHASE}/{name}", "".join(json.dumps(record) + "\n" for record in records))


def _design(repo: Repo) -> None:
    for name in ("ux-architecture.toon", "architecture.toon"):
        repo.file(f"{PHASE}/{name}", (EXAMPLES / "architecture/ok/backend.toon").read_text())


def _plan(repo: Repo) -> None:
    for prefix, number in (("ux-", "01"), ("", "02")):
        header = {
            "p": "01",
            "n": number,
            "t": "A plan",
            "w": 1,
            "d": [],
            "obj": "Something",
            "eff": "turbo",
        }
        task = {
            "id": "T1",
            "a": "Do it",
            "f": [f"src/{number}.ts"],
            "v": "look",
            "done": "it is",
            "spec": "Just do it",
        }
        _artifact(repo, f"{prefix}01-{number}.plan.jsonl", header, task)


def _build(repo: Repo) -> None:
    for prefix, number in (("ux-", "01"), ("", "02")):
        repo.file(f"src/{number}.ts", "export {}\n")
        repo.git("add", f"src/{number}.ts")
        repo.git("commit", "-q", "-m", f"feat(01-{number}): T1 do it", **DAY)
        summary = {
            "p": "01", "n": number, "t": "A plan", "s": "complete", "dt": "2026-02-19", "tc": 1, "tt": 1, "dv": [],
            "ch": [repo.git("rev-parse", "HEAD").strip()], "fm": [f"src/{number}.ts"], "built": ["it"],
            "tst": "no_tests",
        }  # fmt: skip
        _artifact(repo, f"{prefix}01-{number}.summary.jsonl", summary)
        review = {"plan": f"01-{number}", "r": "approve", "cycle": 1, "dt": "2026-02-19"}
        _artifact(repo, f"{prefix}code-review.jsonl", review)
    _hand_over_design(repo)


def _hand_over_design(repo: Repo) -> None:
    """What opens UI/UX's gate, without which no phase of several departments is complete."""
    token = {"cat": "spacing", "name": "space.4", "val": "16px", "sem": "Gap between fields"}
    spec = {
        "name": "LoginForm", "desc": "signs in", "states": ["idle"], "props": ["onLogin"],
        "tokens": ["space.4"], "a11y": {"role": "form"}, "status": "ready",
    }  # fmt: skip
    _artifact(repo, "design-tokens.jsonl", token)
    _artifact(repo, "component-specs.jsonl", spec)
    _artifact(repo, "design-handoff.jsonl", {"component": "LoginForm", "status": "ready"})


def _sign_off(repo: Repo) -> None:
    checks = dict.fromkeys(("api", "design", "handoffs", "tests"), "skip")
    _artifact(
        repo,
        "integration-gate-result.jsonl",
        {"r": "PASS", "checks": checks, "failures": [], "dt": "2026-02-19"},
    )
    repo.file(".yolo-planning/ROADMAP.md", "# Roadmap\n")
    state = json.loads((repo.root / ".yolo-planning/state.json").read_text())
    repo.file(
        ".yolo-planning/state.json",
        json.dumps(state | {"st": "complete", "step": "signoff"}, indent=2) + "\n",
    )


# --- the kills -------------------------------------------------------------------------------------------------------

PARTS = ("design", "plan", "build", "sign-off")


@pytest.mark.sampled(4)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", range(4), ids=PARTS)
def test_a_kill_at_any_moment_changes_nothing_in_the_end(
    number: int, parts: list[Part], coordinator: Coordinator, env: dict[str, str], tmp_path: Path
) -> None:
    part = parts[number]
    wanted = _outcome(Repo(part.after, env))
    for dies_at, name in list(enumerate(part.moments, 1))[::STRIDE]:
        ways = []
        for _ in range(TRIES):
            root = tmp_path / f"at{dies_at}"
            shutil.copytree(part.before, root, symlinks=True)
            assert coordinator.run(root, dies_at) == KILLED, (
                f"the kill at moment {dies_at} ({name}) did not happen"
            )
            ways.append(coordinator.moments())
            assert coordinator.run(root) == 0
            assert _outcome(Repo(root, env)) == wanted, (
                f"killed at moment {dies_at}: {ways[-1][-1]}"
            )
            shutil.rmtree(root)
            if ways[-1] == part.moments[:dies_at]:
                break
        assert part.moments[:dies_at] in ways, "it died elsewhere than the undisturbed run went"


def _outcome(repo: Repo) -> dict[str, Any]:
    """Return history, and what lies in the work tree; of each department's status without the times."""
    planning = repo.root / ".yolo-planning"
    files = {
        str(path.relative_to(repo.root)): path.read_text()
        for path in planning.rglob("*")
        if path.is_file()
    }
    statuses = {path: json.loads(text) for path, text in files.items() if "/.dept-status-" in path}
    return {
        "history": repo.look("log", "--format=%H %ct %s").splitlines(),
        "files": {path: text for path, text in files.items() if "/.dept-" not in path},
        "statuses": {
            path: {key: one[key] for key in one if key not in TIMES}
            for path, one in statuses.items()
        },
        "open": repo.look("status", "--porcelain"),
    }


def test_the_kills_fall_on_every_kind_of_moment(parts: list[Part]) -> None:
    names = [name for part in parts for name in part.moments]

    for function in ("write_json", "process"):
        assert names.count(f"before {function}") > 15, function
    for function in ("write_json", "process", "commit", "update"):
        assert names.count(f"after {function}") > 15, function
    print(f"{len(names)} moments: {[len(part.moments) for part in parts]}")


@pytest.mark.proves("002:299", "002:300")
def test_the_undisturbed_phase_is_complete_in_every_state_file(parts: list[Part]) -> None:
    root = parts[-1].after
    execution = json.loads((root / PHASE / ".execution-state.json").read_text())
    orchestration = json.loads((root / PHASE / ".phase-orchestration.json").read_text())
    project = json.loads((root / ".yolo-planning/state.json").read_text())

    assert (execution["status"], project["st"], orchestration["owner_signoff"]["status"]) == (
        "complete", "complete", "SHIP",
    )  # fmt: skip
    assert {one["status"] for one in orchestration["departments"].values()} == {"complete"}
