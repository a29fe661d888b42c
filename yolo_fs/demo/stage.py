"""Where a play takes place: a temporary repository, an empty home directory, the daemon; and how
agents' tools write files: at once, by rename, line by line, torn in the middle of a line.
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

from yolo_fs.credentials import RULES
from yolo_fs.demo.play import Play
from yolo_fs.demo.processes import DaemonEvent, DaemonProcess, GateWaiter, command, environment
from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.git.runner import Git
from yolo_fs.reasons import Reason, YoloError
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT
from yolo_fs.rules.phase.gates import integration_result
from yolo_fs.services.progress.board import board
from yolo_fs.services.workspace import load

Rest = Callable[[], object]
"""Called wherever a writer takes its time."""


def write(path: str, data: bytes, manner: str, rest: Rest) -> None:
    """Write `data` to the file at `path` as `MANNERS` says; `torn` writes only a part of it."""
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


def _torn(path: str, data: bytes, rest: Rest) -> None:
    _at_once(path, data[: _middle_of_a_line(data)], rest)


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
    "torn": _torn,
    "rest": _the_rest,
    "rewrite": _in_place,
}
"""`manner` of a play's `write` action → what it does; `rest` completes a file that was torn."""


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
SECRET = "@secret@"
"""Placeholder in a file of a play: a made-up credential."""
_PLACEHOLDER = re.compile(r"@(?:secret|[0-9]{2}-[0-9]{2}/T[0-9]+)@")


@contextmanager
def stage_for(play: Play, *, keep: bool) -> Iterator[Stage]:
    """Give a stage; in the end everything is removed, except the repository if it is kept."""
    with ExitStack() as cleanup:
        home = _temporary_folder(cleanup, "yolo-fs-demo-home-", keep=False)
        root = _temporary_folder(cleanup, "yolo-fs-demo-", keep=keep)
        if play.machines:
            root = os.path.join(root, play.machines[0])
            os.mkdir(root)
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
        self.secret = next(rule.example for rule in RULES if rule.name == "github_token")
        """The credential that an agent pastes; it looks real, and is not."""
        self.messages: list[Mapping[str, Any]] = []
        """Every message that was sent in an escalation."""
        self.waiter: GateWaiter | None = None
        self.commits: list[DaemonEvent] = []
        """Every commit that its daemon has reported."""
        self.told: set[str] = set()
        """Names of the events that its daemon has reported."""
        self.machines: dict[str, Stage] = {}
        """The team's clones by name, this one included; empty for one repository."""
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
        for name in self._play.machines:
            self.machines[name] = self._machine(name)
        for stage in self.machines.values() or (self,):
            stage.start()

    def _machine(self, name: str) -> Stage:
        """Return a clone that has joined the team; all of them meet at a bare repository."""
        team, name_of_bare = os.path.split(self.root)[0], "team.git"
        bare = os.path.join(team, name_of_bare)
        if not os.path.isdir(bare):
            self.git.run(
                "clone", "--quiet", "--bare", "--template=", self.root, bare, networked=True
            )
            self.git.run("remote", "add", "origin", bare)
        stage = self
        if name != os.path.basename(self.root):
            stage = Stage(self._play, os.path.join(team, name), self._home)
            stage._task_commits = self._task_commits
            self.git.run(
                "clone", "--quiet", "--template=", "--no-local", bare, stage.root, networked=True
            )
            os.chmod(f"{stage.root}/.git", 0o700)
        stage.ask("team", "join", "origin", "--yes")
        return stage

    def start(self) -> None:
        """Start the daemon."""
        error_log = os.path.join(self._home, f"{os.path.basename(self.root)}.err")
        self._daemon = DaemonProcess(self.root, self._environment, error_log)

    def _configure(self, policy: Mapping[str, Any]) -> None:
        folder = os.path.join(self._environment["XDG_CONFIG_HOME"], "yolo-fs")
        os.makedirs(folder)
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump({"policy": policy}, file)

    def close(self) -> None:
        """End the daemons and the process at the gate, if they run."""
        for stage in self.machines.values():
            if stage is not self:
                stage.close()
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
        slip: Sequence[str] = (),
    ) -> None:
        """Write a file of the play. `slip`: a text of it, and what the agent writes instead."""
        text = self._play.read(content)
        if slip:
            right, wrong = slip
            text = text.replace(right, wrong)
        data = _PLACEHOLDER.sub(lambda found: self._filling(found[0]), text).encode()
        write(os.path.join(self.root, path), data, manner, rest)

    def _filling(self, placeholder: str) -> str:
        if placeholder == SECRET:
            return self.secret.decode()
        return self._task_commits[placeholder.strip("@")]

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
            (phase,) = board(repository, load(self.root), repository.head().tip).phases
        line = integration_result(phase, DAY)
        with open(os.path.join(self.root, path), "ab") as file:
            file.write(json.dumps(line).encode() + b"\n")

    def _wait_at_gate(self, gate: str, _: Rest) -> None:
        self.waiter = GateWaiter(self.root, self._environment, gate)

    def _tell(self, words: Sequence[str], _: Rest, *, message: Mapping[str, Any]) -> None:
        """Send a message to `yolo-fs escalate`."""
        code, data = self.ask("escalate", *words, stdin=json.dumps(message).encode())
        if code:
            raise YoloError(Reason.STATE_CONFLICT, f"yolo-fs escalate {words[0]} exits with {code}")
        self.messages.append(message)
        if data["message"]:
            self.messages.append(data["message"])

    def _freeze(self, _: bool, rest: Rest) -> None:
        self.daemon.freeze()
        rest()

    def _wake(self, _: bool, rest: Rest) -> None:
        self.daemon.wake()
        rest()

    def ask(self, verb: str, *others: str, stdin: bytes = b"") -> tuple[int, Mapping[str, Any]]:
        """Return the exit code of a command of yolo-fs, and the data that it prints."""
        done = subprocess.run(
            [*command(verb), *others, "--json"],
            cwd=self.root,
            env=self._environment,
            input=stdin,
            capture_output=True,
            check=False,
        )
        return done.returncode, json.loads(done.stdout)["data"] or {}

    def candidate(self, path: str) -> Mapping[str, Any]:
        """Return what `yolo-fs status` shows of a path; empty when it does not show it."""
        candidates = self.ask("status")[1]["candidates"]
        return next((each for each in candidates if each["path"] == path), {})

    def blob(self, path: str) -> str:
        """Return the blob id of the file at a path."""
        return self.git.text("hash-object", "--no-filters", "--", path)

    def committed_blob(self, path: str) -> str:
        """Return the blob id that the branch has at a path; empty when there is none."""
        named = self.git.run("rev-parse", "--verify", "--quiet", f"HEAD:{path}", ok=(0, 1, 128))
        return named.out.decode().strip()

    def commit_of(self, subject: str) -> str:
        """Return the latest commit under a subject; empty when none of the last 20 has it."""
        for line in self.git.text("log", "--max-count=20", "--format=%H %s").splitlines():
            commit, _, its_subject = line.partition(" ")
            if its_subject == subject:
                return commit
        return ""

    def open_changes(self) -> tuple[bytes, bytes]:
        """Return what is staged, and what is changed beyond that, as git prints it."""
        staged = self.git.run("diff", "--cached", "--binary").out
        return staged, self.git.run("diff", "--binary").out

    def index_has_followed(self) -> bool:
        """Return whether the index agrees with the branch about the planning tree."""
        arguments = ("diff-index", "--cached", "--quiet", "HEAD", "--", PLANNING_ROOT)
        return self.git.run(*arguments, ok=(0, 1)).code == 0

    def committed_object(self, path: str) -> Mapping[str, Any]:
        """Return the JSON object at a path of the branch; empty when there is none."""
        shown = self.git.run("show", f"HEAD:{path}", ok=(0, 128))
        return json.loads(shown.out) if shown.code == 0 else {}

    def versions(self, path: str) -> Iterator[Mapping[str, Any]]:
        """Yield every committed version of a JSON object, oldest first."""
        for commit in self.git.text("log", "--reverse", "--format=%H", "--", path).splitlines():
            yield json.loads(self.git.run("show", f"{commit}:{path}").out)


ACTIONS: Mapping[str, Callable[..., None]] = {
    "write": Stage._write,
    "git": Stage._run_git,
    "code": Stage._commit_code,
    "judge": Stage._judge,
    "wait": Stage._wait_at_gate,
    "tell": Stage._tell,
    "freeze": Stage._freeze,
    "wake": Stage._wake,
}
"""First key of an action → what it does; the other keys are its keyword arguments."""
