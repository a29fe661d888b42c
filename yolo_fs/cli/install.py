"""`yolo-fs init`: prepare a repository for a team of agents; and `yolo-fs doctor`: what is wrong,
and how to repair it.
"""

from __future__ import annotations

import functools
import os
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.artifacts.classify import PLANNING_ROOT
from yolo_fs.cli.background import start_daemon
from yolo_fs.cli.reply import Invocation, Reply, can_ask, reply_of, verb
from yolo_fs.cli.setup import setup
from yolo_fs.core.reasons import Exit, Finding, Level, Reason, YoloError, counted, errors, safe
from yolo_fs.git.commit import CommitRequest
from yolo_fs.git.repository import Repository
from yolo_fs.hooks import githooks
from yolo_fs.hooks.doctor import examine_hosts
from yolo_fs.install.doctor import Symptom, examine_repository
from yolo_fs.install.init import (
    BEGINNING,
    AddLines,
    Create,
    Deed,
    carry_out,
    command_to_commit,
    find_uncommitted,
    left_to_the_user,
    obstacles,
    plan,
    tree_of_another,
    uncommitted,
    workflow_of,
)
from yolo_fs.progress.placing import FileCommitter, tried
from yolo_fs.protocol.departments import DEFAULT_DEPARTMENT, WORKING_NAMES, Dept
from yolo_fs.protocol.hooks import HOST_BY_NAME, HOSTS
from yolo_fs.protocol.workflow import TEAM_SIZE_BY_NAME, TEAM_SIZES
from yolo_fs.system.ask import answers
from yolo_fs.workspace.settings import CONFIG, Settings, left_out, load

if TYPE_CHECKING:
    from rich.console import Console

_CHOICES = tuple(dept.value for dept in WORKING_NAMES)


def _departments_in(text: str) -> tuple[Dept, ...]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in _CHOICES:
            raise click.BadParameter(f"{name!r} is none of {', '.join(_CHOICES)}")
    return tuple(Dept(name) for name in _CHOICES if name in names)


@verb("init", example="yolo-fs init --departments backend,frontend,uiux")
@click.option("--dry-run", is_flag=True, help="Print what would be done; change nothing.")
@click.option(
    "--departments",
    default="",
    metavar="LIST",
    callback=lambda _context, _parameter, text: _departments_in(text),
    help=f"Departments that work on a phase: {','.join(_CHOICES)}. Backend always does; several "
    "work in parallel.",
)
@click.option(
    "--team",
    type=click.Choice(tuple(TEAM_SIZE_BY_NAME)),
    default=None,
    help="Size of the team: " + "; ".join(f"{row.name}: {row.does}" for row in TEAM_SIZES) + ".",
)
@click.option(
    "--host",
    type=click.Choice([row.name for row in HOSTS]),
    default=None,
    help="Install our hooks in this agent host, too; see 'yolo-fs setup'.",
)
@click.option("--no-hooks", is_flag=True, help="Install no git hooks; see 'yolo-fs hooks'.")
@click.option("--commit", "is_committed", is_flag=True, help="Commit the files that it makes.")
@click.option("--start", "is_started", is_flag=True, help="Start the daemon afterwards.")
def init(
    invocation: Invocation,
    *,
    dry_run: bool,
    departments: tuple[Dept, ...],
    team: str | None,
    host: str | None,
    no_hooks: bool,
    is_committed: bool,
    is_started: bool,
) -> Reply:
    """Make the planning tree `.yolo-planning/` in this repository.

    Never overwrites a file and never changes your own .gitignore; a second run does nothing. On a
    terminal, questions cover what the command line leaves open: team, departments, commit, daemon,
    host, and each change of a hook that belongs to the files of your team, as with husky. Without a
    terminal, 'yolo-fs hooks install' changes such a hook.
    """
    with Repository(invocation.start) as repository:
        if there := left_out(repository.root):
            raise there
        if elsewhere := tree_of_another(repository):
            message = f"{elsewhere.path} belongs to another repository: {elsewhere.message}"
            raise YoloError(elsewhere.reason, message, hint=elsewhere.hint)
        deeds = plan(repository.root, departments, team or "")
        makes = any(isinstance(deed, Create) for deed in deeds)
        if makes and not dry_run and can_ask(invocation):
            team = team or _ask_team()
            departments = departments or _ask_departments()
            is_committed = is_committed or click.confirm(
                "Commit the files that it makes?", default=True
            )
            is_started = is_started or click.confirm("Start the daemon?", default=True)
            host = host or _ask_host(repository.root)
            deeds = plan(repository.root, departments, team)
        files = uncommitted(repository, deeds) if is_committed else {}
        if files and not dry_run:
            FileCommitter(repository, load(repository.root)).refuse_obstacle(repository.head())
        if not dry_run:
            deeds = carry_out(repository.root, deeds)
            files = uncommitted(repository, deeds) if is_committed else {}
        hooks = () if no_hooks else githooks.plan_install(repository)
        shared = githooks.shared(repository, hooks)
        unasked = []
        is_asked = not dry_run and can_ask(invocation)
        if shared and not (is_asked and _may_change(shared)):
            unasked += [] if is_asked else [_unasked(repository.root, shared)]
            hooks = ()
        unmade = [] if dry_run else _make_hooks(repository, hooks)
        settings = load(repository.root)
        commit_ignored = settings.policy.commit_ignored
        in_the_way = obstacles(repository, commit_ignored=commit_ignored, files=tuple(files))
        findings = [*in_the_way]
        commit, set_up = "", Reply()
        is_held = bool(files and in_the_way)
        if files and not is_held and not dry_run:
            commit = _committed(repository, settings, files)
        is_left = not is_committed and find_uncommitted(repository) is not None
        left = _left(tuple(left_to_the_user(repository, deeds))) if is_committed else []
        findings += left
        if host:
            set_up = _set_up(invocation, host, dry_run=dry_run)
            findings += set_up.findings
        if is_started and not dry_run:
            findings += start_daemon(repository, None).findings
    kept_config = not any(isinstance(deed, Create) and deed.path == CONFIG for deed in deeds)
    refused = _compare_departments(settings.config.departments, departments) if kept_config else []
    if kept_config and team not in (None, settings.config.company.team):
        refused.append(_finding_for_other_team(settings.config.company.team, team))
    made = {"committed": is_committed and not is_held, "started": is_started, "host": bool(host)}
    next_ = _next(repository.root, invocation.start, is_held=bool(in_the_way), **made)
    commits = () if is_held else tuple(files)
    is_said = is_committed and not is_held and (commits or not left)
    said_of_commit = _tell_commit(commit, commits) if is_said else ""
    spell = functools.partial(_spell, invocation.start, repository.root)
    return Reply(
        {
            "root": repository.root,
            "state": _state(deeds, dry_run=dry_run),
            "deeds": [_as_json(deed) for deed in deeds],
            "hooks": [{"path": deed.path, "did": deed.did} for deed in hooks if not unmade],
            "team": settings.config.company.team if kept_config or not dry_run else team or "",
            "commit": commit,
            "commits": commits,
            "host": host or "",
            "next": next_,
        },
        [*findings, *refused, *githooks.unfit(hooks), *unmade, *unasked],
        Exit.FINDINGS if refused or is_held else Exit.DONE,
        lambda console: _show(
            console,
            spell,
            deeds,
            () if unmade else hooks,
            said_of_commit,
            next_ if makes or is_held or is_left else (),
            set_up,
            dry_run=dry_run,
        ),
    )


def _tell_commit(commit: str, files: Sequence[str]) -> str:
    if not files:
        return "nothing is left to commit"
    return f"committed {commit[:12] or counted(len(files), 'file')} {BEGINNING}"


def _left(paths: Sequence[str]) -> list[Finding]:
    """Return what says why `--commit` leaves some files alone."""
    if not paths:
        return []
    more = f", like {len(paths) - 1} more" if len(paths) > 1 else ""
    listed = " ".join(map(shlex.quote, paths))
    return [
        Finding(
            Reason.STATE_CONFLICT,
            paths[0],
            message=f"its content is not that of init{more}, so you have to commit it",
            hint=f"'git add {listed}' stages it.",
            level=Level.WARNING,
            command=f"git status -- {listed}",
        )
    ]


def _ask_team() -> str:
    for row in TEAM_SIZES:
        click.echo(f"  {row.name}: {row.does}")
    sizes = click.Choice(tuple(TEAM_SIZE_BY_NAME))
    return str(click.prompt("How much of the company works?", type=sizes, default="company"))


def _ask_departments() -> tuple[Dept, ...]:
    question = f"Who works on a phase? ({', '.join(_CHOICES)})"
    departments: tuple[Dept, ...] = click.prompt(
        question, default=DEFAULT_DEPARTMENT.value, value_proc=_departments_in
    )
    return departments


def _ask_host(root: str) -> str | None:
    """Return the first host that is there and wanted."""
    question = "Install our hooks in {}, so that it asks before an edit?"
    return next((name for name in _hosts_at(root) if click.confirm(question.format(name))), None)


def _hosts_at(root: str) -> list[str]:
    return [
        row.name
        for row in HOSTS
        if shutil.which(row.name) or os.path.isdir(os.path.join(root, f".{row.name}"))
    ]


def _set_up(invocation: Invocation, host: str, *, dry_run: bool) -> Reply:
    if dry_run:
        name = HOST_BY_NAME[host].settings
        return Reply(show=lambda console: console.print(f"hooks     {name}"))
    flags = dict.fromkeys(("local", "mcp", "roles", "check", "remove"), False)
    return reply_of(setup, invocation, host=host, agent="", plugin=None, **flags)


def _may_change(paths: Sequence[str]) -> bool:
    for path in paths:
        click.echo(f"  {safe(os.path.relpath(path), 500)}")
    question = "Git looks for hooks among the files of your team. Change these?"
    return click.confirm(question, default=False)


def _unasked(root: str, paths: Sequence[str]) -> Finding:
    folder = os.path.relpath(os.path.dirname(paths[0]), root)
    return Finding(
        Reason.HOOK_BROKEN,
        folder,
        message=f"the hooks here are files of your team, so init leaves all {len(paths)} alone",
        expected="ours in them, which give hints before a commit",
        hint="'yolo-fs hooks install --dry-run' lists them, 'yolo-fs hooks install' changes them.",
        level=Level.WARNING,
    )


def _committed(repository: Repository, settings: Settings, files: Mapping[str, bytes]) -> str:
    """Commit files that are there, and nothing else."""
    (path, data), *beside = files.items()
    request = CommitRequest(path, data, BEGINNING, beside=tuple(beside))
    committer = FileCommitter(repository, settings)
    return tried(lambda: committer.commit(request, repository.head(), files))


def _finding_for_other_team(kept: str, wanted: str | None) -> Finding:
    return Finding(
        Reason.STATE_CONFLICT,
        CONFIG,
        at="/company/team",
        message=f"the file is kept as it is, with the team {kept}",
        expected=f"{wanted}, as asked",
        hint=f"'yolo-fs go --team {wanted}' sets it and begins.",
    )


def _next(
    root: str, start: str, *, is_held: bool, committed: bool, started: bool, host: bool
) -> list[str]:
    """Return the next commands.

    `is_held`: a rule of git's keeps files from being committed, so 'git add' would fail.
    """
    planning = os.path.relpath(os.path.join(root, PLANNING_ROOT), os.path.realpath(start))
    commit = "yolo-fs init --commit" if is_held else command_to_commit([planning])
    commands = [] if committed else [commit]
    hosts = _hosts_at(root)
    commands += [] if host else [f"yolo-fs setup {name}" for name in hosts]
    commands += [] if started else ["yolo-fs start"]
    return [*commands, 'yolo-fs go "…"' if hosts or host else "yolo-fs phase new SLUG"]


def _compare_departments(config: Mapping[str, bool], departments: Sequence[Dept]) -> list[Finding]:
    """Return a finding if the requested departments differ from the existing configuration."""
    active = {name for name in _CHOICES if config.get(name)} | {DEFAULT_DEPARTMENT.value}
    wanted = {*departments, DEFAULT_DEPARTMENT.value}
    if not departments or active == wanted:
        return []
    return [
        Finding(
            Reason.STATE_CONFLICT,
            CONFIG,
            at="/departments",
            message=f"the file is kept as it is, with {_listed(active)}",
            expected=f"{_listed(wanted)}, as asked",
            hint="Edit its departments, and set department_workflow to "
            f"{workflow_of(departments)}.",
        )
    ]


def _listed(names: set[str]) -> str:
    return ",".join(name for name in _CHOICES if name in names)


def _state(deeds: Sequence[Deed], *, dry_run: bool) -> str:
    if not any(isinstance(deed, Create | AddLines) for deed in deeds):
        return "already_initialised"
    return "would_initialise" if dry_run else "initialised"


def _as_json(deed: Deed) -> dict[str, Any]:
    lines = {"lines": list(deed.lines)} if isinstance(deed, AddLines) else {}
    return {"path": deed.path, "did": deed.did, **lines}


_MEANINGS = {
    "git": "only this once: yolo-fs commits from then on",
    "yolo-fs init": "once git allows it",
    "yolo-fs setup": "have the host ask before an edit, and brief each session",
    "yolo-fs start": "watch, and commit what agents write",
    "yolo-fs go": "have agents do it, from an intent to a shipped phase",
    "yolo-fs phase": "make the first phase",
}


def _make_hooks(repository: Repository, hooks: Sequence[githooks.Deed]) -> list[Finding]:
    """Make the hooks, and return why they cannot be; the planning tree does not depend on them."""
    try:
        githooks.carry_out(repository, hooks)
    except YoloError as error:
        hint = (
            "Fix that, then run 'yolo-fs hooks install'; everything else works without the hooks."
        )
        return [replace(error.as_finding(), hint=hint, level=Level.WARNING)]
    return []


def _show(
    console: Console,
    spell: Callable[[str], str],
    deeds: Sequence[Deed],
    hooks: Sequence[githooks.Deed],
    commit: str,
    next_: Sequence[str],
    set_up: Reply,
    *,
    dry_run: bool,
) -> None:
    if dry_run:
        print("Nothing is changed. This would be done:")
    for deed in deeds:
        print(f"{deed.did:9} {spell(deed.path)}")
        for line in deed.lines if isinstance(deed, AddLines) else ():
            print(f"          + {line}")
    for hook in hooks:
        print(f"{hook.did:9} {spell(hook.path)}")
    if commit:
        print(commit)
    if set_up.show:
        set_up.show(console)
    if next_:
        print(f"\nNext: describe the project in {spell(PLANNING_ROOT)}/PROJECT.md")
        for command in next_:
            meaning = next(says for words, says in _MEANINGS.items() if command.startswith(words))
            print(f"  {command:38}  # {meaning}")


def _spell(start: str, root: str, path: str) -> str:
    """Return a path as it is spelled where the command runs."""
    return safe(os.path.relpath(os.path.join(root, path), os.path.realpath(start)), 500)


@verb("doctor", example="yolo-fs doctor --fix --dry-run")
@click.option("--fix", is_flag=True, help="Repair what can be repaired without losing anything.")
@click.option("--dry-run", is_flag=True, help="With --fix: only print what would be done.")
def doctor(invocation: Invocation, *, fix: bool, dry_run: bool) -> Reply:
    """Check git, the planning tree, the locks, the index and the daemon, and list what is wrong.

    --fix deletes only what is provably ours, and never moves a branch.
    """
    with Repository(invocation.start) as repository:
        symptoms = _look_everywhere(repository, invocation.start)
        mended = [symptom for symptom in symptoms if fix and symptom.mend is not None]
        for symptom in mended:
            if symptom.mend is not None and not dry_run:
                symptom.mend()
        # What was damaged may have been reported by others as well: they are asked again.
        is_mended = bool(mended) and not dry_run
        left = _look_everywhere(repository, invocation.start) if is_mended else symptoms
        is_observed = answers(repository.own_dir)
    findings = [symptom.finding for symptom in left]
    data = {
        "symptoms": len(symptoms),
        "mended": [symptom.mending for symptom in mended],
        "dry_run": dry_run,
        "observer": is_observed,
    }
    code = Exit.FINDINGS if errors(findings) else Exit.DONE
    return Reply(
        data,
        findings,
        code,
        lambda console: _show_symptoms(
            console, symptoms, mended, is_observed=is_observed, dry_run=dry_run
        ),
    )


def _look_everywhere(repository: Repository, start: str) -> tuple[Symptom, ...]:
    hosts = map(Symptom, examine_hosts(repository, start, looks_for_us=True))
    return (*examine_repository(repository), *hosts)


def _show_symptoms(
    console: Console,
    symptoms: tuple[Symptom, ...],
    mended: list[Symptom],
    *,
    is_observed: bool,
    dry_run: bool,
) -> None:
    if not symptoms:
        console.print("no problems found", style="green")
    for symptom in mended:
        console.print(f"{'would ' if dry_run else ''}{safe(symptom.mending)}")
    if not mended and any(symptom.mend for symptom in symptoms):
        console.print("some of this can be repaired: yolo-fs doctor --fix --dry-run")
    state = "running" if is_observed else "not answering; commands work without it, more slowly"
    console.print(f"background helper: {state}", soft_wrap=True)
