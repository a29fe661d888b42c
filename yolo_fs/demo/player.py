"""Plays the scenes of a play one after the other and waits for the daemon's answer to each.

Nothing here sleeps in the hope that something has happened: an answer is an event of the daemon,
and each scene has a deadline. Pauses only set the pace for whoever watches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol, assert_never

from yolo_fs.demo.daemon import Event, Fault
from yolo_fs.demo.outcome import DifferentError, Mark, Outcome
from yolo_fs.demo.questions import AGAIN_S, Questions
from yolo_fs.demo.stage import Stage
from yolo_fs.demo.story import (
    Act,
    Adds,
    Agrees,
    Code,
    Commits,
    CommitsEach,
    Git,
    Holds,
    Keeps,
    Nothing,
    Play,
    Refuses,
    Says,
    Scene,
    Sleeps,
    Source,
    Stages,
    Waits,
    Wakes,
)
from yolo_fs.reasons import Finding, Reason, YoloError, safe
from yolo_fs.services.progress.state_files import STATE_FILES

START_S = 30.0
"""Longest wait for the daemon to start."""
MOST_NAMED = 3
"""Commits of one scene that are called by their names."""
STARTED, COMMITTED, REJECTED, HELD = (
    "daemon.started",
    "artifact.committed",
    "artifact.rejected",
    "artifact.held",
)
FINAL = (COMMITTED, REJECTED)
"""Events that nobody may hear of unasked."""


class Pace(NamedTuple):
    """How long actors take, in seconds; for the eye only."""

    scene_s: float
    """Before each scene."""
    rest_s: float
    """Wherever a writer rests: below the daemon's quiet time, so that a rest is not taken for an end."""

    @classmethod
    def of(cls, speed: float) -> Pace:
        """Return the pace at a speed, where 1 is a speed to read along."""
        return cls(0.2 / speed, min(0.2, 0.1 / speed))


class Audience(Protocol):
    """Whoever watches a play."""

    def act(self, act: Act) -> None:
        """Hear that an act begins."""

    def scene(self, scene: Scene) -> None:
        """Hear that a scene begins."""

    def outcome(self, scene: Scene, outcome: Outcome) -> None:
        """Hear what became of it."""


class Player:
    """Plays one play on one stage."""

    def __init__(self, stage: Stage, pace: Pace, audience: Audience):
        self._stage = stage
        self._pace = pace
        self._audience = audience
        self.outcomes: list[tuple[Scene, Outcome]] = []
        """What became of each scene so far."""
        self.told: list[Event] = []
        """Every commit that the daemon told of."""
        self.keeps_states = False
        """Whether the daemon keeps state files in this play."""
        self.kept: tuple[bytes, bytes] | None = None
        """What the user staged and left unstaged, when the play has them do so."""

    def play(self, play: Play) -> tuple[Finding, ...]:
        """Play until the end, or until something differs; return what differed."""
        self.keeps_states = play.keeps_states
        try:
            self._event(
                "", time.monotonic() + START_S, "its start", lambda event: event.name == STARTED
            )
            for act in play.acts:
                self._audience.act(act)
                for scene in act.scenes:
                    self._perform(scene)
            self._hear_the_end()
        except DifferentError as difference:
            return (Finding(difference.reason, message=str(difference)),)
        except YoloError as error:
            return (error.as_finding(),)
        return ()

    # --- one scene ---

    def _perform(self, scene: Scene) -> None:
        self._audience.scene(scene)
        if scene.deeds:  # a question takes its time by itself
            time.sleep(self._pace.scene_s)
        until = time.monotonic() + scene.deadline_s
        try:
            self._act(scene, until)
            outcome = self._answer(scene, until)
        except (DifferentError, YoloError) as difference:
            self._note(scene, Outcome(Mark.DIFFERENT, str(difference)))
            raise DifferentError(
                f"{scene.actor} {scene.does}: {difference}", difference.reason
            ) from None
        self._note(scene, outcome)

    def _act(self, scene: Scene, until: float) -> None:
        if any(isinstance(deed, Git | Code) for deed in scene.deeds) and not self.keeps_states:
            self._await_index(until)
        with ThreadPoolExecutor(
            max(1, len(scene.deeds)) if scene.called and not scene.in_turn else 1
        ) as hands:
            list(
                hands.map(
                    lambda deed: self._stage.do(deed, lambda: time.sleep(self._pace.rest_s)),
                    scene.deeds,
                )
            )

    def _await_index(self, until: float) -> None:
        """A commit is told before the index has followed it; whoever uses git in between sees it half done."""
        while not self._stage.index_has_followed():
            if time.monotonic() > until:
                raise DifferentError("the index does not follow the branch", Reason.DEADLINE_PASSED)
            time.sleep(AGAIN_S)

    def _note(self, scene: Scene, outcome: Outcome) -> None:
        self.outcomes.append((scene, outcome))
        self._audience.outcome(scene, outcome)

    def _answer(self, scene: Scene, until: float) -> Outcome:
        match scene.answer:
            case Commits() as wanted:
                return self._commits((wanted,), until)
            case CommitsEach(each):
                return self._commits(each, until)
            case Refuses() as wanted:
                return self._refuses(wanted, until)
            case Holds() as wanted:
                return self._holds(wanted, until)
            case Waits() as wanted:
                return self._waits(wanted, until)
            case Source() as wanted:
                return self._source(wanted)
            case Adds() as wanted:
                return self._adds(wanted, until)
            case Says() | Keeps() | Agrees() | Sleeps() | Wakes() as question:
                return Questions(self._stage, until).ask(question)
            case Stages(said):
                self.kept = self._stage.open_changes()
                return Outcome(Mark.OWN, said)
            case Nothing(said):
                return Outcome(Mark.OWN, said)
            case _ as never:
                assert_never(never)

    # --- one answer ---

    def _commits(self, wanted: Sequence[Commits], until: float) -> Outcome:
        left = {one.path: (self._stage.blob(one.path), one.subject) for one in wanted}
        commit = ""
        while left:
            # What was complete for a moment while it was written may be committed as well, as the file of that moment.
            event = self._event(
                "",
                until,
                f"a commit {next(iter(left.values()))[1]!r}",
                lambda event: (
                    event.name == COMMITTED and left.get(event.path) == (event.blob, event.subject)
                ),
                may_be=lambda event: (
                    event.name == COMMITTED and event.blob != left.get(event.path, (event.blob,))[0]
                ),
            )
            commit = event.commit
            del left[event.path]
        return Outcome(
            Mark.COMMITTED,
            _told([one.subject for one in wanted]),
            commit if len(wanted) == 1 else "",
        )

    def _adds(self, wanted: Adds, until: float) -> Outcome:
        event = self._event(
            wanted.path,
            until,
            f"a commit {wanted.subject!r}",
            lambda event: event.name == COMMITTED and event.subject == wanted.subject,
        )
        return Outcome(Mark.COMMITTED, safe(event.subject), event.commit)

    def _refuses(self, wanted: Refuses, until: float) -> Outcome:
        def named(event: Event) -> Fault | None:
            place = (wanted.reason.value, wanted.line, wanted.at)
            return next(
                (fault for fault in event.faults if (fault.reason, fault.line, fault.at) == place),
                None,
            )

        event = self._event(
            wanted.path,
            until,
            f"a refusal: line {wanted.line} {wanted.at} {wanted.reason.value}",
            lambda event: event.name == REJECTED and named(event) is not None,
        )
        return Outcome(Mark.REFUSED, str(named(event)))

    def _holds(self, wanted: Holds, until: float) -> Outcome:
        event = self._event(
            wanted.path,
            until,
            f"it held: {wanted.reason.value}",
            lambda event: event.name == HELD and event.reason == wanted.reason.value,
        )
        return Outcome(Mark.HELD, f"held: {_why_held(event, wanted.reason)}")

    def _waits(self, wanted: Waits, until: float) -> Outcome:
        standing = self._stage.standing(wanted.path)
        while (standing.get("standing"), standing.get("reason")) != (
            "pending",
            wanted.reason.value,
        ):
            if time.monotonic() > until:
                said = f"{standing.get('standing')}: {standing.get('reason')}"
                raise DifferentError(
                    f"expected pending: {wanted.reason.value}; status says {said}",
                    Reason.DEADLINE_PASSED,
                )
            time.sleep(AGAIN_S)
            standing = self._stage.standing(wanted.path)
        return Outcome(
            Mark.WAITING, f"pending: {wanted.reason.value}, not committed while a line is torn"
        )

    def _source(self, wanted: Source) -> Outcome:
        commit = self._stage.commit_of(wanted.subject)
        if not commit:
            raise DifferentError(f"expected a commit {wanted.subject!r}; there is none")
        return Outcome(Mark.OWN, wanted.subject, commit)

    def _event(
        self,
        path: str,
        until: float,
        wanted: str,
        fits: Callable[[Event], bool],
        may_be: Callable[[Event], bool] = lambda _: False,
    ) -> Event:
        """Return the first event about a path, or any, that fits; another final one differs unless it may be."""
        said = "nothing"
        while event := self._next(until):
            if path in ("", event.path) and fits(event):
                return event
            is_allowed = (path in ("", event.path) and may_be(event)) or self._is_state(event)
            if event.name in FINAL and not is_allowed:
                raise DifferentError(f"expected {wanted}; the daemon said: {_gist(event)}")
            said = _gist(event)
        raise DifferentError(
            f"expected {wanted}; until the deadline the daemon said: {said}", Reason.DEADLINE_PASSED
        )

    def _is_state(self, event: Event) -> bool:
        """Tell whether the daemon committed a state file that it keeps by itself."""
        return self.keeps_states and event.name == COMMITTED and event.path.endswith(STATE_FILES)

    def _next(self, until: float) -> Event | None:
        event = self._stage.daemon.next(until)
        if event and event.name == COMMITTED:
            self.told.append(event)
        return event

    def _hear_the_end(self) -> None:
        said = self._stage.daemon.stop()
        self.told += [event for event in said if self._is_state(event)]
        late = [event for event in said if event.name in FINAL and not self._is_state(event)]
        if late:
            raise DifferentError(f"after the last scene the daemon said: {_gist(late[0])}")
        if self._stage.daemon.exit_code != 0:
            raise DifferentError(f"the daemon ended with exit code {self._stage.daemon.exit_code}")


def _told(subjects: Sequence[str]) -> str:
    """Return what commits are called; how many there are, when they are too many to be named."""
    first = subjects[0].partition(": ")[0]
    if len(subjects) > MOST_NAMED or any(
        subject.partition(": ")[0] != first for subject in subjects
    ):
        return f"{len(subjects)} artifacts, {len(subjects)} commits"
    return safe(f"{first}: " + ", ".join(subject.partition(": ")[2] for subject in subjects))


def _why_held(event: Event, reason: Reason) -> str:
    if not event.faults:
        return f"{reason.value}: {reason.sentence}"
    first = event.faults[0]
    return f"{first.reason} on line {first.line}: {safe(first.message)}"


def _gist(event: Event) -> str:
    said = event.subject or "; ".join(map(str, event.faults)) or event.reason
    return f"{event.name} {safe(event.path)} {said}".rstrip()
