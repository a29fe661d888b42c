"""`yolo-fs go`: from an intent to the sign-off, by agents that it starts and never loses."""

from __future__ import annotations

import errno
import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.authority.actors import department_at_work
from yolo_fs.cli.asking import InboxPrompt, StoppedError
from yolo_fs.cli.background import closed_repository
from yolo_fs.cli.reply import (
    Invocation,
    Reply,
    can_ask,
    console_for,
    drop_output,
    phase_option,
    verb,
)
from yolo_fs.company.hosts import DEFAULT_HOST, HOST_BY_NAME, Hosts, check_installed, hosts_for
from yolo_fs.company.phase_of import ChosenPhase, chosen_phase, find_other_goal
from yolo_fs.company.roles import check_models
from yolo_fs.company.runner import Ask, Runner, RunOutcome, RunResult
from yolo_fs.company.runs import Listener, RunOptions, intent_of, runs
from yolo_fs.company.team_size import agents_of_run, said_team, set_team, with_team
from yolo_fs.core.ids import PhaseId
from yolo_fs.core.reasons import Exit, Finding, Reason, YoloError, safe
from yolo_fs.evidence.facts import WorkflowOptions
from yolo_fs.git.repository import Repository
from yolo_fs.history.facts_reader import FactsReader
from yolo_fs.install.background import Launched, end, running, wait_for_heirs, wait_ready, watch
from yolo_fs.phase.phase import Phase
from yolo_fs.progress.workflow import facts_of, phase_at_work, skip
from yolo_fs.protocol.chains import GOES_ON
from yolo_fs.protocol.workflow import SKIP_FLAGS, TEAM_SIZE_BY_NAME, TEAM_SIZES
from yolo_fs.snapshots.inbox import COMMAND_LENGTH, InboxItem
from yolo_fs.system.lock import Holder
from yolo_fs.workspace.own_files import refuse_unsafe
from yolo_fs.workspace.settings import Settings, load

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

_START_S = 60.0
_STOP_S = 30.0
_CODES = {
    RunOutcome.DONE: Exit.DONE,
    RunOutcome.SHIPPED: Exit.DONE,
    RunOutcome.WAITS: Exit.TRY_AGAIN,
    RunOutcome.BUDGET: Exit.TRY_AGAIN,
    RunOutcome.GIVEN_UP: Exit.FINDINGS,
    RunOutcome.INTERRUPTED: Exit.INTERRUPTED,
}
_CHECKPOINTS = ("plan", "ship")


def _parse_checkpoints(
    _context: click.Context, _parameter: click.Parameter, text: str
) -> frozenset[str]:
    checkpoints = frozenset(filter(None, text.split(",")))
    if unknown := sorted(checkpoints - {*_CHECKPOINTS}):
        raise click.BadParameter(f"{unknown[0]!r} is none of {', '.join(_CHECKPOINTS)}")
    return checkpoints


def _complete_host(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    role, sign, host = typed.rpartition("=")
    return [f"{role}{sign}{name}" for name in HOST_BY_NAME if name.startswith(host)]


_OPTIONS = (
    phase_option("the open one"),
    click.option(
        "--host",
        "host_words",
        multiple=True,
        metavar="[ROLE=]HOST",
        shell_complete=_complete_host,
        help=f"Host that runs the agents: {', '.join(HOST_BY_NAME)}; dev=codex sets it for one"
        " role. May be repeated. Default: yolo-fs.host.of.ROLE, then yolo-fs.host.default of your"
        f" git configuration, then {DEFAULT_HOST}.",
    ),
    click.option(
        "--with",
        "program",
        default="",
        metavar="COMMAND",
        help="Command line of the host (of the host 'command', if a role uses it), such as"
        " './my-agent {agent}'. It runs without a shell.",
    ),
    click.option(
        "--max-agents",
        type=click.IntRange(1, 64),
        default=3,
        show_default=True,
        help="Most agents at once.",
    ),
    click.option(
        "--budget",
        "budget_usd",
        type=click.FloatRange(min=0),
        metavar="USD",
        help="Start no more agents once this much is spent.",
    ),
    click.option(
        "--max-tokens",
        type=click.IntRange(min=0),
        help="Start no more agents once this many are used.",
    ),
    click.option(
        "--approve",
        default="",
        callback=_parse_checkpoints,
        metavar="plan,ship",
        help="Ask a person at these points, even if no decision is needed.",
    ),
    click.option(
        "--team",
        type=click.Choice([*TEAM_SIZE_BY_NAME]),
        help="Size of the team from now on; config.json stores it.",
    ),
    click.option(
        "--worktrees",
        is_flag=True,
        help="One Dev for each plan of a wave, each in a separate work tree; merged task by task.",
    ),
    click.option(
        "--dry-run",
        is_flag=True,
        help="Start nothing; print each step with its host, command line and brief.",
    ),
)


_DEPARTMENT = click.option(
    "--dept", default="", help="Department whose Lead takes it on; default: the first at work."
)


def _with_options(function: Callable[..., Reply]) -> Callable[..., Reply]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def _refuse_elsewhere(_context: click.Context, parameter: click.Parameter, value: object) -> None:
    flag = parameter.opts[0]
    if value:
        raise click.UsageError(f"{flag} is not an option of go: {_ELSEWHERE[flag]}")


_ELSEWHERE = {
    "--effort": 'the whole team has one effort: set "effort" in .yolo-planning/config.json, and '
    "commit it.",
    "--plan": "each plan is carried out in its wave, as 'yolo-fs workflow next' names it.",
}
"""What other programs have as a flag of this command, and where it is done here."""


def _parameter_of(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")


def _with_flags(function: Callable[..., Reply]) -> Callable[..., Reply]:
    """Add the flags that document 002 names, and those that somebody may bring along."""
    for flag in _ELSEWHERE:
        function = click.option(
            flag, hidden=True, expose_value=False, is_eager=True, callback=_refuse_elsewhere
        )(function)
    for flag, step in reversed(SKIP_FLAGS.items()):
        text = f"Skip the step {step.key}, as 'yolo-fs workflow skip {step.key}' does."
        function = click.option(flag, _parameter_of(flag), is_flag=True, help=text)(function)
    return function


@verb("go", example="yolo-fs go 'add login with sessions' --host claude --budget 5")
@click.argument("intent", nargs=-1)
@_with_options
@_with_flags
def go(invocation: Invocation, *, intent: tuple[str, ...], **given: Any) -> Reply:
    """Run the company: start an agent for each open step of the phase, until the phase is shipped.

    INTENT begins a phase if none is open. The work of an agent counts once it is on the branch.
    Exit 0 when the phase is shipped; 75 when a person has to act, with the list; 1 when a step was
    given up, with the reasons. The same command continues where a run has ended.
    """
    flags = [flag for flag in SKIP_FLAGS if given.pop(_parameter_of(flag))]
    return _run(invocation, "", intent, flags=flags, **given)


@verb("debug", example="yolo-fs debug 'login answers 500 after an hour'")
@click.argument("text", nargs=-1, required=True)
@_with_options
@_DEPARTMENT
def debug(invocation: Invocation, *, text: tuple[str, ...], **given: Any) -> Reply:
    """Have an incident looked into: the Lead takes it on, the Debugger investigates, the Lead
    decides.
    """
    return _run(invocation, "debug", text, **given)


@verb("fix-it", example="yolo-fs fix-it 'the error message has a typo'")
@click.argument("text", nargs=-1, required=True)
@_with_options
@_DEPARTMENT
def fix_it(invocation: Invocation, *, text: tuple[str, ...], **given: Any) -> Reply:
    """Have something fixed: the Lead plans it, and the plan is carried out.

    Where no phase is open it begins one that takes the short way, with the Senior and a Dev,
    as long as its plan touches at most complexity_routing.max_trivial_files.
    """
    return _run(invocation, "fix-it", text, **given)


@verb("research", example="yolo-fs research 'is there a rate limiter in the code?'")
@click.argument("text", nargs=-1, required=True)
@_with_options
@_DEPARTMENT
def research(invocation: Invocation, *, text: tuple[str, ...], **given: Any) -> Reply:
    """Have a question answered: the Lead asks it, the Scout answers."""
    return _run(invocation, "research", text, **given)


@verb("qa", example="yolo-fs qa 'the login, again'")
@click.argument("text", nargs=-1, required=True)
@_with_options
@_DEPARTMENT
def qa(invocation: Invocation, *, text: tuple[str, ...], **given: Any) -> Reply:
    """Have the work checked: the Lead says what, QA verifies, QA Code looks at the code."""
    return _run(invocation, "qa", text, **given)


def _run(
    invocation: Invocation,
    chain: str,
    intent: tuple[str, ...],
    *,
    phase: str,
    host_words: Sequence[str],
    program: str,
    dry_run: bool,
    team: str | None,
    dept: str = "",
    flags: Sequence[str] = (),
    **limits: Any,
) -> Reply:
    refuse_unsafe(closed_repository(invocation))
    words = " ".join(intent).strip()
    host_options = (*(("--host", word) for word in host_words), ("--with", program))
    own_words = tuple(word for option, value in host_options if value for word in (option, value))
    options = RunOptions(**limits, chain=chain, team=team or "", host_words=own_words)
    with Repository(invocation.start) as repository:
        settings = with_team(load(repository.root), options.team)
        department = department_at_work(dept, WorkflowOptions(settings.config))
        options = options._replace(department=department if dept else None)
        hosts = hosts_for(repository, host_words, program)
        check_models(settings.config)
        if not dry_run:
            for host in dict.fromkeys(map(hosts.of, sorted(agents_of_run(settings, chain)))):
                check_installed(host, repository.root)
        spelled = phase
        if chain and chain not in GOES_ON and not spelled:
            at_work = phase_at_work(FactsReader(repository, settings))
            spelled = str(at_work.id) if at_work else ""
        fix = department if chain in GOES_ON else None
        chosen = chosen_phase(repository, settings, words, spelled, make=not dry_run, fix=fix)
        options = options._replace(begins=chosen.is_new)
        if chosen.is_complete and not chain:
            return _complete(chosen)
        screen = screen_for(invocation)
        begun = "" if chain or phase else intent_of(runs(repository), chosen.phase)
        goal = None if chain or phase else find_other_goal(chosen, words, begun)
        waits = words if goal is not None else ""
        if waits:
            words = ""
        if waits and not (dry_run and invocation.as_json):
            screen.emit("intent.waits", {"phase": str(chosen.phase), "goal": goal, "intent": waits})
        asker = InboxPrompt(repository, console_for(sys.stdout)) if can_ask(invocation) else None
        if not dry_run:
            options = options._replace(
                team=_settle_team(repository, settings, options.team, chosen.is_new, asker)
            )
            settings = with_team(settings, options.team)
            _skip_by_flags(repository, settings, chosen.phase, () if waits else flags)
        ask = _build_ask_callback(screen, asker, lambda: runner.interrupt())
        emit = TellWhileShown(screen.emit, lambda: runner.interrupt_once())
        daemon = RunDaemon(repository, emit)
        runner = Runner(repository, settings, chosen.phase, hosts, options, emit, ask, daemon.keep)
        if dry_run:
            return _preview_run(runner, chosen, hosts, words or begun, analyze=not chain)
        with interrupted_by(runner), daemon, screen.watching(runner):
            result = runner.run(words, analyze=not chain)
    emit.raise_failure()
    reply = reply_of_run(result, chosen, waits, shlex.join(["yolo-fs", "go", *own_words]))
    return reply if invocation.as_json else reply._replace(findings=())  # its text has them


def _settle_team(
    repository: Repository, settings: Settings, team: str, is_new: bool, asker: InboxPrompt | None
) -> str:
    """Make the configuration name the requested team.

    If none is named, a person on a terminal is asked once.
    """
    if not team and is_new and asker and not said_team(repository.root):
        rows = [f"{row.name}: {row.does}" for row in TEAM_SIZES]
        try:
            team = asker.choose("How much of the company works?", rows, TEAM_SIZES[-1].name)
        except StoppedError:
            raise click.Abort from None
    if team:
        set_team(repository, settings, team)
    return team


def _skip_by_flags(
    repository: Repository, settings: Settings, phase: PhaseId, flags: Sequence[str]
) -> None:
    """Declare the steps skipped that the user skips; the same flags once more change nothing."""
    for flag in flags:
        facts = facts_of(FactsReader(repository, settings), phase)
        skip(repository, settings, Phase(facts), SKIP_FLAGS[flag], flag, time.time())


def _build_ask_callback(
    screen: RunView, asker: InboxPrompt | None, interrupt: Callable[[], None]
) -> Ask:
    """Return how to ask when a run waits for a person: on the terminal, if there is one."""

    def ask(items: Sequence[InboxItem]) -> frozenset[str]:
        if asker is None:
            return frozenset()
        try:
            with screen.paused():
                return asker.settle(items)
        except StoppedError:
            interrupt()
            return frozenset()

    return ask


def _complete(chosen: ChosenPhase) -> Reply:
    data = {"phase": str(chosen.phase), "outcome": RunOutcome.SHIPPED.value}
    message = f"phase {chosen.phase} is shipped already; an intent begins the next one"
    return Reply(data, show=lambda console: console.print(message))


def _preview_run(
    runner: Runner, chosen: ChosenPhase, hosts: Hosts, intent: str, *, analyze: bool
) -> Reply:
    acts: list[dict[str, Any]] = [
        {
            "agent": act.agent,
            "host": "" if act.is_of_person else hosts.of(act.agent).name,
            "does": act.turn.sentence,
            "run": act.turn.command,
            "command": words,
            "brief": brief,
            "writes": list(act.writes),
            "person": act.is_of_person,
        }
        for act, words, brief in runner.preview(intent, analyze=analyze)
    ]
    data = {"phase": str(chosen.phase), "host": hosts.everybody.name, "acts": acts}

    def show(console: Console) -> None:
        for act in acts:
            if act["person"]:
                console.print(safe(f"{act['does']}: {act['run'] or 'yolo-fs inbox'}", 1000))
                continue
            console.print(f"{act['agent']} by {act['host']}:")
            console.print(safe(f"$ {shlex.join(act['command'])}", 1000))
            for line in str(act["brief"]).splitlines():
                console.print(f"  {safe(line, 2000)}")
        if all(act["person"] for act in acts):
            console.print("no agent would be started")

    return Reply(data, show=show)


def reply_of_run(
    result: RunResult, chosen: ChosenPhase, not_begun: str = "", begins: str = ""
) -> Reply:
    """Return the result of a run, as data and as text.

    `not_begun`: an intent that waits until the phase has shipped; `begins`: the command that then
    begins it, without the intent.
    """
    run = result.run
    data = {
        "phase": str(chosen.phase),
        "run": run.id,
        "outcome": result.outcome.value,
        "acts": len(run.acts),
        "tokens": run.tokens,
        "cost_usd": round(run.cost_usd, 6),
        "again": run.again,
        "not_begun": not_begun,
        "waiting": result.waiting,
        "given_up": list(result.given_up),
    }
    findings = [Finding(Reason.STATE_CONFLICT, message=why) for why in result.given_up]

    def show(console: Console) -> None:
        seconds = time.time() - run.started
        bill = f", {run.tokens} tokens, {run.cost_usd:.2f} USD" if run.tokens else ""
        summary = f"{result.outcome.value}: {len(run.acts)} acts in {seconds:.0f} s{bill}"
        console.print(f"phase {chosen.phase} {summary}")
        for item in result.waiting:
            console.print(safe(f"  {item.id}: {item.question}", 1000))
            console.print(safe(f"    run: {item.command}", COMMAND_LENGTH))
        for why in result.given_up:
            if not any(item.question.startswith(why) for item in result.waiting):
                console.print(safe(f"  given up: {why}", 1000))
        is_open = result.outcome not in (RunOutcome.SHIPPED, RunOutcome.DONE)
        if is_open and all(item.command != run.again for item in result.waiting):
            console.print(safe(f"  to continue: {run.again}", COMMAND_LENGTH))
        if not_begun:
            when = f" once phase {chosen.phase} has shipped" if is_open else ""
            console.print(safe(f"not begun: {not_begun}", 500))
            command = f"{begins} -- {shlex.quote(not_begun)}"
            console.print(safe(f"  to begin it{when}: {command}", COMMAND_LENGTH))
            if is_open:
                command = f"{begins} --phase {int(chosen.phase.number)} -- {shlex.quote(not_begun)}"
                about = f"  if that is what phase {chosen.phase} is about: {command}"
                console.print(safe(about, COMMAND_LENGTH))

    return Reply(data, findings, _CODES[result.outcome], show)


class TellWhileShown:
    """Shows each event for as long as it can be shown.

    Whoever closes the terminal, quits the pager or has a full disk loses nobody's work: as after
    Ctrl-C, nobody new is started, and those at work finish.
    """

    def __init__(self, show: Listener, interrupt: Callable[[], None]):
        """`interrupt`: called when nothing can be shown any more."""
        self._show, self._interrupt = show, interrupt
        self._failure: OSError | SystemExit | None = None

    def __call__(self, name: str, about: Mapping[str, Any]) -> None:
        if self._failure:
            return
        try:
            self._show(name, about)
        except (OSError, SystemExit) as failure:  # rich exits where the reader is gone
            self._failure = failure
            drop_output()
            self._interrupt()

    def raise_failure(self) -> None:
        """Raise why nothing could be shown, unless it is that the reader has gone."""
        if isinstance(self._failure, OSError) and self._failure.errno not in _GONE:
            raise self._failure


_GONE = (errno.EPIPE, errno.EIO)
"""A pipe that nobody reads; a terminal that is closed."""


class RunDaemon:
    """The daemon that a run needs: started where none watches, it ends with the run."""

    def __init__(self, repository: Repository, emit: Listener):
        """`emit`: receives that another one had to be started."""
        self._repository, self._emit = repository, emit
        self._started: Launched | None = None

    def __enter__(self) -> None:
        self._watch()

    def keep(self) -> None:
        """Start another daemon where the last one was stopped or killed."""
        if wait_for_heirs(self._repository) is None:
            if self._started:
                with suppress(subprocess.TimeoutExpired):
                    self._started.process.wait(_STOP_S)
            self._watch()
            self._emit("daemon.started", {"why": "no daemon watched the work tree"})

    def __exit__(self, *_: object) -> None:
        if self._started is None or self._started.process.poll() is not None:
            return
        holder = running(self._repository)
        if holder and holder.pid == self._started.process.pid:
            with suppress(YoloError):  # whatever it still finishes, the run is over
                end(self._repository, holder, _STOP_S)
            self._started.process.wait()

    def _watch(self) -> None:
        """Have a daemon watch that has finished its first scan, or was faster than ours."""
        launched = watch(self._repository)
        if isinstance(launched, Holder):
            return
        self._started = launched
        if not wait_ready(self._repository, launched.process.pid, _START_S):
            raise YoloError(
                Reason.NOT_RUNNING,
                "the daemon did not start",
                hint="See 'yolo-fs logs'.",
                exit_code=Exit.TRY_AGAIN,
            )


@contextmanager
def interrupted_by(runner: Runner) -> Iterator[None]:
    """Make Ctrl-C end a run: the first time gracefully, the second at once.

    SIGHUP and SIGTERM are treated alike.
    """

    def interrupt(_number: int, _frame: object) -> None:
        runner.interrupt()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_FANCY = {"started": "→", "done": "✔", "failed": "✘", "up": "↑", "other": "·"}
_PLAIN = {"started": ">", "done": "ok", "failed": "!!", "up": "^", "other": "--"}


def signs_of(stream: Any) -> Mapping[str, str]:
    """Return the symbols of events, in characters that a stream can print."""
    try:
        "".join(_FANCY.values()).encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return _PLAIN
    return _FANCY


def screen_for(invocation: Invocation, *, lines: bool = True) -> RunView:
    """Return the display of a run: lines of JSON, lines, or lines above a live table.

    `lines`: whether JSON is printed line by line, before the envelope.
    """
    if invocation.as_json and lines:
        return RunView(_print_json)
    if invocation.quiet or invocation.as_json:
        return RunView(lambda _name, _about: None)
    console = console_for(sys.stdout)
    return LiveRunView(console) if console.is_terminal else RunView(_build_line_printer(console))


class RunView:
    """Shows each event of a run on a line of its own."""

    def __init__(self, show: Callable[[str, Mapping[str, Any]], None]):
        self.emit = show

    @contextmanager
    def watching(self, _runner: Runner) -> Iterator[None]:
        """Show a run while it lasts."""
        yield

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to a question."""
        yield


def _print_json(name: str, about: Mapping[str, Any]) -> None:
    print(json.dumps({"event": name, **about}), flush=True)


def _build_line_printer(console: Console) -> Callable[[str, Mapping[str, Any]], None]:
    signs = signs_of(console.file)

    def show(name: str, about: Mapping[str, Any]) -> None:
        console.print(line_of(name, about, signs))

    return show


def line_of(name: str, about: Mapping[str, Any], signs: Mapping[str, str]) -> str:
    """Return an event as one line; text that an agent can influence is escaped."""
    who = f"{about.get('agent', '')} {about.get('task') or about.get('step', '')}".strip()
    match name:
        case "agent.started":
            again = f" (try {about['attempt']})" if about["attempt"] > 1 else ""
            text = f"{signs['started']} {about['does']}{again}"
        case "agent.done":
            text = f"{signs['done']} {who}"
        case "agent.failed":
            text = f"{signs['failed']} {who}: {about['outcome']}"
        case "act.escalated":
            text = f"{signs['up']} {about['agent']} asks {about['to']}: {about['why']}"
        case "intent.waits":
            goes_on = f"phase {about['phase']} is open, and continues: {safe(about['goal'], 200)}"
            text = f"{signs['other']} {goes_on}; not begun: {about['intent']}"
        case "act.given_up":
            text = f"{signs['failed']} {who}: given up"
        case "signoff":
            is_signed = about["state"] in ("signed_off", "already")
            state = about["state"].replace("_", " ")
            text = f"{signs['done' if is_signed else 'failed']} phase {about['phase']}: {state}"
        case _:
            more = (f"{key} {value}" for key, value in about.items() if value != "")
            text = f"{signs['other']} {name}: {', '.join(more)}"
    return f"{time.strftime('%H:%M:%S')} {safe(text, 500)}"


class LiveRunView(RunView):
    """Shows events as lines above a table of the agents at work."""

    def __init__(self, console: Console):
        super().__init__(_build_line_printer(console))
        self._console = console
        self._live: Live | None = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hide the table during a question."""
        if self._live:
            self._live.stop()
        try:
            yield
        finally:
            if self._live:
                self._live.start()

    @contextmanager
    def watching(self, runner: Runner) -> Iterator[None]:
        """Redraw the table several times a second."""
        from rich.live import Live

        with Live(
            get_renderable=lambda: _table(runner), console=self._console,
            refresh_per_second=4, transient=True,
        ) as self._live:  # fmt: skip
            yield


def _table(runner: Runner) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("agent", "act", "since", "last tool", "tokens"):
        table.add_column(name, justify="right" if name in ("since", "tokens") else "left")
    for run_act in runner.working:
        seconds = f"{time.time() - run_act.started:.0f} s"
        act = safe(run_act.task or run_act.step, 60)
        cells = (run_act.agent, act, seconds, safe(run_act.tool, 40), str(run_act.tokens or ""))
        table.add_row(*(Text(cell) for cell in cells))
    return table
