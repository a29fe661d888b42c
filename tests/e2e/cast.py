"""Agents before a real daemon: each writes its files, and the command line says whose turn it is."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.e2e.artifacts import PLANNING, Artifact
from tests.e2e.company import PHASE
from tests.e2e.daemon import until
from tests.e2e.repo import Repo
from yolo_fs.cli.main import run

DAY = "2026-02-20"


class Cast:
    """The agents of one repository."""

    def __init__(self, repo: Repo, config: Mapping[str, Any]) -> None:
        self.repo = repo
        repo.commit_file(f"{PLANNING}/config.json", json.dumps(config), "chore: the company")

    def said(self, *words: str) -> Any:
        """Run a command in this process, which saves the start of another, and return its data."""
        out = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
            for key in ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_NOSYSTEM"):
                patch.setenv(key, self.repo.env[key])
            assert run([*words, "--json", "-C", str(self.repo.root)]) == 0, out.getvalue()
        return json.loads(out.getvalue().splitlines()[-1])["data"]

    def asked(self) -> Mapping[str, Any]:
        """Return who acts next, once `resume` and `workflow next` have said the same; empty for nobody."""
        while True:
            tip = self.repo.look("rev-parse", "HEAD")
            told = self.said("resume")["next"] or {}
            flow = self.said("workflow", "next", "--phase", "1")["next"] or {}
            if tip == self.repo.look("rev-parse", "HEAD"):  # else the daemon committed in between
                break
        for key in ("agent", "step", "task", "why"):
            assert told.get(key) == flow.get(key), (told, flow)
        return dict(told)

    def turn(self, agent: str, because: str = "") -> None:
        """Wait until it is somebody's turn, everywhere, and what says why: the daemon may still be
        closing an escalation.
        """
        asked: Mapping[str, Any] = {}

        def is_so() -> bool:
            nonlocal asked
            asked = self.asked()
            return asked.get("agent", "nobody") == agent and because in str(asked.get("why", ""))

        try:
            until(is_so, f"{agent} acts: {because}", 20)
        except AssertionError as error:
            raise AssertionError(f"{error}, and not: {asked}") from None
        if agent not in ("user", "nobody"):
            assert asked["writes"] or asked["command"], f"nothing says what to do: {asked}"
            for path in asked["writes"][:1]:
                assert self.said("may", asked["writer"] or agent, "write", path)["allowed"], asked

    def writes(self, name: str, *records: Mapping[str, Any] | str) -> None:
        """Write an artifact of the phase, or of the planning tree with `../../`; wait for its commit."""
        texts = [one if isinstance(one, str) else json.dumps(one) for one in records]
        self.puts(f"{PHASE}/{name}".replace(f"{PHASE}/../..", PLANNING), "\n".join(texts) + "\n")

    def puts(self, path: str, text: str) -> None:
        """Write a file, and wait until the daemon has committed it."""
        before = self.repo.look("rev-parse", "HEAD").strip()
        self.repo.file(path, text)
        blob = Artifact(path, text.encode(), "").blob()
        since = ("log", "--format=%h", f"--find-object={blob}", f"{before}..", "--", path)
        # A state file is moved on by the daemon's own commit, which may be the tip already.
        until(
            lambda: self._committed(path) == text or bool(self.repo.look(*since)),
            f"{path} is committed",
            20,
        )

    def commits(self, path: str, subject: str) -> str:
        """Write a source file, and commit it as its Dev does; return the commit."""
        self.repo.commit_file(path, f"// {subject}\n", subject)
        return self.repo.look("rev-parse", "HEAD").strip()[:12]

    def escalates(self, name: str, verb: str, message: Mapping[str, Any], *words: str) -> None:
        """Make a move of an escalation, and wait until its line is committed."""
        file = str(self.repo.file("message.json", json.dumps(message)))
        about = (name,) if name else ()
        self.said("escalate", verb, *about, "--message", file, *words)
        log = f"{PHASE}/escalation.jsonl"
        until(lambda: self._committed(log) == (self.repo.root / log).read_text(), "it is logged")

    def _committed(self, path: str) -> str:
        return self.repo.git("show", f"HEAD:{path}", ok=(0, 128), GIT_OPTIONAL_LOCKS="0")
