"""An agent in a host that gives it the tools of its role alone: what it has no tool for it says, in the stream of such a
host. Whatever else its brief asks for, it does as the scripted agent of the demo.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from pathlib import Path

from yolo_fs.demo.agent import ScriptedAgent

sys.path.append(str(Path(__file__).parents[2]))
from tests.e2e.faulty_agent import fault_of

LISTED = re.compile(r"End with the whole content.*:\n((?:- .*\n)+)")


def say(text: str) -> None:
    """Print the bill as Claude Code does whose subagent went on: its totals begin anew in no line."""
    size = len(os.environ["YOLO_FS_AGENT"])
    total: Counter[str] = Counter()
    for at, words in enumerate(("I begin.", text)):
        used = {"inputTokens": 100 * size + at, "outputTokens": 7, "cacheReadInputTokens": size,
                "cacheCreationInputTokens": at, "costUSD": 0.0137 * size + at}  # fmt: skip
        total.update(used)
        told = {"type": "result", "result_index": at, "usage": {"output_tokens": 1},
                "total_cost_usd": total["costUSD"], "modelUsage": {"large": dict(total)},
                "model_usage_since_last_result": {"large": used}, "result": words}  # fmt: skip
        print(json.dumps(told), flush=True)


def main() -> None:
    agent = ScriptedAgent(os.environ)
    fault = fault_of(os.environ)
    listed = LISTED.search(agent.brief)
    if fault is not None:
        fault(agent)
    elif listed:
        paths = [line.removeprefix("- ") for line in listed[1].splitlines()]
        blocks = (f"`{path}`\n\n```json\n{agent.content(path)}```" for path in paths)
        say("I looked, and found this.\n\n" + "\n\n".join(blocks))
    elif "`Decision: `" in agent.brief:
        assert "Run: " not in agent.brief
        is_asked = "passes the decision" not in agent.brief
        say(
            "Escalate: Blue or red? | Blue | Red"
            if is_asked
            else "Decision: It is Blue, as I was told"
        )
    elif "Run: " in agent.brief and "passes the decision" not in agent.brief:
        name = re.findall(r"ESC-[-\w]+", agent.brief)[0]
        words = (
            "--reason",
            "Blue or red?",
            "--evidence",
            "Nobody said",
            "--recommendation",
            "Blue",
        )
        agent.run(
            "yolo-fs", "escalate", "raise", name, "--by", agent.agent.removeprefix("yolo-"), *words
        )
    else:
        agent.act()
        say("Done.")


if __name__ == "__main__":
    sys.exit(main())
