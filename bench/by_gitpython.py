"""A peer of the daemon: one commit through GitPython's index.

`python -m bench.by_gitpython ROOT PATH SUBJECT`.

Says `ready` once everything is imported, and commits when it reads a line.
"""

from __future__ import annotations

import sys

import git


def main(root: str, path: str, subject: str) -> None:
    """Commit as GitPython's tutorial does."""
    repo = git.Repo(root)
    print("ready", flush=True)
    sys.stdin.readline()
    repo.index.add([path])
    repo.index.commit(subject)


if __name__ == "__main__":
    main(*sys.argv[1:])
