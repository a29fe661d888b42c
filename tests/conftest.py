"""What holds for every test."""

from __future__ import annotations

import gc
import os

# A warm process beside each daemon would cost the suite minutes; `tests/e2e/test_warm.py` has them.
os.environ.setdefault("YOLO_FS_COLD", "1")

gc.disable()  # each full collection walks over all tests there are


def pytest_collection_finish() -> None:
    """Collect garbage again, but never walk over the tests themselves, which stay to the end."""
    gc.collect()
    gc.freeze()
    gc.enable()
