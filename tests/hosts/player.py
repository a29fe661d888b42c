"""A model that plays every role of the company from the brief that a host sends it: what the scripted agent of the demo
would do, as calls of the host's own tools.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.hosts.model import Say, Shell, Step, Tool, Write
from yolo_fs.demo.agent import ScriptedAgent, lines_of, plan_of, plans_beside

BRIEF = re.compile(r"You are yolo-([a-z-]+)\. Phase (\S+), step ([a-z_]+)\.")
_TASK = re.compile(r"^Task (\d\d-\d\d/T\d+):", re.MULTILINE)
_ESCALATION = re.compile(r"ESC-[-\w]+")
_DECIDES = "End with one line: `Decision: `"
QUESTION = "Which colour is the button?"
_FOLDER = threading.Lock()
"""What an agent reads lies in the working directory, which is the process's."""


class Player(ScriptedAgent):
    """One act, as steps of the model."""

    def __init__(self, brief: str, root: Path, host: str):
        """`brief`: what the host sent; `root`: of the repository; `host`: whose tools there are."""
        found = BRIEF.search(brief)
        assert found, brief
        task = _TASK.search(brief)
        environment = {
            "YOLO_FS_AGENT": f"yolo-{found[1]}",
            "YOLO_FS_TASK": task[1] if task else "",
            "YOLO_FS_BRIEF": os.devnull,
            "YOLO_FS_WRITES": "\n".join(_listed(brief, "Write:")),
        }
        super().__init__(environment)
        self.brief = brief
        self.said = [*_listed(brief, "End with the whole content")]
        self._root, self._host = root, host
        self._steps: list[Step] = []

    def steps(self) -> Sequence[Step]:
        """Return what the model does, its last words included."""
        with _FOLDER, contextlib.chdir(self._root):
            self.act()
            blocks = [f"```\n{self.content(path)}```\n" for path in self.said]
        words = [self.words] if _DECIDES in self.brief else []
        return [*self._steps, Say("\n".join(("It is done.", *blocks, *words)))]

    @property
    def words(self) -> str:
        """What it decides where it has no shell to record it with."""
        return "Decision: go on as the plan says"

    def write(self, path: str, text: str) -> None:
        place = self._root / path
        if self._host == "codex":
            place_of = f"mkdir -p {shlex.quote(os.path.dirname(path) or '.')}"
            self._steps.append(Shell(f"{place_of} && cat > {shlex.quote(path)} <<'EOF'\n{text}EOF"))
            return
        if place.exists():  # this host lets nobody write over what they have not read
            self._steps.append(Tool("Read", {"file_path": str(place)}))
        self._steps.append(Write(str(place), text))

    def run(self, *words: str) -> None:
        self._steps.append(Shell(shlex.join(words)))

    def test_plan(self, path: str, department: str) -> list[dict[str, Any]]:
        """As the definition says: each test is committed with its task's number."""
        found = []
        for plan in plans_beside(path, department):
            for task in lines_of(plan)[1:]:
                own = f"{plan_of(plan)}/{task['id']}"
                file = f"tests/{own.replace('/', '_')}.test.ts"
                self.write(file, f"// {task['ts']}\n")
                words = ("--task", own, "--type", "test", "--paths", file, "-m", "it answers")
                self.run("yolo-fs", "commit", *words)
                found.append({"id": task["id"], "plan": plan_of(plan), "tf": [file], "tc": 1, "red": True,
                              "desc": task["ts"]})  # fmt: skip
        return found


class Asking(Player):
    """The Dev alone asks, once, and only for its first task; each of the chain above hands that on."""

    def act(self) -> None:
        if self.agent == "yolo-dev" and self.task.endswith("/T1") and not self._has_asked():
            self.run("yolo-fs", "escalate", "open", "--task", self.task, "--from", "dev",
                     "--reason", QUESTION, "--evidence", "The specification does not say",
                     "--recommendation", "Blue", "--boundary", "A question of taste")  # fmt: skip
        elif "Run: yolo-fs escalate" in self.brief:
            (name,) = {*_ESCALATION.findall(self.brief)}
            self.run("yolo-fs", "escalate", "raise", name, "--by", self.agent.removeprefix("yolo-"),
                     "--reason", QUESTION, "--evidence", "Nobody said", "--recommendation", "Blue",
                     "--option", "Blue", "--option", "Red")  # fmt: skip
        else:
            super().act()

    @property
    def words(self) -> str:
        return f"Escalate: {QUESTION} | Blue | Red"

    def _has_asked(self) -> bool:
        logs = Path(".yolo-planning/phases").glob("*/escalation.jsonl")
        return any(_ESCALATION.search(log.read_text()) for log in logs)


class Apart(Player):
    """The Dev of a task works where its plan has a work tree."""

    def __init__(self, brief: str, root: Path, host: str):
        super().__init__(brief, root, host)
        if self.task:
            words = ["git", "worktree", "list", "--porcelain"]
            listed = subprocess.run(
                words, cwd=root, check=True, capture_output=True, text=True
            ).stdout
            places = [
                line.partition(" ")[2]
                for line in listed.splitlines()
                if line.startswith("worktree ")
            ]
            self._root = next(
                Path(place) for place in places if place.endswith(f"/{self.task[:5]}")
            )


class Conductor:
    """The session of `/yolo:go`: it starts each agent that our dry run names, and signs off."""

    def __init__(self, intent: str) -> None:
        self._look = f"yolo-fs go {shlex.quote(intent)} --phase 1 --dry-run --host claude --json"
        self._started: list[str] = []
        """First line of the brief of each agent that was started."""

    def go_on(self, told: str) -> Step:
        """Return the next step after what the host told of the one before."""
        found = re.search(r'^\{"ok".*\}$', told, re.MULTILINE)
        if found is None:
            return Shell(self._look)
        acts = json.loads(found[0])["data"].get("acts")
        if not acts:
            return Say("The phase is SHIPPED.")
        agent, brief = acts[0]["agent"], acts[0]["brief"]
        title = brief.partition("\n")[0]
        if "Run: yolo-fs phase sign-off" in brief:
            return Shell("yolo-fs phase sign-off --as lead")
        if title in self._started[-1:]:  # the branch has it in a moment
            return Shell("yolo-fs workflow next --phase 1")
        self._started.append(title)
        given = {"description": "An act", "prompt": brief, "subagent_type": f"yolo:yolo-{agent}"}
        return Tool("Agent", {**given, "run_in_background": False})


def _listed(brief: str, title: str) -> Iterator[str]:
    """Yield the paths of a list of the brief."""
    _, _, rest = brief.partition(f"\n{title}")
    for line in rest.splitlines()[1:]:
        if not line.startswith("- "):
            return
        yield line[2:].partition(" (")[0]
