"""The settings in force, where our files lie and what they must look like, and phase folders.

The repository's configuration may tighten settings, and the user's may also loosen them. Our files
lie in `.git/yolo-fs/` of each work tree, never in the work tree itself.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from types import UnionType
from typing import Any, NamedTuple, TypeAlias

from yolo_fs.artifacts.classify import PLANNING_ROOT, milestone_named
from yolo_fs.artifacts.handoff_names import HANDOFF_FOLDER
from yolo_fs.core.foreign_json import parse
from yolo_fs.core.ids import PHASE_DIRECTORY, PhaseId, TaskRef, twice_numbered
from yolo_fs.core.json_form import to_json
from yolo_fs.core.reasons import Exit, Finding, Reason, YoloError, hint_for_unknown, safe
from yolo_fs.git.repository import Repository
from yolo_fs.git.runner import discover
from yolo_fs.schemas.config import Config, Policy, values_of
from yolo_fs.schemas.layout import Strictness
from yolo_fs.system.database import (
    ENDINGS,
    SEAL,
    Database,
    DatabaseError,
    open_disposable,
    open_durable,
    storing,
)
from yolo_fs.system.files import Content, Stamp, names_in, read, stamp_at
from yolo_fs.system.readers import read_object
from yolo_fs.system.store import (
    Damaged,
    RefusedError,
    code_stamp,
    is_odd,
    move,
    open_regular,
    private_directory,
    read_json,
    unless_damaged,
)
from yolo_fs.system.store import output_place as place_of_output
from yolo_fs.system.text_checks import Limits
from yolo_fs.system.warm_path import own_folder, user_folder

ACTIVE = f"{PLANNING_ROOT}/ACTIVE"
"""Holds the slug of the team's current milestone, where there are milestones."""

RUNNING = f"{PLANNING_ROOT}/.execution-state.json"
"""Mirrors the execution state of the running phase, where it exists (docs/dev/sources.md#c12)."""

LINES = "refs/yolo-fs/lines/"
"""Prefix of the branches of the team's other clones, with the commits that their summaries name."""
BESIDE = "refs/yolo-fs/beside/"
"""The same for the work trees of this repository that are in a team."""


def lock_path(repository: Repository) -> str:
    """Return the path of the lock that allows one daemon per work tree."""
    return lock_in(repository.own_dir)


def company_lock_path(repository: Repository) -> str:
    """Return the path of the lock that allows one runner of agents per work tree."""
    return os.path.join(repository.own_dir, "company.lock")


def lock_in(own_dir: str) -> str:
    """Return the lock of the work tree that keeps our files in this folder."""
    return os.path.join(own_dir, "daemon.lock")


def log_path(repository: Repository) -> str:
    """Return the log file of a daemon in the background."""
    return os.path.join(repository.own_dir, "daemon.log")


def notice_path(repository: Repository) -> str:
    """Return the file in which the daemon publishes which gates are open."""
    return os.path.join(repository.own_dir, "gates.json")


def states_lock(repository: Repository) -> str:
    """Return the path of the lock for bringing state files and the branch into agreement."""
    return os.path.join(repository.own_dir, "states.turn")


def output_place(typed: str, start: str, ending: str = "") -> tuple[str, str]:
    """Return (folder, path) of an output file that a person named, as `store.output_place` does.

    `ending`: required ending of such files inside a work tree.

    Raises:
        YoloError: PATH_ESCAPES; BAD_NAME for a file in the work tree that ends otherwise, which
            might be an artifact, a setting or code.
    """
    try:
        root = discover(start).root
    except YoloError:
        root = None
    top, path = place_of_output(typed, start, root)
    if top == root and not path.endswith(ending):
        message = f"{safe(typed, 300)}: expected a name that ends in {ending}"
        hint = "Give another name, or a place outside of the repository."
        raise YoloError(Reason.BAD_NAME, message, hint=hint)
    return top, path


def planning_home(root: str) -> str:
    """Return the folder of the phases in force, relative to the repository.

    It is the planning tree, or the milestone that its file `ACTIVE` names. A milestone that does
    not exist falls back to the tree.
    """
    active = read(root, ACTIVE, 4096)
    named = milestone_named(active.data) if isinstance(active, Content) else ""
    return named if named and os.path.isdir(os.path.join(root, named)) else PLANNING_ROOT


def phases_in(root: str) -> list[PhaseId]:
    """Return the phases of the planning tree, in order."""
    names = names_in(os.path.join(root, PLANNING_ROOT, "phases"))
    return sorted(phase for name in names if (phase := PhaseId.parse(name)))


def doubled_phases(root: str) -> Iterator[Finding]:
    """Yield a finding for each phase that repeats the number of an earlier one."""
    for number, (first, *others) in twice_numbered(phases_in(root)).items():
        for phase in others:
            path = f"{PLANNING_ROOT}/phases/{phase}"
            yield Finding(
                Reason.DUPLICATE_ID,
                path,
                message=f"{first} has number {number} as well: a commit that names a plan or a "
                "task of it counts where it changes that plan's files, and a sign-off for neither",
                expected="a number that no other phase has",
                hint=f"Give it another: git mv {path} {PLANNING_ROOT}/phases/NN-{phase.slug}, "
                "then the new number in its plans and their names.",
            )


def phase_folder(root: str, phase: PhaseId) -> str:
    """Return the directory of a phase."""
    return f"{root}/{PLANNING_ROOT}/phases/{phase}"


def folders_written_to(root: str) -> list[str]:
    """Return the folders of the work tree that state files are written in."""
    phases = (phase_folder(root, phase) for phase in phases_in(root))
    return [os.path.join(root, PLANNING_ROOT), *phases]


def own_phase_folder(root: str, phase: PhaseId) -> str:
    """Return the directory of a phase that is to be written to.

    Raises:
        YoloError: NOT_REGULAR, when only a link leads to it: what is written there would lie
            elsewhere.
            See docs/dev/faults.md#f50 and #f51.
    """
    folder = phase_folder(root, phase)
    if os.path.realpath(folder) != os.path.join(
        os.path.realpath(root), PLANNING_ROOT, "phases", str(phase)
    ):
        message = f"{safe(os.path.relpath(folder, root))}: a link stands on the way to it"
        raise YoloError(Reason.NOT_REGULAR, message, hint="Put a real folder there.")
    return folder


def find_phase(root: str, spelled: str) -> PhaseId:
    """Return the phase that a number (`1`, `01`), a slug or a directory name spells.

    Raises:
        YoloError: BAD_NAME, UNKNOWN_NAME when there is no such phase, DUPLICATE_ID for a number
            or a slug that two phases have.
    """
    folder = os.path.join(root, PLANNING_ROOT, "phases")
    present = [name for name in names_in(folder) if PHASE_DIRECTORY.fullmatch(name)]
    wanted = spelled.zfill(2) if spelled.isdecimal() else spelled
    if not wanted.replace("-", "").isalnum():
        raise YoloError(Reason.BAD_NAME, f"{safe(spelled)!r} is not a phase")
    phases = [phase for phase in map(PhaseId.parse, present) if phase]
    matches = [phase for phase in phases if wanted in (phase.number, str(phase))]
    matches = matches or [phase for phase in phases if wanted == phase.slug]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise YoloError(
            Reason.DUPLICATE_ID,
            f"{' and '.join(map(str, matches))} are both called {wanted}",
            hint="Name the directory; 'yolo-fs validate' says how one of them gets another number.",
            exit_code=Exit.USAGE,
        )
    hint = hint_for_unknown(spelled, present)
    raise YoloError(Reason.UNKNOWN_NAME, f"no phase {safe(spelled)!r}", hint=hint)


INDEX = "index.db"
"""Name of the database below `.git/yolo-fs` for what can be rebuilt from git and files."""

STATE = "state.db"
"""Name of the database below `.git/yolo-fs` for our own data that exists nowhere else."""

STATE_LAYOUT = "create table notes(name text primary key, value text)"

INDEX_LAYOUT = """
create table meta(key text primary key, value text);
create table commits(row integer primary key, oid text unique, at_s int, height int, position int,
    ours int, warnings int, subject blob, changes blob);
create index commits_by_position on commits(position, height);
create index commits_of_ours on commits(height, at_s) where ours;
create index commits_with_warnings on commits(warnings) where warnings > 0;
create table paths(id integer primary key, path blob unique, count int);
create table changes(path int, height int, at_s int, row int,
    primary key(path, height, at_s, row)) without rowid;
create table named(kind text, key text, words blob, height int, at_s int, row int,
    primary key(kind, key, words, height, at_s, row)) without rowid;
create table artifacts(path blob primary key, basis text, valid int, lines text);
create table checked(name text primary key, basis text, told text);
"""
"""Commits; the planning paths that they change, and what their subjects name; what artifacts say;
cached results of checks, with what they are based on."""


def open_index(repository: Repository) -> Database | None:
    """Return the index of a work tree; None where its file cannot be used now."""
    with suppress(YoloError):
        repository.make_own_dir()
        return open_disposable(os.path.join(repository.own_dir, INDEX), INDEX_LAYOUT)
    return None


_NOTE_BYTES = 8 * 1024 * 1024
"""Maximum size of one value in `state.db`."""

Shape: TypeAlias = type | UnionType | list[Any] | dict[str, Any] | Callable[[Any], bool]
"""A type, `[shape of each]`, `{key: shape}` (further keys are allowed), or a test."""

FURTHEST_S = 6e10
"""Largest plausible distance between the machine's boot and the start of a turn, in seconds."""


NOT_OF_THE_FILE = frozenset((Reason.LOCK_TIMEOUT, Reason.NO_SPACE, Reason.STORAGE_FAILED))
"""Why a file cannot be read although it is not damaged: of the place or the moment."""


class OwnFile(NamedTuple):
    """One file of ours."""

    name: str
    shape: Shape | None = None
    """Of its JSON; None when it holds something else."""
    loss: str = "nothing: it is recreated"
    """What is lost without it."""

    def path(self, repository: Repository) -> str:
        """Return where it lies; what hooks share between work trees: in the common directory."""
        shared = self.name == HOOKS.name
        folder = os.path.join(repository.common_dir, "yolo-fs") if shared else repository.own_dir
        return os.path.join(folder, self.name)

    def read(self, repository: Repository) -> dict[str, Any] | Damaged | None:
        """Return its JSON, None when it is absent, `Damaged` when it is not what we wrote."""
        return self.checked(read_json(self.path(repository)))

    def checked(self, content: dict[str, Any] | Damaged | None) -> dict[str, Any] | Damaged | None:
        """Return the content that `read_json` found, or `Damaged` when its shape is not ours."""
        if isinstance(content, dict) and self.shape is not None and not fits(content, self.shape):
            return Damaged(Reason.WRONG_TYPE, "it has another shape than what yolo-fs writes")
        return content

    def damage(self, repository: Repository) -> Finding | None:
        """Return what is wrong with it, or None."""
        if self.name == STATE:
            content: dict[str, Any] | Damaged | None = _find_state_damage(repository)
        else:
            content = (
                self.read(repository) if self.shape else self._find_odd_kind(self.path(repository))
            )
        return self.finding(repository, content) if isinstance(content, Damaged) else None

    def _find_odd_kind(self, path: str) -> Damaged | None:
        if not self.name.startswith((INDEX, STATE)):
            return _find_odd_kind(path)
        if self.name.endswith("-journal") and os.path.lexists(path):
            return Damaged(Reason.NOT_REGULAR, "a journal of SQLite, which yolo-fs never leaves")
        # Opening and closing it would release the locks that this process has on it.
        return Damaged(Reason.NOT_REGULAR, Reason.NOT_REGULAR.sentence) if is_odd(path) else None

    def finding(self, repository: Repository, damaged: Damaged) -> Finding:
        """Return the finding about its damage."""
        hint = f"'yolo-fs doctor --fix' puts it aside; what is lost is {self.loss}."
        if damaged.reason in NOT_OF_THE_FILE:
            hint = "Nothing is lost: make room, or end what has it open or forbids to write there."
        path = self.path(repository)
        return Finding(damaged.reason, path, message=damaged.detail, hint=hint)

    def refusal(self, repository: Repository, damaged: Damaged) -> YoloError:
        """Return the error of a command that needs its content."""
        finding = self.finding(repository, damaged)
        message = f"{safe(finding.path)}: {finding.message}"
        return YoloError(finding.reason, message, hint=finding.hint, exit_code=Exit.NOT_HERE)

    def put_aside(self, repository: Repository) -> None:
        """Move it out of the way, where a person may still look at it."""
        repository.make_own_dir()
        folder = os.path.join(repository.own_dir, "quarantine")
        private_directory(folder)
        number = 1
        while os.path.lexists(os.path.join(folder, f"{self.name}.{number}")):
            number += 1
        # What SQLite has written to these files, and not yet to the database, is a part of it.
        for ending in ("", *(ENDINGS if self.name == STATE else ())):
            with suppress(FileNotFoundError):
                aside = os.path.join(folder, f"{self.name}{ending}.{number}")
                move(f"{self.path(repository)}{ending}", aside)


class OwnNote(NamedTuple):
    """A JSON value that exists nowhere else, in the database `state.db` of a work tree.

    Versions before 0.2 kept each in a file; such a file counts until the first write.
    """

    former: OwnFile

    @property
    def name(self) -> str:
        """Its name in the database."""
        return self.former.name.removesuffix(".json")

    def read(self, repository: Repository) -> dict[str, Any] | Damaged | None:
        """Return the value, None if there is none, `Damaged` when it is not what we wrote."""
        try:
            state = open_durable(state_path(repository), STATE_LAYOUT, make=False)
            if state is None:
                return self.former.read(repository)
            with closing(state), storing(state_path(repository)):
                return self._value(repository, state)
        except RefusedError as refusal:
            return Damaged(refusal.reason, refusal.detail)
        except YoloError as error:
            return Damaged(error.reason, error.message)

    def update(
        self,
        repository: Repository,
        change: Callable[[dict[str, Any] | Damaged | None], dict[str, Any] | None],
        *,
        durable: bool = True,
    ) -> None:
        """Change the value under an exclusive lock.

        `change` receives what `read` returns, and returns the new value, None for no change. A
        value that is not `durable` may be lost: by a power loss, and where it is damaged. Any other
        damaged value stays as it is.

        Raises:
            YoloError: LOCK_TIMEOUT, NO_SPACE, STORAGE_FAILED, UNREADABLE, NOT_REGULAR, and whatever
                `change` raises.
        """
        repository.make_own_dir()
        place = state_path(repository)
        try:
            state = open_durable(place, STATE_LAYOUT, make=True, is_synced=durable)
            assert state
            with closing(state), storing(place), state.writing():
                before = self._value(repository, state)
                if durable and isinstance(before, Damaged):
                    raise self.refusal(repository, before)
                new = change(before)
                if new is not None:
                    text = json.dumps(new, separators=(",", ":"))
                    state.rows("insert or replace into notes values (?, ?)", self.name, text)
        except RefusedError as refusal:
            raise self.refusal(repository, Damaged(refusal.reason, refusal.detail)) from None

    def refusal(self, repository: Repository, damaged: Damaged) -> YoloError:
        """Return the error of a command that needs the value."""
        is_former = isinstance(self.former.read(repository), Damaged)
        place = self.former if is_former else STATE_FILE._replace(loss=self.former.loss)
        return place.refusal(repository, damaged)

    def _value(self, repository: Repository, state: Database) -> dict[str, Any] | Damaged | None:
        for (text,) in state.rows("select value from notes where name = ?", self.name):
            try:
                value = parse(text, _NOTE_BYTES)
            except (AttributeError, TypeError, ValueError):
                return Damaged(Reason.JSON_PARSE_ERROR, f"the value {self.name} is no JSON")
            # We only write objects. Anything else is checked as {}, which does not have our shape.
            return self.former.checked(value if isinstance(value, dict) else {})
        return self.former.read(repository)


def state_path(repository: Repository) -> str:
    """Return the path of the database `state.db`."""
    return os.path.join(repository.own_dir, STATE)


def _find_state_damage(repository: Repository) -> Damaged | None:
    place = state_path(repository)
    if not is_odd(place) and any(
        os.path.lexists(f"{place}{each}") and (is_odd(f"{place}{each}") or each == "-journal")
        for each in ENDINGS
    ):
        return None  # it is named by itself, and all is well once it is away
    try:
        state = open_durable(place, STATE_LAYOUT, make=False)
        if state is None:
            return None
        with closing(state), storing(place):
            ((verdict, *_), *_) = state.rows("pragma integrity_check")
            if verdict != "ok":
                return Damaged(Reason.UNREADABLE, str(verdict))
        contents = (note.read(repository) for note in NOTES)
        return next((each for each in contents if isinstance(each, Damaged)), None)
    except RefusedError as refusal:
        return Damaged(refusal.reason, refusal.detail)
    except YoloError as error:
        return Damaged(error.reason, error.message)


def _find_odd_kind(path: str) -> Damaged | None:
    return unless_damaged(lambda: os.close(open_regular(path, os.O_RDONLY)))


def fits(value: object, shape: Shape) -> bool:
    """Return whether a value of JSON has a shape; a Boolean is not a number."""
    match shape:
        case [part]:
            return isinstance(value, list) and all(fits(each, part) for each in value)
        case dict():
            return isinstance(value, Mapping) and all(
                fits(value.get(key), part) for key, part in shape.items()
            )
        case type() | UnionType():
            is_number = shape in (int, float, int | float)
            return isinstance(value, shape) and not (is_number and isinstance(value, bool))
    return callable(shape) and shape(value)


def _are_ages(value: object) -> bool:
    return isinstance(value, dict) and all(
        fits(each, int | float) and abs(each) <= FURTHEST_S for each in value.values()
    )


def _is_task(value: object) -> bool:
    return isinstance(value, str) and TaskRef.parse(value) is not None


def _is_phase(value: object) -> bool:
    return isinstance(value, str) and PhaseId.parse(value) is not None


def _matches(pattern: str) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _is_moment(value: Any) -> bool:
    return fits(value, int | float) and 0 <= value <= FURTHEST_S


def _is_moment_or_none(value: object) -> bool:
    return value is None or _is_moment(value)


def _are_texts_or_none(value: object) -> bool:
    return value is None or fits(value, [str])


def _is_amount(value: Any) -> bool:
    return fits(value, int | float) and 0 <= value < _BEYOND_COUNTING


def _is_count(value: object) -> bool:
    return fits(value, int) and _is_amount(value)


_BEYOND_COUNTING = 10**18
_RUN_ACT: Shape = {
    "agent": _matches("[a-z][a-z-]{0,40}"),
    **dict.fromkeys(("number", "attempt", "tokens"), _is_count),
    **dict.fromkeys(("department", "step", "task", "outcome", "tool", "before"), str),
    "started": _is_moment,
    "ended": _is_moment_or_none,
    "cost_usd": _is_amount,
    "key": [str],
}
_RUN: Shape = {
    "id": _matches("R[0-9]{14}[0-9a-f]{4}"),
    "phase": _is_phase,
    **dict.fromkeys(("intent", "host", "outcome"), str),
    "started": _is_moment,
    "ended": _is_moment_or_none,
    "given_up": _are_texts_or_none,
    "acts": [_RUN_ACT],
}
"""Its names are those of a folder."""
_CLOCK = {"boot": str, "since_s": _are_ages}
_SETUP = {"before": str | None, "after": str}
_OVERRIDE = {
    **dict.fromkeys(("path", "digest", "branch", "because", "by", "at"), str),
    "faults": [str],
    "proof": str | None,
}

BOOT = OwnFile("boot.json", {"boot": str})
STATE_FILE = OwnFile(
    STATE, loss="who claimed which task, which handoffs you accepted with errors, what was reported"
)
CLAIMS = OwnNote(
    OwnFile(
        "claims.json",
        {"claims": [{"agent": str, "task": _is_task, "files": [str], "claimed_at": str}]},
        "who claimed which task: let everybody claim again",
    )
)
COMPANY_RUNS = OwnNote(
    OwnFile(
        "company-runs.json",
        {"runs": [_RUN]},
        "which agents ran, and what they cost",
    )
)
AUTOFIXED = OwnNote(
    OwnFile(
        "autofixed.json",
        {"files": [{"path": str, "blob": str, "mended": _is_count, "at": str}]},
        "which artifacts the daemon repaired by itself",
    )
)
CREW_CLOCK = OwnNote(OwnFile("crew-clock.json", _CLOCK))
CREW_TOLD = OwnNote(
    OwnFile("crew-told.json", {"told": [str]}, "what was reported already: it is reported again")
)
ESCALATION_CLOCK = OwnNote(OwnFile("escalation-clock.json", _CLOCK))
GATES = OwnFile("gates.json", {"id": str, "commit": str, "open": dict})
HEALTH = OwnFile("health.json", {"pid": int, "running": bool})
HOOKS = OwnFile(
    "hooks.json",
    {"since": str, "folders": [str]},
    "since when the hooks are installed: run 'yolo-fs hooks install' again",
)
TEAM = OwnFile(
    "team.json",
    {"team": str, "clone": str, "remote": str},
    "which team this work tree has joined: run 'yolo-fs team join' again",
)
TEAM_LANE = OwnFile(
    "team-lane.json", {"reason": str, "what": str, "at": str, "round_trip_s": int | float}
)
VERIFICATIONS = OwnNote(
    OwnFile(
        "verifications.json",
        {
            "runs": [
                {
                    **dict.fromkeys(("commit", "sources", "how", "began", "output"), str),
                    "command": [str],
                    "proof": str | None,
                    **dict.fromkeys(("passed", "is_clean"), bool),
                    "seconds": _is_amount,
                }
            ]
        },
        "how your verify_command ended",
    )
)
OVERRIDES = OwnNote(
    OwnFile(
        "handoff-overrides.json",
        {"overrides": [_OVERRIDE]},
        "which handoffs you accepted with errors",
    )
)
NOTES = (
    AUTOFIXED,
    CLAIMS,
    COMPANY_RUNS,
    CREW_CLOCK,
    CREW_TOLD,
    ESCALATION_CLOCK,
    OVERRIDES,
    VERIFICATIONS,
)
ACCEPTED = OwnFile("handoff-accepted.json", {"stamps": dict, "roles": [str]})
_OTHERS = (
    OwnFile("agents.jsonl", loss="the agents' signs of life so far"),
    OwnFile("agents.1.jsonl", loss="the agents' older signs of life"),
    OwnFile("events.jsonl", loss="the latest events of the journal"),
    OwnFile("daemon.log", loss="what the daemon wrote"),
    *map(
        OwnFile,
        ("phases.lock", "handoffs.lock", "execution-state.lock",
         "daemon.lock", "gates.waiters", "index-pending",
         "ref-locks", INDEX, f"{INDEX}{SEAL}", f"{INDEX}-wal", f"{INDEX}-shm",
         f"{STATE}-wal", f"{STATE}-shm", f"{STATE}-journal", f"{INDEX}-journal",
         "company.lock", "kept.turn", "kept-ref-lock", "states.turn", "packs-left"),
    ),
)  # fmt: skip


SETUP_PARTS = ("", "-local", "-mcp", "-roles")
"""Suffix of each kept file: hooks, those of one machine, our MCP server, roles."""


def setup_file(host: str) -> OwnFile:
    """Return the file that keeps the settings of a host as they were before us."""
    return OwnFile(f"setup-{host}.json", _SETUP, "how your settings were before our hooks")


def refuse_unsafe(repository: Repository) -> None:
    """Refuse a repository or a planning tree that others may write to: what they put there or take
    away would be committed as the user's. The folder of a phase is an agent's, with its umask.

    Raises:
        YoloError: UNSAFE_REPOSITORY.
    """
    tree = f"{repository.root}/{PLANNING_ROOT}"
    repository.refuse_unsafe(*filter(os.path.isdir, (tree, f"{tree}/phases")))


def own_files(repository: Repository, hosts: tuple[str, ...]) -> Iterator[OwnFile]:
    """Yield the files of ours that a work tree may have."""
    yield from (
        BOOT,
        STATE_FILE,
        *(note.former for note in NOTES),
        GATES,
        TEAM_LANE,
        HEALTH,
        HOOKS,
        TEAM,
        ACCEPTED,
    )
    yield from (setup_file(f"{host}{part}") for host in hosts for part in SETUP_PARTS)
    yield from _OTHERS


CONFIG = f"{PLANNING_ROOT}/config.json"

LOOSENING: Mapping[str, object] = {
    "legacy": True,
    "commit_ignored": True,
    "allow_detached": True,
    "durability": "none",
    "safety_net": False,
    "product_handoffs": True,
    "autofix": "safe",
}
"""Policy values that a repository cannot set. They count only in the user's own configuration."""

_CAPPED = ("max_file_bytes", "max_line_bytes", "max_depth")
"""Limits that a repository may lower, not raise."""


class Settings(NamedTuple):
    """The settings of one repository."""

    config: Config
    policy: Policy
    verify_command: tuple[str, ...] = ()
    """Program and arguments by which the user checks the sources of this work tree; empty for none.
    """

    @property
    def mode(self) -> Strictness:
        """How strictly shapes are read."""
        return Strictness(strict=self.policy.strict, legacy=self.policy.legacy)

    @property
    def without_patience(self) -> Settings:
        """The same settings, but every file counts as long quiet: state does not depend on that."""
        return self._replace(policy=self.policy._replace(settle_ms=0, grace_s=0))

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders that artifacts lie in."""
        products = (HANDOFF_FOLDER,) if self.policy.product_handoffs else ()
        return (PLANNING_ROOT, *products, *self.policy.directive_roots)

    @property
    def limits(self) -> Limits:
        """How large and deep files may be."""
        policy = self.policy
        return Limits(
            max_line_bytes=policy.max_line_bytes,
            max_file_bytes=policy.max_file_bytes,
            max_depth=policy.max_depth,
        )


def user_config_path() -> str:
    """Return where the user's own configuration is looked for."""
    return os.path.join(user_folder("XDG_CONFIG_HOME", ".config"), "yolo-fs", "config.json")


def stamps_of(root: str) -> tuple[Stamp | None, ...]:
    """Return the stamps of the two configuration files."""
    return tuple(stamp_at(path) for path in (os.path.join(root, CONFIG), user_config_path()))


def not_initialised(root: str, hint: str = "Run 'yolo-fs init' first.") -> YoloError:
    """Return the error of a work tree without a planning tree; it names one that lies deeper."""
    from glob import iglob

    for depth in ("*", "*/*"):
        for place in iglob(f"{depth}/{PLANNING_ROOT}/", root_dir=root):
            folder = os.path.dirname(place.rstrip("/"))
            above = (folder, folder.partition("/")[0])
            if any(os.path.lexists(os.path.join(root, each, ".git")) for each in above):
                continue  # it is that of a repository inside
            message = f"the root of the repository has no {PLANNING_ROOT}"
            hint = f"Nobody reads {safe(place)}: move it to the root ('git mv')."
            return YoloError(Reason.NOT_INITIALISED, message, hint=hint)
    return left_out(root) or YoloError(Reason.NOT_INITIALISED, hint=hint)


def left_out(root: str) -> YoloError | None:
    """Return the error of a work tree without the planning tree that its commit has, or None.

    A new one would look like a change of every file of it.
    """
    if os.path.lexists(os.path.join(root, PLANNING_ROOT)):
        return None
    with suppress(YoloError), Repository(root) as repository:
        if repository.git.text("ls-tree", "HEAD", "--", PLANNING_ROOT):
            message = f"HEAD has {PLANNING_ROOT}, and the work tree does not"
            is_sparse = repository.config("core.sparseCheckout") == "true"
            back = (
                f"sparse-checkout add {PLANNING_ROOT}" if is_sparse else f"restore {PLANNING_ROOT}"
            )
            return YoloError(Reason.NOT_INITIALISED, message, hint=f"'git {back}' brings it back.")
    return None


def load(root: str) -> Settings:
    """Return the settings for the work tree `root`; files that are absent leave the defaults.

    Raises:
        YoloError: BAD_CONFIG, naming the file and its first fault.
    """
    return _apply_user_config(_config(root), root)


class ConfiguredKey(NamedTuple):
    """A key of the configuration, and where its value comes from."""

    key: str
    """As `config.json` nests it, such as `departments.frontend` or `yolo_fs.strict`."""
    value: Any
    default: Any
    origin: str
    """The file whose value counts; `default` where none has one."""
    refused: Any = None
    """Ignored value of the repository's configuration: only the user's own may set it."""


def configured(root: str) -> Iterator[ConfiguredKey]:
    """Yield every key in force.

    Raises:
        YoloError: as `load`.
    """
    settings, user_path = load(root), user_config_path()
    written = _written(os.path.join(root, CONFIG), CONFIG)
    user_written = _written(user_path, "the user's configuration")
    config = _parse_object(written, CONFIG) if written is not None else {}
    user = _parse_object(user_written, user_path) if user_written is not None else {}
    policies = {
        f"{user_path}, repositories": _section(user, "repositories", root),
        f"{user_path}, policy": _section(user, "policy"),
        CONFIG: config.get("yolo_fs", {}),
    }
    defaults = dict(_flatten_settings(to_json(Config())))
    for key, value in _flatten_settings(to_json(settings.config)):
        if not key.startswith("yolo_fs."):
            origin = CONFIG if _is_said(config, key) else "default"
            yield ConfiguredKey(key, value, defaults.get(key), origin)
    own_words = bool(settings.verify_command)
    origin = f"{user_path}, repositories" if own_words else "default"
    yield ConfiguredKey(VERIFY, [*settings.verify_command], [], origin)
    own, wanted = to_json(Policy()), to_json(settings.config.yolo_fs)
    for name, value in to_json(settings.policy).items():
        origin = next((file for file, given in policies.items() if name in given), "default")
        refused = None
        if origin == CONFIG and wanted[name] != value:
            origin, refused = "default", wanted[name]
        yield ConfiguredKey(f"yolo_fs.{name}", value, own[name], origin, refused)


def _flatten_settings(value: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of nested objects, with their keys joined by dots."""
    for key, item in value.items():
        if isinstance(item, dict) and item:
            yield from _flatten_settings(item, f"{at}{key}.")
        else:
            yield f"{at}{key}", item


def _is_said(section: Any, key: str) -> bool:
    for part in key.split("."):
        if not isinstance(section, dict) or part not in section:
            return False
        section = section[part]
    return True


class InForce(NamedTuple):
    """The settings in force, also when a file is broken."""

    settings: Settings
    fault: YoloError | None = None
    """Error of the first broken file; None while all of them are good."""


def load_in_force(root: str) -> InForce:
    """Return the settings in force: of a broken file its last good content, else the defaults.

    A broken configuration never disables a guard.
    """
    fault: YoloError | None = None
    try:
        config = _config(root)
    except YoloError as error:
        fault, kept = error, _recall_last_good(root)
        config = values_of(Config, kept) if kept is not None else Config()
    try:
        return InForce(_apply_user_config(config, root), fault)
    except YoloError as error:
        return InForce(Settings(config, _tighten_policy(config.yolo_fs)), fault or error)


_LAST_GOOD = "in force"
"""Key in the index of the configuration that was last found valid."""


def _recall_last_good(root: str) -> Any:
    with _index_of(root) as index:
        return _recall_value(index, _LAST_GOOD, None) if index else None


@contextmanager
def _index_of(root: str) -> Iterator[Database | None]:
    folder = own_folder(root)
    index = open_disposable(os.path.join(folder, INDEX), INDEX_LAYOUT) if folder else None
    try:
        yield index
    finally:
        if index:
            index.close()


def _config(root: str) -> Config:
    written = _written(os.path.join(root, CONFIG), CONFIG)
    return config_in(written, root, _LAST_GOOD) if written is not None else Config()


def _apply_user_config(config: Config, root: str) -> Settings:
    policy, name = _tighten_policy(config.yolo_fs), "the user's configuration"
    user = _written(user_config_path(), name)
    user_config = _parse_object(user, name) if user is not None else {}
    everywhere, here = _section(user_config, "policy"), _section(user_config, "repositories", root)
    command = _verify_command(everywhere, here, root)
    own = {**everywhere, **here}
    own.pop(VERIFY, None)
    checked = _checked(Policy, to_json(policy) | own, name) if own else policy
    return Settings(config, checked, command)


VERIFY = "verify_command"
"""Key of the user's own configuration. It is no part of the policy, of which a repository has its
say."""


def _verify_command(
    everywhere: Mapping[str, Any], here: Mapping[str, Any], root: str
) -> tuple[str, ...]:
    """Return the command that the user gives one work tree.

    Raises:
        YoloError: BAD_CONFIG for what is no list of words, and for one that every repository gets.
    """
    example = f'"repositories": {{"{root}": {{"{VERIFY}": ["make", "test"]}}}}'
    if VERIFY in everywhere:
        message = "it would run what any repository contains"
        raise _wrong(f"/policy/{VERIFY}", message, example)
    command = here.get(VERIFY, [])
    if not fits(command, [_is_word]):
        message = "no list of a program and its arguments"
        raise _wrong(f"/repositories/{root}/{VERIFY}", message, example)
    return tuple(command)


def _section(said: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return an object of the user's own configuration; an empty one where there is none.

    Raises:
        YoloError: BAD_CONFIG for anything else there.
    """
    found, at = said, ""
    for name in names:
        found, at = found.get(name, {}), f"{at}/{name}"
        if not isinstance(found, dict):
            raise _wrong(at, f"got {safe(str(found), 80)!r}", "an object")
    return found


def _wrong(at: str, message: str, expected: str) -> YoloError:
    """Return what refuses a value of the user's own configuration."""
    path = user_config_path()
    return _error_for_bad_config(
        Finding(Reason.WRONG_TYPE, path, at=at, message=message, expected=expected)
    )


def _is_word(value: object) -> bool:
    return isinstance(value, str) and bool(value) and "\0" not in value


def config_in(written: bytes, root: str, kept: str) -> Config:
    """Return the configuration that a file holds.

    What was validated once is cached in the index for the next process, under the name `kept`.

    Raises:
        YoloError: BAD_CONFIG.
    """
    basis = f"{code_stamp()} {sha256(written).hexdigest()}"
    with _index_of(root) as index:
        checked = _recall_value(index, kept, basis) if index else None
        if checked is None:
            checked = to_json(_checked(Config, _parse_object(written, CONFIG), CONFIG))
            if index:
                _remember(index, kept, basis, checked)
    return values_of(Config, checked)


def _recall_value(index: Database, name: str, basis: str | None) -> Any:
    """Return the cached value of a name. `basis`: what it must be based on; None for anything."""
    with suppress(DatabaseError):
        query = "select told from checked where name = ?1 and basis = ifnull(?2, basis)"
        for (text,) in index.rows(query, name, basis):
            return json.loads(text)
    return None


def _remember(index: Database, name: str, basis: str, value: object) -> None:
    text = json.dumps(value, separators=(",", ":"))
    with suppress(DatabaseError), index.writing():
        index.rows("insert or replace into checked values (?, ?, ?)", name, basis, text)


def _tighten_policy(policy: Policy) -> Policy:
    """Return the repository's policy without the values that only the user may give."""
    defaults, values = Policy(), policy._asdict()
    given = {name for name, loose in LOOSENING.items() if values[name] == loose}
    given |= {name for name in _CAPPED if values[name] > getattr(defaults, name)}
    left = {name: getattr(defaults, name) for name in (*given, "secrets_allowed")}
    return policy._replace(**left)


def _checked(kind: Any, value: Mapping[str, Any], name: str) -> Any:
    from yolo_fs.schemas.base import check, shape_of  # pydantic: a fourth of what a command costs

    shaped, faults = check(shape_of(kind), value)
    if shaped is None:
        raise _error_for_bad_config(faults[0].as_finding(name, 1))
    return values_of(kind, shaped.model_dump())


def _written(path: str, name: str) -> bytes | None:
    """Return the content of a file; None where there is none that can be read."""
    # Opening a pipe would wait for its writer.
    if os.path.exists(path) and not os.path.isfile(path):
        raise _error_for_bad_config(Finding(Reason.NOT_REGULAR, name, hint="put a file there"))
    with suppress(OSError), open(path, "rb") as file:
        return file.read(Limits().max_file_bytes + 1)
    return None


def _parse_object(data: bytes, name: str) -> dict[str, Any]:
    reading = read_object(data, name, Limits())
    if not reading.records:
        raise _error_for_bad_config(reading.findings[0])
    return reading.records[0].value


def _error_for_bad_config(finding: Finding) -> YoloError:
    return YoloError(
        Reason.BAD_CONFIG,
        str(finding),
        hint="Mend it; 'yolo-fs validate' shows all faults.",
    )
