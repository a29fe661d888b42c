"""A user at work in the same repository: random states of index and work tree, and branches that
move under the writers. See docs/dev/faults.md#f21, #f22, #f25 to #f28 and #f63.
"""

from __future__ import annotations

import os
import random
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from tests.e2e.artifacts import PLANNING, Artifact, artifact, mixed
from tests.e2e.daemon import until
from tests.e2e.repo import PASSING, Repo
from tests.torture.forked_daemons import CALM
from tests.torture.surroundings import Ground, Writelog, behind, settled

# --- states ----------------------------------------------------------------------------------------------------------

PER_REPOSITORY = 100
_FILES = [f"src/file{number}.py" for number in range(1, 7)]


def _text(rng: random.Random) -> str:
    return "".join(f"line = {rng.choice((1, 1, 1, rng.random()))}\n" for _ in range(8))


def _stage(repo: Repo, rng: random.Random) -> None:
    name = rng.choice(_FILES)
    repo.file(name, _text(rng))
    repo.git("add", "-f", "--sparse", "--", name)


def _stage_half(repo: Repo, rng: random.Random) -> None:
    name = rng.choice(_FILES)
    repo.file(name, _text(rng))
    repo.git("add", "--sparse", "--", name)
    repo.file(name, _text(rng))


def _stage_by_hunks(repo: Repo, rng: random.Random) -> None:
    name = rng.choice(_FILES)
    repo.file(name, _text(rng))
    repo.git("add", "--patch", "--", name, given="y\nn\ny\nq\n", ok=(0, 1))


def _change(repo: Repo, rng: random.Random) -> None:
    repo.file(rng.choice(_FILES), _text(rng))


def _delete(repo: Repo, rng: random.Random) -> None:
    (repo.root / rng.choice(_FILES)).unlink(missing_ok=True)


def _intend(repo: Repo, rng: random.Random) -> None:
    name = f"src/intended{rng.randrange(4)}.py"
    repo.file(name, _text(rng))
    repo.git("add", "--sparse", "--intent-to-add", "--", name)


def _unstage(repo: Repo, rng: random.Random) -> None:
    repo.git("rm", "-q", "-f", "--cached", "--ignore-unmatch", "--sparse", "--", rng.choice(_FILES))


def _flag(repo: Repo, rng: random.Random) -> None:
    flag = rng.choice(
        ("--skip-worktree", "--no-skip-worktree", "--assume-unchanged", "--no-assume-unchanged")
    )
    repo.git("update-index", flag, "--", rng.choice(_FILES), ok=(0, 128))


def _executable(repo: Repo, rng: random.Random) -> None:
    repo.git(
        "update-index",
        rng.choice(("--chmod=+x", "--chmod=-x")),
        "--",
        rng.choice(_FILES),
        ok=(0, 128),
    )


def _untracked(repo: Repo, rng: random.Random) -> None:
    repo.file(f"scratch{rng.randrange(4)}.txt", _text(rng))


def _stash(repo: Repo, rng: random.Random) -> None:
    repo.git("stash", "push", "-q", "--", rng.choice(_FILES), ok=(0, 1, 128))


def _reset_some(repo: Repo, rng: random.Random) -> None:
    repo.git("reset", "-q", "--", rng.choice(_FILES), ok=(0, 1, 128))


def _index_form(repo: Repo, rng: random.Random) -> None:
    repo.git(
        "update-index",
        rng.choice(("--index-version=4", "--index-version=2", "--split-index", "--no-split-index")),
    )


_MOVES: Sequence[Callable[[Repo, random.Random], None]] = (
    _stage, _stage_half, _stage_by_hunks, _change, _delete, _intend, _unstage, _flag, _executable, _untracked, _stash,
    _reset_some, _index_form,
)  # fmt: skip


def states(ground: Ground, count: int) -> None:
    """Bring index, work tree and stash into a random state, let an artifact be committed, compare all of it."""
    for first in range(0, count, PER_REPOSITORY):
        _states_of_one_repository(ground, min(PER_REPOSITORY, count - first))


def _states_of_one_repository(ground: Ground, count: int) -> None:
    repo = ground.repo()
    log = Writelog(repo)
    daemon = ground.daemon(repo, **{CALM: "0"})
    daemon.start()
    for one in mixed(count):
        moves = ground.rng.sample(_MOVES, ground.rng.randint(1, 3))
        for move in moves:
            move(repo, ground.rng)
        before = repo.of_the_user()
        log.write(one)
        daemon.wait_committed([one])
        until(lambda: not behind(repo), "the index follows")
        after = repo.of_the_user()
        ground.tally.count += 1
        for name in before:
            if before[name] != after[name]:
                said = [move.__name__ for move in moves]
                ground.fault(
                    f"after {said}: {name}: {before[name][-300:]!r} became {after[name][-300:]!r}"
                )
    log.acknowledged(daemon.mailbox.events)
    daemon.kill()
    ground.judge(repo, log, "user states")
    ground.forget(repo)


# --- surgery ---------------------------------------------------------------------------------------------------------

WRITERS = 20
TURNS_PER_REPOSITORY = 25
BRANCHES = ("main", "side")


class User:
    """Switches, rebases, stashes, resets and commits; every command has to do what it says, whatever else goes on."""

    def __init__(self, ground: Ground, repo: Repo, log: Writelog, *, looks_first: bool) -> None:
        """Act in a repository; `looks_first`: not before the index has followed what we committed."""
        self._looks_first = looks_first
        self.ground = ground
        self.repo = repo
        self.log = log
        self.turn = 0
        self.since = repo.look("rev-parse", "HEAD").strip()
        self._refusals: Counter[str] = Counter()

    def act(self) -> None:
        """Do one thing; a switch or a rebase counts."""
        self.turn += 1
        act = self.ground.rng.choice(
            (self.options, self.rebases, self.rebases_with_conflict, self.commits_in_an_editor, self.stashes,
             self.takes_a_commit_back)
        )  # fmt: skip
        act()
        if act in (self.commits_in_an_editor, self.stashes, self.takes_a_commit_back):
            self.options()
        self.ground.tally.count += 1

    def options(self) -> None:
        self.git("checkout", "-q", BRANCHES[self.turn % 2])

    def commits(self, name: str) -> str:
        text = f"feat: by the user, turn {self.turn}, {name}"
        self.log.subject(text)
        self.repo.file(name, f"turn = {self.turn}\nof = {self.ground.rng.random()}\n")
        self.git("add", "--", name)
        self.git("commit", "-q", "-m", text, "--", name)
        return text

    def commits_in_an_editor(self) -> None:
        text = f"feat: in an editor, turn {self.turn}"
        self.log.subject(text)
        self.repo.file("src/file2.py", f"turn = {self.turn}\n")
        self.git("add", "src/file2.py")
        editor = f'sh -c \'sleep 0.{self.ground.rng.randint(1, 4)}; echo "{text}" > "$1"\' editor'
        self.git("commit", "-q", GIT_EDITOR=editor)
        self._expect(text)

    def rebases(self) -> None:
        """Rebase a topic that began before the tip onto it."""
        branch = self.branch()
        self.git("checkout", "-q", "-b", f"topic{self.turn}")
        self.commits(f"topic/{self.turn}.py")
        self.git("checkout", "-q", branch)
        self.commits(f"base/{self.turn}.py")
        self.git("rebase", "-q", branch, f"topic{self.turn}")
        self.git("checkout", "-q", branch)
        self.log.branch(f"topic{self.turn}", self.since)

    def rebases_with_conflict(self) -> None:
        """Rebase onto a change of the same line: while it stands, nothing may move."""
        branch = self.branch()
        self.git("checkout", "-q", "-b", f"topic{self.turn}")
        self.commits("src/file1.py")
        self.git("checkout", "-q", branch)
        self.commits("src/file1.py")
        self.git("rebase", "-q", branch, f"topic{self.turn}", ok=(1,))
        before = self._tips()
        threading.Event().wait(self.ground.rng.uniform(0, 0.2))
        if self._tips() != before:
            self.ground.fault(f"turn {self.turn}: a branch moved during a rebase")
        self.git("rebase", "--abort")
        self.git("checkout", "-q", branch)
        self.log.branch(f"topic{self.turn}", self.since)

    def stashes(self) -> None:
        self.repo.file("src/file3.py", f"stashed = {self.turn}\n")
        self.git("stash", "push", "-q", "--", "src/file3.py")
        self.git("stash", "pop", "-q", ok=(0, 1))
        self._resolve()
        self.git("checkout", "-q", "--", "src/file3.py")

    def _resolve(self) -> None:
        """Take back what a stash says of artifacts: it was made while the index had not followed yet."""
        if not self.repo.look("diff", "--name-only", "--diff-filter=U"):
            return
        self._refusals["a stash came back with a conflict in an artifact"] += 1
        self.git("reset", "-q")
        for path in self.repo.look("ls-files", "--deleted", "--", PLANNING).splitlines():
            self.git("checkout", "-q", "--", path)
        self.git("stash", "drop", "-q")

    def uses_a_tool(self) -> None:
        """Do one thing that an editor, a hook manager, or another front of git does."""
        self.turn += 1
        tools = (self.looks_around, self.rebases_a_dirty_tree, self.works_elsewhere, self.adds_a_module,
                 self.narrows, self.rewrites_its_commit, self.commits_a_filtered_file)  # fmt: skip
        tools[self.turn % len(tools)]()
        self.ground.tally.count += 1

    def looks_around(self) -> None:
        """Fetch, and look at the state with and without its locks, as an IDE does each second."""
        for _ in range(5):
            self.git("fetch", "-q", ".", "main")
            self.git("status", "--porcelain=v2", "-uall")
            self.git("status", "--porcelain=v2", GIT_OPTIONAL_LOCKS="0")
            self.git("diff", "--stat")

    def rebases_a_dirty_tree(self) -> None:
        branch, topic = self.branch(), f"dirty{self.turn}"
        self.git("checkout", "-q", "-b", topic)
        self.commits(f"topic/{self.turn}.py")
        self.git("checkout", "-q", branch)
        self.commits(f"base/{self.turn}.py")
        self.git("checkout", "-q", topic)
        self.repo.file("src/file5.py", f"dirty = {self.turn}\n")
        self.git("rebase", "-q", "--autostash", branch)
        if f"dirty = {self.turn}" not in (self.repo.root / "src/file5.py").read_text():
            self.ground.fault(f"turn {self.turn}: what was not committed is gone")
        self.git("checkout", "-q", "--", "src/file5.py")
        self.git("checkout", "-q", branch)
        self.log.branch(topic, self.since)

    def works_elsewhere(self) -> None:
        """Commit in a work tree beside, and remove it."""
        place, name = f"{self.repo.root}-{self.turn}", f"beside{self.turn}"
        text = f"feat: beside, turn {self.turn}"
        self.log.subject(text)
        self.git("worktree", "add", "-q", "-b", name, place)
        self.git("-C", place, "commit", "-q", "--allow-empty", "-m", text)
        self.git("worktree", "remove", "--force", place)
        self.log.branch(name, self.since)

    def adds_a_module(self) -> None:
        text, module = f"feat: a module, turn {self.turn}", f"{self.repo.root}-module"
        self.log.subject(text)
        if not os.path.isdir(module):
            self.git("init", "-q", module)
            self.git("-C", module, "commit", "-q", "--allow-empty", "-m", "begin")
        path = f"modules/m{self.turn}"
        allowed = ("-c", "protocol.file.allow=always")
        self.git(*allowed, "submodule", "--quiet", "add", module, path)
        self.git("commit", "-q", "-m", text, "--", ".gitmodules", path)
        self._expect(text)

    def narrows(self) -> None:
        """Check out a part of the tree, work there, and check out all of it again."""
        self.git("sparse-checkout", "set", "src", PLANNING)
        self.commits("src/file6.py")
        self.git("sparse-checkout", "disable")

    def rewrites_its_commit(self) -> None:
        """Move the branch to a commit made by hand in place of its own, as jj and GitButler do."""
        old = self.commits("src/file4.py")
        text = f"feat: rewritten, turn {self.turn}"
        self.log.subject(text)
        tip = self.repo.look("rev-parse", "HEAD").strip()
        if self.repo.look("log", "-1", "--format=%s", tip).strip() == old:
            made = self.repo.git("commit-tree", f"{tip}^{{tree}}", "-p", f"{tip}^", "-m", text)
            # Refused where the daemon came first, which is what such a tool then has to meet.
            self.repo.git("update-ref", "HEAD", made.strip(), tip, ok=(0, 128))

    def commits_a_filtered_file(self) -> None:
        """Commit what a filter changes on its way, as Git LFS does, with hooks in a folder of the tree."""
        for key, value in (("filter.lfs.clean", "tr a-z A-Z"), ("filter.lfs.smudge", "cat"), ("core.hooksPath", ".husky")):  # fmt: skip
            self.git("config", key, value)
        hook = self.repo.file(".husky/pre-commit", "#!/bin/sh\ngit diff --cached --check\n")
        hook.chmod(0o755)
        self.repo.file(".gitattributes", "*.bin filter=lfs\n")
        self.git("add", ".gitattributes", ".husky")
        self.commits(f"assets/{self.turn}.bin")
        self.repo.git("commit", "-q", "-m", self.named("filters"), "--", ".gitattributes", ".husky", ok=(0, 1))  # fmt: skip

    def named(self, what: str) -> str:
        text = f"feat: {what}, turn {self.turn}"
        self.log.subject(text)
        return text

    def takes_a_commit_back(self) -> None:
        """Commit, and revert that commit, whatever came upon it meanwhile."""
        text = self.commits("src/file4.py")
        # By its name: what the daemon commits meanwhile is not the user's to take back.
        oid = self.repo.look(
            "log", "-1", "--format=%H", "--fixed-strings", f"--grep={text}"
        ).strip()
        self.log.subject(f'Revert "{text}"')
        self.git("revert", "--no-edit", oid)

    def _expect(self, text: str) -> None:
        if text not in self.repo.look("log", "-40", "--format=%s"):
            self.ground.fault(f"turn {self.turn}: the user's commit is gone: {text}")

    def branch(self) -> str:
        return self.repo.look("symbolic-ref", "--short", "HEAD").strip()

    def _tips(self) -> str:
        return self.repo.look("for-each-ref", "refs/heads") + self.repo.look("rev-parse", "HEAD")

    def git(self, *arguments: str, ok: Sequence[int] = (0,), **more: str) -> None:
        """Run a command of the user; one that git refuses for a moment is repeated, as anybody would, and counted."""
        if self._looks_first:
            until(
                lambda: not self.repo.look("diff", "--cached", "--name-only", "--", PLANNING),
                "the index follows",
            )
        for attempt in range(_PATIENCE):
            said = self._tried(arguments, ok, more)
            passing = next((why for words, why in _PASSING.items() if words in said), "")
            if not passing:
                break
            self._refusals[passing] += 1
            threading.Event().wait(0.1)
            if attempt > _UNTIL_TIDIED:
                self._tidy(said)
        if said:
            staged = self.repo.look("diff", "--cached", "--raw")
            self.ground.fault(f"turn {self.turn}: {said[:400]}; staged: {staged[:400]}")

    def _tried(self, arguments: Sequence[str], ok: Sequence[int], more: Mapping[str, str]) -> str:
        """Return what git said against it; nothing when it did as asked."""
        command = ["git", *arguments]
        done = subprocess.run(
            command,
            cwd=self.repo.root,
            env={**self.repo.env, **more},
            capture_output=True,
            text=True,
            check=False,
        )
        refused = any(words in done.stderr for words in _PASSING)
        return (
            ""
            if done.returncode in ok and not refused
            else f"{command}: {done.returncode}: {done.stdout}{done.stderr}"
        )

    def _tidy(self, said: str) -> None:
        """Take away what a branch has and the index, which had not followed yet, made git leave behind."""
        for line in said.splitlines():
            if line.startswith("\t"):
                (self.repo.root / line.strip()).unlink(missing_ok=True)
                self._refusals["a file of a commit of ours was left behind"] += 1

    def told(self) -> str:
        """Return how often a command was refused for a moment, and why."""
        return ", ".join(f"{count} × {why}" for why, count in self._refusals.items())


_PATIENCE = 100
_UNTIL_TIDIED = 10
"""Attempts before the user removes what git names."""
_PASSING = {
    **PASSING,
    "would be removed by checkout": "the index had not followed a commit of ours yet",
    "index contains uncommitted changes": "the index had not followed a commit of ours yet",
    "would be overwritten by": "the index had not followed a commit of ours yet",
}
"""What git says when it refuses a command for a moment, changing nothing → why."""


def surgery(ground: Ground, count: int) -> None:
    """Switch and rebase while twenty writers write: what the user does succeeds, and what they write is committed once."""
    for first in range(0, count, TURNS_PER_REPOSITORY):
        surgery_in_one_repository(ground, min(TURNS_PER_REPOSITORY, count - first))


def tools(ground: Ground, count: int) -> None:
    """Let the user's other programs work on the repository while twenty writers write."""
    for first in range(0, count, TURNS_PER_REPOSITORY):
        turns = min(TURNS_PER_REPOSITORY, count - first)
        surgery_in_one_repository(ground, turns, User.uses_a_tool)


def surgery_in_one_repository(
    ground: Ground,
    turns: int,
    act: Callable[[User], None] = User.act,
    *,
    looks_first: bool | None = None,
) -> None:
    repo = ground.repo(rescan_s=1)
    repo.git("branch", "side")
    log = Writelog(repo, branches=BRANCHES)
    daemon = ground.daemon(repo)
    daemon.start()
    user, written = (
        User(
            ground,
            repo,
            log,
            looks_first=turns < TURNS_PER_REPOSITORY if looks_first is None else looks_first,
        ),
        _Writers(ground, log),
    )
    written.begin()
    try:
        for _ in range(turns):
            act(user)
    finally:
        written.end()
    settled(daemon, 60)
    if user.told():
        ground.tally.notes.append(f"refused and repeated in {turns} turns: {user.told()}")
    log.acknowledged(daemon.mailbox.events)
    daemon.kill()
    ground.judge(repo, log, "surgery")
    ground.forget(repo)


class _Writers:
    """Twenty agents, each of which writes an artifact of its own now and then."""

    def __init__(self, ground: Ground, log: Writelog) -> None:
        self._log = log
        self._seeds = [ground.rng.random() for _ in range(WRITERS)]
        self._turn = threading.Lock()
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._write, args=(agent,)) for agent in range(WRITERS)
        ]

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _write(self, agent: int) -> None:
        rng = random.Random(self._seeds[agent])
        for one in self._works(agent):
            if self._ended.wait(rng.uniform(0.5, 3)):
                return
            with self._turn:
                self._log.write(one)

    def _works(self, agent: int) -> list[Artifact]:
        """Return artifacts of the agent's own phase: every path belongs to one agent."""
        return [
            artifact(kind, agent + 20 * turn) for turn in range(90) for kind in ("plan", "summary")
        ]
