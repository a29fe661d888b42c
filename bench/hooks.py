"""What a hook costs a session: bare interpreter, nothing of ours touched, and a full answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from bench import repositories
from bench.options import Options
from bench.rounds import Sample, Way, interleave, time_goal
from bench.table import Table, goal_table, ms, times

PASS = "python -c pass"
PHASE = ".yolo-planning/phases/01-bench"
_LARGE = "x" * 1_000_000
FREE: dict[str, dict[str, Any]] = {
    "pre-tool-use, a source file": {"tool_name": "Edit", "tool_input": {"file_path": "src/a.ts"}},
    "pre-tool-use, a command": {"tool_name": "Bash", "tool_input": {"command": "npm test"}},
    "pre-tool-use, 1 MB of content": {"tool_name": "Write", "tool_input": {"file_path": "a", "content": _LARGE}},
    "pre-tool-use, a foreign agent": {
        "tool_name": "Edit", "tool_input": {"file_path": "src/a.ts"}, "agent_type": "general-purpose",
    },
    "post-tool-use, a source file": {"tool_name": "Edit", "tool_input": {"file_path": "src/a.ts"}},
    "stop, the second time": {"stop_hook_active": True},
    "user-prompt-submit": {"prompt": "go on"},
    "session-end": {},
}  # fmt: skip
FULL: dict[str, dict[str, Any]] = {
    "pre-tool-use, a status file": {"tool_name": "Write", "tool_input": {"file_path": f"{PHASE}/.dept-status-x.json"}},
    "pre-tool-use, a dev at work": {
        "tool_name": "Edit", "tool_input": {"file_path": "src/a.ts"}, "agent_type": "yolo-dev",
    },
    "post-tool-use, an artifact": {"tool_name": "Write", "tool_input": {"file_path": f"{PHASE}/decisions.jsonl"}},
    "stop": {},
    "session-start": {"source": "startup"},
}  # fmt: skip


def run(options: Options) -> Iterator[Table]:
    """Measure the command as a host runs it: a process, with its input on stdin."""
    root = _made(options)
    ways = [Way(PASS, lambda _: _ran([sys.executable, "-c", "pass"], b""))]
    ways += [_way(root, name, given) for name, given in {**FREE, **FULL}.items()]
    samples = interleave(ways, options.pick(21, 1))
    yield _table("Hooks", samples)
    goals = [
        time_goal(f"hook, no daemon: {name}", samples[name], 200, samples[PASS])
        for name in samples
        if name != PASS
    ]
    yield goal_table("Goals: hooks", goals)


def _way(root: str, name: str, given: dict[str, Any]) -> Way:
    said = json.dumps({"session_id": "s", "cwd": root, **given}).encode()
    command = [sys.executable, "-m", "yolo_fs", "hook", name.partition(",")[0]]
    return Way(name, lambda _: _ran(command, said))


def _ran(command: list[str], given: bytes) -> None:
    subprocess.run(command, check=True, input=given, stdout=subprocess.DEVNULL)


def _made(options: Options) -> str:
    """Return a repository with a planning tree of 100 files, and nothing handed over."""
    root = tempfile.mkdtemp(prefix="hooks-", dir=options.scratch)
    repositories.git(root, "init", "-q", "-b", repositories.BRANCH)
    for number in range(options.pick(100, 5)):
        folder = os.path.join(root, f".yolo-planning/phases/{number % 10 + 1:02}-bench")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"notes-{number}.md"), "w") as file:
            file.write("# Notes\n")
    line = {
        "ts": "2026-02-18T09:12:00Z",
        "agent": "architect",
        "dec": "RS256",
        "reason": "Public key",
        "task": "",
        "alts": [],
    }
    with open(os.path.join(root, PHASE, "decisions.jsonl"), "w") as file:
        file.write(json.dumps(line) + "\n")
    return root


def _table(title: str, samples: dict[str, Sample]) -> Table:
    base = samples[PASS].p50
    rows = tuple(
        (name, ms(one.p50), times(one.p50 / base), one.spread) for name, one in samples.items()
    )
    notes = (f"{len(samples[PASS].times_s)} interleaved rounds",)
    return Table(title, ("", "p50 ms", "x pass", "spread"), rows, notes)
