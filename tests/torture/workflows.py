"""Thirty ways in which people use git, each again and again beside writers, judged by git alone."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial

from tests.torture.surroundings import Ground
from tests.torture.users import User, surgery_in_one_repository

WRITE = "write src/file1.py"
TOPIC = (
    "switch -q -c {new}",
    "write topic/{turn}.py",
    "add topic",
    "commit -q -m '{text}' -- topic",
)
BASE = ("switch -q main", "write base/{turn}.py", "add base", "commit -q -m '{text}' -- base")
WORKFLOWS: dict[str, tuple[str, ...]] = {
    "commit a path": (WRITE, "commit -q -m '{text}' -- src/file1.py"),
    "commit what is staged": (WRITE, "add src/file1.py", "commit -q -m '{text}'"),
    "commit all that is tracked": (WRITE, "commit -q -a -m '{text}'"),
    "add everything outside the planning tree": (WRITE, "add -A -- . :!.yolo-planning", "commit -q -m '{text}'"),
    "commit with an editor": (WRITE, "add src/file1.py", "-c core.editor='echo \"{text}\" >' commit -q"),
    "commit by an alias": (WRITE, "-c alias.save='commit -q -m \"{text}\"' save -- src/file1.py"),
    "amend by a path": (WRITE, "commit -q -m '{text}' -- src/file1.py", "commit -q --amend --allow-empty -m '{text}' --only"),
    "fixup and autosquash": (
        WRITE, "commit -q -m '{text}' -- src/file1.py", WRITE, "commit -q --fixup 'HEAD^{{/{text}}}' -- src/file1.py",
        "-c sequence.editor=: rebase -q -i --autosquash 'HEAD^{{/{text}}}~1'",
    ),
    "revert": (WRITE, "commit -q -m '{text}' -- src/file1.py", "revert --no-edit 'HEAD^{{/{text}}}'"),
    "cherry-pick": (*TOPIC, "switch -q main", "cherry-pick {new}"),
    "merge without fast forward": (*TOPIC, *BASE, "merge -q --no-ff -m '{text}' {new}"),
    "merge by squash": (*TOPIC, *BASE, "merge -q --squash {new}", "commit -q -m '{text}'"),
    "abort a merge": (*TOPIC, *BASE, "merge -q --no-ff --no-commit {new}", "merge --abort"),
    "rebase": (*TOPIC, *BASE, "rebase -q main {new}", "switch -q main"),
    "rebase with autostash": (*TOPIC, *BASE, "switch -q {new}", WRITE, "rebase -q --autostash main", "checkout -q -- src/file1.py", "switch -q main"),
    "rebase --onto": (*TOPIC, *BASE, "rebase -q --onto main {new}~1 {new}", "switch -q main"),
    "stash paths": (WRITE, "stash push -q -- src/file1.py", "stash pop -q", "checkout -q -- src/file1.py"),
    "stash what is staged": (WRITE, "add src/file1.py", "stash push -q --staged", "stash drop -q"),
    "switch back and forth": ("switch -q side", "switch -q -"),
    "look at an old commit": ("checkout -q --detach HEAD~1", "checkout -q main"),
    "bisect": ("bisect start -q HEAD HEAD~3", "bisect good", "bisect reset"),
    "restore a file of old": ("restore --source HEAD~1 src/file1.py", "restore src/file1.py"),
    "rename a file": ("mv src/file2.py src/renamed.py", "commit -q -m '{text}' -- src", "mv src/renamed.py src/file2.py", "commit -q -m '{text}' -- src"),
    "stop tracking a file": ("write notes.txt", "add -f notes.txt", "commit -q -m '{text}' -- notes.txt", "rm -q --cached notes.txt", "commit -q -m '{text}'"),
    "unstage": (WRITE, "add src/file1.py", "reset -q -- src/file1.py", "checkout -q -- src/file1.py"),
    "rename a branch": ("branch {new}", "branch -m {new} {new}-b", "branch -q -D {new}-b"),
    "a work tree beside": ("worktree add -q -b {new} ../{new}", "-C ../{new} commit -q --allow-empty -m '{text}'", "worktree remove --force ../{new}"),
    "patches by mail": (*TOPIC, "format-patch -q -1 -o ../{new}.d {new}", "switch -q main", "am -q ../{new}.d/*"),
    "push and pull": ("push -q --force ../there.git main", "pull -q --no-edit --no-rebase ../there.git main"),
    "tags, notes and tidying": ("tag {new}", "notes append -m x {new}", "pack-refs --all", "gc -q --auto", "clean -q -f -d topic base"),
}  # fmt: skip
"""What somebody does → the commands of git, and files that are written."""


def workflows(ground: Ground, count: int) -> None:
    """Do the first ones once in one repository; or, where there is room, each as often in one of its own."""
    each = count // len(WORKFLOWS)
    if not each:
        names = iter(WORKFLOWS)
        _in_one_repository(ground, count, lambda user: do(next(names), user))
    for name in WORKFLOWS if each else ():
        _in_one_repository(ground, each, partial(do, name))


def _in_one_repository(ground: Ground, turns: int, act: Callable[[User], None]) -> None:
    """Let the user act without a look at the index, which never follows in the middle of a merge."""
    surgery_in_one_repository(ground, turns, act, looks_first=False)


def do(name: str, user: User) -> None:
    """Go once through a workflow; what git refuses for a moment is repeated, as anybody would."""
    if not user.turn:
        user.git("init", "-q", "--bare", "../there.git")
        for number in range(4):
            user.commits(f"before/{number}.py")
    user.turn += 1
    for number, command in enumerate(WORKFLOWS[name]):
        _run(user, name, number, command)
    if user.branch() != "main":
        user.ground.fault(f"{name}: ends on {user.branch()}")
    if new := user.repo.look("branch", "--list", f"new{user.turn}").strip():
        user.log.branch(new, user.since)
    user.ground.tally.count += 1


def _run(user: User, name: str, number: int, command: str) -> None:
    at = f"feat: {name}, turn {user.turn}"
    text = f"{at}.1" if "^{{/" in command else f"{at}.{number}"
    words = shlex.split(command.format(text=text, turn=user.turn, new=f"new{user.turn}"))
    if words[0] == "write":
        user.repo.file(words[1], f"{at}.{number}\n")
        return
    for subject in (text, f"fixup! {text}", f'Revert "{text}"'):
        user.log.subject(subject)
    paths = [*user.repo.root.glob(words[-1])] if "*" in words[-1] else words[-1:]
    user.git(*words[:-1], *map(str, paths))
