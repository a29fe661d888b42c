"""`tools/mutants [NAME…]`: plants each bug in a copy of the tree and runs the tests that have to notice it.

Prints a table: the mutant, red, SURVIVED or CUT OFF, by which test, in how many seconds. Exits 1 when one survives.

With --random N bugs that nobody chose are planted, N in each room, and the tests run that `scripts/test --changed` would
run for that file, for a minute or for the seconds of --within. A test that fails without the bug as well proves nothing,
and is said.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mutation.mutants import ROOT, Mutant, StaleError, load
from tests.mutation.random_mutants import RandomMutant, draw, rooms_there_are
from tools.changed import tests_near

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class Outcome(NamedTuple):
    """What the named tests said of a tree."""

    is_red: bool
    by: str
    """The first test that failed."""
    seconds: float


class BrokenError(Exception):
    """The tests prove nothing: pytest could not run them, or they fail without any bug."""


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser("tools/mutants", description=__doc__)
    parser.add_argument("name", nargs="*", help="mutants; all of them when none is named")
    parser.add_argument("--random", type=int, metavar="N", help="N random ones for each room")
    parser.add_argument("--room", action="append", help="only there; may be given again")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="draw the same again")
    parser.add_argument(
        "--within", type=int, default=60, metavar="SECONDS", help="of tests for a random one"
    )
    options = parser.parse_args()
    drawn = draw(options.room or rooms_there_are(), options.random or 0, options.seed)
    chosen = () if options.random else _chosen(options.name)
    with tempfile.TemporaryDirectory(prefix="yolo-fs-mutants-") as place:
        copy = Path(place) / "tree"
        python = _copy_of_the_tree(copy)
        try:
            if drawn:
                print(f"seed {options.seed}", flush=True)
                return _run_random(drawn, copy, python, options.within)
            return _run_all(chosen, copy, python)
        except (StaleError, BrokenError) as error:
            print(error, file=sys.stderr)
            return 2


def _chosen(names: Sequence[str]) -> tuple[Mutant, ...]:
    found = {mutant.name: mutant for mutant in load()}
    if unknown := set(names) - found.keys():
        sys.exit(f"no mutant {', '.join(sorted(unknown))}. There are: {', '.join(found)}.")
    return tuple(found[name] for name in names) if names else tuple(found.values())


def _run_all(chosen: Sequence[Mutant], copy: Path, python: Path) -> int:
    for mutant in chosen:
        mutant.texts(copy)
    sound = _tests(
        sorted({test for mutant in chosen for test in mutant.red}), copy, python, stop=False
    )
    if sound.is_red:
        raise BrokenError(
            f"without any bug {sound.by} fails: nothing is proved by what fails with one"
        )
    print(f"{'without any bug':26} {'green':9} {sound.seconds:6.1f} s", flush=True)
    survivors = 0
    for mutant in chosen:
        with _planted(mutant, copy):
            outcome = _tests(mutant.red, copy, python, every_case=True)
        survivors += not outcome.is_red
        verdict = "red" if outcome.is_red else "SURVIVED"
        print(
            f"{mutant.name:26} {verdict:9} {outcome.seconds:6.1f} s  {outcome.by or mutant.why}",
            flush=True,
        )
    print(f"{len(chosen) - survivors} of {len(chosen)} mutants turn a test red")
    return 1 if survivors else 0


def _run_random(drawn: Sequence[RandomMutant], copy: Path, python: Path, seconds: int) -> int:
    red: Counter[str] = Counter()
    cut_off = 0
    for mutant in drawn:
        near = tests_near([mutant.file])
        with _planted(mutant, copy):
            outcome = _tests([*near, "--within", str(seconds)], copy, python)
        is_cut_off = not outcome.is_red and outcome.seconds > seconds
        cut_off += is_cut_off
        verdict = "red" if outcome.is_red else "CUT OFF" if is_cut_off else "SURVIVED"
        function = outcome.by.partition("[")[0]  # an id may have blanks, at which it is cut
        if outcome.is_red and _tests([function], copy, python).is_red:
            verdict = "PROVES NOTHING"
        red[mutant.room] += verdict == "red"
        where = f"{mutant.name:44} {verdict:9} {outcome.seconds:6.1f} s"
        print(f"{where}  {mutant.why}  {outcome.by}", flush=True)
    for room, planted in Counter(mutant.room for mutant in drawn).items():
        print(f"{room:24} {red[room]:3} of {planted}")
    print(
        f"{red.total()} of {len(drawn)} random mutants turn a test near them red; "
        f"{cut_off} cut off before all tests near them had run"
    )
    return 1 if red.total() < len(drawn) else 0


def _copy_of_the_tree(copy: Path) -> Path:
    """Copy what git knows of the tree, changed files as they are, and return a Python that imports from the copy."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    venv.create(copy / ".venv", symlinks=True)
    packages = next((copy / ".venv" / "lib").glob("python*/site-packages"))
    ours = sysconfig.get_paths()["purelib"]
    (packages / "copy.pth").write_text(f"{copy}\nimport site; site.addsitedir({ours!r})\n")
    python = copy / ".venv" / "bin" / "python"
    program = python.with_name("yolo-fs")  # what is printed as the next command has to be there
    program.write_text(
        f"#!{python}\nimport sys\nfrom yolo_fs.__main__ import start\nsys.exit(start())\n"
    )
    program.chmod(0o755)
    return python


class _planted:  # noqa: N801 - a context manager reads as a verb
    """Has the bug in the copy for a while. No compiled file of one version can be taken for one of another."""

    def __init__(self, mutant: Mutant | RandomMutant, copy: Path):
        self._changed = mutant.texts(copy)
        self._before = {path: path.read_bytes() for path in self._changed}

    def __enter__(self) -> None:
        for path, text in self._changed.items():
            path.write_text(text, encoding="utf-8")
            _forget_compiled(path)

    def __exit__(self, *_: object) -> None:
        for path, data in self._before.items():
            path.write_bytes(data)
            _forget_compiled(path)


_NOT_LOADED = "ImportError while loading conftest"


def _forget_compiled(path: Path) -> None:
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def _tests(
    tests: Sequence[str],
    copy: Path,
    python: Path,
    *,
    stop: bool = True,
    every_case: bool = False,
) -> Outcome:
    """Run tests in the copy. `every_case`: also those that a run leaves to the next ones."""
    began = time.monotonic()
    how = ["-x"] if stop else ["-n", "2"]
    asked = [str(python), "-m", "pytest", *tests, "-p", "no:cacheprovider", "--tb=no", "-rfE", *how]
    environment = dict(_environment()) | ({"YOLO_ALL": "1"} if every_case else {})
    done = subprocess.run(
        asked, cwd=copy, capture_output=True, text=True, env=environment, check=False
    )
    failed = _FAILED.findall(done.stdout)
    if _NOT_LOADED in done.stdout + done.stderr:  # a bug may keep a module from being imported
        return Outcome(True, _NOT_LOADED, time.monotonic() - began)
    if done.returncode not in (0, 1):
        raise BrokenError(
            f"pytest ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return Outcome(done.returncode == 1, failed[0] if failed else "", time.monotonic() - began)


def _environment() -> Iterator[tuple[str, str]]:
    yield "YOLO_SHRINK", "0"
    yield from (
        (name, value)
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "PYTHON"))
    )


if __name__ == "__main__":
    sys.exit(main())
