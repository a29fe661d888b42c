"""A day of a company in an hour: agents that write artifacts, a user at work, and files that are
none of our business.

Every worker is a thread that works at its pace until it is told to stop, and counts what it did.
"""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import threading
import time
from abc import ABC, abstractmethod

from bench.ledger import Ledger
from bench.repositories import artifact, put

PLANS = 99
"""Plans of a phase, each with a summary that its agent writes again and again."""


class Worker(ABC):
    """Does one thing after the other."""

    def __init__(self, every_s: float, rng: random.Random):
        self.done = 0
        self._every_s = every_s
        self._rng = rng
        self._stops = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what is in hand. Raises whatever ended the work before its time."""
        self._stops.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    @abstractmethod
    def once(self, number: int) -> int:
        """Do one thing and return how many it counts for."""

    def _work(self) -> None:
        due = time.monotonic() + self._rng.uniform(0, self._every_s)
        for number in itertools.count():
            if self._stops.wait(max(0.0, due - time.monotonic())):
                return
            try:
                self.done += self.once(number)
            except BaseException as failure:
                self._failure = failure
                return
            due = max(
                due + self._every_s, time.monotonic() - self._every_s
            )  # who was held up does not catch up


class Agent(Worker):
    """Writes the summaries of a phase of its own, one after the other and then anew."""

    def __init__(self, root: str, phase: int, ledger: Ledger, every_s: float, rng: random.Random):
        super().__init__(every_s, rng)
        self._root = root
        self._phase = phase
        self._ledger = ledger

    def once(self, number: int) -> int:
        """Write one artifact, with a text that nobody has written: the branch has no need of the same
        content twice.
        """
        path, data = artifact(
            self._phase * 100 + number % PLANS,
            f"write {number} of agent {self._phase}, {self._rng.getrandbits(64):x}",
        )
        put(self._root, path, data)
        self._ledger.wrote(path, data)
        return 1


class Noise(Worker):
    """Makes, changes, renames and removes files in the planning tree that are no artifacts."""

    BURST = 28

    def __init__(self, root: str, per_s: float, rng: random.Random):
        super().__init__(self.BURST / per_s, rng)
        self._folders = [f"{root}/.yolo-planning/phases/{phase:02}-bench" for phase in range(1, 5)]
        for folder in self._folders:
            os.makedirs(folder, exist_ok=True)

    def once(self, number: int) -> int:
        """Change files in a burst."""
        for at in range(self.BURST // 4):
            path = f"{self._folders[at % len(self._folders)]}/.ctx-{number % 50}-{at}.toon"
            for text in ("a", "b"):
                with open(path, "a") as file:
                    file.write(text)
            os.replace(path, f"{path}.old")
            os.unlink(f"{path}.old")
        return self.BURST


class User(Worker):
    """Edits, stages, stashes, commits and changes branches, with the git that everybody has."""

    def __init__(self, root: str, every_s: float, rng: random.Random):
        super().__init__(every_s, rng)
        self.refused = 0
        """Commands that git refused; the user tries something else next time."""
        self.conflicts = 0
        """Times that `git stash pop` left a conflict in an artifact, which holds every commit until
        it is resolved.
        """
        self._root = root

    def once(self, number: int) -> int:
        """Do one thing of a working day."""
        name = f"src/mine/{number % 7}.txt"
        put(self._root, name, b"edited %d\n" % number)
        match number % 6:
            case 0 | 3:
                return self._git("add", "--", name)
            case 1 | 4:
                return self._git(
                    "commit", "-q", "-m", f"chore(01-01): edit {number}", "--", *self._known()
                )
            case 2:
                return self._stash()
            case _:
                return self._git("switch", "-q", "-c", f"work-{number}")

    def _stash(self) -> int:
        """Put changes away, take them back, and resolve a conflict for what stands in the work
        tree.
        """
        self._git("stash", "push", "-q", "--", "src")
        if self._run("stash", "list").stdout:
            self._git("stash", "pop", "-q")
        if unmerged := self._run("diff", "--name-only", "--diff-filter=U").stdout.split():
            self.conflicts += any(name.startswith(".yolo-planning/") for name in unmerged)
            self._git("add", "-A", "--", *unmerged)
            self._git("reset", "-q", "--", *unmerged)
        self._git("stash", "clear")
        return 3

    def _known(self) -> list[str]:
        listed = self._run("ls-files", "--", "src/mine")
        return listed.stdout.split() or ["src"]

    def _git(self, *arguments: str) -> int:
        self.refused += self._run(*arguments).returncode != 0
        return 1

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", "-C", self._root, *arguments], capture_output=True, text=True, check=False
        )
