"""The scripted agent of the demo, which sometimes makes one of the faults in `FAULTS` instead of its act.

Run by its path, as the host `command` of a run. What it does is decided for each act by its name or by a seed, so that a
run can be repeated.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from yolo_fs.demo.agent import ScriptedAgent

_FOREVER_S = 3600.0
_FLOOD_LINE = "x" * (200 * 1024)


def _writes_nothing(agent: ScriptedAgent) -> None:
    del agent


def _writes_wrong_kind(agent: ScriptedAgent) -> None:
    for path in agent.writes:
        agent.write(path, '{"type":"status_update","text":"all is well"}\n')


def _writes_torn_line(agent: ScriptedAgent) -> None:
    for path in agent.writes:
        agent.write(path, agent.content(path).rstrip("\n")[: -max(2, len(agent.task))])


def _hangs(_agent: ScriptedAgent) -> None:
    time.sleep(_FOREVER_S)


def _ignores_the_deadline(_agent: ScriptedAgent) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(_FOREVER_S)


def _crashes(_agent: ScriptedAgent) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _floods(agent: ScriptedAgent) -> None:
    for _ in range(20):
        print(_FLOOD_LINE)
    agent.act()


def _ends_too_early(agent: ScriptedAgent) -> None:
    for path in agent.writes[:1]:
        agent.write(path, "")


def _leaves_a_child(agent: ScriptedAgent) -> None:
    subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({_FOREVER_S})"])
    agent.act()


def _exceeds_budget(agent: ScriptedAgent) -> None:
    print(json.dumps({"type": "result", "usage": {"input_tokens": 90_000, "output_tokens": 10_000},
                      "total_cost_usd": 5.0}))  # fmt: skip
    agent.act()


def _leaves_its_lane(agent: ScriptedAgent) -> None:
    agent.write(".yolo-planning/config.json.part2", "{}\n")
    agent.write("src/not_mine.ts", "// nobody asked for this\n")


def _asks_once(agent: ScriptedAgent) -> None:
    _ask(agent, unless=b'"id":"ESC-' + agent.task.replace("/", "-").encode())


def _asks_the_user(agent: ScriptedAgent) -> None:
    _ask(agent, unless=b'"agent":"user"')


def _ask(agent: ScriptedAgent, *, unless: bytes) -> None:
    """Ask one level up, unless the escalation log already contains `unless`."""
    phase = os.environ["YOLO_FS_PHASE"]
    log = Path(f".yolo-planning/phases/{phase}/escalation.jsonl")
    if not agent.task or (log.exists() and unless in log.read_bytes()):
        agent.act()
    else:
        agent.run(
            "yolo-fs", "escalate", "open", "--task", agent.task, "--from",
            agent.agent.removeprefix("yolo-"), "--reason", "Blue or red?", "--evidence",
            "The specification does not say", "--recommendation", "Blue",
            "--boundary", "A question of taste",
        )  # fmt: skip


FAULTS: Mapping[str, Callable[[ScriptedAgent], None]] = {
    "writes-nothing": _writes_nothing,
    "wrong-kind": _writes_wrong_kind,
    "torn-line": _writes_torn_line,
    "hangs": _hangs,
    "crashes": _crashes,
    "floods": _floods,
    "ends-too-early": _ends_too_early,
    "leaves-a-child": _leaves_a_child,
    "ignores-the-deadline": _ignores_the_deadline,
    "over-budget": _exceeds_budget,
    "leaves-its-lane": _leaves_its_lane,
    "asks-once": _asks_once,
    "asks-the-user": _asks_the_user,
}
"""Name → function that runs instead of the act."""


def fault_of(environment: Mapping[str, str]) -> Callable[[ScriptedAgent], None] | None:
    """Return the fault of this act.

    `YOLO_FAULT=NAME:AGENT` causes a fault at the first try of each act of an agent,
    `AGENT*` at every try. `YOLO_FAULT_SEED=SEED:SHARE` causes any of the faults at a share of the
    tries.
    """
    attempt = environment.get("YOLO_FS_ATTEMPT", "1")
    if chosen := environment.get("YOLO_FAULT"):
        name, _, who = chosen.partition(":")
        is_its = environment["YOLO_FS_AGENT"].removeprefix("yolo-") == who.rstrip("*")
        return FAULTS[name] if is_its and (attempt == "1" or who.endswith("*")) else None
    if seeded := environment.get("YOLO_FAULT_SEED"):
        seed, _, share = seeded.partition(":")
        words = ("AGENT", "STEP", "TASK", "PLAN")
        basis = "/".join((seed, attempt, *(environment[f"YOLO_FS_{word}"] for word in words)))
        dice = random.Random(basis)
        if dice.random() < float(share or 0.1):
            return FAULTS[dice.choice(sorted(FAULTS))]
    return None


def main() -> int:
    """Act once."""
    agent = ScriptedAgent(os.environ)
    fault = fault_of(os.environ)
    if fault is not None:
        name = next(name for name, each in FAULTS.items() if each is fault)
        print(f"fault: {name}", file=sys.stderr, flush=True)
    (fault or ScriptedAgent.act)(agent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
