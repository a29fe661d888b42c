"""Resuming on a long history, cold and warm, beside one `git log`; and how long the brief is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator

from bench import repositories
from bench.aims import Aim
from bench.options import Options
from bench.rounds import Sample, Way, cost_goal, interleave
from bench.table import Table, goal_table, ms, times
from yolo_fs.git.repository import Repository
from yolo_fs.history.index import HistoryIndex
from yolo_fs.phase.report import BUDGET, as_text, cut, tokens
from yolo_fs.reports.resume import resume
from yolo_fs.workspace import INDEX

LOG = "git log, hashes and subjects"
PATHS = "git log, with changed paths"
COLD = "tasks and commits correlated, cold"
WARM = "tasks and commits correlated, warm"
LATER = "the same, 50 commits later"
BRIEF_COLD = "whole brief, in process, cold"
BRIEF_WARM = "whole brief, in process, warm"
COMMAND_COLD = "yolo-fs resume, cold"
COMMAND_WARM = "yolo-fs resume, warm"
PASS = "python -c pass"

_PLANS_OF_PHASE = 40
_TASKS = 4
_LATER = 50


def run(options: Options) -> Iterator[Table]:
    """Measure the time, then the length."""
    commits, artifacts = options.pick((20_000, 100), (60, 10))
    root = _made(options, commits, artifacts)
    samples = interleave(_ways(root), options.pick(15, 1))
    _remember(root, repositories.git(root, "rev-parse", "HEAD"))
    yield _times(samples, commits, artifacts, os.path.getsize(_cache(root)))
    goals = [
        cost_goal(f"{name} / {LOG}", samples[name], samples[LOG], 0.1, Aim.RESUME)
        for name in (WARM, LATER)
    ]
    yield goal_table("Goals: resume", goals)
    yield _lengths(options)


# --- time ---


def _ways(root: str) -> list[Way]:
    log = ["git", "-C", root, "log", "-z"]
    command = [sys.executable, "-m", "yolo_fs", "resume", "-C", root]
    tip = repositories.git(root, "rev-parse", "HEAD")
    earlier = repositories.git(root, "rev-parse", f"HEAD~{_LATER}")

    repository = Repository(root)
    assert repository.own_dir  # asked for by every command, and known to a repository that is open

    def correlate(_round: int) -> None:
        HistoryIndex(repository).read_up_to(tip)

    return [
        Way(LOG, _run([*log, "--format=%H %s"])),
        Way(PATHS, _run([*log, "--format=%H %s", "--name-status", "--no-renames"])),
        Way(COLD, correlate, before=lambda _: _forget(root)),
        Way(WARM, correlate, before=lambda _: _remember(root, tip)),
        Way(LATER, correlate, before=lambda _: _remember(root, earlier)),
        Way(BRIEF_COLD, lambda _: resume(root, keep=False), before=lambda _: _forget(root)),
        Way(BRIEF_WARM, lambda _: resume(root, keep=False), before=lambda _: _remember(root, tip)),
        Way(COMMAND_COLD, _run(command), before=lambda _: _forget(root)),
        Way(COMMAND_WARM, _run(command), before=lambda _: _remember(root, tip)),
        Way(PASS, _run([sys.executable, "-c", "pass"])),
    ]


def _run(command: list[str]) -> Callable[[int], object]:
    return lambda _: subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    )


def _cache(root: str) -> str:
    return os.path.join(root, ".git/yolo-fs", INDEX)


def _forget(root: str) -> None:
    for ending in ("", "-wal", "-shm"):
        if os.path.exists(f"{_cache(root)}{ending}"):
            os.unlink(f"{_cache(root)}{ending}")


def _remember(root: str, tip: str) -> None:
    """Leave an index that knows a tip of the branch, and nothing later."""
    head = repositories.git(root, "rev-parse", "HEAD")
    if tip != head:
        _forget(root)
        repositories.git(root, "update-ref", "HEAD", tip)
    with Repository(root) as repository:
        HistoryIndex(repository).read_up_to(tip)
    repositories.git(root, "update-ref", "HEAD", head)


def _times(samples: dict[str, Sample], commits: int, artifacts: int, cache_bytes: int) -> Table:
    base = samples[LOG].p50
    rows = tuple(
        (name, ms(sample.p50), times(sample.p50 / base), sample.spread)
        for name, sample in samples.items()
    )
    notes = (
        (
            f"{commits:,} commits, {artifacts} artifacts, {len(samples[LOG].times_s)} "
            "interleaved rounds"
        ),
        f"the cache is {cache_bytes / 1e6:.1f} MB; cold: there is none",
        (
            "correlated: in a repository that is open already; in process: all but the "
            "interpreter and its imports"
        ),
    )
    return Table("Resume", ("", "p50 ms", "x git log", "spread"), rows, notes)


# --- length ---


def _lengths(options: Options) -> Table:
    rows = []
    for artifacts in options.pick((10, 100, 1000), (4, 8)):
        brief = resume(_made(options, artifacts + 10, artifacts), keep=False)
        short = cut(brief, BUDGET, as_text)
        left_out = ", ".join(one.key for one in brief if one not in short) or "nothing"
        whole, kept = (f"{tokens(as_text(one)):,}" for one in (brief, short))
        rows.append(
            (
                f"{artifacts:,}",
                f"{tokens(json.dumps(_all(options, artifacts))):,}",
                whole,
                kept,
                left_out,
            )
        )
    columns = (
        "artifacts",
        "the artifacts themselves",
        "whole brief",
        f"within {BUDGET:,}",
        "left out",
    )
    return Table("Brief: tokens (bytes / 4)", columns, tuple(rows))


def _all(options: Options, artifacts: int) -> list[str]:
    return [data.decode() for _, data in (_artifact(number) for number in range(artifacts))]


# --- the repository ---


def _made(options: Options, commits: int, artifacts: int) -> str:
    """Return a repository whose commits are artifacts first, then source commits that name their
    tasks.
    """
    root = tempfile.mkdtemp(prefix="resume-", dir=options.scratch)
    repositories.git(root, "init", "-q", "-b", repositories.BRANCH)
    stream = b"".join(_stream(commits, artifacts))
    repositories.git(root, "fast-import", "--quiet", given=stream)
    repositories.git(root, "reset", "--hard", "-q", repositories.BRANCH)
    return root


def _stream(commits: int, artifacts: int) -> Iterator[bytes]:
    ref = f"refs/heads/{repositories.BRANCH}"
    for number in range(artifacts):
        path, data = _artifact(number)
        name = path.rpartition("/")[2].split(".")
        yield repositories.commit_head(ref, number, f"docs({name[0][:2]}): {name[1]} {name[0]}")
        yield repositories.file_change(path, data)
    for number in range(artifacts, commits):
        plan = _plan((number // _TASKS) % max(1, artifacts // 2))
        subject = f"feat({plan[0]}-{plan[1]}): T{number % _TASKS + 1} part {number} of it"
        yield repositories.commit_head(ref, number, subject)
        yield repositories.file_change(
            f"src/{plan[0]}/part{number % 400:03}.ts", b"export const n = %d\n" % number
        )


def _plan(number: int) -> tuple[str, str]:
    return f"{number // _PLANS_OF_PHASE + 1:02}", f"{number % _PLANS_OF_PHASE + 1:02}"


def _artifact(number: int) -> tuple[str, bytes]:
    """Return path and content of an artifact: by turns a plan, and a summary that says how far it
    came.
    """
    phase, plan = _plan(number // 2)
    place = f".yolo-planning/phases/{phase}-bench/{phase}-{plan}"
    if number % 2:
        summary = {
            "p": phase, "n": plan, "t": "Token refresh", "s": "partial", "dt": "2026-02-19", "tc": 2, "tt": _TASKS,
            "ch": [], "fm": [f"src/{phase}/part001.ts"], "dv": [("Redis is not reachable from the "
                                                                "test runner")],
            "built": ["Refresh token store on Redis", "Rotation with reuse detection"], "tst": "no_tests",
        }  # fmt: skip
        return f"{place}.summary.jsonl", json.dumps(summary).encode() + b"\n"
    header = {
        "p": phase, "n": plan, "t": "Token refresh", "w": 1, "d": [], "xd": [],
        "mh": {"tr": ["A refresh token works once"], "ar": [], "kl": []},
        "obj": "Sessions outlive the 15 minute access token without a new login",
    }  # fmt: skip
    tasks = [
        {"id": f"T{task}", "tp": "auto", "a": f"Store refresh tokens, part {task}", "v": ("npm "
                                                                                         "test -- store"),
         "f": [f"src/{phase}/part00{task}.ts"], "done": "Tokens are stored hashed"}
        for task in range(1, _TASKS + 1)
    ]  # fmt: skip
    return f"{place}.plan.jsonl", "".join(
        json.dumps(line) + "\n" for line in (header, *tasks)
    ).encode()
