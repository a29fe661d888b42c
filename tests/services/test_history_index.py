"""What one process read of the log the next one finds; whatever happens to history, the answer is that of a fresh reading."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from yolo_fs.edges.git.repository import Repository
from yolo_fs.services.history import index as module
from yolo_fs.services.history.index import FILE, HistoryIndex

PLAN = ".yolo-planning/phases/01-auth/01-01.plan.jsonl"
START_S = 1_771_000_000


class History:
    """A repository whose commits are written by hand, at the moments that a test says."""

    def __init__(self, root: Path):
        self.root = root
        self.seconds = 0
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, at_s: int | None = None) -> str:
        moment = f"{START_S + (self.seconds if at_s is None else at_s)} +0000"
        who = {f"GIT_{part}_{fact}": value for part in ("AUTHOR", "COMMITTER")
               for fact, value in (("NAME", "Ada"), ("EMAIL", "a@b.c"), ("DATE", moment))}  # fmt: skip
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.root,
            env=os.environ | who,
            check=True,
            capture_output=True,
        )
        return done.stdout.decode().strip()

    def commit(self, subject: str, path: str = "src/a.ts", at_s: int | None = None) -> str:
        self.seconds += 1
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        with (self.root / path).open("a") as file:
            file.write(f"{self.seconds} {subject}\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", subject, at_s=at_s)
        return self.git("rev-parse", "HEAD")

    def cache(self) -> Path:
        return self.root / ".git/yolo-fs" / FILE

    def read(self, tip: str = "HEAD", *, keep: bool = True) -> dict[str, Any]:
        """Return all that a new process says of a tip; it leaves its cache."""
        with Repository(str(self.root)) as repository:
            found = HistoryIndex(repository)
            found.read_up_to(self.git("rev-parse", tip))
            if keep:
                found.keep()
            return answers(found, self.git("rev-list", "--all", "--reflog").split())

    def fresh(self, tip: str = "HEAD") -> dict[str, Any]:
        """Return the same, read without any cache."""
        kept = self.cache().read_bytes() if self.cache().exists() else None
        self.cache().unlink(missing_ok=True)
        found = self.read(tip, keep=False)
        if kept is not None:
            self.cache().write_bytes(kept)
        return found


def answers(found: HistoryIndex, oids: list[str]) -> dict[str, Any]:
    return {
        "paths": found.by_path,
        "tasks": found.by_task,
        "steps": found.by_step,
        "plans": found.by_plan,
        "heights": {oid: found.height(oid) for oid in oids},
        "signed off": found.signed_off,
        "ours": [(one.oid, one.at_s, one.changes) for one in found.ours],
        "commits": {oid: found.commit(oid[:12]) for oid in oids},
        "times": {oid: found.at_s(oid) for oid in oids},
        "words": found.of_words("01-01", "Load the keys."),
        "past": found.past_of(PLAN),
        "work": found.work_on("01-01"),
    }


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    found = History(tmp_path)
    found.commit("docs(01): plan 01-01", PLAN)
    found.commit("feat(01-01): T1 sign")
    return found


@pytest.fixture
def logs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Collect what is asked of the log."""
    asked: list[tuple[str, ...]] = []
    log = module.log

    def listen(repository: Repository, *selection: str, **more: Any) -> Any:
        asked.append(selection)
        return log(repository, *selection, **more)

    monkeypatch.setattr(module, "log", listen)
    return asked


def test_a_warm_start_reads_no_log_at_all(history: History, logs: list[tuple[str, ...]]) -> None:
    cold = history.read()
    del logs[:]
    assert history.read() == cold
    assert logs == []


def test_new_commits_alone_are_read(history: History, logs: list[tuple[str, ...]]) -> None:
    before = history.git("rev-parse", "HEAD")
    history.read()
    after = history.commit("feat(01-01): T2 verify")
    del logs[:]
    assert history.read()["tasks"]["01-01/T2"] == after
    assert logs == [(f"{before}..{after}",)]
    assert history.read() == history.fresh()


def amend(history: History) -> None:
    history.git("commit", "-q", "--amend", "-m", "feat(01-01): T3 something else")


def rebase(history: History) -> None:
    history.git("checkout", "-q", "-b", "base", "HEAD~1")
    history.commit("chore: below", "other.txt")
    history.git("checkout", "-q", "main")
    history.git("rebase", "-q", "base")


def switch(history: History) -> None:
    history.git("checkout", "-q", "-b", "side", "HEAD~1")
    history.commit("feat(01-02): T1 elsewhere", "b.ts")


def reset(history: History) -> None:
    history.git("reset", "-q", "--hard", "HEAD~1")


def merge(history: History) -> None:
    switch(history)
    history.commit("docs(01): enrich plan 01-01 specs", PLAN)
    history.git("checkout", "-q", "main")
    history.git("merge", "-q", "--no-ff", "-m", "chore: merge", "side")


def orphan(history: History) -> None:
    history.git("checkout", "-q", "--orphan", "other")
    history.commit("feat(01-01): T1 begun anew")


@pytest.mark.parametrize("rewrite", [amend, rebase, switch, reset, merge, orphan])
def test_whatever_becomes_of_history_the_answer_is_that_of_a_fresh_reading(
    history: History, rewrite: Callable[[History], None]
) -> None:
    history.read()
    rewrite(history)
    assert history.read() == history.fresh()
    assert history.read("main") == history.fresh("main")


def test_a_tip_that_no_longer_exists_is_forgotten(history: History) -> None:
    history.read()
    amend(history)
    history.git("reflog", "expire", "--expire=now", "--all")
    history.git("gc", "-q", "--prune=now")
    assert history.read() == history.fresh()


def test_random_histories_give_the_same_with_and_without_a_cache(history: History) -> None:
    seed = int(os.environ.get("YOLO_SEED", random.SystemRandom().randrange(2**32)))
    print(f"YOLO_SEED={seed}")
    rng = random.Random(seed)
    for step in range(25):
        match rng.randrange(6):
            case 0:
                history.git(
                    "checkout",
                    "-q",
                    "-b",
                    f"b{step}",
                    rng.choice(history.git("rev-list", "HEAD").split()),
                )
            case 1:
                history.git(
                    "checkout",
                    "-q",
                    rng.choice(history.git("branch", "--format=%(refname:short)").split()),
                )
            case 2:
                other = rng.choice(history.git("branch", "--format=%(refname:short)").split())
                history.git(
                    "merge", "-q", "-X", "ours", "--no-ff", "-m", f"chore: merge {other}", other
                )
            case _:
                subject = rng.choice(
                    (
                        "feat(01-01): T1 x",
                        "fix(phase-1): y",
                        "feat(01-01): Load the keys",
                        "docs(01): plan 01-01",
                    )
                )
                at_s = rng.choice((None, rng.randrange(50)))
                history.commit(subject, rng.choice((PLAN, "src/a.ts", "ä.txt")), at_s)
        if rng.random() < 0.6:
            history.read()
        assert history.read(keep=False) == history.fresh()


def test_a_later_commit_wins_though_its_clock_is_behind(history: History) -> None:
    late = history.commit("feat(01-01): T1 again", at_s=-1000)
    assert history.read()["tasks"]["01-01/T1"] == late


def test_of_two_lines_of_history_the_longer_one_wins_in_whatever_order_they_are_read(
    history: History,
) -> None:
    history.git("checkout", "-q", "-b", "side")
    history.commit("feat(01-01): T1 on the short line", "b.ts", at_s=50)
    history.git("checkout", "-q", "main")
    history.commit("chore: something", "c.ts", at_s=90)
    wins = history.commit("feat(01-01): T1 on the long line", at_s=100)
    history.read()
    history.git("merge", "-q", "--no-ff", "-m", "chore: merge", "side", at_s=200)
    assert (
        history.read(keep=False)["tasks"]["01-01/T1"]
        == history.fresh()["tasks"]["01-01/T1"]
        == wins
    )


def test_a_log_that_names_a_parent_before_its_child_is_put_in_order(history: History) -> None:
    history.commit("feat(01-01): T1 with a clock of the future", at_s=10_000)
    history.git("checkout", "-q", "-b", "side")
    child = history.commit("feat(01-01): T1 after that", at_s=5)
    history.git("checkout", "-q", "main")
    history.commit("chore: something", "c.ts", at_s=10)
    history.git("merge", "-q", "--no-ff", "-m", "chore: merge", "side", at_s=20)
    shown = history.git("log", "--format=%H").split()
    assert shown.index(child) > shown.index(history.git("rev-parse", f"{child}^"))
    assert history.read()["tasks"]["01-01/T1"] == child


def test_the_past_of_an_artifact_and_the_work_on_a_plan_are_in_the_order_of_history(
    history: History,
) -> None:
    first = history.git("rev-parse", "HEAD~1")
    work = [history.git("rev-parse", "HEAD"), history.commit("fix(01-01): again", at_s=0)]
    second = history.commit("docs(01): enrich plan 01-01 specs", PLAN)
    history.read()
    found = history.read(keep=False)
    assert found == history.fresh()
    assert [one.oid for one in found["past"]] == [first, second]
    assert [one.oid for one in found["work"]] == work


# --- what may become of the cache ---


@pytest.mark.parametrize("spoil", [
    lambda data: b"",
    lambda data: data[: len(data) // 2],
    lambda data: data[:-1],
    lambda data: data + b"x",
    lambda data: data.replace(b"history 4", b"history 0"),
    lambda data: data[:-20] + bytes([data[-20] ^ 1]) + data[-19:],
    lambda data: b"\0" * len(data),
])  # fmt: skip
def test_a_torn_or_foreign_cache_is_only_slower(
    history: History, spoil: Callable[[bytes], bytes]
) -> None:
    expected = history.read()
    spoilt = spoil(history.cache().read_bytes())
    history.cache().write_bytes(spoilt)
    assert history.read() == expected
    assert history.cache().read_bytes() != spoilt


@pytest.mark.parametrize("stand_in", ["link", "folder", "pipe"])
def test_what_stands_in_its_place_is_not_opened(
    history: History, tmp_path: Path, stand_in: str
) -> None:
    expected = history.read()
    history.cache().unlink()
    if stand_in == "link":
        history.cache().symlink_to(tmp_path / "elsewhere")
    elif stand_in == "folder":
        history.cache().mkdir()
    else:
        os.mkfifo(history.cache())
    assert history.read() == expected
    assert not (tmp_path / "elsewhere").exists()


def test_a_clone_that_is_deepened_is_read_anew(history: History, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    history.git("clone", "-q", "--depth=1", f"file://{history.root}", str(shallow))
    clone = History.__new__(History)
    clone.root, clone.seconds = shallow, 10
    assert clone.read()["paths"] == {PLAN: history.git("rev-parse", "HEAD")}
    clone.git("fetch", "-q", "--unshallow")
    assert clone.read() == clone.fresh()
    assert clone.read()["paths"][PLAN] == history.git("rev-parse", "HEAD~1")


def test_a_cache_is_not_written_anew_for_a_trifle(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.read()
    written = history.cache().read_bytes()
    monkeypatch.setattr(module, "_SHARE", 1)
    late = history.commit("feat(01-01): T9 late")
    assert history.read()["tasks"]["01-01/T9"] == late
    assert history.cache().read_bytes() == written


# --- tasks ---


def test_a_commit_says_the_words_of_its_task(history: History) -> None:
    done = history.commit("feat(01-01): load  the KEYS")
    assert history.read()["words"] == done
    assert history.read()["words"] == done
