"""Commits that no git of ours makes, and every git takes: each verb goes on. The essential verbs; with
`YOLO_SECURITY=1` all that only read, and each commit as the tip.
"""

from __future__ import annotations

import os

import pytest

from tests.e2e.repo import Repo
from tests.security.asking import Question, ask
from tests.security.verbs import READERS, questions

ALL = bool(os.environ.get("YOLO_SECURITY"))
ESSENTIAL = (
    "status", "status --json", "resume --json", "verify", "doctor --fix", "hooks doctor", "run --once",
    "agent list", "workflow next", "events",
)  # fmt: skip
VERBS = (*(READERS if ALL else ESSENTIAL), "report -o x.html")
DATES = (
    "253402300800 +0000", "99999999999999 +0000", "184467440737095516150 +0000", "", "-1 +0000", "1.5 x", "1e9 +0000",
    "1 +9999", "1 +99999999", "0 +0000", "253402300799 -9999",
)  # fmt: skip
WHO = b"A <a@b> 1 +0000"
OURS = b"docs(01): gaps\n\nYolo-Artifact: gaps\nYolo-Path: a\nYolo-Warnings: 99999999999999999999\n"


def odd_commits(tree: str) -> list[bytes]:
    """Return the bodies of odd commits without the parent, for which `%P` stands."""
    head = f"tree {tree}\nparent %P\n".encode()
    dated = [
        head + f"author A <a@b> {date}\ncommitter A <a@b> {date}\n\n".encode() + message
        for date in DATES
        for message in (b"x\n", OURS)
    ]
    whole = head + b"author " + WHO + b"\ncommitter " + WHO
    return [
        *dated,
        head + b"\nx",
        head + b"author  <> 1 +0000\ncommitter \n\n",
        head
        + b"author \xff\xfe\x1b]0;a\x07 <\xff> 1 +0000\ncommitter A <a@b> 1 +0000\nencoding utf-16\n\n\xff\xfe\x1b",
        whole + b"\nencoding \0evil\n\nx\0y",
        whole + b"\nencoding punycode\n\n" + b"a" * 300_000 + b"-" + b"b" * 300_000,
        whole + b"\nmergetag " + b"z" * 1_000_000 + b"\n\nx",
        whole + b"\n\n" + OURS + b"".join(b"Yolo-Path: %d\n" % number for number in range(60_000)),
        whole + b"\n\n" + b"\n" * 500_000 + b"x",
        whole + b"\n\n" + b"m" * (5 << 20),
        head
        + b"parent %P\n" * 3_000
        + b"author "
        + WHO
        + b"\ncommitter "
        + WHO
        + b"\n\nchore(01): x\n",
    ]


@pytest.mark.timeout(1800 if ALL else 120)
def test_no_verb_ends_with_a_defect_whatever_a_commit_says(repo: Repo) -> None:
    repo.git("commit", "-q", "--allow-empty", "-m", "chore: begin")
    tip, tree = repo.git("rev-parse", "HEAD").strip(), repo.git("rev-parse", "HEAD^{tree}").strip()
    bodies = odd_commits(tree)
    asked: list[Question] = questions(VERBS)
    for number, body in enumerate(bodies, 1):
        stored = ("hash-object", "-w", "-t", "commit", "--literally", "--stdin")
        tip = repo.git(*stored, given=os.fsdecode(body.replace(b"%P", tip.encode()))).strip()
        repo.git("update-ref", "refs/heads/main", tip)
        if ALL or number in (1, len(bodies)):
            told = {one.question.words: one.code for one in ask(repo, asked)}
            assert told[("status",)] in (0, 1), told


@pytest.mark.skipif(not ALL, reason="YOLO_SECURITY=1: half a minute")
def test_a_daemon_commits_on_top_of_each(repo: Repo) -> None:
    repo.git("commit", "-q", "--allow-empty", "-m", "chore: begin")
    tree = repo.git("rev-parse", "HEAD^{tree}").strip()
    for body in odd_commits(tree):
        stored = ("hash-object", "-w", "-t", "commit", "--literally", "--stdin")
        tip = repo.git("rev-parse", "HEAD").strip()
        repo.git(
            "update-ref",
            "refs/heads/main",
            repo.git(*stored, given=os.fsdecode(body.replace(b"%P", tip.encode()))).strip(),
        )
        assert ask(repo, questions(("run --once",)))[0].code == 0
