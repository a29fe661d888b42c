"""What the runner adds to the acts of agents, what it uses itself, and how much each agent is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any, NamedTuple

from bench.campaign import environment_of, make
from bench.daemon import memory_mb, used_s
from bench.options import Options
from bench.table import Goal, Table, goal_table, ms
from yolo_fs.definitions.definition import Definition, text_of
from yolo_fs.phase.report import tokens
from yolo_fs.protocol.departments import WORKING
from yolo_fs.protocol.roster import agent as agent_named

_AGENT = """
import json, os, sys, time
began = time.time()
from yolo_fs.demo.agent import main
for number in range(int(os.environ["BENCH_LINES"])):
    line = {"type": "assistant", "message": {"content": [{"type": "text", "text": "word " * 40}]}}
    print(json.dumps(line), flush=True)
    time.sleep(0.02)
main()
with open(os.environ["BENCH_LOG"], "a") as log:
    log.write(json.dumps([os.environ["YOLO_FS_AGENT"], began, time.time()]) + "\\n")
"""
"""The scripted agent, which notes when it began and when it had nothing left to write."""
_TARGET_MS = 150


class _Run(NamedTuple):
    """What one run showed."""

    acts: Sequence[tuple[str, float, float]]
    """Agent, first line of its program, its end."""
    seconds: float
    used_s: float
    memory_mb: float
    most_at_work: int
    briefs: Mapping[str, int]
    """Agent → tokens of its longest brief."""


def run(options: Options) -> Iterator[Table]:
    """Run one department, whose acts come one after the other, then three that print all the time."""
    alone = [_ran(options, f"alone{at}", 1, 0) for at in range(options.pick(3, 1))]
    gaps = sorted(
        later[1] - earlier[2]
        for one in alone
        for earlier, later in zip(one.acts, one.acts[1:], strict=False)
    )
    cuts = quantiles(gaps, n=20)
    yield Table(
        "Runner: from the end of an act to the first line of the next agent",
        ("", "p50 ms", "p95 ms", "acts"),
        (("a department, warm", ms(cuts[9]), ms(cuts[18]), str(len(gaps))),),
        ("with the check and the commit of what was written, and the start of Python",),
    )
    crowd = _ran(options, "crowd", len(WORKING), options.pick(100, 5), plans=options.pick(8, 2))
    share = 100 * crowd.used_s / crowd.seconds
    yield Table(
        "Runner: its own process, with Devs in work trees, each agent prints 50 lines a second",
        ("most agents at once", "MB", "processor s", "% of a processor", "acts"),
        ((str(crowd.most_at_work), f"{crowd.memory_mb:.0f}", f"{crowd.used_s:.1f}", f"{share:.0f}",
          str(len(crowd.acts))),),
    )  # fmt: skip
    rows = tuple(
        (name, str(tokens(text_of(Definition(agent_named(name))))), str(most))
        for name, most in sorted(crowd.briefs.items())
    )
    yield Table(
        "Runner: what an agent is told", ("agent", "tokens, definition", "tokens, brief"), rows
    )
    yield goal_table(
        "Goals: runner",
        [Goal("from an act to the next, p50 in ms", 1000 * cuts[9], _TARGET_MS)],
    )


def _ran(options: Options, name: str, departments: int, lines: int, plans: int = 1) -> _Run:
    folder = Path(options.scratch) / name
    folder.mkdir()
    script, log = folder / "agent.py", folder / "acts.jsonl"
    script.write_text(_AGENT)
    root = folder / "repo"
    environment = environment_of(folder) | {"BENCH_LOG": str(log), "BENCH_LINES": str(lines)}
    names = [str(row.name) for row in WORKING][:departments]
    make(root, environment, names)
    command = [sys.executable, "-P", "-m", "yolo_fs", "go", "a login", "--json", "--max-agents",
               "8", "--with", f"{sys.executable} -P {script}"]  # fmt: skip
    if plans > 1:
        command.append("--worktrees")
        environment["YOLO_FS_DEMO_PLANS"] = str(plans)
    used = mb = 0.0
    at_work, most = 0, 0
    events: list[dict[str, Any]] = []
    with subprocess.Popen(
        command, cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        assert process.stdout
        for line in process.stdout:
            events.append(json.loads(line))
            if os.path.exists(f"/proc/{process.pid}/status") and events[-1].get("event"):
                used, mb = used_s(process.pid), max(mb, memory_mb(process.pid))
            at_work += {"agent.started": 1, "agent.done": -1, "agent.failed": -1}.get(
                events[-1].get("event", ""), 0
            )
            most = max(most, at_work)
    if process.returncode:
        raise RuntimeError(f"the run ended with {process.returncode}: {events[-1]}")
    acts = sorted(
        ((who, began, ended) for who, began, ended in map(json.loads, log.open())),
        key=lambda act: act[1],
    )
    return _Run(acts, acts[-1][2] - acts[0][1], used, mb, most, _briefs(root))


def _briefs(root: Path) -> Mapping[str, int]:
    longest: dict[str, int] = defaultdict(int)
    for path in (root / ".git/yolo-fs/company").glob("*/brief.md"):
        name = path.parent.name.split("-", 2)[2]
        longest[name] = max(longest[name], tokens(path.read_text()))
    return longest
