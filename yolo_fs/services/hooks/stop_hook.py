"""May this agent stop: sends it back once while something of its own is wrong, or valid and in no
commit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace

from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import Finding, Reason, errors, safe
from yolo_fs.rules.artifacts.classify import classify
from yolo_fs.rules.artifacts.verdicts import Accepted, Held, Rejected, Waiting
from yolo_fs.rules.hooks.answers import HookAnswer
from yolo_fs.services.daemon.coordinator import PASSING
from yolo_fs.services.hooks.githooks import work_trees
from yolo_fs.services.hooks.request import HookRequest, paths_written
from yolo_fs.services.install.background import running
from yolo_fs.services.reports.status import Candidate, report
from yolo_fs.services.workspace.settings import load

PATIENCE_S = 2.0
"""How long a stop waits for a daemon that is about to commit."""
_POLL_S = 0.1
_FEW = 20


class Leave:
    """Judges what an agent would leave behind."""

    def __init__(self, asked: HookRequest):
        self._asked = asked

    def answer(self) -> HookAnswer:
        """Send an agent back once while something of its own is wrong, or valid and in no
        commit.
        """
        if self._asked.said.is_repeated or self._asked.said.is_aborted:
            return HookAnswer()
        lines = list(self._left())
        if not lines:
            return HookAnswer()
        return HookAnswer(
            refusal="\n".join(
                ("Before you stop, this is not done yet:", *lines[:_FEW], *_more(lines))
            )
        )

    def _left(self) -> Iterator[str]:
        uncommitted = []
        for one in self._settled():
            match one.verdict:
                case Rejected(findings):
                    yield from (f"- {finding}" for finding in errors(findings))
                case Held(reason, findings) if (
                    reason not in PASSING and reason is not Reason.AUTO_COMMIT_OFF
                ):
                    yield from (
                        f"- {finding}" for finding in findings or (Finding(reason, one.path),)
                    )
                case Accepted() | Waiting():
                    uncommitted.append(one.path)
        watched = running(self._asked.repository) is not None
        how = (
            "the daemon has not committed it yet: see 'yolo-fs status'"
            if watched
            else "run 'yolo-fs run --once'"
        )
        yield from (f"- {safe(path)}: valid, but in no commit; {how}" for path in uncommitted)

    def _settled(self) -> list[Candidate]:
        """Return the agent's own candidates, after a daemon had its moment to commit them."""
        until = time.monotonic() + PATIENCE_S
        while True:
            found = self._own()
            is_pending = any(isinstance(one.verdict, Accepted | Waiting) for one in found)
            if (
                not is_pending
                or running(self._asked.repository) is None
                or time.monotonic() > until
            ):
                return found
            time.sleep(_POLL_S)

    def _own(self) -> list[Candidate]:
        found = report(self._asked.repository, self._asked.settings.without_patience).candidates
        written = paths_written(self._asked) if found else frozenset()
        own = [one for one in found if one.path in written or self._answers_for(one.path)]
        return own + list(self._left_elsewhere())

    def _left_elsewhere(self) -> Iterator[Candidate]:
        """Yield what the same session wrote in other work trees: a host may change between them."""
        for root in work_trees(self._asked.repository)[1:]:
            with Repository(root) as other:
                written = paths_written(self._asked, other.own_dir)
                settings = load(root).without_patience
                found = report(other, settings).candidates if written else ()
            for one in found:
                if one.path in written:
                    yield _seen_from(self._asked.repository.root, root, one)

    def _answers_for(self, path: str) -> bool:
        """Return whether an artifact is this agent's to write; a session, and an agent of no
        company, answers for none.
        """
        actor, place = self._asked.actor, classify(path)
        return actor is not None and place is not None and actor.answers_for(place)


def _seen_from(here: str, root: str, one: Candidate) -> Candidate:
    """Return a candidate of another work tree with its paths as somebody here would spell them."""

    def spelled(path: str) -> str:
        return os.path.relpath(f"{root}/{path}", here)

    verdict = one.verdict
    if isinstance(verdict, Rejected | Held):
        findings = (replace(each, path=spelled(each.path)) for each in verdict.findings)
        verdict = replace(verdict, findings=tuple(findings))
    return replace(one, path=spelled(one.path), verdict=verdict)


def _more(lines: list[str]) -> tuple[str, ...]:
    return (f"- and {len(lines) - _FEW} more: see 'yolo-fs status'",) if len(lines) > _FEW else ()
