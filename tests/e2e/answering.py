"""An agent in a host that gives it the tools of its role alone: what it has no tool for it says, in the stream of such a
host. Whatever else its brief asks for, it does as the scripted agent of the demo.
"""

from __future__ import annotations

import json
import os
import re
import sys

from yolo_fs.demo.agent import ScriptedAgent, fault_of

LISTED = re.compile(r"End with the whole content.*:\n((?:- .*\n)+)")


def say(text: str) -> None:
    told = {"type": "result", "usage": {"output_tokens": 7}, "total_cost_usd": 0.01, "result": text}
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
        say("Escalate: Blue or red? | Blue | Red" if is_asked else "Decision: Blue")
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
