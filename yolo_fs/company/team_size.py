"""The size of the team in a repository: `company.team` of its `config.json`, the only place that
defines it. As for all of the configuration, the branch's version counts. And whom a run can start.
"""

from __future__ import annotations

import json
import os
from typing import Any

from yolo_fs.agents.access import Access
from yolo_fs.authority.actors import superiors
from yolo_fs.core.foreign_json import parse
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.evidence.facts import WorkflowOptions
from yolo_fs.git.commit import CommitRequest
from yolo_fs.git.repository import Repository
from yolo_fs.progress.placing import FileCommitter, tried
from yolo_fs.protocol.chains import CHAINS, GOES_ON
from yolo_fs.protocol.departments import SHARED_NAMES
from yolo_fs.protocol.roster import AGENTS
from yolo_fs.system.files import content_of
from yolo_fs.system.store import SHARED, make_folders, write_text
from yolo_fs.workspace.settings import CONFIG, Settings

_SECTION, _KEY = "company", "team"


def said_team(root: str) -> str:
    """Return the configured team; empty if there is none."""
    section = _content(_bytes(root)).get(_SECTION)
    team = section.get(_KEY) if isinstance(section, dict) else None
    return team if isinstance(team, str) else ""


def set_team(repository: Repository, settings: Settings, name: str) -> bool:
    """Set the team in the configuration; return whether it changed.

    If the branch has the file, the change is committed. All other settings stay.

    Raises:
        YoloError: STATE_CONFLICT for a file that has open changes of the user's; what stands in the
            way of any commit.
    """
    root = repository.root
    if said_team(root) == name:
        return False
    before, head = _bytes(root), repository.head()
    content = _content(before)
    section = content.get(_SECTION)
    content[_SECTION] = {**(section if isinstance(section, dict) else {}), _KEY: name}
    text = json.dumps(content, indent=2) + "\n"
    there = repository.blob_at(head.tip, CONFIG)
    if there is None:
        make_folders(os.path.dirname(os.path.join(root, CONFIG)), root=root)
        write_text(os.path.join(root, CONFIG), text, root=root, mode=SHARED)
        return True
    if there != repository.object_format.hash_object("blob", before).oid:
        raise YoloError(
            Reason.STATE_CONFLICT,
            f"{CONFIG} has changes that are not committed, so its team is not set",
            hint=f'Put "{_SECTION}": {{"{_KEY}": "{name}"}} there, and commit the file.',
        )
    files = FileCommitter(repository, settings)
    request = CommitRequest(CONFIG, text.encode(), f"chore(config): team {name}")
    tried(lambda: files.commit(request, repository.head(), {CONFIG: before}))
    return True


def with_team(settings: Settings, name: str) -> Settings:
    """Return the settings with another team; an empty name changes nothing."""
    if not name:
        return settings
    config = settings.config
    company = config.company._replace(team=name)  # type: ignore[arg-type]  # one of the rows
    return settings._replace(config=config._replace(company=company))


def _bytes(root: str) -> bytes:
    path = os.path.join(root, CONFIG)
    return content_of(path) if os.path.lexists(path) else b""


def _content(data: bytes) -> dict[str, Any]:
    try:
        content = parse(data, len(data))
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def agents_of_run(settings: Settings, chain: str) -> frozenset[str]:
    """Return whom a run can start: of the departments at work, in any size of the team.

    `chain`: the command of the routing table; whoever works in it and whoever they report to.
    """
    access = Access(None, settings)
    stages = () if chain in GOES_ON else CHAINS.get(chain, ())
    actors = [access.actor(stage.role) for stage in stages]
    roles = {each.role for own in actors for each in (own, *superiors(own))}
    groups = (None, *SHARED_NAMES, *WorkflowOptions(settings.config).departments)
    there = (row for row in AGENTS if row.department in groups)
    return frozenset(row.name for row in there if row.role in roles or not roles)
