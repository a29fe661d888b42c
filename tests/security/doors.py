"""Every door by which somebody reaches what a repository holds, as the program itself lists them.

A door is a verb, a script, a hook, an event of a host, a tool, a resource, an address or a duty. What
makes it do its work stands in one table, `ROWS`; a door without a row fails `test_doors.py`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import anyio
import click

from tests.e2e.artifacts import PLANNING
from tests.e2e.failing_duty import DUTIES
from tests.support.teams import EXAMPLES
from yolo_fs.cli.main import yolo_fs
from yolo_fs.compat.scripts import SCRIPTS
from yolo_fs.mcp.server import Server
from yolo_fs.protocol.hooks import GIT_HOOKS, HOSTS
from yolo_fs.system.warm_path import ASKED_BY_GIT, HOOK_IN_FULL
from yolo_fs.web.access import Gatekeeper
from yolo_fs.web.server import BoardSite

PHASE = f"{PLANNING}/phases/01-auth"
PLAN = f"{PHASE}/01-01.plan.jsonl"
TASK = "01-01/T1"
FILE = "src/auth/keys.ts"
"""A file of this task."""


class Row(NamedTuple):
    """One way through a door."""

    words: str = ""
    """What follows the door's name, as a shell splits it."""
    given: str = ""
    """What stands on stdin."""
    writes: tuple[str, ...] = ()
    """Patterns of what of the user's this door may write, relative to the place."""
    is_endless: bool = False
    """It goes on until somebody ends it."""
    runs_hooks: bool = False
    """It runs git as its user would have typed it: with the hooks and filters that are there."""


class Door(NamedTuple):
    """One way in."""

    sort: str
    name: str

    def __str__(self) -> str:
        return f"{self.sort} {self.name}"


# --- what there is ---


def verbs(group: click.Command = yolo_fs, *path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield each command below a group that somebody can type, hidden ones too, by its full name."""
    if not isinstance(group, click.Group):
        yield " ".join(path), group
        return
    context = click.Context(group)
    for name in group.list_commands(context) + sorted(vars(group).get("commands", ())):
        command = group.get_command(context, name)
        assert command is not None, (*path, name)
        yield from verbs(command, *path, name)


def events() -> Iterator[tuple[str, str]]:
    """Yield each host with each event that it asks about."""
    for host in HOSTS:
        for name in host.events:
            yield host.name, name


def tools(server: Server) -> dict[str, Mapping[str, Any]]:
    """Return each tool as a client is told of it: name and schema."""
    return {tool.name: dict(tool.input_schema) for tool in anyio.run(server._server.list_tools)}


def resources(server: Server) -> list[str]:
    """Return each address of a resource, and the pattern of each address."""
    fixed = [str(each.uri) for each in anyio.run(server._server.list_resources)]
    patterns = anyio.run(server._server.list_resource_templates)
    return fixed + [str(each.uri_template) for each in patterns]


def prompts(server: Server) -> list[str]:
    """Return each prompt."""
    return [each.name for each in anyio.run(server._server.list_prompts)]


def addresses(site: BoardSite) -> list[str]:
    """Return each address of the board, with its gaps."""
    app: Any = site.app
    return [route.path for route in app.routes]


def every_door(root: str) -> list[Door]:
    """Return all doors of the program; `root`: any repository, for a server shows one."""
    server, site = Server(root), BoardSite([root], Gatekeeper(0, ""))
    try:
        found = {
            "verb": [name for name, _ in verbs()],
            "script": list(SCRIPTS),
            "git hook": [hook.name for hook in GIT_HOOKS],
            "inner verb": [HOOK_IN_FULL, ASKED_BY_GIT],
            "event": [f"{host} {name}" for host, name in events()],
            "tool": list(tools(server)),
            "resource": resources(server),
            "prompt": prompts(server),
            "address": addresses(site),
            "duty": list(DUTIES),
        }
    finally:
        for reader in site._readers:  # nobody follows the events of a site that is not served
            reader.close()
    return [Door(sort, name) for sort, names in found.items() for name in dict.fromkeys(names)]


# --- how to go through them ---

VALUES: Mapping[str, str] = {
    "agent": "dev-1", "because": "a test", "blockers": "none", "budget": "900", "count": "5", "deadline": "9", "files": FILE, "folder": PLANNING, "status": "running", "to_dept": "frontend", "command": "/yolo:fix",
    "department": "backend", "departments": "backend,frontend", "dept": "backend", "error": "none",
    "eta": "soon", "expect_seq": "1", "folders": "../beside", "host": "claude", "kind": "artifact/plan/task",
    "lane": "nats://127.0.0.1:9", "lines": "5", "name": "all-depts", "named": "login", "names": "all-depts",
    "number": "1", "older": "1w", "output": "report.html", "page": "report.html", "path": PLAN, "paths": PLAN,
    "phase": "1", "plan": "01-01", "plans_complete": "1", "plans_total": "2", "plugin": "plugin", "port": "0",
    "receiver": "architect", "remote": "origin", "revision": "HEAD", "revisions": "HEAD", "role": "dev",
    "seconds": "0.1", "since": "0", "step": "planning", "subject": PLAN, "target": "restored",
    "timeout_s": "1", "ttl_s": "9", "type_": "artifact.committed", "wanted": TASK, "words": "x",
}  # fmt: skip
"""Parameter of a verb → what it is given."""
ENDLESS = ("watch", "follow", "is_followed")
"""Flags with which a verb goes on until somebody ends it."""
COMMON = ("start", "quiet", "verbose")
"""Options that every verb takes, and that lead nowhere else."""


class Made(NamedTuple):
    """Rows that follow from the types of a verb's parameters: what it must be given, and then each option alone."""

    first: Row = Row()
    """Its words are put before the others; they replace what it must be given, if any."""

    def rows(self, command: click.Command) -> Iterator[Row]:
        """Yield the rows; the first of them is the shortest."""
        needed = self.first.words or " ".join(
            " ".join(_spelled(each)[0]) for each in command.params if each.required
        )
        yield self.first._replace(words=needed)
        for each in command.params:
            if each.required or each.name in COMMON:
                continue
            for spelled in _spelled(each):
                row = self.first._replace(words=f"{needed} {' '.join(spelled)}")
                yield row._replace(is_endless=row.is_endless or each.name in ENDLESS)


def _spelled(parameter: click.Parameter) -> list[list[str]]:
    """Return the ways in which a parameter is given: a flag, each choice, or a value by its name."""
    is_option = isinstance(parameter, click.Option)
    name = [parameter.opts[0]] if is_option else []
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return [name]
    if isinstance(parameter.type, click.Choice):
        return [[*name, shlex.quote(str(choice))] for choice in parameter.type.choices]
    if parameter.name not in VALUES:
        raise KeyError(f"no value for the parameter {parameter.name!r}")
    return [[*name, shlex.quote(VALUES[parameter.name])]]


def _example(path: str) -> str:
    return (EXAMPLES.parent / path).read_text()


_HOOKS = ("repo/.git/hooks/*", "repo/.git/config", "repo/tools/hooks/*")
_MERGE = ("repo/.git/config", "repo/.git/info/attributes", "repo/.gitattributes")
_TREE = (
    "repo/src/*",
    "repo/.git/COMMIT_EDITMSG",
    "repo/.git/yolo-commit.lock",
    "repo/.git/ORIG_HEAD",
)
_SERVICE = ("home/.config/systemd*",)
_CONSENT = ("home/.config/yolo-fs*", "home/.local*")
"""Where the user's own consent may be kept."""
_HOSTS = (
    "repo/.agents*", "repo/.claude*", "repo/.codex*", "repo/.cursor*", "repo/.mcp.json", "repo/AGENTS.md",
)  # fmt: skip
_INIT = (
    *_HOOKS,
    "repo/.gitignore",
    "repo/.gitattributes",
    "repo/AGENTS.md",
    "repo/CLAUDE.md",
    "repo/documents*",
)
_REMOTE = ("remote.git*", "repo/.git/refs/remotes*", "repo/.git/logs/refs/remotes*")
_NEW_BRANCH = tuple(
    f"repo/.git/{top}refs/heads{name}"
    for top in ("", "logs/")
    for name in ("", "/squashed*", "/review")
)
_PAGE = ("repo/report.html",)
PRODUCT = _example("../product/01_user_to_orchestrator.json")
_NOTE = _example("messages/dev_progress/ok/document.json")
_BLOCKER = _example("messages/dev_blocker/ok/document.json")
_DONE = _example("messages/task_complete/ok/document.json")
MADE = Made()

_VERBS: Mapping[str, Made | tuple[Row, ...]] = {
    "init": Made(Row(writes=(*_INIT, *_HOSTS))),
    "phase new": Made(Row("login-page")),
    "phase list": MADE,
    "phase sign-off": (Row("1", writes=_TREE),),
    "run": (Row("--once", writes=_REMOTE), Row("--once --json", writes=_REMOTE), Row("--json", is_endless=True, writes=_REMOTE)),
    "go": (Row("x --dry-run --with true"), Row("--dry-run --json --host command --with true")),
    **dict.fromkeys(("debug", "fix-it", "research", "qa"), (Row("x --dry-run --with true"),)),
    "company runs": MADE,
    "company show": (Row("fe-dev"), Row("--json"), Row("critic --host codex")),
    "company log": (Row("dev"), Row("dev --json")),
    "start": (Row("--wait --timeout 20", writes=_REMOTE),),
    "stop": MADE,
    "restart": (Row("--wait --timeout 20", writes=_REMOTE),),
    "logs": MADE,
    "service print": MADE,
    "service install": Made(Row(writes=(*_SERVICE, "home/Library*"))),
    "service uninstall": Made(Row(writes=_SERVICE)),
    "status": MADE,
    "board": (Row("--no-open", is_endless=True),),
    "report": Made(Row("-o report.html", writes=_PAGE)),
    "resume": MADE,
    "validate": MADE,
    "fix": (Row(), Row(PLAN), Row("--write"), Row("--json"), Row(f"--write {PLAN} {FILE}")),
    "adopt": Made(Row(writes=(*_PAGE, *_REMOTE))),
    "kept list": MADE,
    "kept show": (*(Row(str(number)) for number in range(1, 9)), Row("1 --json")),
    "kept restore": tuple(
        Row(f"{number} {to}", writes=("repo/restored*", "repo/src/*", "repo/README.md", "repo/lnk2*"))
        for number in range(1, 9) for to in ("", "--to restored")
    ),
    "kept prune": Made(Row("--older 0h")),
    "verify": MADE,
    "events": MADE,
    "dept update": Made(Row("backend --phase 1 --status running")),
    "dept show": MADE,
    "dept cleanup": MADE,
    "gate check": MADE,
    "gate why": MADE,
    "gate list": MADE,
    "gate wait": (Row("all-depts --phase 1 --timeout 0.2"), Row("all-depts --phase 1 --timeout 0.2 --json")),
    "workflow next": MADE,
    "workflow show": MADE,
    "workflow skip": Made(Row("documentation --phase 1 --reason x")),
    "workflow complete": MADE,
    "workflow check": MADE,
    "team join": (
        Row("origin --yes", writes=(*_REMOTE, *_CONSENT)), Row("", writes=_CONSENT), Row("origin"),
        Row("origin --yes --no-source --lane nats://127.0.0.1:9", writes=(*_REMOTE, *_CONSENT)),
    ),
    "team leave": Made(Row(writes=(*_REMOTE, *_CONSENT))),
    "team status": MADE,
    "team sync": Made(Row(writes=_REMOTE)),
    "team resolve": (Row(f"{PLAN} --theirs", writes=_REMOTE), Row(f"{PLAN} --ours", writes=_REMOTE)),
    "team lease list": MADE,
    "team lease take": Made(Row("backend --ttl 1", writes=_REMOTE, is_endless=True)),
    "team lease release": Made(Row(writes=_REMOTE)),
    "forecast": MADE,
    "merge install": Made(Row(writes=_MERGE)),
    "merge uninstall": Made(Row(writes=_MERGE)),
    "merge doctor": MADE,
    "merge-driver": (Row(f"{PLAN} {PLAN} {PLAN} {PLAN}"),),
    "task claim": Made(Row(f"{TASK} --as dev-1")),
    "task claims": MADE,
    "task release": Made(Row("--as dev-1")),
    "task complete": (Row("- --as dev-1", _DONE),),
    "task summary": MADE,
    "agent list": MADE,
    "agent note": (Row("- --as dev-1", _NOTE),),
    "agent shutdown": Made(Row("--reason phase_complete --deadline 10")),
    "agent answers": MADE,
    "commit": (Row(f"--task {TASK} --type feat -m x --paths {FILE}", writes=_TREE, runs_hooks=True),),
    "may": Made(Row(f"dev read {PLAN}")),
    "context compile": (Row("dev --phase 1"), Row("dev --plan 01-01 --json"), Row("--all --phase 1")),
    "context prove": MADE,
    "message check": (Row("-", _NOTE),),
    "message route": Made(Row("--from dev --to senior --type dev_progress")),
    "handoff check": MADE,
    "handoff emit": (
        Row("--from pair --to architect --trigger pair_out_of_scope --objective x --blocking-rule 1"),
    ),
    "handoff parse": (Row("-", "x"), Row(f"{PHASE}/HANDOFF.md")),
    "handoff read": (Row("handoff.json --agent planner --phase plan"),),
    "handoff report": MADE,
    "escalate open": (
        Row(f"--task {TASK} --reason x --evidence y --recommendation z"), Row("--message -", _BLOCKER),
    ),
    "escalate raise": (Row("ESC-01-01-T1 --reason x --evidence y --recommendation z --by senior"),),
    "escalate resolve": (Row("ESC-01-01-T1 --by user --decision x --item y"),),
    "inbox": MADE,
    "log": MADE,
    "config show": MADE,
    "squash": (Row("1"), Row("1 --write", writes=_NEW_BRANCH), Row("1 --branch review --write --json", writes=_NEW_BRANCH)),
    "answer": (Row("ESC-01-01-T1 x --text y"),),
    "escalate list": MADE,
    "escalate tick": MADE,
    "decide accept": (Row("01-01 --as lead --reason x"),),
    "decide assign": (Row("01-01/T1 --as lead --reason x"),),
    "decide accept-risk": (Row("backend --reason x"),),
    "decide approve": (Row("code_review backend --reason x"),),
    "decide supersede": (Row("critique.jsonl C1 --as lead --reason x"),),
    "envelope new": (Row("-", PRODUCT),),
    "envelope check": (Row("-", PRODUCT),),
    "envelope show": (Row(), Row("--json")),
    "envelope choose": (Row("5b0f7f52 retry"),),
    "schema list": MADE,
    "schema show": MADE,
    "schema example": MADE,
    "explain": (Row("gitignored"), Row("all-depts"), Row(f"{PLAN}")),
    "new": (Row("critique"), Row("plan --plan 01-07")),
    "schema export": (Row("exported", writes=("repo/exported*",)),),
    "hook": (Row("session-start", "{}"), Row("", '{"hook_event_name":"Stop"}')),
    "mcp": (Row(),),
    "setup": tuple(
        Row(f"{host} {option}".strip(), writes=(*_HOSTS, "repo/plugin*"))
        for host, more in (("claude", ("--local", "--plugin plugin")), ("codex", ("--roles",)), ("cursor", ()))
        for option in ("", "--mcp", *more, "--check", "--remove")
    ),
    "hooks install": Made(Row(writes=_HOOKS)),
    "hooks uninstall": Made(Row(writes=_HOOKS)),
    "uninstall": (
        Row("--dry-run"), Row("", writes=(*_HOOKS, *_HOSTS, *_MERGE, *_CONSENT, "repo/.git/info/exclude")),
        Row(
            "--purge",  # the planning tree of every work tree goes, as is said
            writes=(
                *_HOOKS, *_HOSTS, *_MERGE, *_CONSENT, "repo/.git/info/exclude",
                "repo/.yolo-planning*", "beside/.yolo-planning*",
            ),
        ),
    ),
    "hooks doctor": Made(Row(runs_hooks=True)),
    "statusline": MADE,
    "git-hook": (),
    "doctor": Made(Row(writes=_HOOKS)),
    "compat": (),
    "completion": MADE,
    "demo": (),
}  # fmt: skip
"""Three lead to doors of their own, or nowhere: `git-hook` and `compat` are below, name by name; `demo`
works in a repository of its own, and reads no other.
"""

_SCRIPTS: Mapping[str, tuple[Row, ...]] = {
    "dept-status": (
        Row(f"--dept backend --phase-dir {PHASE} --action read"),
        Row(f"--dept backend --phase-dir {PHASE} --action write --status running --step planning"),
    ),
    "dept-gate": (Row(f"--gate all-depts --phase-dir {PHASE} --no-poll"),),
    "dept-cleanup": (Row(f"--phase-dir {PHASE} --reason complete"),),
    "dept-orchestrate": (Row(f"{PLANNING}/config.json {PHASE}"),),
    "resolve-departments": (Row(f"{PLANNING}/config.json"), Row()),
    "validate": (Row(f"--type plan {PLAN}"), Row(f"--type deps --plan {PLAN}")),
    "validate-plan": (Row(PLAN),),
    "validate-naming": (Row(PHASE), Row(f"{PLANNING} --scope=all")),
    "validate-config": (Row(f"{PLANNING}/config.json"),),
    "validate-gates": (Row(f"--step planning --phase-dir {PHASE}"),),
    "validate-summary": (Row("", json.dumps({"tool_input": {"file_path": f"{PHASE}/01-01.summary.jsonl"}})),),
    "validate-frontmatter": (Row("", json.dumps({"tool_input": {"file_path": f"{PHASE}/HANDOFF.md"}})),),
    "validate-commit": (Row("", json.dumps({"tool_input": {"command": "git commit -m 'x'"}})),),
    "validate-send-message": (Row("", json.dumps({"tool_input": {"recipient": "lead", "content": _NOTE}})),),
    "check-escalation-timeout": (Row(f"--phase-dir {PHASE} --config {PLANNING}/config.json"),),
    "generate-execution-state": (Row(f"--phase-dir {PHASE} --phase 1"),),
    "resolve-task-deps": (Row(f"--plan {PLAN} --all-plans {PHASE}"),),
    "integration-gate": (Row(f"--phase-dir {PHASE} --config {PLANNING}/config.json --timeout 1"),),
    "pre-integration-check": (Row(f"--phase-dir {PHASE} --config {PLANNING}/config.json"),),
    "git-commit-serialized": (
        Row("-m 'chore: x' --allow-empty", writes=_TREE, runs_hooks=True),
    ),
    "phase-detect": (Row(),),
}  # fmt: skip

_ZERO = "0" * 40
_GIT_HOOKS: Mapping[str, tuple[Row, ...]] = {
    "pre-commit": (Row(),),
    "prepare-commit-msg": (Row(".git/MESSAGE"), Row(".git/MESSAGE message")),
    "commit-msg": (Row(".git/MESSAGE"),),
    "post-commit": (Row(),),
    "post-checkout": (Row(f"{_ZERO} {_ZERO} 1"),),
    "post-merge": (Row("0"),),
    "post-rewrite": (Row("amend", f"{_ZERO} {_ZERO}\n"),),
    "pre-push": (Row("origin ../remote.git", f"refs/heads/main {_ZERO} refs/heads/main {_ZERO}\n"),),
    "reference-transaction": (Row("committed", f"{_ZERO} {_ZERO} refs/heads/main\n"),),
}  # fmt: skip
"""Rows of `asked-by-git` too, which is the same question on the shorter way."""


def _told(**more: Any) -> str:
    return json.dumps({"cwd": "@ROOT@", "session_id": "s", **more})


_SHELL = tuple(
    {"tool_name": "Bash", "tool_input": {"command": command}}
    for command in (
        "git reset --hard", "git clean -fdx", "git checkout .", "git stash", f"rm -rf {PHASE} src README.md",
        f"cat {PLAN} > {PHASE}/critique.jsonl", "git commit -m x", "cat .env", "git rebase -i HEAD~1",
    )
)  # fmt: skip
_WRITE = {"tool_name": "Write", "tool_input": {"file_path": PLAN, "content": "x"}}
_READ = {"tool_name": "Read", "tool_input": {"file_path": PLAN}}
_EVENTS: Mapping[str, tuple[dict[str, Any], ...]] = {
    "session-start": ({"source": "startup"}, {"source": "compact", "agent_type": "yolo-dev"}),
    "user-prompt-submit": ({"prompt": "x"},),
    "pre-tool-use": tuple(
        each | who for who in ({"agent_type": "yolo-dev"}, {}) for each in (*_SHELL, _WRITE, _READ)
    ),
    "post-tool-use": tuple(each | {"agent_type": "yolo-dev"} for each in (_WRITE, _SHELL[0], _SHELL[5])),
    "post-tool-use-failure": (_SHELL[0],),
    "subagent-start": ({"agent_type": "yolo-dev"},),
    "stop": ({}, {"agent_type": "yolo-dev"}),
    "subagent-stop": ({"agent_type": "yolo-dev", "agent_id": "1"},),
    "task-completed": ({"task_subject": f"{TASK}: x", "agent_type": "yolo-dev"},),
    "session-end": ({"reason": "clear"},),
    "post-compact": ({},),
}  # fmt: skip

_ARTIFACT = f"{PHASE}/critique.jsonl"
_RECORD = {"id": "C9", "cat": "gap", "sev": "major", "q": "x", "ctx": "y", "sug": "z", "st": "open"}
_FIELDS = {"from_role": "pair", "to_role": "architect", "trigger": "pair_out_of_scope", "objective": "x", "blocking_rule": "1"}  # fmt: skip
TOOLS: Mapping[str, tuple[dict[str, Any], ...]] = {
    "team_status": ({}, {"agent": "dev"}),
    "inbox": ({},),
    "whose_turn": ({}, {"phase": "1"}),
    "validate_artifact": ({}, {"path": PLAN}, {"path": PLAN, "text": "x"}, {"text": "{}", "kind": "artifact/plan/task"}),
    "append_record": ({"path": _ARTIFACT, "record": _RECORD, "agent": "critic"},),
    "write_artifact": ({"path": _ARTIFACT, "text": json.dumps(_RECORD) + "\n", "agent": "critic"},),
    "check_permission": ({"action": "read", "subject": PLAN, "agent": "dev"},),
    "gate_status": ({}, {"name": "all-depts", "phase": "1"}, {"name": "all-depts", "phase": "1", "wait_s": 0.1}),
    "handoff": ({"action": "check"}, {"action": "emit", "fields": _FIELDS}),
    "escalate": (
        {"action": "list"},
        {"action": "open", "task": TASK, "agent": "dev", "reason": "x", "evidence": ["y"], "recommendation": "z"},
        {"action": "raise", "id": "ESC-01-01-T1", "agent": "senior", "reason": "x", "evidence": ["y"], "recommendation": "z"},
        {"action": "resolve", "id": "ESC-01-01-T1", "agent": "user", "decision": "x", "instructions": ["y"]},
    ),
    "task": (
        {"action": "claims"}, {"action": "claim", "task": TASK, "agent": "dev-1"},
        {"action": "summary"}, {"action": "release", "agent": "dev-1"},
    ),
}  # fmt: skip
"""Tool → what it is called with."""

PROMPTS = frozenset({"go", "debug", "fix", "research", "qa"})
"""Each is asked with a text and without."""

GAPS: Mapping[str, tuple[str, ...]] = {
    "yolo-fs://artifacts/{+path}": (PLAN, _ARTIFACT, ".env", ".git/config", "../outside/secret", f"{PLANNING}/config.json"),
    "yolo-fs://schema/{+kind}": ("artifact/plan/task", "../../../etc/passwd"),
    "/{name}": ("board.js", "..%2f..%2fetc%2fpasswd"),
    "/": ("", "?token=x"),
    "/api/board": ("", "?phase=01-auth", "?at=HEAD", "?at=HEAD~1&phase=01-auth", "?soon=1"),
    "/api/events": ("?since=0",),
    "/api/plot": tuple(f"?name={name}&phase=01-auth" for name in ("refusals", "latency", "gantt", "commits")),
    "/api/repositories": ("",),
    "/api/company": ("", "?phase=01-auth"),
    "/api/artifacts": ("", "?at=HEAD~1"),
    "/api/handoffs": ("", "?at=HEAD~1"),
    "/api/timeline": ("?phase=01-auth", "?phase=01-auth&look=1"),
    "/api/artifact": (f"?path={PLAN}", f"?path={PLAN}&at=HEAD", "?path=.git/config", "?path=../outside/secret"),
}  # fmt: skip
"""Address with gaps, or of the board → how it is asked."""

DUTIES_SEEN: Mapping[str, str] = {
    "watches": "the folders of the planning tree",
    "configuration": "config.json, which changes before its second turn",
    "recovery": "what a killed daemon left",
    "artifacts": "an artifact that is not committed",
    "autofix": "artifacts that are refused, where the user's own configuration asks for it",
    "team": "the membership, and the remote",
    "retries": "an artifact that is held",
    "rescan": "every artifact",
    "index": "what was committed",
    "received": "what came from the team",
    "projections": "the status of departments, and sentinels",
    "states": "the state files",
    "contexts": "the contexts of roles",
    "packs": "the packs of our commits",
    "escalations": "the log of escalations",
    "crew": "the signs of life of agents",
    "health": "the file that tells how the daemon is",
    "observer": "the observer, and its socket",
    "history": "the cache of history",
    "news": "nothing of the repository",
    "reload": "config.json, by the observer",
    "headline": "where the team stands",
    "hook": "nothing of the repository: the command of the user's own configuration",
    "upkeep": "nothing of the repository",
    "verification": "the sources, where the user's own configuration names a command for them",
    "memory": "nothing of the repository",
}
"""Duty → what it looks at; `every_duty.py` runs them all, one by one, in turns."""


def rows_of(door: Door) -> list[Row]:
    """Return the ways through a door.

    Raises:
        KeyError: it has no row, or a parameter of it no value.
    """
    match door.sort:
        case "verb":
            made = _VERBS[door.name]
            return list(made.rows(dict(verbs())[door.name]) if isinstance(made, Made) else made)
        case "script":
            return list(_SCRIPTS[door.name])
        case "git hook":
            return [row._replace(runs_hooks=True) for row in _GIT_HOOKS[door.name]]
        case "inner verb" if door.name == ASKED_BY_GIT:
            return [
                row._replace(words=f"{name} {row.words}".strip(), runs_hooks=True)
                for name, rows in _GIT_HOOKS.items() for row in rows
            ]  # fmt: skip
        case "inner verb":
            return [
                Row(f"{name} claude @ROOT@", _told(**told))
                for name, all_ in _EVENTS.items() for told in all_[:2]
            ]  # fmt: skip
        case "event":
            host, name = door.name.split(" ")
            event = next(each for each in HOSTS if each.name == host).events[name]
            return [
                Row(f"{name} --host {host}", _told(hook_event_name=event, **told))
                for told in _EVENTS[name]
            ]
        case "tool":
            return [Row(json.dumps(arguments)) for arguments in TOOLS[door.name]]
        case "prompt" if door.name in PROMPTS:
            return [Row('{"about": "x"}'), Row("{}")]
        case "resource" | "address":
            known = (
                GAPS[door.name]
                if door.name in GAPS or "{" in door.name or door.name[0] == "/"
                else ("",)
            )
            return [Row(each) for each in known]
        case "duty":
            return [Row(DUTIES_SEEN[door.name])]
    raise KeyError(door)


def is_without_way(door: Door) -> bool:
    """Return whether nobody has said how to go through a door."""
    try:
        rows_of(door)
    except KeyError:
        return True
    return False


def uncovered(doors: Sequence[Door]) -> list[Door]:
    """Return the doors that nobody has said how to go through."""
    return [door for door in doors if is_without_way(door)]
