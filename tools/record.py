"""Records a real run on a terminal, and writes it as an animated SVG: what README.md shows.

A shell runs in a terminal of its own, and the commands of `SCENES` are typed into it. The picture
has neither a script nor a font of its own, since pages that show a repository allow neither. Nothing
is staged but the waits: what takes long is shown for `MOST_WAIT_S`.
"""

from __future__ import annotations

import argparse
import fcntl
import functools
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from xml.sax.saxutils import escape

import pyte

ROOT = Path(__file__).resolve().parent.parent
COLUMNS, ROWS = 100, 26
WITHIN_S = 120.0
PROMPT = "$ "
MOST_WAIT_S = 0.3
"""However long a command takes before it prints something more."""
LEAST_S = 0.12
"""A frame that lasts for less is left out."""
CELL_PX, LINE_PX, EDGE_PX = 8.4, 18, 14
WIDTH_PX = round(COLUMNS * CELL_PX)
LABEL = "A terminal: a file with a mistake is refused, the mended one is committed, and a team of agents goes from an intent to the sign-off"
STYLE = """
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace;white-space:pre;fill:#1f2328}
.window{fill:#f6f8fa;stroke:#d0d7de}.b{font-weight:700}.n{fill:#59636e;font-style:italic}
.r{fill:#cf222e}.g{fill:#116329}.y{fill:#7d4e00}.c{fill:#1b6c72}.u{fill:#0550ae}.m{fill:#8250df}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.window{fill:#0d1117;stroke:#30363d}
.n{fill:#9198a1}.r{fill:#ff7b72}.g{fill:#56d364}.y{fill:#e3b341}.c{fill:#56d4dd}.u{fill:#79c0ff}.m{fill:#d2a8ff}}"""

FOLDER = "shop/.yolo-planning/phases/01-login"
_FINDING = '{"id":"C1","cat":"gap","sev":"major","q":"Rate limit?","ctx":"Login",%s"st":"open"}\n'
DRAFT, MENDED = _FINDING % "", _FINDING % '"sug":"5 a minute",'
PREPARED = """\
git config --global user.name 'A person'; git config --global user.email a@example.org
git config --global init.defaultBranch main; git config --global advice.detachedHead false
git init -q shop && cd shop && git commit -q --allow-empty -m 'chore(repo): begin'
yolo-fs init --commit && yolo-fs phase new login && yolo-fs start"""


class Scene(NamedTuple):
    """What is typed, and what the screen has to show then."""

    typed: str
    shows: str = ""
    reading_s: float = 0.4
    """How long the viewer has before the next command is typed."""


SCENES = (
    Scene("# A daemon watches this repository. An agent hands over a file, and forgets a key:"),
    Scene("cp ~/draft.jsonl critique.jsonl; cat critique.jsonl", reading_s=1.6),
    Scene("yolo-fs status | head -2", "'sug' is absent", 2.5),
    Scene("# Refused, with the reason. The agent mends it:"),
    Scene("cp ~/mended.jsonl critique.jsonl; cat critique.jsonl", reading_s=1.6),
    Scene("git log --oneline --stat -1 -- .", "docs(01): critique and gap analysis", 2.0),
    Scene("# Checked, and committed alone. What is a gate waiting for?"),
    Scene("yolo-fs gate why all-depts", "backend has no summary", 2.5),
    Scene("clear", reading_s=0.2),
    Scene("# The whole company, from an intent to the sign-off, by agents that follow a script:"),
    Scene("yolo-fs demo", "shipped: ", 0.2),
)


class Run(NamedTuple):
    """Neighbours in a line that look alike."""

    column: int
    text: str
    look: str


Line = tuple[Run, ...]


class Frame(NamedTuple):
    """What the screen shows from a moment on."""

    at_s: float
    lines: tuple[Line, ...]


def main() -> int:
    """Write the recording."""
    parser = argparse.ArgumentParser(prog="tools/record", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=ROOT / "docs/images/terminal.svg")
    file: Path = parser.parse_args().file
    with TemporaryDirectory() as home:
        frames = shortened(record(SCENES, Path(home)))
    text = picture(frames)
    file.write_text(text, encoding="utf-8")
    print(f"{file}: {len(frames)} frames, {frames[-1].at_s:.0f} s, {len(text) / 1000:.0f} kB")
    return 0


# --- the terminal -------------------------------------------------------------------------------------------


class Screen:
    """A shell on a terminal, and every picture that its screen has shown."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.frames: list[Frame] = []
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self._mine, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "--noediting", "-i"], cwd=folder, env=environment,
            stdin=other, stdout=other, stderr=other, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(other)
        self._began = time.monotonic()
        self._read_until_prompt()

    def play(self, scene: Scene) -> None:
        """Type a command, wait for its end, and leave it on the screen for as long as it is read."""
        for word in scene.typed.split(" "):
            os.write(self._mine, f"{word} ".encode())
            self._read_for(0.05)
        os.write(self._mine, b"\n")
        self._read_until_prompt()
        shown = "\n".join(self._screen.display)
        if scene.shows not in shown:
            raise SystemExit(f"{scene.typed!r} did not show {scene.shows!r}:\n{shown}")
        self._read_for(scene.reading_s)

    def close(self) -> None:
        """End the shell."""
        os.close(self._mine)
        self._process.wait()

    def _read_until_prompt(self) -> None:
        until = time.monotonic() + WITHIN_S
        self._read_for(0.1)
        while self._screen.display[self._screen.cursor.y].rstrip() != PROMPT.strip():
            if time.monotonic() > until:
                raise SystemExit("no prompt:\n" + "\n".join(self._screen.display))
            self._read_for(0.1)
            waited_s = time.monotonic() - self._began - (self.frames[-1].at_s if self.frames else 0)
            self._began += max(0.0, waited_s - MOST_WAIT_S)

    def _read_for(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self._mine], [], [], left)[0]:
                self._stream.feed(os.read(self._mine, 65_536))
                lines = tuple(self._line(row) for row in range(ROWS))
                self.frames.append(Frame(time.monotonic() - self._began, lines))

    def _line(self, row: int) -> Line:
        cells = [self._screen.buffer[row][column] for column in range(COLUMNS)]
        runs, column = [], 0
        for look, alike in groupby(cells, key=_look):
            text = "".join(cell.data for cell in alike)
            if text.strip():
                runs.append(Run(column, text, "n" if text.startswith("# ") else look))
            column += len(text)
        return tuple(runs)


def record(scenes: Sequence[Scene], home: Path) -> list[Frame]:
    """Play scenes in a repository that no configuration of the user affects."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(home),
        "TERM": "xterm-256color", "LANG": "C.UTF-8", "PS1": f"\\[\\e[1;32m\\]{PROMPT}\\[\\e[0m\\]",
        "GIT_CONFIG_NOSYSTEM": "1", "GIT_PAGER": "",
    }  # fmt: skip
    (home / "draft.jsonl").write_text(DRAFT)
    (home / "mended.jsonl").write_text(MENDED)
    run_in_home = functools.partial(subprocess.run, cwd=home, env=environment, check=True)
    run_in_home(["bash", "-ec", PREPARED], stdout=subprocess.DEVNULL)
    try:
        screen = Screen(home / FOLDER, environment)
        for scene in scenes:
            screen.play(scene)
        screen.close()
    finally:
        run_in_home(["yolo-fs", "stop", "-q", "-C", "shop"])
    return screen.frames


def shortened(frames: Sequence[Frame]) -> list[Frame]:
    """Return the frames that an eye can tell apart, without what the shell needed to begin."""
    kept: list[Frame] = []
    for frame in frames:
        if kept and frame.lines == kept[-1].lines:
            continue
        if kept and frame.at_s - kept[-1].at_s < LEAST_S:
            kept[-1] = kept[-1]._replace(lines=frame.lines)
        else:
            kept.append(frame)
    began_s = kept[0].at_s
    return [frame._replace(at_s=frame.at_s - began_s) for frame in kept]


# --- the picture --------------------------------------------------------------------------------------------

_COLOURS = {
    "red": "r", "green": "g", "brown": "y", "yellow": "y", "cyan": "c", "blue": "u", "magenta": "m",
}  # fmt: skip


def _look(cell: pyte.screens.Char) -> str:
    """Return the classes of a cell."""
    colour = _COLOURS.get(cell.fg.removeprefix("bright"), "")
    return " ".join(filter(None, (colour, "b" if cell.bold else "")))


def picture(frames: Sequence[Frame], last_s: float = 5.0) -> str:
    """Return frames as an animated SVG that begins anew `last_s` after the last one.

    All frames stand below each other on a reel, which jumps from one to the next. A line that
    several frames have is written once. Who wants no motion gets the last frame.
    """
    names: dict[Line, str] = {}
    reel = "".join(_frame(number, frame, names) for number, frame in enumerate(frames))
    lines = "".join(
        f'<g id="{name}">{"".join(map(_text, line))}</g>' for line, name in names.items()
    )
    total_s = frames[-1].at_s + last_s
    height = ROWS * LINE_PX
    stops = "".join(
        f"{100 * frame.at_s / total_s:.2f}%{{transform:translateY(-{number * height}px)}}"
        for number, frame in enumerate(frames)
    )
    last = (len(frames) - 1) * height
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH_PX + 2 * EDGE_PX} {height + 2 * EDGE_PX}" role="img" aria-label="{LABEL}">
<style>{STYLE}
.reel{{transform:translateY(-{last}px)}}
@media (prefers-reduced-motion:no-preference){{.reel{{animation:reel {total_s:.1f}s step-end infinite}}}}
@keyframes reel{{{stops}}}
</style>
<defs>{lines}</defs>
<rect class="window" x=".5" y=".5" width="{WIDTH_PX + 2 * EDGE_PX - 1}" height="{height + 2 * EDGE_PX - 1}" rx="8"/>
<svg x="{EDGE_PX}" y="{EDGE_PX}" width="{WIDTH_PX}" height="{height}"><g class="reel">{reel}</g></svg>
</svg>
"""


def _frame(number: int, frame: Frame, names: dict[Line, str]) -> str:
    uses = []
    for row, line in enumerate(frame.lines):
        if line:
            name = names.setdefault(line, f"l{len(names)}")
            bottom = (number * ROWS + row + 1) * LINE_PX - 4
            uses.append(f'<use href="#{name}" y="{bottom}"/>')
    return "".join(uses)


def _text(run: Run) -> str:
    text = run.text.rstrip()
    indent = len(text) - len(text.lstrip())
    text = text.lstrip()
    column = run.column + indent
    look = f' class="{run.look}"' if run.look else ""
    # The length is given, so that columns stay columns in whatever font the viewer has.
    return f'<text x="{column * CELL_PX:g}" textLength="{len(text) * CELL_PX:g}"{look}>{escape(text)}</text>'


if __name__ == "__main__":
    sys.exit(main())
