"""A tree that is walked again shows what a first walk would show. See docs/faults.md#f18."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from yolo_fs.edges import files
from yolo_fs.edges import scan_cache as tree
from yolo_fs.edges.files import FileEntry, walk
from yolo_fs.edges.scan_cache import ScanCache


def ticked(place: Path) -> None:
    """Wait until the clock of the file system shows another time."""
    probe = place / "probe"
    probe.touch()
    before = probe.stat().st_ctime_ns
    while probe.stat().st_ctime_ns == before:
        probe.touch()
    probe.unlink()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which whatever is older than a tick of the clock counts as old."""
    monkeypatch.setattr(files, "RACY_NS", 0)
    root = tmp_path / "root"
    (root / "phases").mkdir(parents=True)
    return root


def change(root: Path, rng: random.Random) -> None:
    """Do one thing that somebody may do in a tree."""
    places = [
        root / "phases",
        *(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink()),
    ]
    place, name = rng.choice(places), rng.choice("abc")
    target = place / name
    match rng.choice(("folder", "file", "write", "remove", "move", "link", "swap")):
        case "folder" if not os.path.lexists(target):
            target.mkdir()
        case "file" | "write" if not target.is_dir() and not target.is_symlink():
            target.write_text(str(rng.random()))
        case "remove" if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        case "remove":
            target.unlink(missing_ok=True)
        case "move" if os.path.lexists(target) and not os.path.lexists(root / "phases/moved"):
            target.rename(root / "phases/moved")
        case "link" if not os.path.lexists(target):
            target.symlink_to(rng.choice(places))
        case "swap" if (
            target.is_dir()
            and not target.is_symlink()
            and not os.path.lexists(root.parent / "aside")
        ):
            target.rename(root.parent / "aside")
            target.symlink_to(root.parent / "aside")


def test_a_tree_that_is_walked_again_shows_what_a_first_walk_shows(root: Path) -> None:
    seed = int(os.environ.get("YOLO_SEED", random.SystemRandom().randrange(2**32)))
    print(f"YOLO_SEED={seed}")
    rng, again = random.Random(seed), ScanCache(str(root))
    for _ in range(300):
        for _ in range(rng.randint(0, 3)):
            change(root, rng)
        ticked(root.parent)
        assert list(again.walk("phases")) == list(walk(str(root), "phases"))


@pytest.fixture
def read_again(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the folders that are read from now on."""
    folders: list[str] = []

    def noted(place: str, folder: str) -> tuple[list[FileEntry], list[str]]:
        folders.append(folder)
        return files.listed(place, folder)

    monkeypatch.setattr(tree, "listed", noted)
    return folders


def test_only_folders_that_changed_or_hold_files_are_read_again(
    root: Path, read_again: list[str]
) -> None:
    for name in ("empty/one", "empty/two", "full", "changing"):
        (root / "phases" / name).mkdir(parents=True)
    (root / "phases/full/x").write_text("one")
    ticked(root.parent)
    again = ScanCache(str(root))
    list(again.walk("phases"))
    (root / "phases/full/x").write_text("another")
    (root / "phases/changing/y").write_text("new")
    read_again.clear()
    assert [entry.path for entry in again.walk("phases")] == ["phases/changing/y", "phases/full/x"]
    assert read_again == ["phases/changing", "phases/full"]


def test_a_folder_that_changed_just_now_is_read_again(
    tmp_path: Path, read_again: list[str]
) -> None:
    """Its stamp may stay the same for as long as the clock of the file system stands."""
    (tmp_path / "phases").mkdir()
    again = ScanCache(str(tmp_path))
    list(again.walk("phases"))
    list(again.walk("phases"))
    assert read_again == ["phases", "phases"]
