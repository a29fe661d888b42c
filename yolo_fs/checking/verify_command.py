"""Runs the user's own check of the sources, such as a test suite, and records how it ended.

Evidence is what agents claim, compared with git; whether the tests pass, only the tests say. The
command stands in the user's own configuration, for one work tree: it runs what a repository
contains, so no repository may ask for it, and none gets it because another one has.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from typing import IO, Any, NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.artifacts.decide import EventSink
from yolo_fs.core.credentials import redact
from yolo_fs.core.ids import SHORT
from yolo_fs.core.reasons import YoloError, safe_lines
from yolo_fs.core.timestamps import iso
from yolo_fs.git.repository import Repository
from yolo_fs.system.database import is_proved, prove
from yolo_fs.system.process_group import ProcessGroup, start_group
from yolo_fs.workspace.own_files import VERIFICATIONS, refuse_unsafe
from yolo_fs.workspace.settings import Settings

MOST_RECORDED = 50
TIMEOUT_S = 1_800.0
"""Longest run of the command."""
QUIET_S = 1.0
"""How long the branch's sources stay the same before they are verified: Devs commit in runs."""
LOOK_S = 0.5
_OUTPUT_BYTES = 2_000
"""Of what the command printed, its last."""


class VerifyRun(NamedTuple):
    """One run of the command."""

    commit: str
    """Tip of the branch when it began."""
    sources: str
    """What the sources of that commit are: the same where commits differ in planning alone."""
    command: list[str]
    passed: bool
    how: str
    """How it ended, such as `exit code 1`."""
    is_clean: bool
    """Whether the work tree had the sources of the commit, before and after."""
    began: str
    """Moment, UTC, ISO 8601."""
    seconds: float
    output: str
    """The last of what it printed, without credentials."""

    @property
    def sentence(self) -> str:
        """How it ended, and at which commit, in one line."""
        verdict = "passed" if self.passed else f"failed ({self.how})"
        unclean = "" if self.is_clean else ", with changes that are in no commit"
        return f"verify_command {verdict} at {self.commit[:SHORT]} in {self.seconds:.0f} s{unclean}"


def sources_of(repository: Repository, commit: str | None) -> str:
    """Return what two commits share that differ in the planning tree alone; empty without one."""
    if commit is None:
        return ""
    tree = repository.trees.get(repository.root_tree(commit))
    planning = f"{PLANNING_ROOT}/".encode()
    raws = (raw for key, raw in zip(tree.keys, tree.raws, strict=True) if key != planning)
    return hashlib.sha256(b"".join(raws)).hexdigest()[:40]


def verifications(repository: Repository) -> tuple[VerifyRun, ...]:
    """Return what this user's daemons recorded, oldest first."""
    content = VERIFICATIONS.read(repository)
    return tuple(map(_read, _proved(content)))


def _proved(content: object) -> list[dict[str, Any]]:
    return list(filter(is_proved, content["runs"])) if isinstance(content, dict) else []


def _read(run: Mapping[str, Any]) -> VerifyRun:
    return VerifyRun(**{name: run[name] for name in VerifyRun._fields})


def verification_of(
    repository: Repository, settings: Settings, commit: str | None
) -> VerifyRun | None:
    """Return the last run of the command in force on the sources of a commit; None without one.

    What another command found says nothing about this one.
    """
    command = settings.verify_command
    runs = verifications(repository) if command else ()
    recorded = [run for run in runs if tuple(run.command) == command]
    sources = sources_of(repository, commit) if recorded else ""
    return next((run for run in reversed(recorded) if run.sources == sources), None)


class _Running(NamedTuple):
    group: ProcessGroup
    output: IO[bytes]
    commit: str
    sources: str
    command: tuple[str, ...]
    is_clean: bool
    began_s: float
    """Wall clock."""
    until_s: float
    """Monotonic clock."""


_Check = tuple[str, tuple[str, ...]]
"""Sources of the branch, and the command in force."""


class SourceVerifier:
    """Runs the command of one work tree, one run at a time, once for all that has the same sources.

    What a commit has is run where the user works: a checkout of its own would lack what is built or
    installed there. So each run says whether the work tree had the sources of the commit.
    """

    def __init__(self, repository: Repository, emit: EventSink):
        self._repository = repository
        self._emit = emit
        self._running: _Running | None = None
        self._done: _Check = ("", ())
        """What needs no further run, as far as this process knows."""
        self._seen: tuple[_Check, float] = (("", ()), 0.0)
        """What is to be checked, and since when, on the monotonic clock."""

    def look(self, settings: Settings, tip: str | None) -> float | None:
        """Start a run that is due and record one that has ended; return in how many seconds to look
        again, None for when the branch moves.
        """
        if self._running and not self._record_ended(self._running):
            return LOOK_S
        command = settings.verify_command
        sources = sources_of(self._repository, tip) if command else ""
        check = sources, command
        if not sources or tip is None or check == self._done:
            return None
        if check != self._seen[0]:
            self._seen = check, time.monotonic()
            last = verification_of(self._repository, settings, tip)
            if last and last.passed and last.is_clean:
                self._done = check
                return None
        rest_s = self._seen[1] + QUIET_S - time.monotonic()
        if rest_s > 0:
            return rest_s
        self._done = check
        self._start(command, tip, sources)
        return LOOK_S

    def close(self) -> None:
        """End what runs; it is recorded nowhere."""
        if self._running:
            self._running.group.end()
            self._running.output.close()
            self._running = None

    def _start(self, command: tuple[str, ...], commit: str, sources: str) -> None:
        began_s = time.time()
        output = tempfile.TemporaryFile()  # noqa: SIM115 - read when the command has ended
        try:
            refuse_unsafe(self._repository)
            is_clean = self._is_clean()
            group = start_group(
                command,
                given=subprocess.DEVNULL,
                output=output,
                errors=subprocess.STDOUT,
                folder=self._repository.root,
                environment=_environment(),
            )
        except (OSError, YoloError) as error:
            output.close()
            run = VerifyRun(
                commit, sources, [*command], False, "not started", True, iso(began_s), 0.0, ""
            )
            self._keep(run._replace(output=_shown(str(error).encode())))
            return
        until_s = time.monotonic() + TIMEOUT_S
        self._running = _Running(
            group, output, commit, sources, command, is_clean, began_s, until_s
        )
        self._emit("verify_command.started", "", {"commit": commit, "command": [*command]})

    def _record_ended(self, running: _Running) -> bool:
        code = running.group.process.poll()
        how = f"exit code {code}" if code is None or code >= 0 else f"signal {-code}"
        if code is None:
            if time.monotonic() < running.until_s:
                return False
            how = f"not finished within {TIMEOUT_S:.0f} s"
        running.group.end()  # and what it left behind
        size = running.output.seek(0, os.SEEK_END)
        running.output.seek(max(0, size - _OUTPUT_BYTES))
        run = VerifyRun(
            running.commit,
            running.sources,
            [*running.command],
            code == 0,
            how,
            running.is_clean and self._is_clean() and self._has_tip_sources(running.sources),
            iso(running.began_s),
            round(max(0.0, time.time() - running.began_s), 1),
            _shown(running.output.read(_OUTPUT_BYTES)),
        )
        running.output.close()
        self._running = None
        self._keep(run)
        return True

    def _keep(self, run: VerifyRun) -> None:
        def with_run(content: Any) -> dict[str, Any]:
            return {"runs": [*_proved(content), prove(run._asdict())][-MOST_RECORDED:]}

        VERIFICATIONS.update(self._repository, with_run)
        details = {"commit": run.commit, "passed": run.passed, "what": run.sentence}
        self._emit("verify_command.ended", "", details)

    def _has_tip_sources(self, sources: str) -> bool:
        return sources_of(self._repository, self._repository.head().tip) == sources

    def _is_clean(self) -> bool:
        # dirty: within a submodule git would run the filters that its own configuration names
        how = ("--porcelain", "--untracked-files=normal", "--ignore-submodules=dirty")
        where = (":/", f":(top,exclude){PLANNING_ROOT}")
        more = {"GIT_LITERAL_PATHSPECS": "0"}
        return not self._repository.git.run("status", *how, "--", *where, more=more).out


def _environment() -> Mapping[str, str]:
    """Return our environment without what says who an agent is, or where a git is at work."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("YOLO_", "GIT_"))
    }


def _shown(output: bytes) -> str:
    return safe_lines(redact(output.decode(errors="replace")))
