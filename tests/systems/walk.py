"""One walk with the program as people start it: from `init` over commits, a gate and `resume` to `uninstall`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.artifacts import PLANNING, artifact
from tests.e2e.gates import UX, evidence

PROGRAM = Path(sys.executable).with_name("yolo-fs")
PATIENCE_S = 90
PHASE = "01-auth"
PLAN = f"{PLANNING}/phases/{PHASE}/01-01.plan.jsonl"
WRONG = f"{PLANNING}/phases/{PHASE}/gaps.jsonl"
ASIDE = 'mkdir -p "$(dirname "$1")" && cat >"$1.new~" && mv "$1.new~" "$1"'
IN_PLACE = 'cat >"$1"'
COMING_AND_GOING = frozenset(
    ("COMMIT_EDITMSG", "ORIG_HEAD", "branches", "logs", "index", "gc.pid", "reftable")
)
"""What git itself makes in its folder with a commit or a collection, or leaves out."""


class Seat:
    """Whoever works in a repository: where, with which environment, and as whom."""

    def __init__(self, root: Path, env: Mapping[str, str], under: Sequence[str] = ()) -> None:
        """`under`: the command that starts each of its programs, such as `setpriv --reuid=7`."""
        self.root = root
        self.env = dict(env)
        self.under = tuple(under)

    def run(self, *words: str, given: bytes = b"") -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*self.under, "env", "-C", str(self.root), *words], input=given, env=self.env, cwd="/",
            capture_output=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        said = (done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
        return subprocess.CompletedProcess(done.args, done.returncode, *said)

    def insist(self, *words: str, given: bytes = b"", ok: Sequence[int] = (0,)) -> str:
        done = self.run(*words, given=given)
        assert done.returncode in ok, (
            f"{words[0]} {words[1:]} ended with {done.returncode}: {done.stdout}{done.stderr}"
        )
        return done.stdout

    def git(self, *words: str) -> str:
        return self.insist("git", *words).strip()

    def ours(self, *words: str, ok: Sequence[int] = (0,)) -> str:
        return self.insist(str(PROGRAM), *words, ok=ok)

    def data(self, *words: str, ok: Sequence[int] = (0,)) -> dict[str, Any]:
        return dict(json.loads(self.ours(*words, "--json", ok=ok))["data"])

    def write(self, path: str, data: bytes, script: str = ASIDE) -> None:
        """Write a file as an agent of this user does."""
        self.insist("sh", "-c", script, "sh", path, given=data)

    def committed(self, path: str) -> list[str]:
        """Return the subjects of the commits that changed a path."""
        return self.git("log", "--format=%s", "--", path).splitlines()


class Walk:
    """One daemon in one repository; `writer` may be somebody else than who keeps the daemon."""

    def __init__(
        self, keeper: Seat, writer: Seat | None = None, expected: Sequence[str] = ()
    ) -> None:
        """`expected`: what `status` and `doctor` have to name here, a word of each; nothing else may be wrong."""
        self.expected = expected
        self.keeper = keeper
        self.writer = writer or keeper
        self.before: set[str] = set()

    def init(self) -> None:
        self.before = self._of_git()
        self.writer.ours("init", "--departments", "backend,frontend,uiux", "--commit")
        assert self.keeper.git("status", "--porcelain") == "", self.keeper.git(
            "status", "--porcelain"
        )

    def start(self) -> None:
        self.keeper.ours("start")
        assert self.keeper.data("status")["daemon"]["running"]

    def commit(self) -> None:
        self._write_plan(0)

    def rewrite(self) -> None:
        self._write_plan(1)
        self._write_plan(2)
        self._write_plan(3, IN_PLACE)
        self._write_plan(4, IN_PLACE)
        assert len(self.keeper.committed(PLAN)) == 5, self.keeper.git("log", "--oneline")

    def refuse(self) -> None:
        """Something wrong is rejected, named and mended."""
        self.writer.write(WRONG, b'{"id":7}\n')
        self.writer.ours("validate", WRONG, ok=(1,))
        self._until(lambda: self._standing(WRONG) == "rejected", "it is rejected")
        assert not self.keeper.committed(WRONG)
        self.writer.insist("rm", WRONG)
        self.writer.ours("validate")

    def gate(self) -> None:
        self.writer.ours("gate", "check", "ux-complete", "--phase", "1", ok=(1,))
        for kind in UX:
            found = evidence(kind)
            self.writer.write(found.path, found.data)
        self.writer.ours(
            "gate", "wait", "ux-complete", "--phase", "1", "--timeout", str(PATIENCE_S)
        )

    def beside(self) -> None:
        """A commit of the user's, through the hooks; the index and the work tree are theirs."""
        self.writer.write("src/login.ts", b"export {}\n")
        self.writer.git("add", "src/login.ts")
        self.writer.git("commit", "-q", "-m", "feat: begin the login")
        assert self.writer.committed("src/login.ts") == ["feat: begin the login"]

    def resume(self) -> None:
        assert "01-01" in self.writer.ours("resume")
        self.writer.ours("verify")

    def status(self) -> None:
        """Nothing is wrong, and everybody says so."""
        self._until(self._is_quiet, "nothing is left to do")
        told = self.writer.data("status")
        wrong = [
            each for each in told["health"] if not any(word in str(each) for word in self.expected)
        ]
        assert not wrong, wrong
        assert all(word in str(told["health"]) for word in self.expected), (
            f"{self.expected}: {told['health']}"
        )
        assert told["daemon"]["running"] and told["daemon"]["degraded"] is None, told["daemon"]
        assert self.writer.git("status", "--porcelain") == "", self.writer.git(
            "status", "--porcelain"
        )
        self.keeper.ours("doctor", ok=(1,) if self.expected else (0,))

    def stop(self) -> None:
        self.keeper.ours("stop")
        assert not self.keeper.data("status")["daemon"]["running"]
        # git's own fsck fails when a pack that it has listed is merged; a daemon at work merges packs
        self.keeper.git("fsck", "--no-dangling")

    def uninstall(self) -> None:
        self.keeper.ours("kept", "prune", "--older", "0h")  # what was refused; nobody wants it
        self.keeper.ours("uninstall")
        left = self._of_git() - self.before
        assert not left, f"left behind: {sorted(left)}"
        assert self.keeper.git("status", "--porcelain") == "", self.keeper.git(
            "status", "--porcelain"
        )

    # --- what it looks at ---

    def _write_plan(self, version: int, script: str = ASIDE) -> None:
        data = artifact("plan", 0, version).data
        self.writer.write(PLAN, data, script)
        self._until(
            lambda: self.keeper.run("git", "show", f"HEAD:{PLAN}").stdout.encode() == data,
            f"version {version} is committed",
        )

    def _standing(self, path: str) -> str:
        found = [each for each in self.keeper.data("status")["candidates"] if each["path"] == path]
        return str(found[0]["standing"]) if found else ""

    def _is_quiet(self) -> bool:
        counts = self.keeper.data("status")["counts"]
        return not (counts["pending"] or counts["held"] or counts["rejected"])

    def _of_git(self) -> set[str]:
        script = 'cd "$(git rev-parse --git-common-dir)" && find . -path ./objects -prune -o -type f -print'
        names = {name[2:] for name in self.keeper.insist("sh", "-c", script).splitlines()}
        return {
            name
            for name in names
            if not COMING_AND_GOING.intersection(name.split("/")) and "sharedindex." not in name
        }

    def _until(self, is_so: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            if time.monotonic() > deadline:
                told = [
                    each
                    for each in self.keeper.data("status")["candidates"]
                    if each["standing"] != "committed"
                ]
                raise AssertionError(f"not within {PATIENCE_S} s: {what}; status: {told}")
            time.sleep(0.2)


STEPS = (
    "init", "start", "commit", "rewrite", "refuse", "gate", "beside", "resume", "status", "stop", "uninstall",
)  # fmt: skip
"""By name: a place may do more at one of them."""


class Outcome(NamedTuple):
    """How far a walk came."""

    steps: int
    defect: str = ""
    """The step that is not as promised, and what was seen; empty when all are."""


def walked(walk: Walk) -> Outcome:
    """Walk from the first step to the last; whatever happens, its daemon does not stay."""
    for number, step in enumerate(STEPS):
        try:
            getattr(walk, step)()
        except (AssertionError, subprocess.TimeoutExpired) as error:
            walk.keeper.run(str(PROGRAM), "stop")
            return Outcome(number, f"{step}: {error}")
    return Outcome(len(STEPS))
