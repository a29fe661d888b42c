"""Runs git: hardened, with a time limit, in its own session, never through a shell.

GitPython starts the processes; we decide the arguments and the environment. Long-running helpers
are used through a `Conversation`. See docs/dev/faults.md#f02, #f03, #f48 and #f57.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, cast

from yolo_fs.core.reasons import Reason, YoloError, safe
from yolo_fs.git.conversation import Conversation
from yolo_fs.git.environment import (
    ENVIRONMENT,
    NETWORK,
    NETWORK_OPTIONS,
    OPTIONS,
    forget_inherited_environment,
    set_aside_inherited_environment,
    settings_as_variables,
)
from yolo_fs.git.failures import TIMEOUT_S, GitOutput, failure, timeout_error
from yolo_fs.system import IS_LINUX

_OLDEST = (2, 34)
_LOOK_S = 0.2
"""Interval between checks whether a git has ended while its pipes are still open, seconds."""
_MEMORY = (4 << 30, 4 << 30)
"""Bytes that a git may allocate: a small disk holds files and objects of any size."""


@functools.cache
def load_git_python() -> ModuleType:
    """Import GitPython only when the first git is to run: it is a third of a command's cost.

    Raises:
        YoloError: GIT_MISSING, since as it is imported, it runs `git version`; GIT_FAILED when git
            answers with an error, as it does where the user's configuration is torn.
    """
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    with set_aside_inherited_environment():
        try:
            import git
        except ImportError as error:
            if match := re.search("stderr: '(.+)'", str(error), re.DOTALL):
                raise failure("version", GitOutput(1, b"", match[1])) from None
            raise YoloError(
                Reason.GIT_MISSING,
                "the git on the path does not work: `git version` fails",
                hint="Install git 2.34 or newer.",
            ) from None
    return git


_LOOKS_INTO_NO_FILE = frozenset(
    {
        *("cat-file", "check-attr", "check-ignore", "check-ref-format", "config", "for-each-ref"),
        *("fsck", "hash-object", "index-pack", "log", "ls-tree", "merge-base", "pack-objects"),
        *("remote", "rev-list", "rev-parse", "symbolic-ref", "update-ref", "var", "version"),
    }
)
"""Commands that, as we call them, compare and merge no contents.
They need no filter or driver, and finding out which ones to switch off would cost each of them a
look at the configuration.
"""


class Git:
    """Runs git commands in one work tree."""

    def __init__(self, root: str, git_dir: str | None = None, *, keep_open: Sequence[int] = ()):
        """Run in `root`; children inherit the descriptors `keep_open` (the daemon's lock, F02)."""
        forget_inherited_environment()
        self._root = root
        self._place = [f"--git-dir={git_dir}", f"--work-tree={root}"] if git_dir else []
        self._keep_open = tuple(keep_open)
        self.identity: dict[str, str] = {}
        """`GIT_COMMITTER_*` for children when the user has configured no identity."""
        self.programs_off: Callable[[], Mapping[str, str]] = dict
        """Returns the settings that disable every program named by the repository."""

    def run(
        self,
        *arguments: str,
        given: bytes | None = None,
        ok: Sequence[int] = (0,),
        timeout_s: float = TIMEOUT_S,
        settings: Mapping[str, str] = {},
        more: Mapping[str, str] = {},
        networked: bool = False,
    ) -> GitOutput:
        """Run one command to its end and return its answer.

        `settings` and the environment `more` apply to this command only.
        `networked`: it may reach the user's remote, with their credentials. An interrupt of this
        process ends it, too: a terminal's Ctrl-C does not reach it, and a remote may never answer.

        Raises:
            YoloError: GIT_FAILED when the exit code is not in `ok`, GIT_TIMEOUT after `timeout_s`.
        """
        process = self._start(arguments, settings, more, networked=networked)
        try:
            out, err = outcome_of(process, given, timeout_s)
        except subprocess.TimeoutExpired:
            _end(process)
            raise timeout_error(arguments[0]) from None
        except BaseException:
            if networked:  # any other may finish: half-way it would leave locks (F02)
                _end(process)
            raise
        answer = GitOutput(process.returncode, out, err.decode("utf-8", "replace"))
        if answer.code not in ok:
            raise failure(arguments[0], answer)
        return answer

    def text(self, *arguments: str) -> str:
        """Return what a command prints, without its final newline."""
        return os.fsdecode(self.run(*arguments).out).removesuffix("\n")

    def refuse_old(self, oldest: tuple[int, int] = _OLDEST, what: str = "") -> None:
        """Refuse a git that is older than `oldest`; `what` needs that one, by default all we do.

        Raises:
            YoloError: GIT_MISSING.
        """
        version = self.text("version")
        match = re.search(r"(?<!\d)(\d+)\.(\d+)", version)
        if match and (int(match[1]), int(match[2])) < oldest:
            raise YoloError(
                Reason.GIT_MISSING,
                f"{safe(version)} is too old{f' for {what}' if what else ''}",
                hint=f"Install git {oldest[0]}.{oldest[1]} or newer.",
            )

    def converse(
        self, *arguments: str, settings: Mapping[str, str] = {}, more: Mapping[str, str] = {}
    ) -> Conversation:
        """Start a command that answers until closed; `settings` and `more` are as in `run`."""
        return Conversation(arguments[0], self._start(arguments, settings, more))

    def _start(
        self,
        arguments: Sequence[str],
        settings: Mapping[str, str],
        more: Mapping[str, str],
        *,
        networked: bool = False,
    ) -> subprocess.Popen[bytes]:
        git = load_git_python()
        if arguments[0] not in _LOOKS_INTO_NO_FILE:
            settings = {**self.programs_off(), **settings}
        more = {**settings_as_variables(settings), **(NETWORK if networked else {}), **more}
        options = NETWORK_OPTIONS if networked else OPTIONS
        process = execute_git(
            git.Git(self._root),
            [*options, *self._place, *arguments],
            istream=subprocess.PIPE,
            env={**ENVIRONMENT, **self.identity, **more},
            start_new_session=True,
            # A git that waits for a remote moves no branch: it must not block the next daemon.
            pass_fds=() if networked else self._keep_open,
        )
        if IS_LINUX and not networked:  # what is received may need more
            with contextlib.suppress(OSError):  # it has ended
                resource.prlimit(process.pid, resource.RLIMIT_DATA, _MEMORY)
        return process


def execute_git(git: Any, arguments: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
    """Start git by GitPython and return its process.

    Raises:
        YoloError: GIT_MISSING.
    """
    if not (executable := git.GIT_PYTHON_GIT_EXECUTABLE):
        raise _make_git_missing_error()
    try:
        started = git.execute([executable, *arguments], as_process=True, **how)
    except load_git_python().exc.GitCommandNotFound:
        raise _make_git_missing_error() from None
    # AutoInterrupt would kill git half-way on garbage collection; the bare one may finish (F02).
    process, started.proc = started.proc, None
    return cast("subprocess.Popen[bytes]", process)


def outcome_of(
    process: subprocess.Popen[bytes], given: bytes | None, timeout_s: float = math.inf
) -> tuple[bytes, bytes]:
    """Return the output of a process, read until the process itself has ended.

    Background processes that it leaves behind, such as ssh with ControlPersist or a hook's, may
    hold its pipes for hours.

    Raises:
        subprocess.TimeoutExpired: it has not ended in time.
    """
    deadline, has_ended = time.monotonic() + timeout_s, False
    while True:
        left_s = deadline - time.monotonic()
        try:
            return process.communicate(given, timeout=max(0.0, min(_LOOK_S, left_s)))
        except subprocess.TimeoutExpired as late:
            if has_ended:  # and has been read once more since
                close_pipes(process)
                return late.output or b"", late.stderr or b""
            has_ended = process.poll() is not None
            if left_s <= 0 and not has_ended:
                raise
        given = None


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)  # its helpers hold the pipes as well
        process.wait()
    close_pipes(process)


def close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):  # what was not sent yet is nobody's any more
                pipe.close()


def _make_git_missing_error() -> YoloError:
    return YoloError(Reason.GIT_MISSING, hint="Install git 2.34 or newer.")
