"""Tasks of Devs: their claims, and the commit of one task.

The commit has the task's files and nothing else, in the prescribed form, and there is one commit at
a time.

Claims are one value in `state.db`, which one process at a time changes, so that two Devs get one
order. A claim ends when a commit proves the task to be done, or when its Dev releases it. The
commit is the Dev's own: made by their git, with their hooks, identity and signing. git builds it in
an index of its own (`--only`), so that whatever else is staged stays staged and uncommitted.
"""

from __future__ import annotations

import os
import posixpath
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.core.ids import TaskRef
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Exit, Reason, YoloError, hint_for_unknown, safe
from yolo_fs.core.timestamps import iso
from yolo_fs.evidence.facts import PhaseFacts, paths_in, plans_of, texts, touches
from yolo_fs.evidence.plan_status import commit_of_task
from yolo_fs.git.as_user import run_as_user
from yolo_fs.git.failures import GitOutput
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, Dept
from yolo_fs.protocol.roster import department_said
from yolo_fs.protocol.workflow import SOURCE_FORMAT
from yolo_fs.system.lock import HeldLock, hold
from yolo_fs.system.store import Damaged
from yolo_fs.tasks.claims import Claim, ClaimStatus, claim_statuses
from yolo_fs.workspace.own_files import CLAIMS


class Claims:
    """The claims of one repository's tasks."""

    def __init__(self, repository: Repository, done: Collection[str] = ()):
        """`done`: the tasks that a commit names, as `FactsReader.tasks_done` has them."""
        repository.make_own_dir()
        self._repository = repository
        self._done = frozenset(done)

    def claim_statuses(self) -> tuple[ClaimStatus, ...]:
        """Return the state of each open claim, in the order in which they came.

        Raises:
            YoloError: the file cannot be read; that is not the same as no claims.
        """
        return claim_statuses(self._open(CLAIMS.read(self._repository)))

    def claim(self, agent: str, task: TaskRef, files: Iterable[str], now_s: float) -> ClaimStatus:
        """Claim a task, or ask again how an earlier claim of it stands.

        A task that is done cannot be claimed. `files`: relative to the repository.

        Raises:
            YoloError: STATE_CONFLICT, LOCK_TIMEOUT, PATH_ESCAPES, and whatever `claim_statuses`
                raises.
        """
        wish = Claim(agent, task, tuple(map(_inside, files)), iso(now_s))
        if self._is_done(wish):
            raise YoloError(Reason.STATE_CONFLICT, f"task {task} is done: a commit names it")
        self._change(
            lambda open_: open_ if any(_is_same(claim, wish) for claim in open_) else [*open_, wish]
        )
        return next(status for status in self.claim_statuses() if _is_same(status.claim, wish))

    def release(self, agent: str, task: TaskRef | None = None) -> tuple[ClaimStatus, ...]:
        """Release one task, or all of an agent that is gone; return the states of the other
        claims.

        Raises:
            YoloError: STATE_CONFLICT when somebody else has that task; and as `claim_statuses`.
        """
        if task:
            self._require_own(agent, task)
        self._change(
            lambda open_: [
                claim for claim in open_ if claim.agent != agent or task not in (None, claim.task)
            ]
        )
        return self.claim_statuses()

    def _require_own(self, agent: str, task: TaskRef) -> None:
        """Refuse what only another agent of the department has; what nobody has is released."""
        own = Claim(agent, task, (), "")
        alike = [status.claim for status in self.claim_statuses() if status.claim.task == task]
        others = [claim for claim in alike if claim.department is own.department]
        if others and agent not in [claim.agent for claim in others]:
            holder = others[0].agent
            hint = f"It is given back by 'yolo-fs task release {task} --as {safe(holder)}'."
            raise YoloError(Reason.STATE_CONFLICT, f"{safe(holder)} has {task}", hint=hint)

    def _change(self, change: Callable[[list[Claim]], list[Claim]]) -> None:
        def changed(before: dict[str, Any] | Damaged | None) -> dict[str, Any]:
            open_ = self._open(before)
            return {"claims": [to_json(claim) for claim in change(open_)]}

        CLAIMS.update(self._repository, changed)

    def _open(self, content: Mapping[str, Any] | Damaged | None) -> list[Claim]:
        if isinstance(content, Damaged):
            raise CLAIMS.refusal(self._repository, content)
        listed = content["claims"] if isinstance(content, Mapping) else ()
        claims = (_from_json(entry) for entry in listed)
        return [claim for claim in claims if claim and not self._is_done(claim)]

    def _is_done(self, claim: Claim) -> bool:
        return not self._done.isdisjoint((str(claim.task), f"{claim.department} {claim.task}"))


class PlannedTask(NamedTuple):
    """A task as a committed plan has it."""

    department: Dept
    files: tuple[str, ...]
    commit: str
    """What completed it; empty while there is none."""


def planned(facts: Iterable[PhaseFacts], task: TaskRef, agent: str = "") -> list[PlannedTask]:
    """Return a task as each plan of its number has it: that of the agent's department, if any;
    else of each department that has such a plan.

    Raises:
        YoloError: UNKNOWN_NAME when no committed plan has that task.
    """
    tasks = [
        PlannedTask(
            plan.department, paths_in(line.get("f")), commit_of_task(phase_facts, plan, line)
        )
        for phase_facts in facts
        for plan in plans_of(phase_facts)
        for line in plan.tasks
        if plan.id == task.plan and line.get("id") == f"T{task.number}"
    ]
    if not tasks:
        message = f"no committed plan has task {safe(str(task))}"
        plans = (plan for phase_facts in facts for plan in plans_of(phase_facts))
        known = (f"{plan.id}/{line.get('id')}" for plan in plans for line in plan.tasks)
        near = hint_for_unknown(str(task), map(safe, known))
        raise YoloError(Reason.UNKNOWN_NAME, message, hint=near)
    department = (department_said(agent) or DEFAULT_DEPARTMENT) if agent else None
    return [each for each in tasks if each.department is department] or tasks


def _inside(file: str) -> str:
    """Return a path in its canonical spelling, so that two claims of it match."""
    path = posixpath.normpath(file)
    if f"{path}/".startswith(("/", "../", "./", "~")):
        message = f"{safe(file)!r} is not a file of this repository"
        hint = "Name it relative to the root, such as src/auth.py."
        raise YoloError(Reason.PATH_ESCAPES, message, hint=hint, exit_code=Exit.USAGE)
    return path


def _is_same(claim: Claim, other: Claim) -> bool:
    return (claim.agent, claim.task) == (other.agent, other.task)


def _from_json(value: Any) -> Claim | None:
    if not isinstance(value, dict):
        return None
    task = TaskRef.parse(str(value.get("task")))
    return (
        Claim(
            str(value.get("agent")), task, texts(value.get("files")), str(value.get("claimed_at"))
        )
        if task
        else None
    )


LOCK = "yolo-commit.lock"
"""Below the common git directory, so that linked work trees share it."""
WAITS_S = tuple(0.2 * 2**try_ for try_ in range(5))
"""The reference's waits: after 6 s it gives up, of which it has slept the last 3."""
PATIENCE_S = (0.2,) * 150
"""Our own: several Devs at once, each with hooks that take seconds, come one after the other."""


def commit_lock(common_dir: str, waits_s: Sequence[float]) -> HeldLock:
    """Take the lock, with one more try after each wait.

    It is not passed to git: a hook that leaves a process behind would keep it for ever. Where
    flock(1) is absent, the reference's script makes a directory of this name and `.d` instead.

    Raises:
        YoloError: LOCK_TIMEOUT.
    """
    path = os.path.join(common_dir, LOCK)
    by_folder = f"{path}.d"
    for wait_s in (0.0, *waits_s):
        time.sleep(wait_s)
        if not os.path.lexists(by_folder) and (held := hold(path, common_dir)):
            if not os.path.lexists(by_folder):
                return held
            held.release()
    raise YoloError(
        Reason.LOCK_TIMEOUT,
        f"Could not acquire commit lock: {by_folder if os.path.lexists(by_folder) else path}",
        hint="another commit runs, or was stopped; never delete the lock file"
        f" (a folder {LOCK}.d is the reference's, which leaves it when it is killed)",
    )


_TRIES = 5
_BUSY = ("cannot lock ref", "index.lock")
"""Messages of git when another process was moving the branch, or held the index."""


class TaskCommit(NamedTuple):
    """Result of committing a task."""

    subject: str
    commit: str
    """Full commit id."""
    paths: tuple[str, ...]
    """What it changed; empty when an earlier commit of the task has it all."""


def commit_task(
    repository: Repository,
    facts_reader: FactsReader,
    task: TaskRef,
    type_: str,
    text: str,
    paths: Sequence[str] = (),
    agent: str = "",
) -> TaskCommit:
    """Commit what changed in a task's files; `paths`, relative to the repository, narrow them down.

    `agent`: who commits. Where two departments have a plan of the task's number, it is that of the
    agent's department, or else the one whose files changed.

    A commit of type `test` has the task's test files as well: those of the test plan, or, before
    there is one, any path that is no task's file. Its subject does not begin with the task, which
    is not done by it.

    Raises:
        YoloError: UNKNOWN_NAME, BAD_FORMAT, OUT_OF_LANE, STATE_CONFLICT, UNCHANGED, LOCK_TIMEOUT;
            GIT_FAILED in git's own words, such as those of the Dev's hooks.
    """
    subject = subject_of(task, type_, text)
    facts = facts_reader.facts(repository.head().tip)
    mine = _choose_plan(repository.root, planned(facts, task, agent), task, paths)
    own = mine.files
    tests = _tests_of(facts, task, mine.department, paths) if type_ == "test" else ()
    wanted = _choose_paths(task, own, tests, paths)
    with commit_lock(repository.common_dir, PATIENCE_S):
        changed = changed_files(repository.root, wanted)
        if changed:
            if type_ == "test" and not touches(set(own), set(changed)):
                subject = subject_of(task, type_, text, before_work=True)
            _commit(repository.root, subject, changed)
            return TaskCommit(subject, str(repository.head().tip), tuple(changed))
    if mine.commit:
        return TaskCommit(subject, mine.commit, ())
    message = f"nothing changed in {', '.join(map(safe, wanted))}"
    raise YoloError(
        Reason.UNCHANGED, message, hint="Is the work saved, and are these the task's files?"
    )


def subject_of(task: TaskRef, type_: str, text: str, *, before_work: bool = False) -> str:
    """Return the prescribed subject; the task's own id comes first in it, so that it is found
    again. `before_work`: it does nothing of the task, as tests that come before it.

    Raises:
        YoloError: BAD_FORMAT.
    """
    name = f"T{task.number}"
    words = text.strip().removeprefix(name).lstrip(" :")
    if not words or safe(words, len(words)) != words:
        message = f"{safe(text)!r} is not a text for a subject"
        hint = "Give one line, without control characters."
        raise YoloError(Reason.BAD_FORMAT, message, hint=hint)
    done = f"RED tests of {name}: {words}" if before_work else f"{name} {words}"
    return SOURCE_FORMAT.render(type=type_, plan=str(task.plan), task=done)


def _choose_plan(
    root: str, tasks: Sequence[PlannedTask], task: TaskRef, paths: Sequence[str]
) -> PlannedTask:
    """Return the task whose files are asked for, or else have changed; the first if none has.

    Raises:
        YoloError: STATE_CONFLICT where files of two departments have.
    """
    if len(tasks) == 1:
        return tasks[0]
    changed = set(map(posixpath.normpath, paths)) or {
        path for each in tasks if each.files for path in changed_files(root, each.files)
    }
    touched = [each for each in tasks if touches(frozenset(each.files), changed)]
    if len(touched) > 1:
        both = " and ".join(each.department for each in touched)
        message = f"{both} have a task {task} each, and files of both have changed"
        hint = "Name the agent: --as AGENT, such as fe-dev."
        raise YoloError(Reason.STATE_CONFLICT, message, hint=hint, exit_code=Exit.USAGE)
    return (touched or sorted(tasks, key=lambda each: bool(each.commit)))[0]


def _tests_of(
    facts: Iterable[PhaseFacts], task: TaskRef, department: Dept, paths: Sequence[str]
) -> tuple[str, ...]:
    """Return the test files of a task: of its test plan, and what is asked for and no task's."""
    phases = tuple(facts)
    lines = [line for phase in phases for line in phase.lines_of("test-plan", department)]
    planned = [
        file
        for line in lines
        if (line.get("plan"), line.get("id")) == (str(task.plan), f"T{task.number}")
        for file in paths_in(line.get("tf"))
    ]
    every = [line for phase in phases for plan in plans_of(phase) for line in plan.tasks]
    source = [file for line in every for file in paths_in(line.get("f"))]
    free = [posixpath.normpath(path) for path in paths]
    free = [path for path in free if not any(f"{path}/".startswith(f"{file}/") for file in source)]
    return (*planned, *free)


def _choose_paths(
    task: TaskRef, files: Sequence[str], tests: Sequence[str], paths: Sequence[str]
) -> tuple[str, ...]:
    """Return the paths to commit: all of the task's or the requested ones, none of another
    task's.
    """
    own = [*files, *tests]
    wanted = [posixpath.normpath(path) for path in paths] or own
    if not wanted:
        message = f"the plan names no files for {task}"
        raise YoloError(
            Reason.EMPTY_VALUE, message, hint="Name them: --paths FILE", exit_code=Exit.USAGE
        )
    for path in wanted:
        if f"{path}/".startswith((f"{PLANNING_ROOT}/", "../", "/", "./")):
            hint = "Name the task's source files. The daemon commits the planning tree."
            raise YoloError(
                Reason.OUT_OF_LANE, f"{safe(path)} is not a source file of a task", hint=hint
            )
        if own and not any(f"{path}/".startswith(f"{file}/") for file in own):
            hint = f"It has {', '.join(map(safe, own))}."
            raise YoloError(Reason.OUT_OF_LANE, f"{safe(path)} is not a file of {task}", hint=hint)
    return tuple(wanted)


def changed_files(root: str, wanted: Sequence[str]) -> list[str]:
    """Return what differs from HEAD among the wanted files: changed, new or gone.

    Raises:
        YoloError: GIT_FAILED.
    """
    specs = [f":(top,literal){path}" for path in wanted]
    listed = run_as_user(
        root,
        ["status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--", *specs],
    )
    _refuse_failure("status", listed)
    return [os.fsdecode(entry[3:]) for entry in listed.out.split(b"\0") if entry]


def _commit(root: str, subject: str, changed: Sequence[str]) -> None:
    specs = [f":(top,literal){path}" for path in changed]
    unknown = _unknown(root, specs)
    # git commits only paths that it knows. This makes them known, without staging their content.
    if unknown:
        _refuse_failure("add", run_as_user(root, ["add", "--intent-to-add", "--", *unknown]))
    made = False
    try:
        _refuse_failure(
            "commit",
            _run_git_patiently(root, ["commit", "--quiet", "--only", "-m", subject, "--", *specs]),
        )
        made = True
    finally:
        if unknown and not made:
            run_as_user(root, ["reset", "--quiet", "--", *unknown])


def _unknown(root: str, specs: Sequence[str]) -> list[str]:
    listed = run_as_user(root, ["ls-files", "--others", "--exclude-standard", "-z", "--", *specs])
    return [f":(top,literal){os.fsdecode(path)}" for path in listed.out.split(b"\0") if path]


def _run_git_patiently(root: str, arguments: Sequence[str]) -> GitOutput:
    """Run git, and retry while another process, such as the daemon, moves the branch."""
    answer = run_as_user(root, arguments)
    for try_ in range(1, _TRIES):
        if answer.code == 0 or not any(words in answer.err for words in _BUSY):
            break
        time.sleep(0.1 * try_)
        answer = run_as_user(root, arguments)
    return answer


def _refuse_failure(command: str, answer: GitOutput) -> None:
    if answer.code != 0:
        output = (answer.err or answer.out.decode("utf-8", "replace")).strip()
        lines = "\n".join(safe(line, 500) for line in output.splitlines())
        raise YoloError(Reason.GIT_FAILED, f"git {command}: {lines}")
