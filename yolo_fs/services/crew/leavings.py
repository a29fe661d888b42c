"""What agents leave behind that is in no commit: their artifacts, and the files of the tasks that
they have claimed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from yolo_fs.reasons import YoloError
from yolo_fs.rules.artifacts.classify import classify
from yolo_fs.rules.artifacts.verdicts import Accepted, Held, Rejected, Verdict, Waiting
from yolo_fs.rules.claims import Claim
from yolo_fs.rules.crew.health import AgentHealth
from yolo_fs.rules.permits.actors import Actor
from yolo_fs.services.taskcommit import changed_files

UNCOMMITTED = (Accepted, Waiting, Held, Rejected)


def left_by(
    root: str, one: AgentHealth, verdicts: Mapping[str, Verdict], claims: Iterable[Claim]
) -> tuple[str, ...]:
    """Return the paths that an agent answers for and no commit has, sorted."""
    artifacts = {
        path
        for path, verdict in verdicts.items()
        if isinstance(verdict, UNCOMMITTED) and _is_of(one, path)
    }
    return tuple(sorted(artifacts | set(_claimed(root, one, claims))))


def _is_of(one: AgentHealth, path: str) -> bool:
    place = classify(path)
    return bool(place and one.role and Actor(one.role, one.department).answers_for(place))


def _claimed(root: str, one: AgentHealth, claims: Iterable[Claim]) -> list[str]:
    wanted = [path for claim in claims if claim.agent in (one.id, one.name) for path in claim.files]
    try:
        return changed_files(root, wanted) if wanted else []
    except YoloError:
        return []  # a path that git will not look at is not known to be changed
