"""A search guided by coverage: atheris mutates input towards code that nothing has reached, and each is tried.

`scripts/fuzz --guided TARGET [--seconds N]`; a target is a parser. It is a program of its own, because what is to be guided
must be imported by atheris. atheris is not installed with the development
tools, because it is large and made for few platforms: `.venv/bin/pip install 'yolo-fs[fuzz]'`.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.fuzz.mutations import Specimen, seeds_of

TARGETS = ("lines", "front-matter", "toon", "envelope", "merge", "hook")
GUIDES = ("yolo_fs.system", "yolo_fs.team.reconcile", "yolo_fs.hooks", "yolo_fs.cli.hook_fast")
OTHERS = ("yaml", "jsonlines", "toon_format", "shlex")


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser("scripts/fuzz --guided", description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=300, help="how long the search takes (300)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 2**32))
    parser.add_argument(
        "--keep", default="fuzz-findings", help="folder for the input of what differs"
    )
    asked = parser.parse_args()
    return explore(asked.target, asked.seed, asked.seconds, asked.keep)


def explore(target: str, seed: int, seconds: int, keep: str) -> int:
    """Search for so many seconds. The search ends the process itself, with 0 when nothing differs."""
    try:
        import atheris
    except ImportError:
        print(
            "atheris is not installed.\nHint: .venv/bin/pip install 'yolo-fs[fuzz]'",
            file=sys.stderr,
        )
        return 1
    with atheris.instrument_imports(include=[*GUIDES, *OTHERS]):
        from tests.fuzz import trial

    repository = trial.make_hooked(tempfile.mkdtemp(prefix="hook-"))

    def lines(data: bytes) -> Iterator[trial.Difference]:
        yield from trial.try_lines(Specimen("", data))
        yield from trial.try_others(data)

    trials: Mapping[str, Callable[[bytes], Iterator[trial.Difference]]] = {
        "lines": lines,
        "front-matter": trial.try_handoff,
        "toon": trial.try_toon,
        "envelope": trial.try_envelope,
        "merge": trial.try_merge,
        "hook": lambda data: trial.try_hook(data, repository),
    }

    def try_one(data: bytes) -> None:
        for difference in trials[target](data):
            raise AssertionError(
                f"{difference.sort} at {difference.where}: {difference.detail[:300]}"
            )

    Path(keep).mkdir(parents=True, exist_ok=True)
    corpus = tempfile.mkdtemp(prefix=f"{target}-", dir=keep)
    _plant(target, corpus)
    options = [f"-seed={seed}", f"-max_total_time={seconds}", "-max_len=4096", "-timeout=20"]
    print(f"seed {seed}: {target} for {seconds} s, corpus {corpus}", flush=True)
    atheris.Setup(
        [sys.argv[0], *options, "-print_final_stats=1", f"-artifact_prefix={keep}/", corpus],
        try_one,
    )
    atheris.Fuzz()
    return 0


def _plant(target: str, corpus: str) -> None:
    """Write what the search begins with."""
    for number, data in enumerate(seeds_of(target)):
        with open(os.path.join(corpus, f"seed-{number:04}"), "wb") as file:
            file.write(data)


if __name__ == "__main__":
    sys.exit(main())
