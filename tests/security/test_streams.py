"""Streams that are closed, full or broken: every verb ends with a code of its own, and with no traceback.

The essential verbs; with `YOLO_SECURITY=1` all of them.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

from tests.e2e.artifacts import artifact
from tests.e2e.repo import DEADLINE_S, Repo
from tests.security.verbs import READERS
from yolo_fs.core.reasons import Exit

ALL = bool(os.environ.get("YOLO_SECURITY"))
VERBS = READERS if ALL else ("status --json", "validate -")
STREAMS = {
    "closed stdout": ">&-",
    "full stdout": ">/dev/full",
    "broken pipe": "| true",
    "closed stderr": "2>&-",
    "closed stdin": "<&-",
    "everything closed": "<&- >&- 2>&-",
}


@pytest.mark.sampled(2)
@pytest.mark.timeout(900 if ALL else 120)
@pytest.mark.parametrize("stream", STREAMS)
def test_no_stream_makes_a_verb_a_defect(repo: Repo, stream: str) -> None:
    repo.write(artifact("plan", 0))
    program = f"{shlex.quote(sys.executable)} -m yolo_fs"

    for verb in VERBS:
        line = f"set -o pipefail; {program} {verb} {STREAMS[stream]}"
        done = subprocess.run(
            ["bash", "-c", line], cwd=repo.root, env=repo.env, capture_output=True, text=True,
            timeout=DEADLINE_S, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode in set(Exit) - {Exit.DEFECT}, (verb, done.returncode, done.stderr)
        assert "Traceback" not in done.stdout + done.stderr, verb
