"""`yolo-fs demo`: scripted agents and the real daemon play a phase in a temporary repository."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.cli.reply import Invocation, Reply, console_for, verb
from yolo_fs.demo.play import PLAYS, Play, PlayAct, PlayScene
from yolo_fs.demo.player import Mark, Pace, Player, SceneResult
from yolo_fs.demo.proofs import DemoProof, prove
from yolo_fs.demo.stage import stage_for
from yolo_fs.protocol.workflow import STEP_BY_KEY
from yolo_fs.reasons import Exit, Finding, Reason, safe
from yolo_fs.services.progress.state_files import STATE_FILES

if TYPE_CHECKING:
    from rich.status import Status

DEFAULT = PLAYS[:3]
"""Played when no play is named: a phase that ships, the same on hold, one with every mishap."""

NAMES = tuple(dict.fromkeys(play.name for play in PLAYS))

CLAIMS_ON_A_LINE = 3

_SIGNS = {
    Mark.COMMITTED: ("✔", "ok", "green"),
    Mark.REFUSED: ("✘", "no", "red"),
    Mark.HELD: ("‖", "==", "yellow"),
    Mark.WAITING: ("…", "..", "yellow"),
    Mark.YES: ("✔", "ok", "green"),
    Mark.NO: ("‖", "==", "yellow"),
    Mark.OWN: ("·", "--", "dim"),
    Mark.DIFFERENT: ("✘", "!!", "bold red"),
}
"""Mark → sign, its replacement in plain letters, and style."""

NEXT = (
    ("yolo-fs init", "make a repository of yours ready"),
    ("yolo-fs run", "watch it and commit"),
    ("yolo-fs status", "see where the team stands"),
)


@verb("demo", example="yolo-fs demo --play login --speed 3")
@click.option("--play", "named", type=click.Choice(NAMES), help="One play; default: three.")
@click.option(
    "--keep", is_flag=True, help="Keep the temporary repositories and say where they are."
)
@click.option(
    "--speed",
    type=click.FloatRange(0.1, 100),
    default=1.0,
    show_default=True,
    help="How fast it plays.",
)
def demo(asked: Invocation, *, named: str | None, keep: bool, speed: float) -> Reply:
    """Watch scripted agents work while the real daemon commits, rejects and holds their files.

    \b
    company     three departments, the gates between them, and the sign-off
    hold        the same with a failing test: no sign-off until it passes
    login       one department, with every kind of mishap
    product     the agents of the product workflow hand over to each other
    escalation  a blocked Dev's question goes up to the user, level by level,
                and the decision comes down; once for one department, once for several
    machines    two clones of one remote: a contract agreed across, one machine
                frozen and taken over, and the sign-off on either

    Without --play, the first three. Temporary repositories are used and removed in the end.
    Exit code 1 when anything differs from the play.
    """
    shows = not (asked.as_json or asked.quiet)
    data: list[dict[str, Any]] = []
    findings: tuple[Finding, ...] = ()
    with _ended_cleanly():
        for play in chosen(named):
            found, happened = _play(
                play, Pace.of(speed), keep=keep, screen=PlayScreen(play) if shows else None
            )
            findings += found
            data.append(happened)
            if findings:
                break
    if shows:
        show_next([one["repository"] for one in data if one["repository"]])
    return Reply({"plays": data}, findings, Exit.FINDINGS if findings else Exit.DONE)


def chosen(name: str | None) -> tuple[Play, ...]:
    """Return the plays of a name, in their order; those of the default for none."""
    return tuple(play for play in PLAYS if play.name == name) or DEFAULT


def _play(
    play: Play, pace: Pace, *, keep: bool, screen: PlayScreen | None
) -> tuple[tuple[Finding, ...], dict[str, Any]]:
    """Play one play; return what differed from its story, and what happened."""
    proofs: tuple[DemoProof, ...] = ()
    with stage_for(play, keep=keep) as stage, closing(screen or Silence()) as audience:
        repository = stage.root if keep else None
        player = Player(stage, pace, audience)
        if screen:
            screen.begin()
        stage.open()
        findings = player.play(play)
        if not findings:
            proofs = tuple(prove(play, stage, player))
        history = stage.git.text("log", "--oneline", "--no-decorate").splitlines()
        if screen:
            screen.end(player, proofs, history)
    broken = tuple(
        Finding(
            Reason.INTERNAL_ERROR, message=proof.evidence or "it does not", expected=proof.claim
        )
        for proof in proofs
        if not proof.holds
    )
    data = {
        "play": play.name,
        "commits": [
            {"commit": event.commit, "path": event.path, "subject": event.subject}
            for event in player.commits
        ],
        "refusals": _scenes(player, "refuses"),
        "held": _scenes(player, "holds", "waits"),
        "proofs": [{"claim": proof.claim, "holds": proof.holds} for proof in proofs],
        "history": history,
        "repository": repository,
    }
    return findings + broken, data


def _scenes(player: Player, *expectations: str) -> list[dict[str, str]]:
    """Return the scenes that went as expected, of those that expect one of these."""
    scenes = []
    for scene, result in player.results:
        name, *_ = scene.expect
        if name in expectations and result.mark is not Mark.DIFFERENT:
            path = scene.expect[name]
            scenes.append({"who": scene.who, "does": scene.does, "path": path, "said": result.text})
    return scenes


@contextmanager
def _ended_cleanly() -> Iterator[None]:
    """Let a closed pipe, a hang-up and TERM end the play as Ctrl-C does: nothing is left behind."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    handlers: dict[signal.Signals, Callable[[int, Any], None] | signal.Handlers] = {
        signal.SIGPIPE: signal.SIG_IGN,
        signal.SIGTERM: interrupt,
        signal.SIGHUP: interrupt,
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Silence:
    """An audience that shows nothing."""

    def act(self, act: PlayAct) -> None: ...
    def scene(self, scene: PlayScene) -> None: ...
    def result(self, scene: PlayScene, result: SceneResult) -> None: ...
    def close(self) -> None: ...


class PlayScreen:
    """Shows a play as it goes, one line per scene."""

    def __init__(self, play: Play):
        """Show it on stdout, in letters that stdout can print."""
        self._play = play
        self._fancy = _can_print("".join(sign for sign, _, _ in _SIGNS.values()))
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="backslashreplace")
        self._console = console_for(sys.stdout)
        self._actor_width = max(len(scene.who) for scene in play.scenes)
        self._does_width = max(len(scene.does) for scene in play.scenes)
        self._waiting: Status | None = None

    def begin(self) -> None:
        """Say what is about to be seen."""
        from rich.text import Text

        before = "" if self._play is DEFAULT[0] else "\n"
        self._console.print(
            Text.assemble((f"{before}Play {self._play.name}: ", "bold"), self._play.intro)
        )

    def act(self, act: PlayAct) -> None:
        """Print the heading of a step; a play of one act needs none."""
        from rich.text import Text

        if len(self._play.acts) == 1:
            return
        step = STEP_BY_KEY.get(act.step)
        name = (
            f"\nStep {step.number}  {step.key.replace('_', ' ')}"
            if step
            else f"\n{act.step.capitalize()}"
        )
        self._console.print(Text.assemble((name, "bold"), (f"  {act.title}", "dim")))

    def scene(self, scene: PlayScene) -> None:
        """Show on a terminal that an answer is waited for."""
        if self._console.is_terminal:
            words = f"  {scene.who} {scene.does}"
            self._waiting = self._console.status(words, spinner="dots" if self._fancy else "line")
            self._waiting.start()

    def result(self, scene: PlayScene, result: SceneResult) -> None:
        """Print the line of a scene."""
        self.close()
        sign, plain, style = _SIGNS[result.mark]
        self._line(scene, sign if self._fancy else plain, style, result)

    def close(self) -> None:
        """Take away what was shown of a scene under way."""
        if self._waiting:
            self._waiting.stop()
            self._waiting = None

    def _line(self, scene: PlayScene, sign: str, style: str, result: SceneResult) -> None:
        from rich.table import Table
        from rich.text import Text

        said = Text(result.text, style=style)
        if result.commit:
            said = Text.assemble((result.commit[:7], "yellow"), f" {result.text}")
        if not self._console.is_terminal:
            does = f"{scene.who:{self._actor_width}} {scene.does:{self._does_width}}"
            self._console.print(f"  {does} {sign} {said.plain}")
            return
        row = Table.grid(padding=(0, 1))
        row.add_column(width=1)
        row.add_column(width=self._actor_width)
        row.add_column(width=min(self._does_width, self._console.width // 3))
        row.add_column(width=1 if self._fancy else 2)
        row.add_column(overflow="fold")
        row.add_row(
            "", Text(scene.who, style="bold cyan"), scene.does, Text(sign, style=style), said
        )
        self._console.print(row)

    def end(self, player: Player, proofs: Sequence[DemoProof], history: Sequence[str]) -> None:
        """Print what is left of the play: history, counts and proofs."""
        self.close()
        if self._play.shows_log:
            self._head("git log --oneline")
            for line in history:
                commit, _, subject = line.partition(" ")
                self._styled(f"  {commit} ", "yellow", safe(subject))
        self._head(_counted(player))
        for holds, claims in _grouped(proofs):
            sign, plain, style = _SIGNS[Mark.COMMITTED if holds else Mark.DIFFERENT]
            self._styled(f"  {sign if self._fancy else plain} ", style, claims)

    def _head(self, words: str) -> None:
        self._console.print(f"\n{words}", style="bold")

    def _styled(self, words: str, style: str, plain: str) -> None:
        from rich.text import Text

        self._console.print(Text.assemble((words, style), plain))


def _counted(player: Player) -> str:
    """Return in one line what became of everything that was written."""
    states = (
        sum(event.path.endswith(STATE_FILES) for event in player.commits)
        if player.keeps_states
        else 0
    )
    refused, held = (
        sum(result.mark is mark for _, result in player.results)
        for mark in (Mark.REFUSED, Mark.HELD)
    )
    counts = [f"{len(player.commits) - states} artifacts committed"]
    counts += [f"{states} state files committed by the daemon itself"] if states else []
    counts += [f"{refused} refused, {held} held for a while"] if refused or held else []
    return ", ".join(counts)


def _grouped(proofs: Sequence[DemoProof]) -> Iterator[tuple[bool, str]]:
    """Yield whether claims hold, and the claims: few that all hold on one line, else one each."""
    if len(proofs) <= CLAIMS_ON_A_LINE and all(proof.holds for proof in proofs):
        yield True, "; ".join(proof.claim for proof in proofs)
        return
    for proof in proofs:
        yield proof.holds, proof.claim


def show_next(kept: Sequence[str]) -> None:
    """Print what to try next, and where the repositories are."""
    console = console_for(sys.stdout)
    console.print("\nNext", style="bold")
    for command, does in NEXT:
        console.print(f"  {command:16}{does}")
    for repository in kept:
        console.print(f"\nThe repository is {repository}.")
    if not kept:
        console.print(
            "'yolo-fs demo --keep' keeps the repositories, '--play product' shows the "
            "handoffs of a product,"
        )
        console.print("'--play escalation' a blocked task's way up to the user and back.")


def _can_print(signs: str) -> bool:
    try:
        signs.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
