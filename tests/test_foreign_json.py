"""JSON of others: size and nesting are looked at before it is parsed, and nothing but ValueError comes of it."""

from __future__ import annotations

import time

import pytest

from yolo_fs.core.foreign_json import MOST_DEPTH, parse, place_too_deep

LIMIT = 1 << 20


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000, '{"a":' * 200_000, "[" * 65 + "]" * 65, "NaN", "[Infinity]", '{"ttl":1e999}', "", "{", "\xff",
        b"\xff\xfe{", b"\x00", " " * (LIMIT + 1),
    ],
)  # fmt: skip
def test_what_is_no_value_of_use_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        parse(text, LIMIT)


def test_what_is_sound_is_read() -> None:
    assert parse(b'\xef\xbb\xbf{"a": [1, 2.5, null, "\\u00fc"]}', LIMIT) == {
        "a": [1, 2.5, None, "ü"]
    }
    assert parse("[" * MOST_DEPTH + "]" * MOST_DEPTH, LIMIT)
    assert parse('["' + "[" * 10_000 + '\\"' + "{" * 10_000 + '"]', LIMIT)


def test_a_number_that_is_too_long_for_one_is_text() -> None:
    assert parse(f'{{"epoch": {"9" * 4_200}}}', LIMIT) == {"epoch": "9" * 4_200}
    assert parse('{"epoch": 12345678901234567890}', LIMIT) == {"epoch": 12345678901234567890}


def test_the_place_is_where_nesting_goes_too_far() -> None:
    assert place_too_deep("[[1],[[2]]]", 2) == 6
    assert place_too_deep('["[[[", {}]', 2) is None


@pytest.mark.parametrize("piece", ["[", '"', '\\"', '{"a":', "[]", '"[', '"\\'])
def test_time_grows_with_the_text_and_no_faster(piece: str) -> None:
    def needed(size: int) -> float:
        text = piece * (size // len(piece))
        best = min(_time(lambda: place_too_deep(text, size)) for _ in range(3))
        return best + min(_time(lambda: place_too_deep("[" * 70 + text, 64)) for _ in range(3))

    assert needed(1_600_000) < 60 * max(needed(100_000), 1e-3)


def _time(step: object) -> float:
    began = time.perf_counter()
    step()  # type: ignore[operator]
    return time.perf_counter() - began
