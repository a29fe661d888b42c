"""Long work shows how far it is on a terminal, clears its line in the end, and shows nothing elsewhere."""

from __future__ import annotations

import io

import pytest

from yolo_fs.cli import progress
from yolo_fs.cli.progress import bar, watched


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, patience_s: float, *, quiet: bool = False
) -> str:
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE_S", patience_s)
    monkeypatch.setattr(progress, "_EVERY_S", 0.0)
    assert list(watched(range(1, 5), "commits", lambda _: 4, quiet=quiet)) == [1, 2, 3, 4]
    return stream.getvalue()


def test_a_terminal_sees_a_bar_that_is_gone_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, Terminal(), 0.0)
    assert "[############............] 2 of 4 commits" in text
    assert text.endswith("4 of 4 commits\r\x1b[K")


def test_nothing_is_shown_elsewhere_or_where_it_is_soon_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert shown(monkeypatch, io.StringIO(), 0.0) == ""
    assert shown(monkeypatch, Terminal(), 60.0) == ""
    assert shown(monkeypatch, Terminal(), 0.0, quiet=True) == ""


def test_without_a_total_there_is_a_count() -> None:
    assert bar(7, 0) == "7"
    assert bar(9, 3).startswith("[########################]")
