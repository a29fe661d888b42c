"""Where a play is played: a repository with our hooks and our daemon, a home of its own, and the real hosts in a
clean environment.
"""

from __future__ import annotations

import copy
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from tests.e2e.daemon import until
from tests.hosts.install import Programs
from tests.hosts.model import Model, Request, Step, Write
from tests.support.teams import Team

PHASE = ".yolo-planning/phases/01-auth"
PATIENCE_S = 600
_CLAUDE_TOOLS = "Bash,Read,Write,Edit,Agent,Task,Skill,mcp__yolo-fs,EnterWorktree"
_QUIET = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING",
          "DISABLE_AUTOUPDATER", "DISABLE_FEEDBACK_COMMAND")  # fmt: skip
_CODEX = """\
model = "{model}"
model_provider = "play"
check_for_update_on_startup = false
[model_providers.play]
name = "A play"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "PLAY_KEY"
request_max_retries = 0
stream_max_retries = 0
[features]
plugins = false
remote_plugin = false
apps = false
[analytics]
enabled = false
"""


_SAID = re.compile(r"^hook: (\w+)( \w+)?$")
"""What Codex says when a hook begins, and, with one more word, when it has ended."""


_LOGGED = re.compile(r"Hooks: (\w+)\S* \[yolo-fs hook .* \((\d+)ms\)")
"""What Claude Code writes into its log of each hook of ours."""


class Session(NamedTuple):
    """A session that has ended."""

    code: int
    out: str
    error: str
    seconds: float
    hooks: tuple[tuple[str, float], ...]
    """Each hook of ours as the host tells of it, and its seconds."""


class Stage:
    """One repository, one home, one model, and hosts that are started in it."""

    def __init__(
        self,
        place: Path,
        programs: Programs,
        host: str,
        *,
        has_hooks: bool = True,
        has_plan: bool = True,
    ):
        """Make everything anew; `has_hooks`: 'yolo-fs setup' was run, as a user would; `has_plan`:
        a phase is under way.
        """
        self.place = place
        self.host = host
        self.home = place / "home"
        self.notes: list[str] = []
        """What a play measured."""
        self._programs = programs
        self.model = Model()
        self.env = self._environment()
        for folder in ("tmp", "bin", "home/.codex"):
            (place / folder).mkdir(parents=True)
        ours = Path(sys.executable).with_name("yolo-fs")
        (place / "bin/yolo-fs").symlink_to(ours)
        self.team = Team(place / "work")
        self.root = self.team.root
        if has_plan:
            self.team.example("plan/ok/first_wave.jsonl", "01-01.plan.jsonl")
        self.team.config({"yolo_fs": {"settle_ms": 0}})
        self.team.user_commits("chore: begin", ".yolo-planning/config.json")
        self.ours("start")
        if has_plan:
            until(lambda: "01-01.plan" in self.team.git("ls-files"), "the plan is in a commit")
        if has_hooks:
            self.ours("setup", host)

    def close(self) -> None:
        self.model.close()
        self.ours("stop", ok=False)  # a play may have stopped it

    def ours(self, *words: str, ok: bool = True) -> str:
        """Run one command of ours, and return what it prints and complains of."""
        done = subprocess.run(
            ["yolo-fs", *words], cwd=self.root, env=self.env, capture_output=True, text=True,
            timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        assert not ok or done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def script(self, play: str, *steps: Step | Callable[[str], Step]) -> str:
        """Give the model its script for a play, and return the words that begin it."""
        self.model.scripts[play] = [self._spelled(step) for step in steps]
        return f"PLAY:{play}"

    def _spelled(self, step: Step | Callable[[str], Step]) -> Step | Callable[[str], Step]:
        """Return a step as this host has it: one of them wants absolute paths."""
        if isinstance(step, Write) and self.host == "claude":
            return Write(str(self.root / step.path), step.text)
        return step

    def asked(self, play: str, turn: int = 0) -> Request:
        """Return what the host has asked the model when it had answered `turn` times.

        Raises:
            AssertionError: it never did.
        """
        found = [each for each in self.model.of(play) if each.turn == turn]
        assert found, (play, turn, [(each.play, each.turn) for each in self.model.requests])
        return found[0]

    def is_committed(self, name: str) -> bool:
        """Return whether the daemon commits an artifact of the phase, as it is on disk, within a moment."""
        path = f"{PHASE}/{name}"
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if path in self.team.git("ls-files") and not self.team.git("diff", "HEAD", "--", path):
                return True
            time.sleep(0.05)
        return False

    # --- hosts ---

    def run(self, prompt: str, *options: str, below: str = "", trusted: bool = True) -> Session:
        """Run a session of this stage's host that answers one prompt.

        `options` are the host's own; `below`: where it is started, relative to the repository; `trusted`: whether
        the hooks count as approved, for the host that wants that.
        """
        if self.host == "claude":
            log = self.place / f"{uuid.uuid4().hex}.log"
            words = [self._programs.claude, "-p", prompt, "--allowedTools", _CLAUDE_TOOLS]
            ended = self._run([*words, "--debug-file", str(log), *options], below)
            told = _LOGGED.findall(log.read_text()) if log.exists() else ()
            return ended._replace(hooks=tuple((event, int(ms) / 1000) for event, ms in told))
        self.write_codex_config()
        trust = ("--dangerously-bypass-hook-trust",) if trusted else ()
        sandbox = () if "-s" in options else ("-s", "danger-full-access")
        words = [self._programs.codex, "exec", "--trust", *trust, *sandbox, *options, prompt]
        return self._run(words, below)

    def in_host(self, host: str) -> Stage:
        """Return the same stage for a session of another host."""
        other = copy.copy(self)
        other.host = host
        return other

    def program(self) -> str:
        """Return the host's own binary."""
        return str(getattr(self._programs, self.host))

    def host_command(self, *words: str) -> Session:
        """Run a command of the host that asks no model."""
        return self._run([self.program(), *words], "")

    def accept_first_questions(self) -> None:
        """Answer what Claude Code asks a person in a terminal once: the theme, the key, the folder's trust."""
        project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        answered = {
            "hasCompletedOnboarding": True, "theme": "dark",
            "customApiKeyResponses": {"approved": [self.env["ANTHROPIC_API_KEY"]], "rejected": []},
            "projects": {str(self.root): project},
        }  # fmt: skip
        path = self.home / ".claude/.claude.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(answered))

    def write_codex_config(self, model: str = "gpt-5.5", more: str = "") -> None:
        path = self.home / ".codex/config.toml"
        if not path.exists() or more:
            path.write_text(_CODEX.format(model=model, url=self.model.url) + more)

    def _run(self, words: list[str], below: str) -> Session:
        began = time.monotonic()
        process = subprocess.Popen(
            words, cwd=self.root / below, env=self.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        said: list[tuple[float, str]] = []
        listener = threading.Thread(target=_hear, args=(process.stderr, said))
        listener.start()
        late = threading.Timer(PATIENCE_S, os.killpg, (process.pid, signal.SIGKILL))
        late.start()
        out = process.stdout.read()
        process.wait()
        late.cancel()
        listener.join()
        error = "".join(line for _, line in said)
        return Session(
            process.returncode, out, error, time.monotonic() - began, tuple(_hooks(said))
        )

    def _environment(self) -> dict[str, str]:
        """Return nothing of ours: no key, no proxy that leads out, no home."""
        nowhere = "http://127.0.0.1:9"
        return {
            "PATH": f"{self.place}/bin:{os.defpath}",
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "CODEX_HOME": str(self.home / ".codex"),
            "CLAUDE_CONFIG_DIR": str(self.home / ".claude"),
            "TMPDIR": str(self.place / "tmp"),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "GIT_CONFIG_NOSYSTEM": "1",
            "HTTP_PROXY": nowhere,
            "HTTPS_PROXY": nowhere,
            "NO_PROXY": "127.0.0.1,localhost",
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "a-dummy",
            "PLAY_KEY": "a-dummy",
            **dict.fromkeys(_QUIET, "1"),
        }


def _hear(stream: IO[str], said: list[tuple[float, str]]) -> None:
    for line in stream:
        said.append((time.monotonic(), line))


def _hooks(said: Sequence[tuple[float, str]]) -> Iterator[tuple[str, float]]:
    """Yield each hook that Codex says to have run, and for how long it did."""
    began: dict[str, float] = {}
    for at, line in said:
        match _SAID.match(line):
            case None:
                continue
            case found if found[2]:
                yield found[1], at - began.pop(found[1])
            case found:
                began[found[1]] = at


def agents(*names: str) -> tuple[str, str]:
    """Return the option of Claude Code that names its subagents."""
    rows = {name: {"description": name, "prompt": f"You are {name}."} for name in names}
    return "--agents", json.dumps(rows)
