"""What nobody has written is not new: ways in which HEAD, the index or files move without a writer.

Each way is tried without a daemon. A few are tried under a running one, and all of them with
`YOLO_MOVES=all`.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.artifacts import Artifact, artifact
from tests.e2e.daemon import Daemon
from tests.e2e.repo import Repo
from tests.support.forked import DEADLINE_S
from yolo_fs.core.reasons import Reason
from yolo_fs.daemon.coordinator import Coordinator
from yolo_fs.git.repository import Repository
from yolo_fs.workspace.settings import load

Start = Callable[..., Daemon]

FIRST, SECOND, THEIRS, NEXT = (artifact("critique", 1, version) for version in range(4))
FILE = FIRST.path
ELSEWHERE = artifact("critique", 2).path
REFRESH = "git update-index -q --refresh"
FORGET = "git reflog expire --expire=now --all; git gc -q --prune=now"

WAYS = {
    "a push into the branch": "cd $THERE && git push -q $HERE HEAD:main",
    "a forced push of an older commit": "cd $THERE && git push -qf $HERE HEAD~2:main",
    "a push that deletes the branch": "cd $THERE && git push -q $HERE :main",
    "a push and update-ref": "cd $THERE && git push -q $HERE HEAD:side; cd $HERE;"
    "git update-ref refs/heads/main side",
    "a fetch into the branch": "git fetch -q --update-head-ok $THERE main:main",
    "a forced fetch of an older commit": "git -C $THERE branch old HEAD~2;"
    "git fetch -q --update-head-ok $THERE +old:main",
    "a push that no reflog notes": "rm -r .git/logs; git config core.logAllRefUpdates false;"
    "cd $THERE && git push -q $HERE HEAD:main",
    "a soft reset": "git reset -q --soft HEAD~1",
    "a mixed reset": "git reset -q HEAD~1",
    "a mixed reset of everything": "git reset -q HEAD~2",
    "a keeping reset": f"{REFRESH}; git reset -q --keep HEAD~1",
    "a merging reset": f"{REFRESH}; git reset -q --merge HEAD~1",
    "a hard reset": "git reset -q --hard HEAD~1",
    "a soft reset that is forgotten": f"git reset -q --soft HEAD~1; {FORGET}",
    "a mixed reset that is forgotten": f"git reset -q HEAD~1; {FORGET}",
    "a reset that no reflog notes": "rm -r .git/logs; git config core.logAllRefUpdates false;"
    "git reset -q --soft HEAD~1; rm -f .git/ORIG_HEAD",
    "update-ref of HEAD": "git update-ref HEAD HEAD~1",
    "the branch deleted by hand": "git update-ref -d refs/heads/main",
    "an older tip in the file of the branch": "git rev-parse HEAD~1 > old; rm -r .git/logs;"
    "mv old .git/refs/heads/main",
    "a commit of an older tree": "git update-ref refs/heads/main"
    " $(git commit-tree HEAD~1^{tree} -p HEAD -m 'chore: back')",
    "HEAD set to an older branch": "git branch old HEAD~1; git symbolic-ref HEAD refs/heads/old",
    "HEAD set to a root that is none": "git symbolic-ref HEAD refs/jj/root",
    "HEAD set to a remote's branch": "git update-ref refs/remotes/origin/main HEAD~1;"
    "git symbolic-ref HEAD refs/remotes/origin/main",
    "HEAD detached": "git checkout -q --detach HEAD~1",
    "HEAD on the workspace of another tool": "git branch gitbutler/workspace HEAD~1;"
    "git symbolic-ref HEAD refs/heads/gitbutler/workspace",
    "an orphan branch": "git checkout -q --orphan fresh",
    "an orphan branch without files": "git switch -q --orphan fresh",
    "another branch": "git checkout -q -b old HEAD~1",
    "the branch made anew": "git checkout -q -f -B main HEAD~1",
    "a branch renamed": "git branch -m trunk",
    "a rebase": "git fetch -q $THERE side; git rebase -q FETCH_HEAD",
    "a commit amended": "git commit -q --amend -m 'chore: amended'",
    "a commit amended without the file": f"git rm -q --cached {FILE}; git commit -q --amend"
    " --allow-empty -m 'chore: amended'",
    "a file that is not tracked any more": f"git rm -q --cached {FILE};"
    "git commit -q -m 'chore: untracked'",
    "a revert": "git revert --no-edit HEAD",
    "a revert that is not committed": "git revert -n HEAD",
    "a revert undone in the index": "git revert -n HEAD; git revert --quit",
    "a cherry-pick that is not committed": "git fetch -q $THERE; git cherry-pick -n FETCH_HEAD",
    "a squashed merge": "git fetch -q $THERE; git merge -q --squash FETCH_HEAD",
    "a merge that is not committed": "git fetch -q $THERE;"
    "git merge -q --no-ff --no-commit FETCH_HEAD",
    "a file of an older commit": f"git checkout -q HEAD~1 -- {FILE}",
    "a file restored from an older commit": "git restore -q --source=HEAD~1 --staged --worktree"
    f" -- {FILE}",
    "a file of another branch": "git fetch -q $THERE main:theirs;"
    f"git checkout -q theirs -- {FILE}",
    "the tree of another branch": f"{REFRESH}; git fetch -q $THERE main:theirs; git read-tree -um HEAD theirs",
    "a patch taken back": f"{REFRESH}; git diff HEAD~1 | git apply --index -R",
    "another name in the index": f"mkdir -p {os.path.dirname(ELSEWHERE)}; git mv {FILE} {ELSEWHERE}",
    "an index of an older tree": "git read-tree HEAD~1",
    "an entry taken out of the index": f"git rm -q --cached {FILE}",
    "a backup of the file": f"cp -p $BACKUP/{FILE} {FILE}",
    "a backup of all files": "cp -pr $BACKUP/.yolo-planning .",
    "a history without the file": "FILTER_BRANCH_SQUELCH_WARNING=1 git filter-branch -f"
    f" --index-filter 'git rm -q --cached --ignore-unmatch {FILE}' >/dev/null 2>&1;"
    f" git update-ref -d refs/original/refs/heads/main; {FORGET}",
    "a stash and its return": f"echo >> {FILE}; git stash -q; git stash pop -q;"
    f"git checkout -q -- {FILE}",
    "a bisection": "git bisect start -q; git bisect bad; git bisect good HEAD~2",
    "the owner's rights changed": f"git update-ref HEAD HEAD~1; chmod 600 {FILE}",
}  # fmt: skip
"""Way → what a person or program does. The branch has `FIRST` and `SECOND`, which the file is."""

ENDS = {
    "HEAD set to a root that is none": "git symbolic-ref HEAD refs/heads/main",
    "HEAD set to a remote's branch": "git symbolic-ref HEAD refs/heads/main",
    "HEAD detached": "git checkout -q main",
    "HEAD on the workspace of another tool": "git symbolic-ref HEAD refs/heads/main",
    "an orphan branch": "git commit -q -m 'chore: fresh'",
    "an orphan branch without files": "git commit -q --allow-empty -m 'chore: fresh'",
    "a revert that is not committed": "git revert --abort",
    "a merge that is not committed": "git merge --abort",
    "a bisection": "git bisect reset",
}
"""Way → how the person ends it: nothing is committed before."""
UNDER_A_DAEMON = (
    "a push into the branch", "a mixed reset that is forgotten", "an orphan branch",
    "a squashed merge", "a backup of the file",
)  # fmt: skip
DAEMON_WAYS = tuple(WAYS) if os.environ.get("YOLO_MOVES") == "all" else UNDER_A_DAEMON


class Ground:
    """A work tree whose artifact was committed twice, a clone that has a third version, and a
    backup of the first.
    """

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        self.there = repo.root.parent / "there"
        self.backup = repo.root.parent / "backup"

    def prepare(self, commit: Callable[[Artifact], object]) -> None:
        self.repo.git("config", "receive.denyCurrentBranch", "ignore")
        self.repo.git("config", "receive.denyDeleteCurrent", "ignore")
        commit(FIRST)
        self.backup.mkdir()
        self.do("cp -pr .yolo-planning $BACKUP")
        commit(SECOND)
        self.do("git clone -q $HERE $THERE")
        (self.there / FILE).write_bytes(THEIRS.data)
        self.do(
            "cd $THERE; git checkout -q -b side; git commit -q --allow-empty -m 'chore: aside';"
            f"git checkout -q main; git commit -qm 'docs(02): theirs' -- {FILE}"
        )

    def do(self, command: str) -> None:
        places = {"HERE": self.repo.root, "THERE": self.there, "BACKUP": self.backup}
        more = {name: str(place) for name, place in places.items()}
        subprocess.run(
            ["sh", "-c", command], cwd=self.repo.root, env={**self.repo.env, **more},
            check=True, timeout=DEADLINE_S, capture_output=True,
        )  # fmt: skip

    def refs(self) -> str:
        """Return where HEAD and every ref of the user stand."""
        head = (self.repo.git_dir / "HEAD").read_text()
        return head + self.repo.look("for-each-ref", "refs/heads", "refs/remotes", "refs/jj")

    def versions(self) -> list[str]:
        """Return the commits of ours that changed the artifact, wherever they are."""
        ours = "--grep=^Yolo-Artifact: "
        return self.repo.look("log", "--all", "--format=%H", ours, "--", FILE).splitlines()

    def at_head(self) -> bytes:
        return self.repo.look("show", f"HEAD:{FILE}").encode()


def look(repo: Repo) -> None:
    """Look at everything once, as a daemon does that is started and ended, and commit it."""
    with Repository(str(repo.root)) as repository:
        settings = load(repository.root).without_patience
        coordinator = Coordinator(repository, settings, lambda *_: None)
        until = time.monotonic() + DEADLINE_S
        while _rests(coordinator, repository) and time.monotonic() < until:
            time.sleep(0.01)
        list(coordinator.scan())
        coordinator.close()


def _rests(coordinator: Coordinator, repository: Repository) -> bool:
    """Return whether the index was written a moment ago, so that nothing would be committed."""
    found = coordinator.obstacles.find(repository.head(), time.time_ns())
    return found is Reason.INDEX_LOCKED


@pytest.fixture
def ground(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Ground:
    for name in ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_NOSYSTEM"):
        monkeypatch.setenv(name, repo.env[name])
    return Ground(repo)


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_committed_that_nobody_has_written(ground: Ground, way: str) -> None:
    def commit(one: Artifact) -> None:
        ground.repo.write(one)
        look(ground.repo)
        assert ground.at_head() == one.data

    ground.prepare(commit)
    ground.do(WAYS[way])
    before = ground.refs()
    look(ground.repo)
    assert ground.refs() == before
    look(ground.repo)  # nor by the next one
    assert ground.refs() == before
    ground.do(ENDS.get(way, ":"))
    if way in ENDS:
        before = ground.refs()
        look(ground.repo)
        assert ground.refs() == before
    commit(NEXT)


@pytest.mark.parametrize("way", DAEMON_WAYS)
def test_nothing_is_committed_that_nobody_has_written_under_a_daemon(
    ground: Ground, start: Start, way: str
) -> None:
    daemon = start(ground.repo)

    def commit(one: Artifact) -> None:
        ground.repo.write(one)
        daemon.wait_committed([one])

    ground.prepare(commit)
    ground.do(WAYS[way])
    before = ground.versions()
    mark = artifact("decisions", 1)
    ground.repo.write(mark)
    daemon.mailbox.wait(lambda events: any(map(told_of(mark), events)))
    assert ground.versions() == before
    daemon.stop()
    daemon = start(ground.repo)
    assert ground.versions() == before
    ground.do(ENDS.get(way, ":"))
    commit(NEXT)
    assert ground.at_head() == NEXT.data


def told_of(one: Artifact) -> Callable[[Mapping[str, Any]], bool]:
    """Return what finds the event that an artifact was committed or held."""
    said = ("artifact.committed", "artifact.held")
    return lambda event: event["event"] in said and event.get("path") == one.path


def test_the_same_content_is_new_once_it_is_written_again(ground: Ground) -> None:
    for one in (FIRST, SECOND):
        ground.repo.write(one)
        look(ground.repo)
    ground.do("git reset -q HEAD~1")
    look(ground.repo)
    assert ground.repo.standing(FILE) == ("held", "undone_by_user")
    ground.do(f"touch {FILE}")
    look(ground.repo)
    assert ground.at_head() == SECOND.data


def test_what_is_held_stays_held_when_the_memory_is_lost_as_well(ground: Ground) -> None:
    ground.prepare(lambda one: (ground.repo.write(one), look(ground.repo)))
    time.sleep(1.1)  # a reflog counts in seconds: what is written in that of a move is new
    ground.do(WAYS["a push into the branch"])
    Path(ground.repo.git_dir / "yolo-fs/state.db").unlink()
    look(ground.repo)
    assert ground.at_head() == THEIRS.data
    assert ground.repo.standing(FILE) == ("held", "older_than_branch")


@pytest.mark.parametrize("is_forgotten", [False, True])
def test_what_was_committed_while_a_branch_was_made_is_committed_there_as_well(
    ground: Ground, is_forgotten: bool
) -> None:
    """`git switch -c` makes the branch first and moves HEAD then; we may commit in between."""
    ground.prepare(lambda one: (ground.repo.write(one), look(ground.repo)))
    ground.do("git branch next")
    ground.repo.write(NEXT)
    look(ground.repo)
    assert ground.at_head() == NEXT.data
    if is_forgotten:  # what we remember of the file
        (ground.repo.git_dir / "yolo-fs" / "state.db").unlink()
    moves = "git symbolic-ref -m 'checkout: moving from main to next' HEAD refs/heads/next"
    ground.do(moves)
    assert ground.at_head() == SECOND.data
    look(ground.repo)
    assert ground.at_head() == NEXT.data


def test_a_switch_that_happened_before_a_file_was_taken_from_the_other_branch_makes_it_no_newer(
    ground: Ground,
) -> None:
    ground.prepare(lambda one: (ground.repo.write(one), look(ground.repo)))
    ground.do("git branch next")
    ground.repo.write(NEXT)
    look(ground.repo)
    ground.do("GIT_COMMITTER_DATE='2020-01-01T00:00:00Z' git switch -q next")
    before = ground.refs()
    ground.do(f"git checkout -q main -- {FILE}")
    look(ground.repo)
    assert ground.refs() == before
