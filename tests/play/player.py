"""Plays the scenes of a play one after the other, and waits for what each of them expects.

Nothing here sleeps in the hope that something has happened: the daemon answers by events, other
questions are asked again until the scene's deadline. Pauses only set the pace for the viewer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import Any, NamedTuple, Protocol

from tests.play.play import Play, PlayAct, PlayScene
from tests.play.processes import DaemonEvent
from tests.play.stage import Stage
from yolo_fs.core.reasons import Finding, Reason, YoloError, safe
from yolo_fs.progress.state_files import STATE_FILES

START_S = 30.0
"""Longest wait for the daemon to start."""
POLL_S = 0.02
"""Between two questions to git or yolo-fs."""
QUIET_WITHIN_S = 60.0
"""Longest wait for what the last scene led to."""
MAX_NAMED = 3
"""Commits of one scene that are listed by their subjects."""
STARTED = "daemon.started"
COMMITTED = "artifact.committed"
REJECTED = "artifact.rejected"


class Mark(Enum):
    """What became of a scene."""

    COMMITTED = "committed"
    WAITING = "waiting"
    YES = "yes"
    """A question is answered, and the team goes on."""
    NO = "no"
    """A question is answered, and the team does not go on."""
    OWN = "own"
    """An agent's or user's own use of git."""
    DIFFERENT = "different"
    """Not what the play expects."""


class SceneResult(NamedTuple):
    """What became of a scene, in words."""

    mark: Mark
    text: str
    commit: str = ""


class DifferentError(Exception):
    """Something other than the play expects has happened."""

    def __init__(self, message: str, reason: Reason = Reason.INTERNAL_ERROR):
        super().__init__(message)
        self.reason = reason


class Pace(NamedTuple):
    """How long agents take, in seconds; for the viewer only."""

    scene_s: float
    """Before each scene."""
    rest_s: float
    """Between the writes of one file: shorter than the daemon's quiet time."""

    @classmethod
    def of(cls, speed: float) -> Pace:
        """Return the pace at a speed, where 1 is a speed to read along."""
        return cls(0.2 / speed, min(0.2, 0.1 / speed))


class Audience(Protocol):
    """What watches a play."""

    def act(self, act: PlayAct) -> None:
        """An act begins."""

    def scene(self, scene: PlayScene) -> None:
        """A scene begins."""

    def result(self, scene: PlayScene, result: SceneResult) -> None:
        """A scene is over."""


class Player:
    """Plays one play on one stage."""

    def __init__(self, stage: Stage, pace: Pace, audience: Audience):
        self._stage = stage
        self._pace = pace
        self._audience = audience
        self._until = 0.0
        """Deadline of the scene, monotonic clock."""
        self.keeps_states = False

    def play(self, play: Play) -> tuple[Finding, ...]:
        """Play until the end, or until something differs; return what differed."""
        self.keeps_states = play.keeps_states
        try:
            self._until = time.monotonic() + START_S
            self._event("its start", lambda event: event.name == STARTED)
            for act in play.acts:
                self._audience.act(act)
                for scene in act.scenes:
                    self._perform(scene)
            self._await_the_rest(play)
            self._stop_daemon()
        except DifferentError as difference:
            return (Finding(difference.reason, message=str(difference)),)
        except YoloError as error:
            return (error.as_finding(),)
        return ()

    def _await_the_rest(self, play: Play) -> None:
        """Wait until what the last scene led to is committed."""
        until = time.monotonic() + QUIET_WITHIN_S
        while self._stage.open_changes() != play.leaves and time.monotonic() < until:
            time.sleep(POLL_S)

    def _perform(self, scene: PlayScene) -> None:
        self._audience.scene(scene)
        if scene.do:  # a question takes its time by itself
            time.sleep(self._pace.scene_s)
        self._until = time.monotonic() + scene.deadline_s
        try:
            self._act(scene)
            result = self._check(scene.expect)
        except (DifferentError, YoloError) as difference:
            self._audience.result(scene, SceneResult(Mark.DIFFERENT, str(difference)))
            message = f"{scene.who} {scene.does}: {difference}"
            raise DifferentError(message, difference.reason) from None
        self._audience.result(scene, result)

    def _check(self, expect: Mapping[str, Any]) -> SceneResult:
        name = next(key for key in expect if key in EXPECTATIONS)
        others = {key: value for key, value in expect.items() if key != name}
        return EXPECTATIONS[name](self, expect[name], **others)

    def _act(self, scene: PlayScene) -> None:
        if any("git" in action or "code" in action for action in scene.do):
            self._await_index()
        hands = len(scene.do) if scene.at_once else 1
        with ThreadPoolExecutor(hands) as pool:
            list(pool.map(lambda action: self._stage.do(action, self._rest), scene.do))

    def _rest(self) -> None:
        time.sleep(self._pace.rest_s)

    def _await_index(self) -> None:
        """Wait until the index has followed the last commit: git would show it half done."""
        if not self.keeps_states:
            self._poll(lambda: "" if self._stage.index_has_followed() else "the index lags behind")

    def _commits(self, subjects: Mapping[str, str]) -> SceneResult:
        """Each file is committed as it is now, under its subject, in any order."""
        left = {path: (self._stage.blob(path), subject) for path, subject in subjects.items()}

        def is_wanted(event: DaemonEvent) -> bool:
            return event.name == COMMITTED and left.get(event.path) == (event.blob, event.subject)

        def is_earlier_content(event: DaemonEvent) -> bool:
            # What was complete for a moment while it was written may be committed as well.
            blob, _ = left.get(event.path, ("", ""))
            return event.name == COMMITTED and event.blob != blob

        commit = ""
        while left:
            _, subject = next(iter(left.values()))
            event = self._event(f"a commit {subject!r}", is_wanted, is_earlier_content)
            commit = event.commit
            del left[event.path]
        text = _summed_up(tuple(subjects.values()))
        return SceneResult(Mark.COMMITTED, text, commit if len(subjects) == 1 else "")

    def _event(
        self,
        wanted: str,
        fits: Callable[[DaemonEvent], bool],
        is_allowed: Callable[[DaemonEvent], bool] = lambda _: False,
    ) -> DaemonEvent:
        """Return the first event that fits.

        Raises:
            DifferentError: another commit or rejection came that is not allowed, or none in time.
        """
        last = "nothing"
        while event := self._stage.daemon.next(self._until):
            if event.name == COMMITTED:
                self._stage.commits.append(event)
            if fits(event):
                return event
            is_expected = is_allowed(event) or self._comes_by_itself(event)
            if event.name in (COMMITTED, REJECTED) and not is_expected:
                raise DifferentError(f"expected {wanted}; the daemon reported: {event}")
            last = str(event)
        message = f"expected {wanted}; until the deadline the daemon reported: {last}"
        raise DifferentError(message, Reason.DEADLINE_PASSED)

    def _comes_by_itself(self, event: DaemonEvent) -> bool:
        """Return whether the daemon committed a state file of its own."""
        is_state = self.keeps_states and event.path.endswith(STATE_FILES)
        return event.name == COMMITTED and is_state

    def _stop_daemon(self) -> None:
        for event in self._stage.daemon.stop():
            if self._comes_by_itself(event):
                self._stage.commits.append(event)
            elif event.name in (COMMITTED, REJECTED):
                raise DifferentError(f"after the last scene the daemon reported: {event}")
        if self._stage.daemon.exit_code != 0:
            code = self._stage.daemon.exit_code
            raise DifferentError(f"the daemon ended with exit code {code}")

    def _source(self, subject: str) -> SceneResult:
        """The agent made a commit with git, in which the daemon has no part."""
        commit = self._stage.commit_of(subject)
        if not commit:
            raise DifferentError(f"expected a commit {subject!r}; there is none")
        return SceneResult(Mark.OWN, subject, commit)

    def _says(
        self,
        words: Sequence[str],
        *,
        data: Mapping[str, Any],
        said: str = "",
        exit_code: int = 0,
        is_yes: bool = True,
    ) -> SceneResult:
        """A command of yolo-fs answers so. `data`: JSON pointer → value."""

        def differs() -> str:
            code, answer = self._stage.ask(*words)
            if code != exit_code:
                return f"yolo-fs {' '.join(words)} exits with {code}"
            return difference(data, answer)

        self._poll(differs)
        return SceneResult(Mark.YES if is_yes else Mark.NO, said)

    def _keeps(self, path: str, *, data: Mapping[str, Any], said: str = "") -> SceneResult:
        """The daemon keeps a state file so, on the branch or beside it. `data`: JSON pointer →
        value.
        """
        self._poll(lambda: difference(data, self._stage.kept_object(path)))
        return SceneResult(Mark.YES, said)

    def _sleeps(self, _: bool) -> SceneResult:
        waiter = self._stage.waiter
        if waiter is None or not waiter.is_waiting:
            raise DifferentError("no process waits at the gate")
        return SceneResult(Mark.WAITING, "asleep until the gate opens")

    def _wakes(self, _: bool) -> SceneResult:
        waiter = self._stage.waiter
        answer = waiter.result(self._until - time.monotonic()) if waiter else {}
        if waiter is None or answer.get("open") is not True:
            raise DifferentError(f"expected to be woken; it printed {safe(str(answer))}")
        return SceneResult(Mark.YES, f"woken: {waiter.gate} is open")

    def _poll(self, differs: Callable[[], str]) -> None:
        """Ask again until nothing differs.

        Raises:
            DifferentError: at the deadline.
        """
        while message := differs():
            if time.monotonic() > self._until:
                raise DifferentError(message, Reason.DEADLINE_PASSED)
            time.sleep(POLL_S)


EXPECTATIONS: Mapping[str, Callable[..., SceneResult]] = {
    "commits": Player._commits,
    "source": Player._source,
    "says": Player._says,
    "keeps": Player._keeps,
    "sleeps": Player._sleeps,
    "wakes": Player._wakes,
}
"""Key of `expect` → what checks it; the other keys are its keyword arguments."""


def difference(wanted: Mapping[str, Any], data: Any) -> str:
    """Return the first JSON pointer at which data are not as wanted; empty when they are."""
    for pointer, value in wanted.items():
        actual = _value_at(data, pointer)
        if actual != value:
            return f"expected {pointer} {value!r}, it is {safe(str(actual))}"
    return ""


def _value_at(data: Any, pointer: str) -> Any:
    """Return what a JSON pointer names: None for nothing, the length of a list."""
    for part in pointer.strip("/").split("/"):
        if isinstance(data, list):
            data = dict(enumerate(data)).get(int(part))
        elif isinstance(data, dict):
            data = data.get(part)
        else:
            return None
    return len(data) if isinstance(data, list) else data


def _summed_up(subjects: Sequence[str]) -> str:
    """Return the subjects of commits in one line; their number when they are too many."""
    scopes = {subject.partition(": ")[0] for subject in subjects}
    if len(subjects) > MAX_NAMED or len(scopes) > 1:
        return f"{len(subjects)} artifacts, {len(subjects)} commits"
    names = ", ".join(subject.partition(": ")[2] for subject in subjects)
    return safe(f"{scopes.pop()}: {names}")


class Silence:
    """An audience that shows nothing."""

    def act(self, act: PlayAct) -> None: ...
    def scene(self, scene: PlayScene) -> None: ...
    def result(self, scene: PlayScene, result: SceneResult) -> None: ...
    def close(self) -> None: ...
