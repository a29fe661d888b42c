"""Where a play takes place: a temporary repository, an empty home directory, the daemon; and how
agents' tools write files: at once, by rename, line by line, with a pause within a line.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from tests.play.play import Play
from tests.play.processes import DaemonEvent, DaemonProcess, GateWaiter, command, environment
from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git.repository import Repository
from yolo_fs.git.runner import Git
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.progress.board import board
from yolo_fs.system.store import read_json
from yolo_fs.workspace.settings import load

Rest = Callable[[], object]
"""Called wherever a writer takes its time."""


def write(path: str, data: bytes, manner: str, rest: Rest) -> None:
    """Write `data` to the file at `path` as `MANNERS` says."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    MANNERS[manner](path, data, rest)


def _at_once(path: str, data: bytes, _: Rest) -> None:
    with open(path, "wb") as file:
        file.write(data)


def _by_rename(path: str, data: bytes, rest: Rest) -> None:
    folder, name = os.path.split(path)
    beside = os.path.join(folder, f".{name}.tmp")
    _at_once(beside, data, rest)
    rest()
    os.replace(beside, path)


def _line_by_line(path: str, data: bytes, rest: Rest) -> None:
    with open(path, "ab", buffering=0) as file:
        for line in data.splitlines(keepends=True):
            file.write(line)
            rest()


def _with_a_pause(path: str, data: bytes, rest: Rest) -> None:
    middle = _middle_of_a_line(data)
    with open(path, "wb", buffering=0) as file:
        file.write(data[:middle])
        rest()
        file.write(data[middle:])


def _the_rest(path: str, data: bytes, _: Rest) -> None:
    with open(path, "ab") as file:
        file.write(data[os.path.getsize(path) :])


def _in_place(path: str, data: bytes, rest: Rest) -> None:
    with open(path, "r+b", buffering=0) as file:
        file.truncate()
        rest()
        file.write(data)


MANNERS: Mapping[str, Callable[[str, bytes, Rest], None]] = {
    "plain": _at_once,
    "rename": _by_rename,
    "lines": _line_by_line,
    "slow": _with_a_pause,
    "rest": _the_rest,
    "rewrite": _in_place,
}
"""`manner` of a play's `write` action → what it does; `rest` completes a file that has a part."""


def _middle_of_a_line(data: bytes) -> int:
    """Return an offset within the second line, or within the first when there is no other."""
    start = data.find(b"\n") + 1
    if start in (0, len(data)):
        start = 0
    end = data.find(b"\n", start)
    return start + (end - start) // 2


_IDENTITY = {
    "GIT_AUTHOR_NAME": "Demo",
    "GIT_AUTHOR_EMAIL": "demo@example.org",
    "GIT_COMMITTER_NAME": "Demo",
    "GIT_COMMITTER_EMAIL": "demo@example.org",
}
GIT_TRIES = 5
"""How often an agent commits again because the daemon moved the branch in the same moment."""
GIT_REST_S = 0.05
"""Between the first two tries; each pause after it is longer by as much."""
DAY = "2026-02-20"
"""When the plays take place."""
_TASK = re.compile(r"@([0-9]{2}-[0-9]{2}/T[0-9]+)@")
"""Placeholder in a file of a play: the commit that did a task."""


@contextmanager
def stage_for(play: Play, *, keep: bool) -> Iterator[Stage]:
    """Give a stage; in the end everything is removed, except the repository if it is kept."""
    with ExitStack() as cleanup:
        home = _temporary_folder(cleanup, "yolo-fs-demo-home-", keep=False)
        root = _temporary_folder(cleanup, "yolo-fs-demo-", keep=keep)
        stage = Stage(play, root, home)
        cleanup.callback(stage.close)
        yield stage


def _temporary_folder(cleanup: ExitStack, prefix: str, *, keep: bool) -> str:
    path = os.path.realpath(tempfile.mkdtemp(prefix=prefix))
    if not keep:
        cleanup.callback(shutil.rmtree, path, ignore_errors=True)
    return path


class Stage:
    """One repository for one play, the actions in it, and questions about it."""

    def __init__(self, play: Play, root: str, home: str):
        """Play in the empty folder `root`, with `home` as HOME."""
        self.root = root
        self.waiter: GateWaiter | None = None
        self.commits: list[DaemonEvent] = []
        """Every commit that its daemon has reported."""
        self._play = play
        self._home = home
        self._environment = environment(home)
        self._task_commits: dict[str, str] = {}
        """`NN-MM/Tk` → the commit that did the task."""
        self._daemon: DaemonProcess | None = None
        self.git = Git(root)
        self.git.identity = _IDENTITY | {
            name: self._environment[name] for name in ("HOME", "XDG_CONFIG_HOME")
        }

    def open(self) -> None:
        """Make the repository as the play begins, and start the daemon."""
        self.git.run("init", "--quiet", "--template=", "--initial-branch=main")
        os.chmod(f"{self.root}/.git", 0o700)  # the daemon refuses what a lax umask opens to others
        os.mkdir(f"{self.root}/{PLANNING_ROOT}")
        if self._play.policy:
            self._configure(self._play.policy)
        for action in self._play.opening:
            self.do(action)
        error_log = os.path.join(self._home, "daemon.err")
        self._daemon = DaemonProcess(self.root, self._environment, error_log)

    def _configure(self, policy: Mapping[str, Any]) -> None:
        folder = os.path.join(self._environment["XDG_CONFIG_HOME"], "yolo-fs")
        os.makedirs(folder)
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump({"policy": policy}, file)

    def close(self) -> None:
        """End the daemon and the process at the gate, if they run."""
        if self.waiter is not None:
            self.waiter.stop()
        if self._daemon is not None:
            self._daemon.stop()

    @property
    def daemon(self) -> DaemonProcess:
        """The running daemon."""
        assert self._daemon is not None, "the stage is not open"
        return self._daemon

    def do(self, action: Mapping[str, Any], rest: Rest = lambda: None) -> None:
        """Do one action of a play; `rest` is called wherever a writer takes its time."""
        (name, value), *others = action.items()
        ACTIONS[name](self, value, rest, **dict(others))

    def _write(
        self,
        path: str,
        rest: Rest,
        *,
        content: str,
        manner: str = "plain",
    ) -> None:
        """Write a file of the play."""
        text = _TASK.sub(lambda task: self._task_commits[task[1]], self._play.read(content))
        write(os.path.join(self.root, path), text.encode(), manner, rest)

    def _run_git(self, arguments: Sequence[str], _: Rest) -> None:
        self.git.run(*arguments)

    def _commit_code(
        self, path: str, rest: Rest, *, content: str, subject: str, task: str = ""
    ) -> None:
        """Write a source file and commit it with git; later files name the commit by its task."""
        self._write(path, rest, content=content)
        for attempt in range(1, GIT_TRIES + 1):
            try:
                self.git.run("add", path)
                self.git.run("commit", "--quiet", f"--message={subject}", "--", path)
                break
            except YoloError:  # the daemon is moving the branch: git refuses, nothing changed
                if attempt == GIT_TRIES:
                    raise
                time.sleep(GIT_REST_S * attempt)
        if task:
            commit = self.git.text("rev-list", "--max-count=1", "HEAD", "--", path)
            self._task_commits[task] = commit

    def _judge(self, path: str, _: Rest) -> None:
        """Append the result of the integration gate, as the rules work it out."""
        with Repository(self.root) as repository:
            facts_reader = FactsReader(repository, load(self.root))
            (phase,) = board(facts_reader, repository.head().tip).phases
        checks = phase.integration_checks.items()
        failures = [
            {"check": key, "detail": lack.what, "file": lack.file}
            for key, (_, lacks) in checks
            for lack in lacks
        ]
        line = {
            "r": "FAIL" if failures else "PASS",
            "checks": {key: result for key, (result, _) in checks},
            "failures": failures,
            "dt": DAY,
        }
        with open(os.path.join(self.root, path), "ab") as file:
            file.write(json.dumps(line).encode() + b"\n")

    def _wait_at_gate(self, gate: str, _: Rest) -> None:
        self.waiter = GateWaiter(self.root, self._environment, gate)

    def _type(self, words: Sequence[str], _: Rest) -> None:
        """Type a command of yolo-fs, as an agent does."""
        code, _data = self.ask(*words)
        if code:
            raise YoloError(Reason.STATE_CONFLICT, f"yolo-fs {' '.join(words)} exits with {code}")

    def ask(self, verb: str, *others: str) -> tuple[int, Mapping[str, Any]]:
        """Return the exit code of a command of yolo-fs, and the data that it prints."""
        done = subprocess.run(
            [*command(verb), *others, "--json"],
            cwd=self.root,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return done.returncode, json.loads(done.stdout)["data"] or {}

    def blob(self, path: str) -> str:
        """Return the blob id of the file at a path."""
        return self.git.text("hash-object", "--no-filters", "--", path)

    def open_changes(self) -> tuple[str, ...]:
        """Return the open changes of the work tree, as `git status` lists them."""
        return tuple(self.git.text("status", "--porcelain").splitlines())

    def commit_of(self, subject: str) -> str:
        """Return the latest commit under a subject; empty when none of the last 20 has it."""
        for line in self.git.text("log", "--max-count=20", "--format=%H %s").splitlines():
            commit, _, its_subject = line.partition(" ")
            if its_subject == subject:
                return commit
        return ""

    def index_has_followed(self) -> bool:
        """Return whether the index agrees with the branch about the planning tree."""
        arguments = ("diff-index", "--cached", "--quiet", "HEAD", "--", PLANNING_ROOT)
        return self.git.run(*arguments, ok=(0, 1)).code == 0

    def kept_object(self, path: str) -> Mapping[str, Any]:
        """Return the JSON object at a path of the branch, or of the work tree where the branch has
        none; empty when there is none at all.
        """
        shown = self.git.run("show", f"HEAD:{path}", ok=(0, 128))
        if shown.code == 0:
            return dict(json.loads(shown.out))
        found = read_json(os.path.join(self.root, path))
        return found if isinstance(found, dict) else {}


ACTIONS: Mapping[str, Callable[..., None]] = {
    "write": Stage._write,
    "git": Stage._run_git,
    "code": Stage._commit_code,
    "judge": Stage._judge,
    "wait": Stage._wait_at_gate,
    "type": Stage._type,
}
"""First key of an action → what it does; the other keys are its keyword arguments."""
