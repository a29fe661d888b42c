"""What it costs to meet objects, leases, files, inputs and messages of others, by their size: peak memory of the command
and of its git, seconds, and what is said.

`.venv/bin/python -m tests.security.sizes` prints the table up to 16 MB; with `YOLO_SECURITY=1` up to 1 GB.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

PHASE = ".yolo-planning/phases/01-auth"
GAPS = f"{PHASE}/gaps.jsonl"
SMALL = (1, 1_000, 1_000_000, 16_000_000)
LARGE = (100_000_000, 1_000_000_000)
ALL = bool(os.environ.get("YOLO_SECURITY"))
SIZES = (*SMALL, *(LARGE if ALL else ()))
_ROW = "{:<28} {:>13} {:>9} {:>8}  {}"


class Cost(NamedTuple):
    """What one command cost."""

    what: str
    size_bytes: int
    peak_mb: float
    """Of the command, or of the largest process that it started."""
    seconds: float
    code: int
    said: str

    def __str__(self) -> str:
        sizes = f"{self.size_bytes:,}", f"{self.peak_mb:.0f} MB", f"{self.seconds:.1f} s"
        return _ROW.format(self.what, *sizes, self.said)


class ArtifactPath:
    """A repository of its own."""

    def __init__(self, folder: Path):
        self.root, home = folder / "repo", folder / "home"
        home.mkdir(parents=True)
        (home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
        self.env = {
            **os.environ,
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        (self.root / PHASE).mkdir(parents=True)
        (self.root / PHASE / ".gitkeep").touch()
        self.git("init", "-q", "-b", "main", ".")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "chore: begin")

    def git(self, *arguments: str, given: bytes = b"") -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.root,
            env=self.env,
            input=given,
            capture_output=True,
            check=True,
        )
        return done.stdout.decode().strip()

    def stored(self, kind: str, data: Path) -> str:
        """Store an object of this content, and return its id."""
        return self.git("hash-object", "-w", "-t", kind, "--literally", str(data))

    def commit_of(self, path: str, blob: str) -> str:
        """Return a commit that has a blob at a path, and nothing else."""
        name, entry = path.rpartition("/")[2], f"100644 blob {blob}"
        tree = self.git("mktree", "--missing", given=f"{entry}\t{name}\n".encode())
        for folder in reversed(path.split("/")[:-1]):
            tree = self.git("mktree", given=f"040000 tree {tree}\t{folder}\n".encode())
        return self.git("commit-tree", tree, "-p", "HEAD", "-m", "docs(01): gaps")

    def join(self) -> None:
        program = [sys.executable, "-m", "yolo_fs", "team", "join"]
        subprocess.run(program, cwd=self.root, env=self.env, check=True, capture_output=True)


class Case(NamedTuple):
    """One thing of others, and the command that meets it."""

    what: str
    make: Callable[[ArtifactPath, Path], object]
    """Put it into the repository; it is given as a file of the size."""
    words: tuple[str, ...]
    fill: bytes = b"x"
    from_stdin: bool = False
    most_bytes: int = LARGE[-1]
    usual_bytes: int = SMALL[-1]
    """Without the larger tier."""


def _artifact_of_branch(place: ArtifactPath, data: Path) -> None:
    place.git("update-ref", "HEAD", place.commit_of(GAPS, place.stored("blob", data)))


def _artifact_of_team(place: ArtifactPath, data: Path) -> None:
    place.join()
    place.git(
        "update-ref", "refs/yolo/team/main", place.commit_of(GAPS, place.stored("blob", data))
    )


def _lease(place: ArtifactPath, data: Path) -> None:
    place.join()
    lease = place.commit_of(".yolo-team/leases/backend.json", place.stored("blob", data))
    place.git("update-ref", "refs/yolo/team/main", lease)


def _commit(place: ArtifactPath, data: Path) -> None:
    who = "A <a@b> 1 +0000"
    head = (
        f"tree {place.git('rev-parse', 'HEAD^{tree}')}\nparent {place.git('rev-parse', 'HEAD')}\n"
    )
    body = data.with_name("commit")
    with body.open("wb") as file:
        file.write(f"{head}author {who}\ncommitter {who}\n\n".encode())
        file.write(data.read_bytes())
    place.git("update-ref", "HEAD", place.stored("commit", body))


def _tree(place: ArtifactPath, data: Path) -> None:
    blob = bytes.fromhex(place.git("hash-object", "-w", "--stdin"))
    body = data.with_name("tree")
    with body.open("wb") as file:
        file.writelines(
            b"100644 f%08d\0" % number + blob for number in range(data.stat().st_size // 37 or 1)
        )
    tree = place.stored("tree", body)
    for folder in (".yolo-planning",):
        tree = place.git("mktree", given=f"040000 tree {tree}\t{folder}\n".encode())
    place.git("update-ref", "HEAD", place.git("commit-tree", tree, "-m", "x"))


def _at(path: str) -> Callable[[ArtifactPath, Path], object]:
    def put(place: ArtifactPath, data: Path) -> None:
        target = place.root / path
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        data.rename(target)

    return put


def _nothing(_place: ArtifactPath, _data: Path) -> None:
    """It comes from stdin."""


CASES = (
    Case("artifact of the branch", _artifact_of_branch, ("status",)),
    Case("artifact of the team", _artifact_of_team, ("team", "status")),
    Case("artifact of the team, status", _artifact_of_team, ("status",)),
    Case("lease", _lease, ("team", "status"), fill=b"["),
    # Whatever git reads of a history it has whole in memory, as the fetch had that brought it.
    Case("message of a commit", _commit, ("status",), most_bytes=LARGE[0]),
    Case("folder of names", _tree, ("status",), most_bytes=LARGE[0], usual_bytes=SMALL[-2]),
    Case("artifact on disk, blanks", _at(GAPS), ("status",), fill=b"\n"),
    Case("artifact on disk, depth", _at(GAPS), ("validate", GAPS), fill=b"["),
    Case("state file", _at(f"{PHASE}/.execution-state.json"), ("status",), fill=b"["),
    Case("configuration", _at(".yolo-planning/config.json"), ("status",), fill=b"["),
    Case("journal, one line", _at(".git/yolo-fs/events.jsonl"), ("events",)),
    Case("signs of life", _at(".git/yolo-fs/agents.jsonl"), ("agent", "list"), fill=b"["),
    Case("index", _at(".git/yolo-fs/index.db"), ("status",)),
    Case("membership", _at(".git/yolo-fs/team.json"), ("team", "status"), fill=b"{"),
    Case("input of a hook", _nothing, ("hook", "pre-tool-use"), fill=b"[", from_stdin=True),
    Case("input of resume", _nothing, ("resume", "--format", "claude-hook"), fill=b"[", from_stdin=True),
)  # fmt: skip


def costs(cases: tuple[Case, ...] = CASES, sizes: tuple[int, ...] = SIZES) -> Iterator[Cost]:
    """Measure each case in each size."""
    for case in cases:
        for size in sizes:
            if size <= case.most_bytes:
                with tempfile.TemporaryDirectory() as folder:
                    yield _measured(case, size, Path(folder))


def _measured(case: Case, size: int, folder: Path) -> Cost:
    place, data = ArtifactPath(folder), folder / "data"
    with data.open("wb") as file:
        for at in range(0, size, 1 << 20):
            file.write(case.fill * min(1 << 20, size - at))
    case.make(place, data)
    out = folder / "said"
    with out.open("wb") as said, open(data if case.from_stdin else os.devnull, "rb") as given:
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "yolo_fs", *case.words],
            cwd=place.root, env={**place.env, "PYTHONPATH": str(Path(__file__).parents[2])}, stdin=given, stdout=said, stderr=said,
        )  # fmt: skip
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    text = out.read_bytes()[:100_000].decode("utf-8", "replace")
    return Cost(case.what, size, used.ru_maxrss / 1_024, seconds, process.returncode, _told(text))


_REASONS = re.compile(
    r"file_too_large|nesting_too_deep|json_parse_error|bad_config|empty_file|object_missing|line_too_long"
    r"|nothing was checked|internal_error|not_json|torn|unreadable|damaged"
)


def _told(text: str) -> str:
    found = _REASONS.search(text)
    first = json.dumps(text.strip().partition("\n")[0][:60])
    return found[0] if found else first


if __name__ == "__main__":
    print(_ROW.format("what", "bytes", "peak", "time", "said"))
    for cost in costs():
        print(cost, flush=True)
