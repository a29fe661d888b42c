"""Diagnoses a repository and its daemon, and offers repairs, but only reversible ones.

See docs/dev/faults.md#f04, #f05, #f11, #f24 and #f46.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import partial
from glob import glob
from itertools import islice
from typing import NamedTuple

from yolo_fs import __version__
from yolo_fs.agents.alerts import left_claims
from yolo_fs.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.artifacts.misnamed import misnamed, nested
from yolo_fs.artifacts.uncommitted import lasting_findings
from yolo_fs.artifacts.verdicts import Held, Rejected
from yolo_fs.core.reasons import Finding, Level, Reason, YoloError, safe
from yolo_fs.daemon.health import health, late_s
from yolo_fs.escalation_service.command_hook import load_command
from yolo_fs.git.commit import CommitRequest, Committer
from yolo_fs.git.history import last_good_tip, refuse_torn
from yolo_fs.git.index import IndexSync
from yolo_fs.git.obstacles import Obstacles, PathRules
from yolo_fs.git.refs import REFTABLE_LOCK, RefUpdater
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.hooks.doctor import examine as examine_hooks
from yolo_fs.hooks.doctor import examine_hosts
from yolo_fs.hooks.githooks import were_installed
from yolo_fs.install.init import find_uncommitted, tree_of_another
from yolo_fs.kept.service import turn
from yolo_fs.protocol.hooks import HOST_BY_NAME
from yolo_fs.scanning.misplaced import EVERYWHERE, NUMBERED, find_misplaced, literally
from yolo_fs.scanning.scanner import Scanner, misnamed_in
from yolo_fs.system.store import reap_temporaries
from yolo_fs.system.system import NETWORK_FILESYSTEMS, filesystem_type
from yolo_fs.system.warm_path import find_write_fault
from yolo_fs.tasks.service import Claims
from yolo_fs.team.merge_driver import DRIVER
from yolo_fs.team.merge_driver import examine as examine_driver
from yolo_fs.team.overview import TeamObserver
from yolo_fs.workspace.own_files import INDEX, NOT_OF_THE_FILE, lock_path, own_files, refuse_unsafe
from yolo_fs.workspace.planning_tree import doubled_phases
from yolo_fs.workspace.settings import CONFIG, configured, load, not_initialised, user_config_path

_LEAST_BYTES = 1 << 20
_SKEW_S = 300.0
_PROBE = "refs/yolo-fs/probe"
_PROBE_FILE = CommitRequest("probe", b"probe\n", "chore: probe")
_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
"""So that each probe is the same object, however often it is made."""
_PATIENCE_S = 5.0
_MOST_NEAR = 1_000
"""Maximum number of files and folders near the root that every command looks at."""
_MOST_NAMES = 20
"""Maximum number of misnamed files that are named."""
OLD_LOCK_S = 300.0
"""Age from which a foreign lock is reported, seconds. See docs/dev/faults.md#f24."""


class Symptom(NamedTuple):
    """One fault that was found."""

    finding: Finding
    mend: Callable[[], object] | None = None
    """Repairs it; None when only a person can."""
    mending: str = ""
    """What `mend` would do."""


Look = Callable[[Repository], Iterable[Finding | Symptom]]


def examine_repository(
    repository: Repository, looks: Iterable[Look] | None = None
) -> Iterator[Symptom]:
    """Yield every symptom in the order of repair; a check that fails is a symptom, too.

    What several checks fail for is one symptom.
    """
    shown = set[Finding]()
    for look in LOOKS if looks is None else looks:
        for symptom in _tried(look, repository):
            if shown.isdisjoint({symptom.finding, replace(symptom.finding, path="")}):
                shown.add(symptom.finding)
                yield symptom


def _tried(look: Look, repository: Repository) -> Iterator[Symptom]:
    """Yield what a check finds; one that fails, as where it only refuses, is a symptom itself."""
    try:
        for found in look(repository):
            yield found if isinstance(found, Symptom) else Symptom(found)
    except YoloError as error:
        yield Symptom(error.as_finding())


def _check_git_version(repository: Repository) -> Iterable[Finding]:
    repository.git.refuse_old()
    return ()


def _check_safety(repository: Repository) -> Iterable[Finding]:
    refuse_unsafe(repository)
    return ()


def _check_file_system(repository: Repository) -> Iterator[Finding]:
    type_ = filesystem_type(repository.git_dir)
    if type_ in NETWORK_FILESYSTEMS:
        yield Finding(
            Reason.NETWORK_FILESYSTEM,
            message=f"the repository is on {type_}",
            expected="a local file system",
            hint="Keep one daemon only, on one machine; commits stay safe, locks may not.",
        )


def _check_planning_tree(repository: Repository) -> Iterator[Finding]:
    if not os.path.isdir(os.path.join(repository.root, PLANNING_ROOT)):
        yield not_initialised(repository.root).as_finding()
        return
    for path in _find_links(repository.root):
        yield Finding(
            Reason.NOT_REGULAR,
            path,
            message="it is a symbolic link, which is not followed: nothing below it is committed",
            expected="a real folder",
            hint="Replace it with a real folder.",
            command=f"ls -ld {shlex.quote(path)}",
        )
        if _SAMPLE.startswith(f"{path}/"):  # git answers nothing about what is beyond a link
            return
    if elsewhere := tree_of_another(repository):
        yield elsewhere
        return
    policy = load(repository.root).policy
    with closing(PathRules(repository, commit_ignored=policy.commit_ignored)) as rules:
        reason = rules.reason_to_hold(_SAMPLE, in_head=False)
    if reason:
        expected, hint, look = _RULES_THAT_HOLD[reason]
        yield Finding(
            reason,
            PLANNING_ROOT,
            message="artifacts will be held",
            expected=expected,
            hint=hint,
            command=look,
        )


def _check_beginning(repository: Repository) -> Iterator[Finding]:
    """Yield the files of `init` that nobody commits but the user, once."""
    if left := find_uncommitted(repository):
        yield left


def _check_nested_trees(repository: Repository) -> Iterable[Finding]:
    """Return a warning of each planning tree below the root: an agent that stood there made it."""
    return _find_nested_trees(repository, "-zco")


def _check_misplaced(repository: Repository) -> Iterable[Finding]:
    """Return a warning of each artifact of a plan outside the planning tree."""
    return find_misplaced(repository, EVERYWHERE)


def _check_phase_numbers(repository: Repository) -> Iterator[Finding]:
    """Yield the phases that share a number, which nobody can sign off."""
    for finding in doubled_phases(repository.root):
        yield replace(finding, level=Level.WARNING)


def _check_near_root(repository: Repository) -> Iterator[Finding]:
    """Yield the same near the root, of what nobody has committed; `doctor` looks everywhere."""
    near = list(islice(_near_entries(repository.root), _MOST_NEAR))
    folders = (entry.path for entry in near if entry.is_dir(follow_symlinks=False))
    if any(os.path.lexists(f"{folder}/{PLANNING_ROOT}") for folder in folders):
        yield from _find_nested_trees(repository, "-zo")
    named = [entry.path for entry in near if fnmatchcase(entry.name, NUMBERED)]
    if named:
        paths = (os.path.relpath(path, repository.root) for path in named)
        yield from find_misplaced(repository, *map(literally, paths))


def _near_entries(root: str) -> Iterator[os.DirEntry[str]]:
    """Yield what lies in the root, then what lies in its folders, without hidden names."""
    top = list(islice(_entries_of(root), _MOST_NEAR))
    yield from top
    for entry in top:
        if entry.is_dir(follow_symlinks=False):
            yield from _entries_of(entry.path)


def _entries_of(folder: str) -> Iterator[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as entries:
        yield from (entry for entry in entries if not entry.name.startswith("."))


def _find_nested_trees(repository: Repository, which: str) -> Iterable[Finding]:
    how = (which, "--exclude-standard", "--", _NESTED)
    listed = repository.git.run("ls-files", *how, more={"GIT_LITERAL_PATHSPECS": "0"})
    folders: dict[str, Finding] = {}
    for path in listed.out.decode("utf-8", "surrogateescape").split("\0"):
        wrong = nested(path)
        if wrong and classify(wrong.expected):
            folders.setdefault(wrong.message, replace(wrong, level=Level.WARNING))
    return folders.values()


_NESTED = f":(glob)**/?*/{PLANNING_ROOT}/**"


def _find_links(root: str) -> Iterator[str]:
    """Yield the links in the place of the planning tree, of its phases and of its milestones."""
    for depth in ("", "phases", "phases/*", "milestones", "milestones/*", "milestones/*/phases/*"):
        pattern = f"{PLANNING_ROOT}/{depth}".rstrip("/")
        paths = glob(pattern, root_dir=root)
        yield from (path for path in sorted(paths) if os.path.islink(os.path.join(root, path)))


_SAMPLE = f"{PLANNING_ROOT}/phases/01-sample/critique.jsonl"
_RULES_THAT_HOLD = {
    Reason.GITIGNORED: (
        "a planning tree that git does not ignore",
        "Remove the line that ignores it, or set commit_ignored in your own configuration.",
        f"git check-ignore -v {_SAMPLE}",
    ),
    Reason.ATTR_FILTER: (
        "no filter on the planning tree",
        f"Keep {PLANNING_ROOT} out of that attribute.",
        f"git check-attr -a {_SAMPLE}",
    ),
    Reason.NOT_REGULAR: (
        "rules of git that are files",
        "Put a file in the place of the pipe or device.",
        f"ls -l {PLANNING_ROOT}/.gitignore {PLANNING_ROOT}/.gitattributes .gitignore "
        ".gitattributes",
    ),
}
"""Reason to hold every artifact → what is expected, what to do, and what shows the cause."""


def _configuration(repository: Repository) -> Iterable[Finding]:
    load(repository.root)  # its message names the file
    return ()


def _check_command_settings(_repository: Repository) -> Iterable[Finding]:
    return load_command().findings


def _check_ignored_settings(repository: Repository) -> Iterator[Finding]:
    for each in configured(repository.root):
        if each.refused is not None:
            name = each.key.removeprefix("yolo_fs.")
            own = {"policy": {name: each.refused}}
            yield Finding(
                Reason.BAD_CONFIG,
                CONFIG,
                message=f"{each.key} has no effect here: only the user may set it",
                hint=f"You can set it in {user_config_path()}: {safe(json.dumps(own), 200)}.",
                command="yolo-fs config show --changed",
            )


def _branch(repository: Repository) -> Iterator[Finding]:
    head = repository.head()
    obstacle = Obstacles(repository, committer_lock=lock_path(repository)).find(head)
    if obstacle is Reason.BRANCH_BROKEN:
        good = last_good_tip(repository, head.ref or "HEAD")
        known = (
            f"The reflog's last commit that can be read is {good}."
            if good
            else "The reflog names no readable commit."
        )
        expected = "a branch that names a commit"
        yield Finding(obstacle, message=head.branch, expected=expected, hint=known)
    elif obstacle and obstacle is not Reason.INDEX_LOCKED:
        message = "artifacts are held until it is over"
        yield Finding(obstacle, message=message, level=Level.WARNING)


def _check_history(repository: Repository) -> Iterator[Finding]:
    """Yield what keeps the history from being read; new commits may need nothing of it."""
    for folder in repository.lost_object_folders():
        file = f"{repository.common_dir}/objects/info/alternates"
        message = f"it borrows objects from {safe(folder)}, which does not exist"
        hint = "Restore that folder, or correct its path in the file."
        look = f"cat {shlex.quote(file)}"
        yield Finding(Reason.OBJECT_MISSING, file, message=message, hint=hint, command=look)
    if (tip := repository.head().tip) and repository.objects.read(tip):
        refuse_torn(repository, tip)


def _check_locks(repository: Repository) -> Iterator[Finding | Symptom]:
    branches = RefUpdater(repository)
    for path in branches.own_stale_locks():
        yield Symptom(
            Finding(Reason.REF_LOCKED, path, message="left by a dead helper of ours"),
            branches.clear_own_stale_locks,
            "remove the lock, which is provably ours",
        )
    for path, reason in _find_foreign_locks(repository):
        age_s = time.time() - os.lstat(path).st_mtime
        if age_s > OLD_LOCK_S:
            hint = "If no git command runs here any more, remove that file by hand."
            message, look = f"held for {age_s:.0f} s by somebody else", f"ls -l {shlex.quote(path)}"
            yield Finding(reason, path, message=message, hint=hint, command=look)


def _find_foreign_locks(repository: Repository) -> Iterator[tuple[str, Reason]]:
    head = repository.head()
    places = [
        (f"{repository.git_dir}/index.lock", Reason.INDEX_LOCKED),
        (f"{repository.git_dir}/HEAD.lock", Reason.REF_LOCKED),
        (f"{repository.common_dir}/packed-refs.lock", Reason.REF_LOCKED),
        (f"{repository.common_dir}/{REFTABLE_LOCK}", Reason.REF_LOCKED),
    ]
    if head.ref:
        places.append((f"{repository.common_dir}/{head.ref}.lock", Reason.REF_LOCKED))
    ours = RefUpdater(repository).own_stale_locks()
    yield from (
        (path, reason) for path, reason in places if os.path.lexists(path) and path not in ours
    )


def _index(repository: Repository) -> Iterator[Symptom]:
    follower = IndexSync(repository)
    if follower.pending and health(repository).pid is None:
        message = f"{len(follower.pending)} committed artifacts are not in the index yet"
        yield Symptom(
            Finding(Reason.INDEX_DIVERGED, message=message),
            follower.follow,
            "let the index follow our commits",
        )


def _check_leftovers(repository: Repository) -> Iterator[Symptom]:
    if os.path.isdir(repository.own_dir) and any(
        ".yolo-tmp." in name for name in os.listdir(repository.own_dir)
    ):
        yield Symptom(
            Finding(
                Reason.STORAGE_FAILED,
                message="temporary files of a killed writer",
                level=Level.WARNING,
            ),
            lambda: reap_temporaries(repository.own_dir),
            "remove temporary files of our dead processes",
        )


def _check_own_files(repository: Repository) -> Iterator[Finding | Symptom]:
    return _damaged(repository, lambda _name: True)


def _check_durable_files(repository: Repository) -> Iterator[Finding | Symptom]:
    """Yield damaged files of ours, except the index: it is rebuilt from git and blocks nothing."""
    return _damaged(repository, lambda name: not name.startswith(INDEX))


def _damaged(
    repository: Repository, is_wanted: Callable[[str], bool]
) -> Iterator[Finding | Symptom]:
    for file in own_files(repository, tuple(HOST_BY_NAME)):
        if is_wanted(file.name) and (finding := file.damage(repository)):
            if finding.reason in NOT_OF_THE_FILE:  # to put it aside would lose what it holds
                yield finding
                continue
            yield Symptom(
                finding,
                partial(file.put_aside, repository),
                f"put {file.name} aside, into .git/yolo-fs/quarantine",
            )


def _team(repository: Repository) -> Iterator[Finding]:
    seen = TeamObserver(repository, load(repository.root)).look()
    if seen is None:
        return
    named = repository.git.run("remote", ok=(0, 1)).out.decode("utf-8", "replace").split("\n")
    if seen.lane and seen.lane.remote not in named and not re.search(r"[/:]", seen.lane.remote):
        hint = "'yolo-fs team join REMOTE' names another one, 'yolo-fs team leave' ends it."
        message = f"no remote is called {safe(seen.lane.remote)}"
        yield Finding(Reason.REMOTE_AWAY, message=message, hint=hint)
    elif seen.lane and seen.lane.reason:
        hint = "Work here continues; 'yolo-fs team status' shows what waits to be published."
        yield Finding(seen.lane.reason, message=seen.lane.what, hint=hint, level=Level.WARNING)
    for each in seen.waiting:
        if each.reason and each.reason not in (Reason.NOT_RUNNING, Reason.REMOTE_AWAY):
            yield Finding(
                each.reason,
                each.path,
                message=f"it waits for the team: {each.waits_for}",
                expected=each.what,
                hint="'yolo-fs team status' shows more.",
                level=Level.WARNING,
            )


def _claims(repository: Repository) -> Iterable[Finding]:
    if not Claims(repository).claim_statuses():
        return ()
    settings = load(repository.root)
    facts_reader = FactsReader(repository, settings)
    claims = Claims(repository, facts_reader.tasks_done(repository.head().tip)).claim_statuses()
    return left_claims(repository, settings, [standing.claim for standing in claims])


def _merge_driver(repository: Repository) -> Iterable[Finding]:
    return examine_driver(repository) if repository.config(f"merge.{DRIVER}.driver") else ()


def _daemon(repository: Repository) -> Iterator[Finding]:
    if health(repository).pid is None:
        hint = "Start it with 'yolo-fs start'."
        yield Finding(Reason.NOT_RUNNING, hint=hint, level=Level.WARNING)
    yield from _check_running_daemon(repository)


def _check_standstill(repository: Repository) -> Iterator[Finding]:
    daemon_health = health(repository)
    limit_s = late_s(load(repository.root).policy)
    if daemon_health.scanned_s_ago is not None and daemon_health.scanned_s_ago > limit_s:
        if find_write_fault(repository.own_dir):  # it has nowhere to say that it has looked
            return
        message = (
            f"the daemon, process {daemon_health.pid}, has not scanned for over {limit_s:.0f} s"
        )
        hint = "If nobody stopped it on purpose, run 'yolo-fs restart'."
        yield Finding(Reason.DEADLINE_PASSED, message=message, hint=hint)


def _check_running_daemon(repository: Repository) -> Iterator[Finding]:
    daemon_health = health(repository)
    yield from _check_standstill(repository)
    degraded = daemon_health.degraded
    if degraded and degraded.reason is not Reason.NOT_INITIALISED:  # told of the planning tree
        yield Finding(
            degraded.reason,
            message=degraded.detail,
            hint=degraded.hint,
            level=Level.WARNING,
            command="sysctl fs.inotify" if degraded.reason is Reason.WATCH_LIMIT else "",
        )
    if daemon_health.is_outdated:
        message = f"another version of yolo_fs started the daemon, process {daemon_health.pid}"
        expected, hint = f"version {__version__}", "Run 'yolo-fs restart'."
        yield Finding(
            Reason.OTHER_VERSION,
            message=message,
            expected=expected,
            hint=hint,
            level=Level.WARNING,
        )
    for trouble in daemon_health.troubles:
        hint = f"It is retried automatically; 'yolo-fs events --type {trouble.event}' shows more."
        message = f"the daemon's duty {trouble.duty!r} fails: {trouble.what}"
        yield Finding(trouble.reason, message=message, hint=hint)


def _check_stuck_files(repository: Repository) -> Iterable[Finding]:
    return health(repository).stuck


def _check_artifacts(repository: Repository) -> Iterator[Finding]:
    """Yield why artifacts are not committed, and the misnamed files, each with its right name.

    Without a daemon nobody knows since when a file is refused or held: each that is so now counts.
    """
    settings, daemon_health = load(repository.root).without_patience, health(repository)
    with Scanner(repository, settings) as scanner:
        scan = scanner.scan_all(misnamed)
    verdicts = {path: look.seen.verdict for path, look in scan.seen.items()}
    left = {path: each for path, each in verdicts.items() if isinstance(each, Rejected | Held)}
    findings = daemon_health.stuck if daemon_health.is_running else lasting_findings(left)
    yield from (finding for finding in findings if finding.reason is not Reason.UNKNOWN_NAME)
    names = misnamed_in(repository.root, settings, scan)
    for finding in names[:_MOST_NAMES]:
        yield replace(finding, level=Level.WARNING)
    if others := len(names) - len(names[:_MOST_NAMES]):
        message, hint = f"and {others} more", "'yolo-fs validate' names each."
        yield Finding(Reason.UNKNOWN_NAME, message=message, hint=hint, level=Level.WARNING)


def _hooks(repository: Repository) -> Iterable[Finding]:
    """Return the visible faults that keep our git hooks from running, where they were installed."""
    return examine_hooks(repository, asks=False) if were_installed(repository) else ()


def _check_hooks_fully(repository: Repository) -> Iterable[Finding]:
    return examine_hooks(repository) if were_installed(repository) else ()


def _hosts(repository: Repository) -> Iterable[Finding]:
    return examine_hosts(repository, repository.root)


def _check_storage(repository: Repository) -> Iterator[Finding]:
    for folder in (repository.own_dir, f"{repository.common_dir}/objects", repository.git_dir):
        if os.path.isdir(folder) and not os.access(folder, os.W_OK | os.X_OK):
            message, hint = "it cannot be written to", "Give its owner the right to write there."
            look = f"ls -ld {shlex.quote(folder)}"
            yield Finding(Reason.STORAGE_FAILED, folder, message=message, hint=hint, command=look)
    free = os.statvfs(repository.common_dir)
    if free.f_bavail * free.f_frsize < _LEAST_BYTES:
        message, hint = "the disk of the repository is full", "Make room on that disk."
        look = f"df -h {shlex.quote(repository.common_dir)}"
        yield Finding(Reason.NO_SPACE, message=message, hint=hint, command=look)


def _clock(repository: Repository) -> Iterator[Finding]:
    """Yield a newest commit that is from the future.

    What is newer than a verdict, and what has waited too long, is decided by times.
    """
    tip = repository.head().tip
    if tip is None:
        return
    timestamp = repository.git.run("log", "-1", "--format=%ct", tip).out.strip()
    ahead_s = int(timestamp) - time.time() if timestamp.isdigit() else 0.0
    if ahead_s > _SKEW_S:
        message = f"the newest commit is {ahead_s:.0f} s ahead of this machine's clock"
        hint = "Correct the clock that is wrong; nothing waits for it."
        yield Finding(Reason.STATE_CONFLICT, message=message, hint=hint, level=Level.WARNING)


def _commit(repository: Repository) -> Iterable[Finding]:
    """Prove that a commit can be made: one of ours, on a private ref that is taken away again."""
    with closing(RefUpdater(repository, is_private=True)) as refs, turn(repository, _PATIENCE_S):
        if left := repository.tip(_PROBE):
            refs.delete(_PROBE, left)
        committer = Committer(repository, refs, IndexSync(repository), lambda: _BEGINNING)
        made = committer.extend([_PROBE_FILE], _PROBE, None)
        refs.delete(_PROBE, str(made[-1].commit))
    return ()


LOOKS: tuple[Look, ...] = (
    _check_git_version, _check_safety, _check_file_system, _check_planning_tree, _check_beginning,
    _check_nested_trees, _check_phase_numbers, _check_misplaced, _configuration,
    _check_command_settings, _check_ignored_settings, _branch, _check_history, _check_locks,
    _index, _check_leftovers, _check_own_files, _check_artifacts, _team, _merge_driver, _claims,
    _check_storage, _clock, _check_hooks_fully, _commit, _daemon,
)  # fmt: skip
HEALTH: tuple[Look, ...] = (
    _check_safety, _check_planning_tree, _check_phase_numbers, _check_near_root, _check_storage,
    _check_command_settings, _check_ignored_settings, _check_locks, _check_durable_files, _hooks,
    _hosts, _merge_driver, _claims, _check_stuck_files, _check_running_daemon,
)  # fmt: skip
"""Checks for what blocks a commit, a hook or a notification until it is repaired.
An obstacle such as a merge, and what the team waits for, are shown by each surface itself.
"""
OF_A_PERSON: tuple[Look, ...] = (*HEALTH, _check_beginning)
"""The same, and what blocks nothing but is left to a person: agents are not told of it."""


def standing_troubles(repository: Repository, looks: Iterable[Look] = HEALTH) -> Iterator[Finding]:
    """Yield doctor's findings that block something until they are repaired, as warnings."""
    for symptom in examine_repository(repository, looks):
        yield replace(symptom.finding, level=Level.WARNING)
