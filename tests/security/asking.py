"""Asks many verbs of `yolo-fs` in one go: a process that has everything imported forks a child for each.

Every child has the environment, the folder and the streams of a command of its own; only the imports are shared.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from tests.e2e.repo import DEADLINE_S, Repo
from tests.support.forked import import_all

PROJECT = Path(__file__).parents[2]


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
    """Ask each question in a repository, in order; `more` is added to the environment. No defect may come to light."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.security.asking"], cwd=PROJECT, env={**repo.env, **(more or {})},
        input=json.dumps({"start": str(start or repo.root), "questions": questions}),
        capture_output=True, text=True, timeout=DEADLINE_S + len(questions), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    said = [
        Said(question, each["code"], base64.b64decode(each["out"]), base64.b64decode(each["err"]))
        for question, each in zip(questions, answers, strict=True)
    ]
    assert not [one for one in said if one.code == 70 or b"Traceback" in one.err], said
    return said


def _answer(words: Sequence[str], stdin: str) -> dict[str, Any]:
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write(stdin.encode("utf-8", "surrogateescape"))
        given.seek(0)
        child = os.fork()
        if child == 0:
            _become(words, [stream.fileno() for stream in (given, out, err)])
        _, status = os.waitpid(child, 0)
        return {"code": os.waitstatus_to_exitcode(status), "out": _all_of(out), "err": _all_of(err)}


def _all_of(stream: IO[bytes]) -> str:
    stream.seek(0)
    return base64.b64encode(stream.read()).decode()


def _become(words: Sequence[str], streams: Sequence[int]) -> None:
    from yolo_fs.__main__ import main

    for at, stream in enumerate(streams):
        os.dup2(stream, at)
    sys.argv = ["yolo-fs", *words]
    code: object = 99
    try:
        code = main()
    except SystemExit as ended:
        code = ended.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 99 if code else 0)


if __name__ == "__main__":
    given = json.load(sys.stdin)
    import_all()
    os.chdir(given["start"])
    for words_, stdin_ in given["questions"]:
        print(json.dumps(_answer(words_, stdin_)), flush=True)
