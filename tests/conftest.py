"""What holds for every test."""

from __future__ import annotations

import os

# A warm process beside each daemon would cost the suite minutes; `tests/e2e/test_warm.py` has them.
os.environ.setdefault("YOLO_FS_COLD", "1")
