"""The gits of Debian's suites, built from the sources that apt gives, once, into a cache."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

_SUITES = ("bullseye", "trixie", "sid")
_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
_LEFT_OUT = ("GETTEXT", "TCLTK", "PERL", "PYTHON", "EXPAT", "RUST", "INSTALL_HARDLINKS")


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "yolo-fs/gits"


CACHE = cache()
"""Read at the start, before anybody has another home."""


def built() -> list[str]:
    """Return the versions that are there, the oldest first."""
    found = [path.parents[1].name for path in CACHE.glob("*/bin/git")]
    return sorted(found, key=lambda version: [int(part) for part in re.findall(r"\d+", version)])


def build() -> None:
    """Build what is missing.

    Raises:
        CalledProcessError: apt, tar or make ended with an error.
    """
    with tempfile.TemporaryDirectory(prefix="gits-") as place:
        os.chmod(place, 0o755)  # apt reads as a user of its own
        for suite in _SUITES:
            _build(suite, Path(place))


def _build(suite: str, place: Path) -> None:
    folder = place / suite
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "sources").write_text(
        f"deb-src [signed-by={_KEYS}] http://deb.debian.org/debian {suite} main\n"
    )
    (folder / "apt.conf").write_text(
        f'Dir::Etc::sourcelist "{folder}/sources"; Dir::Etc::sourceparts "-";\n'
        f'Dir::State::lists "{folder}/lists"; Dir::Cache "{folder}/cache";\n'
    )
    env = {**os.environ, "APT_CONFIG": str(folder / "apt.conf")}
    for words in ("update", "source --download-only git"):
        subprocess.run(["apt-get", "-q", *words.split()], cwd=folder, env=env, check=True)
    source = next(folder.glob("git_*.orig.tar.*"))
    version = source.name.removeprefix("git_").partition(".orig")[0]
    if version in built():
        return
    subprocess.run(["tar", "xf", str(source)], cwd=folder, check=True)
    make = [f"prefix={CACHE / version}", "CFLAGS=-O1", "INSTALL_SYMLINKS=1"]
    make += [f"NO_{name}=1" for name in _LEFT_OUT]
    tree = next(path for path in folder.glob("git-*") if path.is_dir())
    subprocess.run(["make", "-s", "-j2", *make, "all", "install"], cwd=tree, check=True)
