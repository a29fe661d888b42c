"""A note says what was written last, or nothing. See docs/dev/faults.md#f05 and #f24."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yolo_fs.system.in_place import ScratchRecord


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "note"


def test_the_last_value_is_read_whatever_its_length(place: Path) -> None:
    note = ScratchRecord(str(place))
    for value in ([["a", "b", ["", "c"]]] * 1000, {"pid": 1}, [], "ä\n", None):
        note.write(value)
        assert note.read() == value
        assert ScratchRecord(str(place)).read() == value


def test_what_was_never_written_is_nothing(place: Path) -> None:
    assert ScratchRecord(str(place)).read() is None


def test_a_note_that_is_torn_at_any_byte_is_nothing(place: Path) -> None:
    note = ScratchRecord(str(place))
    note.write(["the former value, which is the longer one"])
    former = place.read_bytes()
    note.write(["the latter"])
    latter = place.read_bytes().partition(b"\n")[0] + b"\n"
    for size in range(len(latter)):
        place.write_bytes(latter[:size] + former[size:])
        assert note.read() in (None, ["the former value, which is the longer one"])
        place.write_bytes(latter[:size])
        assert note.read() is None or size == len(latter) - 1
    place.write_bytes(b"\0" * len(latter))
    assert note.read() is None


@pytest.mark.parametrize("text", [b"", b"\n", b"[", b"zz []\n", b"00000000 []\n", b"{}", b"\xff\n"])
def test_bytes_of_another_hand_are_nothing(place: Path, text: bytes) -> None:
    place.write_bytes(text)
    assert ScratchRecord(str(place)).read() is None


@pytest.mark.parametrize("lead", [os.symlink, os.link])
def test_nothing_is_written_where_the_name_leads_elsewhere(place: Path, lead: object) -> None:
    other = place.with_name("other")
    other.write_text("theirs")
    assert callable(lead)
    lead(other, place)
    ScratchRecord(str(place)).write(["ours"])
    assert other.read_text() == "theirs"


def test_a_place_that_refuses_is_passed_over(tmp_path: Path) -> None:
    ScratchRecord(str(tmp_path / "absent/note")).write([])
    ScratchRecord(str(tmp_path)).write([])
    assert ScratchRecord(str(tmp_path)).read() is None
