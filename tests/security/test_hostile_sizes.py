"""Memory and time do not grow with what others wrote beyond what may be read; see `tests/security/sizes.py`, which prints
what each costs. Up to 16 MB; with `YOLO_SECURITY=1` up to 1 GB.
"""

from __future__ import annotations

import pytest

from tests.security.sizes import ALL, CASES, LARGE, SIZES, SMALL, Case, costs

SPARE_MB = 256
"""Over what the same command takes where there is one byte: what may be read, in Python."""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what.replace(" ", "-"))
def test_a_command_takes_no_more_however_large_it_is(case: Case) -> None:
    least, *others = costs((case,), SIZES if ALL else (1, case.usual_bytes))
    for cost in (least, *others):
        print(cost)
        assert cost.code >= 0 and cost.code != 70 and "internal_error" not in cost.said, cost
        if cost.size_bytes <= SMALL[-1] or case.most_bytes == LARGE[-1]:
            assert cost.peak_mb < least.peak_mb + SPARE_MB, cost
