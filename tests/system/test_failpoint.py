"""Failpoints: each is passed at one place, nothing happens unless asked for, and nonsense is
refused.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from yolo_fs.core.reasons import Reason, YoloError
from yolo_fs.system import failpoint
from yolo_fs.system.failpoint import STAGES, armed

ROOT = Path(__file__).parents[2]
_PASSED = re.compile(r'failpoint\.reach\("([^"]+)"\)')


def test_each_stage_is_passed_at_exactly_one_place_and_each_place_has_a_stage() -> None:
    places = [path.read_text() for path in (ROOT / "yolo_fs").rglob("*.py")]
    passed = Counter(stage for text in places for stage in _PASSED.findall(text))
    assert passed == Counter(STAGES.keys())
    assert sum(text.count("failpoint.reach(") for text in places) == len(STAGES), (
        "every stage is a literal"
    )


def test_each_stage_is_documented() -> None:
    documented = (ROOT / "docs/dev/torture.md").read_text()
    assert [
        stage for stage, meaning in STAGES.items() if f"| `{stage}` | {meaning} |" not in documented
    ] == []


def test_without_the_variable_a_stage_is_the_empty_function() -> None:
    assert failpoint.VARIABLE not in os.environ
    assert failpoint.reach is failpoint._nothing


@pytest.mark.parametrize(
    "text",
    [
        "objects.sync:kill", "objects.synced", "objects.synced:", "objects.synced:die", "objects.synced:kill=9",
        "objects.synced:sleep", "objects.synced:sleep=-1", "objects.synced:sleep=1s", "objects.synced:raise",
        "objects.synced:raise=FULL", "objects.synced:raise=errorcode", "objects.synced:raise=EFULL",
        "objects.synced:kill:0", "objects.synced:kill:", "objects.synced:kill:one", "objects.synced:kill:²", ":",
        "objects.synced:kill,refs.moved", "objects.synced:kill:1:2", " objects.synced:kill",
    ],
)  # fmt: skip
def test_what_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(YoloError) as refused:
        armed(text)
    assert refused.value.reason is Reason.BAD_CONFIG
    assert "YOLO_FP" in refused.value.message and "STAGE:ACTION[:NTH]" in refused.value.hint


def test_a_command_that_is_given_nonsense_says_so_and_does_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "yolo_fs", "run", "--once", "-C", str(tmp_path)], env={**os.environ, "YOLO_FP": "x:y"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("yolo-fs: bad_config: YOLO_FP, 'x:y': no stage is called 'x'")


def test_an_error_is_raised_at_the_pass_that_was_named_and_at_no_other(
    capfd: pytest.CaptureFixture[str],
) -> None:
    reach = armed("objects.synced:raise=ENOSPC:2,refs.moved:raise=EIO")
    reach("objects.synced")
    with pytest.raises(OSError, match="No space left on device"):
        reach("objects.synced")
    reach("objects.synced")
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output error"):
            reach("refs.moved")
    assert capfd.readouterr().err.splitlines() == [
        "yolo-fs: failpoint objects.synced",
        "yolo-fs: failpoint refs.moved",
        "yolo-fs: failpoint refs.moved",
    ]


def test_sleep_takes_its_time() -> None:
    began = time.monotonic()
    armed("refs.moved:sleep=20")("refs.moved")
    assert time.monotonic() - began >= 0.02


def test_kill_is_sigkill() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from yolo_fs.system import failpoint; failpoint.reach('refs.moved')"],
        env={**os.environ, "YOLO_FP": "refs.moved:kill"}, capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, b"yolo-fs: failpoint refs.moved\n")
