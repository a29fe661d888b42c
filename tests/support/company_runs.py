"""A run of the company that goes on, as its runner has noted it."""

from __future__ import annotations

import time
from pathlib import Path

from tests.support.teams import Team
from yolo_fs.company import agents
from yolo_fs.company.runs import RunAct, new_run, save
from yolo_fs.git.repository import Repository
from yolo_fs.system.store import private_directory
from yolo_fs.system.system import boot_id, start_time


def note_run_of_two_hosts(team: Team, pid: int) -> None:
    """Note a run of the phase `01-auth` that has had a Critic in Claude Code, and has an Architect in
    Codex at work, whose process is `pid`.
    """
    with Repository(str(team.root)) as repository:
        repository.make_own_dir()
        run = new_run("01-auth", "login", "claude")
        began = time.time() - 60
        done = RunAct(
            1, "critic", "shared", "critique", "", 1, began, began + 30, "done", 900, 0.25
        )
        works = RunAct(2, "architect", "shared", "architecture", "", 1, began + 30)
        works.tokens, works.cost_usd, works.tool, works.host = 1200, 0.5, "Write", "codex"
        run.acts = [done, works]
        save(repository, run)
        folder = run.folder(repository, works)
        private_directory(str(Path(folder).parent))
        private_directory(folder)
        process = agents.Process(pid, start_time(pid), boot_id())
        Path(folder, "pid").write_bytes(agents.note_of(folder, process))
