"""The commit engine against a model, beside a user who stages, commits and switches branches, on a real repository.

The model is a map of path → bytes and a list of commits for each branch. What the user's own git
does is read back; what the engine does is predicted and looked for with `git log`, `git ls-files`,
`git diff` and `git fsck` alone. See docs/dev/faults.md#f05, #f22 and #f28.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as some
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.git.conftest import PHASE, Engine, Engines, User
from tests.properties.profile import profile
from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.git.commit import CommitRequest

PATHS = [
    f"{PHASE}/{name}"
    for name in ("01-01.plan.jsonl", "01-02.plan.jsonl", "critique.jsonl", "ünï code.jsonl")
]
PATHS += [".yolo-planning/state.json", 'odd "name"\n.jsonl']
CONTENTS = [b"", b"a\n", b"b\n", b"\r\n\xff\0", b"a\n" * 3000]
ARTIFACT = some.tuples(some.sampled_from(PATHS), some.sampled_from(CONTENTS))
OWN = some.tuples(
    some.sampled_from(["user.txt", "src/user.py", *PATHS[:2]]), some.sampled_from(CONTENTS[1:3])
)
TRAILERS = (("Yolo-Artifact", "plan"),)
BRANCHES = some.sampled_from(["main", "side", "deep/er"])
Tree = dict[str, bytes]
"""Path → content; bytes of the path decoded as the file system does."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a commit, to be copied: quicker than a new one for each history."""
    user = User(tmp_path_factory.mktemp("template") / "work")
    user.root.mkdir()
    user.git("init", "--quiet", "--initial-branch=main")
    for key, value in (("user.name", "Engine"), ("user.email", "engine@example.org")):
        user.git("config", key, value)
    user.add("user.txt", "hello\n")
    user.commit("first")
    return user.root


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_") and "PYTHON" not in name]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))


class Machine(RuleBasedStateMachine):
    """One history of agents, a user and an engine that is restarted now and then."""

    template: Path
    place: Path
    numbers: Iterator[int]

    def __init__(self) -> None:
        super().__init__()
        self.root = self.place / str(next(self.numbers))
        shutil.copytree(self.template, self.root)
        self.user = User(self.root)
        self.engine = self.start()
        self.acknowledged: list[str] = []

    def start(self) -> Engine:
        return Engines()(self.user, durable=False)

    def teardown(self) -> None:
        self.engine.close()
        self.user.fsck()
        reachable = set(self.user.text("rev-list", "--all").split())
        assert set(self.acknowledged) <= reachable, "an acknowledged commit is lost"
        shutil.rmtree(self.root)

    # --- what an outsider sees ---

    def tree(self, revision: str = "HEAD") -> Tree:
        listed = self.user.git("ls-tree", "-r", "-z", revision)
        return self.contents(
            (line.split()[2], line.partition(b"\t")[2]) for line in listed.split(b"\0") if line
        )

    def index(self) -> Tree:
        listed = self.user.git("ls-files", "--stage", "-z")
        return self.contents(
            (line.split()[1], line.partition(b"\t")[2]) for line in listed.split(b"\0") if line
        )

    def contents(self, entries: Any) -> Tree:
        pairs = [(oid, os.fsdecode(path)) for oid, path in entries]
        said = self.user.git("cat-file", "--batch", given=b"".join(oid + b"\n" for oid, _ in pairs))
        found: Tree = {}
        for _, path in pairs:
            header, _, said = said.partition(b"\n")
            size = int(header.split()[2])
            found[path], said = said[:size], said[size + 1 :]
        return found

    def others(self) -> dict[str, bytes]:
        """Return everything that no commit of ours may change."""
        own = self.user.text("symbolic-ref", "HEAD")
        refs = self.user.text("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        work = {
            str(f): f.read_bytes()
            for f in self.root.rglob("*")
            if f.is_file() and ".git" not in f.parts
        }
        config = (self.root / ".git/config").read_bytes()
        return {
            **work,
            "config": config,
            "refs": "\n".join(ref for ref in refs if ref.split()[0] != own).encode(),
        }

    # --- agents ---

    @rule(artifacts=some.lists(ARTIFACT, min_size=1, max_size=3))
    def agents_write(self, artifacts: list[tuple[str, bytes]]) -> None:
        self.commit(artifacts)

    @rule(content=some.sampled_from(CONTENTS))
    def many_write_at_once(self, content: bytes) -> None:
        self.commit(
            [(f"{PHASE}/many-{number}.jsonl", content + b"%d" % number) for number in range(8)]
        )

    @rule(data=some.data())
    def an_agent_writes_the_same_again(self, data: some.DataObject) -> None:
        tree = self.tree()
        path = data.draw(some.sampled_from(sorted(tree)))
        before = self.user.tip()
        (made,) = self.engine.commit(CommitRequest(path, tree[path], "docs(01): again"))

        assert (made.commit, self.user.tip()) == (None, before)

    def commit(self, artifacts: list[tuple[str, bytes]]) -> None:
        for path, content in artifacts:
            if not (self.root / path).is_symlink():
                self.user.write(path, content)
        before, index, others = self.user.tip(), self.index(), self.others()
        trees = [self.tree()]
        subjects = [f"docs(01): artifact {number}" for number in range(len(artifacts))]
        entries = [
            CommitRequest(*pair, subject, TRAILERS)
            for pair, subject in zip(artifacts, subjects, strict=True)
        ]
        made = self.engine.commit(*entries)

        expected = []
        for (path, content), subject, one in zip(artifacts, subjects, made, strict=True):
            assert (one.commit is None) == (trees[-1].get(path) == content), "each content once"
            if one.commit:
                expected.append((one.commit, path, subject))
                if index.get(path) == trees[-1].get(path):
                    index[path] = content
                trees.append(trees[-1] | {path: content})
        self.check_commits(before, expected)
        assert self.tree() == trees[-1]
        self.check_index(index, others)
        self.acknowledged += [oid for oid, _, _ in expected]

    def check_index(self, index: Tree, others: dict[str, bytes]) -> None:
        """Assert that the user's side is this at once, and still when what is pending has followed."""
        assert (self.index(), self.others()) == (index, others), (
            "of what is the user's, only an entry changes that has our path and was as on the branch"
        )
        assert self.engine.follower.follow()
        assert (self.index(), self.others()) == (index, others), "nothing is left to follow"

    def check_commits(self, before: str, expected: list[tuple[str, str, str]]) -> None:
        """Assert that exactly these commits were added, each of one path, with its message, one upon the other."""
        listed = self.user.text(
            "rev-list", "--reverse", "--parents", f"{before}..HEAD"
        ).splitlines()
        parents = [before, *(oid for oid, _, _ in expected)]
        assert [line.split() for line in listed] == [
            [oid, parent] for (oid, _, _), parent in zip(expected, parents, strict=False)
        ]
        for oid, path, subject in expected:
            changed = self.user.git("diff-tree", "-r", "-z", "--name-only", "--no-commit-id", oid)
            assert os.fsdecode(changed) == f"{path}\0"
            assert (
                self.user.git("log", "-1", "--format=%B", oid).decode()
                == f"{subject}\n\nYolo-Artifact: plan\n\n"
            )

    @rule(artifact=ARTIFACT)
    def the_index_is_held_and_the_branch_waits(self, artifact: tuple[str, bytes]) -> None:
        if self.index().get(artifact[0]) != self.tree().get(artifact[0]):
            return
        (self.root / ".git/index.lock").touch()
        self.refused(artifact, self.engine.repository.head(), Reason.INDEX_LOCKED)
        (self.root / ".git/index.lock").unlink()

    @rule()
    def the_engine_is_restarted(self) -> None:
        self.engine.close()
        self.engine = self.start()

    # --- the user ---

    @rule(own=OWN)
    def the_user_stages(self, own: tuple[str, bytes]) -> None:
        self.user.add(*own)

    @rule()
    def the_user_commits_what_is_staged(self) -> None:
        self.user.commit("user")

    @rule(branch=BRANCHES)
    def the_user_switches(self, branch: str) -> None:
        known = self.user.git("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", ok=(0, 1))
        self.user.git("switch", "--quiet", *(() if known else ("--create",)), branch, ok=(0, 1))

    # --- somebody else is quicker ---

    @rule(artifact=ARTIFACT)
    def the_branch_moves_meanwhile(self, artifact: tuple[str, bytes]) -> None:
        seen = self.engine.repository.head()
        moved = self.user.commit("user is quicker")
        self.refused(artifact, seen)
        assert self.user.tip() == moved

    @precondition(
        lambda self: self.user.text("rev-parse", "HEAD") == self.user.text("rev-parse", "main")
    )
    @rule(artifact=ARTIFACT)
    def the_user_goes_to_another_branch_of_the_same_tip_meanwhile(
        self, artifact: tuple[str, bytes]
    ) -> None:
        seen = self.engine.repository.head()
        self.user.git("switch", "--quiet", "--force-create", "elsewhere")
        self.refused(artifact, seen)
        self.user.git("switch", "--quiet", seen.branch)

    def refused(
        self, artifact: tuple[str, bytes], seen: Any, reason: Reason = Reason.BRANCH_MOVED
    ) -> None:
        before, index, others = self.user.tip(), self.index(), self.others()
        entry = CommitRequest(*artifact, "docs(01): late", TRAILERS)
        if self.tree().get(artifact[0]) == artifact[1]:
            return
        with pytest.raises(YoloError) as refusal:
            self.engine.committer.commit([entry], seen)

        assert refusal.value.reason is reason
        assert self.user.tip() == before
        self.check_index(index, others)

    # --- always ---

    @invariant()
    def head_is_a_branch_and_no_lock_is_left(self) -> None:
        assert self.user.text("symbolic-ref", "HEAD").startswith("refs/heads/")
        assert not list((self.root / ".git").rglob("*.lock"))


def test_no_history_loses_doubles_or_touches_anything(template: Path, tmp_path: Path) -> None:
    numbers = count()

    class Here(Machine):
        pass

    Here.template, Here.place, Here.numbers = template, tmp_path, numbers
    run_state_machine_as_test(Here, settings=profile(3, stateful_step_count=8))
    assert next(numbers) >= 3
