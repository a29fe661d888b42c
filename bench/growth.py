"""What `status` and `resume` cost where a team has few phases, and where it has many that are all open; and what one more
commit costs after a short and after a long history.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench import repositories
from bench.options import Options
from bench.rounds import Sample, Way, cost_goal, interleave
from bench.table import Table, goal_table, ms, times
from bench.warm import call, program, warm
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.workspace.settings import load

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
    yield from _one_more_commit(options)


def _one_more_commit(options: Options) -> Iterator[Table]:
    """Measure what it takes to know five open phases again after one commit of work, in a process that knew them."""
    counts = options.pick((1_000, 50_000), (10, 20))
    with ExitStack() as opened:
        ways = []
        for count in counts:
            repository = opened.enter_context(Repository(make(options, 5, commits=count)))
            reader = FactsReader(repository, load(repository.root))
            reader.phases(repository.head().tip)
            ways.append(_way_of_commit(count, repository, reader))
        samples = interleave(ways, options.pick(60, 2))
    names = [_after(count) for count in counts]
    rows = tuple(
        (
            name,
            ms(samples[name].p50),
            times(samples[name].p50 / samples[names[0]].p50),
            samples[name].spread,
        )
        for name in names
    )
    yield Table("One more commit", ("", "p50 ms", "x short history", "spread"), rows)
    goal = cost_goal(
        f"one more commit, after {counts[1]:,} / {counts[0]:,}",
        samples[names[1]],
        samples[names[0]],
        1.1,
    )
    yield goal_table("Goals: one more commit", [goal])


def _way_of_commit(count: int, repository: Repository, reader: FactsReader) -> Way:
    def commit(_round: int) -> None:
        who = ("-c", "user.name=Bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0")
        repositories.git(
            repository.root, *who, "commit", "-q", "--allow-empty", "-m", "feat(01-02): T1 one more"
        )

    return Way(_after(count), lambda _: reader.phases(repository.head().tip), commit)


def _after(count: int) -> str:
    return f"after {count:,} commits of users"


def _name(command: str, count: int) -> str:
    return f"{command}, {count} open phases"


def _way(command: str, count: int, root: str) -> Way:
    return Way(_name(command, count), lambda _: call([*program(), command], root))


def make(options: Options, phases: int, more_plans: int = 0, commits: int = 0) -> str:
    """Make a repository with so many open phases, and return its root. `more_plans`: plans that nobody has begun, in
    each of them; `commits`: of users, on source.
    """
    root = tempfile.mkdtemp(prefix="growth-", dir=options.scratch)
    repositories.git(root, "init", "-q", "-b", repositories.BRANCH)
    stream = b"".join(_stream(phases, more_plans, commits))
    repositories.git(root, "fast-import", "--quiet", given=stream)
    repositories.git(root, "reset", "--hard", "-q", repositories.BRANCH)
    return root


def _stream(phases: int, more_plans: int, commits: int) -> Iterator[bytes]:
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
    for more in range(commits):
        yield repositories.commit_head(ref, number + more, f"fix: step {more}")
        yield repositories.file_change(f"src/01/{more % 50}.ts", b"export const step = %d\n" % more)


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
