"""What is told of a file that stays uncommitted: why, and what to do. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace

from yolo_fs.artifacts.decide import reason_and_findings
from yolo_fs.artifacts.verdicts import Held, Rejected, Verdict, Waiting
from yolo_fs.core.reasons import Finding, Level, Reason, errors

SETTLED_BY = {
    Reason.GITIGNORED: "git check-ignore -v {path}",
    Reason.ATTR_FILTER: "git check-attr -a {path}",
    Reason.FOREIGN_REPOSITORY: "git rev-parse --show-toplevel",
    Reason.UNDONE_BY_USER: "git log -3 -- {path}",
    Reason.OLDER_THAN_BRANCH: "git diff HEAD -- {path}",
    Reason.RECORDS_LOST: "yolo-fs fix --write {path}",
    Reason.AUTO_COMMIT_OFF: "git diff HEAD -- {path}",
    Reason.NO_SPACE: "df -h .",
    Reason.STORAGE_FAILED: "yolo-fs doctor",
    Reason.OBJECT_MISSING: "git fsck",
    Reason.INTERNAL_ERROR: "yolo-fs doctor",
}
"""Reason that holds a file until a person acts → command that shows the cause. Any other hold
passes by itself, or is an obstacle: one item, however many files it holds."""
_SHOWN_BY = {
    Reason.BEING_WRITTEN: "lsof -- {path}",
    Reason.SETTLING: "lsof -- {path}",
    Reason.UNTERMINATED: "yolo-fs validate {path}",
    Reason.USER_COMMITTING: "ps -fC git",
    Reason.PULL_IN_PROGRESS: "ps -fC git",
    Reason.INDEX_LOCKED: "ps -fC git",
    Reason.REF_LOCKED: "ps -fC git",
    Reason.BRANCH_MOVED: "git reflog -5",
    Reason.DETACHED_HEAD: "git switch BRANCH",
    Reason.PROTECTED_BRANCH: "yolo-fs config show --origin",
    Reason.COMMIT_BUDGET: "yolo-fs config show --origin",
    Reason.BRANCH_BROKEN: "yolo-fs doctor",
    Reason.GIT_FAILED: "yolo-fs doctor",
    Reason.GIT_TIMEOUT: "yolo-fs doctor",
    Reason.QUEUED: "yolo-fs doctor",
    Reason.REMOTE_CONFLICT: "yolo-fs team status",
}
"""Any other reason → command that shows or ends it; `git status` shows what is not here."""
HELD_FOR_A_PERSON = frozenset(SETTLED_BY) - {Reason.OLDER_THAN_BRANCH, Reason.RECORDS_LOST}
"""Reasons that whoever wrote the file cannot end by writing it again."""


def lasting_findings(verdicts: Mapping[str, Verdict]) -> Iterator[Finding]:
    """Yield one warning for each reason for which files are not committed.

    It names the first of them, so that a merge that holds a hundred files is one line.
    """
    by_reason: dict[tuple[type, Reason], list[str]] = {}
    for path, verdict in sorted(verdicts.items()):
        if isinstance(verdict, Rejected | Held | Waiting):
            key = type(verdict), reason_and_findings(verdict)[0]
            by_reason.setdefault(key, []).append(path)
    for (_, reason), paths in by_reason.items():
        yield _finding(reason, paths, verdicts[paths[0]])


def command_for(reason: Reason, path: str = ".") -> str:
    """Return the command that shows or settles what keeps a file, or all of them, uncommitted."""
    command = SETTLED_BY.get(reason) or _SHOWN_BY.get(reason, "git status")
    return command.format(path=shlex.quote(path))


def is_listed(verdicts: Mapping[str, Verdict], path: str) -> bool:
    """Return whether a surface that lists what is refused and held lists this path."""
    return isinstance(verdicts.get(path), Rejected | Held)


def _finding(reason: Reason, paths: list[str], verdict: Verdict) -> Finding:
    first = next(iter(errors(reason_and_findings(verdict)[1])), Finding(reason))
    others = f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""
    is_refused = isinstance(verdict, Rejected) or reason in (Reason.SECRET, Reason.WAITS_FOR)
    validate = f"yolo-fs validate {shlex.quote(paths[0])}"
    return replace(
        first,
        path=paths[0],
        message=f"it is not committed{others}: {first.message or reason.sentence}",
        command=validate if is_refused else command_for(reason, paths[0]),
        level=Level.WARNING,
    )
