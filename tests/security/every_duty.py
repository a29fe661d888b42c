"""Makes a daemon that runs each of its duties, one by one, instead of waiting for when they are due.

Before each it says which, so that what happens meanwhile has a name.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable

from yolo_fs.checking import verify_command
from yolo_fs.daemon.daemon import DUTIES, Daemon
from yolo_fs.daemon.duties import _trouble_of
from yolo_fs.daemon.follower import FOLLOWING, Follower

FIRED = "YOLO_TEST_FIRED"
"""Variable that names the folder in which canaries leave their names."""
TURNS = 3
"""What the second judges, the third repairs."""
LANE_S = 2.0
"""How long the lane, which works beside the duties, is given to ask the remote."""


def prepare() -> None:
    """Let `yolo-fs run` go through the table of duties as often as needed, and end."""
    Daemon.run = _run_each  # type: ignore[method-assign]
    verify_command.QUIET_S = verify_command.LOOK_S = 0.0


def _run_each(self: Daemon, ready: Callable[[], object] = lambda: None) -> None:
    self._start()
    follower = Follower(self._repository, self._emit, self._process)
    both = [(duty, self) for duty in DUTIES] + [(duty, follower) for duty in FOLLOWING]
    try:
        for turn in range(TURNS):
            for duty, owner in both:
                trouble = None
                try:
                    while duty.run(owner) == 0.0:  # a scan stops after a moment, and goes on
                        continue
                except Exception as error:
                    trouble = _trouble_of(duty.name, error)
                if duty.name == "team" and not turn:
                    _wait_for_the_lane(self)
                _say(duty.name, trouble and trouble.reason.value, trouble and trouble.what)
            if not turn:
                with contextlib.suppress(OSError):
                    os.utime(os.path.join(self._repository.root, ".yolo-planning/config.json"))
    finally:
        follower.close()
        self._end()


def _wait_for_the_lane(self: Daemon) -> None:
    if self._team_link.is_joined:
        until = time.monotonic() + LANE_S
        while time.monotonic() < until and not os.path.exists(
            os.path.join(self._repository.own_dir, "team-lane.json")
        ):
            time.sleep(0.02)


def _say(name: str, reason: str | None, what: str | None) -> None:
    fired = sorted(os.listdir(os.environ[FIRED]))
    print(json.dumps({"duty": name, "reason": reason, "what": what, "fired": fired}), flush=True)
