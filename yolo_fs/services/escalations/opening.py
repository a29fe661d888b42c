"""Opens the escalation of a loop that is used up, once: nobody has to remember to. See
docs/sources.md#document-002.
"""

from __future__ import annotations

from collections.abc import Iterator

from yolo_fs.edges.git.repository import Repository
from yolo_fs.reasons import YoloError
from yolo_fs.rules.decide import EventSink
from yolo_fs.rules.loops.exhausted import exhausted
from yolo_fs.services.escalations.moves import Escalations
from yolo_fs.services.history.team import Team, loop_facts
from yolo_fs.services.workspace.settings import Settings


class LoopEscalator:
    """Looks at the loops of one work tree whenever its branch has moved."""

    def __init__(self, repository: Repository, settings: Settings, team: Team, tell: EventSink):
        self._repository = repository
        self._escalations = Escalations(repository, settings)
        self._team = team
        self._tell = tell
        self._seen: str | None = None

    def open_due(self, tip: str | None) -> Iterator[str]:
        """Open what is due as of a commit, and yield the paths of the logs that have a line
        more.
        """
        if tip is None or tip == self._seen:
            return
        for phase in self._team.phases(tip):
            for said in (
                () if phase.is_complete else exhausted(loop_facts(self._team, phase.facts, 0))
            ):
                try:
                    made = self._escalations.open(said)
                except YoloError as error:
                    self._tell("escalation.trouble", said.task, error.as_finding().as_json())
                    continue
                if not made.is_refused and not made.already:
                    self._tell(
                        "escalation.opened", made.path, {"task": said.task, "agent": said.agent}
                    )
                    yield made.path
        self._seen = tip
