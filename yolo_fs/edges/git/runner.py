"""Runs git: hardened, with a time limit, in its own session, never through a shell.

GitPython does the running; we decide the arguments and the environment. Nothing that the repository
contains (hooks, filters, fsmonitor, aliases, replace refs) takes part, and no inherited `GIT_*`
variable reaches a child. See docs/faults.md#f02, #f03, #f48 and #f57.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
from collections.abc import Mapping, Sequence
from typing import IO, NamedTuple, cast

from yolo_fs.edges.git.environment import (
    forget_inherited_environment,
    inherited_environment_set_aside,
)
from yolo_fs.reasons import Exit, Reason, YoloError, safe

os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
with inherited_environment_set_aside():  # as it is imported, GitPython runs `git version`
    import git

TIMEOUT_S = 10.0
"""Longest wait for one answer of git."""

_COMPLAINTS_BYTES = 1 << 16

ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # beats every protocol.NAME.allow of the repository, which protocol.allow does not
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
}

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=keep",
    "core.pager=cat",
    "core.fsync=committed,reference,index",  # an index that replaces the user's unsynced may be empty after power loss
    "core.fsyncMethod=fsync",
    "core.quotePath=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "credential.helper=",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "log.showSignature=false",
    "i18n.logOutputEncoding=UTF-8",
)


class GitError(YoloError):
    """git ended with an error."""

    def __init__(self, reason: Reason, message: str, said: str, exit_code: Exit):
        super().__init__(reason, message, exit_code=exit_code)
        self.said = said
        """All that git complained about, uncut and unescaped: to be searched, never to be shown."""


class GitOutput(NamedTuple):
    """What a git command said."""

    code: int
    out: bytes
    err: str


class Git:
    """Runs git commands in one work tree."""

    def __init__(self, root: str, git_dir: str | None = None, *, keep_open: Sequence[int] = ()):
        """Run in `root`; children also inherit the descriptors `keep_open` (the daemon's lock, F02)."""
        forget_inherited_environment()
        executable = git.Git.GIT_PYTHON_GIT_EXECUTABLE
        if not executable:
            raise _no_git()
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        place = [f"--git-dir={git_dir}", f"--work-tree={root}"] if git_dir else []
        self._prefix = [executable, *settings, *place]
        self._git = git.Git(root)
        self._keep_open = tuple(keep_open)
        self.identity: dict[str, str] = {}
        """`GIT_COMMITTER_*` for children when the user has configured no identity."""

    def run(
        self,
        *arguments: str,
        given: bytes | None = None,
        ok: Sequence[int] = (0,),
        timeout_s: float = TIMEOUT_S,
        settings: Mapping[str, str] = {},
    ) -> GitOutput:
        """Run one command to its end and return its answer; `settings` hold for it alone.

        Raises:
            YoloError: GIT_FAILED when the exit code is not in `ok`, GIT_TIMEOUT after `timeout_s`.
        """
        process = self._start(arguments, _as_environment(settings))
        try:
            out, err = process.communicate(given, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise _too_slow(arguments[0]) from None
        answer = GitOutput(process.returncode, out, err.decode("utf-8", "replace"))
        if answer.code not in ok:
            raise failure(arguments[0], answer)
        return answer

    def text(self, *arguments: str) -> str:
        """Return what a command prints, without its final newline."""
        return os.fsdecode(self.run(*arguments).out).removesuffix("\n")

    def converse(self, *arguments: str, more: Mapping[str, str] = {}) -> Conversation:
        """Start a command that answers line by line until it is closed; `more` is added to its environment."""
        return Conversation(arguments[0], self._start(arguments, more))

    def _start(
        self, arguments: Sequence[str], more: Mapping[str, str] = {}
    ) -> subprocess.Popen[bytes]:
        try:
            started = self._git.execute(
                [*self._prefix, *arguments],
                istream=subprocess.PIPE,
                as_process=True,
                env={**ENVIRONMENT, **self.identity, **more},
                start_new_session=True,
                pass_fds=self._keep_open,
            )
        except git.exc.GitCommandNotFound:
            raise _no_git() from None
        # AutoInterrupt would kill git half-way when it is collected; the bare process may finish (F02).
        process = cast("subprocess.Popen[bytes]", started.proc)
        started.proc = None
        return process


def _as_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings as variables: unlike after `-c`, a key may hold `=` there, and the repository chooses keys."""
    pairs = {
        f"GIT_CONFIG_{part}_{at}": text
        for at, pair in enumerate(settings.items())
        for part, text in zip(("KEY", "VALUE"), pair, strict=True)
    }
    return {"GIT_CONFIG_COUNT": str(len(settings)), **pairs} if settings else {}


def failure(command: str, answer: GitOutput) -> GitError:
    """Return the error that an answer of git amounts to."""
    shown = safe(answer.err.strip().replace("\n", " ")) or f"exit code {answer.code}"
    full = "No space left on device" in answer.err or "Disk quota exceeded" in answer.err
    reason, code = (
        (Reason.NO_SPACE, Exit.TRY_AGAIN) if full else (Reason.GIT_FAILED, Exit.GIT_FAILED)
    )
    return GitError(reason, f"git {command}: {shown}", answer.err, code)


def _no_git() -> YoloError:
    return YoloError(
        Reason.GIT_MISSING, hint="Install git 2.34 or newer.", exit_code=Exit.GIT_FAILED
    )


def _too_slow(command: str) -> YoloError:
    return YoloError(
        Reason.GIT_TIMEOUT,
        f"git {command} took longer than {TIMEOUT_S:.0f} s",
        exit_code=Exit.GIT_FAILED,
    )


class Conversation:
    """A git process that is asked and answers over pipes, such as `cat-file --batch`."""

    def __init__(self, command: str, process: subprocess.Popen[bytes]):
        self.command = command
        self.pid = process.pid
        self._process = process
        self._in = cast("IO[bytes]", process.stdin)
        self._out = cast("IO[bytes]", process.stdout).fileno()
        self._err = cast("IO[bytes]", process.stderr).fileno()
        self._ahead = b""
        """Read from the process, not yet asked for."""
        self._complaints = b""
        """The last of what it complained about; read as it comes, or it would fill the pipe and stop."""

    def ask(self, question: bytes) -> None:
        """Send bytes.

        Raises:
            YoloError: the process is gone; says what it complained about.
        """
        try:
            self._in.write(question)
            self._in.flush()
        except (BrokenPipeError, ValueError):
            raise self._ended() from None

    def line(self) -> bytes:
        """Return the next line of the answer without its newline."""
        return self.until(b"\n")

    def until(self, end: bytes) -> bytes:
        """Return the answer up to the byte `end`."""
        while (at := self._ahead.find(end)) < 0:
            self._ahead += self._more()
        answer, self._ahead = self._ahead[:at], self._ahead[at + 1 :]
        return answer

    def exactly(self, size_bytes: int) -> bytes:
        """Return that many bytes of the answer."""
        parts, size = [self._ahead], len(self._ahead)
        while size < size_bytes:
            parts.append(self._more())
            size += len(parts[-1])
        whole = b"".join(parts)
        self._ahead = whole[size_bytes:]
        return whole[:size_bytes]

    def close(self) -> None:
        """End the conversation; the process sees the end of its input and stops."""
        try:
            with contextlib.suppress(OSError, ValueError):
                self._process.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def _more(self) -> bytes:
        """Return what comes next, however little.

        Raises:
            YoloError: GIT_TIMEOUT after `TIMEOUT_S` of silence; GIT_FAILED when the process is gone.
        """
        listened = [self._out, self._err]
        while ready := select.select(listened, [], [], TIMEOUT_S)[0]:
            if self._err in ready:
                said = os.read(self._err, 1 << 16)
                self._complaints = (self._complaints + said)[-_COMPLAINTS_BYTES:]
                if not said:
                    listened.remove(self._err)
            if self._out in ready:
                piece = os.read(self._out, 1 << 16)
                if not piece:
                    raise self._ended()
                return piece
        self._process.kill()
        raise _too_slow(self.command)

    def _ended(self) -> YoloError:
        try:
            _, err = self._process.communicate(timeout=TIMEOUT_S)
        except (ValueError, subprocess.TimeoutExpired):
            err = b""
        said = (self._complaints + err).decode("utf-8", "replace")
        return failure(self.command, GitOutput(self._process.returncode or 0, b"", said))


class RepositoryPaths(NamedTuple):
    """Where a repository and its parts lie."""

    root: str
    """Top of the work tree."""
    git_dir: str
    common_dir: str
    """Differs from `git_dir` in a linked work tree."""
    hooks_dir: str
    """Where the user's hooks are. We run none, and our own commands point the setting elsewhere."""


def open_repository(start: str) -> git.Repo:
    """Return the repository that `start` lies in, to be closed by the caller.

    Raises:
        YoloError: NOT_A_REPOSITORY, or BARE_REPOSITORY when it has no work tree.
    """
    forget_inherited_environment()
    try:
        found = git.Repo(os.path.abspath(start), search_parent_directories=True, expand_vars=False)
    except (git.exc.InvalidGitRepositoryError, git.exc.NoSuchPathError, ValueError, OSError):
        message, hint = f"no git repository at {safe(start)}", "Go into one, or use -C."
        raise YoloError(
            Reason.NOT_A_REPOSITORY, message, hint=hint, exit_code=Exit.NOT_HERE
        ) from None
    if found.bare or found.working_tree_dir is None:
        found.close()
        raise YoloError(Reason.BARE_REPOSITORY, exit_code=Exit.NOT_HERE)
    return found


def discover(start: str) -> RepositoryPaths:
    """Find the repository that `start` lies in. Raises as `open_repository`."""
    with open_repository(start) as found, found.config_reader() as config:
        root, common_dir = (
            os.path.realpath(str(found.working_tree_dir)),
            os.path.realpath(str(found.common_dir)),
        )
        hooks = os.path.expanduser(str(config.get_value("core", "hooksPath", "")))
        git_dir = os.path.realpath(str(found.git_dir))
    return RepositoryPaths(
        root, git_dir, common_dir, os.path.join(root, hooks or f"{common_dir}/hooks")
    )
