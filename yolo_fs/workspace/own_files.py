"""Our files of a work tree: where they lie, what they must look like, and what their loss costs.

They lie in `.git/yolo-fs/` of each work tree, never in the work tree itself.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from types import UnionType
from typing import Any, NamedTuple, TypeAlias

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.core.foreign_json import parse
from yolo_fs.core.ids import PhaseId, TaskRef
from yolo_fs.core.reasons import Exit, Finding, Reason, YoloError
from yolo_fs.git.repository import Repository
from yolo_fs.system.database import (
    ENDINGS,
    SEAL,
    VALUE_BYTES,
    Database,
    open_disposable,
    open_durable,
    storing,
)
from yolo_fs.system.store import (
    Damaged,
    RefusedError,
    is_odd,
    move,
    open_regular,
    private_directory,
    read_json,
    unless_damaged,
)

LINES = "refs/yolo-fs/lines/"
"""Prefix of the branches of the team's other clones, with the commits that their summaries name."""
BESIDE = "refs/yolo-fs/beside/"
"""The same for the work trees of this repository that are in a team."""


DEV_BRANCHES = "yolo/dev"
"""Prefix of the branches of Devs with a work tree of their own: `yolo/dev/PHASE/PLAN`."""


def lock_path(repository: Repository) -> str:
    """Return the path of the lock that allows one daemon per work tree."""
    return lock_in(repository.own_dir)


def company_lock_path(repository: Repository) -> str:
    """Return the path of the lock that allows one runner of agents per work tree."""
    return os.path.join(repository.own_dir, "company.lock")


def team_company_lock_path(repository: Repository, team: str) -> str:
    """Return the path of the lock that allows one runner for the work trees of a team."""
    return os.path.join(repository.common_dir, f"yolo-fs/company-{team}.lock")


def lock_in(own_dir: str) -> str:
    """Return the lock of the work tree that keeps our files in this folder."""
    return os.path.join(own_dir, "daemon.lock")


def log_path(repository: Repository) -> str:
    """Return the log file of a daemon in the background."""
    return os.path.join(repository.own_dir, "daemon.log")


def states_lock(repository: Repository) -> str:
    """Return the path of the lock for bringing state files and the branch into agreement."""
    return os.path.join(repository.own_dir, "states.turn")


INDEX = "index.db"
"""Name of the database below `.git/yolo-fs` for what can be rebuilt from git and files."""

STATE = "state.db"
"""Name of the database below `.git/yolo-fs` for our own data that exists nowhere else."""

STATE_LAYOUT = "create table notes(name text primary key, value text)"

INDEX_LAYOUT = """
create table meta(key text primary key, value text);
create table commits(row integer primary key, oid text unique, at_s int, position int,
    joined int, ours int, warnings int, subject blob, changes blob, own blob, unseen text);
create index commits_by_position on commits(position);
create index commits_of_merges on commits(position, joined) where joined > position;
create index commits_of_ours on commits(position) where ours;
create index commits_with_warnings on commits(warnings) where warnings > 0;
create table paths(id integer primary key, path blob unique, count int);
create table changes(path int, row int, primary key(path, row)) without rowid;
create table named(kind text, key text, words blob, row int, nth int, said blob,
    taken int, primary key(kind, key, words, row, nth)) without rowid;
create index named_by_reverts on named(row) where said is not null;
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
        return self.finding(repository, damaged).as_error(self.path(repository), Exit.NOT_HERE)

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


_written: dict[str, str] = {}
"""Name of a note → what this process wrote last: its shape is known. To check it takes most of the
time of a change, and of many runs with many acts that is a twentieth of a second.
"""


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
                    _written[self.name] = text
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
                value = parse(text, VALUE_BYTES)
            except (AttributeError, TypeError, ValueError):
                return Damaged(Reason.JSON_PARSE_ERROR, f"the value {self.name} is no JSON")
            if text == _written.get(self.name):
                return value  # type: ignore[no-any-return]
            # We only write objects. Anything else is checked as {}, which does not have our shape.
            return self.former.checked(value if isinstance(value, dict) else {})
        return self.former.read(repository)


def state_path(repository: Repository) -> str:
    """Return the path of the database `state.db`."""
    return os.path.join(repository.own_dir, STATE)


_LONGEST_WRITE_MS = 1000
"""Milliseconds after which a database that another process writes to counts as locked. We write to
it for a few.
"""


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
            ((verdict, *_), *_) = state.rows("pragma integrity_check(1)")
            if verdict != "ok":
                return Damaged(Reason.UNREADABLE, str(verdict))
            state.rows(f"pragma busy_timeout = {_LONGEST_WRITE_MS}")
            with state.writing():
                state.rows("delete from notes where false")  # else a file may be only readable
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


def _are_pairs_or_none(value: object) -> bool:
    return value is None or (fits(value, [[str]]) and all(len(pair) == 2 for pair in value))  # type: ignore[attr-defined]


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
    "host": str | None,
}
_RUN: Shape = {
    "id": _matches("R[0-9]{14}[0-9a-f]{4}"),
    "phase": _is_phase,
    **dict.fromkeys(("intent", "host", "outcome"), str),
    **dict.fromkeys(("chain", "again", "proof"), str | None),
    "begins": bool | None,
    "started": _is_moment,
    "ended": _is_moment_or_none,
    "given_up": _are_texts_or_none,
    "asks": _are_pairs_or_none,
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
    OwnFile("company-runs.json", {"runs": [_RUN]}, "which agents ran, and what they cost")
)
AUTOFIXED = OwnNote(
    OwnFile(
        "autofixed.json",
        {"files": [{"path": str, "blob": str, "mended": _is_count, "at": str}]},
        "which artifacts the daemon repaired automatically",
    )
)
CREW_CLOCK = OwnNote(OwnFile("crew-clock.json", _CLOCK))
CREW_TOLD = OwnNote(
    OwnFile("crew-told.json", {"told": [str]}, "what was reported already: it is reported again")
)
ESCALATION_CLOCK = OwnNote(OwnFile("escalation-clock.json", _CLOCK))
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
    AUTOFIXED, CLAIMS, COMPANY_RUNS, CREW_CLOCK, CREW_TOLD, ESCALATION_CLOCK, OVERRIDES,
    VERIFICATIONS,
)  # fmt: skip
ACCEPTED = OwnFile("handoff-accepted.json", {"stamps": dict, "roles": [str]})
_OTHERS = (
    OwnFile("agents.jsonl", loss="the agents' heartbeats so far"),
    OwnFile("agents.1.jsonl", loss="the agents' older heartbeats"),
    OwnFile("events.jsonl", loss="the latest events of the journal"),
    OwnFile("daemon.log", loss="what the daemon wrote"),
    *map(
        OwnFile,
        ("phases.lock", "handoffs.lock", "execution-state.lock",
         "daemon.lock", "index-pending", "ref-locks",
         INDEX, f"{INDEX}{SEAL}", f"{INDEX}-wal", f"{INDEX}-shm",
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
        TEAM_LANE,
        HEALTH,
        HOOKS,
        TEAM,
        ACCEPTED,
    )
    yield from (setup_file(f"{host}{part}") for host in hosts for part in SETUP_PARTS)
    yield from _OTHERS
