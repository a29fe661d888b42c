"""Judges the use of tools: whether a tool may run, and whether what it wrote is right.

Before the tool runs, reads and writes against the rules are refused, with what to do instead, and
content that a command would destroy is kept. A request holds who asks, what, and all that the
answer needs.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cache, cached_property
from glob import iglob
from itertools import islice
from typing import TYPE_CHECKING

from yolo_fs.agents.access import Access
from yolo_fs.agents.recording import AgentJournal
from yolo_fs.artifacts.classify import PLANNING_ROOT, classify
from yolo_fs.artifacts.examine import find_secrets
from yolo_fs.artifacts.misnamed import misnamed, misplaced, nested
from yolo_fs.authority.access import Target, personal, sealed
from yolo_fs.authority.actors import AccessDecision, Actor
from yolo_fs.authority.guarded import Guarded, holds_guarded
from yolo_fs.authority.own_verbs import refuse_verb
from yolo_fs.authority.words import KINDS_WITH_SPEAKERS, advise_to_ask, find_word_of_another
from yolo_fs.core.reasons import Finding, Reason, YoloError, errors, safe, safe_lines, shortened
from yolo_fs.evidence.facts import texts
from yolo_fs.git.obstacles import IgnoreRules
from yolo_fs.git.repository import Repository
from yolo_fs.handoff_service.accept import DirectiveHandoffs, Permission
from yolo_fs.handoffs.lifecycle import HANDOFF
from yolo_fs.hooks.changes import text_after
from yolo_fs.hooks.effects import Destruction, Effect, StagingMode, Touch
from yolo_fs.hooks.hosts import HookAnswer, HookInput
from yolo_fs.hooks.shell import UNKNOWN
from yolo_fs.kept.selection import MOST_BYTES, KeptCause
from yolo_fs.kept.service import KeptStore, Leaf, read_leaf
from yolo_fs.protocol.handoffs import directive_role
from yolo_fs.protocol.roster import bare_name, hint_for_agent
from yolo_fs.scanning.misplaced import find_misplaced, is_numbered, literally
from yolo_fs.system.files import read
from yolo_fs.system.heartbeats import active_agent, append
from yolo_fs.system.readers import read_lines
from yolo_fs.workspace.settings import CONFIG, load_in_force

if TYPE_CHECKING:
    from yolo_fs.checking.validate import CheckedFile, Validator

_MOST_MATCHES = 1_000
"""Files that one pattern expands to at most; the rest is like them."""
_MOST_NAMED = 5 * _MOST_MATCHES
"""Most files that one command may name, with its patterns expanded, to be judged in time on a
loaded machine.
"""


class HookRequest:
    """One question of a host, asked in one repository."""

    def __init__(self, repository: Repository, hook_input: HookInput):
        self.repository = repository
        self.input = hook_input
        self.settings, self.fault = load_in_force(repository.root)
        self.access = Access(repository, self.settings, start=hook_input.cwd)
        self.role = hook_input.agent.rpartition(":")[2] or active_agent(repository.root)
        """The asking agent: named by the host, or else by the planning tree."""
        self.actor = self._find_actor()
        """None for an unknown agent."""
        self.directive = "" if self.actor else directive_role(self.role)
        """The asker's role of directive execution, if it is none of the company's as well."""
        self.nobody = self._find_nobody()
        """What an asker calls itself that says it is of the company, and is not; or empty."""

    def _find_actor(self) -> Actor | None:
        """Return the asking actor; None if it is unknown."""
        try:
            return self.access.actor(self.role) if self.role else None
        except YoloError:
            return None

    def _find_nobody(self) -> str:
        """Return the name of an asker that says it is one of the company, which has none such.

        An agent of the host's own, or of its user's, is not asked by which rights it works.
        """
        given = self.input.agent
        says_so = given.rpartition(":")[2].strip().lower().startswith("yolo-")
        is_ours = says_so or self.input.is_announced or not given
        is_known = self.actor is not None or self.directive
        return "" if is_known or not is_ours or self.input.is_served else bare_name(self.role)

    def paths(self, touch: Touch) -> Iterator[str]:
        """Yield the files of a touch, relative to the repository, with patterns expanded."""
        spelled = [touch.path]
        if (
            above := f"{UNKNOWN}/{PLANNING_ROOT}/"
        ) in touch.path:  # most likely that of this repository
            spelled = [self.full(f"{PLANNING_ROOT}/{touch.path.rpartition(above)[2]}")]
        if touch.is_pattern and touch.is_certain:
            # Elsewhere `**` might walk through all that is installed.
            below = PLANNING_ROOT in touch.path
            matching = iglob(
                touch.path, root_dir=self.input.cwd, recursive=below, include_hidden=below
            )
            with contextlib.suppress(RecursionError):  # one of a thousand folders
                spelled = list(islice(matching, _MOST_MATCHES)) or spelled
        elif touch.or_below_root and not os.path.isabs(touch.path):
            spelled.append(self.full(touch.path))
        for path in spelled:
            relative = self.relative(path)
            if touch.staged:
                yield from self._staged_credentials(touch, relative)
                continue
            if relative is not None and touch.is_deep:
                yield from self._planning_files_below(relative)
            if relative is not None and touch.name_in_folder and os.path.isdir(self.full(relative)):
                relative = self.relative(f"{path}/{touch.name_in_folder}")
            if relative is not None and not (
                touch.must_exist and not os.path.isfile(self.full(relative))
            ):
                yield relative

    def _staged_credentials(self, touch: Touch, relative: str | None) -> Iterator[str]:
        """Yield the credentials that git takes in: staging other files shows them to nobody.

        What git tracks already is in the repository, and a folder does not stand for it.
        """
        if relative is None:
            return
        names: Iterable[str] = (relative,)
        is_pattern = any(char in touch.path for char in "*?[")
        if is_pattern or os.path.isdir(self.full(relative)):
            ignored = () if touch.staged is StagingMode.FORCED else ("--exclude-standard",)
            places = () if is_pattern or relative == "." else ("--", relative)
            names = _names(self.repository, "ls-files", "-z", "--others", *ignored, *places)
        for name in names:
            row = sealed(Target(name))
            if row is not None and row.names and (not is_pattern or _is_meant(touch.path, name)):
                yield name

    def _planning_files_below(self, folder: str) -> Iterator[str]:
        """Yield the files of the planning tree that lie in a part of it."""
        if f"{folder}/".startswith(f"{PLANNING_ROOT}/"):
            below = iglob("**", root_dir=self.full(folder), recursive=True, include_hidden=True)
            yield from islice((f"{folder}/{name}" for name in below), _MOST_MATCHES)

    def full(self, path: str) -> str:
        """Return the absolute path of one that is relative to the repository."""
        return os.path.join(self.repository.root, path)

    def relative(self, path: str) -> str | None:
        """Return a resolved path relative to its work tree; a planning tree elsewhere counts."""
        root = os.path.realpath(self.repository.root)
        try:
            full = os.path.realpath(os.path.join(self.input.cwd, os.path.expanduser(path)))
        except (ValueError, OSError):  # links in a circle: the tool itself will fail
            return None
        above = [place for place in self._other_work_trees if full.startswith(f"{place}/")]
        above += [root] if full == root or full.startswith(f"{root}/") else []
        if above:  # a work tree may lie in another one
            return os.path.relpath(full, max(above, key=len)).replace(os.sep, "/")
        _, mark, below = full.rpartition(f"/{PLANNING_ROOT}/")
        return f"{PLANNING_ROOT}/{below}" if mark else f"../{full}"

    @cached_property
    def _other_work_trees(self) -> tuple[str, ...]:
        """Roots of the repository's other work trees, whose files the same rules are for."""
        return self.repository.work_trees()[1:]


_WROTE = "wrote"


def note_written(request: HookRequest, paths: Sequence[str]) -> None:
    """Record that this agent wrote some artifacts, so that no other agent is held up for them."""
    hook_input = request.input
    line = {
        "event": _WROTE,
        "agent": hook_input.agent,
        "id": hook_input.instance or hook_input.agent,
        "session": "",
        "said": {"paths": list(paths)},
    }
    if line["id"]:
        append(request.repository.own_dir, line)


def paths_written(request: HookRequest, own_dir: str = "") -> frozenset[str]:
    """Return the artifacts that this agent wrote, as far as its host has reported them.

    `own_dir`: our folder of another work tree; empty for that of the request.
    """
    whose = request.input.instance or request.input.agent
    journal = AgentJournal(own_dir or request.repository.own_dir, request.settings.limits)
    signs = journal.read(datetime.now(UTC))
    own = (sign for sign in signs.seen if sign.event == _WROTE and sign.id == whose)
    return frozenset(path for sign in own for path in texts(sign.message.get("paths")))


ENDANGERED = "endangered"
"""Reason for keeping it, as 'kept' shows it."""
PATIENCE_S = 5.0
"""How long a hook waits for another process that keeps contents, seconds."""
_MOST_FILES = 20_000
_FEW = 5


@dataclass(slots=True)
class _Found:
    """What a line of commands may destroy."""

    seen: set[str] = field(default_factory=set)
    files: dict[str, Leaf] = field(default_factory=dict)
    size_bytes: int = 0
    secret: list[str] = field(default_factory=list)
    """Paths that may hold a credential: they are named, not kept."""
    left: list[str] = field(default_factory=list)
    """Paths that do not fit, or that cannot be read."""


def keep_first(request: HookRequest) -> str:
    """Keep what the commands may destroy, as one entry; return the message for the agent."""
    destructions = request.input.call.destructions
    if not destructions:
        return ""
    named = " and ".join(dict.fromkeys(safe(each.what, 80) for each in destructions))
    policy = request.settings.policy
    endangered = _Found()
    try:
        for each in destructions:
            _find(request, each, frozenset(policy.secrets_allowed), endangered)
        if not endangered.seen:
            return ""
        kept_store = KeptStore(
            request.repository, secrets_allowed=policy.secrets_allowed, patience_s=PATIENCE_S
        )
        cause = KeptCause((ENDANGERED,), named, request.input.agent or request.input.host)
        entry = kept_store.keep_files(endangered.files, cause) if endangered.files else None
    except (YoloError, OSError) as error:
        why = safe(str(error), 200)
        return f"What `{named}` destroys could not be kept ({why}); the command is not stopped."
    lines = []
    if entry:
        count = f"{entry.files:,} uncommitted file{'s' if entry.files > 1 else ''}"
        lines.append(
            f"Kept before `{named}`: {count}. "
            f"'yolo-fs kept restore {entry.number}' brings them back as they were"
            f"{'' if request.actor is None else '; your user runs it'}."
        )
    elif endangered.files:
        lines.append(f"What `{named}` destroys is kept already: 'yolo-fs kept' lists it.")
    if endangered.secret:
        lines.append(f"Not kept, since it looks like a credential: {_listed(endangered.secret)}.")
    if endangered.left:
        why = "is too large, unreadable or a nested repository"
        lines.append(f"Not kept, since it {why}: {_listed(endangered.left)}.")
    return "\n".join(lines)


def _find(
    request: HookRequest, command: Destruction, allowed: frozenset[str], endangered: _Found
) -> None:
    """Add what a command may destroy."""
    repository = request.repository
    places = list(_places(request, command))
    if command.paths and not places:
        return
    for path in _uncommitted(repository, command, places):
        if path in endangered.seen:
            continue
        endangered.seen.add(path)
        row = sealed(Target(path))
        if row is not None and row.names:
            endangered.secret.append(path)
            continue
        leaf = read_leaf(repository.root, path)
        if isinstance(leaf, Finding):
            if leaf.reason is not Reason.FILE_MISSING:
                endangered.left.append(path)
            continue
        if find_secrets(leaf.data, path, allowed):
            endangered.secret.append(path)
        elif (
            endangered.size_bytes + len(leaf.data) > MOST_BYTES
            or len(endangered.files) == _MOST_FILES
        ):
            endangered.left.append(path)
        else:
            endangered.files[path] = leaf
            endangered.size_bytes += len(leaf.data)


def _places(request: HookRequest, command: Destruction) -> Iterator[str]:
    """Yield the paths that a command names, relative to the repository; all where unknown."""
    for path in command.paths:
        if UNKNOWN in path or path.startswith(":"):
            yield "."
            continue
        relative = _unfollowed_place_of(request, path)
        while relative and any(char in relative for char in "*?["):
            relative = os.path.dirname(relative) or "."
        if relative is not None and not relative.startswith("../"):
            yield relative


def _unfollowed_place_of(request: HookRequest, path: str) -> str | None:
    """Return the place of a path itself, relative to the repository.

    Its last component is not followed: removing a link does not remove its target.
    """
    folder, name = os.path.split(path.rstrip("/"))
    above = request.relative(folder or os.curdir) if name.strip(".") and name != "~" else None
    if above is None or above.startswith("../"):
        return request.relative(path)
    return os.path.normpath(f"{above}/{name}")


def _uncommitted(
    repository: Repository, command: Destruction, places: Iterable[str]
) -> Iterator[str]:
    """Yield paths whose content is in no commit."""
    within = ("--", *(place for place in places if place != ".")) if "." not in places else ()
    if command.tracked:
        tip = repository.head().tip
        arguments = (
            ("diff-index", "--name-only", "--no-renames", "-z", tip) if tip else ("ls-files", "-z")
        )
        yield from _names(repository, *arguments, *within)
    if command.untracked:
        yield from _names(repository, "ls-files", "-z", "--others", "--exclude-standard", *within)


def _names(repository: Repository, *arguments: str) -> Iterator[str]:
    out = repository.git.run(*arguments).out
    yield from (os.fsdecode(name) for name in out.split(b"\0") if name)


def _is_meant(pattern: str, path: str) -> bool:
    """Return whether a pattern of git may mean a path; a `*` there stands for folders, too."""
    return fnmatchcase(path, f"*{pattern.lstrip('./')}")


def _listed(paths: list[str]) -> str:
    return shortened(map(safe, paths), _FEW, shown_by="'git status'")


class Guard:
    """Judges each file that one tool call would touch."""

    def __init__(self, request: HookRequest):
        self._request = request
        self._ignored = _Ignored(request.repository)

    def answer(self) -> HookAnswer:
        """Refuse writes and reads against the rules, with the reason and what to do."""
        if self._request.input.call.unchecked:
            from yolo_fs.hooks.githooks import is_installed

            if is_installed(self._request.repository):
                return HookAnswer(refusal=_skipped(self._request.input.call.unchecked[0]))
        if (
            refusal := self._refuse_message()
            or self._refuse_impersonation()
            or self._refuse_reserved_verb()
        ):
            return HookAnswer(refusal=refusal)
        with contextlib.closing(self._ignored):
            if refusal := self._refuse_touches():
                return HookAnswer(refusal=refusal)
        kept = keep_first(self._request) if self._request.settings.policy.safety_net else ""
        handoffs = DirectiveHandoffs(self._request.repository, self._request.settings)
        handoffs.note_accepted(datetime.now(UTC))
        doubts = filter(
            None, (*self._request.input.call.undecided, self._request.input.call.excess)
        )
        undecided = "; ".join(safe(what) for what in doubts)
        if not undecided:
            return HookAnswer(context=kept)
        return HookAnswer(
            context=kept,
            note=f"yolo-fs hook: undecided from its text: {undecided}. "
            "The daemon and 'yolo-fs verify' check what it leaves behind.",
        )

    def _refuse_touches(self) -> str:
        """Return why one of the files may not be touched like this; each is judged once."""
        is_known = self._request.actor is not None
        if is_known and self._request.input.call.excess:
            return _refuse_excess(self._request.input.call.excess)
        handed = self._make_edit_check()
        judged: set[tuple[str, Effect, bool]] = set()
        named = 0
        for touch in self._request.input.call.touches:
            for path in self._request.paths(touch):
                if touch.effect is Effect.FILL and not _holds_rules(path):
                    continue
                named += 1
                if is_known and named > _MOST_NAMED:
                    return _refuse_excess(f"its patterns name more than {_MOST_NAMED:,} files")
                if (way := (path, touch.effect, touch.is_certain)) in judged:
                    continue
                judged.add(way)
                refusal = self._refused(touch, path)
                if not refusal and touch.effect is Effect.WRITE:
                    refusal = self._refuse_anothers_word(touch, path)
                if not refusal and touch.writes and not self._is_scratch(touch, path):
                    refusal = handed(path)
                if refusal:
                    return refusal
        return ""

    def _refused(self, touch: Touch, path: str) -> str:
        is_root = path == "." and touch.effect is Effect.WRITE and self._request.actor is not None
        if is_root or (touch.effect in _OF_FOLDERS and self._is_whole(path)):
            done = "removed" if touch.effect is Effect.REMOVE else "written"
            return (
                f"{safe(path)} holds the planning tree or the repository itself.\n"
                f"Instead: name the files that are to be {done}."
            )
        if touch.writes and (row := self._find_guarded_row(touch, path)):
            return f"{safe(path)} is {row.what}.\nInstead: {row.instead}."
        kept = sealed(Target(path)) if touch.is_named else None
        if kept is not None and not kept.is_secret:
            return ""
        actor, full = self._request.actor, self._request.full(path)
        if actor and touch.writes and (refusal := self._refuse_nested(path)):
            return refusal
        is_served = self._request.input.is_served
        is_made = touch.effect not in (Effect.READ, Effect.ALTER) and touch.is_certain
        if self._request.nobody and is_made and path.startswith(f"{PLANNING_ROOT}/"):
            return _format_stranger(self._request.nobody)
        is_personal = touch.writes and personal(path) is not None
        if actor is None and not is_served and not (self._request.directive and is_personal):
            return ""
        if not touch.is_certain:
            return self._refuse_sealed_read(actor, touch) if actor else ""
        if not _is_inside(path):
            return ""
        if touch.effect is Effect.READ:
            is_planning = path.startswith(f"{PLANNING_ROOT}/")
            is_judged = is_served or is_planning or os.path.isfile(full)
            given = self._request.access.read(actor, full) if is_judged else None
        elif personal(path) is None and (
            (touch.effect is Effect.ALTER and not _is_of_git(path)) or self._is_scratch(touch, path)
        ):
            given = None
        else:
            given = self._request.access.write(actor, full)
        return _format_refusal(given) if given and not given.allowed else ""

    def _refuse_anothers_word(self, touch: Touch, path: str) -> str:
        """Refuse to write a record that is the word of another agent, or of the user."""
        changes = [
            change for change in self._request.input.changes if change.path in ("", touch.path)
        ]
        place = classify(path) if changes else None
        if place is None or place.artifact.kind not in KINDS_WITH_SPEAKERS:
            return ""
        limits = self._request.settings.limits
        there = read(self._request.repository.root, path, limits.max_file_bytes)
        before = b"" if isinstance(there, Finding) else there.data
        text = text_after(before.decode("utf-8", "replace"), changes)
        known, left = (
            [record.value for record in read_lines(data, path, limits).records]
            for data in (before, text.encode("utf-8", "replace"))
        )
        actor = self._request.actor
        other = find_word_of_another(place.artifact.kind, known, left, actor.name if actor else "")
        return _format_other(other) if other else ""

    def _refuse_nested(self, path: str) -> str:
        """Refuse a new artifact in a planning tree where nobody looks: who stands in a folder of
        the repository spells the path of an artifact wrong.
        """
        wrong = nested(path)
        if wrong is None or classify(wrong.expected) is None:
            return ""
        own = self._request.full(f"{path.rpartition(f'/{PLANNING_ROOT}/')[0]}/.git")
        if os.path.lexists(own) or os.path.lexists(self._request.full(path)):
            return ""
        right = self._request.full(wrong.expected)
        return f"{safe(wrong.message)}.\nInstead: write {safe(right, 500)}."

    def _refuse_sealed_read(self, actor: Actor, touch: Touch) -> str:
        """Refuse to read a credential of this repository in a folder known only at run time."""
        name = touch.path.rpartition(UNKNOWN)[2]
        path = name.removeprefix("/cwd" if touch.path.startswith("/proc/") else "").removeprefix(
            "/"
        )
        if touch.writes or path == name or not os.path.isfile(self._request.full(path)):
            return ""
        given = self._request.access.read(actor, self._request.full(path))
        return _format_refusal(given) if sealed(Target(path)) and not given.allowed else ""

    def _refuse_message(self) -> str:
        """Refuse a message to an agent that this one may not write to."""
        actor, name = self._request.actor, self._request.input.recipient
        message, access = self._request.input.message, self._request.access
        if actor is None or not name:
            return ""
        try:
            given = access.contact(actor, name, message)
        except YoloError:  # one of the host's own
            return ""
        if given.allowed:
            return ""
        instead = access.advise_on_message(actor, name, message)
        return f"{given.rule}\nInstead: {instead}" if instead else _format_refusal(given)

    def _refuse_impersonation(self) -> str:
        """Refuse a tool or a verb that acts in the name of another agent."""
        hook_input, actor = self._request.input, self._request.actor
        if actor is None:
            return ""
        speakers = [
            (hook_input.speaks_for, hook_input.asks_us),
            *((use.speaks_for, True) for use in hook_input.call.own),
        ]
        for name, asks_us in speakers:
            try:
                is_own = not name or self._request.access.actor(name) == actor
            except YoloError:  # nobody's name, which only our own tools would take for one
                is_own = not asks_us
            if not is_own:
                return (
                    f"This session runs as {actor.name} and cannot act for "
                    f"{safe(name, 80)}.\nInstead: use your own name, or none."
                )
        return ""

    def _refuse_reserved_verb(self) -> str:
        """Refuse a verb of ours that is for a person to decide, or for another department."""
        actor = self._request.actor
        for use in self._request.input.call.own if actor or self._request.directive else ():
            what = safe(use.what)
            if no := refuse_verb(actor, what, use.verb, use.department):
                return f"{no.rule}\nInstead: {no.instead}"
        return ""

    def _is_whole(self, path: str) -> bool:
        """Return whether a path is the planning tree, the repository or a folder that holds it."""
        root = os.path.realpath(self._request.repository.root)
        return path in (".", ".git", PLANNING_ROOT) or f"{root}/".startswith(
            f"{path.removeprefix('../').rstrip('/')}/"
        )

    def _is_scratch(self, touch: Touch, path: str) -> bool:
        """Return whether a file can get into no commit: git ignores it, and it is no credential."""
        if path.startswith((f"{PLANNING_ROOT}/", "../")) or path == PLANNING_ROOT:
            return False
        row = sealed(Target(path))
        is_removed = touch.effect is Effect.REMOVE and row is not None and not row.names
        return (row is None or is_removed) and self._ignored.has(path)

    def _find_guarded_row(self, touch: Touch, path: str) -> Guarded | None:
        """Return the row of a file that only a command writes, or of the first in a removed
        folder.
        """
        row = self._request.access.guarded(path)
        if row is None and touch.effect in _OF_FOLDERS and holds_guarded(path):
            for name in _file_names_below(self._request.full(path)):
                row = row or self._request.access.guarded(f"{PLANNING_ROOT}/{name}")
        return row

    def _make_edit_check(self) -> Callable[[str], str]:
        """Return a function that tells why a path may not be edited; the handoff is read once."""
        handoffs = DirectiveHandoffs(self._request.repository, self._request.settings)
        receiver = directive_role(self._request.role)

        @cache
        def permission(editing: str) -> Permission:
            return handoffs.may_edit(datetime.now(UTC), receiver=receiver, editing=editing)

        def why(path: str) -> str:
            if not _is_inside(path) or permission("").allowed:
                return ""
            given = permission(path)
            return "" if given.allowed else _not_handed_over(given)

        return why


_OF_FOLDERS = (Effect.REMOVE, Effect.FILL)
"""Effects on a folder that are effects on everything in it."""


def _format_stranger(name: str) -> str:
    """Return the refusal of one who would write as an agent that there is not."""
    hint = hint_for_agent(name)
    meant = hint.partition(" Known names: ")[0] if hint.startswith("Did you mean") else hint
    return (
        f"No agent of the company is named {safe(name, 80)!r}, and below {PLANNING_ROOT}/ each "
        f"agent has its own permissions. {meant}\n"
        "Instead: ask your user to start you under the right name, at the host or in YOLO_FS_AGENT."
    )


def _holds_rules(path: str) -> bool:
    """Return whether files in a folder may be such as only some may write."""
    return f"{path}/".startswith(f"{PLANNING_ROOT}/") or _is_of_git(path)


def _is_of_git(path: str) -> bool:
    """Return whether a file is git's own: its mode alone decides whether a hook runs."""
    return ".git" in path.casefold().split("/")


def _skipped(command: str) -> str:
    return (
        f"{safe(command)} skips the hooks that check each commit here; only a person may do that.\n"
        "Instead: run it without that option; if a hook is wrong, report its message to your user."
    )


def _format_other(name: str) -> str:
    return f"That record speaks for {safe(name)}.\nInstead: {advise_to_ask(name)}."


def _format_refusal(given: AccessDecision) -> str:
    ask = (
        f"\nInstead: ask {', then '.join(given.ask)}"
        if given.ask
        else "\nInstead: leave it to its owner"
    )
    bring = f", and bring {', '.join(given.bring)}" if given.bring else ""
    return f"{given.rule}{ask}{bring}."


def _not_handed_over(given: Permission) -> str:
    why = "\n".join(f"- {finding}" for finding in given.findings)
    instead = (
        "fix what is named, or switch to the branch that it names; 'yolo-fs handoff check' "
        "shows whether it is accepted"
    )
    if given.may_override:
        instead += ", and the operator may accept it with 'yolo-fs handoff check --override WHY'"
    rule = "Nothing may be edited before the handoff is accepted."
    return f"{rule}\n{why}\nInstead: {instead}."


class _Ignored:
    """Which paths git ignores, each asked once."""

    def __init__(self, repository: Repository):
        self._rules = IgnoreRules(repository, of_tracked=False)
        self._known: dict[str, bool] = {}

    def has(self, path: str) -> bool:
        """Return whether git ignores a path, as a file or as a folder."""
        if path not in self._known:  # a folder that is not there yet has to be called one
            self._known[path] = any(self._rules.find((path, f"{path}/")))
        return self._known[path]

    def close(self) -> None:
        self._rules.close()


def _refuse_excess(why: str) -> str:
    return (
        f"This command is too large to check in time: {why}.\n"
        "Instead: split it into several commands; a long text goes into a file with the tool that "
        "writes files."
    )


def _is_inside(path: str) -> bool:
    return not path.startswith("../")


def _file_names_below(folder: str) -> Iterator[str]:
    for _, _, names in os.walk(folder):
        yield from names


def _check_after_tool(request: HookRequest) -> HookAnswer:
    """Check the artifacts that were just written, and report every fault with its repair."""
    root = request.repository.root
    writes = (touch for touch in request.input.call.touches if touch.writes and touch.is_certain)
    paths = [path for touch in writes for path in request.paths(touch)]
    there = [path for path in dict.fromkeys(paths) if os.path.isfile(os.path.join(root, path))]
    ours = list(filter(_is_judged, there))
    elsewhere = "\n".join(map(str, _find_elsewhere(request.repository, there)))
    if not ours:
        return HookAnswer(context=elsewhere)
    note_written(request, ours)
    from yolo_fs.checking.validate import Validator

    with contextlib.closing(Validator(root)) as validator:
        judged = [file for file in validator.paths(ours) if file.findings]
        wrong = [_faults(validator, root, file) for file in judged if errors(file.findings)]
    if wrong:
        return HookAnswer(refusal="\n".join((*wrong, *filter(None, (elsewhere,)))))
    messages = (str(finding) for file in judged for finding in file.findings)
    return HookAnswer(context="\n".join((*messages, *filter(None, (elsewhere,)))))


def _find_elsewhere(repository: Repository, paths: Sequence[str]) -> Iterator[Finding]:
    """Yield where files outside the planning tree belong, by their names."""
    numbered = [path for path in paths if is_numbered(path)]
    yield from filter(None, (misplaced(path) for path in paths if path not in numbered))
    if numbered:  # in a project about plans, git knows the others
        yield from find_misplaced(repository, *map(literally, numbered))


def _check_after_failure(request: HookRequest) -> HookAnswer:
    """Report the same for a command that failed after writing; the host is told, not refused."""
    answer = _check_after_tool(request)
    return HookAnswer(context=answer.refusal or answer.context)


def _is_judged(path: str) -> bool:
    is_named = classify(path) is not None or path.rpartition("/")[2] == HANDOFF
    return is_named or path == CONFIG or misnamed(path) is not None


def _faults(validator: Validator, root: str, judged: CheckedFile) -> str:
    from yolo_fs.artifacts.repair import diff
    from yolo_fs.checking.fix import fix, fixable_of

    faults = "\n".join(f"- {finding}" for finding in judged.findings)
    fixed = fix(validator, judged, os.path.join(root, judged.path), write=False)
    repair = ""
    if fixed.is_changed:
        command = f"yolo-fs fix {shlex.quote(safe(judged.path))} --write"
        shown = safe_lines(diff(fixed.before, fixed.after, judged.path))
        mends = fixable_of(validator, (judged,), of_tree=False).sentence
        repair = f"\nThis part can be repaired automatically, by `{command}`:\n{shown}\n{mends}"
    what = "is not valid: what was in force before holds"
    if judged.path != CONFIG:
        what = "is not valid and will not be committed"
    return f"{safe(judged.path)} {what}:\n{faults}{repair}"


_ANSWERS: Mapping[str, Callable[[HookRequest], HookAnswer]] = {
    "pre-tool-use": lambda request: Guard(request).answer(),
    "post-tool-use": _check_after_tool,
    "post-tool-use-failure": _check_after_failure,
}


def answer(hook_input: HookInput) -> HookAnswer:
    """Answer whether a tool may run, or whether what it did is right.

    Raises:
        YoloError: the environment is wrong; the host goes on as if it had not asked.
    """
    with Repository(hook_input.root or hook_input.cwd) as repository:
        request = HookRequest(repository, hook_input)
        answered = _ANSWERS[hook_input.event](request)
    if request.fault is None:
        return answered
    why = f"{request.fault.reason.value}: {safe(request.fault.message, 500)}"
    note = f"yolo-fs hook: {why}; what was in force before holds"
    return answered._replace(note="\n".join(filter(None, (answered.note, note))))
