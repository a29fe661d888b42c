"""Memory and time do not grow with what others wrote beyond what may be read; see `tests/security/sizes.py`, which prints
what each costs. Up to 16 MB; with `YOLO_SECURITY=1` up to 1 GB.
"""

from __future__ import annotations

import pytest

from tests.security.sizes import CASES, SIZES, Case, costs

SPARE_MB = 256
"""Over what the same command takes where there is one byte: what may be read, in Python."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what.replace(" ", "-"))
def test_a_command_takes_no_more_however_large_it_is(case: Case) -> None:
    least, *others = costs((case,), (1, *SIZES[-1:]) if len(SIZES) < 5 else SIZES)
    for cost in (least, *others):
        print(cost)
        assert cost.code in (0, 1) or "bad_config" in cost.said or cost.code == 78, cost
        assert "internal_error" not in cost.said, cost
        if case.most_bytes == SIZES[-1] or cost.size_bytes <= SIZES[3]:
            assert cost.peak_mb < least.peak_mb + SPARE_MB, cost
