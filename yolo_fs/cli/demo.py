"""`yolo-fs demo`: scripted agents and the real daemon play a phase in a temporary repository."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import click

from yolo_fs.cli.reply import Invocation, Reply, console_for, verb
from yolo_fs.demo.play import COMPANY, Play, PlayAct, PlayScene
from yolo_fs.demo.player import Mark, Pace, Player, SceneResult
from yolo_fs.demo.proofs import DemoProof, prove
from yolo_fs.demo.stage import Stage, stage_for
from yolo_fs.protocol.workflow import STEP_BY_KEY
from yolo_fs.reasons import Exit, Finding, Reason
from yolo_fs.services.progress.state_files import STATE_FILES

if TYPE_CHECKING:
    from rich.status import Status

CLAIMS_ON_A_LINE = 3

_SIGNS = {
    Mark.COMMITTED: ("✔", "ok", "green"),
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


@verb("demo", example="yolo-fs demo --speed 3")
@click.option("--keep", is_flag=True, help="Keep the temporary repository and say where it is.")
@click.option(
    "--speed",
    type=click.FloatRange(0.1, 100),
    default=1.0,
    show_default=True,
    help="How fast it plays.",
)
def demo(asked: Invocation, *, keep: bool, speed: float) -> Reply:
    """Watch scripted agents of three departments work while the real daemon commits their files.

    They wait for each other at gates and sign off in the end. A temporary repository is used and
    removed in the end. Exit code 1 when anything differs from the play.
    """
    shows = not (asked.as_json or asked.quiet)
    with _ended_cleanly():
        screen = PlayScreen(COMPANY) if shows else None
        findings, data = _play(COMPANY, Pace.of(speed), keep=keep, screen=screen)
    if shows:
        show_next(data["repository"])
    return Reply(data, findings, Exit.FINDINGS if findings else Exit.DONE)


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
            proofs = tuple(prove(play, stage))
        history = stage.git.text("log", "--oneline", "--no-decorate").splitlines()
        if screen:
            screen.end(stage, proofs)
    broken = tuple(
        Finding(
            Reason.INTERNAL_ERROR, message=proof.evidence or "it does not", expected=proof.claim
        )
        for proof in proofs
        if not proof.holds
    )
    data = {
        "commits": [
            {"commit": event.commit, "path": event.path, "subject": event.subject}
            for event in stage.commits
        ],
        "proofs": [{"claim": proof.claim, "holds": proof.holds} for proof in proofs],
        "history": history,
        "repository": repository,
    }
    return findings + broken, data


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

        self._console.print(Text(self._play.intro, style="bold"))

    def act(self, act: PlayAct) -> None:
        """Print the heading of a step."""
        from rich.text import Text

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

    def end(self, stage: Stage, proofs: Sequence[DemoProof]) -> None:
        """Print what is left of the play: counts and proofs."""
        self.close()
        self._head(_counted(stage))
        for holds, claims in _grouped(proofs):
            sign, plain, style = _SIGNS[Mark.COMMITTED if holds else Mark.DIFFERENT]
            self._styled(f"  {sign if self._fancy else plain} ", style, claims)

    def _head(self, words: str) -> None:
        self._console.print(f"\n{words}", style="bold")

    def _styled(self, words: str, style: str, plain: str) -> None:
        from rich.text import Text

        self._console.print(Text.assemble((words, style), plain))


def _counted(stage: Stage) -> str:
    """Return in one line what became of everything that was written."""
    states = sum(event.path.endswith(STATE_FILES) for event in stage.commits)
    counts = [f"{len(stage.commits) - states} artifacts committed"]
    counts += [f"{states} state files committed by the daemon itself"] if states else []
    return ", ".join(counts)


def _grouped(proofs: Sequence[DemoProof]) -> Iterator[tuple[bool, str]]:
    """Yield whether claims hold, and the claims: few that all hold on one line, else one each."""
    if len(proofs) <= CLAIMS_ON_A_LINE and all(proof.holds for proof in proofs):
        yield True, "; ".join(proof.claim for proof in proofs)
        return
    for proof in proofs:
        yield proof.holds, proof.claim


def show_next(kept: str | None) -> None:
    """Print what to try next, and where the repository is kept."""
    console = console_for(sys.stdout)
    console.print("\nNext", style="bold")
    for command, does in NEXT:
        console.print(f"  {command:16}{does}")
    if kept:
        console.print(f"\nThe repository is {kept}.")
    else:
        console.print("'yolo-fs demo --keep' keeps the repository.")


def _can_print(signs: str) -> bool:
    try:
        signs.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
