"""What keeping aside costs: nothing measurable while nothing is refused; while everything is, it is
bounded, and pruned.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from bench import repositories
from bench.options import Options
from bench.repositories import artifact, git, put
from bench.rounds import Sample, Way, cost_goal, interleave
from bench.table import Goal, Table, goal_table, ms
from yolo_fs.daemon.coordinator import Coordinator
from yolo_fs.git.packs import HANDED_OVER_BYTES, REST_MOST, PackMerger
from yolo_fs.git.repository import Repository
from yolo_fs.kept.selection import MOST_BYTES, VERSIONS
from yolo_fs.kept.service import Keeper
from yolo_fs.workspace import load

KEEPS = "20 artifacts, as shipped"
KEEPS_NOT = "20 artifacts, nothing is ever kept"
REFUSED = "20 artifacts, all refused"
_ARTIFACTS = 20
_PATHS = 10
_SETTLED_S = 1.0
"""Longer than a content must stand until it is judged."""
_MB = 1e6


class _WorkTree:
    """A work tree with the daemon's worker, which is told what to look at."""

    def __init__(self, root: str, *, keeps: bool = True):
        self._root = root
        self.repository = Repository(root)
        self._coordinator = Coordinator(self.repository, load(root), lambda *_: None)
        if not keeps:
            self._coordinator._keep_refused = _keep_nothing  # type: ignore[method-assign]
        self._paths: list[str] = []

    def write_good(self, round_: int) -> None:
        """Write the artifacts of a round; the next look commits them."""
        self._write([artifact(number, f"round {round_}") for number in range(_ARTIFACTS)])

    def write_bad(self, round_: int) -> None:
        """Write what is refused."""
        lines = (artifact(number, f"round {round_}") for number in range(_ARTIFACTS))
        self._refuse([(path, data.replace(b'"t"', b'"title"')) for path, data in lines])

    def write_large(self, size: int, rng: random.Random) -> None:
        """Write contents of that many bytes, which no compression makes smaller, to be refused."""
        lines = [json.dumps({"p": rng.randbytes(size // 2).hex()}) + "\n" for _ in range(_PATHS)]
        self._refuse(
            [(artifact(number, "")[0], line.encode()) for number, line in enumerate(lines)]
        )

    def look(self, _round: int = 0) -> None:
        self._coordinator.process(self._paths)

    def close(self) -> None:
        self._coordinator.close()
        self.repository.close()

    def _refuse(self, files: list[tuple[str, bytes]]) -> None:
        """Write what the next look refuses: wrong content is first seen, and then has to stand."""
        self._write(files)
        self.look()
        time.sleep(_SETTLED_S)

    def _write(self, files: list[tuple[str, bytes]]) -> None:
        for path, data in files:
            put(self._root, path, data)
        self._paths = [path for path, _ in files]


def _keep_nothing() -> None:
    return


def run(options: Options) -> Iterator[Table]:
    """Measure both cases."""
    small, _ = repositories.sizes(options)
    shipped = _WorkTree(repositories.copy(small, options))
    without = _WorkTree(repositories.copy(small, options), keeps=False)
    refusing = _WorkTree(repositories.copy(small, options))
    ways = (
        Way(KEEPS, shipped.look, before=shipped.write_good),
        Way(KEEPS_NOT, without.look, before=without.write_good),
        Way(REFUSED, refusing.look, before=refusing.write_bad),
    )
    samples = interleave(ways, options.pick(40, 1, 150))
    rows = tuple((name, ms(one.p50), one.spread) for name, one in samples.items())
    yield Table("Keeping aside", ("one look", "median, ms", "middle half"), rows)
    without.close()
    refusing.close()
    ref = git(shipped.repository.root, "for-each-ref", "refs/yolo-fs/kept")
    yield goal_table("Goals: keeping aside", _goals(shipped, samples, ref, options))
    shipped.close()


def _goals(tree: _WorkTree, samples: dict[str, Sample], ref: str, options: Options) -> list[Goal]:
    rounds, size = options.pick((30, 400_000), (2, 1_000))
    rng = random.Random(options.seed)
    for _ in range(rounds):
        tree.write_large(size, rng)
        tree.look()
    keeper = Keeper(tree.repository)
    entries = keeper.entries()
    versions = Counter(entry.paths for entry in entries)
    kept_mb = sum(entry.size_bytes for entry in entries) / _MB
    before_mb = _stored_mb(tree.repository)
    merger = PackMerger(tree.repository)
    merger.merge_now(most=REST_MOST)
    merger.close()
    keeper.prune(timedelta(0))
    git(tree.repository.root, "gc", "-q", "--prune=now")
    written = f"{rounds * _PATHS} refused contents, {rounds * _PATHS * size / _MB:.0f} MB"
    return [
        cost_goal(
            "nothing refused: as shipped / without", samples[KEEPS], samples[KEEPS_NOT], 1.05
        ),
        Goal("refs, while nothing is refused", len(ref.splitlines()), 0),
        Goal("versions kept of one path", max(versions.values()), VERSIONS, beside=written),
        Goal("MB kept in all", kept_mb, MOST_BYTES / _MB, beside=written),
        Goal("entries after kept prune", len(keeper.entries()), 0, beside=f"{len(entries)} before"),
        Goal(
            "MB stored, after git gc: less than a pack that is handed over to it",
            _stored_mb(tree.repository),
            HANDED_OVER_BYTES / _MB,
            beside=f"{before_mb:.1f} MB before",
        ),
    ]


def _stored_mb(repository: Repository) -> float:
    """Return what the objects of a repository take on the disk."""
    sizes = (
        os.path.getsize(os.path.join(folder, name))
        for folder, _, names in os.walk(os.path.join(repository.common_dir, "objects"))
        for name in names
    )
    return sum(sizes) / _MB
