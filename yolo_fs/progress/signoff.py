"""Signs a phase off: `state.json` and `ROADMAP.md` in one commit, if the evidence allows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from yolo_fs.artifacts.classify import PROJECT_STATE
from yolo_fs.authority.actors import Actor
from yolo_fs.core.foreign_json import parse
from yolo_fs.core.ids import SHORT
from yolo_fs.core.reasons import Exit, Finding, Reason, YoloError, safe
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.phase.phase import Phase, Phases
from yolo_fs.progress.cut_off import find_unproved
from yolo_fs.progress.placing import FileCommitter, tried
from yolo_fs.protocol.departments import Role, name_in
from yolo_fs.protocol.workflow import SIGN_OFF_COMMAND
from yolo_fs.states.project import sealed
from yolo_fs.states.signoff import (
    SIGN_OFF,
    is_signed_off,
    lacks_of_sign_off,
    marked,
    roadmap_of,
    signed_state,
    why_not_to_sign,
)
from yolo_fs.system.store import json_text


class SignedOff(NamedTuple):
    """Result of a sign-off."""

    phase: str
    state: str
    """`signed_off`, `already`, `lacking`, or `would_sign_off` for a dry run."""
    commit: str = ""
    subject: str = ""
    paths: tuple[str, ...] = ()
    """What the commit changes."""
    missing: tuple[str, ...] = ()
    """What the evidence lacks."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is missing, and the command that helps."""
        hint = f"'yolo-fs workflow next --phase {self.phase}' shows who writes what."
        return tuple(
            Finding(Reason.STATE_CONFLICT, message=safe(lack, 400), hint=hint)
            for lack in self.missing
        )


class PhaseSignOff:
    """Signs off the phases of one repository."""

    def __init__(self, facts_reader: FactsReader):
        self._repository = facts_reader.repository
        self._facts_reader = facts_reader
        self._files = FileCommitter(facts_reader.repository, facts_reader.settings)

    def sign(
        self,
        named: Phase,
        by: Actor | None,
        *,
        unheard: Sequence[str],
        dry_run: bool = False,
    ) -> SignedOff:
        """Sign a phase off, or return what it lacks. `by`: None for a person at a terminal;
        `unheard`: verdicts that were written and are not on the branch, one sentence each.

        Raises:
            YoloError: OUT_OF_LANE for an agent whose act it is not; OBJECT_MISSING where a shallow
                clone cannot tell the order of the evidence; what stands in the way of any
                commit; what is wrong with a file that is there.
        """
        if by is not None and (why := why_not_to_sign(named, by)):
            command = SIGN_OFF_COMMAND.format(phase=named.facts.spelled)
            lead = name_in(Role.LEAD, named.facts.options.departments[0])
            raise YoloError(Reason.OUT_OF_LANE, why, hint=f"Tell {lead}: {command} --as {lead}")
        return tried(lambda: self._sign(named, unheard, dry_run=dry_run))

    def _sign(self, named: Phase, unheard: Sequence[str], *, dry_run: bool) -> SignedOff:
        head = self._repository.head()
        phases = self._facts_reader.phases(head.tip)
        phase = next((candidate for candidate in phases if candidate.id == named.id), named)
        name = str(phase.id)
        if is_signed_off(phase):
            commit = phase.facts.signed_off or next(
                step.by for step in phase.progress.steps if step.step.key == SIGN_OFF
            )
            return SignedOff(name, "already", commit)
        if missing := (*lacks_of_sign_off(phase), *unheard):
            return SignedOff(name, "lacking", missing=missing)
        for unproved in find_unproved(self._repository, phase):
            raise YoloError(
                unproved.reason, unproved.message, hint=unproved.hint, exit_code=Exit.FINDINGS
            )
        before = {path: self._files.content(path) for path in (PROJECT_STATE, roadmap_of(phase))}
        after = self._after(phases, phase, before)
        if not (requests := self._files.requests(after, head)):
            # Both files are as an earlier sign-off left them, which something has opened since.
            signed = _object(after[PROJECT_STATE]) | {"signs": str(head.tip)[:SHORT]}
            after[PROJECT_STATE] = json_text(sealed(signed))
            requests = self._files.requests(after, head)
        first, *others = requests
        request = replace(first, beside=tuple((other.path, other.data) for other in others))
        paths = (request.path, *(path for path, _ in request.beside))
        if dry_run:
            return SignedOff(name, "would_sign_off", subject=request.subject, paths=paths)
        commit = self._files.commit(request, head, before)
        return SignedOff(name, "signed_off", commit, request.subject, paths)

    def _after(
        self, phases: Phases, phase: Phase, before: Mapping[str, bytes | None]
    ) -> dict[str, bytes]:
        """Return the content of both files after the sign-off."""
        state, roadmap = before[PROJECT_STATE], before[roadmap_of(phase)]
        parsed_state = _object(state) if state else None
        text = roadmap.decode("utf-8") if roadmap else "# Roadmap\n\n"
        today = datetime.now(UTC).date().isoformat()
        return {
            PROJECT_STATE: json_text(signed_state(phases, phase, parsed_state)),
            roadmap_of(phase): marked(text, phase, today).encode(),
        }


def _object(data: bytes) -> dict[str, object]:
    content = parse(data, len(data))
    return content if isinstance(content, dict) else {}
