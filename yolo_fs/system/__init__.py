"""Access to the outside: git, files, locks and events, by one entry point each."""

from __future__ import annotations

import os
import sys

PORTABLE = "YOLO_FS_PORTABLE"
"""Environment variable that disables all that only Linux has, to test the behaviour of other
systems here."""
IS_LINUX = sys.platform == "linux" and not os.environ.get(PORTABLE)
PROC = "/proc" if IS_LINUX else "/proc.of-linux-alone"
"""The kernel's information on processes. Other systems have no such path, and callers do without
it."""
