"""Every statement of the documents has a test that proves it, or says why we differ."""

from __future__ import annotations

from collections import Counter

import pytest

from tools.coverage import meant, proofs, statements, unproved

STATEMENTS = {
    "000": 75,
    "001": 29,
    "002": 180,
    "003": 30,
    "004": 10,
    "hosts": 22,
    "resume": 9,
    "more": 2,
}
"""How many statements an audit of the documents found in each."""

NOT_PROVED = 0
"""How many of them no test proves; may only be lowered."""


def test_no_statement_of_the_documents_was_lost() -> None:
    ids = [statement.id for statement in statements()]

    assert Counter(name.partition(":")[0] for name in ids) == STATEMENTS
    assert len(set(ids)) == len(ids)
    assert all(statement.says for statement in statements())


def test_fewer_statements_are_left_without_a_proof_and_never_more() -> None:
    assert len(unproved()) <= NOT_PROVED, unproved()


def test_every_mark_of_a_test_means_a_statement() -> None:
    ids = [statement.id for statement in statements()]

    for proof in proofs():
        for claim in proof.claims:
            assert meant(claim, ids), f"{proof.path}::{proof.test} claims {claim}"


@pytest.mark.parametrize(
    ("claim", "ids"),
    [
        ("002:59a", ["002:59a"]),
        ("002:59-60", ["002:59a", "002:59b", "002:60"]),
        ("002:59", []),
        ("001:59-60", []),
    ],
)
def test_a_range_means_all_statements_of_its_lines(claim: str, ids: list[str]) -> None:
    assert meant(claim, ["002:58", "002:59a", "002:59b", "002:60", "003:59"]) == ids
