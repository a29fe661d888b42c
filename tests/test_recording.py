"""The recording of the README is of a real terminal, says what it shows, and runs no script."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools.record import PROMPT, ROOT, SCENES, Frame, Run, Scene, Screen, picture, shortened
from yolo_fs.cli.main import VERBS

KEPT = ROOT / "docs/images/terminal.svg"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Screen]:
    opened = Screen(tmp_path, {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "PS1": PROMPT})
    yield opened
    opened.close()


def texts(svg: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter(f"{SVG}text"))


def frame(at_s: float, text: str) -> Frame:
    return Frame(at_s, ((Run(0, text, ""),),))


def test_what_a_command_prints_is_in_the_picture_with_its_colour(screen: Screen) -> None:
    screen.play(Scene(r"printf 'a \e[31m<b&c>\e[0m\n'", "a <b&c>", reading_s=0))

    [red] = [text for text in texts(picture(screen.frames)) if text.text == "<b&c>"]

    assert red.get("class") == "r"


def test_a_command_that_does_not_show_what_it_should_ends_the_recording(screen: Screen) -> None:
    with pytest.raises(SystemExit, match="did not show 'shipped'"):
        screen.play(Scene("echo given up", "shipped"))


def test_what_is_there_for_less_than_an_eye_sees_is_left_out_and_what_comes_last_is_not() -> None:
    shown = shortened([frame(5, "a"), frame(6, "b"), frame(6.01, "c"), frame(7, "c")])

    assert shown == [frame(0, "a"), frame(1, "c")]


def test_a_line_that_stays_is_written_once() -> None:
    both = Frame(1, (*frame(0, "stays").lines, *frame(0, "comes").lines))

    assert [text.text for text in texts(picture([frame(0, "stays"), both]))] == ["stays", "comes"]


def test_the_recording_of_the_readme_shows_each_command_that_the_tool_types() -> None:
    shown = {text.text for text in texts(KEPT.read_text(encoding="utf-8"))}
    typed = {scene.typed for scene in SCENES} - {"clear"}

    assert typed <= shown
    verbs = re.findall(r"yolo-fs (\w+)", " ".join(typed))
    assert verbs
    assert {*verbs} <= {verb.name for verb in VERBS}


def test_the_recording_of_the_readme_runs_nothing_and_loads_nothing() -> None:
    svg = KEPT.read_text(encoding="utf-8")
    elements = list(ElementTree.fromstring(svg).iter())

    assert {element.tag.removeprefix(SVG) for element in elements} <= {
        "svg", "style", "defs", "g", "text", "use", "rect",
    }  # fmt: skip
    assert all(element.get("href", "#").startswith("#") for element in elements)
    assert "url(" not in svg
    assert len(svg) < 150_000
