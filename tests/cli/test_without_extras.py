"""What an extra brings may lack: the command that needs it says which library, and how it is installed."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.support.teams import Team

PACKAGE = Path(__file__).parents[2]
SITE = Path(os.path.dirname(click.__file__)).parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed packages without those that only extras need."""
    needed, todo = (
        set(),
        [name for name in importlib.metadata.requires("yolo-fs") or () if "extra" not in name],
    )
    while todo:
        name = todo.pop().replace(";", " ").split()[0].split("[")[0]
        name = "".join(char if char.isalnum() or char in "-_." else " " for char in name).split()[0]
        if name in needed:
            continue
        needed.add(name)
        try:
            todo += [
                one for one in importlib.metadata.requires(name) or () if "extra ==" not in one
            ]
        except importlib.metadata.PackageNotFoundError:
            needed.discard(name)
    folder = tmp_path_factory.mktemp("site")
    for name in needed:
        for file in importlib.metadata.files(name) or ():
            top = file.parts[0]
            if top != ".." and (SITE / top).exists() and not (folder / top).exists():
                (folder / top).symlink_to(SITE / top)
    return folder


@pytest.mark.parametrize(
    ("words", "library"),
    [
        (["mcp"], "mcp"),
        (["board", "--no-open"], "starlette uvicorn"),
        (["team", "join", "x", "--lane", "nats://x"], "nats-py"),
    ],
)
def test_a_command_without_its_extra_names_the_library_and_is_no_defect(
    words: list[str], library: str, site: Path, tmp_path: Path
) -> None:
    team = Team(tmp_path / "work")
    team.begin()
    alone = f"import sys; sys.path[:0] = [{str(PACKAGE)!r}, {str(site)!r}]; from yolo_fs.__main__ import start; sys.exit(start())"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", alone, *words], cwd=team.root, capture_output=True, text=True,
        env={**os.environ, "YOLO_FS_COLD": "1"}, stdin=subprocess.DEVNULL, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, "internal_error" in done.stderr) == (3, False), done.stderr
    assert "not installed" in done.stderr and f"pip install {library}" in done.stderr
