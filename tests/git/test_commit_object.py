"""Whoever made a commit, it can be read: what is malformed is absent, and dates are in the calendar."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random, randrange

import pytest

from tests.git.conftest import Engines, User
from yolo_fs.git.commit_object import LATEST_S, read_commit_object, seconds_of
from yolo_fs.git.history import log, log_of_line, log_parents_first

TREE, PARENT = "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "1" * 40
WHO = b"A <a@example.org> 1700000000 +0000"


def body(*lines: bytes, message: bytes = b"x\n") -> bytes:
    head = (b"tree " + TREE.encode(), b"parent " + PARENT.encode(), *lines)
    return b"\n".join(head) + b"\n\n" + message


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (b"1700000000 +0000", 1700000000), (b"0 +0000", 0), (b"1 +9999", 1), (b"1 +99999999", 1), (b"7", 7),
        (b"253402300799 +0000", LATEST_S), (b"253402300800 +0000", LATEST_S), (b"99999999999999 +0000", LATEST_S),
        (b"9" * 10_000, LATEST_S), (b"0" * 10_000 + b"5", 5),
        (b"", 0), (b" ", 0), (b"-1 +0000", 0), (b"1.5 x", 0), (b"1e9 +0000", 0), (b"+5", 0), (b"x", 0),
        ("١٢".encode(), 0), (b"\xff", 0), (b"1_0", 0), (b"0x10", 0), (b"\0", 0),
    ],
)  # fmt: skip
def test_every_date_is_one_of_the_calendar(written: bytes, seconds: int) -> None:
    assert seconds_of(written) == seconds
    assert datetime.fromtimestamp(seconds_of(written), UTC).year <= 9999


@pytest.mark.parametrize(
    "stored",
    [
        b"", b"\n", b"\n\n", b"\0", b"tree", b"tree x\n\nx", b"parent \n", b"committer", b"\xff" * 100,
        body(b"author"), body(b"committer "), body(b"committer >"), body(b"author  <> 1", b"committer \n"),
        body(b"author \xff\xfe\x1b]0;a\x07 <\xff> 1 +0000", b"committer <<>><> <"),
        body(b"author " + WHO, b"committer " + b"x" * 1_000_000),
        body(*[b"parent zzz"] * 1_000), body(message=b"\0" * 1_000),
        *(
            body(b"author " + WHO, b"committer " + WHO, b"encoding " + name, message=b"\xff\xfe\x1b[31m")
            for name in (
                b"", b"utf-16", b"evil", b"\0evil", b"hex", b"zlib", b"undefined", b"idna", b"x" * 10_000, b"../../a",
                b"rot13", b"punycode", b"unicode_escape", b"\xff",
            )
        ),
    ],
)  # fmt: skip
def test_no_malformed_line_breaks_the_reader(stored: bytes) -> None:
    said = read_commit_object(stored)
    assert 0 <= said.at_s <= LATEST_S and "\0" not in said.message
    assert isinstance(said.subject, str) and isinstance(said.trailers, tuple)


def test_bytes_at_random_never_raise() -> None:
    seed = randrange(1_000_000)
    print(f"seed {seed}")
    random = Random(seed)
    whole = body(b"author " + WHO, b"committer " + WHO, b"encoding latin-1", message=b"x\n\nA: b\n")
    for _ in range(3_000):
        spoilt = bytearray(whole)
        for _ in range(random.randrange(1, 8)):
            at = random.randrange(len(spoilt))
            spoilt[at : at + random.randrange(5)] = random.randbytes(random.randrange(4))
        said = read_commit_object(bytes(spoilt))
        assert 0 <= said.at_s <= LATEST_S and said.subject is not None and said.trailers is not None


ONE, TWO = "a" * 40, "b" * 40


@pytest.mark.parametrize(
    ("said", "reverts"),
    [
        (f"This reverts commit {ONE}.", (ONE,)),
        (f"This reverts commit {ONE}, reversing\nchanges made to {TWO}.", (ONE, TWO)),
        ("This reverts commit aaaaaaa (Merge (side), 2026-12-01), reversing\n"
         "changes made to bbbbbbb (chore: more, 2026-12-01).", ("aaaaaaa", "bbbbbbb")),
        (f"Because.\n\nThis reverts commit {ONE}.\n\nSigned-off-by: A <a@b>", (ONE,)),
        (f"See: This reverts commit {ONE}.", ()),
        ("This reverts commit a part of it.", ()),
        ("This reverts commit " + "(" * 50_000 + ")" * 50_000, ()),
    ],
)  # fmt: skip
def test_what_a_revert_takes_back_is_read_from_its_message(
    said: str, reverts: tuple[str, ...]
) -> None:
    message = f'Revert "x"\n\n{said}\n'.encode()
    assert read_commit_object(body(message=message)).reverts == reverts


def test_a_message_is_read_in_its_encoding_and_else_as_utf_8() -> None:
    spoken = "grüße".encode("latin-1")
    assert read_commit_object(body(b"encoding ISO-8859-1", message=spoken)).subject == "grüße"
    assert read_commit_object(body(b"encoding none", message=spoken)).subject == "gr�\ufffde"
    assert read_commit_object(body(message="grüße".encode())).subject == "grüße"


def test_only_the_parents_that_git_reads_are_parents() -> None:
    said = read_commit_object(body(b"author " + WHO, b"parent " + b"2" * 40, b"committer " + WHO))
    assert said.parents == (PARENT,) and said.tree == TREE


def test_a_codec_that_needs_the_square_of_a_text_is_not_used() -> None:
    letters = b"a" * 2_000_000 + b"-" + b"b" * 2_000_000
    assert len(read_commit_object(body(b"encoding punycode", message=letters)).subject) == 4_000_001


@pytest.mark.parametrize(
    "date",
    ["253402300800 +0000", "99999999999999 +0000", "", "-1 +0000", "1.5 x", "184467440737095516150 +0000"],
)  # fmt: skip
def test_a_history_with_an_odd_date_is_told_the_same_by_every_way_to_read_it(
    user: User, engine: Engines, date: str
) -> None:
    base, tree = user.tip(), user.tip("HEAD^{tree}")
    text = f"tree {tree}\nparent {base}\nauthor A <a@b> {date}\ncommitter A <a@b> {date}\n\nodd\n"
    stored = ("hash-object", "-w", "-t", "commit", "--literally", "--stdin")
    odd = user.text(*stored, given=text.encode())
    user.git("update-ref", "HEAD", odd)
    repository = engine(user).repository

    told = list(log(repository, "HEAD"))

    assert told[0].subject == "odd" and told[0].parents == (base,)
    assert told[0].at_s == seconds_of(date.encode())
    assert (
        told[::-1]
        == list(log_parents_first(repository, "HEAD"))
        == log_of_line(repository, "", odd)
    )
