"""The user's git remote: the one place where a git of ours uses the network.

Credentials are the user's own; nothing ever prompts, no hook runs, every call has a time limit,
and nothing is ever forced on a ref of others.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence

from yolo_fs.edges.git.conversation import GitError, GitOutput
from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import Exit, Reason, YoloError, safe

CALL_S = 30.0
"""Longest wait for one call to the remote."""
_FETCHES = 4
"""How often the remote may move on under a fetch that another process of this clone overtook."""
_ANY = (0, 1, 128)
_RACES = ("cannot lock ref", "failed to update ref", "reference already exists", "fetch first",
          "non-fast-forward", "stale info", "incorrect old value", "failed to lock")  # fmt: skip
"""What git says when somebody else was first."""


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
        """Return what each of these refs of the remote points at, of those that are there. One that
        ends in `/*` stands for all below it.

        Raises:
            YoloError: as `tip`.
        """
        said = self._call("ls-remote", "--refs", "--", self._name, *refs).out.decode()
        found = [line.split("\t") for line in said.splitlines() if "\t" in line]
        if any(len(oid) != 2 * self._repository.object_format.size for oid, _ in found):
            raise _refusal("the remote names its objects by another hash than this repository")
        folders = tuple(ref.removesuffix("*") for ref in refs if ref.endswith("/*"))
        return {name: oid for oid, name in found if name in refs or name.startswith(folders)}

    def fetch(self, pairs: Mapping[str, str]) -> None:
        """Let refs of ours point at what refs of the remote point at: theirs → ours.

        Raises:
            YoloError: REMOTE_AWAY.
        """
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
            # What a killed fetch left: no call of ours lives so long.
            lock = f"{self._repository.common_dir}/{ref}.lock"
            if time.time() - os.stat(lock).st_mtime > 2 * CALL_S:
                os.unlink(lock)
        return self._repository.git.run("update-ref", ref, tip, ok=_ANY).code

    def _fetch(self, *refspecs: str) -> None:
        self._call(
            "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
            "--no-recurse-submodules", "--refmap=", "--", self._name, *refspecs,
        )  # fmt: skip

    def replace(self, oid: str, ref: str, old: str | None) -> bool:
        """Let a ref of ours point elsewhere, if it still points at `old`; return whether it did.

        Raises:
            YoloError: as `push`.
        """
        return self.push({ref: oid}, f"--force-with-lease={ref}:{old or ''}")

    def delete(self, ref: str, old: str) -> bool:
        """Take away a ref of the remote, if it still points at `old`; return whether it did.

        Raises:
            YoloError: as `push`.
        """
        assert len(old) == 2 * self._repository.object_format.size, old
        return self._push([f":{ref}"], f"--force-with-lease={ref}:{old}")

    def push(self, oids: Mapping[str, str], *more: str) -> bool:
        """Move refs of the remote forward, all or none; return whether it did. False: somebody else
        was first. `oids`: ref → object.

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
        said = answer.out.decode("utf-8", "replace")
        told = [line.split("\t") for line in said.splitlines() if line.startswith("!\t")]
        rejected = {refs.rpartition(":")[2]: words for _, refs, words in told}
        if not rejected:
            raise _away(answer.err)
        server = [line for line in answer.err.splitlines() if line.startswith("remote:")]
        # Of all that were refused together, the reason stands with one of them, or is the server's.
        causes = {ref: words for ref, words in rejected.items() if "atomic" not in words}
        reasons = causes.values() or [line for line in server if line.startswith("remote: error:")]
        if any(race in words for words in reasons for race in _RACES):
            return False
        cause, words = next(iter((causes or rejected).items()))
        name = [] if refspecs[0].endswith(f":{cause}") else [f"{cause}:"]
        raise _refusal(" ".join([*name, words, *server[:5]]))

    def _call(self, *arguments: str, ok: tuple[int, ...] = (0,)) -> GitOutput:
        try:
            return self._repository.git.run(*arguments, ok=ok, timeout_s=CALL_S, networked=True)
        except GitError as error:
            raise _away(error.said) from None
        except YoloError as error:
            if error.reason is not Reason.GIT_TIMEOUT:
                raise
            raise _away(error.message) from None


def _away(said: str) -> YoloError:
    return YoloError(
        Reason.REMOTE_AWAY,
        safe(" ".join(said.split())) or "the remote did not answer",
        hint="Work goes on here, and is published when the remote is back.",
        exit_code=Exit.TRY_AGAIN,
    )


def _refusal(said: str) -> YoloError:
    return YoloError(
        Reason.REMOTE_REFUSED,
        safe(said),
        hint="Allow pushes to refs/heads/yolo/ there, or ask whoever looks after it.",
        exit_code=Exit.TRY_AGAIN,
    )
