"""What `status` and `resume` cost where a team has few phases, and where it has many that are all open."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench import repositories
from bench.options import Options
from bench.rounds import Sample, Way, cost_goal, interleave
from bench.table import Table, goal_table, ms, times
from bench.warm import call, program, warm

COMMANDS = ("status", "resume")
_EXAMPLES = Path(__file__).parents[1] / "fixtures/examples/artifacts"
_FILES = {
    "critique.jsonl": "critique/ok/addressed_by_the_architect.jsonl",
    "research.jsonl": "research/ok/findings.jsonl",
    "architecture.toon": "architecture/ok/backend.toon",
    "{phase}-01.plan.jsonl": "plan/ok/first_wave.jsonl",
    "{phase}-02.plan.jsonl": "plan/ok/planned.jsonl",
    "{phase}-02.summary.jsonl": "summary/ok/partial_with_deviation.jsonl",
    "test-plan.jsonl": "test-plan/ok/two_plans.jsonl",
}
_TASKS = 2


def run(options: Options) -> Iterator[Table]:
    """Measure the commands as they are typed beside a daemon, in the same rounds."""
    few, many = options.pick((5, 95), (1, 3))
    roots = {count: make(options, count) for count in (few, many)}
    with warm(*roots.values()):
        samples = interleave(
            [_way(command, count, root) for count, root in roots.items() for command in COMMANDS],
            options.pick(15, 1),
        )
    yield _table(samples)
    goals = [
        cost_goal(
            f"{command}, {many} phases / {few}",
            samples[_name(command, many)],
            samples[_name(command, few)],
            1.5,
        )
        for command in COMMANDS
    ]
    yield goal_table("Goals: growth", goals)


def _name(command: str, count: int) -> str:
    return f"{command}, {count} open phases"


def _way(command: str, count: int, root: str) -> Way:
    return Way(_name(command, count), lambda _: call([*program(), command], root))


def make(options: Options, phases: int, more_plans: int = 0) -> str:
    """Make a repository with so many open phases, and return its root. `more_plans`: plans that nobody has begun, in
    each of them.
    """
    root = tempfile.mkdtemp(prefix="growth-", dir=options.scratch)
    repositories.git(root, "init", "-q", "-b", repositories.BRANCH)
    stream = b"".join(_stream(phases, more_plans))
    repositories.git(root, "fast-import", "--quiet", given=stream)
    repositories.git(root, "reset", "--hard", "-q", repositories.BRANCH)
    return root


def _stream(phases: int, more_plans: int) -> Iterator[bytes]:
    ref, number = f"refs/heads/{repositories.BRANCH}", 0
    for each in range(1, phases + 1):
        phase = f"{each:02}"
        for name, text in _files(phase, more_plans):
            path = f".yolo-planning/phases/{phase}-part/{name}"
            subject = f"docs({phase}): {os.path.basename(path)}\n\nYolo-Artifact: {path}"
            yield repositories.commit_head(ref, number, subject)
            yield repositories.file_change(path, text.encode())
            number += 1
        for task in range(1, _TASKS + 1):
            yield repositories.commit_head(ref, number, f"feat({phase}-02): T{task} part of it")
            yield repositories.file_change(f"src/{phase}/{task}.ts", b"export {}\n")
            number += 1


def _files(phase: str, more_plans: int) -> Iterator[tuple[str, str]]:
    """Yield name and content of each artifact of a phase."""
    for name, example in _FILES.items():
        text = (_EXAMPLES / example).read_text()
        text = text.replace('"p":"01"', f'"p":"{phase}"').replace("01-0", f"{phase}-0")
        yield name.format(phase=phase), text
    plan = (_EXAMPLES / _FILES["{phase}-01.plan.jsonl"]).read_text()
    for number in range(3, 3 + more_plans):
        text = plan.replace('"p":"01"', f'"p":"{phase}"').replace('"n":"01"', f'"n":"{number:02}"')
        yield f"{phase}-{number:02}.plan.jsonl", text


def _table(samples: dict[str, Sample]) -> Table:
    rows = tuple(
        (name, ms(one.p50), times(one.p50 / samples[_first(samples, name)].p50), one.spread)
        for name, one in samples.items()
    )
    notes = (
        f"{len(next(iter(samples.values())).times_s)} interleaved rounds; {len(_FILES)} artifacts in each phase",
    )
    return Table("Growth", ("", "p50 ms", "x few phases", "spread"), rows, notes)


def _first(samples: dict[str, Sample], name: str) -> str:
    """Return the same command's sample with the fewest phases."""
    command = name.partition(",")[0]
    return next(each for each in samples if each.startswith(command))
