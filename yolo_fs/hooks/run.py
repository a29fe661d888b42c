"""What each git hook checks, warns of and proposes, once something of ours is concerned.

It checks what git is about to take: the index, the message, the commits to be pushed; never the
work tree.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from yolo_fs.artifacts.naming import first_line, is_sound
from yolo_fs.core.reasons import Finding, Level, Reason, YoloError, errors, safe
from yolo_fs.protocol.hooks import ANNOUNCED_BY

if TYPE_CHECKING:
    from yolo_fs.agents.access import Access
    from yolo_fs.authority.actors import Actor
    from yolo_fs.git.repository import Repository
    from yolo_fs.workspace.settings import Settings

WHO = ("YOLO_FS_AGENT", "YOLO_FS_ROLE")
"""Variables in which an agent's session names the committer, the more exact one first.
`dev` is the role of `fe-dev`; without any, an agent's name as author counts.
"""

_SHOWN = 20
_DAY_S = 86_400


def _print_findings(findings: Iterable[Finding], conclusion: str = "") -> bool:
    """Print findings; return whether none of them is an error."""
    listed = tuple(findings)
    for finding in listed[:_SHOWN]:
        print(f"{'warning: ' if finding.level is Level.WARNING else ''}{finding}", file=sys.stderr)
    if len(listed) > _SHOWN:
        where = "'yolo-fs validate' and 'yolo-fs verify' show all"
        print(f"… and {len(listed) - _SHOWN} more: {where}", file=sys.stderr)
    if errors(listed) and conclusion:
        print(f"yolo-fs: {conclusion}", file=sys.stderr)
    return not errors(listed)


def _warn(findings: Iterable[Finding]) -> bool:
    """Print findings about something that has already happened."""
    from dataclasses import replace

    return _print_findings(replace(finding, level=Level.WARNING) for finding in findings)


def pre_commit(_: Sequence[str]) -> bool:
    """Check what is staged: its content, the committing role, the branch."""
    from yolo_fs.checking.validate import Validator

    paths, mends = staged_paths(), ""
    with closing(Validator(".")) as validator:
        # What a person commits is theirs; an agent takes back no word of another by hand.
        staged = validator.staged(with_records=_is_agent())
        files = [judged for judged in staged if judged.findings]
        findings = [finding for judged in files for finding in judged.findings]
        if files:
            from yolo_fs.checking.fix import fixable_of  # most commits need no repair

            mends = fixable_of(validator, files).sentence
    with _repository() as repository:
        settings = _settings(repository)
        findings += [*of_role(repository, settings, paths), *_check_branch(repository, settings)]
    passed = _conclude(findings, settings, "the commit is refused; what is staged is as it was")
    if mends:
        print(f"{mends}, then 'git add' it", file=sys.stderr)
    return passed


def staged_paths() -> tuple[str, ...]:
    """Return the paths that the commit would change, by the index that git passed to the hook."""
    from yolo_fs.git.as_user import run_as_user

    listed = run_as_user(".", ["diff", "--cached", "--name-only", "--no-renames", "-z"])
    return tuple(os.fsdecode(path) for path in listed.out.split(b"\0") if path)


def of_role(repository: Repository, settings: Settings, paths: Sequence[str]) -> Iterable[Finding]:
    """Yield the paths that the committing role may not write."""
    name = _role()
    if not name:
        return
    from dataclasses import replace

    from yolo_fs.agents.access import Access
    from yolo_fs.artifacts.classify import PLANNING_ROOT
    from yolo_fs.authority.access import personal
    from yolo_fs.protocol.handoffs import directive_role

    access = Access(repository, settings)
    try:
        actor = access.actor(name)
    except YoloError as error:
        if directive := directive_role(name):
            yield from _not_handed_over(repository, settings, directive, paths)
            yield from _refused(directive, access, None, filter(personal, paths))
        else:  # its rights are unknown; a commit of source alone is not ours to refuse
            is_ours = any(path.startswith(f"{PLANNING_ROOT}/") for path in paths)
            yield replace(error.as_finding(), level=Level.ERROR if is_ours else Level.WARNING)
        return
    yield from _refused(actor.name, access, actor, paths)


def _refused(
    name: str, access: Access, actor: Actor | None, paths: Iterable[str]
) -> Iterable[Finding]:
    for path in paths:
        answer = access.write(actor, path)
        if not answer.allowed:
            hint = f"Ask {', '.join(answer.ask)}." if answer.ask else ""
            message = f"{name}: {answer.rule.rstrip('.')}"
            yield Finding(Reason.OUT_OF_LANE, path, message=message, hint=hint)


def _not_handed_over(
    repository: Repository, settings: Settings, receiver: str, paths: Sequence[str]
) -> Iterable[Finding]:
    """Yield why a directive's role may not go on; its branch is checked for everybody."""
    from datetime import UTC, datetime

    from yolo_fs.handoff_service.accept import DirectiveHandoffs

    handoffs, now = DirectiveHandoffs(repository, settings), datetime.now(UTC)
    given = handoffs.may_edit(now, receiver=receiver)
    if given.allowed or all(
        handoffs.may_edit(now, receiver=receiver, editing=path).allowed for path in paths
    ):
        return
    yield from (
        finding for finding in given.findings if finding.reason is not Reason.BRANCH_MISMATCH
    )


def _role() -> str:
    """Return the committing agent; empty for a person."""
    if announced := _read_announced_agent():
        return announced
    from yolo_fs.protocol.roster import AGENT_BY_NAME, bare_name, without_number

    author = bare_name(_INHERITED.get(AUTHOR, ""))
    return author if without_number(author) in AGENT_BY_NAME else ""


def _read_announced_agent() -> str:
    from yolo_fs.protocol.roster import bare_name

    agent = next(filter(None, map(os.environ.get, WHO)), "")
    return bare_name(agent)


AUTHOR = "GIT_AUTHOR_NAME"
_INHERITED: dict[str, str] = {}
"""git's variables at the start: opening the repository drops them from the environment."""


def _is_agent() -> bool:
    """Whether an agent runs this git: its host, or its name, says so."""
    return any(os.environ.get(name) for name in ANNOUNCED_BY) or bool(_role())


def _conclude(findings: Sequence[Finding], settings: Settings, refusal: str) -> bool:
    """Refuse faults of an agent, and of people if their team wants that; otherwise warn."""
    if _is_agent() or settings.policy.hooks_hold_people:
        return _print_findings(findings, refusal)
    return _warn(findings)


def _check_branch(repository: Repository, settings: Settings) -> Iterable[Finding]:
    """Yield what is wrong with the branch under the latest handoff, unless that is closed."""
    from datetime import UTC, datetime

    from yolo_fs.handoff_service.accept import DirectiveHandoffs

    handoffs = DirectiveHandoffs(repository, settings)
    path = handoffs.latest()
    if not path:
        return
    handed = handoffs.check(handoffs.sessions.open(path), datetime.now(UTC))
    packet = handed.packet
    if packet is None or packet.directive_branch == repository.head().branch:
        return
    yield from (finding for finding in handed.findings if finding.reason is Reason.BRANCH_MISMATCH)


def prepare_commit_msg(arguments: Sequence[str]) -> bool:
    """Propose subject and trailers if the user gave no message; name the agent if there is one."""
    from yolo_fs.checking.verify import prescribed_for
    from yolo_fs.git.as_user import run_as_user
    from yolo_fs.system.store import open_regular

    file, *source = arguments
    if not _is_message_of_git(file):
        return True
    paths = staged_paths()
    role = _read_announced_agent()
    inherits = not source or source[0] == "template"
    prescription = prescribed_for(paths[0]) if inherits and len(paths) == 1 else None
    if prescription is not None:
        subject, trailers = prescription
        with open(file, encoding="utf-8", errors="surrogateescape") as old:
            rest = old.read()
        body = "".join(f"{key}: {value}\n" for key, value in trailers)
        folder, name = os.path.split(os.path.realpath(file))
        flags = os.O_WRONLY | os.O_TRUNC
        descriptor = open_regular(os.path.join(folder, name), flags, root=folder)
        with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as new:
            new.write(f"{subject}\n\n{body}{rest}" if not first_line(rest) else rest)
    elif role and source[:1] != ["commit"]:
        given = ["interpret-trailers", "--in-place", "--if-exists", "addIfDifferent"]
        run_as_user(
            ".", [*given, "--trailer", f"Executed-By: {safe(role, 60)}", os.path.abspath(file)]
        )
    return True


def _is_message_of_git(file: str) -> bool:
    """Return whether a file is the message that git has written.

    Whoever runs this hook by hand may name any other file.
    """
    folder, name = os.path.split(os.path.abspath(file))
    is_git = os.path.lexists(f"{folder}/HEAD") and name.endswith("MSG")
    return is_git and not os.path.islink(file)


def commit_msg(arguments: Sequence[str]) -> bool:
    """Refuse a subject that breaks the grammar, or give a hint once a day.

    It is refused where an agent's commit belongs to the protocol, or the team wants everybody to be
    held.
    """
    from yolo_fs.checking.verify import is_of_the_protocol, subject_fault

    with open(arguments[0], encoding="utf-8", errors="replace") as file:
        message = file.read()
    subject = first_line(
        message, _read_comment_char() if message.lstrip()[:1] not in ("", "#") else "#"
    )
    if not subject or is_sound(subject):
        return True
    fault = subject_fault(subject)
    refusal = (
        f"the commit is refused; 'git commit --edit -F {arguments[0]}' continues with your text"
    )
    if _is_agent() and is_of_the_protocol(subject, staged_paths()):
        return _print_findings([fault], refusal)
    with _repository() as repository:
        if _settings(repository).policy.hooks_hold_people:
            return _print_findings([fault], refusal)
        if _is_hint_due(repository):
            print(f"yolo-fs: tip, once a day: {safe(fault.hint)}", file=sys.stderr)
    return True


def _is_hint_due(repository: Repository) -> bool:
    from yolo_fs.hooks.script import HINTED
    from yolo_fs.system.store import private_directory, write_atomic

    note = os.path.join(repository.common_dir, HINTED)
    try:
        if time.time() - os.stat(note).st_mtime < _DAY_S:
            return False
    except OSError:
        pass
    try:
        private_directory(os.path.dirname(note))
        write_atomic(note, durable=False)
    except YoloError:  # it could not be said only once
        return False
    return True


def _read_comment_char() -> str:
    from yolo_fs.git.as_user import run_as_user

    character = run_as_user(".", ["config", "--get", "core.commentChar"]).out.decode().strip()
    return character if len(character) == 1 else "#"


def post_commit(_: Sequence[str]) -> bool:
    """Report faults of the commit just made: `--no-verify` disables the other hooks."""
    from yolo_fs.checking.verify import broken_rules

    with _repository() as repository:
        broken = broken_rules(
            repository, _settings(repository), "HEAD", limit=1, by_agent=_is_agent()
        )
        findings = [fault.finding for fault in broken]
    if findings:
        _warn(findings)
        print(
            "yolo-fs: this commit breaks the rules; 'git commit --amend' can fix it",
            file=sys.stderr,
        )
    return True


def after_move(_: Sequence[str]) -> bool:
    """Warn when the branch now checked out is not that of the latest handoff."""
    with _repository() as repository:
        _warn(_check_branch(repository, _settings(repository)))
    return True


def post_rewrite(_: Sequence[str]) -> bool:
    """Name the summaries whose commits were just rewritten, with the new ids."""
    from glob import glob

    from yolo_fs.artifacts.classify import PLANNING_ROOT
    from yolo_fs.system.files import content_of

    moved = dict(line.split()[:2] for line in sys.stdin if len(line.split()) >= 2)
    findings = []
    for path in sorted(glob(f"{PLANNING_ROOT}/phases/*/*.summary.jsonl")):
        text = content_of(path).decode("utf-8", "replace")
        for old, new in moved.items():
            if old[:7] in text:
                message = f"it names commit {old[:7]}, which was rewritten"
                findings.append(
                    Finding(Reason.UNKNOWN_COMMIT, path, message=message, expected=new[:7])
                )
    return _warn(findings)


def pre_push(arguments: Sequence[str]) -> bool:
    """Refuse a push of commits that break the rules."""
    from yolo_fs.checking.verify import broken_rules, hooks_since

    remote = arguments[0] if arguments else ""
    findings: list[Finding] = []
    with _repository() as repository:
        since = hooks_since(repository)
        settings = _settings(repository)
        for line in sys.stdin:
            fields = line.split()
            if len(fields) == 4 and fields[1].strip("0"):
                beyond = {*_find_remote_tips(repository, fields[3], remote), *filter(None, [since])}
                broken = broken_rules(
                    repository, settings, fields[1], *(f"^{oid}" for oid in sorted(beyond))
                )
                findings += [fault.finding_with_commit for fault in broken]
    return _conclude(findings, settings, "the push is refused; nothing has left")


def _find_remote_tips(repository: Repository, tip: str, remote: str) -> Sequence[str]:
    """Return commits that the remote has: the branch's tip there, else all that is known of it."""
    if tip.strip("0") and repository.commits_exist([tip])[tip]:
        return [tip]
    listed = repository.git.run("for-each-ref", "--format=%(objectname)", f"refs/remotes/{remote}/")
    return listed.out.decode().split()


def _repository() -> Repository:
    from yolo_fs.git.repository import Repository

    return Repository(".")


def _settings(repository: Repository) -> Settings:
    from yolo_fs.workspace.settings import load_in_force

    return load_in_force(repository.root).settings


HOOKS: Mapping[str, Callable[[Sequence[str]], bool]] = {
    "pre-commit": pre_commit,
    "prepare-commit-msg": prepare_commit_msg,
    "commit-msg": commit_msg,
    "post-commit": post_commit,
    "post-checkout": after_move,
    "post-merge": after_move,
    "post-rewrite": post_rewrite,
    "pre-push": pre_push,
}
"""Name of a hook → its function; False refuses."""


def run_hook(name: str, arguments: Sequence[str]) -> bool:
    """Answer one of git's hooks; False refuses."""
    _INHERITED[AUTHOR] = os.environ.get(AUTHOR, "")
    return HOOKS[name](arguments)
