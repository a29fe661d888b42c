"""Shows something again whenever the repository changes: in place on a terminal, one below the
other elsewhere.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import shutil
import sys
import time
from collections.abc import Callable, Iterator

from yolo_fs.cli.reply import Reply, console_for
from yolo_fs.edges.git.repository import Repository
from yolo_fs.services.moments.moment import stamp

LOOK_EVERY_S = 0.5
"""Between two looks at the stamps: HEAD, one listing of the planning tree, the daemon's lock."""


def follow(repository: Repository, look: Callable[[], tuple[str, bool]]) -> None:
    """Show what `look` says, and again whenever it says something else, until interrupted or told
    to quit by `q`.

    `look`: returns a text, and whether time alone will change it; otherwise it is asked again when
    HEAD, the planning tree, the daemon or the window changed.
    """
    before: object = None
    shown, moves = "", True
    with _page() as put, _keys() as heard:
        while True:
            now = stamp(repository), shutil.get_terminal_size()
            if moves or now != before:
                before = now
                text, moves = look()
                if text != shown:
                    shown = text
                    put(text)
            if _is_told_to_quit(heard, LOOK_EVERY_S):
                return


@contextlib.contextmanager
def _keys() -> Iterator[int | None]:
    """Lend the descriptor on which single keys are heard; None where nobody types."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield None
        return
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield descriptor
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _is_told_to_quit(heard: int | None, within_s: float) -> bool:
    """Wait, and return whether `q` was typed meanwhile, or whoever typed is gone."""
    if heard is None:
        time.sleep(within_s)
        return False
    if not select.select([heard], [], [], within_s)[0]:
        return False
    typed = os.read(heard, 64)
    return not typed or b"q" in typed.lower()


@contextlib.contextmanager
def _page() -> Iterator[Callable[[str], None]]:
    """Lend a page: what is put on it replaces what was there; where there is no terminal, it
    follows below.
    """
    if not sys.stdout.isatty():
        yield _put_below
        return
    from rich.live import Live
    from rich.text import Text

    with Live(console=console_for(sys.stdout), screen=True, auto_refresh=False) as live:
        yield lambda text: live.update(Text.from_ansi(text), refresh=True)


def _put_below(text: str) -> None:
    print(text, end="" if text.endswith("\n") else "\n", flush=True)


def drawn(reply: Reply) -> str:
    """Return what a reply prints, in the colours and the width of the terminal if there is one."""
    from rich.console import Console

    text = io.StringIO()
    terminal = console_for(sys.stdout)
    width, height = (terminal.width, terminal.height) if terminal.is_terminal else (None, None)
    console = (
        Console(
            file=text,
            force_terminal=True,
            width=width,
            height=height,
            highlight=False,
            markup=False,
            emoji=False,
        )
        if width
        else console_for(text)
    )
    if reply.show:
        reply.show(console)
    for finding in reply.findings:
        console.print(str(finding))
    return text.getvalue()
