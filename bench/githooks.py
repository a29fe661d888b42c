"""What our part of each git hook costs when a commit has nothing to do with us.

Each hook is run as git runs it, with the arguments that git gives, in a repository with a planning
tree.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

from bench import repositories
from bench.options import Options
from bench.rounds import Sample, Way, interleave, time_goal
from bench.table import Table, goal_table, ms, times

PASS = "python -c pass"
MESSAGE = "commit-msg"
OF_A_COMMIT = ("pre-commit", "prepare-commit-msg", MESSAGE, "post-commit")


def run(options: Options) -> Iterator[Table]:
    """Measure each hook once a round."""
    small, _ = repositories.sizes(options)
    root = repositories.copy(small, options)
    subprocess.run(
        [sys.executable, "-m", "yolo_fs", "hooks", "install", "-q", "-C", root], check=True
    )
    _prepare(root)
    tip = repositories.git(root, "rev-parse", "HEAD")
    pushed = (
        f"refs/heads/main {tip} refs/heads/main {repositories.git(root, 'rev-parse', 'HEAD~1')}\n"
    )
    asked: dict[str, tuple[list[str], str]] = {
        "pre-commit": ([], ""),
        "prepare-commit-msg": ([".git/COMMIT_EDITMSG", "message"], ""),
        MESSAGE: ([".git/COMMIT_EDITMSG"], ""),
        "post-commit": ([], ""),
        "post-checkout": ([tip, tip, "1"], ""),
        "post-merge": (["0"], ""),
        "post-rewrite": (["amend"], f"{tip} {tip}\n"),
        "pre-push": (["origin", "elsewhere"], pushed),
    }
    ways = [Way(PASS, lambda _: subprocess.run([sys.executable, "-c", "pass"], check=True))]
    ways += [_way(root, name, arguments, said) for name, (arguments, said) in asked.items()]
    samples = interleave(ways, options.pick(21, 1))
    base = samples[PASS].p50
    rows = tuple(
        (name, ms(one.p50), times(one.p50 / base), one.spread) for name, one in samples.items()
    )
    yield Table(
        "Git hooks: nothing of ours is touched", ("", "p50 ms", "x pass", "spread"), rows, ()
    )
    rounds = zip(*(samples[name].times_s for name in OF_A_COMMIT), strict=True)
    added = Sample([sum(times_s) for times_s in rounds])
    yield goal_table(
        "Goals: git hooks",
        [time_goal("what our git hooks add to a commit of the user", added, 100, samples[PASS])],
    )


def _prepare(root: str) -> None:
    """Make a commit of source code the last one, so that every hook finds what it finds most
    often.
    """
    with open(os.path.join(root, "source.py"), "w") as file:
        file.write("x = 1\n")
    repositories.git(root, "add", "source.py")
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    repositories.git(root, *identity, "commit", "-q", "--no-verify", "-m", "feat(01-01): T1 x")


def _way(root: str, name: str, arguments: list[str], said: str) -> Way:
    environment = {**os.environ, "GIT_AUTHOR_NAME": "Ada Lovelace"}
    command = [f"{root}/.git/hooks/{name}", *arguments]
    return Way(
        name,
        lambda _: subprocess.run(
            command, cwd=root, env=environment, input=said, text=True, check=True
        ),
    )
