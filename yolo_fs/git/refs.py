"""Moves refs by compare-and-swap, in this repository and at the user's git remote.

Here one long-running `git update-ref --stdin` is used. The remote is the only place where a git of
ours uses the network. Its credentials, ssh and proxies come from the user's own configuration; of
the repository's configuration only the address counts. Nothing ever prompts, no hook runs, every
call has a time limit, and nothing is ever forced on a ref of others. See docs/dev/faults.md#f02,
#f03, #f08, #f24 and #f57.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from yolo_fs.core.reasons import Exit, Reason, YoloError, safe
from yolo_fs.git.conversation import Conversation
from yolo_fs.git.failures import GitError, GitOutput
from yolo_fs.git.isolated import ignored_settings, isolated_git
from yolo_fs.git.repository import Repository
from yolo_fs.system import failpoint
from yolo_fs.system.files import content_of
from yolo_fs.system.in_place import ScratchRecord
from yolo_fs.system.store import sync_directory
from yolo_fs.system.system import boot_id, is_running, start_time

REFLOG_MESSAGE = "yolo-fs"
"""Reflog message that distinguishes our branch moves from the user's."""
REFTABLE_LOCK = "reftable/tables.list.lock"
"""Lock of every ref of a repository in the reftable format."""
_LINE_BYTES = 4096
_NO_REFLOG = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.logAllRefUpdates",
    "GIT_CONFIG_VALUE_0": "false",
}


class RefUpdater:
    """Moves branches of one repository."""

    def __init__(self, repository: Repository, *, durable: bool = True, is_private: bool = False):
        """Move branches, or a private ref: one without a reflog, moved under a lock of ours."""
        self._repository = repository
        self._durable = durable
        self._is_private = is_private
        self._helper: Conversation | None = None
        name = "kept-ref-lock" if is_private else "ref-locks"
        self._notes = _LockNotes(f"{repository.own_dir}/{name}")

    def move(
        self,
        ref: str,
        new: str,
        old: str | None,
        within: AbstractContextManager[object] = contextlib.nullcontext(),
    ) -> None:
        """Let `ref` point at `new` if it still points at `old` (None: if it does not exist yet).

        `within`: entered when the ref is locked and nothing but the move itself is left; may
        refuse.

        Raises:
            YoloError: NOT_REGULAR when a ref of ours leads elsewhere, BRANCH_MOVED when it points
                elsewhere by now, REF_LOCKED when another git holds its lock, NO_SPACE, GIT_FAILED,
                GIT_MISSING for a git that is too old. After every failure the ref is read again: a
                move that was made and then reported as failed counts as made (F08).
        """
        _refuse_astray(self._repository, ref)
        # Asked first: the ref may be created meanwhile.
        path = f"{self._repository.common_dir}/{ref}"
        # git takes a link for a branch of another name
        has_file = os.path.isfile(path) or os.path.islink(path)
        if old is None and has_file and self._repository.tip(ref) is None:
            raise YoloError(Reason.BRANCH_BROKEN, hint="See 'yolo-fs doctor'.")
        try:
            zero = self._repository.object_format.zero
            self._transact(ref, b"update", new, old or zero, within=within)
        except YoloError as error:
            self.close()
            self._refuse_silent(error)
            # a killed helper leaves them, and the next would wait forever
            self.clear_own_stale_locks()
            if self._repository.tip(ref) != new:
                raise _classify_error(error) from None
        if self._durable:
            self._make_name_durable(ref, is_new=old is None)
        failpoint.reach("refs.durable")

    def renew(self) -> None:
        """Replace the helper: a long-lived one keeps open every pack that it has ever seen."""
        if self._helper is not None:
            self.close()
            self._start()

    def delete(self, ref: str, old: str) -> None:
        """Delete a private ref if it still points at `old`. Raises as `move`."""
        _refuse_astray(self._repository, ref)
        try:
            self._transact(ref, b"delete", old)
        except YoloError as error:
            self.close()
            self._refuse_silent(error)
            self.clear_own_stale_locks()
            raise _classify_error(error) from None

    def close(self) -> None:
        """End the helper process; an unfinished transaction is dropped by git."""
        if self._helper is not None:
            self._helper.close()
            self._helper = None

    def clear_own_stale_locks(self) -> tuple[str, ...]:
        """Remove only ref locks that a dead helper of ours left; return their paths (F24)."""
        stale = self._notes.stale()
        for path in stale:
            with contextlib.suppress(OSError):
                os.unlink(path)
        return stale

    def own_stale_locks(self) -> tuple[str, ...]:
        """Return the ref locks that are provably ours and whose holder is dead."""
        return self._notes.stale()

    def _transact(
        self,
        ref: str,
        change: bytes,
        *values: str,
        within: AbstractContextManager[object] = contextlib.nullcontext(),
    ) -> None:
        helper = self._helper or self._start()
        failpoint.reach("refs.begun")
        # -z: else a space or a newline in a name that somebody gave would be a command of its own
        command = b"\0".join([b"%s %s" % (change, os.fsencode(ref)), *map(str.encode, values)])
        helper.ask(b"start\0%s\0prepare\0" % command)
        for step in (b"start: ok", b"prepare: ok"):
            _expect(helper, step)
        failpoint.reach("refs.prepared")
        is_plain = self._repository.has_plain_refs
        lock, head = (f"{ref}.lock", "HEAD.lock") if is_plain else (REFTABLE_LOCK, REFTABLE_LOCK)
        # HEAD does not name a private ref: a HEAD.lock is the user's then.
        heads = () if self._is_private else (f"{self._repository.git_dir}/{head}",)
        self._notes.write((f"{self._repository.common_dir}/{lock}", *heads))
        failpoint.reach("refs.noted")
        with within:
            helper.ask(b"commit\0")
            _expect(helper, b"commit: ok")
            failpoint.reach("refs.moved")

    def _refuse_silent(self, error: YoloError) -> None:
        """Refuse an old git, which keeps its answers until it is closed."""
        if error.reason is Reason.GIT_TIMEOUT:
            self._repository.git.refuse_old()

    def _start(self) -> Conversation:
        reflog = () if self._is_private else ("--create-reflog", "-m", REFLOG_MESSAGE)
        more = _NO_REFLOG if self._is_private else {}
        self._helper = self._repository.git.converse(
            "update-ref", *reflog, "--stdin", "-z", more=more
        )
        pid = self._helper.pid
        self._notes.helper = {"pid": pid, "started": start_time(pid), "boot": boot_id()}
        return self._helper

    def _make_name_durable(self, ref: str, *, is_new: bool) -> None:
        """Sync the folder: git syncs the ref's content, but not the rename of the finished file."""
        name = ref if self._repository.has_plain_refs else REFTABLE_LOCK
        folder = os.path.dirname(f"{self._repository.common_dir}/{name}")
        top = f"{self._repository.common_dir}/refs"
        with contextlib.suppress(OSError):
            sync_directory(folder)
            while is_new and folder.startswith(top + "/"):
                folder = os.path.dirname(folder)
                sync_directory(folder)


_OURS = "refs/yolo-fs/"
"""Refs that only we write: a git directory from elsewhere has none, or odd ones."""


def _refuse_astray(repository: Repository, ref: str) -> None:
    """Refuse a ref of ours that git would write elsewhere: behind a link, or as another ref.

    Raises:
        YoloError: NOT_REGULAR.
    """
    if not ref.startswith(_OURS):
        return
    parts = ref.split("/")
    names = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    places = [f"{repository.common_dir}/{top}{name}" for top in ("", "logs/") for name in names]
    stray = next(filter(os.path.islink, places), "")
    if not stray and repository.has_plain_refs:
        place = f"{repository.common_dir}/{ref}"
        stray = place if content_of(place, _LINE_BYTES).startswith(b"ref:") else ""
    elif not stray and repository.git.run("symbolic-ref", "--quiet", ref, ok=_ANY).code == 0:
        stray = ref
    if stray:
        raise YoloError(
            Reason.NOT_REGULAR,
            f"{safe(stray)}: expected a ref of ours, in real folders; it leads elsewhere",
            hint="Look at what it is, then remove it; what it leads to is not ours.",
        )


def _expect(helper: Conversation, expected: bytes) -> None:
    if (answer := helper.line()) != expected:
        raise YoloError(Reason.GIT_FAILED, f"update-ref answered {answer!r}")


def _classify_error(error: YoloError) -> YoloError:
    """Return the error of a failed move, with the reason derived from git's message."""
    complaints = error.said if isinstance(error, GitError) else ""
    if "reference broken" in complaints:
        hint, code = "See 'yolo-fs doctor'.", Exit.GIT_FAILED
        return YoloError(Reason.BRANCH_BROKEN, error.message, hint=hint, exit_code=code)
    moved = (" but expected ", "reference already exists", "unable to resolve")
    if any(words in complaints for words in moved):
        return YoloError(Reason.BRANCH_MOVED, error.message)
    if "cannot lock references" in complaints or (
        ".lock" in complaints and "File exists" in complaints
    ):
        return YoloError(Reason.REF_LOCKED, error.message)
    return error


class _LockNotes:
    """Records which ref locks our helper holds: after its death they can be proved ours."""

    def __init__(self, path: str):
        self._note = ScratchRecord(path)
        self.helper: dict[str, object] = {}

    def write(self, locks: tuple[str, ...]) -> None:
        held = [[path, mark] for path in dict.fromkeys(locks) if (mark := _mark(path))]
        self._note.write({**self.helper, "locks": held})

    def stale(self) -> tuple[str, ...]:
        note = self._note.read()
        try:
            boot, started, pid = note["boot"], note["started"], note["pid"]
            alive = (boot, started) == (boot_id(), start_time(pid)) and is_running(pid)
            left = () if alive else note["locks"]
            return tuple(path for path, mark in left if mark == _mark(path))
        except (OSError, ValueError, KeyError, TypeError):
            return ()


def _mark(path: str) -> list[int]:
    """Return what identifies a lock file: inode numbers alone are reused."""
    try:
        facts = os.lstat(path)
    except OSError:
        return []
    return [facts.st_dev, facts.st_ino, facts.st_ctime_ns]


CALL_S = 30.0
"""Time limit of one call to the remote, seconds."""
_FETCHES = 4
"""Tries of a fetch: another process of this clone may lock the ref while the remote moves on."""
_ANY = (0, 1, 128)
_RACES = ("cannot lock ref", "failed to update ref", "reference already exists", "fetch first",
          "non-fast-forward", "stale info", "incorrect old value", "failed to lock")  # fmt: skip
"""git's messages when another process was first."""
_AMBIGUOUS = "matches more than one"
"""git's message when a tag of the remote has the whole name of a branch, which anybody can push."""
_IN_THE_WAY = "exists; cannot create"
"""git's message when a ref has the name of a folder of ours, or vice versa; this is permanent."""


class Remote:
    """One remote of a repository, by its name or address."""

    def __init__(self, repository: Repository, name: str):
        self._repository = repository
        self._name = name

    def tip(self, ref: str) -> str | None:
        """Return what a ref of the remote points at, or None when there is none.

        Raises:
            YoloError: REMOTE_AWAY; REMOTE_REFUSED when its objects are named by another hash.
        """
        return self.tips(ref).get(ref)

    def tips(self, *refs: str) -> dict[str, str]:
        """Return the object that each of these refs of the remote points at, if it exists.

        A ref that ends in `/*` stands for all below it.

        Raises:
            YoloError: as `tip`.
        """
        output = self._call("ls-remote", "--refs", "--", self._name, *refs).out.decode()
        pairs = [line.split("\t") for line in output.splitlines() if "\t" in line]
        if any(len(oid) != 2 * self._repository.object_format.size for oid, _ in pairs):
            raise _refusal("the remote uses another object hash than this repository")
        folders = tuple(ref.removesuffix("*") for ref in refs if ref.endswith("/*"))
        return {name: oid for oid, name in pairs if name in refs or name.startswith(folders)}

    def fetch(self, pairs: Mapping[str, str]) -> None:
        """Fetch refs of the remote into refs of ours: theirs → ours.

        Raises:
            YoloError: REMOTE_AWAY; NOT_REGULAR where a ref of ours leads elsewhere.
        """
        for ref in pairs.values():
            _refuse_astray(self._repository, ref)
        for attempt in range(_FETCHES):
            try:
                self._fetch(*(f"+{ref}:{into}" for ref, into in pairs.items()))
            except YoloError as error:
                if attempt == _FETCHES - 1 or "cannot lock ref" not in error.message:
                    raise
                # Another process of this clone moved a ref while this fetch ran: the remote is not
                # away, and its objects are here unless it has moved on since.
                tips = self.tips(*pairs)
                moves = [(pairs[ref], tip) for ref, tip in tips.items()]
                if moves and not any(self._move(into, tip) for into, tip in moves):
                    return
            else:
                return

    def _move(self, ref: str, tip: str) -> int:
        assert ref.startswith("refs/yolo-fs/"), ref
        with contextlib.suppress(OSError):
            # Left by a killed fetch: no call of ours lives this long.
            lock = f"{self._repository.common_dir}/{ref}.lock"
            if time.time() - os.stat(lock).st_mtime > 2 * CALL_S:
                os.unlink(lock)
        return self._repository.git.run("update-ref", "--no-deref", ref, tip, ok=_ANY).code

    def _fetch(self, *refspecs: str) -> None:
        self._call(
            "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
            "--no-recurse-submodules", "--refmap=", "--", self._name, *refspecs,
        )  # fmt: skip

    def replace(self, oid: str, ref: str, old: str | None) -> bool:
        """Point a ref of ours at `oid` if it still points at `old`; return whether it was done.

        Raises:
            YoloError: as `push`.
        """
        return self.push({ref: oid}, f"--force-with-lease={ref}:{old or ''}")

    def delete(self, ref: str, old: str) -> bool:
        """Delete a ref of the remote if it still points at `old`; return whether it was done.

        Raises:
            YoloError: as `push`.
        """
        assert len(old) == 2 * self._repository.object_format.size, old
        return self._push([f":{ref}"], f"--force-with-lease={ref}:{old}")

    def push(self, oids: Mapping[str, str], *more: str) -> bool:
        """Move refs of the remote forward, all or none; return False if another process was first.

        `oids`: ref → object.

        Raises:
            YoloError: REMOTE_AWAY; REMOTE_REFUSED with the words of the server, after the name of
                the ref unless that is the first.
        """
        size = 2 * self._repository.object_format.size
        assert all(len(oid) == size for oid in oids.values()), oids  # none at all would delete
        return self._push([f"{oid}:{ref}" for ref, oid in oids.items()], *more)

    def _push(self, refspecs: Sequence[str], *more: str) -> bool:
        answer = self._call(
            "push", "--porcelain", "--atomic", "--no-verify", "--no-follow-tags", "--no-signed",
            "--recurse-submodules=no", *more, "--", self._name, *refspecs, ok=(0, 1),
        )  # fmt: skip
        if answer.code == 0:
            return True
        output = answer.out.decode("utf-8", "replace")
        refusals = [line.split("\t") for line in output.splitlines() if line.startswith("!\t")]
        rejected = {refs.rpartition(":")[2]: words for _, refs, words in refusals}
        if not rejected and _AMBIGUOUS in answer.err:
            named = " or ".join(f"refs/tags/{refspec.partition(':')[2]}" for refspec in refspecs)
            raise YoloError(
                Reason.REMOTE_REFUSED,
                safe(f"{answer.err.splitlines()[0]}: a tag has the same name as a branch"),
                hint=f"The owner of the remote has to remove {safe(named)}.",
            )
        if not rejected:
            raise self._make_unreachable_error(answer.err)
        server = [line for line in answer.err.splitlines() if line.startswith("remote:")]
        # Of refs that were refused together, one carries the reason, or the server gives it.
        causes = {ref: words for ref, words in rejected.items() if "atomic" not in words}
        reasons = causes.values() or [line for line in server if line.startswith("remote: error:")]
        is_in_the_way = any(_IN_THE_WAY in text for text in (output, answer.err))
        if not is_in_the_way and any(race in words for words in reasons for race in _RACES):
            return False
        cause, words = next(iter((causes or rejected).items()))
        name = [] if refspecs[0].endswith(f":{cause}") else [f"{cause}:"]
        raise _refusal(" ".join([*name, words, *server[:5]]))

    def _call(self, *arguments: str, ok: tuple[int, ...] = (0,)) -> GitOutput:
        # ssh must never prompt; a command of the user's own stays.
        keys = {each.key for each in self._repository.settings() if not each.is_of_repository}
        more = {"GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o ConnectTimeout=10"}
        if "core.sshcommand" in keys:
            more = {}
        try:
            with isolated_git(self._repository) as git:
                return git.run(*arguments, ok=ok, timeout_s=CALL_S, networked=True, more=more)
        except GitError as error:
            raise self._make_unreachable_error(error.said) from None
        except YoloError as error:
            if error.reason is not Reason.GIT_TIMEOUT:
                raise
            raise self._make_unreachable_error(error.message) from None

    def _make_unreachable_error(self, complaints: str) -> YoloError:
        hint = "Work here continues, and is published when the remote is back."
        if ignored := ignored_settings(self._repository):
            hint += (
                f" This repository's own settings of {safe(', '.join(ignored))} are ignored; put"
                " those that you need into your own configuration (git config --global)."
            )
        return YoloError(
            Reason.REMOTE_AWAY,
            safe(" ".join(complaints.split())) or "the remote did not answer",
            hint=hint,
        )


def _refusal(message: str) -> YoloError:
    return YoloError(
        Reason.REMOTE_REFUSED,
        safe(message),
        hint="Allow pushes to refs/heads/yolo/ there, or ask the owner of the remote.",
    )
