"""Hostile trees, names, contents, configurations and environments. See docs/dev/faults.md#f48, #f50,
#f52, #f53, #f56, #f57 and #f60.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.artifacts import PLANNING, artifact, mixed
from tests.e2e.daemon import Daemon
from tests.e2e.history import History
from tests.e2e.repo import Repo

Start = Callable[..., Daemon]
SECRET = "root:x:0:0:never to be read"

# --- F50: what is no file --------------------------------------------------------------------------------------------


def symbolic_link(path: Path, outside: Path) -> None:
    path.symlink_to(outside)


def symbolic_link_within_the_tree(path: Path, outside: Path) -> None:
    (path.parent / "other.jsonl").write_text(SECRET)
    path.symlink_to("other.jsonl")


def dangling_link(path: Path, _: Path) -> None:
    path.symlink_to("/nonexistent")


def hard_link(path: Path, outside: Path) -> None:
    path.hardlink_to(outside)


def named_pipe(path: Path, _: Path) -> None:
    os.mkfifo(path)


def endless_device(path: Path, _: Path) -> None:
    os.mknod(path, 0o644 | stat.S_IFCHR, os.makedev(1, 5))


def huge_sparse_file(path: Path, _: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(10 << 30)


THINGS: dict[Callable[[Path, Path], None], str] = {
    symbolic_link: "not_regular",
    symbolic_link_within_the_tree: "not_regular",
    dangling_link: "not_regular",
    hard_link: "hard_linked",
    named_pipe: "not_regular",
    endless_device: "not_regular",
    huge_sparse_file: "file_too_large",
}


@pytest.mark.parametrize("make", THINGS)
def test_what_is_no_plain_file_is_rejected_and_stops_nothing(
    repo: Repo, start: Start, make: Callable[[Path, Path], None]
) -> None:
    outside = repo.root.parent / "outside"
    outside.write_bytes(artifact("summary", 0).data)
    before, thing, after = artifact("plan", 0), artifact("summary", 0), artifact("plan", 1)
    history, daemon = History(repo), start(repo)
    repo.write(before)
    daemon.wait_committed([before])
    try:
        make(repo.root / thing.path, outside)
    except PermissionError:
        pytest.skip("may not make such a thing here")
    daemon.wait_for("artifact.rejected", thing.path, THINGS[make])
    repo.write(after)
    daemon.wait_committed([after])
    (repo.root / thing.path).unlink()
    repo.write(thing)
    daemon.wait_committed([thing])
    assert outside.read_bytes() == thing.data
    assert daemon.stop() == 0
    assert sorted(history.subjects()) == sorted(one.subject for one in (before, thing, after))


def test_a_folder_named_as_an_artifact_stops_nothing(repo: Repo, start: Start) -> None:
    thing, after = artifact("summary", 0), artifact("plan", 1)
    daemon = start(repo)
    (repo.root / thing.path).mkdir(parents=True)
    repo.write(after)
    daemon.wait_committed([after])
    assert (repo.root / thing.path).is_dir()
    (repo.root / thing.path).rmdir()
    repo.write(thing)
    daemon.wait_committed([thing])


@pytest.mark.parametrize("level", ["phase", "phases"])
def test_a_folder_that_is_a_link_to_the_outside_leads_nowhere(
    repo: Repo, start: Start, level: str
) -> None:
    inside, after = artifact("plan", 0), artifact("plan", 1)
    outside = repo.root.parent / "outside"
    (outside / "01-phase-1").mkdir(parents=True)
    (outside / "01-phase-1/01-01.plan.jsonl").write_bytes(inside.data)
    daemon = start(repo)
    phases = repo.root / PLANNING / "phases"
    if level == "phases":
        phases.rename(phases.with_name("away"))
        phases.symlink_to(outside)
    else:
        (phases / "01-phase-1").symlink_to(outside / "01-phase-1")
        repo.write(after)
        daemon.wait_committed([after])
    last = artifact("critique", 2)
    if level == "phases":
        phases.unlink()
        phases.mkdir()
    repo.write(last)
    daemon.wait_committed([last])
    assert daemon.stop() == 0
    assert inside.subject not in repo.subjects()


# --- F53: contents ---------------------------------------------------------------------------------------------------

CONTENTS = {
    "deep": b"[" * 100_000 + b"\n",
    "deep objects": b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"\n",
    "huge line": b'{"a":"' + b"x" * 2_000_000 + b'"}\n',
    "many lines": b"{}\n" * 200_000,
    "huge number": b'{"a":' + b"9" * 5_000 + b"}\n",
    "surrogate": b'{"a":"\\ud800"}\n',
    "NaN": b'{"a":NaN}\n',
    "not UTF-8": b'{"a":"\xff"}\n',
    "NUL": b"\0" * 4096 + b"\n",
    "duplicate key": b'{"id":"C1","id":"C2"}\n',
    "no object": b"12\n",
    "empty": b"",
    "blank": b"\n\n\n",
}


@pytest.mark.timeout(300)
def test_hostile_contents_are_rejected_one_by_one_and_stop_nothing(
    repo: Repo, start: Start
) -> None:
    paths = [artifact("critique", n).path for n in range(len(CONTENTS))]
    history, daemon, good = History(repo), start(repo), mixed(10)
    for path, data in zip(paths, CONTENTS.values(), strict=True):
        repo.write(artifact("critique", 0)._replace(path=path, data=data))
    repo.write(*good)
    daemon.wait_committed(good)
    for path in paths:
        daemon.wait_for("artifact.rejected", path)
    assert not [one for one in daemon.mailbox.events if one["event"] == "daemon.defect"]
    assert peak_memory_mib(daemon.pid) < 200
    assert daemon.stop() == 0
    assert sorted(history.subjects()) == sorted(one.subject for one in good)


def test_a_torn_last_line_waits_for_its_end(repo: Repo, start: Start) -> None:
    repo.configure(grace_s=0)
    one, last = artifact("plan", 0), artifact("plan", 1)
    history, daemon = History(repo), start(repo)
    repo.write(one._replace(data=one.data[:-20]))
    daemon.wait_for("artifact.rejected", one.path, "unterminated")
    repo.write(last, one)
    daemon.wait_committed([one, last])
    assert daemon.stop() == 0
    history.check([one, last])


def test_an_answer_in_a_fence_is_rejected_at_once_with_and_without_a_last_newline(
    repo: Repo, start: Start
) -> None:
    repo.configure(grace_s=10_000)
    one, daemon = artifact("plan", 0), start(repo)
    repo.write(one._replace(data=b"```json\n" + one.data + b"```"))
    daemon.wait_for("artifact.rejected", one.path, "fenced_json")
    assert repo.standing(one.path)[0] == "rejected"
    repo.write(one)
    daemon.wait_committed([one])
    assert daemon.stop() == 0


def peak_memory_mib(pid: int) -> int:
    line = next(
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmHWM")
    )
    return int(line.split()[1]) // 1024


# --- F60: noise ------------------------------------------------------------------------------------------------------


def test_five_thousand_files_of_noise_cost_no_commit_and_little_memory(
    repo: Repo, start: Start
) -> None:
    history, daemon, artifacts = History(repo), start(repo), mixed(20)
    for path in _noise(repo):
        path.write_bytes(b"{}\n")
    repo.write(*artifacts)
    daemon.wait_committed(artifacts)
    assert peak_memory_mib(daemon.pid) < 200
    assert daemon.stop() == 0
    assert sorted(history.subjects()) == sorted(one.subject for one in artifacts)
    assert repo.look("status", "--porcelain", "--", f"{PLANNING}/phases/*.plan.jsonl") == ""


def _noise(repo: Repo) -> Iterator[Path]:
    for number in range(5_000):
        folder = repo.root / PLANNING / "phases" / f"{number % 20 + 1:02d}-phase-{number % 20 + 1}"
        folder.mkdir(exist_ok=True)
        yield folder / (f"noise-{number}.jsonl" if number % 2 else f".ctx-{number}.toon")
