"""Where a play takes place: a temporary repository, a home without anybody's configuration, and the
daemon.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from typing import Any

from yolo_fs.demo import agents, story
from yolo_fs.demo.daemon import Daemon, command, environment
from yolo_fs.demo.story import SECRET, Code, Deed, Judge, Play, Queue, Tell, Write
from yolo_fs.demo.waiter import Waiter
from yolo_fs.edges.git.object_format import ObjectFormat
from yolo_fs.edges.git.repository import Repository
from yolo_fs.edges.git.runner import Git
from yolo_fs.reasons import Reason, YoloError
from yolo_fs.rules.artifacts.classify import PLANNING_ROOT
from yolo_fs.rules.artifacts.secrets import RULES
from yolo_fs.rules.phase.gateview import GateView
from yolo_fs.rules.phase.integration import integration_result
from yolo_fs.services.progress.board import board
from yolo_fs.services.settings import load

_WHO = {
    f"GIT_{part}_{fact}": value
    for part in ("AUTHOR", "COMMITTER")
    for fact, value in (("NAME", "Demo"), ("EMAIL", "demo@example.org"))
}
"""Whoever acts with git: the play has no real people."""
GIT_TRIES = 5
"""How often an actor commits until the daemon does not move the branch in the same moment."""
DAY = "2026-02-20"
"""When the plays take place."""
_GAP = re.compile(r"@(?:secret|[0-9]{2}-[0-9]{2}/T[0-9]+)@")


@contextmanager
def stage_for(play: Play, *, keep: bool) -> Iterator[Stage]:
    """Give a stage; at the end its daemon is ended and everything is removed, but the repository if it is kept."""
    with ExitStack() as afterwards:
        aside = _folder(afterwards, "yolo-fs-demo-home-", keep=False)
        root = _folder(afterwards, "yolo-fs-demo-", keep=keep)
        stage = Stage(play, root, aside)
        afterwards.callback(stage.close)
        yield stage


def _folder(afterwards: ExitStack, prefix: str, *, keep: bool) -> str:
    path = os.path.realpath(tempfile.mkdtemp(prefix=prefix))
    if not keep:
        afterwards.callback(shutil.rmtree, path, ignore_errors=True)
    return path


class Stage:
    """One repository for one play, and whoever acts in it."""

    def __init__(self, play: Play, root: str, aside: str):
        """Play in the empty folder `root`; the folder `aside` is home to no configuration."""
        self.root = root
        self._play = play
        self._aside = aside
        self._environment = environment(aside)
        self.git = Git(root)
        self.git.identity = _WHO | {
            name: self._environment[name] for name in ("HOME", "XDG_CONFIG_HOME")
        }
        self.secret = next(rule.example for rule in RULES if rule.name == "github_token")
        """What agents paste where they should not; no real credential."""
        self.tasks: dict[str, str] = {}
        """`NN-MM/Tk` → the commit that did it."""
        self.messages: list[Mapping[str, object]] = []
        """Every message that was sent in an escalation, and every one that was to leave a level then."""
        self.waiter: Waiter | None = None
        """Whoever waits at a gate."""
        self._daemon: Daemon | None = None

    def open(self) -> None:
        """Make the repository as the play begins, and start the daemon."""
        self.git.run("init", "--quiet", "--template=", "--initial-branch=main")
        os.chmod(f"{self.root}/.git", 0o700)  # the daemon refuses what a lax umask opens to others
        os.mkdir(f"{self.root}/{PLANNING_ROOT}")
        if self._play.policy:
            self._configure(self._play.policy)
        for deed in self._play.opening:
            self.do(deed, lambda: None)
        self._daemon = Daemon(self.root, self._environment, os.path.join(self._aside, "daemon.err"))

    def _configure(self, policy: Mapping[str, object]) -> None:
        folder = os.path.join(self._environment["XDG_CONFIG_HOME"], "yolo-fs")
        os.makedirs(folder)
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            json.dump({"policy": policy}, file)

    def close(self) -> None:
        """End the daemon and whoever waits, if they run."""
        if self.waiter is not None:
            self.waiter.stop()
        if self._daemon is not None:
            self._daemon.stop()

    @property
    def daemon(self) -> Daemon:
        """The running daemon."""
        assert self._daemon is not None, "the stage is not open"
        return self._daemon

    def do(self, deed: Deed, rest: agents.Rest) -> None:
        """Do what an actor does; `rest` is called where it takes its time."""
        match deed:
            case Write():
                agents.write(
                    os.path.join(self.root, deed.path), self.content(deed), deed.manner, rest
                )
            case story.Git(arguments):
                self.git.run(*arguments)
            case Code():
                self._commit(deed)
            case Judge(path):
                self._judge(os.path.join(self.root, path))
            case Queue(gate):
                self.waiter = Waiter(self.root, self._environment, gate)
            case Tell(words, message):
                self._tell(words, message)

    def _tell(self, words: Sequence[str], message: Mapping[str, object]) -> None:
        code, data = self.ask("escalate", *words, given=json.dumps(message).encode())
        if code:
            raise YoloError(Reason.STATE_CONFLICT, f"yolo-fs escalate {words[0]} exits with {code}")
        self.messages += [message, *([data["message"]] if data["message"] else [])]

    def _commit(self, deed: Code) -> None:
        self.do(Write(deed.path, deed.content), lambda: None)
        for attempt in range(GIT_TRIES):
            try:
                self.git.run("add", deed.path)
                self.git.run("commit", "--quiet", f"--message={deed.subject}", "--", deed.path)
                break
            except (
                YoloError
            ):  # the daemon moved the branch in this very moment; git says so, and changes nothing
                if attempt == GIT_TRIES - 1:
                    raise
        if deed.task:
            self.tasks[deed.task] = self.git.text(
                "rev-list", "--max-count=1", "HEAD", "--", deed.path
            )

    def _judge(self, path: str) -> None:
        with Repository(self.root) as repository:
            (phase,) = board(repository, load(self.root), repository.head().tip).phases
        line = integration_result(GateView(phase.facts, phase.progress), DAY)
        with open(path, "ab") as file:
            file.write(json.dumps(line).encode() + b"\n")

    def content(self, deed: Write) -> bytes:
        """Return what an actor writes: the file of the play with its slip made and its gaps filled."""
        text = read(self._play, deed.content)
        if deed.slip:
            text = text.replace(deed.slip.right, deed.slip.wrong)
        return _GAP.sub(lambda gap: self._filling(gap[0]), text).encode()

    def pastes_secret(self, deed: Deed) -> bool:
        """Tell whether an actor writes the credential."""
        return isinstance(deed, Write) and deed.slip is not None and SECRET in deed.slip.wrong

    def blob(self, path: str) -> str:
        """Return the git object that the file at a path is."""
        with open(os.path.join(self.root, path), "rb") as file:
            return ObjectFormat("sha1").hash_object("blob", file.read()).oid

    def commit_of(self, subject: str) -> str:
        """Return the last commit under a subject, of those that may have come since the actor's own; else nothing."""
        logged = self.git.text("log", "--max-count=20", "--format=%H %s").splitlines()
        return next(
            (
                commit
                for commit, _, said in (line.partition(" ") for line in logged)
                if said == subject
            ),
            "",
        )

    def open_changes(self) -> tuple[bytes, bytes]:
        """Return what is staged, and what is changed beyond that, as git prints it."""
        return self.git.run("diff", "--cached", "--binary").out, self.git.run(
            "diff", "--binary"
        ).out

    def index_has_followed(self) -> bool:
        """Tell whether the index has what the branch has of the planning tree."""
        return (
            self.git.run(
                "diff-index", "--cached", "--quiet", "HEAD", "--", PLANNING_ROOT, ok=(0, 1)
            ).code
            == 0
        )

    def standing(self, path: str) -> Mapping[str, Any]:
        """Return what `yolo-fs status` says of a path; nothing when it does not know it."""
        candidates = self.ask("status")[1]["candidates"]
        return next((one for one in candidates if one["path"] == path), {})

    def ask(self, *arguments: str, given: bytes = b"") -> tuple[int, Mapping[str, Any]]:
        """Return the exit code of a command of yolo-fs, and the data that it prints.

        `given`: what it reads on stdin.
        """
        verb, *others = arguments
        words = [*command(verb), *others, "--json"]
        asked = subprocess.run(
            words,
            cwd=self.root,
            env=self._environment,
            input=given,
            capture_output=True,
            check=False,
        )
        return asked.returncode, json.loads(asked.stdout)["data"] or {}

    def committed_object(self, path: str) -> Mapping[str, Any]:
        """Return the JSON object that the branch has at a path; empty when it has none."""
        found = self.git.run("show", f"HEAD:{path}", ok=(0, 128))
        return json.loads(found.out) if found.code == 0 else {}

    def versions(self, path: str) -> Iterator[Mapping[str, Any]]:
        """Yield every JSON object that the branch had at a path, oldest first."""
        for commit in self.git.text("log", "--reverse", "--format=%H", "--", path).splitlines():
            yield json.loads(self.git.run("show", f"{commit}:{path}").out)

    def _filling(self, gap: str) -> str:
        return self.secret.decode() if gap == SECRET else self.tasks[gap.strip("@")]


def read(play: Play, content: str) -> str:
    """Return a file of a play, as it stands in its folder."""
    folder = files("yolo_fs.demo.plays") / (play.folder or play.name)
    return folder.joinpath(*content.split("/")).read_text(encoding="utf-8")
