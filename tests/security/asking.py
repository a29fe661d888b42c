"""Asks many verbs of `yolo-fs` one after the other, each in a forked process of its own. No defect may come to light."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.e2e.repo import Repo
from tests.support import forked


class Question(NamedTuple):
    """One command line, and what it reads from stdin."""

    words: tuple[str, ...]
    stdin: str = ""


class Said(NamedTuple):
    """What a command answered."""

    question: Question
    code: int
    out: bytes
    err: bytes


def ask(
    repo: Repo,
    questions: Sequence[Question],
    *,
    more: Mapping[str, str] | None = None,
    start: Path | None = None,
) -> list[Said]:
    """Ask each question in a repository, in order; `more` is added to the environment."""
    place, env = start or repo.root, {**repo.env, **(more or {})}
    given = [question.stdin.encode("utf-8", "surrogateescape") for question in questions]
    said = [
        Said(question, *forked.call(question.words, place, env, stdin))
        for question, stdin in zip(questions, given, strict=True)
    ]
    assert not [one for one in said if one.code == 70 or b"Traceback" in one.err], said
    return said
