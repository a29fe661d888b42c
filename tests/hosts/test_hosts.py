"""Each play inside each real host. They take minutes and 800 MB, so `pytest -m hosts` alone plays them."""

from __future__ import annotations

import os

import pytest

from tests.hosts.__main__ import CONTROL, perform
from tests.hosts.install import Programs, find, versions
from tests.hosts.plays import PLAYS

CASES = [(name, host) for name, play in PLAYS.items() for host in play.hosts]


@pytest.fixture
def programs(request: pytest.FixtureRequest) -> Programs:
    """Return the hosts, where they are installed and wanted."""
    is_wanted = "hosts" in str(request.config.option.markexpr) or os.environ.get("YOLO_HOSTS")
    if not is_wanted:
        pytest.skip("plays inside the real hosts are asked for: pytest -m hosts, or YOLO_HOSTS=1")
    there = find()
    if there is None:
        pytest.skip(f"not installed: {versions()}; scripts/hosts installs them from npm")
    return there


@pytest.mark.hosts
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("name", "host"), CASES, ids=lambda value: str(value).replace(" ", "-"))
def test_every_claim_holds_inside_the_real_host(programs: Programs, name: str, host: str) -> None:
    outcome = perform(programs, PLAYS[name], host)
    assert not outcome.defect, outcome.defect
    assert [claim for claim in outcome.claims if not claim.holds] == []


@pytest.mark.hosts
@pytest.mark.timeout(300)
@pytest.mark.parametrize("host", PLAYS[CONTROL].hosts)
def test_without_our_hooks_the_claims_do_not_hold(programs: Programs, host: str) -> None:
    outcome = perform(programs, PLAYS[CONTROL], host, has_hooks=False)
    assert not outcome.is_sound
    assert not outcome.claims[0].holds


def test_each_play_is_for_a_host_that_is_pinned() -> None:
    assert {host for _, names in CASES for host in names.split(" and ")} == set(versions())
