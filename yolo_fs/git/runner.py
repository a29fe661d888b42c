"""Runs git: hardened, with a time limit, in its own session, never through a shell.

GitPython starts the processes; we decide the arguments and the environment. Nothing that the
repository contains or names (hooks, filters, drivers, fsmonitor, aliases, replace refs) takes part,
and no inherited `GIT_*` variable reaches a child. Long-running helpers, such as `cat-file --batch`,
are used through a `Conversation`. See docs/dev/faults.md#f02, #f03, #f48 and #f57.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.system import IS_LINUX
from yolo_fs.system.files import content_of, is_endless

if TYPE_CHECKING:
    import git as git_python

TIMEOUT_S = 10.0
"""Longest wait for one answer of git, seconds."""

_OLDEST = (2, 34)
_LOOK_S = 0.2
"""Interval between checks whether a git has ended while its pipes are still open, seconds."""
_COMPLAINTS_BYTES = 1 << 16
_MEMORY = (4 << 30, 4 << 30)
"""Bytes that a git may allocate: a small disk holds files and objects of any size."""


class GitError(YoloError):
    """git ended with an error."""

    def __init__(self, reason: Reason, message: str, complaints: str, exit_code: Exit):
        super().__init__(reason, message, hint=_hint_for(complaints), exit_code=exit_code)
        self.said = complaints
        """All of git's error output, uncut and unescaped: to be searched, never to be shown."""


class GitOutput(NamedTuple):
    """Result of a git command."""

    code: int
    out: bytes
    err: str


def failure(command: str, answer: GitOutput) -> GitError:
    """Return the error for a failed git command."""
    shown = safe(answer.err.strip().replace("\n", " ")) or f"exit code {answer.code}"
    full = "No space left on device" in answer.err or "Disk quota exceeded" in answer.err
    reason, code = (
        (Reason.NO_SPACE, Exit.TRY_AGAIN) if full else (Reason.GIT_FAILED, Exit.GIT_FAILED)
    )
    return GitError(reason, f"git {command}: {shown}", answer.err, code)


_DAMAGED_INDEX = re.compile(r"index: (?:index file|bad )|index file corrupt")
_NO_REPOSITORY = "not a git repository: '"
_IS_DAMAGED = (" is empty", " is corrupt")
_IS_MISSING = ("missing blob", "missing tree", "missing commit")


_BAD_VALUE = re.compile(r"bad (?:\w+ )?config (?:variable|value '.*?' for) '([\w.-]+)'")
"""What git says of a value that only some of its commands read."""
_READ_BY_EVERY_GIT = ("core.bare", "core.repositoryformatversion")
_IS_DENIED = re.compile(r": Permission denied$", re.MULTILINE)
"""The system's word about a file; that of a server goes on, as `(publickey)`."""
_NO_RIGHT = (
    "Give yourself permission to read and write it; root or a container may have created it."
)


def _hint_for(complaints: str) -> str:
    """Return which step is safe where git complains about a file of its own."""
    if _IS_DENIED.search(complaints):  # whatever else git calls it, nothing is damaged
        return _NO_RIGHT
    refused = _BAD_VALUE.search(complaints)
    if refused and refused[1] not in _READ_BY_EVERY_GIT:
        shown_by = f"git config --show-origin --get-all {refused[1]}"
        return f"'{shown_by}' shows where it is set: correct it there."
    if refused or "bad config " in complaints:
        return "Correct that line in an editor: until then no git command works."
    if match := _DAMAGED_INDEX.search(complaints):
        is_named = complaints.startswith("index: ", match.start())
        before = complaints[: match.start() + len("index")].rsplit(maxsplit=1)
        path = before[-1] if is_named else ".git/index"
        return (
            "The index is damaged: what was staged is lost, your files are not. "
            f"Move {path} away, then 'git reset' makes a new one."
        )
    _, is_there, rest = complaints.partition(_NO_REPOSITORY)
    folder = rest.partition("'")[0]
    if is_there and _is_locked_away(f"{folder}/HEAD"):
        return f"{folder}/HEAD cannot be read. {_NO_RIGHT}"
    if is_there:
        return (
            f"If that folder is there, {folder}/HEAD is empty or damaged: its one "
            "line must be 'ref: refs/heads/BRANCH', with the name of your branch."
        )
    for line in complaints.splitlines():
        is_damaged = "object " in line and any(words in line for words in _IS_DAMAGED)
        if is_damaged or any(words in line for words in _IS_MISSING):
            return (
                "'git fsck' names what is damaged; 'git fetch --refetch' from a remote that has it "
                "brings it back."
            )
    return ""


def _is_locked_away(path: str) -> bool:
    """Return whether something is there that this user may not read, or look into."""
    is_folder = os.path.isdir(path)
    return os.path.lexists(path) and not os.access(path, os.R_OK | (os.X_OK if is_folder else 0))


def timeout_error(command: str) -> YoloError:
    return YoloError(Reason.GIT_TIMEOUT, f"git {command} took longer than {TIMEOUT_S:.0f} s")


class Conversation:
    """A git process that answers requests over pipes, such as `cat-file --batch`."""

    def __init__(self, command: str, process: subprocess.Popen[bytes]):
        self.command = command
        self.pid = process.pid
        self._process = process
        self._in = cast("IO[bytes]", process.stdin)
        self._out = cast("IO[bytes]", process.stdout).fileno()
        self._err = cast("IO[bytes]", process.stderr).fileno()
        self._ahead = b""
        """Output that was read but not requested yet."""
        self._complaints = b""
        """The end of its stderr, which is read continuously, or it would fill the pipe."""

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

    def rest(self, most_bytes: int, silence_s: float = TIMEOUT_S) -> bytes | None:
        """Return all further output; if it exceeds `most_bytes`, kill the process and return None.

        Raises:
            YoloError: GIT_FAILED; GIT_TIMEOUT after `silence_s` of silence.
        """
        self.end_questions()
        parts, size = [self._ahead], len(self._ahead)
        while size <= most_bytes and (piece := self._next(silence_s)):
            parts.append(piece)
            size += len(piece)
        if size > most_bytes:
            self.kill()
            return None
        ended = self.finish()
        if ended.code:
            raise failure(self.command, ended)
        return b"".join(parts)

    def end_questions(self) -> None:
        """Close the process's input; `has_ended` tells when it is done."""
        with contextlib.suppress(OSError):
            self._in.close()
        self._process.stdin = None

    def has_ended(self) -> bool:
        """Return whether the process has ended; its output can still be read."""
        return self._process.poll() is not None

    def finish(self) -> GitOutput:
        """Close the process's input, and return its result once it has ended.

        Raises:
            YoloError: GIT_TIMEOUT after `TIMEOUT_S`.
        """
        self.end_questions()
        try:
            out, err = self._process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise timeout_error(self.command) from None
        complaints = (self._complaints + err).decode("utf-8", "replace")
        return GitOutput(self._process.returncode, out, complaints)

    def kill(self) -> None:
        """End the process at once, whatever it is doing."""
        self._process.kill()
        self.close()

    def close(self) -> None:
        """End the conversation; the process sees the end of its input and stops."""
        try:
            with contextlib.suppress(OSError, ValueError):
                self._process.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def _more(self) -> bytes:
        """Return the next chunk of output, however small.

        Raises:
            YoloError: GIT_TIMEOUT after `TIMEOUT_S` of silence; GIT_FAILED when the process is
                gone.
        """
        if piece := self._next(TIMEOUT_S):
            return piece
        raise self._ended()

    def _next(self, silence_s: float) -> bytes:
        """Return the next chunk of output, empty at the end. Raises YoloError(GIT_TIMEOUT)."""
        listened = select.poll()  # select(2) knows no descriptor beyond 1,023
        for descriptor in (self._out, self._err):
            listened.register(descriptor, select.POLLIN)
        while ready := [descriptor for descriptor, _ in listened.poll(1000 * silence_s)]:
            if self._err in ready:
                chunk = os.read(self._err, 1 << 16)
                self._complaints = (self._complaints + chunk)[-_COMPLAINTS_BYTES:]
                if not chunk:
                    listened.unregister(self._err)
            if self._out in ready:
                return os.read(self._out, 1 << 16)
        self._process.kill()
        raise timeout_error(self.command)

    def _ended(self) -> YoloError:
        try:
            _, err = self._process.communicate(timeout=TIMEOUT_S)
        except (ValueError, subprocess.TimeoutExpired):
            err = b""
        complaints = (self._complaints + err).decode("utf-8", "replace")
        return failure(self.command, GitOutput(self._process.returncode or 0, b"", complaints))


_IDENTITY = frozenset(
    f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
)
_KEPT = "YOLO_FS_"
"""Prefix of the names of the git variables that we honour."""


def forget_inherited_environment() -> dict[str, str]:
    """Drop every `GIT_*` variable of this process and return what was dropped.

    Called once at the start of each command: a hook that started us names *its* repository. The
    user's identity is kept for `given_identity` and for child processes. In a hook it is not, since
    there it is the identity of whoever made the current commit.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name.startswith("GIT_") and "PYTHON" not in name
    }
    for name in inherited:
        del os.environ[name]
    if not inherited.keys() & {"GIT_DIR", "GIT_INDEX_FILE"}:
        for name in inherited.keys() & _IDENTITY:
            os.environ[f"{_KEPT}{name}"] = inherited[name]
    return inherited


def given_identity() -> dict[str, str]:
    """Return the user's identity from the environment, under git's variable names."""
    kept = {name: os.environ.get(f"{_KEPT}{name}") for name in sorted(_IDENTITY)}
    return {name: value for name, value in kept.items() if value is not None}


@contextlib.contextmanager
def _set_aside_inherited_environment() -> Iterator[None]:
    """Remove the inherited variables temporarily, and restore them afterwards."""
    inherited = forget_inherited_environment()
    try:
        yield
    finally:
        os.environ.update(inherited)


@functools.cache
def load_git_python() -> ModuleType:
    """Import GitPython only when the first git is to run: it is a third of a command's cost.

    Raises:
        YoloError: GIT_MISSING, since as it is imported, it runs `git version`; GIT_FAILED when git
            answers with an error, as it does where the user's configuration is torn.
    """
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    with _set_aside_inherited_environment():
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


ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    # beats every protocol.NAME.allow of the repository, which protocol.allow does not
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_REPLACE_OBJECTS": "1",
    # no file can be there, so git has no grafts, and says nothing of them
    "GIT_GRAFT_FILE": "/dev/null/none",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
}

_NO_HOOKS = "core.hooksPath=/dev/null"
OWN_MARK = _NO_HOOKS.encode()
"""A word of the command line of each git of ours, and hardly of anybody else's."""
_SETTINGS = (
    _NO_HOOKS,
    "core.fsmonitor=false",
    "core.untrackedCache=keep",
    "core.pager=cat",
    # an index that replaces the user's unsynced may be empty after power loss
    "core.fsync=committed,reference,index",
    "core.fsyncMethod=fsync",
    "core.quotePath=false",
    "core.filesRefLockTimeout=100",  # a negative one waits for ever; milliseconds
    "core.packedRefsTimeout=1000",
    "core.warnAmbiguousRefs=false",  # a hash is looked for as a name in a dozen places else
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "credential.helper=",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "log.showSignature=false",
    "log.mailmap=false",  # a file of the work tree, and names are told as they were written
    "i18n.logOutputEncoding=UTF-8",
)


NETWORK = {
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
    "GIT_SSH_VARIANT": "ssh",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
}
"""Environment of the commands that reach the user's remote: their credentials, never a prompt."""
_NETWORK_SETTINGS = (
    *(each for each in _SETTINGS if not each.startswith(("credential.helper", "protocol.allow"))),
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=20",
    "push.gpgSign=false",
    "push.followTags=false",
    "core.bigFileThreshold=8m",  # what is larger arrives in pieces, and stands in no memory whole
)
_OPTIONS, _NETWORK_OPTIONS = (
    [part for setting in settings for part in ("-c", setting)]
    for settings in (_SETTINGS, _NETWORK_SETTINGS)
)


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
            out, err = _outcome(process, given, timeout_s)
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
        more = {**_format_environment(settings), **(NETWORK if networked else {}), **more}
        options = _NETWORK_OPTIONS if networked else _OPTIONS
        process = _execute(
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


def _execute(git: Any, arguments: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
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


def _outcome(
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
                _let_go(process)
                return late.output or b"", late.stderr or b""
            has_ended = process.poll() is not None
            if left_s <= 0 and not has_ended:
                raise
        given = None


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)  # its helpers hold the pipes as well
        process.wait()
    _let_go(process)


def _let_go(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):  # what was not sent yet is nobody's any more
                pipe.close()


def _format_environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings as variables: unlike with `-c`, a key may contain `=`."""
    pairs = {
        f"GIT_CONFIG_{part}_{at}": text
        for at, pair in enumerate(settings.items())
        for part, text in zip(("KEY", "VALUE"), pair, strict=True)
    }
    return {"GIT_CONFIG_COUNT": str(len(settings)), **pairs} if settings else {}


def _make_git_missing_error() -> YoloError:
    return YoloError(Reason.GIT_MISSING, hint="Install git 2.34 or newer.")


class RepositoryPaths(NamedTuple):
    """Paths of a repository and its parts."""

    root: str
    """Top of the work tree."""
    git_dir: str
    common_dir: str
    """Differs from `git_dir` in a linked work tree."""
    hooks_dir: str
    """The user's hooks. We run none, and our own commands point the setting elsewhere."""


_ELSEWHERE = re.compile(rb"worktree|hookspath|include|bare(?!\s*=\s*false\b)", re.IGNORECASE)
"""Unless one of these words occurs, no configuration moves a part of a repository elsewhere."""


def open_repository(start: str) -> git_python.Repo:
    """Return the repository that `start` lies in, to be closed by the caller.

    Raises:
        YoloError: NOT_A_REPOSITORY, or BARE_REPOSITORY when it has no work tree; NOT_REGULAR.
    """
    forget_inherited_environment()
    place = os.path.realpath(start)  # as git: a link into a repository leads there
    named = list(_read_to_find(place))
    refuse_endless(named)
    refuse_endless(included_by(named))
    git = load_git_python()
    try:
        repository: git_python.Repo = git.Repo(
            place, search_parent_directories=True, expand_vars=False
        )
    except (git.exc.InvalidGitRepositoryError, git.exc.NoSuchPathError, ValueError, OSError):
        message = f"no git repository at {safe(os.path.abspath(start))}"
        hint = "Change to a repository, use -C DIR, or create one here with 'git init'."
        if os.path.isfile(os.path.join(start, ".git")):
            hint = (
                "Its repository was moved or deleted: in the repository, run 'git worktree repair' "
                "with this path."
            )
        locked = [place for place in named if _is_locked_away(place)]
        if locked:
            hint = f"{safe(locked[0])} cannot be read. {_NO_RIGHT}"
        raise YoloError(Reason.NOT_A_REPOSITORY, message, hint=hint) from None
    if repository.bare or repository.working_tree_dir is None:
        repository.close()
        message = f"{safe(os.path.abspath(start))} is in a repository without a work tree"
        hint = "Work in a clone of it, or in a work tree that 'git worktree add' makes."
        raise YoloError(Reason.BARE_REPOSITORY, message, hint=hint)
    return repository


_MOST_READ_BYTES = 1 << 30
_MOST_CONFIG_BYTES = 8 << 20
_MOST_INCLUDED = 64


def refuse_endless(places: Iterable[str]) -> None:
    """Refuse files that every git, and GitPython, would read forever, or nearly so.

    Raises:
        YoloError: NOT_REGULAR.
    """
    for place in places:
        is_config = os.path.basename(place).startswith("config")
        most_bytes = _MOST_CONFIG_BYTES if is_config else _MOST_READ_BYTES
        if not is_endless(place, most_bytes):
            continue
        raise YoloError(
            Reason.NOT_REGULAR,
            f"{safe(place)}: a pipe, a device or more than {most_bytes >> 20} MiB in the place of "
            "a file that git reads",
            hint="Check what it is, then replace it with a file.",
        )


def included_by(files: Iterable[str]) -> Iterator[str]:
    """Yield the files that files of configuration include, and what those include."""
    left = list(files)
    for file in left:
        if b"include" not in content_of(file).lower() or len(left) > _MOST_INCLUDED:
            continue
        # Not in the repository: there git itself would read what is included.
        answer = Git("/").run(
            *("config", "--file", file, "--no-includes", "--null", "--path"),
            *("--get-regexp", r"^include(if\..*)?\.path$"),
            ok=(0, 1, 128),
        )
        for pair in answer.out.split(b"\0")[:-1]:
            path = os.fsdecode(pair.partition(b"\n")[2])
            place = os.path.normpath(os.path.join(os.path.dirname(file), path))
            yield place
            if place not in left:
                left.append(place)


def _read_to_find(place: str) -> Iterator[str]:
    """Yield the files that are read to find the repository of a folder."""
    while not os.path.lexists(f"{place}/.git") and place != os.path.dirname(place):
        place = os.path.dirname(place)
    yield f"{place}/.git"
    link = os.fsdecode(content_of(f"{place}/.git", 4096)).removeprefix("gitdir: ").strip()
    git_dir = os.path.join(place, link or ".git")
    shared = ("../../HEAD", "../../config") if link else ()  # of a linked work tree
    for name in ("HEAD", "commondir", "config", *shared):
        yield f"{git_dir}/{name}"


def discover(start: str) -> RepositoryPaths:
    """Find the repository that `start` lies in.

    Raises as `open_repository`, and BARE_REPOSITORY when its configuration names a work tree
    elsewhere. GitPython is only used for unusual layouts: importing it costs more than most
    commands.
    """
    forget_inherited_environment()
    return _ordinary(start) or _found_by_git_python(start)


def _ordinary(start: str) -> RepositoryPaths | None:
    """Return the paths of a repository with git's default layout; None for any other."""
    place = os.path.realpath(start)
    while not os.path.lexists(f"{place}/.git"):
        if os.path.lexists(f"{place}/HEAD") or place == os.path.dirname(place):
            return None
        place = os.path.dirname(place)
    root = os.path.realpath(place)
    git_dir = f"{root}/.git"
    is_whole = all(os.path.isdir(f"{git_dir}{part}") for part in ("", "/objects", "/refs"))
    is_linked = os.path.islink(git_dir) or os.path.lexists(f"{git_dir}/commondir")
    if is_linked or not is_whole or not os.path.isfile(f"{git_dir}/HEAD"):
        return None
    if not os.path.exists(start) or any(map(_ELSEWHERE.search, config_texts(git_dir, git_dir))):
        return None
    return RepositoryPaths(root, git_dir, git_dir, f"{git_dir}/hooks")


def config_texts(git_dir: str, common_dir: str) -> tuple[bytes, ...]:
    """Return the contents of git's configuration files, the repository's own first.

    Reading them costs less than asking git.
    """
    home = os.path.expanduser("~")
    more = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    own = (f"{common_dir}/config", f"{git_dir}/config.worktree")
    places = (*own, "/etc/gitconfig", f"{home}/.gitconfig", f"{more}/git/config")
    return tuple(content_of(place) for place in places)


def _found_by_git_python(start: str) -> RepositoryPaths:
    with open_repository(start) as repository, repository.config_reader() as config:
        root, common_dir = (
            os.path.realpath(str(repository.working_tree_dir)),
            os.path.realpath(str(repository.common_dir)),
        )
        hooks = os.path.expanduser(str(config.get_value("core", "hooksPath", "")))
        git_dir = os.path.realpath(str(repository.git_dir))
        # GitPython, unlike git, does not look there for the files of the user.
        elsewhere = os.path.join(git_dir, str(config.get_value("core", "worktree", root)))
    if git_dir == common_dir and os.path.realpath(elsewhere) != root:
        message = f"core.worktree puts the work tree of {safe(root)} elsewhere"
        hint = "Use a linked work tree (`git worktree add`) instead."
        raise YoloError(Reason.BARE_REPOSITORY, message, hint=hint)
    return RepositoryPaths(
        root, git_dir, common_dir, os.path.join(root, hooks or f"{common_dir}/hooks")
    )


def is_trusted_by_git(place: str) -> bool:
    """Return whether git itself works at a place that belongs to another user.

    It does where the user's own configuration says so (`safe.directory`), and for root in a
    repository of whoever called sudo.
    """
    # Not in a `Git`: naming the git directory disables git's own check of the owner.
    return Git(place).run("rev-parse", "--git-dir", ok=(0, 128)).code == 0


def run_as_user(start: str, arguments: Sequence[str]) -> GitOutput:
    """Run one git command in the directory `start`; without a time limit, for the user's hooks.

    Raises:
        YoloError: NOT_A_REPOSITORY, BARE_REPOSITORY, GIT_MISSING.
    """
    inherited = forget_inherited_environment()
    try:
        with open_repository(start) as repository:
            git = repository.git
            # GitPython sets both of these to C for its children, and thereby for the user's hooks.
            language = {name: os.environ.get(name, "") for name in ("LANGUAGE", "LC_ALL")}
            words = ["-C", os.path.abspath(start), *arguments]
            process = _execute(git, words, env={**inherited, **language})
            try:
                out, err = _outcome(process, None)
            except BaseException:  # whoever undoes what git has begun must not do it beside git
                process.terminate()
                process.wait()
                _let_go(process)
                raise
    finally:
        os.environ.update(inherited)
    streams = out.removesuffix(b"\n"), err.removesuffix(b"\n").decode("utf-8", "replace")
    return GitOutput(process.returncode, *streams)
