"""Where it touches: git, files, locks and events, one door each."""

from __future__ import annotations

import os
import sys

PORTABLE = "YOLO_FS_PORTABLE"
"""Environment variable under which nothing is used that only Linux has: what another system does
can be tried here."""
IS_LINUX = sys.platform == "linux" and not os.environ.get(PORTABLE)
PROC = "/proc" if IS_LINUX else "/proc.of-linux-alone"
"""Where the kernel tells of processes. Elsewhere it is not there, and whoever asks does without."""
