"""Handoffs for a reader: the life of each one that is on its way, and the product chain session by
session.
"""

from __future__ import annotations

from typing import Any

from yolo_fs.edges.git.repository import Repository
from yolo_fs.rules.handoffs.lifecycle import HandoffLifecycle
from yolo_fs.rules.handoffs.session_progress import standing
from yolo_fs.services.checking.envelopes import ProductHandoffs, StoredSession
from yolo_fs.services.checking.snapshots import WorkTree
from yolo_fs.services.handoffs.lifecycle import lifecycles_of
from yolo_fs.services.handoffs.reading import Reader
from yolo_fs.services.history.team import Team
from yolo_fs.services.workspace.settings import Settings

LATEST_SESSIONS = 20


def handoffs_now(repository: Repository, settings: Settings, team: Team) -> dict[str, Any]:
    """Return the life of each handoff that is on its way, and the latest sessions of the product
    workflow.
    """
    root, limits = repository.root, settings.limits
    reads = Reader(root, root, limits, lambda *_: None).log().reads
    phases = team.phases(repository.head().tip)
    deadline_s = settings.policy.handoff_deadline_s
    lives = lifecycles_of(root, phases, team.history_index, reads, deadline_s) if phases else ()
    product = ProductHandoffs(WorkTree(root, settings.policy.max_file_bytes), settings)
    sessions = [product.session(one) for one in product.sessions()[-LATEST_SESSIONS:]]
    return {
        "lives": [_life(one) for one in lives],
        "sessions": [_session(one) for one in reversed(sessions)],
    }


def _life(one: HandoffLifecycle) -> dict[str, Any]:
    return {
        "sender": one.delivery.sender,
        "receiver": one.delivery.receiver,
        "place": one.delivery.place,
        "stations": [
            {"stage": each.stage.value, "at_s": each.at_s, "due_s": each.due_s}
            for each in one.stations
        ],
    }


def _session(one: StoredSession) -> dict[str, Any]:
    return {
        "session": one.session_id,
        "status": standing(one.session).status,
        "envelopes": [
            {
                "path": sent.path,
                "from": sent.source,
                "to": sent.target,
                "is_error": sent.is_error,
            }
            for sent in one.session.sent
        ],
        "findings": [finding.as_json() for finding in one.findings],
    }
