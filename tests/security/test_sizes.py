"""However large or deep what others wrote is, memory stays bounded and every verb comes to an end.

All files of ours at once, and each kind of object of others: memory does not grow with them. The ordinary tier asks
the two verbs that read most; `YOLO_SECURITY=1` asks all, and takes a gibibyte.
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.security.doors import PHASE
from tests.security.place import ArtifactPath
from tests.security.things import (
    FOLDERS,
    STATES,
    commit_on_top,
    entry_of,
    own_names,
    pushed,
    put_object,
    write_ref,
)
from tests.support.forked import ROOT
from yolo_fs.system.ask import SOCKET

ALL_SIZES = bool(os.environ.get("YOLO_SECURITY"))
MIB = 1 << 20
FILE_BYTES = 32 * MIB if ALL_SIZES else MIB // 2
SPARSE_BYTES = 1024 * MIB if ALL_SIZES else 32 * MIB
OBJECT_BYTES = 256 * MIB if ALL_SIZES else 128 * MIB
LIMIT_S = 60
"""Of a processor: beside a loaded machine a verb takes no more of it."""
HANG_S = 3 * LIMIT_S
GROWTH_BYTES = 128 * MIB
"""How much more memory than in peace a verb may take."""
FEW: tuple[tuple[str, ...], ...] = (("status",), ("run", "--once"))
ALL: tuple[tuple[str, ...], ...] = (
    ("status",), ("status", "--json"), ("resume",), ("events",), ("doctor",), ("agent", "list"), ("verify",),
    ("gate", "list", "--phase", "1"), ("task", "claims"), ("kept",), ("handoff", "report"), ("team", "status"),
    ("logs",), ("run", "--once"), ("report", "-o", "report.html"), ("escalate", "list"), ("hooks", "doctor"),
)  # fmt: skip
VERBS = ALL if ALL_SIZES else FEW


class Cost(NamedTuple):
    """What one verb took."""

    code: int
    seconds: float
    """Of a processor."""
    peak_bytes: int
    said: str


Costs = Mapping[tuple[str, ...], Cost]


def cost_of(place: ArtifactPath, words: tuple[str, ...]) -> Cost:
    """Run a verb as a process of its own, and measure it."""
    env = {**place.repo.env, "PYTHONPATH": str(ROOT)}
    with open(place.base / "said", "wb+") as said:
        began = time.monotonic()
        process = subprocess.Popen([sys.executable, "-P", "-m", "yolo_fs", *words], cwd=place.root, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said)  # fmt: skip
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))
        peak = 0
        while True:
            peak = peak_of(process.pid) or peak
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - began > HANG_S:
                process.kill()
                _, status, usage = os.wait4(process.pid, 0)
                break
            time.sleep(0.005)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = usage.ru_utime + usage.ru_stime
        said.seek(0)
        text = said.read(4000).decode("utf-8", "replace")
    return Cost(process.returncode, seconds, peak, text)


def peak_of(pid: int) -> int:
    """Return the most memory that a process has had; what it was started by does not count."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


@pytest.fixture(scope="module")
def in_peace(place: ArtifactPath) -> dict[tuple[str, ...], Cost]:
    """What every verb takes in a repository in which nothing is large."""
    place.put_back("peace")
    costs = {}
    for words in VERBS:
        costs[words] = cost_of(place, words)
        place.put_back("peace")
    return costs


# --- files of ours ---


def nulls(path: Path, size: int) -> None:
    with open(path, "wb") as file:
        file.truncate(size)  # takes no room on the disk


def of_unit(unit: bytes) -> Callable[[Path, int], None]:
    def write(path: Path, size: int) -> None:
        path.write_bytes(unit * (size // len(unit)))

    return write


def of_one_text(path: Path, size: int) -> None:
    path.write_bytes(b'{"id":"' + b"x" * size + b'"}\n')


CONTENTS: Mapping[str, Callable[[Path, int], None]] = {
    "NUL": nulls,
    "depth": of_unit(b"["),
    "depth of objects": of_unit(b'{"a":'),
    "lines": of_unit(b'{"event":"x","agent":"dev","at":"2026-01-01T00:00:00Z"}\n'),
    "empty lines": of_unit(b"\n"),
    "one text": of_one_text,
    "digits": of_unit(b"9"),
}


def fill(place: ArtifactPath, write: Callable[[Path, int], None], size: int) -> None:
    """Let every file of ours be of one kind and size; small ones share theirs by hard links."""
    place.put_back("peace")
    source = place.base / "source"
    write(source, size)
    names = [
        place.own / name for name in own_names(place) if name not in (*FOLDERS, SOCKET, "git-hook")
    ]
    for path in (*names, *(place.root / ".yolo-planning" / name for name in STATES)):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_dir():
            path.unlink(missing_ok=True)
            subprocess.run(["cp", "--reflink=auto", "--sparse=always", source, path], check=True)
            path.chmod(0o600)


def compare(place: ArtifactPath, kind: str, in_peace: Costs) -> None:
    """Measure every verb in the place as it is now, and compare that with what it takes in peace."""
    place.keep("large")
    wrong = []
    for words in VERBS:
        cost, peace = cost_of(place, words), in_peace[words]
        place.put_back("large")
        grown = cost.peak_bytes - peace.peak_bytes
        print(f"{kind:18} {' '.join(words):28} {peace.seconds:6.2f} s {cost.seconds:6.2f} s {cost.peak_bytes / MIB:6.0f} MiB {grown / MIB:+6.0f}")  # fmt: skip
        if grown > GROWTH_BYTES:
            wrong.append((words, f"memory grows by {grown / MIB:.0f} MiB"))
        if cost.code in (70, -9) or cost.code < 0 or "internal_error" in cost.said:
            wrong.append((words, f"exit {cost.code} after {cost.seconds:.0f} s: {cost.said[-300:]}"))  # fmt: skip
    place.put_back("peace")
    assert wrong == [], "\n".join(map(str, wrong))


# --- objects of others ---

_WHO = b"author A <a@b> 1700000000 +0000\ncommitter A <a@b> 1700000000 +0000\n"


def on_top(text: Callable[[int], bytes]) -> Callable[[ArtifactPath, int], None]:
    def make(place: ArtifactPath, size: int) -> None:
        place.repo.git("update-ref", "HEAD", commit_on_top(place, text(size)))

    return make


def wide_tree(place: ArtifactPath, size: int) -> None:
    blob = put_object(place, "blob", b"x")
    folder = put_object(place, "tree", b"".join(entry_of("100644", f"f{at:07}", blob) for at in range(size // 1600)))  # fmt: skip
    place.repo.git("read-tree", "--prefix=wide", folder)
    tree = place.repo.git("write-tree").strip()
    made = place.repo.git("commit-tree", tree, "-p", "HEAD", "-m", "chore: wide").strip()
    place.repo.git("update-ref", "HEAD", made)


def committed(path: str) -> Callable[[ArtifactPath, int], None]:
    def make(place: ArtifactPath, size: int) -> None:
        blob = put_object(place, "blob", b'{"a":"' + b"x" * size + b'"}\n')
        place.repo.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}")
        tree = place.repo.git("write-tree").strip()
        made = place.repo.git("commit-tree", tree, "-p", "HEAD", "-m", "docs(01): large").strip()
        place.repo.git("update-ref", "HEAD", made)

    return make


def received(path: str) -> Callable[[ArtifactPath, int], None]:
    def make(place: ArtifactPath, size: int) -> None:
        pushed(place, path, "x" * size)
        ref = "refs/heads/yolo/team/main"
        place.repo.git(
            "fetch", "-q", str(place.base / "remote.git"), f"+{ref}:refs/yolo-fs/remote/main"
        )

    return make


def kept_blob(place: ArtifactPath, size: int) -> None:
    blob = put_object(place, "blob", b"x" * size)
    tree = put_object(place, "tree", entry_of("100644", "large", blob))
    facts = b'{"number":1,"at":"2026-01-01T00:00:00Z","paths":["large"],"files":1,"size_bytes":5,"cause":{"reasons":[],"command":"","agent":""},"dropped":0}'  # fmt: skip
    text = b"tree %s\n%s\nkept 1\n\n%s\n" % (tree.encode(), _WHO, facts)
    write_ref(place, "refs/yolo-fs/kept/main", put_object(place, "commit", text))


def kept_words(place: ArtifactPath, size: int) -> None:
    tree = put_object(place, "tree", b"")
    text = b"tree %s\n%s\nkept 1\n\n%s\n" % (tree.encode(), _WHO, b"[" * size)
    write_ref(place, "refs/yolo-fs/kept/main", put_object(place, "commit", text))


OBJECTS: Mapping[str, Callable[[ArtifactPath, int], None]] = {
    "message": on_top(lambda size: _WHO + b"\nfeat(01-01): T1 " + b"x" * size + b"\n"),
    "header": on_top(lambda size: _WHO + b"gpgsig " + b"x" * size + b"\n\nx\n"),
    "trailers": on_top(lambda size: _WHO + b"\nx\n\n" + b"Yolo-By: x\n" * (size // 88)),
    "tree": wide_tree,
    "artifact": committed(f"{PHASE}/decisions.jsonl"),
    "configuration": committed(".yolo-planning/config.json"),
    "state": committed(f"{PHASE}/.execution-state.json"),
    "lease": received(".yolo-team/leases/backend.json"),
    "artifact of the team": received(f"{PHASE}/decisions.jsonl"),
    "kept content": kept_blob,
    "words of what is kept": kept_words,
}


@pytest.mark.sampled(9)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", [*CONTENTS, *OBJECTS])
def test_memory_grows_neither_with_files_of_ours_nor_with_objects_of_others(
    kind: str, place: ArtifactPath, in_peace: Costs
) -> None:
    place.put_back("peace")
    if kind in CONTENTS:
        fill(place, CONTENTS[kind], SPARSE_BYTES if kind == "NUL" else FILE_BYTES)
    else:
        OBJECTS[kind](place, OBJECT_BYTES)
    compare(place, kind, in_peace)
